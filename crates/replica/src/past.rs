//! The archive of a replica: blocks, receipts and certificates.

use consensus::{Decided, Finality, Frame, Index, Payload};
use ledger::{BlockReceipts, ReceiptsTrie};
use primitives::{Digest, Height, Superblock};
use store::{Archive, Disk};

use crate::ReplicaError;
use crate::unsealing::{Points, UnsealFrame};
use sealing::OpeningKey;

/// Reads the archive, from any thread.
#[derive(Debug)]
pub struct Past<D: Disk> {
    /// Blocks, receipts and checkpoints.
    pub blocks: Archive<D>,
    /// Certificates.
    pub certificates: Archive<D>,
    /// The height that the network begins with; its outcome has no receipts.
    pub begins: Height,
}

impl<D: Disk> Clone for Past<D> {
    fn clone(&self) -> Past<D> {
        Past { blocks: self.blocks.clone(), certificates: self.certificates.clone(), begins: self.begins }
    }
}

impl<D: Disk> Past<D> {
    /// The block of a height; `None` if it is not held.
    ///
    /// # Errors
    /// [`ReplicaError`] if it cannot be read.
    pub fn block(&self, height: Height) -> Result<Option<Superblock>, ReplicaError> {
        decoded(height, self.blocks.block(height)?)
    }

    /// The receipts of a height; `None` if they are not held.
    ///
    /// # Errors
    /// [`ReplicaError`] if they cannot be read.
    pub fn receipts(&self, height: Height) -> Result<Option<BlockReceipts>, ReplicaError> {
        decoded(height, self.blocks.receipts(height)?)
    }

    /// The certificate of a height with what belongs to it; `None` if it is not held.
    ///
    /// # Errors
    /// [`ReplicaError`] if it cannot be read.
    pub fn finality(&self, height: Height) -> Result<Option<Finality>, ReplicaError> {
        decoded(height, self.certificates.block(height)?)
    }

    /// State root and receipts root of a height, if they are archived. `newest` is the height and the root of the
    /// tries.
    ///
    /// # Errors
    /// [`ReplicaError`] if they cannot be read.
    pub fn outcome(&self, height: Height, newest: (Height, Digest)) -> Result<Option<(Digest, Digest)>, ReplicaError> {
        let state = if height == newest.0 {
            newest.1
        } else {
            let Some(above) = self.block(height.saturating_add(1))? else { return Ok(None) };
            above.parent_root
        };
        if height == self.begins {
            return Ok(Some((state, Digest::default())));
        }
        Ok(self.receipts(height)?.map(|receipts| (state, ReceiptsTrie::new(&receipts).root())))
    }

    /// Answers a validator that lags: decided heights from `from` on, as many as fit into `bytes_max`, but at least
    /// one if it is held.
    ///
    /// # Errors
    /// [`ReplicaError`] if one cannot be read.
    pub fn answer(&self, from: Height, to: Height, bytes_max: usize) -> Result<Frame, ReplicaError> {
        let mut heights = Vec::new();
        let mut bytes = 0;
        for height in from..=to {
            let Some(decided) = self.decided(height)? else { break };
            bytes += decided.sub_blocks.iter().map(|(_, payload)| payload.len()).sum::<usize>();
            if bytes > bytes_max && !heights.is_empty() {
                break;
            }
            heights.push(decided);
        }
        Ok(Frame::Sync(heights))
    }

    /// The keys of the envelopes that a block has opened, as a peer takes them; `None` if there are none, or the
    /// block is not held.
    ///
    /// # Errors
    /// [`ReplicaError`] if it cannot be read.
    pub fn opened_keys(&self, height: Height) -> Result<Option<UnsealFrame>, ReplicaError> {
        let openings = self.block(height)?.map_or_else(Vec::new, |block| block.openings);
        let points: Points = openings.into_iter().map(OpeningKey).collect();
        Ok((!points.is_empty()).then_some(UnsealFrame::Keys { height, points }))
    }

    fn decided(&self, height: Height) -> Result<Option<Decided>, ReplicaError> {
        let (Some(Finality { certificate, .. }), Some(block)) = (self.finality(height)?, self.block(height)?) else {
            return Ok(None);
        };
        let mut sub_blocks: Vec<(Index, Payload)> =
            block.sub_blocks.iter().map(|sub| (sub.proposer as Index, sub.to_payload().into())).collect();
        sub_blocks.sort_by_key(|(slot, _)| *slot);
        Ok(Some(Decided { certificate, sub_blocks }))
    }
}

fn decoded<T: borsh::BorshDeserialize>(height: Height, bytes: Option<Vec<u8>>) -> Result<Option<T>, ReplicaError> {
    bytes.map(|bytes| borsh::from_slice(&bytes).map_err(|error| ReplicaError::Undecodable(height, error))).transpose()
}
