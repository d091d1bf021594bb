//! The chain as a host needs it.

use ledger::{Ledger, SettledFills, VenueTerms};
use primitives::{Digest, Height, Transaction};
use venue::{ChainState, SettlingTerms};

/// How far the chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHeights {
    /// The last height up to which all are certified here; where one node decides alone, every height.
    pub certified: Height,
    /// The highest height that peers say is decided.
    pub newest: Height,
}

/// A block of the archive.
pub struct ArchivedBlock {
    /// Its time.
    pub time_ms: u64,
    /// The settles that counted in it.
    pub settles: Vec<SettledFills>,
}

/// A pipeline. It ends when its node begins again; then another one takes its place.
pub trait VenueChain: Send + Sync {
    /// How far it is.
    fn heights(&self) -> ChainHeights;

    /// A block that it has kept; `None` if it has none of this height any more.
    ///
    /// # Errors
    /// What the archive says.
    fn archived(&self, height: Height) -> Result<Option<ArchivedBlock>, String>;

    /// Gives a settle to the own pool, and to the pools of enough validators that 2f + 1 have it. It is called again
    /// with the same settle until a block has it.
    fn submit(&self, settle: &Transaction);

    /// Whether the disk is so full that no new orders are to be taken.
    fn is_disk_full(&self) -> bool;

    /// Where it ends, if the chain has agreed on rules that this program does not follow: it applies no block from
    /// there on, and so judges and settles no fill.
    fn ends(&self) -> Option<RulesEnd>;
}

/// The rules before which a pipeline stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RulesEnd {
    /// Their number.
    pub rules: u32,
    /// Their first height.
    pub height: Height,
}

impl RulesEnd {
    /// Whether what is matched at a height may be unsettled at the end. A fill has D heights to be settled, and as many
    /// again are for what its settle waits for.
    pub(crate) fn is_near(&self, height: Height, delay: Height) -> bool {
        height.saturating_add(delay.saturating_mul(2)) >= self.height
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a venue matches in the last heights that its node can apply would stay unsettled, and expire.
    #[test]
    fn orders_stop_two_delays_before_rules_that_the_node_does_not_follow() {
        let end = RulesEnd { rules: 12, height: 1_000 };
        assert_eq!(
            [0, 871, 872, 999, 1_000, u64::MAX].map(|height| end.is_near(height, 64)),
            [false, false, true, true, true, true]
        );
        assert!(RulesEnd { rules: 12, height: u64::MAX }.is_near(5, u64::MAX), "no height overflows");
    }
}

/// What a root must know of a chain when it is made. Of this the fee alone changes; blocks tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainTerms {
    /// The identity of the network.
    pub network: Digest,
    /// What settles are judged by.
    pub settling: SettlingTerms,
}

impl ChainTerms {
    /// The terms of a ledger; `None` on a chain without venues.
    pub fn of(ledger: &Ledger) -> Option<ChainTerms> {
        let VenueTerms { delay, bond_min, settle_bytes, entries_max, life_max, .. } = *ledger.venues()?.terms();
        let (chain, fee) = (ledger.chain(), ledger.fee());
        let settling = SettlingTerms { chain, fee, delay, bond_min, settle_bytes, entries_max, life_max };
        Some(ChainTerms { network: ledger.network(), settling })
    }
}

/// A block that was applied here.
pub struct HeardBlock {
    /// The state after it.
    pub state: ChainState,
    /// The settles that counted in it; unknown for the state with which a pipeline began.
    pub settles: Option<Vec<SettledFills>>,
}
