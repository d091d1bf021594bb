//! A height that is undecided, or decided and not yet certified.

use std::collections::BTreeMap;

use primitives::Digest;
use proofs::{Index, Statement};

use crate::binary::Alarm;
use crate::certificate::{Commit, Commits};
use crate::gather::Gathered;
use crate::height::Height;
use crate::members::Members;
use crate::message::{Round, Vote};
use crate::proposal::{Payload, Proposal};
use crate::tendermint::{Instance, Value};

/// How a height is decided.
pub(crate) enum Agreement {
    /// With a slot for every validator.
    Slots(Height),
    /// In rounds with one proposer each.
    Rounds(Box<Instance>),
}

impl Agreement {
    /// The slots, if it has any.
    pub(crate) fn slots(&self) -> Option<&Height> {
        match self {
            Agreement::Slots(height) => Some(height),
            Agreement::Rounds(_) => None,
        }
    }

    /// The decision: slot and digest of each sub-block, by slot.
    pub(crate) fn decision(&self) -> Option<Vec<(Index, Digest)>> {
        match self {
            Agreement::Slots(height) => Some(height.decision()?.sub_blocks.clone()),
            Agreement::Rounds(instance) => instance.decision().map(|value| vec![(value.slot, value.digest)]),
        }
    }

    /// The round of each decided slot, counted from 1.
    pub(crate) fn rounds(&self) -> Vec<(Index, Round)> {
        match self {
            Agreement::Slots(height) => height.rounds(),
            Agreement::Rounds(instance) => instance.decided_in().into_iter().collect(),
        }
    }

    /// Stops: the height is over.
    pub(crate) fn halt(&mut self) {
        match self {
            Agreement::Slots(height) => height.halt(),
            Agreement::Rounds(instance) => instance.halt(),
        }
    }
}

/// A height with its payloads, its commits, and the messages sent about it.
pub(crate) struct Live {
    pub(crate) height: Agreement,
    /// Valid sub-blocks: at most two per slot, and those that were agreed on.
    held: Vec<(Proposal, Payload)>,
    /// Every vote that was sent; votes are sent again to validators that may have missed them.
    pub(crate) sent: Vec<Vote>,
    /// Those that are still to be sent to all.
    pub(crate) gathered: Gathered,
    /// Missing sub-blocks that were agreed on: who echoed them, and who was asked.
    pub(crate) wanted: BTreeMap<(Index, Digest), Wanted>,
    pub(crate) commits: Commits,
    pub(crate) commit: Option<Commit>,
    /// What to commit to, except for the root, once the height was output.
    pub(crate) superblock: Option<Digest>,
    /// Its age in ticks.
    pub(crate) age: u32,
}

/// A sub-block to be fetched.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) holders: Members,
    pub(crate) asked: Members,
    /// Fires when the proposer's own copy is no longer waited for.
    pub(crate) patience: Alarm,
    /// For how many ticks it is late.
    pub(crate) age: u32,
}

impl Live {
    pub(crate) fn new(height: Agreement, gathered: Gathered) -> Live {
        Live {
            height,
            held: Vec::new(),
            sent: Vec::new(),
            gathered,
            wanted: BTreeMap::new(),
            commits: Commits::default(),
            commit: None,
            superblock: None,
            age: 0,
        }
    }

    /// Whether a sub-block was seen.
    pub(crate) fn is_begun(&self) -> bool {
        !self.held.is_empty()
    }

    pub(crate) fn held(&self, slot: Index, digest: &Digest) -> Option<&(Proposal, Payload)> {
        self.held.iter().find(|(proposal, _)| proposal.slot == slot && proposal.digest == *digest)
    }

    /// Whether another sub-block of a slot is useful: the first, a second as evidence, or one that was agreed on.
    pub(crate) fn has_room(&self, slot: Index, digest: &Digest) -> bool {
        self.held.iter().filter(|(proposal, _)| proposal.slot == slot).count() < 2
            || self.wanted.contains_key(&(slot, *digest))
    }

    /// The digest that a vote echoes, if the only sub-block of its slot held here is a different one.
    pub(crate) fn echo_of_another(&self, vote: &Vote) -> Option<(Index, Digest)> {
        let Vote::Echo { slot, digest } = *vote else { return None };
        let mut held = self.held.iter().filter(|(proposal, _)| proposal.slot == slot);
        let first = held.next()?;
        (first.0.digest != digest && held.next().is_none()).then_some((slot, digest))
    }

    /// Stores a valid sub-block; returns another one of its slot, if there is one, which proves that the proposer
    /// signed two.
    pub(crate) fn hold(&mut self, proposal: Proposal, payload: Payload) -> Option<Proposal> {
        self.wanted.remove(&(proposal.slot, proposal.digest));
        if self.held(proposal.slot, &proposal.digest).is_some() {
            return None;
        }
        let first = self.held.iter().map(|(held, _)| *held).find(|held| held.slot == proposal.slot);
        self.held.push((proposal, payload));
        first
    }

    /// Whether a validator is known to hold the sub-block of a slot that is held here.
    pub(crate) fn has_heard(&self, slot: Index, validator: Index) -> bool {
        match &self.height {
            Agreement::Slots(height) => {
                height.broadcast(slot).is_some_and(|broadcast| broadcast.was_echoed_by(validator))
            }
            Agreement::Rounds(instance) => {
                let value = self.proposal_of(slot).map(|(proposal, _)| Value { slot, digest: proposal.digest });
                value.is_some_and(|value| instance.holders(&value).contains(validator))
            }
        }
    }

    /// The proposal of a validator, if it is held here.
    pub(crate) fn proposal_of(&self, slot: Index) -> Option<&(Proposal, Payload)> {
        self.held.iter().find(|(proposal, _)| proposal.slot == slot)
    }

    /// The statement to commit to, once the root is known.
    pub(crate) fn statement(&self, height: u64, root: Digest) -> Option<Statement> {
        Some(Statement { height, superblock: self.superblock?, root })
    }
}
