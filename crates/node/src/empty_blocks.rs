//! What the log says of blocks without transactions, which come all the time at rest.

use std::sync::atomic::{AtomicU64, Ordering};

/// How long the log is silent about empty blocks after a line about one.
const EMPTY_SILENCE_MS: u64 = 60_000;

/// Counts empty blocks that have no line in the log.
#[derive(Debug, Default)]
pub(crate) struct EmptyBlocks {
    due_ms: AtomicU64,
    unsaid: AtomicU64,
}

impl EmptyBlocks {
    /// How many had no line before this one, if this one has a line.
    pub fn hear(&self, now_ms: u64) -> Option<u64> {
        if now_ms < self.due_ms.load(Ordering::Relaxed) {
            self.unsaid.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.due_ms.store(now_ms + EMPTY_SILENCE_MS, Ordering::Relaxed);
        Some(self.unsaid.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_blocks_have_one_line_a_minute_with_their_number() {
        let blocks = EmptyBlocks::default();
        let lines: Vec<(u64, u64)> =
            (0..300).map(|at| 500 * at).filter_map(|now_ms| Some((now_ms, blocks.hear(now_ms)?))).collect();
        assert_eq!(lines, [(0, 0), (60_000, 119), (120_000, 119)]);
    }
}
