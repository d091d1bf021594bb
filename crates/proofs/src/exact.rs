//! Orders for exact amounts, as receipts name them.

use std::cmp::Ordering;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, ExactSide, Sequence};

use crate::offer::Pair;

/// An exact order: what its operation asks for, and who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ExactRequest {
    /// The assets that it sells and buys.
    pub pair: Pair,
    /// Which of the two `units` counts.
    pub side: ExactSide,
    /// Units to buy or to sell.
    pub units: Amount,
    /// The most units to pay, or the fewest to receive.
    pub bound: Amount,
    /// The account that sent it.
    pub account: Address,
    /// The number of its transaction.
    pub id: Sequence,
}

impl ExactRequest {
    /// Units of the asset sold that it locks.
    pub fn locks(&self) -> Amount {
        match self.side {
            ExactSide::Buy => self.bound,
            ExactSide::Sell => self.units,
        }
    }

    /// Units that it buys at least and sells at most, the bound included.
    fn terms(&self) -> (Amount, Amount) {
        match self.side {
            ExactSide::Buy => (self.units, self.bound),
            ExactSide::Sell => (self.bound, self.units),
        }
    }
}

impl Ord for ExactRequest {
    /// The order in which exact orders of a block are tried: by pair, then the most units offered per unit asked for,
    /// then by account and number.
    fn cmp(&self, other: &ExactRequest) -> Ordering {
        let ((buys, sells), (others_buys, others_sells)) = (self.terms(), other.terms());
        let generous = |sells: Amount, buys: Amount| u128::from(sells) * u128::from(buys);
        let by_bound = generous(others_sells, buys).cmp(&generous(sells, others_buys));
        let rest = |of: &ExactRequest| (of.account, of.id, of.side, of.units, of.bound);
        self.pair.cmp(&other.pair).then(by_bound).then_with(|| rest(self).cmp(&rest(other)))
    }
}

impl PartialOrd for ExactRequest {
    fn partial_cmp(&self, other: &ExactRequest) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An exact order that was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ExactTrade {
    /// The assets that it sold and bought.
    pub pair: Pair,
    /// Which of the two amounts is exact.
    pub side: ExactSide,
    /// The account that sent it.
    pub account: Address,
    /// The number of its transaction.
    pub id: Sequence,
    /// Units sold.
    pub sold: Amount,
    /// Units received, net of commission.
    pub bought: Amount,
}

/// What became of an exact order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ExactOutcome {
    /// Units sold; 0 if it was not filled.
    pub sold: Amount,
    /// Units received.
    pub bought: Amount,
    /// Units of the asset sold that it locked and that returned.
    pub returned: Amount,
    /// Why.
    pub why: ExactReason,
}

/// Why an exact order was filled or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ExactReason {
    /// It was filled.
    Filled,
    /// No chain of offers and pools leads from the asset that it buys back to the one that it sells: there is no price.
    NoPrice,
    /// At the rate of the batch, commission and whole units included, it is beyond its bound.
    BeyondBound,
    /// Its group of assets is not full: offers have the first claim to what is sold there.
    GroupNotFull,
    /// Too little is left of the asset after what offers must trade and earlier exact orders take. Or the earlier
    /// orders have used up the tries of its group.
    NoRoom,
}

impl ExactReason {
    /// Its name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            ExactReason::Filled => "filled",
            ExactReason::NoPrice => "no_price",
            ExactReason::BeyondBound => "beyond_bound",
            ExactReason::GroupNotFull => "group_not_full",
            ExactReason::NoRoom => "no_room",
        }
    }
}
