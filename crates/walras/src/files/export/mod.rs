//! `walras export`: a store's history as Parquet files, one folder per day, for general analysis tools.
//!
//! ```text
//! OUT/blocks/day=2026-11-21/blocks.parquet        a row per block
//! OUT/prices/day=2026-11-21/prices.parquet        a row per block and asset: the valuation
//! OUT/trades/day=2026-11-21/trades.parquet        a row per fill of an offer
//! OUT/orders/day=2026-11-21/orders.parquet        a row per order to place or replace an offer: life, outcome
//! OUT/exacts/day=2026-11-21/exacts.parquet        a row per order for an exact amount, and its outcome
//! OUT/ended/day=2026-11-21/ended.parquet          a row per offer that left the book otherwise than by trading
//! OUT/transfers/day=2026-11-21/transfers.parquet  a row per account whose units a native operation moved; reference
//! OUT/offers/day=2026-11-21/offers.parquet        a row per offer that rests, after the day's last block
//! OUT/balances/day=2026-11-21/balances.parquet    a row per account and asset, after the day's last block
//! OUT/assets/assets.parquet                       a row per asset: symbol, decimals, issuer, least size of an offer
//! ```
//!
//! For a chain with pools also:
//!
//! ```text
//! OUT/pool_trades/day=2026-11-21/pool_trades.parquet  a row per pool and batch in which it traded
//! OUT/pools/day=2026-11-21/pools.parquet          a row per pool, after the day's last block
//! OUT/holdings/day=2026-11-21/holdings.parquet    a row per account and pool of which it has shares
//! ```
//!
//! For a chain with contracts also:
//!
//! ```text
//! OUT/receipts/day=2026-11-21/receipts.parquet    a row per Ethereum transaction that was executed
//! OUT/logs/day=2026-11-21/logs.parquet            a row per log
//! OUT/contracts/day=2026-11-21/contracts.parquet  a row per account with a nonce, code, storage or wei below a unit
//! ```
//!
//! A day is a UTC day by the proposers' clocks. A block whose clock went back belongs to the day of the block before
//! it, so a day is a range of heights. Amounts are integer units, beside the decimals of their asset: divided by
//! 10^decimals they are whole assets. Numbers of offers and nonces are unsigned: contracts' offers begin at 2^63.
//! An order's `outcome` is `placed`, `replaced`, `superseded`, the reason of an exact order (`filled` is one), or the
//! code of its refusal; then nothing moved. `sold` and `bought` of `orders` are those of the first batch, the rest is
//! in `trades`. Prices are exact decimals as text, in units, with doubles beside them. A valuation is a traded price
//! only where `traded` is true: others are kept from earlier batches, or were never paid by anybody.

pub mod cells;
pub mod contracts;
pub mod operations;
pub mod pools;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use chrono::{Days, NaiveDate};
use doors::json::Symbols;
use indicatif::{ProgressBar, ProgressStyle};
use ledger::{Asset, Batch, BlockReceipts, Genesis, Ledger};
use node::{Replay, begin, restore};
use primitives::{Address, AssetId, Digest, Superblock};
use serde_json::json;
use store::{Archive, RealDisk, View};

use crate::files::parquet_files::{Cell, Table};
use cells::{AssetCells, TIME};
use contracts::{LOGS, RECEIPTS, write_contracts, write_receipts};
use operations::{OperationTables, write_offers};
use pools::{POOL_TRADES, write_pool_trades, write_pools};

const DAY_MS: u64 = 86_400_000;

const BLOCKS: [&str; 10] = [
    "required int64 height",
    TIME,
    "required binary block (STRING)",
    "required binary parent (STRING)",
    "optional binary state_root (STRING)",
    "required int64 transactions",
    "required int64 applied",
    "required int64 fills",
    "required int64 pairs",
    "required boolean full",
];
const PRICES: [&str; 7] = [
    "required int64 height",
    TIME,
    "required binary asset (STRING)",
    "required binary valuation (STRING)",
    "required double value",
    "required int64 decimals",
    "required boolean traded",
];
const TRADES: [&str; 14] = [
    "required int64 height",
    TIME,
    "required binary sell (STRING)",
    "required binary buy (STRING)",
    "required int64 sold",
    "required int64 bought",
    "required int64 left",
    "required int64 returned",
    "required double rate",
    "required binary min_price (STRING)",
    "required binary account (STRING)",
    "required int64 offer (INTEGER(64,false))",
    "required int64 sell_decimals",
    "required int64 buy_decimals",
];
const BALANCES: [&str; 6] = [
    "required int64 height",
    "required binary account (STRING)",
    "required binary asset (STRING)",
    "required int64 available",
    "required int64 locked",
    "required int64 decimals",
];
const ASSETS: [&str; 5] = [
    "required int64 asset",
    "required binary symbol (STRING)",
    "required int64 decimals",
    "required binary issuer (STRING)",
    "required int64 least_units",
];

/// Writes blocks, trades, prices and balances of a home as Parquet files by day; a node may run on it meanwhile.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras export --home ./exchange --out ./history
  walras export --home ./exchange --out ./history --from 2026-11-20 --no-balances
  duckdb -c \"select sell, buy, sum(sold) from 'history/trades/*/*.parquet' group by all\"

A day that was exported before is written again.")]
pub struct Export {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// Directory to write to.
    #[arg(long)]
    out: PathBuf,
    /// First day, as YYYY-MM-DD in UTC.
    #[arg(long, value_parser = parse_day)]
    from: Option<u64>,
    /// Last day.
    #[arg(long, value_parser = parse_day)]
    to: Option<u64>,
    /// Skip balances, resting offers, pools and holdings, and with them the replay of all blocks.
    #[arg(long)]
    no_balances: bool,
}

impl Export {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let genesis = ::founding::genesis_file::read(&self.home.join("genesis.json"))
            .with_context(|| format!("{} is no home", self.home.display()))?;
        let data = self.home.join("data");
        let disk = RealDisk::existing(&data).with_context(|| format!("{} holds no store yet", data.display()))?;
        let view = store::view(disk)?;
        let (first, last) = (view.first, view.last);
        ensure!(first <= last, "no block has been committed yet: there is nothing to export");
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} blocks, {eta} left").expect("a sound template");
        let progress = ProgressBar::new(last + 1 - first).with_style(style);
        let mut history = History::new(&self, &genesis, view)?;
        for height in first..=last {
            history.add_block(height)?;
            progress.inc(1);
        }
        history.finish_day()?;
        history.write_assets()?;
        progress.finish_and_clear();
        if json {
            println!("{}", json!({"out": self.out, "first": first, "last": last, "rows": history.rows}));
        } else {
            history.rows.iter().for_each(|(table, rows)| println!("{table:<11} {rows:>12} rows"));
            println!("{}: heights {first} to {last}", self.out.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The files of the day that is being written.
struct Day {
    blocks: Table,
    prices: Table,
    trades: Table,
    operations: OperationTables,
    /// What pools traded, for a chain with pools.
    pools: Option<Table>,
    /// Receipts and logs, for a chain with contracts.
    contracts: Option<(Table, Table)>,
}

/// The sources that are read, and the tables that are written.
struct History<'a> {
    export: &'a Export,
    archive: Archive<RealDisk>,
    symbols: Symbols,
    has_contracts: bool,
    has_pools: bool,
    /// The identity of the network, to which envelopes are sealed; one node alone has none.
    network: Digest,
    /// The assets: those after the last block, or, without a replay, those of the newest state.
    assets: AssetCells,
    /// The state, if balances are wanted.
    replay: Option<Replay>,
    /// The day of the last block, in days since 1970, and its files if it is wanted.
    day: u64,
    files: Option<Day>,
    /// Rows written, by table.
    rows: BTreeMap<&'static str, u64>,
}

/// Writes a row per fill of an offer.
fn write_trades(
    (height, time_ms): (u64, u64),
    batch: &Batch,
    (symbols, assets): (&Symbols, &AssetCells),
    table: &mut Table,
) -> anyhow::Result<()> {
    let value = |asset: AssetId| batch.valuations[asset.0 as usize].to_f64();
    for fill in &batch.fills {
        table.push([
            height.into(),
            time_ms.into(),
            Cell::Text(symbols.name(fill.pair.sell)),
            Cell::Text(symbols.name(fill.pair.buy)),
            fill.sold.into(),
            fill.bought.into(),
            fill.left.into(),
            fill.returned.into(),
            Cell::Real(value(fill.pair.sell) / value(fill.pair.buy)),
            Cell::Text(fill.place.limit.to_string()),
            Cell::Text(fill.place.account.to_string()),
            fill.place.id.into(),
            assets.decimals(fill.pair.sell),
            assets.decimals(fill.pair.buy),
        ])?;
    }
    Ok(())
}

impl<'a> History<'a> {
    fn new(export: &'a Export, genesis: &Genesis, view: View<RealDisk>) -> anyhow::Result<History<'a>> {
        let replay = (!export.no_balances).then(|| state_before(genesis, &view).map(Replay::new)).transpose()?;
        let assets =
            replay.as_ref().map_or_else(|| newest_assets(genesis, &view), |one| Ok(one.ledger.assets().to_vec()));
        let assets = AssetCells(assets?);
        let symbols = Symbols::of(&assets.0);
        let has_contracts = genesis.limits.has_contracts();
        let has_pools = genesis.pools.is_some();
        let network = genesis.membership.as_ref().map(|membership| membership.terms.network).unwrap_or_default();
        let of_contracts = ["receipts", "logs", "contracts"].iter().filter(|_| has_contracts);
        let of_pools = ["pool_trades", "pools", "holdings"].iter().filter(|_| has_pools);
        let tables =
            ["blocks", "prices", "trades", "orders", "exacts", "ended", "transfers", "offers", "balances", "assets"];
        let rows = tables.iter().chain(of_contracts).chain(of_pools).map(|table| (*table, 0)).collect();
        let (archive, day, files) = (view.archive, 0, None);
        Ok(History { has_contracts, has_pools, export, archive, symbols, network, assets, replay, day, files, rows })
    }

    fn add_block(&mut self, height: u64) -> anyhow::Result<()> {
        let bytes = self.archive.block(height)?.with_context(|| format!("block {height} is no longer in the store"))?;
        let block: Superblock = borsh::from_slice(&bytes).with_context(|| format!("block {height}"))?;
        let day = (block.time_ms / DAY_MS).max(self.day);
        if day != self.day {
            self.finish_day()?;
            self.day = day;
            self.files = self.is_wanted(day).then(|| self.begin_day(day)).transpose()?;
        }
        if let Some(replay) = &mut self.replay {
            replay.step(height, &bytes, None)?;
        }
        if self.files.is_some() {
            self.write(&block)?;
        }
        self.learn();
        Ok(())
    }

    /// Learns the assets that a block listed from the state after it. Of those that a vote lists no receipt tells.
    fn learn(&mut self) {
        let Some(assets) = self.replay.as_ref().map(|replay| replay.ledger.assets()) else { return };
        if assets.len() > self.assets.0.len() {
            (self.assets, self.symbols) = (AssetCells(assets.to_vec()), Symbols::of(assets));
        }
    }

    fn is_wanted(&self, day: u64) -> bool {
        self.export.from.is_none_or(|from| day >= from) && self.export.to.is_none_or(|to| day <= to)
    }

    fn file(&self, table: &str, day: u64) -> PathBuf {
        self.export.out.join(format!("{table}/day={}/{table}.parquet", day_name(day)))
    }

    fn begin_day(&self, day: u64) -> anyhow::Result<Day> {
        let contracts = || {
            let receipts = Table::create(&self.file("receipts", day), &RECEIPTS)?;
            Ok::<_, anyhow::Error>((receipts, Table::create(&self.file("logs", day), &LOGS)?))
        };
        let pools = || Table::create(&self.file("pool_trades", day), &POOL_TRADES);
        Ok(Day {
            operations: OperationTables::create(|table| self.file(table, day))?,
            pools: self.has_pools.then(pools).transpose()?,
            contracts: self.has_contracts.then(contracts).transpose()?,
            blocks: Table::create(&self.file("blocks", day), &BLOCKS)?,
            prices: Table::create(&self.file("prices", day), &PRICES)?,
            trades: Table::create(&self.file("trades", day), &TRADES)?,
        })
    }

    fn write(&mut self, block: &Superblock) -> anyhow::Result<()> {
        let height = block.height;
        let Some(bytes) = self.archive.receipts(height)? else {
            bail!("the receipts of block {height} are not archived yet: try again shortly");
        };
        let receipts: BlockReceipts = borsh::from_slice(&bytes).with_context(|| format!("receipts {height}"))?;
        let state_root = self.state_root(height)?;
        let files = self.files.as_mut().expect("a wanted day");
        let time = || Cell::from(block.time_ms);
        let applied = receipts.outcomes.iter().filter(|(_, outcome)| outcome.refusal().is_none()).count();
        let batch = &receipts.batch;
        files.blocks.push([
            height.into(),
            time(),
            Cell::Text(receipts.block.to_string()),
            Cell::Text(block.parent.to_string()),
            Cell::Maybe(state_root.map(|root| root.to_string())),
            (receipts.outcomes.len() as u64).into(),
            (applied as u64).into(),
            (batch.fills.len() as u64).into(),
            (batch.trades.len() as u64).into(),
            Cell::Flag(batch.full()),
        ])?;
        let offers = batch.trades.iter().flat_map(|trade| [trade.pair.sell, trade.pair.buy]);
        let exacts = batch.exacts.iter().flat_map(|trade| [trade.pair.sell, trade.pair.buy]);
        let pools = batch.pools.iter().flat_map(|fill| [fill.pool.a, fill.pool.b]);
        let traded: BTreeSet<AssetId> = offers.chain(exacts).chain(pools).collect();
        let valuations = batch.valuations.iter().zip((0..).map(AssetId));
        for (valuation, asset) in valuations {
            files.prices.push([
                height.into(),
                time(),
                Cell::Text(self.symbols.name(asset)),
                Cell::Text(valuation.to_string()),
                Cell::Real(valuation.to_f64()),
                self.assets.decimals(asset),
                Cell::Flag(traded.contains(&asset)),
            ])?;
        }
        write_trades((height, block.time_ms), batch, (&self.symbols, &self.assets), &mut files.trades)?;
        files.operations.write(&self.network, block, &receipts, &self.assets)?;
        if let Some(pools) = &mut files.pools {
            write_pool_trades((height, block.time_ms), batch, &self.assets, pools)?;
        }
        match &mut files.contracts {
            Some((executed, logs)) => write_receipts(block, &receipts.contracts, executed, logs),
            None => Ok(()),
        }
    }

    /// Writes the assets with their decimals, the units of all amounts.
    fn write_assets(&mut self) -> anyhow::Result<()> {
        let mut table = Table::create(&self.export.out.join("assets/assets.parquet"), &ASSETS)?;
        for (number, asset) in self.assets.0.iter().enumerate() {
            table.push([
                (number as u64).into(),
                Cell::Text(asset.symbol.clone()),
                u64::from(asset.decimals).into(),
                Cell::Text(asset.issuer.to_string()),
                asset.least_units.into(),
            ])?;
        }
        self.rows.insert("assets", table.count);
        table.finish()
    }

    /// The root of the state after a block: the next block contains it. For the last block only a replay knows it.
    fn state_root(&self, height: u64) -> anyhow::Result<Option<Digest>> {
        if let Some(replay) = &self.replay {
            return Ok(Some(replay.root));
        }
        let Some(next) = self.archive.block(height + 1)? else { return Ok(None) };
        let next: Superblock = borsh::from_slice(&next).with_context(|| format!("block {}", height + 1))?;
        Ok(Some(next.parent_root))
    }

    fn finish_day(&mut self) -> anyhow::Result<()> {
        let Some(Day { blocks, prices, trades, operations, pools, contracts }) = self.files.take() else {
            return Ok(());
        };
        let of_contracts = contracts.into_iter().flat_map(|(receipts, logs)| [("receipts", receipts), ("logs", logs)]);
        let of_pools = pools.into_iter().map(|table| ("pool_trades", table));
        let of_all = [("blocks", blocks), ("prices", prices), ("trades", trades)].into_iter().chain(operations.named());
        for (name, table) in of_all.chain(of_pools).chain(of_contracts) {
            *self.rows.entry(name).or_default() += table.count;
            table.finish()?;
        }
        if let Some(replay) = &self.replay {
            let rows = write_balances(&replay.ledger, &self.symbols, &self.file("balances", self.day))?;
            *self.rows.entry("balances").or_default() += rows;
            let rows = write_offers(&replay.ledger, &self.assets, &self.file("offers", self.day))?;
            *self.rows.entry("offers").or_default() += rows;
            if let Some(pools) = replay.ledger.pools() {
                let written = write_pools(&replay.ledger, pools, &self.assets, |table| self.file(table, self.day))?;
                written.iter().for_each(|(table, rows)| *self.rows.entry(table).or_default() += rows);
            }
            if self.has_contracts {
                let rows = write_contracts(&replay.ledger, &self.file("contracts", self.day))?;
                *self.rows.entry("contracts").or_default() += rows;
            }
        }
        Ok(())
    }
}

/// The state before the first block in the store.
fn state_before(genesis: &Genesis, view: &View<RealDisk>) -> anyhow::Result<Ledger> {
    if view.first == 1 {
        return Ok(Ledger::new(genesis)?);
    }
    let checkpoint = view.archive.checkpoint(view.first - 1)?.with_context(|| {
        format!(
            "the store has no blocks before height {} and no checkpoint of the state before it: use --no-balances",
            view.first
        )
    })?;
    Ok(restore(checkpoint)?)
}

/// The assets of the newest state: its checkpoint, and what follows in the store. No number ever means another asset.
fn newest_assets(genesis: &Genesis, view: &View<RealDisk>) -> anyhow::Result<Vec<Asset>> {
    let mut replay = Replay::new(begin(view.archive.newest_checkpoint()?, genesis)?);
    for height in replay.ledger.height() + 1..=view.last {
        let block = view.archive.block(height)?;
        replay.step(height, &block.with_context(|| format!("block {height} is no longer in the store"))?, None)?;
    }
    Ok(replay.ledger.assets().to_vec())
}

/// Writes all balances of all accounts; returns the number of rows.
fn write_balances(ledger: &Ledger, symbols: &Symbols, path: &Path) -> anyhow::Result<u64> {
    let mut locked: HashMap<(Address, AssetId), u64> = HashMap::new();
    for (pair, offers) in ledger.book().iter() {
        offers.iter().for_each(|offer| *locked.entry((offer.place.account, pair.sell)).or_default() += offer.amount);
    }
    let mut table = Table::create(path, &BALANCES)?;
    for shard in ledger.accounts().shards() {
        for account in shard.sorted() {
            let state = account.state();
            for number in 0..ledger.assets().len() as u32 {
                let asset = AssetId(number);
                let locked = locked.get(&(state.address, asset)).copied().unwrap_or(0);
                let available = account.balance(asset);
                if available > 0 || locked > 0 {
                    let account = Cell::Text(state.address.to_string());
                    let asset = Cell::Text(symbols.name(asset));
                    let decimals = u64::from(ledger.assets()[number as usize].decimals);
                    let row =
                        [ledger.height().into(), account, asset, available.into(), locked.into(), decimals.into()];
                    table.push(row)?;
                }
            }
        }
    }
    let rows = table.count;
    table.finish()?;
    Ok(rows)
}

/// The number of days from 1970 to a day.
fn parse_day(text: &str) -> Result<u64, String> {
    let day =
        NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| format!("{text:?} is not a day such as 2026-11-21"))?;
    u64::try_from((day - NaiveDate::default()).num_days()).map_err(|_| "a day before 1970".into())
}

/// The inverse; a clock beyond the calendar gives the calendar's last day.
fn day_name(days: u64) -> String {
    NaiveDate::default().checked_add_days(Days::new(days)).unwrap_or(NaiveDate::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_the_names_that_people_use() {
        for (days, name) in [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_778, "2026-11-21")] {
            assert_eq!((day_name(days).as_str(), parse_day(name)), (name, Ok(days)));
        }
        for wrong in ["2026-02-29", "2026-13-01", "yesterday", "1969-12-31", "2026-11-21-1", ""] {
            assert!(parse_day(wrong).is_err(), "{wrong}");
        }
    }
}
