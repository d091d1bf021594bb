//! Unsealing: how the seats of a committee open the envelopes of a block that is decided.
//!
//! # The protocol
//!
//! An [`Unsealer`] is told which envelopes of a height open, as labels in the order of the block, each with the number
//! of the key that it is sealed to. Two keys may be in force: what a height has under one of them is a *lot*. Whoever
//! tells it has applied the height whose state names the keys. t holders of a key ([`SealCommittee`]) together make the
//! opening keys of a lot; each holder has a share of its secret.
//!
//! - Upon *output(h)*: every height up to h is decided here, its payloads are held, its votes are durable. A holder
//!   makes its shares for each lot of h, a job, and sends them to all peers in one frame. Heights come in order.
//! - Upon *a frame of shares for a lot of h*: the first one of each holder counts. It is kept for heights that are
//!   output and not applied here, and for at most [`AHEAD`] heights beyond.
//! - When t frames of a lot are there: combine the first t of them, a job. It checks all keys of the lot by one
//!   pairing. If they are right, the lot is open, and h is when all its lots are. If not, each of the frames is
//!   checked by itself under its holder's key: false ones are dropped, and their senders are *doubted*. While this
//!   key lives, frames of doubted holders come last, and count only for heights that are not open two ticks after
//!   their output.
//! - Upon *a frame of keys for h*, from anybody: they are checked as a whole, a job. If they are right, h is open. If
//!   not, their sender is doubted, and its keys are looked at no more.
//! - Upon *a tick*: ask all peers for the heights that were output before the last tick and are not open, the lowest
//!   [`ASKS`] of them.
//! - Upon *being asked for h*: whoever has opened h answers with its keys, and a holder that has output h with its
//!   shares of one lot, of another lot the next time. Of heights that are applied the block's record has the keys:
//!   answering is the shell's, by [`UnsealEffect::Recall`]. A peer gets [`ASKS`] answers a tick.
//! - Upon *applied(h)*: forget all heights up to h.
//! - A height that is not open after [`LOST_TICKS`] ticks is *lost* here if others have gone on: they have dropped its
//!   block with its keys. Then the node fetches a state above it (`state_sync`).
//!
//! Open keys are part of the block's record: a replay, a follower and a node that catches up check them in one batch,
//! and need no share.
//!
//! # Properties
//!
//! (`tests` walks through random orders, with Byzantine seats and restarts, and through all short ones.)
//!
//! - *Not before output*: no share of a correct seat for a height is given out before that seat has output it. So with
//!   at most t − 1 Byzantine holders, nobody opens an envelope before a correct seat has output its height.
//! - *Only what is told*: shares are made for the labels of the decided block that open, and for no others. An
//!   envelope that is in no block, or is late, stays closed.
//! - *Right or none*: whatever is told as open was checked under the committee's key.
//! - *Live*: when t correct holders have output h and their links work, each correct seat opens h. False frames cost
//!   one check each; a holder's false frame is never combined again.
//! - *The same keys*: keys are unique, so whoever opens, and with whose shares, has the same bytes.
//! - *Bounded*: of a peer and a height there are at most [`LOTS_MAX`] frames of shares and one of keys, each of at most
//!   [`ENVELOPES_MAX`] points, and [`AHEAD`] heights beyond those that are output. At most one job is out.
//!
//! # Crash
//!
//! Nothing is stored. A restarted seat outputs again what is decided and not logged, makes the same shares again, and
//! asks. What is logged has its keys.
//!
//! # Attacks
//!
//! | attack | answer |
//! |---|---|
//! | a seat asks for shares of a height that is decided nowhere | only what was output here is answered |
//! | a frame for a height far ahead, for each of many, or for keys that there are not | at most [`AHEAD`] heights beyond, [`LOTS_MAX`] of a peer each |
//! | a frame with more points than envelopes, or fewer | false: dropped unread, its sender doubted |
//! | shares that are wrong one by one and right in sum | keys are checked after they are combined, under P |
//! | one false share in each block, first, so that each block costs n checks more | a doubted holder's frames wait |
//! | f holders send false shares and the others are slow | the job waits for t frames that are not known to be false |
//! | false keys from every peer | one check for each sender while the key lives |
//! | asks without end | [`ASKS`] answers a peer and tick, each of at most 3 KB, that are made already |
//! | a stranger's frame | only peers have links; shares count from holders, by their link |
//! | a holder sends one frame here and another one there | each receiver checks what it combines |
//! | a holder that is silent | t of the others are enough: a key needs t + f holders |
//!
//! # Deviations
//!
//! - *Asked for, not sent again*: the design sends shares again until a seat's status says that it applied the height.
//!   Here the one that lacks them asks. That needs no view of others, and who opened already answers with the keys.
//! - *Whole keys are taken from anybody*: they are as good as a block's record, by the same check.

mod committee;
mod frame;
mod lots;
mod mistake;
mod queue;
#[cfg(test)]
mod tests;
mod view;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use consensus::Index;
use kernel::Planted;
use primitives::Height;
use sealing::Label;

pub use committee::SealCommittee;
pub(crate) use frame::{ENVELOPES_MAX, TAG};
pub use frame::{Points, UnsealFrame, UnsealFrameError};
use lots::{Closed, Own};
pub use mistake::UnsealMistake;
pub(crate) use queue::{QueueEffect, UnsealQueue};
pub(crate) use view::SealView;
pub use view::{FindWork, FoundOpenings, SealState, envelopes_of};
pub use work::{UnsealDone, UnsealJob, UnsealResult, UnsealWork};

/// Heights beyond the output one for which frames are kept: a peer may be ahead by the window of heights in parallel.
pub const AHEAD: u64 = 8;
/// Heights that a node asks for, and answers of a peer, in a tick.
pub const ASKS: usize = 16;
/// Keys that are in force at a height.
pub const LOTS_MAX: usize = 2;
/// Ticks after which shares of doubted holders are combined too.
const LATE_TICKS: u8 = 2;
/// Ticks after which nobody seems to have the keys of a height any more.
const LOST_TICKS: u8 = 30;

/// What opens of a height: of each envelope the number of its key, and its label, in the order of the block.
pub type Openings = Arc<[(u64, Label)]>;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum UnsealInput {
    /// A height is output here.
    Output {
        /// The height.
        height: Height,
        /// The keys that its envelopes are sealed to.
        committees: Vec<Arc<SealCommittee>>,
        /// Its envelopes that open, at most [`ENVELOPES_MAX`]: often none.
        openings: Openings,
    },
    /// A frame of a peer.
    Frame {
        /// The peer.
        from: Index,
        /// What it sent.
        frame: UnsealFrame,
    },
    /// The result of the job that was out.
    Done(UnsealResult),
    /// The block of this height is logged and applied, with its keys.
    Applied(Height),
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsealEffect {
    /// Perform this; [`UnsealInput::Done`] has the result.
    Work(UnsealWork),
    /// Send a frame to a peer.
    Send {
        /// The peer.
        to: Index,
        /// The frame.
        frame: UnsealFrame,
    },
    /// Send a frame to all peers.
    SendAll(UnsealFrame),
    /// Send a peer the keys of a block that is applied here, if its record is still there.
    Recall {
        /// The peer.
        to: Index,
        /// The height.
        height: Height,
    },
    /// The envelopes of a height are open.
    Open {
        /// The height.
        height: Height,
        /// Their keys, in the order of the block.
        keys: Points,
    },
}

/// What a height has under one key: the height, and the number of the key.
type Lot = (Height, u64);

/// The state machine; see the module's text.
#[derive(Clone, Debug)]
pub struct Unsealer {
    /// The last height that was output here.
    output: Height,
    applied: Height,
    /// Heights that are output and have envelopes that open.
    heights: BTreeMap<Height, Closed>,
    /// Shares that peers sent, the first frame of each: not known to be false.
    shares: BTreeMap<Lot, Vec<(Index, Points)>>,
    /// Whole keys that peers sent.
    keys: BTreeMap<Height, BTreeMap<Index, Points>>,
    /// Who sent something false under the key of this number.
    doubted: BTreeMap<u64, BTreeSet<Index>>,
    /// How often each peer was answered since the last tick.
    answered: BTreeMap<Index, usize>,
    is_working: bool,
    mistake: Planted<UnsealMistake>,
}

impl Unsealer {
    /// The machine of a seat, or of one that holds no share, above an applied height.
    pub fn new(applied: Height, mistake: Planted<UnsealMistake>) -> Unsealer {
        Unsealer {
            output: applied,
            applied,
            heights: BTreeMap::new(),
            shares: BTreeMap::new(),
            keys: BTreeMap::new(),
            doubted: BTreeMap::new(),
            answered: BTreeMap::new(),
            is_working: false,
            mistake,
        }
    }

    /// Takes an input; returns what is to be done.
    ///
    /// # Panics
    /// If a height is output out of order, with more than [`ENVELOPES_MAX`] envelopes, or without the key of one.
    pub fn step(&mut self, input: UnsealInput) -> Vec<UnsealEffect> {
        let mut effects = match input {
            UnsealInput::Output { height, committees, openings } => self.on_output(height, committees, openings),
            UnsealInput::Frame { from, frame } => self.on_frame(from, frame),
            UnsealInput::Done(result) => self.on_done(result),
            UnsealInput::Applied(height) => self.on_applied(height),
            UnsealInput::Tick => self.on_tick(),
        };
        if !self.is_working
            && let Some(work) = self.work()
        {
            self.is_working = true;
            effects.push(UnsealEffect::Work(work));
        }
        effects
    }

    /// The lowest height that is output here and not open, with the holders whose shares have not come: whom operators
    /// look for when the ledger waits.
    pub fn waits(&self) -> Option<(Height, Vec<Index>)> {
        let (height, closed) = self.heights.iter().find(|(_, closed)| closed.open.is_none())?;
        let mut silent = BTreeSet::new();
        for lot in closed.lots.iter().filter(|lot| lot.open.is_none()) {
            let here = self.shares_of(*height, lot.committee.number());
            let is_silent = |peer: &Index| here.iter().all(|(from, _)| from != peer);
            silent.extend(lot.committee.peers().filter(is_silent));
        }
        Some((*height, silent.into_iter().collect()))
    }

    /// For how many ticks a height has waited since it was output, at most 255.
    pub fn waited(&self, height: Height) -> u64 {
        self.heights.get(&height).map_or(0, |closed| closed.ticks.into())
    }

    /// The lowest height that is not open though its shares and keys were asked for many times. If others have gone on,
    /// they have dropped its block, and with it the keys: what is above it is fetched as a state.
    pub fn lost(&self) -> Option<Height> {
        let is_lost = |closed: &&Closed| closed.open.is_none() && closed.ticks >= LOST_TICKS;
        self.heights.iter().find(|(_, closed)| is_lost(closed)).map(|(height, _)| *height)
    }

    /// Peers have other indices from now on: what they sent, and who is doubted, is worth nothing.
    pub(crate) fn forget_peers(&mut self) {
        self.shares.clear();
        self.keys.clear();
        self.doubted.clear();
        self.answered.clear();
    }

    fn has(&self, mistake: UnsealMistake) -> bool {
        self.mistake.is(mistake)
    }

    fn shares_of(&self, height: Height, key: u64) -> &[(Index, Points)] {
        self.shares.get(&(height, key)).map_or(&[], Vec::as_slice)
    }

    fn on_output(
        &mut self,
        height: Height,
        committees: Vec<Arc<SealCommittee>>,
        openings: Openings,
    ) -> Vec<UnsealEffect> {
        assert_eq!(height, self.output + 1, "heights are output in order");
        assert!(openings.len() <= ENVELOPES_MAX, "a block has few envelopes");
        self.output = height;
        // What peers sent before is judged now that it is known what opens.
        let mut above = self.shares.split_off(&(height, 0));
        let later = above.split_off(&(height + 1, 0));
        self.shares.extend(later);
        let keys = self.keys.remove(&height).unwrap_or_default();
        if openings.is_empty() {
            return Vec::new();
        }
        self.heights.insert(height, Closed::new(&committees, openings));
        for ((_, key), frames) in above {
            frames.into_iter().for_each(|(from, points)| self.take_shares(from, (height, key), points));
        }
        keys.into_iter().for_each(|(from, points)| self.take_keys(from, height, points));
        Vec::new()
    }

    fn on_frame(&mut self, from: Index, frame: UnsealFrame) -> Vec<UnsealEffect> {
        match frame {
            UnsealFrame::Ask(height) => return self.on_ask(from, height).into_iter().collect(),
            UnsealFrame::Shares { height, key, points } => self.take_shares(from, (height, key), points),
            UnsealFrame::Keys { height, points } if self.has(UnsealMistake::KeysUnchecked) => {
                return self.open(height, points);
            }
            UnsealFrame::Keys { height, points } => self.take_keys(from, height, points),
        }
        Vec::new()
    }

    fn on_ask(&mut self, from: Index, height: Height) -> Option<UnsealEffect> {
        if self.answered.get(&from).is_some_and(|answers| *answers >= ASKS) {
            return None;
        }
        let answer = match self.heights.get_mut(&height) {
            None if height <= self.applied => Some(UnsealEffect::Recall { to: from, height }),
            None => None,
            Some(closed) => closed.answer(height).map(|frame| UnsealEffect::Send { to: from, frame }),
        };
        *self.answered.entry(from).or_default() += usize::from(answer.is_some());
        answer
    }

    /// Whether a height may open here, and has not been output.
    fn is_to_come(&self, height: Height) -> bool {
        height > self.output && height - self.output <= AHEAD
    }

    fn take_shares(&mut self, from: Index, lot: Lot, points: Points) {
        let (height, key) = lot;
        let of_peer = |frames: &Vec<(Index, Points)>| frames.iter().any(|(other, _)| *other == from);
        let of_height = self.shares.range((height, 0)..=(height, u64::MAX)).filter(|(_, frames)| of_peer(frames));
        let is_first = self.shares.get(&lot).is_none_or(|frames| !of_peer(frames));
        if !is_first || of_height.count() >= LOTS_MAX {
            return;
        }
        match self.heights.get(&height).map(|closed| closed.lot(key)) {
            None if self.is_to_come(height) => {}
            Some(Some(at)) if at.open.is_none() && at.committee.place(from).is_some() => {
                if points.len() != at.labels.len() {
                    return self.doubt(key, from);
                }
            }
            _ => return,
        }
        self.shares.entry(lot).or_default().push((from, points));
    }

    fn take_keys(&mut self, from: Index, height: Height, points: Points) {
        match self.heights.get(&height) {
            None if self.is_to_come(height) => {}
            Some(closed) if closed.open.is_none() => {
                let is_doubted = closed.lots.iter().any(|lot| self.is_doubted(lot.committee.number(), from));
                if is_doubted || points.len() != closed.openings.len() {
                    return;
                }
            }
            _ => return,
        }
        self.keys.entry(height).or_default().entry(from).or_insert(points);
    }

    fn is_doubted(&self, key: u64, peer: Index) -> bool {
        self.doubted.get(&key).is_some_and(|doubted| doubted.contains(&peer))
    }

    fn doubt(&mut self, key: u64, peer: Index) {
        self.doubted.entry(key).or_default().insert(peer);
    }

    /// The next job: own shares first, since others wait for them; then the lowest height that can be opened.
    fn work(&self) -> Option<UnsealWork> {
        let lots = || self.heights.iter().flat_map(|(height, closed)| closed.lots.iter().map(move |lot| (height, lot)));
        if let Some((height, lot)) = lots().find(|(_, lot)| matches!(lot.own, Own::Due)) {
            let (key, labels) = (lot.committee.number(), lot.labels.clone());
            return Some(UnsealWork::Make { height: *height, key, labels });
        }
        self.heights.iter().filter(|(_, closed)| closed.open.is_none()).find_map(|(height, closed)| {
            if let Some((from, keys)) = self.keys.get(height).and_then(BTreeMap::first_key_value) {
                let lots = closed.lots.iter().map(|lot| (lot.committee.clone(), lot.labels.clone(), lot.of(keys)));
                let (lots, keys) = (lots.collect(), keys.clone());
                return Some(UnsealWork::Check { height: *height, from: *from, lots, keys });
            }
            closed.lots.iter().filter(|lot| lot.open.is_none()).find_map(|lot| {
                let parts = self.parts(*height, closed, lot)?;
                let (committee, labels) = (lot.committee.clone(), lot.labels.clone());
                Some(UnsealWork::Combine { height: *height, committee, labels, parts })
            })
        })
    }

    /// Frames of t holders in the order in which they came. Those of doubted holders come last, and count only where
    /// the others are late.
    fn parts(&self, height: Height, closed: &Closed, lot: &lots::LotAt) -> Option<Vec<(Index, Points)>> {
        let key = lot.committee.number();
        let is_doubted = |from: Index| self.is_doubted(key, from);
        let mut all: Vec<_> = lot.own_part().into_iter().chain(self.shares_of(height, key).iter().cloned()).collect();
        if closed.ticks < LATE_TICKS && !self.has(UnsealMistake::DoubtForgotten) {
            all.retain(|(from, _)| !is_doubted(*from));
        }
        all.sort_by_key(|(from, _)| is_doubted(*from));
        all.truncate(lot.committee.threshold());
        (all.len() == lot.committee.threshold()).then_some(all)
    }

    fn on_done(&mut self, result: UnsealResult) -> Vec<UnsealEffect> {
        self.is_working = false;
        match result {
            UnsealResult::Made { height, key, shares } => self.on_made(height, key, shares),
            UnsealResult::LotOpen { height, key, keys } => self.on_lot_open(height, key, keys),
            UnsealResult::Open { height, keys } => self.open(height, keys),
            UnsealResult::FalseShares { height, key, senders } => self.on_false_shares(height, key, &senders),
            UnsealResult::FalseKeys { height, sender } => self.on_false_keys(height, sender),
        }
    }

    fn on_made(&mut self, height: Height, key: u64, shares: Option<Points>) -> Vec<UnsealEffect> {
        let Some(lot) = self.heights.get_mut(&height).and_then(|closed| closed.lot_mut(key)) else { return Vec::new() };
        lot.own = shares.clone().map_or(Own::None, Own::Made);
        let frame = shares.map(|points| UnsealEffect::SendAll(UnsealFrame::Shares { height, key, points }));
        frame.into_iter().collect()
    }

    fn on_lot_open(&mut self, height: Height, key: u64, keys: Points) -> Vec<UnsealEffect> {
        let Some(closed) = self.heights.get_mut(&height).filter(|closed| closed.open.is_none()) else {
            return Vec::new();
        };
        if let Some(lot) = closed.lot_mut(key) {
            lot.open = Some(keys);
        }
        self.shares.remove(&(height, key));
        let whole = closed.whole();
        whole.map_or_else(Vec::new, |keys| self.open(height, keys))
    }

    fn open(&mut self, height: Height, keys: Points) -> Vec<UnsealEffect> {
        let Some(closed) = self.heights.get_mut(&height).filter(|closed| closed.open.is_none()) else {
            return Vec::new();
        };
        closed.open = Some(keys.clone());
        self.shares.retain(|(of, _), _| *of != height);
        self.keys.remove(&height);
        vec![UnsealEffect::Open { height, keys }]
    }

    /// What these peers sent for a lot is false. A false frame is not looked at again.
    fn on_false_shares(&mut self, height: Height, key: u64, senders: &BTreeSet<Index>) -> Vec<UnsealEffect> {
        senders.iter().for_each(|peer| self.doubt(key, *peer));
        let is_kept = self.has(UnsealMistake::FalseKept);
        if let Some(shares) = self.shares.get_mut(&(height, key)).filter(|_| !is_kept) {
            shares.retain(|(from, _)| !senders.contains(from));
        }
        // The share on this disk is not the one that the ledger knows.
        let lot = self.heights.get_mut(&height).and_then(|closed| closed.lot_mut(key));
        if let Some(lot) = lot.filter(|lot| lot.committee.own().is_some_and(|own| senders.contains(&own))) {
            lot.own = Own::None;
        }
        Vec::new()
    }

    fn on_false_keys(&mut self, height: Height, sender: Index) -> Vec<UnsealEffect> {
        let keys: Vec<u64> = self.heights.get(&height).map_or_else(Vec::new, Closed::keys);
        keys.into_iter().for_each(|key| self.doubt(key, sender));
        if let Some(keys) = self.keys.get_mut(&height) {
            keys.remove(&sender);
        }
        Vec::new()
    }

    fn on_applied(&mut self, height: Height) -> Vec<UnsealEffect> {
        self.applied = self.applied.max(height);
        self.output = self.output.max(height);
        self.heights = self.heights.split_off(&(height + 1));
        self.shares = self.shares.split_off(&(height + 1, 0));
        self.keys = self.keys.split_off(&(height + 1));
        let newest = self.doubted.keys().rev().take(LOTS_MAX).copied().collect::<BTreeSet<u64>>();
        self.doubted.retain(|key, _| newest.contains(key));
        Vec::new()
    }

    fn on_tick(&mut self) -> Vec<UnsealEffect> {
        self.answered.clear();
        let is_late = |closed: &&Closed| closed.open.is_none() && closed.ticks > 0;
        let late = self.heights.iter().filter(|(_, closed)| is_late(closed)).map(|(height, _)| *height);
        let asked: Vec<Height> = late.take(if self.has(UnsealMistake::NeverAsks) { 0 } else { ASKS }).collect();
        self.heights.values_mut().for_each(|closed| closed.ticks = closed.ticks.saturating_add(1));
        asked.into_iter().map(|height| UnsealEffect::SendAll(UnsealFrame::Ask(height))).collect()
    }
}
