//! What stops a replica.

use primitives::{Digest, Height};
use store::StoreError;

/// Why a replica cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The log, a checkpoint or the disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A checkpoint that cannot be read.
    #[error("checkpoint of height {0}: {1}")]
    Unreadable(Height, std::io::Error),
    /// A checkpoint that does not make a state.
    #[error("checkpoint of height {0}: {1}")]
    Checkpoint(Height, ledger::SnapshotError),
    /// A checkpoint that is said to be of one height and is of another.
    #[error("the checkpoint of height {0} holds the state of height {1}: take another copy")]
    OtherHeight(Height, Height),
    /// A snapshot put where something is already.
    #[error("{0} holds blocks or a checkpoint already: restore into an empty home")]
    NotEmpty(String),
    /// The directory of the store.
    #[error("{0}: {1}")]
    Directory(String, std::io::Error),
    /// The genesis.
    #[error("genesis: {0}")]
    Genesis(#[from] ledger::GenesisError),
    /// A logged block that does not apply.
    #[error(transparent)]
    Fault(#[from] ledger::Fault),
    /// The ledger panicked over a block. Whoever starts again meets the same block.
    #[error(
        "applying block {height} panicked: {what}. This is a defect of this version, and every restart meets it again: \
         stop the service, keep the data directory, and report the height and this line. The log is intact and nothing \
         that was acknowledged is lost: start again with a version that applies the block"
    )]
    Panicked {
        /// The block's height.
        height: Height,
        /// What the panic said.
        what: String,
    },
    /// A logged block that is none.
    #[error("block {0} in the log cannot be read: {1}")]
    Undecodable(Height, std::io::Error),
    /// The store belongs to another chain.
    #[error(
        "the store holds chain {stored}, but the genesis is of chain {genesis}: give the right home, or an empty one"
    )]
    OtherChain {
        /// In the store.
        stored: u64,
        /// In the genesis.
        genesis: u64,
    },
    /// A state of another network than the genesis makes.
    #[error(
        "the state here is of network {stored}, and the genesis makes network {genesis}: give the genesis.json that this home \
         came with, or the home of the other network; `walras restart` makes a home of a restarted one"
    )]
    OtherNetwork {
        /// Of the state.
        stored: Digest,
        /// Of the genesis.
        genesis: Digest,
    },
    /// The genesis names a restart, and the state that it began with is not here.
    #[error(
        "the genesis is of a network that was restarted with the state of height {0}, and the data directory does not hold \
         it: make the home with `walras restart` from that snapshot"
    )]
    NotRestarted(Height),
    /// A root that differs from the logged one.
    #[error(
        "after block {height} the state root is {ours}, but the log says {logged}: the state has diverged; stop and report this"
    )]
    Diverged {
        /// The height.
        height: Height,
        /// Computed here.
        ours: Digest,
        /// Found in the block above.
        logged: Digest,
    },
    /// A restored state that is not the one that validators signed.
    #[error(
        "the state at height {height}, which was restored from a file, has the root {ours}, but the validators have certified \
         {certified}, or another block: restore another snapshot into an empty home"
    )]
    Uncertified {
        /// The height.
        height: Height,
        /// What was restored.
        ours: Digest,
        /// What is right.
        certified: Digest,
    },
    /// A replay that went wrong with the archived batches, and without them.
    #[error("with the batches that are archived: {followed}; with batches found anew: {solved}")]
    BothWays {
        /// What went wrong while it followed.
        followed: Box<ReplicaError>,
        /// What went wrong while it solved.
        solved: Box<ReplicaError>,
    },
    /// Something could not be signed. Nothing of that turn was written down or sent.
    #[error("this validator cannot sign: {0}")]
    Unsigned(primitives::SigningError),
    /// The state does not say who decides a height.
    #[error(
        "the committee of epoch {epoch}, which decides height {height}, is not known to the state of height {applied}: the          archive of certificates is older than the log; put back the one that belongs to it, or begin with an empty home"
    )]
    UnknownCommittee {
        /// Its epoch.
        epoch: u64,
        /// What it decides.
        height: Height,
        /// What is applied here.
        applied: Height,
    },
    /// A superblock that was decided twice, differently.
    #[error("height {0} was decided to be another block than the one that is logged here: stop and report this")]
    DecidedTwice(Height),
}

impl ReplicaError {
    /// Whether the replay of a block went wrong, and not a disk or a file.
    pub(crate) fn is_of_replay(&self) -> bool {
        matches!(self, ReplicaError::Fault(_) | ReplicaError::Diverged { .. } | ReplicaError::Panicked { .. })
    }

    /// What went wrong both ways; once if it is the same, and a disk or a file alone.
    pub(crate) fn both(followed: ReplicaError, solved: ReplicaError) -> ReplicaError {
        if !solved.is_of_replay() || followed.to_string() == solved.to_string() {
            return solved;
        }
        ReplicaError::BothWays { followed: Box::new(followed), solved: Box::new(solved) }
    }
}
