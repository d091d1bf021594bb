//! Contracts as a place of custody: they hold remainders of wei below one unit. Storage has a trie; storage and code
//! have chunks, by slot and by hash.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Amount, Digest, Height};
use proofs::{RootPart, SlotKey, contracts_root};
use trie::Trie;

use super::{Contracts, ContractsHead};
use crate::places::unsound::AuditError;
use crate::places::{Audited, ChunkFault, Custody, ReadChunks, Restored, in_place, tagged};
use crate::terms::{Fork, ForkSchedule, Genesis, GenesisError};

/// Slots in a full chunk.
const ENTRIES: usize = 32_768;

/// What a block changed in the state of contracts besides the accounts.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContractsChange {
    /// Slots that changed: account and slot, with the value if it is not zero, in order.
    pub slots: Vec<(SlotKey, Option<[u8; 32]>)>,
    /// Digest of what contracts see besides accounts and storage; `None` on a chain without them.
    pub rest: Option<Digest>,
}

/// The trie of storage, and the digest of the rest.
#[derive(Clone, Default)]
pub(crate) struct ContractsTries {
    pub storage: Trie<52>,
    pub rest: Option<Digest>,
}

#[derive(BorshSerialize, BorshDeserialize)]
enum ContractsChunk {
    Head(ContractsHead),
    Slots(Vec<(SlotKey, [u8; 32])>),
    Code(Vec<u8>),
    /// The schedule of forks; it follows the head, unless it is the usual one.
    Forks(Vec<(Height, Fork)>),
}

impl Custody for Contracts {
    const TAG: u8 = RootPart::CONTRACTS;
    const NAME: &'static str = "remainders";
    type Edit<'a> = std::convert::Infallible;
    type Change = ContractsChange;
    type Tries = ContractsTries;
    type Reader = ContractsReader;

    fn found(genesis: &Genesis, last_block: Digest) -> Contracts {
        let base_fee = genesis.limits.least_base_fee;
        let head = || ContractsHead { base_fee, carried: 0, hashes: [last_block].into() };
        match genesis.limits.has_contracts() {
            true => Contracts::new(head(), genesis.forks.clone()),
            false => Contracts::default(),
        }
    }

    /// A developers' chain has contracts that anybody may edit. A schedule of forks stands behind that.
    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        let named = |steps| borsh::to_vec(&(genesis.is_developers, steps)).expect("writing to memory cannot fail");
        let forks = genesis.forks.unusual().map(named);
        forks.or_else(|| genesis.is_developers.then(Vec::new))
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        let developers = genesis.developers_fault().map(GenesisError::Developers);
        let forks = || genesis.forks.fault(genesis.limits.has_contracts(), genesis.is_developers);
        developers.or_else(|| forks().map(GenesisError::Forks))
    }

    fn whole(&self) -> ContractsChange {
        let slots = self.sorted_slots().map(|(key, value)| (key, Some(value))).collect();
        ContractsChange { slots, rest: self.digest() }
    }

    fn follow(tries: &mut ContractsTries, change: &ContractsChange) {
        if !change.slots.is_empty() {
            tries.storage.apply(&change.slots);
        }
        tries.rest = change.rest;
    }

    fn part(tries: &mut ContractsTries) -> Option<Digest> {
        let rest = tries.rest?;
        Some(contracts_root(&Digest(tries.storage.root().0), &rest))
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        let head = self.head().map(|head| tagged(Self::TAG, &ContractsChunk::Head(head.clone())));
        let forks = self.forks().unusual().filter(|_| head.is_some());
        let forks = forks.map(|steps| tagged(Self::TAG, &ContractsChunk::Forks(steps.clone())));
        let slots = std::iter::once_with(|| self.sorted_slots().collect::<Vec<_>>()).flat_map(|slots| {
            let chunk = |part: &[_]| tagged(Self::TAG, &ContractsChunk::Slots(part.to_vec()));
            slots.chunks(ENTRIES).map(chunk).collect::<Vec<_>>()
        });
        let code = |hash: &Digest| self.code(hash).expect("the code is stored").to_vec();
        let codes = std::iter::once_with(|| self.sorted_codes()).flatten();
        Box::new(
            head.into_iter()
                .chain(forks)
                .chain(slots)
                .chain(codes.map(move |hash| tagged(Self::TAG, &ContractsChunk::Code(code(&hash))))),
        )
    }

    fn entries(&self) -> u64 {
        (self.slots() + self.codes()) as u64
    }

    /// Whole units in remainders of wei: those of accounts, and burnt wei that are carried.
    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let wei_per_unit = audited.wei_per_unit;
        let accounts = audited.accounts.shards().iter().flat_map(|shard| shard.iter());
        let carried = self.head().map_or(0, |head| head.carried);
        let mut wei = u128::from(carried);
        let mut is_sound = carried < wei_per_unit;
        for remainder in accounts.map(|account| account.evm().remainder) {
            is_sound &= remainder < wei_per_unit;
            wei += u128::from(remainder);
        }
        let units = Amount::try_from(wei / u128::from(wei_per_unit)).ok();
        let is_whole = is_sound && wei.is_multiple_of(wei_per_unit.into());
        let mut held = audited.zero();
        held[0] = u128::from(units.filter(|_| is_whole).ok_or(AuditError::Wei(wei))?);
        Ok(held)
    }
}

/// Reads head, slots and code in the order in which a snapshot has them.
#[derive(Default)]
pub(crate) struct ContractsReader {
    contracts: Contracts,
    /// The last slot, and the number of entries of its chunk.
    last_slot: Option<(SlotKey, usize)>,
    last_code: Option<Digest>,
}

impl ContractsReader {
    /// Whether a schedule may come next: behind the head.
    fn awaits_forks(&self) -> bool {
        let contracts = &self.contracts;
        let is_first = self.last_slot.is_none() && self.last_code.is_none();
        contracts.head().is_some() && contracts.forks().is_usual() && is_first
    }

    /// Whether a snapshot writes these slots next: in order, without zeros, each chunk full unless it is the last.
    fn follows(&self, slots: &[(SlotKey, [u8; 32])]) -> bool {
        let Some((first, _)) = slots.first().filter(|_| self.contracts.head().is_some()) else { return false };
        self.last_slot.is_none_or(|(last, entries)| last < *first && entries == ENTRIES)
            && self.last_code.is_none()
            && slots.len() <= ENTRIES
            && slots.is_sorted_by(|a, b| a.0 < b.0)
            && slots.iter().all(|(_, value)| *value != [0; 32])
    }
}

impl ReadChunks<Contracts> for ContractsReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        match borsh::from_slice(bytes)? {
            ContractsChunk::Head(head) => {
                in_place(self.contracts.head().is_none())?;
                self.contracts = Contracts::new(head, ForkSchedule::default());
            }
            ContractsChunk::Forks(steps) => {
                in_place(self.awaits_forks())?;
                let forks = ForkSchedule::new(steps).ok().filter(|forks| !forks.is_usual());
                self.contracts.set_forks(forks.ok_or(ChunkFault::OutOfPlace)?);
            }
            ContractsChunk::Slots(slots) => {
                in_place(self.follows(&slots))?;
                self.last_slot = slots.last().map(|(key, _)| (*key, slots.len()));
                for (key, value) in slots {
                    self.contracts.set_slot(key, Some(value));
                }
            }
            ContractsChunk::Code(bytes) => {
                in_place(self.contracts.head().is_some())?;
                let hash = self.contracts.restore_code(bytes);
                in_place(self.last_code.is_none_or(|last| last < hash))?;
                self.last_code = Some(hash);
            }
        }
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.contracts.slots() as u64 + self.contracts.codes() as u64
    }

    fn finish(self, chain: &Restored) -> Result<Contracts, AuditError> {
        let is_whole = chain.limits.has_contracts() == self.contracts.head().is_some();
        if is_whole { Ok(self.contracts) } else { Err(AuditError::Code) }
    }
}
