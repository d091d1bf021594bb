//! The restart of a network, from a state that its validators agree on outside it, as a network of its own.
//!
//! What a validator has signed cannot be taken back, and its log of votes is never edited. So a network that must go
//! back to an earlier state, or leave the blocks of a faulty binary behind, begins again under another identity: the
//! digest of the first one's, of the number of the restart, and of the snapshot that it begins with. All that
//! validators sign names the identity, so statements of before mean nothing in the restarted network, and contradict
//! none of it.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;

use crate::{Ledger, Snapshot};

const SNAPSHOT_CONTEXT: &str = "walras 2026 snapshot v1";
const IDENTITY_CONTEXT: &str = "walras 2026 restart of a network v1";

/// Which restart of a network, and what it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Restart {
    /// How often the network has begun again, this time included; from 1.
    pub number: u32,
    /// The digest of the state ([`Snapshot::digest`]) as it was in the network before.
    pub snapshot: Digest,
}

/// Why a network cannot begin again with a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// The first start has no number.
    #[error("restarts are counted from 1")]
    Number,
    /// Another state than the one that was agreed on.
    #[error("the state is that of snapshot {found}, and the restart begins with {agreed}: take the agreed snapshot")]
    OtherSnapshot {
        /// The state's digest.
        found: Digest,
        /// The digest agreed on.
        agreed: Digest,
    },
}

impl Restart {
    /// The identity of the restarted network; `first` is that of the network when it was founded.
    pub fn identity(&self, first: &Digest) -> Digest {
        Digest::of(IDENTITY_CONTEXT, &borsh::to_vec(&(first, self)).expect("writing to memory cannot fail"))
    }
}

impl Snapshot<'_> {
    /// The digest of a ledger's state: of all its chunks, each after its length.
    pub fn digest(ledger: &Ledger) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key(SNAPSHOT_CONTEXT);
        for chunk in Snapshot::of(ledger) {
            hasher.update(&(chunk.len() as u64).to_le_bytes()).update(&chunk);
        }
        Digest(hasher.finalize().into())
    }
}

impl Ledger {
    /// Begins the network of a restart with this state; returns its identity. The state root changes with it.
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
