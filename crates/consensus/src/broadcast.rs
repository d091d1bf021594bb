//! Reliable broadcast of one proposal, by digest (Bracha 1987; Smart Red Belly, appendix A).
//!
//! *Agreement*: no two correct validators deliver different digests, because two sets of ⌊(n+f)/2⌋+1 echoes share a
//! correct validator, who echoes once. *Totality*: 2f+1 readies at one correct validator mean f+1 readies at all, who
//! repeat them. *Possession*: a correct validator echoes what it holds, so the proposal of a delivered digest is at f+1
//! correct ones.

use std::collections::BTreeMap;

use primitives::Digest;

use crate::committee::{Committee, Index, Members};
use crate::message::{HeightEffect, Record, Vote};

/// One slot's broadcast at one validator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// Valid proposals that are here, signed by the proposer. An equivocating proposer can make this hold two.
    held: Vec<Digest>,
    /// What was echoed here.
    echoed: Option<Digest>,
    /// What this validator is ready for.
    readied: Option<Digest>,
    /// By digest: who echoed it, who is ready for it. A sender counts for the first digest that it names.
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
    /// The digest that was delivered.
    pub fn delivered(&self) -> Option<Digest> {
        self.delivered
    }

    /// Whether the proposal of this digest is here.
    pub fn holds(&self, digest: &Digest) -> bool {
        self.held.contains(digest)
    }

    /// Whether something was echoed here.
    pub fn has_echoed(&self) -> bool {
        self.echoed.is_some()
    }

    /// Whether a validator was heard to echo something.
    pub fn was_echoed_by(&self, validator: Index) -> bool {
        self.senders[Kind::Echo as usize].contains(validator)
    }

    /// Whether 2f+1 validators are ready for one digest: all correct ones will be, and deliver.
    pub(crate) fn is_agreed(&self, committee: &Committee) -> bool {
        self.votes.values().any(|votes| votes[Kind::Ready as usize].len() >= committee.deliver)
    }

    /// A valid proposal is here, signed by its proposer: from itself, or fetched. Only the proposer's own message is
    /// echoed, and only the first.
    pub(crate) fn hold(&mut self, slot: Index, digest: Digest, from_proposer: bool, effects: &mut Vec<HeightEffect>) {
        if !self.holds(&digest) {
            if let Some(other) = self.held.first() {
                effects.push(HeightEffect::Equivocation { slot, digests: [*other, digest] });
            }
            // A third proposal proves nothing new; one that was agreed on is needed all the same.
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

    /// Counts a vote; false if its sender had voted.
    pub(crate) fn count(&mut self, kind: Kind, from: Index, digest: Digest) -> bool {
        let new = self.senders[kind as usize].insert(from);
        if new {
            self.votes.entry(digest).or_default()[kind as usize].insert(from);
        }
        new
    }

    /// Takes back what the log says was sent before a restart.
    pub(crate) fn restore(&mut self, kind: Kind, digest: Digest) {
        match kind {
            Kind::Echo => self.echoed = Some(digest),
            Kind::Ready => self.readied = Some(digest),
        }
    }

    /// Goes as far as the votes allow: becomes ready, fetches, delivers.
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
