//! The history of accounts, from the index that the node keeps.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use borsh::BorshDeserialize;
use primitives::{Address, ClientId, Height, Reference, Sequence};
use readers::history::{
    BalanceRow, FillRow, HistoryPart, HistoryPlace, HistoryRange, HistoryRow, HistorySpan, OfferChange, OrderRow,
    TransferRow, read_row,
};
use serde::Deserialize;

use super::{Api, PAGE, number, parse};
use crate::PlacedOrder;
use crate::backend::{NoHistory, ReadError};
use crate::json::{self, ErrorBody, OrderSums, standing};
use crate::kit::{Answered, Failure};

/// Fills that the answer about one order has at most.
const FILLS_OF_ORDER: usize = 1_000;
/// Fills that the sums of all orders in an answer are made of at most.
const FILLS_OF_PAGE: usize = 10_000;
/// Orders with one client's name that are looked at.
const OF_CLIENT: usize = 100;

impl From<NoHistory> for Failure {
    fn from(none: NoHistory) -> Failure {
        match none {
            NoHistory::Off => Failure::new(StatusCode::NOT_FOUND, "no_history", none.to_string()),
            NoHistory::Failed => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "history_failed", none.to_string()),
        }
    }
}

/// The requested part of a history.
#[derive(Deserialize)]
pub(super) struct AskedPart {
    limit: Option<usize>,
    cursor: Option<String>,
    since: Option<String>,
    /// Of fills: those of one offer.
    offer: Option<String>,
    /// Of transfers: those with one reference.
    reference: Option<String>,
    /// Its kind; a text if it is not said.
    reference_kind: Option<String>,
}

/// A row and its place.
pub(super) type Placed<T> = (HistoryPlace, T);

/// Rows of a page, and the cursor of the next one.
type Rows<T> = (Vec<Placed<T>>, Option<String>);

impl AskedPart {
    /// What was asked of an index with these heights.
    fn part(&self, span: HistorySpan) -> Result<HistoryPart, Failure> {
        let below: Option<HistoryPlace> = self.cursor.as_ref().map(|text| parse("cursor", text)).transpose()?;
        let since = self.since.as_ref().map(|text| number("since", text)).transpose()?;
        if let Some(height) = below.map(|place| place.height).filter(|height| *height > span.height) {
            let message = format!(
                "cursor: it is of block {height}, and the history of this node ends at {}: the cursor is of another \
                 node, or of blocks that were taken back; begin again without a cursor",
                span.height
            );
            return Err(Failure::new(StatusCode::BAD_REQUEST, "cursor_ahead", message));
        }
        let lowest = since.into_iter().chain(below.map(|place| place.height)).min();
        match lowest {
            Some(height) if height < span.known_from => Err(gone(height, span)),
            _ => Ok(HistoryPart { below, since: since.unwrap_or(0) }),
        }
    }

    /// The reference that transfers are asked for by.
    fn reference(&self) -> Result<Option<Reference>, Failure> {
        let kind = self.reference_kind.as_ref().map(|name| parse("reference_kind", name)).transpose()?;
        match &self.reference {
            None if kind.is_some() => Err(Failure::malformed("reference_kind: it says what `reference` is; pass both")),
            None => Ok(None),
            Some(value) => Reference::read(kind.unwrap_or_default(), value)
                .map(Some)
                .map_err(|error| Failure::malformed(format!("reference: {error}"))),
        }
    }
}

/// What was asked for is older than the index.
fn gone(height: Height, span: HistorySpan) -> Failure {
    let message = format!(
        "the history of this node begins at block {}, and block {height} is asked for: begin again without `cursor` and \
         `since`, or ask a node that keeps more",
        span.known_from
    );
    Failure::new(StatusCode::GONE, "history_gone", message)
}

fn undecodable(error: std::io::Error) -> Failure {
    ReadError::Archive(format!("a row of the history is malformed: {error}")).into()
}

impl Api {
    fn rows<T: BorshDeserialize>(&self, range: &HistoryRange, count: usize) -> Result<Vec<Placed<T>>, Failure> {
        let rows: Vec<HistoryRow> = self.backend.history_rows(range, count)?;
        rows.iter().map(read_row).collect::<Result<_, _>>().map_err(undecodable)
    }

    /// Orders of a range, the newest first.
    pub(super) fn order_rows(&self, range: &HistoryRange, count: usize) -> Result<Vec<Placed<OrderRow>>, Failure> {
        self.rows(range, count)
    }

    /// Fills of a range, the newest first.
    pub(super) fn fill_rows(&self, range: &HistoryRange, count: usize) -> Result<Vec<Placed<FillRow>>, Failure> {
        self.rows(range, count)
    }

    /// A page of rows.
    fn page_of<T: BorshDeserialize>(&self, range: &HistoryRange, asked: &AskedPart) -> Result<Rows<T>, Failure> {
        let count = asked.limit.unwrap_or(100).min(PAGE);
        let mut rows = self.rows(range, count + 1)?;
        let more = rows.len() > count;
        rows.truncate(count);
        let next = rows.last().filter(|_| more).map(|(place, _)| place.to_string());
        Ok((rows, next))
    }

    /// The newest changes of an order, at most so many, and what it moved in all.
    fn sums(&self, account: &Address, row: &OrderRow, most: usize) -> Result<OrderSums, Failure> {
        let mut changes: Vec<Placed<OfferChange>> = Vec::new();
        if row.outcome.refusal().is_none() {
            changes = self.rows(&HistoryRange::changes(account, row.sequence, HistoryPart::WHOLE), most + 1)?;
        }
        let is_whole = changes.len() <= most;
        changes.truncate(most);
        Ok(OrderSums::of(row, changes, is_whole))
    }

    /// Orders as they stand at a height, each with what it moved.
    pub(super) fn told_orders<'a>(
        &self,
        account: &Address,
        orders: impl IntoIterator<Item = &'a Placed<OrderRow>>,
        at: Height,
    ) -> Result<Vec<json::PlacedOrderBody>, Failure> {
        let (mut told, mut left) = (Vec::new(), FILLS_OF_PAGE);
        for order in orders {
            let sums = self.sums(account, &order.1, left.clamp(1, FILLS_OF_ORDER))?;
            left = left.saturating_sub(sums.changes.len());
            told.push(self.symbols().order(order, &standing(at, order, sums.changes.first()), &sums));
        }
        Ok(told)
    }

    fn orders_page(&self, account: &Address, asked: &AskedPart) -> Result<json::OrdersBody, Failure> {
        let span = self.backend.history()?;
        let (rows, next) = self.page_of(&HistoryRange::orders(account, asked.part(span)?), asked)?;
        let orders = self.told_orders(account, &rows, span.height)?;
        Ok(json::OrdersBody { height: span.height, known_from: span.known_from, orders, next })
    }

    fn fills_page(&self, account: &Address, asked: &AskedPart) -> Result<json::FillsBody, Failure> {
        let span = self.backend.history()?;
        let part = asked.part(span)?;
        let offer = asked.offer.as_ref().map(|text| number("offer", text)).transpose()?;
        let fill = |height, row: &FillRow| self.symbols().history_fill(height, row);
        let (fills, next) = match offer {
            None => {
                let (rows, next) = self.page_of::<FillRow>(&HistoryRange::fills(account, part), asked)?;
                (rows.iter().map(|(place, row)| fill(place.height, row)).collect(), next)
            }
            Some(offer) => {
                let (rows, next) = self.page_of(&HistoryRange::changes(account, offer, part), asked)?;
                let filled = rows.iter().filter_map(|(place, change)| match change {
                    OfferChange::Filled(row) => Some(fill(place.height, row)),
                    OfferChange::Ended { .. } => None,
                });
                (filled.collect(), next)
            }
        };
        Ok(json::FillsBody { height: span.height, known_from: span.known_from, fills, next })
    }

    fn transfers_page(&self, account: &Address, asked: &AskedPart) -> Result<json::TransfersBody, Failure> {
        let span = self.backend.history()?;
        let part = asked.part(span)?;
        let (rows, next) = match asked.reference()? {
            None => self.page_of::<TransferRow>(&HistoryRange::transfers(account, part), asked)?,
            Some(reference) => {
                let places = HistoryRange::with_reference(account, &reference, part);
                let (places, next) = self.page_of::<()>(&places, asked)?;
                (self.at_places(&places, |place| HistoryRange::transfer_at(account, place))?, next)
            }
        };
        let transfers = rows.iter().map(|(place, row)| self.symbols().transfer(place.height, row)).collect();
        Ok(json::TransfersBody { height: span.height, known_from: span.known_from, transfers, next })
    }

    fn balances_page(&self, account: &Address, asked: &AskedPart) -> Result<json::BalancesBody, Failure> {
        let span = self.backend.history()?;
        let range = HistoryRange::balances(account, asked.part(span)?);
        let (rows, next) = self.page_of::<BalanceRow>(&range, asked)?;
        let balances = rows.iter().map(|(place, row)| self.symbols().balances_at(place.height, row)).collect();
        Ok(json::BalancesBody { height: span.height, known_from: span.known_from, balances, next })
    }

    /// The orders at the places of a range, newest first.
    pub(super) fn orders_at(&self, account: &Address, places: &HistoryRange) -> Result<Vec<Placed<OrderRow>>, Failure> {
        let places: Vec<Placed<()>> = self.rows(places, OF_CLIENT)?;
        self.at_places(&places, |place| HistoryRange::order_at(account, place))
    }

    /// The rows at places, in their order.
    fn at_places<T: BorshDeserialize>(
        &self,
        places: &[Placed<()>],
        at: impl Fn(HistoryPlace) -> HistoryRange,
    ) -> Result<Vec<Placed<T>>, Failure> {
        let rows = places.iter().map(|(place, ())| self.rows(&at(*place), 1));
        Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The definite answer about the order with a number.
    fn fate_of_number(&self, account: &Address, number: Sequence) -> Result<json::OrderFateBody, Failure> {
        let span = self.backend.history()?;
        let orders = self.orders_at(account, &HistoryRange::with_number(account, number))?;
        self.fate(account, span, orders, self.backend.taken().with_number(account, number))
            .ok_or_else(|| unknown(format!("no order of this account has the number {number}"), span))?
    }

    /// The definite answer about the order with a client's name.
    fn fate_of_client(&self, account: &Address, client: &ClientId) -> Result<json::OrderFateBody, Failure> {
        let span = self.backend.history()?;
        let orders = self.orders_at(account, &HistoryRange::with_client(account, client))?;
        self.fate(account, span, orders, self.backend.taken().with_client(account, client))
            .ok_or_else(|| unknown(format!("no order of this account has the client id {client}"), span))?
    }

    /// Of several orders the one that counted, or else what is pending, or else the newest.
    fn fate(
        &self,
        account: &Address,
        span: HistorySpan,
        mut orders: Vec<Placed<OrderRow>>,
        pending: Vec<PlacedOrder>,
    ) -> Option<Result<json::OrderFateBody, Failure>> {
        let counted = orders.iter().position(|(_, row)| row.outcome.refusal().is_none());
        let is_known = |id| orders.iter().any(|(_, row)| row.id == id);
        let waits = pending.into_iter().find(|pending| counted.is_none() && !is_known(pending.id));
        if let Some(pending) = waits {
            return Some(Ok(self.pending_fate(account, span, pending, &orders)));
        }
        if orders.is_empty() {
            return None;
        }
        let chosen = orders.remove(counted.unwrap_or(0));
        let others = orders.iter().map(|(_, row)| row.sequence).filter(|number| *number != chosen.1.sequence);
        Some(self.committed_fate(account, span, &chosen, others.map(|number| number.to_string()).collect()))
    }

    /// Of an order that this node took and that is in no block.
    fn pending_fate(
        &self,
        account: &Address,
        span: HistorySpan,
        order: PlacedOrder,
        refused: &[Placed<OrderRow>],
    ) -> json::OrderFateBody {
        let read = self.backend.account(account);
        // In a state above the index this very order may have used its number: nothing is definite yet.
        let account_then = read.account.filter(|_| read.height <= span.height);
        let is_used = account_then.is_some_and(|account| {
            account.check(order.sequence).is_err_and(|error| error != ledger::WindowError::TooFar)
        });
        let (status, why) = match () {
            _ if span.height >= order.until => ("void", Some("ended")),
            _ if is_used => ("void", Some("number_used")),
            _ => ("pending", None),
        };
        json::OrderFateBody {
            account: account.to_string(),
            height: span.height,
            known_from: span.known_from,
            status: status.into(),
            until: order.until.to_string(),
            why: why.map(Into::into),
            id: order.id.to_string(),
            sequence: order.sequence.to_string(),
            order: None,
            sold: "0".into(),
            bought: Some("0".into()),
            returned: "0".into(),
            fills: Vec::new(),
            others: refused.iter().map(|(_, row)| row.sequence.to_string()).collect(),
        }
    }

    fn committed_fate(
        &self,
        account: &Address,
        span: HistorySpan,
        order: &Placed<OrderRow>,
        others: Vec<String>,
    ) -> Result<json::OrderFateBody, Failure> {
        let row = &order.1;
        let sums = self.sums(account, row, FILLS_OF_ORDER)?;
        let standing = standing(span.height, order, sums.changes.first());
        let fills = sums.changes.iter().filter_map(|(place, change)| match change {
            OfferChange::Filled(fill) => Some(self.symbols().history_fill(place.height, fill)),
            OfferChange::Ended { .. } => None,
        });
        let fills = fills.collect();
        Ok(json::OrderFateBody {
            account: account.to_string(),
            height: span.height,
            known_from: span.known_from,
            status: standing.status.into(),
            until: row.until.to_string(),
            why: standing.why.clone(),
            id: row.id.to_string(),
            sequence: row.sequence.to_string(),
            order: Some(self.symbols().order(order, &standing, &sums)),
            sold: sums.sold.to_string(),
            bought: sums.bought.map(|units| units.to_string()),
            returned: sums.returned.to_string(),
            fills,
            others,
        })
    }
}

fn unknown(what: String, span: HistorySpan) -> Failure {
    let message = format!(
        "{what} in the blocks {} to {} that this node has indexed, nor did it take one: it may be older, or pending at \
         another node until its last height",
        span.known_from, span.height
    );
    Failure::new(StatusCode::NOT_FOUND, "order_unknown", message)
}

/// Orders of an account, newest first: what it asked for, the outcome, and how each stands now.
#[utoipa::path(get, path = "/v1/accounts/{address}/orders",
    params(("address" = String, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("since" = Option<String>, Query, description = "only rows of this height and above")),
    responses((status = 200, body = json::OrdersBody), (status = 400, body = ErrorBody),
        (status = 410, body = ErrorBody)))]
pub(super) async fn orders(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(asked): Query<AskedPart>,
) -> Answered<json::OrdersBody> {
    let address: Address = parse("address", &address)?;
    api.blocking(move |api| api.orders_page(&address, &asked)).await?.map(Json)
}

/// The definite answer about an order by its number: pending, refused, resting, ended, or void, with its fills.
#[utoipa::path(get, path = "/v1/accounts/{address}/orders/{id}",
    params(("address" = String, Path), ("id" = String, Path, description = "the account's number of the order")),
    responses((status = 200, body = json::OrderFateBody), (status = 404, body = ErrorBody)))]
pub(super) async fn order(
    State(api): State<Api>,
    Path((address, id)): Path<(String, String)>,
) -> Answered<json::OrderFateBody> {
    let (address, id) = (parse("address", &address)?, number("id", &id)?);
    api.blocking(move |api| api.fate_of_number(&address, id)).await?.map(Json)
}

/// The definite answer about an order by the name that its client gave it.
#[utoipa::path(get, path = "/v1/accounts/{address}/clients/{client}",
    params(("address" = String, Path), ("client" = String, Path, description = "0x and 32 digits")),
    responses((status = 200, body = json::OrderFateBody), (status = 404, body = ErrorBody)))]
pub(super) async fn order_of_client(
    State(api): State<Api>,
    Path((address, client)): Path<(String, String)>,
) -> Answered<json::OrderFateBody> {
    let (address, client): (Address, ClientId) = (parse("address", &address)?, parse("client", &client)?);
    if client == ClientId::NONE {
        return Err(Failure::malformed("client: zeros name no order"));
    }
    api.blocking(move |api| api.fate_of_client(&address, &client)).await?.map(Json)
}

/// Fills of an account's offers, newest first; of all, or of one.
#[utoipa::path(get, path = "/v1/accounts/{address}/fills",
    params(("address" = String, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("since" = Option<String>, Query, description = "only rows of this height and above"),
        ("offer" = Option<String>, Query, description = "only fills of the offer with this id")),
    responses((status = 200, body = json::FillsBody), (status = 400, body = ErrorBody),
        (status = 410, body = ErrorBody)))]
pub(super) async fn fills(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(asked): Query<AskedPart>,
) -> Answered<json::FillsBody> {
    let address: Address = parse("address", &address)?;
    api.blocking(move |api| api.fills_page(&address, &asked)).await?.map(Json)
}

/// Units that an account paid and received by native operations, newest first. What contracts move is in their
/// receipts.
#[utoipa::path(get, path = "/v1/accounts/{address}/transfers",
    params(("address" = String, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("since" = Option<String>, Query, description = "only rows of this height and above"),
        ("reference" = Option<String>, Query, description = "only transfers with this reference"),
        ("reference_kind" = Option<String>, Query,
            description = "what `reference` is: `text` (if it is not said), `uuid`, `message` or `number`")),
    responses((status = 200, body = json::TransfersBody), (status = 400, body = ErrorBody),
        (status = 410, body = ErrorBody)))]
pub(super) async fn transfers(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(asked): Query<AskedPart>,
) -> Answered<json::TransfersBody> {
    let address: Address = parse("address", &address)?;
    api.blocking(move |api| api.transfers_page(&address, &asked)).await?.map(Json)
}

/// What an account had after the blocks that changed it, newest first.
#[utoipa::path(get, path = "/v1/accounts/{address}/balances",
    params(("address" = String, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("since" = Option<String>, Query, description = "only rows of this height and above")),
    responses((status = 200, body = json::BalancesBody), (status = 400, body = ErrorBody),
        (status = 410, body = ErrorBody)))]
pub(super) async fn balances(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(asked): Query<AskedPart>,
) -> Answered<json::BalancesBody> {
    let address: Address = parse("address", &address)?;
    api.blocking(move |api| api.balances_page(&address, &asked)).await?.map(Json)
}
