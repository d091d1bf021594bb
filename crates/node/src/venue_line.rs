//! Who hears of blocks for a venue that this node runs.

use std::sync::Arc;

use ledger::{Ledger, SettledFills};
use pit::{ChainState, Pit};
use primitives::Address;

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

    /// More heights are certified.
    pub fn wake(&self) {
        self.pit.wake();
    }
}
