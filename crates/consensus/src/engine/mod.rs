//! The engine of a validator: heights in a window, output in order.
//!
//! The shell gives it frames, timers, ticks, proposals and the progress of its ledger, and takes a [`Turn`] when it
//! has given everything that is available. The shell syncs a turn's log entries before it performs the rest, so that
//! one sync serves all inputs of a turn.

pub(crate) mod links;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, Signer, SigningError};
use proofs::{Certificate, Chain, Committee, Index};

use crate::benches::Benches;
use crate::binary::Alarm;
use crate::certificate::Commit;
use crate::frame::{Frame, Votes};
use crate::gather::{GATHERED_FROM, Gathered};
use crate::height::{Height, HeightSettings};
use crate::live::{Agreement, Live};
use crate::members::Members;
use crate::message::{HeightEffect, Record, Round, Timer, Vote};
use crate::pen::Pen;
use crate::proposal::{Evidence, Payload, Proposal};
use crate::refused::Refused;
use crate::tendermint::{self, Instance};
use links::Peer;

/// How heights are decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// DBFT: superblocks of the sub-blocks of all validators.
    #[default]
    Dbft,
    /// Tendermint: blocks of one proposer each ([`crate::tendermint`]).
    Tendermint,
}

impl Protocol {
    /// Its name in a genesis file and in APIs.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Dbft => "dbft",
            Protocol::Tendermint => "tendermint",
        }
    }
}

/// The rules common to all validators of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How heights are decided.
    pub protocol: Protocol,
    /// Z: how many sub-blocks must be in before absent ones are given up; `None` for n−f.
    pub enough: Option<usize>,
    /// Whether ready votes count as the estimates of the first round, which saves a message delay.
    pub fast: bool,
    /// W: proposals are made for at most this many heights above the last applied one.
    pub window: u64,
    /// How many heights the state root of a commit is below its own height.
    pub lag: u64,
    /// Number of superblocks in a row that a validator must miss to be benched; 0 for never.
    pub bench_after: u32,
    /// Maximum bytes of a sub-block.
    pub payload_bytes: usize,
    /// The height that the network begins with: 0, or that of the state with which it was restarted. This network has
    /// no certificate of that height.
    pub begins: u64,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            protocol: Protocol::Dbft,
            enough: None,
            fast: false,
            window: 4,
            lag: 2,
            bench_after: 3,
            payload_bytes: 4 << 20,
            begins: 0,
        }
    }
}

impl Rules {
    /// The defaults of [`Protocol::Tendermint`]: nobody is benched, since each height skips silent proposers anew.
    pub fn tendermint() -> Rules {
        Rules { protocol: Protocol::Tendermint, bench_after: 0, ..Rules::default() }
    }

    /// Number of heights above the last decided one for which votes are accepted. It is twice the window, so that a
    /// validator whose ledger is a window behind still follows.
    pub fn horizon(&self) -> u64 {
        2 * self.window
    }

    /// The height whose outcome a commit of `height` signs.
    pub fn signed_by(&self, height: u64) -> u64 {
        height.saturating_sub(self.lag).max(self.begins)
    }
}

/// The contents of a payload; `None` if it is not a sub-block. A pure function of the bytes and of settings common to
/// all validators: it reads neither state nor clock, so that all accept what one correct validator echoes.
pub type PayloadCheck = Arc<dyn Fn(&[u8]) -> Option<Contents> + Send + Sync>;

/// The identity of a validator, and its committee.
#[derive(Clone)]
pub struct Setup {
    /// The epoch.
    pub chain: Chain,
    /// The common rules.
    pub rules: Rules,
    /// Number of followers without a vote; their indices come after the validators'.
    pub followers: usize,
    /// The index of this validator.
    pub me: Index,
    /// The holder of this validator's key.
    pub signer: Arc<dyn Signer>,
    /// The check of payloads.
    pub check: PayloadCheck,
}

/// What consensus must know of a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Number of transactions in it.
    pub transactions: usize,
    /// The proposer's clock in milliseconds, if the payload has one and prevotes depend on it.
    pub time_ms: Option<u64>,
    /// Whether only a later epoch permits it: no sub-block of this one has it, but a validator that is there already
    /// may forward it.
    pub is_early: bool,
}

/// Where a validator begins: after the last height whose certificate it has archived, or after the last height of the
/// epoch before.
#[derive(Clone, Debug)]
pub struct Start {
    /// That height; 0 at the genesis.
    pub height: u64,
    /// The digest of its superblock; the zero digest at the genesis.
    pub superblock: Digest,
    /// Attendance after it.
    pub benches: Benches,
    /// The last height that the ledger has applied; not below `height`.
    pub applied: u64,
    /// State roots of the heights from `height − lag` to `applied`, as far as they are known; height 0 is the
    /// genesis.
    pub roots: Vec<(u64, Digest)>,
}

/// What a validator logs about a height before it acts on it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum LogEntry {
    /// A sub-block proposed or echoed here: an echoed sub-block must stay held across restarts.
    Held(Proposal, Payload),
    /// A vote.
    Voted(Record),
    /// A commit.
    Committed(Commit),
    /// A processed input, where heights are decided by rounds.
    Round(tendermint::RoundRecord),
}

/// A decided height and its sub-blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The height; they come without gaps.
    pub height: u64,
    /// The digest by which commits name it.
    pub digest: Digest,
    /// The sub-blocks, in an order derived from the superblock below, so that no slot is always first.
    pub sub_blocks: Vec<(Index, Payload)>,
    /// Whether the sub-block proposed here is in; `None` if there was none.
    pub mine: Option<bool>,
    /// The round in which each slot was decided, counted from 1; empty for heights taken from another validator's
    /// archive.
    pub rounds: Vec<(Index, Round)>,
}

/// A certificate, with what is needed to check it against a block and to continue from it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Finality {
    /// The certificate.
    pub certificate: Certificate,
    /// The digest of the superblock below.
    pub parent: Digest,
    /// Attendance after this height.
    pub benches: Benches,
}

/// Why a validator must stop: its state differs from that of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The height.
    pub height: u64,
    /// Its own statement.
    pub ours: crate::Statement,
    /// The statement of at least f+1 others.
    pub theirs: crate::Statement,
}

/// What the shell must do: first make the entries durable, then the rest.
#[derive(Debug, Default)]
pub struct Turn {
    /// For the vote log, by height.
    pub entries: Vec<(u64, LogEntry)>,
    /// Frames and their receivers.
    pub sends: Vec<(Members, Frame)>,
    /// Timers to set.
    pub timers: Vec<(u64, Timer)>,
    /// Superblocks to apply.
    pub decided: Vec<Superblock>,
    /// Certificates to archive, in order and without gaps.
    pub certified: Vec<Finality>,
    /// Archived heights to send to a validator: from, and at most up to.
    pub serve: Vec<(Index, u64, u64)>,
    /// Evidence against faulty validators.
    pub evidence: Vec<Evidence>,
    /// Transactions forwarded by other validators, to be submitted as if a client had sent them.
    pub forwarded: Vec<(Index, Payload)>,
    /// Rejected frames.
    pub refused: Vec<(Index, Refused)>,
    /// Set if the validator must stop at once.
    pub diverged: Option<Divergence>,
}

/// A height for which this validator can propose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The height.
    pub height: u64,
    /// Whether others have begun it: propose at once, even an empty sub-block.
    pub urgent: bool,
    /// Whether an outcome waits to be certified, a benched validator has something to propose, or nothing was decided
    /// for a heartbeat: propose soon, even an empty sub-block.
    pub nudged: bool,
}

/// A validator's consensus.
pub struct Engine {
    pub(crate) chain: Chain,
    pub(crate) committee: Committee,
    pub(crate) rules: Rules,
    pub(crate) me: Index,
    pen: Pen,
    check: PayloadCheck,
    /// This machine's clock in milliseconds at the last step.
    pub(crate) clock_ms: Option<u64>,
    pub(crate) live: BTreeMap<u64, Live>,
    /// The last height that was output, and its superblock's digest.
    pub(crate) decided: (u64, Digest),
    pub(crate) benches: Benches,
    /// The last height up to which all heights are certified and output.
    pub(crate) certified: u64,
    /// The last height that the ledger has applied.
    pub(crate) applied: u64,
    pub(crate) roots: BTreeMap<u64, Digest>,
    /// The newest certificates, and those of heights to come.
    pub(crate) certificates: BTreeMap<u64, Certificate>,
    /// Parent and attendance of certified heights, for their archive entries.
    pub(crate) links: BTreeMap<u64, (Digest, Benches)>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) sync: crate::engine::sync::Sync,
    /// The validator does not vote at this height or below, because its earlier votes there are unknown.
    pub(crate) silent_to: u64,
    /// The last height for which this validator proposed.
    proposed: u64,
    /// The last height with a transaction in it.
    pub(crate) busy: u64,
    /// Heights up to this one begin even without a transaction: the network was idle for a heartbeat.
    pub(crate) beat: u64,
    /// The size of committee from which votes are gathered.
    gather_from: usize,
    /// The messages to send, where heights are decided by rounds.
    pub(crate) rounds_outbox: BTreeMap<u64, Vec<tendermint::Message>>,
    /// The log's entries about heights above the horizon.
    logged: BTreeMap<u64, Vec<LogEntry>>,
    /// Whether this validator has something to propose.
    pub(crate) waits: bool,
    /// Whether no height may begin here yet, where heights are decided by rounds.
    pub(crate) rests: bool,
    /// Whether to send a status to all.
    pub(crate) moved: bool,
    pub(crate) turn: Turn,
}

impl Engine {
    /// An engine that begins at `start`.
    pub fn new(setup: Setup, start: Start) -> Engine {
        let committee = setup.chain.committee();
        let peers = vec![Peer::default(); committee.size + setup.followers];
        let follows = usize::from(setup.me) >= committee.size;
        Engine {
            committee,
            chain: setup.chain,
            rules: setup.rules,
            me: setup.me,
            pen: Pen::new(setup.signer),
            check: setup.check,
            clock_ms: None,
            live: BTreeMap::new(),
            decided: (start.height, start.superblock),
            benches: start.benches,
            certified: start.height,
            applied: start.applied,
            roots: start.roots.into_iter().collect(),
            certificates: BTreeMap::new(),
            links: BTreeMap::new(),
            peers,
            sync: crate::engine::sync::Sync::default(),
            silent_to: if follows { u64::MAX } else { 0 },
            proposed: 0,
            busy: start.applied,
            beat: 0,
            gather_from: GATHERED_FROM,
            rounds_outbox: BTreeMap::new(),
            logged: BTreeMap::new(),
            waits: false,
            rests: false,
            moved: false,
            turn: Turn::default(),
        }
    }

    /// Votes are gathered in committees of at least this size, instead of [`GATHERED_FROM`]. Call it before anything
    /// else.
    pub fn gather_from(&mut self, size: usize) {
        self.gather_from = size;
    }

    /// The record of attendance at the genesis.
    pub fn first_benches(committee: &Committee, rules: &Rules) -> Benches {
        Benches::new(committee, rules.bench_after, rules.horizon())
    }

    /// Restores the log's entries after a restart. Call it once, before anything else.
    pub fn restore(&mut self, entries: impl IntoIterator<Item = (u64, LogEntry)>) {
        let mut by_height: BTreeMap<u64, Vec<LogEntry>> = BTreeMap::new();
        for (height, entry) in entries {
            by_height.entry(height).or_default().push(entry);
        }
        self.logged = by_height.split_off(&self.decided.0.max(self.silent_to).saturating_add(1));
        self.restore_up_to_horizon();
    }

    /// Restores the log's entries about heights up to the horizon; the benches of heights above are not known yet.
    pub(crate) fn restore_up_to_horizon(&mut self) {
        let horizon = self.horizon();
        while let Some(first) = self.logged.first_entry().filter(|first| *first.key() <= horizon) {
            let (height, logged) = first.remove_entry();
            let before = self.turn.entries.len();
            self.restore_height(height, logged.clone());
            // Votes that follow from the log and are not in it yet are logged before they are sent.
            let restored = self.turn.entries.split_off(before);
            self.turn.entries.extend(restored.into_iter().filter(|(_, entry)| !logged.contains(entry)));
        }
    }

    fn restore_height(&mut self, height: u64, entries: Vec<LogEntry>) {
        let mut effects = Vec::new();
        let (mut votes, mut held, mut commit) = (Vec::new(), Vec::new(), None);
        let mut rounds = Vec::new();
        for entry in entries {
            match entry {
                LogEntry::Voted(record) => votes.push(record),
                LogEntry::Held(proposal, payload) => held.push((proposal, payload)),
                LogEntry::Committed(made) => commit = Some(made),
                LogEntry::Round(record) => rounds.push(record),
            }
        }
        if held.iter().any(|(proposal, _)| proposal.slot == self.me) {
            self.proposed = self.proposed.max(height);
        }
        let live = self.open(height);
        match &mut live.height {
            Agreement::Slots(slots) => {
                slots.restore(&votes, &mut effects);
                for (Proposal { slot, digest, .. }, _) in &held {
                    slots.on_proposal(*slot, *digest, true, &mut effects);
                }
                for (proposal, payload) in held {
                    live.hold(proposal, payload);
                }
            }
            Agreement::Rounds(_) => self.restore_rounds(height, held, rounds),
        }
        let live = self.open(height);
        if let Some(commit) = commit {
            live.commits.count(commit);
            live.commit = Some(commit);
        }
        self.carry_out(height, effects);
    }

    /// For a lost vote log: earlier votes are unknown. The engine stays silent until n−f others have sent their
    /// status, and then at all heights at which it may have voted before. Call it once, before anything else.
    pub fn rejoin(&mut self) {
        self.silent_to = u64::MAX;
    }

    /// Disables voting below this height: earlier votes there are unknown. Call it before anything else.
    pub fn stay_silent_below(&mut self, height: u64) {
        self.silent_to = self.silent_to.max(height.saturating_sub(1));
    }

    /// Whether this node is not a validator of the epoch: it follows their decisions and does not vote.
    pub fn follows(&self) -> bool {
        usize::from(self.me) >= self.committee.size
    }

    /// Whether every height of the epoch is decided, certified and applied: the next epoch's engine takes over.
    pub fn is_over(&self) -> bool {
        self.settled() >= *self.chain.heights.end()
    }

    /// Where the engine of the next epoch begins, once this one is over.
    pub fn successor(&self, committee: &Committee) -> Start {
        Start {
            height: self.decided.0,
            superblock: self.decided.1,
            benches: Engine::first_benches(committee, &self.rules),
            applied: self.applied,
            roots: self.roots.iter().map(|(height, root)| (*height, *root)).collect(),
        }
    }

    /// The last height up to which all are certified and applied: the log gets no more entries about them.
    pub fn settled(&self) -> u64 {
        self.certified.min(self.applied)
    }

    /// The last height that the ledger is known to have applied.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// The last superblock that was output: height and digest.
    pub fn tip(&self) -> (u64, Digest) {
        self.decided
    }

    /// The last height at which it does not vote; `None` while that is not known.
    pub fn silent_to(&self) -> Option<u64> {
        (self.silent_to < u64::MAX).then_some(self.silent_to)
    }

    /// Whether it only listens and does not vote.
    pub fn is_silent(&self) -> bool {
        self.decided.0 < self.silent_to
    }

    /// The last height that was output.
    pub fn decided(&self) -> u64 {
        self.decided.0
    }

    /// The last height up to which all have a certificate.
    pub fn certified(&self) -> u64 {
        self.certified
    }

    /// The last height for which some correct validator surely has a certificate, according to the connected ones:
    /// the (f+1)-th highest of what they report. The highest could be a lie.
    pub fn certified_anywhere(&self) -> u64 {
        let known = self.peers[..self.committee.size].iter().filter(|peer| peer.is_known);
        let mut said: Vec<u64> = known.map(|peer| peer.status.certified).collect();
        said.sort_unstable_by(|a, b| b.cmp(a));
        said.get(self.committee.faulty).copied().unwrap_or(0).max(self.certified)
    }

    /// The undecided heights, with the state machine of each; `None` for heights with rounds.
    pub fn live(&self) -> impl Iterator<Item = (u64, Option<&crate::Height>)> {
        self.live.iter().map(|(height, live)| (*height, live.height.slots()))
    }

    /// Whether others have certificates of heights that are missing here, and none of them sends these heights: they
    /// may no longer hold them.
    pub fn is_stranded(&self) -> bool {
        self.sync.stranded
    }

    /// The benched validators at a height up to [`Rules::horizon`] above the last decided one.
    pub fn benched(&self, height: u64) -> Members {
        self.benches.at(height)
    }

    /// Whether a valid sub-block of an undecided height, signed by its proposer, is held here.
    pub fn holds(&self, height: u64, slot: Index, digest: &Digest) -> bool {
        self.live.get(&height).is_some_and(|live| live.held(slot, digest).is_some())
    }

    /// Number of connected validators that have sent their status.
    pub fn connected(&self) -> usize {
        self.peers[..self.committee.size].iter().filter(|peer| peer.is_known).count()
    }

    /// The last status of another validator, and whether it is connected and has sent a status since.
    pub fn peer(&self, peer: Index) -> (crate::frame::Status, bool) {
        let peer = &self.peers[usize::from(peer)];
        (peer.status, peer.is_known)
    }

    /// The next height for which this validator can propose, if there is one in the window.
    pub fn opening(&self) -> Option<Opening> {
        if self.rules.protocol == Protocol::Tendermint {
            return self.round_opening();
        }
        let first = self.proposed.max(self.decided.0).max(self.silent_to).checked_add(1)?;
        let last = (self.applied + self.rules.window).min(self.horizon());
        let height = (first..=last).find(|height| !self.benches.at(*height).contains(self.me))?;
        let urgent = self.live.range(height..).any(|(_, live)| live.is_begun());
        let benched = self.benches.at(self.decided.0 + 1);
        let waits = benched.iter().any(|index| self.peers[usize::from(index)].status.waits);
        Some(Opening { height, urgent, nudged: waits || self.must_end(height) })
    }

    /// Whether a height is needed though nobody has a transaction: an outcome waits to be certified, or the network
    /// was idle for a heartbeat.
    pub(crate) fn must_end(&self, height: u64) -> bool {
        height <= self.beat.max(self.busy.saturating_add(self.rules.lag))
    }

    /// Nothing was decided for a heartbeat. The next height begins here, whoever its first proposer is: if that one
    /// is silent or down, the height's rounds find another. So an idle network keeps deciding heights, and everything
    /// that lasts for a number of heights (the silence after a lost vote log, epochs, unbonding) ends.
    pub fn on_heartbeat(&mut self) {
        self.beat = self.decided.0.saturating_add(1);
    }

    /// Sets whether this validator has something to propose.
    pub fn set_waiting(&mut self, waits: bool) {
        // With one proposer at a time the others must begin the height too, or a silent proposer is never skipped.
        self.moved |= self.rules.protocol == Protocol::Tendermint && waits && !self.waits;
        self.waits = waits;
    }

    /// Sets whether this validator rests: the interval after the last height is not over. Where heights are decided by
    /// rounds, it begins none then and prevotes for no payload, so that a proposer in a hurry gains nothing. Set before
    /// the clock.
    pub fn set_resting(&mut self, rests: bool) {
        self.rests = rests;
    }

    /// Proposes a payload for the height of [`Engine::opening`].
    ///
    /// # Panics
    /// If other validators would reject the payload: the shell made it.
    pub fn propose(&mut self, height: u64, payload: Payload) {
        assert!(payload.len() <= self.rules.payload_bytes && self.permits(&payload), "a bad proposal");
        let unsigned = Proposal::unsigned(height, self.me, &payload);
        let proposal = Proposal { signature: self.pen.sign(&unsigned.to_sign(&self.chain)), ..unsigned };
        self.proposed = height;
        self.turn.entries.push((height, LogEntry::Held(proposal, payload.clone())));
        let live = self.open(height);
        live.hold(proposal, payload.clone());
        let mut effects = Vec::new();
        if let Agreement::Slots(slots) = &mut live.height {
            slots.on_proposal(proposal.slot, proposal.digest, true, &mut effects);
        }
        let to = self.takers(height);
        self.send(to, Frame::Proposal(proposal, payload));
        match self.rules.protocol {
            Protocol::Dbft => self.carry_out(height, effects),
            Protocol::Tendermint => self.propose_payload(height, proposal.digest),
        }
    }

    /// Sets the time, in milliseconds of a clock that may be wrong. The times of arriving payloads are compared with
    /// it.
    pub fn set_clock(&mut self, clock_ms: u64) {
        self.clock_ms = Some(clock_ms);
        if self.rules.protocol == Protocol::Tendermint && !self.rests {
            self.judge_payloads(clock_ms);
        }
    }

    /// Handles a frame of another validator.
    pub fn on_frame(&mut self, from: Index, frame: Frame) {
        if from == self.me || usize::from(from) >= self.peers.len() {
            return;
        }
        let taken = match frame {
            // Late frames of the previous epoch are no offence, also from validators that have left.
            Frame::Votes(Votes { height, .. })
            | Frame::Proposal(Proposal { height, .. }, _)
            | Frame::Rounds(tendermint::Messages { height, .. })
            | Frame::Commit(Commit { statement: crate::Statement { height, .. }, .. })
                if usize::from(from) >= self.committee.size =>
            {
                if height > self.decided.0 {
                    Err(Refused::Slot)
                } else {
                    Ok(())
                }
            }
            Frame::Votes(votes) => self.on_votes(from, &votes),
            Frame::Proposal(proposal, payload) => self.on_proposal(from, proposal, payload),
            Frame::Fetch { height, slot, digest } => self.on_fetch(from, height, slot, digest),
            Frame::Commit(commit) => self.on_commit(commit),
            Frame::Certificate(certificate) => self.on_certificate(certificate),
            Frame::Status(status) => self.on_status(from, status),
            Frame::SyncRequest { from: first, to } => self.on_sync_request(from, first, to),
            Frame::Sync(blocks) => self.on_sync(from, blocks),
            Frame::Rounds(_) if self.rules.protocol == Protocol::Dbft => Err(Refused::Protocol),
            Frame::Rounds(messages) => self.on_rounds(from, &messages),
            Frame::Transactions(payload) => self.on_transactions(from, payload),
        };
        if let Err(why) = taken {
            self.turn.refused.push((from, why));
        }
    }

    fn on_transactions(&mut self, from: Index, payload: Payload) -> Result<(), Refused> {
        match (self.check)(&payload) {
            Some(_) if payload.len() > self.rules.payload_bytes => Err(Refused::Payload),
            None => Err(Refused::Payload),
            Some(contents) if contents.is_early => Err(Refused::Ahead),
            Some(_) => {
                self.turn.forwarded.push((from, payload));
                Ok(())
            }
        }
    }

    /// The next validator that has a slot and keeps up, so that it can propose what this one cannot. Skips the first
    /// `skip` candidates.
    pub fn substitute(&self, skip: usize) -> Option<Index> {
        let size = self.committee.size;
        let benched = self.benches.at(self.decided.0 + 1);
        let next = (1..=size).map(|step| ((usize::from(self.me) + step) % size) as Index);
        let able = next.filter(|index| {
            let peer = &self.peers[usize::from(*index)];
            let keeps_up = peer.is_known && peer.status.decided.saturating_add(self.rules.window) >= self.decided.0;
            *index != self.me && keeps_up && !benched.contains(*index)
        });
        let able: Vec<Index> = able.collect();
        able.get(skip % able.len().max(1)).copied()
    }

    /// Forwards transactions to another validator, which is to propose them. The payload must be one that could be
    /// proposed here.
    pub fn forward(&mut self, to: Index, payload: Payload) {
        self.send(Members::from_iter([to]), Frame::Transactions(payload));
    }

    /// Handles a timer that a turn has set.
    pub fn on_timer(&mut self, height: u64, timer: Timer) {
        match timer {
            Timer::Round { step, round } => return self.on_round_timer(height, step, round),
            Timer::Missing => {
                let wanted = self.live.get_mut(&height).into_iter().flat_map(|live| live.wanted.values_mut());
                wanted.for_each(|wanted| wanted.patience = Alarm::Fired);
                return self.fetch(height);
            }
            Timer::Votes { window } => {
                self.live.get_mut(&height).into_iter().for_each(|live| live.gathered.expire(window));
                return;
            }
            _ => {}
        }
        if let Some(Live { height: Agreement::Slots(slots), .. }) = self.live.get_mut(&height) {
            let mut effects = Vec::new();
            slots.on_timer(timer, &mut effects);
            self.carry_out(height, effects);
        }
    }

    /// Records that the ledger has applied a height, durably.
    pub fn on_applied(&mut self, height: u64) {
        let could = self.can_propose();
        self.applied = self.applied.max(height);
        self.moved |= self.waits && !could && self.can_propose();
        self.output();
    }

    /// Records the state root after an applied height.
    pub fn on_root(&mut self, height: u64, root: Digest) {
        self.roots.insert(height, root);
        let above = height + self.rules.lag;
        if let Some(certificate) = self.certificates.get(&above).cloned() {
            self.compare_root(&certificate);
        }
        self.commit_due();
        self.collect();
    }

    /// The error of a failed signature. Nothing of the turn may then be logged or sent, and the engine must no longer
    /// be used.
    pub fn unsigned(&self) -> Option<&SigningError> {
        self.pen.failure()
    }

    /// What the shell must do after the inputs since the last call.
    pub fn finish_turn(&mut self) -> Turn {
        if self.rules.protocol == Protocol::Tendermint {
            self.begin_next(false);
            self.send_rounds();
        }
        self.send_votes();
        if std::mem::take(&mut self.moved) {
            self.announce();
        }
        std::mem::take(&mut self.turn)
    }

    /// Sends the votes that have waited for long enough, and begins the windows of others.
    fn send_votes(&mut self) {
        let heights = self.live.iter_mut();
        let due: Vec<_> = heights.filter_map(|(height, live)| Some((*height, live.gathered.take_due()?))).collect();
        due.into_iter().for_each(|(height, votes)| self.send_votes_on(height, votes));
        let begun = |(height, live): (&u64, &mut Live)| {
            live.gathered.begin_window().map(|window| (*height, Timer::Votes { window }))
        };
        self.turn.timers.extend(self.live.iter_mut().filter_map(begun));
    }

    /// Sends votes on a height to all that accept them.
    pub(crate) fn send_votes_on(&mut self, height: u64, votes: BTreeSet<Vote>) {
        let to = self.takers(height);
        self.send(to, Frame::Votes(Votes::pack(self.chain.epoch, height, votes)));
    }

    pub(crate) fn send(&mut self, to: Members, frame: Frame) {
        if !to.is_empty() {
            self.turn.sends.push((to, frame));
        }
    }

    /// The highest height for which votes are accepted.
    pub(crate) fn horizon(&self) -> u64 {
        self.decided.0.saturating_add(self.rules.horizon()).min(*self.chain.heights.end())
    }

    /// The state of a height above the last decided one; created if there is none.
    pub(crate) fn open(&mut self, height: u64) -> &mut Live {
        let Engine { committee, me, rules, benches, chain, pen, gather_from, .. } = self;
        let enough = rules.enough.unwrap_or(committee.round);
        let settings = HeightSettings { enough, fast: rules.fast };
        let new = || match rules.protocol {
            Protocol::Dbft => Agreement::Slots(Height::new(*committee, settings, height, *me, &benches.at(height))),
            Protocol::Tendermint => Agreement::Rounds(Box::new(Instance::new(chain.clone(), *me, pen.clone(), height))),
        };
        let begin = || {
            let height = new();
            let slots = height.slots().map(Height::slots).filter(|_| committee.size >= *gather_from);
            Live::new(height, Gathered::new(slots))
        };
        self.live.entry(height).or_insert_with(begin)
    }

    /// The state of a height that accepts messages; `None` if the height is over or voting there is not safe.
    pub(crate) fn live_at(&mut self, height: u64) -> Result<Option<&mut Live>, Refused> {
        if height > self.horizon() {
            return Err(Refused::Ahead);
        }
        if height <= self.silent_to {
            return Ok(None);
        }
        if height <= self.decided.0 {
            return Ok(self.live.get_mut(&height));
        }
        Ok(Some(self.open(height)))
    }

    fn on_votes(&mut self, from: Index, votes: &Votes) -> Result<(), Refused> {
        if votes.epoch != self.chain.epoch {
            // Late frames of the previous epoch are no offence.
            return if votes.epoch < self.chain.epoch { Ok(()) } else { Err(Refused::Epoch) };
        }
        self.note_late(from, votes.height);
        let height = votes.height;
        let Some(live) = self.live_at(height)? else { return Ok(()) };
        let (mut effects, mut others) = (Vec::new(), Vec::new());
        for vote in votes.unpack() {
            others.extend(live.echo_of_another(&vote));
            let Agreement::Slots(slots) = &mut live.height else { return Err(Refused::Protocol) };
            slots.on_vote(from, vote, &mut effects);
        }
        // The proposer signed two sub-blocks: the other one is the evidence.
        for (slot, digest) in others {
            self.send([from].into_iter().collect(), Frame::Fetch { height, slot, digest });
        }
        self.carry_out(height, effects);
        Ok(())
    }

    fn on_proposal(&mut self, from: Index, proposal: Proposal, payload: Payload) -> Result<(), Refused> {
        let Proposal { height, slot, digest, .. } = proposal;
        if self.rules.protocol == Protocol::Tendermint {
            return self.on_payload(proposal, payload);
        }
        let Some(live) = self.live_at(height)? else { return Ok(()) };
        let broadcast = live.height.slots().and_then(|slots| slots.broadcast(slot));
        let Some(broadcast) = broadcast else { return Err(Refused::Slot) };
        let from_proposer = from == slot;
        let echoes = from_proposer && !broadcast.has_echoed();
        let held = broadcast.holds(&digest);
        if (held && !echoes) || (!held && !live.has_room(slot, &digest)) {
            return Ok(());
        }
        self.check_payload(&proposal, &payload)?;
        if echoes {
            self.turn.entries.push((height, LogEntry::Held(proposal, payload.clone())));
        }
        let live = self.open(height);
        let first = live.hold(proposal, payload);
        let mut effects = Vec::new();
        if let Agreement::Slots(slots) = &mut live.height {
            slots.on_proposal(slot, digest, from_proposer, &mut effects);
        }
        if let Some(first) = first {
            self.turn.evidence.push(Evidence::Proposals(first, proposal));
        }
        self.carry_out(height, effects);
        Ok(())
    }

    /// Checks that a payload matches its proposal and is a valid sub-block.
    pub(crate) fn check_payload(&self, proposal: &Proposal, payload: &Payload) -> Result<(), Refused> {
        if payload.len() > self.rules.payload_bytes || !proposal.is_of(payload) || !self.permits(payload) {
            return Err(Refused::Payload);
        }
        if proposal.is_signed(&self.chain) { Ok(()) } else { Err(Refused::Signature) }
    }

    fn on_fetch(&mut self, from: Index, height: u64, slot: Index, digest: Digest) -> Result<(), Refused> {
        self.note_late(from, height);
        let held = self.live.get(&height).and_then(|live| live.held(slot, &digest)).cloned();
        if let Some((proposal, payload)) = held {
            let frame = Frame::Proposal(proposal, payload);
            // A peer without allowance asks again later.
            if self.grant(from, frame.weight()) {
                self.send([from].into_iter().collect(), frame);
            }
        }
        Ok(())
    }

    /// Performs the effects of a height.
    pub(crate) fn carry_out(&mut self, height: u64, effects: Vec<HeightEffect>) {
        let mut ended = false;
        for effect in effects {
            match effect {
                HeightEffect::Record(record) => self.turn.entries.push((height, LogEntry::Voted(record))),
                HeightEffect::Send(vote) => {
                    let live = self.live.get_mut(&height).expect("its votes are carried out");
                    live.sent.push(vote);
                    live.gathered.insert(vote);
                }
                HeightEffect::Arm(timer) => self.turn.timers.push((height, timer)),
                HeightEffect::Fetch { slot, digest, holders } => self.want(height, slot, digest, &holders),
                // The signed proposals themselves are compared on arrival.
                HeightEffect::Equivocation { .. } => {}
                HeightEffect::Decide(_) => ended = true,
            }
        }
        if ended {
            self.output();
        }
    }

    /// A sub-block that was agreed on is missing. Votes overtake sub-blocks, so it is probably in transit.
    pub(crate) fn want(&mut self, height: u64, slot: Index, digest: Digest, holders: &Members) {
        let Some(live) = self.live.get_mut(&height) else { return };
        let wanted = live.wanted.entry((slot, digest)).or_default();
        wanted.holders = wanted.holders.union(holders);
        match wanted.patience {
            Alarm::Unset => {
                wanted.patience = Alarm::Armed;
                self.turn.timers.push((height, Timer::Missing));
            }
            Alarm::Armed => {}
            Alarm::Fired => self.fetch(height),
        }
    }

    /// Asks holders for a late sub-block: two at once, so that one silent holder costs nothing; the others at ticks.
    fn fetch(&mut self, height: u64) {
        let me = self.me;
        let Some(live) = self.live.get_mut(&height) else { return };
        let mut asks = Vec::new();
        for ((slot, digest), wanted) in live.wanted.iter_mut().filter(|(_, wanted)| wanted.patience == Alarm::Fired) {
            // Each validator begins with another holder, so that not all ask the same one.
            let turned = (me..=Index::MAX).chain(0..me);
            let fresh = turned
                .filter(|index| *index != me && wanted.holders.contains(*index) && !wanted.asked.contains(*index));
            let ask: Members = fresh.take(2usize.saturating_sub(wanted.asked.len())).collect();
            wanted.asked = wanted.asked.union(&ask);
            asks.push((ask, Frame::Fetch { height, slot: *slot, digest: *digest }));
        }
        asks.into_iter().for_each(|(to, frame)| self.send(to, frame));
    }

    pub(crate) fn sign_commit(&self, statement: crate::Statement) -> Commit {
        Commit { statement, signer: self.me, signature: self.pen.sign(&statement.to_sign(&self.chain)) }
    }

    /// Whether a payload can be a sub-block of this epoch.
    fn permits(&self, payload: &[u8]) -> bool {
        (self.check)(payload).is_some_and(|contents| !contents.is_early)
    }

    pub(crate) fn contents_of(&self, payload: &[u8]) -> Contents {
        (self.check)(payload).unwrap_or_default()
    }

    pub(crate) fn transactions_in(&self, payload: &[u8]) -> usize {
        self.contents_of(payload).transactions
    }
}
