//! A bridge at a participant's side: plain OUCH on loopback in, signed orders to the venue out.
//!
//! ```text
//!  trading program ── plain OUCH ──► bridge (holds the trading key) ── OUCH with signed orders ──► venue
//!                  ◄───────────────         signs, numbers, strips          ◄──────────────────
//! ```
//!
//! # The protocol
//!
//! - Upon *a new order* or *a replacement*: the bridge signs it for the venue's incarnation, the present day and so
//!   many heights from the last certified one, and adds the signed order as an option. All else it passes on as it is.
//!   On request it gathers what comes within a moment, and signs it as one list (`gather`).
//! - Upon *a message of the venue*: it passes it on without the options that plain OUCH does not have, under a number
//!   of its own session; that a fill is settled has no message there, and is asked over HTTP. Reports are written to
//!   the caller's sink before, since they are a trader's evidence.
//! - Upon *a loss of the venue's link*: the participant's link is closed, too, and is taken again when the venue is
//!   there: nobody trades into nothing. What the venue had said meanwhile follows then.
//! - Upon *another session of the venue* (a new day, or it was started again): the bridge's session is another one,
//!   too, and begins with message 1.
//!
//! Orders end ten seconds before midnight (UTC), so that their end is told in the session of their day.
//! [`OuchMachine`] has all of this as steps, without sockets and clock; [`fix`] is a bridge that speaks FIX.
//!
//! It signs whatever a program on this machine says within the key's mandate: listen on loopback only.

pub mod fix;
mod gather;
mod machine;
mod pipe;
mod translator;
mod upstream;

use std::io::Result;
use std::net::SocketAddr;
use std::time::Duration;

use primitives::SecretKey;
use primitives::venue::VenueReport;
use protocols::soup::ANY_SESSION;
use protocols::soup::server::SoupServerInput;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use venue::RequestScope;

use crate::clock::{clock_ms, clock_us};
pub use gather::GATHER_US_MAX;
pub use machine::{OuchMachine, OuchMachineTurn};
use pipe::{Pipe, PipeTurn, turn};
pub use translator::{Translator, to_participant};
use upstream::{FromVenue, Upstream};

/// How orders are signed.
#[derive(Clone)]
pub struct BridgeSettings {
    /// The venue's OUCH door.
    pub venue: SocketAddr,
    /// The trading key.
    pub trading: SecretKey,
    /// The session among those of the key, from 1 on.
    pub session: u32,
    /// Whether open orders end when the link to the venue breaks.
    pub ends_orders: bool,
    /// Open orders end if the bridge says nothing for this long.
    pub dead_man_ms: Option<u64>,
    /// The most that orders pay in fees, in millionths.
    pub fee_cap_ppm: u32,
    /// Heights that an order lives.
    pub life_heights: u64,
    /// How long an order waits for others under the same signature, in microseconds: at most [`GATHER_US_MAX`]; 0 does
    /// not wait.
    pub gather_us: u64,
}

/// What the bridge must know of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeNews {
    /// What is signed for.
    pub scope: RequestScope,
    /// The last certified height.
    pub height: u64,
    /// Whether it takes lists of orders.
    pub takes_lists: bool,
}

/// What a turn of a machine knows.
#[derive(Clone, Copy, Debug)]
pub struct BridgeMoment {
    /// The time, in microseconds since 1970.
    pub now_us: u64,
    /// What is known of the venue, while its link is there.
    pub news: Option<BridgeNews>,
}

impl BridgeMoment {
    /// The time, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }
}

/// Where signed reports of fills go.
pub type ReportSink = Box<dyn FnMut(&VenueReport) -> Result<()> + Send>;

struct Bridge {
    machine: OuchMachine,
    sink: ReportSink,
    upstream: Upstream,
    participant: Option<Pipe>,
}

/// Runs a bridge for ever. `news` says what the venue's status says, as it changes.
///
/// # Errors
/// If the listener fails, or a report cannot be kept.
pub async fn run(
    settings: BridgeSettings,
    listener: TcpListener,
    news: watch::Receiver<Option<BridgeNews>>,
    sink: ReportSink,
) -> Result<()> {
    let machine = OuchMachine::new(&settings, clock_ms());
    let upstream = Upstream::new(settings, news, (ANY_SESSION, 1));
    let mut bridge = Bridge { machine, sink, upstream, participant: None };
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

/// Waits for so long, or until orders that are gathered leave. A timer of the runtime is no finer than a millisecond,
/// so that time is spent by looking at the sockets again and again.
async fn rest(patience: Duration, gathered_us: Option<u64>) {
    let Some(due) = gathered_us else { return tokio::time::sleep(patience).await };
    let begun = clock_us();
    while (begun..due).contains(&clock_us()) {
        tokio::task::yield_now().await;
    }
}

impl Bridge {
    fn moment(&self) -> BridgeMoment {
        BridgeMoment { now_us: clock_us(), news: self.upstream.news().filter(|_| self.upstream.is_open()) }
    }

    fn patience(&self) -> Duration {
        let now = clock_ms();
        let due = [self.upstream.deadline_ms(), self.machine.deadline_ms()];
        let due = due.into_iter().flatten().map(|at| at.saturating_sub(now)).min().unwrap_or(1_000);
        Duration::from_millis(due.clamp(1, 1_000))
    }

    fn wake(&mut self) -> Result<()> {
        self.feed(SoupServerInput::Wake)?;
        let said = self.upstream.wake();
        self.on_venue(said)
    }

    /// A participant comes; one at a time, and the newest.
    fn accept(&mut self, stream: TcpStream) {
        if self.upstream.is_open() {
            self.participant = Some(Pipe::new(stream));
            self.machine.connect(clock_ms());
        }
    }

    fn on_venue(&mut self, said: Vec<FromVenue>) -> Result<()> {
        for said in said {
            let at = self.moment();
            let turn = match said {
                FromVenue::Opened(session) => self.machine.opened(&at, session),
                FromVenue::Message(_, message) => self.machine.hear(&at, &message),
                FromVenue::Closed => self.machine.leave(),
            };
            self.perform(turn)?;
        }
        Ok(())
    }

    fn on_participant(&mut self, done: &PipeTurn, buffer: &[u8]) -> Result<()> {
        match done {
            PipeTurn::Read(bytes) => self.feed(SoupServerInput::Received(&buffer[..*bytes])),
            PipeTurn::Wrote(bytes) => self.feed(SoupServerInput::Sent(*bytes)),
            PipeTurn::Lost => {
                self.participant = None;
                self.feed(SoupServerInput::Lost)
            }
            PipeTurn::Nothing => Ok(()),
        }
    }

    fn feed(&mut self, input: SoupServerInput<'_>) -> Result<()> {
        let turn = self.machine.step(&self.moment(), input);
        self.perform(turn)
    }

    /// Keeps reports, and then does what a turn of the machine says.
    fn perform(&mut self, turn: OuchMachineTurn) -> Result<()> {
        for report in &turn.reports {
            (self.sink)(report)?;
        }
        if let Some(pipe) = &mut self.participant {
            pipe.unsent.extend(turn.to_participant);
        }
        if turn.close.is_some()
            && let Some(mut pipe) = self.participant.take()
        {
            pipe.write();
        }
        for message in turn.to_venue {
            if !self.upstream.send(&message) {
                let told = self.machine.not_taken(&self.moment(), &message);
                self.perform(told)?;
            }
        }
        Ok(())
    }
}
