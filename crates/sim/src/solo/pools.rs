//! Independent bookkeeping of pools and of what accounts hold in them, from the receipts.

use std::collections::BTreeMap;

use ledger::{Batch, HoldingId, Ledger, Outcome, PoolRecord, Pooled, SHARES_NEW, SHARES_OF_NOBODY, is_asleep};
use primitives::{Address, Amount, AssetId, Operation, PoolKey, PoolOperation, Transaction};

/// Units that an account receives.
pub(super) type Received = (Address, AssetId, Amount);

/// See the module text.
#[derive(Clone, Default)]
pub(super) struct PoolBooks {
    pools: BTreeMap<PoolKey, PoolRecord>,
    holdings: BTreeMap<HoldingId, u64>,
    /// The pools as the last batch met them.
    met: BTreeMap<PoolKey, PoolRecord>,
}

impl PoolBooks {
    /// Processes the operations of a block, whose debits are taken, and then its batch; returns what accounts receive.
    pub fn apply(&mut self, effective: &[(&Transaction, Outcome)], batch: &Batch) -> Result<Vec<Received>, String> {
        let before = self.pools.clone();
        let mut received = Vec::new();
        for (transaction, outcome) in effective {
            let Operation::Pool(operation) = &transaction.body.operation else { continue };
            let account = transaction.body.account;
            let [a, b] =
                self.act(&before, account, operation, outcome).map_err(|fault| format!("{fault}: {outcome:?}"))?;
            let key = operation.pool();
            received.extend([(account, key.a, a), (account, key.b, b)]);
        }
        self.met.clone_from(&self.pools);
        for fill in &batch.pools {
            let pool = self.pools.get_mut(&fill.pool).ok_or("a pool that does not exist traded")?;
            let product = |pool: &PoolRecord| u128::from(pool.a) * u128::from(pool.b);
            let worth = product(pool);
            let (gives, takes) = if fill.sells_a { (&mut pool.a, &mut pool.b) } else { (&mut pool.b, &mut pool.a) };
            *gives = gives.checked_sub(fill.sold).ok_or("a pool sold more than it has")?;
            *takes += fill.bought;
            if product(pool) < worth {
                return Err(format!("the product of the reserves fell: {fill:?}"));
            }
        }
        Ok(received)
    }

    /// Takes the shares of holders who are frozen out of all pools with their asset, one after another; returns what
    /// they receive.
    pub fn expel(&mut self, frozen: &[(AssetId, Address)]) -> Vec<Received> {
        let mut received = Vec::new();
        for (asset, account) in frozen {
            let is_theirs = |(key, of): &HoldingId| of == account && (key.a == *asset || key.b == *asset);
            let all: Vec<HoldingId> = self.holdings.keys().filter(|of| is_theirs(of)).copied().collect();
            for of @ (key, _) in all {
                let shares = self.holdings.remove(&of).unwrap_or(0);
                let Some(pool) = self.pools.get_mut(&key) else { continue };
                let due =
                    |reserve: Amount| (u128::from(reserve) * u128::from(shares) / u128::from(pool.shares)) as Amount;
                let [a, b] = [due(pool.a), due(pool.b)];
                (pool.a, pool.b, pool.shares) = (pool.a - a, pool.b - b, pool.shares - shares);
                received.extend([(*account, key.a, a), (*account, key.b, b)]);
            }
        }
        received
    }

    /// What an account receives by an operation, of what was taken for it or from the pool.
    fn act(
        &mut self,
        before: &BTreeMap<PoolKey, PoolRecord>,
        account: Address,
        operation: &PoolOperation,
        outcome: &Outcome,
    ) -> Result<[Amount; 2], &'static str> {
        let (key, debits) = (operation.pool(), operation.debits());
        let Outcome::Pooled(Pooled { a, b, shares }) = *outcome else {
            let is_void = *outcome == Outcome::Void && matches!(operation, PoolOperation::Open { .. });
            return if is_void { Ok(debits) } else { Err("an operation on a pool has another outcome") };
        };
        if let PoolOperation::Open { .. } = operation {
            let of_sender = SHARES_NEW - SHARES_OF_NOBODY;
            if [a, b] != debits || shares != of_sender || before.contains_key(&key) {
                return Err("a pool opened in another way than asked for");
            }
            self.holdings.insert((key, account), shares);
            let is_first = self.pools.insert(key, PoolRecord { a, b, shares: SHARES_NEW }).is_none();
            return if is_first { Ok([0, 0]) } else { Err("a pool opened twice") };
        }
        let was = before.get(&key).ok_or("the pool did not exist before the block")?;
        let pool = self.pools.get_mut(&key).ok_or("the pool does not exist")?;
        let held = self.holdings.entry((key, account)).or_default();
        let due = |reserve: Amount| u128::from(reserve) * u128::from(shares);
        let worth = |units: Amount| u128::from(units) * u128::from(was.shares);
        if operation.shares() != Some(shares) {
            return Err("other shares than asked for");
        }
        let of_pool = u128::from(was.shares);
        if matches!(operation, PoolOperation::Provide { .. }) {
            let is_up = |units, reserve| worth(units) >= due(reserve) && worth(units) < due(reserve) + of_pool;
            if !is_up(a, was.a) || !is_up(b, was.b) || a > debits[0] || b > debits[1] {
                return Err("shares had another price");
            }
            (pool.a, pool.b, pool.shares, *held) = (pool.a + a, pool.b + b, pool.shares + shares, *held + shares);
            return Ok([debits[0] - a, debits[1] - b]);
        }
        let is_down = |units, reserve| worth(units) <= due(reserve) && worth(units) + of_pool > due(reserve);
        if !is_down(a, was.a) || !is_down(b, was.b) {
            return Err("shares paid something else");
        }
        (pool.a, pool.b, pool.shares) = (pool.a - a, pool.b - b, pool.shares - shares);
        *held = held.checked_sub(shares).ok_or("more shares were given back than held")?;
        self.holdings.retain(|_, shares| *shares > 0);
        Ok([a, b])
    }

    /// Compares the ledger with these books.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        let pools = ledger.pools().ok_or("the ledger has no pools")?;
        if !pools.iter().eq(&self.pools) {
            return Err("the pools differ from the receipts".into());
        }
        let differs = |((pool, account), shares): &(&HoldingId, &u64)| pools.shares(*pool, *account) != **shares;
        match self.holdings.iter().find(differs) {
            Some((of, shares)) => Err(format!("{of:?} has {shares} shares by the receipts, but not in the ledger")),
            None => Ok(()),
        }
    }
}

/// The pools that took part in the last batch and its trades, as the clearing knows them. Pools of closed assets take
/// part in none.
pub(super) fn met(
    ledger: &Ledger,
    books: &PoolBooks,
    batch: &Batch,
    is_closed: impl Fn(AssetId) -> bool,
) -> Result<(Vec<clearing::Pool>, Vec<clearing::PoolTrade>), String> {
    let Some(pools) = ledger.pools() else { return Ok(Default::default()) };
    let (mut met, mut trades) = (Vec::new(), Vec::new());
    let mut fills = batch.pools.iter().peekable();
    for (key, pool) in &books.met {
        if let Some(fill) = fills.next_if(|fill| fill.pool == *key) {
            let (number, sell, buy) = (met.len() as u32, fill.sell(), fill.buy());
            trades.push(clearing::PoolTrade { pool: number, sell, buy, sold: fill.sold, bought: fill.bought });
        }
        let least = [key.a, key.b].map(|asset: AssetId| ledger.assets()[asset.0 as usize].least_units);
        if !is_asleep(pool, least) && !is_closed(key.a) && !is_closed(key.b) {
            let (PoolKey { a, b, .. }, fee) = (*key, pools.fee(key));
            met.push(clearing::Pool { a, b, reserve_a: pool.a, reserve_b: pool.b, fee });
        }
    }
    if fills.next().is_some() { Err("pools traded out of order".into()) } else { Ok((met, trades)) }
}
