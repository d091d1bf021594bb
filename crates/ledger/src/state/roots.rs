//! The Merkle tries over the state, the state root over them, and proofs that need only the root (rule 9). `proofs` has
//! the proofs, with their checks.
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
//!   7 pools        H(trie of pools and holdings by the digest of their ids, digest of the terms)
//!   8 charter      H(rules by height, digest of terms and approvals)
//!  10 keys         trie by account, once an account has a policy
//!  11 listings     H(trie of terms by asset number, digest of the terms of all), once there is something to tell
//!  12 controls     H(trie of holders by asset and account, digest of the controlled assets), once there is one
//!  13 seals        H(sealing keys, digests of the generation in progress and of names), if the genesis has terms
//! ```
//!
//! The nonce, code and wei of an account are part of its own digest. The list names the parts that a chain has, by
//! tag: without contracts or a payment lane it is shorter, and a place that is added changes no proof of another one.

use payments::{BridgeEntry, HomeEpoch, LaneRegistration};
use primitives::{Address, AssetId, Digest};
use proofs::{
    AccountProof, AssetProof, AssetTermsProof, HolderProof, KeysProof, LaneProof, OfferProof, Pair, ParametersProof,
    Place, PoolProof, PoolRecordId, RootPart, RootParts, SealsProof, SlotProof, ValidatorsProof, VenueProof,
    VenueRecordId, holder_key, pair_key, slot_key,
};
use trie::Trie;

use super::changes::Changes;
use super::ledger::Ledger;
use crate::places::PlaceTries;
use crate::places::seals::Seals;

/// The tries of the state after a block.
#[derive(Clone, Default)]
pub struct Roots {
    places: PlaceTries,
    assets: Trie<4>,
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

    /// Proves how an asset was listed and when it closes, or that it has no terms, in `ledger`, which must be the state
    /// of these tries.
    pub fn prove_asset_terms(&mut self, ledger: &Ledger, asset: AssetId) -> AssetTermsProof {
        let parts = self.parts();
        let tries = &mut self.places.listings;
        let (trie, of_all) = (Digest(tries.trie.root().0), tries.of_all.unwrap_or_default());
        let terms = ledger.listings().get(asset).copied();
        AssetTermsProof { parts, trie, of_all, terms, path: prove(&tries.trie, &asset.0.to_be_bytes()) }
    }

    /// Proves what issuers control and what one has said of a holder, or that none has, in `ledger`, which must be the
    /// state of these tries.
    pub fn prove_holder(&mut self, ledger: &Ledger, asset: AssetId, account: &Address) -> HolderProof {
        let parts = self.parts();
        let tries = &mut self.places.controls;
        let (trie, assets) = (Digest(tries.holders.root().0), ledger.controls().assets());
        let record = ledger.controls().record(asset, account).copied();
        HolderProof { parts, trie, assets, record, path: prove(&tries.holders, &holder_key(asset, account)) }
    }

    /// Proves the sealing keys, or that the chain has none, in `ledger`, which must be the state of these tries.
    pub fn prove_seals(&mut self, ledger: &Ledger) -> SealsProof {
        SealsProof { parts: self.parts(), record: ledger.seals().map(Seals::record) }
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
        let (tries, venues) = (&mut self.places.venues, ledger.venues()?);
        let rest = tries.rest?;
        let records = Digest(tries.records.root().0);
        Some(VenueProof { parts, rest, records, record: venues.record(id), path: prove(&tries.records, &id.key()) })
    }

    /// Proves a pool or a holding, or its absence, in `ledger`, which must be the state of these tries; `None` on a
    /// chain without pools.
    pub fn prove_pool(&mut self, ledger: &Ledger, id: &PoolRecordId) -> Option<PoolProof> {
        let parts = self.parts();
        let (tries, pools) = (&mut self.places.pools, ledger.pools()?);
        let terms = tries.terms?;
        let records = Digest(tries.records.root().0);
        Some(PoolProof { parts, terms, records, record: pools.record(id), path: prove(&tries.records, &id.key()) })
    }

    /// Proves the policy of an account, or that it has none, in `ledger`, which must be the state of these tries.
    pub fn prove_keys(&mut self, ledger: &Ledger, account: &Address) -> KeysProof {
        let parts = self.parts();
        let path = self.places.keys.as_ref().map_or(Vec::new(), |trie| prove(trie, &account.0));
        KeysProof { parts, keys: ledger.account_keys(account).cloned(), path }
    }

    /// Proves the parameters of a ledger, which must be the state of these tries.
    pub fn prove_parameters(&mut self, ledger: &Ledger) -> ParametersProof {
        let (charter, record) = (ledger.charter(), ledger.proposals().proved());
        ParametersProof { parts: self.parts(), rules: charter.rules, approvals: charter.rest(), record }
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

    /// Proves the staked accounts, the committees and the rules by height in `ledger`, which must be the state of these
    /// tries.
    pub fn prove_validators(&mut self, ledger: &Ledger) -> ValidatorsProof {
        let charter = ledger.charter();
        let (validators, rules) = (ledger.validators().clone(), charter.rules);
        ValidatorsProof { parts: self.parts(), validators, rules, charter: ledger.places.charter.rest() }
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
