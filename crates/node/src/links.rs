//! The links of an epoch: a transport, and the thread that forwards its events.
//!
//! If the next epoch has the same peers with the same indices, the transport stays. Otherwise another one replaces it
//! at the same address, and later events of the old one are ignored: each new transport increments the *generation*.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use consensus::Index;
use primitives::link_key;
use replica::{FrameBytes, Input, Network, Sight};
use transport::{Event, LinkReason, LinkStream, Peer, Transport, TransportError, TransportSettings};

use crate::inbox::InboxSender;
use crate::shared::clock_ms;

/// Maximum number of events that wait for the loop besides its inputs.
const EVENTS: usize = 64;
/// A thread that is sending an answer holds the old transport for a moment. This is how often its address is tried, and
/// the delay between tries.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum bytes of bulk that wait for each peer.
const BULK_BYTES_WAITING: usize = 64 << 20;

// Whatever the genesis sets for sub-blocks, a frame can hold the longest message about states.
const _: () = assert!(replica::state_sync::message::MESSAGE_BYTES_MAX <= transport::VOTE_FRAME_BYTES_MAX);

/// The transport settings of a network.
pub fn settings(network: &Network) -> TransportSettings {
    let peer = |(index, peer): (usize, &replica::PeerAddress)| {
        let (key, address) = link_key(&peer.address).unwrap_or((None, &peer.address));
        // Even if the registry names another link key: this process has no other.
        let key = if index == usize::from(network.me) { network.own.links.public() } else { key.unwrap_or(peer.key) };
        Peer { key, address: address.to_string() }
    };
    TransportSettings {
        network: network.digest(),
        me: network.me,
        listen: network.listen,
        peers: network.peers.iter().enumerate().map(peer).collect(),
        secret: network.own.links.clone(),
        frame_bytes_max: network.frame_bytes_max(),
        bulk_bytes_waiting_max: BULK_BYTES_WAITING,
        clock: clock_ms,
    }
}

/// The links; one thread owns them.
pub(crate) struct Links {
    /// `None` while another one replaces it.
    transport: Option<Arc<Transport>>,
    inputs: InboxSender,
}

impl Links {
    pub(crate) fn open(network: &Network, inputs: InboxSender) -> Result<Links, TransportError> {
        let transport = Some(start(network, 0, &inputs)?);
        Ok(Links { transport, inputs })
    }

    /// Closes all connections and opens those of another generation.
    pub(crate) fn open_again(&mut self, network: &Network, generation: u64) -> Result<(), TransportError> {
        self.transport = None;
        for _ in 1..TRIES {
            match start(network, generation, &self.inputs) {
                Err(TransportError::Listen(..)) => std::thread::sleep(PAUSE),
                started => {
                    self.transport = Some(started?);
                    return Ok(());
                }
            }
        }
        self.transport = Some(start(network, generation, &self.inputs)?);
        Ok(())
    }

    pub(crate) fn transport(&self) -> &Arc<Transport> {
        self.transport.as_ref().expect("it is missing only during a replacement")
    }
}

fn start(network: &Network, generation: u64, inputs: &InboxSender) -> Result<Arc<Transport>, TransportError> {
    let (events, heard) = sync_channel(EVENTS);
    let transport = Transport::start(settings(network), events)?;
    let inputs = inputs.clone();
    let links = std::thread::Builder::new().name("links".into());
    links.spawn(move || forward_events(heard, generation, &inputs)).map_err(TransportError::Threads)?;
    Ok(Arc::new(transport))
}

/// Ends with the transport, or with the loop.
fn forward_events(heard: Receiver<Event>, generation: u64, inputs: &InboxSender) {
    for event in heard {
        let Some((stream, peer, event)) = sight(event) else { continue };
        if !inputs.push_frame(stream, Input::Link { generation, peer, event }) {
            return;
        }
    }
}

/// The replica's view of an event, and its stream. A link must be up before its frames count, so this event goes with
/// the votes.
fn sight(event: Event) -> Option<(LinkStream, Index, Sight)> {
    Some(match event {
        Event::Up { peer, ahead_ms } => (LinkStream::Votes, peer, Sight::Up { ahead_ms }),
        Event::Down { peer } => (LinkStream::Votes, peer, Sight::Down),
        Event::Frame { peer, stream, bytes } => (stream, peer, Sight::Frame(FrameBytes::new(bytes))),
        Event::Refused { peer, reason } => {
            tracing::warn!(peer, %reason, "refused");
            (reason == LinkReason::KeyInUse).then_some((LinkStream::Votes, peer, Sight::KeyInUse))?
        }
    })
}
