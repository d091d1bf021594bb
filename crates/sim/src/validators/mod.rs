//! Validators among themselves: engines of `consensus` over simulated links, disks and ledgers.
//!
//! Every engine is driven as a node drives it: what a turn says is sent when its entries are durable, and is lost if
//! the process is killed before. Links delay, break, and lose what is under way; a validator that is killed comes back
//! with its vote log, or without. Ledgers are chains of hashes that take time to apply. Some validators are faulty.
//!
//! In every run: no two correct validators output different superblocks; none says two different things where one may
//! be said, restarts and lost logs included; certificates hold; evidence convicts the faulty alone; frames of correct
//! validators are taken; what is under way is bounded; and in the end every correct validator has applied the same
//! blocks, with every transaction that a correct one was given.
//!
//! The ledgers can be real ones (`exchange`): then validators with evidence accuse, and in the end nobody but the
//! faulty is convicted.
//!
//! Where there are epochs, one validator after the other sits one out: it follows, and hands what it is given to
//! another.
//!
//! Times are in microseconds. A broken invariant panics.

mod checks;
mod drawn;
mod exchange;
mod faulty;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use consensus::{
    ALL_HEIGHTS, Chain, Committee, Decided, Engine, Entry, Finality, Frame, Index, Members, Payload, Protocol, Record,
    Rules, Setup, Start, Timer, Turn, Vote, tendermint,
};
use primitives::{Digest, SecretKey};

use self::exchange::State;
use crate::dice::Dice;
pub use drawn::run_validators;

/// What a faulty validator does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Faults {
    /// Says nothing.
    Silent,
    /// Proposes two sub-blocks for each height, one to some and one to others.
    Equivocating,
    /// Answers votes with any votes.
    Random,
    /// Sends bytes that mean nothing, frames of other epochs and heights, false certificates and answers.
    Garbage,
}

const UNIT: u64 = 20_000;
const GRACE: u64 = 8_000;
const TICK: u64 = 25_000;
const HEARTBEAT: u64 = 500_000;

#[derive(Clone, Debug)]
enum Event {
    Frame {
        from: Index,
        link: u64,
        bytes: Vec<u8>,
    },
    Timer {
        life: u64,
        height: u64,
        timer: Timer,
    },
    Tick {
        life: u64,
    },
    /// What waited for the sync of a turn.
    Durable {
        life: u64,
        turn: usize,
    },
    /// Inputs were gathered for long enough.
    Turn {
        life: u64,
    },
    Applied {
        life: u64,
        height: u64,
    },
    Rooted {
        life: u64,
        height: u64,
    },
    Up {
        peer: Index,
        link: u64,
    },
    Down {
        peer: Index,
    },
    Submit(u64),
    Kill {
        loses_log: bool,
    },
    Wake {
        rejoins: bool,
    },
    Cut {
        other: Index,
    },
}

#[derive(Clone)]
struct Block {
    digest: Digest,
    sub_blocks: Vec<(Index, Payload)>,
    root: Digest,
}

#[derive(Default)]
struct Node {
    engine: Option<Engine>,
    /// The engine's epoch.
    epoch: u64,
    /// Certificates up to here are sure to be there after a restart.
    archived: u64,
    /// Links that are up.
    up: BTreeSet<Index>,
    /// Counts starts; what belongs to an earlier one is void.
    life: u64,
    log: Vec<(u64, Entry)>,
    /// It votes at no height below, as an earlier log is lost; `u64::MAX` while it does not know from where on it may.
    floor: u64,
    /// The votes in the log, by height.
    logged: BTreeSet<(u64, Vote)>,
    durable_at: u64,
    /// Turns that are being written.
    writing: u64,
    /// Whether a turn is due.
    gathers: bool,
    blocks: BTreeMap<u64, Block>,
    finality: BTreeMap<u64, Finality>,
    /// Decided and not applied yet.
    decided: BTreeMap<u64, Block>,
    waiting: BTreeSet<u64>,
    /// Proposed and not seen to be in.
    proposed: BTreeMap<u64, BTreeSet<u64>>,
    /// The ledger, where it is a real one.
    state: Option<State>,
    /// When it last knew of a decision.
    decided_at: u64,
    stopped: bool,
}

/// What was seen in a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Superblocks.
    pub heights: u64,
    /// Starts of a validator that was killed.
    pub restarts: u64,
    /// Superblocks, at each validator, without all sub-blocks.
    pub partial: u64,
    /// Contradictory statements that were proved.
    pub evidence: u64,
    /// Heights that were taken from another's archive.
    pub synced: u64,
    /// Transactions.
    pub transactions: u64,
    /// Frames sent.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Epochs that ended.
    pub epochs: u64,
    /// Who was convicted in real ledgers.
    pub convicted: Vec<Index>,
    /// From a transaction's arrival to the certificate of its superblock at the validator that took it, in ascending
    /// order.
    pub latencies: Vec<u64>,
}

impl Report {
    /// The latency that this share of transactions is below, in microseconds; 0 without transactions.
    pub fn latency(&self, share: f64) -> u64 {
        let at = (self.latencies.len() as f64 * share) as usize;
        self.latencies.get(at.min(self.latencies.len().saturating_sub(1))).copied().unwrap_or(0)
    }
}

/// A network of validators, and what is to happen to it.
pub struct Network {
    /// What all validators do alike.
    pub rules: Rules,
    /// Who is faulty.
    pub faults: BTreeMap<Index, Faults>,
    /// Links that break.
    pub cuts: u64,
    /// Validators that are killed, one at a time.
    pub kills: u64,
    /// Times that all are killed.
    pub blackouts: u64,
    /// Validators that are killed and lose their vote log.
    pub lost_logs: u64,
    /// Who starts two seconds later than the others.
    pub late: Option<Index>,
    /// Whether validator 0 lies to those who catch up.
    pub liars: bool,
    /// Whose ledger and disk are slow.
    pub slow: Option<Index>,
    /// Whether some messages take much longer than others.
    pub tails: bool,
    /// Whether votes are sent before they are durable: a broken shell, to be caught.
    pub forgetful: bool,
    /// Whose ledger computes something else.
    pub wrong_ledger: Option<Index>,
    /// Whether ledgers are real ones.
    pub exchange: bool,
    /// One-way delays between validators, instead of about a millisecond everywhere.
    pub delays: Option<Vec<Vec<u64>>>,
    /// How long inputs are gathered before a turn is made of them; 0 for a turn each.
    pub quantum: u64,
    /// The unit of the timers of rounds.
    pub unit: u64,
    /// How long absent sub-blocks are waited for.
    pub grace: u64,
    /// After how long without a decision the next height begins with nothing to propose; `u64::MAX` for never, which is
    /// a broken shell, to be caught.
    pub heartbeat: u64,
    /// Heights of an epoch, if validators change; one then follows, each epoch another.
    pub epoch_heights: Option<u64>,
    committee: Committee,
    secrets: Vec<SecretKey>,
    nodes: Vec<Node>,
    links: BTreeMap<(Index, Index), u64>,
    queue: BinaryHeap<Reverse<(u64, u64, Index)>>,
    events: BTreeMap<u64, Event>,
    /// With the epoch of the engine that made them.
    turns: Vec<Option<(u64, Turn)>>,
    count: u64,
    steps: u64,
    now: u64,
    dice: Dice,
    said: BTreeMap<(Index, u64, Vote), Vote>,
    /// The same, where heights are decided by rounds.
    said_in_rounds: BTreeMap<(Index, u64, u32, Option<tendermint::Kind>), tendermint::Message>,
    superblocks: BTreeMap<u64, Digest>,
    /// Height and round in which a faulty validator has made its two proposals.
    proposed_falsely: BTreeSet<(u64, u32)>,
    transactions: u64,
    /// When and where each transaction arrived.
    arrived: BTreeMap<u64, (u64, Index)>,
    started: bool,
    report: Report,
}

fn key(a: Index, b: Index) -> (Index, Index) {
    (a.min(b), a.max(b))
}

/// A payload lists the numbers of transactions.
fn payload_of(transactions: &BTreeSet<u64>) -> Payload {
    let mut bytes = b"sub-block".to_vec();
    transactions.iter().for_each(|number| bytes.extend(number.to_be_bytes()));
    bytes.into()
}

fn check_payload(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"sub-block")?;
    rest.len().is_multiple_of(8).then_some(rest.len() / 8)
}

fn transactions_of(payload: &[u8]) -> BTreeSet<u64> {
    match payload.strip_prefix(b"sub-block") {
        Some(numbers) => numbers.chunks(8).map(|chunk| u64::from_be_bytes(chunk.try_into().expect("eight"))).collect(),
        None => exchange::transactions_of(payload),
    }
}

impl Network {
    /// A network of so many validators with the first engine; the seed decides all.
    pub fn new(size: usize, seed: u64) -> Network {
        Network::of(Protocol::Dbft, size, seed)
    }

    /// A network of so many validators; the seed decides all.
    pub fn of(protocol: Protocol, size: usize, seed: u64) -> Network {
        let rules = match protocol {
            Protocol::Dbft => Rules::default(),
            Protocol::Tendermint => Rules::tendermint(),
        };
        let secrets: Vec<SecretKey> = (0..size).map(|i| SecretKey::from_seed([i as u8 + 1; 32])).collect();
        Network {
            rules: Rules { payload_bytes: 10_000, ..rules },
            faults: BTreeMap::new(),
            cuts: 0,
            kills: 0,
            blackouts: 0,
            lost_logs: 0,
            late: None,
            liars: false,
            slow: None,
            tails: true,
            forgetful: false,
            wrong_ledger: None,
            exchange: false,
            delays: None,
            quantum: 0,
            unit: UNIT,
            grace: GRACE,
            heartbeat: HEARTBEAT,
            arrived: BTreeMap::new(),
            epoch_heights: None,
            committee: Committee::new(size),
            secrets,
            nodes: (0..size).map(|_| Node::default()).collect(),
            links: BTreeMap::new(),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            turns: Vec::new(),
            count: 0,
            steps: 0,
            now: 0,
            dice: Dice::new(seed),
            said: BTreeMap::new(),
            said_in_rounds: BTreeMap::new(),
            superblocks: BTreeMap::new(),
            proposed_falsely: BTreeSet::new(),
            transactions: 0,
            started: false,
            report: Report::default(),
        }
    }

    /// A payload of these transactions for this network's ledgers.
    fn payload_of(&self, transactions: &BTreeSet<u64>) -> Payload {
        if self.exchange { exchange::payload_of(transactions) } else { payload_of(transactions) }
    }

    fn epoch_of(&self, height: u64) -> u64 {
        self.epoch_heights.map_or(0, |length| height.saturating_sub(1) / length)
    }

    /// The validators of an epoch in the order of their indices there, and after them who follows.
    fn order(&self, epoch: u64) -> Vec<Index> {
        let mut order: Vec<Index> = self.committee.members().collect();
        if self.epoch_heights.is_some() && order.len() > 1 {
            let size = order.len();
            order.rotate_left(epoch as usize % size);
        }
        order
    }

    fn local(&self, epoch: u64, of: Index) -> Index {
        self.order(epoch).iter().position(|index| *index == of).expect("all are listed") as Index
    }

    fn chain(&self, epoch: u64) -> Chain {
        let heights = match self.epoch_heights {
            Some(length) => epoch * length + 1..=(epoch + 1) * length,
            None => ALL_HEIGHTS,
        };
        let mut keys: Vec<_> =
            self.order(epoch).iter().map(|index| self.secrets[usize::from(*index)].public()).collect();
        if self.epoch_heights.is_some() && keys.len() > 1 {
            keys.pop();
        }
        Chain { genesis: Digest([7; 32]), epoch, heights, keys }
    }

    fn correct(&self) -> Vec<Index> {
        self.committee.members().filter(|index| !self.faults.contains_key(index)).collect()
    }

    fn push(&mut self, delay: u64, to: Index, event: Event) {
        self.count += 1;
        self.events.insert(self.count, event);
        self.queue.push(Reverse((self.now + delay, self.count, to)));
    }

    /// Starts the validators, and lays down when what will happen.
    pub fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        if self.exchange {
            let network = self.chain(0).genesis;
            for index in self.committee.members() {
                self.nodes[usize::from(index)].state = Some(State::new(&self.secrets, index, network));
            }
        }
        for index in self.correct() {
            if self.late == Some(index) {
                self.push(2_000_000, index, Event::Wake { rejoins: false });
            } else {
                self.push(0, index, Event::Wake { rejoins: false });
            }
        }
        for a in self.committee.members() {
            for b in self.committee.members().filter(|b| *b > a) {
                self.links.insert((a, b), 0);
                self.connect(a, b, 100);
            }
        }
        let correct = self.correct();
        let some = |network: &mut Network| correct[network.dice.below(correct.len() as u64) as usize];
        for _ in 0..self.cuts {
            let (a, b) = (some(self), some(self));
            let when = self.dice.below(1_500_000);
            if a != b {
                self.push(when, a, Event::Cut { other: b });
            }
        }
        for _ in 0..self.kills {
            let (who, when) = (some(self), self.dice.below(1_500_000));
            self.push(when, who, Event::Kill { loses_log: false });
        }
        // No more than f may forget at a time.
        for i in 0..self.lost_logs {
            let who = some(self);
            self.push(300_000 + i * 2_000_000, who, Event::Kill { loses_log: true });
        }
        for i in 0..self.blackouts {
            let when = 200_000 * (i + 1) + self.dice.below(100_000);
            for index in self.correct() {
                let apart = self.dice.below(200);
                self.push(when + apart, index, Event::Kill { loses_log: false });
            }
        }
    }

    /// So many transactions to each validator, over a second and a half.
    pub fn submit_everywhere(&mut self, each: u64) {
        self.start();
        for index in self.correct() {
            for i in 0..each {
                self.transactions += 1;
                let when = i * (1_500_000 / each) + self.dice.below(10_000);
                self.push(when, index, Event::Submit(self.transactions));
            }
        }
    }

    fn connect(&mut self, a: Index, b: Index, delay: u64) {
        let link = self.links[&key(a, b)];
        self.push(delay, a, Event::Up { peer: b, link });
        let apart = self.dice.below(500);
        self.push(delay + apart, b, Event::Up { peer: a, link });
    }

    fn disconnect(&mut self, a: Index, b: Index, pause: u64) {
        *self.links.get_mut(&key(a, b)).expect("a link") += 1;
        for (at, other) in [(a, b), (b, a)] {
            let delay = self.dice.below(30_000);
            self.push(delay.min(pause), at, Event::Down { peer: other });
        }
        self.connect(a, b, pause);
    }

    /// Runs until all is decided, applied and certified everywhere.
    pub fn run_until_settled(&mut self) {
        while !self.is_settled() {
            assert!(self.count < 40_000_000 && self.now < 400_000_000, "no end: {}", self.describe());
            let Some(Reverse((time, number, to))) = self.queue.pop() else { panic!("stuck: {}", self.describe()) };
            self.now = time;
            let event = self.events.remove(&number).expect("listed");
            self.handle(to, event);
        }
    }

    fn describe(&self) -> String {
        let node = |index: Index| {
            let node = &self.nodes[usize::from(index)];
            let engine = node.engine.as_ref().map(|e| {
                let slots = |(height, live): (u64, Option<&consensus::Height>)| (height, live.map(|l| self.slots(l)));
                let live: Vec<_> = e.live().map(slots).collect();
                let round = e.round();
                (e.decided(), e.certified(), e.opening(), e.is_silent(), e.connected(), round, live)
            });
            format!("{index}: {engine:?} waiting {} proposed {:?}", node.waiting.len(), node.proposed.keys())
        };
        self.correct().into_iter().map(node).collect::<Vec<_>>().join("; ")
    }

    /// Of each slot: whether its sub-block is delivered, the estimate and its round, the decision and its round.
    fn slots(&self, height: &consensus::Height) -> String {
        let slot = |slot| {
            let (broadcast, binary) = (height.broadcast(slot)?, height.binary(slot)?);
            Some(format!("{:?} {:?} {:?}", broadcast.delivered().is_some(), binary.estimate(), binary.decided()))
        };
        self.committee.members().filter_map(slot).collect::<Vec<_>>().join(", ")
    }

    fn is_settled(&mut self) -> bool {
        self.steps += 1;
        if !self.steps.is_multiple_of(64) {
            return false;
        }
        // Looked at last: there may be very many events.
        let is_pending = || {
            let is_fault = |event: &Event| {
                matches!(event, Event::Submit(_) | Event::Kill { .. } | Event::Wake { .. } | Event::Cut { .. })
            };
            self.events.values().any(is_fault)
        };
        let correct: Vec<&Node> = self.correct().iter().map(|i| &self.nodes[usize::from(*i)]).collect();
        let running = || correct.iter().filter(|node| !node.stopped);
        let last = running().map(|node| node.blocks.len()).max().unwrap_or(0) as u64;
        let is_done = |node: &&Node| {
            let settled = |e: &Engine| {
                let quiet = e.opening().is_none_or(|o| !o.urgent && !o.nudged);
                e.decided() == last && e.certified() == last && quiet && (!e.is_silent() || e.follows())
            };
            node.waiting.is_empty()
                && node.state.as_ref().is_none_or(|state| state.accusations.is_empty())
                && node.proposed.values().all(BTreeSet::is_empty)
                && node.blocks.len() as u64 == last
                && node.engine.as_ref().is_some_and(settled)
        };
        running().all(is_done) && !is_pending()
    }

    fn handle(&mut self, to: Index, event: Event) {
        if let Some(faults) = self.faults.get(&to).copied() {
            return self.misbehave(to, faults, event);
        }
        if self.nodes[usize::from(to)].stopped {
            return;
        }
        let life = self.nodes[usize::from(to)].life;
        match event {
            Event::Wake { rejoins } => self.wake(to, rejoins),
            Event::Kill { loses_log } => self.kill(to, loses_log),
            Event::Cut { other } => {
                let pause = 10_000 + self.dice.below(400_000);
                self.disconnect(to, other, pause);
            }
            Event::Submit(number) => {
                self.arrived.insert(number, (self.now, to));
                self.nodes[usize::from(to)].waiting.insert(number);
            }
            Event::Durable { life: of, turn } if of == life => {
                self.nodes[usize::from(to)].writing -= 1;
                self.carry_out(to, turn);
            }
            Event::Turn { life: of } if of == life => self.make_turn(to),
            Event::Applied { life: of, height } if of == life => self.applied(to, height),
            Event::Frame { from, link, bytes } if self.links[&key(from, to)] == link => {
                let faulty = self.faults.contains_key(&from);
                let local = self.local(self.nodes[usize::from(to)].epoch, from);
                self.input(to, |engine| match Frame::from_bytes(&bytes) {
                    Ok(frame) => engine.on_frame(local, frame),
                    Err(_) => assert!(faulty, "{from} sends what is no frame"),
                });
            }
            Event::Timer { life: of, height, timer } if of == life => {
                self.input(to, |engine| engine.on_timer(height, timer));
            }
            Event::Tick { life: of } if of == life => {
                let idle = self.now.saturating_sub(self.nodes[usize::from(to)].decided_at) >= self.heartbeat;
                self.input(to, |engine| {
                    if idle {
                        engine.on_heartbeat();
                    }
                    engine.on_tick();
                });
                self.push(TICK, to, Event::Tick { life });
                self.propose(to, true);
            }
            Event::Rooted { life: of, height } if of == life => {
                let root = self.nodes[usize::from(to)].blocks[&height].root;
                self.input(to, |engine| engine.on_root(height, root));
            }
            Event::Up { peer, link } if self.links[&key(peer, to)] == link => {
                self.nodes[usize::from(to)].up.insert(peer);
                let local = self.local(self.nodes[usize::from(to)].epoch, peer);
                self.input(to, |engine| engine.on_up(local));
            }
            Event::Down { peer } => {
                self.nodes[usize::from(to)].up.remove(&peer);
                let local = self.local(self.nodes[usize::from(to)].epoch, peer);
                self.input(to, |engine| engine.on_down(local));
            }
            _ => return,
        }
        self.propose(to, false);
    }

    fn input(&mut self, to: Index, give: impl FnOnce(&mut Engine)) {
        if let Some(engine) = &mut self.nodes[usize::from(to)].engine {
            give(engine);
            let live: Vec<u64> = engine.live().map(|(height, _)| height).collect();
            let bound = engine.decided() + self.rules.horizon();
            assert!(live.iter().all(|height| *height <= bound));
            assert!(live.len() as u64 <= 2 * self.rules.horizon() + 128, "{} live heights", live.len());
            if self.quantum == 0 {
                let turn = engine.take_turn();
                self.take(to, turn);
            } else if !std::mem::replace(&mut self.nodes[usize::from(to)].gathers, true) {
                let life = self.nodes[usize::from(to)].life;
                self.push(self.quantum, to, Event::Turn { life });
            }
        }
    }

    fn make_turn(&mut self, of: Index) {
        let node = &mut self.nodes[usize::from(of)];
        node.gathers = false;
        if let Some(engine) = &mut node.engine {
            let turn = engine.take_turn();
            self.take(of, turn);
        }
    }

    fn take(&mut self, of: Index, mut turn: Turn) {
        let node = &mut self.nodes[usize::from(of)];
        let silent_to = node.engine.as_ref().and_then(Engine::silent_to);
        node.floor = silent_to.map_or(node.floor, |height| height + 1);
        let Node { life, epoch, .. } = *node;
        let delay = match turn.entries.is_empty() {
            true => 0,
            false if self.slow == Some(of) => 20_000 + self.dice.below(20_000),
            false => 100 + self.dice.below(2_000),
        };
        if !self.forgetful {
            self.turns.push(Some((epoch, turn)));
        } else {
            // A broken shell: it sends first and writes later.
            let late = Turn { entries: std::mem::take(&mut turn.entries), ..Turn::default() };
            self.turns.push(Some((epoch, turn)));
            self.carry_out(of, self.turns.len() - 1);
            self.turns.push(Some((epoch, late)));
        }
        let turn = self.turns.len() - 1;
        // What a turn says may repeat what an earlier one said, and waits for that to be durable too.
        let node = &mut self.nodes[usize::from(of)];
        node.durable_at = node.durable_at.max(self.now + delay);
        match node.durable_at - self.now {
            0 if node.writing == 0 => self.carry_out(of, turn),
            delay => {
                node.writing += 1;
                self.push(delay, of, Event::Durable { life, turn });
            }
        }
    }

    fn carry_out(&mut self, of: Index, turn: usize) {
        let Some((epoch, turn)) = self.turns[turn].take() else { return };
        let (chain, order) = (self.chain(epoch), self.order(epoch));
        let committee = chain.committee();
        let life = self.nodes[usize::from(of)].life;
        let node = &mut self.nodes[usize::from(of)];
        for (height, entry) in turn.entries {
            if let Entry::Voted(Record::Sent(vote)) = entry {
                node.logged.insert((height, vote));
            }
            node.log.push((height, entry));
        }
        for (to, frame) in turn.sends {
            self.check_said(of, &frame);
            for to in to.iter() {
                self.transmit(of, order[usize::from(to)], &frame);
            }
        }
        for (height, timer) in turn.timers {
            let delay = match timer {
                Timer::Grace | Timer::Missing => self.grace,
                _ => u64::from(timer.units()) * self.unit,
            };
            self.push(delay, of, Event::Timer { life, height, timer });
        }
        for superblock in turn.decided {
            let first = *self.superblocks.entry(superblock.height).or_insert(superblock.digest);
            assert_eq!(first, superblock.digest, "different superblocks at height {}", superblock.height);
            let node = &mut self.nodes[usize::from(of)];
            if let Some(proposed) = node.proposed.remove(&superblock.height) {
                assert!(superblock.mine.is_some());
                if superblock.mine == Some(false) {
                    node.waiting.extend(proposed);
                }
            }
            if node.blocks.contains_key(&superblock.height) {
                assert_eq!(node.blocks[&superblock.height].digest, superblock.digest);
                continue;
            }
            let members: Members = superblock.sub_blocks.iter().map(|(slot, _)| *slot).collect();
            let least = match self.rules.protocol {
                Protocol::Dbft if self.rules.enough.is_none() => committee.size - 2 * committee.faulty,
                Protocol::Dbft | Protocol::Tendermint => 1,
            };
            assert!(members.len() >= least);
            self.report.partial += u64::from(superblock.sub_blocks.len() < committee.size);
            node.decided_at = self.now;
            let block = Block { digest: superblock.digest, sub_blocks: superblock.sub_blocks, root: Digest::default() };
            node.decided.insert(superblock.height, block);
            self.apply_next(of);
        }
        for finality in turn.certified {
            finality.certificate.verify(&chain).expect("a certificate that holds");
            self.note_latencies(of, finality.certificate.statement.height);
            self.nodes[usize::from(of)].finality.insert(finality.certificate.statement.height, finality);
        }
        for (to, first, last) in turn.serve {
            self.serve(of, order[usize::from(to)], first, last);
        }
        for evidence in turn.evidence {
            let whom = order[usize::from(evidence.convicts(&chain).expect("evidence convicts"))];
            assert!(self.faults.contains_key(&whom) || self.forgetful, "{whom} is correct");
            let accusation = evidence.accusation(&chain).expect("evidence is for ledgers");
            assert!(accusation.convicts(chain.genesis, &self.secrets[usize::from(whom)].public()));
            if let Some(state) = &mut self.nodes[usize::from(of)].state {
                state.accusations.note(accusation);
            }
            self.report.evidence += 1;
        }
        for (from, why) in turn.refused {
            let from = order[usize::from(from)];
            let honest = !self.faults.contains_key(&from) && !self.liars;
            let elsewhere = why == consensus::Refused::Epoch && self.epoch_heights.is_some();
            assert!(!honest || elsewhere || why == consensus::Refused::Ahead, "{from} to {of}: {why}");
        }
        if turn.diverged.is_some() {
            assert!(self.wrong_ledger.is_some(), "{of} diverged: {:?}", turn.diverged);
            self.nodes[usize::from(of)].stopped = true;
        }
        self.change_epoch(of);
    }

    /// The next epoch's engine takes over when the last certificate of the old one is archived.
    fn change_epoch(&mut self, of: Index) {
        let node = &mut self.nodes[usize::from(of)];
        let last = node.finality.keys().next_back().copied().unwrap_or(0);
        if !node.engine.as_ref().is_some_and(|engine| engine.is_over() && engine.tip().0 == last) {
            return;
        }
        node.archived = last;
        let floor = node.floor;
        self.begin(of, |engine| stay_silent(engine, floor));
        self.report.epochs += u64::from(of == 0);
        for peer in self.nodes[usize::from(of)].up.clone() {
            let local = self.local(self.nodes[usize::from(of)].epoch, peer);
            self.input(of, |engine| engine.on_up(local));
        }
    }

    /// Notes how long the transactions of a certified height took that arrived here.
    fn note_latencies(&mut self, of: Index, height: u64) {
        let node = &self.nodes[usize::from(of)];
        let block = node.blocks.get(&height).or_else(|| node.decided.get(&height));
        let payloads = block.into_iter().flat_map(|block| &block.sub_blocks);
        for number in payloads.flat_map(|(_, payload)| transactions_of(payload)).collect::<Vec<_>>() {
            if let Some((since, _)) = self.arrived.get(&number).filter(|(_, at)| *at == of) {
                self.report.latencies.push(self.now - since);
                self.arrived.remove(&number);
            }
        }
    }

    /// Applies one block at a time.
    fn apply_next(&mut self, of: Index) {
        let slow = self.slow == Some(of);
        let node = &self.nodes[usize::from(of)];
        let next = node.blocks.len() as u64 + 1;
        if node.decided.contains_key(&next) {
            let (life, delay) = (node.life, if slow { 60_000 } else { 2_000 } + self.dice.below(1_000));
            self.push(delay, of, Event::Applied { life, height: next });
        }
    }

    fn applied(&mut self, of: Index, height: u64) {
        let wrong = self.wrong_ledger == Some(of) && height >= 5;
        let node = &mut self.nodes[usize::from(of)];
        if node.blocks.contains_key(&height) {
            return;
        }
        let mut block = node.decided.remove(&height).expect("it was decided");
        let before = node.blocks.get(&(height - 1)).map_or(Digest([1; 32]), |block| block.root);
        let before = match &mut node.state {
            None => before,
            Some(state) => state.apply(height, &block.sub_blocks),
        };
        block.root = Digest::of("test state", &[before.0, block.digest.0, [u8::from(wrong); 32]].concat());
        for (_, payload) in &block.sub_blocks {
            let gone = transactions_of(payload);
            node.waiting.retain(|number| !gone.contains(number));
        }
        node.blocks.insert(height, block);
        let life = node.life;
        self.input(of, |engine| engine.on_applied(height));
        self.change_epoch(of);
        let delay = 500 + self.dice.below(3_000);
        self.push(delay, of, Event::Rooted { life, height });
        self.apply_next(of);
    }

    fn propose(&mut self, of: Index, tick: bool) {
        self.hand_over(of);
        let node = &mut self.nodes[usize::from(of)];
        let Some(engine) = &mut node.engine else { return };
        let accuses = node.state.as_mut().is_some_and(|state| !state.accuse().is_empty());
        engine.set_waiting(!node.waiting.is_empty() || accuses);
        let (mut proposed, mut nudged) = (false, tick);
        while let Some(opening) = engine.opening() {
            let nudge = opening.nudged && std::mem::take(&mut nudged);
            let waits = !node.waiting.is_empty() || (accuses && !proposed);
            if !opening.urgent && !nudge && !waits {
                break;
            }
            let some: BTreeSet<u64> = node.waiting.iter().take(20).copied().collect();
            node.waiting.retain(|number| !some.contains(number));
            let payload = match &mut node.state {
                None => payload_of(&some),
                Some(state) => state.propose(&some),
            };
            engine.propose(opening.height, payload);
            node.proposed.insert(opening.height, some);
            proposed = true;
        }
        if proposed {
            let turn = engine.take_turn();
            self.take(of, turn);
        }
    }

    /// Who follows cannot propose: its clients go to the next validator.
    fn hand_over(&mut self, of: Index) {
        let node = &mut self.nodes[usize::from(of)];
        if node.engine.as_ref().is_some_and(Engine::follows) && !node.waiting.is_empty() {
            let waiting = std::mem::take(&mut node.waiting);
            let order = self.order(self.nodes[usize::from(of)].epoch);
            let next = *order.iter().find(|index| !self.faults.contains_key(index)).expect("most are correct");
            waiting.into_iter().for_each(|number| self.push(1_000, next, Event::Submit(number)));
        }
    }

    fn transmit(&mut self, from: Index, to: Index, frame: &Frame) {
        assert_ne!(from, to);
        let bytes = frame.to_bytes();
        let link = self.links[&key(from, to)];
        let tail = if self.tails && self.dice.below(50) == 0 { self.dice.below(30_000) } else { 0 };
        let delay = match &self.delays {
            Some(delays) => {
                let delay = delays[usize::from(from)][usize::from(to)];
                delay + self.dice.below(delay / 20 + 100)
            }
            None => 300 + self.dice.below(1_500) + tail,
        };
        self.report.frames += 1;
        self.report.bytes += bytes.len() as u64;
        self.push(delay, to, Event::Frame { from, link, bytes });
    }

    fn serve(&mut self, of: Index, to: Index, first: u64, last: u64) {
        let node = &self.nodes[usize::from(of)];
        let mut blocks: Vec<Decided> = (first..=last)
            .map_while(|height| {
                let certificate = node.finality.get(&height)?.certificate.clone();
                let mut sub_blocks = node.blocks.get(&height)?.sub_blocks.clone();
                sub_blocks.sort_by_key(|(slot, _)| *slot);
                Some(Decided { certificate, sub_blocks })
            })
            .collect();
        // One lies about what is in a block.
        if self.liars && of == 0 && !blocks.is_empty() {
            let which = self.dice.below(blocks.len() as u64) as usize;
            let false_payload = self.payload_of(&[0].into());
            match self.dice.below(3) {
                0 => blocks[which].sub_blocks.clear(),
                1 => blocks[which].certificate.statement.superblock = Digest([9; 32]),
                _ => blocks[which].sub_blocks.iter_mut().for_each(|(_, payload)| *payload = false_payload.clone()),
            }
        }
        self.report.synced += blocks.len() as u64;
        self.transmit(of, to, &Frame::Sync(blocks));
    }

    fn kill(&mut self, of: Index, loses_log: bool) {
        let node = &mut self.nodes[usize::from(of)];
        if node.engine.take().is_none() {
            return;
        }
        node.life += 1;
        node.gathers = false;
        node.writing = 0;
        // What was not applied is decided again, and what was proposed may be in.
        node.decided.clear();
        for proposed in std::mem::take(&mut node.proposed).into_values() {
            node.waiting.extend(proposed);
        }
        if loses_log {
            node.log.clear();
            node.logged.clear();
        }
        // The newest certificates were not synced yet.
        let newest = node.finality.keys().next_back().copied().unwrap_or(0);
        let (lost, archived) = (self.dice.below(3), node.archived);
        node.finality.retain(|height, _| *height + lost <= newest || *height <= archived);
        node.up.clear();
        self.report.restarts += 1;
        for other in self.committee.members().filter(|other| *other != of) {
            let pause = 50_000 + self.dice.below(300_000);
            self.disconnect(of, other, pause);
        }
        let pause = 10_000 + self.dice.below(200_000);
        self.push(pause, of, Event::Wake { rejoins: loses_log });
    }

    fn wake(&mut self, of: Index, rejoins: bool) {
        let node = &mut self.nodes[usize::from(of)];
        if rejoins {
            node.floor = u64::MAX;
        }
        let (log, floor) = (node.log.clone(), node.floor);
        self.begin(of, |engine| {
            stay_silent(engine, floor);
            engine.restore(log);
        });
        let life = self.nodes[usize::from(of)].life;
        self.push(1_000, of, Event::Tick { life });
        let peers: Vec<Index> = self.committee.members().filter(|other| *other != of).collect();
        for peer in peers {
            let link = self.links[&key(of, peer)];
            self.push(400_000, of, Event::Up { peer, link });
        }
    }

    /// An engine that begins where the archive ends.
    fn begin(&mut self, of: Index, prepare: impl FnOnce(&mut Engine)) {
        let node = &self.nodes[usize::from(of)];
        let height = node.finality.keys().next_back().copied().unwrap_or(0).min(node.blocks.len() as u64);
        let epoch = self.epoch_of(height + 1);
        let chain = self.chain(epoch);
        let first = Engine::first_benches(&chain.committee(), &self.rules);
        let (superblock, benches) = match node.finality.get(&height) {
            Some(finality) if chain.heights.contains(&height) => {
                (finality.certificate.statement.superblock, finality.benches.clone())
            }
            Some(finality) => (finality.certificate.statement.superblock, first),
            None => (Digest::default(), first),
        };
        let roots = node.blocks.iter().map(|(height, block)| (*height, block.root));
        let roots = std::iter::once((0, Digest([1; 32]))).chain(roots).collect();
        let start = Start { height, superblock, benches, applied: node.blocks.len() as u64, roots };
        let setup = Setup {
            followers: self.committee.size - chain.keys.len(),
            chain,
            rules: self.rules,
            me: self.local(epoch, of),
            secret: self.secrets[usize::from(of)].clone(),
            check: if self.exchange { exchange::check_payload } else { check_payload },
        };
        let mut engine = Engine::new(setup, start);
        prepare(&mut engine);
        let turn = engine.take_turn();
        let node = &mut self.nodes[usize::from(of)];
        (node.engine, node.epoch) = (Some(engine), epoch);
        self.take(of, turn);
    }

    /// Validators that stopped because they differ.
    pub fn stopped(&self) -> Vec<Index> {
        self.correct().into_iter().filter(|index| self.nodes[usize::from(*index)].stopped).collect()
    }
}

/// As a vote log says that begins at this height; without one, until it is known where it may begin.
fn stay_silent(engine: &mut Engine, floor: u64) {
    match floor {
        u64::MAX => engine.rejoin(),
        _ => engine.stay_silent_below(floor),
    }
}
