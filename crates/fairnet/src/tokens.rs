//! Receiver hedging: two machines run one participant's strategy and issue the same orders (Onyx §4.3, appendix E).
//!
//! Each replica sees one sequence of events: the packets of all shards (trees, and the participant's private reports)
//! in the order (deadline, shard, sequence), and its timers. Upon an event the strategies run in a fixed order; an
//! order gets the next `UserRefNum` and the token hash(participant, algorithm, position, index). The root takes the
//! first order of each reference, which is the one with the earliest stamp since orders come in the order of stamps,
//! and drops the other.
//!
//! # Properties
//!
//! - *Lemma E.1.* The events of one replica are a prefix of those of the other, whatever each loses, receives twice or
//!   late. So are its tokens, since strategies are functions of events. By induction on positions: the least next key
//!   over all shards is the same wherever it is known, and it is delivered only when it is known for every shard.
//! - An order is taken once, and two different orders under one reference are seen.
//!
//! # Deviations from the paper
//!
//! - *Heartbeats.* With two shards "a prefix of the market data" has no meaning before it is known that nothing earlier
//!   will come. Each shard sends an empty packet with a deadline at least each millisecond.
//! - *Private reports and timers* are events at a place of the feed. The paper has market data alone; a fill seen
//!   earlier by one replica would make them diverge. Reports are a shard; time is the deadline of the event; a timer
//!   fires before the first event whose deadline has reached it.
//! - *Tokens* name the position, not the bytes of the prefix, which the session's MAC already fixes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::Nanos;
use crate::seen::SeenWindow;
use crate::winner::Winner;

type FeedKey = (Nanos, u32, u64);

/// One shard as a replica has it: packets in sequence, and what may come next.
#[derive(Clone, Debug)]
struct Shard<T> {
    queue: VecDeque<(u64, Nanos, Option<T>)>,
    deadline: Nanos,
    next: u64,
}

/// An event of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedEvent<T> {
    /// A packet: shard, sequence, and what it carries.
    Packet(u32, u64, T),
    /// A timer that the strategy set.
    Timer(u64),
}

/// An event and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Positioned<T> {
    /// Number of the event, from 1.
    pub position: u64,
    /// The time, as far as a strategy may know it: the event's deadline.
    pub time: Nanos,
    /// The event.
    pub event: FeedEvent<T>,
}

/// Merges the shards of one participant's feed.
#[derive(Clone, Debug)]
pub struct FeedMerge<T> {
    shards: Vec<Shard<T>>,
    next: Winner<FeedKey>,
    timers: BTreeSet<(Nanos, u64)>,
    position: u64,
    time: Nanos,
    is_halted: bool,
}

impl<T> FeedMerge<T> {
    /// A merge of so many shards, at least one, each from sequence 1.
    pub fn new(shards: usize) -> FeedMerge<T> {
        let shards = shards.max(1);
        let mut next = Winner::new(shards, (u64::MAX, u32::MAX, u64::MAX));
        (0..shards).for_each(|shard| next.set(shard, (0, shard as u32, 1)));
        let shard = || Shard { queue: VecDeque::new(), deadline: 0, next: 1 };
        let shards = std::iter::repeat_with(shard).take(shards).collect();
        FeedMerge { shards, next, timers: BTreeSet::new(), position: 0, time: 0, is_halted: false }
    }

    /// The next packet of a shard, `None` for a heartbeat. Anything out of sequence halts the merge, as a loss does.
    pub fn push(&mut self, shard: u32, sequence: u64, deadline: Nanos, item: Option<T>) {
        let Some(own) = self.shards.get_mut(shard as usize) else { return };
        if sequence != own.next || deadline < own.deadline {
            self.is_halted = true;
            return;
        }
        (own.next, own.deadline) = (sequence + 1, deadline);
        own.queue.push_back((sequence, deadline, item));
        self.refresh(shard);
    }

    /// A packet was given up: this replica must copy the state of its twin before it goes on.
    pub fn lost(&mut self) {
        self.is_halted = true;
    }

    /// Whether it stopped for good.
    pub fn is_halted(&self) -> bool {
        self.is_halted
    }

    /// The strategy wants to be called at this time, with this number.
    pub fn set_timer(&mut self, at: Nanos, number: u64) {
        self.timers.insert((at, number));
    }

    fn refresh(&mut self, shard: u32) {
        let own = &self.shards[shard as usize];
        let (sequence, deadline) = own.queue.front().map_or((own.next, own.deadline), |(next, due, _)| (*next, *due));
        self.next.set(shard as usize, (deadline, shard, sequence));
    }

    /// The next event, if it is known that nothing comes before it.
    pub fn next_event(&mut self) -> Option<Positioned<T>> {
        while !self.is_halted {
            let (shard, (deadline, ..)) = self.next.min();
            if let Some(timer) = self.timers.first().copied().filter(|(at, _)| *at <= deadline) {
                self.timers.remove(&timer);
                // A timer set for the past fires now; time does not go back.
                self.time = self.time.max(timer.0);
                return Some(self.at_next_position(FeedEvent::Timer(timer.1)));
            }
            let (sequence, deadline, item) = self.shards[shard].queue.pop_front()?;
            self.refresh(shard as u32);
            self.time = self.time.max(deadline);
            if let Some(item) = item {
                return Some(self.at_next_position(FeedEvent::Packet(shard as u32, sequence, item)));
            }
        }
        None
    }

    fn at_next_position(&mut self, event: FeedEvent<T>) -> Positioned<T> {
        self.position += 1;
        Positioned { position: self.position, time: self.time, event }
    }
}

/// What identifies an order in both replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderToken {
    /// `UserRefNum`: the participant's counter of orders, from 1.
    pub reference: u32,
    /// Hash of participant, algorithm, position and index.
    pub token: [u8; 16],
}

/// Gives the orders of one participant their tokens.
#[derive(Clone, Debug)]
pub struct Tokens {
    participant: u64,
    orders: u32,
    slot: (u32, u64),
    index: u32,
}

impl Tokens {
    /// Of a participant, whose last order had the reference `orders`.
    pub fn new(participant: u64, orders: u32) -> Tokens {
        Tokens { participant, orders, slot: (0, 0), index: 0 }
    }

    /// The token of the next order, which `algorithm` issues upon the event at `position`; `None` if all references are
    /// used up, and the session must end.
    pub fn next(&mut self, algorithm: u32, position: u64) -> Option<OrderToken> {
        self.orders = self.orders.checked_add(1)?;
        self.index = if self.slot == (algorithm, position) { self.index + 1 } else { 0 };
        self.slot = (algorithm, position);
        let mut hasher = blake3::Hasher::new_derive_key("walras fairnet order token v1");
        hasher.update(&self.participant.to_be_bytes()).update(&algorithm.to_be_bytes());
        hasher.update(&position.to_be_bytes()).update(&self.index.to_be_bytes());
        let whole: [u8; 32] = hasher.finalize().into();
        Some(OrderToken { reference: self.orders, token: std::array::from_fn(|at| whole[at]) })
    }
}

/// What the root does with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Takes it.
    First,
    /// Drops it: the other replica was faster, or it is so old that nobody can tell.
    Duplicate,
    /// Drops it, and logs that the replicas issued different orders under one reference.
    Diverged,
}

#[derive(Clone, Debug)]
struct Issued {
    seen: SeenWindow,
    tokens: Box<[OrderToken]>,
}

/// The root's memory of orders, by participant.
#[derive(Clone, Debug)]
pub struct Duplicates {
    participants: BTreeMap<u64, Issued>,
    span: usize,
}

impl Duplicates {
    /// Remembers the last `span` references of each participant, rounded up to a power of two of at least 64.
    pub fn new(span: usize) -> Duplicates {
        Duplicates { participants: BTreeMap::new(), span: span.next_power_of_two().max(64) }
    }

    /// Takes an order, or says what it is.
    pub fn admit(&mut self, participant: u64, order: OrderToken) -> Admission {
        let span = self.span;
        let none = OrderToken { reference: 0, token: [0; 16] };
        let new = || Issued { seen: SeenWindow::new(span), tokens: vec![none; span].into() };
        let issued = self.participants.entry(participant).or_insert_with(new);
        let slot = &mut issued.tokens[order.reference as usize & (span - 1)];
        if issued.seen.insert(order.reference.into()) {
            *slot = order;
            return Admission::First;
        }
        if slot.reference == order.reference && *slot != order { Admission::Diverged } else { Admission::Duplicate }
    }

    /// The participant's session ended: references start again.
    pub fn forget(&mut self, participant: u64) {
        self.participants.remove(&participant);
    }
}
