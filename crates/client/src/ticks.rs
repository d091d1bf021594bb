//! Prices of a market of a venue in ticks, exactly.

use primitives::venue::TICK_MAX;
use primitives::{Amount, Price, format_units};

/// What a tick of a market is worth, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Base units of a lot.
    pub lot_units: Amount,
    /// Quote units of a lot for one tick.
    pub tick_units: Amount,
    /// Decimals of the base and of the quote.
    pub decimals: [u8; 2],
}

/// Why a price is no number of ticks.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTick {
    /// It lies between two ticks.
    #[error("{price} is not a whole number of ticks: the next prices are {below} and {above}")]
    Between {
        /// The price.
        price: Price,
        /// The highest price below it.
        below: String,
        /// The lowest price above it.
        above: String,
    },
    /// It is out of range.
    #[error("{0} is no price of this market: prices are from {1} to {2}")]
    OutOfRange(Price, String, String),
}

impl Ticks {
    /// The number of ticks of a price in whole quote for one whole base.
    ///
    /// # Errors
    /// [`NoTick`] names the next prices.
    pub fn of(&self, price: Price) -> Result<u32, NoTick> {
        let out = || NoTick::OutOfRange(price, self.price(1), self.price(TICK_MAX));
        let (numerator, denominator) = self.ratio(price).ok_or_else(out)?;
        let (ticks, rest) = (numerator / denominator, numerator % denominator);
        let ticks = u32::try_from(ticks).ok().filter(|ticks| *ticks <= TICK_MAX).ok_or_else(out)?;
        match (ticks, rest) {
            (0, _) => Err(out()),
            (_, 0) => Ok(ticks),
            (TICK_MAX, _) => Err(out()),
            _ => Err(NoTick::Between { price, below: self.price(ticks), above: self.price(ticks + 1) }),
        }
    }

    /// Quote units of a lot for one tick of this price; `None` if they are no whole number from 1 on.
    pub fn units(lot_units: Amount, tick: Price, decimals: [u8; 2]) -> Option<Amount> {
        let (numerator, denominator) = Ticks { lot_units, tick_units: 1, decimals }.ratio(tick)?;
        let units = numerator.is_multiple_of(denominator).then_some(numerator / denominator)?;
        Amount::try_from(units).ok().filter(|units| *units > 0)
    }

    /// Ticks of a price as a ratio: price · lot · 10^quote / (tick · 10^base).
    fn ratio(&self, price: Price) -> Option<(u128, u128)> {
        let [base, quote] = self.decimals.map(i32::from);
        let (mut mantissa, mut exponent) = (price.mantissa(), price.decade() - 16);
        while mantissa.is_multiple_of(10) && mantissa > 0 {
            (mantissa, exponent) = (mantissa / 10, exponent + 1);
        }
        let power = exponent + quote - base;
        let ten = |power: i32| 10u128.checked_pow(u32::try_from(power.max(0)).ok()?);
        let numerator = u128::from(mantissa).checked_mul(u128::from(self.lot_units))?.checked_mul(ten(power)?)?;
        let denominator = u128::from(self.tick_units).checked_mul(ten(-power)?)?;
        Some((numerator, denominator))
    }

    /// The price of a number of ticks, in whole quote for one whole base; rounded to 18 places where it has no end.
    pub fn price(&self, ticks: u32) -> String {
        let [base, quote] = self.decimals.map(u32::from);
        const PLACES: u32 = 18;
        let units = u128::from(ticks) * u128::from(self.tick_units);
        let whole = units / u128::from(self.lot_units);
        // Digit by digit, so that no product exceeds 128 bits.
        let (mut rest, mut digits) = (units % u128::from(self.lot_units), whole.to_string());
        for _ in 0..PLACES + base {
            rest *= 10;
            digits.push(char::from(b'0' + (rest / u128::from(self.lot_units)) as u8));
            rest %= u128::from(self.lot_units);
        }
        // The digits are units · 10^(PLACES + base) / lot, and the point stands 10^(base − quote) further.
        let places = (PLACES + quote) as usize;
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let fraction = fraction.trim_end_matches('0');
        let plain = whole.trim_start_matches('0');
        let plain = if plain.is_empty() { "0" } else { plain };
        if fraction.is_empty() { plain.into() } else { format!("{plain}.{fraction}") }
    }

    /// Lots in whole base.
    pub fn lots(&self, lots: u32) -> String {
        let units = u128::from(lots) * u128::from(self.lot_units);
        Amount::try_from(units).map_or_else(|_| format!("{units} units"), |units| format_units(units, self.decimals[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(text: &str) -> Price {
        text.parse().expect("a price")
    }

    #[test]
    fn a_price_is_a_whole_number_of_ticks_or_the_next_ones_are_named() {
        // A lot is 1 EUR of two decimals, a tick 0.0001 USD of six a EUR.
        let market = Ticks { lot_units: 100, tick_units: 100, decimals: [2, 6] };
        assert_eq!(market.of(price("1.0973")), Ok(10_973));
        assert_eq!(market.price(10_973), "1.0973");
        let between = market.of(price("1.09735")).expect_err("no tick");
        assert!(between.to_string().ends_with("the next prices are 1.0973 and 1.0974"), "{between}");
        assert!(matches!(market.of(price("0.00001")), Err(NoTick::OutOfRange(..))));
        assert_eq!(market.of(price("200000")), Ok(TICK_MAX));
        assert!(matches!(market.of(price("200000.0001")), Err(NoTick::OutOfRange(..))));
        // A lot is 0.001 BTC of eight decimals, a tick 0.01 USD of two a lot: ten dollars a coin.
        let coins = Ticks { lot_units: 100_000, tick_units: 1, decimals: [8, 2] };
        assert_eq!((coins.of(price("64010")), coins.price(6_401)), (Ok(6_401), "64010".into()));
        assert!(coins.of(price("64015")).is_err());
        assert_eq!(Ticks::units(100, price("0.0001"), [2, 6]), Some(100));
        assert_eq!(Ticks::units(100_000, price("10"), [8, 2]), Some(1));
        assert_eq!(Ticks::units(100_000, price("1"), [8, 2]), None, "a thousandth of a cent");
        // A price that has no end.
        let odd = Ticks { lot_units: 3, tick_units: 1, decimals: [0, 0] };
        assert_eq!((odd.of(price("2")), odd.price(1)), (Ok(6), "0.333333333333333333".into()));
        let huge = Ticks { lot_units: (1 << 63) - 1, tick_units: 1, decimals: [0, 18] };
        assert!(matches!(huge.of(price("999999999999999990")), Err(NoTick::OutOfRange(..))));
        assert_eq!(huge.lots(2), "18446744073709551614");
    }
}
