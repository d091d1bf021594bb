//! The committee's sealing key, and how the next one is made.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The sealing keys of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SealBody {
    /// Height of the state that was read.
    pub height: u64,
    /// How many seats open what is sealed: `fewest` or `quorum`; null where the committee makes no key.
    pub threshold: Option<String>,
    /// The number of the key that is in force in the next block; null if there is none.
    pub in_force: Option<u64>,
    /// The keys that are in force or will be, by number: at most two.
    pub keys: Vec<SealKeyBody>,
    /// The key that is being made; null if there is none.
    pub making: Option<SealMakingBody>,
    /// How the last key was not made; null if one was made since.
    pub failed: Option<SealFailedBody>,
}

/// A sealing key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SealKeyBody {
    /// Its number.
    pub number: u64,
    /// The key: 96 bytes in hexadecimal. A client that seals to it checks the proof.
    pub key: String,
    /// How many shares open an envelope.
    pub needed: u8,
    /// How many holders it needs.
    pub least: u8,
    /// The accounts that hold a share.
    pub holders: Vec<String>,
    /// The first height whose envelopes it opens.
    pub from: u64,
    /// The last one; null while none is known.
    pub last: Option<u64>,
}

/// A sealing key that is being made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SealMakingBody {
    /// Its number.
    pub number: u64,
    /// The step: `register`, `deal`, `complain` or `hold`.
    pub step: String,
    /// The height after which the step ends at the latest.
    pub ends: u64,
    /// The accounts whose posts it awaits.
    pub awaited: Vec<String>,
}

/// How a sealing key was not made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SealFailedBody {
    /// Its number.
    pub number: u64,
    /// The step that ended with too few: `register`, `deal`, `complain` or `hold`.
    pub step: String,
    /// The height after which it ended.
    pub height: u64,
    /// The height after which the same committee tries again.
    pub again: u64,
    /// The accounts that did not take part as they should.
    pub silent: Vec<String>,
}
