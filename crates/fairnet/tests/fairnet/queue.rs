//! The queue, classes, cancels, stamps and cut-offs of the way in. References here share no code with the cores.

use std::collections::BTreeMap;

use crate::dice::Dice;
use fairnet::*;
use proptest::prelude::*;

fn order(class: OrderClass, mid: u64, stamp: Nanos, source: u32, item: u32) -> Sequenced<u32> {
    Sequenced { class, key: MergeKey { mid, stamp, source, sub: 0 }, restamped: None, item }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn loq_leaves_like_a_sorted_list(seed in any::<u64>(), by_class in any::<bool>()) {
        let policy = if by_class { QueuePolicy::ByClass } else { QueuePolicy::ByStamp };
        let (mut dice, mut queue, mut list) = (Dice::new(seed), Loq::new(policy), Vec::new());
        for number in 0..400 {
            if dice.is(60) {
                // Within a class mids rise with stamps, as they do at a gateway.
                let stamp = dice.below(1_000);
                let new = order(OrderClass::ALL[dice.below(2) as usize], stamp / 100, stamp, number, number);
                queue.push(new.clone());
                list.push(new);
            } else {
                list.sort_by_key(|order| match by_class {
                    true => (order.key.mid, order.class as u64, order.key.stamp, order.key.source),
                    false => (0, 0, order.key.stamp, order.key.source),
                });
                let first = (!list.is_empty()).then(|| list.remove(0));
                prop_assert_eq!(queue.pop(), first);
            }
            prop_assert_eq!(queue.len(), list.len());
        }
    }
}

#[test]
fn loq_takes_a_trade_from_an_earlier_bid_and_its_fifo_twin_does_not() {
    use matching::{Book, BookEvent, BookLimits, Command, NewOrder, SelfTrade, Side, TimeInForce};
    // The example of the module: w = 2; the mid moved from 100 (I_m = 1) to 110 (I_m = 2).
    let mut mids = MidHistory::new(16);
    mids.observe(10, Some(200));
    mids.observe(20, Some(220));
    let made = |item, md_seq, side, tick, stamp| {
        let mid = mids.at(md_seq);
        order(mid.class(side, tick, 2).expect("inside the window"), mid.number, stamp, item, item)
    };
    let orders = [
        made(1, 10, QuoteSide::Ask, 102, 290),
        made(2, 20, QuoteSide::Bid, 105, 300),
        made(3, 20, QuoteSide::Bid, 111, 310),
    ];
    assert_eq!(
        orders.each_ref().map(|order| order.class),
        [OrderClass::Critical, OrderClass::Other, OrderClass::Critical]
    );
    let sides = [Side::Buy, Side::Sell, Side::Buy, Side::Buy];
    let ticks = [109, 102, 105, 111];
    let buyer = |policy| {
        let mut queue = Loq::new(policy);
        orders.iter().for_each(|order| queue.push(order.clone()));
        let mut sequence = vec![0];
        sequence.extend(std::iter::from_fn(|| queue.pop()).map(|order| order.item));
        let mut book = Book::new(BookLimits::default(), 1).expect("usual limits");
        let mut events: Vec<BookEvent> = Vec::new();
        for item in &sequence {
            // The sell is larger than the bid that rests, sweeps it and rests.
            let lots = if *item == 1 { 2 } else { 1 };
            let new = NewOrder {
                owner: *item,
                reference: 1,
                side: sides[*item as usize],
                tick: ticks[*item as usize],
                lots,
                time_in_force: TimeInForce::GoodTillCancelled,
                post_only: false,
                self_trade: SelfTrade::ExpireTaker,
            };
            book.apply(&Command::New(new), &mut events);
        }
        let taker = |event: &BookEvent| match event {
            BookEvent::Executed { taker, .. } => Some(taker.owner),
            _ => None,
        };
        let takers: Vec<u32> = events.iter().filter_map(taker).collect();
        (sequence, takers)
    };
    let (twin, fair) = buyer(QueuePolicy::ByStamp);
    let (queued, quick) = buyer(QueuePolicy::ByClass);
    assert_eq!((fair, quick), (vec![1, 2], vec![1, 3]));
    assert_eq!(lateness(&twin, &queued), [0, 0, 1, 1]);
}

#[test]
fn class_and_action_window_follow_the_price() {
    let mid = MidState { number: 3, twice: Some(2 * 100 + 1) };
    use OrderClass::{Critical, Other};
    for (side, tick, class) in [
        (QuoteSide::Bid, 98, Some(Other)),
        (QuoteSide::Bid, 99, Some(Critical)),
        (QuoteSide::Bid, 102, Some(Critical)),
        (QuoteSide::Bid, 103, None),
        (QuoteSide::Ask, 103, Some(Other)),
        (QuoteSide::Ask, 99, Some(Critical)),
        (QuoteSide::Ask, 98, None),
        (QuoteSide::Ask, u32::MAX, Some(Other)),
    ] {
        assert_eq!(mid.class(side, tick, 2), class, "{side:?} {tick}");
    }
}

#[test]
fn mid_history_is_a_function_of_the_feed_sequence() {
    let mut mids = MidHistory::new(4);
    [(5, Some(200)), (6, Some(200)), (8, Some(202)), (9, None), (12, Some(202))]
        .into_iter()
        .for_each(|(at, twice)| mids.observe(at, twice));
    let number = |md_seq| mids.at(md_seq).number;
    assert_eq!([5, 7, 8, 9, 11, 12, 99].map(number), [1, 1, 2, 3, 3, 4, 4]);
    assert_eq!(number(0), 1, "of a forgotten time the oldest that is known");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Orders, replaces and cancels while the mid moves: in the order (I_m, c, t) nothing of one order is overtaken.
    #[test]
    fn cancel_and_replace_neither_overtake_nor_trail_while_the_mid_moves(seed in any::<u64>()) {
        let (mut dice, mut table) = (Dice::new(seed), OrderClasses::new(3));
        let mut mid = MidState { number: 0, twice: Some(200) };
        let (mut sent, mut alive) = (Vec::new(), BTreeMap::new());
        for stamp in 0..200u64 {
            if dice.is(20) {
                mid = MidState { number: mid.number + 1, twice: Some(180 + dice.below(40)) };
            }
            let (tick, fresh) = (90 + dice.below(20) as u32, 1_000 + stamp as u32);
            let side = if dice.is(50) { QuoteSide::Bid } else { QuoteSide::Ask };
            let picked = alive.keys().nth(dice.below(alive.len().max(1) as u64) as usize).copied();
            let (request, chain) = match (dice.below(3), picked) {
                (1, Some(reference)) => (ClassRequest::Cancel { reference }, alive.remove(&reference)),
                (2, Some(reference)) => {
                    (ClassRequest::Replace { reference, new_reference: fresh, tick }, alive.get(&reference).copied())
                }
                _ => (ClassRequest::New { reference: fresh, side, tick }, Some(stamp)),
            };
            let Some(class) = table.class(mid, request) else { continue };
            let chain: u64 = chain.expect("an order");
            sent.push(((mid.number, class, stamp), chain));
            match request {
                ClassRequest::New { .. } => drop(alive.insert(fresh, chain)),
                ClassRequest::Replace { reference, .. } => {
                    alive.remove(&reference);
                    alive.insert(fresh, chain);
                }
                _ => {}
            }
        }
        let by_stamp = |chain: u64| -> Vec<u64> {
            let mut own: Vec<_> = sent.iter().filter(|(_, of)| *of == chain).map(|(key, _)| *key).collect();
            own.sort_unstable();
            own.into_iter().map(|(_, _, stamp)| stamp).collect()
        };
        for (_, chain) in &sent {
            prop_assert!(by_stamp(*chain).is_sorted());
        }
    }
}

#[test]
fn cancel_takes_the_class_of_its_target_now() {
    let mut table = OrderClasses::new(2);
    let mid = |number, tick: u64| MidState { number, twice: Some(2 * tick) };
    let bid = ClassRequest::New { reference: 1, side: QuoteSide::Bid, tick: 95 };
    assert_eq!(table.class(mid(1, 100), bid), Some(OrderClass::Other));
    assert_eq!(table.class(mid(1, 100), ClassRequest::Cancel { reference: 1 }), Some(OrderClass::Other));
    assert_eq!(table.class(mid(2, 96), ClassRequest::Cancel { reference: 1 }), Some(OrderClass::Critical));
    // At that mid it has been critical, and stays so.
    let away = ClassRequest::Replace { reference: 1, new_reference: 2, tick: 80 };
    assert_eq!(table.class(mid(2, 96), away), Some(OrderClass::Critical));
    // Later the more urgent of old and new counts.
    let near = ClassRequest::Replace { reference: 2, new_reference: 3, tick: 95 };
    assert_eq!(table.class(mid(3, 96), near), Some(OrderClass::Critical));
    assert_eq!(table.class(mid(4, 96), ClassRequest::Cancel { reference: 99 }), Some(OrderClass::Critical));
    assert_eq!(table.class(mid(4, 96), ClassRequest::Mass), Some(OrderClass::Critical));
    table.ended(3);
    assert_eq!(table.class(mid(4, 200), ClassRequest::Cancel { reference: 3 }), Some(OrderClass::Critical));
}

#[test]
fn kill_refuses_earlier_stamped_orders_that_arrive_late() {
    let mut barrier = KillBarrier::default();
    barrier.raise(7, 1_000);
    barrier.raise(7, 900);
    assert!(barrier.refuses(7, 999) && !barrier.refuses(7, 1_000) && !barrier.refuses(8, 0));
    barrier.forget(1_000);
    assert!(!barrier.refuses(7, 999), "nothing stamped before can come any more");
}

#[test]
fn stamps_ascend_and_follow_what_was_shown() {
    let mut stamps = Stamps::default();
    assert_eq!([stamps.next(100), stamps.next(100), stamps.next(90)], [100, 101, 102]);
    stamps.shown(500);
    assert_eq!(stamps.promise(200), 500);
    assert_eq!([stamps.next(200), stamps.next(700)], [500, 700]);
    assert_eq!(stamps.promise(700), 701);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn bundles_cut_off_in_stamp_order_whatever_the_arrival(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let orders: Vec<(Nanos, u32)> = (0..200).map(|number| (dice.below(50_000), number)).collect();
        let collect = |dice: &mut Dice| {
            let (mut bundles, mut out) = (Bundles::new(3, 0, 1_000, 7), Vec::new());
            for cut in (0..=60u64).map(|step| step * 1_000) {
                let mut due: Vec<_> = orders.iter().filter(|(stamp, _)| cut == stamp - stamp % 1_000).collect();
                (0..due.len()).rev().for_each(|at| due.swap(at, dice.below(at as u64 + 1) as usize));
                for (stamp, source) in due {
                    bundles.step(BundleInput::Order(*stamp, *source, [0; 32]), &mut out);
                }
                bundles.step(BundleInput::Watermark(cut + 999), &mut out);
            }
            out
        };
        let bundles = collect(&mut dice);
        prop_assert_eq!(&bundles, &collect(&mut dice));
        let all = bundles.iter().flat_map(|bundle| &bundle.orders);
        let all: Vec<(Nanos, u32)> = all.map(|order| (order.stamp, order.source)).collect();
        let mut sorted = orders.clone();
        sorted.sort_unstable();
        prop_assert_eq!(all, sorted);
        for pair in bundles.windows(2) {
            let expected = (pair[0].until, pair[0].number + 1, pair[0].digest());
            prop_assert_eq!((pair[1].from, pair[1].number, pair[1].previous), expected);
        }
        let is_plain = |bundle: &Bundle| bundle.orders.len() <= 7 && bundle.orders.iter().all(|order| !order.is_late);
        prop_assert!(bundles.iter().all(is_plain));
    }
}

#[test]
fn bundles_flag_orders_that_come_after_their_cut_off() {
    let (mut bundles, mut out) = (Bundles::new(1, 0, 100, 10), Vec::new());
    bundles.step(BundleInput::Order(50, 1, [1; 32]), &mut out);
    bundles.step(BundleInput::Watermark(199), &mut out);
    bundles.step(BundleInput::Order(99, 2, [2; 32]), &mut out);
    bundles.step(BundleInput::Order(150, 3, [3; 32]), &mut out);
    bundles.step(BundleInput::Watermark(200), &mut out);
    let flags: Vec<Vec<(Nanos, bool)>> =
        out.iter().map(|bundle| bundle.orders.iter().map(|order| (order.stamp, order.is_late)).collect()).collect();
    assert_eq!(flags, [vec![(50, false)], vec![(99, true), (150, false)]]);
    let mut altered = out[1].clone();
    altered.orders[0].is_late = false;
    assert_ne!(altered.digest(), out[1].digest());
}

#[test]
fn bundles_of_a_watermark_that_jumps_end_at_each_cut_off() {
    let (mut bundles, mut out) = (Bundles::new(1, 0, 100, 10), Vec::new());
    for stamp in [310, 50, 320, 199] {
        bundles.step(BundleInput::Order(stamp, 1, [1; 32]), &mut out);
    }
    bundles.step(BundleInput::Watermark(750), &mut out);
    let times: Vec<(Nanos, Nanos, usize)> = out.iter().map(|b| (b.from, b.until, b.orders.len())).collect();
    assert_eq!(times, [(0, 100, 1), (100, 200, 1), (200, 400, 2), (400, 700, 0)]);
}
