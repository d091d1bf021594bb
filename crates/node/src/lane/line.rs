//! A connection between a node and a shard that runs apart: who dials, who answers, two threads, and frames.
//!
//! ```text
//! frame  length 4 · bytes        of length 0: the other end lives
//! ```
//!
//! A connection on which nothing comes for [`SILENCE`] is closed. At most one frame of it waits to be taken, so an end
//! that floods waits for itself.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use lane::{LaneReceiver, LaneSender, answer_node, dial_shard};
use member::apart::{FRAME_BYTES_MAX, WINDOW};
use primitives::{PublicKey, SecretKey};

/// Frames that may wait for the writer: a window of items, and acknowledgements.
const QUEUE: usize = 4 * WINDOW as usize;
/// How often an end says that it lives.
const BEAT: Duration = Duration::from_secs(5);
/// After so much silence the other end is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// The first and the longest wait before a shard is dialled again; each wait is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How often a thread that waits looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// The number of a connection, which no other one in this process has.
pub(crate) type LineId = u64;

static LINES: AtomicU64 = AtomicU64::new(1);

/// The sending end of a connection, which is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Line {
    pub id: LineId,
    frames: SyncSender<Vec<u8>>,
}

/// Held while a frame is being taken: the next one is read after that.
#[derive(Debug)]
pub(crate) struct LineTurn {
    _taken: SyncSender<()>,
}

/// What happens on connections.
#[derive(Debug)]
pub(crate) enum LineEvent {
    Opened(Line),
    Frame(LineId, Vec<u8>, LineTurn),
    Closed(LineId),
}

impl Line {
    /// Sends a frame; false if the other end does not read, or is gone.
    pub fn send(&self, frame: Vec<u8>) -> bool {
        self.frames.try_send(frame).is_ok()
    }
}

/// Dials a shard at this address under these keys until nobody wants it. `tell` is false if nobody does.
pub(crate) fn dial(
    address: &str,
    keys: (&SecretKey, PublicKey),
    tell: impl Fn(LineEvent) -> bool,
    is_wanted: impl Fn() -> bool,
) {
    let (mut wait, mut is_told) = (FIRST_WAIT, false);
    while is_wanted() {
        match resolve(address).and_then(|address| dial_shard(address, keys.0, keys.1)) {
            Ok((sender, receiver)) => {
                (wait, is_told) = (FIRST_WAIT, false);
                serve(sender, receiver, &tell);
            }
            Err(error) if !is_told => {
                is_told = true;
                tracing::warn!(
                    %error, address,
                    "a shard that runs apart cannot be reached; trying again. Start it (`walras shard`), or set its \
                     address and key in [lane] apart"
                );
            }
            Err(_) => {}
        }
        pause(wait, &is_wanted);
        wait = (2 * wait).min(LONGEST_WAIT);
    }
}

fn resolve(address: &str) -> io::Result<SocketAddr> {
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    address.to_socket_addrs()?.next().ok_or_else(unknown)
}

fn pause(wait: Duration, is_wanted: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < wait && is_wanted() {
        std::thread::sleep(LOOK.min(wait));
    }
}

/// Answers the node that dials this listener: only who holds its key gets past the handshake. Each connection has a
/// thread; the newest one counts.
pub(crate) fn answer(
    listener: &TcpListener,
    keys: (&SecretKey, PublicKey),
    tell: impl Fn(LineEvent) -> bool + Clone + Send + 'static,
    is_wanted: impl Fn() -> bool,
) -> io::Result<()> {
    /// Handshakes at a time: strangers that trickle hold no more threads than that.
    const HANDSHAKES: u64 = 16;
    let open = std::sync::Arc::new(AtomicU64::new(0));
    listener.set_nonblocking(true)?;
    while is_wanted() {
        let stream = match listener.accept() {
            Ok((stream, _)) if open.load(Ordering::Acquire) < HANDSHAKES => stream,
            _ => {
                std::thread::sleep(LOOK);
                continue;
            }
        };
        let (own, caller, tell, held) = (keys.0.clone(), keys.1, tell.clone(), open.clone());
        held.fetch_add(1, Ordering::AcqRel);
        let welcome = move || {
            let secured = stream.set_nonblocking(false).and_then(|()| answer_node(stream, &own, caller));
            held.fetch_sub(1, Ordering::AcqRel);
            match secured {
                Ok((sender, receiver)) => serve(sender, receiver, &tell),
                Err(error) => tracing::debug!(%error, "somebody who is not this shard's node has connected"),
            }
        };
        if std::thread::Builder::new().name("shard-line".into()).spawn(welcome).is_err() {
            open.fetch_sub(1, Ordering::AcqRel);
        }
    }
    Ok(())
}

/// Reads frames of a connection until it ends.
fn serve(sender: LaneSender, mut receiver: LaneReceiver, tell: &impl Fn(LineEvent) -> bool) {
    let id = LINES.fetch_add(1, Ordering::Relaxed);
    let (frames, queued) = sync_channel(QUEUE);
    let writer = std::thread::Builder::new().name("line-writer".into()).spawn(move || write(sender, &queued));
    if writer.is_err() || !tell(LineEvent::Opened(Line { id, frames })) {
        return;
    }
    if receiver.set_timeout(Some(SILENCE)).is_ok() {
        while let Ok(Some(frame)) = read(&mut receiver) {
            if frame.is_empty() {
                continue;
            }
            let (taken, next) = sync_channel::<()>(0);
            if !tell(LineEvent::Frame(id, frame, LineTurn { _taken: taken })) {
                break;
            }
            // Nothing is ever sent here: the end of the turn is what this waits for.
            let _ = next.recv();
        }
    }
    tell(LineEvent::Closed(id));
}

fn write(mut sender: LaneSender, queued: &Receiver<Vec<u8>>) {
    loop {
        let frame = match queued.recv_timeout(BEAT) {
            Ok(frame) => frame,
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let head = (frame.len() as u32).to_le_bytes();
        if sender.send(&[&head[..], &frame].concat()).is_err() {
            break;
        }
    }
    sender.close();
}

/// The next frame; `None` at the end of the connection, or if it is too long.
fn read(receiver: &mut LaneReceiver) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 4];
    if !fill(receiver, &mut head)? {
        return Ok(None);
    }
    let length = u32::from_le_bytes(head) as usize;
    if length > FRAME_BYTES_MAX {
        return Ok(None);
    }
    let mut frame = vec![0; length];
    Ok(fill(receiver, &mut frame)?.then_some(frame))
}

fn fill(receiver: &mut LaneReceiver, mut to: &mut [u8]) -> io::Result<bool> {
    while !to.is_empty() {
        match receiver.receive(to)? {
            0 => return Ok(false),
            count => to = &mut to[count..],
        }
    }
    Ok(true)
}
