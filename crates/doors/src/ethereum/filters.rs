//! Filters: what has changed since a client's last request, for clients without a WebSocket.
//!
//! *Properties.* At most [`FILTERS_MAX`] exist; one that is not used for [`IDLE`] is removed. A filter stores its
//! criteria and the height that it has reported up to; for pending transactions, its position in the node's feed.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use primitives::{Height, TransactionId};
use replica::LOG_HEIGHTS_MAX;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use super::Session;
use super::logs::{LogsAsked, id_of};
use super::params::Params;
use super::values::data;
use super::wire::{Answer, RpcError};

const FILTERS_MAX: usize = 4_096;
const IDLE: Duration = Duration::from_secs(300);
/// Maximum number of blocks or transactions in one answer.
const CHANGES_MAX: usize = 10_000;

enum Watched {
    Blocks,
    Logs(LogsAsked),
    Pending(Receiver<Arc<[TransactionId]>>),
}

struct ChangeFilter {
    watched: Watched,
    /// The first height that was not reported.
    next: Height,
    asked: Instant,
}

/// The filters of a door.
#[derive(Default)]
pub(super) struct Filters {
    random: RandomState,
    table: Mutex<FilterTable>,
}

#[derive(Default)]
struct FilterTable {
    made: u64,
    filters: HashMap<String, ChangeFilter>,
}

impl Filters {
    fn lock(&self) -> MutexGuard<'_, FilterTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, watched: Watched, next: Height) -> Answer {
        let mut table = self.lock();
        if table.filters.len() >= FILTERS_MAX {
            table.filters.retain(|_, filter| filter.asked.elapsed() < IDLE);
        }
        if table.filters.len() >= FILTERS_MAX {
            return Err(RpcError::limit("too many filters; try again later, or subscribe over a WebSocket"));
        }
        table.made += 1;
        let id = id_of(&self.random, table.made);
        table.filters.insert(id.clone(), ChangeFilter { watched, next, asked: Instant::now() });
        Ok(id.into())
    }

    /// Handles a revert of a developers' chain to a height: everything above it counts as new.
    pub(super) fn go_back(&self, height: Height) {
        for filter in self.lock().filters.values_mut() {
            let first = match &filter.watched {
                Watched::Logs(asked) => asked.filter.from,
                Watched::Blocks | Watched::Pending(_) => 0,
            };
            filter.next = filter.next.min(first.max(height + 1));
        }
    }

    /// Accesses a filter that has not expired.
    fn with<T>(
        &self,
        params: &Params,
        look: impl FnOnce(&mut ChangeFilter) -> Result<T, RpcError>,
    ) -> Result<T, RpcError> {
        let id = params.read(0, |value| value.as_str().ok_or("the id of a filter is a string".into()))?;
        let mut table = self.lock();
        if table.filters.get(id).is_some_and(|filter| filter.asked.elapsed() >= IDLE) {
            table.filters.remove(id);
        }
        let filter = table.filters.get_mut(id).ok_or_else(|| RpcError::server("filter not found"))?;
        filter.asked = Instant::now();
        look(filter)
    }
}

/// The pending question of a filter, copied under its lock.
enum Due {
    Blocks(Height),
    Logs(LogsAsked),
    Ready(Value),
}

pub(super) fn new_filter(session: &Session, params: &Params) -> Answer {
    let asked = session.logs_asked(params)?;
    // Changes are what arrives from now on; `eth_getFilterLogs` returns older logs.
    let next = asked.filter.from.max(session.latest() + 1);
    session.rpc.filters.add(Watched::Logs(asked), next)
}

pub(super) fn new_block_filter(session: &Session, _: &Params) -> Answer {
    session.rpc.filters.add(Watched::Blocks, session.latest() + 1)
}

pub(super) fn new_pending_transaction_filter(session: &Session, _: &Params) -> Answer {
    let feed = session.rpc.api.published().subscribe_pending();
    session.rpc.filters.add(Watched::Pending(feed), 0)
}

pub(super) fn uninstall_filter(session: &Session, params: &Params) -> Answer {
    let id = params.read(0, |value| value.as_str().ok_or("the id of a filter is a string".into()))?;
    Ok(session.rpc.filters.lock().filters.remove(id).is_some().into())
}

pub(super) fn get_filter_changes(session: &Session, params: &Params) -> Answer {
    let latest = session.latest();
    let due = session.rpc.filters.with(params, |filter| {
        let from = filter.next;
        Ok(match &mut filter.watched {
            Watched::Pending(feed) => Due::Ready(pending(feed)?),
            Watched::Blocks => {
                filter.next = (latest + 1).min(from + CHANGES_MAX as u64);
                Due::Blocks(from)
            }
            Watched::Logs(asked) => {
                let to = asked.to.unwrap_or(latest).min(latest).min(from.saturating_add(LOG_HEIGHTS_MAX - 1));
                let mut asked = asked.clone();
                (asked.filter.from, asked.filter.to) = (from, to);
                if from > to {
                    return Ok(Due::Ready(json!([])));
                }
                filter.next = to + 1;
                Due::Logs(asked)
            }
        })
    })?;
    match due {
        Due::Ready(value) => Ok(value),
        Due::Logs(asked) => Ok(session.logs(&asked.filter)?.into()),
        Due::Blocks(from) => {
            let views = session.rpc.api.published().views();
            let heights = (from..=latest).take(CHANGES_MAX);
            Ok(heights.filter_map(|height| views.block(height)).map(|block| data(block.block.0)).collect())
        }
    }
}

pub(super) fn get_filter_logs(session: &Session, params: &Params) -> Answer {
    let latest = session.latest();
    let asked = session.rpc.filters.with(params, |filter| match &filter.watched {
        Watched::Logs(asked) => Ok(asked.clone()),
        _ => Err(RpcError::server("this is not a filter of logs")),
    })?;
    let mut filter = asked.filter;
    filter.to = asked.to.unwrap_or(latest);
    Ok(session.logs(&filter)?.into())
}

fn pending(feed: &mut Receiver<Arc<[TransactionId]>>) -> Answer {
    let mut hashes: Vec<Value> = Vec::new();
    while hashes.len() < CHANGES_MAX {
        match feed.try_recv() {
            Ok(ids) => hashes.extend(ids.iter().map(|id| data(id.0))),
            Err(TryRecvError::Lagged(_)) if hashes.is_empty() => {
                return Err(RpcError::limit("this filter fell behind and has missed transactions; ask again"));
            }
            Err(_) => break,
        }
    }
    Ok(hashes.into())
}
