//! Handovers: proofs of a committee for a client that knows the committee before it.
//!
//! # The protocol
//!
//! The genesis names the validators of epoch 0. The committee of epoch `e` is drawn when block `e · epoch_heights`,
//! the boundary, is applied. From then on it is part of the state root. It starts deciding when `e − 1` ends, `delay`
//! heights later. In between, the committee of `e − 1` certifies a state that contains the committee of `e`: a commit
//! of height `k` signs the outcome of `k − lag`. A *handover* to `e` is that certificate together with the path from
//! its root to the committee: the receipts root of the block, the parts of the state root, and the registry, whose
//! digest is one of these parts. A client that trusts the keys of `e − 1` checks, in this order, that enough of these
//! keys signed, that they signed the given outcome, that the registry is that of the outcome's state, that it belongs
//! to this network, and that it holds a committee of `e`. From then on the client trusts the keys of `e` for the
//! heights of `e`, and no longer those of `e − 1`.
//!
//! A client with the genesis reaches the present with one handover per epoch ([`Lineage`]). `walras light` does this,
//! and so does a validator before it accepts a state from others (`state_sync`).
//!
//! Of all suitable certificates, the one of the lowest height is kept ([`Lineage::state_height`]), so that all nodes
//! keep the same one. The registry is written before the next block is applied, since a restart may begin at a later
//! checkpoint. It is joined with its certificate on request: certificates are kept forever, and they are durable
//! before the engine of the next epoch begins. Handovers fetched from others are stored whole.
//!
//! # Properties
//!
//! - *Soundness*: if each committee has at most f faulty validators while it is active and for as long as clients
//!   follow its handovers, nobody can make a client trust a committee other than the one that was drawn.
//! - *Completeness*: a node that has applied the first block of an epoch has the handover to it, also after restarts,
//!   unless it began with a snapshot whose file had none. Then the node says so, and the client must ask another
//!   node.
//!
//! # Deviations
//!
//! - The specification of epochs (§2.9) puts the digest of the next committee into the certificate of an epoch's last
//!   height. Here the certificate is an ordinary one: every state root contains the committees anyway.
//! - The keys of past committees stay valid for the past: whoever buys them can sign another history from there on.
//!   So a client follows handovers no further than to the last epoch in which the stakes of its first committee can
//!   still be punished. If its trust is older than that, it begins with a state root that a trusted party tells it
//!   ([`Lineage::begin_at`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use borsh::{BorshDeserialize, BorshSerialize};
use consensus::{Certificate, CertificateError, Chain, Finality};
use ledger::{Ledger, Member, ProofFault, Roots, Schedule, Validators, ValidatorsProof, outcome_root};
use primitives::{Digest, Height};
use store::{Archive, Disk, Options, Store};

use crate::{ReplicaError, encode};

/// Maximum number of handovers in one answer, and the number of bytes after which no more are added.
pub(crate) const PAGE: usize = 32;
const PAGE_BYTES: usize = 512 << 10;

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
        if validators.terms().network != self.chain.genesis || validators.terms().schedule != self.schedule {
            return Err(HandoverError::OtherNetwork(epoch));
        }
        let members = validators.committee(epoch).filter(|members| is_possible(members.len()));
        members.ok_or(HandoverError::NoCommittee(epoch))
    }
}

fn is_possible(members: usize) -> bool {
    (1..=consensus::committee::MEMBERS_MAX).contains(&members)
}

/// A handover as stored in the archive.
#[derive(BorshSerialize, BorshDeserialize)]
struct Kept {
    receipts: Digest,
    validators: ValidatorsProof,
    /// `None` if it is among this node's certificates.
    certificate: Option<Certificate>,
}

/// The handovers that a node holds, by epoch. Any thread may read them.
pub struct Handovers<D: Disk> {
    /// The lineage of the genesis.
    lineage: Lineage,
    /// The last epoch held.
    last: AtomicU64,
    archive: Archive<D>,
    certificates: Archive<D>,
}

/// The log that handovers are appended to. The thread that applies blocks owns it.
pub struct HandoverLog<D: Disk> {
    store: Store<D>,
    /// The handovers in it.
    pub held: Arc<Handovers<D>>,
}

impl<D: Disk> HandoverLog<D> {
    /// Opens the log of handovers. `lineage` is that of the genesis.
    ///
    /// # Errors
    /// [`ReplicaError`] if it cannot be read.
    pub fn open(disk: D, lineage: Lineage, certificates: Archive<D>) -> Result<HandoverLog<D>, ReplicaError> {
        let store = Store::open(disk, Options::default())?.0;
        let (archive, last) = (store.archive(), AtomicU64::new(store.last_height()));
        Ok(HandoverLog { store, held: Arc::new(Handovers { lineage, last, archive, certificates }) })
    }

    /// Durably stores the registry after a block, for the handover to an epoch that is [`Handovers::due`]. `roots`
    /// are the tries of the ledger, and `receipts` is the receipts root of its last block.
    ///
    /// # Errors
    /// [`ReplicaError`] if it cannot be written.
    pub fn keep(
        &mut self,
        epoch: u64,
        ledger: &Ledger,
        roots: &mut Roots,
        receipts: Digest,
    ) -> Result<(), ReplicaError> {
        let validators = roots.prove_validators(ledger);
        keep(&mut self.store, epoch, &Kept { receipts, validators, certificate: None })?;
        self.held.last.store(self.store.last_height(), Ordering::Release);
        Ok(())
    }
}

impl<D: Disk> HandoverLog<D> {
    /// Stores the registry of the state that a restarted network begins with, for the handover to the next epoch, if
    /// that epoch's committee is drawn already.
    ///
    /// # Errors
    /// [`ReplicaError`] if it cannot be written.
    pub(crate) fn keep_first(&mut self, ledger: &Ledger) -> Result<(), ReplicaError> {
        let Lineage { schedule, chain, .. } = &self.held.lineage;
        let next = chain.epoch + 1;
        if ledger.validators().last_epoch() < next || schedule.is_fixed() {
            return Ok(());
        }
        self.keep(next, ledger, &mut Roots::of(ledger), Digest::default())
    }
}

impl<D: Disk> Handovers<D> {
    /// The last epoch whose handover is held, with or without its certificate; 0 if there is none.
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// The epoch whose handover needs the registry after the last applied block and is not held yet, if any. It must
    /// be stored before the next block is logged.
    pub fn due(&self, ledger: &Ledger) -> Option<u64> {
        let (height, drawn) = (ledger.height(), ledger.validators().last_epoch());
        let from_here = (1..=drawn).rev().take_while(|epoch| self.lineage.state_height(*epoch) >= height);
        let due = from_here.last().filter(|epoch| self.lineage.state_height(*epoch) == height);
        due.filter(|epoch| *epoch > self.last())
    }

    /// The handover to an epoch; `None` if it is not held, or not certified yet.
    ///
    /// # Errors
    /// [`ReplicaError`] if it cannot be read.
    pub fn get(&self, epoch: u64) -> Result<Option<Handover>, ReplicaError> {
        let Some(bytes) = self.archive.block(epoch)? else { return Ok(None) };
        let height = self.lineage.certificate_height(epoch);
        let undecodable = |error| ReplicaError::Undecodable(height, error);
        let Kept { receipts, validators, certificate } = borsh::from_slice(&bytes).map_err(undecodable)?;
        let certificate = match certificate {
            Some(certificate) => certificate,
            None => {
                let Some(bytes) = self.certificates.block(height)? else { return Ok(None) };
                borsh::from_slice::<Finality>(&bytes).map_err(undecodable)?.certificate
            }
        };
        Ok(Some(Handover { certificate, receipts, validators }))
    }

    /// The last epoch whose handover is complete; 0 if there is none.
    ///
    /// # Errors
    /// [`ReplicaError`] if one cannot be read.
    pub fn last_certified(&self) -> Result<u64, ReplicaError> {
        for epoch in (1..=self.last()).rev() {
            // Only the newest ones can lack their certificates.
            if self.archive.block(epoch)?.is_none() || self.get(epoch)?.is_some() {
                return Ok(epoch);
            }
        }
        Ok(0)
    }

    /// The handovers from an epoch on, as many as fit into one answer.
    ///
    /// # Errors
    /// [`ReplicaError`] if one cannot be read.
    pub fn page(&self, from: u64) -> Result<Vec<Handover>, ReplicaError> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for epoch in (from.max(1)..=u64::MAX).take(PAGE) {
            let Some(handover) = self.get(epoch)? else { break };
            bytes += encode(&handover).len();
            page.push(handover);
            if bytes >= PAGE_BYTES {
                break;
            }
        }
        Ok(page)
    }
}

/// Durably appends the next handover; an epoch held already is left unchanged. An empty log begins at the node's
/// first epoch.
fn keep<D: Disk>(store: &mut Store<D>, epoch: u64, kept: &Kept) -> Result<(), ReplicaError> {
    if epoch <= store.last_height() {
        return Ok(());
    }
    if store.last_height() == 0 && epoch > 1 {
        store.begin_after(epoch - 1)?;
    }
    store.append(epoch, &encode(kept))?;
    store.sync()?;
    Ok(())
}

/// Stores verified handovers, from an epoch on, on an empty disk that no node has open.
pub(crate) fn write_all<D: Disk>(disk: D, first_epoch: u64, handovers: Vec<Handover>) -> Result<(), ReplicaError> {
    let mut store = Store::open(disk, Options::default())?.0;
    for (epoch, Handover { certificate, receipts, validators }) in (first_epoch..).zip(handovers) {
        keep(&mut store, epoch, &Kept { receipts, validators, certificate: Some(certificate) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
