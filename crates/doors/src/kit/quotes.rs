//! Turns of quotes: each is a search for prices over the whole book, as long as that of a block.

use std::sync::Arc;

use sockets::{Client, Gate, Pass};

use super::{Failure, HEAVY_WAITING_OF_ONE};

/// One quote at a time, in turn by address, and on a thread of its own: however many are asked for, a node that makes
/// blocks loses no thread to them.
pub(crate) struct Quotes {
    gate: Arc<Gate>,
    thread: rayon::ThreadPool,
}

impl Default for Quotes {
    fn default() -> Quotes {
        let named = rayon::ThreadPoolBuilder::new().num_threads(1).thread_name(|_| "quotes".into());
        let thread = named.build().expect("a node has a thread for quotes");
        Quotes { gate: Gate::new(1, HEAVY_WAITING_OF_ONE, None), thread }
    }
}

impl Quotes {
    /// Waits for a turn.
    pub(crate) async fn turn(&self, client: Client) -> Result<Pass, Failure> {
        Ok(self.gate.take(client).await?)
    }

    /// Searches on the thread of quotes; its turn ends with it.
    pub(crate) fn search<T: Send>(&self, turn: Pass, search: impl FnOnce() -> T + Send) -> T {
        let found = self.thread.install(search);
        drop(turn);
        found
    }
}
