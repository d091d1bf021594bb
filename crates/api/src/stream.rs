//! Messages of the stream about an account. Every message is numbered by `seq`, which these types leave out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{AccountBody, BalanceBody, CandleBody, EndedOfferBody, OfferBody, OutcomeBody};

/// A message of a stream that follows an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AccountEvent {
    /// The account as it is when its channel begins.
    Snapshot(AccountSnapshot),
    /// What a block did to the account.
    Account(AccountIncrement),
    /// Nothing happened for a second.
    Heartbeat {
        /// Height of the last block.
        height: u64,
        /// Its time, milliseconds since 1970.
        time_ms: u64,
    },
    /// A request is refused.
    Error {
        /// A stable code.
        code: String,
        /// A sentence.
        message: String,
    },
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
