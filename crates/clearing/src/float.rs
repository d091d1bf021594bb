//! Logarithm and exponential with + − × ÷ only, so that every machine computes the same bits.

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
    let mut result = [x];
    exp_all(&mut result);
    result[0]
}

/// Replaces every x by e^x, with the same result as [`exp`]. The products of one x depend on each other; those of
/// several adjacent ones can run in parallel.
pub(crate) fn exp_all(xs: &mut [f64]) {
    const SIDE_BY_SIDE: usize = 8;
    for xs in xs.chunks_mut(SIDE_BY_SIDE) {
        let (mut powers, mut rests) = ([0.0; SIDE_BY_SIDE], [0.0; SIDE_BY_SIDE]);
        for (x, (power, rest)) in xs.iter().zip(powers.iter_mut().zip(&mut rests)) {
            let x = x.clamp(-700.0, 700.0);
            *power = whole(x * (1.0 / LN_2));
            *rest = x - *power * LN_2;
        }
        let mut series = [1.0; SIDE_BY_SIDE];
        // |rest| is at most 0.347, so that the omitted terms are below 1e-17.
        for k in (1..14).rev() {
            let share = 1.0 / f64::from(k);
            series.iter_mut().zip(&rests).for_each(|(sum, rest)| *sum = 1.0 + *sum * (rest * share));
        }
        for (x, (series, power)) in xs.iter_mut().zip(series.iter().zip(powers)) {
            *x = series * f64::from_bits(((power as i64 + 1023) as u64) << 52);
        }
    }
}

/// `x.round()` of an x up to a few thousand, without a library call.
fn whole(x: f64) -> f64 {
    let down = x as i32;
    let rest = x - f64::from(down);
    f64::from(down + i32::from(rest >= 0.5) - i32::from(rest <= -0.5))
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

    /// The same as one by one: clearings depend on every bit.
    #[test]
    fn many_are_as_one_is() {
        let plainly = |x: f64| {
            let x = x.clamp(-700.0, 700.0);
            let power = (x * (1.0 / LN_2)).round();
            let rest = x - power * LN_2;
            let series = (1..14).rev().fold(1.0, |sum, k| 1.0 + sum * (rest * (1.0 / f64::from(k))));
            series * f64::from_bits(((power as i64 + 1023) as u64) << 52)
        };
        let halves = (-9..10).map(|k| (f64::from(k) + 0.5) * LN_2);
        let xs: Vec<f64> =
            (-5_000..5_000).map(|step| f64::from(step) * 0.1471).chain(halves).chain([0.0, -0.0]).collect();
        for count in [1, 7, 8, 9, xs.len()] {
            let mut all = xs[xs.len() - count..].to_vec();
            exp_all(&mut all);
            all.iter()
                .zip(&xs[xs.len() - count..])
                .for_each(|(got, x)| assert_eq!(got.to_bits(), plainly(*x).to_bits(), "{x}"));
        }
        assert_eq!([0.5, -0.5, 2.4999, -1.5, 1009.5].map(whole), [0.5f64, -0.5, 2.4999, -1.5, 1009.5].map(f64::round));
    }
}
