//! What a replica asks the shell to do.

use std::sync::Arc;

use consensus::{Index, Members, Payload, Refused};
use ledger::BlockClock;
use primitives::{Digest, Height, Transaction};

use crate::unsealing::{Points, UnsealJob};
use crate::{FrameBytes, Network, PoolJob};

/// What the shell must do, in order.
#[derive(Debug)]
pub enum Effect {
    /// Send a frame to peers.
    Send {
        /// The receivers.
        to: Members,
        /// Whether it may queue behind votes.
        is_bulk: bool,
        /// Its bytes.
        bytes: Arc<[u8]>,
    },
    /// A peer keeps sending frames that no correct validator sends: disconnect it for a while.
    Limit(Index),
    /// Replace all links with links to these peers. Their inputs carry this generation.
    Connect(u64, Box<Network>),
    /// Work that takes too long for a step.
    Job(Job),
    /// A report for the operator and the metrics.
    Observed(Observation),
    /// The validator cannot continue; the text says why.
    Stop(String),
}

/// Events that operators count.
#[derive(Clone, Debug)]
pub enum Observation {
    /// The vote log was synced.
    VotesSynced,
    /// A frame was rejected.
    Refused {
        /// The sender.
        peer: Index,
        /// The reason.
        why: Refused,
    },
    /// A validator signed contradictory statements.
    Evidence,
    /// The number of transactions that were forwarded to another validator.
    Forwarded(usize),
    /// A height was decided, with the sub-blocks of these validators.
    Decided(Vec<Index>),
    /// This height and all below are certified here.
    Certified(Height),
    /// Certificates up to this height are durable; only blocks above it are still needed.
    CertifiedDurably(Height),
    /// An epoch began.
    Epoch(u64),
}

/// Work that takes too long for a step.
#[derive(Debug)]
pub enum Job {
    /// A job on the pool.
    Pool(PoolJob),
    /// Submit transactions that another validator forwarded, as if a client had sent them. Those for which the pool
    /// has no room are submitted again later.
    Submit {
        /// Who forwarded them.
        from: Index,
        /// Native transactions.
        native: Vec<Transaction>,
        /// Ethereum transactions in their EIP-2718 form.
        ethereum: Vec<Vec<u8>>,
    },
    /// Apply a decided superblock.
    Apply(Agreed),
    /// Check the signatures of a sub-block that is being agreed on.
    Check {
        /// Its proposer.
        slot: Index,
        /// Its digest.
        digest: Digest,
        /// Its bytes.
        payload: Payload,
    },
    /// Send decided heights to a validator that lags.
    Answer {
        /// The generation of the links to use.
        generation: u64,
        /// The receiver.
        peer: Index,
        /// The first height.
        from: Height,
        /// The last.
        to: Height,
    },
    /// Handle a message about whole states.
    State {
        /// The generation of the links that it came by.
        generation: u64,
        /// The sender.
        peer: Index,
        /// Its bytes.
        bytes: FrameBytes,
    },
    /// Find what opens in a decided block, or make, combine or check opening keys.
    Unseal(UnsealJob),
    /// Send a peer the opening keys of a block that is applied here.
    Recall {
        /// The generation of the links to use.
        generation: u64,
        /// The receiver.
        peer: Index,
        /// The height.
        height: Height,
    },
    /// Find the network of the epoch that decides this height. It needs a ledger that has applied the height below.
    NextEpoch(Height),
}

/// A superblock that was decided.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// Its height.
    pub height: Height,
    /// Slots and sub-blocks, in the order of the block.
    pub sub_blocks: Vec<(Index, Payload)>,
    /// How its block gets its time.
    pub clock: BlockClock,
    /// The keys of the envelopes that it opens, in their order.
    pub keys: Points,
}
