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
    use clap::error::ErrorKind;

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

    /// The documents that name measurements and simulations.
    const DOCUMENTS: [(&str, &str); 8] = [
        ("README.md", include_str!("../../../README.md")),
        ("ARCHITECTURE.md", include_str!("../../../ARCHITECTURE.md")),
        ("docs/benchmarks.md", include_str!("../../../docs/benchmarks.md")),
        ("docs/fairnet.md", include_str!("../../../docs/fairnet.md")),
        ("docs/guide.md", include_str!("../../../docs/guide.md")),
        ("docs/operators.md", include_str!("../../../docs/operators.md")),
        ("docs/venues.md", include_str!("../../../docs/venues.md")),
        ("peers/README.md", include_str!("../../../peers/README.md")),
    ];

    #[test]
    fn every_measurement_and_option_that_a_text_names_is_there() {
        let mut checked = 0;
        for (name, document) in DOCUMENTS {
            for span in document.split('`').skip(1).step_by(2).filter(|span| span.starts_with("walras-lab ")) {
                let span = &span.replace("PAPER", "accept");
                let error = Cli::try_parse_from(span.split_whitespace()).err().map(|error| error.kind());
                // What a text leaves out, or writes in capitals, is no fault of it.
                let is_wrong = matches!(error, Some(ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument));
                assert!(!is_wrong, "{name}: `{span}`: {error:?}");
                checked += 1;
            }
        }
        assert!(checked > 50, "{checked}");
    }
}
