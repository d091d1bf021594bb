//! What was taken or forwarded, is in no block, and waits again.

use ledger::Ledger;
use primitives::Body;

use super::displaced::Spot;
use super::settles::settling;
use super::{Mempool, PoolEntry};

impl Mempool {
    /// Records that transactions that were taken have been forwarded to another validator. They are not given out
    /// again until [`Mempool::reclaim`] takes them back.
    pub fn mark_forwarded(&mut self, entries: Vec<PoolEntry>, now_ms: u64) {
        self.handed.extend(entries.into_iter().map(|entry| (now_ms, entry)));
    }

    /// Takes back transactions that were forwarded before `limit_ms` and are in no block yet, and puts them at the
    /// front of the queue; returns their number. Drops those that the ledger, if given, rejects by now: no other
    /// validator would accept them either.
    pub fn reclaim(&mut self, limit_ms: u64, ledger: Option<&Ledger>) -> usize {
        let ids = &self.ids;
        self.handed.retain(|(_, entry)| ids.contains_key(&entry.id));
        let late = self.handed.partition_point(|(at, _)| *at < limit_ms);
        let mut late: Vec<PoolEntry> = self.handed.drain(..late).map(|(_, entry)| entry).collect();
        if let Some(ledger) = ledger {
            late.iter_mut().for_each(|entry| entry.freeze_ends = ledger::freeze_ends(ledger, &entry.transaction));
        }
        let stands = |entry: &PoolEntry| ledger.is_none_or(|ledger| ledger.admit(&entry.transaction).is_ok());
        let (late, void): (Vec<_>, Vec<_>) = late.into_iter().partition(stands);
        self.settle(void.iter().map(|entry| (entry.id, &entry.transaction)));
        let count = late.len();
        self.restore(late);
        count
    }

    /// Puts transactions that were taken and are in no block back at the front of the queue. Those that have ended
    /// leave with the next block.
    pub fn restore(&mut self, entries: Vec<PoolEntry>) {
        for entry in entries.into_iter().rev() {
            if self.ids.contains_key(&entry.id) {
                self.ends_first = self.ends_first.min(entry.transaction.body.until);
                self.put_back(entry);
            }
        }
    }

    /// Puts a transaction back at the front of its queue.
    fn put_back(&mut self, entry: PoolEntry) {
        match (settling(&entry.transaction), self.quotas(&entry)) {
            // Its place was kept for it.
            (Some(venue), _) => self.settles.insert(venue, entry),
            _ if entry.is_duty() => self.duties.push_front(entry),
            (None, Some(of)) => {
                let Body { account, sequence, .. } = entry.transaction.body;
                let place = self.bounded.put_back(of, entry);
                self.move_to(&account, sequence, Spot::Bounded(place));
            }
            (None, None) => {
                self.queue.push_front(entry);
                self.front -= 1;
                self.place_again(0);
            }
        }
    }
}
