//! The terms of all pools of a chain, in its genesis.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Fraction;

/// The most fee classes of a chain.
const CLASSES_MAX: usize = 4;

/// The terms of all pools of a chain, from its genesis on.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PoolTerms {
    /// The fee of each class: the part of the batch's rate that the pool demands beyond its marginal price. One to
    /// four, ascending.
    pub fees: Vec<Fraction>,
}

impl Default for PoolTerms {
    /// 2^-11 and 2^-8: about 0.05 % and 0.4 %.
    fn default() -> PoolTerms {
        PoolTerms { fees: [11, 8].map(Fraction::power_of_two).to_vec() }
    }
}

impl PoolTerms {
    /// The fault of these terms, if there is one.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let tenth = Fraction::ONE_IN_UNITS / 10;
        Some(match () {
            _ if !(1..=CLASSES_MAX).contains(&self.fees.len()) => "fees: list one to four",
            _ if !self.fees.is_sorted_by(|a, b| a.units() < b.units()) => "fees: list each once, the lowest first",
            _ if self.fees.iter().any(|fee| fee.units() > tenth) => "fees: choose at most 0.1 each",
            _ => return None,
        })
    }
}
