//! Reads of constant-product pools.

use std::sync::Arc;

use ledger::{PoolProof, PoolRecordId, Pools};
use primitives::{Amount, Height};

use super::{Proved, ReadError};

/// Reads of pools.
pub trait PoolReads {
    /// The pools as they are now; `None` on a chain without them.
    fn pools(&self) -> Option<PoolsRead>;

    /// A pool or a holding, or its absence, with its path to the state root; `None` on a chain without pools.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_pool(&self, id: &PoolRecordId) -> Result<Option<Proved<PoolProof>>, ReadError>;
}

/// The pools at a height, shared with the ledger.
#[derive(Clone, Debug)]
pub struct PoolsRead {
    /// Height of the state.
    pub height: Height,
    /// The pools.
    pub pools: Arc<Pools>,
    /// The least units of each asset, by number.
    pub least_units: Vec<Amount>,
}
