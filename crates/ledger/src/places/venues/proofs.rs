//! Proofs of records of venues by the state root alone: a venue, a market, a deposit, a key, an order's entry.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;
use trie::Proof;

use super::Venues;
use super::custody::{VenueTries, venues_root};
use super::records::{VenueRecordId, value_of};
use crate::places::Custody;
use crate::{ProofFault, RootParts};

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
    /// Proves a record in the state of these tries, whose parts were just taken.
    pub(crate) fn of(tries: &mut VenueTries, parts: RootParts, venues: &Venues, id: &VenueRecordId) -> Option<Self> {
        let rest = tries.rest?;
        let records = Digest(tries.records.root().0);
        let path = tries.records.prove(&id.key()).expect("the root was just taken").as_bytes().to_vec();
        Some(VenueProof { parts, rest, records, record: venues.record(id), path })
    }

    /// Checks the proof against a state root; returns the record, or `None` if it is proved not to exist. `T` is the
    /// type that the id names.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify<T: BorshDeserialize>(&self, root: &Digest, id: &VenueRecordId) -> Result<Option<T>, ProofFault> {
        if self.parts.root() != *root {
            return Err(ProofFault::OtherRoot);
        }
        let tag = Option::<Arc<Venues>>::TAG;
        let part = self.parts.get(tag).ok_or(ProofFault::NoPart(tag))?;
        if part != venues_root(&self.records, &self.rest) {
            return Err(ProofFault::OtherRoot);
        }
        let path = Proof::from_bytes(self.path.clone());
        let shown: Option<[u8; 32]> = trie::verify(&trie::Root(self.records.0), &id.key(), &path)?;
        if shown != self.record.as_deref().map(value_of) {
            return Err(ProofFault::OtherValue);
        }
        let decode = |bytes: &Vec<u8>| borsh::from_slice(bytes).map_err(|_| ProofFault::OtherValue);
        self.record.as_ref().map(decode).transpose()
    }
}
