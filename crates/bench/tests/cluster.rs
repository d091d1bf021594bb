//! Validators on real sockets and disks, with links that lose, delay and cut, and one impostor.

use std::time::{Duration, Instant};

use bench::cluster::{Cluster, ClusterSettings, transactions};
use bench::impostor::Impostor;
use bench::switch::SwitchLink;
use consensus::Rules;
use node::Exchange;

const TRADERS: u64 = 200;
/// Without progress for this long the network is stuck.
const STUCK: Duration = Duration::from_secs(180);
/// Number of further heights after which every validator that can vote again does.
const HEIGHTS: u64 = 400;

fn settings(validators: usize) -> ClusterSettings {
    let mut settings = ClusterSettings {
        unit: Duration::from_millis(100),
        grace: Duration::from_millis(40),
        traders: TRADERS,
        ..ClusterSettings::local(validators)
    };
    settings.config.blocks.interval_ms = 20;
    settings
}

struct Load<'a> {
    cluster: &'a mut Cluster,
    next: u64,
    to: Vec<usize>,
}

impl Load<'_> {
    /// Sends this many transactions, each account to one of the validators that accept them.
    fn send(&mut self, count: u64) {
        let signed = transactions(&self.cluster.identity(), TRADERS, self.next, count);
        for (number, transaction) in (self.next..).zip(signed) {
            let node = self.cluster.nodes[self.to[number as usize % self.to.len()]].as_ref().expect("it runs");
            node.submit(vec![transaction], false).expect("room").blocking_recv().expect("an answer");
        }
        self.next += count;
    }

    /// Waits until one validator has applied everything that was sent, and all others have the same blocks.
    fn settle(&self) {
        let (mut moved, mut before) = (Instant::now(), Vec::new());
        let most = || self.cluster.running().map(|node| node.totals().0).max().unwrap_or(0);
        while most() < self.next || !self.cluster.agrees() {
            let of = |node: &Exchange| (node.read(|ledger| (ledger.height(), ledger.last_block())), node.totals());
            let now: Vec<_> = self.cluster.running().map(of).collect();
            if now != before {
                (moved, before) = (Instant::now(), now);
            }
            let status = || self.cluster.running().map(Exchange::status).collect::<Vec<_>>();
            assert!(moved.elapsed() < STUCK, "stuck: {} sent, {before:?}, {:?}", self.next, status());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn bad_links_and_partitions_lose_nothing() {
    survive_bad_links(settings(4));
}

#[test]
fn bad_links_and_partitions_lose_nothing_with_tendermint() {
    survive_bad_links(ClusterSettings { rules: Rules::tendermint(), ..settings(4) });
}

fn survive_bad_links(settings: ClusterSettings) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start(settings, directory.path()).expect("starts");
    let mut load = Load { cluster: &mut cluster, next: 0, to: vec![0, 1, 2, 3] };
    load.send(200);
    load.settle();
    let bad = SwitchLink {
        delay: Duration::from_millis(5),
        jitter: Duration::from_millis(10),
        loss: 0.2,
        reordering: 0.1,
        ..SwitchLink::PERFECT
    };
    load.cluster.switch.set_all(|_, _| bad);
    load.send(200);
    load.settle();
    load.cluster.switch.set_all(|_, _| SwitchLink::PERFECT);
    // No group has a quorum; nothing is decided, and nothing is lost.
    load.cluster.switch.partition(&[&[0, 1], &[2, 3]]);
    load.send(100);
    std::thread::sleep(Duration::from_secs(4));
    load.cluster.switch.heal();
    load.settle();
    // Three continue without the fourth, which then catches up.
    load.cluster.switch.partition(&[&[0, 1, 2]]);
    load.to = vec![0, 1, 2];
    load.send(100);
    std::thread::sleep(Duration::from_secs(2));
    load.cluster.switch.heal();
    load.settle();
}

/// Its sub-blocks come too late; its clients' transactions are in the sub-blocks of others. On a busy machine heights
/// take longer than its delay, so that all its sub-blocks may be in time for a while: then there is more load.
#[test]
fn a_validator_far_away_forwards_to_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start(settings(4), directory.path()).expect("starts");
    for near in 0..3 {
        let far = SwitchLink::of(Duration::from_millis(300));
        cluster.switch.set(near, 3, far);
        cluster.switch.set(3, near, far);
    }
    let mut load = Load { cluster: &mut cluster, next: 0, to: vec![3] };
    for _ in 0..50 {
        for _ in 0..20 {
            load.send(20);
            std::thread::sleep(Duration::from_millis(50));
        }
        load.settle();
        if proposed_by_others(load.cluster, 3) > 0 {
            return;
        }
    }
    panic!("nothing was forwarded");
}

/// Number of transactions in the sub-blocks of all validators but this one.
fn proposed_by_others(cluster: &Cluster, validator: u32) -> usize {
    let node = cluster.nodes[0].as_ref().expect("it runs");
    let heights = 1..=node.read(ledger::Ledger::height);
    let bodies = heights.map(|height| node.body(height).expect("readable").expect("there"));
    let of_others = |body: &primitives::Superblock| {
        let others = body.sub_blocks.iter().filter(|sub_block| sub_block.proposer != validator);
        others.map(|sub_block| sub_block.native.len()).sum::<usize>()
    };
    bodies.map(|body| of_others(&body)).sum()
}

#[test]
fn all_stopped_at_once_go_on_and_so_do_those_without_a_vote_log() {
    survive_a_stop(settings(4));
}

#[test]
fn all_stopped_at_once_go_on_with_tendermint() {
    survive_a_stop(ClusterSettings { rules: Rules::tendermint(), ..settings(4) });
}

fn survive_a_stop(settings: ClusterSettings) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start(settings, directory.path()).expect("starts");
    Load { cluster: &mut cluster, next: 0, to: vec![0, 1, 2, 3] }.send(100);
    cluster.nodes.iter_mut().for_each(|node| *node = None);
    std::fs::remove_dir_all(cluster.home(2).join("votes")).expect("it was there");
    for index in 0..4 {
        cluster.start_one(index).expect("restarts");
    }
    // Transactions that were not decided by then were never acknowledged as committed.
    let mut load = Load { cluster: &mut cluster, next: 400, to: vec![0, 1, 3] };
    load.send(100);
    let done = |cluster: &Cluster| {
        cluster.agrees() && cluster.running().all(|node| node.status().is_some_and(|status| status.is_caught_up()))
    };
    // An idle network continues from height to height, so a validator that lost its vote log soon reaches a height
    // where it may vote.
    let height = |node: &Exchange| node.read(ledger::Ledger::height);
    let first = load.cluster.running().map(height).max().expect("all run");
    let (mut moved, mut before) = (Instant::now(), Vec::new());
    while !done(load.cluster) {
        let now: Vec<_> = load.cluster.running().map(height).collect();
        let status = || load.cluster.running().map(Exchange::status).collect::<Vec<_>>();
        assert!(now.iter().all(|height| *height < first + HEIGHTS), "it does not vote: {:?}", status());
        if now != before {
            (moved, before) = (Instant::now(), now);
        }
        assert!(moved.elapsed() < STUCK, "stuck: {before:?}, {:?}", status());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_impostor_with_a_validators_key_stops_nobody() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start(settings(4), directory.path()).expect("starts");
    let mut load = Load { cluster: &mut cluster, next: 0, to: vec![0, 1, 2] };
    load.send(60);
    load.settle();
    load.cluster.nodes[3] = None;
    let impostor = Impostor::start(load.cluster.network(3).clone()).expect("the port is free again");
    for _ in 0..10 {
        load.send(30);
        std::thread::sleep(Duration::from_millis(200));
    }
    load.settle();
    assert!(impostor.stop() > 20, "the others sent frames to it");
    load.cluster.start_one(3).expect("the real one starts");
    load.send(30);
    load.settle();
}
