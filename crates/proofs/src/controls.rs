//! What an issuer has said of a holder of its asset, as it is proved.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, AssetControl, AssetId, Digest, Height};

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};

const RECORD_CONTEXT: &str = "walras 2026 holder record v1";
const CONTROLS_CONTEXT: &str = "walras 2026 asset controls v1";
const ROOT_CONTEXT: &str = "walras 2026 controls root v1";

/// What an issuer has said of a holder. A holder without a record is open, unless the asset is for admitted holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HolderRecord {
    /// Whether it is open, or frozen.
    pub is_open: bool,
    /// The height of the block that changed this last.
    pub since: Height,
    /// Whether it was open before: then a freeze counts at venues once it is past.
    pub was_open: bool,
}

/// An asset whose issuer controls it, with what it controls.
pub type ControlledAsset = (AssetId, AssetControl);

impl HolderRecord {
    /// The value in the trie of holders.
    pub fn value(&self) -> [u8; 32] {
        Digest::of(RECORD_CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail")).0
    }
}

/// The key of a holder in the trie.
pub fn holder_key(asset: AssetId, account: &Address) -> [u8; 24] {
    let mut key = [0; 24];
    key[..4].copy_from_slice(&asset.0.to_be_bytes());
    key[4..].copy_from_slice(&account.0);
    key
}

/// The part of the state root: the trie of holders, and the digest of the assets that issuers control, by number.
pub fn controls_root(holders: &Digest, assets: &[ControlledAsset]) -> Digest {
    let assets = Digest::of(CONTROLS_CONTEXT, &borsh::to_vec(assets).expect("writing to memory cannot fail"));
    Digest::of(ROOT_CONTEXT, &[holders.0, assets.0].concat())
}

/// A proof of what issuers control, and of what one has said of a holder.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HolderProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The root of the trie of holders.
    pub trie: Digest,
    /// The assets that issuers control, by number.
    pub assets: Vec<ControlledAsset>,
    /// What was said; `None` proves that nothing was.
    pub record: Option<HolderRecord>,
    /// The path in the trie.
    pub path: Vec<u8>,
}

impl HolderProof {
    /// Checks the proof against a state root; returns what the issuer controls, and whether the account holds the asset
    /// freely. Issuers always do. A chain without the part has open assets alone.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, asset: AssetId, account: &Address) -> Result<(AssetControl, bool), ProofFault> {
        let part = match self.parts.part(root, RootPart::CONTROLS) {
            Err(ProofFault::NoPart(_)) if self.assets.is_empty() && self.record.is_none() => {
                return Ok((AssetControl::Open, true));
            }
            part => part?,
        };
        if controls_root(&self.trie, &self.assets) != part {
            return Err(ProofFault::OtherValue);
        }
        let value = self.record.as_ref().map(HolderRecord::value);
        check_path(&self.trie, &holder_key(asset, account), &self.path, value)?;
        let at = self.assets.binary_search_by_key(&asset, |(of, _)| *of);
        let control = at.map_or(AssetControl::Open, |at| self.assets[at].1);
        Ok((control, self.record.map_or(!control.admits(), |record| record.is_open)))
    }
}
