//! Pools and exact-amount buy orders in a batch.

use clearing::workload::{self};
use clearing::{
    Book, Clearing, ExactFill, ExactOrder, InputError, Offer, Params, Pool, Rate, Solver, SortedOffers, Violation,
    clear, verify,
};
use kernel::Dice;
use primitives::{Amount, AssetId, ExactSide, Fraction, Price};
use proptest::prelude::*;

fn pool(a: u32, b: u32, reserve_a: Amount, reserve_b: Amount) -> Pool {
    Pool { a: AssetId(a), b: AssetId(b), reserve_a, reserve_b, fee: Fraction::power_of_two(9) }
}

fn offer(sell: u32, buy: u32, amount: u64, limit: &str) -> Offer {
    Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit: limit.parse().expect("a price") }
}

fn buy(bought: (u32, Amount), most: (u32, Amount)) -> ExactOrder {
    ExactOrder::buy(AssetId(bought.0), bought.1, AssetId(most.0), most.1)
}

fn cleared(book: &Book, params: &Params) -> Clearing {
    let clearing = clear(book, params, None).expect("a proper book");
    verify(book, params, &clearing).expect("a clearing verifies");
    clearing
}

fn rate(clearing: &Clearing, sell: u32, buy: u32) -> f64 {
    clearing.valuations[sell as usize].to_f64() / clearing.valuations[buy as usize].to_f64()
}

/// Only the pool offers asset 1.
#[test]
fn a_pool_alone_meets_an_offer() {
    let sorted = SortedOffers::new(2, &[offer(0, 1, 1_000_000, "0.5")]);
    let book = Book { pools: vec![pool(0, 1, 100_000_000, 100_000_000)], ..sorted.book() };
    for solver in [Solver::Newton, Solver::Tatonnement] {
        let clearing = cleared(&book, &Params { solver, ..Params::default() });
        assert!(clearing.full, "{:?}", clearing.report);
        let trade = clearing.pools[0];
        assert_eq!((trade.sell, trade.buy), (AssetId(1), AssetId(0)));
        assert!(trade.bought > 990_000, "{trade:?}");
        // Beyond the fee, the price moves by about twice the offer's share of the pool.
        assert!((0.96..0.99).contains(&rate(&clearing, 0, 1)), "{}", rate(&clearing, 0, 1));
    }
}

/// Two pools that price the same pair differently trade with each other until they agree, up to their fees.
#[test]
fn pools_agree() {
    let book =
        Book { assets: 2, pools: vec![pool(0, 1, 1 << 40, 1 << 40), pool(1, 0, 5 << 40, 4 << 40)], ..Book::default() };
    let clearing = cleared(&book, &Params::default());
    assert!(clearing.full && clearing.pools.len() == 2, "{:?}", clearing.report);
    let after = |number: usize| {
        let (pool, trade) = (&book.pools[number], clearing.pools[number]);
        let change = |asset| {
            i128::from(trade.bought) * i128::from(trade.buy == asset)
                - i128::from(trade.sold) * i128::from(trade.sell == asset)
        };
        let (a, b) = (i128::from(pool.reserve_a) + change(pool.a), i128::from(pool.reserve_b) + change(pool.b));
        if pool.a == AssetId(0) { b as f64 / a as f64 } else { a as f64 / b as f64 }
    };
    assert!((after(0) / after(1) - 1.0).abs() < 0.006, "{} {}", after(0), after(1));
}

/// A book with pools between random assets, some far from the market.
fn with_pools(assets: u32, offers: usize, seed: u64) -> (SortedOffers, Vec<Pool>) {
    let list = workload::cycles(assets, offers, seed);
    let mut random = Dice::new(seed);
    let values: Vec<f64> = (0..assets).map(|_| random.between(1.0, 1000.0)).collect();
    let pools = (0..assets)
        .map(|a| {
            let b = (a + 1 + random.below(u64::from(assets) - 1) as u32) % assets;
            let worth = random.between(1e7, 1e11);
            let reserve = |asset: u32, shift: f64| (worth * shift / values[asset as usize]) as u64 + 1;
            let shift = random.between(0.9, 1.1);
            pool(a, b, reserve(a, 1.0), reserve(b, shift))
        })
        .collect();
    (SortedOffers::new(assets, &list), pools)
}

#[test]
fn books_with_pools_are_solved() {
    for (assets, offers, seed) in [(3, 500, 1), (10, 2_000, 2), (30, 20_000, 3), (50, 100_000, 4)] {
        let (sorted, pools) = with_pools(assets, offers, seed);
        let book = Book { pools, ..sorted.book() };
        for epsilon in [Fraction::ZERO, Fraction::power_of_two(15)] {
            let clearing = cleared(&book, &Params { epsilon, ..Params::default() });
            assert!(clearing.full, "{assets} {epsilon} {:?}", clearing.report);
            assert!(clearing.pools.len() as u32 > assets / 2);
        }
    }
}

#[test]
fn what_is_wrong_with_pools_and_purchases_is_found() {
    let (sorted, pools) = with_pools(10, 2_000, 2);
    let book = Book { pools, exacts: vec![buy((1, 1_000), (2, 1 << 40)); 3], ..sorted.book() };
    let params = Params::default();
    let good = cleared(&book, &params);
    assert_eq!(good.exacts.len(), 3);
    let check = |change: &dyn Fn(&mut Clearing)| {
        let mut bad = good.clone();
        change(&mut bad);
        verify(&book, &params, &bad).expect_err("a violation")
    };
    assert!(matches!(check(&|c| c.pools[0].sold += 1), Violation::Pool(_)));
    assert!(matches!(check(&|c| c.pools[0].bought += 1), Violation::Pool(_)));
    assert!(matches!(check(&|c| c.pools[0].sold = u64::MAX), Violation::Pool(_)));
    assert!(matches!(check(&|c| c.pools.swap(0, 1)), Violation::PoolNotFull(_) | Violation::Pool(_)));
    assert!(matches!(check(&|c| c.pools[0].pool = 99), Violation::PoolNotFull(_) | Violation::Pool(_)));
    assert!(matches!(check(&|c| c.pools.clear()), Violation::PoolNotFull(_)));
    assert!(matches!(check(&|c| c.exacts[0].other -= 1), Violation::ExactOrder(0)));
    assert!(matches!(check(&|c| c.exacts[0].order = 1), Violation::ExactOrder(1)));
    assert!(matches!(check(&|c| c.exacts.push(ExactFill { order: 3, other: 1 })), Violation::ExactOrder(3)));
    let claimed_short = |c: &mut Clearing| {
        (c.full, c.short) = (false, vec![AssetId(0)]);
        c.pools.clear();
    };
    assert!(matches!(check(&claimed_short), Violation::ExactOrder(0)));
}

#[test]
fn improper_pools_and_orders_are_refused() {
    let error = |book: Book| clear(&book, &Params::default(), None).expect_err("improper");
    let pools = |pool| Book { assets: 2, pools: vec![pool], ..Book::default() };
    assert_eq!(error(pools(pool(0, 0, 1, 1))), InputError::Pool(0));
    assert_eq!(error(pools(pool(0, 2, 1, 1))), InputError::Pool(0));
    assert_eq!(error(pools(pool(0, 1, 0, 1))), InputError::Pool(0));
    assert_eq!(error(pools(pool(0, 1, 1, u64::MAX))), InputError::TooMuch(AssetId(1)));
    let buys = |order| Book { assets: 2, exacts: vec![order], ..Book::default() };
    assert_eq!(error(buys(buy((0, 1), (0, 1)))), InputError::ExactOrder(0));
    assert_eq!(error(buys(buy((0, 0), (1, 1)))), InputError::ExactOrder(0));
    assert_eq!(error(buys(buy((0, 1), (9, 1)))), InputError::ExactOrder(0));
    assert_eq!(error(buys(buy((0, 1), (1, u64::MAX)))), InputError::TooMuch(AssetId(1)));
}

#[test]
fn buy_orders_pay_the_rate_and_no_more_than_they_may() {
    let sorted = workload::cycle_book(10, 5_000, 3);
    let params = Params::default();
    let without = cleared(&sorted.book(), &params);
    let rate = Rate::new(without.valuations[2], without.valuations[1], params.epsilon, params.mu);
    let order = buy((1, 12_345), (2, 1 << 40));
    let cost = order.other(&rate).expect("affordable");
    assert!(rate.payout(cost) >= Some(12_345) && rate.payout(cost - 1) < Some(12_345));
    let just = ExactOrder { bound: cost, ..order };
    let short = ExactOrder { bound: cost - 1, ..order };
    let buys = vec![order, just, short];
    let clearing = cleared(&Book { exacts: buys, ..sorted.book() }, &params);
    // Buy orders do not influence prices.
    assert_eq!(clearing.valuations, without.valuations);
    assert_eq!(clearing.exacts, [ExactFill { order: 0, other: cost }, ExactFill { order: 1, other: cost }]);
}

/// Of more orders than can be filled, some are filled, the same on any number of threads.
#[test]
fn what_cannot_be_had_is_not_filled() {
    let sorted = workload::cycle_book(10, 5_000, 3);
    let order = |at: u64| buy((1, 1_000 << (at % 20)), (2, 1 << 45));
    let book = Book { exacts: (0..60).map(order).collect(), ..sorted.book() };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| cleared(&book, &Params::default()))
    };
    let (one, seven) = (run(1), run(7));
    assert!(one.full && !one.exacts.is_empty() && one.exacts.len() < 60, "{}", one.exacts.len());
    assert_eq!((&one.trades, &one.exacts), (&seven.trades, &seven.exacts));
}

fn any_price() -> impl Strategy<Value = Price> {
    (5u64..40).prop_map(|tenths| Price::from_f64(tenths as f64 / 10.0).expect("a price"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the book: clearings verify, reserves' products never fall, and buyers never overpay.
    #[test]
    fn any_book_with_pools_clears(
        offers in prop::collection::vec((0u32..4, 1u32..4, 1u64..1_000_000, any_price()), 0..30),
        pools in prop::collection::vec((0u32..4, 1u32..4, 1u64..1 << 40, 1u64..1 << 40, 4u32..12), 0..6),
        buys in prop::collection::vec((0u32..4, 1u32..4, 1u64..10_000, 1u64..10_000), 0..6),
        solver in prop_oneof![3 => Just(Solver::Newton), 1 => Just(Solver::Tatonnement)],
    ) {
        let next = |a: u32, step: u32| AssetId((a + step) % 4);
        let list: Vec<Offer> = offers
            .into_iter()
            .map(|(a, step, amount, limit)| Offer { sell: AssetId(a), buy: next(a, step), amount, limit })
            .collect();
        let sorted = SortedOffers::new(4, &list);
        let pools: Vec<Pool> = pools
            .into_iter()
            .map(|(a, step, reserve_a, reserve_b, fee)| {
                Pool { a: AssetId(a), b: next(a, step), reserve_a, reserve_b, fee: Fraction::power_of_two(fee) }
            })
            .collect();
        let exacts: Vec<ExactOrder> = buys
            .into_iter()
            .map(|(a, step, bought, most)| match bought % 2 {
                0 => ExactOrder::buy(AssetId(a), bought, next(a, step), most),
                _ => ExactOrder::sell(AssetId(a), bought, next(a, step), most),
            })
            .collect();
        let book = Book { pools, exacts, ..sorted.book() };
        let params = Params { solver, ..Params::default() };
        let clearing = clear(&book, &params, None).unwrap();
        let verified = verify(&book, &params, &clearing);
        prop_assert!(verified.is_ok(), "{:?}", verified);
        for trade in &clearing.pools {
            let pool = &book.pools[trade.pool as usize];
            let (own, other) = if trade.sell == pool.a { (pool.reserve_a, pool.reserve_b) } else { (pool.reserve_b,
                pool.reserve_a) };
            let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
            prop_assert!(product(own - trade.sold, other + trade.bought) >= product(own, other));
        }
        for fill in &clearing.exacts {
            let order = &book.exacts[fill.order as usize];
            let is_within = match order.side {
                ExactSide::Buy => fill.other <= order.bound,
                ExactSide::Sell => fill.other >= order.bound,
            };
            prop_assert!(is_within);
        }
    }
}

/// Assets that nothing joins to those of the buy orders, and that no whole units clear, cost no order its fill. A claim
/// that fills an order in a group that is not full is refused.
#[test]
fn a_group_that_is_not_full_costs_no_order_elsewhere() {
    let liquid = workload::cycles(10, 2_000, 2);
    let moved = |asset: AssetId| AssetId(asset.0 + 10);
    let is_short = |few: &Vec<Offer>| !cleared(&SortedOffers::new(3, few).book(), &Params::default()).full;
    let few = (0..40).map(|seed| workload::of_few_units(1, 3, 12, seed)).find(is_short).expect("some are not full");
    let few = few.iter().map(|o| Offer { sell: moved(o.sell), buy: moved(o.buy), ..*o });
    let buys = vec![buy((1, 1_000), (2, 1 << 40)); 3];
    let (alone, both) = (SortedOffers::new(10, &liquid), [liquid.clone(), few.collect()].concat());
    let (params, both) = (Params::default(), SortedOffers::new(13, &both));
    let alone = cleared(&Book { exacts: buys.clone(), ..alone.book() }, &params);
    let book = Book { exacts: [buys, vec![buy((10, 1), (11, 100))]].concat(), ..both.book() };
    let both = cleared(&book, &params);
    assert!(alone.full && !both.full && !alone.exacts.is_empty(), "{:?}", alone.exacts);
    assert_eq!(alone.exacts, both.exacts);
    let rate = Rate::new(both.valuations[11], both.valuations[10], params.epsilon, params.mu);
    let paid = book.exacts[3].other(&rate).expect("within its maximum");
    let mut claim = both.clone();
    claim.exacts.push(ExactFill { order: 3, other: paid });
    assert_eq!(verify(&book, &params, &claim), Err(Violation::ExactOrder(3)));
}

/// Three foreign assets with few units, which nothing fills in full, and a liquid market beside them.
fn with_foreign(seed: u64, offers: usize) -> (Vec<Offer>, Vec<Offer>) {
    let moved = |asset: AssetId| AssetId(asset.0 + 10);
    let is_short = |few: &Vec<Offer>| !cleared(&SortedOffers::new(3, few).book(), &Params::default()).full;
    let few = (seed..).map(|seed| workload::of_few_units(1, 3, 12, seed)).find(is_short).expect("some are not full");
    let few = few.iter().map(|o| Offer { sell: moved(o.sell), buy: moved(o.buy), ..*o }).collect();
    (workload::cycles(10, offers, seed), few)
}

/// Fullness is of a group: what is short elsewhere changes no price, no amount and no proof of a group.
#[test]
fn a_group_is_cleared_and_verified_as_if_it_were_alone() {
    for (seed, offers) in [(1, 200), (5, 2_000), (9, 40_000)] {
        let (liquid, few) = with_foreign(seed, offers);
        let (alone, foreign) = (SortedOffers::new(13, &liquid), SortedOffers::new(13, &few));
        let both = SortedOffers::new(13, &[liquid, few].concat());
        let params = Params::default();
        let last = vec![Price::ONE; 13];
        let of = |sorted: &SortedOffers| clear(&sorted.book(), &params, Some(&last)).expect("a proper book");
        let (alone, foreign, all) = (of(&alone), of(&foreign), of(&both));
        assert_eq!(
            (&alone.short[..], &foreign.short[..], &all.short[..]),
            (&[][..], &[AssetId(10)][..], &[AssetId(10)][..])
        );
        assert_eq!(
            (&all.valuations[..10], &all.valuations[10..]),
            (&alone.valuations[..10], &foreign.valuations[10..])
        );
        assert_eq!(all.trades, [alone.trades.clone(), foreign.trades.clone()].concat());
        assert_eq!(all.report.obstacles, foreign.report.obstacles);
        // The liquid group answers for its fullness though another is not full.
        let book = both.book();
        verify(&book, &params, &all).expect("a clearing verifies");
        let (pair, idle) = (all.trades[0], Clearing { trades: foreign.trades.clone(), ..all.clone() });
        assert!(matches!(verify(&book, &params, &idle), Err(Violation::NotFull { sell, .. }) if sell == pair.sell));
        let named = |short: &[u32]| {
            let short: Vec<AssetId> = short.iter().map(|asset| AssetId(*asset)).collect();
            verify(&book, &params, &Clearing { short, ..all.clone() })
        };
        assert!(named(&[0, 10]).is_ok());
        for wrong in [&[][..], &[11], &[10, 0], &[10, 10], &[10, 13], &[10, u32::MAX]] {
            assert_eq!(named(wrong), Err(Violation::Short), "{wrong:?}");
        }
        let claim = Clearing { full: true, ..all.clone() };
        assert_eq!(verify(&book, &params, &claim), Err(Violation::Short));
    }
}
