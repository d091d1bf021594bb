//! Market data: the engine alone, and the encoding of what it tells as ITCH 5.0 messages.

use std::time::Instant;

use ::matching::{Book, BookLimits, Command, NewOrder, Replacement, SelfTrade, TimeInForce};
use ::venue::{MarketEvent, VenueEffect};
use primitives::venue::VenueSide;
use protocols::itch::{Add, Cancelled, Delete, Executed, ItchBody, ItchHeader, ItchMessage, Replaced};

use crate::flow::{FlowAction, FlowEvent};

const SYMBOL: [u8; 8] = *b"EURUSD  ";

/// Nanoseconds of the engine for a command of a flow: a book by itself, without risk, journal or reports.
pub(crate) fn engine(flow: &[FlowEvent]) -> f64 {
    let (mut book, commands) = (book(flow), commands(flow));
    let begun = Instant::now();
    commands.iter().for_each(|command| book.apply(command, &mut ()));
    begun.elapsed().as_nanos() as f64 / commands.len() as f64
}

/// A book with room for the orders of a flow.
pub(crate) fn book(flow: &[FlowEvent]) -> Book {
    let owners = flow.iter().map(|event| event.owner + 1).max().unwrap_or(1);
    let orders = 1 << 16;
    let limits = BookLimits { orders, owners, orders_of_owner: orders, ..BookLimits::default() };
    Book::new(limits, 7).expect("sound limits")
}

/// What a flow asks of a book.
pub(crate) fn commands(flow: &[FlowEvent]) -> Vec<Command> {
    let reference = |at: usize| at as u32 + 1;
    let new = |owner, at, side, tick, lots, time_in_force| {
        let self_trade = SelfTrade::ExpireMaker;
        let reference = reference(at);
        Command::New(NewOrder { owner, reference, side, tick, lots, time_in_force, post_only: false, self_trade })
    };
    let one = |(at, event): (usize, &FlowEvent)| match event.action {
        FlowAction::Rest(side, tick, lots) => new(event.owner, at, side, tick, lots, TimeInForce::GoodTillCancelled),
        FlowAction::Take(side, tick, lots) => new(event.owner, at, side, tick, lots, TimeInForce::ImmediateOrCancel),
        FlowAction::Cancel(of) => Command::Cancel { owner: event.owner, reference: reference(of) },
        FlowAction::Replace(of, tick, lots) => {
            let (owner, reference, new_reference) = (event.owner, reference(of), reference(at));
            Command::Replace(Replacement { owner, reference, new_reference, tick, lots })
        }
    };
    flow.iter().enumerate().map(one).collect()
}

/// Nanoseconds for the encoding of an event, into one buffer that is written over.
pub(crate) fn encoded(effects: &[VenueEffect]) -> f64 {
    let events: Vec<(u64, MarketEvent)> = effects
        .iter()
        .filter_map(|effect| match effect {
            VenueEffect::Market(_, number, event) => Some((*number, *event)),
            _ => None,
        })
        .collect();
    let mut buffer = Vec::with_capacity(1 << 16);
    let begun = Instant::now();
    for (number, event) in &events {
        if buffer.len() > 1 << 15 {
            buffer.clear();
        }
        let Some(body) = body(event) else { continue };
        let header = ItchHeader { locate: 1, tracking: 0, nanoseconds: *number };
        ItchMessage { header, body }.encode(&mut buffer).expect("fields are within bounds");
    }
    std::hint::black_box(&buffer);
    begun.elapsed().as_nanos() as f64 / events.len().max(1) as f64
}

fn body(event: &MarketEvent) -> Option<ItchBody> {
    Some(match *event {
        MarketEvent::Added { id, side, tick, lots } => ItchBody::Add(Add {
            order: id,
            side: if side == VenueSide::Buy { b'B' } else { b'S' },
            shares: lots,
            stock: SYMBOL,
            price: tick,
        }),
        MarketEvent::Executed { id, lots, trade, .. } => {
            ItchBody::Executed(Executed { order: id, shares: lots, matched: trade })
        }
        MarketEvent::Reduced { id, lots } => ItchBody::Cancelled(Cancelled { order: id, shares: lots }),
        MarketEvent::Deleted { id } => ItchBody::Delete(Delete { order: id }),
        MarketEvent::Renamed { id, to, lots } => {
            ItchBody::Replaced(Replaced { before: id, order: to, shares: lots, price: 0 })
        }
        MarketEvent::Phase(_) | MarketEvent::Auction { .. } | MarketEvent::Collar { .. } => return None,
    })
}
