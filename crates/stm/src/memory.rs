//! The multi-version memory: for each location the values that transactions wrote, by transaction and incarnation.
//!
//! - Upon a **read** by transaction j, the result is the entry of the highest transaction below j, or without one the
//!   state before the block. An entry marked ESTIMATE returns the transaction to wait for.
//! - Upon a **delta** on the way, the walk continues downward and the result is a sum.
//! - Each change of a location advances its *stamp*. A read whose stamp is unchanged is valid without looking at the
//!   entries, so that validating costs one load per read where nothing changed.
//! - Below the lowest uncommitted transaction only the highest entry of a location can be read. Lower ones are
//!   dropped when another entry is inserted, so that a hot location stays short.

use std::hash::Hash;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::locations::{Keyed, Locations};
use crate::number::Number;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, lock};

/// One execution of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub txn: u32,
    pub incarnation: u32,
}

/// The version that represents the state before the block.
const BEFORE_THE_BLOCK: Version = Version { txn: u32::MAX, incarnation: 0 };

/// What an incarnation leaves at a location.
#[derive(Clone)]
pub(crate) enum Content<V> {
    Value(V),
    Delta(Box<Delta<V>>),
}

/// An increment, and how the values of its location convert to numbers.
#[derive(Clone)]
pub(crate) struct Delta<V> {
    pub by: i128,
    pub to_number: fn(&V) -> i128,
    pub from_number: fn(i128) -> V,
}

impl<V: Number> Delta<V> {
    pub fn new(by: i128) -> Self {
        Delta { by, to_number: V::to_number, from_number: V::from_number }
    }
}

struct Entry<V> {
    version: Version,
    estimate: bool,
    /// The value was a sum until its transaction was committed.
    materialised: bool,
    content: Content<V>,
}

impl<V> Entry<V> {
    /// Whether what is read here is made of a number.
    fn is_sum(&self) -> bool {
        self.materialised || matches!(self.content, Content::Delta(_))
    }
}

/// A location: its entries in the order of transactions. The fields that most reads need come first.
#[repr(C, align(64))]
pub(crate) struct Location<K, V> {
    key: OnceLock<K>,
    stamp: AtomicU32,
    /// The value before the block, once it has been read.
    base: OnceLock<V>,
    entries: Mutex<SmallVec<[Entry<V>; 2]>>,
}

impl<K, V> Keyed<K> for Location<K, V> {
    fn new() -> Self {
        let (stamp, entries) = (AtomicU32::new(0), Mutex::new(SmallVec::new()));
        Location { key: OnceLock::new(), base: OnceLock::new(), stamp, entries }
    }
    fn name(&self, key: K) {
        let fresh = self.key.set(key).is_ok();
        debug_assert!(fresh, "each number is given out once");
    }
    #[inline]
    fn key(&self) -> &K {
        self.key.get().expect("a numbered location has a key")
    }
}

/// The result of a read.
pub(crate) enum ReadResult<V> {
    Value(V),
    Estimate { of: u32 },
}

/// An observation of a value, which validation repeats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub location: u32,
    stamp: u32,
    version: Version,
}

impl Read {
    /// Whether two reads of one location saw the same version.
    pub fn agrees(&self, other: &Read) -> bool {
        self.version == other.version
    }
}

/// An observation of a number, where deltas took part. Validation compares numbers, not versions: as long as the
/// number is a sum, its value is [`Number::from_number`] of it. A value that somebody wrote, or that was there before
/// the block, may have the same number and be another value.
pub(crate) struct NumberRead<V> {
    location: u32,
    stamp: u32,
    seen: Seen,
    to_number: fn(&V) -> i128,
}

impl<V> NumberRead<V> {
    /// Whether two reads of one location saw the same number.
    pub fn agrees(&self, other: &NumberRead<V>) -> bool {
        matches!((&self.seen, &other.seen), (Seen::Exactly(one), Seen::Exactly(other)) if one == other)
    }
}

enum Seen {
    /// The number itself, by a read.
    Exactly(i128),
    /// Only whether the number plus `offset` lies within bounds, by an increment.
    Within { offset: i128, bounds: RangeInclusive<i128>, answer: bool },
}

/// The multi-version memory of a block.
pub(crate) struct Memory<K, V> {
    locations: Locations<Location<K, V>>,
}

impl<K: Hash + Eq + Clone, V: Clone> Memory<K, V> {
    pub fn new(expected_locations: usize) -> Self {
        Memory { locations: Locations::new(expected_locations) }
    }

    /// The location of a key.
    #[inline]
    pub fn locate(&self, key: &K) -> u32 {
        self.locations.find_or_insert(key)
    }

    /// Reads for `txn`. For a sum, the number read is also returned, for validation.
    pub fn read(&self, at: u32, txn: u32, load: impl Fn(&K) -> V) -> (ReadResult<V>, Read, Option<NumberRead<V>>) {
        let location = self.locations.get(at);
        let read = |stamp, version| Read { location: at, stamp, version };
        if location.stamp.load(Ordering::Acquire) == 0 {
            let value = location.base.get_or_init(|| load(location.key()));
            return (ReadResult::Value(value.clone()), read(0, BEFORE_THE_BLOCK), None);
        }
        let mut base = location.base.get();
        loop {
            let entries = lock(&location.entries);
            let stamp = location.stamp.load(Ordering::Relaxed);
            let below = &entries[..position(&entries, txn)];
            match below.last() {
                Some(entry) if entry.estimate => {
                    return (ReadResult::Estimate { of: entry.version.txn }, read(stamp, entry.version), None);
                }
                Some(Entry { content: Content::Value(value), version, .. }) => {
                    return (ReadResult::Value(value.clone()), read(stamp, *version), None);
                }
                Some(Entry { content: Content::Delta(delta), version, .. }) => {
                    match sum(below, base, delta.to_number, Increments::Settled) {
                        Sum::Number(number) => {
                            let (seen, to_number) = (Seen::Exactly(number), delta.to_number);
                            let seen = NumberRead { location: at, stamp, seen, to_number };
                            return (ReadResult::Value((delta.from_number)(number)), read(stamp, *version), Some(seen));
                        }
                        Sum::Estimate(of) => return (ReadResult::Estimate { of }, read(stamp, *version), None),
                        Sum::NeedsBase => {}
                    }
                }
                None => {
                    if let Some(base) = base {
                        return (ReadResult::Value(base.clone()), read(stamp, BEFORE_THE_BLOCK), None);
                    }
                }
            }
            // The VM's `load` never runs under the lock.
            drop(entries);
            base = Some(location.base.get_or_init(|| load(location.key())));
        }
    }

    /// Whether the number below `txn` plus `offset` is within `bounds`. Increments that are estimates are included,
    /// as they are likely to be repeated. An estimated value is an error that names its transaction.
    pub fn within(
        &self,
        at: u32,
        txn: u32,
        offset: i128,
        bounds: RangeInclusive<i128>,
        to_number: fn(&V) -> i128,
        load: impl FnOnce(&K) -> V,
    ) -> Result<(bool, NumberRead<V>), u32> {
        let location = self.locations.get(at);
        let base = location.base.get_or_init(|| load(location.key()));
        let entries = lock(&location.entries);
        let stamp = location.stamp.load(Ordering::Relaxed);
        match sum(&entries[..position(&entries, txn)], Some(base), to_number, Increments::Estimated) {
            Sum::Number(number) => {
                let answer = lies_within(number, offset, &bounds);
                let seen = Seen::Within { offset, bounds, answer };
                Ok((answer, NumberRead { location: at, stamp, seen, to_number }))
            }
            Sum::Estimate(of) => Err(of),
            Sum::NeedsBase => unreachable!("the base is there"),
        }
    }

    /// Whether a read of `txn` would find the same version now.
    #[inline]
    pub fn still_valid(&self, read: &Read, txn: u32) -> bool {
        let location = self.locations.get(read.location);
        if location.stamp.load(Ordering::Acquire) == read.stamp {
            return true;
        }
        let entries = lock(&location.entries);
        match entries[..position(&entries, txn)].last() {
            Some(entry) => !entry.estimate && entry.version == read.version,
            None => read.version == BEFORE_THE_BLOCK,
        }
    }

    /// Whether a number read of `txn` would give the same answer now.
    pub fn number_still_valid(&self, read: &NumberRead<V>, txn: u32) -> bool {
        let location = self.locations.get(read.location);
        if location.stamp.load(Ordering::Acquire) == read.stamp {
            return true;
        }
        let base = location.base.get().expect("a sum was read from it");
        let entries = lock(&location.entries);
        let below = &entries[..position(&entries, txn)];
        let sum = |increments| sum(below, Some(base), read.to_number, increments);
        match &read.seen {
            Seen::Exactly(seen) => {
                below.last().is_some_and(Entry::is_sum)
                    && matches!(sum(Increments::Settled), Sum::Number(number) if number == *seen)
            }
            Seen::Within { offset, bounds, answer } => match sum(Increments::Estimated) {
                Sum::Number(number) => lies_within(number, *offset, bounds) == *answer,
                Sum::Estimate(_) | Sum::NeedsBase => false,
            },
        }
    }

    /// Writes the content of an incarnation. `committed` transactions are committed, so that older entries can be
    /// dropped. Returns true if higher transactions that were found valid may no longer be: there was no entry of
    /// this transaction, or there was another increment, which was read although it was an estimate.
    pub fn write(&self, at: u32, version: Version, content: Content<V>, committed: u32) -> bool {
        let location = self.locations.get(at);
        let mut entries = lock(&location.entries);
        forget_below(&mut entries, committed);
        let entry = Entry { version, estimate: false, materialised: false, content };
        let position = position(&entries, version.txn);
        let surprising = match entries.get_mut(position) {
            Some(own) if own.version.txn == version.txn => {
                debug_assert!(own.version.incarnation < version.incarnation, "incarnations ascend");
                debug_assert!(own.estimate, "an incarnation is aborted before the next one writes");
                let before = std::mem::replace(own, entry).content;
                match (&before, &own.content) {
                    (Content::Value(_), _) => false,
                    (Content::Delta(before), Content::Delta(after)) => before.by != after.by,
                    (Content::Delta(_), Content::Value(_)) => true,
                }
            }
            _ => {
                entries.insert(position, entry);
                true
            }
        };
        location.advance();
        surprising
    }

    /// Marks the entry of `txn` as an estimate.
    pub fn mark_estimate(&self, at: u32, txn: u32) {
        let location = self.locations.get(at);
        let mut entries = lock(&location.entries);
        let position = position(&entries, txn);
        debug_assert_eq!(entries[position].version.txn, txn, "what an incarnation wrote is there");
        entries[position].estimate = true;
        location.advance();
    }

    /// Removes the entry of `txn`, which its new incarnation did not write again. Returns true if it was an
    /// increment, which higher transactions may have read although it was an estimate.
    pub fn remove(&self, at: u32, txn: u32) -> bool {
        let location = self.locations.get(at);
        let mut entries = lock(&location.entries);
        let position = position(&entries, txn);
        debug_assert_eq!(entries[position].version.txn, txn, "what an incarnation wrote is there");
        let removed = entries.remove(position);
        location.advance();
        matches!(removed.content, Content::Delta(_))
    }

    /// Turns a delta of `txn` into a value, when everything below is committed. The sum stays the same, and so does
    /// the stamp.
    pub fn materialise(&self, at: u32, txn: u32) {
        let location = self.locations.get(at);
        let mut entries = lock(&location.entries);
        let position = position(&entries, txn);
        let (below, from) = entries.split_at_mut(position);
        let own = &mut from[0];
        debug_assert!(own.version.txn == txn && !own.estimate, "a committed transaction has written");
        if let Content::Delta(delta) = &own.content {
            debug_assert!(!matches!(below.last(), Some(Entry { content: Content::Delta(_), .. })));
            let base = location.base.get().expect("an increment has read it");
            let number = match sum(below, Some(base), delta.to_number, Increments::Settled) {
                Sum::Number(number) => number.checked_add(delta.by).expect("its bounds were validated"),
                Sum::Estimate(_) | Sum::NeedsBase => unreachable!("committed transactions leave no estimates"),
            };
            own.content = Content::Value((delta.from_number)(number));
            own.materialised = true;
        }
    }

    /// The values that the first `end` transactions leave, all of them committed.
    pub fn into_values(self, end: u32) -> Vec<(K, V)> {
        let mut values = Vec::with_capacity(self.locations.count());
        values.extend(self.locations.into_iter().filter_map(|location| location.into_value(end)));
        values
    }
}

impl<K, V> Location<K, V> {
    /// The final value of the first `end` transactions here, if they write here.
    fn into_value(self, end: u32) -> Option<(K, V)> {
        let mut entries = self.entries.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        entries.truncate(position(&entries, end));
        match entries.pop()?.content {
            Content::Value(value) => Some((self.key.into_inner()?, value)),
            Content::Delta(_) => unreachable!("a committed delta is a value"),
        }
    }

    /// Advances the stamp; the lock must be held.
    fn advance(&self) {
        self.stamp.store(self.stamp.load(Ordering::Relaxed).wrapping_add(1).max(1), Ordering::Release);
    }
}

/// The position of the first entry of `txn` or above. Most accesses are near the end.
fn position<V>(entries: &[Entry<V>], txn: u32) -> usize {
    let near = entries.iter().rev().take(8).take_while(|entry| entry.version.txn >= txn).count();
    if near < 8 { entries.len() - near } else { entries.partition_point(|entry| entry.version.txn < txn) }
}

/// Drops entries below the highest committed one.
fn forget_below<V>(entries: &mut SmallVec<[Entry<V>; 2]>, committed: u32) {
    if entries.len() == 2 && entries[1].version.txn < committed {
        entries.swap_remove(0);
    } else if entries.len() > 2 {
        let below = position(entries, committed);
        if below > 1 {
            entries.drain(..below - 1);
        }
    }
}

enum Sum {
    Number(i128),
    Estimate(u32),
    NeedsBase,
}

/// Whether a sum may contain increments that are estimates. Values that are estimates are never read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Increments {
    Settled,
    Estimated,
}

/// The number that `below` leaves. Speculative sums may wrap; those that commit do not.
fn sum<V>(below: &[Entry<V>], base: Option<&V>, to_number: fn(&V) -> i128, increments: Increments) -> Sum {
    let mut total = 0i128;
    for entry in below.iter().rev() {
        match &entry.content {
            _ if entry.estimate && increments == Increments::Settled => return Sum::Estimate(entry.version.txn),
            Content::Delta(delta) => total = total.wrapping_add(delta.by),
            Content::Value(_) if entry.estimate => return Sum::Estimate(entry.version.txn),
            Content::Value(value) => return Sum::Number(total.wrapping_add(to_number(value))),
        }
    }
    base.map_or(Sum::NeedsBase, |base| Sum::Number(total.wrapping_add(to_number(base))))
}

fn lies_within(number: i128, offset: i128, bounds: &RangeInclusive<i128>) -> bool {
    number.checked_add(offset).is_some_and(|sum| bounds.contains(&sum))
}
