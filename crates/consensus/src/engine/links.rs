//! The other validators: the status of each, what it is sent, and what it is sent again.
//!
//! A vote is sent only to validators that accept it: those that have sent a status, for heights up to their horizon.
//! When a link comes up, and when a validator's horizon rises, it is sent everything about the heights that were not
//! sent to it yet. So a broken link or a slow ledger loses nothing, and messages may arrive twice.
//!
//! A follower without a vote sends its status and asks for decided heights like a validator that lags; it is sent no
//! votes. A validator in another epoch is sent none either, and all of them when it announces this epoch.

use std::collections::BTreeSet;

use proofs::Index;

use crate::binary::Alarm;
use crate::engine::{Engine, Protocol};
use crate::frame::{Frame, Status, Votes};
use crate::members::Members;
use crate::refused::Refused;

/// Interval in ticks at which everything about an unfinished height is sent again. Links and horizons show what may
/// be lost, so this is for other losses only, and must not add to the load of slow heights.
const STALLED: u32 = 20;
/// Number of ticks given to a validator to send a requested sub-block before another one is asked.
const PATIENCE: u32 = 3;
/// No chain reaches this height; larger ones are rejected, so that sums of heights cannot overflow.
pub const HEIGHT_MAX: u64 = 1 << 48;
/// Number of ticks in which a whole allowance is refilled.
const REFILL: usize = 8;

/// Another validator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// Whether the link is up and it has sent its status.
    pub(crate) is_known: bool,
    pub(crate) status: Status,
    /// Finished heights that it has voted on since the last tick.
    late: BTreeSet<u64>,
    /// Heights for which it was sent a certificate since the link came up.
    answered: BTreeSet<u64>,
    /// The last height up to which it had certificates at the last tick.
    certified_before: Option<u64>,
    /// The tick before which it is not asked for decided heights, because it sent false ones.
    pub(crate) shunned_to: u64,
    /// Bytes that it was sent on demand, minus what ticks have refilled.
    spent: usize,
}

impl Engine {
    /// A link came up, perhaps again: messages on the old one may be lost.
    pub fn on_up(&mut self, peer: Index) {
        self.forget_peer(peer);
        let status = Frame::Status(Status { asks: true, ..self.status() });
        self.send([peer].into_iter().collect(), status);
    }

    /// A link went down.
    pub fn on_down(&mut self, peer: Index) {
        self.forget_peer(peer);
    }

    /// Drops the status of a validator. What it was sent and the record of its false answers outlive the link.
    fn forget_peer(&mut self, peer: Index) {
        let peer = &mut self.peers[usize::from(peer)];
        *peer = Peer { shunned_to: peer.shunned_to, spent: peer.spent, ..Peer::default() };
    }

    /// Maximum bytes that a validator is sent on demand at once: twice the sub-blocks of one slot for every height of
    /// the horizon. Every tick refills an eighth of it.
    fn allowance(&self) -> usize {
        (2 * self.rules.horizon() as usize).saturating_mul(self.rules.payload_bytes + (64 << 10))
    }

    /// Deducts bytes from a validator's allowance; false if it has used it up and must ask later.
    pub(crate) fn grant(&mut self, to: Index, bytes: usize) -> bool {
        let most = self.allowance();
        let spent = &mut self.peers[usize::from(to)].spent;
        let granted = spent.saturating_add(bytes) <= most;
        if granted {
            *spent += bytes;
        }
        granted
    }

    /// Called at intervals: sends the status, asks again for missing sub-blocks, and sends again what may have been
    /// lost.
    pub fn on_tick(&mut self) {
        self.moved = true;
        let forgiven = self.allowance() / REFILL;
        self.peers.iter_mut().for_each(|peer| peer.spent = peer.spent.saturating_sub(forgiven));
        self.sync_tick();
        self.certify_late();
        if self.rules.protocol == Protocol::Tendermint {
            self.begin_next(true);
        }
        let heights: Vec<u64> = self.live.keys().copied().collect();
        for height in heights {
            self.fetch_again(height);
            let live = self.live.get_mut(&height).expect("listed");
            live.age += 1;
            if live.age.is_multiple_of(STALLED) {
                for index in self.takers(height).iter().collect::<Vec<_>>() {
                    let frames = self.sent_about(height, index);
                    self.send_all(index, frames);
                }
            }
        }
    }

    fn fetch_again(&mut self, height: u64) {
        let mut asks = Vec::new();
        let me = self.me;
        let wanted = &mut self.live.get_mut(&height).expect("listed").wanted;
        for ((slot, digest), wanted) in wanted.iter_mut().filter(|(_, wanted)| wanted.patience == Alarm::Fired) {
            wanted.age += 1;
            if !wanted.age.is_multiple_of(PATIENCE) {
                continue;
            }
            let next = |asked: &Members| wanted.holders.iter().find(|index| *index != me && !asked.contains(*index));
            let holder = next(&wanted.asked).or_else(|| {
                wanted.asked = Members::default();
                next(&wanted.asked)
            });
            if let Some(holder) = holder {
                wanted.asked.insert(holder);
                asks.push((holder, Frame::Fetch { height, slot: *slot, digest: *digest }));
            }
        }
        for (holder, frame) in asks {
            self.send([holder].into_iter().collect(), frame);
        }
    }

    /// The status of this validator.
    pub(crate) fn status(&self) -> Status {
        let live = self.live.keys().next_back().copied().unwrap_or(0).max(self.decided.0);
        let (epoch, waits) = (self.chain.epoch, self.waits && self.can_propose());
        Status { epoch, decided: self.decided.0, certified: self.certified, live, waits, asks: false }
    }

    /// Sends the status to all.
    pub(crate) fn announce(&mut self) {
        let known = self.peers.iter().enumerate().filter(|(_, peer)| peer.is_known);
        let to: Members = known.map(|(index, _)| index as Index).filter(|index| *index != self.me).collect();
        let status = Frame::Status(self.status());
        self.send(to, status);
    }

    /// The receivers of votes on a height: the epoch's validators that accept it; the horizon is the same distance
    /// for all.
    pub(crate) fn takers(&self, height: u64) -> Members {
        let takes = |index: &Index| {
            let Peer { is_known, status, .. } = &self.peers[usize::from(*index)];
            let horizon = status.decided.saturating_add(self.rules.horizon());
            *is_known && status.epoch == self.chain.epoch && height <= horizon
        };
        self.committee.members().filter(|index| *index != self.me).filter(takes).collect()
    }

    /// Handles a validator's status.
    pub(crate) fn on_status(&mut self, from: Index, status: Status) -> Result<(), Refused> {
        let own = self.status();
        let horizon = self.rules.horizon();
        let Status { decided, certified, live, .. } = status;
        if decided > HEIGHT_MAX || certified > decided || live < decided || live - decided > horizon {
            return Err(Refused::Status);
        }
        let epoch = self.chain.epoch;
        let peer = &mut self.peers[usize::from(from)];
        // It did not accept messages that were sent to it while it was in another epoch.
        let heard = peer.is_known && peer.status.epoch == epoch;
        let heard_to = if heard { peer.status.decided.saturating_add(horizon) } else { 0 };
        // Progress is never lost; an older status may arrive after a newer one.
        let newer = !peer.is_known || status.decided >= peer.status.decided;
        if newer {
            peer.status = status;
            peer.is_known = true;
        }
        let takes = peer.status.epoch == epoch && usize::from(from) < self.committee.size;
        let takes_to = if takes { peer.status.decided.saturating_add(horizon) } else { 0 };
        let news: Vec<u64> = self.live.keys().copied().filter(|h| *h > heard_to && *h <= takes_to).collect();
        for height in news {
            let frames = self.sent_about(height, from);
            // A peer without allowance is sent this at a later tick, with all others that lack it.
            if self.grant(from, frames.iter().map(Frame::weight).sum()) {
                self.send_all(from, frames);
            }
        }
        if status.asks {
            self.send([from].into_iter().collect(), Frame::Status(own));
            self.certify(from, status);
        }
        self.end_silence();
        Ok(())
    }

    /// Sends certificates to those that have made none of their own for a tick: most who decide a height, or vote on it
    /// late, have its certificate a moment later.
    fn certify_late(&mut self) {
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            let late = std::mem::take(&mut peer.late);
            let status = peer.status;
            let is_still = peer.is_known && peer.certified_before.replace(status.certified) == Some(status.certified);
            for height in late.into_iter().filter(|height| *height > status.certified) {
                self.answer_late(index as Index, height);
            }
            if is_still {
                self.certify(index as Index, status);
            }
        }
    }

    /// Sends certificates to a validator that knows more superblocks than it has certificates of.
    fn certify(&mut self, to: Index, status: Status) {
        let wants = status.certified.saturating_add(1)..=status.decided.min(self.certified);
        if wants.is_empty() {
            return;
        }
        for certificate in self.certificates.range(wants).map(|(_, c)| c.clone()).collect::<Vec<_>>() {
            let frame = Frame::Certificate(certificate);
            if self.grant(to, frame.weight()) {
                self.send([to].into_iter().collect(), frame);
            }
        }
    }

    /// Notes a late vote on a finished height; the next tick answers it.
    pub(crate) fn note_late(&mut self, of: Index, height: u64) {
        if !self.live.contains_key(&height) && self.certificates.contains_key(&height) {
            self.peers[usize::from(of)].late.insert(height);
        }
    }

    /// Answers late votes on a finished height with its certificate, once per link.
    fn answer_late(&mut self, to: Index, height: u64) {
        let Some(certificate) = self.certificates.get(&height) else { return };
        let answered = &mut self.peers[usize::from(to)].answered;
        if self.live.contains_key(&height) || !answered.insert(height) {
            return;
        }
        let recent = height.saturating_sub(2 * self.rules.horizon());
        answered.retain(|answered| *answered >= recent);
        let frame = Frame::Certificate(certificate.clone());
        self.send([to].into_iter().collect(), frame);
    }

    /// Everything sent here about a height: the own sub-block, unless `to` is known to hold it, the votes, the
    /// commit.
    fn sent_about(&self, height: u64, to: Index) -> Vec<Frame> {
        let Some(live) = self.live.get(&height) else { return Vec::new() };
        let mut frames = Vec::new();
        let mine = live.proposal_of(self.me);
        let has = |slot: Index| live.has_heard(slot, to);
        frames.extend(mine.filter(|_| !has(self.me)).map(|(p, bytes)| Frame::Proposal(*p, bytes.clone())));
        if !live.sent.is_empty() {
            frames.push(Frame::Votes(Votes::pack(self.chain.epoch, height, live.sent.iter().copied())));
        }
        frames.extend(self.sent_in_rounds(height));
        frames.extend(live.commit.map(Frame::Commit));
        frames
    }

    fn send_all(&mut self, to: Index, frames: Vec<Frame>) {
        let to: Members = [to].into_iter().collect();
        frames.into_iter().for_each(|frame| self.send(to, frame));
    }

    /// Ends silence once n−f others have sent their status: before the loss, this validator voted at most a horizon
    /// above the height in which one of the correct ones among them takes part.
    fn end_silence(&mut self) {
        if self.silent_to != u64::MAX || self.follows() {
            return;
        }
        let known = self.peers[..self.committee.size].iter().filter(|peer| peer.is_known);
        let enough = self.committee.round.min(self.committee.size - 1);
        if known.clone().count() >= enough {
            let live = known.map(|peer| peer.status.live).fold(self.decided.0, u64::max);
            self.silent_to = live.saturating_add(self.rules.horizon());
        }
    }
}
