//! Keeps the history of accounts: an index that follows the published blocks and delays none of them.
//!
//! Its thread reads each block after it was published, from the caches, or from the archive where it is behind. Rows of
//! the last blocks are in memory, at most for as many blocks as lie between two checkpoints: the store never forgets
//! those. So after a crash the index is made complete from them. Where the blocks above the index are gone (a state was
//! fetched, a home was restored), it begins again at the first block that the node has, and says so.

pub(crate) mod index;
pub(crate) mod thread;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use doors::backend::NoHistory;
use primitives::{Digest, Height};
use readers::history::{HistoryRange, HistoryRow, HistorySpan};

use crate::config::HistoryConfig;
use crate::locks::poisoned;
use index::{HistoryIndex, HistoryIndexError};

/// A question waits for an index that is at most so many heights behind, and for so long.
const FOLLOWS_WITHIN: u64 = 16;
const PATIENCE: Duration = Duration::from_secs(2);

/// The index, and what its thread is told.
pub(crate) struct History {
    pub index: Option<HistoryIndex>,
    keeps: bool,
    has_failed: AtomicBool,
    /// The last block that is published and archived.
    pub published: AtomicU64,
    /// Held while a block is added or blocks are taken back.
    pub turn: Mutex<()>,
    pub thread: OnceLock<Thread>,
}

/// Refuses settings under which no history can be kept. No database is reached.
pub(crate) fn check(config: &HistoryConfig, network: &Digest) -> Result<(), HistoryIndexError> {
    // The index in files has no settings, and makes its folder.
    let is_elsewhere = config.keep && config.postgres.is_some();
    if is_elsewhere { HistoryIndex::open(config, network, Path::new("")).map(drop) } else { Ok(()) }
}

impl History {
    /// Opens the index. A node runs without it if it cannot be opened, but for a setting that must be changed.
    /// `recovered` is the height that the node has when it starts.
    pub fn open(
        config: &HistoryConfig,
        network: &Digest,
        recovered: Height,
        data: &Path,
    ) -> Result<History, HistoryIndexError> {
        let index = match config.keep.then(|| HistoryIndex::open(config, network, data)) {
            Some(Err(error)) if error.is_setting() => return Err(error),
            Some(Err(error)) => {
                tracing::error!(%error, "no history of accounts is kept");
                None
            }
            Some(Ok(index)) => Some(index),
            None => None,
        };
        Ok(History {
            has_failed: AtomicBool::new(config.keep && index.is_none()),
            index,
            keeps: config.keep,
            published: AtomicU64::new(recovered),
            turn: Mutex::new(()),
            thread: OnceLock::new(),
        })
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
        let Some(index) = &self.index else { return };
        if let Err(error) = index.cut_above(height) {
            self.fail(&error);
        }
    }

    /// Nothing more is added, and questions are answered so.
    pub fn fail(&self, error: &dyn std::fmt::Display) {
        tracing::error!(%error, "the history of accounts is not kept from here on");
        self.has_failed.store(true, Ordering::Release);
    }

    /// Nothing can be added for now, and questions are answered so; it is told once.
    pub fn wait_out(&self, error: &dyn std::fmt::Display) {
        if !self.has_failed.swap(true, Ordering::AcqRel) {
            tracing::warn!(%error, "the history of accounts waits");
        }
    }

    /// The index has answered.
    pub fn go_on(&self) {
        if self.has_failed.swap(false, Ordering::AcqRel) {
            tracing::info!("the history of accounts goes on");
        }
    }

    fn index(&self) -> Result<&HistoryIndex, NoHistory> {
        match &self.index {
            _ if !self.keeps => Err(NoHistory::Off),
            Some(index) if !self.has_failed.load(Ordering::Acquire) => Ok(index),
            _ => Err(NoHistory::Failed),
        }
    }

    /// The heights of the index, once it has followed what is published; or as they are, if it is far behind.
    pub fn span(&self) -> Result<HistorySpan, NoHistory> {
        let index = self.index()?;
        let (goal, begun) = (self.published.load(Ordering::Acquire), Instant::now());
        loop {
            let (span, is_late) = (index.span(), begun.elapsed() >= PATIENCE);
            if let Some((known_from, height)) = span
                && (height >= goal || goal - height > FOLLOWS_WITHIN || is_late)
            {
                return Ok(HistorySpan { known_from, height });
            }
            if is_late {
                return Err(NoHistory::Failed);
            }
            self.index()?;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Rows of a range, the newest first.
    pub fn rows(&self, range: &HistoryRange, count: usize) -> Result<Vec<HistoryRow>, HistoryIndexError> {
        self.index.as_ref().map_or(Ok(Vec::new()), |index| index.last_rows(range, count))
    }
}
