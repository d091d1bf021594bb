//! The stream of a node: channels about blocks, markets and accounts, each a snapshot and what follows it.
//!
//! Messages are numbered: a gap ends the stream, since what was shown may be wrong. A node says something every second,
//! so a silence of five ends it, too. [`Stream::open`] goes on from heights that the caller has, where the node can.

use std::collections::VecDeque;
use std::fmt;
use std::net::TcpStream;
use std::str::FromStr;
use std::time::{Duration, Instant};

use api::StreamMessage;
use primitives::{Address, Digest, SecretKey, Transaction, login_bytes, to_hex};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use crate::error::ClientError;
use crate::node::NodeClient;

/// Seconds without a message after which a stream has ended.
const SILENCE: Duration = Duration::from_secs(5);

/// What a stream can be about. Markets are named `BASE/QUOTE`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// Each block.
    Blocks,
    /// Each batch.
    Batches,
    /// What one market trades, or each.
    Trades(Option<String>),
    /// The best levels of a book: see [`LocalBook`](crate::LocalBook).
    Book(String),
    /// A market at a glance.
    Ticker(String),
    /// The newest candle of a market, and an interval such as `1m`.
    Candles(String, String),
    /// An account.
    Account(Address),
    /// An account's own orders, those that are in no block yet included: after a [`Stream::log_in`].
    Orders(Address),
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Channel::Blocks => f.write_str("blocks"),
            Channel::Batches => f.write_str("batches"),
            Channel::Trades(None) => f.write_str("trades"),
            Channel::Trades(Some(market)) => write!(f, "trades:{market}"),
            Channel::Book(market) => write!(f, "book:{market}"),
            Channel::Ticker(market) => write!(f, "ticker:{market}"),
            Channel::Candles(market, interval) => write!(f, "candles:{market}:{interval}"),
            Channel::Account(account) => write!(f, "account:{account}"),
            Channel::Orders(account) => write!(f, "orders:{account}"),
        }
    }
}

/// A node's stream. Nothing that it says is verified.
pub struct Stream {
    node: NodeClient,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    /// Number of the next message.
    next: u64,
    /// What came while an answer was awaited.
    unread: VecDeque<Told>,
    /// When the node last said something.
    heard: Instant,
}

/// A message of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// As the node wrote it.
    pub text: String,
    /// The message.
    pub event: StreamMessage,
}

/// The number of a message.
#[derive(Deserialize)]
struct Numbered {
    sequence: u64,
}

impl Stream {
    /// Begins channels. One with a height goes on after it, or begins with a snapshot where the node cannot tell what
    /// was between (an event `Error` with the code `resume_gone` says so).
    ///
    /// # Errors
    /// [`ClientError::NoStream`] if no node answers.
    pub fn open(node: &NodeClient, channels: &[(Channel, Option<u64>)]) -> Result<Stream, ClientError> {
        let url = format!("{}/v1/stream", node.url().replacen("http", "ws", 1));
        let silent = |cause| ClientError::NoStream { server: node.url().into(), cause: Box::new(cause) };
        let (socket, _) = tungstenite::connect(&url).map_err(silent)?;
        let mut stream = Stream { node: node.clone(), socket, next: 0, unread: VecDeque::new(), heard: Instant::now() };
        stream.subscribe(channels)?;
        Ok(stream)
    }

    /// Begins more channels, as [`open`](Self::open) does.
    ///
    /// # Errors
    /// [`ClientError::StreamEnded`].
    pub fn subscribe(&mut self, channels: &[(Channel, Option<u64>)]) -> Result<(), ClientError> {
        let names: Vec<String> = channels.iter().map(|(channel, _)| channel.to_string()).collect();
        let heights = channels.iter().filter_map(|(channel, height)| Some((channel.to_string(), json!((*height)?))));
        let resume: Map<String, Value> = heights.collect();
        self.say(&json!({"subscribe": names, "resume": resume}))
    }

    /// Ends channels. What the node had said before is still to be read.
    ///
    /// # Errors
    /// [`ClientError::StreamEnded`].
    pub fn unsubscribe(&mut self, channels: &[Channel]) -> Result<(), ClientError> {
        let names: Vec<String> = channels.iter().map(Channel::to_string).collect();
        self.say(&json!({ "unsubscribe": names }))
    }

    /// Proves that a key signs for an account, so that the stream may tell it [`Channel::Orders`]. What the node says
    /// meanwhile is still to be read.
    ///
    /// The signature names this server by the address that it was called at: a node that passes on another one's
    /// challenge gains nothing.
    ///
    /// # Errors
    /// [`ClientError::Refused`], or the stream has ended.
    pub fn log_in(&mut self, account: &Address, key: &SecretKey) -> Result<(), ClientError> {
        self.say(&json!({"challenge": true}))?;
        let challenge = self.answer(|event| matches!(event, StreamMessage::Challenge { .. }))?;
        let StreamMessage::Challenge { nonce, network, .. } = challenge else { unreachable!("it was chosen") };
        let nonce = Digest::from_str(&nonce).map_err(|_| self.node.foreign("its challenge has no nonce"))?;
        let network: Digest = self.node.number("network", &network)?;
        let server = self.node.url().split_once("://").map_or("", |(_, rest)| rest);
        let server = server.split('/').next().unwrap_or_default();
        let signature = key.sign(&login_bytes(&network, account, &nonce.0, server));
        self.say(&json!({"login": {
            "account": account.to_string(),
            "key": key.public().to_string(),
            "signature": format!("0x{}", to_hex(&signature.0)),
        }}))?;
        self.answer(|event| matches!(event, StreamMessage::Login { .. })).map(drop)
    }

    /// Leaves a signed stop or cancel with the node, which submits it when this connection ends; a newer one takes its
    /// place. `OnDisconnect` or `Error` is still to be read. [`DisconnectGuard`](crate::DisconnectGuard) renews what is
    /// left.
    ///
    /// # Errors
    /// [`ClientError::StreamEnded`].
    pub fn leave(&mut self, transaction: &Transaction) -> Result<(), ClientError> {
        let bytes = borsh::to_vec(transaction).expect("writing to memory cannot fail");
        self.say(&json!({"on_disconnect": format!("0x{}", to_hex(&bytes))}))
    }

    /// Takes back what was left. `OnDisconnect` is still to be read.
    ///
    /// # Errors
    /// [`ClientError::StreamEnded`].
    pub fn withdraw(&mut self) -> Result<(), ClientError> {
        self.say(&json!({"withdraw": true}))
    }

    /// Waits for an answer; a refusal is an error.
    fn answer(&mut self, is_answer: impl Fn(&StreamMessage) -> bool) -> Result<StreamMessage, ClientError> {
        loop {
            let told = self.hear()?;
            match told.event {
                event if is_answer(&event) => return Ok(event),
                StreamMessage::Error { code, message } => {
                    return Err(ClientError::Refused { server: self.node.url().into(), status: 403, code, message });
                }
                _ => self.unread.push_back(told),
            }
        }
    }

    fn say(&mut self, request: &Value) -> Result<(), ClientError> {
        self.socket.send(Message::text(request.to_string())).map_err(|error| self.ended(error.to_string()))
    }

    /// Waits for the next message: snapshots, what each block does, and a heartbeat every second.
    ///
    /// # Errors
    /// [`ClientError`]: the stream has ended, messages were missed, or one is of another version.
    pub fn wait(&mut self) -> Result<Told, ClientError> {
        match self.unread.pop_front() {
            Some(told) => Ok(told),
            None => self.hear(),
        }
    }

    /// The same, up to a patience; `None` if nothing has come.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_at_most(&mut self, patience: Duration) -> Result<Option<Told>, ClientError> {
        match self.unread.pop_front() {
            Some(told) => Ok(Some(told)),
            None => self.hear_within(patience),
        }
    }

    fn hear(&mut self) -> Result<Told, ClientError> {
        loop {
            if let Some(told) = self.hear_within(SILENCE)? {
                return Ok(told);
            }
        }
    }

    fn hear_within(&mut self, patience: Duration) -> Result<Option<Told>, ClientError> {
        if let MaybeTlsStream::Plain(tcp) = self.socket.get_ref() {
            tcp.set_read_timeout(Some(patience)).map_err(|error| self.ended(error.to_string()))?;
        }
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    self.heard = Instant::now();
                    return self.read(text.to_string()).map(Some);
                }
                Ok(Message::Close(frame)) => {
                    return Err(self.ended(frame.map_or("no reason given".into(), |frame| frame.reason.to_string())));
                }
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
                {
                    if self.heard.elapsed() < SILENCE {
                        return Ok(None);
                    }
                    return Err(self.ended(format!("it has been silent for {} seconds", SILENCE.as_secs())));
                }
                Err(error) => return Err(self.ended(error.to_string())),
            }
        }
    }

    fn read(&mut self, text: String) -> Result<Told, ClientError> {
        let foreign = |error: serde_json::Error| self.node.foreign(&error.to_string());
        let Numbered { sequence } = serde_json::from_str(&text).map_err(foreign)?;
        let event = serde_json::from_str(&text).map_err(foreign)?;
        if sequence != self.next {
            return Err(self.ended(format!("message {sequence} came instead of message {}", self.next)));
        }
        self.next += 1;
        Ok(Told { text, event })
    }

    fn ended(&self, reason: String) -> ClientError {
        ClientError::StreamEnded { server: self.node.url().into(), reason }
    }
}
