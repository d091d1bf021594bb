//! Resting offers as a place of custody: a trie per pair, a trie over the roots of pairs, and chunks by pair.

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::{Digest, MAX_ISSUED};
use proofs::{Offer, Pair, RootPart, offer_value, pair_key, pair_root_digest};
use rayon::prelude::*;
use trie::Trie;

use super::{Edit, OrderBook, PairChange, PairOffers, Workspace};
use crate::places::unsound::AuditError;
use crate::places::{Audited, ChunkFault, Custody, ReadChunks, Restored, in_place, tagged};
use crate::terms::Genesis;

/// Offers in a full chunk.
const ENTRIES: usize = 32_768;
/// Tries that are hashed together: few nodes of one trie change in a block, and similar nodes are hashed sixteen at a
/// time.
const TOGETHER: usize = 32;

/// The offers of one pair by [`super::Place::key`], with their amounts and ends.
type OfferTrie = Trie<36, 16>;

/// The tries of the books.
#[derive(Clone, Default)]
pub(crate) struct OfferTries {
    pub pairs: BTreeMap<Pair, OfferTrie>,
    pub pair_roots: Trie<8>,
}

impl Custody for OrderBook {
    const TAG: u8 = RootPart::OFFERS;
    const NAME: &'static str = "offers";
    type Edit<'a> = std::convert::Infallible;
    type Change = Vec<PairChange>;
    type Tries = OfferTries;
    type Reader = OfferReader;

    fn found(_: &Genesis, _: Digest) -> OrderBook {
        OrderBook::default()
    }

    fn whole(&self) -> Vec<PairChange> {
        let edits = |offers: &PairOffers| offers.iter().map(Edit::rests).collect();
        let pairs: Vec<_> = self.iter().collect();
        pairs.into_par_iter().map(|(pair, offers)| PairChange { pair, through: None, edits: edits(offers) }).collect()
    }

    fn follow(tries: &mut OfferTries, changes: &Vec<PairChange>) {
        for change in changes {
            tries.pairs.entry(change.pair).or_default();
        }
        let mut changed = changes.iter().peekable();
        let touched: Vec<_> = tries
            .pairs
            .iter_mut()
            .filter_map(|(pair, trie)| changed.next_if(|change| change.pair == *pair).map(|change| (trie, change)))
            .collect();
        let pair_roots: Vec<_> = touched.into_par_iter().chunks(TOGETHER).flat_map_iter(follow_all).collect();
        tries.pair_roots.apply(&pair_roots);
        tries.pairs.retain(|_, trie| !trie.is_empty());
    }

    fn part(tries: &mut OfferTries) -> Option<Digest> {
        Some(Digest(tries.pair_roots.root().0))
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        Box::new(self.iter().flat_map(|(pair, offers)| {
            let mut rest = offers.iter().peekable();
            std::iter::from_fn(move || {
                rest.peek()?;
                Some(tagged(Self::TAG, &(pair, rest.by_ref().take(ENTRIES).collect::<Vec<Offer>>())))
            })
        }))
    }

    fn entries(&self) -> u64 {
        self.len() as u64
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let mut locked = audited.zero();
        for (pair, offers) in self.iter() {
            let unlisted = [pair.sell, pair.buy].into_iter().find(|asset| asset.0 as usize >= locked.len());
            unlisted.map_or(Ok(()), |asset| Err(AuditError::UnknownAsset(asset)))?;
            if !offers.is_sound() {
                return Err(AuditError::Book(pair));
            }
            locked[pair.sell.0 as usize] += offers.locked();
        }
        Ok(locked)
    }
}

/// Applies changes of pairs to their tries; returns the keys and values of these pairs in the trie of pairs.
fn follow_all(pairs: Vec<(&mut OfferTrie, &PairChange)>) -> Vec<([u8; 8], Option<[u8; 32]>)> {
    let (mut tries, changes): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    tries.iter_mut().zip(&changes).for_each(|(trie, change)| follow(trie, change));
    let roots = trie::roots(&mut tries);
    let value =
        |(trie, root): (&&mut OfferTrie, trie::Root)| (!trie.is_empty()).then(|| pair_root_digest(&Digest(root.0)));
    let values = tries.iter().zip(roots).map(value);
    changes.iter().zip(values).map(|(change, value)| (pair_key(change.pair), value)).collect()
}

/// Applies a pair's change to its trie.
fn follow(trie: &mut OfferTrie, change: &PairChange) {
    if let Some(last) = &change.through {
        trie.remove_through(&last.key());
    }
    let entry = |edit: &Edit| (edit.place.key(), edit.rest().map(offer_value));
    trie.apply(&change.edits.iter().map(entry).collect::<Vec<_>>());
}

/// Reads offers in the order in which a snapshot has them.
#[derive(Default)]
pub(crate) struct OfferReader {
    book: OrderBook,
    /// The pair of the last offers, and the number of entries of their chunk.
    last: Option<(Pair, usize)>,
}

impl OfferReader {
    /// Whether a snapshot writes these offers of this pair next: by pair and place, each chunk full unless it is the
    /// pair's last.
    fn follows(&self, pair: Pair, offers: &[Offer]) -> bool {
        let is_next = |(last, before): (Pair, usize)| last < pair || (last == pair && before == ENTRIES);
        let last = self.book.get(pair).and_then(|book| book.last());
        (1..=ENTRIES).contains(&offers.len())
            && self.last.is_none_or(is_next)
            && offers.is_sorted_by(|a, b| a.place < b.place)
            && last.is_none_or(|last| last.place < offers[0].place)
    }
}

impl ReadChunks<OrderBook> for OfferReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        let (pair, offers): (Pair, Vec<Offer>) = borsh::from_slice(bytes)?;
        in_place(self.follows(pair, &offers))?;
        self.last = Some((pair, offers.len()));
        let book = Arc::make_mut(self.book.entry(pair));
        let sum = offers.iter().map(|offer| u128::from(offer.amount)).sum::<u128>();
        let is_possible = book.locked() + sum <= u128::from(MAX_ISSUED);
        if !is_possible || offers.iter().any(|offer| offer.amount == 0 || offer.until == 0) {
            return Err(ChunkFault::Unsound(AuditError::Book(pair)));
        }
        let mut workspace = Workspace::default();
        book.apply_with(&mut workspace, None, &offers.into_iter().map(Edit::rests).collect::<Vec<_>>());
        self.book.count_ends(&workspace.ends.changes);
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.book.len() as u64
    }

    fn finish(self, _: &Restored) -> Result<OrderBook, AuditError> {
        Ok(self.book)
    }
}
