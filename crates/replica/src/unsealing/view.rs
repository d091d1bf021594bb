//! What of the state says which envelopes open.

use std::sync::Arc;

use consensus::{Index, Payload};
use ledger::{OpenedNames, OpeningRules, opened};
use primitives::{Digest, EnvelopeName, Height, Operation, SubBlock, Superblock, Transaction};

use super::{Committee, Openings};

/// What a node knows of the state after a height, to say what opens at later ones.
#[derive(Clone, Debug)]
pub struct SealView {
    /// The height.
    pub height: Height,
    /// The number of the chain.
    pub chain: u64,
    /// The identity of the network.
    pub network: Digest,
    /// The most envelopes of a sub-block.
    pub per_sub_block: u32,
    /// Heights after which a key acts that the state of a height names first: it is known to all by then.
    pub notice: u64,
    /// The keys in force, and to come.
    pub keys: Vec<KeyInForce>,
}

/// A key with the heights at which it opens.
#[derive(Clone, Debug)]
pub struct KeyInForce {
    /// The first height.
    pub from: Height,
    /// The last height.
    pub last: Height,
    /// Its holders.
    pub committee: Arc<Committee>,
}

impl SealView {
    /// Whether this state is new enough to say what opens at a height.
    pub(super) fn reaches(&self, height: Height) -> bool {
        height <= self.height.saturating_add(self.notice)
    }

    /// The keys in force at a height.
    pub(super) fn committees(&self, height: Height) -> Vec<Arc<Committee>> {
        let in_force = self.keys.iter().filter(|key| (key.from..=key.last).contains(&height));
        in_force.map(|key| key.committee.clone()).collect()
    }
}

/// The job of finding what opens in a decided block.
#[derive(Clone, Debug)]
pub struct FindWork {
    /// The height.
    pub height: Height,
    /// Slots and sub-blocks, in the order of the block.
    pub sub_blocks: Vec<(Index, Payload)>,
    view: Arc<SealView>,
    names: OpenedNames,
}

/// What opens in a decided block.
#[derive(Clone, Debug)]
pub struct FoundOpenings {
    pub(super) height: Height,
    pub(super) openings: Openings,
    pub(super) names: Vec<EnvelopeName>,
}

impl FindWork {
    pub(super) fn new(
        (height, sub_blocks): (Height, Vec<(Index, Payload)>),
        view: Arc<SealView>,
        names: OpenedNames,
    ) -> FindWork {
        FindWork { height, sub_blocks, view, names }
    }

    /// Performs it. `envelopes` gives the envelopes of a sub-block, each with whether its signature is valid
    /// ([`envelopes_of`]).
    pub fn perform(self, mut envelopes: impl FnMut(Index, &[u8]) -> Vec<(Transaction, bool)>) -> FoundOpenings {
        let FindWork { height, sub_blocks, view, names } = self;
        let mut valid = Vec::new();
        let mut light = Vec::with_capacity(sub_blocks.len());
        for (slot, payload) in &sub_blocks {
            let (native, signed): (Vec<_>, Vec<bool>) = envelopes(*slot, payload).into_iter().unzip();
            valid.extend(signed);
            light.push(SubBlock { native, ..SubBlock::default() });
        }
        // Which envelopes open, and in what order, depends on nothing else of the block.
        let block = Superblock { height, sub_blocks: light, ..Superblock::default() };
        let keys: Vec<u64> = view.committees(height).iter().map(|committee| committee.number()).collect();
        let SealView { chain, network, per_sub_block, .. } = *view;
        let rules = OpeningRules { chain, network, keys: &keys, per_sub_block, names: &names };
        let opening = opened(&block, Some(&valid), &rules);
        FoundOpenings {
            height,
            openings: opening.opened.iter().map(|one| (one.key, one.label)).collect(),
            names: opening.opened.iter().map(|one| one.name).collect(),
        }
    }
}

/// The envelopes of a sub-block whose signatures were checked, each with whether its signature is valid.
pub fn envelopes_of(sub_block: &SubBlock) -> Vec<(Transaction, bool)> {
    let is_envelope = |(_, one): &(usize, &Transaction)| matches!(one.body.operation, Operation::Sealed(_));
    let is_valid = |at: usize| sub_block.forged.binary_search(&(at as u32)).is_err();
    sub_block.native.iter().enumerate().filter(is_envelope).map(|(at, one)| (one.clone(), is_valid(at))).collect()
}
