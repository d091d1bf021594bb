//! The jobs of unsealing: what takes too long for a step, as data.

use std::collections::BTreeSet;
use std::sync::Arc;

use consensus::Index;
use primitives::Height;
use sealing::{Label, SealShare, combine};

use super::view::{FindWork, FoundOpenings};
use super::{Points, SealCommittee};

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsealWork {
    /// Make the own shares of a lot.
    Make {
        /// The height.
        height: Height,
        /// The number of the committee's key.
        key: u64,
        /// The labels.
        labels: Arc<[Label]>,
    },
    /// Make the keys of a lot out of the shares of t holders.
    Combine {
        /// The height.
        height: Height,
        /// The holders.
        committee: Arc<SealCommittee>,
        /// The labels.
        labels: Arc<[Label]>,
        /// Of each sender a share of each key.
        parts: Vec<(Index, Points)>,
    },
    /// Check the keys of a height that somebody sent.
    Check {
        /// The height.
        height: Height,
        /// Who sent them.
        from: Index,
        /// Its lots: holders, labels, and those of the keys that belong to it.
        lots: Vec<(Arc<SealCommittee>, Arc<[Label]>, Points)>,
        /// The keys, in the order of the block.
        keys: Points,
    },
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsealResult {
    /// The own shares of a lot; none if this node lost its share of that key.
    Made {
        /// The height.
        height: Height,
        /// The number of the key.
        key: u64,
        /// A share of each key.
        shares: Option<Points>,
    },
    /// The keys of a lot. They were checked.
    LotOpen {
        /// The height.
        height: Height,
        /// The number of the key.
        key: u64,
        /// The keys.
        keys: Points,
    },
    /// The keys of a height. They were checked.
    Open {
        /// The height.
        height: Height,
        /// The keys, in the order of the block.
        keys: Points,
    },
    /// The shares that these peers sent for a lot are false.
    FalseShares {
        /// The height.
        height: Height,
        /// The number of the key.
        key: u64,
        /// The senders.
        senders: BTreeSet<Index>,
    },
    /// The keys that a peer sent for a height are false.
    FalseKeys {
        /// The height.
        height: Height,
        /// The sender.
        sender: Index,
    },
}

impl UnsealWork {
    /// Performs it. `share` gives the own share of the secret of a key by its number.
    pub fn perform(self, share: impl Fn(u64) -> Option<SealShare>) -> UnsealResult {
        match self {
            UnsealWork::Make { height, key, labels } => {
                let make = |share: SealShare| labels.iter().map(|label| share.of(label)).collect();
                UnsealResult::Made { height, key, shares: share(key).map(make) }
            }
            UnsealWork::Combine { height, committee, labels, parts } => combined(height, &committee, &labels, &parts),
            UnsealWork::Check { height, from, lots, keys } => {
                match lots.iter().all(|(committee, labels, keys)| committee.opens(labels, keys)) {
                    true => UnsealResult::Open { height, keys },
                    false => UnsealResult::FalseKeys { height, sender: from },
                }
            }
        }
    }
}

/// A job of unsealing.
#[derive(Clone, Debug)]
pub enum UnsealJob {
    /// Find what opens in a block.
    Find(FindWork),
    /// Make, combine or check keys.
    Keys(UnsealWork),
}

/// The result of a job of unsealing.
#[derive(Clone, Debug)]
pub enum UnsealDone {
    /// What opens in a block.
    Found(FoundOpenings),
    /// Keys.
    Keys(UnsealResult),
}

/// Combines, and checks the result. Only if that is wrong is each sender's frame checked.
fn combined(height: Height, committee: &SealCommittee, labels: &[Label], parts: &[(Index, Points)]) -> UnsealResult {
    let placed = |(from, points): &(Index, Points)| Some((committee.place(*from)?, points.to_vec()));
    let placed: Option<Vec<_>> = parts.iter().map(placed).collect();
    let key = committee.number();
    match placed.and_then(|placed| combine(&placed)).filter(|keys| committee.opens(labels, keys)) {
        Some(keys) => UnsealResult::LotOpen { height, key, keys: keys.into() },
        None => {
            let is_false = |(from, points): &&(Index, Points)| !committee.are_shares(*from, labels, points);
            let senders: BTreeSet<Index> = parts.iter().filter(is_false).map(|(from, _)| *from).collect();
            // A ledger whose share keys do not make the committee's key names nobody: then all of them are doubted.
            let all = || parts.iter().map(|(from, _)| *from).collect();
            UnsealResult::FalseShares { height, key, senders: if senders.is_empty() { all() } else { senders } }
        }
    }
}
