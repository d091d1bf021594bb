//! Venues of continuous markets: what the ledger keeps of them, and proofs of it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{CertificateBody, MandateBody, OrderNumberBody, VenueMarketTermsBody, VenueOperatorBody};

/// The venues of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenuesBody {
    /// Height of the state that was read.
    pub height: u64,
    /// The terms of all venues, from the genesis.
    pub terms: VenueTermsBody,
    /// What all venues hold in custody, by asset.
    pub custody: Vec<VenueCustodyBody>,
    /// By number.
    pub venues: Vec<VenueBody>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// Units of an asset in custody at venues, as the ledger counts them from block to block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueCustodyBody {
    /// Symbol.
    pub asset: String,
    /// Units in deposits.
    pub deposits: String,
    /// Units in bonds, with those that leave.
    pub bonds: String,
}

/// The terms of all venues of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueTermsBody {
    /// Heights until an action of a trader counts against a fill, D.
    pub delay_heights: u64,
    /// Milliseconds of block time until it does, τ: both must be past.
    pub delay_ms: u64,
    /// Units of the first asset without which a venue does not settle.
    pub bond_min: String,
    /// Heights that a withdrawal from a bond waits, and that claims are accepted after a fence.
    pub bond_delay_heights: u64,
    /// Milliseconds of block time that they wait: both must be past.
    pub bond_delay_ms: u64,
    /// The most bytes of a settle.
    pub settle_bytes: u32,
    /// The most entries of orders of a venue.
    pub entries_max: String,
    /// The least penalty of a bust, in units of the first asset for each lot.
    pub penalty_min: String,
    /// The most venues.
    pub venues_max: u32,
    /// The most heights from a block to the expiry of an order that it fills.
    pub life_max_heights: u64,
}

/// A venue at a height.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueAtBody {
    /// Height of the state that was read.
    pub height: u64,
    /// The venue.
    #[serde(flatten)]
    pub venue: VenueBody,
}

/// A venue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueBody {
    /// Its number.
    pub venue: u32,
    /// The account that owns it.
    pub owner: String,
    /// Who settles and reports.
    pub operator: VenueOperatorBody,
    /// The most that an order pays in fees, in millionths of the quote units that it trades.
    pub fee_cap_ppm: u32,
    /// The present incarnation.
    pub incarnation: u32,
    /// Incarnations below this one are judged: their reports prove no more.
    pub judged: u32,
    /// Whether it was convicted in this incarnation: nothing settles before a fence.
    pub is_convicted: bool,
    /// Every report key of the incarnation; a report by any of them convicts.
    pub report_keys: Vec<String>,
    /// The fills of the incarnation, applied and bust.
    pub fills: FillTreeBody,
    /// The ended incarnations.
    pub finals: FillTreeBody,
    /// Units of the first asset that answer for it, without those that leave.
    pub bond: String,
    /// Units of the bond that leave. They are liable until they are paid.
    pub leaving: Option<LeavingBondBody>,
    /// Number of markets.
    pub markets: u32,
    /// Number of entries of orders.
    pub entries: String,
}

/// An append-only Merkle tree (a mountain range).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FillTreeBody {
    /// Number of leaves.
    pub count: String,
    /// The roots of its perfect trees, the highest first.
    pub peaks: Vec<String>,
}

/// Units that leave a bond.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeavingBondBody {
    /// Units.
    pub units: String,
    /// Height of the request.
    pub since_height: u64,
    /// Block time of the request.
    pub since_ms: u64,
}

/// Markets of a venue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueMarketsBody {
    /// Height of the state that was read.
    pub height: u64,
    /// By number.
    pub markets: Vec<VenueMarketBody>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// A market of a venue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueMarketBody {
    /// Its number.
    pub market: u32,
    /// Its terms, which never change.
    pub terms: VenueMarketTermsBody,
}

/// Deposits, of a venue or of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueDepositsBody {
    /// Height of the state that was read.
    pub height: u64,
    /// By venue, account and asset.
    pub deposits: Vec<VenueDepositBody>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// A deposit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueDepositBody {
    /// The venue.
    pub venue: u32,
    /// The account whose units they are.
    pub account: String,
    /// Symbol.
    pub asset: String,
    /// Units that pay for fills.
    pub free: String,
    /// Units that were asked for.
    pub leaving: Option<LeavingDepositBody>,
}

/// Units that leave a deposit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeavingDepositBody {
    /// What is left of them: fills may still spend them until they are owed.
    pub units: String,
    /// Height of the request.
    pub since_height: u64,
    /// Whether no fill can spend them any more: they are paid as soon as the queue allows.
    pub is_owed: bool,
}

/// Trading keys of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TradingKeysBody {
    /// Height of the state that was read.
    pub height: u64,
    /// By venue and key.
    pub keys: Vec<TradingKeyBody>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// A trading key at a height.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TradingKeyAtBody {
    /// Height of the state that was read.
    pub height: u64,
    /// The key.
    #[serde(flatten)]
    pub key: TradingKeyBody,
}

/// A key that trades at a venue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TradingKeyBody {
    /// The venue.
    pub venue: u32,
    /// The key.
    pub key: String,
    /// The account that it trades for.
    pub account: String,
    /// What it may do.
    pub mandate: MandateBody,
    /// What it has gained on balance, by asset; losses are negative.
    pub net: Vec<NetBody>,
    /// The height at which it was revoked.
    pub revoked_height: Option<u64>,
    /// Whether its revocation counts already.
    pub is_dead: bool,
    /// Lower numbers are dead.
    pub floor: OrderNumberBody,
    /// Raises of the floor that do not count yet.
    pub raises: Vec<RaiseBody>,
}

/// What a key has gained of an asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NetBody {
    /// Symbol.
    pub asset: String,
    /// Units; a loss is negative.
    pub units: String,
}

/// A raise of a floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RaiseBody {
    /// Height of the request.
    pub since_height: u64,
    /// The floor.
    pub floor: OrderNumberBody,
}

/// Orders of a key that were filled, in the present incarnation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FilledOrdersBody {
    /// Height of the state that was read.
    pub height: u64,
    /// By number.
    pub orders: Vec<FilledOrderBody>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// What is filled of an order. It is forgotten once the order is dead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FilledOrderBody {
    /// Its number.
    pub number: OrderNumberBody,
    /// Its digest.
    pub digest: String,
    /// Lots.
    pub lots: u32,
    /// Quote units that it traded.
    pub quote: String,
    /// Quote units that it paid in fees; a rebate is negative.
    pub fee: String,
    /// The last height of the order.
    pub expiry: String,
}

/// The settles of venues that counted in a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BlockSettlesBody {
    /// Height of the block.
    pub height: u64,
    /// Root of the block's receipts.
    pub receipts_root: String,
    /// The settles.
    pub settles: Vec<SettledBody>,
    /// Hexadecimal; `SettlesProof` of the documentation of `proofs`.
    pub proof: String,
    /// What validators have signed about the block, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateBody>,
}

/// Settles of a venue, in order of their indices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueSettlesBody {
    /// Each with its block.
    pub settles: Vec<SettledAtBody>,
    /// Whether there are more.
    pub more: bool,
    /// If so, the `from` of the next page.
    pub next: Option<String>,
}

/// A settle that counted, with its block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettledAtBody {
    /// Height of the block.
    pub height: u64,
    /// The settle.
    #[serde(flatten)]
    pub settle: SettledBody,
}

/// A settle that counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettledBody {
    /// The venue.
    pub venue: u32,
    /// Its incarnation.
    pub incarnation: u32,
    /// The fills, in order.
    pub fills: Vec<SettledFillBody>,
}

/// What became of a fill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettledFillBody {
    /// Its index in the tree of the incarnation.
    pub index: String,
    /// Its leaf.
    pub leaf: String,
    /// `applied` or `bust`.
    pub verdict: Cow<'static, str>,
    /// The first rule that a bust breaks: `parties`, `dead`, `expired`, `outside`, `size`, `deposit` or `drawdown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// Who is guilty of a bust: `nobody`, `buyer`, `seller` or `both`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guilt: Option<Cow<'static, str>>,
}

/// A fill, with the proof of its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FillProofBody {
    /// Height of the block that settled it.
    pub height: u64,
    /// Root of the block's receipts.
    pub receipts_root: String,
    /// The fill.
    pub fill: SettledFillBody,
    /// Hexadecimal; `SettlesProof` of the documentation of `proofs`.
    pub proof: String,
    /// What validators have signed about the block, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateBody>,
}

/// Ended incarnations of a venue, as far as this node has their blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IncarnationsBody {
    /// By number, without gaps.
    pub ended: Vec<EndedBody>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// If so, the `cursor` of the next page.
    pub next: Option<String>,
}

/// An incarnation that a fence ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EndedBody {
    /// Its number.
    pub incarnation: u32,
    /// Every report key that it had, in their order.
    pub report_keys: Vec<String>,
    /// Height of the fence.
    pub fence_height: u64,
    /// Block time of the fence.
    pub fence_ms: u64,
}
