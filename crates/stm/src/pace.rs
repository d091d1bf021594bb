//! How long blocks go on sequentially after a parallel run that did not pay off.

/// After a parallel run that did not pay off, this many transactions run sequentially, then four times as many, and
/// so on up to the longest pause, also in the blocks after it.
const FIRST_PAUSE: usize = 512;
const LONGEST_PAUSE: usize = 8_192;
/// A parallel run after a pause is a trial of this many transactions.
const TRIAL: usize = 512;
/// Maximum number of transactions of one parallel run.
const RUN_AT_MOST: usize = 1 << 20;

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
}
