//! Restarts a network under a new identity, from a state that its validators agree on outside the protocol.
//!
//! A validator cannot take back what it has signed, and its vote log is never edited. So a network that must go back
//! to an earlier state, or discard the blocks of a faulty binary, restarts under another identity: the digest of the
//! first identity, the number of the restart, and the snapshot that it begins with. Everything that validators sign
//! names the identity, so earlier statements mean nothing in the restarted network and contradict nothing in it.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;

use crate::{Ledger, Snapshot};

const SNAPSHOT_CONTEXT: &str = "walras 2026 snapshot v1";
const IDENTITY_CONTEXT: &str = "walras 2026 restart of a network v1";

/// Which restart of a network this is, and the snapshot it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Restart {
    /// How often the network has restarted, including this time; counted from 1.
    pub number: u32,
    /// The digest of the state ([`Snapshot::digest`]) that the previous network ended with.
    pub snapshot: Digest,
}

/// Why a network cannot restart with a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// The number is 0; restarts are counted from 1.
    #[error("the number of a restart is 1 or more: set it to 1 for the first restart")]
    Number,
    /// The state is not the one that was agreed on.
    #[error("the state has snapshot digest {found}, but the restart begins with {agreed}: use the agreed snapshot")]
    OtherSnapshot {
        /// The state's digest.
        found: Digest,
        /// The digest agreed on.
        agreed: Digest,
    },
}

impl Restart {
    /// The identity of the restarted network; `first` is the identity of the network when it was founded.
    pub fn identity(&self, first: &Digest) -> Digest {
        Digest::of(IDENTITY_CONTEXT, &borsh::to_vec(&(first, self)).expect("writing to memory cannot fail"))
    }
}

impl Snapshot<'_> {
    /// The digest of a ledger's state: over all its chunks, each preceded by its length.
    pub fn digest(ledger: &Ledger) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key(SNAPSHOT_CONTEXT);
        for chunk in Snapshot::of(ledger) {
            hasher.update(&(chunk.len() as u64).to_le_bytes()).update(&chunk);
        }
        Digest(hasher.finalize().into())
    }
}

impl Ledger {
    /// Starts the restarted network with this state and returns its identity. The state root changes with it.
    ///
    /// # Errors
    /// [`RestartError`] if this is not the state that was agreed on; then nothing has changed.
    pub fn begin_again(&mut self, first: &Digest, restart: &Restart) -> Result<Digest, RestartError> {
        let (found, agreed) = (Snapshot::digest(self), restart.snapshot);
        match () {
            _ if restart.number == 0 => return Err(RestartError::Number),
            _ if found != agreed => return Err(RestartError::OtherSnapshot { found, agreed }),
            _ => {}
        }
        let identity = restart.identity(first);
        Arc::make_mut(&mut self.validators).rename(identity);
        Ok(identity)
    }
}
