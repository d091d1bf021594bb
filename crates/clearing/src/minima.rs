//! Minimum sizes of offers, and what happens to a smaller remainder.
//!
//! # The rule
//!
//! An offer sells at least the minimum units of one asset and asks for at least the minimum units of the other:
//! `amount ≥ least(sell)` and `⌈amount · limit⌉ ≥ least(buy)`. The rule uses the offer's own limit and never prices,
//! so that a moving market makes no offer too small. The remainder of a partial fill must satisfy the same rule: one
//! that would be too small as an offer is *returned* to its owner and does not rest.
//!
//! [`crate::clear`] accepts offers of any size. A caller that needs its promise of fullness rejects offers below
//! [`crate::least_units`] with [`Minima::check`]. Then the band between the two limits of a rate is wider than the two
//! roundings of a fill.

use primitives::{Amount, Price};

/// The minimum units of the two assets of an ordered pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minima {
    /// Minimum units of the asset sold.
    pub sell: Amount,
    /// Minimum units of the asset bought.
    pub buy: Amount,
}

/// Why an offer is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooSmall {
    /// It sells less than the minimum units of an asset.
    #[error("the offer sells less than the least units of its asset: sell more")]
    Sells,
    /// It asks for less than the minimum units of an asset.
    #[error("the offer asks for less than the least units of an asset: sell more, or ask for a higher price")]
    Asks,
}

impl Minima {
    /// Checks, exactly, that an offer of `amount` units at `limit` has the minimum size.
    ///
    /// # Errors
    /// [`TooSmall`] says which side is too small.
    pub fn check(self, amount: Amount, limit: Price) -> Result<(), TooSmall> {
        // ⌈amount · limit⌉ < least if and only if least − 1 units satisfy the limit.
        match () {
            _ if amount < self.sell => Err(TooSmall::Sells),
            _ if self.buy > 0 && limit.accepts(amount, self.buy - 1) => Err(TooSmall::Asks),
            _ => Ok(()),
        }
    }

    /// The units that are returned of the remainder `rest` of an offer at `limit` after a partial fill: all or none.
    pub fn returned(self, rest: Amount, limit: Price) -> Amount {
        if self.check(rest, limit).is_ok() { 0 } else { rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_least_size_is_met_exactly() {
        let minima = Minima { sell: 4_096, buy: 10_000 };
        let price = |text| Price::parse_rounding_up(text).expect("a price");
        for (amount, limit, expected) in [
            (4_095, "10", Err(TooSmall::Sells)),
            (4_096, "10", Ok(())),
            (4_096, "0.000000000000000001", Err(TooSmall::Asks)),
            // 9,999 asked; 9,999.0001 rounded up is 10,000.
            (9_999, "1", Err(TooSmall::Asks)),
            (9_999, "1.00000001", Ok(())),
            (10_000, "1", Ok(())),
            (u64::MAX >> 1, "100000000000000000", Ok(())),
        ] {
            assert_eq!(minima.check(amount, price(limit)), expected, "{amount} at {limit}");
            assert_eq!(minima.returned(amount, price(limit)), if expected.is_ok() { 0 } else { amount });
        }
    }

    #[test]
    fn without_minima_nothing_is_returned() {
        assert_eq!(Minima::default().returned(1, Price::MIN), 0);
    }
}
