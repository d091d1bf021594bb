//! What can go wrong, and what to do about it.

use std::io;

/// Why the store refuses.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("{file}: cannot {action}: {reason}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: String,
        /// What it said.
        reason: io::Error,
    },
    /// An earlier error of the disk: what is on it is uncertain until the store is opened anew.
    #[error("the store stopped after an error ({0}): restart the node; it recovers what is on the disk")]
    Failed(String),
    /// Another process has the store open.
    #[error("{0}: in use by another process: stop that one, or use another data directory")]
    Locked(String),
    /// Bytes that cannot be what was written.
    #[error("{file}, byte {offset}: {what}; {remedy}")]
    Damaged {
        /// The file, with its directory.
        file: String,
        /// Where in it the damaged record, chunk or header begins.
        offset: u64,
        /// What is wrong.
        what: String,
        /// What helps.
        remedy: Remedy,
    },
    /// Heights that are appended, put or checkpointed in a wrong order.
    #[error("{what} {height} is out of order: the next is {expected}")]
    OutOfOrder {
        /// What was given.
        what: &'static str,
        /// Its height.
        height: u64,
        /// The height that can be taken.
        expected: u64,
    },
    /// Receipts that differ from the ones archived for this height.
    #[error(
        "the receipts of block {0} differ from those archived when it was first executed: the replay went another way"
    )]
    ReceiptsDiffer(u64),
    /// A checkpoint of a block that is not durable yet.
    #[error("a checkpoint at {height} needs block {height} durable: only {durable} is")]
    NotDurable {
        /// Height of the checkpoint.
        height: u64,
        /// Last durable block.
        durable: u64,
    },
    /// There is no vote log where there must be one, or one that was not finished when it was made: what this validator
    /// has said is not known.
    #[error(
        "{0}: the log of this validator's votes is missing: it must not vote as if it had said nothing, but may rejoin at \
         a height that it cannot have voted at"
    )]
    VotesLost(String),
    /// A vote log where a new one is to be made.
    #[error("{0}: there is a vote log already; it is never overwritten")]
    VotesExist(String),
    /// The vote log has reached its bound: heights do not end.
    #[error("the vote log holds {0} bytes and may not grow: no height ends, so nothing can be forgotten")]
    VotesFull(u64),
    /// A block that was forgotten while it was about to be read.
    #[error("block {0} was forgotten while older ones were being read: try again")]
    Forgotten(u64),
    /// A second checkpoint while the first is being written.
    #[error("another checkpoint is still being written")]
    CheckpointRunning,
}

/// What helps against damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The blocks are needed and nowhere else here.
    Restore,
    /// Another checkpoint and the log suffice.
    RemoveCheckpoint,
    /// A snapshot has no other part to be mended from.
    OtherCopy,
    /// What was voted is not known any more.
    Rejoin,
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Remedy::Restore => {
                "fetch the state anew from another node: `walras snapshot restore` into an empty directory"
            }
            Remedy::RemoveCheckpoint => {
                "remove this file and start again: the node then recovers from the checkpoint before it, or from the \
                 first block, and the block log"
            }
            Remedy::Rejoin => {
                "what this validator has said is not known: it must rejoin without voting, at a height that it cannot have \
                 voted at"
            }
            Remedy::OtherCopy => "take another copy, or make the snapshot again",
        })
    }
}

impl StoreError {
    /// An operating system's error, told with what was tried.
    pub(crate) fn io(action: &'static str, file: &str) -> impl FnOnce(io::Error) -> StoreError {
        let file = file.to_owned();
        move |reason| StoreError::Io { action, file, reason }
    }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> io::Error {
        io::Error::other(error)
    }
}
