//! A transaction's view of the state: reads, writes and increments.

use std::ops::RangeInclusive;

use hashbrown::{DefaultHashBuilder, HashMap};
use smallvec::SmallVec;

use super::{Blocked, Vm};
use crate::memory::{Content, Delta, Memory, NumberRead, Read, ReadResult, Version};
use crate::number::Number;

/// Values by key, above the state before the block.
pub(crate) type Overlay<V> = crate::overlay::Overlay<<V as Vm>::Key, <V as Vm>::Value>;

/// The state in one execution of a transaction.
///
/// The transaction sees the writes of lower transactions, above the state before the block, and its own writes above
/// those. Two reads of one key agree, also in speculative executions.
pub struct TransactionView<'a, V: Vm>(Kind<'a, V>);

enum Kind<'a, V: Vm> {
    /// Nothing runs in parallel with this transaction: it reads and writes in place.
    Sequential {
        vm: &'a V,
        overlay: &'a mut Overlay<V>,
    },
    Speculative(Speculation<'a, V>),
}

/// A speculative execution: its version, what it shares, and what it has done so far.
pub(crate) struct Speculation<'a, V: Vm> {
    pub vm: &'a V,
    pub below: &'a Overlay<V>,
    pub memory: &'a Memory<V::Key, V::Value>,
    pub version: Version,
    pub is_final: bool,
    pub accesses: &'a mut Accesses<V>,
}

/// The numbers of some locations.
pub(crate) type Locations = SmallVec<[u32; 8]>;

/// Why an execution cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// A lower transaction is expected to write the location that was read.
    Estimate { of: u32 },
    /// Two reads of one key would differ: the earlier reads are no longer valid.
    Inconsistent,
}

/// The accesses of one execution, by location. A thread reuses it for each execution.
pub(crate) struct Accesses<V: Vm> {
    list: Vec<Access<V::Value>>,
    /// The locations of the list.
    locations: Vec<u32>,
    /// Positions in the list by location, once the list is long.
    positions: HashMap<u32, u32, DefaultHashBuilder>,
    pub reads: Vec<Read>,
    pub number_reads: Vec<NumberRead<V::Value>>,
    pub obstacle: Option<Obstacle>,
}

/// A list of up to this many accesses is searched linearly.
const SEARCHED: usize = 16;

struct Access<T> {
    first_read: FirstRead,
    pending: Option<Content<T>>,
}

#[derive(Clone, Copy)]
enum FirstRead {
    None,
    Version(usize),
    Number(usize),
}

impl<'a, V: Vm> TransactionView<'a, V> {
    pub(crate) fn sequential(vm: &'a V, overlay: &'a mut Overlay<V>) -> Self {
        TransactionView(Kind::Sequential { vm, overlay })
    }

    pub(crate) fn speculative(speculation: Speculation<'a, V>) -> Self {
        TransactionView(Kind::Speculative(speculation))
    }

    /// Reads a key.
    ///
    /// # Errors
    ///
    /// [`Blocked`] if a lower transaction is expected to write the key. The VM must then return it at once.
    #[inline]
    pub fn read(&mut self, key: &V::Key) -> Result<V::Value, Blocked> {
        match &mut self.0 {
            Kind::Sequential { vm, overlay } => Ok(value_below(*vm, overlay, key)),
            Kind::Speculative(speculation) => speculation.read(key),
        }
    }

    /// Writes a key. Lower transactions never see it; higher ones do after this transaction has returned.
    #[inline]
    pub fn write(&mut self, key: V::Key, value: V::Value) {
        match &mut self.0 {
            Kind::Sequential { overlay, .. } => {
                overlay.insert(key, value);
            }
            Kind::Speculative(speculation) => speculation.write(&key, value),
        }
    }

    /// Adds `by` to a number, if the sum is within `bounds`; returns whether it is.
    ///
    /// The transaction learns nothing else about the number, so additions to one key do not conflict while their
    /// results stay the same. They commute with each other, and are turned into values in the order of transactions
    /// at commit.
    ///
    /// # Errors
    ///
    /// [`Blocked`] as for [`read`](Self::read).
    pub fn add(&mut self, key: &V::Key, by: i128, bounds: RangeInclusive<i128>) -> Result<bool, Blocked>
    where
        V::Value: Number,
    {
        match &mut self.0 {
            Kind::Sequential { vm, overlay } => {
                let sum = bounded_sum(&value_below(*vm, overlay, key), by, &bounds);
                let answer = sum.is_some();
                if let Some(sum) = sum {
                    overlay.insert(key.clone(), sum);
                }
                Ok(answer)
            }
            Kind::Speculative(speculation) => speculation.add(key, by, bounds),
        }
    }

    /// Whether all lower transactions are committed, so that this execution sees the final state. A VM that turns its
    /// own panics into outcomes must do so only here, and let panics of other executions pass.
    pub fn is_final(&self) -> bool {
        match &self.0 {
            Kind::Sequential { .. } => true,
            Kind::Speculative(speculation) => speculation.is_final,
        }
    }
}

#[inline]
fn value_below<V: Vm>(vm: &V, overlay: &Overlay<V>, key: &V::Key) -> V::Value {
    match overlay.get(key) {
        Some(value) => value.clone(),
        None => vm.load(key),
    }
}

fn bounded_sum<T: Number>(value: &T, by: i128, bounds: &RangeInclusive<i128>) -> Option<T> {
    value.to_number().checked_add(by).filter(|sum| bounds.contains(sum)).map(T::from_number)
}

impl<V: Vm> Speculation<'_, V> {
    #[inline(never)]
    fn read(&mut self, key: &V::Key) -> Result<V::Value, Blocked> {
        let at = self.memory.locate(key);
        let position = self.accesses.position(at);
        if let Some(Content::Value(value)) = &self.accesses.list[position].pending {
            return Ok(value.clone());
        }
        let (vm, below) = (self.vm, self.below);
        let (found, read, number) = self.memory.read(at, self.version.txn, |key| value_below(vm, below, key));
        match found {
            ReadResult::Estimate { of } => self.accesses.block(Obstacle::Estimate { of }),
            ReadResult::Value(_) if !self.accesses.observe(position, read, number) => {
                self.accesses.block(Obstacle::Inconsistent)
            }
            ReadResult::Value(value) => Ok(match &self.accesses.list[position].pending {
                Some(Content::Delta(own)) => (own.from_number)((own.to_number)(&value).wrapping_add(own.by)),
                _ => value,
            }),
        }
    }

    #[inline(never)]
    fn write(&mut self, key: &V::Key, value: V::Value) {
        let position = self.accesses.position(self.memory.locate(key));
        self.accesses.list[position].pending = Some(Content::Value(value));
    }

    fn add(&mut self, key: &V::Key, by: i128, bounds: RangeInclusive<i128>) -> Result<bool, Blocked>
    where
        V::Value: Number,
    {
        let at = self.memory.locate(key);
        let position = self.accesses.position(at);
        let before = match &mut self.accesses.list[position].pending {
            Some(Content::Value(value)) => {
                let sum = bounded_sum(value, by, &bounds);
                let answer = sum.is_some();
                if let Some(sum) = sum {
                    *value = sum;
                }
                return Ok(answer);
            }
            Some(Content::Delta(own)) => own.by,
            None => 0,
        };
        // An offset beyond i128 is outside of any bounds near the number below.
        let Some(offset) = before.checked_add(by) else { return self.add_by_value(key, by, bounds) };
        let (vm, below) = (self.vm, self.below);
        let load = |key: &V::Key| value_below(vm, below, key);
        let within = self.memory.within(at, self.version.txn, offset, bounds, V::Value::to_number, load);
        let (answer, read) = match within {
            Ok(within) => within,
            Err(of) => return self.accesses.block(Obstacle::Estimate { of }),
        };
        self.accesses.number_reads.push(read);
        if answer {
            self.accesses.list[position].pending = Some(Content::Delta(Box::new(Delta::new(offset))));
        }
        Ok(answer)
    }

    /// An increment that does not fit into a delta, as a read and a write.
    fn add_by_value(&mut self, key: &V::Key, by: i128, bounds: RangeInclusive<i128>) -> Result<bool, Blocked>
    where
        V::Value: Number,
    {
        let sum = bounded_sum(&self.read(key)?, by, &bounds);
        let answer = sum.is_some();
        if let Some(sum) = sum {
            self.write(key, sum);
        }
        Ok(answer)
    }
}

impl<V: Vm> Accesses<V> {
    pub fn new() -> Self {
        Accesses {
            list: Vec::new(),
            locations: Vec::new(),
            positions: HashMap::default(),
            reads: Vec::new(),
            number_reads: Vec::new(),
            obstacle: None,
        }
    }

    /// Begins an execution.
    pub fn begin(&mut self) {
        self.list.clear();
        self.locations.clear();
        self.positions.clear();
        self.reads.clear();
        self.number_reads.clear();
        self.obstacle = None;
    }

    /// Moves the writes into `memory`, and removes what the previous incarnation wrote and this one did not.
    /// `written` has the locations before and after. Returns true if higher transactions that were valid may no
    /// longer be.
    pub fn record(
        &mut self,
        memory: &Memory<V::Key, V::Value>,
        version: Version,
        committed: u32,
        written: &mut Locations,
    ) -> bool {
        let mut surprising = false;
        for &location in written.iter() {
            let again = self.find(location).is_some_and(|position| self.list[position].pending.is_some());
            if !again {
                surprising |= memory.remove(location, version.txn);
            }
        }
        written.clear();
        for (access, &location) in self.list.iter_mut().zip(&self.locations) {
            if let Some(content) = access.pending.take() {
                surprising |= memory.write(location, version, content, committed);
                written.push(location);
            }
        }
        surprising
    }

    /// Drops the writes.
    pub fn discard_writes(&mut self) {
        self.list.iter_mut().for_each(|access| access.pending = None);
    }

    /// Whether the writes contain an increment.
    pub fn has_deltas(&self) -> bool {
        self.list.iter().any(|access| matches!(access.pending, Some(Content::Delta(_))))
    }

    fn find(&self, location: u32) -> Option<usize> {
        if self.locations.len() <= SEARCHED {
            return self.locations.iter().position(|&accessed| accessed == location);
        }
        self.positions.get(&location).map(|&position| position as usize)
    }

    /// The position of a location's access; creates it if this is the first access.
    #[inline]
    fn position(&mut self, location: u32) -> usize {
        if let Some(position) = self.find(location) {
            return position;
        }
        self.list.push(Access { first_read: FirstRead::None, pending: None });
        self.locations.push(location);
        let count = self.locations.len();
        // The map is created when the list has become too long, and updated from then on.
        let unmapped = if count == SEARCHED + 1 { 0 } else { count - 1 };
        if count > SEARCHED {
            let positions = (unmapped..count).map(|position| (self.locations[position], position as u32));
            self.positions.extend(positions);
        }
        count - 1
    }

    /// Records a read; returns false if it disagrees with an earlier one.
    fn observe(&mut self, position: usize, read: Read, number: Option<NumberRead<V::Value>>) -> bool {
        match (self.list[position].first_read, number) {
            (FirstRead::None, None) => {
                self.list[position].first_read = FirstRead::Version(self.reads.len());
                self.reads.push(read);
                true
            }
            (FirstRead::None, Some(number)) => {
                self.list[position].first_read = FirstRead::Number(self.number_reads.len());
                self.number_reads.push(number);
                true
            }
            (FirstRead::Version(first), None) => self.reads[first].agrees(&read),
            (FirstRead::Number(first), Some(number)) => self.number_reads[first].agrees(&number),
            _ => false,
        }
    }

    fn block<T>(&mut self, obstacle: Obstacle) -> Result<T, Blocked> {
        self.obstacle = Some(obstacle);
        Err(Blocked(()))
    }
}
