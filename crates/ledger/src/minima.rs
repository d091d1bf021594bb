//! Least sizes of offers, and what becomes of a remainder below them.
//!
//! An offer sells at least the least units of one asset and asks at least the least units of the other:
//! `amount ≥ least(sell)` and `⌈amount · limit⌉ ≥ least(buy)`. The rule looks at the offer's own limit and never at
//! prices, so that a market that moves makes no offer too small. What is left of a partial fill is held to the same
//! rule: a remainder that would be too small as an offer goes back to its account.
//!
//! The least units of an asset never change on a chain. A genesis needs `least · (μ − ε) ≥ 2` for each asset
//! ([`clearing::least_units`]): then the band between the two limits of a rate is wider than the two roundings of a
//! fill.

use primitives::{Amount, Price};

use crate::Refusal;

/// The least units of an asset that an offer sells or asks, where a genesis says nothing else.
pub const LEAST_UNITS: Amount = 4_096;

/// The least units of the two assets of a pair.
#[derive(Clone, Copy)]
pub(crate) struct Minima {
    pub sell: Amount,
    pub buy: Amount,
}

impl Minima {
    /// Whether an offer has the least size.
    pub(crate) fn check(self, amount: Amount, limit: Price) -> Result<(), Refusal> {
        // ⌈amount · limit⌉ < least if and only if least − 1 units satisfy the limit.
        match () {
            _ if amount < self.sell => Err(Refusal::SellsTooLittle),
            _ if self.buy > 0 && limit.accepts(amount, self.buy - 1) => Err(Refusal::AsksTooLittle),
            _ => Ok(()),
        }
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
            (4_095, "10", Err(Refusal::SellsTooLittle)),
            (4_096, "10", Ok(())),
            (4_096, "0.000000000000000001", Err(Refusal::AsksTooLittle)),
            // 9,999 asked; 9,999.0001 rounded up is 10,000.
            (9_999, "1", Err(Refusal::AsksTooLittle)),
            (9_999, "1.00000001", Ok(())),
            (10_000, "1", Ok(())),
            (u64::MAX >> 1, "100000000000000000", Ok(())),
        ] {
            assert_eq!(minima.check(amount, price(limit)), expected, "{amount} at {limit}");
        }
    }
}
