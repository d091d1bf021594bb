//! The state machine of a root: inputs in, what follows from them out. It knows no disk, no clock and no key.

mod ahead;
mod audit;
mod backlog;
mod books;
mod check;
mod cover;
mod ending;
mod entry;
mod holders;
mod learn;
mod matched;
mod outbox;
mod places;
mod sessions;
mod snapshot;
mod sparing;

use std::collections::BTreeMap;

use kernel::Planted;
use matching::{Book, BookEvent, Side};
use primitives::venue::{MarketId, MarketTerms, OrderNumber, STEP_REPORTS_RULES, SignedStep, VenueOrder, VenueSide};
use primitives::{Body, PublicKey};

use crate::checked::CheckedOrderList;
use crate::input::{SessionNumber, TradeCommand, VenueInput};
use crate::mistake::VenueMistake;
use crate::refusal::{OrderRefusal, VenueStop};
use crate::report::{
    MarketEvent, MarketImage, OrderStanding, ReportKind, RestingOrder, TradeReport, VenueEffect, VenueFill,
};
use crate::settings::{MarketSettings, VenueSettings};
use crate::state::{Core, Remembered};
use ahead::{LOOK_AHEAD, look_ahead};
pub(crate) use audit::audit;
use learn::learn;
use outbox::{operate, settle};
use sessions::{attach, detach, fire_timers, heard, heard_for};
pub(crate) use snapshot::{digest, encode, restored};

/// A market that is open here.
#[derive(Clone, Debug)]
pub(crate) struct Market {
    pub settings: MarketSettings,
    pub terms: MarketTerms,
    /// The lowest and the highest tick at which trades may take place.
    pub collar: (u32, u32),
    /// Events that readers of market data were told.
    pub told: u64,
    pub book: Book,
}

/// What a step made, before anything is signed.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    Effect(VenueEffect),
    /// A side of one of the step's fills is to be told.
    Executed(usize, VenueSide),
    /// A settle is to be submitted.
    Submit(Body),
}

pub(crate) struct VenueMachine {
    pub(crate) core: Core,
    markets: BTreeMap<MarketId, Market>,
    seed: u64,
    mistake: Planted<VenueMistake>,
    /// What the present step made.
    pub(crate) made: Vec<Made>,
    pub(crate) fills: Vec<VenueFill>,
    /// The settle that it cut.
    pub(crate) cut: Option<Body>,
    /// Events of a book; empty between commands.
    events: Vec<BookEvent>,
    /// Whether a call began, or its collar changed, since orders were last compared with it.
    turns_to_call: bool,
    /// Whether the step brought a certified block.
    has_learnt: bool,
}

impl VenueMachine {
    pub(crate) fn new(settings: VenueSettings, seed: u64, mistake: Planted<VenueMistake>) -> VenueMachine {
        VenueMachine::of(Core::new(settings), BTreeMap::new(), seed, mistake)
    }

    fn of(core: Core, markets: BTreeMap<MarketId, Market>, seed: u64, mistake: Planted<VenueMistake>) -> VenueMachine {
        let (made, fills, events) = (Vec::new(), Vec::new(), Vec::new());
        let (cut, turns_to_call, has_learnt) = (None, false, false);
        VenueMachine { core, markets, seed, mistake, made, fills, cut, events, turns_to_call, has_learnt }
    }

    /// Takes inputs at a time of the host's clock; what follows is in `made`, `fills` and `cut`.
    pub(crate) fn step(&mut self, clock_ms: u64, inputs: &[VenueInput]) {
        self.made.clear();
        self.fills.clear();
        (self.cut, self.has_learnt) = (None, false);
        self.core.pass_time(clock_ms);
        fire_timers(self);
        self.look_for_pause();
        for inputs in inputs.chunks(LOOK_AHEAD) {
            look_ahead(self, inputs);
            inputs.iter().for_each(|input| self.take(input));
        }
        settle(self);
        self.core.effects += self.made.len() as u64;
    }

    fn take(&mut self, input: &VenueInput) {
        match input {
            VenueInput::Trade(session, command) => self.trade(*session, command),
            VenueInput::List(session, list) => self.take_list(*session, list),
            VenueInput::Attach { session, keys, ends_orders, dead_man_ms } => {
                attach(self, *session, keys, *ends_orders, *dead_man_ms);
            }
            VenueInput::Detach(session) => detach(self, *session),
            VenueInput::Heartbeat(session) => drop(heard(self, *session)),
            VenueInput::Certified(facts) => {
                learn(self, facts);
                self.look_for_pause();
            }
            VenueInput::Tick => {}
            VenueInput::Operate(operator) => {
                operate(self, *operator);
                self.look_for_pause();
            }
            VenueInput::Opened => {
                // What was learnt before may be long ago, whatever the clock says.
                if !self.has(VenueMistake::OpensOnOldBlocks) {
                    self.core.heard_ms = None;
                }
                self.look_for_pause();
            }
            VenueInput::OpenMarket(market, settings) => {
                if let Err(why) = self.open_market(*market, settings) {
                    self.tell(VenueEffect::Refused(*market, why));
                }
            }
            VenueInput::Steer(market, steering) => {
                if let Err(why) = self.steer(*market, steering) {
                    self.tell(VenueEffect::Refused(*market, why));
                }
            }
            VenueInput::Kill(account) => self.set_killed(account, true),
            VenueInput::Revive(account) => self.set_killed(account, false),
        }
    }

    fn trade(&mut self, session: SessionNumber, command: &TradeCommand) {
        let (key, number) = match command {
            TradeCommand::New(order) | TradeCommand::Replace(_, order) => (*order.key(), order.order().number),
            TradeCommand::Cancel { key, number, .. } | TradeCommand::Status(key, number) => (*key, *number),
            TradeCommand::CancelAll { key, .. } => (*key, self.first_number()),
        };
        let at = match heard_for(self, session, &key) {
            Ok(at) => at,
            Err(why) => return self.report(session, key, number, ReportKind::Refused(why)),
        };
        match *command {
            TradeCommand::New(order) => self.place(session, at, &(&order).into(), None),
            TradeCommand::Replace(old, order) => self.place(session, at, &(&order).into(), Some(old)),
            TradeCommand::Cancel { keeps, .. } => self.cancel(session, at, number, keeps),
            TradeCommand::CancelAll { market, side, .. } => self.cancel_all(session, at, market, side),
            TradeCommand::Status(..) => {
                let standing = self.standing(&key, &number);
                self.report(session, key, number, ReportKind::Status(standing));
            }
        }
    }

    /// Each order of a list is taken or refused alone.
    fn take_list(&mut self, session: SessionNumber, list: &CheckedOrderList) {
        let heard = heard_for(self, session, list.key());
        let at = heard.and_then(|at| if self.takes_lists() { Ok(at) } else { Err(OrderRefusal::ListsToCome) });
        for (order, replaces) in list.arriving() {
            match at {
                Ok(at) => self.place(session, at, &order, replaces),
                Err(why) => self.report(session, order.key, order.order.number, ReportKind::Refused(why)),
            }
        }
    }

    /// How an order stands.
    pub(crate) fn standing(&self, key: &PublicKey, number: &OrderNumber) -> Option<OrderStanding> {
        let at = *self.core.key_of.get(key)?;
        Some(match self.core.key(at).numbers.get(number)? {
            Remembered::Taken(slot) => self.core.order(*slot).standing(),
            Remembered::Refused(of) => OrderStanding::Refused(of.1),
            Remembered::Overtaken => OrderStanding::Overtaken,
        })
    }

    pub(crate) fn order(&self, key: &PublicKey, number: &OrderNumber) -> Option<&VenueOrder> {
        let &Remembered::Taken(slot) = self.core.key(*self.core.key_of.get(key)?).numbers.get(number)? else {
            return None;
        };
        Some(&self.core.order(slot).terms)
    }

    pub(crate) fn open_markets(&self) -> impl Iterator<Item = MarketId> {
        self.markets.keys().copied()
    }

    pub(crate) fn book(&self, market: MarketId) -> Option<&Book> {
        self.markets.get(&market).map(|market| &market.book)
    }

    /// The number of the last event of a market that was told.
    pub(crate) fn told(&self, market: MarketId) -> Option<u64> {
        self.markets.get(&market).map(|of| of.told)
    }

    pub(crate) fn market_settings(&self, market: MarketId) -> Option<&MarketSettings> {
        self.markets.get(&market).map(|market| &market.settings)
    }

    /// A market as readers of market data know it.
    pub(crate) fn image(&self, market: MarketId) -> Option<MarketImage> {
        let of = self.markets.get(&market)?;
        let sides = [(VenueSide::Buy, matching::Side::Buy), (VenueSide::Sell, matching::Side::Sell)];
        let resting = |(party, tick, lots): (matching::Party, u32, u32), side| {
            let id = self.core.order(party.reference).id;
            RestingOrder { id, side, tick, lots }
        };
        let orders = sides.into_iter().flat_map(|(side, book)| of.book.resting(book).map(move |at| resting(at, side)));
        Some(MarketImage { included: of.told, phase: of.book.phase(), orders: orders.collect() })
    }

    /// Where an open order stands in its queue.
    pub(crate) fn position(&self, key: &PublicKey, number: &OrderNumber) -> Option<matching::Position> {
        let at = *self.core.key_of.get(key)?;
        let &Remembered::Taken(slot) = self.core.key(at).numbers.get(number)? else { return None };
        let owner = self.core.owner_of(at).owner?;
        self.book(self.core.order(slot).terms.market)?.position(owner, slot)
    }

    /// The clock under which one signature holds for all reports of the last step; `None` if each has its own.
    pub(crate) fn step_clock(&self) -> Option<u64> {
        let is_signed = self.core.rules >= STEP_REPORTS_RULES && SignedStep::holds(2 * self.fills.len());
        is_signed.then_some(self.core.clock_ms)
    }

    fn first_number(&self) -> OrderNumber {
        OrderNumber { incarnation: self.core.settings.incarnation, day: 0, reference: 0 }
    }

    fn has(&self, mistake: VenueMistake) -> bool {
        self.mistake.is(mistake)
    }

    fn tell(&mut self, effect: VenueEffect) {
        self.made.push(Made::Effect(effect));
    }

    fn report(&mut self, session: SessionNumber, key: PublicKey, number: OrderNumber, what: ReportKind) {
        self.tell(VenueEffect::Report(TradeReport { session, key, number, what }));
    }

    /// Reports about an order to the session that placed it.
    fn report_order(&mut self, slot: u32, what: ReportKind) {
        let order = self.core.order(slot);
        let (session, key, number) = (order.session, self.core.public_of(order), order.terms.number);
        self.report(session, key, number, what);
    }

    fn show(&mut self, market: MarketId, event: MarketEvent) {
        let of = self.markets.get_mut(&market).expect("an open market");
        of.told += 1;
        let number = of.told;
        self.tell(VenueEffect::Market(market, number, event));
    }

    /// The terms and settings of the market of an order, which is open.
    fn market_of(&self, slot: u32) -> &Market {
        &self.markets[&self.core.order(slot).terms.market]
    }

    /// Stops for ever: orders end, and nothing is matched, reported or settled any more.
    fn stop(&mut self, why: VenueStop) {
        if self.core.stopped.is_some() {
            return;
        }
        self.core.stopped = Some(why);
        self.tell(VenueEffect::Stopped(why));
        self.end_everything();
        if why == VenueStop::Fenced {
            self.bust_the_rest();
        }
    }

    /// The answer to orders while the root has stopped.
    fn check_runs(&self) -> Result<(), OrderRefusal> {
        self.core.stopped.map_or(Ok(()), |why| Err(OrderRefusal::Stopped(why)))
    }
}

fn book_side(side: VenueSide) -> Side {
    if side == VenueSide::Buy { Side::Buy } else { Side::Sell }
}
