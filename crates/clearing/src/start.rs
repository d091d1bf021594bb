//! Prices to start from, read off the book itself.

use crate::demand::Demand;
use crate::float::{exp, ln};
use crate::range::centred;
use crate::system::System;

/// Prices x that fit the median limit price of every pair best: least squares of ln x_A − ln x_B ≈ ln m_AB, weighted by
/// the square root of the number of offers. As the assets of a part hang together, that leaves nothing open but a
/// common factor.
pub(crate) fn start(demand: &Demand) -> Vec<f64> {
    let n = demand.part.assets.len();
    let mut system = System::new(demand.part);
    let (mut right, mut weights) = (vec![0.0; n], vec![0.0; n]);
    for (at, (a, b, median, offers)) in demand.medians().enumerate() {
        let weight = (offers as f64).sqrt();
        let target = weight * ln(median);
        right[a] += target;
        right[b] -= target;
        weights[a] += weight;
        weights[b] += weight;
        system.add(at, a, b, weight, weight);
    }
    let fixed = (1..n).fold(0, |best, asset| if weights[asset] > weights[best] { asset } else { best });
    if !system.solve(&mut right, fixed) {
        right.fill(0.0);
    }
    centred(&mut right);
    right.into_iter().map(exp).collect()
}
