//! What both interfaces, HTTP and Ethereum's JSON-RPC, have: the node behind them, turns and limits of their clients,
//! the checks of every request, and failures.

mod ending;
mod failure;
pub(crate) mod guard;
mod pages;
mod quotes;
mod rate_limits;
mod upgrade;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::HeaderMap;
use primitives::{Superblock, TransactionId};
use readers::Published;
use sockets::{Gate, Shares};
use tower_http::compression::CompressionLayer;

use crate::backend::Backend;
use crate::roles::{Access, Role};
use crate::settings::Http;
pub(crate) use ending::{LINGER, ended_by};
pub(crate) use failure::{Answered, Failure};
pub(crate) use pages::{Pages, check_pages};
use quotes::Quotes;
pub(crate) use rate_limits::{RateLimits, most_of_one};
pub(crate) use upgrade::Upgrade;

/// Maximum number of waiting requests of one address that execute contracts or scan.
pub(crate) const HEAVY_WAITING_OF_ONE: usize = 256;

/// The state that the calls of both interfaces share.
#[derive(Clone)]
pub(crate) struct Kit {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) settings: Arc<Http>,
    /// What requests share.
    pub(crate) rates: RateLimits,
    /// Connections of the stream.
    pub(crate) streams: Shares,
    /// Turns of requests that execute contracts or scan, as many as the machine has cores; both doors share them.
    pub(crate) heavy: Arc<Gate>,
    /// Turns of quotes.
    pub(crate) quotes: Arc<Quotes>,
    access: Arc<Access>,
    /// Which pages may use the doors.
    pub(crate) pages: Arc<Pages>,
    /// Whether the operator has stopped the intake.
    pub(crate) drains: Arc<AtomicBool>,
}

impl Kit {
    /// What the doors of a node have.
    pub(crate) fn new(backend: Arc<dyn Backend>, settings: Http, access: Access) -> Kit {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Kit {
            pages: Arc::new(Pages::of(&settings, backend.is_developers())),
            rates: RateLimits::new(&settings),
            streams: Shares::new(settings.stream_connections as u64),
            heavy: Gate::new(cores, HEAVY_WAITING_OF_ONE, None),
            quotes: Arc::default(),
            settings: Arc::new(settings),
            access: Arc::new(access),
            drains: Arc::default(),
            backend,
        }
    }

    /// The same for the address of probes.
    pub(crate) fn for_probes(&self) -> Kit {
        Kit { access: Arc::new(self.access.of_probes()), ..self.clone() }
    }

    /// The same for another door with the same limits: what one door uses is not available at the other.
    pub(crate) fn for_ethereum(&self) -> Kit {
        let Kit { settings, .. } = self;
        let (rates, streams) = (RateLimits::new(settings), Shares::new(settings.stream_connections as u64));
        Kit { rates, streams, ..self.clone() }
    }

    /// Whether a request may make calls of a role.
    pub(crate) fn admits(&self, role: Role, headers: &HeaderMap) -> bool {
        self.access.admits(role, headers)
    }

    /// Whether the operator has stopped the intake.
    pub(crate) fn is_draining(&self) -> bool {
        self.drains.load(Ordering::Acquire)
    }

    pub(crate) fn published(&self) -> &Published {
        self.backend.published()
    }

    /// The published place of a transaction; `Some(None)` while it is pending, and `None` if it is unknown.
    pub(crate) fn look_up<T>(&self, id: &TransactionId, find: impl Fn() -> Option<T>) -> Option<Option<T>> {
        if let Some(found) = find() {
            return Some(Some(found));
        }
        if self.backend.is_pending(id) {
            return Some(None);
        }
        // It may have left the pool and been published meanwhile.
        find().map(Some)
    }

    /// Runs a call that may block, off the threads that serve connections.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Kit) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        blocking(self.clone(), run).await
    }
}

/// Runs a call that may block, off the threads that serve connections. The call is boxed with its answer, so that the
/// runtime's task is compiled once and not for each of some sixty calls.
pub(crate) async fn blocking<State: Send + 'static, T: Send + 'static>(
    state: State,
    run: impl FnOnce(&State) -> T + Send + 'static,
) -> Result<T, Failure> {
    let call: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(run(&state)));
    let answer = tokio::task::spawn_blocking(call).await.map_err(|_| Failure::stopping())?;
    Ok(*answer.downcast().expect("a call answers with the type that it was boxed with"))
}

/// Compresses answers for clients that accept it: JSON shrinks to a tenth.
pub(crate) fn compression() -> CompressionLayer {
    CompressionLayer::new()
}

/// The bytes of the Ethereum transaction at a position of a block, with the index of its sub-block.
pub(crate) fn transaction_at(block: &Superblock, position: u32) -> Option<(usize, &[u8])> {
    let mut position = position as usize;
    for (number, sub_block) in block.sub_blocks.iter().enumerate() {
        match position.checked_sub(sub_block.ethereum.len()) {
            None => return Some((number, &sub_block.ethereum[position])),
            Some(rest) => position = rest,
        }
    }
    None
}
