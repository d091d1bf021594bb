//! Commands of researchers: batches, measurements, simulations and tables, which no exchange needs to run. A demo is
//! built without them (`absent.rs`).

mod batch;
mod bench_command;
mod bench_papers;
mod clear;
mod explained;
mod export;
mod figures;
mod match_file;
mod parquet_file;
mod replay;
mod rows;
mod sim;
mod statetest;
mod verify;

use std::process::ExitCode;

/// The commands that a build may lack.
#[derive(clap::Subcommand)]
pub enum Research {
    /// Run historical market data through the whole ledger, a batch a day.
    Replay(replay::ReplayCommand),
    /// Clear a batch of offers from a file.
    Clear(clear::ClearArgs),
    /// Check a clearing independently.
    Verify(verify::VerifyArgs),
    /// Replay a file of orders through the matching engine of continuous markets.
    Match(match_file::MatchArgs),
    /// Run measurements, and show the tables and figures of five papers.
    Bench(bench_command::BenchArgs),
    /// Run the whole system under seeded faults.
    Sim(sim::Sim),
    /// Run Ethereum's published state tests through the contract phase.
    Statetest(statetest::StateTest),
    /// Write the history of a home as Parquet files.
    Export(export::Export),
}

impl Research {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            Research::Replay(replay) => replay.run(json),
            Research::Clear(clear) => clear::run(&clear, json),
            Research::Verify(verify) => verify::run(&verify, json),
            Research::Match(matched) => matched.run(json),
            Research::Bench(bench) => bench.run(json),
            Research::Sim(sim) => sim.run(json),
            Research::Statetest(tests) => tests.run(json),
            Research::Export(export) => export.run(json),
        }
    }

    /// Simulated validators are faulty on purpose and log it.
    pub fn is_quiet(&self) -> bool {
        matches!(self, Research::Sim(_))
    }
}
