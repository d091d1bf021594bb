//! `walras wallet pool`: opening a constant-product pool, providing to one, leaving it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use api::{HoldingBody, HoldingsBody, PoolBody, PoolsBody};
use client::{Assets, Listed, NodeClient};
use ledger::{PoolRecord, pool_keeps, pool_pays};
use primitives::{Address, Amount, Operation, PoolKey, PoolOperation};
use serde_json::json;

use super::account;
use super::send::Sender;
use super::server::Server;
use crate::decimal::to_units;

/// Parts of a thousand that the reserves may move, unless the user says otherwise, before a transaction is in a block.
const SLACK: u32 = 10;

/// Constant-product pools: they trade in every batch, and what they earn belongs to their shares.
#[derive(clap::Subcommand)]
pub enum PoolCommand {
    /// Open a pool. It takes one of few places for ever, and costs the fees of a thousand transactions. 1/256 of both
    /// amounts stays in the pool for ever, whoever leaves it.
    #[command(after_help = "Example, at 1.08 USD for a EUR:
  walras wallet pool open --key alice.json --pair USD/EUR --amounts 10800,10000")]
    Open {
        #[command(flatten)]
        pool: Named,
        /// Amounts of both assets, in whole assets; their ratio is the pool's first price.
        #[arg(long, value_name = "AMOUNT,AMOUNT")]
        amounts: String,
        #[command(flatten)]
        sender: Sender,
    },
    /// Buy shares of a pool: as many as these amounts pay for at its present ratio.
    #[command(after_help = "Example:
  walras wallet pool provide --key alice.json --pair USD/EUR --amounts 1080,1000")]
    Provide {
        #[command(flatten)]
        pool: Named,
        /// The most to pay of both assets, in whole assets. What is not needed returns.
        #[arg(long, value_name = "AMOUNT,AMOUNT")]
        amounts: String,
        /// Parts of a thousand that the reserves may rise until the transaction is in a block.
        #[arg(long, default_value_t = SLACK)]
        slack: u32,
        #[command(flatten)]
        sender: Sender,
    },
    /// Give shares back, and receive their part of both reserves.
    #[command(after_help = "Examples:
  walras wallet pool leave --key alice.json --pair USD/EUR --all
  walras wallet pool leave --key alice.json --pair USD/EUR --shares 1000000")]
    Leave {
        #[command(flatten)]
        pool: Named,
        /// Shares to give back.
        #[arg(long, required_unless_present = "all")]
        shares: Option<u64>,
        /// All that the account holds.
        #[arg(long, conflicts_with = "shares")]
        all: bool,
        /// Parts of a thousand that the reserves may fall until the transaction is in a block.
        #[arg(long, default_value_t = SLACK)]
        slack: u32,
        #[command(flatten)]
        sender: Sender,
    },
    /// Show all pools, or what an account holds in them.
    #[command(after_help = "Examples:\n  walras wallet pool list\n  walras wallet pool list --key alice.json")]
    List {
        /// The account; by default the key's, and without a key all pools.
        address: Option<Address>,
        /// The key file.
        #[arg(long)]
        key: Option<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
}

/// A pool by the symbols of its assets.
#[derive(clap::Args)]
pub struct Named {
    /// Both assets, in any order: amounts are in the same order.
    #[arg(long, value_name = "ASSET/ASSET")]
    pair: String,
    /// The fee class; `walras wallet pool list` shows their fees.
    #[arg(long, default_value_t = 0)]
    class: u8,
}

/// A pool's key, and its assets in the order in which the user names them.
struct PoolAsNamed<'a> {
    key: PoolKey,
    named: [&'a Listed; 2],
}

impl Named {
    fn find<'a>(&self, assets: &'a Assets) -> anyhow::Result<PoolAsNamed<'a>> {
        let (one, other) = self.pair.split_once('/').context("--pair: name two assets, such as USD/EUR")?;
        let named = [assets.find(one)?, assets.find(other)?];
        let (a, b) = (named[0].asset.min(named[1].asset), named[0].asset.max(named[1].asset));
        ensure!(a != b, "--pair: a pool is between two different assets");
        Ok(PoolAsNamed { key: PoolKey { a, b, class: self.class }, named })
    }
}

impl PoolAsNamed<'_> {
    /// Units of `a` and of `b`, of amounts in the user's order.
    fn units(&self, amounts: &str) -> anyhow::Result<[Amount; 2]> {
        let (one, other) = amounts.split_once(',').context("--amounts: give two, such as 1080,1000")?;
        let units = [to_units(one.trim(), self.named[0].decimals)?, to_units(other.trim(), self.named[1].decimals)?];
        Ok(if self.named[0].asset == self.key.a { units } else { [units[1], units[0]] })
    }

    /// Whether an answer of the API tells of this pool.
    fn is(&self, body: &PoolBody, assets: &Assets) -> bool {
        let is_asset = |symbol: &str, asset| assets.find(symbol).is_ok_and(|listed| listed.asset == asset);
        body.class == self.key.class && is_asset(&body.a, self.key.a) && is_asset(&body.b, self.key.b)
    }

    /// The pool as it is now.
    fn record(&self, node: &NodeClient, assets: &Assets) -> anyhow::Result<PoolRecord> {
        let all: PoolsBody = node.get("/v1/pools")?;
        let found = all.pools.iter().find(|body| self.is(body, assets));
        record(found.context("there is no such pool: `walras wallet pool list` shows all, `pool open` opens one")?)
    }
}

fn record(body: &PoolBody) -> anyhow::Result<PoolRecord> {
    let (a, b) = (body.reserve_a.parse()?, body.reserve_b.parse()?);
    Ok(PoolRecord { a, b, shares: body.shares.parse()? })
}

fn on_pool(operation: PoolOperation) -> Operation {
    Operation::Pool(Box::new(operation))
}

/// The most shares that these units pay for, if the reserves rise by `slack` thousandths.
fn affordable(pool: &PoolRecord, [most_a, most_b]: [Amount; 2], slack: u32) -> u64 {
    let shares = |most: Amount, reserve: Amount| {
        u128::from(most) * u128::from(pool.shares) / u128::from(reserve) * 1_000 / u128::from(1_000 + slack)
    };
    u64::try_from(shares(most_a, pool.a).min(shares(most_b, pool.b))).unwrap_or(u64::MAX)
}

/// Units less `slack` thousandths.
fn less(units: Amount, slack: u32) -> Amount {
    (u128::from(units) * u128::from(1_000u32.saturating_sub(slack)) / 1_000) as Amount
}

impl PoolCommand {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            PoolCommand::Open { pool, amounts, sender } => sender.send(json, |_, _, assets| {
                let found = pool.find(assets)?;
                let [x, y] = found.units(&amounts)?;
                let (kept_x, kept_y) = pool_keeps(x, y);
                let kept = |of: &Listed| of.money(if of.asset == found.key.a { kept_x } else { kept_y });
                let [one, other] = found.named.map(kept);
                eprintln!("of these {one} and {other} stay in the pool for ever: 1/256 of both belongs to nobody");
                Ok(on_pool(PoolOperation::Open { pool: found.key, x, y }))
            }),
            PoolCommand::Provide { pool, amounts, slack, sender } => sender.send(json, |server, _, assets| {
                let found = pool.find(assets)?;
                let most = found.units(&amounts)?;
                let shares = affordable(&found.record(&server.node(), assets)?, most, slack);
                ensure!(shares > 0, "--amounts: they pay for no share of the pool: raise both");
                let [most_a, most_b] = most;
                Ok(on_pool(PoolOperation::Provide { pool: found.key, shares, most_a, most_b }))
            }),
            PoolCommand::Leave { pool, shares, all: _, slack, sender } => sender.send(json, |server, own, assets| {
                let (found, node) = (pool.find(assets)?, server.node());
                let held: HoldingsBody = node.get(&format!("/v1/accounts/{own}/pools"))?;
                let held = held.holdings.into_iter().find(|holding| found.is(&holding.pool, assets));
                let held = held.context("this account holds no shares of this pool: see `walras wallet pool list`")?;
                let (own, pool) = (held.shares.parse()?, record(&held.pool)?);
                let shares = shares.unwrap_or(own);
                ensure!(shares <= own, "--shares: this account holds {own}");
                let (a, b) = pool_pays(&pool, shares);
                let (least_a, least_b) = (less(a, slack), less(b, slack));
                Ok(on_pool(PoolOperation::Leave { pool: found.key, shares, least_a, least_b }))
            }),
            PoolCommand::List { address: None, key: None, server } => {
                let (node, all) = (server.node(), server.node().get::<PoolsBody>("/v1/pools")?);
                if json {
                    println!("{}", serde_json::to_string(&all)?);
                } else {
                    let assets = node.assets()?;
                    println!("{} pools; fees by class: {}", all.pools.len(), all.fees.join(", "));
                    all.pools.iter().for_each(|pool| println!("  {}", pool_in_words(pool, &assets)));
                }
                Ok(ExitCode::SUCCESS)
            }
            PoolCommand::List { address, key, server } => {
                let address = account(address, key, &server)?;
                let node = server.node();
                let held: HoldingsBody = node.get(&format!("/v1/accounts/{address}/pools"))?;
                if json {
                    println!("{}", json!({"account": address.to_string(), "holdings": held.holdings}));
                } else {
                    let assets = node.assets()?;
                    println!("{} holds shares of {} pools", address.checked(), held.holdings.len());
                    held.holdings.iter().for_each(|holding| println!("  {}", holding_in_words(holding, &assets)));
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn pool_in_words(pool: &PoolBody, assets: &Assets) -> String {
    let (a, b) = (assets.money(&pool.reserve_a, &pool.a), assets.money(&pool.reserve_b, &pool.b));
    let awake = || format!("{} and {}", assets.money(&pool.awake_a, &pool.a), assets.money(&pool.awake_b, &pool.b));
    let asleep = if pool.asleep { format!("; asleep: too small to trade until it has {}", awake()) } else { "".into() };
    format!("{}/{} class {}: {a} and {b}, {} shares{asleep}", pool.a, pool.b, pool.class, pool.shares)
}

fn holding_in_words(holding: &HoldingBody, assets: &Assets) -> String {
    let HoldingBody { pool, shares, pays_a, pays_b } = holding;
    let (a, b) = (assets.money(pays_a, &pool.a), assets.money(pays_b, &pool.b));
    format!("{}/{} class {}: {shares} of {} shares, worth {a} and {b}", pool.a, pool.b, pool.class, pool.shares)
}

#[cfg(test)]
mod tests {
    use ledger::pool_cost;

    use super::*;

    #[test]
    fn what_is_affordable_costs_no_more() {
        for (a, b, shares) in [(1_000, 3_000, 1 << 24), (1 << 50, 7, 1 << 24), (5, 1 << 60, (1 << 24) + 12_345)] {
            let pool = PoolRecord { a, b, shares };
            for most in [[1, 1], [999, 10_000], [1 << 40, 1 << 61]] {
                for slack in [0, 10, 5_000] {
                    let bought = affordable(&pool, most, slack);
                    if bought > 0 {
                        let (cost_a, cost_b) = pool_cost(&pool, bought).expect("exists");
                        assert!(cost_a <= most[0] && cost_b <= most[1], "{pool:?} {most:?} {bought}");
                    }
                }
            }
        }
        assert_eq!((less(1_000, 10), less(7, 2_000), less(u64::MAX >> 1, 0)), (990, 0, u64::MAX >> 1));
    }
}
