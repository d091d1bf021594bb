//! The pit of a venue: one thread that runs its root, and the doors for its traders.
//!
//! ```text
//!  HTTP, WebSocket ──┐ signed orders and requests       ┌──► answers, reports, books
//!  OUCH over Soup ───┼─► queue ─► host: step, sync ─────┼──► OUCH sessions, the feed (ITCH)
//!  operator ─────────┘              ▲                   └──► settles ─► pools
//!  pipeline ── state of each block ─┘ (certified)
//! ```
//!
//! A [`Pit`] stands above the pipeline of its node. When the node begins again with a fetched state the markets go on,
//! and the new pipeline is connected in the place of the old one. It is a crate of its own and no part of `node`,
//! because it needs nothing of a pipeline but [`VenueChain`], and `node` nothing of OUCH, books and traders.
//!
//! # The protocol
//!
//! - Upon *a block*: the pipeline gives the state after it, which it shares with the ledger. It waits until its height
//!   is certified. Then the root is told its time, the fates of fills, and the records of the venue that are not those
//!   of the last state that it was told.
//! - Upon *a gap* (the process was away, or the queue was full): time and fates of the missing blocks are read from the
//!   archive, and their records are left out. Those of the next known state follow in the same step. Nothing is matched
//!   within a step's blocks, and no settle is cut before its end, so what is between them is never acted on.
//! - Upon *commands*: whatever waits goes into one step: one record, one sync. Answers are sent after it.
//! - Upon *an error of the root*: nothing of the step is told. Who waited for an answer is told that it is not known.
//!   The root is opened again, after one second and then after twice as long each time; effects that were not passed on
//!   are made again from the journal and are told then.
//! - Upon *a restart of the process*: sessions have no links, so they are detached, and their orders end if they asked
//!   for that. The settle in flight is submitted again, as the same bytes.
//! - Upon *a fence*: the root stops. If the directory of the next incarnation is prepared, its root begins.
//!
//! # Properties
//!
//! - *Bounded*: inputs that wait, blocks that wait, connections by address, messages of a session, books of a
//!   connection. Who does not read is cut with a reason; who sends too much is refused with a code.
//! - *Nothing unproven reaches the journal*: orders, cancels and sessions are signed by a key that the ledger has at
//!   this venue, and requests cannot be repeated ([`venue::RequestStamps`]).
//! - *No second order*: a retry after a lost answer gets the first one, over every way in.
//!
//! # Deviations
//!
//! - *A full disk refuses orders, not cancels.* Blocks and cancels still need a little room, for which
//!   `[store] free_bytes` stands.
//! - *Each journal has its sync*: that of the root, that of OUCH sessions and the node's log. A root runs above
//!   pipelines that begin again, so no record of it belongs to a block. One commit for all would make a venue's answers
//!   wait for blocks, and a full disk or a crash of one the end of the others. A report over HTTP waits for the root's
//!   sync alone, one over OUCH for that of its session, too.
//! - *Blocks that no node has any more* (the venue was away for longer than `keep_blocks`, or a state was fetched)
//!   cannot be told. The root then does not run until it is at a node that has them, or is fenced.

pub mod bridge;
mod chain;
mod clock;
pub mod codes;
pub mod door;
mod edge;
mod events;
mod feed;
mod home;
mod host;
mod listening;
pub mod ouch;
mod settings;
mod shared;
mod tape;

use std::net::SocketAddr;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use doors::{Http, ListenError, SideDoor};
use ledger::SettledFills;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;

pub use self::edge::{CREDIT as EDGE_CREDIT, EdgeSettings, EdgeStartError, VenueEdge, fairness_body};
pub use chain::{ArchivedBlock, ChainHeights, ChainTerms, RulesEnd, VenueChain};
pub use clock::{advance_clock, clock_ms};
pub use events::BookTop;
pub use home::{incarnation_directory, prepare_incarnation};
pub use settings::{PitSettings, VenueConfig};
pub use shared::{PitRefusal, PitStanding, PitView, SettleInFlight};
pub use venue::ChainState;

use chain::HeardBlock;
use host::Host;
use shared::{INPUTS, PitShared};

/// A running pit.
pub struct Pit {
    shared: Arc<PitShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: watch::Sender<bool>,
    calls: axum::Router,
    address: SocketAddr,
    ouch_address: SocketAddr,
    edge: Option<VenueEdge>,
}

/// Why a pit does not start.
#[derive(Debug, thiserror::Error)]
pub enum PitError {
    /// An address cannot be listened on.
    #[error("[venue] listen: {0}")]
    Listen(#[from] ListenError),
    /// The address of OUCH cannot be listened on.
    #[error("[venue] ouch_listen: cannot listen on {0}: {1}; choose another address")]
    Ouch(SocketAddr, std::io::Error),
    /// Other machines could reach OUCH, which has no TLS.
    #[error(
        "[venue] ouch_listen: refusing to listen on {0}, which other machines can reach, since OUCH has no TLS: set \
         [http] behind_proxy = true if a proxy with TLS is in front of it or its network is private, or listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// An address of the feed cannot be used.
    #[error("[venue] {0}: cannot listen on {1}: {2}; choose another address")]
    Feed(&'static str, SocketAddr, std::io::Error),
    /// The edge cannot be started.
    #[error(transparent)]
    Edge(#[from] EdgeStartError),
    /// A thread cannot be started.
    #[error("a thread could not be started: {0}")]
    Thread(std::io::Error),
}

/// Checks the settings of a pit's doors as its start would, without binding an address.
///
/// # Errors
/// [`PitError`] names the setting.
pub fn check(config: &VenueConfig, http: &Http) -> Result<(), PitError> {
    doors::check(http, [config.listen])?;
    let listen = config.ouch_listen;
    if listen.ip().is_loopback() || http.behind_proxy { Ok(()) } else { Err(PitError::Exposed(listen)) }
}

impl Pit {
    /// Binds the doors, and starts. The root begins when a pipeline is connected.
    ///
    /// # Errors
    /// [`PitError`] names the setting.
    pub async fn start(settings: PitSettings, http: &Http) -> Result<Pit, PitError> {
        let config = &settings.config;
        check(config, http)?;
        let door = SideDoor::bind(http, config.listen).await?;
        let listen = config.ouch_listen;
        let ouch = TcpListener::bind(listen).await.map_err(|error| PitError::Ouch(listen, error))?;
        let ouch_address = ouch.local_addr().map_err(|error| PitError::Ouch(listen, error))?;
        let sources = feed_sources(config).await?;
        let (feed_to, edge) = (config.feed_to.clone(), settings.edge.clone());
        let (queue, inputs) = sync_channel(INPUTS);
        let shared = Arc::new(PitShared::new(config.number, queue));
        if sources.is_some() {
            shared.feed.turn_on();
        }
        let edge = edge.map(|edge| VenueEdge::start(&edge, shared.clone())).transpose()?;
        let host = Host::new(settings, shared.clone());
        let run = std::thread::Builder::new().name("venue".into()).spawn(move || host.run(&inputs));
        let thread = Mutex::new(Some(run.map_err(PitError::Thread)?));
        let (stop, stopped) = watch::channel(false);
        let address = door.address();
        let calls = door::calls(shared.clone(), door.operator_check());
        tokio::spawn(door.serve(door::router(calls.clone()), stopped.clone()));
        if let Some((socket, listener)) = sources {
            tokio::spawn(door::feed::serve(socket, feed_to, shared.clone(), stopped.clone()));
            tokio::spawn(door::snapshots::serve(listener, shared.clone(), stopped.clone()));
        }
        tokio::spawn(door::ouch::serve(ouch, shared.clone(), stopped));
        tracing::info!(%address, ouch = %ouch_address, "the venue's doors are open");
        Ok(Pit { shared, thread, stop, calls, address, ouch_address, edge })
    }

    /// The address of orders over HTTP and WebSocket.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is answered over HTTP and WebSocket, for another door of this process.
    pub fn calls(&self) -> axum::Router {
        self.calls.clone()
    }

    /// The address of OUCH.
    pub fn ouch_address(&self) -> SocketAddr {
        self.ouch_address
    }

    /// The root of the venue's edge, if it has one.
    pub fn edge(&self) -> Option<&VenueEdge> {
        self.edge.as_ref()
    }

    /// The venue's number.
    pub fn venue(&self) -> u32 {
        self.shared.venue
    }

    /// Takes the next pipeline, with the state that it begins with.
    pub fn connect(&self, chain: Arc<dyn VenueChain>, terms: ChainTerms, state: ChainState) {
        self.shared.heard(|heard| (heard.chain, heard.terms) = (Some(chain), Some(terms)));
        self.shared.hear(HeardBlock { state, settles: None });
    }

    /// A block of the pipeline: the state after it, and the settles that counted. It is durable, and blocks come in
    /// order.
    pub fn hear(&self, state: ChainState, settles: Vec<SettledFills>) {
        self.shared.hear(HeardBlock { state, settles: Some(settles) });
    }

    /// More heights are certified.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// How the pit stands.
    pub fn view(&self) -> PitView {
        self.shared.view.borrow().clone()
    }

    /// Closes the doors, and ends the thread after what waits.
    pub fn stop(&self) {
        self.stop.send_replace(true);
        self.shared.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the venue panicked");
        }
    }
}

/// The sockets of the feed; `None` if nobody is to be told.
async fn feed_sources(config: &VenueConfig) -> Result<Option<(UdpSocket, TcpListener)>, PitError> {
    let VenueConfig { feed_listen: udp, snapshot_listen: tcp, .. } = *config;
    if config.feed_to.is_empty() && config.edge_listen.is_none() {
        return Ok(None);
    }
    let socket = UdpSocket::bind(udp).await.map_err(|error| PitError::Feed("feed_listen", udp, error))?;
    let listener = TcpListener::bind(tcp).await.map_err(|error| PitError::Feed("snapshot_listen", tcp, error))?;
    Ok(Some((socket, listener)))
}

impl Drop for Pit {
    fn drop(&mut self) {
        self.stop();
    }
}
