//! The stream's channel of an account's own orders: what this node took and what is in no block yet, and each order as
//! it is placed, filled and ended. Committed orders and fills come from the index of the history. If it falls far
//! behind, nothing is told until it has followed, and then a snapshot.

use std::collections::BTreeSet;

use api::{HistoryFillBody, OwnOrdersBody, PendingOrderBody, PlacedOrderBody};
use ledger::WindowError;
use primitives::{Address, Height, Sequence};
use readers::history::{FillRow, HistoryPart, HistoryPlace, HistoryRange, HistorySpan};
use readers::views::CommittedBlock;

use super::Api;
use crate::kit::Failure;

/// Orders, and fills, of a snapshot.
const SNAPSHOT: usize = 100;
/// Orders, and fills, of one message: more make it a snapshot.
const MESSAGE: usize = 1_000;

/// How far a connection has told an account's orders.
#[derive(Clone, Debug, Default)]
pub(super) struct ToldOrders {
    /// The last height that was told; `None` if a snapshot is due.
    height: Option<Height>,
    /// The orders that were pending.
    pending: Vec<PendingOrderBody>,
}

/// What a message is.
pub(super) enum OrdersNews {
    /// Nothing has changed.
    Nothing,
    /// Everything anew.
    Snapshot(OwnOrdersBody),
    /// What changed.
    Changes(OwnOrdersBody),
}

impl Api {
    /// The newest orders and fills, and what is pending.
    pub(super) fn orders_snapshot(&self, account: &Address) -> Result<(OwnOrdersBody, ToldOrders), Failure> {
        let span = self.backend.history()?;
        let numbers: Vec<Sequence> = self.placed_in(account, HistoryPart::WHOLE, SNAPSHOT)?;
        let body = OwnOrdersBody {
            height: span.height,
            account: account.to_string(),
            orders: self.orders_numbered(account, span, &numbers)?,
            fills: self.fills_of(account, HistoryPart::WHOLE, SNAPSHOT)?,
            pending: self.pending_orders(account, span)?,
        };
        let told = ToldOrders { height: Some(span.height), pending: body.pending.clone() };
        Ok((body, told))
    }

    /// What a block changed, and what an index that follows late has of those before. The index may be ahead of what
    /// is told: a message ends with its block, so that each end and each fill comes with the height that it names.
    pub(super) fn orders_news(
        &self,
        account: &Address,
        told: ToldOrders,
        committed: &CommittedBlock,
    ) -> Result<(OrdersNews, ToldOrders), Failure> {
        let Ok(span) = self.backend.history() else { return Ok((OrdersNews::Nothing, told)) };
        let height = committed.summary.height;
        if span.height < height {
            return Ok((OrdersNews::Nothing, ToldOrders { height: None, ..told }));
        }
        let Some(last) = told.height else { return self.orders_anew(account) };
        if height <= last {
            return Ok((OrdersNews::Nothing, told));
        }
        let below = height.checked_add(1).map(|height| HistoryPlace { height, position: 0 });
        let part = HistoryPart { below, since: last.saturating_add(1) };
        let fills = self.fills_of(account, part, MESSAGE + 1)?;
        let mut numbers: BTreeSet<Sequence> = self.placed_in(account, part, MESSAGE + 1)?.into_iter().collect();
        numbers.extend(fills.iter().filter_map(|fill| fill.offer.parse::<Sequence>().ok()));
        let ended = committed.batch.batch.ended.iter().filter(|ended| ended.place.account == *account);
        numbers.extend(ended.map(|ended| ended.place.id));
        if fills.len() > MESSAGE || numbers.len() > MESSAGE {
            return self.orders_anew(account);
        }
        let numbers: Vec<Sequence> = numbers.into_iter().rev().collect();
        let body = OwnOrdersBody {
            height,
            account: account.to_string(),
            orders: self.orders_numbered(account, span, &numbers)?,
            fills,
            pending: self.pending_orders(account, span)?,
        };
        let is_same = body.orders.is_empty() && body.fills.is_empty() && body.pending == told.pending;
        let told = ToldOrders { height: Some(height), pending: body.pending.clone() };
        Ok((if is_same { OrdersNews::Nothing } else { OrdersNews::Changes(body) }, told))
    }

    fn orders_anew(&self, account: &Address) -> Result<(OrdersNews, ToldOrders), Failure> {
        let (body, told) = self.orders_snapshot(account)?;
        Ok((OrdersNews::Snapshot(body), told))
    }

    /// Numbers of the orders that blocks of a part contain, the newest first.
    fn placed_in(&self, account: &Address, part: HistoryPart, count: usize) -> Result<Vec<Sequence>, Failure> {
        let range = HistoryRange::orders(account, part);
        Ok(self.order_rows(&range, count)?.into_iter().map(|(_, row)| row.sequence).collect())
    }

    fn fills_of(&self, account: &Address, part: HistoryPart, count: usize) -> Result<Vec<HistoryFillBody>, Failure> {
        let range = HistoryRange::fills(account, part);
        let rows = self.fill_rows(&range, count)?;
        Ok(rows.iter().map(|(place, row): &(_, FillRow)| self.symbols().history_fill(place.height, row)).collect())
    }

    /// The orders with these numbers, as they stand.
    fn orders_numbered(
        &self,
        account: &Address,
        span: HistorySpan,
        numbers: &[Sequence],
    ) -> Result<Vec<PlacedOrderBody>, Failure> {
        let mut orders = Vec::new();
        for number in numbers {
            orders.extend(self.orders_at(account, &HistoryRange::with_number(account, *number))?);
        }
        orders.dedup_by(|a, b| a.1.id == b.1.id);
        self.told_orders(account, &orders, span.height)
    }

    /// The orders that this node took and that may still count, by number.
    fn pending_orders(&self, account: &Address, span: HistorySpan) -> Result<Vec<PendingOrderBody>, Failure> {
        let read = self.backend.account(account);
        // A state above the index may have used the numbers of orders that the index has not told yet.
        let account_then = read.account.filter(|_| read.height <= span.height);
        let is_used = |number| {
            let check = account_then.as_ref().map_or(Ok(()), |account| account.check(number));
            check.is_err_and(|error| error != WindowError::TooFar)
        };
        let mut pending = Vec::new();
        for order in self.backend.taken().of(account, SNAPSHOT) {
            if order.until <= span.height || is_used(order.sequence) {
                continue;
            }
            // A block has refused it, and it may come back: it is among the orders.
            let rows = self.orders_at(account, &HistoryRange::with_number(account, order.sequence))?;
            if rows.iter().all(|(_, row)| row.id != order.id) {
                let (sequence, until) = (order.sequence.to_string(), order.until.to_string());
                pending.push(PendingOrderBody { id: order.id.to_string(), sequence, until });
            }
        }
        Ok(pending)
    }
}
