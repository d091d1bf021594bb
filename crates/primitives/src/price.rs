//! Prices and valuations: decimal floating point numbers whose bits sort as they do.
//!
//! A price is `mantissa × 10^(decade − 16)` with a 17-digit mantissa, `10^16 ≤ mantissa < 10^17`. So every price with
//! up to 17 significant digits is represented exactly and is printed as it was written. The relative spacing is 10^-16
//! at the coarsest (finer than 2^-53) from 10^-18 up to, but not including, 10^18.
//!
//! The 64-bit encoding is `(decade + 18) << 57 | mantissa`. Its big-endian bytes sort in the order of the prices, so
//! a trie keyed by price keeps offers sorted (SPEEDEX §K.5).

use std::fmt;
use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};

const MANTISSA_BITS: u32 = 57;
const MANTISSA_MIN: u64 = 10_000_000_000_000_000;
const MANTISSA_END: u64 = 100_000_000_000_000_000;
/// Digits of the mantissa after its first.
const MANTISSA_SCALE: i32 = 16;

/// A positive limit price or valuation; see the module text for range, precision and encoding.
///
/// A limit price is in units of the bought asset per unit of the sold asset. A valuation has no unit: only ratios of
/// valuations have a meaning (SPEEDEX §2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(u64);

/// Why a number is not a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// The text is not a plain decimal number.
    #[error("price {0:?} is not a plain decimal number such as 1.25")]
    NotDecimal(String),
    /// The number is zero, negative, below 10^-18, or 10^18 or more.
    #[error("price {0} is out of range: a price is at least 10^-18 and less than 10^18")]
    OutOfRange(String),
    /// The text has more than 17 significant digits.
    #[error("price {0} has more than 17 significant digits")]
    TooPrecise(String),
    /// The 64 bits do not encode a price.
    #[error("{0:#018x} does not encode a price")]
    BadBits(u64),
}

impl Price {
    /// The smallest price, 10^-18.
    pub const MIN: Price = Price(MANTISSA_MIN);
    /// The largest price, just below 10^18.
    pub const MAX: Price = Price((Self::DECADES - 1) << MANTISSA_BITS | (MANTISSA_END - 1));
    /// The price 1.
    pub const ONE: Price = Price(18 << MANTISSA_BITS | MANTISSA_MIN);
    /// Prices span this many decades.
    const DECADES: u64 = 36;
    const DECADE_MIN: i32 = -18;

    /// The price with this 17-digit mantissa and decade, `mantissa × 10^(decade − 16)`, or `None` outside the range.
    pub fn from_parts(mantissa: u64, decade: i32) -> Option<Price> {
        let biased = u64::try_from(decade - Self::DECADE_MIN).ok()?;
        (biased < Self::DECADES && (MANTISSA_MIN..MANTISSA_END).contains(&mantissa))
            .then_some(Price(biased << MANTISSA_BITS | mantissa))
    }

    /// The price of this encoding.
    ///
    /// # Errors
    /// [`PriceError::BadBits`] if the bits do not encode a price.
    pub fn from_bits(bits: u64) -> Result<Price, PriceError> {
        let mantissa = bits & ((1 << MANTISSA_BITS) - 1);
        let decade = (bits >> MANTISSA_BITS) as i32 + Self::DECADE_MIN;
        Self::from_parts(mantissa, decade).ok_or(PriceError::BadBits(bits))
    }

    /// The order-preserving 64-bit encoding.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The mantissa, 17 decimal digits.
    pub const fn mantissa(self) -> u64 {
        self.0 & ((1 << MANTISSA_BITS) - 1)
    }

    /// The decade: the price is at least `10^decade` and less than `10^(decade + 1)`.
    pub const fn decade(self) -> i32 {
        (self.0 >> MANTISSA_BITS) as i32 + Self::DECADE_MIN
    }

    /// The power of ten that scales the mantissa: the price is `mantissa × 10^exponent`.
    pub const fn exponent(self) -> i32 {
        self.decade() - MANTISSA_SCALE
    }

    /// The nearest double, up to two units in its last place; the same on every machine (only `×` and `÷`).
    pub fn to_f64(self) -> f64 {
        scale_f64(self.mantissa() as f64, self.exponent())
    }

    /// A price within 2^-50 (relative) of `value`, the same on every machine, or `None` outside the range.
    pub fn from_f64(value: f64) -> Option<Price> {
        if !(value.is_finite() && value > 0.0) {
            return None;
        }
        let mut decade = Self::DECADE_MIN;
        while decade < Self::DECADE_MIN + Self::DECADES as i32 && value >= scale_f64(1.0, decade + 1) {
            decade += 1;
        }
        let mantissa = scale_f64(value, MANTISSA_SCALE - decade) as u64;
        match mantissa {
            // The scaled value may round across the edge of a decade.
            MANTISSA_END.. => Self::from_parts(MANTISSA_MIN, decade + 1),
            ..MANTISSA_MIN if decade > Self::DECADE_MIN => Self::from_parts(MANTISSA_END - 1, decade - 1),
            _ => Self::from_parts(mantissa, decade),
        }
    }

    /// Whether `bought ≥ sold × self`, in exact integers: the limit test of every fill.
    pub fn accepts(self, sold: u64, bought: u64) -> bool {
        let asked = u128::from(sold) * u128::from(self.mantissa());
        let exponent = self.exponent();
        if exponent >= 0 {
            // Prices end below 10^18, so the exponent is at most 1 and the product below 2^125.
            asked * 10u128.pow(exponent as u32) <= u128::from(bought)
        } else {
            // 10^34 at most; if the product overflows it exceeds any `asked`.
            u128::from(bought).checked_mul(10u128.pow(exponent.unsigned_abs())).is_none_or(|paid| asked <= paid)
        }
    }

    /// The smallest price not below `bought / sold`: an offer that sells `sold` units at this limit gets at least
    /// `bought`. `None` outside the range.
    pub fn ratio_rounding_up(bought: u64, sold: u64) -> Option<Price> {
        if bought == 0 || sold == 0 {
            return None;
        }
        let sold = u128::from(sold);
        let (mut mantissa, mut rest) = (u128::from(bought) / sold, u128::from(bought) % sold);
        let (mut decade, mut is_exact) = (MANTISSA_SCALE, true);
        while mantissa < MANTISSA_MIN.into() {
            mantissa = mantissa * 10 + rest * 10 / sold;
            rest = rest * 10 % sold;
            decade -= 1;
        }
        while mantissa >= MANTISSA_END.into() {
            is_exact &= mantissa.is_multiple_of(10);
            mantissa /= 10;
            decade += 1;
        }
        let mantissa = mantissa as u64 + u64::from(rest > 0 || !is_exact);
        match mantissa {
            MANTISSA_END => Self::from_parts(MANTISSA_MIN, decade + 1),
            _ => Self::from_parts(mantissa, decade),
        }
    }

    /// The smallest price not below the decimal `text`, which may have any number of digits.
    ///
    /// # Errors
    /// [`PriceError::NotDecimal`] or [`PriceError::OutOfRange`].
    pub fn parse_rounding_up(text: &str) -> Result<Price, PriceError> {
        match parse_decimal(text)? {
            (price, true) => Ok(price),
            (Price(bits), false) => {
                let next = match bits & ((1 << MANTISSA_BITS) - 1) {
                    m if m + 1 < MANTISSA_END => Some(Price(bits + 1)),
                    _ => Self::from_parts(MANTISSA_MIN, Price(bits).decade() + 1),
                };
                next.ok_or_else(|| PriceError::OutOfRange(text.into()))
            }
        }
    }
}

/// `value × 10^power`, in one fixed order of IEEE operations.
fn scale_f64(value: f64, power: i32) -> f64 {
    // Powers of ten up to 10^22 are exact doubles.
    let exact = |p: u32| (0..p).fold(1.0, |product: f64, _| product * 10.0);
    let mut rest = power.unsigned_abs();
    let mut result = value;
    while rest > 0 {
        let step = rest.min(22);
        result = if power > 0 { result * exact(step) } else { result / exact(step) };
        rest -= step;
    }
    result
}

/// Parses a plain decimal; returns the price rounded down, and whether it is exact.
fn parse_decimal(text: &str) -> Result<(Price, bool), PriceError> {
    let not_decimal = || PriceError::NotDecimal(text.into());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits_only = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits_only(whole) || !digits_only(fraction) {
        return Err(not_decimal());
    }
    let out_of_range = || PriceError::OutOfRange(text.into());
    let digits = || whole.bytes().chain(fraction.bytes());
    let leading_zeros = digits().take_while(|b| *b == b'0').count();
    if leading_zeros == whole.len() + fraction.len() {
        return Err(out_of_range());
    }
    let decade = i32::try_from(whole.len()).map_err(|_| out_of_range())?
        - 1
        - i32::try_from(leading_zeros).map_err(|_| out_of_range())?;
    let mut significant = digits().skip(leading_zeros).map(|b| u64::from(b - b'0'));
    let mantissa = (0..17).fold(0, |m, _| m * 10 + significant.next().unwrap_or(0));
    let exact = significant.all(|digit| digit == 0);
    let price = Price::from_parts(mantissa, decade).ok_or_else(out_of_range)?;
    Ok((price, exact))
}

impl FromStr for Price {
    type Err = PriceError;

    fn from_str(text: &str) -> Result<Price, PriceError> {
        match parse_decimal(text)? {
            (price, true) => Ok(price),
            (_, false) => Err(PriceError::TooPrecise(text.into())),
        }
    }
}

impl fmt::Display for Price {
    /// The exact decimal, without an exponent and without trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.mantissa().to_string();
        let digits = digits.trim_end_matches('0');
        let decade = self.decade();
        if decade < 0 {
            let zeros = (-decade - 1) as usize;
            return write!(f, "0.{:0<zeros$}{digits}", "");
        }
        let point = decade as usize + 1;
        if digits.len() <= point {
            write!(f, "{digits:0<point$}")
        } else {
            write!(f, "{}.{}", &digits[..point], &digits[point..])
        }
    }
}

impl fmt::Debug for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl BorshSerialize for Price {
    fn serialize<W: std::io::Write>(&self, writer: &mut W) -> std::io::Result<()> {
        // Big-endian, unlike every other integer on the wire: trie keys and wire use the same eight bytes.
        writer.write_all(&self.0.to_be_bytes())
    }
}

impl BorshDeserialize for Price {
    fn deserialize_reader<R: std::io::Read>(reader: &mut R) -> std::io::Result<Self> {
        let mut bytes = [0; 8];
        reader.read_exact(&mut bytes)?;
        Price::from_bits(u64::from_be_bytes(bytes))
            .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn price(text: &str) -> Price {
        text.parse().expect("a price")
    }

    #[test]
    fn prints_what_was_written() {
        for text in ["1", "0.91", "1.1", "120", "0.000000000000000001", "999999999999999990", "1234567890.1234567"] {
            assert_eq!(price(text).to_string(), text);
        }
        assert_eq!(price("001.500").to_string(), "1.5");
        assert_eq!(Price::ONE, price("1"));
        assert_eq!(Price::MIN, price("0.000000000000000001"));
        assert_eq!(Price::MAX.to_string(), "999999999999999990");
    }

    #[test]
    fn refuses_what_is_no_price() {
        for text in ["", ".", "-1", "1e3", "1,5", " 1", "0x10", "NaN"] {
            assert!(matches!(text.parse::<Price>(), Err(PriceError::NotDecimal(_))), "{text}");
        }
        for text in ["0", "0.0", "1000000000000000000", "0.0000000000000000009"] {
            assert!(matches!(text.parse::<Price>(), Err(PriceError::OutOfRange(_))), "{text}");
        }
        assert!(matches!("1.00000000000000001".parse::<Price>(), Err(PriceError::TooPrecise(_))));
    }

    #[test]
    fn rounds_up_to_the_next_price() {
        assert_eq!(Price::parse_rounding_up("1.00000000000000000").unwrap(), Price::ONE);
        assert_eq!(Price::parse_rounding_up("1.00000000000000001").unwrap().to_string(), "1.0000000000000001");
        assert_eq!(Price::parse_rounding_up("9.99999999999999999").unwrap().to_string(), "10");
        assert!(Price::parse_rounding_up("999999999999999990.1").is_err());
    }

    #[test]
    fn limit_test_is_exact_at_the_edge() {
        assert!(price("0.91").accepts(100, 91));
        assert!(!price("0.91").accepts(100, 90));
        assert!(price("0.9100000000000001").accepts(1_000_000, 910_001));
        assert!(!price("0.9100000000000001").accepts(1_000_000, 910_000));
        assert!(!Price::MAX.accepts(u64::MAX, u64::MAX));
        assert!(Price::MIN.accepts(u64::MAX, 19));
        assert!(!Price::MIN.accepts(u64::MAX, 18));
        assert!(!Price::MIN.accepts(1, 0));
    }

    fn any_price() -> impl Strategy<Value = Price> {
        (MANTISSA_MIN..MANTISSA_END, -18i32..18).prop_map(|(m, d)| Price::from_parts(m, d).expect("in range"))
    }

    proptest! {
        #[test]
        fn bytes_order_as_values(a in any_price(), b in any_price()) {
            prop_assert_eq!(a.to_bits().to_be_bytes().cmp(&b.to_bits().to_be_bytes()), a.cmp(&b));
            if a.decade() == b.decade() {
                prop_assert_eq!(a.mantissa().cmp(&b.mantissa()), a.cmp(&b));
            } else {
                prop_assert_eq!(a.decade().cmp(&b.decade()), a.cmp(&b));
            }
        }

        #[test]
        fn text_codec_and_bits_round_trip(a in any_price()) {
            prop_assert_eq!(a.to_string().parse::<Price>().unwrap(), a);
            prop_assert_eq!(Price::from_bits(a.to_bits()).unwrap(), a);
            prop_assert_eq!(borsh::from_slice::<Price>(&borsh::to_vec(&a).unwrap()).unwrap(), a);
        }

        #[test]
        fn doubles_are_close(a in any_price()) {
            let back = Price::from_f64(a.to_f64()).unwrap().to_f64();
            prop_assert!((back / a.to_f64() - 1.0).abs() < 1e-15);
            let text: f64 = a.to_string().parse().unwrap();
            prop_assert!((text / a.to_f64() - 1.0).abs() < 1e-15);
        }

        #[test]
        fn bits_that_decode_are_canonical(bits in any::<u64>()) {
            if let Ok(price) = Price::from_bits(bits) {
                prop_assert_eq!(price.to_bits(), bits);
            }
        }
    }
}
