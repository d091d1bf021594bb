//! The auction that ends a call.

use crate::treap::NONE;
use crate::{Book, BookEvent, Side, Sink};

/// The price of an auction: an interval of equally good ticks.
struct Best {
    volume: u64,
    surplus: u64,
    low: u32,
    high: u32,
    /// Whether buyers, or sellers, have a surplus at some tick of the interval.
    buyers: bool,
    sellers: bool,
}

impl Book {
    /// Trades all that one price lets trade. False if the call has to go on: the price is outside the collar.
    pub(crate) fn uncross(&mut self, reference: u32, sink: &mut impl Sink) -> bool {
        let Some(best) = self.best_interval() else {
            sink.event(BookEvent::Auction { tick: None, lots: 0 });
            return true;
        };
        let tick = match (best.buyers, best.sellers) {
            (true, false) => best.high,
            (false, true) => best.low,
            _ => reference.clamp(best.low, best.high),
        };
        if !self.is_within(tick) {
            sink.event(BookEvent::Auction { tick: None, lots: 0 });
            return false;
        }
        self.trade_at(tick, sink);
        sink.event(BookEvent::Auction { tick: Some(tick), lots: best.volume });
        true
    }

    /// Walks the ticks from the best sell to the best buy, in segments on which demand and supply are constant.
    fn best_interval(&self) -> Option<Best> {
        let [buys, sells] = &self.ladders;
        let (lowest, highest) = (sells.best()?.tick, buys.best()?.tick);
        let is_demanded = |tick: u32| buys.levels().take_while(move |level| level.tick >= tick);
        let mut demand: u64 = is_demanded(lowest).map(|level| level.lots).sum();
        let (mut supply, mut best, mut from) = (0, None::<Best>, lowest);
        while from <= highest {
            supply += sells.at(from).map_or(0, |level| level.lots);
            let sell_starts = sells.at_or_above(from + 1).map_or(u32::MAX, |level| level.tick);
            let buy_ends = buys.at_or_above(from).map_or(u32::MAX, |level| level.tick + 1);
            let next = sell_starts.min(buy_ends);
            improve(&mut best, demand, supply, (from, next - 1));
            if next == buy_ends {
                demand -= buys.at(next - 1).map_or(0, |level| level.lots);
            }
            from = next;
        }
        best
    }

    /// Serves both sides by price and time at one tick.
    fn trade_at(&mut self, tick: u32, sink: &mut impl Sink) {
        loop {
            let first = |side: Side| {
                self.ladders[side as usize].best().filter(|level| match side {
                    Side::Buy => level.tick >= tick,
                    Side::Sell => level.tick <= tick,
                })
            };
            let (Some(buy), Some(sell)) = (first(Side::Buy), first(Side::Sell)) else { return };
            let (buy, sell) = (buy.first, sell.first);
            debug_assert!(buy != NONE && sell != NONE, "a level has orders");
            let lots = self.orders.at(buy).lots.min(self.orders.at(sell).lots);
            let is_buy_first = self.orders.at(buy).arrival < self.orders.at(sell).arrival;
            let (maker, taker) = if is_buy_first { (buy, sell) } else { (sell, buy) };
            self.execute(maker, taker, tick, lots, sink);
            self.leave_queue(taker, lots);
        }
    }
}

fn improve(best: &mut Option<Best>, demand: u64, supply: u64, (low, high): (u32, u32)) {
    let (volume, surplus) = (demand.min(supply), demand.abs_diff(supply));
    let (buyers, sellers) = (demand > supply, supply > demand);
    match best {
        _ if volume == 0 => {}
        Some(known) if (known.volume, u64::MAX - known.surplus) > (volume, u64::MAX - surplus) => {}
        Some(known) if (known.volume, known.surplus) == (volume, surplus) => {
            // Demand falls and supply rises, so equally good ticks are neighbours.
            known.high = high;
            known.buyers |= buyers;
            known.sellers |= sellers;
        }
        _ => *best = Some(Best { volume, surplus, low, high, buyers, sellers }),
    }
}
