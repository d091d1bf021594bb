//! Constant-product pools that trade in every batch, and the shares of those who provide to them (SPEEDEX §8;
//! Ramseyer, Goyal, Goel and Mazières, "Augmenting Batch Exchanges with Constant Function Market Makers").
//!
//! **What happens.** A pool belongs to an unordered pair of assets and a fee class of the genesis. Upon *open*, the
//! sender's units become its reserves. It has 2^24 shares, of which 2^16 belong to nobody for ever and the sender gets
//! the rest. Upon *provide* of n shares, the sender pays ⌈x·n/T⌉ and ⌈y·n/T⌉ units, where x and y are the reserves and
//! T the shares *before the block*; upon *leave*, it receives ⌊x·n/T⌋ and ⌊y·n/T⌋. These act before the batch. In the
//! batch, the pool sells one of its assets at the batch's rate until its marginal price, with the fee, meets that rate
//! ([`clearing::pool`]). Nobody is charged the fee: it is the distance at which the pool stops, and stays in the
//! reserves. A pool with fewer than [`AWAKE`] times the least units of an asset *sleeps*: it does not trade. One can
//! provide to it and leave it.
//!
//! Of the openings of one pool in a block, that with the lowest id counts. At most [`POOLS_MAX`] pools exist. Of those
//! that a block opens, the lowest are opened as far as there is room, and the units of the others return.
//!
//! **Properties.**
//!
//! - *Any order of a block's operations has one result*: they read bodies and the state before the block.
//! - *x·y/T² never falls*, by trades, openings, provisions and leaving: a share is never worth less of both assets.
//! - *Rounding costs a provider at most one unit of each asset*, in favour of the pool.
//! - *No pool is drained*: a trade leaves more than half of an asset, and the shares of nobody keep at least one unit.
//! - *Leaving never fails*: it needs no price, no least size and no counterparty.
//! - Reserves are units of custody: conservation sums them in every block. Holdings are no asset; they cannot be paid
//!   to others, and no valuation covers them.
//!
//! **Attacks.**
//!
//! - *A share made so dear that the next provider gets none* (inflation by a donation): nobody can pay units to a pool.
//!   A provider names shares and the most that they may cost. 2^16 shares of nobody bear the loss of whoever moves
//!   value into the pool by trades.
//! - *Sandwiches*: all trade at the batch's rate, so that to provide before it and leave after it earns the share's
//!   part of what the batch pays the pool, and nothing of what others provided. Most and least bound what a provider
//!   pays and receives if the reserves move before its transaction is in a block.
//! - *A thin batch at a false price* sells from the pool at that price, which others pay: providers gain what the
//!   manipulator loses. A pool does give a price to an asset with few offers; who reads valuations must look at volume.
//! - *Dust pools* would keep whole units from clearing. They sleep.
//! - *Giants far from every price*: a pool with 10^15 units of an asset, eleven decades from its price, sells so much
//!   that the search for prices ends without full clearing for its group. It takes that many units to do, which the
//!   pool loses to those who trade; batches stay valid, other groups are untouched. Not prevented: a genesis has pools
//!   only where its founders ask for them, and `docs/operators.md` has the figures.
//! - *Squatting*: 4,096 places, of which each costs the fees of a thousand transactions and 16 times the least units of
//!   two assets for ever. *Many small holdings* cost a fee each, as accounts do.
//! - *Shares up to the cap*, so that honest provisions of the block are removed with one's own. The filter counts only
//!   provisions that their accounts can pay. So this needs 2^39 times the first reserves, or 2^47 times those of a pool
//!   that all have left.
//!
//! **Deviations from the paper.** Fees are distance instead of a payment, since the batch has one rate for all.
//! Reserves, shares and fills are whole units. The paper leaves providers to the application; here they are operations
//! of the ledger. Contracts neither read pools nor provide to them.

mod block;
mod custody;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use primitives::{Address, Amount, AssetId, PoolKey, PoolOperation, Sequence};
use proofs::{HoldingId, PoolRecord, Refusal};

use super::shared_map::SharedMap;
use crate::terms::PoolTerms;
pub(crate) use block::{AwakePool, PoolTurn, groups};

/// The most pools of a chain.
pub const POOLS_MAX: usize = 4_096;
/// The most of them with an asset that was listed after the genesis.
pub(crate) const LISTED_POOLS_MAX: usize = POOLS_MAX / 2;
/// Shares of a new pool.
pub const SHARES_NEW: u64 = 1 << 24;
/// Those of them that belong to nobody.
pub const SHARES_OF_NOBODY: u64 = 1 << 16;
/// The most shares of a pool.
pub const SHARES_MAX: u64 = 1 << 63;
/// A new pool holds at least so many times the least units of each asset.
const OPENS: u64 = 16;
/// A pool with fewer than so many times the least units of an asset does not trade.
pub const AWAKE: u64 = 4;

/// The pools of a chain.
#[derive(Clone, Debug)]
pub struct Pools {
    terms: PoolTerms,
    pools: BTreeMap<PoolKey, PoolRecord>,
    holdings: SharedMap<HoldingId, u64>,
    /// The same by account; derived.
    pools_of: SharedMap<(Address, PoolKey), ()>,
}

/// An operation on a pool, with its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolEdit<'a> {
    pub sequence: Sequence,
    pub operation: &'a PoolOperation,
}

/// Units of `reserve` for `shares` of `all` shares, rounded down or up.
fn part(reserve: Amount, shares: u64, all: u64, up: bool) -> u128 {
    let product = u128::from(reserve) * u128::from(shares);
    if up { product.div_ceil(all.into()) } else { product / u128::from(all) }
}

/// Units of both assets that `shares` of a pool cost; `None` if these are more than can exist.
pub fn pool_cost(pool: &PoolRecord, shares: u64) -> Option<(Amount, Amount)> {
    let cost = |reserve| Amount::try_from(part(reserve, shares, pool.shares, true)).ok();
    Some((cost(pool.a)?, cost(pool.b)?))
}

/// What an opening leaves in its pool for ever: the part of the shares that belong to nobody.
pub fn pool_keeps(a: Amount, b: Amount) -> (Amount, Amount) {
    let new = PoolRecord { a, b, shares: SHARES_NEW };
    let (paid_a, paid_b) = pool_pays(&new, SHARES_NEW - SHARES_OF_NOBODY);
    (a - paid_a, b - paid_b)
}

/// Units of both assets that `shares` of a pool, which has at least as many, pay to whoever leaves.
pub fn pool_pays(pool: &PoolRecord, shares: u64) -> (Amount, Amount) {
    let pays = |reserve| part(reserve, shares.min(pool.shares), pool.shares, false) as Amount;
    (pays(pool.a), pays(pool.b))
}

/// Whether a pool is too small to trade; `least` has the least units of its assets.
pub fn is_asleep(pool: &PoolRecord, least: [Amount; 2]) -> bool {
    let too_few = |(reserve, least): (Amount, Amount)| reserve < least.saturating_mul(AWAKE);
    too_few((pool.a, least[0])) || too_few((pool.b, least[1]))
}

/// Whether a new pool may hold so many units of an asset with these least units.
pub(crate) fn opens_with(units: Amount, least: Amount) -> bool {
    units >= least.saturating_mul(OPENS)
}

impl Pools {
    pub(super) fn new(terms: PoolTerms) -> Pools {
        Pools { terms, pools: BTreeMap::new(), holdings: SharedMap::default(), pools_of: SharedMap::default() }
    }

    /// The terms of the genesis.
    pub fn terms(&self) -> &PoolTerms {
        &self.terms
    }

    /// A pool.
    pub fn get(&self, pool: &PoolKey) -> Option<&PoolRecord> {
        self.pools.get(pool)
    }

    /// All pools in order.
    pub fn iter(&self) -> impl Iterator<Item = (&PoolKey, &PoolRecord)> {
        self.pools.iter()
    }

    /// Shares of a pool that an account holds.
    pub fn shares(&self, pool: PoolKey, account: Address) -> u64 {
        self.holdings.get(&(pool, account)).copied().unwrap_or(0)
    }

    /// An account's holdings, by pool.
    pub fn holdings_of(&self, account: Address) -> impl Iterator<Item = (PoolKey, u64)> + '_ {
        let first = PoolKey { a: AssetId(0), b: AssetId(0), class: 0 };
        let own = self.pools_of.from(&(account, first)).take_while(move |((of, _), ())| *of == account);
        own.map(move |((_, pool), ())| (*pool, self.shares(*pool, account)))
    }

    /// The pools with an asset that an account has shares of, in order.
    pub(crate) fn holdings_with(&self, asset: AssetId, account: Address) -> impl Iterator<Item = PoolKey> + '_ {
        self.holdings_of(account).map(|(pool, _)| pool).filter(move |pool| pool.has(asset))
    }

    /// Finds no holdings by account any more: a planted mistake.
    #[cfg(test)]
    pub(crate) fn forget_holders(&mut self) {
        self.pools_of = SharedMap::default();
    }

    /// An account holds so many shares of a pool from now on.
    fn set_holding(&mut self, of: HoldingId, shares: u64) {
        let (pool, account) = of;
        if shares > 0 {
            self.holdings.insert(of, shares);
            self.pools_of.insert((account, pool), ());
        } else {
            self.holdings.remove(&of);
            self.pools_of.remove(&(account, pool));
        }
    }

    /// All holdings, by pool and account.
    pub fn holdings(&self) -> impl Iterator<Item = (&HoldingId, &u64)> {
        self.holdings.iter()
    }

    /// Shares that may still be bought of a pool.
    pub(crate) fn room(&self, pool: &PoolKey) -> u64 {
        self.get(pool).map_or(0, |pool| SHARES_MAX - pool.shares)
    }

    /// Checks an operation against the state before a block; what it locks, buys and gives back is checked in sums.
    fn check(&self, operation: &PoolOperation) -> Result<(), Refusal> {
        let key = operation.pool();
        if usize::from(key.class) >= self.terms.fees.len() {
            return Err(Refusal::NO_POOL_CLASS);
        }
        let pool = self.get(&key);
        match *operation {
            PoolOperation::Open { .. } if pool.is_some() => Err(Refusal::POOL_EXISTS),
            PoolOperation::Open { .. } if self.pools.len() >= POOLS_MAX => Err(Refusal::TOO_MANY_POOLS),
            PoolOperation::Open { .. } => Ok(()),
            PoolOperation::Provide { shares, most_a, most_b, .. } => {
                let cost = pool_cost(pool.ok_or(Refusal::NO_POOL)?, shares);
                let is_enough = cost.is_some_and(|(a, b)| a <= most_a && b <= most_b);
                if is_enough { Ok(()) } else { Err(Refusal::POOL_COSTS_MORE) }
            }
            PoolOperation::Leave { shares, least_a, least_b, .. } => {
                let (a, b) = pool_pays(pool.ok_or(Refusal::NO_POOL)?, shares);
                if a >= least_a && b >= least_b { Ok(()) } else { Err(Refusal::POOL_PAYS_LESS) }
            }
        }
    }

    /// The fee of a pool, as a part of the rate.
    pub fn fee(&self, pool: &PoolKey) -> primitives::Fraction {
        self.terms.fees[usize::from(pool.class)]
    }

    /// The assets of a pool with their least units, by a list of those of all assets.
    fn least(pool: &PoolKey, least: &[Amount]) -> [Amount; 2] {
        [pool.a, pool.b].map(|asset: AssetId| least[asset.0 as usize])
    }
}
