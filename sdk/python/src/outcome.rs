//! A clearing as Python reads it.

use clearing::{
    Clearing, Division, ExactFill, Obstacle, Params, PoolTrade, Reason, Report, SortedOffers, Spending, Trade,
    UnitsProof,
};
use primitives::{AssetId, Price};
use pyo3::prelude::*;

/// A proof that no clearing is full: positions of its assets, and its divisions as (offer, whether of units paid,
/// most).
pub(crate) type ProofRow = (Vec<u32>, Vec<(u32, bool, u64)>);

/// Prices and trades, and how they were found.
#[pyclass(frozen)]
pub struct Outcome {
    pub(crate) params: Params,
    pub(crate) clearing: Clearing,
    /// For each asset, whether it has a price.
    pub(crate) priced: Vec<bool>,
    /// Time that clearing took; `None` for one that was claimed.
    pub(crate) seconds: Option<f64>,
}

impl Outcome {
    /// A clearing from elsewhere, of which nothing is believed yet.
    pub(crate) fn claimed(
        params: Params,
        valuations: Vec<Price>,
        trades: Vec<(u32, u32, u64)>,
        pools: Vec<(u32, u32, u32, u64, u64)>,
        buys: Vec<(u32, u64)>,
        (short, proofs): (Vec<AssetId>, Vec<ProofRow>),
    ) -> Outcome {
        let trade = |(sell, buy, sold)| Trade { sell: AssetId(sell), buy: AssetId(buy), sold };
        let mut trades: Vec<Trade> = trades.into_iter().map(trade).collect();
        trades.sort_by_key(|trade| (trade.sell, trade.buy));
        let pool = |(pool, sell, buy, sold, bought)| {
            let (sell, buy) = (AssetId(sell), AssetId(buy));
            PoolTrade { pool, sell, buy, sold, bought }
        };
        let pools = pools.into_iter().map(pool).collect();
        let exacts = buys.into_iter().map(|(order, other)| ExactFill { order, other }).collect();
        let report = Report { obstacles: proofs.into_iter().map(proved).collect(), ..Report::default() };
        let clearing = Clearing { valuations, trades, pools, exacts, full: short.is_empty(), short, report };
        Outcome { params, priced: vec![true; clearing.valuations.len()], clearing, seconds: None }
    }

    /// Every fill as (row counted from 1, units sold, units bought), in no order.
    pub(crate) fn fills(&self, sorted: &SortedOffers) -> Vec<(u64, u64, u64)> {
        let book = sorted.book();
        let fills = self.clearing.fills(&book, sorted, &self.params);
        fills.map(|fill| (u64::from(fill.row) + 1, fill.sold, fill.bought)).collect()
    }

    fn trade_column(&self, of: fn(&Trade) -> u64) -> Vec<u8> {
        self.clearing.trades.iter().flat_map(|trade| of(trade).to_le_bytes()).collect()
    }
}

/// The obstacle that carries a claimed proof.
fn proved((assets, divisions): ProofRow) -> Obstacle {
    let assets: Vec<AssetId> = assets.into_iter().map(AssetId).collect();
    let divisions = divisions.into_iter().map(|(offer, is_paid, most)| Division { offer, is_paid, most }).collect();
    Obstacle { reason: Reason::Units, assets: assets.clone(), proof: Some(UnitsProof { assets, divisions }) }
}

#[pymethods]
impl Outcome {
    /// Valuations as exact decimal numbers, in the order of the book's symbols; `None` for assets without a price.
    #[getter]
    fn prices(&self) -> Vec<Option<String>> {
        let prices = self.clearing.valuations.iter().zip(&self.priced);
        prices.map(|(price, is_priced)| is_priced.then(|| price.to_string())).collect()
    }

    /// The trades as columns: positions of the assets sold and bought, and units sold.
    #[getter]
    fn trades(&self) -> [Vec<u8>; 3] {
        [
            self.trade_column(|t| u64::from(t.sell.0)),
            self.trade_column(|t| u64::from(t.buy.0)),
            self.trade_column(|t| t.sold),
        ]
    }

    /// What pools trade: their rows (from 1), positions of the assets given and received, and units of both.
    #[getter]
    fn pools(&self) -> Vec<(u32, u32, u32, u64, u64)> {
        self.clearing.pools.iter().map(|p| (p.pool + 1, p.sell.0, p.buy.0, p.sold, p.bought)).collect()
    }

    /// The buy orders that are filled: their rows (from 1), and units paid.
    #[getter]
    fn buys(&self) -> Vec<(u32, u64)> {
        self.clearing.exacts.iter().map(|purchase| (purchase.order + 1, purchase.other)).collect()
    }

    /// Whether every offer that must execute does.
    #[getter]
    fn full(&self) -> bool {
        self.clearing.full
    }

    /// The commission.
    #[getter]
    fn epsilon(&self) -> String {
        self.params.epsilon.to_string()
    }

    /// The band.
    #[getter]
    fn mu(&self) -> String {
        self.params.mu.to_string()
    }

    /// Utility left on the table over utility gained.
    #[getter]
    fn unrealized_utility_ratio(&self) -> f64 {
        self.clearing.report.unrealized_utility_ratio
    }

    /// Positions of the assets in short supply when the clearing is not full.
    #[getter]
    fn short(&self) -> Vec<u32> {
        self.clearing.report.obstacles.iter().flat_map(|obstacle| &obstacle.assets).map(|asset| asset.0).collect()
    }

    /// Why the clearing is not full, one name for each set of assets that trade together.
    #[getter]
    fn reasons(&self) -> Vec<&'static str> {
        self.clearing.report.obstacles.iter().map(|obstacle| obstacle.reason.name()).collect()
    }

    /// Proofs that no clearing is full.
    #[getter]
    fn proofs(&self) -> Vec<ProofRow> {
        let row = |proof: &UnitsProof| {
            let assets = proof.assets.iter().map(|asset| asset.0).collect();
            let divisions = proof.divisions.iter().map(|division| (division.offer, division.is_paid, division.most));
            (assets, divisions.collect())
        };
        self.clearing.report.obstacles.iter().filter_map(|obstacle| obstacle.proof.as_ref()).map(row).collect()
    }

    /// Name of the solver, iterations, demand queries, parts of the interior-point method, imbalance and seconds.
    #[getter]
    fn solver(&self) -> (&'static str, u32, u32, u32, f64, Option<f64>) {
        let Report { solver, iterations, demand_queries, interior_parts, imbalance, .. } = self.clearing.report;
        (solver.name(), iterations, demand_queries, interior_parts, imbalance, self.seconds)
    }

    /// What was spent: price vectors tried, rounds, augmentations, repairs; looks for prices and for amounts.
    #[getter]
    fn spending(&self) -> (u32, u32, u32, u32, u64, u64) {
        let Spending { price_looks, amount_looks, tries, rounds, augmentations, repairs } =
            self.clearing.report.spending;
        (tries, rounds, augmentations, repairs, price_looks, amount_looks)
    }
}
