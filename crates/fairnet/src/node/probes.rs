//! Probes between members, from which the root knows how far their clocks are apart.
//!
//! Every member sends pairs of probes in turn to a few others ([`targets`]): the mesh is connected and has loops. The
//! receiver of a pair tells the root all
//! four times, and the root keeps the last ones of each edge ([`ClockMesh`]). Whoever wants estimates computes them:
//! it is work of milliseconds, and no business of the thread that sends the feed.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | format, 3 |
//! | 1–4 | epoch |
//! | 5–12 | sender |
//! | 13–20 | number of the pair, ascending for each sender |
//! | 21 | 0 the first of the pair, 1 the second |
//! | 22–29 | when it was sent, by the sender's clock, ns |
//! | 30–45 | MAC of the above and of whom it is for, by the key of the epoch |
//!
//! # Properties
//!
//! - A probe counts once: pairs of a sender ascend, and a second one follows its first.
//! - A member is told of no clock by a stranger: probes have MACs, and what receivers say comes over streams that do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{EdgeEffect, LinkEnd};
use crate::Nanos;
use crate::estimator::{ClockEstimate, Estimator, EstimatorRules, ProbePair};
use crate::link::LinkMessage;
use crate::packet::{PROBE, PacketKey, is_equal};
use crate::seating::{MemberId, ROOT_MEMBER, Seat, Seating};

const FORMAT: u8 = 3;
const HEAD: usize = 30;
const PROBE_BYTES: usize = HEAD + 16;
/// Pairs of one direction of an edge that the root keeps.
const PAIRS: usize = 128;
/// Edges that the root keeps: as many as a seating of thousands has.
const EDGES: usize = 1 << 15;

/// How often members probe each other, and what is made of it.
#[derive(Clone, Copy, Debug)]
pub struct ProbeRules {
    /// Between two pairs of a member, ns.
    pub period: Nanos,
    /// Between the two probes of a pair, ns.
    pub gap: Nanos,
    /// Of the estimator.
    pub estimator: EstimatorRules,
}

impl ProbeRules {
    /// The same, with another difference of a pair's gaps that still counts as pure, ns.
    pub fn with_tolerance(self, tolerance: Nanos) -> ProbeRules {
        ProbeRules { estimator: EstimatorRules { tolerance, ..self.estimator }, ..self }
    }
}

impl Default for ProbeRules {
    /// Machines whose network cards do not stamp: software is some microseconds late, now and then.
    fn default() -> ProbeRules {
        let estimator =
            EstimatorRules { tolerance: 5_000, window: 5_000_000_000, samples: PAIRS * 2, ..EstimatorRules::default() };
        ProbeRules { period: 20_000_000, gap: 20_000, estimator }
    }
}

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    epoch: u32,
    from: MemberId,
    pair: u64,
    is_second: bool,
    sent: Nanos,
}

impl Probe {
    fn encode(&self, to: MemberId, key: &PacketKey) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        bytes.extend_from_slice(&self.from.to_be_bytes());
        bytes.extend_from_slice(&self.pair.to_be_bytes());
        bytes.push(u8::from(self.is_second));
        bytes.extend_from_slice(&self.sent.to_be_bytes());
        let tag = key.tag(PROBE, &[&bytes, &to.to_be_bytes()]);
        bytes.extend_from_slice(&tag);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Probe> {
        let bytes: &[u8; PROBE_BYTES] = bytes.try_into().ok()?;
        let eight = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        (bytes[0] == FORMAT && bytes[21] <= 1).then_some(Probe {
            epoch: u32::from_be_bytes(std::array::from_fn(|at| bytes[1 + at])),
            from: eight(5),
            pair: eight(13),
            is_second: bytes[21] == 1,
            sent: eight(22),
        })
    }
}

/// Whom a member probes: those 1, 4, 16 … places before and after it, around the whole tree. So every edge is probed
/// both ways, and between any two members are a few edges.
fn targets(seating: &Seating, member: MemberId) -> Vec<Seat> {
    let all: Vec<&Seat> = seating.members().collect();
    let Some(own) = all.iter().position(|seat| seat.member == member) else { return Vec::new() };
    let mut found: Vec<Seat> = Vec::new();
    let steps = std::iter::successors(Some(1), |step| Some(step * 4)).take_while(|step| step * 2 <= all.len());
    for step in steps {
        for at in [own + step, own + all.len() - step] {
            let seat = all[at % all.len()];
            if !found.contains(seat) {
                found.push(*seat);
            }
        }
    }
    found
}

/// A member's side: sends pairs, and notes those of others.
#[derive(Debug)]
pub(super) struct Prober {
    member: MemberId,
    rules: ProbeRules,
    next: Nanos,
    /// Pairs so far.
    pairs: u64,
    /// To whom the second probe of a pair goes, and when.
    second: Option<(Seat, Nanos)>,
    /// By sender: its last pair, and the first probe of it, sent and received, until the second one has come.
    heard: BTreeMap<MemberId, (u64, Option<(Nanos, Nanos)>)>,
}

impl Prober {
    /// `now` numbers pairs above those of an earlier life.
    pub(super) fn new(now: Nanos, member: MemberId, rules: ProbeRules) -> Prober {
        Prober { member, rules, next: now, pairs: now, second: None, heard: BTreeMap::new() }
    }

    pub(super) fn due(&self) -> Nanos {
        self.second.map_or(self.next, |(_, at)| at)
    }

    /// Sends what is due.
    pub(super) fn tick(&mut self, now: Nanos, (seating, secret): (&Seating, &[u8; 32]), out: &mut Vec<EdgeEffect>) {
        if now < self.due() {
            return;
        }
        let epoch = seating.epoch();
        let (seat, is_second) = match self.second.take() {
            Some((seat, _)) => (seat, true),
            None => {
                self.next = now.saturating_add(self.rules.period);
                self.pairs += 1;
                let targets = targets(seating, self.member);
                let Some(seat) = targets.get(self.pairs as usize % targets.len().max(1)) else { return };
                self.second = Some((*seat, now.saturating_add(self.rules.gap)));
                (*seat, false)
            }
        };
        let probe = Probe { epoch, from: self.member, pair: self.pairs, is_second, sent: now };
        let bytes = probe.encode(seat.member, &PacketKey::of_epoch(secret, epoch));
        out.push(EdgeEffect::Datagram(seat.place.datagrams, Arc::from(bytes)));
    }

    /// Whether a datagram is a probe; one that completes a pair is told.
    pub(super) fn hear(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        (seating, secret): (&Seating, &[u8; 32]),
        complete: impl FnOnce(MemberId, ProbePair),
    ) -> bool {
        let Some(probe) = Probe::decode(bytes) else { return false };
        let is_present = probe.epoch == seating.epoch() && seating.spot_of(probe.from).is_some();
        let tag = |key: PacketKey| key.tag(PROBE, &[&bytes[..HEAD], &self.member.to_be_bytes()]);
        if !is_present || !is_equal(&tag(PacketKey::of_epoch(secret, probe.epoch)), &bytes[HEAD..]) {
            return true;
        }
        let heard = self.heard.entry(probe.from).or_default();
        match (probe.is_second, heard.1) {
            (false, _) if probe.pair > heard.0 => *heard = (probe.pair, Some((probe.sent, now))),
            (true, Some((sent, received))) if probe.pair == heard.0 => {
                heard.1 = None;
                complete(probe.from, ProbePair { sent: [sent, probe.sent], received: [received, now] });
            }
            _ => {}
        }
        true
    }

    /// A probe that came to a member other than the root.
    pub(super) fn hear_and_tell(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        tree: (&Seating, &[u8; 32]),
        out: &mut Vec<EdgeEffect>,
    ) -> bool {
        self.hear(now, bytes, tree, |from, pair| {
            let message = LinkMessage::Probed(from, pair);
            out.push(EdgeEffect::Message(LinkEnd::control(ROOT_MEMBER), message));
        })
    }

    /// Forgets the probes of those who left.
    pub(super) fn configured(&mut self, seating: &Seating) {
        self.heard.retain(|member, _| seating.spot_of(*member).is_some());
        self.second = None;
    }
}

/// The last probes between members, as the root has them.
#[derive(Clone, Debug)]
pub struct ClockMesh {
    rules: EstimatorRules,
    edges: BTreeMap<(MemberId, MemberId), VecDeque<ProbePair>>,
}

impl ClockMesh {
    /// No probes yet.
    pub fn new(rules: EstimatorRules) -> ClockMesh {
        ClockMesh { rules, edges: BTreeMap::new() }
    }

    /// A pair of `from` that `to` has received.
    pub(super) fn add(&mut self, from: MemberId, to: MemberId, pair: ProbePair) {
        if self.edges.len() >= EDGES && !self.edges.contains_key(&(from, to)) {
            return;
        }
        let pairs = self.edges.entry((from, to)).or_default();
        if pairs.len() == PAIRS {
            pairs.pop_front();
        }
        pairs.push_back(pair);
    }

    /// Forgets the clocks of those who left.
    pub(super) fn configured(&mut self, seating: &Seating) {
        let is_here = |member: MemberId| seating.spot_of(member).is_some();
        self.edges.retain(|(from, to), _| is_here(*from) && is_here(*to));
    }

    /// By member: how far its clock is ahead of the root's, with the bound of the error; at this time of the root's
    /// clock. Members of whom too little is known are left out. Takes milliseconds for hundreds of members.
    pub fn estimates(&self, now: Nanos) -> BTreeMap<MemberId, ClockEstimate> {
        let mut members: Vec<MemberId> = self.edges.keys().flat_map(|(from, to)| [*from, *to]).collect();
        members.push(ROOT_MEMBER);
        members.sort_unstable();
        members.dedup();
        let index = |member: &MemberId| members.binary_search(member).map_or(u32::MAX, |at| at as u32);
        let mut estimator = Estimator::new(members.len(), self.rules);
        for ((from, to), pairs) in &self.edges {
            pairs.iter().for_each(|pair| estimator.probe(index(from), index(to), pair));
        }
        let found = estimator.estimate(now);
        members.iter().copied().zip(found).filter_map(|(member, estimate)| Some((member, estimate?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_survive_their_datagrams_and_nothing_else_is_one() {
        let (probe, key) =
            (Probe { epoch: 7, from: 9, pair: 3, is_second: true, sent: 5 }, PacketKey::of_epoch(&[1; 32], 7));
        let bytes = probe.encode(2, &key);
        assert_eq!((bytes.len(), Probe::decode(&bytes)), (PROBE_BYTES, Some(probe)));
        for length in 0..PROBE_BYTES {
            assert_eq!(Probe::decode(&bytes[..length]), None);
        }
        for (at, byte) in [(0, 1), (21, 2)] {
            let mut other = bytes.clone();
            other[at] = byte;
            assert_eq!(Probe::decode(&other), None);
        }
    }
}
