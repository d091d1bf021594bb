//! The transactions that wait for a block.
//!
//! Pure: no clock and no locks. A transaction enters if it would stand in the next block beside all that wait already:
//! every sum that it may spend is reserved (SPEEDEX §K.6), so that a block of waiting transactions has nothing for the
//! filter to remove. The pool is bounded in transactions; an account's share is bounded by its sequence window.

use std::collections::{HashMap, HashSet, VecDeque};

use ledger::{Ledger, Pair, Place, Refusal};
use primitives::{Address, Amount, AssetId, MAX_ISSUED, Operation, Sequence, Transaction, TransactionId};

/// A waiting transaction.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its id.
    pub id: TransactionId,
    /// When it came, in the caller's milliseconds.
    pub arrived_ms: u64,
    /// The transaction; its signature is valid.
    pub transaction: Transaction,
}

/// Why a transaction does not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// It waits already.
    Waiting,
    /// The pool is full.
    Full,
    /// The ledger, or what waits, does not permit it.
    Refused(Refusal),
}

/// What an account's waiting transactions use.
#[derive(Default)]
struct Reserved {
    sequences: HashSet<Sequence>,
    sums: HashMap<AssetId, u128>,
    cancels: HashSet<(Pair, Place)>,
    key_changes: usize,
}

/// The waiting transactions; see the module text.
pub struct Mempool {
    limit: usize,
    queue: VecDeque<Entry>,
    ids: HashSet<TransactionId>,
    reserved: HashMap<Address, Reserved>,
    created: HashSet<Address>,
    issued: HashMap<AssetId, u128>,
}

impl Mempool {
    /// A pool for at most `limit` transactions, those of a block that is being applied included.
    pub fn new(limit: usize) -> Mempool {
        Mempool {
            limit,
            queue: VecDeque::new(),
            ids: HashSet::new(),
            reserved: HashMap::new(),
            created: HashSet::new(),
            issued: HashMap::new(),
        }
    }

    /// Number of waiting transactions, those taken and not settled included.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether this transaction waits.
    pub fn contains(&self, id: &TransactionId) -> bool {
        self.ids.contains(id)
    }

    /// Number that [`Mempool::take`] can still give.
    pub fn ready(&self) -> usize {
        self.queue.len()
    }

    /// When the longest waiting transaction came.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.queue.front().map(|entry| entry.arrived_ms)
    }

    /// The highest sequence number of an account that waits.
    pub fn highest(&self, account: &Address) -> Option<Sequence> {
        self.reserved.get(account).and_then(|reserved| reserved.sequences.iter().max().copied())
    }

    /// Takes a transaction in, if it would stand in the next block on top of `ledger`.
    ///
    /// # Errors
    /// [`Reject`] says why not; the pool is unchanged.
    pub fn admit(&mut self, entry: Entry, ledger: &Ledger) -> Result<(), Reject> {
        if self.ids.contains(&entry.id) {
            return Err(Reject::Waiting);
        }
        if self.ids.len() >= self.limit {
            return Err(Reject::Full);
        }
        ledger.admit(&entry.transaction).map_err(Reject::Refused)?;
        self.check_reserved(&entry.transaction, ledger).map_err(Reject::Refused)?;
        self.reserve(&entry.transaction, ledger.fee());
        self.ids.insert(entry.id);
        self.queue.push_back(entry);
        Ok(())
    }

    /// Gives the longest waiting transactions, at most `count`; what they use stays reserved until they are settled.
    pub fn take(&mut self, count: usize) -> Vec<Entry> {
        self.queue.drain(..count.min(self.queue.len())).collect()
    }

    /// Forgets transactions that were taken and have been applied to the ledger, or refused by it.
    pub fn settle<'a>(&mut self, taken: impl Iterator<Item = &'a Entry>, fee: Amount) {
        for entry in taken {
            if self.ids.remove(&entry.id) {
                self.release(&entry.transaction, fee);
            }
        }
    }

    fn check_reserved(&self, transaction: &Transaction, ledger: &Ledger) -> Result<(), Refusal> {
        let body = &transaction.body;
        match &body.operation {
            Operation::CreateAccount { account, .. } if *account != body.account && self.created.contains(account) => {
                return Err(Refusal::CreateConflict);
            }
            Operation::Issue { asset, amount, .. } => {
                let waiting = self.issued.get(asset).copied().unwrap_or(0);
                let issued = ledger.assets()[asset.0 as usize].issued;
                if u128::from(issued) + waiting + u128::from(*amount) > u128::from(MAX_ISSUED) {
                    return Err(Refusal::IssueTooLarge);
                }
            }
            _ => {}
        }
        let Some(reserved) = self.reserved.get(&body.account) else { return Ok(()) };
        if reserved.sequences.contains(&body.sequence) {
            return Err(Refusal::SequenceConflict);
        }
        if cancelled(transaction).is_some_and(|place| reserved.cancels.contains(&place)) {
            return Err(Refusal::CancelConflict);
        }
        if changes_key(transaction) && reserved.key_changes > 0 {
            return Err(Refusal::KeyConflict);
        }
        let account = ledger.accounts().get(&body.account);
        let has = |asset| u128::from(account.map_or(0, |account| account.balance(asset)));
        let mut wanted: HashMap<AssetId, u128> = HashMap::new();
        for (asset, amount) in debits(transaction, ledger.fee()) {
            *wanted.entry(asset).or_default() += u128::from(amount);
        }
        let overdraws =
            |(asset, sum): (&AssetId, &u128)| reserved.sums.get(asset).copied().unwrap_or(0) + sum > has(*asset);
        if wanted.iter().any(overdraws) { Err(Refusal::Overdraft) } else { Ok(()) }
    }

    fn reserve(&mut self, transaction: &Transaction, fee: Amount) {
        let body = &transaction.body;
        let reserved = self.reserved.entry(body.account).or_default();
        reserved.sequences.insert(body.sequence);
        reserved.cancels.extend(cancelled(transaction));
        reserved.key_changes += usize::from(changes_key(transaction));
        for (asset, amount) in debits(transaction, fee) {
            *reserved.sums.entry(asset).or_default() += u128::from(amount);
        }
        match &body.operation {
            Operation::CreateAccount { account, .. } if *account != body.account => {
                self.created.insert(*account);
            }
            Operation::Issue { asset, amount, .. } => *self.issued.entry(*asset).or_default() += u128::from(*amount),
            _ => {}
        }
    }

    fn release(&mut self, transaction: &Transaction, fee: Amount) {
        let body = &transaction.body;
        match &body.operation {
            Operation::CreateAccount { account, .. } if *account != body.account => {
                self.created.remove(account);
            }
            Operation::Issue { asset, amount, .. } => {
                *self.issued.get_mut(asset).expect("reserved") -= u128::from(*amount);
            }
            _ => {}
        }
        let reserved = self.reserved.get_mut(&body.account).expect("reserved");
        reserved.sequences.remove(&body.sequence);
        if reserved.sequences.is_empty() {
            self.reserved.remove(&body.account);
            return;
        }
        if let Some(place) = cancelled(transaction) {
            reserved.cancels.remove(&place);
        }
        reserved.key_changes -= usize::from(changes_key(transaction));
        for (asset, amount) in debits(transaction, fee) {
            *reserved.sums.get_mut(&asset).expect("reserved") -= u128::from(amount);
        }
    }
}

fn debits(transaction: &Transaction, fee: Amount) -> impl Iterator<Item = (AssetId, Amount)> {
    transaction.body.operation.debit().into_iter().chain([(AssetId(0), fee)])
}

fn cancelled(transaction: &Transaction) -> Option<(Pair, Place)> {
    match transaction.body.operation {
        Operation::CancelOffer { sell, buy, limit, offer } => {
            Some((Pair { sell, buy }, Place { limit, account: transaction.body.account, id: offer }))
        }
        _ => None,
    }
}

fn changes_key(transaction: &Transaction) -> bool {
    matches!(transaction.body.operation, Operation::CreateAccount { account, .. } if account == transaction.body.account)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::Genesis;
    use primitives::{Body, Fraction, Price, PublicKey, SecretKey};

    fn key() -> SecretKey {
        SecretKey::from_seed([1; 32])
    }

    fn ledger(fee: Amount) -> Ledger {
        let me = key().public().address();
        let assets = vec![("USD".into(), 2, me), ("EUR".into(), 2, Address([5; 20]))];
        let balances = vec![(me, AssetId(0), 1_000), (me, AssetId(1), 1_000)];
        let (epsilon, mu) = (Fraction::ZERO, Fraction::power_of_two(10));
        Ledger::new(&Genesis { chain: 1, fee, epsilon, mu, assets, balances }).expect("sound")
    }

    fn entry(sequence: Sequence, operation: Operation) -> Entry {
        let body = Body { chain: 1, account: key().public().address(), sequence, operation };
        let transaction = body.sign(&key());
        Entry { id: transaction.id(), arrived_ms: sequence, transaction }
    }

    fn pay(sequence: Sequence, asset: u32, amount: Amount) -> Entry {
        entry(sequence, Operation::Pay { to: Address([9; 20]), asset: AssetId(asset), amount })
    }

    fn refused(refusal: Refusal) -> Result<(), Reject> {
        Err(Reject::Refused(refusal))
    }

    #[test]
    fn what_waits_is_reserved_and_released() {
        let ledger = ledger(1);
        let mut pool = Mempool::new(100);
        assert_eq!(pool.admit(pay(1, 0, 900), &ledger), Ok(()));
        assert_eq!(pool.admit(pay(2, 0, 99), &ledger), refused(Refusal::Overdraft), "900 + 99 and two fees");
        assert_eq!(pool.admit(pay(2, 0, 98), &ledger), Ok(()));
        assert_eq!(pool.admit(pay(3, 1, 5), &ledger), refused(Refusal::Overdraft), "nothing left for a fee");
        let taken = pool.take(10);
        assert_eq!((taken.len(), pool.len(), pool.ready()), (2, 2, 0));
        assert_eq!(pool.admit(pay(3, 1, 5), &ledger), refused(Refusal::Overdraft), "still reserved while applied");
        pool.settle(taken.iter(), 1);
        assert!(pool.is_empty() && pool.reserved.is_empty());
        assert_eq!(pool.admit(pay(3, 1, 5), &ledger), Ok(()));
    }

    #[test]
    fn conflicts_stop_at_the_door() {
        let ledger = ledger(0);
        let mut pool = Mempool::new(8);
        let first = pay(1, 0, 1);
        assert_eq!(pool.admit(first.clone(), &ledger), Ok(()));
        assert_eq!(pool.admit(first, &ledger), Err(Reject::Waiting));
        assert_eq!(pool.admit(pay(1, 0, 2), &ledger), refused(Refusal::SequenceConflict));
        let me = key().public().address();
        let rotate = |sequence| entry(sequence, Operation::CreateAccount { account: me, key: PublicKey([7; 32]) });
        assert_eq!(pool.admit(rotate(2), &ledger), Ok(()));
        assert_eq!(pool.admit(rotate(3), &ledger), refused(Refusal::KeyConflict));
        let new_key = SecretKey::from_seed([3; 32]).public();
        let create = |sequence| entry(sequence, Operation::CreateAccount { account: new_key.address(), key: new_key });
        assert_eq!(pool.admit(create(4), &ledger), Ok(()));
        assert_eq!(pool.admit(create(5), &ledger), refused(Refusal::CreateConflict));
        let issue = |sequence| entry(sequence, Operation::Issue { to: me, asset: AssetId(0), amount: MAX_ISSUED / 2 });
        assert_eq!(pool.admit(issue(6), &ledger), Ok(()));
        assert_eq!(pool.admit(issue(7), &ledger), refused(Refusal::IssueTooLarge));
        let nothing =
            entry(8, Operation::CancelOffer { sell: AssetId(0), buy: AssetId(1), limit: Price::ONE, offer: 1 });
        assert_eq!(pool.admit(nothing, &ledger), refused(Refusal::UnknownOffer));
    }

    #[test]
    fn the_pool_is_bounded_and_first_in_first_out() {
        let ledger = ledger(0);
        let mut pool = Mempool::new(3);
        for sequence in [3, 1, 2] {
            assert_eq!(pool.admit(pay(sequence, 0, 1), &ledger), Ok(()));
        }
        assert_eq!(pool.admit(pay(4, 0, 1), &ledger), Err(Reject::Full));
        assert_eq!(pool.oldest_ms(), Some(3));
        assert_eq!(pool.highest(&key().public().address()), Some(3));
        let order: Vec<u64> = pool.take(2).iter().map(|entry| entry.transaction.body.sequence).collect();
        assert_eq!(order, [3, 1]);
    }
}
