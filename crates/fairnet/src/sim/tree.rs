//! Market data on its way down the tree, packet by packet.

use kernel::{Calendar, DelayLaw, LawTable, SpikeState, Spikes, Xoshiro};

use super::spread::Spread;
use crate::deadlines::{DeadlineRules, Deadlines, DelayMeter, FoldEffect};
use crate::hold::{ClockState, Hold, HoldInput, HoldKey, HoldRules, Released};
use crate::packet::{PacketHeader, PacketKey};
use crate::plan::{Plan, Spot};
use crate::relay::{FirstCopy, Relay, RelayEffect, RelayLimits};
use crate::seen::SeenWindow;
use crate::{DelayFold, Nanos};

/// What sending costs, and how links behave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeCosts {
    /// Work of a sender on a packet before its first copy leaves, ns.
    pub process: Nanos,
    /// How much later each copy leaves than the one before, ns.
    pub copy: Nanos,
    /// How long each copy occupies the sender, ns: what bounds its rate. At most `copy`.
    pub occupancy: Nanos,
    /// Delay of a link.
    pub link: DelayLaw,
    /// Slow links.
    pub link_spikes: Option<Spikes>,
    /// Slow proxies: every packet that one handles.
    pub stragglers: Option<Spikes>,
    /// Slow receivers.
    pub slow_receivers: Option<Spikes>,
    /// Share of copies that are lost.
    pub loss: f64,
}

/// When the root sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentPackets {
    /// How many packets.
    pub packets: u32,
    /// Packets each second.
    pub rate: f64,
    /// Whether times between packets are exponential instead of constant.
    pub is_poisson: bool,
    /// In the second half of each such period, ns, the rate is multiplied by the factor.
    pub burst: Option<(Nanos, f64)>,
}

/// Hold and release at the receivers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverClocks {
    /// How deadlines are made.
    pub rules: DeadlineRules,
    /// Standard deviation of receivers' clock errors, ns.
    pub error: f64,
}

/// One simulation.
#[derive(Clone, Debug)]
pub struct TreeSetup {
    /// The tree.
    pub plan: Plan,
    /// Whether parents rotate with each packet; otherwise all packets go the way of packet 0.
    pub is_sprayed: bool,
    /// Costs and links.
    pub costs: TreeCosts,
    /// Load.
    pub sent: SentPackets,
    /// Hold and release, if any.
    pub hold: Option<ReceiverClocks>,
    /// Receivers of one participant, a divisor of their number: the earliest copy of any counts.
    pub replicas: u32,
    /// The first packets, which figures leave out: deadlines begin at their ceiling.
    pub warm_up: u32,
    /// Seed of all laws.
    pub seed: u64,
}

/// What came out, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeFigures {
    /// Latency to the last receiver, for each packet that reached all.
    pub oml: Spread,
    /// The same in the order in which packets were sent.
    pub oml_by_packet: Vec<f64>,
    /// Latest minus earliest time at which receivers see a packet: arrival, or release if there is a hold.
    pub window: Spread,
    /// From arrival to release, for each receiver and packet.
    pub held: Spread,
    /// One-way delays of each receiver.
    pub receivers: Vec<Spread>,
    /// Packets that some receiver never got.
    pub incomplete: u32,
    /// Copies that arrived.
    pub events: u64,
}

#[derive(Clone, Copy, Debug)]
struct PacketState {
    sent: Nanos,
    deadline: Nanos,
    reached: u32,
    /// Earliest and latest arrival, earliest and latest sight.
    arrival: (Nanos, Nanos),
    sight: (Nanos, Nanos),
}

#[derive(Clone, Copy, Debug)]
enum Arrival {
    /// A copy reaches a node of a layer.
    Copy(u32, u32, u32),
    /// A receiver has handled a packet.
    Seen(u32, u32),
    /// The root sends the next packet.
    Send(u32),
    /// Delays are folded up the tree.
    Fold,
}

/// One machine: its egress and its state.
#[derive(Clone, Copy, Debug, Default)]
struct Egress {
    busy: Nanos,
    spikes: SpikeState,
}

/// A run of a simulation.
pub struct TreeRun {
    setup: TreeSetup,
    dice: Xoshiro,
    queue: Calendar<Arrival>,
    link: LawTable,
    relays: Vec<Vec<Relay>>,
    receivers: Vec<FirstCopy>,
    participants: Vec<SeenWindow>,
    machines: Vec<Vec<Egress>>,
    links: Vec<Vec<SpikeState>>,
    packets: Vec<PacketState>,
    delays: Vec<Vec<u32>>,
    held: Vec<f64>,
    clocks: Vec<f64>,
    meters: Vec<DelayMeter>,
    folds: Vec<Vec<DelayFold>>,
    deadlines: Deadlines,
    hold: Hold<Nanos>,
    effects: Vec<RelayEffect>,
    released: Vec<Released<Nanos>>,
    events: u64,
}

const SESSION: [u8; 10] = *b"simulation";
/// Delays of a receiver that are kept for its median.
const DELAYS: usize = 2_000;
/// Times of holding that are kept.
const HELD: usize = 1 << 20;

impl TreeRun {
    /// Prepares a simulation.
    pub fn new(setup: TreeSetup) -> TreeRun {
        let (widths, depth) = (setup.plan.widths().to_vec(), setup.plan.depth() as usize);
        let key = PacketKey::of_epoch(&[0; 32], setup.plan.epoch());
        let limits = RelayLimits { span: 4_096, ring: 1, ..RelayLimits::default() };
        let relay = |layer: usize, index: u32| {
            Relay::new((0, Spot { layer: layer as u32, index }), setup.plan.clone(), SESSION, key.clone(), limits)
        };
        let proxies = |layer: usize| (0..widths[layer]).map(|index| relay(layer, index)).collect();
        let receiver = FirstCopy::new(setup.plan.clone(), SESSION, key.clone(), 4_096, 0);
        let rules = setup.hold.map_or(DeadlineRules::default(), |hold| hold.rules);
        let mut dice = Xoshiro::new(setup.seed);
        let error = setup.hold.map_or(0.0, |hold| hold.error);
        let count = widths[depth] as usize;
        let fold = |layer: usize| -> Vec<DelayFold> {
            let children = |index: u32| setup.plan.children(Spot { layer: layer as u32, index }, 0).count();
            let own = |index: u32| children(index) / if layer == 0 { 1 } else { setup.plan.hedging() as usize + 1 };
            (0..widths[layer]).map(|index| DelayFold::new(0, own(index), rules)).collect()
        };
        let spikes = |layer: usize| vec![SpikeState::default(); (widths[layer] * widths[layer + 1]) as usize];
        TreeRun {
            queue: Calendar::new(10, 12),
            link: LawTable::new(&setup.costs.link),
            relays: (0..depth).map(proxies).collect(),
            receivers: vec![receiver; count],
            participants: vec![SeenWindow::new(4_096); count / setup.replicas.max(1) as usize],
            machines: widths.iter().map(|width| vec![Egress::default(); *width as usize]).collect(),
            links: (0..depth).map(spikes).collect(),
            packets: Vec::with_capacity(setup.sent.packets as usize),
            delays: vec![Vec::new(); count],
            held: Vec::new(),
            clocks: (0..count).map(|_| error * dice.normal()).collect(),
            meters: vec![DelayMeter::new(0, rules); count],
            folds: (0..depth).map(fold).collect(),
            deadlines: Deadlines::new(rules),
            hold: Hold::new(0, HoldRules::default(), ClockState { error_bound: Some(0) }),
            effects: Vec::new(),
            released: Vec::new(),
            events: 0,
            dice,
            setup,
        }
    }

    /// Runs to the end.
    pub fn run(mut self) -> TreeFigures {
        self.queue.push(1, Arrival::Send(0));
        if let Some(hold) = self.setup.hold {
            self.queue.push(hold.rules.period, Arrival::Fold);
        }
        while let Some((now, event)) = self.queue.pop() {
            self.release(now);
            match event {
                Arrival::Send(number) => self.send(now, number),
                Arrival::Copy(layer, index, number) => self.arrive(now, layer, index, number),
                Arrival::Seen(index, number) => self.receive(now, index, number),
                Arrival::Fold => self.fold(now),
            }
        }
        self.release(Nanos::MAX >> 1);
        self.figures()
    }

    fn header(&self, number: u32) -> PacketHeader {
        let (epoch, deadline) = (self.setup.plan.epoch(), self.packets[number as usize].deadline);
        PacketHeader {
            epoch,
            session: SESSION,
            tree: 0,
            sequence: u64::from(number) + 1,
            deadline,
            sent: 0,
            is_unfair: false,
        }
    }

    /// The packet number by which parents are chosen.
    fn turn(&self, number: u32) -> u64 {
        if self.setup.is_sprayed { u64::from(number) + 1 } else { 0 }
    }

    fn send(&mut self, now: Nanos, number: u32) {
        let deadline = self.deadlines.next(now);
        let none = (Nanos::MAX, 0);
        self.packets.push(PacketState { sent: now, deadline, reached: 0, arrival: none, sight: none });
        let mut effects = std::mem::take(&mut self.effects);
        effects.extend(self.setup.plan.children(Spot::ROOT, self.turn(number)).map(RelayEffect::Forward));
        self.copy(now, Spot::ROOT, number, &effects);
        effects.clear();
        self.effects = effects;
        let SentPackets { packets, rate, is_poisson, burst } = self.setup.sent;
        if number + 1 < packets {
            let factor = burst.map_or(1.0, |(period, factor)| if now % period >= period / 2 { factor } else { 1.0 });
            let mean = 1e9 / (rate * factor);
            let wait = if is_poisson { self.dice.exponential(mean) } else { mean };
            self.queue.push(now + wait as Nanos, Arrival::Send(number + 1));
        }
    }

    fn arrive(&mut self, now: Nanos, layer: u32, index: u32, number: u32) {
        self.events += 1;
        let header = self.header(number);
        if layer == self.setup.plan.depth() {
            if self.receivers[index as usize].take(now, &header, |_| true).is_ok() {
                match self.straggles(now, layer, index) {
                    0 => self.receive(now, index, number),
                    wait => self.queue.push(now + wait, Arrival::Seen(index, number)),
                }
            }
            return;
        }
        let mut effects = std::mem::take(&mut self.effects);
        let relay = &mut self.relays[layer as usize][index as usize];
        if relay.forward(now, &header, |_| true, &mut effects).is_ok() {
            let spot = Spot { layer, index };
            if !self.setup.is_sprayed {
                effects.clear();
                effects.extend(self.setup.plan.children(spot, 0).map(RelayEffect::Forward));
            }
            self.copy(now, spot, number, &effects);
        }
        effects.clear();
        self.effects = effects;
    }

    /// Sends copies one after the other.
    fn copy(&mut self, now: Nanos, from: Spot, number: u32, effects: &[RelayEffect]) {
        let (costs, layer) = (self.setup.costs, from.layer as usize);
        let straggles = self.straggles(now, from.layer, from.index);
        let machine = &mut self.machines[layer][from.index as usize];
        let mut leaves = (now + costs.process + straggles).max(machine.busy);
        machine.busy = leaves + costs.occupancy * effects.len() as Nanos;
        let below = self.setup.plan.widths()[layer + 1];
        for effect in effects {
            let RelayEffect::Forward(to) = effect else { continue };
            leaves += costs.copy;
            if self.dice.happens(costs.loss) {
                continue;
            }
            let mut delay = self.link.draw(&mut self.dice);
            if let Some(spikes) = &costs.link_spikes {
                let link = &mut self.links[layer][(from.index * below + to.index) as usize];
                delay += link.extra(now, spikes, &mut self.dice);
            }
            self.queue.push(leaves + delay, Arrival::Copy(to.layer, to.index, number));
        }
    }

    /// Additional time of a slow machine. The root is not slow: there is one.
    fn straggles(&mut self, now: Nanos, layer: u32, index: u32) -> Nanos {
        let costs = &self.setup.costs;
        let law = if layer == self.setup.plan.depth() { costs.slow_receivers } else { costs.stragglers };
        let Some(law) = law.filter(|_| layer > 0) else { return 0 };
        self.machines[layer as usize][index as usize].spikes.extra(now, &law, &mut self.dice)
    }

    fn receive(&mut self, now: Nanos, index: u32, number: u32) {
        let depth = self.setup.plan.depth();
        let is_first = self.participant(index).insert(u64::from(number) + 1);
        let packet = &mut self.packets[number as usize];
        packet.reached += u32::from(is_first);
        if is_first {
            packet.arrival = (packet.arrival.0.min(now), packet.arrival.1.max(now));
        }
        let (delay, deadline) = (now - packet.sent, packet.deadline);
        if self.delays[index as usize].len() < DELAYS {
            self.delays[index as usize].push(delay.min(u32::MAX.into()) as u32);
        }
        if self.setup.hold.is_none() {
            return;
        }
        if let Some(report) = self.meters[index as usize].step(now, Some(delay)) {
            let (parent, child) = self.fold_place(depth, index);
            self.folds[depth as usize - 1][parent].step(now, Some((child, report)), &mut Vec::new());
        }
        if !is_first {
            return;
        }
        // A receiver whose clock is ahead releases early by as much.
        let deadline = deadline.saturating_add_signed(-self.clocks[index as usize] as i64);
        let key = HoldKey { deadline, tree: 0, sequence: u64::from(number), receiver: index };
        self.hold.step(now, HoldInput::Packet(key, now, false), &mut self.released);
        self.see(now);
    }

    /// The participant of a receiver. Its replicas lie at opposite ends of the tree, since whoever is late in the order
    /// of sending in one place is early in the other.
    fn participant(&mut self, receiver: u32) -> &mut SeenWindow {
        let count = self.participants.len();
        let (fold, place) = (receiver as usize / count, receiver as usize % count);
        &mut self.participants[if fold.is_multiple_of(2) { place } else { count - 1 - place }]
    }

    /// Parent of a node in packet 0, and its place among that parent's own children.
    fn fold_place(&self, layer: u32, index: u32) -> (usize, u32) {
        let parent = self.setup.plan.parents(Spot { layer, index }, 0).next().unwrap_or(Spot::ROOT);
        let place = self.setup.plan.children(parent, 0).position(|child| child.index == index).unwrap_or(0);
        (parent.index as usize, place as u32)
    }

    /// Ends the period of every fold, from the leaves to the root.
    fn fold(&mut self, now: Nanos) {
        let mut out = Vec::new();
        for layer in (0..self.folds.len()).rev() {
            for index in 0..self.folds[layer].len() {
                self.folds[layer][index].step(now, None, &mut out);
                let report = out
                    .drain(..)
                    .find_map(|effect| if let FoldEffect::Report(most) = effect { Some(most) } else { None });
                match (report, layer) {
                    (Some(most), 0) => self.deadlines.report(most),
                    (Some(most), _) => {
                        let (parent, child) = self.fold_place(layer as u32, index as u32);
                        self.folds[layer - 1][parent].step(now - 1, Some((child, most)), &mut Vec::new());
                    }
                    (None, _) => {}
                }
            }
        }
        if self.packets.len() < self.setup.sent.packets as usize
            && let Some(hold) = self.setup.hold
        {
            self.queue.push(now + hold.rules.period, Arrival::Fold);
        }
    }

    /// Releases what is due before the next event.
    fn release(&mut self, now: Nanos) {
        if self.setup.hold.is_none() {
            return;
        }
        while let Some(due) = self.hold.due().filter(|due| *due <= now) {
            self.hold.step(due, HoldInput::Tick, &mut self.released);
            self.see(due);
        }
    }

    fn see(&mut self, now: Nanos) {
        for shown in self.released.drain(..) {
            let packet = &mut self.packets[shown.key.sequence as usize];
            packet.sight = (packet.sight.0.min(now), packet.sight.1.max(now));
            if self.held.len() < HELD && shown.key.sequence >= u64::from(self.setup.warm_up) {
                self.held.push((now - shown.item) as f64 / 1e3);
            }
        }
    }

    fn figures(mut self) -> TreeFigures {
        let participants = self.participants.len() as u32;
        let is_held = self.setup.hold.is_some();
        let counted = self.packets.get(self.setup.warm_up as usize..).unwrap_or_default();
        let complete: Vec<&PacketState> = counted.iter().filter(|packet| packet.reached == participants).collect();
        let incomplete = (counted.len() - complete.len()) as u32;
        let last = |packet: &&PacketState| if is_held { packet.sight.1 } else { packet.arrival.1 };
        let first = |packet: &&PacketState| if is_held { packet.sight.0 } else { packet.arrival.0 };
        let oml: Vec<f64> = complete.iter().map(|packet| (last(packet) - packet.sent) as f64 / 1e3).collect();
        let window = complete.iter().map(|packet| (last(packet) - first(packet)) as f64 / 1e3).collect();
        let spread =
            |delays: &mut Vec<u32>| Spread::new(delays.drain(..).map(|delay| f64::from(delay) / 1e3).collect());
        TreeFigures {
            oml: Spread::new(oml.clone()),
            oml_by_packet: oml,
            window: Spread::new(window),
            held: Spread::new(std::mem::take(&mut self.held)),
            receivers: self.delays.iter_mut().map(spread).collect(),
            incomplete,
            events: self.events,
        }
    }
}
