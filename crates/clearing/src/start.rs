//! Initial prices, derived from the book itself.

use crate::demand::Demand;
use crate::float::{exp, ln};
use crate::range::{END, centred};
use crate::system::System;

/// Prices x that fit the median limit price of every pair best: least squares of ln x_A − ln x_B ≈ ln m_AB, weighted
/// by the square root of the number of offers. As the assets of a part are connected, the solution is unique up to a
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

/// Earlier prices `last`, with those that the book contradicts replaced: those whose ratio to the book's own prices
/// `start` is more than twice, or less than half, the median ratio. `None` if there are none.
pub(crate) fn mended(last: &[f64], start: &[f64]) -> Option<Vec<f64>> {
    const FAR: f64 = std::f64::consts::LN_2;
    let off: Vec<f64> = last.iter().zip(start).map(|(last, start)| ln(*last) - ln(*start)).collect();
    let mut sorted = off.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    let is_off = |off: f64| (off - median).abs() > FAR;
    let price = |((last, start), off): ((&f64, &f64), &f64)| match is_off(*off) {
        true => exp((ln(*start) + median).clamp(-END, END)),
        false => *last,
    };
    off.iter().any(|off| is_off(*off)).then(|| last.iter().zip(start).zip(&off).map(price).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prices_that_the_book_contradicts_are_replaced() {
        let (start, last) = ([1.0, 2.0, 4.0, 8.0], [10.5, 19.0, 4e13, 80.0]);
        let mended = mended(&last, &start).expect("one is far off");
        assert_eq!([mended[0], mended[1], mended[3]], [10.5, 19.0, 80.0]);
        assert!((30.0..50.0).contains(&mended[2]), "{mended:?}");
        assert_eq!(super::mended(&[10.5, 19.0, 41.0, 80.0], &start), None);
        assert_eq!(super::mended(&[3.0], &[1e-9]), None);
    }
}
