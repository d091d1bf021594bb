//! The history of accounts: orders, fills, transfers, balances.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::OutcomeBody;

/// Orders of an account, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrdersBody {
    /// Height of the last block in the index.
    pub height: u64,
    /// Height of the first block in the index.
    pub known_from: u64,
    /// The orders.
    pub orders: Vec<PlacedOrderBody>,
    /// The `cursor` of the next page, if there may be one.
    pub next: Option<String>,
}

/// What an order asks for in its market, as it was placed. The market of two assets is that of the one with the higher
/// number, its base, in the other one, its quote. Of several amounts and prices with the same terms it is the one with
/// the fewest digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderTermsBody {
    /// `buy` or `sell`, of the base.
    pub side: Cow<'static, str>,
    /// Symbol of the base.
    pub base: String,
    /// Symbol of the quote.
    pub quote: String,
    /// Base units.
    pub amount: String,
    /// The limit: whole quote per whole base.
    pub price: String,
    /// The same in quote units per base unit.
    pub price_units: String,
}

/// What an exact order asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExactTermsBody {
    /// `buy` or `sell`: which amount is exact.
    pub side: Cow<'static, str>,
    /// Units to buy or to sell.
    pub units: String,
    /// The most units to pay, or the fewest to receive.
    pub bound: String,
}

/// An order: a transaction that places or replaces an offer, or an exact order, and how it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlacedOrderBody {
    /// Height of its block.
    pub height: u64,
    /// Time of the block, milliseconds since 1970.
    pub time_ms: u64,
    /// The transaction.
    pub id: String,
    /// The account's number of it, which is the offer's id.
    pub sequence: String,
    /// The last height at which it may count.
    pub until: String,
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Limit price: minimum units bought per unit sold.
    pub limit: String,
    /// Units that it asks to sell.
    pub amount: String,
    /// How long it rests: `rests`, `until HEIGHT` or `one batch`.
    pub life: String,
    /// What its client calls it; null if nothing.
    pub client: Option<String>,
    /// The id of the offer whose place it takes.
    pub replaces: Option<String>,
    /// Of an exact order, what it asks for; `limit` is the least rate that this means, and `amount` what it locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<ExactTermsBody>,
    /// What it asks for in its market, as it was placed; null if it names assets that there are not, or no amount.
    #[serde(default)]
    pub asked: Option<OrderTermsBody>,
    /// The outcome in its block.
    pub outcome: OutcomeBody,
    /// `refused` (it may come back until `until`), `resting`, `ended` or `void`.
    pub status: Cow<'static, str>,
    /// Of one that ended: `filled`, `returned` (too little was left for an offer), `cancelled`, `replaced`, `expired`
    /// or `one_batch`; of an exact order the reason of its outcome; of a refused one the code.
    pub why: Option<Cow<'static, str>>,
    /// Units that rest.
    pub left: String,
    /// Units sold, in all of its fills.
    pub sold: String,
    /// Units received, net of commission, in all of its fills; null if these are too many for the answer: `fills` has
    /// them by pages.
    pub bought: Option<String>,
    /// The last height that changed it.
    pub changed_height: u64,
    /// The envelope that held it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_by: Option<String>,
}

/// The definite answer about an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderFateBody {
    /// The account.
    pub account: String,
    /// Height of the last block in the index.
    pub height: u64,
    /// Height of the first block in the index.
    pub known_from: u64,
    /// `pending` and `refused` (it may count until `until`), `resting`, `ended`, or `void`: it never counts.
    pub status: Cow<'static, str>,
    /// The last height at which it may count.
    pub until: String,
    /// Why it ended, or was refused; or why it is void.
    pub why: Option<Cow<'static, str>>,
    /// The transaction.
    pub id: String,
    /// The account's number of it.
    pub sequence: String,
    /// The order, once it is in a block.
    pub order: Option<PlacedOrderBody>,
    /// Units sold.
    pub sold: String,
    /// Units received; null if it has more than a thousand fills, of which `fills` has the newest.
    pub bought: Option<String>,
    /// Units that returned to the account.
    pub returned: String,
    /// Its fills, newest first.
    pub fills: Vec<HistoryFillBody>,
    /// Numbers of other orders of the account with the same `client`, newest first.
    pub others: Vec<String>,
}

/// Fills of an account, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FillsBody {
    /// Height of the last block in the index.
    pub height: u64,
    /// Height of the first block in the index.
    pub known_from: u64,
    /// The fills.
    pub fills: Vec<HistoryFillBody>,
    /// The `cursor` of the next page, if there may be one.
    pub next: Option<String>,
}

/// An execution of an offer or of an exact order in a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryFillBody {
    /// Height of the batch.
    pub height: u64,
    /// Its time, milliseconds since 1970.
    pub time_ms: u64,
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// The offer's limit; of an exact order the least rate that it means.
    pub limit: String,
    /// The offer's id; of an exact order the number of its transaction.
    pub offer: String,
    /// Units sold.
    pub sold: String,
    /// Units received, net of commission.
    pub bought: String,
    /// Units that rest.
    pub left: String,
    /// Units returned because they are too few for an offer; of an exact order what it locked and did not sell.
    pub returned: String,
}

/// Transfers of an account, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransfersBody {
    /// Height of the last block in the index.
    pub height: u64,
    /// Height of the first block in the index.
    pub known_from: u64,
    /// The transfers.
    pub transfers: Vec<TransferBody>,
    /// The `cursor` of the next page, if there may be one.
    pub next: Option<String>,
}

/// Units that left or reached an account by a native operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransferBody {
    /// Height of its block.
    pub height: u64,
    /// Time of the block, milliseconds since 1970.
    pub time_ms: u64,
    /// The transaction.
    pub id: String,
    /// Symbol.
    pub asset: String,
    /// Units.
    pub amount: String,
    /// `in` or `out`.
    pub direction: Cow<'static, str>,
    /// `payment`, `issue`, `burn`, `stake`, `lane` or `venue`.
    pub kind: Cow<'static, str>,
    /// The other account, if there is one.
    pub with: Option<String>,
    /// What for, if its sender said so. It is public, and nobody has checked it.
    #[serde(default)]
    pub reference: Option<ReferenceBody>,
}

/// What a payment is for, as its sender says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReferenceBody {
    /// `text`, `uuid`, `message` or `number`.
    pub kind: Cow<'static, str>,
    /// 1 to 35 printable ASCII characters; a UUID in lower case; the SHA-256 of a message in hexadecimal; or a decimal
    /// number below 2^64.
    pub value: String,
}

/// What an account had after the blocks that changed it, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BalancesBody {
    /// Height of the last block in the index.
    pub height: u64,
    /// Height of the first block in the index.
    pub known_from: u64,
    /// The balances.
    pub balances: Vec<BalancesAtBody>,
    /// The `cursor` of the next page, if there may be one.
    pub next: Option<String>,
}

/// What an account had after a block, of the assets that the block may have changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BalancesAtBody {
    /// Height of the block.
    pub height: u64,
    /// Height of the state that was read: the same, or a later one if the index was behind.
    pub state_height: u64,
    /// Time of the block, milliseconds since 1970.
    pub time_ms: u64,
    /// Each asset.
    pub balances: Vec<HeldBody>,
}

/// Units of one asset at a height.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeldBody {
    /// Symbol.
    pub asset: String,
    /// Units that the account could spend.
    pub available: String,
    /// Units locked in its offers; null if they were not known at this height.
    pub locked: Option<String>,
}

/// An account's own orders, on the stream: the newest, or those that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OwnOrdersBody {
    /// Height of the last block that is told.
    pub height: u64,
    /// The account.
    pub account: String,
    /// Orders of blocks as they stand, the highest numbers first. An order that was refused and sent again is there
    /// once for each block.
    pub orders: Vec<PlacedOrderBody>,
    /// Fills, the newest first.
    pub fills: Vec<HistoryFillBody>,
    /// All orders that this node took and that are in no block yet, at most 100.
    pub pending: Vec<PendingOrderBody>,
}

/// An order that a node took and that is in no block yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PendingOrderBody {
    /// The transaction.
    pub id: String,
    /// The account's number of it.
    pub sequence: String,
    /// The last height at which it may count.
    pub until: String,
}
