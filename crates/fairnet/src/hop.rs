//! A node of the tree in reverse: a sequencer over its children, and a queue towards its parent (Onyx §5.3).
//!
//! Orders and watermarks of the children go through a [`Merge`]; what it releases waits in a [`Loq`] until the parent
//! can take it. A watermark that leaves is the lower of what the sequencer promises and what still waits.
//!
//! # Properties
//!
//! - The output obeys what a [`Merge`] expects of a stream: ascending in each class, watermarks true.
//! - With a parent that is always ready, a tree of hops gives the output of one sequencer over all gateways.

use crate::Nanos;
use crate::key::{MergeKey, OrderClass, QueuePolicy, Sequenced};
use crate::loq::Loq;
use crate::merge::{Merge, MergeEffect, MergeInput, MergeRules};

/// What a hop is told.
#[derive(Clone, Debug)]
pub enum HopInput<T> {
    /// From a child.
    Child(MergeInput<T>),
    /// The parent can take this many more orders.
    Ready(u64),
    /// There is another parent: it has granted nothing yet, and must hear the promises again.
    Parent,
}

/// What a hop does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HopEffect<T> {
    /// Sends an order to the parent.
    Order(Sequenced<T>),
    /// Sends a watermark to the parent.
    Watermark(OrderClass, MergeKey),
    /// A fairness event of the sequencer.
    Event(MergeEffect<T>),
}

/// A proxy's half of the way in.
#[derive(Clone, Debug)]
pub struct Hop<T> {
    merge: Merge<T>,
    queue: Loq<T>,
    /// Orders that the parent can take.
    credit: u64,
    /// What the sequencer promised.
    promised: [MergeKey; 2],
    /// What was sent to the parent.
    sent: [MergeKey; 2],
}

impl<T> Hop<T> {
    /// A hop with so many children.
    pub fn new(now: Nanos, children: usize, rules: MergeRules, policy: QueuePolicy) -> Hop<T> {
        Hop {
            merge: Merge::new(now, children, rules).by(policy),
            queue: Loq::new(policy),
            credit: 0,
            promised: [MergeKey::default(); 2],
            sent: [MergeKey::default(); 2],
        }
    }

    /// Orders that wait for the parent.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Orders that the parent can still take.
    pub fn credit(&self) -> u64 {
        self.credit
    }

    /// Orders of one child that its sequencer holds back.
    pub fn waiting(&self, child: u32) -> usize {
        self.merge.waiting(child)
    }

    /// One step.
    #[inline]
    pub fn step(&mut self, now: Nanos, input: HopInput<T>, out: &mut Vec<HopEffect<T>>) {
        match input {
            HopInput::Child(input) => {
                let is_tick = matches!(input, MergeInput::Tick);
                self.on_child(now, input, out);
                if is_tick {
                    self.promise(out);
                }
            }
            HopInput::Ready(orders) => {
                self.credit = self.credit.saturating_add(orders);
                self.send(out);
            }
            HopInput::Parent => {
                self.credit = 0;
                self.sent = [MergeKey::default(); 2];
            }
        }
    }

    #[inline]
    fn on_child(&mut self, now: Nanos, input: MergeInput<T>, out: &mut Vec<HopEffect<T>>) {
        let Hop { merge, queue, credit, promised, sent } = self;
        merge.step_into(now, input, &mut |effect| match effect {
            // The sequencer releases in the order of the queue, so nothing has to wait that the parent can take.
            MergeEffect::Release(order) if *credit > 0 && queue.is_empty() => {
                *credit -= 1;
                sent[order.class as usize] = order.key.above();
                out.push(HopEffect::Order(order));
            }
            MergeEffect::Release(order) => queue.push(order),
            MergeEffect::Watermark(class, key) => promised[class as usize] = key,
            event => out.push(HopEffect::Event(event)),
        });
    }

    fn send(&mut self, out: &mut Vec<HopEffect<T>>) {
        while self.credit > 0
            && let Some(order) = self.queue.pop()
        {
            self.credit -= 1;
            self.sent[order.class as usize] = order.key.above();
            out.push(HopEffect::Order(order));
        }
    }

    fn promise(&mut self, out: &mut Vec<HopEffect<T>>) {
        for class in OrderClass::ALL {
            let key = self.queue.watermark(class, self.promised[class as usize]);
            if key > self.sent[class as usize] {
                self.sent[class as usize] = key;
                out.push(HopEffect::Watermark(class, key));
            }
        }
    }
}
