//! What a node of the tree does with a packet: the first authentic copy wins, and a proxy sends it on (Onyx §4.1,
//! §4.2).
//!
//! Upon a packet, a node looks in this order:
//!
//! 1. epoch and session: is there a plan for it that still counts?
//! 2. sequence: was it seen? Then it is a duplicate, and costs nothing more;
//! 3. MAC: is it authentic? Then, and only then, it is marked as seen: the first copy has won;
//! 4. a proxy keeps it in its ring, for rewinds, and sends it to its children of this packet.
//!
//! # Properties
//!
//! - A node takes each packet at most once, and verifies at most one authentic copy of it.
//! - Forged bytes displace nothing: whatever came before, the first authentic copy is taken and sent on.
//! - A rewind is answered to registered addresses alone, with at most a budget of bytes for each.
//!
//! # Deviations from the paper
//!
//! - *Authentication* (steps 1 and 3): the paper has none. The MAC stands after the duplicate check, so that hedging
//!   multiplies no hashing, and before the mark, so that a forgery cannot pass for the first copy.
//! - *Rings.* The paper has one rewinder service. Here parents keep the last packets, so that losses of a whole layer
//!   do not meet at the root.

use std::collections::BTreeMap;

use crate::Nanos;
use crate::packet::{EnvelopeError, PacketHeader, PacketKey, RewindRequest};
use crate::plan::{Plan, Plans, Spot};
use crate::seen::SeenWindow;

/// Why a packet goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDrop {
    /// No envelope.
    Malformed(EnvelopeError),
    /// Epoch without a plan that counts, another session, or another tree.
    Stale,
    /// A copy was taken before, or so many packets ago that it no longer matters.
    Duplicate,
    /// The MAC is wrong.
    Forged,
}

/// Which packets a node took: the first authentic copy of each.
#[derive(Clone, Debug)]
pub struct FirstCopy {
    plans: Plans,
    keys: Vec<(u32, PacketKey)>,
    session: [u8; 10],
    /// By tree.
    seen: Vec<SeenWindow>,
    span: usize,
}

impl FirstCopy {
    /// A node of this plan. `span` packets of each tree are remembered, and old plans count for `overlap` ns.
    pub fn new(plan: Plan, session: [u8; 10], key: PacketKey, span: usize, overlap: Nanos) -> FirstCopy {
        let seen = vec![SeenWindow::new(span); plan.trees().into()];
        let keys = vec![(plan.epoch(), key)];
        FirstCopy { plans: Plans::new(plan, overlap), keys, session, seen, span }
    }

    /// Goes on with another plan and its key; false if its epoch is not above the current one.
    pub fn install(&mut self, now: Nanos, plan: Plan, key: PacketKey) -> bool {
        let (epoch, trees) = (plan.epoch(), usize::from(plan.trees()));
        if !self.plans.install(now, plan) {
            return false;
        }
        // Two epochs overlap at most, so two keys are enough.
        let keep = self.keys.len().saturating_sub(1);
        self.keys.drain(..keep);
        self.keys.push((epoch, key));
        self.seen.resize_with(trees.max(self.seen.len()), || SeenWindow::new(self.span));
        true
    }

    /// The session whose packets count.
    pub fn session(&self) -> [u8; 10] {
        self.session
    }

    /// Begins another session: numbers start again.
    pub fn begin(&mut self, session: [u8; 10]) {
        self.session = session;
        self.seen.iter_mut().for_each(|seen| *seen = SeenWindow::new(self.span));
    }

    /// The key of an epoch that still counts.
    pub fn key(&self, now: Nanos, epoch: u32) -> Option<&PacketKey> {
        self.plans.of(now, epoch)?;
        self.keys.iter().find(|(known, _)| *known == epoch).map(|(_, key)| key)
    }

    /// Takes a packet, or says why not. `is_authentic` is called for packets that would be taken, and only for them.
    #[inline]
    pub fn take(
        &mut self,
        now: Nanos,
        header: &PacketHeader,
        is_authentic: impl FnOnce(&PacketKey) -> bool,
    ) -> Result<&Plan, PacketDrop> {
        let plan = self.plans.of(now, header.epoch).ok_or(PacketDrop::Stale)?;
        let is_known = header.session == self.session && header.tree < plan.trees();
        let seen = self.seen.get_mut(usize::from(header.tree)).filter(|_| is_known).ok_or(PacketDrop::Stale)?;
        if seen.has(header.sequence) {
            return Err(PacketDrop::Duplicate);
        }
        let key = self.keys.iter().find(|(known, _)| *known == header.epoch).ok_or(PacketDrop::Stale)?;
        if !is_authentic(&key.1) {
            return Err(PacketDrop::Forged);
        }
        seen.insert(header.sequence);
        Ok(plan)
    }
}

/// The last packets of a tree, as they were received.
#[derive(Clone, Debug)]
pub struct PacketRing {
    slots: Box<[(u64, Vec<u8>)]>,
}

impl PacketRing {
    /// Keeps at least `packets` packets.
    pub fn new(packets: usize) -> PacketRing {
        PacketRing { slots: vec![(0, Vec::new()); packets.next_power_of_two()].into() }
    }

    fn place(&self, sequence: u64) -> usize {
        sequence as usize & (self.slots.len() - 1)
    }

    /// Keeps a packet in the place of the oldest.
    pub fn put(&mut self, sequence: u64, bytes: &[u8]) {
        let slot = &mut self.slots[self.place(sequence)];
        slot.0 = sequence;
        slot.1.clear();
        slot.1.extend_from_slice(bytes);
    }

    /// A packet that is still there.
    pub fn get(&self, sequence: u64) -> Option<&[u8]> {
        let (kept, bytes) = &self.slots[self.place(sequence)];
        (*kept == sequence && sequence != 0).then_some(bytes)
    }
}

/// Bytes that may be sent: refilled with time up to a bound.
#[derive(Clone, Copy, Debug)]
pub struct ByteBudget {
    left: u64,
    most: u64,
    per_second: u64,
    /// Nanoseconds of refill that were less than a byte.
    rest: u64,
    at: Nanos,
}

const SECOND: u64 = 1_000_000_000;

impl ByteBudget {
    /// A full budget.
    pub fn new(now: Nanos, most: u64, per_second: u64) -> ByteBudget {
        ByteBudget { left: most, most, per_second, rest: 0, at: now }
    }

    fn refill(&mut self, now: Nanos) {
        // Longer pauses fill it anyway, and the product stays far from its limit.
        let passed = now.saturating_sub(self.at).min(1_000 * SECOND);
        let due = u128::from(passed) * u128::from(self.per_second) + u128::from(self.rest);
        self.left = self.left.saturating_add((due / u128::from(SECOND)) as u64).min(self.most);
        self.rest = (due % u128::from(SECOND)) as u64;
        self.at = self.at.max(now);
    }

    /// Takes bytes off it; false if there are too few.
    pub fn spend(&mut self, now: Nanos, bytes: u64) -> bool {
        self.refill(now);
        let is_enough = self.left >= bytes;
        self.left -= if is_enough { bytes } else { 0 };
        is_enough
    }
}

/// Bounds of a relay.
#[derive(Clone, Copy, Debug)]
pub struct RelayLimits {
    /// Packets of each tree whose duplicates are recognised.
    pub span: usize,
    /// Packets kept for rewinds.
    pub ring: usize,
    /// How long the plan before counts, ns.
    pub overlap: Nanos,
    /// Bytes of rewinds that an address may be sent at once.
    pub rewind_burst: u64,
    /// Bytes of rewinds that an address may be sent each second.
    pub rewind_rate: u64,
}

impl Default for RelayLimits {
    fn default() -> RelayLimits {
        RelayLimits { span: 1 << 16, ring: 1 << 12, overlap: SECOND, rewind_burst: 1 << 18, rewind_rate: 4 << 20 }
    }
}

/// What a relay is told.
#[derive(Clone, Debug)]
pub enum RelayInput<'a> {
    /// A datagram.
    Packet(&'a [u8]),
    /// A request to send again, and the address that it came from.
    Rewind(u64, RewindRequest),
    /// A plan, its key, and where this relay is in it.
    Install(Spot, Plan, PacketKey),
    /// Another session of the feed.
    Begin([u8; 10]),
    /// Rewinds may go to this address.
    Register(u64),
    /// Rewinds no longer go to this address.
    Forget(u64),
}

/// What a relay does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEffect {
    /// Sends the datagram that it was given to a child.
    Forward(Spot),
    /// Does nothing with the datagram.
    Dropped(PacketDrop),
    /// Sends a packet of its ring to a registered address.
    Resend(u64, u64),
    /// Does not answer a request.
    Refused(RewindRefusal),
}

/// Why a request to send again is not answered, or not wholly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindRefusal {
    /// The address is not registered.
    Unregistered,
    /// The MAC is wrong, or the epoch has no key.
    Forged,
    /// A packet is no longer in the ring: ask another parent.
    Gone(u64),
    /// The address has used up its budget.
    Exhausted,
}

/// A proxy: takes the first authentic copy of each packet, sends it on and answers rewinds. One tree, one relay.
#[derive(Clone, Debug)]
pub struct Relay {
    /// By epoch: where this relay is in the plans that may count.
    spots: Vec<(u32, Spot)>,
    tree: u16,
    first: FirstCopy,
    ring: PacketRing,
    peers: BTreeMap<u64, ByteBudget>,
    limits: RelayLimits,
}

impl Relay {
    /// The proxy at `at`: a tree and a position in it.
    pub fn new(at: (u16, Spot), plan: Plan, session: [u8; 10], key: PacketKey, limits: RelayLimits) -> Relay {
        let spots = vec![(plan.epoch(), at.1)];
        let first = FirstCopy::new(plan, session, key, limits.span, limits.overlap);
        Relay { spots, tree: at.0, first, ring: PacketRing::new(limits.ring), peers: BTreeMap::new(), limits }
    }

    /// The session whose packets it forwards.
    pub fn session(&self) -> [u8; 10] {
        self.first.session()
    }

    /// One step.
    pub fn step(&mut self, now: Nanos, input: RelayInput<'_>, out: &mut Vec<RelayEffect>) {
        match input {
            RelayInput::Packet(bytes) => self.on_packet(now, bytes, out),
            RelayInput::Rewind(from, request) => self.on_rewind(now, from, &request, out),
            RelayInput::Install(spot, plan, key) => self.install(now, spot, plan, key),
            RelayInput::Begin(session) => {
                self.first.begin(session);
                self.ring = PacketRing::new(self.limits.ring);
            }
            RelayInput::Register(peer) => {
                let RelayLimits { rewind_burst, rewind_rate, .. } = self.limits;
                self.peers.entry(peer).or_insert_with(|| ByteBudget::new(now, rewind_burst, rewind_rate));
            }
            RelayInput::Forget(peer) => {
                self.peers.remove(&peer);
            }
        }
    }

    fn install(&mut self, now: Nanos, spot: Spot, plan: Plan, key: PacketKey) {
        let epoch = plan.epoch();
        if self.first.install(now, plan, key) {
            let keep = self.spots.len().saturating_sub(1);
            self.spots.drain(..keep);
            self.spots.push((epoch, spot));
        }
    }

    /// A packet of the ring: what [`RelayEffect::Resend`] sends.
    pub fn kept(&self, sequence: u64) -> Option<&[u8]> {
        self.ring.get(sequence)
    }

    fn on_packet(&mut self, now: Nanos, bytes: &[u8], out: &mut Vec<RelayEffect>) {
        if let Err(why) = self.packet(now, bytes, |child| out.push(RelayEffect::Forward(child))) {
            out.push(RelayEffect::Dropped(why));
        }
    }

    /// A step for a datagram: `forward` is told each child that it goes to.
    ///
    /// # Errors
    /// Why it goes no further.
    #[inline]
    pub fn packet(&mut self, now: Nanos, bytes: &[u8], forward: impl FnMut(Spot)) -> Result<(), PacketDrop> {
        let (header, _) = PacketHeader::open(bytes).map_err(PacketDrop::Malformed)?;
        self.take(now, &header, |key: &PacketKey| PacketHeader::is_authentic(bytes, key), forward)?;
        self.ring.put(header.sequence, bytes);
        Ok(())
    }

    /// What becomes of a packet with this header: the part of a step that needs no bytes. A simulator calls it.
    #[inline]
    pub fn forward(
        &mut self,
        now: Nanos,
        header: &PacketHeader,
        is_authentic: impl FnOnce(&PacketKey) -> bool,
        out: &mut Vec<RelayEffect>,
    ) -> Result<(), PacketDrop> {
        self.take(now, header, is_authentic, |child| out.push(RelayEffect::Forward(child)))
    }

    #[inline]
    fn take(
        &mut self,
        now: Nanos,
        header: &PacketHeader,
        is_authentic: impl FnOnce(&PacketKey) -> bool,
        forward: impl FnMut(Spot),
    ) -> Result<(), PacketDrop> {
        if header.tree != self.tree {
            return Err(PacketDrop::Stale);
        }
        let plan = self.first.take(now, header, is_authentic)?;
        // A packet goes on by the plan that it was sent by, and by the place that this relay had in it.
        let spot = self.spots.iter().find(|(epoch, _)| *epoch == header.epoch).map(|(_, spot)| *spot);
        spot.into_iter().flat_map(|spot| plan.children(spot, header.sequence)).for_each(forward);
        Ok(())
    }

    fn on_rewind(&mut self, now: Nanos, from: u64, request: &RewindRequest, out: &mut Vec<RelayEffect>) {
        let Some(budget) = self.peers.get_mut(&from) else {
            return out.push(RelayEffect::Refused(RewindRefusal::Unregistered));
        };
        if !self.first.key(now, request.epoch).is_some_and(|key| request.is_authentic(from, key)) {
            return out.push(RelayEffect::Refused(RewindRefusal::Forged));
        }
        let is_ours = request.tree == self.tree;
        for sequence in request.first..request.first.saturating_add(request.count.into()) {
            let Some(bytes) = self.ring.get(sequence).filter(|_| is_ours) else {
                out.push(RelayEffect::Refused(RewindRefusal::Gone(sequence)));
                continue;
            };
            if !budget.spend(now, bytes.len() as u64) {
                return out.push(RelayEffect::Refused(RewindRefusal::Exhausted));
            }
            out.push(RelayEffect::Resend(from, sequence));
        }
    }
}
