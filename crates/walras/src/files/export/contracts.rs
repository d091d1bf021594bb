//! The tables of `walras export` about contracts.

use std::path::Path;

use ledger::Ledger;
use ledger::contracts::ContractReceipts;
use primitives::{Digest, Superblock, to_hex};

use crate::files::export::cells::TIME;
use crate::files::parquet_files::{Cell, Table};
use crate::inspect::evm_accounts;

pub const RECEIPTS: [&str; 11] = [
    "required int64 height",
    TIME,
    "required int64 position",
    "required binary hash (STRING)",
    "required binary sender (STRING)",
    "optional binary contract (STRING)",
    "required binary result (STRING)",
    "required int64 gas_used (INTEGER(64,false))",
    "required binary gas_price (STRING)",
    "required int64 base_fee (INTEGER(64,false))",
    "required int64 logs",
];
pub const LOGS: [&str; 10] = [
    "required int64 height",
    TIME,
    "required binary hash (STRING)",
    "required int64 log",
    "required binary address (STRING)",
    "optional binary topic0 (STRING)",
    "optional binary topic1 (STRING)",
    "optional binary topic2 (STRING)",
    "optional binary topic3 (STRING)",
    "required binary data (STRING)",
];
const CONTRACTS: [&str; 7] = [
    "required int64 height",
    "required binary account (STRING)",
    "required int64 nonce (INTEGER(64,false))",
    "optional binary code_hash (STRING)",
    "required boolean is_contract",
    "required int64 slots",
    "required int64 wei_below_a_unit",
];

/// The results of the Ethereum transactions of a block, and their logs.
pub fn write_receipts(
    block: &Superblock,
    contracts: &ContractReceipts,
    receipts: &mut Table,
    logs: &mut Table,
) -> anyhow::Result<()> {
    let (height, time) = (|| Cell::from(block.height), || Cell::from(block.time_ms));
    let hex = |bytes: &[u8]| format!("0x{}", to_hex(bytes));
    for receipt in &contracts.receipts {
        let hash = || Cell::Text(receipt.id.to_string());
        receipts.push([
            height(),
            time(),
            // The settlement receipt belongs to no transaction.
            Cell::Int(receipt.position.map_or(-1, i64::from)),
            hash(),
            Cell::Text(receipt.sender.to_string()),
            Cell::Maybe(receipt.contract.map(|contract| contract.to_string())),
            Cell::Text(receipt.status.name().into()),
            receipt.gas_used.into(),
            Cell::Text(receipt.gas_price.to_string()),
            contracts.base_fee.into(),
            (receipt.logs.len() as u64).into(),
        ])?;
        for (number, log) in (0u64..).zip(&receipt.logs) {
            let topic = |at: usize| Cell::Maybe(log.topics.get(at).map(|topic| hex(topic)));
            logs.push([
                height(),
                time(),
                hash(),
                number.into(),
                Cell::Text(log.address.to_string()),
                topic(0),
                topic(1),
                topic(2),
                topic(3),
                Cell::Text(hex(&log.data)),
            ])?;
        }
    }
    Ok(())
}

/// Writes the Ethereum data of accounts beside their balances; returns the number of rows.
pub fn write_contracts(ledger: &Ledger, path: &Path) -> anyhow::Result<u64> {
    let mut table = Table::create(path, &CONTRACTS)?;
    for (address, evm, slots) in evm_accounts(ledger) {
        table.push([
            ledger.height().into(),
            Cell::Text(address.to_string()),
            evm.nonce.into(),
            Cell::Maybe((evm.code != Digest::default()).then(|| evm.code.to_string())),
            Cell::Flag(evm.is_contract),
            slots.into(),
            evm.remainder.into(),
        ])?;
    }
    let rows = table.count;
    table.finish()?;
    Ok(rows)
}
