//! Blocks, transactions and receipts.

use std::sync::Arc;

use ledger::contracts::ethereum::{B256, U256};
use ledger::contracts::{
    AccessList, Bloom, EthereumLog, EthereumParts, EthereumReceipt, EthereumTransaction, EvmStatus,
};
use primitives::{Address, Digest, Height, Superblock, TransactionId};
use serde_json::{Value, json};

use super::Session;
use super::params::Params;
use super::values::{data, quantity, read_u64};
use super::wire::{Answer, RpcError};
use crate::kit::transaction_at;
use readers::cache::ProvenReceipts;

/// A block in the form that Ethereum sees: the executed transactions, in the order of execution.
pub(super) struct EthereumBlock {
    pub height: Height,
    pub digest: Digest,
    /// The base fee in wei per unit of gas.
    pub base_fee: u64,
    gas_limit: u64,
    /// The values of COINBASE and PREVRANDAO in contracts. Without a developer's choice there is no one coinbase.
    miner: Address,
    random: B256,
    /// `None` for the genesis, which is not a block.
    pub body: Option<Arc<Superblock>>,
    receipts: Option<Arc<ProvenReceipts>>,
}

impl EthereumBlock {
    pub fn receipts(&self) -> &[EthereumReceipt] {
        self.receipts.as_ref().map_or(&[], |proven| &proven.receipts.contracts.receipts)
    }

    pub fn gas_used(&self) -> u64 {
        self.receipts.as_ref().map_or(0, |proven| proven.receipts.contracts.gas_used())
    }

    /// The bytes of an executed transaction, with the index of its sub-block; `None` for the settlement receipt.
    pub fn transaction(&self, receipt: &EthereumReceipt) -> Option<(usize, &[u8])> {
        transaction_at(self.body.as_ref()?, receipt.position?)
    }

    /// The settlement receipt is shown as an unsigned transaction of type 0 that calls the offers contract without
    /// input.
    fn parts(&self, receipt: &EthereumReceipt) -> Result<EthereumParts, RpcError> {
        if receipt.position.is_none() {
            return Ok(EthereumParts::unsigned(receipt.sender));
        }
        let (_, bytes) = self.transaction(receipt).ok_or_else(damaged)?;
        Ok(EthereumTransaction::decode(bytes).map_err(|_| damaged())?.parts())
    }

    /// The tips that transactions paid per unit of gas, at percentiles of the block's gas.
    pub fn tips(&self, percentiles: &[f64]) -> Value {
        let tip = |receipt: &EthereumReceipt| receipt.gas_price.saturating_sub(self.base_fee.into());
        let paid = self.receipts().iter().filter(|receipt| receipt.position.is_some());
        let mut tips: Vec<(u128, u64)> = paid.map(|one| (tip(one), one.gas_used)).collect();
        tips.sort_unstable();
        let total = self.gas_used() as f64;
        let mut rest = tips.into_iter().peekable();
        let (mut below, mut last) = (0, 0);
        let at = |percentile: &f64| {
            while let Some((tip, gas)) = rest.next_if(|_| (below as f64) < total * percentile / 100.0 || below == 0) {
                below += gas;
                last = tip;
            }
            quantity(last)
        };
        percentiles.iter().map(at).collect::<Vec<_>>().into()
    }

    /// Seconds since 1970; zero for the genesis.
    pub fn time(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.time_ms / 1_000)
    }

    /// The header.
    pub fn header(&self) -> Value {
        let (parent, state_root) = match &self.body {
            Some(body) => (body.parent, body.parent_root),
            None => (Digest::default(), Digest::default()),
        };
        let (receipts_root, bloom) = match &self.receipts {
            Some(proven) => (proven.root, proven.receipts.contracts.bloom()),
            None => (Digest::default(), Bloom([0; 256])),
        };
        json!({
            "number": quantity(self.height),
            "hash": data(self.digest.0),
            "parentHash": data(parent.0),
            "timestamp": quantity(self.time()),
            "gasLimit": quantity(self.gas_limit),
            "gasUsed": quantity(self.gas_used()),
            "baseFeePerGas": quantity(self.base_fee),
            "miner": data(self.miner.0),
            "stateRoot": data(state_root.0),
            "transactionsRoot": data(if self.receipts().is_empty() { NO_TRANSACTIONS } else { self.digest.0 }),
            "receiptsRoot": data(receipts_root.0),
            "logsBloom": data(bloom.0),
            "mixHash": data(self.random),
            "extraData": "0x",
            "nonce": "0x0000000000000000",
            "difficulty": "0x0",
            "sha3Uncles": data(NO_UNCLES),
        })
    }

    /// The block, with its transactions or their hashes.
    pub fn to_json(&self, chain: u64, is_full: bool) -> Answer {
        let mut block = self.header();
        let transactions: Vec<Value> = match is_full {
            false => self.receipts().iter().map(|receipt| data(receipt.id.0)).collect(),
            true => (0..self.receipts().len()).map(|at| self.transaction_json(chain, at)).collect::<Result<_, _>>()?,
        };
        block["transactions"] = transactions.into();
        block["uncles"] = json!([]);
        block["size"] = quantity(self.size());
        Ok(block)
    }

    /// Bytes of the Ethereum transactions of the block, including skipped ones.
    fn size(&self) -> u64 {
        let lanes = self.body.iter().flat_map(|body| &body.sub_blocks).flat_map(|sub| &sub.ethereum);
        lanes.map(|bytes| bytes.len() as u64).sum()
    }

    /// The transaction at this index, which must exist.
    pub fn transaction_json(&self, chain: u64, at: usize) -> Answer {
        let receipt = &self.receipts()[at];
        let mut transaction = transaction_json(&self.parts(receipt)?, receipt.id, &receipt.sender, chain);
        transaction["blockHash"] = data(self.digest.0);
        transaction["blockNumber"] = quantity(self.height);
        transaction["blockTimestamp"] = quantity(self.time());
        transaction["transactionIndex"] = quantity(at as u64);
        transaction["gasPrice"] = quantity(receipt.gas_price);
        Ok(transaction)
    }

    /// All receipts.
    pub fn receipts_json(&self) -> Result<Vec<Value>, RpcError> {
        let (mut gas, mut logs) = (0, 0);
        let one = |(at, receipt): (usize, &EthereumReceipt)| {
            gas += receipt.gas_used;
            let first_log = logs;
            logs += receipt.logs.len();
            self.receipt_with(at, receipt, gas, first_log)
        };
        self.receipts().iter().enumerate().map(one).collect()
    }

    /// The receipt at this index, which must exist.
    fn receipt_json(&self, at: usize) -> Answer {
        let until = &self.receipts()[..=at];
        let (gas, first_log) = (until.iter().map(|one| one.gas_used).sum(), self.first_log(at));
        self.receipt_with(at, &until[at], gas, first_log)
    }

    /// Number of logs of the block before those of a receipt.
    pub fn first_log(&self, at: usize) -> usize {
        self.receipts()[..at].iter().map(|one| one.logs.len()).sum()
    }

    fn receipt_with(&self, at: usize, receipt: &EthereumReceipt, gas: u64, first_log: usize) -> Answer {
        let parts = self.parts(receipt)?;
        let logs = receipt.logs.iter().enumerate();
        let logs: Vec<Value> = logs.map(|(log, of)| self.log_json(at, receipt, first_log + log, of)).collect();
        Ok(json!({
            "transactionHash": data(receipt.id.0),
            "transactionIndex": quantity(at as u64),
            "blockHash": data(self.digest.0),
            "blockNumber": quantity(self.height),
            "from": data(receipt.sender.0),
            "to": parts.to.map(|to| data(to.0)),
            "contractAddress": receipt.contract.map(|contract| data(contract.0)),
            "cumulativeGasUsed": quantity(gas),
            "gasUsed": quantity(receipt.gas_used),
            "effectiveGasPrice": quantity(receipt.gas_price),
            "status": if receipt.status == EvmStatus::Succeeded { "0x1" } else { "0x0" },
            "type": quantity(u64::from(parts.kind)),
            "logsBloom": data(Bloom::of(receipt.logs.iter()).0),
            "logs": logs,
        }))
    }

    /// A log, with its index in the block.
    pub fn log_json(&self, at: usize, receipt: &EthereumReceipt, number: usize, log: &EthereumLog) -> Value {
        json!({
            "address": data(log.address.0),
            "topics": log.topics.iter().map(data).collect::<Vec<_>>(),
            "data": data(&log.data),
            "blockHash": data(self.digest.0),
            "blockNumber": quantity(self.height),
            "blockTimestamp": quantity(self.time()),
            "transactionHash": data(receipt.id.0),
            "transactionIndex": quantity(at as u64),
            "logIndex": quantity(number as u64),
            "removed": false,
        })
    }
}

/// Keccak of an empty list.
pub(super) const NO_UNCLES: [u8; 32] = [
    0x1d, 0xcc, 0x4d, 0xe8, 0xde, 0xc7, 0x5d, 0x7a, 0xab, 0x85, 0xb5, 0x67, 0xb6, 0xcc, 0xd4, 0x1a, 0xd3, 0x12, 0x45,
    0x1b, 0x94, 0x8a, 0x74, 0x13, 0xf0, 0xa1, 0x42, 0xfd, 0x40, 0xd4, 0x93, 0x47,
];

/// The root of a block without transactions: clients that compare it with the list refuse every other one.
const NO_TRANSACTIONS: [u8; 32] = [
    0x56, 0xe8, 0x1f, 0x17, 0x1b, 0xcc, 0x55, 0xa6, 0xff, 0x83, 0x45, 0xe6, 0x92, 0xc0, 0xf8, 0x6e, 0x5b, 0x48, 0xe0,
    0x1b, 0x99, 0x6c, 0xad, 0xc0, 0x01, 0x62, 0x2f, 0xb5, 0xe3, 0x63, 0xb4, 0x21,
];

fn damaged() -> RpcError {
    RpcError::internal("the block and its receipts do not match")
}

/// A transaction that is in no block, by its bytes.
pub(super) fn unmined_json(bytes: &[u8], hash: B256, from: &Address, chain: u64) -> Answer {
    let transaction = EthereumTransaction::decode(bytes).map_err(|_| damaged())?;
    Ok(transaction_json(&transaction.parts(), Digest(hash.0), from, chain))
}

/// A transaction that is in no block yet.
fn transaction_json(parts: &EthereumParts, id: TransactionId, from: &Address, chain: u64) -> Value {
    // A legacy signature carries its chain. Nobody signed a settlement: clients take a signature that is zero as a
    // whole, and refuse one that is zero in part.
    let v = match (parts.kind, parts.chain) {
        _ if parts.r.is_zero() && parts.s.is_zero() => U256::ZERO,
        (0, Some(chain)) => U256::from(chain) * U256::from(2) + U256::from(35 + u64::from(parts.y_is_odd)),
        (0, None) => U256::from(27 + u64::from(parts.y_is_odd)),
        _ => U256::from(u64::from(parts.y_is_odd)),
    };
    let mut transaction = json!({
        "type": quantity(u64::from(parts.kind)),
        "hash": data(id.0),
        "chainId": quantity(parts.chain.unwrap_or(chain)),
        "from": data(from.0),
        "to": parts.to.map(|to| data(to.0)),
        "nonce": quantity(parts.nonce),
        "gas": quantity(parts.gas_limit),
        "gasPrice": quantity(parts.max_fee),
        "value": quantity(parts.value),
        "input": data(&parts.input),
        "v": quantity(v),
        "r": quantity(parts.r),
        "s": quantity(parts.s),
        "blockHash": null,
        "blockNumber": null,
        "transactionIndex": null,
    });
    if parts.kind != 0 {
        transaction["yParity"] = quantity(u64::from(parts.y_is_odd));
    }
    if let Some(tip) = parts.max_tip {
        transaction["maxFeePerGas"] = quantity(parts.max_fee);
        transaction["maxPriorityFeePerGas"] = quantity(tip);
    }
    if let Some(list) = &parts.access_list {
        transaction["accessList"] = access_list_json(list);
    }
    if let Some(authorizations) = &parts.authorizations {
        let one = |signed: &ledger::contracts::SignedAuthorization| {
            json!({
                "chainId": quantity(*signed.chain_id()),
                "address": data(signed.address()),
                "nonce": quantity(signed.nonce()),
                "yParity": quantity(u64::from(signed.y_parity())),
                "r": quantity(signed.r()),
                "s": quantity(signed.s()),
            })
        };
        transaction["authorizationList"] = authorizations.iter().map(one).collect::<Vec<_>>().into();
    }
    transaction
}

pub(super) fn access_list_json(list: &AccessList) -> Value {
    let one = |item: &ledger::contracts::AccessListItem| {
        let keys: Vec<Value> = item.storage_keys.iter().map(|key: &B256| data(key)).collect();
        json!({"address": data(item.address), "storageKeys": keys})
    };
    list.0.iter().map(one).collect::<Vec<_>>().into()
}

impl Session<'_> {
    /// The digest of the state that the first block builds on; `None` if the first block is no longer held.
    pub(super) fn genesis_digest(&self) -> Result<Option<Digest>, RpcError> {
        let outline = self.rpc.outline();
        if outline.height == 0 {
            return Ok(Some(outline.block));
        }
        Ok(self.rpc.api.backend.block(1)?.map(|block| block.parent))
    }

    /// A published block; `None` if it does not exist yet, or is no longer held.
    pub(super) fn load(&self, height: Height) -> Result<Option<EthereumBlock>, RpcError> {
        let terms = self.terms()?;
        if height > self.latest() {
            return Ok(None);
        }
        let backend = &self.rpc.api.backend;
        if height == 0 {
            let Some(digest) = self.genesis_digest()? else { return Ok(None) };
            let (base_fee, gas_limit) = (terms.first_base_fee, terms.block_gas);
            let (miner, random) = (Address::default(), B256::ZERO);
            let (body, receipts) = (None, None);
            return Ok(Some(EthereumBlock { height, digest, base_fee, gas_limit, miner, random, body, receipts }));
        }
        let (Some(body), Some(receipts)) = (backend.block(height)?, backend.receipts(height)?) else {
            return Ok(None);
        };
        let seen = backend.ethereum_context(&body, usize::MAX, 0).block;
        Ok(Some(EthereumBlock {
            height,
            digest: receipts.receipts.block,
            base_fee: receipts.receipts.contracts.base_fee,
            gas_limit: seen.gas_limit,
            miner: Address(seen.beneficiary.0.0),
            random: seen.prevrandao.unwrap_or_default(),
            body: Some(body),
            receipts: Some(receipts),
        }))
    }

    /// The block that a parameter names by number or tag.
    pub(super) fn by_number(&self, params: &Params) -> Result<Option<EthereumBlock>, RpcError> {
        let height = params.read(0, |value| self.named(value))?;
        height.map_or(Ok(None), |height| self.load(height))
    }

    /// The block that a parameter names by its hash.
    pub(super) fn by_hash(&self, params: &Params) -> Result<Option<EthereumBlock>, RpcError> {
        self.height_of(&params.digest(0)?).map_or(Ok(None), |height| self.load(height))
    }

    /// The block that contains a transaction, and the transaction's index.
    pub(super) fn block_of(&self, id: &TransactionId) -> Result<Option<(EthereumBlock, usize)>, RpcError> {
        let place = self.rpc.api.published().views().ethereum().receipt(id);
        let Some(place) = place else { return Ok(None) };
        Ok(self.load(place.height)?.map(|block| (block, place.receipt as usize)))
    }

    /// A transaction, executed or pending; null if it is neither.
    pub(super) fn transaction(&self, id: &TransactionId) -> Answer {
        // It may leave the pool for a block between two looks.
        if let Some((bytes, sender)) = self.rpc.api.backend.ethereum_waiting(id) {
            return self.pending_json(id, &bytes, &sender);
        }
        let Some((block, at)) = self.block_of(id)? else { return Ok(Value::Null) };
        block.transaction_json(self.chain(), at)
    }

    /// A pending transaction.
    pub(super) fn pending_json(&self, id: &TransactionId, bytes: &[u8], sender: &Address) -> Answer {
        let transaction = EthereumTransaction::decode(bytes).map_err(|_| damaged())?;
        Ok(transaction_json(&transaction.parts(), *id, sender, self.chain()))
    }

    pub(super) fn chain(&self) -> u64 {
        self.rpc.outline().chain
    }

    /// The receipt of a transaction; null if no published block has it.
    pub(super) fn receipt(&self, id: &TransactionId) -> Answer {
        let found = self.block_of(id)?;
        found.map_or(Ok(Value::Null), |(block, at)| block.receipt_json(at))
    }

    fn full(&self, block: Option<EthereumBlock>, params: &Params) -> Answer {
        let is_full = params.bool(1)?;
        block.map_or(Ok(Value::Null), |block| block.to_json(self.chain(), is_full))
    }

    fn at_index(&self, block: Option<EthereumBlock>, params: &Params) -> Answer {
        let at = params.read(1, read_u64)?;
        let Some(block) = block else { return Ok(Value::Null) };
        match usize::try_from(at).ok().filter(|at| *at < block.receipts().len()) {
            Some(at) => block.transaction_json(self.chain(), at),
            None => Ok(Value::Null),
        }
    }
}

fn count(block: Option<EthereumBlock>) -> Answer {
    Ok(block.map_or(Value::Null, |block| quantity(block.receipts().len() as u64)))
}

pub(super) fn get_block_by_number(session: &Session, params: &Params) -> Answer {
    session.full(session.by_number(params)?, params)
}

pub(super) fn get_block_by_hash(session: &Session, params: &Params) -> Answer {
    session.full(session.by_hash(params)?, params)
}

pub(super) fn get_block_transaction_count_by_number(session: &Session, params: &Params) -> Answer {
    count(session.by_number(params)?)
}

pub(super) fn get_block_transaction_count_by_hash(session: &Session, params: &Params) -> Answer {
    count(session.by_hash(params)?)
}

pub(super) fn get_transaction_by_block_number_and_index(session: &Session, params: &Params) -> Answer {
    session.at_index(session.by_number(params)?, params)
}

pub(super) fn get_transaction_by_block_hash_and_index(session: &Session, params: &Params) -> Answer {
    session.at_index(session.by_hash(params)?, params)
}

pub(super) fn get_block_receipts(session: &Session, params: &Params) -> Answer {
    let height = params.read(0, |value| match read_u64(value) {
        // A hash is written like a number, but does not fit into 64 bits.
        Err(_) if value.as_str().is_some_and(|text| text.len() == 66) => {
            Ok(session.height_of(&super::values::read_digest(value)?))
        }
        _ => session.named(value),
    })?;
    let block = height.map_or(Ok(None), |height| session.load(height))?;
    block.map_or(Ok(Value::Null), |block| Ok(block.receipts_json()?.into()))
}

/// A transaction of a block, or a pending one.
pub(super) fn get_transaction_by_hash(session: &Session, params: &Params) -> Answer {
    session.transaction(&params.digest(0)?)
}

pub(super) fn get_transaction_receipt(session: &Session, params: &Params) -> Answer {
    session.receipt(&params.digest(0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strict clients take a signature that is zero as a whole, as nobody's, and refuse one that is zero in part.
    #[test]
    fn a_settlement_has_a_signature_that_is_zero_as_a_whole() {
        let at = Address([7; 20]);
        let shown = transaction_json(&EthereumParts::unsigned(at), Digest([1; 32]), &at, 31_337);
        assert_eq!(["v", "r", "s"].map(|part| shown[part].clone()), ["0x0"; 3].map(Value::from));
    }
}
