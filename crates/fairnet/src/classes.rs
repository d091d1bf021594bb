//! Which class an order, a cancel or a replace belongs to; the action window; stamps (Onyx §5.2.1).
//!
//! Every node knows from the feed at which of its sequences the mid moved, and how often: I_m. A gateway attaches to an
//! order `md_seq`, the last feed sequence that its participant was shown; from it every node derives I_m and the class.
//!
//! With mid m and action window w, an order is *critical* if its price is within [m − w, m + w]. A bid below or an ask
//! above is *other*. A bid above or an ask below is refused by the gateway.
//!
//! # Cancels and replaces (the paper is silent)
//!
//! A cancel must neither overtake its order nor fall behind it. At the order's I_m it takes the order's class; later,
//! the class of the target's price at the cancel's I_m, which nothing of the order's I_m can trail. A replace takes the
//! more urgent class of its old and its new price, and at the order's I_m the order's. Kill, mass cancel and disconnect
//! are critical; the engine then refuses that participant's orders with earlier stamps ([`KillBarrier`]). A target that
//! the gateway does not know is critical.
//!
//! # Properties
//!
//! - Class and I_m are functions of the feed and of (`md_seq`, side, price): the same at every node.
//! - Without a mid every order is critical: nothing would be gained by waiting.
//! - Through any sequence of mids, an order comes before its cancel in the order (I_m, c, t).

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::Nanos;
use crate::key::OrderClass;

/// Who wants to buy and who to sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuoteSide {
    /// A bid.
    Bid,
    /// An ask.
    Ask,
}

/// The mid at some sequence of the feed: its number and twice its price in ticks, if there is a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MidState {
    /// How often the mid moved, I_m.
    pub number: u64,
    /// Best bid plus best ask in ticks.
    pub twice: Option<u64>,
}

impl MidState {
    /// The class of a price; `None` if it lies outside the action window of `window` ticks.
    pub fn class(&self, side: QuoteSide, tick: u32, window: u32) -> Option<OrderClass> {
        let Some(twice) = self.twice else { return Some(OrderClass::Critical) };
        let (price, window) = (2 * u64::from(tick), 2 * u64::from(window));
        let (is_below, is_above) = (price.saturating_add(window) < twice, price > twice.saturating_add(window));
        match (side, is_below, is_above) {
            (_, false, false) => Some(OrderClass::Critical),
            (QuoteSide::Bid, true, _) | (QuoteSide::Ask, _, true) => Some(OrderClass::Other),
            (QuoteSide::Bid, _, _) | (QuoteSide::Ask, _, _) => None,
        }
    }
}

/// The history of one market's mid, by sequences of the feed.
#[derive(Clone, Debug)]
pub struct MidHistory {
    /// Sequences from which on a state holds, ascending.
    moves: VecDeque<(u64, MidState)>,
    most: usize,
}

impl MidHistory {
    /// No mid yet; the last `most` moves are kept.
    pub fn new(most: usize) -> MidHistory {
        MidHistory { moves: VecDeque::from([(0, MidState::default())]), most: most.max(1) }
    }

    /// The feed's packet `sequence` was seen, after which the mid is this. Packets are observed in sequence.
    pub fn observe(&mut self, sequence: u64, twice: Option<u64>) {
        let last = self.moves.back().map_or(MidState::default(), |(_, state)| *state);
        if last.twice != twice {
            self.moves.push_back((sequence, MidState { number: last.number + 1, twice }));
        }
        if self.moves.len() > self.most {
            self.moves.pop_front();
        }
    }

    /// The mid that somebody who was shown the feed up to `md_seq` knows; of a forgotten time the oldest known.
    pub fn at(&self, md_seq: u64) -> MidState {
        let after = self.moves.partition_point(|(sequence, _)| *sequence <= md_seq);
        self.moves.get(after.saturating_sub(1)).map_or(MidState::default(), |(_, state)| *state)
    }
}

/// An order that a gateway knows to be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenOrder {
    side: QuoteSide,
    tick: u32,
    /// The mid of its last order, replace or cancel, and the class that was sent in.
    mid: u64,
    class: OrderClass,
}

/// A request of a participant, as far as its class is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassRequest {
    /// A new order.
    New {
        /// The client's reference.
        reference: u32,
        /// Its side.
        side: QuoteSide,
        /// Its limit.
        tick: u32,
    },
    /// Cancels an order.
    Cancel {
        /// The target.
        reference: u32,
    },
    /// Replaces an order.
    Replace {
        /// The target.
        reference: u32,
        /// The reference from then on.
        new_reference: u32,
        /// The new limit.
        tick: u32,
    },
    /// Cancels many: kill, mass cancel, disconnect.
    Mass,
}

/// A gateway's table of one participant's open orders in one market.
#[derive(Clone, Debug)]
pub struct OrderClasses {
    window: u32,
    open: HashMap<u32, OpenOrder>,
}

impl OrderClasses {
    /// An empty table, with the market's action window in ticks.
    pub fn new(window: u32) -> OrderClasses {
        OrderClasses { window, open: HashMap::new() }
    }

    /// The class of a request made at this mid; `None` if it lies outside the action window and is refused.
    pub fn class(&mut self, mid: MidState, request: ClassRequest) -> Option<OrderClass> {
        match request {
            ClassRequest::New { reference, side, tick } => {
                let class = mid.class(side, tick, self.window)?;
                self.open.insert(reference, OpenOrder { side, tick, mid: mid.number, class });
                Some(class)
            }
            ClassRequest::Cancel { reference } => Some(self.cancel(mid, reference)),
            ClassRequest::Replace { reference, new_reference, tick } => {
                self.replace(mid, reference, new_reference, tick)
            }
            ClassRequest::Mass => Some(OrderClass::Critical),
        }
    }

    /// The engine said that an order ended.
    pub fn ended(&mut self, reference: u32) {
        self.open.remove(&reference);
    }

    /// Of a price that has left the action window since: it trades at once, so it is critical.
    fn present(&self, mid: MidState, order: &OpenOrder) -> OrderClass {
        if mid.number == order.mid {
            return order.class;
        }
        mid.class(order.side, order.tick, self.window).unwrap_or(OrderClass::Critical)
    }

    fn cancel(&mut self, mid: MidState, reference: u32) -> OrderClass {
        let Some(order) = self.open.get(&reference).copied() else { return OrderClass::Critical };
        let class = self.present(mid, &order);
        self.open.insert(reference, OpenOrder { mid: mid.number, class, ..order });
        class
    }

    fn replace(&mut self, mid: MidState, reference: u32, new_reference: u32, tick: u32) -> Option<OrderClass> {
        let Some(order) = self.open.get(&reference).copied() else { return Some(OrderClass::Critical) };
        let (old, new) = (self.present(mid, &order), mid.class(order.side, tick, self.window)?);
        let class = if mid.number == order.mid { old } else { old.min(new) };
        self.open.remove(&reference);
        self.open.insert(new_reference, OpenOrder { side: order.side, tick, mid: mid.number, class });
        Some(class)
    }
}

/// The engine's memory of kills: orders stamped before the kill of their participant are refused.
#[derive(Clone, Debug, Default)]
pub struct KillBarrier(BTreeMap<u64, Nanos>);

impl KillBarrier {
    /// A participant's kill, mass cancel or disconnect was made at this time.
    pub fn raise(&mut self, participant: u64, stamp: Nanos) {
        let at = self.0.entry(participant).or_default();
        *at = stamp.max(*at);
    }

    /// Whether an order of this stamp comes too late.
    pub fn refuses(&self, participant: u64, stamp: Nanos) -> bool {
        self.0.get(&participant).is_some_and(|at| stamp < *at)
    }

    /// All streams' watermarks have passed this time: older kills are forgotten.
    pub fn forget(&mut self, passed: Nanos) {
        self.0.retain(|_, at| *at > passed);
    }
}

/// A gateway's stamps: strictly ascending, and never below the deadline of the last packet that was shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamps {
    last: Nanos,
    floor: Nanos,
}

impl Stamps {
    /// A packet was shown at its deadline: whoever reacts to it acts later.
    pub fn shown(&mut self, deadline: Nanos) {
        self.floor = self.floor.max(deadline);
    }

    /// The stamp of an order that is made at this time.
    pub fn next(&mut self, now: Nanos) -> Nanos {
        self.last = now.max(self.floor).max(self.last.saturating_add(1));
        self.last
    }

    /// Promises that no later stamp is below this, whenever an order counts as made.
    pub fn promise(&mut self, now: Nanos) -> Nanos {
        self.floor = now.max(self.floor).max(self.last.saturating_add(1));
        self.floor
    }
}
