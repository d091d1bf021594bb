//! Superblocks: what consensus decides and the ledger applies.

use borsh::{BorshDeserialize, BorshSerialize};
use rayon::prelude::*;

use crate::{Digest, Transaction};

const BLOCK_CONTEXT: &str = "walras 2026 superblock v1";
/// Transactions that one thread encodes at a time.
const PART: usize = 1_024;

/// The number of a block; the genesis state is height 0 and the first block height 1.
pub type Height = u64;

/// One validator's share of a superblock.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SubBlock {
    /// The proposer's number in the epoch's list of validators.
    pub proposer: u32,
    /// Milliseconds since 1970, by the proposer's clock.
    pub time_ms: u64,
    /// Native transactions. Their order means nothing (rule 6).
    pub native: Vec<Transaction>,
    /// Positions of the transactions whose signature is not valid, ascending: found by each validator for itself and
    /// not part of what was proposed. Written down so that nobody has to look again.
    pub forged: Vec<u32>,
}

impl SubBlock {
    /// What its proposer sends: everything but who it is and what others find.
    pub fn to_payload(&self) -> Vec<u8> {
        let mut bytes = encoded(&(self.time_ms, length(self.native.len())));
        bytes.extend(encoded_each(&self.native));
        bytes
    }

    /// Reads what a proposer sent.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn from_payload(proposer: u32, bytes: &[u8]) -> std::io::Result<SubBlock> {
        let (time_ms, native) = borsh::from_slice(bytes)?;
        Ok(SubBlock { proposer, time_ms, native, forged: Vec::new() })
    }
}

/// A decided block: the sub-blocks of one height, and the state that they build on.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Superblock {
    /// Height of this block.
    pub height: Height,
    /// Digest of the block below; of the genesis for height 1.
    pub parent: Digest,
    /// Milliseconds since 1970: the median of the sub-blocks' clocks; it orders nothing and decides nothing.
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

    /// For each native transaction whether its signature is valid; `None` if all are.
    pub fn signatures(&self) -> Option<Vec<bool>> {
        self.sub_blocks.iter().any(|sub| !sub.forged.is_empty()).then(|| {
            let of = |sub: &SubBlock| {
                let mut valid = vec![true; sub.native.len()];
                sub.forged.iter().for_each(|at| valid[*at as usize] = false);
                valid
            };
            self.sub_blocks.iter().flat_map(of).collect()
        })
    }

    /// The canonical encoding, written in parallel on the current rayon pool where that is worth it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = encoded(&(self.height, self.parent, self.time_ms, self.parent_root));
        bytes.extend(encoded(&length(self.sub_blocks.len())));
        for SubBlock { proposer, time_ms, native, forged } in &self.sub_blocks {
            bytes.extend(encoded(&(proposer, time_ms, length(native.len()))));
            let parts: Vec<Vec<u8>> = native.par_chunks(PART).map(encoded_each).collect();
            bytes.reserve(parts.iter().map(Vec::len).sum());
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
            bytes.extend(encoded(forged));
        }
        bytes
    }

    /// The digest of an encoded superblock.
    pub fn digest(bytes: &[u8]) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key(BLOCK_CONTEXT);
        Digest(hasher.update_rayon(bytes).finalize().into())
    }
}

fn encoded(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory cannot fail")
}

fn encoded_each(transactions: &[Transaction]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(transactions.len() * 256);
    transactions.iter().for_each(|t| t.serialize(&mut bytes).expect("writing to memory cannot fail"));
    bytes
}

fn length(items: usize) -> u32 {
    u32::try_from(items).expect("fewer than 2^32 items in a block")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, AssetId, Body, Operation, PublicKey, Signature};

    #[test]
    fn written_in_parallel_is_written_the_same() {
        let transaction = |sequence| Transaction {
            body: Body {
                chain: 1,
                account: Address([3; 20]),
                sequence,
                operation: match sequence % 2 {
                    0 => Operation::Burn { asset: AssetId(1), amount: sequence },
                    _ => Operation::Pay { to: Address([4; 20]), asset: AssetId(2), amount: sequence },
                },
            },
            signer: PublicKey([5; 32]),
            signature: Signature([6; 64]),
        };
        for sizes in [vec![], vec![0], vec![3], vec![1, 0, 2], vec![PART as u64 * 3 + 7, 5]] {
            let sub_block = |(i, size): (usize, &u64)| SubBlock {
                proposer: i as u32,
                time_ms: 7,
                native: (0..*size).map(transaction).collect(),
                forged: (0..*size as u32 / 2).collect(),
            };
            let sub_blocks = sizes.iter().enumerate().map(sub_block).collect();
            let (parent, parent_root) = (Digest([1; 32]), Digest([2; 32]));
            let block = Superblock { height: 9, parent, time_ms: 8, parent_root, sub_blocks };
            for sub in &block.sub_blocks {
                let read = SubBlock::from_payload(sub.proposer, &sub.to_payload()).expect("its own bytes");
                assert_eq!(SubBlock { forged: sub.forged.clone(), ..read }, *sub);
            }
            let plain = borsh::to_vec(&block).expect("writing to memory");
            assert_eq!(block.to_bytes(), plain);
            assert_eq!(Superblock::digest(&plain), Digest::of(BLOCK_CONTEXT, &plain));
        }
    }
}
