//! Runs: the pieces in which the offers of a pair are kept.
//!
//! The keeper of a book cuts the offers of each pair into runs of some 64 to 512 and remembers the sum of each run.
//! When offers come and go, only their runs must be summed up again, and a clearing costs what is near the rate and
//! not what rests. Sums are exact, so a clearing does not depend on how the runs are cut.

use primitives::{Amount, Price};

use crate::value::Value;

/// The length of the runs that [`crate::PairBook::new`] and [`crate::SortedOffers::book`] cut.
pub const RUN: usize = 128;

/// Consecutive offers of one pair, in execution order.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Limit prices in units of the bought asset per unit of the sold one, never falling.
    pub limits: &'a [Price],
    /// Units offered, as many as there are limits, each at least 1.
    pub amounts: &'a [Amount],
    /// The result of [`Total::of`] for these limits and amounts.
    pub total: Total,
}

/// The sums of the offers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// Σ amount, saturating at the largest integer.
    amount: Amount,
    /// Σ amount · limit.
    value: Value,
    /// The smallest amount.
    least: Amount,
    /// The lowest and the highest limit.
    first: Price,
    last: Price,
}

/// Why offers are not a valid run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// No offers, or not as many limits as amounts.
    #[error("{limits} limits and {amounts} amounts: give the same number, at least one")]
    Lengths {
        /// Number of limit prices.
        limits: usize,
        /// Number of amounts.
        amounts: usize,
    },
    /// A limit is lower than the one before.
    #[error("offer {index} has a lower limit than the one before: sort by limit price")]
    LimitOrder {
        /// Position in the run.
        index: usize,
    },
    /// An offer sells nothing.
    #[error("offer {index} sells nothing")]
    ZeroAmount {
        /// Position in the run.
        index: usize,
    },
    /// The sum of the amounts exceeds 64 bits.
    #[error("the offers sell more units than 64 bits can count: split them into smaller amounts")]
    TooMuch,
}

impl<'a> Run<'a> {
    /// The run of these offers, summed up.
    ///
    /// # Errors
    /// [`RunError`] if they are not a run.
    pub fn new(limits: &'a [Price], amounts: &'a [Amount]) -> Result<Run<'a>, RunError> {
        Ok(Run { limits, amounts, total: Total::of(limits, amounts)? })
    }

    /// The offers as (limit, amount), in order.
    pub fn offers(&self) -> impl Iterator<Item = (Price, Amount)> + use<'a> {
        self.limits.iter().copied().zip(self.amounts.iter().copied())
    }
}

impl Total {
    /// Sums up the offers of one run; linear in their number.
    ///
    /// # Errors
    /// [`RunError`] if they are not a run.
    pub fn of(limits: &[Price], amounts: &[Amount]) -> Result<Total, RunError> {
        if limits.len() != amounts.len() || limits.is_empty() {
            return Err(RunError::Lengths { limits: limits.len(), amounts: amounts.len() });
        }
        if let Some(index) = limits.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(RunError::LimitOrder { index: index + 1 });
        }
        let total = Total::of_sorted(limits, amounts);
        if total.least == 0 {
            return Err(RunError::ZeroAmount { index: amounts.iter().position(|a| *a == 0).unwrap_or(0) });
        }
        if total.amount == Amount::MAX { Err(RunError::TooMuch) } else { Ok(total) }
    }

    /// As [`Total::of`], for limits known to be in order. The caller must check for zero amounts, and for too many
    /// units.
    pub(crate) fn of_sorted(limits: &[Price], amounts: &[Amount]) -> Total {
        let (amount, least) = amounts.iter().fold((0, Amount::MAX), |(sum, least): (Amount, Amount), amount| {
            (sum.saturating_add(*amount), least.min(*amount))
        });
        Total { amount, value: Value::of(limits, amounts), least, first: limits[0], last: limits[limits.len() - 1] }
    }

    /// The same sums, with another smallest amount.
    pub(crate) fn with_least(self, least: Amount) -> Total {
        Total { least, ..self }
    }

    /// Σ amount, in units of the sold asset.
    pub fn amount(&self) -> Amount {
        self.amount
    }

    /// The lowest limit price.
    pub fn first(&self) -> Price {
        self.first
    }

    /// The highest limit price.
    pub fn last(&self) -> Price {
        self.last
    }

    /// The smallest amount.
    pub fn least(&self) -> Amount {
        self.least
    }

    /// Σ amount · limit, exact.
    pub(crate) fn value(&self) -> Value {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_run_is_refused() {
        let price = |text: &str| text.parse::<Price>().expect("a price");
        let (one, two) = (price("1"), price("2"));
        let error = |limits: &[Price], amounts: &[Amount]| Total::of(limits, amounts).expect_err("no run");
        assert_eq!(error(&[], &[]), RunError::Lengths { limits: 0, amounts: 0 });
        assert_eq!(error(&[one], &[1, 2]), RunError::Lengths { limits: 1, amounts: 2 });
        assert_eq!(error(&[one, two, one], &[1, 2, 3]), RunError::LimitOrder { index: 2 });
        assert_eq!(error(&[one, two], &[1, 0]), RunError::ZeroAmount { index: 1 });
        assert_eq!(error(&[one, two], &[1, u64::MAX]), RunError::TooMuch);
        let total = Total::of(&[one, one, two], &[5, 3, 4]).expect("a run");
        assert_eq!((total.amount(), total.least(), total.first(), total.last()), (12, 3, one, two));
        assert!((total.value().to_f64() - 16.0).abs() < 1e-13);
    }
}
