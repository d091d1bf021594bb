//! Accounts and their offers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{AccountKeysBody, CertificateBody, OrderTermsBody};

/// An account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AccountBody {
    /// Its address.
    pub address: String,
    /// The address with a checksum in its capitals, for people (EIP-55).
    pub checked_address: String,
    /// Height of the state that was read.
    pub height: u64,
    /// The key it registered, if any. Where it has a policy, no key signs alone.
    pub key: Option<String>,
    /// Its policy of several keys, if it has one. A proof of the account does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<AccountKeysBody>,
    /// Whether payments to it need a reference; others are refused.
    #[serde(default)]
    pub needs_reference: bool,
    /// Its sequence numbers.
    pub sequence: SequenceBody,
    /// Its balances.
    pub balances: Vec<BalanceBody>,
    /// Its Ethereum data, on a chain with contracts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ethereum: Option<AccountEthereumBody>,
    /// How many slots for session keys it has given; the next one is one above.
    #[serde(default)]
    pub session_slots: u32,
    /// Its session keys, by slot.
    #[serde(default)]
    pub sessions: Vec<SessionBody>,
}

/// A session key of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionBody {
    /// Its slot.
    pub slot: u32,
    /// The key.
    pub key: String,
    /// What it may do: `cancel`, `trade` or `duty`.
    pub scope: Cow<'static, str>,
    /// How it stands: `live`; `lapsed`, if it may only cancel until its timer is raised; or `ended`.
    pub status: Cow<'static, str>,
    /// The last height at which its transactions count.
    pub ends: String,
    /// Its offers end with this block, unless the height is raised before.
    pub alive: String,
    /// Its sequence numbers, with the slot in their upper bits.
    pub sequence: SequenceBody,
    /// Its caps, by asset.
    pub caps: Vec<SessionBudgetBody>,
}

/// What a session key may use of an asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionBudgetBody {
    /// Symbol.
    pub asset: String,
    /// The most units that it may use.
    pub units: String,
    /// Units locked and sold less units bought, fees included; negative if it bought more.
    pub used: String,
}

/// The Ethereum data of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AccountEthereumBody {
    /// The nonce of its next transaction, or of the next contract that it creates.
    pub nonce: String,
    /// Wei in addition to its units of the first asset; less than one unit.
    pub wei: String,
    /// Whether it is a contract: nobody has its key.
    pub is_contract: bool,
    /// Its code, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeBody>,
}

/// The code of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CodeBody {
    /// Its Keccak hash.
    pub hash: String,
    /// Its length in bytes.
    pub bytes: usize,
    /// The contract to which the account delegates (EIP-7702), if it is not a contract itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegate: Option<String>,
}

/// Sequence numbers of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SequenceBody {
    /// The highest that is committed.
    pub highest: String,
    /// A free one, taking pending transactions into account.
    pub next: String,
}

/// Units of one asset in an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BalanceBody {
    /// Symbol.
    pub asset: String,
    /// Units that it can spend.
    pub available: String,
    /// Units locked in its offers.
    pub locked: String,
}

/// Resting offers of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Offers {
    /// Height of the state that was read.
    pub height: u64,
    /// By id.
    pub offers: Vec<OfferBody>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// A resting offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OfferBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Limit price: minimum units bought per unit sold. A cancellation signs it.
    pub limit: String,
    /// The same in whole assets: minimum of the asset bought per whole asset sold.
    pub price: String,
    /// Id: the sequence number of the transaction that created it, or from 2^63 on the number of a contract's offer.
    pub id: String,
    /// Units still for sale.
    pub amount: String,
    /// The last height whose batch it is in; null if it rests until it is sold or cancelled.
    pub until: Option<String>,
    /// What rests of it in the terms of its market: `amount` is what is still asked for.
    #[serde(default)]
    pub asked: Option<OrderTermsBody>,
}

/// Resting offers of one ordered pair, in order of execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RestingOffers {
    /// Height of the state that was read.
    pub height: u64,
    /// By limit, account and id.
    pub offers: Vec<RestingOffer>,
    /// Whether there are more in the range.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// A resting offer and its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RestingOffer {
    /// The owner's account.
    pub account: String,
    /// The offer.
    #[serde(flatten)]
    pub offer: OfferBody,
}

/// Whether a block changed an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModifiedBody {
    /// Height of the block.
    pub height: u64,
    /// The account.
    pub address: String,
    /// Whether the block changed it.
    pub changed: bool,
    /// Root of the block's receipts.
    pub receipts_root: String,
    /// Hexadecimal; `ModifiedProof` of the documentation of `proofs`.
    pub proof: String,
}

/// An account with a proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AccountProofBody {
    /// Height of the root.
    pub height: u64,
    /// State root.
    pub root: String,
    /// The account; null if the proof shows that it does not exist.
    pub account: Option<AccountBody>,
    /// The proof, in the ledger's encoding.
    pub proof: String,
    /// What validators have signed about the block of this height, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateBody>,
}

/// An offer with a proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OfferProofBody {
    /// Height of the root.
    pub height: u64,
    /// State root.
    pub root: String,
    /// Units for sale; null if the proof shows that no such offer rests.
    pub amount: Option<String>,
    /// The last height whose batch it is in; null if it has none, or if no such offer rests.
    pub until: Option<String>,
    /// The proof, in the ledger's encoding.
    pub proof: String,
}
