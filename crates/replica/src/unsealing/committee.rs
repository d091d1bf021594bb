//! The holders of a committee's secret, as one seat sees them.

use std::collections::BTreeMap;

use consensus::Index;
use sealing::{Label, OpeningKey, SealingKey, check_keys};

/// A key that envelopes are sealed to, and who holds shares of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealCommittee {
    number: u64,
    key: SealingKey,
    threshold: usize,
    /// Of each peer that holds a share: the place of the share, and the key that it signs under.
    holders: BTreeMap<Index, (u8, SealingKey)>,
    /// The own index, if this seat has its share.
    own: Option<Index>,
}

impl SealCommittee {
    /// A key with its number, of which `threshold` shares make the secret. `own` is the index of this seat, if it has
    /// the share that it holds.
    pub fn new(
        (number, key, threshold): (u64, SealingKey, usize),
        holders: BTreeMap<Index, (u8, SealingKey)>,
        own: Option<Index>,
    ) -> SealCommittee {
        SealCommittee { number, key, threshold, own: own.filter(|own| holders.contains_key(own)), holders }
    }

    /// The number of the key.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many shares make the secret.
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// The peers that hold a share, without this seat.
    pub fn peers(&self) -> impl Iterator<Item = Index> + '_ {
        self.holders.keys().copied().filter(|peer| Some(*peer) != self.own)
    }

    /// Whether this seat has a share.
    pub fn is_holder(&self) -> bool {
        self.own.is_some()
    }

    /// The own index, if this seat has a share.
    pub fn own(&self) -> Option<Index> {
        self.own
    }

    /// The place of a peer's share.
    pub fn place(&self, peer: Index) -> Option<u8> {
        self.holders.get(&peer).map(|(place, _)| *place)
    }

    /// Whether keys open the envelopes of their labels.
    pub(super) fn opens(&self, labels: &[Label], keys: &[OpeningKey]) -> bool {
        are_of(&self.key, labels, keys)
    }

    /// Whether these are the shares of a peer.
    pub(super) fn are_shares(&self, peer: Index, labels: &[Label], shares: &[OpeningKey]) -> bool {
        self.holders.get(&peer).is_some_and(|(_, key)| are_of(key, labels, shares))
    }
}

fn are_of(key: &SealingKey, labels: &[Label], keys: &[OpeningKey]) -> bool {
    let pairs: Vec<(Label, OpeningKey)> = labels.iter().copied().zip(keys.iter().copied()).collect();
    labels.len() == keys.len() && check_keys(key, &pairs)
}
