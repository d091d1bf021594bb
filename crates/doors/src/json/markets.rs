//! Markets: prices, books, curves, candles.
//!
//! A price has two fields: `price` counts whole assets, as people do, and `price_units` counts units, as the ledger
//! and its limit prices do.

use ledger::{ExactOutcome, Pair, Quote};
use primitives::{Amount, ExactSide, Price};

use api::{CandleBody, ExactQuoteBody, QuoteBody};

use super::Symbols;
use super::asked::ExactTerms;
use super::blocks::why;
use readers::Sides;
use readers::candles::Candle;

/// A candle of a market; `complete` says whether its interval is over.
pub fn candle(candle: &Candle, complete: bool, symbols: &Symbols, sides: Sides) -> CandleBody {
    let units = [candle.open, candle.high, candle.low, candle.close].map(rounded);
    let [open, high, low, close] = units.each_ref().map(|units| symbols.whole_price(units, sides.base, sides.quote));
    let [open_units, high_units, low_units, close_units] = units;
    CandleBody {
        time_ms: candle.time_ms,
        complete,
        open,
        high,
        low,
        close,
        open_units,
        high_units,
        low_units,
        close_units,
        base_volume: candle.base_volume.to_string(),
        quote_volume: candle.quote_volume.to_string(),
        batches: candle.batches,
    }
}

/// The limit of an offer that is asked about, and whether whoever asks named it.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) price: Price,
    pub(crate) is_asked: bool,
}

impl Symbols {
    /// What the next batch would do with an offer.
    pub(crate) fn quote(&self, pair: Pair, amount: Amount, limit: Limit, quote: &Quote) -> QuoteBody {
        QuoteBody {
            limit: limit.price.to_string(),
            asked: limit.is_asked.then(|| self.asked(pair, amount, limit.price, None)).flatten(),
            sold: quote.met.sold.to_string(),
            bought: quote.met.bought.to_string(),
            left: quote.met.left.to_string(),
            returned: quote.met.returned.to_string(),
            why: why(quote.met.why).into(),
            ..self.quoted(pair, amount, quote)
        }
    }

    /// What the next batch would do with an exact order.
    pub(crate) fn exact_quote(&self, pair: Pair, terms: ExactTerms, quote: &Quote<ExactOutcome>) -> QuoteBody {
        let (side, units, bound) = terms;
        let [sells, buys] = if side == ExactSide::Buy { [bound, units] } else { [units, bound] };
        let limit = Price::ratio_rounding_up(buys, sells).unwrap_or(Price::MIN);
        let exact = ExactQuoteBody { side: side.name().into(), units: units.to_string(), bound: bound.to_string() };
        QuoteBody {
            limit: limit.to_string(),
            asked: self.asked(pair, sells, limit, Some(terms)),
            exact: Some(exact),
            sold: quote.met.sold.to_string(),
            bought: quote.met.bought.to_string(),
            left: "0".into(),
            returned: quote.met.returned.to_string(),
            why: quote.met.why.name().into(),
            ..self.quoted(pair, sells, quote)
        }
    }

    /// What is the same of all quotes: the market, and its prices.
    fn quoted<Met>(&self, pair: Pair, amount: Amount, quote: &Quote<Met>) -> QuoteBody {
        let units = |valuations: Option<[Price; 2]>| valuations.map(|[sell, buy]| price(sell, buy));
        let whole = |units: &Option<String>| units.as_ref().map(|units| self.whole_price(units, pair.sell, pair.buy));
        let (price_units, last_price_units) = (units(quote.valuations), units(quote.last));
        QuoteBody {
            height: quote.height,
            sell: self.get(pair.sell).into(),
            buy: self.get(pair.buy).into(),
            amount: amount.to_string(),
            limit: String::new(),
            asked: None,
            exact: None,
            sold: String::new(),
            bought: String::new(),
            left: String::new(),
            returned: String::new(),
            why: "".into(),
            price: whole(&price_units),
            price_units,
            last_price: whole(&last_price_units),
            last_price_units,
        }
    }
}

/// The price of `base` in units of `quote`, to 12 significant digits: a ratio of valuations has no exact decimal.
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
