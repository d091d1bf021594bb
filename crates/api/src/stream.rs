//! Messages of the stream. Every message is numbered by `sequence`, which these types leave out.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    AccountBody, BalanceBody, BatchBody, BlockBody, BookChangeBody, BookSnapshotBody, CandleBody, EndedOfferBody,
    ExactTradeBody, OfferBody, OutcomeBody, OwnOrdersBody, TickerBody,
};

/// A message of the stream.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamMessage {
    /// What a channel begins with.
    Snapshot(ChannelSnapshot),
    /// A channel goes on from the height that the client has.
    Resumed {
        /// Its name.
        channel: String,
        /// That height.
        height: u64,
    },
    /// A block.
    Block(BlockBody),
    /// A batch.
    Batch(BatchBody),
    /// What a market traded in a batch.
    Trade(MarketTradeBody),
    /// What changed in a book.
    Book(BookChangeBody),
    /// A market at a glance.
    Ticker(TickerBody),
    /// The newest candle of a market.
    Candle(MarketCandleBody),
    /// What a block did to an account.
    Account(AccountIncrement),
    /// What changed of an account's own orders.
    Orders(OwnOrdersBody),
    /// What a login signs; it counts once, on this connection.
    Challenge {
        /// 32 bytes in hexadecimal.
        nonce: String,
        /// The server as the client called it; whoever signs takes it from his own call.
        server: String,
        /// The identity of the network.
        network: String,
    },
    /// The connection may have the account's own channels.
    Login {
        /// The account.
        account: String,
        /// The slot of the session key that logged in; 0 of the account's own key.
        #[serde(default)]
        slot: u32,
    },
    /// What is submitted when this connection ends.
    OnDisconnect {
        /// Its id; `None` where nothing is held any more.
        id: Option<String>,
        /// The last block in which it may count.
        until: Option<String>,
        /// Why nothing is held any more.
        code: Option<String>,
        /// The same in a sentence.
        message: Option<String>,
    },
    /// A second has passed.
    Heartbeat {
        /// Height of the last block.
        height: u64,
        /// Its time, milliseconds since 1970.
        time_ms: u64,
    },
    /// A request is refused; the stream goes on.
    Error {
        /// A stable code.
        code: String,
        /// A sentence.
        message: String,
    },
}

/// What a channel begins with.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "SnapshotFields")]
pub struct ChannelSnapshot {
    /// The channel's name.
    pub channel: String,
    /// Height of the state.
    pub height: u64,
    /// What the channel is about, at that height.
    pub state: ChannelState,
}

/// What channels are about, by the first word of their names.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelState {
    /// The last blocks, newest first.
    Blocks(Vec<BlockBody>),
    /// The last batch, if there is one.
    Batch(Option<Box<BatchBody>>),
    /// Trades of the last batch.
    Trades(Vec<MarketTradeBody>),
    /// The best levels of a book.
    Book(BookSnapshotBody),
    /// A market at a glance.
    Ticker(Box<TickerBody>),
    /// The last candles, oldest first.
    Candles(Vec<CandleBody>),
    /// An account.
    Account(Box<AccountSnapshot>),
    /// An account's own orders.
    Orders(Box<OwnOrdersBody>),
}

/// A snapshot before its fields are read, which depend on its channel.
#[derive(Deserialize)]
struct SnapshotFields {
    channel: String,
    height: u64,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl TryFrom<SnapshotFields> for ChannelSnapshot {
    type Error = serde_json::Error;

    fn try_from(
        SnapshotFields { channel, height, mut fields }: SnapshotFields,
    ) -> Result<ChannelSnapshot, Self::Error> {
        let kind = channel.split(':').next().unwrap_or_default();
        let mut field = |name: &str| fields.remove(name).ok_or_else(|| serde::de::Error::custom(format!("no {name}")));
        let state = match kind {
            "blocks" => ChannelState::Blocks(serde_json::from_value(field("blocks")?)?),
            "batches" => ChannelState::Batch(serde_json::from_value(field("batch")?)?),
            "trades" => ChannelState::Trades(serde_json::from_value(field("trades")?)?),
            "ticker" => ChannelState::Ticker(serde_json::from_value(field("ticker")?)?),
            "candles" => ChannelState::Candles(serde_json::from_value(field("candles")?)?),
            "book" => {
                fields.insert("height".into(), height.into());
                ChannelState::Book(serde_json::from_value(Value::Object(fields))?)
            }
            "orders" => {
                fields.insert("height".into(), height.into());
                ChannelState::Orders(serde_json::from_value(Value::Object(fields))?)
            }
            "account" => ChannelState::Account(serde_json::from_value(Value::Object(fields))?),
            _ => return Err(serde::de::Error::custom(format!("no channel {channel:?}"))),
        };
        Ok(ChannelSnapshot { channel, height, state })
    }
}

/// An account, with its first thousand offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AccountSnapshot {
    /// The account; null if there is none.
    pub account: Option<AccountBody>,
    /// Its resting offers, by id.
    pub offers: Vec<OfferBody>,
    /// Whether there are more.
    pub more: bool,
    /// If so, the `cursor` of the next page of `/v1/accounts/{address}/offers`.
    pub next: Option<String>,
}

/// What a block did to an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AccountIncrement {
    /// Height of the block.
    pub height: u64,
    /// The account.
    pub address: String,
    /// Its own transactions.
    pub outcomes: Vec<OwnOutcomeBody>,
    /// Executions of its offers.
    pub fills: Vec<OwnFillBody>,
    /// Its exact orders that were filled.
    #[serde(default)]
    pub exacts: Vec<ExactTradeBody>,
    /// Its offers that left the book otherwise than by trading.
    pub ended: Vec<EndedOfferBody>,
    /// What it has after the block.
    pub balances: Vec<BalanceBody>,
}

/// The outcome of one of the account's transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OwnOutcomeBody {
    /// The transaction's id.
    pub id: String,
    /// Its outcome.
    pub outcome: OutcomeBody,
}

/// An execution of one of the account's offers; amounts in units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OwnFillBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// The offer's limit.
    pub limit: String,
    /// The offer's id.
    pub id: String,
    /// Units sold.
    pub sold: String,
    /// Units received, net of commission.
    pub bought: String,
    /// Units that rest.
    pub left: String,
    /// Units returned because they are too few for an offer.
    pub returned: String,
}

/// What a market traded in a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MarketTradeBody {
    /// Height of the batch.
    pub height: u64,
    /// `BASE/QUOTE`.
    pub market: String,
    /// The price, whole quote per whole base.
    pub price: String,
    /// The same in quote units per base unit.
    pub price_units: String,
    /// Base units traded.
    pub base_volume: String,
    /// Quote units traded.
    pub quote_volume: String,
}

/// The newest candle of a market, after a batch in which it traded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MarketCandleBody {
    /// Height of the batch.
    pub height: u64,
    /// `BASE/QUOTE`.
    pub market: String,
    /// `1m`, `5m`, `15m`, `1h`, `4h` or `1d`.
    pub interval: String,
    /// The candle.
    pub candle: CandleBody,
}
