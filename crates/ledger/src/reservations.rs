//! What waiting transactions have reserved, so that a block made of them overdraws nothing (SPEEDEX §K.6).
//!
//! Upon a transaction, the sums and the once-keys of its footprint (its sequence number, the units that it may spend,
//! the offer that it cancels and so on) are reserved, each by one atomic operation on a word of its own; if one is
//! refused, those before it are given back. Keys of which one claim is kept are not reserved: several may wait. Many
//! threads reserve at once and none waits for another. Credits of waiting transactions count for nothing until they are
//! in the ledger, so the process is conservative.
//!
//! Words are found by the hash of what they stand for in an open table whose slots are claimed by compare-and-swap and
//! never given up while threads are at it; [`Reservations::make_room`], which nobody else may look at meanwhile, drops
//! those that stand for nothing any more.
//!
//! **Properties.** However threads interleave, the sums reserved of an account's asset never exceed its balance, no
//! sequence number of an account is reserved twice, and what is released is as if it had never been. Two things with
//! one hash (the hash is keyed, and has 63 bits) would share a word, which refuses too much and never too little.
//!
//! **Deviations from the paper.** There every account holds its counters and its bitmap; here a million accounts that
//! wait for nothing cost nothing, and accounts stand still while transactions are taken in.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hashbrown::DefaultHashBuilder;
use primitives::{Address, Amount, Transaction};
use smallvec::SmallVec;

use crate::filter::visit;
use crate::footprint::{Footprint, Once, Scope, Sum, Visitor};
use crate::{Account, Ledger, Refusal};

/// Words that one transaction needs at most: a sequence number, two sums and one more, or one sum and two once-keys.
const WORDS: usize = 4;
/// Sequence numbers that two words tell apart: those that are free at one time lie within so many.
const SEQUENCES: u64 = 128;

/// What a word stands for.
#[derive(Clone, Copy, Hash)]
enum Thing {
    /// Sequence numbers of an account, one bit each: the lower or the upper 64 of every 128.
    Sequences(Address, bool),
    /// Units of a sum: the account's own, or nobody's if all accounts share it.
    Sum(Address, Sum),
    /// What may happen once: of the account, or of nobody if all accounts share the key.
    Once(Address, Once),
}

/// A part of what one transaction reserves.
#[derive(Clone, Copy)]
enum Part {
    /// A bit that must be clear, and the refusal if it is not.
    Bit(Thing, u64, Refusal),
    /// Units that must fit under a limit, and the refusal if they do not.
    Units(Thing, Amount, Amount, Refusal),
}

#[derive(Default)]
struct Slot {
    /// Hash of the thing; 0 while nobody has claimed the slot.
    tag: AtomicU64,
    word: AtomicU64,
}

/// What waiting transactions have reserved; see the module text.
#[derive(Default)]
pub struct Reservations {
    slots: Vec<Slot>,
    claimed: AtomicUsize,
    hasher: DefaultHashBuilder,
}

/// Why nothing was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// The transaction could not stand beside those that have reserved.
    Refused(Refusal),
    /// No slot is left: make room.
    NoRoom,
}

impl Reservations {
    /// Makes room for `transactions` more, and forgets what stands for nothing any more.
    pub fn make_room(&mut self, transactions: usize) {
        let wanted = (*self.claimed.get_mut() + transactions * WORDS) * 4 / 3 + 1;
        if wanted <= self.slots.len() {
            return;
        }
        let live = |slot: &Slot| slot.word.load(Ordering::Relaxed) != 0;
        let kept: Vec<Slot> = std::mem::take(&mut self.slots).into_iter().filter(live).collect();
        let size = ((kept.len() + transactions * WORDS) * 2).next_power_of_two().max(64);
        self.slots.resize_with(size, Slot::default);
        *self.claimed.get_mut() = 0;
        for slot in kept {
            let place = self.claim(slot.tag.into_inner()).expect("there is room for twice as many");
            place.store(slot.word.into_inner(), Ordering::Relaxed);
        }
    }

    /// Reserves all that `transaction` may use, if it is admissible alone in `ledger` ([`Ledger::admit`]), or nothing.
    /// What changes in the ledger afterwards must be released here at the same time, but for what makes accounts
    /// richer.
    ///
    /// # Errors
    /// [`ReserveError`] says why nothing was: the first obstacle, in the order of sequence number, fee, once-keys and
    /// what the operation spends.
    pub fn admit(&self, transaction: &Transaction, ledger: &Ledger) -> Result<(), ReserveError> {
        let account = ledger.admit_but_for_balance(transaction).map_err(ReserveError::Refused)?;
        self.reserve(&transaction.body, ledger.fee(), ledger, account)
    }

    /// Reserves all of a footprint or nothing.
    pub(crate) fn reserve(
        &self,
        of: &impl Footprint,
        fee: Amount,
        ledger: &Ledger,
        account: &Account,
    ) -> Result<(), ReserveError> {
        let parts = parts(of, account.address(), fee, Some((ledger, account)));
        for (done, part) in parts.iter().enumerate() {
            if let Err(error) = self.take(part) {
                parts[..done].iter().for_each(|part| self.give_back(part));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives back what was reserved for `transaction`; `fee` as it was then.
    ///
    /// # Panics
    /// If nothing was.
    pub fn release(&self, transaction: &Transaction, fee: Amount) {
        parts(&transaction.body, transaction.body.account, fee, None).iter().for_each(|part| self.give_back(part));
    }

    /// Whether nothing is reserved.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.word.load(Ordering::Relaxed) == 0)
    }

    fn take(&self, part: &Part) -> Result<(), ReserveError> {
        match *part {
            Part::Bit(thing, bit, refusal) => match self.word(thing)?.fetch_or(bit, Ordering::AcqRel) & bit {
                0 => Ok(()),
                _ => Err(ReserveError::Refused(refusal)),
            },
            Part::Units(thing, units, limit, refusal) => {
                let add = |sum: u64| sum.checked_add(units).filter(|sum| *sum <= limit);
                let taken = self.word(thing)?.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
                taken.map(|_| ()).map_err(|_| ReserveError::Refused(refusal))
            }
        }
    }

    fn give_back(&self, part: &Part) {
        let word = |thing| self.word(thing).expect("what was reserved has its slot");
        match *part {
            Part::Bit(thing, bit, _) => {
                let before = word(thing).fetch_and(!bit, Ordering::AcqRel);
                assert!(before & bit != 0, "nothing is released that was not reserved");
            }
            Part::Units(thing, units, ..) => {
                let before = word(thing).fetch_sub(units, Ordering::AcqRel);
                assert!(before >= units, "no more is released than was reserved");
            }
        }
    }

    fn word(&self, thing: Thing) -> Result<&AtomicU64, ReserveError> {
        self.claim(self.hasher.hash_one(thing) | 1).ok_or(ReserveError::NoRoom)
    }

    /// The word of a tag, in a slot that is claimed if there is none. `None` if the table is three quarters full.
    fn claim(&self, tag: u64) -> Option<&AtomicU64> {
        let mask = self.slots.len().checked_sub(1)?;
        for step in 0..self.slots.len() {
            let slot = &self.slots[((tag >> 1) as usize + step) & mask];
            let mut found = slot.tag.load(Ordering::Acquire);
            if found == 0 {
                if self.claimed.load(Ordering::Relaxed) * 4 >= self.slots.len() * 3 {
                    return None;
                }
                found = match slot.tag.compare_exchange(0, tag, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        self.claimed.fetch_add(1, Ordering::Relaxed);
                        tag
                    }
                    Err(other) => other,
                };
            }
            if found == tag {
                return Some(&slot.word);
            }
        }
        None
    }
}

/// What a transaction reserves; limits only matter when it is reserved, and are those of the ledger and its account.
fn parts(
    of: &impl Footprint,
    sender: Address,
    fee: Amount,
    against: Option<(&Ledger, &Account)>,
) -> SmallVec<[Part; WORDS]> {
    let mut reader = Reader { sender, against, parts: SmallVec::new() };
    visit(of, fee, &mut reader);
    reader.parts
}

/// Reads what a transaction reserves off its footprint.
struct Reader<'l> {
    sender: Address,
    against: Option<(&'l Ledger, &'l Account)>,
    parts: SmallVec<[Part; WORDS]>,
}

impl<'a> Visitor<'a> for Reader<'_> {
    fn sum(&mut self, sum: Sum, units: Amount) {
        if units == 0 {
            return;
        }
        let limit = self.against.map_or(0, |(ledger, account)| ledger.room(sum, account));
        let owner = if sum.is_own() { self.sender } else { Address::default() };
        self.parts.push(Part::Units(Thing::Sum(owner, sum), units, limit, sum.refusal()));
    }

    fn once(&mut self, once: Once) {
        let part = match (once, once.scope()) {
            (Once::Sequence(sequence), Scope::Account(refusal)) => {
                let bit = sequence % SEQUENCES;
                Part::Bit(Thing::Sequences(self.sender, bit >= 64), 1 << (bit % 64), refusal)
            }
            (_, Scope::Account(refusal)) => Part::Bit(Thing::Once(self.sender, once), 1, refusal),
            (_, Scope::Sides(refusal)) => Part::Bit(Thing::Once(Address::default(), once), 1, refusal),
            (_, Scope::KeepOne) => return,
        };
        self.parts.push(part);
    }
}
