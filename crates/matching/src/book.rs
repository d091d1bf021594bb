//! The book: commands in, events out. See the crate's page.

use crate::bitmap::BITS_MAX;
use crate::ladder::Ladder;
use crate::orders::{Order, Orders, arriving};
use crate::references::References;
use crate::treap::NONE;
use crate::{
    BookEvent, BookRefusal, Command, Ended, NewOrder, Phase, Replacement, SelfTrade, Side, Sink, TICK_MAX, TimeInForce,
};

/// The size of a book; its memory is allocated once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookLimits {
    /// Open orders, 1 to 2^28.
    pub orders: u32,
    /// Owners; they are numbered from zero.
    pub owners: u32,
    /// Open orders of one owner.
    pub orders_of_owner: u32,
    /// The first tick of the window in which levels are found by index.
    pub window_base: u32,
    /// Ticks of the window, 64 to 262,144.
    pub window_ticks: u32,
    /// Makers that a fill-or-kill order may meet.
    pub fill_or_kill_orders: u32,
}

impl Default for BookLimits {
    /// 65,536 orders, 4,096 owners with 1,024 orders each, ticks 1 to 65,536 in the window, 64 makers.
    fn default() -> BookLimits {
        BookLimits {
            orders: 1 << 16,
            owners: 4_096,
            orders_of_owner: 1_024,
            window_base: 1,
            window_ticks: 1 << 16,
            fill_or_kill_orders: 64,
        }
    }
}

/// A book of this size cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a book's {0} must be {1} to {2}")]
pub struct BookLimitsError(&'static str, u32, u32);

impl BookLimits {
    fn check(&self) -> Result<(), BookLimitsError> {
        for (name, value, least, most) in [
            ("orders", self.orders, 1, 1 << 28),
            ("owners", self.owners, 1, 1 << 28),
            ("orders_of_owner", self.orders_of_owner, 1, 1 << 28),
            ("window_base", self.window_base, 1, TICK_MAX - BITS_MAX as u32),
            ("window_ticks", self.window_ticks, 64, BITS_MAX as u32),
            ("fill_or_kill_orders", self.fill_or_kill_orders, 1, 1 << 28),
        ] {
            if !(least..=most).contains(&value) {
                return Err(BookLimitsError(name, least, most));
            }
        }
        Ok(())
    }
}

/// A market's book.
#[derive(Clone, Debug)]
pub struct Book {
    pub(crate) limits: BookLimits,
    pub(crate) phase: Phase,
    /// The lowest and the highest tick at which trades may take place.
    pub(crate) collar: (u32, u32),
    /// The place in time of the next arrival.
    pub(crate) arrivals: u64,
    pub(crate) orders: Orders,
    pub(crate) ladders: [Ladder; 2],
    pub(crate) references: References,
}

/// What becomes of the rest of a taker.
enum Rest {
    /// Its time in force decides.
    Stands,
    /// It met an order of its owner.
    SelfTrade,
}

impl Book {
    /// An empty book in continuous trading, without a collar. `seed` is secret and shows in no result: it keeps
    /// strangers from choosing references that collide.
    ///
    /// # Errors
    /// [`BookLimitsError`] names the limit.
    pub fn new(limits: BookLimits, seed: u64) -> Result<Book, BookLimitsError> {
        limits.check()?;
        let ladder = |side| Ladder::new(side, limits.window_base, limits.window_ticks, limits.orders, seed);
        Ok(Book {
            limits,
            phase: Phase::Continuous,
            collar: (1, TICK_MAX),
            arrivals: 0,
            orders: Orders::new(limits.orders, limits.owners),
            ladders: [ladder(Side::Buy), ladder(Side::Sell)],
            references: References::new(limits.orders as usize, seed),
        })
    }

    /// Executes a command.
    pub fn apply(&mut self, command: &Command, sink: &mut impl Sink) {
        match command {
            Command::New(new) => {
                if let Err(why) = self.place(new, sink) {
                    sink.event(BookEvent::Refused { owner: new.owner, reference: new.reference, why });
                }
            }
            Command::Replace(of) => {
                if let Err(why) = self.replace(of, sink) {
                    sink.event(BookEvent::Refused { owner: of.owner, reference: of.reference, why });
                }
            }
            &Command::Cancel { owner, reference } => match self.references.get(owner, reference) {
                Some(slot) => self.cancel(slot, Ended::Asked, sink),
                None => sink.event(BookEvent::Refused { owner, reference, why: BookRefusal::Unknown }),
            },
            &Command::CancelAll { owner, side } => match owner < self.limits.owners {
                true => self.cancel_all(owner, side, Ended::Asked, sink),
                false => sink.event(BookEvent::Refused { owner, reference: 0, why: BookRefusal::UnknownOwner }),
            },
            &Command::Kill { owner } => {
                self.cancel_all(owner, None, Ended::Killed, sink);
                self.set_killed(owner, true, sink);
            }
            &Command::Revive { owner } => self.set_killed(owner, false, sink),
            market => {
                if let Err(why) = self.steer(market, sink) {
                    sink.event(BookEvent::MarketRefused(why));
                }
            }
        }
    }

    /// Commands about the market as a whole.
    fn steer(&mut self, command: &Command, sink: &mut impl Sink) -> Result<(), BookRefusal> {
        match *command {
            Command::Halt if self.phase != Phase::Halted => self.enter(Phase::Halted, sink),
            Command::Resume if self.phase == Phase::Halted && self.is_crossed() => return Err(BookRefusal::Crossed),
            Command::Resume if self.phase == Phase::Halted => self.enter(Phase::Continuous, sink),
            Command::Call if self.phase != Phase::Call => self.enter(Phase::Call, sink),
            Command::Uncross { reference, then } if self.phase == Phase::Call && then != Phase::Call => {
                if self.uncross(reference, sink) {
                    self.enter(then, sink);
                }
            }
            Command::SetCollar { low, high } if low < 1 || low > high || high > TICK_MAX => {
                return Err(BookRefusal::BadCollar);
            }
            Command::SetCollar { low, high } => self.collar = (low, high),
            _ => return Err(BookRefusal::WrongPhase),
        }
        Ok(())
    }

    fn enter(&mut self, phase: Phase, sink: &mut impl Sink) {
        self.phase = phase;
        sink.event(BookEvent::Phase(phase));
    }

    fn set_killed(&mut self, owner: u32, is_killed: bool, sink: &mut impl Sink) {
        match self.orders.owners.get_mut(owner as usize) {
            Some(owner) => owner.is_killed = is_killed,
            None => sink.event(BookEvent::Refused { owner, reference: 0, why: BookRefusal::UnknownOwner }),
        }
    }

    pub(crate) fn is_crossed(&self) -> bool {
        let [buy, sell] = [Side::Buy, Side::Sell].map(|side| self.ladders[side as usize].best());
        buy.zip(sell).is_some_and(|(buy, sell)| buy.tick >= sell.tick)
    }

    /// What holds for every order, new or replaced.
    fn check(&self, side: Side, tick: u32) -> Result<(), BookRefusal> {
        if self.phase == Phase::Halted {
            return Err(BookRefusal::Halted);
        }
        if tick == 0 || tick > TICK_MAX {
            return Err(BookRefusal::BadTick);
        }
        let (low, high) = self.collar;
        match side {
            Side::Buy if tick > high => Err(BookRefusal::Collar { nearest: high }),
            Side::Sell if tick < low => Err(BookRefusal::Collar { nearest: low }),
            _ => Ok(()),
        }
    }

    /// The best tick of the other side, if an order would trade at once.
    fn taken(&self, side: Side, tick: u32) -> Option<u32> {
        let best = self.ladders[side.other() as usize].best()?.tick;
        (self.phase == Phase::Continuous && side.crosses(tick, best)).then_some(best)
    }

    fn place(&mut self, new: &NewOrder, sink: &mut impl Sink) -> Result<(), BookRefusal> {
        let owner = self.orders.owners.get(new.owner as usize).ok_or(BookRefusal::UnknownOwner)?;
        if owner.is_killed {
            return Err(BookRefusal::Killed);
        }
        self.check(new.side, new.tick)?;
        if new.lots == 0 {
            return Err(BookRefusal::NoLots);
        }
        if self.phase == Phase::Call && (new.post_only || new.time_in_force != TimeInForce::GoodTillCancelled) {
            return Err(BookRefusal::NotInCall);
        }
        if self.references.get(new.owner, new.reference).is_some() {
            return Err(BookRefusal::Duplicate);
        }
        if owner.orders >= self.limits.orders_of_owner {
            return Err(BookRefusal::TooManyOrders);
        }
        if self.orders.is_full() {
            return Err(BookRefusal::BookFull);
        }
        if let Some(best) = self.taken(new.side, new.tick).filter(|_| new.post_only) {
            return Err(BookRefusal::WouldTake { best });
        }
        if new.time_in_force == TimeInForce::FillOrKill {
            self.fills_whole(new)?;
        }
        let slot = self.orders.take_slot(arriving(new, self.arrivals));
        self.arrivals += 1;
        let party = self.orders.party(slot);
        sink.event(BookEvent::Accepted { party, side: new.side, tick: new.tick, lots: new.lots });
        self.trade_and_rest(slot, new.time_in_force == TimeInForce::GoodTillCancelled, sink);
        Ok(())
    }

    /// That an order trades whole with few enough makers, none of its owner, within the collar.
    fn fills_whole(&self, new: &NewOrder) -> Result<(), BookRefusal> {
        let mut left = new.lots;
        let (mut level, mut makers) = (self.ladders[new.side.other() as usize].best(), 0);
        while let Some(at) = level.filter(|at| new.side.crosses(new.tick, at.tick) && self.is_within(at.tick)) {
            let mut slot = at.first;
            while slot != NONE {
                let maker = self.orders.at(slot);
                makers += 1;
                if maker.owner == new.owner {
                    return Err(BookRefusal::NotFillable);
                }
                if makers > self.limits.fill_or_kill_orders {
                    return Err(BookRefusal::TooManyMakers { most: self.limits.fill_or_kill_orders });
                }
                if maker.lots >= left {
                    return Ok(());
                }
                left -= maker.lots;
                slot = maker.next;
            }
            level = self.ladders[new.side.other() as usize].behind(at.tick);
        }
        Err(BookRefusal::NotFillable)
    }

    pub(crate) fn is_within(&self, tick: u32) -> bool {
        (self.collar.0..=self.collar.1).contains(&tick)
    }

    /// Lets an arriving order trade, and what is left of it rest if it may. It is in no queue and no list yet.
    fn trade_and_rest(&mut self, slot: u32, rests: bool, sink: &mut impl Sink) {
        let rest = match self.phase {
            Phase::Continuous => self.trade(slot, sink),
            _ => Rest::Stands,
        };
        // The collar may have turned the market to a call.
        let rest = match rest {
            Rest::Stands if self.phase == Phase::Call && rests => self.part_from_own(slot, sink),
            rest => rest,
        };
        let lots = self.orders.at(slot).lots;
        match rest {
            _ if lots == 0 => self.orders.give_back(slot),
            Rest::Stands if rests => self.rest(slot),
            Rest::Stands => self.end_unlisted(slot, Ended::Immediate, sink),
            Rest::SelfTrade => self.end_unlisted(slot, Ended::SelfTrade, sink),
        }
    }

    fn trade(&mut self, taker: u32, sink: &mut impl Sink) -> Rest {
        let Order { side, tick, owner, self_trade, .. } = *self.orders.at(taker);
        let other = side.other() as usize;
        while self.orders.at(taker).lots > 0 {
            let Some(best) = self.ladders[other].best() else { break };
            let (at, maker) = (best.tick, best.first);
            if !side.crosses(tick, at) {
                break;
            }
            if self.orders.at(maker).owner == owner {
                if self_trade != SelfTrade::ExpireTaker {
                    self.cancel(maker, Ended::SelfTrade, sink);
                }
                if self_trade != SelfTrade::ExpireMaker {
                    return Rest::SelfTrade;
                }
                continue;
            }
            if !self.is_within(at) {
                self.enter(Phase::Call, sink);
                break;
            }
            let lots = self.orders.at(taker).lots.min(self.orders.at(maker).lots);
            self.execute(maker, taker, at, lots, sink);
        }
        Rest::Stands
    }

    /// Trades between a resting order and another one.
    pub(crate) fn execute(&mut self, maker: u32, taker: u32, tick: u32, lots: u32, sink: &mut impl Sink) {
        let parties = (self.orders.party(maker), self.orders.party(taker));
        let left = [maker, taker].map(|slot| {
            let order = self.orders.at_mut(slot);
            order.lots -= lots;
            order.executed += lots;
            order.lots
        });
        sink.event(BookEvent::Executed {
            maker: parties.0,
            taker: parties.1,
            side: self.orders.at(taker).side,
            tick,
            lots,
            maker_left: left[0],
            taker_left: left[1],
        });
        self.leave_queue(maker, lots);
    }

    /// Takes traded lots out of the queue of a resting order, and the order too if nothing of it is left.
    pub(crate) fn leave_queue(&mut self, slot: u32, lots: u32) {
        let Order { side, level, lots: left, .. } = *self.orders.at(slot);
        let ladder = &mut self.ladders[side as usize];
        ladder.reduce(level, lots);
        if left == 0 {
            ladder.remove(&mut self.orders, slot);
            self.forget(slot);
        }
    }

    /// Puts an order into its queue, its owner's list and the references.
    pub(crate) fn rest(&mut self, slot: u32) {
        let Order { side, owner, reference, .. } = *self.orders.at(slot);
        self.ladders[side as usize].push(&mut self.orders, slot);
        self.orders.list(slot);
        self.references.insert(owner, reference, slot);
    }

    fn forget(&mut self, slot: u32) {
        let Order { owner, reference, .. } = *self.orders.at(slot);
        self.orders.unlist(slot);
        self.references.remove(owner, reference);
        self.orders.give_back(slot);
    }

    fn end_unlisted(&mut self, slot: u32, why: Ended, sink: &mut impl Sink) {
        sink.event(BookEvent::Cancelled { party: self.orders.party(slot), lots: self.orders.at(slot).lots, why });
        self.orders.give_back(slot);
    }

    /// Whether no open order of the owner has this reference.
    pub(crate) fn is_unnamed(&self, owner: u32, reference: u32) -> bool {
        self.references.get(owner, reference).is_none()
    }

    /// Ends a resting order.
    fn cancel(&mut self, slot: u32, why: Ended, sink: &mut impl Sink) {
        let Order { side, lots, .. } = *self.orders.at(slot);
        sink.event(BookEvent::Cancelled { party: self.orders.party(slot), lots, why });
        self.ladders[side as usize].remove(&mut self.orders, slot);
        self.forget(slot);
    }

    fn cancel_all(&mut self, owner: u32, side: Option<Side>, why: Ended, sink: &mut impl Sink) {
        let mut slot = self.orders.owners.get(owner as usize).map_or(NONE, |owner| owner.first);
        while slot != NONE {
            let Order { next_of_owner, side: of, .. } = *self.orders.at(slot);
            if side.is_none_or(|side| side == of) {
                self.cancel(slot, why, sink);
            }
            slot = next_of_owner;
        }
    }

    /// In a call: an order that crosses resting ones of its owner is resolved as a self-trade at once.
    fn part_from_own(&mut self, slot: u32, sink: &mut impl Sink) -> Rest {
        let Order { side, tick, owner, self_trade, .. } = *self.orders.at(slot);
        let mut own = self.orders.owners[owner as usize].first;
        while own != NONE {
            let Order { next_of_owner, side: of, tick: against, .. } = *self.orders.at(own);
            if of != side && side.crosses(tick, against) {
                if self_trade != SelfTrade::ExpireTaker {
                    self.cancel(own, Ended::SelfTrade, sink);
                }
                if self_trade != SelfTrade::ExpireMaker {
                    return Rest::SelfTrade;
                }
            }
            own = next_of_owner;
        }
        Rest::Stands
    }

    fn replace(&mut self, of: &Replacement, sink: &mut impl Sink) -> Result<(), BookRefusal> {
        let slot = self.references.get(of.owner, of.reference).ok_or(BookRefusal::Unknown)?;
        let order = *self.orders.at(slot);
        self.check(order.side, of.tick)?;
        if of.new_reference != of.reference && self.references.get(of.owner, of.new_reference).is_some() {
            return Err(BookRefusal::Duplicate);
        }
        let Some(open) = of.lots.checked_sub(order.executed).filter(|open| *open > 0) else {
            // All that it is to trade has traded.
            self.cancel(slot, Ended::Asked, sink);
            return Ok(());
        };
        let kept = of.tick == order.tick && open <= order.lots;
        if let Some(best) = self.taken(order.side, of.tick).filter(|_| order.post_only && !kept) {
            return Err(BookRefusal::WouldTake { best });
        }
        self.references.remove(of.owner, of.reference);
        self.orders.at_mut(slot).reference = of.new_reference;
        let told = BookEvent::Replaced { party: self.orders.party(slot), tick: of.tick, lots: open, kept };
        sink.event(told);
        if kept {
            self.ladders[order.side as usize].reduce(order.level, order.lots - open);
            self.orders.at_mut(slot).lots = open;
            self.references.insert(of.owner, of.new_reference, slot);
            return Ok(());
        }
        self.ladders[order.side as usize].remove(&mut self.orders, slot);
        self.orders.unlist(slot);
        let arrival = self.arrivals;
        self.arrivals += 1;
        let order = self.orders.at_mut(slot);
        (order.tick, order.lots, order.arrival) = (of.tick, open, arrival);
        self.trade_and_rest(slot, true, sink);
        Ok(())
    }

    /// The phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Number of resting orders.
    pub fn len(&self) -> usize {
        self.orders.used as usize - self.orders.free.len()
    }

    /// Whether no order rests.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The best tick of a side, and the lots there.
    pub fn best(&self, side: Side) -> Option<(u32, u64)> {
        self.ladders[side as usize].best().map(|level| (level.tick, level.lots))
    }

    /// The levels of a side, best first: tick, lots, orders.
    pub fn depth(&self, side: Side) -> impl Iterator<Item = (u32, u64, u32)> + '_ {
        self.ladders[side as usize].levels().map(|level| (level.tick, level.lots, level.orders))
    }
}
