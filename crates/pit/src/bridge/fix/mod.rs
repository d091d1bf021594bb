//! A bridge that speaks plain FIX 4.4: an acceptor on loopback, whose orders go to the venue signed, as OUCH.
//!
//! ```text
//!  order system ── FIX 4.4 ──► machine ── sign ──► journal, synced ──► OUCH with signed orders ──► venue
//!               ◄── reports ──      ◄── journal, synced ◄── what became of them ◄──────────
//! ```
//!
//! FIX has no field for a signature that a ledger could check, so a FIX session ends at the participant, where the
//! trading key is; and so does its journal. What FIX messages are in OUCH stands in [`protocols::fix::orders`]: a
//! quantity is of lots, a price of ten-thousandths (tick 110 is 0.0110), a symbol is `M0`, `M1`, ….
//!
//! # The protocol
//!
//! - Upon *a message of the participant*: it is journaled with its number, the orders' state takes it, and what it
//!   comes to is signed and journaled. Then it leaves. So an order that was signed reaches the venue under one number
//!   and as the same bytes, whatever crashes.
//! - Where orders are gathered (`super::gather`), one may be journaled before it is signed. If the process ends
//!   between, the next start refuses it: it never left, and its limit may be old.
//! - Upon *a message of the venue*: it is journaled with its number in the venue's session, and so is the report, under
//!   the next number of FIX. A participant that is away finds a gap at its next logon, and asks for it.
//! - Upon *the venue's link*: what is not answered is sent again; the venue ignores what it has. While the link is away
//!   the participant is logged out, new orders are rejected, and cancels wait.
//! - Upon *the end of the participant's connection*, with cancel-on-disconnect: its open orders are cancelled after so
//!   many milliseconds, one by one, unless it comes back before; orders of other sessions stay.
//! - Upon *another session of the venue* (another day or incarnation): orders that were open are reported as expired,
//!   since a bridge signs no order beyond its day.
//! - A fill is told as a trade when it is *executed*. When it is *settled*, a report of the order's state says so in
//!   words; a bust is a trade cancel.
//!
//! # Deviations
//!
//! - One participant at a time; another connection is closed while there is one.
//! - The journal decides which numbers are used. If it is lost, begin another one with references above those of the
//!   day, and agree with the participant to begin at one.

mod journal;
mod machine;

use std::io::{Error, Result};
use std::path::PathBuf;
use std::time::Duration;

use protocols::fix::FixText;
use protocols::fix::session::{FixClose, FixInput, FixLimits};
use store::{Disk, RealDisk};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub use journal::{FixEntry, FixJournalError, FixJournalFile};
pub use machine::{FixMachine, FixTurn};

use super::pipe::{Pipe, PipeTurn, turn};
use super::upstream::{FromVenue, Upstream};
use super::{BridgeMoment, BridgeNews, BridgeSettings, ReportSink, rest, to_participant};
use crate::clock::{clock_ms, clock_us};

/// How a bridge speaks FIX.
pub struct FixSettings {
    /// The directory of its journal.
    pub journal: PathBuf,
    /// The name of this side, SenderCompID of its messages.
    pub sender: FixText,
    /// The participant's name.
    pub target: FixText,
    /// Milliseconds from the loss of the participant's connection to the cancellation of its orders.
    pub cancel_after_ms: Option<u64>,
    /// References of orders begin above this one.
    pub last: u32,
}

struct FixBridge<D: Disk + Clone> {
    machine: FixMachine,
    file: FixJournalFile<D>,
    upstream: Upstream,
    participant: Option<Pipe>,
    sink: ReportSink,
}

/// Runs a bridge of FIX for ever. `news` says what the venue's status says, as it changes.
///
/// # Errors
/// If the journal, the listener or the sink of reports fails.
pub async fn run(
    settings: BridgeSettings,
    fix: FixSettings,
    listener: TcpListener,
    news: watch::Receiver<Option<BridgeNews>>,
    sink: ReportSink,
) -> Result<()> {
    let mut bridge = open(settings, fix, news, sink)?;
    let (mut from_venue, mut from_participant) = (vec![0; 16 << 10], vec![0; 16 << 10]);
    loop {
        bridge.upstream.call().await;
        let (patience, gathered_us) = (bridge.patience(), bridge.machine.gathered_us());
        tokio::select! {
            done = turn(&mut bridge.upstream.pipe, &mut from_venue) => {
                let said = bridge.upstream.on_pipe(&done, &from_venue);
                bridge.on_venue(said)?;
            }
            done = turn(&mut bridge.participant, &mut from_participant) => {
                bridge.on_participant(&done, &from_participant)?;
            }
            accepted = listener.accept() => bridge.accept(accepted?.0),
            () = rest(patience, gathered_us) => bridge.wake()?,
        }
    }
}

fn open(
    settings: BridgeSettings,
    fix: FixSettings,
    news: watch::Receiver<Option<BridgeNews>>,
    sink: ReportSink,
) -> Result<FixBridge<RealDisk>> {
    let FixSettings { journal, sender, target, cancel_after_ms, last } = fix;
    let (mut file, entries) = FixJournalFile::open(&journal).map_err(Error::other)?;
    let limits = FixLimits { cancel_after_ms, ..FixLimits::default() };
    let others =
        || Error::other(format!("{}: this journal is of other names: name another directory", journal.display()));
    let opened = FixMachine::open(&settings, limits, (sender, target), last, entries, clock_ms());
    let (machine, begins) = opened.ok_or_else(others)?;
    if !begins.is_empty() {
        file.append(&begins).map_err(Error::other)?;
    }
    let upstream = Upstream::new(settings, news, machine.position());
    Ok(FixBridge { machine, file, upstream, participant: None, sink })
}

impl<D: Disk + Clone> FixBridge<D> {
    fn moment(&self) -> BridgeMoment {
        BridgeMoment { now_us: clock_us(), news: self.upstream.news().filter(|_| self.upstream.is_open()) }
    }

    fn patience(&self) -> Duration {
        let now = clock_ms();
        let due = [self.upstream.deadline_ms(), self.machine.deadline_ms()];
        let due = due.into_iter().flatten().map(|at| at.saturating_sub(now)).min().unwrap_or(1_000);
        Duration::from_millis(due.clamp(1, 1_000))
    }

    fn accept(&mut self, stream: TcpStream) {
        if !self.machine.is_connected() {
            self.participant = Some(Pipe::new(stream));
            self.machine.connect(clock_ms());
        }
    }

    fn wake(&mut self) -> Result<()> {
        let said = self.upstream.wake();
        self.on_venue(said)?;
        self.feed(FixInput::Wake)
    }

    fn feed(&mut self, input: FixInput<'_>) -> Result<()> {
        let turn = self.machine.step(&self.moment(), input);
        self.perform(turn)
    }

    fn on_venue(&mut self, said: Vec<FromVenue>) -> Result<()> {
        for said in said {
            let at = self.moment();
            let turn = match said {
                FromVenue::Opened(session) => self.machine.opened(&at, session),
                FromVenue::Message(number, message) => {
                    // The proof of a fill is kept before anybody hears of the fill.
                    if let (_, Some(report)) = to_participant(&message) {
                        (self.sink)(&report)?;
                    }
                    self.machine.hear(&at, number, &message)
                }
                FromVenue::Closed => self.machine.step(&at, FixInput::Leave("the link to the venue is lost")),
            };
            self.perform(turn)?;
        }
        Ok(())
    }

    fn on_participant(&mut self, done: &PipeTurn, buffer: &[u8]) -> Result<()> {
        match done {
            PipeTurn::Read(bytes) => self.feed(FixInput::Received(&buffer[..*bytes])),
            PipeTurn::Wrote(bytes) => self.feed(FixInput::Sent(*bytes)),
            PipeTurn::Lost => {
                self.participant = None;
                self.feed(FixInput::Lost)
            }
            PipeTurn::Nothing => Ok(()),
        }
    }

    /// Makes a turn durable, and then does it.
    fn perform(&mut self, turn: FixTurn) -> Result<()> {
        if turn.begins_session {
            self.file.append(&turn.entries).map_err(Error::other)?;
            self.file.replace(&self.machine.entries()).map_err(Error::other)?;
        } else if !turn.entries.is_empty() {
            self.file.append(&turn.entries).map_err(Error::other)?;
        }
        if let Some(pipe) = &mut self.participant {
            pipe.unsent.extend(&turn.to_participant);
        }
        let is_heard = turn.to_venue.iter().all(|message| self.upstream.send(message));
        if !is_heard && self.upstream.is_open() {
            // It reads too slowly. What it did not hear is sent again when it is called again.
            let closed = self.upstream.hang_up();
            self.on_venue(vec![closed])?;
        }
        if let Some(why) = turn.close {
            tracing::info!(%why, "the participant's link ends");
            if let Some(mut pipe) = self.participant.take().filter(|_| why != FixClose::Lost) {
                pipe.write();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
