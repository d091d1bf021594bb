//! The jobs of unsealing: what takes too long for a step, as data.

use std::collections::BTreeSet;
use std::sync::Arc;

use consensus::Index;
use primitives::Height;
use sealing::{Label, SealShare, combine};

use super::{Committee, Points};

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsealWork {
    /// Make the own shares of a height.
    Make {
        /// The height.
        height: Height,
        /// The number of the committee's key.
        key: u64,
        /// The labels.
        labels: Arc<[Label]>,
    },
    /// Make the keys of a height out of the shares of t holders.
    Combine {
        /// The height.
        height: Height,
        /// The holders.
        committee: Arc<Committee>,
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
        /// The holders.
        committee: Arc<Committee>,
        /// The labels.
        labels: Arc<[Label]>,
        /// The keys.
        keys: Points,
    },
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsealResult {
    /// The own shares of a height; none if this node lost its share of that key.
    Made {
        /// The height.
        height: Height,
        /// A share of each key.
        shares: Option<Points>,
    },
    /// The keys of a height. They were checked.
    Open {
        /// The height.
        height: Height,
        /// The keys.
        keys: Points,
    },
    /// What these peers sent for a height is false.
    False {
        /// The height.
        height: Height,
        /// The senders.
        senders: BTreeSet<Index>,
    },
}

impl UnsealWork {
    /// Performs it. `share` gives the own share of the secret of a key by its number.
    pub fn perform(self, share: impl Fn(u64) -> Option<SealShare>) -> UnsealResult {
        match self {
            UnsealWork::Make { height, key, labels } => {
                let make = |share: SealShare| labels.iter().map(|label| share.of(label)).collect();
                UnsealResult::Made { height, shares: share(key).map(make) }
            }
            UnsealWork::Combine { height, committee, labels, parts } => combined(height, &committee, &labels, &parts),
            UnsealWork::Check { height, from, committee, labels, keys } => match committee.opens(&labels, &keys) {
                true => UnsealResult::Open { height, keys },
                false => UnsealResult::False { height, senders: BTreeSet::from([from]) },
            },
        }
    }
}

/// Combines, and checks the result. Only if that is wrong is each sender's frame checked.
fn combined(height: Height, committee: &Committee, labels: &[Label], parts: &[(Index, Points)]) -> UnsealResult {
    let placed = |(from, points): &(Index, Points)| Some((committee.place(*from)?, points.to_vec()));
    let placed: Option<Vec<_>> = parts.iter().map(placed).collect();
    match placed.and_then(|placed| combine(&placed)).filter(|keys| committee.opens(labels, keys)) {
        Some(keys) => UnsealResult::Open { height, keys: keys.into() },
        None => {
            let is_false = |(from, points): &&(Index, Points)| !committee.are_shares(*from, labels, points);
            let senders: BTreeSet<Index> = parts.iter().filter(is_false).map(|(from, _)| *from).collect();
            // A ledger whose share keys do not make the committee's key names nobody: then all of them are doubted.
            let all = || parts.iter().map(|(from, _)| *from).collect();
            UnsealResult::False { height, senders: if senders.is_empty() { all() } else { senders } }
        }
    }
}
