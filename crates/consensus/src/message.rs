//! What validators tell one another within a height, and what the state machine asks of its shell.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;

use crate::binary::Mask;
use crate::committee::Index;
use crate::height::Decision;

/// A round of a binary consensus; the first is 1.
pub type Round = u32;

/// One vote about one slot. A correct validator sends each to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum Vote {
    /// I hold a valid proposal of this digest, the first that its proposer sent me. Once a slot.
    Echo {
        /// The slot.
        slot: Index,
        /// The proposal.
        digest: Digest,
    },
    /// I know that enough validators hold the proposal of this digest. Once a slot.
    Ready {
        /// The slot.
        slot: Index,
        /// The proposal.
        digest: Digest,
    },
    /// My estimate of this round is this, or f+1 others said so. At most once a slot, round and value; both values are
    /// legal.
    Estimate {
        /// The slot.
        slot: Index,
        /// The round.
        round: Round,
        /// Whether the proposal is in.
        value: bool,
    },
    /// The coordinator's suggestion. Once a slot and round, by its coordinator.
    Coordinate {
        /// The slot.
        slot: Index,
        /// The round.
        round: Round,
        /// Whether the proposal is in.
        value: bool,
    },
    /// The values that I saw. Once a slot and round.
    Auxiliary {
        /// The slot.
        slot: Index,
        /// The round.
        round: Round,
        /// One value or both.
        values: Mask,
    },
}

impl Vote {
    /// The round that it is of; 0 for what belongs to none.
    pub fn round(&self) -> Round {
        match *self {
            Vote::Echo { .. } | Vote::Ready { .. } => 0,
            Vote::Estimate { round, .. } | Vote::Coordinate { round, .. } | Vote::Auxiliary { round, .. } => round,
        }
    }

    /// The slot that it is about.
    pub fn slot(&self) -> Index {
        match *self {
            Vote::Echo { slot, .. }
            | Vote::Ready { slot, .. }
            | Vote::Estimate { slot, .. }
            | Vote::Coordinate { slot, .. }
            | Vote::Auxiliary { slot, .. } => slot,
        }
    }
}

/// What must be on disk before anything of the same turn is sent: after a restart a correct validator must not say the
/// opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Record {
    /// A vote that binds its sender (an echo, a ready, a suggestion, an auxiliary vote), or an estimate that was
    /// relayed: others may have counted it.
    Sent(Vote),
    /// The estimate that a round of a slot was begun with; the first is also the input of the slot's consensus.
    Entered {
        /// The slot.
        slot: Index,
        /// The round.
        round: Round,
        /// The estimate.
        estimate: bool,
    },
}

/// A timer. Firing it early or late cannot do harm, only cost time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// How long slots that are not decided yet may still be decided 1, once enough are.
    Grace,
    /// How long a sub-block that was agreed on may still come from its proposer, before others are asked for it. The
    /// shell takes the grace period for it, too.
    Missing,
    /// How long to wait for the coordinator of a round.
    Coordinator {
        /// The slot.
        slot: Index,
        /// The round.
        round: Round,
    },
    /// How long to wait for further auxiliary votes.
    Auxiliaries {
        /// The slot.
        slot: Index,
        /// The round.
        round: Round,
    },
    /// How long to wait in a step of a round, where heights are decided by rounds.
    Round {
        /// The step.
        step: crate::tendermint::Step,
        /// The round; the first is 0.
        round: Round,
    },
}

impl Timer {
    /// For how many units to set it: rounds grow longer without bound, so that they outlast any delay at last.
    pub fn units(&self) -> u32 {
        match self {
            Timer::Grace | Timer::Missing => 1,
            Timer::Coordinator { round, .. } | Timer::Auxiliaries { round, .. } => round - 1,
            // A proposal comes with its payload, which takes longer.
            Timer::Round { step: crate::tendermint::Step::Propose, round } => round.saturating_add(3),
            Timer::Round { round, .. } => round.saturating_add(1),
        }
    }
}

/// What the shell is to do, in this order within a turn: record, make durable, then the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeightEffect {
    /// Append to the log. Everything of a turn may share one sync.
    Record(Record),
    /// Send to every other validator; the own vote is counted already.
    Send(Vote),
    /// Set a timer.
    Arm(Timer),
    /// Get the proposal of a slot: enough are ready for it, and it is not here. The correct ones among these hold it;
    /// asked for again whenever more may be among them.
    Fetch {
        /// The slot.
        slot: Index,
        /// The proposal.
        digest: Digest,
        /// Who echoed it.
        holders: crate::committee::Members,
    },
    /// Two proposals of one proposer for one slot, by their digests; both were signed by it.
    Equivocation {
        /// The slot.
        slot: Index,
        /// The proposals.
        digests: [Digest; 2],
    },
    /// The height has ended.
    Decide(Decision),
}
