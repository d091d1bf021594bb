//! What pending transactions have reserved, so that a block built from them overdraws no account (SPEEDEX §K.6).
//!
//! When a transaction is admitted, the sums and the once-keys of its footprint (its sequence number, the units that
//! it may spend, the offer that it cancels and so on) are reserved, each by one atomic operation on its own word. If
//! one reservation is refused, the earlier ones are released. Keys of which only one claim is kept are not reserved:
//! several such transactions may be pending. Many threads reserve at once without waiting for each other. Credits of
//! pending transactions do not count until they are in the ledger, so the process is conservative.
//!
//! *Session keys* reserve units of the balance in words of their own, as far as those of the account's own key leave
//! room. The owner's do not count them: where both exceed the balance, the filter removes those of the keys
//! ([`Precedence`](crate::Precedence)), and [`Reservations::is_overdrawn`] tells the pool to do the same.
//!
//! Words are found by the hash of the thing they represent, in an open-addressing table. Slots are claimed by
//! compare-and-swap and never freed while other threads use the table. [`Reservations::make_room`] needs exclusive
//! access and drops the slots that hold no reservation.
//!
//! **Properties.** However threads interleave, the sums reserved of an account's asset never exceed its balance, no
//! sequence number of an account is reserved twice, and a release leaves no trace of its reservation. Two things with
//! the same hash (the hash is keyed, and has 63 bits) would share a word, which can only refuse too much, never too
//! little.
//!
//! **Deviations from the paper.** There every account holds its own counters and bitmap. Here a million accounts
//! without pending transactions cost nothing, and accounts do not change while transactions are admitted.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hashbrown::DefaultHashBuilder;
use primitives::{Address, Amount, AssetId, SessionSlot, Transaction, slot_of};
use proofs::Refusal;
use smallvec::SmallVec;

use super::checks::admit_but_for_balance;
use super::claims::{room, visit};
use super::footprint::{Footprint, Visitor};
use super::limits::{Once, Sum};
use crate::places::accounts::Account;
use crate::places::scope::Scope;
use crate::state::Ledger;

/// The most words that one transaction needs, an offer of a session key: a sequence number, fee and units of the
/// balance and of the key's caps, and the offer.
const WORDS: usize = 6;
/// Number of sequence numbers that two words tell apart: all numbers that are free at one time lie within this range.
const SEQUENCES: u64 = 128;

/// What a word represents.
#[derive(Clone, Copy, Hash)]
enum Thing {
    /// Sequence numbers of an account's slot, one bit each: the lower or the upper 64 of every 128.
    Sequences(Address, SessionSlot, bool),
    /// Units of a sum: the account's own, or no account's if all accounts share it.
    Sum(Address, Sum),
    /// Units of an account's balance that its session keys would spend.
    SpentByKeys(Address, AssetId),
    /// A once-key: the account's own, or no account's if all accounts share it.
    Once(Address, Once),
}

/// One part of what a transaction reserves.
#[derive(Clone, Copy)]
enum Part {
    /// A bit that must be clear, and the refusal if it is not.
    Bit(Thing, u64, Refusal),
    /// Units that must fit under a limit, and the refusal if they do not.
    Units(Thing, Amount, Amount, Refusal),
    /// Units of a session key, which must fit under a limit beside those of the owner.
    KeyUnits(Address, AssetId, Amount, Amount),
}

#[derive(Default)]
struct Slot {
    /// Hash of the thing; 0 while the slot is unclaimed.
    tag: AtomicU64,
    word: AtomicU64,
}

/// What pending transactions have reserved; see the module text.
#[derive(Default)]
pub struct Reservations {
    slots: Vec<Slot>,
    claimed: AtomicUsize,
    hasher: DefaultHashBuilder,
}

/// Why nothing was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// The transaction conflicts with the state or with those that have reserved.
    Refused(Refusal),
    /// No slot is left: call [`Reservations::make_room`].
    NoRoom,
}

impl Reservations {
    /// Makes room for `transactions` more, and drops the slots that hold no reservation.
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

    /// Reserves everything that `transaction` may use, or nothing. The transaction must be admissible alone in
    /// `ledger` ([`Ledger::admit`]). Later changes of the ledger must be released here at the same time, except those
    /// that only make accounts richer.
    ///
    /// # Errors
    /// [`ReserveError`] gives the first obstacle, in the order of sequence number, fee, once-keys and what the
    /// operation spends.
    pub fn admit(&self, transaction: &Transaction, ledger: &Ledger) -> Result<(), ReserveError> {
        let account = admit_but_for_balance(ledger, transaction).map_err(ReserveError::Refused)?;
        self.reserve(transaction, ledger.fee(), ledger, account)
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
            if let Err(error) = self.reserve_part(part) {
                parts[..done].iter().for_each(|part| self.give_back(part));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Releases what was reserved for `transaction`; `fee` must be the fee at the time of the reservation.
    ///
    /// # Panics
    /// If nothing was reserved for it.
    pub fn release(&self, transaction: &Transaction, fee: Amount) {
        parts(transaction, transaction.body.account, fee, None).iter().for_each(|part| self.give_back(part));
    }

    /// Whether nothing is reserved.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.word.load(Ordering::Relaxed) == 0)
    }

    fn reserve_part(&self, part: &Part) -> Result<(), ReserveError> {
        match *part {
            Part::Bit(thing, bit, refusal) => match self.word(thing)?.fetch_or(bit, Ordering::AcqRel) & bit {
                0 => Ok(()),
                _ => Err(ReserveError::Refused(refusal)),
            },
            Part::Units(thing, units, limit, refusal) => self.reserve_units(thing, units, limit, refusal),
            Part::KeyUnits(account, asset, units, limit) => {
                let beside = self.reserved(Thing::Sum(account, Sum::Spent(asset)));
                let left = limit.saturating_sub(beside);
                self.reserve_units(Thing::SpentByKeys(account, asset), units, left, Refusal::OVERDRAFT)
            }
        }
    }

    fn reserve_units(&self, thing: Thing, units: Amount, limit: Amount, refusal: Refusal) -> Result<(), ReserveError> {
        let add = |sum: u64| sum.checked_add(units).filter(|sum| *sum <= limit);
        let taken = self.word(thing)?.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
        taken.map(|_| ()).map_err(|_| ReserveError::Refused(refusal))
    }

    /// Whether the sender's balance does not suffice for what its own key and its session keys have reserved together,
    /// of an asset that this transaction spends.
    pub fn is_overdrawn(&self, transaction: &Transaction, ledger: &Ledger) -> bool {
        let body = &transaction.body;
        let Some(account) = ledger.accounts().get(&body.account) else { return false };
        let exceeds = |asset: AssetId| {
            let (own, keys) = (Thing::Sum(body.account, Sum::Spent(asset)), Thing::SpentByKeys(body.account, asset));
            let all = u128::from(self.reserved(own)) + u128::from(self.reserved(keys));
            all > u128::from(account.balance(asset))
        };
        let spent = |part: &Part| match part {
            Part::Units(Thing::Sum(_, Sum::Spent(asset)), ..) | Part::KeyUnits(_, asset, ..) => Some(*asset),
            _ => None,
        };
        parts(transaction, body.account, ledger.fee(), None).iter().filter_map(spent).any(exceeds)
    }

    /// The units that are reserved of a sum.
    fn reserved(&self, thing: Thing) -> Amount {
        let tag = self.hasher.hash_one(thing) | 1;
        let found = self.probe(tag).find_map(|slot| match slot.tag.load(Ordering::Acquire) {
            0 => Some(0),
            found => (found == tag).then(|| slot.word.load(Ordering::Acquire)),
        });
        found.unwrap_or(0)
    }

    /// The slots in which a tag may be, in order.
    fn probe(&self, tag: u64) -> impl Iterator<Item = &Slot> {
        let mask = self.slots.len().saturating_sub(1);
        (0..self.slots.len()).map(move |step| &self.slots[((tag >> 1) as usize + step) & mask])
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
            Part::KeyUnits(account, asset, units, _) => {
                let before = word(Thing::SpentByKeys(account, asset)).fetch_sub(units, Ordering::AcqRel);
                assert!(before >= units, "no more is released than was reserved");
            }
        }
    }

    fn word(&self, thing: Thing) -> Result<&AtomicU64, ReserveError> {
        self.claim(self.hasher.hash_one(thing) | 1).ok_or(ReserveError::NoRoom)
    }

    /// The word of a tag; claims a slot if the tag has none. `None` if the table is three quarters full.
    fn claim(&self, tag: u64) -> Option<&AtomicU64> {
        for slot in self.probe(tag) {
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

/// What a transaction reserves. Limits matter only when it is reserved; they are those of the ledger and the sender's
/// account.
fn parts(
    of: &impl Footprint,
    sender: Address,
    fee: Amount,
    against: Option<(&Ledger, &Account)>,
) -> SmallVec<[Part; WORDS]> {
    let mut reader = Reader { sender, against, slot: 0, parts: SmallVec::new() };
    visit(of, fee, &mut reader);
    reader.parts
}

/// Reads from a footprint what the transaction reserves.
struct Reader<'l> {
    sender: Address,
    against: Option<(&'l Ledger, &'l Account)>,
    /// The slot of the session key that signs; 0 for the account's own key. The sequence number, which tells it, is the
    /// first part of every footprint.
    slot: SessionSlot,
    parts: SmallVec<[Part; WORDS]>,
}

impl<'a> Visitor<'a> for Reader<'_> {
    fn sum(&mut self, sum: Sum, units: Amount) {
        if units == 0 {
            return;
        }
        let limit = self.against.map_or(0, |(ledger, account)| room(ledger, sum, account));
        let owner = if sum.is_own() { self.sender } else { Address::default() };
        self.parts.push(match sum {
            Sum::Spent(asset) if self.slot > 0 => Part::KeyUnits(owner, asset, units, limit),
            _ => Part::Units(Thing::Sum(owner, sum), units, limit, sum.refusal()),
        });
    }

    fn once(&mut self, once: Once) {
        let part = match (once, once.scope()) {
            (Once::Sequence(sequence), Scope::Account(refusal)) => {
                let bit = sequence % SEQUENCES;
                self.slot = slot_of(sequence);
                Part::Bit(Thing::Sequences(self.sender, self.slot, bit >= 64), 1 << (bit % 64), refusal)
            }
            (_, Scope::Account(refusal) | Scope::Sender(refusal)) => {
                Part::Bit(Thing::Once(self.sender, once), 1, refusal)
            }
            (_, Scope::Sides(refusal)) => Part::Bit(Thing::Once(Address::default(), once), 1, refusal),
            (_, Scope::KeepOne | Scope::Latest) => return,
        };
        self.parts.push(part);
    }
}
