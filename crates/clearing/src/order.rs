//! Orders for an exact amount, filled in full or not at all (SPEEDEX §8).
//!
//! # The rule
//!
//! An exact order *buys* exactly `units` of one asset for at most `bound` of another, or *sells* exactly `units` for at
//! least `bound`. Offers and pools alone determine the prices. At those prices an order that buys costs the fewest
//! units whose net pay-out is at least what it asks for. So its trader pays the batch rate and commission, rounded up
//! to a whole unit. An order that sells receives the net pay-out of its units. An order beyond its bound is not filled,
//! nor is one between assets of different groups, between which there is no price.
//!
//! The others are filled in the amount step of their group, each in full or not at all, as long as a full clearing
//! stays full. They take what is left between L, what offers must execute, and U, what they may execute. In the order
//! of the book:
//!
//! 1. an order that asks for more of an asset than can ever be had of it is skipped without a try. What can be had is
//!    all that may be sold of the asset, less what must be paid of it to offers, less what orders filled so far take.
//!    Their payments of it are added;
//! 2. the others are tried together; if the clearing is full with them, all are filled;
//! 3. otherwise the same is done with the first half, and then with the second half, given what was filled of the
//!    first; a set that asks together for more than 1 permits is divided without a try;
//! 4. of an owner of whom [`TRIES_IN_VAIN`] orders have been tried alone in vain, no more orders are tried: others have
//!    the rest of the tries;
//! 5. after [`TRIES`] tries, or when all tries of the group have spent the budget of one amount step, no more orders
//!    of the group are filled.
//!
//! A group that is not full fills no exact order: the units are owed to offers. Those of other groups do not
//! notice it.
//!
//! Units: `units`, `bound` and [`ExactFill::other`] are units of the assets. Errors: an order of nothing, within one
//! asset or of an unknown one is rejected as [`crate::InputError::ExactOrder`]. A fill that this rule does not allow at
//! the clearing's rates is [`crate::Violation::ExactOrder`].
//!
//! # Properties
//!
//! - Valuations, and whether a group is full, are the same without exact orders.
//! - Tries cost at most one more amount step of each group, however many orders there are.
//!
//! **Deviations from the paper**: §8 leaves open which set of orders that fit together is chosen. Finding the largest
//! set is a hard problem; the halving above is bounded, and the order of the book decides. §8 has no order to sell all
//! or nothing.

use std::collections::BTreeMap;

use primitives::{Amount, AssetId, ExactSide, MAX_ISSUED, Price};

use crate::book::{Book, ExactOrder, Params};
use crate::flow::Program;
use crate::rate::Rate;

/// Maximum number of sets of exact orders of one group for which amounts are sought.
pub const TRIES: u32 = 64;
/// Orders of one owner that are tried alone in vain before the rest of the owner's are left out.
pub const TRIES_IN_VAIN: u32 = 4;

/// An exact order that is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactFill {
    /// Position in [`crate::Book::exacts`].
    pub order: u32,
    /// Units paid by an order that buys, or received by one that sells.
    pub other: Amount,
}

impl ExactOrder {
    /// An order to buy exactly so many units for at most `bound`.
    pub fn buy(buy: AssetId, units: Amount, sell: AssetId, bound: Amount) -> ExactOrder {
        ExactOrder { sell, buy, side: ExactSide::Buy, units, bound, owner: None }
    }

    /// An order to sell exactly so many units for at least `bound`.
    pub fn sell(sell: AssetId, units: Amount, buy: AssetId, bound: Amount) -> ExactOrder {
        ExactOrder { sell, buy, side: ExactSide::Sell, units, bound, owner: None }
    }

    /// The most units of `sell` that it may give.
    pub fn locks(&self) -> Amount {
        match self.side {
            ExactSide::Buy => self.bound,
            ExactSide::Sell => self.units,
        }
    }

    /// What it pays or receives beside its `units` at `rate`, the rate of its pair `sell`/`buy`; `None` if that is
    /// beyond its bound.
    pub fn other(&self, rate: &Rate) -> Option<Amount> {
        match self.side {
            ExactSide::Buy => self.cost(rate),
            ExactSide::Sell => rate.payout(self.units).filter(|paid| *paid >= self.bound),
        }
    }

    /// Units sold and units bought by a fill.
    pub fn moves(&self, other: Amount) -> (Amount, Amount) {
        match self.side {
            ExactSide::Buy => (other, self.units),
            ExactSide::Sell => (self.units, other),
        }
    }

    fn cost(&self, rate: &Rate) -> Option<Amount> {
        let enough = |sold: Amount| rate.payout(sold).is_none_or(|paid| paid >= self.units);
        if self.units > MAX_ISSUED || !enough(self.bound) {
            return None;
        }
        let (mut low, mut high) = (0, self.bound);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if enough(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// A fill, with the places of its assets and the units that it moves.
#[derive(Clone, Copy)]
struct Wanted {
    fill: ExactFill,
    owner: Option<u32>,
    sell: usize,
    buy: usize,
    sold: i128,
    bought: i128,
}

/// For each asset the most units that may still be had of it, as far as one asset alone tells.
struct Room(Vec<i128>);

impl Room {
    /// The room if no exact order is filled.
    fn new(program: &Program) -> Room {
        let mut room = vec![0; program.slack.len()];
        for arc in &program.arcs {
            room[arc.sell] += i128::from(arc.high);
            room[arc.buy] -= arc.paid_at(arc.low) as i128;
        }
        Room(room)
    }

    fn has(&self, one: &Wanted) -> bool {
        one.bought <= self.0[one.buy]
    }

    /// Whether there is room for all of them together.
    fn has_all(&self, all: &[Wanted]) -> bool {
        let mut room = self.0.clone();
        all.iter().for_each(|one| one.put(&mut room, 1));
        all.iter().all(|one| room[one.buy] >= 0)
    }
}

impl Wanted {
    /// Adds its effect to units of assets, or removes it.
    fn put(&self, units: &mut [i128], sign: i128) {
        units[self.sell] += sign * self.sold;
        units[self.buy] -= sign * self.bought;
    }
}

impl Program<'_> {
    /// Fills exact orders among those that `may` be filled, given amounts that meet every bound, and computes the final
    /// amounts. The program has all assets of the book.
    pub(crate) fn fill_orders(
        &mut self,
        book: &Book,
        params: &Params,
        valuations: &[Price],
        values: &[f64],
        may: impl Fn(&ExactOrder) -> bool,
    ) -> Vec<ExactFill> {
        let wanted = (0..).zip(&book.exacts).filter(|(_, order)| may(order));
        let wanted: Vec<Wanted> = wanted.filter_map(|(at, order)| want(at, order, params, valuations)).collect();
        self.renew_allowance();
        let mut room = Room::new(self);
        let (mut filled, mut tries) = (Vec::new(), 0);
        let mut in_vain: BTreeMap<u32, u32> = BTreeMap::new();
        let mut amounts = self.sold();
        // The sets still to be tried, the next one last.
        let mut open = vec![wanted];
        while let Some(mut next) = open.pop() {
            let has_tries = |owner| in_vain.get(&owner).is_none_or(|tries| *tries < TRIES_IN_VAIN);
            next.retain(|one| room.has(one) && one.owner.is_none_or(has_tries));
            if next.is_empty() {
                continue;
            }
            if room.has_all(&next) {
                if tries == TRIES || self.allowance.is_spent() {
                    break;
                }
                tries += 1;
                next.iter().for_each(|one| one.put(&mut self.bought, 1));
                if self.try_bounds(values).is_empty() {
                    amounts = self.sold();
                    next.iter().for_each(|one| one.put(&mut room.0, 1));
                    filled.extend(next.iter().map(|one| one.fill));
                    continue;
                }
                next.iter().for_each(|one| one.put(&mut self.bought, -1));
                if let [Wanted { owner: Some(owner), .. }] = next[..] {
                    *in_vain.entry(owner).or_default() += 1;
                }
            }
            if next.len() > 1 {
                let second = next.split_off(next.len() / 2);
                open.extend([second, next]);
            }
        }
        self.arcs.iter_mut().zip(amounts).for_each(|(arc, sold)| arc.sold = sold);
        self.count_slack();
        filled
    }

    /// Units sold of every arc.
    fn sold(&self) -> Vec<Amount> {
        self.arcs.iter().map(|arc| arc.sold).collect()
    }
}

/// What an order moves at these valuations, if it is within its bound.
fn want(at: u32, order: &ExactOrder, params: &Params, valuations: &[Price]) -> Option<Wanted> {
    let value = |asset: AssetId| valuations[asset.0 as usize];
    let rate = Rate::new(value(order.sell), value(order.buy), params.epsilon, params.mu);
    let other = order.other(&rate)?;
    let (sold, bought) = order.moves(other);
    let (sell, buy) = (order.sell.0 as usize, order.buy.0 as usize);
    let (fill, owner) = (ExactFill { order: at, other }, order.owner);
    Some(Wanted { fill, owner, sell, buy, sold: sold.into(), bought: bought.into() })
}
