//! No book that has a full clearing may be said to have none.

use primitives::{Amount, AssetId, Fraction, Price};
use proptest::prelude::*;

use super::impossible;
use crate::workload::{hard, hard_of_any_size};
use crate::{Book, Clearing, Offer, Params, Rate, Solver, SortedOffers, Trade, clear, fills, verify};

fn params(epsilon: u32, mu: u32) -> Params {
    let power = Fraction::power_of_two;
    Params { epsilon: power(epsilon), mu: power(mu), solver: Solver::Newton }
}

/// Whether some amounts at `valuations` are a full clearing: all that fills can give are tried, and checked.
fn is_full_somehow(book: &Book, params: &Params, valuations: &[Price]) -> bool {
    let value = |asset: AssetId| valuations[asset.0 as usize];
    let choices: Vec<Vec<Amount>> = (book.pairs.iter())
        .map(|pair| {
            let rate = Rate::new(value(pair.sell), value(pair.buy), params.epsilon, params.mu);
            let must = pair.offers().filter(|offer| rate.must_fill(offer.0, offer.1)).map(|offer| offer.1).sum();
            let total = pair.offers().map(|offer| offer.1).sum();
            let mut sold: Vec<Amount> = (must..=total).map(|target| fills(pair, &rate, target).sold).collect();
            sold.dedup();
            sold
        })
        .collect();
    let mut at = vec![0; choices.len()];
    loop {
        let sold = choices.iter().zip(&at).map(|(choices, at)| choices[*at]);
        let trades = book.pairs.iter().zip(sold).filter(|(_, sold)| *sold > 0);
        let trades = trades.map(|(pair, sold)| Trade { sell: pair.sell, buy: pair.buy, sold }).collect();
        let clearing = Clearing { valuations: valuations.to_vec(), trades, full: true, ..Clearing::default() };
        if verify(book, params, &clearing).is_ok() {
            return true;
        }
        let Some(next) = (0..at.len()).find(|pair| at[*pair] + 1 < choices[*pair].len()) else { return false };
        at[next] += 1;
        at[..next].fill(0);
    }
}

/// Rates of which one lies in each range of rates that pay the same whole units and ask the same offers.
fn rates(book: &Book, params: &Params) -> Vec<f64> {
    let mut ends = Vec::new();
    for pair in &book.pairs {
        let forth = pair.sell < pair.buy;
        for (limit, amount) in pair.offers() {
            let most = (amount as f64 * limit.to_f64() * 1.5) as u64 + 2;
            for (sold, bought) in (1..=amount).flat_map(|sold| (1..=most).map(move |bought| (sold, bought))) {
                let rate = bought as f64 / sold as f64;
                for share in [params.epsilon, params.mu] {
                    ends.push(if forth { rate / (1.0 - share.to_f64()) } else { (1.0 - share.to_f64()) / rate });
                }
            }
            for share in [params.epsilon, params.mu] {
                let rate = limit.to_f64() / (1.0 - share.to_f64());
                ends.push(if forth { rate } else { 1.0 / rate });
            }
        }
    }
    ends.sort_by(f64::total_cmp);
    ends.dedup_by(|a, b| *a / *b < 1.0 + 1e-12);
    let between = ends.windows(2).map(|ends| (ends[0] * ends[1]).sqrt());
    let beyond = [ends[0] / 2.0, ends[ends.len() - 1] * 2.0];
    between.chain(beyond).collect()
}

fn offers(assets: u32, most: usize) -> impl Strategy<Value = Vec<Offer>> {
    let offer = (0..assets, 1..assets, 1u64..9, 1u32..30, prop::sample::select(vec![5u32, 7, 10, 12])).prop_map(
        move |(sell, step, amount, number, of)| Offer {
            sell: AssetId(sell),
            buy: AssetId((sell + step) % assets),
            amount,
            limit: Price::from_f64(f64::from(number) / f64::from(of)).expect("a price"),
        },
    );
    prop::collection::vec(offer, 2..=most)
}

/// Whether two assets have a full clearing at one of all rates that differ.
fn two_can_be_full(book: &Book, params: &Params) -> bool {
    let at = |rate: &f64| [Price::from_f64(*rate).expect("a price"), Price::ONE];
    rates(book, params).iter().any(|rate| is_full_somehow(book, params, &at(rate)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn two_assets_are_never_given_up_wrongly(offers in offers(2, 6), epsilon in 4u32..8, band in 1u32..4) {
        let (sorted, params) = (SortedOffers::new(2, &offers), params(epsilon, epsilon - band));
        let book = sorted.book();
        let proof = impossible(&book, &params, &[Price::ONE; 2], &[AssetId(0)]);
        prop_assert!(proof.is_none() || !two_can_be_full(&book, &params), "{:?}", proof);
    }

    #[test]
    fn full_clearings_are_never_given_up(offers in offers(4, 12), epsilon in 4u32..16, band in 1u32..4) {
        let (sorted, params) = (SortedOffers::new(4, &offers), params(epsilon, epsilon - band));
        let book = sorted.book();
        let clearing = clear(&book, &params, None).expect("a proper book");
        let all: Vec<AssetId> = (0..4).map(AssetId).collect();
        let short = |asset: &AssetId| impossible(&book, &params, &clearing.valuations, &[*asset]);
        prop_assert!(!clearing.full || all.iter().find_map(short).is_none());
    }
}

/// The books of 1,000 hard ones that are known to have none.
#[test]
fn hard_books_without_a_full_clearing_are_known() {
    for sorted in [hard_of_any_size(580), hard(100_000, 724)] {
        let (book, params) = (sorted.book(), Params::default());
        let market = crate::Market::new(&book).expect("a proper book");
        let clearing = market.clear(&params, None).expect("proper parameters");
        assert!(!clearing.full && market.impossible(&params, &clearing).is_some());
    }
}
