//! Controls as a place of the state. It holds no units: one trie by asset and holder beside the digest of what issuers
//! control, and chunks by asset and holder. A chain on which all assets are open has no part for them.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, AssetId, Digest, Height, HolderState, RULES_OF_CONTROLS};
use proofs::{ControlledAsset, HolderRecord, RootPart, controls_root, holder_key};
use trie::Trie;

use super::{Controls, HolderId};
use crate::places::shared_map::SharedMap;
use crate::places::unsound::AuditError;
use crate::places::{Audited, ChunkFault, Custody, Moved, ReadChunks, Restored, Turn, bytes_of, in_place, tagged};
use crate::terms::{Genesis, GenesisError};

/// Holders in a full chunk.
const ENTRIES: usize = 4_096;

/// What an issuer says of a holder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HolderEdit {
    pub asset: AssetId,
    pub account: Address,
    pub state: HolderState,
}

/// What a block changed: holders by their keys in the trie, in order, and all controlled assets.
#[derive(Clone, Debug)]
pub(crate) struct ControlsChange {
    rows: Vec<([u8; 24], Option<[u8; 32]>)>,
    assets: Vec<ControlledAsset>,
}

/// The trie of holders, and the controlled assets.
#[derive(Clone, Default)]
pub(crate) struct ControlTries {
    pub holders: Trie<24>,
    assets: Vec<ControlledAsset>,
}

#[derive(BorshSerialize, BorshDeserialize)]
enum ControlsChunk {
    Assets(Vec<ControlledAsset>),
    Holders(Vec<(HolderId, HolderRecord)>),
}

impl HolderEdit {
    /// The holder.
    pub(crate) fn id(&self) -> HolderId {
        (self.asset, self.account)
    }
}

impl Controls {
    fn change(&self, holders: impl Iterator<Item = HolderId>) -> ControlsChange {
        let row = |id: HolderId| (holder_key(id.0, &id.1), self.record(id.0, &id.1).map(HolderRecord::value));
        let mut rows: Vec<_> = holders.map(row).collect();
        rows.sort_unstable();
        rows.dedup();
        ControlsChange { rows, assets: self.assets() }
    }

    /// The fault of a state that was read, if there is one.
    fn fault(&self, assets: usize, height: Height) -> Option<&'static str> {
        let is_record = |((asset, account), record): (&HolderId, &HolderRecord)| {
            let says = !record.is_open || self.control(*asset).admits();
            self.controlled(*asset, account).is_some() && says && record.since <= height
        };
        Some(match () {
            _ if self.control(AssetId(0)).freezes() => "the first asset is controlled",
            _ if self.assets.len() > assets => "an unknown asset is controlled",
            _ if !self.holders.iter().all(is_record) => "a record of a holder cannot be",
            _ => return None,
        })
    }
}

/// The fault of what a genesis says of controls.
fn genesis_fault(genesis: &Genesis) -> Option<&'static str> {
    let in_lane = |asset: AssetId| genesis.lane.as_ref().is_some_and(|lane| lane.asset(asset).is_some());
    let controls = &genesis.controls;
    Some(match () {
        _ if controls.is_empty() => return None,
        _ if genesis.rules < RULES_OF_CONTROLS => "the chain begins with rules that have none: leave them out",
        _ if !controls.is_sorted_by(|a, b| a.0 < b.0) => "name each asset once, by rising number",
        _ if controls.iter().any(|(asset, control)| asset.0 == 0 || !control.freezes()) => {
            "the first asset is open, and so are those that are not named"
        }
        _ if controls.iter().any(|(asset, _)| asset.0 as usize >= genesis.assets.len()) => "an asset is not listed",
        _ if controls.iter().any(|(asset, _)| in_lane(*asset)) => {
            "an asset of the payment lane cannot be frozen there: leave it out of the lane, or open"
        }
        _ => return None,
    })
}

impl Custody for Arc<Controls> {
    const TAG: u8 = RootPart::CONTROLS;
    const NAME: &'static str = "controls";
    type Edit<'a> = HolderEdit;
    type Change = Option<ControlsChange>;
    type Tries = ControlTries;
    type Reader = ControlsReader;

    fn found(genesis: &Genesis, _: Digest) -> Self {
        let mut controls = Controls::default();
        for (asset, control) in &genesis.controls {
            controls.add(*asset, *control, genesis.assets[asset.0 as usize].issuer);
        }
        Arc::new(controls)
    }

    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        (!genesis.controls.is_empty()).then(|| bytes_of(&genesis.controls))
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        genesis_fault(genesis).map(GenesisError::Controls)
    }

    fn apply(&mut self, turn: &mut Turn<'_>, edits: &[(Address, HolderEdit)]) -> Moved<Self::Change> {
        if edits.is_empty() && turn.controlled.is_empty() {
            return Moved::default();
        }
        let controls = Arc::make_mut(self);
        let height = turn.block.height;
        let mut changed: Vec<HolderId> = Vec::with_capacity(edits.len());
        for (_, edit) in edits {
            if controls.set_holder(*edit, height) {
                changed.push(edit.id());
            }
        }
        for (asset, control, issuer) in turn.controlled.drain(..) {
            controls.add(asset, control, issuer);
        }
        Moved { change: Some(controls.change(changed.into_iter())), ..Moved::default() }
    }

    fn whole(&self) -> Self::Change {
        (!self.is_empty()).then(|| self.change(self.holders.iter().map(|(id, _)| *id)))
    }

    fn follow(tries: &mut ControlTries, change: &Self::Change) {
        if let Some(change) = change {
            tries.holders.apply(&change.rows);
            tries.assets.clone_from(&change.assets);
        }
    }

    fn part(tries: &mut ControlTries) -> Option<Digest> {
        (!tries.assets.is_empty()).then(|| controls_root(&Digest(tries.holders.root().0), &tries.assets))
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        let head = (!self.is_empty()).then(|| tagged(Self::TAG, &ControlsChunk::Assets(self.assets())));
        let holders: Vec<_> = self.holders.iter().map(|(id, record)| (*id, *record)).collect();
        let parts = holders.chunks(ENTRIES).map(|part| tagged(Self::TAG, &ControlsChunk::Holders(part.to_vec())));
        Box::new(head.into_iter().chain(parts.collect::<Vec<_>>()))
    }

    fn entries(&self) -> u64 {
        (self.assets().len() + self.holders.len()) as u64
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let fault = self.fault(audited.assets.len(), audited.height);
        let issuers = self.assets.iter().zip(audited.assets);
        let is_issuers = issuers.into_iter().all(|(one, asset)| !one.control.freezes() || one.issuer == asset.issuer);
        match fault {
            Some(why) => Err(AuditError::Controls(why)),
            None if !is_issuers => Err(AuditError::Controls("another account issues a controlled asset")),
            None => Ok(audited.zero()),
        }
    }
}

/// Reads the controlled assets, and then holders in the order in which a snapshot has them.
#[derive(Default)]
pub(crate) struct ControlsReader {
    assets: Vec<ControlledAsset>,
    holders: SharedMap<HolderId, HolderRecord>,
    /// The last holder, and the number of entries of its chunk.
    last: Option<(HolderId, usize)>,
}

impl ReadChunks<Arc<Controls>> for ControlsReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        match borsh::from_slice(bytes)? {
            ControlsChunk::Assets(list) => {
                let is_list = list.is_sorted_by(|a, b| a.0 < b.0) && list.iter().all(|(_, control)| control.freezes());
                in_place(self.assets.is_empty() && self.last.is_none() && !list.is_empty() && is_list)?;
                self.assets = list;
            }
            ControlsChunk::Holders(list) => {
                let follows = |first: &(HolderId, HolderRecord)| {
                    self.last.is_none_or(|(last, entries)| last < first.0 && entries == ENTRIES)
                };
                let is_next = list.first().is_some_and(follows) && list.len() <= ENTRIES;
                in_place(!self.assets.is_empty() && is_next && list.is_sorted_by(|a, b| a.0 < b.0))?;
                self.last = list.last().map(|last| (last.0, list.len()));
                for (id, record) in list {
                    self.holders.insert(id, record);
                }
            }
        }
        Ok(())
    }

    fn entries(&self) -> u64 {
        (self.assets.len() + self.holders.len()) as u64
    }

    fn finish(self, chain: &Restored) -> Result<Arc<Controls>, AuditError> {
        let mut controls = Controls { assets: Vec::new(), holders: self.holders };
        for (asset, control) in self.assets {
            let unknown = AuditError::Controls("an unknown asset is controlled");
            let issuer = chain.issuers.get(asset.0 as usize).ok_or(unknown)?;
            controls.add(asset, control, *issuer);
        }
        Ok(Arc::new(controls))
    }
}
