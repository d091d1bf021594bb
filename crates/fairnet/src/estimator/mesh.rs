//! Offsets of all machines from the offsets of edges.

use super::EstimatorRules;
use super::fit::EdgeFit;

type Fits = [((u32, u32), EdgeFit)];

/// Rounds of conjugate gradients: in exact arithmetic as many as machines are enough.
const ROUNDS: usize = 200;

/// Which machines are connected to the first.
fn connected(machines: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    let mut found: Vec<bool> = (0..machines).map(|machine| machine == 0).collect();
    while let Some((a, b)) = edges.iter().find(|(a, b)| found[*a] != found[*b]) {
        (found[*a], found[*b]) = (true, true);
    }
    found
}

/// Of each machine but the first, the sum of differences towards it.
fn sums(machines: usize, edges: &[(usize, usize)], differences: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums = vec![0.0; machines];
    for ((a, b), difference) in edges.iter().zip(differences) {
        sums[*b] += difference;
        sums[*a] -= difference;
    }
    sums.iter_mut().take(1).for_each(|first| *first = 0.0);
    sums
}

/// Values of machines, 0 for the first, whose differences are closest to those of the edges.
fn least_squares(machines: usize, edges: &[(usize, usize)], differences: &[f64]) -> Vec<f64> {
    let apply = |values: &[f64]| sums(machines, edges, edges.iter().map(|(a, b)| values[*b] - values[*a]));
    let mut residual = sums(machines, edges, differences.iter().copied());
    let dot = |one: &[f64], two: &[f64]| one.iter().zip(two).map(|(one, two)| one * two).sum::<f64>();
    let (mut values, mut direction, mut square) = (vec![0.0; machines], residual.clone(), dot(&residual, &residual));
    for _ in 0..ROUNDS {
        if square < 1e-18 {
            break;
        }
        let image = apply(&direction);
        let step = square / dot(&direction, &image);
        values.iter_mut().zip(&direction).for_each(|(value, way)| *value += step * way);
        residual.iter_mut().zip(&image).for_each(|(rest, way)| *rest -= step * way);
        let next = dot(&residual, &residual);
        direction.iter_mut().zip(&residual).for_each(|(way, rest)| *way = rest + next / square * *way);
        square = next;
    }
    values
}

fn ends(fits: &Fits) -> Vec<(usize, usize)> {
    fits.iter().map(|((a, b), _)| (*a as usize, *b as usize)).collect()
}

fn solve(machines: usize, fits: &Fits, differences: &[f64]) -> Vec<Option<f64>> {
    let edges = ends(fits);
    let values = least_squares(machines, &edges, differences);
    connected(machines, &edges).into_iter().zip(values).map(|(is, value)| is.then_some(value)).collect()
}

/// Offsets to the first machine, each edge taken at the time that `time` says.
pub(super) fn offsets(machines: usize, fits: &Fits, time: &dyn Fn(&(u32, u32), &EdgeFit) -> f64) -> Vec<Option<f64>> {
    let differences: Vec<f64> = fits.iter().map(|(ends, fit)| fit.offset(time(ends, fit))).collect();
    solve(machines, fits, &differences)
}

/// Drifts against the first machine.
pub(super) fn drifts(machines: usize, fits: &Fits) -> Vec<Option<f64>> {
    let differences: Vec<f64> = fits.iter().map(|(_, fit)| fit.slope()).collect();
    solve(machines, fits, &differences)
}

/// Intervals of offsets to the first machine: over all paths, the narrowest.
pub(super) fn bounds(
    machines: usize,
    fits: &Fits,
    time: &dyn Fn(&(u32, u32)) -> f64,
    rules: &EstimatorRules,
) -> Vec<Option<(f64, f64)>> {
    let intervals: Vec<(f64, f64)> = fits.iter().map(|(ends, fit)| fit.interval(time(ends), rules)).collect();
    let mut found = vec![(f64::NEG_INFINITY, f64::INFINITY); machines];
    found.iter_mut().take(1).for_each(|first| *first = (0.0, 0.0));
    let edges = ends(fits);
    for _ in 0..machines {
        let before = found.clone();
        for ((a, b), (low, high)) in edges.iter().zip(&intervals) {
            let (of_a, of_b) = (found[*a], found[*b]);
            found[*b] = (of_b.0.max(of_a.0 + low), of_b.1.min(of_a.1 + high));
            found[*a] = (of_a.0.max(of_b.0 - high), of_a.1.min(of_b.1 - low));
        }
        if found == before {
            break;
        }
    }
    found.into_iter().map(|(low, high)| (low.is_finite() && high.is_finite()).then_some((low, high))).collect()
}
