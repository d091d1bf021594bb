//! The state machine of one validator; see the crate's text.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use consensus::{
    Committee, Engine, Entry, Evidence, Finality, Frame, Index, Members, Payload, Protocol, Refused, Start, Timer, Turn,
};
use ledger::{Ledger, outcome_root};
use primitives::{Digest, Height, SubBlock, Transaction, to_hex};
use store::{Disk, Options, Store, StoreError, VoteLog, VoteOptions};

use crate::{
    Handovers, Home, Lineage, Network, Past, PeerStatus, PoolJob, ReplicaError, ValidatorStatus, encode, state_sync,
};

/// Inputs of one step at most.
pub const INPUTS_OF_A_STEP: usize = 512;
/// Frames that no correct validator sends, after which a peer is disconnected for a while.
pub const OFFENCES_MAX: u32 = 50;
/// Between two ticks of the engine.
const TICK: Duration = Duration::from_millis(200);
/// Transactions that were handed to another validator, and that nobody has committed, are taken back after this long.
const RETRY: Duration = Duration::from_secs(3);
/// A clock that is off by more than this is wrong.
const CLOCK_OFF_MS: i64 = 10 * 60 * 1_000;
/// Bytes that a sub-block may hold besides its transactions.
const SUB_BLOCK_OVERHEAD: usize = 64;

/// The time of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Since the shell began, by a clock that never goes back.
    pub since: Duration,
    /// Milliseconds since 1970, by a clock that may be wrong.
    pub wall_ms: u64,
}

impl Now {
    /// Milliseconds since the shell began.
    pub fn milliseconds(&self) -> u64 {
        self.since.as_millis() as u64
    }
}

/// What the pool holds at the time of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting {
    /// Transactions that can be proposed.
    pub ready: usize,
    /// When the oldest of them came, in milliseconds of [`Now::since`].
    pub oldest_ms: Option<u64>,
}

/// What one validator sets for itself.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Transactions of a sub-block at most; it is proposed as soon as so many wait.
    pub transactions: usize,
    /// A sub-block is proposed when a transaction has waited this long.
    pub interval: Duration,
    /// Whether signatures in others' sub-blocks are checked while these are being agreed on.
    pub check_ahead: bool,
    /// Whether evidence is brought before the ledger.
    pub accuse: bool,
    /// Between two ticks of the engine.
    pub tick: Duration,
    /// A mistake that the simulator seeds; none anywhere else.
    pub defect: Option<Defect>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            transactions: 100_000,
            interval: Duration::from_millis(500),
            check_ahead: true,
            accuse: true,
            tick: TICK,
            defect: None,
        }
    }
}

/// Mistakes that a replica could make, for the simulator to seed: a check that never fires shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// What a turn says is sent, and its votes are never written down.
    VotesUnlogged,
    /// Votes are forgotten although their heights are not certified.
    VotesForgottenEarly,
    /// After a lost log the validator votes at once.
    SilenceBroken,
    /// An idle network never begins a height.
    NeverBeats,
    /// What was assembled for a height and left out is forgotten.
    LeftOutLost,
    /// What was handed over is never taken back.
    HandedOverLost,
    /// The next epoch begins with the committee of this one.
    CommitteeKept,
    /// The outcome is signed without the receipts.
    ReceiptsUnsigned,
    /// Certificates are never synced before their votes are forgotten.
    CertificatesUnsynced,
    /// What is heard by links of an earlier epoch counts.
    GenerationsMixed,
    /// Validators that lag are not answered.
    LaggardsUnanswered,
}

impl Defect {
    /// All of them.
    pub const ALL: [Defect; 11] = [
        Defect::VotesUnlogged,
        Defect::VotesForgottenEarly,
        Defect::SilenceBroken,
        Defect::NeverBeats,
        Defect::LeftOutLost,
        Defect::HandedOverLost,
        Defect::CommitteeKept,
        Defect::ReceiptsUnsigned,
        Defect::CertificatesUnsynced,
        Defect::GenerationsMixed,
        Defect::LaggardsUnanswered,
    ];
}

/// What a replica hears.
#[derive(Debug)]
pub enum Input {
    /// Of a link to a peer.
    Link {
        /// Of which links: see [`Effect::Connect`].
        generation: u64,
        /// The peer.
        peer: Index,
        /// What happened.
        event: Sight,
    },
    /// A sub-block that was asked for.
    Assembled {
        /// For this height.
        height: Height,
        /// Its bytes.
        payload: Payload,
    },
    /// Transactions for another validator to propose.
    HandedOver {
        /// The validator.
        to: Index,
        /// A sub-block of them.
        payload: Payload,
        /// Their number.
        count: usize,
    },
    /// Some of what was handed over was not committed in time, and waits here again.
    TakenBack,
    /// The block of a height is durable and applied.
    Applied(Height),
    /// The state root after a height.
    StateRoot(Height, Digest),
    /// The receipts root of a height.
    ReceiptsRoot(Height, Digest),
    /// The network of the next epoch.
    Epoch(Box<Network>),
}

/// The bytes of a frame. Whoever gave them may count them for as long as they are held.
pub struct FrameBytes(Box<dyn std::ops::Deref<Target = [u8]> + Send>);

impl FrameBytes {
    /// These bytes.
    pub fn new(bytes: impl std::ops::Deref<Target = [u8]> + Send + 'static) -> FrameBytes {
        FrameBytes(Box::new(bytes))
    }
}

impl std::ops::Deref for FrameBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for FrameBytes {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} bytes", self.len())
    }
}

/// What happens on a link.
#[derive(Debug)]
pub enum Sight {
    /// A frame came.
    Frame(FrameBytes),
    /// It is up. The peer's clock is ahead by so many milliseconds.
    Up {
        /// Negative if it is behind.
        ahead_ms: i64,
    },
    /// It is down.
    Down,
    /// The peer says that this validator's key is in use by another process.
    KeyInUse,
}

/// What the shell is to do, in order.
#[derive(Debug)]
pub enum Effect {
    /// A frame for peers.
    Send {
        /// To whom.
        to: Members,
        /// Whether it may wait behind votes.
        is_bulk: bool,
        /// Its bytes.
        bytes: Arc<[u8]>,
    },
    /// A peer went on sending what no correct validator sends: disconnect it for a while.
    Limit(Index),
    /// Links to other peers take the place of all that there are; what they tell comes with this generation.
    Connect(u64, Box<Network>),
    /// Work that is too long for a step.
    Job(Job),
    /// For the operator and the metrics.
    Told(Told),
    /// The validator cannot go on, and why.
    Stop(String),
}

/// What operators count.
#[derive(Clone, Debug)]
pub enum Told {
    /// The vote log was synced.
    VotesSynced,
    /// A frame was refused.
    Refused {
        /// Whose.
        peer: Index,
        /// Why.
        why: Refused,
    },
    /// A validator contradicted itself.
    Evidence,
    /// So many transactions were handed to another validator.
    HandedOver(usize),
    /// A height was decided, with sub-blocks of these validators.
    Decided(Vec<Index>),
    /// A height is certified here, as all below.
    Certified(Height),
    /// Certificates up to this height are durable; blocks above it are needed.
    CertifiedDurably(Height),
    /// An epoch began.
    Epoch(u64),
}

/// Work that is too long for a step.
#[derive(Debug)]
pub enum Job {
    /// On the pool.
    Pool(PoolJob),
    /// Submits what another validator could not get in, as if a client had sent it; what finds no room is sent again.
    Submit(Vec<Transaction>),
    /// A superblock that was decided.
    Apply(Agreed),
    /// The signatures of a sub-block that is being agreed on.
    Check {
        /// Its proposer.
        slot: Index,
        /// Its digest.
        digest: Digest,
        /// Its bytes.
        payload: Payload,
    },
    /// Decided heights, for a validator that lags.
    Answer {
        /// By these links.
        generation: u64,
        /// To whom.
        peer: Index,
        /// The first height.
        from: Height,
        /// The last.
        to: Height,
    },
    /// A message about whole states.
    State {
        /// By these links.
        generation: u64,
        /// From whom.
        peer: Index,
        /// Its bytes.
        bytes: FrameBytes,
    },
    /// The network of the epoch that decides this height, by a ledger that has applied the height below.
    NextEpoch(Height),
}

/// A superblock that was decided.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// Its height.
    pub height: Height,
    /// Slots and sub-blocks, in the order of the block.
    pub sub_blocks: Vec<(Index, Payload)>,
    /// How many clocks make a median that can be trusted.
    pub clocks_needed: usize,
}

/// Whether bytes are a sub-block, and how many transactions it has.
pub fn check_payload(bytes: &[u8]) -> Option<usize> {
    SubBlock::from_payload(0, bytes).ok().map(|sub_block| sub_block.native.len())
}

/// The state machine; see the crate's text.
pub struct Replica<D: Disk> {
    engine: Engine,
    network: Network,
    settings: Settings,
    home: Home<D>,
    /// Nothing while it is not known what the validator has voted for before.
    votes: Option<VoteLog<D>>,
    /// Certificates, by height.
    finality: Store<D>,
    now: Now,
    waiting: Waiting,
    effects: Vec<Effect>,
    generation: u64,
    /// Who is connected.
    up: Members,
    timers: BinaryHeap<Reverse<(Duration, Height, Timer)>>,
    next_tick: Duration,
    /// The height that a sub-block is being assembled for.
    assembling: Option<Height>,
    /// Whether transactions are being taken out of the pool for another validator.
    handing_over: bool,
    /// Heights that a sub-block was proposed for here, and that are not decided.
    proposed: BTreeSet<Height>,
    last_proposal: Duration,
    /// Whether the last sub-block of this validator that was decided on was left out.
    left_out: bool,
    /// How many substitutes are passed over, as earlier ones have failed.
    skip: usize,
    /// State root and receipts root of heights of which the other is not known yet.
    halves: BTreeMap<Height, [Option<Digest>; 2]>,
    /// Frames of each peer that no correct validator sends; one is forgiven at every tick.
    offences: BTreeMap<Index, u32>,
    /// Who said that this validator's key is in use elsewhere.
    duplicates: Members,
    /// By how many milliseconds the clocks of those that are connected were ahead of the own one.
    clocks: BTreeMap<Index, i64>,
    /// In which round each slot of the last height was decided that was decided here.
    rounds: BTreeMap<Index, u32>,
    /// When the last superblock was decided.
    last_decided: Duration,
    /// Whether the next epoch's network was asked for.
    is_turning_over: bool,
}

/// A replica that was opened, and what works beside it.
pub struct Opened<D: Disk> {
    /// The machine.
    pub replica: Replica<D>,
    /// What it has archived.
    pub past: Past<D>,
    /// What proves later committees.
    pub handovers: Arc<Handovers<D>>,
    /// The height of a state without a certificate, which was restored from a file.
    pub unproved: Option<Height>,
    /// Certificates up to this height are durable.
    pub certified_durably: Height,
}

impl<D: Disk + Clone> Replica<D> {
    /// Brings the machine to where its home left it. `network` is that of the genesis; `ledger` has applied the last
    /// logged block, and `newest` is its height with its state root; `blocks` is the archive of its store.
    ///
    /// # Errors
    /// [`ReplicaError`] says what is damaged.
    pub fn open(
        home: &Home<D>,
        network: &Network,
        settings: Settings,
        ledger: &Ledger,
        newest: (Height, Digest),
        blocks: store::Archive<D>,
    ) -> Result<Opened<D>, ReplicaError> {
        let (finality, _) = Store::open(home.certificates.clone(), Options::default())?;
        let past = Past { blocks, certificates: finality.archive() };
        let lineage = Lineage { schedule: ledger.schedule(), lag: network.rules.lag, chain: network.chain.clone() };
        let handovers = Arc::new(Handovers::open(home.handovers.clone(), lineage, finality.archive())?);
        let unproved = unproved(&finality, ledger, &past)?;
        let height = unproved.unwrap_or(finality.last_height().min(ledger.height()));
        let network = network.at(ledger, height + 1);
        let start = start(&network, &past, ledger, height, newest)?;
        let mut engine = Engine::new(network.setup(check_payload), start);
        if unproved.is_some() {
            // It knows no superblock to go on from: until it has found one it only says how far its state is.
            engine.rejoin();
        }
        let votes = open_votes(home, &mut engine, settings.defect)?;
        let certified_durably = finality.durable_height();
        let replica = Replica {
            engine,
            network,
            settings,
            home: home.clone(),
            votes,
            finality,
            now: Now::default(),
            waiting: Waiting::default(),
            effects: Vec::new(),
            generation: 0,
            up: Members::default(),
            timers: BinaryHeap::new(),
            next_tick: Duration::ZERO,
            assembling: None,
            handing_over: false,
            proposed: BTreeSet::new(),
            last_proposal: Duration::ZERO,
            left_out: false,
            skip: 0,
            halves: BTreeMap::new(),
            offences: BTreeMap::new(),
            duplicates: Members::default(),
            clocks: BTreeMap::new(),
            rounds: BTreeMap::new(),
            last_decided: Duration::ZERO,
            is_turning_over: false,
        };
        Ok(Opened { replica, past, handovers, unproved, certified_durably })
    }
}

impl<D: Disk + Clone> Replica<D> {
    /// The network of the present epoch.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The engine of the present epoch.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The number of the present links.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// When the next step is due, if no input comes before and nothing more enters the pool.
    pub fn deadline(&self) -> Duration {
        let timer = self.timers.peek().map_or(self.next_tick, |Reverse((at, ..))| *at);
        let oldest = self.waiting.oldest_ms.map(|arrived| Duration::from_millis(arrived) + self.settings.interval);
        // What has waited for long enough already waits for an opening, and that comes with an input.
        let proposal = oldest.filter(|due| *due > self.now.since).unwrap_or(self.next_tick);
        timer.min(self.next_tick).min(proposal)
    }

    /// One turn: takes inputs, fires the timers that are due, proposes what is time for, makes durable what the engine
    /// is about to say, and says it. At most [`INPUTS_OF_A_STEP`] inputs, so that timers are not late.
    ///
    /// # Errors
    /// [`ReplicaError`] if a disk fails: the replica must not be used from then on.
    pub fn step(
        &mut self,
        now: Now,
        waiting: Waiting,
        inputs: impl IntoIterator<Item = Input>,
    ) -> Result<Vec<Effect>, ReplicaError> {
        (self.now, self.waiting) = (now, waiting);
        for input in inputs {
            self.on_input(input)?;
        }
        self.fire_timers();
        self.propose();
        let turn = self.engine.take_turn();
        self.act(turn)?;
        if self.engine.is_over() && !std::mem::replace(&mut self.is_turning_over, true) {
            self.job(Job::NextEpoch(self.engine.tip().0 + 1));
        }
        Ok(std::mem::take(&mut self.effects))
    }

    fn has(&self, defect: Defect) -> bool {
        self.settings.defect == Some(defect)
    }

    fn job(&mut self, job: Job) {
        self.effects.push(Effect::Job(job));
    }

    fn tell(&mut self, told: Told) {
        self.effects.push(Effect::Told(told));
    }

    fn stop(&mut self, why: impl std::fmt::Display) {
        self.effects.push(Effect::Stop(why.to_string()));
    }

    fn on_input(&mut self, input: Input) -> Result<(), ReplicaError> {
        match input {
            Input::Link { generation, .. } if generation != self.generation && !self.has(Defect::GenerationsMixed) => {}
            Input::Link { peer, event, .. } => self.on_link(peer, event),
            Input::Assembled { height, payload } => self.on_assembled(height, payload),
            Input::HandedOver { to, payload, count } => {
                self.handing_over = false;
                // Another epoch may have begun meanwhile: then it is taken back before long.
                if count > 0 && usize::from(to) < self.network.peers.len() && to != self.network.me {
                    self.tell(Told::HandedOver(count));
                    self.engine.hand_over(to, payload);
                }
            }
            Input::TakenBack => self.skip = self.skip.wrapping_add(1),
            Input::Applied(height) => self.engine.on_applied(height),
            Input::StateRoot(height, root) => self.on_half(height, [Some(root), None]),
            Input::ReceiptsRoot(height, root) => self.on_half(height, [None, Some(root)]),
            Input::Epoch(network) => self.begin_epoch(*network)?,
        }
        Ok(())
    }

    fn on_link(&mut self, peer: Index, event: Sight) {
        match event {
            Sight::Up { ahead_ms } => {
                self.compare_clocks(peer, ahead_ms);
                self.up.insert(peer);
                self.engine.on_up(peer);
            }
            Sight::Down => {
                self.clocks.remove(&peer);
                self.up = self.up.iter().filter(|other| *other != peer).collect();
                self.engine.on_down(peer);
            }
            Sight::KeyInUse => self.on_key_in_use(peer),
            Sight::Frame(bytes) if bytes.first() == Some(&state_sync::TAG) => {
                self.job(Job::State { generation: self.generation, peer, bytes });
            }
            Sight::Frame(bytes) => match Frame::from_bytes(&bytes) {
                Ok(frame) => self.on_frame(peer, frame),
                Err(error) => {
                    tracing::debug!(peer, %error, "an undecodable frame");
                    self.offend(peer, Refused::Undecodable);
                }
            },
        }
    }

    /// Takes a frame. A sub-block that is new here is checked while it is being agreed on: at most two for each slot
    /// are, whatever its proposer sends.
    fn on_frame(&mut self, peer: Index, frame: Frame) {
        let Frame::Proposal(proposal, payload) = &frame else { return self.engine.on_frame(peer, frame) };
        let (proposal, payload) = (*proposal, payload.clone());
        let known = self.engine.holds(proposal.height, proposal.slot, &proposal.digest);
        self.engine.on_frame(peer, frame);
        let is_new = !known && self.engine.holds(proposal.height, proposal.slot, &proposal.digest);
        if is_new && self.settings.check_ahead {
            self.job(Job::Check { slot: proposal.slot, digest: proposal.digest, payload });
        }
    }

    /// State root and receipts root of a height come from two jobs; what is signed is both together.
    fn on_half(&mut self, height: Height, half: [Option<Digest>; 2]) {
        let halves = self.halves.entry(height).or_default();
        *halves = [half[0].or(halves[0]), half[1].or(halves[1])];
        if let [Some(state), Some(mut receipts)] = *halves {
            if self.has(Defect::ReceiptsUnsigned) {
                receipts = Digest::default();
            }
            self.halves.remove(&height);
            self.engine.on_root(height, outcome_root(&state, &receipts));
        }
    }

    /// Stops if the key is in use elsewhere: one validator alone may lie about that.
    fn on_key_in_use(&mut self, peer: Index) {
        if self.duplicates.insert(peer) && self.duplicates.len() > self.network.chain.committee().faulty {
            self.stop("this validator's key is in use by another process: stop that one first, or give this node its own home");
        }
    }

    /// Stops if the clocks of so many others say that the own one is wrong that one at least is of a correct validator,
    /// and most of them agree.
    fn compare_clocks(&mut self, peer: Index, ahead_ms: i64) {
        self.clocks.insert(peer, ahead_ms);
        let minutes = ahead_ms / 60_000;
        if ahead_ms.unsigned_abs() > CLOCK_OFF_MS.unsigned_abs() {
            tracing::warn!(peer, minutes, "the clock of this validator and the own one differ");
        }
        let faulty = self.network.chain.committee().faulty;
        if let Some(ahead_ms) = clock_off(self.clocks.values().copied(), faulty) {
            let (by, which) = ((ahead_ms / 60_000).abs(), if ahead_ms > 0 { "behind" } else { "ahead of" });
            self.stop(format_args!(
                "this machine's clock is {by} minutes {which} those of the other validators: set it, keep NTP running, and start again"
            ));
        }
    }

    fn fire_timers(&mut self) {
        let now = self.now.since;
        while let Some(Reverse((at, height, timer))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            self.engine.on_timer(height, timer);
        }
        let idle = now.saturating_sub(self.last_decided);
        if idle >= self.network.heartbeat && !self.has(Defect::NeverBeats) {
            self.engine.on_heartbeat();
        }
        if now >= self.next_tick {
            self.next_tick = now + self.settings.tick;
            self.on_tick();
        }
    }

    fn on_tick(&mut self) {
        if self.network.rules.protocol == Protocol::Dbft {
            self.engine.set_waiting(self.waiting.ready > 0);
        }
        self.engine.on_tick();
        self.offences.values_mut().for_each(|count| *count = count.saturating_sub(1));
        // Who follows proposes nothing, and keeps its accusations until it does.
        if !self.engine.follows() {
            self.job(Job::Pool(PoolJob::Accuse));
        }
        if !self.has(Defect::HandedOverLost) {
            let before_ms = self.now.since.saturating_sub(RETRY).as_millis() as u64;
            self.job(Job::Pool(PoolJob::TakeBack { before_ms }));
        }
    }

    /// Whether enough transactions wait for a sub-block, or one has waited for long enough.
    fn is_time(&self) -> bool {
        let Waiting { ready, oldest_ms } = self.waiting;
        let age = oldest_ms.map(|arrived| self.now.milliseconds().saturating_sub(arrived));
        ready >= self.settings.transactions
            || age.is_some_and(|age| u128::from(age) >= self.settings.interval.as_millis())
    }

    /// Proposes what waits, when it is time.
    fn propose(&mut self) {
        if self.network.rules.protocol == Protocol::Tendermint {
            // Whoever's turn it is, heights must go on until it is this validator's.
            self.engine.set_waiting(self.is_time());
        }
        let substitute = self.needs_substitute().then(|| self.engine.substitute(self.skip)).flatten();
        let (proposer, count) = (self.network.me, self.settings.transactions);
        let room = self.network.rules.payload_bytes - SUB_BLOCK_OVERHEAD;
        if let Some(to) = substitute
            && self.is_time()
            && !std::mem::replace(&mut self.handing_over, true)
        {
            self.job(Job::Pool(PoolJob::HandOver { to, proposer, room, count }));
        }
        if self.assembling.is_some() {
            return;
        }
        let Some(opening) = self.engine.opening().filter(|opening| self.is_due(opening)) else { return };
        self.assembling = Some(opening.height);
        // What is left out as likely as not holds nothing that a substitute can get in.
        let room = substitute.is_none().then_some(room);
        self.job(Job::Pool(PoolJob::Assemble { height: opening.height, proposer, room, count }));
    }

    fn is_due(&self, opening: &consensus::Opening) -> bool {
        let waited = self.now.since.saturating_sub(self.last_proposal) >= self.settings.interval;
        opening.urgent || self.is_time() || (opening.nudged && waited)
    }

    /// Proposes what was assembled, unless its height has become void meanwhile.
    fn on_assembled(&mut self, height: Height, payload: Payload) {
        if self.assembling != Some(height) {
            return self.job(Job::Pool(PoolJob::PutBack(height)));
        }
        self.assembling = None;
        if self.engine.opening().is_none_or(|opening| opening.height != height) {
            return self.job(Job::Pool(PoolJob::PutBack(height)));
        }
        self.engine.propose(height, payload);
        self.proposed.insert(height);
        self.last_proposal = self.now.since;
    }

    /// Whether what waits here gets in sooner if another validator proposes it.
    fn needs_substitute(&self) -> bool {
        let benched = || self.engine.benched(self.engine.decided() + 1).contains(self.network.me);
        self.left_out || self.engine.follows() || benched()
    }

    /// Makes a turn's entries durable, and then gives out the rest.
    fn act(&mut self, turn: Turn) -> Result<(), ReplicaError> {
        if let (None, Some(silent_to)) = (&self.votes, self.engine.silent_to()) {
            tracing::warn!(above = silent_to, "the others have told how far they are: voting again above this height");
            let votes = VoteLog::rejoin(self.home.votes.clone(), VoteOptions::default(), silent_to + 1)?;
            self.votes = Some(votes);
        }
        self.write_down(&turn.entries)?;
        if let Some(divergence) = turn.diverged {
            let consensus::Divergence { height, ours, theirs } = divergence;
            self.stop(format_args!(
                "at height {height} this node has superblock {} and state root {}, and f+1 others have {} and {}: the state \
                 has diverged; stop, keep the data, and report this",
                ours.superblock, ours.root, theirs.superblock, theirs.root
            ));
            return Ok(());
        }
        for (to, frame) in turn.sends {
            let (is_bulk, bytes) = (frame.is_bulk(), frame.to_bytes().into());
            self.effects.push(Effect::Send { to, is_bulk, bytes });
        }
        for (height, timer) in turn.timers {
            let wait = match timer {
                Timer::Grace | Timer::Missing => self.network.grace,
                _ => self.network.unit * timer.units(),
            };
            self.timers.push(Reverse((self.now.since + wait, height, timer)));
        }
        turn.decided.into_iter().for_each(|superblock| self.on_decided(superblock));
        self.archive(turn.certified)?;
        if !self.has(Defect::LaggardsUnanswered) {
            let generation = self.generation;
            for (peer, from, to) in turn.serve {
                self.job(Job::Answer { generation, peer, from, to });
            }
        }
        turn.handed.iter().for_each(|(peer, payload)| self.on_handed(*peer, payload));
        turn.evidence.iter().for_each(|evidence| self.report(evidence));
        for (peer, why) in turn.refused {
            tracing::debug!(peer, %why, "a frame was refused");
            self.offend(peer, why);
        }
        Ok(())
    }

    /// Counts a refused frame. A peer that goes on sending what no correct validator sends is disconnected for a while.
    fn offend(&mut self, peer: Index, why: Refused) {
        self.tell(Told::Refused { peer, why });
        let offences = self.offences.entry(peer).or_default();
        *offences += u32::from(why.is_offence());
        if *offences >= OFFENCES_MAX {
            *offences = 0;
            self.effects.push(Effect::Limit(peer));
        }
    }

    /// Makes entries durable, with one sync.
    fn write_down(&mut self, entries: &[(Height, Entry)]) -> Result<(), ReplicaError> {
        if entries.is_empty() || self.has(Defect::VotesUnlogged) {
            return Ok(());
        }
        let votes = self.votes.as_mut().expect("who votes has a log");
        for (height, entry) in entries {
            votes.append(*height, &encode(entry))?;
        }
        votes.sync()?;
        self.tell(Told::VotesSynced);
        Ok(())
    }

    /// Takes what another validator could not get in.
    fn on_handed(&mut self, peer: Index, payload: &[u8]) {
        let sub_block = SubBlock::from_payload(u32::from(peer), payload).expect("checked by the engine");
        if !self.engine.follows() {
            self.job(Job::Submit(sub_block.native));
        }
    }

    /// Lets a decided superblock be applied, and what was proposed here in vain go back to the pool.
    fn on_decided(&mut self, superblock: consensus::Superblock) {
        let height = superblock.height;
        self.last_decided = self.now.since;
        if !superblock.rounds.is_empty() {
            self.rounds = superblock.rounds.iter().copied().collect();
        }
        self.left_out = superblock.mine.map_or(self.left_out, |mine| !mine);
        if self.proposed.remove(&height) {
            let is_lost = superblock.mine == Some(false) && !self.has(Defect::LeftOutLost);
            self.job(Job::Pool(if is_lost { PoolJob::PutBack(height) } else { PoolJob::Decided(height) }));
        }
        let clocks_needed = match self.network.rules.protocol {
            Protocol::Dbft => self.network.chain.committee().deliver,
            Protocol::Tendermint => 1,
        };
        self.tell(Told::Decided(superblock.sub_blocks.iter().map(|(slot, _)| *slot).collect()));
        self.job(Job::Apply(Agreed { height, sub_blocks: superblock.sub_blocks, clocks_needed }));
    }

    /// Tells the operator of a faulty validator, in the form that `walras wallet accuse` takes, and notes it to be
    /// accused.
    fn report(&mut self, evidence: &Evidence) {
        let whom = evidence.convicts(&self.network.chain);
        let accusation = evidence.accusation(&self.network.chain);
        let encoded = accusation.map(|of| to_hex(&encode(&of)));
        tracing::error!(validator = ?whom, accusation = ?encoded, "a validator signed two contradictory statements");
        self.tell(Told::Evidence);
        if let Some(accusation) = accusation.filter(|_| self.settings.accuse) {
            self.job(Job::Pool(PoolJob::Note(Box::new(accusation))));
        }
    }

    /// Archives certificates; the vote log need not remember what they are about.
    fn archive(&mut self, certified: Vec<Finality>) -> Result<(), ReplicaError> {
        let Some(last) = certified.last().map(|finality| finality.certificate.statement.height) else { return Ok(()) };
        // After a restart the newest certificates may be made again.
        let known = self.finality.last_height();
        for finality in certified.into_iter().filter(|new| new.certificate.statement.height > known) {
            self.finality.append(finality.certificate.statement.height, &encode(&finality))?;
        }
        self.tell(Told::Certified(last));
        if self.has(Defect::VotesForgottenEarly) {
            let over = self.engine.decided();
            return Ok(self.votes.as_mut().map_or(Ok(()), |votes| votes.forget(over + 1))?);
        }
        // One sync for many: what is lost is decided again from the vote log.
        if last >= self.finality.durable_height() + self.network.rules.horizon() {
            self.sync_certificates()?;
            // Not what the ledger has applied: the engine may not have heard of that yet, and speak of those heights.
            let over = last.min(self.engine.settled());
            self.votes.as_mut().map_or(Ok(()), |votes| votes.forget(over + 1))?;
        }
        Ok(())
    }

    fn sync_certificates(&mut self) -> Result<(), ReplicaError> {
        let durable =
            if self.has(Defect::CertificatesUnsynced) { self.finality.last_height() } else { self.finality.sync()? };
        self.tell(Told::CertifiedDurably(durable));
        Ok(())
    }

    /// The next epoch's engine takes over where this one has ended. What it rests on is durable first, so that a
    /// restart never finds the log of one epoch and the archive of another.
    fn begin_epoch(&mut self, mut network: Network) -> Result<(), ReplicaError> {
        self.sync_certificates()?;
        if self.has(Defect::CommitteeKept) {
            network.chain.keys.clone_from(&self.network.chain.keys);
        }
        let (height, _) = self.engine.tip();
        let start = self.engine.successor(&network.chain.committee());
        let mut engine = Engine::new(network.setup(check_payload), start);
        match self.engine.silent_to() {
            Some(height) => engine.stay_silent_below(height + 1),
            // A follower may lack the log too, and vote from now on; or have begun one that says from where on.
            None => match &self.votes {
                Some(votes) => engine.stay_silent_below(votes.floor()),
                None => engine.rejoin(),
            },
        }
        let (epoch, members) = (network.chain.epoch, network.chain.keys.len());
        tracing::info!(epoch, members, me = network.me, follows = engine.follows(), height, "an epoch begins");
        self.tell(Told::Epoch(epoch));
        self.engine = engine;
        self.is_turning_over = false;
        self.offences.clear();
        self.duplicates = Members::default();
        self.left_out = false;
        // What is being assembled is for a height of this epoch, and may have another index in it.
        self.assembling = None;
        let stays = network.has_the_links_of(&self.network);
        self.network = network;
        if stays {
            self.up.iter().for_each(|peer| self.engine.on_up(peer));
        } else {
            self.clocks.clear();
            self.up = Members::default();
            self.generation += 1;
            self.effects.push(Effect::Connect(self.generation, Box::new(self.network.clone())));
        }
        Ok(())
    }

    /// How this validator stands. Round trips are the shell's to add.
    pub fn status(&self) -> ValidatorStatus {
        let idle = self.now.since.saturating_sub(self.last_decided);
        ValidatorStatus {
            engine: self.network.rules.protocol.name(),
            me: self.network.me,
            validators: self.network.chain.keys.len(),
            decided: self.engine.decided(),
            certified: self.engine.certified(),
            certified_anywhere: self.engine.certified_anywhere(),
            connected: self.engine.connected(),
            needed: self.network.chain.committee().round,
            idle_ms: idle.as_millis() as u64,
            epoch: self.network.chain.epoch,
            follows: self.engine.follows(),
            silent: self.engine.is_silent() && !self.engine.follows(),
            stranded: self.engine.is_stranded(),
            benched: self.engine.benched(self.engine.decided() + 1).iter().collect(),
            peers: (0..self.network.peers.len()).map(|index| self.peer(index as Index)).collect(),
        }
    }

    fn peer(&self, validator: Index) -> PeerStatus {
        let rounds = self.rounds.get(&validator).copied();
        let is_me = validator == self.network.me;
        let (decided, certified, connected) = if is_me {
            (self.engine.decided(), self.engine.certified(), true)
        } else {
            let (said, connected) = self.engine.peer(validator);
            (said.decided, said.certified, connected)
        };
        PeerStatus { validator, connected, decided, certified, rounds, round_trip_ms: None }
    }
}

/// By how much the clocks of others are ahead, in the median of those that show the own one to be wrong the same way:
/// more than `faulty` of them, and more than half of all.
fn clock_off(ahead_ms: impl Iterator<Item = i64>, faulty: usize) -> Option<i64> {
    let mut all: Vec<i64> = ahead_ms.collect();
    all.sort_unstable();
    let shows = |off: &[i64]| (off.len() > faulty && 2 * off.len() > all.len()).then(|| off[off.len() / 2]);
    let (behind, rest) = all.split_at(all.partition_point(|ahead| *ahead < -CLOCK_OFF_MS));
    let ahead = &rest[rest.partition_point(|ahead| *ahead <= CLOCK_OFF_MS)..];
    shows(behind).or_else(|| shows(ahead))
}

/// Makes the vote log of a validator that has never voted.
///
/// # Errors
/// If there is one, or it cannot be written.
pub fn create_votes<D: Disk + Clone>(votes: &D) -> Result<(), ReplicaError> {
    VoteLog::create(votes.clone(), VoteOptions::default())?;
    Ok(())
}

/// Gives the engine what the vote log says, or tells it that the log is lost.
fn open_votes<D: Disk + Clone>(
    home: &Home<D>,
    engine: &mut Engine,
    defect: Option<Defect>,
) -> Result<Option<VoteLog<D>>, ReplicaError> {
    let damaged = |error: &StoreError| {
        matches!(error, StoreError::VotesLost(_) | StoreError::Damaged { remedy: store::Remedy::Rejoin, .. })
    };
    match VoteLog::open(home.votes.clone(), VoteOptions::default()) {
        Ok((log, found)) => {
            for repair in found.repairs {
                tracing::warn!(%repair, "the vote log ended unfinished; nothing of that was sent");
            }
            engine.stay_silent_below(found.floor);
            let entries = found.records.into_iter().flat_map(|(height, records)| {
                records.into_iter().map(move |bytes| borsh::from_slice(&bytes).map(|entry| (height, entry)))
            });
            let entries: Result<Vec<(Height, Entry)>, _> = entries.collect();
            engine.restore(entries.map_err(|error| ReplicaError::Undecodable(found.floor, error))?);
            Ok(Some(log))
        }
        Err(error) if damaged(&error) && defect == Some(Defect::SilenceBroken) => {
            Ok(Some(VoteLog::rejoin(home.votes.clone(), VoteOptions::default(), 1)?))
        }
        Err(error) if damaged(&error) => {
            tracing::warn!(%error, "listening without voting until it is known where it is safe to vote again");
            engine.rejoin();
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The height of a state that was restored from a file: blocks between it and the last certificate are not here.
fn unproved<D: Disk>(finality: &Store<D>, ledger: &Ledger, past: &Past<D>) -> Result<Option<Height>, ReplicaError> {
    let (applied, certified) = (ledger.height(), finality.last_height());
    let lacks = applied > certified && past.blocks.block(certified + 1)?.is_none();
    Ok(lacks.then_some(applied))
}

/// Where the engine begins: at the newest archived certificate of a block that is logged here, if there is one.
fn start<D: Disk>(
    network: &Network,
    past: &Past<D>,
    ledger: &Ledger,
    height: Height,
    newest: (Height, Digest),
) -> Result<Start, ReplicaError> {
    let applied = ledger.height();
    let committee: Committee = network.chain.committee();
    let first = Engine::first_benches(&committee, &network.rules);
    let (superblock, benches) = match past.finality(height)? {
        Some(Finality { certificate, benches, .. }) => {
            // Attendance is counted anew in each epoch.
            let goes_on = network.chain.heights.contains(&height);
            (certificate.statement.superblock, if goes_on { benches } else { first })
        }
        None => (Digest::default(), first),
    };
    let mut roots = Vec::new();
    for of in height.saturating_sub(network.rules.lag)..=applied {
        let Some((state, receipts)) = past.outcome(of, newest)? else { continue };
        roots.push((of, outcome_root(&state, &receipts)));
    }
    Ok(Start { height, superblock, benches, applied, roots })
}

#[cfg(test)]
mod tests {
    use super::clock_off;

    #[test]
    fn a_wrong_clock_is_shown_by_more_than_f_and_by_most() {
        const HOUR: i64 = 3_600_000;
        let off = |ahead: &[i64], faulty| clock_off(ahead.iter().copied(), faulty);
        assert_eq!(off(&[HOUR], 1), None, "one may lie");
        assert_eq!(off(&[HOUR, HOUR + 5], 1), Some(HOUR + 5));
        assert_eq!(off(&[HOUR, -HOUR], 1), None);
        assert_eq!(off(&[-HOUR, 3, -HOUR - 1], 1), Some(-HOUR));
        assert_eq!(off(&[HOUR, HOUR, 0, 1], 1), None, "half are no majority");
        assert_eq!(off(&[600_000, 600_000], 0), None);
        assert_eq!(off(&[600_001, 600_001], 0), Some(600_001));
    }
}
