//! Connections of OUCH sessions.

use std::sync::Arc;
use std::time::Duration;

use protocols::soup::server::SoupServerInput;
use sockets::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use venue::TraderRequest;

use crate::clock::clock_ms;
use crate::listening::serve_each;
use crate::ouch::{OuchLink, OuchTurn, read_hello};
use crate::shared::{Attaching, PitRefusal, PitShared, refusal_of};

/// The most connections, of which one address has at most what it leaves.
const CONNECTIONS: u64 = 1_024;
/// How long the packet before the login may take.
const HELLO_TIME: Duration = Duration::from_secs(15);
/// The most bytes of that packet.
const HELLO_BYTES: usize = 1_024;

/// Serves OUCH until told to stop.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<PitShared>, stopped: watch::Receiver<bool>) {
    let serve = move |stream, from| {
        let shared = shared.clone();
        async move { welcome(stream, Client::at(from), &shared).await }
    };
    serve_each(listener, CONNECTIONS, stopped, serve).await;
}

/// One connection: its session is attached before the login, and detached after the end.
async fn welcome(mut stream: TcpStream, client: Client, shared: &PitShared) {
    drop(stream.set_nodelay(true));
    let Ok(Some(request)) = tokio::time::timeout(HELLO_TIME, hello(&mut stream)).await else { return };
    match attach(shared, client, &request).await {
        Ok(mut link) => {
            talk(stream, shared, client, &mut link).await;
            shared.detach(&link);
        }
        Err(why) => drop(stream.write_all(&refusal_of(&why)).await),
    }
}

async fn attach(shared: &PitShared, client: Client, request: &TraderRequest) -> Result<OuchLink, PitRefusal> {
    let turn = shared.gates.checks.take(client).await?;
    let asked = Attaching::ask(shared, request);
    turn.charge(u64::from(matches!(asked, Err(PitRefusal::Signature))));
    drop(turn);
    let (attaching, attached) = asked?;
    attached.await.map_err(|_| PitRefusal::BeginsAgain)?;
    Ok(attaching.link(shared))
}

/// The request in the packet before the login.
async fn hello(stream: &mut TcpStream) -> Option<TraderRequest> {
    let length = usize::from(stream.read_u16().await.ok()?);
    if !(1..=HELLO_BYTES).contains(&length) {
        return None;
    }
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet).await.ok()?;
    read_hello(&packet)
}

/// Runs the session's machine until its connection ends.
async fn talk(stream: TcpStream, shared: &PitShared, client: Client, link: &mut OuchLink) {
    let (mut source, mut sink) = stream.into_split();
    let mut news = link.news();
    let (mut unsent, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let deadline = link.deadline_ms().map_or(1_000, |at| at.saturating_sub(clock_ms()).max(1));
        let mut taken = 0;
        let mut received = 0;
        tokio::select! {
            read = source.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(bytes) => received = bytes,
            },
            wrote = sink.write(&unsent), if !unsent.is_empty() => match wrote {
                Ok(0) | Err(_) => return,
                Ok(bytes) => taken = bytes,
            },
            told = news.changed() => if told.is_err() { return },
            () = tokio::time::sleep(Duration::from_millis(deadline)) => {}
        }
        unsent.drain(..taken);
        let input = match (received, taken) {
            (0, 0) => SoupServerInput::Wake,
            (0, taken) => SoupServerInput::Sent(taken),
            (received, _) => SoupServerInput::Received(&buffer[..received]),
        };
        // A message may have signatures to check.
        let turn = match received {
            0 => None,
            _ => match shared.gates.sessions.take(client).await {
                Ok(turn) => Some(turn),
                Err(_) => return,
            },
        };
        let OuchTurn { bytes, is_over, forged } = link.step(shared, input);
        drop(turn);
        shared.gates.checks.charge(client, forged);
        unsent.extend(bytes);
        if is_over {
            drop(tokio::time::timeout(HELLO_TIME, sink.write_all(&unsent)).await);
            return;
        }
    }
}
