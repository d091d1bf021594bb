//! The errors of the store, and their remedies.

use std::io;

/// Why the store refuses.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system reported an error.
    #[error("{file}: cannot {action}: {reason}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file.
        file: String,
        /// The reason.
        reason: io::Error,
    },
    /// After an earlier disk error the content of the disk is uncertain until the store is opened again.
    #[error("the store stopped after an error ({0}): restart the node; it recovers from the disk")]
    Failed(String),
    /// Another process has the store open.
    #[error("{0}: in use by another process: stop that process, or use another data directory")]
    Locked(String),
    /// The bytes cannot be what was written.
    #[error("{file}, byte {offset}: {what}; {remedy}")]
    Damaged {
        /// The file, with its directory.
        file: String,
        /// The offset of the damaged record, chunk or header.
        offset: u64,
        /// The fault.
        what: String,
        /// The remedy.
        remedy: Remedy,
    },
    /// Heights are appended, put or checkpointed in a wrong order.
    #[error("{what} {height} is out of order: the next is {expected}")]
    OutOfOrder {
        /// The kind of what was given.
        what: &'static str,
        /// Its height.
        height: u64,
        /// The height that is accepted.
        expected: u64,
    },
    /// The receipts differ from the ones archived for this height.
    #[error("the receipts of block {0} differ from those archived when it was first executed: the replay diverged")]
    ReceiptsDiffer(u64),
    /// The block of the checkpoint is not durable yet.
    #[error("a checkpoint at {height} needs block {height} durable: only {durable} is")]
    NotDurable {
        /// Height of the checkpoint.
        height: u64,
        /// Last durable block.
        durable: u64,
    },
    /// The vote log is missing or was never completed: the votes that this validator has signed are unknown.
    #[error(
        "{0}: the vote log is missing: the validator must not vote now, but may rejoin at a height that it \
         cannot have voted at"
    )]
    VotesLost(String),
    /// There is already a vote log where a new one is to be created.
    #[error("{0}: there is a vote log already; it is never overwritten")]
    VotesExist(String),
    /// The vote log has reached its maximum size: heights do not end.
    #[error("the vote log holds {0} bytes and may not grow: no height ends, so nothing can be forgotten")]
    VotesFull(u64),
    /// A block was forgotten before it could be read.
    #[error("block {0} was forgotten while older ones were being read: try again")]
    Forgotten(u64),
    /// A second checkpoint is begun while the first is being written.
    #[error("another checkpoint is still being written")]
    CheckpointRunning,
}

/// The remedy for damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The blocks are needed and exist nowhere else on this machine.
    Restore,
    /// Another checkpoint and the log suffice.
    RemoveCheckpoint,
    /// A snapshot cannot be repaired.
    OtherCopy,
    /// The signed votes are no longer known.
    Rejoin,
    /// An index can be made again.
    RemoveRuns,
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
                "the votes of this validator are not known: it must rejoin without voting, at a height that it cannot \
                 have voted at"
            }
            Remedy::RemoveRuns => {
                "remove the files of this directory and start again: the index is made from the blocks that are kept"
            }
            Remedy::OtherCopy => "take another copy, or make the snapshot again",
        })
    }
}

impl StoreError {
    /// Wraps an error of the operating system, with the action that failed.
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
