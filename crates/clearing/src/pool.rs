//! Constant-product pools as participants of a batch (after Ramseyer, Goyal, Goel and Mazières, "Augmenting Batch
//! Exchanges with Constant Function Market Makers").
//!
//! # The rule
//!
//! A pool holds reserves x of A and y of B. It values a unit of A at its *marginal price* y/x. If the batch pays
//! more, even after commission ε and the pool's own fee φ, the pool sells A at the batch rate, like any other
//! participant: for s units it receives floor(s·(1−ε)·p_A/p_B) units of B. It sells until its marginal price meets
//! the rate,
//!
//! (y + s·ρ) / (x − s) = ρ, so s = (x − y/ρ) / 2, with ρ = (1−φ)(1−ε)·p_A/p_B,
//!
//! which is also where x·y would be largest if φ were 0. This is a supply that rises smoothly with the rate, like
//! that of offers with limits from y/x upwards. So it enters Newton's method with its exact slope, and the amount
//! step with bounds like any pair: U at (1−ε) of the rate, and L, what a full clearing must sell, at (1−μ).
//!
//! Units: reserves and trades are units of the assets, like those of offers; φ is a [`Fraction`]. Errors: a pool of one
//! asset, of an unknown one, or without reserves is rejected as [`crate::InputError::Pool`]. A [`PoolTrade`] that
//! differs from this rule is [`crate::Violation::Pool`], and one that is too small in a full clearing
//! [`crate::Violation::PoolNotFull`].
//!
//! # Properties
//!
//! - The product of the reserves never falls, in whole units: (x−s)·(y+b) ≥ x·y. A fill that would break this by
//!   rounding is made smaller, or not made.
//! - Pools trade at the batch's prices; they do not set them. At most one side of a pool trades.
//! - Pools do not count in [`crate::Report::unrealized_utility_ratio`], which is about offers.
//!
//! **Deviations from the paper**: the pool pays the same commission as everyone; amounts are whole units. The fee
//! makes the pool trade less, not pay less: as the batch rate is the same for all, a pool with a fee stops earlier.

use primitives::{Amount, AssetId, Fraction, MAX_ISSUED, Price};

use crate::band::Band;
use crate::rate::{PARTIAL_TRIES, Rate, Share};
use crate::wide::{at_least, power_of_ten, product};

/// A constant-product market maker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// One of its assets.
    pub a: AssetId,
    /// The other.
    pub b: AssetId,
    /// Units of `a` that it holds, at least 1.
    pub reserve_a: Amount,
    /// Units of `b` that it holds, at least 1.
    pub reserve_b: Amount,
    /// The part φ of the rate that it demands beyond its marginal price.
    pub fee: Fraction,
}

/// The trade of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolTrade {
    /// Position in [`crate::Book::pools`].
    pub pool: u32,
    /// The asset that it gives.
    pub sell: AssetId,
    /// The asset that it receives.
    pub buy: AssetId,
    /// Units of `sell` that it gives, at least 1.
    pub sold: Amount,
    /// Units of `buy` that it receives.
    pub bought: Amount,
}

/// A pool as a seller of one of its assets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) sell: AssetId,
    pub(crate) buy: AssetId,
    /// Units held of both assets.
    own: Amount,
    other: Amount,
    fee: Fraction,
}

impl Pool {
    /// The pool as a seller of `a`, and of `b`.
    pub(crate) fn sides(&self) -> [Side; 2] {
        let Pool { a, b, reserve_a, reserve_b, fee } = *self;
        let side = |sell, buy, own, other| Side { sell, buy, own, other, fee };
        [side(a, b, reserve_a, reserve_b), side(b, a, reserve_b, reserve_a)]
    }
}

impl Side {
    /// The marginal price.
    pub(crate) fn price(&self) -> f64 {
        self.other as f64 / self.own as f64
    }

    /// The value that the side sells at prices `sell` and `buy`, below the band and in it, and its slope e, like
    /// those of a pair: at the middle of the band.
    pub(crate) fn flow(&self, sell: f64, buy: f64, band: Band) -> (f64, f64, f64) {
        let (own, other, keep) = (self.own as f64, self.other as f64, 1.0 - self.fee.to_f64());
        let sold = |share: f64| (0.5 * (own - other * buy / (keep * share * sell))).max(0.0);
        let middle = 0.5 * (band.alpha + band.beta);
        let (most, sure) = (sell * sold(middle), sell * sold(band.alpha));
        let slope = if most > 0.0 { 0.5 * buy * other / (keep * middle) } else { 0.0 };
        (sure, most - sure, slope)
    }

    /// A bound of the value that the side sells at the price `sell`.
    pub(crate) fn most_value(&self, sell: f64) -> f64 {
        0.5 * self.own as f64 * sell
    }

    /// Whether the marginal price is at most (1−φ)(1−share) of the rate after selling `sold` units, exactly.
    fn is_within(&self, sold: Amount, share: Fraction, sell: Price, buy: Price) -> bool {
        let Some(left) = sold.checked_mul(2).and_then(|twice| self.own.checked_sub(twice)) else { return false };
        let gap = sell.exponent() - buy.exponent();
        let [a, b, _, _] = power_of_ten(gap.max(0) as u32);
        let [c, d, _, _] = power_of_ten((-gap).max(0) as u32);
        let one = Fraction::ONE_IN_UNITS;
        let (keep, net) = (self.fee.complement_units(), share.complement_units());
        at_least(
            &product(&[left, keep, net, sell.mantissa(), a, b]),
            &product(&[self.other, one, one, buy.mantissa(), c, d]),
        )
    }

    /// The most units that may be sold at (1−share) of the rate.
    pub(crate) fn most(&self, share: Fraction, sell: Price, buy: Price) -> Amount {
        if !self.is_within(1, share, sell, buy) {
            return 0;
        }
        let (mut low, mut high) = (1, self.own / 2 + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.is_within(middle, share, sell, buy) { low = middle } else { high = middle }
        }
        low
    }

    /// The largest fill of at most `target` units, as (units sold, units received), that does not reduce the product
    /// of the reserves.
    pub(crate) fn fill(&self, rate: &Rate, target: Amount) -> (Amount, Amount) {
        let most = rate.payout(target).unwrap_or(MAX_ISSUED);
        let mut fills = (1..=most).rev().take(PARTIAL_TRIES as usize).map(|bought| (rate.net.fewest(bought), bought));
        let is_proper =
            |&(sold, bought): &(Amount, Amount)| rate.payout(sold) == Some(bought) && self.keeps_product(sold, bought);
        fills.find(is_proper).unwrap_or((0, 0))
    }

    fn keeps_product(&self, sold: Amount, bought: Amount) -> bool {
        let product = |a: Amount, b: Amount| u128::from(a) * u128::from(b);
        let grown = self.other.checked_add(bought);
        sold < self.own && grown.is_some_and(|grown| product(self.own - sold, grown) >= product(self.own, self.other))
    }

    /// L and U of the side, as far as fills can give them.
    pub(crate) fn bounds(&self, rate: &Rate) -> (Amount, Amount) {
        let most = |share: &Share| self.fill(rate, self.most(share.share, share.sell, share.buy)).0;
        let high = most(&rate.net);
        (if high == 0 { 0 } else { most(&rate.sure) }, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_price() -> impl Strategy<Value = Price> {
        (10_000_000_000_000_000u64..100_000_000_000_000_000, -18i32..18)
            .prop_map(|(m, d)| Price::from_parts(m, d).expect("in range"))
    }

    fn any_reserve() -> impl Strategy<Value = Amount> {
        prop_oneof![1..=1000u64, 1..=MAX_ISSUED / 4]
    }

    #[test]
    fn a_pool_sells_half_of_the_difference() {
        let par = Price::ONE;
        let side = |own, other| {
            let pool = Pool { a: AssetId(0), b: AssetId(1), reserve_a: own, reserve_b: other, fee: Fraction::ZERO };
            pool.sides()[0]
        };
        assert_eq!(side(3_000, 1_000).most(Fraction::ZERO, par, par), 1_000);
        assert_eq!(side(1_000, 3_000).most(Fraction::ZERO, par, par), 0);
        let rate = Rate::new(par, par, Fraction::ZERO, Fraction::power_of_two(1));
        assert_eq!(side(3_000, 1_000).fill(&rate, 1_000), (1_000, 1_000));
        // At half the rate: (3000 − 1000 / 0.5) / 2.
        assert_eq!(side(3_000, 1_000).bounds(&rate), (500, 1_000));
    }

    proptest! {
        #[test]
        fn the_product_never_falls_and_the_price_stops_at_the_rate(
            own in any_reserve(), other in any_reserve(), sell in any_price(), buy in any_price(),
                near in any::<bool>(),
            target in 0..=MAX_ISSUED, fee in prop_oneof![Just(Fraction::ZERO),
                (4u32..12).prop_map(Fraction::power_of_two)],
        ) {
            let price = (other as f64 / own as f64 * 1.1 * buy.to_f64()).clamp(1e-18, 9e17);
            let sell = if near { Price::from_f64(price).unwrap() } else { sell };
            let pool = Pool { a: AssetId(0), b: AssetId(1), reserve_a: own, reserve_b: other, fee };
            let [side, back] = pool.sides();
            let epsilon = Fraction::power_of_two(15);
            let rate = Rate::new(sell, buy, epsilon, Fraction::power_of_two(10));
            let most = side.most(epsilon, sell, buy);
            prop_assert!(most == 0 || back.most(epsilon, buy, sell) == 0);
            let wanted = 0.5 * (own as f64 - other as f64 / ((1.0 - fee.to_f64()) * rate.to_f64()));
            prop_assert!((most as f64 - wanted.max(0.0)).abs() <= 1.0 + 1e-9 * own as f64, "{} {}", most, wanted);
            let (sold, bought) = side.fill(&rate, target.min(most));
            prop_assert!(sold <= target.min(most) && (sold == 0) == (bought == 0));
            prop_assert!(sold == 0 || rate.payout(sold) == Some(bought));
            let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
            prop_assert!(product(own - sold, other + bought) >= product(own, other));
            let (low, high) = side.bounds(&rate);
            prop_assert!(low <= high && high <= most);
        }
    }
}
