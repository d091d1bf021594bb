//! Pending transactions that a quota of sub-blocks bounds ([`ledger::quotas_of`]): a queue for each set of quotas that
//! a transaction counts against.
//!
//! What a quota holds back waits here and keeps nothing else waiting. Accounts have turns: the second transaction of an
//! account comes after the first one of each other account that waits. A queue holds no more of a quota than the
//! sub-blocks of a transaction's usual life carry, so that what is accepted is taken before it ends. The second half is
//! for accounts that have nothing there yet. Of envelopes, which are few in a block and name who pays, a payer has
//! [`ENVELOPES_WAITING_MAX`].
//!
//! What the quota has held back is as old as the take that left it: it could not have been in a block before.

use std::collections::{BTreeMap, HashMap};

use ledger::{QUOTA_KINDS, QuotaKind};
use primitives::{Address, Height, Operation, UNTIL_USUAL};

use super::PoolEntry;

/// Envelopes of one payer that wait. Those that were taken, and are in no block yet, are not counted.
const ENVELOPES_WAITING_MAX: usize = 4;

/// The quotas that a transaction counts against, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QuotaSet(u16);

const _: () = assert!(QUOTA_KINDS <= u16::BITS as usize, "a set has a bit for each kind");

/// A place in a queue: turn, and order of arrival.
type Turn = (u64, u64);

/// Where a transaction waits.
pub(super) type BoundedPlace = (QuotaSet, Turn);

/// The queue of one set of quotas.
#[derive(Default)]
struct Queue {
    waiting: BTreeMap<Turn, PoolEntry>,
    /// For accounts that wait: how many transactions, and the turn of the last one.
    accounts: HashMap<Address, (usize, u64)>,
    /// The turn of the last transaction that was taken.
    turn: u64,
    /// When a quota last held back what waits, in the caller's milliseconds.
    held_back_ms: u64,
}

/// The queues.
#[derive(Default)]
pub(super) struct Bounded {
    queues: BTreeMap<QuotaSet, Queue>,
    arrivals: u64,
    /// What waits of each quota, by [`QuotaKind`].
    waiting: [u64; QUOTA_KINDS],
}

impl QuotaSet {
    /// That of a transaction; `None` if no quota bounds it.
    pub(super) fn of(entry: &PoolEntry) -> Option<QuotaSet> {
        let bits = entry.quotas().fold(0, |bits, (kind, _)| bits | 1 << kind as u8);
        (bits != 0).then_some(QuotaSet(bits))
    }
}

impl Queue {
    fn insert(&mut self, turn: Turn, entry: PoolEntry) {
        let (count, last) = self.accounts.entry(entry.transaction.body.account).or_default();
        (*count, *last) = (*count + 1, turn.0.max(*last));
        self.waiting.insert(turn, entry);
    }

    fn remove(&mut self, turn: &Turn) -> Option<PoolEntry> {
        let entry = self.waiting.remove(turn)?;
        let account = entry.transaction.body.account;
        if let Some((count, _)) = self.accounts.get_mut(&account) {
            *count -= 1;
            if *count == 0 {
                self.accounts.remove(&account);
            }
        }
        Some(entry)
    }

    /// The turn of the next transaction of an account.
    fn next_turn(&self, account: &Address) -> u64 {
        let after = self.accounts.get(account).map_or(0, |(_, last)| last + 1);
        after.max(self.turn)
    }

    fn oldest_ms(&self) -> Option<u64> {
        self.waiting.values().next().map(|first| first.arrived_ms.max(self.held_back_ms))
    }
}

impl Bounded {
    /// Whether a queue has no room for a transaction.
    pub(super) fn is_full_for(&self, entry: &PoolEntry) -> bool {
        let Some(of) = QuotaSet::of(entry) else { return false };
        let account = &entry.transaction.body.account;
        let waits = self.queues.get(&of).is_some_and(|queue| queue.accounts.contains_key(account));
        let most = |kind: QuotaKind| u64::from(kind.of_sub_block()) * UNTIL_USUAL / if waits { 2 } else { 1 };
        entry.quotas().any(|(kind, cost)| self.waiting[kind as usize] + u64::from(cost) > most(kind))
    }

    /// Whether so many envelopes of an envelope's payer wait that it may not. They name their payer, and each takes a
    /// place of which a block has few.
    pub(super) fn has_enough_of(&self, entry: &PoolEntry) -> bool {
        let body = &entry.transaction.body;
        let Some(of) = QuotaSet::of(entry).filter(|_| matches!(body.operation, Operation::Sealed(_))) else {
            return false;
        };
        let waiting = self.queues.get(&of).and_then(|queue| queue.accounts.get(&body.account));
        waiting.is_some_and(|(count, _)| *count >= ENVELOPES_WAITING_MAX)
    }

    /// Queues a transaction behind those of its account.
    pub(super) fn insert(&mut self, of: QuotaSet, entry: PoolEntry) -> BoundedPlace {
        let turn = self.queues.entry(of).or_default().next_turn(&entry.transaction.body.account);
        self.insert_at(of, turn, entry)
    }

    /// Queues a transaction before all others: it was taken and is in no block.
    pub(super) fn put_back(&mut self, of: QuotaSet, entry: PoolEntry) -> BoundedPlace {
        self.insert_at(of, 0, entry)
    }

    fn insert_at(&mut self, of: QuotaSet, turn: u64, entry: PoolEntry) -> BoundedPlace {
        self.arrivals += 1;
        let place = (of, (turn, self.arrivals));
        self.replace(place, entry);
        place
    }

    /// Puts a transaction into a place that is free.
    pub(super) fn replace(&mut self, (of, turn): BoundedPlace, entry: PoolEntry) {
        self.count(&entry, true);
        self.queues.entry(of).or_default().insert(turn, entry);
    }

    pub(super) fn get(&self, (of, turn): &BoundedPlace) -> Option<&PoolEntry> {
        self.queues.get(of)?.waiting.get(turn)
    }

    pub(super) fn remove(&mut self, (of, turn): &BoundedPlace) -> Option<PoolEntry> {
        let entry = self.queues.get_mut(of)?.remove(turn)?;
        self.count(&entry, false);
        Some(entry)
    }

    fn count(&mut self, entry: &PoolEntry, comes: bool) {
        for (kind, cost) in entry.quotas() {
            let waiting = &mut self.waiting[kind as usize];
            *waiting = if comes { *waiting + u64::from(cost) } else { *waiting - u64::from(cost) };
        }
    }

    /// Takes transactions of each queue in turn while they `fit`, at most `count`.
    pub(super) fn take(
        &mut self,
        count: usize,
        now_ms: u64,
        mut fits: impl FnMut(&PoolEntry) -> bool,
    ) -> Vec<PoolEntry> {
        let mut taken = Vec::new();
        for queue in self.queues.values_mut() {
            while taken.len() < count
                && let Some((turn, entry)) = queue.waiting.first_key_value()
                && fits(entry)
            {
                let turn = *turn;
                queue.turn = queue.turn.max(turn.0);
                taken.extend(queue.remove(&turn));
            }
            queue.held_back_ms = now_ms;
        }
        taken.iter().for_each(|entry| self.count(entry, false));
        taken
    }

    /// Removes those that end at a height, and returns them.
    pub(super) fn end(&mut self, height: Height) -> Vec<PoolEntry> {
        let ends = |(_, entry): &(&Turn, &PoolEntry)| entry.transaction.body.until <= height;
        let place = |(of, queue): (&QuotaSet, &Queue)| {
            let ended: Vec<Turn> = queue.waiting.iter().filter(ends).map(|(turn, _)| *turn).collect();
            ended.into_iter().map(|turn| (*of, turn)).collect::<Vec<_>>()
        };
        let ended: Vec<BoundedPlace> = self.queues.iter().flat_map(place).collect();
        ended.iter().filter_map(|place| self.remove(place)).collect()
    }

    /// All that wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PoolEntry> {
        self.queues.values().flat_map(|queue| queue.waiting.values())
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.queues.values().map(|queue| queue.waiting.len()).sum()
    }

    /// The age of the oldest transaction that the next take could give.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        self.queues.values().filter_map(Queue::oldest_ms).min()
    }
}
