//! The status of a validator.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Maximum number of heights that a ready validator is behind.
const CAUGHT_UP: u64 = 4;
/// Heartbeats without a block after which a network is stalled; an idle network makes a block in each.
const STALLED_BEATS: u64 = 10;
/// Milliseconds without a block before which no network is called stalled.
const STALLED_MS_MIN: u64 = 10_000;

/// The status of a validator, for people and probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ValidatorStatus {
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
    /// Until which epoch it is not admitted to the validators, and why, in words; `null` unless it follows and
    /// validators change.
    #[serde(default)]
    pub admission: Option<String>,
    /// Whether it does not vote because its vote log was lost.
    pub silent: bool,
    /// Whether others are ahead and none of them sends the missing blocks: then this validator fetches a state.
    pub stranded: bool,
    /// The decided height whose envelopes are not open yet; null if none waits.
    #[serde(default)]
    pub sealed_wait: Option<SealedWait>,
    /// The validators without a slot in the next height, because they were absent from many.
    pub benched: Vec<u8>,
    /// All validators by index, then the followers; including this one.
    pub peers: Vec<PeerStatus>,
}

/// What the ledger waits for while the envelopes of a decided height are closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SealedWait {
    /// The height.
    pub height: u64,
    /// For how long it has waited, in milliseconds, to a tick and up to 51 seconds: it may be longer.
    pub ms: u64,
    /// The holders of a share, by index, from whom nothing has come.
    pub silent: Vec<u8>,
}

/// How far a peer is, as this validator knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PeerStatus {
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

impl ValidatorStatus {
    /// Whether it votes, the network makes progress, and this validator is about as far as the others.
    pub fn is_caught_up(&self) -> bool {
        !self.silent && self.stall().is_none() && self.decided.saturating_add(CAUGHT_UP) >= self.certified_anywhere
    }

    /// Why no height is decided, as far as this validator sees, in words for people: too few are connected, or too few
    /// vote. Connections alone are no progress: a validator that has lost its vote log is connected and silent.
    pub fn stall(&self) -> Option<String> {
        let connected = self.connected + usize::from(!self.follows);
        let (all, needed, seconds) = (self.validators, self.needed, self.idle_ms / 1_000);
        if connected < needed {
            return Some(format!(
                "Stalled: {connected} of {all} validators connected, {needed} needed, no block for {seconds} s; {}",
                missing("not connected", self.members().filter(|peer| !peer.connected))
            ));
        }
        let due_ms = self.heartbeat_ms.saturating_mul(STALLED_BEATS).max(STALLED_MS_MIN);
        (self.idle_ms >= due_ms).then(|| {
            format!(
                "Stalled: {connected} of {all} validators connected, {needed} needed, but no block for {seconds} s; {}",
                missing("no vote from", self.members().filter(|peer| !peer.votes))
            )
        })
    }

    fn members(&self) -> impl Iterator<Item = &PeerStatus> {
        self.peers.iter().take(self.validators)
    }
}

fn missing<'a>(what: &str, peers: impl Iterator<Item = &'a PeerStatus>) -> String {
    let indices: Vec<String> = peers.map(|peer| peer.validator.to_string()).collect();
    if indices.is_empty() { format!("{what} nobody") } else { format!("{what}: validator {}", indices.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(idle_ms: u64, voting: [bool; 4]) -> ValidatorStatus {
        let peer = |validator: u8| PeerStatus {
            validator,
            connected: true,
            votes: voting[usize::from(validator)],
            decided: 5,
            certified: 5,
            rounds: None,
            round_trip_ms: None,
        };
        ValidatorStatus {
            engine: "dbft".into(),
            me: 2,
            validators: 4,
            decided: 5,
            certified: 5,
            certified_anywhere: 5,
            connected: 3,
            needed: 3,
            idle_ms,
            heartbeat_ms: 1_000,
            epoch: 0,
            follows: false,
            admission: None,
            silent: false,
            stranded: false,
            sealed_wait: None,
            benched: Vec::new(),
            peers: (0..4).map(peer).collect(),
        }
    }

    #[test]
    fn readiness_is_progress_and_a_stall_names_who_does_not_vote() {
        assert!(status(9_999, [false; 4]).is_caught_up());
        let stalled = status(42_000, [false, false, true, true]);
        assert!(!stalled.is_caught_up());
        let stall = stalled.stall().expect("stalled");
        assert!(stall.contains("no block for 42 s; no vote from: validator 0, 1"), "{stall}");
        let mut alone = status(0, [true; 4]);
        (alone.connected, alone.peers[3].connected, alone.peers[0].connected) = (1, false, false);
        let stall = alone.stall().expect("stalled");
        assert!(
            stall.contains("2 of 4 validators connected, 3 needed") && stall.ends_with("validator 0, 3"),
            "{stall}"
        );
    }
}
