//! One fill: the rules F1 to F8 of which the first that is broken makes it bust, and what it moves.

use primitives::venue::{FillUnits, MarketTerms, OrderLife, SettledFill, VenueOrder, VenueSide, is_within_cap};
use primitives::{Address, Amount, AssetId};
use proofs::{BustGuilt, BustReason, FilledOrder};

use super::mistake::VenueMistake;
use super::records::{net_of, set_net};
use super::running::Running;

/// A side of a fill.
#[derive(Clone, Copy)]
struct Side {
    /// The position of its order.
    at: usize,
    /// The position of its key.
    key: usize,
    /// The positions of its deposits.
    base: usize,
    quote: usize,
    fee: i64,
}

/// A fill whose parties exist.
struct Fill<'r, 'v> {
    running: &'r Running<'v>,
    fill: SettledFill,
    market: MarketTerms,
    fees: usize,
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
    /// The position of the deposit that receives fees.
    fees: usize,
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
        let owners = orders.map(|order| order.key.map(|key| self.keys[key].before.owner));
        let market = &self.markets[orders[0].market].terms;
        let of_market = |market: &MarketTerms| market.penalty_of(fill.lots);
        let least = || self.venues.terms.penalty_min.checked_mul(fill.lots.into());
        let penalty = market.as_ref().map_or_else(least, of_market)?;
        Some((owners, penalty))
    }

    /// Moves what a fill moves.
    pub(super) fn apply(&mut self, moves: FillMoves) {
        let FillMoves { buyer, seller, base, quote, fees, units, paid, received, lots } = moves;
        self.draw(buyer.quote, paid);
        self.draw(seller.base, units.base);
        self.pay(buyer.base, units.base);
        self.pay(seller.quote, received);
        self.pay(fees, paid - received);
        for (side, gains, loses) in [
            (buyer, (base, i128::from(units.base)), (quote, i128::from(paid))),
            (seller, (quote, i128::from(received)), (base, i128::from(units.base))),
        ] {
            self.fill_order(side, lots, units.quote);
            let floor = self.orders[side.at].order.floor;
            let key = self.key_mut(side.key);
            let (gained, lost) = (net_of(&key.net, gains.0) + gains.1, net_of(&key.net, loses.0) - loses.1);
            set_net(&mut key.net, gains.0, gained);
            set_net(&mut key.net, loses.0, lost);
            key.floor = key.floor.max(floor);
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
            is_sound.then_some(Side { at, key, base: of.base, quote: of.quote, fee })
        };
        let buyer = side(fill.buy, fill.fee_buy, VenueSide::Buy)?;
        let seller = side(fill.sell, fill.fee_sell, VenueSide::Sell)?;
        let [bought, sold] = [buyer, seller].map(|side| running.orders[side.at].market);
        let [buys, sells] = [buyer, seller].map(|side| running.keys[side.key].before.owner);
        let (market, fees) = (running.markets[bought].terms?, running.markets[bought].fees);
        let fits = bought == sold && buys != sells;
        fits.then_some(Fill { running, fill: *fill, market, fees, buyer, seller })
    }

    fn sides(&self) -> [Side; 2] {
        [self.buyer, self.seller]
    }

    fn order(&self, side: &Side) -> &VenueOrder {
        self.running.orders[side.at].order
    }

    /// F8, so that nobody is guilty of what a freeze causes, and F2 to F7 in this order.
    fn check(&self) -> Result<FillMoves, BustReason> {
        let both = |holds: &dyn Fn(&Side) -> bool| self.sides().iter().all(holds);
        let is_frozen = self.running.markets[self.running.orders[self.buyer.at].market].is_frozen;
        unless(BustReason::Frozen, !is_frozen && both(&|side| !self.running.orders[side.at].is_frozen))?;
        unless(BustReason::Dead, both(&|side| !self.is_dead(side) && !self.running.orders[side.at].is_reused))?;
        unless(BustReason::Expired, both(&|side| self.running.orders[side.at].is_alive))?;
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
        let floor = if is_before { key.floor_before } else { key.floor };
        key.is_revoked || self.order(side).number < floor
    }

    /// Whether the order that takes may.
    fn is_taken_well(&self) -> bool {
        let taker = if self.fill.taker == VenueSide::Buy { self.buyer } else { self.seller };
        let (buy, sell) = (self.order(&self.buyer), self.order(&self.seller));
        self.order(&taker).life != OrderLife::PostOnly && (sell.tick..=buy.tick).contains(&self.fill.tick)
    }

    /// Whether price and lots are within mandate, market and order.
    fn is_inside(&self, side: &Side) -> bool {
        let mandate = &self.running.keys[side.key].before.mandate;
        let order = &self.running.orders[side.at];
        let is_permitted =
            mandate.market(order.order.market).is_some_and(|of| (of.tick_min..=of.tick_max).contains(&self.fill.tick));
        let is_before = self.running.venues.makes(VenueMistake::LotsOfTheStateBefore);
        let entry = if is_before { order.entry_before } else { order.entry };
        let filled = entry.map_or(0, |entry| entry.lots);
        let lots = filled.checked_add(self.fill.lots);
        is_permitted && order.order.lots <= self.market.lots_max && lots.is_some_and(|lots| lots <= order.order.lots)
    }

    /// What it moves; `None` if that is more than can exist.
    fn moves(&self) -> Option<FillMoves> {
        let Fill { fill, market, fees, buyer, seller, .. } = self;
        let units = market.units(fill.lots, fill.tick)?;
        let paid = with_fee(units.quote, buyer.fee);
        let received = with_fee(units.quote, seller.fee.saturating_neg());
        let (buyer, seller, base, quote, fees) = (*buyer, *seller, market.base, market.quote, *fees);
        Some(FillMoves { buyer, seller, base, quote, fees, units, paid, received, lots: fill.lots })
    }

    /// Whether the fees of an order, summed over its fills, stay below the least cap.
    fn is_fee_within_caps(&self, side: &Side, quote: Amount) -> bool {
        let (running, order) = (self.running, &self.running.orders[side.at]);
        let cap = order.order.fee_cap_ppm.min(self.market.fee_cap_ppm).min(running.fee_cap_ppm);
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
        let buyer = self.running.payable(moves.buyer.quote) < moves.paid;
        [buyer, self.running.payable(moves.seller.base) < moves.units.base]
    }

    /// Which keys would lose more than they may, the buyer's and the seller's.
    fn short_drawdowns(&self, moves: &FillMoves) -> [bool; 2] {
        let is_short = |side: &Side, asset: AssetId, units: Amount| {
            let key = &self.running.keys[side.key];
            net_of(&key.net, asset) - i128::from(units) < -i128::from(key.before.mandate.cap(asset))
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
