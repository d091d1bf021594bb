//! Markets: prices, books, curves, candles.
//!
//! A price has two fields: `price` counts whole assets, as people do, and `price_units` counts units, as the ledger
//! and its limit prices do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::OrderTermsBody;

/// All markets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MarketsBody {
    /// Height of the state that was read.
    pub height: u64,
    /// Pairs with offers or trades, in the order of their assets.
    pub markets: Vec<MarketBody>,
}

/// An unordered pair of assets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MarketBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// The asset that is priced.
    pub base: String,
    /// The asset that it is priced in.
    pub quote: String,
    /// The last traded price, whole quote per whole base; null if it never traded.
    pub price: Option<String>,
    /// The same in quote units per base unit.
    pub price_units: Option<String>,
    /// The height at which it last traded.
    pub price_height: Option<u64>,
    /// The price in the latest valuations, if both sides have offers. No trade took place at it.
    pub indicative: Option<String>,
    /// The same in quote units per base unit.
    pub indicative_units: Option<String>,
    /// Base units traded in the last batch: those sold for the quote or those bought with it, whichever are more.
    pub base_volume: String,
    /// Quote units traded in the last batch, likewise.
    pub quote_volume: String,
    /// Resting offers, both sides.
    pub offers: usize,
    /// Lowest limit of the offers that sell the base, whole quote per whole base.
    pub best_sell: Option<String>,
    /// The same in quote units per base unit.
    pub best_sell_units: Option<String>,
    /// Highest price accepted by the offers that sell the quote, whole quote per whole base.
    pub best_buy: Option<String>,
    /// The same in quote units per base unit.
    pub best_buy_units: Option<String>,
}

/// The resting offers of a market, by price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BookBody {
    /// Height of the state that was read.
    pub height: u64,
    /// Block time of that state; 0 before the first block since the start of the node.
    pub time_ms: u64,
    /// `BASE/QUOTE`.
    pub market: String,
    /// The last traded price, whole quote per whole base; null if it never traded.
    pub price: Option<String>,
    /// The same in quote units per base unit.
    pub price_units: Option<String>,
    /// The height at which it last traded.
    pub price_height: Option<u64>,
    /// The price in the latest valuations, if both sides have offers. No trade took place at it.
    pub indicative: Option<String>,
    /// The same in quote units per base unit.
    pub indicative_units: Option<String>,
    /// Offers of the base, cheapest first.
    pub sells: Vec<Level>,
    /// Offers of the quote, highest price first.
    pub buys: Vec<Level>,
}

/// Offers at one price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Level {
    /// Whole quote per whole base.
    pub price: String,
    /// Quote units per base unit.
    pub price_units: String,
    /// Base units, rounded down.
    pub amount: String,
    /// Number of offers.
    pub offers: usize,
}

/// Supply and demand of a market in the last batch, before it traded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Curves {
    /// Height of the batch.
    pub height: u64,
    /// `BASE/QUOTE`.
    pub market: String,
    /// The price at which the market traded in this batch, whole quote per whole base; null if it did not.
    pub price: Option<String>,
    /// The same in quote units per base unit.
    pub price_units: Option<String>,
    /// The price in the valuations of this batch; null if one of the assets has none. Nobody need have traded at it.
    pub indicative: Option<String>,
    /// The same in quote units per base unit.
    pub indicative_units: Option<String>,
    /// Base units offered at limits up to each price, ascending.
    pub supply: Vec<CurvePoint>,
    /// Base units that offers of the quote would buy at each price, descending.
    pub demand: Vec<CurvePoint>,
    /// Base units sold for the quote.
    pub sold: String,
    /// Base units bought with the quote.
    pub bought: String,
}

/// What an exact order asks for that is asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExactQuoteBody {
    /// `buy` or `sell`: which of its two amounts is exact.
    pub side: Cow<'static, str>,
    /// Units to buy or to sell.
    pub units: String,
    /// The most units to pay, or the fewest to get.
    pub bound: String,
}

/// What the next batch would do with an order if nothing else came: with an offer, or with an exact order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuoteBody {
    /// Height of the state that was asked.
    pub height: u64,
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// The most units to sell.
    pub amount: String,
    /// The fewest units bought for a unit sold.
    pub limit: String,
    /// What it asks for in its market; null if it was asked about without a limit.
    #[serde(default)]
    pub asked: Option<OrderTermsBody>,
    /// What it asks for exactly; null for an offer.
    #[serde(default)]
    pub exact: Option<ExactQuoteBody>,
    /// Units that it would sell.
    pub sold: String,
    /// Units that it would get, net of commission.
    pub bought: String,
    /// Units that would rest in the book.
    pub left: String,
    /// Units that would return: too few for an offer, or all that an exact order does not pay.
    pub returned: String,
    /// Why it would sell so much: a reason of an offer's outcome, or of an exact order's, of which `filled` alone says
    /// that there is room for it.
    pub why: Cow<'static, str>,
    /// Whole units bought for a whole unit sold in that batch, before commission; null if it would clear nothing.
    pub price: Option<String>,
    /// The same in units.
    pub price_units: Option<String>,
    /// The same in the valuations of the last batch; null if one of the assets has none.
    pub last_price: Option<String>,
    /// The same in units.
    pub last_price_units: Option<String>,
}

/// A point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CurvePoint {
    /// Whole quote per whole base.
    pub price: String,
    /// Quote units per base unit.
    pub price_units: String,
    /// Base units.
    pub amount: String,
}

/// A market's price over time: the batches in which it traded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// Oldest first.
    pub points: Vec<HistoryPoint>,
}

/// One batch of a market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryPoint {
    /// Height.
    pub height: u64,
    /// The proposer's clock.
    pub time_ms: u64,
    /// Whole quote per whole base.
    pub price: String,
    /// Quote units per base unit.
    pub price_units: String,
    /// Base units traded.
    pub base_volume: String,
}

/// A market's candles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CandlesBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// `1m`, `5m`, `15m`, `1h`, `4h` or `1d`.
    pub interval: Cow<'static, str>,
    /// Oldest first; an interval without a trade has none, nor has one that began before the batches known here.
    pub candles: Vec<CandleBody>,
}

/// The trades of a market in one interval, at batch prices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CandleBody {
    /// Its beginning, milliseconds since 1970.
    pub time_ms: u64,
    /// Whether its interval is over.
    pub complete: bool,
    /// First price, whole quote per whole base.
    pub open: String,
    /// Highest price.
    pub high: String,
    /// Lowest price.
    pub low: String,
    /// Last price.
    pub close: String,
    /// First price, quote units per base unit.
    pub open_units: String,
    /// Highest price, quote units per base unit.
    pub high_units: String,
    /// Lowest price, quote units per base unit.
    pub low_units: String,
    /// Last price, quote units per base unit.
    pub close_units: String,
    /// Base units traded.
    pub base_volume: String,
    /// Quote units traded.
    pub quote_volume: String,
    /// Batches in which the market traded.
    pub batches: u32,
}

/// The best levels of a book as the stream's channel begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BookSnapshotBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// Height of the state.
    pub height: u64,
    /// The most levels of a side that are shown.
    pub levels: usize,
    /// Offers of the base, cheapest first.
    pub sells: Vec<Level>,
    /// Offers of the quote, highest price first.
    pub buys: Vec<Level>,
    /// CRC-32 (IEEE) of the ten best levels of the buys and then of the sells, as text `price_units:amount:offers;`
    /// each.
    pub checksum: u32,
}

/// Levels of each side that [`book_checksum`] covers.
pub const BOOK_CHECKED_LEVELS: usize = 10;

/// CRC-32 (IEEE) of the ten best levels of the buys and then of the sells, as text `price_units:amount:offers;` each.
pub fn book_checksum(buys: &[Level], sells: &[Level]) -> u32 {
    let best = |levels: &[Level]| -> String {
        let of = |level: &Level| format!("{}:{}:{};", level.price_units, level.amount, level.offers);
        levels.iter().take(BOOK_CHECKED_LEVELS).map(of).collect()
    };
    crc32((best(buys) + &best(sells)).as_bytes())
}

/// CRC-32 as zip and Ethernet have it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

/// What changed in the best levels of a book: it leads from the state of one height to that of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BookChangeBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// Height of the state after it.
    pub height: u64,
    /// Height of a state before it: since the change before, the book did not change.
    pub previous: u64,
    /// Levels of the sells that are new or other ones; with no offers where one is gone.
    pub sells: Vec<Level>,
    /// Levels of the buys, likewise.
    pub buys: Vec<Level>,
    /// The checksum after it.
    pub checksum: u32,
}

/// The tickers of all markets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TickersBody {
    /// Height of the state that was read.
    pub height: u64,
    /// Each market with offers or trades, in the order of their assets.
    pub tickers: Vec<TickerBody>,
}

/// A market at a glance: last price, best limits, and the 24 hours up to the last block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TickerBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// Height of the state that was read.
    pub height: u64,
    /// Time of that block, milliseconds since 1970.
    pub time_ms: u64,
    /// The last traded price, whole quote per whole base; null if it never traded.
    pub price: Option<String>,
    /// The same in quote units per base unit.
    pub price_units: Option<String>,
    /// The height at which it last traded.
    pub price_height: Option<u64>,
    /// Lowest limit of the offers that sell the base, whole quote per whole base.
    pub best_sell: Option<String>,
    /// Highest price accepted by the offers that sell the quote, whole quote per whole base.
    pub best_buy: Option<String>,
    /// The 24 hours; null if the market did not trade in them.
    pub day: Option<DayBody>,
}

/// What a market traded in the last 24 hours; minutes count as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DayBody {
    /// The first minute of them that traded, milliseconds since 1970.
    pub since_ms: u64,
    /// Whether this node has every batch of the 24 hours.
    pub complete: bool,
    /// First price, whole quote per whole base.
    pub open: String,
    /// Highest price.
    pub high: String,
    /// Lowest price.
    pub low: String,
    /// Last price.
    pub close: String,
    /// Change from the first to the last price, in per cent.
    pub change_percent: String,
    /// Base units traded.
    pub base_volume: String,
    /// Quote units traded.
    pub quote_volume: String,
    /// Batches in which the market traded.
    pub batches: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one_of_the_ten_best_levels() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let level = |price: u32, amount: u32| Level {
            price: price.to_string(),
            price_units: price.to_string(),
            amount: amount.to_string(),
            offers: 1,
        };
        let buys = [level(99, 5), level(98, 7)];
        assert_eq!(book_checksum(&buys, &[level(101, 3)]), crc32(b"99:5:1;98:7:1;101:3:1;"));
        let sells: Vec<Level> = (0..12).map(|price| level(price, 1)).collect();
        assert_eq!(book_checksum(&[], &sells), book_checksum(&[], &sells[..10]));
    }
}
