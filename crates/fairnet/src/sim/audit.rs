//! What must hold of an edge, whoever drives it: the simulator or sockets.

use std::collections::{BTreeMap, BTreeSet};

use crate::Nanos;
use crate::bundles::{BundledOrder, ClosedBundle};
use crate::estimator::ClockEstimate;
use crate::key::{MergeKey, OrderClass, Sequenced};
use crate::link::EdgeOrder;

use crate::node::ShownPacket;
use crate::seating::MemberId;

/// Violations that are kept.
const KEPT: usize = 16;

/// Compares what an edge does with what it was given. Payloads must begin with their number, from 1, big-endian.
#[derive(Debug, Default)]
pub struct EdgeAudit {
    published: Vec<(Vec<u8>, Nanos)>,
    /// Deadlines of all packets, heartbeats too, by sequence.
    sealed: BTreeMap<u64, Nanos>,
    /// By gateway: the number of the last payload that it showed.
    shown: BTreeMap<MemberId, u64>,
    made: BTreeMap<(u64, Nanos), Vec<u8>>,
    /// Orders of which nobody can say any more what became of them: their gateway died.
    orphans: BTreeSet<(u64, Nanos)>,
    handed_on: BTreeSet<(u64, Nanos)>,
    last: [MergeKey; 2],
    restamped: BTreeSet<(u64, Nanos)>,
    bundled: BTreeSet<(u64, Nanos)>,
    /// Number, end and digest of the last bundle, and the last order in it that was not late.
    bundle: Option<(u64, Nanos, [u8; 32])>,
    last_bundled: (Nanos, u32, [u8; 32]),
    /// The last cut-off of a root that had nobody to wait for.
    unattended: Nanos,
    violations: Vec<String>,
}

/// The number at the beginning of a payload.
pub fn payload_number(payload: &[u8]) -> Option<u64> {
    payload.first_chunk::<8>().map(|number| u64::from_be_bytes(*number))
}

impl EdgeAudit {
    /// What was wrong, the first sixteen.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    fn violation(&mut self, text: String) {
        if self.violations.len() < KEPT {
            self.violations.push(text);
        }
    }

    /// The root published the next payload, with this deadline.
    pub fn published(&mut self, payload: &[u8], deadline: Nanos) {
        self.published.push((payload.to_vec(), deadline));
    }

    /// The root sent a packet, a heartbeat perhaps. Copies do not count.
    pub fn sealed(&mut self, sequence: u64, deadline: Nanos) {
        self.sealed.entry(sequence).or_insert(deadline);
    }

    /// Payloads so far.
    pub fn count(&self) -> u64 {
        self.published.len() as u64
    }

    /// The number of the last payload that a gateway showed.
    pub fn shown_by(&self, gateway: MemberId) -> u64 {
        self.shown.get(&gateway).copied().unwrap_or(0)
    }

    /// A gateway showed a packet. Heartbeats do not count.
    pub fn shown(&mut self, now: Nanos, gateway: MemberId, packet: &ShownPacket) {
        if packet.payload.is_empty() {
            return;
        }
        let number = payload_number(&packet.payload).unwrap_or(0);
        let Some((payload, deadline)) = number.checked_sub(1).and_then(|at| self.published.get(at as usize)) else {
            return self.violation(format!("gateway {gateway} showed payload {number}, which nobody published"));
        };
        let (is_true, deadline) = (*payload == packet.payload, *deadline);
        let before = self.shown.insert(gateway, number);
        if !is_true {
            self.violation(format!("gateway {gateway} showed another payload {number} than was published"));
        }
        if now < deadline {
            self.violation(format!("gateway {gateway} showed payload {number} {} ns early", deadline - now));
        }
        if before.is_some_and(|before| number != before + 1) {
            self.violation(format!("gateway {gateway} showed payload {number} after {}", before.unwrap_or(0)));
        }
    }

    /// A gateway passed on a report of payload `number`: one that it does not show at all is none of its own.
    pub fn reported(&mut self, gateway: MemberId, number: u64) {
        let shown = self.shown_by(gateway);
        if shown < number {
            self.violation(format!("gateway {gateway} passed on a report of payload {number}, having shown {shown}"));
        }
    }

    /// A gateway gave packets up.
    pub fn lost(&mut self, gateway: MemberId, first: u64, count: u64) {
        self.violation(format!("gateway {gateway} lost {count} packets from {first} on"));
    }

    /// A gateway died and begins anew. Nobody can say what became of its orders.
    pub fn died(&mut self, gateway: MemberId) {
        self.shown.remove(&gateway);
        let is_open = |id: &(u64, Nanos)| id.0 == gateway && !self.handed_on.contains(id);
        let open: Vec<(u64, Nanos)> = self.made.keys().filter(|id| is_open(id)).copied().collect();
        self.orphans.extend(open);
    }

    /// A gateway made an order, with this stamp.
    pub fn made(&mut self, gateway: MemberId, stamp: Nanos, body: &[u8]) {
        if self.made.insert((gateway, stamp), body.to_vec()).is_some() {
            self.violation(format!("gateway {gateway} made two orders with the stamp {stamp}"));
        }
    }

    /// The root handed an order on.
    pub fn handed_on(&mut self, order: &Sequenced<EdgeOrder>) {
        let EdgeOrder { participant, body, .. } = &order.item;
        let id = (*participant, order.restamped.unwrap_or(order.key).stamp);
        if self.made.get(&id).is_none_or(|made| made != body) {
            self.violation(format!("the engine got order {id:?}, which nobody made so"));
        }
        if !self.handed_on.insert(id) {
            self.violation(format!("the engine got order {id:?} twice"));
        }
        if order.restamped.is_some() {
            self.restamped.insert(id);
        }
        self.handed_on_after(id, order.item.md_seq);
        let class = order.class as usize;
        if order.key < self.last[class] {
            self.violation(format!("order {id:?} came after later ones of its class"));
        }
        self.last[class] = order.key.above();
    }

    /// No order is older than what it says that its participant was shown.
    fn handed_on_after(&mut self, id: (u64, Nanos), md_seq: u64) {
        let last = self.sealed.last_key_value().map_or(u64::MAX, |(last, _)| *last);
        if md_seq > last || self.sealed.get(&md_seq).is_some_and(|deadline| id.1 < *deadline) {
            self.violation(format!("order {id:?} says that it was made after packet {md_seq}, which cannot be"));
        }
    }

    /// The root closed a bundle.
    pub fn closed(&mut self, closed: &ClosedBundle) {
        let ClosedBundle { bundle, bodies, is_unattended } = closed;
        let own = (bundle.number, bundle.from, bundle.previous);
        if self.bundle.is_some_and(|(number, until, digest)| own != (number + 1, until, digest)) {
            self.violation(format!("bundle {} does not follow the one before", bundle.number));
        }
        self.bundle = Some((bundle.number, bundle.until, bundle.digest()));
        if bundle.orders.len() != bodies.len() {
            self.violation(format!("bundle {} has {} bodies", bundle.number, bodies.len()));
        }
        for (order, body) in bundle.orders.iter().zip(bodies) {
            if order.digest != *blake3::hash(body).as_bytes() {
                self.violation(format!("bundle {} has another body than it says", bundle.number));
            }
            self.in_bundle(order, bundle.from);
        }
        if *is_unattended {
            self.unattended = bundle.until;
        }
    }

    fn in_bundle(&mut self, order: &BundledOrder, from: Nanos) {
        let id = (u64::from(order.source), order.stamp);
        if !self.handed_on.contains(&id) || !self.bundled.insert(id) {
            self.violation(format!("order {id:?} is in a bundle twice, or was never handed on"));
        }
        if order.is_late {
            // Whoever kept to what it promised is never late, unless the root could await nobody's promise.
            let may_be_late = self.restamped.contains(&id) || order.stamp < self.unattended;
            if order.stamp >= from || !may_be_late {
                self.violation(format!("order {id:?} is called late and was not"));
            }
            return;
        }
        let place = (order.stamp, order.source, order.digest);
        if place < self.last_bundled || order.stamp < from {
            self.violation(format!("order {id:?} is in a later bundle than one stamped after it"));
        }
        self.last_bundled = place;
    }

    /// What probes say of clocks that are ahead of the root's by this much, ns: never further off than they say.
    pub fn clocks(&mut self, found: &BTreeMap<MemberId, ClockEstimate>, ahead: impl Fn(MemberId) -> i64) {
        for (member, ClockEstimate { offset, bound, .. }) in found {
            let error = (offset - ahead(*member) as f64).abs();
            if error > bound + 1.0 {
                self.violation(format!(
                    "the clock of {member} is said to be right within {bound} ns: {error} ns wrong"
                ));
            }
        }
    }

    /// Orders that were made and not handed on.
    pub fn waiting(&self) -> usize {
        self.made.keys().filter(|id| !self.handed_on.contains(id) && !self.orphans.contains(id)).count()
    }

    /// Orders that were handed on.
    pub fn orders(&self) -> usize {
        self.handed_on.len()
    }

    /// The end: each of these gateways has shown everything, and no order is missing.
    pub fn finish(&mut self, gateways: impl Iterator<Item = MemberId>) {
        let count = self.count();
        for gateway in gateways {
            let shown = self.shown_by(gateway);
            if shown != count {
                self.violation(format!("gateway {gateway} showed payloads up to {shown} of {count}"));
            }
        }
        let unbundled = self.handed_on.difference(&self.bundled).count();
        if self.bundle.is_some() && unbundled > 0 {
            self.violation(format!("{unbundled} orders are in no bundle"));
        }
        if self.waiting() > 0 {
            self.violation(format!("{} orders never came to the engine", self.waiting()));
        }
    }

    /// Orders in bundles.
    pub fn bundled(&self) -> usize {
        self.bundled.len()
    }

    /// The last key that was handed on in a class.
    pub fn last(&self, class: OrderClass) -> MergeKey {
        self.last[class as usize]
    }
}
