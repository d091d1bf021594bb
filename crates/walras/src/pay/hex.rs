//! Hexadecimal of any length.

/// The bytes of hexadecimal digits.
pub fn hex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let pair = |pair: &[u8]| Some(value(pair[0])? << 4 | value(*pair.get(1)?)?);
    digits.as_bytes().chunks(2).map(pair).collect()
}
