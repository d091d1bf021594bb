//! Reports of fills, and possession of trading keys.

use borsh::{BorshDeserialize, BorshSerialize};

use super::{FillTree, PathFault, VenueId};
use crate::{Address, Digest, PublicKey, SecretKey, Signature};

const HEADER_TAG: &[u8] = b"walras venue step v1\0";
const REPORT_TAG: &[u8] = b"walras venue report v1\0";
const POSSESSION_TAG: &[u8] = b"walras venue trading key v1\0";

/// What a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReportedFill {
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
}

/// A signature that an operation carries beside that of its sender.
pub struct CarriedSignature {
    pub(crate) key: PublicKey,
    pub(crate) signature: Signature,
    pub(crate) message: Vec<u8>,
}

/// What a report key signs of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize)]
pub struct StepHeader {
    /// The venue.
    pub venue: VenueId,
    /// Its incarnation.
    pub incarnation: u32,
    /// The number of the step's record in the journal of the incarnation.
    pub step: u64,
    /// The host's clock at the step, in milliseconds since 1970.
    pub clock_ms: u64,
    /// Number of leaves.
    pub size: u32,
    /// The root of the tree over them.
    pub root: Digest,
}

impl StepHeader {
    /// The signed bytes.
    pub fn signing_bytes(&self, network: &Digest) -> Vec<u8> {
        let mut bytes = HEADER_TAG.to_vec();
        (network, self).serialize(&mut bytes).expect("writing to memory cannot fail");
        bytes
    }
}

/// A report of a fill, however it is signed. Whatever judges reports asks for no more.
pub trait SignedReport {
    /// What it says.
    fn fill(&self) -> ReportedFill;

    /// The report key that it names.
    fn key(&self) -> PublicKey;

    /// The header of its step; `None` if it is not of a step, or its path does not fit.
    fn header(&self) -> Option<StepHeader>;

    /// Whether its bytes can be a report.
    fn is_plain(&self) -> bool;

    /// What its key has signed for this network if it is genuine.
    fn carried(&self, network: &Digest) -> CarriedSignature;

    /// Whether its key signed it for this network.
    fn is_signed(&self, network: &Digest) -> bool {
        let CarriedSignature { key, signature, message } = self.carried(network);
        self.is_plain() && key.verify(&message, &signature)
    }

    /// Whether two signed reports convict together: of one index with two leaves, or of one step with two headers.
    fn contradicts(&self, other: &dyn SignedReport) -> bool {
        let (own, theirs) = (self.fill(), other.fill());
        let differ_in_fill = own.index == theirs.index && own.leaf != theirs.leaf;
        let differ_in_step = || match (self.header(), other.header()) {
            (Some(own), Some(theirs)) => own.step == theirs.step && own != theirs,
            _ => false,
        };
        (own.venue, own.incarnation) == (theirs.venue, theirs.incarnation) && (differ_in_fill || differ_in_step())
    }

    /// Which of two that convict together stands first, so that one pair has one encoding: the one with the lower leaf,
    /// or else the one with the lower root, clock and number of leaves.
    fn rank(&self) -> (Digest, Option<(Digest, u64, u32)>) {
        (self.fill().leaf, self.header().map(|header| (header.root, header.clock_ms, header.size)))
    }

    /// Whether the tree of its incarnation has another leaf at its index, as this leaf and path prove.
    ///
    /// # Errors
    /// [`PathFault`] if the path does not prove the leaf.
    fn is_contradicted(&self, tree: &FillTree, leaf: &Digest, path: &[Digest]) -> Result<bool, PathFault> {
        let fill = self.fill();
        tree.verify(fill.index, leaf, path)?;
        Ok(*leaf != fill.leaf)
    }
}

/// What a venue says to a trader when an order is executed, signed by a report key of the incarnation: the
/// form with a signature of its own.
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
}

impl SignedReport for FillReport {
    fn fill(&self) -> ReportedFill {
        let FillReport { venue, incarnation, index, leaf, account, .. } = *self;
        ReportedFill { venue, incarnation, index, leaf, account }
    }

    fn key(&self) -> PublicKey {
        self.key
    }

    fn header(&self) -> Option<StepHeader> {
        None
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn carried(&self, network: &Digest) -> CarriedSignature {
        CarriedSignature { key: self.key, signature: self.signature, message: self.signing_bytes(network) }
    }
}

/// What a trading key signs to show that it agrees to trade for an account at a venue: nobody can claim the key of
/// somebody else.
pub fn possession_bytes(network: &Digest, venue: VenueId, account: &Address, key: &PublicKey) -> Vec<u8> {
    let mut bytes = POSSESSION_TAG.to_vec();
    (network, venue, account, key).serialize(&mut bytes).expect("writing to memory cannot fail");
    bytes
}
