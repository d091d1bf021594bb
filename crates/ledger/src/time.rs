//! The time of a block, computed only from the block and its parent.
//!
//! Each sub-block carries its proposer's clock. The median of at least 2f+1 clocks lies between those of two correct
//! validators. It is clamped to between one millisecond and one minute after the parent, so that time always rises,
//! and a wrong clock moves it by at most a minute per block. With fewer clocks the block's time is one millisecond
//! after its parent's.
//!
//! **Deviations.** A chain whose parent has no time yet, at the genesis, takes the median unclamped. Where blocks
//! have one proposer there is one clock, and it alone counts.

/// The latest time that a block can have: the end of the year 9999.
pub const TIME_MAX_MS: u64 = 253_402_300_799_999;

const STEP_MIN_MS: u64 = 1;
const STEP_MAX_MS: u64 = 60_000;

/// The time of a block after a parent of time `parent_ms`, whose sub-blocks carry these `clocks`; at least `needed`
/// clocks make a trusted median. All in milliseconds since 1970; never above [`TIME_MAX_MS`].
pub fn block_time(parent_ms: u64, clocks: &[u64], needed: usize) -> u64 {
    let earliest = parent_ms.saturating_add(STEP_MIN_MS).min(TIME_MAX_MS);
    let latest = if parent_ms == 0 { TIME_MAX_MS } else { parent_ms.saturating_add(STEP_MAX_MS).min(TIME_MAX_MS) };
    if clocks.len() < needed.max(1) {
        return earliest;
    }
    let mut sorted = clocks.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2].clamp(earliest, latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    #[test]
    fn a_wrong_clock_moves_time_by_a_minute_at_most() {
        assert_eq!(block_time(NOW, &[NOW + 500, u64::MAX, NOW + 300], 3), NOW + 500);
        assert_eq!(block_time(NOW, &[u64::MAX; 3], 3), NOW + 60_000);
        assert_eq!(block_time(NOW, &[0; 3], 3), NOW + 1);
        assert_eq!(block_time(NOW, &[u64::MAX; 2], 3), NOW + 1, "too few clocks");
        assert_eq!(block_time(NOW, &[], 0), NOW + 1);
        assert_eq!(block_time(u64::MAX, &[0], 1), TIME_MAX_MS);
    }

    #[test]
    fn the_first_block_takes_the_median() {
        assert_eq!(block_time(0, &[NOW, NOW + 3_600_000, NOW - 3_600_000], 3), NOW);
        assert_eq!(block_time(0, &[u64::MAX], 1), TIME_MAX_MS);
        assert_eq!(block_time(0, &[0], 1), 1);
    }
}
