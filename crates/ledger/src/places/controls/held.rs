//! Which resting offers sell or buy a controlled asset, by asset and account: what a freeze ends is found without a
//! look at the whole book.
//!
//! All of it is derived from controls and offers: no state root has it, and a restored ledger builds it again. Chains
//! on which all assets are open have no entries.

use primitives::{Address, AssetId};
use proofs::{Pair, Place};

use super::{Controls, HolderId};
use crate::places::offers::OrderBook;
use crate::places::shared_map::SharedMap;

/// The open offers of controlled assets.
#[derive(Clone, Default)]
pub(crate) struct HeldOffers {
    offers: SharedMap<(HolderId, Pair, Place), ()>,
    /// How many there are of a holder.
    counts: SharedMap<HolderId, u32>,
}

/// The controlled assets of a pair.
fn sides(controls: &Controls, pair: Pair) -> impl Iterator<Item = AssetId> + use<'_> {
    [pair.sell, pair.buy].into_iter().filter(|asset| controls.control(*asset).freezes())
}

impl HeldOffers {
    /// Those of a whole book.
    pub(crate) fn of(controls: &Controls, book: &OrderBook) -> HeldOffers {
        let mut all = HeldOffers::default();
        if !controls.is_empty() {
            for (pair, offers) in book.iter() {
                offers.iter().for_each(|offer| all.come(controls, pair, &offer.place));
            }
        }
        all
    }

    /// How many offers of an account sell or buy an asset.
    pub(crate) fn count(&self, asset: AssetId, account: &Address) -> u32 {
        self.counts.get(&(asset, *account)).copied().unwrap_or(0)
    }

    /// An offer rests from now on.
    pub(crate) fn come(&mut self, controls: &Controls, pair: Pair, place: &Place) {
        for asset in sides(controls, pair) {
            let holder = (asset, place.account);
            if self.offers.insert((holder, pair, *place), ()).is_none() {
                self.counts.insert(holder, self.count(asset, &place.account) + 1);
            }
        }
    }

    /// An offer rests no more; one that is not here is ignored.
    pub(crate) fn leave(&mut self, controls: &Controls, pair: Pair, place: &Place) {
        for asset in sides(controls, pair) {
            let holder = (asset, place.account);
            if self.offers.remove(&(holder, pair, *place)).is_some() {
                match self.count(asset, &place.account) {
                    1 => drop(self.counts.remove(&holder)),
                    count => drop(self.counts.insert(holder, count - 1)),
                }
            }
        }
    }

    /// The open offers of a holder, by pair and place.
    pub(crate) fn places(&self, holder: HolderId) -> impl Iterator<Item = (Pair, Place)> + '_ {
        let (pair, account) = (Pair { sell: AssetId(0), buy: AssetId(0) }, holder.1);
        let first = (holder, pair, Place { limit: primitives::Price::MIN, account, id: 0 });
        let own = self.offers.from(&first).take_while(move |((of, ..), ())| *of == holder);
        own.map(|((_, pair, place), ())| (*pair, *place))
    }

    /// Whether these are the same offers.
    pub(crate) fn is_same(&self, other: &HeldOffers) -> bool {
        self.offers.iter().eq(other.offers.iter()) && self.counts.iter().eq(other.counts.iter())
    }
}
