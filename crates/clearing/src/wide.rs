//! Products of machine words that do not fit in 128 bits.

/// An unsigned integer of 384 bits, least significant word first.
pub(crate) type Wide = [u64; 6];

/// The product of `factors`. The caller keeps it below 2^384.
pub(crate) fn product(factors: &[u64]) -> Wide {
    let mut result = [1, 0, 0, 0, 0, 0];
    for factor in factors {
        let mut carry = 0;
        for word in &mut result {
            let part = u128::from(*word) * u128::from(*factor) + carry;
            *word = part as u64;
            carry = part >> 64;
        }
        debug_assert_eq!(carry, 0, "a product of more than 384 bits");
    }
    result
}

/// `10^power` as factors for [`product`], for `power` up to 76.
pub(crate) fn power_of_ten(power: u32) -> [u64; 4] {
    const STEP: u32 = 19;
    let factor = |k: u32| 10u64.pow(power.saturating_sub(k * STEP).min(STEP));
    [factor(0), factor(1), factor(2), factor(3)]
}

/// Whether `a ≥ b`.
pub(crate) fn at_least(a: &Wide, b: &Wide) -> bool {
    a.iter().rev().ge(b.iter().rev())
}

/// The leading 128 bits of a positive `a`, the first of them set, and the power of two of their lowest bit.
pub(crate) fn leading(a: &Wide) -> (u128, i32) {
    let top = (0..6).rev().find(|&i| a[i] != 0).expect("a positive number");
    let word = |i: usize| top.checked_sub(i).map_or(0, |i| a[i]);
    let zeros = word(0).leading_zeros();
    let high = u128::from(word(0)) << 64 | u128::from(word(1));
    let low = u128::from(word(2)) << zeros >> 64;
    (high << zeros | low, top as i32 * 64 - 64 - zeros as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_multiply() {
        for power in [0u32, 1, 18, 19, 20, 38] {
            let got = product(&power_of_ten(power));
            let value = 10u128.pow(power);
            assert_eq!(got, [value as u64, (value >> 64) as u64, 0, 0, 0, 0]);
        }
        let square = product(&[power_of_ten(35), power_of_ten(35)].concat());
        assert_eq!(square, product(&power_of_ten(70)));
    }

    #[test]
    fn leading_bits_start_with_a_one() {
        assert_eq!(leading(&[1, 0, 0, 0, 0, 0]), (1 << 127, -127));
        assert_eq!(leading(&[0, 0, 3, 0, 0, 0]), (3 << 126, 2));
        let (bits, exponent) = leading(&[u64::MAX, u64::MAX, 1, 0, 0, 0]);
        assert_eq!((bits, exponent), (u128::MAX, 1));
    }

    #[test]
    fn order_is_by_the_highest_word() {
        assert!(at_least(&[0, 1, 0, 0, 0, 0], &[9, 0, 0, 0, 0, 0]));
        assert!(!at_least(&[9, 0, 0, 0, 0, 0], &[0, 1, 0, 0, 0, 0]));
        assert!(at_least(&[7, 0, 0, 0, 0, 2], &[7, 0, 0, 0, 0, 2]));
    }
}
