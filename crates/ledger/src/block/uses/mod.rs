//! What a transaction does with controlled assets, derived from its footprint: so no operation is forgotten, and a new
//! one is judged by what it spends, buys and sends. What brings one's own custody home spends nothing and sends
//! nothing.

use primitives::venue::VenueOperation;
use primitives::{Address, Amount, AssetId, Life, OfferReplacement, Sequence, Transaction};
use proofs::{ExactRequest, Offer, Pair, Refusal};

use super::claims::visit;
use super::footprint::Visitor;
use super::once::Sum;
use crate::places::PlaceEdit;
use crate::places::controls::{Controls, HELD_OFFERS_MAX, HeldOffers};
use crate::places::offers::last_height;
use crate::places::sums::Credit;
use crate::state::Ledger;

/// Finds the first use that an issuer does not permit.
struct Uses<'l> {
    controls: &'l Controls,
    held: &'l HeldOffers,
    sender: Address,
    refused: Option<Refusal>,
}

/// Whether the issuers of all assets permit what a transaction does. Its requirements hold.
pub(super) fn check_uses(ledger: &Ledger, transaction: &Transaction) -> Result<(), Refusal> {
    let controls = ledger.controls();
    if controls.is_empty() {
        return Ok(());
    }
    let sender = transaction.body.account;
    let mut uses = Uses { controls, held: &ledger.held, sender, refused: None };
    visit(transaction, 0, &mut uses);
    uses.refused.map_or(Ok(()), Err)
}

impl Uses<'_> {
    /// The sender spends or buys an asset.
    fn uses(&mut self, asset: AssetId) {
        self.note(self.controls.check_uses(asset, &self.sender));
    }

    fn trades(&mut self, pair: Pair) {
        self.uses(pair.sell);
        self.uses(pair.buy);
    }

    /// The sender has room for one more offer of an asset.
    fn rests(&mut self, asset: AssetId) {
        let is_full = self.controls.control(asset).freezes() && self.held.count(asset, &self.sender) >= HELD_OFFERS_MAX;
        self.note(if is_full { Err(Refusal::CONTROLLED_OFFERS_FULL) } else { Ok(()) });
    }

    fn note(&mut self, checked: Result<(), Refusal>) {
        self.refused = self.refused.or(checked.err());
    }
}

impl<'a> Visitor<'a> for Uses<'_> {
    fn sum(&mut self, sum: Sum, _: Amount) {
        if let Sum::Spent(asset) = sum {
            self.uses(asset);
        }
    }

    fn credit(&mut self, credit: Credit) {
        self.note(self.controls.check_receives(credit.asset, &credit.to));
    }

    fn place(&mut self, pair: Pair, offer: Offer) {
        self.trades(pair);
        if offer.until != last_height(Life::OneBatch) {
            self.rests(pair.sell);
            self.rests(pair.buy);
        }
    }

    fn exact(&mut self, request: ExactRequest) {
        self.trades(request.pair);
    }

    fn replace(&mut self, replace: &'a OfferReplacement, _: Sequence) {
        self.trades(Pair { sell: replace.old.sell, buy: replace.old.buy });
    }

    /// The owner of a venue takes fees in the assets of its markets.
    fn edit(&mut self, edit: PlaceEdit<'a>) {
        if let PlaceEdit::Venues(edit) = edit
            && let VenueOperation::List { terms, .. } = edit.operation
        {
            self.trades(Pair { sell: terms.base, buy: terms.quote });
        }
    }
}

#[cfg(test)]
mod tests;
