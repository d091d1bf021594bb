//! The tables of `walras export` about pools: what they traded, what they hold, and whose shares they are.

use ledger::{Batch, Ledger, Pools};

use super::cells::{AssetCells, TIME};
use crate::files::parquet_files::{Cell, Table};

pub const POOL_TRADES: [&str; 10] = [
    "required int64 height",
    TIME,
    "required binary sell (STRING)",
    "required binary buy (STRING)",
    "required int64 class",
    "required int64 sold",
    "required int64 bought",
    "required double rate",
    "required int64 sell_decimals",
    "required int64 buy_decimals",
];
const POOLS: [&str; 10] = [
    "required int64 height",
    "required binary a (STRING)",
    "required binary b (STRING)",
    "required int64 class",
    "required binary fee (STRING)",
    "required int64 reserve_a",
    "required int64 reserve_b",
    "required int64 shares (INTEGER(64,false))",
    "required int64 a_decimals",
    "required int64 b_decimals",
];
const HOLDINGS: [&str; 6] = [
    "required int64 height",
    "required binary account (STRING)",
    "required binary a (STRING)",
    "required binary b (STRING)",
    "required int64 class",
    "required int64 shares (INTEGER(64,false))",
];

/// What pools traded in a batch. The rate is the batch's, without the commission.
pub fn write_pool_trades(
    (height, time_ms): (u64, u64),
    batch: &Batch,
    assets: &AssetCells,
    table: &mut Table,
) -> anyhow::Result<()> {
    for fill in &batch.pools {
        let value = |asset: primitives::AssetId| batch.valuations[asset.0 as usize].to_f64();
        table.push([
            height.into(),
            time_ms.into(),
            assets.symbol(fill.sell()),
            assets.symbol(fill.buy()),
            u64::from(fill.pool.class).into(),
            fill.sold.into(),
            fill.bought.into(),
            Cell::Real(value(fill.sell()) / value(fill.buy())),
            assets.decimals(fill.sell()),
            assets.decimals(fill.buy()),
        ])?;
    }
    Ok(())
}

/// Writes pools and holdings, into the files of these two tables; returns the numbers of rows.
pub fn write_pools(
    ledger: &Ledger,
    pools: &Pools,
    assets: &AssetCells,
    file: impl Fn(&str) -> std::path::PathBuf,
) -> anyhow::Result<[(&'static str, u64); 2]> {
    let height = || Cell::from(ledger.height());
    let mut table = Table::create(&file("pools"), &POOLS)?;
    for (key, record) in pools.iter() {
        table.push([
            height(),
            assets.symbol(key.a),
            assets.symbol(key.b),
            u64::from(key.class).into(),
            Cell::Text(pools.fee(key).to_string()),
            record.a.into(),
            record.b.into(),
            record.shares.into(),
            assets.decimals(key.a),
            assets.decimals(key.b),
        ])?;
    }
    let mut holdings = Table::create(&file("holdings"), &HOLDINGS)?;
    for ((key, account), shares) in pools.holdings() {
        holdings.push([
            height(),
            Cell::Text(account.to_string()),
            assets.symbol(key.a),
            assets.symbol(key.b),
            u64::from(key.class).into(),
            (*shares).into(),
        ])?;
    }
    let rows = [("pools", table.count), ("holdings", holdings.count)];
    table.finish()?;
    holdings.finish()?;
    Ok(rows)
}
