//! The rational convex program of Devanur, Garg and Végh (2016) for linear exchange markets, solved by a public
//! interior-point solver: the strategy that SPEEDEX appendix F.1 measures in figure 8.
//!
//! Offer k sells up to e units of A for B at limit l. Over prices p, money y that it spends on B, and the inverse β of
//! what a unit of money is worth to it,
//!
//! minimise Σ e·p_A·ln(p_A/β) + Σ y·ln l, subject to β ≤ p_A, β ≤ l·p_B, 0 ≤ y ≤ e·p_A, and for each asset, what its
//! sellers spend equals what is spent on it.
//!
//! The optimal value is 0. The terms e·p_A·ln(p_A/β) are cones of relative entropy, one for each offer.

use ::clearing::{Groups, Offer, Params};
use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{ExponentialConeT, NonnegativeConeT, ZeroConeT};
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus};
use primitives::AssetId;

/// An offer: positions of the assets sold and bought, units, and the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) sell: usize,
    pub(super) buy: usize,
    pub(super) units: f64,
    pub(super) limit: f64,
}

/// A solution of the program.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// The price of every asset, up to a common factor.
    #[cfg_attr(not(test), expect(dead_code, reason = "the oracle compares prices"))]
    pub(super) prices: Vec<f64>,
    /// The share of every offer that trades.
    #[cfg_attr(not(test), expect(dead_code, reason = "the oracle compares prices where offers trade in part"))]
    pub(super) shares: Vec<f64>,
    /// The value of the objective, relative to the value of all that is offered.
    pub(super) objective: f64,
    /// Steps of the solver.
    pub(super) steps: u32,
}

/// The strongly connected groups of more than one asset: their assets, and their offers with limits raised to the
/// middle of the band.
pub(super) fn groups(assets: u32, offers: &[Offer], params: &Params) -> Vec<(Vec<AssetId>, Vec<Order>)> {
    let mut pairs: Vec<(AssetId, AssetId)> = offers.iter().map(|offer| (offer.sell, offer.buy)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let groups = Groups::of_pairs(assets, &pairs);
    let middle = 1.0 - 0.5 * (params.epsilon.to_f64() + params.mu.to_f64());
    let all = || (0..assets).map(AssetId);
    let is_first = |asset: &AssetId| all().find(|other| groups.are_one(*other, *asset)) == Some(*asset);
    let group = |first: AssetId| {
        let own: Vec<AssetId> = all().filter(|asset| groups.are_one(*asset, first)).collect();
        let order = |offer: &Offer| {
            let [sell, buy] = [offer.sell, offer.buy].map(|asset| own.binary_search(&asset).ok());
            Some(Order { sell: sell?, buy: buy?, units: offer.amount as f64, limit: offer.limit.to_f64() / middle })
        };
        let orders = offers.iter().filter_map(order).collect();
        (own, orders)
    };
    all().filter(is_first).map(group).filter(|(own, _)| own.len() > 1).collect()
}

/// Rows of the constraints A·x + s = b.
#[derive(Default)]
struct Rows {
    rows: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
    right: Vec<f64>,
}

impl Rows {
    /// Adds a row: its entries, and its right side.
    fn add(&mut self, entries: &[(usize, f64)], right: f64) {
        let row = self.right.len();
        self.right.push(right);
        for (column, value) in entries {
            self.rows.push(row);
            self.columns.push(*column);
            self.values.push(*value);
        }
    }
}

/// Solves the program for `orders` between so many assets, each of which is both sold and bought; `None` if the solver
/// does not.
pub(super) fn solve(assets: usize, orders: &[Order]) -> Option<Solution> {
    let count = orders.len();
    let mean = orders.iter().map(|order| order.units).sum::<f64>() / count as f64;
    let [money, inverse, entropy] = [0, 1, 2].map(|block| move |k: usize| assets + block * count + k);
    let mut rows = Rows::default();
    for asset in 0..assets {
        let sells = |(k, order): (usize, &Order)| (order.sell == asset).then(|| (money(k), 1.0));
        let buys = |(k, order): (usize, &Order)| (order.buy == asset).then(|| (money(k), -1.0));
        let own = orders.iter().enumerate();
        rows.add(&own.clone().filter_map(sells).chain(own.filter_map(buys)).collect::<Vec<_>>(), 0.0);
    }
    rows.add(&(0..assets).map(|asset| (asset, 1.0)).collect::<Vec<_>>(), assets as f64);
    for (k, order) in orders.iter().enumerate() {
        rows.add(&[(inverse(k), 1.0), (order.sell, -1.0)], 0.0);
        rows.add(&[(inverse(k), 1.0), (order.buy, -order.limit)], 0.0);
        rows.add(&[(money(k), -1.0)], 0.0);
        rows.add(&[(money(k), 1.0), (order.sell, -order.units / mean)], 0.0);
    }
    // The cone (x, y, z) with y·e^(x/y) ≤ z, at (−t, p, β): t ≥ p·ln(p/β).
    for (k, order) in orders.iter().enumerate() {
        rows.add(&[(entropy(k), 1.0)], 0.0);
        rows.add(&[(order.sell, -1.0)], 0.0);
        rows.add(&[(inverse(k), -1.0)], 0.0);
    }
    let mut cones = vec![ZeroConeT(assets + 1), NonnegativeConeT(4 * count)];
    cones.extend((0..count).map(|_| ExponentialConeT()));
    let variables = assets + 3 * count;
    let mut costs = vec![0.0; variables];
    for (k, order) in orders.iter().enumerate() {
        costs[money(k)] = order.limit.ln();
        costs[entropy(k)] = order.units / mean;
    }
    let Rows { rows: at, columns, values, right } = rows;
    let matrix = CscMatrix::new_from_triplets(right.len(), variables, at, columns, values);
    let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
    let square = CscMatrix::zeros((variables, variables));
    let mut solver = DefaultSolver::new(&square, &costs, &matrix, &right, &cones, settings).ok()?;
    solver.solve();
    let solution = &solver.solution;
    let is_solved = matches!(solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved);
    let x = &solution.x;
    let offered: f64 = orders.iter().map(|order| x[order.sell] * order.units / mean).sum();
    let share = |(k, order): (usize, &Order)| x[money(k)] / (x[order.sell] * order.units / mean);
    is_solved.then(|| Solution {
        prices: x[..assets].to_vec(),
        shares: orders.iter().enumerate().map(share).collect(),
        objective: solution.obj_val / offered,
        steps: solution.iterations,
    })
}
