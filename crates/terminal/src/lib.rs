//! What the two command lines share: results on standard output, remarks and the log on standard error, tables of
//! reports, and errors of usage in words.
//!
//! **Invariant**: a reader that is slow or gone, and a full disk, neither delay a command's work nor make it panic.
//! Exit codes are 0 (done), 1 (a negative answer, which has been printed, or an error) and 2 (wrong usage).

// Before the modules, which print by them, too.
/// Prints a line of the result. The standard macro panics where its text cannot be written; this does not.
#[macro_export]
macro_rules! println {
    () => { $crate::output::line(format_args!("")) };
    ($($text:tt)*) => { $crate::output::line(format_args!($($text)*)) };
}

/// Prints a part of the result.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::output::text(format_args!($($text)*)) };
}

/// Prints a remark on standard error.
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::output::note(format_args!($($text)*)) };
}

mod figures;
pub mod output;
mod tables;
mod usage;

use std::process::ExitCode;

pub use figures::print_figures;
pub use tables::text;
pub use usage::is_coloured;

/// What is logged unless more is asked for: the round logic of the engine tendermint logs every vote.
pub const WARNINGS: &str = "warn,arc_malachitebft=error";

/// The options that every command takes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct GlobalOptions {
    /// Print results as JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// Write the log as JSON lines.
    #[arg(long, global = true)]
    log_json: bool,
    /// More log output; twice for everything. RUST_LOG overrides this.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl GlobalOptions {
    /// Starts the log, with this filter unless the command line or RUST_LOG asks for another.
    pub fn start_log(&self, filter: &str) {
        let asked = match self.verbose {
            0 => filter,
            1 => "debug",
            _ => "trace",
        };
        let filter = tracing_subscriber::EnvFilter::try_from_default_env()
            .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(asked));
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(|| output::Log)
            .with_target(false)
            .with_ansi(is_coloured(&std::io::stderr()));
        if self.log_json {
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
}

/// An error with its causes. One that its error has told already is not told again.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if !words.last().is_some_and(|last| last.ends_with(&cause)) {
            words.push(cause);
        }
    }
    words.join(": ")
}

/// Runs what was asked for, prints its error with the remedy that is known for it, and returns the exit code.
pub fn run<Asked>(
    asked: Result<Asked, clap::Error>,
    run: impl FnOnce(Asked) -> anyhow::Result<ExitCode>,
    remedy: impl FnOnce(&anyhow::Error) -> Option<&'static str>,
) -> ExitCode {
    let code = match asked {
        Err(error) => usage::told(&error),
        Ok(asked) => run(asked).unwrap_or_else(|error| {
            eprintln!("error: {}", in_words(&error));
            remedy(&error).iter().for_each(|remedy| eprintln!("\n{remedy}"));
            ExitCode::FAILURE
        }),
    };
    output::finish(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let missing = std::io::Error::from_raw_os_error(2);
        let said = format!("alice.json: {missing}");
        let error = anyhow::Error::new(missing).context(said.clone()).context("cannot open the key");
        assert_eq!(in_words(&error), format!("cannot open the key: {said}"));
    }
}
