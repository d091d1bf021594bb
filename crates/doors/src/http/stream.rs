//! The WebSocket stream: a snapshot for each channel, then increments; every message is numbered; slow readers are
//! disconnected.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::{AccountIncrement, AccountSnapshot, OwnFillBody, OwnOutcomeBody, TickerBody};
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use primitives::{Address, Height};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::batch_news::{candle, trades};
use super::channels::{Channel, name, parse};
use super::login::{Login, Logins};
use super::own_orders::{OrdersNews, ToldOrders};
use super::{Api, Failure, OffersPage};
use crate::book_feed::BookNews;
use crate::door::{DISPLACED, Visitor};
use crate::json::{self, Offers};
use readers::views::CommittedBlock;

/// Maximum number of channels of one connection.
pub(crate) const CHANNELS: usize = 64;
/// Maximum size of a client's message.
pub(crate) const MESSAGE_BYTES: usize = 16 << 10;
/// Candles in a snapshot.
const CANDLES: usize = 500;
/// Said of a message that is no request.
const REQUEST: &str =
    r#"send {"subscribe":["blocks"]}, {"unsubscribe":["blocks"]}, {"challenge":true} or {"login":{…}}; this is none"#;
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A reader that cannot be written to for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection stays open after a message that is too long: its rest is not read, and to close at once would
/// destroy the reason on its way to the client.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

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
}

/// How far a connection has told a channel.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Of a book: the height of the reader's book.
    height: Height,
    /// Of a ticker: what was told last.
    ticker: Option<TickerBody>,
    /// Of an account's own orders.
    orders: ToldOrders,
}

/// Messages of a channel, and how far it is told after them.
type Told = (Vec<Value>, Progress);

/// Upgrades a connection.
pub(crate) async fn open(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(share) = api.streams.take(visitor.address, 1) else {
        let message = "too many connections of the stream, of all or of this address; try again shortly";
        return Failure::busy("too_many_streams", message).into_response();
    };
    upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES).on_upgrade(async move |socket| {
        api.backend.metrics().streams.inc();
        serve(&api, &visitor, Logins::of(&headers), socket).await;
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
    /// Number of the next message.
    sequence: u64,
}

/// The close code and the reason for a client whose message cannot be read; `None` if its connection is broken.
/// Messages have at most `limit` bytes.
pub(crate) fn ended_by(error: axum::Error, limit: usize) -> Option<(u16, Cow<'static, str>)> {
    match *error.into_inner().downcast::<tungstenite::Error>().ok()? {
        tungstenite::Error::Capacity(_) => {
            let reason = format!("a message has at most {limit} bytes, see /v1/limits: send shorter ones");
            Some((close_code::SIZE, reason.into()))
        }
        tungstenite::Error::Utf8(_) => Some((close_code::INVALID, "a text message is UTF-8".into())),
        tungstenite::Error::Protocol(_) => Some((close_code::PROTOCOL, "not the WebSocket protocol".into())),
        _ => None,
    }
}

async fn serve(api: &Api, visitor: &Visitor, logins: Logins, socket: WebSocket) {
    let (sink, mut source) = socket.split();
    let mut connection = Connection { api, socket: sink, channels: BTreeMap::new(), logins, sequence: 0 };
    let mut events = api.published().subscribe();
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (code, reason) = loop {
        let served = tokio::select! {
            message = source.next() => match message {
                Some(Ok(Message::Text(text))) => connection.on_request(&text).await,
                Some(Ok(Message::Binary(_))) => connection.error("malformed", "send text messages").await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                Some(Ok(Message::Close(_))) | None => return,
                Some(Err(error)) => match ended_by(error, MESSAGE_BYTES) {
                    Some(end) => break end,
                    None => return,
                },
            },
            event = events.recv() => match event {
                Ok(committed) => connection.send_block(&committed).await,
                Err(RecvError::Lagged(_)) => Err("too slow: connect again and take a snapshot"),
                Err(RecvError::Closed) => Err(STOPPING),
            },
            // An open connection would keep the stores in use and prevent the node's restart.
            _ = heartbeat.tick() => match api.blocking(|api| api.backend.standing()).await {
                Ok(standing) if standing.begins_again => {
                    Err("the node begins again with a fetched state: connect again")
                }
                Ok(_) => connection.send_heartbeat().await,
                Err(_) => Err(STOPPING),
            },
            () = visitor.visit.displaced() => Err(DISPLACED),
        };
        match served {
            Ok(()) => visitor.visit.progress(),
            Err(reason) => break (close_code::AGAIN, reason.into()),
        }
    };
    api.backend.metrics().streams_dropped.inc();
    let frame = CloseFrame { code, reason: reason.into_owned().into() };
    let close = connection.socket.send(Message::Close(Some(frame)));
    // A reader that does not read does not receive the reason either.
    drop(tokio::time::timeout(HEARTBEAT, close).await);
    if code == close_code::SIZE {
        tokio::time::sleep(LINGER).await;
    }
}

type Delivered = Result<(), &'static str>;

const STOPPING: &str = "the node is stopping";

impl Connection<'_> {
    async fn send(&mut self, mut message: Value) -> Delivered {
        message["sequence"] = self.sequence.into();
        self.sequence += 1;
        match tokio::time::timeout(WRITE_TIMEOUT, self.socket.send(Message::text(message.to_string()))).await {
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

    async fn on_request(&mut self, text: &str) -> Delivered {
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

    async fn send_block(&mut self, committed: &Arc<CommittedBlock>) -> Delivered {
        let (channels, committed) = (std::mem::take(&mut self.channels), committed.clone());
        let told = self.api.blocking(move |api| {
            let of = |(channel, progress): (Channel, Progress)| {
                let (messages, progress) = increments(api, &channel, progress, &committed)?;
                Ok((messages, (channel, progress)))
            };
            channels.into_iter().map(of).collect::<Result<Vec<_>, Failure>>()
        });
        let (messages, channels): (Vec<_>, Vec<_>) =
            told.await.map_err(|_| STOPPING)?.map_err(|_| STOPPING)?.into_iter().unzip();
        self.channels = channels.into_iter().collect();
        for message in messages.into_iter().flatten() {
            self.send(message).await?;
        }
        Ok(())
    }
}

fn tagged(kind: &str, body: impl serde::Serialize) -> Value {
    let mut value = serde_json::to_value(body).expect("plain data");
    value["type"] = kind.into();
    value
}

fn snapshot(api: &Api, channel: &Channel) -> Result<Told, Failure> {
    let published = api.published();
    let mut progress = Progress { height: published.views().height(), ..Progress::default() };
    let mut message = match channel {
        Channel::Blocks => {
            let views = published.views();
            json!({"blocks": views.blocks(u64::MAX).take(20).map(json::block).collect::<Vec<_>>()})
        }
        Channel::Batches => {
            let views = published.views();
            json!({"batch": views.batches().next_back().map(|batch| api.symbols.batch(batch))})
        }
        Channel::Trades(market) => {
            let last = published.views().batches().next_back().cloned();
            let trades = last.map(|batch| trades(api, market, &batch));
            json!({"trades": trades.unwrap_or_default()})
        }
        Channel::Candles(base, quote, interval) => {
            let sides = api.sides(base, quote)?;
            json!({"candles": api.candles_body(sides, *interval, u64::MAX, CANDLES).candles})
        }
        Channel::Book(base, quote) => {
            let book = api.books.snapshot(published, &api.symbols, api.sides(base, quote)?);
            progress.height = book.height;
            serde_json::to_value(book).expect("plain data")
        }
        Channel::Ticker(base, quote) => {
            let ticker = api.ticker(base, quote)?;
            progress.height = ticker.height;
            progress.ticker = Some(ticker.clone());
            json!({ "ticker": ticker })
        }
        Channel::Account(address) => {
            let account = api.account_body(address)?;
            let Offers { offers, more, next, .. } = api.offers_body(address, OffersPage::of(1_000));
            serde_json::to_value(AccountSnapshot { account, offers, more, next }).expect("plain data")
        }
        Channel::Orders(address) => {
            let (body, told) = api.orders_snapshot(address)?;
            progress.height = body.height;
            progress.orders = told;
            serde_json::to_value(body).expect("plain data")
        }
    };
    message["type"] = "snapshot".into();
    message["channel"] = name(channel).into();
    message["height"] = progress.height.into();
    Ok((vec![message], progress))
}

/// What follows a height in a channel; `None` if this node cannot tell it.
fn resumed(api: &Api, channel: &Channel, height: Height) -> Result<Option<Told>, Failure> {
    if let Channel::Book(base, quote) = channel {
        let news = api.books.news(api.published(), &api.symbols, api.sides(base, quote)?, height);
        let begin = |mut messages: Vec<Value>, at| {
            messages.insert(0, json!({"type": "resumed", "channel": name(channel), "height": height}));
            Some((messages, Progress { height: at, ..Progress::default() }))
        };
        return Ok(match news {
            BookNews::Same(at) => begin(Vec::new(), at),
            BookNews::Changes(changes, at) => {
                begin(changes.iter().map(|change| tagged("book", &**change)).collect(), at)
            }
            BookNews::Lost => None,
        });
    }
    let views = api.published().views();
    let last = views.height();
    let is_kept = height == last || views.block(height.saturating_add(1)).is_some();
    if height > last || !is_kept {
        return Ok(None);
    }
    let mut messages = vec![json!({"type": "resumed", "channel": name(channel), "height": height})];
    match channel {
        Channel::Blocks => {
            let later = views.blocks(u64::MAX).take_while(|block| block.height > height);
            let mut later: Vec<Value> = later.map(|block| tagged("block", json::block(block))).collect();
            later.reverse();
            messages.extend(later);
        }
        Channel::Batches | Channel::Trades(_) => {
            let later: Vec<_> = views.batches().rev().take_while(|batch| batch.height > height).cloned().collect();
            drop(views);
            for batch in later.into_iter().rev() {
                match channel {
                    Channel::Trades(market) => {
                        messages.extend(trades(api, market, &batch).into_iter().map(|trade| tagged("trade", trade)));
                    }
                    _ => messages.push(tagged("batch", api.symbols.batch(&batch))),
                }
            }
        }
        // Their snapshots are whole.
        _ => return Ok(None),
    }
    Ok(Some((messages, Progress { height: last, ..Progress::default() })))
}

fn increments(
    api: &Api,
    channel: &Channel,
    mut progress: Progress,
    committed: &CommittedBlock,
) -> Result<Told, Failure> {
    let messages = match channel {
        Channel::Blocks => vec![tagged("block", json::block(&committed.summary))],
        Channel::Batches => vec![tagged("batch", api.symbols.batch(&committed.batch))],
        Channel::Trades(market) => {
            trades(api, market, &committed.batch).into_iter().map(|trade| tagged("trade", trade)).collect()
        }
        Channel::Candles(base, quote, interval) => {
            let changed = candle(api, base, quote, *interval, &committed.batch);
            changed.map(|candle| tagged("candle", candle)).into_iter().collect()
        }
        Channel::Book(base, quote) => {
            match api.books.news(api.published(), &api.symbols, api.sides(base, quote)?, progress.height) {
                BookNews::Same(height) => {
                    progress.height = height;
                    Vec::new()
                }
                BookNews::Changes(changes, height) => {
                    progress.height = height;
                    changes.iter().map(|change| tagged("book", &**change)).collect()
                }
                BookNews::Lost => return snapshot(api, channel),
            }
        }
        Channel::Ticker(base, quote) => {
            let ticker = api.ticker(base, quote)?;
            let is_news = progress.ticker.as_ref().is_none_or(|told| differs(told, &ticker));
            let messages = is_news.then(|| tagged("ticker", ticker.clone())).into_iter().collect();
            if is_news {
                progress.ticker = Some(ticker);
            }
            messages
        }
        Channel::Account(address) => account_increment(api, address, committed)?.into_iter().collect(),
        Channel::Orders(address) => {
            let (news, told) = api.orders_news(address, progress.orders, committed)?;
            progress.orders = told;
            match news {
                OrdersNews::Nothing => Vec::new(),
                OrdersNews::Changes(body) => vec![tagged("orders", body)],
                OrdersNews::Snapshot(body) => {
                    let mut message = tagged("snapshot", body);
                    message["channel"] = name(channel).into();
                    vec![message]
                }
            }
        }
    };
    Ok((messages, progress))
}

/// Whether tickers of two heights tell something else.
fn differs(told: &TickerBody, now: &TickerBody) -> bool {
    TickerBody { height: told.height, time_ms: told.time_ms, ..now.clone() } != *told
}

fn account_increment(api: &Api, address: &Address, committed: &CommittedBlock) -> Result<Option<Value>, Failure> {
    let outcomes = committed.outcomes.iter().filter(|(account, _, _)| account == address);
    let outcomes: Vec<OwnOutcomeBody> = outcomes
        .map(|(_, id, outcome)| OwnOutcomeBody { id: id.to_string(), outcome: json::outcome(outcome) })
        .collect();
    let fills = committed.batch.batch.fills.iter().filter(|fill| fill.place.account == *address);
    let fills: Vec<OwnFillBody> = fills
        .map(|fill| OwnFillBody {
            sell: api.symbols.get(fill.pair.sell).to_string(),
            buy: api.symbols.get(fill.pair.buy).to_string(),
            limit: fill.place.limit.to_string(),
            id: fill.place.id.to_string(),
            sold: fill.sold.to_string(),
            bought: fill.bought.to_string(),
            left: fill.left.to_string(),
            returned: fill.returned.to_string(),
        })
        .collect();
    let ended = committed.batch.batch.ended.iter().filter(|ended| ended.place.account == *address);
    let ended: Vec<_> = ended.map(|ended| api.symbols.ended(ended)).collect();
    let exacts = committed.batch.batch.exacts.iter().filter(|trade| trade.account == *address);
    let exacts = exacts.map(|trade| api.symbols.exact_trade(trade)).collect();
    let received = committed.credited.contains(address);
    // An exact order that was filled has an outcome.
    if outcomes.is_empty() && fills.is_empty() && ended.is_empty() && !received {
        return Ok(None);
    }
    let balances = api.account_body(address)?.map(|account| account.balances);
    let (height, address) = (committed.summary.height, address.to_string());
    let balances = balances.unwrap_or_default();
    let increment = AccountIncrement { height, address, outcomes, fills, exacts, ended, balances };
    Ok(Some(tagged("account", increment)))
}
