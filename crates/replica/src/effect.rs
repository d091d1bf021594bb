//! What a replica wants to be done.

use std::sync::Arc;

use consensus::{Index, Members, Payload, Refused};
use primitives::{Digest, Height, Transaction};

use crate::{FrameBytes, Network, PoolJob};

/// What the shell is to do, in order.
#[derive(Debug)]
pub enum Effect {
    /// A frame for peers.
    Send {
        /// To whom.
        to: Members,
        /// Whether it may wait behind votes.
        is_bulk: bool,
        /// Its bytes.
        bytes: Arc<[u8]>,
    },
    /// A peer went on sending what no correct validator sends: disconnect it for a while.
    Limit(Index),
    /// Links to other peers take the place of all that there are; what they tell comes with this generation.
    Connect(u64, Box<Network>),
    /// Work that is too long for a step.
    Job(Job),
    /// For the operator and the metrics.
    Told(Told),
    /// The validator cannot go on, and why.
    Stop(String),
}

/// What operators count.
#[derive(Clone, Debug)]
pub enum Told {
    /// The vote log was synced.
    VotesSynced,
    /// A frame was refused.
    Refused {
        /// Whose.
        peer: Index,
        /// Why.
        why: Refused,
    },
    /// A validator contradicted itself.
    Evidence,
    /// So many transactions were handed to another validator.
    HandedOver(usize),
    /// A height was decided, with sub-blocks of these validators.
    Decided(Vec<Index>),
    /// A height is certified here, as all below.
    Certified(Height),
    /// Certificates up to this height are durable; blocks above it are needed.
    CertifiedDurably(Height),
    /// An epoch began.
    Epoch(u64),
}

/// Work that is too long for a step.
#[derive(Debug)]
pub enum Job {
    /// On the pool.
    Pool(PoolJob),
    /// Submits what another validator could not get in, as if a client had sent it; what finds no room is sent again.
    Submit {
        /// Native transactions.
        native: Vec<Transaction>,
        /// Ethereum transactions in their EIP-2718 form.
        ethereum: Vec<Vec<u8>>,
    },
    /// A superblock that was decided.
    Apply(Agreed),
    /// The signatures of a sub-block that is being agreed on.
    Check {
        /// Its proposer.
        slot: Index,
        /// Its digest.
        digest: Digest,
        /// Its bytes.
        payload: Payload,
    },
    /// Decided heights, for a validator that lags.
    Answer {
        /// By these links.
        generation: u64,
        /// To whom.
        peer: Index,
        /// The first height.
        from: Height,
        /// The last.
        to: Height,
    },
    /// A message about whole states.
    State {
        /// By these links.
        generation: u64,
        /// From whom.
        peer: Index,
        /// Its bytes.
        bytes: FrameBytes,
    },
    /// The network of the epoch that decides this height, by a ledger that has applied the height below.
    NextEpoch(Height),
}

/// A superblock that was decided.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// Its height.
    pub height: Height,
    /// Slots and sub-blocks, in the order of the block.
    pub sub_blocks: Vec<(Index, Payload)>,
    /// How many clocks make a median that can be trusted.
    pub clocks_needed: usize,
}
