//! Whether a store works, and what was cut off when it was opened.

use std::sync::OnceLock;

use crate::error::StoreError;

/// A torn tail that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The file, with its directory.
    pub file: String,
    /// Its new end; 0 if it was removed as a whole.
    pub offset: u64,
    /// Bytes cut off.
    pub bytes: u64,
    /// The first height that is no longer in the log; it may never have been, because a mark has no height.
    pub height: u64,
}

impl std::fmt::Display for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Repair { file, offset, bytes, height } = self;
        write!(
            f,
            "{file}, byte {offset}: cut off {bytes} bytes of an unfinished write; the log continues at height {height}"
        )
    }
}

/// Whether an operation has failed.
#[derive(Debug, Default)]
pub(crate) struct Health(OnceLock<String>);

impl Health {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.0.get().map_or(Ok(()), |text| Err(StoreError::Failed(text.clone())))
    }

    /// Remembers an error of the operating system.
    pub(crate) fn note<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error @ StoreError::Io { .. }) = &result {
            // Only the first error is kept.
            let _ = self.0.set(error.to_string());
        }
        result
    }
}
