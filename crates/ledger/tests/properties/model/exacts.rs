//! Exact orders in their simplest form.

use clearing::ExactOrder;
use ledger::{ExactTrade, Pair};
use num_bigint::BigUint;
use primitives::{Address, Amount, AssetId, ExactSide, Fraction, Operation, Price, Sequence, Transaction};

use super::exact::payout;

/// An exact order that the filter lets through.
#[derive(Clone, Copy)]
pub struct ModelExact {
    pub pair: Pair,
    pub side: ExactSide,
    pub units: Amount,
    pub bound: Amount,
    pub account: Address,
    pub id: Sequence,
}

impl ModelExact {
    fn of(transaction: &Transaction) -> Option<ModelExact> {
        let body = &transaction.body;
        let Operation::Exact { sell, buy, side, units, bound, .. } = body.operation else { return None };
        Some(ModelExact { pair: Pair { sell, buy }, side, units, bound, account: body.account, id: body.sequence })
    }

    /// Units that it locks.
    pub fn locks(&self) -> Amount {
        if self.side == ExactSide::Buy { self.bound } else { self.units }
    }

    pub fn order(&self) -> ExactOrder {
        let Pair { sell, buy } = self.pair;
        match self.side {
            ExactSide::Buy => ExactOrder::buy(buy, self.units, sell, self.bound),
            ExactSide::Sell => ExactOrder::sell(sell, self.units, buy, self.bound),
        }
    }

    /// Units offered, and units asked for: what it offers for each that it asks for decides its turn.
    fn terms(&self) -> (BigUint, BigUint) {
        let (units, bound) = (self.units.into(), self.bound.into());
        if self.side == ExactSide::Buy { (bound, units) } else { (units, bound) }
    }

    /// The trade if it moves these units: `None` if they are not what the valuations say, or beyond the bound.
    pub fn trade(
        &self,
        sold: Amount,
        bought: Amount,
        value: impl Fn(AssetId) -> Price,
        epsilon: Fraction,
    ) -> Option<ExactTrade> {
        let ModelExact { pair, side, units, bound, account, id } = *self;
        let pays = |sold: Amount| payout(sold, value(pair.sell), value(pair.buy), epsilon);
        let is_right = match side {
            ExactSide::Buy => {
                let is_fewest = sold > 0 && pays(sold) >= units && pays(sold - 1) < units;
                bought == units && sold <= bound && is_fewest
            }
            ExactSide::Sell => sold == units && bought >= bound && pays(units) == bought,
        };
        is_right.then_some(ExactTrade { pair, side, account, id, sold, bought })
    }
}

/// Those of a block's transactions that stand, in the order in which they are tried.
pub fn in_order(standing: &[&Transaction]) -> Vec<ModelExact> {
    let mut all: Vec<ModelExact> = standing.iter().filter_map(|transaction| ModelExact::of(transaction)).collect();
    all.sort_by(|one, other| {
        let ((offers, asks), (others, asked)) = (one.terms(), other.terms());
        let generous = (others * asks).cmp(&(offers * asked));
        one.pair.cmp(&other.pair).then(generous).then((one.account, one.id).cmp(&(other.account, other.id)))
    });
    all
}
