//! The state as a stream of chunks, for checkpoints and for new validators.
//!
//! Chunks are canonical: accounts by address, offers by pair and place, slots of contracts by account and slot, at
//! most 32,768 entries a chunk, code by its hash, one a chunk, and the payment lane's state in chunks of 1 MiB. So
//! two ledgers with the same state write the same bytes, and no second copy of the state is needed in memory.
//! [`Restore`] accepts exactly these bytes.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, Digest, Fraction, Height, MAX_ISSUED};

use crate::contracts::{Contracts, ContractsHead, EvmEngine, History, SlotKey};
use crate::genesis::Asset;
use crate::places::accounts::{Account, AccountState, Accounts, EvmRecord, shard_of};
use crate::places::bridge::{LaneBridge, LaneRecord};
use crate::places::offers::{Edit, Offer, OrderBook, Pair};
use crate::{AuditError, GenesisError, Ledger, Limits, RULES, Validators};

const ENTRIES: usize = 32_768;
const LANE_BYTES: usize = 1 << 20;
/// The version of the format of chunks; it comes first in the first chunk.
const FORMAT: u8 = 2;
/// What the first chunk begins with: its kind.
const HEAD: u8 = 0;

#[derive(BorshSerialize, BorshDeserialize)]
enum Chunk {
    Head(Box<Head>),
    Accounts(Vec<AccountState>),
    Offers(Pair, Vec<Offer>),
    Slots(Vec<Slot>),
    Code(Vec<u8>),
    /// Numbers of accounts, offers, slots and codes; it ends the state.
    End([u64; 4]),
    /// The payment lane.
    Lane(Box<LaneRecord>),
    /// A piece of the encoding of the payment lane's state.
    LaneState(Vec<u8>),
}

#[derive(Clone, BorshSerialize, BorshDeserialize)]
struct Slot {
    key: SlotKey,
    value: [u8; 32],
}

#[derive(Clone, BorshSerialize, BorshDeserialize)]
struct Head {
    format: u8,
    rules: u32,
    chain: u64,
    fee: Amount,
    epsilon: Fraction,
    mu: Fraction,
    limits: Limits,
    height: Height,
    last_block: Digest,
    time_ms: u64,
    assets: Vec<Asset>,
    validators: Validators,
    contracts: Option<ContractsHead>,
}

/// Why chunks do not form a state.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not a chunk.
    #[error("chunk {0} of the snapshot cannot be decoded: {1}")]
    Undecodable(usize, std::io::Error),
    /// The chunks are of another format.
    #[error("the snapshot is of format {0}, and this program reads {FORMAT}: use the version that wrote it")]
    Format(u8),
    /// A chunk of another kind is expected here.
    #[error("chunk {0} of the snapshot is out of place")]
    OutOfPlace(usize),
    /// The stream ended before its end mark.
    #[error("the snapshot ends after {0} chunks, before its end mark")]
    Incomplete(usize),
    /// This binary cannot follow the chain of the state.
    #[error("the snapshot cannot be used: {0}")]
    Genesis(#[from] GenesisError),
    /// The state violates an invariant.
    #[error("the snapshot's state violates an invariant: {0}")]
    Unsound(#[from] AuditError),
}

/// The chunks of a ledger's state, in order.
pub struct Snapshot<'a> {
    chunks: Box<dyn Iterator<Item = Vec<u8>> + Send + 'a>,
}

impl<'a> Snapshot<'a> {
    /// The chunks of the present state of `ledger`.
    pub fn of(ledger: &'a Ledger) -> Snapshot<'a> {
        let head = Chunk::Head(Box::new(Head {
            format: FORMAT,
            rules: RULES,
            chain: ledger.chain,
            fee: ledger.fee,
            epsilon: ledger.epsilon,
            mu: ledger.mu,
            limits: ledger.limits,
            height: ledger.height,
            last_block: ledger.last_block,
            time_ms: ledger.time_ms,
            assets: ledger.assets.clone(),
            validators: Validators::clone(&ledger.validators),
            contracts: ledger.contracts.head().cloned(),
        }));
        let accounts = ledger.accounts.shards().iter().flat_map(|shard| {
            let sorted = shard.sorted();
            let chunks: Vec<Vec<u8>> = sorted
                .chunks(ENTRIES)
                .map(|part| encode(&Chunk::Accounts(part.iter().map(|account| account.state()).collect())))
                .collect();
            chunks
        });
        let offers = ledger.book.iter().flat_map(|(pair, offers)| {
            let mut rest = offers.iter().peekable();
            std::iter::from_fn(move || {
                rest.peek()?;
                Some(encode(&Chunk::Offers(pair, rest.by_ref().take(ENTRIES).collect())))
            })
        });
        let contracts = &ledger.contracts;
        let slots = std::iter::once_with(|| contracts.sorted_slots().collect::<Vec<_>>());
        let slots = slots.flat_map(|slots| {
            let slot = |&(key, value): &(SlotKey, [u8; 32])| Slot { key, value };
            let chunk = |part: &[_]| encode(&Chunk::Slots(part.iter().map(slot).collect()));
            slots.chunks(ENTRIES).map(chunk).collect::<Vec<_>>()
        });
        let codes = std::iter::once_with(|| contracts.sorted_codes()).flatten();
        let codes = codes.map(|hash| encode(&Chunk::Code(contracts.code(&hash).expect("the code is stored").to_vec())));
        let lane = std::iter::once_with(|| ledger.lane()).flatten().flat_map(|lane| {
            let state = lane.bridge().encode();
            let record = Chunk::Lane(Box::new(lane.record()));
            let pieces = state.chunks(LANE_BYTES).map(|piece| encode(&Chunk::LaneState(piece.to_vec())));
            std::iter::once(encode(&record)).chain(pieces).collect::<Vec<_>>()
        });
        let counts = [ledger.accounts.len(), ledger.book.len(), contracts.slots(), contracts.codes()];
        let end = Chunk::End(counts.map(|count| count as u64));
        let ends = std::iter::once_with(move || encode(&end));
        Snapshot {
            chunks: Box::new(
                std::iter::once_with(move || encode(&head))
                    .chain(accounts)
                    .chain(offers)
                    .chain(slots)
                    .chain(codes)
                    .chain(lane)
                    .chain(ends),
            ),
        }
    }
}

impl Iterator for Snapshot<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.chunks.next()
    }
}

fn encode(chunk: &Chunk) -> Vec<u8> {
    borsh::to_vec(chunk).expect("writing to memory cannot fail")
}

/// Builds a ledger from chunks.
#[derive(Default)]
pub struct Restore {
    chunks: usize,
    head: Option<Head>,
    accounts: Accounts,
    book: OrderBook,
    /// The last account, and the number of entries of its chunk.
    last_account: Option<(Address, usize)>,
    /// The pair of the last offers, and the number of entries of their chunk.
    last_pair: Option<(Pair, usize)>,
    contracts: Contracts,
    /// The last slot, and the number of entries of its chunk.
    last_slot: Option<(SlotKey, usize)>,
    last_code: Option<Digest>,
    lane: Option<LaneRecord>,
    /// The part of the lane's state received so far.
    lane_state: Vec<u8>,
    complete: bool,
}

impl Restore {
    /// Reads the next chunk.
    ///
    /// # Errors
    /// [`SnapshotError`] if the bytes are not a chunk, or not the expected one.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let number = self.chunks;
        if let (0, [HEAD, format, ..]) = (number, bytes)
            && *format != FORMAT
        {
            return Err(SnapshotError::Format(*format));
        }
        let chunk = borsh::from_slice(bytes).map_err(|error| SnapshotError::Undecodable(number, error))?;
        self.chunks += 1;
        let out_of_place = || SnapshotError::OutOfPlace(number);
        match chunk {
            Chunk::Head(head) if number == 0 && head.rules != RULES => {
                return Err(GenesisError::Rules(head.rules).into());
            }
            Chunk::Head(head) if number == 0 => {
                self.contracts = head.contracts.clone().map_or(Contracts::default(), Contracts::new);
                self.head = Some(*head);
            }
            _ if self.head.is_none() || self.complete => return Err(out_of_place()),
            Chunk::Head(_) => return Err(out_of_place()),
            Chunk::Accounts(states) => {
                if self.last_pair.is_some() || self.is_past_offers() || !self.accounts_follow(&states) {
                    return Err(out_of_place());
                }
                self.last_account = states.last().map(|last| (last.address, states.len()));
                states.into_iter().for_each(|state| self.accounts.insert(Account::from_state(state)));
            }
            Chunk::Offers(pair, offers) => {
                if self.is_past_offers() || !self.offers_follow(pair, offers.len()) {
                    return Err(out_of_place());
                }
                self.last_pair = Some((pair, offers.len()));
                let book = Arc::make_mut(self.book.entry(pair));
                let sorted = offers.is_sorted_by(|a, b| a.place < b.place);
                let follows =
                    book.last().is_none_or(|last| offers.first().is_some_and(|first| last.place < first.place));
                if !sorted || !follows {
                    return Err(out_of_place());
                }
                let sum = offers.iter().map(|offer| u128::from(offer.amount)).sum::<u128>();
                let is_possible = book.locked() + sum <= u128::from(MAX_ISSUED);
                if !is_possible || offers.iter().any(|offer| offer.amount == 0) {
                    return Err(AuditError::Book(pair).into());
                }
                let edit = |offer: &Offer| Edit { place: offer.place, amount: Some(offer.amount) };
                book.apply(None, &offers.iter().map(edit).collect::<Vec<_>>());
            }
            Chunk::Slots(slots) => {
                if !self.slots_follow(&slots) {
                    return Err(out_of_place());
                }
                self.last_slot = slots.last().map(|last| (last.key, slots.len()));
                for Slot { key, value } in slots {
                    self.contracts.set_slot(key, Some(value));
                }
            }
            Chunk::Code(bytes) => {
                if self.contracts.head().is_none() || self.lane.is_some() {
                    return Err(out_of_place());
                }
                let hash = self.contracts.restore_code(bytes);
                if self.last_code.is_some_and(|last| last >= hash) {
                    return Err(out_of_place());
                }
                self.last_code = Some(hash);
            }
            Chunk::Lane(record) => {
                if self.lane.replace(*record).is_some() {
                    return Err(out_of_place());
                }
            }
            Chunk::LaneState(piece) => {
                let follows = self.lane.is_some() && self.lane_state.len().is_multiple_of(LANE_BYTES);
                if !follows || !(1..=LANE_BYTES).contains(&piece.len()) {
                    return Err(out_of_place());
                }
                self.lane_state.extend(piece);
            }
            Chunk::End(counts) => {
                let counted = [self.accounts.len(), self.book.len(), self.contracts.slots(), self.contracts.codes()];
                self.complete = counted.map(|count| count as u64) == counts;
                if !self.complete {
                    return Err(out_of_place());
                }
            }
        }
        Ok(())
    }

    /// Whether slots, code or the payment lane have been read.
    fn is_past_offers(&self) -> bool {
        self.last_slot.is_some() || self.last_code.is_some() || self.lane.is_some()
    }

    /// Whether a snapshot writes these slots next: in order, without zeros, each chunk full unless it is the last.
    fn slots_follow(&self, slots: &[Slot]) -> bool {
        let Some(first) = slots.first().filter(|_| self.contracts.head().is_some()) else { return false };
        let follows = self.last_slot.is_none_or(|(last, entries)| last < first.key && entries == ENTRIES);
        follows
            && self.last_code.is_none()
            && self.lane.is_none()
            && slots.len() <= ENTRIES
            && slots.is_sorted_by(|a, b| a.key < b.key)
            && slots.iter().all(|slot| slot.value != [0; 32])
    }

    /// Whether a snapshot writes these accounts next: by address, each chunk of one shard and full unless it is the
    /// shard's last, balances by asset and without zeros.
    fn accounts_follow(&self, states: &[AccountState]) -> bool {
        let Some(first) = states.first() else { return false };
        let shard = shard_of(&first.address);
        let follows = self
            .last_account
            .is_none_or(|(last, entries)| last < first.address && (shard_of(&last) < shard || entries == ENTRIES));
        let is_plain = |state: &AccountState| {
            let sorted = state.balances.is_sorted_by(|a, b| a.0 < b.0);
            sorted
                && state.balances.iter().all(|(_, units)| (1..=MAX_ISSUED).contains(units))
                && state.evm != Some(EvmRecord::default())
        };
        follows
            && states.len() <= ENTRIES
            && states.is_sorted_by(|a, b| a.address < b.address)
            && states.iter().all(|state| shard_of(&state.address) == shard && is_plain(state))
    }

    /// Whether a snapshot writes this many offers of this pair next: by pair, each chunk full unless it is the pair's
    /// last.
    fn offers_follow(&self, pair: Pair, entries: usize) -> bool {
        let follows = |(last, before): (Pair, usize)| last < pair || (last == pair && before == ENTRIES);
        (1..=ENTRIES).contains(&entries) && self.last_pair.is_none_or(follows)
    }

    /// The ledger, after all chunks.
    ///
    /// # Errors
    /// [`SnapshotError`] if some are missing, or the state violates an invariant.
    pub fn finish(mut self) -> Result<Ledger, SnapshotError> {
        let is_counted = self.contracts.count_codes(&self.accounts);
        let (Some(head), true) = (self.head, self.complete) else {
            return Err(SnapshotError::Incomplete(self.chunks));
        };
        let Head {
            format: _,
            rules: _,
            chain,
            fee,
            epsilon,
            mu,
            limits,
            height,
            last_block,
            time_ms,
            assets,
            validators,
            contracts: _,
        } = head;
        let validators = Arc::new(validators);
        let (accounts, book) = (self.accounts, self.book);
        let restore = |record| LaneBridge::restore(record, &self.lane_state, assets.len()).map(Arc::new);
        let lane = self.lane.map(restore).transpose().map_err(AuditError::Lane)?;
        let is_book_full = book.len() as u64 >= limits.resting_offers;
        let ledger = Ledger {
            chain,
            fee,
            epsilon,
            mu,
            limits,
            height,
            last_block,
            time_ms,
            assets,
            accounts,
            book,
            validators,
            contracts: self.contracts,
            lane,
            engine: EvmEngine::default(),
            history: History::default(),
            is_book_full,
            is_developers: false,
        };
        if !is_counted || ledger.limits.has_contracts() != ledger.contracts.head().is_some() {
            return Err(AuditError::Code.into());
        }
        ledger.audit()?;
        Ok(ledger)
    }
}
