//! What a node's state takes in memory and on disk: accounts, offers, slots of contracts; and what each transaction
//! leaves behind, in the log, the archive of receipts and the history in files.
//!
//! Bytes are differences of the whole process, resident before and after, so they contain the tries and what the
//! allocator keeps.

use std::path::Path;

use ledger::contracts::{EthereumKey, EthereumRequest};
use ledger::{BlockReceipts, Genesis, Ledger, Limits, Roots, Signatures};
use node::{receipts, write_checkpoint};
use primitives::{AssetId, SubBlock, Superblock};
use readers::history::{BalanceRow, HeldUnits, HistoryRow, balance_row, rows_of, touched};
use serde_json::{Value, json};
use store::{RealDisk, Runs, Store};

use crate::exchange::Error;
use crate::measurement::{BenchFolder, BenchResult, BenchSteps, Measurement, count};
use crate::population::{Population, block};
use crate::scaling::resident;
use crate::trading::Trading;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct RoomOptions {
    /// Accounts, each with two assets.
    #[arg(long, default_value_t = 200_000, value_parser = count(1_000..))]
    accounts: usize,
    /// Resting offers.
    #[arg(long, default_value_t = 400_000, value_parser = count(1_000..))]
    offers: usize,
    /// Slots of contracts.
    #[arg(long, default_value_t = 100_000, value_parser = count(1_000..))]
    slots: usize,
    /// Blocks of 10,000 transactions for what stays behind.
    #[arg(long, default_value_t = 10, value_parser = count(1..))]
    blocks: usize,
}

/// Memory and disk by accounts, offers, contracts' slots and history.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench room
  walras-lab bench room --accounts 1000000 --offers 2000000 --slots 1000000 --json")]
pub struct RoomArgs {
    #[command(flatten)]
    options: RoomOptions,
    #[command(flatten)]
    folder: BenchFolder,
}

impl Measurement for RoomArgs {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        self.folder.with(|folder| run(&self.options, folder, say))
    }
}

const ASSETS: u32 = 50;
/// Offers in a block that fills the book.
const FILL_BLOCK: usize = 100_000;
/// Transactions of a block that is measured.
const TRANSACTIONS: usize = 10_000;
/// Slots that one contract writes when it is made: as many as the gas of a transaction pays for.
const SLOTS_OF_ONE: usize = 700;
const GAS: u64 = 16_700_000;
/// Gas of a block: as many contracts as are made in one.
const BLOCK_GAS: u64 = 100 * GAS;
const GWEI: u128 = 1_000_000_000;

/// A ledger with its tries.
struct Room {
    ledger: Ledger,
    roots: Roots,
}

/// What one of so many takes.
fn row(what: &str, count: usize, memory: u64, disk: u64) -> Value {
    json!({ "what": what, "count": count, "resident_bytes_each": memory, "checkpoint_bytes_each": disk })
}

/// Bytes that one of `count` takes, of what was added in between.
fn each(before: u64, after: u64, count: usize) -> u64 {
    after.saturating_sub(before) / count.max(1) as u64
}

fn resident_bytes() -> Result<u64, Error> {
    Ok(resident().ok_or("no resident memory is told here")?.0)
}

fn run(options: &RoomOptions, folder: &Path, say: &mut BenchSteps) -> Result<Value, Error> {
    say("accounts");
    let population = Population::new(options.accounts, ASSETS, false);
    let genesis = genesis(&population);
    let empty = resident_bytes()?;
    let mut room = Room::new(&genesis)?;
    let with_accounts = resident_bytes()?;
    let checkpoint = room.checkpoint_bytes(&folder.join("accounts"))?;
    say("offers");
    let mut trading = Trading::new(population, ASSETS, 11);
    while room.ledger.book().len() < options.offers {
        let count = (options.offers - room.ledger.book().len()).min(FILL_BLOCK);
        let resting = trading.resting(&room.ledger, count);
        room.apply(block(&room.ledger, trading.population.sign(resting, None)))?;
    }
    let with_offers = resident_bytes()?;
    let with_offers_on_disk = room.checkpoint_bytes(&folder.join("offers"))?;
    say("what transactions leave behind");
    let left = room.left_behind(&mut trading, options.blocks, &folder.join("left"))?;
    say("slots of contracts");
    let (before, on_disk) = (resident_bytes()?, room.checkpoint_bytes(&folder.join("before"))?);
    let slots = room.write_slots(options.slots)?;
    let (after, then_on_disk) = (resident_bytes()?, room.checkpoint_bytes(&folder.join("slots"))?);
    let offers = room.ledger.book().len();
    Ok(json!({
        "rows": [
            row("account with two assets", options.accounts, each(empty, with_accounts, options.accounts),
                checkpoint / options.accounts as u64),
            row("resting offer", options.offers, each(with_accounts, with_offers, options.offers),
                each(checkpoint, with_offers_on_disk, options.offers)),
            row("slot of a contract", slots, each(before, after, slots), each(on_disk, then_on_disk, slots)),
        ],
        "offers_at_the_end": offers,
        "left_by_a_transaction": left,
    }))
}

fn payer() -> EthereumKey {
    EthereumKey::from_seed([0x2f; 32]).expect("a key")
}

fn genesis(population: &Population) -> Genesis {
    let mut genesis = population.genesis();
    let limits = Limits::default().with_contracts(1);
    genesis.limits = Limits { block_gas: BLOCK_GAS, sub_block_gas: BLOCK_GAS, ..limits };
    genesis.balances.push((payer().address(), AssetId(0), 1_000_000_000_000));
    genesis
}

impl Room {
    fn new(genesis: &Genesis) -> Result<Room, Error> {
        let ledger = Ledger::new(genesis)?;
        let roots = Roots::of(&ledger);
        let mut room = Room { ledger, roots };
        // A checkpoint follows a block.
        room.apply(block(&room.ledger, Vec::new()))?;
        Ok(room)
    }

    fn apply(&mut self, block: Superblock) -> Result<(Superblock, BlockReceipts), Error> {
        let block = Superblock { parent_root: self.roots.parts().root(), ..block };
        let applied = self.ledger.apply(&block, Signatures::Valid, &mut |_| {})?;
        self.roots.apply(&applied.changes);
        let receipts = receipts(&block, &applied);
        Ok((block, receipts))
    }

    /// Bytes of a checkpoint of the state.
    fn checkpoint_bytes(&self, folder: &Path) -> Result<u64, Error> {
        let (mut store, _) = Store::open(RealDisk::new(folder)?, store::Options::default())?;
        write_checkpoint(&self.ledger, store.begin_checkpoint(self.ledger.height())?)?;
        drop(store);
        let bytes = folder_bytes(folder)?;
        std::fs::remove_dir_all(folder)?;
        Ok(bytes)
    }

    /// Bytes that a transaction of the usual mix adds to log, archive and history.
    fn left_behind(&mut self, trading: &mut Trading, blocks: usize, folder: &Path) -> Result<Value, Error> {
        let (data, history) = (folder.join("data"), folder.join("history"));
        let (mut store, _) = Store::open(RealDisk::new(&data)?, store::Options::default())?;
        let rows = Runs::open(RealDisk::new(&history)?, [7; 32])?;
        rows.begin_after(self.ledger.height())?;
        let (mut log, mut transactions) = (0, 0);
        // The store counts from one, whatever stands in a block.
        for at in (1..).take(blocks) {
            let unsigned = trading.block(&self.ledger, TRANSACTIONS);
            transactions += unsigned.len();
            let (block, receipts) = self.apply(block(&self.ledger, trading.population.sign(unsigned, None)))?;
            let bytes = block.to_bytes();
            log += bytes.len() as u64;
            store.append(at, &bytes)?;
            store.append_receipts(at, &borsh::to_vec(&receipts)?)?;
            let mut all = rows_of(&block, &receipts, &[]);
            all.extend(self.balances(&block, &receipts));
            rows.add(block.height, all)?;
        }
        store.sync()?;
        rows.flush()?;
        let each = |bytes: u64| bytes / transactions.max(1) as u64;
        let stored = folder_bytes(&data)?;
        Ok(json!({
            "transactions": transactions, "log_bytes": each(log), "archive_bytes": each(stored.saturating_sub(log)),
            "history_bytes": each(folder_bytes(&history)?),
        }))
    }

    /// What the accounts that a block changed have after it, as a node's history keeps it.
    fn balances(&self, block: &Superblock, receipts: &BlockReceipts) -> Vec<HistoryRow> {
        let row = |(address, _)| {
            let account = self.ledger.accounts().get(&address)?.state();
            let held = account.balances.iter();
            let held = held.map(|(asset, units)| HeldUnits { asset: *asset, available: *units, locked: Some(0) });
            let row = BalanceRow { time_ms: block.time_ms, state: block.height, held: held.collect() };
            Some(balance_row(&address, block.height, &row))
        };
        touched(block, receipts, &[], false).into_iter().filter_map(row).collect()
    }

    /// Makes contracts that write slots; how many there are.
    fn write_slots(&mut self, least: usize) -> Result<usize, Error> {
        let contracts = least.div_ceil(SLOTS_OF_ONE);
        let numbers: Vec<u64> = (0..contracts as u64).collect();
        for some in numbers.chunks((BLOCK_GAS / GAS) as usize) {
            let ethereum = some.iter().map(|nonce| creation(*nonce)).collect();
            let sub_block = SubBlock { ethereum, ..SubBlock::default() };
            let block = Superblock { sub_blocks: vec![sub_block], ..block(&self.ledger, Vec::new()) };
            self.apply(block)?;
        }
        Ok(contracts * SLOTS_OF_ONE)
    }
}

/// A contract without code whose creation writes its slots: from their number down, each its own number.
fn creation(nonce: u64) -> Vec<u8> {
    let [high, low] = (SLOTS_OF_ONE as u16).to_be_bytes();
    let data = vec![0x61, high, low, 0x5b, 0x80, 0x80, 0x55, 0x60, 1, 0x90, 0x03, 0x80, 0x60, 3, 0x57, 0x00];
    payer().sign(&EthereumRequest { chain: 1, nonce, gas_limit: GAS, max_fee: 100 * GWEI, data, ..Default::default() })
}

/// Bytes of all files below a folder.
fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        sum += if entry.file_type()?.is_dir() { folder_bytes(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_written_and_everything_takes_some_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = RoomOptions { accounts: 1_000, offers: 2_000, slots: 1_000, blocks: 1 };
        let report = run(&options, folder.path(), &mut |_| ()).expect("measured");
        let rows = report["rows"].as_array().expect("rows");
        assert!(rows.iter().all(|row| row["checkpoint_bytes_each"].as_u64() > Some(20)), "{report}");
        assert_eq!(rows[2]["count"], 1_400);
        for left in ["log_bytes", "archive_bytes", "history_bytes"] {
            assert!(report["left_by_a_transaction"][left].as_u64() > Some(10), "{report}");
        }
    }
}
