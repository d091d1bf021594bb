//! The WebSocket stream: a snapshot for each channel, then increments; every message is numbered; slow readers are
//! disconnected.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_util::stream::SplitStream;
use futures_util::{SinkExt, StreamExt};
use primitives::Height;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use super::Api;
use super::channel_news::{Progress, Saying, Told, increments, increments_made, resumed, snapshot};
use super::channels::{Channel, name, parse};
use super::disconnect::{LeftTransaction, SILENCE, hold, let_go, nothing, submit_left};
use super::login::{Login, Logins};
use crate::door::{DISPLACED, Visitor};
use crate::kit::{Failure, LINGER, Upgrade, ended_by};
use crate::roles::Role;
use readers::views::CommittedBlock;

/// Maximum number of channels of one connection.
pub(crate) const CHANNELS: usize = 64;
/// Maximum size of a client's message.
pub(crate) const MESSAGE_BYTES: usize = 16 << 10;
/// Said of a message that is no request.
const REQUEST: &str = concat!(
    r#"send {"subscribe":["blocks"]}, {"unsubscribe":["blocks"]}, {"challenge":true}, {"login":{…}}, "#,
    r#"{"on_disconnect":"0x…"} or {"withdraw":true}; this is none"#
);
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A reader that cannot be written to for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// A client's request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default)]
    subscribe: Vec<String>,
    #[serde(default)]
    unsubscribe: Vec<String>,
    /// The last height that the client has of a channel: it goes on from there if it can.
    #[serde(default)]
    resume: BTreeMap<String, u64>,
    /// Whether a challenge is asked for.
    #[serde(default)]
    challenge: bool,
    login: Option<Login>,
    /// A signed transaction for the end of the connection.
    on_disconnect: Option<String>,
    /// Whether it is taken back.
    #[serde(default)]
    withdraw: bool,
}

/// Upgrades a connection.
pub(crate) async fn open(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Upgrade(upgrade): Upgrade,
) -> Response {
    let Some(share) = api.streams.take(visitor.address, 1) else {
        let message = "too many connections of the stream, of all or of this address; try again shortly";
        return Failure::busy("too_many_streams", message).into_response();
    };
    upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES).on_upgrade(async move |socket| {
        api.backend.metrics().streams.inc();
        serve(&api, &visitor, &headers, socket).await;
        api.backend.metrics().streams.dec();
        drop(share);
    })
}

/// One connection.
struct Connection<'a> {
    api: &'a Api,
    socket: futures_util::stream::SplitSink<WebSocket, Message>,
    channels: BTreeMap<Channel, Progress>,
    logins: Logins,
    /// Whether its token may submit transactions.
    may_submit: bool,
    /// What is submitted when it ends.
    held: Option<LeftTransaction>,
    /// Signatures that were checked for it since its last heartbeat.
    checked: usize,
    /// When the client was heard last.
    heard: Instant,
    /// Number of the next message.
    sequence: u64,
}

async fn serve(api: &Api, visitor: &Visitor, headers: &HeaderMap, socket: WebSocket) {
    let (sink, source) = socket.split();
    let mut connection = Connection {
        api,
        socket: sink,
        channels: BTreeMap::new(),
        logins: Logins::of(headers),
        may_submit: api.admits(Role::Submit, headers),
        held: None,
        checked: 0,
        heard: Instant::now(),
        sequence: 0,
    };
    let end = connection.until_end(visitor, source).await;
    // It does not wait until a reader that does not read is told the reason.
    let held = connection.held.take();
    let submitted = async {
        if let Some(held) = held {
            submit_left(api, visitor.client(), held).await;
        }
    };
    let told = async {
        if let Some((code, reason)) = end {
            connection.end(code, reason).await;
        }
    };
    tokio::join!(submitted, told);
}

type Delivered = Result<(), &'static str>;

const STOPPING: &str = "the node is stopping";

impl Connection<'_> {
    /// Serves the connection until it ends; returns the close code and the reason where the client is told one.
    async fn until_end(
        &mut self,
        visitor: &Visitor,
        mut source: SplitStream<WebSocket>,
    ) -> Option<(u16, Cow<'static, str>)> {
        let api = self.api;
        let mut events = api.published().subscribe();
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let served = tokio::select! {
                message = source.next() => {
                    self.heard = Instant::now();
                    match message {
                        Some(Ok(Message::Text(text))) => self.on_request(visitor, &text).await,
                        Some(Ok(Message::Binary(_))) => self.error("malformed", "send text messages").await,
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                        Some(Ok(Message::Close(_))) | None => return None,
                        Some(Err(error)) => return ended_by(error, MESSAGE_BYTES),
                    }
                },
                event = events.recv() => match event {
                    Ok(committed) => self.send_block(&committed).await,
                    Err(RecvError::Lagged(_)) => Err("too slow: connect again and take a snapshot"),
                    Err(RecvError::Closed) => Err(STOPPING),
                },
                // An open connection would keep the stores in use and prevent the node's restart.
                _ = heartbeat.tick() => match api.blocking(|api| api.backend.standing()).await {
                    Ok(standing) if standing.begins_again => {
                        Err("the node begins again with a fetched state: connect again")
                    }
                    Ok(_) => self.beat().await,
                    Err(_) => Err(STOPPING),
                },
                () = visitor.visit.displaced() => Err(DISPLACED),
            };
            match served {
                Ok(()) => visitor.visit.progress(),
                Err(reason) => return Some((close_code::AGAIN, reason.into())),
            }
        }
    }

    /// Tells the reason and closes.
    async fn end(&mut self, code: u16, reason: Cow<'static, str>) {
        self.api.backend.metrics().streams_dropped.inc();
        let frame = CloseFrame { code, reason: reason.into_owned().into() };
        let close = self.socket.send(Message::Close(Some(frame)));
        // A reader that does not read does not receive the reason either.
        drop(tokio::time::timeout(HEARTBEAT, close).await);
        if code == close_code::SIZE {
            tokio::time::sleep(LINGER).await;
        }
    }

    async fn send(&mut self, message: impl Into<Saying>) -> Delivered {
        let text = message.into().numbered(self.sequence);
        self.sequence += 1;
        self.write(Message::text(text)).await
    }

    async fn write(&mut self, message: Message) -> Delivered {
        match tokio::time::timeout(WRITE_TIMEOUT, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("the connection broke"),
            Err(_) => Err("too slow: connect again and take a snapshot"),
        }
    }

    async fn error(&mut self, code: &str, message: &str) -> Delivered {
        self.send(json!({"type": "error", "code": code, "message": message})).await
    }

    async fn send_heartbeat(&mut self) -> Delivered {
        let (height, time_ms) = {
            let views = self.api.published().views();
            views.blocks(u64::MAX).next().map_or((0, 0), |block| (block.height, block.time_ms))
        };
        self.send(json!({"type": "heartbeat", "height": height, "time_ms": time_ms})).await
    }

    /// What is said each second. A client for whom something is held is asked whether it lives.
    async fn beat(&mut self) -> Delivered {
        self.checked = 0;
        self.send_heartbeat().await?;
        let Some(held) = self.held.take() else { return Ok(()) };
        if self.heard.elapsed() > SILENCE {
            self.held = Some(held);
            return Err("silent: what was left for a disconnect is submitted");
        }
        match let_go(self.api, &held) {
            Some(gone) => self.send(gone).await,
            None => {
                self.held = Some(held);
                self.write(Message::Ping(Default::default())).await
            }
        }
    }

    /// Holds a transaction for the end of the connection, in the place of the one before.
    async fn leave(&mut self, visitor: &Visitor, text: &str) -> Delivered {
        let held = match self.may_submit {
            true => hold(self.api, &self.logins, &mut self.checked, text),
            false => Err(("forbidden", "the token of this connection may not submit transactions".into())),
        };
        match held {
            Ok(held) => {
                visitor.visit.recognize();
                let told = held.told();
                // One that guards something else is not held any more.
                let before = self.held.replace(held);
                before.iter().for_each(|before| self.api.holders.forget(before));
                self.send(told).await
            }
            Err((code, message)) => self.error(code, &message).await,
        }
    }

    async fn withdraw(&mut self) -> Delivered {
        let held = self.held.take();
        held.iter().for_each(|held| self.api.holders.forget(held));
        self.send(nothing("withdrawn", "nothing is submitted when this connection ends")).await
    }

    async fn on_request(&mut self, visitor: &Visitor, text: &str) -> Delivered {
        let request: Request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => return self.error("malformed", &format!("{REQUEST}: {error}")).await,
        };
        if let Some(login) = &request.login {
            match self.logins.login(self.api, login) {
                Ok(answer) => self.send(answer).await?,
                Err((code, message)) => self.error(code, &message).await?,
            }
        }
        if request.challenge {
            let challenge = self.logins.challenge(self.api);
            self.send(challenge).await?;
        }
        if request.withdraw {
            self.withdraw().await?;
        }
        if let Some(text) = &request.on_disconnect {
            self.leave(visitor, text).await?;
        }
        for name in &request.unsubscribe {
            match parse(self.api, name) {
                Ok(channel) => drop(self.channels.remove(&channel)),
                Err(message) => self.error("unknown_channel", &message).await?,
            }
        }
        for name in &request.subscribe {
            match parse(self.api, name) {
                Err(message) => self.error("unknown_channel", &message).await?,
                Ok(channel) if self.channels.len() >= CHANNELS && !self.channels.contains_key(&channel) => {
                    self.error("too_many_channels", "at most 64 channels a connection").await?;
                }
                Ok(channel) => self.subscribe(channel, request.resume.get(name).copied()).await?,
            }
        }
        Ok(())
    }

    /// Begins a channel, or says why not: with what follows the height that the client has, or with a snapshot.
    async fn subscribe(&mut self, channel: Channel, resume: Option<Height>) -> Delivered {
        if let Some((code, message)) = self.logins.refuses(self.api, &channel) {
            return self.error(code, &message).await;
        }
        let of = channel.clone();
        let begun = self.api.blocking(move |api| match resume {
            None => Ok((true, None)),
            Some(height) => resumed(api, &of, height).map(|told| (false, told)),
        });
        let (is_new, told) = begun.await.map_err(|_| STOPPING)?.map_err(|_| STOPPING)?;
        if let (None, false) = (&told, is_new) {
            let message = format!(
                "{}: this node cannot go on from that height: the snapshot that follows is whole; what is between is \
                 under /v1/blocks and in the account's history",
                name(&channel)
            );
            self.error("resume_gone", &message).await?;
        }
        let of = channel.clone();
        let (messages, progress) = match told {
            Some(told) => told,
            None => {
                self.api.blocking(move |api| snapshot(api, &of)).await.map_err(|_| STOPPING)?.map_err(|_| STOPPING)?
            }
        };
        self.channels.insert(channel, progress);
        for message in messages {
            self.send(message).await?;
        }
        Ok(())
    }

    /// Ends the channels whose login has ended with its key.
    async fn end_logins(&mut self) -> Delivered {
        let speaks = |channel: &Channel| match channel {
            Channel::Orders(account) => self.logins.speaks_for(self.api, account),
            _ => true,
        };
        let over: Vec<Channel> = self.channels.keys().filter(|channel| !speaks(channel)).cloned().collect();
        for channel in over {
            self.channels.remove(&channel);
            let message =
                format!("{}: the key that logged in is not the account's any more: log in anew", name(&channel));
            self.error("login_ended", &message).await?;
        }
        Ok(())
    }

    async fn send_block(&mut self, committed: &Arc<CommittedBlock>) -> Delivered {
        self.end_logins().await?;
        let channels = std::mem::take(&mut self.channels);
        let made = |(channel, progress): (&Channel, &Progress)| {
            increments_made(self.api, channel, progress.clone(), committed)
        };
        let (told, names): (Vec<Told>, Vec<Channel>) = match channels.iter().map(made).collect() {
            Some(told) => (told, channels.into_keys().collect()),
            None => {
                let committed = committed.clone();
                let make = move |api: &Api| {
                    let of = |(channel, progress): (Channel, Progress)| {
                        Ok((increments(api, &channel, progress, &committed)?, channel))
                    };
                    channels.into_iter().map(of).collect::<Result<_, Failure>>()
                };
                let made: Vec<_> = self.api.blocking(make).await.map_err(|_| STOPPING)?.map_err(|_| STOPPING)?;
                made.into_iter().unzip()
            }
        };
        let (messages, progress): (Vec<_>, Vec<_>) = told.into_iter().unzip();
        self.channels = names.into_iter().zip(progress).collect();
        for message in messages.into_iter().flatten() {
            self.send(message).await?;
        }
        Ok(())
    }
}
