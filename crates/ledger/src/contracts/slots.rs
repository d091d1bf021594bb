//! Slots of storage as keys.

use primitives::{Address, AssetId};

/// Asset 0 pays for gas.
pub(super) const GAS_ASSET: AssetId = AssetId(0);

/// A slot of an account as a key of the trie: address, then slot, big-endian.
pub type SlotKey = [u8; 52];

/// The key of a slot.
pub(crate) fn slot_key(address: &Address, slot: &[u8; 32]) -> SlotKey {
    let mut key = [0; 52];
    key[..20].copy_from_slice(&address.0);
    key[20..].copy_from_slice(slot);
    key
}
