//! SPEEDEX figure 8: time to solve the convex program of Devanur, Garg and Végh with a public solver, by the number of
//! assets and offers; and the time of our clearing of the same books, amounts included.
//!
//! The paper uses CVXPY with ECOS; here it is Clarabel, whose cones are those of CVXPY's form of the program.

use std::time::Instant;

use ::clearing::workload::cycles;
use ::clearing::{Market, Params, SortedOffers};
use serde_json::{Value, json};

use super::ProgressStep;
use super::sample::{milliseconds, spread};

#[cfg(test)]
mod oracle;
mod program;

const ASSETS: [u32; 3] = [10, 20, 50];
const OFFERS: [usize; 7] = [50, 100, 200, 500, 1_000, 2_000, 5_000];
/// The optimum is 0; a solution is one if its objective is no more than this part of what is offered.
const OPTIMUM: f64 = 1e-5;

/// One row for each number of assets and of offers.
pub(super) fn run(books: usize, most: usize, step: &mut ProgressStep) -> Vec<Value> {
    let sizes = ASSETS.into_iter().flat_map(|assets| OFFERS.map(|offers| (assets, offers)));
    let sizes: Vec<(u32, usize)> = sizes.filter(|(_, offers)| *offers <= most).collect();
    let of = sizes.len();
    let row = |(at, (assets, offers)): (usize, (u32, usize))| {
        step(&format!("{assets} assets, {offers} offers"), at, of);
        row(assets, offers, books)
    };
    sizes.into_iter().enumerate().map(row).collect()
}

fn row(assets: u32, count: usize, books: usize) -> Value {
    let params = Params::default();
    let (mut theirs, mut ours, mut steps, mut solved, mut full) = (Vec::new(), Vec::new(), Vec::new(), 0, 0);
    for seed in 0..books as u64 {
        let offers = cycles(assets, count, seed);
        let groups = program::groups(assets, &offers, &params);
        let begun = Instant::now();
        let solutions: Option<Vec<_>> = groups.iter().map(|(own, orders)| program::solve(own.len(), orders)).collect();
        theirs.push(milliseconds(begun));
        let solutions = solutions.unwrap_or_default();
        solved += usize::from(!solutions.is_empty() && solutions.iter().all(|own| own.objective.abs() <= OPTIMUM));
        steps.push(solutions.iter().map(|own| f64::from(own.steps)).sum());
        let sorted = SortedOffers::new(assets, &offers);
        let book = sorted.book();
        let market = Market::new(&book).expect("a proper book");
        let begun = Instant::now();
        full += usize::from(market.clear(&params, None).expect("proper parameters").full);
        ours.push(milliseconds(begun));
    }
    json!({
        "assets": assets, "offers": count, "books": books, "convex_program_ms": spread(&theirs), "solved": solved,
        "convex_program_steps": spread(&steps),
        "clear_ms": spread(&ours), "full": full,
    })
}
