//! Ethereum transactions, as JSON.

use ledger::contracts::{EthereumLog, EthereumReceipt};
use primitives::{Height, TransactionId, to_hex};
use serde::Serialize;
use utoipa::ToSchema;

use super::ErrorBody;

/// Where an Ethereum transaction is.
#[derive(Debug, Serialize, ToSchema)]
pub struct EthereumBody {
    /// Its hash.
    pub hash: String,
    /// `pending` or `committed`.
    pub status: &'static str,
    /// What it came to, once it was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<EthereumReceiptBody>,
    /// The block's receipts root, if a proof was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts_root: Option<String>,
    /// The proof of the receipt, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// What an Ethereum transaction came to.
#[derive(Debug, Serialize, ToSchema)]
pub struct EthereumReceiptBody {
    /// Height of its block.
    pub height: u64,
    /// Its position among the block's Ethereum transactions, by sub-block and lane; absent in the settlement receipt of
    /// the block, which is of no transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Who sent it.
    pub sender: String,
    /// `succeeded`, `reverted`, or `halted`: it ran out of gas or did what is not allowed.
    pub result: &'static str,
    /// Gas that it paid for.
    pub gas_used: String,
    /// Wei that it paid for a unit of gas.
    pub gas_price: String,
    /// The contract that it created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// What contracts logged, in order.
    pub logs: Vec<EthereumLogBody>,
}

/// A log of a contract.
#[derive(Debug, Serialize, ToSchema)]
pub struct EthereumLogBody {
    /// The contract.
    pub address: String,
    /// Up to four topics.
    pub topics: Vec<String>,
    /// What else it says.
    pub data: String,
}

/// Answers to a batch call, in order.
#[derive(Debug, Serialize, ToSchema)]
pub struct EthereumResults {
    /// One for each transaction.
    pub results: Vec<EthereumResultBody>,
}

/// What an Ethereum transaction of a batch call is answered.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum EthereumResultBody {
    /// It waits, or is committed.
    Taken(EthereumBody),
    /// It is refused.
    Error(ErrorBody),
}

impl EthereumBody {
    /// Of one that waits for a block.
    pub fn pending(id: &TransactionId) -> EthereumBody {
        EthereumBody { hash: id.to_string(), status: "pending", receipt: None, receipts_root: None, proof: None }
    }

    /// Of one that was executed.
    pub fn committed(height: Height, receipt: &EthereumReceipt) -> EthereumBody {
        let pending = EthereumBody::pending(&receipt.id);
        EthereumBody { status: "committed", receipt: Some(EthereumReceiptBody::of(height, receipt)), ..pending }
    }
}

impl EthereumReceiptBody {
    fn of(height: Height, receipt: &EthereumReceipt) -> EthereumReceiptBody {
        EthereumReceiptBody {
            height,
            position: receipt.position,
            sender: receipt.sender.to_string(),
            result: receipt.status.name(),
            gas_used: receipt.gas_used.to_string(),
            gas_price: receipt.gas_price.to_string(),
            contract: receipt.contract.map(|contract| contract.to_string()),
            logs: receipt.logs.iter().map(EthereumLogBody::of).collect(),
        }
    }
}

impl EthereumLogBody {
    fn of(log: &EthereumLog) -> EthereumLogBody {
        let hex = |bytes: &[u8]| format!("0x{}", to_hex(bytes));
        EthereumLogBody {
            address: log.address.to_string(),
            topics: log.topics.iter().map(|topic| hex(topic)).collect(),
            data: hex(&log.data),
        }
    }
}
