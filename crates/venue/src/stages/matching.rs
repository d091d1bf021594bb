//! The first stage: inputs are matched, and what they came to is encoded.

use primitives::venue::{MarketId, OrderNumber, VenueOrder};
use primitives::{Body, Digest, PublicKey, Transaction};

use super::MatchedStep;
use crate::input::{SessionNumber, VenueInput};
use crate::keys::VenueKeys;
use crate::machine::{VenueMachine, audit, digest};
use crate::record::{KnownKeys, encode_outcome, encode_step};
use crate::refusal::{VenuePause, VenueStop};
use crate::report::{MarketImage, OrderStanding, VenueFill};
use crate::settings::{MarketSettings, VenueSettings};

/// The state that inputs are matched on. It may be ahead of the journal by the steps that [`MatchingStage::take`] has
/// returned and the second stage has not written. Nothing of those may be told.
pub struct MatchingStage {
    pub(crate) machine: VenueMachine,
    keys: VenueKeys,
    pub(crate) known_keys: KnownKeys,
    /// The number of the last record.
    record: u64,
    /// Room that earlier steps have used.
    rooms: Vec<StepRoom>,
}

/// Memory of a step that was written, to be used again.
#[derive(Default)]
pub(crate) struct StepRoom {
    pub record: Vec<u8>,
    pub outcome: Vec<u8>,
    pub fills: Vec<VenueFill>,
}

impl MatchingStage {
    pub(crate) fn new(machine: VenueMachine, keys: VenueKeys, record: u64) -> MatchingStage {
        let known_keys = KnownKeys::default();
        known_keys.follow(&machine.core);
        MatchingStage { machine, keys, known_keys, record, rooms: Vec::new() }
    }

    /// Matches inputs in their order, at a time of the host's clock in milliseconds. What they came to is the next
    /// record.
    pub fn take(&mut self, clock_ms: u64, inputs: &[VenueInput]) -> MatchedStep {
        let (before, known) = (self.machine.core.tree.count(), self.machine.core.keys.len() as u32);
        self.machine.step(clock_ms, inputs);
        debug_assert_eq!(audit(&self.machine), Ok(()), "sums follow from orders and fills");
        self.known_keys.follow(&self.machine.core);
        let StepRoom { mut record, mut outcome, mut fills } = self.rooms.pop().unwrap_or_default();
        encode_outcome(before, &self.machine, &mut outcome);
        encode_step(clock_ms, inputs, (&self.machine.core, known), &mut record);
        let (signed_at_ms, settings) = (self.machine.step_clock(), *self.settings());
        std::mem::swap(&mut fills, &mut self.machine.fills);
        // The next step makes about as much.
        let next = Vec::with_capacity(self.machine.made.len());
        let made = std::mem::replace(&mut self.machine.made, next);
        self.record += 1;
        MatchedStep { number: self.record, made, fills, signed_at_ms, settings, record, outcome }
    }

    /// Takes back the memory of a step that was written.
    pub(crate) fn reuse(&mut self, room: StepRoom) {
        self.rooms.push(room);
    }

    /// How many effects were made: the number of the next one.
    pub fn effects_told(&self) -> u64 {
        self.machine.core.effects
    }

    /// The number of the last record.
    pub fn last_record(&self) -> u64 {
        self.record
    }

    /// What the root was told once.
    pub fn settings(&self) -> &VenueSettings {
        &self.machine.core.settings
    }

    /// A digest of the whole state: equal after a restart.
    pub fn digest(&self) -> Digest {
        digest(&self.machine)
    }

    /// The height of the last certified block; the host gives the next one. `None` before the first.
    pub fn height(&self) -> Option<u64> {
        self.machine.core.horizon.as_ref().map(|horizon| horizon.height())
    }

    /// Fills so far, and how many of them are settled or bust.
    pub fn counts(&self) -> (u64, u64) {
        (self.machine.core.tree.count(), self.machine.core.settled())
    }

    /// Sessions that are attached; after a restart their links are broken.
    pub fn sessions(&self) -> Vec<SessionNumber> {
        let attached = self.machine.core.sessions.iter().filter(|(_, of)| of.is_attached);
        attached.map(|(session, _)| *session).collect()
    }

    /// The keys for which an attached session trades.
    pub fn keys_of(&self, session: SessionNumber) -> &[PublicKey] {
        self.machine.core.sessions.get(&session).map_or(&[], |of| &of.keys)
    }

    /// When by the host's clock a step is due although nothing happens: a session's timer fires, or matching pauses.
    pub fn wants_step_at_ms(&self) -> Option<u64> {
        let core = &self.machine.core;
        let timers = core.sessions.values().filter_map(|of| of.deadline_ms);
        let quiet = core.heard_ms.map(|heard| heard.saturating_add(core.settings.limits.quiet_ms));
        let next = timers.chain(quiet.filter(|at| *at > core.now_ms)).min()?;
        Some(core.clock_ms.saturating_add(next.saturating_sub(core.now_ms)))
    }

    /// The settle in flight, before it is signed.
    pub fn in_flight_body(&self) -> Option<&Body> {
        Some(&self.machine.core.in_flight()?.body)
    }

    /// The settle in flight.
    pub fn in_flight(&self) -> Option<Transaction> {
        Some(self.in_flight_body()?.clone().sign(&self.settings().network, &self.keys.operator))
    }

    /// Why matching pauses.
    pub fn paused(&self) -> Option<VenuePause> {
        self.machine.core.paused
    }

    /// Whether lists of orders are taken: the certified height counts them.
    pub fn takes_lists(&self) -> bool {
        self.machine.takes_lists()
    }

    /// Why the root has stopped.
    pub fn stopped(&self) -> Option<VenueStop> {
        self.machine.core.stopped
    }

    /// How an order stands.
    pub fn standing(&self, key: &PublicKey, number: &OrderNumber) -> Option<OrderStanding> {
        self.machine.standing(key, number)
    }

    /// An order that was taken, and that is not forgotten.
    pub fn order(&self, key: &PublicKey, number: &OrderNumber) -> Option<&VenueOrder> {
        self.machine.order(key, number)
    }

    /// Where an open order stands in its queue; walks the orders before it.
    pub fn position(&self, key: &PublicKey, number: &OrderNumber) -> Option<matching::Position> {
        self.machine.position(key, number)
    }

    /// An open market with its resting orders, for readers of market data that begin or missed something.
    pub fn image(&self, market: MarketId) -> Option<MarketImage> {
        self.machine.image(market)
    }

    /// The number of the last event of an open market that was told.
    pub fn told(&self, market: MarketId) -> Option<u64> {
        self.machine.told(market)
    }

    /// Open markets.
    pub fn markets(&self) -> impl Iterator<Item = MarketId> {
        self.machine.open_markets()
    }

    /// The book of an open market.
    pub fn book(&self, market: MarketId) -> Option<&matching::Book> {
        self.machine.book(market)
    }

    /// How an open market is run.
    pub fn market_settings(&self, market: MarketId) -> Option<&MarketSettings> {
        self.machine.market_settings(market)
    }
}
