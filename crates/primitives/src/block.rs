//! Superblocks: what consensus decides and the ledger applies.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Digest, Transaction};

const BLOCK_CONTEXT: &str = "walras 2026 superblock v1";

/// The number of a block; the genesis state is height 0 and the first block height 1.
pub type Height = u64;

/// One validator's share of a superblock.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SubBlock {
    /// The proposer's number in the epoch's list of validators.
    pub proposer: u32,
    /// Native transactions. Their order means nothing (rule 6).
    pub native: Vec<Transaction>,
}

/// A decided block: the sub-blocks of one height, and the state that they build on.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Superblock {
    /// Height of this block.
    pub height: Height,
    /// Digest of the block below; of the genesis for height 1.
    pub parent: Digest,
    /// Milliseconds since 1970, by the proposer's clock; it orders nothing and decides nothing.
    pub time_ms: u64,
    /// The state root after the block below, so that hashing stays off the critical path (rule 9).
    pub parent_root: Digest,
    /// The validators' shares in slot order.
    pub sub_blocks: Vec<SubBlock>,
}

impl Superblock {
    /// Number of native transactions in all sub-blocks.
    pub fn native_len(&self) -> usize {
        self.sub_blocks.iter().map(|sub| sub.native.len()).sum()
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("writing to memory cannot fail")
    }

    /// The digest of an encoded superblock.
    pub fn digest(bytes: &[u8]) -> Digest {
        Digest::of(BLOCK_CONTEXT, bytes)
    }
}
