//! Many assets that trade against a few (SPEEDEX appendix E), on one thread and on two. Preparing includes summing up
//! the runs of the book. Also many separate markets of which about half are not full, as units are few, and their
//! cost.

use std::time::Instant;

use ::clearing::{Market, Offer, Params, SortedOffers, verify};
use serde_json::{Value, json};

use super::sample::{milliseconds, spread};
use super::{ProgressStep, pool};
use ::clearing::workload::{numeraires, of_few_units};

const ASSETS: u32 = 10_000;
const NUMERAIRES: u32 = 20;
const OFFERS: usize = 5_000_000;
/// Markets of few units.
const MARKETS: [u32; 3] = [10, 100, 1_000];

/// One row for each kind of market and number of threads.
pub(super) fn run(books: usize, step: &mut ProgressStep) -> Vec<Value> {
    let mut rows = Vec::new();
    for linked in [false, true] {
        for threads in [1, 2] {
            let among = if linked { "that trade among themselves" } else { "apart" };
            let what = format!("{NUMERAIRES} numeraires {among}, {threads} thread(s)");
            let offers = |seed| numeraires(ASSETS, NUMERAIRES, OFFERS, linked, seed);
            let mut row = pool(threads).install(|| row(ASSETS, &offers, books, &what, step));
            row["numeraires"] = json!(NUMERAIRES);
            row["linked"] = json!(linked);
            row["threads"] = json!(threads);
            rows.push(row);
        }
    }
    for markets in MARKETS {
        let what = format!("{markets} markets apart");
        let mut row =
            pool(1).install(|| row(3 * markets, &|seed| of_few_units(markets, 3, 12, seed), books, &what, step));
        row["markets"] = json!(markets);
        row["threads"] = json!(1);
        rows.push(row);
    }
    rows
}

fn row(assets: u32, offers: &dyn Fn(u64) -> Vec<Offer>, books: usize, what: &str, step: &mut ProgressStep) -> Value {
    let (mut prepare_ms, mut clear_ms, mut total_ms) = (Vec::new(), Vec::new(), Vec::new());
    let (mut full, mut trades, mut count) = (0, 0, 0);
    let mut short = Vec::new();
    for seed in 0..books {
        step(what, seed, books);
        let offers = offers(seed as u64);
        count = offers.len();
        let sorted = SortedOffers::new(assets, &offers);
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
        short.push(clearing.report.obstacles.iter().map(|obstacle| obstacle.assets.len()).sum::<usize>() as f64);
        trades = clearing.trades.len();
    }
    json!({
        "assets": assets, "offers": count, "of": books, "full": full, "assets_short": spread(&short),
        "pairs_that_trade": trades, "prepare_ms": spread(&prepare_ms), "clear_ms": spread(&clear_ms),
        "prepare_and_clear_ms": spread(&total_ms),
    })
}
