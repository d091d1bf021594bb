//! The proof of the state after a height, for a validator that knows the committees, with what consensus needs to
//! continue from there.

use borsh::{BorshDeserialize, BorshSerialize};
use consensus::{Certificate, CertificateError, Chain, Finality, Index, Link, payload_digest};
use ledger::{Ledger, Limits, ReceiptsParts, ReceiptsTrie, Roots, outcome_root};
use primitives::{Amount, Digest, Fraction, Height};
use store::Disk;

use crate::{Past, ReplicaError};

/// Values that no block changes and no root covers: chain, ε, μ, and the fee and the limits of the genesis.
type Constants = (u64, Amount, Fraction, Fraction, Limits);

/// The constants of a ledger. What votes have made of fee and limits is in the root, as part of the charter.
pub fn constants_of(ledger: &Ledger) -> Constants {
    let (fee, limits) = ledger.founded();
    (ledger.chain(), fee, ledger.epsilon(), ledger.mu(), limits)
}

/// A height with its certificate, and the certificate of its outcome.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Base {
    /// The height.
    pub height: Height,
    /// The certificate of the height: it certifies the superblock.
    pub finality: Finality,
    /// The sub-blocks in the superblock, by slot.
    pub sub_blocks: Vec<(Index, Digest)>,
    /// The certificate of the outcome, from the height plus lag.
    pub outcome: Certificate,
    /// The state root after the height.
    pub state: Digest,
    /// The parts of its receipts root, among them the block's digest.
    pub receipts: ReceiptsParts,
}

/// Why a base proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseFault {
    /// The epoch is not known.
    #[error("its certificates are of epoch {0}, which no verified handover leads to")]
    Epoch(u64),
    /// A certificate is not valid.
    #[error("its certificate is not valid: {0}")]
    Certificate(CertificateError),
    /// The certificates are of other heights.
    #[error("its certificates are of other heights")]
    OtherHeight,
    /// Parent, sub-blocks or attendance are not those of the superblock.
    #[error("it names another superblock than its certificate")]
    OtherSuperblock,
    /// The roots are not those that were signed.
    #[error("its roots are not those that were signed")]
    OtherOutcome,
}

impl Base {
    /// Checks everything against the committees of the given epochs.
    pub fn verify(&self, chains: &[Chain], lag: u64) -> Result<(), BaseFault> {
        let (own, outcome) = (&self.finality.certificate, &self.outcome);
        if own.statement.height != self.height || Some(outcome.statement.height) != self.height.checked_add(lag) {
            return Err(BaseFault::OtherHeight);
        }
        let chain = known(chains, own)?;
        own.verify(chain).map_err(BaseFault::Certificate)?;
        outcome.verify(known(chains, outcome)?).map_err(BaseFault::Certificate)?;
        let benches = self.finality.benches.digest();
        let sub_blocks = self.sub_blocks.clone();
        let link = Link { height: self.height, parent: self.finality.parent, sub_blocks, benches };
        if link.digest(chain) != own.statement.superblock {
            return Err(BaseFault::OtherSuperblock);
        }
        let signed = outcome.statement.root == outcome_root(&self.state, &self.receipts.root());
        if signed { Ok(()) } else { Err(BaseFault::OtherOutcome) }
    }

    /// Whether a ledger is in the proved state, of a chain with these constants.
    pub fn is_of(&self, ledger: &Ledger, constants: Constants) -> bool {
        constants == constants_of(ledger)
            && (ledger.height(), ledger.last_block()) == (self.height, self.receipts.block)
            && Roots::of(ledger).parts().root() == self.state
    }

    /// The base of a height whose block is archived here; `None` if the block is missing or not certified yet.
    /// `newest` is the height and the root of the tries.
    ///
    /// # Errors
    /// [`ReplicaError`] if the archive cannot be read.
    pub fn read<D: Disk>(
        past: &Past<D>,
        newest: (Height, Digest),
        height: Height,
        lag: u64,
    ) -> Result<Option<Base>, ReplicaError> {
        let (own, above) = (past.finality(height)?, past.finality(height.saturating_add(lag))?);
        let (block, receipts) = (past.block(height)?, past.receipts(height)?);
        let (Some(own), Some(above), Some(block), Some(receipts)) = (own, above, block, receipts) else {
            return Ok(None);
        };
        let mut sub_blocks: Vec<(Index, Digest)> =
            block.sub_blocks.iter().map(|sub| (sub.proposer as Index, payload_digest(&sub.to_payload()))).collect();
        sub_blocks.sort_by_key(|(slot, _)| *slot);
        let Some((state, _)) = past.outcome(height, newest)? else { return Ok(None) };
        let receipts = ReceiptsTrie::new(&receipts).parts();
        Ok(Some(Base { height, finality: own, sub_blocks, outcome: above.certificate, state, receipts }))
    }
}

/// The committee that a certificate claims to be of.
fn known<'a>(chains: &'a [Chain], certificate: &Certificate) -> Result<&'a Chain, BaseFault> {
    chains.iter().find(|chain| chain.epoch == certificate.epoch).ok_or(BaseFault::Epoch(certificate.epoch))
}
