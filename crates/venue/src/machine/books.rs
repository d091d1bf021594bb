//! Commands to the books, and what the operator does to markets.

use matching::{Book, BookEvent, BookRefusal, Command, Phase, Side};
use primitives::venue::{MarketId, TICK_MAX, VenueSide};

use super::backlog::Added;
use super::check::check_band_in_call;
use super::cover::penalty_of;
use super::matched::execute;
use super::{Market, VenueMachine, book_side};
use crate::input::Steering;
use crate::mistake::VenueMistake;
use crate::refusal::{OrderEnd, OrderRefusal};
use crate::report::{MarketEvent, VenueEffect};
use crate::settings::MarketSettings;

fn refusal_of(side: Side, why: BookRefusal) -> OrderRefusal {
    match why {
        BookRefusal::Halted => OrderRefusal::Halted,
        BookRefusal::UnknownOwner => OrderRefusal::TooManyAccounts,
        BookRefusal::Killed => OrderRefusal::Killed,
        BookRefusal::Collar { nearest } => OrderRefusal::Collar(nearest),
        BookRefusal::NotInCall => OrderRefusal::NotInCall,
        BookRefusal::TooManyOrders | BookRefusal::BookFull => OrderRefusal::BookFull,
        BookRefusal::WouldTake { best } if side == Side::Buy => OrderRefusal::WouldTake(best - 1),
        BookRefusal::WouldTake { best } => OrderRefusal::WouldTake(best + 1),
        BookRefusal::NotFillable => OrderRefusal::NotFillable,
        BookRefusal::TooManyMakers { most } => OrderRefusal::TooManyMakers(most),
        BookRefusal::Unknown | BookRefusal::Duplicate => OrderRefusal::NotOpen,
        BookRefusal::BadTick | BookRefusal::NoLots => OrderRefusal::Size,
        BookRefusal::WrongPhase | BookRefusal::Crossed | BookRefusal::BadCollar => OrderRefusal::Phase,
    }
}

impl VenueMachine {
    /// Gives a command to a book, whose events wait to be followed; or says why it is refused.
    pub(super) fn run(&mut self, market: MarketId, command: &Command) -> Result<(), OrderRefusal> {
        debug_assert!(self.events.is_empty(), "events of the command before are followed");
        let of = self.markets.get_mut(&market).ok_or(OrderRefusal::MarketNotOpen)?;
        of.book.apply(command, &mut self.events);
        let refused = self.events.iter().find_map(|event| match event {
            BookEvent::Refused { why, .. } | BookEvent::MarketRefused(why) => Some(*why),
            _ => None,
        });
        let Some(why) = refused else { return Ok(()) };
        self.events.clear();
        let side = match command {
            Command::New(new) => new.side,
            Command::Replace(of) => book_side(self.core.order(of.reference).terms.side),
            _ => Side::Buy,
        };
        Err(refusal_of(side, why))
    }

    /// Whether the replacement that was just run kept its place.
    pub(super) fn is_place_kept(&self) -> bool {
        self.events.iter().any(|event| matches!(event, BookEvent::Replaced { kept: true, .. }))
    }

    /// Follows the events of the last command, in their order.
    pub(super) fn follow(&mut self, market: MarketId) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.follow_event(market, event);
        }
        self.events = events;
    }

    fn follow_event(&mut self, market: MarketId, event: BookEvent) {
        match event {
            BookEvent::Executed { maker, taker, side, tick, lots, .. } => {
                let taker_side = if side == Side::Buy { VenueSide::Buy } else { VenueSide::Sell };
                execute(self, [maker.reference, taker.reference], taker_side, tick, lots);
            }
            BookEvent::Cancelled { party, why, .. } => {
                let why = match why {
                    matching::Ended::Immediate => OrderEnd::Immediate,
                    matching::Ended::SelfTrade => OrderEnd::SelfTrade,
                    matching::Ended::Killed => OrderEnd::Killed,
                    matching::Ended::Asked => OrderEnd::Asked,
                };
                self.finish(party.reference, why);
            }
            BookEvent::Phase(phase) => {
                self.turns_to_call |= phase == Phase::Call;
                self.show(market, MarketEvent::Phase(phase));
            }
            BookEvent::Auction { tick, lots } => self.show(market, MarketEvent::Auction { tick, lots }),
            // Taken orders and replacements are told by whoever gave the command.
            BookEvent::Accepted { .. } | BookEvent::Replaced { .. } => {}
            BookEvent::Refused { .. } | BookEvent::MarketRefused(_) => {}
        }
    }

    pub(super) fn open_market(&mut self, market: MarketId, settings: &MarketSettings) -> Result<(), OrderRefusal> {
        self.check_runs()?;
        let terms = *self.core.listed.get(&market).ok_or(OrderRefusal::MarketNotOpen)?;
        if self.markets.contains_key(&market) || !settings.has_sound_fees() {
            return Err(OrderRefusal::MarketSettings);
        }
        let limits = self.core.settings.book(settings);
        let book = Book::new(limits, self.seed).map_err(|_| OrderRefusal::MarketSettings)?;
        self.markets.insert(market, Market { settings: *settings, terms, collar: (1, TICK_MAX), told: 0, book });
        self.show(market, MarketEvent::Phase(Phase::Continuous));
        Ok(())
    }

    pub(super) fn steer(&mut self, market: MarketId, steering: &Steering) -> Result<(), OrderRefusal> {
        self.check_runs()?;
        let command = match *steering {
            Steering::Halt => Command::Halt,
            Steering::Resume => Command::Resume,
            Steering::Call => Command::Call,
            Steering::Uncross { reference, then_halts } => {
                self.check_auction(market)?;
                Command::Uncross { reference, then: if then_halts { Phase::Halted } else { Phase::Continuous } }
            }
            Steering::SetCollar { low, high } => Command::SetCollar { low, high },
        };
        self.run(market, &command)?;
        if let Steering::SetCollar { low, high } = *steering {
            let of = self.markets.get_mut(&market).expect("the book took the command");
            of.collar = (low, high);
            self.turns_to_call = of.book.phase() == Phase::Call;
            self.show(market, MarketEvent::Collar { low, high });
        }
        self.follow(market);
        self.leave_call(market);
        Ok(())
    }

    /// An auction trades nothing while matching pauses, and no more than bond, balance and settles bear. Only orders
    /// that reach the best one of the other side trade in it.
    fn check_auction(&self, market: MarketId) -> Result<(), OrderRefusal> {
        let of = self.markets.get(&market).ok_or(OrderRefusal::MarketNotOpen)?;
        let paused = self.core.paused.filter(|_| !self.has(VenueMistake::AuctionInPause));
        paused.map_or(Ok(()), |why| Err(OrderRefusal::Paused(why)))?;
        let pause = self.pause_for(self.auction(of, None));
        pause.map_or(Ok(()), |why| Err(OrderRefusal::Paused(why)))
    }

    /// The most that an auction adds to what is unsettled, with a side, tick and lots that may arrive.
    pub(super) fn auction(&self, of: &Market, arriving: Option<(Side, u32, u32)>) -> Added {
        let new = |side: Side| arriving.filter(|new| new.0 == side).map(|(_, tick, lots)| (tick, u64::from(lots), 1));
        let best = |side: Side| {
            let ticks = of.book.best(side).map(|(tick, _)| tick).into_iter().chain(new(side).map(|level| level.0));
            if side == Side::Buy { ticks.max() } else { ticks.min() }
        };
        let sum = |side: Side| {
            let against = best(side.other());
            let reaches = |level: &(u32, u64, u32)| against.is_some_and(|against| side.crosses(level.0, against));
            let levels = of.book.depth(side).take_while(reaches).chain(new(side).filter(reaches));
            levels.fold((0, 0), |sum, level| (sum.0 + level.1, sum.1 + u64::from(level.2)))
        };
        let ((bought, buys), (sold, sells)) = (sum(Side::Buy), sum(Side::Sell));
        let (lots, orders) = (bought.min(sold), buys + sells);
        // Each fill ends an order, but the last one ends two; and each names two.
        let fills = orders.saturating_sub(1).min(lots);
        let often = (2 * fills).saturating_sub(orders);
        self.added(penalty_of(of.terms.penalty, lots), fills, [(2 * fills).min(orders) - often, often])
    }

    /// When a call begins, orders end whose keys' price bands do not reach to the collar: the auction's price may be
    /// better than theirs, and outside of the band.
    pub(super) fn leave_call(&mut self, market: MarketId) {
        if !std::mem::take(&mut self.turns_to_call) {
            return;
        }
        let is_out = |slot: &u32| {
            let order = self.core.order(*slot);
            order.end.is_none() && check_band_in_call(self, order.key, &order.terms).is_err()
        };
        let all = self.core.orders.iter().enumerate();
        let mut slots: Vec<u32> = all
            .filter(|(_, order)| order.as_ref().is_some_and(|order| order.terms.market == market))
            .map(|(slot, _)| slot as u32)
            .collect();
        slots.retain(is_out);
        slots.into_iter().for_each(|slot| self.end(slot, OrderEnd::BandInCall));
    }

    pub(super) fn tell_pause(&mut self) {
        self.tell(VenueEffect::Pause(self.core.paused));
    }
}
