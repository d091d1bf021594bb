//! Order flow through one book for each security.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use matching::{Book, BookEvent, BookLimits, Command, NewOrder, Replacement, SelfTrade, Side, TimeInForce};
use serde_json::{Value, json};

use super::events::FlowEvent;

/// The most books without a choice of symbols: each takes its memory at once.
const MOST_BOOKS: usize = 64;
/// Who places the orders of the file, and who trades with them.
const MAKER: u32 = 0;
const TAKER: u32 = 1;

/// What a replay takes in.
#[derive(Clone, Debug)]
pub(crate) struct ReplayLimits {
    /// Open orders of each market.
    pub(crate) orders: u32,
    /// Only these securities; all, if there are none.
    pub(crate) symbols: Vec<String>,
}

/// An open order of the file.
#[derive(Clone, Copy, Debug)]
struct FlowOrder {
    market: u16,
    /// Its reference in the book.
    reference: u32,
    side: Side,
    tick: u32,
    /// Its size with what was executed, and what is left.
    total: u32,
    left: u32,
}

/// Counts of one market.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    commands: u64,
    orders: u64,
    /// Trades in which the engine met the order that the file names, and others.
    in_priority: u64,
    out_of_priority: u64,
    /// Orders that would have traded on arrival, which displayed orders do not.
    crossing: u64,
    /// Orders that the book refused for another reason.
    refused: u64,
    lots: u64,
}

/// The market of one security.
struct FlowMarket {
    symbol: String,
    book: Book,
    next: u32,
    counts: Counts,
    /// FNV-1a of the maker, price and size of every trade.
    trades: u64,
}

/// The replay of a file.
pub(crate) struct FlowReplay {
    limits: ReplayLimits,
    markets: HashMap<u16, FlowMarket>,
    open: HashMap<u64, FlowOrder>,
    /// Events about orders that are not open: those of other securities, or from before the file.
    unknown: u64,
    /// The days before the present one: their markets, their commands, and the digest of all.
    days: Vec<Value>,
    commands: u64,
    digest: u64,
}

impl FlowReplay {
    /// An empty replay.
    ///
    /// # Errors
    /// If no book can be so large.
    pub(crate) fn new(limits: ReplayLimits) -> Result<FlowReplay> {
        FlowMarket::new(&limits, "", 1)?;
        let (markets, open, days) = (HashMap::new(), HashMap::new(), Vec::new());
        Ok(FlowReplay { limits, markets, open, unknown: 0, days, commands: 0, digest: FNV })
    }

    /// Applies one event.
    ///
    /// # Errors
    /// If there are too many securities.
    pub(crate) fn apply(&mut self, event: &FlowEvent) -> Result<()> {
        match event {
            FlowEvent::Add { order, side, lots, tick, market, symbol } => {
                let chosen = &self.limits.symbols;
                if chosen.is_empty() || chosen.contains(symbol) {
                    self.open_market(*market, symbol, *tick)?;
                    self.add(*order, *market, *side, *lots, *tick);
                }
            }
            FlowEvent::Execute { order, lots } => self.execute(*order, *lots),
            FlowEvent::Reduce { order, lots } => self.reduce(*order, *lots),
            FlowEvent::Delete { order } => self.reduce(*order, u32::MAX),
            FlowEvent::Replace { before, order, lots, tick } => {
                if let Some(FlowOrder { market, side, .. }) = self.open.get(before).copied() {
                    self.reduce(*before, u32::MAX);
                    self.add(*order, market, side, *lots, *tick);
                } else {
                    self.unknown += 1;
                }
            }
            FlowEvent::Day => self.end_day(),
            FlowEvent::Other => {}
        }
        Ok(())
    }

    /// Ends a day that had orders: securities have other numbers on the next one, and no order is open.
    fn end_day(&mut self) {
        if !self.markets.is_empty() {
            let day = self.day();
            (self.digest, self.commands) = (self.digest_with_day(), self.commands + self.day_commands());
            self.days.push(day);
            self.markets.clear();
            self.open.clear();
        }
    }

    fn sorted(&self) -> Vec<(&u16, &FlowMarket)> {
        let mut markets: Vec<_> = self.markets.iter().collect();
        markets.sort_unstable_by_key(|(number, _)| **number);
        markets
    }

    fn day(&self) -> Value {
        self.sorted().into_iter().map(|(_, market)| market.report()).collect()
    }

    fn day_commands(&self) -> u64 {
        self.markets.values().map(|market| market.counts.commands).sum()
    }

    /// The digest of all days with the present one.
    fn digest_with_day(&self) -> u64 {
        self.sorted().into_iter().fold(self.digest, |hash, (number, market)| {
            let book = market.book.digest();
            [u64::from(*number), market.trades, (book >> 64) as u64, book as u64].into_iter().fold(hash, fnv)
        })
    }

    fn open_market(&mut self, market: u16, symbol: &str, tick: u32) -> Result<()> {
        if !self.markets.contains_key(&market) {
            let few = self.markets.len() < MOST_BOOKS || !self.limits.symbols.is_empty();
            ensure!(few, "more than {MOST_BOOKS} securities: choose some with --symbol");
            self.markets.insert(market, FlowMarket::new(&self.limits, symbol, tick)?);
        }
        Ok(())
    }

    fn add(&mut self, order: u64, market: u16, side: Side, lots: u32, tick: u32) {
        let Some(of) = self.markets.get_mut(&market) else { return };
        if let Some(reference) = of.rest(side, lots, tick) {
            self.open.insert(order, FlowOrder { market, reference, side, tick, total: lots, left: lots });
        }
    }

    fn execute(&mut self, order: u64, lots: u32) {
        let Some(open) = self.open.get_mut(&order) else {
            self.unknown += 1;
            return;
        };
        let Some(market) = self.markets.get_mut(&open.market) else { return };
        if !market.trade(open, lots) {
            return self.reduce(order, lots);
        }
        open.left -= lots;
        if open.left == 0 {
            self.open.remove(&order);
        }
    }

    /// Takes `lots` from an order, or all that is left.
    fn reduce(&mut self, order: u64, lots: u32) {
        let Some(open) = self.open.get_mut(&order) else {
            self.unknown += 1;
            return;
        };
        let Some(market) = self.markets.get_mut(&open.market) else { return };
        let lots = lots.min(open.left);
        (open.total, open.left) = (open.total - lots, open.left - lots);
        let FlowOrder { reference, tick, total: lots, left, .. } = *open;
        if left == 0 {
            self.open.remove(&order);
            market.apply(&Command::Cancel { owner: MAKER, reference });
        } else {
            let of = Replacement { owner: MAKER, reference, new_reference: reference, tick, lots };
            market.apply(&Command::Replace(of));
        }
    }

    /// What happened, and a digest of it that depends on the file alone. Days before the last one are told apart.
    pub(crate) fn report(&self) -> Value {
        let mut report = json!({
            "digest": format!("{:016x}", self.digest_with_day()),
            "unknown": self.unknown,
            "commands": self.commands + self.day_commands(),
            "markets": self.day(),
        });
        if !self.days.is_empty() {
            report["days_before"] = self.days.clone().into();
        }
        report
    }
}

impl FlowMarket {
    /// A market whose window of ticks is around `tick`.
    fn new(limits: &ReplayLimits, symbol: &str, tick: u32) -> Result<FlowMarket> {
        let window_ticks = 1 << 16;
        let limits = BookLimits {
            orders: limits.orders,
            owners: 2,
            orders_of_owner: limits.orders,
            window_base: tick.saturating_sub(window_ticks / 2).max(1),
            window_ticks,
            ..BookLimits::default()
        };
        // The seed hides where references collide; here nobody chooses them.
        let book = Book::new(limits, 0)?;
        Ok(FlowMarket { symbol: symbol.to_string(), book, next: 0, counts: Counts::default(), trades: FNV })
    }

    fn apply(&mut self, command: &Command) -> Vec<BookEvent> {
        let mut events = Vec::new();
        self.counts.commands += 1;
        self.book.apply(command, &mut events);
        events
    }

    fn order(&mut self, owner: u32, side: Side, lots: u32, tick: u32) -> NewOrder {
        self.next = self.next.wrapping_add(1);
        let is_maker = owner == MAKER;
        NewOrder {
            owner,
            reference: self.next,
            side,
            tick,
            lots,
            time_in_force: if is_maker { TimeInForce::GoodTillCancelled } else { TimeInForce::ImmediateOrCancel },
            post_only: is_maker,
            self_trade: SelfTrade::ExpireTaker,
        }
    }

    /// Places a displayed order; its reference, if the book takes it.
    fn rest(&mut self, side: Side, lots: u32, tick: u32) -> Option<u32> {
        let new = self.order(MAKER, side, lots, tick);
        self.counts.orders += 1;
        let crosses = self.book.best(side.other()).is_some_and(|(best, _)| side.crosses(tick, best));
        match self.apply(&Command::New(new)).first() {
            Some(BookEvent::Accepted { .. }) => return Some(new.reference),
            _ if crosses => self.counts.crossing += 1,
            _ => self.counts.refused += 1,
        }
        None
    }

    /// Trades with an order of the file, if that is first by price and time; the engine decides, and is checked.
    fn trade(&mut self, open: &FlowOrder, lots: u32) -> bool {
        let is_best = self.book.best(open.side).is_some_and(|(best, _)| best == open.tick);
        let is_first = self.book.position(MAKER, open.reference).is_some_and(|position| position.orders_ahead == 0);
        if !is_best || !is_first || lots == 0 || lots > open.left {
            self.counts.out_of_priority += 1;
            return false;
        }
        let taker = self.order(TAKER, open.side.other(), lots, open.tick);
        let events = self.apply(&Command::New(taker));
        let met = |event: &BookEvent| match event {
            BookEvent::Executed { maker, tick, lots, .. } => Some((maker.reference, *tick, *lots)),
            _ => None,
        };
        let trades: Vec<_> = events.iter().filter_map(met).collect();
        assert_eq!(trades, [(open.reference, open.tick, lots)], "the first order at the best price is the maker");
        self.trades = [open.reference, open.tick, lots].into_iter().map(u64::from).fold(self.trades, fnv);
        (self.counts.in_priority, self.counts.lots) = (self.counts.in_priority + 1, self.counts.lots + u64::from(lots));
        true
    }

    fn report(&self) -> Value {
        let Counts { commands, orders, in_priority, out_of_priority, crossing, refused, lots } = self.counts;
        let best = |side: Side| self.book.best(side).map(|(tick, lots)| json!({ "tick": tick, "lots": lots }));
        json!({
            "symbol": self.symbol, "commands": commands, "orders": orders, "trades_in_priority": in_priority,
            "trades_out_of_priority": out_of_priority, "crossing": crossing, "refused": refused,
            "lots_traded": lots, "resting": self.book.len(), "bid": best(Side::Buy), "ask": best(Side::Sell),
        })
    }
}

/// The beginning of FNV-1a.
const FNV: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, value: u64) -> u64 {
    let next = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    value.to_be_bytes().into_iter().fold(hash, next)
}
