//! The sequencer and hops of the way in. References here share no code with the cores.

use std::collections::{BTreeMap, BTreeSet};

use crate::dice::Dice;
use fairnet::*;
use proptest::prelude::*;

const MS: Nanos = 1_000_000;

type Order = Sequenced<u32>;

fn order(class: OrderClass, mid: u64, stamp: Nanos, source: u32, item: u32) -> Order {
    Sequenced { class, key: MergeKey { mid, stamp, source, sub: 0 }, restamped: None, item }
}

fn released(effects: &[MergeEffect<u32>]) -> Vec<Order> {
    let order = |effect: &MergeEffect<u32>| match effect {
        MergeEffect::Release(order) => Some(order.clone()),
        _ => None,
    };
    effects.iter().filter_map(order).collect()
}

/// A merge whose streams have all joined.
fn merge(streams: u32) -> Merge<u32> {
    let mut merge = Merge::new(0, streams as usize, MergeRules::default());
    (0..streams).for_each(|stream| merge.step(0, MergeInput::Join(stream), &mut Vec::new()));
    merge
}

/// What gateways send: for each an honest sequence of orders and watermarks, by time of arrival.
fn honest(seed: u64, streams: u32, orders: u32, delay: u64) -> Vec<(Nanos, u32, MergeInput<u32>)> {
    let mut dice = Dice::new(seed);
    let mut sent = Vec::new();
    let (mut arrived, mut mids) = (vec![0; streams as usize], vec![0; streams as usize]);
    for number in 0..orders {
        let (stamp, stream) = (u64::from(number) * 1_000 + 1_000, dice.below(streams.into()) as u32);
        let at = stream as usize;
        // Mids differ between gateways by a little, and never decrease.
        mids[at] = mids[at].max((stamp + dice.below(3_000)) / 40_000);
        arrived[at] = (stamp + 1 + dice.below(delay)).max(arrived[at]);
        let class = OrderClass::ALL[dice.below(2) as usize];
        let mark = |class: OrderClass, mid: u64| MergeInput::Watermark(stream, class, MergeKey::at(mid, stamp));
        match dice.below(3) {
            0 => {
                OrderClass::ALL.iter().for_each(|class| sent.push((arrived[at], stream, mark(*class, mids[at]))));
            }
            _ => sent.push((
                arrived[at],
                stream,
                MergeInput::Order(stream, order(class, mids[at], stamp, stream, number)),
            )),
        }
    }
    let end = u64::from(orders) * 1_000 + delay + 2_000;
    for stream in 0..streams {
        for class in OrderClass::ALL {
            sent.push((end, stream, MergeInput::Watermark(stream, class, MergeKey::at(1 << 40, end))));
        }
    }
    // Streams arrive in order; between streams anything goes.
    sent.sort_by_key(|(at, ..)| *at);
    sent
}

fn all_orders(sent: &[(Nanos, u32, MergeInput<u32>)]) -> Vec<Order> {
    let order = |(_, _, input): &(Nanos, u32, MergeInput<u32>)| match input {
        MergeInput::Order(_, order) => Some(order.clone()),
        _ => None,
    };
    sent.iter().filter_map(order).collect()
}

fn run(merge: &mut Merge<u32>, sent: &[(Nanos, u32, MergeInput<u32>)]) -> Vec<MergeEffect<u32>> {
    let mut out = Vec::new();
    for (at, _, input) in sent {
        merge.step(*at, input.clone(), &mut out);
        if at % 3 == 0 {
            merge.step(*at, MergeInput::Tick, &mut out);
        }
    }
    out
}

/// Ascending in each class, in I_m over both, and true to the watermarks announced.
fn assert_is_sound(effects: &[MergeEffect<u32>]) {
    let (mut floor, mut mid) = ([MergeKey::default(); 2], 0);
    for effect in effects {
        match effect {
            MergeEffect::Release(order) => {
                let floor = &mut floor[order.class as usize];
                assert!(order.key >= *floor && order.key.mid >= mid, "{order:?} below {floor:?} or mid {mid}");
                (*floor, mid) = (order.key.above(), order.key.mid);
            }
            MergeEffect::Watermark(class, key) => {
                assert!(*key > floor[*class as usize], "a watermark does not rise");
                floor[*class as usize] = *key;
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// By mid, then each class by stamp: a sorted list is what a sequencer must give.
    #[test]
    fn sequencer_releases_like_a_sorted_list(seed in any::<u64>(), streams in 1u32..9) {
        let sent = honest(seed, streams, 300, 300_000);
        let out = run(&mut merge(streams), &sent);
        assert_is_sound(&out);
        let mut sorted = all_orders(&sent);
        sorted.sort_by_key(|order| (order.key.mid, order.class, order.key));
        let mut got = released(&out);
        prop_assert!(got.iter().all(|order| order.restamped.is_none()));
        got.sort_by_key(|order| (order.key.mid, order.class));
        prop_assert_eq!(got, sorted);
    }

    #[test]
    fn sequencer_releases_nothing_that_a_promise_does_not_cover(seed in any::<u64>()) {
        let sent = honest(seed, 4, 200, 300_000);
        let (mut merge, mut marks) = (merge(4), BTreeMap::new());
        for (at, stream, input) in &sent {
            let (class, key) = match input {
                MergeInput::Order(_, order) => (order.class, order.key.above()),
                MergeInput::Watermark(_, class, key) => (*class, *key),
                _ => continue,
            };
            marks.insert((*stream, class), key);
            let mut out = Vec::new();
            merge.step(*at, input.clone(), &mut out);
            for order in released(&out) {
                let is_passed = |stream| marks.get(&(stream, order.class)).is_some_and(|mark| *mark > order.key);
                prop_assert!((0..4).all(is_passed), "{:?}", order);
            }
        }
        prop_assert!(merge.is_empty());
    }

    #[test]
    fn tree_of_sequencers_equals_one(seed in any::<u64>()) {
        let sent = honest(seed, 8, 300, 300_000);
        let alone = released(&run(&mut merge(8), &sent));
        let mut leaves: Vec<Merge<u32>> = (0..4).map(|_| merge(2)).collect();
        let (mut root, mut out) = (merge(4), Vec::new());
        for (at, stream, input) in &sent {
            let (leaf, local) = (stream / 2, stream % 2);
            let input = match input.clone() {
                MergeInput::Order(_, order) => MergeInput::Order(local, order),
                MergeInput::Watermark(_, class, key) => MergeInput::Watermark(local, class, key),
                other => other,
            };
            let mut up = Vec::new();
            leaves[leaf as usize].step(*at, input, &mut up);
            leaves[leaf as usize].step(*at, MergeInput::Tick, &mut up);
            for effect in up {
                match effect {
                    MergeEffect::Release(order) => root.step(*at, MergeInput::Order(leaf, order), &mut out),
                    MergeEffect::Watermark(class, key) => {
                        root.step(*at, MergeInput::Watermark(leaf, class, key), &mut out);
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
        assert_is_sound(&out);
        let by_class = |orders: &[Order]| {
            let mut orders = orders.to_vec();
            orders.sort_by_key(|order| (order.key.mid, order.class));
            orders
        };
        prop_assert_eq!(by_class(&released(&out)), by_class(&alone));
    }

    /// Streams that stall, lie about watermarks and come back: the output stays sound and nothing is lost.
    #[test]
    fn sequencer_survives_streams_that_stall_and_lie(seed in any::<u64>()) {
        let (mut dice, mut merge, mut out) = (Dice::new(seed), merge(5), Vec::new());
        let (mut now, mut count) = (0, 0u32);
        let mut stalled = [0u64; 5];
        for _ in 0..3_000 {
            now += dice.below(200_000);
            let stream = dice.below(5);
            if dice.is(1) {
                stalled[stream as usize] = now + dice.below(30 * MS);
            }
            let stream = stream as u32;
            let lag = if stalled[stream as usize] > now { 10 * MS } else { 0 } + dice.below(200_000);
            let (mid, stamp) = (now / (5 * MS), now.saturating_sub(lag));
            let class = OrderClass::ALL[dice.below(2) as usize];
            if dice.is(40) {
                count += 1;
                merge.step(now, MergeInput::Order(stream, order(class, mid, stamp, stream, count)), &mut out);
            } else {
                merge.step(now, MergeInput::Watermark(stream, class, MergeKey::at(mid, stamp)), &mut out);
            }
            match dice.below(400) {
                0 => merge.step(now, MergeInput::Leave(stream), &mut out),
                1..4 => (0..5).for_each(|stream| merge.step(now, MergeInput::Join(stream), &mut out)),
                _ => merge.step(now, MergeInput::Tick, &mut out),
            }
        }
        (0..5).for_each(|stream| merge.step(now, MergeInput::Leave(stream), &mut out));
        assert_is_sound(&out);
        let ids: BTreeSet<u32> = released(&out).iter().map(|order| order.item).collect();
        prop_assert_eq!(ids.len(), released(&out).len());
        prop_assert!(merge.is_empty());
        for order in released(&out) {
            prop_assert!(order.restamped.is_none_or(|before| before < order.key));
        }
    }

    #[test]
    fn tree_of_hops_with_scarce_egress_keeps_streams_sound(seed in any::<u64>()) {
        let sent = honest(seed, 6, 300, 300_000);
        let rules = MergeRules::default();
        let mut leaves: Vec<Hop<u32>> = (0..3).map(|_| Hop::new(0, 2, rules, QueuePolicy::ByClass)).collect();
        let (mut root, mut dice, mut out) = (merge(3), Dice::new(seed), Vec::new());
        let mut climb = |leaf: usize, at: Nanos, input: HopInput<u32>, leaves: &mut Vec<Hop<u32>>| {
            let mut up = Vec::new();
            leaves[leaf].step(at, input, &mut up);
            leaves[leaf].step(at, HopInput::Child(MergeInput::Tick), &mut up);
            for effect in up {
                match effect {
                    HopEffect::Order(order) => root.step(0, MergeInput::Order(leaf as u32, order), &mut out),
                    HopEffect::Watermark(class, key) => {
                        root.step(0, MergeInput::Watermark(leaf as u32, class, key), &mut out);
                    }
                    HopEffect::Event(event) => panic!("{event:?}"),
                }
            }
        };
        for leaf in 0..3 {
            (0..2).for_each(|child| climb(leaf, 0, HopInput::Child(MergeInput::Join(child)), &mut leaves));
        }
        for (at, stream, input) in &sent {
            let leaf = (stream / 2) as usize;
            let input = match input.clone() {
                MergeInput::Order(_, order) => MergeInput::Order(stream % 2, order),
                MergeInput::Watermark(_, class, key) => MergeInput::Watermark(stream % 2, class, key),
                other => other,
            };
            climb(leaf, *at, HopInput::Child(input), &mut leaves);
            climb(dice.below(3) as usize, *at, HopInput::Ready(dice.below(2)), &mut leaves);
        }
        (0..3).for_each(|leaf| climb(leaf, u64::MAX / 2, HopInput::Ready(1_000), &mut leaves));
        assert_is_sound(&out);
        prop_assert!(out.iter().all(|effect| !matches!(effect, MergeEffect::Restamped(..))));
        prop_assert_eq!(released(&out).len(), all_orders(&sent).len());
    }
}

#[test]
fn passive_only_market_is_released_while_the_mid_stands() {
    let (mut merge, mut out) = (merge(3), Vec::new());
    for number in 0..10 {
        merge.step(0, MergeInput::Order(0, order(OrderClass::Other, 7, 100 + u64::from(number), 0, number)), &mut out);
    }
    assert!(released(&out).is_empty());
    // Two idle gateways promise what they can: nothing below (I_m, now), in both classes.
    for (stream, class) in [(1, OrderClass::Other), (1, OrderClass::Critical), (2, OrderClass::Critical)] {
        merge.step(1, MergeInput::Watermark(stream, class, MergeKey::at(7, 200)), &mut out);
    }
    merge.step(1, MergeInput::Watermark(0, OrderClass::Critical, MergeKey::at(7, 200)), &mut out);
    assert!(released(&out).is_empty());
    merge.step(2, MergeInput::Watermark(2, OrderClass::Other, MergeKey::at(7, 200)), &mut out);
    assert_eq!(released(&out).len(), 10);
    // The same for a market without a mid, where all is critical.
    assert_eq!(MidState::default().class(QuoteSide::Bid, 1, 2), Some(OrderClass::Critical));
}

#[test]
fn mid_rises_only_when_both_classes_have_passed_it() {
    let (mut merge, mut out) = (merge(2), Vec::new());
    merge.step(0, MergeInput::Order(0, order(OrderClass::Critical, 1, 50, 0, 1)), &mut out);
    merge.step(0, MergeInput::Watermark(1, OrderClass::Critical, MergeKey::at(1, 60)), &mut out);
    merge.step(0, MergeInput::Watermark(0, OrderClass::Other, MergeKey::at(1, 60)), &mut out);
    // Stream 1 may still send a passive order of mid 0.
    assert!(released(&out).is_empty());
    merge.step(0, MergeInput::Order(1, order(OrderClass::Other, 0, 10, 1, 2)), &mut out);
    merge.step(0, MergeInput::Watermark(1, OrderClass::Other, MergeKey::at(1, 0)), &mut out);
    assert_eq!(released(&out).iter().map(|order| order.item).collect::<Vec<u32>>(), [2, 1]);
}

#[test]
fn late_order_of_a_skipped_stream_is_restamped_and_says_so() {
    let (mut merge, mut out) = (merge(2), Vec::new());
    let critical = OrderClass::Critical;
    merge.step(100, MergeInput::Order(0, order(critical, 0, 100, 0, 1)), &mut out);
    OrderClass::ALL
        .iter()
        .for_each(|class| merge.step(0, MergeInput::Watermark(0, *class, MergeKey::at(0, 900)), &mut out));
    merge.step(2 * MS - 20_000, MergeInput::Tick, &mut out);
    assert!(released(&out).is_empty());
    merge.step(2 * MS + 100, MergeInput::Tick, &mut out);
    assert!(out.contains(&MergeEffect::Skipped(1, 2 * MS)));
    assert_eq!(released(&out).len(), 1);
    out.clear();
    merge.step(2 * MS, MergeInput::Order(1, order(critical, 0, 50, 1, 2)), &mut out);
    merge.step(2 * MS, MergeInput::Watermark(0, critical, MergeKey::at(0, 2_000)), &mut out);
    let late = MergeKey { mid: 0, stamp: 50, source: 1, sub: 0 };
    assert_eq!(out[0], MergeEffect::Restamped(1, late));
    let orders = released(&out);
    assert_eq!((orders[0].restamped, orders[0].key.stamp), (Some(late), 900));
}

/// Sends watermarks of all streams each 100 µs, with orders of stream 0, and sums up how long orders waited in all.
fn stall(streams: u32, millis: u64, is_silent: impl Fn(u32, Nanos) -> bool) -> (Nanos, usize, usize) {
    let (mut merge, mut out, mut waiting, mut stalled) = (merge(streams), Vec::new(), BTreeMap::new(), 0);
    let mut skips = 0;
    for now in (1..=millis * 10).map(|step| step * 100_000) {
        let number = (now / 100_000) as u32;
        merge.step(now, MergeInput::Order(0, order(OrderClass::Critical, 0, now, 0, number)), &mut out);
        waiting.insert(number, now);
        for stream in (0..streams).filter(|stream| *stream == 0 || !is_silent(*stream, now)) {
            for class in OrderClass::ALL {
                merge.step(now, MergeInput::Watermark(stream, class, MergeKey::at(0, now + 1)), &mut out);
            }
        }
        merge.step(now, MergeInput::Tick, &mut out);
        released(&out).iter().for_each(|order| {
            waiting.remove(&order.item);
        });
        skips += out.iter().filter(|effect| matches!(effect, MergeEffect::Skipped(..))).count();
        stalled += if waiting.is_empty() { 0 } else { 100_000 };
        out.clear();
    }
    (stalled, skips, waiting.len())
}

#[test]
fn gateway_that_pauses_just_below_eviction_for_a_minute_stalls_little() {
    // It is silent for 299 ms, then says something, and again.
    let (stalled, skips, left) = stall(10, 60_000, |stream, now| stream == 7 && (now / 100_000) % 2_990 != 0);
    assert!(stalled <= 20 * MS && skips <= 6 && left <= 20, "{stalled} ns, {skips} skips");
}

#[test]
fn hundred_slow_streams_in_turn_stall_little() {
    // Each is silent for 4 ms; one begins when the one before is skipped.
    let (stalled, skips, _) = stall(100, 1_000, |stream, now| {
        let turn = now / (2 * MS);
        turn < 200 && (u64::from(stream) == turn || u64::from(stream) + 1 == turn)
    });
    assert!(stalled <= 60 * MS && skips >= 50, "{stalled} ns, {skips} skips");
}

#[test]
fn stream_that_lags_just_below_the_limit_is_skipped_when_patience_ends() {
    let (stalled, skips, _) = stall(100, 1_000, |stream, now| stream == 3 && !(now / 100_000).is_multiple_of(19));
    assert!(stalled <= 60 * MS && skips >= 1, "{stalled} ns, {skips} skips");
}

#[test]
fn skipped_stream_is_readmitted_after_a_probation_that_doubles() {
    let mut merge = merge(2);
    let mut now = 0;
    let mut probation = |silent: Nanos| {
        let mut out = Vec::new();
        // Silence, until it is skipped; then watermarks until it is waited for again.
        let end = now + silent;
        while now < end {
            now += 500_000;
            merge.step(now, MergeInput::Order(0, order(OrderClass::Critical, 0, now, 0, 0)), &mut out);
            merge.step(now, MergeInput::Watermark(0, OrderClass::Other, MergeKey::at(0, now)), &mut out);
            merge.step(now, MergeInput::Tick, &mut out);
        }
        assert!(out.iter().any(|effect| matches!(effect, MergeEffect::Skipped(1, _))));
        let begun = now;
        while !out.contains(&MergeEffect::Readmitted(1)) {
            now += 500_000;
            for class in OrderClass::ALL {
                (0..2).for_each(|stream| {
                    merge.step(now, MergeInput::Watermark(stream, class, MergeKey::at(0, now)), &mut out)
                });
            }
            merge.step(now, MergeInput::Tick, &mut out);
        }
        now - begun
    };
    let waits: Vec<u64> = (0..4).map(|_| probation(10 * MS) / 100_000_000).collect();
    assert_eq!(waits, [10, 20, 40, 80]);
}

#[test]
fn held_stream_is_not_skipped_for_a_backlog_that_is_our_doing() {
    let (mut merge, mut out) = (merge(2), Vec::new());
    let skipped = |out: &[MergeEffect<u32>]| out.iter().any(|effect| matches!(effect, MergeEffect::Skipped(..)));
    merge.step(0, MergeInput::Order(0, order(OrderClass::Other, 0, 100, 0, 1)), &mut out);
    merge.step(0, MergeInput::Watermark(0, OrderClass::Critical, MergeKey::at(0, 900 * MS)), &mut out);
    // Stream 1 has orders of both classes; we take critical ones, one by one, and it is held in between.
    for now in (1..100).map(|step| step * MS) {
        merge.step(now, MergeInput::Hold(1, false), &mut out);
        merge.step(now, MergeInput::Order(1, order(OrderClass::Critical, 0, now, 1, 2)), &mut out);
        merge.step(now, MergeInput::Hold(1, true), &mut out);
        merge.step(now, MergeInput::Tick, &mut out);
    }
    // However long it is held.
    merge.step(150 * MS, MergeInput::Tick, &mut out);
    assert!(!skipped(&out));
    // Free to send, and silent: now it is slow.
    merge.step(160 * MS, MergeInput::Hold(1, false), &mut out);
    merge.step(161 * MS, MergeInput::Tick, &mut out);
    assert!(!skipped(&out));
    merge.step(162 * MS, MergeInput::Tick, &mut out);
    assert!(skipped(&out));
    assert_eq!(released(&out).last().map(|order| order.item), Some(1));
}

/// Nobody can promise what has not come yet: an order that is stamped ahead of the clock has no stream skipped for it.
#[test]
fn order_stamped_ahead_of_the_clock_waits_for_its_own_stamp() {
    let (mut merge, mut out) = (merge(2), Vec::new());
    merge.step(0, MergeInput::Order(0, order(OrderClass::Critical, 0, 100 * MS, 0, 1)), &mut out);
    for now in (0..100).map(|step| step * MS) {
        for class in OrderClass::ALL {
            merge.step(now, MergeInput::Watermark(1, class, MergeKey::at(0, now)), &mut out);
        }
        merge.step(now, MergeInput::Tick, &mut out);
        assert!(out.iter().all(|effect| matches!(effect, MergeEffect::Watermark(..))), "{out:?}");
    }
    merge.step(102 * MS, MergeInput::Tick, &mut out);
    assert!(out.iter().any(|effect| matches!(effect, MergeEffect::Skipped(1, _))));
}
