//! Logarithm and exponential from + − × ÷ alone, so that every machine gets the same bits.

const LN_2: f64 = std::f64::consts::LN_2;
const SQRT_2: f64 = std::f64::consts::SQRT_2;

/// The natural logarithm of a positive, normal `x`, to about 1e-15 absolute or relative, whichever is larger.
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let mantissa = f64::from_bits(bits & !(0xfff << 52) | 1023 << 52);
    let (mantissa, exponent) = if mantissa > SQRT_2 { (mantissa / 2.0, exponent + 1) } else { (mantissa, exponent) };
    // ln m = 2 artanh((m − 1)/(m + 1)), and the argument is at most 0.172.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let series = (0..11).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) * LN_2 + 2.0 * z * series
}

/// e^x for |x| ≤ 700, to about 1e-15 relative.
pub(crate) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let power = (x / LN_2).round();
    let rest = x - power * LN_2;
    let series = (1..16).rev().fold(1.0, |sum, k| 1.0 + sum * rest / f64::from(k));
    series * f64::from_bits(((power as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_the_library() {
        for step in -4000..4000 {
            let x = f64::from(step) * 0.17;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-13, "exp {x}");
            let y = x.exp();
            assert!((ln(y) - y.ln()).abs() <= 1e-15 * x.abs().max(1.0) * 2.0, "ln {y}");
        }
        assert_eq!((ln(1.0), exp(0.0)), (0.0, 1.0));
    }
}
