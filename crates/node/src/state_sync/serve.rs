//! The side that has a state: answers out of the archives and the newest checkpoints.

use std::sync::Arc;

use primitives::Height;
use store::{Archive, CheckpointReader, RealDisk};

use crate::exchange::{ExchangeError, Shared};
use crate::state_sync::base::Base;
use crate::state_sync::message::{CHUNKS_MAX, Message, Offer};

/// Checkpoints that are kept open for who fetches them, although the store may have removed them meanwhile.
const OPEN: usize = 3;

/// What is answered from.
pub(crate) struct Server {
    certificates: Archive<RealDisk>,
    lag: u64,
    /// The checkpoints that were asked for last, by age.
    open: Vec<CheckpointReader<RealDisk>>,
}

impl Server {
    pub(crate) fn new(certificates: Archive<RealDisk>, lag: u64) -> Server {
        Server { certificates, lag, open: Vec::new() }
    }

    /// The answer to a question; nothing to what is none.
    pub(crate) fn answer(&mut self, shared: &Arc<Shared>, asked: &Message) -> Result<Option<Message>, ExchangeError> {
        Ok(Some(match *asked {
            Message::AskOffer { height, bare: true } => {
                let base = Base::read(shared, &self.certificates, height, self.lag)?;
                let bare = |base| Box::new(Offer { base, payload_bytes: 0, digests: Vec::new() });
                Message::Offer(base.map(bare))
            }
            Message::AskOffer { height, bare: false } => Message::Offer(self.offer(shared, height)?.map(Box::new)),
            Message::AskHandovers { from } => {
                let page = shared.handovers.get().map_or(Ok(Vec::new()), |handovers| handovers.page(from))?;
                Message::Handovers { from, page }
            }
            Message::AskChunk { height, number } => {
                let bytes = match self.checkpoint(shared, height)? {
                    Some(reader) => reader.chunk(number as usize)?,
                    None => None,
                };
                Message::Chunk { height, number, bytes }
            }
            Message::Offer(_) | Message::Handovers { .. } | Message::Chunk { .. } => return Ok(None),
        }))
    }

    /// The newest checkpoint, or the one of a height, whose outcome is certified.
    fn offer(&mut self, shared: &Arc<Shared>, height: Height) -> Result<Option<Offer>, ExchangeError> {
        let held = shared.archive.checkpoints()?;
        for candidate in held.into_iter().rev().filter(|held| height == 0 || *held == height) {
            let Some(base) = Base::read(shared, &self.certificates, candidate, self.lag)? else { continue };
            let Some(reader) = self.checkpoint(shared, candidate)? else { continue };
            let (payload_bytes, digests) = (reader.payload_bytes(), reader.digests().to_vec());
            if digests.len() <= CHUNKS_MAX {
                return Ok(Some(Offer { base, payload_bytes, digests }));
            }
        }
        Ok(None)
    }

    fn checkpoint(
        &mut self,
        shared: &Arc<Shared>,
        height: Height,
    ) -> Result<Option<&CheckpointReader<RealDisk>>, ExchangeError> {
        match self.open.iter().position(|reader| reader.height() == height) {
            Some(at) => {
                let reader = self.open.remove(at);
                self.open.push(reader);
            }
            None => {
                let Some(reader) = shared.archive.checkpoint(height)? else { return Ok(None) };
                self.open.push(reader);
                if self.open.len() > OPEN {
                    self.open.remove(0);
                }
            }
        }
        Ok(self.open.last())
    }
}
