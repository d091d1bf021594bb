//! The heights at which committees change.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Height;

/// Epochs: the committee of epoch `e` is drawn at height `e·epoch_heights`, the epoch's *boundary*, and acts `delay`
/// heights later, until the next one acts. Epoch 0 belongs to the founders and starts at height 1. With
/// `epoch_heights` 0 it never ends.
///
/// ```text
/// boundary   0             E                   2E
/// height     1 2 3 …       E … E+delay │       2E … 2E+delay │
/// acts       └── epoch 0 ──────────────┴── epoch 1 ──────────┴── epoch 2 …
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Schedule {
    /// Heights between boundaries; 0 if the committee never changes.
    pub epoch_heights: u64,
    /// Heights from a boundary to the last one of the previous committee.
    pub delay: u64,
}

impl Schedule {
    /// Whether the founders stay forever.
    pub fn is_fixed(&self) -> bool {
        self.epoch_heights == 0
    }

    /// The epoch whose committee decides a height.
    pub fn epoch_of(&self, height: Height) -> u64 {
        self.last_drawn(height.saturating_sub(self.delay.saturating_add(1)))
    }

    /// The first height of an epoch.
    pub fn first_height(&self, epoch: u64) -> Height {
        if epoch == 0 { 1 } else { self.last_height(epoch - 1).saturating_add(1) }
    }

    /// The last height of an epoch; `u64::MAX` if it never ends.
    pub fn last_height(&self, epoch: u64) -> Height {
        if self.is_fixed() {
            return u64::MAX;
        }
        self.boundary(epoch.saturating_add(1)).saturating_add(self.delay)
    }

    /// The height at which an epoch's committee is drawn; 0 for the founders.
    pub fn boundary(&self, epoch: u64) -> Height {
        epoch.saturating_mul(self.epoch_heights)
    }

    /// Whether a committee is drawn at a height.
    pub fn is_boundary(&self, height: Height) -> bool {
        height > 0 && !self.is_fixed() && height.is_multiple_of(self.epoch_heights)
    }

    /// The first boundary above a height.
    pub fn next_boundary(&self, height: Height) -> Option<Height> {
        (!self.is_fixed()).then(|| self.boundary(self.last_drawn(height).saturating_add(1)))
    }

    /// The last epoch whose committee is drawn when a height is applied.
    pub fn last_drawn(&self, height: Height) -> u64 {
        height.checked_div(self.epoch_heights).unwrap_or(0)
    }

    /// The first boundary at a height or above it.
    pub fn boundary_from(&self, height: Height) -> Height {
        if self.is_fixed() {
            return u64::MAX;
        }
        self.boundary(height.div_ceil(self.epoch_heights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_follow_each_other_without_gaps() {
        for (epoch_heights, delay) in [(1, 0), (1, 16), (5, 0), (5, 3), (5, 5), (5, 17), (100, 16)] {
            let schedule = Schedule { epoch_heights, delay };
            for epoch in 0..50 {
                let (first, last) = (schedule.first_height(epoch), schedule.last_height(epoch));
                assert!(first <= last && schedule.first_height(epoch + 1) == last + 1);
                assert_eq!((schedule.epoch_of(first), schedule.epoch_of(last)), (epoch, epoch));
                // Its committee was drawn `delay` heights earlier.
                assert!(epoch == 0 || first == schedule.boundary(epoch) + delay + 1);
                assert!(schedule.last_drawn(first) >= epoch);
            }
        }
    }

    #[test]
    fn known_schedules() {
        let schedule = Schedule { epoch_heights: 100, delay: 16 };
        assert_eq!([1, 100, 116, 117, 216, 217].map(|height| schedule.epoch_of(height)), [0, 0, 0, 1, 1, 2]);
        assert_eq!([0, 99, 100, 200].map(|height| schedule.is_boundary(height)), [false, false, true, true]);
        assert_eq!([0, 99, 100].map(|height| schedule.next_boundary(height)), [Some(100), Some(100), Some(200)]);
        assert_eq!([0, 1, 100, 101].map(|height| schedule.boundary_from(height)), [0, 100, 100, 200]);
        let fixed = Schedule { epoch_heights: 0, delay: 16 };
        assert_eq!((fixed.epoch_of(u64::MAX), fixed.last_height(0), fixed.is_boundary(5)), (0, u64::MAX, false));
        assert_eq!((fixed.next_boundary(5), fixed.boundary_from(5)), (None, u64::MAX));
    }
}
