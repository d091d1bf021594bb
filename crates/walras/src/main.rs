//! `walras`: the command line.

/// The standard macros panic where their text cannot be written; these do not (see [`output`]).
macro_rules! println {
    () => { crate::output::line(format_args!("")) };
    ($($text:tt)*) => { crate::output::line(format_args!($($text)*)) };
}
macro_rules! print {
    ($($text:tt)*) => { crate::output::text(format_args!($($text)*)) };
}
macro_rules! eprintln {
    ($($text:tt)*) => { crate::output::note(format_args!($($text)*)) };
}

#[cfg(not(feature = "research"))]
mod absent;
mod bridge;
mod decimal;
mod demo;
mod demo_developer;
mod demo_network;
mod demo_ouch;
mod demo_people;
mod demo_venue;
mod developers;
use client::durable;
mod edge;
mod init;
mod inspect;
mod keystore;
mod lane;
mod light;
mod node_command;
mod operator;
mod output;
mod pay;
mod remedy;
#[cfg(feature = "research")]
mod research;
mod restart;
mod restart_lane;
mod signer_command;
mod snapshot;
mod tables;
mod traders;
mod usage;
mod validator_keys;
mod venue;
mod wallet;

use std::process::ExitCode;

#[cfg(not(feature = "research"))]
use absent::Absent as Research;
use clap::{CommandFactory, Parser, Subcommand};
#[cfg(feature = "research")]
use research::Research;

/// One exchange and settlement ledger that several institutions run together: every asset trades with every other at
/// one price per batch.
#[derive(Parser)]
#[command(name = "walras", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print results as JSON.
    #[arg(long, global = true)]
    json: bool,
    /// Write the log as JSON lines.
    #[arg(long, global = true)]
    log_json: bool,
    /// More log output; twice for everything. RUST_LOG overrides this.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Subcommand)]
enum Command {
    /// Start an exchange with simulated traders and the page, without any setup.
    Demo(demo::Demo),
    /// Write a new node's home: configuration, genesis and issuer key.
    Init(init::Init),
    /// Run the node of a home.
    Node(node_command::NodeCommand),
    /// Show how a node stands.
    Status(operator::StatusCommand),
    /// Show the validators that a validator sees.
    Peers(operator::Peers),
    /// Look for what is wrong with a home and its node.
    Doctor(operator::Doctor),
    /// Check and print the settings of a home.
    #[command(subcommand)]
    Config(operator::ConfigCommand),
    /// Write what must be kept of a home into a folder.
    Backup(operator::Backup),
    /// Make a home from a backup.
    Restore(operator::RestoreBackup),
    /// Forget old blocks of a stopped node.
    Prune(operator::Prune),
    /// Hold a validator's key in a process other than its node.
    Signer(signer_command::SignerCommand),
    /// Hold keys, send any operation, look at balances.
    #[command(subcommand)]
    Wallet(wallet::WalletCommand),
    /// Pay in the payment lane: confirmed by a quorum in one round trip.
    #[command(subcommand, after_help = pay::PROMISES)]
    Pay(pay::Pay),
    /// Settle receipts and return money of the lane to the ledger for wallets that are offline.
    Watch(pay::watch::Watch),
    /// Prove that no money of the payment lane is lost or created.
    Audit(pay::audit::LaneAudit),
    /// Verify an untrusted node against what the validators signed.
    #[command(subcommand)]
    Light(light::Light),
    /// Plan the tree of the market edge, and make its secret.
    #[command(subcommand)]
    Fairnet(edge::Fairnet),
    /// Own venues of continuous markets, look at them, and prove what they did.
    #[command(subcommand)]
    Venue(venue::VenueCommand),
    /// Sign the orders of a program that speaks plain OUCH, and pass them on to a venue.
    Bridge(bridge::BridgeCommand),
    /// Run a proxy of a venue's market edge.
    Proxy(edge::ProxyCommand),
    /// Run gateways of a venue's market edge.
    Gateway(edge::GatewayCommand),
    #[command(flatten)]
    Research(Research),
    /// Inspect a node's store and verify it.
    Inspect(inspect::Inspect),
    /// Take, check and restore snapshots of the state.
    #[command(subcommand)]
    Snapshot(snapshot::SnapshotCommand),
    /// Restart a network from a snapshot, under a new identity.
    Restart(restart::RestartCommand),
    /// Print a shell's completions.
    #[command(after_help = "Example:\n  walras completions bash > /etc/bash_completion.d/walras")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    // Usage errors exit with 2 by themselves.
    let code = match Cli::try_parse() {
        Err(error) => usage::told(&error),
        Ok(cli) => {
            start_log(&cli);
            // Exit code 1 is a negative answer, which has been printed.
            run(cli).unwrap_or_else(|error| {
                eprintln!("error: {error:#}");
                remedy::remedy(&error).iter().for_each(|remedy| eprintln!("\n{remedy}"));
                ExitCode::FAILURE
            })
        }
    };
    output::finish(code)
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let json = cli.json;
    match cli.command {
        Command::Demo(demo) => demo.run(json),
        Command::Init(init) => init.run(json),
        Command::Node(node) => node.run(),
        Command::Status(status) => status.run(json),
        Command::Peers(peers) => peers.run(json),
        Command::Doctor(doctor) => doctor.run(json),
        Command::Backup(backup) => backup.run(json),
        Command::Restore(restore) => restore.run(json),
        Command::Prune(prune) => prune.run(json),
        Command::Config(config) => config.run(json),
        Command::Signer(signer) => signer.run(),
        Command::Wallet(wallet) => wallet.run(json),
        Command::Pay(pay) => pay.run(json),
        Command::Watch(watch) => watch.run(json),
        Command::Audit(audit) => audit.run(json),
        Command::Fairnet(fairnet) => fairnet.run(json),
        Command::Venue(venue) => venue.run(json),
        Command::Bridge(bridge) => bridge.run(),
        Command::Proxy(proxy) => proxy.run(),
        Command::Gateway(gateway) => gateway.run(),
        Command::Light(light) => light.run(json),
        Command::Research(command) => command.run(json),
        Command::Inspect(inspect) => inspect.run(json),
        Command::Snapshot(snapshot) => snapshot.run(json),
        Command::Restart(restart) => restart.run(json),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "walras", &mut output::Out);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn start_log(cli: &Cli) {
    let default = match (cli.verbose, &cli.command) {
        // The round logic of the engine tendermint logs every vote.
        (0, Command::Node(_) | Command::Signer(_)) => "info,arc_malachitebft=error",
        // Simulated validators are faulty on purpose and log it.
        (0, Command::Research(command)) if command.is_quiet() => "off",
        (0, _) => "warn,arc_malachitebft=error",
        (1, _) => "debug",
        _ => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| output::Log)
        .with_target(false)
        .with_ansi(usage::is_coloured(&std::io::stderr()));
    if cli.log_json {
        log.json().init()
    } else {
        log.init()
    }
    // What was logged before a panic stands before its words.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        output::drain();
        told(panic);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_every_command_has_an_example() {
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

    /// Commands of a document: indented lines that begin with the name, without comments, split into words as a shell
    /// does.
    fn commands(document: &str) -> Vec<Vec<String>> {
        let lines = document.lines().filter_map(|line| line.strip_prefix("    "));
        let parts = lines.flat_map(|line| line.split("; ").map(|part| part.trim_start_matches("do ").to_string()));
        parts.filter(|part| part.starts_with("walras ")).map(|part| words(&part)).collect()
    }

    fn words(line: &str) -> Vec<String> {
        let address = format!("0x{}", "11".repeat(20));
        let (line, _) = line.split_once(" #").unwrap_or((line, ""));
        let line = line.split(" &").next().expect("there is a first part").trim();
        let (mut words, mut rest) = (Vec::new(), line);
        while !rest.trim_start().is_empty() {
            rest = rest.trim_start();
            // The output of another command is an address here, and so is a word that is cut short.
            if let Some(inner) = rest.strip_prefix("\"$(") {
                words.push(address.clone());
                rest = inner.split_once(")\"").expect("it is closed").1;
                continue;
            }
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            if word == ">" {
                break;
            }
            words.push(if word.ends_with('…') { format!("0x{}", "22".repeat(32)) } else { word.into() });
            rest = after;
        }
        words
    }

    #[test]
    fn every_command_of_the_readme_and_of_venues_is_one() {
        for (document, least) in
            [(include_str!("../../../README.md"), 15), (include_str!("../../../docs/venues.md"), 12)]
        {
            let found = commands(document);
            assert!(found.len() > least, "{}", found.len());
            for words in found {
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{words:?}: {error}");
                }
            }
        }
    }
}
