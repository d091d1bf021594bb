//! The numbers that an account, or a session key, has used.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Sequence;

/// The maximum distance of a sequence number from the highest used one, above or below (rule 4).
pub const SEQUENCE_WINDOW: u64 = 64;

/// Which sequence numbers an account has used: the highest, and a bitmap of the 64 up to and including it.
///
/// A number is free if it is at most 64 above the highest used, or among the 64 up to it and not used. So numbers may
/// arrive in any order, gaps may remain, and each is used at most once (SPEEDEX §K.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Window {
    highest: Sequence,
    /// Bit i is set if `highest − i` is used.
    used: u64,
}

/// Why a sequence number is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowError {
    /// It has been used.
    Used,
    /// It is more than 64 below the highest used, so the ledger no longer knows.
    TooOld,
    /// It is more than 64 above the highest used.
    TooFar,
}

impl Window {
    /// The highest number used; 0 if none is.
    pub fn highest(&self) -> Sequence {
        self.highest
    }

    /// Whether `sequence` is free.
    ///
    /// # Errors
    /// [`WindowError`] says why not.
    pub fn check(&self, sequence: Sequence) -> Result<(), WindowError> {
        if sequence > self.highest {
            return if sequence - self.highest <= SEQUENCE_WINDOW { Ok(()) } else { Err(WindowError::TooFar) };
        }
        let behind = self.highest - sequence;
        match () {
            _ if sequence == 0 || behind >= SEQUENCE_WINDOW => Err(WindowError::TooOld),
            _ if self.used >> behind & 1 == 1 => Err(WindowError::Used),
            _ => Ok(()),
        }
    }

    /// Marks a free `sequence` as used.
    pub fn mark(&mut self, sequence: Sequence) {
        if sequence > self.highest {
            let ahead = (sequence - self.highest) as u32;
            self.used = self.used.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = sequence;
        } else {
            self.used |= 1 << (self.highest - sequence);
        }
    }

    /// Marks a used `sequence` and all numbers below it as used.
    pub fn void_through(&mut self, sequence: Sequence) {
        let behind = self.highest.saturating_sub(sequence);
        self.used |= u32::try_from(behind).ok().and_then(|behind| u64::MAX.checked_shl(behind)).unwrap_or(0);
    }

    /// Marks all numbers that are free now as used.
    pub fn void_all(&mut self) {
        self.highest = self.highest.saturating_add(SEQUENCE_WINDOW);
        self.used = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_voided_is_used_and_the_rest_is_as_before() {
        let mut window = Window::default();
        [70, 75].into_iter().for_each(|number| window.mark(number));
        window.void_through(70);
        let free = |window: &Window| (1..200).filter(|number| window.check(*number).is_ok()).collect::<Vec<_>>();
        assert_eq!(free(&window), [71, 72, 73, 74].into_iter().chain(76..=139).collect::<Vec<_>>());
        window.void_all();
        assert_eq!(free(&window), (140..200).collect::<Vec<_>>());
        window.void_through(1);
        assert_eq!(free(&window), (140..200).collect::<Vec<_>>());
    }

    proptest! {
        /// Compares with the plain rule: a set of used numbers.
        #[test]
        fn each_number_is_used_once_within_64_of_the_highest(steps in proptest::collection::vec(0..200u64, 1..200)) {
            let mut window = Window::default();
            let mut used = BTreeSet::new();
            for step in steps {
                let highest = used.last().copied().unwrap_or(0);
                let sequence = (highest + step).saturating_sub(90);
                let expected = if sequence > highest + 64 {
                    Err(WindowError::TooFar)
                } else if sequence == 0 || sequence + 64 <= highest {
                    Err(WindowError::TooOld)
                } else if used.contains(&sequence) {
                    Err(WindowError::Used)
                } else {
                    Ok(())
                };
                prop_assert_eq!(window.check(sequence), expected);
                if expected.is_ok() {
                    window.mark(sequence);
                    used.insert(sequence);
                }
            }
        }
    }
}
