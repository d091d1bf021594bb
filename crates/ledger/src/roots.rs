//! The Merkle tries over the state, the state root over them, and proofs that need only the root (rule 9).
//!
//! ```text
//! root = H(accounts, offers, assets, contracts, bridge, validators)
//!            │         │       │        │                 └ digest of the whole registry, committees and pool
//!            │         │       │        └ H(trie of storage by account and slot, digest of what else contracts see)
//!            │         │       └ trie by asset number
//!            │         └ trie by pair, whose values are the roots of a trie per pair, by price, account and offer id
//!            └ trie by address
//! ```
//!
//! The nonce, code and wei of an account are part of its own digest. The bridge is H(trie of entries, digest of the
//! rest). A chain without contracts, or without a payment lane, has zeros in their place.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use payments::BridgeEntry;
use primitives::{Amount, AssetId, Digest};
use rayon::prelude::*;
use trie::{Proof, Trie};

use crate::changes::{Changes, PairChange, account_digest, account_state_digest, asset_digest, offer_value};
use crate::contracts::slot_key;
use crate::genesis::Asset;
use crate::places::accounts::{Account, AccountState};
use crate::places::offers::{Edit, Pair, Place};
use crate::{Address, LaneBridge, Ledger, Validators};

const ROOT_CONTEXT: &str = "walras 2026 state root v3";
const CONTRACTS_CONTEXT: &str = "walras 2026 contracts root v1";
const BRIDGE_CONTEXT: &str = "walras 2026 bridge root v1";
const PAIR_CONTEXT: &str = "walras 2026 pair root v1";

/// Tries that are hashed together: few nodes of one trie change in a block, and similar nodes are hashed sixteen at a
/// time.
const TOGETHER: usize = 32;

/// The parts of the state root, in the order in which they are hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RootParts {
    /// Root of the trie of accounts.
    pub accounts: Digest,
    /// Root of the trie of pairs.
    pub offers: Digest,
    /// Root of the trie of assets.
    pub assets: Digest,
    /// Storage of contracts and what else they see; zero on a chain without contracts.
    pub contracts: Digest,
    /// The bridge to the payment lane; zero on a chain without one.
    pub bridge: Digest,
    /// Digest of the registry of validators. It is small, and a light client needs all of it.
    pub validators: Digest,
}

impl RootParts {
    /// The state root.
    pub fn root(&self) -> Digest {
        Digest::of(ROOT_CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail"))
    }
}

/// The offers of one pair by [`Place::key`], with their amounts.
type OfferTrie = Trie<36, 8>;

/// The tries of the state after a block.
#[derive(Clone, Default)]
pub struct Roots {
    accounts: Trie<20>,
    pairs: BTreeMap<Pair, OfferTrie>,
    pair_roots: Trie<8>,
    assets: Trie<4>,
    storage: Trie<52>,
    /// What contracts see besides accounts and storage; `None` on a chain without them.
    contracts: Option<Digest>,
    /// Entries of the bridge to the payment lane.
    entries: Trie<{ BridgeEntry::KEY }>,
    /// The state of the bridge besides its entries; `None` on a chain without a payment lane.
    bridge: Option<Digest>,
    validators: Digest,
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
    /// Units for sale; `None` proves that no offer rests at the place.
    pub amount: Option<Amount>,
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

/// A proof of the staked accounts and the committees.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ValidatorsProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The whole registry.
    pub validators: Validators,
}

/// Why a proof is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFault {
    /// The parts do not hash to the root.
    #[error("the proof is for another state root: request the proof of this block")]
    OtherRoot,
    /// A path does not hash to its part.
    #[error("the proof's path does not hash to its root: {0}")]
    Path(#[from] trie::ProofError),
    /// The value is not the one that the path proves.
    #[error("the proof states another value than its path proves")]
    OtherValue,
}

impl Roots {
    /// Builds the tries of a whole ledger, as after recovery.
    pub fn of(ledger: &Ledger) -> Roots {
        let accounts = ledger.accounts().shards().par_iter().map(|shard| {
            let (sorted, mut room) = (shard.sorted(), Vec::new());
            let entry = |account: &Account| (account.address().0, Some(account_digest(account, &mut room)));
            sorted.into_iter().map(entry).collect::<Vec<_>>()
        });
        let edits = |offers: &crate::PairOffers| {
            offers.iter().map(|offer| Edit { place: offer.place, amount: Some(offer.amount) }).collect()
        };
        let pairs: Vec<_> = ledger.book().iter().collect();
        let pairs =
            pairs.into_par_iter().map(|(pair, offers)| PairChange { pair, through: None, edits: edits(offers) });
        let assets = ledger.assets().iter().enumerate().map(|(number, asset)| (number as u32, asset_digest(asset)));
        let mut roots = Roots::default();
        roots.apply(&Changes {
            accounts: accounts.collect::<Vec<_>>().concat(),
            pairs: pairs.collect(),
            assets: assets.collect(),
            validators: ledger.validators().digest(),
            slots: ledger.contracts().sorted_slots().map(|(key, value)| (key, Some(value))).collect(),
            contracts: ledger.contracts().digest(),
            bridge: ledger.lane().map(LaneBridge::whole),
        });
        roots
    }

    /// Applies a block's changes and hashes what changed; returns the new state root.
    pub fn apply(&mut self, changes: &Changes) -> Digest {
        self.accounts.apply(&changes.accounts);
        for change in &changes.pairs {
            self.pairs.entry(change.pair).or_default();
        }
        let mut changed = changes.pairs.iter().peekable();
        let touched: Vec<_> = self
            .pairs
            .iter_mut()
            .filter_map(|(pair, trie)| changed.next_if(|change| change.pair == *pair).map(|change| (trie, change)))
            .collect();
        let pair_roots: Vec<_> = touched.into_par_iter().chunks(TOGETHER).flat_map_iter(follow_all).collect();
        self.pair_roots.apply(&pair_roots);
        self.pairs.retain(|_, trie| !trie.is_empty());
        let assets: Vec<_> =
            changes.assets.iter().map(|(number, digest)| (number.to_be_bytes(), Some(*digest))).collect();
        self.assets.apply(&assets);
        if !changes.slots.is_empty() {
            self.storage.apply(&changes.slots);
        }
        self.contracts = changes.contracts;
        self.bridge = changes.bridge.as_ref().map(|change| {
            if let Some(last) = &change.forget {
                self.entries.remove_through(last);
            }
            self.entries.apply(&change.entries);
            change.rest
        });
        self.validators = changes.validators;
        self.parts().root()
    }

    /// The parts of the state root.
    pub fn parts(&mut self) -> RootParts {
        RootParts {
            accounts: Digest(self.accounts.root().0),
            offers: Digest(self.pair_roots.root().0),
            assets: Digest(self.assets.root().0),
            contracts: self
                .contracts
                .map_or(Digest::default(), |digest| contracts_root(&Digest(self.storage.root().0), &digest)),
            bridge: self.bridge.map_or(Digest::default(), |rest| bridge_root(&Digest(self.entries.root().0), &rest)),
            validators: self.validators,
        }
    }

    /// Proves the account at an address, or its absence, in `ledger`, which must be the state of these tries.
    pub fn prove_account(&mut self, ledger: &Ledger, address: &Address) -> AccountProof {
        let parts = self.parts();
        let path = prove(&self.accounts, &address.0);
        AccountProof { parts, account: ledger.accounts().get(address).map(|account| account.state()), path }
    }

    /// Proves the offer at a place, or its absence, in `ledger`, which must be the state of these tries.
    pub fn prove_offer(&mut self, ledger: &Ledger, pair: Pair, place: &Place) -> OfferProof {
        let parts = self.parts();
        let pair_path = prove(&self.pair_roots, &pair_key(pair));
        let amount = ledger.book().get(pair).and_then(|offers| offers.get(place));
        let trie = self.pairs.get_mut(&pair);
        let pair_root = trie.map(|trie| Digest(trie.root().0));
        let path = self.pairs.get(&pair).map_or(Vec::new(), |trie| prove(trie, &place.key()));
        OfferProof { parts, amount, pair_root, pair_path, path }
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
        let (parts, contracts) = (self.parts(), self.contracts?);
        let key = slot_key(address, slot);
        let (value, path) = (ledger.contracts().slot(address, slot), prove(&self.storage, &key));
        Some(SlotProof { parts, storage: Digest(self.storage.root().0), contracts, value, path })
    }

    /// Proves the staked accounts and the committees in `ledger`, which must be the state of these tries.
    pub fn prove_validators(&mut self, ledger: &Ledger) -> ValidatorsProof {
        ValidatorsProof { parts: self.parts(), validators: ledger.validators().clone() }
    }

    /// Bytes of memory that the tries of accounts and of offers use.
    pub fn bytes(&self) -> (usize, usize) {
        (self.accounts.allocated_bytes(), self.pairs.values().map(Trie::allocated_bytes).sum())
    }
}

fn prove<const KEY: usize, const VALUE: usize>(trie: &Trie<KEY, VALUE>, key: &[u8; KEY]) -> Vec<u8> {
    trie.prove(key).expect("the root was taken after the last change").as_bytes().to_vec()
}

fn bridge_root(entries: &Digest, rest: &Digest) -> Digest {
    Digest::of(BRIDGE_CONTEXT, &[entries.0, rest.0].concat())
}

fn contracts_root(storage: &Digest, contracts: &Digest) -> Digest {
    Digest::of(CONTRACTS_CONTEXT, &[storage.0, contracts.0].concat())
}

fn pair_key(pair: Pair) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&pair.sell.0.to_be_bytes());
    key[4..].copy_from_slice(&pair.buy.0.to_be_bytes());
    key
}

fn pair_root_digest(root: &Digest) -> [u8; 32] {
    blake3::derive_key(PAIR_CONTEXT, &root.0)
}

/// Applies changes of pairs to their tries; returns the keys and values of these pairs in the trie of pairs.
fn follow_all(pairs: Vec<(&mut OfferTrie, &PairChange)>) -> Vec<([u8; 8], Option<[u8; 32]>)> {
    let (mut tries, changes): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    tries.iter_mut().zip(&changes).for_each(|(trie, change)| follow(trie, change));
    let roots = trie::roots(&mut tries);
    let value =
        |(trie, root): (&&mut OfferTrie, trie::Root)| (!trie.is_empty()).then(|| pair_root_digest(&Digest(root.0)));
    let values = tries.iter().zip(roots).map(value);
    changes.iter().zip(values).map(|(change, value)| (pair_key(change.pair), value)).collect()
}

/// Applies a pair's change to its trie.
fn follow(trie: &mut OfferTrie, change: &PairChange) {
    if let Some(last) = &change.through {
        trie.remove_through(&last.key());
    }
    let entry = |edit: &Edit| (edit.place.key(), edit.amount.map(offer_value));
    trie.apply(&change.edits.iter().map(entry).collect::<Vec<_>>());
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
        if self.parts.root() != *root {
            return Err(ProofFault::OtherRoot);
        }
        check_path(&self.parts.accounts, &address.0, &self.path, self.account.as_ref().map(account_state_digest))?;
        Ok(self.account.as_ref())
    }
}

impl OfferProof {
    /// Checks the proof against a state root; returns the units for sale, or `None` if no offer is proved to rest
    /// there.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, pair: Pair, place: &Place) -> Result<Option<Amount>, ProofFault> {
        if self.parts.root() != *root {
            return Err(ProofFault::OtherRoot);
        }
        let pair_value = self.pair_root.as_ref().map(pair_root_digest);
        check_path(&self.parts.offers, &pair_key(pair), &self.pair_path, pair_value)?;
        match self.pair_root {
            Some(pair_root) => check_path(&pair_root, &place.key(), &self.path, self.amount.map(offer_value))?,
            None if self.amount.is_some() || !self.path.is_empty() => return Err(ProofFault::OtherValue),
            None => {}
        }
        Ok(self.amount)
    }
}

impl SlotProof {
    /// Checks the proof against a state root; returns the value, big-endian, or `None` if it is proved to be zero.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, address: &Address, slot: &[u8; 32]) -> Result<Option<[u8; 32]>, ProofFault> {
        if self.parts.root() != *root || self.parts.contracts != contracts_root(&self.storage, &self.contracts) {
            return Err(ProofFault::OtherRoot);
        }
        check_path(&self.storage, &slot_key(address, slot), &self.path, self.value)?;
        Ok(self.value)
    }
}

impl ValidatorsProof {
    /// Checks the proof against a state root; returns the registry with its committees.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest) -> Result<&Validators, ProofFault> {
        if self.parts.root() != *root {
            return Err(ProofFault::OtherRoot);
        }
        if self.parts.validators != self.validators.digest() {
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
        if self.parts.root() != *root {
            return Err(ProofFault::OtherRoot);
        }
        check_path(&self.parts.assets, &asset.0.to_be_bytes(), &self.path, self.asset.as_ref().map(asset_digest))?;
        Ok(self.asset.as_ref())
    }
}
