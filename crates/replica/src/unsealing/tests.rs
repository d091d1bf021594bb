//! Walks through random and through all short orders, with symbols in place of points; and one committee of points.

use std::collections::BTreeMap;

use kernel::Dice;
use primitives::Digest;
use sealing::{OpeningKey, SealingKey};

use super::*;

mod points;

const SEATS: Index = 4;
const THRESHOLD: usize = 2;
const HEIGHTS: Height = 5;
/// The seat that does what it likes.
const BYZANTINE: Index = 3;

fn label(height: Height, at: u8) -> Label {
    Label(Digest([height as u8, at].repeat(16).try_into().expect("32 bytes")))
}

/// What opens at a height: at the third nothing, at the fourth under two keys.
fn openings(height: Height) -> Openings {
    match height {
        3 => [].into(),
        4 => [(1, label(4, 0)), (2, label(4, 1)), (1, label(4, 2))].into(),
        _ => (0..1 + height % 2).map(|at| (1, label(height, at as u8))).collect(),
    }
}

/// The symbol of a share, or with place 255 of a key.
fn symbol(place: u8, label: &Label) -> OpeningKey {
    OpeningKey(std::array::from_fn(|at| if at < 32 { label.0.0[at] } else { place }))
}

/// The shares of a seat in a lot.
fn shares_in(seat: Index, height: Height, key: u64) -> Points {
    openings(height).iter().filter(|(of, _)| *of == key).map(|(_, label)| symbol(seat, label)).collect()
}

fn shares(seat: Index, height: Height) -> Points {
    shares_in(seat, height, 1)
}

fn keys(height: Height) -> Points {
    openings(height).iter().map(|(_, label)| symbol(255, label)).collect()
}

/// Keys whose points nothing looks at.
fn committees(own: Index) -> Vec<Arc<SealCommittee>> {
    let key = blst_key(1);
    let holders = || (0..SEATS).map(|seat| (seat, (seat, key))).collect();
    [1, 2].map(|number| Arc::new(SealCommittee::new((number, key, THRESHOLD), holders(), Some(own)))).to_vec()
}

fn output(own: Index, height: Height) -> UnsealInput {
    UnsealInput::Output { height, committees: committees(own), openings: openings(height) }
}

fn shares_frame(from: Index, height: Height, points: Points) -> UnsealInput {
    UnsealInput::Frame { from, frame: UnsealFrame::Shares { height, key: 1, points } }
}

fn secret(seed: u8) -> blst::min_sig::SecretKey {
    blst::min_sig::SecretKey::key_gen(&[seed; 32], &[]).expect("32 bytes are enough")
}

fn blst_key(seed: u8) -> SealingKey {
    SealingKey::parse(&secret(seed).sk_to_pk().compress()).expect("a public key is a point")
}

/// What a job gives where points are symbols.
fn performed(seat: Index, work: UnsealWork) -> UnsealResult {
    match work {
        UnsealWork::Make { height, key, labels } => {
            let of_lot: Vec<Label> =
                openings(height).iter().filter(|(of, _)| *of == key).map(|(_, label)| *label).collect();
            assert_eq!(labels[..], of_lot[..], "only what opens is signed");
            UnsealResult::Made { height, key, shares: Some(shares_in(seat, height, key)) }
        }
        UnsealWork::Combine { height, committee, parts, labels } => {
            let key = committee.number();
            let places: BTreeSet<Index> = parts.iter().map(|(from, _)| *from).collect();
            assert_eq!(places.len(), THRESHOLD, "of t holders");
            let is_false = |(from, points): &&(Index, Points)| *points != shares_in(*from, height, key);
            let senders: BTreeSet<Index> = parts.iter().filter(is_false).map(|(from, _)| *from).collect();
            match senders.is_empty() {
                true => {
                    UnsealResult::LotOpen { height, key, keys: labels.iter().map(|label| symbol(255, label)).collect() }
                }
                false => UnsealResult::FalseShares { height, key, senders },
            }
        }
        UnsealWork::Check { height, from, keys: sent, lots } => {
            let whole = lots.iter().map(|(_, labels, of)| (labels.len(), of.len()));
            whole.for_each(|(labels, of)| assert_eq!(labels, of, "each lot has its own"));
            match sent == keys(height) {
                true => UnsealResult::Open { height, keys: sent },
                false => UnsealResult::FalseKeys { height, sender: from },
            }
        }
    }
}

struct Seat {
    machine: Unsealer,
    output: Height,
    applied: Height,
    open: BTreeMap<Height, Points>,
    work: Option<UnsealWork>,
    falses: usize,
}

struct World {
    dice: Dice,
    seats: Vec<Seat>,
    /// Frames on their way: from, to.
    frames: Vec<(Index, Index, UnsealFrame)>,
    mistake: Planted<UnsealMistake>,
    fault: Option<String>,
}

impl World {
    fn new(seed: u64, mistake: Planted<UnsealMistake>) -> World {
        let seat = |_| Seat {
            machine: Unsealer::new(0, mistake),
            output: 0,
            applied: 0,
            open: BTreeMap::new(),
            work: None,
            falses: 0,
        };
        let seats = (0..SEATS).map(seat).collect();
        World { dice: Dice::new(seed), seats, frames: Vec::new(), mistake, fault: None }
    }

    fn correct(&mut self) -> Index {
        self.dice.below(u64::from(BYZANTINE)) as Index
    }

    fn fail(&mut self, what: impl Into<String>) {
        self.fault.get_or_insert(what.into());
    }

    fn step(&mut self, at: Index, input: UnsealInput) {
        let effects = self.seats[usize::from(at)].machine.step(input);
        for effect in effects {
            match effect {
                UnsealEffect::Work(work) => {
                    assert!(self.seats[usize::from(at)].work.replace(work).is_none(), "one job at a time");
                }
                UnsealEffect::Send { to, frame } => self.send(at, to, frame),
                UnsealEffect::SendAll(frame) => {
                    (0..SEATS).filter(|to| *to != at).for_each(|to| self.send(at, to, frame.clone()));
                }
                UnsealEffect::Recall { to, height } => {
                    assert!(height <= self.seats[usize::from(at)].applied, "only what is applied has a record");
                    let frame = UnsealFrame::Keys { height, points: keys(height) };
                    if !openings(height).is_empty() {
                        self.send(at, to, frame);
                    }
                }
                UnsealEffect::Open { height, keys: open } => self.opened(at, height, open),
            }
        }
    }

    fn send(&mut self, from: Index, to: Index, frame: UnsealFrame) {
        let height = match &frame {
            UnsealFrame::Shares { height, .. } | UnsealFrame::Keys { height, .. } => *height,
            UnsealFrame::Ask(_) => 0,
        };
        if height > self.seats[usize::from(from)].output {
            self.fail(format!("seat {from} sends what opens height {height} before it has output it"));
        }
        let bytes = frame.to_bytes();
        self.frames.push((from, to, UnsealFrame::from_bytes(&bytes).expect("its own layout")));
    }

    fn opened(&mut self, at: Index, height: Height, open: Points) {
        if open != keys(height) {
            self.fail(format!("seat {at} takes false keys of height {height}"));
        }
        let before = self.seats[usize::from(at)].open.insert(height, open);
        if before.is_some() {
            self.fail(format!("seat {at} opens height {height} twice"));
        }
    }

    fn output(&mut self, at: Index) {
        let height = self.seats[usize::from(at)].output + 1;
        if height > HEIGHTS {
            return;
        }
        self.seats[usize::from(at)].output = height;
        self.step(at, output(at, height));
    }

    fn apply(&mut self, at: Index) {
        let seat = &self.seats[usize::from(at)];
        let height = seat.applied + 1;
        if height <= seat.output && (openings(height).is_empty() || seat.open.contains_key(&height)) {
            self.seats[usize::from(at)].applied = height;
            self.step(at, UnsealInput::Applied(height));
        }
    }

    fn work(&mut self, at: Index) {
        let Some(work) = self.seats[usize::from(at)].work.take() else { return };
        let result = performed(at, work);
        self.seats[usize::from(at)].falses +=
            usize::from(matches!(result, UnsealResult::FalseShares { .. } | UnsealResult::FalseKeys { .. }));
        self.step(at, UnsealInput::Done(result));
    }

    fn deliver(&mut self, drops: bool) {
        if self.frames.is_empty() {
            return;
        }
        let at = self.dice.below(self.frames.len() as u64) as usize;
        let (from, to, frame) = self.frames.swap_remove(at);
        if to != BYZANTINE && !(drops && self.dice.below(4) == 0) {
            self.step(to, UnsealInput::Frame { from, frame });
        }
    }

    fn restart(&mut self, at: Index) {
        let seat = &mut self.seats[usize::from(at)];
        seat.machine = Unsealer::new(seat.applied, self.mistake);
        seat.output = seat.applied;
        seat.open.retain(|height, _| *height <= seat.applied);
        seat.work = None;
    }

    /// The Byzantine seat says anything to anybody.
    fn lie(&mut self) {
        let (to, height) = (self.correct(), 1 + self.dice.below(HEIGHTS + 20));
        let count = 1 + self.dice.below(3) as u8;
        let points: Points = (0..count).map(|at| symbol(77, &label(height, at))).collect();
        let frame = match self.dice.below(4) {
            0 => UnsealFrame::Ask(height),
            1 => UnsealFrame::Keys { height, points },
            2 if height != 3 && height <= HEIGHTS => {
                UnsealFrame::Shares { height, key: 1, points: shares(BYZANTINE, height) }
            }
            _ => UnsealFrame::Shares { height, key: 1 + self.dice.below(3), points },
        };
        self.step(to, UnsealInput::Frame { from: BYZANTINE, frame });
    }

    fn act(&mut self) {
        let at = self.correct();
        match self.dice.below(12) {
            0 => self.output(at),
            1 => self.apply(at),
            2..=4 => self.work(at),
            5..=8 => self.deliver(true),
            9 => self.lie(),
            10 => self.step(at, UnsealInput::Tick),
            _ if self.dice.below(20) == 0 => self.restart(at),
            _ => {}
        }
    }

    /// From here on all links work, and the Byzantine seat is silent.
    fn heal(&mut self) {
        for _ in 0..40 {
            for at in 0..BYZANTINE {
                self.output(at);
                self.step(at, UnsealInput::Tick);
                self.work(at);
                self.apply(at);
            }
            while !self.frames.is_empty() {
                self.deliver(false);
                (0..BYZANTINE).for_each(|at| self.work(at));
            }
        }
        for at in 0..BYZANTINE {
            (0..HEIGHTS).for_each(|_| self.apply(at));
            let (applied, waits) = (self.seats[usize::from(at)].applied, self.seats[usize::from(at)].machine.waits());
            if applied < HEIGHTS {
                self.fail(format!("seat {at} stays at height {applied}, and waits for {waits:?}"));
            }
        }
    }
}

fn walk(seed: u64, mistake: Planted<UnsealMistake>) -> Option<String> {
    let mut world = World::new(seed, mistake);
    for _ in 0..300 {
        world.act();
    }
    world.heal();
    world.fault
}

#[test]
fn correct_seats_open_every_height_and_nothing_else() {
    for seed in 0..400 {
        assert_eq!(walk(seed, Planted::default()), None, "seed {seed}");
    }
}

#[test]
fn every_planted_mistake_of_a_walk_is_found() {
    for mistake in [UnsealMistake::KeysUnchecked, UnsealMistake::NeverAsks] {
        let found = (0..200).find_map(|seed| walk(seed, mistake.into()));
        assert!(found.is_some(), "{mistake:?} is not found");
    }
}

/// How many checks fail if a holder sends false shares first, at each of some heights.
fn falses(mistake: Planted<UnsealMistake>) -> usize {
    let mut machine = Unsealer::new(0, mistake);
    let mut falses = 0;
    for height in 1..=20 {
        let of = label(height, 0);
        let points = |place: u8| -> Points { [symbol(place, &of)].into() };
        let output = UnsealInput::Output { height, committees: committees(0), openings: [(1, of)].into() };
        let first = shares_frame(BYZANTINE, height, points(77));
        for input in [first, output, shares_frame(1, height, points(1))] {
            let mut inputs = vec![input];
            while let Some(input) = inputs.pop() {
                for effect in machine.step(input) {
                    let UnsealEffect::Work(work) = effect else { continue };
                    let result = match work {
                        UnsealWork::Make { .. } => UnsealResult::Made { height, key: 1, shares: Some(points(0)) },
                        UnsealWork::Combine { parts, .. } if parts.iter().any(|(from, _)| *from == BYZANTINE) => {
                            falses += 1;
                            UnsealResult::FalseShares { height, key: 1, senders: BTreeSet::from([BYZANTINE]) }
                        }
                        _ => UnsealResult::LotOpen { height, key: 1, keys: points(255) },
                    };
                    inputs.push(UnsealInput::Done(result));
                }
            }
        }
        machine.step(UnsealInput::Applied(height));
    }
    falses
}

#[test]
fn a_holder_that_sends_false_shares_costs_one_check() {
    assert_eq!(falses(Planted::default()), 1);
    assert_eq!(falses(UnsealMistake::DoubtForgotten.into()), 20, "the check of this test");
}

/// How many of 50 jobs are spent on one false frame, while no other comes.
fn wasted(mistake: Planted<UnsealMistake>) -> usize {
    let mut machine = Unsealer::new(0, mistake);
    let empty = UnsealInput::Output { height: 1, committees: Vec::new(), openings: [].into() };
    machine.step(empty);
    machine.step(shares_frame(BYZANTINE, 2, [symbol(77, &label(2, 0))].into()));
    let mut effects = machine.step(output(0, 2));
    let mut falses = 0;
    for _ in 0..50 {
        effects.extend(machine.step(UnsealInput::Tick));
        let Some(work) = effects.drain(..).find_map(|effect| match effect {
            UnsealEffect::Work(work) => Some(work),
            _ => None,
        }) else {
            continue;
        };
        falses += usize::from(matches!(work, UnsealWork::Combine { .. }));
        effects = machine.step(UnsealInput::Done(performed(0, work)));
    }
    falses
}

#[test]
fn a_false_frame_is_combined_once() {
    assert_eq!(wasted(Planted::default()), 1);
    assert!(wasted(UnsealMistake::FalseKept.into()) > 40, "the check of this test");
}

/// All orders of what one seat meets: its output, right and false frames, keys, an ask, a tick.
#[test]
fn every_order_of_a_height_opens_it_once() {
    let inputs = |at: usize| match at {
        0 => output(0, 1),
        1 => shares_frame(1, 1, shares(1, 1)),
        2 => shares_frame(2, 1, shares(3, 1)),
        3 => UnsealInput::Frame { from: 3, frame: UnsealFrame::Keys { height: 1, points: shares(3, 1) } },
        4 => UnsealInput::Frame { from: 2, frame: UnsealFrame::Ask(1) },
        5 => shares_frame(3, 1, shares(3, 1)),
        _ => UnsealInput::Tick,
    };
    let mut orders = vec![vec![]];
    for at in 0..7 {
        let with = |order: &Vec<usize>, place: usize| {
            let mut longer = order.clone();
            longer.insert(place, at);
            longer
        };
        orders = orders.iter().flat_map(|order| (0..=order.len()).map(|place| with(order, place))).collect();
    }
    assert_eq!(orders.len(), 5_040);
    for order in orders {
        let mut machine = Unsealer::new(0, Planted::default());
        let mut opened = 0;
        let mut queue: Vec<UnsealInput> = order.iter().rev().map(|at| inputs(*at)).collect();
        while let Some(input) = queue.pop() {
            for effect in machine.step(input) {
                match effect {
                    UnsealEffect::Work(work) => queue.push(UnsealInput::Done(performed(0, work))),
                    UnsealEffect::Open { keys: open, .. } => {
                        assert_eq!(open, keys(1));
                        opened += 1;
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(opened, 1, "order {order:?}");
        assert_eq!(machine.waits(), None);
    }
}

#[test]
fn frames_far_ahead_of_strangers_and_for_many_keys_are_not_kept() {
    let mut machine = Unsealer::new(0, Planted::default());
    for height in 1..=1_000 {
        for key in 1..10 {
            let points = shares(1, 1);
            let frame = UnsealFrame::Shares { height, key, points: points.clone() };
            machine.step(UnsealInput::Frame { from: 1, frame });
            machine.step(UnsealInput::Frame { from: 1, frame: UnsealFrame::Keys { height, points } });
        }
    }
    assert_eq!((machine.shares.len(), machine.keys.len()), (AHEAD as usize * LOTS_MAX, AHEAD as usize));
    machine.step(output(0, 1));
    machine.step(shares_frame(9, 1, shares(1, 1)));
    assert_eq!(machine.shares_of(1, 1).len(), 1, "no holder");
    assert_eq!(machine.shares_of(1, 2).len(), 0, "no such lot");
    machine.step(UnsealInput::Applied(500));
    assert!(machine.shares.is_empty() && machine.keys.is_empty() && machine.heights.is_empty());
}

#[test]
fn who_asks_gets_few_answers_a_tick() {
    let mut machine = Unsealer::new(100, Planted::default());
    let ask = |height| UnsealInput::Frame { from: 1, frame: UnsealFrame::Ask(height) };
    assert_eq!(machine.step(ask(101)), [], "not output");
    for height in 0..ASKS as u64 {
        assert_eq!(machine.step(ask(height)), [UnsealEffect::Recall { to: 1, height }]);
    }
    assert_eq!(machine.step(ask(8)), []);
    machine.step(UnsealInput::Tick);
    assert_eq!(machine.step(ask(8)), [UnsealEffect::Recall { to: 1, height: 8 }]);
}
