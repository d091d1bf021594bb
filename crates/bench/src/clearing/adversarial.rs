//! Books of an attacker who wants to break a clearing or to make it slow, books within the minimum sizes, and thin
//! books. Every clearing is verified, and its work is compared with that of ordinary books of the same number of
//! assets and offers. A book that is not full is *proved* if every obstacle carries a proof that no clearing is full,
//! and *open* otherwise: a row names the seeds of some open ones.

use std::collections::{BTreeMap, BTreeSet};

use ::clearing::{Clearing, Market, Offer, Params, SortedOffers, least_units, verify};
use serde_json::{Value, json};

use super::ProgressStep;
use super::sample::{milliseconds, spread};
use ::clearing::workload::cycles;
use ::clearing::workload::hostile::{Hostile, hostile, within_minimum};
use ::clearing::workload::thin::{Thin, thin};

/// Maximum sizes of the books.
const MOST_ASSETS: u32 = 3_000;
const MOST_OFFERS: usize = 20_000;
const THIN_OFFERS: usize = 10_000;
/// Every n-th book is of any size up to these; the others have a 50th of the assets and a 10th of the offers.
const LARGE: u64 = 100;

/// The most seeds of open books that a row names.
const MOST_NAMED: usize = 20;
/// Books that one thread clears between two reports of progress.
const STRETCH: u64 = 64;

/// The results of some books.
#[derive(Default)]
struct Outcomes {
    times: Vec<f64>,
    looks: Vec<f64>,
    full: usize,
    proved: usize,
    open: Vec<u64>,
    reasons: BTreeMap<&'static str, usize>,
    /// The slowest: its time and its seed.
    slowest: (f64, u64),
}

/// How many books are cleared, and by how many threads: each thread clears books of its own.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) books: usize,
    pub(super) threads: usize,
}

/// One row for each shape of hostile books, and one for all.
pub(super) fn hostile_books(extent: Extent, step: &mut ProgressStep) -> Vec<Value> {
    rows(extent, step, |seed| {
        let is_large = seed % LARGE == LARGE - 1;
        let (assets, offers) = if is_large { (1, 1) } else { (50, 10) };
        named(hostile(seed, MOST_ASSETS / assets, MOST_OFFERS / offers))
    })
}

/// One row for each shape of books whose offers sell and ask for at least [`least_units`].
pub(super) fn minimum_books(extent: Extent, step: &mut ProgressStep) -> Vec<Value> {
    let Params { epsilon, mu, .. } = Params::default();
    let least = least_units(epsilon, mu);
    rows(extent, step, |seed| named(within_minimum(seed, 60, 2_000, least)))
}

/// One row for each pattern of thin books.
pub(super) fn thin_books(extent: Extent, step: &mut ProgressStep) -> Vec<Value> {
    rows(extent, step, |seed| {
        let Thin { pattern, assets, offers, .. } = thin(seed, THIN_OFFERS);
        LabelledBook { kind: pattern.name(), assets, offers }
    })
}

/// A book and the name of its kind.
struct LabelledBook {
    kind: &'static str,
    assets: u32,
    offers: Vec<Offer>,
}

fn named(book: Hostile) -> LabelledBook {
    LabelledBook { kind: book.shape.name(), assets: book.assets, offers: book.offers }
}

fn rows(extent: Extent, step: &mut ProgressStep, book: impl Fn(u64) -> LabelledBook + Sync) -> Vec<Value> {
    let outcomes = all_outcomes(extent, step, &book);
    let mut rows: Vec<Value> = outcomes.iter().map(|(shape, outcomes)| outcomes.row(shape)).collect();
    if let Some(all) = outcomes.get("all") {
        let slowest = book(all.slowest.1);
        rows.push(beside_ordinary(&slowest, all.slowest));
    }
    rows
}

/// The results by kind, in the order of seeds, for any number of threads.
fn all_outcomes(
    Extent { books, threads }: Extent,
    step: &mut ProgressStep,
    book: &(impl Fn(u64) -> LabelledBook + Sync),
) -> BTreeMap<&'static str, Outcomes> {
    let (books, threads) = (books as u64, threads.max(1) as u64);
    let mut outcomes: BTreeMap<&str, Outcomes> = BTreeMap::new();
    let alone: Vec<_> = (0..threads).map(|_| super::pool(1)).collect();
    let round = threads * STRETCH;
    for begin in (0..books).step_by(round as usize) {
        step("books", begin as usize, books as usize);
        let stretch = |thread: u64| begin + thread * STRETCH..(begin + (thread + 1) * STRETCH).min(books);
        let cleared: Vec<_> = std::thread::scope(|scope| {
            let work = |(thread, pool): (u64, &'_ rayon::ThreadPool)| pool.install(|| some(stretch(thread), book));
            let threads: Vec<_> = (0..threads).zip(&alone).map(|of| scope.spawn(move || work(of))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no clearing panics")).collect()
        });
        for (kind, seed, clearing, ms) in cleared.into_iter().flatten() {
            for kind in [kind, "all"] {
                outcomes.entry(kind).or_default().add(&clearing, ms, seed);
            }
        }
    }
    outcomes
}

/// Of some seeds the kind, the clearing and its time in milliseconds.
fn some(seeds: std::ops::Range<u64>, book: &impl Fn(u64) -> LabelledBook) -> Vec<(&'static str, u64, Clearing, f64)> {
    let one = |seed| {
        let LabelledBook { kind, assets, offers } = book(seed);
        let (clearing, ms) = cleared(&SortedOffers::new(assets, &offers));
        (kind, seed, clearing, ms)
    };
    seeds.map(one).collect()
}

fn cleared(sorted: &SortedOffers) -> (Clearing, f64) {
    let (book, params) = (sorted.book(), Params::default());
    let begun = std::time::Instant::now();
    let market = Market::new(&book).expect("a proper book");
    let clearing = market.clear(&params, None).expect("proper parameters");
    let ms = milliseconds(begun);
    verify(&book, &params, &clearing).expect("every clearing verifies");
    (clearing, ms)
}

/// Compares the slowest book with ordinary ones of the same number of assets and offers.
fn beside_ordinary(book: &LabelledBook, (ms, seed): (f64, u64)) -> Value {
    const BOOKS: u64 = 20;
    let ordinary = |seed| cleared(&SortedOffers::new(book.assets, &cycles(book.assets, book.offers.len(), seed))).1;
    let times: Vec<f64> = (0..BOOKS).map(ordinary).collect();
    json!({
        "slowest": seed, "shape": book.kind, "assets": book.assets, "offers": book.offers.len(), "ms": ms,
        "ordinary_ms": spread(&times),
    })
}

impl Outcomes {
    fn add(&mut self, clearing: &Clearing, ms: f64, seed: u64) {
        self.times.push(ms);
        let spending = clearing.report.spending;
        self.looks.push((spending.price_looks + spending.amount_looks) as f64);
        self.full += usize::from(clearing.full);
        let is_proved = clearing.report.obstacles.iter().all(|obstacle| obstacle.proof.is_some());
        match (clearing.full, is_proved) {
            (true, _) => {}
            (false, true) => self.proved += 1,
            (false, false) => self.open.push(seed),
        }
        self.slowest = if ms > self.slowest.0 { (ms, seed) } else { self.slowest };
        let reasons: BTreeSet<&str> = clearing.report.obstacles.iter().map(|obstacle| obstacle.reason.name()).collect();
        reasons.into_iter().for_each(|reason| *self.reasons.entry(reason).or_default() += 1);
    }

    fn row(&self, shape: &str) -> Value {
        json!({
            "shape": shape, "verified": self.times.len(), "of": self.times.len(), "full": self.full,
            "proved": self.proved, "open": self.open.len(), "open_seeds": &self.open[..self.open.len().min(MOST_NAMED)],
            "reasons": self.reasons, "prepare_and_clear_ms": spread(&self.times), "looks": spread(&self.looks),
        })
    }
}
