//! What a block's admitted transactions ask for, read without touching any state.

use primitives::{Address, Amount, OfferReplacement, PublicKey, Sequence, SessionOperation, Transaction, slot_of};
use proofs::{EndReason, EndedOffer, ExactRequest, Offer, Pair, Place};
use rayon::prelude::*;

use super::claims::visit;
use super::exacts::NewExact;
use super::filter::{Admitted, Filtered};
use super::footprint::{Visitor, place_of};
use crate::places::offers::{Edit, last_height};
use crate::places::sums::{Credit, Taken};
use crate::places::{PlaceEdit, PlaceEdits};
use crate::sessions::{Released, SessionAct};
use crate::state::Ledger;

/// A new offer, and the transaction that made it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NewOffer {
    pub pair: Pair,
    pub offer: Offer,
    pub index: u32,
}

/// New offers of a block and those that leave before the batch, by pair and place, its payments, and its operations on
/// other places of custody.
#[derive(Default)]
pub(crate) struct Orders<'a> {
    pub offers: Vec<NewOffer>,
    /// Offers that rest before the block and leave before the batch.
    pub leaving: Vec<EndedOffer>,
    /// Replacements: the index of each, and the units that rested of the old offer.
    pub replaced: Vec<(u32, Amount)>,
    /// Exact orders, in the order in which they are tried.
    pub exacts: Vec<NewExact>,
    pub credits: Vec<Credit>,
    /// What issuers recover.
    pub taken: Vec<Taken>,
    /// Operations on session keys.
    pub sessions: Vec<SessionAct<'a>>,
    /// What session keys no longer use because offers of theirs were replaced.
    pub released: Vec<Released>,
    /// Accounts whose keys change.
    pub rekeyed: Vec<Address>,
    /// Operations on places of custody.
    pub edits: PlaceEdits<'a>,
}

/// New offers of one pair, and those that leave before the batch, each by place.
#[derive(Clone, Copy)]
pub(crate) struct PairOrders<'a> {
    pub pair: Pair,
    pub offers: &'a [NewOffer],
    pub leaving: &'a [EndedOffer],
}

/// Reads one transaction's orders.
struct Reader<'o, 'a> {
    ledger: &'o Ledger,
    orders: &'o mut Orders<'a>,
    index: u32,
    sender: Address,
    number: Sequence,
}

impl<'a> Visitor<'a> for Reader<'_, 'a> {
    fn credit(&mut self, credit: Credit) {
        self.orders.credits.push(credit);
    }

    fn take(&mut self, taken: Taken) {
        self.orders.taken.push(taken);
    }

    fn place(&mut self, pair: Pair, offer: Offer) {
        self.orders.offers.push(NewOffer { pair, offer, index: self.index });
    }

    fn exact(&mut self, request: ExactRequest) {
        self.orders.exacts.push(NewExact { request, index: self.index });
    }

    fn cancel(&mut self, pair: Pair, place: Place) {
        if let Some(returned) = self.ledger.book().rests((pair, place)) {
            self.orders.leaving.push(EndedOffer { pair, place, returned, why: EndReason::Cancelled });
        }
    }

    /// What was sold meanwhile is sold: the new offer is smaller by that. If it is too small then, none is placed.
    fn replace(&mut self, replace: &'a OfferReplacement, id: Sequence) {
        let (pair, old) = place_of(self.sender, &replace.old);
        let rests = self.ledger.book().rests((pair, old)).expect("the filter has found it");
        let (size, limit) = (replace.size(rests), replace.limit);
        let size = if self.ledger.minima(pair).check(size, limit).is_ok() { size } else { 0 };
        let returned = rests + replace.debit() - size;
        self.orders.leaving.push(EndedOffer { pair, place: old, returned, why: EndReason::Replaced });
        self.orders.replaced.push((self.index, rests));
        // What an owner's offer takes over from a session key's is the owner's.
        let (slot, is_own) = (slot_of(old.id), slot_of(old.id) == slot_of(id));
        if slot > 0 {
            let units = if is_own { returned } else { rests };
            self.orders.released.push(Released { slot: (self.sender, slot), asset: pair.sell, units });
        }
        if size > 0 {
            let place = Place { limit, account: self.sender, id };
            self.place(pair, Offer { place, amount: size, until: last_height(replace.life) });
        }
    }

    fn session(&mut self, operation: &'a SessionOperation) {
        self.orders.sessions.push(SessionAct { account: self.sender, number: self.number, operation });
    }

    fn register(&mut self, _: PublicKey) {
        self.orders.rekeyed.push(self.sender);
    }

    fn edit(&mut self, edit: PlaceEdit<'a>) {
        self.orders.edits.push(self.sender, edit);
    }
}

impl<'a> Orders<'a> {
    /// The orders of admitted transactions, with the ledger before the block.
    pub(crate) fn of(transactions: &[&'a Transaction], filtered: &Filtered, ledger: &Ledger) -> Orders<'a> {
        let by_shard: Vec<Orders> =
            filtered.admitted.par_iter().map(|admitted| Orders::of_shard(transactions, admitted, ledger)).collect();
        let count = |len: fn(&Orders) -> usize| by_shard.iter().map(len).sum();
        let mut all = Orders {
            offers: Vec::with_capacity(count(|orders| orders.offers.len())),
            leaving: Vec::with_capacity(count(|orders| orders.leaving.len())),
            credits: Vec::with_capacity(count(|orders| orders.credits.len())),
            ..Orders::default()
        };
        for mut orders in by_shard {
            all.offers.append(&mut orders.offers);
            all.leaving.append(&mut orders.leaving);
            all.taken.append(&mut orders.taken);
            all.replaced.append(&mut orders.replaced);
            all.exacts.append(&mut orders.exacts);
            all.credits.append(&mut orders.credits);
            all.sessions.append(&mut orders.sessions);
            all.released.append(&mut orders.released);
            all.rekeyed.append(&mut orders.rekeyed);
            all.edits.append(orders.edits);
        }
        rayon::join(|| all.offers.par_sort_unstable(), || all.leaving.par_sort_unstable());
        all.exacts.sort_unstable();
        // Several cancels may name one offer, and one in an envelope an offer that a plain transaction replaces.
        all.leaving.dedup_by(|next, first| {
            let is_same = (next.pair, next.place) == (first.pair, first.place);
            if is_same && next.why == EndReason::Replaced {
                *first = *next;
            }
            is_same
        });
        all
    }

    fn of_shard(transactions: &[&'a Transaction], admitted: &[Admitted], ledger: &Ledger) -> Orders<'a> {
        let mut orders = Orders::default();
        for &Admitted { index, .. } in admitted.iter().filter(|admitted| !admitted.is_idle) {
            let transaction = transactions[index as usize];
            let (sender, number) = (transaction.body.account, transaction.body.sequence);
            visit(transaction, 0, &mut Reader { ledger, orders: &mut orders, index, sender, number });
        }
        orders
    }

    /// The orders, grouped by pair.
    pub(crate) fn by_pair(&self) -> Vec<PairOrders<'_>> {
        let mut offers = self.offers.chunk_by(|a, b| a.pair == b.pair).peekable();
        let mut leaving = self.leaving.chunk_by(|a, b| a.pair == b.pair).peekable();
        let mut pairs = Vec::new();
        loop {
            let next = [offers.peek().map(|offers| offers[0].pair), leaving.peek().map(|leaving| leaving[0].pair)];
            let Some(pair) = next.into_iter().flatten().min() else { return pairs };
            pairs.push(PairOrders {
                pair,
                offers: offers.next_if(|offers| offers[0].pair == pair).unwrap_or_default(),
                leaving: leaving.next_if(|leaving| leaving[0].pair == pair).unwrap_or_default(),
            });
        }
    }
}

impl PairOrders<'_> {
    /// A pair without orders.
    pub(crate) fn none(pair: Pair) -> PairOrders<'static> {
        PairOrders { pair, offers: &[], leaving: &[] }
    }

    /// Whether one of the new offers is at this place.
    pub(crate) fn creates(&self, place: &Place) -> bool {
        self.offers.binary_search_by_key(place, |new| new.offer.place).is_ok()
    }

    /// The offers as edits of the pair's book, without those up to and including `through`.
    pub(crate) fn edits(&self, through: Option<&Place>) -> Vec<Edit> {
        let beyond = |place: &Place| through.is_none_or(|through| place > through);
        let new = self.offers.iter().map(|new| Edit::rests(new.offer));
        let gone = self.leaving.iter().map(|ended| Edit::leaves(ended.place));
        merged(new.filter(|edit| beyond(&edit.place)), gone.filter(|edit| beyond(&edit.place)))
    }
}

/// Merges the edits of two lists, by place; where both name a place the second wins.
pub(crate) fn merged(first: impl Iterator<Item = Edit>, second: impl Iterator<Item = Edit>) -> Vec<Edit> {
    let mut merged = Vec::with_capacity(first.size_hint().0 + second.size_hint().0);
    let mut second = second.peekable();
    for edit in first {
        while let Some(before) = second.next_if(|next| next.place < edit.place) {
            merged.push(before);
        }
        merged.push(second.next_if(|next| next.place == edit.place).unwrap_or(edit));
    }
    merged.extend(second);
    merged
}
