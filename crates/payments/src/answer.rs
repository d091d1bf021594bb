//! A validator's answer: the signature of a root, and the path to it.

use primitives::merkle::{self, Family, Tree};
use primitives::{Digest, Signature};

use crate::layout::Reader;
use crate::{Claim, LaneCommittee, LaneRefusal, RootHeader};

/// The most leaves of one tree.
pub const LEAVES_MAX: usize = Family::LaneSigned.leaves_max();

/// The root and the path of each leaf of a tree of digests, in the form that a validator signs.
///
/// # Panics
/// If there are none.
pub fn signing_tree(digests: &[Digest]) -> (Digest, Vec<Vec<Digest>>) {
    let leaves = digests.iter().map(|digest| merkle::leaf(Family::LaneSigned, &digest.0)).collect();
    let tree = Tree::new(Family::LaneSigned, leaves);
    (tree.root(), (0..digests.len()).map(|index| tree.path(index)).collect())
}

/// One validator's signature on one digest: the signature of a root and the path to it. Under the naive scheme the
/// tree has one leaf and the path is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneAnswer {
    /// The signer's index.
    pub validator: u8,
    /// Number of leaves of its tree.
    pub size: u32,
    /// The index of the digest in it.
    pub index: u32,
    /// Length of the signer's log when it closed the tree.
    pub position: u64,
    /// Signature on the bytes of the [`RootHeader`].
    pub signature: Signature,
    /// Siblings from the leaf to the root.
    pub path: Vec<Digest>,
}

impl LaneAnswer {
    /// Writes its layout.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.push(self.validator);
        to.extend(self.size.to_le_bytes());
        to.extend(self.index.to_le_bytes());
        to.extend(self.position.to_le_bytes());
        to.extend(self.signature.0);
        self.path.iter().for_each(|digest| to.extend(digest.0));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<LaneAnswer, LaneRefusal> {
        let (validator, size, index) = (reader.u8()?, reader.u32()?, reader.u32()?);
        let (position, signature) = (reader.u64()?, reader.signature()?);
        let length =
            merkle::path_length(Family::LaneSigned, size as usize, index as usize).ok_or(LaneRefusal::WrongPath)?;
        let path = (0..length).map(|_| reader.digest()).collect::<Result<_, _>>()?;
        Ok(LaneAnswer { validator, size, index, position, signature, path })
    }

    /// Parses an answer that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] or [`LaneRefusal::WrongPath`] for anything that [`LaneAnswer::write`] does not write.
    pub fn parse(bytes: &[u8]) -> Result<LaneAnswer, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let answer = LaneAnswer::read(&mut reader)?;
        reader.end()?;
        Ok(answer)
    }

    /// The header that the validator must have signed for this to be its answer. The verifier computes network,
    /// epoch, kind and shard itself, so that a signature of another kind or place is invalid.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongPath`] or [`LaneRefusal::WrongSigners`] if no such header exists.
    pub fn header(&self, committee: &LaneCommittee, claim: &Claim<'_>) -> Result<RootHeader, LaneRefusal> {
        let leaf = merkle::leaf(Family::LaneSigned, &claim.digest.0);
        let (size, index) = (self.size as usize, self.index as usize);
        let root = merkle::root_of(Family::LaneSigned, leaf, size, index, &self.path).ok_or(LaneRefusal::WrongPath)?;
        Ok(RootHeader {
            network: committee.network(),
            epoch: committee.epoch(),
            validator: self.validator,
            shard: committee.shard_of(self.validator, claim.owner)?,
            kind: claim.kind,
            size: self.size,
            position: self.position,
            root,
        })
    }
}
