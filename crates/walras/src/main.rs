//! The command line.

mod clear;
mod offers;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A batch exchange and settlement ledger that several institutions run together.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Clear(clear::ClearArgs),
    Verify(verify::VerifyArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Clear(args) => clear::run(&args),
        Command::Verify(args) => verify::run(&args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
