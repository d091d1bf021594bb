//! Where the rows of the history of accounts are: in files of the node's data directory, or in PostgreSQL.

use std::path::Path;

use primitives::{Digest, Height};
use readers::history::{HISTORY_FORMAT, HistoryRange, HistoryRow};
#[cfg(feature = "postgres")]
use relational::{RelationalError, RelationalHistory, RelationalSettings};
use store::{RealDisk, Runs, StoreError};

use crate::config::HistoryConfig;

/// Bytes of rows in memory above which they are written into files.
const FRESH_BYTES: usize = 16 << 20;

/// The index.
pub(crate) enum HistoryIndex {
    Files(Box<Runs<RealDisk>>),
    #[cfg(feature = "postgres")]
    Postgres(Box<RelationalHistory>),
}

/// Why the index cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryIndexError {
    /// The folder of the files.
    #[error("{0}: {1}")]
    Folder(String, std::io::Error),
    /// The files.
    #[error(transparent)]
    Files(#[from] StoreError),
    /// The database.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] RelationalError),
    /// A setting.
    #[error("[history] {0}")]
    Settings(String),
}

impl HistoryIndexError {
    /// Whether it may be over later without the node being started anew: a database that does not answer, or into which
    /// another node writes.
    pub fn may_pass(&self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            HistoryIndexError::Postgres(error) => {
                matches!(error, RelationalError::Database(_) | RelationalError::Taken(_) | RelationalError::Another(_))
            }
            _ => false,
        }
    }

    /// Whether the operator must change the configuration.
    pub fn is_setting(&self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            HistoryIndexError::Postgres(RelationalError::Settings(_)) => true,
            HistoryIndexError::Settings(_) => true,
            _ => false,
        }
    }
}

impl HistoryIndex {
    /// Opens the index of a chain. A database is reached later, when it is first used.
    pub fn open(config: &HistoryConfig, network: &Digest, data: &Path) -> Result<HistoryIndex, HistoryIndexError> {
        let tag = Digest::of(HISTORY_FORMAT, &network.0).0;
        if let Some(address) = &config.postgres {
            return postgres(config, address, tag);
        }
        let directory = data.join("history");
        let disk = RealDisk::new(&directory)
            .map_err(|error| HistoryIndexError::Folder(directory.display().to_string(), error))?;
        Ok(HistoryIndex::Files(Box::new(Runs::open(disk, tag)?)))
    }

    /// The heights that are known; `None` while a database cannot be reached.
    pub fn span(&self) -> Option<(Height, Height)> {
        match self {
            HistoryIndex::Files(runs) => Some(runs.span()),
            #[cfg(feature = "postgres")]
            HistoryIndex::Postgres(history) => history.span(),
        }
    }

    /// The heights that are known, after a database has answered.
    pub fn reached(&self) -> Result<(Height, Height), HistoryIndexError> {
        match self {
            HistoryIndex::Files(runs) => Ok(runs.span()),
            #[cfg(feature = "postgres")]
            HistoryIndex::Postgres(history) => Ok(history.connect()?),
        }
    }

    /// Forgets everything, and begins above a height.
    pub fn begin_after(&self, height: Height) -> Result<(), HistoryIndexError> {
        match self {
            HistoryIndex::Files(runs) => Ok(runs.begin_after(height)?),
            #[cfg(feature = "postgres")]
            HistoryIndex::Postgres(history) => Ok(history.begin_after(height)?),
        }
    }

    /// Adds the rows of the next height. At least after every `at_most` blocks they are durable, and then those below
    /// `height - keep` are forgotten if `keep` is not 0.
    pub fn add(&self, height: Height, rows: Vec<HistoryRow>, at_most: u64, keep: u64) -> Result<(), HistoryIndexError> {
        let oldest = height.saturating_sub(keep);
        match self {
            HistoryIndex::Files(runs) => {
                runs.add(height, rows)?;
                if runs.fresh_bytes() >= FRESH_BYTES || height - runs.durable() >= at_most {
                    runs.flush()?;
                    if keep > 0 {
                        runs.forget_below(oldest)?;
                    }
                }
            }
            #[cfg(feature = "postgres")]
            HistoryIndex::Postgres(history) => {
                history.add(height, &rows)?;
                if keep > 0 && height.is_multiple_of(at_most) {
                    history.forget_below(oldest)?;
                }
            }
        }
        Ok(())
    }

    /// Makes all rows durable.
    pub fn flush(&self) -> Result<(), HistoryIndexError> {
        match self {
            HistoryIndex::Files(runs) => Ok(runs.flush()?),
            #[cfg(feature = "postgres")]
            HistoryIndex::Postgres(_) => Ok(()),
        }
    }

    /// Forgets rows of heights above this one.
    pub fn cut_above(&self, height: Height) -> Result<(), HistoryIndexError> {
        match self {
            HistoryIndex::Files(runs) => Ok(runs.cut_above(height)?),
            #[cfg(feature = "postgres")]
            HistoryIndex::Postgres(history) => Ok(history.cut_above(height)?),
        }
    }

    /// At most `count` rows of a range, the newest first.
    pub fn last_rows(&self, range: &HistoryRange, count: usize) -> Result<Vec<HistoryRow>, HistoryIndexError> {
        match self {
            HistoryIndex::Files(runs) => Ok(runs.last_rows(&range.from, &range.to, count)?),
            #[cfg(feature = "postgres")]
            HistoryIndex::Postgres(history) => Ok(history.last_rows(range, count)?),
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres(config: &HistoryConfig, address: &str, tag: [u8; 32]) -> Result<HistoryIndex, HistoryIndexError> {
    let read = |path| {
        let text = doors::roles::read_secret(path);
        text.map_err(|error| HistoryIndexError::Settings(format!("`postgres_password_file`: {error}")))
    };
    let password = config.postgres_password_file.as_deref().map(read).transpose()?;
    let settings = RelationalSettings {
        address,
        password: password.as_deref().map(|text| text.lines().next().unwrap_or("")),
        issuers: config.postgres_ca.as_deref(),
        schema: &config.postgres_schema,
    };
    Ok(HistoryIndex::Postgres(Box::new(RelationalHistory::new(settings, tag)?)))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_config: &HistoryConfig, _address: &str, _tag: [u8; 32]) -> Result<HistoryIndex, HistoryIndexError> {
    let why = "`postgres` is set, and this binary was built without the feature `postgres`: `make build` has it";
    Err(HistoryIndexError::Settings(why.into()))
}
