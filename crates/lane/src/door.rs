//! The address of a shard, which somebody else may have when the shard starts.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::shard::ShardCounts;

/// How long a shard waits before it tries for the second time; each wait is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Listens once an address can be had. `first` is what the first attempt gave.
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
                     shards serve. Find who has the port (`ss -ltnp`) and stop it, or see that this machine has the \
                     address; nothing need be restarted"
                );
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
        attempt = TcpListener::bind(address).await;
    }
}
