//! The validators of an epoch, and how many of them make what.

use borsh::{BorshDeserialize, BorshSerialize};

/// A validator's place in its committee.
pub type Index = u8;

/// Most validators of a committee.
pub const MEMBERS_MAX: usize = 256;

/// How many validators there are, and the thresholds that follow. Every count is of distinct senders, oneself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committee {
    /// Number of validators, n.
    pub size: usize,
    /// How many of them may be faulty, f = ⌊(n−1)/3⌋.
    pub faulty: usize,
    /// Equal echoes after which a validator is ready: any two such sets share a correct one.
    pub echoes: usize,
    /// Equal votes of which one at least is by a correct validator: enough to repeat it.
    pub one_correct: usize,
    /// Equal votes that every correct validator will come to see f+1 of.
    pub deliver: usize,
    /// Auxiliary votes that end a round: as many as correct validators are sure to send.
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

/// A set of validators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Members([u64; MEMBERS_MAX / 64]);

impl Members {
    /// Bytes of a set.
    pub(crate) const BYTES: usize = MEMBERS_MAX / 8;

    /// Adds one; false if it was in already.
    pub fn insert(&mut self, member: Index) -> bool {
        let (word, bit) = (&mut self.0[usize::from(member) / 64], 1 << (member % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Whether one is in.
    pub fn contains(&self, member: Index) -> bool {
        self.0[usize::from(member) / 64] & (1 << (member % 64)) != 0
    }

    /// How many are in.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether none is in.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; MEMBERS_MAX / 64]
    }

    /// Those in either.
    pub fn union(&self, other: &Members) -> Members {
        Members(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Those who are in, in order.
    pub fn iter(&self) -> impl Iterator<Item = Index> + '_ {
        (0..=Index::MAX).filter(|member| self.contains(*member))
    }
}

impl FromIterator<Index> for Members {
    fn from_iter<I: IntoIterator<Item = Index>>(members: I) -> Members {
        let mut set = Members::default();
        for member in members {
            set.insert(member);
        }
        set
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

    #[test]
    fn a_set_counts_each_member_once() {
        let mut set = Members::default();
        assert!(set.is_empty() && set.insert(0) && set.insert(64) && set.insert(255) && !set.insert(64));
        assert_eq!((set.len(), set.iter().collect::<Vec<_>>()), (3, vec![0, 64, 255]));
        assert!(set.contains(255) && !set.contains(254));
    }
}
