//! What comes out of a clearing.

use primitives::{Amount, AssetId, Price};

use crate::book::Solver;
use crate::order::Purchase;
use crate::pool::PoolTrade;

/// What is sold on one ordered pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// The asset sold.
    pub sell: AssetId,
    /// The asset bought.
    pub buy: AssetId,
    /// Units of `sell` that its offers give in all: exactly the sum of the fills, at least 1.
    pub sold: Amount,
}

/// Prices and trade amounts of one batch.
#[derive(Clone, Debug, Default)]
pub struct Clearing {
    /// A valuation for every asset; one unit of A trades for p_A/p_B units of B, before commission.
    pub valuations: Vec<Price>,
    /// Trades sorted by (sell, buy); only pairs that trade.
    pub trades: Vec<Trade>,
    /// What pools trade, by their position; only those that do.
    pub pools: Vec<PoolTrade>,
    /// The buy orders that are filled, by their position.
    pub buys: Vec<Purchase>,
    /// Whether every eligible offer with a limit price below (1−μ)·p_A/p_B executes in full.
    pub full: bool,
    /// How it was found and how good it is.
    pub report: Report,
}

/// How a clearing was found and how good it is. Nothing is decided by it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The price computation that ran.
    pub solver: Solver,
    /// Newton steps or Tâtonnement rounds.
    pub iterations: u32,
    /// Evaluations of the demand of the whole book.
    pub demand_queries: u32,
    /// The largest |units sold − units paid out before commission| over the larger of the two, over assets that trade,
    /// by the solver's smoothed demand.
    pub imbalance: f64,
    /// Utility left on the table over utility gained, of offers whose limit lies below the rate (SPEEDEX §6.2); 0 when
    /// there is none of either.
    pub unrealized_utility_ratio: f64,
    /// What the amount step spent.
    pub spending: Spending,
    /// What stood in the way of fullness; `None` when the clearing is full.
    pub obstacle: Option<Obstacle>,
}

/// What the amount step spent, over all price vectors that it was asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Price vectors for which amounts were computed.
    pub tries: u32,
    /// Searches for the shortest ways from shortages to surpluses.
    pub rounds: u32,
    /// Ways along which a shortage was moved in those.
    pub augmentations: u32,
    /// Shortages that were moved unit by unit, where fills give only some amounts.
    pub repairs: u32,
}

impl Spending {
    /// The sum of both.
    pub(crate) fn plus(self, other: Spending) -> Spending {
        Spending {
            tries: self.tries + other.tries,
            rounds: self.rounds + other.rounds,
            augmentations: self.augmentations + other.augmentations,
            repairs: self.repairs + other.repairs,
        }
    }
}

fn list(assets: &[AssetId]) -> String {
    assets.iter().map(AssetId::to_string).collect::<Vec<_>>().join(", ")
}

/// What stood in the way of fullness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// At the prices found, offers that must execute ask for more of these assets than offers that may execute give.
    #[error("at these prices, the offers that must execute ask for more of assets {} than may be sold", list(.0))]
    Short(Vec<AssetId>),
}

impl Obstacle {
    /// The obstacle as it is displayed, with the names that `name` gives to assets.
    pub fn in_words(&self, name: impl Fn(AssetId) -> String) -> String {
        let Obstacle::Short(assets) = self;
        let names: Vec<String> = assets.iter().map(|asset| name(*asset)).collect();
        format!("offers that must execute ask for more than may be sold of {}", names.join(", "))
    }
}
