//! Decided blocks on their way to the ledger: each waits until it is known what opens in it, and until that is open.
//!
//! # The protocol
//!
//! - Upon *decided(h)*: the block waits behind those before it.
//! - When the blocks before it are known, and the state after h − notice is: find what opens, a job. Without envelopes
//!   that open, the block is ready. Else the [`Unsealer`] opens them.
//! - When a block is ready, and those before it are: it is given out with its keys, to be applied.
//!
//! Names count in the order of heights, so one block is looked at after the other. Finding looks at no account: it
//! overlaps the execution of the blocks before, and so does opening.
//!
//! On a chain without sealing keys nothing waits.

use std::collections::VecDeque;
use std::sync::Arc;

use ledger::OpenedNames;
use primitives::Height;

use super::view::{FindWork, FoundOpenings};
use super::work::{UnsealDone, UnsealJob};
use super::{Points, SealState, SealView, UnsealEffect, UnsealFrame, UnsealInput, Unsealer};
use crate::{Agreed, Network};
use consensus::Index;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum QueueEffect {
    /// Perform a job.
    Job(UnsealJob),
    /// Send a frame to a peer, or to all.
    Send(Option<Index>, UnsealFrame),
    /// Send a peer the keys of a block that is applied here.
    Recall(Index, Height),
    /// Apply the next block.
    Apply(Agreed),
}

/// A decided block that is not given out yet.
#[derive(Debug)]
struct Decided {
    agreed: Agreed,
    is_known: bool,
    keys: Option<Points>,
}

/// The queue; see the module's text.
#[derive(Debug)]
pub(crate) struct UnsealQueue {
    unsealer: Unsealer,
    /// The newest state that is here, and the same with holders as peers of the present network.
    state: Option<SealState>,
    view: Option<Arc<SealView>>,
    /// The names opened below the first block that is not known.
    names: OpenedNames,
    blocks: VecDeque<Decided>,
    is_finding: bool,
}

impl UnsealQueue {
    /// The queue above a state; `state` is `None` on a chain without sealing keys.
    pub(crate) fn new(
        unsealer: Unsealer,
        (state, network): (Option<SealState>, &Network),
        names: &OpenedNames,
    ) -> UnsealQueue {
        let view = state.as_ref().map(|state| Arc::new(state.seen_in(network, None)));
        UnsealQueue { unsealer, state, view, names: names.clone(), blocks: VecDeque::new(), is_finding: false }
    }

    /// The lowest height that waits for shares, and whose have not come; nobody's while it is not known what opens.
    pub(crate) fn waits(&self) -> Option<(Height, Vec<Index>)> {
        let unknown = || self.blocks.front().map(|block| (block.agreed.height, Vec::new()));
        self.unsealer.waits().or_else(unknown)
    }

    /// For how many ticks a height has waited since it was output.
    pub(crate) fn waited(&self, height: Height) -> u64 {
        self.unsealer.waited(height)
    }

    /// Whether nobody seems to have the keys of a height any more, and others have certificates above it.
    pub(crate) fn is_stranded(&self, certified_anywhere: Height) -> bool {
        self.unsealer.lost().is_some_and(|height| height < certified_anywhere)
    }

    /// A block is decided; heights come in order.
    pub(crate) fn decided(&mut self, agreed: Agreed) -> Vec<QueueEffect> {
        // After a restart heights are decided again that are logged with their keys.
        if self.view.as_ref().is_none_or(|view| agreed.height <= view.height) {
            return vec![QueueEffect::Apply(agreed)];
        }
        self.blocks.push_back(Decided { agreed, is_known: false, keys: None });
        self.turn(Vec::new())
    }

    /// The state after a height is here, with what it says about keys.
    pub(crate) fn seen(&mut self, state: SealState, network: &Network) -> Vec<QueueEffect> {
        let view = state.seen_in(network, self.view.as_deref());
        let effects = self.unsealer.step(UnsealInput::Applied(view.height));
        (self.state, self.view) = (Some(state), Some(Arc::new(view)));
        self.turn(effects)
    }

    /// A frame of a peer.
    pub(crate) fn frame(&mut self, from: Index, frame: UnsealFrame) -> Vec<QueueEffect> {
        if self.view.is_none() {
            return Vec::new();
        }
        let effects = self.unsealer.step(UnsealInput::Frame { from, frame });
        self.turn(effects)
    }

    /// An epoch begins, whose network gives peers other indices: what they sent is worth nothing, and holders are found
    /// among them anew. The blocks of the epoch before are applied by then.
    pub(crate) fn begin_epoch(&mut self, network: &Network) {
        self.unsealer.forget_peers();
        self.view = self.state.as_ref().map(|state| Arc::new(state.seen_in(network, None)));
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self) -> Vec<QueueEffect> {
        let effects = self.unsealer.step(UnsealInput::Tick);
        self.turn(effects)
    }

    /// A job is done.
    pub(crate) fn done(&mut self, done: UnsealDone) -> Vec<QueueEffect> {
        let effects = match done {
            UnsealDone::Keys(result) => self.unsealer.step(UnsealInput::Done(result)),
            UnsealDone::Found(found) => self.found(found),
        };
        self.turn(effects)
    }

    fn found(&mut self, found: FoundOpenings) -> Vec<UnsealEffect> {
        self.is_finding = false;
        let FoundOpenings { height, openings, names } = found;
        self.names.note(height, names);
        let view = self.view.as_ref().expect("finding needs it");
        let committees = view.committees(height);
        let block = self.blocks.iter_mut().find(|block| block.agreed.height == height).expect("it is being looked at");
        block.is_known = true;
        block.keys = openings.is_empty().then(Points::default);
        self.unsealer.step(UnsealInput::Output { height, committees, openings })
    }

    /// What the unsealer wants done, and what can begin now.
    fn turn(&mut self, effects: Vec<UnsealEffect>) -> Vec<QueueEffect> {
        let mut all: Vec<QueueEffect> = effects.into_iter().filter_map(|effect| self.effect(effect)).collect();
        all.extend(self.find().map(|work| QueueEffect::Job(UnsealJob::Find(work))));
        while self.blocks.front().is_some_and(|block| block.keys.is_some()) {
            let Decided { mut agreed, keys, .. } = self.blocks.pop_front().expect("it is there");
            agreed.keys = keys.expect("it is ready");
            all.push(QueueEffect::Apply(agreed));
        }
        all
    }

    fn effect(&mut self, effect: UnsealEffect) -> Option<QueueEffect> {
        Some(match effect {
            UnsealEffect::Work(work) => QueueEffect::Job(UnsealJob::Keys(work)),
            UnsealEffect::Send { to, frame } => QueueEffect::Send(Some(to), frame),
            UnsealEffect::SendAll(frame) => QueueEffect::Send(None, frame),
            UnsealEffect::Recall { to, height } => QueueEffect::Recall(to, height),
            UnsealEffect::Open { height, keys } => {
                let block = self.blocks.iter_mut().find(|block| block.agreed.height == height);
                block.expect("it waits for its keys").keys = Some(keys);
                return None;
            }
        })
    }

    /// Looks at the next block, if the state says enough about it.
    fn find(&mut self) -> Option<FindWork> {
        let view = self.view.clone()?;
        let next = self.blocks.iter().find(|block| !block.is_known)?;
        if self.is_finding || !view.reaches(next.agreed.height) {
            return None;
        }
        self.is_finding = true;
        let block = (next.agreed.height, next.agreed.sub_blocks.clone());
        Some(FindWork::new(block, view, self.names.clone()))
    }
}

#[cfg(test)]
mod tests;
