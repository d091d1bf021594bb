//! What leaves the pool's queues because of another transaction: a substitute of the same number, what stands before it
//! in its account, or what a block made void.

use ledger::{Ledger, Precedence, Refusal};
use primitives::{Address, Body, Operation, Sequence, Transaction, TransactionId, slot_of};

use super::bounded::{BoundedPlace, QuotaSet};
use super::{Mempool, PoolEntry, Reject};
use crate::Defect;

/// Where a pending transaction waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// In the queue of those that no quota bounds, at this place.
    Queue(i64),
    /// In the queue of a quota.
    Bounded(BoundedPlace),
    /// Where no substitute finds it: a duty, a settle.
    Apart,
}

impl Spot {
    /// Rises with arrival.
    fn order(self) -> u64 {
        match self {
            Spot::Queue(place) => place.saturating_sub(i64::MIN) as u64,
            Spot::Bounded((_, turn)) => turn.1,
            Spot::Apart => 0,
        }
    }
}

impl Mempool {
    /// Removes queued transactions of session keys, the weakest and latest first, until the account's balance suffices
    /// for one that stands before them. Those that were taken stay: the filter removes them.
    pub(super) fn make_way(&mut self, entry: &PoolEntry, ledger: &Ledger) -> Result<(), Refusal> {
        let Body { account, sequence, .. } = entry.transaction.body;
        let has_keys = |pending: &Vec<(Sequence, Spot)>| pending.iter().any(|(number, _)| slot_of(*number) > 0);
        if slot_of(sequence) == 0 && !self.sequences.get(&account).is_some_and(has_keys) {
            return Ok(());
        }
        let keeps_out = self.defect.is(Defect::KeysKeepOwnersOut);
        let standing = if keeps_out { Precedence::Key } else { Precedence::of(&entry.transaction.body) };
        while self.reserved.is_overdrawn(&entry.transaction, ledger) {
            let weaker = self.pending_of(&account).map(|(spot, one)| (Precedence::of(&one.transaction.body), spot));
            let weakest = weaker.filter(|(of, _)| *of > standing).max_by_key(|(of, spot)| (*of, spot.order()));
            match weakest {
                Some((_, spot)) => self.drop_for(spot, entry.id),
                None if standing == Precedence::Owner => break,
                None => return Err(Refusal::OVERDRAFT),
            }
        }
        Ok(())
    }

    /// The queued transactions of an account that a substitute can find, and where they wait.
    pub(super) fn pending_of(&self, account: &Address) -> impl Iterator<Item = (Spot, &PoolEntry)> {
        let spots = self.sequences.get(account).into_iter().flatten();
        let waits = |(number, spot): &(Sequence, Spot)| self.at(*spot, account, *number).map(|entry| (*spot, entry));
        spots.filter_map(waits)
    }

    /// The transaction of an account with this number, if it waits at this spot.
    pub(super) fn at(&self, spot: Spot, account: &Address, sequence: Sequence) -> Option<&PoolEntry> {
        let entry = match spot {
            Spot::Queue(place) => self.queue.get(usize::try_from(place - self.front).ok()?)?,
            Spot::Bounded(place) => self.bounded.get(&place)?,
            Spot::Apart => return None,
        };
        let body = &entry.transaction.body;
        let is_it = (body.account, body.sequence) == (*account, sequence) && self.ids.contains_key(&entry.id);
        is_it.then_some(entry)
    }

    /// Removes what waits at a spot, because of another transaction.
    pub(super) fn drop_for(&mut self, spot: Spot, by: TransactionId) {
        if let Some(id) = self.drop_at(spot) {
            self.displaced.push((id, by));
        }
    }

    /// Removes what waits at a spot; its id.
    fn drop_at(&mut self, spot: Spot) -> Option<TransactionId> {
        let entry = match spot {
            // What is not pending any more is passed over when its turn comes.
            Spot::Queue(place) => usize::try_from(place - self.front).ok().and_then(|at| self.queue.get(at)).cloned(),
            Spot::Bounded(place) => self.bounded.remove(&place),
            Spot::Apart => None,
        }?;
        self.remove(&entry);
        Some(entry.id)
    }

    /// Judges again what waits, if other parameters act than when this was last asked: what cannot count any more
    /// leaves, and the rest reserves what it costs now. Those that came first keep what they need.
    pub fn judge_again(&mut self, ledger: &Ledger) {
        let now = ledger.parameters();
        if self.parameters.replace(now).is_none_or(|before| before == now) {
            return;
        }
        self.fee = ledger.dearest_fee();
        self.reserved.make_room(self.ids.len());
        let mut accounts: Vec<Address> = self.sequences.keys().copied().collect();
        accounts.sort_unstable();
        accounts.iter().for_each(|account| self.judge_account_again(account, ledger));
    }

    fn judge_account_again(&mut self, account: &Address, ledger: &Ledger) {
        let mut waiting: Vec<(Spot, PoolEntry)> =
            self.pending_of(account).map(|(spot, entry)| (spot, entry.clone())).collect();
        waiting.sort_by_key(|(spot, _)| spot.order());
        for (_, PoolEntry { id, transaction, .. }) in &waiting {
            let fee = self.ids.insert(*id, None).flatten();
            fee.into_iter().for_each(|fee| self.reserved.release(transaction, fee));
        }
        for (spot, PoolEntry { id, transaction, .. }) in waiting {
            match self.reserved.admit(&transaction, ledger) {
                Ok(()) => drop(self.ids.insert(id, Some(self.fee))),
                Err(_) => drop(self.drop_at(spot)),
            }
        }
    }

    /// Puts a transaction into the place of a queued one with its number that ends earlier. If it is refused, the other
    /// one stays.
    pub(super) fn substitute(&mut self, entry: PoolEntry, ledger: &Ledger) -> Result<(), Reject> {
        let conflict = Err(Reject::Refused(Refusal::SEQUENCE_CONFLICT));
        let body = &entry.transaction.body;
        let mut pending = self.pending_of(&body.account);
        let Some((spot, before)) = pending.find(|(_, one)| one.transaction.body.sequence == body.sequence) else {
            return conflict;
        };
        let ends_later = body.until > before.transaction.body.until;
        let is_alike = QuotaSet::of(&entry) == QuotaSet::of(before);
        if !ends_later || !is_alike || entry.is_duty() || self.substituted.contains(&body.account) {
            return conflict;
        }
        let before = before.clone();
        drop(pending);
        self.remove(&before);
        self.fee = ledger.dearest_fee();
        let admitted = self.reserved.admit(&entry.transaction, ledger);
        let stays = match admitted {
            Ok(()) => {
                self.substituted.insert(body.account);
                self.displaced.push((before.id, entry.id));
                entry
            }
            // What stood before stands again, unless the ledger has changed under it.
            Err(_) if self.reserved.admit(&before.transaction, ledger).is_ok() => before,
            Err(error) => return Err(error.into()),
        };
        self.note(&stays, spot);
        match spot {
            Spot::Queue(place) => self.queue[(place - self.front) as usize] = stays,
            Spot::Bounded(place) => {
                self.bounded.remove(&place);
                self.bounded.replace(place, stays);
            }
            Spot::Apart => unreachable!("no substitute finds it"),
        }
        admitted.map_err(Reject::from)
    }

    /// Takes the transactions that were displaced since this was last called, or since the last block, each with the
    /// one that has its place now.
    pub fn take_displaced(&mut self) -> Vec<(TransactionId, TransactionId)> {
        std::mem::take(&mut self.displaced)
    }

    /// Removes what a block has made void: pending transactions of accounts that have used a number otherwise, or
    /// changed their keys or sessions. `ledger` has applied the block, and [`Mempool::settle`] has removed what was in
    /// it.
    pub fn drop_void<'a>(&mut self, block: impl Iterator<Item = (TransactionId, &'a Transaction)>, ledger: &Ledger) {
        for (id, Body { account, sequence, operation, .. }) in block.map(|(id, one)| (id, &one.body)) {
            if let Some(rekeyed) = operation.keys_of() {
                self.drop_void_of(&rekeyed, id, ledger);
            }
            let Some(pending) = self.sequences.get(account) else { continue };
            let changes_keys = matches!(operation, Operation::Session(_))
                || matches!(operation, Operation::CreateAccount { account: of, .. } if of == account);
            if changes_keys || pending.iter().any(|(number, _)| number == sequence) {
                self.drop_void_of(account, id, ledger);
            }
        }
    }

    /// Removes what is pending of an account and void since a transaction of a block.
    fn drop_void_of(&mut self, account: &Address, by: TransactionId, ledger: &Ledger) {
        if self.defect.is(Defect::QuotaHoldsAll) {
            return;
        }
        let is_void = |(_, entry): &(Spot, &PoolEntry)| ledger.admit(&entry.transaction).is_err();
        let void: Vec<Spot> = self.pending_of(account).filter(is_void).map(|(spot, _)| spot).collect();
        void.into_iter().for_each(|spot| self.drop_for(spot, by));
    }

    /// Removes a transaction of a block from the queue of its quota, where another validator has proposed it.
    pub(super) fn leave_queue(&mut self, transaction: &Transaction) {
        let Body { account, sequence, .. } = &transaction.body;
        let spots = self.sequences.get(account).into_iter().flatten();
        if let Some((_, Spot::Bounded(place))) = spots.copied().find(|(number, _)| number == sequence) {
            self.bounded.remove(&place);
        }
    }
}
