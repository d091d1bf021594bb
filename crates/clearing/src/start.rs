//! Prices to start from, read off the book itself.

use crate::demand::Demand;
use crate::dense::Matrix;
use crate::float::{exp, ln};
use crate::newton::MOST_ASSETS;

/// Prices x that fit the median limit price of every pair best: least squares of ln x_A − ln x_B ≈ ln m_AB, weighted by
/// the square root of the number of offers. A tiny pull to `last` settles what the book leaves open.
pub(crate) fn start(demand: &Demand, last: Option<&[f64]>) -> Vec<f64> {
    const PULL: f64 = 1e-9;
    let n = demand.part.assets.len();
    if n > MOST_ASSETS {
        return spread(demand, last);
    }
    let mut matrix = Matrix::zero(n);
    let mut right = vec![0.0; n];
    for (a, b, median, offers) in demand.medians() {
        let weight = (offers as f64).sqrt();
        let target = weight * ln(median);
        right[a] += target;
        right[b] -= target;
        matrix.cells[a * n + a] += weight;
        matrix.cells[b * n + b] += weight;
        matrix.cells[a * n + b] -= weight;
        matrix.cells[b * n + a] -= weight;
    }
    for (asset, right) in right.iter_mut().enumerate() {
        let pull = PULL * (1.0 + matrix.cells[asset * n + asset]);
        matrix.cells[asset * n + asset] += pull;
        *right += last.map_or(0.0, |last| pull * ln(last[asset]));
    }
    matrix.solve(&mut right, 0.0);
    right.into_iter().map(exp).collect()
}

/// The same for parts too large for a matrix: each asset in turn takes the weighted mean of what its pairs say.
fn spread(demand: &Demand, last: Option<&[f64]>) -> Vec<f64> {
    const ROUNDS: u32 = 50;
    let mut log: Vec<f64> = match last {
        Some(last) => last.iter().map(|price| ln(*price)).collect(),
        None => vec![0.0; demand.part.assets.len()],
    };
    let mut ways = vec![Vec::new(); log.len()];
    for (a, b, median, offers) in demand.medians() {
        let (weight, target) = ((offers as f64).sqrt(), ln(median));
        ways[a].push((b, weight, target));
        ways[b].push((a, weight, -target));
    }
    for _ in 0..ROUNDS {
        for asset in 0..log.len() {
            let total: f64 = ways[asset].iter().map(|(_, weight, _)| weight).sum();
            let said: f64 = ways[asset].iter().map(|(other, weight, target)| weight * (log[*other] + target)).sum();
            log[asset] = said / total;
        }
    }
    log.into_iter().map(exp).collect()
}
