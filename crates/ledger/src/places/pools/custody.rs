//! Pools as a place of custody: one trie of pools and holdings beside the digest of the terms.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, AssetId, Digest, PoolKey};
use proofs::{HoldingId, PoolRecord, PoolRecordId, Refusal, RootPart, pool_record_value, pools_root};
use trie::Trie;

use super::{POOLS_MAX, PoolEdit, Pools, SHARES_MAX, SHARES_OF_NOBODY};
use crate::places::unsound::AuditError;
use crate::places::{Audited, ChunkFault, Custody, ReadChunks, Restored, Rules, bytes_of, in_place, tagged};
use crate::terms::{Genesis, GenesisError, PoolTerms};

const TERMS_CONTEXT: &str = "walras 2026 pool terms v1";
/// Records in a full chunk.
const ENTRIES: usize = 4_096;
const _: () = assert!(POOLS_MAX <= ENTRIES, "all pools are in one chunk");

/// What a block changed.
#[derive(Clone, Debug)]
pub(crate) struct PoolsChange {
    /// Records by their keys in the trie, in order, with their values if they exist.
    pub(super) rows: Vec<([u8; 32], Option<[u8; 32]>)>,
    /// Digest of the terms.
    pub(super) terms: Digest,
}

/// The trie of records, and the digest of the terms.
#[derive(Clone, Default)]
pub(crate) struct PoolTries {
    pub records: Trie<32>,
    /// `None` on a chain without pools.
    pub terms: Option<Digest>,
}

#[derive(BorshSerialize, BorshDeserialize)]
enum PoolsChunk {
    Head(PoolTerms),
    Pools(Vec<(PoolKey, PoolRecord)>),
    Holdings(Vec<(HoldingId, u64)>),
}

impl Pools {
    pub(super) fn terms_digest(&self) -> Digest {
        Digest::of(TERMS_CONTEXT, &bytes_of(&self.terms))
    }

    /// The encoding of a record, if it exists.
    pub(crate) fn record(&self, id: &PoolRecordId) -> Option<Vec<u8>> {
        match id {
            PoolRecordId::Pool(pool) => self.get(pool).map(bytes_of),
            PoolRecordId::Holding(of) => self.holdings.get(of).map(bytes_of),
        }
    }

    /// The fault of a state that was read, if there is one.
    pub(super) fn fault(&self, assets: usize) -> Option<&'static str> {
        let is_listed = |asset: AssetId| (asset.0 as usize) < assets;
        let is_pool = |(key, pool): (&PoolKey, &PoolRecord)| {
            key.a < key.b
                && is_listed(key.b)
                && usize::from(key.class) < self.terms.fees.len()
                && pool.a > 0
                && pool.b > 0
                && (SHARES_OF_NOBODY..=SHARES_MAX).contains(&pool.shares)
        };
        let is_held = |((pool, account), shares): (&HoldingId, &u64)| {
            self.get(pool).is_some() && *shares > 0 && self.pools_of.contains(&(*account, *pool))
        };
        Some(match () {
            _ if self.terms.fault().is_some() => "their terms cannot be",
            _ if self.pools.len() > POOLS_MAX => "there are too many",
            _ if !self.pools.iter().all(is_pool) => "a pool cannot be",
            _ if !self.holdings.iter().all(is_held) => "a holding has no shares, or its pool does not exist",
            _ if !self.is_all_held() => "the shares of a pool are not those of its holdings and of nobody",
            _ => return None,
        })
    }

    /// Whether the shares of every pool are as many as its holders have, and nobody's shares beside them.
    fn is_all_held(&self) -> bool {
        let mut holdings = self.holdings.iter().peekable();
        self.pools.iter().all(|(key, pool)| {
            let mut held = u128::from(SHARES_OF_NOBODY);
            while let Some((_, shares)) = holdings.next_if(|((of, _), _)| of == key) {
                held += u128::from(*shares);
            }
            held == u128::from(pool.shares)
        })
    }
}

impl Custody for Option<Arc<Pools>> {
    const TAG: u8 = RootPart::POOLS;
    const NAME: &'static str = "pools";
    type Edit<'a> = PoolEdit<'a>;
    type Change = Option<PoolsChange>;
    type Tries = PoolTries;
    type Reader = PoolsReader;

    fn found(genesis: &Genesis, _: Digest) -> Self {
        genesis.pools.clone().map(|terms| Arc::new(Pools::new(terms)))
    }

    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        genesis.pools.as_ref().map(bytes_of)
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        genesis.pools.as_ref()?.fault().map(GenesisError::Pools)
    }

    fn check(&self, _: &Rules, _: Address, edit: PoolEdit<'_>) -> Result<(), Refusal> {
        self.as_ref().ok_or(Refusal::NO_POOLS)?.check(edit.operation)
    }

    fn whole(&self) -> Self::Change {
        let pools = self.as_ref()?;
        let ids = pools.pools.keys().map(|pool| PoolRecordId::Pool(*pool));
        let ids = ids.chain(pools.holdings.iter().map(|(of, _)| PoolRecordId::Holding(*of)));
        let row = |id: PoolRecordId| (id.key(), pools.record(&id).as_deref().map(pool_record_value));
        let mut rows: Vec<_> = ids.map(row).collect();
        rows.sort_unstable();
        Some(PoolsChange { rows, terms: pools.terms_digest() })
    }

    fn follow(tries: &mut PoolTries, change: &Self::Change) {
        tries.terms = change.as_ref().map(|change| {
            tries.records.apply(&change.rows);
            change.terms
        });
    }

    fn part(tries: &mut PoolTries) -> Option<Digest> {
        let terms = tries.terms?;
        Some(pools_root(&Digest(tries.records.root().0), &terms))
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        let chunks = |pools: &'_ Arc<Pools>| {
            let list: Vec<_> = pools.pools.iter().map(|(key, pool)| (*key, *pool)).collect();
            let holdings: Vec<_> = pools.holdings.iter().map(|(of, shares)| (*of, *shares)).collect();
            let lists = list.chunks(ENTRIES).map(|part| PoolsChunk::Pools(part.to_vec()));
            let held = holdings.chunks(ENTRIES).map(|part| PoolsChunk::Holdings(part.to_vec()));
            let head = [PoolsChunk::Head(pools.terms.clone())];
            head.into_iter().chain(lists).chain(held).map(|chunk| tagged(Self::TAG, &chunk)).collect::<Vec<_>>()
        };
        Box::new(self.iter().flat_map(chunks))
    }

    fn entries(&self) -> u64 {
        self.as_ref().map_or(0, |pools| 1 + (pools.pools.len() + pools.holdings.len()) as u64)
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let mut held = audited.zero();
        let Some(pools) = self else { return Ok(held) };
        if let Some(fault) = pools.fault(audited.assets.len()) {
            return Err(AuditError::Pools(fault));
        }
        for (key, pool) in &pools.pools {
            held[key.a.0 as usize] += u128::from(pool.a);
            held[key.b.0 as usize] += u128::from(pool.b);
        }
        Ok(held)
    }
}

/// Reads terms, pools and holdings in the order in which a snapshot has them.
#[derive(Default)]
pub(crate) struct PoolsReader {
    pools: Option<Pools>,
    /// The last holding, and the number of entries of its chunk.
    last: Option<(HoldingId, usize)>,
}

impl PoolsReader {
    /// Whether a snapshot writes these holdings next: in order, each chunk full unless it is the last.
    fn follows(&self, holdings: &[(HoldingId, u64)]) -> bool {
        let Some((first, _)) = holdings.first() else { return false };
        self.last.is_none_or(|(last, entries)| last < *first && entries == ENTRIES)
            && holdings.len() <= ENTRIES
            && holdings.is_sorted_by(|a, b| a.0 < b.0)
    }
}

impl ReadChunks<Option<Arc<Pools>>> for PoolsReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        match borsh::from_slice(bytes)? {
            PoolsChunk::Head(terms) => {
                in_place(self.pools.is_none())?;
                self.pools = Some(Pools::new(terms));
            }
            PoolsChunk::Pools(list) => {
                let is_list = (1..=POOLS_MAX).contains(&list.len()) && list.is_sorted_by(|a, b| a.0 < b.0);
                let pools = self.pools.as_mut().filter(|pools| is_list && pools.pools.is_empty());
                pools.filter(|_| self.last.is_none()).ok_or(ChunkFault::OutOfPlace)?.pools = list.into_iter().collect();
            }
            PoolsChunk::Holdings(list) => {
                in_place(self.follows(&list))?;
                let pools = self.pools.as_mut().ok_or(ChunkFault::OutOfPlace)?;
                self.last = list.last().map(|(of, _)| (*of, list.len()));
                for (of, shares) in list {
                    pools.set_holding(of, shares);
                }
            }
        }
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.pools.as_ref().map_or(0, |pools| 1 + (pools.pools.len() + pools.holdings.len()) as u64)
    }

    fn finish(self, chain: &Restored) -> Result<Option<Arc<Pools>>, AuditError> {
        match self.pools.as_ref().and_then(|pools| pools.fault(chain.assets)) {
            Some(fault) => Err(AuditError::Pools(fault)),
            None => Ok(self.pools.map(Arc::new)),
        }
    }
}
