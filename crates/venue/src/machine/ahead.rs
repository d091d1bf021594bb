//! What the commands of a step will need is read before they are taken, for many commands at once.
//!
//! A command follows positions: from its key to the account, to an order, to the book. Each of these reads waits for
//! memory, and the next one waits for it. Most of a command's time was that. Reads of different commands do not depend
//! on each other, so the processor waits for them together. Nothing that is read here decides anything.

use std::hint::black_box;

use primitives::PublicKey;
use primitives::venue::{MarketId, OrderNumber};

use super::VenueMachine;
use crate::input::{SessionNumber, TradeCommand, VenueInput};
use crate::state::Remembered;

/// Commands that are looked at together: what they need fits into the nearest memory.
pub(super) const LOOK_AHEAD: usize = 32;

/// What a command names: its session and key, and the order that it is about.
struct Named<'a> {
    session: SessionNumber,
    key: &'a PublicKey,
    number: OrderNumber,
}

fn named(input: &VenueInput) -> Option<Named<'_>> {
    let VenueInput::Trade(session, command) = input else { return None };
    let (key, number) = match command {
        TradeCommand::New(order) => (order.key(), order.order().number),
        TradeCommand::Replace(old, order) => (order.key(), *old),
        TradeCommand::Cancel { key, number, .. } | TradeCommand::Status(key, number) => (key, *number),
        TradeCommand::CancelAll { .. } => return None,
    };
    Some(Named { session: *session, key, number })
}

/// Reads what inputs will need, each kind of place for all of them.
pub(super) fn look_ahead(machine: &VenueMachine, inputs: &[VenueInput]) {
    let core = &machine.core;
    let mut keys = [None; LOOK_AHEAD];
    for (at, of) in keys.iter_mut().zip(inputs.iter().map(named)) {
        *at = of.and_then(|of| Some((*core.key_of.get(of.key)?, of.number, of.session)));
    }
    let keys = || keys.iter().flatten();
    for (at, ..) in keys() {
        let key = core.key(*at);
        black_box((key.account, key.entries, key.mandate.markets.len()));
    }
    for (at, ..) in keys() {
        let (key, account) = (core.key(*at), core.owner_of(*at));
        let (open, exposed) = (account.holdings.first(), key.exposures.first());
        let band = key.mandate.markets.first().map(|of| of.tick_max);
        black_box((open.map(|of| of.open), exposed.map(|of| of.open), band, account.owner));
    }
    let mut slots: [Option<(MarketId, u32, u32)>; LOOK_AHEAD] = [None; LOOK_AHEAD];
    for (slot, (at, number, session)) in slots.iter_mut().zip(keys()) {
        black_box(core.sessions.get(session).and_then(|of| of.keys.first()).map(|key| key.0[0]));
        if let Some(Remembered::Taken(of)) = core.key(*at).numbers.get(number) {
            let order = core.order(*of);
            *slot = core.owner_of(*at).owner.map(|owner| (order.terms.market, owner, *of));
        }
    }
    for (market, owner, slot) in slots.iter().flatten() {
        let order = core.order(*slot);
        let rests = machine.book(*market).is_some_and(|book| book.holds(*owner, *slot));
        black_box((order.open, order.sums().is_entry, rests));
    }
}
