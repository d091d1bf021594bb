//! What the state root is the digest of: a list of parts, each behind its tag.

use std::io::{Error, ErrorKind, Read, Result as IoResult};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;

const ROOT_CONTEXT: &str = "walras 2026 state root v4";

/// A part of the state root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RootPart {
    /// The part under this root: 0 the assets, otherwise the place of custody with this tag.
    pub tag: u8,
    /// The root.
    pub root: Digest,
}

/// The parts of the state root, by tag, each once. Their encoding is what is hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize)]
pub struct RootParts(Vec<RootPart>);

impl BorshDeserialize for RootParts {
    fn deserialize_reader<R: Read>(from: &mut R) -> IoResult<RootParts> {
        let parts = Vec::<RootPart>::deserialize_reader(from)?;
        match parts.is_sorted_by(|a, b| a.tag < b.tag) {
            true => Ok(RootParts(parts)),
            false => Err(Error::new(ErrorKind::InvalidData, "root parts are not in the order of their tags")),
        }
    }
}

impl RootPart {
    /// The trie of assets.
    pub const ASSETS: u8 = 0;
    /// The trie of accounts.
    pub const BALANCES: u8 = 1;
    /// The trie of pairs.
    pub const OFFERS: u8 = 2;
    /// Storage of contracts, and what else they see of the chain.
    pub const CONTRACTS: u8 = 3;
    /// The bridge to the payment lane.
    pub const ESCROW: u8 = 4;
    /// The registry of validators.
    pub const STAKES: u8 = 5;
    /// The venues of continuous markets.
    pub const VENUES: u8 = 6;
    /// The constant-product pools.
    pub const POOLS: u8 = 7;
    /// The charter: rules by height, and approvals.
    pub const CHARTER: u8 = 8;
    /// The policies of accounts; a state has it once an account has one.
    pub const KEYS: u8 = 10;
    /// The terms of assets that were listed on the running chain, and which assets close. A chain that lists none has
    /// it once an asset closes.
    pub const LISTINGS: u8 = 11;
    /// What issuers control, and whom they have frozen or admitted; a state has it once there is such an asset.
    pub const CONTROLS: u8 = 12;
    /// The committee's sealing keys, on a chain whose genesis has terms for them.
    pub const SEALS: u8 = 13;
}

impl RootParts {
    /// These parts.
    ///
    /// # Panics
    /// If their tags do not rise: two encodings of one state would have two roots.
    pub fn new(parts: Vec<RootPart>) -> RootParts {
        assert!(parts.is_sorted_by(|a, b| a.tag < b.tag), "tags of root parts rise");
        RootParts(parts)
    }

    /// The state root.
    pub fn root(&self) -> Digest {
        Digest::of(ROOT_CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail"))
    }

    /// The parts, by tag.
    pub fn list(&self) -> &[RootPart] {
        &self.0
    }

    /// The root of the part with this tag, if the chain has it.
    pub fn get(&self, tag: u8) -> Option<Digest> {
        self.0.iter().find(|part| part.tag == tag).map(|part| part.root)
    }

    /// The root of the part that a proof is about, if these are the parts of `root`.
    ///
    /// # Errors
    /// [`ProofFault::OtherRoot`] and [`ProofFault::NoPart`].
    pub(crate) fn part(&self, root: &Digest, tag: u8) -> Result<Digest, ProofFault> {
        if self.root() != *root {
            return Err(ProofFault::OtherRoot);
        }
        self.get(tag).ok_or(ProofFault::NoPart(tag))
    }
}

/// Why a proof is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFault {
    /// The parts do not hash to the root.
    #[error("the proof is for another state root: request the proof of this block")]
    OtherRoot,
    /// The state has no such part.
    #[error("the state has no part with tag {0}: the chain has no such place")]
    NoPart(u8),
    /// A path does not hash to its part.
    #[error("the proof's path does not hash to its root: {0}")]
    Path(#[from] trie::ProofError),
    /// The value is not the one that the path proves.
    #[error("the proof states another value than its path proves")]
    OtherValue,
}

/// Checks that a trie with this root has the value under the key, or nothing under it.
pub(crate) fn check_path<const VALUE: usize>(
    root: &Digest,
    key: &[u8],
    path: &[u8],
    expected: Option<[u8; VALUE]>,
) -> Result<(), ProofFault> {
    let shown = trie::verify(&trie::Root(root.0), key, &trie::Proof::from_bytes(path.to_vec()))?;
    if shown == expected { Ok(()) } else { Err(ProofFault::OtherValue) }
}
