//! What a binary that was built for the demo says of the commands that it lacks: they cost minutes of building.

use std::ffi::OsString;
use std::process::ExitCode;

/// Commands of researchers, which `make build` adds.
#[derive(clap::Subcommand)]
pub enum Research {
    /// Run historical market data through the whole ledger (not in this build: `make build`).
    #[command(after_help = EXAMPLE)]
    Replay(Anything),
    /// Run measurements, and show the tables and figures of five papers (not in this build: `make build`).
    #[command(after_help = EXAMPLE)]
    Bench(Anything),
    /// Run the whole system under seeded faults (not in this build: `make build`).
    #[command(after_help = EXAMPLE)]
    Sim(Anything),
}

const EXAMPLE: &str = "Example:\n  make build    # builds them into the same binary";

/// Arguments that nobody reads.
#[derive(clap::Args)]
pub struct Anything {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

impl Research {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let (name, Anything { arguments }) = match self {
            Research::Replay(anything) => ("replay", anything),
            Research::Bench(anything) => ("bench", anything),
            Research::Sim(anything) => ("sim", anything),
        };
        let given: Vec<_> = arguments.iter().map(|one| one.to_string_lossy()).collect();
        anyhow::bail!(
            "walras {name} {}: this binary was built for the demo, without what researchers run; `make build` adds it",
            given.join(" ")
        )
    }
}
