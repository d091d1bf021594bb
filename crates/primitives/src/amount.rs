//! Assets and amounts of them.

use std::fmt;
use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};

/// The number of an asset, assigned in order of registration. Asset 0 pays fees and gas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct AssetId(pub u32);

impl fmt::Display for AssetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The most units of any one asset that may exist, and so the largest possible balance: no credit can overflow (rule
/// 2).
pub const MAX_ISSUED: u64 = i64::MAX as u64;

/// An amount: a whole number of an asset's smallest unit, at most [`MAX_ISSUED`].
pub type Amount = u64;

/// Why a text is not an amount of an asset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitsError {
    /// The text is not a plain decimal.
    #[error("{0:?} is not an amount such as 12.50")]
    NotDecimal(String),
    /// The text has more decimals than the asset.
    #[error("{0:?} is finer than the asset's {1} decimals")]
    TooFine(String, u8),
    /// The amount is more than can exist.
    #[error("{0} is more than can exist of an asset")]
    TooLarge(String),
}

/// Parses `12.50` of an asset with 2 decimals as 1250 units.
///
/// # Errors
/// [`UnitsError`] if it is not a plain decimal, is finer than a unit, or exceeds what can exist.
pub fn parse_units(text: &str, decimals: u8) -> Result<Amount, UnitsError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
        return Err(UnitsError::NotDecimal(text.into()));
    }
    let kept = fraction.trim_end_matches('0');
    if kept.len() > usize::from(decimals) {
        return Err(UnitsError::TooFine(text.into(), decimals));
    }
    let padded = format!("{whole}{kept:0<width$}", width = usize::from(decimals));
    match padded.trim_start_matches('0') {
        "" => Ok(0),
        units => units.parse().ok().filter(|u| *u <= MAX_ISSUED).ok_or_else(|| UnitsError::TooLarge(text.into())),
    }
}

/// Formats 1250 units of an asset with 2 decimals as `12.5`.
pub fn format_units(units: Amount, decimals: u8) -> String {
    let padded = format!("{units:0>width$}", width = usize::from(decimals) + 1);
    let (whole, fraction) = padded.split_at(padded.len() - usize::from(decimals));
    match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    }
}

/// A number in [0, 1) with 32 binary places: a commission ε, or the band μ.
///
/// `2^-15` and every other power of two that matters is exact; a decimal is rounded down to the next multiple of 2^-32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Fraction(u32);

/// Why a text is not a [`Fraction`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a fraction: write 0, a decimal below 1 such as 0.001, or a power such as 2^-15")]
pub struct FractionError(String);

impl Fraction {
    /// Zero.
    pub const ZERO: Fraction = Fraction(0);
    /// One, in units of 2^-32.
    pub const ONE_IN_UNITS: u64 = 1 << 32;

    /// 2^-`power`, for `power` from 1 to 32.
    pub const fn power_of_two(power: u32) -> Fraction {
        assert!(power >= 1 && power <= 32, "2^-1 to 2^-32");
        Fraction(1 << (32 - power))
    }

    /// This fraction in units of 2^-32.
    pub const fn units(self) -> u64 {
        self.0 as u64
    }

    /// One minus this, in units of 2^-32; at most 2^32.
    pub const fn complement_units(self) -> u64 {
        Self::ONE_IN_UNITS - self.0 as u64
    }

    /// The exact double.
    pub fn to_f64(self) -> f64 {
        f64::from(self.0) / Self::ONE_IN_UNITS as f64
    }
}

impl FromStr for Fraction {
    type Err = FractionError;

    fn from_str(text: &str) -> Result<Fraction, FractionError> {
        let error = || FractionError(text.into());
        if let Some(power) = text.strip_prefix("2^-") {
            let power: u32 = power.parse().map_err(|_| error())?;
            return (1..=32).contains(&power).then(|| Fraction::power_of_two(power)).ok_or_else(error);
        }
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        if whole.is_empty() || !whole.bytes().all(|b| b == b'0') || !decimals.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error());
        }
        // 32 decimals represent every multiple of 2^-32; further decimals would be rounded away.
        let kept = &decimals[..decimals.len().min(32)];
        let one = 10u128.pow(kept.len() as u32);
        let mut rest: u128 = if kept.is_empty() { 0 } else { kept.parse().map_err(|_| error())? };
        let mut units = 0;
        for _ in 0..32 {
            rest *= 2;
            units = units << 1 | u32::from(rest >= one);
            rest %= one;
        }
        Ok(Fraction(units))
    }
}

impl fmt::Display for Fraction {
    /// `0`, a power of two as `2^-15`, or the exact decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0");
        }
        if self.0.is_power_of_two() {
            return write!(f, "2^-{}", 32 - self.0.trailing_zeros());
        }
        // k / 2^32 = k · 5^32 / 10^32, and k · 5^32 < 2^107.
        let digits = format!("{:032}", u128::from(self.0) * 5u128.pow(32));
        write!(f, "0.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_and_print_in_decimals() {
        for (text, decimals, units) in
            [("12.50", 2, 1_250), ("0.01", 2, 1), ("7", 0, 7), (".5", 1, 5), ("0", 6, 0), ("1.000", 2, 100)]
        {
            assert_eq!(parse_units(text, decimals), Ok(units), "{text}");
        }
        for (text, decimals) in [("1.001", 2), ("", 2), ("-1", 2), ("1e3", 2), ("92233720368547758.08", 2)] {
            assert!(parse_units(text, decimals).is_err(), "{text}");
        }
        for (units, decimals, text) in [(1_250, 2, "12.5"), (1, 6, "0.000001"), (700, 0, "700"), (0, 2, "0")] {
            assert_eq!(format_units(units, decimals), text);
        }
    }

    #[test]
    fn fractions_read_and_print() {
        for (text, units) in [("0", 0), ("0.0", 0), ("2^-15", 1 << 17), ("2^-32", 1), ("0.5", 1 << 31)] {
            assert_eq!(text.parse::<Fraction>().unwrap().units(), units, "{text}");
        }
        assert_eq!("0.003".parse::<Fraction>().unwrap().units(), 12_884_901);
        let printed = "0.003".parse::<Fraction>().unwrap().to_string();
        assert_eq!(printed.parse::<Fraction>().unwrap(), "0.003".parse().unwrap());
        assert_eq!("0.000030517578125".parse::<Fraction>().unwrap().to_string(), "2^-15");
        for text in ["", "1", "1.0", "-0.1", "2^-0", "2^-33", "2^15", "0,1", ".", "0.1x", "1e-3"] {
            assert!(text.parse::<Fraction>().is_err(), "{text}");
        }
    }
}
