//! The budget of a clearing.
//!
//! Work is counted in *looks*: one look at one pair by the price computation, or at one edge by the amount step, each
//! some ten to thirty nanoseconds. More expensive operations count as several looks: the exponential of a price, the
//! solution of a linear system, offers that are walked one by one, a shortage that is moved in whole units. Looks
//! depend on the book alone, never on a clock.
//!
//! Every part of the market has its own budget, in proportion to its assets and offers, however its pairs are
//! connected. So budgets are divided before any work begins, no part spends what another needs, and the number of
//! threads does not matter. All parts together spend as much as one part of their total size, so that no way to split
//! a market makes it slow.

use primitives::{Amount, Fraction};

/// The budget of each part, as multiples of the size of the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// All attempts of the interior-point method at prices: looks per asset, and per 4,096 offers. Newton's method may
    /// spend a tenth of it before, or a little for each pair. Half as much may be spent on a proof that no whole units
    /// exist.
    pub prices: u32,
    /// The amount step: looks per edge, asset and eighth offer of a set that trades together. As much again may be
    /// spent on letting it trade what it can, once it is known that it cannot be full.
    pub amounts: u32,
}

impl Default for Budget {
    /// Prices: far more than almost all books with a solution take (all but one in a hundred), and so little that the
    /// worst book which is known takes two to three times as long as an ordinary block.
    fn default() -> Budget {
        Budget { prices: 80_000, amounts: 300 }
    }
}

impl Budget {
    /// The price budget of a part with so many assets and offers.
    pub(crate) fn price_looks(self, assets: usize, offers: usize) -> u64 {
        const OFFERS: usize = 4_096;
        u64::from(self.prices) * (assets + offers / OFFERS) as u64
    }
}

/// Work done, and its limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowance {
    pub(crate) spent: u64,
    most: u64,
}

impl Allowance {
    pub(crate) fn new(most: u64) -> Allowance {
        Allowance { spent: 0, most }
    }

    pub(crate) fn spend(&mut self, looks: u64) {
        self.spent = self.spent.saturating_add(looks);
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.spent >= self.most
    }

    /// Allows `more` beyond what has been spent.
    pub(crate) fn renew(&mut self, more: u64) {
        self.most = self.spent.saturating_add(more);
    }
}

/// The smallest amount, sold and asked for, at which the band from `mu` to `epsilon` is wider than the rounding loss
/// on both sides of an offer: least·(μ−ε) ≥ 2. [`Amount::MAX`] if μ does not exceed ε.
///
/// Where all offers sell and ask for at least this much, rounding on their own pair keeps no offer from filling. One
/// thing still can: a unit of a third asset that is worth more than an offer's band. For example, 1 D trades for 474 C,
/// 1 C for 1 E, and E for D. An offer of 5,164 C that must fill is worth 10.9 D. Offers of D and E can trade for 10 D
/// or 11, and no other prices help. The reason is then [`crate::Reason::Units`].
pub fn least_units(epsilon: Fraction, mu: Fraction) -> Amount {
    match mu.units().checked_sub(epsilon.units()) {
        None | Some(0) => Amount::MAX,
        Some(band) => (2 * Fraction::ONE_IN_UNITS).div_ceil(band),
    }
}

/// The work spent by a clearing, over all price vectors that it tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Looks of the price computation, see [`Budget`].
    pub price_looks: u64,
    /// Looks of the amount step.
    pub amount_looks: u64,
    /// Price vectors for which amounts were computed.
    pub tries: u32,
    /// Searches for the shortest paths from shortages to surpluses.
    pub rounds: u32,
    /// Paths along which a shortage was moved in those searches.
    pub augmentations: u32,
    /// Shortages that were moved unit by unit, where fills can give only some amounts.
    pub repairs: u32,
}

impl Spending {
    /// The sum of both.
    pub(crate) fn plus(self, other: Spending) -> Spending {
        Spending {
            price_looks: self.price_looks + other.price_looks,
            amount_looks: self.amount_looks + other.amount_looks,
            tries: self.tries + other.tries,
            rounds: self.rounds + other.rounds,
            augmentations: self.augmentations + other.augmentations,
            repairs: self.repairs + other.repairs,
        }
    }
}
