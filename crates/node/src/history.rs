//! Keeps the history of accounts: an index that follows the published blocks and delays none of them.
//!
//! Its thread reads each block after it was published, from the caches, or from the archive where it is behind. Rows of
//! the last blocks are in memory, at most for as many blocks as lie between two checkpoints: the store never forgets
//! those, so after a crash the index is made complete from them. Where the blocks above the index are gone (a state was
//! fetched, a home was restored), it begins again at the first block that the node has, and says so.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use doors::backend::NoHistory;
use primitives::{Digest, Height};
use readers::history::{HISTORY_FORMAT, HistoryRange, HistoryRow, HistorySpan};
use store::{RealDisk, Runs, StoreError};

use crate::locks::poisoned;

/// A question waits for an index that is at most so many heights behind, and for so long.
const FOLLOWS_WITHIN: u64 = 16;
const PATIENCE: Duration = Duration::from_secs(2);

/// The index, and what its thread is told.
pub(crate) struct History {
    pub runs: Option<Runs<RealDisk>>,
    keeps: bool,
    has_failed: AtomicBool,
    /// The last block that is published and archived.
    pub published: AtomicU64,
    /// Held while a block is added or blocks are taken back.
    pub turn: Mutex<()>,
    pub thread: OnceLock<Thread>,
}

impl History {
    /// Opens the index in the node's data directory. A node runs without it if it cannot be opened.
    /// `recovered` is the height that the node has when it starts.
    pub fn open(keeps: bool, network: &Digest, recovered: Height, data: &Path) -> History {
        let tag = Digest::of(HISTORY_FORMAT, &network.0).0;
        let opened = keeps.then(|| {
            let directory = data.join("history");
            let disk = RealDisk::new(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
            Runs::open(disk, tag).map_err(|error| error.to_string())
        });
        let runs = opened.and_then(|opened| {
            opened.inspect_err(|error| tracing::error!(error, "no history of accounts is kept")).ok()
        });
        History {
            has_failed: AtomicBool::new(keeps && runs.is_none()),
            runs,
            keeps,
            published: AtomicU64::new(recovered),
            turn: Mutex::new(()),
            thread: OnceLock::new(),
        }
    }

    /// Tells of a block that is published and archived.
    pub fn hear(&self, height: Height) {
        self.published.store(height, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Goes back to a height, on a developers' chain.
    pub fn go_back(&self, height: Height) {
        let _turn = poisoned(self.turn.lock());
        self.published.store(height, Ordering::Release);
        let Some(runs) = &self.runs else { return };
        if let Err(error) = runs.cut_above(height) {
            self.fail(&error);
        }
    }

    /// Nothing more is added, and questions are answered so.
    pub fn fail(&self, error: &dyn std::fmt::Display) {
        tracing::error!(%error, "the history of accounts is not kept from here on");
        self.has_failed.store(true, Ordering::Release);
    }

    fn runs(&self) -> Result<&Runs<RealDisk>, NoHistory> {
        match &self.runs {
            _ if !self.keeps => Err(NoHistory::Off),
            Some(runs) if !self.has_failed.load(Ordering::Acquire) => Ok(runs),
            _ => Err(NoHistory::Failed),
        }
    }

    /// The heights of the index, once it has followed what is published; or as they are, if it is far behind.
    pub fn span(&self) -> Result<HistorySpan, NoHistory> {
        let runs = self.runs()?;
        let (goal, begun) = (self.published.load(Ordering::Acquire), Instant::now());
        loop {
            let (known_from, height) = runs.span();
            let is_near = goal.saturating_sub(height) <= FOLLOWS_WITHIN;
            if height >= goal || !is_near || begun.elapsed() >= PATIENCE {
                return Ok(HistorySpan { known_from, height });
            }
            self.runs()?;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Rows of a range, the newest first.
    pub fn rows(&self, range: &HistoryRange, count: usize) -> Result<Vec<HistoryRow>, StoreError> {
        self.runs.as_ref().map_or(Ok(Vec::new()), |runs| runs.last_rows(&range.from, &range.to, count))
    }
}
