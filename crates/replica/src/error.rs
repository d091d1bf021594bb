//! Errors that stop a replica.

use primitives::{Digest, Height};
use store::StoreError;

/// Why a replica cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The log, a checkpoint or the disk failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A checkpoint cannot be read.
    #[error("checkpoint of height {0}: {1}")]
    Unreadable(Height, std::io::Error),
    /// A checkpoint does not contain a valid state.
    #[error("checkpoint of height {0}: {1}")]
    Checkpoint(Height, ledger::SnapshotError),
    /// A checkpoint is labelled with one height and holds the state of another.
    #[error("the checkpoint of height {0} holds the state of height {1}: take another copy")]
    OtherHeight(Height, Height),
    /// The target of a restore is not empty.
    #[error("{0} holds blocks or a checkpoint already: restore into an empty home")]
    NotEmpty(String),
    /// The directory of the store cannot be used.
    #[error("{0}: {1}")]
    Directory(String, std::io::Error),
    /// The genesis is not valid.
    #[error("genesis: {0}")]
    Genesis(#[from] ledger::GenesisError),
    /// A logged block does not apply.
    #[error(transparent)]
    Fault(#[from] ledger::Fault),
    /// The ledger panicked on a block. Every restart meets the same block again.
    #[error(
        "applying block {height} panicked: {what}. This is a defect of this version, and every restart meets it again: \
         stop the service, keep the data directory, and report the height and this line. The log is intact and nothing \
         that was acknowledged is lost: start again with a version that applies the block"
    )]
    Panicked {
        /// The height of the block.
        height: Height,
        /// The panic's message.
        what: String,
    },
    /// A logged block cannot be decoded.
    #[error("block {0} in the log cannot be decoded: {1}")]
    Undecodable(Height, std::io::Error),
    /// The store belongs to another chain.
    #[error(
        "the store holds chain {stored}, but the genesis is of chain {genesis}: give the right home, or an empty one"
    )]
    OtherChain {
        /// The chain of the store.
        stored: u64,
        /// The chain of the genesis.
        genesis: u64,
    },
    /// The state here is of another network than the one of the genesis.
    #[error(
        "the state here is of network {stored}, and the genesis makes network {genesis}: give the genesis.json that \
         this home came with, or the home of the other network; `walras restart` makes a home of a restarted one"
    )]
    OtherNetwork {
        /// Of the state.
        stored: Digest,
        /// Of the genesis.
        genesis: Digest,
    },
    /// The genesis names a restart, and the state that the network restarted with is not here.
    #[error(
        "the genesis is of a network that was restarted with the state of height {0}, and the data directory does \
         not hold it: make the home with `walras restart` from that snapshot"
    )]
    NotRestarted(Height),
    /// A computed root differs from the logged one.
    #[error(
        "after block {height} the state root is {ours}, but the log says {logged}: the state has diverged; stop and \
         report this"
    )]
    Diverged {
        /// The height.
        height: Height,
        /// The root computed here.
        ours: Digest,
        /// The root named by the next block in the log.
        logged: Digest,
    },
    /// A restored state is not the one that the validators certified.
    #[error(
        "the state at height {height}, which was restored from a file, has the root {ours}, but the validators have \
         certified {certified}, or another block: restore another snapshot into an empty home"
    )]
    Uncertified {
        /// The height.
        height: Height,
        /// The root of the restored state.
        ours: Digest,
        /// The certified root.
        certified: Digest,
    },
    /// A replay failed both with the archived batches and without them.
    #[error("the replay failed with the archived batches: {followed}; and with batches solved again: {solved}")]
    BothWays {
        /// The error of the replay with archived batches.
        followed: Box<ReplicaError>,
        /// The error of the replay that solved every batch.
        solved: Box<ReplicaError>,
    },
    /// The validator could not sign. Nothing of that turn was logged or sent.
    #[error("this validator cannot sign: {0}")]
    Unsigned(primitives::SigningError),
    /// The state does not know the committee that decides a height.
    #[error(
        "the committee of epoch {epoch}, which decides height {height}, is not known to the state of height \
         {applied}: the archive of certificates is older than the log; put back the one that belongs to it, \
         or begin with an empty home"
    )]
    UnknownCommittee {
        /// The epoch of that committee.
        epoch: u64,
        /// The height that it decides.
        height: Height,
        /// The last height applied here.
        applied: Height,
    },
    /// A superblock was decided twice, with different contents.
    #[error("height {0} was decided as another block than the one in this node's log: stop the node and report this")]
    DecidedTwice(Height),
}

impl ReplicaError {
    /// Whether the replay of a block failed, as opposed to a disk or a file.
    pub(crate) fn is_of_replay(&self) -> bool {
        matches!(self, ReplicaError::Fault(_) | ReplicaError::Diverged { .. } | ReplicaError::Panicked { .. })
    }

    /// Combines the errors of both replays. Returns one of them alone if both are the same or if it concerns a disk
    /// or a file.
    pub(crate) fn both(followed: ReplicaError, solved: ReplicaError) -> ReplicaError {
        if !solved.is_of_replay() || followed.to_string() == solved.to_string() {
            return solved;
        }
        ReplicaError::BothWays { followed: Box::new(followed), solved: Box::new(solved) }
    }
}
