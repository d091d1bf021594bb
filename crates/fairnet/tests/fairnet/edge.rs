//! The way out as a whole, under seeded faults: root, relays, receivers and the configuration manager on one queue.
//! Links lose, copy, delay and reorder; strangers forge first copies and replay old ones; proxies die and come back.

use std::collections::BTreeMap;

use fairnet::*;
use kernel::{Calendar, Xoshiro};

const MS: Nanos = 1_000_000;
const SESSION: [u8; 10] = *b"0001000001";
const SECRET: [u8; 32] = [9; 32];
const PROXIES: u64 = 8;
const RECEIVERS: u64 = 24;
/// Machines: the root is 0, proxies begin at 1, receivers at 100.
const RECEIVER: u64 = 100;

/// What may go wrong.
#[derive(Clone, Copy)]
struct Faults {
    /// Per cent of datagrams.
    loss: f64,
    copies: f64,
    forged: f64,
    replayed: f64,
    /// Proxies that die, one after the other.
    kills: u64,
}

enum Event {
    Publish(u64),
    Datagram(u64, Vec<u8>),
    Rewind(u64, u64, RewindRequest),
    Install(u64, Plan, Vec<u64>),
    Heartbeat(u64),
    Manage,
    GapTimer(u64),
    Release,
    Kill(u64),
    Revive(u64),
    Told(u64, u64),
}

struct Receiver {
    first: FirstCopy,
    gaps: Gaps<Vec<u8>>,
    plan: Plan,
    seats: Vec<u64>,
    shown: u64,
    shown_at: Nanos,
    /// When its timer is set for.
    timer: Nanos,
    /// The longest time without a packet.
    pause: Nanos,
}

struct World {
    dice: Xoshiro,
    faults: Faults,
    queue: Calendar<Event>,
    relays: BTreeMap<u64, Relay>,
    /// By epoch: which machine has which place.
    seats: BTreeMap<u32, Vec<u64>>,
    epochs: BTreeMap<u64, u32>,
    dead: BTreeMap<u64, bool>,
    receivers: Vec<Receiver>,
    hold: Hold<Vec<u8>>,
    release_at: Nanos,
    roster: Roster,
    deadlines: Deadlines,
    plan: Plan,
    packets: u64,
    /// Copies that an adversary may send again.
    old: Vec<Vec<u8>>,
    unfair: u64,
    forged_taken: u64,
    log: blake3::Hasher,
}

fn key(epoch: u32) -> PacketKey {
    PacketKey::of_epoch(&SECRET, epoch)
}

fn body(sequence: u64) -> Vec<u8> {
    blake3::hash(&sequence.to_be_bytes()).as_bytes().to_vec()
}

impl World {
    fn new(seed: u64, packets: u64, faults: Faults) -> World {
        let mut roster = Roster::new(0, RosterRules::default());
        let mut out = Vec::new();
        for member in 1..=PROXIES {
            roster.step(0, RosterInput::Join(member, MemberRole::Proxy), &mut out);
        }
        let plan = World::plan_of(&roster);
        let epoch = plan.epoch();
        let seats: Vec<u64> = (1..=PROXIES).collect();
        let spot = |index: u64| Spot { layer: 1, index: index as u32 };
        let relay = |spot| Relay::new((0, spot), plan.clone(), SESSION, key(epoch), RelayLimits::default());
        let proxies = (0..PROXIES).map(|index| (index + 1, relay(spot(index))));
        let relays: BTreeMap<u64, Relay> = std::iter::once((0, relay(Spot::ROOT))).chain(proxies).collect();
        let receiver = |_| Receiver {
            first: FirstCopy::new(plan.clone(), SESSION, key(epoch), 1 << 14, RelayLimits::default().overlap),
            gaps: Gaps::new(1, GapRules { tries: 40, ..GapRules::default() }),
            plan: plan.clone(),
            seats: seats.clone(),
            shown: 0,
            shown_at: 0,
            timer: Nanos::MAX,
            pause: 0,
        };
        let mut world = World {
            dice: Xoshiro::new(seed),
            faults,
            queue: Calendar::new(12, 12),
            seats: BTreeMap::from([(epoch, seats.clone())]),
            epochs: (1..=PROXIES).map(|machine| (machine, epoch)).collect(),
            dead: BTreeMap::new(),
            receivers: (0..RECEIVERS).map(receiver).collect(),
            hold: Hold::new(0, HoldRules::default(), ClockState { error_bound: Some(100) }),
            release_at: Nanos::MAX,
            deadlines: Deadlines::new(DeadlineRules::default()),
            relays,
            roster,
            plan,
            packets,
            old: Vec::new(),
            unfair: 0,
            forged_taken: 0,
            log: blake3::Hasher::new(),
        };
        world.register(0);
        world
    }

    /// A tree of the present proxies.
    fn plan_of(roster: &Roster) -> Plan {
        let proxies = roster.members(MemberRole::Proxy).count() as u32;
        Plan::with_widths(roster.epoch(), &[proxies, RECEIVERS as u32], 1, 1).expect("two proxies at least")
    }

    fn register(&mut self, now: Nanos) {
        for relay in self.relays.values_mut() {
            for peer in RECEIVER..RECEIVER + RECEIVERS {
                relay.step(now, RelayInput::Register(peer), &mut Vec::new());
            }
        }
    }

    fn run(mut self) -> World {
        self.deadlines.report(400_000);
        self.queue.push(MS, Event::Publish(1));
        self.queue.push(MS, Event::Manage);
        (1..=PROXIES).for_each(|proxy| self.queue.push(MS, Event::Heartbeat(proxy)));
        let first = self.dice.bits() % PROXIES;
        for kill in 0..self.faults.kills {
            let at = (50 + 700 * kill) * MS + self.dice.bits() % (20 * MS);
            self.queue.push(at, Event::Kill(1 + (first + 3 * kill) % PROXIES));
        }
        // Members speak for ever: the world ends some time after the last packet.
        let end = self.packets * 200_000 + 900 * MS;
        while let Some((now, event)) = self.queue.pop().filter(|(now, _)| *now < end) {
            self.step(now, event);
        }
        self
    }

    fn is_dead(&self, machine: u64) -> bool {
        self.dead.get(&machine).copied().unwrap_or(false)
    }

    fn step(&mut self, now: Nanos, event: Event) {
        match event {
            Event::Publish(sequence) => self.publish(now, sequence),
            Event::Datagram(to, bytes) => self.on_datagram(now, to, bytes),
            Event::Rewind(to, from, request) if !self.is_dead(to) => {
                self.relay(now, to, RelayInput::Rewind(from, request), None);
            }
            Event::Rewind(..) => {}
            Event::Install(machine, plan, seats) => self.install(now, machine, plan, seats),
            Event::Heartbeat(proxy) => self.heartbeat(now, proxy),
            Event::Manage => {
                self.manage(now, RosterInput::Tick);
                self.queue.push(now + 10 * MS, Event::Manage);
            }
            Event::GapTimer(receiver) => {
                self.receivers[receiver as usize].timer = Nanos::MAX;
                self.gaps(now, receiver, GapInput::Tick);
            }
            Event::Release => {
                self.release_at = Nanos::MAX;
                self.release(now, HoldInput::Tick);
            }
            Event::Kill(proxy) => {
                self.dead.insert(proxy, true);
                self.queue.push(now + 500 * MS, Event::Revive(proxy));
            }
            Event::Revive(proxy) => {
                self.dead.insert(proxy, false);
                // A machine that comes back has forgotten everything, and asks to join until it may.
                self.epochs.insert(proxy, 0);
            }
            Event::Told(receiver, last) => self.gaps(now, receiver, GapInput::Sent(last, now)),
        }
    }

    fn publish(&mut self, now: Nanos, sequence: u64) {
        let deadline = self.deadlines.next(now);
        let epoch = self.plan.epoch();
        let header = PacketHeader { epoch, session: SESSION, tree: 0, sequence, deadline, sent: now, is_unfair: false };
        let mut bytes = Vec::new();
        header.seal(&key(epoch), &body(sequence), &mut bytes);
        self.relay(now, 0, RelayInput::Packet(&bytes), Some(&bytes));
        if self.old.len() < 64 {
            self.old.push(bytes);
        }
        if sequence < self.packets {
            self.queue.push(now + 200_000, Event::Publish(sequence + 1));
        } else {
            (0..RECEIVERS).for_each(|receiver| self.queue.push(now + 3 * MS, Event::Told(receiver, sequence)));
        }
    }

    /// A step of a relay; what it sends goes on the links.
    fn relay(&mut self, now: Nanos, machine: u64, input: RelayInput<'_>, bytes: Option<&[u8]>) {
        let mut out = Vec::new();
        let relay = self.relays.get_mut(&machine).expect("a relay");
        relay.step(now, input, &mut out);
        for effect in out {
            match effect {
                RelayEffect::Forward(Spot { layer: 1, index }) => {
                    let to = self.seats[&self.plan.epoch()][index as usize];
                    self.send(now, to, bytes.expect("a datagram"));
                }
                RelayEffect::Forward(Spot { index, .. }) => {
                    self.send(now, RECEIVER + u64::from(index), bytes.expect("a datagram"));
                }
                RelayEffect::Resend(to, sequence) => {
                    let kept = self.relays[&machine].kept(sequence).expect("kept").to_vec();
                    self.send(now, to, &kept);
                }
                RelayEffect::Dropped(_) | RelayEffect::Refused(_) => {}
            }
        }
    }

    fn send(&mut self, now: Nanos, to: u64, bytes: &[u8]) {
        let Faults { loss, copies, forged, replayed, .. } = self.faults;
        if self.dice.happens(forged) {
            let mut lie = bytes.to_vec();
            let at = self.dice.bits() as usize % lie.len();
            lie[at] ^= 1 << (self.dice.bits() % 8);
            // Faster than any true copy.
            self.queue.push(now + 1, Event::Datagram(to, lie));
        }
        if self.dice.happens(replayed) && !self.old.is_empty() {
            let old = self.old[self.dice.bits() as usize % self.old.len()].clone();
            self.queue.push(now + 1, Event::Datagram(to, old));
        }
        for _ in 0..1 + u32::from(self.dice.happens(copies)) {
            if !self.dice.happens(loss) {
                let delay = 20_000 + self.dice.exponential(15_000.0) as Nanos;
                self.queue.push(now + delay, Event::Datagram(to, bytes.to_vec()));
            }
        }
    }

    fn on_datagram(&mut self, now: Nanos, to: u64, bytes: Vec<u8>) {
        if to < RECEIVER {
            if !self.is_dead(to) {
                self.relay(now, to, RelayInput::Packet(&bytes), Some(&bytes));
            }
            return;
        }
        let Ok((header, payload)) = PacketHeader::open(&bytes) else { return };
        let receiver = &mut self.receivers[(to - RECEIVER) as usize];
        if receiver.first.take(now, &header, |key| PacketHeader::is_authentic(&bytes, key)).is_ok() {
            self.forged_taken += u64::from(payload != body(header.sequence));
            let packet = GapInput::Packet(header.sequence, header.deadline, payload.to_vec());
            self.gaps(now, to - RECEIVER, packet);
        }
    }

    fn gaps(&mut self, now: Nanos, receiver: u64, input: GapInput<Vec<u8>>) {
        let mut out = Vec::new();
        let own = &mut self.receivers[receiver as usize];
        own.gaps.step(now, input, &mut out);
        if let Some(due) = own.gaps.due().filter(|due| *due < own.timer) {
            own.timer = due;
            self.queue.push(due, Event::GapTimer(receiver));
        }
        for effect in out {
            match effect {
                GapEffect::Deliver(sequence, deadline, item) => {
                    let key = HoldKey { deadline, tree: 0, sequence, receiver: receiver as u32 };
                    self.release(now, HoldInput::Packet(key, item, false));
                }
                GapEffect::Rewind { first, count, attempt } => self.ask(now, receiver, (first, count), attempt),
                GapEffect::Lost(first, count) => panic!("{count} packets from {first} on are lost"),
            }
        }
    }

    /// Asks the parents of the packet in turn, then the root, and again.
    fn ask(&mut self, now: Nanos, receiver: u64, packets: (u64, u16), attempt: u16) {
        let Receiver { plan, seats, .. } = &self.receivers[receiver as usize];
        let spot = Spot { layer: 2, index: receiver as u32 };
        let from: Vec<Spot> = plan.rewinders(spot, packets.0).collect();
        let target = from[usize::from(attempt) % from.len()];
        let machine = if target == Spot::ROOT { 0 } else { seats[target.index as usize] };
        let epoch = plan.epoch();
        let request = RewindRequest::seal(epoch, 0, packets, RECEIVER + receiver, &key(epoch));
        if !self.dice.happens(self.faults.loss) {
            self.queue.push(now + 30_000, Event::Rewind(machine, RECEIVER + receiver, request));
        }
    }

    fn release(&mut self, now: Nanos, input: HoldInput<Vec<u8>>) {
        let mut out = Vec::new();
        self.hold.step(now, input, &mut out);
        if let Some(due) = self.hold.due().filter(|due| *due < self.release_at) {
            self.release_at = due;
            self.queue.push(due, Event::Release);
        }
        for shown in out {
            let receiver = &mut self.receivers[shown.key.receiver as usize];
            assert_eq!(shown.key.sequence, receiver.shown + 1, "in sequence, each once");
            assert_eq!(shown.item, body(shown.key.sequence), "what the root sent");
            assert!(now >= shown.key.deadline, "not before its deadline");
            let late = now - shown.key.deadline;
            assert_eq!(shown.unfair, (late > 1_000).then_some(Unfair::Late(late)), "what was late says so");
            self.unfair += u64::from(shown.unfair.is_some());
            receiver.pause = receiver.pause.max(now - receiver.shown_at);
            (receiver.shown, receiver.shown_at) = (shown.key.sequence, now);
            self.log.update(&now.to_be_bytes()).update(&shown.key.receiver.to_be_bytes());
        }
    }

    fn heartbeat(&mut self, now: Nanos, proxy: u64) {
        if !self.is_dead(proxy) {
            match self.epochs[&proxy] {
                0 => self.manage(now, RosterInput::Join(proxy, MemberRole::Proxy)),
                epoch => self.manage(now, RosterInput::Heartbeat(proxy, epoch)),
            }
        }
        self.queue.push(now + 50 * MS, Event::Heartbeat(proxy));
    }

    fn manage(&mut self, now: Nanos, input: RosterInput) {
        let mut out = Vec::new();
        self.roster.step(now, input, &mut out);
        if out.iter().any(|effect| matches!(effect, RosterEffect::Epoch(_))) {
            let (plan, seats) =
                (World::plan_of(&self.roster), self.roster.members(MemberRole::Proxy).collect::<Vec<u64>>());
            let machines = seats.iter().copied().chain(RECEIVER..RECEIVER + RECEIVERS);
            machines.for_each(|machine| {
                self.queue.push(now + 100_000, Event::Install(machine, plan.clone(), seats.clone()));
            });
            // The root uses the new plan when the others know it.
            self.queue.push(now + 200_000, Event::Install(0, plan, seats));
        }
    }

    fn install(&mut self, now: Nanos, machine: u64, plan: Plan, seats: Vec<u64>) {
        let epoch = plan.epoch();
        if machine >= RECEIVER {
            let receiver = &mut self.receivers[(machine - RECEIVER) as usize];
            receiver.first.install(now, plan.clone(), key(epoch));
            (receiver.plan, receiver.seats) = (plan, seats);
            return;
        }
        if self.is_dead(machine) {
            return;
        }
        self.epochs.insert(machine, epoch);
        if machine == 0 {
            self.plan = plan.clone();
            self.seats.insert(epoch, seats.clone());
        }
        let index = seats.iter().position(|seat| *seat == machine).unwrap_or(0) as u32;
        let spot = if machine == 0 { Spot::ROOT } else { Spot { layer: 1, index } };
        self.relays.get_mut(&machine).expect("a relay").step(
            now,
            RelayInput::Install(spot, plan, key(epoch)),
            &mut Vec::new(),
        );
    }
}

fn check(seed: u64, packets: u64, faults: Faults) -> World {
    let world = World::new(seed, packets, faults).run();
    for (at, receiver) in world.receivers.iter().enumerate() {
        assert_eq!(receiver.shown, packets, "receiver {at}, seed {seed}");
        assert!(receiver.pause < 1_000 * MS, "receiver {at} saw nothing for {} ms", receiver.pause / MS);
    }
    assert_eq!(world.forged_taken, 0);
    world
}

const CALM: Faults = Faults { loss: 0.0, copies: 0.0, forged: 0.0, replayed: 0.0, kills: 0 };

#[test]
fn edge_without_faults_is_fair_for_everybody() {
    assert_eq!(check(1, 1_000, CALM).unfair, 0);
}

#[test]
fn edge_recovers_losses_and_refuses_forged_and_replayed_copies() {
    let faults = Faults { loss: 0.05, copies: 0.05, forged: 0.2, replayed: 0.1, kills: 0 };
    for seed in 1..=8 {
        let world = check(seed, 1_500, faults);
        // Most losses are hedged or recovered before their deadline.
        assert!(world.unfair * 20 < 1_500 * RECEIVERS, "{} late", world.unfair);
    }
}

#[test]
fn edge_goes_on_when_proxies_die_and_come_back() {
    let faults = Faults { loss: 0.01, copies: 0.01, forged: 0.05, replayed: 0.05, kills: 3 };
    for seed in 1..=6 {
        let world = check(seed, 12_000, faults);
        assert!(world.roster.epoch() as u64 >= PROXIES + 2, "nobody was evicted in epoch {}", world.roster.epoch());
        assert_eq!(world.roster.members(MemberRole::Proxy).count() as u64, PROXIES, "all are back");
    }
}

#[test]
fn edge_is_one_trace_for_one_seed() {
    let faults = Faults { loss: 0.05, copies: 0.05, forged: 0.1, replayed: 0.1, kills: 1 };
    let trace = |seed| check(seed, 1_500, faults).log.finalize();
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}
