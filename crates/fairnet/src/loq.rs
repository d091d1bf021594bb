//! The limit order queue: orders near the mid leave first, as far as no trade changes by it (Onyx §5.2, appendix I).
//!
//! Wherever orders wait for the network or for the engine, they wait in a queue that is sorted by (I_m, c, t): number
//! of the mid, critical before other, stamp. A queue of the default kind sorts by stamp alone: the *FIFO twin*.
//!
//! # Properties
//!
//! - Each class leaves in ascending order of keys, and no order leaves before one of a lower I_m.
//! - The queue's watermark is true: in a class nothing leaves later with a key below it.
//!
//! # Deviations from the paper
//!
//! - *It changes trades, even without any loss* (appendix I claims otherwise). Engine and gateways see the mid one
//!   delivery apart. With w = 2 and a mid that went from 100 to 110, a sell at 102 in flight sweeps the bids and rests.
//!   A bid at 105 stamped 300 is *other* at 110 and loses it to a bid at 111 stamped 310. So it is opt-in for each
//!   market, and [`lateness`] measures it against the twin.
//! - *Cancels* have classes of their own: see [`OrderClasses`](crate::OrderClasses).

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use crate::key::{MergeKey, OrderClass, QueuePolicy, Sequenced};

/// A queue of sequenced orders.
#[derive(Clone, Debug)]
pub struct Loq<T> {
    policy: QueuePolicy,
    classes: [VecDeque<Sequenced<T>>; 2],
}

impl<T> Loq<T> {
    /// An empty queue.
    pub fn new(policy: QueuePolicy) -> Loq<T> {
        Loq { policy, classes: [VecDeque::new(), VecDeque::new()] }
    }

    /// Orders in the queue.
    pub fn len(&self) -> usize {
        self.classes.iter().map(VecDeque::len).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.classes.iter().all(VecDeque::is_empty)
    }

    /// Adds an order. A sequencer's output is ascending in each class, so this is O(1) behind one.
    pub fn push(&mut self, order: Sequenced<T>) {
        let class = &mut self.classes[order.class as usize];
        match class.back().is_none_or(|last| last.key <= order.key) {
            true => class.push_back(order),
            false => {
                let at = class.partition_point(|queued| queued.key <= order.key);
                class.insert(at, order);
            }
        }
    }

    /// Takes the next order out.
    pub fn pop(&mut self) -> Option<Sequenced<T>> {
        let first = |class: OrderClass| self.classes[class as usize].front().map(|order| order.key);
        let class = match (first(OrderClass::Critical), first(OrderClass::Other)) {
            (Some(critical), Some(other)) if self.policy.is_first(critical, other) => OrderClass::Critical,
            (Some(_), Some(_)) => OrderClass::Other,
            (Some(_), None) => OrderClass::Critical,
            (None, _) => OrderClass::Other,
        };
        self.classes[class as usize].pop_front()
    }

    /// What the output of this queue promises in a class, given what its input promises.
    pub fn watermark(&self, class: OrderClass, input: MergeKey) -> MergeKey {
        self.classes[class as usize].front().map_or(input, |first| first.key.min(input))
    }
}

/// How far each order of `queued` is from its place in `twin`: |i − j| for the orders that both have, in `twin`'s order
/// (Onyx §6.4, appendix N).
pub fn lateness<I: Copy + Eq + Hash>(twin: &[I], queued: &[I]) -> Vec<u64> {
    let places: HashMap<I, usize> = queued.iter().enumerate().map(|(place, id)| (*id, place)).collect();
    let distance = |(place, id): (usize, &I)| places.get(id).map(|other| place.abs_diff(*other) as u64);
    twin.iter().enumerate().filter_map(distance).collect()
}
