//! The shards of one home of the lane: those that run, and those that a passing error keeps from starting.

use std::collections::BTreeMap;
use std::sync::Arc;

use lane::{LaneShard, ShardNews};
use ledger::LaneBridge;
use payments::{HomeEpoch, KeyGeneration, LaneCommittee, LaneRules, Output, OutputId, ViewParts};

/// A shard that cannot start is tried again after 1, 2, 4 … blocks, and at most so many.
const BLOCKS_BETWEEN_TRIES_MAX: u64 = 64;

/// What the shards of a home are started with.
pub(crate) struct Term {
    pub rules: LaneRules,
    pub committee: LaneCommittee,
    pub previous: Option<LaneCommittee>,
    /// Of the committee's group key, if it has one.
    pub generation: Option<KeyGeneration>,
    /// The lane epoch in which they are first started.
    pub now: HomeEpoch,
    /// What the ledger had created with this home by then.
    pub backed: Vec<(OutputId, Output)>,
}

impl Term {
    /// Of a home; `None` if the ledger has forgotten it.
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
    /// What it has not heard. It is told once it runs.
    missed: Vec<ShardNews>,
    /// Blocks until the next try, and between this one and the one after.
    left: u64,
    between: u64,
}

impl LateShard {
    /// It could not start: the next try comes later than the last one came.
    pub fn put_off(&mut self) {
        self.between = (2 * self.between).clamp(1, BLOCKS_BETWEEN_TRIES_MAX);
        self.left = self.between;
    }

    /// It runs: it hears what it missed.
    pub fn catch_up(self, shard: &LaneShard) {
        self.missed.into_iter().for_each(|news| shard.tell(news));
    }
}

/// The shards of one home.
pub(crate) struct Home {
    pub shards: BTreeMap<u16, LaneShard>,
    pub late: BTreeMap<u16, LateShard>,
    /// What the shards say of open cases.
    pub parts: BTreeMap<OutputId, ViewParts>,
}

impl Home {
    /// With so many shards, none of which runs yet.
    pub fn new(term: Term, shards: u16) -> Home {
        let term = Arc::new(term);
        let late = |shard| (shard, LateShard { term: term.clone(), missed: Vec::new(), left: 0, between: 0 });
        Home { shards: BTreeMap::new(), late: (0..shards).map(late).collect(), parts: BTreeMap::new() }
    }

    /// Takes out the shards that are to be tried now.
    pub fn take_due(&mut self) -> BTreeMap<u16, LateShard> {
        let (due, late) = std::mem::take(&mut self.late).into_iter().partition(|(_, late)| late.left == 0);
        self.late = late;
        due
    }

    /// Tells all shards what a certified block says.
    pub fn tell(&mut self, news: &ShardNews) {
        self.shards.values().for_each(|shard| shard.tell(news.clone()));
        self.late.values_mut().for_each(|late| late.missed.push(news.clone()));
    }

    /// A block has passed.
    pub fn pass_block(&mut self) {
        self.late.values_mut().for_each(|late| late.left = late.left.saturating_sub(1));
    }

    /// Shards that clients cannot reach.
    pub fn unreachable(&self) -> usize {
        self.late.len() + self.shards.values().filter(|shard| shard.awaits_address()).count()
    }
}
