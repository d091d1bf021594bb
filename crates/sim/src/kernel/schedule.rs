//! The clock of a world: it jumps from event to event.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use consensus::Index;

/// Events by time, each of one host. Of one time the first that was scheduled comes first.
pub(crate) struct Schedule<E> {
    queue: BinaryHeap<Reverse<(u64, u64, Index)>>,
    events: BTreeMap<u64, E>,
    count: u64,
    now: u64,
}

impl<E> Schedule<E> {
    pub fn new() -> Schedule<E> {
        Schedule { queue: BinaryHeap::new(), events: BTreeMap::new(), count: 0, now: 0 }
    }

    /// The time of the last event, in microseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Number of events that were ever scheduled.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The events that are still to come.
    pub fn pending(&self) -> impl Iterator<Item = &E> {
        self.events.values()
    }

    /// Schedules an event of a host in `delay` microseconds.
    pub fn push(&mut self, delay: u64, to: Index, event: E) {
        self.count += 1;
        self.events.insert(self.count, event);
        self.queue.push(Reverse((self.now + delay, self.count, to)));
    }

    /// The next event with its host; the time is now its time.
    pub fn pop(&mut self) -> Option<(Index, E)> {
        let Reverse((time, number, to)) = self.queue.pop()?;
        self.now = time;
        Some((to, self.events.remove(&number).expect("listed")))
    }
}
