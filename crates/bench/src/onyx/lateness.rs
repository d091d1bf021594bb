//! Lateness of orders behind a limit order queue: the same orders with the same stamps, through the matching engine in
//! the order of the queue and in that of its FIFO twin (§6.4, appendix N).
//!
//! The mid is that of the twin's book, told to participants by each message of the feed. A participant that lost a
//! message knows the mid of the last one that it received, and its orders carry that number.

use ::matching::{Book, BookEvent, BookLimits, Command, NewOrder, SelfTrade, Side, TimeInForce};
use fairnet::sim::Spread;
use fairnet::{Loq, MergeKey, MidHistory, OrderClass, QueuePolicy, QuoteSide, Sequenced, lateness};
use kernel::Xoshiro;

use crate::paper::chart::{Chart, PERCENTILES, distribution, percentiles};
use crate::paper::exhibit::PaperOptions;

/// One experiment.
#[derive(Clone, Copy)]
struct Market {
    participants: u32,
    /// Orders of each participant in a second.
    rate: u32,
    /// Thousandths of a second.
    millis: u32,
    /// Share of messages that are lost, and the participants that lose any.
    loss: f64,
    losing: u32,
}

/// Messages of the feed in a second.
const MESSAGES: u64 = 5_000;
const SECOND: u64 = 1_000_000_000;
/// The action window, and how far from the mid orders are made, in ticks.
const WINDOW: u32 = 2;
const REACH: u32 = 12;
const MIDDLE: u32 = 30_000;

fn book(orders: u32) -> Book {
    let limits = BookLimits { orders, owners: 2, orders_of_owner: orders, ..BookLimits::default() };
    Book::new(BookLimits { window_base: MIDDLE - 2_048, window_ticks: 4_096, ..limits }, 1).expect("possible limits")
}

/// Applies an order; its number is appended to `matched` when it trades for the first time, as are its makers'.
struct Engine {
    book: Book,
    has_traded: Vec<bool>,
    matched: Vec<u32>,
    events: Vec<BookEvent>,
}

impl Engine {
    fn new(orders: u32) -> Engine {
        Engine { book: book(orders), has_traded: Vec::new(), matched: Vec::new(), events: Vec::new() }
    }

    fn apply(&mut self, number: u32, side: Side, tick: u32) {
        let new = NewOrder {
            // All who buy are one owner and all who sell another, so nobody meets himself.
            owner: side as u32,
            reference: number,
            side,
            tick,
            lots: 1,
            time_in_force: TimeInForce::GoodTillCancelled,
            post_only: false,
            self_trade: SelfTrade::ExpireTaker,
        };
        self.book.apply(&Command::New(new), &mut self.events);
        self.has_traded.resize(self.has_traded.len().max(number as usize + 1), false);
        for event in self.events.drain(..) {
            let BookEvent::Executed { maker, taker, .. } = event else { continue };
            for party in [taker.reference, maker.reference] {
                if !std::mem::replace(&mut self.has_traded[party as usize], true) {
                    self.matched.push(party);
                }
            }
        }
    }

    /// Best bid plus best ask.
    fn twice_mid(&self) -> Option<u64> {
        let best = |side: Side| self.book.depth(side).next().map(|level| u64::from(level.0));
        Some(best(Side::Buy)? + best(Side::Sell)?)
    }
}

/// An order as it was made.
struct Made {
    stamp: u64,
    participant: u32,
    side: Side,
    tick: u32,
    mid: u64,
    class: OrderClass,
}

/// The same stamps whatever the loss: the orders' stamps and sides come from one generator, losses from another.
fn run(market: &Market, seed: u64) -> Spread {
    let per_message = u64::from(market.participants) * u64::from(market.rate) / MESSAGES;
    let (mut stamps, mut losses) = (Xoshiro::new(seed), Xoshiro::new(seed ^ 0x1055));
    let messages = u64::from(market.millis) * MESSAGES / 1_000;
    let mut twin = Engine::new((messages * per_message) as u32);
    let mut mids = MidHistory::new(usize::MAX);
    let mut known = vec![0u64; market.participants as usize];
    let mut made = Vec::new();
    for message in 1..=messages {
        mids.observe(message, twin.twice_mid());
        for (participant, known) in known.iter_mut().enumerate() {
            let is_lost = (participant as u32) < market.losing && losses.happens(market.loss);
            *known = if is_lost { *known } else { message };
        }
        let begin = message * SECOND / MESSAGES;
        let mut times: Vec<u64> = (0..per_message).map(|_| begin + stamps.bits() % (SECOND / MESSAGES)).collect();
        times.sort_unstable();
        for stamp in times {
            let order = make(stamp, market, &known, &mids, &mut stamps);
            twin.apply(made.len() as u32, order.side, order.tick);
            made.push(order);
        }
    }
    let queued = requeued(&made);
    let distances = lateness(&twin.matched, &queued);
    Spread::new(distances.into_iter().map(|distance| distance as f64).collect())
}

fn make(stamp: u64, market: &Market, known: &[u64], mids: &MidHistory, dice: &mut Xoshiro) -> Made {
    let participant = (dice.bits() % u64::from(market.participants)) as u32;
    let (side, away) = (dice.bits() & 1, (dice.bits() % u64::from(REACH + WINDOW)) as u32);
    let mid = mids.at(known[participant as usize]);
    let middle = mid.twice.map_or(MIDDLE, |twice| (twice / 2) as u32);
    let (side, quote, tick) = match side {
        0 => (Side::Buy, QuoteSide::Bid, middle + WINDOW - away),
        _ => (Side::Sell, QuoteSide::Ask, middle - WINDOW + away + 1),
    };
    // Half a tick of the mid is lost above, so the window is taken a tick wider.
    let class = mid.class(quote, tick, WINDOW + 1).unwrap_or(OrderClass::Critical);
    Made { stamp, participant, side, tick, mid: mid.number, class }
}

/// What trades when the engine gets the orders in the order of the limit order queue.
fn requeued(made: &[Made]) -> Vec<u32> {
    let mut queue = Loq::new(QueuePolicy::ByClass);
    for (number, order) in made.iter().enumerate() {
        let key = MergeKey { mid: order.mid, stamp: order.stamp, source: order.participant, sub: number as u32 };
        queue.push(Sequenced { class: order.class, key, restamped: None, item: number as u32 });
    }
    let mut engine = Engine::new(made.len() as u32);
    while let Some(next) = queue.pop() {
        let order = &made[next.item as usize];
        engine.apply(next.item, order.side, order.tick);
    }
    engine.matched
}

fn chart(markets: &[(String, Market)], options: &PaperOptions) -> Chart {
    let method = "exact: the same orders in stamp order and in the order of a limit order queue, through the \
                  matching engine; places in the sequence of orders that trade. Lateness without any loss is what \
                  the queue alone changes";
    let axes = ("lateness", "share");
    let mut chart = Chart { method: method.into(), columns: PERCENTILES.to_vec(), axes, ..Chart::default() };
    for (name, market) in markets {
        let spread = run(market, options.seed);
        chart.table.push(percentiles(name, &spread));
        chart.series.push(distribution(name, &spread));
    }
    chart
}

fn by_loss(participants: u32, rate: u32, options: &PaperOptions) -> Chart {
    // A million orders, or as many as ten seconds have.
    let millis = options.of((1_000_000_000 / (participants * rate)).min(10_000));
    let losses = [0.0, 0.005, 0.05, 0.1, 1.0];
    let market = |percent: f64| {
        let market = Market { participants, rate, millis, loss: percent / 100.0, losing: participants };
        (format!("{percent} % lost"), market)
    };
    chart(&losses.map(market), options)
}

pub(crate) fn figure_13(options: &PaperOptions) -> Chart {
    by_loss(100, 5_000, options)
}

pub(crate) fn figure_25(options: &PaperOptions) -> Chart {
    by_loss(10, 10_000, options)
}

pub(crate) fn figure_26(options: &PaperOptions) -> Chart {
    by_loss(100, 10_000, options)
}

/// Ten participants, of which some lose messages; beside them what it is when all do. So few orders a message seldom
/// meet a stale mid, so that losses go on to a tenth; the text of the paper states none.
fn of_some(losing: u32, options: &PaperOptions) -> Chart {
    let market = |percent: f64, losing: u32| Market {
        participants: 10,
        rate: 1_000,
        millis: options.of(10_000).max(4_000),
        loss: percent / 100.0,
        losing,
    };
    let by_loss = [0.0, 1.0, 5.0, 10.0].map(|percent| (format!("{percent} % lost"), market(percent, losing)));
    let of_all = (losing < 10).then(|| ("10 % lost by all".into(), market(10.0, 10)));
    chart(&by_loss.into_iter().chain(of_all).collect::<Vec<_>>(), options)
}

pub(crate) fn figure_27(options: &PaperOptions) -> Chart {
    of_some(1, options)
}

pub(crate) fn figure_28(options: &PaperOptions) -> Chart {
    of_some(2, options)
}

pub(crate) fn figure_29(options: &PaperOptions) -> Chart {
    of_some(5, options)
}

pub(crate) fn figure_30(options: &PaperOptions) -> Chart {
    of_some(10, options)
}
