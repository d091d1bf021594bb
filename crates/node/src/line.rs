//! The connections of an epoch: a transport, and the thread that hands on what it hears.
//!
//! Where the next epoch has the same peers with the same indices, the transport stays. Else another takes its place, at
//! the same address, and what the one before still tells is not listened to.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use consensus::{Index, Members};

use crate::network::Network;
use crate::validator::Input;
use transport::{Event, Transport, TransportError};

/// Events that wait for the consensus thread besides its inputs.
const EVENTS: usize = 64;
/// Who sends an answer by the old transport holds it for a moment; so often, and so long, its address is waited for.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Line {
    /// Nothing while another takes its place.
    transport: Option<Arc<Transport>>,
    number: u64,
    up: Members,
    inputs: SyncSender<Input>,
}

impl Line {
    pub(crate) fn open(network: &Network, inputs: SyncSender<Input>) -> Result<Line, TransportError> {
        let transport = Some(start(network, 0, &inputs)?);
        Ok(Line { transport, number: 0, up: Members::default(), inputs })
    }

    /// Ends all connections and begins those of another epoch.
    pub(crate) fn open_again(&mut self, network: &Network) -> Result<(), TransportError> {
        self.transport = None;
        self.up = Members::default();
        self.number += 1;
        for _ in 1..TRIES {
            match start(network, self.number, &self.inputs) {
                Err(TransportError::Listen(..)) => std::thread::sleep(PAUSE),
                started => {
                    self.transport = Some(started?);
                    return Ok(());
                }
            }
        }
        self.transport = Some(start(network, self.number, &self.inputs)?);
        Ok(())
    }

    pub(crate) fn transport(&self) -> &Arc<Transport> {
        self.transport.as_ref().expect("only for a moment there is none")
    }

    /// How many there were before: events come with it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Who is connected.
    pub(crate) fn up(&self) -> Members {
        self.up
    }

    pub(crate) fn note(&mut self, peer: Index, is_up: bool) {
        if is_up {
            self.up.insert(peer);
        } else {
            self.up = self.up.iter().filter(|other| *other != peer).collect();
        }
    }
}

fn start(network: &Network, number: u64, inputs: &SyncSender<Input>) -> Result<Arc<Transport>, TransportError> {
    let (events, heard) = sync_channel(EVENTS);
    let transport = Transport::start(network.transport(), events)?;
    let inputs = inputs.clone();
    let links = std::thread::Builder::new().name("links".into());
    links.spawn(move || hand_on(heard, number, &inputs)).map_err(TransportError::Threads)?;
    Ok(Arc::new(transport))
}

/// Ends with the transport, or with the consensus thread.
fn hand_on(heard: Receiver<Event>, number: u64, inputs: &SyncSender<Input>) {
    for event in heard {
        if inputs.send(Input::Transport(number, event)).is_err() {
            return;
        }
    }
}
