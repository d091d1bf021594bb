//! Everything a validator does, as steps: no thread, no socket, no clock, and any disk.
//!
//! # The protocol
//!
//! A *shell* drives a [`Replica`]: `node` with threads, sockets and real time, `sim` with seeded faults.
//!
//! ```text
//! loop { inputs = wait(replica.deadline()); effects = replica.step(now, waiting, inputs)?; perform(effects) }
//! ```
//!
//! An [`Input`] is a frame of a peer, a link that came up or went down, or the result of a job. An [`Effect`] is a
//! frame to send, a change of the links, a report for the operator, or a [`Job`]: work that takes too long for a
//! step, described as data. The shell performs jobs wherever it likes and returns each result as an input.
//!
//! One step takes all available inputs, lets the consensus engine make one turn, writes the turn's entries to the
//! vote log with one sync, and only then gives out the turn's frames. Time comes in with the step ([`Now`]);
//! [`Replica::deadline`] says when the next step is due at the latest.
//!
//! | job | on | result |
//! |---|---|---|
//! | [`PoolJob`]: assemble a sub-block, forward transactions, take them back | the pool | [`Input::Assembled`], [`Input::HandedOver`], [`Input::TakenBack`] |
//! | [`Job::Apply`] a decided superblock: the jobs of its [`life`] | ledger, journal, tries, pool | [`Input::Applied`] when the block is durable and applied; [`Input::StateRoot`], [`Input::ReceiptsRoot`] |
//! | [`Job::Check`] the signatures of a sub-block that is being agreed on ([`checked`]) | nothing | none: applying a block checks what is unchecked |
//! | [`Job::Answer`] a validator that lags ([`Past::answer`]) | archives | none: the shell sends the frame |
//! | [`Job::State`], a message about whole states ([`StateSync`]) | archives, `incoming` | none |
//! | [`Job::NextEpoch`] ([`Network::at`]) | the ledger | [`Input::Epoch`] |
//!
//! Links have a *generation*: each epoch that needs other links increments it, and inputs of links of an earlier
//! generation are ignored. Results of jobs name their height; results that are void by then are not used.
//!
//! # Properties
//!
//! - *Votes survive a crash*: no frame that depends on a vote is given out before the vote is durable.
//! - *Acknowledged blocks are durable*: [`Input::Applied`] means that the block is logged and synced.
//! - *Certificates before pruning*: votes and blocks are removed only below heights whose certificates are durable,
//!   and an epoch begins only when the certificates of the epoch before are durable.
//! - *The shell loses no transaction*: transactions that were taken from the pool for a sub-block that was not
//!   decided, or that became void before it was proposed, return to the pool ([`PoolJob::Restore`]).
//! - *Offences are bounded*: a peer that sends [`OFFENCES_MAX`] frames that no correct validator sends is
//!   disconnected for a while. Each tick forgives one.
//! - *Deterministic*: the same inputs at the same times give the same effects.
//!
//! # Deviations from the paper
//!
//! Smart Red Belly Blockchain describes one process whose threads share queues. Here one state machine makes all
//! decisions and the threads belong to the shell, so that the simulator runs the same code.
//!
//! A validator whose sub-block was left out, or that has no slot for a while, forwards its pending transactions to
//! the next validator that has a slot, and proposes empty sub-blocks until one of its own is included. Transactions
//! that are not included after some seconds are forwarded to the validator after that; a transaction in several
//! sub-blocks takes effect once. So clients of a slow, distant or just restarted validator wait for two more
//! messages, not for its slot.

pub mod accusations;
mod attendance;
mod effect;
mod error;
pub mod ethereum_index;
pub mod ethereum_pool;
pub mod handover;
mod home;
mod input;
pub mod life;
mod machine;
pub mod mempool;
mod network;
mod past;
mod pipeline;
mod proposals;
pub mod recovery;
mod restarted;
mod seat;
mod settings;
pub mod state_sync;
pub mod unsealing;

/// How far a validator is, as its clients read it.
pub use api::{PeerStatus, SealedWait, ValidatorStatus};
pub use effect::{Agreed, Effect, Job, Observation};
pub use error::ReplicaError;
pub use ethereum_index::{
    EthereumIndex, LOG_ALTERNATIVES_MAX, LOG_HEIGHTS_MAX, LOG_RESULTS_MAX, LogCursor, LogFilter, LogPlace, LogsError,
    LogsPage, ReceiptPlace,
};
pub use ethereum_pool::{EthereumCandidate, EthereumPool, EthereumReject, PendingEthereum, PoolDrop, ProposedSection};
pub use handover::{HandoverLog, Handovers};
pub use home::Home;
pub use input::{FrameBytes, Input, Now, Sight, Waiting};
pub use life::{BlockJob, BlockLife, BlockWorker, LifeInput, LifeMistake, LifeSettings, LifeStart};
pub use machine::opening::{Opened, check_payload, create_votes};
pub use machine::{INPUTS_OF_A_STEP, OFFENCES_MAX, Replica};
pub use mempool::{Mempool, PoolEntry, Reject};
pub use network::{EthereumSection, Network, OwnKeys, PeerAddress};
pub use past::Past;
pub use pipeline::{Foundation, apply, archive, begin_checkpoint, checked, follow, hash, log, settle};
/// What clients follow committees by.
pub use proofs::{Handover, HandoverError, Lineage};
pub use proposals::{PoolJob, Proposals};
pub use recovery::{
    Replay, Restored, begin, receipts, receipts_with, recover_state, restore, write_checkpoint, write_state,
};
pub use restarted::begin_again;
pub use seat::{SealDone, SealSeat, SealWork, SeatMistake, SeatSecret, SeatSecrets};
pub use settings::{Defect, ReplicaSettings};
pub use state_sync::{Own, StateEffect, StateSync};
pub use unsealing::{UnsealFrame, UnsealMistake, Unsealer};

/// The Borsh encoding of a value.
pub fn encode<T: borsh::BorshSerialize>(value: &T) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory cannot fail")
}
