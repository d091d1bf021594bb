//! Whole states between validators: how one that is too far behind for blocks comes back, and how one that was restored
//! from a file finds its place.
//!
//! # The protocol
//!
//! A validator that lags fetches decided heights, each with its certificate (`consensus::sync`). That ends where the
//! others have forgotten the blocks that it lacks, and takes too long when there are very many. Then it fetches a
//! *state*.
//!
//! Every validator writes checkpoints at the same heights, multiples of `checkpoint_blocks`, whose bytes follow from
//! the state alone: chunks of 1 MiB that are the same at all of them. Of its two newest checkpoints it *offers* the
//! newer one whose outcome is certified: the digests of the chunks, and a *base* ([`base`]), which shows the
//! certificate of the height with all that its superblock's digest is made of, the certificate of the outcome, `lag`
//! heights above, and what its root is made of.
//!
//! 1. When others have certificates of heights that none of them gives, or when it is more than `state_behind` heights
//!    behind, a validator asks up to eight others for an offer.
//! 2. When all have answered, or five seconds have passed, it takes the offer that most of them make, and the newest of
//!    these. It asks those with another height whether they have this one too.
//! 3. It asks for the handovers ([`crate::handover`]) from the last committee that its own ledger knows to those that
//!    signed the base, checks each, and then the base.
//! 4. It asks all who offered this state for chunks, two at a time from each, waits for each for twenty seconds at
//!    most, holds each chunk against its digest, and writes it where it belongs.
//! 5. When all are there it builds the ledger, whose invariants are audited, and holds its root, its last block and the
//!    constants of the chain against what is certified.
//! 6. It makes all of that durable, names it *arrived* by one rename ([`install`]), stops its pipeline, and begins
//!    again with the fetched state in the place of the old one. From there on it goes on by blocks.
//!
//! The vote log is not touched: what was said stays said, and entries about heights that are over mean nothing. So a
//! validator that comes back by a state votes at once where its log allows it; one without a log listens first, as
//! always.
//!
//! A validator that was restored from a file has a state and no certificate. It does not take part in consensus; it
//! asks for the base of its height alone, holds its own state against it, and begins again with it. If nobody has that
//! height any more it fetches a newer state.
//!
//! # Properties
//!
//! - *Soundness*: a state counts only if the committees that the genesis leads to have certified its root, its block,
//!   and the superblock that consensus goes on from. A validator trusts its own ledger for the committee it begins
//!   with; one that was restored from a file begins with the genesis.
//! - *Liars are named*: whoever sends a false chunk, a false handover, a base that does not hold or nothing at all is
//!   dropped, told in the log, and not asked for ten minutes; the others go on. Digests of chunks are not certified, so
//!   that a state of whole false chunks is only found out in the end: all who offered it are named, and another offer
//!   is taken. As more honest offers agree than false ones do, that costs time only where liars are the majority of
//!   those who answer.
//! - *Atomic*: a crash at any moment leaves the old store or the new one, each whole.
//! - *Bounded*: eight offers of at most half a MiB, two chunks in flight for each source, one transfer at a time;
//!   whoever serves keeps three checkpoints open and answers one question after the other, and drops questions that
//!   find no place.
//!
//! # Deviations
//!
//! - Snapshots are not taken in lockstep (§2.9): checkpoints are written at the same heights by setting, and one that
//!   is left out because the one before is still being written is only one source less.
//! - Chunks are checked against the offer's digests and the whole state against the certified root, not each chunk by a
//!   proof of its own: the root is over tries, and a state in order of its tries would be written several times slower.
//! - Blocks and receipts from before a fetched state are not fetched: the store begins there.
//! - The pipeline begins again instead of exchanging its state while it runs. It has nothing to do meanwhile, and there
//!   is one way to start with a state.

pub(crate) mod base;
pub(crate) mod install;
pub(crate) mod message;
mod serve;
mod transfer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use consensus::Index;
use store::{Archive, CheckpointReader, RealDisk};

use crate::exchange::{ExchangeError, Shared, poisoned};
use crate::handover::Lineage;
use crate::network::Network;
use crate::recovery::restore;
use message::Message;
pub(crate) use message::TAG;
use serve::Server;
use transfer::{Fetched, Goal, Progress, Transfer};
use transport::{Frame, Transport};

/// Messages that wait for the thread.
pub(crate) const MESSAGES: usize = 64;
/// Messages that are taken between two looks at the transfer.
const MESSAGES_OF_A_TURN: usize = 32;
/// Between two looks.
const TICK: Duration = Duration::from_millis(20);
/// After an attempt that led to nothing.
const PAUSE_MS: u64 = 3_000;
/// For how long a validator is not asked that did what it must not do.
const SHUNNED_MS: u64 = 600_000;

/// A message, and by which connections.
pub(crate) struct Heard {
    pub(crate) transport: Weak<Transport>,
    pub(crate) peer: Index,
    pub(crate) bytes: Frame,
}

/// The thread that answers questions about states, and fetches one when that is needed.
pub(crate) struct StateSync {
    network: Network,
    data: PathBuf,
    /// The height of a state without a certificate, which was restored from a file.
    unproved: Option<u64>,
    server: Server,
    heard: Receiver<Heard>,
    begun: Instant,
    /// The transfer, and by which connections: it ends with them, as validators are numbered anew then.
    transfer: Option<(Transfer, Weak<Transport>)>,
    /// Keys of who is not asked, and until when.
    shunned: BTreeMap<[u8; 32], u64>,
    not_before: u64,
    attempts: u64,
}

impl StateSync {
    /// Of a node whose network at the genesis is given.
    pub(crate) fn new(
        network: Network,
        data: PathBuf,
        unproved: Option<u64>,
        certificates: Archive<RealDisk>,
        heard: Receiver<Heard>,
    ) -> StateSync {
        let server = Server::new(certificates, network.rules.lag);
        StateSync {
            network,
            data,
            unproved,
            server,
            heard,
            begun: Instant::now(),
            transfer: None,
            shunned: BTreeMap::new(),
            not_before: 0,
            attempts: 0,
        }
    }

    /// The thread.
    pub(crate) fn run(mut self, shared: &Arc<Shared>) {
        while !shared.stopping.load(Ordering::Acquire) {
            if let Err(error) = self.take_messages(shared).and_then(|()| self.go_on(shared)) {
                return shared.fail(&error);
            }
        }
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    fn take_messages(&mut self, shared: &Arc<Shared>) -> Result<(), ExchangeError> {
        let first = match self.heard.recv_timeout(TICK) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(TICK);
                return Ok(());
            }
        };
        self.take(first, shared)?;
        for _ in 1..MESSAGES_OF_A_TURN {
            let Ok(heard) = self.heard.try_recv() else { break };
            self.take(heard, shared)?;
        }
        Ok(())
    }

    fn take(&mut self, heard: Heard, shared: &Arc<Shared>) -> Result<(), ExchangeError> {
        let Heard { transport, peer, bytes } = heard;
        let Some(message) = Message::from_bytes(&bytes) else {
            shared.metrics.refused_frame(consensus::Refused::Undecodable);
            return Ok(());
        };
        match self.server.answer(shared, &message) {
            #[cfg(test)]
            Ok(Some(answer)) if shared.spoil.get().is_some() => {
                let spoil = shared.spoil.get().expect("it is there");
                spoil(answer).iter().for_each(|answer| self.send(&transport, peer, answer));
            }
            Ok(Some(answer)) => self.send(&transport, peer, &answer),
            Ok(None) => {
                let here = self.transfer.as_mut().filter(|(_, of)| of.ptr_eq(&transport));
                here.map_or(Ok(()), |(transfer, _)| transfer.on_answer(peer, message))?;
            }
            // What cannot be read for others does not stop this node; it stops by itself if it needs it.
            Err(error) => tracing::warn!(%error, peer, "a question about a state stays without an answer"),
        }
        Ok(())
    }

    fn send(&self, transport: &Weak<Transport>, peer: Index, message: &Message) {
        let bytes = message.to_bytes();
        let most = self.network.transport().frame_bytes_max;
        match transport.upgrade() {
            Some(transport) if bytes.len() <= most => transport.send(peer, message.lane(), bytes),
            Some(_) => tracing::warn!(peer, bytes = bytes.len(), "an answer about a state is longer than a frame"),
            None => {}
        }
    }

    /// Goes on with the transfer, or begins one if it is needed.
    fn go_on(&mut self, shared: &Arc<Shared>) -> Result<(), ExchangeError> {
        let now = self.now();
        if self.transfer.is_none() && now >= self.not_before {
            self.begin(shared, now)?;
        }
        let Some((transfer, transport)) = &mut self.transfer else { return Ok(()) };
        let (progress, transport) = (transfer.step(now)?, transport.clone());
        let (sends, blamed) = (transfer.take_sends(), std::mem::take(&mut transfer.blamed));
        sends.iter().for_each(|(peer, message)| self.send(&transport, *peer, message));
        self.blame(&transport, blamed, now);
        match progress {
            Progress::Going if transport.strong_count() > 0 => Ok(()),
            Progress::Going | Progress::Nothing => {
                self.pause(now);
                Ok(())
            }
            Progress::Done(fetched) => self.arrive(*fetched, &transport, shared, now),
        }
    }

    fn pause(&mut self, now: u64) {
        self.transfer = None;
        self.not_before = now + PAUSE_MS;
    }

    /// Names who did what it must not do.
    fn blame(&mut self, transport: &Weak<Transport>, blamed: Vec<(Index, String)>, now: u64) {
        let Some(transport) = transport.upgrade() else { return };
        for (peer, why) in blamed {
            let key = transport.key_of(peer);
            tracing::warn!(peer, %key, %why, "a state is fetched from others than this validator");
            self.shunned.insert(key.0, now + SHUNNED_MS);
        }
    }

    /// Begins a transfer, if one is needed and somebody is connected.
    fn begin(&mut self, shared: &Arc<Shared>, now: u64) -> Result<(), ExchangeError> {
        let Some(goal) = self.goal(shared) else { return Ok(()) };
        self.not_before = now + PAUSE_MS;
        let held = poisoned(shared.transport.lock()).clone();
        let (Some(transport), Some(status)) = (held.upgrade(), poisoned(shared.status.lock()).clone()) else {
            return Ok(());
        };
        self.shunned.retain(|_, until| *until > now);
        let others = status.peers.iter().filter(|peer| peer.connected && peer.validator != status.me);
        let asked: Vec<Index> = others
            .map(|peer| peer.validator)
            .filter(|peer| transport.has_peer(*peer) && !self.shunned.contains_key(&transport.key_of(*peer).0))
            .collect();
        // The others were all found out: perhaps they have come to their senses.
        if asked.is_empty() {
            self.shunned.clear();
            return Ok(());
        }
        tracing::info!(?goal, from = ?asked, "a state is asked for");
        self.attempts += 1;
        let transfer = Transfer::new(goal, self.lineage(shared), install::begin(&self.data)?, &asked, now);
        self.transfer = Some((transfer, held));
        Ok(())
    }

    /// What is needed now.
    fn goal(&self, shared: &Shared) -> Option<Goal> {
        let height = shared.read_ledger().height();
        if let Some(unproved) = self.unproved {
            // If nobody has it a newer one will do.
            return Some(if self.attempts.is_multiple_of(2) { Goal::Proof(unproved) } else { Goal::Above(unproved) });
        }
        let status = poisoned(shared.status.lock()).clone()?;
        let most = shared.config.network.state_behind;
        let is_far = most > 0 && status.certified_anywhere > height.saturating_add(most);
        match (status.stranded, is_far) {
            (true, _) => Some(Goal::Above(height)),
            // What is not much nearer is not worth it.
            (false, true) => Some(Goal::Above(height + most / 2)),
            (false, false) => None,
        }
    }

    /// The committees that are trusted to begin with: those of the own ledger, which has applied what they decided, or
    /// of the genesis if it was restored from a file.
    fn lineage(&self, shared: &Shared) -> Lineage {
        let ledger = shared.read_ledger();
        let chain = match self.unproved {
            Some(_) => self.network.chain.clone(),
            None => self.network.at(&ledger, ledger.height() + 1).chain,
        };
        Lineage { schedule: ledger.schedule(), lag: self.network.rules.lag, chain }
    }

    /// Checks what was fetched as a whole, and lets it take the place of what is here.
    fn arrive(
        &mut self,
        fetched: Fetched,
        transport: &Weak<Transport>,
        shared: &Arc<Shared>,
        now: u64,
    ) -> Result<(), ExchangeError> {
        let Fetched { base, first_epoch, handovers, backers } = fetched;
        if self.unproved.is_none() && base.height <= shared.read_ledger().height() {
            tracing::info!(
                height = base.height,
                "blocks have come that far meanwhile: the fetched state is not needed"
            );
            self.pause(now);
            return Ok(());
        }
        if self.unproved == Some(base.height) {
            self.check_own(&base, shared)?;
        } else if let Err(why) = self.check_state(&base, shared) {
            self.blame(transport, backers.into_iter().map(|peer| (peer, why.clone())).collect(), now);
            self.pause(now);
            self.not_before = now;
            return Ok(());
        }
        install::commit(&self.data, &base, first_epoch, handovers)?;
        shared.begin_again(base.height);
        Ok(())
    }

    /// Whether the restored state is the one that was certified; it is of no use if not.
    fn check_own(&self, base: &base::Base, shared: &Shared) -> Result<(), ExchangeError> {
        let (_, root) = shared.newest_root();
        let ledger = shared.read_ledger();
        if root == base.state && ledger.last_block() == base.receipts.block {
            return Ok(());
        }
        Err(ExchangeError::Uncertified { height: base.height, ours: root, certified: base.state })
    }

    /// Whether the fetched chunks make the state that was certified, or why not.
    fn check_state(&self, base: &base::Base, shared: &Shared) -> Result<(), String> {
        let file = self.data.join("incoming").join("state");
        let reader = CheckpointReader::of_snapshot(&file).map_err(|error| error.to_string())?;
        let ledger = restore(reader).map_err(|error| format!("offered a state that is none: {error}"))?;
        let constants = base::constants_of(&shared.read_ledger());
        let is_certified = base.is_of(&ledger, constants);
        if is_certified { Ok(()) } else { Err("offered another state than the certified one".into()) }
    }
}

/// What a validator of a test that lies sends instead of an answer.
#[cfg(test)]
pub(crate) type Spoil = Box<dyn Fn(Message) -> Option<Message> + Send + Sync>;

#[cfg(test)]
mod tests;
