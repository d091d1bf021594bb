//! Four validators on loopback, in one process: a transaction submitted to one is applied by all.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use consensus::tendermint::{Kind, Message, Messages, Value, Vote};
use consensus::{ALL_HEIGHTS, Chain, Frame, Payload, Proposal, Protocol, Rules};
use ledger::{Genesis, Ledger, Listing, Member, Membership, SealTerms, Terms};
use node::{Answer, Config, Exchange, Network, OwnKeys, PeerAddress};
use primitives::{
    Address, AssetId, Body, Digest, Enclosure, Fraction, Operation, Price, SecretKey, Signature, SubBlock, Transaction,
};
use sealing::{EnvelopeTerms, SealedText, SealingKey, seal};
use sockets::free_address;
use transport::{Event, LinkStream, Transport, TransportSettings};

const SIZE: usize = 4;
const NETWORK: Digest = Digest([8; 32]);

fn secret(index: usize) -> SecretKey {
    SecretKey::from_seed([index as u8 + 1; 32])
}

fn trader(index: u64) -> SecretKey {
    SecretKey::from_seed([index as u8 + 100; 32])
}

fn genesis() -> Genesis {
    let issuer = Address([1; 20]);
    let assets = vec![Listing::new("USD", 2, issuer), Listing::new("EUR", 2, issuer)];
    let accounts = (0..8).map(|index| trader(index).public().address());
    let balances =
        accounts.flat_map(|account| [(account, AssetId(0), 1_000_000), (account, AssetId(1), 1_000_000)]).collect();
    let (committee, slash) = (SIZE as u32, Fraction::power_of_two(2));
    let terms = Terms { network: NETWORK, committee, minimum_stake: 1, slash, ..Terms::default() };
    let founder = |index: usize| {
        let key = secret(index).public();
        Member { account: key.address(), key, address: String::new(), stake: 1_000 }
    };
    let founders = (0..SIZE).map(founder).collect();
    Genesis {
        chain: 1,
        fee: 0,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets,
        balances,
        membership: Some(Membership { terms, reward_pool: 0, founders }),
        ..Genesis::default()
    }
}

struct Cluster {
    genesis: Genesis,
    directory: tempfile::TempDir,
    networks: Vec<Network>,
    nodes: Vec<Option<Exchange>>,
}

impl Cluster {
    fn new() -> Cluster {
        Cluster::of(Rules::default(), SIZE)
    }

    /// A cluster of which only the first `running` validators run.
    fn of(rules: Rules, running: usize) -> Cluster {
        Cluster::founded(genesis(), rules, running)
    }

    fn founded(genesis: Genesis, rules: Rules, running: usize) -> Cluster {
        let addresses: Vec<_> = (0..SIZE).map(|_| free_address().expect("a port")).collect();
        let keys: Vec<_> = (0..SIZE).map(|index| secret(index).public()).collect();
        let peers: Vec<PeerAddress> = keys
            .iter()
            .zip(&addresses)
            .map(|(key, address)| PeerAddress { key: *key, address: address.to_string() })
            .collect();
        let network = |index: usize| Network {
            chain: Chain { genesis: NETWORK, epoch: 0, heights: ALL_HEIGHTS, keys: keys.clone() },
            rules,
            ledger_rules: ledger::RULES_NEWEST,
            ethereum: node::EthereumSection::default(),
            me: index as u8,
            own: OwnKeys::one(secret(index)),
            listen: addresses[index],
            peers: peers.clone(),
            committee_max: SIZE,
            unit: Duration::from_millis(100),
            grace: Duration::from_millis(30),
            heartbeat: Duration::from_secs(1),
            interval: Duration::from_millis(20),
        };
        let directory = tempfile::tempdir().expect("a directory");
        let (networks, nodes) = ((0..SIZE).map(network).collect(), (0..SIZE).map(|_| None).collect());
        let mut cluster = Cluster { genesis, networks, nodes, directory };
        for index in 0..running {
            node::validator::create_votes(&cluster.home(index)).expect("a new home");
            cluster.start(index);
        }
        cluster
    }

    fn home(&self, index: usize) -> PathBuf {
        Path::new(self.directory.path()).join(index.to_string())
    }

    fn start(&mut self, index: usize) {
        let mut config = Config::default();
        config.blocks.interval_ms = 20;
        let network = self.networks[index].clone();
        let node = Exchange::start(config, &self.genesis, &self.home(index), Some(network)).expect("starts");
        self.nodes[index] = Some(node);
    }

    fn running(&self) -> impl Iterator<Item = &Exchange> {
        self.nodes.iter().flatten()
    }

    fn submit(&self, to: usize, transactions: Vec<Transaction>) {
        let node = self.nodes[to].as_ref().expect("it runs");
        let answers = node.submit(transactions, false).expect("room").blocking_recv().expect("an answer");
        for answer in answers {
            assert!(matches!(answer, Answer::Pending(..) | Answer::Committed(..)), "{answer:?}");
        }
    }

    fn wait_until(&self, holds: impl Fn(&Exchange) -> bool) {
        let begun = Instant::now();
        while !self.running().all(&holds) {
            assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", self.describe());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until every running validator has applied this many transactions and all are at one height and root.
    fn wait_for(&self, applied: u64) {
        let begun = Instant::now();
        loop {
            let states: Vec<_> = self.running().map(|node| node.read(|l| (l.height(), l.last_block()))).collect();
            let done = self.running().all(|node| node.totals().0 >= applied);
            if done && states.iter().all(|state| *state == states[0]) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", self.describe());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the first validator sees each of them as connected or not, and knows the heights of the connected
    /// ones.
    fn wait_for_peers(&self, connected: [bool; SIZE]) {
        let begun = Instant::now();
        let node = self.nodes[0].as_ref().expect("it runs");
        loop {
            let peers = node.status().map(|status| status.peers).unwrap_or_default();
            let seen: Vec<(u8, bool)> = peers.iter().map(|peer| (peer.validator, peer.connected)).collect();
            let far = peers.iter().filter(|peer| peer.connected).all(|peer| peer.decided > 0);
            if far && seen.into_iter().eq((0..).zip(connected)) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", self.describe());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn describe(&self) -> Vec<String> {
        let node = |node: &Exchange| {
            let opened = node.read(|l| (l.height(), l.last_block(), l.opened_names().len(), l.book().len()));
            format!("{opened:?} {:?} {:?}", node.totals(), node.status())
        };
        self.running().map(node).collect()
    }
}

fn order(trader_index: u64, sequence: u64) -> Transaction {
    let (sell, buy) = if trader_index.is_multiple_of(2) { (0, 1) } else { (1, 0) };
    let operation = Operation::offer(AssetId(sell), AssetId(buy), 5_000 + sequence, Price::ONE);
    let key = trader(trader_index);
    Body { chain: 1, account: key.public().address(), sequence, until: 50_000, operation }.sign(&NETWORK, &key)
}

/// An offer of a trader, sealed to the committee's key by another account, which pays.
fn sealed(node: &Exchange, trader_index: u64, sequence: u64, payer: (u64, u64)) -> Transaction {
    let (number, group, height) = node.read(|ledger| {
        let key = ledger.seals().and_then(|seals| seals.in_force(ledger.height() + 1)).expect("a key in force");
        (key.number, SealingKey::parse(&key.group).expect("a point"), ledger.height())
    });
    let signer = trader(payer.0);
    let (account, until) = (signer.public().address(), height + 200);
    let within = Enclosure { payer: account, sequence: payer.1 };
    let operation = Operation::offer(AssetId(0), AssetId(1), 7_777, Price::from_f64(1.5).expect("in range"));
    let key = trader(trader_index);
    let inside = Body { chain: 1, account: key.public().address(), sequence, until, operation };
    let inside = inside.sign_sealed(&NETWORK, &within, &key);
    let terms = EnvelopeTerms {
        network: NETWORK,
        signer: signer.public(),
        key: number,
        payer: account,
        sequence: payer.1,
        until,
    };
    let envelope = seal(&group, &terms, &SealedText(vec![inside]), &[payer.1 as u8; 32]).expect("it fits");
    let operation = Operation::Sealed(Box::new(envelope.to_bytes(number)));
    Body { chain: 1, account, sequence: payer.1, until, operation }.sign(&NETWORK, &signer)
}

/// How many sealed offers of a trader rest.
fn resting(ledger: &Ledger, trader_index: u64) -> usize {
    let account = trader(trader_index).public().address();
    let offers = ledger.book().iter().flat_map(|(_, offers)| offers.iter().collect::<Vec<_>>());
    offers.filter(|offer| offer.place.account == account && offer.amount == 7_777).count()
}

/// Seats make a key, and open with it what nobody can read before its block is decided: also while one of them is gone,
/// and for one that comes back later.
#[test]
fn sealed_orders_are_opened_into_their_block() {
    let seals = SealTerms::named("fewest");
    let mut cluster = Cluster::founded(Genesis { seals, ..genesis() }, Rules::default(), SIZE);
    let (begun, mut sequence) = (Instant::now(), 0);
    let has_key = |node: &Exchange| {
        node.read(|ledger| ledger.seals().and_then(|seals| seals.in_force(ledger.height() + 1)).is_some())
    };
    // A key needs heights, and heights need transactions.
    while !cluster.running().all(has_key) {
        assert!(begun.elapsed() < Duration::from_secs(120), "no key: {:?}", cluster.describe());
        sequence += 1;
        cluster.submit(0, vec![order(0, sequence)]);
        std::thread::sleep(Duration::from_millis(20));
    }
    let seal_at = |cluster: &Cluster, at: usize, number: u64| {
        sealed(cluster.nodes[at].as_ref().expect("it runs"), 1, number, (7, number))
    };
    let first = seal_at(&cluster, 0, 1);
    cluster.submit(0, vec![first]);
    cluster.wait_until(|node| node.read(|ledger| resting(ledger, 1)) == 1);
    cluster.nodes[3] = None;
    let second = seal_at(&cluster, 1, 2);
    cluster.submit(1, vec![second]);
    cluster.wait_until(|node| node.read(|ledger| resting(ledger, 1)) == 2);
    cluster.start(3);
    cluster.wait_until(|node| node.read(|ledger| resting(ledger, 1)) == 2);
    // A restart replays the keys of its log.
    cluster.nodes[0] = None;
    cluster.start(0);
    cluster.wait_until(|node| node.read(|ledger| resting(ledger, 1)) == 2);
}

#[test]
fn what_one_validator_takes_all_apply() {
    let cluster = Cluster::new();
    for sequence in 1..=10 {
        for trader in 0..8 {
            cluster.submit(trader as usize % SIZE, vec![order(trader, sequence)]);
        }
    }
    cluster.wait_for(80);
    cluster.wait_for_peers([true; SIZE]);
}

#[test]
fn a_stopped_validator_catches_up_and_a_forgetful_one_listens_first() {
    let mut cluster = Cluster::new();
    let mut sequence = 0;
    let mut round = |cluster: &Cluster, to: &[usize]| {
        sequence += 1;
        for trader in 0..8 {
            cluster.submit(to[trader as usize % to.len()], vec![order(trader, sequence)]);
        }
    };
    round(&cluster, &[0, 1, 2, 3]);
    cluster.wait_for(8);
    cluster.nodes[3] = None;
    cluster.wait_for_peers([true, true, true, false]);
    for count in 2..6 {
        round(&cluster, &[0, 1, 2]);
        cluster.wait_for(8 * count);
    }
    std::fs::remove_dir_all(cluster.home(3).join("votes")).expect("the vote log was there");
    cluster.start(3);
    for count in 6..16 {
        round(&cluster, &[0, 1, 2]);
        std::thread::sleep(Duration::from_millis(100));
        let _ = count;
    }
    // Totals count from the start; heights and blocks must agree.
    let begun = Instant::now();
    let voted = |cluster: &Cluster| {
        let states: Vec<_> = cluster.running().map(|node| node.read(|l| l.last_block())).collect();
        let status = cluster.nodes[3].as_ref().and_then(Exchange::status);
        states.iter().all(|state| *state == states[0]) && status.is_some_and(|status| !status.silent)
    };
    while !voted(&cluster) {
        assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", cluster.describe());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The frames of a Byzantine validator: two proposals for each of the first heights, or two votes.
fn contradictions(network: &Network) -> Vec<Frame> {
    let Network { chain, me, .. } = network;
    let secret = &secret(usize::from(*me));
    let payload = |time_ms: u64| -> Payload { SubBlock { time_ms, ..SubBlock::default() }.to_payload().into() };
    let proposals = |height: u64| {
        [1, 2].map(|time_ms| {
            let payload = payload(time_ms);
            Frame::Proposal(Proposal::sign(chain, height, *me, &payload, secret), payload)
        })
    };
    let votes = |height: u64| {
        let vote = |value: Option<Value>| {
            let signature = Signature([0; 64]);
            let vote = Vote { height, round: 0, kind: Kind::Precommit, value, signer: *me, signature };
            Message::Vote(vote.sign(chain, secret))
        };
        let messages = vec![vote(None), vote(Some(Value { slot: 1, digest: Digest([5; 32]) }))];
        Frame::Rounds(Messages { epoch: 0, height, messages })
    };
    match network.rules.protocol {
        Protocol::Dbft => (1..=4).flat_map(proposals).collect(),
        Protocol::Tendermint => (1..=4).map(votes).collect(),
    }
}

#[test]
fn a_validator_with_a_wrong_clock_stops_and_says_so() {
    let cluster = Cluster::of(Rules::default(), 1);
    let start = |index: usize| {
        let (events, _heard) = std::sync::mpsc::sync_channel(1_000);
        let in_an_hour = || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
            now.as_millis() as u64 + 3_600_000
        };
        let settings = TransportSettings { clock: in_an_hour, ..node::links::settings(&cluster.networks[index]) };
        (Transport::start(settings, events).expect("a free port"), _heard)
    };
    let _others = [start(1), start(2)];
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let why = runtime.block_on(cluster.running().next().expect("it runs").failed());
    assert!(why.contains("clock is 60 minutes behind") || why.contains("clock is 59 minutes behind"), "{why}");
}

#[test]
fn who_contradicts_itself_is_accused_by_the_others() {
    for rules in [Rules::default(), Rules::tendermint()] {
        let cluster = Cluster::of(rules, SIZE - 1);
        let network = &cluster.networks[SIZE - 1];
        let (events, heard) = std::sync::mpsc::sync_channel(1_000);
        let transport = Transport::start(node::links::settings(network), events).expect("a free port");
        let mut greeted = 0;
        while greeted < SIZE - 1 {
            if let Event::Up { peer, .. } = heard.recv_timeout(Duration::from_secs(120)).expect("they call") {
                greeted += 1;
                for frame in contradictions(network) {
                    let stream = if frame.is_bulk() { LinkStream::Bulk } else { LinkStream::Votes };
                    transport.send(peer, stream, frame.to_bytes().into());
                }
            }
        }
        for sequence in 1..=3 {
            (0..8).for_each(|trader| cluster.submit(trader as usize % (SIZE - 1), vec![order(trader, sequence)]));
        }
        let convicted = secret(SIZE - 1).public().address();
        let is_excluded = |node: &Exchange, who: &Address| {
            node.read(|ledger| ledger.validators().get(who).is_some_and(|one| one.excluded))
        };
        cluster.wait_until(|node| is_excluded(node, &convicted));
        for node in cluster.running() {
            assert!((0..SIZE - 1).all(|index| !is_excluded(node, &secret(index).public().address())));
            assert_eq!(node.read(|ledger| ledger.validators().pool), 250, "a quarter of its stake");
        }
    }
}
