//! Candles: a market's prices and volume over minutes, hours and days.
//!
//! A batch has one price for a market. A candle contains the first, highest, lowest and last price at which the market
//! traded within its interval, by the proposers' clocks, and the traded amounts. Intervals without a trade have no
//! candle. Candles do not depend on the order in which batches are added. A node first shows those of the blocks that
//! it has just recovered, and adds older ones from the archive while it runs.
//!
//! *Invariant*: a candle is shown only if every batch of its interval so far is in it. An interval that began before
//! the oldest batch known here, or of which older candles made room for newer ones, is not shown.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ledger::Batch;
use primitives::{AssetId, Height};

use crate::sides::{Sides, traded, volumes};

/// Maximum number of candles of all markets and intervals.
const KEPT: usize = 1_500_000;
/// Maximum number of candles of one market and interval.
const KEPT_EACH: usize = 1_500;
/// Minimum number of candles kept of one market and interval.
const KEPT_EACH_AT_LEAST: usize = 60;

/// The length of a candle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interval {
    /// One minute.
    Minute,
    /// Five minutes.
    FiveMinutes,
    /// A quarter of an hour.
    Quarter,
    /// One hour.
    Hour,
    /// Four hours.
    FourHours,
    /// A day of UTC.
    Day,
}

impl Interval {
    const NAMES: [(&str, Interval); 6] = [
        ("1m", Interval::Minute),
        ("5m", Interval::FiveMinutes),
        ("15m", Interval::Quarter),
        ("1h", Interval::Hour),
        ("4h", Interval::FourHours),
        ("1d", Interval::Day),
    ];

    /// The name in requests.
    pub fn name(self) -> &'static str {
        Interval::NAMES.iter().find(|(_, interval)| *interval == self).expect("every interval has a name").0
    }

    /// Its length.
    pub fn milliseconds(self) -> u64 {
        60_000
            * match self {
                Interval::Minute => 1,
                Interval::FiveMinutes => 5,
                Interval::Quarter => 15,
                Interval::Hour => 60,
                Interval::FourHours => 240,
                Interval::Day => 1_440,
            }
    }

    /// The stored interval whose candles are joined to candles of this one.
    fn kept(self) -> Interval {
        match self {
            Interval::Minute | Interval::FiveMinutes | Interval::Quarter => Interval::Minute,
            Interval::Hour | Interval::FourHours => Interval::Hour,
            Interval::Day => Interval::Day,
        }
    }
}

impl std::str::FromStr for Interval {
    type Err = String;

    fn from_str(text: &str) -> Result<Interval, String> {
        let found = Interval::NAMES.iter().find(|(name, _)| *name == text).map(|(_, interval)| *interval);
        found.ok_or_else(|| format!("no interval {text:?}; there are 1m, 5m, 15m, 1h, 4h and 1d"))
    }
}

/// The trades of a market in one interval. Prices are quote units per base unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candle {
    /// Its beginning, milliseconds since 1970.
    pub time_ms: u64,
    /// The first price.
    pub open: f64,
    /// The highest.
    pub high: f64,
    /// The lowest.
    pub low: f64,
    /// The last.
    pub close: f64,
    /// Base units traded.
    pub base_volume: u128,
    /// Quote units traded.
    pub quote_volume: u128,
    /// Batches in which the market traded.
    pub batches: u32,
    /// The first and the last of them.
    heights: (Height, Height),
}

impl Candle {
    /// The union of both; they may be joined in any order, but never with the same batch twice.
    fn join(self, other: Candle) -> Candle {
        let (first, last) = if self.heights.0 < other.heights.0 { (self, other) } else { (other, self) };
        let newest = if first.heights.1 > last.heights.1 { first } else { last };
        Candle {
            time_ms: self.time_ms.min(other.time_ms),
            open: first.open,
            high: self.high.max(other.high),
            low: self.low.min(other.low),
            close: newest.close,
            base_volume: self.base_volume + other.base_volume,
            quote_volume: self.quote_volume + other.quote_volume,
            batches: self.batches + other.batches,
            heights: (first.heights.0, newest.heights.1),
        }
    }

    /// The same from the other side of the market.
    fn inverted(self) -> Candle {
        Candle {
            open: 1.0 / self.open,
            high: 1.0 / self.low,
            low: 1.0 / self.high,
            close: 1.0 / self.close,
            base_volume: self.quote_volume,
            quote_volume: self.base_volume,
            ..self
        }
    }
}

/// The candles of all markets, within bounds.
#[derive(Default)]
pub struct Candles {
    /// By market (the asset with the higher number first) and kept interval.
    series: HashMap<(AssetId, AssetId, Interval), Series>,
    /// Height and time of the oldest batch that was added.
    oldest: Option<(Height, u64)>,
}

/// The candles of one market and kept interval.
#[derive(Default)]
struct Series {
    by_time: BTreeMap<u64, Candle>,
    /// Candles that began earlier have made room for newer ones.
    cut_ms: u64,
}

impl Candles {
    /// Adds a batch that was not added before.
    pub fn add(&mut self, height: Height, time_ms: u64, batch: &Batch) {
        self.oldest = Some(self.oldest.map_or((height, time_ms), |oldest| oldest.min((height, time_ms))));
        for sides in traded(batch) {
            let value = |asset: AssetId| batch.valuations[asset.0 as usize].to_f64();
            let price = value(sides.base) / value(sides.quote);
            let (base_volume, quote_volume) = volumes(batch, sides);
            let (base_volume, quote_volume) = (base_volume.into(), quote_volume.into());
            for interval in [Interval::Minute, Interval::Hour, Interval::Day] {
                let time_ms = time_ms - time_ms % interval.milliseconds();
                let (open, high, low, close) = (price, price, price, price);
                let heights = (height, height);
                let candle = Candle { time_ms, open, high, low, close, base_volume, quote_volume, batches: 1, heights };
                self.insert(sides, interval, candle);
            }
        }
    }

    fn insert(&mut self, sides: Sides, interval: Interval, candle: Candle) {
        let each = (KEPT / (self.series.len() + 1)).clamp(KEPT_EACH_AT_LEAST, KEPT_EACH);
        let series = self.series.entry((sides.base, sides.quote, interval)).or_default();
        let joined = series.by_time.get(&candle.time_ms).map_or(candle, |there| there.join(candle));
        series.by_time.insert(candle.time_ms, joined);
        while series.by_time.len() > each {
            let dropped = series.by_time.pop_first().map_or(0, |(time_ms, _)| time_ms + interval.milliseconds());
            series.cut_ms = series.cut_ms.max(dropped);
        }
    }

    /// The earliest beginning of an interval of which every batch is known: the block before the oldest known one may
    /// be of the same interval.
    fn known_since_ms(&self) -> u64 {
        match self.oldest {
            Some((height, time_ms)) if height > 1 => time_ms.saturating_add(1),
            _ => 0,
        }
    }

    /// The markets that have traded, in no order.
    pub fn markets(&self) -> impl Iterator<Item = Sides> {
        let days = self.series.keys().filter(|(.., interval)| *interval == Interval::Day);
        days.map(|&(higher, lower, _)| Sides { base: higher, quote: lower })
    }

    /// The last traded price of a market, quote per base, and the height of that batch.
    pub fn last(&self, sides: Sides) -> Option<(f64, Height)> {
        let day = *self.series.get(&key(sides, Interval::Day))?.by_time.last_key_value()?.1;
        let day = if is_natural(sides) { day } else { day.inverted() };
        Some((day.close, day.heights.1))
    }

    /// What a market traded from the minute of `from_ms` on, and whether every batch since is known here; `None` if it
    /// did not trade.
    pub fn since(&self, sides: Sides, from_ms: u64) -> Option<(Candle, bool)> {
        let of = |interval| self.series.get(&key(sides, interval));
        let (minutes, hours) = (of(Interval::Minute)?, of(Interval::Hour)?);
        let from_ms = from_ms - from_ms % Interval::Minute.milliseconds();
        // Minutes up to the next whole hour, and hours from there on.
        let hour_ms = from_ms.next_multiple_of(Interval::Hour.milliseconds());
        let all = minutes.by_time.range(from_ms..hour_ms).chain(hours.by_time.range(hour_ms..));
        let joined = all.map(|(_, candle)| *candle).reduce(Candle::join)?;
        let is_cut = from_ms < hour_ms && minutes.cut_ms > from_ms || hours.cut_ms > hour_ms;
        let is_complete = !is_cut && self.known_since_ms() <= from_ms;
        Some((if is_natural(sides) { joined } else { joined.inverted() }, is_complete))
    }

    /// The last `limit` candles of a market that begin before `before_ms`, oldest first; see the invariant.
    pub fn of(&self, sides: Sides, interval: Interval, before_ms: u64, limit: usize) -> Vec<Candle> {
        let Some(series) = self.series.get(&key(sides, interval)) else { return Vec::new() };
        let since_ms = self.known_since_ms().max(series.cut_ms);
        let start = |candle: &Candle| candle.time_ms - candle.time_ms % interval.milliseconds();
        let mut joined: Vec<Candle> = Vec::new();
        let older = series.by_time.values().rev().map(|candle| Candle { time_ms: start(candle), ..*candle });
        for candle in older.filter(|candle| (since_ms..before_ms).contains(&candle.time_ms)) {
            let full = joined.len() == limit;
            match joined.last_mut() {
                Some(last) if last.time_ms == candle.time_ms => *last = last.join(candle),
                _ if full => break,
                _ => joined.push(candle),
            }
        }
        joined.reverse();
        shown(sides, joined)
    }

    /// The first `limit` candles of a market that begin in a range of times, oldest first.
    pub fn since_time(&self, sides: Sides, interval: Interval, times: Range<u64>, limit: usize) -> Vec<Candle> {
        let Some(series) = self.series.get(&key(sides, interval)) else { return Vec::new() };
        let since_ms = self.known_since_ms().max(series.cut_ms).max(times.start);
        // Those that are kept begin no earlier than what they are joined to.
        let kept = series.by_time.range(since_ms..).map(|(_, candle)| candle);
        let mut joined: Vec<Candle> = Vec::new();
        for candle in kept {
            let time_ms = candle.time_ms - candle.time_ms % interval.milliseconds();
            let full = joined.len() == limit;
            match joined.last_mut() {
                _ if !(since_ms..times.end).contains(&time_ms) => {}
                Some(last) if last.time_ms == time_ms => *last = last.join(*candle),
                _ if full => break,
                _ => joined.push(Candle { time_ms, ..*candle }),
            }
        }
        shown(sides, joined)
    }
}

/// In a market's own terms.
fn shown(sides: Sides, candles: Vec<Candle>) -> Vec<Candle> {
    if is_natural(sides) { candles } else { candles.into_iter().map(Candle::inverted).collect() }
}

/// Whether a market's candles are kept with these sides.
fn is_natural(sides: Sides) -> bool {
    sides.base > sides.quote
}

/// Where the candles are kept from which those of an interval are made.
fn key(sides: Sides, interval: Interval) -> (AssetId, AssetId, Interval) {
    (sides.base.max(sides.quote), sides.base.min(sides.quote), interval.kept())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::{Pair, PairTrade};
    use primitives::Price;

    const MINUTE: u64 = 60_000;
    const SIDES: Sides = Sides { base: AssetId(1), quote: AssetId(0) };

    /// One unit of asset 1 is traded at this price.
    fn batch(price: &str) -> Batch {
        let pair = Pair { sell: AssetId(1), buy: AssetId(0) };
        Batch {
            valuations: vec![Price::ONE, price.parse().expect("a price")],
            trades: vec![PairTrade { pair, sold: 10, bought: 20 }],
            ..Batch::default()
        }
    }

    fn prices(candle: &Candle) -> [f64; 4] {
        [candle.open, candle.high, candle.low, candle.close]
    }

    #[test]
    fn the_order_of_batches_does_not_matter() {
        let batches = [(1, 0, "2"), (2, 10, "4"), (3, MINUTE, "1"), (4, MINUTE + 1, "8"), (5, 7 * MINUTE, "3")];
        for turn in 0..batches.len() {
            let mut candles = Candles::default();
            for at in 0..batches.len() {
                let (height, time_ms, price) = batches[(at * 2 + turn) % batches.len()];
                candles.add(height, time_ms, &batch(price));
            }
            let minutes = candles.of(SIDES, Interval::Minute, u64::MAX, 10);
            assert_eq!(minutes.iter().map(|c| c.time_ms).collect::<Vec<_>>(), [0, MINUTE, 7 * MINUTE]);
            assert_eq!(prices(&minutes[0]), [2.0, 4.0, 2.0, 4.0]);
            assert_eq!((minutes[1].base_volume, minutes[1].quote_volume, minutes[1].batches), (20, 40, 2));
            let five = candles.of(SIDES, Interval::FiveMinutes, u64::MAX, 10);
            assert_eq!(five.iter().map(prices).collect::<Vec<_>>(), [[2.0, 8.0, 1.0, 8.0], [3.0; 4]]);
            let other = candles.of(Sides { base: AssetId(0), quote: AssetId(1) }, Interval::Hour, u64::MAX, 10);
            assert_eq!(prices(&other[0]), [0.5, 1.0, 0.125, 1.0 / 3.0]);
            assert_eq!((other[0].base_volume, other[0].quote_volume), (100, 50));
            assert_eq!(candles.of(SIDES, Interval::Minute, 7 * MINUTE, 1)[0].time_ms, MINUTE);
            let (since, is_complete) = candles.since(SIDES, MINUTE + 5).expect("it traded");
            assert_eq!((prices(&since), since.batches, is_complete), ([1.0, 8.0, 1.0, 3.0], 3, true));
            assert_eq!(candles.since(SIDES, 8 * MINUTE), None);
            assert_eq!(candles.since(SIDES, 0).map(|(candle, _)| candle.batches), Some(5));
        }
    }

    #[test]
    fn a_market_that_traded_once_stays_known() {
        let mut candles = Candles::default();
        assert_eq!(candles.markets().count(), 0);
        candles.add(1, 0, &batch("2"));
        candles.add(2, MINUTE, &Batch { valuations: vec![Price::ONE; 2], ..Batch::default() });
        let markets: Vec<_> = candles.markets().map(|sides| (sides.base, sides.quote)).collect();
        assert_eq!(markets, [(SIDES.base, SIDES.quote)]);
    }

    #[test]
    fn old_candles_make_room() {
        let mut candles = Candles::default();
        let batch = batch("2");
        (0..KEPT_EACH as u64 + 100).for_each(|n| candles.add(n, n * MINUTE, &batch));
        let minutes = candles.of(SIDES, Interval::Minute, u64::MAX, usize::MAX);
        assert_eq!((minutes.len(), minutes[0].time_ms), (KEPT_EACH, 100 * MINUTE));
        assert_eq!(candles.of(SIDES, Interval::Day, u64::MAX, usize::MAX).len(), 2);
        // The minutes from 100 to 104 are the rest of an interval that began at 90, and of one that began at 100.
        let first = |interval| candles.of(SIDES, interval, u64::MAX, usize::MAX)[0];
        assert_eq!((first(Interval::FiveMinutes).time_ms, first(Interval::FiveMinutes).batches), (100 * MINUTE, 5));
        assert_eq!((first(Interval::Quarter).time_ms, first(Interval::Quarter).batches), (105 * MINUTE, 15));
    }

    #[test]
    fn an_interval_that_began_before_the_oldest_known_batch_has_no_candle() {
        let mut candles = Candles::default();
        let add = |candles: &mut Candles, height, minutes: u64| candles.add(height, minutes * MINUTE, &batch("2"));
        (8..=12).for_each(|height| add(&mut candles, height, height));
        let times = |candles: &Candles, interval| {
            let of = candles.of(SIDES, interval, u64::MAX, usize::MAX);
            of.iter().map(|candle| candle.time_ms / MINUTE).collect::<Vec<_>>()
        };
        assert_eq!(times(&candles, Interval::Minute), [9, 10, 11, 12]);
        assert_eq!((times(&candles, Interval::FiveMinutes), times(&candles, Interval::Day)), (vec![10], vec![]));
        assert_eq!(candles.last(SIDES), Some((2.0, 12)), "the last price is known all the same");
        // With the first block of the chain everything is known.
        (1..=7).rev().for_each(|height| add(&mut candles, height, height));
        assert_eq!((times(&candles, Interval::FiveMinutes), times(&candles, Interval::Day)), (vec![0, 5, 10], vec![0]));
    }

    #[test]
    fn what_one_side_sells_and_the_other_buys_is_counted_once() {
        let (supply, demand) = (SIDES.supply(), SIDES.demand());
        let trades = |sold, bought| {
            let mut trades = vec![
                PairTrade { pair: supply, sold, bought: 2 * sold },
                PairTrade { pair: demand, sold: 2 * bought, bought },
            ];
            trades.sort_unstable_by_key(|trade| trade.pair);
            Batch { trades, ..batch("2") }
        };
        assert_eq!(volumes(&trades(10, 10), SIDES), (10, 20));
        assert_eq!(volumes(&trades(10, 4), SIDES), (10, 20), "the rest was traded through other assets");
        assert_eq!(volumes(&batch("2"), SIDES), (10, 20));
    }
}
