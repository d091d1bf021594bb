//! The payment lane in JSON.

use serde::Serialize;
use utoipa::ToSchema;

use crate::outline::{LaneOutline, Outline};

/// The payment lane as the ledger knows it after the last block.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LaneBody {
    /// Height of the last block.
    pub height: u64,
    /// The identity that all that is signed in the lane names.
    pub network: String,
    /// The lane epoch of the next block.
    pub epoch: u64,
    /// Heights of an epoch, while the lane is not halted.
    pub epoch_heights: u64,
    /// Whether validators sign no payments now.
    pub halted: bool,
    /// The number that a vote to halt names.
    pub halt_round: u64,
    /// Units of the first asset that opening a case takes.
    pub case_deposit: String,
    /// What an output that lapses loses, in millionths.
    pub lapse_penalty_millionths: u32,
    /// Contested outputs that have no verdict yet.
    pub open_cases: usize,
    /// Claims that wait for a limit on outflow.
    pub waiting_claims: usize,
    /// The keys of each member's shards.
    pub members: Vec<Vec<String>>,
    /// The assets of the lane.
    pub assets: Vec<LaneAssetBody>,
}

/// One asset in the lane.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LaneAssetBody {
    /// Symbol.
    pub asset: String,
    /// The smallest output and the smallest withdrawal.
    pub least_units: String,
    /// What each payment leaves in escrow.
    pub fee: String,
    /// Units in escrow.
    pub escrow: String,
}

/// The payment lane; `None` on a chain without one.
pub fn lane(outline: &Outline) -> Option<LaneBody> {
    let LaneOutline { network, epoch, is_halted, halt_round, open_cases, waiting_claims, terms, escrow } =
        outline.lane.as_ref()?;
    let assets = terms.assets.iter().zip(escrow).map(|(entry, escrow)| LaneAssetBody {
        asset: outline.assets[entry.asset.0 as usize].symbol.clone(),
        least_units: entry.least_units.to_string(),
        fee: entry.fee.to_string(),
        escrow: escrow.to_string(),
    });
    Some(LaneBody {
        height: outline.height,
        network: network.to_string(),
        epoch: *epoch,
        epoch_heights: terms.epoch_heights,
        halted: *is_halted,
        halt_round: *halt_round,
        case_deposit: terms.case_deposit.to_string(),
        lapse_penalty_millionths: terms.lapse_penalty,
        open_cases: *open_cases,
        waiting_claims: *waiting_claims,
        members: terms.members.iter().map(|shards| shards.iter().map(ToString::to_string).collect()).collect(),
        assets: assets.collect(),
    })
}
