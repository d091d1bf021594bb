//! The Merkle tries over the state, the state root over them, and proofs that need only the root (rule 9).
//!
//! ```text
//! root = H(list of: tag, root of the part)
//!   0 assets       trie by asset number
//!   1 balances     trie by address
//!   2 offers       trie by pair, whose values are the roots of a trie per pair, by price, account and offer id
//!   3 contracts    H(trie of storage by account and slot, digest of what else contracts see)
//!   4 escrow       H(trie of entries of the bridge, digest of the rest)
//!   5 stakes       digest of the whole registry, committees and pool
//!   6 venues       H(trie of records by the digest of their ids, digest of network, terms and horizon)
//! ```
//!
//! The nonce, code and wei of an account are part of its own digest. The list names the parts that a chain has, by
//! tag: without contracts or a payment lane it is shorter, and a place that is added changes no proof of another one.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use payments::{BridgeEntry, HomeEpoch, LaneRegistration};
use primitives::{Address, AssetId, Digest};
use trie::{Proof, Trie};

use crate::changes::Changes;
use crate::contracts::{Contracts, slot_key};
use crate::genesis::{Asset, asset_digest};
use crate::places::accounts::{AccountState, Accounts, account_state_digest};
use crate::places::bridge::bridge_root;
use crate::places::offers::{OrderBook, Pair, Place, Rest, offer_value, pair_key, pair_root_digest};
use crate::places::tags::CHAIN;
use crate::places::{Custody, PlaceTries, contracts_root};
use crate::root_parts::{ProofFault, RootPart, RootParts};
use crate::{LaneBridge, Ledger, Validators, VenueProof, VenueRecordId, Venues};

impl RootPart {
    /// The trie of assets.
    pub const ASSETS: u8 = CHAIN;
    /// The trie of accounts.
    pub const BALANCES: u8 = Accounts::TAG;
    /// The trie of pairs.
    pub const OFFERS: u8 = OrderBook::TAG;
    /// Storage of contracts, and what else they see of the chain.
    pub const CONTRACTS: u8 = Contracts::TAG;
    /// The bridge to the payment lane.
    pub const ESCROW: u8 = Option::<Arc<LaneBridge>>::TAG;
    /// The registry of validators.
    pub const STAKES: u8 = Arc::<Validators>::TAG;
    /// The venues of continuous markets.
    pub const VENUES: u8 = Option::<Arc<Venues>>::TAG;
}

/// The tries of the state after a block.
#[derive(Clone, Default)]
pub struct Roots {
    places: PlaceTries,
    assets: Trie<4>,
}

/// A proof of the value of a contract's slot.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SlotProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// Root of the trie of storage.
    pub storage: Digest,
    /// What contracts see besides accounts and storage.
    pub contracts: Digest,
    /// The value, big-endian; `None` proves that it is zero.
    pub value: Option<[u8; 32]>,
    /// The path in the trie of storage.
    pub path: Vec<u8>,
}

/// A proof that an account has a state, or does not exist.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AccountProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The account; `None` proves that there is none.
    pub account: Option<AccountState>,
    /// The path in the trie of accounts.
    pub path: Vec<u8>,
}

/// A proof that an offer rests with some amount, or that no such offer rests.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OfferProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// What rests there; `None` proves that no offer does.
    pub rest: Option<Rest>,
    /// The pair's root, unless the pair has no resting offers.
    pub pair_root: Option<Digest>,
    /// The path in the trie of pairs.
    pub pair_path: Vec<u8>,
    /// The path in the pair's trie; empty if the pair has no resting offers.
    pub path: Vec<u8>,
}

/// A proof of an asset's record.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AssetProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The asset; `None` proves that there is none.
    pub asset: Option<Asset>,
    /// The path in the trie of assets.
    pub path: Vec<u8>,
}

/// A proof that the bridge to the payment lane has some entries, or lacks them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// Root of the trie of entries.
    pub entries: Digest,
    /// Digest of what is no entry.
    pub rest: Digest,
    /// The path of each entry in the trie.
    pub paths: Vec<Vec<u8>>,
}

/// A proof of the staked accounts and the committees.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ValidatorsProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The whole registry.
    pub validators: Validators,
}

impl Roots {
    /// Builds the tries of a whole ledger, as after recovery.
    pub fn of(ledger: &Ledger) -> Roots {
        let mut roots = Roots::default();
        roots.apply(&Changes { places: ledger.places.whole(), assets: ledger.asset_digests() });
        roots
    }

    /// Applies a block's changes and hashes what changed; returns the new state root.
    pub fn apply(&mut self, changes: &Changes) -> Digest {
        self.places.apply(&changes.places);
        let assets: Vec<_> =
            changes.assets.iter().map(|(number, digest)| (number.to_be_bytes(), Some(*digest))).collect();
        self.assets.apply(&assets);
        self.parts().root()
    }

    /// The parts of the state root.
    pub fn parts(&mut self) -> RootParts {
        let assets = RootPart { tag: RootPart::ASSETS, root: Digest(self.assets.root().0) };
        RootParts::new(std::iter::once(assets).chain(self.places.parts()).collect())
    }

    /// Proves the account at an address, or its absence, in `ledger`, which must be the state of these tries.
    pub fn prove_account(&mut self, ledger: &Ledger, address: &Address) -> AccountProof {
        let parts = self.parts();
        let path = prove(&self.places.accounts, &address.0);
        AccountProof { parts, account: ledger.accounts().get(address).map(|account| account.state()), path }
    }

    /// Proves the offer at a place, or its absence, in `ledger`, which must be the state of these tries.
    pub fn prove_offer(&mut self, ledger: &Ledger, pair: Pair, place: &Place) -> OfferProof {
        let parts = self.parts();
        let tries = &mut self.places.book;
        let pair_path = prove(&tries.pair_roots, &pair_key(pair));
        let rest = ledger.book().get(pair).and_then(|offers| offers.rest(place));
        let trie = tries.pairs.get_mut(&pair);
        let pair_root = trie.map(|trie| Digest(trie.root().0));
        let path = tries.pairs.get(&pair).map_or(Vec::new(), |trie| prove(trie, &place.key()));
        OfferProof { parts, rest, pair_root, pair_path, path }
    }

    /// Proves an asset's record, or its absence, in `ledger`, which must be the state of these tries.
    pub fn prove_asset(&mut self, ledger: &Ledger, asset: AssetId) -> AssetProof {
        let parts = self.parts();
        let record = ledger.assets().get(asset.0 as usize).cloned();
        AssetProof { parts, asset: record, path: prove(&self.assets, &asset.0.to_be_bytes()) }
    }

    /// Proves the value of a contract's slot in `ledger`, which must be the state of these tries; `None` on a chain
    /// without contracts.
    pub fn prove_slot(&mut self, ledger: &Ledger, address: &Address, slot: &[u8; 32]) -> Option<SlotProof> {
        let parts = self.parts();
        let tries = &mut self.places.contracts;
        let contracts = tries.rest?;
        let key = slot_key(address, slot);
        let (value, path) = (ledger.contracts().slot(address, slot), prove(&tries.storage, &key));
        Some(SlotProof { parts, storage: Digest(tries.storage.root().0), contracts, value, path })
    }

    /// Proves a record of venues, or its absence, in `ledger`, which must be the state of these tries; `None` on a
    /// chain without venues.
    pub fn prove_venue(&mut self, ledger: &Ledger, id: &VenueRecordId) -> Option<VenueProof> {
        let parts = self.parts();
        VenueProof::of(&mut self.places.venues, parts, ledger.venues()?, id)
    }

    /// Proves which entries the bridge has under these keys; `None` on a chain without a payment lane.
    pub fn prove_lane(&mut self, keys: &[[u8; BridgeEntry::KEY]]) -> Option<LaneProof> {
        let parts = self.parts();
        let tries = &mut self.places.lane;
        let (entries, rest) = (Digest(tries.entries.root().0), tries.rest?);
        let paths = keys.iter().map(|key| prove(&tries.entries, key)).collect();
        Some(LaneProof { parts, entries, rest, paths })
    }

    /// The keys that members registered for the epochs of the payment lane from `from` on, with their proof in
    /// `ledger`, which must be the state of these tries; `None` on a chain without a payment lane.
    pub fn prove_registrations(
        &mut self,
        ledger: &Ledger,
        from: HomeEpoch,
    ) -> Option<(Vec<LaneRegistration>, LaneProof)> {
        let all = ledger.lane()?.bridge().all_registrations();
        let registrations: Vec<LaneRegistration> = all.filter(|of| of.epoch >= from).cloned().collect();
        let keys: Vec<_> = registrations.iter().map(|of| BridgeEntry::registration(of).key).collect();
        let proof = self.prove_lane(&keys)?;
        Some((registrations, proof))
    }

    /// Proves the staked accounts and the committees in `ledger`, which must be the state of these tries.
    pub fn prove_validators(&mut self, ledger: &Ledger) -> ValidatorsProof {
        ValidatorsProof { parts: self.parts(), validators: ledger.validators().clone() }
    }

    /// Bytes of memory that the tries of accounts and of offers use.
    pub fn bytes(&self) -> (usize, usize) {
        let offers = self.places.book.pairs.values();
        (self.places.accounts.allocated_bytes(), offers.map(Trie::allocated_bytes).sum())
    }
}

fn prove<const KEY: usize, const VALUE: usize>(trie: &Trie<KEY, VALUE>, key: &[u8; KEY]) -> Vec<u8> {
    trie.prove(key).expect("the root was taken after the last change").as_bytes().to_vec()
}

/// The root of a part that a proof is about, if these are the parts of `root`.
fn part_of(parts: &RootParts, root: &Digest, tag: u8) -> Result<Digest, ProofFault> {
    if parts.root() != *root {
        return Err(ProofFault::OtherRoot);
    }
    parts.get(tag).ok_or(ProofFault::NoPart(tag))
}

fn check_path<const VALUE: usize>(
    root: &Digest,
    key: &[u8],
    path: &[u8],
    expected: Option<[u8; VALUE]>,
) -> Result<(), ProofFault> {
    let shown = trie::verify(&trie::Root(root.0), key, &Proof::from_bytes(path.to_vec()))?;
    if shown == expected { Ok(()) } else { Err(ProofFault::OtherValue) }
}

impl AccountProof {
    /// Checks the proof against a state root; returns the account, or `None` if it is proved not to exist.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, address: &Address) -> Result<Option<&AccountState>, ProofFault> {
        let accounts = part_of(&self.parts, root, RootPart::BALANCES)?;
        check_path(&accounts, &address.0, &self.path, self.account.as_ref().map(account_state_digest))?;
        Ok(self.account.as_ref())
    }
}

impl OfferProof {
    /// Checks the proof against a state root; returns what rests, or `None` if it is proved that no offer rests
    /// there.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, pair: Pair, place: &Place) -> Result<Option<Rest>, ProofFault> {
        let offers = part_of(&self.parts, root, RootPart::OFFERS)?;
        let pair_value = self.pair_root.as_ref().map(pair_root_digest);
        check_path(&offers, &pair_key(pair), &self.pair_path, pair_value)?;
        match self.pair_root {
            Some(pair_root) => check_path(&pair_root, &place.key(), &self.path, self.rest.map(offer_value))?,
            None if self.rest.is_some() || !self.path.is_empty() => return Err(ProofFault::OtherValue),
            None => {}
        }
        Ok(self.rest)
    }
}

impl SlotProof {
    /// Checks the proof against a state root; returns the value, big-endian, or `None` if it is proved to be zero.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, address: &Address, slot: &[u8; 32]) -> Result<Option<[u8; 32]>, ProofFault> {
        if part_of(&self.parts, root, RootPart::CONTRACTS)? != contracts_root(&self.storage, &self.contracts) {
            return Err(ProofFault::OtherRoot);
        }
        check_path(&self.storage, &slot_key(address, slot), &self.path, self.value)?;
        Ok(self.value)
    }
}

impl LaneProof {
    /// Checks against a state root that the bridge has exactly these entries; those without a value are proved to be
    /// missing.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid, or the ledger has another value under one of the keys.
    pub fn verify(&self, root: &Digest, expected: &[BridgeEntry]) -> Result<(), ProofFault> {
        if part_of(&self.parts, root, RootPart::ESCROW)? != bridge_root(&self.entries, &self.rest) {
            return Err(ProofFault::OtherRoot);
        }
        if self.paths.len() != expected.len() {
            return Err(ProofFault::OtherValue);
        }
        let mut both = expected.iter().zip(&self.paths);
        both.try_for_each(|(entry, path)| check_path(&self.entries, &entry.key, path, entry.value))
    }
}

impl ValidatorsProof {
    /// Checks the proof against a state root; returns the registry with its committees.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest) -> Result<&Validators, ProofFault> {
        if part_of(&self.parts, root, RootPart::STAKES)? != self.validators.digest() {
            return Err(ProofFault::OtherValue);
        }
        Ok(&self.validators)
    }
}

impl AssetProof {
    /// Checks the proof against a state root; returns the asset, or `None` if it is proved not to exist.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, asset: AssetId) -> Result<Option<&Asset>, ProofFault> {
        let assets = part_of(&self.parts, root, RootPart::ASSETS)?;
        check_path(&assets, &asset.0.to_be_bytes(), &self.path, self.asset.as_ref().map(asset_digest))?;
        Ok(self.asset.as_ref())
    }
}
