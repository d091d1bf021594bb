//! Sums of amount · limit price, exact, so that they do not depend on the order of addition.

use primitives::{Amount, Price};

/// The power of ten in which a [`Value`] counts: the exponent of the smallest price.
const UNIT: f64 = 1e-34;

/// An integer number of 10^-34 units of the bought asset, least significant word first. The total of all offers of a
/// pair is below 2^63 · 10^52 < 2^236.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value([u64; 4]);

impl Value {
    /// Σ amount · limit of offers whose total fits into an [`Amount`]; limits must not fall.
    pub(crate) fn of(limits: &[Price], amounts: &[Amount]) -> Value {
        let mut sum = Value::default();
        let mut from = 0;
        while from < limits.len() {
            let decade = limits[from].decade();
            let to = match limits.last() {
                Some(last) if last.decade() == decade => limits.len(),
                _ => from + limits[from..].partition_point(|limit| limit.decade() == decade),
            };
            sum = sum.plus(Value::scaled(mantissas(&limits[from..to], &amounts[from..to]), (decade + 18) as u32));
            from = to;
        }
        sum
    }

    /// `sum · 10^power` for a power up to 35.
    fn scaled(sum: u128, power: u32) -> Value {
        let (scale, mask) = (10u128.pow(power), u128::from(u64::MAX));
        let product = |a: u128, b: u128| (a & mask) * (b & mask);
        let (low, high) = (product(sum, scale), product(sum >> 64, scale >> 64));
        let result = Value([low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64]);
        let middle = |part: u128| Value([0, part as u64, (part >> 64) as u64, 0]);
        result.plus(middle(product(sum >> 64, scale))).plus(middle(product(sum, scale >> 64)))
    }

    /// The sum.
    pub(crate) fn plus(self, other: Value) -> Value {
        let mut carry = 0;
        self.words(other, |a, b| {
            let sum = u128::from(a) + u128::from(b) + carry;
            carry = sum >> 64;
            sum as u64
        })
    }

    /// The difference; `other` must not be larger.
    pub(crate) fn minus(self, other: Value) -> Value {
        let mut borrow = 0;
        self.words(other, |a, b| {
            let difference = (1 << 64 | u128::from(a)) - u128::from(b) - borrow;
            borrow = 1 - (difference >> 64);
            difference as u64
        })
    }

    fn words(self, other: Value, mut f: impl FnMut(u64, u64) -> u64) -> Value {
        let (a, b) = (self.0, other.0);
        Value([f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])])
    }

    /// The value in units of the bought asset, up to a few units in the last place.
    pub(crate) fn to_f64(self) -> f64 {
        let Some(top) = (0..4).rev().find(|i| self.0[*i] != 0) else { return 0.0 };
        let next = top.checked_sub(1).map_or(0, |i| self.0[i]);
        let zeros = self.0[top].leading_zeros();
        let leading = ((u128::from(self.0[top]) << 64 | u128::from(next)) << zeros >> 64) as u64;
        // The power of two is exact: at least 2^-63 and at most 2^192.
        let power = f64::from_bits((1023 + 64 * top as u64 - u64::from(zeros)) << 52);
        leading as f64 * power * UNIT
    }
}

/// Σ mantissa · amount, below 2^57 · 2^64.
fn mantissas(limits: &[Price], amounts: &[Amount]) -> u128 {
    let product = |(limit, amount): (&Price, &Amount)| u128::from(limit.mantissa()) * u128::from(*amount);
    limits.iter().zip(amounts).map(product).fold(0, u128::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::MAX_ISSUED;
    use proptest::prelude::*;

    fn any_offer() -> impl Strategy<Value = (Price, Amount)> {
        let mantissa = 10_000_000_000_000_000u64..100_000_000_000_000_000;
        let limit = (mantissa, -18i32..18).prop_map(|(m, d)| Price::from_parts(m, d).expect("in range"));
        (limit, prop_oneof![1..1000u64, 1..MAX_ISSUED / 16])
    }

    proptest! {
        #[test]
        fn sums_are_those_of_doubles_and_do_not_depend_on_the_cut(
            mut offers in prop::collection::vec(any_offer(), 1..12), cut in 0usize..12,
        ) {
            offers.sort_unstable();
            let (limits, amounts): (Vec<_>, Vec<_>) = offers.into_iter().unzip();
            let cut = cut.min(limits.len());
            let whole = Value::of(&limits, &amounts);
            let (head, tail) = (Value::of(&limits[..cut], &amounts[..cut]), Value::of(&limits[cut..], &amounts[cut..]));
            prop_assert_eq!(head.plus(tail), whole);
            prop_assert_eq!(whole.minus(head), tail);
            let plain: f64 = limits.iter().zip(&amounts).map(|(limit, amount)| limit.to_f64() * *amount as f64).sum();
            prop_assert!((whole.to_f64() / plain - 1.0).abs() < 1e-14, "{} {}", whole.to_f64(), plain);
        }
    }

    #[test]
    fn one_unit_at_one_is_a_power_of_ten() {
        let mut expected = [0; 4];
        let unit = 10u128.pow(34);
        (expected[0], expected[1]) = (unit as u64, (unit >> 64) as u64);
        assert_eq!(Value::of(&[Price::ONE], &[1]), Value(expected));
        assert_eq!(Value::default().to_f64(), 0.0);
        assert!((Value::of(&[Price::ONE], &[7]).to_f64() - 7.0).abs() < 1e-14);
    }
}
