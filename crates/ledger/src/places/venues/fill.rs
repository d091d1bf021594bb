//! One fill: the rules F1 to F7 of which the first that is broken makes it bust, and what it moves.

use primitives::venue::{FillUnits, MarketTerms, OrderLife, SettledFill, VenueOrder, VenueSide, is_within_cap};
use primitives::{Address, Amount, AssetId};
use proofs::{BustGuilt, BustReason, FilledOrder, TradingKey};

use super::mistake::VenueMistake;
use super::records::set_net;
use super::running::Running;

/// A side of a fill.
#[derive(Clone, Copy)]
struct Side {
    /// The position of its order.
    at: usize,
    /// The position of its key.
    key: usize,
    order: VenueOrder,
    owner: Address,
    fee: i64,
}

/// A fill whose parties exist.
struct Fill<'r, 'v> {
    running: &'r Running<'v>,
    fill: SettledFill,
    market: MarketTerms,
    buyer: Side,
    seller: Side,
}

/// What a fill moves, with the fees of both sides.
#[derive(Clone, Copy)]
pub(super) struct FillMoves {
    buyer: Side,
    seller: Side,
    base: AssetId,
    quote: AssetId,
    units: FillUnits,
    /// What the buyer pays and the seller receives, in quote units.
    paid: Amount,
    received: Amount,
    lots: u32,
}

type Bust = (BustReason, BustGuilt);

fn unless(reason: BustReason, holds: bool) -> Result<(), BustReason> {
    if holds { Ok(()) } else { Err(reason) }
}

/// Units with a fee added, which cannot overflow: both are below 2^63. Where a rebate is above the units none are left,
/// and F6 refuses the fill: a settle's fees are together not negative, so the other side's fee is above the units too.
fn with_fee(units: Amount, fee: i64) -> Amount {
    units.checked_add_signed(fee).unwrap_or(0)
}

impl Running<'_> {
    /// What a fill moves, or why it busts.
    pub(super) fn judge(&self, fill: &SettledFill) -> Result<FillMoves, Bust> {
        let of = Fill::new(self, fill).ok_or((BustReason::Parties, BustGuilt::Nobody))?;
        of.check().map_err(|reason| (reason, of.guilt(reason)))
    }

    /// What a fill would move if only deposits mattered: what a planted mistake moves although the fill busts.
    pub(super) fn moves_though_bust(&self, fill: &SettledFill) -> Option<FillMoves> {
        let of = Fill::new(self, fill).filter(|_| self.venues.makes(VenueMistake::BustMovesMoney))?;
        of.moves().filter(|moves| of.short_deposits(moves) == [false; 2])
    }

    /// The accounts of buyer and seller, and what a bust of the fill costs; the least penalty without a market.
    pub(super) fn liability(&self, fill: &SettledFill) -> Option<([Option<Address>; 2], Amount)> {
        let orders = [fill.buy, fill.sell].map(|at| &self.orders[usize::from(at)]);
        let owners = orders.map(|order| order.key.map(|key| self.keys[key].record.owner));
        let market = orders[0].order.market;
        let of_market = |market: &MarketTerms| market.penalty_of(fill.lots);
        let least = || self.venues.terms.penalty_min.checked_mul(fill.lots.into());
        let penalty = self.venues.market(self.venue, market).map_or_else(least, of_market)?;
        Some((owners, penalty))
    }

    /// Moves what a fill moves.
    pub(super) fn apply(&mut self, moves: FillMoves) {
        let FillMoves { buyer, seller, base, quote, units, paid, received, lots } = moves;
        self.draw(buyer.owner, quote, paid);
        self.draw(seller.owner, base, units.base);
        self.pay(buyer.owner, base, units.base);
        self.pay(seller.owner, quote, received);
        self.pay(self.owner, quote, paid - received);
        for (side, gains, loses) in [
            (buyer, (base, i128::from(units.base)), (quote, i128::from(paid))),
            (seller, (quote, i128::from(received)), (base, i128::from(units.base))),
        ] {
            self.fill_order(side, lots, units.quote);
            let key = self.key_mut(side.key);
            let (gained, lost) = (key.net(gains.0) + gains.1, key.net(loses.0) - loses.1);
            set_net(key, gains.0, gained);
            set_net(key, loses.0, lost);
            key.floor = key.floor.max(side.order.floor);
        }
    }

    fn fill_order(&mut self, side: Side, lots: u32, quote: Amount) {
        let order = &self.orders[side.at];
        let new = FilledOrder { digest: order.digest, lots: 0, quote: 0, fee: 0, expiry: order.order.expiry };
        let mut entry = order.entry.unwrap_or(new);
        entry.lots = entry.lots.saturating_add(lots);
        entry.quote = entry.quote.saturating_add(u128::from(quote));
        entry.fee = entry.fee.saturating_add(i128::from(side.fee));
        self.set_entry(side.at, entry);
    }
}

impl<'r, 'v> Fill<'r, 'v> {
    /// F1: market and keys exist, the sides are opposite, their owners differ, both orders are for this incarnation.
    fn new(running: &'r Running<'v>, fill: &SettledFill) -> Option<Fill<'r, 'v>> {
        let side = |at: u16, fee: i64, wanted: VenueSide| {
            let at = usize::from(at);
            let of = &running.orders[at];
            let key = of.key?;
            let is_sound = of.order.side == wanted && of.order.number.incarnation == running.incarnation;
            let owner = running.keys[key].record.owner;
            is_sound.then_some(Side { at, key, order: of.order, owner, fee })
        };
        let buyer = side(fill.buy, fill.fee_buy, VenueSide::Buy)?;
        let seller = side(fill.sell, fill.fee_sell, VenueSide::Sell)?;
        let market = *running.venues.market(running.venue, buyer.order.market)?;
        let fits = buyer.order.market == seller.order.market && buyer.owner != seller.owner;
        fits.then_some(Fill { running, fill: *fill, market, buyer, seller })
    }

    fn sides(&self) -> [Side; 2] {
        [self.buyer, self.seller]
    }

    /// F2 to F7, in this order.
    fn check(&self) -> Result<FillMoves, BustReason> {
        let both = |holds: &dyn Fn(&Side) -> bool| self.sides().iter().all(holds);
        unless(BustReason::Dead, both(&|side| !self.is_dead(side) && !self.running.orders[side.at].is_reused))?;
        unless(BustReason::Expired, both(&|side| self.is_alive(&side.order)))?;
        unless(BustReason::Outside, self.is_taken_well() && both(&|side| self.is_inside(side)))?;
        let moves = self.moves().ok_or(BustReason::Size)?;
        unless(BustReason::Size, both(&|side| self.is_fee_within_caps(side, moves.units.quote)))?;
        // The seller's fee comes out of what it receives. That it is not more is up to the venue, not to the seller.
        let is_fee_received = i128::from(self.seller.fee) <= i128::from(moves.units.quote);
        unless(BustReason::Deposit, is_fee_received && self.short_deposits(&moves) == [false; 2])?;
        unless(BustReason::Drawdown, self.short_drawdowns(&moves) == [false; 2])?;
        Ok(moves)
    }

    /// Whether the key is revoked, or the number below its floor.
    fn is_dead(&self, side: &Side) -> bool {
        let key = &self.running.keys[side.key];
        let is_before = self.running.venues.makes(VenueMistake::FloorsOfTheStateBefore);
        let floor = if is_before { key.floor_before } else { key.record.floor };
        key.is_revoked || side.order.number < floor
    }

    fn is_alive(&self, order: &VenueOrder) -> bool {
        let (venues, now) = (self.running.venues, self.running.venues.now());
        let delay = venues.terms.delay;
        let matched = venues.horizon.time_of(now.height.saturating_sub(delay.heights));
        let is_in_time = |until: u64| {
            matched.is_some_and(|matched| matched <= until) || now.time_ms <= until.saturating_add(delay.ms)
        };
        !venues.is_expired(order.expiry)
            && order.until_ms.is_none_or(is_in_time)
            && order.expiry <= now.height.saturating_add(venues.terms.life_max)
    }

    /// Whether the order that takes may.
    fn is_taken_well(&self) -> bool {
        let taker = if self.fill.taker == VenueSide::Buy { self.buyer } else { self.seller };
        let (buy, sell) = (self.buyer.order, self.seller.order);
        taker.order.life != OrderLife::PostOnly && (sell.tick..=buy.tick).contains(&self.fill.tick)
    }

    /// Whether price and lots are within mandate, market and order.
    fn is_inside(&self, side: &Side) -> bool {
        let mandate = &self.running.keys[side.key].record.mandate;
        let is_permitted =
            mandate.market(side.order.market).is_some_and(|of| (of.tick_min..=of.tick_max).contains(&self.fill.tick));
        let is_before = self.running.venues.makes(VenueMistake::LotsOfTheStateBefore);
        let order = &self.running.orders[side.at];
        let entry = if is_before { order.entry_before } else { order.entry };
        let filled = entry.map_or(0, |entry| entry.lots);
        let lots = filled.checked_add(self.fill.lots);
        is_permitted && side.order.lots <= self.market.lots_max && lots.is_some_and(|lots| lots <= side.order.lots)
    }

    /// What it moves; `None` if that is more than can exist.
    fn moves(&self) -> Option<FillMoves> {
        let Fill { fill, market, buyer, seller, .. } = self;
        let units = market.units(fill.lots, fill.tick)?;
        let paid = with_fee(units.quote, buyer.fee);
        let received = with_fee(units.quote, seller.fee.saturating_neg());
        let (base, quote) = (market.base, market.quote);
        Some(FillMoves { buyer: *buyer, seller: *seller, base, quote, units, paid, received, lots: fill.lots })
    }

    /// Whether the fees of an order, summed over its fills, stay below the least cap.
    fn is_fee_within_caps(&self, side: &Side, quote: Amount) -> bool {
        let (running, order) = (self.running, &self.running.orders[side.at]);
        let cap = side.order.fee_cap_ppm.min(self.market.fee_cap_ppm).min(running.fee_cap_ppm);
        if running.venues.makes(VenueMistake::FeesRoundedUp) {
            let most = (u128::from(quote) * u128::from(cap)).div_ceil(u128::from(primitives::venue::PPM));
            return i128::from(side.fee) <= most as i128;
        }
        let is_before = running.venues.makes(VenueMistake::FeesOfTheStateBefore);
        let entry = if is_before { order.entry_before } else { order.entry };
        let (quotes, fees) = entry.map_or((0, 0), |entry| (entry.quote, entry.fee));
        let quotes = quotes.saturating_add(u128::from(quote));
        is_within_cap(quotes, fees.saturating_add(i128::from(side.fee)), cap)
    }

    /// Which deposits are short, the buyer's and the seller's.
    fn short_deposits(&self, moves: &FillMoves) -> [bool; 2] {
        let payable = |side: &Side, asset| self.running.payable(&side.owner, asset);
        let buyer = payable(&moves.buyer, moves.quote) < moves.paid;
        [buyer, payable(&moves.seller, moves.base) < moves.units.base]
    }

    /// Which keys would lose more than they may, the buyer's and the seller's.
    fn short_drawdowns(&self, moves: &FillMoves) -> [bool; 2] {
        let is_short = |side: &Side, asset: AssetId, units: Amount| {
            let key: &TradingKey = &self.running.keys[side.key].record;
            key.net(asset) - i128::from(units) < -i128::from(key.mandate.cap(asset))
        };
        [is_short(&moves.buyer, moves.quote, moves.paid), is_short(&moves.seller, moves.base, moves.units.base)]
    }

    /// Which sides are guilty of a bust: of one that follows from a key, a floor, a deposit or a drawdown.
    fn guilt(&self, reason: BustReason) -> BustGuilt {
        if !matches!(reason, BustReason::Dead | BustReason::Deposit | BustReason::Drawdown) {
            return BustGuilt::Nobody;
        }
        let dead = self.sides().map(|side| self.is_dead(&side));
        let moves = self.moves();
        let none = [false; 2];
        let deposits = moves.map_or(none, |moves| self.short_deposits(&moves));
        let drawdowns = moves.map_or(none, |moves| self.short_drawdowns(&moves));
        BustGuilt::of([0, 1].map(|side| dead[side] || deposits[side] || drawdowns[side]))
    }
}
