//! Fills: an order traded with another one.

use primitives::venue::{SettledFill, VenueSide, is_within_cap};

use super::{Made, VenueMachine};
use crate::refusal::OrderEnd;
use crate::report::{FillParty, MarketEvent, VenueFill};
use crate::state::Pending;

impl VenueMachine {
    /// A maker and a taker traded. The fill takes the next index in the tree of the incarnation.
    pub(super) fn execute(&mut self, [maker, taker]: [u32; 2], taker_side: VenueSide, tick: u32, lots: u32) {
        let (buyer, seller) = if taker_side == VenueSide::Buy { (taker, maker) } else { (maker, taker) };
        let pending = self.fill_of(buyer, seller, taker_side, tick, lots);
        for slot in [maker, taker] {
            let order = self.core.order_mut(slot);
            order.open -= lots;
            order.executed += lots;
            order.unsettled += 1;
            order.quote += u128::from(pending.fill.quote);
        }
        self.charge(buyer, pending.fill.terms.fee_buy);
        self.charge(seller, pending.fill.terms.fee_sell);
        let (mut fill, market) = (pending.fill, pending.fill.market);
        fill.buyer.left = self.core.order(buyer).open;
        fill.seller.left = self.core.order(seller).open;
        assert!(self.core.tree.append(fill.leaf), "indices of fills have 64 bits");
        let pending = Pending { fill, ..pending };
        self.owe(&pending, true);
        self.count_fill(true);
        self.core.pending.push_back(pending);
        self.fills.push(fill);
        let maker_side = if taker_side == VenueSide::Buy { VenueSide::Sell } else { VenueSide::Buy };
        for (slot, side) in [(maker, maker_side), (taker, taker_side)] {
            self.made.push(Made::Executed(self.fills.len() - 1, side));
            let order = self.core.order(slot);
            let (id, is_shown, is_filled) = (order.accepted.id, order.is_shown, order.open == 0);
            if is_shown {
                self.show(market, MarketEvent::Executed { id, lots, tick, trade: fill.index });
            }
            match is_filled {
                true => {
                    self.core.order_mut(slot).is_shown = false;
                    self.close(slot, OrderEnd::Filled);
                }
                false => self.refresh(slot),
            }
        }
    }

    fn charge(&mut self, slot: u32, fee: i64) {
        self.core.order_mut(slot).fees += i128::from(fee);
        let order = self.core.order(slot);
        debug_assert!(is_within_cap(order.quote, order.fees, order.terms().fee_cap_ppm), "fees stay within the cap");
    }

    fn fill_of(&self, buyer: u32, seller: u32, taker: VenueSide, tick: u32, lots: u32) -> Pending {
        let market = self.market_of(buyer);
        let units = market.terms.units(lots, tick).expect("both orders reserve what exists");
        let fee = |side| market.settings.fee(units.quote, taker == side);
        let (fee_buy, fee_sell) = (fee(VenueSide::Buy), fee(VenueSide::Sell));
        let terms = SettledFill { buy: 0, sell: 0, lots, tick, fee_buy, fee_sell, taker };
        let digest = |slot: u32| self.core.order(slot).signed.digest();
        let fill = VenueFill {
            index: self.core.tree.count(),
            leaf: terms.leaf(digest(buyer), digest(seller)),
            market: self.core.order(buyer).terms().market,
            buyer: self.party(buyer),
            seller: self.party(seller),
            terms,
            quote: units.quote,
            base: units.base,
            matched: self.core.height(),
        };
        let penalty = market.terms.penalty_of(lots).unwrap_or(primitives::MAX_ISSUED);
        Pending { fill, buyer, seller, penalty }
    }

    fn party(&self, slot: u32) -> FillParty {
        let order = self.core.order(slot);
        FillParty {
            key: *order.signed.key(),
            number: order.terms().number,
            account: self.core.owner_of(order.key).address,
            session: order.session,
            id: order.accepted.id,
            left: order.open,
        }
    }
}
