//! Whether an order may be matched: all that the ledger will judge its fills by, from certified facts.

use matching::Phase;
use primitives::venue::{OrderLife, VenueOrder, VenueSide};

use super::backlog::Added;
use super::cover::penalty_of;
use super::holders::check_holders;
use super::sparing::{may_spare, pays_its_way};
use super::{Market, VenueMachine, book_side};
use crate::mistake::VenueMistake;
use crate::refusal::OrderRefusal;

fn unless(why: OrderRefusal, holds: bool) -> Result<(), OrderRefusal> {
    if holds { Ok(()) } else { Err(why) }
}

/// Units for a message.
fn shown(units: u128) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}

/// Checks an order of a key that takes the place of an open one, if it does. A fill that passes now applies on the
/// ledger, if it is settled within D heights of the present certified one.
pub(super) fn check(
    machine: &VenueMachine,
    at: u32,
    order: &VenueOrder,
    stead: Option<u32>,
) -> Result<(), OrderRefusal> {
    machine.core.paused.map_or(Ok(()), |why| Err(OrderRefusal::Paused(why)))?;
    let market = machine.markets.get(&order.market).ok_or(OrderRefusal::MarketNotOpen)?;
    check_key(machine, at, order)?;
    check_holders(machine, machine.core.owner_of(at).address, &market.terms)?;
    check_life(machine, order)?;
    check_price(machine, at, order, market)?;
    unless(OrderRefusal::Lots(market.terms.lots_max), order.lots <= market.terms.lots_max)?;
    unless(OrderRefusal::TooFewLots(market.settings.lots_min), order.lots >= market.settings.lots_min)?;
    unless(OrderRefusal::TooSmall(market.settings.quote_min), pays_its_way(order, market) || may_spare(machine, at))?;
    check_fees(machine, order, market)?;
    check_room(machine, at, stead)?;
    let executed = stead.map_or(0, |old| machine.executed_of(old));
    check_cover(machine, at, order, order.lots - executed, stead)?;
    check_backlog(machine, order, order.lots - executed, market)
}

/// F2: the key, its floor and the kill switch.
fn check_key(machine: &VenueMachine, at: u32, order: &VenueOrder) -> Result<(), OrderRefusal> {
    let key = machine.core.key(at);
    unless(OrderRefusal::KeyRevoked, !key.is_revoked || machine.has(VenueMistake::RevokedTrades))?;
    unless(OrderRefusal::Killed, !machine.core.owner_of(at).is_killed)?;
    let floor = if machine.has(VenueMistake::RaisesLater) { key.floor } else { key.raised };
    unless(OrderRefusal::BelowFloor(floor), order.number >= floor)
}

/// F3, as a block will see it that comes within D heights.
fn check_life(machine: &VenueMachine, order: &VenueOrder) -> Result<(), OrderRefusal> {
    let (height, time) = (machine.core.height(), machine.core.time_ms());
    let last = height.saturating_add(machine.core.settings.life_max());
    unless(OrderRefusal::Expired(height), order.expiry >= height)?;
    unless(OrderRefusal::UntilPassed(time), order.until_ms.is_none_or(|until| until >= time))?;
    unless(OrderRefusal::ExpiresTooLate(last), order.expiry <= last)
}

/// F4: every price at which the order could trade is inside of its key's band.
fn check_price(machine: &VenueMachine, at: u32, order: &VenueOrder, market: &Market) -> Result<(), OrderRefusal> {
    let mandate = machine.core.key(at).mandate.market(order.market).ok_or(OrderRefusal::Mandate)?;
    let (low, high) = (mandate.tick_min, mandate.tick_max);
    unless(OrderRefusal::Band(order.tick.clamp(low, high)), (low..=high).contains(&order.tick))?;
    if market.book.phase() == Phase::Call {
        // A post-only order that arrives anew could be the taker of an auction's trade.
        unless(OrderRefusal::NotInCall, order.life == OrderLife::Rests)?;
        return check_band_in_call(machine, at, order);
    }
    // It trades at the best price of the other side first, which may be better than its limit permits.
    let side = book_side(order.side);
    let best = market.book.best(side.other()).map(|(tick, _)| tick).filter(|best| side.crosses(order.tick, *best));
    let is_inside = best.is_none_or(|best| (low..=high).contains(&best));
    let nearest = match (order.side, best) {
        (VenueSide::Buy, Some(best)) => best.saturating_sub(1),
        (_, best) => best.unwrap_or(order.tick).saturating_add(1),
    };
    unless(OrderRefusal::Band(nearest), is_inside || machine.has(VenueMistake::BandAtLimitOnly))
}

/// An auction's price is within the collar, and no worse than the order's limit.
pub(super) fn check_band_in_call(machine: &VenueMachine, at: u32, order: &VenueOrder) -> Result<(), OrderRefusal> {
    let market = machine.markets.get(&order.market).ok_or(OrderRefusal::MarketNotOpen)?;
    let mandate = machine.core.key(at).mandate.market(order.market).ok_or(OrderRefusal::Mandate)?;
    let (needed, reaches) = match order.side {
        VenueSide::Buy => (market.collar.0, mandate.tick_min <= market.collar.0),
        VenueSide::Sell => (market.collar.1, mandate.tick_max >= market.collar.1),
    };
    unless(OrderRefusal::BandInCall(needed), reaches)
}

/// F5: fees of any sum of fills stay below every cap, since each fee is rounded down.
fn check_fees(machine: &VenueMachine, order: &VenueOrder, market: &Market) -> Result<(), OrderRefusal> {
    let fee = market.settings.fee_ppm();
    let cap = machine.core.standing.map_or(0, |standing| standing.fee_cap_ppm).min(market.terms.fee_cap_ppm);
    unless(OrderRefusal::MarketFeeCap, fee <= cap)?;
    unless(OrderRefusal::FeeCap(fee), fee <= order.fee_cap_ppm)
}

/// Room for another entry, of the key and of the venue.
fn check_room(machine: &VenueMachine, at: u32, stead: Option<u32>) -> Result<(), OrderRefusal> {
    let most = machine.core.settings.limits.entries_of_key;
    // An order whose place is taken is no entry any more, unless it was filled.
    let freed = stead.is_some_and(|old| machine.core.order(old).fills().executed == 0);
    let entries = machine.core.key(at).entries - u32::from(freed);
    unless(OrderRefusal::TooManyEntries(most), entries < most)?;
    let entries = machine.core.standing.map_or(u64::MAX, |standing| standing.entries);
    let all = entries.saturating_add(machine.core.prospective);
    unless(OrderRefusal::VenueFull, all < machine.core.settings.terms.entries_max)
}

/// F6 and F7: deposit and drawdown cover all open orders and unsettled fills beside it. Nothing that fills will
/// bring pays for anything before it is settled.
fn check_cover(
    machine: &VenueMachine,
    at: u32,
    order: &VenueOrder,
    lots: u32,
    stead: Option<u32>,
) -> Result<(), OrderRefusal> {
    let (asset, needed) = machine.reserve(order, lots).ok_or(OrderRefusal::Size)?;
    let freed = stead.map_or(0, |old| machine.core.order(old).sums().reserved);
    let available = machine.available(machine.core.key(at).account, asset).saturating_add_unsigned(freed);
    let (available, is_covered) = against(available, needed);
    unless(OrderRefusal::Funds { asset, available, needed: shown(needed) }, is_covered)?;
    let available = machine.may_lose(at, asset).saturating_add_unsigned(freed);
    let (available, is_covered) = against(available, needed);
    unless(OrderRefusal::Drawdown { asset, available, needed: shown(needed) }, is_covered)
}

/// Bond and balance cover twice what is unsettled, with all that the order would trade, and so many bytes settle in
/// time.
fn check_backlog(machine: &VenueMachine, order: &VenueOrder, lots: u32, market: &Market) -> Result<(), OrderRefusal> {
    let pause = machine.pause_for(added_by(machine, order, lots, market));
    pause.map_or(Ok(()), |why| Err(OrderRefusal::Paused(why)))
}

/// What an order adds to what is unsettled: at once, or in the auction, which a market could never leave if it
/// were too large.
fn added_by(machine: &VenueMachine, order: &VenueOrder, lots: u32, market: &Market) -> Added {
    if market.book.phase() == Phase::Call {
        return machine.auction(market, Some((book_side(order.side), order.tick, lots)));
    }
    let (traded, makers) = reach(order, lots, market);
    machine.added(penalty_of(market.terms.penalty, traded), makers, [makers, u64::from(makers > 0)])
}

/// How many lots an order would trade at once, and with how many makers at most.
fn reach(order: &VenueOrder, lots: u32, market: &Market) -> (u64, u64) {
    if market.book.phase() != Phase::Continuous {
        return (0, 0);
    }
    let side = book_side(order.side);
    let (mut left, mut makers) = (u64::from(lots), 0);
    for (tick, of_level, orders) in market.book.depth(side.other()) {
        if left == 0 || !side.crosses(order.tick, tick) {
            break;
        }
        makers += u64::from(orders).min(left);
        left = left.saturating_sub(of_level);
    }
    (u64::from(lots) - left, makers)
}

/// What is available, for a message, and whether it covers what is needed.
fn against(available: i128, needed: u128) -> (u64, bool) {
    let available = u128::try_from(available).unwrap_or(0);
    (shown(available), needed <= available)
}
