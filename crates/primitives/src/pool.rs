//! Operations on constant-product pools: opening one, providing to it, leaving it.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Amount, AssetId, MAX_ISSUED};

/// Names a pool: its two assets, the lower one first, and its fee class, a position in the list of the genesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct PoolKey {
    /// The lower asset.
    pub a: AssetId,
    /// The higher asset.
    pub b: AssetId,
    /// Position of the fee in the genesis.
    pub class: u8,
}

impl PoolKey {
    /// Whether it is between this asset and another one.
    pub fn has(&self, asset: AssetId) -> bool {
        self.a == asset || self.b == asset
    }
}

/// What is done with a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum PoolOperation {
    /// Opens a pool with these reserves. The sender gets the first shares of it.
    Open {
        /// The pool.
        pool: PoolKey,
        /// Units of `a`.
        x: Amount,
        /// Units of `b`.
        y: Amount,
    },
    /// Buys shares of a pool at its reserves before the block: of both assets in proportion, rounded up.
    Provide {
        /// The pool.
        pool: PoolKey,
        /// Shares to buy.
        shares: u64,
        /// The most units of `a` to pay for them. They are locked for the block; what is not needed returns.
        most_a: Amount,
        /// The most units of `b`.
        most_b: Amount,
    },
    /// Gives shares back, and receives of both reserves before the block in proportion, rounded down.
    Leave {
        /// The pool.
        pool: PoolKey,
        /// Shares to give back.
        shares: u64,
        /// The fewest units of `a` to receive.
        least_a: Amount,
        /// The fewest units of `b`.
        least_b: Amount,
    },
}

impl PoolOperation {
    /// The pool that it is about.
    pub fn pool(&self) -> PoolKey {
        match *self {
            PoolOperation::Open { pool, .. }
            | PoolOperation::Provide { pool, .. }
            | PoolOperation::Leave { pool, .. } => pool,
        }
    }

    /// Units of `a` and of `b` that it takes from the sender's balance.
    pub fn debits(&self) -> [Amount; 2] {
        match *self {
            PoolOperation::Open { x, y, .. } => [x, y],
            PoolOperation::Provide { most_a, most_b, .. } => [most_a, most_b],
            PoolOperation::Leave { .. } => [0, 0],
        }
    }

    /// Shares that it buys or gives back; none of an opening.
    pub fn shares(&self) -> Option<u64> {
        match *self {
            PoolOperation::Open { .. } => None,
            PoolOperation::Provide { shares, .. } | PoolOperation::Leave { shares, .. } => Some(shares),
        }
    }

    /// Whether it names more units than can exist.
    pub(crate) fn is_too_large(&self) -> bool {
        let received = match *self {
            PoolOperation::Leave { least_a, least_b, .. } => [least_a, least_b],
            _ => [0, 0],
        };
        self.debits().into_iter().chain(received).any(|units| units > MAX_ISSUED)
    }

    /// Whether it asks for no shares, or for a pool without units of one asset.
    pub(crate) fn is_nothing(&self) -> bool {
        match *self {
            PoolOperation::Open { x, y, .. } => x == 0 || y == 0,
            PoolOperation::Provide { shares, .. } | PoolOperation::Leave { shares, .. } => shares == 0,
        }
    }
}
