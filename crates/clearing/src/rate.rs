//! The exact pay-out rule of one ordered pair.
//!
//! An account that gives `sold` units of A receives `floor(sold · (1−ε) · p_A/p_B)` units of B. The quotient has no
//! short exact form, so a rate keeps a 64-bit reciprocal that bounds it from below and above. Where both bounds round
//! to the same integer, as they nearly always do, that is the result; otherwise products of up to 270 bits decide.

use primitives::{Amount, Fraction, MAX_ISSUED, Price};

/// Number of pay-outs, each a unit below the last, that a partial fill tries.
pub const PARTIAL_TRIES: u64 = 64;

use crate::wide::{Wide, at_least, leading, power_of_ten, product};

/// Represents every pay-out far beyond what can be paid.
const BEYOND: u128 = 1 << 100;

/// A part `(1−share) · p_A/p_B` of the rate of one ordered pair, in units of B per unit of A.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) sell: Price,
    pub(crate) buy: Price,
    pub(crate) share: Fraction,
    /// `low / 2^shift ≤ rate < high / 2^shift`, both of about 64 bits.
    low: u64,
    high: u64,
    shift: i32,
}

impl Share {
    pub(crate) fn new(sell: Price, buy: Price, share: Fraction) -> Share {
        let (upper, upper_power) = leading(&ratio_side(1, share.complement_units(), sell, power(sell, buy)));
        let (lower, lower_power) = leading(&ratio_side(1, Fraction::ONE_IN_UNITS, buy, power(buy, sell)));
        // Dividing 126 leading bits by 64 leaves a quotient of 62 or 63 bits, and no more than 4 units between bounds.
        let (dividend, divisor) = (upper >> 2, lower >> 64);
        let low = (dividend / (divisor + 1)) as u64;
        let high = ((dividend + 1) / divisor + 1) as u64;
        Share { sell, buy, share, low, high, shift: (lower_power + 64) - (upper_power + 2) }
    }

    /// `floor(sold · (1−share) · p_A/p_B)`; `None` if it exceeds [`MAX_ISSUED`].
    pub(crate) fn payout(&self, sold: Amount) -> Option<Amount> {
        let least = scale(sold, self.low, self.shift)?;
        let most = scale(sold, self.high, self.shift)?;
        let exact = if least == most { least } else { self.settle(sold, least, most) };
        (exact <= u128::from(MAX_ISSUED)).then_some(exact as Amount)
    }

    /// The largest pay-out from `least` to `most` that `sold` units earn; `least` is known to be earned.
    fn settle(&self, sold: Amount, least: u128, most: u128) -> u128 {
        let most = most.min(u128::from(MAX_ISSUED) + 1);
        let earned = |bought: u128| self.earns(sold, bought as u64);
        (least + 1..=most).rev().find(|bought| earned(*bought)).unwrap_or(least)
    }

    /// Whether `sold · rate ≥ bought`, exactly.
    fn earns(&self, sold: Amount, bought: u64) -> bool {
        let given = ratio_side(sold, self.share.complement_units(), self.sell, power(self.sell, self.buy));
        let asked = ratio_side(bought, Fraction::ONE_IN_UNITS, self.buy, power(self.buy, self.sell));
        at_least(&given, &asked)
    }

    /// The fewest units that earn `bought`; `bought` must be the pay-out of some amount in range.
    pub(crate) fn fewest(&self, bought: Amount) -> Amount {
        let numerator = u128::from(bought) << self.shift.clamp(0, 127);
        let mut sold = (numerator / u128::from(self.high)) as Amount;
        while self.payout(sold).is_some_and(|paid| paid < bought) {
            sold += 1;
        }
        sold
    }

    /// An upper bound of the total pay-out of offers that sell `sold` units. At most a few units above the exact sum of
    /// their pay-outs plus one unit per offer. It never falls as `sold` grows, and is capped at 2^100, far beyond what
    /// can be paid, so that sums of bounds do not overflow.
    pub(crate) fn payout_bound(&self, sold: Amount) -> u128 {
        scale(sold, self.high, self.shift).unwrap_or(BEYOND).min(BEYOND)
    }

    /// The most units whose [`Share::payout_bound`] is at most `bound`.
    pub(crate) fn most_within(&self, bound: u128) -> Amount {
        if self.shift <= 0 {
            return (bound / self.payout_bound(1)).min(u128::from(MAX_ISSUED)) as Amount;
        }
        if self.shift >= 127 || bound >= u128::MAX >> (self.shift + 1) {
            return MAX_ISSUED;
        }
        let sold = (((bound + 1) << self.shift) - 1) / u128::from(self.high);
        sold.min(u128::from(MAX_ISSUED)) as Amount
    }

    /// Whether `limit` is at most this part of the rate, exactly. No offer beyond it is paid its limit there.
    pub(crate) fn reaches(&self, limit: Price) -> bool {
        !is_above(limit, self.share, self.sell, self.buy)
    }

    /// This part of the rate, up to a few units in the last place.
    pub(crate) fn to_f64(self) -> f64 {
        (1.0 - self.share.to_f64()) * approx(self.sell) / approx(self.buy)
    }
}

/// The rate of one ordered pair, and its consequences for the offers.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Net of commission: the rate that offers are paid.
    pub(crate) net: Share,
    /// μ below the rate: offers that would be paid their limits even at this rate must execute.
    pub(crate) sure: Share,
    /// A lower bound of `sure`.
    surely: f64,
}

impl Rate {
    /// The rate at valuations `sell` of A and `buy` of B under commission `epsilon` and fullness `mu`.
    pub fn new(sell: Price, buy: Price, epsilon: Fraction, mu: Fraction) -> Rate {
        let (net, sure) = (Share::new(sell, buy, epsilon), Share::new(sell, buy, mu));
        Rate { net, sure, surely: sure.to_f64() * (1.0 - 1e-12) }
    }

    /// `floor(sold · (1−ε) · p_A/p_B)`: what an account receives for `sold` units; `None` if it exceeds [`MAX_ISSUED`].
    pub fn payout(&self, sold: Amount) -> Option<Amount> {
        self.net.payout(sold)
    }

    /// Whether `limit` is at most the net rate, exactly. No offer beyond it can ever fill.
    pub fn reaches(&self, limit: Price) -> bool {
        self.net.reaches(limit)
    }

    /// Whether a full clearing must fill an offer of `amount` units at `limit`: the units it asks for, `ceil(amount ·
    /// limit)`, can exist and are at most `amount · (1−μ) · p_A/p_B`. So its *effective* limit, `ceil(amount · limit)
    /// / amount`, decides, as pay-outs are whole units.
    ///
    /// An offer whose pay-out at this rate would exceed every unit that can exist must fill all the same, and cannot:
    /// fullness makes no exception for the choice of prices.
    pub fn must_fill(&self, limit: Price, amount: Amount) -> bool {
        const SURELY_EXISTS: f64 = 9.2e18;
        // Most offers are at least a whole unit of pay-out away from the boundary.
        let (units, limit_price) = (amount as f64, approx(limit));
        if units * (self.surely - limit_price) >= 1.0 && units * limit_price < SURELY_EXISTS {
            return true;
        }
        // An offer need not fill if its limit alone, the least that it asks per unit, is clearly above.
        if limit_price > self.surely * (1.0 + 3e-12) {
            return false;
        }
        let asked = asked(limit, amount);
        asked <= u128::from(MAX_ISSUED) && self.sure.earns(amount, asked as u64)
    }

    /// Whether `sold` units for `bought` satisfy `limit`. It is exact; a double decides the clear cases.
    pub(crate) fn fair(limit: Price, sold: Amount, bought: Amount) -> bool {
        const CLEARLY: f64 = 1.0 - 1.0 / (1u64 << 40) as f64;
        sold as f64 * approx(limit) <= bought as f64 * CLEARLY || limit.accepts(sold, bought)
    }

    /// The net rate, up to a few units in the last place.
    pub fn to_f64(&self) -> f64 {
        self.net.to_f64()
    }
}

/// `ceil(amount · limit)`: the units that an offer asks for.
pub(crate) fn asked(limit: Price, amount: Amount) -> u128 {
    // Below 2^121, and limits are below 10^18, so that the exponent is at most 1.
    let product = u128::from(amount) * u128::from(limit.mantissa());
    match limit.exponent() {
        exponent @ 0.. => product * 10u128.pow(exponent as u32),
        exponent => product.div_ceil(10u128.pow(exponent.unsigned_abs())),
    }
}

/// Whether `limit > (1−share) · sell/buy`, exactly.
fn is_above(limit: Price, share: Fraction, sell: Price, buy: Price) -> bool {
    let (asked, offered) = sides(limit, share, sell, buy);
    !at_least(&offered, &asked)
}

/// `limit` and `(1−share) · sell/buy` over a common denominator.
fn sides(limit: Price, share: Fraction, sell: Price, buy: Price) -> (Wide, Wide) {
    let gap = limit.exponent() + buy.exponent() - sell.exponent();
    let [a, b, c, d] = power_of_ten(gap.max(0) as u32);
    let asked = product(&[limit.mantissa(), buy.mantissa(), Fraction::ONE_IN_UNITS, a, b, c, d]);
    let [a, b, c, d] = power_of_ten((-gap).max(0) as u32);
    (asked, product(&[share.complement_units(), sell.mantissa(), a, b, c, d]))
}

/// The power of ten by which side `own` of a comparison is multiplied, so that both sides are integers.
fn power(own: Price, other: Price) -> u32 {
    (own.exponent() - other.exponent()).max(0) as u32
}

fn ratio_side(amount: u64, share: u64, price: Price, power: u32) -> Wide {
    let [a, b, _, _] = power_of_ten(power);
    product(&[share, price.mantissa(), amount, a, b])
}

/// `floor(sold · factor / 2^shift)`, or `None` where it is beyond every amount.
fn scale(sold: Amount, factor: u64, shift: i32) -> Option<u128> {
    match shift {
        _ if sold == 0 => Some(0),
        ..=0 => (u128::from(sold) * u128::from(factor)).checked_mul(1u128.checked_shl(shift.unsigned_abs())?),
        1..=127 => Some((u128::from(sold) * u128::from(factor)) >> shift),
        _ => Some(0),
    }
}

/// `price` as a double, up to two units in its last place; one multiplication, the same on every machine.
pub(crate) fn approx(price: Price) -> f64 {
    const SCALES: [f64; 36] = [
        1e-34, 1e-33, 1e-32, 1e-31, 1e-30, 1e-29, 1e-28, 1e-27, 1e-26, 1e-25, 1e-24, 1e-23, 1e-22, 1e-21, 1e-20, 1e-19,
        1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2,
        1e-1, 1.0, 1e1,
    ];
    price.mantissa() as f64 * SCALES[(price.exponent() + 34) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn price(text: &str) -> Price {
        text.parse().expect("a price")
    }

    fn any_price() -> impl Strategy<Value = Price> {
        let mantissa = prop_oneof![
            10_000_000_000_000_000u64..100_000_000_000_000_000,
            (1u64..100).prop_map(|m| if m < 10 { m * 10_000_000_000_000_000 } else { m * 1_000_000_000_000_000 }),
        ];
        let decade = prop_oneof![-18i32..18, -1i32..2];
        (mantissa, decade).prop_map(|(m, d)| Price::from_parts(m, d).expect("in range"))
    }

    fn any_amount() -> impl Strategy<Value = Amount> {
        prop_oneof![0..=MAX_ISSUED, 0u64..1000, 0u64..1 << 40]
    }

    fn any_fraction() -> impl Strategy<Value = Fraction> {
        prop_oneof![Just(Fraction::ZERO), (1u32..33).prop_map(Fraction::power_of_two)]
    }

    /// The defining inequality: `bought ≤ sold·rate < bought + 1`, multiplied out in big integers.
    fn is_payout(rate: &Share, sold: Amount, bought: u64) -> bool {
        rate.earns(sold, bought) && !rate.earns(sold, bought + 1)
    }

    #[test]
    fn known_payouts() {
        let rate = Share::new(price("0.91"), Price::ONE, Fraction::ZERO);
        assert_eq!(rate.payout(100), Some(91));
        assert_eq!(rate.payout(99), Some(90));
        assert_eq!(rate.payout(0), Some(0));
        let rate = Share::new(Price::ONE, Price::ONE, Fraction::power_of_two(15));
        assert_eq!(rate.payout(1), Some(0));
        assert_eq!(rate.payout(1 << 15), Some((1 << 15) - 1));
        assert_eq!(rate.payout((1 << 15) - 1), Some((1 << 15) - 2));
        let par = Share::new(Price::ONE, Price::ONE, Fraction::ZERO);
        assert_eq!(par.payout(MAX_ISSUED), Some(MAX_ISSUED));
        assert_eq!(Share::new(price("2"), Price::ONE, Fraction::ZERO).payout(MAX_ISSUED), None);
        assert_eq!(Share::new(Price::MAX, Price::MIN, Fraction::ZERO).payout(1), None);
        assert_eq!(Share::new(Price::MIN, Price::MAX, Fraction::ZERO).payout(MAX_ISSUED), Some(0));
    }

    #[test]
    fn thresholds_are_exact() {
        let rate = |sell, buy| Rate::new(sell, buy, Fraction::ZERO, Fraction::power_of_two(1));
        let par = rate(Price::ONE, Price::ONE);
        assert!(
            par.must_fill(price("0.5"), MAX_ISSUED - 1) && !par.must_fill(price("0.50000000000000001"), MAX_ISSUED - 1)
        );
        // 3 units at 0.5 ask for 2, as 7 at 0.5 ask for 4: more than half the rate. 8 units ask for 4.
        assert!(!par.must_fill(price("0.5"), 3) && !par.must_fill(price("0.5"), 7) && par.must_fill(price("0.5"), 8));
        let rate = rate(price("3"), price("4"));
        assert!(rate.reaches(price("0.75")));
        assert!(!rate.reaches(price("0.75000000000000001")));
        let wide = Rate::new(Price::MAX, Price::MIN, Fraction::ZERO, Fraction::power_of_two(1));
        // An offer that only the price makes unpayable must fill; one that asks for more than can exist need not.
        assert!(wide.must_fill(Price::MIN, 1) && wide.payout(1).is_none());
        assert!(wide.must_fill(Price::ONE, MAX_ISSUED) && !wide.must_fill(Price::ONE, MAX_ISSUED + 1));
        assert!(!Rate::new(Price::MIN, Price::MAX, Fraction::ZERO, Fraction::power_of_two(1)).must_fill(Price::MAX, 1));
    }

    proptest! {
        #[test]
        fn payout_is_the_floor(sell in any_price(), buy in any_price(), epsilon in any_fraction(),
            sold in any_amount()) {
            let rate = Share::new(sell, buy, epsilon);
            match rate.payout(sold) {
                Some(bought) => prop_assert!(is_payout(&rate, sold, bought)),
                None => prop_assert!(rate.earns(sold, MAX_ISSUED + 1)),
            }
        }

        #[test]
        fn bounds_hold(sell in any_price(), buy in any_price(), epsilon in any_fraction(), sold in any_amount()) {
            let rate = Share::new(sell, buy, epsilon);
            let bound = rate.payout_bound(sold);
            if let Some(bought) = rate.payout(sold) {
                prop_assert!(bound >= u128::from(bought) && bound <= u128::from(bought) + 4);
                if bought > 0 {
                    let fewest = rate.fewest(bought);
                    prop_assert_eq!(rate.payout(fewest), Some(bought));
                    prop_assert!(rate.payout(fewest - 1).unwrap() < bought);
                }
            }
            if bound >= 1 << 100 {
                return Ok(());
            }
            let most = rate.most_within(bound);
            prop_assert!(most >= sold && (most == 0 || rate.payout_bound(most) <= bound));
            prop_assert!(most == MAX_ISSUED || rate.payout_bound(most + 1) > bound);
        }

        #[test]
        fn limits_compare_as_doubles_do(limit in any_price(), sell in any_price(), buy in any_price()) {
            let rate = Share::new(sell, buy, Fraction::ZERO);
            let (l, r) = (approx(limit), rate.to_f64());
            if l < r * 0.999_999 {
                prop_assert!(rate.reaches(limit));
            }
            if l > r * 1.000_001 {
                prop_assert!(!rate.reaches(limit));
            }
        }

        /// By the definition, in words: the fewest units that satisfy the limit are no more than (1−μ) of the rate
        /// pays.
        #[test]
        fn the_effective_limit_decides(
            sell in any_price(), buy in any_price(), limit in any_price(), near in any::<bool>(),
                amount in 1..=MAX_ISSUED, small in 1u64..5000, few in any::<bool>(),
        ) {
            let amount = if few { small } else { amount };
            let mu = Fraction::power_of_two(5);
            let sure = Share::new(sell, buy, mu);
            let limit = if near { Price::from_f64((sure.to_f64() * 0.9999).clamp(1e-18,
                9e17)).unwrap() } else { limit };
            let asked = |bought: &u64| limit.accepts(amount, *bought);
            // Bisect for the fewest units that satisfy the limit.
            let (mut low, mut high) = (0u64, MAX_ISSUED);
            while low < high {
                let middle = low + (high - low) / 2;
                if asked(&middle) { high = middle } else { low = middle + 1 }
            }
            let expected = asked(&low) && sure.earns(amount, low);
            prop_assert_eq!(Rate::new(sell, buy, Fraction::ZERO, mu).must_fill(limit, amount), expected);
        }

        #[test]
        fn doubles_are_close(a in any_price()) {
            prop_assert!((approx(a) / a.to_f64() - 1.0).abs() < 1e-15);
        }
    }
}
