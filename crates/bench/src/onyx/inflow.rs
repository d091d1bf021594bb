//! Orders of 100 participants on their way to one engine, by four designs: Onyx, its parts switched off, and CloudEx
//! and DBO rebuilt from their descriptions (§2, §6.4, §6.6, appendix P).
//!
//! All designs get the same orders and run over the same connections into machines of the same ingress ([`Ingress`]),
//! in front of the same engine.
//!
//! | design | way | what the exchange does |
//! |---|---|---|
//! | Onyx | ten proxies, each a hop with a queue by class | the root's hop: watermarks |
//! | SimplePQ | the same with queues by stamp | the same |
//! | CloudEx | direct | keeps each order until a fixed time after its stamp; what comes later goes at once |
//! | DBO | direct | orders by (last market data, response time), once every participant has passed |
//! | arrival | direct or tree | no sequencer, no queue by class |

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fairnet::sim::Spread;
use fairnet::{
    Hop, HopEffect, HopInput, MergeInput, MergeKey, MergeRules, Nanos, OrderClass, Pace, PaceEffect, PaceInput,
    PaceRules, QueuePolicy, Sequenced, Stamps,
};
use kernel::Xoshiro;

use super::engine::{Engine, Quote};
use super::incast::Ingress;

/// One step of the simulation.
const STEP: Nanos = 20_000;
const GATEWAYS: usize = 100;
const PROXIES: usize = 10;
/// Orders of all gateways in a second without a burst, and how many times as many in one.
const RATE: f64 = 100_000.0;
const FACTOR: f64 = 20.0;
/// Orders that the engine takes, and packets that a machine receives, in a second.
const ENGINE: f64 = 800_000.0;
const RECEIVED: f64 = 1_000_000.0;
/// The part of what the exchange receives that is given out in shares: lost packets come again in the rest.
const PACED: f64 = 0.95;
/// Orders that the root takes of a proxy ahead of need.
const CREDIT: u64 = 64;
/// Time without an order after which a gateway promises instead.
const PROMISE: Nanos = 200_000;
/// Market data of DBO: a message each 200 µs, sent to one participant after the other.
const MESSAGE: Nanos = 200_000;
const FIRST_DELIVERY: Nanos = 30_000;
const COPY: Nanos = 3_200;

/// How the exchange orders what it gets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sequencing {
    /// As it comes.
    Arrival,
    /// By stamps and watermarks, through hops.
    Watermarks(QueuePolicy, MergeRules),
    /// By stamps, this long after them.
    Timeout(Nanos),
    /// By response times and watermarks.
    Responses,
}

/// The paces of gateways that share what the exchange receives, slots spread among them.
fn paces<T>() -> Vec<Pace<T>> {
    let interval = (GATEWAYS as f64 * 1e9 / (RECEIVED * PACED)) as Nanos;
    let rules = PaceRules { interval, burst: 1, waiting: usize::MAX, mistake: Default::default() };
    let pace = |number: usize| {
        let mut pace = Pace::new(rules);
        pace.place(interval * number as Nanos / GATEWAYS as Nanos);
        pace
    };
    (0..GATEWAYS).map(pace).collect()
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inflow {
    /// Whether gateways send no faster than their shares of what the exchange receives.
    pub is_paced: bool,
    pub is_tree: bool,
    pub sequencing: Sequencing,
    /// Levels that trade, levels in all: both odd.
    pub levels: (u32, u32),
    /// A burst of a fifth of it is in each period.
    pub period: Nanos,
    pub periods: u64,
}

impl Inflow {
    /// The end of the last order.
    pub fn end(&self) -> Nanos {
        self.period * self.periods
    }

    /// The last fifth of each period.
    pub fn is_burst(&self, at: Nanos) -> bool {
        at < self.end() && at % self.period >= self.period / 5 * 4
    }
}

/// What came of it.
pub(super) struct Arrived {
    /// Stamp and time of each order that traded.
    pub traded: Vec<(Nanos, Nanos)>,
    /// When each order came to the exchange.
    pub received: Vec<Nanos>,
    /// Orders of lower stamps than one that the engine had got before.
    pub overtaken: u64,
    pub dropped: u64,
    pub made: u64,
}

/// What a packet carries.
#[derive(Clone)]
enum Note {
    Order(Sequenced<Quote>),
    Promise([MergeKey; 2]),
}

/// The exchange's side.
enum Exchange {
    Arrival(VecDeque<Sequenced<Quote>>),
    Hop(Box<Hop<Quote>>),
    /// Wait, and what waits.
    Timeout(Nanos, BinaryHeap<Reverse<(Nanos, u32)>>, Vec<Option<Quote>>),
}

/// Never gives a stream up, as the paper's sequencer and DBO's.
pub(super) const PATIENT: MergeRules = MergeRules {
    max_wait: u64::MAX,
    short_wait: u64::MAX,
    patience: u64::MAX / 2,
    refill_per_mille: 0,
    probation: 1_000_000_000,
};

struct World {
    inflow: Inflow,
    dice: Xoshiro,
    engine: Engine,
    stamps: Vec<Stamps>,
    /// Of each gateway; none if they are not paced.
    paces: Vec<Pace<(OrderClass, Quote)>>,
    /// When each gateway said something.
    spoken: Vec<Nanos>,
    root: Ingress<Note>,
    exchange: Exchange,
    proxies: Vec<(Ingress<Note>, Option<Hop<Quote>>)>,
    /// Orders that each proxy may still send.
    granted: Vec<u64>,
    tokens: f64,
    last: Nanos,
    found: Arrived,
}

fn joined(children: usize, policy: QueuePolicy, rules: MergeRules) -> Hop<Quote> {
    let mut hop = Hop::new(0, children, rules, policy);
    (0..children as u32).for_each(|child| hop.step(0, HopInput::Child(MergeInput::Join(child)), &mut Vec::new()));
    hop
}

pub(super) fn run(inflow: &Inflow, seed: u64) -> Arrived {
    World::new(*inflow, seed).run()
}

impl World {
    fn new(inflow: Inflow, seed: u64) -> World {
        let streams = if inflow.is_tree { PROXIES } else { GATEWAYS };
        let rate = RECEIVED * STEP as f64 / 1e9;
        let exchange = match inflow.sequencing {
            Sequencing::Arrival => Exchange::Arrival(VecDeque::new()),
            Sequencing::Watermarks(policy, rules) => Exchange::Hop(Box::new(joined(streams, policy, rules))),
            Sequencing::Responses => Exchange::Hop(Box::new(joined(streams, QueuePolicy::ByStamp, PATIENT))),
            Sequencing::Timeout(wait) => Exchange::Timeout(wait, BinaryHeap::new(), Vec::new()),
        };
        let hop = |_: usize| match inflow.sequencing {
            Sequencing::Watermarks(policy, rules) => Some(joined(GATEWAYS / PROXIES, policy, rules)),
            _ => None,
        };
        let proxy = |number| (Ingress::new(GATEWAYS / PROXIES, rate), hop(number));
        World {
            inflow,
            dice: Xoshiro::new(seed),
            engine: Engine::new(),
            stamps: vec![Stamps::default(); GATEWAYS],
            paces: if inflow.is_paced { paces() } else { Vec::new() },
            spoken: vec![0; GATEWAYS],
            root: Ingress::new(streams, rate),
            exchange,
            proxies: if inflow.is_tree { (0..PROXIES).map(proxy).collect() } else { Vec::new() },
            granted: vec![0; PROXIES],
            tokens: 0.0,
            last: 0,
            found: Arrived { traded: Vec::new(), received: Vec::new(), overtaken: 0, dropped: 0, made: 0 },
        }
    }

    fn run(mut self) -> Arrived {
        // Whoever is late has as long again as the orders took.
        let (end, mut now) = (self.inflow.end(), STEP);
        while now < 2 * end {
            if now < end {
                self.make_orders(now);
            }
            (0..self.paces.len()).for_each(|gateway| self.pace(now, now, gateway, PaceInput::Tick));
            self.promise(now);
            (0..self.proxies.len()).for_each(|proxy| self.step_proxy(now, proxy));
            self.step_root(now);
            now += STEP;
        }
        self.found.dropped = self.root.dropped + self.proxies.iter().map(|proxy| proxy.0.dropped).sum::<u64>();
        Arrived { traded: std::mem::take(&mut self.engine.traded), ..self.found }
    }

    fn make_orders(&mut self, now: Nanos) {
        let factor = if self.inflow.is_burst(now) { FACTOR } else { 1.0 };
        let mean = RATE * factor * STEP as f64 / 1e9;
        let count = mean as u64 + u64::from(self.dice.happens(mean.fract()));
        let mut times: Vec<Nanos> = (0..count).map(|_| now - STEP + self.dice.bits() % STEP).collect();
        times.sort_unstable();
        for time in times {
            let gateway = (self.dice.bits() % GATEWAYS as u64) as usize;
            let stamp = self.stamps[gateway].next(time);
            let (quote, is_critical) = self.engine.quote(stamp, self.inflow.levels, &mut self.dice);
            let is_by_class = matches!(self.inflow.sequencing, Sequencing::Watermarks(QueuePolicy::ByClass, _));
            // Only a queue by class knows classes.
            let class = if is_critical || !is_by_class { OrderClass::Critical } else { OrderClass::Other };
            self.found.made += 1;
            match self.paces.is_empty() {
                true => self.send(now, gateway, stamp, (class, quote)),
                false => self.pace(now, time, gateway, PaceInput::Order((class, quote))),
            }
        }
    }

    /// A step of a gateway's pace. An order that has waited gets its stamp when it leaves.
    fn pace(&mut self, now: Nanos, time: Nanos, gateway: usize, input: PaceInput<(OrderClass, Quote)>) {
        let mut out = Vec::new();
        self.paces[gateway].step(time, input, &mut out);
        for effect in out {
            let PaceEffect::Leave((class, quote)) = effect else { unreachable!("any number may wait") };
            let stamp = self.stamps[gateway].next(time);
            self.send(now, gateway, stamp, (class, quote));
        }
    }

    fn send(&mut self, now: Nanos, gateway: usize, stamp: Nanos, (class, item): (OrderClass, Quote)) {
        let key = MergeKey { source: gateway as u32, ..self.key(gateway, stamp) };
        self.say(now, gateway, Note::Order(Sequenced { class, key, restamped: None, item }));
    }

    /// What a gateway's orders are sorted by.
    fn key(&self, gateway: usize, stamp: Nanos) -> MergeKey {
        match self.inflow.sequencing {
            Sequencing::Responses => {
                let since = stamp.saturating_sub(FIRST_DELIVERY + COPY * gateway as Nanos);
                MergeKey::at(since / MESSAGE, since % MESSAGE)
            }
            _ => MergeKey::at(0, stamp),
        }
    }

    fn say(&mut self, now: Nanos, gateway: usize, note: Note) {
        self.spoken[gateway] = now;
        let each = GATEWAYS / PROXIES;
        match self.proxies.get_mut(gateway / each) {
            Some((ingress, _)) => ingress.connections[gateway % each].push(note),
            None => self.root.connections[gateway].push(note),
        }
    }

    /// Gateways that have been silent promise that their time has passed.
    fn promise(&mut self, now: Nanos) {
        if !matches!(self.exchange, Exchange::Hop(_)) {
            return;
        }
        for gateway in 0..GATEWAYS {
            if now - self.spoken[gateway] >= PROMISE {
                self.say(now, gateway, Note::Promise([self.key(gateway, now); 2]));
            }
        }
    }

    fn step_proxy(&mut self, now: Nanos, proxy: usize) {
        let (ingress, hop) = &mut self.proxies[proxy];
        let up = &mut self.root.connections[proxy];
        let Some(hop) = hop else {
            return ingress.step(now, &mut self.dice, &mut |_, note| up.push(note));
        };
        let mut out = Vec::new();
        ingress.step(now, &mut self.dice, &mut |child, note| hear(hop, now, child, note, &mut out));
        hop.step(now, HopInput::Child(MergeInput::Tick), &mut out);
        let mut promised = None;
        for effect in out {
            match effect {
                HopEffect::Order(order) => up.push(Note::Order(order)),
                HopEffect::Watermark(class, key) => {
                    promised.get_or_insert([MergeKey::default(); 2])[class as usize] = key
                }
                HopEffect::Event(_) => {}
            }
        }
        // An order of its class says as much.
        if let Some(keys) = promised {
            up.push(Note::Promise(keys));
        }
    }

    fn step_root(&mut self, now: Nanos) {
        let (exchange, found, granted) = (&mut self.exchange, &mut self.found, &mut self.granted);
        let mut out = Vec::new();
        self.root.step(now, &mut self.dice, &mut |child, note| {
            if matches!(note, Note::Order(_)) {
                found.received.push(now);
                granted.get_mut(child).into_iter().for_each(|granted| *granted = granted.saturating_sub(1));
            }
            match (&mut *exchange, note) {
                (Exchange::Hop(hop), note) => hear(hop, now, child, note, &mut out),
                (_, Note::Promise(_)) => {}
                (Exchange::Arrival(queue), Note::Order(order)) => queue.push_back(order),
                (Exchange::Timeout(_, queue, quotes), Note::Order(order)) => {
                    let number = order.item.number as usize;
                    quotes.resize(quotes.len().max(number + 1), None);
                    quotes[number] = Some(order.item);
                    queue.push(Reverse((order.item.stamp, order.item.number)));
                }
            }
        });
        self.tokens = (self.tokens + ENGINE * STEP as f64 / 1e9).min(64.0);
        let ready = match &mut self.exchange {
            Exchange::Hop(hop) => {
                hop.step(now, HopInput::Child(MergeInput::Tick), &mut out);
                let count = (self.tokens as u64).min(hop.queued() as u64);
                hop.step(now, HopInput::Ready(count), &mut out);
                out.into_iter()
                    .filter_map(|effect| if let HopEffect::Order(order) = effect { Some(order.item) } else { None })
                    .collect()
            }
            Exchange::Arrival(queue) => {
                let count = (self.tokens as usize).min(queue.len());
                queue.drain(..count).map(|order| order.item).collect()
            }
            Exchange::Timeout(wait, queue, quotes) => due(now, *wait, self.tokens as usize, queue, quotes),
        };
        self.tokens -= ready.len() as f64;
        ready.into_iter().for_each(|quote: Quote| self.execute(now, quote));
        (0..self.proxies.len()).for_each(|proxy| self.grant(now, proxy));
    }

    fn execute(&mut self, now: Nanos, quote: Quote) {
        self.found.overtaken += u64::from(quote.stamp < self.last);
        self.last = self.last.max(quote.stamp);
        self.engine.execute(now, quote);
    }

    /// Lets a proxy send as much as the root has room for, and tells the sequencer if that is nothing.
    fn grant(&mut self, now: Nanos, proxy: usize) {
        let (Some(hop), Exchange::Hop(root)) = (&mut self.proxies[proxy].1, &mut self.exchange) else { return };
        let up = &mut self.root.connections[proxy];
        let used = self.granted[proxy] + (root.waiting(proxy as u32) + root.queued() / PROXIES) as u64;
        let more = CREDIT.saturating_sub(used);
        self.granted[proxy] += more;
        let mut out = Vec::new();
        hop.step(now, HopInput::Ready(more), &mut out);
        for effect in out {
            if let HopEffect::Order(order) = effect {
                up.push(Note::Order(order));
            }
        }
        let hold = MergeInput::Hold(proxy as u32, self.granted[proxy] == 0);
        root.step(now, HopInput::Child(hold), &mut Vec::new());
    }
}

fn hear(hop: &mut Hop<Quote>, now: Nanos, child: usize, note: Note, out: &mut Vec<HopEffect<Quote>>) {
    let child = child as u32;
    match note {
        Note::Order(order) => hop.step(now, HopInput::Child(MergeInput::Order(child, order)), out),
        Note::Promise(keys) => {
            for class in OrderClass::ALL {
                hop.step(now, HopInput::Child(MergeInput::Watermark(child, class, keys[class as usize])), out);
            }
        }
    }
}

/// What a fixed time has passed for, in the order of stamps.
fn due(
    now: Nanos,
    wait: Nanos,
    most: usize,
    queue: &mut BinaryHeap<Reverse<(Nanos, u32)>>,
    quotes: &mut [Option<Quote>],
) -> Vec<Quote> {
    let mut out = Vec::new();
    while out.len() < most
        && let Some(Reverse((stamp, number))) = queue.peek().copied()
        && stamp + wait <= now
    {
        queue.pop();
        out.extend(quotes[number as usize].take());
    }
    out
}

/// What is said of one run.
pub(super) struct Outcome {
    /// Orders that traded in a second while orders were made, and in bursts.
    pub rate: f64,
    pub burst_rate: f64,
    /// Orders that came to the exchange in a second, likewise.
    pub received: f64,
    pub burst_received: f64,
    /// Milliseconds from stamp to trade: median and 99th percentile.
    pub latency: [f64; 2],
    /// Seconds after the last order until 99.9 % of what trades had traded.
    pub drain: f64,
}

pub(super) fn outcome(inflow: &Inflow, arrived: &Arrived) -> Outcome {
    let (end, seconds) = (inflow.end(), inflow.end() as f64 / 1e9);
    let rates = |times: &mut dyn Iterator<Item = Nanos>| {
        let (mut all, mut bursts) = (0u64, 0u64);
        for at in times.filter(|at| *at < end) {
            all += 1;
            bursts += u64::from(inflow.is_burst(at));
        }
        (all as f64 / seconds, bursts as f64 / (seconds / 5.0))
    };
    let (rate, burst_rate) = rates(&mut arrived.traded.iter().map(|order| order.1));
    let (received, burst_received) = rates(&mut arrived.received.iter().copied());
    let latency = Spread::new(arrived.traded.iter().map(|(stamp, at)| (at - stamp) as f64 / 1e6).collect());
    let times = Spread::new(arrived.traded.iter().map(|order| order.1 as f64 / 1e9).collect());
    let drain = (times.at(0.999) - seconds).max(0.0);
    Outcome { rate, burst_rate, received, burst_received, latency: [latency.at(0.5), latency.at(0.99)], drain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequencer_that_waits_for_ever_lets_nothing_overtake_and_bounded_waits_do_where_packets_are_lost() {
        let run_by = |rules| {
            let sequencing = Sequencing::Watermarks(QueuePolicy::ByStamp, rules);
            run(
                &Inflow { is_tree: true, sequencing, levels: (1, 7), period: 40_000_000, periods: 1, is_paced: false },
                1,
            )
        };
        let (patient, bounded) = (run_by(PATIENT), run_by(MergeRules::default()));
        assert_eq!((patient.overtaken, patient.made), (0, bounded.made));
        assert!(bounded.dropped > 0 && bounded.overtaken > 0);
        assert!(bounded.received.len() >= patient.received.len());
    }

    #[test]
    fn connections_bring_every_order_once_although_ingress_drops() {
        let inflow = Inflow {
            is_tree: false,
            sequencing: Sequencing::Arrival,
            levels: (1, 1),
            period: 40_000_000,
            periods: 1,
            is_paced: false,
        };
        let arrived = run(&inflow, 2);
        assert!(arrived.dropped > 0);
        assert_eq!(arrived.received.len() as u64, arrived.made);
    }

    #[test]
    fn paced_gateways_overflow_no_machine_and_bring_more_of_a_burst_through_the_tree() {
        let tree = |is_paced| {
            let inflow = Inflow {
                is_tree: true,
                sequencing: Sequencing::Arrival,
                levels: (1, 7),
                period: 40_000_000,
                periods: 1,
                is_paced,
            };
            let arrived = run(&inflow, 3);
            assert!(!is_paced || arrived.received.len() as u64 == arrived.made);
            (outcome(&inflow, &arrived).burst_received, arrived.dropped)
        };
        let (unpaced, paced) = (tree(false), tree(true));
        assert!(unpaced.1 > 0);
        assert_eq!(paced.1, 0);
        assert!(paced.0 > unpaced.0, "{paced:?} against {unpaced:?}");
    }
}
