//! Who hears of blocks for a venue that this node runs.

use std::sync::Arc;

use ledger::{Ledger, SettledFills};
use pit::{ChainState, Pit, PitStanding};
use primitives::Address;
use readers::metrics::VenueFigures;

/// The line from a pipeline up to a venue.
pub(crate) struct VenueLine {
    pit: Arc<Pit>,
    /// The operator's account.
    account: Address,
}

impl VenueLine {
    /// The line to a venue whose operator has this account.
    pub fn new(pit: Arc<Pit>, account: Address) -> VenueLine {
        VenueLine { pit, account }
    }

    /// What the venue needs of the present state, while its block is shown.
    pub fn state(&self, ledger: &Ledger) -> Option<ChainState> {
        ChainState::of(ledger, &self.account)
    }

    /// A block is durable and published.
    pub fn hear(&self, state: ChainState, settles: Vec<SettledFills>) {
        self.pit.hear(state, settles);
    }

    /// The venue's number, and how it stands.
    pub fn figures(&self) -> (u32, VenueFigures) {
        let view = self.pit.view();
        let figures = VenueFigures {
            is_matching: view.standing == PitStanding::Runs && view.paused.is_none(),
            height: view.height.unwrap_or(0),
            fills: view.fills,
            settled: view.settled,
            busts: view.busts,
            sessions: view.links as u64,
            records: view.record,
        };
        (self.pit.venue(), figures)
    }

    /// More heights are certified.
    pub fn wake(&self) {
        self.pit.wake();
    }
}
