//! The thread that drives the state machine of a shard, and the thread that makes its log durable.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use payments::{
    BlsSecretKey, KeyShare, LaneEffect, LaneInput, LaneLog, LanePeer, LaneRefusal, LaneValidator, LogOwner, MuteReason,
    Output, OutputId,
};
use sockets::Turns;
use store::{Disk, DiskFile};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::log::{FileLog, REWRITTEN};
use crate::shard::{Event, Link, ShardCounts, ShardError, Turn};
use crate::turns::{LIMITS, LaneQueue, lane_address};
use crate::wire::{
    PositionQuery, write_answer, write_batch_answer, write_bls_answer, write_position, write_refusal, write_spender,
};

/// Batches that the machine processes before it answers.
const BATCHES_OF_A_STEP: usize = 64;
/// Batches of a connection on which a payment was signed that may wait for their turn. More of them make larger trees
/// and batches of signatures; each holds what one read brought.
const BATCHES_OF_A_PAYER: usize = 8;
/// Bytes of requests after which a step takes no more of them.
const BYTES_OF_A_STEP: usize = 1 << 20;
/// Bytes that may be written and not synced; above, requests are refused as busy. When a log is opened, twice as many
/// bytes at its end are rewritten.
const UNSYNCED_MAX: u64 = REWRITTEN / 2;
/// Bytes of the log that are written at once. Trees of one payment would else cost a write and a sync's start each.
const WRITTEN_TOGETHER: usize = 64 << 10;

/// The thread that makes the log durable. One sync serves all positions that arrive in the meantime.
pub(crate) fn sync(
    file: &impl DiskFile,
    wanted: &std::sync::mpsc::Receiver<u64>,
    synced: &mpsc::Sender<Event>,
    counts: &ShardCounts,
) {
    while let Ok(first) = wanted.recv() {
        let position = wanted.try_iter().last().unwrap_or(first);
        let result = file.sync().map(|()| position);
        counts.syncs.fetch_add(1, Ordering::Relaxed);
        let failed = result.is_err();
        if synced.blocking_send(Event::Synced(result)).is_err() || failed {
            return;
        }
    }
}

/// What one read of a connection brought, and its place in the queue.
type Requests = (Vec<(u32, Bytes)>, Turn);

/// The driver of the validator.
pub(crate) struct Machine<D: Disk> {
    post: Box<dyn FnMut(LaneEffect) + Send>,
    index: u8,
    validator: LaneValidator,
    pub(crate) log: FileLog<D>,
    links: HashMap<LanePeer, Link>,
    turns: Turns<LaneQueue, LanePeer, Requests>,
    /// Replies of this step, by connection.
    out: HashMap<LanePeer, Vec<u8>>,
    has_begun: bool,
    durable: u64,
    /// The position that the log must be durable up to, once it is written.
    to_sync: Option<u64>,
    /// Bytes of replies that may be pending for one connection.
    reply_bytes: usize,
    pub(crate) counts: Arc<ShardCounts>,
}

impl<D: Disk> Machine<D> {
    pub(crate) fn new(
        (mut validator, intact): (LaneValidator, Option<u64>),
        (bls_key, share): (Option<BlsSecretKey>, Option<KeyShare>),
        mut log: FileLog<D>,
        owner: &LogOwner,
        post: Box<dyn FnMut(LaneEffect) + Send>,
        reply_bytes: usize,
    ) -> Result<(Machine<D>, PositionQuery), ShardError> {
        let Some(intact) = intact else {
            let reason = validator.muted().unwrap_or(MuteReason::MissingLog);
            return Err(ShardError::Mute { place: log.place().into(), reason });
        };
        log.cut(intact)?;
        if let Some(key) = bls_key {
            validator = validator.with_bls(key);
        }
        if let Some(share) = share {
            validator = validator.with_share(share);
        }
        let query = PositionQuery { home: owner.home, validator: owner.validator, shard: owner.shard };
        let machine = Machine {
            post,
            index: owner.validator,
            validator,
            log,
            links: HashMap::new(),
            turns: Turns::new(LIMITS),
            out: HashMap::new(),
            has_begun: false,
            durable: intact,
            to_sync: None,
            reply_bytes,
            counts: Arc::new(ShardCounts::default()),
        };
        machine.count_log();
        Ok((machine, query))
    }

    pub(crate) fn run(
        mut self,
        mut heard: mpsc::Receiver<Event>,
        positions: std::sync::mpsc::Sender<u64>,
        [backed, proven]: [Vec<(OutputId, Output)>; 2],
        tick: Duration,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a timer");
        let backed = backed.into_iter().map(|(id, output)| LaneInput::Backed(id, output));
        let proven = proven.into_iter().map(|(id, output)| LaneInput::Proven(id, output));
        backed.chain(proven).for_each(|known| self.step(known, &positions));
        runtime.block_on(async {
            let mut events = Vec::new();
            // Trees are closed, and budgets refilled, only while requests or news arrive.
            let mut next_tick: Option<Instant> = None;
            loop {
                events.clear();
                let deadline = next_tick.unwrap_or_else(|| Instant::now() + Duration::from_secs(3_600));
                // Requests that wait are served before the next events are awaited; events are taken in between.
                let idle = self.turns.is_empty();
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(deadline), if next_tick.is_some() => {
                        next_tick = None;
                        self.step(LaneInput::Tick, &positions);
                    }
                    count = heard.recv_many(&mut events, BATCHES_OF_A_STEP) => if count == 0 { return },
                    () = std::future::ready(()), if !idle => {}
                }
                for event in events.drain(..) {
                    match event {
                        Event::Stop => return,
                        Event::Requests(peer, requests, own) => {
                            next_tick.get_or_insert_with(|| Instant::now() + tick);
                            let turn = self.turn_of(peer);
                            self.turns.push(0, turn, peer, 1, (requests, own)).expect("permits are the limit");
                        }
                        event => {
                            // A vote or a view is pending in an open tree like an answer.
                            if matches!(event, Event::Fact(_)) {
                                next_tick.get_or_insert_with(|| Instant::now() + tick);
                            }
                            self.on_event(event, &positions);
                        }
                    }
                }
                self.serve(&positions);
                self.write_log(&positions);
                self.flush();
            }
        });
    }

    /// The queue of a connection.
    fn turn_of(&self, peer: LanePeer) -> LaneQueue {
        match self.links.get(&peer) {
            Some(link) if link.has_paid => LaneQueue::Paid(peer),
            Some(link) => LaneQueue::Address(lane_address(link.visit.address())),
            None => LaneQueue::Address(peer),
        }
    }

    /// Serves the next batches, in turn, until a step's work is done.
    fn serve(&mut self, positions: &std::sync::mpsc::Sender<u64>) {
        let mut served = Vec::new();
        let mut bytes = 0;
        while served.len() < BATCHES_OF_A_STEP && bytes < BYTES_OF_A_STEP {
            let Some(slice) = self.turns.next(0, 1) else { break };
            for (peer, (requests, permit)) in slice.requests {
                bytes += requests.iter().map(|(_, body)| body.len()).sum::<usize>();
                served.push((peer, requests, permit));
            }
        }
        if self.has_begun {
            let all = served.iter().flat_map(|(peer, requests, _)| requests.iter().map(|(_, body)| (*peer, &body[..])));
            self.validator.verify_together(all);
        }
        for (peer, requests, permit) in served {
            self.on_requests(peer, &requests, positions);
            drop(permit);
        }
    }

    fn on_event(&mut self, event: Event, positions: &std::sync::mpsc::Sender<u64>) {
        match event {
            Event::Opened(peer, link) => {
                let address = lane_address(link.visit.address());
                self.links.insert(peer, link);
                self.step(LaneInput::Connected(peer, address), positions);
            }
            Event::Closed(peer) => {
                self.links.remove(&peer);
                self.step(LaneInput::Disconnected(peer), positions);
            }
            Event::Synced(Ok(position)) => {
                self.durable = self.durable.max(position);
                self.step(LaneInput::Synced(position), positions);
            }
            Event::Synced(Err(error)) => {
                tracing::error!(%error, log = self.log.place(), "the lane log cannot be synced");
                self.step(LaneInput::SyncFailed, positions);
            }
            Event::Fact(fact) => self.step(fact, positions),
            Event::Begin(None) => self.has_begun = true,
            Event::Begin(Some(reason)) => {
                tracing::error!(%reason, log = self.log.place(), "this shard signs nothing until its next lane epoch");
            }
            Event::Requests(..) | Event::Stop => unreachable!("taken by the loop"),
        }
    }

    fn on_requests(&mut self, peer: LanePeer, requests: &[(u32, Bytes)], positions: &std::sync::mpsc::Sender<u64>) {
        self.counts.requests.fetch_add(requests.len() as u64, Ordering::Relaxed);
        for (number, body) in requests {
            if let Some(PositionQuery { home, validator, shard }) = PositionQuery::parse(body) {
                let highest = self.validator.roots().highest(home, validator, shard);
                write_position(self.out.entry(peer).or_default(), *number, highest);
            } else if !self.has_begun || self.log.length() > self.durable + UNSYNCED_MAX {
                self.refuse(peer, *number, &LaneRefusal::Busy);
            } else {
                let before = self.validator.payments_reserved();
                let effects = self.validator.step(&self.log, LaneInput::Request { peer, bytes: body });
                let is_new = self.validator.payments_reserved() > before;
                if let Some(link) = self.links.get_mut(&peer).filter(|_| is_new) {
                    link.has_brought = true;
                }
                self.perform(effects, *number, positions);
            }
        }
    }

    fn step(&mut self, input: LaneInput<'_>, positions: &std::sync::mpsc::Sender<u64>) {
        let effects = self.validator.step(&self.log, input);
        self.perform(effects, 0, positions);
    }

    /// Performs effects in order; refusals belong to the request with this number.
    fn perform(&mut self, effects: Vec<LaneEffect>, number: u32, positions: &std::sync::mpsc::Sender<u64>) {
        for effect in effects {
            match effect {
                LaneEffect::Append(bytes) => self.log.buffer(&bytes),
                LaneEffect::Sync(position) => {
                    self.to_sync = Some(position);
                    if self.log.buffered() >= WRITTEN_TOGETHER {
                        self.write_log(positions);
                    }
                }
                LaneEffect::Answer { peer, kind, digest, answer } => {
                    self.recognize(peer);
                    self.counts.answers.fetch_add(1, Ordering::Relaxed);
                    write_answer(self.out.entry(peer).or_default(), kind, &digest, &answer);
                }
                LaneEffect::BlsAnswer { peer, kind, digest, signature } => {
                    self.recognize(peer);
                    self.counts.answers.fetch_add(1, Ordering::Relaxed);
                    write_bls_answer(self.out.entry(peer).or_default(), kind, &digest, self.index, &signature);
                }
                LaneEffect::BatchAnswer(peer, answer) => {
                    self.recognize(peer);
                    self.counts.answers.fetch_add(1, Ordering::Relaxed);
                    write_batch_answer(self.out.entry(peer).or_default(), &answer);
                }
                LaneEffect::Spender { peer, output, spender } => {
                    self.counts.answers.fetch_add(1, Ordering::Relaxed);
                    write_spender(self.out.entry(peer).or_default(), &output, spender.as_ref());
                }
                LaneEffect::Refuse { peer, refusal } => self.refuse(peer, number, &refusal),
                LaneEffect::Vote { .. }
                | LaneEffect::Shown(_)
                | LaneEffect::Barred { .. }
                | LaneEffect::View { .. }
                | LaneEffect::Destroy => (self.post)(effect),
                LaneEffect::Mute(reason) => {
                    let log = self.log.place();
                    tracing::error!(%reason, log, "this shard signs nothing until its next lane epoch");
                }
            }
        }
    }

    fn count_log(&self) {
        self.counts.log_bytes.store(self.log.length(), Ordering::Relaxed);
    }

    /// Writes what the log has to have, and starts its sync.
    fn write_log(&mut self, positions: &std::sync::mpsc::Sender<u64>) {
        let Some(position) = self.to_sync.take() else { return };
        self.count_log();
        match self.log.write_buffered() {
            // The syncer ends only after a failed sync, which it has reported.
            Ok(()) => drop(positions.send(position)),
            Err(error) => {
                tracing::error!(%error, log = self.log.place(), "the lane log cannot be written");
                self.step(LaneInput::SyncFailed, positions);
            }
        }
    }

    /// A payment was signed for this connection. If it has brought one that nobody had brought before, it belongs to
    /// somebody who has money; what others paid anybody can repeat.
    fn recognize(&mut self, peer: LanePeer) {
        let link = self.links.get_mut(&peer).filter(|link| link.has_brought && !link.has_paid);
        if let Some(link) = link {
            link.has_paid = true;
            link.room.add_permits(BATCHES_OF_A_PAYER - 1);
            link.visit.recognize();
        }
    }

    fn refuse(&mut self, peer: LanePeer, number: u32, refusal: &LaneRefusal) {
        self.counts.refusals.fetch_add(1, Ordering::Relaxed);
        write_refusal(self.out.entry(peer).or_default(), number, refusal);
    }

    /// Passes replies to the writers. A connection whose client does not read is closed: the client sends the same
    /// bytes again.
    fn flush(&mut self) {
        for (peer, bytes) in self.out.drain() {
            let Some(link) = self.links.get(&peer) else { continue };
            let waiting = link.waiting.fetch_add(bytes.len(), Ordering::AcqRel) + bytes.len();
            if waiting > self.reply_bytes || link.replies.try_send(bytes).is_err() {
                self.links.remove(&peer);
                self.counts.closed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
