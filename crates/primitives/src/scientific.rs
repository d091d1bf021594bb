//! Decimals as other programs write them.

use std::borrow::Cow;

/// Digits of the longest plain decimal that an exponent may make: prices and amounts need fewer than forty.
const DIGITS_MAX: i32 = 400;

/// A decimal with an exponent as a plain one: `1e-05` is `0.00001`. Any other text is returned as it is.
pub fn plain_decimal(text: &str) -> Cow<'_, str> {
    scientific(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn scientific(text: &str) -> Option<String> {
    let (mantissa, exponent) = text.split_once(['e', 'E'])?;
    let exponent: i32 = exponent.parse().ok().filter(|power: &i32| power.abs() <= DIGITS_MAX)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > DIGITS_MAX as usize || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let point = whole.len() as i32 + exponent;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let digits = format!("{}{digits}{}", zeros(1 - point), zeros(point - digits.len() as i32));
    let (whole, fraction) = digits.split_at(point.max(1) as usize);
    Some(if fraction.is_empty() { whole.into() } else { format!("{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use super::plain_decimal;

    #[test]
    fn an_exponent_moves_the_point() {
        for (text, plain) in [
            ("1e-05", "0.00001"),
            ("1.5e3", "1500"),
            ("1.5E+03", "1500"),
            ("12.34e1", "123.4"),
            ("1e0", "1"),
            ("25e-1", "2.5"),
            (".5e1", "5"),
        ] {
            assert_eq!(plain_decimal(text), plain, "{text}");
        }
        for other in ["1.5", "abc", "", "e5", "1e", "-1e5", "1e5e5", "1e999999999", "1e1.5", "0x1e5"] {
            assert_eq!(plain_decimal(other), other);
        }
    }
}
