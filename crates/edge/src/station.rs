//! One member at its sockets: what it receives goes into its node, what the node says is done.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use fairnet::{
    EdgeEffect, EdgeInput, EdgeNode, EdgePlace, FairnessEvent, LinkEnd, LinkPurpose, MemberId, Nanos, NewEdgeOrder,
    OrderClass, ROOT_MEMBER, Seat,
};
use kernel::Planted;
use nix::poll::PollFlags;
use sockets::{Acquaintance, Entry, PlaceId, PlaceLimits, Places};

use crate::clock::EdgeClock;
use crate::datagrams::DatagramSocket;
use crate::emulator::EmulatedLinks;
use crate::participants::ParticipantDoor;
use crate::status::EdgeStatus;
use crate::streams::{MemberStream, StreamEvent};
use crate::wire::StreamTls;

/// Batches of datagrams that are taken before something else has its turn.
const BATCHES: usize = 16;
/// Wait before a stream that ended is opened again, ns.
const RETRY: Nanos = 20_000_000;
/// Orders of a gateway without acknowledgement at which nothing more is read from participants: fewer than it refuses.
const UNACKNOWLEDGED: usize = 2_048;
/// A stranger's stream that was idle for this long makes room for another, ms.
const PATIENCE_MS: u64 = 1_000;

/// What a process asks of a member that it runs.
#[derive(Debug)]
pub enum EdgeCommand {
    /// At the root: publish this payload.
    Publish(Vec<u8>),
    /// At a gateway: an order.
    Order(NewEdgeOrder),
    /// At a gateway: the number of the mid.
    Mid(u64),
    /// At the root: a report for the participants of a gateway.
    Report(MemberId, Vec<u8>),
    /// At all but the root: another root has taken its place, there.
    Root(SocketAddr),
    /// At the root: the engine can take this many more orders.
    Ready(u64),
    /// Say how it is.
    Status(Sender<EdgeStatus>),
}

/// Is told all that a node does, before it is done; may ask for more in turn.
pub type EdgeObserver = Box<dyn FnMut(Nanos, &EdgeEffect, &mut Vec<EdgeCommand>) + Send>;

/// The sockets of a member.
pub struct EdgeSockets {
    datagrams: DatagramSocket,
    listener: TcpListener,
}

impl EdgeSockets {
    /// Binds both.
    ///
    /// # Errors
    /// If an address is taken.
    pub fn bind(datagrams: SocketAddr, streams: SocketAddr) -> io::Result<EdgeSockets> {
        let listener = TcpListener::bind(streams)?;
        listener.set_nonblocking(true)?;
        Ok(EdgeSockets { datagrams: DatagramSocket::bind(datagrams)?, listener })
    }

    /// Where they are.
    ///
    /// # Errors
    /// If a socket is broken.
    pub fn place(&self) -> io::Result<EdgePlace> {
        Ok(EdgePlace { datagrams: self.datagrams.address()?, streams: self.listener.local_addr()? })
    }
}

/// A stream that this member wants to have open.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    to: (MemberId, SocketAddr),
    stream: Option<u64>,
    retry_at: Nanos,
}

struct Open {
    stream: MemberStream,
    place: Option<PlaceId>,
}

/// A member at its sockets.
pub struct Station {
    member: MemberId,
    secret: [u8; 32],
    node: EdgeNode,
    sockets: EdgeSockets,
    streams: BTreeMap<u64, Open>,
    ends: BTreeMap<LinkEnd, u64>,
    places: Places,
    next: u64,
    wanted: BTreeMap<LinkPurpose, Wanted>,
    emulator: Planted<EmulatedLinks>,
    tls: Option<StreamTls>,
    participants: Option<ParticipantDoor>,
    /// Where packets of the feed are sent when they are shown.
    feed_to: Vec<SocketAddr>,
    observer: EdgeObserver,
    effects: Vec<EdgeEffect>,
    commands: Vec<EdgeCommand>,
}

/// What a wait was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Datagrams,
    Listener,
    Stream(u64),
    /// The participants' door, or one of its connections.
    Participant(Option<u32>),
}

impl Station {
    /// A member. All but the root keep a control stream to `root`.
    pub fn new(
        member: MemberId,
        secret: [u8; 32],
        node: EdgeNode,
        sockets: EdgeSockets,
        root: Option<SocketAddr>,
        observer: EdgeObserver,
    ) -> Station {
        let limits = PlaceLimits { total: 4_096, of_address: 1_024, kept: 4_096, patience_ms: PATIENCE_MS };
        let control = |root| Wanted { to: (ROOT_MEMBER, root), stream: None, retry_at: 0 };
        Station {
            member,
            secret,
            node,
            sockets,
            streams: BTreeMap::new(),
            ends: BTreeMap::new(),
            places: Places::new(limits),
            next: 1,
            wanted: root.into_iter().map(|root| (LinkPurpose::Control, control(root))).collect(),
            emulator: Planted::NOTHING,
            tls: None,
            participants: None,
            feed_to: Vec::new(),
            observer,
            effects: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Sends datagrams through emulated links, which only a simulation has.
    pub fn emulate(&mut self, links: Planted<EmulatedLinks>) {
        self.emulator = links;
    }

    /// Encrypts streams: the other members must, too.
    pub fn encrypt(&mut self, tls: StreamTls) {
        self.tls = Some(tls);
    }

    /// At a gateway: takes orders of participants at this door.
    pub fn serve(&mut self, door: ParticipantDoor) {
        self.participants = Some(door);
    }

    /// At a gateway: sends what the venue has published to these addresses when it is shown, as it is.
    pub fn show_to(&mut self, addresses: Vec<SocketAddr>) {
        self.feed_to = addresses;
    }

    /// Whether segmented messages may be used under backlog.
    pub fn set_segmenting(&mut self, is_segmenting: bool) {
        self.sockets.datagrams.set_segmenting(is_segmenting);
    }

    pub(crate) fn due(&self) -> Nanos {
        let links = self.emulator.as_ref().and_then(EmulatedLinks::due).unwrap_or(Nanos::MAX);
        let retry = self.wanted.values().filter(|wanted| wanted.stream.is_none()).map(|wanted| wanted.retry_at).min();
        self.node.due().min(links).min(retry.unwrap_or(Nanos::MAX))
    }

    /// What to wait for.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (Source, BorrowedFd<'_>, PollFlags)> {
        let own = [
            (Source::Datagrams, self.sockets.datagrams.socket().as_fd(), PollFlags::POLLIN),
            (Source::Listener, self.sockets.listener.as_fd(), PollFlags::POLLIN),
        ];
        let streams = self.streams.iter().map(|(number, open)| {
            let write = if open.stream.is_writing() { PollFlags::POLLOUT } else { PollFlags::empty() };
            (Source::Stream(*number), open.stream.socket().as_fd(), PollFlags::POLLIN | write)
        });
        let room = self.room();
        let participants = self.participants.iter().flat_map(move |door| door.sources(room));
        let participants = participants.map(|(number, fd, flags)| (Source::Participant(number), fd, flags));
        own.into_iter().chain(streams).chain(participants)
    }

    /// Something can be received.
    ///
    /// # Errors
    /// If the member's own sockets are broken.
    pub(crate) fn ready(&mut self, clock: &mut EdgeClock, source: Source) -> io::Result<()> {
        let now = clock.now();
        match source {
            Source::Datagrams => self.receive(clock),
            Source::Listener => self.accept(now),
            Source::Stream(number) => {
                self.read(now, number);
                Ok(())
            }
            Source::Participant(number) => {
                let room = self.room();
                self.hear(now, |door, said| match number {
                    Some(number) => door.read(now, number, room, said),
                    None => door.accept(now, said),
                });
                Ok(())
            }
        }
    }

    /// The time is that after a batch was received: a datagram that came meanwhile would seem to have come too early,
    /// and delays and probes of clocks must not be less than true.
    fn receive(&mut self, clock: &mut EdgeClock) -> io::Result<()> {
        for _ in 0..BATCHES {
            let count = self.sockets.datagrams.receive()?;
            let now = clock.now();
            for number in 0..count {
                let (from, bytes) = self.sockets.datagrams.datagram(number);
                self.node.step(now, EdgeInput::Datagram(from, bytes), &mut self.effects);
                self.perform(now, Some(number));
            }
            if count == 0 {
                break;
            }
            self.sockets.datagrams.flush();
            if count < crate::datagrams::BATCH {
                break;
            }
        }
        Ok(())
    }

    /// How many orders of participants a gateway takes now. Outside of the tree it takes none.
    fn room(&self) -> usize {
        match &self.node {
            EdgeNode::Gateway(node) if node.shown() > 0 => UNACKNOWLEDGED.saturating_sub(node.unacknowledged()),
            _ => 0,
        }
    }

    /// Does something at the participants' door; what was said there climbs, stamped now.
    fn hear(&mut self, now: Nanos, with: impl FnOnce(&mut ParticipantDoor, &mut Vec<Vec<u8>>)) {
        let mut said = Vec::new();
        if let Some(door) = &mut self.participants {
            with(door, &mut said);
        }
        if let Some(packets) = self.participants.as_mut().and_then(|door| door.flooded(now)) {
            self.step(now, EdgeInput::Noted(FairnessEvent::Flooded(self.member, packets)));
        }
        for body in said {
            self.step(now, EdgeInput::Order(NewEdgeOrder { class: OrderClass::Critical, body, made: None }));
        }
    }

    fn accept(&mut self, now: Nanos) -> io::Result<()> {
        loop {
            let (socket, from) = match self.sockets.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The other end is gone already, or descriptors are short for a moment.
                Err(_) => return Ok(()),
            };
            let entry = self.places.enter(from.ip(), Acquaintance::Stranger, now / 1_000_000);
            let Entry::Admitted { place, displaced } = entry else { continue };
            let is_displaced = |open: &Open| open.place.is_some() && open.place == displaced;
            if let Some(number) = self.streams.iter().find(|(_, open)| is_displaced(open)).map(|(number, _)| *number) {
                self.close(now, number);
            }
            if let Ok(stream) = MemberStream::accept(self.member, self.secret, socket, self.tls.as_ref()) {
                self.insert(Open { stream, place: Some(place) });
            }
        }
    }

    fn insert(&mut self, open: Open) -> u64 {
        let number = self.next;
        self.next += 1;
        self.streams.insert(number, open);
        number
    }

    fn read(&mut self, now: Nanos, number: u64) {
        let Some(open) = self.streams.get_mut(&number) else { return };
        let mut events = Vec::new();
        let outcome = open.stream.read(&mut events);
        if let Some(place) = open.place.filter(|_| !events.is_empty()) {
            self.places.progress(place, now / 1_000_000);
            self.places.recognize(place);
        }
        for event in events {
            match event {
                StreamEvent::Opened(end) => self.opened(now, end, number),
                StreamEvent::Message(end, message) => self.step(now, EdgeInput::Message(end, message)),
            }
        }
        if let Err(error) = outcome {
            tracing::debug!(member = self.member, %error, "a stream ended");
            self.close(now, number);
        }
    }

    /// A stream is open; one to the same member for the same purpose is old.
    fn opened(&mut self, now: Nanos, end: LinkEnd, number: u64) {
        if let Some(old) = self.ends.get(&end).copied().filter(|old| *old != number) {
            self.close(now, old);
        }
        self.ends.insert(end, number);
        self.step(now, EdgeInput::Opened(end));
    }

    fn close(&mut self, now: Nanos, number: u64) {
        let Some(open) = self.streams.remove(&number) else { return };
        open.place.iter().for_each(|place| self.places.leave(*place));
        for wanted in self.wanted.values_mut().filter(|wanted| wanted.stream == Some(number)) {
            (wanted.stream, wanted.retry_at) = (None, now.saturating_add(RETRY));
        }
        if let Some(end) = open.stream.end().filter(|end| self.ends.get(end) == Some(&number)) {
            self.ends.remove(&end);
            self.step(now, EdgeInput::Closed(end));
            // Reports may be lost with the stream: participants ask for them again when they come back.
            if end.purpose == LinkPurpose::Control {
                self.hear(now, ParticipantDoor::cut_all);
            }
        }
    }

    /// A command of the process.
    pub(crate) fn command(&mut self, now: Nanos, command: EdgeCommand) {
        match command {
            EdgeCommand::Publish(payload) => self.step(now, EdgeInput::Publish(&payload)),
            EdgeCommand::Order(order) => self.step(now, EdgeInput::Order(order)),
            EdgeCommand::Mid(number) => self.step(now, EdgeInput::Mid(number)),
            EdgeCommand::Root(address) => self.change_root(now, address),
            EdgeCommand::Report(gateway, bytes) => self.step(now, EdgeInput::Report(gateway, bytes)),
            EdgeCommand::Ready(orders) => self.step(now, EdgeInput::Ready(orders)),
            // Whoever asked may be gone.
            EdgeCommand::Status(sender) => drop(sender.send(self.status(now))),
        }
    }

    fn status(&self, now: Nanos) -> EdgeStatus {
        EdgeStatus::of(now, self.member, &self.node, self.sockets.datagrams.losses(), self.ends.len())
    }

    /// A step of the node, and what it does.
    pub(crate) fn step(&mut self, now: Nanos, input: EdgeInput<'_>) {
        self.node.step(now, input, &mut self.effects);
        self.perform(now, None);
    }

    fn perform(&mut self, now: Nanos, received: Option<usize>) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            if let EdgeEffect::Forward(to) = effect {
                self.forward(now, to, received);
                continue;
            }
            (self.observer)(now, &effect, &mut self.commands);
            match effect {
                EdgeEffect::Datagram(to, bytes) => self.send(now, to, bytes),
                EdgeEffect::Message(end, message) => {
                    let stream = self.ends.get(&end).and_then(|number| self.streams.get_mut(number));
                    stream.into_iter().for_each(|open| open.stream.say(&message));
                }
                EdgeEffect::Parent(parent) => self.change_parent(now, parent),
                EdgeEffect::End(end) => {
                    let number = self.ends.get(&end).copied();
                    number.into_iter().for_each(|number| self.close(now, number));
                }
                EdgeEffect::Report(report) => self.hear(now, |door, said| door.told(&report, said)),
                EdgeEffect::Show(packet) if !packet.payload.is_empty() => self.pass_on(packet.payload),
                _ => {}
            }
        }
        self.effects = effects;
        if !self.commands.is_empty() {
            let commands = std::mem::take(&mut self.commands);
            commands.into_iter().for_each(|command| self.command(now, command));
        }
    }

    fn forward(&mut self, now: Nanos, to: SocketAddr, received: Option<usize>) {
        let Some(number) = received else { return };
        match self.emulator.as_mut() {
            Some(links) => links.send(now, to, Arc::from(self.sockets.datagrams.datagram(number).1)),
            None => self.sockets.datagrams.forward(to, number),
        }
    }

    fn send(&mut self, now: Nanos, to: SocketAddr, bytes: Arc<[u8]>) {
        match self.emulator.as_mut() {
            Some(links) => links.send(now, to, bytes),
            None => self.sockets.datagrams.send(to, bytes),
        }
    }

    fn change_root(&mut self, now: Nanos, address: SocketAddr) {
        let Some(wanted) = self.wanted.get_mut(&LinkPurpose::Control).filter(|wanted| wanted.to.1 != address) else {
            return;
        };
        let before = wanted.stream;
        *wanted = Wanted { to: (ROOT_MEMBER, address), stream: None, retry_at: now };
        before.into_iter().for_each(|number| self.close(now, number));
    }

    /// Sends what is shown to the participant's own programs.
    fn pass_on(&mut self, payload: Vec<u8>) {
        let payload: Arc<[u8]> = payload.into();
        self.feed_to.iter().for_each(|to| self.sockets.datagrams.send(*to, payload.clone()));
    }

    fn change_parent(&mut self, now: Nanos, parent: Option<Seat>) {
        let before = self.wanted.remove(&LinkPurpose::Orders);
        if let Some(number) = before.and_then(|wanted| wanted.stream) {
            self.close(now, number);
        }
        if let Some(Seat { member, place }) = parent {
            let wanted = Wanted { to: (member, place.streams), stream: None, retry_at: now };
            self.wanted.insert(LinkPurpose::Orders, wanted);
        }
    }

    /// The end of a turn: time has passed, and everything is sent.
    pub(crate) fn end_turn(&mut self, now: Nanos) {
        self.step(now, EdgeInput::Tick);
        let room = self.room();
        self.hear(now, |door, said| door.tend(now, room, said));
        self.open_wanted(now);
        while let Some((to, bytes)) = self.emulator.as_mut().and_then(|links| links.next(now)) {
            self.sockets.datagrams.send(to, bytes);
        }
        self.sockets.datagrams.flush();
        let ended: Vec<u64> = self
            .streams
            .iter_mut()
            .filter_map(|(number, open)| open.stream.write().is_err().then_some(*number))
            .collect();
        ended.into_iter().for_each(|number| self.close(now, number));
    }

    fn open_wanted(&mut self, now: Nanos) {
        let due = self.wanted.iter().filter(|(_, wanted)| wanted.stream.is_none() && wanted.retry_at <= now);
        let due: Vec<(LinkPurpose, Wanted)> = due.map(|(purpose, wanted)| (*purpose, *wanted)).collect();
        for (purpose, wanted) in due {
            let opened = MemberStream::open(self.member, self.secret, wanted.to, purpose, self.tls.as_ref());
            let stream = opened.ok().map(|stream| self.insert(Open { stream, place: None }));
            let retry_at = now.saturating_add(RETRY);
            self.wanted.insert(purpose, Wanted { stream, retry_at, ..wanted });
        }
    }
}
