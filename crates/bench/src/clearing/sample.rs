//! The results of one solver on a number of books.

use std::time::Instant;

use ::clearing::{Book, Clearing, Market, Params, Prices, Solver, Spending, verify};
use primitives::Price;
use serde_json::{Map, Value, json};

/// Times and qualities, one entry for each book.
#[derive(Default)]
pub(super) struct Sample {
    /// Prices without earlier prices; prices from earlier ones; amounts; and a whole clearing without preparing the
    /// book.
    cold: Vec<f64>,
    warm: Vec<f64>,
    amounts: Vec<f64>,
    clear: Vec<f64>,
    iterations: Vec<f64>,
    queries: Vec<f64>,
    /// The work of the amount step.
    tries: Vec<f64>,
    rounds: Vec<f64>,
    augmentations: Vec<f64>,
    repairs: Vec<f64>,
    utility: Vec<f64>,
    full: usize,
}

/// Both solvers, ours first.
pub(super) const SOLVERS: [Solver; 2] = [Solver::Newton, Solver::Tatonnement];

impl Sample {
    /// Clears a book, from the prices of the one before it if they are given: prices, amounts, and the whole.
    pub(super) fn clear(&mut self, book: &Book, market: &Market, params: &Params, last: Option<&[Price]>) -> Clearing {
        let (prices, prices_ms) = self.prices(market, params, last);
        let start = Instant::now();
        let amounts = market.amounts(params, &prices.valuations).expect("proper parameters");
        let amounts_ms = milliseconds(start);
        self.amounts.push(amounts_ms);
        self.iterations.push(f64::from(prices.iterations));
        self.queries.push(f64::from(prices.demand_queries));
        let start = Instant::now();
        let (clearing, clear_ms) = match params.solver {
            Solver::Newton => {
                let clearing = market.clear(params, last).expect("proper parameters");
                (clearing, milliseconds(start))
            }
            // One pass only, as in the paper.
            Solver::Tatonnement => (market.conclude(params, prices, amounts), prices_ms + amounts_ms),
        };
        self.clear.push(clear_ms);
        verify(book, params, &clearing).expect("every clearing verifies");
        self.full += usize::from(clearing.full);
        self.utility.push(clearing.report.unrealized_utility_ratio);
        let Spending { tries, rounds, augmentations, repairs, .. } = clearing.report.spending;
        self.tries.push(f64::from(tries));
        self.rounds.push(f64::from(rounds));
        self.augmentations.push(f64::from(augmentations));
        self.repairs.push(f64::from(repairs));
        clearing
    }

    /// Computes prices alone, and times them.
    pub(super) fn prices(&mut self, market: &Market, params: &Params, last: Option<&[Price]>) -> (Prices, f64) {
        let start = Instant::now();
        let prices = market.prices(params, last).expect("proper parameters");
        let time = milliseconds(start);
        if last.is_some() { &mut self.warm } else { &mut self.cold }.push(time);
        (prices, time)
    }

    /// The time of the last clearing, without preparing.
    pub(super) fn last_ms(&self) -> f64 {
        self.clear.last().copied().unwrap_or_default()
    }

    /// The mean time of a clearing, without preparing.
    pub(super) fn mean_ms(&self) -> f64 {
        mean(&self.clear)
    }

    /// The median time of prices alone: cold if it was measured, warm if not.
    fn typical(&self) -> f64 {
        quantile(if self.cold.is_empty() { &self.warm } else { &self.cold }, 0.5)
    }

    fn summary(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("full".into(), self.full.into());
        fields.insert("of".into(), self.clear.len().into());
        let spreads = [
            ("cold_ms", &self.cold),
            ("warm_ms", &self.warm),
            ("amounts_ms", &self.amounts),
            ("clear_ms", &self.clear),
            ("iterations", &self.iterations),
            ("demand_queries", &self.queries),
            ("amount_tries", &self.tries),
            ("amount_rounds", &self.rounds),
            ("amount_augmentations", &self.augmentations),
            ("amount_repairs", &self.repairs),
        ];
        for (name, values) in spreads.into_iter().filter(|(_, values)| !values.is_empty()) {
            fields.insert(name.into(), spread(values));
        }
        // Books where nothing trades although something could have an infinite ratio, and so has the mean then.
        let finite: Vec<f64> = self.utility.iter().copied().filter(|ratio| ratio.is_finite()).collect();
        fields.insert("unrealized_utility_infinite".into(), (self.utility.len() - finite.len()).into());
        fields.insert("unrealized_utility_mean".into(), ratio(mean(&self.utility)));
        fields.insert("unrealized_utility_mean_of_finite".into(), mean(&finite).into());
        fields.insert("unrealized_utility_worst".into(), ratio(self.utility.iter().copied().fold(0.0, f64::max)));
        fields.into()
    }
}

/// Adds the results of both solvers.
pub(super) fn add(row: &mut Value, [newton, tatonnement]: &[Sample; 2]) {
    row["newton"] = newton.summary();
    if !tatonnement.clear.is_empty() {
        row["tatonnement"] = tatonnement.summary();
        row["newton_faster"] = (tatonnement.typical() / newton.typical()).into();
    }
}

/// Median, 99th percentile and worst of `values`, which must not be empty.
pub(super) fn spread(values: &[f64]) -> Value {
    json!({ "p50": quantile(values, 0.5), "p99": quantile(values, 0.99), "worst": quantile(values, 1.0) })
}

/// A ratio as JSON, which has no infinite number: then it is the word.
pub(super) fn ratio(value: f64) -> Value {
    if value == f64::INFINITY { "infinite".into() } else { value.into() }
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (share * sorted.len() as f64) as usize;
    sorted.get(at).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

pub(super) fn milliseconds(since: Instant) -> f64 {
    1e3 * since.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infinite_ratio_is_told_and_not_left_out() {
        let one = |utility: &[f64]| Sample { utility: utility.to_vec(), ..Sample::default() }.summary();
        let all = one(&[0.5, f64::INFINITY, 0.25]);
        assert_eq!(
            (&all["unrealized_utility_mean"], &all["unrealized_utility_worst"]),
            (&"infinite".into(), &"infinite".into())
        );
        assert_eq!(
            (&all["unrealized_utility_infinite"], &all["unrealized_utility_mean_of_finite"]),
            (&1.into(), &0.375.into())
        );
        let finite = one(&[0.5, 0.25]);
        assert_eq!(
            (&finite["unrealized_utility_mean"], &finite["unrealized_utility_worst"]),
            (&0.375.into(), &0.5.into())
        );
    }
}
