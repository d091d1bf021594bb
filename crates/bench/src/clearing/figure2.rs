//! SPEEDEX figure 2: the fewest offers with which prices of 50 assets are computed within a quarter of a second.
//!
//! Numbers of offers double. A number counts if at it, and at every larger one that is measured, each book of a few is
//! cleared full and their mean time, amounts included and preparing excluded, is within the limit. As limits are net of
//! ε here, only μ > ε is meaningful; the paper also draws the rest.

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

/// One row for each ε and μ; the fewest offers are null if even the largest number is too few. `_stopped` says which
/// number is the largest that does not count, and why.
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
            "newton": newton.fewest, "newton_stopped": newton.stopped,
            "tatonnement": tatonnement.fewest, "tatonnement_stopped": tatonnement.stopped })
    };
    proper.into_iter().enumerate().map(row).collect()
}

/// The fewest offers from which on every number counts, and the largest number that does not.
struct Fewest {
    fewest: Option<usize>,
    stopped: Option<String>,
}

fn fewest(params: &Params, books: usize, most: usize) -> Fewest {
    let sizes: Vec<usize> = (0..).map(|doubled| FEWEST << doubled).take_while(|offers| *offers <= most).collect();
    down_from(&sizes, |offers| slowness(params, offers, books))
}

/// From the largest size down, until one has a reason not to count.
fn down_from(sizes: &[usize], reason: impl Fn(usize) -> Option<String>) -> Fewest {
    let mut found = Fewest { fewest: None, stopped: None };
    for &offers in sizes.iter().rev() {
        match reason(offers) {
            Some(why) => {
                found.stopped = Some(format!("{offers} offers: {why}"));
                break;
            }
            None => found.fewest = Some(offers),
        }
    }
    found
}

/// Why a number of offers does not count: a book that is not full, or the mean time. Stops at the first such book.
fn slowness(params: &Params, offers: usize, books: usize) -> Option<String> {
    let mut sample = Sample::default();
    for seed in 0..books as u64 {
        let sorted = SortedOffers::new(50, &fine_cycles(offers, seed));
        let book = sorted.book();
        let market = Market::new(&book).expect("a proper book");
        let clearing = sample.clear(&book, &market, params, None);
        if !clearing.full {
            let reasons: Vec<&str> = clearing.report.obstacles.iter().map(|obstacle| obstacle.reason.name()).collect();
            return Some(format!("book {seed} is not full ({})", reasons.join(", ")));
        }
        if params.solver == Solver::Tatonnement && sample.mean_ms() > LIMIT_MS * books as f64 {
            break;
        }
    }
    (sample.mean_ms() > LIMIT_MS).then(|| format!("{:.0} ms on average", sample.mean_ms()))
}

/// The workload of §7 in units that are [`FINER`] times as small: the finest band asks for more units than 10^4.
fn fine_cycles(offers: usize, seed: u64) -> Vec<Offer> {
    let mut offers = cycles(50, offers, seed);
    offers.iter_mut().for_each(|offer| offer.amount *= FINER);
    offers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_only_if_all_larger_ones_do() {
        let reason = |bad: &'static [usize]| move |offers| bad.contains(&offers).then(|| "slow".to_owned());
        let found = down_from(&[50, 100, 200, 400], reason(&[100]));
        assert_eq!((found.fewest, found.stopped.as_deref()), (Some(200), Some("100 offers: slow")));
        assert_eq!(down_from(&[50, 100], reason(&[])).fewest, Some(50));
        assert_eq!(down_from(&[50, 100], reason(&[100])).fewest, None);
    }
}
