//! The status of a validator.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The status of a validator, for people and probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ValidatorStatus)]
pub struct ValidatorStatusBody {
    /// The consensus engine: `dbft` or `tendermint`.
    pub engine: Cow<'static, str>,
    /// Its index.
    pub me: u8,
    /// The number of validators.
    pub validators: usize,
    /// The last height whose superblock is known here.
    pub decided: u64,
    /// The last height with a certificate here.
    pub certified: u64,
    /// The last height for which another validator reports a certificate.
    pub certified_anywhere: u64,
    /// Number of other validators that are connected.
    pub connected: usize,
    /// How many validators, this one included, are needed to decide a height.
    pub needed: usize,
    /// Milliseconds since the last decision.
    pub idle_ms: u64,
    /// Milliseconds after which an idle network makes a block.
    pub heartbeat_ms: u64,
    /// The epoch that it is in.
    pub epoch: u64,
    /// Whether it follows the epoch's validators without being one of them.
    pub follows: bool,
    /// Whether it does not vote because its vote log was lost.
    pub silent: bool,
    /// Whether others are ahead and none of them sends the missing blocks: then this validator fetches a state.
    pub stranded: bool,
    /// The validators without a slot in the next height, because they were absent from many.
    pub benched: Vec<u8>,
    /// All validators by index, then the followers; including this one.
    pub peers: Vec<PeerStatusBody>,
}

/// How far a peer is, as this validator knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PeerStatus)]
pub struct PeerStatusBody {
    /// Its index.
    pub validator: u8,
    /// Whether it is connected and has reported its height.
    pub connected: bool,
    /// Whether it has voted since the last decision.
    pub votes: bool,
    /// The last height whose superblock it reports to know; 0 if it has reported nothing since the connection began.
    pub decided: u64,
    /// The last height for which it reports a certificate, likewise.
    pub certified: u64,
    /// The round in which its slot of the last height was decided (1 is the fastest); `null` if it had no slot.
    pub rounds: Option<u32>,
    /// The round-trip time to it in milliseconds; `null` if it is not connected, or for this validator itself.
    pub round_trip_ms: Option<f64>,
}
