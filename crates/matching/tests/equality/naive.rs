//! The rules of a book as plainly as they can be said: one list of orders, searched from end to end. It shares nothing
//! with the crate but the names of commands and events.

use matching::*;

#[derive(Clone, Debug)]
struct Open {
    number: u32,
    owner: u32,
    reference: u32,
    side: Side,
    tick: u32,
    lots: u32,
    executed: u32,
    arrival: u64,
    self_trade: SelfTrade,
    post_only: bool,
}

pub struct Naive {
    limits: BookLimits,
    phase: Phase,
    collar: (u32, u32),
    open: Vec<Open>,
    killed: Vec<u32>,
    arrivals: u64,
    accepted: u32,
    pub events: Vec<BookEvent>,
}

impl Open {
    fn party(&self) -> Party {
        let order = OrderId { slot: self.number, generation: 0 };
        Party { order, owner: self.owner, reference: self.reference }
    }
}

impl Naive {
    pub fn new(limits: BookLimits) -> Naive {
        Naive {
            limits,
            phase: Phase::Continuous,
            collar: (1, TICK_MAX),
            open: vec![],
            killed: vec![],
            arrivals: 0,
            accepted: 0,
            events: vec![],
        }
    }

    pub fn apply(&mut self, command: &Command) {
        let refused = match *command {
            Command::New(new) => self.place(new).err().map(|why| (new.owner, new.reference, why)),
            Command::Replace(of) => self.replace(of).err().map(|why| (of.owner, of.reference, why)),
            Command::Cancel { owner, reference } => match self.find(owner, reference) {
                Some(at) => {
                    self.end(at, Ended::Asked);
                    None
                }
                None => Some((owner, reference, BookRefusal::Unknown)),
            },
            Command::CancelAll { owner, .. } | Command::Kill { owner } | Command::Revive { owner }
                if owner >= self.limits.owners =>
            {
                Some((owner, 0, BookRefusal::UnknownOwner))
            }
            Command::CancelAll { owner, side } => {
                self.end_all(owner, side, Ended::Asked);
                None
            }
            Command::Kill { owner } => {
                self.end_all(owner, None, Ended::Killed);
                self.killed.push(owner);
                None
            }
            Command::Revive { owner } => {
                self.killed.retain(|one| *one != owner);
                None
            }
            _ => {
                if let Err(why) = self.steer(command) {
                    self.events.push(BookEvent::MarketRefused(why));
                }
                None
            }
        };
        if let Some((owner, reference, why)) = refused {
            self.events.push(BookEvent::Refused { owner, reference, why });
        }
    }

    fn steer(&mut self, command: &Command) -> Result<(), BookRefusal> {
        let next = match (command, self.phase) {
            (Command::Halt, Phase::Continuous | Phase::Call) => Phase::Halted,
            (Command::Call, Phase::Continuous | Phase::Halted) => Phase::Call,
            (Command::Resume, Phase::Halted) => {
                if let (Some(buy), Some(sell)) = (self.best(Side::Buy), self.best(Side::Sell))
                    && self.open[buy].tick >= self.open[sell].tick
                {
                    return Err(BookRefusal::Crossed);
                }
                Phase::Continuous
            }
            (Command::Uncross { reference, then: Phase::Continuous }, Phase::Call) => {
                if !self.auction(*reference) {
                    return Ok(());
                }
                Phase::Continuous
            }
            (Command::Uncross { reference, then: Phase::Halted }, Phase::Call) => {
                if !self.auction(*reference) {
                    return Ok(());
                }
                Phase::Halted
            }
            (Command::SetCollar { low, high }, _) => {
                if *low == 0 || high < low || *high > TICK_MAX {
                    return Err(BookRefusal::BadCollar);
                }
                self.collar = (*low, *high);
                return Ok(());
            }
            _ => return Err(BookRefusal::WrongPhase),
        };
        self.phase = next;
        self.events.push(BookEvent::Phase(next));
        Ok(())
    }

    fn find(&self, owner: u32, reference: u32) -> Option<usize> {
        self.open.iter().position(|open| open.owner == owner && open.reference == reference)
    }

    /// Of a side the order that trades next.
    fn best(&self, side: Side) -> Option<usize> {
        let of_side = (0..self.open.len()).filter(|at| self.open[*at].side == side);
        of_side.min_by_key(|at| {
            let open = &self.open[*at];
            let price = if side == Side::Buy { -i64::from(open.tick) } else { i64::from(open.tick) };
            (price, open.arrival)
        })
    }

    fn opposite(&self, side: Side, tick: u32) -> Option<usize> {
        let best = self.best(side.other())?;
        let against = self.open[best].tick;
        let crosses = if side == Side::Buy { against <= tick } else { against >= tick };
        crosses.then_some(best)
    }

    fn end(&mut self, at: usize, why: Ended) {
        let open = self.open.remove(at);
        self.events.push(BookEvent::Cancelled { party: open.party(), lots: open.lots, why });
    }

    fn end_all(&mut self, owner: u32, side: Option<Side>, why: Ended) {
        loop {
            let of = (0..self.open.len()).filter(|at| {
                let open = &self.open[*at];
                open.owner == owner && (side.is_none() || side == Some(open.side))
            });
            let Some(oldest) = of.min_by_key(|at| self.open[*at].arrival) else { return };
            self.end(oldest, why);
        }
    }

    fn check(&self, side: Side, tick: u32) -> Result<(), BookRefusal> {
        if self.phase == Phase::Halted {
            return Err(BookRefusal::Halted);
        }
        if !(1..=TICK_MAX).contains(&tick) {
            return Err(BookRefusal::BadTick);
        }
        if side == Side::Buy && tick > self.collar.1 {
            return Err(BookRefusal::Collar { nearest: self.collar.1 });
        }
        if side == Side::Sell && tick < self.collar.0 {
            return Err(BookRefusal::Collar { nearest: self.collar.0 });
        }
        Ok(())
    }

    fn would_take(&self, side: Side, tick: u32, post_only: bool) -> Result<(), BookRefusal> {
        match self.opposite(side, tick) {
            Some(best) if post_only && self.phase == Phase::Continuous => {
                Err(BookRefusal::WouldTake { best: self.open[best].tick })
            }
            _ => Ok(()),
        }
    }

    fn place(&mut self, new: NewOrder) -> Result<(), BookRefusal> {
        let rests = new.time_in_force == TimeInForce::GoodTillCancelled;
        if new.owner >= self.limits.owners {
            return Err(BookRefusal::UnknownOwner);
        }
        if self.killed.contains(&new.owner) {
            return Err(BookRefusal::Killed);
        }
        self.check(new.side, new.tick)?;
        if new.lots == 0 {
            return Err(BookRefusal::NoLots);
        }
        if self.phase == Phase::Call && (new.post_only || !rests) {
            return Err(BookRefusal::NotInCall);
        }
        if self.find(new.owner, new.reference).is_some() {
            return Err(BookRefusal::Duplicate);
        }
        if self.open.iter().filter(|open| open.owner == new.owner).count() >= self.limits.orders_of_owner as usize {
            return Err(BookRefusal::TooManyOrders);
        }
        if self.open.len() >= self.limits.orders as usize {
            return Err(BookRefusal::BookFull);
        }
        self.would_take(new.side, new.tick, new.post_only)?;
        if new.time_in_force == TimeInForce::FillOrKill {
            self.fills_whole(&new)?;
        }
        let open = Open {
            number: self.accepted,
            owner: new.owner,
            reference: new.reference,
            side: new.side,
            tick: new.tick,
            lots: new.lots,
            executed: 0,
            arrival: self.arrivals,
            self_trade: new.self_trade,
            post_only: new.post_only,
        };
        self.accepted += 1;
        self.arrivals += 1;
        self.events.push(BookEvent::Accepted { party: open.party(), side: new.side, tick: new.tick, lots: new.lots });
        self.arrive(open, rests);
        Ok(())
    }

    /// Tries it on a copy.
    fn fills_whole(&self, new: &NewOrder) -> Result<(), BookRefusal> {
        let (mut rest, mut left) =
            (Naive { open: self.open.clone(), events: vec![], ..Naive::new(self.limits) }, new.lots);
        for met in 0.. {
            let Some(maker) = rest.opposite(new.side, new.tick) else { break };
            let maker = rest.open.remove(maker);
            if maker.owner == new.owner || maker.tick < self.collar.0 || maker.tick > self.collar.1 {
                break;
            }
            if met == self.limits.fill_or_kill_orders {
                return Err(BookRefusal::TooManyMakers { most: met });
            }
            if maker.lots >= left {
                return Ok(());
            }
            left -= maker.lots;
        }
        Err(BookRefusal::NotFillable)
    }

    fn arrive(&mut self, mut open: Open, rests: bool) {
        let ended = |open: &Open, why| BookEvent::Cancelled { party: open.party(), lots: open.lots, why };
        while self.phase == Phase::Continuous && open.lots > 0 {
            let Some(at) = self.opposite(open.side, open.tick) else { break };
            if self.open[at].owner == open.owner {
                if matches!(open.self_trade, SelfTrade::ExpireMaker | SelfTrade::ExpireBoth) {
                    self.end(at, Ended::SelfTrade);
                }
                if matches!(open.self_trade, SelfTrade::ExpireTaker | SelfTrade::ExpireBoth) {
                    self.events.push(ended(&open, Ended::SelfTrade));
                    return;
                }
                continue;
            }
            let tick = self.open[at].tick;
            if tick < self.collar.0 || tick > self.collar.1 {
                self.phase = Phase::Call;
                self.events.push(BookEvent::Phase(Phase::Call));
                break;
            }
            let mut maker = self.open.remove(at);
            Self::trade(&mut maker, &mut open, tick, &mut self.events);
            if maker.lots > 0 {
                self.open.push(maker);
            }
        }
        if open.lots == 0 {
            return;
        }
        if !rests {
            self.events.push(ended(&open, Ended::Immediate));
            return;
        }
        if self.phase == Phase::Call {
            // Of its owner's orders that it crosses the oldest comes first.
            loop {
                let crossed = (0..self.open.len()).filter(|at| {
                    let own = &self.open[*at];
                    own.owner == open.owner
                        && match open.side {
                            Side::Buy => own.side == Side::Sell && own.tick <= open.tick,
                            Side::Sell => own.side == Side::Buy && own.tick >= open.tick,
                        }
                });
                let Some(own) = crossed.min_by_key(|at| self.open[*at].arrival) else { break };
                if open.self_trade != SelfTrade::ExpireTaker {
                    self.end(own, Ended::SelfTrade);
                }
                if open.self_trade != SelfTrade::ExpireMaker {
                    self.events.push(ended(&open, Ended::SelfTrade));
                    return;
                }
            }
        }
        self.open.push(open);
    }

    fn trade(maker: &mut Open, taker: &mut Open, tick: u32, events: &mut Vec<BookEvent>) -> u32 {
        let lots = maker.lots.min(taker.lots);
        for open in [&mut *maker, &mut *taker] {
            open.lots -= lots;
            open.executed += lots;
        }
        events.push(BookEvent::Executed {
            maker: maker.party(),
            taker: taker.party(),
            side: taker.side,
            tick,
            lots,
            maker_left: maker.lots,
            taker_left: taker.lots,
        });
        lots
    }

    fn replace(&mut self, of: Replacement) -> Result<(), BookRefusal> {
        let at = self.find(of.owner, of.reference).ok_or(BookRefusal::Unknown)?;
        let before = self.open[at].clone();
        self.check(before.side, of.tick)?;
        if of.reference != of.new_reference && self.find(of.owner, of.new_reference).is_some() {
            return Err(BookRefusal::Duplicate);
        }
        if of.lots <= before.executed {
            self.end(at, Ended::Asked);
            return Ok(());
        }
        let lots = of.lots - before.executed;
        let kept = of.tick == before.tick && lots <= before.lots;
        if !kept {
            self.would_take(before.side, of.tick, before.post_only)?;
        }
        let mut after = Open { reference: of.new_reference, tick: of.tick, lots, ..before };
        self.events.push(BookEvent::Replaced { party: after.party(), tick: of.tick, lots, kept });
        if kept {
            self.open[at] = after;
        } else {
            self.open.remove(at);
            after.arrival = self.arrivals;
            self.arrivals += 1;
            self.arrive(after, true);
        }
        Ok(())
    }

    /// Tries every tick that could be the price.
    fn auction(&mut self, reference: u32) -> bool {
        let lots = |side: Side, tick: u32| -> u64 {
            let reaches = |open: &&Open| if side == Side::Buy { open.tick >= tick } else { open.tick <= tick };
            self.open.iter().filter(|open| open.side == side).filter(reaches).map(|open| u64::from(open.lots)).sum()
        };
        // Between two limits nothing changes, so their neighbours and the reference stand for all ticks.
        let limits = self.open.iter().flat_map(|open| [open.tick - 1, open.tick, open.tick + 1]);
        let ticks: std::collections::BTreeSet<u32> = limits.chain([reference]).collect();
        let rated = ticks.into_iter().map(|tick| (tick, lots(Side::Buy, tick), lots(Side::Sell, tick)));
        let rated: Vec<(u32, u64, u64)> = rated.collect();
        let volume = rated.iter().map(|(_, buy, sell)| *buy.min(sell)).max().unwrap_or(0);
        if volume == 0 {
            self.events.push(BookEvent::Auction { tick: None, lots: 0 });
            return true;
        }
        let most: Vec<_> = rated.into_iter().filter(|(_, buy, sell)| *buy.min(sell) == volume).collect();
        let surplus = most.iter().map(|(_, buy, sell)| buy.abs_diff(*sell)).min().expect("not empty");
        let good: Vec<_> = most.into_iter().filter(|(_, buy, sell)| buy.abs_diff(*sell) == surplus).collect();
        let tick = if good.iter().all(|(_, buy, sell)| buy > sell) {
            good.iter().map(|(tick, ..)| *tick).max()
        } else if good.iter().all(|(_, buy, sell)| sell > buy) {
            good.iter().map(|(tick, ..)| *tick).min()
        } else if good.iter().all(|(_, buy, sell)| buy >= sell) && good.iter().any(|(_, buy, sell)| buy > sell) {
            // With one least surplus these cannot be mixed.
            unreachable!("a surplus of nothing and of something are not both the least")
        } else {
            good.iter().map(|(tick, ..)| *tick).min_by_key(|tick| tick.abs_diff(reference))
        };
        let tick = tick.expect("not empty");
        if tick < self.collar.0 || tick > self.collar.1 {
            self.events.push(BookEvent::Auction { tick: None, lots: 0 });
            return false;
        }
        let mut traded = 0;
        while traded < volume {
            let buy = self.best(Side::Buy).expect("there is volume");
            let mut buy = self.open.remove(buy);
            let sell = self.best(Side::Sell).expect("there is volume");
            let mut sell = self.open.remove(sell);
            assert!(buy.tick >= tick && sell.tick <= tick && buy.owner != sell.owner);
            let (maker, taker) = if buy.arrival < sell.arrival { (&mut buy, &mut sell) } else { (&mut sell, &mut buy) };
            traded += u64::from(Self::trade(maker, taker, tick, &mut self.events));
            self.open.extend([buy, sell].into_iter().filter(|open| open.lots > 0));
        }
        self.events.push(BookEvent::Auction { tick: Some(tick), lots: volume });
        true
    }

    /// Levels of a side: tick, lots, orders, best first.
    pub fn depth(&self, side: Side) -> Vec<(u32, u64, u32)> {
        let mut levels = std::collections::BTreeMap::new();
        for open in self.open.iter().filter(|open| open.side == side) {
            let (lots, orders) = levels.entry(open.tick).or_insert((0, 0));
            *lots += u64::from(open.lots);
            *orders += 1;
        }
        let levels = levels.into_iter().map(|(tick, (lots, orders))| (tick, lots, orders));
        if side == Side::Buy { levels.rev().collect() } else { levels.collect() }
    }

    /// Orders of a side in the order in which they trade: owner, reference, tick, lots.
    pub fn resting(&self, side: Side) -> Vec<(u32, u32, u32, u32)> {
        let mut open: Vec<&Open> = self.open.iter().filter(|open| open.side == side).collect();
        let price = |open: &&Open| if side == Side::Buy { u32::MAX - open.tick } else { open.tick };
        open.sort_by_key(|open| (price(open), open.arrival));
        open.into_iter().map(|open| (open.owner, open.reference, open.tick, open.lots)).collect()
    }

    pub fn position(&self, owner: u32, reference: u32) -> Option<Position> {
        let own = &self.open[self.find(owner, reference)?];
        let ahead = |open: &&Open| open.side == own.side && open.tick == own.tick && open.arrival < own.arrival;
        Some(Position {
            orders_ahead: self.open.iter().filter(ahead).count() as u32,
            lots_ahead: self.open.iter().filter(ahead).map(|open| u64::from(open.lots)).sum(),
            lots: own.lots,
        })
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }
}
