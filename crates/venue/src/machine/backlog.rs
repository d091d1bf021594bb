//! When matching pauses: what is unsettled must be settled in time, and bond and balance must cover it twice.

use primitives::WEIGHT_BYTES;
use primitives::venue::{ORDER_LISTS_RULES, OrderSignature};

use super::VenueMachine;
use super::outbox::{is_operator, operator};
use crate::mistake::VenueMistake;
use crate::order::Order;
use crate::refusal::VenuePause;
use crate::settings::{FILL_BYTES, FILL_WEIGHT, ORDER_BYTES_MAX, PATH_BYTES_MAX, SETTLE_BYTES, entry_weight};

/// What more fills would add to what is unsettled, at most.
#[derive(Clone, Copy, Default)]
pub(super) struct Added {
    pub penalties: u128,
    pub weight: u64,
    pub bytes: u64,
}

impl VenueMachine {
    /// Whether orders of lists are taken: the ledger counts them from the next block on, and a settle has room.
    pub(crate) fn takes_lists(&self) -> bool {
        let counts = self.core.rules >= ORDER_LISTS_RULES || self.has(VenueMistake::ListsBeforeTheirRules);
        counts && self.core.settings.has_room_for_lists()
    }

    /// Counts an unsettled fill, without its orders, or no more.
    pub(super) fn count_fill(&mut self, is_pending: bool) {
        let core = &mut self.core;
        let (weight, bytes) = (FILL_WEIGHT, FILL_BYTES as u64);
        match is_pending {
            true => (core.weight, core.bytes) = (core.weight + weight, core.bytes + bytes),
            false => (core.weight, core.bytes) = (core.weight - weight, core.bytes - bytes),
        }
    }

    /// What an order weighs in the settle of its unsettled fills.
    pub(super) fn order_weight(&self, slot: u32, order: &Order) -> u64 {
        match order.fills().unsettled {
            0 => 0,
            _ if order.has_entry => entry_weight(0),
            _ => entry_weight(order.terms.expiry.saturating_sub(order.since)) + self.path_bytes(slot) as u64,
        }
    }

    /// The most bytes that an order takes in the settles of its unsettled fills. An order of several fills counts
    /// twice: they may stand in more than one settle. Twice is enough on average, since only the first order of a
    /// queue trades, and one behind it becomes the first only when those before it have ended.
    pub(super) fn order_bytes(&self, slot: u32, order: &Order) -> u64 {
        match order.fills().unsettled {
            0 => 0,
            some => u64::from(some.min(2)) * self.bytes_in_settle(slot) as u64,
        }
    }

    /// The most bytes that an order takes in one settle.
    pub(super) fn bytes_in_settle(&self, slot: u32) -> usize {
        ORDER_BYTES_MAX + self.path_bytes(slot)
    }

    fn path_bytes(&self, slot: u32) -> usize {
        let is_listed = matches!(self.core.order_proof(slot).signature, OrderSignature::Listed(_));
        if is_listed && !self.has(VenueMistake::PathsForgotten) { PATH_BYTES_MAX } else { 0 }
    }

    /// The most bytes that all unsettled fills take in settles, computed anew.
    pub(super) fn bytes_of_all(&self) -> u64 {
        let orders = self.core.filled_slots().map(|(slot, order)| self.order_bytes(slot, order)).sum::<u64>();
        orders + FILL_BYTES as u64 * self.core.pending.len() as u64
    }

    /// What all unsettled fills weigh, computed anew.
    pub(super) fn weight_of_all(&self) -> u64 {
        let orders = self.core.filled_slots().map(|(slot, order)| self.order_weight(slot, order)).sum::<u64>();
        orders + FILL_WEIGHT * self.core.pending.len() as u64
    }

    /// What so many fills add at most, in which so many orders have one fill and so many have more.
    pub(super) fn added(&self, penalties: u128, fills: u64, [once, often]: [u64; 2]) -> Added {
        let life = self.core.settings.life_max();
        let path = if self.takes_lists() { PATH_BYTES_MAX as u64 } else { 0 };
        let weight = fills * FILL_WEIGHT + (once + often).saturating_mul(entry_weight(life) + path);
        let bytes = fills * FILL_BYTES as u64 + (once + 2 * often) * (ORDER_BYTES_MAX as u64 + path);
        Added { penalties, weight, bytes }
    }

    /// Why matching pauses if so much more is unsettled.
    pub(super) fn pause_for(&self, Added { penalties, weight, bytes }: Added) -> Option<VenuePause> {
        let Some(standing) = self.core.standing else { return Some(VenuePause::NoBlocks) };
        let chain = &self.core.settings.terms;
        let needed = u128::from(chain.bond_min) + 2 * (self.core.penalties + penalties);
        if u128::from(standing.bond) < needed && !self.has(VenueMistake::BondForgotten) {
            return Some(VenuePause::Bond);
        }
        let most = u64::from(self.core.settings.limits.backlog_settles) * self.core.settings.settle_room();
        if self.core.bytes.saturating_add(bytes) > most && !self.has(VenueMistake::BacklogUnbounded) {
            return Some(VenuePause::Backlog);
        }
        let weight = self.core.weight.saturating_add(weight);
        let settles = weight / u64::from(chain.settle_bytes) + 1;
        let bytes = u128::from(weight) + u128::from(settles) * SETTLE_BYTES as u128;
        let fees = 2 * (bytes / u128::from(WEIGHT_BYTES) + u128::from(settles));
        let balance = operator(self).map_or(0, |operator| operator.balance);
        (u128::from(balance) < fees * u128::from(chain.fee)).then_some(VenuePause::Fees)
    }

    /// Pauses, or goes on.
    pub(super) fn look_for_pause(&mut self) {
        let paused = self.pause();
        if paused != self.core.paused {
            self.core.paused = paused;
            self.tell_pause();
        }
    }

    fn pause(&self) -> Option<VenuePause> {
        let core = &self.core;
        let is_quiet = |heard: u64| core.now_ms - heard >= core.settings.limits.quiet_ms;
        if core.heard_ms.is_none_or(is_quiet) {
            return Some(VenuePause::NoBlocks);
        }
        if core.standing.is_some() && !is_operator(self) {
            return Some(VenuePause::Operator);
        }
        if core.newest - core.height() > core.settings.terms.delay.heights / 4 {
            return Some(VenuePause::Behind);
        }
        if self.is_late() && !self.has(VenueMistake::NeverLate) {
            return Some(VenuePause::Late);
        }
        self.pause_for(Added::default())
    }

    /// Whether the oldest unsettled fill is half of D old.
    fn is_late(&self) -> bool {
        let half = self.core.settings.terms.delay.heights / 2;
        self.core.pending.front().is_some_and(|oldest| self.core.newest - oldest.fill.matched >= half)
    }
}
