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
//! 3. It asks for the handovers ([`crate::handover`]) from the last one that it holds itself, counted from the genesis,
//!    to those that signed the base, checks each, and then the base.
//! 4. It asks all who offered this state for chunks, two at a time from each, waits for each for twenty seconds at
//!    most, holds each chunk against its digest, and writes it where it belongs.
//! 5. When all are there it builds the ledger, whose invariants are audited, and holds its root, its last block and the
//!    constants of the chain against what is certified.
//! 6. It makes all of that durable, marks it *arrived* (`install.rs`), stops its pipeline, and begins again with the
//!    fetched state in the place of the old one. From there on it goes on by blocks.
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
//!   dropped, told in the log, and not asked for ten minutes; the others go on. If these are more members of the
//!   committee than may be faulty, a correct one is among them, and all are asked again. Digests of chunks are not
//!   certified, so that a state of whole false chunks is only found out in the end: all who offered it are named, and
//!   another offer is taken. As more honest offers agree than false ones do, that costs time only where liars are the
//!   majority of those who answer.
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

pub mod base;
pub(crate) mod install;
pub mod message;
mod serve;
mod transfer;

use std::collections::BTreeMap;
use std::sync::Arc;

use consensus::{Committee, Index, Rules};
use ledger::Ledger;
use primitives::{Digest, Height, PublicKey};
use store::{CheckpointReader, Disk};

use crate::handover::{Handovers, Lineage};
use crate::recovery::restore;
use crate::{Home, Network, Past, ReplicaError, ValidatorStatus};
use base::Base;
pub use install::finish;
use message::StateMessage;
pub use message::TAG;
use serve::Server;
use transfer::{Fetched, Goal, Progress, Transfer, Trusted};

/// The file on the disk `incoming` that a state is written to.
pub(crate) const STATE: &str = "state";
/// After an attempt that led to nothing.
const PAUSE_MS: u64 = 3_000;
/// For how long a validator is not asked that did what it must not do.
const SHUNNED_MS: u64 = 600_000;

/// What state transfer looks at of the validator that it works for.
pub trait Own {
    /// Reads the ledger, for a moment.
    fn read<T>(&self, of: impl FnOnce(&Ledger) -> T) -> T;
    /// The height that the tries are of, with their root.
    fn newest_root(&self) -> (Height, Digest);
    /// How the validator stands; `None` before it has begun.
    fn status(&self) -> Option<ValidatorStatus>;
    /// The number of the present links: peers are numbered anew with each.
    fn generation(&self) -> u64;
    /// The key of a peer of the present links; `None` if there is none of that number.
    fn key_of(&self, peer: Index) -> Option<PublicKey>;
}

/// What is to be done.
#[derive(Debug)]
pub enum StateEffect {
    /// A message to a peer of the links of this number.
    Send {
        /// The links.
        generation: u64,
        /// The peer.
        to: Index,
        /// Behind votes?
        is_bulk: bool,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// A peer sent what cannot be decoded.
    Undecodable(Index),
    /// The state after this height was fetched, is certified and durable: the replica is to begin again with it.
    BeginAgain(Height),
}

/// Answers questions about states, and fetches one when that is needed.
pub struct StateSync<D: Disk> {
    network: Network,
    incoming: D,
    /// The height of a state without a certificate, which was restored from a file.
    unproved: Option<Height>,
    /// A validator that is more heights behind than this fetches a state; 0 if only when blocks are held no longer.
    state_behind: u64,
    server: Server<D>,
    /// The transfer, and the number of its links: it ends with them.
    transfer: Option<(Transfer<D>, u64)>,
    /// Keys of who is not asked, and until when.
    shunned: BTreeMap<[u8; 32], u64>,
    not_before: u64,
    attempts: u64,
    effects: Vec<StateEffect>,
}

impl<D: Disk + Clone> StateSync<D> {
    /// Of a validator whose network at the genesis is given. `unproved` is the height of a state that was restored from
    /// a file.
    pub fn new(
        network: Network,
        home: &Home<D>,
        unproved: Option<Height>,
        state_behind: u64,
        past: Past<D>,
        handovers: Arc<Handovers<D>>,
    ) -> StateSync<D> {
        let server = Server::new(past, handovers, network.rules.lag);
        StateSync {
            network,
            incoming: home.incoming.clone(),
            unproved,
            state_behind,
            server,
            transfer: None,
            shunned: BTreeMap::new(),
            not_before: 0,
            attempts: 0,
            effects: Vec::new(),
        }
    }

    /// A frame that begins with [`TAG`], from a peer of the links of this number.
    ///
    /// # Errors
    /// [`ReplicaError`] if an incoming chunk cannot be written.
    pub fn on_frame(&mut self, generation: u64, peer: Index, bytes: &[u8], own: &impl Own) -> Result<(), ReplicaError> {
        let Some(message) = StateMessage::from_bytes(bytes) else {
            self.effects.push(StateEffect::Undecodable(peer));
            return Ok(());
        };
        match self.server.answer(own.newest_root(), &message) {
            Ok(Some(answer)) => self.send(generation, peer, &answer),
            Ok(None) => {
                let here = self.transfer.as_mut().filter(|(_, of)| *of == generation);
                here.map_or(Ok(()), |(transfer, _)| transfer.on_answer(peer, message))?;
            }
            // What cannot be read for others does not stop this node; it stops by itself if it needs it.
            Err(error) => tracing::warn!(%error, peer, "a question about a state stays without an answer"),
        }
        Ok(())
    }

    fn send(&mut self, generation: u64, to: Index, message: &StateMessage) {
        let (bytes, most) = (message.to_bytes(), self.network.frame_bytes_max());
        if bytes.len() > most {
            return tracing::warn!(to, bytes = bytes.len(), "an answer about a state is longer than a frame");
        }
        self.effects.push(StateEffect::Send { generation, to, is_bulk: message.is_bulk(), bytes });
    }

    /// Goes on with the transfer, or begins one if it is needed; what is to be done since the last call. `now_ms` is
    /// of a clock that never goes back.
    ///
    /// # Errors
    /// [`ReplicaError`] if a disk fails, or the restored state is not the one that was certified.
    pub fn step(&mut self, now_ms: u64, own: &impl Own) -> Result<Vec<StateEffect>, ReplicaError> {
        if self.transfer.is_none() && now_ms >= self.not_before {
            self.begin(own, now_ms)?;
        }
        if let Some((transfer, generation)) = &mut self.transfer {
            let (progress, generation) = (transfer.step(now_ms)?, *generation);
            let (sends, blamed) = (transfer.take_sends(), std::mem::take(&mut transfer.blamed));
            sends.iter().for_each(|(peer, message)| self.send(generation, *peer, message));
            self.blame(generation, blamed, own, now_ms);
            match progress {
                Progress::Going if generation == own.generation() => {}
                Progress::Going | Progress::Nothing => self.pause(now_ms),
                Progress::Done(fetched) => self.arrive(*fetched, generation, own, now_ms)?,
            }
        }
        Ok(std::mem::take(&mut self.effects))
    }

    fn pause(&mut self, now: u64) {
        self.transfer = None;
        self.not_before = now + PAUSE_MS;
    }

    /// Names who did what it must not do.
    fn blame(&mut self, generation: u64, blamed: Vec<(Index, String)>, own: &impl Own, now: u64) {
        if generation != own.generation() {
            return;
        }
        for (peer, why) in blamed {
            let Some(key) = own.key_of(peer) else { continue };
            tracing::warn!(peer, %key, %why, "a state is fetched from others than this validator");
            self.shunned.insert(key.0, now + SHUNNED_MS);
        }
    }

    /// Begins a transfer, if one is needed and somebody is connected.
    fn begin(&mut self, own: &impl Own, now: u64) -> Result<(), ReplicaError> {
        let (generation, Some(status)) = (own.generation(), own.status()) else { return Ok(()) };
        let Some(goal) = self.goal(own, &status) else { return Ok(()) };
        self.not_before = now + PAUSE_MS;
        self.shunned.retain(|_, until| *until > now);
        let others = status.peers.iter().filter(|peer| peer.connected && peer.validator != status.me);
        let others: Vec<Index> = others.map(|peer| peer.validator).collect();
        let is_shunned = |peer: &Index| own.key_of(*peer).is_none_or(|key| self.shunned.contains_key(&key.0));
        let (shunned, asked): (Vec<Index>, Vec<Index>) = others.into_iter().partition(is_shunned);
        // Of so many members one is correct, and was only slow; and if nobody is left, others must do.
        let members = shunned.iter().filter(|peer| usize::from(**peer) < status.validators).count();
        if asked.is_empty() || members > Committee::new(status.validators).faulty {
            self.shunned.clear();
            return Ok(());
        }
        tracing::info!(?goal, from = ?asked, "a state is asked for");
        self.attempts += 1;
        install::clear(&self.incoming)?;
        let transfer = Transfer::new(goal, self.trusted(own)?, self.incoming.clone(), &asked, now);
        self.transfer = Some((transfer, generation));
        Ok(())
    }

    /// What is needed now.
    fn goal(&self, own: &impl Own, status: &ValidatorStatus) -> Option<Goal> {
        if let Some(unproved) = self.unproved {
            // If nobody has it a newer one will do.
            return Some(if self.attempts.is_multiple_of(2) { Goal::Proof(unproved) } else { Goal::Above(unproved) });
        }
        let (height, most) = (own.read(Ledger::height), self.state_behind);
        let is_far = most > 0 && status.certified_anywhere > height.saturating_add(most);
        match (status.stranded, is_far) {
            (true, _) => Some(Goal::Above(height)),
            // What is not much nearer is not worth it.
            (false, true) => Some(Goal::Above(height + most / 2)),
            (false, false) => None,
        }
    }

    /// What is trusted to begin with: the genesis, and the handovers from there on that are held and complete. The own
    /// ledger may know later committees; but the certificates that prove them go with the blocks that a fetched state
    /// replaces, and others are to be able to follow this validator from the genesis.
    fn trusted(&self, own: &impl Own) -> Result<Trusted, ReplicaError> {
        let (schedule, chain) = (own.read(Ledger::schedule), self.network.chain.clone());
        let Rules { lag, begins, .. } = self.network.rules;
        let chains = vec![chain.clone()];
        let mut trusted = Trusted { lineage: Lineage { schedule, lag, begins, chain }, chains };
        while let Some(handover) = self.server.handovers.get(trusted.lineage.chain.epoch + 1)?
            && trusted.follow(&handover).is_ok()
        {}
        // A state that is of use is not below the own one.
        let height = own.read(Ledger::height);
        trusted.chains.retain(|chain| *chain.heights.end() >= height);
        Ok(trusted)
    }

    /// Checks what was fetched as a whole, and lets it take the place of what is here.
    fn arrive(&mut self, fetched: Fetched, generation: u64, own: &impl Own, now: u64) -> Result<(), ReplicaError> {
        let Fetched { base, first_epoch, handovers, backers } = fetched;
        if self.unproved.is_none() && base.height <= own.read(Ledger::height) {
            tracing::info!(
                height = base.height,
                "blocks have come that far meanwhile: the fetched state is not needed"
            );
            self.pause(now);
            return Ok(());
        }
        if self.unproved == Some(base.height) {
            check_own(&base, own)?;
        } else if let Err(why) = self.check_state(&base, own) {
            let blamed = backers.into_iter().map(|peer| (peer, why.clone())).collect();
            self.blame(generation, blamed, own, now);
            self.pause(now);
            self.not_before = now;
            return Ok(());
        }
        let first = self.network.chain.epoch + 1;
        let own: Result<Vec<_>, _> = (first..first_epoch).map(|epoch| self.server.handovers.get(epoch)).collect();
        let handovers = own?.into_iter().flatten().chain(handovers).collect();
        install::commit(&self.incoming, &base, first, handovers)?;
        self.transfer = None;
        self.not_before = u64::MAX;
        self.effects.push(StateEffect::BeginAgain(base.height));
        Ok(())
    }

    /// Whether the fetched chunks make the state that was certified, or why not.
    fn check_state(&self, base: &Base, own: &impl Own) -> Result<(), String> {
        let reader = CheckpointReader::open_snapshot(&self.incoming, STATE).map_err(|error| error.to_string())?;
        let ledger = restore(reader).map_err(|error| format!("offered a state that is none: {error}"))?;
        let is_certified = base.is_of(&ledger, own.read(base::constants_of));
        if is_certified { Ok(()) } else { Err("offered another state than the certified one".into()) }
    }
}

/// Whether the restored state is the one that was certified; it is of no use if not.
fn check_own(base: &Base, own: &impl Own) -> Result<(), ReplicaError> {
    let (_, root) = own.newest_root();
    if root == base.state && own.read(Ledger::last_block) == base.receipts.block {
        return Ok(());
    }
    Err(ReplicaError::Uncertified { height: base.height, ours: root, certified: base.state })
}
