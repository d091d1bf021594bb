//! A root that takes what another thread has checked ahead of it.

use std::time::Instant;

use ::venue::{CheckedOrder, VenueInput, VenueRootError};
use primitives::venue::SignedOrder;
use store::RealDisk;

use crate::flow::FlowEvent;
use crate::venue_world::{VenueWorld, input};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum VenueBenchError {
    /// The root refuses.
    #[error(transparent)]
    Root(#[from] VenueRootError),
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// Files or sockets.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// There is nothing to do.
    #[error("the flow has no orders: name a file of ITCH 5.0 messages with orders, or --arrivals of at least 1")]
    Empty,
}

/// Steps between two blocks.
pub(crate) const STEPS_OF_BLOCK: usize = 8;

/// Batches whose signatures are checked ahead of the root: as many as a venue's queue has room for.
const BATCHES_AHEAD: usize = 64;

/// A root takes batches of inputs that another thread makes. As in a venue's host, a step takes all that waits when the
/// disk is ready. Returns how long all of it took, from the first batch on.
pub(crate) fn trade_ahead(
    world: &mut VenueWorld<RealDisk>,
    batches: impl Iterator<Item = Vec<VenueInput>> + Send,
) -> Result<f64, VenueBenchError> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let (given, ahead) = std::sync::mpsc::sync_channel(BATCHES_AHEAD);
        scope.spawn(move || {
            for batch in batches {
                // The root is gone if its disk fails.
                if given.send(batch).is_err() {
                    return;
                }
            }
        });
        let mut since_block = 0;
        while let Ok(mut inputs) = ahead.recv() {
            since_block += 1;
            for more in ahead.try_iter() {
                inputs.extend(more);
                since_block += 1;
            }
            if since_block >= STEPS_OF_BLOCK {
                since_block = 0;
                inputs.push(world.next_block());
            }
            world.begin(&inputs)?;
        }
        world.finish()?;
        Ok(begun.elapsed().as_secs_f64())
    })
}

/// The inputs of arrivals, of which the first has this position.
pub(crate) fn inputs(
    events: &[FlowEvent],
    orders: &[Option<SignedOrder>],
    checked: &[Option<CheckedOrder>],
    first: usize,
) -> Vec<VenueInput> {
    let mut checked = checked.iter();
    let one = |(at, (event, order)): (usize, (&FlowEvent, &Option<SignedOrder>))| {
        let order = order.and_then(|_| checked.next().copied().flatten());
        input(event, first + at, order)
    };
    events.iter().zip(orders).enumerate().filter_map(one).collect()
}
