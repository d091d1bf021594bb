//! Numbers and bytes as Ethereum's JSON writes them: a QUANTITY is hexadecimal without leading zeros, DATA has two
//! digits for each byte.

use ledger::contracts::ethereum::{U256, hex};
use primitives::{Address, Digest};
use serde_json::Value;

/// A number.
pub(super) fn quantity(number: impl std::fmt::LowerHex) -> Value {
    format!("{number:#x}").into()
}

/// Bytes.
pub(super) fn data(bytes: impl AsRef<[u8]>) -> Value {
    hex::encode_prefixed(bytes.as_ref()).into()
}

/// Parses a number.
pub(super) fn read_quantity(value: &Value) -> Result<U256, String> {
    let digits = digits(value)?;
    match digits {
        "" => Err("a number has at least one digit: write 0x0".into()),
        "0" => Ok(U256::ZERO),
        _ if digits.starts_with('0') => Err(format!("0x{digits} has leading zeros: write a number without them")),
        _ => U256::from_str_radix(digits, 16).map_err(|_| format!("0x{digits} is not a number of 256 bits")),
    }
}

/// A number as tools write it: hexadecimal or decimal in a string, or a JSON number.
pub(super) fn read_number(value: &Value) -> Result<U256, String> {
    let read = match value {
        Value::Number(number) => number.as_u64().map(U256::from),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(digits) if !digits.is_empty() => U256::from_str_radix(digits, 16).ok(),
            Some(_) => None,
            None if text.is_empty() => None,
            None => U256::from_str_radix(text, 10).ok(),
        },
        _ => None,
    };
    read.ok_or_else(|| "a whole number is expected, as 7, \"7\" or \"0x7\"".into())
}

/// Parses a number of at most 64 bits.
pub(super) fn read_u64(value: &Value) -> Result<u64, String> {
    let number = read_quantity(value)?;
    u64::try_from(number).map_err(|_| format!("{number:#x} is more than 64 bits hold"))
}

/// Parses a number of at most 128 bits.
pub(super) fn read_u128(value: &Value) -> Result<u128, String> {
    let number = read_quantity(value)?;
    u128::try_from(number).map_err(|_| format!("{number:#x} is more than 128 bits hold"))
}

/// Parses bytes.
pub(super) fn read_data(value: &Value) -> Result<Vec<u8>, String> {
    let digits = digits(value)?;
    hex::decode(digits).map_err(|error| format!("not bytes in hexadecimal: {error}"))
}

/// Parses exactly N bytes.
pub(super) fn read_bytes<const N: usize>(value: &Value) -> Result<[u8; N], String> {
    let bytes = read_data(value)?;
    <[u8; N]>::try_from(bytes).map_err(|bytes| format!("{} bytes, where {N} are expected", bytes.len()))
}

/// Parses a slot of storage: up to 32 bytes, also written as a number.
pub(super) fn read_slot(value: &Value) -> Result<[u8; 32], String> {
    let digits = digits(value)?;
    if digits.len() > 64 {
        return Err(format!("{} digits, where at most 64 are expected", digits.len()));
    }
    let number = if digits.is_empty() { Ok(U256::ZERO) } else { U256::from_str_radix(digits, 16) };
    number.map(|number| number.to_be_bytes()).map_err(|_| "not a slot in hexadecimal".into())
}

/// Parses an address.
pub(super) fn read_address(value: &Value) -> Result<Address, String> {
    read_bytes(value).map(Address)
}

/// Parses a hash.
pub(super) fn read_digest(value: &Value) -> Result<Digest, String> {
    read_bytes(value).map(Digest)
}

fn digits(value: &Value) -> Result<&str, String> {
    let text = value.as_str().ok_or_else(|| "a string of hexadecimal digits is expected".to_string())?;
    text.strip_prefix("0x").ok_or_else(|| "hexadecimal begins with 0x".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn numbers_have_one_form() {
        assert_eq!(quantity(0u64), json!("0x0"));
        assert_eq!(quantity(1_024u64), json!("0x400"));
        for wrong in [json!("0x"), json!("0x00"), json!("0x0400"), json!("400"), json!(400), json!("0xg"), json!(null)]
        {
            assert!(read_quantity(&wrong).is_err(), "{wrong}");
        }
        assert!(read_u64(&json!("0x10000000000000000")).is_err());
        assert_eq!(read_u64(&json!("0xffffffffffffffff")), Ok(u64::MAX));
        assert!(read_quantity(&json!(format!("0x1{}", "0".repeat(64)))).is_err());
    }

    #[test]
    fn bytes_have_two_digits_each() {
        assert_eq!(data([]), json!("0x"));
        assert_eq!(read_data(&json!("0x00Ff")), Ok(vec![0, 255]));
        for wrong in [json!("0x0"), json!("00"), json!("0xzz"), json!(1)] {
            assert!(read_data(&wrong).is_err(), "{wrong}");
        }
        assert!(read_address(&json!("0x00")).is_err());
        assert_eq!(read_slot(&json!("0x1")).expect("a slot")[31], 1);
        assert!(read_slot(&json!(format!("0x{}", "0".repeat(65)))).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u128, bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(read_u128(&quantity(number)), Ok(number));
            prop_assert_eq!(read_data(&data(&bytes)), Ok(bytes));
        }
    }
}
