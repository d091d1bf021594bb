//! A calendar queue: events of a simulation, each by its time, equal times in the order in which they were added.
//!
//! Events of the next days lie unsorted in buckets; a bucket is sorted when its time comes. Adding costs O(1), taking
//! out O(log events of a bucket). Events beyond the calendar wait in a tree.

use std::collections::BTreeMap;

/// Pending events.
#[derive(Clone, Debug)]
pub struct Calendar<E> {
    bucket_bits: u32,
    buckets: Vec<Vec<(u64, u64, E)>>,
    /// Of the present bucket, latest first.
    current: Vec<(u64, u64, E)>,
    /// Number of the present bucket, counted from time 0.
    at: u64,
    far: BTreeMap<(u64, u64), E>,
    added: u64,
    inside: usize,
}

impl<E> Calendar<E> {
    /// An empty calendar of 2^`buckets_bits` buckets, each of 2^`bucket_bits` units of time.
    pub fn new(bucket_bits: u32, buckets_bits: u32) -> Calendar<E> {
        let buckets = std::iter::repeat_with(Vec::new).take(1 << buckets_bits).collect();
        Calendar { bucket_bits, buckets, current: Vec::new(), at: 0, far: BTreeMap::new(), added: 0, inside: 0 }
    }

    /// Adds an event. One in the past happens next.
    #[inline]
    pub fn push(&mut self, time: u64, event: E) {
        self.added += 1;
        let bucket = time >> self.bucket_bits;
        if bucket <= self.at {
            self.push_current(time, event);
        } else if bucket - self.at < self.buckets.len() as u64 {
            self.inside += 1;
            let place = bucket as usize & (self.buckets.len() - 1);
            self.buckets[place].push((time, self.added, event));
        } else {
            self.far.insert((time, self.added), event);
        }
    }

    fn push_current(&mut self, time: u64, event: E) {
        let place = self.current.partition_point(|other| other.0 > time);
        self.current.insert(place, (time, self.added, event));
    }

    /// The events that are still to come, in no order.
    pub fn pending(&self) -> impl Iterator<Item = &E> {
        let near = self.current.iter().chain(self.buckets.iter().flatten());
        near.map(|(_, _, event)| event).chain(self.far.values())
    }

    /// Takes out the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, E)> {
        while self.current.is_empty() {
            self.turn()?;
        }
        self.current.pop().map(|(time, _, event)| (time, event))
    }

    /// Goes on to the next bucket that may have events.
    fn turn(&mut self) -> Option<()> {
        let far = self.far.first_key_value().map(|(key, _)| key.0 >> self.bucket_bits);
        self.at = if self.inside > 0 { self.at + 1 } else { far? };
        self.approach();
        let place = self.at as usize & (self.buckets.len() - 1);
        std::mem::swap(&mut self.current, &mut self.buckets[place]);
        self.inside -= self.current.len();
        self.current.sort_unstable_by_key(|event| std::cmp::Reverse((event.0, event.1)));
        Some(())
    }

    /// Moves events that the calendar now reaches into their buckets.
    fn approach(&mut self) {
        let (bits, end) = (self.bucket_bits, self.at + self.buckets.len() as u64);
        while self.far.first_key_value().is_some_and(|(key, _)| key.0 >> bits < end)
            && let Some(((time, number), event)) = self.far.pop_first()
        {
            self.inside += 1;
            let place = (time >> bits) as usize & (self.buckets.len() - 1);
            self.buckets[place].push((time, number, event));
        }
    }
}
