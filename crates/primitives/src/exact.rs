//! The side of an order for an exact amount.

use borsh::{BorshDeserialize, BorshSerialize};

/// Which amount of an exact order is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum ExactSide {
    /// It buys exactly so many units, and pays at most its bound.
    #[default]
    Buy,
    /// It sells exactly so many units, and receives at least its bound.
    Sell,
}

impl ExactSide {
    /// Its name in the interfaces.
    pub const fn name(self) -> &'static str {
        match self {
            ExactSide::Buy => "buy",
            ExactSide::Sell => "sell",
        }
    }
}
