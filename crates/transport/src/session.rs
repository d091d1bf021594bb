//! The life of a connection: calling or being called, greeting, taking the seat, running, ending.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TrySendError;
use std::time::{Duration, Instant};

use bytes::Bytes;
use primitives::PublicKey;
use quinn::{Connection, ConnectionError, RecvStream, SendStream};
use rustls::pki_types::CertificateDer;
use sockets::raw_keys;
use tokio::sync::{MutexGuard, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::endpoint::BULK_STREAMS;
use super::link::{Link, Live};
use super::wire::{self, Decoder, Hello, Message};
use super::{Event, LinkReason, LinkStream, ReceivedFrame, Shared};

/// Maximum time for an unknown caller to authenticate.
const HANDSHAKE: Duration = Duration::from_secs(3);
/// Maximum time for a peer's hello, including its check whether the earlier connection is alive.
const GREETING: Duration = Duration::from_secs(4);
/// Maximum time for a process to show that it is alive before another replaces it: more than a round trip around the
/// world.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
/// How long the side with the higher key waits for a call before it calls.
const NOT_CALLED: Duration = Duration::from_secs(3);
/// Pauses between calls that reach nobody, doubling from the first value to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// Likewise between calls that are rejected.
const PAUSES_REFUSED: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// After a connection of this length the pauses restart from the first value.
const GOOD_WHILE: Duration = Duration::from_secs(5);
/// Interval of retries while the event queue is full.
const EVENTS_FULL: Duration = Duration::from_millis(1);
/// Votes have priority over everything else.
const VOTES_PRIORITY: i32 = 1;
/// Maximum bytes read from a stream at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Memory for a frame is allocated as it arrives, at first at most this much.
const FIRST_ROOM_BYTES: usize = 1 << 20;

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// It is closed already; QUIC knows the reason.
    Closed,
    /// This side closes it.
    Refuse(LinkReason),
    /// The receiver of events is gone.
    Deaf,
}

impl From<quinn::ReadError> for End {
    fn from(_: quinn::ReadError) -> End {
        End::Closed
    }
}

impl From<quinn::WriteError> for End {
    fn from(_: quinn::WriteError) -> End {
        End::Closed
    }
}

impl From<ConnectionError> for End {
    fn from(_: ConnectionError) -> End {
        End::Closed
    }
}

/// How a call ended.
#[derive(PartialEq)]
enum Call {
    /// The peer was not reached, or only briefly.
    Unreachable,
    /// One side rejected the connection.
    Refused,
    /// It was up for some time.
    Ended,
}

/// The reading side of the votes stream.
struct Votes {
    stream: RecvStream,
    decoder: Decoder,
    rest: Bytes,
}

impl Votes {
    fn new(stream: RecvStream) -> Votes {
        Votes { stream, decoder: Decoder::default(), rest: Bytes::new() }
    }

    async fn next(&mut self) -> Result<Message, End> {
        loop {
            while !self.rest.is_empty() {
                if let Some(message) = self.decoder.next(&mut self.rest).map_err(End::Refuse)? {
                    return Ok(message);
                }
            }
            let chunk = self.stream.read_chunk(CHUNK_BYTES, true).await?;
            // The stream lives as long as the connection.
            self.rest = chunk.ok_or(End::Refuse(LinkReason::Malformed))?.bytes;
        }
    }

    async fn hello(&mut self) -> Result<Hello, End> {
        match timeout(GREETING, self.next()).await {
            Ok(Ok(Message::Hello(hello))) => Ok(hello),
            Ok(Ok(_)) => Err(End::Refuse(LinkReason::Malformed)),
            Ok(Err(end)) => Err(end),
            Err(_) => Err(End::Refuse(LinkReason::Silent)),
        }
    }
}

/// Accepts the calls of other validators.
pub(crate) async fn answer_calls(shared: Arc<Shared>) {
    while let Some(incoming) = shared.endpoint.accept().await {
        let free = shared.handshakes.available_permits();
        if free < super::HANDSHAKES_MAX / 2 && incoming.may_retry() && !incoming.remote_address_validated() {
            // A caller with a spoofed address never receives this.
            drop(incoming.retry());
            continue;
        }
        let Ok(permit) = shared.handshakes.clone().try_acquire_owned() else {
            shared.strangers.fetch_add(1, Ordering::Relaxed);
            incoming.ignore();
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let connection = timeout(HANDSHAKE, incoming).await;
            drop(permit);
            let known = connection.ok().and_then(Result::ok).and_then(|connection| {
                let key = key_of(&connection)?;
                let link = shared.links.iter().flatten().find(|link| link.key == key)?.clone();
                Some((connection, link))
            });
            match known {
                Some((connection, link)) => answer(&shared, &link, connection).await,
                None => drop(shared.strangers.fetch_add(1, Ordering::Relaxed)),
            }
        });
    }
}

/// Handles a call of a peer, from its handshake to its end.
async fn answer(shared: &Shared, link: &Link, connection: Connection) {
    let call = link.calls.clone().try_acquire_owned();
    if link.limited().is_some() || call.is_err() {
        link.count(|counters| counters.refusals += 1);
        return LinkReason::Limited.close(&connection);
    }
    let greeted = async {
        let stream = timeout(GREETING, connection.accept_bi()).await.map_err(|_| End::Refuse(LinkReason::Silent))?;
        let (out, votes) = stream?;
        let mut votes = Votes::new(votes);
        let hello = votes.hello().await?;
        let seat = admit(shared, link, &connection, &hello, false).await?;
        let out = greet(shared, out).await?;
        Ok((seat, out, votes))
    };
    let ended = match greeted.await {
        Ok((seat, out, votes)) => {
            drop(call);
            run(shared, link, &connection, seat, out, votes).await
        }
        Err(end) => end,
    };
    conclude(shared, link, &connection, ended).await;
}

/// Calls a peer whenever it is not connected, forever.
pub(crate) async fn keep_calling(shared: Arc<Shared>, link: Arc<Link>) {
    let mut up = link.up.subscribe();
    let mut pauses = (PAUSES[0], PAUSES_REFUSED[0]);
    loop {
        if up.wait_for(|up| !up).await.is_err() {
            return;
        }
        if shared.key.0 > link.key.0 && timeout(NOT_CALLED, up.wait_for(|up| *up)).await.is_ok() {
            continue;
        }
        if let Some(left) = link.limited() {
            sleep(left).await;
            continue;
        }
        let ended = call(&shared, &link).await;
        if ended == Call::Ended {
            pauses = (PAUSES[0], PAUSES_REFUSED[0]);
        }
        let (pause, longest) = match ended {
            Call::Refused => (&mut pauses.1, PAUSES_REFUSED[1]),
            Call::Unreachable | Call::Ended => (&mut pauses.0, PAUSES[1]),
        };
        let (pause, next) = (*pause, pause);
        *next = (2 * pause).min(longest);
        // The pause ends early if the peer calls meanwhile.
        drop(timeout(pause, up.wait_for(|up| *up)).await);
    }
}

/// One call, from resolving the address to its end.
async fn call(shared: &Shared, link: &Link) -> Call {
    let Some(address) = resolve(shared, link).await else { return Call::Unreachable };
    let connecting = shared.endpoint.connect_with(link.client.clone(), address, "walras");
    let Ok(connecting) = connecting else { return Call::Unreachable };
    let connection = match timeout(HANDSHAKE, connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => {
            tracing::debug!(peer = link.index, %address, %error, "no connection");
            return Call::Unreachable;
        }
        Err(_) => return Call::Unreachable,
    };
    let greeted = async {
        let (out, votes) = connection.open_bi().await?;
        let mut votes = Votes::new(votes);
        let out = greet(shared, out).await?;
        let hello = votes.hello().await?;
        let seat = admit(shared, link, &connection, &hello, true).await?;
        Ok((seat, out, votes))
    };
    let begun = Instant::now();
    let ended = match greeted.await {
        Ok((seat, out, votes)) => run(shared, link, &connection, seat, out, votes).await,
        Err(end) => end,
    };
    match conclude(shared, link, &connection, ended).await {
        Some(LinkReason::Stopping | LinkReason::Replaced | LinkReason::Slow | LinkReason::Duplicate) | None => {
            if begun.elapsed() > GOOD_WHILE { Call::Ended } else { Call::Unreachable }
        }
        Some(_) => Call::Refused,
    }
}

/// An address of the peer that this endpoint's socket can reach.
async fn resolve(shared: &Shared, link: &Link) -> Option<SocketAddr> {
    let own = shared.endpoint.local_addr().ok()?;
    match tokio::net::lookup_host(&link.address).await {
        Ok(mut found) => found.find(|address| address.is_ipv4() == own.is_ipv4()),
        Err(error) => {
            tracing::debug!(peer = link.index, address = link.address, %error, "no address");
            None
        }
    }
}

/// Sends the hello.
async fn greet(shared: &Shared, mut out: SendStream) -> Result<SendStream, End> {
    // The stream can only have been closed together with the connection.
    let _ = out.set_priority(VOTES_PRIORITY);
    let Shared { network, incarnation, clock, .. } = *shared;
    let hello = Hello { version: wire::VERSION, network, incarnation, clock_ms: clock() };
    out.write_chunk(wire::control(&Message::Hello(hello))).await?;
    Ok(out)
}

/// Decides whether a connection whose hello has arrived may become the running one, and waits until the previous one
/// has ended.
async fn admit<'a>(
    shared: &Shared,
    link: &'a Link,
    connection: &Connection,
    hello: &Hello,
    called: bool,
) -> Result<MutexGuard<'a, ()>, End> {
    let fits = [
        (hello.version == wire::VERSION, LinkReason::OtherVersion),
        (hello.network == shared.network, LinkReason::OtherNetwork),
    ];
    if let Some((_, reason)) = fits.into_iter().find(|(fits, _)| !fits) {
        return Err(End::Refuse(reason));
    }
    let _turn = link.turn.lock().await;
    if let Some(live) = link.live() {
        if live.incarnation == hello.incarnation {
            let lower_called = called == (shared.key.0 < link.key.0);
            if live.called != called && !lower_called {
                return Err(End::Refuse(LinkReason::Duplicate));
            }
        } else if lives(link, &live).await {
            return Err(End::Refuse(LinkReason::KeyInUse));
        }
        LinkReason::Replaced.close(&live.connection);
    }
    let seat = link.seat.lock().await;
    // Both are times of this century, unless the peer lies: then the difference is clamped.
    let ahead_ms = (i128::from(hello.clock_ms) - i128::from((shared.clock)())).clamp(i64::MIN.into(), i64::MAX.into());
    let ahead_ms = i64::try_from(ahead_ms).expect("clamped");
    link.begin(Live { connection: connection.clone(), incarnation: hello.incarnation, called, ahead_ms });
    Ok(seat)
}

/// Whether the other end of a connection answers.
async fn lives(link: &Link, live: &Live) -> bool {
    let mut nonce = [0; 8];
    getrandom::fill(&mut nonce).expect("the system gives random numbers");
    let mut pong = link.pong.subscribe();
    link.ping(nonce);
    tokio::select! {
        answered = timeout(SIGN_OF_LIFE, pong.wait_for(|pong| *pong == nonce)) => matches!(answered, Ok(Ok(_))),
        _ = live.connection.closed() => false,
    }
}

/// Runs a connection that is up until it ends.
async fn run(
    shared: &Shared,
    link: &Link,
    connection: &Connection,
    seat: MutexGuard<'_, ()>,
    out: SendStream,
    votes: Votes,
) -> End {
    let (begun, peer) = (Instant::now(), link.index);
    tracing::info!(peer, address = %connection.remote_address(), "peer connected");
    let ahead_ms = link.live().map_or(0, |live| live.ahead_ms);
    let end = match send_event(shared, Event::Up { peer, ahead_ms }).await {
        Err(end) => end,
        Ok(()) => {
            let ended = tokio::select! {
                end = write_votes(link, out) => end,
                end = read_votes(shared, link, votes) => end,
                end = write_bulk(link, connection) => end,
                end = read_bulk(shared, link, connection) => end,
            };
            let Err(end) = ended;
            end
        }
    };
    if let End::Refuse(reason) = end {
        reason.close(connection);
    }
    link.end(begun);
    drop(send_event(shared, Event::Down { peer }).await);
    drop(seat);
    end
}

/// Closes the connection if it is still open, and updates the peer's state; returns the reason, if either side gave
/// one.
async fn conclude(shared: &Shared, link: &Link, connection: &Connection, end: End) -> Option<LinkReason> {
    let (reason, theirs) = match (end, connection.close_reason()) {
        (End::Refuse(reason), None | Some(ConnectionError::LocallyClosed)) => (Some(reason), false),
        (_, Some(ConnectionError::ApplicationClosed(close))) => (LinkReason::from_code(close.error_code), true),
        _ => (None, false),
    };
    let peer = link.index;
    match reason {
        Some(reason) if !theirs => {
            reason.close(connection);
            link.count(|counters| counters.refusals += 1);
            if reason.is_offence() {
                link.offend(reason);
            }
            tracing::warn!(peer, %reason, "peer refused");
        }
        Some(reason) => tracing::info!(peer, %reason, "peer ended the connection"),
        None => tracing::info!(peer, reason = ?connection.close_reason(), "connection ended"),
    }
    use LinkReason::{KeyInUse, OtherNetwork, OtherVersion};
    match reason {
        Some(reason @ (OtherNetwork | OtherVersion)) => {
            drop(send_event(shared, Event::Refused { peer, reason }).await);
        }
        Some(KeyInUse) if theirs => drop(send_event(shared, Event::Refused { peer, reason: KeyInUse }).await),
        _ => {}
    }
    reason
}

/// Passes an event to the shell; waits while its queue is full.
async fn send_event(shared: &Shared, event: Event) -> Result<(), End> {
    let mut event = event;
    loop {
        match shared.events.try_send(event) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(back)) => event = back,
            Err(TrySendError::Disconnected(_)) => return Err(End::Deaf),
        }
        sleep(EVENTS_FULL).await;
    }
}

async fn write_votes(link: &Link, mut out: SendStream) -> Result<Infallible, End> {
    loop {
        let mut waiting = link.pop_votes();
        if waiting.is_empty() {
            link.votes_waiting.notified().await;
        } else {
            out.write_all_chunks(&mut waiting).await?;
        }
    }
}

async fn read_votes(shared: &Shared, link: &Link, mut votes: Votes) -> Result<Infallible, End> {
    loop {
        match votes.next().await? {
            Message::Votes(frame) => {
                link.count(|counters| counters.votes_received.add(frame.len()));
                let frame = ReceivedFrame { _room: room(&link.votes_room, frame.len()).await, bytes: frame };
                send_event(shared, Event::Frame { peer: link.index, stream: LinkStream::Votes, bytes: frame }).await?;
            }
            Message::Ping(nonce) => link.answer(nonce),
            Message::Pong(nonce) => drop(link.pong.send_replace(nonce)),
            Message::Hello(_) => return Err(End::Refuse(LinkReason::Malformed)),
        }
    }
}

/// Waits until the shell holds so few of the peer's bytes that another frame of this length fits.
async fn room(room: &Arc<Semaphore>, bytes: usize) -> tokio::sync::OwnedSemaphorePermit {
    // Empty frames need memory too.
    let bytes = u32::try_from(bytes.max(64)).expect("frames are below 4 GiB");
    room.clone().acquire_many_owned(bytes).await.expect("it is never closed")
}

/// Runs as many writers as there may be streams at once.
async fn write_bulk(link: &Link, connection: &Connection) -> Result<Infallible, End> {
    let writers = (0..BULK_STREAMS).map(|_| Box::pin(write_frames(link, connection)));
    futures_util::future::select_all(writers).await.0
}

/// Writes one frame after the other, each until it has been acknowledged: so the number of writers bounds the frames
/// in flight.
async fn write_frames(link: &Link, connection: &Connection) -> Result<Infallible, End> {
    loop {
        let Some(frame) = link.pop_bulk() else {
            link.bulk_waiting.notified().await;
            continue;
        };
        let mut out = connection.open_uni().await?;
        let header = wire::bulk_header(frame.len());
        out.write_all_chunks(&mut [header, Bytes::from_owner(frame)]).await?;
        let _ = out.finish();
        drop(out.stopped().await);
    }
}

/// Accepts the streams that the peer opens, each in its own task; QUIC bounds their number.
async fn read_bulk(shared: &Shared, link: &Link, connection: &Connection) -> Result<Infallible, End> {
    let mut readers = JoinSet::new();
    loop {
        tokio::select! {
            stream = connection.accept_uni() => {
                let most = shared.frame_bytes_max;
                let room = link.bulk_room.clone();
                readers.spawn(read_frame(stream?, most, room));
            }
            Some(read) = readers.join_next() => {
                let frame = read.expect("a reader does not panic")?;
                link.count(|counters| counters.bulk_received.add(frame.len()));
                send_event(shared, Event::Frame { peer: link.index, stream: LinkStream::Bulk, bytes: frame }).await?;
            }
        }
    }
}

/// Reads the single frame of a bulk stream.
async fn read_frame(mut stream: RecvStream, most: usize, bulk_room: Arc<Semaphore>) -> Result<ReceivedFrame, End> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await.map_err(|error| match error {
        quinn::ReadExactError::FinishedEarly(_) => End::Refuse(LinkReason::Malformed),
        quinn::ReadExactError::ReadError(error) => error.into(),
    })?;
    let length = u32::from_le_bytes(header) as usize;
    if length > most {
        return Err(End::Refuse(LinkReason::TooLarge));
    }
    let room = room(&bulk_room, length).await;
    let mut bytes = Vec::with_capacity(length.min(FIRST_ROOM_BYTES));
    while let Some(chunk) = stream.read_chunk(CHUNK_BYTES, true).await? {
        if bytes.len() + chunk.bytes.len() > length {
            return Err(End::Refuse(LinkReason::Malformed));
        }
        bytes.extend_from_slice(&chunk.bytes);
    }
    (bytes.len() == length).then_some(ReceivedFrame { bytes, _room: room }).ok_or(End::Refuse(LinkReason::Malformed))
}

/// The key that the other side of a connection has proved to hold.
fn key_of(connection: &Connection) -> Option<PublicKey> {
    let shown = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    raw_keys::key_shown(&shown)
}
