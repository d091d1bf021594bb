//! A gateway's door for its participant: connections whose packets climb as orders, each stamped when it is complete.
//!
//! The door knows nothing of what packets say, only that each begins with its length in two bytes, as those of
//! SoupBinTCP do. What the venue answers it writes to the connection. See [`fairnet::FromParticipant`].
//!
//! # Properties
//!
//! - *Nothing is dropped in silence.* While the gateway has too many orders without acknowledgement the door reads
//!   nothing, so that the participant's own socket fills.
//! - *Bounded*: connections, bytes of a packet, bytes that wait for a participant; whoever does not read is cut. A
//!   connection that says nothing at first makes room, or is cut ([`DoorLimits::silence`]).
//! - *A flood ends*: an address that sends more packets than its budget is cut, and the root logs it. It has the same
//!   budget when it comes back, so a flood of connections is no way around.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use fairnet::{
    ByteBudget, FromParticipant, Nanos, PARTICIPANT_PACKET_MAX, PARTICIPANT_WINDOW, ParticipantEvent, ToParticipant,
};
use nix::poll::PollFlags;
use sockets::{Acquaintance, Entry, PlaceId, PlaceLimits, Places};

use crate::wire::is_pending;

/// Connections of a gateway.
const LINKS: usize = 64;
/// Addresses whose budgets are remembered.
const ADDRESSES: usize = 1_024;
/// Floods are told to the root this often at most, ns.
const TOLD: Nanos = 1_000_000_000;
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 14;
/// The venue hears of bytes that a participant took when they are so many.
const TAKEN_BYTES: usize = PARTICIPANT_WINDOW / 4;
/// Messages of a connection to the venue, before the last ones: it then ends, and its participant connects again.
const MESSAGES: u32 = u32::MAX - 2;

/// What a door takes.
#[derive(Clone, Copy, Debug)]
pub struct DoorLimits {
    /// Packets of an address at once.
    pub burst: u64,
    /// Packets of an address in a second, in the long run.
    pub per_second: u64,
    /// A connection that was idle for this long makes room for another, ms.
    pub patience_ms: u64,
    /// How long a connection may say nothing at first, ns.
    pub silence: Nanos,
}

impl Default for DoorLimits {
    /// For people and programs that quote: what a machine sends that has lost its head is cut within half a second.
    fn default() -> DoorLimits {
        DoorLimits { burst: 8_192, per_second: 20_000, patience_ms: 5_000, silence: 15_000_000_000 }
    }
}

struct ParticipantLink {
    socket: TcpStream,
    address: IpAddr,
    place: PlaceId,
    since: Nanos,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// The number of its last message to the venue; 0 if the venue has not heard of it.
    number: u32,
    /// Bytes that the participant took, of which the venue has not heard.
    taken: usize,
    /// It ends once the participant has taken what is left.
    is_ending: bool,
}

/// The door.
pub struct ParticipantDoor {
    listener: TcpListener,
    places: Places,
    links: BTreeMap<u32, ParticipantLink>,
    last: u32,
    limits: DoorLimits,
    /// Of each address: packets that it may send, and when it sent the last one.
    budgets: BTreeMap<IpAddr, (ByteBudget, Nanos)>,
    /// A flood of which the root has not heard, and when it may hear of one.
    flood: Option<u64>,
    tell_at: Nanos,
}

impl ParticipantDoor {
    /// Listens for participants.
    ///
    /// # Errors
    /// If the address is taken.
    pub fn bind(address: SocketAddr, limits: DoorLimits) -> io::Result<ParticipantDoor> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let patience_ms = limits.patience_ms;
        let places = Places::new(PlaceLimits { total: LINKS, of_address: LINKS, kept: LINKS, patience_ms });
        let (links, budgets) = (BTreeMap::new(), BTreeMap::new());
        Ok(ParticipantDoor { listener, places, links, last: 0, limits, budgets, flood: None, tell_at: 0 })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the socket is broken.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What to wait for: the listener, and connections by number. Nothing is read while there is no `room` for orders.
    pub(crate) fn sources(&self, room: usize) -> impl Iterator<Item = (Option<u32>, BorrowedFd<'_>, PollFlags)> {
        let door = (None, self.listener.as_fd(), PollFlags::POLLIN);
        let links = self.links.iter().map(move |(number, link)| {
            let read = if room > 0 && !link.is_ending { PollFlags::POLLIN } else { PollFlags::empty() };
            let write = if link.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::POLLOUT };
            (Some(*number), link.socket.as_fd(), read | write)
        });
        std::iter::once(door).chain(links)
    }

    /// Takes those who wait; `said` gets what the venue hears.
    pub(crate) fn accept(&mut self, now: Nanos, said: &mut Vec<Vec<u8>>) {
        // An error is of a connection that is gone already, or of descriptors that are short for a moment.
        while let Ok((socket, from)) = self.listener.accept() {
            let entry = self.places.enter(from.ip(), Acquaintance::Stranger, now / 1_000_000);
            let Entry::Admitted { place, displaced } = entry else { continue };
            let is_displaced = |link: &ParticipantLink| Some(link.place) == displaced;
            if let Some(number) = self.links.iter().find(|(_, link)| is_displaced(link)).map(|(number, _)| *number) {
                self.cut(number, said);
            }
            // Answers are small and each is awaited.
            if socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true)).is_err() {
                self.places.leave(place);
                continue;
            }
            // Numbers come again after four billion connections, of which 64 are open.
            self.last = self.last.wrapping_add(1);
            let (incoming, outgoing) = (Vec::new(), Vec::new());
            let link = ParticipantLink {
                socket,
                address: from.ip(),
                place,
                since: now,
                incoming,
                outgoing,
                number: 0,
                taken: 0,
                is_ending: false,
            };
            self.links.insert(self.last, link);
        }
    }

    /// Reads what a participant said: at most `room` packets are heard now, the others by [`ParticipantDoor::tend`].
    pub(crate) fn read(&mut self, now: Nanos, number: u32, room: usize, said: &mut Vec<Vec<u8>>) {
        let Some(link) = self.links.get_mut(&number) else { return };
        // A socket that is only ready to take something is looked at, too.
        if room == 0 && link.incoming.len() >= READ_BYTES {
            return;
        }
        let mut buffer = [0; READ_BYTES];
        match link.socket.read(&mut buffer) {
            Ok(0) => return self.cut(number, said),
            Ok(count) => link.incoming.extend_from_slice(&buffer[..count]),
            Err(error) if is_pending(&error) || error.kind() == io::ErrorKind::Interrupted => return,
            Err(_) => return self.cut(number, said),
        }
        self.hear(now, number, room, said);
    }

    fn hear(&mut self, now: Nanos, number: u32, room: usize, said: &mut Vec<Vec<u8>>) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let mut used = 0;
        for _ in 0..room {
            let Some((length, rest)) = link.incoming[used..].split_first_chunk::<2>() else { break };
            let length = usize::from(u16::from_be_bytes(*length));
            if !(1..=PARTICIPANT_PACKET_MAX).contains(&length) || link.number >= MESSAGES {
                return self.cut(number, said);
            }
            let Some(packet) = rest.get(..length) else { break };
            if !spend(now, &mut self.budgets, link.address, &self.limits) {
                self.flood = Some(u64::from(link.number));
                return self.cut(number, said);
            }
            link.number += 1;
            let what = ParticipantEvent::Packet(packet.to_vec());
            said.push(FromParticipant { link: number, number: link.number, what }.encode());
            used += 2 + length;
        }
        link.incoming.drain(..used);
        if used > 0 {
            self.places.progress(link.place, now / 1_000_000);
        }
    }

    /// Packets of a connection that was cut for a flood, if the root shall hear of it now.
    pub(crate) fn flooded(&mut self, now: Nanos) -> Option<u64> {
        let flood = self.flood.take_if(|_| now >= self.tell_at)?;
        self.tell_at = now.saturating_add(TOLD);
        self.forget_idle(now);
        Some(flood)
    }

    /// Forgets the budgets of those who would have a full one by now.
    fn forget_idle(&mut self, now: Nanos) {
        let full = self.limits.burst.saturating_mul(1_000_000_000).checked_div(self.limits.per_second);
        let full = full.unwrap_or(Nanos::MAX);
        self.budgets.retain(|_, (_, last)| now.saturating_sub(*last) < full);
    }

    /// What the venue says.
    pub(crate) fn told(&mut self, report: &[u8], said: &mut Vec<Vec<u8>>) {
        let Some(ToParticipant { link: number, bytes }) = ToParticipant::decode(report) else { return };
        let Some(link) = self.links.get_mut(&number) else { return };
        match bytes {
            Some(bytes) => {
                link.outgoing.extend_from_slice(&bytes);
                self.places.recognize(link.place);
            }
            None => link.is_ending = true,
        }
        if link.outgoing.len() > 2 * PARTICIPANT_WINDOW {
            self.cut(number, said);
        }
    }

    /// The end of a turn: packets that had no room are heard, and what waits is written.
    pub(crate) fn tend(&mut self, now: Nanos, mut room: usize, said: &mut Vec<Vec<u8>>) {
        let numbers: Vec<u32> = self.links.keys().copied().collect();
        for number in numbers {
            let before = said.len();
            self.hear(now, number, room, said);
            room = room.saturating_sub(said.len() - before);
            self.write(now, number, said);
        }
    }

    fn write(&mut self, now: Nanos, number: u32, said: &mut Vec<Vec<u8>>) {
        let Some(link) = self.links.get_mut(&number) else { return };
        while !link.outgoing.is_empty() {
            match link.socket.write(&link.outgoing) {
                Ok(0) => return self.cut(number, said),
                Ok(count) => {
                    link.outgoing.drain(..count);
                    link.taken += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_pending(&error) => break,
                Err(_) => return self.cut(number, said),
            }
        }
        if link.taken >= TAKEN_BYTES && link.number < MESSAGES {
            link.number += 1;
            let what = ParticipantEvent::Taken(std::mem::take(&mut link.taken) as u32);
            said.push(FromParticipant { link: number, number: link.number, what }.encode());
        }
        let is_silent = link.number == 0 && now.saturating_sub(link.since) > self.limits.silence;
        if is_silent || (link.is_ending && link.outgoing.is_empty()) {
            self.cut(number, said);
        }
    }

    /// Ends a connection, and says so to a venue that has heard of it.
    fn cut(&mut self, number: u32, said: &mut Vec<Vec<u8>>) {
        let Some(link) = self.links.remove(&number) else { return };
        self.places.leave(link.place);
        if link.number > 0 {
            let what = ParticipantEvent::Ended;
            said.push(FromParticipant { link: number, number: link.number + 1, what }.encode());
        }
    }

    /// Ends all connections: what the venue said to them may be lost.
    pub(crate) fn cut_all(&mut self, said: &mut Vec<Vec<u8>>) {
        let numbers: Vec<u32> = self.links.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.cut(number, said));
    }
}

/// Takes one packet off an address's budget; false if it has none left, or if so many others have begun lately that
/// there is no room to count.
fn spend(
    now: Nanos,
    budgets: &mut BTreeMap<IpAddr, (ByteBudget, Nanos)>,
    address: IpAddr,
    limits: &DoorLimits,
) -> bool {
    if budgets.len() >= ADDRESSES && !budgets.contains_key(&address) {
        return false;
    }
    let full = || (ByteBudget::new(now, limits.burst, limits.per_second), now);
    let (budget, last) = budgets.entry(address).or_insert_with(full);
    *last = now;
    budget.spend(now, 1)
}
