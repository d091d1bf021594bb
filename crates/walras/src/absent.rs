//! What a binary that was built for a demo says of the commands of researchers, which cost minutes of building.

use std::ffi::OsString;
use std::process::ExitCode;

/// The commands that this build lacks.
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  make build    # builds them into the same binary")]
pub enum Absent {
    /// Run historical market data through the whole ledger (not in this build).
    Replay(Ignored),
    /// Clear a batch of offers from a file (not in this build).
    Clear(Ignored),
    /// Check a clearing independently (not in this build).
    Verify(Ignored),
    /// Replay a file of orders through the matching engine (not in this build).
    Match(Ignored),
    /// Run measurements, and show the tables and figures of five papers (not in this build).
    Bench(Ignored),
    /// Run the whole system under seeded faults (not in this build).
    Sim(Ignored),
    /// Run Ethereum's published state tests (not in this build).
    Statetest(Ignored),
    /// Write the history of a home as Parquet files (not in this build).
    Export(Ignored),
}

/// Whatever is given.
#[derive(clap::Args)]
pub struct Ignored {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _given: Vec<OsString>,
}

impl Absent {
    pub fn run(self, _json: bool) -> anyhow::Result<ExitCode> {
        anyhow::bail!("this binary was built for a demo, without the commands of researchers: `make build` adds them")
    }

    pub fn is_quiet(&self) -> bool {
        false
    }
}
