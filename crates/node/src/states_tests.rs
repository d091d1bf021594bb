//! State transfer on real sockets: four validators, of which one joins when the others have removed the blocks that
//! it lacks, or is restored from a file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ledger::{Genesis, Ledger, Listing};
use primitives::{Address, AssetId, Body, Fraction, Operation, SecretKey, SubBlock, Superblock, Transaction};
use replica::state_sync::base::{Base, constants_of};
use replica::state_sync::message::StateMessage;
use replica::{OwnKeys, Past};
use sockets::free_address;
use store::RealDisk;

use crate::{Answer, Config, Exchange, Lineage, snapshot};
use founding::{Founder, Founding, FoundingEngine};

const SIZE: usize = 4;
const CHAIN: u64 = 1;
/// Enough accounts for a state of several chunks.
const ACCOUNTS: u32 = 40_000;
/// The validator that joins late.
const LATE: usize = 3;

fn secret(index: usize) -> SecretKey {
    SecretKey::from_seed([index as u8 + 1; 32])
}

fn payer() -> SecretKey {
    SecretKey::from_seed([99; 32])
}

fn genesis() -> Genesis {
    let issuer = Address([1; 20]);
    let holder = |number: u32| {
        let mut address = [2; 20];
        address[..4].copy_from_slice(&number.wrapping_mul(2_654_435_761).to_be_bytes());
        (Address(address), AssetId(0), 5)
    };
    Genesis {
        chain: CHAIN,
        fee: 0,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("USD", 2, issuer), Listing::new("EUR", 2, issuer)],
        balances: (0..ACCOUNTS).map(holder).chain([(payer().public().address(), AssetId(0), 1_000_000)]).collect(),
        ..Genesis::default()
    }
}

struct Net {
    directory: tempfile::TempDir,
    addresses: Vec<SocketAddr>,
    founding: Founding,
    config: Config,
    nodes: Vec<Option<Exchange>>,
    /// How often each node has restarted with a fetched state.
    again: Vec<usize>,
}

impl Net {
    /// Four fixed validators in epochs of a dozen heights.
    fn new(keep_blocks: u64) -> Net {
        let addresses: Vec<SocketAddr> = (0..SIZE).map(|_| free_address().expect("a port")).collect();
        let founder = |index: usize| Founder {
            key: secret(index).public(),
            address: addresses[index].to_string(),
            account: secret(index).public().address(),
            stake: 1_000,
        };
        let mut founding = Founding::new(FoundingEngine::Dbft, (0..SIZE).map(founder).collect());
        founding.interval = std::time::Duration::from_millis(20);
        founding.succession.epoch_heights = 12;
        founding.heartbeat = Duration::from_millis(40);
        let mut config = Config::default();
        config.blocks.interval_ms = 20;
        config.store.checkpoint_blocks = 10;
        config.store.keep_blocks = keep_blocks;
        // Blocks that were removed from disk must not be served from memory either.
        (config.store.cached_bodies, config.store.cached_receipts) = (0, 0);
        let directory = tempfile::tempdir().expect("a directory");
        let net = Net { directory, addresses, founding, config, nodes: Vec::new(), again: vec![0; SIZE] };
        (0..SIZE).for_each(|index| crate::validator::create_votes(&net.home(index)).expect("a new home"));
        Net { nodes: (0..SIZE).map(|_| None).collect(), ..net }
    }

    fn home(&self, index: usize) -> PathBuf {
        Path::new(self.directory.path()).join(index.to_string())
    }

    fn genesis(&self) -> Genesis {
        self.founding.found(genesis())
    }

    fn run(&mut self, index: usize) {
        let founded = self.genesis();
        let network = self.founding.network(&founded, OwnKeys::one(secret(index)), self.addresses[index]);
        let node = Exchange::start(self.config.clone(), &founded, &self.home(index), Some(network)).expect("starts");
        self.nodes[index] = Some(node);
    }

    fn node(&self, index: usize) -> &Exchange {
        self.nodes[index].as_ref().expect("it runs")
    }

    fn height(&self, index: usize) -> u64 {
        self.node(index).read(|ledger| ledger.height())
    }

    fn status(&self, index: usize) -> replica::ValidatorStatus {
        self.node(index).status().expect("it is a validator")
    }

    /// Waits, and restarts nodes that have fetched a state.
    fn wait_until(&mut self, what: &str, holds: impl Fn(&Net) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < Duration::from_secs(200), "{what}: {:?}", self.describe());
            for index in 0..SIZE {
                if self.nodes[index].as_ref().is_some_and(Exchange::is_to_begin_again) {
                    self.nodes[index] = None;
                    self.again[index] += 1;
                    self.run(index);
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn describe(&self) -> Vec<String> {
        let of = |node: &Exchange| {
            format!("{} {:?} {:?}", node.read(|l| l.height()), node.shared.life.failure.get(), node.status())
        };
        self.nodes.iter().flatten().map(of).collect()
    }

    /// Whether all running nodes have the same block, at this height or above, and vote.
    fn agree(&self, height: u64) -> bool {
        let states: Vec<_> =
            self.nodes.iter().flatten().map(|node| node.read(|l| (l.height(), l.last_block()))).collect();
        let votes = |node: &Exchange| node.status().is_some_and(|status| !status.silent && !status.follows);
        states[0].0 >= height
            && states.iter().all(|state| *state == states[0])
            && self.nodes.iter().flatten().all(votes)
    }

    fn pay(&self, through: usize, sequence: u64, to: Address) {
        let operation = Operation::Pay { to, asset: AssetId(0), amount: 7 };
        let body = Body { chain: CHAIN, account: payer().public().address(), sequence, until: 50_000, operation };
        let transaction: Transaction = body.sign(&self.node(through).read(Ledger::network), &payer());
        let answers = self.node(through).submit(vec![transaction], false).expect("taken").blocking_recv();
        assert!(matches!(answers.expect("an answer")[0], Answer::Pending(..)));
    }

    fn walk(&self, index: usize) -> Lineage {
        let mut lineage = self.founding.lineage(&self.genesis());
        loop {
            let page = self.node(index).handovers(lineage.chain.epoch + 1).expect("readable");
            page.iter().for_each(|handover| lineage.follow(handover).expect("holds"));
            if page.is_empty() {
                return lineage;
            }
        }
    }
}

/// Makes a validator send a wrong chunk.
fn lie(answer: StateMessage) -> Option<StateMessage> {
    match answer {
        StateMessage::Chunk { height, number, bytes: Some(mut bytes) } => {
            bytes[0] ^= 1;
            Some(StateMessage::Chunk { height, number, bytes: Some(bytes) })
        }
        other => Some(other),
    }
}

#[test]
fn a_late_validator_fetches_a_state_from_several_of_which_one_lies() {
    let mut net = Net::new(5);
    (0..3).for_each(|index| net.run(index));
    // Two hold back their second chunk until the door is open; the third sends wrong ones.
    let door = Arc::new(AtomicBool::new(false));
    for index in 0..2 {
        let door = door.clone();
        let hold = move |answer| match answer {
            StateMessage::Chunk { number: 1, .. } if !door.load(Ordering::Acquire) => None,
            other => Some(other),
        };
        assert!(net.node(index).shared.seat.spoil.set(Box::new(hold)).is_ok());
    }
    assert!(net.node(2).shared.seat.spoil.set(Box::new(lie)).is_ok());
    let forgotten = |net: &Net, index: usize| net.node(index).shared.archive.block(1).expect("readable").is_none();
    net.wait_until("blocks are forgotten", |net| net.height(0) > 60 && (0..3).all(|index| forgotten(net, index)));
    assert!(net.node(0).shared.archive.block(net.height(0) - 5).expect("readable").is_some(), "the last ones are kept");
    // Killed in the middle of the transfer, it keeps its old state.
    net.run(LATE);
    let state = net.home(LATE).join("incoming/state");
    net.wait_until("the transfer has begun", |_| state.exists());
    net.nodes[LATE] = None;
    assert!(state.exists());
    net.run(LATE);
    assert_eq!((net.height(LATE), net.again[LATE]), (0, 0));
    door.store(true, Ordering::Release);
    net.wait_until("it has begun again with a state", |net| net.again[LATE] > 0);
    assert!(net.height(LATE) > 0 && net.node(LATE).shared.archive.block(1).expect("readable").is_none());
    net.wait_until("all agree", |net| net.agree(net.height(0)) && net.status(0).epoch == net.status(LATE).epoch);
    // It can prove all committees, too.
    let epoch = net.status(LATE).epoch;
    net.wait_until("it can prove the present", |net| net.walk(LATE).chain.epoch >= epoch);
    // With one of the others down, the network needs the new one's votes.
    net.nodes[0] = None;
    let (friend, height) = (Address([7; 20]), net.height(1));
    net.pay(LATE, 1, friend);
    let balance = |net: &Net| net.node(1).read(|l| l.accounts().get(&friend).map_or(0, |one| one.balance(AssetId(0))));
    net.wait_until("it votes and proposes", |net| balance(net) == 7 && net.height(1) > height + 10);
    // A restart from a fetched state works like any other.
    let height = net.height(LATE);
    net.nodes[LATE] = None;
    net.run(LATE);
    net.wait_until("it goes on", |net| net.height(LATE) > height + 4 && net.agree(height));
}

/// The state that a node's store holds.
fn state_of(net: &Net, index: usize) -> Ledger {
    let disk = RealDisk::existing(net.home(index)).expect("a store");
    snapshot::state_of(store::view(disk).expect("readable"), &net.genesis(), |_| {}).expect("sound").ledger
}

#[test]
fn a_restored_validator_holds_its_state_against_the_certificate() {
    let mut net = Net::new(0);
    (0..3).for_each(|index| net.run(index));
    net.wait_until("some heights", |net| net.height(0) > 30);
    let ledger = state_of(&net, 0);
    let proof = |net: &Net| {
        let shared = &net.node(0).shared;
        let certificates = shared.seat.certificates.get().expect("a validator").1.clone();
        let past = Past { blocks: shared.archive.clone(), certificates, begins: 0 };
        Base::read(&past, shared.newest_root(), ledger.height(), 2).expect("readable")
    };
    net.wait_until("it is certified", |net| proof(net).is_some());
    let (proof, constants) = (proof(&net).expect("certified"), constants_of(&ledger));
    assert!(
        proof.is_of(&ledger, constants)
            && !proof.is_of(&ledger, (constants.0, 1, constants.2, constants.3, constants.4))
    );
    // The state of another history is useless: the node stops and says so.
    let mut other = ledger.clone();
    let (height, parent) = (other.height() + 1, other.last_block());
    let parent_root = ledger::Roots::of(&other).parts().root();
    let sub_blocks = vec![SubBlock { proposer: 0, ..SubBlock::default() }];
    let block = Superblock { height, parent, time_ms: 1, parent_root, sub_blocks, ..Superblock::default() };
    other.apply(&block, ledger::Signatures::Valid, &mut |_| {}).expect("applies");
    assert!(!proof.is_of(&other, constants));
    for (state, is_right) in [(other, false), (ledger, true)] {
        std::fs::remove_dir_all(net.home(LATE)).expect("a home");
        snapshot::install(&state, &net.home(LATE)).expect("restored");
        net.run(LATE);
        if is_right {
            net.wait_until("all agree", |net| net.again[LATE] > 0 && net.agree(state.height()));
        } else {
            let failure = |net: &Net| net.node(LATE).shared.life.failure.get().cloned();
            net.wait_until("it stops", |net| net.again[LATE] > 0 || failure(net).is_some());
            // If the others do not answer about its height in time, it has fetched a newer, certified state instead.
            let has_fetched = net.again[LATE] > 0 || net.node(LATE).is_to_begin_again();
            let why = failure(&net).unwrap_or_default();
            assert!(has_fetched || why.contains("restore another snapshot"), "{why}");
            net.again[LATE] = 0;
            net.nodes[LATE] = None;
        }
    }
    // Its votes count: with another validator down, heights still advance.
    net.nodes[1] = None;
    let height = net.height(0);
    net.wait_until("it votes", |net| net.height(0) > height + 10);
}
