//! Hexadecimal of any length; `primitives::from_hex` reads what has a fixed one.

/// The bytes of hexadecimal digits, with or without `0x`; `None` if they are none, or an odd number.
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let value = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let pair = |pair: &[u8]| Some(value(pair[0])? << 4 | value(*pair.get(1)?)?);
    digits.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_come_in_pairs_and_have_no_sign() {
        assert_eq!(hex_bytes("0x0aFf"), Some(vec![10, 255]));
        assert_eq!(hex_bytes(""), Some(vec![]));
        for wrong in ["0", "0x012", "+f", "0g", "0x0x00", "é"] {
            assert_eq!(hex_bytes(wrong), None, "{wrong}");
        }
    }
}
