//! The handovers that a node keeps, for clients that follow its committees ([`proofs::Handover`] has the protocol).
//!
//! The registry is written before the next block is applied, since a restart may begin at a later checkpoint. It is
//! joined with its certificate on request: certificates are kept forever, and they are durable before the engine of the
//! next epoch begins. Handovers fetched from others are stored whole.
//!
//! **Completeness**: a node that has applied the first block of an epoch has the handover to it, also after restarts,
//! unless it began with a snapshot whose file had none. Then the node says so, and the client must ask another node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use borsh::{BorshDeserialize, BorshSerialize};
use consensus::{Certificate, Finality};
use ledger::{Ledger, Roots};
use primitives::Digest;
use proofs::{Handover, Lineage, ValidatorsProof};
use store::{Archive, Disk, Options, Store};

use crate::{ReplicaError, encode};

/// Maximum number of handovers in one answer, and the number of bytes after which no more are added.
pub(crate) const PAGE: usize = 32;
const PAGE_BYTES: usize = 512 << 10;

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
