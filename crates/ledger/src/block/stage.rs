//! The steps of a block.

/// The steps of a block, reported for measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The block's digest, and signatures that were not verified before.
    Signatures,
    /// The deterministic filter.
    Filter,
    /// Reading offers, cancellations and payments from the transactions, and applying offers to the book.
    Orders,
    /// Prices and amounts, or the check of given ones.
    Clearing,
    /// Fills, and removing them from the book.
    Settlement,
    /// The accounts: sequence numbers, debits, credits, and digests of what changed.
    Effects,
    /// Ethereum transactions, and digests of what they changed.
    Contracts,
}

impl Stage {
    /// The name in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Signatures => "signatures",
            Stage::Filter => "filter",
            Stage::Orders => "orders",
            Stage::Clearing => "clearing",
            Stage::Settlement => "settlement",
            Stage::Effects => "effects",
            Stage::Contracts => "contracts",
        }
    }
}
