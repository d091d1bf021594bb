//! Time by number of offers and of assets.

use std::time::Instant;

use ::clearing::{Market, Params, SortedOffers};
use serde_json::{Value, json};

use super::ProgressStep;
use super::sample::{SOLVERS, Sample, add, milliseconds, spread};
use ::clearing::workload::cycles;

/// Books of 50 assets.
pub(super) fn scaling(books: usize, most: usize, step: &mut ProgressStep) -> Vec<Value> {
    let sizes = [100, 1_000, 10_000, 50_000, 200_000, 1_000_000, 10_000_000];
    sizes.into_iter().filter(|offers| *offers <= most).map(|offers| row(50, offers, books, step)).collect()
}

/// Books of 200,000 and of 10^6 offers.
pub(super) fn assets(books: usize, most: usize, step: &mut ProgressStep) -> Vec<Value> {
    let sizes = [200_000, 1_000_000].into_iter().filter(|offers| *offers <= most);
    let pairs = sizes.flat_map(|offers| [10, 20, 50, 100, 200].map(|assets| (assets, offers)));
    pairs.map(|(assets, offers)| row(assets, offers, books, step)).collect()
}

/// One size. Warm prices are those of a book of which half has changed.
fn row(assets: u32, offers: usize, books: usize, step: &mut ProgressStep) -> Value {
    let books = match offers {
        0..=200_000 => books,
        200_001..=1_000_000 => books.div_ceil(10),
        _ => books.div_ceil(50),
    };
    let (mut sum_up_ms, mut prepare_ms) = (Vec::new(), Vec::new());
    let mut samples = [Sample::default(), Sample::default()];
    for seed in 0..books as u64 {
        step(&format!("{assets} assets, {offers} offers"), seed as usize, books);
        let [before, after] = pair_of_books(assets, offers, seed);
        let new = after.book();
        let start = Instant::now();
        let old = before.book();
        sum_up_ms.push(milliseconds(start));
        let start = Instant::now();
        let market = Market::new(&old).expect("a proper book");
        prepare_ms.push(milliseconds(start));
        let next = Market::new(&new).expect("a proper book");
        for (solver, sample) in SOLVERS.into_iter().zip(&mut samples) {
            let params = Params { solver, ..Params::default() };
            let clearing = sample.clear(&old, &market, &params, None);
            sample.prices(&next, &params, Some(&clearing.valuations));
        }
    }
    let mut row = json!({
        "assets": assets, "offers": offers, "books": books, "sum_up_ms": spread(&sum_up_ms),
        "prepare_ms": spread(&prepare_ms),
    });
    add(&mut row, &samples);
    row
}

/// A book, and another that shares half of its offers; the other half is drawn anew at the same true prices.
fn pair_of_books(assets: u32, offers: usize, seed: u64) -> [SortedOffers; 2] {
    let drawn = cycles(assets, offers + offers / 2, seed);
    [&drawn[..offers], &drawn[offers / 2..]].map(|offers| SortedOffers::new(assets, offers))
}
