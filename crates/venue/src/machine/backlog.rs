//! When matching pauses: what is unsettled must be settled in time, and bond and balance must cover it twice.

use primitives::WEIGHT_BYTES;

use super::VenueMachine;
use crate::mistake::VenueMistake;
use crate::refusal::VenuePause;
use crate::settings::{FILL_BYTES, ORDER_BYTES_MAX, SETTLE_BYTES};
use crate::state::Order;

// What a settle weighs, as `primitives` counts it, rounded up.
const FILL_WEIGHT: u64 = 256 + FILL_BYTES as u64;
const SIGNATURE_WEIGHT: u64 = 512;
const ENTRY_WEIGHT: u64 = 256;
const LIFE_HEIGHTS: u64 = 1_024;
const ORDER_WEIGHT: u64 = ORDER_BYTES_MAX as u64 + SIGNATURE_WEIGHT + ENTRY_WEIGHT;

/// What an order weighs in the settle of its unsettled fills.
pub(super) fn order_weight(order: &Order) -> u64 {
    let life = order.terms().expiry.saturating_sub(order.since) / LIFE_HEIGHTS;
    match order.unsettled {
        0 => 0,
        _ if order.has_entry => ORDER_WEIGHT,
        _ => ORDER_WEIGHT + life * ENTRY_WEIGHT,
    }
}

impl VenueMachine {
    /// What an unsettled fill weighs, without its orders.
    pub(super) fn weigh_fill(&mut self, is_pending: bool) {
        let weight = &mut self.core.weight;
        *weight = if is_pending { *weight + FILL_WEIGHT } else { *weight - FILL_WEIGHT };
    }

    /// What all unsettled fills weigh, computed anew.
    pub(super) fn weight_of_all(&self) -> u64 {
        let orders = self.core.orders.iter().flatten().map(order_weight).sum::<u64>();
        orders + FILL_WEIGHT * self.core.pending.len() as u64
    }

    /// The most that so many fills of so many orders can weigh.
    pub(super) fn heaviest(&self, fills: u64, orders: u64) -> u64 {
        let life = self.core.settings.life_max() / LIFE_HEIGHTS;
        fills * FILL_WEIGHT + orders.saturating_mul(ORDER_WEIGHT + life * ENTRY_WEIGHT)
    }

    /// Why matching pauses if so many units of penalties more, and fills of so much weight, are unsettled.
    pub(super) fn pause_for(&self, penalties: u128, weight: u64) -> Option<VenuePause> {
        let Some(standing) = self.core.standing else { return Some(VenuePause::NoBlocks) };
        let chain = &self.core.settings.terms;
        let needed = u128::from(chain.bond_min) + 2 * (self.core.penalties + penalties);
        if u128::from(standing.bond) < needed && !self.has(VenueMistake::BondForgotten) {
            return Some(VenuePause::Bond);
        }
        let weight = self.core.weight.saturating_add(weight);
        let settles = weight / u64::from(chain.settle_bytes) + 1;
        let bytes = u128::from(weight) + u128::from(settles) * SETTLE_BYTES as u128;
        let fees = 2 * (bytes / u128::from(WEIGHT_BYTES) + u128::from(settles));
        let balance = self.operator().map_or(0, |operator| operator.balance);
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
        if core.horizon.is_none() || core.now_ms - core.heard_ms >= core.settings.limits.quiet_ms {
            return Some(VenuePause::NoBlocks);
        }
        if core.standing.is_some() && !self.is_operator() {
            return Some(VenuePause::Operator);
        }
        if core.newest - core.height() > core.settings.terms.delay.heights / 4 {
            return Some(VenuePause::Behind);
        }
        if self.is_late() && !self.has(VenueMistake::NeverLate) {
            return Some(VenuePause::Late);
        }
        self.pause_for(0, 0)
    }

    /// Whether the oldest unsettled fill is half of D old.
    fn is_late(&self) -> bool {
        let half = self.core.settings.terms.delay.heights / 2;
        self.core.pending.front().is_some_and(|oldest| self.core.newest - oldest.fill.matched >= half)
    }
}
