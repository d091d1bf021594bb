//! The loop of a validator: passes inputs to the [`replica`], and its effects to the threads that perform them.
//!
//! ```text
//!  peers ─► links ──────────┐                        ┌─► links ─► peers
//!                           ▼                        │
//!            loop { wait · replica.step · perform }  ├─► executor ─► publisher
//!                           ▲                        │       └─────► roots
//!                           │                        ├─► pool
//!                           │                        ├─► verifier
//!                           │                        ├─► archive
//!                           │                        ├─► states
//!                           │                        └─► unsealer
//!                           └── applied, roots, sub-blocks ◄─┘
//! ```
//!
//! | thread | owns | does |
//! |---|---|---|
//! | consensus | the replica, the links | this loop |
//! | pool | what was given out of the pool | [`Proposals::perform`], accusations, the next epoch's network |
//! | executor | the log of handovers, the ledger while it is lent | its jobs of the life of a block (`execution.rs`) |
//! | verifier | | signatures of sub-blocks that are being agreed on (`verified.rs`) |
//! | archive | | answers to validators that lag ([`Past::answer`]) |
//! | states | the transfer of a state | [`StateSync`] |
//! | unsealer, recalls | | opening keys of envelopes; those of blocks, for peers (`unsealer.rs`) |
//!
//! Every queue is bounded. The loop takes results of jobs first, then votes, then bulk (`inbox.rs`). It never waits for
//! a queue that others fill. If a queue is full, work that will be asked for again is dropped (questions about states,
//! signatures to check ahead, transactions of others).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use consensus::{Index, Payload, payload_digest};
use ledger::Ledger;
use primitives::{Digest, Height, PublicKey, SubBlock, Transaction};
use replica::unsealing::UnsealJob;
use replica::{
    Effect, FrameBytes, Home, Input, Job, LifeInput, LifeStart, Network, Observation, Opened, Own, PoolJob, Proposals,
    Replica, ReplicaSettings, StateEffect, StateSync,
};
use sockets::Client;
use store::RealDisk;
use transport::LinkStream;

use crate::admission::admission;
use crate::execution::{Execution, due_handover, execute};
use crate::inbox::{Inbox, InboxSender};
use crate::intake_queue::Submission;
use crate::laggards::{Request, Requests, answer_laggards};
use crate::links::Links;
use crate::pipeline::{Started, start_workers};
use crate::seal_keys::{self, SealFile, take_seat};
use crate::shared::{ExchangeError, Present, Shared, needs_rules, spawn};
use crate::unsealer::{Recall, recall, unseal};
use crate::venue::line::VenueLine;
use crate::verified::{self, verify_ahead};

pub use replica::{PeerStatus, ValidatorStatus};

/// Maximum number of jobs queued for the pool's worker: a few for each height in progress.
const POOL_JOBS: usize = 1_024;
/// Maximum number of queued messages about states.
const STATE_MESSAGES: usize = 64;
/// Maximum number of messages about states handled between two steps of the transfer.
const STATE_MESSAGES_OF_A_STEP: usize = 32;
/// Maximum number of queued jobs of unsealing: as many as the replica has out.
const UNSEAL_JOBS: usize = 2;
/// Maximum number of queued questions for the keys of a block.
const RECALLS: usize = 64;
/// Interval between two steps of a state transfer.
const STATE_TICK: Duration = Duration::from_millis(20);
/// How often the loop looks at the pool.
const POLL: Duration = Duration::from_millis(2);
/// How often it publishes the validator's status.
const REPORT: Duration = Duration::from_millis(200);

/// The queues of the worker threads.
struct Workers {
    pool: SyncSender<PoolJob>,
    verifier: SyncSender<(Index, Digest, Payload)>,
    archive: Arc<Requests>,
    states: SyncSender<(u64, Index, FrameBytes)>,
    unsealer: SyncSender<UnsealJob>,
    recalls: SyncSender<Recall>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.archive.close();
    }
}

/// The loop.
struct Validator {
    replica: Replica<RealDisk>,
    inbox: Inbox,
    links: Links,
    workers: Workers,
    genesis: Network,
    report_at: Duration,
    /// Whether it has logged that nothing is decided.
    is_stalled: bool,
    /// What it has logged about its admission.
    admission: Option<String>,
}

/// Opens the replica of a home, and starts its threads.
pub(crate) fn start(
    genesis: Network,
    home: &Home<RealDisk>,
    shared: &Arc<Shared>,
    data: &Path,
) -> Result<Vec<JoinHandle<()>>, ExchangeError> {
    let blocks = &shared.config.blocks;
    let settings = ReplicaSettings {
        transactions: blocks.transactions,
        check_ahead: blocks.check_ahead,
        accuse: shared.config.network.accuse,
        ..ReplicaSettings::default()
    };
    let opened = {
        let ledger = shared.read_ledger();
        Replica::open(home, &genesis, settings, &ledger, shared.newest_root(), shared.archive.clone())?
    };
    let Opened { replica, past, handovers, unproved, certified_durably } = opened;
    shared.seat.handovers.set(handovers.held.clone()).ok();
    shared.seat.certificates.set((genesis.rules.lag, past.certificates.clone())).ok();
    shared.pool.lock().mempool.set_room(replica.network().sub_block_room(), replica.network().committee_max);
    let inbox = Inbox::new();
    let links = Links::open(replica.network(), inbox.sender())?;
    shared.seat.links.send_replace(Present { generation: 0, transport: Arc::downgrade(links.transport()) });

    let (pool, pool_jobs) = sync_channel(POOL_JOBS);
    let (verifier, unverified) = sync_channel(verified::WAITING_MAX);
    let (states, state_messages) = sync_channel(STATE_MESSAGES);
    let archive = Arc::new(Requests::default());
    let (unsealer, unseal_jobs) = sync_channel(UNSEAL_JOBS);
    let (recalls, recalls_asked) = sync_channel(RECALLS);
    let workers = Workers { pool, verifier, archive: archive.clone(), states, unsealer, recalls };
    let state_behind = shared.config.network.state_behind;
    let transfer = StateSync::new(genesis.clone(), home, unproved, state_behind, past.clone(), handovers.held.clone());
    // The size of one superblock at most: a frame has room for it.
    let answer_bytes = genesis.superblock_bytes_max();
    let (results, consensus, answered) = (inbox.sender(), inbox.sender(), past.clone());
    let (unsealed, recalled) = (inbox.sender(), past.clone());
    let height = shared.read_ledger().height();
    let start = LifeStart { height, handover: due_handover(shared, &handovers)?, certified: certified_durably };
    let Started { executor: jobs, mut threads } = start_workers(shared, start, Some(&consensus))?;
    let execution = Execution { past, handovers, jobs, consensus };
    let proposals =
        Proposals::new(genesis.own.account.clone()).attending(genesis.own.votes.clone(), shared.config.network.approve);
    let seated = seal_keys::seated(proposals, &genesis, shared, data)?;
    let (report_at, is_stalled, admission) = (Duration::ZERO, false, None);
    let validator = Validator { replica, inbox, links, workers, genesis, report_at, is_stalled, admission };
    threads.extend([
        spawn("executor", shared, move |shared| execute(shared, execution))?,
        spawn("pool", shared, move |shared| work_on_pool(shared, seated, &pool_jobs, &results))?,
        spawn("archive", shared, move |shared| answer_laggards(shared, &answered, answer_bytes, &archive))?,
        spawn("states", shared, move |shared| transfer_states(shared, transfer, &state_messages))?,
        spawn("unsealer", shared, move |shared| unseal(shared, &unseal_jobs, &unsealed))?,
        spawn("recalls", shared, move |shared| recall(shared, &recalled, &recalls_asked))?,
        spawn("verifier", shared, move |shared| verify_ahead(&shared.seat.verified, unverified))?,
        spawn("consensus", shared, move |shared| validator.run(shared))?,
    ]);
    Ok(threads)
}

impl Validator {
    fn run(mut self, shared: &Arc<Shared>) {
        loop {
            let heard = self.wait(shared);
            let effects = match self.replica.step(shared.now(), shared.pool.waiting(), heard) {
                Ok(effects) => effects,
                Err(error) => return shared.fail(&error),
            };
            for effect in effects {
                if let Err(error) = self.perform(effect, shared) {
                    return shared.fail(&error);
                }
            }
            if shared.life.stopping.load(Ordering::Acquire) || shared.has_failed() {
                shared.jobs.tell(LifeInput::Stop);
                return self.links.transport().stop();
            }
            self.report(shared);
        }
    }

    /// The inputs that arrive until the next deadline, or until the pool must be looked at.
    fn wait(&self, shared: &Shared) -> Vec<Input> {
        self.inbox.next(self.replica.deadline().saturating_sub(shared.started.elapsed()).min(POLL))
    }

    fn perform(&mut self, effect: Effect, shared: &Shared) -> Result<(), ExchangeError> {
        match effect {
            Effect::Send { to, is_bulk, bytes } => {
                let stream = if is_bulk { LinkStream::Bulk } else { LinkStream::Votes };
                to.iter().for_each(|peer| self.links.transport().send(peer, stream, bytes.clone()));
            }
            Effect::Limit(peer) => self.links.transport().limit(peer),
            Effect::Connect(generation, network) => {
                self.links.open_again(&network, generation)?;
                let transport = Arc::downgrade(self.links.transport());
                shared.seat.links.send_replace(Present { generation, transport });
            }
            Effect::Job(job) => self.give(job, shared),
            Effect::Observed(observed) => count(observed, shared),
            Effect::Stop(why) => shared.fail(&why),
        }
        Ok(())
    }

    /// Passes a job to its worker. Workers end only when the node stops.
    fn give(&mut self, job: Job, shared: &Shared) {
        let workers = &self.workers;
        match job {
            Job::Apply(agreed) => {
                shared.jobs.leave(LifeInput::Decided(agreed.height), |shelf| shelf.agreed.push_back(agreed));
            }
            Job::Check { slot, digest, payload } => {
                if shared.seat.verified.announce((slot, digest)) {
                    // If the queue is full, the executor checks it.
                    drop(workers.verifier.try_send((slot, digest, payload)));
                }
            }
            Job::Answer { generation, peer, from, to } => {
                workers.archive.enqueue(Request { generation, peer, from, to })
            }
            // If the queue is full, the peer asks again.
            Job::State { generation, peer, bytes } => drop(workers.states.try_send((generation, peer, bytes))),
            Job::Submit { from, native, ethereum } => take_forwarded(shared, from, native, ethereum),
            Job::Pool(job) => drop(workers.pool.send(job)),
            Job::Unseal(job) => drop(workers.unsealer.send(job)),
            // If the queue is full, the peer asks again.
            Job::Recall { generation, peer, height } => {
                drop(workers.recalls.try_send(Recall { generation, peer, height }));
            }
            // The epoch before is fully applied: the ledger does not change, and has drawn the next committee.
            Job::NextEpoch(height) => {
                let ledger = shared.read_ledger();
                match self.genesis.next(&ledger, height) {
                    Some(network) => drop(self.inbox.sender().push_result(Input::Epoch(Box::new(network)))),
                    None => tracing::error!(height, rules = ledger.rules_at(height), "{}", needs_rules(&ledger)),
                }
            }
        }
    }

    /// Publishes the validator's status.
    fn report(&mut self, shared: &Shared) {
        let now = shared.started.elapsed();
        if now < self.report_at {
            return;
        }
        self.report_at = now + REPORT;
        let mut status = self.replica.status();
        for peer in status.peers.iter_mut().filter(|peer| peer.connected && peer.validator != status.me) {
            let round_trip = self.links.transport().round_trip(peer.validator);
            peer.round_trip_ms = round_trip.map(|time| time.as_secs_f64() * 1_000.0);
        }
        shared.metrics.connected.set(status.connected as i64);
        let wait = status.sealed_wait.as_ref().map(|wait| (wait.ms, wait.silent.as_slice()));
        shared.metrics.note_sealed_wait(wait, status.peers.len());
        self.warn_of_stall(&status);
        self.tell_admission(&status, shared);
        status.admission.clone_from(&self.admission);
        shared.seat.status.send_replace(Some(status));
    }

    /// Logs until when a follower is not admitted, whenever that has changed.
    fn tell_admission(&mut self, status: &ValidatorStatus, shared: &Shared) {
        if !status.follows {
            return self.admission = None;
        }
        // Does not wait for a block that is being applied: a later report tells.
        let Some(ledger) = shared.ledger.try_read() else { return };
        let own = self.genesis.own.votes.public();
        let said = admission(&ledger, &own, status.epoch, status.connected > 0);
        if let Some(said) = said.as_ref().filter(|_| said != self.admission) {
            tracing::info!(epoch = status.epoch, "this validator follows: {said}");
        }
        self.admission = said;
    }

    /// Logs once that nothing is decided any more, with who is missing, and once that blocks are made again.
    fn warn_of_stall(&mut self, status: &ValidatorStatus) {
        match (status.stall(), self.is_stalled) {
            (Some(stall), false) => tracing::warn!(height = status.decided, "{stall}"),
            (None, true) => tracing::info!(height = status.decided, "no longer stalled"),
            _ => {}
        }
        self.is_stalled = status.stall().is_some();
    }
}

/// Queues what another validator forwarded: it is a client like others. What finds no room it forwards again.
fn take_forwarded(shared: &Shared, from: Index, native: Vec<Transaction>, ethereum: Vec<Vec<u8>>) {
    let client = Client::Validator(u32::from(from));
    for submission in [Submission::native(native, false).0, Submission::ethereum(ethereum).0] {
        shared.intake.push(shared.now_ms(), client, submission).ok();
    }
}

fn count(observed: Observation, shared: &Shared) {
    let metrics = &shared.metrics;
    match observed {
        Observation::VotesSynced => drop(metrics.vote_syncs.inc()),
        Observation::Refused { why, .. } => metrics.refused_frame(why),
        Observation::Evidence => drop(metrics.evidence.inc()),
        Observation::Forwarded(count) => drop(metrics.handed_over.inc_by(count as u64)),
        Observation::Decided(slots) => metrics.decided(slots.into_iter()),
        Observation::Certified(height) => {
            metrics.certified.set(height as i64);
            shared.seat.certified.store(height, Ordering::Release);
            shared.venue.get().into_iter().for_each(VenueLine::wake);
        }
        Observation::CertifiedDurably(height) => shared.jobs.tell(LifeInput::Certified(height)),
        Observation::Epoch(_) => {}
    }
}

/// The pool's worker.
fn work_on_pool(
    shared: &Arc<Shared>,
    (mut proposals, mut file): (Proposals, Option<SealFile>),
    jobs: &Receiver<PoolJob>,
    results: &InboxSender,
) {
    for job in jobs {
        if let PoolJob::Attend = job {
            let due = shared.ledger.try_read().and_then(|ledger| proposals.post_due(&ledger));
            due.into_iter().for_each(|post| proposals.sign_post(post));
            file.iter_mut().for_each(|file| take_seat(shared, &mut proposals, file));
        }
        let own = if let PoolJob::Assemble { proposer, .. } = job { Some(proposer) } else { None };
        // Does not wait for a block that is being applied: a later tick tries again.
        let ledger = proposals.needs_ledger(&job).then(|| shared.ledger.try_read()).flatten();
        let mut pooled = shared.pool.lock();
        let result = proposals.perform(job, &mut pooled.mempool, ledger.as_deref(), shared.now());
        shared.note_pool(&pooled);
        drop((pooled, ledger));
        if let (Some(own), Some(Input::Assembled { height, payload })) = (own, &result) {
            // Its transactions were checked one by one when clients sent them.
            let sub_block = SubBlock::from_payload(u32::from(own), payload).expect("made here");
            let sub_block = SubBlock { senders: proposals.senders(*height).to_vec(), ..sub_block };
            shared.seat.verified.insert((own, payload_digest(payload)), sub_block);
        }
        if result.is_some_and(|result| !results.push_result(result)) {
            return;
        }
    }
}

impl Own for Shared {
    fn read<T>(&self, of: impl FnOnce(&Ledger) -> T) -> T {
        of(&self.read_ledger())
    }

    fn newest_root(&self) -> (Height, Digest) {
        Shared::newest_root(self)
    }

    fn status(&self) -> Option<ValidatorStatus> {
        self.seat.status()
    }

    fn generation(&self) -> u64 {
        self.seat.links().0
    }

    fn key_of(&self, peer: Index) -> Option<PublicKey> {
        let transport = self.seat.links().1?;
        transport.has_peer(peer).then(|| transport.key_of(peer))
    }
}

/// The states thread.
fn transfer_states(
    shared: &Arc<Shared>,
    mut transfer: StateSync<RealDisk>,
    messages: &Receiver<(u64, Index, FrameBytes)>,
) {
    while !shared.life.stopping.load(Ordering::Acquire) {
        let heard: Vec<_> = match messages.recv_timeout(STATE_TICK) {
            Ok(first) => std::iter::once(first).chain(messages.try_iter()).take(STATE_MESSAGES_OF_A_STEP).collect(),
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let taken = heard
            .iter()
            .try_for_each(|(generation, peer, bytes)| transfer.on_frame(*generation, *peer, bytes, &**shared));
        match taken.and_then(|()| transfer.step(shared.now_ms(), &**shared)) {
            Ok(effects) => effects.into_iter().for_each(|effect| perform_of_states(shared, effect)),
            Err(error) => return shared.fail(&error),
        }
    }
}

fn perform_of_states(shared: &Arc<Shared>, effect: StateEffect) {
    match effect {
        StateEffect::Send { generation, to, is_bulk, bytes } => {
            let stream = if is_bulk { LinkStream::Bulk } else { LinkStream::Votes };
            #[cfg(test)]
            let Some(bytes) = spoiled(shared, bytes) else { return };
            shared.seat.send(generation, to, stream, bytes);
        }
        StateEffect::Undecodable(_) => shared.metrics.refused_frame(consensus::Refused::Undecodable),
        StateEffect::BeginAgain(height) => shared.begin_again(height),
    }
}

#[cfg(test)]
fn spoiled(shared: &Shared, bytes: Arc<[u8]>) -> Option<Arc<[u8]>> {
    let Some(spoil) = shared.seat.spoil.get() else { return Some(bytes) };
    let message = replica::state_sync::message::StateMessage::from_bytes(&bytes).expect("made here");
    spoil(message).map(|message| message.to_bytes())
}

/// State root and receipts root of a height, if they are archived.
pub(crate) fn outcome(shared: &Shared, height: Height) -> Result<Option<(Digest, Digest)>, ExchangeError> {
    let (newest, newest_root) = shared.newest_root();
    let state = if height == newest {
        newest_root
    } else {
        // Clients may ask for any height.
        let above = height.checked_add(1).map(|above| shared.body(above)).transpose()?.flatten();
        let Some(block) = above else { return Ok(None) };
        block.parent_root
    };
    if height == 0 {
        return Ok(Some((state, Digest::default())));
    }
    Ok(shared.receipts(height)?.map(|receipts| (state, receipts.root)))
}

/// Creates the vote log of a validator that has never voted, below its data directory.
///
/// # Errors
/// If there is one already, or it cannot be written.
pub fn create_votes(data: &std::path::Path) -> Result<(), ExchangeError> {
    let directory = |error| replica::ReplicaError::Directory(data.display().to_string(), error);
    RealDisk::new(data).map_err(directory)?;
    Ok(replica::create_votes(&RealDisk::new(data.join("votes")).map_err(directory)?)?)
}
