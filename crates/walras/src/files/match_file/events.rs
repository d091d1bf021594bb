//! What a feed says about displayed orders, whatever its format.

use anyhow::{Result, ensure};
use matching::{Side, TICK_MAX};
use protocols::itch::{ItchBody, ItchMessage};
use protocols::lobster::{LobsterEvent, LobsterLine};

/// One event. Orders are named by the feed's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FlowEvent {
    /// A displayed order.
    Add { order: u64, side: Side, lots: u32, tick: u32, market: u16, symbol: String },
    /// An order traded at its limit.
    Execute { order: u64, lots: u32 },
    /// A part of an order is gone, by a cancel or by a trade at another price.
    Reduce { order: u64, lots: u32 },
    /// An order ended.
    Delete { order: u64 },
    /// An order has another number, size and limit.
    Replace { before: u64, order: u64, lots: u32, tick: u32 },
    /// A day begins: no order of the one before is open.
    Day,
    /// Nothing about displayed orders.
    Other,
}

/// The event that begins the messages of a day.
const START_OF_MESSAGES: u8 = b'O';

/// What an ITCH message says.
pub(crate) fn of_itch(message: &ItchMessage) -> FlowEvent {
    let add = |order, side, lots, tick, stock: [u8; 8]| {
        let side = if side == b'B' { Side::Buy } else { Side::Sell };
        let symbol = String::from_utf8_lossy(&stock).trim_end().to_string();
        FlowEvent::Add { order, side, lots, tick, market: message.header.locate, symbol }
    };
    match message.body {
        ItchBody::Add(new) => add(new.order, new.side, new.shares, new.price, new.stock),
        ItchBody::AddAttributed(new) => add(new.order, new.side, new.shares, new.price, new.stock),
        ItchBody::Executed(trade) => FlowEvent::Execute { order: trade.order, lots: trade.shares },
        ItchBody::ExecutedAt(trade) => FlowEvent::Reduce { order: trade.order, lots: trade.shares },
        ItchBody::Cancelled(part) => FlowEvent::Reduce { order: part.order, lots: part.shares },
        ItchBody::Delete(end) => FlowEvent::Delete { order: end.order },
        ItchBody::SystemEvent(of) if of.event == START_OF_MESSAGES => FlowEvent::Day,
        ItchBody::Replaced(new) => {
            FlowEvent::Replace { before: new.before, order: new.order, lots: new.shares, tick: new.price }
        }
        _ => FlowEvent::Other,
    }
}

/// What a line of LOBSTER says.
///
/// # Errors
/// If the price of an order is none.
pub(crate) fn of_lobster(line: &LobsterLine) -> Result<FlowEvent> {
    let LobsterLine { order, size: lots, price, is_buy, .. } = *line;
    Ok(match line.event {
        LobsterEvent::Submission => {
            ensure!((1..=i64::from(TICK_MAX)).contains(&price), "price: {price} is not 1 to {TICK_MAX}");
            let side = if is_buy { Side::Buy } else { Side::Sell };
            FlowEvent::Add { order, side, lots, tick: price as u32, market: 0, symbol: String::new() }
        }
        LobsterEvent::Cancellation => FlowEvent::Reduce { order, lots },
        LobsterEvent::Deletion => FlowEvent::Delete { order },
        LobsterEvent::Execution => FlowEvent::Execute { order, lots },
        LobsterEvent::HiddenExecution | LobsterEvent::Cross | LobsterEvent::Halt => FlowEvent::Other,
    })
}
