//! The state machine of one validator; see the crate docs.

pub(crate) mod opening;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use consensus::{Engine, Evidence, Finality, Frame, Index, LogEntry, Members, Payload, Protocol, Refused, Timer, Turn};
use ledger::outcome_root;
use primitives::{Digest, Height, SubBlock, to_hex};
use store::{Disk, Store, VoteLog};

use crate::unsealing::{self, Points, QueueEffect, UnsealFrame, UnsealQueue};
use crate::{
    Agreed, Defect, Effect, Home, Input, Job, Network, Now, Observation, PeerStatus, PoolJob, ReplicaError,
    ReplicaSettings, SealedWait, Sight, ValidatorStatus, Waiting, encode, state_sync,
};
use opening::{check_payload, vote_options};

/// Maximum number of inputs of one step.
pub const INPUTS_OF_A_STEP: usize = 512;
/// Number of frames that no correct validator sends, after which a peer is disconnected for a while.
pub const OFFENCES_MAX: u32 = 50;
/// Forwarded transactions that nobody has committed are taken back after this time.
const RETRY: Duration = Duration::from_secs(3);
/// A rest is longer by at most so many intervals if block time is ahead of the clock.
const RESTS_MAX: u32 = 16;
/// A clock that is off by more than this is wrong.
const CLOCK_OFF_MS: i64 = 10 * 60 * 1_000;
/// A smaller clock difference is not corrected: it was measured with a message, and messages take time.
const CLOCK_LEFT_MS: u64 = 1_000;

/// The state machine; see the crate docs.
pub struct Replica<D: Disk> {
    pub(crate) engine: Engine,
    pub(crate) network: Network,
    pub(crate) settings: ReplicaSettings,
    pub(crate) home: Home<D>,
    /// `None` while it is unknown what the validator has voted for before.
    pub(crate) votes: Option<VoteLog<D>>,
    /// Certificates, by height.
    pub(crate) finality: Store<D>,
    pub(crate) now: Now,
    pub(crate) waiting: Waiting,
    pub(crate) effects: Vec<Effect>,
    pub(crate) generation: u64,
    /// The connected peers.
    pub(crate) up: Members,
    pub(crate) timers: BinaryHeap<Reverse<(Duration, Height, Timer)>>,
    pub(crate) next_tick: Duration,
    /// The height for which a sub-block is being assembled.
    pub(crate) assembling: Option<Height>,
    /// Whether transactions are being taken from the pool to be forwarded.
    pub(crate) forwarding: bool,
    /// Undecided heights for which this validator has proposed a sub-block.
    pub(crate) proposed: BTreeSet<Height>,
    /// No height begins here before this time.
    pub(crate) rests_until: Duration,
    /// When the present height began here, where one validator proposes at a time.
    pub(crate) began: Option<Duration>,
    /// The last height that was applied here, and the time of its block.
    pub(crate) applied: (Height, u64),
    /// Whether the last decision about a sub-block of this validator left it out.
    pub(crate) left_out: bool,
    /// How many substitutes to skip, since earlier ones have failed.
    pub(crate) skip: usize,
    /// State root and receipts root of heights for which one of them is still missing.
    pub(crate) halves: BTreeMap<Height, [Option<Digest>; 2]>,
    /// Number of frames of each peer that no correct validator sends. Each tick forgives one.
    pub(crate) offences: BTreeMap<Index, u32>,
    /// The validators that reported this validator's key in use elsewhere.
    pub(crate) duplicates: Members,
    /// By how many milliseconds the clocks of connected peers were ahead of this node's clock.
    pub(crate) clocks: BTreeMap<Index, i64>,
    /// The round in which each slot was decided, for the last height decided here.
    pub(crate) rounds: BTreeMap<Index, u32>,
    /// When the last superblock was decided.
    pub(crate) last_decided: Duration,
    /// When each peer last voted on a height that was open here.
    pub(crate) voted: BTreeMap<Index, Duration>,
    /// Whether the next epoch's network was asked for.
    pub(crate) is_turning_over: bool,
    /// Decided blocks on their way to the ledger.
    pub(crate) unsealing: UnsealQueue,
}

impl<D: Disk + Clone> Replica<D> {
    /// The network of the current epoch.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The engine of the current epoch.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The generation of the current links.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// When the next step is due, if no input arrives before and nothing more enters the pool.
    pub fn deadline(&self) -> Duration {
        let timer = self.timers.peek().map_or(self.next_tick, |Reverse((at, ..))| *at);
        let oldest = self.waiting.oldest_ms.map(|arrived| Duration::from_millis(arrived) + self.network.interval);
        // A transaction that is overdue waits for an opening of the engine, and an opening comes with an input or after
        // a rest.
        let to_come = oldest.into_iter().chain([self.rests_until]).filter(|due| *due > self.now.since);
        to_come.fold(timer.min(self.next_tick), Duration::min)
    }

    /// One turn: takes inputs, fires due timers, proposes if it is time, makes durable what the engine is about to
    /// send, and sends it. A shell gives at most [`INPUTS_OF_A_STEP`] inputs, so that timers are not late.
    ///
    /// # Errors
    /// [`ReplicaError`] if a disk fails: the replica must not be used after that.
    pub fn step(
        &mut self,
        now: Now,
        waiting: Waiting,
        inputs: impl IntoIterator<Item = Input>,
    ) -> Result<Vec<Effect>, ReplicaError> {
        (self.now, self.waiting) = (now, waiting);
        self.engine.set_resting(self.is_resting());
        self.engine.set_clock(self.now.corrected_ms(self.ahead_ms()));
        for input in inputs {
            self.on_input(input)?;
        }
        self.fire_timers();
        self.propose();
        if self.began.is_none() && !self.is_resting() && self.engine.round().is_some() {
            self.began = Some(self.now.since);
        }
        let turn = self.engine.finish_turn();
        if let Some(error) = self.engine.unsigned() {
            return Err(ReplicaError::Unsigned(error.clone()));
        }
        self.act(turn)?;
        if self.engine.is_over() && !std::mem::replace(&mut self.is_turning_over, true) {
            self.job(Job::NextEpoch(self.engine.tip().0 + 1));
        }
        Ok(std::mem::take(&mut self.effects))
    }

    fn has(&self, defect: Defect) -> bool {
        self.settings.defect.is(defect)
    }

    fn job(&mut self, job: Job) {
        self.effects.push(Effect::Job(job));
    }

    fn observe(&mut self, observed: Observation) {
        self.effects.push(Effect::Observed(observed));
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
                self.forwarding = false;
                // Another epoch may have begun meanwhile: then the transactions are soon taken back.
                if count > 0 && usize::from(to) < self.network.peers.len() && to != self.network.me {
                    self.observe(Observation::Forwarded(count));
                    self.engine.forward(to, payload);
                }
            }
            Input::TakenBack => self.skip = self.skip.wrapping_add(1),
            Input::Applied { height, time_ms } => {
                self.applied = time_ms.map_or(self.applied, |time_ms| (height, time_ms));
                self.engine.on_applied(height);
            }
            Input::Seals(state) => {
                let effects = self.unsealing.seen(*state, &self.network);
                self.unseal(effects);
            }
            Input::Unsealed(done) => {
                let effects = self.unsealing.done(done);
                self.unseal(effects);
            }
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
            Sight::Frame(bytes) if bytes.first() == Some(&unsealing::TAG) => match UnsealFrame::from_bytes(&bytes) {
                Ok(frame) => {
                    let effects = self.unsealing.frame(peer, frame);
                    self.unseal(effects);
                }
                Err(error) => {
                    tracing::debug!(peer, %error, "an undecodable frame");
                    self.offend(peer, Refused::Undecodable);
                }
            },
            Sight::Frame(bytes) => match Frame::from_bytes(&bytes) {
                Ok(frame) => self.on_frame(peer, frame),
                Err(error) => {
                    tracing::debug!(peer, %error, "an undecodable frame");
                    self.offend(peer, Refused::Undecodable);
                }
            },
        }
    }

    /// Handles a frame. The signatures of a sub-block that is new here are checked during agreement, for at most two
    /// sub-blocks per slot, whatever its proposer sends.
    fn on_frame(&mut self, peer: Index, frame: Frame) {
        if frame.voted_height().is_some_and(|height| height > self.engine.decided()) {
            self.voted.insert(peer, self.now.since);
        }
        let Frame::Proposal(proposal, payload) = &frame else { return self.engine.on_frame(peer, frame) };
        let (proposal, payload) = (*proposal, payload.clone());
        let known = self.engine.holds(proposal.height, proposal.slot, &proposal.digest);
        self.engine.on_frame(peer, frame);
        let is_new = !known && self.engine.holds(proposal.height, proposal.slot, &proposal.digest);
        if is_new && self.settings.check_ahead {
            self.job(Job::Check { slot: proposal.slot, digest: proposal.digest, payload });
        }
    }

    /// State root and receipts root of a height come from two jobs; the signed outcome covers both.
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

    /// Stops if enough validators report the key in use elsewhere: a single validator may lie about that.
    fn on_key_in_use(&mut self, peer: Index) {
        if self.duplicates.insert(peer) && self.duplicates.len() > self.network.chain.committee().faulty {
            self.stop("this validator's key is in use by another process: stop that one first, or use another home");
        }
    }

    /// Stops if enough peers disagree with this node's clock that at least one of them is correct, and most of them
    /// agree with each other.
    fn compare_clocks(&mut self, peer: Index, ahead_ms: i64) {
        self.clocks.insert(peer, ahead_ms);
        let minutes = ahead_ms / 60_000;
        if ahead_ms.unsigned_abs() > CLOCK_OFF_MS.unsigned_abs() {
            tracing::warn!(peer, minutes, "this validator's clock differs from the clock of this machine");
        }
        if let Some(ahead_ms) = clock_off(self.clocks_of_committee(), self.network.chain.committee().faulty) {
            let (by, which) = ((ahead_ms / 60_000).abs(), if ahead_ms > 0 { "behind" } else { "ahead of" });
            self.stop(format_args!(
                "this machine's clock is {by} minutes {which} those of the other validators: set it, keep NTP \
                 running, and start again"
            ));
        }
    }

    /// By how much the committee's clocks are ahead of this node's: see [`committee_ahead`].
    fn ahead_ms(&self) -> i64 {
        committee_ahead(self.clocks_of_committee(), self.network.chain.committee().faulty)
    }

    /// The clock differences of committee members only: there may be more followers than members, and anybody can
    /// become a follower with a stake.
    fn clocks_of_committee(&self) -> impl Iterator<Item = i64> {
        let size = self.network.chain.keys.len();
        self.clocks.iter().filter(move |(peer, _)| usize::from(**peer) < size).map(|(_, ahead_ms)| *ahead_ms)
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
            self.engine.set_waiting(self.waiting.ready > 0 || self.waiting.oldest_ms.is_some());
        }
        self.engine.on_tick();
        let effects = self.unsealing.tick();
        self.unseal(effects);
        self.offences.values_mut().for_each(|count| *count = count.saturating_sub(1));
        // A follower proposes nothing, and keeps its accusations until it does.
        if !self.engine.follows() {
            self.job(Job::Pool(PoolJob::Accuse));
        }
        if !self.has(Defect::NeverPresent) {
            self.job(Job::Pool(PoolJob::Attend));
        }
        if !self.has(Defect::ForwardedLost) {
            let before_ms = self.now.since.saturating_sub(RETRY).as_millis() as u64;
            self.job(Job::Pool(PoolJob::Reclaim { before_ms }));
        }
    }

    /// Whether there are enough pending transactions for a sub-block, or one has been pending for long enough.
    fn is_time(&self) -> bool {
        let Waiting { ready, oldest_ms } = self.waiting;
        let age = oldest_ms.map(|arrived| self.now.milliseconds().saturating_sub(arrived));
        ready >= self.settings.transactions
            || age.is_some_and(|age| u128::from(age) >= self.network.interval.as_millis())
    }

    /// Proposes pending transactions when it is time.
    fn propose(&mut self) {
        if self.network.rules.protocol == Protocol::Tendermint {
            // Heights must advance until it is this validator's turn, whoever proposes now.
            self.engine.set_waiting(self.is_time());
        }
        let substitute = self.needs_substitute().then(|| self.engine.substitute(self.skip)).flatten();
        let (proposer, count) = (self.network.me, self.settings.transactions);
        let room = self.network.sub_block_room();
        if let Some(to) = substitute
            && self.is_time()
            && !std::mem::replace(&mut self.forwarding, true)
        {
            let ahead_ms = self.ahead_ms();
            self.job(Job::Pool(PoolJob::Forward { to, proposer, room, count, ahead_ms }));
        }
        if self.assembling.is_some() {
            return;
        }
        let Some(opening) = self.engine.opening().filter(|opening| self.is_due(opening)) else { return };
        self.assembling = Some(opening.height);
        // This sub-block may well be left out, so it stays empty: a substitute proposes the transactions.
        let room = substitute.is_none().then_some(room);
        let (height, ahead_ms) = (opening.height, self.ahead_ms());
        self.job(Job::Pool(PoolJob::Assemble { height, proposer, room, count, ahead_ms }));
    }

    /// Whether the next height begins here: somebody needs it, and the rest after the last one is over.
    fn is_due(&self, opening: &consensus::Opening) -> bool {
        !self.is_resting() && (opening.urgent || opening.nudged || self.is_time())
    }

    fn is_resting(&self) -> bool {
        self.now.since < self.rests_until && !self.has(Defect::PaceIgnored)
    }

    /// Rests after a height has begun here: the next one begins when an interval has passed, whoever asks for it. As
    /// most heights in a row have a correct proposer in common, none comes sooner. Where few are needed, heights could
    /// alternate between halves of the validators. Block time, which rises by an interval a height, is then ahead of
    /// the clocks, and who sees that rests for longer. Clocks that were set back do not stop the network.
    fn rest_from(&mut self, height: Height, began: Duration) {
        let interval = self.network.interval;
        let (applied, time_ms) = self.applied;
        let heights_ms = (interval.as_millis() as u64).saturating_mul(height.saturating_sub(applied));
        let clock_ms = self.now.corrected_ms(self.ahead_ms());
        let ahead = Duration::from_millis(time_ms.saturating_add(heights_ms).saturating_sub(clock_ms));
        self.rests_until = began + interval + ahead.min(interval * RESTS_MAX);
    }

    /// Proposes an assembled sub-block, unless its height is void by now.
    fn on_assembled(&mut self, height: Height, payload: Payload) {
        if self.assembling != Some(height) {
            return self.job(Job::Pool(PoolJob::Restore(height)));
        }
        self.assembling = None;
        if self.engine.opening().is_none_or(|opening| opening.height != height) {
            return self.job(Job::Pool(PoolJob::Restore(height)));
        }
        self.engine.propose(height, payload);
        self.proposed.insert(height);
        if self.network.rules.protocol == Protocol::Dbft {
            self.rest_from(height, self.now.since);
        }
    }

    /// Whether pending transactions get into a block sooner if another validator proposes them.
    fn needs_substitute(&self) -> bool {
        let benched = || self.engine.benched(self.engine.decided() + 1).contains(self.network.me);
        self.left_out || self.engine.follows() || benched()
    }

    /// Makes a turn's entries durable, then performs the rest.
    fn act(&mut self, turn: Turn) -> Result<(), ReplicaError> {
        if let (None, Some(silent_to)) = (&self.votes, self.engine.silent_to()) {
            tracing::warn!(
                above = silent_to,
                "the other validators have reported their heights: voting again above \
                this height"
            );
            let votes = VoteLog::rejoin(self.home.votes.clone(), vote_options(&self.network), silent_to + 1)?;
            self.votes = Some(votes);
        }
        self.persist(&turn.entries)?;
        if let Some(divergence) = turn.diverged {
            let consensus::Divergence { height, ours, theirs } = divergence;
            self.stop(format_args!(
                "at height {height} this node has superblock {} and state root {}, but f+1 other validators have {} \
                 and {}: the state \
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
                Timer::Votes { .. } if self.has(Defect::VotesKept) => continue,
                Timer::Votes { .. } => self.network.gathering(),
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
        turn.forwarded.iter().for_each(|(peer, payload)| self.on_forwarded(*peer, payload));
        turn.evidence.iter().for_each(|evidence| self.report(evidence));
        for (peer, why) in turn.refused {
            tracing::debug!(peer, %why, "a frame was rejected");
            self.offend(peer, why);
        }
        Ok(())
    }

    /// Counts a rejected frame. A peer that keeps sending frames that no correct validator sends is disconnected for
    /// a while.
    fn offend(&mut self, peer: Index, why: Refused) {
        self.observe(Observation::Refused { peer, why });
        let offences = self.offences.entry(peer).or_default();
        *offences += u32::from(why.is_offence());
        if *offences >= OFFENCES_MAX {
            *offences = 0;
            self.effects.push(Effect::Limit(peer));
        }
    }

    /// Makes entries durable, with one sync.
    fn persist(&mut self, entries: &[(Height, LogEntry)]) -> Result<(), ReplicaError> {
        if entries.is_empty() || self.has(Defect::VotesUnlogged) {
            return Ok(());
        }
        let skips_relays = self.has(Defect::RelaysUnlogged);
        let votes = self.votes.as_mut().expect("a voting validator has a vote log");
        for (height, entry) in entries.iter().filter(|(_, entry)| !(skips_relays && is_relay(entry))) {
            votes.append(*height, &encode(entry))?;
        }
        votes.sync()?;
        self.observe(Observation::VotesSynced);
        Ok(())
    }

    /// Submits the transactions that another validator forwarded.
    fn on_forwarded(&mut self, peer: Index, payload: &[u8]) {
        let sub_block = SubBlock::from_payload(u32::from(peer), payload).expect("checked by the engine");
        if !self.engine.follows() {
            let SubBlock { native, ethereum, .. } = sub_block;
            self.job(Job::Submit { from: peer, native, ethereum });
        }
    }

    /// Starts applying a decided superblock, and returns transactions proposed here in vain to the pool.
    fn on_decided(&mut self, superblock: consensus::Superblock) {
        let height = superblock.height;
        self.last_decided = self.now.since;
        if !superblock.rounds.is_empty() {
            self.rounds = superblock.rounds.iter().copied().collect();
        }
        self.left_out = superblock.mine.map_or(self.left_out, |mine| !mine);
        if self.proposed.remove(&height) {
            let is_lost = superblock.mine == Some(false) && !self.has(Defect::LeftOutLost);
            self.job(Job::Pool(if is_lost { PoolJob::Restore(height) } else { PoolJob::Decided(height) }));
        }
        if self.network.rules.protocol == Protocol::Tendermint {
            let began = self.began.take().unwrap_or(self.now.since);
            self.rest_from(height, began);
        }
        self.observe(Observation::Decided(superblock.sub_blocks.iter().map(|(slot, _)| *slot).collect()));
        let (sub_blocks, clock) = (superblock.sub_blocks, self.network.block_clock());
        let effects = self.unsealing.decided(Agreed { height, sub_blocks, clock, keys: Points::default() });
        self.unseal(effects);
    }

    /// Performs what opening the envelopes of decided blocks needs.
    fn unseal(&mut self, effects: Vec<QueueEffect>) {
        let me = self.network.me;
        for effect in effects {
            match effect {
                QueueEffect::Apply(agreed) => self.job(Job::Apply(agreed)),
                QueueEffect::Job(job) => self.job(Job::Unseal(job)),
                QueueEffect::Recall(peer, height) => {
                    self.job(Job::Recall { generation: self.generation, peer, height });
                }
                QueueEffect::Send(to, frame) => {
                    let peers = 0..self.network.peers.len() as Index;
                    let to = peers.filter(|peer| *peer != me && to.is_none_or(|to| to == *peer)).collect();
                    self.effects.push(Effect::Send { to, is_bulk: false, bytes: frame.to_bytes().into() });
                }
            }
        }
    }

    /// Reports a faulty validator to the operator, in the form that `walras wallet accuse` takes, and notes it for an
    /// accusation.
    fn report(&mut self, evidence: &Evidence) {
        let whom = evidence.convicts(&self.network.chain);
        let accusation = evidence.accusation(&self.network.chain);
        let encoded = accusation.map(|of| to_hex(&encode(&of)));
        tracing::error!(validator = ?whom, accusation = ?encoded, "a validator signed two contradictory statements");
        self.observe(Observation::Evidence);
        if let Some(accusation) = accusation.filter(|_| self.settings.accuse) {
            self.job(Job::Pool(PoolJob::Note(Box::new(accusation))));
        }
    }

    /// Archives certificates; the vote log then no longer needs the entries about their heights.
    fn archive(&mut self, certified: Vec<Finality>) -> Result<(), ReplicaError> {
        let Some(last) = certified.last().map(|finality| finality.certificate.statement.height) else { return Ok(()) };
        // After a restart the engine may produce the newest certificates again.
        let known = self.finality.last_height();
        for finality in certified.into_iter().filter(|new| new.certificate.statement.height > known) {
            self.finality.append(finality.certificate.statement.height, &encode(&finality))?;
        }
        self.observe(Observation::Certified(last));
        if self.has(Defect::VotesForgottenEarly) {
            let over = self.engine.decided();
            return Ok(self.votes.as_mut().map_or(Ok(()), |votes| votes.forget(over + 1))?);
        }
        // One sync for many: lost certificates are made again from the vote log.
        if last >= self.finality.durable_height() + self.network.rules.horizon() {
            self.sync_certificates()?;
            // Not the height that the ledger has applied: the engine may not know it yet and still send votes for it.
            let over = last.min(self.engine.settled());
            self.votes.as_mut().map_or(Ok(()), |votes| votes.forget(over + 1))?;
        }
        Ok(())
    }

    fn sync_certificates(&mut self) -> Result<(), ReplicaError> {
        let durable =
            if self.has(Defect::CertificatesUnsynced) { self.finality.last_height() } else { self.finality.sync()? };
        self.observe(Observation::CertifiedDurably(durable));
        Ok(())
    }

    /// Replaces the engine when its epoch is over. Its certificates are made durable first, so that a restart never
    /// finds the log of one epoch with the archive of another.
    fn begin_epoch(&mut self, mut network: Network) -> Result<(), ReplicaError> {
        self.sync_certificates()?;
        if self.has(Defect::CommitteeKept) {
            network.chain.keys.clone_from(&self.network.chain.keys);
        }
        let (height, _) = self.engine.tip();
        let start = self.engine.successor(&network.chain.committee());
        let mut engine = Engine::new(
            network.setup(check_payload(network.ethereum, network.ledger_rules, network.committee_max)),
            start,
        );
        engine.gather_from(self.settings.gather_from);
        match self.engine.silent_to() {
            Some(height) => engine.stay_silent_below(height + 1),
            // A follower may lack the log too, and vote from now on; or its log already names the height to vote from.
            None => match &self.votes {
                Some(votes) => engine.stay_silent_below(votes.floor()),
                None => engine.rejoin(),
            },
        }
        engine.set_clock(self.now.corrected_ms(self.ahead_ms()));
        let (epoch, members) = (network.chain.epoch, network.chain.keys.len());
        tracing::info!(epoch, members, me = network.me, follows = engine.follows(), height, "an epoch begins");
        self.observe(Observation::Epoch(epoch));
        self.engine = engine;
        self.is_turning_over = false;
        self.offences.clear();
        self.duplicates = Members::default();
        self.left_out = false;
        // The sub-block being assembled is for a height of the old epoch, and may name another proposer index.
        self.assembling = None;
        let stays = network.has_the_links_of(&self.network);
        self.network = network;
        self.unsealing.begin_epoch(&self.network);
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

    /// The lowest decided height whose envelopes are not open, and the holders whose shares have not come.
    pub fn sealed_waits(&self) -> Option<(Height, Vec<Index>)> {
        self.unsealing.waits()
    }

    /// The status of this validator. The shell adds round trips, and what a follower waits for.
    pub fn status(&self) -> ValidatorStatus {
        let idle = self.now.since.saturating_sub(self.last_decided);
        ValidatorStatus {
            engine: self.network.rules.protocol.name().into(),
            me: self.network.me,
            validators: self.network.chain.keys.len(),
            decided: self.engine.decided(),
            certified: self.engine.certified(),
            certified_anywhere: self.engine.certified_anywhere(),
            connected: self.engine.connected(),
            needed: self.network.chain.committee().round,
            idle_ms: idle.as_millis() as u64,
            heartbeat_ms: self.network.heartbeat.as_millis() as u64,
            epoch: self.network.chain.epoch,
            follows: self.engine.follows(),
            admission: None,
            silent: self.engine.is_silent() && !self.engine.follows(),
            stranded: self.engine.is_stranded() || self.unsealing.is_stranded(self.engine.certified_anywhere()),
            sealed_wait: self.sealed_waits().map(|(height, silent)| {
                let ms = self.unsealing.waited(height) * self.settings.tick.as_millis() as u64;
                SealedWait { height, ms, silent }
            }),
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
        let votes = match is_me {
            true => !self.engine.is_silent() && !self.engine.follows(),
            false => self.voted.get(&validator).is_some_and(|voted| *voted >= self.last_decided),
        };
        PeerStatus { validator, connected, votes, decided, certified, rounds, round_trip_ms: None }
    }
}

/// By how much other clocks are ahead: the median of those that show this clock to be wrong in the same direction, if
/// they are more than `faulty` and more than half of all.
fn clock_off(ahead_ms: impl Iterator<Item = i64>, faulty: usize) -> Option<i64> {
    let mut all: Vec<i64> = ahead_ms.collect();
    all.sort_unstable();
    let shows = |off: &[i64]| (off.len() > faulty && 2 * off.len() > all.len()).then(|| off[off.len() / 2]);
    let (behind, rest) = all.split_at(all.partition_point(|ahead| *ahead < -CLOCK_OFF_MS));
    let ahead = &rest[rest.partition_point(|ahead| *ahead <= CLOCK_OFF_MS)..];
    shows(behind).or_else(|| shows(ahead))
}

/// By how many milliseconds the clocks of a committee are ahead of this one: the median, this one included. With 2f +
/// 1 clocks it lies between those of correct validators. Zero if fewer are known, or if it is within
/// [`CLOCK_LEFT_MS`]. Other validators reject a proposal made with a clock that is seconds off; this correction
/// avoids it, so that transactions of this validator's clients still get into blocks.
fn committee_ahead(others: impl Iterator<Item = i64>, faulty: usize) -> i64 {
    let mut all: Vec<i64> = others.chain([0]).collect();
    all.sort_unstable();
    let median = all[(all.len() - 1) / 2];
    let is_trusted = all.len() > 2 * faulty;
    if is_trusted && median.unsigned_abs() > CLOCK_LEFT_MS { median } else { 0 }
}

/// Whether an entry is a relayed estimate of another validator.
fn is_relay(entry: &LogEntry) -> bool {
    matches!(entry, LogEntry::Voted(consensus::Record::Sent(consensus::Vote::Estimate { .. })))
}

#[cfg(test)]
mod tests {
    use super::{clock_off, committee_ahead};

    #[test]
    fn a_clock_is_corrected_by_the_median_of_the_committee() {
        let ahead = |others: &[i64], faulty| committee_ahead(others.iter().copied(), faulty);
        assert_eq!(ahead(&[-300_000, -300_000, -300_000], 1), -300_000);
        assert_eq!(ahead(&[-300_000], 1), 0, "one of two may lie");
        assert_eq!(ahead(&[i64::MAX, 5], 1), 0, "the other clock counts as much as this one");
        assert_eq!(ahead(&[i64::MAX, 9_000, 0], 1), 0, "a faulty clock moves it to a correct one at most");
        assert_eq!(ahead(&[i64::MIN, 9_000, 9_001], 1), 0);
        assert_eq!(ahead(&[i64::MAX, 9_000, 9_001], 1), 9_000);
        assert_eq!(ahead(&[999, 998, 997], 1), 0, "within the time that a message may take");
    }

    #[test]
    fn a_wrong_clock_is_shown_by_more_than_f_and_by_most() {
        const HOUR: i64 = 3_600_000;
        let off = |ahead: &[i64], faulty| clock_off(ahead.iter().copied(), faulty);
        assert_eq!(off(&[HOUR], 1), None, "one may lie");
        assert_eq!(off(&[HOUR, HOUR + 5], 1), Some(HOUR + 5));
        assert_eq!(off(&[HOUR, -HOUR], 1), None);
        assert_eq!(off(&[-HOUR, 3, -HOUR - 1], 1), Some(-HOUR));
        assert_eq!(off(&[HOUR, HOUR, 0, 1], 1), None, "half is not a majority");
        assert_eq!(off(&[600_000, 600_000], 0), None);
        assert_eq!(off(&[600_001, 600_001], 0), Some(600_001));
    }
}
