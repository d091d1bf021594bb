//! What a block's listings and new pairs find room for. Both are counted exactly: those that find none are refused.

use primitives::{Operation, Transaction, TransactionId};
use proofs::{Offer, Pair, Refusal};
use rayon::prelude::*;

use super::checks::pairs_room;
use super::claims::visit;
use super::footprint::Visitor;
use crate::places::offers::OrderBook;
use crate::state::Ledger;

/// Finds the pair that a transaction would open.
struct Opens<'l> {
    book: &'l OrderBook,
    pair: Option<Pair>,
}

impl<'a> Visitor<'a> for Opens<'_> {
    fn place(&mut self, pair: Pair, _: Offer) {
        self.pair = self.book.get(pair).is_none().then_some(pair);
    }
}

/// The pair that a transaction would open.
pub(super) fn opened(ledger: &Ledger, transaction: &Transaction) -> Option<Pair> {
    let mut opens = Opens { book: &ledger.places.book, pair: None };
    visit(transaction, 0, &mut opens);
    opens.pair
}

/// Whether there can be more pairs than there is room for: of all assets, or of those that were listed.
pub(super) fn may_lack_pairs(ledger: &Ledger) -> bool {
    let assets = ledger.assets.len();
    assets > ledger.founded_assets() as usize || assets.saturating_mul(assets) > ledger.limits.open_pairs as usize
}

/// Opens the lowest of these pairs, each with the transaction that would open it, as far as the pairs leave room that
/// the block `opens` already, and refuses the offers of the others.
pub(super) fn refuse_pairs(
    ledger: &Ledger,
    opens: &[Pair],
    mut opened: Vec<(Pair, u32)>,
    refusals: &mut [Option<Refusal>],
) {
    opened.par_sort_unstable();
    let (mut crowd, listings) = (ledger.crowd.clone(), ledger.listings());
    let mut room = pairs_room(ledger).saturating_sub(opens.len());
    opens.iter().for_each(|pair| crowd.open(listings, *pair));
    for of_pair in opened.chunk_by(|a, b| a.0 == b.0).filter(|of_pair| !opens.contains(&of_pair[0].0)) {
        let pair = of_pair[0].0;
        let why = match crowd.check_pair(listings, pair, &ledger.limits) {
            Err(why) => why,
            Ok(()) if room == 0 => Refusal::TOO_MANY_PAIRS,
            Ok(()) => {
                crowd.open(listings, pair);
                room -= 1;
                continue;
            }
        };
        of_pair.iter().for_each(|(_, index)| refusals[*index as usize] = Some(why));
    }
}

/// Refuses the accepted listings that find no room: those with the highest ids.
pub(super) fn refuse_listings(ledger: &Ledger, transactions: &[&Transaction], refusals: &mut [Option<Refusal>]) {
    let is_listing = |(transaction, refusal): &(&&Transaction, &Option<Refusal>)| {
        refusal.is_none() && matches!(transaction.body.operation, Operation::ListAsset(_))
    };
    let asked = transactions.iter().zip(&*refusals).enumerate().filter(|(_, one)| is_listing(one));
    let mut asked: Vec<(TransactionId, usize)> = asked.map(|(index, (one, _))| (one.id(), index)).collect();
    asked.sort_unstable();
    let room = ledger.listings().room(ledger.assets.len(), ledger.next_height());
    let room = room.saturating_sub(ledger.proposals().coming_names().len());
    asked.iter().skip(room).for_each(|(_, index)| refusals[*index] = Some(Refusal::TOO_MANY_ASSETS));
}
