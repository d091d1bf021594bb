//! The shards of one home of the lane: those that run, and those that cannot start because of a passing error.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// The lane epoch in which they are first started.
    pub now: HomeEpoch,
    /// The outputs that the ledger had created with this home by then.
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
}

/// A shard that does not run yet.
pub(crate) struct LateShard {
    pub term: Arc<Term>,
    /// The news that it has missed. It is told once it runs.
    missed: Vec<ShardNews>,
    /// Blocks until the next try, and the delay between that try and the one after.
    left: u64,
    between: u64,
}

impl LateShard {
    /// Records a failed start: the next try comes after a longer delay.
    pub fn defer(&mut self) {
        self.between = (2 * self.between).clamp(1, BLOCKS_BETWEEN_TRIES_MAX);
        self.left = self.between;
    }

    /// Tells the running shard what it has missed.
    pub fn catch_up(self, shard: &LaneShard) {
        self.missed.into_iter().for_each(|news| shard.forward(news));
    }
}

/// The shards of one home.
pub(crate) struct Home {
    pub shards: BTreeMap<u16, LaneShard>,
    pub late: BTreeMap<u16, LateShard>,
    /// The shards' parts of views in open cases.
    pub parts: BTreeMap<OutputId, ViewParts>,
}

impl Home {
    /// A home with this number of shards, none of which runs yet.
    pub fn new(term: Term, shards: u16) -> Home {
        let term = Arc::new(term);
        let late = |shard| (shard, LateShard { term: term.clone(), missed: Vec::new(), left: 0, between: 0 });
        Home { shards: BTreeMap::new(), late: (0..shards).map(late).collect(), parts: BTreeMap::new() }
    }

    /// Takes the shards that are due for another try.
    pub fn remove_due(&mut self) -> BTreeMap<u16, LateShard> {
        let (due, late) = std::mem::take(&mut self.late).into_iter().partition(|(_, late)| late.left == 0);
        self.late = late;
        due
    }

    /// Tells all shards what a certified block says.
    pub fn forward(&mut self, news: &ShardNews) {
        self.shards.values().for_each(|shard| shard.forward(news.clone()));
        self.late.values_mut().for_each(|late| late.missed.push(news.clone()));
    }

    /// Records that a block has passed.
    pub fn pass_block(&mut self) {
        self.late.values_mut().for_each(|late| late.left = late.left.saturating_sub(1));
    }

    /// Number of shards that clients cannot reach.
    pub fn unreachable(&self) -> usize {
        self.late.len() + self.shards.values().filter(|shard| shard.awaits_address()).count()
    }
}
