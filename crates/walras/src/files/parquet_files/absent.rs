//! What a binary that was built for a demo says of Parquet files, which cost a minute of building.

use std::convert::Infallible;
use std::fs::File;
use std::path::Path;

use crate::files::parquet_files::Cell;
use crate::files::rows::{Columns, Problem, RowError};

const ABSENT: &str = "this binary was built for a demo, without Parquet files: `make build` adds them";

/// A table that is never made.
pub(crate) struct Table {
    pub count: u64,
    never: Infallible,
}

impl Table {
    pub fn create(path: &Path, _columns: &[&str]) -> anyhow::Result<Table> {
        anyhow::bail!("{}: {ABSENT}", path.display())
    }

    pub fn push<const N: usize>(&mut self, _row: [Cell; N]) -> anyhow::Result<()> {
        match self.never {}
    }

    pub fn finish(self) -> anyhow::Result<()> {
        match self.never {}
    }
}

/// # Errors
///
/// Always: this build has no reader.
pub(crate) fn read<T>(
    _file: File,
    path: &Path,
    _columns: Columns,
    _row: impl FnMut(&[&str]) -> Result<T, Problem>,
) -> Result<Vec<T>, RowError> {
    Err(RowError::Parquet { path: path.into(), error: ABSENT.into() })
}
