//! The WebSocket: requests as over HTTP, and subscriptions to new blocks, logs and pending transactions.
//!
//! *Properties.* A connection has at most [`SUBSCRIPTIONS_MAX`] subscriptions and processes one message at a time. A
//! client that does not read, or falls behind the node's feeds, is disconnected.

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use primitives::{Height, TransactionId};
use replica::LogFilter;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::logs::{LogsAsked, id_of};
use super::values::data;
use super::wire::{Answer, Body, Request, RpcError, envelope};
use super::{BODY_BYTES_MAX, Rpc, Session};
use crate::door::{Caller, DISPLACED};
use crate::http::Failure;
use crate::roles::Role;

/// Maximum number of subscriptions of one connection.
const SUBSCRIPTIONS_MAX: usize = 64;
/// Maximum bytes of a subscription request.
const SUBSCRIBE_BYTES_MAX: usize = 256 << 10;
/// Interval of checks whether the node restarts.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A client that cannot be written to for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The kind of a subscription.
#[derive(Clone, Debug)]
enum Subscription {
    NewHeads,
    Logs(LogFilter),
    Pending,
}

/// One connection.
struct Subscriber {
    rpc: Rpc,
    socket: SplitSink<WebSocket, Message>,
    subscriptions: BTreeMap<String, Subscription>,
    caller: Caller,
    may_submit: bool,
    random: RandomState,
    made: u64,
    pending: Receiver<Arc<[TransactionId]>>,
}

type Delivered = Result<(), &'static str>;

/// Upgrades a connection.
pub(super) async fn open(
    State(rpc): State<Rpc>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(share) = rpc.api.streams.take(caller.address, 1) else {
        let message = "too many WebSocket connections, of all or of this address; try again shortly";
        return Failure::busy("too_many_streams", message).into_response();
    };
    let may_submit = rpc.api.admits(Role::Submit, &headers);
    let limit = rpc.api.settings.body_bytes.min(BODY_BYTES_MAX);
    upgrade.max_message_size(limit).on_upgrade(async move |socket| {
        serve(rpc, caller, socket, may_submit).await;
        drop(share);
    })
}

async fn serve(rpc: Rpc, caller: Caller, socket: WebSocket, may_submit: bool) {
    let (sink, mut source) = socket.split();
    let mut blocks = rpc.api.published().subscribe();
    let pending = rpc.api.published().subscribe_pending();
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (subscriptions, random) = (BTreeMap::new(), RandomState::new());
    let visit = caller.visit.clone();
    let mut subscriber = Subscriber { rpc, socket: sink, subscriptions, caller, may_submit, random, made: 0, pending };
    let reason = loop {
        let served = tokio::select! {
            message = source.next() => match message {
                Some(Ok(Message::Text(text))) => subscriber.answer(text.as_bytes()).await,
                Some(Ok(Message::Binary(bytes))) => subscriber.answer(&bytes).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            },
            block = blocks.recv() => match block {
                Ok(committed) => subscriber.notify_block(committed.summary.height).await,
                Err(RecvError::Lagged(_)) => Err("too slow: connect and subscribe again"),
                Err(RecvError::Closed) => Err("the node is stopping"),
            },
            ids = subscriber.pending.recv() => match ids {
                Ok(ids) => subscriber.notify_pending(&ids).await,
                // A client that has not subscribed to them misses nothing.
                Err(RecvError::Lagged(_)) if !subscriber.wants_pending() => Ok(()),
                Err(RecvError::Lagged(_)) => Err("too slow: connect and subscribe again"),
                Err(RecvError::Closed) => Err("the node is stopping"),
            },
            _ = heartbeat.tick() => match subscriber.rpc.api.blocking(|api| api.backend.standing()).await {
                Ok(standing) if standing.begins_again => Err("the node begins again: connect and subscribe again"),
                Ok(_) => Ok(()),
                Err(_) => Err("the node is stopping"),
            },
            () = visit.displaced() => Err(DISPLACED),
        };
        match served {
            Ok(()) => visit.progress(),
            Err(reason) => break reason,
        }
    };
    let frame = CloseFrame { code: axum::extract::ws::close_code::AGAIN, reason: reason.into() };
    // A client that does not read does not receive the reason either.
    drop(tokio::time::timeout(HEARTBEAT, subscriber.socket.send(Message::Close(Some(frame)))).await);
}

impl Subscriber {
    async fn send(&mut self, message: Value) -> Delivered {
        match tokio::time::timeout(WRITE_TIMEOUT, self.socket.send(Message::text(message.to_string()))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("the connection broke"),
            Err(_) => Err("too slow: connect and subscribe again"),
        }
    }

    /// Answers a message. Subscriptions are separate requests, outside batches.
    async fn answer(&mut self, bytes: &[u8]) -> Delivered {
        let is_short = bytes.len() <= SUBSCRIBE_BYTES_MAX;
        if let Some(Ok(Body::One(Ok(Request { id, method, params })))) = is_short.then(|| Body::read(bytes)) {
            let answer = match method.as_str() {
                "eth_subscribe" => Some(self.subscribe(&params)),
                "eth_unsubscribe" => Some(self.unsubscribe(&params)),
                _ => None,
            };
            if let Some(answer) = answer {
                return self.send(envelope(id.unwrap_or_default(), answer)).await;
            }
        }
        match self.rpc.answer(bytes.to_vec().into(), &self.caller, self.may_submit).await {
            Some(answer) => self.send(answer).await,
            None => Ok(()),
        }
    }

    fn subscribe(&mut self, params: &[Value]) -> Answer {
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            return Err(RpcError::limit(format!("at most {SUBSCRIPTIONS_MAX} subscriptions a connection")));
        }
        let invalid = |why: String| RpcError::invalid_params(why);
        let subscription = match params.first().and_then(Value::as_str) {
            Some("newHeads") => Subscription::NewHeads,
            Some("newPendingTransactions") => {
                self.pending = self.rpc.api.published().subscribe_pending();
                Subscription::Pending
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
        self.subscriptions.values().any(|one| matches!(one, Subscription::Pending))
    }

    async fn notify_block(&mut self, height: Height) -> Delivered {
        if self.subscriptions.is_empty() {
            return Ok(());
        }
        let subscriptions = self.subscriptions.clone();
        let rpc = self.rpc.clone();
        let events = tokio::task::spawn_blocking(move || {
            let session = Session::new(&rpc, false);
            let of = |(id, one): (String, Subscription)| {
                let events = events_of(&session, &one, height).into_iter();
                events.map(|event| notification(&id, event)).collect::<Vec<_>>()
            };
            subscriptions.into_iter().flat_map(of).collect::<Vec<_>>()
        });
        for event in events.await.map_err(|_| "the node is stopping")? {
            self.send(event).await?;
        }
        Ok(())
    }

    async fn notify_pending(&mut self, ids: &[TransactionId]) -> Delivered {
        let pending = self.subscriptions.iter().filter(|(_, one)| matches!(one, Subscription::Pending));
        let subscribed: Vec<String> = pending.map(|(id, _)| id.clone()).collect();
        for subscription in subscribed {
            for id in ids {
                self.send(notification(&subscription, data(id.0))).await?;
            }
        }
        Ok(())
    }
}

/// The events of a block for a subscription.
fn events_of(session: &Session, subscription: &Subscription, height: Height) -> Vec<Value> {
    match subscription {
        Subscription::Pending => Vec::new(),
        Subscription::NewHeads => session.load(height).ok().flatten().map(|block| block.header()).into_iter().collect(),
        Subscription::Logs(filter) => {
            let filter = LogFilter { from: height, to: height, ..filter.clone() };
            // A block with more logs than an answer holds must be read by `eth_getLogs`, in parts.
            session.logs(&filter).unwrap_or_default()
        }
    }
}

fn notification(subscription: &str, result: Value) -> Value {
    let params = json!({"subscription": subscription, "result": result});
    json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})
}
