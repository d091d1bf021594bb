//! Why an operation on a pool is refused.

use primitives::Malformed;

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::POOLS =>
    /// The pool does not name the lower asset first.
    POOL_ASSETS: invalid, "pool_assets",
        Malformed::PoolAssets.text();
    /// The chain has no pools.
    NO_POOLS: invalid, "no_pools",
        "this chain has no pools; see `pools` in the genesis";
    /// The chain has no such fee class.
    NO_POOL_CLASS: invalid, "no_pool_class",
        "the chain has no such fee class of pools; see `fees` under /v1/pools";
    /// There is no such pool.
    NO_POOL: refused, "no_pool",
        "there is no such pool: open it, or choose one of /v1/pools";
    /// There is such a pool.
    POOL_EXISTS: refused, "pool_exists",
        "the pool is open already: provide to it";
    /// The chain has as many pools as it may have.
    TOO_MANY_POOLS: refused, "too_many_pools",
        "the chain has 4096 pools, and no more can be opened: provide to one of /v1/pools";
    /// A reserve of the new pool is below the least.
    POOL_TOO_SMALL: refused, "pool_too_small",
        "a new pool holds at least 16 times `least_units` of each of its assets; see /v1/assets";
    /// The shares cost more than the sender is willing to pay.
    POOL_COSTS_MORE: refused, "pool_costs_more",
        "the shares cost more of an asset than the most that the transaction pays: read the pool and sign again";
    /// The shares pay less than the sender demands.
    POOL_PAYS_LESS: refused, "pool_pays_less",
        "the shares pay less of an asset than the least that the transaction demands: read the pool and sign again";
    /// Transactions of the block buy more shares than a pool may have.
    TOO_MANY_SHARES: refused, "too_many_shares",
        "the block's provisions would give the pool more than 2^63 shares; all of them are removed";
    /// The account gives back more shares than it holds.
    SHARES_NOT_HELD: refused, "shares_not_held",
        "the account's transactions give back more shares of the pool than it holds; all but its cancels are removed";
}
