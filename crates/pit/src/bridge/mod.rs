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
//! - Upon *a message of the venue*: it passes it on without the options that plain OUCH does not have, under a number
//!   of its own session; that a fill is settled has no message there, and is asked over HTTP. Reports are written to
//!   the caller's sink before, since they are a trader's evidence.
//! - Upon *a loss of the venue's link*: the participant's link is closed, too, and is taken again when the venue is
//!   there: nobody trades into nothing. What the venue had said meanwhile follows then.
//! - Upon *another session of the venue* (a new day, or it was started again): the bridge's session is another one,
//!   too, and begins with message 1.
//!
//! Orders end ten seconds before midnight (UTC), so that their end is told in the session of their day.
//! [`fix`] is a bridge that speaks FIX.
//!
//! It signs whatever a program on this machine says within the key's mandate: listen on loopback only.

pub mod fix;
mod pipe;
mod translator;
mod upstream;

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::time::Duration;

use primitives::SecretKey;
use primitives::venue::FillReport;
use protocols::ouch::{OuchInbound, OuchMessage};
use protocols::soup::server::{SoupLog, SoupServer, SoupServerEffect, SoupServerInput};
use protocols::soup::{ANY_SESSION, SoupLimits, SoupSession};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use venue::RequestScope;

use crate::clock::clock_ms;
use crate::words::NOT_TAKEN;
use pipe::{Pipe, PipeTurn, turn};
use translator::rejection;
pub use translator::{Translator, to_participant};
use upstream::{FromVenue, Upstream};

/// Messages that the bridge keeps for its participant.
const MESSAGES: u64 = 65_536;

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
}

/// What the bridge must know of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeNews {
    /// What is signed for.
    pub scope: RequestScope,
    /// The last certified height.
    pub height: u64,
}

/// Where signed reports of fills go.
pub type ReportSink = Box<dyn FnMut(&FillReport) -> Result<()> + Send>;

struct Bridge {
    translator: Translator,
    sink: ReportSink,
    upstream: Upstream,
    participant: Option<Pipe>,
    server: SoupServer,
    log: SoupLog,
    /// The session of the venue whose messages the log has.
    session: Option<SoupSession>,
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
    let translator = Translator::new(&settings);
    let mut bridge = Bridge {
        translator,
        sink,
        upstream: Upstream::new(settings, news, (ANY_SESSION, 1)),
        participant: None,
        server: SoupServer::new(SoupLimits::default(), clock_ms()),
        log: SoupLog::new(session_name()),
        session: None,
    };
    let (mut from_venue, mut from_participant) = (vec![0; 16 << 10], vec![0; 16 << 10]);
    loop {
        bridge.upstream.call().await;
        let patience = bridge.patience();
        tokio::select! {
            done = turn(&mut bridge.upstream.pipe, &mut from_venue) => {
                let said = bridge.upstream.on_pipe(&done, &from_venue);
                bridge.on_venue(said)?;
            }
            done = turn(&mut bridge.participant, &mut from_participant) => {
                bridge.on_participant(done, &from_participant);
            }
            accepted = listener.accept() => bridge.accept(accepted?.0),
            () = tokio::time::sleep(patience) => bridge.wake()?,
        }
    }
}

fn session_name() -> SoupSession {
    let mut name = [b' '; 10];
    let text = format!("{:>10}", clock_ms() % 10_000_000_000);
    name.copy_from_slice(text.as_bytes());
    name
}

impl Bridge {
    fn patience(&self) -> Duration {
        let now = clock_ms();
        let due = [self.upstream.deadline_ms(), self.server.deadline_ms().filter(|_| self.participant.is_some())];
        let due = due.into_iter().flatten().map(|at| at.saturating_sub(now)).min().unwrap_or(1_000);
        Duration::from_millis(due.clamp(1, 1_000))
    }

    fn wake(&mut self) -> Result<()> {
        self.on_server(SoupServerInput::Wake);
        let said = self.upstream.wake();
        self.on_venue(said)
    }

    /// A participant comes; one at a time, and the newest.
    fn accept(&mut self, stream: TcpStream) {
        if self.upstream.is_open() {
            self.participant = Some(Pipe::new(stream));
            self.server = SoupServer::new(SoupLimits::default(), clock_ms());
        }
    }

    fn on_venue(&mut self, said: Vec<FromVenue>) -> Result<()> {
        for said in said {
            match said {
                FromVenue::Opened(session) => self.opened(session),
                FromVenue::Message(_, message) => self.pass_on(&message)?,
                // The venue's link is gone, and so is the participant's.
                FromVenue::Closed => self.participant = None,
            }
        }
        Ok(())
    }

    fn opened(&mut self, session: SoupSession) {
        if self.session.is_some_and(|known| known != session) {
            tracing::info!("the venue has a new session: the bridge's begins with message 1, too");
            self.log = SoupLog::new(session_name());
            self.translator.orders.clear();
            self.participant = None;
        }
        self.session = Some(session);
    }

    fn pass_on(&mut self, message: &[u8]) -> Result<()> {
        let (plain, report) = to_participant(message);
        if let Some(report) = report {
            (self.sink)(&report)?;
        }
        if let Some(plain) = plain {
            self.tell(plain)?;
        }
        Ok(())
    }

    fn tell(&mut self, message: Vec<u8>) -> Result<()> {
        self.log.publish(message).map_err(Error::other)?;
        self.log.forget_before(self.log.next().saturating_sub(MESSAGES));
        self.on_server(SoupServerInput::Wake);
        Ok(())
    }

    fn on_participant(&mut self, done: PipeTurn, buffer: &[u8]) {
        match done {
            PipeTurn::Read(bytes) => self.on_server(SoupServerInput::Received(&buffer[..bytes])),
            PipeTurn::Wrote(bytes) => self.on_server(SoupServerInput::Sent(bytes)),
            PipeTurn::Lost => self.participant = None,
            PipeTurn::Nothing => {}
        }
    }

    fn on_server(&mut self, input: SoupServerInput<'_>) {
        if self.participant.is_none() {
            return;
        }
        let mut effects: std::collections::VecDeque<_> = self.server.step(clock_ms(), input, &self.log).into();
        while let Some(effect) = effects.pop_front() {
            match effect {
                SoupServerEffect::Send(bytes) => {
                    self.participant.iter_mut().for_each(|pipe| pipe.unsent.extend(&bytes))
                }
                SoupServerEffect::Authorize(_) => {
                    effects.extend(self.server.step(
                        clock_ms(),
                        SoupServerInput::Verdict(self.upstream.is_open()),
                        &self.log,
                    ));
                }
                SoupServerEffect::Message(message) => self.sign(&message),
                SoupServerEffect::Close(why) => {
                    tracing::info!(%why, "the participant's link ends");
                    if let Some(mut pipe) = self.participant.take() {
                        pipe.write();
                    }
                }
            }
        }
    }

    fn sign(&mut self, message: &[u8]) {
        let signed = self.upstream.news().ok_or_else(Vec::new);
        let rejected = match signed.and_then(|news| self.translator.to_venue(message, &news, clock_ms())) {
            Ok(signed) if self.upstream.send(&signed) => return,
            Ok(_) => OuchMessage::<OuchInbound>::decode(message)
                .map_or_else(|_| Vec::new(), |message| rejection(&message.body, NOT_TAKEN, clock_ms())),
            Err(rejected) => rejected,
        };
        if !rejected.is_empty() {
            // It is short, and the session has not ended.
            self.tell(rejected).ok();
        }
    }
}
