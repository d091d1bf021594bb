//! The index of accounts' history.

use readers::history::{HistoryRange, HistoryRow, HistorySpan};

use super::ReadError;

/// The index of accounts' history.
pub trait HistoryReads {
    /// The heights that the index has, in a moment at which it has followed the published blocks, or is far behind.
    ///
    /// # Errors
    /// [`NoHistory`] says why there is none.
    fn history(&self) -> Result<HistorySpan, NoHistory>;

    /// At most `count` rows of a range, the newest first.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the index cannot be read.
    fn history_rows(&self, range: &HistoryRange, count: usize) -> Result<Vec<HistoryRow>, ReadError>;
}

/// Why a node has no history of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoHistory {
    /// The operator keeps none.
    #[error("this node keeps no history of accounts ([history] keep = false); ask another node")]
    Off,
    /// It could not be opened or written.
    #[error("the history of accounts cannot be kept at this node; its log says why. Ask another node")]
    Failed,
}
