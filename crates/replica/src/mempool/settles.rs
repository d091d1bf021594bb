//! Pending settles of venues: each venue has one place, and the venue whose last settle is oldest is taken first.
//!
//! The genesis bounds venues and bytes of settles so that the settles of all venues fit into a few sub-blocks. With one
//! place a venue, a settle that this validator has is in one of its next so many sub-blocks, however often others
//! settle and whatever they pay. Settles are never forwarded: their operators send them to enough validators.

use std::collections::BTreeMap;

use primitives::venue::{VenueId, VenueOperation};
use primitives::{Operation, Transaction, TransactionId};

use super::PoolEntry;

/// Pending settles by venue.
#[derive(Default)]
pub(super) struct PendingSettles {
    /// The settle that has a venue's place, unless it is taken: then the place is kept for it.
    places: BTreeMap<VenueId, (TransactionId, Option<PoolEntry>)>,
    /// The number of the last settle of each venue that was in a block, counted over all venues.
    last: BTreeMap<VenueId, u64>,
    /// Settles in blocks so far.
    settled: u64,
}

/// The venue of a transaction that settles.
pub(super) fn settling(transaction: &Transaction) -> Option<VenueId> {
    match &transaction.body.operation {
        Operation::Venue(operation) => match &**operation {
            VenueOperation::Settle(settle) => Some(settle.venue),
            _ => None,
        },
        _ => None,
    }
}

impl PendingSettles {
    /// Whether a settle of the venue has its place.
    pub(super) fn is_full_for(&self, venue: VenueId) -> bool {
        self.places.contains_key(&venue)
    }

    /// Pending settles, including those taken and not settled.
    pub(super) fn pending(&self) -> usize {
        self.places.len()
    }

    /// The settles that can be taken.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &PoolEntry> {
        self.places.values().filter_map(|(_, entry)| entry.as_ref())
    }

    /// Gives a settle the place of its venue, which is free or kept for it.
    pub(super) fn insert(&mut self, venue: VenueId, entry: PoolEntry) {
        self.places.insert(venue, (entry.id, Some(entry)));
    }

    /// Takes settles while they `fit`, at most `count`: those first whose venue has waited longest.
    pub(super) fn take(&mut self, count: usize, mut fits: impl FnMut(&PoolEntry) -> bool) -> Vec<PoolEntry> {
        let last = |venue: &VenueId| self.last.get(venue).copied().unwrap_or(0);
        let mut waiting: Vec<(u64, VenueId, &mut Option<PoolEntry>)> = self
            .places
            .iter_mut()
            .filter(|(_, (_, entry))| entry.is_some())
            .map(|(venue, (_, entry))| (last(venue), *venue, entry))
            .collect();
        waiting.sort_by_key(|(last, venue, _)| (*last, *venue));
        let fitting = waiting.into_iter().take(count).take_while(|(.., entry)| entry.as_ref().is_some_and(&mut fits));
        fitting.filter_map(|(.., entry)| entry.take()).collect()
    }

    /// Notes a settle that was in a block, whoever proposed it.
    pub(super) fn note_settled(&mut self, venue: VenueId) {
        self.settled += 1;
        self.last.insert(venue, self.settled);
    }

    /// Gives the place of a settle free that is not pending any more.
    pub(super) fn release(&mut self, venue: VenueId, id: &TransactionId) {
        if self.places.get(&venue).is_some_and(|(of, _)| of == id) {
            self.places.remove(&venue);
        }
    }
}
