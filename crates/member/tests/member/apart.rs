//! Shards that run apart: what a member tells them, and what they do whatever their node says.

use member::apart::{
    NodeEnd, NodeEndEffect, ShardAnswer, ShardEnd, ShardEndEffect, ShardLineEffect, ShardLineEnd, ShardOrder,
    ShardPins, ShardTask,
};
use payments::{
    Claim, HomeTerms, LaneCommittee, LaneRefusal, LaneSettings, LaneValidator, LogOwner, MuteReason, Output, Recipient,
    ShardOffer, StatementKind, build_payment, new_log,
};

use crate::*;

/// A node and a shard with nothing but the line between them.
#[derive(Default)]
struct Pair {
    node: NodeEnd,
    shards: Vec<ShardEnd>,
    /// The shard that is connected.
    present: usize,
    sessions: u128,
    /// What each shard was told to do.
    tasks: Vec<Vec<ShardTask>>,
    /// What the node has heard.
    heard: Vec<ShardAnswer>,
    /// How often the node was told that the shard is back, and away.
    turns: (u32, u32),
}

impl Pair {
    fn new(shards: Vec<ShardEnd>) -> Pair {
        let tasks = vec![Vec::new(); shards.len()];
        Pair { shards, tasks, ..Pair::default() }
    }

    fn connect(&mut self, shard: usize) {
        self.present = shard;
        self.sessions += 1_000;
        self.node.disconnected();
        let greeted = self.shards[shard].connected();
        let hello = self.node.connected(self.sessions);
        self.at_shard(greeted);
        self.at_node(hello);
    }

    fn order(&mut self, order: &ShardOrder) {
        let effects = self.node.order(order);
        self.at_node(effects);
    }

    fn at_node(&mut self, effects: Vec<NodeEndEffect>) {
        for effect in effects {
            match effect {
                NodeEndEffect::Send(frame) => {
                    let effects = self.shards[self.present].frame(&frame);
                    self.at_shard(effects);
                }
                NodeEndEffect::Back => self.turns.0 += 1,
                NodeEndEffect::Away => self.turns.1 += 1,
                NodeEndEffect::Heard(answer) => self.heard.push(*answer),
                NodeEndEffect::Close => self.node.disconnected(),
                NodeEndEffect::Unread => panic!("a shard answers what its node does not know"),
            }
        }
    }

    fn at_shard(&mut self, effects: Vec<ShardEndEffect>) {
        for effect in effects {
            match effect {
                ShardEndEffect::Send(frame) => {
                    let effects = self.node.frame(&frame);
                    self.at_node(effects);
                }
                ShardEndEffect::Do(task) => self.work(task),
                ShardEndEffect::Close => self.shards[self.present].disconnected(),
            }
        }
    }

    /// The shell of a shard: everything goes well.
    fn work(&mut self, task: ShardTask) {
        self.tasks[self.present].push(task.clone());
        let end = &mut self.shards[self.present];
        let effects = match task {
            ShardTask::Start(home, _) => end.started(home, ShardStart::Runs(BTreeSet::new())),
            ShardTask::Refuse(home, _) => end.started(home, ShardStart::Mute),
            ShardTask::Prepare { home, network, bls, .. } => {
                let offer = ShardOffer::make(&network, (home, 0, 1), &shard_key(home, 1), bls, &key(9).public());
                end.prepared(home, Some(offer))
            }
            ShardTask::Remove(home) => {
                end.removed(home, true);
                Vec::new()
            }
            _ => Vec::new(),
        };
        self.at_shard(effects);
    }

    fn started(&self, shard: usize) -> Vec<HomeEpoch> {
        let started = |task: &ShardTask| match task {
            ShardTask::Start(home, _) => Some(*home),
            _ => None,
        };
        self.tasks[shard].iter().filter_map(started).collect()
    }

    fn pinned(&self, shard: usize) -> ShardPins {
        let pins = self.tasks[shard].iter().rev().find_map(|task| match task {
            ShardTask::Pin(pins) => Some(pins.clone()),
            _ => None,
        });
        pins.unwrap_or_default()
    }
}

fn terms(world: &World, home: HomeEpoch) -> Box<HomeTerms> {
    let lane = world.ledger.lane().expect("there is one");
    let committee = lane.committee(home).expect("it counts").clone();
    Box::new(HomeTerms { rules: lane.rules(home), committee, previous: None })
}

pub fn start(world: &World, home: HomeEpoch) -> ShardOrder {
    ShardOrder::Start { home, now: home, terms: terms(world, home) }
}

fn fresh() -> ShardEnd {
    ShardEnd::new(ShardPins::default(), [])
}

/// Its node tells another committee of a home that it knows: also after a restart the shard starts nothing.
#[test]
fn a_shard_that_is_told_another_history_of_a_home_starts_nothing() {
    let world = World::new(true);
    let mut pair = Pair::new(vec![fresh()]);
    pair.connect(0);
    pair.order(&start(&world, 0));
    assert_eq!((pair.started(0), pair.heard.len()), (vec![0], 1));
    let mut other = terms(&world, 0);
    let network = other.rules.network;
    other.committee = LaneCommittee::new(network, 0, vec![vec![shard_key(0, 0).public(), key(77).public()]]);
    let lie = ShardOrder::Start { home: 0, now: 0, terms: other };
    pair.order(&lie);
    let is_mute = |answer: &ShardAnswer| matches!(answer, ShardAnswer::Started(0, ShardStart::Mute));
    assert!(pair.started(0).len() == 1 && is_mute(&pair.heard[1]), "{:?}", pair.heard);
    let stored = ShardPins::parse(&pair.pinned(0).encode()).expect("what was stored can be read");
    let mut again = Pair::new(vec![ShardEnd::new(stored, [0])]);
    again.connect(0);
    again.order(&lie);
    assert!(again.started(0).is_empty() && is_mute(&again.heard[0]));
    again.order(&start(&world, 0));
    assert_eq!(again.started(0), [0], "what it was told first stands");
    // A node of another network is refused as well.
    let mut foreign = terms(&world, 0);
    foreign.rules.network = Digest([8; 32]);
    foreign.committee = LaneCommittee::new(Digest([8; 32]), 5, vec![vec![key(77).public()]]);
    again.order(&ShardOrder::Start { home: 5, now: 5, terms: foreign });
    assert_eq!(again.started(0), [0]);
}

#[test]
fn a_log_of_an_epoch_that_was_told_is_never_made_again() {
    let world = World::new(true);
    let mut pair = Pair::new(vec![fresh()]);
    pair.connect(0);
    let prepare = |home| ShardOrder::Prepare { home, network: Digest([4; 32]), bls: LaneBls::None };
    pair.order(&prepare(0));
    pair.order(&start(&world, 0));
    pair.order(&ShardOrder::Tell(0, LaneInput::Epoch(2)));
    (0..=3).for_each(|home| pair.order(&prepare(home)));
    let makes: Vec<(HomeEpoch, bool)> = pair.tasks[0]
        .iter()
        .filter_map(|task| match task {
            ShardTask::Prepare { home, makes_log, .. } => Some((*home, *makes_log)),
            _ => None,
        })
        .collect();
    assert_eq!(makes, [(0, true), (0, false), (1, false), (2, false), (3, true)]);
    let offers = pair.heard.iter().filter(|answer| matches!(answer, ShardAnswer::Prepared(_, Some(_)))).count();
    assert_eq!(offers, 5, "a key may be offered: without its log the shard signs nothing with it");
}

/// Two processes have one shard's keys. The node speaks with one of them: the other one begins nothing, and stops when
/// the node speaks with it again.
#[test]
fn a_second_process_begins_nothing() {
    let world = World::new(true);
    let mut pair = Pair::new(vec![fresh(), fresh()]);
    pair.connect(0);
    pair.order(&start(&world, 0));
    pair.connect(1);
    assert_eq!(pair.turns, (2, 1), "for the node it has forgotten everything");
    let starts_nothing = |task: &ShardTask| matches!(task, ShardTask::StopAll);
    assert!(pair.tasks[1].iter().all(starts_nothing), "{:?}", pair.tasks[1]);
    pair.order(&start(&world, 0));
    assert_eq!((pair.started(0), pair.started(1)), (vec![0], vec![0]));
    pair.connect(0);
    assert!(matches!(pair.tasks[0].last(), Some(ShardTask::StopAll)), "{:?}", pair.tasks[0]);
    assert_eq!(pair.turns, (3, 2));
}

/// What ended while nobody told the shard is wiped when it is back.
#[test]
fn keys_that_no_home_needs_are_wiped_when_the_shard_is_back() {
    let mut pair = Pair::new(vec![ShardEnd::new(ShardPins::default(), [0, 1, 5, 6])]);
    pair.connect(0);
    pair.order(&ShardOrder::Keep(5, BTreeSet::from([4, 5])));
    let removed = |task: &ShardTask| match task {
        ShardTask::Remove(home) => Some(*home),
        _ => None,
    };
    let removed: Vec<HomeEpoch> = pair.tasks[0].iter().filter_map(removed).collect();
    assert_eq!(removed, [0, 1], "the next epoch's keys stay");
}

#[test]
fn what_is_no_frame_ends_the_connection() {
    let met = || {
        let (mut node, mut shard) = (ShardLineEnd::new(true), ShardLineEnd::new(false));
        drop(shard.connected(0));
        let sent =
            |effects: Vec<ShardLineEffect>| match effects.into_iter().find(|of| matches!(of, ShardLineEffect::Send(_)))
            {
                Some(ShardLineEffect::Send(frame)) => frame,
                _ => panic!("it says nothing"),
            };
        let answer = sent(shard.frame(&sent(node.connected(7))));
        drop(node.frame(&answer));
        assert!(node.is_met() && shard.is_met());
        (node, shard)
    };
    let claims_too_much = [&[3][..], &9_u64.to_le_bytes()].concat();
    for frame in [&[][..], &[0], &[1, 2], &[2, 0], &[3], &[9; 40], &claims_too_much] {
        let (mut node, mut shard) = met();
        for end in [&mut node, &mut shard] {
            assert_eq!(end.frame(frame), [ShardLineEffect::Close], "{frame:?}");
            assert!(!end.is_met());
        }
    }
    // An order that is none ends the session: nothing is left out of one.
    let mut pair = Pair::new(vec![fresh()]);
    pair.connect(0);
    pair.order(&ShardOrder::Tell(0, LaneInput::Epoch(1)));
    let (mut link, told) = (ShardLineEnd::new(true), pair.tasks[0].len());
    let mut shard = fresh();
    drop(shard.connected());
    let mut frames = link.connected(3);
    while let Some(ShardLineEffect::Send(frame)) = frames.pop() {
        for effect in shard.frame(&frame) {
            if let ShardEndEffect::Send(answer) = effect {
                drop(link.frame(&answer));
            }
        }
    }
    let effects = link.push(vec![99, 1]);
    let Some(ShardLineEffect::Send(frame)) = effects.first() else { panic!("{effects:?}") };
    let done = shard.frame(frame);
    assert!(done.iter().any(|of| matches!(of, ShardEndEffect::Do(ShardTask::StopAll))), "{done:?}");
    assert!(done.iter().any(|of| matches!(of, ShardEndEffect::Close)) && told == 1);
}

#[test]
fn a_queue_that_overflows_begins_a_new_session() {
    let mut node = ShardLineEnd::new(true).planted(3, Default::default());
    let mut shard = ShardLineEnd::new(false);
    drop(shard.connected(0));
    let Some(ShardLineEffect::Send(hello)) = node.connected(7).pop() else { panic!("it greets") };
    for effect in shard.frame(&hello) {
        if let ShardLineEffect::Send(frame) = effect {
            drop(node.frame(&frame));
        }
    }
    // The shard is silent: nothing is acknowledged.
    (0..3).for_each(|item| assert!(!node.push(vec![item]).contains(&ShardLineEffect::End)));
    assert_eq!(node.push(vec![3]), [ShardLineEffect::End, ShardLineEffect::Close]);
    assert!(!node.has_begun() && node.push(vec![4]).is_empty(), "nothing is kept between sessions");
    let Some(ShardLineEffect::Send(hello)) = node.connected(8).pop() else { panic!("it greets") };
    drop(shard.connected(0));
    let begun = shard.frame(&hello);
    assert!(begun.starts_with(&[ShardLineEffect::End, ShardLineEffect::Begin]), "{begun:?}");
}

/// A shard that runs apart is told in order what one in the node is told; while it is away no block waits for it.
#[test]
fn no_block_waits_for_a_shard_that_is_away() {
    let mut world = World::new(false);
    world.give(MemberInput::Away(1));
    world.taken();
    let (first, _) = world.withdraw();
    world.certify();
    assert_eq!(world.told(|fact| matches!(fact, LaneInput::Backed(..))), [(0, 0)]);
    let case = world.contest();
    world.taken();
    world.give(MemberInput::Back(1));
    let effects = world.taken();
    let start = effects.iter().find_map(|effect| match effect {
        MemberEffect::Start { home: 0, shard: 1, term } => Some(term),
        _ => None,
    });
    let backed: Vec<OutputId> = start.expect("it starts").backed.iter().map(|(id, _)| *id).collect();
    assert!(backed.contains(&first) && backed.contains(&case), "what certified blocks have said by now");
    let is_case =
        |of: &MemberEffect| matches!(of, MemberEffect::Tell(0, 1, LaneInput::CaseOpened(of)) if of.output.id == case);
    assert!(effects.iter().any(is_case), "{effects:?}");
    assert!(effects.iter().any(|of| matches!(of, MemberEffect::Keep(1, 0, homes) if homes.contains(&0))));
}

/// A member's view waits until the shard that was away bars the candidates, too.
#[test]
fn a_view_waits_for_a_shard_that_is_away() {
    let mut world = World::new(false);
    let case = world.contest();
    world.give(MemberInput::Away(1));
    world.taken();
    let barred = || LaneEffect::Barred { case, paid: None };
    world.give(MemberInput::Reported(0, 0, barred()));
    let is_it = move |fact: &LaneInput<'static>| matches!(fact, LaneInput::AllBarred(of, None) if *of == case);
    assert_eq!(world.told(is_it), []);
    world.give(MemberInput::Back(1));
    world.taken();
    world.give(MemberInput::Reported(0, 1, barred()));
    let told = world.told(is_it);
    assert_eq!(told.len(), 1, "the shard that signs for the owner posts the view");
}

/// The vote of a shard that runs apart is its own, or it is not posted.
#[test]
fn a_report_that_is_not_the_shards_own_is_not_posted() {
    let mut world = World::new(false);
    (0..SHARDS).for_each(|shard| {
        world.give(MemberInput::Away(shard));
        world.give(MemberInput::Back(shard));
    });
    let case = world.contest();
    let LaneEffect::Vote { payment, .. } = vote(&world, case) else { unreachable!("it is a vote") };
    let committee = world.ledger.lane().expect("there is one").committee(0).expect("it counts").clone();
    let owning = committee.shard_of(0, &key(1).public()).expect("a member");
    let signed = |by: &SecretKey, payment: &[u8]| {
        let digest = PaymentBody::parse(payment).expect("a payment").digest;
        let claim = Claim { kind: StatementKind::Confirmation, owner: &key(1).public(), digest: &digest };
        let header = answer().header(&committee, &claim).expect("a tree of one leaf");
        let signature = by.sign(&header.bytes());
        LaneEffect::Vote {
            case,
            payment: payment.to_vec(),
            signature: None,
            answer: LaneAnswer { signature, ..answer() },
        }
    };
    world.taken();
    let network = world.ledger.lane().expect("there is one").network();
    let stranger = ContestedOutput {
        output: SpentOutput { id: OutputId([3; 32]), asset: USD, amount: 100 },
        home: 0,
        owner: key(1).public(),
    };
    let own = shard_key(0, owning);
    let of_another = stranger.exit(network).encode();
    let other_shard = 1 - owning;
    let lies = [
        (owning, vote(&world, case)),
        (owning, signed(&shard_key(0, other_shard), &payment)),
        (owning, signed(&own, &of_another)),
        (other_shard, signed(&own, &payment)),
        (owning, LaneEffect::View { case, paid: None, answer: answer() }),
    ];
    for (shard, lie) in lies {
        world.give(MemberInput::Reported(0, shard, lie.clone()));
        assert_eq!(world.posted(), [], "{lie:?}");
    }
    world.give(MemberInput::Reported(0, owning, signed(&own, &payment)));
    assert_eq!(world.posted().len(), 1);
}

/// The key that nobody has takes the place of one that was not offered.
#[test]
fn a_shard_that_offers_no_key_costs_its_range_and_nothing_else() {
    let mut world = World::new(true);
    world.faults.posts = true;
    while world.epoch() == 0 {
        let network = world.ledger.lane().expect("there is one").network();
        let offer = |shard, key: &SecretKey| {
            ShardOffer::make(&network, (1, 0, shard), key, LaneBls::None, &self::key(9).public())
        };
        let offers = [offer(0, &shard_key(1, 0)), offer(1, &key(99))];
        let (registration, proofs) = payments::LaneRegistration::of_offers(&network, 1, 0, &offers, &key(9));
        let is_new = world.ledger.lane().is_some_and(|lane| lane.bridge().registrations(1).count() == 0);
        let register = BridgeOperation::Register { registration, proofs };
        world.apply(is_new.then(|| Operation::Lane(register.encode().into())).into_iter().collect());
    }
    let lane = world.ledger.lane().expect("there is one");
    let keys = lane.committee(1).expect("it has begun").keys_of(0).to_vec();
    assert_eq!(keys, [shard_key(1, 0).public(), key(99).public()], "each shard has its range");
}

/// A member registers fewer keys for the next epoch: the home before keeps its shards until it ends.
#[test]
fn homes_with_other_numbers_of_shards_live_side_by_side() {
    let mut world = World::new(true);
    world.faults.posts = true;
    while world.epoch() == 0 {
        let network = world.ledger.lane().expect("there is one").network();
        let (registration, proofs) = payments::LaneRegistration::make(&network, 1, 0, &[shard_key(1, 0)], &key(9));
        let is_new = world.ledger.lane().is_some_and(|lane| lane.bridge().registrations(1).count() == 0);
        let register = BridgeOperation::Register { registration, proofs };
        world.apply(is_new.then(|| Operation::Lane(register.encode().into())).into_iter().collect());
        world.certify();
    }
    assert_eq!(world.running, BTreeSet::from([(0, 0), (0, 1), (1, 0)]));
    world.taken();
    let (_, home) = world.withdraw();
    world.certify();
    assert_eq!((home, world.told(|fact| matches!(fact, LaneInput::Backed(..)))), (1, vec![(1, 0)]));
}

/// A shard that is told nothing refuses what it does not know, and signs what it knows: never twice.
#[test]
fn a_shard_that_is_told_nothing_signs_only_what_it_knows() {
    let mut world = World::new(false);
    let (id, home) = world.withdraw();
    let lane = world.ledger.lane().expect("there is one");
    let committee = lane.committee(0).expect("it counts").clone();
    let shard = committee.shard_of(0, &key(1).public()).expect("a member");
    let settings = LaneSettings {
        rules: lane.rules(home),
        committee,
        previous: None,
        validator: 0,
        shard,
        now: 0,
        leaves: 1,
        entries_max: 100,
        trees_waiting_max: 4,
        checks_per_peer: 1_000,
        checks_per_tick: 1_000,
        roots_per_validator: 4,
    };
    let owner = LogOwner { network: lane.network(), home: 0, validator: 0, shard };
    let mut log = new_log(&owner, [3; 32]);
    let (mut validator, _) = LaneValidator::open(settings.clone(), shard_key(0, shard), [4; 32], Some(&log));
    let output = Output { to: Recipient::Key(key(1).public()), asset: USD, amount: 100 };
    let coin = payments::Holding { id, output, proof: OutputProof::Ledger };
    let pay = |to: u8| {
        let outputs = vec![Output { to: Recipient::Key(key(to).public()), ..output }];
        build_payment(&lane.rules(home), &key(1), home, home, vec![coin.clone()], outputs).expect("correct").request
    };
    let refusal = |effects: &[LaneEffect]| match effects.last() {
        Some(LaneEffect::Refuse { refusal, .. }) => Some(refusal.clone()),
        _ => None,
    };
    let request = |validator: &mut LaneValidator, log: &Vec<u8>, bytes: &[u8]| {
        validator.step(log, LaneInput::Request { peer: 1, bytes })
    };
    let unknown = request(&mut validator, &log, &pay(5));
    assert_eq!(refusal(&unknown), Some(LaneRefusal::UnknownOutput(id)), "its node withholds the block");
    drop(validator.step(&log, LaneInput::Backed(id, output)));
    // What an output is said to be first stands.
    drop(validator.step(&log, LaneInput::Backed(id, Output { amount: 1_000, ..output })));
    let signed = request(&mut validator, &log, &pay(5));
    let Some(LaneEffect::Append(bytes)) = signed.first() else { panic!("{signed:?}") };
    log.extend(bytes);
    // The process ends between reservation and answer: the next one is bound by the log.
    let (mut again, _) = LaneValidator::open(settings.clone(), shard_key(0, shard), [5; 32], Some(&log));
    drop(again.step(&log, LaneInput::Backed(id, output)));
    let other = request(&mut again, &log, &pay(6));
    assert!(matches!(refusal(&other), Some(LaneRefusal::Conflict { .. })), "{other:?}");
    let same = request(&mut again, &log, &pay(5));
    assert!(same.iter().any(|effect| matches!(effect, LaneEffect::Answer { .. })), "{same:?}");
    // Without its log it is mute.
    let (mute, _) = LaneValidator::open(settings, shard_key(0, shard), [6; 32], None::<&Vec<u8>>);
    assert_eq!(mute.muted(), Some(MuteReason::MissingLog));
}
