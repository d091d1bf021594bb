//! Orders that end, and kill switches.

use matching::{Command, Replacement};
use primitives::Address;
use primitives::venue::{MarketId, OrderNumber, VenueSide};

use super::VenueMachine;
use super::learn::{account_at, learn_fate};
use super::places::take_place;
use super::sparing::unspare;
use crate::facts::{FillBust, FillFate};
use crate::input::SessionNumber;
use crate::refusal::{OrderEnd, OrderRefusal};
use crate::report::{MarketEvent, ReportKind};
use crate::state::Remembered;

impl VenueMachine {
    /// The slot of an open order.
    pub(super) fn open_slot(&self, at: u32, number: &OrderNumber) -> Option<u32> {
        match self.core.key(at).numbers.get(number)? {
            Remembered::Taken(slot) if self.core.order(*slot).end.is_none() => Some(*slot),
            _ => None,
        }
    }

    /// Ends an order whose session, key or operator wants it to.
    pub(super) fn cancel(&mut self, session: SessionNumber, at: u32, number: OrderNumber, keeps: u32) {
        let Some(slot) = self.open_slot(at, &number) else { return self.cancel_missing(session, at, number) };
        let (lots, executed) = (self.core.order(slot).open, self.executed_of(slot));
        match keeps {
            _ if keeps <= executed => self.end_for(session, slot),
            // More than it has: nothing to do.
            _ if keeps - executed >= lots => self.answer(session, slot, ReportKind::Reduced { lots }),
            _ => self.reduce(session, slot, keeps),
        }
    }

    /// Ends an order that a session asks to end, which need not be the one that placed it.
    fn end_for(&mut self, session: SessionNumber, slot: u32) {
        let (lots, why) = (self.core.order(slot).open, OrderEnd::Asked);
        self.end(slot, why);
        self.report_asker(session, slot, ReportKind::Ended { lots, why });
    }

    /// Reports about an order to the session that placed it, and to another one that asked.
    fn answer(&mut self, session: SessionNumber, slot: u32, what: ReportKind) {
        self.report_order(slot, what.clone());
        self.report_asker(session, slot, what);
    }

    fn report_asker(&mut self, session: SessionNumber, slot: u32, what: ReportKind) {
        let order = self.core.order(slot);
        if order.session != session {
            let (key, number) = (self.core.public_of(order), order.terms.number);
            self.report(session, key, number, what);
        }
    }

    /// A cancel of an order that is not open: the answer is how it stands, so a retry learns what became of it. One
    /// that never came is refused when it comes.
    fn cancel_missing(&mut self, session: SessionNumber, at: u32, number: OrderNumber) {
        let key = self.core.key(at);
        let is_new = !key.numbers.contains_key(&number)
            && number.incarnation == self.core.settings.incarnation
            && key.stale.is_none_or(|stale| number > stale);
        let public = key.public;
        let what = match self.standing(&public, &number) {
            Some(standing) => ReportKind::Status(Some(standing)),
            None if is_new => take_place(self, at).map_or_else(ReportKind::Refused, |()| ReportKind::Overtaken),
            None => ReportKind::Refused(OrderRefusal::NotOpen),
        };
        if what == ReportKind::Overtaken {
            self.remember(at, number, Remembered::Overtaken);
        }
        self.report(session, public, number, what);
    }

    /// Lowers the total lots of an order, which keeps its place.
    fn reduce(&mut self, session: SessionNumber, slot: u32, keeps: u32) {
        let order = self.core.order(slot);
        let (market, tick, before, id) = (order.terms.market, order.terms.tick, order.open, order.id);
        let owner = self.core.owner_of(order.key).owner.expect("it has an order in a book");
        let command = Replacement { owner, reference: slot, new_reference: slot, tick, lots: keeps };
        if let Err(why) = self.run(market, &Command::Replace(command)) {
            return self.answer(session, slot, ReportKind::Refused(why));
        }
        self.follow(market);
        let lots = keeps - self.executed_of(slot);
        self.core.order_mut(slot).open = lots;
        self.refresh(slot);
        self.show(market, MarketEvent::Reduced { id, lots: before - lots });
        self.answer(session, slot, ReportKind::Reduced { lots });
    }

    pub(super) fn cancel_all(
        &mut self,
        session: SessionNumber,
        at: u32,
        market: Option<MarketId>,
        side: Option<VenueSide>,
    ) {
        for slot in self.core.open_orders(at) {
            let terms = &self.core.order(slot).terms;
            if market.is_none_or(|market| market == terms.market) && side.is_none_or(|side| side == terms.side) {
                self.end_for(session, slot);
            }
        }
    }

    pub(super) fn set_killed(&mut self, account: &Address, is_killed: bool) {
        // An account that is not known yet may be killed as well: it may deposit at any time.
        let at = account_at(self, account);
        self.core.accounts[at as usize].is_killed = is_killed;
        if is_killed {
            let keys = self.core.account(at).keys.clone();
            let slots: Vec<u32> = keys.into_iter().flat_map(|key| self.core.open_orders(key)).collect();
            slots.into_iter().for_each(|slot| self.end(slot, OrderEnd::Killed));
        }
    }

    /// A floor acts at once: orders of the key below it end, and none below it is taken.
    pub(super) fn raise_floor(&mut self, at: u32, floor: OrderNumber) {
        let key = self.core.key_mut(at);
        if floor <= key.raised {
            return;
        }
        key.raised = floor;
        for slot in self.core.open_orders(at) {
            if self.core.order(slot).terms.number < floor {
                self.end(slot, OrderEnd::BelowFloor);
            }
        }
    }

    /// Takes an open order out of its book.
    pub(super) fn end(&mut self, slot: u32, why: OrderEnd) {
        let order = self.core.order(slot);
        if order.end.is_some() {
            return;
        }
        let market = order.terms.market;
        let owner = self.core.owner_of(order.key).owner.expect("it has an order in a book");
        let of = self.markets.get_mut(&market).expect("an open order's market is open");
        let first = self.events.len();
        of.book.apply(&Command::Cancel { owner, reference: slot }, &mut self.events);
        self.events.truncate(first);
        self.finish(slot, why);
    }

    /// An order has ended in its book: tells it.
    pub(super) fn finish(&mut self, slot: u32, why: OrderEnd) {
        let order = self.core.order_mut(slot);
        let (lots, id, market) = (order.open, order.id, order.terms.market);
        let was_shown = std::mem::take(&mut order.is_shown);
        self.close(slot, why);
        if was_shown {
            self.show(market, MarketEvent::Deleted { id });
        }
        self.report_order(slot, ReportKind::Ended { lots, why });
    }

    /// An order is open no more.
    pub(super) fn close(&mut self, slot: u32, why: OrderEnd) {
        let order = self.core.order_mut(slot);
        (order.open, order.end) = (0, Some(why));
        if let Some(until) = order.terms.until_ms {
            self.core.untils.remove(&(until, slot));
        }
        unspare(self, slot);
        self.refresh(slot);
    }

    /// The root stops: all orders end.
    pub(super) fn end_everything(&mut self) {
        let all = self.core.orders.iter().enumerate();
        let open = all.filter(|(_, order)| order.as_ref().is_some_and(|order| order.end.is_none()));
        let slots: Vec<u32> = open.map(|(slot, _)| slot as u32).collect();
        slots.into_iter().for_each(|slot| self.end(slot, OrderEnd::Stopped));
        self.core.signers.values_mut().for_each(|signer| signer.in_flight = None);
    }

    /// Fills that the incarnation will never settle.
    pub(super) fn bust_the_rest(&mut self) {
        let height = self.core.height();
        while let Some(pending) = self.core.pending.pop_front() {
            learn_fate(self, &pending, height, FillFate::Bust(FillBust::Fenced));
        }
    }
}
