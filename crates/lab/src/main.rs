//! `walras-lab`: the laboratory beside the product. Measurements, the tables and figures of five papers, simulations
//! under seeded faults, replays of market data, and Ethereum's state tests. No exchange needs it to run.

#[macro_use]
extern crate terminal;

mod benches;
mod papers;
mod replay;
mod sim;
mod statetest;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use terminal::GlobalOptions;

/// The laboratory of Walras: measures it, simulates it under faults, and shows the tables and figures of five papers.
#[derive(Parser)]
#[command(name = "walras-lab", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: GlobalOptions,
}

#[derive(Subcommand)]
enum Command {
    /// Run measurements, and show the tables and figures of five papers.
    Bench(benches::BenchArgs),
    /// Run the whole system under seeded faults.
    Sim(sim::Sim),
    /// Run historical market data through the whole ledger, a batch a day.
    Replay(replay::ReplayCommand),
    /// Run Ethereum's published state tests through the contract phase.
    Statetest(statetest::StateTest),
}

fn main() -> ExitCode {
    terminal::run(Cli::try_parse(), run, |_| None)
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    cli.global.start_log(match &cli.command {
        // Simulated validators are faulty on purpose and log it.
        Command::Sim(_) => "off",
        _ => terminal::WARNINGS,
    });
    let json = cli.global.json;
    match cli.command {
        Command::Bench(bench) => bench.run(json),
        Command::Sim(sim) => sim.run(json),
        Command::Replay(replay) => replay.run(json),
        Command::Statetest(tests) => tests.run(json),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_laboratorys_command_line_is_sound_and_every_command_has_an_example() {
        let command = Cli::command();
        command.clone().debug_assert();
        fn check(command: &clap::Command) {
            if command.has_subcommands() {
                command.get_subcommands().for_each(check);
            } else if command.get_name() != "help" {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example"), "{} has no example", command.get_name());
            }
        }
        check(&command);
    }

    #[test]
    fn every_laboratory_command_of_the_guide_is_one() {
        let lines = include_str!("../../../docs/guide.md").lines().filter_map(|line| line.strip_prefix("    "));
        let asked =
            lines.filter(|line| line.starts_with("walras-lab ")).map(|line| line.split(" #").next().unwrap_or(line));
        let found: Vec<_> = asked.map(|line| Cli::try_parse_from(line.split_whitespace()).map(drop)).collect();
        assert!(found.len() > 5 && found.iter().all(Result::is_ok), "{found:?}");
    }
}
