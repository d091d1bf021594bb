//! A price for searches among limit prices: its bits compare like those of prices.

use primitives::Price;

/// Splits all limit prices into those below and those not below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Threshold(u64);

/// 10^k for k from −18 to 36; exact from 0 to 22.
const POWERS: [f64; 55] = [
    1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2,
    1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
    1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36,
];

fn power(k: i32) -> f64 {
    POWERS[(k + 18) as usize]
}

impl Threshold {
    /// The threshold at `price`, up to 2^-50 (relative); it never falls as `price` rises. Prices outside the range of
    /// [`Price`] have all limits on one side. NaN is below all limits.
    pub(crate) fn new(price: f64) -> Threshold {
        if price.is_nan() || price < 1e-18 {
            return Threshold(0);
        }
        if price >= 1e18 {
            return Threshold(u64::MAX);
        }
        // log10 2 is a little more than 1233/4096, so this is the decade or the one below it.
        let exponent = (price.to_bits() >> 52) as i32 - 1023;
        let guess = (exponent * 1233) >> 12;
        let decade = if price >= power(guess + 1) { guess + 1 } else { guess };
        let mantissa = (price * power(16 - decade)) as u64;
        Threshold(((decade + 18) as u64) << 57 | mantissa.clamp(10_000_000_000_000_000, 100_000_000_000_000_000))
    }

    /// Whether `limit` is below the threshold.
    pub(crate) fn is_above(self, limit: Price) -> bool {
        limit.to_bits() < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prices_out_of_range_are_beyond_all_limits() {
        for price in [0.0, -1.0, f64::NEG_INFINITY, f64::NAN, -f64::NAN, 1e-300, 0.99e-18] {
            assert!(!Threshold::new(price).is_above(Price::MIN));
        }
        for price in [1e18, 1e300, f64::INFINITY] {
            assert!(Threshold::new(price).is_above(Price::MAX));
        }
        assert!(Threshold::new(1.0000000000000002).is_above(Price::ONE) && !Threshold::new(1.0).is_above(Price::ONE));
    }

    proptest! {
        #[test]
        fn it_stands_where_the_double_does(mantissa in 10_000_000_000_000_000u64..100_000_000_000_000_000,
            decade in -18i32..18) {
            let price = Price::from_parts(mantissa, decade).expect("in range");
            let double = price.to_f64();
            prop_assert!(Threshold::new(double * (1.0 + 1e-15)).is_above(price));
            prop_assert!(!Threshold::new(double * (1.0 - 1e-15)).is_above(price));
        }

        #[test]
        fn it_never_falls(price in 1e-18f64..1e18, step in 0u64..4, scale in -17i32..17) {
            let price = price * POWERS[(scale + 18) as usize];
            let next = f64::from_bits(price.to_bits() + step);
            prop_assert!(Threshold::new(next).0 >= Threshold::new(price).0);
        }
    }
}
