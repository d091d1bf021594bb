//! Venues as a place of custody: one trie of records beside the digest of the rest.

use std::sync::Arc;

use borsh::BorshSerialize;
use primitives::venue::Horizon;
use primitives::{Address, AssetId, Digest};
use proofs::{Refusal, RootPart, VenueRecordId, record_value, venues_root};
use rayon::prelude::*;
use trie::Trie;

use super::Venues;
use super::chunks::{VenuesReader, chunks, entries};
use super::edit::VenueEdit;
use super::records::VenueRow;
use super::running::leading;
use super::step::{BONDED, Step};
use crate::places::sums::Sums;
use crate::places::unsound::AuditError;
use crate::places::{Audited, Custody, Moved, Rules, Turn, bytes_of};
use crate::terms::{Genesis, GenesisError};

const REST_CONTEXT: &str = "walras 2026 venues rest v1";

/// What a block changed.
#[derive(Clone, Debug)]
pub(crate) struct VenuesChange {
    /// Records by their keys in the trie, with their values if they exist.
    pub(super) records: Vec<VenueRow>,
    /// Digest of network, terms and horizon.
    rest: Digest,
}

/// The trie of records, and the digest of the rest.
#[derive(Clone, Default)]
pub(crate) struct VenueTries {
    pub records: Trie<32>,
    /// `None` on a chain without venues.
    pub rest: Option<Digest>,
}

/// Rows by their keys, which are hashes: their first bytes tell most of them apart. Only these are moved while they
/// are sorted.
fn sorted(rows: &[VenueRow]) -> Vec<VenueRow> {
    let key = |at: u32| &rows[at as usize].0;
    let mut order: Vec<(u64, u32)> = (0..).zip(rows).map(|(at, (key, _))| (leading(key), at)).collect();
    order.par_sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| key(one.1).cmp(key(other.1))));
    order.iter().map(|(_, at)| rows[*at as usize]).collect()
}

impl Venues {
    fn rest(&self) -> Digest {
        Digest::of(REST_CONTEXT, &bytes_of(&(self.network, self.terms, &self.horizon)))
    }

    /// The encoding of a record, if it exists.
    pub(crate) fn record(&self, id: &VenueRecordId) -> Option<Vec<u8>> {
        fn encoded(record: Option<&impl BorshSerialize>) -> Option<Vec<u8>> {
            record.map(|record| bytes_of(record))
        }
        match id {
            VenueRecordId::Venue(venue) => encoded(self.venues.get(venue)),
            VenueRecordId::Market(venue, market) => encoded(self.markets.get(&(*venue, *market))),
            VenueRecordId::Deposit(id) => encoded(self.deposits.get(id)),
            VenueRecordId::Key(id) => encoded(self.keys.get(id)),
            VenueRecordId::Filled(id) => encoded(self.filled.get(id)),
            VenueRecordId::Claimed(id) => encoded(self.claimed.get(id)),
        }
    }

    /// Records as input for the trie: those with these ids, of which some may be named twice, and of rows those of
    /// other records.
    pub(super) fn change(&self, ids: Vec<VenueRecordId>, mut rows: Vec<VenueRow>) -> Option<VenuesChange> {
        let entry = |id: VenueRecordId| (id.key(), self.record(&id).as_deref().map(record_value));
        let records: Vec<VenueRow> = ids.into_par_iter().map(entry).collect();
        let mut records = sorted(&records);
        records.dedup();
        if !rows.is_empty() {
            rows.retain(|(key, _)| records.binary_search_by(|(of, _)| of.cmp(key)).is_err());
            rows.append(&mut records);
            records = sorted(&rows);
        }
        Some(VenuesChange { records, rest: self.rest() })
    }

    pub(super) fn all_ids(&self) -> Vec<VenueRecordId> {
        let venues = self.venues.iter().map(|(venue, _)| VenueRecordId::Venue(*venue));
        let markets = self.markets.iter().map(|((venue, market), _)| VenueRecordId::Market(*venue, *market));
        let deposits = self.deposits.iter().map(|(id, _)| VenueRecordId::Deposit(*id));
        let keys = self.keys.iter().map(|(id, _)| VenueRecordId::Key(*id));
        let filled = self.filled.iter().map(|(id, _)| VenueRecordId::Filled(*id));
        let claimed = self.claimed.iter().map(|(id, _)| VenueRecordId::Claimed(*id));
        venues.chain(markets).chain(deposits).chain(keys).chain(filled).chain(claimed).collect()
    }
}

impl Custody for Option<Arc<Venues>> {
    const TAG: u8 = RootPart::VENUES;
    const NAME: &'static str = "venue deposits";
    type Edit<'a> = VenueEdit<'a>;
    type Change = Option<VenuesChange>;
    type Tries = VenueTries;
    type Reader = VenuesReader;

    fn found(genesis: &Genesis, last_block: Digest) -> Self {
        let found = |terms| Venues::new(genesis.network(last_block), terms, Horizon::new(terms.delay, 0, 0));
        genesis.venues.map(|terms| Arc::new(found(terms)))
    }

    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        genesis.venues.as_ref().map(bytes_of)
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        genesis.venues?.fault().map(GenesisError::Venues)
    }

    fn check(&self, _: &Rules, sender: Address, edit: VenueEdit<'_>) -> Result<(), Refusal> {
        self.as_ref().ok_or(Refusal::NO_VENUES)?.check(sender, edit.operation)
    }

    fn apply(&mut self, turn: &mut Turn<'_>, edits: &[(Address, VenueEdit<'_>)]) -> Moved<Self::Change> {
        let Some(venues) = self else { return Moved::default() };
        let venues = Arc::make_mut(venues);
        let mut step = Step::new(turn.transactions, turn.refusals);
        let before = venues.bonds();
        venues.controls = turn.controls.clone();
        venues.apply_block(turn.block.time_ms, edits, &mut step);
        venues.controls = Arc::default();
        let mut bonds = Sums::default();
        bonds.add(BONDED, venues.bonds() as i128 - before as i128);
        let held = std::mem::take(&mut venues.moved);
        let touched = std::mem::take(&mut venues.touched);
        let rows = std::mem::take(&mut venues.rows);
        let change = venues.change(touched, rows);
        let Step { credits, burnt, accounts, void, settled, .. } = step;
        turn.void.extend(void);
        turn.settled.extend(settled);
        turn.concerned.extend(accounts);
        Moved { credits, burnt, held, bonds, change }
    }

    fn whole(&self) -> Self::Change {
        self.as_ref().and_then(|venues| venues.change(venues.all_ids(), Vec::new()))
    }

    fn follow(tries: &mut VenueTries, change: &Self::Change) {
        tries.rest = change.as_ref().map(|change| {
            tries.records.apply(&change.records);
            change.rest
        });
    }

    fn part(tries: &mut VenueTries) -> Option<Digest> {
        let rest = tries.rest?;
        Some(venues_root(&Digest(tries.records.root().0), &rest))
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        Box::new(self.iter().flat_map(|venues| chunks(venues)))
    }

    fn entries(&self) -> u64 {
        self.as_ref().map_or(0, |venues| entries(venues))
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let Some(venues) = self else { return Ok(audited.zero()) };
        if venues.horizon.height() != audited.height {
            return Err(AuditError::Venues("their height is not that of the chain"));
        }
        let mut held = audited.zero();
        for (id, deposit) in venues.deposits.iter() {
            let sum = held.get_mut(id.2.0 as usize).ok_or(AuditError::UnknownAsset(id.2))?;
            *sum += u128::from(deposit.units());
        }
        let counted = |at: usize| venues.deposited.get(&AssetId(at as u32)).copied().unwrap_or(0);
        if held.iter().enumerate().any(|(at, sum)| *sum != counted(at)) {
            return Err(AuditError::Venues("their running sums of deposits are not the sums of their deposits"));
        }
        Ok(held)
    }

    fn bonds(&self, audited: &Audited<'_>) -> Vec<u128> {
        let mut bonds = audited.zero();
        if let (Some(venues), Some(sum)) = (self, bonds.get_mut(BONDED.0 as usize)) {
            *sum = venues.bonds();
        }
        bonds
    }
}
