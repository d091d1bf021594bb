//! The inputs of a replica, and their time.

use std::time::Duration;

use consensus::{Index, Payload};
use primitives::{Digest, Height};

use crate::Network;
use crate::unsealing::{SealState, UnsealDone};

/// The time of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Since the shell began, by a clock that never goes back.
    pub since: Duration,
    /// Milliseconds since 1970, by a clock that may be wrong.
    pub wall_ms: u64,
}

impl Now {
    /// Milliseconds since the shell began.
    pub fn milliseconds(&self) -> u64 {
        self.since.as_millis() as u64
    }

    /// Milliseconds since 1970, corrected for clocks that are `ahead_ms` ahead.
    pub(crate) fn corrected_ms(&self, ahead_ms: i64) -> u64 {
        self.wall_ms.saturating_add_signed(ahead_ms)
    }
}

/// What the pool holds at the time of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting {
    /// Transactions that can be proposed.
    pub ready: usize,
    /// When the oldest of them came, in milliseconds of [`Now::since`].
    pub oldest_ms: Option<u64>,
}

/// An input of a replica.
#[derive(Debug)]
pub enum Input {
    /// An event on a link to a peer.
    Link {
        /// The generation of the link: see [`crate::Effect::Connect`].
        generation: u64,
        /// The peer.
        peer: Index,
        /// What happened.
        event: Sight,
    },
    /// A sub-block that the replica asked for.
    Assembled {
        /// For this height.
        height: Height,
        /// Its bytes.
        payload: Payload,
    },
    /// Transactions for another validator to propose.
    HandedOver {
        /// The validator.
        to: Index,
        /// A sub-block of them.
        payload: Payload,
        /// The number of transactions.
        count: usize,
    },
    /// Some forwarded transactions were not committed in time and are back in the pool.
    TakenBack,
    /// The block of a height is durable and applied.
    Applied {
        /// The height.
        height: Height,
        /// The time of its block, if it was applied just now.
        time_ms: Option<u64>,
    },
    /// The state root after a height.
    StateRoot(Height, Digest),
    /// The receipts root of a height.
    ReceiptsRoot(Height, Digest),
    /// What the state after a height says about sealing keys, on a chain that has them: it comes before
    /// [`Input::Applied`].
    Seals(Box<SealState>),
    /// The result of [`crate::Job::Unseal`].
    Unsealed(UnsealDone),
    /// The network of the next epoch.
    Epoch(Box<Network>),
}

/// The bytes of a frame. The owner may count them for as long as they are held.
pub struct FrameBytes(Box<dyn std::ops::Deref<Target = [u8]> + Send>);

impl FrameBytes {
    /// These bytes.
    pub fn new(bytes: impl std::ops::Deref<Target = [u8]> + Send + 'static) -> FrameBytes {
        FrameBytes(Box::new(bytes))
    }
}

impl std::ops::Deref for FrameBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for FrameBytes {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} bytes", self.len())
    }
}

/// An event on a link.
#[derive(Debug)]
pub enum Sight {
    /// A frame arrived.
    Frame(FrameBytes),
    /// The link is up. The peer's clock is ahead by so many milliseconds.
    Up {
        /// Negative if it is behind.
        ahead_ms: i64,
    },
    /// The link is down.
    Down,
    /// The peer says that this validator's key is in use by another process.
    KeyInUse,
}
