//! The shell around `consensus`: what a node of a network of validators does with the turns of its engine.
//!
//! ```text
//!  peers ──► transport ──► consensus thread ──► vote log ── fsync ──► transport ──► peers
//!                          │   ▲    ▲   │
//!             sub-blocks ◄─┘   │    │   └─► superblocks ──► executor ──► publisher
//!             to verifier      │    └──────── applied, durable ─┘            │
//!                              └───────────── state roots ◄── roots ◄────────┘
//! ```
//!
//! The *consensus* thread owns the engine. It takes all inputs that are there, lets the engine make one turn of them,
//! writes the turn's entries to the vote log with one sync, and only then sends. The *verifier* checks signatures of
//! other validators' sub-blocks while they are still being agreed on. The *executor* applies decided superblocks as the
//! producer of a solo node applies its own. The *archive* thread answers validators that lag.
//!
//! A transaction is checked by the node that received it, travels once inside that node's sub-block, and is looked at
//! again only when the superblock is applied: signature, then the filter.
//!
//! **Accusations.** What proves that a validator contradicted itself is sent to the ledger ([`crate::accusations`]).
//!
//! A validator whose sub-block was left out, or that has no slot for a while, gives what waits to the next validator
//! that has one, and proposes empty sub-blocks until one is in. What that one has not got in after some seconds is
//! given to the one after it; a transaction that is in several sub-blocks takes effect once. So clients of a validator
//! that is far away, or that has just come back, wait for two more messages and not for its slot.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use consensus::{
    Decided, Engine, Entry, Finality, Frame, Index, Opening, Payload, Protocol, Start, Timer, Turn, payload_digest,
};
use ledger::{block_time, outcome_root};
use primitives::{Digest, Height, SubBlock, Superblock, Transaction, TransactionId};
use rayon::prelude::*;
use store::{Archive, RealDisk, Store, StoreError, VoteLog, VoteOptions};

use crate::accusations::Accusations;
use crate::exchange::{ExchangeError, Foundation, Shared, Submission, clock_ms, poisoned};
use crate::handover::{Handovers, Lineage};
use crate::line::Line;
use crate::mempool;
use crate::network::Network;
use crate::recovery::encode;
use crate::state_sync::{self, Heard, StateSync};
use crate::verified::{self, Verified};
use transport::{Event, Lane, Reason, Transport};

/// Inputs that wait for the consensus thread; the transport waits when they are so many.
const INPUTS: usize = 4_096;
/// Inputs of one turn at most.
const INPUTS_OF_A_TURN: usize = 512;
/// Superblocks that wait for the executor; the engine never has more under way.
const DECIDED: usize = 256;
/// Frames that no correct validator sends, after which a peer is disconnected for a while.
const OFFENCES_MAX: u32 = 50;
/// Between two ticks of the engine.
const TICK: Duration = Duration::from_millis(200);
/// How often the mempool is looked at.
const POLL: Duration = Duration::from_millis(2);
/// Transactions that were handed to another validator, and that nobody has committed, are taken back after this long.
const RETRY_MS: u64 = 3_000;
/// A validator that is so many heights behind is still said to be ready.
const CAUGHT_UP: u64 = 4;
/// A clock that is off by more than this is wrong.
const CLOCK_OFF_MS: i64 = 10 * 60 * 1_000;
/// Bytes that a sub-block may hold besides its transactions.
const SUB_BLOCK_OVERHEAD: usize = 64;

/// What the consensus thread hears.
pub(crate) enum Input {
    /// What a transport tells, by the number of the line.
    Transport(u64, Event),
    Applied(Height),
    StateRoot(Height, Digest),
    ReceiptsRoot(Height, Digest),
}

/// A superblock for the executor.
pub(crate) struct Agreed {
    pub(crate) height: Height,
    pub(crate) sub_blocks: Vec<(Index, Payload)>,
    /// How many clocks make a median that can be trusted.
    pub(crate) clocks_needed: usize,
}

/// Whether bytes are a sub-block, and how many transactions it has.
pub(crate) fn check_payload(bytes: &[u8]) -> Option<usize> {
    SubBlock::from_payload(0, bytes).ok().map(|sub_block| sub_block.native.len())
}

/// What the consensus thread works with.
pub(crate) struct Validator {
    engine: Engine,
    network: Network,
    /// Nothing while it is not known what the validator has voted for before.
    votes: Option<VoteLog<RealDisk>>,
    data: PathBuf,
    /// Certificates, by height.
    finality: Store<RealDisk>,
    line: Line,
    inputs: Receiver<Input>,
    agreed: SyncSender<Agreed>,
    requests: Arc<Requests>,
    /// What others ask and answer about states.
    states: SyncSender<Heard>,
    to_verify: SyncSender<(Index, Digest, Payload)>,
    timers: BinaryHeap<Reverse<(Instant, u64, Timer)>>,
    next_tick: Instant,
    /// Transactions that were proposed here, by height, until it is decided.
    proposed: BTreeMap<u64, Vec<mempool::Entry>>,
    last_proposal: Instant,
    /// Whether the last sub-block of this validator that was decided on was left out.
    left_out: bool,
    /// How many substitutes are passed over, as earlier ones have failed.
    skip: usize,
    /// For transactions that others hand over.
    intake: SyncSender<Submission>,
    /// State root and receipts root of heights of which the other is not known yet.
    halves: BTreeMap<Height, [Option<Digest>; 2]>,
    /// Frames of each peer that no correct validator sends; one is forgiven at every tick.
    offences: BTreeMap<Index, u32>,
    /// Who said that this node's key is in use elsewhere.
    duplicates: consensus::Members,
    /// By how many milliseconds the clocks of those that are connected were ahead of the own one.
    clocks: BTreeMap<Index, i64>,
    /// In which round each slot of the last height was decided that was decided here.
    rounds: BTreeMap<Index, u32>,
    /// What is to be brought before the ledger.
    accusations: Accusations,
    /// When the last superblock was decided.
    last_decided: Instant,
}

/// Heights that a validator that lags asked for, and by which connections.
pub(crate) struct Request {
    transport: Weak<Transport>,
    peer: Index,
    from: u64,
    to: u64,
}

/// Requests that wait for the archive thread: the newest of each peer. Peers take turns, so that none crowds out
/// others.
#[derive(Default)]
pub(crate) struct Requests {
    waiting: Mutex<Waiting>,
    came: Condvar,
}

#[derive(Default)]
struct Waiting {
    by_peer: BTreeMap<Index, Request>,
    /// Whom the last request was of.
    last: Index,
    closed: bool,
}

impl Requests {
    fn put(&self, request: Request) {
        poisoned(self.waiting.lock()).by_peer.insert(request.peer, request);
        self.came.notify_one();
    }

    /// Nothing more is put; whoever waits for a request ends.
    fn close(&self) {
        poisoned(self.waiting.lock()).closed = true;
        self.came.notify_all();
    }

    /// The request of the peer whose turn it is; waits for one. `None` once closed.
    fn next(&self) -> Option<Request> {
        let mut waiting = poisoned(self.waiting.lock());
        loop {
            if waiting.closed {
                return None;
            }
            let (last, peers) = (waiting.last, &waiting.by_peer);
            let next = peers.range((Bound::Excluded(last), Bound::Unbounded)).next().or_else(|| peers.iter().next());
            if let Some(peer) = next.map(|(peer, _)| *peer) {
                waiting.last = peer;
                return waiting.by_peer.remove(&peer);
            }
            waiting = poisoned(self.came.wait(waiting));
        }
    }
}

impl Drop for Validator {
    fn drop(&mut self) {
        self.requests.close();
    }
}

/// The channels into the threads of a validator.
pub(crate) struct Channels {
    pub(crate) inputs: SyncSender<Input>,
    pub(crate) agreed: Receiver<Agreed>,
}

impl Validator {
    /// Brings the engine to where the store left it, and opens the transport. The threads are to be spawned by the
    /// caller.
    pub(crate) fn start(
        network: Network,
        data: &Path,
        intake: SyncSender<Submission>,
        shared: &Arc<Shared>,
    ) -> Result<(Validator, Channels, Threads), ExchangeError> {
        let directory = |error| ExchangeError::Directory(data.display().to_string(), error);
        let disk = RealDisk::new(data.join("certificates")).map_err(directory)?;
        let (finality, _) = Store::open(disk, store::Options::default())?;
        let lineage =
            Lineage { schedule: shared.read_ledger().schedule(), lag: network.rules.lag, chain: network.chain.clone() };
        shared.handovers.set(Handovers::open(data, lineage, finality.archive())?).ok();
        let unproved = unproved(&finality, shared)?;
        let (states, states_heard) = sync_channel(state_sync::MESSAGES);
        let state_sync = StateSync::new(network.clone(), data.into(), unproved, finality.archive(), states_heard);
        let height = unproved.unwrap_or(finality.last_height().min(shared.read_ledger().height()));
        let network = network.at(&shared.read_ledger(), height + 1);
        let start = start(&network, &finality, height, shared)?;
        let mut engine = Engine::new(network.setup(check_payload), start);
        if unproved.is_some() {
            // It knows no superblock to go on from: until it has found one it only says how far its state is.
            engine.rejoin();
        }
        let votes = open_votes(data, &mut engine, vote_options(&network))?;
        shared.certificates.set((network.rules.lag, finality.archive())).ok();
        shared.certified_durably.store(finality.durable_height(), Ordering::Release);
        let (inputs, received) = sync_channel(INPUTS);
        let (agreed, to_execute) = sync_channel(DECIDED);
        let requests = Arc::new(Requests::default());
        let (to_verify, unverified) = sync_channel(verified::WAITING_MAX);
        let line = Line::open(&network, inputs.clone())?;
        *poisoned(shared.transport.lock()) = Arc::downgrade(line.transport());
        let threads = Threads { unverified, asked: requests.clone(), certificates: finality.archive(), state_sync };
        let now = Instant::now();
        let validator = Validator {
            engine,
            network,
            votes,
            data: data.into(),
            finality,
            line,
            inputs: received,
            agreed,
            requests,
            states,
            to_verify,
            timers: BinaryHeap::new(),
            next_tick: now,
            proposed: BTreeMap::new(),
            last_proposal: now,
            left_out: false,
            skip: 0,
            intake,
            halves: BTreeMap::new(),
            offences: BTreeMap::new(),
            duplicates: consensus::Members::default(),
            clocks: BTreeMap::new(),
            rounds: BTreeMap::new(),
            accusations: Accusations::default(),
            last_decided: now,
        };
        Ok((validator, Channels { inputs, agreed: to_execute }, threads))
    }

    /// The consensus thread.
    pub(crate) fn run(mut self, shared: &Arc<Shared>) {
        loop {
            self.propose(shared);
            let turn = self.engine.take_turn();
            if let Err(error) = self.act(turn, shared) {
                return shared.fail(&error);
            }
            if self.is_over(shared) {
                return self.line.transport().stop();
            }
            if self.engine.is_over()
                && let Err(error) = self.begin_next_epoch(shared)
            {
                return shared.fail(&error);
            }
            self.take_inputs(shared);
        }
    }

    /// The next epoch's engine takes over where this one has ended. What it rests on is durable first, so that a
    /// restart never finds the log of one epoch and the archive of another.
    fn begin_next_epoch(&mut self, shared: &Shared) -> Result<(), ExchangeError> {
        shared.certified_durably.store(self.finality.sync()?, Ordering::Release);
        let (height, _) = self.engine.tip();
        let network = self.network.at(&shared.read_ledger(), height + 1);
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
        self.engine = engine;
        self.offences.clear();
        self.duplicates = consensus::Members::default();
        self.left_out = false;
        let stays = network.has_the_links_of(&self.network);
        self.network = network;
        if stays {
            self.line.up().iter().for_each(|peer| self.engine.on_up(peer));
        } else {
            self.clocks.clear();
            self.line.open_again(&self.network)?;
            *poisoned(shared.transport.lock()) = Arc::downgrade(self.line.transport());
        }
        Ok(())
    }

    fn is_over(&self, shared: &Shared) -> bool {
        let stopping = shared.stopping.load(Ordering::Acquire);
        stopping || poisoned(shared.failure.lock()).is_some()
    }

    fn take_inputs(&mut self, shared: &Shared) {
        let due = self.timers.peek().map_or(self.next_tick, |Reverse((at, ..))| (*at).min(self.next_tick));
        let wait = due.saturating_duration_since(Instant::now()).min(POLL);
        match self.inputs.recv_timeout(wait) {
            Ok(input) => self.take(input, shared),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        for _ in 1..INPUTS_OF_A_TURN {
            let Ok(input) = self.inputs.try_recv() else { break };
            self.take(input, shared);
        }
        let now = Instant::now();
        while let Some(Reverse((at, height, timer))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            self.engine.on_timer(height, timer);
        }
        if now.saturating_duration_since(self.last_decided) >= self.network.heartbeat {
            self.engine.on_heartbeat();
        }
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            if self.network.rules.protocol == Protocol::Dbft {
                self.engine.set_waiting(shared.lock_mempool().ready() > 0);
            }
            self.engine.on_tick();
            self.offences.values_mut().for_each(|count| *count = count.saturating_sub(1));
            self.accuse(shared);
            self.take_back(shared);
            self.measure(shared);
        }
    }

    fn take(&mut self, input: Input, shared: &Shared) {
        match input {
            Input::Applied(height) => self.engine.on_applied(height),
            Input::StateRoot(height, root) => self.on_half(height, [Some(root), None]),
            Input::ReceiptsRoot(height, root) => self.on_half(height, [None, Some(root)]),
            Input::Transport(line, _) if line != self.line.number() => {}
            Input::Transport(_, Event::Up { peer, ahead_ms }) => {
                self.compare_clocks(peer, ahead_ms, shared);
                self.line.note(peer, true);
                self.engine.on_up(peer);
            }
            Input::Transport(_, Event::Down { peer }) => {
                self.clocks.remove(&peer);
                self.line.note(peer, false);
                self.engine.on_down(peer);
            }
            Input::Transport(_, Event::Frame { peer, bytes, .. }) if bytes.first() == Some(&state_sync::TAG) => {
                let transport = Arc::downgrade(self.line.transport());
                // Who asks asks again.
                let _ = self.states.try_send(Heard { transport, peer, bytes });
            }
            Input::Transport(_, Event::Frame { peer, bytes, .. }) => match Frame::from_bytes(&bytes) {
                Ok(frame) => self.on_frame(peer, frame, shared),
                Err(error) => {
                    tracing::debug!(peer, %error, "an undecodable frame");
                    self.offend(peer, consensus::Refused::Undecodable, shared);
                }
            },
            Input::Transport(_, Event::Refused { peer, reason }) => self.refused(peer, reason, shared),
        }
    }

    /// State root and receipts root of a height come from two threads; what is signed is both together.
    fn on_half(&mut self, height: Height, half: [Option<Digest>; 2]) {
        let halves = self.halves.entry(height).or_default();
        *halves = [half[0].or(halves[0]), half[1].or(halves[1])];
        if let [Some(state), Some(receipts)] = *halves {
            self.halves.remove(&height);
            self.engine.on_root(height, outcome_root(&state, &receipts));
        }
    }

    /// Stops the node if its key is in use elsewhere: one validator alone may lie about that.
    fn refused(&mut self, peer: Index, reason: Reason, shared: &Shared) {
        tracing::warn!(peer, %reason, "refused");
        if reason == Reason::KeyInUse && self.duplicates.insert(peer) {
            let committee = self.network.chain.committee();
            if self.duplicates.len() > committee.faulty {
                shared.fail(&"this validator's key is in use by another process: stop that one first, or give this node its own home");
            }
        }
    }

    /// Stops the node if the clocks of so many others say that its own is wrong that one at least is of a correct
    /// validator, and most of them agree.
    fn compare_clocks(&mut self, peer: Index, ahead_ms: i64, shared: &Shared) {
        self.clocks.insert(peer, ahead_ms);
        let minutes = ahead_ms / 60_000;
        if ahead_ms.unsigned_abs() > CLOCK_OFF_MS.unsigned_abs() {
            tracing::warn!(peer, minutes, "the clock of this validator and the own one differ");
        }
        let faulty = self.network.chain.committee().faulty;
        if let Some(ahead_ms) = clock_off(self.clocks.values().copied(), faulty) {
            let (by, which) = ((ahead_ms / 60_000).abs(), if ahead_ms > 0 { "behind" } else { "ahead of" });
            shared.fail(&format_args!(
                "this machine's clock is {by} minutes {which} those of the other validators: set it, keep NTP running, and start again"
            ));
        }
    }

    /// Takes a frame; a sub-block that is new here is handed to the verifier, while it is being agreed on. At most two
    /// for each slot are, whatever its proposer sends.
    fn on_frame(&mut self, peer: Index, frame: Frame, shared: &Shared) {
        let Frame::Proposal(proposal, payload) = &frame else { return self.engine.on_frame(peer, frame) };
        let (proposal, payload) = (*proposal, payload.clone());
        let known = self.engine.holds(proposal.height, proposal.slot, &proposal.digest);
        self.engine.on_frame(peer, frame);
        let ahead = shared.config.blocks.check_ahead;
        let is_new = ahead && !known && self.engine.holds(proposal.height, proposal.slot, &proposal.digest);
        if is_new && shared.verified.announce((proposal.slot, proposal.digest)) {
            // If there is no place the executor does it.
            let _ = self.to_verify.try_send((proposal.slot, proposal.digest, payload));
        }
    }

    /// Proposes what waits, when it is time.
    fn propose(&mut self, shared: &Shared) {
        if self.network.rules.protocol == Protocol::Tendermint {
            // Whoever's turn it is, heights must go on until it is this validator's.
            self.engine.set_waiting(is_time(shared));
        }
        let substitute = self.needs_substitute().then(|| self.engine.substitute(self.skip)).flatten();
        if let Some(to) = substitute
            && is_time(shared)
        {
            self.hand_over(to, shared);
        }
        while let Some(opening) = self.engine.opening() {
            if !self.is_due(&opening, shared) {
                return;
            }
            // What is left out as likely as not holds nothing that a substitute can get in.
            let entries = if substitute.is_some() { Vec::new() } else { self.next_entries(shared) };
            let sub_block = self.sub_block(&entries);
            let payload: Payload = sub_block.to_payload().into();
            shared.verified.put((self.network.me, payload_digest(&payload)), sub_block);
            self.engine.propose(opening.height, payload);
            self.proposed.insert(opening.height, entries);
            self.last_proposal = Instant::now();
        }
    }

    fn sub_block(&self, entries: &[mempool::Entry]) -> SubBlock {
        let native = entries.iter().map(|entry| entry.transaction.clone()).collect();
        SubBlock { proposer: u32::from(self.network.me), time_ms: clock_ms(), native, ..SubBlock::default() }
    }

    /// Whether what waits here gets in sooner if another validator proposes it.
    fn needs_substitute(&self) -> bool {
        let benched = || self.engine.benched(self.engine.decided() + 1).contains(self.network.me);
        self.left_out || self.engine.follows() || benched()
    }

    /// Gives what waits to another validator. It stays here too, to be given again if it is not committed before long.
    fn hand_over(&mut self, to: Index, shared: &Shared) {
        let entries = self.next_entries(shared);
        shared.metrics.handed_over.inc_by(entries.len() as u64);
        self.engine.hand_over(to, self.sub_block(&entries).to_payload().into());
        shared.lock_mempool().hand_over(entries, shared.now_ms());
    }

    /// Takes back what the substitute did not get in, for another one.
    fn take_back(&mut self, shared: &Shared) {
        let limit = shared.now_ms().saturating_sub(RETRY_MS);
        if shared.lock_mempool().take_back(limit) > 0 {
            self.skip = self.skip.wrapping_add(1);
        }
    }

    fn is_due(&self, opening: &Opening, shared: &Shared) -> bool {
        let waited = self.last_proposal.elapsed() >= Duration::from_millis(shared.config.blocks.interval_ms);
        opening.urgent || is_time(shared) || (opening.nudged && waited)
    }

    /// As many waiting transactions as a sub-block may hold.
    fn next_entries(&self, shared: &Shared) -> Vec<mempool::Entry> {
        let mut room = self.network.rules.payload_bytes - SUB_BLOCK_OVERHEAD;
        let mut quota = ledger::Quota::default();
        let fits = |entry: &mempool::Entry| {
            let bytes = encode(&entry.transaction).len();
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits && quota.admits(&entry.transaction.body.operation)
        };
        shared.lock_mempool().take_while(shared.config.blocks.transactions, fits)
    }

    /// Makes a turn's entries durable, and then does the rest.
    fn act(&mut self, turn: Turn, shared: &Shared) -> Result<(), ExchangeError> {
        if let (None, Some(silent_to)) = (&self.votes, self.engine.silent_to()) {
            tracing::warn!(above = silent_to, "the others have told how far they are: voting again above this height");
            self.votes = Some(VoteLog::rejoin(vote_disk(&self.data)?, vote_options(&self.network), silent_to + 1)?);
        }
        self.write_down(&turn.entries, shared)?;
        if let Some(divergence) = turn.diverged {
            let consensus::Divergence { height, ours, theirs } = divergence;
            shared.fail(&format_args!(
                "at height {height} this node has superblock {} and state root {}, and f+1 others have {} and {}: the state \
                 has diverged; stop, keep the data, and report this",
                ours.superblock, ours.root, theirs.superblock, theirs.root
            ));
            return Ok(());
        }
        for (to, frame) in turn.sends {
            let lane = if frame.is_bulk() { Lane::Bulk } else { Lane::Votes };
            let bytes: Arc<[u8]> = frame.to_bytes().into();
            to.iter().for_each(|peer| self.line.transport().send(peer, lane, bytes.clone()));
        }
        let now = Instant::now();
        for (height, timer) in turn.timers {
            let wait = match timer {
                Timer::Grace | Timer::Missing => self.network.grace,
                _ => self.network.unit * timer.units(),
            };
            self.timers.push(Reverse((now + wait, height, timer)));
        }
        turn.decided.into_iter().for_each(|superblock| self.hand_on(superblock, shared));
        self.archive(turn.certified, shared)?;
        for (peer, from, to) in turn.serve {
            self.requests.put(Request { transport: Arc::downgrade(self.line.transport()), peer, from, to });
        }
        turn.handed.iter().for_each(|(peer, payload)| self.take_in(*peer, payload));
        turn.evidence.iter().for_each(|evidence| self.report(evidence, shared));
        for (peer, why) in turn.refused {
            tracing::debug!(peer, %why, "a frame was refused");
            self.offend(peer, why, shared);
        }
        Ok(())
    }

    /// Counts a refused frame. A peer that goes on sending what no correct validator sends is disconnected for a while.
    fn offend(&mut self, peer: Index, why: consensus::Refused, shared: &Shared) {
        shared.metrics.refused_frame(why);
        let offences = self.offences.entry(peer).or_default();
        *offences += u32::from(why.is_offence());
        if *offences >= OFFENCES_MAX {
            *offences = 0;
            self.line.transport().limit(peer);
        }
    }

    /// Makes entries durable, with one sync.
    fn write_down(&mut self, entries: &[(u64, Entry)], shared: &Shared) -> Result<(), ExchangeError> {
        if entries.is_empty() {
            return Ok(());
        }
        let votes = self.votes.as_mut().expect("who votes has a log");
        for (height, entry) in entries {
            votes.append(*height, &encode(entry))?;
        }
        votes.sync()?;
        shared.metrics.vote_syncs.inc();
        Ok(())
    }

    /// Submits what another validator could not get in, as if a client had sent it; what finds no room is sent again.
    fn take_in(&self, peer: Index, payload: &[u8]) {
        let sub_block = SubBlock::from_payload(u32::from(peer), payload).expect("checked by the engine");
        if !self.engine.follows() {
            let _ = self.intake.try_send(Submission::unanswered(sub_block.native));
        }
    }

    /// Gives a decided superblock to the executor, and what was proposed here in vain back to the mempool.
    fn hand_on(&mut self, superblock: consensus::Superblock, shared: &Shared) {
        self.last_decided = Instant::now();
        if !superblock.rounds.is_empty() {
            self.rounds = superblock.rounds.iter().copied().collect();
        }
        let proposed = self.proposed.remove(&superblock.height).unwrap_or_default();
        self.left_out = superblock.mine.map_or(self.left_out, |mine| !mine);
        if superblock.mine == Some(false) {
            shared.lock_mempool().put_back(proposed);
        }
        let clocks_needed = match self.network.rules.protocol {
            Protocol::Dbft => self.network.chain.committee().deliver,
            Protocol::Tendermint => 1,
        };
        let agreed = Agreed { height: superblock.height, sub_blocks: superblock.sub_blocks, clocks_needed };
        shared.metrics.decided(agreed.sub_blocks.iter().map(|(slot, _)| *slot));
        // The executor is gone only when the node stops.
        let _ = self.agreed.send(agreed);
    }

    /// Tells the operator of a faulty validator, in the form that `walras wallet accuse` takes, and notes it to be
    /// accused.
    fn report(&mut self, evidence: &consensus::Evidence, shared: &Shared) {
        let whom = evidence.convicts(&self.network.chain);
        let accusation = evidence.accusation(&self.network.chain);
        let encoded = accusation.map(|of| primitives::to_hex(&encode(&of)));
        tracing::error!(validator = ?whom, accusation = ?encoded, "a validator signed two contradictory statements");
        shared.metrics.evidence.inc();
        if let Some(accusation) = accusation.filter(|_| shared.config.network.accuse) {
            self.accusations.note(accusation);
        }
    }

    /// Puts accusations among the waiting transactions, so that they are in the next sub-block from here. Who follows
    /// proposes nothing, and keeps them until it does.
    fn accuse(&mut self, shared: &Shared) {
        if self.accusations.is_empty() || self.engine.follows() {
            return;
        }
        // A block that is being applied is not waited for: there are other ticks.
        let Ok(ledger) = shared.ledger.try_read() else { return };
        let mut mempool = shared.lock_mempool();
        let (key, account) = (&self.network.secret, self.network.secret.public().address());
        let used = ledger.accounts().get(&account).map_or(0, |own| own.window().highest());
        let next = used.max(mempool.highest(&account).unwrap_or(0)) + 1;
        for transaction in self.accusations.due(&ledger, key, next, |id| mempool.contains(id)) {
            let entry = mempool::Entry { id: transaction.id(), arrived_ms: shared.now_ms(), transaction };
            match mempool.admit(entry, &ledger) {
                Ok(()) => tracing::warn!("accusing a validator of what it signed"),
                Err(why) => tracing::warn!(?why, %account, "this validator's account cannot accuse"),
            }
        }
    }

    /// Archives certificates; the vote log need not remember what they are about.
    fn archive(&mut self, certified: Vec<Finality>, shared: &Shared) -> Result<(), ExchangeError> {
        let Some(last) = certified.last().map(|finality| finality.certificate.statement.height) else { return Ok(()) };
        // After a restart the newest certificates may be made again.
        let known = self.finality.last_height();
        for finality in certified.into_iter().filter(|new| new.certificate.statement.height > known) {
            self.finality.append(finality.certificate.statement.height, &encode(&finality))?;
        }
        shared.metrics.certified.set(last as i64);
        shared.certified.store(last, Ordering::Release);
        // One sync for many: what is lost is decided again from the vote log.
        if last >= self.finality.durable_height() + self.network.rules.horizon() {
            shared.certified_durably.store(self.finality.sync()?, Ordering::Release);
            // Not what the ledger has applied: the engine may not have heard of that yet, and speak of those heights.
            let over = last.min(self.engine.settled());
            self.votes.as_mut().map_or(Ok(()), |votes| votes.forget(over + 1))?;
        }
        Ok(())
    }

    fn measure(&self, shared: &Shared) {
        let status = ValidatorStatus {
            engine: self.network.rules.protocol.name(),
            me: self.network.me,
            validators: self.network.chain.keys.len(),
            decided: self.engine.decided(),
            certified: self.engine.certified(),
            certified_anywhere: self.engine.certified_anywhere(),
            connected: self.engine.connected(),
            needed: self.network.chain.committee().round,
            idle_ms: self.last_decided.elapsed().as_millis() as u64,
            epoch: self.network.chain.epoch,
            follows: self.engine.follows(),
            silent: self.engine.is_silent() && !self.engine.follows(),
            stranded: self.engine.is_stranded(),
            benched: self.engine.benched(self.engine.decided() + 1).iter().collect(),
            peers: (0..self.network.peers.len()).map(|index| self.peer(index as Index)).collect(),
        };
        shared.metrics.connected.set(status.connected as i64);
        *poisoned(shared.status.lock()) = Some(status);
    }

    fn peer(&self, index: Index) -> PeerStatus {
        let rounds = self.rounds.get(&index).copied();
        if index == self.network.me {
            let (decided, certified) = (self.engine.decided(), self.engine.certified());
            return PeerStatus { validator: index, connected: true, decided, certified, rounds, round_trip_ms: None };
        }
        let (said, connected) = self.engine.peer(index);
        let round_trip = self.line.transport().round_trip(index).filter(|_| connected);
        PeerStatus {
            validator: index,
            connected,
            decided: said.decided,
            certified: said.certified,
            rounds,
            round_trip_ms: round_trip.map(|time| time.as_secs_f64() * 1_000.0),
        }
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

fn vote_disk(data: &Path) -> Result<RealDisk, ExchangeError> {
    let directory = data.join("votes");
    RealDisk::new(&directory).map_err(|error| ExchangeError::Directory(directory.display().to_string(), error))
}

/// Room for what all validators propose at the heights that are worked on at a time.
fn vote_options(network: &Network) -> VoteOptions {
    let (members, bytes) = (network.committee_max as u64, network.rules.payload_bytes as u64);
    let defaults = VoteOptions::default();
    let bytes_max = defaults.bytes_max.max(ledger::votes_bytes(network.rules.horizon(), members, bytes));
    VoteOptions { bytes_max, ..defaults }
}

/// Makes the vote log of a validator that has never voted.
///
/// # Errors
/// If there is one, or it cannot be written.
pub fn create_votes(data: &Path) -> Result<(), ExchangeError> {
    let directory = |error| ExchangeError::Directory(data.display().to_string(), error);
    RealDisk::new(data).map_err(directory)?;
    VoteLog::create(vote_disk(data)?, VoteOptions::default())?;
    Ok(())
}

/// Gives the engine what the vote log says, or tells it that the log is lost.
fn open_votes(
    data: &Path,
    engine: &mut Engine,
    options: VoteOptions,
) -> Result<Option<VoteLog<RealDisk>>, ExchangeError> {
    let damaged = |error: &StoreError| {
        matches!(error, StoreError::VotesLost(_) | StoreError::Damaged { remedy: store::Remedy::Rejoin, .. })
    };
    match VoteLog::open(vote_disk(data)?, options) {
        Ok((log, found)) => {
            for repair in found.repairs {
                tracing::warn!(%repair, "the vote log ended unfinished; nothing of that was sent");
            }
            engine.stay_silent_below(found.floor);
            let entries = found.records.into_iter().flat_map(|(height, records)| {
                records.into_iter().map(move |bytes| borsh::from_slice(&bytes).map(|entry| (height, entry)))
            });
            let entries: Result<Vec<(u64, Entry)>, _> = entries.collect();
            engine.restore(entries.map_err(|error| ExchangeError::Undecodable(found.floor, error))?);
            Ok(Some(log))
        }
        Err(error) if damaged(&error) => {
            tracing::warn!(%error, "listening without voting until it is known where it is safe to vote again");
            engine.rejoin();
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// How a validator stands, for people and probes.
#[derive(Clone, Debug, serde::Serialize, utoipa::ToSchema)]
pub struct ValidatorStatus {
    /// How heights are decided: `dbft` or `tendermint`.
    pub engine: &'static str,
    /// Its index.
    pub me: u8,
    /// How many validators there are.
    pub validators: usize,
    /// The last height whose superblock is known here.
    pub decided: u64,
    /// The last height with a certificate here.
    pub certified: u64,
    /// The last height that another validator says it has a certificate of.
    pub certified_anywhere: u64,
    /// Other validators that are connected.
    pub connected: usize,
    /// How many validators, this one included, it takes to decide a height.
    pub needed: usize,
    /// For how long nothing was decided.
    pub idle_ms: u64,
    /// The epoch that it is in.
    pub epoch: u64,
    /// Whether it is none of the epoch's validators, and follows them.
    pub follows: bool,
    /// Whether it listens without voting, because its vote log was lost.
    pub silent: bool,
    /// Whether others are ahead, and none of them gives the blocks that are missing here: it fetches a state then.
    pub stranded: bool,
    /// Who has no slot in the next height, because it was absent from many.
    pub benched: Vec<u8>,
    /// All validators by index, and after them who follows; this one too.
    pub peers: Vec<PeerStatus>,
}

/// How far a validator is, as another one knows it.
#[derive(Clone, Debug, serde::Serialize, utoipa::ToSchema)]
pub struct PeerStatus {
    /// Its index.
    pub validator: u8,
    /// Whether it is connected, and has said how far it is.
    pub connected: bool,
    /// The last height of which it said that it knows the superblock; 0 if it has said nothing since the connection
    /// began.
    pub decided: u64,
    /// The last height of which it said that it has a certificate, likewise.
    pub certified: u64,
    /// In which round its slot of the last height was decided (1 is as fast as can be); nothing if it had none.
    pub rounds: Option<u32>,
    /// Milliseconds to it and back; nothing if it is not connected, or is the asked one.
    pub round_trip_ms: Option<f64>,
}

impl ValidatorStatus {
    /// Whether it votes, is connected to a quorum, and is about where the others are.
    pub fn is_caught_up(&self) -> bool {
        !self.silent && self.stall().is_none() && self.decided + CAUGHT_UP >= self.certified_anywhere
    }

    /// Why no height can be decided, as far as this validator sees: too few are connected. In words for people.
    pub fn stall(&self) -> Option<String> {
        let connected = self.connected + usize::from(!self.follows);
        let (all, needed, seconds) = (self.validators, self.needed, self.idle_ms / 1_000);
        (connected < needed).then(|| {
            format!("Stalled: {connected} of {all} validators connected, {needed} needed, no block for {seconds} s")
        })
    }
}

/// What the smaller threads of a validator work with.
pub(crate) struct Threads {
    pub(crate) unverified: Receiver<(Index, Digest, Payload)>,
    pub(crate) asked: Arc<Requests>,
    pub(crate) certificates: Archive<RealDisk>,
    pub(crate) state_sync: StateSync,
}

/// What validators that lag are answered from.
pub(crate) struct Answers {
    pub(crate) certificates: Archive<RealDisk>,
    /// Bytes of sub-blocks in one answer: those of one height always fit.
    pub(crate) bytes_max: usize,
}

impl Answers {
    /// The archive thread.
    pub(crate) fn run(&self, shared: &Arc<Shared>, asked: &Requests) {
        while let Some(Request { transport, peer, from, to }) = asked.next() {
            match self.answer(shared, from, to) {
                Ok(frame) => {
                    if let Some(transport) = transport.upgrade() {
                        transport.send(peer, Lane::Bulk, frame.to_bytes().into());
                    }
                }
                Err(error) => return shared.fail(&error),
            }
        }
    }

    /// Decided heights from `from` on, as many as an answer holds, and one at least.
    fn answer(&self, shared: &Shared, from: u64, to: u64) -> Result<Frame, ExchangeError> {
        let mut heights = Vec::new();
        let mut bytes = 0;
        for height in from..=to {
            let Some(decided) = self.decided(shared, height)? else { break };
            bytes += decided.sub_blocks.iter().map(|(_, payload)| payload.len()).sum::<usize>();
            if bytes > self.bytes_max && !heights.is_empty() {
                break;
            }
            heights.push(decided);
        }
        Ok(Frame::Sync(heights))
    }

    fn decided(&self, shared: &Shared, height: u64) -> Result<Option<Decided>, ExchangeError> {
        let (certificate, block) = (self.certificates.block(height)?, shared.body(height)?);
        let (Some(certificate), Some(block)) = (certificate, block) else { return Ok(None) };
        let Finality { certificate, .. } =
            borsh::from_slice(&certificate).map_err(|error| ExchangeError::Undecodable(height, error))?;
        let mut sub_blocks: Vec<(Index, Payload)> =
            block.sub_blocks.iter().map(|sub| (sub.proposer as Index, sub.to_payload().into())).collect();
        sub_blocks.sort_by_key(|(slot, _)| *slot);
        Ok(Some(Decided { certificate, sub_blocks }))
    }
}

/// Whether enough transactions wait for a sub-block, or one has waited for long enough.
fn is_time(shared: &Shared) -> bool {
    let blocks = &shared.config.blocks;
    let (ready, oldest) = {
        let mempool = shared.lock_mempool();
        (mempool.ready(), mempool.oldest_ms())
    };
    let age = oldest.map(|arrived| shared.now_ms().saturating_sub(arrived));
    ready >= blocks.transactions || age.is_some_and(|age| age >= blocks.interval_ms)
}

/// The height of a state that was restored from a file: blocks between it and the last certificate are not here.
fn unproved(finality: &Store<RealDisk>, shared: &Shared) -> Result<Option<Height>, ExchangeError> {
    let (applied, certified) = (shared.read_ledger().height(), finality.last_height());
    let lacks = applied > certified && shared.archive.block(certified + 1)?.is_none();
    Ok(lacks.then_some(applied))
}

/// Where the engine begins: at the newest archived certificate of a block that is logged here, if there is one.
fn start(
    network: &Network,
    finality: &Store<RealDisk>,
    height: Height,
    shared: &Shared,
) -> Result<Start, ExchangeError> {
    let applied = shared.read_ledger().height();
    let undecodable = |error| ExchangeError::Undecodable(height, error);
    let first = Engine::first_benches(&network.chain.committee(), &network.rules);
    let (superblock, benches) = match finality.block(height)? {
        Some(bytes) => {
            let Finality { certificate, benches, .. } = borsh::from_slice(&bytes).map_err(undecodable)?;
            // Attendance is counted anew in each epoch.
            let goes_on = network.chain.heights.contains(&height);
            (certificate.statement.superblock, if goes_on { benches } else { first })
        }
        None => (Digest::default(), first),
    };
    let mut roots = Vec::new();
    for of in height.saturating_sub(network.rules.lag)..=applied {
        let Some((state, receipts)) = outcome(shared, of)? else { continue };
        roots.push((of, outcome_root(&state, &receipts)));
    }
    Ok(Start { height, superblock, benches, applied, roots })
}

/// State root and receipts root of a height, as far as they are archived.
pub(crate) fn outcome(shared: &Shared, height: Height) -> Result<Option<(Digest, Digest)>, ExchangeError> {
    let (newest, newest_root) = shared.newest_root();
    let state = if height == newest {
        newest_root
    } else {
        let Some(block) = shared.body(height + 1)? else { return Ok(None) };
        block.parent_root
    };
    if height == 0 {
        return Ok(Some((state, Digest::default())));
    }
    Ok(shared.receipts(height)?.map(|receipts| (state, receipts.root)))
}

/// The block that a decided superblock makes on top of a state.
pub(crate) fn block(agreed: &Agreed, on: &Foundation, verified: &Verified) -> Superblock {
    let Foundation { parent, parent_ms, parent_root } = *on;
    let sub_blocks: Vec<SubBlock> =
        agreed.sub_blocks.iter().map(|(slot, payload)| verified.take(*slot, payload)).collect();
    let clocks: Vec<u64> = sub_blocks.iter().map(|sub| sub.time_ms).collect();
    let time_ms = block_time(parent_ms, &clocks, agreed.clocks_needed);
    Superblock { height: agreed.height, parent, time_ms, parent_root, sub_blocks }
}

/// The transactions of a block with their ids, in order.
pub(crate) fn ids(block: &Superblock) -> Vec<TransactionId> {
    let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    transactions.par_iter().map(|transaction| transaction.id()).collect()
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
