//! Datagrams in batches: one system call receives up to 64 and one sends up to 64.
//!
//! Under backlog, datagrams of one length to one receiver leave as one *segmented* message (UDP GSO), which the kernel
//! cuts up at the last moment: several times the rate, for more latency of the first. So it is used only if a batch is
//! so full that a queue has formed.

use std::cell::RefCell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, SockaddrLike, recvmmsg, sendmmsg, setsockopt,
    sockopt,
};

/// Datagrams of one system call.
pub const BATCH: usize = 64;
/// Longest datagram that is taken; longer ones are dropped and counted.
pub const DATAGRAM_BYTES: usize = 2_048;
/// So many datagrams in one batch are a backlog.
const BACKLOG: usize = 8;
/// Segments of one message, and its bytes, at most.
const SEGMENTS: usize = 32;
const MESSAGE_BYTES: usize = 60_000;
/// Bytes that the kernel shall buffer in each direction.
const BUFFER_BYTES: usize = 4 << 20;

/// What is sent.
#[derive(Clone, Debug)]
enum Bytes {
    /// The datagram of this number in the batch that was received last.
    Received(usize),
    /// Bytes that several receivers get.
    Shared(Arc<[u8]>),
}

/// Buffers of a batch, what was received into them, and what went wrong.
type Incoming<'a> = (&'a mut [Box<[u8]>], &'a mut Vec<(usize, SocketAddr)>, &'a mut DatagramLosses);

/// How many datagrams went wrong on this side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramLosses {
    /// Longer than [`DATAGRAM_BYTES`].
    pub long: u64,
    /// Not sent, because the kernel's buffer was full or the address cannot be reached.
    pub unsent: u64,
}

/// Headers of system calls, with addresses of one family. All sockets of a thread share them.
struct Family<S> {
    incoming: MultiHeaders<S>,
    outgoing: MultiHeaders<S>,
    segmented: MultiHeaders<S>,
    to: fn(&SocketAddr) -> Option<S>,
    from: fn(&S) -> SocketAddr,
}

thread_local! {
    static V4: RefCell<Family<SockaddrIn>> =
        RefCell::new(Family::new(to_v4, |from| SocketAddr::V4(SocketAddrV4::new(from.ip(), from.port()))));
    static V6: RefCell<Family<SockaddrIn6>> =
        RefCell::new(Family::new(to_v6, |from| SocketAddr::V6(SocketAddrV6::new(from.ip(), from.port(), 0, 0))));
}

fn to_v4(address: &SocketAddr) -> Option<SockaddrIn> {
    if let SocketAddr::V4(address) = address { Some(SockaddrIn::from(*address)) } else { None }
}

fn to_v6(address: &SocketAddr) -> Option<SockaddrIn6> {
    if let SocketAddr::V6(address) = address { Some(SockaddrIn6::from(*address)) } else { None }
}

impl<S: SockaddrLike + Copy> Family<S> {
    fn new(to: fn(&SocketAddr) -> Option<S>, from: fn(&S) -> SocketAddr) -> Family<S> {
        let space = nix::cmsg_space!(u16);
        Family {
            incoming: MultiHeaders::preallocate(BATCH, None),
            outgoing: MultiHeaders::preallocate(BATCH, None),
            segmented: MultiHeaders::preallocate(BATCH, Some(space)),
            to,
            from,
        }
    }
}

/// A UDP socket that never blocks.
pub struct DatagramSocket {
    socket: UdpSocket,
    is_v4: bool,
    buffers: Vec<Box<[u8]>>,
    /// Of the last batch: length and sender.
    received: Vec<(usize, SocketAddr)>,
    queue: Vec<(SocketAddr, Bytes)>,
    losses: DatagramLosses,
    is_segmenting: bool,
}

impl DatagramSocket {
    /// Binds an address.
    ///
    /// # Errors
    /// If it is taken, or sockets are refused.
    pub fn bind(address: SocketAddr) -> io::Result<DatagramSocket> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // The kernel may grant less; bursts then lose more, and are recovered.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER_BYTES);
        let _ = setsockopt(&socket, sockopt::SndBuf, &BUFFER_BYTES);
        let is_v4 = address.is_ipv4();
        let buffers = (0..BATCH).map(|_| vec![0; DATAGRAM_BYTES].into_boxed_slice()).collect();
        let losses = DatagramLosses::default();
        Ok(DatagramSocket {
            socket,
            is_v4,
            buffers,
            received: Vec::new(),
            queue: Vec::new(),
            losses,
            is_segmenting: true,
        })
    }

    /// Whether segmented messages may be used.
    pub fn set_segmenting(&mut self, is_segmenting: bool) {
        self.is_segmenting = is_segmenting;
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// If the socket is broken.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What to wait for.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// What went wrong so far.
    pub fn losses(&self) -> DatagramLosses {
        self.losses
    }

    /// Receives the next batch: how many datagrams it has, none if there are none.
    ///
    /// # Errors
    /// If the socket is broken.
    pub fn receive(&mut self) -> io::Result<usize> {
        let fd = self.socket.as_raw_fd();
        self.received.clear();
        let parts = (&mut self.buffers[..], &mut self.received, &mut self.losses);
        match self.is_v4 {
            true => V4.with_borrow_mut(|family| receive(fd, family, parts)),
            false => V6.with_borrow_mut(|family| receive(fd, family, parts)),
        }?;
        Ok(self.received.len())
    }

    /// A datagram of the last batch, and its sender.
    pub fn datagram(&self, number: usize) -> (SocketAddr, &[u8]) {
        let (length, from) = self.received[number];
        (from, &self.buffers[number][..length])
    }

    /// Will send on a datagram of the last batch.
    pub fn forward(&mut self, to: SocketAddr, number: usize) {
        self.queue.push((to, Bytes::Received(number)));
    }

    /// Will send these bytes.
    pub fn send(&mut self, to: SocketAddr, bytes: Arc<[u8]>) {
        self.queue.push((to, Bytes::Shared(bytes)));
    }

    /// Datagrams that will be sent.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Sends what was asked for since the last flush. What the kernel does not take is lost, as on any link.
    pub fn flush(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        let is_backlog = self.is_segmenting && self.received.len() >= BACKLOG;
        if is_backlog {
            // Stable: what goes to one receiver keeps its order.
            self.queue.sort_by_key(|(to, _)| *to);
        }
        let slice = |bytes| match bytes {
            &Bytes::Received(number) => &self.buffers[number][..self.received[number].0],
            Bytes::Shared(bytes) => bytes,
        };
        let queue: Vec<(SocketAddr, IoSlice<'_>)> =
            self.queue.iter().map(|(to, bytes)| (*to, IoSlice::new(slice(bytes)))).collect();
        let fd = self.socket.as_raw_fd();
        self.losses.unsent += match self.is_v4 {
            true => V4.with_borrow_mut(|family| send_by(fd, family, &queue, is_backlog)),
            false => V6.with_borrow_mut(|family| send_by(fd, family, &queue, is_backlog)),
        };
        drop(queue);
        self.queue.clear();
    }
}

fn receive<S: SockaddrLike + Copy>(
    fd: i32,
    family: &mut Family<S>,
    (buffers, received, losses): Incoming<'_>,
) -> io::Result<()> {
    let mut slices: Vec<[IoSliceMut<'_>; 1]> = buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
    let results = match recvmmsg(fd, &mut family.incoming, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None) {
        Ok(results) => results,
        // A port that nobody listens at answers to an earlier datagram.
        Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for result in results {
        let Some(from) = result.address.as_ref().map(family.from) else { continue };
        // Its place in the batch stays, with nothing in it.
        let is_long = result.flags.contains(MsgFlags::MSG_TRUNC);
        losses.long += u64::from(is_long);
        received.push((if is_long { 0 } else { result.bytes }, from));
    }
    Ok(())
}

fn send_by<S: SockaddrLike + Copy>(
    fd: i32,
    family: &mut Family<S>,
    queue: &[(SocketAddr, IoSlice<'_>)],
    is_backlog: bool,
) -> u64 {
    if is_backlog { send_segmented(fd, family, queue) } else { send(fd, family, queue) }
}

/// One datagram a message. Returns how many were not sent.
fn send<S: SockaddrLike + Copy>(fd: i32, family: &mut Family<S>, queue: &[(SocketAddr, IoSlice<'_>)]) -> u64 {
    let (mut slices, mut addresses) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    let mut lost = 0;
    for part in queue.chunks(BATCH) {
        slices.clear();
        addresses.clear();
        for (to, slice) in part {
            match (family.to)(to) {
                Some(address) => {
                    slices.push([*slice]);
                    addresses.push(Some(address));
                }
                None => lost += 1,
            }
        }
        lost += all_of(slices.len(), |at| {
            let results =
                sendmmsg(fd, &mut family.outgoing, &slices[at..], &addresses[at..], [], MsgFlags::MSG_DONTWAIT)?;
            Ok(results.count())
        });
    }
    lost
}

/// Sends from each place on until all is sent. What the kernel refuses is left out, one message at a time.
fn all_of(count: usize, mut send: impl FnMut(usize) -> nix::Result<usize>) -> u64 {
    let (mut at, mut lost) = (0, 0);
    while at < count {
        match send(at) {
            Ok(sent) => at += sent,
            Err(Errno::EINTR) => {}
            Err(_) => {
                lost += 1;
                at += 1;
            }
        }
    }
    lost
}

/// Datagrams for one receiver that leave as one message: of one length, except that the last may be shorter.
struct Segmented<'a> {
    to: SocketAddr,
    length: usize,
    bytes: usize,
    slices: Vec<IoSlice<'a>>,
}

impl<'a> Segmented<'a> {
    fn takes(&self, to: &SocketAddr, slice: &IoSlice<'_>) -> bool {
        let is_open = self.slices.last().is_some_and(|last| last.len() == self.length);
        let is_room = self.slices.len() < SEGMENTS && self.bytes + slice.len() <= MESSAGE_BYTES;
        self.to == *to && is_open && is_room && slice.len() <= self.length && !slice.is_empty()
    }

    fn push(&mut self, slice: IoSlice<'a>) {
        self.bytes += slice.len();
        self.slices.push(slice);
    }
}

/// Groups a queue that is sorted by receiver.
fn segmented<'a>(queue: &[(SocketAddr, IoSlice<'a>)]) -> Vec<Segmented<'a>> {
    let mut messages: Vec<Segmented<'a>> = Vec::new();
    for (to, slice) in queue {
        match messages.last_mut().filter(|message| message.takes(to, slice)) {
            Some(message) => message.push(*slice),
            None => {
                let (length, slices) = (slice.len(), vec![*slice]);
                messages.push(Segmented { to: *to, length, bytes: length, slices });
            }
        }
    }
    messages
}

/// Segmented messages, those of one length in one system call. Returns how many datagrams were not sent.
fn send_segmented<S: SockaddrLike + Copy>(fd: i32, family: &mut Family<S>, queue: &[(SocketAddr, IoSlice<'_>)]) -> u64 {
    let messages = segmented(queue);
    let mut lost = 0;
    for run in messages.chunk_by(|one, other| one.length == other.length).flat_map(|run| run.chunks(BATCH)) {
        let slices: Vec<&[IoSlice<'_>]> = run.iter().map(|message| &message.slices[..]).collect();
        let addresses: Vec<Option<S>> = run.iter().map(|message| (family.to)(&message.to)).collect();
        let length = run[0].length as u16;
        lost += all_of(run.len(), |at| {
            let control = [ControlMessage::UdpGsoSegments(&length)];
            let results =
                sendmmsg(fd, &mut family.segmented, &slices[at..], &addresses[at..], control, MsgFlags::MSG_DONTWAIT)?;
            Ok(results.count())
        });
    }
    lost
}
