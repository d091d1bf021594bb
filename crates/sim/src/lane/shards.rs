//! The correct validators of the lane: the member machine that a node drives, over simulated disks, pools and blocks
//! that arrive late. Crashes, full disks, full queues and full pools come as the dice say, until the faults stop.

mod checks;
mod disks;
mod lines;
mod votes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kernel::{Dice, LogDisk};
use ledger::{LaneBridge, Ledger};
use member::apart::ShardOrder;
use member::{
    KeyWork, LaneBlock, LaneMember, LanePost, MemberEffect, MemberInput, MemberMistake, MemberSettings, POST_BLOCKS,
    ShardSecrets, ShardStart, ShardTerm,
};
use payments::{
    BridgeOperation, ClosedLog, ContestedOutput, HomeEpoch, LaneEffect, LaneFact, LaneInput, LanePeer, LaneRefusal,
    LaneSettings, LaneValidator, LogOwner, MuteReason, OutputId, Resolver, SPEND_EPOCHS, SpentOutput, StatementKind,
    closing, new_log,
};
use primitives::{AssetId, Digest, Height, Operation, PublicKey, SecretKey, Transaction};
use replica::{Mempool, PoolEntry};

use super::schemes::SimAnswer;
use super::{LaneOptions, registrar, secret, shard_key};
use crate::world::{LaneMistake, Mistake};
use lines::{SimLine, is_apart};

/// Transactions that a pool holds.
const POOL: usize = 1_000;

/// A message of a validator.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub kind: StatementKind,
    pub digest: Digest,
    pub answer: SimAnswer,
}

/// A block that a validator applies some time after it was made.
#[derive(Clone)]
pub(super) struct SimBlock {
    pub facts: LaneBlock,
    /// The transactions that leave the pools.
    pub native: Vec<Transaction>,
    /// The state after it.
    pub state: Ledger,
}

struct SimShard {
    machine: LaneValidator,
    disk: LogDisk,
    syncs: VecDeque<u64>,
    /// The outputs that it was told of: those that the ledger has created, and contested ones.
    told: BTreeSet<OutputId>,
    /// The session in which it was started, if it runs apart.
    life: u64,
}

/// A home epoch, and a shard in it.
type Place = (HomeEpoch, u16);

/// A correct validator with its shards in each active home epoch.
pub(super) struct SimValidator {
    index: u8,
    mistake: Option<Mistake>,
    /// Whether it says nothing in cases.
    pub is_silent: bool,
    /// Payments whose certificates its shards were shown and reported since its last start.
    pub shown: BTreeSet<Digest>,
    dice: Dice,
    /// Whether no fault happens any more.
    is_calm: bool,
    member: LaneMember,
    inputs: VecDeque<MemberInput>,
    pool: Mempool,
    /// The number of its shards.
    count: u16,
    shards: BTreeMap<Place, SimShard>,
    /// Those that run apart from the member, over lines that break.
    lines: BTreeMap<u16, SimLine>,
    /// On the disks: keys, and the logs of shards that do not run.
    keys: BTreeMap<Place, SecretKey>,
    logs: BTreeMap<Place, LogDisk>,
    /// The homes whose keys were made.
    made: BTreeSet<HomeEpoch>,
    /// The homes whose keys could not be removed, with the height that it acted on then.
    stuck: BTreeMap<HomeEpoch, Height>,
    /// The newest applied state.
    ledger: Ledger,
    /// Blocks that are made and not applied here.
    blocks: VecDeque<SimBlock>,
    certified: Height,
    /// The newest state that is applied and certified, and those above it.
    known: Ledger,
    ahead: VecDeque<Ledger>,
    /// The state with which it has started: until that is certified, it does nothing.
    begun: Height,
    /// Blocks that were made while it acted on blocks of the known epoch, since its last start; whether it has acted
    /// since the last one.
    acted: (u64, bool),
    /// The heights at which it proposed terms (`false`) of an asset, and voted on them.
    asked: BTreeMap<(bool, AssetId), Height>,
    pub said: Vec<Said>,
    /// Votes that shards have signed, whether or not they reach the ledger.
    pub votes: Vec<Vec<u8>>,
    /// What a correct run has not: a shard that does not sign, or is told what is not certified.
    pub broken: Option<String>,
}

fn lane(ledger: &Ledger) -> &LaneBridge {
    ledger.lane().expect("the chain has a lane")
}

fn now(ledger: &Ledger) -> HomeEpoch {
    lane(ledger).bridge().clock().epoch()
}

fn settings(index: u8, recovered: Height, shards: u16, mistake: Option<Mistake>) -> MemberSettings {
    let account = secret(2, index.into()).public().address();
    let mistake = mistake.and_then(Mistake::of_member).into();
    MemberSettings { index, shards, has_registrar: true, account, recovered, mistake }
}

/// A key that the dice decide.
fn drawn_key(dice: &mut Dice) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&dice.bits().to_le_bytes());
    key
}

/// A log that is complete and durable.
fn new_disk(owner: &LogOwner, dice: &mut Dice) -> LogDisk {
    LogDisk::holding(new_log(owner, drawn_key(dice)))
}

impl SimValidator {
    /// A validator that begins with a network: at its genesis, or with the state of a restart.
    pub fn new(index: u8, genesis: &Ledger, options: LaneOptions, dice: &mut Dice) -> SimValidator {
        let LaneOptions { mistake, shards: count, .. } = options;
        // A restart makes the logs of the first epoch before the nodes start, and a founder those of shards apart.
        let network = lane(genesis).network();
        let has_log = |shard: &u16| genesis.height() > 0 || is_apart(*shard);
        let new_log = |shard: u16| {
            let owner = LogOwner { network, home: 0, validator: index, shard };
            ((0, shard), new_disk(&owner, dice))
        };
        let logs: BTreeMap<Place, LogDisk> = (0..count).filter(has_log).map(new_log).collect();
        let (member, first) = LaneMember::new(
            settings(index, genesis.height(), count, mistake),
            genesis,
            logs.keys().map(|(home, _)| *home).collect::<Vec<_>>(),
        );
        let keys = (0..count).map(|shard| ((0, shard), shard_key(index, 0, shard))).collect();
        let lines: BTreeMap<u16, SimLine> =
            (0..count).filter(|shard| is_apart(*shard)).map(|shard| (shard, SimLine::new())).collect();
        let member = member.with_apart(lines.keys().copied());
        let mut validator = SimValidator {
            index,
            mistake,
            is_silent: false,
            shown: BTreeSet::new(),
            dice: Dice::new(dice.bits()),
            // The founders have logs and keys before the network starts.
            is_calm: true,
            member,
            inputs: VecDeque::new(),
            pool: Mempool::new(POOL),
            count,
            shards: BTreeMap::new(),
            lines,
            keys,
            logs,
            made: BTreeSet::from([0]),
            stuck: BTreeMap::new(),
            ledger: genesis.clone(),
            blocks: VecDeque::new(),
            certified: genesis.height(),
            known: genesis.clone(),
            ahead: VecDeque::new(),
            begun: genesis.height(),
            acted: (0, false),
            asked: BTreeMap::new(),
            said: Vec::new(),
            votes: Vec::new(),
            broken: None,
        };
        validator.perform_all(first);
        validator.give(MemberInput::Certified(genesis.height()));
        validator.pump();
        validator.is_calm = false;
        validator
    }

    /// The faults stop.
    pub fn calm(&mut self) {
        self.is_calm = true;
    }

    /// Whether a fault of this rarity happens now.
    fn fails(&mut self, once_in: u64) -> bool {
        !self.is_calm && self.dice.once_in(once_in)
    }

    fn has(&self, mistake: MemberMistake) -> bool {
        self.mistake == Some(Mistake::Member(mistake))
    }

    /// A block was made.
    pub fn on_block(&mut self, block: SimBlock) {
        // What a member that is further behind posts has ended before it can be in a block.
        let is_close = (self.blocks.len() as u64) < POST_BLOCKS / 2;
        self.blocks.push_back(block);
        self.acted = (self.acted.0 + u64::from(self.acted.1 && is_close), false);
    }

    /// Applies the next block; false if there is none.
    pub fn apply(&mut self) -> bool {
        let Some(SimBlock { facts, native, state }) = self.blocks.pop_front() else { return false };
        self.pool.settle(native.iter().map(|one| (one.id(), one)));
        self.pool.end(state.height());
        self.ledger = state.clone();
        self.ahead.push_back(state);
        self.advance();
        self.give(MemberInput::Applied(facts));
        self.pump();
        true
    }

    /// Some heights more are certified, whether or not their blocks are applied here.
    pub fn certify(&mut self, newest: Height) -> bool {
        let is_next = self.certified < newest;
        if is_next {
            self.certified = newest.min(self.certified + 1 + self.dice.below(4));
            self.advance();
            self.give(MemberInput::Certified(self.certified));
            self.pump();
        }
        is_next
    }

    fn advance(&mut self) {
        while self.ahead.front().is_some_and(|state| state.height() <= self.certified)
            && let Some(state) = self.ahead.pop_front()
        {
            let begun = if now(&state) == now(&self.known) { self.acted.0 } else { 0 };
            self.acted = (begun, true);
            self.known = state;
        }
    }

    /// Gives the member an input, and performs what follows from it.
    fn give(&mut self, input: MemberInput) {
        self.inputs.push_back(input);
        self.give_all();
    }

    fn give_all(&mut self) {
        while let Some(input) = self.inputs.pop_front() {
            let effects = self.member.step(&self.ledger, input);
            self.perform_all(effects);
        }
    }

    fn perform_all(&mut self, effects: Vec<MemberEffect>) {
        let results: Vec<MemberInput> = effects.into_iter().filter_map(|effect| self.perform(effect)).collect();
        // Results come before reports of shards.
        results.into_iter().rev().for_each(|result| self.inputs.push_front(result));
    }

    fn perform(&mut self, effect: MemberEffect) -> Option<MemberInput> {
        match effect {
            MemberEffect::Prepare { home, makes_keys } => Some(self.prepare(home, makes_keys)),
            MemberEffect::Start { home, shard, term } if self.lines.contains_key(&shard) => {
                ShardOrder::starting(*term).into_iter().for_each(|order| self.order(shard, &order));
                Some(MemberInput::Started(home, shard, ShardStart::Underway))
            }
            MemberEffect::Start { home, shard, term } => {
                Some(MemberInput::Started(home, shard, self.start((home, shard), &term)))
            }
            MemberEffect::Tell(home, shard, fact) => {
                self.check_told(&fact);
                match self.lines.contains_key(&shard) {
                    true => self.order(shard, &ShardOrder::Tell(home, fact)),
                    false => self.step((home, shard), fact),
                }
                None
            }
            MemberEffect::StopListening(_) => None,
            MemberEffect::Stop(home, shard) => {
                match self.lines.contains_key(&shard) {
                    true => self.order(shard, &ShardOrder::Stop(home)),
                    false => self.stop((home, shard)),
                }
                None
            }
            MemberEffect::Remove(home) => {
                self.order_all(&ShardOrder::Remove(home));
                Some(self.remove(home))
            }
            MemberEffect::Forget(home) => {
                self.order_all(&ShardOrder::Forget(home));
                let own: Vec<u16> = self.own().collect();
                let forgotten = own.into_iter().filter_map(|shard| self.logs.remove(&(home, shard))).count();
                Some(MemberInput::Forgotten(home, forgotten > 0))
            }
            MemberEffect::Keep(shard, newest, homes) => {
                let preparation = self.preparation(newest + 1);
                self.order(shard, &preparation);
                self.order(shard, &ShardOrder::Keep(newest, homes));
                None
            }
            MemberEffect::Work(work) => {
                let posts = self.work(&work);
                Some(MemberInput::Worked(work, posts))
            }
            MemberEffect::Post(post) => Some(MemberInput::Posted(post.key, self.post(*post))),
        }
    }

    fn work(&mut self, work: &KeyWork) -> Option<Vec<BridgeOperation>> {
        let registrar = registrar(self.index.into());
        if !self.lines.is_empty() {
            return self.register_with_apart(work, &registrar);
        }
        let keys = (0..self.registered(work.epoch())).map(|shard| self.keys.get(&(work.epoch(), shard)).cloned());
        Some(work.perform(&keys.collect::<Option<Vec<SecretKey>>>()?, Some(&registrar)))
    }

    fn post(&mut self, post: LanePost) -> bool {
        let says = matches!(post.operation, BridgeOperation::Vote { .. } | BridgeOperation::View { .. });
        if self.is_silent && says {
            return false;
        }
        let account = secret(2, self.index.into());
        let lane = self.ledger.lane().expect("the chain has a lane");
        let bytes = match self.mistake {
            Some(Mistake::Lane(LaneMistake::DutyUnmarked)) => post.operation.encode(),
            _ => lane.post_bytes(account.public().address(), &post.operation),
        };
        let operation = Operation::Lane(bytes.into());
        !self.fails(6) && self.pool.post(&account, operation, post.until, &self.ledger, 0).is_ok()
    }

    /// Takes its sub-block. What is in no block is given back with [`SimValidator::take_back`].
    pub fn propose(&mut self) -> Vec<PoolEntry> {
        self.pool.take(POOL)
    }

    pub fn take_back(&mut self, entries: Vec<PoolEntry>) {
        self.pool.restore(entries);
    }

    /// A request of a client reaches the shard that the owner's money is in.
    pub fn request(&mut self, home: HomeEpoch, owner: &PublicKey, peer: LanePeer, bytes: &[u8]) {
        let committee = lane(&self.ledger).committee(home);
        let shard = committee.and_then(|of| of.shard_of(self.index, owner).ok()).unwrap_or(0);
        self.step((home, shard), LaneInput::Request { peer, bytes });
        self.give_all();
        self.pump();
    }

    pub fn tick(&mut self) {
        let places: Vec<Place> = self.shards.keys().copied().collect();
        places.into_iter().for_each(|place| self.step(place, LaneInput::Tick));
        self.give_all();
        self.pump();
    }

    /// The oldest sync of each shard completes.
    pub fn sync(&mut self) {
        let places: Vec<Place> = self.shards.keys().copied().collect();
        for place in places {
            let Some(shard) = self.shards.get_mut(&place) else { continue };
            let Some(position) = shard.syncs.pop_front() else { continue };
            shard.disk.durable = shard.disk.durable.max(position as usize);
            self.step(place, LaneInput::Synced(position));
        }
        self.give_all();
        self.pump();
    }

    fn step(&mut self, place: Place, input: LaneInput<'_>) {
        let Some(shard) = self.shards.get_mut(&place) else { return };
        if let LaneInput::Backed(id, _)
        | LaneInput::Proven(id, _)
        | LaneInput::CaseOpened(ContestedOutput { output: SpentOutput { id, .. }, .. }) = &input
        {
            shard.told.insert(*id);
        }
        let effects = shard.machine.step(&shard.disk.bytes, input);
        effects.into_iter().for_each(|effect| self.perform_shard(place, effect));
    }

    fn perform_shard(&mut self, place: Place, effect: LaneEffect) {
        let Some(shard) = self.shards.get_mut(&place) else { return };
        match effect {
            LaneEffect::Append(bytes) => shard.disk.bytes.extend(bytes),
            LaneEffect::Sync(position) if self.mistake == Some(Mistake::Lane(LaneMistake::AnswerBeforeSync)) => {
                self.step(place, LaneInput::Synced(position));
            }
            LaneEffect::Sync(position) => shard.syncs.push_back(position),
            LaneEffect::Answer { kind, digest, answer, .. } => {
                self.said.push(Said { kind, digest, answer: SimAnswer::Tree(answer) });
            }
            LaneEffect::BlsAnswer { kind, digest, signature, .. } => {
                self.said.push(Said { kind, digest, answer: SimAnswer::Bls(self.index, signature) });
            }
            LaneEffect::Mute(reason) => self.broken = Some(format!("validator {}: {reason}", self.index)),
            LaneEffect::Vote { .. }
            | LaneEffect::Shown(_)
            | LaneEffect::Barred { .. }
            | LaneEffect::View { .. }
            | LaneEffect::Destroy => self.report(place, effect),
            // Payers build no payment that the terms of its home refuse.
            LaneEffect::Refuse { refusal: LaneRefusal::WrongSum { .. } | LaneRefusal::TooSmall { .. }, .. } => {
                self.broken =
                    Some(format!("validator {} refuses a payment for other terms than its home's", self.index));
            }
            LaneEffect::BatchAnswer(..) | LaneEffect::Spender { .. } | LaneEffect::Refuse { .. } => {}
        }
    }

    /// Passes a report to the member, unless its queue is full.
    fn report(&mut self, (home, shard): Place, effect: LaneEffect) {
        if let LaneEffect::Vote { payment, .. } = &effect {
            self.votes.push(payment.clone());
        }
        if !self.fails(4) {
            if let LaneEffect::Shown(of) = &effect {
                self.shown.insert(of.digest(&lane(&self.ledger).network()));
            }
            match self.lines.contains_key(&shard) {
                true => self.report_apart((home, shard), effect),
                false => self.inputs.push_back(MemberInput::Reported(home, shard, effect)),
            }
        }
    }

    /// The process ends for good, and its operator closes its logs for a restart of the network.
    pub fn close(mut self, restart: u32) -> Result<Vec<ClosedLog>, MuteReason> {
        let network = lane(&self.ledger).network();
        for (place, mut shard) in std::mem::take(&mut self.shards) {
            shard.disk.crash(&mut self.dice);
            self.logs.insert(place, shard.disk);
        }
        let mut closed = Vec::new();
        for ((home, shard), mut disk) in std::mem::take(&mut self.logs) {
            let owner = LogOwner { network, home, validator: self.index, shard };
            let (intact, bytes) = closing(&disk.bytes, &owner, restart)?;
            disk.bytes.truncate(intact as usize);
            disk.bytes.extend(bytes);
            closed.extend(ClosedLog::read(&disk.bytes, owner)?);
        }
        Ok(closed)
    }

    /// The process ends at any moment, and restarts with its disks and the applied state.
    pub fn crash(&mut self) {
        // Shards that run apart go on.
        let own: BTreeSet<u16> = self.own().collect();
        let (ended, running): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.shards).into_iter().partition(|((_, shard), _)| own.contains(shard));
        self.shards = running;
        for (place, mut shard) in ended {
            shard.disk.crash(&mut self.dice);
            // Without its log a shard signs nothing.
            if !self.has(MemberMistake::LogMadeAgain) {
                self.logs.insert(place, shard.disk);
            }
        }
        self.inputs.clear();
        self.shown.clear();
        self.said.clear();
        self.votes.clear();
        self.acted = (0, false);
        self.asked.clear();
        self.begun = self.ledger.height();
        self.pool = Mempool::new(POOL);
        let stored: BTreeSet<HomeEpoch> = self.logs.keys().chain(self.keys.keys()).map(|(home, _)| *home).collect();
        let settings = settings(self.index, self.ledger.height(), self.count, self.mistake);
        let (member, first) = LaneMember::new(settings, &self.ledger, stored);
        self.begin_apart();
        self.member = member.with_apart(self.lines.keys().copied());
        self.perform_all(first);
        self.give(MemberInput::Certified(self.certified));
        self.pump();
    }
}
