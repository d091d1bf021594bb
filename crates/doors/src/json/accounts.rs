//! Accounts and their offers.

use serde::Serialize;
use utoipa::ToSchema;

/// An account.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AccountBody {
    /// Its address.
    pub address: String,
    /// The same for people: its capitals are a checksum (EIP-55).
    pub checked_address: String,
    /// Height of the state that was read.
    pub height: u64,
    /// The key it registered, if it ever did.
    pub key: Option<String>,
    /// Its sequence numbers.
    pub sequence: SequenceBody,
    /// What it holds.
    pub balances: Vec<BalanceBody>,
    /// What Ethereum knows of it, on a chain with contracts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ethereum: Option<AccountEthereumBody>,
}

/// What Ethereum knows of an account.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AccountEthereumBody {
    /// The nonce of its next transaction, or of the next contract that it creates.
    pub nonce: u64,
    /// Wei beside its units of the first asset, less than one unit.
    pub wei: String,
    /// Whether it is a contract: nobody has its key.
    pub is_contract: bool,
    /// Its code, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeBody>,
}

/// The code of an account.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CodeBody {
    /// Its Keccak hash.
    pub hash: String,
    /// How many bytes it has.
    pub bytes: usize,
    /// The contract that the account delegates to (EIP-7702), if it is no contract itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegate: Option<String>,
}

/// Sequence numbers of an account.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SequenceBody {
    /// The highest that is committed.
    pub highest: u64,
    /// One that is free now, waiting transactions considered.
    pub next: u64,
}

/// Units of one asset that an account has.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BalanceBody {
    /// Symbol.
    pub asset: String,
    /// Units that it can spend.
    pub available: String,
    /// Units locked in its offers.
    pub locked: String,
}

/// Resting offers of an account.
#[derive(Debug, Serialize, ToSchema)]
pub struct Offers {
    /// Height of the state that was read.
    pub height: u64,
    /// By id.
    pub offers: Vec<OfferBody>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// A resting offer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OfferBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Limit price: units bought per unit sold, at least.
    pub limit: String,
    /// Id: the sequence number of the transaction that made it.
    pub id: u64,
    /// Units still for sale.
    pub amount: String,
}

/// Resting offers of one ordered pair, in order of execution.
#[derive(Debug, Serialize, ToSchema)]
pub struct RestingOffers {
    /// Height of the state that was read.
    pub height: u64,
    /// By limit, account and id.
    pub offers: Vec<RestingOffer>,
    /// Whether there are more in the range.
    pub more: bool,
}

/// A resting offer and its owner.
#[derive(Debug, Serialize, ToSchema)]
pub struct RestingOffer {
    /// Who made it.
    pub account: String,
    /// The offer.
    #[serde(flatten)]
    pub offer: OfferBody,
}

/// Whether a block changed an account.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModifiedBody {
    /// Height of the block.
    pub height: u64,
    /// The account.
    pub address: String,
    /// Whether it did.
    pub changed: bool,
    /// Root of the block's receipts.
    pub receipts_root: String,
    /// Hexadecimal; `ModifiedProof` of the ledger's documentation.
    pub proof: String,
}

/// An account with a proof.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountProofBody {
    /// Height of the root.
    pub height: u64,
    /// State root.
    pub root: String,
    /// The account; null if it is proved not to exist.
    pub account: Option<AccountBody>,
    /// The proof, in the ledger's encoding.
    pub proof: String,
}

/// An offer with a proof.
#[derive(Debug, Serialize, ToSchema)]
pub struct OfferProofBody {
    /// Height of the root.
    pub height: u64,
    /// State root.
    pub root: String,
    /// Units for sale; null if no such offer is proved to rest.
    pub amount: Option<String>,
    /// The proof, in the ledger's encoding.
    pub proof: String,
}
