//! Filters: what has changed since a client's last request, for clients without a WebSocket.
//!
//! *Properties.* At most [`FILTERS_MAX`] exist, [`FILTERS_OF_ONE`] of one address; one that is not used for [`IDLE`] is
//! removed. A filter stores its criteria and the place that it has reported up to. For pending transactions, its
//! position in the node's feed and what it has taken from it.
//!
//! *A poll that fails consumes nothing*: the filter moves on only after its answer is complete and fits. What does not
//! fit into one answer is left for the next poll, also within a block.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use primitives::{Digest, Height, TransactionId};
use replica::{LOG_HEIGHTS_MAX, LOG_RESULTS_MAX, LogCursor};
use serde_json::Value;
use sockets::Client;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use super::logs::{self, LogsAsked, LogsFound, find_logs, id_of, logs_asked};
use super::params::Params;
use super::values::data;
use super::wire::{Answer, RpcError};
use super::{Session, weight};

/// Maximum number of filters of a door.
pub(crate) const FILTERS_MAX: usize = 4_096;
/// Maximum number of filters of one address.
pub(crate) const FILTERS_OF_ONE: usize = 256;
const IDLE: Duration = Duration::from_secs(300);
/// Maximum number of blocks or transactions in one answer.
const CHANGES_MAX: usize = 10_000;

enum Watched {
    Blocks,
    Logs(LogsAsked),
    Pending(Arrivals),
}

/// Transactions that have arrived since the last poll.
struct Arrivals {
    feed: Receiver<Arc<[TransactionId]>>,
    /// Those taken from the feed and not reported.
    taken: Vec<TransactionId>,
    /// Whether the feed has dropped some that would follow those.
    has_missed: bool,
}

struct ChangeFilter {
    watched: Watched,
    /// The first place that was not reported.
    next: LogCursor,
}

/// A filter in the table.
struct Installed {
    /// Polls of one filter wait for each other, so that none reports what another one has.
    filter: Arc<Mutex<ChangeFilter>>,
    owner: Client,
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
    filters: HashMap<String, Installed>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Filters {
    fn add(&self, owner: Client, watched: Watched, next: Height) -> Answer {
        let mut table = lock(&self.table);
        table.check_room(owner)?;
        table.made += 1;
        let id = id_of(&self.random, table.made);
        let filter = ChangeFilter { watched, next: LogCursor { height: next, log: 0 } };
        let filter = Arc::new(Mutex::new(filter));
        table.filters.insert(id.clone(), Installed { filter, owner, asked: Instant::now() });
        Ok(id.into())
    }

    /// Handles a revert of a developers' chain to a height: everything above it counts as new.
    pub(super) fn go_back(&self, height: Height) {
        let filters: Vec<_> = lock(&self.table).filters.values().map(|one| one.filter.clone()).collect();
        for filter in filters {
            let mut filter = lock(&filter);
            let first = match &filter.watched {
                Watched::Logs(asked) => asked.filter.from,
                Watched::Blocks | Watched::Pending(_) => 0,
            };
            filter.next = filter.next.min(LogCursor { height: first.max(height + 1), log: 0 });
        }
    }

    /// A filter that has not expired.
    fn find(&self, params: &Params) -> Result<Arc<Mutex<ChangeFilter>>, RpcError> {
        let id = params.read(0, |value| value.as_str().ok_or("the id of a filter is a string".into()))?;
        let mut table = lock(&self.table);
        if table.filters.get(id).is_some_and(Installed::is_idle) {
            table.filters.remove(id);
        }
        let installed = table.filters.get_mut(id).ok_or_else(|| RpcError::server("filter not found"))?;
        installed.asked = Instant::now();
        Ok(installed.filter.clone())
    }
}

impl FilterTable {
    /// Whether there is room for another filter of a client.
    fn check_room(&mut self, owner: Client) -> Result<(), RpcError> {
        let of_owner = |table: &FilterTable| table.filters.values().filter(|one| one.owner == owner).count();
        if self.filters.len() >= FILTERS_MAX || of_owner(self) >= FILTERS_OF_ONE {
            self.filters.retain(|_, one| !one.is_idle());
        }
        if of_owner(self) >= FILTERS_OF_ONE {
            return Err(RpcError::limit(format!(
                "your address has {FILTERS_OF_ONE} filters; uninstall some, or subscribe over a WebSocket"
            )));
        }
        if self.filters.len() >= FILTERS_MAX {
            let message = "this node has as many filters as it holds; try again later, or subscribe over a WebSocket";
            return Err(RpcError::limit(message));
        }
        Ok(())
    }
}

impl Installed {
    fn is_idle(&self) -> bool {
        self.asked.elapsed() >= IDLE
    }
}

/// What a poll reports, and where the next one begins.
struct Changes {
    found: Vec<Value>,
    next: LogCursor,
}

impl ChangeFilter {
    fn changes(&mut self, session: &Session) -> Result<Changes, RpcError> {
        let (latest, next) = (session.latest(), self.next);
        match &mut self.watched {
            Watched::Blocks => blocks(session, next.height, latest),
            Watched::Logs(asked) => {
                let to = asked.to.unwrap_or(latest).min(latest);
                let to = to.min(next.height.saturating_add(LOG_HEIGHTS_MAX - 1));
                let mut filter = asked.filter.clone();
                (filter.from, filter.first_log, filter.to) = (next.height, next.log, to);
                if next.height > to {
                    return Ok(Changes { found: Vec::new(), next });
                }
                let LogsFound { logs: found, next } = find_logs(session, &filter, LOG_RESULTS_MAX)?;
                Ok(Changes { found, next: next.unwrap_or(LogCursor { height: to + 1, log: 0 }) })
            }
            Watched::Pending(arrivals) => {
                arrivals.take();
                if arrivals.taken.is_empty() && std::mem::take(&mut arrivals.has_missed) {
                    return Err(RpcError::limit("this filter fell behind and has missed transactions; ask again"));
                }
                Ok(Changes { found: arrivals.taken.iter().map(|id| data(id.0)).collect(), next })
            }
        }
    }

    /// Notes that changes up to a place are reported.
    fn reported(&mut self, next: LogCursor) {
        self.next = next;
        if let Watched::Pending(arrivals) = &mut self.watched {
            arrivals.taken.clear();
        }
    }
}

impl Arrivals {
    /// Takes what has arrived from the feed, up to a gap.
    fn take(&mut self) {
        while self.taken.len() < CHANGES_MAX && !self.has_missed {
            match self.feed.try_recv() {
                Ok(ids) => self.taken.extend(ids.iter()),
                Err(TryRecvError::Lagged(_)) => self.has_missed = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
    }
}

/// The hashes of new blocks.
fn blocks(session: &Session, from: Height, latest: Height) -> Result<Changes, RpcError> {
    let to = latest.min(from.saturating_add(CHANGES_MAX as u64 - 1));
    let digest = |height: Height| -> Result<Digest, RpcError> {
        if let Some(block) = session.rpc.api.published().views().block(height) {
            return Ok(block.block);
        }
        let gone = || RpcError::server(format!("block {height} is not held here any more; create the filter again"));
        Ok(session.load(height)?.ok_or_else(gone)?.digest)
    };
    let found = (from..=to).map(|height| Ok(data(digest(height)?.0))).collect::<Result<_, RpcError>>()?;
    Ok(Changes { found, next: LogCursor { height: from.max(to + 1), log: 0 } })
}

pub(super) fn new_filter(session: &Session, params: &Params) -> Answer {
    let asked = logs_asked(session, params)?;
    // Changes are what arrives from now on; `eth_getFilterLogs` returns older logs.
    let next = asked.filter.from.max(session.latest() + 1);
    session.rpc.filters.add(session.caller.client, Watched::Logs(asked), next)
}

pub(super) fn new_block_filter(session: &Session, _: &Params) -> Answer {
    session.rpc.filters.add(session.caller.client, Watched::Blocks, session.latest() + 1)
}

pub(super) fn new_pending_transaction_filter(session: &Session, _: &Params) -> Answer {
    let feed = session.rpc.api.published().subscribe_pending();
    let arrivals = Arrivals { feed, taken: Vec::new(), has_missed: false };
    session.rpc.filters.add(session.caller.client, Watched::Pending(arrivals), 0)
}

pub(super) fn uninstall_filter(session: &Session, params: &Params) -> Answer {
    let id = params.read(0, |value| value.as_str().ok_or("the id of a filter is a string".into()))?;
    Ok(lock(&session.rpc.filters.table).filters.remove(id).is_some().into())
}

pub(super) fn get_filter_changes(session: &Session, params: &Params) -> Answer {
    let filter = session.rpc.filters.find(params)?;
    let mut filter = lock(&filter);
    let Changes { found, next } = filter.changes(session)?;
    let answer = Value::from(found);
    session.bytes_after(weight(&answer))?;
    filter.reported(next);
    Ok(answer)
}

pub(super) fn get_filter_logs(session: &Session, params: &Params) -> Answer {
    let filter = session.rpc.filters.find(params)?;
    let asked = match &lock(&filter).watched {
        Watched::Logs(asked) => asked.clone(),
        _ => return Err(RpcError::server("this is not a filter of logs")),
    };
    logs::get_filter_logs(session, &asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::broadcast;

    fn client(number: u8) -> Client {
        Client::at([192, 0, 2, number].into())
    }

    #[test]
    fn filters_of_one_address_leave_room_for_others() {
        let filters = Filters::default();
        for _ in 0..FILTERS_OF_ONE {
            filters.add(client(1), Watched::Blocks, 1).expect("there is room");
        }
        let refused = filters.add(client(1), Watched::Blocks, 1).expect_err("it has its share");
        assert!(refused.code == -32_005 && refused.message.contains("your address"), "{}", refused.message);
        filters.add(client(2), Watched::Blocks, 1).expect("another address has room");
    }

    /// A feed that drops announcements is reported, after those that came before the gap.
    #[test]
    fn missed_transactions_are_reported() {
        let (sender, feed) = broadcast::channel(2);
        let ids = |number: u8| -> Arc<[TransactionId]> { vec![Digest([number; 32])].into() };
        let mut arrivals = Arrivals { feed, taken: Vec::new(), has_missed: false };
        sender.send(ids(1)).expect("a reader");
        arrivals.take();
        (2..6).for_each(|number| drop(sender.send(ids(number))));
        arrivals.take();
        assert_eq!((&arrivals.taken[..], arrivals.has_missed), (&ids(1)[..], true));
        arrivals.taken.clear();
        arrivals.has_missed = false;
        arrivals.take();
        assert_eq!(arrivals.taken, [ids(4), ids(5)].concat());
    }
}
