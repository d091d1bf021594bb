//! The fetching side: whom it asks for what, and what it accepts. No clock and no socket: times are milliseconds that
//! the caller gives.

use std::collections::{BTreeMap, BTreeSet};

use consensus::{Chain, Index};
use primitives::Height;
use proofs::{Handover, HandoverError, Lineage};
use store::{Assembly, Disk, StoreError};

use crate::home::names;
use crate::state_sync::STATE;
use crate::state_sync::base::Base;
use crate::state_sync::message::{CHUNKS_MAX, StateMessage, StateOffer};

/// Maximum number of validators that are asked for an offer.
const ASKED: usize = 8;
/// How long to wait for offers and handovers.
const PATIENCE_MS: u64 = 5_000;
/// How long to wait for a chunk: enough for two of 1 MiB over any usable line.
const CHUNK_PATIENCE_MS: u64 = 20_000;
/// Chunks that one validator is asked for at a time: the next request is there when it has sent the first chunk.
const CHUNKS_OF_ONE: usize = 2;

/// What to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A state above this height.
    Above(Height),
    /// The proof of the state after this height, which is held.
    Proof(Height),
}

/// The fetched data. All of it is proved, except that the chunks make the state that the base names.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) goal: Goal,
    pub(crate) base: Base,
    /// The epoch of the first handover.
    pub(crate) first_epoch: u64,
    pub(crate) handovers: Vec<Handover>,
    /// The validators that offered it.
    pub(crate) backers: Vec<Index>,
}

/// The progress of a transfer.
#[derive(Debug)]
pub(crate) enum Progress {
    Going,
    Done(Box<Fetched>),
    /// No connected validator has it, or sends it.
    Nothing,
}

/// Another validator.
#[derive(Debug, Default)]
struct Source {
    offer: Option<StateOffer>,
    /// Whether its offer is still outstanding.
    is_asked: bool,
    /// The chunks that it was asked for, and the deadline of each.
    chunks: BTreeMap<u32, u64>,
}

/// The committees that are trusted.
pub(crate) struct Trusted {
    /// The lineage that led to the last of them.
    pub(crate) lineage: Lineage,
    /// All that may have signed a useful state; the last is that of the lineage. Handovers may be held for epochs
    /// later than the one that signed the offered state.
    pub(crate) chains: Vec<Chain>,
}

impl Trusted {
    /// Moves to the next epoch.
    pub(crate) fn follow(&mut self, handover: &Handover) -> Result<(), HandoverError> {
        self.lineage.follow(handover)?;
        self.chains.push(self.lineage.chain.clone());
        Ok(())
    }
}

/// One attempt to fetch a state.
pub(crate) struct Transfer<D: Disk> {
    goal: Goal,
    trusted: Trusted,
    /// The fetched handovers begin with this epoch.
    first_epoch: u64,
    handovers: Vec<Handover>,
    /// The disk for the chunks.
    incoming: D,
    sources: BTreeMap<Index, Source>,
    /// The deadline for offers.
    offers_until: u64,
    /// The offer that is being fetched.
    chosen: Option<StateOffer>,
    /// The validator that was asked for handovers, and the deadline.
    handovers_from: Option<(Index, u64)>,
    is_proved: bool,
    assembly: Option<Assembly<D>>,
    /// Misbehaving validators and the reason; the caller takes them.
    pub(crate) blamed: Vec<(Index, String)>,
    out: Vec<(Index, StateMessage)>,
}

impl<D: Disk> Transfer<D> {
    /// Begins by asking some of these validators.
    pub(crate) fn new(goal: Goal, trusted: Trusted, incoming: D, peers: &[Index], now: u64) -> Transfer<D> {
        let asked = peers.iter().take(ASKED);
        let sources = asked.map(|peer| (*peer, Source { is_asked: true, ..Source::default() })).collect();
        let mut transfer = Transfer {
            goal,
            first_epoch: trusted.lineage.chain.epoch + 1,
            trusted,
            handovers: Vec::new(),
            incoming,
            sources,
            offers_until: now + PATIENCE_MS,
            chosen: None,
            handovers_from: None,
            is_proved: false,
            assembly: None,
            blamed: Vec::new(),
            out: Vec::new(),
        };
        let question = match goal {
            Goal::Above(_) => StateMessage::AskOffer { height: 0, bare: false },
            Goal::Proof(height) => StateMessage::AskOffer { height, bare: true },
        };
        transfer.out = transfer.sources.keys().map(|peer| (*peer, question.clone())).collect();
        transfer
    }

    /// Takes the messages to be sent.
    pub(crate) fn drain_sends(&mut self) -> Vec<(Index, StateMessage)> {
        std::mem::take(&mut self.out)
    }

    /// Handles an answer; one that was not asked for is ignored.
    ///
    /// # Errors
    /// [`StoreError::Io`] if a chunk cannot be written.
    pub(crate) fn on_answer(&mut self, from: Index, answer: StateMessage) -> Result<(), StoreError> {
        match answer {
            StateMessage::StateOffer(offer) => self.on_offer(from, offer.map(|offer| *offer)),
            StateMessage::Handovers { page, .. } => self.on_handovers(from, page),
            StateMessage::Chunk { number, bytes, .. } => self.on_chunk(from, number, bytes)?,
            StateMessage::AskOffer { .. } | StateMessage::AskHandovers { .. } | StateMessage::AskChunk { .. } => {}
        }
        Ok(())
    }

    fn on_offer(&mut self, from: Index, offer: Option<StateOffer>) {
        let goal = self.goal;
        let Some(source) = self.sources.get_mut(&from).filter(|source| source.is_asked) else { return };
        source.is_asked = false;
        let is_wanted = |offer: &StateOffer| match goal {
            Goal::Above(height) => offer.base.height > height,
            Goal::Proof(height) => offer.base.height == height,
        };
        source.offer = offer.filter(is_wanted).filter(|offer| offer.digests.len() <= CHUNKS_MAX);
    }

    fn on_handovers(&mut self, from: Index, page: Vec<Handover>) {
        if self.handovers_from.is_none_or(|(asked, _)| asked != from) {
            return;
        }
        self.handovers_from = None;
        if page.is_empty() {
            return self
                .drop_source(from, format!("has no handover to epoch {}", self.trusted.lineage.chain.epoch + 1));
        }
        for handover in page {
            if let Err(error) = self.trusted.follow(&handover) {
                return self.drop_source(from, error.to_string());
            }
            self.handovers.push(handover);
        }
    }

    fn on_chunk(&mut self, from: Index, number: u32, bytes: Option<Vec<u8>>) -> Result<(), StoreError> {
        let asked = self.sources.get_mut(&from).and_then(|source| source.chunks.remove(&number));
        let (Some(_), Some(assembly)) = (asked, &mut self.assembly) else { return Ok(()) };
        match bytes {
            None => self.drop_source(from, "no longer holds the state that it offered".into()),
            Some(bytes) if assembly.insert(number as usize, &bytes)? => {}
            Some(_) => self.drop_source(from, format!("sent a wrong chunk {number}")),
        }
        Ok(())
    }

    /// Stops asking this validator and discards what it offered.
    fn drop_source(&mut self, peer: Index, why: String) {
        self.sources.remove(&peer);
        self.blamed.push((peer, why));
    }

    /// Advances the transfer as far as possible.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the file cannot be written.
    pub(crate) fn step(&mut self, now: u64) -> Result<Progress, StoreError> {
        self.expire(now);
        if self.sources.is_empty() {
            return Ok(Progress::Nothing);
        }
        if self.chosen.as_ref().is_some_and(|chosen| self.backers(chosen).is_empty()) {
            // Its sources are disconnected or were dropped. The proved committees stay.
            self.give_up_chosen();
        }
        if self.chosen.is_none() && !self.choose(now) {
            let waits = now < self.offers_until && self.sources.values().any(|source| source.is_asked);
            return Ok(if waits { Progress::Going } else { Progress::Nothing });
        }
        if !self.is_proved && !self.prove(now) {
            return Ok(Progress::Going);
        }
        self.fetch(now)
    }

    /// Drops and blames sources that miss a deadline.
    fn expire(&mut self, now: u64) {
        let late = |source: &Source| source.chunks.values().any(|until| *until <= now);
        let mut late: BTreeSet<Index> =
            self.sources.iter().filter(|(_, source)| late(source)).map(|(peer, _)| *peer).collect();
        if let Some((peer, until)) = self.handovers_from
            && until <= now
        {
            self.handovers_from = None;
            late.insert(peer);
        }
        late.into_iter().for_each(|peer| self.drop_source(peer, "did not answer in time".into()));
    }

    /// The sources that offer this same state.
    fn backers(&self, chosen: &StateOffer) -> Vec<Index> {
        let same = |source: &Source| source.offer.as_ref().is_some_and(|offer| is_same(offer, chosen));
        self.sources.iter().filter(|(_, source)| same(source)).map(|(peer, _)| *peer).collect()
    }

    fn give_up_chosen(&mut self) {
        self.chosen = None;
        self.is_proved = false;
        self.assembly = None;
        self.handovers_from = None;
        self.sources.values_mut().for_each(|source| source.chunks.clear());
    }

    /// Chooses the offer that most sources make, and among these the newest, when all have answered or the deadline
    /// is over.
    fn choose(&mut self, now: u64) -> bool {
        if now < self.offers_until && self.sources.values().any(|source| source.is_asked) {
            return false;
        }
        let offers = self.sources.values().filter_map(|source| source.offer.as_ref());
        let best = offers.max_by_key(|offer| (self.backers(offer).len(), offer.base.height)).cloned();
        let Some(best) = best else { return false };
        if self.goal != Goal::Proof(best.base.height) {
            // Other sources may hold this state besides a newer one.
            for (peer, source) in &mut self.sources {
                if source.offer.as_ref().is_some_and(|offer| offer.base.height != best.base.height) {
                    source.is_asked = true;
                    self.out.push((*peer, StateMessage::AskOffer { height: best.base.height, bare: false }));
                }
            }
        }
        self.chosen = Some(best);
        true
    }

    /// Whether the chosen state is proved; asks for the handovers that this needs.
    fn prove(&mut self, now: u64) -> bool {
        let Some(chosen) = self.chosen.clone() else { return false };
        let (height, lineage) = (chosen.base.height, &self.trusted.lineage);
        let lag = lineage.lag;
        let epoch = lineage.schedule.epoch_of(height.saturating_add(lag)).max(lineage.last_behind(height));
        if lineage.chain.epoch < epoch {
            let from = lineage.chain.epoch + 1;
            if self.handovers_from.is_none()
                && let Some(peer) = self.backers(&chosen).first()
            {
                self.handovers_from = Some((*peer, now + PATIENCE_MS));
                self.out.push((*peer, StateMessage::AskHandovers { from }));
            }
            return false;
        }
        match chosen.base.verify(&self.trusted.chains, lag) {
            Ok(()) => self.is_proved = true,
            Err(fault) => {
                for peer in self.backers(&chosen) {
                    self.drop_source(peer, format!("offered a state at height {height}, but {fault}"));
                }
            }
        }
        self.is_proved
    }

    /// Asks for missing chunks; finishes when none is missing.
    fn fetch(&mut self, now: u64) -> Result<Progress, StoreError> {
        let Some(chosen) = self.chosen.clone() else { return Ok(Progress::Going) };
        let backers = self.backers(&chosen);
        if let Goal::Above(_) = self.goal {
            if self.assembly.is_none() && !self.begin(&chosen)? {
                for peer in backers {
                    self.drop_source(peer, "offered a state of impossible length".into());
                }
                return Ok(Progress::Going);
            }
            let assembly = self.assembly.as_ref().expect("begun");
            if !assembly.is_complete() {
                self.ask_for_chunks(&chosen, &backers, now);
                return Ok(Progress::Going);
            }
            self.assembly.take().expect("complete").finish()?;
        }
        let (base, handovers) = (chosen.base, std::mem::take(&mut self.handovers));
        let (goal, first_epoch) = (self.goal, self.first_epoch);
        Ok(Progress::Done(Box::new(Fetched { goal, base, first_epoch, handovers, backers })))
    }

    fn begin(&mut self, chosen: &StateOffer) -> Result<bool, StoreError> {
        // Removes the chunks of an earlier choice.
        let failed = |reason| StoreError::Io { action: "empty", file: self.incoming.place(), reason };
        if names(&self.incoming).map_err(failed)?.iter().any(|name| name == STATE) {
            self.incoming.remove(STATE).map_err(failed)?;
        }
        let (height, digests) = (chosen.base.height, chosen.digests.clone());
        self.assembly = Assembly::create(&self.incoming, STATE, height, chosen.payload_bytes, digests)?;
        Ok(self.assembly.is_some())
    }

    fn ask_for_chunks(&mut self, chosen: &StateOffer, backers: &[Index], now: u64) {
        let Some(assembly) = &self.assembly else { return };
        let asked: BTreeSet<u32> = self.sources.values().flat_map(|source| source.chunks.keys().copied()).collect();
        let mut missing =
            (0..assembly.chunks() as u32).filter(|number| !assembly.holds(*number as usize) && !asked.contains(number));
        // One chunk each and then another, so that all sources are used from the beginning.
        for room in 1..=CHUNKS_OF_ONE {
            for peer in backers {
                let source = self.sources.get_mut(peer).expect("a backer");
                if source.chunks.len() >= room {
                    continue;
                }
                let Some(number) = missing.next() else { return };
                source.chunks.insert(number, now + CHUNK_PATIENCE_MS);
                self.out.push((*peer, StateMessage::AskChunk { height: chosen.base.height, number }));
            }
        }
    }
}

/// Whether two offers are of the same state in the same chunks. Each may contain another quorum's signatures.
fn is_same(a: &StateOffer, b: &StateOffer) -> bool {
    let state = |offer: &StateOffer| (offer.base.height, offer.base.state, offer.base.receipts, offer.payload_bytes);
    state(a) == state(b) && a.digests == b.digests
}

#[cfg(test)]
mod tests;
