//! Amounts and prices as people write them, with an asset's decimals, and as the ledger counts them.

use anyhow::{Context, bail, ensure};
use primitives::{Amount, MAX_ISSUED, Price};

/// Reads `12.50` of an asset with 2 decimals as 1250 units.
///
/// # Errors
/// If it is no plain decimal, is finer than a unit, or exceeds what can exist.
pub fn to_units(text: &str, decimals: u8) -> anyhow::Result<Amount> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    ensure!(
        !(whole.is_empty() && fraction.is_empty()) && digits(whole) && digits(fraction),
        "{text:?} is not an amount such as 12.50"
    );
    let kept = fraction.trim_end_matches('0');
    ensure!(kept.len() <= decimals as usize, "{text:?} is finer than the asset's {decimals} decimals");
    let padded = format!("{whole}{kept:0<width$}", width = decimals as usize);
    let units = padded.trim_start_matches('0');
    let units: Amount = if units.is_empty() { 0 } else { units.parse().context("too large an amount")? };
    ensure!(units <= MAX_ISSUED, "{text} is more than can exist of an asset");
    Ok(units)
}

/// Writes 1250 units of an asset with 2 decimals as `12.5`.
pub fn from_units(units: Amount, decimals: u8) -> String {
    let padded = format!("{units:0>width$}", width = decimals as usize + 1);
    let (whole, fraction) = padded.split_at(padded.len() - decimals as usize);
    match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    }
}

/// Turns a price of one whole sold asset in whole bought assets into one of units.
///
/// # Errors
/// If the result is out of range.
pub fn to_unit_price(price: Price, sell_decimals: u8, buy_decimals: u8) -> anyhow::Result<Price> {
    let shifted = price.decade() + i32::from(buy_decimals) - i32::from(sell_decimals);
    match Price::from_parts(price.mantissa(), shifted) {
        Some(price) => Ok(price),
        None => bail!("price {price} is out of range once it is counted in units"),
    }
}

/// Turns a price of units into one of a whole sold asset in whole bought assets; `None` if that is out of range.
pub fn to_whole_price(price: Price, sell_decimals: u8, buy_decimals: u8) -> Option<Price> {
    Price::from_parts(price.mantissa(), price.decade() + i32::from(sell_decimals) - i32::from(buy_decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_prices_convert_exactly() {
        for (text, decimals, units) in
            [("12.50", 2, 1_250), ("0.01", 2, 1), ("7", 0, 7), (".5", 1, 5), ("0", 6, 0), ("1.000", 2, 100)]
        {
            assert_eq!(to_units(text, decimals).expect("an amount"), units, "{text}");
        }
        for (text, decimals) in [("1.001", 2), ("", 2), ("-1", 2), ("1e3", 2), ("92233720368547758.08", 2)] {
            assert!(to_units(text, decimals).is_err(), "{text}");
        }
        for (units, decimals, text) in [(1_250, 2, "12.5"), (1, 6, "0.000001"), (700, 0, "700"), (0, 2, "0")] {
            assert_eq!(from_units(units, decimals), text);
        }
        let price: Price = "1.1".parse().expect("a price");
        assert_eq!(to_unit_price(price, 2, 6).expect("in range").to_string(), "11000");
        assert_eq!(to_unit_price(price, 6, 2).expect("in range").to_string(), "0.00011");
        for (sell, buy) in [(2, 6), (6, 2), (0, 8)] {
            let units = to_unit_price(price, sell, buy).expect("in range");
            assert_eq!(to_whole_price(units, sell, buy), Some(price));
        }
    }
}
