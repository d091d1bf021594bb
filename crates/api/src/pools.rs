//! Constant-product pools, and the shares of those who provide to them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The pools of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolsBody {
    /// Height of the state.
    pub height: u64,
    /// The fee of each class, by its number: the part of the rate that a pool demands beyond its marginal price.
    pub fees: Vec<String>,
    /// The pools, by assets and class.
    pub pools: Vec<PoolBody>,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolBody {
    /// Symbol of the asset with the lower number.
    pub a: String,
    /// Symbol of the other asset.
    pub b: String,
    /// Its fee class.
    pub class: u8,
    /// Units of `a` that it holds.
    pub reserve_a: String,
    /// Units of `b` that it holds.
    pub reserve_b: String,
    /// Its shares, those that belong to nobody included.
    pub shares: String,
    /// Whether it is too small to trade.
    pub asleep: bool,
    /// Units of `a` from which on it trades, if it has those of `b`, too.
    pub awake_a: String,
    /// Units of `b` from which on it trades.
    pub awake_b: String,
}

/// The holdings of an account in pools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HoldingsBody {
    /// Height of the state.
    pub height: u64,
    /// The holdings, by pool.
    pub holdings: Vec<HoldingBody>,
}

/// Shares of a pool that an account holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HoldingBody {
    /// The pool.
    pub pool: PoolBody,
    /// Shares.
    pub shares: String,
    /// Units of `a` that leaving with all of them pays now.
    pub pays_a: String,
    /// Units of `b` that it pays.
    pub pays_b: String,
}

/// What a pool traded in a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolFillBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Its fee class.
    pub class: u8,
    /// Units sold.
    pub sold: String,
    /// Units received.
    pub bought: String,
}
