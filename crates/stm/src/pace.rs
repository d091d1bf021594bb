//! Whether a parallel run pays off, and how long blocks go on sequentially after one that did not.

/// After a parallel run that did not pay off, this many transactions run sequentially, then four times as many, and
/// so on up to the longest pause, also in the blocks after it.
const FIRST_PAUSE: usize = 512;
const LONGEST_PAUSE: usize = 8_192;
/// A parallel run after a pause is a trial of this many transactions.
const TRIAL: usize = 512;
/// Maximum number of transactions of one parallel run.
const RUN_AT_MOST: usize = 1 << 20;

/// Number of commits between two checks whether running in parallel pays off.
pub(crate) const CHECKED_COMMITS: u32 = 16;
/// From the moment at which a helper is there, the time of a run is checked in intervals of this many nanoseconds.
const PATIENCE_NS: u64 = 10_000_000;
/// Checks after which a run ends if even the fastest was no faster than a sequential execution. The others may have
/// waited for a processor.
const SLOW_CHECKS: u32 = 6;

/// What the last parallel runs taught: how long to go on sequentially. A stranger's transactions that save no time in
/// parallel make the ones after them sequential for as long, and no longer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// The pause after the last run; none if it paid off.
    pause: usize,
    /// Transactions of it that are left.
    left: usize,
}

impl Pace {
    /// Transactions to run sequentially before the next parallel run.
    pub fn left(&self) -> usize {
        self.left
    }

    /// So many ran sequentially.
    pub fn pass(&mut self, transactions: usize) {
        self.left = self.left.saturating_sub(transactions);
    }

    /// The longest parallel run: a trial after one that did not pay off.
    pub fn run_at_most(&self) -> usize {
        if self.pause == 0 { RUN_AT_MOST } else { TRIAL }
    }

    /// After a run that went on to its end, or did not.
    pub fn learn(&mut self, pays: bool) {
        self.pause = if pays { 0 } else { (self.pause * 4).clamp(FIRST_PAUSE, LONGEST_PAUSE) };
        self.left = self.pause;
    }
}

/// The times of a parallel run.
pub(crate) struct RunTimes {
    /// The start of the current interval: the clock, and the number of committed transactions.
    from: Option<(u64, u32)>,
    /// The clock at the last check.
    checked_at: u64,
    /// The shortest time between two checks.
    fastest_ns: u64,
    checks: u32,
}

impl RunTimes {
    /// A run that begins now.
    pub fn new(now: u64) -> RunTimes {
        RunTimes { from: None, checked_at: now, fastest_ns: u64::MAX, checks: 0 }
    }

    /// Whether a run was no faster than a sequential execution for a while, at a check with so many transactions
    /// committed. As long as no helper is there it may take twice as long.
    pub fn is_slow(&mut self, now: u64, each_ns: u64, committed: u32, is_alone: bool) -> bool {
        self.fastest_ns = self.fastest_ns.min(now.saturating_sub(self.checked_at));
        (self.checked_at, self.checks) = (now, self.checks + 1);
        let checked_ns = each_ns.saturating_mul(u64::from(CHECKED_COMMITS) * if is_alone { 2 } else { 1 });
        if self.checks >= SLOW_CHECKS && self.fastest_ns > checked_ns {
            return true;
        }
        if is_alone {
            self.from = None;
            return false;
        }
        let (since, before) = *self.from.get_or_insert((now, committed));
        let elapsed_ns = now.saturating_sub(since);
        if elapsed_ns < PATIENCE_NS {
            return false;
        }
        self.from = Some((now, committed));
        elapsed_ns > each_ns.saturating_mul((committed - before).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_until_a_run_pays_off_and_goes_on_in_the_next_block() {
        let mut pace = Pace::default();
        assert_eq!((pace.left(), pace.run_at_most()), (0, RUN_AT_MOST));
        for pause in [512, 2_048, 8_192, 8_192] {
            pace.learn(false);
            assert_eq!((pace.left(), pace.run_at_most()), (pause, TRIAL));
        }
        pace.pass(5_000);
        assert_eq!(pace.left(), 3_192, "what a block does not use up is left for the next");
        pace.learn(true);
        assert_eq!((pace.left(), pace.run_at_most()), (0, RUN_AT_MOST));
    }

    /// Whether a run whose checks take so many nanoseconds each ends at the last one; a transaction alone takes 1,000.
    fn ends(checks_ns: &[u64], is_alone: bool) -> bool {
        let (mut times, mut now, mut committed) = (RunTimes::new(5), 5, 0);
        let mut is_slow = false;
        for check_ns in checks_ns {
            assert!(!is_slow, "it has ended before");
            (now, committed) = (now + check_ns, committed + CHECKED_COMMITS);
            is_slow = times.is_slow(now, 1_000, committed, is_alone);
        }
        is_slow
    }

    #[test]
    fn a_run_ends_that_is_no_faster_however_long_single_checks_wait() {
        assert!(ends(&[17_000; 6], false) && !ends(&[15_000; 100], false));
        // One that waits for a processor at five checks of six is no slow one.
        assert!(!ends(&[900_000, 900_000, 900_000, 900_000, 900_000, 10_000], false));
        // But it is if that goes on.
        assert!(ends(
            &[
                10_000, 900_000, 900_000, 900_000, 900_000, 900_000, 900_000, 900_000, 900_000, 900_000, 900_000,
                900_000, 900_000
            ],
            false
        ));
        assert!(ends(&[33_000; 6], true) && !ends(&[31_000; 1_000], true));
    }
}
