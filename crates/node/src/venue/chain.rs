//! A pipeline, as the venue above it sees it: how far it is, its archive, and where settles go.

use std::path::Path;
use std::sync::{Arc, Weak};

use consensus::Frame;
use pit::{ArchivedBlock, ChainHeights, ChainState, ChainTerms, Pit, RulesEnd, VenueChain};
use primitives::{Address, Height, SubBlock, Superblock, Transaction};

use super::line::VenueLine;
use crate::exchange::Exchange;
use crate::free_disk::FreeDisk;

/// Why a pipeline serves no venue.
#[derive(Debug, thiserror::Error)]
pub enum VenueLineError {
    /// The chain has no venues.
    #[error("[venue] run: the genesis has no `venues` section: this chain has no venues")]
    NoVenues,
    /// Blocks of a developers' chain can be reverted.
    #[error("[venue] run: blocks of a developers' chain can be reverted, and a venue's fills cannot")]
    Developers,
    /// It has one.
    #[error("this pipeline serves a venue already")]
    Running,
}

/// A pipeline, as a venue sees it.
struct Pipeline {
    /// The pipeline ends before the venue does.
    exchange: Weak<Exchange>,
    free_disk: FreeDisk,
}

impl Exchange {
    /// Gives every block from now on to a venue, whose operator has this account. `data` is the node's data directory.
    ///
    /// # Errors
    /// [`VenueLineError`]; the node continues without the venue.
    pub fn serve_venue(
        self: &Arc<Exchange>,
        pit: &Arc<Pit>,
        account: Address,
        data: &Path,
    ) -> Result<(), VenueLineError> {
        let shared = &self.shared;
        if shared.is_developers {
            return Err(VenueLineError::Developers);
        }
        let free_disk = FreeDisk::new(data, shared.config.store.free_bytes);
        let pipeline = Arc::new(Pipeline { exchange: Arc::downgrade(self), free_disk });
        // No block is shown between the first state and the line.
        let ledger = shared.read_ledger();
        let terms = ChainTerms::of(&ledger).ok_or(VenueLineError::NoVenues)?;
        let state = ChainState::of(&ledger, &account).ok_or(VenueLineError::NoVenues)?;
        let line = VenueLine::new(pit.clone(), account);
        shared.venue.set(line).map_err(|_| VenueLineError::Running)?;
        pit.connect(pipeline, terms, state);
        drop(ledger);
        shared.pool.wake();
        Ok(())
    }
}

impl VenueChain for Pipeline {
    fn heights(&self) -> ChainHeights {
        let Some(exchange) = self.exchange.upgrade() else { return ChainHeights { certified: 0, newest: 0 } };
        match exchange.status() {
            Some(status) => {
                let newest = status.decided.max(status.certified_anywhere).max(claimed(&status));
                ChainHeights { certified: exchange.certified(), newest }
            }
            // A node that decides alone.
            None => ChainHeights { certified: Height::MAX, newest: exchange.shared.jobs.height() },
        }
    }

    fn archived(&self, height: Height) -> Result<Option<ArchivedBlock>, String> {
        let Some(exchange) = self.exchange.upgrade() else { return Err("the node is stopping".into()) };
        let block: Option<Arc<Superblock>> = exchange.body(height).map_err(|error| error.to_string())?;
        let receipts = exchange.receipts(height).map_err(|error| error.to_string())?;
        Ok(block.zip(receipts).map(|(block, receipts)| ArchivedBlock {
            time_ms: block.time_ms,
            settles: receipts.receipts.venues.clone(),
        }))
    }

    fn submit(&self, settle: &Transaction) {
        let Some(exchange) = self.exchange.upgrade() else { return };
        if let Err(why) = exchange.submit(vec![settle.clone()], false) {
            tracing::warn!(%why, "the pool does not take a settle now; it is sent again with the next block");
        }
        let seat = &exchange.shared.seat;
        let Some(status) = seat.status() else { return };
        let native = vec![settle.clone()];
        let sub_block = SubBlock { proposer: u32::from(status.me), native, ..SubBlock::default() };
        // One whose proposer leaves it out would otherwise hold it for as long as that proposer likes; a superblock
        // omits at most f sub-blocks.
        seat.tell_validators(&status, &Frame::Transactions(sub_block.to_payload().into()).to_bytes().into());
    }

    fn is_disk_full(&self) -> bool {
        self.free_disk.is_full()
    }

    fn ends(&self) -> Option<RulesEnd> {
        self.exchange.upgrade()?.shared.ends()
    }
}

/// The height that more validators than can be faulty report to have decided, so that at least one correct one has.
fn claimed(status: &replica::ValidatorStatus) -> Height {
    let mut heights: Vec<Height> = status
        .peers
        .iter()
        .filter(|peer| usize::from(peer.validator) < status.validators)
        .map(|peer| peer.decided)
        .collect();
    heights.sort_unstable();
    let faulty = status.validators.saturating_sub(1) / 3;
    heights.iter().rev().nth(faulty).copied().unwrap_or(0)
}
