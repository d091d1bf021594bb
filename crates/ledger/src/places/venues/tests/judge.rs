//! How the model judges settles: B3 to B5, F1 to F7, groups and penalties, in the words of the design.

use primitives::venue::{OrderLife, OrderNumber, Settle, SettledFill, SettledOrder, VenueOrder, VenueSide};
use primitives::{Address, Amount, AssetId, PublicKey};
use proofs::{BustGuilt, BustReason, FillVerdict};

use super::model::{Plain, PlainEntry};

type Bust = (BustReason, [bool; 2]);

impl Plain {
    fn digest(&self, order: &SettledOrder) -> primitives::Digest {
        order.order.digest(&self.network, super::model::VENUE, &order.key)
    }

    fn entry(&self, order: &SettledOrder) -> Option<&PlainEntry> {
        self.entries.get(&(order.key, order.order.number))
    }

    fn is_past_expiry(&self, expiry: u64) -> bool {
        expiry < self.height() as u64 && self.past(expiry as usize)
    }

    fn penalty(&self, settle: &Settle, fill: &SettledFill) -> Amount {
        let market = settle.orders[usize::from(fill.buy)].order.market as usize;
        let lot = self.markets.get(market).map_or(self.terms.penalty_min, |market| market.penalty);
        lot * u64::from(fill.lots)
    }

    /// B3 and B4, on the state before the block.
    pub fn counts(&self, settle: &Settle) -> bool {
        let is_known = |order: &SettledOrder| self.entry(order).is_some_and(|one| one.digest == self.digest(order));
        let new = settle.orders.iter().filter(|order| self.entry(order).is_none()).count() as u64;
        let penalties: u64 = settle.fills.iter().map(|fill| self.penalty(settle, fill)).sum();
        settle.from == self.leaves.len() as u64
            && settle.orders.iter().all(|order| order.signature.is_there() || is_known(order))
            && self.bond >= self.terms.bond_min + penalties
            && self.entries.len() as u64 + new <= self.terms.entries_max
    }

    /// Applies a settle; returns the verdicts.
    pub fn settle(&mut self, settle: &Settle) -> Vec<FillVerdict> {
        let before = self.clone();
        let mut verdicts = Vec::new();
        let taker = |fill: &SettledFill| usize::from(if fill.taker == VenueSide::Buy { fill.buy } else { fill.sell });
        let mut at = 0;
        while at < settle.fills.len() {
            let first = taker(&settle.fills[at]);
            let mut to = at + 1;
            if settle.orders[first].order.life == OrderLife::FillOrKill {
                to = (at..settle.fills.len())
                    .find(|at| taker(&settle.fills[*at]) != first)
                    .unwrap_or(settle.fills.len());
            }
            let copy = self.clone();
            let bust = settle.fills[at..to].iter().find_map(|fill| self.fill(&before, settle, fill).err());
            match bust {
                None => verdicts.extend((at..to).map(|_| FillVerdict::Applied)),
                Some((reason, guilt)) => {
                    *self = copy;
                    let guilty = match guilt {
                        [false, false] => BustGuilt::Nobody,
                        [true, false] => BustGuilt::Buyer,
                        [false, true] => BustGuilt::Seller,
                        [true, true] => BustGuilt::Both,
                    };
                    verdicts.extend((at..to).map(|_| FillVerdict::Bust(reason, guilty)));
                    (at..to).for_each(|at| self.punish(settle, &settle.fills[at], guilt));
                }
            }
            at = to;
        }
        self.leaves.extend(settle.leaves(&self.network));
        verdicts
    }

    fn punish(&mut self, settle: &Settle, fill: &SettledFill, guilt: [bool; 2]) {
        let penalty = self.penalty(settle, fill);
        self.bond -= penalty;
        let owner = |at: u16| self.keys.get(&settle.orders[usize::from(at)].key).map(|key| key.owner);
        let to = match guilt {
            [true, false] => owner(fill.sell),
            [false, true] => owner(fill.buy),
            _ => None,
        };
        match to {
            Some(to) => self.pay(to, AssetId(0), penalty),
            None => self.burnt += penalty,
        }
    }

    /// Units that a side still has for fills.
    fn payable(&self, owner: Address, asset: AssetId) -> i128 {
        let Some(of) = self.deposits.get(&(owner, asset)) else { return 0 };
        let leaving = of.leaving.filter(|(_, since)| !self.past(*since)).map_or(0, |(units, _)| units);
        i128::from(of.free) + i128::from(leaving)
    }

    /// Moves units of a deposit one by one: to it, or from what is free and then from what leaves.
    fn shift(&mut self, owner: Address, asset: AssetId, units: i128) {
        let of = self.deposits.entry((owner, asset)).or_default();
        if units >= 0 {
            of.free += units as u64;
            return;
        }
        for _ in 0..-units {
            match (of.free, of.leaving) {
                (0, Some((1, _))) => of.leaving = None,
                (0, Some((left, since))) => of.leaving = Some((left - 1, since)),
                _ => of.free -= 1,
            }
        }
    }

    /// Keys of a side: revoked and floors of raises by the state before the block, floors of orders running.
    fn is_side_dead(&self, before: &Plain, key: &PublicKey, number: OrderNumber) -> bool {
        before.keys[key].revoked.is_some_and(|since| self.past(since)) || number < self.floor(&self.keys[key])
    }

    fn is_in_time(&self, order: &VenueOrder) -> bool {
        let now = self.height();
        let matched = self.times[now.saturating_sub(self.terms.delay.heights as usize)];
        let until =
            order.until_ms.is_none_or(|until| matched <= until || self.times[now] <= until + self.terms.delay.ms);
        !self.is_past_expiry(order.expiry) && until && order.expiry <= now as u64 + self.terms.life_max
    }

    fn fill(&mut self, before: &Plain, settle: &Settle, fill: &SettledFill) -> Result<(), Bust> {
        let sides = [fill.buy, fill.sell].map(|at| &settle.orders[usize::from(at)]);
        let none = [false; 2];
        // F1
        let exist = sides.iter().all(|side| self.keys.contains_key(&side.key));
        let market = self.markets.get(sides[0].order.market as usize).copied();
        let is_current = |side: &SettledOrder| side.order.number.incarnation == self.incarnation;
        let (Some(market), true) = (market, exist && sides.iter().copied().all(is_current)) else {
            return Err((BustReason::Parties, none));
        };
        let owners = sides.map(|side| self.keys[&side.key].owner);
        let are_sides = sides[0].order.side == VenueSide::Buy && sides[1].order.side == VenueSide::Sell;
        if !are_sides || sides[0].order.market != sides[1].order.market || owners[0] == owners[1] {
            return Err((BustReason::Parties, none));
        }
        let base = i128::from(fill.lots) * i128::from(market.lot_units);
        let quote = i128::from(fill.lots) * i128::from(fill.tick) * i128::from(market.tick_units);
        let fees = [fill.fee_buy, fill.fee_sell].map(i128::from);
        let gives = [(market.quote, (quote + fees[0]).max(0)), (market.base, base)];
        let gains = [(market.base, base), (market.quote, (quote - fees[1]).max(0))];
        let dead = sides.map(|side| self.is_side_dead(before, &side.key, side.order.number));
        let short = [0, 1].map(|side| self.payable(owners[side], gives[side].0) < gives[side].1);
        let lost = [0, 1].map(|side| {
            let (key, (asset, units)) = (&self.keys[&sides[side].key], gives[side]);
            let cap = i128::from(key.caps.get(&asset.0).copied().unwrap_or(0));
            key.net.get(&asset.0).copied().unwrap_or(0) - units < -cap
        });
        let guilt = [0, 1].map(|side| dead[side] || short[side] || lost[side]);
        // F2
        let is_reused = |side: &SettledOrder| {
            let other = before.entry(side).filter(|entry| entry.digest != self.digest(side));
            other.is_some_and(|entry| !self.is_past_expiry(entry.expiry))
        };
        if dead != none || sides.iter().copied().any(is_reused) {
            return Err((BustReason::Dead, guilt));
        }
        // F3
        if !sides.iter().all(|side| self.is_in_time(&side.order)) {
            return Err((BustReason::Expired, none));
        }
        // F4
        let filled = |side: &SettledOrder| {
            let same = self.entry(side).filter(|entry| entry.digest == self.digest(side));
            same.cloned().unwrap_or(PlainEntry {
                digest: self.digest(side),
                lots: 0,
                quote: 0,
                fee: 0,
                expiry: side.order.expiry,
            })
        };
        let entries = sides.map(filled);
        let is_inside = |side: usize| {
            let band = self.keys[&sides[side].key].markets.get(&sides[side].order.market).copied();
            band.is_some_and(|(low, high)| low <= fill.tick && fill.tick <= high)
                && entries[side].lots + fill.lots <= sides[side].order.lots
                && sides[side].order.lots <= market.lots_max
        };
        let taker = sides[usize::from(fill.taker == VenueSide::Sell)].order;
        let is_price = sides[1].order.tick <= fill.tick && fill.tick <= sides[0].order.tick;
        if !is_price || taker.life == OrderLife::PostOnly || !is_inside(0) || !is_inside(1) {
            return Err((BustReason::Outside, none));
        }
        // F5: the units of the histories are small.
        for side in [0, 1] {
            let caps = [sides[side].order.fee_cap_ppm, market.fee_cap_ppm, self.fee_cap];
            let cap = i128::from(*caps.iter().min().expect("three"));
            if entries[side].fee + fees[side] > (entries[side].quote + quote) * cap / 1_000_000 {
                return Err((BustReason::Size, none));
            }
        }
        // F6, F7
        if short != none || fees[1] > quote {
            return Err((BustReason::Deposit, guilt));
        }
        if lost != none {
            return Err((BustReason::Drawdown, guilt));
        }
        for side in [0, 1] {
            self.shift(owners[side], gives[side].0, -gives[side].1);
        }
        for side in [0, 1] {
            self.shift(owners[side], gains[side].0, gains[side].1);
            let key = self.keys.get_mut(&sides[side].key).expect("it exists");
            *key.net.entry(gains[side].0.0).or_default() += gains[side].1;
            *key.net.entry(gives[side].0.0).or_default() -= gives[side].1;
            key.stated = key.stated.max(sides[side].order.floor);
            let mut entry = entries[side].clone();
            (entry.lots, entry.quote, entry.fee) =
                (entry.lots + fill.lots, entry.quote + quote, entry.fee + fees[side]);
            self.entries.insert((sides[side].key, sides[side].order.number), entry);
        }
        self.shift(self.owner, market.quote, fees[0] + fees[1]);
        Ok(())
    }
}
