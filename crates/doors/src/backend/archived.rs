//! Blocks, receipts, certificates and handovers, from the caches or the archive.

use std::sync::Arc;

use consensus::Certificate;
use primitives::{Digest, Height, Superblock};
use readers::cache::ProvenReceipts;

use super::ReadError;

/// Blocks, receipts, certificates and handovers, from the caches or the archive.
pub trait Archived {
    /// A block; `None` if the node does not hold it.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn block(&self, height: Height) -> Result<Option<Arc<Superblock>>, ReadError>;

    /// The encoded block, as logged; `None` if the node does not hold it.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn raw_block(&self, height: Height) -> Result<Option<Vec<u8>>, ReadError>;

    /// The receipts of a block; `None` if the node does not hold them.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn receipts(&self, height: Height) -> Result<Option<Arc<ProvenReceipts>>, ReadError>;

    /// The encoded receipts of a block, as archived; `None` if the node does not hold them.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn raw_receipts(&self, height: Height) -> Result<Option<Vec<u8>>, ReadError>;

    /// What a quorum of validators has certified about a block; `None` if there is no certificate here, as in a solo
    /// node.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn certificate(&self, height: Height) -> Result<Option<CertifiedOutcome>, ReadError>;

    /// Handovers from an epoch on, as many as fit into one answer; `None` in a solo node, which has no committees.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if they cannot be read.
    fn handovers(&self, from: u64) -> Result<Option<HandoverPage>, ReadError>;
}

/// What validators have certified about a block.
#[derive(Clone, Debug)]
pub struct CertifiedOutcome {
    /// State root after the block.
    pub state_root: Digest,
    /// Root of its receipts.
    pub receipts_root: Digest,
    /// The certificate of both.
    pub certificate: Certificate,
}

/// Handovers of consecutive epochs.
#[derive(Clone, Debug)]
pub struct HandoverPage {
    /// The last epoch whose committee can be proved here; 0 if the founders' is the last.
    pub last: u64,
    /// The height of each certificate, and the encoded handover.
    pub handovers: Vec<(Height, Vec<u8>)>,
}
