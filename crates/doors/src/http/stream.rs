//! The WebSocket stream: a snapshot for each channel, then increments; every message is numbered; slow readers are
//! disconnected.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::{AccountIncrement, AccountSnapshot, OwnFillBody, OwnOutcomeBody};
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use primitives::Address;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::{Api, Failure, OffersPage};
use crate::door::{DISPLACED, Visitor};
use crate::json::{self, Offers};
use readers::Sides;
use readers::candles::Interval;
use readers::views::CommittedBlock;

/// Maximum number of channels of one connection.
pub(crate) const CHANNELS: usize = 64;
/// Maximum size of a client's message.
pub(crate) const MESSAGE_BYTES: usize = 16 << 10;
/// Candles in a snapshot.
const CANDLES: usize = 500;
/// Said of a message that is no request.
const REQUEST: &str = r#"send {"subscribe":["blocks"]} or {"unsubscribe":["blocks"]}; this is neither"#;
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A reader that cannot be written to for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection stays open after a message that is too long: its rest is not read, and to close at once would
/// destroy the reason on its way to the client.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// A channel of the stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Blocks,
    Batches,
    /// Trades of one market, named as requested, or of all.
    Trades(Option<(String, String)>),
    /// Candles of one market.
    Candles(String, String, Interval),
    Account(Address),
}

/// A client's request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default)]
    subscribe: Vec<String>,
    #[serde(default)]
    unsubscribe: Vec<String>,
}

fn parse(api: &Api, name: &str) -> Result<Channel, String> {
    match name.split_once(':') {
        None if name == "blocks" => Ok(Channel::Blocks),
        None if name == "batches" => Ok(Channel::Batches),
        None if name == "trades" => Ok(Channel::Trades(None)),
        Some(("trades", market)) => {
            let (base, quote) = market.split_once('/').ok_or(format!("{market:?} is not a market such as EUR/USD"))?;
            api.sides(base, quote).map_err(|_| format!("no market {market:?}; see /v1/markets"))?;
            Ok(Channel::Trades(Some((base.into(), quote.into()))))
        }
        Some(("candles", candles)) => {
            let wrong = || format!("{candles:?} is not a market and an interval such as EUR/USD:1m");
            let (market, interval) = candles.split_once(':').ok_or_else(wrong)?;
            let (base, quote) = market.split_once('/').ok_or_else(wrong)?;
            api.sides(base, quote).map_err(|_| format!("no market {market:?}; see /v1/markets"))?;
            Ok(Channel::Candles(base.into(), quote.into(), interval.parse()?))
        }
        Some(("account", address)) => address.parse().map(Channel::Account).map_err(|error| error.to_string()),
        _ => Err(format!(
            "no channel {name:?}; there are blocks, batches, trades, trades:BASE/QUOTE, candles:BASE/QUOTE:1m and \
             account:0x…"
        )),
    }
}

fn name(channel: &Channel) -> String {
    match channel {
        Channel::Blocks => "blocks".into(),
        Channel::Batches => "batches".into(),
        Channel::Trades(None) => "trades".into(),
        Channel::Trades(Some((base, quote))) => format!("trades:{base}/{quote}"),
        Channel::Candles(base, quote, interval) => format!("candles:{base}/{quote}:{}", interval.name()),
        Channel::Account(address) => format!("account:{address}"),
    }
}

/// Upgrades a connection.
pub(crate) async fn open(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(share) = api.streams.take(visitor.address, 1) else {
        let message = "too many connections of the stream, of all or of this address; try again shortly";
        return Failure::busy("too_many_streams", message).into_response();
    };
    upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES).on_upgrade(async move |socket| {
        api.backend.metrics().streams.inc();
        serve(&api, &visitor, socket).await;
        api.backend.metrics().streams.dec();
        drop(share);
    })
}

/// One connection.
struct Connection<'a> {
    api: &'a Api,
    socket: futures_util::stream::SplitSink<WebSocket, Message>,
    channels: BTreeSet<Channel>,
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

async fn serve(api: &Api, visitor: &Visitor, socket: WebSocket) {
    let (sink, mut source) = socket.split();
    let mut connection = Connection { api, socket: sink, channels: BTreeSet::new(), sequence: 0 };
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
        for name in &request.unsubscribe {
            match parse(self.api, name) {
                Ok(channel) => drop(self.channels.remove(&channel)),
                Err(message) => self.error("unknown_channel", &message).await?,
            }
        }
        for name in &request.subscribe {
            match parse(self.api, name) {
                Err(message) => self.error("unknown_channel", &message).await?,
                Ok(_) if self.channels.len() >= CHANNELS => {
                    self.error("too_many_channels", "at most 64 channels a connection").await?;
                }
                Ok(channel) => {
                    let api = self.api.clone();
                    let of = channel.clone();
                    let snapshot = tokio::task::spawn_blocking(move || snapshot(&api, &of)).await;
                    self.channels.insert(channel);
                    self.send(snapshot.map_err(|_| STOPPING)?.map_err(|_| STOPPING)?).await?;
                }
            }
        }
        Ok(())
    }

    async fn send_block(&mut self, committed: &Arc<CommittedBlock>) -> Delivered {
        let (channels, committed) = (self.channels.clone(), committed.clone());
        let messages = self.api.blocking(move |api| {
            let of = |channel| increments(api, channel, &committed);
            channels.iter().map(of).collect::<Result<Vec<_>, Failure>>()
        });
        for message in messages.await.map_err(|_| STOPPING)?.map_err(|_| STOPPING)?.into_iter().flatten() {
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

fn snapshot(api: &Api, channel: &Channel) -> Result<Value, Failure> {
    let published = api.published();
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
        Channel::Account(address) => {
            let account = api.account_body(address)?;
            let Offers { offers, more, next, .. } = api.offers_body(address, OffersPage::of(1_000));
            serde_json::to_value(AccountSnapshot { account, offers, more, next }).expect("plain data")
        }
    };
    message["type"] = "snapshot".into();
    message["channel"] = name(channel).into();
    Ok(message)
}

fn increments(api: &Api, channel: &Channel, committed: &CommittedBlock) -> Result<Vec<Value>, Failure> {
    Ok(match channel {
        Channel::Blocks => vec![tagged("block", json::block(&committed.summary))],
        Channel::Batches => vec![tagged("batch", api.symbols.batch(&committed.batch))],
        Channel::Trades(market) => {
            trades(api, market, &committed.batch).into_iter().map(|trade| tagged("trade", trade)).collect()
        }
        Channel::Candles(base, quote, interval) => {
            candle(api, base, quote, *interval, &committed.batch).into_iter().collect()
        }
        Channel::Account(address) => account_increment(api, address, committed)?.into_iter().collect(),
    })
}

/// The trades of each market in a batch; of one market, or of all.
fn trades(api: &Api, market: &Option<(String, String)>, batch: &readers::views::BatchSummary) -> Vec<Value> {
    let chosen: Vec<Sides> = match market {
        Some((base, quote)) => api.sides(base, quote).into_iter().collect(),
        None => {
            let all = batch.batch.trades.iter().map(|trade| Sides::of(trade.pair));
            let unique: BTreeSet<_> = all.map(|sides| (sides.base, sides.quote)).collect();
            unique.into_iter().map(|(base, quote)| Sides { base, quote }).collect()
        }
    };
    let trade = |sides: Sides| {
        let (base_volume, quote_volume) = readers::sides::volumes(&batch.batch, sides);
        let valuation = |asset: primitives::AssetId| batch.batch.valuations[asset.0 as usize];
        (base_volume > 0 || quote_volume > 0).then(|| {
            let price_units = json::price(valuation(sides.base), valuation(sides.quote));
            json!({
                "height": batch.height,
                "market": api.symbols.market(sides.base, sides.quote),
                "price": api.symbols.whole_price(&price_units, sides.base, sides.quote),
                "price_units": price_units,
                "base_volume": base_volume.to_string(),
                "quote_volume": quote_volume.to_string(),
            })
        })
    };
    chosen.into_iter().filter_map(trade).collect()
}

/// The candle of one market that a batch has changed.
fn candle(
    api: &Api,
    base: &str,
    quote: &str,
    interval: Interval,
    batch: &readers::views::BatchSummary,
) -> Option<Value> {
    let sides = api.sides(base, quote).ok()?;
    let traded = readers::sides::volumes(&batch.batch, sides) != (0, 0);
    let last = traded.then(|| api.candles_body(sides, interval, u64::MAX, 1))?;
    let candle = last.candles.first()?;
    Some(json!({
        "type": "candle",
        "height": batch.height,
        "market": last.market,
        "interval": last.interval,
        "candle": candle,
    }))
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
    let received = committed.credited.contains(address);
    if outcomes.is_empty() && fills.is_empty() && ended.is_empty() && !received {
        return Ok(None);
    }
    let balances = api.account_body(address)?.map(|account| account.balances);
    let (height, address) = (committed.summary.height, address.to_string());
    let balances = balances.unwrap_or_default();
    let increment = AccountIncrement { height, address, outcomes, fills, ended, balances };
    Ok(Some(tagged("account", increment)))
}
