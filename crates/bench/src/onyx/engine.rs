//! The matching engine behind every design of the way in: quotes go in, and when each traded first comes out.

use ::matching::{Book, BookEvent, BookLimits, Command, NewOrder, SelfTrade, Side, TimeInForce};
use fairnet::Nanos;
use kernel::Xoshiro;

/// An order of one lot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quote {
    pub side: Side,
    pub tick: u32,
    pub stamp: Nanos,
    pub number: u32,
}

/// A book, and what traded in it.
pub(super) struct Engine {
    book: Book,
    /// By number: the stamp of each order that has not traded.
    waiting: Vec<Option<Nanos>>,
    /// Stamp and time of each order that traded.
    pub traded: Vec<(Nanos, Nanos)>,
}

impl Engine {
    pub fn new() -> Engine {
        let limits = BookLimits { orders: 1 << 22, owners: 2, orders_of_owner: 1 << 22, ..BookLimits::default() };
        let book = Book::new(BookLimits { window_base: 1, window_ticks: 4_096, ..limits }, 1).expect("possible limits");
        Engine { book, waiting: Vec::new(), traded: Vec::new() }
    }

    /// An order that is made now: bids from the lower of `all` levels, asks from the upper ones. Those of the
    /// `overlap` levels that both have trade at once: whether it is one of them.
    pub fn quote(&mut self, stamp: Nanos, (overlap, all): (u32, u32), dice: &mut Xoshiro) -> (Quote, bool) {
        let (each, bits) = ((all + overlap) / 2, dice.bits());
        let level = (dice.bits() % u64::from(each)) as u32;
        let first = all - each;
        let (side, tick) = if bits & 1 == 0 { (Side::Buy, level) } else { (Side::Sell, first + level) };
        let number = self.waiting.len() as u32;
        self.waiting.push(Some(stamp));
        (Quote { side, tick: tick + 1, stamp, number }, (first..each).contains(&tick))
    }

    pub fn execute(&mut self, now: Nanos, quote: Quote) {
        let new = NewOrder {
            owner: quote.side as u32,
            reference: quote.number,
            side: quote.side,
            tick: quote.tick,
            lots: 1,
            time_in_force: TimeInForce::GoodTillCancelled,
            post_only: false,
            self_trade: SelfTrade::ExpireTaker,
        };
        let mut events: Vec<BookEvent> = Vec::new();
        self.book.apply(&Command::New(new), &mut events);
        for event in events {
            let BookEvent::Executed { maker, taker, .. } = event else { continue };
            for number in [maker.reference, taker.reference] {
                let stamp = self.waiting[number as usize].take();
                self.traded.extend(stamp.map(|stamp| (stamp, now)));
            }
        }
        debug_assert!(quote.stamp <= now);
    }
}
