//! The part of the book that listed assets may take. They are issued at will, so what they lock costs nothing: others
//! must find room beside them.
//!
//! Who takes how much is derived from the book after each block, and from no state. Offers are counted by the state
//! before a block, as the whole book is: a share is never exceeded by more than the offers of one block. Pairs are
//! counted exactly.

use std::collections::BTreeMap;

use primitives::AssetId;
use proofs::{Pair, Refusal};

use super::Listings;
use crate::places::offers::OrderBook;
use crate::terms::Limits;

/// What all listed assets may take together, as a part of the whole.
const ALL: u64 = 2;
/// What one of them may take.
const ONE: u64 = 16;

/// What a share has of the whole: a half for all listed assets, a sixteenth for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    pub all: u64,
    pub one: u64,
}

impl Share {
    /// The share of so many.
    const fn of(whole: u64) -> Share {
        Share { all: whole / ALL, one: whole / ONE }
    }
}

/// How much of the book listed assets take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// Whether offers that sell them have all of their share.
    is_full: bool,
    /// Those of which the offers have the share of one, ascending.
    full: Vec<AssetId>,
    /// Pairs with a listed asset.
    pairs: u64,
    /// Pairs by listed asset, whichever side it is.
    pairs_of: BTreeMap<AssetId, u64>,
}

impl Crowd {
    /// What listed assets take of a book; a chain without any looks at nothing.
    pub(crate) fn of(listings: &Listings, assets: usize, book: &OrderBook, limits: &Limits) -> Crowd {
        if assets == listings.founded as usize {
            return Crowd::default();
        }
        let (mut crowd, mut offers) = (Crowd::default(), BTreeMap::<AssetId, u64>::new());
        for (pair, of_pair) in book.iter().filter(|(pair, _)| listings.touches(*pair)) {
            crowd.open(listings, pair);
            if listings.is_listed(pair.sell) {
                *offers.entry(pair.sell).or_default() += of_pair.len() as u64;
            }
        }
        let share = Share::of(limits.resting_offers);
        crowd.is_full = offers.values().sum::<u64>() >= share.all;
        crowd.full = offers.into_iter().filter(|(_, count)| *count >= share.one).map(|(asset, _)| asset).collect();
        crowd
    }

    /// Whether the book takes one more offer that sells an asset.
    pub(crate) fn check_offer(&self, listings: &Listings, sell: AssetId) -> Result<(), Refusal> {
        let is_full = listings.is_listed(sell) && (self.is_full || self.full.binary_search(&sell).is_ok());
        if is_full { Err(Refusal::LISTED_OFFERS_FULL) } else { Ok(()) }
    }

    /// Whether a pair may be opened beside those that are.
    pub(crate) fn check_pair(&self, listings: &Listings, pair: Pair, limits: &Limits) -> Result<(), Refusal> {
        let share = Share::of(limits.open_pairs.into());
        let has = |asset: &AssetId| self.pairs_of.get(asset).copied().unwrap_or(0);
        let is_over = |asset: AssetId| listings.is_listed(asset) && has(&asset) >= share.one;
        let is_full = listings.touches(pair) && (self.pairs >= share.all || is_over(pair.sell) || is_over(pair.buy));
        if is_full { Err(Refusal::LISTED_PAIRS_FULL) } else { Ok(()) }
    }

    /// A pair is open from now on.
    pub(crate) fn open(&mut self, listings: &Listings, pair: Pair) {
        self.pairs += u64::from(listings.touches(pair));
        for asset in [pair.sell, pair.buy].into_iter().filter(|asset| listings.is_listed(*asset)) {
            *self.pairs_of.entry(asset).or_default() += 1;
        }
    }

    /// Pairs with a listed asset that may still be opened.
    pub(crate) fn pairs_left(&self, limits: &Limits) -> u64 {
        Share::of(limits.open_pairs.into()).all.saturating_sub(self.pairs)
    }

    /// Pairs with one listed asset that may still be opened, as far as the share of one goes.
    pub(crate) fn pairs_left_of(&self, asset: AssetId, limits: &Limits) -> u64 {
        let has = self.pairs_of.get(&asset).copied().unwrap_or(0);
        Share::of(limits.open_pairs.into()).one.saturating_sub(has)
    }
}
