//! SPEEDEX figure 2: the fewest offers with which prices of 50 assets are computed within a quarter of a second.
//!
//! Numbers of offers double; a number counts if at it, and at every larger one that is measured, each book of a few is
//! cleared full and their mean time, amounts included and preparing excluded, is within the limit. As limits are net
//! of ε here, only μ > ε is
//! meaningful; the paper also draws the rest.

use ::clearing::{Market, Offer, Params, Solver, SortedOffers};
use primitives::Fraction;
use serde_json::{Value, json};

use super::ProgressStep;
use super::sample::{SOLVERS, Sample};
use ::clearing::workload::cycles;

const LIMIT_MS: f64 = 250.0;
const FEWEST: usize = 50;
/// So that every offer sells and asks for at least [`::clearing::least_units`] at every ε and μ below.
const FINER: u64 = 1_000;
/// −log2 of ε and of μ.
const EPSILONS: [u32; 4] = [8, 12, 16, 20];
const MUS: [u32; 8] = [4, 6, 8, 10, 12, 14, 16, 18];

/// One row for each ε and μ; the fewest offers are null if even the largest number is too few.
pub(super) fn run(books: usize, most: usize, step: &mut ProgressStep) -> Vec<Value> {
    let cells: Vec<(u32, u32)> = EPSILONS.iter().flat_map(|e| MUS.iter().map(move |m| (*e, *m))).collect();
    let proper = cells.into_iter().filter(|(epsilon, mu)| mu < epsilon).collect::<Vec<_>>();
    let of = proper.len();
    let row = |(at, (epsilon, mu)): (usize, (u32, u32))| {
        let name = format!("epsilon 2^-{epsilon}, mu 2^-{mu}");
        let [newton, tatonnement] = SOLVERS.map(|solver| {
            let (epsilon, mu) = (Fraction::power_of_two(epsilon), Fraction::power_of_two(mu));
            let params = Params { epsilon, mu, solver, ..Params::default() };
            step(&name, at, of);
            fewest(&params, books, most)
        });
        json!({ "epsilon": format!("2^-{epsilon}"), "mu": format!("2^-{mu}"),
            "newton": newton, "tatonnement": tatonnement })
    };
    proper.into_iter().enumerate().map(row).collect()
}

fn fewest(params: &Params, books: usize, most: usize) -> Option<usize> {
    let sizes: Vec<usize> = (0..).map(|doubled| FEWEST << doubled).take_while(|offers| *offers <= most).collect();
    sizes.into_iter().rev().take_while(|offers| is_quick(params, *offers, books)).last()
}

/// Whether every book is solved, and within the limit on average. Stops at the first that is not solved.
fn is_quick(params: &Params, offers: usize, books: usize) -> bool {
    let mut sample = Sample::default();
    for seed in 0..books as u64 {
        let sorted = SortedOffers::new(50, &fine_cycles(offers, seed));
        let book = sorted.book();
        let market = Market::new(&book).expect("a proper book");
        sample.clear(&book, &market, params, None);
        let far_over = params.solver == Solver::Tatonnement && sample.mean_ms() > LIMIT_MS * books as f64;
        if !sample.all_full() || far_over {
            return false;
        }
    }
    sample.mean_ms() <= LIMIT_MS
}

/// The workload of §7 in units that are [`FINER`] times as small: the finest band asks for more units than 10^4.
fn fine_cycles(offers: usize, seed: u64) -> Vec<Offer> {
    let mut offers = cycles(50, offers, seed);
    offers.iter_mut().for_each(|offer| offer.amount *= FINER);
    offers
}
