//! Orders too small to pay for their entries on the ledger. The operator pays for so many of them a day, and an account
//! has a share of that, so that nobody uses up what others need. An order that ends without a trade gives its part
//! back.

use matching::Phase;
use primitives::venue::{VenueOrder, VenueSide};

use super::{Market, VenueMachine};
use crate::state::Spared;

const DAY_MS: u64 = 86_400_000;
/// An account has this part of what is spared in a day.
const SHARES: u64 = 32;

/// Whether the order, once it is used up, was worth the least at the worst price for its fees. A sale trades at its
/// tick or above, a buy as low as the best sale that it meets, and in a call as low as the collar.
pub(super) fn pays_its_way(order: &VenueOrder, market: &Market) -> bool {
    let low = match (order.side, market.book.phase()) {
        (VenueSide::Sell, _) => None,
        (VenueSide::Buy, Phase::Continuous) => market.book.depth(matching::Side::Sell).next().map(|(tick, ..)| tick),
        (VenueSide::Buy, _) => Some(market.collar.0),
    };
    let tick = low.map_or(order.tick, |low| low.min(order.tick));
    let worth = u128::from(order.lots) * u128::from(tick) * u128::from(market.terms.tick_units);
    worth >= u128::from(market.settings.quote_min)
}

/// Whether the operator pays for the entries of a small order of this key.
pub(super) fn may_spare(machine: &VenueMachine, at: u32) -> bool {
    let core = &machine.core;
    let (day, most, cost) = (day(machine), core.settings.limits.small_order_fees, core.settings.entry_fees());
    let fits = |spared: u64, most: u64| spared.checked_add(cost).is_some_and(|sum| sum <= most);
    fits(core.spared.on(day), most) && fits(core.owner_of(at).spared.on(day), most / SHARES)
}

/// Takes what a small order may cost out of the day's; the day, if it is one.
pub(super) fn spare(machine: &mut VenueMachine, at: u32, order: &VenueOrder) -> Option<u64> {
    let market = machine.markets.get(&order.market).expect("it was checked");
    if pays_its_way(order, market) {
        return None;
    }
    let (day, cost) = (day(machine), machine.core.settings.entry_fees());
    count_spared(machine, at, day, |spared| spared.saturating_add(cost));
    Some(day)
}

/// Gives back what an order did not cost, since it made no trade.
pub(super) fn unspare(machine: &mut VenueMachine, slot: u32) {
    let today = day(machine);
    let order = machine.core.order_mut(slot);
    let at = order.key;
    if order.fills().executed > 0 {
        return;
    }
    let spared_on = order.spared_on();
    order.set_spared_on(None);
    if let Some(day) = spared_on.filter(|day| *day == today) {
        let cost = machine.core.settings.entry_fees();
        count_spared(machine, at, day, |spared| spared.saturating_sub(cost));
    }
}

fn count_spared(machine: &mut VenueMachine, at: u32, day: u64, count: impl Fn(u64) -> u64) {
    let core = &mut machine.core;
    let account = core.key(at).account;
    for spared in [&mut core.spared, &mut core.accounts[account as usize].spared] {
        *spared = Spared { day, fees: count(spared.on(day)) };
    }
}

fn day(machine: &VenueMachine) -> u64 {
    machine.core.time_ms() / DAY_MS
}
