//! Packets of one tree in sequence: reordering, gaps, rewinds (Onyx §4.3, appendix E.1).
//!
//! Upon a packet, everything up to the first missing sequence is delivered. A missing packet is asked for when it has
//! been missing for the reorder time, or earlier if its deadline minus a round trip comes first. Then again each round
//! trip, of the next parent each time. After the last try it is given up: the receiver must recover from a snapshot.
//!
//! # Properties
//!
//! - Sequences are delivered in order, each once, or reported lost once.
//! - The number of packets held back is bounded, and so is the number of requests for a missing one.
//!
//! # Deviations from the paper
//!
//! - *Whom to ask.* The paper has a rewinder service; we ask the parents of the packet, then the root
//!   ([`Plan::rewinders`](crate::Plan::rewinders)): `attempt` counts along that list.
//! - *Giving up.* The paper waits for ever. A receiver that waits shows nothing, so after some tries it is told of a
//!   loss.

use std::collections::BTreeMap;

use crate::Nanos;

/// How gaps are closed.
#[derive(Clone, Copy, Debug)]
pub struct GapRules {
    /// How long a packet may be overtaken before it counts as lost, ns.
    pub reorder: Nanos,
    /// From a request to its answer, ns.
    pub round_trip: Nanos,
    /// Requests for one packet.
    pub tries: u16,
    /// Packets ahead of the first missing one that are held back; if one is further ahead, the gap is given up.
    pub span: u64,
}

impl Default for GapRules {
    fn default() -> GapRules {
        GapRules { reorder: 100_000, round_trip: 200_000, tries: 6, span: 8_192 }
    }
}

/// What a receiver of a tree is told.
#[derive(Clone, Debug)]
pub enum GapInput<T> {
    /// An authentic first copy: sequence, deadline, packet.
    Packet(u64, Nanos, T),
    /// The sender says that it sent all up to this sequence: how a loss at the end shows.
    Sent(u64, Nanos),
    /// Time passed.
    Tick,
}

/// An effect of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GapEffect<T> {
    /// The next packet in sequence: sequence, deadline, packet.
    Deliver(u64, Nanos, T),
    /// Ask the `attempt`-th of those that may have them for packets.
    Rewind {
        /// First packet.
        first: u64,
        /// How many.
        count: u16,
        /// How often they were asked for before.
        attempt: u16,
    },
    /// These packets are given up: first and count.
    Lost(u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    due: Nanos,
    attempt: u16,
}

/// One tree's packets, as one receiver gets them.
#[derive(Clone, Debug)]
pub struct Gaps<T> {
    rules: GapRules,
    /// The next sequence to deliver.
    next: u64,
    /// One above the highest sequence known to exist.
    known: u64,
    ahead: BTreeMap<u64, (Nanos, T)>,
    missing: BTreeMap<u64, Missing>,
}

impl<T> Gaps<T> {
    /// Expects `first` next.
    pub fn new(first: u64, rules: GapRules) -> Gaps<T> {
        Gaps { rules, next: first, known: first, ahead: BTreeMap::new(), missing: BTreeMap::new() }
    }

    /// The next sequence to deliver.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// When the next tick is needed.
    pub fn due(&self) -> Option<Nanos> {
        self.missing.values().map(|missing| missing.due).min()
    }

    /// One step.
    pub fn step(&mut self, now: Nanos, input: GapInput<T>, out: &mut Vec<GapEffect<T>>) {
        match input {
            GapInput::Packet(sequence, deadline, item) => self.on_packet(now, sequence, deadline, item, out),
            GapInput::Sent(sequence, deadline) => self.on_known(now, sequence.saturating_add(1), deadline, out),
            GapInput::Tick => {}
        }
        self.ask(now, out);
    }

    fn on_packet(&mut self, now: Nanos, sequence: u64, deadline: Nanos, item: T, out: &mut Vec<GapEffect<T>>) {
        // The last number there is could not be followed by another.
        if sequence < self.next || sequence == u64::MAX {
            return;
        }
        self.on_known(now, sequence, deadline, out);
        self.known = self.known.max(sequence.saturating_add(1));
        self.missing.remove(&sequence);
        self.ahead.entry(sequence).or_insert((deadline, item));
        self.deliver(out);
    }

    /// All sequences below `end` exist, the last with this deadline: those that did not come are missing.
    fn on_known(&mut self, now: Nanos, end: u64, deadline: Nanos, out: &mut Vec<GapEffect<T>>) {
        if end > self.next.saturating_add(self.rules.span) {
            self.give_up(end, out);
        }
        let latest = deadline.saturating_sub(self.rules.round_trip).max(now);
        let due = now.saturating_add(self.rules.reorder).min(latest);
        let new = self.known.max(self.next)..end;
        self.missing.extend(new.map(|sequence| (sequence, Missing { due, attempt: 0 })));
        self.known = self.known.max(end);
    }

    fn deliver(&mut self, out: &mut Vec<GapEffect<T>>) {
        while let Some((deadline, item)) = self.ahead.remove(&self.next) {
            out.push(GapEffect::Deliver(self.next, deadline, item));
            self.next += 1;
        }
    }

    /// Gives up everything missing below `end`.
    fn give_up(&mut self, end: u64, out: &mut Vec<GapEffect<T>>) {
        while self.next < end {
            let next = self.ahead.first_key_value().map_or(end, |(sequence, _)| (*sequence).min(end));
            if next > self.next {
                out.push(GapEffect::Lost(self.next, next - self.next));
                self.next = next;
            }
            self.deliver(out);
        }
        self.missing = self.missing.split_off(&self.next);
        self.known = self.known.max(self.next);
    }

    /// Asks for what is due, neighbours of one attempt together.
    fn ask(&mut self, now: Nanos, out: &mut Vec<GapEffect<T>>) {
        let (tries, round_trip) = (self.rules.tries, self.rules.round_trip);
        let given_up = self.missing.iter().rfind(|(_, missing)| missing.due <= now && missing.attempt >= tries);
        if let Some(end) = given_up.map(|(sequence, _)| sequence + 1) {
            self.give_up(end, out);
        }
        for (sequence, missing) in self.missing.iter_mut().filter(|(_, missing)| missing.due <= now) {
            let attempt = missing.attempt;
            *missing = Missing { due: now.saturating_add(round_trip), attempt: attempt + 1 };
            match out.last_mut() {
                Some(GapEffect::Rewind { first, count, attempt: last })
                    if *last == attempt && *first + u64::from(*count) == *sequence && *count < u16::MAX =>
                {
                    *count += 1;
                }
                _ => out.push(GapEffect::Rewind { first: *sequence, count: 1, attempt }),
            }
        }
    }
}
