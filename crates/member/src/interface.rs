//! The settings, inputs and effects of a member.

use std::collections::BTreeSet;

use kernel::Planted;
use payments::{BridgeKey, BridgeOperation, HOME_PORTS, HomeEpoch, LaneEffect, LaneFact};
use primitives::{Address, Digest, Height};

use crate::{KeyWork, LaneBlock, LanePost, MemberMistake, ShardTerm};

/// What a member is told once.
#[derive(Clone, Copy, Debug)]
pub struct MemberSettings {
    /// Its index in the committee.
    pub index: u8,
    /// Number of its shards.
    pub shards: u16,
    /// Whether each epoch has fresh keys, which this member's registrar registers.
    pub has_registrar: bool,
    /// The account that pays for its posts.
    pub account: Address,
    /// The height that the node recovered when it started. Blocks may have been applied since.
    pub recovered: Height,
    /// The mistake that a simulation plants.
    pub mistake: Planted<MemberMistake>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum MemberInput {
    /// A block was applied here; it may have no certificate yet. Blocks come in order.
    Applied(LaneBlock),
    /// All blocks up to this height have certificates.
    Certified(Height),
    /// A shard of a home reports something for other shards or for the ledger.
    Reported(HomeEpoch, u16, LaneEffect),
    /// Logs and keys of a home are durable, or cannot be made now: the result of [`MemberEffect::Prepare`].
    Prepared(HomeEpoch, bool),
    /// The result of [`MemberEffect::Start`].
    Started(HomeEpoch, u16, ShardStart),
    /// The keys of a home are removed, or cannot be now: the result of [`MemberEffect::Remove`].
    Removed(HomeEpoch, bool),
    /// The logs of a home are removed, or cannot be now: the result of [`MemberEffect::Forget`].
    Forgotten(HomeEpoch, bool),
    /// The result of [`MemberEffect::Work`]: what the work made, or `None` if the keys cannot be read.
    Worked(Box<KeyWork>, Option<Vec<BridgeOperation>>),
    /// Whether the pool took a post: the result of [`MemberEffect::Post`].
    Posted(BridgeKey, bool),
    /// A shard that runs apart from the node cannot be told anything, and has forgotten what it was told.
    Away(u16),
    /// It can be told things again, from the beginning.
    Back(u16),
}

/// How the start of a shard went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardStart {
    /// It runs. Its log barred these payments.
    Runs(BTreeSet<Digest>),
    /// It may not sign in this home: its log or its registered key is missing or damaged.
    Mute,
    /// An error that may pass.
    Failed,
    /// It is being started apart from the node, and takes facts in order from now on. How that went comes later, as
    /// another [`MemberInput::Started`].
    Underway,
}

/// What the shell does, in this order. It returns each result before any other input.
#[derive(Clone, Debug)]
pub enum MemberEffect {
    /// Make the logs of a home, and its keys if `makes_keys`, durably, unless they exist.
    Prepare {
        /// The home.
        home: HomeEpoch,
        /// Whether to make keys.
        makes_keys: bool,
    },
    /// Start a shard from its log.
    Start {
        /// The home.
        home: HomeEpoch,
        /// The shard.
        shard: u16,
        /// With what.
        term: Box<ShardTerm>,
    },
    /// Pass a fact to a shard that runs.
    Tell(HomeEpoch, u16, LaneFact),
    /// Release the addresses of a home's shards: another home needs them.
    StopListening(HomeEpoch),
    /// Drop a shard.
    Stop(HomeEpoch, u16),
    /// Wipe the keys of a home. Its logs stay.
    Remove(HomeEpoch),
    /// Remove the logs of a home, whose keys are wiped.
    Forget(HomeEpoch),
    /// A shard that is back is started next in the homes that live, which are these; the newest epoch is the first
    /// value. The shard prepares the epoch after that, and wipes the keys of other homes.
    Keep(u16, HomeEpoch, BTreeSet<HomeEpoch>),
    /// Make posts with the keys of an epoch ([`KeyWork::perform`]).
    Work(Box<KeyWork>),
    /// Put a post into the pool, under the next free number of the member's account.
    Post(Box<LanePost>),
}

/// Whether a home uses the addresses of another one.
pub(crate) fn shares_address(home: HomeEpoch, other: HomeEpoch) -> bool {
    home != other && home % HOME_PORTS == other % HOME_PORTS
}
