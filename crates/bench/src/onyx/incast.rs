//! Connections into one machine whose ingress has room for a few packets: what makes many senders slower than few.
//!
//! A connection is TCP as far as bursts matter: segments in order, and a congestion window with slow start and additive
//! increase. Three later segments cause a fast retransmission. Otherwise a tail loss probe follows after two ticks of a
//! kernel of 250 Hz, and then time-outs that double. A machine takes a fixed number of packets in a step and keeps
//! [`BUFFER`] more; the rest is dropped.

use std::collections::VecDeque;

use fairnet::Nanos;
use kernel::Xoshiro;

/// Delay of a link, in steps of the simulation.
pub(super) const DELAY: usize = 3;
/// Packets that wait in front of a machine.
const BUFFER: usize = 16;
/// Least time until a segment is sent again without a sign of its loss, ns.
const TIMEOUT: Nanos = 8_000_000;
const WINDOW_FIRST: f64 = 10.0;
const WINDOW_MOST: f64 = 512.0;

/// A segment's number, and what it carries.
type Segment<T> = (u64, T);
/// The next number that is awaited, and the highest that has come.
type Answer = (u64, u64);

/// Both ends of a connection.
pub(super) struct Connection<T> {
    unsent: VecDeque<T>,
    /// Not acknowledged, from number `first` on; and when each was sent.
    flight: VecDeque<(T, Nanos)>,
    first: u64,
    window: f64,
    /// Below it the window doubles with each round trip.
    slow: f64,
    /// Losses below this number are of one event.
    recovered: u64,
    timeout: Nanos,
    /// The other end: what came out of order, from number `next` on.
    next: u64,
    highest: u64,
    early: VecDeque<Option<T>>,
    wire: VecDeque<Vec<Segment<T>>>,
    answers: VecDeque<Option<Answer>>,
    heard: bool,
}

impl<T: Clone> Connection<T> {
    pub fn new() -> Connection<T> {
        Connection {
            unsent: VecDeque::new(),
            flight: VecDeque::new(),
            first: 0,
            window: WINDOW_FIRST,
            slow: WINDOW_MOST,
            recovered: 0,
            timeout: TIMEOUT,
            next: 0,
            highest: 0,
            early: VecDeque::new(),
            wire: (0..DELAY).map(|_| Vec::new()).collect(),
            answers: (0..DELAY).map(|_| None).collect(),
            heard: false,
        }
    }

    pub fn push(&mut self, item: T) {
        self.unsent.push_back(item);
    }

    /// The sender's step: answers, time-outs, new segments.
    fn send(&mut self, now: Nanos) {
        let mut out = Vec::new();
        self.answers.push_back(None);
        if let Some((next, highest)) = self.answers.pop_front().flatten() {
            self.acknowledged(next);
            // Three later ones have come.
            if highest >= next + 3 && next >= self.recovered && !self.flight.is_empty() {
                self.slow = (self.window / 2.0).max(2.0);
                (self.window, self.recovered) = (self.slow, self.first + self.flight.len() as u64);
                self.again(now, &mut out);
            } else if next < self.recovered && highest > next && self.is_stale(now) {
                // Of one event, one loss after the other.
                self.again(now, &mut out);
            }
        }
        if self.flight.front().is_some_and(|(_, sent)| now.saturating_sub(*sent) >= self.timeout) {
            self.slow = (self.window / 2.0).max(2.0);
            self.window = 1.0;
            self.timeout *= 2;
            self.recovered = self.first + self.flight.len() as u64;
            self.again(now, &mut out);
        }
        while (self.flight.len() as f64) < self.window
            && let Some(item) = self.unsent.pop_front()
        {
            out.push((self.first + self.flight.len() as u64, item.clone()));
            self.flight.push_back((item, now));
        }
        self.wire.push_back(out);
    }

    fn acknowledged(&mut self, next: u64) {
        let count = next.saturating_sub(self.first);
        if count == 0 {
            return;
        }
        self.flight.drain(..count as usize);
        (self.first, self.timeout) = (next, TIMEOUT);
        let more = if self.window < self.slow { count as f64 } else { count as f64 / self.window };
        self.window = (self.window + more).min(WINDOW_MOST);
    }

    /// Whether the oldest segment was sent longer than a round trip ago.
    fn is_stale(&self, now: Nanos) -> bool {
        const ROUND_TRIP: Nanos = 2 * DELAY as Nanos * 20_000 + 40_000;
        self.flight.front().is_some_and(|(_, sent)| now.saturating_sub(*sent) >= ROUND_TRIP)
    }

    fn again(&mut self, now: Nanos, out: &mut Vec<Segment<T>>) {
        let number = self.first;
        if let Some((item, sent)) = self.flight.front_mut() {
            *sent = now;
            out.push((number, item.clone()));
        }
    }

    /// The other end takes a segment; what is in order is appended to `out`.
    fn take(&mut self, (number, item): Segment<T>, out: &mut Vec<T>) {
        self.heard = true;
        self.highest = self.highest.max(number);
        let Some(place) = number.checked_sub(self.next) else { return };
        let place = place as usize;
        if self.early.len() <= place {
            self.early.resize(place + 1, None);
        }
        self.early[place] = Some(item);
        while let Some(item) = self.early.front_mut().and_then(Option::take) {
            self.early.pop_front();
            self.next += 1;
            out.push(item);
        }
    }

    fn answer(&mut self) {
        if std::mem::take(&mut self.heard)
            && let Some(answer) = self.answers.back_mut()
        {
            *answer = Some((self.next, self.highest));
        }
    }
}

/// A machine and the connections into it.
pub(super) struct Ingress<T> {
    pub connections: Vec<Connection<T>>,
    waiting: VecDeque<(usize, Segment<T>)>,
    /// Packets that it takes in a step.
    rate: f64,
    budget: f64,
    pub dropped: u64,
}

impl<T: Clone> Ingress<T> {
    pub fn new(connections: usize, rate: f64) -> Ingress<T> {
        let connections = (0..connections).map(|_| Connection::new()).collect();
        Ingress { connections, waiting: VecDeque::new(), rate, budget: 0.0, dropped: 0 }
    }

    /// One step; what arrives in order is given to `take`, with its connection.
    pub fn step(&mut self, now: Nanos, dice: &mut Xoshiro, take: &mut dyn FnMut(usize, T)) {
        self.budget = (self.budget + self.rate).min(self.rate + 1.0);
        let mut arrived: Vec<(usize, Segment<T>)> = Vec::new();
        for (number, connection) in self.connections.iter_mut().enumerate() {
            connection.send(now);
            let segments = connection.wire.pop_front().unwrap_or_default();
            arrived.extend(segments.into_iter().map(|segment| (number, segment)));
        }
        // What comes within a step comes in any order, except that a connection's own keep theirs.
        if arrived.len() > 1 {
            let salt = dice.bits();
            arrived.sort_by_key(|(number, _)| (*number as u64 ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        let mut out = Vec::new();
        for (number, segment) in std::mem::take(&mut self.waiting).into_iter().chain(arrived) {
            if self.budget >= 1.0 {
                self.budget -= 1.0;
                self.connections[number].take(segment, &mut out);
                out.drain(..).for_each(|item| take(number, item));
            } else if self.waiting.len() < BUFFER {
                self.waiting.push_back((number, segment));
            } else {
                self.dropped += 1;
            }
        }
        self.connections.iter_mut().for_each(Connection::answer);
    }
}
