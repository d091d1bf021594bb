//! The levels of one side: queues of orders by tick, and which tick is best.

use crate::Side;
use crate::bitmap::Bitmap;
use crate::orders::Orders;
use crate::treap::{NONE, Treap};

/// The orders at one tick, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) orders: u32,
    pub(crate) tick: u32,
    pub(crate) lots: u64,
}

const EMPTY: Level = Level { first: NONE, last: NONE, orders: 0, tick: 0, lots: 0 };

/// One side. Levels `0..window` are those of the window's ticks, the others are nodes of the treap.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    side: Side,
    base: u32,
    window: u32,
    levels: Vec<Level>,
    inside: Bitmap,
    outside: Treap,
    /// The level of the best tick, or `NONE`.
    best: u32,
}

impl Ladder {
    /// A side whose window has `window` ticks from `base` on, for so many orders.
    pub(crate) fn new(side: Side, base: u32, window: u32, orders: u32, seed: u64) -> Ladder {
        Ladder {
            side,
            base,
            window,
            levels: vec![EMPTY; window as usize + orders as usize],
            inside: Bitmap::new(window as usize),
            outside: Treap::new(orders as usize, seed),
            best: NONE,
        }
    }

    #[inline]
    pub(crate) fn best(&self) -> Option<&Level> {
        self.levels.get(self.best as usize)
    }

    fn is_better(&self, tick: u32, than: u32) -> bool {
        match self.side {
            Side::Buy => tick > than,
            Side::Sell => tick < than,
        }
    }

    /// Where in the window a tick is.
    #[inline]
    fn place(&self, tick: u32) -> Option<u32> {
        tick.checked_sub(self.base).filter(|place| *place < self.window)
    }

    fn found(&self, tick: u32) -> Option<u32> {
        match self.place(tick) {
            Some(place) => (self.levels[place as usize].orders > 0).then_some(place),
            None => self.outside.get(tick).map(|node| self.window + node),
        }
    }

    /// The level at a tick, if orders rest there.
    pub(crate) fn at(&self, tick: u32) -> Option<&Level> {
        self.found(tick).map(|level| &self.levels[level as usize])
    }

    /// The lowest level whose tick is at least `tick`.
    pub(crate) fn at_or_above(&self, tick: u32) -> Option<&Level> {
        let from = tick.saturating_sub(self.base);
        let place = self.inside.at_or_above(from as usize).map(|place| place as u32);
        let outside = self.outside.at_or_above(tick).map(|(_, node)| self.window + node);
        self.nearer(place, outside, |one, two| one.tick < two.tick)
    }

    /// The highest level whose tick is at most `tick`.
    pub(crate) fn at_or_below(&self, tick: u32) -> Option<&Level> {
        let from = tick.checked_sub(self.base);
        let place = from.and_then(|from| self.inside.at_or_below(from as usize)).map(|place| place as u32);
        let outside = self.outside.at_or_below(tick).map(|(_, node)| self.window + node);
        self.nearer(place, outside, |one, two| one.tick > two.tick)
    }

    fn nearer(&self, one: Option<u32>, two: Option<u32>, is_first: impl Fn(&Level, &Level) -> bool) -> Option<&Level> {
        let level = |at: u32| &self.levels[at as usize];
        match (one.map(level), two.map(level)) {
            (Some(one), Some(two)) => Some(if is_first(one, two) { one } else { two }),
            (one, two) => one.or(two),
        }
    }

    /// The next level behind a tick, in the order in which they trade.
    pub(crate) fn behind(&self, tick: u32) -> Option<&Level> {
        match self.side {
            Side::Buy => tick.checked_sub(1).and_then(|tick| self.at_or_below(tick)),
            Side::Sell => self.at_or_above(tick + 1),
        }
    }

    /// Appends an order to the queue of its tick.
    pub(crate) fn push(&mut self, orders: &mut Orders, slot: u32) {
        let (tick, lots) = (orders.at(slot).tick, orders.at(slot).lots);
        let at = match self.found(tick) {
            Some(at) => at,
            None => self.open(tick),
        };
        let level = &mut self.levels[at as usize];
        let last = std::mem::replace(&mut level.last, slot);
        level.orders += 1;
        level.lots += u64::from(lots);
        match last {
            NONE => level.first = slot,
            last => orders.at_mut(last).next = slot,
        }
        let order = orders.at_mut(slot);
        (order.previous, order.next, order.level) = (last, NONE, at);
    }

    fn open(&mut self, tick: u32) -> u32 {
        let at = match self.place(tick) {
            Some(place) => {
                self.inside.insert(place as usize);
                place
            }
            None => self.window + self.outside.insert(tick),
        };
        self.levels[at as usize] = Level { tick, ..EMPTY };
        if self.best().is_none_or(|best| self.is_better(tick, best.tick)) {
            self.best = at;
        }
        at
    }

    /// Removes an order from its queue.
    pub(crate) fn remove(&mut self, orders: &mut Orders, slot: u32) {
        let order = *orders.at(slot);
        let level = &mut self.levels[order.level as usize];
        level.orders -= 1;
        level.lots -= u64::from(order.lots);
        match order.previous {
            NONE => level.first = order.next,
            previous => orders.at_mut(previous).next = order.next,
        }
        match order.next {
            NONE => level.last = order.previous,
            next => orders.at_mut(next).previous = order.previous,
        }
        if level.orders == 0 {
            self.close(order.level, order.tick);
        }
    }

    fn close(&mut self, at: u32, tick: u32) {
        match at < self.window {
            true => self.inside.remove(at as usize),
            false => self.outside.remove(tick),
        }
        if self.best == at {
            let next = self.behind(tick).map(|level| level.tick);
            self.best = next.and_then(|tick| self.found(tick)).unwrap_or(NONE);
        }
    }

    /// Takes lots off a level: an order of it traded in part, or was made smaller.
    #[inline]
    pub(crate) fn reduce(&mut self, level: u32, lots: u32) {
        self.levels[level as usize].lots -= u64::from(lots);
    }

    /// The levels, best first.
    pub(crate) fn levels(&self) -> impl Iterator<Item = &Level> {
        std::iter::successors(self.best(), |level| self.behind(level.tick))
    }
}
