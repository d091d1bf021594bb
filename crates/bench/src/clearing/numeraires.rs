//! Many assets that trade against a few (SPEEDEX appendix E), on one thread and on two. Preparing includes summing up the
//! runs of the book.

use std::time::Instant;

use ::clearing::{Market, Params, SortedOffers, verify};
use serde_json::{Value, json};

use super::sample::{milliseconds, spread};
use super::{Step, pool};
use crate::workload::numeraires;

const ASSETS: u32 = 10_000;
const NUMERAIRES: u32 = 20;
const OFFERS: usize = 5_000_000;

/// One row for each kind of market and number of threads.
pub(super) fn run(books: usize, step: &mut Step) -> Vec<Value> {
    let mut rows = Vec::new();
    for linked in [false, true] {
        for threads in [1, 2] {
            let among = if linked { "that trade among themselves" } else { "apart" };
            let what = format!("{NUMERAIRES} numeraires {among}, {threads} thread(s)");
            rows.push(pool(threads).install(|| row(linked, threads, books, &what, step)));
        }
    }
    rows
}

fn row(linked: bool, threads: usize, books: usize, what: &str, step: &mut Step) -> Value {
    let (mut prepare_ms, mut clear_ms, mut total_ms) = (Vec::new(), Vec::new(), Vec::new());
    let (mut full, mut trades) = (0, 0);
    for seed in 0..books {
        step(what, seed, books);
        let sorted = SortedOffers::new(ASSETS, &numeraires(ASSETS, NUMERAIRES, OFFERS, linked, seed as u64));
        let begun = Instant::now();
        let (book, params) = (sorted.book(), Params::default());
        let market = Market::new(&book).expect("a proper book");
        prepare_ms.push(milliseconds(begun));
        let start = Instant::now();
        let clearing = market.clear(&params, None).expect("proper parameters");
        clear_ms.push(milliseconds(start));
        total_ms.push(milliseconds(begun));
        verify(&book, &params, &clearing).expect("every clearing verifies");
        full += usize::from(clearing.full);
        trades = clearing.trades.len();
    }
    json!({
        "assets": ASSETS, "numeraires": NUMERAIRES, "linked": linked, "offers": OFFERS, "threads": threads,
        "of": books, "full": full, "pairs_that_trade": trades, "prepare_ms": spread(&prepare_ms),
        "clear_ms": spread(&clear_ms), "prepare_and_clear_ms": spread(&total_ms),
    })
}
