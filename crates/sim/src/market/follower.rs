//! A reader of market data: the book as the events tell it, in the order in which orders trade.

use primitives::venue::VenueSide;
use venue::{MarketEvent, MarketImage, RestingOrder};

use super::people::MARKET;

/// The book that follows from events; nothing before the first image.
#[derive(Clone, Debug, Default)]
pub(super) struct Follower {
    book: Option<MarketImage>,
}

impl Follower {
    /// Begins with an image, or begins again after a gap.
    pub fn begin(&mut self, image: Option<MarketImage>) {
        self.book = image;
    }

    /// Whether an event is missing before this one.
    pub fn misses(&self, number: u64) -> bool {
        self.book.as_ref().is_none_or(|book| number > book.included + 1)
    }

    /// Takes an event. A trade is for the order that is first on its side, or price and time had no priority.
    pub fn follow(&mut self, number: u64, event: &MarketEvent) -> Result<(), String> {
        let Some(book) = self.book.as_mut().filter(|book| number == book.included + 1) else { return Ok(()) };
        book.included = number;
        let orders = &mut book.orders;
        match *event {
            MarketEvent::Added { id, side, tick, lots } => {
                let at = orders.iter().position(|of| is_before(side, tick, of)).unwrap_or(orders.len());
                orders.insert(at, RestingOrder { id, side, tick, lots });
            }
            MarketEvent::Executed { id, lots, tick, trade } => {
                let at = place(orders, id)?;
                let first = orders.iter().position(|of| of.side == orders[at].side);
                if first != Some(at) {
                    return Err(format!("trade {trade} at tick {tick} passes over orders that come first"));
                }
                take(orders, at, lots)?;
            }
            MarketEvent::Reduced { id, lots } => take(orders, place(orders, id)?, lots)?,
            MarketEvent::Deleted { id } => {
                let at = place(orders, id)?;
                orders.remove(at);
            }
            MarketEvent::Renamed { id, to, lots } => {
                let at = place(orders, id)?;
                (orders[at].id, orders[at].lots) = (to, lots);
            }
            MarketEvent::Phase(phase) => book.phase = phase,
            MarketEvent::Auction { .. } | MarketEvent::Collar { .. } => {}
        }
        Ok(())
    }

    /// The order that is served last of the price of this one.
    pub fn last_of_price(&self, id: u64) -> u64 {
        let mut orders = self.book.iter().flat_map(|book| &book.orders);
        let of = orders.clone().find(|of| of.id == id).map(|of| (of.side, of.tick));
        orders.rfind(|one| Some((one.side, one.tick)) == of).map_or(id, |one| one.id)
    }

    /// Compares with the root's own image.
    pub fn check(&self, image: Option<&MarketImage>) -> Result<(), String> {
        match self.book.is_none() || self.book.as_ref() == image {
            true => Ok(()),
            false => Err(format!("who follows market {MARKET} has {:?}, and the engine {image:?}", self.book)),
        }
    }
}

/// Whether an order that arrives trades before one that rests: buys stand before sells, each by price and then time.
fn is_before(side: VenueSide, tick: u32, resting: &RestingOrder) -> bool {
    match (side, resting.side) {
        (VenueSide::Buy, VenueSide::Buy) => tick > resting.tick,
        (VenueSide::Sell, VenueSide::Sell) => tick < resting.tick,
        (VenueSide::Buy, VenueSide::Sell) => true,
        (VenueSide::Sell, VenueSide::Buy) => false,
    }
}

fn place(orders: &[RestingOrder], id: u64) -> Result<usize, String> {
    let at = orders.iter().position(|of| of.id == id);
    at.ok_or_else(|| format!("market data names order {id}, which does not rest"))
}

fn take(orders: &mut Vec<RestingOrder>, at: usize, lots: u32) -> Result<(), String> {
    let left = orders[at].lots.checked_sub(lots).ok_or("market data takes more lots than rest")?;
    orders[at].lots = left;
    if left == 0 {
        orders.remove(at);
    }
    Ok(())
}
