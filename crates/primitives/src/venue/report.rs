//! Reports of fills, and possession of trading keys.

use borsh::{BorshDeserialize, BorshSerialize};

use super::{FillTree, PathFault, VenueId};
use crate::{Address, Digest, PublicKey, SecretKey, Signature};

const REPORT_TAG: &[u8] = b"walras venue report v1\0";
const POSSESSION_TAG: &[u8] = b"walras venue trading key v1\0";

/// What a venue says to a trader when an order is executed, signed by a report key of the incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FillReport {
    /// The venue.
    pub venue: VenueId,
    /// Its incarnation.
    pub incarnation: u32,
    /// The index of the fill in the tree of the incarnation.
    pub index: u64,
    /// The leaf of the fill.
    pub leaf: Digest,
    /// The account of the trader to whom the report is made.
    pub account: Address,
    /// The report key.
    pub key: PublicKey,
    /// Its signature.
    pub signature: Signature,
}

impl FillReport {
    /// A report that is signed.
    pub fn new(
        network: &Digest,
        (venue, incarnation, index): (VenueId, u32, u64),
        leaf: Digest,
        account: Address,
        key: &SecretKey,
    ) -> FillReport {
        let report =
            FillReport { venue, incarnation, index, leaf, account, key: key.public(), signature: Signature([0; 64]) };
        FillReport { signature: key.sign(&report.signing_bytes(network)), ..report }
    }

    /// The signed bytes.
    pub fn signing_bytes(&self, network: &Digest) -> Vec<u8> {
        let FillReport { venue, incarnation, index, leaf, account, .. } = self;
        let mut bytes = REPORT_TAG.to_vec();
        (network, venue, incarnation, index, leaf, account)
            .serialize(&mut bytes)
            .expect("writing to memory cannot fail");
        bytes
    }

    /// Whether its key signed it for this network.
    pub fn is_signed(&self, network: &Digest) -> bool {
        self.key.verify(&self.signing_bytes(network), &self.signature)
    }

    /// Whether another signed report of the same index has another leaf: both together convict.
    pub fn contradicts(&self, other: &FillReport) -> bool {
        let name = |one: &FillReport| (one.venue, one.incarnation, one.index);
        name(self) == name(other) && self.leaf != other.leaf
    }

    /// Whether the tree of its incarnation has another leaf at its index, as this leaf and path prove.
    ///
    /// # Errors
    /// [`PathFault`] if the path does not prove the leaf.
    pub fn is_contradicted(&self, tree: &FillTree, leaf: &Digest, path: &[Digest]) -> Result<bool, PathFault> {
        tree.verify(self.index, leaf, path)?;
        Ok(*leaf != self.leaf)
    }
}

/// What a trading key signs to show that it agrees to trade for an account at a venue: nobody can claim the key of
/// somebody else.
pub fn possession_bytes(network: &Digest, venue: VenueId, account: &Address, key: &PublicKey) -> Vec<u8> {
    let mut bytes = POSSESSION_TAG.to_vec();
    (network, venue, account, key).serialize(&mut bytes).expect("writing to memory cannot fail");
    bytes
}
