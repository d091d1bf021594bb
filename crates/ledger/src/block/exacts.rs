//! Orders for exact amounts on the chain (SPEEDEX §8 and appendix H; the rule of filling them is [`clearing::order`]).
//!
//! **What happens.** An *exact order* buys exactly `units` of one asset for at most `bound` of another, or sells
//! exactly `units` for at least `bound`. Upon its transaction it locks what it may give: the bound of a purchase, the
//! units of a sale. It takes part in the batch of its own block and in no other. After prices and amounts are found for
//! offers and pools, the exact orders of each group of assets that is full are filled as far as there is room between
//! what offers must and what they may trade. An order that is filled pays or receives the rate of the batch, commission
//! and whole units included; the rest of what it locks returns. An order that is not filled gets all of it back. It
//! costs the fees of four transactions either way.
//!
//! Orders are tried by pair, then by the most units offered for each unit asked for, then by account and number
//! ([`proofs::ExactRequest`]). A sub-block has at most [`crate::EXACTS_PER_SUB_BLOCK`].
//!
//! **Properties.**
//!
//! - *Exactly its units within its bound, or nothing.* There is no promise that it is filled.
//! - *Prices are not moved*: valuations, and which groups are full, are the same without exact orders. In a full group
//!   every offer that must trade does.
//! - *Any order of a block's transactions has one result*: the order above reads bodies alone.
//! - Nothing is left of it after its block. It is in no book and no trie; the receipts prove what became of it.
//! - A replay with the batch at hand ([`crate::Attached`]) checks that each fill belongs to an order of the block,
//!   moves what the rate says, is within its bound and in a full group. It checks that assets are conserved. It solves
//!   nothing, and believes which orders found no room, as it believes which offers of equal right traded.
//!
//! **Attacks.**
//!
//! - *Orders that cannot fit*, to use up the tries of others: one that asks for more than can be had of its asset is
//!   skipped without a try, and all tries of a group share one budget. Orders that fail only by what a third asset
//!   lacks do use up tries, but of one account at most [`clearing::TRIES_IN_VAIN`]. Then the rest of its orders is left
//!   out. Many accounts need a pair before, or a bound more generous than, those whom they disturb. Each pays four fees
//!   in each block, and whoever is disturbed sends an offer instead.
//! - *A group that is not full*, made so by dust offers: it costs exact orders of that group their fill, of no other.
//! - *A bound far beyond the rate* is first in its pair at no cost, since all pay the rate. It needs the units, which
//!   are locked for the block.
//! - *Account numbers* decide between equal bounds: an address found by search comes first among equals. It pays the
//!   same rate, and a bound one unit more generous comes before it.
//! - *Identical orders* of one account have different numbers, and lock and pay each for itself.
//! - *Locks beyond the balance*: the filter sums what an account's transactions lock together, as for offers.
//! - *A block of nothing but exact orders* has no prices: all of them return.
//! - *Many orders*: a sub-block has a quota, and tries cost at most one more amount step of a group.
//!
//! **Deviations from the paper.** §8 leaves open which orders are filled and for how long they stand. Here by one
//! order, in one batch: one that rests would be tried in each block for one fee. §8 has no order to sell all or
//! nothing. The room for an order counts what offers that buy its asset need not get, beside what offers that sell it
//! may sell: with the latter alone no order to buy the scarcer asset of a pair would ever be filled. Whether an order
//! found no room or was not tried any more is not told apart, since a replay cannot tell.

use std::collections::BTreeMap;

use clearing::{Clearing, ExactFill, ExactOrder, Groups, Params, Rate};
use primitives::{Address, Amount, AssetId, Price, Sequence};
use proofs::{Batch, ExactOutcome, ExactReason, ExactRequest, ExactTrade, Outcome, Pair};

use super::fault::AttachedViolation;
use crate::places::sums::Credit;

/// An exact order of a block, and the index of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NewExact {
    pub request: ExactRequest,
    pub index: u32,
}

/// What is known of a batch to judge exact orders by; nothing where nothing was for sale.
pub(crate) struct Judge<'a> {
    pub groups: Option<&'a Groups>,
    pub valuations: &'a [Price],
    /// For each asset, whether its group is not full.
    pub short: &'a [bool],
    pub params: Params,
}

/// The order as the clearing takes it.
pub(crate) fn order_of(request: &ExactRequest) -> ExactOrder {
    let ExactRequest { pair: Pair { sell, buy }, side, units, bound, .. } = *request;
    ExactOrder { sell, buy, side, units, bound, owner: None }
}

/// The orders of a block as the clearing takes them: those of one account share its tries.
pub(crate) fn orders_of(exacts: &[NewExact]) -> Vec<ExactOrder> {
    let mut accounts: Vec<Address> = exacts.iter().map(|new| new.request.account).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let owner = |account| accounts.binary_search(account).ok().map(|at| at as u32);
    exacts.iter().map(|new| ExactOrder { owner: owner(&new.request.account), ..order_of(&new.request) }).collect()
}

/// The fills of a clearing, whose exact orders are these in this order.
pub(crate) fn trades(exacts: &[NewExact], clearing: &Clearing) -> Vec<ExactTrade> {
    let trade = |fill: &ExactFill| {
        let request = &exacts[fill.order as usize].request;
        let (sold, bought) = order_of(request).moves(fill.other);
        ExactTrade { pair: request.pair, side: request.side, account: request.account, id: request.id, sold, bought }
    };
    clearing.exacts.iter().map(trade).collect()
}

impl Judge<'_> {
    /// Why an order that is not filled is not, and what a fill of it would pay or receive.
    fn other(&self, request: &ExactRequest) -> Result<Amount, ExactReason> {
        let Pair { sell, buy } = request.pair;
        if !self.groups.is_some_and(|groups| groups.are_one(sell, buy)) {
            return Err(ExactReason::NoPrice);
        }
        let value = |asset: AssetId| self.valuations[asset.0 as usize];
        let rate = Rate::new(value(sell), value(buy), self.params.epsilon, self.params.mu);
        let other = order_of(request).other(&rate).ok_or(ExactReason::BeyondBound)?;
        if self.short[sell.0 as usize] { Err(ExactReason::GroupNotFull) } else { Ok(other) }
    }

    /// Checks claimed fills: each is one of an order of the block, in the order in which they are tried, and by the
    /// rule.
    ///
    /// # Errors
    /// [`AttachedViolation::Exact`] names the first that is not.
    pub(crate) fn check(&self, exacts: &[NewExact], claimed: &[ExactTrade]) -> Result<(), AttachedViolation> {
        let mut rest = exacts.iter();
        for trade in claimed {
            let wrong = || AttachedViolation::Exact { account: trade.account, id: trade.id };
            let is_own = |new: &&NewExact| (new.request.account, new.request.id) == (trade.account, trade.id);
            let request = &rest.find(is_own).ok_or_else(wrong)?.request;
            let other = self.other(request).map_err(|_| wrong())?;
            let is_same = (request.pair, request.side) == (trade.pair, trade.side);
            if !is_same || order_of(request).moves(other) != (trade.sold, trade.bought) {
                return Err(wrong());
            }
        }
        Ok(())
    }

    /// What became of each exact order of a block, by the index of its transaction.
    pub(crate) fn outcomes(&self, exacts: &[NewExact], batch: &Batch) -> Vec<(u32, ExactOutcome)> {
        let filled: BTreeMap<_, _> = batch.exacts.iter().map(|trade| ((trade.account, trade.id), trade)).collect();
        let outcome = |NewExact { request, index }: &NewExact| {
            let locked = request.locks();
            let outcome = match filled.get(&(request.account, request.id)) {
                Some(ExactTrade { sold, bought, .. }) => {
                    ExactOutcome { sold: *sold, bought: *bought, returned: locked - sold, why: ExactReason::Filled }
                }
                None => {
                    let why = self.other(request).err().unwrap_or(ExactReason::NoRoom);
                    ExactOutcome { sold: 0, bought: 0, returned: locked, why }
                }
            };
            (*index, outcome)
        };
        exacts.iter().map(outcome).collect()
    }
}

/// Writes what became of exact orders into the outcomes of a block's transactions.
pub(crate) fn mark_exacts(outcomes: &mut [Outcome], exacts: &[(u32, ExactOutcome)]) {
    exacts.iter().for_each(|(index, outcome)| outcomes[*index as usize] = Outcome::Exact(*outcome));
}

/// What exact orders receive, and what returns to them, each with the number of the order. Both lists are in one order.
pub(crate) fn exact_credits(exacts: &[NewExact], outcomes: &[(u32, ExactOutcome)]) -> Vec<(Sequence, Credit)> {
    let credits = exacts.iter().zip(outcomes).flat_map(|(new, (_, outcome))| {
        let (to, Pair { sell, buy }) = (new.request.account, new.request.pair);
        let bought = Credit { to, asset: buy, amount: outcome.bought };
        [bought, Credit { to, asset: sell, amount: outcome.returned }].map(|credit| (new.request.id, credit))
    });
    credits.filter(|(_, credit)| credit.amount > 0).collect()
}
