//! The state as a stream of chunks, for checkpoints and for new validators.
//!
//! A chunk is a tag and bytes. First comes the head (tag 0): the version of the format, the rules of the state's
//! height, the chain and its assets. A program reads the states of all rules that it replays. Then
//! each place of custody writes its chunks behind its own tag, in the order of tags: accounts by address, offers by
//! pair and place, contracts by slot and by hash of code, the payment lane in pieces, the registry. The end (tag 255)
//! says how many entries each place has. Places decide how they cut their state, in one way only. So two ledgers with
//! the same state write the same bytes, and no second copy of the state is needed in memory. [`Restore`] accepts
//! exactly these bytes.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Amount, Digest, Fraction, Height};
use proofs::Asset;

use super::audit::slots_of;
use super::ledger::Ledger;
use crate::contracts::{EvmEngine, History};
use crate::places::assets::Crowd;
use crate::places::controls::HeldOffers;
use crate::places::seals::OpenedNames;
use crate::places::tags::{CHAIN, END};
use crate::places::unsound::AuditError;
use crate::places::{ChunkFault, PlaceReaders, Restored, in_place, tagged};
use crate::terms::{GenesisError, Limits, Parameters, RULES_FLOOR, RULES_NEWEST};

/// The version of the format of chunks; it follows the tag of the first chunk.
const FORMAT: u8 = 4;

#[derive(BorshSerialize, BorshDeserialize)]
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
        let head = Head {
            format: FORMAT,
            rules: ledger.rules_at(ledger.height),
            chain: ledger.chain,
            fee: ledger.fee,
            epsilon: ledger.epsilon,
            mu: ledger.mu,
            limits: ledger.limits,
            height: ledger.height,
            last_block: ledger.last_block,
            time_ms: ledger.time_ms,
            assets: ledger.assets.clone(),
        };
        let head = std::iter::once_with(move || tagged(CHAIN, &head));
        let end = std::iter::once_with(|| tagged(END, &ledger.places.entries()));
        Snapshot { chunks: Box::new(head.chain(ledger.places.chunks()).chain(end)) }
    }
}

impl Iterator for Snapshot<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.chunks.next()
    }
}

/// Builds a ledger from chunks.
#[derive(Default)]
pub struct Restore {
    chunks: usize,
    head: Option<Head>,
    places: PlaceReaders,
    /// The tag of the last chunk.
    last: u8,
}

impl Restore {
    /// Reads the next chunk.
    ///
    /// # Errors
    /// [`SnapshotError`] if the bytes are not a chunk, or not the expected one.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let number = self.chunks;
        self.chunks += 1;
        let refused = |fault: ChunkFault| match fault {
            ChunkFault::Undecodable(error) => SnapshotError::Undecodable(number, error),
            ChunkFault::OutOfPlace => SnapshotError::OutOfPlace(number),
            ChunkFault::Unsound(error) => error.into(),
        };
        match bytes.split_first() {
            Some((&CHAIN, bytes)) if number == 0 => self.begin(bytes),
            Some((&tag, bytes)) if self.head.is_some() && (self.last..=END).contains(&tag) && self.last < END => {
                self.last = tag;
                if tag == END { self.end(bytes) } else { self.places.push(tag, bytes) }.map_err(refused)
            }
            Some(_) => Err(SnapshotError::OutOfPlace(number)),
            None => Err(refused(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into())),
        }
    }

    /// Reads the head.
    fn begin(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        match bytes.first() {
            Some(format) if *format != FORMAT => return Err(SnapshotError::Format(*format)),
            _ => {}
        }
        let head: Head = borsh::from_slice(bytes).map_err(|error| SnapshotError::Undecodable(0, error))?;
        if !(RULES_FLOOR..=RULES_NEWEST).contains(&head.rules) {
            return Err(GenesisError::Rules(head.rules).into());
        }
        // As of a genesis: no batch could be cleared.
        if head.mu <= head.epsilon {
            return Err(GenesisError::Band { mu: head.mu, epsilon: head.epsilon }.into());
        }
        self.head = Some(head);
        Ok(())
    }

    /// Reads the end, which says how many entries there must be.
    fn end(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        let entries: Vec<(u8, u64)> = borsh::from_slice(bytes)?;
        in_place(entries == self.places.entries())
    }

    /// The ledger, after all chunks.
    ///
    /// # Errors
    /// [`SnapshotError`] if some are missing, or the state violates an invariant.
    pub fn finish(self) -> Result<Ledger, SnapshotError> {
        let (Some(head), END) = (self.head, self.last) else {
            return Err(SnapshotError::Incomplete(self.chunks));
        };
        let Head { format: _, rules, chain, fee, epsilon, mu, limits, height, last_block, time_ms, assets } = head;
        let mut places = {
            let issuers = assets.iter().map(|asset| asset.issuer).collect();
            self.places.finish(&Restored { assets: assets.len(), issuers, limits })?
        };
        if places.charter.charter.rules.at(height) != rules {
            return Err(AuditError::Charter("the head names other rules").into());
        }
        // No root covers the head.
        let now = Parameters::of(fee, &limits, &places.validators.registered.terms, places.listings.terms());
        if places.charter.proposals.record().is_some_and(|record| record.now != now) {
            return Err(AuditError::Charter("fee, limits or terms are not those of the record in force").into());
        }
        for account in places.keys.accounts() {
            let absent = AuditError::Keys("an account with a policy does not exist");
            places.accounts.get_mut(account).ok_or(absent)?.mark_policy();
        }
        if !places.contracts.count_codes(&places.accounts) {
            return Err(AuditError::Code.into());
        }
        let is_book_full = places.book.len() as u64 >= limits.resting_offers;
        let slots = slots_of(&places)?;
        let held = HeldOffers::of(&places.controls, &places.book);
        let crowd = Crowd::of(&places.listings, assets.len(), &places.book, &limits);
        let names = places.seals.as_ref().map_or_else(OpenedNames::default, |seals| seals.names().clone());
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
            places,
            slots,
            held,
            engine: EvmEngine::default(),
            history: History::default(),
            is_book_full,
            crowd,
            names,
            is_developers: false,
            newest: RULES_NEWEST,
        };
        ledger.audit()?;
        Ok(ledger)
    }
}
