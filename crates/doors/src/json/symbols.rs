//! Symbols of the assets, for writing JSON.

use std::sync::Arc;

use ledger::{Asset, EndedOffer, ExactTrade, Pair, PoolFill};
use primitives::{Amount, AssetId, format_units};

use api::{BatchBody, EndedOfferBody, ExactTradeBody, PoolFillBody, SolverBody, TradeBody};
use readers::AssetNames;
use readers::views::BatchSummary;

/// Ended offers that a batch shows: a mass end is half a million of them.
const ENDED_SHOWN: usize = 100;

/// How many orders for exact amounts a batch shows.
const EXACTS_SHOWN: usize = 100;

/// Symbols and decimals by number, for writing JSON.
#[derive(Clone)]
pub struct Symbols(AssetNames);

impl Symbols {
    /// The symbols of a ledger's assets.
    pub fn of(assets: &[Asset]) -> Symbols {
        Symbols(Arc::new(assets.iter().map(|asset| (asset.symbol.clone(), asset.decimals)).collect()))
    }

    /// Those that a node has published.
    pub fn published(names: AssetNames) -> Symbols {
        Symbols(names)
    }

    /// The symbol of an asset.
    pub fn get(&self, asset: AssetId) -> &str {
        &self.0[asset.0 as usize].0
    }

    /// An amount in whole assets, with the symbol.
    pub fn money(&self, asset: AssetId, units: Amount) -> String {
        match self.0.get(asset.0 as usize) {
            Some((symbol, decimals)) => format!("{} {symbol}", format_units(units, *decimals)),
            None => format!("{units} units of asset {asset}"),
        }
    }

    /// A price of whole units of `base` in whole units of `quote`, from one in quote units per base unit: the point
    /// moves by the difference of the decimals.
    pub fn whole_price(&self, units: &str, base: AssetId, quote: AssetId) -> String {
        let decimals = |asset: AssetId| i32::from(self.0[asset.0 as usize].1);
        shifted(units, decimals(base) - decimals(quote))
    }

    /// The symbol of an asset, or its number if there is no such asset: rejected transactions may name any.
    pub fn name(&self, asset: AssetId) -> String {
        self.0.get(asset.0 as usize).map_or_else(|| asset.to_string(), |(symbol, _)| symbol.clone())
    }

    /// Whether there is an asset with this number.
    pub fn is_listed(&self, asset: AssetId) -> bool {
        (asset.0 as usize) < self.0.len()
    }

    /// The asset with a symbol.
    pub fn find(&self, symbol: &str) -> Option<AssetId> {
        self.0.iter().position(|(known, _)| known == symbol).map(|at| AssetId(at as u32))
    }

    /// `BASE/QUOTE`.
    pub fn market(&self, base: AssetId, quote: AssetId) -> String {
        format!("{}/{}", self.get(base), self.get(quote))
    }

    /// One trade.
    pub fn trade(&self, pair: Pair, sold: Amount, bought: Amount) -> TradeBody {
        TradeBody {
            sell: self.get(pair.sell).into(),
            buy: self.get(pair.buy).into(),
            sold: sold.to_string(),
            bought: bought.to_string(),
        }
    }

    /// An offer that left the book.
    pub fn ended(&self, ended: &EndedOffer) -> EndedOfferBody {
        let EndedOffer { pair, place, returned, why } = ended;
        EndedOfferBody {
            sell: self.get(pair.sell).into(),
            buy: self.get(pair.buy).into(),
            limit: place.limit.to_string(),
            account: place.account.to_string(),
            id: place.id.to_string(),
            returned: returned.to_string(),
            why: why.name().into(),
        }
    }

    fn pool_fill(&self, fill: &PoolFill) -> PoolFillBody {
        PoolFillBody {
            sell: self.get(fill.sell()).into(),
            buy: self.get(fill.buy()).into(),
            class: fill.pool.class,
            sold: fill.sold.to_string(),
            bought: fill.bought.to_string(),
        }
    }

    /// An exact order that was filled.
    pub fn exact_trade(&self, trade: &ExactTrade) -> ExactTradeBody {
        ExactTradeBody {
            sell: self.get(trade.pair.sell).into(),
            buy: self.get(trade.pair.buy).into(),
            side: trade.side.name().into(),
            account: trade.account.to_string(),
            id: trade.id.to_string(),
            sold: trade.sold.to_string(),
            bought: trade.bought.to_string(),
        }
    }

    /// A batch.
    pub fn batch(&self, summary: &BatchSummary) -> BatchBody {
        let batch = &summary.batch;
        let valuations =
            self.0.iter().zip(&batch.valuations).map(|((symbol, _), price)| (symbol.clone(), price.to_string()));
        BatchBody {
            height: summary.height,
            time_ms: summary.time_ms,
            full: batch.full(),
            valuations: valuations.collect(),
            trades: batch.trades.iter().map(|trade| self.trade(trade.pair, trade.sold, trade.bought)).collect(),
            pools: batch.pools.iter().map(|fill| self.pool_fill(fill)).collect(),
            exacts: batch.exacts.iter().take(EXACTS_SHOWN).map(|trade| self.exact_trade(trade)).collect(),
            exacts_count: batch.exacts.len(),
            short: batch.short.iter().map(|asset| self.get(*asset).into()).collect(),
            burnt: batch.burnt.iter().map(|(asset, units)| (self.get(*asset).into(), units.to_string())).collect(),
            ended: batch.ended.iter().take(ENDED_SHOWN).map(|ended| self.ended(ended)).collect(),
            ended_count: batch.ended.len(),
            solver: summary.report.as_ref().map(|report| SolverBody {
                name: report.solver.name().into(),
                iterations: report.iterations,
                demand_queries: report.demand_queries,
                unrealized_utility_ratio: Some(report.unrealized_utility_ratio).filter(|ratio| ratio.is_finite()),
            }),
        }
    }
}

/// A plain decimal times ten to the power of `places`, exactly.
fn shifted(decimal: &str, places: i32) -> String {
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let point = whole.len() as i32 + places;
    let digits = format!("{}{whole}{fraction}", zeros(1 - point));
    let digits = format!("{digits}{}", zeros(point - digits.len() as i32));
    let (whole, fraction) = digits.split_at(point.max(1) as usize);
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() { whole.into() } else { format!("{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::shifted;

    #[test]
    fn a_price_of_whole_assets_moves_only_the_point() {
        let cases = [
            ("1.1", 0, "1.1"),
            ("1.1", 4, "11000"),
            ("11000", -4, "1.1"),
            ("0.00011", 4, "1.1"),
            ("1.1", -1, "0.11"),
            ("1.1", -4, "0.00011"),
            ("12345.678", 2, "1234567.8"),
            ("0", 3, "0"),
            ("100", -2, "1"),
        ];
        for (units, places, whole) in cases {
            assert_eq!(shifted(units, places), whole, "{units} by {places}");
        }
    }
}
