//! `walras match`: the order flow of a file, through the matching engine.
//!
//! A feed tells what became of displayed orders, not what arrived. So each execution becomes an immediate-or-cancel
//! order of the other side, at the limit and of the size of that trade, and the engine decides whom it meets. Where
//! that is the order which the feed names, both keep the same priority; other executions are counted as out of
//! priority, and the named order is reduced as the feed says.

mod events;
mod replay;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use protocols::frames::first_frame;
use protocols::itch::ItchMessage;
use protocols::lobster::LobsterLine;
use serde_json::json;

use events::{FlowEvent, of_itch, of_lobster};
use replay::{FlowReplay, ReplayLimits};
use terminal::print_figures;

/// Bytes read at a time; a message is shorter.
const CHUNK: usize = 1 << 20;

/// Replays a day of orders through the matching engine: a NASDAQ TotalView-ITCH 5.0 file, or a message file of
/// LOBSTER. Says how many trades went to the order that the file names, and prints one digest of all that happened.
#[derive(Debug, Args)]
#[command(after_help = "Example: walras match --file 01302020.NASDAQ_ITCH50 --symbol AAPL --symbol MSFT")]
pub struct MatchArgs {
    /// The file, not compressed
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Its format; of a name that ends in .csv, LOBSTER
    #[arg(long, value_enum)]
    format: Option<FlowFormat>,
    /// Only this security; may be repeated. Needed for ITCH files with more than 64 securities
    #[arg(long = "symbol", value_name = "SYMBOL")]
    symbols: Vec<String>,
    /// Orders that may be open at once in each market
    #[arg(long, default_value_t = 1 << 17)]
    orders: u32,
}

/// Formats of order flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FlowFormat {
    Itch,
    Lobster,
}

impl MatchArgs {
    /// Runs `walras match`.
    ///
    /// # Errors
    /// If the file cannot be read; names the place.
    pub fn run(&self, json: bool) -> Result<ExitCode> {
        let limits = ReplayLimits { orders: self.orders, symbols: self.symbols.clone() };
        let mut replay = FlowReplay::new(limits)?;
        let format = self.format.unwrap_or_else(|| format_of(&self.file));
        let file = File::open(&self.file).with_context(|| self.file.display().to_string())?;
        let begun = Instant::now();
        let messages = match format {
            FlowFormat::Itch => read_itch(file, |event| replay.apply(&event)),
            FlowFormat::Lobster => read_lobster(file, |event| replay.apply(&event)),
        };
        let messages = messages.with_context(|| self.file.display().to_string())?;
        let seconds = begun.elapsed().as_secs_f64();
        let mut report = replay.report();
        report["messages"] = json!(messages);
        report["seconds"] = json!(seconds);
        print_figures(&report, json);
        Ok(ExitCode::SUCCESS)
    }
}

fn format_of(file: &Path) -> FlowFormat {
    let is_csv = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if is_csv { FlowFormat::Lobster } else { FlowFormat::Itch }
}

/// Reads messages, each after its length; returns how many.
fn read_itch(mut file: impl Read, mut take: impl FnMut(FlowEvent) -> Result<()>) -> Result<u64> {
    let (mut bytes, mut at, mut count) = (Vec::new(), 0_u64, 0);
    loop {
        let read = file.by_ref().take(CHUNK as u64).read_to_end(&mut bytes)?;
        let mut rest = &bytes[..];
        loop {
            match first_frame(rest) {
                Ok(Some((frame, after))) => {
                    let place = || format!("message {count} at byte {at}");
                    let message = ItchMessage::decode(frame).with_context(place)?;
                    take(of_itch(&message)).with_context(place)?;
                    at += (rest.len() - after.len()) as u64;
                    (rest, count) = (after, count + 1);
                }
                Ok(None) if rest.is_empty() => break,
                Ok(None) => return Ok(count),
                Err(_) if read > 0 => break,
                Err(cut) => bail!("message {count} at byte {at}: {cut}"),
            }
        }
        if read == 0 {
            return Ok(count);
        }
        let left = rest.len();
        bytes.drain(..bytes.len() - left);
    }
}

/// Reads lines; returns how many.
fn read_lobster(file: impl Read, mut take: impl FnMut(FlowEvent) -> Result<()>) -> Result<u64> {
    let mut count = 0;
    for line in BufReader::new(file).lines() {
        count += 1;
        let place = || format!("line {count}");
        let line = line.with_context(place)?;
        let event = LobsterLine::parse(&line).map_err(anyhow::Error::from).and_then(|line| of_lobster(&line));
        event.and_then(&mut take).with_context(place)?;
    }
    Ok(count)
}
