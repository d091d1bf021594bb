//! How much of the utility that a batch offers a clearing realizes (SPEEDEX §6.2).
//!
//! An offer that sells `amount` units of A at a limit below the rate gains `amount · (p_A − limit · p_B)`, in value,
//! when it trades in full. The paper states this per unit and "weighted by the valuation of the asset being sold";
//! this is the form of it that does not change when an asset is counted in other units.

use primitives::{Amount, Price};

use crate::book::Book;
use crate::curve::{Curve, Curves};
use crate::rate::approx;

/// Utility left on the table over utility gained; 0 when there is none of either, infinite when nothing is gained.
pub(crate) fn unrealized_utility_ratio(book: &Book, curves: &Curves, valuations: &[Price], sold: &[Amount]) -> f64 {
    let (mut gained, mut offered) = (0.0, 0.0);
    for (index, pair) in book.pairs.iter().enumerate() {
        let curve = curves.curve(index);
        let (sell, buy) = (approx(valuations[pair.sell.0 as usize]), approx(valuations[pair.buy.0 as usize]));
        let below = curve.prices.partition_point(|price| price * buy < sell);
        let all = curve.sums[below];
        offered += sell * all.amount as f64 - buy * all.value;
        gained += sell * sold[index] as f64 - buy * cheapest(&curve, sold[index]);
    }
    let missed = (offered - gained).max(0.0);
    if missed > 0.0 { missed / gained.max(0.0) } else { 0.0 }
}

/// Σ limit · amount of the cheapest `sold` units.
fn cheapest(curve: &Curve, sold: Amount) -> f64 {
    let level = curve.sums.partition_point(|sum| sum.amount <= sold) - 1;
    let Some(price) = curve.prices.get(level) else { return curve.sums[level].value };
    curve.sums[level].value + price * (sold - curve.sums[level].amount) as f64
}
