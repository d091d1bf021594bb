//! A simulated network of engines. Times are in microseconds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use consensus::{
    Chain, Committee, Decided, Engine, Entry, Finality, Frame, Index, Mask, Members, Payload, Proposal, Record, Rules,
    Setup, Start, Status, Timer, Turn, Vote, Votes, payload_digest,
};
use primitives::{Digest, SecretKey};

/// SplitMix64.
pub struct Dice(u64);

impl Dice {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }
}

/// What a faulty validator does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Faults {
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
    /// Counts starts; what belongs to an earlier one is void.
    life: u64,
    log: Vec<(u64, Entry)>,
    durable_at: u64,
    blocks: BTreeMap<u64, Block>,
    finality: BTreeMap<u64, Finality>,
    /// Decided and not applied yet.
    decided: BTreeMap<u64, Block>,
    waiting: BTreeSet<u64>,
    /// Proposed and not seen to be in.
    proposed: BTreeMap<u64, BTreeSet<u64>>,
    stopped: bool,
}

/// What was seen in a run.
#[derive(Debug, Default)]
pub struct Report {
    pub heights: u64,
    pub restarts: u64,
    pub benched: u64,
    pub evidence: u64,
    pub synced: u64,
}

pub struct Network {
    pub rules: Rules,
    pub faults: BTreeMap<Index, Faults>,
    pub cuts: u64,
    pub kills: u64,
    pub blackouts: u64,
    pub lost_logs: u64,
    pub late: Option<Index>,
    pub liars: bool,
    pub slow: Option<Index>,
    /// Whether some messages take much longer than others.
    pub tails: bool,
    pub forgetful: bool,
    pub wrong_ledger: Option<Index>,
    committee: Committee,
    chain: Chain,
    secrets: Vec<SecretKey>,
    nodes: Vec<Node>,
    links: BTreeMap<(Index, Index), u64>,
    queue: BinaryHeap<Reverse<(u64, u64, Index)>>,
    events: BTreeMap<u64, Event>,
    turns: Vec<Option<Turn>>,
    count: u64,
    steps: u64,
    now: u64,
    dice: Dice,
    said: BTreeMap<(Index, u64, Vote), Vote>,
    superblocks: BTreeMap<u64, Digest>,
    transactions: u64,
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
    payload[9..].chunks(8).map(|chunk| u64::from_be_bytes(chunk.try_into().expect("eight"))).collect()
}

impl Network {
    pub fn new(size: usize, seed: u64) -> Network {
        let secrets: Vec<SecretKey> = (0..size).map(|i| SecretKey::from_seed([i as u8 + 1; 32])).collect();
        let keys = secrets.iter().map(SecretKey::public).collect();
        Network {
            rules: Rules { payload_bytes: 10_000, ..Rules::default() },
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
            committee: Committee::new(size),
            chain: Chain { genesis: Digest([7; 32]), epoch: 0, keys },
            secrets,
            nodes: (0..size).map(|_| Node::default()).collect(),
            links: BTreeMap::new(),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            turns: Vec::new(),
            count: 0,
            steps: 0,
            now: 0,
            dice: Dice(seed),
            said: BTreeMap::new(),
            superblocks: BTreeMap::new(),
            transactions: 0,
            started: false,
            report: Report::default(),
        }
    }

    fn correct(&self) -> Vec<Index> {
        self.committee.members().filter(|index| !self.faults.contains_key(index)).collect()
    }

    fn push(&mut self, delay: u64, to: Index, event: Event) {
        self.count += 1;
        self.events.insert(self.count, event);
        self.queue.push(Reverse((self.now + delay, self.count, to)));
    }

    pub fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
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
        // A node that listens needs heights to go on.
        if self.lost_logs > 0 {
            for index in self.correct() {
                for i in 0..50 {
                    self.transactions += 1;
                    self.push(1_500_000 + i * 50_000, index, Event::Submit(self.transactions));
                }
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
            assert!(self.count < 3_000_000 && self.now < 400_000_000, "no end: {}", self.describe());
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
                let live: Vec<_> = e.live().map(|(height, live)| (height, self.slots(live))).collect();
                (e.decided(), e.certified(), e.opening(), e.is_silent(), e.connected(), live)
            });
            format!("{index}: {engine:?} waiting {} proposed {:?}", node.waiting.len(), node.proposed.keys())
        };
        self.correct().into_iter().map(node).collect::<Vec<_>>().join("; ")
    }

    fn slots(&self, height: &consensus::Height) -> Vec<(bool, Option<(bool, u32)>, Option<(bool, u32)>)> {
        let slot = |slot| {
            let (broadcast, binary) = (height.broadcast(slot)?, height.binary(slot)?);
            Some((broadcast.delivered().is_some(), binary.estimate(), binary.decided()))
        };
        self.committee.members().filter_map(slot).collect()
    }

    fn is_settled(&mut self) -> bool {
        self.steps += 1;
        if !self.steps.is_multiple_of(64) {
            return false;
        }
        let pending = self.events.values().any(|event| {
            matches!(event, Event::Submit(_) | Event::Kill { .. } | Event::Wake { .. } | Event::Cut { .. })
        });
        let correct: Vec<&Node> = self.correct().iter().map(|i| &self.nodes[usize::from(*i)]).collect();
        let running = || correct.iter().filter(|node| !node.stopped);
        let last = running().map(|node| node.blocks.len()).max().unwrap_or(0) as u64;
        !pending
            && running().all(|node| {
                let settled =
                    |e: &Engine| e.decided() == last && e.certified() == last && e.opening().is_none_or(|o| !o.urgent);
                node.waiting.is_empty()
                    && node.proposed.values().all(BTreeSet::is_empty)
                    && node.blocks.len() as u64 == last
                    && node.engine.as_ref().is_some_and(settled)
            })
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
                self.nodes[usize::from(to)].waiting.insert(number);
            }
            Event::Durable { life: of, turn } if of == life => self.carry_out(to, turn),
            Event::Applied { life: of, height } if of == life => self.applied(to, height),
            Event::Frame { from, link, bytes } if self.links[&key(from, to)] == link => {
                self.input(to, |engine| match Frame::from_bytes(&bytes) {
                    Ok(frame) => engine.on_frame(from, frame),
                    Err(_) => assert!(from % 2 < 2),
                });
            }
            Event::Timer { life: of, height, timer } if of == life => {
                self.input(to, |engine| engine.on_timer(height, timer));
            }
            Event::Tick { life: of } if of == life => {
                self.input(to, |engine| engine.on_tick());
                self.push(TICK, to, Event::Tick { life });
                self.propose(to, true);
            }
            Event::Rooted { life: of, height } if of == life => {
                let root = self.nodes[usize::from(to)].blocks[&height].root;
                self.input(to, |engine| engine.on_root(height, root));
            }
            Event::Up { peer, link } if self.links[&key(peer, to)] == link => {
                self.input(to, |engine| engine.on_up(peer));
            }
            Event::Down { peer } => self.input(to, |engine| engine.on_down(peer)),
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
            let turn = engine.take_turn();
            self.take(to, turn);
        }
    }

    fn take(&mut self, of: Index, mut turn: Turn) {
        let life = self.nodes[usize::from(of)].life;
        let delay = match turn.entries.is_empty() {
            true => 0,
            false if self.slow == Some(of) => 20_000 + self.dice.below(20_000),
            false => 100 + self.dice.below(2_000),
        };
        if !self.forgetful {
            self.turns.push(Some(turn));
        } else {
            // A broken shell: it sends first and writes later.
            let late = Turn { entries: std::mem::take(&mut turn.entries), ..Turn::default() };
            self.turns.push(Some(turn));
            self.carry_out(of, self.turns.len() - 1);
            self.turns.push(Some(late));
        }
        let turn = self.turns.len() - 1;
        // What a turn says may repeat what an earlier one said, and waits for that to be durable too.
        let node = &mut self.nodes[usize::from(of)];
        node.durable_at = node.durable_at.max(self.now + delay);
        match node.durable_at - self.now {
            0 => self.carry_out(of, turn),
            delay => self.push(delay, of, Event::Durable { life, turn }),
        }
    }

    fn carry_out(&mut self, of: Index, turn: usize) {
        let Some(turn) = self.turns[turn].take() else { return };
        let life = self.nodes[usize::from(of)].life;
        self.nodes[usize::from(of)].log.extend(turn.entries);
        for (to, frame) in turn.sends {
            self.check_said(of, &frame);
            for to in to.iter() {
                self.transmit(of, to, &frame);
            }
        }
        for (height, timer) in turn.timers {
            let delay = if timer == Timer::Grace { GRACE } else { u64::from(timer.units()) * UNIT };
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
            assert!(members.len() >= self.committee.size - 2 * self.committee.faulty);
            self.report.benched += u64::from(superblock.sub_blocks.len() < self.committee.size);
            let block = Block { digest: superblock.digest, sub_blocks: superblock.sub_blocks, root: Digest::default() };
            node.decided.insert(superblock.height, block);
            self.apply_next(of);
        }
        for finality in turn.certified {
            finality.certificate.verify(&self.chain).expect("a certificate that holds");
            self.nodes[usize::from(of)].finality.insert(finality.certificate.statement.height, finality);
        }
        for (to, first, last) in turn.serve {
            self.serve(of, to, first, last);
        }
        for evidence in turn.evidence {
            let whom = evidence.convicts(&self.chain).expect("evidence convicts");
            assert!(self.faults.contains_key(&whom) || self.forgetful, "{whom} is correct");
            self.report.evidence += 1;
        }
        for (from, why) in turn.refused {
            let honest = !self.faults.contains_key(&from) && !self.liars;
            assert!(!honest || why == consensus::Refused::Ahead, "{from} to {of}: {why}");
        }
        if turn.diverged.is_some() {
            assert!(self.wrong_ledger.is_some(), "{of} diverged: {:?}", turn.diverged);
            self.nodes[usize::from(of)].stopped = true;
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
        block.root = Digest::of("test state", &[before.0, block.digest.0, [u8::from(wrong); 32]].concat());
        for (_, payload) in &block.sub_blocks {
            let gone = transactions_of(payload);
            node.waiting.retain(|number| !gone.contains(number));
        }
        node.blocks.insert(height, block);
        let life = node.life;
        self.input(of, |engine| engine.on_applied(height));
        let delay = 500 + self.dice.below(3_000);
        self.push(delay, of, Event::Rooted { life, height });
        self.apply_next(of);
    }

    fn propose(&mut self, of: Index, tick: bool) {
        let node = &mut self.nodes[usize::from(of)];
        let Some(engine) = &mut node.engine else { return };
        engine.set_waiting(!node.waiting.is_empty());
        let (mut proposed, mut nudged) = (false, tick);
        while let Some(opening) = engine.opening() {
            let nudge = opening.nudged && std::mem::take(&mut nudged);
            if !opening.urgent && !nudge && node.waiting.is_empty() {
                break;
            }
            let some: BTreeSet<u64> = node.waiting.iter().take(20).copied().collect();
            node.waiting.retain(|number| !some.contains(number));
            engine.propose(opening.height, payload_of(&some));
            node.proposed.insert(opening.height, some);
            proposed = true;
        }
        if proposed {
            let turn = engine.take_turn();
            self.take(of, turn);
        }
    }

    fn transmit(&mut self, from: Index, to: Index, frame: &Frame) {
        assert_ne!(from, to);
        let bytes = frame.to_bytes();
        let link = self.links[&key(from, to)];
        let tail = if self.tails && self.dice.below(50) == 0 { self.dice.below(30_000) } else { 0 };
        let delay = 300 + self.dice.below(1_500) + tail;
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
            match self.dice.below(3) {
                0 => blocks[which].sub_blocks.clear(),
                1 => blocks[which].certificate.statement.superblock = Digest([9; 32]),
                _ => blocks[which].sub_blocks.iter_mut().for_each(|(_, payload)| *payload = payload_of(&[0].into())),
            }
        }
        self.report.synced += blocks.len() as u64;
        self.transmit(of, to, &Frame::Sync(blocks));
    }

    /// Nothing that may be said but once is said twice differently, restarts and lost logs included.
    fn check_said(&mut self, of: Index, frame: &Frame) {
        let Frame::Votes(votes) = frame else { return };
        for vote in votes.unpack() {
            let without = match vote {
                Vote::Echo { slot, .. } => Vote::Echo { slot, digest: Digest::default() },
                Vote::Ready { slot, .. } => Vote::Ready { slot, digest: Digest::default() },
                Vote::Coordinate { slot, round, .. } => Vote::Coordinate { slot, round, value: false },
                Vote::Auxiliary { slot, round, .. } => Vote::Auxiliary { slot, round, values: Mask::Both },
                Vote::Estimate { .. } => continue,
            };
            let said = *self.said.entry((of, votes.height, without)).or_insert(vote);
            assert_eq!(said, vote, "validator {of} contradicts itself at height {}", votes.height);
        }
    }

    fn kill(&mut self, of: Index, loses_log: bool) {
        let node = &mut self.nodes[usize::from(of)];
        if node.engine.take().is_none() {
            return;
        }
        node.life += 1;
        // What was not applied is decided again, and what was proposed may be in.
        node.decided.clear();
        for proposed in std::mem::take(&mut node.proposed).into_values() {
            node.waiting.extend(proposed);
        }
        if loses_log {
            node.log.clear();
        }
        // The newest certificates were not synced yet.
        let newest = node.finality.keys().next_back().copied().unwrap_or(0);
        let lost = self.dice.below(3);
        node.finality.retain(|height, _| *height + lost <= newest);
        self.report.restarts += 1;
        for other in self.committee.members().filter(|other| *other != of) {
            let pause = 50_000 + self.dice.below(300_000);
            self.disconnect(of, other, pause);
        }
        let pause = 10_000 + self.dice.below(200_000);
        self.push(pause, of, Event::Wake { rejoins: loses_log });
    }

    fn wake(&mut self, of: Index, rejoins: bool) {
        let first = Engine::first_benches(&self.committee, &self.rules);
        let node = &mut self.nodes[usize::from(of)];
        let height = node.finality.keys().next_back().copied().unwrap_or(0).min(node.blocks.len() as u64);
        let (superblock, benches) = match node.finality.get(&height) {
            Some(finality) => (finality.certificate.statement.superblock, finality.benches.clone()),
            None => (Digest::default(), first),
        };
        let roots = node.blocks.iter().map(|(height, block)| (*height, block.root));
        let roots = std::iter::once((0, Digest([1; 32]))).chain(roots).collect();
        let start = Start { height, superblock, benches, applied: node.blocks.len() as u64, roots };
        let setup = Setup {
            chain: self.chain.clone(),
            rules: self.rules,
            me: of,
            secret: self.secrets[usize::from(of)].clone(),
            check: check_payload,
        };
        let mut engine = Engine::new(setup, start);
        if rejoins {
            engine.rejoin();
        } else {
            engine.restore(node.log.iter().cloned());
        }
        let turn = engine.take_turn();
        node.engine = Some(engine);
        let life = node.life;
        self.take(of, turn);
        self.push(1_000, of, Event::Tick { life });
        let peers: Vec<Index> = self.committee.members().filter(|other| *other != of).collect();
        for peer in peers {
            let link = self.links[&key(of, peer)];
            self.push(400_000, of, Event::Up { peer, link });
        }
    }

    fn misbehave(&mut self, me: Index, faults: Faults, event: Event) {
        let Event::Frame { bytes, from, .. } = event else { return };
        let Ok(frame) = Frame::from_bytes(&bytes) else { return };
        if let (Frame::Status(status), true) = (&frame, faults != Faults::Silent) {
            // Who says nothing of itself is told nothing.
            return self.transmit(me, from, &Frame::Status(Status { asks: false, waits: true, ..*status }));
        }
        match faults {
            Faults::Silent => {}
            Faults::Equivocating => self.equivocate(me, &frame),
            Faults::Random => self.answer_at_random(me, &frame),
            Faults::Garbage => self.send_garbage(me, from, &frame),
        }
    }

    fn send_all(&mut self, me: Index, frame: impl Fn(&mut Network, Index) -> Option<Frame>) {
        for to in self.committee.members().filter(|to| *to != me).collect::<Vec<_>>() {
            if let Some(frame) = frame(self, to) {
                self.transmit(me, to, &frame);
            }
        }
    }

    fn equivocate(&mut self, me: Index, frame: &Frame) {
        let Frame::Proposal(Proposal { height, .. }, _) = *frame else { return self.answer_at_random(me, frame) };
        self.send_all(me, |network, _| {
            let which = network.dice.below(3);
            let payload = payload_of(&[1_000_000 + height * 10 + which].into());
            let secret = network.secrets[usize::from(me)].clone();
            let proposal = Proposal::sign(&network.chain, height, me, &payload, &secret);
            (which > 0).then_some(Frame::Proposal(proposal, payload))
        });
    }

    fn answer_at_random(&mut self, me: Index, frame: &Frame) {
        let Frame::Votes(votes) = frame else { return };
        if self.dice.below(3) > 0 || votes.unpack().iter().any(|vote| vote.round() > 30) {
            return;
        }
        self.send_all(me, |network, _| {
            let mut answers = Vec::new();
            for vote in votes.unpack() {
                let (slot, round) = (vote.slot(), vote.round());
                let value = network.dice.below(2) == 1;
                answers.push(match (network.dice.below(4), vote) {
                    (0, Vote::Echo { slot, digest }) => Vote::Ready { slot, digest },
                    (_, Vote::Echo { slot, digest } | Vote::Ready { slot, digest }) => Vote::Echo { slot, digest },
                    (0, _) => Vote::Estimate { slot, round, value },
                    (1, _) => Vote::Estimate { slot, round, value: !value },
                    (2, _) => Vote::Coordinate { slot, round, value },
                    _ => Vote::Auxiliary { slot, round, values: Mask::ALL[network.dice.below(3) as usize] },
                });
            }
            Some(Frame::Votes(Votes::pack(0, votes.height, answers)))
        });
    }

    fn send_garbage(&mut self, me: Index, to: Index, frame: &Frame) {
        let mut bytes = frame.to_bytes();
        let answer = match (self.dice.below(5), frame) {
            (0, _) => {
                let at = self.dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.dice.below(8);
                let link = self.links[&key(me, to)];
                return self.push(500, to, Event::Frame { from: me, link, bytes });
            }
            (1, Frame::Votes(votes)) => Frame::Votes(Votes::pack(7, votes.height, votes.unpack())),
            (2, Frame::Votes(votes)) => Frame::Votes(Votes::pack(0, votes.height + 1_000_000, votes.unpack())),
            (3, Frame::Commit(commit)) => {
                let mut commit = *commit;
                commit.statement.root = Digest([3; 32]);
                Frame::Commit(commit)
            }
            (4, Frame::Proposal(proposal, _)) => Frame::Proposal(*proposal, payload_of(&[1].into())),
            _ => Frame::SyncRequest { from: self.dice.below(5), to: self.dice.below(1 << 40) },
        };
        self.transmit(me, to, &answer);
    }

    /// Validators that stopped because they differ.
    pub fn stopped(&self) -> Vec<Index> {
        self.correct().into_iter().filter(|index| self.nodes[usize::from(*index)].stopped).collect()
    }

    /// What must hold in the end.
    pub fn check(mut self) -> Report {
        assert!(self.stopped().is_empty());
        let correct = self.correct();
        let first = &self.nodes[usize::from(correct[0])].blocks;
        let mut seen = BTreeSet::new();
        for block in first.values() {
            seen.extend(block.sub_blocks.iter().flat_map(|(_, payload)| transactions_of(payload)));
            for (slot, payload) in &block.sub_blocks {
                assert!(usize::from(*slot) < self.committee.size && payload_digest(payload) != Digest::default());
            }
        }
        for index in &correct {
            let node = &self.nodes[usize::from(*index)];
            assert_eq!(node.blocks.len(), first.len());
            assert!(node.blocks.values().zip(first.values()).all(|(a, b)| a.root == b.root));
        }
        assert!((1..=self.transactions).all(|number| seen.contains(&number)), "a transaction is missing");
        let entered = |(_, entry): &(u64, Entry)| matches!(entry, Entry::Voted(Record::Entered { .. }));
        assert!(self.nodes[usize::from(correct[0])].log.iter().any(entered) || self.lost_logs > 0);
        self.report.heights = first.len() as u64;
        self.report
    }
}
