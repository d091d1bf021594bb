//! The rules of a chain, and who approves of the next ones.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which rules a chain follows, and which come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UpgradeBody {
    /// Height of the state that was read.
    pub height: u64,
    /// The rules of the next block.
    pub rules: u32,
    /// The last rules that were confirmed.
    pub confirmed: u32,
    /// The digest of what the chain means by them.
    pub confirmed_manifest: String,
    /// The first height that they act at.
    pub since: u64,
    /// Rules that are agreed on and not confirmed yet; null if there are none.
    pub coming: Option<ComingRulesBody>,
    /// The newest rules that this node follows. It may be lower than the newest number that its program knows: if the
    /// program means something else by the number that the chain has agreed on.
    pub known: u32,
    /// The digest of what this node means by the rules after the confirmed ones; null if it does not know them.
    pub manifest: Option<String>,
    /// The account that names the rules of a chain of one node; null where validators approve them, or nobody can.
    pub operator: Option<String>,
    /// The fewest heights of notice.
    pub notice_min: u64,
    /// Heights for which two thirds of the stake must have approved, until n − f seats suffice.
    pub patience: u64,
    /// What is approved to come next, each with who approves it.
    pub approved: Vec<ApprovedRulesBody>,
    /// Accounts whose nodes may be unable to follow the confirmed rules: they have not approved them, or taken back.
    pub unready: Vec<String>,
}

/// Rules that are agreed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ComingRulesBody {
    /// The number.
    pub rules: u32,
    /// The digest of what it means.
    pub manifest: String,
    /// The first height that they act at, if they are confirmed.
    pub acts: u64,
    /// The boundary at which they are confirmed or tried again; null on a chain of one node.
    pub confirms: Option<u64>,
    /// How often the confirmation was missing; after three times they are dropped.
    pub tries: u8,
}

/// Rules that accounts approve, and how many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovedRulesBody {
    /// The number.
    pub rules: u32,
    /// The digest of what it means.
    pub manifest: String,
    /// The fewest heights from the agreement until they act.
    pub notice: u64,
    /// Units staked by the accounts that approve.
    pub stake: String,
    /// Units staked by all.
    pub all_stake: String,
    /// Seats of the last committee that approve.
    pub seats: usize,
    /// Seats of it that must.
    pub seats_needed: usize,
    /// Its seats.
    pub all_seats: usize,
    /// The boundary since which two thirds of the stake have approved; null if they do not.
    pub awaited_since: Option<u64>,
    /// The accounts that approve.
    pub accounts: Vec<String>,
}
