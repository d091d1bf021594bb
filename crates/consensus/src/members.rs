//! Sets of validators.

use borsh::{BorshDeserialize, BorshSerialize};
use proofs::{Index, MEMBERS_MAX};

/// A set of validators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Members([u64; MEMBERS_MAX / 64]);

impl Members {
    /// Bytes of a set.
    pub(crate) const BYTES: usize = MEMBERS_MAX / 8;

    /// Adds a validator; false if it was in the set already.
    pub fn insert(&mut self, member: Index) -> bool {
        let (word, bit) = (&mut self.0[usize::from(member) / 64], 1 << (member % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Whether a validator is in the set.
    pub fn contains(&self, member: Index) -> bool {
        self.0[usize::from(member) / 64] & (1 << (member % 64)) != 0
    }

    /// The size of the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; MEMBERS_MAX / 64]
    }

    /// The union of two sets.
    pub fn union(&self, other: &Members) -> Members {
        Members(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The members, in order.
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
    fn a_set_counts_each_member_once() {
        let mut set = Members::default();
        assert!(set.is_empty() && set.insert(0) && set.insert(64) && set.insert(255) && !set.insert(64));
        assert_eq!((set.len(), set.iter().collect::<Vec<_>>()), (3, vec![0, 64, 255]));
        assert!(set.contains(255) && !set.contains(254));
    }
}
