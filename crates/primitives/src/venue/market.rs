//! A market of a venue: what lots and ticks are worth, and what a fee may be.

use borsh::{BorshDeserialize, BorshSerialize};

use super::{PPM, TICK_MAX};
use crate::{Amount, AssetId, MAX_ISSUED};

/// The terms of a market; they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MarketTerms {
    /// The asset that is traded.
    pub base: AssetId,
    /// The asset in which it is paid; another one.
    pub quote: AssetId,
    /// Base units of a lot.
    pub lot_units: Amount,
    /// Quote units of a lot for one tick.
    pub tick_units: Amount,
    /// The most lots of an order.
    pub lots_max: u32,
    /// The most that an order pays in fees, in millionths of the quote units that it trades.
    pub fee_cap_ppm: u32,
    /// What a bust costs the bond, in units of asset 0 for each lot.
    pub penalty: Amount,
}

/// Units that a fill moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillUnits {
    /// Base units, from the seller to the buyer.
    pub base: Amount,
    /// Quote units, from the buyer to the seller, without fees.
    pub quote: Amount,
}

impl MarketTerms {
    /// Whether such a market can be, with this least penalty of the chain.
    pub fn is_sound(&self, least_penalty: Amount) -> bool {
        let units = 1..=MAX_ISSUED;
        self.base != self.quote
            && units.contains(&self.lot_units)
            && units.contains(&self.tick_units)
            && self.lots_max >= 1
            && bounded(u128::from(self.lots_max) * u128::from(self.lot_units)).is_some()
            && self.fee_cap_ppm <= PPM
            && (least_penalty..=MAX_ISSUED).contains(&self.penalty)
    }

    /// Units that a fill moves; `None` if they are more than can exist.
    pub fn units(&self, lots: u32, tick: u32) -> Option<FillUnits> {
        let base = bounded(u128::from(lots) * u128::from(self.lot_units))?;
        let per_lot = bounded(u128::from(tick.min(TICK_MAX)) * u128::from(self.tick_units))?;
        let quote = bounded(u128::from(lots) * u128::from(per_lot))?;
        Some(FillUnits { base, quote })
    }

    /// What a bust of this many lots costs; `None` if it is more than can exist.
    pub fn penalty_of(&self, lots: u32) -> Option<Amount> {
        bounded(u128::from(lots) * u128::from(self.penalty))
    }
}

fn bounded(units: u128) -> Option<Amount> {
    Amount::try_from(units).ok().filter(|units| *units <= MAX_ISSUED)
}

/// Whether the fees of an order, summed over its fills, stay within a cap on its quote units, summed over the same
/// fills. Sums are what is capped: a cap on each fill, rounded up, would make a thousand fills of one lot cost a
/// thousand units.
pub fn is_within_cap(quote: u128, fees: i128, cap_ppm: u32) -> bool {
    let Ok(fees) = u128::try_from(fees) else { return true };
    // ⌊q · c / p⌋ = (q / p) · c + ⌊(q mod p) · c / p⌋, which overflows only where the cap is beyond any fee.
    let (ppm, cap) = (u128::from(PPM), u128::from(cap_ppm));
    let whole = (quote / ppm).checked_mul(cap);
    let most = whole.and_then(|whole| whole.checked_add(quote % ppm * cap / ppm));
    most.is_none_or(|most| fees <= most)
}
