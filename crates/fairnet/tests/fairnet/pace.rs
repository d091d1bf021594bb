//! Order pacing against a bucket that is filled nanosecond by nanosecond, and what a flood does to others.

use std::collections::VecDeque;

use crate::dice::Dice;
use fairnet::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const RULES: PaceRules = PaceRules { interval: 10, burst: 3, waiting: 8, mistake: kernel::Planted::NOTHING };

/// What the module's text says, as a bucket: full at first, one part each nanosecond, an interval's parts for an order.
struct Bucket {
    rules: PaceRules,
    phase: Nanos,
    parts: u64,
    now: Nanos,
    waiting: VecDeque<u32>,
    slot: Option<Nanos>,
}

impl Bucket {
    /// Every nanosecond until `to`: what leaves, and when.
    fn run(&mut self, to: Nanos, left: &mut Vec<(u32, Nanos)>) {
        while self.now < to {
            self.now += 1;
            self.parts = (self.parts + 1).min(self.rules.interval * self.rules.burst);
            if self.slot == Some(self.now) {
                self.leave(left);
            }
        }
    }

    fn leave(&mut self, left: &mut Vec<(u32, Nanos)>) {
        left.extend(self.waiting.pop_front().map(|order| (order, self.now)));
        self.parts -= self.rules.interval;
        self.slot = (!self.waiting.is_empty()).then_some(self.now + self.rules.interval);
    }

    /// Whether there is room for the order.
    fn order(&mut self, order: u32, left: &mut Vec<(u32, Nanos)>) -> bool {
        let (PaceRules { interval, waiting, .. }, phase) = (self.rules, self.phase);
        if self.waiting.is_empty() && self.parts >= interval {
            self.parts -= interval;
            left.push((order, self.now));
            return true;
        }
        if self.waiting.len() == waiting {
            return false;
        }
        self.waiting.push_back(order);
        if self.slot.is_none() {
            let enough = self.now + interval.saturating_sub(self.parts);
            self.slot = (enough..).find(|at| at % interval == phase % interval);
        }
        true
    }
}

/// Drives a pace through orders and ticks. On time, it has a tick at each nanosecond and must do what the bucket does.
/// The first violation, if there is one.
fn violation((rules, phase): (PaceRules, Nanos), seed: u64, is_on_time: bool) -> Option<String> {
    let (mut dice, mut pace, mut now) = (Dice::new(seed), Pace::new(rules), 0);
    pace.place(phase);
    let full = rules.interval * rules.burst;
    let mut bucket = Bucket { rules, phase, parts: full, now: 0, waiting: VecDeque::new(), slot: None };
    let (mut left, mut expected, mut asked, mut refused) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let note = |now, out: Vec<PaceEffect<u32>>, left: &mut Vec<(u32, Nanos)>, refused: &mut Vec<u32>| {
        for effect in out {
            match effect {
                PaceEffect::Leave(order) => left.push((order, now)),
                PaceEffect::Refuse(order) => refused.push(order),
            }
        }
    };
    for number in 0..300 {
        let pause = if dice.is(10) { dice.below(20 * rules.interval) } else { dice.below(rules.interval) };
        let mut out = Vec::new();
        for at in now + 1..=now + pause {
            if is_on_time || pace.due().is_some_and(|due| due <= at) && dice.is(2) {
                pace.step(at, PaceInput::Tick, &mut out);
                note(at, std::mem::take(&mut out), &mut left, &mut refused);
            }
        }
        now += pause;
        pace.step(now, PaceInput::Order(number), &mut out);
        note(now, out, &mut left, &mut refused);
        bucket.run(now, &mut expected);
        let is_taken = bucket.order(number, &mut expected);
        asked.push(number);
        if is_on_time && (left != expected || is_taken == refused.contains(&number)) {
            return Some(format!("order {number}: {:?} instead of {:?}", left.last(), expected.last()));
        }
        if pace.waiting() > rules.waiting {
            return Some("too many wait".into());
        }
    }
    asked.retain(|order| !refused.contains(order));
    if left.iter().map(|(order, _)| order).ne(asked.iter().take(left.len())) {
        return Some("out of order".into());
    }
    for (first, (_, from)) in left.iter().enumerate() {
        for (last, (_, to)) in left.iter().enumerate().skip(first) {
            if (last - first) as u64 + 1 > 2 * rules.burst + (to - from) / rules.interval {
                return Some(format!("{} orders within {} ns", last - first + 1, to - from));
            }
        }
    }
    None
}

fn rules() -> impl Strategy<Value = (PaceRules, Nanos)> {
    let all = (1..30u64, 1..6u64, 0..12usize, 0..40u64);
    all.prop_map(|(interval, burst, waiting, phase)| (PaceRules { interval, burst, waiting, ..RULES }, phase))
}

#[test]
fn what_leaves_is_within_the_share_in_order_and_on_time() {
    let mut runner = TestRunner::new(Config::with_cases(200));
    let all = (rules(), any::<u64>(), any::<bool>());
    let run = runner.run(&all, |(rules, seed, is_on_time)| {
        prop_assert_eq!(violation(rules, seed, is_on_time), None);
        Ok(())
    });
    run.expect("no violation");
}

#[test]
fn each_planted_mistake_of_a_pace_is_found() {
    for mistake in PaceMistake::ALL {
        let rules = PaceRules { mistake: Some(*mistake).into(), ..RULES };
        let found =
            (0..50).any(|seed| [true, false].iter().any(|on_time| violation((rules, 4), seed, *on_time).is_some()));
        assert!(found, "{mistake:?}");
    }
}

/// When the orders of a calm participant come out of a sequencer, beside one that sends `flood` orders each 10 µs; and
/// how many of those do. Stamps are given behind the pace, or before it.
fn beside_a_flood(flood: u64, is_stamped_first: bool) -> (Vec<Nanos>, usize) {
    const INTERVAL: Nanos = 50_000;
    let rules = PaceRules { interval: INTERVAL, burst: 4, waiting: 1_000, ..RULES };
    let mut paces = [Pace::new(rules), Pace::new(rules)];
    paces[1].place(INTERVAL / 2);
    let mut stamps = [Stamps::default(), Stamps::default()];
    // It waits for ever, so that nothing but the pace protects others.
    let patient =
        MergeRules { max_wait: u64::MAX, short_wait: u64::MAX, patience: u64::MAX / 2, ..MergeRules::default() };
    let mut hop: Hop<u64> = Hop::new(0, 2, patient, QueuePolicy::ByStamp);
    let mut sink = Vec::new();
    (0..2).for_each(|stream| hop.step(0, HopInput::Child(MergeInput::Join(stream)), &mut sink));
    hop.step(0, HopInput::Ready(u64::MAX), &mut sink);
    let (mut calm, mut flooded) = (Vec::new(), 0);
    for now in (10_000..20_000_000).step_by(10_000) {
        let mut out = Vec::new();
        for source in 0..2usize {
            let made = if source == 0 { flood } else { u64::from(now % 200_000 == 0) };
            let mut effects = Vec::new();
            paces[source].step(now, PaceInput::Tick, &mut effects);
            for _ in 0..made {
                // An order knows when it was made.
                paces[source].step(now, PaceInput::Order(now), &mut effects);
            }
            for effect in effects {
                let PaceEffect::Leave(made) = effect else { continue };
                let stamp = stamps[source].next(if is_stamped_first { made } else { now });
                let key = MergeKey { source: source as u32, ..MergeKey::at(0, stamp) };
                let order = Sequenced { class: OrderClass::Critical, key, restamped: None, item: source as u64 };
                hop.step(now, HopInput::Child(MergeInput::Order(source as u32, order)), &mut out);
            }
            // What waits behind its stamp keeps the promise back.
            if !is_stamped_first || paces[source].waiting() == 0 {
                let promise = MergeKey::at(0, stamps[source].promise(now));
                for class in OrderClass::ALL {
                    hop.step(now, HopInput::Child(MergeInput::Watermark(source as u32, class, promise)), &mut out);
                }
            }
        }
        hop.step(now, HopInput::Child(MergeInput::Tick), &mut out);
        for effect in out {
            if let HopEffect::Order(order) = effect {
                if order.item == 1 { calm.push(now) } else { flooded += 1 }
            }
        }
    }
    (calm, flooded)
}

#[test]
fn a_flood_takes_no_more_than_its_share_and_delays_nobody_else() {
    let (alone, _) = beside_a_flood(0, false);
    let (calm, flooded) = beside_a_flood(20, false);
    assert_eq!(alone.len(), 99);
    let is_delayed =
        |calm: &[Nanos]| calm.len() < alone.len() || calm.iter().zip(&alone).any(|(one, other)| one > other);
    assert!(!is_delayed(&calm), "somebody waits for the flood: {calm:?}");
    assert!((350..=8 + 20_000_000 / 50_000).contains(&flooded), "{flooded}");
    // The same with stamps before the pace: sequencers wait for what waits.
    let (late, _) = beside_a_flood(20, true);
    assert!(is_delayed(&late));
}
