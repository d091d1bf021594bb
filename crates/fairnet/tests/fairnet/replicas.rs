//! Receiver hedging: two replicas of one participant behind lossy links issue identical orders (Onyx, lemma E.1).

use std::collections::BTreeMap;

use crate::dice::Dice;
use fairnet::*;
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
/// Two shards of market data and the participant's private reports.
const SHARDS: u32 = 3;

/// What the root sends on a shard: deadline and contents, `None` for a heartbeat; sequences from 1.
type Feed = Vec<Vec<(Nanos, Option<u64>)>>;

fn feed(seed: u64, millis: u64) -> Feed {
    let mut dice = Dice::new(seed);
    let shard = |shard: u32, dice: &mut Dice| {
        let mut packets = Vec::new();
        let mut deadline = 0;
        for tick in 1..=millis {
            for _ in 0..dice.below(if shard + 1 == SHARDS { 2 } else { 5 }) {
                // Deadlines of different shards coincide often.
                deadline = (deadline + dice.below(3) * 100_000).clamp((tick - 1) * MS, tick * MS);
                packets.push((deadline, Some(dice.next())));
            }
            deadline = deadline.max(tick * MS);
            packets.push((deadline, None));
        }
        packets
    };
    (0..SHARDS).map(|number| shard(number, &mut dice)).collect()
}

/// A strategy of two algorithms, run in this order upon each event. Both keep state and set timers.
#[derive(Default)]
struct Strategy {
    sum: u64,
    fills: u64,
}

impl Strategy {
    fn react(&mut self, event: &Positioned<u64>, tokens: &mut Tokens) -> (Vec<(OrderToken, u64)>, Option<Nanos>) {
        let mut orders = Vec::new();
        let mut issue = |algorithm, body| {
            orders.push((tokens.next(algorithm, event.position).expect("few orders"), body));
        };
        match event.event {
            FeedEvent::Packet(shard, sequence, value) => {
                self.fills += u64::from(shard + 1 == SHARDS);
                self.sum = self.sum.rotate_left(7) ^ value ^ sequence;
                (0..self.sum % 3).for_each(|index| issue(1, self.sum ^ index ^ event.time));
            }
            FeedEvent::Timer(number) => self.sum ^= number ^ event.time,
        }
        if self.sum.is_multiple_of(5) {
            issue(2, self.sum ^ self.fills);
        }
        (orders, self.sum.is_multiple_of(4).then_some(event.time + self.sum % (2 * MS)))
    }
}

/// One replica: gaps by shard, the merge, the strategy. Returns the orders that it issued.
fn replica(feed: &Feed, seed: u64, loss: u64) -> Vec<(OrderToken, u64)> {
    let mut dice = Dice::new(seed);
    let mut arrivals: BTreeMap<(Nanos, u64), (u32, u64)> = BTreeMap::new();
    for (shard, packets) in feed.iter().enumerate() {
        let slow = dice.below(2 * MS);
        for (at, (deadline, _)) in packets.iter().enumerate() {
            for _ in 0..1 + dice.below(2) {
                if !dice.is(loss) {
                    arrivals.insert((deadline + slow + dice.below(MS), dice.next()), (shard as u32, at as u64 + 1));
                }
            }
        }
    }
    let rules = GapRules { tries: 200, ..GapRules::default() };
    let mut gaps: Vec<Gaps<Option<u64>>> = (0..SHARDS).map(|_| Gaps::new(1, rules)).collect();
    let (mut merge, mut tokens, mut strategy) =
        (FeedMerge::new(SHARDS as usize), Tokens::new(77, 0), Strategy::default());
    let (mut issued, mut number) = (Vec::new(), 0);
    let end = feed.iter().map(|packets| packets.len()).max().unwrap_or(0) as u64 * 10 * MS;
    let mut told = false;
    loop {
        let due = gaps.iter().filter_map(Gaps::due).min();
        let next = arrivals.first_key_value().map(|(key, _)| *key);
        let at = due.into_iter().chain(next.map(|key| key.0)).min();
        let mut effects: Vec<(u32, GapEffect<Option<u64>>)> = Vec::new();
        let mut step = |gaps: &mut Vec<Gaps<Option<u64>>>, shard: u32, now, input| {
            let mut out = Vec::new();
            gaps[shard as usize].step(now, input, &mut out);
            effects.extend(out.into_iter().map(|effect| (shard, effect)));
        };
        let now = match (at, next) {
            (Some(now), Some(key)) if key.0 == now => {
                let (shard, sequence) = arrivals.remove(&key).expect("an arrival");
                let (deadline, item) = feed[shard as usize][sequence as usize - 1];
                step(&mut gaps, shard, now, GapInput::Packet(sequence, deadline, item));
                now
            }
            (Some(now), _) => {
                (0..SHARDS).for_each(|shard| step(&mut gaps, shard, now, GapInput::Tick));
                now
            }
            (None, _) if !told => {
                told = true;
                for (shard, packets) in feed.iter().enumerate() {
                    step(&mut gaps, shard as u32, end, GapInput::Sent(packets.len() as u64, end));
                }
                end
            }
            (None, _) => break,
        };
        for (shard, effect) in effects {
            match effect {
                GapEffect::Deliver(sequence, deadline, item) => merge.push(shard, sequence, deadline, item),
                GapEffect::Rewind { first, count, .. } => {
                    for sequence in (first..).take(count.into()) {
                        if !dice.is(loss) {
                            arrivals.insert((now + rules.round_trip, dice.next()), (shard, sequence));
                        }
                    }
                }
                GapEffect::Lost(..) => merge.lost(),
            }
        }
        while let Some(event) = merge.next_event() {
            let (orders, timer) = strategy.react(&event, &mut tokens);
            issued.extend(orders);
            if let Some(at) = timer {
                number += 1;
                merge.set_timer(at, number);
            }
        }
    }
    assert!(!merge.is_halted());
    issued
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn hedged_replicas_with_fills_loss_timers_and_two_shards_issue_identical_orders(
        seed in any::<u64>(), loss in 0u64..40,
    ) {
        let feed = feed(seed, 40);
        let (one, two) = (replica(&feed, seed ^ 1, loss), replica(&feed, seed ^ 2, loss / 2));
        prop_assert!(one.len() > 50);
        prop_assert_eq!(one, two);
    }

    /// The state-synchronisation lemma: cut anywhere, what one replica issued is a prefix of the other's.
    #[test]
    fn state_synchronisation_keeps_one_replica_a_prefix_of_the_other(seed in any::<u64>(), cuts in any::<[u64; 6]>()) {
        let whole = feed(seed, 30);
        let cut = |which: usize| -> Feed {
            let keep = |(shard, packets): (usize, &Vec<(Nanos, Option<u64>)>)| {
                packets[..(cuts[which * 3 + shard] % (packets.len() as u64 + 1)) as usize].to_vec()
            };
            whole.iter().enumerate().map(keep).collect()
        };
        let (one, two) = (replica(&cut(0), seed ^ 1, 20), replica(&cut(1), seed ^ 2, 20));
        let common = one.len().min(two.len());
        prop_assert_eq!(&one[..common], &two[..common]);
    }

    #[test]
    fn duplicates_of_hedged_orders_are_taken_once(seed in any::<u64>()) {
        let orders: Vec<OrderToken> = replica(&feed(seed, 10), seed, 0).into_iter().map(|(token, _)| token).collect();
        let (mut dice, mut duplicates) = (Dice::new(seed), Duplicates::new(256));
        let mut next = [0, 0];
        let mut taken = Vec::new();
        while next[0] < orders.len() || next[1] < orders.len() {
            let which = dice.below(2) as usize;
            // A replica lags behind the other by at most 100 orders.
            if next[which] < orders.len() && next[which] < next[1 - which] + 100 {
                match duplicates.admit(77, orders[next[which]]) {
                    Admission::First => taken.push(orders[next[which]]),
                    Admission::Duplicate => {}
                    Admission::Diverged => prop_assert!(false),
                }
                next[which] += 1;
            }
        }
        prop_assert_eq!(taken, orders);
    }
}

#[test]
fn earliest_stamp_of_hedged_orders_wins_at_the_root_and_the_other_still_counts_as_a_promise() {
    let order = |stamp, source, reference| Sequenced {
        class: OrderClass::Critical,
        key: MergeKey { mid: 0, stamp, source, sub: 0 },
        restamped: None,
        item: OrderToken { reference, token: [reference as u8; 16] },
    };
    let (mut merge, mut out) = (Merge::new(0, 2, MergeRules::default()), Vec::new());
    (0..2).for_each(|stream| merge.step(0, MergeInput::Join(stream), &mut out));
    for stream in 0..2 {
        merge.step(0, MergeInput::Watermark(stream, OrderClass::Other, MergeKey::at(0, 9_000)), &mut out);
    }
    // Replica 1 is faster with the first order and slower with the second, and sends no watermark of its own.
    for (stream, stamp, reference) in [(1, 100, 1), (0, 150, 1), (0, 200, 2), (1, 260, 2), (0, 300, 3)] {
        merge.step(0, MergeInput::Order(stream, order(stamp, stream, reference)), &mut out);
    }
    let mut duplicates = Duplicates::new(64);
    let taken = |effect: &MergeEffect<OrderToken>| match effect {
        MergeEffect::Release(order) if duplicates.admit(7, order.item) == Admission::First => Some(order.key.stamp),
        _ => None,
    };
    // The duplicate at 260 is dropped, and without it the order at 200 would still wait.
    assert_eq!(out.iter().filter_map(taken).collect::<Vec<Nanos>>(), [100, 200]);
}

#[test]
fn diverged_replicas_are_seen_by_their_tokens() {
    let mut duplicates = Duplicates::new(64);
    let order = |algorithm, position| Tokens::new(1, 0).next(algorithm, position).expect("an order");
    assert_eq!(duplicates.admit(1, order(1, 5)), Admission::First);
    assert_eq!(duplicates.admit(1, order(1, 5)), Admission::Duplicate);
    assert_eq!(duplicates.admit(1, order(2, 5)), Admission::Diverged);
    assert_eq!(duplicates.admit(2, order(1, 5)), Admission::First, "references are each participant's own");
    duplicates.forget(1);
    assert_eq!(duplicates.admit(1, order(2, 5)), Admission::First);
    assert_eq!(duplicates.admit(1, OrderToken { reference: 0, token: [0; 16] }), Admission::Duplicate);
}

#[test]
fn tokens_end_at_the_limit_of_u32_references() {
    let mut tokens = Tokens::new(1, u32::MAX - 1);
    assert_eq!(tokens.next(1, 1).map(|token| token.reference), Some(u32::MAX));
    assert_eq!(tokens.next(1, 1), None);
    let mut tokens = Tokens::new(1, 0);
    let all: Vec<[u8; 16]> =
        [(1, 1), (1, 1), (2, 1), (1, 2)].map(|(a, p)| tokens.next(a, p).expect("an order").token).into();
    assert!((0..4).all(|one| (0..one).all(|two| all[one] != all[two])));
}

#[test]
fn feed_merge_waits_for_every_shard_and_fires_timers_first() {
    let mut merge: FeedMerge<char> = FeedMerge::new(2);
    merge.push(0, 1, 10, Some('a'));
    assert_eq!(merge.next_event(), None);
    merge.push(1, 1, 10, None);
    assert_eq!(merge.next_event().map(|event| event.event), Some(FeedEvent::Packet(0, 1, 'a')));
    merge.set_timer(15, 9);
    merge.push(0, 2, 15, Some('b'));
    merge.push(1, 2, 14, Some('c'));
    merge.push(1, 3, 16, None);
    let events: Vec<Positioned<char>> = std::iter::from_fn(|| merge.next_event()).collect();
    let expected =
        [(2, 14, FeedEvent::Packet(1, 2, 'c')), (3, 15, FeedEvent::Timer(9)), (4, 15, FeedEvent::Packet(0, 2, 'b'))];
    assert_eq!(events, expected.map(|(position, time, event)| Positioned { position, time, event }));
    // Out of sequence: this replica must not go on.
    merge.push(0, 4, 20, Some('d'));
    assert!(merge.is_halted() && merge.next_event().is_none());
}
