//! Orders that arrive: their numbers, their first answers, and replacements.

use matching::{Command, NewOrder, Replacement, SelfTrade, TimeInForce};
use primitives::Digest;
use primitives::venue::{OrderLife, OrderNumber, SelfTradeRule, VenueOrder};

use super::check::check;
use super::places::{forget_numbers, take_place};
use super::sparing::{spare, unspare};
use super::{VenueMachine, book_side};
use crate::checked::ArrivingOrder;
use crate::input::SessionNumber;
use crate::mistake::VenueMistake;
use crate::order::{Order, OrderProof};
use crate::refusal::{OrderEnd, OrderRefusal};
use crate::report::{MarketEvent, ReportKind};
use crate::state::Remembered;

/// What an order of a key is for the book.
fn book_order(owner: u32, slot: u32, order: &VenueOrder) -> NewOrder {
    NewOrder {
        owner,
        reference: slot,
        side: book_side(order.side),
        tick: order.tick,
        lots: order.lots,
        time_in_force: match order.life {
            OrderLife::Rests | OrderLife::PostOnly => TimeInForce::GoodTillCancelled,
            OrderLife::ImmediateOrCancel => TimeInForce::ImmediateOrCancel,
            OrderLife::FillOrKill => TimeInForce::FillOrKill,
        },
        post_only: order.life == OrderLife::PostOnly,
        self_trade: match order.self_trade {
            SelfTradeRule::ExpireMaker => SelfTrade::ExpireMaker,
            SelfTradeRule::ExpireTaker => SelfTrade::ExpireTaker,
            SelfTradeRule::ExpireBoth => SelfTrade::ExpireBoth,
        },
    }
}

impl VenueMachine {
    /// Places an order, or answers as the first time.
    pub(super) fn place(
        &mut self,
        session: SessionNumber,
        at: u32,
        order: &ArrivingOrder,
        replaces: Option<OrderNumber>,
    ) {
        let (key, number) = (order.key, order.order.number);
        if let Some(answer) = self.known_answer(at, order) {
            self.report(session, key, number, answer);
            return self.obey_overtaking(at, order, replaces);
        }
        if let Err(why) = take_place(self, at) {
            return self.report(session, key, number, ReportKind::Refused(why));
        }
        let placed = match replaces {
            None => self.enter(session, at, order),
            Some(old) => self.replace(session, at, order, old),
        };
        if let Err(why) = placed {
            self.remember(at, number, Remembered::Refused(Box::new((order.digest, why))));
            self.report(session, key, number, ReportKind::Refused(why));
        }
    }

    /// The answer to an order whose number is known, or that none can place. It is not remembered.
    fn known_answer(&self, at: u32, order: &ArrivingOrder) -> Option<ReportKind> {
        let (key, number) = (self.core.key(at), order.order.number);
        let incarnation = self.core.settings.incarnation;
        if number.incarnation != incarnation {
            return Some(ReportKind::Refused(OrderRefusal::Incarnation(incarnation)));
        }
        let is_same = |digest: &Digest| *digest == order.digest;
        match key.numbers.get(&number) {
            Some(Remembered::Taken(_)) if self.has(VenueMistake::RetryIsNew) => None,
            Some(Remembered::Taken(slot)) if is_same(&self.core.order_proof(*slot).digest) => {
                Some(ReportKind::Accepted(self.core.order(*slot).accepted()))
            }
            Some(Remembered::Refused(of)) if is_same(&of.0) => Some(ReportKind::Refused(of.1)),
            Some(Remembered::Overtaken) => Some(ReportKind::Refused(OrderRefusal::Overtaken)),
            Some(_) => Some(ReportKind::Refused(OrderRefusal::NumberTaken)),
            None => match key.stale.filter(|stale| number <= *stale) {
                Some(stale) => Some(ReportKind::Refused(OrderRefusal::NumberStale(stale))),
                None => self.check_runs().err().map(ReportKind::Refused),
            },
        }
    }

    /// A cancel came before its replacement: of what that would have replaced nothing stays open, either. The first
    /// order under the number has its answer then, and no other one ends anything.
    fn obey_overtaking(&mut self, at: u32, order: &ArrivingOrder, replaces: Option<OrderNumber>) {
        let number = order.order.number;
        if self.core.key(at).numbers.get(&number) != Some(&Remembered::Overtaken) {
            return;
        }
        self.remember(at, number, Remembered::Refused(Box::new((order.digest, OrderRefusal::Overtaken))));
        if let Some(slot) = replaces.and_then(|old| self.open_slot(at, &old)) {
            self.end(slot, OrderEnd::Asked);
        }
    }

    /// Keeps the first answer to a number, and forgets those that are final if there are too many, the lowest first.
    /// Numbers up to the highest forgotten one are refused from then on.
    pub(super) fn remember(&mut self, at: u32, number: OrderNumber, what: Remembered) {
        let most = self.core.settings.limits.numbers_of_key as usize;
        self.core.key_mut(at).numbers.insert(number, what);
        if self.core.key(at).numbers.len() > most {
            forget_numbers(self, at, most / 8 + 1, Some(number));
        }
    }

    /// Puts an order into a slot, where it reserves what it needs.
    fn take_slot(&mut self, order: Order, proof: OrderProof) -> u32 {
        let core = &mut self.core;
        let slot = match core.free.pop() {
            Some(slot) => {
                core.orders[slot as usize] = Some(order);
                core.order_proofs[slot as usize] = proof;
                slot
            }
            None => {
                core.orders.push(Some(order));
                core.order_proofs.push(proof);
                core.orders.len() as u32 - 1
            }
        };
        self.refresh(slot);
        slot
    }

    pub(super) fn free_slot(&mut self, slot: u32) {
        self.core.orders[slot as usize] = None;
        self.core.free.push(slot);
    }

    /// A new order in its slot, not yet in the book.
    fn arriving(&mut self, session: SessionNumber, at: u32, signed: &ArrivingOrder, carried: u32) -> u32 {
        let id = self.core.last_id + 1;
        let spared_on = spare(self, at, &signed.order);
        let mut order = Order::new(signed.order, id, session, at, self.core.height(), carried);
        order.set_spared_on(spared_on);
        self.take_slot(order, OrderProof { digest: signed.digest, signature: signed.signature.clone() })
    }

    /// Takes back an order that the book has refused.
    fn leave_again(&mut self, slot: u32) {
        let order = self.core.order_mut(slot);
        (order.open, order.end) = (0, Some(OrderEnd::Asked));
        unspare(self, slot);
        self.refresh(slot);
        self.free_slot(slot);
    }

    fn enter(&mut self, session: SessionNumber, at: u32, signed: &ArrivingOrder) -> Result<(), OrderRefusal> {
        let order = &signed.order;
        check(self, at, order, None)?;
        let owner = self.owner(at);
        let slot = self.arriving(session, at, signed, 0);
        if let Err(why) = self.run(order.market, &Command::New(book_order(owner, slot, order))) {
            self.leave_again(slot);
            return Err(why);
        }
        self.accept(slot);
        self.follow(order.market);
        self.after_arrival(slot);
        Ok(())
    }

    /// The order is taken: it has its id, its number and its first answer.
    fn accept(&mut self, slot: u32) {
        let order = self.core.order(slot);
        let (at, accepted, terms) = (order.key, order.accepted(), order.terms);
        self.core.last_id = accepted.id;
        self.core.untils.extend(terms.until_ms.map(|until| (until, slot)));
        self.remember(at, terms.number, Remembered::Taken(slot));
        self.report_order(slot, ReportKind::Accepted(accepted));
    }

    /// Shows what rests of an order that arrived, and obeys its floor.
    fn after_arrival(&mut self, slot: u32) {
        let order = self.core.order(slot);
        let (at, terms) = (order.key, order.terms);
        if order.end.is_none() && !order.is_shown {
            let (id, lots) = (order.id, order.open);
            self.core.order_mut(slot).is_shown = true;
            self.show(terms.market, MarketEvent::Added { id, side: terms.side, tick: terms.tick, lots });
        }
        if !self.has(VenueMistake::FloorsIgnored) {
            self.raise_floor(at, terms.floor);
        }
        self.leave_call(terms.market);
    }

    /// The number of a key's account in the books.
    fn owner(&self, at: u32) -> u32 {
        self.core.owner_of(at).owner.expect("an order that arrives has a place")
    }

    fn replace(
        &mut self,
        session: SessionNumber,
        at: u32,
        signed: &ArrivingOrder,
        number: OrderNumber,
    ) -> Result<(), OrderRefusal> {
        let old = self.open_slot(at, &number).ok_or(OrderRefusal::NotOpen)?;
        let (order, before) = (&signed.order, self.core.order(old).terms);
        let name = |of: &VenueOrder| (of.market, of.side, of.life, of.self_trade);
        if name(order) != name(&before) {
            return Err(OrderRefusal::Differs);
        }
        let executed = self.executed_of(old);
        if order.lots <= executed {
            self.end(old, OrderEnd::Asked);
            return Err(OrderRefusal::NothingLeft(executed));
        }
        check(self, at, order, Some(old))?;
        let owner = self.owner(at);
        let carried = if self.has(VenueMistake::ReplaceForgetsExecuted) { 0 } else { executed };
        let slot = self.arriving(session, at, signed, carried);
        self.core.order_mut(slot).replaces = Some(number);
        let lots = order.lots + (executed - carried);
        let command = Replacement { owner, reference: old, new_reference: slot, tick: order.tick, lots };
        if let Err(why) = self.run(order.market, &Command::Replace(command)) {
            self.leave_again(slot);
            return Err(why);
        }
        self.take_over(old, slot);
        self.accept(slot);
        self.follow(order.market);
        self.after_arrival(slot);
        Ok(())
    }

    /// Lots that an order and those that it replaced have executed.
    pub(super) fn executed_of(&self, slot: u32) -> u32 {
        let order = self.core.order(slot);
        order.carried + order.fills().executed
    }

    /// The new order has taken the place of the old one, or a place at the end of another queue.
    fn take_over(&mut self, old: u32, slot: u32) {
        let keeps_place = self.is_place_kept();
        let order = self.core.order_mut(slot);
        order.keeps_place = keeps_place;
        let (number, id, lots) = (order.terms.number, order.id, order.open);
        let market = order.terms.market;
        let before = self.core.order_mut(old);
        let (old_id, was_shown) = (before.id, std::mem::take(&mut before.is_shown));
        if was_shown && keeps_place {
            self.show(market, MarketEvent::Renamed { id: old_id, to: id, lots });
            self.core.order_mut(slot).is_shown = true;
        } else if was_shown {
            self.show(market, MarketEvent::Deleted { id: old_id });
        }
        self.close(old, OrderEnd::Replaced(number));
    }
}
