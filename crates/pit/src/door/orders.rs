//! Orders and requests with signed bodies.

use api::{
    AnswerBody, ErrorBody, ErrorText, ListBody, OrderBody, OwnFillsBody, PlaceBody, PlaceListsBody, PlacedBody,
    PlacedResult, PositionBody, ReportsBody, RequestBody,
};
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use doors::Visitor;
use primitives::PublicKey;
use primitives::venue::{LIST_ORDERS_MAX, ListFault, MarketId, OrderList, SignedOrder, VenueSide};
use sockets::Client;
use tokio::sync::oneshot;
use venue::{
    CheckedOrder, CheckedOrderList, SessionNumber, TradeCommand, TradeReport, TraderAsk, TraderRequest, VenueFill,
    VenueRootError, check_lists, check_orders, session_number,
};

use super::bodies::{fill_body, order_list, report_body, signed_order, signed_request};
use super::{Api, Failure};
use crate::shared::{Fills, PitInput, PitRefusal, PitShared};

/// The most orders of one call.
const ORDERS: usize = 256;
/// The most lists of one call: they have as many orders.
const LISTS: usize = ORDERS / LIST_ORDERS_MAX;
/// Fills that a call looks at, and own ones with which it ends: each report is signed.
const FILLS: usize = 4_096;
const REPORTS: usize = 512;
/// Orders of a call whose signatures are checked on a thread of their own.
const MANY: usize = 8;

type Body<T> = Result<Json<T>, JsonRejection>;

fn body<T>(body: Body<T>) -> Result<T, Failure> {
    let Json(body) = body.map_err(|error| Failure::malformed(error.body_text()))?;
    Ok(body)
}

/// The session of requests that name none.
pub(super) fn own_session(key: &PublicKey) -> SessionNumber {
    session_number(key, 0)
}

/// Who places orders, or asks.
#[derive(Clone, Copy)]
pub(super) struct Placing {
    /// Whose turn it is.
    pub client: Client,
    /// The session; `None` for that of requests without one.
    pub session: Option<(SessionNumber, PublicKey)>,
}

impl Placing {
    /// The session of what a key says, and whether it is that of requests without one. A session speaks for its key.
    fn session_of(&self, key: &PublicKey) -> (SessionNumber, bool) {
        let session = self.session.filter(|(_, of)| of == key).map(|(session, _)| session);
        (session.unwrap_or_else(|| own_session(key)), session.is_none())
    }
}

/// Places signed orders; a result for each has the reports that it caused at once.
#[utoipa::path(post, path = "/v1/venue/orders", request_body = PlaceBody, responses((status = 200, body = PlacedBody),
    (status = 400, body = ErrorBody), (status = 503, body = ErrorBody), (status = 507, body = ErrorBody)))]
pub(super) async fn place(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    orders: Body<PlaceBody>,
) -> Result<Json<PlacedBody>, Failure> {
    let PlaceBody { orders } = body(orders)?;
    let placing = Placing { client: visitor.client(), session: None };
    let results = place_all(&api.shared, placing, orders).await?;
    Ok(Json(PlacedBody { results }))
}

/// Places orders; each result has the immediate reports, or an error.
pub(super) async fn place_all(
    shared: &PitShared,
    placing: Placing,
    orders: Vec<OrderBody>,
) -> Result<Vec<PlacedResult>, Failure> {
    if orders.is_empty() || orders.len() > ORDERS {
        return Err(Failure::malformed(format!("orders: a call has 1 to {ORDERS} of them, not {}", orders.len())));
    }
    let signed: Vec<SignedOrder> = orders
        .iter()
        .enumerate()
        .map(|(at, order)| signed_order(order).map_err(|error| Failure::malformed(format!("orders[{at}].{error}"))))
        .collect::<Result<_, _>>()?;
    shared.check_orders()?;
    let scope = shared.scope()?;
    let turn = shared.gates.checks.take(placing.client).await.map_err(PitRefusal::from)?;
    let check = move || check_orders(&scope.network, scope.venue, &signed);
    // A batch equation takes a core for milliseconds.
    let checked = match orders.len() {
        0..MANY => check(),
        _ => tokio::task::spawn_blocking(check)
            .await
            .map_err(|_| PitRefusal::NotRunning("the node is stopping".into()))?,
    };
    let mut given = Vec::with_capacity(orders.len());
    for (order, checked) in orders.iter().zip(checked) {
        given.push(give(shared, placing, order, checked));
    }
    turn.charge(given.iter().filter(|given| matches!(given, Err(PitRefusal::Signature))).count() as u64);
    drop(turn);
    Ok(results_of(given).await)
}

type Answer = Result<oneshot::Receiver<Vec<TradeReport>>, PitRefusal>;

async fn results_of(given: Vec<Answer>) -> Vec<PlacedResult> {
    let mut results = Vec::with_capacity(given.len());
    for answer in given {
        let reports = match answer {
            Ok(answer) => answer.await.map_err(|_| PitRefusal::BeginsAgain),
            Err(why) => Err(why),
        };
        let failed = |why: PitRefusal| PlacedResult::Error(error_body(&why.into()));
        let told = |reports: Vec<TradeReport>| PlacedResult::Reports(reports.iter().map(report_body).collect());
        results.push(reports.map_or_else(failed, told));
    }
    results
}

/// Places lists of orders, each under one signature; a result for each order, in their order, has the reports that it
/// caused at once.
#[utoipa::path(post, path = "/v1/venue/lists", request_body = PlaceListsBody,
    responses((status = 200, body = PlacedBody), (status = 400, body = ErrorBody), (status = 503, body = ErrorBody),
    (status = 507, body = ErrorBody)))]
pub(super) async fn place_lists(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    lists: Body<PlaceListsBody>,
) -> Result<Json<PlacedBody>, Failure> {
    let PlaceListsBody { lists } = body(lists)?;
    let placing = Placing { client: visitor.client(), session: None };
    let results = place_all_lists(&api.shared, placing, lists).await?;
    Ok(Json(PlacedBody { results }))
}

/// Places lists; each result has the immediate reports of an order, or an error.
pub(super) async fn place_all_lists(
    shared: &PitShared,
    placing: Placing,
    lists: Vec<ListBody>,
) -> Result<Vec<PlacedResult>, Failure> {
    if lists.is_empty() || lists.len() > LISTS {
        return Err(Failure::malformed(format!("lists: a call has 1 to {LISTS} of them, not {}", lists.len())));
    }
    let named = |(at, list): (usize, &ListBody)| {
        order_list(list).map_err(|error| Failure::malformed(format!("lists[{at}].{error}")))
    };
    let signed: Vec<OrderList> = lists.iter().enumerate().map(named).collect::<Result<_, _>>()?;
    shared.check_orders()?;
    let scope = shared.scope()?;
    for list in &signed {
        shared.check_key(&list.key)?;
    }
    let turn = shared.gates.checks.take(placing.client).await.map_err(PitRefusal::from)?;
    let check = move || check_lists(&scope.network, scope.venue, signed);
    let checked = tokio::task::spawn_blocking(check).await;
    let checked = checked.map_err(|_| PitRefusal::NotRunning("the node is stopping".into()))?;
    turn.charge(checked.iter().filter(|one| matches!(one, Err(ListFault::Signature))).count() as u64);
    drop(turn);
    let named = |(at, list): (usize, Result<CheckedOrderList, ListFault>)| {
        list.map_err(|fault| Failure::malformed(format!("lists[{at}]: {fault}")))
    };
    let checked: Vec<CheckedOrderList> = checked.into_iter().enumerate().map(named).collect::<Result<_, _>>()?;
    let given = checked.into_iter().flat_map(|list| give_list(shared, placing, list)).collect();
    Ok(results_of(given).await)
}

/// Gives a list to the root; an answer for each of its orders.
fn give_list(shared: &PitShared, placing: Placing, list: CheckedOrderList) -> Vec<Answer> {
    let ((session, is_own_session), size) = (placing.session_of(list.key()), list.list().entries.len());
    let (replies, answers): (Vec<_>, Vec<_>) = (0..size).map(|_| oneshot::channel()).unzip();
    match shared.send(PitInput::List { session, is_own_session, list: Box::new(list), replies }) {
        Ok(()) => answers.into_iter().map(Ok).collect(),
        Err(why) => answers.iter().map(|_| Err(why.clone())).collect(),
    }
}

pub(super) fn error_body(why: &Failure) -> ErrorText {
    ErrorText { code: why.code().into(), message: why.message().into() }
}

/// Gives an order to the root.
fn give(
    shared: &PitShared,
    placing: Placing,
    body: &OrderBody,
    checked: Option<CheckedOrder>,
) -> Result<oneshot::Receiver<Vec<TradeReport>>, PitRefusal> {
    let order = checked.ok_or(PitRefusal::Signature)?;
    let key = *order.key();
    shared.check_key(&key)?;
    let command = match &body.replaces {
        None => TradeCommand::New(order),
        Some(replaces) => {
            let request = signed_request(replaces).map_err(|_| PitRefusal::Signature)?;
            let TraderAsk::Replace { old, new } = request.ask else { return Err(PitRefusal::Signature) };
            if new != order.order().number || request.key != key {
                return Err(PitRefusal::Signature);
            }
            check_signed(shared, &request)?;
            TradeCommand::Replace(old, order)
        }
    };
    trade(shared, placing, key, command)
}

fn trade(
    shared: &PitShared,
    placing: Placing,
    key: PublicKey,
    command: TradeCommand,
) -> Result<oneshot::Receiver<Vec<TradeReport>>, PitRefusal> {
    let ((session, is_own_session), (reply, answer)) = (placing.session_of(&key), oneshot::channel());
    shared.send(PitInput::Trade { session, key, is_own_session, command, reply })?;
    Ok(answer)
}

/// Checks signature, key and stamp of a request, in the turn of its client.
pub(crate) async fn check_request(
    shared: &PitShared,
    client: Client,
    request: &TraderRequest,
) -> Result<(), PitRefusal> {
    let turn = shared.gates.checks.take(client).await?;
    let checked = check_signed(shared, request);
    turn.charge(u64::from(matches!(checked, Err(PitRefusal::Signature))));
    checked
}

fn check_signed(shared: &PitShared, request: &TraderRequest) -> Result<(), PitRefusal> {
    let scope = shared.scope()?;
    shared.check_key(&request.key)?;
    if !request.is_signed(&scope) {
        return Err(PitRefusal::Signature);
    }
    shared.claim_stamp(&request.key, request.stamp_ms)
}

/// Performs a signed request: cancel, cancel all, status, fills.
#[utoipa::path(post, path = "/v1/venue/requests", request_body = RequestBody,
    responses((status = 200, body = AnswerBody), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(super) async fn request(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    request: Body<RequestBody>,
) -> Result<Json<AnswerBody>, Failure> {
    let request = body(request)?;
    let placing = Placing { client: visitor.client(), session: None };
    Ok(Json(ask(&api.shared, placing, &request).await?))
}

/// Performs a request.
pub(super) async fn ask(shared: &PitShared, placing: Placing, body: &RequestBody) -> Result<AnswerBody, Failure> {
    let request = signed_request(body).map_err(Failure::malformed)?;
    check_request(shared, placing.client, &request).await?;
    let key = request.key;
    let command = match request.ask {
        TraderAsk::Cancel { number, keeps } => TradeCommand::Cancel { key, number, keeps },
        TraderAsk::CancelAll { market, side } => TradeCommand::CancelAll { key, market, side },
        TraderAsk::Status(number) => TradeCommand::Status(key, number),
        TraderAsk::Fills(from) => {
            return fills(shared, placing.client, key, from).await.map(AnswerBody::Fills);
        }
        TraderAsk::Attach { .. } | TraderAsk::Watch => {
            return Err(Failure::malformed(
                "ask: a session or a drop copy is attached over the stream, see docs/venue-api.md",
            ));
        }
        TraderAsk::Replace { .. } => {
            return Err(Failure::malformed("ask: a replacement stands with its order, as its `replaces`"));
        }
    };
    let reports = trade(shared, placing, key, command)?.await.map_err(|_| PitRefusal::BeginsAgain)?;
    let position = match request.ask {
        TraderAsk::Status(number) => position(shared, placing.client, key, number).await?,
        _ => None,
    };
    Ok(AnswerBody::Reports(ReportsBody { reports: reports.iter().map(report_body).collect(), position }))
}

/// Where an open order stands in its queue.
async fn position(
    shared: &PitShared,
    client: Client,
    key: PublicKey,
    number: primitives::venue::OrderNumber,
) -> Result<Option<PositionBody>, Failure> {
    let found = of_root(shared, client, move |root| root.position(&key, &number)).await?;
    Ok(found.map(|of| PositionBody {
        orders_ahead: of.orders_ahead,
        lots_ahead: of.lots_ahead.to_string(),
        lots: of.lots,
    }))
}

/// Fills of a key, or of the account that it watches, from an index on, with the report that each was told. They are
/// read from the journal and signed beside the root's thread, in the turn of the client.
async fn fills(shared: &PitShared, client: Client, key: PublicKey, from: u64) -> Result<OwnFillsBody, Failure> {
    let watched = shared.watched_by(&key);
    let is_own = move |fill: &VenueFill, side| {
        let party = fill.party(side);
        party.key == key || watched == Some(party.account)
    };
    let turn = shared.gates.reads.take(client).await.map_err(PitRefusal::from)?;
    let there = shared.fills().ok_or(PitRefusal::BeginsAgain)?;
    let read = tokio::task::spawn_blocking(move || {
        let found = fills_page(&there, is_own, from);
        drop(turn);
        found
    });
    read.await.map_err(|_| PitRefusal::NotRunning("the node is stopping".into()))?
}

/// One page: it ends after so many fills, or own reports, and says where the next one begins.
fn fills_page(
    there: &Fills,
    is_own: impl Fn(&VenueFill, VenueSide) -> bool,
    from: u64,
) -> Result<OwnFillsBody, Failure> {
    let Fills { reader, counts: (count, settled), record } = there;
    let forgotten = |error: VenueRootError| Failure::new(StatusCode::NOT_FOUND, "forgotten", error.to_string());
    let (mut own, mut next) = (Vec::new(), from);
    let steps = reader.reported(*count, *record, from, FILLS).map_err(forgotten)?;
    for (step, at) in steps.iter().flat_map(|step| (0..step.fills().len()).map(move |at| (step, at))) {
        let fill = &step.fills()[at];
        if own.len() >= REPORTS {
            break;
        }
        let sides = [VenueSide::Buy, VenueSide::Sell].into_iter().filter(|side| is_own(fill, *side));
        own.extend(sides.map(|side| fill_body(fill, side, &step.report(at, side))));
        next = fill.index + 1;
    }
    Ok(OwnFillsBody { fills: own, next: next.to_string(), settled: settled.to_string() })
}

/// Looks at the root, on its own thread, in the turn of the client.
pub(super) async fn of_root<T: Send + 'static>(
    shared: &PitShared,
    client: Client,
    look: impl FnOnce(&venue::VenueRoot<store::RealDisk>) -> T + Send + 'static,
) -> Result<T, Failure> {
    let turn = shared.gates.looks.take(client).await.map_err(PitRefusal::from)?;
    shared.scope()?;
    let (reply, answer) = oneshot::channel();
    // Who asked may be gone.
    shared.send(PitInput::Ask(Box::new(move |root| drop(reply.send(look(root))))))?;
    let answer = answer.await.map_err(|_| PitRefusal::BeginsAgain);
    drop(turn);
    Ok(answer?)
}

/// The market of a path.
pub(super) fn market(text: &str) -> Result<MarketId, Failure> {
    text.parse().map_err(|_| Failure::malformed(format!("market: {text:?} is not the number of a market")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use primitives::SecretKey;

    use super::*;

    /// A trader's requests for fills once read the journal and signed reports on the thread that matches.
    #[tokio::test]
    async fn fills_are_answered_while_the_thread_that_matches_answers_nobody() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let root = crate::shared::tests::root(folder.path());
        // Nobody serves this queue.
        let (queue, _inputs) = sync_channel(1);
        let shared = PitShared::new(0, queue);
        let key = SecretKey::from_seed([5; 32]).public();
        let refused = fills(&shared, Client::Own, key, 0).await.expect_err("no root runs");
        assert_eq!(refused.code(), "begins_again");
        let (reader, counts, record) = (Arc::new(root.fill_reader()), root.counts(), root.last_record());
        shared.show_fills(Some(Fills { reader, counts, record }));
        let found = fills(&shared, Client::Own, key, 0).await.expect("answered");
        assert_eq!((found.fills.len(), &*found.next, &*found.settled), (0, "0", "0"));
    }
}
