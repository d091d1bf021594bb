//! What the node publishes, and how it stands.

use readers::Published;
use readers::metrics::Metrics;
use replica::ValidatorStatus;

/// What the node publishes, and how it stands.
pub trait Vitals {
    /// What the node publishes with every block.
    fn published(&self) -> &Published;

    /// The node's counters.
    fn metrics(&self) -> &Metrics;

    /// The current status of the node.
    fn standing(&self) -> Standing;

    /// Limits of this node that clients should know.
    fn limits(&self) -> NodeLimits;
}

/// The status of a node.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Whether it accepts transactions.
    pub is_ready: bool,
    /// Whether its disk is nearly full, so that it accepts none.
    pub disk_is_full: bool,
    /// Whether it must restart with a fetched state: connections must end.
    pub begins_again: bool,
    /// The rules of the next block, if it does not follow them: it reads on, and accepts nothing.
    pub needs_rules: Option<u32>,
    /// The newest rules whose number it knows.
    pub newest_rules: u32,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
    /// Its status as a validator; `None` in a solo node.
    pub validator: Option<ValidatorStatus>,
}

/// Limits of a node that clients should know.
#[derive(Clone, Copy, Debug)]
pub struct NodeLimits {
    /// Maximum number of transactions in a block.
    pub block_transactions: usize,
    /// Maximum time that a transaction waits for a block, when there is room.
    pub block_interval_ms: u64,
    /// Maximum number of pending transactions.
    pub mempool_transactions: usize,
}
