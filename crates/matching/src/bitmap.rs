//! A set of small integers in three storeys of words: the next member above or below is three words away.

/// Members of one storey's word.
const WORD: usize = 64;
/// The largest set: 64³.
pub(crate) const BITS_MAX: usize = WORD * WORD * WORD;

#[derive(Clone, Debug)]
pub(crate) struct Bitmap {
    bits: Vec<u64>,
    words: Vec<u64>,
    top: u64,
}

impl Bitmap {
    pub(crate) fn new(size: usize) -> Bitmap {
        assert!(size <= BITS_MAX, "three storeys hold {BITS_MAX}");
        let words = size.div_ceil(WORD);
        Bitmap { bits: vec![0; words], words: vec![0; words.div_ceil(WORD)], top: 0 }
    }

    pub(crate) fn insert(&mut self, at: usize) {
        let (word, block) = (at / WORD, at / WORD / WORD);
        self.bits[word] |= 1 << (at % WORD);
        self.words[block] |= 1 << (word % WORD);
        self.top |= 1 << block;
    }

    pub(crate) fn remove(&mut self, at: usize) {
        let (word, block) = (at / WORD, at / WORD / WORD);
        self.bits[word] &= !(1 << (at % WORD));
        if self.bits[word] == 0 {
            self.words[block] &= !(1 << (word % WORD));
            if self.words[block] == 0 {
                self.top &= !(1 << block);
            }
        }
    }

    /// The lowest member that is at least `from`.
    pub(crate) fn at_or_above(&self, from: usize) -> Option<usize> {
        let word = from / WORD;
        let bits = self.bits.get(word)? & (!0 << (from % WORD));
        if bits != 0 {
            return Some(word * WORD + bits.trailing_zeros() as usize);
        }
        let (next, block) = (word + 1, (word + 1) / WORD);
        let words = self.words.get(block).map_or(0, |words| words & (!0 << (next % WORD)));
        let word = match words {
            0 => {
                let blocks = self.top & (!0u64).checked_shl(block as u32 + 1).unwrap_or(0);
                let block = (blocks != 0).then(|| blocks.trailing_zeros() as usize)?;
                block * WORD + self.words[block].trailing_zeros() as usize
            }
            words => block * WORD + words.trailing_zeros() as usize,
        };
        Some(word * WORD + self.bits[word].trailing_zeros() as usize)
    }

    /// The highest member that is at most `from`.
    pub(crate) fn at_or_below(&self, from: usize) -> Option<usize> {
        let from = from.min(self.bits.len() * WORD - 1);
        let word = from / WORD;
        let bits = self.bits[word] & (!0 >> (WORD - 1 - from % WORD));
        if bits != 0 {
            return Some(word * WORD + highest(bits));
        }
        let block = word / WORD;
        let words = self.words[block] & ((1 << (word % WORD)) - 1);
        let word = match words {
            0 => {
                let blocks = self.top & ((1 << block) - 1);
                let block = (blocks != 0).then(|| highest(blocks))?;
                block * WORD + highest(self.words[block])
            }
            words => block * WORD + highest(words),
        };
        Some(word * WORD + highest(self.bits[word]))
    }
}

fn highest(word: u64) -> usize {
    WORD - 1 - word.leading_zeros() as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn neighbours_in_a_bitmap_are_those_of_a_set(
            steps in proptest::collection::vec((any::<bool>(), 0..5_000usize), 1..200),
            asked in proptest::collection::vec(0..5_000usize, 1..50),
        ) {
            let (mut bitmap, mut set) = (Bitmap::new(5_000), BTreeSet::new());
            for (inserts, at) in steps {
                if inserts {
                    bitmap.insert(at);
                    set.insert(at);
                } else {
                    bitmap.remove(at);
                    set.remove(&at);
                }
            }
            for from in asked {
                prop_assert_eq!(bitmap.at_or_above(from), set.range(from..).next().copied());
                prop_assert_eq!(bitmap.at_or_below(from), set.range(..=from).next_back().copied());
            }
        }
    }

    #[test]
    fn the_ends_of_the_largest_bitmap_are_found() {
        let mut bitmap = Bitmap::new(BITS_MAX);
        assert_eq!((bitmap.at_or_above(0), bitmap.at_or_below(BITS_MAX - 1)), (None, None));
        bitmap.insert(0);
        bitmap.insert(BITS_MAX - 1);
        assert_eq!((bitmap.at_or_above(1), bitmap.at_or_below(BITS_MAX - 2)), (Some(BITS_MAX - 1), Some(0)));
        bitmap.remove(BITS_MAX - 1);
        assert_eq!(bitmap.at_or_above(1), None);
    }
}
