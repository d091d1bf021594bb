//! What waiting transactions have reserved, so that a block made of them overdraws nothing (SPEEDEX §K.6).
//!
//! Upon a transaction, its sequence number, the units that it may spend, the offer that it cancels, the account that it
//! creates, the key or the stake that it changes, the validator key that it claims and the units that it issues are
//! reserved, each by one atomic operation on a word
//! of its own; if one is refused, those before it are given back. Many threads reserve at once and none waits for
//! another. Credits of waiting transactions count for nothing until they are in the ledger, so the process is
//! conservative.
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
use primitives::{Address, Amount, AssetId, MAX_ISSUED, Operation, PublicKey, Transaction};
use smallvec::SmallVec;

use crate::book::{Pair, Place};
use crate::{Account, Ledger, Refusal};

/// Words that one transaction needs at most: a sequence number, two sums and one more, or one sum and two more.
const WORDS: usize = 4;
/// Sequence numbers that two words tell apart: those that are free at one time lie within so many.
const SEQUENCES: u64 = 128;

/// What a word stands for.
#[derive(Clone, Copy, Hash)]
enum Thing {
    /// Sequence numbers of an account, one bit each: the lower or the upper 64 of every 128.
    Sequences(Address, bool),
    /// Units of an asset that an account may spend.
    Sum(Address, AssetId),
    /// An offer that is cancelled.
    Cancel(Pair, Place),
    /// A change of an account's own key.
    Key(Address),
    /// An account that is created.
    Created(Address),
    /// Units of an asset that are issued.
    Issued(AssetId),
    /// A change of an account's stake.
    Stake(Address),
    /// A key that an account wants to validate by.
    ValidatorKey(PublicKey),
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
    /// What changes in the ledger afterwards must be released here at the same time, but for what makes accounts richer.
    ///
    /// # Errors
    /// [`ReserveError`] says why nothing was.
    pub fn admit(&self, transaction: &Transaction, ledger: &Ledger) -> Result<(), ReserveError> {
        let account = ledger.admit_but_for_balance(transaction).map_err(ReserveError::Refused)?;
        let parts = parts(transaction, ledger.fee(), Some((ledger, account)));
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
        parts(transaction, fee, None).iter().for_each(|part| self.give_back(part));
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
fn parts(transaction: &Transaction, fee: Amount, against: Option<(&Ledger, &Account)>) -> SmallVec<[Part; WORDS]> {
    let body = &transaction.body;
    let own = body.account;
    let bit = body.sequence % SEQUENCES;
    let mut parts = SmallVec::new();
    parts.push(Part::Bit(Thing::Sequences(own, bit >= 64), 1 << (bit % 64), Refusal::SequenceConflict));
    match &body.operation {
        &Operation::CancelOffer { sell, buy, limit, offer } => {
            let place = Place { limit, account: own, id: offer };
            parts.push(Part::Bit(Thing::Cancel(Pair { sell, buy }, place), 1, Refusal::CancelConflict));
        }
        &Operation::CreateAccount { account, .. } if account == own => {
            parts.push(Part::Bit(Thing::Key(own), 1, Refusal::KeyConflict));
        }
        &Operation::CreateAccount { account, .. } => {
            parts.push(Part::Bit(Thing::Created(account), 1, Refusal::CreateConflict));
        }
        &Operation::Issue { asset, amount, .. } => {
            let issued = against.map_or(0, |(ledger, _)| ledger.assets()[asset.0 as usize].issued);
            parts.push(Part::Units(Thing::Issued(asset), amount, MAX_ISSUED - issued, Refusal::IssueTooLarge));
        }
        Operation::Stake(stake) => {
            parts.push(Part::Bit(Thing::Stake(own), 1, Refusal::StakeConflict));
            parts.push(Part::Bit(Thing::ValidatorKey(stake.key), 1, Refusal::ValidatorKeyConflict));
        }
        Operation::Unstake { .. } => parts.push(Part::Bit(Thing::Stake(own), 1, Refusal::StakeConflict)),
        Operation::CreateOffer { .. } | Operation::Pay { .. } | Operation::Burn { .. } | Operation::Accuse(_) => {}
    }
    let mut spend = |asset, units| {
        let has = against.map_or(0, |(_, account)| account.balance(asset));
        parts.push(Part::Units(Thing::Sum(own, asset), units, has, Refusal::Overdraft));
    };
    match body.operation.debit() {
        Some((AssetId(0), amount)) => spend(AssetId(0), amount.saturating_add(fee)),
        Some((asset, amount)) => {
            spend(asset, amount);
            spend(AssetId(0), fee);
        }
        None => spend(AssetId(0), fee),
    }
    parts.retain(|part| !matches!(part, Part::Units(_, 0, ..)));
    parts
}
