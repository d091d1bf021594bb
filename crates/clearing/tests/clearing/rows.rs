//! Fills by row, reasons by row and rates by pair, compared with the exact oracle and with explanations.

use crate::exact;
use clearing::workload::{self, hostile};
use clearing::{
    Clearing, ExactOrder, Minima, Offer, Params, Pool, RowFill, RowOutcome, SortedOffers, TradeReason, clear, explain,
    least_units,
};
use kernel::Dice;
use num_bigint::BigInt;
use primitives::{Amount, AssetId, Fraction};

/// The position of each row in the book, as (pair, position in it).
fn places(sorted: &SortedOffers, rows: usize, pairs: usize) -> Vec<(usize, usize)> {
    let mut result = vec![(usize::MAX, 0); rows];
    for pair in 0..pairs {
        sorted.rows(pair).iter().enumerate().for_each(|(index, row)| result[*row as usize] = (pair, index));
    }
    result
}

/// Clears `offers` and checks the results of rows against the oracle, against explanations and against each other.
fn check(assets: u32, offers: &[Offer], params: &Params, least: Amount) -> (Clearing, Vec<RowOutcome>) {
    let sorted = SortedOffers::new(assets, offers);
    let book = sorted.book();
    let clearing = clear(&book, params, None).expect("a proper book");
    let places = places(&sorted, offers.len(), book.pairs.len());

    let mut fills: Vec<RowFill> = clearing.fills(&book, &sorted, params).collect();
    fills.sort_unstable();
    let of_oracle = |fill: &RowFill| {
        let (pair, index) = places[fill.row as usize];
        exact::Fill { pair, index, sold: fill.sold, bought: fill.bought }
    };
    let exactly: Vec<exact::Fill> = fills.iter().map(of_oracle).collect();
    exact::check(&book, params, &clearing.valuations, &exactly, clearing.full).expect("the oracle agrees");
    let verified = exact::fills_of(&book, params, &clearing).expect("verifies");
    assert_eq!(verified.len(), fills.len());

    // Minimum units differ between assets.
    let least = |asset: AssetId| least >> (asset.0 % 3);
    let outcomes = clearing.outcomes(&book, &sorted, params, least).expect("every asset has a valuation");
    assert_eq!(outcomes.len(), offers.len());
    for (row, (outcome, offer)) in outcomes.iter().zip(offers).enumerate() {
        let fill = fills.iter().find(|fill| fill.row as usize == row);
        assert_eq!((outcome.sold, outcome.bought), fill.map_or((0, 0), |fill| (fill.sold, fill.bought)));
        let (pair, index) = places[row];
        let said = explain(&book, params, &clearing, pair, index).expect("an offer of the book");
        assert_eq!((outcome.why, outcome.sold, outcome.bought), (said.why, said.sold, said.bought));
        assert_eq!((said.sell, said.buy, said.amount, said.limit), (offer.sell, offer.buy, offer.amount, offer.limit));
        let rest = offer.amount - outcome.sold;
        let is_partial = outcome.sold > 0 && rest > 0;
        assert_eq!(matches!(outcome.why, TradeReason::Part { .. }), is_partial);
        let is_small = rest < least(offer.sell) || asked(offer, rest) < BigInt::from(least(offer.buy));
        assert_eq!(outcome.returned, if is_partial && is_small { rest } else { 0 });
    }
    (clearing, outcomes)
}

/// The units that `rest` units of an offer ask for, by the definition.
fn asked(offer: &Offer, rest: Amount) -> BigInt {
    let ten = |power: i32| BigInt::from(10).pow(power.max(0).unsigned_abs());
    let (over, under) = (ten(offer.limit.exponent()), ten(-offer.limit.exponent()));
    (BigInt::from(rest) * offer.limit.mantissa() * over + &under - 1) / under
}

#[test]
fn rows_of_ordinary_books() {
    let (mut kinds, mut returned) = ([0; 3], 0);
    for seed in 0..12 {
        let offers = workload::cycles(6, 400, seed);
        for epsilon in [Fraction::ZERO, Params::default().epsilon] {
            let params = Params { epsilon, ..Params::default() };
            // Every other remainder is below such a large minimum.
            let (_, outcomes) = check(6, &offers, &params, 1_000_000);
            for RowOutcome { why, .. } in &outcomes {
                kinds[match why {
                    TradeReason::Full => 0,
                    TradeReason::Part { .. } => 1,
                    _ => 2,
                }] += 1;
            }
            returned += outcomes.iter().filter(|outcome| outcome.returned > 0).count();
        }
    }
    assert!(kinds.iter().all(|count| *count > 50) && (5..kinds[1]).contains(&returned), "{kinds:?} {returned}");
}

#[test]
fn rows_of_hostile_books() {
    let params = Params::default();
    let least = least_units(params.epsilon, params.mu);
    for seed in 0..150 {
        let book = hostile::hostile(seed, 14, 60);
        check(book.assets, &book.offers, &params, least);
    }
    let mut apart = workload::of_few_units(3, 3, 12, 1);
    // Nobody sells asset 9, so that nobody can pay this offer.
    apart.push(Offer { sell: AssetId(0), buy: AssetId(9), ..apart[0] });
    let (_, outcomes) = check(10, &apart, &params, 0);
    assert_eq!(outcomes.last().map(|outcome| outcome.why), Some(TradeReason::NoCounterparty));
}

/// The rule in one sentence: by limit price, in full while enough remains, the last in part.
#[test]
fn a_pair_fills_by_limit_price_and_the_last_in_part() {
    let offer = |sell, buy, amount, limit: &str| Offer {
        sell: AssetId(sell),
        buy: AssetId(buy),
        amount,
        limit: limit.parse().expect("a price"),
    };
    let offers = [
        offer(0, 1, 4_000_000, "0.9999"),
        offer(0, 1, 1_000_000, "0.8"),
        offer(0, 1, 1_000_000, "5"),
        offer(0, 1, 1_000_000, "0.9"),
        offer(1, 0, 3_000_000, "0.999"),
    ];
    let (clearing, outcomes) = check(2, &offers, &Params::default(), 0);
    assert!(clearing.full);
    let sold: Vec<Amount> = outcomes.iter().map(|outcome| outcome.sold).collect();
    assert_eq!((sold[1], sold[2], sold[3], sold[4]), (1_000_000, 0, 1_000_000, 3_000_000));
    assert!((900_000..1_100_000).contains(&sold[0]), "{sold:?}");
    assert_eq!((outcomes[1].why, outcomes[2].why), (TradeReason::Full, TradeReason::BeyondRate));
    assert!(matches!(outcomes[0].why, TradeReason::Part { missing: Some(missing) } if missing == 4_000_000 - sold[0]));
}

/// A rate is what fills are paid, net of commission; pools and buy orders in addition to the offers change no rule.
#[test]
fn a_rate_is_what_fills_are_paid() {
    let sorted = workload::cycle_book(5, 2_000, 4);
    let mut book = sorted.book();
    let mut random = Dice::new(4);
    let mut reserve = || 1_000_000 + random.below(1_000_000);
    let (a, b) = (AssetId(0), AssetId(1));
    book.pools.push(Pool { a, b, reserve_a: reserve(), reserve_b: reserve(), fee: Fraction::power_of_two(9) });
    book.exacts.push(ExactOrder::buy(a, 500, b, 1_000_000));
    let params = Params::default();
    let clearing = clear(&book, &params, None).expect("a proper book");
    let trades = &clearing.trades;
    for trade in trades {
        let rate = clearing.rate(&params, trade.sell, trade.buy).expect("assets of the book");
        assert_eq!(clearing.sold(trade.sell, trade.buy), trade.sold);
        let position = book.position(trade.sell, trade.buy).expect("a pair of the book");
        let rows = sorted.rows(position);
        let own = clearing.fills(&book, &sorted, &params).filter(|fill| rows.contains(&fill.row));
        let mut sold = 0;
        for fill in own {
            assert_eq!(rate.payout(fill.sold), Some(fill.bought));
            sold += fill.sold;
        }
        assert_eq!(sold, trade.sold);
    }
    assert!(trades.len() > 10);
    assert!(clearing.rate(&params, AssetId(0), AssetId(5)).is_none());
    assert_eq!(clearing.sold(AssetId(0), AssetId(5)), 0);
    let other = workload::cycle_book(6, 100, 1);
    assert_eq!(Clearing::default().fills(&book, &sorted, &params).count(), 0);
    assert!(Clearing::default().outcomes(&other.book(), &other, &params, |_| 0).is_none());
    assert_eq!(Minima::default().returned(1, "1".parse().expect("a price")), 0);
}
