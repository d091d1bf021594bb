//! Ethereum transactions, as JSON.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ErrorBody;

/// The place of an Ethereum transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EthereumBody {
    /// Its hash.
    pub hash: String,
    /// `pending` or `committed`.
    pub status: Cow<'static, str>,
    /// Its parameters; absent in the settlement receipt, and if its block is no longer kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<EthereumTransactionBody>,
    /// Its receipt, once it was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<EthereumReceiptBody>,
    /// The block's receipts root, if a proof was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts_root: Option<String>,
    /// The proof of the receipt, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// The parameters of an Ethereum transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EthereumTransactionBody {
    /// Its type: 0, 1, 2 or 4.
    #[serde(rename = "type")]
    pub kind: u8,
    /// The sender.
    pub sender: String,
    /// The called account; absent if it creates a contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its nonce.
    pub nonce: String,
    /// Wei sent.
    pub value: String,
    /// The gas limit.
    pub gas_limit: String,
    /// Maximum wei per unit of gas.
    pub max_fee: String,
    /// Input of the call, or code that creates the contract.
    pub input: String,
}

/// Limits of Ethereum's JSON-RPC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EthereumLimitsBody {
    /// Maximum size of a body, or of a WebSocket message, in bytes: a longer message ends its connection with code
    /// 1009.
    pub body_bytes: usize,
    /// Maximum number of requests in a batch.
    pub batch_requests: usize,
    /// Approximate maximum bytes of the answers to a body.
    pub answer_bytes: usize,
    /// Maximum gas of all calls of a body.
    pub calls_gas: String,
    /// Maximum gas of one call.
    pub call_gas: String,
    /// Maximum number of requests of an address that execute or scan and wait for their turn.
    pub waiting_of_one: usize,
    /// Maximum number of logs in an answer, or in a page of one.
    pub logs: usize,
    /// Maximum number of heights of a search for logs.
    pub log_heights: u64,
    /// Maximum number of addresses and topics that a search for logs names.
    pub log_alternatives: usize,
    /// Maximum number of filters.
    pub filters: usize,
    /// Maximum number of filters of an address.
    pub filters_of_one: usize,
    /// Maximum number of subscriptions of a WebSocket connection.
    pub subscriptions: usize,
}

/// What an Ethereum transaction returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EthereumOutputBody {
    /// Its hash.
    pub hash: String,
    /// `succeeded`, `reverted`, or `halted`.
    pub result: Cow<'static, str>,
    /// The first bytes of the returned data, or of the revert reason.
    pub output: String,
    /// The total number of bytes of that output.
    pub output_bytes: usize,
    /// Why it was halted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halt: Option<String>,
}

/// The contract phase of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EthereumBlockBody {
    /// Height.
    pub height: u64,
    /// The base fee in wei per unit of gas.
    pub base_fee: String,
    /// Gas paid for by all transactions.
    pub gas_used: String,
    /// Wei that were burnt: base fees, and wei destroyed by contracts.
    pub burnt: String,
    /// Transactions that were executed.
    pub executed: usize,
    /// Transactions that were skipped; they have no receipt.
    pub skipped: usize,
    /// In the order of execution, after the settlement receipt if there is one.
    pub transactions: Vec<EthereumExecutedBody>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// The summary of an executed Ethereum transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EthereumExecutedBody {
    /// Its hash.
    pub hash: String,
    /// Its position among the block's Ethereum transactions; absent in the settlement receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// The sender.
    pub sender: String,
    /// The called account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The created contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// Wei sent.
    pub value: String,
    /// The first four bytes of its input; in a call, the function.
    pub selector: String,
    /// `succeeded`, `reverted`, or `halted`.
    pub result: Cow<'static, str>,
    /// Gas paid for.
    pub gas_used: String,
    /// Number of logs.
    pub logs: usize,
}

/// The receipt of an Ethereum transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EthereumReceiptBody {
    /// Height of its block.
    pub height: u64,
    /// Its position among the block's Ethereum transactions, by sub-block and lane; absent in the settlement receipt
    /// of the block, which belongs to no transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// The sender.
    pub sender: String,
    /// `succeeded`, `reverted`, or `halted`: it ran out of gas or did something that is not allowed.
    pub result: Cow<'static, str>,
    /// Gas paid for.
    pub gas_used: String,
    /// Wei paid per unit of gas.
    pub gas_price: String,
    /// The created contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The logs, in order.
    pub logs: Vec<EthereumLogBody>,
}

/// A log of a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EthereumLogBody {
    /// The contract.
    pub address: String,
    /// Up to four topics.
    pub topics: Vec<String>,
    /// The data of the log.
    pub data: String,
}

/// Answers to a batch call, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EthereumResults {
    /// One for each transaction.
    pub results: Vec<EthereumResultBody>,
}

/// The answer to an Ethereum transaction of a batch call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum EthereumResultBody {
    /// It is pending or committed.
    Taken(Box<EthereumBody>),
    /// It is rejected.
    Error(ErrorBody),
}
