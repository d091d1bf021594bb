//! The shards of one home of the lane: those that run, and those that cannot start because of a passing error.

use std::collections::BTreeMap;

use lane::{LaneShard, ShardNews};
use ledger::LaneBridge;
use payments::{HomeEpoch, KeyGeneration, LaneCommittee, LaneRules, Output, OutputId, ViewParts};

/// The maximum delay in blocks before a shard that cannot start is tried again; the delays are 1, 2, 4 … blocks.
const BLOCKS_BETWEEN_TRIES_MAX: u64 = 64;

/// The data with which the shards of a home are started.
pub(crate) struct Term {
    pub rules: LaneRules,
    pub committee: LaneCommittee,
    pub previous: Option<LaneCommittee>,
    /// The committee's group key, if it has one.
    pub generation: Option<KeyGeneration>,
    /// The present lane epoch.
    pub now: HomeEpoch,
    /// The outputs that certified blocks have created with this home.
    pub backed: Vec<(OutputId, Output)>,
}

impl Term {
    /// The term of a home; `None` if the ledger has dropped it.
    pub fn of(lane: &LaneBridge, home: HomeEpoch, now: HomeEpoch, backed: Vec<(OutputId, Output)>) -> Option<Term> {
        let committee = lane.committee(home)?.clone();
        let previous = home.checked_sub(1).and_then(|before| lane.committee(before)).cloned();
        let generation = committee.group().ok().and_then(|_| lane.bridge().generation(home)).cloned();
        Some(Term { rules: lane.rules(), committee, previous, generation, now, backed })
    }

    /// Follows certified blocks, for shards that start later. The host tells these of cases and halts.
    fn update(&mut self, news: &ShardNews) {
        match news {
            ShardNews::Epoch(epoch) => self.now = *epoch,
            ShardNews::Backed(id, output) => self.backed.push((*id, *output)),
            _ => {}
        }
    }
}

/// When a shard that does not run is tried again.
#[derive(Clone, Copy, Default)]
pub(crate) struct NextTry {
    /// Blocks until then.
    left: u64,
    /// Blocks between it and the try before.
    between: u64,
}

impl NextTry {
    /// Records a failed start: the next try comes after a longer delay.
    pub fn defer(&mut self) {
        self.between = (2 * self.between).clamp(1, BLOCKS_BETWEEN_TRIES_MAX);
        self.left = self.between;
    }
}

/// The shards of one home.
pub(crate) struct Home {
    pub shards: BTreeMap<u16, LaneShard>,
    /// The shards that do not run yet.
    pub late: BTreeMap<u16, NextTry>,
    /// With what they are started.
    pub term: Term,
    /// The shards' parts of views in open cases.
    pub parts: BTreeMap<OutputId, ViewParts>,
}

impl Home {
    /// A home with this number of shards, none of which runs yet.
    pub fn new(term: Term, shards: u16) -> Home {
        let late = (0..shards).map(|shard| (shard, NextTry::default())).collect();
        Home { shards: BTreeMap::new(), late, term, parts: BTreeMap::new() }
    }

    /// The shards that are due for another try.
    pub fn due(&self) -> Vec<u16> {
        self.late.iter().filter(|(_, next)| next.left == 0).map(|(shard, _)| *shard).collect()
    }

    /// The other shards are not tried again: they run, or nobody needs them any more.
    pub fn retain_late(&mut self, keep: impl Fn(u16) -> bool) {
        self.late.retain(|shard, _| keep(*shard));
        if self.late.is_empty() {
            self.term.backed = Vec::new();
        }
    }

    /// Tells all shards what a certified block says.
    pub fn forward(&mut self, news: &ShardNews) {
        self.shards.values().for_each(|shard| shard.forward(news.clone()));
        if !self.late.is_empty() {
            self.term.update(news);
        }
    }

    /// Records that a block has passed.
    pub fn pass_block(&mut self) {
        self.late.values_mut().for_each(|next| next.left = next.left.saturating_sub(1));
    }

    /// Number of shards that clients cannot reach.
    pub fn unreachable(&self) -> usize {
        self.late.len() + self.shards.values().filter(|shard| shard.awaits_address()).count()
    }
}
