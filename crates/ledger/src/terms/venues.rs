//! The terms of all venues of a chain, in its genesis.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{Delay, SETTLE_BYTES_MAX, VENUE_SIGNATURES_PER_SUB_BLOCK};
use primitives::{Amount, Height, MAX_ISSUED};

/// The fewest bytes of an order that a settle gives an entry: key, order without `until`, signature.
const NEW_ORDER_BYTES_MIN: u64 = 32 + 4 + 10 + 10 + 3 + 4 + 4 + 8 + 1 + 4 + 65;
/// The most entries of venues that a block may pay out or forget, each.
const PER_BLOCK_MAX: u32 = 1 << 20;
/// What a settle's transaction has beside it, and what a sub-block has beside its transactions, at most.
const TRANSACTION_BYTES: u64 = 1_024;
/// The longest that actions wait in milliseconds: block times that are kept have a bound.
const DELAY_MS_MAX: u64 = 60_000;
/// The most heights that actions wait.
const DELAY_HEIGHTS_MAX: u64 = 10_000;

/// The terms of all venues of a chain, from its genesis on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueTerms {
    /// How long an action of a trader waits until it counts against a fill: D heights and τ milliseconds.
    pub delay: Delay,
    /// The bond below which a venue does not settle, in units of asset 0.
    pub bond_min: Amount,
    /// How long a withdrawal from a bond waits, and how long claims are accepted after a fence.
    pub bond_delay: Delay,
    /// The most bytes of a settle.
    pub settle_bytes: u32,
    /// The most entries of orders of a venue.
    pub entries_max: u64,
    /// The least penalty of a bust, in units of asset 0 for each lot.
    pub penalty_min: Amount,
    /// The most venues.
    pub venues_max: u32,
    /// Deposits that a block pays out, and entries that it forgets.
    pub per_block: u32,
    /// The most heights from a block to the expiry of an order that it fills.
    pub life_max: Height,
}

impl Default for VenueTerms {
    /// The usual terms on a chain of one block a second.
    fn default() -> VenueTerms {
        VenueTerms {
            delay: Delay { heights: 32, ms: 10_000 },
            bond_min: 1_000_000,
            bond_delay: Delay { heights: 600_000, ms: 7 * 24 * 3_600_000 },
            settle_bytes: 256 << 10,
            entries_max: 1 << 20,
            penalty_min: 1,
            venues_max: 16,
            per_block: 32_768,
            life_max: 700_000,
        }
    }
}

impl VenueTerms {
    /// The fault of these terms, if there is one.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let VenueTerms { delay, bond_min, bond_delay, settle_bytes, penalty_min, venues_max, per_block, .. } = *self;
        let units = 1..=MAX_ISSUED;
        Some(match () {
            _ if !(1..=DELAY_HEIGHTS_MAX).contains(&delay.heights) => "delay.heights: choose from 1 to 10000",
            _ if !(1..=DELAY_MS_MAX).contains(&delay.ms) => "delay.ms: choose from 1 to 60000",
            _ if !units.contains(&bond_min) => "bond_min: choose at least 1 unit, and no more than can exist",
            _ if bond_delay.heights < delay.heights || bond_delay.ms < delay.ms => {
                "bond_delay is shorter than delay: the bond would be gone before a fill can be contested"
            }
            _ if !(1_024..=SETTLE_BYTES_MAX as u32).contains(&settle_bytes) => {
                "settle_bytes: choose from 1024 to 1048576"
            }
            _ if self.entries_max == 0 => "entries_max: choose at least 1",
            _ if penalty_min > MAX_ISSUED => "penalty_min is more than can exist",
            _ if venues_max == 0 => "venues_max: choose at least 1",
            _ if !(1..=PER_BLOCK_MAX).contains(&per_block) => "per_block: choose from 1 to 1048576",
            _ if u64::from(per_block) < self.new_entries_max() => {
                "per_block is less than the entries that the settles of a block can create: raise it, or lower \
                 settle_bytes or venues_max"
            }
            _ if !(1..=u64::from(u32::MAX)).contains(&self.life_max) => "life_max: choose from 1 to 4294967295",
            _ => return None,
        })
    }

    /// The most entries that a block can create: of each venue one settle counts.
    fn new_entries_max(&self) -> u64 {
        u64::from(self.venues_max) * (u64::from(self.settle_bytes) / NEW_ORDER_BYTES_MIN)
    }

    /// The fault of these terms on a network with sub-blocks of this many bytes, state roots that follow `lag` heights
    /// behind, and proposals for `window` heights at a time.
    pub fn network_fault(&self, sub_block_bytes: u64, lag: u64, window: u64) -> Option<&'static str> {
        let sub_blocks = self.delay.heights / 8;
        let bytes = u64::from(self.venues_max) * u64::from(self.settle_bytes);
        let signatures = u64::from(self.venues_max) * (u64::from(self.settle_bytes) / NEW_ORDER_BYTES_MIN);
        Some(match () {
            _ if self.delay.heights < 4 * (lag + window + 2) => {
                "delay.heights is below 4 · (root_lag + window + 2): a certified state would be too old to match on"
            }
            _ if u64::from(self.settle_bytes) + TRANSACTION_BYTES > sub_block_bytes / 2 => {
                "settle_bytes is with 1024 bytes more than half of sub_block_bytes: a settle would block the head of a pool"
            }
            _ if bytes > sub_blocks.saturating_mul(sub_block_bytes) => {
                "venues_max · settle_bytes do not fit into delay.heights / 8 sub-blocks"
            }
            _ if signatures > sub_blocks.saturating_mul(u64::from(VENUE_SIGNATURES_PER_SUB_BLOCK)) => {
                "the signatures of venues_max settles do not fit into delay.heights / 8 sub-blocks"
            }
            _ => return None,
        })
    }
}
