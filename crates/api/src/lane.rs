//! The payment lane in JSON.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::CertificateBody;

/// A shard of home epoch h listens on the port of its address plus h modulo this.
pub const HOME_PORTS: u16 = 8;

/// The payment lane in the ledger after the last block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneBody {
    /// Height of the last block.
    pub height: u64,
    /// The identity that every signature in the lane covers.
    pub network: String,
    /// The lane epoch of the next block.
    pub epoch: u64,
    /// Heights left of that epoch, while the lane is not halted.
    pub heights_left: u64,
    /// Heights of an epoch, while the lane is not halted.
    pub epoch_heights: u64,
    /// Whether validators sign no payments now.
    pub halted: bool,
    /// The number that a vote to halt must name.
    pub halt_round: u64,
    /// The lowest bid for opening a case, in units of the first asset.
    pub case_deposit: String,
    /// The loss of an output that lapses, in millionths.
    pub lapse_penalty_millionths: u32,
    /// Contested outputs that have no verdict yet.
    pub open_cases: usize,
    /// Claims delayed by a limit on outflow.
    pub waiting_claims: usize,
    /// The keys of each member's shards in the first lane epoch; in every epoch if there are no registrars.
    pub members: Vec<Vec<String>>,
    /// For each member the key that registers its keys of later epochs; empty if keys do not change.
    pub registrars: Vec<String>,
    /// Which BLS keys they also register: "none", "aggregate" or "threshold".
    pub bls: Cow<'static, str>,
    /// The registered keys of the epochs that count, and of the next one. An epoch begins once a quorum has
    /// registered for it.
    pub registrations: Vec<LaneRegistrationBody>,
    /// The epochs for which the members generated a group key: see `/v1/lane/boards/{epoch}`.
    pub group_keys: Vec<u64>,
    /// For each member the account whose stake is liable for it; empty if there are none.
    pub accounts: Vec<String>,
    /// The members that contradicted themselves, by index: they can no longer register keys.
    pub convicted: Vec<u8>,
    /// The addresses (TCP) of each member's shards, by shard, as this node knows them: they may be more or fewer than a
    /// member has in some epoch, whose keys tell how many count. A shard of home epoch h listens on the port that is h
    /// modulo `home_ports` above its address. Empty if unknown.
    pub addresses: Vec<Vec<String>>,
    /// Whether they speak TLS 1.3, each with its registered key as a raw public key.
    pub tls: bool,
    /// Ports of a shard, from its address on.
    pub home_ports: u16,
    /// The assets of the present lane epoch.
    pub assets: Vec<LaneAssetBody>,
    /// The terms of assets in the epochs that count, and in later ones. A payment is judged by those of the home of
    /// what it spends.
    #[serde(default)]
    pub terms: Vec<LaneTermsBody>,
}

/// The terms of an asset from a lane epoch on, until others are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneTermsBody {
    /// Symbol.
    pub asset: String,
    /// The asset's number, which transactions name.
    pub number: u32,
    /// Its decimal places.
    pub decimals: u8,
    /// The first lane epoch that has them.
    pub from: u64,
    /// The minimum of an output and of a deposit, in units.
    pub least_units: String,
    /// The part of each payment that stays in escrow, in units.
    pub fee: String,
    /// Whether units may enter the lane: `taken` or `refused`.
    pub deposits: Cow<'static, str>,
    /// The most units that leave at once beyond what enters; 0 without a limit.
    pub outflow_most: String,
    /// Units of that limit that are regained at each height; 0 without a limit.
    pub outflow_per_height: String,
}

/// The keys of a member's shards in one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneRegistrationBody {
    /// The lane epoch.
    pub epoch: u64,
    /// The member's index.
    pub member: u8,
    /// The key of each shard.
    pub keys: Vec<String>,
    /// The BLS key of each shard, with the member's proof of possession; empty on a lane without BLS keys.
    pub bls: Vec<RegisteredBlsBody>,
    /// The registrar's signature, in hexadecimal.
    pub signature: String,
}

/// Registered keys, with the proof that they are part of a state root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneRegistrationsProofBody {
    /// Height of the state.
    pub height: u64,
    /// The state root.
    pub root: String,
    /// The keys, by epoch and member.
    pub registrations: Vec<LaneRegistrationBody>,
    /// Hexadecimal; `LaneProof` of the documentation of `proofs`, with a path for each registration.
    pub proof: String,
    /// What validators have signed about the block of this height, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateBody>,
}

/// The BLS key of a shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RegisteredBlsBody {
    /// 96 bytes in hexadecimal.
    pub key: String,
    /// 48 bytes in hexadecimal.
    pub proof: String,
}

/// A shard of the member of the payment lane that the node is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneShardBody {
    /// Its number among the member's shards.
    pub shard: u16,
    /// Whether it runs in a process other than the node.
    pub apart: bool,
    /// Whether it runs, and its node and clients reach it.
    pub up: bool,
    /// Since when it is up or down, milliseconds since 1970.
    pub since_ms: u64,
    /// The newest lane epoch in which it runs; null if it runs in none.
    pub epoch: Option<u64>,
    /// The height of the last block whose facts it was told.
    pub facts_height: u64,
    /// Answers that it has signed since it started, as far as the node knows.
    pub signed: u64,
    /// Requests that it has refused since then.
    pub refused: u64,
    /// Bytes of its logs.
    pub log_bytes: u64,
}

/// One asset in the lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneAssetBody {
    /// Symbol.
    pub asset: String,
    /// The minimum of an output and of a deposit.
    pub least_units: String,
    /// The part of each payment that stays in escrow.
    pub fee: String,
    /// Units in escrow.
    pub escrow: String,
}

/// An output that the ledger created in the payment lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneOutputBody {
    /// Its name.
    pub output: String,
    /// Its home epoch: only the committee of that epoch signs payments that spend it.
    pub home: u64,
    /// The key that spends it.
    pub to: String,
    /// Symbol of the asset.
    pub asset: String,
    /// Units.
    pub amount: String,
}

/// The dealings of the members for the group key of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneBoardBody {
    /// The lane epoch.
    pub epoch: u64,
    /// Dealings with their dealers' signatures and the results of complaints, in hexadecimal; the layout is in the
    /// documentation of the `payments` crate.
    pub board: String,
}

/// Contested outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneCasesBody {
    /// Those without a verdict.
    pub cases: Vec<LaneCaseBody>,
}

/// A contested output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneCaseBody {
    /// Its name.
    pub output: String,
    /// Its home epoch.
    pub home: u64,
    /// The key of its owner.
    pub owner: String,
    /// Symbol of the asset.
    pub asset: String,
    /// Units.
    pub amount: String,
    /// The payments of it for which validators voted; null until there are enough votes.
    pub candidates: Option<Vec<LaneCandidateBody>>,
}

/// A payment of a contested output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneCandidateBody {
    /// Its digest.
    pub digest: String,
    /// Its encoding, in hexadecimal.
    pub payment: String,
}
