//! What a block makes of the pools: its operations, and then its batch.

use std::collections::{BTreeMap, BTreeSet};

use clearing::{Groups, Pool};
use primitives::{Address, Amount, AssetId, PoolKey, PoolOperation, Sequence};
use proofs::{HoldingId, PoolFill, PoolRecord, PoolRecordId, Pooled, pool_record_value};

use super::custody::PoolsChange;
use super::{
    LISTED_POOLS_MAX, POOLS_MAX, PoolEdit, Pools, SHARES_NEW, SHARES_OF_NOBODY, is_asleep, pool_cost, pool_pays,
};
use crate::places::bytes_of;
use crate::places::sums::{Credit, Sums};

/// A pool that takes part in a batch.
pub(crate) type AwakePool = (PoolKey, Pool);

/// The groups of assets that offers and pools join.
pub(crate) fn groups(assets: u32, offered: impl Iterator<Item = (AssetId, AssetId)>, awake: &[AwakePool]) -> Groups {
    let sides = awake.iter().flat_map(|(key, _)| [(key.a, key.b), (key.b, key.a)]);
    let mut links: Vec<(AssetId, AssetId)> = offered.chain(sides).collect();
    links.sort_unstable();
    Groups::of_pairs(assets, &links)
}

/// The pools after a block's operations, and after its batch, as far as they change. The pools themselves are as before
/// until [`Pools::commit`], so that a clearing that is refused changes nothing.
#[derive(Default)]
pub(crate) struct PoolTurn {
    pools: BTreeMap<PoolKey, PoolRecord>,
    holdings: BTreeMap<HoldingId, u64>,
    credits: Vec<Credit>,
    /// What each accepted operation did, by sender and number; `None` if it did nothing.
    outcomes: BTreeMap<(Address, Sequence), Option<Pooled>>,
}

impl PoolTurn {
    /// What an accepted operation did; `None` if there was none, or it did nothing.
    pub(crate) fn outcome(&self, of: (Address, Sequence)) -> Option<Pooled> {
        self.outcomes.get(&of).copied().flatten()
    }

    /// The pools that take part in the batch, in order, as the clearing knows them; `least` has the least units of all
    /// assets.
    pub(crate) fn awake(&self, pools: Option<&Pools>, least: &[Amount]) -> Vec<AwakePool> {
        let Some(pools) = pools else { return Vec::new() };
        let opened = self.pools.iter().filter(|(key, _)| pools.get(key).is_none());
        let old = pools.iter().map(|(key, pool)| (key, self.pools.get(key).unwrap_or(pool)));
        let mut all: Vec<(&PoolKey, &PoolRecord)> = old.chain(opened).collect();
        all.sort_unstable_by_key(|(key, _)| **key);
        let awake = all.into_iter().filter(|(key, pool)| !is_asleep(pool, Pools::least(key, least)));
        let pool = |(key, pool): (&PoolKey, &PoolRecord)| {
            let (PoolKey { a, b, .. }, fee) = (*key, pools.fee(key));
            (*key, Pool { a, b, reserve_a: pool.a, reserve_b: pool.b, fee })
        };
        awake.map(pool).collect()
    }

    /// Makes the trades of the batch, each of a pool that is awake and as the rule of pools says. Then the shares of
    /// frozen holders leave all pools with their asset; `frozen` is in order.
    pub(crate) fn trade(&mut self, pools: Option<&Pools>, fills: &[PoolFill], frozen: &[(AssetId, Address)]) {
        let Some(pools) = pools else { return };
        for fill in fills {
            let pool = self.pool(pools, fill.pool);
            let (gives, takes) = if fill.sells_a { (&mut pool.a, &mut pool.b) } else { (&mut pool.b, &mut pool.a) };
            (*gives, *takes) = (*gives - fill.sold, *takes + fill.bought);
        }
        frozen.iter().for_each(|holder| self.expel(pools, *holder));
    }

    /// Takes the shares of a holder out of all pools with an asset.
    fn expel(&mut self, pools: &Pools, (asset, account): (AssetId, Address)) {
        let new = self.holdings.keys().filter(|(key, of)| *of == account && key.has(asset)).map(|(key, _)| *key);
        let keys: BTreeSet<PoolKey> = pools.holdings_with(asset, account).chain(new).collect();
        keys.into_iter().for_each(|key| self.take_shares(pools, key, account));
    }

    /// Pays an account for all its shares of a pool, by the reserves as they are now.
    fn take_shares(&mut self, pools: &Pools, key: PoolKey, account: Address) {
        let shares = std::mem::take(self.holding(pools, (key, account)));
        let pool = self.pool(pools, key);
        let (a, b) = pool_pays(pool, shares);
        (pool.a, pool.b, pool.shares) = (pool.a - a, pool.b - b, pool.shares - shares);
        self.credit(account, key, [a, b]);
    }

    /// A pool that exists, as it is now.
    fn pool(&mut self, pools: &Pools, key: PoolKey) -> &mut PoolRecord {
        self.pools.entry(key).or_insert_with(|| *pools.get(&key).expect("the pool exists"))
    }

    fn holding(&mut self, pools: &Pools, of: HoldingId) -> &mut u64 {
        self.holdings.entry(of).or_insert_with(|| pools.shares(of.0, of.1))
    }

    fn credit(&mut self, to: Address, assets: PoolKey, units: [Amount; 2]) {
        let credits = [assets.a, assets.b].into_iter().zip(units).filter(|(_, amount)| *amount > 0);
        self.credits.extend(credits.map(|(asset, amount)| Credit { to, asset, amount }));
    }

    /// Opens the lowest of the new pools, as far as there is room; the units of the others return. `founded` is the
    /// number of assets of the genesis: pools with others find room in their share alone.
    fn open(&mut self, pools: &Pools, mut new: Vec<(PoolKey, Address, Sequence, [Amount; 2])>, founded: u32) {
        new.sort_unstable();
        let is_listed = |key: &PoolKey| key.b.0 >= founded;
        let mut room = POOLS_MAX - pools.pools.len();
        let mut listed_room = LISTED_POOLS_MAX.saturating_sub(pools.pools.keys().filter(|key| is_listed(key)).count());
        for (key, sender, sequence, [a, b]) in new {
            let shares = SHARES_NEW - SHARES_OF_NOBODY;
            let has_room = room > 0 && (!is_listed(&key) || listed_room > 0);
            let opened = has_room.then_some(Pooled { a, b, shares });
            room -= usize::from(has_room);
            listed_room -= usize::from(has_room && is_listed(&key));
            match opened {
                Some(_) => {
                    self.pools.insert(key, PoolRecord { a, b, shares: SHARES_NEW });
                    self.holdings.insert((key, sender), shares);
                }
                None => self.credit(sender, key, [a, b]),
            }
            self.outcomes.insert((sender, sequence), opened);
        }
    }

    fn act(&mut self, pools: &Pools, sender: Address, edit: &PoolEdit<'_>) {
        let key = edit.operation.pool();
        let before = *pools.get(&key).expect("the filter has found it");
        let pooled = match *edit.operation {
            PoolOperation::Open { .. } => return,
            PoolOperation::Provide { shares, most_a, most_b, .. } => {
                let (a, b) = pool_cost(&before, shares).expect("the filter has compared it");
                let pool = self.pool(pools, key);
                (pool.a, pool.b, pool.shares) = (pool.a + a, pool.b + b, pool.shares + shares);
                *self.holding(pools, (key, sender)) += shares;
                self.credit(sender, key, [most_a - a, most_b - b]);
                Pooled { a, b, shares }
            }
            PoolOperation::Leave { shares, .. } => {
                let (a, b) = pool_pays(&before, shares);
                let pool = self.pool(pools, key);
                (pool.a, pool.b, pool.shares) = (pool.a - a, pool.b - b, pool.shares - shares);
                *self.holding(pools, (key, sender)) -= shares;
                self.credit(sender, key, [a, b]);
                Pooled { a, b, shares }
            }
        };
        self.outcomes.insert((sender, edit.sequence), Some(pooled));
    }
}

impl Pools {
    /// What a block's accepted operations make of the pools before its batch. Their order does not matter.
    /// `founded` is the number of assets of the genesis.
    pub(crate) fn turn(&self, edits: &[(Address, PoolEdit<'_>)], founded: u32) -> PoolTurn {
        let mut turn = PoolTurn::default();
        let opens = edits.iter().filter_map(|(sender, edit)| match *edit.operation {
            PoolOperation::Open { pool, x, y } => Some((pool, *sender, edit.sequence, [x, y])),
            _ => None,
        });
        turn.open(self, opens.collect(), founded);
        let others = edits.iter().filter(|(_, edit)| !matches!(edit.operation, PoolOperation::Open { .. }));
        others.for_each(|(sender, edit)| turn.act(self, *sender, edit));
        turn
    }

    /// Makes the changes of a block; returns what is paid to accounts, the change of what pools hold, and input for the
    /// tries.
    pub(crate) fn commit(&mut self, turn: PoolTurn) -> (Vec<Credit>, Sums, PoolsChange) {
        let (mut held, mut rows) = (Sums::default(), Vec::with_capacity(turn.pools.len() + turn.holdings.len()));
        for (key, pool) in turn.pools {
            let before = self.pools.insert(key, pool).map_or((0, 0), |before| (before.a, before.b));
            let mut change = |asset: AssetId, now: Amount, before: Amount| {
                held.add(asset, i128::from(now) - i128::from(before));
            };
            change(key.a, pool.a, before.0);
            change(key.b, pool.b, before.1);
            rows.push((PoolRecordId::Pool(key).key(), Some(pool_record_value(&bytes_of(&pool)))));
        }
        for (of, shares) in turn.holdings {
            self.set_holding(of, shares);
            let value = (shares > 0).then(|| pool_record_value(&bytes_of(&shares)));
            rows.push((PoolRecordId::Holding(of).key(), value));
        }
        rows.sort_unstable();
        (turn.credits, held, PoolsChange { rows, terms: self.terms_digest() })
    }
}
