//! The time of a block, computed only from the block and its parent.
//!
//! Each sub-block carries its proposer's clock. The median of at least 2f+1 clocks lies between those of two correct
//! validators. A block's time is this median, but at least a *step* after its parent's time: the interval that a
//! network's genesis gives a height ([`BlockClock`]). So whoever drives heights drives block time by as much, and what
//! ends at a height ends only after its time, too. That is why promises may be counted in heights
//! (`docs/specification.md`, *Promises and time*).
//!
//! Time advances by at most a minute per block, unless 2f+1 clocks agree with their median within a minute: then the
//! block has that time, however long the network has been at rest or off. One wrong clock moves time by nothing, and
//! clocks that disagree move it by a minute per block. With fewer clocks the block's time is a step after its parent's.
//!
//! **Deviations.** A chain whose parent has no time yet, at the genesis, takes the median unclamped. Where blocks have
//! one proposer there is one clock, and it alone counts. The prevotes of the others bound it, but in late rounds by
//! little: such a block advances time by at most an hour.

/// The latest time that a block can have: the end of the year 9999.
pub const TIME_MAX_MS: u64 = 253_402_300_799_999;

/// Clocks agree if they are within this time, and clocks that do not agree advance time by at most this.
const AGREES_MS: u64 = 60_000;
/// The most that a single proposer's clock advances time by.
const ALONE_MAX_MS: u64 = 3_600_000;

/// How a network's blocks get their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockClock {
    /// At least so many clocks make a trusted median.
    needed: usize,
    /// The least time between two blocks, in milliseconds.
    step_ms: u64,
    /// The most time between two blocks if their clocks agree.
    leap_ms: u64,
}

impl BlockClock {
    /// Blocks with a sub-block of each of many validators, of which `needed` are 2f+1.
    pub fn of_many(needed: usize, step_ms: u64) -> BlockClock {
        BlockClock { needed: needed.max(1), step_ms: step_ms.max(1), leap_ms: TIME_MAX_MS }
    }

    /// Blocks that one of several validators proposes.
    pub fn of_one_in_turn(step_ms: u64) -> BlockClock {
        BlockClock { needed: 1, step_ms: step_ms.max(1), leap_ms: ALONE_MAX_MS }
    }

    /// Blocks of a node that makes them alone: its operator's clock counts.
    pub fn own() -> BlockClock {
        BlockClock::of_many(1, 1)
    }

    /// The time of a block after a parent of time `parent_ms`, whose sub-blocks carry these `clocks`. All in
    /// milliseconds since 1970; never above [`TIME_MAX_MS`].
    pub fn block_time(&self, parent_ms: u64, clocks: &[u64]) -> u64 {
        let after = |ms: u64| parent_ms.saturating_add(ms).min(TIME_MAX_MS);
        let earliest = after(self.step_ms);
        if clocks.len() < self.needed {
            return earliest;
        }
        let mut sorted = clocks.to_vec();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        let agreeing = sorted.iter().filter(|clock| clock.abs_diff(median) <= AGREES_MS).count();
        let latest = match parent_ms {
            0 => TIME_MAX_MS,
            _ if agreeing >= self.needed => after(self.leap_ms),
            _ => after(AGREES_MS),
        };
        median.clamp(earliest, latest.max(earliest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;
    const DAY: u64 = 86_400_000;
    const MANY: BlockClock = BlockClock { needed: 3, step_ms: 500, leap_ms: TIME_MAX_MS };

    #[test]
    fn a_wrong_clock_moves_time_by_nothing_and_clocks_that_disagree_by_a_minute_at_most() {
        assert_eq!(MANY.block_time(NOW, &[NOW + 600, u64::MAX, NOW + 300]), NOW + 600);
        assert_eq!(MANY.block_time(NOW, &[NOW + DAY, u64::MAX, NOW + 300]), NOW + 60_000, "no two agree");
        assert_eq!(MANY.block_time(NOW, &[NOW + DAY, u64::MAX, NOW + DAY]), NOW + 60_000, "two of three agree");
        assert_eq!(MANY.block_time(NOW, &[0; 3]), NOW + 500);
        assert_eq!(MANY.block_time(NOW, &[u64::MAX; 2]), NOW + 500, "too few clocks");
        assert_eq!(MANY.block_time(NOW, &[]), NOW + 500);
        assert_eq!(MANY.block_time(u64::MAX, &[0]), TIME_MAX_MS);
    }

    /// A faulty clock neither makes a network that was at rest late nor takes it beyond the others.
    #[test]
    fn a_day_at_rest_or_off_is_over_with_one_block() {
        let clocks = [NOW + DAY, NOW + DAY + 400, NOW + DAY - 900];
        assert_eq!(MANY.block_time(NOW, &clocks), NOW + DAY);
        let with = |liar| MANY.block_time(NOW, &[clocks[0], clocks[1], clocks[2], liar]);
        assert!([0, u64::MAX].iter().all(|liar| with(*liar).abs_diff(NOW + DAY) < 1_000));
        assert_eq!(BlockClock::own().block_time(NOW, &[NOW + DAY]), NOW + DAY);
        let alone = BlockClock::of_one_in_turn(500);
        let hours = (0..24).fold(NOW, |parent, _| alone.block_time(parent, &[NOW + DAY]));
        assert_eq!((alone.block_time(NOW, &[u64::MAX]), hours), (NOW + 3_600_000, NOW + DAY));
    }

    /// Promises that count heights rely on this.
    #[test]
    fn heights_take_their_time_whatever_the_clocks_say() {
        for clocks in [&[0, 0, 0][..], &[NOW; 3], &[NOW, 0, u64::MAX], &[]] {
            let end = (0..1_000).fold(NOW, |parent, _| MANY.block_time(parent, clocks));
            assert!(end - NOW >= 1_000 * 500, "{clocks:?}");
        }
    }

    #[test]
    fn the_first_block_takes_the_median() {
        assert_eq!(MANY.block_time(0, &[NOW, NOW + 3_600_000, NOW - 3_600_000]), NOW);
        assert_eq!(BlockClock::own().block_time(0, &[u64::MAX]), TIME_MAX_MS);
        assert_eq!(BlockClock::own().block_time(0, &[0]), 1);
    }
}
