//! What a venue's root takes in memory: traders, and orders that rest.

use std::path::Path;

use ::matching::Side;
use serde_json::{Value, json};
use store::RealDisk;

use crate::flow::{FlowAction, FlowEvent, MIDDLE};
use crate::scaling::resident;
use crate::venue::{VenueBenchError, bar, inputs};
use crate::venue_world::{VenueWorld, check, sign};

/// Orders of a step.
const BATCH: u32 = 4_096;
/// The last height of every order.
const EXPIRY: u64 = 80_000;
/// Ticks on each side at which orders rest.
const TICKS: u32 = 5_000;

/// Rests so many orders of so many traders, who buy and sell in turns at prices that never meet.
///
/// # Errors
/// [`VenueBenchError`].
pub fn run(resting: u32, owners: u32, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<Value, VenueBenchError> {
    let now = || resident().map(|(now, _)| now).ok_or_else(|| std::io::Error::other("no resident memory is told here"));
    let before = now()?;
    let mut world = VenueWorld::with_room(RealDisk::new(folder.join("root"))?, owners, resting)?;
    let with_traders = now()?;
    let mut rested = 0;
    for first in (0..resting).step_by(BATCH as usize) {
        let flow: Vec<FlowEvent> = (first..resting.min(first + BATCH)).map(|at| rests(at, owners)).collect();
        let orders = sign(&flow, first as usize, |_| EXPIRY);
        let checked = check(&orders.iter().flatten().copied().collect::<Vec<_>>());
        let mut inputs = inputs(&flow, &orders, &checked, first as usize);
        inputs.push(world.next_block());
        world.step(&inputs)?;
        rested += flow.len();
        say(&format!("{rested} of {resting} orders rest"));
    }
    let (with_orders, refused) = (now()?, world.refused);
    let each = |more: u64, less: u64, of: u32| more.saturating_sub(less) as f64 / f64::from(of.max(1));
    Ok(json!({
        "traders": owners, "resting_orders": u64::from(resting) - refused, "refused": refused,
        "bytes_of_a_trader": each(with_traders, before, owners),
        "bytes_of_an_order": bar(each(with_orders, with_traders, resting), 300.0, false),
        "resident_bytes": with_orders,
    }))
}

fn rests(at: u32, owners: u32) -> FlowEvent {
    let (owner, away) = (at % owners, 1 + at / 2 % TICKS);
    let (side, tick) = if owner % 2 == 0 { (Side::Buy, MIDDLE - away) } else { (Side::Sell, MIDDLE + away) };
    FlowEvent { nanoseconds: at.into(), owner, action: FlowAction::Rest(side, tick, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_rest_and_their_memory_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let figures = run(10_000, 5_000, folder.path(), &mut |_| {}).expect("it runs");
        assert_eq!((&figures["resting_orders"], &figures["refused"]), (&json!(10_000), &json!(0)), "{figures}");
        assert!(figures["bytes_of_an_order"]["ratio"].as_f64().is_some_and(|bytes| bytes > 100.0), "{figures}");
    }
}
