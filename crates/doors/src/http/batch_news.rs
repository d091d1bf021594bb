//! What a block tells on the channels of trades, candles and accounts.

use api::{AccountIncrement, MarketCandleBody, MarketTradeBody, OwnFillBody, OwnOutcomeBody};
use primitives::Address;
use readers::Sides;
use readers::candles::Interval;
use readers::views::CommittedBlock;
use serde_json::Value;

use super::Api;
use super::markets::candles_body;
use crate::json;
use crate::kit::Failure;

/// The trades of each market in a batch; of one market, or of all.
pub(super) fn trades(
    api: &Api,
    market: &Option<(String, String)>,
    batch: &readers::views::BatchSummary,
) -> Vec<MarketTradeBody> {
    let chosen: Vec<Sides> = match market {
        Some((base, quote)) => api.sides(base, quote).into_iter().collect(),
        None => readers::sides::traded(&batch.batch),
    };
    let trade = |sides: Sides| {
        let (base_volume, quote_volume) = readers::sides::volumes(&batch.batch, sides);
        let valuation = |asset: primitives::AssetId| batch.batch.valuations[asset.0 as usize];
        (base_volume > 0 || quote_volume > 0).then(|| {
            let price_units = json::price(valuation(sides.base), valuation(sides.quote));
            MarketTradeBody {
                height: batch.height,
                market: api.symbols().market(sides.base, sides.quote),
                price: api.symbols().whole_price(&price_units, sides.base, sides.quote),
                price_units,
                base_volume: base_volume.to_string(),
                quote_volume: quote_volume.to_string(),
            }
        })
    };
    chosen.into_iter().filter_map(trade).collect()
}

/// The candle of one market that a batch has changed.
pub(super) fn candle(
    api: &Api,
    base: &str,
    quote: &str,
    interval: Interval,
    batch: &readers::views::BatchSummary,
) -> Option<MarketCandleBody> {
    let sides = api.sides(base, quote).ok()?;
    let traded = readers::sides::volumes(&batch.batch, sides) != (0, 0);
    let last = traded.then(|| candles_body(api, sides, interval, (None, u64::MAX), 1))?;
    let (market, interval) = (last.market, last.interval.to_string());
    let candle = last.candles.into_iter().next()?;
    Some(MarketCandleBody { height: batch.height, market, interval, candle })
}

/// What a block did to an account, if it did anything.
pub(super) fn account_increment(
    api: &Api,
    address: &Address,
    committed: &CommittedBlock,
) -> Result<Option<Value>, Failure> {
    let outcomes = committed.outcomes.iter().filter(|(account, _, _)| account == address);
    let outcomes: Vec<OwnOutcomeBody> = outcomes
        .map(|(_, id, outcome)| OwnOutcomeBody { id: id.to_string(), outcome: json::outcome(outcome) })
        .collect();
    let fills = committed.batch.batch.fills.iter().filter(|fill| fill.place.account == *address);
    let fills: Vec<OwnFillBody> = fills
        .map(|fill| OwnFillBody {
            sell: api.symbols().get(fill.pair.sell).to_string(),
            buy: api.symbols().get(fill.pair.buy).to_string(),
            limit: fill.place.limit.to_string(),
            id: fill.place.id.to_string(),
            sold: fill.sold.to_string(),
            bought: fill.bought.to_string(),
            left: fill.left.to_string(),
            returned: fill.returned.to_string(),
        })
        .collect();
    let ended = committed.batch.batch.ended.iter().filter(|ended| ended.place.account == *address);
    let ended: Vec<_> = ended.map(|ended| api.symbols().ended(ended)).collect();
    let exacts = committed.batch.batch.exacts.iter().filter(|trade| trade.account == *address);
    let exacts = exacts.map(|trade| api.symbols().exact_trade(trade)).collect();
    let received = committed.credited.contains(address);
    // An exact order that was filled has an outcome.
    if outcomes.is_empty() && fills.is_empty() && ended.is_empty() && !received {
        return Ok(None);
    }
    let balances = api.account_body(address)?.map(|account| account.balances);
    let (height, address) = (committed.summary.height, address.to_string());
    let balances = balances.unwrap_or_default();
    let increment = AccountIncrement { height, address, outcomes, fills, exacts, ended, balances };
    Ok(Some(tagged("account", increment)))
}

/// A body as a message of a type.
pub(super) fn tagged(kind: &str, body: impl serde::Serialize) -> Value {
    let mut value = serde_json::to_value(body).expect("plain data");
    value["type"] = kind.into();
    value
}
