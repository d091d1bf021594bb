//! Orders for the batch market, cut off by stamps.
//!
//! The root of an edge collects the orders that its sequencer releases. When the sequencer promises that no order
//! stamped before T comes any more, the orders before T make a *bundle*, in the order (stamp, gateway). Its digest is
//! what the root signs, and it is sent to f + 1 validators. Stamps are never inputs of consensus.
//!
//! [`Bundles`] knows stamps and digests alone. [`Collector`] is what the root runs around it: it keeps the orders'
//! bodies until their bundle is closed, and reads the cut-off from the sequencer's promises of both classes.
//!
//! # Properties
//!
//! - Of two orders of one edge, the one stamped earlier is not in a later bundle, unless it is flagged as late.
//! - Bundles are numbered without gaps, their times adjoin, and each names the digest of the one before.
//! - The bundles are the same for any order in which the orders of a cut-off arrive.
//!
//! The claim for a block is weaker: at each honest validator a block's boundary is a prefix of the bundles that it has.

use std::collections::BTreeMap;

use crate::Nanos;
use crate::key::{MergeKey, OrderClass, Sequenced};
use crate::link::EdgeOrder;

/// An order in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundledOrder {
    /// When its gateway stamped it.
    pub stamp: Nanos,
    /// Its gateway.
    pub source: u32,
    /// Digest of the signed order.
    pub digest: [u8; 32],
    /// It came after its cut-off.
    pub is_late: bool,
}

/// The orders of a cut-off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Which edge.
    pub edge: u32,
    /// Number, from 1.
    pub number: u64,
    /// From this stamp.
    pub from: Nanos,
    /// Up to this stamp: no order that is not late and not in this bundle or an earlier one is stamped before it.
    pub until: Nanos,
    /// Digest of the bundle before.
    pub previous: [u8; 32],
    /// Orders by stamp and gateway, late ones first.
    pub orders: Vec<BundledOrder>,
}

impl Bundle {
    /// What the root signs.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("walras fairnet bundle v1");
        hasher.update(&self.edge.to_be_bytes()).update(&self.number.to_be_bytes());
        hasher.update(&self.from.to_be_bytes()).update(&self.until.to_be_bytes()).update(&self.previous);
        for order in &self.orders {
            hasher.update(&order.stamp.to_be_bytes()).update(&order.source.to_be_bytes());
            hasher.update(&[u8::from(order.is_late)]).update(&order.digest);
        }
        hasher.finalize().into()
    }
}

/// What the collector is told.
#[derive(Clone, Copy, Debug)]
pub enum BundleInput {
    /// An order of a sequencer without classes: stamp, gateway, digest.
    Order(Nanos, u32, [u8; 32]),
    /// No order stamped before this comes any more.
    Watermark(Nanos),
}

/// Collects the orders of one edge.
#[derive(Clone, Debug)]
pub struct Bundles {
    edge: u32,
    period: Nanos,
    most: usize,
    waiting: BTreeMap<(Nanos, u32, [u8; 32]), ()>,
    late: Vec<BundledOrder>,
    until: Nanos,
    number: u64,
    previous: [u8; 32],
}

impl Bundles {
    /// A cut-off each `period` ns from `since` on, with at most `most` orders in a bundle.
    pub fn new(edge: u32, since: Nanos, period: Nanos, most: usize) -> Bundles {
        let (period, most) = (period.max(1), most.max(1));
        let until = since - since % period;
        Bundles { edge, period, most, waiting: BTreeMap::new(), late: Vec::new(), until, number: 0, previous: [0; 32] }
    }

    /// One step; complete bundles are appended to `out`.
    pub fn step(&mut self, input: BundleInput, out: &mut Vec<Bundle>) {
        match input {
            BundleInput::Order(stamp, source, digest) if stamp < self.until => {
                self.late.push(BundledOrder { stamp, source, digest, is_late: true });
            }
            BundleInput::Order(stamp, source, digest) => {
                self.waiting.insert((stamp, source, digest), ());
            }
            BundleInput::Watermark(passed) => self.cut(passed - passed % self.period, out),
        }
    }

    /// Closes bundles up to a cut-off.
    fn cut(&mut self, cut_off: Nanos, out: &mut Vec<Bundle>) {
        while self.until < cut_off {
            // Periods without orders are skipped up to the next that has some.
            let first = self.waiting.first_key_value().map_or(cut_off, |(key, _)| key.0.min(cut_off));
            let end = (first - first % self.period).saturating_add(self.period).min(cut_off);
            let rest = self.waiting.split_off(&(end, 0, [0; 32]));
            let due = std::mem::replace(&mut self.waiting, rest);
            self.close(end, due.into_keys().collect(), out);
        }
    }

    /// One bundle, or several if there are too many orders.
    fn close(&mut self, end: Nanos, due: Vec<(Nanos, u32, [u8; 32])>, out: &mut Vec<Bundle>) {
        self.late.sort_unstable_by_key(|order| (order.stamp, order.source, order.digest));
        let timely =
            due.into_iter().map(|(stamp, source, digest)| BundledOrder { stamp, source, digest, is_late: false });
        let orders: Vec<BundledOrder> = self.late.drain(..).chain(timely).collect();
        let parts = orders.len().div_ceil(self.most).max(1);
        for part in 0..parts {
            let (first, last) = (part * self.most, ((part + 1) * self.most).min(orders.len()));
            let next = orders.get(last).filter(|next| !next.is_late).map(|next| next.stamp);
            let until = if part + 1 == parts { end } else { next.unwrap_or(self.until).max(self.until) };
            self.push(until, orders[first..last].to_vec(), out);
        }
    }

    fn push(&mut self, until: Nanos, orders: Vec<BundledOrder>, out: &mut Vec<Bundle>) {
        self.number += 1;
        let from = self.until;
        let bundle = Bundle { edge: self.edge, number: self.number, from, until, previous: self.previous, orders };
        (self.previous, self.until) = (bundle.digest(), until);
        out.push(bundle);
    }
}

/// When an edge closes bundles.
#[derive(Clone, Copy, Debug)]
pub struct BundleRules {
    /// Which edge.
    pub edge: u32,
    /// Between two cut-offs, ns.
    pub period: Nanos,
    /// Orders in a bundle at most.
    pub most: usize,
}

/// A bundle that is closed, with what its orders say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedBundle {
    /// Stamps and digests: what is signed.
    pub bundle: Bundle,
    /// The body of each of its orders, in the same order.
    pub bodies: Vec<Vec<u8>>,
    /// Whether the root had nobody left whose promise it could await: orders before this cut-off may still come, late
    /// without having broken a promise.
    pub is_unattended: bool,
}

/// Collects the orders that a root's sequencer releases, and closes bundles by its promises.
#[derive(Clone, Debug)]
pub struct Collector {
    bundles: Bundles,
    bodies: BTreeMap<(Nanos, u32, [u8; 32]), Vec<u8>>,
    /// What the sequencer promises in each class.
    promised: [MergeKey; 2],
}

impl Collector {
    /// A collector that begins now.
    pub fn new(now: Nanos, rules: &BundleRules) -> Collector {
        let bundles = Bundles::new(rules.edge, now, rules.period, rules.most);
        Collector { bundles, bodies: BTreeMap::new(), promised: [MergeKey::default(); 2] }
    }

    /// Orders that wait for their cut-off.
    pub fn waiting(&self) -> usize {
        self.bodies.len()
    }

    /// An order that the sequencer released. It counts by the stamp that its gateway gave it.
    pub fn order(&mut self, order: &Sequenced<EdgeOrder>) {
        let stamp = order.restamped.unwrap_or(order.key).stamp;
        let EdgeOrder { participant, body, .. } = &order.item;
        let (source, digest) = (*participant as u32, *blake3::hash(body).as_bytes());
        if self.bodies.insert((stamp, source, digest), body.clone()).is_none() {
            self.bundles.step(BundleInput::Order(stamp, source, digest), &mut Vec::new());
        }
    }

    /// The sequencer promises something in a class.
    pub fn promise(&mut self, class: OrderClass, key: MergeKey, out: &mut Vec<ClosedBundle>) {
        self.promised[class as usize] = key;
        let passed = self.promised[0].stamp.min(self.promised[1].stamp);
        self.cut(passed, false, out);
    }

    /// Closes every bundle up to a time, by promises or unattended.
    pub fn cut(&mut self, passed: Nanos, is_unattended: bool, out: &mut Vec<ClosedBundle>) {
        let mut closed = Vec::new();
        self.bundles.step(BundleInput::Watermark(passed), &mut closed);
        for bundle in closed {
            let mut body = |order: &BundledOrder| {
                let id = (order.stamp, order.source, order.digest);
                self.bodies.remove(&id).expect("an order is collected with its body")
            };
            let bodies = bundle.orders.iter().map(&mut body).collect();
            out.push(ClosedBundle { bundle, bodies, is_unattended });
        }
    }
}
