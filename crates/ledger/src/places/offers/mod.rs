//! The resting offers, by ordered pair, in their order of execution: limit price, account, offer id.

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::{Amount, Height};
use proofs::{Pair, Place};

mod chunk;
mod custody;
mod ends;
mod minima;
mod offer;
mod pair_offers;

pub use ends::{ENDS_MAX, LIFE_MAX};
pub(crate) use ends::{EndFault, Ends, check_end};
pub(crate) use minima::too_small;
pub(crate) use offer::last_height;
pub use offer::{Edit, PairChange};
pub use pair_offers::PairOffers;
pub(crate) use pair_offers::Workspace;

/// The books of all pairs. A checkpoint that is being written shares their chunks.
#[derive(Clone, Default)]
pub struct OrderBook {
    pairs: BTreeMap<Pair, Arc<PairOffers>>,
    /// How many of the offers end at each height.
    ends: Ends,
}

impl OrderBook {
    /// The resting offers of a pair.
    pub fn get(&self, pair: Pair) -> Option<&PairOffers> {
        self.pairs.get(&pair).map(Arc::as_ref)
    }

    /// Units for sale of the offer that rests at a place.
    pub fn rests(&self, (pair, place): (Pair, Place)) -> Option<Amount> {
        self.get(pair)?.get(&place)
    }

    /// The pairs that have resting offers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Pair, &PairOffers)> {
        self.pairs.iter().map(|(pair, offers)| (*pair, offers.as_ref()))
    }

    /// Number of resting offers that end at a height.
    pub fn ending_at(&self, height: Height) -> u32 {
        self.ends.at(height)
    }

    /// Counts what a change of offers did to their ends.
    pub(crate) fn count_ends(&mut self, changes: &[(Height, i32)]) {
        changes.iter().for_each(|(height, by)| self.ends.change(*height, *by));
    }

    /// The offers of a pair, for changes.
    pub(crate) fn entry(&mut self, pair: Pair) -> &mut Arc<PairOffers> {
        self.pairs.entry(pair).or_default()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Pair, &mut Arc<PairOffers>)> {
        self.pairs.iter_mut().map(|(pair, offers)| (*pair, offers))
    }

    pub(crate) fn drop_empty(&mut self) {
        self.pairs.retain(|_, offers| !offers.is_empty());
    }

    /// Bytes of memory that the offers use, without their tries.
    pub fn bytes(&self) -> usize {
        self.pairs.values().map(|offers| offers.bytes()).sum()
    }

    /// Number of pairs that have resting offers.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Number of resting offers.
    pub fn len(&self) -> usize {
        self.pairs.values().map(|offers| offers.len()).sum()
    }

    /// Whether no offer rests.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}
