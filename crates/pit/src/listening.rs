//! A TCP door of the venue: so many connections at once, until told to stop.

use std::net::IpAddr;
use std::time::Duration;

use sockets::Shares;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Pause before the door tries again when the system is out of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves each connection until told to stop; at most `most` at once, of which one address has at most what it leaves.
pub(crate) async fn serve_each<Served: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    most: u64,
    mut stopped: watch::Receiver<bool>,
    serve: impl Fn(TcpStream, IpAddr) -> Served,
) {
    let shares = Shares::new(most);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Some(share) = shares.take(from.ip(), 1) else { continue };
        let (served, mut stopped) = (serve(stream, from.ip()), stopped.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = served => {}
                _ = stopped.wait_for(|stop| *stop) => {}
            }
            drop(share);
        });
    }
}
