//! Orders for exact amounts: what they promise, and what they cannot do to others.

use clearing::{
    Book, Clearing, ExactOrder, Offer, Params, Rate, SortedOffers, clear, verify,
    workload::{cycle_book, cycles, of_few_units},
};
use primitives::{AssetId, ExactSide, Price};
use proptest::prelude::*;

fn cleared(book: &Book) -> Clearing {
    let clearing = clear(book, &Params::default(), None).expect("a proper book");
    verify(book, &Params::default(), &clearing).expect("a valid clearing");
    clearing
}

fn rate(clearing: &Clearing, order: &ExactOrder) -> Rate {
    clearing.rate(&Params::default(), order.sell, order.buy).expect("both have valuations")
}

#[test]
fn a_sale_of_all_or_nothing_receives_the_rate_and_at_least_its_bound() {
    let sorted = cycle_book(10, 5_000, 3);
    let without = cleared(&sorted.book());
    let order = ExactOrder::sell(AssetId(2), 12_345, AssetId(1), 1);
    let paid = rate(&without, &order).payout(12_345).expect("few units");
    let exacts = vec![order, ExactOrder { bound: paid, ..order }, ExactOrder { bound: paid + 1, ..order }];
    let with = cleared(&Book { exacts, ..sorted.book() });
    assert_eq!(with.exacts.iter().map(|fill| (fill.order, fill.other)).collect::<Vec<_>>(), [(0, paid), (1, paid)]);
    assert_eq!(order.moves(paid), (12_345, paid));
}

/// 32 orders that no tries could fill used to spend all tries, so that none of those behind them was filled.
#[test]
fn orders_that_cannot_fit_starve_nobody() {
    let sorted = cycle_book(50, 50_000, 3);
    let small = |at: u32| ExactOrder::buy(AssetId(1), 1_000 + u64::from(at), AssetId(2), 1 << 30);
    let giant = |at: u32| ExactOrder::buy(AssetId(1), (1 << 44) + u64::from(at), AssetId(2), 1 << 56);
    let alone = cleared(&Book { exacts: (0..100).map(small).collect(), ..sorted.book() });
    assert_eq!(alone.exacts.len(), 100);
    let exacts = (0..32).map(giant).chain((0..100).map(small)).collect();
    let book = Book { exacts, ..sorted.book() };
    let both = cleared(&book);
    assert_eq!(both.exacts.len(), 100);
    assert!(both.exacts.iter().all(|fill| fill.order >= 32));
    // Nor does an order that there is room for by itself make others wait for ever that it leaves no room for.
    let tries = both.report.spending.tries;
    assert!(tries <= 4, "{tries}");
}

/// A book at even prices, in which asset 1 is sold for asset 2 alone, as much as anybody wants, and asset 2 for asset
/// 0, but little of it.
fn short_of_a_third_asset() -> SortedOffers {
    let offer = |sell, buy, amount, limit: &str| Offer {
        sell: AssetId(sell),
        buy: AssetId(buy),
        amount,
        limit: limit.parse().expect("a price"),
    };
    let mut offers = Vec::new();
    for (sell, buy) in (0..3).flat_map(|sell| (0..3).filter(move |buy| *buy != sell).map(move |buy| (sell, buy))) {
        offers.push(offer(sell, buy, 50_000_000, "0.5"));
    }
    offers.extend((0..100).map(|_| offer(1, 2, 10_000_000, "0.9995")));
    offers.push(offer(2, 0, 10_000_000, "0.9995"));
    SortedOffers::new(3, &offers)
}

/// Orders that there is room for, as far as their own assets tell, and that no clearing fills. They use up the tries of
/// those behind them, but those of one owner only a share.
#[test]
fn one_owners_orders_in_vain_leave_tries_for_the_others() {
    let sorted = short_of_a_third_asset();
    let small = |at: u32| ExactOrder::buy(AssetId(1), 10_000 + u64::from(at), AssetId(0), 1 << 30);
    let large = |at: u32| ExactOrder::buy(AssetId(1), 20_000_000 + u64::from(at), AssetId(0), 1 << 40);
    let alone = cleared(&Book { exacts: vec![large(0)], ..sorted.book() });
    assert!(alone.exacts.is_empty(), "there is too little of the third asset");
    let filled = |owner: Option<u32>| {
        let of_one = |at: u32| ExactOrder { owner, ..large(at) };
        let exacts = (0..128).map(|at| if at % 4 == 0 { of_one(at) } else { small(at) }).collect();
        cleared(&Book { exacts, ..sorted.book() }).exacts.iter().filter(|fill| fill.order % 4 > 0).count()
    };
    assert!(filled(None) < 64, "they starve the others: {}", filled(None));
    assert_eq!(filled(Some(7)), 96);
}

/// All tries together cost no more than an amount step, so orders just too large to fit are as cheap as small ones.
#[test]
fn tries_have_one_budget() {
    let sorted = cycle_book(50, 50_000, 3);
    let looks = |book: &Book| cleared(book).report.spending.amount_looks;
    let without = looks(&sorted.book());
    let params = Params::default();
    let budget = u64::from(params.budget.amounts) * (2 * 50 * 49 + 50 + 50_000 / 8);
    let some = |at: u32| {
        let order = ExactOrder::buy(AssetId(at % 50), 40_000_000 << (at % 7), AssetId((at + 7) % 50), 1 << 48);
        ExactOrder { units: order.units + u64::from(at), ..order }
    };
    let with = looks(&Book { exacts: (0..1_000).map(some).collect(), ..sorted.book() });
    assert!(with - without <= 2 * budget, "{with} {without} {budget}");
}

/// The same orders of both sides, on 1, 2 and 7 threads.
#[test]
fn threads_fill_the_same_exact_orders() {
    let sorted = cycle_book(20, 20_000, 5);
    let order = |at: u32| {
        let (a, b) = (AssetId(at % 20), AssetId((at + 3) % 20));
        let units = 1_000 << (at % 24);
        if at.is_multiple_of(2) { ExactOrder::buy(a, units, b, 1 << 50) } else { ExactOrder::sell(a, units, b, 1) }
    };
    let book = Book { exacts: (0..200).map(order).collect(), ..sorted.book() };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| cleared(&book))
    };
    let one = run(1);
    let sides = |side| one.exacts.iter().filter(|fill| book.exacts[fill.order as usize].side == side).count();
    assert!(sides(ExactSide::Buy) > 10 && sides(ExactSide::Sell) > 10 && one.exacts.len() < 200);
    for threads in [2, 7] {
        let other = run(threads);
        assert_eq!((&one.trades, &one.exacts, &one.valuations), (&other.trades, &other.exacts, &other.valuations));
    }
}

fn any_offers() -> impl Strategy<Value = Vec<Offer>> {
    prop_oneof![
        (any::<u64>(), 2u32..6).prop_map(|(seed, assets)| cycles(assets, 200, seed)),
        (any::<u64>(), 2u32..5).prop_map(|(seed, assets)| of_few_units(1, assets, 12, seed)),
        prop::collection::vec((0u32..4, 1u32..4, 1u64..1_000_000, 5u64..40), 0..30).prop_map(|offers| {
            let offer = |(a, step, amount, tenths): (u32, u32, u64, u64)| Offer {
                sell: AssetId(a),
                buy: AssetId((a + step) % 4),
                amount,
                limit: Price::from_f64(tenths as f64 / 10.0).expect("a price"),
            };
            offers.into_iter().map(offer).collect()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever exact orders there are, prices and fullness are those of the offers, offers that must execute in full
    /// do, and each order moves exactly its units within its bound or nothing.
    #[test]
    fn exact_orders_move_neither_prices_nor_fullness(
        offers in any_offers(),
        orders in prop::collection::vec((any::<bool>(), 0u32..6, 1u32..6, 1u64..40, 1u64..40), 0..20),
    ) {
        let sorted = SortedOffers::new(6, &offers);
        let order = |(buys, a, step, units, bound): (bool, u32, u32, u64, u64)| {
            let (a, b) = (AssetId(a), AssetId((a + step) % 6));
            let (units, bound) = (1 << (units / 2), 1 << (bound / 2));
            if buys { ExactOrder::buy(a, units, b, bound) } else { ExactOrder::sell(a, units, b, bound) }
        };
        let exacts: Vec<ExactOrder> = orders.into_iter().map(order).filter(|order| order.sell != order.buy).collect();
        let book = Book { exacts, ..sorted.book() };
        let (without, with) = (cleared(&sorted.book()), cleared(&book));
        prop_assert_eq!(&without.valuations, &with.valuations);
        prop_assert_eq!((without.full, &without.short), (with.full, &with.short));
        if with.exacts.is_empty() {
            prop_assert_eq!(&without.trades, &with.trades);
        }
        for fill in &with.exacts {
            let order = &book.exacts[fill.order as usize];
            let (sold, bought) = order.moves(fill.other);
            match order.side {
                ExactSide::Buy => {
                    prop_assert!(bought == order.units && sold <= order.bound);
                    // It pays the fewest units that buy as many, by the rate itself.
                    let pays = |sold| rate(&with, order).payout(sold).is_none_or(|paid| paid >= order.units);
                    prop_assert!(pays(sold) && !pays(sold - 1));
                }
                ExactSide::Sell => prop_assert!(sold == order.units && bought >= order.bound),
            }
        }
    }
}
