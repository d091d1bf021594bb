//! Pools in their simplest form: big integers, one operation after another on what was before the block.

use std::collections::BTreeMap;

use ledger::{Asset, Ledger, Refusal};
use num_bigint::BigUint;
use primitives::{Address, Amount, Fraction, PoolKey, PoolOperation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelPool {
    pub a: Amount,
    pub b: Amount,
    pub shares: u64,
}

#[derive(Clone, Default)]
pub struct ModelPools {
    pub fees: Vec<Fraction>,
    pub pools: BTreeMap<PoolKey, ModelPool>,
    pub holdings: BTreeMap<(PoolKey, Address), u64>,
}

/// ⌈x·n/T⌉ and ⌊x·n/T⌋.
fn parts(reserve: Amount, shares: u64, all: u64) -> (BigUint, BigUint) {
    let product = BigUint::from(reserve) * shares;
    let down = &product / all;
    let up = if &down * all == product { down.clone() } else { &down + 1u8 };
    (up, down)
}

impl ModelPool {
    pub fn cost(&self, shares: u64) -> [BigUint; 2] {
        [parts(self.a, shares, self.shares).0, parts(self.b, shares, self.shares).0]
    }

    pub fn pays(&self, shares: u64) -> [BigUint; 2] {
        let shares = shares.min(self.shares);
        [parts(self.a, shares, self.shares).1, parts(self.b, shares, self.shares).1]
    }

    /// a·b of this pool for its shares² is at least that of `other`.
    pub fn is_worth_as_much_as(&self, other: &ModelPool) -> bool {
        let side = |one: &ModelPool, other: &ModelPool| BigUint::from(one.a) * one.b * other.shares * other.shares;
        side(self, other) >= side(other, self)
    }
}

impl ModelPools {
    pub fn shares(&self, of: (PoolKey, Address)) -> u64 {
        self.holdings.get(&of).copied().unwrap_or(0)
    }

    pub fn alone(&self, operation: &PoolOperation, assets: &[Asset]) -> Result<(), Refusal> {
        let key = operation.pool();
        let pool = self.pools.get(&key);
        let least = |at: u32| assets[at as usize].least_units;
        match *operation {
            _ if usize::from(key.class) >= self.fees.len() => Err(Refusal::NO_POOL_CLASS),
            PoolOperation::Open { .. } if pool.is_some() => Err(Refusal::POOL_EXISTS),
            PoolOperation::Open { x, y, .. } if x < 16 * least(key.a.0) || y < 16 * least(key.b.0) => {
                Err(Refusal::POOL_TOO_SMALL)
            }
            PoolOperation::Open { .. } => Ok(()),
            PoolOperation::Provide { shares, most_a, most_b, .. } => {
                let [a, b] = pool.ok_or(Refusal::NO_POOL)?.cost(shares);
                if a <= most_a.into() && b <= most_b.into() { Ok(()) } else { Err(Refusal::POOL_COSTS_MORE) }
            }
            PoolOperation::Leave { shares, least_a, least_b, .. } => {
                let [a, b] = pool.ok_or(Refusal::NO_POOL)?.pays(shares);
                if a >= least_a.into() && b >= least_b.into() { Ok(()) } else { Err(Refusal::POOL_PAYS_LESS) }
            }
        }
    }

    /// Makes an operation with the pools `before` the block; returns what the sender's balances of both assets change
    /// by. A second opening does nothing, so the first one must be that which counts.
    pub fn act(&mut self, before: &ModelPools, account: Address, operation: &PoolOperation) -> [i128; 2] {
        let key = operation.pool();
        let units = |[a, b]: [BigUint; 2]| [a, b].map(|units| Amount::try_from(units).expect("exists"));
        match *operation {
            PoolOperation::Open { x, y, .. } if !self.pools.contains_key(&key) => {
                self.pools.insert(key, ModelPool { a: x, b: y, shares: 1 << 24 });
                self.holdings.insert((key, account), (1 << 24) - (1 << 16));
                [-i128::from(x), -i128::from(y)]
            }
            PoolOperation::Open { .. } => [0, 0],
            PoolOperation::Provide { shares, .. } => {
                let [a, b] = units(before.pools[&key].cost(shares));
                let pool = self.pools.get_mut(&key).expect("stays");
                *pool = ModelPool { a: pool.a + a, b: pool.b + b, shares: pool.shares + shares };
                *self.holdings.entry((key, account)).or_default() += shares;
                [-i128::from(a), -i128::from(b)]
            }
            PoolOperation::Leave { shares, .. } => {
                let [a, b] = units(before.pools[&key].pays(shares));
                let pool = self.pools.get_mut(&key).expect("stays");
                *pool = ModelPool { a: pool.a - a, b: pool.b - b, shares: pool.shares - shares };
                let held = self.holdings.get_mut(&(key, account)).expect("held");
                *held -= shares;
                self.holdings.retain(|_, shares| *shares > 0);
                [i128::from(a), i128::from(b)]
            }
        }
    }

    pub fn assert_same(&self, real: &Ledger) {
        let pools = real.pools().expect("the chain has pools");
        let all: Vec<_> = pools.iter().map(|(key, pool)| (*key, [pool.a, pool.b, pool.shares])).collect();
        let mine = self.pools.iter().map(|(key, pool)| (*key, [pool.a, pool.b, pool.shares]));
        assert_eq!(all, mine.collect::<Vec<_>>());
        for ((pool, account), shares) in &self.holdings {
            assert_eq!(pools.shares(*pool, *account), *shares);
            assert!(pools.holdings_of(*account).any(|of| of == (*pool, *shares)));
        }
    }
}
