//! Reliable broadcast of one proposal, by digest (Bracha 1987; Smart Red Belly, appendix A).
//!
//! *Agreement*: no two correct validators deliver different digests, because two sets of ⌊(n+f)/2⌋+1 echoes share a
//! correct validator, which echoes once. *Totality*: 2f+1 readies at one correct validator include f+1 that reach all
//! and are repeated by them. *Possession*: a correct validator echoes only what it holds, so f+1 correct validators
//! hold the proposal of a delivered digest.

use std::collections::BTreeMap;

use primitives::Digest;
use proofs::{Committee, Index};

use crate::members::Members;
use crate::message::{HeightEffect, Record, Vote};

#[cfg(test)]
mod exhaustive;

/// One slot's broadcast at one validator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// Valid proposals held here, signed by the proposer; two if the proposer equivocates.
    held: Vec<Digest>,
    /// The digest echoed here.
    echoed: Option<Digest>,
    /// The digest for which this validator is ready.
    readied: Option<Digest>,
    /// By digest: the validators that echoed it, and those that are ready for it. Only the first digest of a sender
    /// counts.
    votes: BTreeMap<Digest, [Members; 2]>,
    senders: [Members; 2],
    delivered: Option<Digest>,
}

/// The two kinds of votes.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Echo = 0,
    Ready = 1,
}

impl Broadcast {
    /// The delivered digest.
    pub fn delivered(&self) -> Option<Digest> {
        self.delivered
    }

    /// Whether the proposal of this digest is held here.
    pub fn holds(&self, digest: &Digest) -> bool {
        self.held.contains(digest)
    }

    /// Whether this validator has echoed.
    pub fn has_echoed(&self) -> bool {
        self.echoed.is_some()
    }

    /// Whether an echo of a validator was received.
    pub fn was_echoed_by(&self, validator: Index) -> bool {
        self.senders[Kind::Echo as usize].contains(validator)
    }

    /// Whether 2f+1 validators are ready for one digest: then all correct ones will be, and will deliver.
    pub(crate) fn is_agreed(&self, committee: &Committee) -> bool {
        self.votes.values().any(|votes| votes[Kind::Ready as usize].len() >= committee.deliver)
    }

    /// Takes a valid proposal signed by its proposer, either from the proposer itself or fetched. Only the first
    /// proposal from the proposer itself is echoed.
    pub(crate) fn hold(&mut self, slot: Index, digest: Digest, from_proposer: bool, effects: &mut Vec<HeightEffect>) {
        if !self.holds(&digest) {
            if let Some(other) = self.held.first() {
                effects.push(HeightEffect::Equivocation { slot, digests: [*other, digest] });
            }
            // A third proposal is no further evidence; one that was agreed on is needed all the same.
            if self.held.len() < 2 || self.wanted(&digest) {
                self.held.push(digest);
            }
        }
        if from_proposer && self.echoed.is_none() && self.holds(&digest) {
            self.echoed = Some(digest);
            let vote = Vote::Echo { slot, digest };
            effects.extend([HeightEffect::Record(Record::Sent(vote)), HeightEffect::Send(vote)]);
        }
    }

    fn wanted(&self, digest: &Digest) -> bool {
        self.readied == Some(*digest)
    }

    /// Counts a vote; false if its sender had voted already.
    pub(crate) fn count(&mut self, kind: Kind, from: Index, digest: Digest) -> bool {
        let new = self.senders[kind as usize].insert(from);
        if new {
            self.votes.entry(digest).or_default()[kind as usize].insert(from);
        }
        new
    }

    /// Restores a vote that was sent before a restart.
    pub(crate) fn restore(&mut self, kind: Kind, digest: Digest) {
        match kind {
            Kind::Echo => self.echoed = Some(digest),
            Kind::Ready => self.readied = Some(digest),
        }
    }

    /// Advances as far as the votes allow: becomes ready, fetches, delivers.
    pub(crate) fn advance(&mut self, slot: Index, committee: &Committee, effects: &mut Vec<HeightEffect>) {
        if self.readied.is_none() {
            let enough = |votes: &[Members; 2]| {
                votes[Kind::Echo as usize].len() >= committee.echoes
                    || votes[Kind::Ready as usize].len() >= committee.one_correct
            };
            self.readied = self.votes.iter().find(|(_, votes)| enough(votes)).map(|(digest, _)| *digest);
            if let Some(digest) = self.readied {
                let vote = Vote::Ready { slot, digest };
                effects.extend([HeightEffect::Record(Record::Sent(vote)), HeightEffect::Send(vote)]);
            }
        }
        if self.delivered.is_some() {
            return;
        }
        let agreed = |votes: &[Members; 2]| votes[Kind::Ready as usize].len() >= committee.deliver;
        let Some((digest, votes)) = self.votes.iter().find(|(_, votes)| agreed(votes)) else { return };
        if self.held.contains(digest) {
            self.delivered = Some(*digest);
        } else {
            effects.push(HeightEffect::Fetch { slot, digest: *digest, holders: votes[Kind::Echo as usize] });
        }
    }
}
