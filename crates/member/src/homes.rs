//! The shards of one home: those that run, and those that could not be started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use payments::{LaneFact, OutputId, PaymentBody, ViewParts};
use primitives::Digest;

use crate::ShardTerm;

/// The maximum delay in blocks before a shard that cannot start is tried again; the delays are 1, 2, 4 … blocks.
const BLOCKS_BETWEEN_TRIES_MAX: u64 = 64;

/// When a shard that does not run is tried again.
#[derive(Clone, Copy, Default)]
struct NextTry {
    /// Blocks until then.
    left: u64,
    /// Blocks between it and the try before.
    between: u64,
}

impl NextTry {
    /// After a failed start the next try comes later.
    fn defer(&mut self) {
        self.between = (2 * self.between).clamp(1, BLOCKS_BETWEEN_TRIES_MAX);
        self.left = self.between;
    }
}

/// The shards of one home.
pub(crate) struct HomeShards {
    /// Their number in this home.
    pub shards: u16,
    pub running: BTreeSet<u16>,
    /// The shards that do not run yet, and those of them that are being started.
    late: BTreeMap<u16, NextTry>,
    starting: BTreeSet<u16>,
    /// With what they are started.
    pub term: ShardTerm,
    /// Payments that shards bar and that the ledger has not confirmed, as far as a block has said what they are.
    pub barred: BTreeMap<Digest, Option<Arc<PaymentBody>>>,
    /// The shards' parts of views in open cases.
    pub parts: BTreeMap<OutputId, ViewParts>,
    /// Whether the term is kept up to date although all shards run: one may start again at any time.
    pub keeps_term: bool,
}

impl HomeShards {
    /// A home with this number of shards, none of which runs yet.
    pub fn new(term: ShardTerm, shards: u16) -> HomeShards {
        let late = (0..shards).map(|shard| (shard, NextTry::default())).collect();
        HomeShards {
            shards,
            running: BTreeSet::new(),
            late,
            starting: BTreeSet::new(),
            term,
            barred: BTreeMap::new(),
            parts: BTreeMap::new(),
            keeps_term: false,
        }
    }

    /// The shards that are due for a try, and not away. They are being started from now on.
    pub fn begin_due(&mut self, away: &BTreeSet<u16>) -> Vec<u16> {
        let is_there = |shard: &u16| !self.starting.contains(shard) && !away.contains(shard);
        let due = self.late.iter().filter(|(shard, next)| next.left == 0 && is_there(shard));
        let due: Vec<u16> = due.map(|(shard, _)| *shard).collect();
        self.starting.extend(&due);
        due
    }

    /// Whether a shard is being started.
    pub fn is_starting(&self) -> bool {
        !self.starting.is_empty()
    }

    /// A block has passed.
    pub fn pass_block(&mut self) {
        self.late.values_mut().for_each(|next| next.left = next.left.saturating_sub(1));
    }

    /// The shard runs.
    pub fn run(&mut self, shard: u16) {
        self.running.insert(shard);
        self.give_up(shard);
    }

    /// The shard is not tried again.
    fn give_up(&mut self, shard: u16) {
        self.late.remove(&shard);
        self.starting.remove(&shard);
        if self.late.is_empty() && !self.keeps_term {
            (self.term.backed, self.term.proven) = (Vec::new(), Vec::new());
        }
    }

    /// The shard signs nothing in this home.
    pub fn mute(&mut self, shard: u16) {
        self.running.remove(&shard);
        self.give_up(shard);
    }

    /// The logs of shards that have started bar these payments. What the payments are was said in earlier blocks.
    pub fn note_barred(&mut self, barred: &BTreeSet<Digest>) {
        for payment in barred {
            self.barred.entry(*payment).or_default();
        }
    }

    /// The shard has forgotten what it was told: it starts when it is back.
    pub fn leave(&mut self, shard: u16) {
        self.starting.remove(&shard);
        self.running.remove(&shard);
        self.late.insert(shard, NextTry::default());
    }

    /// The shard could not be started.
    pub fn defer(&mut self, shard: u16) {
        self.starting.remove(&shard);
        self.running.remove(&shard);
        self.late.entry(shard).or_default().defer();
    }

    /// Shards that start later know of a fact by then.
    pub fn follow(&mut self, fact: &LaneFact) {
        if !self.late.is_empty() || self.keeps_term {
            self.term.follow(fact);
        }
    }

    /// Number of shards that wait for another try.
    pub fn late(&self) -> usize {
        self.late.len()
    }
}
