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

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use protocols::frames::{FileFrame, first_frame};
use protocols::itch::ItchMessage;
use protocols::lobster::LobsterLine;
use serde_json::json;

use events::{FlowEvent, of_itch, of_lobster};
use replay::{FlowReplay, ReplayLimits};
use terminal::print_figures;

/// Bytes read at a time; a message is shorter.
const CHUNK: usize = 1 << 20;

/// Replays days of orders through the matching engine: a NASDAQ TotalView-ITCH 5.0 file, or a message file of
/// LOBSTER. Says how many trades went to the order that the file names, and prints one digest of all that happened.
#[derive(Debug, Args)]
#[command(after_help = "Example: walras match --file 01302020.NASDAQ_ITCH50 --symbol AAPL --symbol MSFT")]
pub struct MatchArgs {
    /// The file, not compressed; /dev/stdin reads what another program writes
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
        let file = plain(&self.file).with_context(|| self.file.display().to_string())?;
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

/// How files of other programs that compress begin, with what unpacks them.
const PACKED: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "gzip", "gzip -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"\xfd7zXZ", "xz", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip", "7z x -so"),
];

/// A file that is not compressed.
fn plain(path: &Path) -> Result<impl BufRead + use<>> {
    let mut file = BufReader::with_capacity(CHUNK, File::open(path)?);
    let first = file.fill_buf()?;
    if let Some((_, name, unpack)) = PACKED.iter().find(|(magic, ..)| first.starts_with(magic)) {
        let path = path.display();
        bail!(
            "it is compressed by {name}; write: {unpack} {path} | walras match --file /dev/stdin --format itch (or lobster)"
        );
    }
    Ok(file)
}

/// A file of ITCH messages, as far as it was read.
#[derive(Default)]
struct ItchFile {
    /// Bytes and messages so far.
    at: u64,
    count: u64,
    /// Where a length of zero ended a session, if nothing was read since.
    ended: Option<u64>,
}

impl ItchFile {
    fn message(&mut self, frame: &[u8], take: &mut impl FnMut(FlowEvent) -> Result<()>) -> Result<()> {
        let message = ItchMessage::decode(frame).map_err(|error| self.wrong(error.into()))?;
        if self.ended.is_some() {
            take(FlowEvent::Day)?;
        }
        take(of_itch(&message)).with_context(|| self.place())?;
        (self.at, self.count, self.ended) = (self.at + 2 + frame.len() as u64, self.count + 1, None);
        Ok(())
    }

    /// A session ends; its day does with the first message of the next one. Two ends in a row are no file of ITCH.
    fn end(&mut self) -> Result<()> {
        ensure!(self.ended.is_none(), self.wrong(anyhow!("another length of zero follows")));
        self.ended = Some(self.at);
        self.at += 2;
        Ok(())
    }

    fn place(&self) -> String {
        format!("message {} at byte {}", self.count, self.at)
    }

    /// An error in what follows.
    fn wrong(&self, error: anyhow::Error) -> anyhow::Error {
        let error = error.context(self.place());
        match self.ended {
            Some(end) => error.context(format!(
                "the length at byte {end} is zero, which ends a session, but what follows begins no other: each message \
                 comes after its length in two bytes"
            )),
            None => error,
        }
    }
}

/// Reads messages, each after its length; returns how many.
fn read_itch(mut file: impl Read, mut take: impl FnMut(FlowEvent) -> Result<()>) -> Result<u64> {
    let (mut bytes, mut of) = (Vec::new(), ItchFile::default());
    loop {
        let read = file.by_ref().take(CHUNK as u64).read_to_end(&mut bytes)?;
        let mut rest = &bytes[..];
        loop {
            match first_frame(rest) {
                Ok(None) => break,
                Ok(Some(FileFrame::Message(frame, after))) => {
                    of.message(frame, &mut take)?;
                    rest = after;
                }
                Ok(Some(FileFrame::End(after))) => {
                    of.end()?;
                    rest = after;
                }
                Err(_) if read > 0 => break,
                Err(cut) => return Err(of.wrong(cut.into())),
            }
        }
        if read == 0 {
            return Ok(of.count);
        }
        let left = rest.len();
        bytes.drain(..bytes.len() - left);
    }
}

/// Reads lines; returns how many there are without those that name the columns or are blank at the end.
fn read_lobster(file: impl BufRead, mut take: impl FnMut(FlowEvent) -> Result<()>) -> Result<u64> {
    let (mut count, mut blank) = (0, None);
    for (at, line) in file.lines().enumerate() {
        let place = || format!("line {}", at + 1);
        let line = line.with_context(place)?;
        if line.trim().is_empty() {
            blank = blank.or(Some(at + 1));
            continue;
        }
        ensure!(blank.is_none(), "line {}: it is blank, and lines follow", blank.unwrap_or_default());
        if at == 0 && LobsterLine::is_header(&line) {
            continue;
        }
        let line = if at == 0 { line.trim_start_matches('\u{feff}') } else { &line };
        let event = LobsterLine::parse(line).map_err(anyhow::Error::from).and_then(|line| of_lobster(&line));
        event.and_then(&mut take).with_context(place)?;
        count += 1;
    }
    Ok(count)
}
