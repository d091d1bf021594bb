//! What the batch of the next block would do with one more order, if nothing else came: a quote over all pairs.

use primitives::{Address, Amount, ExactSide, Height, MAX_ISSUED, Price};
use proofs::{ExactOutcome, ExactRequest, NO_END, Offer, Pair, Place, Refusal, Traded};

use super::exacts::NewExact;
use super::orders::{NewOffer, Orders};
use super::trade;
use crate::contracts::History;
use crate::places::accounts::Accounts;
use crate::places::offers::too_small;
use crate::places::pools::PoolTurn;
use crate::state::Ledger;

/// What the next batch needs of a ledger. It shares the memory of book and pools, and has no accounts: blocks that are
/// applied meanwhile copy none of these.
pub struct NextBatch(Ledger);

/// What the next batch would do with an order: with an offer, or with an exact order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote<Met = Traded> {
    /// The height whose state was asked.
    pub height: Height,
    /// What it would sell and get, what would rest or return, and why.
    pub met: Met,
    /// The valuations of what it sells and buys in that batch; none if it clears nothing.
    pub valuations: Option<[Price; 2]>,
    /// The same after the last batch; none where an asset has no price yet.
    pub last: Option<[Price; 2]>,
}

/// Why there is no quote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    /// The ledger would refuse the order.
    #[error("{0}")]
    Refused(Refusal),
    /// The book cannot be cleared.
    #[error("no prices are found for this book: {0}")]
    Clearing(String),
}

/// The offer stands behind all others of its limit, as the newest does.
const LAST: (Address, u64) = (Address([0xff; 20]), u64::MAX);

impl NextBatch {
    /// The one after this state.
    pub fn after(ledger: &Ledger) -> NextBatch {
        let mut needed = ledger.clone();
        (needed.places.accounts, needed.history) = (Accounts::default(), History::default());
        NextBatch(needed)
    }

    /// The lowest limit that the ledger takes for an offer of this size: whoever sells at any price asks for it.
    pub fn lowest_limit(&self, pair: Pair, amount: Amount) -> Price {
        let asked = self.0.minima(pair).buy.max(1);
        Price::ratio_rounding_up(asked, amount.max(1)).unwrap_or(Price::MIN)
    }

    /// What the next batch would do with an offer; both assets are listed. The search for prices takes as long as that
    /// of a block.
    ///
    /// # Errors
    /// [`QuoteError`].
    pub fn quote(self, pair: Pair, amount: Amount, limit: Price) -> Result<Quote, QuoteError> {
        let NextBatch(ledger) = &self;
        ledger.minima(pair).check(amount, limit).map_err(|small| QuoteError::Refused(too_small(small)))?;
        self.check_open(pair)?;
        if ledger.is_book_full {
            return Err(QuoteError::Refused(Refusal::BOOK_FULL));
        }
        let (account, id) = LAST;
        let offer = Offer { place: Place { limit, account, id }, amount, until: NO_END };
        let orders = Orders { offers: vec![NewOffer { pair, offer, index: 0 }], ..Orders::default() };
        self.search(pair, &orders, |traded| {
            let met = traded.pairs.iter().flat_map(|pair| &pair.met).find(|(index, _)| *index == 0);
            met.map(|(_, met)| *met).expect("an offer that is placed is met")
        })
    }

    /// What the next batch would do with an exact order of `units` and this bound; both assets are listed. Exact orders
    /// of others, which may come first and leave no room, are not known.
    ///
    /// # Errors
    /// As [`NextBatch::quote`].
    pub fn quote_exact(
        self,
        pair: Pair,
        side: ExactSide,
        [units, bound]: [Amount; 2],
    ) -> Result<Quote<ExactOutcome>, QuoteError> {
        let exact = if side == ExactSide::Buy { pair.buy } else { pair.sell };
        let least = self.0.assets[exact.0 as usize].least_units;
        if !(least..=MAX_ISSUED).contains(&units) || !(1..=MAX_ISSUED).contains(&bound) {
            return Err(QuoteError::Refused(Refusal::EXACT_TOO_SMALL));
        }
        self.check_open(pair)?;
        let (account, id) = LAST;
        let request = ExactRequest { pair, side, units, bound, account, id };
        let orders = Orders { exacts: vec![NewExact { request, index: 0 }], ..Orders::default() };
        self.search(pair, &orders, |traded| traded.exacts[0].1)
    }

    /// Both assets trade in the next block.
    fn check_open(&self, pair: Pair) -> Result<(), QuoteError> {
        let (listings, height) = (self.0.listings(), self.0.next_height());
        let check = |asset| listings.check_open(asset, height).map_err(QuoteError::Refused);
        [pair.sell, pair.buy].into_iter().try_for_each(check)
    }

    /// Clears the next batch with this order.
    fn search<Met>(
        self,
        pair: Pair,
        orders: &Orders,
        met: impl Fn(&trade::Traded) -> Met,
    ) -> Result<Quote<Met>, QuoteError> {
        let NextBatch(mut ledger) = self;
        let last = of_pair(pair, |asset| ledger.assets[asset].valuation);
        let pools = ledger
            .pools()
            .map_or_else(PoolTurn::default, |pools| pools.turn(&orders.edits.pools, ledger.founded_assets()));
        let height = ledger.height;
        let traded = trade::trade(&mut ledger, height + 1, orders, &pools, &mut |_| {});
        let traded = traded.map_err(|fault| QuoteError::Clearing(fault.to_string()))?;
        let valuations = of_pair(pair, |asset| traded.batch.valuations.get(asset).copied());
        Ok(Quote { height, met: met(&traded), valuations, last })
    }
}

/// The valuations of both assets, if both have one.
fn of_pair(pair: Pair, valuation: impl Fn(usize) -> Option<Price>) -> Option<[Price; 2]> {
    Some([valuation(pair.sell.0 as usize)?, valuation(pair.buy.0 as usize)?])
}
