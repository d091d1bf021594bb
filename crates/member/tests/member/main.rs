//! One member of the lane with two shards, over a real ledger and a shell that fails when it is told to.

mod apart;
mod cases;
mod layouts;
mod terms;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ledger::{CharterTerms, Genesis, LaneAsset, LaneBls, LaneTerms, Ledger, Listing, Signatures};
use member::{
    ASK_BLOCKS, LaneBlock, LaneMember, MemberEffect, MemberInput, MemberMistake, MemberSettings, POST_BLOCKS,
    ShardStart,
};
use payments::{
    BridgeKey, BridgeOperation, ContestClaim, ContestedOutput, HomeEpoch, LOG_EPOCHS, LaneAnswer, LaneEffect,
    LaneInput, OutputId, OutputProof, PaymentBody, SpentOutput, owner_message,
};
use primitives::{
    Amount, AssetId, Body, Digest, Fraction, Height, Operation, SecretKey, Sequence, Signature, SubBlock, Superblock,
    Transaction,
};

const USD: AssetId = AssetId(0);
const HEIGHTS: u64 = 6;
const SHARDS: u16 = 2;
const DEPOSIT: Amount = 7;

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

fn shard_key(home: HomeEpoch, shard: u16) -> SecretKey {
    key(50 + 2 * home as u8 + shard as u8)
}

/// The key of a shard of another member.
fn other_key(member: u8, shard: u16) -> SecretKey {
    key(100 + 10 * member + shard as u8)
}

/// A chain with this member and so many others.
fn genesis(has_registrar: bool, others: u8) -> Genesis {
    let own = (0..SHARDS).map(|shard| shard_key(0, shard).public()).collect();
    let other = |member| (0..SHARDS).map(|shard| other_key(member, shard).public()).collect();
    let lane = LaneTerms {
        epoch_heights: HEIGHTS,
        halt_heights: 3,
        case_deposit: DEPOSIT,
        lapse_penalty: 0,
        members: [own].into_iter().chain((1..=others).map(other)).collect(),
        registrars: if has_registrar { vec![key(9).public()] } else { Vec::new() },
        bls: LaneBls::None,
        accounts: Vec::new(),
        assets: vec![LaneAsset { asset: USD, least_units: 1, fee: 0, outflow: None }],
        outputs: Vec::new(),
    };
    let assets = vec![Listing::new("USD", 2, key(8).public().address())];
    let balances = [1, 2].map(|person| (key(person).public().address(), USD, 1_000_000)).to_vec();
    let charter = CharterTerms { operator: key(1).public().address(), notice_min: 3, patience: 40 };
    let mu = Fraction::power_of_two(10);
    Genesis { chain: 7, mu, assets, balances, charter, lane: Some(lane), ..Genesis::default() }
}

/// What the shell cannot do at present.
#[derive(Default)]
struct Faults {
    prepares: bool,
    starts: bool,
    removes: bool,
    posts: bool,
}

struct World {
    ledger: Ledger,
    member: LaneMember,
    faults: Faults,
    sequence: Sequence,
    /// What the member has asked for.
    effects: Vec<MemberEffect>,
    running: BTreeSet<(HomeEpoch, u16)>,
    keys: BTreeSet<HomeEpoch>,
    logs: BTreeSet<HomeEpoch>,
}

fn settings(has_registrar: bool, recovered: Height, mistake: Option<MemberMistake>) -> MemberSettings {
    let account = key(2).public().address();
    MemberSettings { index: 0, shards: SHARDS, has_registrar, account, recovered, mistake: mistake.into() }
}

impl World {
    fn new(has_registrar: bool) -> World {
        World::among(has_registrar, 0, None)
    }

    fn among(has_registrar: bool, others: u8, mistake: Option<MemberMistake>) -> World {
        let ledger = Ledger::new(&genesis(has_registrar, others)).expect("sound");
        let (member, first) = LaneMember::new(settings(has_registrar, 0, mistake), &ledger, []);
        let mut world = World {
            ledger,
            member,
            faults: Faults::default(),
            sequence: 0,
            effects: Vec::new(),
            running: BTreeSet::new(),
            keys: BTreeSet::from([0]),
            logs: BTreeSet::from([0]),
        };
        world.perform_all(first);
        world.give(MemberInput::Certified(0));
        world
    }

    /// The process ends, and starts again with the present state, of which blocks up to a height are certified.
    fn restart(&mut self, certified: Height) {
        let settings = settings(true, self.ledger.height(), None);
        let (member, first) = LaneMember::new(settings, &self.ledger, &self.keys | &self.logs);
        self.member = member;
        self.running.clear();
        self.effects.clear();
        self.perform_all(first);
        self.give(MemberInput::Certified(certified));
    }

    fn give(&mut self, input: MemberInput) {
        let effects = self.member.step(&self.ledger, input);
        self.perform_all(effects);
    }

    fn perform_all(&mut self, effects: Vec<MemberEffect>) {
        let mut results: VecDeque<MemberInput> =
            effects.into_iter().filter_map(|effect| self.perform(effect)).collect();
        while let Some(result) = results.pop_front() {
            let effects = self.member.step(&self.ledger, result);
            results.extend(effects.into_iter().filter_map(|effect| self.perform(effect)).collect::<Vec<_>>());
        }
    }

    fn perform(&mut self, effect: MemberEffect) -> Option<MemberInput> {
        self.effects.push(effect.clone());
        match effect {
            MemberEffect::Prepare { home, .. } => {
                self.keys.extend(Some(home).filter(|_| !self.faults.prepares));
                self.logs.extend(Some(home).filter(|_| !self.faults.prepares));
                Some(MemberInput::Prepared(home, !self.faults.prepares))
            }
            MemberEffect::Start { home, shard, .. } if self.faults.starts => {
                Some(MemberInput::Started(home, shard, ShardStart::Failed))
            }
            MemberEffect::Start { home, shard, .. } => {
                self.running.insert((home, shard));
                Some(MemberInput::Started(home, shard, ShardStart::Runs(BTreeSet::new())))
            }
            MemberEffect::Stop(home, shard) => {
                self.running.remove(&(home, shard));
                None
            }
            MemberEffect::Remove(home) => {
                if !self.faults.removes {
                    self.keys.remove(&home);
                }
                Some(MemberInput::Removed(home, !self.faults.removes))
            }
            MemberEffect::Work(work) => {
                let keys: Vec<SecretKey> = (0..SHARDS).map(|shard| shard_key(work.epoch(), shard)).collect();
                let posts = self.keys.contains(&work.epoch()).then(|| work.perform(&keys, Some(&key(9))));
                Some(MemberInput::Worked(work, posts))
            }
            MemberEffect::Forget(home) => {
                self.logs.remove(&home);
                Some(MemberInput::Forgotten(home, true))
            }
            MemberEffect::Post(post) => Some(MemberInput::Posted(post.key, !self.faults.posts)),
            MemberEffect::Tell(..) | MemberEffect::StopListening(_) | MemberEffect::Keep(..) => None,
        }
    }

    fn sign(&mut self, operation: Operation) -> Transaction {
        self.sequence += 1;
        let account = key(1).public().address();
        let body = Body { chain: 7, account, sequence: self.sequence, until: 50_000, operation };
        body.sign(&self.ledger.network(), &key(1))
    }

    /// A block with these operations is applied, and its facts wait for their certificate.
    fn apply(&mut self, operations: Vec<Operation>) {
        let native = operations.into_iter().map(|operation| self.sign(operation)).collect();
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let block = Superblock { height, parent, time_ms: height, sub_blocks, ..Superblock::default() };
        let applied = self.ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
        assert!(applied.outcomes.iter().all(|outcome| outcome.refusal().is_none()), "{:?}", applied.outcomes);
        self.give(MemberInput::Applied(LaneBlock::of(&block, &applied)));
    }

    fn certify(&mut self) {
        self.give(MemberInput::Certified(self.ledger.height()));
    }

    /// Certified blocks without anything.
    fn pass(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.apply(Vec::new());
            self.certify();
        }
    }

    fn epoch(&self) -> HomeEpoch {
        self.ledger.lane().expect("there is one").bridge().clock().epoch()
    }

    /// Withdraws into the lane and contests the output.
    fn contest(&mut self) -> OutputId {
        let (id, home) = self.withdraw();
        self.contest_output(id, home);
        id
    }

    fn withdraw(&mut self) -> (OutputId, HomeEpoch) {
        let (owner, home) = (key(1), self.epoch());
        self.apply(vec![Operation::Withdraw { to: owner.public(), asset: USD, amount: 100 }]);
        let network = self.ledger.lane().expect("there is one").network();
        (OutputId::of_deposit(&network, home, &owner.public().address(), self.sequence), home)
    }

    fn contest_output(&mut self, id: OutputId, home: HomeEpoch) {
        let owner = key(1);
        let network = self.ledger.lane().expect("there is one").network();
        let output = SpentOutput { id, asset: USD, amount: 100 };
        let contested = ContestedOutput { output, home, owner: owner.public() };
        let exit = PaymentBody::new(contested.exit(network));
        let signature = owner.sign(&owner_message(&network, home, &exit.digest));
        let resolve = BridgeOperation::Resolve {
            bid: DEPOSIT,
            outputs: vec![ContestClaim { contested, signature, proof: OutputProof::Ledger }],
        };
        self.apply(vec![Operation::Lane(resolve.encode().into())]);
        self.certify();
    }

    /// The effects since the last call.
    fn taken(&mut self) -> Vec<MemberEffect> {
        std::mem::take(&mut self.effects)
    }

    /// The shards that were told something that `is_it`, since the last call.
    fn told(&mut self, is_it: impl Fn(&LaneInput<'static>) -> bool) -> Vec<(HomeEpoch, u16)> {
        let told = |effect| match effect {
            MemberEffect::Tell(home, shard, fact) if is_it(&fact) => Some((home, shard)),
            _ => None,
        };
        self.taken().into_iter().filter_map(told).collect()
    }

    /// What was posted since the last call.
    fn posted(&mut self) -> Vec<(BridgeKey, Height)> {
        let posted = |effect| match effect {
            MemberEffect::Post(post) => Some((post.key, post.until)),
            _ => None,
        };
        self.taken().into_iter().filter_map(posted).collect()
    }
}

/// An answer that nobody verifies.
fn answer() -> LaneAnswer {
    LaneAnswer { validator: 0, size: 1, index: 0, position: 0, signature: Signature([0; 64]), path: Vec::new() }
}

fn vote(world: &World, case: OutputId) -> LaneEffect {
    let resolver = world.ledger.lane().expect("there is one").bridge().resolver();
    let contested = resolver.cases().find(|(of, _)| of.output.id == case).map(|(of, _)| *of).expect("it is open");
    let payment = contested.exit(world.ledger.lane().expect("there is one").network()).encode();
    LaneEffect::Vote { case, payment, signature: None, answer: answer() }
}

#[test]
fn shards_are_told_nothing_before_its_block_is_certified() {
    let mut world = World::new(false);
    world.taken();
    world.apply(vec![Operation::Withdraw { to: key(1).public(), asset: USD, amount: 100 }]);
    (0..HEIGHTS).for_each(|_| world.apply(Vec::new()));
    assert_eq!(world.epoch(), 1);
    assert!(world.taken().is_empty() && world.running.iter().all(|(home, _)| *home == 0));
    world.give(MemberInput::Certified(1));
    assert_eq!(world.told(|fact| matches!(fact, LaneInput::Backed(..))), [(0, 0), (0, 1)]);
    world.certify();
    assert_eq!(world.told(|fact| matches!(fact, LaneInput::Epoch(1))), [(0, 0), (0, 1)]);
    assert!(world.running.contains(&(1, 0)) && world.running.contains(&(1, 1)));
}

/// Blocks that are certified together: the output of the second one is told to the shards that the first one starts.
#[test]
fn blocks_wait_for_shards_that_are_being_started() {
    let mut world = World::new(false);
    while world.epoch() == 0 {
        world.apply(Vec::new());
    }
    world.apply(vec![Operation::Withdraw { to: key(1).public(), asset: USD, amount: 100 }]);
    world.taken();
    world.certify();
    assert_eq!(world.told(|fact| matches!(fact, LaneInput::Backed(..))), [(1, 0), (1, 1)]);
}

#[test]
fn a_post_is_made_again_when_its_transaction_has_ended_and_not_before() {
    let mut world = World::new(false);
    let case = world.contest();
    let vote = vote(&world, case);
    world.taken();
    world.give(MemberInput::Reported(0, 0, vote.clone()));
    let key = BridgeKey::Vote(case, 0);
    let until = world.ledger.height() + POST_BLOCKS;
    assert_eq!(world.posted(), [(key, until)]);
    world.give(MemberInput::Reported(0, 0, vote));
    world.pass(POST_BLOCKS - 1);
    assert_eq!(world.posted(), [], "the first one may still be in a block");
    world.pass(1);
    assert_eq!(world.posted(), [(key, until + POST_BLOCKS)]);
}

#[test]
fn a_post_that_a_full_pool_refuses_is_made_again_with_the_next_block() {
    let mut world = World::new(false);
    let case = world.contest();
    let vote = vote(&world, case);
    world.faults.posts = true;
    world.taken();
    world.give(MemberInput::Reported(0, 0, vote));
    assert_eq!(world.posted().len(), 1);
    world.pass(1);
    assert_eq!(world.posted().len(), 1);
    world.faults.posts = false;
    world.pass(1);
    assert_eq!(world.posted().len(), 1);
    world.pass(3);
    assert_eq!(world.posted(), []);
}

#[test]
fn preparations_that_fail_are_tried_again_with_each_block() {
    let mut world = World::new(true);
    assert_eq!(world.posted().iter().map(|(key, _)| *key).collect::<Vec<_>>(), [BridgeKey::Registration(1, 0)]);
    let register = |world: &World| {
        let keys: Vec<SecretKey> = (0..SHARDS).map(|shard| shard_key(world.epoch() + 1, shard)).collect();
        let network = world.ledger.lane().expect("there is one").network();
        let (registration, proofs) =
            payments::LaneRegistration::make_with_bls(&network, world.epoch() + 1, 0, &keys, &[], &key(9));
        Operation::Lane(BridgeOperation::Register { registration, proofs }.encode().into())
    };
    let registers = register(&world);
    world.apply(vec![registers]);
    world.faults.prepares = true;
    while world.epoch() == 0 {
        world.apply(Vec::new());
    }
    world.certify();
    world.taken();
    world.pass(2);
    let tries = world.taken();
    let is_try = |effect: &&MemberEffect| matches!(effect, MemberEffect::Prepare { home: 2, makes_keys: true });
    assert_eq!(tries.iter().filter(is_try).count(), 2);
    assert!(!tries.iter().any(|effect| matches!(effect, MemberEffect::Work(_))), "there are no keys to register");
    world.faults.prepares = false;
    world.pass(1);
    assert_eq!(world.posted().iter().map(|(key, _)| *key).collect::<Vec<_>>(), [BridgeKey::Registration(2, 0)]);
}

#[test]
fn a_shard_that_cannot_start_is_tried_again_after_growing_delays() {
    let mut world = World::new(false);
    world.faults.starts = true;
    while world.epoch() == 0 {
        world.apply(Vec::new());
    }
    world.certify();
    let mut tries = BTreeMap::new();
    for block in 0..8 {
        let begun = |effect: &&MemberEffect| matches!(effect, MemberEffect::Start { home: 1, shard: 0, .. });
        tries.insert(block, world.taken().iter().filter(begun).count());
        world.pass(1);
    }
    let at: Vec<u64> = tries.iter().filter(|(_, count)| **count > 0).map(|(block, _)| *block).collect();
    assert_eq!((at, world.member.late()), (vec![0, 1, 3, 7], 4), "homes 1 and 2 have two shards each");
}

/// The keys of a home are removed when its committee signs nothing more, and again if that fails.
#[test]
fn a_home_that_is_over_is_removed_and_again_if_that_fails() {
    let mut world = World::new(false);
    world.faults.removes = true;
    while world.epoch() < 2 {
        world.pass(1);
    }
    world.pass(HEIGHTS - 1);
    assert!(world.keys.contains(&0) && world.running.contains(&(0, 0)), "it signs exits");
    world.taken();
    world.pass(1);
    let removes = |effects: Vec<MemberEffect>| {
        effects.into_iter().filter(|effect| matches!(effect, MemberEffect::Remove(0))).count()
    };
    assert_eq!((world.epoch(), world.running.contains(&(0, 0)), world.keys.contains(&0)), (3, false, true));
    assert_eq!(removes(world.taken()), 1);
    world.pass(1);
    assert_eq!(removes(world.taken()), 1);
    world.faults.removes = false;
    world.pass(2);
    assert_eq!((removes(world.taken()), world.keys.contains(&0)), (1, false));
}

/// The logs of a home stay for at least eight epochs after its keys, also over a restart, and are removed once.
#[test]
fn logs_outlast_their_keys_by_eight_epochs() {
    let mut world = World::new(false);
    let mut forgotten: BTreeMap<HomeEpoch, HomeEpoch> = BTreeMap::new();
    while world.epoch() < LOG_EPOCHS + 3 {
        world.pass(1);
        if world.epoch() == 5 && world.ledger.height().is_multiple_of(HEIGHTS) {
            let height = world.ledger.height();
            world.restart(height);
        }
        let now = world.epoch();
        for effect in world.taken() {
            if let MemberEffect::Forget(home) = effect {
                assert_eq!(forgotten.insert(home, now), None, "once");
                assert!(!world.keys.contains(&home) && !world.logs.contains(&home));
            }
        }
    }
    let expected = [(0, LOG_EPOCHS + 1), (1, LOG_EPOCHS + 2)];
    assert_eq!(forgotten.into_iter().take(2).collect::<Vec<_>>(), expected);
}

/// A restart begins with the recovered state: nothing is told before it is certified, and then open cases are.
#[test]
fn a_restart_waits_for_the_certificate_of_its_state_and_tells_open_cases() {
    let mut world = World::new(false);
    let case = world.contest();
    world.apply(vec![Operation::Withdraw { to: key(1).public(), asset: USD, amount: 5 }]);
    world.restart(world.ledger.height() - 1);
    assert!(world.running.is_empty(), "the last block has no certificate");
    world.certify();
    let is_it = move |fact: &LaneInput<'static>| matches!(fact, LaneInput::CaseOpened(of) if of.output.id == case);
    assert_eq!(world.told(is_it), [(0, 0), (0, 1)]);
    assert_eq!(world.running.len(), 2);
}

/// A restart after a height at which an epoch has begun makes no log for it: without one a shard signs nothing.
#[test]
fn a_log_of_an_epoch_that_has_begun_is_never_made() {
    let mut world = World::new(false);
    while world.epoch() == 0 {
        world.pass(1);
    }
    world.restart(world.ledger.height());
    let prepared: Vec<HomeEpoch> = world
        .taken()
        .into_iter()
        .filter_map(|effect| match effect {
            MemberEffect::Prepare { home, .. } => Some(home),
            _ => None,
        })
        .collect();
    assert_eq!(prepared, [2]);
}

/// Blocks may pass between the start of a node and that of its lane: the log of the first epoch is made all the same.
#[test]
fn a_new_node_makes_the_log_of_its_first_epoch_after_blocks_have_passed() {
    let mut world = World::new(false);
    world.pass(1);
    let (_, first) = LaneMember::new(settings(true, 0, None), &world.ledger, []);
    let prepared = |effect: &MemberEffect| match effect {
        MemberEffect::Prepare { home, .. } => Some(*home),
        _ => None,
    };
    assert_eq!(first.iter().filter_map(prepared).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn what_a_block_says_is_taken_from_its_posts_that_took_effect() {
    let mut world = World::new(false);
    let case = world.contest();
    let vote = vote(&world, case);
    let LaneEffect::Vote { case, payment, signature, answer } = vote else { unreachable!("it is a vote") };
    let forged = BridgeOperation::Vote { case, payment, signature, answer };
    let native = vec![world.sign(Operation::Lane(forged.encode().into()))];
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    let (height, parent) = (world.ledger.height() + 1, world.ledger.last_block());
    let block = Superblock { height, parent, time_ms: height, sub_blocks, ..Superblock::default() };
    let applied = world.ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    let expected = LaneBlock { height, events: applied.lane.clone(), posts: Vec::new() };
    assert_eq!(LaneBlock::of(&block, &applied), expected, "its signature is forged");
    assert_ne!(applied.block, Digest::default());
}
