//! Benching: a validator whose slot was left out repeatedly has no slot for a while.
//!
//! An absent proposer costs every superblock about five message delays. So a validator whose slot was decided 0 in the
//! last `after` heights in which it had one is *benched*. It has no slot for 1, then 2, 4, … heights. After each such
//! spell it has one height to show that it is back. The benches at a height follow from the decisions `delay` heights
//! below or earlier, which every validator that takes part in the height knows. The digest of the record is part of
//! every certificate. At most f validators are benched at once.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;
use proofs::{Committee, Index};

use crate::members::Members;

const CONTEXT: &str = "walras 2026 consensus benches v1";
/// A spell is at most 2^6 heights.
const LEVEL_MAX: u8 = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Attendance {
    /// Consecutive times that its slot was decided 0.
    missed: u32,
    /// Number of consecutive spells that it has sat out.
    level: u8,
    /// First height without a slot.
    from: u64,
    /// First height with a slot again.
    until: u64,
}

/// The attendance of all validators after a height.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Benches {
    after: u32,
    delay: u64,
    validators: Vec<Attendance>,
}

impl Benches {
    /// The initial record. `after` 0 benches nobody.
    pub fn new(committee: &Committee, after: u32, delay: u64) -> Benches {
        Benches { after, delay, validators: vec![Attendance::default(); committee.size] }
    }

    /// The validators without a slot at a height; everything up to `delay` below it must have been noted.
    pub fn at(&self, height: u64) -> Members {
        let benched = |(_, v): &(usize, &Attendance)| v.from <= height && height < v.until;
        self.validators.iter().enumerate().filter(benched).map(|(index, _)| index as Index).collect()
    }

    /// Records the slots whose sub-blocks are in the superblock of a height; heights must be given in order.
    pub fn note(&mut self, height: u64, present: &Members) {
        if self.after == 0 {
            return;
        }
        let most = Committee::new(self.validators.len()).faulty;
        for index in 0..self.validators.len() {
            let benched = self.validators.iter().filter(|v| v.until > height).count();
            let after = self.after;
            let validator = &mut self.validators[index];
            // Between the decision to bench and the end of the spell, nothing is counted.
            if height < validator.until {
                continue;
            }
            if present.contains(index as Index) {
                (validator.missed, validator.level) = (0, 0);
                continue;
            }
            validator.missed = validator.missed.saturating_add(1);
            let due = validator.missed >= after || validator.level > 0;
            if due && benched < most {
                let from = height + self.delay;
                (validator.from, validator.until) = (from, from + (1 << validator.level));
                validator.level = (validator.level + 1).min(LEVEL_MAX);
            }
        }
    }

    /// The record's digest.
    pub fn digest(&self) -> Digest {
        Digest::of(CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_absent_sit_out_longer_and_longer_and_the_present_are_back_at_once() {
        let committee = Committee::new(4);
        let mut benches = Benches::new(&committee, 3, 2);
        let (all, without): (Members, Members) = ((0..4).collect(), (0..3).collect());
        let mut slots = Vec::new();
        for height in 1..=40 {
            let benched = benches.at(height);
            assert!(benched.len() <= 1 && !benched.contains(0));
            if !benched.contains(3) {
                slots.push(height);
            }
            benches.note(height, &without);
        }
        // Missed at 1, 2, 3: out at 5; back at 6: out at 8, 9; back at 10: out at 12 to 15; …
        assert_eq!(slots, [1, 2, 3, 4, 6, 7, 10, 11, 16, 17, 26, 27]);
        let back = (41..200).find(|height| {
            let slot = !benches.at(*height).contains(3);
            benches.note(*height, if slot { &all } else { &without });
            slot
        });
        let back = back.expect("every spell ends");
        assert!((back + 1..back + 4).all(|height| {
            let slot = !benches.at(height).contains(3);
            benches.note(height, &without);
            slot
        }));
    }

    #[test]
    fn never_more_than_f_are_benched() {
        let committee = Committee::new(7);
        let mut benches = Benches::new(&committee, 1, 1);
        for height in 1..500 {
            assert!(benches.at(height).len() <= 2);
            benches.note(height, &Members::default());
        }
    }
}
