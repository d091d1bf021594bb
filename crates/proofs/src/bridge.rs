//! Entries of the bridge to the payment lane as they are proved.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};

const CONTEXT: &str = "walras 2026 bridge root v1";

/// The bridge's part of the state root.
pub fn bridge_root(entries: &Digest, rest: &Digest) -> Digest {
    Digest::of(CONTEXT, &[entries.0, rest.0].concat())
}

/// A proof that the bridge to the payment lane has some entries, or lacks them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// Root of the trie of entries.
    pub entries: Digest,
    /// Digest of what is no entry.
    pub rest: Digest,
    /// The path of each entry in the trie.
    pub paths: Vec<Vec<u8>>,
}

impl LaneProof {
    /// Checks against a state root that the bridge has exactly these entries, each a key with the digest of what is
    /// there. Those without a digest are proved to be missing. `payments::BridgeEntry` makes them.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid, or the ledger has another value under one of the keys.
    pub fn verify<Key: AsRef<[u8]>>(
        &self,
        root: &Digest,
        expected: &[(Key, Option<[u8; 32]>)],
    ) -> Result<(), ProofFault> {
        if self.parts.part(root, RootPart::ESCROW)? != bridge_root(&self.entries, &self.rest) {
            return Err(ProofFault::OtherRoot);
        }
        if self.paths.len() != expected.len() {
            return Err(ProofFault::OtherValue);
        }
        let mut both = expected.iter().zip(&self.paths);
        both.try_for_each(|((key, value), path)| check_path(&self.entries, key.as_ref(), path, *value))
    }
}
