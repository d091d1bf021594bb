//! The WebSocket: requests as over HTTP, and subscriptions to new blocks, logs and pending transactions.
//!
//! *Properties.* A connection has at most [`SUBSCRIPTIONS_MAX`] subscriptions and processes one message at a time. A
//! client that does not read, or falls behind the node's feed of transactions, is disconnected. A subscription reports
//! everything, in parts of about [`EVENTS_MAX`] events, and blocks that the feed has dropped are read again. Where it
//! cannot, the connection is closed, and its reason says why.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use primitives::{Digest, Height, TransactionId};
use replica::LogFilter;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::logs::{LogsAsked, LogsFound, find_logs, id_of};
use super::values::data;
use super::wire::{Answer, Body, Request, RpcError, envelope};
use super::{Asked, BODY_BYTES_MAX, Caller, Rpc, Session, in_batch};
use crate::client::AskedBy;
use crate::door::{DISPLACED, Visitor};
use crate::kit::{Failure, LINGER, Upgrade, ended_by};
use crate::roles::Role;
use readers::views::CommittedBlock;

/// Maximum number of subscriptions of one connection.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 64;
/// Number of events after which those of a block are sent before further ones are read.
const EVENTS_MAX: usize = 1_000;
/// Interval of checks whether the node restarts.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A client that cannot be written to for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The kind of a subscription.
#[derive(Clone, Debug)]
enum Subscription {
    NewHeads,
    Logs(LogFilter),
    /// Pending transactions: whole ones, or their hashes.
    Pending {
        is_full: bool,
    },
}

/// One connection.
struct Subscriber {
    rpc: Rpc,
    socket: SplitSink<WebSocket, Message>,
    subscriptions: BTreeMap<String, Subscription>,
    caller: Caller,
    visitor: Visitor,
    random: RandomState,
    made: u64,
    pending: Receiver<Arc<[TransactionId]>>,
    /// Transactions that left the pool before they could be shown whole; their block is not published yet.
    late: Vec<TransactionId>,
    /// The last block that was reported, or passed without a subscription.
    last: Option<(Height, Digest)>,
}

/// The end of a connection; the client receives the reason.
type Delivered = Result<(), Cow<'static, str>>;

const TOO_SLOW: Cow<'static, str> = Cow::Borrowed("too slow: connect and subscribe again");
const STOPPING: Cow<'static, str> = Cow::Borrowed("the node is stopping");

/// Upgrades a connection.
pub(super) async fn open(
    State(rpc): State<Rpc>,
    Extension(visitor): Extension<Visitor>,
    AskedBy(client): AskedBy,
    headers: HeaderMap,
    Upgrade(upgrade): Upgrade,
) -> Response {
    let Some(share) = rpc.api.streams.take(visitor.address, 1) else {
        let message = "too many WebSocket connections, of all or of this address; try again shortly";
        return Failure::busy("too_many_streams", message).into_response();
    };
    let caller = Caller { client, may_submit: rpc.api.admits(Role::Submit, &headers) };
    let limit = rpc.api.settings.body_bytes.min(BODY_BYTES_MAX);
    upgrade.max_message_size(limit).max_frame_size(limit).on_upgrade(async move |socket| {
        serve(rpc, socket, caller, visitor, limit).await;
        drop(share);
    })
}

async fn serve(rpc: Rpc, socket: WebSocket, caller: Caller, visitor: Visitor, limit: usize) {
    let (sink, mut source) = socket.split();
    let mut blocks = rpc.api.published().subscribe();
    let pending = rpc.api.published().subscribe_pending();
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (subscriptions, random, late) = (BTreeMap::new(), RandomState::new(), Vec::new());
    let (visit, made, last) = (visitor.visit.clone(), 0, None);
    let mut subscriber =
        Subscriber { rpc, socket: sink, subscriptions, caller, visitor, random, made, pending, late, last };
    let (code, reason) = loop {
        let served = tokio::select! {
            message = source.next() => match message {
                Some(Ok(Message::Text(text))) => subscriber.answer(text.as_bytes()).await,
                Some(Ok(Message::Binary(bytes))) => subscriber.answer(&bytes).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                Some(Ok(Message::Close(_))) | None => return,
                Some(Err(error)) => match ended_by(error, limit) {
                    Some(end) => break end,
                    None => return,
                },
            },
            block = blocks.recv() => match block {
                Ok(committed) => subscriber.notify_up_to(&committed).await,
                // The next block brings what is missing.
                Err(RecvError::Lagged(_)) => Ok(()),
                Err(RecvError::Closed) => Err(STOPPING),
            },
            ids = subscriber.pending.recv() => match ids {
                Ok(ids) => subscriber.notify_pending(&ids).await,
                // A client that has not subscribed to them misses nothing.
                Err(RecvError::Lagged(_)) if !subscriber.wants_pending() => Ok(()),
                Err(RecvError::Lagged(_)) => Err(TOO_SLOW),
                Err(RecvError::Closed) => Err(STOPPING),
            },
            _ = heartbeat.tick() => match subscriber.rpc.api.blocking(|api| api.backend.standing()).await {
                Ok(standing) if standing.begins_again => {
                    Err("the node begins again: connect and subscribe again".into())
                }
                Ok(_) => Ok(()),
                Err(_) => Err(STOPPING),
            },
            () = visit.displaced() => Err(DISPLACED.into()),
        };
        match served {
            Ok(()) => visit.progress(),
            Err(reason) => break (close_code::AGAIN, reason),
        }
    };
    let frame = CloseFrame { code, reason: reason.into_owned().into() };
    // A client that does not read does not receive the reason either.
    drop(tokio::time::timeout(HEARTBEAT, subscriber.socket.send(Message::Close(Some(frame)))).await);
    if code == close_code::SIZE {
        tokio::time::sleep(LINGER).await;
    }
}

/// Whether a request belongs to the connection.
fn is_own(one: &Asked) -> bool {
    one.as_ref().is_ok_and(|one| matches!(one.method.as_str(), "eth_subscribe" | "eth_unsubscribe"))
}

impl Subscriber {
    async fn send(&mut self, message: Value) -> Delivered {
        match tokio::time::timeout(WRITE_TIMEOUT, self.socket.send(Message::text(message.to_string()))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("the connection broke".into()),
            Err(_) => Err(TOO_SLOW),
        }
    }

    /// Answers a message.
    async fn answer(&mut self, bytes: &[u8]) -> Delivered {
        let answer = match Body::read(bytes) {
            Err(error) => Some(envelope(Value::Null, Err(error))),
            Ok(Body::One(one)) => self.answer_all(vec![one]).await.pop(),
            Ok(Body::Batch(batch)) => in_batch(self.answer_all(batch).await),
        };
        match answer {
            Some(answer) => self.send(answer).await,
            None => Ok(()),
        }
    }

    /// Answers requests in order, subscriptions among them.
    async fn answer_all(&mut self, requests: Vec<Asked>) -> Vec<Value> {
        let rpc = self.rpc.clone();
        let mut session = Session::new(&rpc, self.caller);
        let (mut answers, mut rest) = (Vec::new(), VecDeque::from(requests));
        while !rest.is_empty() {
            let others = rest.iter().take_while(|one| !is_own(one)).count();
            answers.extend(session.answer_all(rest.drain(..others).collect()).await);
            if let Some(Ok(Request { id, method, params })) = rest.pop_front() {
                let answer = match method.as_str() {
                    "eth_subscribe" => self.subscribe(&params),
                    _ => self.unsubscribe(&params),
                };
                answers.push(envelope(id.unwrap_or_default(), answer));
            }
        }
        session.recognize(&self.visitor);
        answers
    }

    fn subscribe(&mut self, params: &[Value]) -> Answer {
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            return Err(RpcError::limit(format!("at most {SUBSCRIPTIONS_MAX} subscriptions a connection")));
        }
        let invalid = |why: String| RpcError::invalid_params(why);
        let subscription = match params.first().and_then(Value::as_str) {
            Some("newHeads") => Subscription::NewHeads,
            Some("newPendingTransactions") => {
                let is_full = match params.get(1) {
                    None | Some(Value::Null) => false,
                    Some(Value::Bool(is_full)) => *is_full,
                    Some(_) => return Err(invalid("true or false is expected: whole transactions, or hashes".into())),
                };
                if !self.wants_pending() {
                    self.pending = self.rpc.api.published().subscribe_pending();
                }
                Subscription::Pending { is_full }
            }
            Some("logs") => {
                let none = json!({});
                let filter = params.get(1).filter(|value| !value.is_null()).unwrap_or(&none);
                let filter = LogsAsked::read(filter).map_err(invalid)?.filter;
                filter.check()?;
                Subscription::Logs(filter)
            }
            Some(other) => return Err(invalid(format!("no {other:?} subscription in eth namespace"))),
            None => return Err(invalid("name newHeads, logs or newPendingTransactions".into())),
        };
        self.made += 1;
        let id = id_of(&self.random, self.made);
        self.subscriptions.insert(id.clone(), subscription);
        Ok(id.into())
    }

    fn unsubscribe(&mut self, params: &[Value]) -> Answer {
        let id = params.first().and_then(Value::as_str).unwrap_or_default();
        match self.subscriptions.remove(id) {
            Some(_) => Ok(true.into()),
            None => Err(RpcError::server("subscription not found")),
        }
    }

    fn wants_pending(&self) -> bool {
        self.subscriptions.values().any(|one| matches!(one, Subscription::Pending { .. }))
    }

    /// Reports a block, and those before it that the feed has dropped.
    async fn notify_up_to(&mut self, committed: &CommittedBlock) -> Delivered {
        let (height, digest) = (committed.summary.height, committed.summary.block);
        let from = match self.last.replace((height, digest)) {
            Some((last, before)) if last + 1 < height && !self.subscriptions.is_empty() => {
                self.check_follows(last, before).await?;
                last + 1
            }
            _ => height,
        };
        for height in from..=height {
            self.notify_block(height).await?;
        }
        Ok(())
    }

    /// Whether the block above a reported one is held and follows it: a developers' chain may have been reverted.
    async fn check_follows(&self, height: Height, digest: Digest) -> Delivered {
        let above = self.rpc.api.blocking(move |api| api.backend.block(height + 1)).await.map_err(|_| STOPPING)?;
        match above {
            Ok(Some(block)) if block.parent == digest => Ok(()),
            _ => Err(format!("blocks above {height} were dropped or reverted: subscribe again").into()),
        }
    }

    async fn notify_block(&mut self, height: Height) -> Delivered {
        if self.subscriptions.is_empty() {
            return Ok(());
        }
        let late = std::mem::take(&mut self.late);
        self.notify_full(late).await?;
        let subscriptions: Arc<[_]> = self.subscriptions.clone().into_iter().collect();
        let mut at = Some((0, 0));
        while let Some(from) = at {
            let (rpc, subscriptions) = (self.rpc.clone(), subscriptions.clone());
            let part = tokio::task::spawn_blocking(move || {
                part_of_block(&Session::new(&rpc, Caller::default()), &subscriptions, height, from)
            });
            let (events, next) = part.await.map_err(|_| STOPPING)?.map_err(|error| cannot_report(height, &error))?;
            for event in events {
                self.send(event).await?;
            }
            at = next;
        }
        Ok(())
    }

    async fn notify_pending(&mut self, ids: &[TransactionId]) -> Delivered {
        let hashes = |one: &Subscription| matches!(one, Subscription::Pending { is_full: false });
        for subscription in self.ids_of(hashes) {
            for id in ids {
                self.send(notification(&subscription, data(id.0))).await?;
            }
        }
        self.notify_full(ids.to_vec()).await
    }

    /// Sends whole transactions. One that is neither pending nor published is shown when its block is. One that was
    /// dropped from the pool in the meantime is not pending any more, and not shown.
    async fn notify_full(&mut self, ids: Vec<TransactionId>) -> Delivered {
        let subscribed = self.ids_of(|one| matches!(one, Subscription::Pending { is_full: true }));
        if subscribed.is_empty() {
            return Ok(());
        }
        let rpc = self.rpc.clone();
        let shown = tokio::task::spawn_blocking(move || {
            let session = Session::new(&rpc, Caller::default());
            // In this order: what is not pending any more is published, or was dropped.
            let show = |id: TransactionId| (rpc.api.backend.is_pending(&id), session.transaction(&id), id);
            ids.into_iter().map(show).collect::<Vec<_>>()
        });
        for (is_pending, transaction, id) in shown.await.map_err(|_| STOPPING)? {
            match transaction.map_err(|error| Cow::from(error.message))? {
                Value::Null if is_pending => self.late.push(id),
                Value::Null => {}
                transaction => {
                    for subscription in &subscribed {
                        self.send(notification(subscription, transaction.clone())).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The ids of subscriptions of a kind.
    fn ids_of(&self, kind: impl Fn(&Subscription) -> bool) -> Vec<String> {
        self.subscriptions.iter().filter(|(_, one)| kind(one)).map(|(id, _)| id.clone()).collect()
    }
}

/// The reason of the end of a connection whose subscriptions cannot report a block. A reason has at most 123 bytes.
fn cannot_report(height: Height, error: &RpcError) -> Cow<'static, str> {
    tracing::warn!(height, error = error.message, "a subscription cannot report a block, and ends");
    format!("block {height} cannot be reported: subscribe again, and read its logs with eth_getLogs").into()
}

/// A place in the events of a block: a subscription, and the first log that was not reported to it.
type EventCursor = (usize, u32);

/// The events of a block from a place on, about [`EVENTS_MAX`] of them, and where the rest begins.
fn part_of_block(
    session: &Session,
    subscriptions: &[(String, Subscription)],
    height: Height,
    from: EventCursor,
) -> Result<(Vec<Value>, Option<EventCursor>), RpcError> {
    let (mut events, mut first_log) = (Vec::new(), from.1);
    for (at, (id, subscription)) in subscriptions.iter().enumerate().skip(from.0) {
        if events.len() >= EVENTS_MAX {
            return Ok((events, Some((at, 0))));
        }
        match subscription {
            Subscription::Pending { .. } => {}
            Subscription::NewHeads => {
                let gone = || RpcError::server("the block is not held here any more");
                events.push(notification(id, session.load(height)?.ok_or_else(gone)?.header()));
            }
            Subscription::Logs(filter) => {
                let filter = LogFilter { from: height, first_log, to: height, ..filter.clone() };
                let LogsFound { logs, next } = find_logs(session, &filter, EVENTS_MAX)?;
                events.extend(logs.into_iter().map(|log| notification(id, log)));
                if let Some(next) = next {
                    return Ok((events, Some((at, next.log))));
                }
            }
        }
        first_log = 0;
    }
    Ok((events, None))
}

fn notification(subscription: &str, result: Value) -> Value {
    let params = json!({"subscription": subscription, "result": result});
    json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})
}
