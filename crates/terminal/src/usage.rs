//! Errors of the command line in words: those of the standard library's parsers name no remedy.

use std::error::Error;
use std::io::IsTerminal;
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};

/// Prints an error of the command line, or the help that was asked for, and returns the exit code: 2 or 0.
pub(crate) fn told(error: &clap::Error) -> ExitCode {
    let text = |is_coloured| if is_coloured { error.render().ansi().to_string() } else { error.render().to_string() };
    match sentence(error) {
        Some(sentence) => eprintln!("error: {sentence}\n\nFor more information, try '--help'."),
        None if error.use_stderr() => eprintln!("{}", text(is_coloured(&std::io::stderr())).trim_end()),
        None => println!("{}", text(is_coloured(&std::io::stdout())).trim_end()),
    }
    if error.use_stderr() { 2.into() } else { ExitCode::SUCCESS }
}

/// Whether words on this stream may have colours.
pub fn is_coloured(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The sentence for a value that a parser of the standard library refused.
fn sentence(error: &clap::Error) -> Option<String> {
    let cause = error.source().filter(|_| error.kind() == ErrorKind::ValueValidation)?;
    let wanted = wanted(cause)?;
    let context = |kind| error.get(kind).map(ToString::to_string);
    let (argument, value) = (context(ContextKind::InvalidArg)?, context(ContextKind::InvalidValue)?);
    Some(format!("{argument}: {value:?} is not {wanted}"))
}

fn wanted(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(integer) = cause.downcast_ref::<ParseIntError>() {
        return Some(match integer.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "in the range of this number: give a smaller one",
            _ => "a whole number such as 5, without a sign",
        });
    }
    if cause.is::<ParseFloatError>() {
        return Some("a number such as 0.5");
    }
    cause.is::<AddrParseError>().then_some("an IP address with a port, such as 127.0.0.1:8080")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Asked {
        #[arg(long)]
        offer: u64,
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: std::net::SocketAddr,
    }

    #[test]
    fn a_parsers_error_becomes_a_sentence_with_a_remedy() {
        let told = |words: &str| {
            let words = ["command"].into_iter().chain(words.split(' '));
            Asked::try_parse_from(words).err().and_then(|error| sentence(&error)).unwrap_or_default()
        };
        assert_eq!(told("--offer seven"), "--offer <OFFER>: \"seven\" is not a whole number such as 5, without a sign");
        assert!(told("--offer 99999999999999999999").contains("give a smaller one"));
        assert!(told("--offer 7 --listen here").ends_with("such as 127.0.0.1:8080"));
        assert_eq!(told("--listen 127.0.0.1:1"), "", "what is missing is told by the parser of the line");
    }
}
