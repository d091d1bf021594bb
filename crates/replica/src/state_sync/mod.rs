//! Transfer of whole states between validators: for a validator that is too far behind to catch up by blocks, and for
//! one that was restored from a file and needs a certificate.
//!
//! # The protocol
//!
//! A validator that lags fetches decided heights, each with its certificate (`consensus::sync`). That fails where the
//! others have dropped the blocks that it lacks, and takes too long if there are very many. Then it fetches a
//! *state*.
//!
//! Every validator writes checkpoints at the same heights, multiples of `checkpoint_blocks`. Their bytes depend on
//! the state alone: chunks of 1 MiB that are the same at all validators. Of its two newest checkpoints a validator
//! *offers* the newer one whose outcome is certified: the digests of the chunks, and a *base* ([`base`]). The base
//! contains the certificate of the height with everything that its superblock's digest covers, the certificate of the
//! outcome, which is `lag` heights above, and the parts of the outcome's root.
//!
//! 1. A validator asks up to eight others for an offer when others have certificates of heights that none of them
//!    sends, or when it is more than `state_behind` heights behind.
//! 2. When all have answered, or after five seconds, it takes the offer that most of them make, and among equals the
//!    newest. It asks those with another height whether they have this one too.
//! 3. It asks for the handovers ([`crate::handover`]) from the last one that it holds itself, counted from the
//!    genesis, up to the epoch that signed the base. It checks each handover, and then the base.
//! 4. It asks all who offered this state for chunks, two at a time from each, waits for each at most twenty seconds,
//!    checks each chunk against its digest, and writes it at its offset.
//! 5. When all chunks are there it builds the ledger, whose invariants are audited, and compares its root, its last
//!    block and the constants of the chain with the certified ones.
//! 6. It makes all of that durable, marks it *arrived* (`install.rs`), stops its pipeline, and restarts it with the
//!    fetched state in place of the old one. From there on it catches up by blocks.
//!
//! The vote log is not touched: past votes stay valid, and entries about finished heights have no effect. So a
//! validator that catches up by a state may vote at once where its log allows it. One without a log listens first, as
//! always.
//!
//! A validator that was restored from a file has a state and no certificate. It does not take part in consensus. It
//! asks for the base of its height alone, compares its own state with it, and restarts with it. If nobody has that
//! height any more, it fetches a newer state.
//!
//! # Properties
//!
//! - *Soundness*: a state is accepted only if the committees that the genesis leads to have certified its root, its
//!   block, and the superblock that consensus continues from. A validator trusts its own ledger for the committee it
//!   begins with; one that was restored from a file begins with the genesis.
//! - *Faulty sources are named*: a validator that sends a wrong chunk, an invalid handover, an invalid base or nothing
//!   at all is dropped, named in the log, and not asked for ten minutes. The transfer continues with the others. If
//!   more committee members are excluded than may be faulty, a correct one is among them, and all are asked again.
//!   Digests of chunks are not certified, so that a state of consistently wrong chunks is only detected at the end.
//!   Then all who offered it are named, and another offer is taken. While honest offers outnumber equal faulty ones,
//!   such an attack costs nothing. It costs time only where faulty validators are the majority of those who answer.
//! - *Atomic*: a crash at any moment leaves the old store or the new one, each whole.
//! - *Bounded*: eight offers of at most half a MiB, two chunks in flight for each source, one transfer at a time. A
//!   serving validator keeps three checkpoints open, answers one question after the other, and drops questions when
//!   its queue is full.
//!
//! # Deviations
//!
//! - Snapshots are not taken in lockstep (§2.9): checkpoints are written at the same heights by setting. One that is
//!   skipped because the one before is still being written only means one source less.
//! - Chunks are checked against the offer's digests and the whole state against the certified root, not each chunk by
//!   its own proof. The root covers tries, and writing a state in the order of its tries would be several times slower.
//! - Blocks and receipts from before a fetched state are not fetched: the store begins there.
//! - The pipeline restarts instead of exchanging its state while it runs. It has nothing to do meanwhile, and so
//!   there is only one way to start with a state.

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
use proofs::{ChainRules, Handover, Lineage};
use store::{CheckpointReader, Disk};

use crate::handover::Handovers;
use crate::recovery::restore;
use crate::{Home, Network, Past, ReplicaError, ValidatorStatus};
use base::Base;
pub use install::finish;
use message::StateMessage;
pub use message::TAG;
use serve::Server;
use transfer::{Fetched, Goal, Progress, Transfer, Trusted};

/// The file on the disk `incoming` that a fetched state is written to.
pub(crate) const STATE: &str = "state";
/// Pause after an attempt that failed.
const PAUSE_MS: u64 = 3_000;
/// What an operator reads if the others have gone on under rules that this program does not know.
const NEEDS_RULES: &str =
    "the other validators follow rules that this program does not: install a version of walras for them";
/// How long a misbehaving validator is not asked.
const SHUNNED_MS: u64 = 600_000;

/// What state transfer reads from its validator.
pub trait Own {
    /// Reads the ledger, briefly.
    fn read<T>(&self, of: impl FnOnce(&Ledger) -> T) -> T;
    /// The height and the root of the tries.
    fn newest_root(&self) -> (Height, Digest);
    /// The validator's status; `None` before it has begun.
    fn status(&self) -> Option<ValidatorStatus>;
    /// The generation of the present links: each generation numbers the peers anew.
    fn generation(&self) -> u64;
    /// The key of a peer of the present links; `None` if there is no such peer.
    fn key_of(&self, peer: Index) -> Option<PublicKey>;
}

/// What the shell must do.
#[derive(Debug)]
pub enum StateEffect {
    /// Send a message to a peer of the links of this generation.
    Send {
        /// The generation of the links.
        generation: u64,
        /// The peer.
        to: Index,
        /// Whether it queues behind votes.
        is_bulk: bool,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// A peer sent a message that cannot be decoded.
    Undecodable(Index),
    /// The state after this height was fetched, is certified and durable: restart the replica with it.
    BeginAgain(Height),
}

/// Answers questions about states, and fetches a state when one is needed.
pub struct StateSync<D: Disk> {
    network: Network,
    incoming: D,
    /// The height of a state without a certificate, restored from a file.
    unproved: Option<Height>,
    /// A validator that is more heights behind than this fetches a state; 0 if only when the blocks are held no
    /// longer.
    state_behind: u64,
    server: Server<D>,
    /// The transfer, and the generation of its links: it ends with them.
    transfer: Option<(Transfer<D>, u64)>,
    /// Keys of validators that are not asked, and until when.
    shunned: BTreeMap<[u8; 32], u64>,
    not_before: u64,
    attempts: u64,
    effects: Vec<StateEffect>,
}

impl<D: Disk + Clone> StateSync<D> {
    /// For a validator with the given network of the genesis. `unproved` is the height of a state that was restored
    /// from a file.
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

    /// Handles a frame that begins with [`TAG`], from a peer of the links of this generation.
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
            // A read error on behalf of others does not stop this node; its own reads stop it if they fail.
            Err(error) => tracing::warn!(%error, peer, "a question about a state could not be answered"),
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

    /// Advances the transfer, or begins one if it is needed. Returns what the shell must do since the last call.
    /// `now_ms` is from a monotonic clock.
    ///
    /// # Errors
    /// [`ReplicaError`] if a disk fails, or the restored state is not the certified one.
    pub fn step(&mut self, now_ms: u64, own: &impl Own) -> Result<Vec<StateEffect>, ReplicaError> {
        if self.transfer.is_none() && now_ms >= self.not_before {
            self.begin(own, now_ms)?;
        }
        if let Some((transfer, generation)) = &mut self.transfer {
            let (progress, generation) = (transfer.step(now_ms)?, *generation);
            let (sends, blamed) = (transfer.drain_sends(), std::mem::take(&mut transfer.blamed));
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

    /// Logs misbehaving validators and excludes them for a while.
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

    /// Begins a transfer, if one is needed and a peer is connected.
    fn begin(&mut self, own: &impl Own, now: u64) -> Result<(), ReplicaError> {
        let (generation, Some(status)) = (own.generation(), own.status()) else { return Ok(()) };
        let Some(goal) = self.goal(own, &status) else { return Ok(()) };
        self.not_before = now + PAUSE_MS;
        self.shunned.retain(|_, until| *until > now);
        let others = status.peers.iter().filter(|peer| peer.connected && peer.validator != status.me);
        let others: Vec<Index> = others.map(|peer| peer.validator).collect();
        let is_shunned = |peer: &Index| own.key_of(*peer).is_none_or(|key| self.shunned.contains_key(&key.0));
        let (shunned, asked): (Vec<Index>, Vec<Index>) = others.into_iter().partition(is_shunned);
        // Of more than f excluded members one is correct and was only slow: all are asked again, also if none is left.
        let members = shunned.iter().filter(|peer| usize::from(**peer) < status.validators).count();
        if asked.is_empty() || members > Committee::new(status.validators).faulty {
            self.shunned.clear();
            return Ok(());
        }
        tracing::info!(?goal, from = ?asked, "asking for a state");
        self.attempts += 1;
        install::clear(&self.incoming)?;
        let transfer = Transfer::new(goal, self.trusted(own)?, self.incoming.clone(), &asked, now);
        self.transfer = Some((transfer, generation));
        Ok(())
    }

    /// What is needed now.
    fn goal(&self, own: &impl Own, status: &ValidatorStatus) -> Option<Goal> {
        // If nobody has the proof, a newer state is good enough, and the other way round.
        let in_turns = |height| if self.attempts.is_multiple_of(2) { Goal::Proof(height) } else { Goal::Above(height) };
        if let Some(unproved) = self.unproved {
            return Some(in_turns(unproved));
        }
        // A later state is of rules that this program does not follow.
        if own.read(|ledger| ledger.needs_rules().is_some()) {
            return None;
        }
        let (height, most) = (own.read(Ledger::height), self.state_behind);
        let is_far = most > 0 && status.certified_anywhere > height.saturating_add(most);
        match (status.stranded, is_far) {
            // It has applied more than it has certificates of: its own state, once it is proved, is far enough. Without
            // it the others may not reach a newer one.
            (true, _) if status.certified < height => Some(in_turns(height)),
            (true, _) => Some(Goal::Above(height)),
            // A state that is not much nearer is not worth the transfer.
            (false, true) => Some(Goal::Above(height + most / 2)),
            (false, false) => None,
        }
    }

    /// What is trusted to begin with: the genesis, and the complete handovers from there on that are held. This
    /// node's ledger may know later committees, but the certificates that prove them are removed with the blocks that
    /// a fetched state replaces, and others must be able to follow this validator from the genesis.
    fn trusted(&self, own: &impl Own) -> Result<Trusted, ReplicaError> {
        let (schedule, chain) = (own.read(Ledger::schedule), self.network.chain.clone());
        let Rules { lag, begins, .. } = self.network.rules;
        let chains = vec![chain.clone()];
        let mut trusted = Trusted { lineage: Lineage { schedule, lag, begins, chain }, chains };
        while let Some(handover) = self.server.handovers.get(trusted.lineage.chain.epoch + 1)?
            && trusted.follow(&handover).is_ok()
        {}
        // A useful state is not below this node's own.
        let height = own.read(Ledger::height);
        trusted.chains.retain(|chain| *chain.heights.end() >= height);
        Ok(trusted)
    }

    /// Checks the fetched data as a whole, and makes it replace the present state.
    fn arrive(&mut self, fetched: Fetched, generation: u64, own: &impl Own, now: u64) -> Result<(), ReplicaError> {
        let Fetched { goal, base, first_epoch, handovers, backers } = fetched;
        let (height, is_proof) = (own.read(Ledger::height), goal == Goal::Proof(base.height));
        if base.height < height || base.height == height && !is_proof {
            tracing::info!(
                height = base.height,
                "the node has caught up by blocks meanwhile: the fetched state is not needed"
            );
            self.pause(now);
            return Ok(());
        }
        let shown = self.rules_of(&base, &handovers, own)?;
        let (rules, meant) = (shown.at(base.height), shown.manifest_at(base.height));
        if !own.read(|ledger| ledger.follows(rules, &meant)) {
            // Nobody is to blame: this program could not read the state, or would not go on from it.
            tracing::error!(height = base.height, rules, "{}", NEEDS_RULES);
            self.pause(now);
            self.not_before = now + SHUNNED_MS;
            return Ok(());
        }
        if is_proof {
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

    /// The rules of the chain, as the handover to the epoch of a base proves them: a fetched one, or one that was held
    /// before. In the first epoch they are those of the genesis, which this node's ledger has.
    fn rules_of(&self, base: &Base, fetched: &[Handover], own: &impl Own) -> Result<ChainRules, ReplicaError> {
        let held = match fetched.last() {
            Some(last) => Some(last.validators.rules),
            None => {
                let epoch = own.read(Ledger::schedule).epoch_of(base.height);
                self.server.handovers.get(epoch)?.map(|held| held.validators.rules)
            }
        };
        Ok(held.unwrap_or_else(|| own.read(|ledger| ledger.charter().rules)))
    }

    /// Checks that the fetched chunks make the certified state; returns the reason if not.
    fn check_state(&self, base: &Base, own: &impl Own) -> Result<(), String> {
        let reader = CheckpointReader::open_snapshot(&self.incoming, STATE).map_err(|error| error.to_string())?;
        let ledger = restore(reader).map_err(|error| format!("offered a state that cannot be decoded: {error}"))?;
        let is_certified = base.is_of(&ledger, own.read(base::constants_of));
        if is_certified { Ok(()) } else { Err("offered another state than the certified one".into()) }
    }
}

/// Checks that the restored state is the certified one; it is unusable if not.
fn check_own(base: &Base, own: &impl Own) -> Result<(), ReplicaError> {
    let (_, root) = own.newest_root();
    if root == base.state && own.read(Ledger::last_block) == base.receipts.block {
        return Ok(());
    }
    Err(ReplicaError::Uncertified { height: base.height, ours: root, certified: base.state })
}
