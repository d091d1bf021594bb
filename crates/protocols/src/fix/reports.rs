//! The orders of one session under both of their numbers: requests of FIX become messages of [`ouch`](crate::ouch),
//! and what an OUCH venue says of them becomes reports.
//!
//! The caller gives requests and the venue's messages in the order in which they are journaled, so that the same
//! journal gives the same numbers and reports again. Orders are remembered after their end, so that a status can be
//! asked for and no number be used twice. The caller begins with new [`FixOrders`] on each day.
//!
//! An order whose cancellation or replacement waits for its answer takes no other request. A replacement states the
//! *total* size, what has traded counts.

use std::collections::BTreeMap;

use super::orders::{end_text, fix_price, ouch_cancel};
use super::{
    FixBody, FixCancelReject, FixCancelRequest, FixDecimal, FixExecution, FixMassCancelReport, FixMassCancelRequest,
    FixNewOrder, FixReplaceRequest, FixStatusRequest, FixText,
};
use crate::ouch::{
    OuchExecuted, OuchInbound, OuchMassCancel, OuchMessage, OuchOption, OuchOutbound, OuchRejected, OuchReplaced,
    PRICE_DECIMALS,
};

/// The most orders of a day, and the most numbers of orders and requests.
const ORDERS_MAX: usize = 1 << 19;
const NAMES_MAX: usize = 1 << 20;

/// What a request comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixRouted {
    /// A message to the venue.
    Venue(OuchMessage<OuchInbound>),
    /// An answer at once.
    Answer(Box<FixBody>),
    /// Nothing that orders do.
    Other,
}

impl FixRouted {
    fn answer(body: impl Into<FixBody>) -> FixRouted {
        FixRouted::Answer(Box::new(body.into()))
    }
}

/// What an order waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pending {
    Cancel(FixText),
    Replace(FixText, u32),
}

/// One order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    client_order: FixText,
    /// The venue's number, once it is accepted.
    venue_order: Option<u64>,
    symbol: FixText,
    side: u8,
    quantity: u32,
    price: Option<FixDecimal>,
    time_in_force: Option<u8>,
    left: u32,
    filled: u32,
    /// The sum of sizes times prices of its trades.
    value: u128,
    /// Its trades that stand: their numbers, sizes and prices.
    trades: BTreeMap<u64, (u32, u64)>,
    status: u8,
    pending: Option<Pending>,
    reports: u32,
}

/// The orders of one session on one day.
#[derive(Clone, Debug, Default)]
pub struct FixOrders {
    orders: BTreeMap<u32, Order>,
    /// Numbers of orders and requests that are in use, and the order that each is of.
    names: BTreeMap<FixText, u32>,
    /// Mass cancels that wait for their answers, by their numbers.
    mass: BTreeMap<u32, FixMassCancelRequest>,
    last: u32,
}

impl FixOrders {
    /// Those of a day on which `last` is the largest number of the venue in use.
    pub fn after(last: u32) -> FixOrders {
        FixOrders { last, ..FixOrders::default() }
    }

    /// The largest number of the venue in use.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// The venue's numbers of the orders that are open.
    pub fn open(&self) -> impl Iterator<Item = u32> {
        self.orders.iter().filter(|(_, order)| order.left > 0).map(|(number, _)| *number)
    }

    /// The venue's numbers of the orders whose cancellation waits for its answer.
    pub fn cancels(&self) -> impl Iterator<Item = u32> {
        let waits = |order: &Order| matches!(order.pending, Some(Pending::Cancel(_)));
        self.orders.iter().filter(move |(_, order)| waits(order)).map(|(number, _)| *number)
    }

    /// Ends the open orders, since their day is over; the reports.
    pub fn expire(&mut self) -> Vec<FixBody> {
        let open: Vec<u32> = self.open().collect();
        let expired = |number| {
            let order = self.orders.get_mut(&number)?;
            (order.left, order.pending, order.status) = (0, None, b'C');
            Some(order.report(number, b'C', None))
        };
        open.into_iter().filter_map(expired).collect()
    }

    /// The report that a trade of an order is settled: its state, with the trade and the height in words.
    pub fn settled(&mut self, number: u32, trade: u64, height: u64) -> Option<FixBody> {
        let order = self.orders.get_mut(&number)?;
        let text = Some(FixText::said(&format!("trade {trade} is settled at height {height}")));
        Some(FixExecution { text, ..order.execution(number, b'I', None) }.into())
    }

    /// What a message of the participant comes to.
    pub fn route(&mut self, body: &FixBody) -> FixRouted {
        match body {
            FixBody::NewOrder(order) => self.enter(order),
            FixBody::CancelRequest(request) => self.cancel(request),
            FixBody::ReplaceRequest(request) => self.replace(request),
            FixBody::StatusRequest(request) => self.status(request),
            FixBody::MassCancelRequest(request) => self.mass_cancel(request),
            _ => FixRouted::Other,
        }
    }

    /// The report of a message of the venue, which may say why in words; `None` if there is nothing to report.
    pub fn report(&mut self, message: &OuchOutbound, words: Option<&str>) -> Option<FixBody> {
        match message {
            OuchOutbound::Accepted(accepted) => {
                let order = self.orders.get_mut(&accepted.user_ref)?;
                order.venue_order = Some(accepted.order);
                order.status = b'0';
                Some(order.report(accepted.user_ref, b'0', None))
            }
            OuchOutbound::Executed(executed) => self.trade(executed),
            OuchOutbound::BrokenTrade(broken) => self.undo(broken.user_ref, broken.matched),
            OuchOutbound::Canceled(canceled) => self.lower(canceled.user_ref, canceled.quantity, canceled.reason),
            OuchOutbound::AiqCanceled(canceled) => self.lower(canceled.user_ref, canceled.decrement, canceled.reason),
            OuchOutbound::Replaced(replaced) => self.replaced(replaced),
            OuchOutbound::Rejected(rejected) => self.rejected(rejected, words),
            OuchOutbound::CancelReject(rejected) => self.keep(rejected.user_ref, words.unwrap_or("too late to cancel")),
            OuchOutbound::CancelPending(pending) => self.keep(pending.user_ref, "cancelled after the auction"),
            OuchOutbound::MassCancelResponse(response) => {
                let request = self.mass.remove(&response.user_ref)?;
                Some(mass_report(request, response.user_ref, None))
            }
            _ => None,
        }
    }

    /// The next number of an OUCH message.
    fn number(&mut self) -> Option<u32> {
        if self.orders.len() >= ORDERS_MAX || self.names.len() >= NAMES_MAX {
            return None;
        }
        self.last = self.last.checked_add(1)?;
        Some(self.last)
    }

    fn enter(&mut self, new: &FixNewOrder) -> FixRouted {
        let order = Order::new(new);
        if self.names.contains_key(&new.client_order) {
            return FixRouted::answer(order.refused(6, "ClOrdID (11) is in use: take another"));
        }
        let Some(number) = self.number() else {
            return FixRouted::answer(order.refused(99, "no number is left today"));
        };
        match new.to_ouch(number) {
            Ok(message) => {
                self.names.insert(new.client_order.clone(), number);
                self.orders.insert(number, order);
                FixRouted::Venue(message)
            }
            Err(error) => FixRouted::answer(order.refused(99, &error.to_string())),
        }
    }

    /// The live order that a request is for, if it can take one.
    fn live(&mut self, original: &FixText, request: &FixText) -> Result<(u32, &mut Order), (u32, &'static str)> {
        let number = *self.names.get(original).ok_or((1, "OrigClOrdID (41) names no order of this session"))?;
        if self.names.contains_key(request) {
            return Err((6, "ClOrdID (11) is in use: take another"));
        }
        let order = self.orders.get_mut(&number).ok_or((1, "OrigClOrdID (41) names no order of this session"))?;
        match order.pending {
            Some(_) => Err((3, "a cancel or a replacement of this order waits for its answer")),
            None if order.left == 0 => Err((0, "the order has ended")),
            None => Ok((number, order)),
        }
    }

    fn cancel(&mut self, request: &FixCancelRequest) -> FixRouted {
        let FixCancelRequest { original, client_order, .. } = request;
        match self.live(original, client_order) {
            Ok((number, order)) => {
                order.pending = Some(Pending::Cancel(client_order.clone()));
                self.names.insert(client_order.clone(), number);
                FixRouted::Venue(ouch_cancel(number))
            }
            Err((reason, text)) => FixRouted::answer(self.refusal(original, client_order, b'1', reason, text)),
        }
    }

    fn replace(&mut self, request: &FixReplaceRequest) -> FixRouted {
        let FixReplaceRequest { original, client_order, side, symbol, .. } = request;
        let refuse = |orders: &FixOrders, reason, text: &str| {
            FixRouted::answer(orders.refusal(original, client_order, b'2', reason, text))
        };
        let Some(number) = self.number() else { return refuse(self, 2, "no number is left today") };
        let (before, message) = match self.live(original, client_order) {
            Err((reason, text)) => return refuse(self, reason, text),
            Ok((_, order)) if (order.side, &order.symbol) != (*side, symbol) => {
                return refuse(self, 2, "Side (54) and Symbol (55) of an order stay as they are");
            }
            Ok((before, order)) => (order, request.to_ouch(before, number)),
        };
        match message {
            Ok(message) => {
                before.pending = Some(Pending::Replace(client_order.clone(), number));
                let next = before.next(request);
                self.orders.insert(number, next);
                self.names.insert(client_order.clone(), number);
                FixRouted::Venue(message)
            }
            Err(error) => refuse(self, 2, &error.to_string()),
        }
    }

    fn status(&mut self, request: &FixStatusRequest) -> FixRouted {
        let number = self.names.get(&request.client_order).copied();
        match number.and_then(|number| Some((number, self.orders.get_mut(&number)?))) {
            Some((number, order)) => FixRouted::answer(order.report(number, b'I', None)),
            None => {
                let FixStatusRequest { client_order, symbol, side, .. } = request.clone();
                FixRouted::answer(Order::unknown(client_order, symbol, side).refused(5, "ClOrdID (11) names no order"))
            }
        }
    }

    fn mass_cancel(&mut self, request: &FixMassCancelRequest) -> FixRouted {
        let refuse = |text: &str| FixRouted::answer(mass_report(request.clone(), 0, Some(text)));
        let symbol = match (request.scope, &request.symbol) {
            (b'7', _) => Some([b' '; 8]),
            (b'1', Some(symbol)) => super::orders::padded(symbol),
            _ => None,
        };
        let side = request.side.map(super::orders::side);
        let (Some(symbol), None | Some(Ok(_))) = (symbol, &side) else {
            return refuse("MassCancelRequestType (530) is 1 with a Symbol (55), or 7; Side (54) is 1, 2, 5 or 6");
        };
        let Some(user_ref) = self.number() else { return refuse("no number is left today") };
        self.mass.insert(user_ref, request.clone());
        let body = OuchInbound::MassCancel(OuchMassCancel { user_ref, firm: [b' '; 4], symbol });
        let options = side.and_then(Result::ok).map(OuchOption::Side).into_iter().collect();
        FixRouted::Venue(OuchMessage { body, options: Some(options) })
    }

    fn trade(&mut self, executed: &OuchExecuted) -> Option<FixBody> {
        let OuchExecuted { user_ref, quantity, price, matched, .. } = *executed;
        let order = self.orders.get_mut(&user_ref)?;
        order.left = order.left.saturating_sub(quantity);
        order.filled = order.filled.saturating_add(quantity);
        order.value = order.value.saturating_add(u128::from(quantity) * u128::from(price));
        order.trades.insert(matched, (quantity, price));
        order.status = if order.left == 0 { b'2' } else { b'1' };
        let mut report = order.execution(user_ref, b'F', None);
        (report.last_quantity, report.last_price) = (Some(quantity.into()), Some(fix_price(price)));
        report.execution = trade_name(user_ref, matched);
        Some(report.into())
    }

    /// A trade is void: what it traded is no longer, and does not trade again.
    fn undo(&mut self, user_ref: u32, matched: u64) -> Option<FixBody> {
        let order = self.orders.get_mut(&user_ref)?;
        let (quantity, price) = order.trades.remove(&matched)?;
        order.filled = order.filled.saturating_sub(quantity);
        order.value = order.value.saturating_sub(u128::from(quantity) * u128::from(price));
        let mut report = order.execution(user_ref, b'H', None);
        (report.last_quantity, report.last_price) = (Some(quantity.into()), Some(fix_price(price)));
        report.corrects = Some(trade_name(user_ref, matched));
        Some(report.into())
    }

    fn lower(&mut self, user_ref: u32, quantity: u32, reason: u8) -> Option<FixBody> {
        let order = self.orders.get_mut(&user_ref)?;
        order.left = order.left.saturating_sub(quantity);
        order.status = if order.left == 0 { b'4' } else { order.status };
        let request = match &order.pending {
            Some(Pending::Cancel(name)) => Some(name.clone()),
            _ => None,
        };
        if request.is_some() {
            order.pending = None;
        }
        let exec_type = if order.left == 0 { b'4' } else { b'D' };
        let text = end_text(reason).map(FixText::said);
        Some(FixExecution { text, ..order.execution(user_ref, exec_type, request) }.into())
    }

    fn replaced(&mut self, replaced: &OuchReplaced) -> Option<FixBody> {
        let before = self.orders.get_mut(&replaced.before)?;
        (before.left, before.pending, before.status) = (0, None, b'5');
        let (original, filled, value) = (before.client_order.clone(), before.filled, before.value);
        let trades = before.trades.clone();
        let order = self.orders.get_mut(&replaced.user_ref)?;
        (order.filled, order.value, order.trades, order.left) = (filled, value, trades, replaced.quantity);
        (order.venue_order, order.status) = (Some(replaced.order), if filled > 0 { b'1' } else { b'0' });
        let report = order.execution(replaced.user_ref, b'5', None);
        Some(FixExecution { original: Some(original), ..report }.into())
    }

    fn rejected(&mut self, rejected: &OuchRejected, words: Option<&str>) -> Option<FixBody> {
        let OuchRejected { user_ref, reason, .. } = *rejected;
        let text = words.map_or_else(|| format!("the venue rejects it, reason {reason}"), str::to_string);
        if let Some(request) = self.mass.remove(&user_ref) {
            return Some(mass_report(request, user_ref, Some(&text)));
        }
        let is_before =
            |order: &&mut Order| matches!(&order.pending, Some(Pending::Replace(_, next)) if *next == user_ref);
        if let Some(before) = self.orders.values_mut().find(is_before) {
            let Some(Pending::Replace(request, _)) = before.pending.take() else { return None };
            let original = before.client_order.clone();
            self.orders.remove(&user_ref);
            return Some(self.refusal(&original, &request, b'2', 2, &text).into());
        }
        let order = self.orders.get_mut(&user_ref)?;
        order.left = 0;
        order.status = b'8';
        let report = order.execution(user_ref, b'8', None);
        Some(FixExecution { reason: Some(99), text: Some(FixText::said(&text)), ..report }.into())
    }

    /// An order is not cancelled.
    fn keep(&mut self, user_ref: u32, text: &str) -> Option<FixBody> {
        let order = self.orders.get_mut(&user_ref)?;
        let Some(Pending::Cancel(request)) = order.pending.take() else { return None };
        let original = order.client_order.clone();
        Some(self.refusal(&original, &request, b'1', 0, text).into())
    }

    fn refusal(
        &self,
        original: &FixText,
        request: &FixText,
        response_to: u8,
        reason: u32,
        text: &str,
    ) -> FixCancelReject {
        let order = self.names.get(original).and_then(|number| self.orders.get(number));
        FixCancelReject {
            order: order.map_or_else(|| FixText::said("NONE"), Order::name),
            client_order: request.clone(),
            original: original.clone(),
            status: order.map_or(b'8', |order| order.status),
            response_to,
            reason: Some(reason),
            text: Some(FixText::said(text)),
        }
    }
}

impl Order {
    fn new(new: &FixNewOrder) -> Order {
        let quantity = new.quantity.in_units(0).and_then(|size| size.try_into().ok()).unwrap_or(0);
        let (price, time_in_force) = (new.price, new.time_in_force);
        let order = Order::unknown(new.client_order.clone(), new.symbol.clone(), new.side);
        Order { quantity, price, time_in_force, left: quantity, status: b'A', ..order }
    }

    fn unknown(client_order: FixText, symbol: FixText, side: u8) -> Order {
        Order {
            client_order,
            venue_order: None,
            symbol,
            side,
            quantity: 0,
            price: None,
            time_in_force: None,
            left: 0,
            filled: 0,
            value: 0,
            trades: BTreeMap::new(),
            status: b'8',
            pending: None,
            reports: 0,
        }
    }

    /// The order in the place of this one, before the venue has said what is left.
    fn next(&self, request: &FixReplaceRequest) -> Order {
        Order {
            client_order: request.client_order.clone(),
            quantity: request.quantity.in_units(0).and_then(|size| size.try_into().ok()).unwrap_or(0),
            price: request.price,
            time_in_force: request.time_in_force,
            pending: None,
            left: 0,
            reports: 0,
            ..self.clone()
        }
    }

    fn name(&self) -> FixText {
        self.venue_order.map_or_else(|| FixText::said("NONE"), |order| FixText::said(&order.to_string()))
    }

    /// What has traded, per share, rounded down to eight decimals; to four if that is too large a number.
    fn average(&self) -> FixDecimal {
        const MORE: u128 = 10_000;
        let average = |value: u128, decimals: u32| {
            let units = u64::try_from(value.checked_div(u128::from(self.filled))?).ok()?;
            FixDecimal::new(units, decimals)
        };
        let exact = self.value.checked_mul(MORE).and_then(|value| average(value, PRICE_DECIMALS + 4));
        exact.or_else(|| average(self.value, PRICE_DECIMALS)).unwrap_or(FixDecimal::from(0))
    }

    /// The refusal of an order that has no number.
    fn refused(&self, reason: u32, text: &str) -> FixExecution {
        let order = Order { left: 0, status: b'8', ..self.clone() };
        let execution = FixText::said(&format!("X{}", self.client_order));
        let (reason, text) = (Some(reason), Some(FixText::said(text)));
        FixExecution { execution, reason, text, ..order.told(b'8', None) }
    }

    fn report(&mut self, user_ref: u32, exec_type: u8, request: Option<FixText>) -> FixBody {
        self.execution(user_ref, exec_type, request).into()
    }

    /// The next report, perhaps of the answer to a request.
    fn execution(&mut self, user_ref: u32, exec_type: u8, request: Option<FixText>) -> FixExecution {
        self.reports = self.reports.saturating_add(1);
        let execution = FixText::said(&format!("R{user_ref}.{}", self.reports));
        FixExecution { execution, ..self.told(exec_type, request) }
    }

    fn told(&self, exec_type: u8, request: Option<FixText>) -> FixExecution {
        FixExecution {
            order: self.name(),
            original: request.as_ref().map(|_| self.client_order.clone()),
            client_order: request.or_else(|| Some(self.client_order.clone())),
            execution: FixText::said("-"),
            corrects: None,
            exec_type,
            status: self.status,
            reason: None,
            symbol: self.symbol.clone(),
            side: self.side,
            quantity: Some(self.quantity.into()),
            price: self.price,
            time_in_force: self.time_in_force,
            last_quantity: None,
            last_price: None,
            left: self.left.into(),
            filled: self.filled.into(),
            average: self.average(),
            time: None,
            text: None,
        }
    }
}

/// The number of a report of a trade: the same whenever it is told.
fn trade_name(user_ref: u32, matched: u64) -> FixText {
    FixText::said(&format!("T{matched}.{user_ref}"))
}

fn mass_report(request: FixMassCancelRequest, number: u32, refused: Option<&str>) -> FixBody {
    FixMassCancelReport {
        client_order: Some(request.client_order),
        order: FixText::said(&format!("M{number}")),
        scope: request.scope,
        response: if refused.is_some() { b'0' } else { request.scope },
        reason: refused.map(|_| 99),
        total: None,
        affected: Vec::new(),
        symbol: request.symbol,
        side: request.side,
        text: refused.map(FixText::said),
    }
    .into()
}
