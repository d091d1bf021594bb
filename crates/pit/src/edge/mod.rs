//! The venue's market edge: market data out to all gateways at one deadline, orders in by their stamps.
//!
//! ```text
//!  feed (ITCH) ──────────────► root of the tree ──► proxies ──► gateways ──► participants, at one deadline
//!  OUCH sessions ◄── one thread ◄── sequencer ◄── proxies ◄── gateways (stamps) ◄── participants
//! ```
//!
//! # The protocol
//!
//! - A participant connects to its gateway as it would to the venue's OUCH door: the request to attach, the login,
//!   then orders with their signatures ([`crate::ouch`]); plain OUCH is spoken through a [bridge](crate::bridge). The
//!   gateway stamps each packet, and the tree carries it to the root as an order.
//! - Upon *an order of the tree*: in the order in which the sequencer released it, the sessions' thread gives it to the
//!   link of its session. The link gives it to the root's thread. So the engine gets orders by their stamps, whatever
//!   way they took.
//! - Upon *a step of the root*: its market data is published on the tree, and after it what its sessions were told is
//!   sent to their gateways. There a report waits until the packets before it were shown.
//! - Upon *the eviction of a gateway*, or another life of it: its sessions are detached, and their orders end if they
//!   asked for that.
//!
//! # Properties
//!
//! - *By stamps*: two orders enter the engine in the order of their stamps, unless one is flagged as late.
//! - *Nobody first*: a report reaches its participant after the deadline of the market data of the same step.
//! - *As over the door*: a session is the same at the venue's own door and at any gateway. Whoever comes back gets what
//!   it missed, from either.
//! - *Bounded*: the tree sends as many orders as the engine has finished, after [`CREDIT`] at first. What is on its way
//!   to a participant is at most a window ([`fairnet::PARTICIPANT_WINDOW`]).
//!
//! # Deviations
//!
//! - *The queue is by stamp, not by class.* References of an OUCH session ascend and a reference below one that was
//!   used is a repetition, so of one participant no order may overtake another, as the limit order queue by class lets
//!   it; and that queue changes trades (see `fairnet`). Whoever asks for it is refused ([`EdgeStartError::ByClass`]).
//! - *Gateways do not judge prices.* The action window is the market's collar, which the root applies at the moment of
//!   the match to every order, whichever way it came.

mod fairness;
mod sessions;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;

use edge::{
    EdgeClock, EdgeCommand, EdgeHost, EdgeObserver, EdgeSockets, EdgeStatus, HostHandle, HostOptions, Station,
    StreamTls,
};
use fairnet::{EdgeEffect, EdgeNode, EdgePlace, EdgeRules, FairnessEvent, Nanos, QueuePolicy, ROOT_MEMBER, RootNode};

pub use fairness::fairness_body;

use crate::clock::clock_ms;
use crate::shared::{EdgeSessionsInput, EdgeSessionsSender, PitShared};
use sessions::EdgeSessions;

/// Orders that the tree may send ahead of what the engine has finished.
pub const CREDIT: u64 = 1_024;
/// The session of the tree's packets. Those of the feed inside have the feed's own.
const SESSION: [u8; 10] = *b"0000000001";

/// How the root of an edge runs.
#[derive(Clone, Debug)]
pub struct EdgeSettings {
    /// Addresses of datagrams and streams.
    pub listen: [SocketAddr; 2],
    /// The secret that all machines of the edge have.
    pub secret: [u8; 32],
    /// Limits and times, the same at all members.
    pub rules: EdgeRules,
    /// How wrong this machine's clock can be, ns.
    pub clock_error: Option<Nanos>,
    /// How long before a deadline the host wakes and then spins, ns.
    pub spin: Nanos,
    /// Whether streams are encrypted.
    pub is_encrypted: bool,
}

/// Why a venue has no edge.
#[derive(Debug, thiserror::Error)]
pub enum EdgeStartError {
    /// An address cannot be listened on.
    #[error("[venue] edge_listen: cannot listen on {0:?}: {1}; choose another address")]
    Listen([SocketAddr; 2], std::io::Error),
    /// The secret cannot be read.
    #[error("[venue] edge_secret: {0:?}: {1}; make one with `walras edge secret`")]
    Secret(PathBuf, String),
    /// TLS cannot be used.
    #[error("[venue] edge_tls: {0}")]
    Tls(String),
    /// A queue by class.
    #[error("orders over OUCH keep their order, so the edge of a venue has no queue by class: use the one by stamp")]
    ByClass,
    /// The system gives no sockets or threads.
    #[error("the edge of the venue cannot start: {0}")]
    Start(std::io::Error),
}

/// The root of a venue's edge. It ends when it is dropped.
pub struct VenueEdge {
    handle: HostHandle,
    place: EdgePlace,
}

impl VenueEdge {
    /// Starts the root, and the thread of the sessions.
    pub(crate) fn start(settings: &EdgeSettings, shared: Arc<PitShared>) -> Result<VenueEdge, EdgeStartError> {
        if settings.rules.policy != QueuePolicy::ByStamp {
            return Err(EdgeStartError::ByClass);
        }
        let [datagrams, streams] = settings.listen;
        let listen = |error| EdgeStartError::Listen(settings.listen, error);
        let sockets = EdgeSockets::bind(datagrams, streams).map_err(listen)?;
        let place = sockets.place().map_err(listen)?;
        let mut clock = EdgeClock::system(settings.clock_error);
        // A root that begins again is above every epoch that its members have heard of.
        let epoch = (clock_ms() / 1_000) as u32;
        let node = RootNode::new(clock.now(), place, (SESSION, epoch), settings.secret, settings.rules);
        let (sender, inputs) = channel();
        let observer = observer(sender.clone());
        let mut station = Station::new(ROOT_MEMBER, settings.secret, EdgeNode::Root(node), sockets, None, observer);
        if settings.is_encrypted {
            let tls = StreamTls::of_secret(&settings.secret);
            station.encrypt(tls.map_err(|error| EdgeStartError::Tls(error.to_string()))?);
        }
        let options = HostOptions { clock, spin: settings.spin };
        let (host, handle) = EdgeHost::new(options, vec![station]).map_err(EdgeStartError::Start)?;
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let run = move || {
            if let Err(error) = host.run() {
                tracing::error!(%error, "the edge of the venue ended: a socket is broken");
            }
        };
        thread("venue edge").spawn(run).map_err(EdgeStartError::Start)?;
        let out = handle.clone();
        let tell = move |command: EdgeCommand| out.send(0, command);
        shared.feed.turn_on();
        let sessions = EdgeSessions::new(shared.clone(), tell);
        shared.open_edge_sessions(sender);
        // There is one edge.
        drop(shared.edge.set(handle.clone()));
        thread("edge sessions").spawn(move || sessions.run(&inputs)).map_err(EdgeStartError::Start)?;
        handle.send(0, EdgeCommand::Ready(CREDIT));
        Ok(VenueEdge { handle, place })
    }

    /// Where members find the root.
    pub fn place(&self) -> EdgePlace {
        self.place
    }

    /// How the edge is; `None` if it has ended.
    pub fn status(&self) -> Option<EdgeStatus> {
        self.handle.status(0)
    }
}

/// Passes on to the sessions what the tree brought.
fn observer(sessions: EdgeSessionsSender) -> EdgeObserver {
    Box::new(move |_, effect, _| {
        let input = match effect {
            EdgeEffect::Engine(order) => {
                let order = &order.item;
                EdgeSessionsInput::Order { gateway: order.participant, life: order.session, body: order.body.clone() }
            }
            EdgeEffect::Logged(entry) => match entry.event {
                FairnessEvent::Evicted(member, _) => EdgeSessionsInput::Evicted(member),
                _ => return,
            },
            _ => return,
        };
        // The thread ends with the pit.
        drop(sessions.send(input));
    })
}
