//! The registry of measurements: one row each, as every exhibit of a paper has one. What a measurement can be asked is
//! the struct of its options, beside its code: its fields are the arguments of its command.

use std::error::Error;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use clap::{ArgMatches, Command};
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

/// A row of the registry: a name, options and what runs.
pub struct BenchRow {
    /// Its name on the command line.
    pub name: &'static str,
    options: fn(Command) -> Command,
    run: fn(&ArgMatches, &mut BenchSteps) -> BenchResult,
}

const fn row<Options: Measurement>(name: &'static str) -> BenchRow {
    let run = |given: &ArgMatches, say: &mut BenchSteps| Options::from_arg_matches(given)?.measured(say);
    BenchRow { name, options: Options::augment_args, run }
}

/// Every measurement.
pub static BENCHES: [BenchRow; 19] = [
    row::<crate::clearing::ClearingOptions>("clearing"),
    row::<crate::exchange::ExchangeArgs>("exchange"),
    row::<crate::hostile::HostileOptions>("hostile"),
    row::<crate::recovery::RecoveryArgs>("recovery"),
    row::<crate::floods::FloodsOptions>("floods"),
    row::<crate::payments::PaymentsOptions>("payments"),
    row::<crate::evm_rpc::EvmRpcOptions>("evm-rpc"),
    row::<crate::doors::DoorsOptions>("doors"),
    row::<crate::diablo::DiabloArgs>("diablo"),
    row::<crate::payments_lane::PaymentsLaneArgs>("payments-lane"),
    row::<crate::matching::MatchingArgs>("matching"),
    row::<crate::settle::SettleOptions>("settle"),
    row::<crate::venue::VenueArgs>("venue"),
    row::<crate::filter::FilterOptions>("filter"),
    row::<crate::consensus::ConsensusArgs>("consensus"),
    row::<crate::transaction_management::TransactionManagementOptions>("transaction-management"),
    row::<crate::stm::StmOptions>("stm"),
    row::<crate::evm::EvmArgs>("evm"),
    row::<crate::transport::TransportOptions>("transport"),
];

impl BenchRow {
    /// Its command, with its options.
    pub fn command(&self) -> Command {
        (self.options)(Command::new(self.name))
    }

    /// Measures with the options that were given.
    ///
    /// # Errors
    /// What a disk, a socket or an option lacks.
    pub fn measured(&self, given: &ArgMatches, say: &mut BenchSteps) -> BenchResult {
        (self.run)(given, say)
    }
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
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_measurement_says_what_it_is_and_shows_how_to_ask() {
        let names: BTreeSet<&str> = BENCHES.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), BENCHES.len());
        for row in &BENCHES {
            let command = row.command();
            command.clone().debug_assert();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() > 20 && !about.contains('`') && !about.contains('['), "{}: {about}", row.name);
            assert!(examples.contains(&format!("walras-lab bench {}", row.name)), "{}: {examples}", row.name);
        }
    }

    #[test]
    fn numbers_of_threads_ascend() {
        assert!(ascending(&[1, 2, 8]).is_ok());
        assert!([[2, 1], [2, 2]].iter().all(|threads| ascending(threads).is_err()));
    }
}
