//! How a validator stands among the others, for people and probes.

use serde::Serialize;
use utoipa::ToSchema;

/// A validator that is so many heights behind is still said to be ready.
const CAUGHT_UP: u64 = 4;

/// How a validator stands, for people and probes.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ValidatorStatus {
    /// How heights are decided: `dbft` or `tendermint`.
    pub engine: &'static str,
    /// Its index.
    pub me: u8,
    /// How many validators there are.
    pub validators: usize,
    /// The last height whose superblock is known here.
    pub decided: u64,
    /// The last height with a certificate here.
    pub certified: u64,
    /// The last height that another validator says it has a certificate of.
    pub certified_anywhere: u64,
    /// Other validators that are connected.
    pub connected: usize,
    /// How many validators, this one included, it takes to decide a height.
    pub needed: usize,
    /// For how long nothing was decided.
    pub idle_ms: u64,
    /// The epoch that it is in.
    pub epoch: u64,
    /// Whether it is none of the epoch's validators, and follows them.
    pub follows: bool,
    /// Whether it listens without voting, because its vote log was lost.
    pub silent: bool,
    /// Whether others are ahead, and none of them gives the blocks that are missing here: it fetches a state then.
    pub stranded: bool,
    /// Who has no slot in the next height, because it was absent from many.
    pub benched: Vec<u8>,
    /// All validators by index, and after them who follows; this one too.
    pub peers: Vec<PeerStatus>,
}

/// How far a validator is, as another one knows it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PeerStatus {
    /// Its index.
    pub validator: u8,
    /// Whether it is connected, and has said how far it is.
    pub connected: bool,
    /// The last height of which it said that it knows the superblock; 0 if it has said nothing since the connection
    /// began.
    pub decided: u64,
    /// The last height of which it said that it has a certificate, likewise.
    pub certified: u64,
    /// In which round its slot of the last height was decided (1 is as fast as can be); nothing if it had none.
    pub rounds: Option<u32>,
    /// Milliseconds to it and back; nothing if it is not connected, or is the asked one.
    pub round_trip_ms: Option<f64>,
}

impl ValidatorStatus {
    /// Whether it votes, is connected to a quorum, and is about where the others are.
    pub fn is_caught_up(&self) -> bool {
        !self.silent && self.stall().is_none() && self.decided + CAUGHT_UP >= self.certified_anywhere
    }

    /// Why no height can be decided, as far as this validator sees: too few are connected. In words for people.
    pub fn stall(&self) -> Option<String> {
        let connected = self.connected + usize::from(!self.follows);
        let (all, needed, seconds) = (self.validators, self.needed, self.idle_ms / 1_000);
        (connected < needed).then(|| {
            format!("Stalled: {connected} of {all} validators connected, {needed} needed, no block for {seconds} s")
        })
    }
}
