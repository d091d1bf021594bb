//! Catching up: decided heights from the archive of any validator, each with its certificate, so that a false answer
//! is detected at once and another validator is asked.

use proofs::{Certificate, Index};

use crate::engine::Engine;
use crate::frame::{Decided, Frame};
use crate::proposal::Payload;
use crate::refused::Refused;

/// Maximum number of heights in one answer.
const HEIGHTS: u64 = 64;
/// Ticks without progress, while others have certificates, after which the first validator is asked.
const STILL: u64 = 2;
/// Ticks after which another validator is asked.
const PATIENCE: u64 = 4;
/// Ticks for which a validator that sent a false answer is not asked.
const SHUNNED: u64 = 40;

/// The state of catching up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sync {
    tick: u64,
    /// The validator that was asked, and when.
    asked: Option<(Index, u64)>,
    /// The last certified height at the last tick, and for how many ticks it has been the same: a validator that
    /// advances by itself need not ask.
    certified_before: u64,
    still: u64,
    turn: usize,
    /// Whether others are ahead, and none of them sends the heights that are missing here.
    pub(crate) stranded: bool,
}

impl Engine {
    /// Asks another validator for decided heights, if others are ahead and this one made no progress since the last
    /// tick.
    pub(crate) fn sync_tick(&mut self) {
        self.sync.tick += 1;
        // A validator's own claim is enough to ask it: its answer is checked.
        let said = self.peers.iter().filter(|peer| peer.is_known).map(|peer| peer.status.certified);
        let behind = said.max().unwrap_or(0) > self.certified;
        let moved = std::mem::replace(&mut self.sync.certified_before, self.certified) != self.certified;
        self.sync.still = if behind && !moved { self.sync.still + 1 } else { 0 };
        self.sync.stranded &= behind && !moved;
        let waits = self.sync.asked.is_some_and(|(_, since)| self.sync.tick < since + PATIENCE);
        if self.sync.still >= STILL && !waits {
            self.ask();
        }
    }

    fn ask(&mut self) {
        self.sync.asked = None;
        let from = self.certified + 1;
        if !self.may_output() || from > *self.chain.heights.end() {
            return;
        }
        let ahead = |index: &Index| {
            let peer = &self.peers[usize::from(*index)];
            peer.is_known && peer.status.certified >= from && peer.shunned_to <= self.sync.tick
        };
        let ahead: Vec<Index> = (0..self.peers.len()).map(|index| index as Index).filter(ahead).collect();
        if ahead.is_empty() {
            self.sync.stranded = self.certified_anywhere() >= from;
            return;
        }
        self.sync.turn += 1;
        let peer = ahead[(self.sync.turn + usize::from(self.me)) % ahead.len()];
        let to = self.peers[usize::from(peer)].status.certified.min(from + HEIGHTS - 1);
        self.sync.asked = Some((peer, self.sync.tick));
        self.send([peer].into_iter().collect(), Frame::SyncRequest { from, to });
    }

    /// Handles a request for decided heights: the shell answers from the archive.
    pub(crate) fn on_sync_request(&mut self, peer: Index, from: u64, to: u64) -> Result<(), Refused> {
        if from == 0 || to < from || to - from >= HEIGHTS {
            return Err(Refused::Sync);
        }
        let to = to.min(self.certified.min(self.applied));
        // An answer holds the sub-blocks of one height at least. A peer without allowance asks again later.
        if from <= to && self.grant(peer, self.rules.payload_bytes) {
            self.turn.serve.push((peer, from, to));
        }
        Ok(())
    }

    /// Handles an answer; one that was not asked for is ignored.
    pub(crate) fn on_sync(&mut self, from: Index, blocks: Vec<Decided>) -> Result<(), Refused> {
        if self.sync.asked.is_none_or(|(asked, _)| asked != from) {
            return Ok(());
        }
        if blocks.is_empty() {
            // It no longer holds them. Others may hold them, and after a while it is asked again.
            self.peers[usize::from(from)].shunned_to = self.sync.tick + SHUNNED;
        }
        for block in blocks {
            if let Err(why) = self.accept_decided(block) {
                self.peers[usize::from(from)].shunned_to = self.sync.tick + SHUNNED;
                self.ask();
                return Err(why);
            }
        }
        self.output();
        self.ask();
        Ok(())
    }

    fn accept_decided(&mut self, block: Decided) -> Result<(), Refused> {
        let height = block.certificate.statement.height;
        // Heights above the last one are for the next epoch's engine to ask for.
        if height <= self.certified || height > *self.chain.heights.end() {
            return Ok(());
        }
        if height > self.decided.0 + 1 || !self.may_output() {
            return Ok(());
        }
        block.certificate.verify(&self.chain).map_err(|_| Refused::Signature)?;
        if height == self.decided.0 + 1 {
            self.adopt_superblock(&block.certificate, block.sub_blocks)?;
        }
        self.accept(block.certificate);
        Ok(())
    }

    /// Outputs a superblock named by its certificate.
    fn adopt_superblock(
        &mut self,
        certificate: &Certificate,
        sub_blocks: Vec<(Index, Payload)>,
    ) -> Result<(), Refused> {
        if !sub_blocks.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Refused::Sync);
        }
        let (link, benches) = self.next_link(&sub_blocks);
        let digest = link.digest(&self.chain);
        if digest != certificate.statement.superblock {
            return Err(Refused::Sync);
        }
        self.output_superblock(digest, benches, sub_blocks);
        Ok(())
    }
}
