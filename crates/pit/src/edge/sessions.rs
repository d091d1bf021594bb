//! The sessions behind the tree: one thread takes its orders, so that orders keep the sequencer's order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use edge::EdgeCommand;
use fairnet::{FromParticipant, MemberId, PARTICIPANT_WINDOW, ParticipantEvent, ParticipantOrder, ToParticipant};
use protocols::mold::MoldSession;
use protocols::soup::server::SoupServerInput;
use tokio::sync::oneshot;

use crate::clock::clock_ms;
use crate::ouch::{OuchLink, OuchTurn, read_hello};
use crate::shared::{Attaching, EdgeSessionsInput, PitInput, PitShared, refusal_of};

/// Inputs of one turn: the engine steps once for them.
const TURN: usize = 1_024;
/// The longest wait for an input.
const IDLE: Duration = Duration::from_secs(1);
/// Connections of one gateway.
const LINKS: usize = 64;

/// A participant's connection at a gateway.
#[derive(Default)]
struct SessionLink {
    order: ParticipantOrder,
    /// `None` before its session is attached.
    ouch: Option<OuchLink>,
    /// Until the root's thread has attached the session.
    attached: Option<oneshot::Receiver<()>>,
    unsent: Vec<u8>,
    /// Bytes on their way to the participant.
    on_way: usize,
    /// Nothing more is heard of it, and it ends once it has what is unsent.
    is_over: bool,
}

/// The connections of a gateway in one of its lives.
#[derive(Default)]
struct SessionGateway {
    life: u32,
    links: BTreeMap<u32, SessionLink>,
}

/// See the module text.
pub(super) struct EdgeSessions<T: FnMut(EdgeCommand)> {
    shared: Arc<PitShared>,
    gateways: BTreeMap<MemberId, SessionGateway>,
    /// The session of the feed, and the number of the next message to publish.
    position: (MoldSession, u64),
    tell: T,
}

impl<T: FnMut(EdgeCommand)> EdgeSessions<T> {
    /// No sessions yet; `tell` gives the root of the tree its commands.
    pub fn new(shared: Arc<PitShared>, tell: T) -> EdgeSessions<T> {
        EdgeSessions { shared, gateways: BTreeMap::new(), position: ([0; 10], 1), tell }
    }

    /// The thread.
    pub fn run(mut self, inputs: &Receiver<EdgeSessionsInput>) {
        loop {
            let first = match inputs.recv_timeout(self.patience()) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut orders = 0;
            for input in first.into_iter().chain(inputs.try_iter()).take(TURN) {
                match input {
                    EdgeSessionsInput::Order { gateway, life, body } => {
                        orders += 1;
                        self.hear(gateway, life, &body);
                    }
                    EdgeSessionsInput::Evicted(gateway) => self.leave(gateway),
                    EdgeSessionsInput::Told => {}
                    EdgeSessionsInput::Stop => return,
                }
            }
            if orders > 0 {
                self.wait_for_the_engine();
                (self.tell)(EdgeCommand::Ready(orders));
            }
            self.pass_on();
        }
    }

    fn patience(&self) -> Duration {
        let links = self.gateways.values().flat_map(|gateway| gateway.links.values());
        let due = links.filter_map(|link| link.ouch.as_ref()?.deadline_ms()).min();
        due.map_or(IDLE, |at| Duration::from_millis(at.saturating_sub(clock_ms()).max(1)).min(IDLE))
    }

    /// Waits until the root's thread has taken what it was given: the tree sends no more than the engine can do.
    fn wait_for_the_engine(&self) {
        let (reply, reached) = oneshot::channel();
        if self.shared.send(PitInput::Reached(reply)).is_ok() {
            // A root that does not run answers by dropping it.
            reached.blocking_recv().ok();
        }
    }

    /// An order of the tree.
    fn hear(&mut self, gateway: MemberId, life: u32, body: &[u8]) {
        if self.gateways.get(&gateway).is_some_and(|known| known.life < life) {
            self.leave(gateway);
        }
        let known =
            self.gateways.entry(gateway).or_insert_with(|| SessionGateway { life, ..SessionGateway::default() });
        // Bytes from no participant, or from an earlier life of one, are no order.
        let Some(FromParticipant { link: number, number: at, what }) = FromParticipant::decode(body) else { return };
        if known.life != life || (known.links.len() >= LINKS && !known.links.contains_key(&number)) {
            return;
        }
        let link = known.links.entry(number).or_default();
        let mut next = Vec::new();
        if !link.order.take(at, what, &mut next) {
            tracing::warn!(gateway, link = number, "a message of a participant never came: its connection ends");
            link.end(&self.shared);
        }
        for what in next {
            match what {
                ParticipantEvent::Packet(packet) => link.packet(&self.shared, &packet),
                ParticipantEvent::Taken(bytes) => link.on_way = link.on_way.saturating_sub(bytes as usize),
                ParticipantEvent::Ended => {
                    if let Some(link) = known.links.remove(&number) {
                        link.ouch.iter().for_each(|ouch| self.shared.detach(ouch));
                    }
                    return;
                }
            }
        }
    }

    /// A gateway is gone, and so are its connections.
    fn leave(&mut self, gateway: MemberId) {
        let Some(known) = self.gateways.remove(&gateway) else { return };
        let links = known.links.into_values().filter_map(|link| link.ouch);
        links.for_each(|ouch| self.shared.detach(&ouch));
    }

    /// Publishes what the root has told everybody, and after it what it has told each session. The hub of the feed is
    /// told before that of the sessions, so whatever a session has is in the feed by then.
    fn pass_on(&mut self) {
        for link in self.gateways.values_mut().flat_map(|gateway| gateway.links.values_mut()) {
            link.listen(&self.shared);
        }
        while let Some(packet) = self.shared.feed.next_packet(self.position) {
            let next = (packet.session, packet.next);
            if std::mem::replace(&mut self.position, next) == next {
                break;
            }
            (self.tell)(EdgeCommand::Publish(packet.bytes));
        }
        for (gateway, known) in &mut self.gateways {
            known.links.retain(|number, link| {
                while let Some(bytes) = link.next_bytes(&self.shared) {
                    let told = ToParticipant { link: *number, bytes: Some(bytes) };
                    (self.tell)(EdgeCommand::Report(*gateway, told.encode()));
                }
                let is_over = link.is_over && link.unsent.is_empty();
                if is_over {
                    let told = ToParticipant { link: *number, bytes: None };
                    (self.tell)(EdgeCommand::Report(*gateway, told.encode()));
                }
                !is_over
            });
        }
    }
}

impl SessionLink {
    /// A packet of the participant: the first one asks for its session.
    fn packet(&mut self, shared: &PitShared, packet: &[u8]) {
        if self.is_over {
            return;
        }
        if self.ouch.is_none() {
            return self.attach(shared, packet);
        }
        let bytes = [&(packet.len() as u16).to_be_bytes()[..], packet].concat();
        self.step(shared, SoupServerInput::Received(&bytes));
    }

    fn attach(&mut self, shared: &PitShared, packet: &[u8]) {
        let Some(request) = read_hello(packet) else {
            self.is_over = true;
            return;
        };
        match Attaching::ask(shared, &request) {
            Ok((attaching, attached)) => {
                // Whatever follows goes to the root's thread after it.
                (self.ouch, self.attached) = (Some(attaching.link(shared)), Some(attached));
            }
            Err(why) => {
                self.unsent = refusal_of(&why);
                self.is_over = true;
            }
        }
    }

    fn step(&mut self, shared: &PitShared, input: SoupServerInput<'_>) {
        let Some(ouch) = &mut self.ouch else { return };
        let OuchTurn { bytes, is_over, .. } = ouch.step(shared, input);
        self.unsent.extend(bytes);
        if is_over {
            self.end(shared);
        }
    }

    /// Time passed, or the session has something new.
    fn listen(&mut self, shared: &PitShared) {
        use oneshot::error::TryRecvError;
        match self.attached.as_mut().map(oneshot::Receiver::try_recv) {
            Some(Ok(())) => self.attached = None,
            // The root failed before it knew of the session.
            Some(Err(TryRecvError::Closed)) => return self.end(shared),
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        if !self.is_over {
            self.step(shared, SoupServerInput::Wake);
        }
    }

    fn end(&mut self, shared: &PitShared) {
        (self.is_over, self.attached) = (true, None);
        self.ouch.take().iter().for_each(|ouch| shared.detach(ouch));
    }

    /// The next bytes for the participant, as far as the window has room.
    fn next_bytes(&mut self, shared: &PitShared) -> Option<Vec<u8>> {
        let count = self.unsent.len().min(PARTICIPANT_WINDOW.saturating_sub(self.on_way));
        if count == 0 {
            return None;
        }
        self.on_way += count;
        let bytes: Vec<u8> = self.unsent.drain(..count).collect();
        self.step(shared, SoupServerInput::Sent(count));
        Some(bytes)
    }
}
