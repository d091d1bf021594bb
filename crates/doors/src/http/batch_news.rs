//! What a batch tells on the channels of trades and candles.

use api::{MarketCandleBody, MarketTradeBody};
use readers::Sides;
use readers::candles::Interval;

use super::Api;
use crate::json;

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
                market: api.symbols.market(sides.base, sides.quote),
                price: api.symbols.whole_price(&price_units, sides.base, sides.quote),
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
    let last = traded.then(|| api.candles_body(sides, interval, u64::MAX, 1))?;
    let (market, interval) = (last.market, last.interval.to_string());
    let candle = last.candles.into_iter().next()?;
    Some(MarketCandleBody { height: batch.height, market, interval, candle })
}
