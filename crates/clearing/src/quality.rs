//! The share of the available utility that a clearing realizes (SPEEDEX §6.2).
//!
//! An offer that sells `amount` units of A at a limit below the rate gains `amount · (p_A − limit · p_B)`, in value,
//! when it trades in full. The paper states this per unit and "weighted by the valuation of the asset being sold". The
//! form here is the one that does not depend on the units in which an asset is counted.

use primitives::{Amount, Price};

use crate::book::Book;
use crate::rate::approx;
use crate::supply::Supply;
use crate::threshold::Threshold;

/// Unrealized utility divided by realized utility, over the pairs among `links`; 0 if there is neither, infinite if
/// none is realized.
pub(crate) fn unrealized_utility_ratio(
    book: &Book,
    supply: &Supply,
    valuations: &[Price],
    sold: &[Amount],
    links: &[usize],
) -> f64 {
    let (mut gained, mut offered) = (0.0, 0.0);
    for (index, pair) in links.iter().filter_map(|link| Some((*link, book.pairs.get(*link)?))) {
        let curve = supply.curve(index);
        let (sell, buy) = (approx(valuations[pair.sell.0 as usize]), approx(valuations[pair.buy.0 as usize]));
        let below = curve.place(Threshold::new(sell / buy));
        offered += sell * curve.amount(below) as f64 - buy * curve.value(below).to_f64();
        gained += sell * sold[index] as f64 - buy * curve.cheapest(sold[index]);
    }
    let missed = (offered - gained).max(0.0);
    if missed > 0.0 { missed / gained.max(0.0) } else { 0.0 }
}
