//! One asset as it is hashed and proved, and what stands of it beside its record.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetControl, AssetId, Digest, Height, MAX_ISSUED, Price};

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};

const ASSET_CONTEXT: &str = "walras 2026 asset state v1";
const TERMS_CONTEXT: &str = "walras 2026 asset terms v1";
const ROOT_CONTEXT: &str = "walras 2026 asset terms root v1";

/// An asset: a claim on its issuer, in whole units.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Asset {
    /// Short name, unique in the ledger; letters, digits, `.`, `-` and `_`. That of an asset that was listed after the
    /// genesis ends with a point and its number.
    pub symbol: String,
    /// Decimal places for display: 10^decimals units make one.
    pub decimals: u8,
    /// The account that can issue and burn the asset.
    pub issuer: Address,
    /// The least units of the asset that an offer sells or asks for.
    pub least_units: Amount,
    /// Units in existence.
    pub issued: Amount,
    /// Its valuation in the last batch, if it had a price there: if offers led from it to other assets and back. The
    /// next search for prices may start from it.
    pub valuation: Option<Price>,
}

/// The digest of an asset in the trie of assets.
pub fn asset_digest(asset: &Asset) -> [u8; 32] {
    blake3::derive_key(ASSET_CONTEXT, &borsh::to_vec(asset).expect("writing to memory cannot fail"))
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

impl AssetProof {
    /// Checks the proof against a state root; returns the asset, or `None` if it is proved not to exist.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, asset: AssetId) -> Result<Option<&Asset>, ProofFault> {
        let assets = self.parts.part(root, RootPart::ASSETS)?;
        check_path(&assets, &asset.0.to_be_bytes(), &self.path, self.asset.as_ref().map(asset_digest))?;
        Ok(self.asset.as_ref())
    }
}

/// What stands of an asset beside its record. An asset of the genesis has none until it closes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AssetTerms {
    /// How it was listed; `None` for an asset of the genesis.
    pub listed: Option<ListedTerms>,
    /// The last height that it trades at, if it closes or is closed.
    pub closes: Option<Height>,
}

/// How an asset was listed on the running chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ListedTerms {
    /// The height of the block that listed it.
    pub height: Height,
    /// What its issuer controls in the hands of others.
    pub control: AssetControl,
    /// The most units of it that may exist at one time.
    pub supply_max: Amount,
    /// The digest of a document that says what it is; zero for none.
    pub document: Digest,
}

impl AssetTerms {
    /// The most units that may exist at one time.
    pub fn supply_max(&self) -> Amount {
        self.listed.map_or(MAX_ISSUED, |listed| listed.supply_max)
    }

    /// The value in the trie of terms.
    pub fn value(&self) -> [u8; 32] {
        Digest::of(TERMS_CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail")).0
    }
}

/// The part of the state root: the trie of terms by number, and the digest of the terms of all listings.
pub fn asset_terms_root(terms: &Digest, of_all: &Digest) -> Digest {
    Digest::of(ROOT_CONTEXT, &[terms.0, of_all.0].concat())
}

/// A proof of what stands of an asset beside its record.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AssetTermsProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The root of the trie of terms.
    pub trie: Digest,
    /// The digest of the terms of all listings.
    pub of_all: Digest,
    /// The terms; `None` proves that nothing stands beside the record.
    pub terms: Option<AssetTerms>,
    /// The path in the trie.
    pub path: Vec<u8>,
}

impl AssetTermsProof {
    /// Checks the proof against a state root; returns the terms, or `None` if it is proved that the asset has none: it
    /// is of the genesis and does not close, or does not exist. A chain without the part has no terms of any asset.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, asset: AssetId) -> Result<Option<&AssetTerms>, ProofFault> {
        let part = match self.parts.part(root, RootPart::LISTINGS) {
            Err(ProofFault::NoPart(_)) if self.terms.is_none() => return Ok(None),
            part => part?,
        };
        if asset_terms_root(&self.trie, &self.of_all) != part {
            return Err(ProofFault::OtherValue);
        }
        let value = self.terms.as_ref().map(AssetTerms::value);
        check_path(&self.trie, &asset.0.to_be_bytes(), &self.path, value)?;
        Ok(self.terms.as_ref())
    }
}
