//! Reads of venues of continuous markets.

use std::sync::Arc;

use ledger::{VenueProof, VenueRecordId, Venues};
use primitives::Height;

use super::{Proved, ReadError};

/// Reads of venues.
pub trait VenueReads {
    /// The venues as they are now; `None` on a chain without them.
    fn venues(&self) -> Option<VenuesRead>;

    /// A record of venues, or its absence, with its path to the state root; `None` on a chain without them.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_venue(&self, id: &VenueRecordId) -> Result<Option<Proved<VenueProof>>, ReadError>;
}

/// The venues at a height. They are shared with the ledger and copied where it changes them, so that a reader may look
/// for as long as a page takes.
#[derive(Clone, Debug)]
pub struct VenuesRead {
    /// Height of the state.
    pub height: Height,
    /// The venues.
    pub venues: Arc<Venues>,
}
