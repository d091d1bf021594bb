//! What `walras --help` lists: every command under the heading of those who use it, but for `completions`, which
//! packages run. And where commands of earlier releases went.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use crate::Cli;

/// Commands by what one wants to do.
const HEADINGS: [(&str, &[&str]); 6] = [
    ("Try it", &["demo"]),
    ("Trade and pay", &["wallet", "pay", "light"]),
    ("Run a node", &["init", "node", "status", "doctor", "config", "signer", "shard", "upgrade"]),
    ("Keep a home", &["backup", "restore", "prune", "inspect", "snapshot", "restart", "export"]),
    ("Own a venue, or trade at one", &["venue", "bridge", "edge"]),
    ("Without a node", &["clear", "verify", "match"]),
];

/// Commands of the last release that have another name now; the next release forgets them.
const MOVED: [(&str, &str); 10] = [
    ("bench", "walras-lab bench"),
    ("sim", "walras-lab sim"),
    ("replay", "walras-lab replay"),
    ("statetest", "walras-lab statetest"),
    ("fairnet", "walras edge"),
    ("proxy", "walras edge proxy"),
    ("gateway", "walras edge gateway"),
    ("watch", "walras pay watch"),
    ("audit", "walras pay audit"),
    ("peers", "walras status --peers"),
];

/// What the words of a command line ask for.
pub fn asked(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    if let Some(now) = moved(&words) {
        return Err(command.error(ErrorKind::InvalidSubcommand, format!("this is `{now}` now")));
    }
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The new name of an old command. No option before a command takes a value.
fn moved(words: &[OsString]) -> Option<&'static str> {
    let name = words.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-"))?;
    MOVED.iter().find(|(old, _)| name == old).map(|(_, now)| *now)
}

/// A negative number is the value of its option, which says why it cannot be one, and no unknown option.
fn taking_negatives(command: clap::Command) -> clap::Command {
    let taking = |arg: clap::Arg| {
        let takes_value = arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_value)
    };
    command.mut_args(taking).mut_subcommands(taking_negatives)
}

/// The command line with its help under headings: clap's own list has none.
fn command() -> clap::Command {
    let command = taking_negatives(Cli::command());
    let list = listed(&command);
    let styles = command.get_styles();
    let (header, options) = (styles.get_header(), format!("{0}Options:{0:#}", styles.get_header()));
    let commands = format!("{header}Commands:{header:#} (`walras COMMAND --help` says more)");
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}\n{list}\n{options}\n{{options}}");
    command.help_template(template)
}

/// Each heading with its commands, and what each does.
fn listed(command: &clap::Command) -> String {
    let literal = command.get_styles().get_literal();
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(clap::Command::get_about);
        format!("    {literal}{name:<12}{literal:#} {}\n", about.map(ToString::to_string).unwrap_or_default())
    };
    let part =
        |(heading, names): &(&str, &[&str])| format!("  {heading}:\n{}", names.iter().map(line).collect::<String>());
    HEADINGS.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// The most commands that a person takes in at once.
    const COMMANDS: usize = 25;

    #[test]
    fn the_help_lists_every_command_once_under_a_heading() {
        let command = Cli::command();
        let listed: Vec<&str> = HEADINGS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let there: BTreeSet<&str> =
            command.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), there);
        assert_eq!(listed.len(), there.len(), "one is listed twice: {listed:?}");
        assert!(listed.len() <= COMMANDS, "{} commands", listed.len());
        let help = asked(words("walras --help")).err().expect("the help").to_string();
        for name in there {
            assert_eq!(help.lines().filter(|line| line.starts_with(&format!("    {name} "))).count(), 1, "{help}");
        }
        assert!(help.contains("\n  Run a node:\n") && help.contains("--json"), "{help}");
    }

    #[test]
    fn an_old_command_says_where_it_went_and_exits_with_2() {
        let command = Cli::command();
        for (old, now) in MOVED {
            let error = asked(words(&format!("walras --json {old} --some thing"))).err().expect("it moved");
            assert!(error.to_string().contains(&format!("this is `{now}` now")), "{error}");
            assert_eq!(error.exit_code(), 2);
            assert!(command.find_subcommand(old).is_none(), "{old} is a command");
        }
        assert!(asked(words("walras wallet show --key sim")).is_ok(), "only a command's own name");
    }

    #[test]
    fn where_old_commands_went_is_there() {
        for now in MOVED.iter().map(|(_, now)| *now).filter(|now| !now.starts_with("walras-lab")) {
            let help = asked(words(&format!("{now} --help"))).err().expect("the help");
            assert_eq!(help.kind(), ErrorKind::DisplayHelp, "{now}: {help}");
        }
    }
}
