//! What of the state says which envelopes open.

use std::collections::BTreeMap;
use std::sync::Arc;

use consensus::{Index, Payload};
use ledger::{Ledger, OpenedNames, OpeningRules, SEAL_NOTICE, SealKeyRecord, Seals, envelopes_per_sub_block, opened};
use primitives::{Address, Digest, EnvelopeName, Height, Operation, PublicKey, SubBlock, Superblock, Transaction};
use sealing::SealingKey;

use super::{Openings, SealCommittee};
use crate::Network;

/// What the state after a height says about sealing keys.
#[derive(Clone, Debug)]
pub struct SealState {
    height: Height,
    chain: u64,
    network: Digest,
    per_sub_block: u32,
    keys: Vec<SealKeyRecord>,
    /// The validator's key of each holder.
    validators: BTreeMap<Address, PublicKey>,
}

impl SealState {
    /// What a ledger says; `None` on a chain without sealing keys.
    pub fn of(ledger: &Ledger) -> Option<SealState> {
        let keys = ledger.seals().map(Seals::keys)?;
        let registry = ledger.validators();
        let is_holder = |account: &Address| keys.iter().flat_map(|key| &key.holders).any(|of| of.account == *account);
        let members = registry.registry.iter().map(|one| &one.member).filter(|member| is_holder(&member.account));
        Some(SealState {
            height: ledger.height(),
            chain: ledger.chain(),
            network: ledger.network(),
            per_sub_block: envelopes_per_sub_block(registry.terms.committee),
            keys: keys.to_vec(),
            validators: members.map(|member| (member.account, member.key)).collect(),
        })
    }

    /// The same as a node of a network sees it, which knows holders as peers. Reading the points of all holders costs
    /// more than a small block: those that were seen `before` are taken from there.
    pub(super) fn seen_in(&self, network: &Network, before: Option<&SealView>) -> SealView {
        let index = |key: &PublicKey| network.peers.iter().position(|peer| peer.key == *key).map(|at| at as Index);
        let in_force = |key: &SealKeyRecord| {
            let peer = |one: &ledger::SealHolder| index(self.validators.get(&one.account)?);
            let peers = (network.me, key.holders.iter().map(peer).collect());
            let same = before.and_then(|view| view.keys.iter().find(|one| one.is_of(key, &peers)));
            let committee = same.map_or_else(|| Arc::new(committee_of(key, &peers)), |same| same.committee.clone());
            KeyInForce { record: key.clone(), peers, committee }
        };
        let keys = self.keys.iter().map(in_force).collect();
        let SealState { height, chain, network, per_sub_block, .. } = *self;
        SealView { height, chain, network, per_sub_block, keys }
    }
}

/// What a node knows of the state after a height, to say what opens at later ones.
#[derive(Clone, Debug)]
pub(crate) struct SealView {
    pub height: Height,
    chain: u64,
    network: Digest,
    /// The most envelopes of a sub-block.
    per_sub_block: u32,
    /// The keys in force, and to come.
    keys: Vec<KeyInForce>,
}

/// This node among the peers, and each holder of a key, in the order of its record.
type HolderPeers = (Index, Vec<Option<Index>>);

/// A key, and its holders among the peers.
#[derive(Clone, Debug)]
struct KeyInForce {
    record: SealKeyRecord,
    peers: HolderPeers,
    committee: Arc<SealCommittee>,
}

impl KeyInForce {
    /// Whether it has the points of this key, with the same peers.
    fn is_of(&self, key: &SealKeyRecord, peers: &HolderPeers) -> bool {
        let SealKeyRecord { number, group, holders, .. } = &self.record;
        (*number, group, holders, &self.peers) == (key.number, &key.group, &key.holders, peers)
    }
}

fn committee_of(key: &SealKeyRecord, (me, peers): &HolderPeers) -> SealCommittee {
    let parse = |bytes: &[u8; 96]| SealingKey::parse(bytes).expect("the generation has made a point");
    let known = key.holders.iter().zip(peers).filter_map(|(one, peer)| Some((one, (*peer)?)));
    let holders = known.map(|(one, peer)| (peer, (one.place, parse(&one.key)))).collect();
    SealCommittee::new((key.number, parse(&key.group), usize::from(key.t)), holders, Some(*me))
}

impl SealView {
    /// Whether this state is new enough to say what opens at a height: a key is in the state so long before it acts.
    pub(super) fn reaches(&self, height: Height) -> bool {
        height <= self.height.saturating_add(SEAL_NOTICE)
    }

    /// The keys in force at a height.
    pub(super) fn committees(&self, height: Height) -> Vec<Arc<SealCommittee>> {
        let in_force = self.keys.iter().filter(|key| key.record.is_in_force(height));
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
