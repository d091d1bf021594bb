//! Prices compared with the convex program of SPEEDEX appendix F.1, solved independently of the crate.
//!
//! Devanur, Garg and Végh (2016) give a convex program whose optima are the equilibria of a linear exchange market. For
//! offers i that sell E_i of S_i at a limit m_i for B_i, with y_i the value that offer i sells, it reads
//!
//! minimise Σ p_S·E_i·max(0, ln(p_S/p_B) − ln m_i) + y_i·ln m_i,
//!
//! such that 0 ≤ y_i ≤ p_S·E_i, the value sold of every asset is the value bought of it, and prices sum to their
//! number. The optimum is 0. It is found by a barrier method on all of p, y and one bound t_i for each maximum, with
//! a dense Newton step from an infeasible start: slow, but short enough to be checked by reading.

use clearing::{Budget, Offer, Params, SortedOffers, clear, verify};
use kernel::Dice;
use primitives::{AssetId, Fraction, Price};

/// An offer in the terms of the program.
#[derive(Clone, Copy, Debug)]
struct Term {
    sell: usize,
    buy: usize,
    amount: f64,
    /// The logarithm of the limit price.
    limit: f64,
}

struct Program {
    assets: usize,
    terms: Vec<Term>,
}

/// The gradient and the Hessian of objective and barrier at a point, and whether the point is inside.
struct Local {
    gradient: Vec<f64>,
    hessian: Vec<Vec<f64>>,
    inside: bool,
}

impl Local {
    /// Adds κ times −ln(value), whose argument has the given sparse gradient.
    fn barrier(&mut self, kappa: f64, value: f64, slope: &[(usize, f64)]) {
        self.inside &= value > 0.0;
        for &(i, a) in slope {
            self.gradient[i] -= kappa * a / value;
            slope.iter().for_each(|&(j, b)| self.hessian[i][j] += kappa * a * b / (value * value));
        }
    }
}

impl Program {
    /// Variables: p, then t, then y.
    fn variables(&self) -> usize {
        self.assets + 2 * self.terms.len()
    }

    fn local(&self, x: &[f64], kappa: f64) -> Local {
        let (n, m) = (self.assets, self.terms.len());
        let size = self.variables();
        let inside = x.iter().all(|x| *x > 0.0);
        let mut local = Local { gradient: vec![0.0; size], hessian: vec![vec![0.0; size]; size], inside };
        if !inside {
            return local;
        }
        for (i, term) in self.terms.iter().enumerate() {
            let Term { sell, buy, amount, limit } = *term;
            let (t, y, own, other) = (n + i, n + m + i, x[sell], x[buy]);
            local.gradient[t] += 1.0;
            local.gradient[y] += limit;
            let gain = (own / other).ln() - limit;
            let room = x[t] - amount * own * gain;
            let curved = kappa * amount / room;
            local.barrier(kappa, x[t], &[(t, 1.0)]);
            local.barrier(kappa, room, &[(t, 1.0), (sell, -amount * (gain + 1.0)), (buy, amount * own / other)]);
            local.hessian[sell][sell] += curved / own;
            local.hessian[sell][buy] -= curved / other;
            local.hessian[buy][sell] -= curved / other;
            local.hessian[buy][buy] += curved * own / (other * other);
            local.barrier(kappa, x[y], &[(y, 1.0)]);
            local.barrier(kappa, amount * own - x[y], &[(sell, amount), (y, -1.0)]);
        }
        local
    }

    /// The equalities A·x = b: one for each asset but the last, and one for the sum of prices.
    fn equalities(&self) -> (Vec<Vec<f64>>, Vec<f64>) {
        let (n, m) = (self.assets, self.terms.len());
        let mut rows = vec![vec![0.0; self.variables()]; n];
        for (i, term) in self.terms.iter().enumerate() {
            rows[term.sell][n + m + i] += 1.0;
            rows[term.buy][n + m + i] -= 1.0;
        }
        rows[n - 1] = (0..self.variables()).map(|at| if at < n { 1.0 } else { 0.0 }).collect();
        let mut right = vec![0.0; n];
        right[n - 1] = n as f64;
        (rows, right)
    }

    /// The optimum: prices, and the value that each offer sells.
    fn solve(&self) -> (Vec<f64>, Vec<f64>) {
        let (n, m) = (self.assets, self.terms.len());
        let (rows, right) = self.equalities();
        let mut x = vec![1.0; n];
        x.extend(self.terms.iter().map(|term| 1.0 + term.amount * term.limit.abs()));
        x.extend(self.terms.iter().map(|term| term.amount / 2.0));
        let mut duals = vec![0.0; n];
        let mut kappa = 1.0;
        while kappa > 1e-10 {
            for _ in 0..100 {
                if self.step(&mut x, &mut duals, kappa, &rows, &right) < 1e-2 * kappa {
                    break;
                }
            }
            kappa /= 10.0;
        }
        (x[..n].to_vec(), x[n + m..].to_vec())
    }

    /// One Newton step of primal and dual variables; returns the norm of the residual.
    fn step(&self, x: &mut [f64], duals: &mut [f64], kappa: f64, rows: &[Vec<f64>], right: &[f64]) -> f64 {
        let (size, n) = (x.len(), duals.len());
        let local = self.local(x, kappa);
        assert!(local.inside, "steps stay inside");
        let mut system = vec![vec![0.0; size + n]; size + n];
        for (row, of) in system.iter_mut().zip(&local.hessian) {
            row[..size].copy_from_slice(of);
        }
        for (k, row) in rows.iter().enumerate() {
            system[size + k][..size].copy_from_slice(row);
            (0..size).for_each(|i| system[i][size + k] = row[i]);
        }
        let left = residual(&local, x, duals, rows, right);
        let norm = length(&left);
        let direction = solved(system, left.iter().map(|r| -r).collect());
        let mut share = 1.0;
        for _ in 0..40 {
            let moved: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + share * d).collect();
            let turned: Vec<f64> = duals.iter().zip(&direction[size..]).map(|(x, d)| x + share * d).collect();
            let next = self.local(&moved, kappa);
            let rest = if next.inside { length(&residual(&next, &moved, &turned, rows, right)) } else { f64::MAX };
            if rest <= (1.0 - 0.01 * share) * norm {
                x.copy_from_slice(&moved);
                duals.copy_from_slice(&turned);
                return rest;
            }
            share /= 2.0;
        }
        0.0
    }
}

/// The residual of the optimality conditions.
fn residual(local: &Local, x: &[f64], duals: &[f64], rows: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let stationary =
        (0..x.len()).map(|i| local.gradient[i] + (0..duals.len()).map(|k| duals[k] * rows[k][i]).sum::<f64>());
    let equal = rows.iter().zip(right).map(|(row, right)| row.iter().zip(x).map(|(a, x)| a * x).sum::<f64>() - right);
    stationary.chain(equal).collect()
}

fn length(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Gaussian elimination with row pivots.
fn solved(mut rows: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let n = right.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|a, b| rows[*a][k].abs().total_cmp(&rows[*b][k].abs())).expect("a row is left");
        rows.swap(k, pivot);
        right.swap(k, pivot);
        let (head, tail) = rows.split_at_mut(k + 1);
        for (row, i) in tail.iter_mut().zip(k + 1..) {
            let factor = row[k] / head[k][k];
            if factor != 0.0 {
                (k..n).for_each(|j| row[j] -= factor * head[k][j]);
                right[i] -= factor * right[k];
            }
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| rows[k][j] * right[j]).sum();
        right[k] = (right[k] - known) / rows[k][k];
    }
    right
}

/// Units of an amount 1.
const UNITS: f64 = 1e12;

/// A small book: a cycle through all assets, so that everything can trade, and offers between any two.
fn small_book(seed: u64) -> (usize, Vec<Offer>) {
    let mut random = Dice::new(seed);
    let assets = 2 + random.below(4) as usize;
    let values: Vec<f64> = (0..assets).map(|_| random.between(0.5, 2.0)).collect();
    let count = assets + 2 + random.below(15) as usize;
    let offer = |i: usize| {
        let sell = if i < assets { i } else { random.below(assets as u64) as usize };
        let step = if i < assets { 1 } else { 1 + random.below(assets as u64 - 1) as usize };
        let buy = (sell + step) % assets;
        let limit = values[sell] / values[buy] * random.between(0.8, 1.05);
        Offer {
            sell: AssetId(sell as u32),
            buy: AssetId(buy as u32),
            amount: (UNITS * random.between(0.05, 1.0) / values[sell]) as u64,
            limit: Price::from_f64(limit).expect("a price"),
        }
    };
    (assets, (0..count).map(offer).collect())
}

/// Whether offers that certainly trade join all assets, so that prices are unique (SPEEDEX corollary 1): those whose
/// value sold is well above 0.
fn joined(program: &Program, sold: &[f64]) -> bool {
    let mut group: Vec<usize> = (0..program.assets).collect();
    for (term, sold) in program.terms.iter().zip(sold) {
        if *sold > 1e-3 {
            let (from, to) = (group[term.sell], group[term.buy]);
            group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
        }
    }
    group.iter().all(|g| *g == group[0])
}

/// The value of the program's objective.
fn objective(program: &Program, prices: &[f64], sold: &[f64]) -> f64 {
    let part = |(term, sold): (&Term, &f64)| {
        let gain = (prices[term.sell] / prices[term.buy]).ln() - term.limit;
        prices[term.sell] * term.amount * gain.max(0.0) + sold * term.limit
    };
    program.terms.iter().zip(sold).map(part).sum()
}

#[test]
fn two_offers_by_hand() {
    // 1 of A for at least 0.5 B each, 1 of B for at least 0.8 A each: both trade in full at the rate 1.
    let term = |sell, buy, amount, limit: f64| Term { sell, buy, amount, limit: limit.ln() };
    let program = Program { assets: 2, terms: vec![term(0, 1, 1.0, 0.5), term(1, 0, 1.0, 0.8)] };
    let (prices, sold) = program.solve();
    assert!((prices[0] / prices[1] - 1.0).abs() < 1e-6 && (sold[0] - 1.0).abs() < 1e-6, "{prices:?} {sold:?}");
    // 3 of A against 1 of B: A falls to its limit and trades in part.
    let program = Program { assets: 2, terms: vec![term(0, 1, 3.0, 0.5), term(1, 0, 1.0, 0.8)] };
    let (prices, sold) = program.solve();
    assert!((prices[0] / prices[1] - 0.5).abs() < 1e-6, "{prices:?}");
    assert!((sold[0] / prices[0] - 2.0).abs() < 1e-5, "{sold:?}");
}

#[test]
fn newton_finds_the_same_prices() {
    // A commission far below the tolerance: without any, a market in which everything trades in full needs prices
    // exact to the last unit.
    let (epsilon, mu) = (Fraction::power_of_two(26), Fraction::power_of_two(13));
    let params = Params { epsilon, mu, ..Params::default() };
    let tolerance = 4.0 * params.mu.to_f64();
    let (mut compared, mut full, mut worst) = (0, 0, 0.0f64);
    for seed in 0..300 {
        let (assets, offers) = small_book(seed);
        let term = |offer: &Offer| Term {
            sell: offer.sell.0 as usize,
            buy: offer.buy.0 as usize,
            amount: offer.amount as f64 / UNITS,
            limit: offer.limit.to_f64().ln(),
        };
        let program = Program { assets, terms: offers.iter().map(term).collect() };
        let (prices, sold) = program.solve();
        assert!(objective(&program, &prices, &sold).abs() < 1e-6, "seed {seed}: the optimum is 0");
        let sorted = SortedOffers::new(assets as u32, &offers);
        let clearing = clear(&sorted.book(), &params, None).expect("a proper book");
        verify(&sorted.book(), &params, &clearing).expect("a clearing verifies");
        full += usize::from(clearing.full);
        if !joined(&program, &sold) {
            continue;
        }
        compared += 1;
        for asset in 1..assets {
            let rate = clearing.valuations[asset].to_f64() / clearing.valuations[0].to_f64();
            let off = (rate * prices[0] / prices[asset]).ln().abs();
            worst = worst.max(off);
            assert!(off <= tolerance, "seed {seed}, asset {asset}: off by {off:e}\n{prices:?}\n{clearing:?}");
        }
    }
    eprintln!("{compared} with unique prices, off by {worst:e} at most");
    assert!(compared >= 200, "only {compared} books have unique prices");
    assert_eq!(full, 300, "every book ends full");
}

/// Without any commission, where everything trades in full, only exact prices balance whole units.
#[test]
fn exact_prices_are_found() {
    let epsilons = [Fraction::ZERO, Fraction::power_of_two(26)];
    for (epsilon, mu) in epsilons.into_iter().flat_map(|epsilon| [10, 13, 20].map(|mu| (epsilon, mu))) {
        // A band a thousand times narrower takes more levels of continuation than the usual budget allows.
        let budget = Budget { prices: 4 * Budget::default().prices, ..Budget::default() };
        let params = Params { epsilon, mu: Fraction::power_of_two(mu), budget, ..Params::default() };
        for seed in 0..300 {
            let (assets, offers) = small_book(seed);
            let sorted = SortedOffers::new(assets as u32, &offers);
            let clearing = clear(&sorted.book(), &params, None).expect("a proper book");
            verify(&sorted.book(), &params, &clearing).expect("a clearing verifies");
            assert!(clearing.full, "seed {seed}, epsilon {epsilon}, mu 2^-{mu}: {:?}", clearing.report);
        }
    }
}
