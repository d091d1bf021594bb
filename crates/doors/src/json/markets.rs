//! Markets: prices, books, curves, candles.

use primitives::Price;
use serde::Serialize;
use utoipa::ToSchema;

use crate::candles::Candle;

/// All markets.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketsBody {
    /// Height of the state that was read.
    pub height: u64,
    /// Pairs with offers or trades, in the order of their assets.
    pub markets: Vec<MarketBody>,
}

/// An unordered pair of assets.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// The asset that is priced.
    pub base: String,
    /// The asset that it is priced in.
    pub quote: String,
    /// The last traded price, quote per base; null if it never traded.
    pub price: Option<String>,
    /// The height at which it last traded.
    pub price_height: Option<u64>,
    /// The price in the latest valuations, if both sides have offers. No trade took place at it.
    pub indicative: Option<String>,
    /// Base units traded in the last batch.
    pub base_volume: String,
    /// Quote units traded in the last batch.
    pub quote_volume: String,
    /// Resting offers, both sides.
    pub offers: usize,
    /// Lowest limit of the offers that sell the base.
    pub best_sell: Option<String>,
    /// Highest price accepted by the offers that sell the quote.
    pub best_buy: Option<String>,
}

/// The resting offers of a market, by price.
#[derive(Debug, Serialize, ToSchema)]
pub struct BookBody {
    /// Height of the state that was read.
    pub height: u64,
    /// `BASE/QUOTE`.
    pub market: String,
    /// The last traded price; null if it never traded.
    pub price: Option<String>,
    /// The height at which it last traded.
    pub price_height: Option<u64>,
    /// The price in the latest valuations, if both sides have offers. No trade took place at it.
    pub indicative: Option<String>,
    /// Offers of the base, cheapest first.
    pub sells: Vec<Level>,
    /// Offers of the quote, highest price first.
    pub buys: Vec<Level>,
}

/// Offers at one price.
#[derive(Debug, Serialize, ToSchema)]
pub struct Level {
    /// Quote per base.
    pub price: String,
    /// Base units, rounded down.
    pub amount: String,
    /// Number of offers.
    pub offers: usize,
}

/// Supply and demand of a market in the last batch, before it traded.
#[derive(Debug, Serialize, ToSchema)]
pub struct Curves {
    /// Height of the batch.
    pub height: u64,
    /// `BASE/QUOTE`.
    pub market: String,
    /// Batch price.
    pub price: String,
    /// Base units offered at limits up to each price, ascending.
    pub supply: Vec<CurvePoint>,
    /// Base units that offers of the quote would buy at each price, descending.
    pub demand: Vec<CurvePoint>,
    /// Base units sold for the quote.
    pub sold: String,
    /// Base units bought with the quote.
    pub bought: String,
}

/// A point of a curve.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CurvePoint {
    /// Quote per base.
    pub price: String,
    /// Base units.
    pub amount: String,
}

/// A market's price over time: the batches in which it traded.
#[derive(Debug, Serialize, ToSchema)]
pub struct HistoryBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// Oldest first.
    pub points: Vec<HistoryPoint>,
}

/// One batch of a market.
#[derive(Debug, Serialize, ToSchema)]
pub struct HistoryPoint {
    /// Height.
    pub height: u64,
    /// The proposer's clock.
    pub time_ms: u64,
    /// Quote per base.
    pub price: String,
    /// Base units traded.
    pub base_volume: String,
}

/// A market's candles.
#[derive(Debug, Serialize, ToSchema)]
pub struct CandlesBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// `1m`, `5m`, `15m`, `1h`, `4h` or `1d`.
    pub interval: &'static str,
    /// Oldest first; an interval without a trade has none.
    pub candles: Vec<CandleBody>,
}

/// The trades of a market in one interval, at batch prices.
#[derive(Debug, Serialize, ToSchema)]
pub struct CandleBody {
    /// Its beginning, milliseconds since 1970.
    pub time_ms: u64,
    /// First price, quote per base.
    pub open: String,
    /// Highest price.
    pub high: String,
    /// Lowest price.
    pub low: String,
    /// Last price.
    pub close: String,
    /// Base units traded.
    pub base_volume: String,
    /// Quote units traded.
    pub quote_volume: String,
    /// Batches in which the market traded.
    pub batches: u32,
}

impl From<&Candle> for CandleBody {
    fn from(candle: &Candle) -> CandleBody {
        CandleBody {
            time_ms: candle.time_ms,
            open: rounded(candle.open),
            high: rounded(candle.high),
            low: rounded(candle.low),
            close: rounded(candle.close),
            base_volume: candle.base_volume.to_string(),
            quote_volume: candle.quote_volume.to_string(),
            batches: candle.batches,
        }
    }
}

/// The price of `base` in `quote`, to 12 significant digits: a ratio of valuations has no exact decimal.
pub fn price(base: Price, quote: Price) -> String {
    rounded(base.to_f64() / quote.to_f64())
}

/// A positive number to 12 significant digits, as a plain decimal.
pub fn rounded(value: f64) -> String {
    let Some(price) = Price::from_f64(value) else { return "0".into() };
    let keep = 100_000;
    let mantissa = (price.mantissa() + keep / 2) / keep * keep;
    Price::from_parts(mantissa, price.decade()).unwrap_or(price).to_string()
}
