//! Venues in chunks of a snapshot: head, venues, markets, deposits, keys, entries of orders and claims, each by id.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;
use primitives::venue::{Horizon, MarketId, MarketTerms, VenueId};
use proofs::{
    ClaimedId, DepositId, FilledId, FilledOrder, TradingKey, TradingKeyId, VenueDeposit, VenueMoment, VenueRecord,
};

use super::Venues;
use super::records::{is_sound_key, is_sound_venue};
use crate::places::shared_map::SharedMap;
use crate::places::unsound::AuditError;
use crate::places::{ChunkFault, Custody, ReadChunks, Restored, in_place, tagged};
use crate::terms::VenueTerms;

/// Records in a full chunk.
const ENTRIES: usize = 4_096;

#[derive(BorshSerialize, BorshDeserialize)]
enum VenuesChunk {
    Head { network: Digest, terms: VenueTerms, horizon: Horizon },
    Venues(Vec<(VenueId, VenueRecord)>),
    Markets(Vec<((VenueId, MarketId), MarketTerms)>),
    Deposits(Vec<(DepositId, VenueDeposit)>),
    Keys(Vec<(TradingKeyId, TradingKey)>),
    Filled(Vec<(FilledId, FilledOrder)>),
    Claimed(Vec<(ClaimedId, VenueMoment)>),
}

impl VenuesChunk {
    /// Its place among the kinds of chunks.
    fn rank(&self) -> u8 {
        match self {
            VenuesChunk::Head { .. } => 0,
            VenuesChunk::Venues(_) => 1,
            VenuesChunk::Markets(_) => 2,
            VenuesChunk::Deposits(_) => 3,
            VenuesChunk::Keys(_) => 4,
            VenuesChunk::Filled(_) => 5,
            VenuesChunk::Claimed(_) => 6,
        }
    }
}

/// The records of a map in chunks.
fn pieces<'a, K: Ord + Clone, V: Clone>(
    map: &'a SharedMap<K, V>,
    chunk: fn(Vec<(K, V)>) -> VenuesChunk,
) -> impl Iterator<Item = Vec<u8>> + use<'a, K, V> {
    let mut rest = map.iter().map(|(id, record)| (id.clone(), record.clone())).peekable();
    std::iter::from_fn(move || {
        rest.peek()?;
        Some(tagged(Option::<Arc<Venues>>::TAG, &chunk(rest.by_ref().take(ENTRIES).collect())))
    })
}

/// All chunks in order.
pub(super) fn chunks(venues: &Venues) -> impl Iterator<Item = Vec<u8>> + '_ {
    let head = std::iter::once_with(|| {
        let Venues { network, terms, horizon, .. } = venues;
        let head = VenuesChunk::Head { network: *network, terms: *terms, horizon: horizon.clone() };
        tagged(Option::<Arc<Venues>>::TAG, &head)
    });
    head.chain(pieces(&venues.venues, VenuesChunk::Venues))
        .chain(pieces(&venues.markets, VenuesChunk::Markets))
        .chain(pieces(&venues.deposits, VenuesChunk::Deposits))
        .chain(pieces(&venues.keys, VenuesChunk::Keys))
        .chain(pieces(&venues.filled, VenuesChunk::Filled))
        .chain(pieces(&venues.claimed, VenuesChunk::Claimed))
}

/// Number of records in chunks; the head is one.
pub(super) fn entries(state: &Venues) -> u64 {
    let Venues { venues, markets, deposits, keys, filled, claimed, .. } = state;
    let records = venues.len() + markets.len() + deposits.len() + keys.len() + filled.len() + claimed.len();
    1 + records as u64
}

/// The fault of a state that was read, if there is one.
fn fault(state: &Venues, assets: usize) -> Option<&'static str> {
    let known = |venue: &VenueId| state.venues.contains(venue);
    let is_venue = |(at, (venue, record)): (usize, (&VenueId, &VenueRecord))| {
        at as u64 == u64::from(*venue)
            && is_sound_venue(record)
            && state.markets.from(&(*venue, 0)).take_while(|((of, _), _)| of == venue).count()
                == record.markets as usize
    };
    let is_listed = |terms: &MarketTerms| (terms.base.0 as usize) < assets && (terms.quote.0 as usize) < assets;
    let mut markets = state.markets.iter();
    Some(match () {
        _ if state.terms.fault().is_some() => "their terms cannot be",
        _ if state.horizon.delay() != state.terms.delay => "their horizon follows other terms",
        _ if state.venues.len() as u64 > u64::from(state.terms.venues_max) => "there are too many",
        _ if !state.venues.iter().enumerate().all(is_venue) => "a venue cannot be",
        _ if !markets.all(|((venue, _), of)| known(venue) && of.is_sound(0) && is_listed(of)) => "a market cannot be",
        _ if !state.deposits.iter().all(|(id, deposit)| known(&id.0) && is_deposit(deposit)) => "a deposit cannot be",
        _ if !state.keys.iter().all(|(id, key)| known(&id.0) && is_sound_key(key)) => "a trading key cannot be",
        _ if !state.filled.iter().all(|(id, _)| state.keys.contains(&(id.0, id.2))) => "an order has no key",
        _ if !state.claimed.iter().all(|(id, _)| known(&id.0)) => "a claim has no venue",
        _ if entries_by_venue(state) => "a venue has another number of entries",
        _ => return None,
    })
}

/// Whether a venue's number of entries is not the number that it has.
fn entries_by_venue(state: &Venues) -> bool {
    let mut counts = std::collections::BTreeMap::<VenueId, u64>::new();
    state.filled.iter().for_each(|(id, _)| *counts.entry(id.0).or_default() += 1);
    state.venues.iter().any(|(venue, record)| record.entries != counts.get(venue).copied().unwrap_or(0))
}

fn is_deposit(deposit: &VenueDeposit) -> bool {
    let leaving = deposit.leaving.map_or(0, |leaving| leaving.units);
    let sum = deposit.free.checked_add(leaving);
    sum.is_some_and(|sum| (1..=primitives::MAX_ISSUED).contains(&sum)) && deposit.leaving.is_none_or(|of| of.units > 0)
}

/// Reads chunks in the order in which a snapshot has them.
#[derive(Default)]
pub(crate) struct VenuesReader {
    venues: Option<Venues>,
    /// Rank of the last chunk, and its number of records.
    last: (u8, usize),
}

impl VenuesReader {
    /// Adds the records of a chunk to its map: by id, and behind those that are there. Each chunk of a kind is full
    /// unless it is the last.
    fn add<K: Ord + Clone, V: Clone>(
        &mut self,
        rank: u8,
        records: Vec<(K, V)>,
        map: fn(&mut Venues) -> &mut SharedMap<K, V>,
    ) -> Result<(), ChunkFault> {
        let (last, count) = self.last;
        let follows = last < rank || (last == rank && count == ENTRIES);
        self.last = (rank, records.len());
        let map = map(self.venues.as_mut().ok_or(ChunkFault::OutOfPlace)?);
        let is_behind = map.last().is_none_or(|(last, _)| records.first().is_some_and(|first| *last < first.0));
        let is_sorted = records.is_sorted_by(|a, b| a.0 < b.0);
        in_place(follows && is_behind && is_sorted && (1..=ENTRIES).contains(&records.len()))?;
        records.into_iter().for_each(|(id, record)| drop(map.insert(id, record)));
        Ok(())
    }
}

impl ReadChunks<Option<Arc<Venues>>> for VenuesReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        let chunk: VenuesChunk = borsh::from_slice(bytes)?;
        let rank = chunk.rank();
        match chunk {
            VenuesChunk::Head { network, terms, horizon } => {
                in_place(self.venues.replace(Venues::new(network, terms, horizon)).is_none())
            }
            VenuesChunk::Venues(records) => self.add(rank, records, |venues| &mut venues.venues),
            VenuesChunk::Markets(records) => self.add(rank, records, |venues| &mut venues.markets),
            VenuesChunk::Deposits(records) => self.add(rank, records, |venues| &mut venues.deposits),
            VenuesChunk::Keys(records) => self.add(rank, records, |venues| &mut venues.keys),
            VenuesChunk::Filled(records) => self.add(rank, records, |venues| &mut venues.filled),
            VenuesChunk::Claimed(records) => self.add(rank, records, |venues| &mut venues.claimed),
        }
    }

    fn entries(&self) -> u64 {
        self.venues.as_ref().map_or(0, entries)
    }

    fn finish(self, chain: &Restored) -> Result<Option<Arc<Venues>>, AuditError> {
        let Some(mut venues) = self.venues else { return Ok(None) };
        match fault(&venues, chain.assets) {
            Some(fault) => Err(AuditError::Venues(fault)),
            None => {
                venues.queue_all();
                Ok(Some(Arc::new(venues)))
            }
        }
    }
}
