//! One asset as it is hashed and proved.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, Price};

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};

const ASSET_CONTEXT: &str = "walras 2026 asset state v1";

/// An asset: a claim on its issuer, in whole units.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Asset {
    /// Short name, unique in the ledger; letters, digits, `.`, `-` and `_`.
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
