//! Proofs of records of venues by the state root alone: a venue, a market, a deposit, a key, an order's entry.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};
use crate::venue_records::{VenueRecordId, record_value};

const CONTEXT: &str = "walras 2026 venues root v1";

/// The part of the state root: the trie of records, and the digest of network, terms and horizon.
pub fn venues_root(records: &Digest, rest: &Digest) -> Digest {
    Digest::of(CONTEXT, &[records.0, rest.0].concat())
}

/// A proof that a record of venues is what it is, or that there is none.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The digest of network, terms and horizon of the venues.
    pub rest: Digest,
    /// The root of the trie of records.
    pub records: Digest,
    /// The encoding of the record; `None` proves that there is none.
    pub record: Option<Vec<u8>>,
    /// The path in the trie of records.
    pub path: Vec<u8>,
}

impl VenueProof {
    /// Checks the proof against a state root; returns the record, or `None` if it is proved not to exist. `T` is the
    /// type that the id names.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify<T: BorshDeserialize>(&self, root: &Digest, id: &VenueRecordId) -> Result<Option<T>, ProofFault> {
        if self.parts.part(root, RootPart::VENUES)? != venues_root(&self.records, &self.rest) {
            return Err(ProofFault::OtherRoot);
        }
        check_path(&self.records, &id.key(), &self.path, self.record.as_deref().map(record_value))?;
        let decode = |bytes: &Vec<u8>| borsh::from_slice(bytes).map_err(|_| ProofFault::OtherValue);
        self.record.as_ref().map(decode).transpose()
    }
}
