//! Binds the address of a shard, which another process may be using when the shard starts.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::shard::ShardCounts;

/// How long a shard waits before its second attempt; each wait is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Listens once the address is available. `first` is the result of the first attempt.
pub(crate) async fn listen(first: io::Result<TcpListener>, address: SocketAddr, counts: &ShardCounts) -> TcpListener {
    let (mut attempt, mut wait) = (first, FIRST_WAIT);
    loop {
        match attempt {
            Ok(listener) => {
                if counts.listen_failures.load(Ordering::Relaxed) > 0 {
                    tracing::info!(%address, "the lane shard listens now");
                }
                counts.is_listening.store(true, Ordering::Release);
                return listener;
            }
            Err(error) => {
                counts.listen_failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    %error, %address, again_in = ?wait,
                    "a lane shard cannot listen: its clients do not reach it, while it votes and its validator's other \
                     shards serve. Find the process that has the port (`ss -ltnp`) and stop it, or give this \
                     machine the address; no restart is needed"
                );
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
        attempt = TcpListener::bind(address).await;
    }
}
