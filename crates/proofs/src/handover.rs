//! Handovers: proofs of a committee for a client that knows the committee before it.
//!
//! # The protocol
//!
//! The genesis names the validators of epoch 0. The committee of epoch `e` is drawn when block `e · epoch_heights`, the
//! boundary, is applied. From then on it is part of the state root. It starts deciding when `e − 1` ends, `delay`
//! heights later. In between, the committee of `e − 1` certifies a state that contains the committee of `e`: a commit
//! of height `k` signs the outcome of `k − lag`. A *handover* to `e` is that certificate together with the path from
//! its root to the committee. The path has the receipts root of the block, the parts of the state root, and the
//! registry, whose digest is one of these parts. A client that trusts the keys of `e − 1` checks, in this order, that
//! enough of these keys signed, and that they signed the given outcome. It checks that the registry is that of the
//! outcome's state, that it belongs to this network, and that it holds a committee of `e`. From then on the client
//! trusts the keys of `e` for the heights of `e`, and no longer those of `e − 1`. The same proof shows
//! the rules of the chain by height, and so those of `e`.
//!
//! A client with the genesis reaches the present with one handover per epoch ([`Lineage`]). A light client does this,
//! and so does a validator before it accepts a state from others. Of all suitable certificates, the one of the lowest
//! height counts ([`Lineage::state_height`]), so that all nodes keep the same one.
//!
//! # Properties
//!
//! - *Soundness*: if each committee has at most f faulty validators while it is active and for as long as clients
//!   follow its handovers, nobody can make a client trust a committee other than the one that was drawn.
//!
//! # Deviations
//!
//! - The specification of epochs (§2.9) puts the digest of the next committee into the certificate of an epoch's last
//!   height. Here the certificate is an ordinary one: every state root contains the committees anyway.
//! - The keys of past committees stay valid for the past: whoever buys them can sign another history from there on.
//!   So a client follows handovers no further than to the last epoch in which the stakes of its first committee can
//!   still be punished. If its trust is older than that, it begins with a state root that a trusted party tells it
//!   ([`Lineage::begin_at`]).

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, Height};

use crate::certificate::{Certificate, CertificateError};
use crate::chain::Chain;
use crate::committee::MEMBERS_MAX;
use crate::receipts_root::outcome_root;
use crate::root_parts::ProofFault;
use crate::schedule::Schedule;
use crate::validators::{Member, Validators, ValidatorsProof};

/// The proof of an epoch's committee, for a client that trusts the committee of the epoch before.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Handover {
    /// The certificate of a height of the epoch before.
    pub certificate: Certificate,
    /// The receipts root of the block whose outcome is certified.
    pub receipts: Digest,
    /// The registry in the state after that block; it contains the next committee.
    pub validators: ValidatorsProof,
}

/// Why a handover is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandoverError {
    /// It is of another epoch than the one whose keys are trusted.
    #[error(
        "the handover to epoch {expected} is signed by the committee of epoch {signed}, not by that of the epoch \
         before: follow every epoch in order"
    )]
    Skipped {
        /// The epoch to be proved.
        expected: u64,
        /// The epoch of the certificate.
        signed: u64,
    },
    /// The certificate is not valid.
    #[error("the handover to epoch {0} has no valid certificate: {1}")]
    Certificate(u64, CertificateError),
    /// The given roots are not those that were signed.
    #[error("the handover to epoch {0} contains another outcome than the signed one")]
    OtherOutcome(u64),
    /// The registry is not that of the certified state.
    #[error("the handover to epoch {0} contains another registry than the certified one: {1}")]
    Registry(u64, ProofFault),
    /// The registry is that of another network.
    #[error("the handover to epoch {0} belongs to another network")]
    OtherNetwork(u64),
    /// The state is from before the draw, or so late that it no longer contains the committee.
    #[error("the handover to epoch {0} contains a state without the committee of that epoch")]
    NoCommittee(u64),
    /// The validators of this network are fixed.
    #[error("the validators of this network never change: there is no epoch {0}")]
    Fixed(u64),
}

/// A client's trust: the committee of one epoch, derived from the genesis and the handovers since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// When committees change.
    pub schedule: Schedule,
    /// How many heights an outcome is below the certificate that signs it.
    pub lag: u64,
    /// The height that the network begins with.
    pub begins: Height,
    /// The trusted epoch.
    pub chain: Chain,
}

impl Lineage {
    /// The height whose outcome the handover to an epoch proves: the lowest height that is at or after the draw and
    /// that the epoch before certifies.
    pub fn state_height(&self, epoch: u64) -> Height {
        let first_certified = self.schedule.first_height(epoch.saturating_sub(1)).saturating_sub(self.lag);
        self.schedule.boundary(epoch).max(first_certified).max(self.begins)
    }

    /// The height of the certificate of the handover to an epoch.
    pub fn certificate_height(&self, epoch: u64) -> Height {
        let state_height = self.state_height(epoch);
        // The first height of a restarted network signs the outcome of the state that it begins with.
        let above = if state_height == self.begins { 1 } else { self.lag };
        state_height.saturating_add(above)
    }

    /// The last epoch whose handover is proved by a certified state of this height or below.
    pub fn last_behind(&self, height: Height) -> u64 {
        let drawn = height.checked_div(self.schedule.epoch_heights).unwrap_or(0);
        (1..=drawn).rev().find(|epoch| self.state_height(*epoch) <= height).unwrap_or(0)
    }

    /// Moves to the next epoch if the handover to it is valid; otherwise nothing changes.
    ///
    /// # Errors
    /// [`HandoverError`].
    pub fn follow(&mut self, handover: &Handover) -> Result<(), HandoverError> {
        let epoch = self.chain.epoch + 1;
        if self.schedule.is_fixed() {
            return Err(HandoverError::Fixed(epoch));
        }
        let members = self.committee(epoch, handover)?;
        self.chain = self.chain_of(epoch, members);
        Ok(())
    }

    /// Trusts the committee of an epoch because a trusted party names the root of a state that contains it. No
    /// signature is checked, so keys of earlier committees, which may have been sold since, prove nothing.
    ///
    /// # Errors
    /// [`HandoverError`]; then nothing changes.
    pub fn begin_at(&mut self, epoch: u64, state: &Digest, validators: &ValidatorsProof) -> Result<(), HandoverError> {
        if self.schedule.is_fixed() {
            return Err(HandoverError::Fixed(epoch));
        }
        let members = self.registered(epoch, state, validators)?;
        self.chain = self.chain_of(epoch, members);
        Ok(())
    }

    /// The epoch whose handover contains the state of this height, if there is one.
    pub fn epoch_shown_at(&self, height: Height) -> Option<u64> {
        Some(self.last_behind(height)).filter(|epoch| *epoch > 0 && self.state_height(*epoch) == height)
    }

    fn chain_of(&self, epoch: u64, members: &[Member]) -> Chain {
        let heights = self.schedule.first_height(epoch)..=self.schedule.last_height(epoch);
        let keys = members.iter().map(|member| member.key).collect();
        Chain { genesis: self.chain.genesis, epoch, heights, keys }
    }

    /// Verifies a handover and returns the committee that it proves.
    fn committee<'a>(&self, epoch: u64, handover: &'a Handover) -> Result<&'a [Member], HandoverError> {
        let Handover { certificate, receipts, validators } = handover;
        if certificate.epoch != self.chain.epoch {
            return Err(HandoverError::Skipped { expected: epoch, signed: certificate.epoch });
        }
        certificate.verify(&self.chain).map_err(|error| HandoverError::Certificate(epoch, error))?;
        let state = validators.parts.root();
        if certificate.statement.root != outcome_root(&state, receipts) {
            return Err(HandoverError::OtherOutcome(epoch));
        }
        self.registered(epoch, &state, validators)
    }

    /// The committee of an epoch in the registry of a state.
    fn registered<'a>(
        &self,
        epoch: u64,
        state: &Digest,
        validators: &'a ValidatorsProof,
    ) -> Result<&'a [Member], HandoverError> {
        let validators: &Validators =
            validators.verify(state).map_err(|fault| HandoverError::Registry(epoch, fault))?;
        if validators.terms.network != self.chain.genesis || validators.terms.schedule != self.schedule {
            return Err(HandoverError::OtherNetwork(epoch));
        }
        let members = validators.committee(epoch).filter(|members| is_possible(members.len()));
        members.ok_or(HandoverError::NoCommittee(epoch))
    }
}

fn is_possible(members: usize) -> bool {
    (1..=MEMBERS_MAX).contains(&members)
}
