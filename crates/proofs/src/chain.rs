//! The scope of all signatures of an epoch: the chain, the epoch, its heights, and its validators' keys.

use std::ops::RangeInclusive;

use borsh::BorshSerialize;
use primitives::{Digest, PublicKey, Scope};

use crate::committee::{Committee, Index};

/// An epoch of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The digest of the genesis.
    pub genesis: Digest,
    /// The epoch's number.
    pub epoch: u64,
    /// The heights that its validators decide, and no others.
    pub heights: RangeInclusive<u64>,
    /// The validators' keys, by index.
    pub keys: Vec<PublicKey>,
}

/// The heights of a chain whose validators never change.
pub const ALL_HEIGHTS: RangeInclusive<u64> = 1..=u64::MAX;

impl Chain {
    /// The thresholds of its committee.
    ///
    /// # Panics
    /// If it has no validators, or more than 256.
    pub fn committee(&self) -> Committee {
        Committee::new(self.keys.len())
    }

    /// The index of a key.
    pub fn index_of(&self, key: &PublicKey) -> Option<Index> {
        self.keys.iter().position(|other| other == key).map(|index| index as Index)
    }

    /// The scope to which its validators' statements are bound.
    pub fn scope(&self) -> Scope {
        Scope { network: self.genesis, epoch: self.epoch }
    }

    /// The digest of `what`, in a domain, for this epoch of this chain only.
    pub fn digest(&self, context: &'static str, what: &impl BorshSerialize) -> Digest {
        let bytes = borsh::to_vec(&(self.genesis, self.epoch, what)).expect("writing to memory cannot fail");
        Digest::of(context, &bytes)
    }
}
