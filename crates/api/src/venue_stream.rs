//! A venue's stream: what its clients say, and what they are told.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    AnswerBody, BookImageBody, BookTopBody, ErrorText, ListBody, OrderBody, PlacedResult, ReportBody, RequestBody,
    SideBody,
};

/// What a client says; each part is answered by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VenueSaid {
    /// Comes back with the answers; anything.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub id: Value,
    /// A signed request to attach a session: its orders come from here, and reports of its key come here; or for a drop
    /// copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<RequestBody>,
    /// Signed orders, up to 256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Vec<OrderBody>>,
    /// Lists of orders, each under one signature, up to 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<Vec<ListBody>>,
    /// A signed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestBody>,
    /// Markets whose books are told from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub books: Option<Vec<u32>>,
    /// The client lives: its dead man's timer begins again.
    #[serde(default)]
    pub heartbeat: bool,
}

/// A message of a venue's stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VenueMessage {
    /// Messages of a connection are counted from zero.
    pub sequence: u64,
    /// What it says.
    #[serde(flatten)]
    pub told: VenueTold,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum VenueTold {
    /// The session or the drop copy is attached.
    Attached {
        /// The client's.
        id: Value,
    },
    /// What orders came to, in their order.
    Results {
        /// The client's.
        id: Value,
        /// One for each order.
        results: Vec<PlacedResult>,
    },
    /// What a request came to.
    Answer {
        /// The client's.
        id: Value,
        /// The answer.
        answer: AnswerBody,
    },
    /// A part of what was said is refused; the stream goes on.
    Error {
        /// The client's.
        id: Value,
        /// Why.
        error: ErrorText,
    },
    /// The resting orders of a market; its events follow.
    Image {
        /// The client's.
        id: Value,
        /// The orders.
        image: BookImageBody,
    },
    /// A report of the session's key.
    Report {
        /// The report.
        report: ReportBody,
        /// Whether it is about an order of this session.
        own_session: bool,
    },
    /// A report of a key of the account that is watched.
    DropCopy {
        /// The account.
        account: String,
        /// The report.
        report: ReportBody,
    },
    /// What a step changed in a book that is told.
    Book {
        /// The market.
        market: u32,
        /// Its events, without gaps.
        events: Vec<BookEventBody>,
        /// The ten best levels after them.
        top: BookTopBody,
    },
    /// Matching pauses, or goes on.
    Pause {
        /// Why it pauses; nothing if it goes on.
        paused: Option<String>,
    },
    /// The root has stopped for ever.
    Stopped {
        /// Why.
        message: String,
    },
    /// A second has passed.
    Heartbeat {
        /// Why matching pauses.
        paused: Option<String>,
        /// The last certified height that the root knows.
        height: Option<u64>,
    },
}

/// An event of a book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BookEventBody {
    /// Its number; events of a market are counted from one.
    pub event: u64,
    /// What happened.
    #[serde(flatten)]
    pub what: BookChange,
}

/// What happened in a book. Ids, and indices of fills, are decimal strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BookChange {
    /// An order rests.
    Added {
        /// Its id.
        id: String,
        /// Its side.
        side: SideBody,
        /// Its price.
        tick: u32,
        /// Its open lots.
        lots: u32,
    },
    /// A resting order traded.
    Executed {
        /// Its id.
        id: String,
        /// Traded lots.
        lots: u32,
        /// The price.
        tick: u32,
        /// The fill.
        index: String,
    },
    /// It has fewer lots, and its place.
    Reduced {
        /// Its id.
        id: String,
        /// Lots that are gone.
        lots: u32,
    },
    /// It is gone.
    Deleted {
        /// Its id.
        id: String,
    },
    /// Another order has its place.
    Renamed {
        /// The id of before.
        id: String,
        /// The id from now on.
        to: String,
        /// Its open lots.
        lots: u32,
    },
    /// The market has another phase: `trading`, `call`, `halted`.
    Phase(String),
    /// A call has ended by an auction.
    Auction {
        /// The price; none if nothing met.
        tick: Option<u32>,
        /// Traded lots.
        lots: String,
    },
    /// Trades take place between these ticks.
    Collar {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
}
