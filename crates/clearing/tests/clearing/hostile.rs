//! Books of an attacker who wants to break a clearing, and books within the minimum sizes: each clearing is checked
//! against an oracle that shares no code with the crate.

use crate::exact;
use clearing::workload::{self, hostile};
use clearing::{
    Book, Budget, Clearing, Market, Offer, Params, Reason, SortedOffers, Violation, clear, least_units, verify,
};
use primitives::{AssetId, ExactSide, Fraction, Price};

fn offer(sell: u32, buy: u32, amount: u64, limit: &str) -> Offer {
    Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit: limit.parse().expect("a price") }
}

/// Clears, and checks the clearing against the oracle.
fn cleared(assets: u32, offers: &[Offer], params: &Params) -> Clearing {
    let sorted = SortedOffers::new(assets, offers);
    let book = sorted.book();
    let clearing = clear(&book, params, None).expect("a proper book");
    let fills = exact::fills_of(&book, params, &clearing).expect("it verifies");
    exact::check(&book, params, &clearing.valuations, &fills, clearing.full).expect("the oracle agrees");
    assert_eq!(clearing.full, clearing.report.obstacles.is_empty());
    clearing
}

#[test]
fn hostile_books_clear() {
    let mut full = 0;
    for seed in 0..2_000 {
        let book = hostile::hostile(seed, 14, 50);
        full += u32::from(cleared(book.assets, &book.offers, &Params::default()).full);
    }
    assert!(full > 1_500, "{full} of 2000 are full");
}

/// Pools of an attacker beside his offers: each clearing conserves, keeps every limit and the rule of pools, names what
/// is not full, and stays within the budget.
#[test]
fn hostile_pools_clear() {
    let params = Params::default();
    let least = least_units(params.epsilon, params.mu);
    let (mut full, mut traded) = ([0; 2], 0);
    for seed in 0..1_200 {
        // Half of the books are such as a ledger admits: offers of the least size, and pools that are awake.
        let is_admitted = seed % 2 == 1;
        let of =
            if is_admitted { hostile::within_minimum(seed, 14, 50, least) } else { hostile::hostile(seed, 14, 50) };
        let pools = hostile::pools(&of, seed, 1 + seed as usize % 12, if is_admitted { 4 * least } else { 1 });
        let sorted = of.sorted();
        let book = Book { pools, ..sorted.book() };
        let clearing = clear(&book, &params, None).expect("a proper book");
        verify(&book, &params, &clearing).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        let (assets, links) = (u64::from(of.assets), (of.offers.len() + 2 * book.pools.len()) as u64);
        let spending = clearing.report.spending;
        assert!(spending.price_looks <= 3 * u64::from(Budget::default().prices) * (2 * assets + links / 4_096));
        assert!(spending.amount_looks <= 6 * u64::from(Budget::default().amounts) * (4 * links + assets));
        traded += clearing.pools.len();
        full[usize::from(is_admitted)] += u32::from(clearing.full);
    }
    // Pools at prices decades away from those of the offers exhaust the budget of prices in one book of five.
    assert!(full[1] > 450 && traded > 1_000, "{full:?} of 600 are full, {traded} pools traded");
}

/// Exact orders of an attacker beside his offers and pools: valuations, and what is full, are as without them; each
/// fill is within its bound, and all verify; tries cost no more than another amount step of each group.
#[test]
fn hostile_exact_orders_clear() {
    let params = Params::default();
    let least = least_units(params.epsilon, params.mu);
    let (mut filled, mut asked) = (0, 0);
    for seed in 0..1_200 {
        let of = match seed % 2 {
            0 => hostile::hostile(seed, 14, 50),
            _ => hostile::within_minimum(seed, 14, 50, least),
        };
        let pools = if seed % 3 == 0 { hostile::pools(&of, seed, 4, 4 * least) } else { Vec::new() };
        let exacts = hostile::exacts(&of, seed, 1 + seed as usize % 60);
        let sorted = of.sorted();
        let without = Book { pools, ..sorted.book() };
        let plain = clear(&without, &params, None).expect("a proper book");
        let book = Book { exacts, ..without };
        let clearing = clear(&book, &params, None).expect("a proper book");
        verify(&book, &params, &clearing).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        assert_eq!((&clearing.valuations, clearing.full), (&plain.valuations, plain.full), "seed {seed}");
        assert_eq!(clearing.short, plain.short, "seed {seed}");
        for fill in &clearing.exacts {
            let order = &book.exacts[fill.order as usize];
            let (sold, bought) = order.moves(fill.other);
            let within = match order.side {
                ExactSide::Buy => sold <= order.bound && bought == order.units,
                ExactSide::Sell => bought >= order.bound && sold == order.units,
            };
            assert!(within && sold > 0 && bought > 0, "seed {seed}: {order:?} {fill:?}");
        }
        let (assets, links) = (u64::from(of.assets), (of.offers.len() + 2 * book.pools.len()) as u64);
        let spending = clearing.report.spending;
        assert!(spending.amount_looks <= 12 * u64::from(Budget::default().amounts) * (4 * links + assets));
        (filled, asked) = (filled + clearing.exacts.len(), asked + book.exacts.len());
    }
    assert!(filled > 1_000 && filled < asked / 2, "{filled} of {asked} are filled");
}

#[test]
fn larger_hostile_books_clear() {
    for seed in 5_000..5_060 {
        let book = hostile::hostile(seed, 60, 2_000);
        cleared(book.assets, &book.offers, &Params::default());
    }
}

/// Pairs with limits of 0.01 and 10 to 1,000 stacked over 20 assets: the step of a solver that clamps lost pivots
/// grows beyond every number here.
#[test]
fn towers_clear() {
    for (assets, amount, back) in [(16, 10, "10"), (20, 1_000_000, "1000"), (28, 1_000_000_000_000, "100")] {
        let pair = |low: u32| [offer(low, low + 1, amount, "0.01"), offer(low + 1, low, amount, back)];
        let mut offers: Vec<Offer> = (0..assets - 1).flat_map(pair).collect();
        cleared(assets, &offers, &Params::default());
        offers.extend((0..assets - 1).map(|low| offer(low + 1, low, 1_000, "0.001")));
        cleared(assets, &offers, &Params::default());
        offers.push(offer(0, assets - 1, 1, "0.000000000000000001"));
        cleared(assets, &offers, &Params::default());
    }
}

/// Two crossing offers, at valuations so far apart that neither could be paid in units that exist.
#[test]
fn prices_excuse_nothing() {
    let offers = [offer(0, 1, 1_000_000, "0.5"), offer(1, 0, 1_000_000, "0.5")];
    let sorted = SortedOffers::new(2, &offers);
    let (book, params) = (sorted.book(), Params::default());
    let apart = ["990000000000000000", "0.000000000000000001"].map(|text| text.parse::<Price>().expect("a price"));
    for valuations in [apart.to_vec(), vec![apart[1], apart[0]]] {
        let idle = Clearing { valuations: valuations.clone(), full: true, ..Clearing::default() };
        assert!(exact::check(&book, &params, &valuations, &[], true).is_err());
        assert!(matches!(verify(&book, &params, &idle), Err(Violation::NotFull { .. })));
        let amounts = Market::new(&book).expect("proper").amounts(&params, &valuations).expect("proper");
        assert!(!amounts.full);
    }
    assert_eq!(cleared(2, &offers, &params).trades.len(), 2);
    // An offer that asks for more than can exist need not fill.
    let greedy = [offer(0, 1, 1_000_000_000, "100000000000"), offer(1, 0, 1_000, "0.00000000000001")];
    assert!(cleared(2, &greedy, &params).full);
}

/// Between assets that no chain of offers joins both ways there is no price, and nothing must fill. A clearing that
/// claims a trade there is rejected.
#[test]
fn nothing_trades_across_groups() {
    let offers = [
        offer(0, 1, 1_000_000, "0.9"),
        offer(1, 0, 1_000_000, "0.9"),
        offer(2, 0, 1_000, "0.000001"),
        offer(0, 3, 9, "1"),
    ];
    let params = Params::default();
    let clearing = cleared(4, &offers, &params);
    assert!(clearing.full && clearing.trades.iter().all(|trade| trade.sell.0.max(trade.buy.0) < 2));
    let sorted = SortedOffers::new(4, &offers);
    let mut claim = clearing.clone();
    claim.trades.push(clearing::Trade { sell: AssetId(2), buy: AssetId(0), sold: 1_000 });
    assert!(matches!(verify(&sorted.book(), &params, &claim), Err(Violation::AcrossGroups { .. })));
    // Valuations of assets that do not trade stay unchanged.
    let last = ["3", "5", "7", "11"].map(|text| text.parse::<Price>().expect("a price"));
    let next = clear(&sorted.book(), &params, Some(&last)).expect("proper");
    assert_eq!(next.valuations[2..], last[2..]);
}

/// A part whose amount step has no budget trades nothing and reports it; other parts are not affected.
#[test]
fn a_part_without_budget_trades_nothing() {
    let sorted = workload::hard_of_any_size(7);
    let book = sorted.book();
    let params = Params { budget: Budget { prices: 1, amounts: 0 }, ..Params::default() };
    let clearing = clear(&book, &params, None).expect("proper");
    verify(&book, &params, &clearing).expect("it verifies");
    let stuck: Vec<_> = clearing.report.obstacles.iter().filter(|o| o.reason == Reason::Amounts).collect();
    assert!(!clearing.full && !stuck.is_empty(), "{:?}", clearing.report);
    let is_stuck = |asset: AssetId| stuck.iter().any(|obstacle| obstacle.assets.contains(&asset));
    assert!(clearing.trades.iter().all(|trade| !is_stuck(trade.sell)));
}

/// The budget bounds the spending, in proportion to the size of the book.
#[test]
fn budgets_hold() {
    for seed in 0..300 {
        let book = hostile::hostile(seed, 40, 400);
        let clearing = cleared(book.assets, &book.offers, &Params::default());
        let (assets, offers) = (u64::from(book.assets), book.offers.len() as u64);
        let spending = clearing.report.spending;
        let Budget { prices, amounts } = Budget::default();
        // Twice, as further prices may cost as much again; and once more for the last step of each search. Parts that
        // share an asset both count it.
        let size = 2 * assets + offers / 4_096;
        assert!(spending.price_looks <= 3 * u64::from(prices) * size, "seed {seed}: {spending:?}");
        assert!(spending.amount_looks <= 6 * u64::from(amounts) * (4 * offers + assets), "seed {seed}: {spending:?}");
    }
}

#[test]
fn least_units_are_those_of_the_defaults() {
    let two = Fraction::power_of_two;
    assert_eq!(least_units(two(15), two(10)), 2_115);
    assert_eq!(least_units(Fraction::ZERO, two(10)), 2_048);
    assert_eq!(least_units(two(10), two(9)), 2_048);
    assert_eq!(least_units(two(10), two(10)), u64::MAX);
    for (epsilon, mu) in [(Fraction::ZERO, two(1)), (two(31), two(30)), (two(15), two(10)), (two(7), two(3))] {
        let (least, band) = (least_units(epsilon, mu), mu.units() - epsilon.units());
        let is_enough = |units: u64| u128::from(units) * u128::from(band) >= 2 * u128::from(Fraction::ONE_IN_UNITS);
        assert!(is_enough(least) && !is_enough(least - 1));
    }
}

/// Offers within the minimum sizes that no prices clear in full: 5,164 units of asset 1 must fill and are worth 10.9
/// units of asset 0, of which the two others can trade 10 or 11.
#[test]
fn a_dear_unit_of_a_third_asset_breaks_what_minimum_sizes_promise() {
    let offers = [offer(0, 1, 2_934, "473.8"), offer(1, 2, 5_164, "0.5"), offer(2, 0, 3_000_000, "0.0021")];
    let params = Params::default();
    let least = least_units(params.epsilon, params.mu);
    assert!(offers.iter().all(|o| o.amount.min((o.amount as f64 * o.limit.to_f64()) as u64) >= least));
    let clearing = cleared(3, &offers, &params);
    let is_searched = |reason: Reason| matches!(reason, Reason::Units | Reason::Prices);
    assert!(!clearing.full && clearing.report.obstacles.iter().all(|obstacle| is_searched(obstacle.reason)));
}

/// Within the minimum sizes a clearing is full, except for a few books. In some, units of a third asset are dear. In
/// others, limits are spread over so many decades that prices are at the ends of their range or the budget runs out.
#[test]
fn within_the_minimum_sizes_clearings_are_full_but_for_dear_units() {
    let params = Params::default();
    let least = least_units(params.epsilon, params.mu);
    let (mut full, mut range, mut units) = (0, 0, 0);
    for seed in 0..800 {
        let book = hostile::within_minimum(seed, 20, 200, least);
        let clearing = cleared(book.assets, &book.offers, &params);
        let reasons: Vec<Reason> = clearing.report.obstacles.iter().map(|obstacle| obstacle.reason).collect();
        full += u32::from(clearing.full);
        range += u32::from(reasons.contains(&Reason::Range));
        units += u32::from(reasons.contains(&Reason::Units));
    }
    assert!(units <= 40, "{units} of 800");
    assert!(full >= 720, "{full} of 800 are full, of {range} the range is the reason");
}
