//! Pools and holdings of their shares as they stand in the state, and proofs of them by the state root alone.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, PoolKey};

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};

const ROOT_CONTEXT: &str = "walras 2026 pools root v1";
const KEY_CONTEXT: &str = "walras 2026 pool record id v1";
const VALUE_CONTEXT: &str = "walras 2026 pool record v1";

/// A pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PoolRecord {
    /// Units of `a` that it holds, at least 1.
    pub a: Amount,
    /// Units of `b`, at least 1.
    pub b: Amount,
    /// Its shares, those that belong to nobody included.
    pub shares: u64,
}

/// A holding of shares, by pool and account.
pub type HoldingId = (PoolKey, Address);

/// Names a record of pools in the state root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum PoolRecordId {
    /// A pool ([`PoolRecord`]).
    Pool(PoolKey),
    /// A holding: shares, a `u64` above zero.
    Holding(HoldingId),
}

impl PoolRecordId {
    /// Its key in the trie of records.
    pub fn key(&self) -> [u8; 32] {
        // The longest id, that of a holding, has 30 bytes.
        Digest::of_short::<30>(KEY_CONTEXT, self).0
    }
}

/// The value of an encoded record in the trie of records.
pub fn pool_record_value(record: &[u8]) -> [u8; 32] {
    Digest::of(VALUE_CONTEXT, record).0
}

/// The part of the state root: the trie of records, and the digest of the terms.
pub fn pools_root(records: &Digest, terms: &Digest) -> Digest {
    Digest::of(ROOT_CONTEXT, &[records.0, terms.0].concat())
}

/// What an account moved into a pool or out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Pooled {
    /// Units of `a`: paid by an opening or a provision, received by whoever leaves.
    pub a: Amount,
    /// Units of `b`.
    pub b: Amount,
    /// Shares received, or given back.
    pub shares: u64,
}

/// What a pool traded in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PoolFill {
    /// The pool.
    pub pool: PoolKey,
    /// Whether it sold `a` for `b`, and not `b` for `a`.
    pub sells_a: bool,
    /// Units that it sold, at least 1.
    pub sold: Amount,
    /// Units that it received, at least 1.
    pub bought: Amount,
}

impl PoolFill {
    /// The asset that it sold.
    pub fn sell(&self) -> AssetId {
        if self.sells_a { self.pool.a } else { self.pool.b }
    }

    /// The asset that it received.
    pub fn buy(&self) -> AssetId {
        if self.sells_a { self.pool.b } else { self.pool.a }
    }
}

/// A proof that a record of pools is what it is, or that there is none.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PoolProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The digest of the terms of pools.
    pub terms: Digest,
    /// The root of the trie of records.
    pub records: Digest,
    /// The encoding of the record; `None` proves that there is none.
    pub record: Option<Vec<u8>>,
    /// The path in the trie of records.
    pub path: Vec<u8>,
}

impl PoolProof {
    /// Checks the proof of a pool against a state root; returns the pool, or `None` if it is proved not to exist.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify_pool(&self, root: &Digest, pool: PoolKey) -> Result<Option<PoolRecord>, ProofFault> {
        self.verify(root, &PoolRecordId::Pool(pool))
    }

    /// Checks the proof of a holding against a state root; returns its shares, or `None` if the account is proved to
    /// have none.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify_holding(&self, root: &Digest, of: HoldingId) -> Result<Option<u64>, ProofFault> {
        self.verify(root, &PoolRecordId::Holding(of))
    }

    fn verify<T: BorshDeserialize>(&self, root: &Digest, id: &PoolRecordId) -> Result<Option<T>, ProofFault> {
        if self.parts.part(root, RootPart::POOLS)? != pools_root(&self.records, &self.terms) {
            return Err(ProofFault::OtherRoot);
        }
        check_path(&self.records, &id.key(), &self.path, self.record.as_deref().map(pool_record_value))?;
        let decode = |bytes: &Vec<u8>| borsh::from_slice(bytes).map_err(|_| ProofFault::OtherValue);
        self.record.as_ref().map(decode).transpose()
    }
}
