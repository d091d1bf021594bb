//! UDP: packets to everybody, and answers to those who missed some.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use protocols::mold::HEADER;
use tokio::net::UdpSocket;
use tokio::sync::watch;

use crate::clock::clock_ms;
use crate::feed::NextPacket;
use crate::shared::PitShared;

/// A heartbeat comes so often.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How often the end of a session is told.
const ENDS: u32 = 10;
/// Packets that are sent before requests are read.
const BURST: usize = 64;

/// Sends the feed to each address of a list, and answers requests, until told to stop.
pub(crate) async fn serve(
    socket: UdpSocket,
    to: Vec<SocketAddr>,
    shared: Arc<PitShared>,
    mut stopped: watch::Receiver<bool>,
) {
    tokio::select! {
        () = run(&socket, &to, &shared) => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
}

async fn run(socket: &UdpSocket, to: &[SocketAddr], shared: &PitShared) {
    let (mut position, mut ends, mut buffer) = (([0; 10], 1), 0, [0; HEADER + 1]);
    let mut beat = tokio::time::interval(HEARTBEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        // It is made before the messages are looked at, so that it misses none.
        let news = shared.feed.news.notified();
        tokio::pin!(news);
        news.as_mut().enable();
        let is_behind = burst(socket, to, shared, &mut position).await;
        tokio::select! {
            () = std::future::ready(()), if is_behind => beat.reset(),
            () = &mut news => {}
            _ = beat.tick() => heartbeat(socket, to, shared, position, &mut ends).await,
            asked = socket.recv_from(&mut buffer) => {
                if let Ok((bytes, from)) = asked
                    && let Some(answer) = shared.feed.rewind(from.ip(), &buffer[..bytes], clock_ms())
                {
                    // Who asked may be gone.
                    drop(socket.send_to(&answer, from).await);
                }
            }
        }
    }
}

/// Sends what is new; whether there is more.
async fn burst(
    socket: &UdpSocket,
    to: &[SocketAddr],
    shared: &PitShared,
    position: &mut (protocols::mold::MoldSession, u64),
) -> bool {
    for _ in 0..BURST {
        let Some(NextPacket { bytes, session, next }) = shared.feed.next_packet(*position) else { return false };
        if (session, next) == *position {
            return false;
        }
        *position = (session, next);
        send(socket, to, &bytes).await;
    }
    true
}

async fn heartbeat(
    socket: &UdpSocket,
    to: &[SocketAddr],
    shared: &PitShared,
    position: (protocols::mold::MoldSession, u64),
    ends: &mut u32,
) {
    let Some(NextPacket { bytes, .. }) = shared.feed.next_packet(position) else { return };
    let is_end = protocols::mold::MoldPacket::decode(&bytes).is_ok_and(|packet| packet.is_end);
    *ends = if is_end { *ends + 1 } else { 0 };
    if *ends <= ENDS {
        send(socket, to, &bytes).await;
    }
}

async fn send(socket: &UdpSocket, to: &[SocketAddr], bytes: &[u8]) {
    for address in to {
        // What a network loses is asked for again.
        drop(socket.send_to(bytes, address).await);
    }
}
