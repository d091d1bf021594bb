//! What contracts moved and offered, from their logs.

use ledger::BlockReceipts;
use ledger::contracts::{FIRST_CONTRACT_OFFER, OfferEvent};
use primitives::AssetId;

use super::Shadow;
use crate::ethereum::{last_height, moved};

impl Shadow {
    /// What tokens and offers moved of other assets, and the offers that contracts placed and cancelled.
    pub(super) fn follow_tokens(&mut self, receipts: &BlockReceipts) -> Result<(), String> {
        let logs = || receipts.contracts.receipts.iter().flat_map(|receipt| &receipt.logs);
        for (asset, from, to, amount) in logs().filter_map(moved) {
            self.controls.check_moved((asset, from, to))?;
            self.add(from, asset, -i128::from(amount));
            self.add(to, asset, i128::from(amount));
        }
        for event in OfferEvent::of_block(&receipts.contracts) {
            let (pair, place, change) = match event {
                OfferEvent::Placed(pair, place, amount) => {
                    if place.id < FIRST_CONTRACT_OFFER || self.is_too_small(pair, place.limit, amount) {
                        return Err(format!("a contract's offer of {amount} of {pair:?} at {place:?} is too small"));
                    }
                    let is_new = self.offers.insert((pair, place), amount).is_none();
                    (pair, place, if is_new { -i128::from(amount) } else { 0 })
                }
                OfferEvent::Cancelled(pair, place, amount) => {
                    if self.offers.remove(&(pair, place)) != Some(amount) {
                        return Err(format!("{place:?} was cancelled by its contract, but did not rest there"));
                    }
                    (pair, place, i128::from(amount))
                }
            };
            if pair.sell != AssetId(0) {
                self.add(place.account, pair.sell, change);
            }
        }
        self.ends.extend(logs().filter_map(last_height));
        for event in OfferEvent::of_block(&receipts.contracts) {
            let OfferEvent::Placed(pair, place, _) = event else { continue };
            self.listings.check_placed(pair, self.ends.get(&(pair, place)).copied(), receipts.height)?;
            self.controls.check_offer(pair, &place.account)?;
        }
        self.check_overdrafts()
    }
}
