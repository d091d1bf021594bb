//! The serving side: answers from the archives and the newest checkpoints.

use std::sync::Arc;

use primitives::{Digest, Height};
use store::{CheckpointReader, Disk};

use crate::handover::Handovers;
use crate::state_sync::base::Base;
use crate::state_sync::message::{CHUNKS_MAX, StateMessage, StateOffer};
use crate::{Past, ReplicaError};

/// Number of checkpoints that are kept open for others to fetch, although the store may have removed them meanwhile.
const OPEN: usize = 3;

/// The sources of the answers.
pub(crate) struct Server<D: Disk> {
    past: Past<D>,
    pub(crate) handovers: Arc<Handovers<D>>,
    lag: u64,
    /// The checkpoints that were asked for last, by age.
    open: Vec<CheckpointReader<D>>,
}

impl<D: Disk> Server<D> {
    pub(crate) fn new(past: Past<D>, handovers: Arc<Handovers<D>>, lag: u64) -> Server<D> {
        Server { past, handovers, lag, open: Vec::new() }
    }

    /// The answer to a question; `None` if the message is not a question.
    pub(crate) fn answer(
        &mut self,
        newest: (Height, Digest),
        asked: &StateMessage,
    ) -> Result<Option<StateMessage>, ReplicaError> {
        Ok(Some(match *asked {
            StateMessage::AskOffer { height, bare: true } => {
                let base = Base::read(&self.past, newest, height, self.lag)?;
                let bare = |base| Box::new(StateOffer { base, payload_bytes: 0, digests: Vec::new() });
                StateMessage::StateOffer(base.map(bare))
            }
            StateMessage::AskOffer { height, bare: false } => {
                StateMessage::StateOffer(self.offer(newest, height)?.map(Box::new))
            }
            StateMessage::AskHandovers { from } => StateMessage::Handovers { from, page: self.handovers.page(from)? },
            StateMessage::AskChunk { height, number } => {
                let bytes = match self.checkpoint(height)? {
                    Some(reader) => reader.chunk(number as usize)?,
                    None => None,
                };
                StateMessage::Chunk { height, number, bytes }
            }
            StateMessage::StateOffer(_) | StateMessage::Handovers { .. } | StateMessage::Chunk { .. } => {
                return Ok(None);
            }
        }))
    }

    /// An offer of the newest checkpoint with a certified outcome, or of the one at the given height.
    fn offer(&mut self, newest: (Height, Digest), height: Height) -> Result<Option<StateOffer>, ReplicaError> {
        let held = self.past.blocks.checkpoints()?;
        for candidate in held.into_iter().rev().filter(|held| height == 0 || *held == height) {
            let Some(base) = Base::read(&self.past, newest, candidate, self.lag)? else { continue };
            let Some(reader) = self.checkpoint(candidate)? else { continue };
            let (payload_bytes, digests) = (reader.payload_bytes(), reader.digests().to_vec());
            if digests.len() <= CHUNKS_MAX {
                return Ok(Some(StateOffer { base, payload_bytes, digests }));
            }
        }
        Ok(None)
    }

    fn checkpoint(&mut self, height: Height) -> Result<Option<&CheckpointReader<D>>, ReplicaError> {
        match self.open.iter().position(|reader| reader.height() == height) {
            Some(at) => {
                let reader = self.open.remove(at);
                self.open.push(reader);
            }
            None => {
                let Some(reader) = self.past.blocks.checkpoint(height)? else { return Ok(None) };
                self.open.push(reader);
                if self.open.len() > OPEN {
                    self.open.remove(0);
                }
            }
        }
        Ok(self.open.last())
    }
}
