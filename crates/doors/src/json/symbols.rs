//! Symbols of the assets, for writing JSON.

use ledger::{Asset, Pair};
use primitives::{Amount, AssetId, Operation, to_hex};

use super::{BatchBody, OperationBody, SolverBody, TradeBody};
use crate::views::BatchSummary;

/// Symbols by number, for writing JSON.
pub struct Symbols(Vec<String>);

impl Symbols {
    /// The symbols of a ledger's assets.
    pub fn of(assets: &[Asset]) -> Symbols {
        Symbols(assets.iter().map(|asset| asset.symbol.clone()).collect())
    }

    /// The symbol of an asset.
    pub fn get(&self, asset: AssetId) -> &str {
        &self.0[asset.0 as usize]
    }

    /// The symbol of an asset, or its number if there is no such asset: rejected transactions may name any.
    fn name(&self, asset: AssetId) -> String {
        self.0.get(asset.0 as usize).cloned().unwrap_or_else(|| asset.to_string())
    }

    /// An operation.
    pub fn operation(&self, operation: &Operation) -> OperationBody {
        match operation {
            &Operation::CreateAccount { account, key } => {
                OperationBody::CreateAccount { account: account.to_string(), key: key.to_string() }
            }
            &Operation::CreateOffer { sell, buy, amount, limit } => OperationBody::CreateOffer {
                sell: self.name(sell),
                buy: self.name(buy),
                amount: amount.to_string(),
                limit: limit.to_string(),
            },
            &Operation::CancelOffer { sell, buy, limit, offer } => OperationBody::CancelOffer {
                sell: self.name(sell),
                buy: self.name(buy),
                limit: limit.to_string(),
                offer,
            },
            &Operation::Pay { to, asset, amount } => {
                OperationBody::Pay { to: to.to_string(), asset: self.name(asset), amount: amount.to_string() }
            }
            &Operation::Issue { to, asset, amount } => {
                OperationBody::Issue { to: to.to_string(), asset: self.name(asset), amount: amount.to_string() }
            }
            &Operation::Burn { asset, amount } => {
                OperationBody::Burn { asset: self.name(asset), amount: amount.to_string() }
            }
            Operation::Stake(stake) => OperationBody::Stake {
                units: stake.units.to_string(),
                key: stake.key.to_string(),
                address: stake.address.clone(),
            },
            Operation::Unstake { units } => OperationBody::Unstake { units: units.to_string() },
            Operation::Accuse(evidence) => OperationBody::Accuse {
                epoch: evidence.epoch,
                validator: evidence.member,
                height: evidence.height,
                statements: evidence.contradiction.name(),
            },
            &Operation::Withdraw { to, asset, amount } => {
                OperationBody::Withdraw { to: to.to_string(), asset: self.name(asset), amount: amount.to_string() }
            }
            Operation::Lane(bytes) => OperationBody::Lane { post: format!("0x{}", to_hex(bytes)) },
        }
    }

    /// The asset with a symbol.
    pub fn find(&self, symbol: &str) -> Option<AssetId> {
        self.0.iter().position(|known| known == symbol).map(|at| AssetId(at as u32))
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

    /// A batch.
    pub fn batch(&self, summary: &BatchSummary) -> BatchBody {
        let batch = &summary.batch;
        let valuations =
            self.0.iter().zip(&batch.valuations).map(|(symbol, price)| (symbol.clone(), price.to_string()));
        BatchBody {
            height: summary.height,
            time_ms: summary.time_ms,
            full: batch.full,
            valuations: valuations.collect(),
            trades: batch.trades.iter().map(|trade| self.trade(trade.pair, trade.sold, trade.bought)).collect(),
            burnt: batch.burnt.iter().map(|(asset, units)| (self.get(*asset).into(), units.to_string())).collect(),
            solver: summary.report.as_ref().map(|report| SolverBody {
                name: report.solver.name(),
                iterations: report.iterations,
                demand_queries: report.demand_queries,
                unrealized_utility_ratio: Some(report.unrealized_utility_ratio).filter(|ratio| ratio.is_finite()),
            }),
        }
    }
}
