//! What a shard was told first, durably: a node that tells another history later is refused.

use std::collections::BTreeMap;

use payments::{HomeEpoch, HomeTerms, LOG_EPOCHS};
use primitives::Digest;

const TAG: &[u8; 16] = b"walras-lane-pin\x01";

/// The pins of a shard. Their file is rewritten, and durable, before the shard acts on what it was told.
///
/// ```text
/// pins  "walras-lane-pin\x01" · network 32 · newest epoch 8 · (home 8 · digest of its committee 32) each
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardPins {
    /// The network, and the newest epoch that it was told of; nothing if it was never told anything.
    told: Option<(Digest, HomeEpoch)>,
    homes: BTreeMap<HomeEpoch, Digest>,
}

/// Why terms are not the ones that were pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardPinError {
    /// The terms are of another network.
    #[error("this shard serves network {0}: start it in a home of its own for another network")]
    Network(Digest),
    /// The home was told with another committee.
    #[error(
        "the node tells another history of lane epoch {0} than it did before: find out which node is right; this shard \
         signs nothing in that epoch"
    )]
    Terms(HomeEpoch),
}

impl ShardPins {
    /// Whether a log of this home may be made: no epoch as new was told.
    pub fn may_make_log(&self, home: HomeEpoch) -> bool {
        self.told.is_none_or(|(_, newest)| home > newest)
    }

    /// Pins the terms of a home that is to start; whether that changes the pins.
    ///
    /// # Errors
    /// [`ShardPinError`] if they contradict what was told before.
    pub fn pin(&mut self, now: HomeEpoch, terms: &HomeTerms) -> Result<bool, ShardPinError> {
        let (home, network) = (terms.committee.epoch(), terms.rules.network);
        if let Some((known, _)) = self.told.filter(|(known, _)| *known != network) {
            return Err(ShardPinError::Network(known));
        }
        let digest = terms.committee_digest();
        match self.homes.get(&home) {
            Some(known) if *known != digest => Err(ShardPinError::Terms(home)),
            known => {
                let before = self.clone();
                let is_new = known.is_none();
                self.told.get_or_insert((network, home));
                if is_new {
                    self.homes.insert(home, digest);
                }
                self.note(now.max(home));
                Ok(*self != before)
            }
        }
    }

    /// Notes an epoch that has begun; whether that changes the pins.
    pub fn note(&mut self, epoch: HomeEpoch) -> bool {
        let Some((_, newest)) = self.told.as_mut().filter(|(_, newest)| *newest < epoch) else { return false };
        *newest = epoch;
        // Nothing starts in a home that is so long past, and its log is gone.
        self.homes.retain(|home, _| home + LOG_EPOCHS >= epoch);
        true
    }

    /// Their bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = TAG.to_vec();
        if let Some((network, newest)) = self.told {
            to.extend(network.0);
            to.extend(newest.to_le_bytes());
        }
        for (home, digest) in &self.homes {
            to.extend(home.to_le_bytes());
            to.extend(digest.0);
        }
        to
    }

    /// Parses pins that fill `bytes`.
    pub fn parse(bytes: &[u8]) -> Option<ShardPins> {
        let rest = bytes.strip_prefix(TAG)?;
        let Some((network, rest)) = rest.split_first_chunk::<32>() else {
            return rest.is_empty().then(ShardPins::default);
        };
        let (newest, rest) = rest.split_first_chunk::<8>()?;
        let (homes, rest) = rest.as_chunks::<40>();
        let home = |of: &[u8; 40]| {
            let (home, digest) = of.split_at(8);
            Some((u64::from_le_bytes(home.try_into().ok()?), Digest(digest.try_into().ok()?)))
        };
        let homes = homes.iter().map(home).collect::<Option<Vec<_>>>()?;
        let ascend = homes.is_sorted_by(|(one, _), (next, _)| one < next);
        let told = Some((Digest(*network), u64::from_le_bytes(*newest)));
        (rest.is_empty() && ascend).then(|| ShardPins { told, homes: homes.into_iter().collect() })
    }
}
