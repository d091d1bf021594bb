//! Prices by a semismooth Newton method on their logarithms, with continuation in μ.

use crate::demand::{Band, Demand, Flows};
use crate::dense::Matrix;
use crate::float::exp;
use crate::search::{Found, Scene, Target};

/// The widest band that continuation begins with.
const WIDEST: f64 = 0.03;
/// Newton steps at one μ before it counts as stalled.
const STEPS: u32 = 30;
/// How often a step is halved before it counts as no use.
const HALVINGS: u32 = 40;
/// How closely a level before the last is solved.
const LOOSE: f64 = 0.05;

/// The relative shortage that the commission covers, but for what rounding may need.
fn tolerance(target: Target) -> f64 {
    (0.5 * target.epsilon).max(1e-7)
}

/// Solves for prices from `start`.
pub(crate) fn newton(scene: Scene, demand: &mut Demand, start: Vec<f64>) -> Found {
    let target = Target::of(scene.params);
    let mut search = Search::new(demand, start);
    let mut solved = false;
    for window in [None, Some(0.004), Some(0.02), Some(0.05), Some(0.2)] {
        solved = search.continuation(target, WIDEST, window) || scene.amounts(&search.prices).full;
        if solved {
            break;
        }
    }
    search.finish(target, solved)
}

struct Search<'a, 'b> {
    demand: &'a mut Demand<'b>,
    prices: Vec<f64>,
    flows: Flows,
    matrix: Matrix,
    trial: Vec<f64>,
    trial_flows: Flows,
    steps: u32,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(demand: &'a mut Demand<'b>, prices: Vec<f64>) -> Search<'a, 'b> {
        let n = prices.len();
        let (flows, trial_flows, trial) = (Flows::default(), Flows::default(), prices.clone());
        Search { demand, prices, flows, matrix: Matrix::zero(n), trial, trial_flows, steps: 0 }
    }

    fn continuation(&mut self, target: Target, widest: f64, window: Option<f64>) -> bool {
        let mut mu = widest;
        while mu > target.mu {
            self.level(target.band(mu), mu, window, LOOSE);
            mu /= 4.0;
        }
        self.level(target.band(target.mu), target.mu, window, tolerance(target))
    }

    /// Newton steps at one band until no asset is short by more than `tolerance`.
    fn level(&mut self, band: Band, mu: f64, window: Option<f64>, tolerance: f64) -> bool {
        let cap = 2.0 * mu.max(0.02);
        self.demand.slopes(&self.prices, band, window, &mut self.flows, &mut self.matrix);
        for _ in 0..STEPS {
            if self.flows.shortage() <= tolerance {
                return true;
            }
            if !self.step(band, window, cap) {
                return false;
            }
        }
        self.flows.shortage() <= tolerance
    }

    /// One damped step; false if none improves the merit.
    fn step(&mut self, band: Band, window: Option<f64>, cap: f64) -> bool {
        let direction = self.direction();
        let merit = self.flows.merit();
        let mut length = 1.0;
        self.steps += 1;
        for _ in 0..HALVINGS {
            for ((trial, price), d) in self.trial.iter_mut().zip(&self.prices).zip(&direction) {
                *trial = price * exp((length * d).clamp(-cap, cap));
            }
            self.demand.slopes(&self.trial, band, window, &mut self.trial_flows, &mut self.matrix);
            if self.trial_flows.merit() < merit {
                std::mem::swap(&mut self.trial, &mut self.prices);
                std::mem::swap(&mut self.trial_flows, &mut self.flows);
                return true;
            }
            length *= 0.5;
        }
        false
    }

    /// The Newton direction; the asset that trades most keeps its price.
    fn direction(&mut self) -> Vec<f64> {
        let n = self.prices.len();
        let volume = |asset: usize| self.flows.sold[asset] + self.flows.bought[asset];
        let fixed = (1..n).fold(0, |best, asset| if volume(asset) > volume(best) { asset } else { best });
        let mut direction: Vec<f64> = (0..n).map(|a| self.flows.bought[a] - self.flows.sold[a]).collect();
        for asset in 0..n {
            self.matrix.cells[asset * n + fixed] = 0.0;
            self.matrix.cells[fixed * n + asset] = 0.0;
        }
        self.matrix.solve(&mut direction, 1e-9);
        direction
    }

    fn finish(mut self, target: Target, solved: bool) -> Found {
        self.demand.flows(&self.prices, target.band(target.mu), &mut self.flows);
        Found {
            imbalance: self.flows.largest(),
            prices: self.prices,
            iterations: self.steps,
            queries: self.demand.queries,
            solved,
        }
    }
}
