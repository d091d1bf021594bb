//! Unsealing: how the seats of a committee open the envelopes of a block that is decided.
//!
//! # The protocol
//!
//! An [`Unsealer`] is told which envelopes of a height open, as labels in the order of the block, and under which key
//! of the committee ([`Committee`]). Whoever tells it has applied the height whose state names that key. t holders
//! together make the opening keys; each holder has a share of the committee's secret.
//!
//! - Upon *output(h)*: every height up to h is decided here, its payloads are held, its votes are durable. A holder
//!   makes its shares for the envelopes of h, a job, and sends them to all peers in one frame. Heights come in order.
//! - Upon *a frame of shares for h*: the first one of each holder counts. It is kept for heights that are output and
//!   not applied here, and for at most [`AHEAD`] heights beyond.
//! - When t frames of h are there: combine the first t of them, a job. It checks all keys of the block by one pairing.
//!   If they are right, h is open. If not, each of the frames is checked by itself under its holder's key: false ones
//!   are dropped, and their senders are *doubted*. While this key lives, frames of doubted holders come last, and count
//!   only for heights that are not open two ticks after their output.
//! - Upon *a frame of keys for h*, from anybody: they are checked as a whole, a job. If they are right, h is open. If
//!   not, their sender is doubted, and its keys are looked at no more.
//! - Upon *a tick*: ask all peers for the heights that were output before the last tick and are not open, the lowest
//!   [`ASKS`] of them.
//! - Upon *being asked for h*: whoever has opened h answers with its keys, and a holder that has output h with its
//!   shares. Of heights that are applied the block's record has the keys: answering is the shell's, by
//!   [`UnsealEffect::Recall`]. A peer gets [`ASKS`] answers a tick.
//! - Upon *applied(h)*: forget all heights up to h.
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
//! - *Bounded*: a peer has at most [`AHEAD`] frames here beside those of heights that are output, each of at most
//!   [`ENVELOPES_MAX`] points. At most one job is out.
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
//! | a frame for a height far ahead, or for each of many | at most [`AHEAD`] beyond the output one, one a holder |
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
mod mistake;
#[cfg(test)]
mod tests;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use consensus::Index;
use kernel::Planted;
use primitives::Height;
use sealing::Label;

pub use committee::Committee;
pub use frame::{ENVELOPES_MAX, Points, UnsealFrame, UnsealFrameError};
pub use mistake::UnsealMistake;
pub use work::{UnsealResult, UnsealWork};

/// Heights beyond the output one for which frames are kept: a peer may be ahead by the window of heights in parallel.
pub const AHEAD: u64 = 8;
/// Heights that a node asks for, and answers of a peer, in a tick.
pub const ASKS: usize = 16;
/// Ticks after which shares of doubted holders are combined too.
const LATE_TICKS: u8 = 2;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum UnsealInput {
    /// A height with envelopes that open is output here.
    Output {
        /// The height.
        height: Height,
        /// The key that its envelopes are sealed to.
        committee: Arc<Committee>,
        /// Their labels, in the order of the block: 1 to [`ENVELOPES_MAX`].
        labels: Arc<[Label]>,
    },
    /// A height without such envelopes is output here.
    Plain(Height),
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

/// A height that is output, and has envelopes that open.
#[derive(Clone, Debug)]
struct Closed {
    committee: Arc<Committee>,
    labels: Arc<[Label]>,
    own: Own,
    open: Option<Points>,
    /// Ticks since it was output.
    ticks: u8,
}

/// How far the own shares of a height are.
#[derive(Clone, Debug)]
enum Own {
    /// This seat holds no share of that key, or its shares could not be made.
    None,
    Due,
    Made(Points),
}

/// The state machine; see the module's text.
#[derive(Clone, Debug)]
pub struct Unsealer {
    /// The last height that was output here.
    output: Height,
    applied: Height,
    heights: BTreeMap<Height, Closed>,
    /// Shares that peers sent, the first frame of each: not known to be false.
    shares: BTreeMap<Height, Vec<(Index, Points)>>,
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
    /// If a height is output out of order, or with no envelope or more than [`ENVELOPES_MAX`].
    pub fn step(&mut self, input: UnsealInput) -> Vec<UnsealEffect> {
        let mut effects = match input {
            UnsealInput::Output { height, committee, labels } => self.on_output(height, committee, labels),
            UnsealInput::Plain(height) => self.advance(height),
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
        let (height, closed) = self.first_closed()?;
        let here: BTreeSet<Index> = self.shares_of(height).iter().map(|(from, _)| *from).collect();
        Some((height, closed.committee.peers().filter(|peer| !here.contains(peer)).collect()))
    }

    fn has(&self, mistake: UnsealMistake) -> bool {
        self.mistake.is(mistake)
    }

    fn shares_of(&self, height: Height) -> &[(Index, Points)] {
        self.shares.get(&height).map_or(&[], Vec::as_slice)
    }

    fn first_closed(&self) -> Option<(Height, &Closed)> {
        let (height, closed) = self.heights.iter().find(|(_, closed)| closed.open.is_none())?;
        Some((*height, closed))
    }

    fn advance(&mut self, height: Height) -> Vec<UnsealEffect> {
        assert_eq!(height, self.output + 1, "heights are output in order");
        self.output = height;
        // A holder whose state named no envelopes, and peers that sent shares: what they sent is worth nothing.
        self.shares.remove(&height);
        self.keys.remove(&height);
        Vec::new()
    }

    fn on_output(&mut self, height: Height, committee: Arc<Committee>, labels: Arc<[Label]>) -> Vec<UnsealEffect> {
        assert_eq!(height, self.output + 1, "heights are output in order");
        assert!((1..=ENVELOPES_MAX).contains(&labels.len()), "a height with envelopes");
        self.output = height;
        let early = self.shares.remove(&height).unwrap_or_default();
        let early_keys = self.keys.remove(&height).unwrap_or_default();
        let own = if committee.is_holder() { Own::Due } else { Own::None };
        self.heights.insert(height, Closed { committee, labels, own, open: None, ticks: 0 });
        early.into_iter().for_each(|(from, points)| self.take_shares(from, height, points));
        early_keys.into_iter().for_each(|(from, points)| self.take_keys(from, height, points));
        Vec::new()
    }

    fn on_frame(&mut self, from: Index, frame: UnsealFrame) -> Vec<UnsealEffect> {
        match frame {
            UnsealFrame::Ask(height) => return self.on_ask(from, height).into_iter().collect(),
            UnsealFrame::Shares { height, points } => self.take_shares(from, height, points),
            UnsealFrame::Keys { height, points } if self.has(UnsealMistake::KeysUnchecked) => {
                return self.on_open(height, points);
            }
            UnsealFrame::Keys { height, points } => self.take_keys(from, height, points),
        }
        Vec::new()
    }

    fn on_ask(&mut self, from: Index, height: Height) -> Option<UnsealEffect> {
        if self.answered.get(&from).is_some_and(|answers| *answers >= ASKS) {
            return None;
        }
        let answer = match self.heights.get(&height) {
            None if height <= self.applied => Some(UnsealEffect::Recall { to: from, height }),
            None => None,
            Some(closed) => closed.answer(height).map(|frame| UnsealEffect::Send { to: from, frame }),
        };
        *self.answered.entry(from).or_default() += usize::from(answer.is_some());
        answer
    }

    /// Whether what a peer says about this height is worth keeping: it may open here, and is not open.
    fn is_wanted(&self, height: Height) -> bool {
        let is_closed = || self.heights.get(&height).is_some_and(|closed| closed.open.is_none());
        let is_to_come = height > self.output && height - self.output <= AHEAD;
        height > self.applied && (is_to_come || is_closed())
    }

    fn take_shares(&mut self, from: Index, height: Height, points: Points) {
        let is_first = self.shares_of(height).iter().all(|(other, _)| *other != from);
        if !self.is_wanted(height) || !is_first {
            return;
        }
        if let Some(closed) = self.heights.get(&height) {
            if closed.committee.place(from).is_none() {
                return;
            }
            if points.len() != closed.labels.len() {
                return self.doubt(height, from);
            }
        }
        self.shares.entry(height).or_default().push((from, points));
    }

    fn take_keys(&mut self, from: Index, height: Height, points: Points) {
        if !self.is_wanted(height) {
            return;
        }
        if let Some(closed) = self.heights.get(&height) {
            let is_doubted = self.is_doubted(closed.committee.number(), from);
            if is_doubted || points.len() != closed.labels.len() {
                return self.doubt(height, from);
            }
        }
        self.keys.entry(height).or_default().entry(from).or_insert(points);
    }

    fn is_doubted(&self, key: u64, peer: Index) -> bool {
        self.doubted.get(&key).is_some_and(|doubted| doubted.contains(&peer))
    }

    fn doubt(&mut self, height: Height, peer: Index) {
        if let Some(closed) = self.heights.get(&height) {
            self.doubted.entry(closed.committee.number()).or_default().insert(peer);
        }
    }

    /// The next job: own shares first, since others wait for them; then the lowest height that can be opened.
    fn work(&self) -> Option<UnsealWork> {
        let due = self.heights.iter().find(|(_, closed)| matches!(closed.own, Own::Due));
        if let Some((height, closed)) = due {
            return Some(UnsealWork::Make {
                height: *height,
                key: closed.committee.number(),
                labels: closed.labels.clone(),
            });
        }
        self.heights.iter().filter(|(_, closed)| closed.open.is_none()).find_map(|(height, closed)| {
            let (committee, labels) = (closed.committee.clone(), closed.labels.clone());
            if let Some((from, keys)) = self.keys.get(height).and_then(BTreeMap::first_key_value) {
                return Some(UnsealWork::Check { height: *height, from: *from, committee, labels, keys: keys.clone() });
            }
            let parts = self.parts(*height, closed)?;
            Some(UnsealWork::Combine { height: *height, committee, labels, parts })
        })
    }

    /// Frames of t holders in the order in which they came. Those of doubted holders come last, and count only where
    /// the others are late.
    fn parts(&self, height: Height, closed: &Closed) -> Option<Vec<(Index, Points)>> {
        let own = match &closed.own {
            Own::Made(points) => closed.committee.own().map(|me| (me, points.clone())),
            Own::None | Own::Due => None,
        };
        let others = self.shares_of(height).iter().cloned();
        let mut all: Vec<_> = own.into_iter().chain(others).collect();
        let is_doubted = |from: Index| self.is_doubted(closed.committee.number(), from);
        if closed.ticks < LATE_TICKS && !self.has(UnsealMistake::DoubtForgotten) {
            all.retain(|(from, _)| !is_doubted(*from));
        }
        all.sort_by_key(|(from, _)| is_doubted(*from));
        all.truncate(closed.committee.threshold());
        (all.len() == closed.committee.threshold()).then_some(all)
    }

    fn on_done(&mut self, result: UnsealResult) -> Vec<UnsealEffect> {
        self.is_working = false;
        match result {
            UnsealResult::Made { height, shares } => self.on_made(height, shares),
            UnsealResult::Open { height, keys } => self.on_open(height, keys),
            UnsealResult::False { height, senders } => self.on_false(height, &senders),
        }
    }

    fn on_made(&mut self, height: Height, shares: Option<Points>) -> Vec<UnsealEffect> {
        let Some(closed) = self.heights.get_mut(&height) else { return Vec::new() };
        closed.own = shares.clone().map_or(Own::None, Own::Made);
        let frame = shares.map(|points| UnsealEffect::SendAll(UnsealFrame::Shares { height, points }));
        frame.into_iter().collect()
    }

    fn on_open(&mut self, height: Height, keys: Points) -> Vec<UnsealEffect> {
        let Some(closed) = self.heights.get_mut(&height) else { return Vec::new() };
        closed.open = Some(keys.clone());
        self.shares.remove(&height);
        self.keys.remove(&height);
        vec![UnsealEffect::Open { height, keys }]
    }

    /// What these peers sent for this height is false. A false frame is not looked at again.
    fn on_false(&mut self, height: Height, senders: &BTreeSet<Index>) -> Vec<UnsealEffect> {
        for peer in senders {
            self.doubt(height, *peer);
            let is_kept = self.has(UnsealMistake::FalseKept);
            if let Some(shares) = self.shares.get_mut(&height).filter(|_| !is_kept) {
                shares.retain(|(from, _)| from != peer);
            }
            if let Some(keys) = self.keys.get_mut(&height) {
                keys.remove(peer);
            }
            // The share on this disk is not the one that the ledger knows.
            if let Some(closed) = self.heights.get_mut(&height).filter(|closed| closed.committee.own() == Some(*peer)) {
                closed.own = Own::None;
            }
        }
        Vec::new()
    }

    fn on_applied(&mut self, height: Height) -> Vec<UnsealEffect> {
        self.applied = self.applied.max(height);
        self.output = self.output.max(height);
        self.heights = self.heights.split_off(&(height + 1));
        self.shares = self.shares.split_off(&(height + 1));
        self.keys = self.keys.split_off(&(height + 1));
        let live: BTreeSet<u64> = self.heights.values().map(|closed| closed.committee.number()).collect();
        let newest = self.doubted.keys().next_back().copied();
        self.doubted.retain(|key, _| live.contains(key) || Some(*key) == newest);
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

impl Closed {
    /// What is told to who asks for this height.
    fn answer(&self, height: Height) -> Option<UnsealFrame> {
        match (&self.open, &self.own) {
            (Some(keys), _) => Some(UnsealFrame::Keys { height, points: keys.clone() }),
            (None, Own::Made(shares)) => Some(UnsealFrame::Shares { height, points: shares.clone() }),
            (None, Own::None | Own::Due) => None,
        }
    }
}
