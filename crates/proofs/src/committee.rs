//! The quorums of a committee.

/// A validator's place in its committee.
pub type Index = u8;

/// Maximum number of validators of a committee.
pub const MEMBERS_MAX: usize = 256;

/// The number of validators and the thresholds that follow. Counts are of distinct senders, including this validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committee {
    /// Number of validators, n.
    pub size: usize,
    /// Maximum number of faulty ones, f = ⌊(n−1)/3⌋.
    pub faulty: usize,
    /// Number of equal echoes that make a validator ready: any two such sets share a correct one.
    pub echoes: usize,
    /// Number of equal votes that include at least one of a correct validator: enough to repeat the vote.
    pub one_correct: usize,
    /// Number of equal votes of which every correct validator will see f+1.
    pub deliver: usize,
    /// Number of auxiliary votes that end a round: correct validators alone are sure to send this many.
    pub round: usize,
}

impl Committee {
    /// The committee of `size` validators.
    ///
    /// # Panics
    /// If there are none, or more than 256.
    pub fn new(size: usize) -> Committee {
        assert!((1..=MEMBERS_MAX).contains(&size), "a committee has 1 to {MEMBERS_MAX} validators");
        let faulty = (size - 1) / 3;
        Committee {
            size,
            faulty,
            echoes: (size + faulty) / 2 + 1,
            one_correct: faulty + 1,
            deliver: 2 * faulty + 1,
            round: size - faulty,
        }
    }

    /// All validators.
    pub fn members(&self) -> impl Iterator<Item = Index> + use<> {
        (0..self.size).map(|index| index as Index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_those_of_the_specification() {
        let thresholds = |n| {
            let c = Committee::new(n);
            [c.faulty, c.echoes, c.one_correct, c.deliver, c.round]
        };
        assert_eq!(thresholds(1), [0, 1, 1, 1, 1]);
        assert_eq!(thresholds(4), [1, 3, 2, 3, 3]);
        assert_eq!(thresholds(5), [1, 4, 2, 3, 4]);
        assert_eq!(thresholds(7), [2, 5, 3, 5, 5]);
        assert_eq!(thresholds(200), [66, 134, 67, 133, 134]);
        for n in 1..=MEMBERS_MAX {
            let Committee { faulty, echoes, round, deliver, .. } = Committee::new(n);
            // Two quorums of echoes share a correct validator, and the correct ones alone make every quorum.
            assert!(2 * echoes > n + faulty && echoes <= n - faulty && deliver <= n - faulty && 2 * round > n + faulty);
        }
    }
}
