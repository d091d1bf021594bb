//! The pool of pending transactions.
//!
//! Pure: no clock and no locks. The pool accepts a transaction if it would be valid in the next block together with
//! all pending ones: every sum that it may spend is reserved (SPEEDEX §K.6), so that the filter removes nothing from
//! a block of pending transactions. Many transactions are judged at once, on all available threads: reservations are
//! atomic words, and only the queue is filled by one thread. Of conflicting transactions that arrive together, any
//! may be accepted. The pool is bounded in transactions; an account's share is bounded by its sequence window.
//!
//! Duties ([`primitives::Operation::is_duty`]) are those of members of the payment lane and validators' presences. They
//! wait in a queue of their own, with room of its own, and are taken first. So a flood of paid transactions stops no
//! vote, no registration and no presence, whether it fills the pool or the block. The ledger admits only what somebody
//! owes, once, so that nobody else fills this queue.
//!
//! Settles of venues wait apart, too, one for each venue (`settles.rs`), and are taken after duties and before the
//! rest. So does what another quota of sub-blocks bounds (`bounded.rs`), with a queue for each quota: what a quota
//! holds back keeps nothing else waiting. No kind of transaction can fill more than half of a sub-block or of the pool
//! before the others.
//!
//! A transaction leaves the pool after its last height ([`primitives::Body::until`]), or when a block makes it void. It
//! has used the number, stopped the session key or changed the account's key. One that is queued gives way to a
//! substitute: another transaction of the account with the same number that ends later. Only one of both can ever pay,
//! so an account may do this once for each block.
//!
//! Parameters change by vote. The pool reserves by the dearest fee of the records that act or wait. When a record
//! begins to act, all that waits is judged again: a transaction keeps no others out by what it no longer costs, and
//! none stays that cannot count.
//!
//! Transactions of session keys give way to those of the account's own key, in the filter's order
//! ([`ledger::Precedence`]): what a key has reserved keeps no transaction of the owner out.

use std::collections::{HashMap, HashSet, VecDeque};

mod bounded;
mod displaced;
mod returned;
mod settles;

use crate::{Defect, EthereumPool};
use bounded::{Bounded, QuotaSet};
use displaced::Spot;
use kernel::Planted;
use ledger::{Ledger, Parameters, Quota, QuotaKind, Refusal, Reservations, ReserveError, freeze_ends, quotas_of};
use primitives::{
    Address, Amount, Body, Height, LANE_POST_BYTES_MAX, Operation, SecretKey, Sequence, SessionSlot, Transaction,
    TransactionId, slot_of,
};
use rayon::prelude::*;
use settles::{PendingSettles, settling};

/// Batches smaller than this are judged on one thread.
const PARALLEL_LEN: usize = 64;
/// Pending duties of members that a pool holds, besides its limit.
pub const DUTIES_MAX: usize = 4_096;
/// No transaction has more bytes: a post about the lane is the longest one.
const TRANSACTION_BYTES_MAX: usize = LANE_POST_BYTES_MAX + (1 << 10);

/// A pending transaction.
#[derive(Clone, Debug)]
pub struct PoolEntry {
    /// Its id.
    pub id: TransactionId,
    /// Its arrival, in the caller's milliseconds.
    pub arrived_ms: u64,
    /// The transaction; its signature is valid.
    pub transaction: Transaction,
    /// How many offers and holdings it ends, if it is a freeze, by the state that admitted it. The pool sets it. If the
    /// holder has more since, the sub-block may hold more than its quota: then the freeze is refused, and sent again.
    freeze_ends: u32,
}

/// Why the pool rejects a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// It is pending already.
    Waiting,
    /// The pool is full.
    Full,
    /// The ledger, or the pending transactions, do not permit it.
    Refused(Refusal),
}

impl PoolEntry {
    /// A transaction with a valid signature and this id, which arrived at a time of the caller's clock.
    pub fn new(id: TransactionId, arrived_ms: u64, transaction: Transaction) -> PoolEntry {
        PoolEntry { id, arrived_ms, transaction, freeze_ends: 0 }
    }

    /// Counts it as the next transaction of a sub-block, unless a quota has too little left.
    pub fn fits(&self, quota: &mut Quota) -> bool {
        quota.admits(&self.transaction, self.freeze_ends)
    }

    /// The quotas that it counts against, and by how much.
    fn quotas(&self) -> impl Iterator<Item = (QuotaKind, u32)> + use<> {
        quotas_of(&self.transaction, self.freeze_ends)
    }

    /// Whether it is marked as a member's duty in the lane.
    fn is_duty(&self) -> bool {
        is_duty(&self.transaction)
    }
}

fn is_duty(transaction: &Transaction) -> bool {
    transaction.body.is_duty()
}

impl From<ReserveError> for Reject {
    fn from(error: ReserveError) -> Reject {
        match error {
            ReserveError::Refused(refusal) => Reject::Refused(refusal),
            ReserveError::NoRoom => Reject::Full,
        }
    }
}

/// The pool; see the module text.
pub struct Mempool {
    limit: usize,
    /// Bytes that a sub-block has for transactions.
    room: usize,
    /// Seats of a committee.
    seats: u32,
    queue: VecDeque<PoolEntry>,
    /// Members' duties, which are taken first.
    duties: VecDeque<PoolEntry>,
    /// Pending duties, including those taken and not settled.
    duties_pending: usize,
    /// Settles of venues, which are taken after duties.
    settles: PendingSettles,
    /// What quotas bound, which is taken after settles.
    bounded: Bounded,
    /// The place of the first queued transaction; the next one has the next place.
    front: i64,
    /// Transactions forwarded to another validator, and when.
    handed: VecDeque<(u64, PoolEntry)>,
    /// What is pending, each with the fee that a unit of its weight has reserved; `None` if it reserves nothing.
    ids: HashMap<TransactionId, Option<Amount>>,
    /// Pending sequence numbers of each account, and where each last waited.
    sequences: HashMap<Address, Vec<(Sequence, Spot)>>,
    reserved: Reservations,
    /// What a unit of weight reserves now.
    fee: Amount,
    /// The parameters that all was judged by.
    parameters: Option<Parameters>,
    /// Accounts that have substituted a transaction since the last block.
    substituted: HashSet<Address>,
    /// Transactions that another one of their number has displaced, with the ids of those, since they were taken.
    displaced: Vec<(TransactionId, TransactionId)>,
    /// The lowest height at which a queued transaction ends.
    ends_first: Height,
    /// Ethereum transactions; they reserve nothing natively.
    pub ethereum: EthereumPool,
    /// The defect that a simulation plants.
    defect: Planted<Defect>,
}

impl Mempool {
    /// A pool for at most `limit` transactions, including those of a block that is being applied, and for
    /// [`DUTIES_MAX`] duties of members.
    pub fn new(limit: usize) -> Mempool {
        Mempool {
            limit,
            room: usize::MAX,
            seats: 1,
            queue: VecDeque::new(),
            duties: VecDeque::new(),
            duties_pending: 0,
            settles: PendingSettles::default(),
            bounded: Bounded::default(),
            front: 0,
            handed: VecDeque::new(),
            ids: HashMap::new(),
            fee: 0,
            parameters: None,
            sequences: HashMap::new(),
            reserved: Reservations::default(),
            substituted: HashSet::new(),
            displaced: Vec::new(),
            ends_first: Height::MAX,
            ethereum: EthereumPool::new(limit),
            defect: Planted::NOTHING,
        }
    }

    /// Plants a defect, which only a simulation has.
    pub fn plant(&mut self, defect: Planted<Defect>) {
        self.defect = defect;
    }

    /// Tells the pool how many bytes a sub-block has for transactions, and how many seats a committee has. What alone
    /// needs more bytes is refused: it would wait for ever, and all others behind it.
    pub fn set_room(&mut self, bytes: usize, seats: usize) {
        self.room = bytes;
        self.seats = seats as u32;
        self.ethereum.set_room(bytes);
    }

    /// The quotas of a sub-block.
    pub fn quota(&self) -> Quota {
        Quota::default().of_seats(self.seats)
    }

    /// Number of pending native transactions, including those taken and not settled.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the pool is empty.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether this transaction is pending.
    pub fn contains(&self, id: &TransactionId) -> bool {
        self.ids.contains_key(id)
    }

    /// Number of transactions that [`Mempool::take`] can still give.
    pub fn ready(&self) -> usize {
        self.queue.len() + self.duties.len() + self.settles.waiting().count() + self.bounded.len()
    }

    /// Arrival of the oldest pending transaction that could be in the next block, of either kind. What a quota has held
    /// back counts from then on.
    pub fn oldest_ms(&self) -> Option<u64> {
        let first = [self.queue.front(), self.duties.front()].into_iter().flatten();
        let settles = self.settles.waiting();
        let native = first.chain(settles).map(|entry| entry.arrived_ms).chain(self.bounded.oldest_ms());
        native.chain(self.ethereum.waits_since_ms()).min()
    }

    /// The highest pending sequence number of an account's slot; slot 0 has its own numbers.
    pub fn highest(&self, account: &Address, slot: SessionSlot) -> Option<Sequence> {
        let pending = self.sequences.get(account)?.iter().map(|(sequence, _)| *sequence);
        pending.filter(|sequence| slot_of(*sequence) == slot).max()
    }

    /// Signs an operation of this node's own account, valid through height `until`, and queues it. This is the one
    /// place that gives out the account's sequence numbers: the next one is above those that the ledger has and those
    /// that are pending. So two transactions in flight never have one number, whoever in the node makes them.
    ///
    /// # Errors
    /// [`Reject`] gives the reason, for example that 64 numbers are pending; the pool is unchanged.
    pub fn post(
        &mut self,
        key: &SecretKey,
        operation: Operation,
        until: Height,
        ledger: &Ledger,
        arrived_ms: u64,
    ) -> Result<TransactionId, Reject> {
        let account = key.public().address();
        let used = ledger.accounts().get(&account).map_or(0, |own| own.window().highest());
        let sequence = used.max(self.highest(&account, 0).unwrap_or(0)) + 1;
        let body = Body { chain: ledger.chain(), account, sequence, until, operation };
        let transaction = body.sign(&ledger.network(), key);
        let id = transaction.id();
        self.admit(PoolEntry::new(id, arrived_ms, transaction), ledger).map(|()| id)
    }

    /// Adds a transaction, if it would be valid in the next block on top of `ledger`.
    ///
    /// # Errors
    /// [`Reject`] gives the reason; the pool is unchanged.
    pub fn admit(&mut self, entry: PoolEntry, ledger: &Ledger) -> Result<(), Reject> {
        self.admit_all(vec![entry], ledger).pop().expect("one answer for one entry")
    }

    /// Adds the transactions that would be valid in the next block on top of `ledger`, on the current rayon pool.
    /// Returns one answer for each, in order.
    pub fn admit_all(&mut self, mut entries: Vec<PoolEntry>, ledger: &Ledger) -> Vec<Result<(), Reject>> {
        self.fee = ledger.dearest_fee();
        entries.iter_mut().for_each(|entry| entry.freeze_ends = freeze_ends(ledger, &entry.transaction));
        self.reserved.make_room(entries.len());
        let verdicts: Vec<Result<(), Reject>> = if entries.len() < PARALLEL_LEN {
            entries.iter().map(|entry| self.judge(entry, ledger)).collect()
        } else {
            entries.par_iter().map(|entry| self.judge(entry, ledger)).collect()
        };
        entries.into_iter().zip(verdicts).map(|(entry, verdict)| self.enter(entry, verdict, ledger)).collect()
    }

    /// Reserves what a transaction may spend.
    fn judge(&self, entry: &PoolEntry, ledger: &Ledger) -> Result<(), Reject> {
        if self.ids.contains_key(&entry.id) {
            return Err(Reject::Waiting);
        }
        if self.is_full_for(entry) {
            return Err(Reject::Full);
        }
        self.check_alone(entry)?;
        self.reserved.admit(&entry.transaction, ledger).map_err(Reject::from)
    }

    /// Whether a sub-block has room and quotas for a transaction, if it is alone there; a duty has half of the room.
    fn check_alone(&self, entry: &PoolEntry) -> Result<(), Reject> {
        let room = if entry.is_duty() { self.room.div_ceil(2) } else { self.room };
        // The usual room is larger than any transaction, and measuring costs time.
        let fits =
            room >= TRANSACTION_BYTES_MAX || borsh::object_length(&entry.transaction).is_ok_and(|bytes| bytes <= room);
        let is_small = fits && entry.fits(&mut self.quota());
        if is_small { Ok(()) } else { Err(Reject::Refused(Refusal::LARGER_THAN_SUB_BLOCK)) }
    }

    fn is_full_for(&self, entry: &PoolEntry) -> bool {
        let others = self.ids.len() - self.duties_pending - self.settles.pending();
        match settling(&entry.transaction) {
            Some(venue) => self.settles.is_full_for(venue),
            None if entry.is_duty() => self.duties_pending >= DUTIES_MAX,
            None if self.quotas(entry).is_some() => {
                self.bounded.len() >= self.limit.div_ceil(2) || self.bounded.is_full_for(entry)
            }
            None => others >= self.limit,
        }
    }

    fn enter(&mut self, entry: PoolEntry, verdict: Result<(), Reject>, ledger: &Ledger) -> Result<(), Reject> {
        match verdict {
            // A copy that was judged in parallel has reserved the number.
            Err(Reject::Refused(Refusal::SEQUENCE_CONFLICT)) if self.ids.contains_key(&entry.id) => {
                return Err(Reject::Waiting);
            }
            Err(Reject::Refused(Refusal::SEQUENCE_CONFLICT)) => return self.substitute(entry, ledger),
            verdict => verdict?,
        }
        let reject = match () {
            () if self.is_full_for(&entry) => Some(Reject::Full),
            () if self.bounded.has_enough_of(&entry) => Some(Reject::Refused(Refusal::ENVELOPES_WAIT)),
            () => self.make_way(&entry, ledger).err().map(Reject::Refused),
        };
        if let Some(reject) = reject {
            self.reserved.release(&entry.transaction, self.fee);
            return Err(reject);
        }
        self.insert(entry);
        Ok(())
    }

    /// The quotas that bound a transaction, which then waits in a queue of theirs.
    fn quotas(&self, entry: &PoolEntry) -> Option<QuotaSet> {
        if self.defect.is(Defect::QuotaHoldsAll) { None } else { QuotaSet::of(entry) }
    }

    /// Queues a transaction that has reserved what it may spend.
    fn insert(&mut self, entry: PoolEntry) {
        if entry.is_duty() {
            self.note(&entry, Spot::Apart);
            self.duties_pending += 1;
            return self.duties.push_back(entry);
        }
        if let Some(venue) = settling(&entry.transaction) {
            self.note(&entry, Spot::Apart);
            return self.settles.insert(venue, entry);
        }
        if let Some(of) = self.quotas(&entry) {
            let place = self.bounded.insert(of, entry.clone());
            return self.note(&entry, Spot::Bounded(place));
        }
        let place = self.front + self.queue.len() as i64;
        self.note(&entry, Spot::Queue(place));
        self.queue.push_back(entry);
    }

    fn note(&mut self, entry: &PoolEntry, spot: Spot) {
        let body = &entry.transaction.body;
        self.sequences.entry(body.account).or_default().push((body.sequence, spot));
        self.ends_first = self.ends_first.min(body.until);
        self.ids.insert(entry.id, Some(self.fee));
    }

    fn remove(&mut self, entry: &PoolEntry) {
        if let Some(fee) = self.ids.remove(&entry.id) {
            self.release(&entry.id, &entry.transaction, fee);
        }
    }

    /// Drops the queued transactions that end with the block of a height, which has been applied.
    pub fn end(&mut self, height: Height) {
        self.substituted.clear();
        // One of each account since the last block, where nobody takes them.
        self.displaced.clear();
        if self.ends_first > height {
            return;
        }
        let ends = |entry: &PoolEntry| entry.transaction.body.until <= height;
        let (ended, others): (Vec<_>, Vec<_>) = self.queue.drain(..).partition(ends);
        let (ended_duties, duties): (Vec<_>, Vec<_>) = self.duties.drain(..).partition(ends);
        (self.queue, self.duties) = (others.into(), duties.into());
        let ended_settles: Vec<PoolEntry> = self.settles.waiting().filter(|entry| ends(entry)).cloned().collect();
        let ended_bounded = self.bounded.end(height);
        let apart = ended_duties.iter().chain(&ended_settles).chain(&ended_bounded);
        ended.iter().chain(apart).for_each(|entry| self.remove(entry));
        (0..self.queue.len()).for_each(|at| self.place_again(at));
        let pending = self.queue.iter().chain(&self.duties).chain(self.bounded.iter());
        let pending = pending.chain(self.settles.waiting());
        self.ends_first = pending.map(|entry| entry.transaction.body.until).min().unwrap_or(Height::MAX);
    }

    /// Takes duties, settles, what quotas bound, and then the oldest of the other pending transactions, at most
    /// `count`. Their reservations stay until they are settled.
    pub fn take(&mut self, count: usize) -> Vec<PoolEntry> {
        let mut taken = self.take_duties(count, |_| true);
        taken.extend(self.take_settles(count - taken.len(), |_| true));
        taken.extend(self.take_bounded(count - taken.len(), 0, |_| true));
        taken.extend(self.take_others(count - taken.len()));
        taken
    }

    /// Takes the oldest duties while they `fit`, at most `count`.
    pub fn take_duties(&mut self, count: usize, mut fits: impl FnMut(&PoolEntry) -> bool) -> Vec<PoolEntry> {
        let fitting = self.duties.iter().take(count).take_while(|entry| fits(entry)).count();
        let ids = &self.ids;
        self.duties.drain(..fitting).filter(|entry| ids.contains_key(&entry.id)).collect()
    }

    /// Takes settles of venues while they `fit`, at most `count`: those first whose venue has waited longest.
    pub fn take_settles(&mut self, count: usize, fits: impl FnMut(&PoolEntry) -> bool) -> Vec<PoolEntry> {
        self.settles.take(count, fits)
    }

    /// Takes transactions that quotas bound, those of each quota while they `fit`, at most `count`.
    pub fn take_bounded(&mut self, count: usize, now_ms: u64, fits: impl FnMut(&PoolEntry) -> bool) -> Vec<PoolEntry> {
        let taken = self.bounded.take(count, now_ms, fits);
        taken.into_iter().filter(|entry| self.ids.contains_key(&entry.id)).collect()
    }

    fn take_others(&mut self, count: usize) -> Vec<PoolEntry> {
        let (ids, count) = (&self.ids, count.min(self.queue.len()));
        self.front += count as i64;
        self.queue.drain(..count).filter(|entry| ids.contains_key(&entry.id)).collect()
    }

    /// Takes the oldest pending transactions that no quota bounds while they `fit`, at most `count`.
    pub fn take_while(&mut self, count: usize, mut fits: impl FnMut(&PoolEntry) -> bool) -> Vec<PoolEntry> {
        let fitting = self.queue.iter().take(count).take_while(|entry| fits(entry)).count();
        self.take_others(fitting)
    }

    /// Removes the transactions of a block that has been applied to the ledger, whoever proposed them.
    pub fn settle<'a>(&mut self, block: impl Iterator<Item = (TransactionId, &'a Transaction)>) {
        for (id, transaction) in block {
            settling(transaction).into_iter().for_each(|venue| self.settles.note_settled(venue));
            if let Some(fee) = self.ids.remove(&id) {
                self.leave_queue(transaction);
                self.release(&id, transaction, fee);
            }
        }
        // Others may have proposed some of the queued transactions; `take` skips those.
        while self.queue.front().is_some_and(|entry| !self.ids.contains_key(&entry.id)) {
            self.queue.pop_front();
            self.front += 1;
        }
        let ids = &self.ids;
        self.duties.retain(|entry| ids.contains_key(&entry.id));
    }

    /// Notes the place of a queued transaction that has moved.
    fn place_again(&mut self, at: usize) {
        let Body { account, sequence, .. } = self.queue[at].transaction.body;
        self.move_to(&account, sequence, Spot::Queue(self.front + at as i64));
    }

    fn move_to(&mut self, account: &Address, sequence: Sequence, to: Spot) {
        let pending = self.sequences.get_mut(account).into_iter().flatten();
        pending.filter(|(number, _)| *number == sequence).for_each(|(_, spot)| *spot = to);
    }

    fn release(&mut self, id: &TransactionId, transaction: &Transaction, fee: Option<Amount>) {
        self.duties_pending -= usize::from(is_duty(transaction));
        settling(transaction).into_iter().for_each(|venue| self.settles.release(venue, id));
        fee.into_iter().for_each(|fee| self.reserved.release(transaction, fee));
        let body = &transaction.body;
        if let Some(waiting) = self.sequences.get_mut(&body.account) {
            waiting.retain(|(sequence, _)| *sequence != body.sequence);
            if waiting.is_empty() {
                self.sequences.remove(&body.account);
            }
        }
    }
}

#[cfg(test)]
mod tests;
