//! Snapshots over SoupBinTCP, for whoever asks: name and password do not matter.

use std::sync::Arc;
use std::time::Duration;

use protocols::glimpse::snapshot_end;
use protocols::soup::SoupLimits;
use protocols::soup::server::{SoupLog, SoupServer, SoupServerEffect, SoupServerInput};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use crate::clock::clock_ms;
use crate::listening::serve_each;
use crate::shared::{PitInput, PitShared};

/// The most snapshots that are read at once, of which one address reads at most what it leaves: each is in memory.
const READERS: u64 = 32;
/// How long the last bytes may take.
const LAST: Duration = Duration::from_secs(15);

/// Serves snapshots until told to stop.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<PitShared>, stopped: watch::Receiver<bool>) {
    let serve = move |stream, from| {
        let shared = shared.clone();
        async move { talk(stream, from, &shared).await }
    };
    serve_each(listener, READERS, stopped, serve).await;
}

async fn talk(mut stream: TcpStream, from: std::net::IpAddr, shared: &PitShared) {
    drop(stream.set_nodelay(true));
    let (mut source, mut sink) = stream.split();
    let mut soup = SoupServer::new(SoupLimits::default(), clock_ms());
    let (mut log, mut unsent, mut buffer) = (SoupLog::new([b' '; 10]), Vec::new(), vec![0; 1_024]);
    loop {
        let deadline = soup.deadline_ms().map_or(1_000, |at| at.saturating_sub(clock_ms()).max(1));
        let (mut taken, mut received) = (0, 0);
        tokio::select! {
            read = source.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(bytes) => received = bytes,
            },
            wrote = sink.write(&unsent), if !unsent.is_empty() => match wrote {
                Ok(0) | Err(_) => return,
                Ok(bytes) => taken = bytes,
            },
            () = tokio::time::sleep(Duration::from_millis(deadline)) => {}
        }
        unsent.drain(..taken);
        let input = match (received, taken) {
            (0, 0) => SoupServerInput::Wake,
            (0, taken) => SoupServerInput::Sent(taken),
            (received, _) => SoupServerInput::Received(&buffer[..received]),
        };
        let mut effects: std::collections::VecDeque<_> = soup.step(clock_ms(), input, &log).into();
        while let Some(effect) = effects.pop_front() {
            match effect {
                SoupServerEffect::Send(bytes) => unsent.extend(bytes),
                SoupServerEffect::Authorize(_) => {
                    let taken = snapshot(shared).await;
                    let is_there = taken.is_some();
                    if let Some(taken) = taken {
                        log = taken;
                        shared.feed.subscribe(from, clock_ms());
                    }
                    effects.extend(soup.step(clock_ms(), SoupServerInput::Verdict(is_there), &log));
                }
                // It has nothing to say.
                SoupServerEffect::Message(_) => {}
                SoupServerEffect::Close(_) => {
                    drop(tokio::time::timeout(LAST, sink.write_all(&unsent)).await);
                    return;
                }
            }
        }
    }
}

/// The books as the root has them now; `None` if it does not run.
async fn snapshot(shared: &PitShared) -> Option<SoupLog> {
    shared.scope().ok()?;
    let (reply, answer) = oneshot::channel();
    let feed = shared.feed.clone();
    let look = move |root: &venue::VenueRoot<store::RealDisk>| {
        // Who asked may be gone.
        drop(reply.send(feed.snapshot(root, clock_ms())));
    };
    shared.send(PitInput::Ask(Box::new(look))).ok()?;
    let (session, messages, next) = answer.await.ok()??;
    let mut log = SoupLog::new(session);
    for message in messages.into_iter().chain([snapshot_end(next)]) {
        log.publish(message).ok()?;
    }
    log.end();
    Some(log)
}
