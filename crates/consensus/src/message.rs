//! The messages of validators within a height, and the effects that the state machine asks of its shell.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;
use proofs::Index;

/// A non-empty set of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum Mask {
    /// {0}
    Zero,
    /// {1}
    One,
    /// {0, 1}
    Both,
}

impl Mask {
    /// All three.
    pub const ALL: [Mask; 3] = [Mask::Zero, Mask::One, Mask::Both];

    /// {value}
    pub fn of(value: bool) -> Mask {
        if value { Mask::One } else { Mask::Zero }
    }

    /// The value, if the set has only one.
    pub fn single(self) -> Option<bool> {
        match self {
            Mask::Zero => Some(false),
            Mask::One => Some(true),
            Mask::Both => None,
        }
    }

    pub(crate) fn is_within(self, values: Mask) -> bool {
        values == Mask::Both || values == self
    }
}

/// The result of a height.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The included sub-blocks: slot and digest of the proposal, by slot.
    pub sub_blocks: Vec<(Index, Digest)>,
}

/// A round of a binary consensus; the first is 1.
pub type Round = u32;

/// One vote on one slot. A correct validator sends each to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum Vote {
    /// I hold a valid proposal with this digest, the first that its proposer sent me. Once per slot.
    Echo {
        /// The slot.
        slot: Index,
        /// The proposal.
        digest: Digest,
    },
    /// I know that enough validators hold the proposal with this digest. Once per slot.
    Ready {
        /// The slot.
        slot: Index,
        /// The proposal.
        digest: Digest,
    },
    /// My estimate of this round, or one that f+1 others sent. At most once per slot, round and value; both values
    /// are legal.
    Estimate {
        /// The slot.
        slot: Index,
        /// The round.
        round: Round,
        /// Whether the proposal is in.
        value: bool,
    },
    /// The coordinator's suggestion. Once per slot and round, by its coordinator.
    Coordinate {
        /// The slot.
        slot: Index,
        /// The round.
        round: Round,
        /// Whether the proposal is in.
        value: bool,
    },
    /// The values that I saw. Once per slot and round.
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
    /// The round of the vote; 0 for votes without a round.
    pub fn round(&self) -> Round {
        match *self {
            Vote::Echo { .. } | Vote::Ready { .. } => 0,
            Vote::Estimate { round, .. } | Vote::Coordinate { round, .. } | Vote::Auxiliary { round, .. } => round,
        }
    }

    /// The slot of the vote.
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

/// What must be on disk before anything of the same turn is sent: after a restart a correct validator must not
/// contradict it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Record {
    /// A vote that binds its sender (an echo, a ready, a suggestion, an auxiliary vote), or an estimate that was
    /// relayed: others may have counted it.
    Sent(Vote),
    /// The estimate with which a round of a slot began; the first is also the input of the slot's consensus.
    Entered {
        /// The slot.
        slot: Index,
        /// The round.
        round: Round,
        /// The estimate.
        estimate: bool,
    },
}

/// A timer. Firing it early or late does no harm, it only costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// How long undecided slots may still be decided 1, once enough are.
    Grace,
    /// How long to wait for the proposer's own copy of a sub-block that was agreed on, before asking others for it.
    /// The shell uses the grace period for this, too.
    Missing,
    /// How long votes wait for others of the same height to travel with ([`crate::gather`]).
    Votes {
        /// Which window of the height it ends.
        window: u32,
    },
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
    /// The number of units to set it to: rounds grow longer without bound, so that they finally outlast any delay.
    pub fn units(&self) -> u32 {
        match self {
            Timer::Grace | Timer::Missing | Timer::Votes { .. } => 1,
            Timer::Coordinator { round, .. } | Timer::Auxiliaries { round, .. } => round - 1,
            // A proposal comes with its payload, which takes longer.
            Timer::Round { step: crate::tendermint::Step::Propose, round } => round.saturating_add(3),
            Timer::Round { round, .. } => round.saturating_add(1),
        }
    }
}

/// What the shell must do, in this order within a turn: record, make durable, then the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeightEffect {
    /// Append to the log. Everything of a turn may share one sync.
    Record(Record),
    /// Send to every other validator; this validator's own vote is counted already.
    Send(Vote),
    /// Set a timer.
    Arm(Timer),
    /// Get the proposal of a slot: enough are ready for it, and it is not held here. The correct ones among the
    /// holders have it; the effect is repeated whenever there may be more of them.
    Fetch {
        /// The slot.
        slot: Index,
        /// The proposal.
        digest: Digest,
        /// The validators that echoed it.
        holders: crate::members::Members,
    },
    /// Two proposals of one proposer for one slot, by their digests; it signed both.
    Equivocation {
        /// The slot.
        slot: Index,
        /// The proposals.
        digests: [Digest; 2],
    },
    /// The height has ended.
    Decide(Decision),
}
