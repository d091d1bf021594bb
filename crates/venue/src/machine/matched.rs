//! Fills: an order traded with another one.

use primitives::venue::{SettledFill, VenueSide, is_within_cap};

use super::{Made, VenueMachine};
use crate::refusal::OrderEnd;
use crate::report::{FillParty, MarketEvent, VenueFill};
use crate::state::Pending;

/// A maker and a taker traded. The fill takes the next index in the tree of the incarnation.
pub(super) fn execute(
    machine: &mut VenueMachine,
    [maker, taker]: [u32; 2],
    taker_side: VenueSide,
    tick: u32,
    lots: u32,
) {
    let (buyer, seller) = if taker_side == VenueSide::Buy { (taker, maker) } else { (maker, taker) };
    let pending = fill_of(machine, buyer, seller, taker_side, tick, lots);
    for slot in [maker, taker] {
        let order = machine.core.order_mut(slot);
        order.open -= lots;
        let fills = order.fills_mut();
        fills.executed += lots;
        fills.unsettled += 1;
        fills.quote += u128::from(pending.fill.quote);
    }
    charge(machine, buyer, pending.fill.terms.fee_buy);
    charge(machine, seller, pending.fill.terms.fee_sell);
    let (mut fill, market) = (pending.fill, pending.fill.market);
    fill.buyer.left = machine.core.order(buyer).open;
    fill.seller.left = machine.core.order(seller).open;
    assert!(machine.core.tree.append(fill.leaf), "indices of fills have 64 bits");
    let pending = Pending { fill, ..pending };
    machine.owe(&pending, true);
    machine.count_fill(true);
    machine.core.pending.push_back(pending);
    machine.fills.push(fill);
    let maker_side = if taker_side == VenueSide::Buy { VenueSide::Sell } else { VenueSide::Buy };
    for (slot, side) in [(maker, maker_side), (taker, taker_side)] {
        machine.made.push(Made::Executed(machine.fills.len() - 1, side));
        let order = machine.core.order(slot);
        let (id, is_shown, is_filled) = (order.id, order.is_shown, order.open == 0);
        if is_shown {
            machine.show(market, MarketEvent::Executed { id, lots, tick, trade: fill.index });
        }
        match is_filled {
            true => {
                machine.core.order_mut(slot).is_shown = false;
                machine.close(slot, OrderEnd::Filled);
            }
            false => machine.refresh(slot),
        }
    }
}

fn charge(machine: &mut VenueMachine, slot: u32, fee: i64) {
    let order = machine.core.order_mut(slot);
    let (cap, fills) = (order.terms.fee_cap_ppm, order.fills_mut());
    fills.fees += i128::from(fee);
    debug_assert!(is_within_cap(fills.quote, fills.fees, cap), "fees stay within the cap");
}

fn fill_of(machine: &VenueMachine, buyer: u32, seller: u32, taker: VenueSide, tick: u32, lots: u32) -> Pending {
    let market = machine.market_of(buyer);
    let units = market.terms.units(lots, tick).expect("both orders reserve what exists");
    let fee = |side| market.settings.fee(units.quote, taker == side);
    let (fee_buy, fee_sell) = (fee(VenueSide::Buy), fee(VenueSide::Sell));
    let terms = SettledFill { buy: 0, sell: 0, lots, tick, fee_buy, fee_sell, taker };
    let digest = |slot: u32| &machine.core.order_proof(slot).digest;
    let fill = VenueFill {
        index: machine.core.tree.count(),
        leaf: terms.leaf(digest(buyer), digest(seller)),
        market: machine.core.order(buyer).terms.market,
        buyer: party(machine, buyer),
        seller: party(machine, seller),
        terms,
        quote: units.quote,
        base: units.base,
        matched: machine.core.height(),
    };
    let penalty = market.terms.penalty_of(lots).unwrap_or(primitives::MAX_ISSUED);
    Pending { fill, buyer, seller, penalty }
}

fn party(machine: &VenueMachine, slot: u32) -> FillParty {
    let order = machine.core.order(slot);
    FillParty {
        key: machine.core.public_of(order),
        number: order.terms.number,
        account: machine.core.owner_of(order.key).address,
        session: order.session,
        id: order.id,
        left: order.open,
    }
}
