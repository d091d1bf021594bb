//! Converts amounts and prices between decimals, as people write them, and units, as the ledger counts them.

use anyhow::bail;
use primitives::{Amount, Price};

/// Reads `12.50` of an asset with 2 decimals as 1250 units.
///
/// # Errors
/// If it is not a plain decimal, is finer than a unit, or exceeds the maximum amount.
pub fn to_units(text: &str, decimals: u8) -> anyhow::Result<Amount> {
    Ok(primitives::parse_units(text, decimals)?)
}

/// Writes 1250 units of an asset with 2 decimals as `12.5`.
pub fn from_units(units: Amount, decimals: u8) -> String {
    primitives::format_units(units, decimals)
}

/// Converts a price of one whole sold asset in whole bought assets into a price in units.
///
/// # Errors
/// If the result is out of range.
pub fn to_unit_price(price: Price, sell_decimals: u8, buy_decimals: u8) -> anyhow::Result<Price> {
    match client::unit_price(price, sell_decimals, buy_decimals) {
        Some(price) => Ok(price),
        None => bail!("price {price} is out of range when converted to units"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_convert_exactly() {
        let price: Price = "1.1".parse().expect("a price");
        assert_eq!(to_unit_price(price, 2, 6).expect("in range").to_string(), "11000");
        assert_eq!(to_unit_price(price, 6, 2).expect("in range").to_string(), "0.00011");
    }
}
