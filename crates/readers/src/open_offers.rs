//! The resting offers, by account and by price, updated from published blocks.
//!
//! *Invariant*: after a block, every offer is here with the amount that it has in the ledger's book, and the sums by
//! asset and by price are those of the offers.

use std::collections::{BTreeMap, HashMap};

use ledger::{NO_END, Offer, OrderBook, Pair, Place};
use primitives::{Address, Amount, AssetId, Height, Price, Sequence};

/// A resting offer of a known account and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    /// Its pair.
    pub pair: Pair,
    /// Its limit price.
    pub limit: Price,
    /// Units for sale.
    pub amount: Amount,
    /// Its last height, or [`ledger::NO_END`].
    pub until: Height,
}

/// The offers of one price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Units for sale.
    pub amount: Amount,
    /// Number of offers.
    pub offers: usize,
}

/// The offers of one account.
#[derive(Default)]
struct Own {
    offers: BTreeMap<Sequence, Resting>,
    locked: BTreeMap<AssetId, Amount>,
}

/// See the module text.
#[derive(Default)]
pub struct OpenOffers {
    accounts: HashMap<Address, Own>,
    prices: BTreeMap<Pair, Prices>,
    count: usize,
}

/// The offers of one pair.
#[derive(Default)]
struct Prices {
    by_limit: BTreeMap<Price, Depth>,
    count: usize,
}

impl OpenOffers {
    /// The offers of a book.
    pub fn of(book: &OrderBook) -> OpenOffers {
        let mut all = OpenOffers::default();
        for (pair, offers) in book.iter() {
            for offer in offers.iter() {
                all.place(pair, offer);
            }
        }
        all
    }

    /// Sets the amount of an offer that rests already, or of one without an end; 0 removes it.
    pub fn set(&mut self, pair: Pair, place: Place, amount: Amount) {
        let resting = self.accounts.get(&place.account).and_then(|own| own.offers.get(&place.id));
        let until = resting.map_or(NO_END, |resting| resting.until);
        self.place(pair, Offer { place, amount, until });
    }

    /// Adds or replaces an offer; one of 0 units is removed.
    pub fn place(&mut self, pair: Pair, offer: Offer) {
        let Offer { place, amount, until } = offer;
        self.remove(&place.account, place.id);
        if amount == 0 {
            return;
        }
        let own = self.accounts.entry(place.account).or_default();
        own.offers.insert(place.id, Resting { pair, limit: place.limit, amount, until });
        *own.locked.entry(pair.sell).or_default() += amount;
        let prices = self.prices.entry(pair).or_default();
        let depth = prices.by_limit.entry(place.limit).or_default();
        depth.amount += amount;
        depth.offers += 1;
        prices.count += 1;
        self.count += 1;
    }

    /// Removes an offer.
    pub fn remove(&mut self, account: &Address, id: Sequence) {
        let Some(own) = self.accounts.get_mut(account) else { return };
        let Some(Resting { pair, limit, amount, .. }) = own.offers.remove(&id) else { return };
        subtract(&mut own.locked, pair.sell, amount);
        if own.offers.is_empty() {
            self.accounts.remove(account);
        }
        self.count -= 1;
        let prices = self.prices.get_mut(&pair).expect("an offer has a price");
        let depth = prices.by_limit.get_mut(&limit).expect("an offer has a price");
        depth.amount -= amount;
        depth.offers -= 1;
        if depth.offers == 0 {
            prices.by_limit.remove(&limit);
        }
        prices.count -= 1;
        if prices.count == 0 {
            self.prices.remove(&pair);
        }
    }

    /// Number of resting offers.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no resting offers.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The offers of an account, by id.
    pub fn of_account(&self, account: &Address) -> impl Iterator<Item = (Sequence, Resting)> + '_ {
        self.of_account_from(account, 0)
    }

    /// The offers of an account from an id on.
    pub fn of_account_from(&self, account: &Address, from: Sequence) -> impl Iterator<Item = (Sequence, Resting)> + '_ {
        let own = self.accounts.get(account).into_iter();
        own.flat_map(move |own| own.offers.range(from..)).map(|(id, resting)| (*id, *resting))
    }

    /// Units that an account's offers lock, by asset.
    pub fn locked(&self, account: &Address) -> BTreeMap<AssetId, Amount> {
        self.accounts.get(account).map(|own| own.locked.clone()).unwrap_or_default()
    }

    /// Pairs with offers.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> + '_ {
        self.prices.keys().copied()
    }

    /// The prices of a pair, lowest limit first.
    pub fn prices(&self, pair: Pair) -> impl Iterator<Item = (Price, Depth)> + '_ {
        self.prices.get(&pair).into_iter().flat_map(|prices| &prices.by_limit).map(|(limit, depth)| (*limit, *depth))
    }

    /// Number of resting offers of a pair.
    pub fn pair_len(&self, pair: Pair) -> usize {
        self.prices.get(&pair).map_or(0, |prices| prices.count)
    }
}

/// Subtracts from a sum, and removes a sum of zero.
fn subtract(sums: &mut BTreeMap<AssetId, Amount>, asset: AssetId, amount: Amount) {
    let sum = sums.get_mut(&asset).expect("it was added");
    *sum -= amount;
    if *sum == 0 {
        sums.remove(&asset);
    }
}
