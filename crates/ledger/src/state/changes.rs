//! What a block changed, as input for the tries. It is taken while the values do not change, so that hashing the
//! tries can continue while the next block is applied. Accounts are given by the digests of their states, offers by
//! place and amount.

use proofs::SlotKey;

use crate::places::PlaceChanges;

/// The entries of a block for the tries, each list sorted by key.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// What changed in each place of custody.
    pub(crate) places: PlaceChanges,
    /// Assets whose records changed.
    pub(crate) assets: Vec<(u32, [u8; 32])>,
}

impl Changes {
    /// Slots of contracts that changed: account and slot, with the value if it is not zero.
    pub fn slots(&self) -> &[(SlotKey, Option<[u8; 32]>)] {
        &self.places.contracts.slots
    }
}
