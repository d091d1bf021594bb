//! Escrow as a place of custody: a trie of entries beside the digest of the rest, and the state in pieces.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use payments::BridgeEntry;
use primitives::{Address, Amount, AssetId, Digest};
use proofs::{Refusal, RootPart, bridge_root};
use trie::Trie;

use super::{BridgeChange, BridgeEdit, Crossing, LaneAssets, LaneBridge, LaneRecord};
use crate::places::unsound::AuditError;
use crate::places::{
    Audited, ChunkFault, Custody, Moved, ReadChunks, Restored, Rules, Turn, bytes_of, in_place, tagged,
};
use crate::terms::{Genesis, GenesisError};

/// Bytes of a full piece of the state.
const PIECE: usize = 1 << 20;

/// The trie of entries, and the digest of the rest.
#[derive(Clone, Default)]
pub(crate) struct BridgeTries {
    pub entries: Trie<{ BridgeEntry::KEY }>,
    /// `None` on a chain without a payment lane.
    pub rest: Option<Digest>,
}

#[derive(BorshSerialize, BorshDeserialize)]
enum BridgeChunk {
    Record(Box<LaneRecord>),
    /// A piece of the encoding of the bridge's state.
    State(Vec<u8>),
    /// The terms of assets, if a vote has changed them: behind the record.
    Assets(LaneAssets),
}

impl Custody for Option<Arc<LaneBridge>> {
    const TAG: u8 = RootPart::ESCROW;
    const NAME: &'static str = "escrow";
    type Edit<'a> = BridgeEdit<'a>;
    type Change = Option<BridgeChange>;
    type Tries = BridgeTries;
    type Reader = BridgeReader;

    fn found(genesis: &Genesis, last_block: Digest) -> Self {
        let network = genesis.network(last_block);
        genesis.lane.as_ref().map(|terms| Arc::new(LaneBridge::found(terms, network)))
    }

    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        genesis.lane.as_ref().map(bytes_of)
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        let lane = genesis.lane.as_ref()?;
        let founders = || genesis.membership.iter().flat_map(|all| &all.founders);
        let staked = |account: &Address| founders().any(|founder| founder.account == *account);
        let unstaked = || lane.accounts.iter().any(|account| !staked(account));
        let without = "accounts: one is not a founder's, so it has no stake to slash";
        lane.fault(genesis.assets.len()).or_else(|| unstaked().then_some(without)).map(GenesisError::Lane)
    }

    fn units(genesis: &Genesis) -> Box<dyn Iterator<Item = (Address, AssetId, Amount)> + '_> {
        let outputs = genesis.lane.iter().flat_map(|lane| &lane.outputs);
        Box::new(outputs.map(|output| (output.to.address(), output.asset, output.amount)))
    }

    fn check(&self, _: &Rules, sender: Address, edit: BridgeEdit<'_>) -> Result<(), Refusal> {
        self.as_ref().ok_or(Refusal::NO_LANE)?.check(sender, edit)
    }

    fn apply(&mut self, turn: &mut Turn<'_>, edits: &[(Address, BridgeEdit<'_>)]) -> Moved<Self::Change> {
        let Some(lane) = self else { return Moved::default() };
        let entering = turn.entering.as_ref().map_or(&[][..], |coming| &coming.lane);
        let Crossing { credits, escrow, burnt, convicted, events, change } = Arc::make_mut(lane).apply(edits, entering);
        turn.convicted.extend(convicted);
        turn.lane.extend(events);
        if turn.pays_back {
            turn.answering.extend(lane.answering());
            turn.answering_heights = lane.stake_heights();
        }
        Moved { credits, burnt, held: escrow, change, ..Moved::default() }
    }

    fn whole(&self) -> Self::Change {
        self.as_ref().map(|lane| lane.whole())
    }

    fn follow(tries: &mut BridgeTries, change: &Self::Change) {
        tries.rest = change.as_ref().map(|change| {
            if let Some(last) = &change.forget {
                tries.entries.remove_through(last);
            }
            tries.entries.apply(&change.entries);
            change.rest
        });
    }

    fn part(tries: &mut BridgeTries) -> Option<Digest> {
        let rest = tries.rest?;
        Some(bridge_root(&Digest(tries.entries.root().0), &rest))
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        let of_lane = |lane: &Arc<LaneBridge>| {
            let record = tagged(Self::TAG, &BridgeChunk::Record(Box::new(lane.record())));
            let state = lane.bridge().encode();
            let pieces = state.chunks(PIECE).map(|piece| tagged(Self::TAG, &BridgeChunk::State(piece.to_vec())));
            let voted = Some(lane.assets()).filter(|assets| assets.are_voted());
            let voted = voted.map(|assets| tagged(Self::TAG, &BridgeChunk::Assets(assets.clone())));
            std::iter::once(record).chain(voted).chain(pieces).collect::<Vec<_>>()
        };
        Box::new(std::iter::once_with(move || self.iter().flat_map(of_lane).collect::<Vec<_>>()).flatten())
    }

    fn entries(&self) -> u64 {
        self.iter().count() as u64
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let Some(lane) = self else { return Ok(audited.zero()) };
        if lane.bridge().clock().height() != audited.height + 1 {
            return Err(AuditError::Lane("lane time is not the time of the next block"));
        }
        Ok((0..audited.assets.len()).map(|asset| lane.held(AssetId(asset as u32))).collect())
    }
}

/// Reads terms and state in the order in which a snapshot has them.
#[derive(Default)]
pub(crate) struct BridgeReader {
    record: Option<LaneRecord>,
    assets: Option<LaneAssets>,
    /// The part of the state received so far.
    state: Vec<u8>,
}

impl ReadChunks<Option<Arc<LaneBridge>>> for BridgeReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        match borsh::from_slice(bytes)? {
            BridgeChunk::Record(record) => in_place(self.record.replace(*record).is_none()),
            BridgeChunk::State(piece) => {
                let follows = self.record.is_some() && self.state.len().is_multiple_of(PIECE);
                in_place(follows && (1..=PIECE).contains(&piece.len()))?;
                self.state.extend(piece);
                Ok(())
            }
            BridgeChunk::Assets(assets) => {
                let follows = self.record.is_some() && self.state.is_empty();
                in_place(follows && self.assets.replace(assets).is_none())
            }
        }
    }

    fn entries(&self) -> u64 {
        self.record.iter().count() as u64
    }

    fn finish(self, chain: &Restored) -> Result<Option<Arc<LaneBridge>>, AuditError> {
        let restore = |record| LaneBridge::restore(record, self.assets, &self.state, chain.assets).map(Arc::new);
        self.record.map(restore).transpose().map_err(AuditError::Lane)
    }
}
