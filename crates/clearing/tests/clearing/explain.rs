//! Explanations agree with the fills that they explain.

use clearing::workload;
use clearing::{
    Amounts, Book, Clearing, Explanation, Market, Offer, PairBook, Params, Prices, Rate, SortedOffers, TradeReason,
    clear, explain, fills, verify,
};
use primitives::{AssetId, Fraction, MAX_ISSUED, Price};
use proptest::prelude::*;

fn offer(sell: u32, buy: u32, amount: u64, limit: &str) -> Offer {
    Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit: limit.parse().expect("a price") }
}

/// Checks every explanation against the fills of the verified clearing; returns how many of each kind there were.
fn check(book: &Book, params: &Params, clearing: &Clearing) -> [usize; 6] {
    let verified = verify(book, params, clearing).expect("verifies");
    let mut kinds = [0; 6];
    for (position, (pair, got)) in book.pairs.iter().zip(&verified.fills).enumerate() {
        let value = |asset: AssetId| clearing.valuations[asset.0 as usize];
        let rate = Rate::new(value(pair.sell), value(pair.buy), params.epsilon, params.mu);
        let fill_of = |index| got.each(pair, &rate).find(|fill| fill.0 == index).map_or((0, 0), |f| (f.1, f.2));
        let full_at = |index, sold| fills(pair, &rate, sold).fills_in_full(index);
        let before = walk(pair, &rate);
        for (index, (offers_ahead, units_ahead)) in before.into_iter().enumerate() {
            let said = explain(book, params, clearing, position, index).expect("an offer of the book");
            let Explanation { amount, limit, sold, bought, .. } = said;
            assert_eq!((sold, bought), fill_of(index), "{said}");
            assert_eq!((said.pair_sold, said.offers_ahead, said.units_ahead), (got.sold, offers_ahead, units_ahead));
            let kind = match said.why {
                TradeReason::Full => {
                    assert_eq!(sold, amount);
                    0
                }
                TradeReason::Part { missing } => {
                    assert!(0 < sold && sold < amount);
                    reaches(missing, |more| full_at(index, got.sold + more));
                    1
                }
                TradeReason::NoCounterparty => {
                    assert!(sold == 0 && got.sold == 0 && !said.must_fill);
                    5
                }
                TradeReason::BeyondRate => {
                    assert!(!rate.reaches(limit) && sold == 0);
                    2
                }
                TradeReason::Rounding { earned, needed } => {
                    assert_eq!(rate.payout(amount), Some(earned));
                    assert!(!limit.accepts(amount, earned) && limit.accepts(amount, needed));
                    assert!(rate.reaches(limit) && !full_at(index, MAX_ISSUED));
                    3
                }
                TradeReason::NotReached { missing } => {
                    assert!(rate.reaches(limit) && sold == 0);
                    assert!(!(said.must_fill && clearing.full && missing.is_some()), "{said}");
                    reaches(missing, |more| full_at(index, got.sold + more));
                    4
                }
            };
            kinds[kind] += 1;
            assert!(said.to_string().ends_with('.'));
        }
    }
    let offers: usize = (0..book.pairs.len())
        .map(|pair| (0..).take_while(|index| explain(book, params, clearing, pair, *index).is_some()).count())
        .sum();
    assert_eq!((kinds.iter().sum::<usize>(), offers), (book.offers(), book.offers()));
    kinds
}

/// For each offer, the number of offers walked before it and their units: first those that must fill, then the
/// others.
fn walk(pair: &PairBook, rate: &Rate) -> Vec<(usize, u64)> {
    let offers: Vec<_> = pair.offers().collect();
    let mut order: Vec<usize> = (0..offers.len()).collect();
    order.sort_by_key(|index| !rate.must_fill(offers[*index].0, offers[*index].1));
    let mut result = vec![(0, 0); offers.len()];
    let mut units = 0;
    for (count, index) in order.into_iter().enumerate() {
        result[index] = (count, units);
        units += offers[index].1;
    }
    result
}

/// `missing` is exactly the amount that would fill the offer; if it is `None`, no amount would.
fn reaches(missing: Option<u64>, full_with: impl Fn(u64) -> bool) {
    match missing {
        Some(missing) => assert!(missing > 0 && full_with(missing) && !full_with(missing - 1)),
        None => assert!(!full_with(MAX_ISSUED / 4)),
    }
}

#[test]
fn of_two_offers_that_meet() {
    let offers = [offer(0, 1, 1_000, "0.9"), offer(1, 0, 700, "0.9"), offer(0, 1, 5, "3"), offer(1, 0, 3, "0.99")];
    let sorted = SortedOffers::new(2, &offers);
    let (book, params) = (sorted.book(), Params::default());
    let clearing = clear(&book, &params, None).expect("a proper book");
    check(&book, &params, &clearing);
    let text = |pair, index| explain(&book, &params, &clearing, pair, index).expect("an offer").to_string();
    assert!(
        text(0, 1).starts_with("5 asset 0 at 3 asset 1 or better: does not trade, as its limit is"),
        "{}",
        text(0, 1)
    );
    assert!(explain(&book, &params, &clearing, 0, 2).is_none());
    assert!(explain(&book, &params, &clearing, 2, 0).is_none());
}

/// Nobody sells asset 2, so that there is no price for it, however little the offer asks for.
#[test]
fn of_an_offer_that_nobody_can_pay() {
    let offers = [offer(0, 1, 100_000, "0.9"), offer(1, 0, 70_000, "0.9"), offer(0, 2, 9_000, "0.000000000000000001")];
    let sorted = SortedOffers::new(3, &offers);
    let (book, params) = (sorted.book(), Params::default());
    let clearing = clear(&book, &params, None).expect("a proper book");
    assert!(clearing.full);
    assert_eq!(check(&book, &params, &clearing)[5], 1);
    let said = explain(&book, &params, &clearing, 1, 0).expect("an offer").to_string();
    assert!(said.contains("no chain of offers leads from asset 2 back to asset 0"), "{said}");
}

#[test]
fn of_a_market() {
    let sorted = workload::cycle_book(6, 600, 4);
    let (book, params) = (sorted.book(), Params::default());
    let kinds = check(&book, &params, &clear(&book, &params, None).expect("a proper book"));
    assert!(kinds[0] > 100 && kinds[1] > 0 && kinds[2] > 10, "{kinds:?}");
}

fn any_price() -> impl Strategy<Value = Price> {
    let near = (8u64..13).prop_map(|tenths| Price::from_f64(tenths as f64 / 10.0).expect("a price"));
    let wild = (10_000_000_000_000_000u64..100_000_000_000_000_000, -18i32..18)
        .prop_map(|(m, d)| Price::from_parts(m, d).expect("in range"));
    prop_oneof![6 => near, 1 => wild]
}

fn any_offer() -> impl Strategy<Value = Offer> {
    let amount = prop_oneof![3 => 1u64..30, 3 => 1u64..1_000_000, 1 => 1u64..MAX_ISSUED / 64];
    (0..3u32, 1..3u32, amount, any_price()).prop_map(|(sell, step, amount, limit)| Offer {
        sell: AssetId(sell),
        buy: AssetId((sell + step) % 3),
        amount,
        limit,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn of_any_book_and_any_prices(
        offers in prop::collection::vec(any_offer(), 1..40),
        valuations in prop::option::of(prop::collection::vec(any_price(), 3)),
        zero in any::<bool>(),
    ) {
        let sorted = SortedOffers::new(3, &offers);
        let book = sorted.book();
        let epsilon = if zero { Fraction::ZERO } else { Params::default().epsilon };
        let params = Params { epsilon, ..Params::default() };
        let market = Market::new(&book).unwrap();
        let clearing = match valuations {
            None => market.clear(&params, None).unwrap(),
            Some(valuations) => {
                let amounts: Amounts = market.amounts(&params, &valuations).unwrap();
                let prices = Prices { valuations, iterations: 0, demand_queries: 0, imbalance: 0.0, looks: 0,
                    unsolved: vec![], interior_parts: 0 };
                market.conclude(&params, prices, amounts)
            }
        };
        check(&book, &params, &clearing);
    }
}
