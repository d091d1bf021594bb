//! Listings as a place of the state. It holds no units: one trie by asset beside the digest of the terms of all, and
//! chunks by asset. A chain on which nobody lists has no part for them until an asset closes.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, AssetId, AssetListing, Closing, Digest, Height, RULES_OF_PROPOSALS, TransactionId};
use proofs::{Asset, AssetTerms, RootPart, asset_terms_root};
use trie::Trie;

use super::{AskedListing, Listings, is_plain};
use crate::places::unsound::AuditError;
use crate::places::{Audited, ChunkFault, Custody, Moved, ReadChunks, Restored, Turn, bytes_of, in_place, tagged};
use crate::terms::{Genesis, GenesisError, ListingPolicy, ListingTerms};

const TERMS_CONTEXT: &str = "walras 2026 listing terms v1";
/// Assets in a full chunk.
const ENTRIES: usize = 4_096;

/// What an operation does to the assets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ListingEdit<'a> {
    /// It lists one; its transaction has this id.
    List(&'a AssetListing, TransactionId),
    /// It says something about the end of one.
    Close(AssetId, Closing),
}

/// What a block changed: terms by asset, if they exist, and the digest of the terms of all.
#[derive(Clone, Debug)]
pub(crate) struct ListingsChange {
    rows: Vec<([u8; 4], Option<[u8; 32]>)>,
    of_all: Digest,
}

/// The trie of terms, and the digest of the terms of all; `None` until there is something to prove.
#[derive(Clone, Default)]
pub(crate) struct ListingTries {
    pub trie: Trie<4>,
    pub of_all: Option<Digest>,
}

#[derive(BorshSerialize, BorshDeserialize)]
enum ListingsChunk {
    Head(ListingTerms),
    Assets(Vec<(AssetId, AssetTerms)>),
}

impl Listings {
    fn change(&self, assets: impl Iterator<Item = AssetId>) -> ListingsChange {
        let row = |asset: AssetId| (asset.0.to_be_bytes(), self.get(asset).map(AssetTerms::value));
        let mut rows: Vec<_> = assets.map(row).collect();
        rows.sort_unstable();
        rows.dedup();
        ListingsChange { rows, of_all: Digest::of(TERMS_CONTEXT, &bytes_of(&self.terms)) }
    }

    /// Whether it is as on a chain on which nobody lists and nothing closes.
    fn is_nothing(&self) -> bool {
        self.terms == ListingTerms::default() && self.assets.is_empty()
    }

    /// The fault of a state that was read, if there is one.
    fn fault(&self, assets: &[Asset], height: Height) -> Option<&'static str> {
        let numbers = || (self.founded..).map(AssetId).take(assets.len() - self.founded as usize);
        let is_of = |number: AssetId| {
            let asset = &assets[number.0 as usize];
            let is_named = is_plain(&asset.symbol) || asset.symbol.ends_with(&format!(".{}", number.0));
            let listed = self.get(number).and_then(|terms| terms.listed);
            listed.is_some_and(|listed| is_named && listed.height <= height && asset.issued <= listed.supply_max)
        };
        let is_founders = |(number, terms): (&AssetId, &AssetTerms)| {
            self.is_listed(*number) || (terms.listed.is_none() && terms.closes.is_some())
        };
        let limit = height.saturating_add(self.terms.notice);
        Some(match () {
            _ if self.assets.keys().any(|number| number.0 as usize >= assets.len()) => "terms of an unknown asset",
            _ if !numbers().all(is_of) => "an asset is not as it was listed",
            _ if !self.assets.iter().all(is_founders) => "an asset of the genesis was listed",
            _ if self.closes(AssetId(0)).is_some() => "the first asset closes",
            _ if self.closes.values().any(|last| *last > limit) => "an asset closes later than its notice",
            _ => return None,
        })
    }
}

impl Custody for Arc<Listings> {
    const TAG: u8 = RootPart::LISTINGS;
    const NAME: &'static str = "assets";
    type Edit<'a> = ListingEdit<'a>;
    type Change = Option<ListingsChange>;
    type Tries = ListingTries;
    type Reader = ListingsReader;

    fn found(genesis: &Genesis, _: Digest) -> Self {
        Arc::new(Listings::new(genesis.listings, genesis.assets.len()))
    }

    fn section(genesis: &Genesis) -> Option<Vec<u8>> {
        (genesis.listings != ListingTerms::default()).then(|| bytes_of(&genesis.listings))
    }

    fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
        let is_early = genesis.listings.policy == ListingPolicy::Voted && genesis.rules < RULES_OF_PROPOSALS;
        let early = is_early.then_some("policy: a vote lists assets since rules 16");
        let fault = || genesis.listings.fault(genesis.fee, genesis.assets.len());
        early.or_else(fault).map(GenesisError::Listings)
    }

    fn apply(&mut self, turn: &mut Turn<'_>, edits: &[(Address, ListingEdit<'_>)]) -> Moved<Self::Change> {
        if edits.is_empty() && turn.entering.is_none() {
            return Moved::default();
        }
        let (height, listings) = (turn.block.height, Arc::make_mut(self));
        let (mut asked, mut changed) = (Vec::new(), Vec::new());
        for (sender, edit) in edits {
            match *edit {
                ListingEdit::List(listing, id) => asked.push(AskedListing { id, sender: *sender, listing }),
                ListingEdit::Close(asset, closing) => {
                    listings.close(asset, closing, height);
                    changed.push(asset);
                }
            }
        }
        let mut listed = listings.list(turn.assets, asked, height);
        if let Some(coming) = turn.entering.take() {
            changed.extend(listings.enter(&coming, turn.records, &mut listed, height));
        }
        changed.extend((turn.assets as u32..).map(AssetId).take(listed.len()));
        let numbered = (turn.assets as u32..).map(AssetId).zip(&listed);
        let controlled = numbered.map(|(number, asset)| (number, listings.control(number), asset.issuer));
        turn.controlled.extend(controlled.filter(|(_, control, _)| control.freezes()));
        turn.listed = listed;
        Moved { change: Some(listings.change(changed.into_iter())), ..Moved::default() }
    }

    fn whole(&self) -> Self::Change {
        (!self.is_nothing()).then(|| self.change(self.assets.keys().copied()))
    }

    fn follow(tries: &mut ListingTries, change: &Self::Change) {
        if let Some(change) = change {
            tries.trie.apply(&change.rows);
            tries.of_all = Some(change.of_all);
        }
    }

    fn part(tries: &mut ListingTries) -> Option<Digest> {
        let is_nothing = tries.trie.is_empty() && tries.of_all == Some(usual_terms());
        let of_all = tries.of_all.filter(|_| !is_nothing)?;
        Some(asset_terms_root(&Digest(tries.trie.root().0), &of_all))
    }

    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_> {
        let head = (!self.is_nothing()).then(|| tagged(Self::TAG, &ListingsChunk::Head(self.terms)));
        let list: Vec<(AssetId, AssetTerms)> = self.assets.iter().map(|(asset, terms)| (*asset, *terms)).collect();
        let parts = list.chunks(ENTRIES).map(|part| tagged(Self::TAG, &ListingsChunk::Assets(part.to_vec())));
        Box::new(head.into_iter().chain(parts.collect::<Vec<_>>()))
    }

    fn entries(&self) -> u64 {
        if self.is_nothing() { 0 } else { 1 + self.assets.len() as u64 }
    }

    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError> {
        let fault = self.fault(audited.assets, audited.height);
        fault.map_or(Ok(audited.zero()), |why| Err(AuditError::Listings(why)))
    }
}

/// The digest of the terms of a chain on which nobody lists.
fn usual_terms() -> Digest {
    Digest::of(TERMS_CONTEXT, &bytes_of(&ListingTerms::default()))
}

/// Reads the terms of all, and then those of assets in the order in which a snapshot has them.
#[derive(Default)]
pub(crate) struct ListingsReader {
    terms: Option<ListingTerms>,
    assets: Vec<(AssetId, AssetTerms)>,
    /// Whether the last chunk was not full.
    is_over: bool,
}

impl ReadChunks<Arc<Listings>> for ListingsReader {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault> {
        match borsh::from_slice(bytes)? {
            ListingsChunk::Head(terms) => in_place(self.terms.replace(terms).is_none()),
            ListingsChunk::Assets(list) => {
                let is_first = |first: &(AssetId, AssetTerms)| self.assets.last().is_none_or(|last| last.0 < first.0);
                let is_next = list.first().is_some_and(is_first) && list.len() <= ENTRIES && !self.is_over;
                let is_sound = |(_, terms): &(AssetId, AssetTerms)| *terms != AssetTerms::default();
                let is_list = list.is_sorted_by(|a, b| a.0 < b.0) && list.iter().all(is_sound);
                in_place(self.terms.is_some() && is_next && is_list)?;
                self.is_over = list.len() < ENTRIES;
                self.assets.extend(list);
                Ok(())
            }
        }
    }

    fn entries(&self) -> u64 {
        self.terms.map_or(0, |_| 1 + self.assets.len() as u64)
    }

    fn finish(self, chain: &Restored) -> Result<Arc<Listings>, AuditError> {
        let listed = self.assets.iter().filter(|(_, terms)| terms.listed.is_some()).count();
        let founded = chain.assets.checked_sub(listed).filter(|founded| *founded > 0);
        let founded = founded.ok_or(AuditError::Listings("more assets were listed than exist"))?;
        let (terms, is_bare) = (self.terms.unwrap_or_default(), self.assets.is_empty());
        if self.terms == Some(ListingTerms::default()) && is_bare {
            return Err(AuditError::Listings("terms that say nothing are written"));
        }
        let mut listings = Listings::new(terms, founded);
        self.assets.into_iter().for_each(|(asset, terms)| listings.set(asset, terms));
        Ok(Arc::new(listings))
    }
}
