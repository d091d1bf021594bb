//! What a binary that was built for a demo says of the commands of researchers, which cost minutes of building.

use std::ffi::OsString;
use std::process::ExitCode;

/// The commands that this build lacks.
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  make build    # builds them into the same binary")]
pub enum Absent {
    /// Run historical market data through the whole ledger (not in this build).
    Replay(Arguments),
    /// Clear a batch of offers from a file (not in this build).
    Clear(Arguments),
    /// Check a clearing independently (not in this build).
    Verify(Arguments),
    /// Replay a file of orders through the matching engine (not in this build).
    Match(Arguments),
    /// Run measurements, and show the tables and figures of five papers (not in this build).
    Bench(Arguments),
    /// Run the whole system under seeded faults (not in this build).
    Sim(Arguments),
    /// Run Ethereum's published state tests (not in this build).
    Statetest(Arguments),
    /// Write the history of a home as Parquet files (not in this build).
    Export(Arguments),
}

/// Whatever is given.
#[derive(clap::Args)]
pub struct Arguments {
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
