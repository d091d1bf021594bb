//! The channels of the stream, by name.

use primitives::Address;
use readers::candles::Interval;

use super::Api;

/// A channel of the stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Channel {
    Blocks,
    Batches,
    /// Trades of one market, named as requested, or of all.
    Trades(Option<(String, String)>),
    /// Candles of one market.
    Candles(String, String, Interval),
    /// The book of one market.
    Book(String, String),
    /// One market at a glance.
    Ticker(String, String),
    Account(Address),
    /// An account's own orders, for who has logged in.
    Orders(Address),
}

/// The channel with a name, or why there is none.
pub(super) fn parse(api: &Api, name: &str) -> Result<Channel, String> {
    match name.split_once(':') {
        None if name == "blocks" => Ok(Channel::Blocks),
        None if name == "batches" => Ok(Channel::Batches),
        None if name == "trades" => Ok(Channel::Trades(None)),
        Some(("trades", market)) => Ok(Channel::Trades(Some(sides_of(api, market)?))),
        Some(("book", market)) => sides_of(api, market).map(|(base, quote)| Channel::Book(base, quote)),
        Some(("ticker", market)) => sides_of(api, market).map(|(base, quote)| Channel::Ticker(base, quote)),
        Some(("candles", candles)) => {
            let wrong = || format!("{candles:?} is not a market and an interval such as EUR/USD:1m");
            let (market, interval) = candles.split_once(':').ok_or_else(wrong)?;
            let (base, quote) = sides_of(api, Some(market).filter(|market| market.contains('/')).ok_or_else(wrong)?)?;
            Ok(Channel::Candles(base, quote, interval.parse()?))
        }
        Some(("orders", address)) => address.parse().map(Channel::Orders).map_err(|error| error.to_string()),
        Some(("account", address)) => address.parse().map(Channel::Account).map_err(|error| error.to_string()),
        _ => Err(format!(
            "no channel {name:?}; there are blocks, batches, trades, trades:BASE/QUOTE, book:BASE/QUOTE, \
             ticker:BASE/QUOTE, candles:BASE/QUOTE:1m, account:0x… and orders:0x…"
        )),
    }
}

/// Base and quote of a market that a channel names.
fn sides_of(api: &Api, market: &str) -> Result<(String, String), String> {
    let (base, quote) = market.split_once('/').ok_or(format!("{market:?} is not a market such as EUR/USD"))?;
    api.sides(base, quote).map_err(|_| format!("no market {market:?}; see /v1/markets"))?;
    Ok((base.into(), quote.into()))
}

/// The name of a channel.
pub(super) fn name(channel: &Channel) -> String {
    match channel {
        Channel::Blocks => "blocks".into(),
        Channel::Batches => "batches".into(),
        Channel::Trades(None) => "trades".into(),
        Channel::Trades(Some((base, quote))) => format!("trades:{base}/{quote}"),
        Channel::Book(base, quote) => format!("book:{base}/{quote}"),
        Channel::Ticker(base, quote) => format!("ticker:{base}/{quote}"),
        Channel::Candles(base, quote, interval) => format!("candles:{base}/{quote}:{}", interval.name()),
        Channel::Account(address) => format!("account:{address}"),
        Channel::Orders(address) => format!("orders:{address}"),
    }
}
