//! What open orders reserve and unsettled fills owe. Sums are kept for speed; each is what follows from orders and
//! fills, which `audit` computes anew.

use std::collections::BTreeSet;

use primitives::venue::{VenueOrder, VenueSide};
use primitives::{Amount, AssetId, Height};

use super::VenueMachine;
use crate::mistake::VenueMistake;
use crate::order::OrderSums;
use crate::refusal::OrderEnd;
use crate::state::{Core, Pending};

/// Adds a difference to a sum that cannot become negative.
fn shift(sum: &mut u128, before: u128, after: u128) {
    *sum = (*sum + after).checked_sub(before).expect("a sum contains each of its parts");
}

impl VenueMachine {
    /// The asset that an order pays with, and the most that so many of its lots cost; `None` if that is more than can
    /// exist. A buy costs its limit with the dearest fee: fees are rounded down, so those of parts are no more.
    pub(super) fn reserve(&self, order: &VenueOrder, lots: u32) -> Option<(AssetId, u128)> {
        let market = self.markets.get(&order.market)?;
        let units = market.terms.units(lots, order.tick)?;
        Some(match order.side {
            VenueSide::Sell => (market.terms.base, u128::from(units.base)),
            VenueSide::Buy => {
                let fee = share(units.quote, market.settings.fee_ppm());
                (market.terms.quote, u128::from(units.quote) + u128::from(fee))
            }
        })
    }

    /// What the order of a slot adds to sums.
    pub(super) fn sums_of(&self, slot: u32) -> OrderSums {
        let order = self.core.order(slot);
        let terms = &order.terms;
        let is_open = order.end.is_none();
        let lots = if is_open { order.open } else { 0 };
        let reserved = self.reserve(terms, lots).map_or(0, |(_, units)| units);
        let is_dead = order.fills().unsettled == 0 && terms.number < self.core.key(order.key).floor;
        let is_past = self.core.horizon.as_ref().is_some_and(|horizon| horizon.is_past(terms.expiry));
        OrderSums {
            reserved: if is_open { reserved } else { 0 },
            is_entry: is_open || (order.fills().executed > 0 && !is_past && !is_dead),
            is_prospective: !order.has_entry && (is_open || order.fills().unsettled > 0),
            weight: self.order_weight(slot, order),
            bytes: self.order_bytes(slot, order),
        }
    }

    /// Brings the sums up to date with an order that has changed.
    pub(super) fn refresh(&mut self, slot: u32) {
        let order = self.core.order(slot);
        let (before, after, at, expiry) = (order.sums(), self.sums_of(slot), order.key, order.terms.expiry);
        if before == after {
            return;
        }
        let asset = self.debited_asset(slot);
        self.core.order_mut(slot).set_sums(&after);
        let account = self.core.key(at).account;
        shift(&mut self.core.holding_mut(account, asset).open, before.reserved, after.reserved);
        shift(&mut self.core.exposure_mut(at, asset).open, before.reserved, after.reserved);
        let key = self.core.key_mut(at);
        key.entries = key.entries + u32::from(after.is_entry) - u32::from(before.is_entry);
        self.core.prospective =
            self.core.prospective + u64::from(after.is_prospective) - u64::from(before.is_prospective);
        self.core.weight = self.core.weight + after.weight - before.weight;
        self.core.bytes = self.core.bytes + after.bytes - before.bytes;
        match after.is_entry {
            true => self.core.entries.insert(expiry, slot),
            false => self.core.entries.remove(expiry, slot),
        }
    }

    /// The asset that an order pays with.
    fn debited_asset(&self, slot: u32) -> AssetId {
        let market = self.market_of(slot);
        match self.core.order(slot).terms.side {
            VenueSide::Buy => market.terms.quote,
            VenueSide::Sell => market.terms.base,
        }
    }

    /// Adds what both sides of a fill owe, or takes it away when its fate is known.
    pub(super) fn owe(&mut self, pending: &Pending, is_owed: bool) {
        let terms = self.markets[&pending.fill.market].terms;
        for side in [VenueSide::Buy, VenueSide::Sell] {
            let (asset, units) = pending.debit(side, &terms);
            let (before, after) = if is_owed { (0, units) } else { (units, 0) };
            let at = self.core.order(pending.slot(side)).key;
            let account = self.core.key(at).account;
            shift(&mut self.core.holding_mut(account, asset).owed, before, after);
            shift(&mut self.core.exposure_mut(at, asset).owed, before, after);
        }
        let penalty = u128::from(pending.penalty);
        let (before, after) = if is_owed { (0, penalty) } else { (penalty, 0) };
        shift(&mut self.core.penalties, before, after);
    }

    /// Units that unsettled fills will bring an account.
    pub(super) fn unsettled_credits(&self, account: u32, asset: AssetId) -> u128 {
        let sides = self.core.pending.iter().flat_map(|of| [(of, VenueSide::Buy), (of, VenueSide::Sell)]);
        let own = sides.filter(|(of, side)| self.core.key(self.core.order(of.slot(*side)).key).account == account);
        own.map(|(of, side)| of.credit(side, &self.markets[&of.fill.market].terms))
            .filter(|(of, _)| *of == asset)
            .map(|(_, units)| units)
            .sum()
    }

    /// Ends the newest open orders of accounts and keys whose deposit or drawdown does not cover all of them any more.
    pub(super) fn end_uncovered(&mut self, accounts: &BTreeSet<u32>) {
        if self.has(VenueMistake::UncoveredOrdersStay) {
            return;
        }
        for account in accounts {
            let assets: Vec<AssetId> =
                self.core.account(*account).holdings.iter().filter(|of| of.open > 0).map(|of| of.asset).collect();
            for asset in assets {
                let keys = self.core.account(*account).keys.clone();
                self.end_newest(&keys, asset, |machine| machine.available(*account, asset));
                for key in keys {
                    self.end_newest(&[key], asset, |machine| machine.may_lose(key, asset));
                }
            }
        }
    }

    /// Ends the newest open orders of keys that pay with an asset, until what is available is not negative.
    fn end_newest(&mut self, keys: &[u32], asset: AssetId, available: impl Fn(&VenueMachine) -> i128) {
        if available(self) >= 0 {
            return;
        }
        let mut slots: Vec<u32> = keys.iter().flat_map(|key| self.core.open_orders(*key)).collect();
        slots.retain(|slot| self.debited_asset(*slot) == asset);
        slots.sort_unstable_by_key(|slot| self.core.order(*slot).id);
        while let Some(newest) = slots.pop().filter(|_| available(self) < 0) {
            self.end(newest, OrderEnd::Uncovered);
        }
    }

    /// Lets go of entries whose expiry is past.
    pub(super) fn pass_entries(&mut self) {
        let Core { entries, horizon, .. } = &mut self.core;
        let is_past = |expiry| horizon.as_ref().is_some_and(|horizon| horizon.is_past(expiry));
        let past: Vec<u32> = std::iter::from_fn(|| entries.pop_past(is_past)).flatten().collect();
        past.into_iter().for_each(|slot| self.refresh(slot));
    }

    /// Lets go of entries of a key that are below the floor in force.
    pub(super) fn drop_below_floor(&mut self, at: u32) {
        let floor = self.core.key(at).floor;
        let below = self.core.key(at).numbers.range(..floor);
        let slots: Vec<u32> = below
            .filter_map(|(_, what)| match what {
                crate::state::Remembered::Taken(slot) => Some(*slot),
                _ => None,
            })
            .collect();
        slots.into_iter().for_each(|slot| self.refresh(slot));
    }

    pub(super) fn is_past(&self, height: Height) -> bool {
        self.core.horizon.as_ref().is_some_and(|horizon| horizon.is_past(height))
    }

    /// What an account's deposit covers beside what is reserved and owed; negative if it is short.
    pub(super) fn available(&self, account: u32, asset: AssetId) -> i128 {
        let Some(holding) = self.core.account(account).holding(asset) else { return 0 };
        let leaving = if self.has(VenueMistake::LeavingBuys) { holding.leaving } else { 0 };
        let credits = if self.has(VenueMistake::CreditsBuy) { self.unsettled_credits(account, asset) } else { 0 };
        let held = u128::from(holding.free) + u128::from(leaving) + credits;
        held as i128 - holding.open as i128 - holding.owed as i128
    }

    /// What a key may lose beside what is reserved and owed.
    pub(super) fn may_lose(&self, at: u32, asset: AssetId) -> i128 {
        let key = self.core.key(at);
        let (open, owed) = key.exposure(asset);
        let owed = if self.has(VenueMistake::DrawdownForgetsFills) { 0 } else { owed };
        i128::from(key.mandate.cap(asset)) + key.net(asset) - open as i128 - owed as i128
    }
}

/// So many millionths of an amount, rounded down: in steps that 64 bits hold, since this is computed for each command.
fn share(units: Amount, ppm: u32) -> Amount {
    const PPM: Amount = primitives::venue::PPM as Amount;
    let ppm = Amount::from(ppm);
    units / PPM * ppm + units % PPM * ppm / PPM
}

/// What a bust of so many lots costs a bond, at most what can exist.
pub(super) fn penalty_of(penalty: Amount, lots: u64) -> u128 {
    u128::from(penalty) * u128::from(lots)
}
