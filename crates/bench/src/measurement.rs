//! What a measurement is: options, which are the arguments of its command, and what it shows. Each stands beside its
//! code; the rows are in [`crate::registry`].

use std::error::Error;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use serde_json::Value;

use crate::paper::exhibit::ExhibitError;

/// What a measurement gives.
pub enum BenchShown {
    /// Figures, one a line.
    Figures(Value),
    /// A report with rows of like columns.
    Rows(Value),
    /// Files for another program, instead of figures.
    Files(Vec<PathBuf>),
}

/// What became of a measurement.
pub type BenchResult = Result<BenchShown, ExhibitError>;

/// Called with each step.
pub type BenchSteps<'a> = dyn FnMut(&str) + Send + 'a;

/// A measurement: its fields are its options.
pub trait Measurement: clap::Args {
    /// Measures.
    ///
    /// # Errors
    /// What a disk, a socket or an option lacks.
    fn measured(self, say: &mut BenchSteps) -> BenchResult;
}

/// Parses a number of things.
pub fn count(range: impl RangeBounds<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// Numbers of validators.
pub fn validators() -> RangedU64ValueParser<usize> {
    count(1..=64)
}

/// Numbers of threads.
pub fn threads() -> RangedU64ValueParser<usize> {
    count(1..=1_024)
}

/// Checks numbers of threads: measurements use the last as the largest.
///
/// # Errors
/// If they do not ascend.
pub fn ascending(threads: &[usize]) -> Result<(), ExhibitError> {
    let ascend = threads.is_sorted_by(|a, b| a < b);
    if ascend { Ok(()) } else { Err("--threads: write ascending numbers, as 1,2,8".into()) }
}

/// How validators agree on blocks.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum BenchEngine {
    /// Superblocks of all validators' sub-blocks.
    Dbft,
    /// Blocks of one proposer each.
    Tendermint,
}

impl BenchEngine {
    /// The rules that all validators follow.
    pub fn rules(self) -> consensus::Rules {
        match self {
            BenchEngine::Dbft => consensus::Rules::default(),
            BenchEngine::Tendermint => consensus::Rules::tendermint(),
        }
    }
}

/// Where a measurement keeps its files.
#[derive(Clone, Debug, clap::Args)]
pub struct BenchFolder {
    /// Directory for logs; a temporary one by default.
    #[arg(long)]
    directory: Option<PathBuf>,
}

impl BenchFolder {
    /// Measures with the folder, which is removed afterwards if it is a temporary one.
    ///
    /// # Errors
    /// If no folder can be made, or as the measurement says.
    pub fn with<E: Into<ExhibitError>>(&self, run: impl FnOnce(&Path) -> Result<Value, E>) -> BenchResult {
        let temporary = tempfile::tempdir()?;
        let folder = self.directory.as_deref().unwrap_or(temporary.path());
        run(folder).map(BenchShown::Figures).map_err(Into::into)
    }
}

/// The error of a file, with its name.
pub(crate) fn of_file(path: &Path) -> impl FnOnce(std::io::Error) -> Box<dyn Error + Send + Sync> {
    let name = path.display().to_string();
    move |error| format!("{name}: {error}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_ascend() {
        assert!(ascending(&[1, 2, 8]).is_ok());
        assert!([[2, 1], [2, 2]].iter().all(|threads| ascending(threads).is_err()));
    }
}
