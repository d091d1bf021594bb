//! What executed of late in each market, for everybody who asks: the newest trades, and the minutes of 24 hours.
//!
//! # The protocol
//!
//! - Upon *a root that begins*: the newest fills of its journal are read, each with the clock of its step.
//! - Upon *a step*: the reports of the takers are its trades. A trade whose index is known is left out, since a root
//!   that is opened again tells its last effects again.
//! - Upon *a question*: a page of trades, or the sums of the last 24 hours, of which minutes count as a whole.
//!
//! # Properties
//!
//! - *Bounded*: a market has at most [`TRADES`] trades and as many minutes as a day, whoever trades how often.
//! - *The same after a restart*, as far as the newest [`READ`] fills go back. [`TradedDay::complete`] says whether that
//!   is the whole day.
//! - A trade is an execution: it is told before it is settled, and stays if it becomes bust.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use primitives::venue::{MarketId, VenueSide};
use store::RealDisk;
use venue::{FillReader, ReportKind, VenueEffect, VenueRootError};

/// Trades that are kept of a market.
pub const TRADES: usize = 4_096;
/// Fills of the journal that are read when a root begins.
const READ: u64 = 65_536;
/// Fills that are read at once.
const PAGE: usize = 4_096;
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// An execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenTrade {
    /// The fill's index in the tree of the incarnation.
    pub index: u64,
    /// The venue's clock at its step.
    pub time_ms: u64,
    /// The price.
    pub tick: u32,
    /// Lots.
    pub lots: u32,
    /// The side that took.
    pub taker: VenueSide,
}

/// What a market traded in a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TradedDay {
    /// The first minute that traded.
    pub since_ms: u64,
    /// Whether all of the 24 hours are known here.
    pub complete: bool,
    /// Ticks of the first trade, the dearest, the cheapest and the last one.
    pub open: u32,
    pub high: u32,
    pub low: u32,
    pub close: u32,
    /// Lots, and lots times ticks.
    pub lots: u128,
    pub value: u128,
    /// Trades.
    pub trades: u64,
}

impl TradedDay {
    fn of(trade: &SeenTrade) -> TradedDay {
        let SeenTrade { tick, lots, time_ms, .. } = *trade;
        let since_ms = time_ms - time_ms % MINUTE_MS;
        let (open, high, low, close) = (tick, tick, tick, tick);
        let (lots, value) = (lots.into(), u128::from(lots) * u128::from(tick));
        TradedDay { since_ms, complete: true, open, high, low, close, lots, value, trades: 1 }
    }

    /// This and what came after it.
    fn and(self, later: TradedDay) -> TradedDay {
        TradedDay {
            high: self.high.max(later.high),
            low: self.low.min(later.low),
            close: later.close,
            lots: self.lots + later.lots,
            value: self.value + later.value,
            trades: self.trades + later.trades,
            ..self
        }
    }

    /// From the first to the last trade, in hundredths of a per cent, rounded toward zero.
    pub fn change(&self) -> i64 {
        (i64::from(self.close) - i64::from(self.open)) * 10_000 / i64::from(self.open.max(1))
    }
}

#[derive(Default)]
struct MarketTape {
    trades: VecDeque<SeenTrade>,
    minutes: VecDeque<TradedDay>,
}

impl MarketTape {
    fn add(&mut self, trade: SeenTrade) {
        if self.trades.len() == TRADES {
            self.trades.pop_front();
        }
        self.trades.push_back(trade);
        let new = TradedDay::of(&trade);
        // A clock that is set back makes no minute of the past.
        match self.minutes.back_mut().filter(|last| last.since_ms >= new.since_ms) {
            Some(last) => *last = last.and(new),
            None => self.minutes.push_back(new),
        }
        while self.minutes.front().is_some_and(|first| first.since_ms + DAY_MS < new.since_ms) {
            self.minutes.pop_front();
        }
    }
}

#[derive(Default)]
struct Kept {
    markets: BTreeMap<MarketId, MarketTape>,
    /// Trades of this time and later are here.
    known_from_ms: u64,
    /// The index of the next fill.
    next: u64,
}

impl Kept {
    fn add(&mut self, market: MarketId, trade: SeenTrade) {
        if trade.index >= self.next {
            self.next = trade.index + 1;
            self.markets.entry(market).or_default().add(trade);
        }
    }
}

/// A page of trades, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TradesPage {
    /// The trades.
    pub trades: Vec<SeenTrade>,
    /// Whether older ones are kept.
    pub more: bool,
}

/// The tape of all markets.
#[derive(Default)]
pub(crate) struct Tape(Mutex<Kept>);

impl Tape {
    fn kept<T>(&self, with: impl FnOnce(&mut Kept) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A root begins, which has made `count` fills in records up to `last`.
    pub fn begin(&self, reader: &FillReader<RealDisk>, count: u64, last: u64, now_ms: u64) {
        let mut kept = read(reader, count, last).unwrap_or_else(|error| {
            tracing::warn!(%error, "trades of before cannot be read: the tape begins now");
            Kept::default()
        });
        if kept.next < count {
            (kept.known_from_ms, kept.next) = (now_ms, count);
        }
        self.kept(|tape| *tape = kept);
    }

    /// What a step did at a time of the venue's clock.
    pub fn tell(&self, effects: &[VenueEffect], time_ms: u64) {
        let mut trades = effects.iter().filter_map(|effect| trade_of(effect, time_ms)).peekable();
        if trades.peek().is_some() {
            self.kept(|kept| trades.for_each(|(market, trade)| kept.add(market, trade)));
        }
    }

    /// At most `most` trades of a market below an index, none of before a time.
    pub fn page(&self, market: MarketId, below: u64, since_ms: u64, most: usize) -> TradesPage {
        self.kept(|kept| {
            let Some(tape) = kept.markets.get(&market) else { return TradesPage::default() };
            let asked = tape.trades.iter().rev().skip_while(|trade| trade.index >= below);
            let mut asked = asked.take_while(|trade| trade.time_ms >= since_ms);
            let trades = asked.by_ref().take(most).copied().collect();
            TradesPage { trades, more: asked.next().is_some() }
        })
    }

    /// The price of the last trade of a market, and its last 24 hours; nothing of a day without a trade.
    pub fn day(&self, market: MarketId, now_ms: u64) -> (Option<u32>, Option<TradedDay>) {
        self.kept(|kept| {
            let Some(tape) = kept.markets.get(&market) else { return (None, None) };
            let begins = now_ms.saturating_sub(DAY_MS);
            let minutes = tape.minutes.iter().filter(|minute| minute.since_ms > begins).copied();
            let complete = kept.known_from_ms <= begins;
            (
                tape.trades.back().map(|last| last.tick),
                minutes.reduce(TradedDay::and).map(|day| TradedDay { complete, ..day }),
            )
        })
    }
}

/// The trade that a report to its taker tells.
fn trade_of(effect: &VenueEffect, time_ms: u64) -> Option<(MarketId, SeenTrade)> {
    let VenueEffect::Report(report) = effect else { return None };
    let ReportKind::Executed(told, _) = &report.what else { return None };
    let trade = SeenTrade { index: told.index, time_ms, tick: told.tick, lots: told.lots, taker: told.side };
    told.is_taker.then_some((told.market, trade))
}

/// The newest fills of a journal whose steps have a clock.
fn read(reader: &FillReader<RealDisk>, count: u64, last: u64) -> Result<Kept, VenueRootError> {
    let mut kept = Kept::default();
    let mut from = first_kept(reader, count, last)?;
    let is_all = from == 0;
    while from < count {
        for step in reader.reported(count, last, from, PAGE)? {
            from += step.fills().len() as u64;
            // Reports that are signed one by one have no clock beside them.
            let Some(time_ms) = step.clock_ms() else {
                kept = Kept::default();
                continue;
            };
            for fill in step.fills() {
                let (tick, lots, taker) = (fill.terms.tick, fill.terms.lots, fill.terms.taker);
                let trade = SeenTrade { index: fill.index, time_ms, tick, lots, taker };
                if kept.next == 0 && (!is_all || fill.index > 0) {
                    kept.known_from_ms = time_ms;
                }
                kept.add(fill.market, trade);
            }
        }
    }
    Ok(kept)
}

/// The first of the newest fills that the journal still has.
fn first_kept(reader: &FillReader<RealDisk>, count: u64, last: u64) -> Result<u64, VenueRootError> {
    let mut from = count.saturating_sub(READ);
    while from < count {
        match reader.fills(count, last, from, 1) {
            Err(VenueRootError::Forgotten(_)) => from += (count - from).div_ceil(2),
            Err(error) => return Err(error),
            Ok(_) => return Ok(from),
        }
    }
    Ok(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(index: u64, time_ms: u64, tick: u32, lots: u32) -> SeenTrade {
        SeenTrade { index, time_ms, tick, lots, taker: VenueSide::Buy }
    }

    fn tape_of(trades: &[(MarketId, SeenTrade)]) -> Tape {
        let tape = Tape::default();
        tape.kept(|kept| trades.iter().for_each(|(market, trade)| kept.add(*market, *trade)));
        tape
    }

    #[test]
    fn pages_of_trades_join_without_hole_or_repetition_from_the_newest_on() {
        let all: Vec<_> = (0..2_500).map(|at| ((at % 3) as MarketId, trade(at, 1_000 * at, 10, 1))).collect();
        let tape = tape_of(&all);
        let (mut below, mut told) = (u64::MAX, Vec::new());
        loop {
            let page = tape.page(1, below, 0, 100);
            told.extend(page.trades.iter().map(|trade| trade.index));
            let Some(last) = page.trades.last().filter(|_| page.more) else { break };
            below = last.index;
        }
        let expected: Vec<u64> = (0..2_500).rev().filter(|at| at % 3 == 1).collect();
        assert_eq!(told, expected);
        let since: Vec<u64> = tape.page(1, u64::MAX, 2_490_000, 100).trades.iter().map(|one| one.index).collect();
        assert_eq!(since, [2_497, 2_494, 2_491]);
        assert_eq!(tape.page(9, u64::MAX, 0, 100), TradesPage::default());
    }

    #[test]
    fn whoever_trades_how_often_a_market_has_so_many_trades_and_the_minutes_of_a_day() {
        let often = |at: u64| (0, trade(at, 30_000 * at, 10, 1));
        let tape = tape_of(&(0..20_000).map(often).collect::<Vec<_>>());
        tape.kept(|kept| {
            let of = &kept.markets[&0];
            assert_eq!(of.trades.len(), TRADES);
            assert!(of.minutes.len() <= 1_441, "{}", of.minutes.len());
        });
    }

    #[test]
    fn a_trade_that_is_told_again_counts_once() {
        let one = (0, trade(7, 60_000, 10, 5));
        let tape = tape_of(&[one, one, (0, trade(6, 60_000, 99, 5))]);
        let (last, day) = tape.day(0, 61_000);
        assert_eq!((last, day.map(|day| (day.trades, day.lots))), (Some(10), Some((1, 5))));
    }

    /// The figures are those of a plain sum over all trades whose minute lies in the day.
    #[test]
    fn a_day_is_the_sum_of_the_trades_of_its_minutes() {
        let mut seed = 1u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let (mut now, mut all) = (5 * DAY_MS, Vec::new());
        for index in 0..3_000 {
            now += next(100_000);
            all.push(trade(index, now, 1 + next(50) as u32, 1 + next(9) as u32));
            if index % 97 > 0 {
                continue;
            }
            let tape = tape_of(&all.iter().map(|trade| (3, *trade)).collect::<Vec<_>>());
            let at = now + next(3 * MINUTE_MS);
            let minute = |trade: &&SeenTrade| trade.time_ms / MINUTE_MS * MINUTE_MS + DAY_MS > at;
            let day: Vec<&SeenTrade> = all.iter().filter(minute).collect();
            let ticks = || day.iter().map(|trade| trade.tick);
            let (_, told) = tape.day(3, at);
            let told = told.expect("it traded");
            let expected = (day[0].tick, ticks().max(), ticks().min(), day.last().map(|trade| trade.tick));
            assert_eq!((told.open, Some(told.high), Some(told.low), Some(told.close)), expected);
            let value: u64 = day.iter().map(|trade| u64::from(trade.lots) * u64::from(trade.tick)).sum();
            assert_eq!((told.trades, told.value), (day.len() as u64, value.into()));
        }
        assert_eq!(tape_of(&[(3, all[0])]).day(3, now + 2 * DAY_MS), (Some(all[0].tick), None));
    }

    #[test]
    fn a_change_is_in_hundredths_of_a_per_cent() {
        let day = |open, close| TradedDay { open, close, ..TradedDay::of(&trade(0, 0, 1, 1)) };
        assert_eq!(day(100, 110).change(), 1_000);
        assert_eq!(day(3, 2).change(), -3_333);
        assert_eq!(day(u32::MAX, 1).change(), -9_999);
        assert_eq!(day(1, u32::MAX).change(), (i64::from(u32::MAX) - 1) * 10_000);
    }
}
