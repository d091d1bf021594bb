//! Blocks, batches, transactions and their outcomes.

use std::collections::BTreeMap;

use ledger::{Outcome, Why};
use serde::Serialize;
use utoipa::ToSchema;

use super::ErrorBody;
use crate::views::BlockSummary;

/// Recent blocks.
#[derive(Debug, Serialize, ToSchema)]
pub struct BlocksBody {
    /// Newest first.
    pub blocks: Vec<BlockBody>,
}

/// A block in short.
#[derive(Debug, Clone, Serialize, ToSchema)]
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
    /// Whether every offer beyond the band was filled.
    pub full: bool,
    /// Root of the receipts.
    pub receipts_root: String,
    /// Root of the state after the block, once known.
    pub state_root: Option<String>,
    /// Milliseconds of each stage.
    pub stages_ms: BTreeMap<&'static str, f64>,
}

/// A block with what became of its transactions.
#[derive(Debug, Serialize, ToSchema)]
pub struct BlockDetail {
    /// The block in short.
    #[serde(flatten)]
    pub block: BlockBody,
    /// Outcomes in the order of the block.
    pub outcomes: Vec<TransactionOutcome>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// What became of one transaction.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TransactionOutcome {
    /// Id.
    pub id: String,
    /// The account that acted.
    pub account: String,
    /// Its number for this transaction.
    pub sequence: u64,
    /// What it asked for.
    pub operation: OperationBody,
    /// Outcome.
    pub outcome: OutcomeBody,
}

/// A transaction before a wallet has signed it.
#[derive(Debug, Serialize, ToSchema)]
pub struct TypedDataBody {
    /// Its sequence number.
    pub sequence: u64,
    /// Its bytes up to the signature.
    pub unsigned: String,
    /// What the key signs: the hash of the typed data.
    pub hash: String,
    /// What `eth_signTypedData_v4` takes.
    pub typed_data: serde_json::Value,
}

/// What a transaction asks for.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OperationBody {
    /// Registers an account, or rotates the own key.
    CreateAccount {
        /// The account.
        account: String,
        /// The key that controls it from the next block on.
        key: String,
    },
    /// Offers an asset for another.
    CreateOffer {
        /// Symbol sold.
        sell: String,
        /// Symbol bought.
        buy: String,
        /// Units to sell at most.
        amount: String,
        /// Units bought per unit sold, at least.
        limit: String,
    },
    /// Takes an offer back.
    CancelOffer {
        /// Symbol sold.
        sell: String,
        /// Symbol bought.
        buy: String,
        /// Its limit.
        limit: String,
        /// Its id.
        offer: u64,
    },
    /// Moves units to another account.
    Pay {
        /// Receiving account.
        to: String,
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Creates units.
    Issue {
        /// Receiving account.
        to: String,
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Destroys units.
    Burn {
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Registers a validator, adds to its stake, or changes its key or address.
    Stake {
        /// Units of the first asset that are added.
        units: String,
        /// The validator's key.
        key: String,
        /// Host and port.
        address: String,
    },
    /// Takes units out of the own stake.
    Unstake {
        /// Units of the first asset.
        units: String,
    },
    /// Shows that a validator contradicted itself.
    Accuse {
        /// The epoch of its committee.
        epoch: u64,
        /// Its index in the committee.
        validator: u8,
        /// The height that it made two statements about.
        height: u64,
        /// `proposals` or `commits`; of rounds, `round_votes` or `round_proposals`.
        statements: &'static str,
    },
    /// Moves units into the payment lane.
    Withdraw {
        /// The key that spends them there.
        to: String,
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Posts something about the payment lane.
    Lane {
        /// The bytes posted, in hexadecimal.
        post: String,
    },
}

/// An outcome.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum OutcomeBody {
    /// It took effect.
    Applied,
    /// It placed an offer.
    Offered {
        /// Units sold in this block's batch.
        sold: String,
        /// Units received.
        bought: String,
        /// Units that rest.
        left: String,
        /// Units that went back to the account, because they are too few for an offer.
        returned: String,
        /// Why: `filled`, `part`, `at_the_margin`, `above_the_rate`, `rounding` or `not_taken`.
        why: &'static str,
    },
    /// It had no effect.
    Refused {
        /// Stable code.
        code: &'static str,
        /// A sentence.
        message: String,
    },
}

impl From<&Outcome> for OutcomeBody {
    fn from(outcome: &Outcome) -> OutcomeBody {
        match outcome {
            Outcome::Applied => OutcomeBody::Applied,
            Outcome::Offered(met) => OutcomeBody::Offered {
                sold: met.sold.to_string(),
                bought: met.bought.to_string(),
                left: met.left.to_string(),
                returned: met.returned.to_string(),
                why: match met.why {
                    Why::Filled => "filled",
                    Why::Part => "part",
                    Why::AtTheMargin => "at_the_margin",
                    Why::AboveTheRate => "above_the_rate",
                    Why::Rounding => "rounding",
                    Why::NotTaken => "not_taken",
                },
            },
            Outcome::Refused(refusal) => OutcomeBody::Refused { code: refusal.code(), message: refusal.to_string() },
        }
    }
}

/// A batch.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BatchBody {
    /// Height of its block.
    pub height: u64,
    /// The proposer's clock.
    pub time_ms: u64,
    /// Whether every offer beyond the band was filled.
    pub full: bool,
    /// Valuations by symbol.
    pub valuations: BTreeMap<String, String>,
    /// Pairs that traded.
    pub trades: Vec<TradeBody>,
    /// Units burnt by symbol.
    pub burnt: BTreeMap<String, String>,
    /// What the solver said, for batches since start.
    pub solver: Option<SolverBody>,
}

/// What one ordered pair traded.
#[derive(Debug, Clone, Serialize, ToSchema)]
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
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SolverBody {
    /// `newton` or `tatonnement`.
    pub name: &'static str,
    /// Steps.
    pub iterations: u32,
    /// Evaluations of the demand of the whole book.
    pub demand_queries: u32,
    /// Utility left on the table over utility gained; `null` where some is left and none is gained.
    pub unrealized_utility_ratio: Option<f64>,
}

/// Where a transaction is.
#[derive(Debug, Serialize, ToSchema)]
pub struct TransactionBody {
    /// Id.
    pub id: String,
    /// `pending` or `committed`.
    pub status: &'static str,
    /// The account that acted, once it is committed and asked for by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The account's number for it, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// What it asks for, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationBody>,
    /// Height of its block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u64>,
    /// What became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeBody>,
    /// The block's receipts root, if a proof was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts_root: Option<String>,
    /// The proof of the receipt, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// Answers to a batch call, in order.
#[derive(Debug, Serialize, ToSchema)]
pub struct Results {
    /// One for each transaction.
    pub results: Vec<ResultBody>,
}

/// What a transaction of a batch call is answered.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ResultBody {
    /// It waits, or is committed.
    Taken(Box<TransactionBody>),
    /// It is refused.
    Error(ErrorBody),
}

/// A block in short.
pub fn block(summary: &BlockSummary) -> BlockBody {
    BlockBody {
        height: summary.height,
        block: summary.block.to_string(),
        parent: summary.parent.to_string(),
        time_ms: summary.time_ms,
        proposers: summary.proposers.clone(),
        transactions: summary.transactions,
        applied: summary.applied,
        refused: summary.transactions - summary.applied,
        ethereum: summary.ethereum,
        fills: summary.fills,
        pairs: summary.pairs,
        full: summary.full,
        receipts_root: summary.receipts_root.to_string(),
        state_root: summary.state_root.map(|root| root.to_string()),
        stages_ms: summary.stages_ms.iter().copied().collect(),
    }
}
