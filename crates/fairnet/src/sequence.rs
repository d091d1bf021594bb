//! One class of a sequencer: what each stream has sent and promised, and what comes next of all.

use std::collections::VecDeque;

use crate::Nanos;
use crate::key::{MergeKey, Sequenced};
use crate::tournament::Tournament;

/// An order that waits, and since when.
#[derive(Clone, Debug)]
pub(crate) struct Queued<T> {
    pub(crate) order: Sequenced<T>,
    pub(crate) arrived: Nanos,
}

/// One class: a queue and a watermark for each stream.
#[derive(Clone, Debug)]
pub(crate) struct Sequence<T> {
    pub(crate) queues: Vec<VecDeque<Queued<T>>>,
    pub(crate) marks: Vec<MergeKey>,
    /// By stream: the lowest key that may come next, or one below it. It is exact of the stream that is least, and
    /// corrected of another one when that becomes least.
    pub(crate) next: Tournament,
    /// No key below this may come any more.
    pub(crate) frontier: MergeKey,
    /// Just above the last key that was released.
    pub(crate) released: MergeKey,
}

impl<T> Sequence<T> {
    pub(crate) fn new(streams: usize) -> Sequence<T> {
        let queues = std::iter::repeat_with(VecDeque::new).take(streams).collect();
        let (marks, next) = (vec![MergeKey::default(); streams], Tournament::new(streams));
        Sequence { queues, marks, next, frontier: MergeKey::default(), released: MergeKey::default() }
    }

    /// The lowest key that may come next of a stream, and whether it is that of an order.
    #[inline(always)]
    pub(crate) fn next_of(&self, stream: usize, is_waited_for: bool) -> (MergeKey, bool) {
        match self.queues[stream].front() {
            Some(queued) => (queued.order.key, true),
            None if is_waited_for => (self.marks[stream], false),
            None => (MergeKey::END, false),
        }
    }

    pub(crate) fn refresh(&mut self, stream: usize, is_waited_for: bool) {
        let (next, _) = self.next_of(stream, is_waited_for);
        self.next.set(stream, next);
    }

    /// The stream of which the lowest key may come next, that key, and whether it is that of an order.
    #[inline(always)]
    pub(crate) fn first(&mut self, streams: &[StreamState]) -> (usize, MergeKey, bool) {
        loop {
            let (stream, key) = self.next.min();
            let (next, is_order) = self.next_of(stream, streams[stream].is_waited_for());
            if next == key {
                return (stream, key, is_order);
            }
            self.next.raise(next);
        }
    }

    /// Takes the first order of the first stream out.
    #[inline(always)]
    pub(crate) fn pop(&mut self, stream: usize, is_waited_for: bool) -> Option<Sequenced<T>> {
        let Queued { mut order, .. } = self.queues[stream].pop_front()?;
        // Orders that are restamped to one frontier have one key: each comes just above the one before.
        if order.key < self.released {
            order.key = self.released;
        }
        self.released = order.key.above();
        if self.frontier < self.released {
            self.frontier = self.released;
        }
        self.next.raise(self.next_of(stream, is_waited_for).0);
        Some(order)
    }
}

/// What is known of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) is_present: bool,
    pub(crate) is_skipped: bool,
    /// Whether nothing more is taken of it, and since when that is no longer so.
    pub(crate) is_held: bool,
    pub(crate) free_since: Nanos,
    /// Of a skipped stream: since when it has been timely.
    pub(crate) timely_since: Nanos,
    pub(crate) probation: Nanos,
    pub(crate) skipped_at: Nanos,
}

impl StreamState {
    pub(crate) fn is_waited_for(&self) -> bool {
        self.is_present && !self.is_skipped
    }
}
