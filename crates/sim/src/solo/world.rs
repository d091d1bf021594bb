//! One run: a node, its clients, a clock, a disk, and the faults that occur.

use kernel::{Crash, Dice, DiskFault, FaultDisk, Surviving};
use ledger::{Genesis, Refusal};
use primitives::Transaction;
use replica::BlockWorker;

use super::clients::{Clients, Drawn};
use super::node::{Answer, Around, Setup, SimNode, Stop, recover};
use super::oracle::Oracle;
use super::{SimOptions, SimReport};
use crate::world::{EngineMistake, Mistake, Trace, World};

/// The thread whose turn it is.
#[derive(Clone, Copy)]
enum Turn {
    Produce,
    Work(BlockWorker),
}

/// Of so many seeds in a row the last one has validators that vote: their words take much room in blocks.
const VOTING: u64 = 8;

/// All turns, in the order in which a node that is stopped takes them.
const TURNS: [Turn; 6] = [
    Turn::Produce,
    Turn::Work(BlockWorker::Executor),
    Turn::Work(BlockWorker::Logger),
    Turn::Work(BlockWorker::Publisher),
    Turn::Work(BlockWorker::Roots),
    Turn::Work(BlockWorker::Checkpointer),
];

pub(super) struct SoloWorld {
    options: SimOptions,
    setup: Setup,
    dice: Dice,
    genesis: Genesis,
    clients: Clients,
    oracle: Oracle,
    disk: FaultDisk,
    crash: Crash<FaultDisk>,
    /// `None` between a crash and the next start.
    node: Option<SimNode>,
    /// Whether a disk error was injected since the last start.
    faulty: bool,
    /// A worker that is slower than the others.
    slow: Option<BlockWorker>,
    now_ms: u64,
    wall_ms: u64,
    /// Sent transactions that are not known to be in a block.
    unanswered: Vec<Transaction>,
    trace: Trace,
    report: SimReport,
}

impl World for SoloWorld {
    type Report = SimReport;

    /// Runs until enough blocks were made under faults; then all faults end, and everything pending must complete.
    fn run(&mut self) -> Result<SimReport, String> {
        self.start()?;
        while self.oracle.height() < self.options.blocks {
            self.report.steps += 1;
            if self.report.steps > 2_000 * (1 + self.options.blocks) {
                return Err("no progress".into());
            }
            self.step()?;
        }
        self.heal()?;
        self.report.blocks = self.oracle.height();
        self.report.acknowledged = self.oracle.acknowledged() as u64;
        self.report.sessions = self.oracle.session_counts();
        self.report.policies = self.oracle.policy_counts();
        self.report.listings = self.oracle.listing_counts();
        self.report.proposals = self.oracle.proposal_counts();
        self.report.controls = self.oracle.control_counts();
        self.report.trace = self.trace.digest();
        Ok(self.report.clone())
    }

    fn height(&self) -> u64 {
        self.oracle.height()
    }
}

impl SoloWorld {
    pub fn new(seed: u64, options: SimOptions) -> SoloWorld {
        let mut dice = Dice::new(seed);
        let clients = Clients::new(4 + dice.below(8), 2 + dice.below(4), &mut dice);
        let clients = if seed % VOTING == VOTING - 1 { clients.voting() } else { clients };
        let genesis = clients.genesis(
            dice.below(3) * 7
                + if options.mistake == Some(Mistake::Engine(EngineMistake::FeeNotBurnt)) { 1 } else { 0 },
        );
        let setup = Setup {
            mempool: 20 + dice.index(100),
            block: 1 + dice.index(30),
            interval_ms: 10 + dice.below(100),
            checkpoint_every: 1 + dice.below(8),
            keep_blocks: if dice.once_in(2) { 1 + dice.below(6) } else { 0 },
            checkpoint_early: dice.once_in(2),
            segment_bytes: 2_000 + dice.below(60_000),
            mistake: options.mistake,
        };
        let slow = match dice.below(6) {
            0..3 => Some(BlockWorker::Publisher),
            3 => Some(BlockWorker::Logger),
            4 => Some(BlockWorker::Roots),
            _ => None,
        };
        SoloWorld {
            setup,
            slow,
            oracle: Oracle::new(&genesis, options.mistake),
            disk: FaultDisk::new(dice.bits()),
            crash: Crash::default(),
            node: None,
            faulty: false,
            now_ms: 0,
            wall_ms: 1_800_000_000_000,
            unanswered: Vec::new(),
            trace: Trace::default(),
            report: SimReport { seed, ..SimReport::default() },
            dice,
            genesis,
            clients,
            options,
        }
    }

    fn note(&mut self, event: &str, number: u64) {
        self.trace.note(event, number);
    }

    fn node(&mut self) -> &mut SimNode {
        self.node.as_mut().expect("a node runs between steps")
    }

    fn step(&mut self) -> Result<(), String> {
        match self.dice.below(46) {
            0..14 => self.submit(),
            14..18 => self.perform(Turn::Produce),
            18..26 => self.work(BlockWorker::Executor),
            26..30 => self.work(BlockWorker::Logger),
            30..34 => self.work(BlockWorker::Publisher),
            34..38 => self.work(BlockWorker::Roots),
            38..41 => self.work(BlockWorker::Checkpointer),
            41..45 => self.pass_time(),
            _ => self.misfortune(),
        }
    }

    /// One job of a worker, unless it is the slow one and not ready.
    fn work(&mut self, worker: BlockWorker) -> Result<(), String> {
        let rests = self.slow == Some(worker) && !self.dice.once_in(4);
        if rests { Ok(()) } else { self.perform(Turn::Work(worker)) }
    }

    /// One step of one of the node's threads.
    fn perform(&mut self, turn: Turn) -> Result<(), String> {
        let SoloWorld { node, oracle, dice, now_ms, wall_ms, .. } = self;
        let node = node.as_mut().expect("a node runs between steps");
        let (name, done) = match turn {
            Turn::Produce => ("produce", Ok(node.produce(*now_ms).into())),
            Turn::Work(worker) => {
                let mut around = Around { oracle, dice, now_ms: *now_ms, wall_ms: *wall_ms };
                ("work", node.work(worker, &mut around))
            }
        };
        self.after(name, done)
    }

    /// The result of a step: nothing, a crash that happened in it, or the end of a node whose disk failed.
    fn after(&mut self, name: &str, done: Result<u64, Stop>) -> Result<(), String> {
        self.note(name, *done.as_ref().unwrap_or(&u64::MAX));
        let crashed = self.crash.take();
        match (crashed, done) {
            (_, Err(Stop::Broken(what))) => Err(what),
            (Some(left), _) => {
                self.report.crashes += 1;
                self.restart_on(left)
            }
            (None, Err(Stop::Disk(error))) if !self.faulty => Err(format!("a disk error without a fault: {error}")),
            (None, Err(Stop::Disk(_))) => {
                self.report.disk_errors += 1;
                let surviving = Surviving::drawn(&mut self.dice);
                let left = self.disk.after_crash(surviving);
                self.restart_on(left)
            }
            (None, Ok(_)) => Ok(()),
        }
    }

    /// A client sends an Ethereum transaction. It gets no answer: the result is in the receipts.
    fn submit_ethereum(&mut self) {
        let node = self.node.as_ref().expect("a node runs between steps");
        let bytes = self.clients.ethereum.draw(&node.ledger, &mut self.dice);
        let now = self.now_ms;
        let answer = self.node().submit_ethereum(bytes, now);
        self.report.submitted += 1;
        self.report.refused += u64::from(answer.is_err());
        self.trace.bytes(format!("{answer:?}").as_bytes());
    }

    fn submit(&mut self) -> Result<(), String> {
        if self.node().is_locked {
            // The intake waits until the block is shown.
            return Ok(());
        }
        if self.dice.once_in(4) {
            self.submit_ethereum();
            return Ok(());
        }
        let Drawn { transaction, must_refuse } =
            if self.unanswered.len() > 60 || (!self.unanswered.is_empty() && self.dice.once_in(8)) {
                // A client without an answer asks again.
                let at = self.dice.index(self.unanswered.len());
                Drawn { transaction: self.unanswered.swap_remove(at), must_refuse: false }
            } else {
                let node = self.node.as_ref().expect("a node runs between steps");
                self.clients.draw(&node.ledger, &mut self.dice)
            };
        let (id, now) = (transaction.id(), self.now_ms);
        let answer = self.node().submit(transaction.clone(), now);
        self.report.submitted += 1;
        self.trace.bytes(&id.0);
        self.trace.bytes(format!("{answer:?}").as_bytes());
        match answer {
            _ if must_refuse && !matches!(answer, Answer::Refused(_) | Answer::Full) => {
                Err(format!("{:?} was answered {answer:?}", transaction.body))
            }
            Answer::Committed(height, outcome) => self.oracle.acknowledge(id, height, outcome),
            Answer::Waits | Answer::Full => {
                self.unanswered.push(transaction);
                Ok(())
            }
            Answer::Refused(refusal) => {
                self.report.refused += 1;
                self.report.beyond_caps += u64::from(refusal == Refusal::SESSION_CAP);
                Ok(())
            }
        }
    }

    fn pass_time(&mut self) -> Result<(), String> {
        let ms = 1 + self.dice.below(80);
        self.now_ms += ms;
        self.wall_ms += ms;
        if self.dice.once_in(50) {
            // The wall clock may jump; nothing may depend on it.
            self.wall_ms = self.wall_ms + self.dice.below(7_200_000) - 3_600_000;
        }
        Ok(())
    }

    /// Injects a fault soon.
    fn misfortune(&mut self) -> Result<(), String> {
        let points = self.dice.below(12);
        let soon = self.disk.points() + points;
        match self.dice.below(8) {
            0..4 => self.arm_crash(points),
            4 => self.inject(soon, DiskFault::Error),
            5 => self.inject(soon, DiskFault::Half),
            6 => self.fill_disk(),
            _ => return self.stop_in_order(),
        }
        self.note("misfortune", soon);
        Ok(())
    }

    /// Crashes after this many further changes of the disk.
    fn arm_crash(&mut self, points: u64) {
        let surviving = Surviving::drawn(&mut self.dice);
        let disk = self.disk.clone();
        self.crash.arm(&[&self.disk], points, move || disk.after_crash(surviving));
    }

    fn inject(&mut self, point: u64, fault: DiskFault) {
        self.disk.inject(point, fault);
        self.faulty = true;
    }

    fn fill_disk(&mut self) {
        let used: u64 = self.disk.list().expect("lists").iter().map(|(_, length)| length).sum();
        self.disk.set_capacity(Some(used + self.dice.below(4_000)));
        self.faulty = true;
    }

    /// A stop without loss; while the node is down, a bit of the disk may flip.
    fn stop_in_order(&mut self) -> Result<(), String> {
        self.note("stop", self.now_ms);
        if self.drain()? {
            self.node().stop()?;
            let left = self.disk.after_crash(Surviving::Everything);
            self.flip(&left)?;
            self.restart_on(left)?;
        }
        Ok(())
    }

    /// Commits and publishes everything pending; false if the node went down meanwhile.
    fn drain(&mut self) -> Result<bool, String> {
        let restarts = self.report.restarts;
        while !self.node().is_idle() {
            self.now_ms += self.setup.interval_ms;
            for turn in TURNS {
                self.perform(turn)?;
                if self.report.restarts != restarts {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// A flipped bit is reported, or it changes nothing.
    fn flip(&mut self, disk: &FaultDisk) -> Result<(), String> {
        let copy = disk.after_crash(Surviving::Everything);
        let files: Vec<(String, u64)> = copy.list().expect("lists").into_iter().filter(|file| file.1 > 0).collect();
        if files.is_empty() {
            return Ok(());
        }
        let (name, length) = &files[self.dice.index(files.len())];
        let (offset, bit) = (self.dice.below(*length), self.dice.below(8));
        copy.flip(name, offset, 1 << bit);
        self.note("flip", offset);
        self.report.flips += 1;
        let (height, first) = (self.oracle.height(), self.oracle.forgotten_below().max(1));
        match recover(&copy, &self.setup, &self.genesis) {
            Err(error) => {
                self.report.flips_named += 1;
                let text = error.to_string();
                if text.is_empty() { Err("damage was reported without a message".into()) } else { Ok(()) }
            }
            Ok(restored) if restored.ledger.height() != height => {
                Err(format!("bit {bit} of byte {offset} of {name} flipped, and block {height} was lost with no error"))
            }
            Ok(restored) => {
                let archive = restored.store.archive();
                for at in first..=height {
                    match archive.receipts(at) {
                        // Reported when it is read.
                        Err(_) => {}
                        Ok(receipts) if receipts.as_deref() == Some(self.oracle.receipts(at)) => {}
                        Ok(_) => {
                            return Err(format!("byte {offset} of {name} flipped, and receipts {at} were given wrong"));
                        }
                    }
                }
                self.oracle.hold(&restored.ledger)
            }
        }
    }

    fn start(&mut self) -> Result<(), String> {
        let disk = self.disk.clone();
        self.restart_on(disk)
    }

    /// Starts the node on the remaining disk contents; it may crash again meanwhile.
    fn restart_on(&mut self, left: FaultDisk) -> Result<(), String> {
        self.node = None;
        self.disk = left;
        self.faulty = false;
        self.report.restarts += 1;
        let restored = loop {
            let points = self.dice.below(20);
            let point = self.disk.points() + points;
            if self.dice.once_in(4) {
                self.arm_crash(points);
            }
            let recovered = recover(&self.disk, &self.setup, &self.genesis);
            let crashed = self.crash.take();
            match (crashed, recovered) {
                (Some(left), _) => {
                    self.report.crashes_in_recovery += 1;
                    self.disk = left;
                }
                (None, Ok(restored)) => break restored,
                (None, Err(error)) => return Err(format!("a crash left what cannot be recovered: {error}")),
            }
            self.note("crash in recovery", point);
        };
        // The armed crash that was not reached is cancelled.
        self.crash.disarm(&[&self.disk]);
        self.oracle.restarted(&restored, &mut self.dice)?;
        self.clients.look(&restored.ledger);
        self.note("restart", restored.ledger.height());
        self.trace.bytes(&restored.root.0);
        self.node = Some(SimNode::new(restored, self.disk.clone(), self.setup));
        Ok(())
    }

    /// The end: no more faults. Every client gets its answer, and the state survives one more stop.
    fn heal(&mut self) -> Result<(), String> {
        let left = self.disk.after_crash(Surviving::Everything);
        self.restart_on(left)?;
        for transaction in std::mem::take(&mut self.unanswered) {
            let now = self.now_ms;
            let answer = self.node().submit(transaction.clone(), now);
            if answer == Answer::Full {
                self.drain()?;
                self.node().submit(transaction, now);
            }
        }
        self.drain()?;
        let left = self.disk.after_crash(Surviving::Everything);
        self.restart_on(left)?;
        let damage = store::inspect(self.disk.after_crash(Surviving::Everything)).map_err(|error| error.to_string())?;
        let first = damage.damage().next().map(ToString::to_string);
        first.map_or(Ok(()), |damage| Err(format!("an undamaged store is reported as damaged: {damage}")))
    }
}
