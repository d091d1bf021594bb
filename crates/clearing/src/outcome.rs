//! The output of a clearing.

use std::fmt;

use primitives::{Amount, AssetId, Price};

use crate::book::{Book, Solver};
use crate::budget::Spending;
use crate::market::Groups;
use crate::order::ExactFill;
use crate::pool::PoolTrade;
use crate::units::UnitsProof;

/// The amount sold on one ordered pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// The asset sold.
    pub sell: AssetId,
    /// The asset bought.
    pub buy: AssetId,
    /// Total units of `sell` that its offers give: exactly the sum of the fills, at least 1.
    pub sold: Amount,
}

/// Prices and trade amounts of one batch.
#[derive(Clone, Debug, Default)]
pub struct Clearing {
    /// A valuation for every asset; one unit of A trades for p_A/p_B units of B, before commission. Those of assets
    /// without a price mean nothing, see [`Clearing::prices`].
    pub valuations: Vec<Price>,
    /// Trades sorted by (sell, buy); only pairs that trade.
    pub trades: Vec<Trade>,
    /// The trades of pools, by their position; only of those that trade.
    pub pools: Vec<PoolTrade>,
    /// The filled exact orders, by their position.
    pub exacts: Vec<ExactFill>,
    /// Whether every offer for which [`crate::Rate::must_fill`] is true, on pairs inside a group, executes in full.
    pub full: bool,
    /// The groups in which some does not, each by its lowest asset, ascending; none if and only if the clearing is
    /// full.
    pub short: Vec<AssetId>,
    /// How it was found and how good it is.
    pub report: Report,
}

impl Clearing {
    /// The price of every asset of `book`; `None` for those that no chain of offers leads back to: their valuations
    /// mean nothing.
    pub fn prices(&self, book: &Book) -> Vec<Option<Price>> {
        let priced = Groups::of_book(book).priced();
        self.valuations.iter().zip(priced).map(|(price, is_priced)| is_priced.then_some(*price)).collect()
    }
}

/// How a clearing was found and how good it is. No decision depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The price computation that ran.
    pub solver: Solver,
    /// Newton steps or Tâtonnement rounds.
    pub iterations: u32,
    /// Evaluations of the demand of the whole book.
    pub demand_queries: u32,
    /// Parts of the market that the interior-point method priced, or tried to; Newton's method priced the others.
    pub interior_parts: u32,
    /// The largest |units sold − units paid out before commission| divided by the larger of the two, over assets that
    /// trade, from the solver's smoothed demand.
    pub imbalance: f64,
    /// Unrealized utility divided by realized utility, of offers whose limit is below the rate (SPEEDEX §6.2); 0 if
    /// there is neither. Offers between assets without a common price cannot trade and do not count.
    pub unrealized_utility_ratio: f64,
    /// The work spent.
    pub spending: Spending,
    /// The obstacles to fullness, one entry for each set of assets that trade together; empty when the clearing is
    /// full.
    pub obstacles: Vec<Obstacle>,
}

/// Why offers that must execute do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Prices balance supply and demand, but no whole units follow them: amounts are of few units, or units are dear.
    /// Where [`Obstacle::proof`] is given, no whole units follow any other prices either.
    Units,
    /// Prices are at the ends of the range of [`Price`]: the offers ask for prices that are further apart than the
    /// range.
    Range,
    /// The price computation used up its budget without a solution. The best prices found are used.
    Prices,
    /// The amount step used up its budget. These assets do not trade.
    Amounts,
}

impl Reason {
    /// A short name that identifies the reason for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Units => "units",
            Reason::Range => "range",
            Reason::Prices => "prices",
            Reason::Amounts => "amounts",
        }
    }
}

/// An obstacle to fullness among assets that trade together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The reason.
    pub reason: Reason,
    /// The assets for which offers that must execute ask for more than may be sold. If the amount step used up its
    /// budget, all assets that would trade together.
    pub assets: Vec<AssetId>,
    /// If the reason is [`Reason::Units`]: a proof that no clearing of the group of these assets is full, if one was
    /// found.
    pub proof: Option<UnitsProof>,
}

impl Obstacle {
    /// The obstacle as one clause; `name` gives the name of an asset.
    pub fn in_words(&self, name: impl Fn(AssetId) -> String) -> String {
        let names = self.assets.iter().map(|asset| name(*asset)).collect::<Vec<_>>().join(", ");
        let short = format!("offers that must execute ask for more than may be sold of {names}");
        match self.reason {
            Reason::Units if self.proof.is_some() => format!("{short}, as no whole units follow any prices"),
            Reason::Units => format!("{short}, as no whole units were found that follow the prices"),
            Reason::Range => format!("{short}, as prices are at the ends of their range"),
            Reason::Prices => format!("{short}, as no better prices were found within the budget"),
            Reason::Amounts => format!("nothing trades of {names}, as the amount step spent its budget"),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(|asset| format!("asset {asset}")))
    }
}
