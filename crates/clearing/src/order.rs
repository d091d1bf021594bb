//! Orders to buy an exact amount (SPEEDEX §8).
//!
//! # The rule
//!
//! A buy order asks for exactly `bought` units of one asset and spends at most `most` of another. Sell offers alone
//! determine the prices. At those prices an order costs the fewest units whose net pay-out is at least what it asks
//! for, so that its trader pays the batch rate and commission, rounded up to a whole unit, and receives exactly what
//! was asked for. An order that costs more than its maximum is not filled, nor is one between assets of different
//! groups, between which there is no price. The others are filled in the amount step, each in full or not at all, as
//! long as a full clearing stays full:
//!
//! 1. if the clearing with all of them is full, all are filled;
//! 2. otherwise the same is done with the first half of them, in the order of the book, and then with the second
//!    half, given what was filled of the first; a single order that does not fit is not filled;
//! 3. after [`TRIES`] tries in a group, orders not accepted yet are not filled.
//!
//! This is done for each group of assets alone, and a group that is not full fills no buy order: the units are owed to
//! offers.
//!
//! Units: `bought`, `most` and `paid` are units of the assets. Errors: an order of nothing, within one asset or of an
//! unknown one is rejected as [`crate::InputError::BuyOrder`]; a [`Purchase`] that this rule does not allow at the
//! clearing's rates is [`crate::Violation::Purchase`].
//!
//! **Deviations from the paper**: §8 leaves open which set of orders that fit together is chosen. Finding the largest
//! set is a hard problem; the halving above is bounded, and the order of the book decides.

use primitives::{Amount, AssetId, MAX_ISSUED, Price};

use crate::book::{Book, BuyOrder, Params};
use crate::flow::Program;
use crate::rate::Rate;

/// Maximum number of sets of buy orders of one group for which amounts are sought.
pub const TRIES: u32 = 64;

/// A buy order that is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purchase {
    /// Position in [`crate::Book::buys`].
    pub order: u32,
    /// Units paid.
    pub paid: Amount,
}

impl BuyOrder {
    /// The cost of the order at `rate`, the rate of its pair `sell`/`buy`; `None` if that is more than it may spend.
    pub fn cost(&self, rate: &Rate) -> Option<Amount> {
        let enough = |sold: Amount| rate.payout(sold).is_none_or(|paid| paid >= self.bought);
        if self.bought > MAX_ISSUED || !enough(self.most) {
            return None;
        }
        let (mut low, mut high) = (0, self.most);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if enough(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

impl Program<'_> {
    /// Fills buy orders among those that `may` be filled, given amounts that meet every bound, and computes the final
    /// amounts.
    pub(crate) fn fill_orders(
        &mut self,
        book: &Book,
        params: &Params,
        valuations: &[Price],
        values: &[f64],
        may: impl Fn(&BuyOrder) -> bool,
    ) -> Vec<Purchase> {
        let cost = |order: &BuyOrder| {
            let value = |asset: AssetId| valuations[asset.0 as usize];
            order.cost(&Rate::new(value(order.sell), value(order.buy), params.epsilon, params.mu))
        };
        let costs = book.buys.iter().enumerate().filter(|(_, order)| may(order));
        let costs = costs.filter_map(|(at, order)| Some((at as u32, cost(order)?)));
        let wanted: Vec<Purchase> = costs.map(|(order, paid)| Purchase { order, paid }).collect();
        let mut filled = Vec::new();
        // The sets still to be tried, the next one last.
        let mut open = vec![&wanted[..]];
        let mut settled = true;
        for _ in 0..TRIES {
            let Some(next) = open.pop() else { break };
            if next.is_empty() {
                continue;
            }
            self.renew_allowance();
            self.purchase(book, next, 1);
            settled = self.try_bounds(values).is_empty();
            if settled {
                filled.extend_from_slice(next);
                continue;
            }
            self.purchase(book, next, -1);
            if next.len() > 1 {
                let (first, second) = next.split_at(next.len() / 2);
                open.extend([second, first]);
            }
        }
        if !settled {
            self.renew_allowance();
            let short = self.try_bounds(values);
            debug_assert!(short.is_empty(), "the same amounts as before");
        }
        filled
    }

    /// Adds purchases, or removes them.
    fn purchase(&mut self, book: &Book, purchases: &[Purchase], sign: i128) {
        for Purchase { order, paid } in purchases {
            let order = &book.buys[*order as usize];
            self.bought[order.sell.0 as usize] += sign * i128::from(*paid);
            self.bought[order.buy.0 as usize] -= sign * i128::from(order.bought);
        }
    }
}
