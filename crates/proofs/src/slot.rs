//! Slots of contracts as they are proved.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Digest};

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};

const CONTEXT: &str = "walras 2026 contracts root v1";

/// A slot of an account as a key of the trie: address, then slot, big-endian.
pub type SlotKey = [u8; 52];

/// The key of a slot.
pub fn slot_key(address: &Address, slot: &[u8; 32]) -> SlotKey {
    let mut key = [0; 52];
    key[..20].copy_from_slice(&address.0);
    key[20..].copy_from_slice(slot);
    key
}

/// The part of the state root: what contracts have stored, and what else they see of the chain.
pub fn contracts_root(storage: &Digest, rest: &Digest) -> Digest {
    Digest::of(CONTEXT, &[storage.0, rest.0].concat())
}

/// A proof of the value of a contract's slot.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SlotProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// Root of the trie of storage.
    pub storage: Digest,
    /// What contracts see besides accounts and storage.
    pub contracts: Digest,
    /// The value, big-endian; `None` proves that it is zero.
    pub value: Option<[u8; 32]>,
    /// The path in the trie of storage.
    pub path: Vec<u8>,
}

impl SlotProof {
    /// Checks the proof against a state root; returns the value, big-endian, or `None` if it is proved to be zero.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, address: &Address, slot: &[u8; 32]) -> Result<Option<[u8; 32]>, ProofFault> {
        if self.parts.part(root, RootPart::CONTRACTS)? != contracts_root(&self.storage, &self.contracts) {
            return Err(ProofFault::OtherRoot);
        }
        check_path(&self.storage, &slot_key(address, slot), &self.path, self.value)?;
        Ok(self.value)
    }
}
