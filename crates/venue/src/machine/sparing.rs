//! Orders too small to pay for their entries on the ledger. The operator pays for so many of them a day, and an account has
//! a share of that, so that nobody uses up what others need. An order that ends without a trade gives its part back.

use primitives::venue::VenueOrder;

use super::VenueMachine;
use super::check::pays_its_way;
use crate::state::Spared;

const DAY_MS: u64 = 86_400_000;
/// An account has this part of what is spared in a day.
const SHARES: u64 = 32;

impl VenueMachine {
    /// Whether the operator pays for the entries of a small order of this key.
    pub(super) fn may_spare(&self, at: u32) -> bool {
        let (day, most) = (self.day(), self.core.settings.limits.small_order_fees);
        let cost = self.core.settings.entry_fees();
        let fits = |spared: u64, most: u64| spared.checked_add(cost).is_some_and(|sum| sum <= most);
        fits(self.core.spared.on(day), most) && fits(self.core.owner_of(at).spared.on(day), most / SHARES)
    }

    /// Takes what a small order may cost out of the day's; the day, if it is one.
    pub(super) fn spare(&mut self, at: u32, order: &VenueOrder) -> Option<u64> {
        let market = self.markets.get(&order.market).expect("it was checked");
        if pays_its_way(order, market) {
            return None;
        }
        let (day, cost) = (self.day(), self.core.settings.entry_fees());
        self.count_spared(at, day, |spared| spared.saturating_add(cost));
        Some(day)
    }

    /// Gives back what an order did not cost, since it made no trade.
    pub(super) fn unspare(&mut self, slot: u32) {
        let order = self.core.order_mut(slot);
        let at = order.key;
        if order.executed > 0 {
            return;
        }
        if let Some(day) = order.spared_on.take().filter(|day| *day == self.day()) {
            let cost = self.core.settings.entry_fees();
            self.count_spared(at, day, |spared| spared.saturating_sub(cost));
        }
    }

    fn count_spared(&mut self, at: u32, day: u64, count: impl Fn(u64) -> u64) {
        let account = self.core.key(at).account;
        for spared in [&mut self.core.spared, &mut self.core.accounts[account as usize].spared] {
            *spared = Spared { day, fees: count(spared.on(day)) };
        }
    }

    fn day(&self) -> u64 {
        self.core.time_ms() / DAY_MS
    }
}
