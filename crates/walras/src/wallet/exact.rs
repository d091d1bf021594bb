//! `walras wallet exact`: orders for exact amounts.

use anyhow::{Context, ensure};
use client::Assets;
use primitives::{ClientId, ExactSide, Operation};

use crate::decimal::to_units;

/// What an exact order asks for: to buy or to sell.
#[derive(clap::Args)]
pub struct ExactTerms {
    /// Asset to buy exactly `--amount` of.
    #[arg(long, requires = "pay", requires = "most", conflicts_with = "sell", required_unless_present = "sell")]
    buy: Option<String>,
    /// Asset to sell exactly `--amount` of.
    #[arg(long, requires = "receive", requires = "least")]
    sell: Option<String>,
    /// Amount to buy or to sell, in whole assets.
    #[arg(long)]
    amount: String,
    /// Asset to pay with.
    #[arg(long, requires = "buy")]
    pay: Option<String>,
    /// The most to pay, in whole assets; it is locked for one block.
    #[arg(long, requires = "buy")]
    most: Option<String>,
    /// Asset to receive.
    #[arg(long, requires = "sell")]
    receive: Option<String>,
    /// The least to receive, in whole assets.
    #[arg(long, requires = "sell")]
    least: Option<String>,
}

impl ExactTerms {
    pub fn operation(&self, assets: &Assets, client: ClientId) -> anyhow::Result<Operation> {
        let (exact, side) = match (&self.buy, &self.sell) {
            (Some(buy), _) => (buy, ExactSide::Buy),
            (None, sell) => (sell.as_ref().context("give --buy or --sell")?, ExactSide::Sell),
        };
        let (other, bound) = match side {
            ExactSide::Buy => (&self.pay, &self.most),
            ExactSide::Sell => (&self.receive, &self.least),
        };
        let (exact, other) = (assets.find(exact)?, assets.find(other.as_ref().context("name the other asset")?)?);
        ensure!(exact.asset != other.asset, "an exact order is between two different assets");
        let units = to_units(&self.amount, exact.decimals)?;
        let bound = to_units(bound.as_ref().context("give the bound")?, other.decimals)?;
        ensure!(
            units >= exact.least_units,
            "--amount: an exact order is of at least {}",
            exact.money(exact.least_units)
        );
        ensure!(bound > 0, "the bound is zero: give at least one unit of {}", other.symbol);
        let (sell, buy) = match side {
            ExactSide::Buy => (other.asset, exact.asset),
            ExactSide::Sell => (exact.asset, other.asset),
        };
        Ok(Operation::Exact { sell, buy, side, units, bound, client })
    }
}
