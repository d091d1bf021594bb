//! Validators change while the network runs, in one process: committees are drawn, and a newcomer stakes and becomes
//! a validator.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use founding::{Founder, Founding, FoundingEngine};
use ledger::{Genesis, Listing};
use node::{Answer, Config, Exchange, Lineage, OwnKeys};
use primitives::{Address, AssetId, Body, Fraction, Operation, SecretKey, Stake, Transaction};
use sockets::free_address;

const FOUNDERS: usize = 4;
/// The node that stakes later has the last index.
const SIZE: usize = 5;
const CHAIN: u64 = 1;

fn secret(index: usize) -> SecretKey {
    SecretKey::from_seed([index as u8 + 1; 32])
}

fn account(index: usize) -> SecretKey {
    SecretKey::from_seed([index as u8 + 100; 32])
}

fn genesis() -> Genesis {
    let issuer = Address([1; 20]);
    let assets = vec![Listing::new("USD", 2, issuer), Listing::new("EUR", 2, issuer)];
    let accounts = (0..SIZE).map(|index| account(index).public().address());
    Genesis {
        chain: CHAIN,
        fee: 0,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets,
        balances: accounts.map(|account| (account, AssetId(0), 1_000_000)).collect(),
        ..Genesis::default()
    }
}

struct Net {
    directory: tempfile::TempDir,
    addresses: Vec<SocketAddr>,
    founding: Founding,
    nodes: Vec<Option<Exchange>>,
}

impl Net {
    /// Each epoch of sixty heights has four validators, drawn from those who have staked.
    fn start() -> Net {
        let addresses: Vec<SocketAddr> = (0..SIZE).map(|_| free_address().expect("a port")).collect();
        let founder = |index: usize| Founder {
            key: secret(index).public(),
            address: addresses[index].to_string(),
            account: account(index).public().address(),
            stake: 1_000,
        };
        let mut founding = Founding::new(FoundingEngine::Dbft, (0..FOUNDERS).map(founder).collect());
        founding.interval = Duration::from_millis(20);
        // Long enough for one that follows, some heights behind, to say in time that it is present.
        founding.succession.epoch_heights = 60;
        founding.succession.reward = 1;
        founding.succession.reward_pool = 10_000;
        founding.heartbeat = Duration::from_millis(40);
        let directory = tempfile::tempdir().expect("a directory");
        let mut net = Net { directory, addresses, founding, nodes: (0..SIZE).map(|_| None).collect() };
        for index in 0..SIZE {
            node::validator::create_votes(&net.home(index)).expect("a new home");
            net.run(index);
        }
        net
    }

    fn home(&self, index: usize) -> PathBuf {
        Path::new(self.directory.path()).join(index.to_string())
    }

    fn run(&mut self, index: usize) {
        let mut config = Config::default();
        config.blocks.interval_ms = 20;
        let founded = self.founding.found(genesis());
        let network = self.founding.network(&founded, OwnKeys::one(secret(index)), self.addresses[index]);
        self.nodes[index] = Some(Exchange::start(config, &founded, &self.home(index), Some(network)).expect("starts"));
    }

    fn node(&self, index: usize) -> &Exchange {
        self.nodes[index].as_ref().expect("it runs")
    }

    fn submit(&self, to: usize, transaction: Transaction) {
        let answers = self.node(to).submit(vec![transaction], false).expect("a validator takes it");
        let answers = answers.blocking_recv().expect("an answer");
        assert!(matches!(answers[0], Answer::Pending(..) | Answer::Committed(..)), "{:?}", answers[0]);
    }

    fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(200), "{what}: {:?}", self.describe());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn describe(&self) -> Vec<String> {
        let of = |node: &Exchange| format!("{:?} {:?}", node.read(|ledger| ledger.height()), node.status());
        self.nodes.iter().flatten().map(of).collect()
    }

    fn epoch(&self, index: usize) -> u64 {
        self.node(index).status().map_or(0, |status| status.epoch)
    }

    /// Follows handovers from the genesis to the last committee that a node proves, or to an epoch.
    fn walk_to(&self, index: usize, last: u64) -> Lineage {
        let mut lineage = self.founding.lineage(&self.founding.found(genesis()));
        loop {
            let page = self.node(index).handovers(lineage.chain.epoch + 1).expect("readable");
            for handover in &page {
                if lineage.chain.epoch < last {
                    lineage.follow(handover).expect("holds");
                }
            }
            if page.is_empty() || lineage.chain.epoch == last {
                return lineage;
            }
        }
    }

    fn walk(&self, index: usize) -> Lineage {
        self.walk_to(index, u64::MAX)
    }

    fn follows(&self, index: usize) -> bool {
        self.node(index).status().is_none_or(|status| status.follows)
    }

    /// Whether all have applied the same block at some height not below this one.
    fn agree(&self, height: u64) -> bool {
        let states: Vec<_> =
            self.nodes.iter().flatten().map(|node| node.read(|l| (l.height(), l.last_block()))).collect();
        states[0].0 >= height && states.iter().all(|state| *state == states[0])
    }
}

fn signed(net: &Net, index: usize, sequence: u64, operation: Operation) -> Transaction {
    let (key, network) = (account(index), net.founding.digest(&genesis()));
    Body { chain: CHAIN, account: key.public().address(), sequence, until: 50_000, operation }.sign(&network, &key)
}

#[test]
fn a_stranger_stakes_is_drawn_and_validates() {
    let mut net = Net::start();
    let stranger = account(4).public().address();
    net.wait_until("it follows before it has staked", || net.follows(4) && net.node(0).read(|l| l.height()) > 2);
    let refused = net.node(4).submit(vec![signed(&net, 4, 9, Operation::Unstake { units: 1 })], false);
    assert_eq!(refused.err(), Some(node::Closed::Follows));
    // So much more than the founders that every draw includes it.
    let stake = Stake::new(900_000, net.addresses[4].to_string(), CHAIN, &stranger, &secret(4));
    net.submit(0, signed(&net, 4, 1, Operation::Stake(Box::new(stake))));
    net.wait_until("it validates", || net.epoch(4) > 0 && !net.follows(4));
    let founders_that_follow = || (0..FOUNDERS).filter(|index| net.follows(*index)).count();
    net.wait_until("one founder follows", || founders_that_follow() == 1);
    // It proposes the transactions it is given, and all learn of them.
    let friend = Address([7; 20]);
    net.submit(4, signed(&net, 4, 2, Operation::Pay { to: friend, asset: AssetId(0), amount: 77 }));
    let balance = || net.node(1).read(|l| l.accounts().get(&friend).map_or(0, |one| one.balance(AssetId(0))));
    net.wait_until("paid", || balance() == 77);
    // One is down for more than an epoch, loses its vote log, catches up to the present, and votes there.
    let epoch = net.epoch(1);
    net.nodes[0] = None;
    net.wait_until("epochs go on", || net.epoch(1) > epoch + 2);
    std::fs::remove_dir_all(net.home(0).join("votes")).expect("the vote log was there");
    net.run(0);
    net.wait_until("all are in one epoch again", || net.epoch(0) > epoch + 2);
    net.wait_until("it knows where it may vote", || net.node(0).status().is_some_and(|status| !status.silent));
    net.wait_until("it validates", || !net.follows(0));
    let height = net.node(1).read(|l| l.height());
    net.wait_until("all agree", || net.agree(height));
    let paid = net.node(1).read(|l| l.validators().pool);
    assert!(paid < 10_000, "proposers are paid");
    // Every node, including the one that was down, can prove each committee since the founders', and all prove the
    // same ones.
    let epoch = net.epoch(1);
    for index in [1, 0, 4] {
        net.wait_until("the handover is held", || net.walk(index).chain.epoch >= epoch);
    }
    let committee = net.node(1).read(|l| l.committee(epoch).map(|members| members[0].key));
    let walked = net.walk_to(4, epoch);
    assert_eq!(committee, Some(walked.chain.keys[0]));
    assert_eq!(net.walk_to(1, epoch), walked);
    assert_eq!(net.walk_to(0, epoch), walked);
    // A restart loses none.
    net.nodes[4] = None;
    net.run(4);
    assert_eq!(net.walk_to(4, epoch), walked);
}
