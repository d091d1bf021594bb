//! The sequencer: streams of orders become one, in the order in which the orders were made (Onyx §5.1, §5.2, appendix
//! M).
//!
//! Orders carry the key (I_m, t, gateway): the number of the mid-price at which they were made, their stamp, their
//! origin. Each hop has two sequences of orders, *critical* and *other*, each in ascending order of keys. In each a
//! stream makes a promise, its *watermark*: no order below it will come. An order implies the watermark just above it;
//! an idle gateway sends watermarks alone, the paper's dummy messages.
//!
//! Upon an order or a watermark, the sequencer releases what it can:
//!
//! - an order of the present I_m, once the watermarks of all streams in its class have passed it;
//! - the present I_m rises when in **both** classes every watermark has passed it and nothing of it is queued;
//! - a critical order goes first, but only among what can be released; before a queue by stamp, the earlier one.
//!
//! Upon a tick, a stream for which an order has waited too long is *skipped*: nobody waits for it until it has been
//! timely for a while. Its late orders are restamped at the frontier, the lowest key that was not promised away, and
//! say so.
//!
//! # Properties
//!
//! - The output is ascending in each class, and in I_m over both; watermarks of the output are true and never
//!   decrease.
//! - Without skips the output of a tree of sequencers is that of one sequencer over all streams.
//! - An idle stream that sends watermarks stops nothing: neither orders nor the rise of I_m.
//! - A stream, or many in turn, delays others by at most [`MergeRules::max_wait`] each time, and in the long run by at
//!   most the refill of [`MergeRules::patience`] beyond [`MergeRules::short_wait`].
//!
//! # Why the longest wait is 2 ms although a tail loss probe takes 8
//!
//! A stream is a TCP connection. A single lost segment is repeated after about a round trip, because segments follow
//! it: each member sends watermarks each 250 µs. Only where whole windows are lost, in bursts that overflow a
//! machine's ingress, TCP waits for its tail loss probe, 8 ms or more, several times in a row.
//!
//! `walras-lab bench onyx --name max-wait` simulates such bursts (57,598 orders, 1,700 to 2,100 packets dropped):
//!
//! | longest wait | orders received in bursts, thousands/s | orders that a later stamp overtook |
//! |---|---|---|
//! | 2 ms | 542 | 42,337 |
//! | 12 ms, one probe | 137 | 36,449 |
//! | 40 ms, five probes | 132 | 0 |
//!
//! A wait of one probe pays the whole price and brings little, since the next loss comes before the stream has caught
//! up. So there are two choices. By default orders behind a lossy uplink are late and say so: a network that loses
//! whole windows is to be mended. With 40 ms nothing overtakes (`EdgeRules::shared_machine`).
//!
//! # Deviations from the paper
//!
//! - *Two sequences instead of one.* The paper sorts by (I_m, c, t). An idle gateway can promise only that nothing
//!   below (I_m, 0, now) comes. So no order of class 1 would be released before the mid moves: a market of passive
//!   orders stops.
//! - *Watermarks are tuples.* The paper's dummies are stamps; the output of an LOQ is not monotone in time.
//! - *Backlog is not slowness.* Behind a queue by class, a saturated proxy sends critical orders and keeps the others,
//!   so its watermark of the others stands. Skipping it would restamp a burst's orders. A hop says of which streams it
//!   takes nothing more at present ([`MergeInput::Hold`]), and only the time in which a stream could speak counts
//!   against it.
//! - *Bounded waiting.* The paper's sequencer waits for ever (it is safe, not live) and leaves failures to a
//!   configuration manager. Appendix J proposes a fixed wait; ours adds that a skipped stream must earn its place
//!   again.

use std::collections::VecDeque;

use crate::Nanos;
use crate::key::{MergeKey, OrderClass, QueuePolicy, Sequenced};
use crate::sequence::{Queued, Sequence, StreamState};

/// How long a sequencer waits.
#[derive(Clone, Copy, Debug)]
pub struct MergeRules {
    /// Longest wait for a stream, ns.
    pub max_wait: Nanos,
    /// A wait that is usual, ns; the longest one while patience is used up.
    pub short_wait: Nanos,
    /// Waiting beyond the usual that is tolerated at once, ns.
    pub patience: Nanos,
    /// Of each second, this many thousandths come back.
    pub refill_per_mille: u64,
    /// How long a skipped stream must be timely, ns; doubles with each skip that follows soon.
    pub probation: Nanos,
}

impl Default for MergeRules {
    fn default() -> MergeRules {
        MergeRules {
            max_wait: 2_000_000,
            short_wait: 250_000,
            patience: 10_000_000,
            refill_per_mille: 10,
            probation: 1_000_000_000,
        }
    }
}

/// Waits are looked at this often at most, ns.
const CHECK: Nanos = 20_000;

/// What a sequencer is told.
#[derive(Clone, Debug)]
pub enum MergeInput<T> {
    /// An order of a stream, in sequence by class.
    Order(u32, Sequenced<T>),
    /// A stream promises: in this class nothing below this key comes.
    Watermark(u32, OrderClass, MergeKey),
    /// A stream begins, or begins again after it was evicted.
    Join(u32),
    /// A stream was evicted: its queued orders go on, nobody waits for it.
    Leave(u32),
    /// Whether this hop has stopped taking orders of a stream: then its silence is our doing, and it is not skipped.
    Hold(u32, bool),
    /// Time passed, or a batch of inputs ends: promises are announced.
    Tick,
}

/// An effect of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeEffect<T> {
    /// The next order.
    Release(Sequenced<T>),
    /// Promises for the output: in this class nothing below this key comes.
    Watermark(OrderClass, MergeKey),
    /// A fairness event: a stream is no longer waited for; an order had waited this long.
    Skipped(u32, Nanos),
    /// A stream is waited for again.
    Readmitted(u32),
    /// A fairness event: an order came below the frontier and was put at its end; the stream and the key it came with.
    Restamped(u32, MergeKey),
}

/// A stream keeps an order waiting, and for how long.
struct Blocked {
    stream: usize,
    waited: Nanos,
}

/// A sequencer over a fixed number of streams.
#[derive(Clone, Debug)]
pub struct Merge<T> {
    rules: MergeRules,
    /// Which class goes first of two orders that can be released.
    policy: QueuePolicy,
    classes: [Sequence<T>; 2],
    streams: Vec<StreamState>,
    /// The present I_m.
    mid: u64,
    patience: Nanos,
    /// When waiting was looked at.
    checked: Nanos,
    skipped: usize,
}

impl<T> Merge<T> {
    /// A sequencer over `streams` streams, none of which has joined.
    pub fn new(now: Nanos, streams: usize, rules: MergeRules) -> Merge<T> {
        let streams = streams.max(1);
        Merge {
            rules,
            policy: QueuePolicy::ByClass,
            classes: [Sequence::new(streams), Sequence::new(streams)],
            streams: vec![StreamState::default(); streams],
            mid: 0,
            patience: rules.patience,
            checked: now,
            skipped: 0,
        }
    }

    /// The same; of the orders that can be released, those go first that leave a queue of this policy first.
    pub fn by(self, policy: QueuePolicy) -> Merge<T> {
        Merge { policy, ..self }
    }

    /// Orders that wait.
    pub fn len(&self) -> usize {
        self.classes.iter().flat_map(|class| &class.queues).map(VecDeque::len).sum()
    }

    /// Whether no order waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Orders of one stream that wait: a shell stops reading from a stream that has too many.
    pub fn waiting(&self, stream: u32) -> usize {
        let of_class = |class: &Sequence<T>| class.queues.get(stream as usize).map_or(0, VecDeque::len);
        self.classes.iter().map(of_class).sum()
    }

    /// The number of the mid whose orders are released now.
    pub fn mid(&self) -> u64 {
        self.mid
    }

    /// One step. Inputs of streams that do not exist are ignored.
    pub fn step(&mut self, now: Nanos, input: MergeInput<T>, out: &mut Vec<MergeEffect<T>>) {
        self.step_into(now, input, &mut |effect| out.push(effect));
    }

    /// One step whose effects are taken one by one, which saves a copy of each order.
    #[inline]
    pub fn step_into(&mut self, now: Nanos, input: MergeInput<T>, take: &mut impl FnMut(MergeEffect<T>)) {
        let may_release = match input {
            MergeInput::Order(stream, order) => self.on_order(now, stream, order, take),
            MergeInput::Watermark(stream, class, key) => self.on_watermark(stream, class, key),
            MergeInput::Join(stream) => self.on_join(stream),
            MergeInput::Leave(stream) => self.on_leave(stream),
            MergeInput::Hold(stream, is_held) => self.on_hold(now, stream, is_held),
            MergeInput::Tick => self.on_tick(now, take),
        };
        if may_release {
            self.release(take);
        }
    }

    fn refresh(&mut self, stream: usize) {
        let is_waited_for = self.streams[stream].is_waited_for();
        self.classes.iter_mut().for_each(|class| class.refresh(stream, is_waited_for));
    }

    /// Says whether it may release something: only the first order of a stream can that all others wait for.
    #[inline]
    fn on_order(
        &mut self,
        now: Nanos,
        stream: u32,
        mut order: Sequenced<T>,
        take: &mut impl FnMut(MergeEffect<T>),
    ) -> bool {
        let at = stream as usize;
        let Some(state) = self.streams.get(at).filter(|state| state.is_present) else { return false };
        let class = &mut self.classes[order.class as usize];
        if order.key < class.marks[at] || order.key < class.frontier {
            take(MergeEffect::Restamped(stream, order.key));
            order.restamped = order.restamped.or(Some(order.key));
            order.key = class.marks[at].max(class.frontier);
        }
        class.marks[at] = order.key.above();
        let (key, was_empty) = (order.key, class.queues[at].is_empty());
        class.queues[at].push_back(Queued { order, arrived: now });
        if was_empty && !state.is_waited_for() {
            class.next.set(at, key);
            return true;
        }
        was_empty && class.next.min().0 == at
    }

    #[inline]
    fn on_watermark(&mut self, stream: u32, class: OrderClass, key: MergeKey) -> bool {
        let at = stream as usize;
        let Some(state) = self.streams.get(at).filter(|state| state.is_present) else { return false };
        let class = &mut self.classes[class as usize];
        if class.marks[at] < key {
            class.marks[at] = key;
        }
        class.queues[at].is_empty() && state.is_waited_for() && class.next.min().0 == at
    }

    fn on_join(&mut self, stream: u32) -> bool {
        let at = stream as usize;
        let Some(state) = self.streams.get_mut(at) else { return false };
        let probation = state.probation;
        self.skipped -= usize::from(state.is_skipped);
        *state = StreamState { is_present: true, probation, ..StreamState::default() };
        for class in &mut self.classes {
            // What the place's last stream promised binds nobody; what it left in the queue goes first.
            let last = class.queues[at].back().map_or(MergeKey::default(), |queued| queued.order.key.above());
            class.marks[at] = last.max(class.frontier);
        }
        self.refresh(at);
        true
    }

    fn on_leave(&mut self, stream: u32) -> bool {
        let Some(state) = self.streams.get_mut(stream as usize) else { return false };
        state.is_present = false;
        self.refresh(stream as usize);
        true
    }

    fn on_hold(&mut self, now: Nanos, stream: u32, is_held: bool) -> bool {
        let Some(state) = self.streams.get_mut(stream as usize) else { return false };
        if state.is_held && !is_held {
            state.free_since = now;
        }
        state.is_held = is_held;
        false
    }

    /// Releases what the watermarks allow.
    #[inline]
    fn release(&mut self, take: &mut impl FnMut(MergeEffect<T>)) {
        let mut firsts = [self.classes[0].first(&self.streams), self.classes[1].first(&self.streams)];
        loop {
            let is_ready = firsts.map(|(_, key, is_order)| is_order && key.mid == self.mid);
            let class = match is_ready {
                [true, true] => usize::from(!self.policy.is_first(firsts[0].1, firsts[1].1)),
                [true, false] => 0,
                [false, true] => 1,
                [false, false] => {
                    // In both classes nothing of this mid is queued or may come: on to the next of which something may.
                    let next = firsts[0].1.mid.min(firsts[1].1.mid);
                    if next <= self.mid || next == u64::MAX {
                        return;
                    }
                    self.mid = next;
                    let floor = MergeKey::at(next, 0);
                    self.classes.iter_mut().for_each(|class| class.frontier = class.frontier.max(floor));
                    continue;
                }
            };
            let (stream, of) = (firsts[class].0, &mut self.classes[class]);
            if let Some(order) = of.pop(stream, self.streams[stream].is_waited_for()) {
                take(MergeEffect::Release(order));
            }
            firsts[class] = of.first(&self.streams);
        }
    }

    /// Announces what the output promises, where it has grown.
    fn promise(&mut self, take: &mut impl FnMut(MergeEffect<T>)) {
        for class in OrderClass::ALL {
            let sequence = &mut self.classes[class as usize];
            let (_, key, _) = sequence.first(&self.streams);
            // With nobody to wait for there is nothing to promise: a stream may join.
            if key > sequence.frontier && key != MergeKey::END {
                sequence.frontier = key;
                take(MergeEffect::Watermark(class, key));
            }
        }
    }
}

impl<T> Merge<T> {
    fn on_tick(&mut self, now: Nanos, take: &mut impl FnMut(MergeEffect<T>)) -> bool {
        if now.saturating_sub(self.checked) >= CHECK {
            self.check_waits(now, take);
        }
        self.promise(take);
        false
    }

    fn check_waits(&mut self, now: Nanos, take: &mut impl FnMut(MergeEffect<T>)) {
        let passed = now.saturating_sub(self.checked);
        self.checked = now;
        let refill = passed.saturating_mul(self.rules.refill_per_mille) / 1_000;
        self.patience = self.patience.saturating_add(refill).min(self.rules.patience);
        if self.skipped > 0 {
            self.readmit(now, take);
        }
        let waits = [self.blocked(now, 0), self.blocked(now, 1)];
        let longest = waits.iter().flatten().map(|blocked| blocked.waited).max().unwrap_or(0);
        let unusual = longest.saturating_sub(self.rules.short_wait).min(passed);
        self.patience = self.patience.saturating_sub(unusual);
        let limit = if self.patience > 0 { self.rules.max_wait } else { self.rules.short_wait };
        for class in 0..2 {
            while let Some(blocked) = self.blocked(now, class).filter(|blocked| blocked.waited >= limit) {
                self.skip(now, blocked.stream);
                take(MergeEffect::Skipped(blocked.stream as u32, blocked.waited));
                self.release(take);
            }
        }
    }

    /// For the oldest order that waits in a class: the stream that has kept it waiting longest, streams that are held
    /// aside.
    fn blocked(&self, now: Nanos, class: usize) -> Option<Blocked> {
        let fronts = self.classes[class].queues.iter().filter_map(VecDeque::front);
        let oldest = fronts.min_by_key(|first| (first.arrived, first.order.key))?;
        let blockers = (0..self.streams.len()).filter(|stream| self.keeps_back(*stream, class, oldest.order.key));
        // A stream that was held could speak only since it is free, and nobody can promise what has not come yet.
        let since = |stream: usize| self.streams[stream].free_since.max(oldest.arrived).max(oldest.order.key.stamp);
        let waits = blockers.map(|stream| Blocked { stream, waited: now.saturating_sub(since(stream)) });
        waits.max_by_key(|blocked| (blocked.waited, std::cmp::Reverse(blocked.stream)))
    }

    fn keeps_back(&self, stream: usize, class: usize, key: MergeKey) -> bool {
        let is_idle = |class: usize| self.classes[class].queues[stream].is_empty();
        let (own, other) = (self.classes[class].marks[stream], self.classes[1 - class].marks[stream]);
        let state = &self.streams[stream];
        let is_late = (is_idle(class) && own <= key) || (is_idle(1 - class) && other.mid < key.mid);
        is_late && state.is_waited_for() && !state.is_held
    }

    fn skip(&mut self, now: Nanos, stream: usize) {
        let (state, first) = (&mut self.streams[stream], self.rules.probation);
        let is_soon = state.probation > 0 && now.saturating_sub(state.skipped_at) < state.probation.saturating_mul(10);
        state.probation = if is_soon { state.probation.saturating_mul(2) } else { first };
        (state.is_skipped, state.timely_since, state.skipped_at) = (true, now, now);
        self.skipped += 1;
        self.refresh(stream);
    }

    /// Waits again for skipped streams that have been timely for long enough.
    fn readmit(&mut self, now: Nanos, take: &mut impl FnMut(MergeEffect<T>)) {
        for stream in 0..self.streams.len() {
            if !self.streams[stream].is_skipped || !self.streams[stream].is_present {
                continue;
            }
            let stamp = self.classes[0].marks[stream].stamp.min(self.classes[1].marks[stream].stamp);
            let state = &mut self.streams[stream];
            if now.saturating_sub(stamp) > self.rules.max_wait {
                state.timely_since = now;
            } else if now.saturating_sub(state.timely_since) >= state.probation {
                self.streams[stream].is_skipped = false;
                self.skipped -= 1;
                for class in &mut self.classes {
                    class.marks[stream] = class.marks[stream].max(class.frontier);
                }
                self.refresh(stream);
                take(MergeEffect::Readmitted(stream as u32));
            }
        }
    }
}
