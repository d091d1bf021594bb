//! Tâtonnement as in SPEEDEX (§5, appendix C), for comparison.
//!
//! In every round the auctioneer tries the step of equation 5,
//!
//! p_A ← p_A · (1 + δ · v_A · p_A·Z_A(p)),
//!
//! with Z_A the net demand for A and v_A the inverse of an estimate of the volume of A. If the l² norm of the demand,
//! with components p_A·Z_A, falls, the step is taken and δ grows. Otherwise δ shrinks, and once it has reached its
//! minimum the step is taken regardless. Rounds end when commission ε covers every shortage of the smoothed demand.
//! Every [`FEASIBILITY`] rounds the amount step is asked whether the prices are good enough already.
//!
//! Several instances with different constants run side by side on the threads of the current pool, [`TURN`] rounds
//! each, until one has ended. Among those that end in the same turn the one with the fewest rounds wins. They start
//! where Newton's method does: at the prices of the last batch, or at the book's own where these are nearer to balance.
//!
//! **Deviations from the paper**
//!
//! - Doubles in a fixed order of operations instead of fixed-point numbers: not slower, and equally deterministic.
//! - A budget in rounds instead of a timeout, and turns instead of a race, so that the result is a function of the
//!   book.
//! - Volumes are estimated from the rounds of this batch alone, beginning with those at the initial prices. The paper
//!   also uses the volumes of earlier blocks.
//! - Demand ends at the rate net of commission and slightly below, where limits begin to break, as everywhere in this
//!   crate. In the paper it ends at the rate.
//! - A step changes no price by more than a factor of two; the paper's fixed-point numbers limit steps differently.

use rayon::prelude::*;

use crate::demand::{Demand, Flows};
use crate::outcome::Reason;
use crate::range::bound;
use crate::search::{Found, PartView, Target};

/// Rounds between two calls of the amount step.
pub(crate) const FEASIBILITY: u32 = 1_000;
/// Rounds that an instance runs before the others have their turn.
const TURN: u32 = 200;
/// Rounds after which an instance gives up.
const BUDGET: u32 = 20_000;
/// The minimum step size.
const LEAST_STEP: f64 = 1e-7;

/// The constants of one instance.
#[derive(Clone, Copy, Debug)]
struct Constants {
    /// Factors of the step size after a step that helps and after one that does not.
    grow: f64,
    shrink: f64,
    /// Whether v_A follows the volume of each asset; otherwise it is the same for all.
    by_volume: bool,
    /// Whether the norm weighs each asset by v_A as well.
    weighted_norm: bool,
}

const INSTANCES: [Constants; 3] = [
    Constants { grow: 1.4, shrink: 0.6, by_volume: true, weighted_norm: false },
    Constants { grow: 1.2, shrink: 0.8, by_volume: true, weighted_norm: true },
    Constants { grow: 1.4, shrink: 0.8, by_volume: false, weighted_norm: false },
];

/// Solves for prices from `start`.
pub(crate) fn tatonnement(view: PartView, target: Target, start: Vec<f64>) -> Found {
    let mut instances: Vec<Instance> =
        INSTANCES.iter().map(|c| Instance::new(view, target, *c, start.clone())).collect();
    for _ in 0..BUDGET / TURN {
        instances.par_iter_mut().for_each(|instance| instance.turn(view));
        if instances.iter().any(|instance| instance.solved) {
            break;
        }
    }
    let queries = instances.iter().map(|instance| instance.demand.queries).sum();
    let best = match instances.iter().position(|instance| instance.solved) {
        Some(_) => instances.iter().filter(|i| i.solved).min_by_key(|i| i.rounds),
        None => instances.iter().min_by(|a, b| view.missed(&a.prices).total_cmp(&view.missed(&b.prices))),
    };
    let best = best.expect("there are instances");
    let looks = instances.iter().map(|instance| instance.demand.looks).sum();
    Found {
        prices: best.prices.clone(),
        iterations: best.rounds,
        queries,
        imbalance: best.flows.largest(),
        looks,
        unsolved: (!best.solved).then_some(Reason::Prices),
        is_interior: false,
    }
}

struct Instance<'a> {
    constants: Constants,
    demand: Demand<'a>,
    target: Target,
    prices: Vec<f64>,
    flows: Flows,
    trial: Vec<f64>,
    trial_flows: Flows,
    /// 1 / v_A, in value.
    volume: Vec<f64>,
    step: f64,
    rounds: u32,
    solved: bool,
}

impl<'a> Instance<'a> {
    fn new(view: PartView<'a>, target: Target, constants: Constants, prices: Vec<f64>) -> Instance<'a> {
        let demand = Demand::new(view.book, view.part, view.supply);
        let (trial, volume) = (prices.clone(), vec![0.0; prices.len()]);
        let (flows, trial_flows) = (Flows::default(), Flows::default());
        let mut instance = Instance {
            constants,
            demand,
            target,
            prices,
            flows,
            trial,
            trial_flows,
            volume,
            step: 1.0 / 64.0,
            rounds: 0,
            solved: false,
        };
        instance.demand.flows(&instance.prices, target.band(target.mu), &mut instance.flows);
        instance.estimate_volume();
        instance
    }

    fn turn(&mut self, view: PartView) {
        for _ in 0..TURN {
            self.solved = self.flows.shortage() <= self.target.epsilon
                || self.rounds > 0 && self.rounds.is_multiple_of(FEASIBILITY) && view.is_full(&self.prices).0;
            if self.solved {
                return;
            }
            self.round();
        }
    }

    fn round(&mut self) {
        self.rounds += 1;
        for (asset, (trial, price)) in self.trial.iter_mut().zip(&self.prices).enumerate() {
            let excess = (self.flows.bought[asset] - self.flows.sold[asset]) / self.volume[asset];
            *trial = price * (1.0 + (self.step * excess).clamp(-0.5, 1.0));
        }
        bound(&mut self.trial);
        self.demand.flows(&self.trial, self.target.band(self.target.mu), &mut self.trial_flows);
        let helps = self.norm(&self.trial_flows) < self.norm(&self.flows);
        if helps || self.step <= LEAST_STEP {
            std::mem::swap(&mut self.prices, &mut self.trial);
            std::mem::swap(&mut self.flows, &mut self.trial_flows);
            self.estimate_volume();
        }
        let factor = if helps { self.constants.grow } else { self.constants.shrink };
        self.step = (self.step * factor).max(LEAST_STEP);
    }

    /// The squared l² norm of the demand.
    fn norm(&self, flows: &Flows) -> f64 {
        let excess = |asset: usize| {
            let weight = if self.constants.weighted_norm { self.volume[asset] } else { 1.0 };
            (flows.bought[asset] - flows.sold[asset]) / weight
        };
        (0..flows.sold.len()).map(excess).map(|z| z * z).sum()
    }

    /// Moves the volume estimates towards the smaller of the sold and the bought amount of each asset.
    fn estimate_volume(&mut self) {
        let assets = self.prices.len();
        let seen = |asset: usize| self.flows.sold[asset].min(self.flows.bought[asset]);
        let mean = (0..assets).map(|a| self.flows.sold[a] + self.flows.bought[a]).sum::<f64>() / (2 * assets) as f64;
        // No asset counts as trading less than this share of the mean.
        const LEAST_SHARE: f64 = 1e-3;
        let mean = mean.max(f64::MIN_POSITIVE);
        for asset in 0..assets {
            let now = if self.constants.by_volume { seen(asset).max(LEAST_SHARE * mean) } else { mean };
            let before = self.volume[asset];
            self.volume[asset] = if before > 0.0 { before + (now - before) / 8.0 } else { now };
        }
    }
}
