//! `walras`: the command line.

#[macro_use]
extern crate terminal;

mod bridge;
mod decimal;
mod demo;
mod demo_developer;
mod demo_network;
mod demo_ouch;
mod demo_people;
mod demo_upgrade;
mod demo_venue;
mod developers;
use client::durable;
mod edge;
mod files;
mod help;
mod init;
mod inspect;
mod keystore;
mod lane;
mod lane_terms;
mod light;
mod node_command;
mod operator;
mod pay;
mod proposals;
mod remedy;
mod restart;
mod restart_lane;
mod shard_command;
mod signer_command;
mod snapshot;
mod traders;
mod upgrade;
mod validator_keys;
mod venue;
mod wallet;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use terminal::GlobalOptions;

/// One exchange and settlement ledger that several institutions run together: every asset trades with every other at
/// one price per batch.
#[derive(Parser)]
#[command(name = "walras", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: GlobalOptions,
}

#[derive(Subcommand)]
enum Command {
    /// Start an exchange with simulated traders and the page, without any setup.
    Demo(demo::Demo),
    /// Write a new node's home: configuration, genesis and issuer key.
    Init(init::Init),
    /// Run the node of a home.
    Node(node_command::NodeCommand),
    /// Show how a node stands, and the validators that it sees.
    Status(operator::StatusCommand),
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
    /// Run one shard of a member of the payment lane in a process other than its node.
    Shard(shard_command::ShardCommand),
    /// Hold keys, send any operation, look at balances.
    #[command(subcommand)]
    Wallet(wallet::WalletCommand),
    /// Pay in the payment lane: confirmed by a quorum in one round trip.
    #[command(subcommand, after_help = pay::PROMISES)]
    Pay(pay::Pay),
    /// Verify an untrusted node against what the validators signed.
    #[command(subcommand)]
    Light(light::Light),
    /// Own venues of continuous markets, look at them, and prove what they did.
    #[command(subcommand)]
    Venue(venue::VenueCommand),
    /// Sign the orders of a program that speaks plain OUCH, and pass them on to a venue.
    Bridge(bridge::BridgeCommand),
    /// Plan a venue's market edge, and run its proxies and gateways.
    #[command(subcommand)]
    Edge(edge::EdgeMember),
    /// Clear a batch of offers from a file.
    Clear(files::ClearArgs),
    /// Check a clearing independently.
    Verify(files::VerifyArgs),
    /// Replay a file of orders through the matching engine of continuous markets.
    Match(files::MatchArgs),
    /// Write the history of a home as Parquet files.
    Export(files::Export),
    /// Inspect a node's store and verify it.
    Inspect(inspect::Inspect),
    /// Take, check and restore snapshots of the state.
    #[command(subcommand)]
    Snapshot(snapshot::SnapshotCommand),
    /// Restart a network from a snapshot, under a new identity.
    Restart(restart::RestartCommand),
    /// See and approve the rules that the chain will follow.
    #[command(subcommand)]
    Upgrade(upgrade::UpgradeCommand),
    /// Print a shell's completions.
    #[command(hide = true, after_help = "Example:\n  walras completions bash > /etc/bash_completion.d/walras")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    terminal::run(help::asked(std::env::args_os().collect()), run, remedy::remedy)
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    cli.global.start_log(match &cli.command {
        Command::Node(_) | Command::Signer(_) | Command::Shard(_) => "info,arc_malachitebft=error",
        _ => terminal::WARNINGS,
    });
    if kernel::PLANTABLE {
        tracing::info!("this binary was built together with the laboratory: build it alone for an institution");
    }
    let json = cli.global.json;
    match cli.command {
        Command::Demo(demo) => demo.run(json),
        Command::Init(init) => init.run(json),
        Command::Node(node) => node.run(),
        Command::Status(status) => status.run(json),
        Command::Doctor(doctor) => doctor.run(json),
        Command::Backup(backup) => backup.run(json),
        Command::Restore(restore) => restore.run(json),
        Command::Prune(prune) => prune.run(json),
        Command::Config(config) => config.run(json),
        Command::Signer(signer) => signer.run(),
        Command::Shard(shard) => shard.run(json),
        Command::Wallet(wallet) => wallet.run(json),
        Command::Pay(pay) => pay.run(json),
        Command::Venue(venue) => venue.run(json),
        Command::Bridge(bridge) => bridge.run(),
        Command::Light(light) => light.run(json),
        Command::Edge(edge) => edge.run(json),
        Command::Clear(clear) => clear.run(json),
        Command::Verify(verify) => verify.run(json),
        Command::Match(matched) => matched.run(json),
        Command::Export(export) => export.run(json),
        Command::Inspect(inspect) => inspect.run(json),
        Command::Snapshot(snapshot) => snapshot.run(json),
        Command::Restart(restart) => restart.run(json),
        Command::Upgrade(upgrade) => upgrade.run(json),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "walras", &mut terminal::output::Out);
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

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
    fn every_command_of_the_documents_is_one() {
        let guide = commands(include_str!("../../../docs/guide.md"));
        let venues = commands(include_str!("../../../docs/venues.md"));
        assert!(guide.len() > 40 && venues.len() > 12, "{} and {}", guide.len(), venues.len());
        for words in guide.into_iter().chain(venues) {
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{words:?}: {error}");
            }
        }
    }

    /// Spans of code that begin with the program's name, each of the words that it says one of.
    fn spans(document: &str) -> Vec<Vec<String>> {
        // What is signed begins with the name, too, and ends with a version. What a shell works out is its own.
        let is_command = |span: &&str| span.starts_with("walras ") && !span.ends_with(" v1") && !span.contains("$(");
        let spans = document.split('`').skip(1).step_by(2).filter(is_command);
        spans.flat_map(|span| said(&words(&span.split_whitespace().collect::<Vec<_>>().join(" ")))).collect()
    }

    /// Each of the commands that a line says: `a|b` and `a | b` stand for one with either.
    fn said(words: &[String]) -> Vec<Vec<String>> {
        let joined = words.join(" ").replace(" | ", "|");
        let of = |mut lines: Vec<Vec<String>>, word: &str| {
            lines = word
                .split('|')
                .flat_map(|one| lines.iter().map(|line| [&line[..], &[one.to_string()]].concat()).collect::<Vec<_>>())
                .collect();
            lines
        };
        joined.split(' ').fold(vec![Vec::new()], of)
    }

    #[test]
    fn every_command_and_option_that_a_text_names_is_there() {
        let mut checked = 0;
        for (name, document) in DOCUMENTS {
            for words in spans(document) {
                let error = Cli::try_parse_from(&words).err().map(|error| error.kind());
                // What a text leaves out, or writes in capitals, is no fault of it.
                let is_wrong = matches!(error, Some(ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument));
                let is_named = words.get(1).is_some_and(|word| word.chars().all(char::is_uppercase));
                assert!(!is_wrong || is_named, "{name}: `{}`: {error:?}", words.join(" "));
                checked += 1;
            }
        }
        assert!(checked > 150, "{checked}");
    }

    /// The documents that say what there is.
    const DOCUMENTS: [(&str, &str); 10] = [
        ("README.md", include_str!("../../../README.md")),
        ("ARCHITECTURE.md", include_str!("../../../ARCHITECTURE.md")),
        ("SECURITY.md", include_str!("../../../SECURITY.md")),
        ("docs/api.md", include_str!("../../../docs/api.md")),
        ("docs/fairnet.md", include_str!("../../../docs/fairnet.md")),
        ("docs/guide.md", include_str!("../../../docs/guide.md")),
        ("docs/operators.md", include_str!("../../../docs/operators.md")),
        ("docs/payments.md", include_str!("../../../docs/payments.md")),
        ("docs/venue-api.md", include_str!("../../../docs/venue-api.md")),
        ("docs/venues.md", include_str!("../../../docs/venues.md")),
    ];

    /// What the help lists: each command by its name, and pairs of long words beside each other in what it says of
    /// them.
    fn listed() -> Vec<String> {
        let command = Cli::command();
        let pairs = |about: String| {
            let words: Vec<String> = about.split_whitespace().map(plain).collect();
            let joins = ["from", "into", "than", "that", "them", "they", "what", "with"];
            let long = |word: &String| word.len() >= 4 && !joins.contains(&word.as_str());
            words.windows(2).filter(|two| two.iter().all(long)).map(|two| two.join(" ")).collect::<Vec<_>>()
        };
        let of = |one: &clap::Command| {
            let mut named = pairs(one.get_about().map(ToString::to_string).unwrap_or_default());
            named.push(format!("walras {}", one.get_name()));
            named
        };
        command.get_subcommands().flat_map(of).collect()
    }

    fn plain(word: &str) -> String {
        word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase()
    }

    /// Sentences that say that something which the help lists is not there.
    fn denials(document: &str, listed: &[String]) -> Vec<String> {
        let text = document.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentences = text.split(['.', '|', ';']);
        let denies = |sentence: &&str| {
            let words: Vec<String> = sentence.split_whitespace().map(plain).collect();
            let not = words.iter().position(|word| ["not", "no", "never", "nothing"].contains(&word.as_str()));
            let later = ["yet", "built", "implemented", "planned"];
            let denied = not.is_some_and(|at| words[at..].iter().any(|word| later.contains(&word.as_str())));
            let said = format!(" {} ", words.join(" "));
            denied && listed.iter().any(|named| said.contains(&format!(" {named} ")))
        };
        sentences.filter(denies).map(String::from).collect()
    }

    #[test]
    fn no_document_denies_what_the_help_lists() {
        let listed = listed();
        for (name, text) in DOCUMENTS {
            assert_eq!(
                denials(text, &listed),
                [""; 0],
                "{name} says that something is not there, and the help lists it"
            );
        }
        let false_claims = "A batch comes every half second, and continuous markets are not built yet. It is new; the \
                            venue's\ncontinuous markets are not behind it yet. `walras edge` is not implemented.";
        assert_eq!(denials(false_claims, &listed).len(), 3, "what is looked for is found where it is");
    }
}
