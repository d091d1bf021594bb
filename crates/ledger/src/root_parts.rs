//! What the state root is the digest of: a list of parts, each behind its tag.

use std::io::{Error, ErrorKind, Read, Result as IoResult};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;

const ROOT_CONTEXT: &str = "walras 2026 state root v4";

/// A part of the state root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RootPart {
    /// What it is the root of: 0 the assets, otherwise the place of custody with this tag.
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

impl RootParts {
    /// These parts, in the order of their tags.
    pub(crate) fn new(parts: Vec<RootPart>) -> RootParts {
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
