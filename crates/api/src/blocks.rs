//! Blocks, batches, transactions and their outcomes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{CertificateBody, ErrorBody, OperationBody, PoolFillBody};

/// Recent blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BlocksBody {
    /// Newest first.
    pub blocks: Vec<BlockBody>,
}

/// The summary of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BlockBody {
    /// Height.
    pub height: u64,
    /// Digest.
    pub block: String,
    /// Digest of the block below.
    pub parent: String,
    /// The proposer's clock, milliseconds since 1970.
    pub time_ms: u64,
    /// Validators whose sub-blocks are in the block, by index.
    pub proposers: Vec<u32>,
    /// Native transactions.
    pub transactions: usize,
    /// Transactions that took effect.
    pub applied: usize,
    /// Transactions that the filter removed.
    pub refused: usize,
    /// Ethereum transactions that were executed.
    pub ethereum: usize,
    /// Offers that executed.
    pub fills: usize,
    /// Pairs that traded.
    pub pairs: usize,
    /// Whether every offer that had to fill was filled.
    pub full: bool,
    /// Root of the receipts.
    pub receipts_root: String,
    /// Root of the state after the block, once known.
    pub state_root: Option<String>,
    /// Milliseconds of each stage.
    pub stages_ms: BTreeMap<Cow<'static, str>, f64>,
}

/// A block with the outcomes of its transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BlockDetail {
    /// The summary of the block.
    #[serde(flatten)]
    pub block: BlockBody,
    /// Outcomes in the order of the block.
    pub outcomes: Vec<TransactionOutcome>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// The outcome of one transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransactionOutcome {
    /// Id.
    pub id: String,
    /// The account that acted.
    pub account: String,
    /// The account's sequence number of this transaction.
    pub sequence: String,
    /// The requested operation.
    pub operation: OperationBody,
    /// Outcome.
    pub outcome: OutcomeBody,
    /// The envelope that held it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_by: Option<String>,
}

/// A transaction that a wallet has not signed yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TypedDataBody {
    /// Its sequence number.
    pub sequence: String,
    /// The last height at which it may count.
    pub until: String,
    /// Its bytes up to the signature.
    pub unsigned: String,
    /// The hash of the typed data, which the key signs.
    pub hash: String,
    /// The input of `eth_signTypedData_v4`.
    pub typed_data: serde_json::Value,
}

/// A transaction to be signed without a library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PreparedBody {
    /// Its sequence number.
    pub sequence: String,
    /// The last height at which it may count.
    pub until: String,
    /// Its id, which the signature does not change.
    pub id: String,
    /// What it does, in words.
    pub says: String,
    /// Of an account with a policy: the id of its last change of keys, which the signatures name. Then both what its
    /// keys and what its wallets sign is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// What an ed25519 key signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing_bytes: Option<String>,
    /// The hash of the typed data, which a wallet's key signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The input of `eth_signTypedData_v4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed_data: Option<serde_json::Value>,
    /// Its bytes up to the signature; of an account with a policy up to the signatures of keys.
    pub unsigned: String,
}

/// An outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum OutcomeBody {
    /// It took effect.
    Applied,
    /// It paid its fee and did nothing: another operation counted (a cancel, a later replacement, one at the venue,
    /// another opening of the pool), or the settle was not the next one.
    Void,
    /// It placed an offer.
    Offered {
        /// Units sold in this block's batch.
        sold: String,
        /// Units received.
        bought: String,
        /// Units that rest in the book.
        left: String,
        /// Units returned to the account: they are too few for an offer, or it was for this batch alone.
        returned: String,
        /// The reason: `filled`, `part`, `at_the_margin`, `above_the_rate`, `rounding` or `not_taken`.
        why: Cow<'static, str>,
    },
    /// It cancelled offers; `ended` in the batch and in the account's stream lists them.
    Cancelled {
        /// Offers that it names and that rested.
        found: u8,
        /// Offers that it names and that did not rest.
        missing: u8,
    },
    /// It replaced an offer.
    Replaced {
        /// Units that rested of the old offer.
        remained: String,
        /// Units that the new offer sold in this block's batch.
        sold: String,
        /// Units received.
        bought: String,
        /// Units that rest in the book.
        left: String,
        /// Units returned to the account with the batch.
        returned: String,
        /// The reason, as of an offer; or `not_placed`: too little was left, and everything went back.
        why: Cow<'static, str>,
    },
    /// It opened a pool, provided to it or left it.
    Pooled {
        /// Units of the pool's first asset that the account paid, or received upon leaving.
        a: String,
        /// Units of the second asset.
        b: String,
        /// Shares received, or given back.
        shares: String,
    },
    /// It was an exact order in this block's batch.
    Exact {
        /// Units sold; 0 if it was not filled.
        sold: String,
        /// Units received.
        bought: String,
        /// Units of the asset sold that it locked and that returned.
        returned: String,
        /// The reason: `filled`, `no_price`, `beyond_bound`, `group_not_full` or `no_room`.
        why: Cow<'static, str>,
    },
    /// It listed an asset.
    Listed {
        /// The number of the asset, for ever. Its name is its symbol, a point and this number. Use it once this outcome
        /// is certified.
        number: u32,
    },
    /// It was an envelope, which this block opened.
    Sealed {
        /// `opened`, `garbage` (it paid, and held no signed operations) or `unpaid` (nothing in it counts).
        became: Cow<'static, str>,
        /// Operations in it; each has its own outcome.
        operations: u8,
        /// Why it is unpaid, if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Cow<'static, str>>,
        /// The same as a sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// It had no effect.
    Refused {
        /// Stable code.
        code: Cow<'static, str>,
        /// A sentence.
        message: String,
    },
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BatchBody {
    /// Height of its block.
    pub height: u64,
    /// The proposer's clock.
    pub time_ms: u64,
    /// Whether every offer that had to fill was filled.
    pub full: bool,
    /// Valuations by symbol.
    pub valuations: BTreeMap<String, String>,
    /// Pairs that traded.
    pub trades: Vec<TradeBody>,
    /// What pools traded.
    #[serde(default)]
    pub pools: Vec<PoolFillBody>,
    /// Exact orders that were filled, in the order in which they were tried: the first hundred.
    #[serde(default)]
    pub exacts: Vec<ExactTradeBody>,
    /// How many there are; the outcomes of the block list all.
    #[serde(default)]
    pub exacts_count: usize,
    /// The groups of assets in which not every offer that had to fill was filled, each by a symbol.
    #[serde(default)]
    pub short: Vec<String>,
    /// Units burnt by symbol.
    pub burnt: BTreeMap<String, String>,
    /// Offers that left the book otherwise than by trading, by pair and place: the first hundred.
    pub ended: Vec<EndedOfferBody>,
    /// How many there are; `/v1/blocks/{height}/ended` lists all.
    pub ended_count: usize,
    /// The solver's report, for batches since the start.
    pub solver: Option<SolverBody>,
}

/// An exact order that was filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExactTradeBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Which of the two amounts is exact: `buy` or `sell`.
    pub side: Cow<'static, str>,
    /// Its account.
    pub account: String,
    /// The number of its transaction.
    pub id: String,
    /// Units sold.
    pub sold: String,
    /// Units received.
    pub bought: String,
}

/// An offer that left the book otherwise than by trading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EndedOfferBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Its limit.
    pub limit: String,
    /// Its account.
    pub account: String,
    /// Its id.
    pub id: String,
    /// Units returned to the account.
    pub returned: String,
    /// Why: `cancelled`, `replaced`, `expired`, `one_batch`, `lapsed`, `closed` or `frozen`.
    pub why: Cow<'static, str>,
}

/// Offers that left the book in a block otherwise than by trading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EndedOffersBody {
    /// Height of the block.
    pub height: u64,
    /// By pair and place.
    pub ended: Vec<EndedOfferBody>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// The trade of one ordered pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TradeBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Units sold.
    pub sold: String,
    /// Units paid out.
    pub bought: String,
}

/// How the prices were found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SolverBody {
    /// `newton` or `tatonnement`.
    pub name: Cow<'static, str>,
    /// Steps.
    pub iterations: u32,
    /// Evaluations of the demand of the whole book.
    pub demand_queries: u32,
    /// Unrealized utility divided by realized utility; `null` if some is unrealized and none is realized.
    pub unrealized_utility_ratio: Option<f64>,
}

/// The place of a transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransactionBody {
    /// Id.
    pub id: String,
    /// `pending` or `committed`.
    pub status: Cow<'static, str>,
    /// The id of another transaction with its number, if that has taken its place in this node's pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub displaced_by: Option<String>,
    /// The account that acted, once the transaction is committed and requested by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The account's sequence number of it, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// The last height at which it could count, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The operation, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationBody>,
    /// The envelope that held it, if one did, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_by: Option<String>,
    /// Of an envelope that paid: what it held, each with its outcome, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<TransactionOutcome>,
    /// Height of its block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u64>,
    /// Its outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeBody>,
    /// The block's receipts root, if a proof was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts_root: Option<String>,
    /// The proof of the receipt, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// What validators have signed about its block, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateBody>,
}

/// Answers to a batch call, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Results {
    /// One for each transaction.
    pub results: Vec<ResultBody>,
}

/// The answer to a transaction of a batch call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ResultBody {
    /// It is pending or committed.
    Taken(Box<TransactionBody>),
    /// It is rejected.
    Error(ErrorBody),
}
