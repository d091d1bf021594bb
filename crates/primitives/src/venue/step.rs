//! One signature for all reports of a step.
//!
//! A venue that signs each report spends most of a fill on it. So the reports of a step are leaves of one tree
//! ([`crate::merkle`]), and the report key signs its root once. It is what members of the payment lane do (Accept,
//! section 3.2). Each report carries the siblings on its path.
//!
//! # The protocol
//!
//! - Upon *a step with fills*: the step's record in the journal has a number. Fill i of the step, from 0, has the leaf
//!   of its buyer at place 2i and that of its seller at 2i + 1. A leaf is index, leaf of the fill, and the account to
//!   which it is reported. Once the record is durable, the key signs network, venue, incarnation, the record's number,
//!   the host's clock, the number of leaves, and the root ([`StepHeader`]). A step without fills signs nothing.
//! - Upon *being told*: compute the root from leaf and path, put it into the header, and verify. So nobody states a
//!   root. Whoever has this has what a report with a signature of its own would say, under the same key.
//! - Upon *two reports of one incarnation*: if they have one index and two leaves, or one step and two headers, they
//!   convict together ([`VenueReport::contradicts`]). It takes no third thing, so each of the two who hold them can.
//! - Upon *a report and the ledger's tree of fills*: as for reports with signatures of their own.
//! - *When*: from the first certified height on of which the next block counts accusations of this form
//!   ([`STEP_REPORTS_RULES`]). Before it, and for steps of more leaves than a tree has, each report is signed itself.
//!   Both forms are valid side by side, and contradict each other.
//!
//! # Properties
//!
//! 1. *It says the same.* A report of a step states index, leaf and account under network, venue and incarnation, as a
//!    single one does. It convicts and claims wherever a single one does.
//! 2. *An index has one leaf*, whatever trees, places or forms it is reported in: else both reports convict.
//! 3. *A step has one header*: clock, number of leaves and root. A second one convicts, with any leaf of each.
//! 4. *Bounded*: a path has at most 20 siblings. Its length and sides follow from the number of leaves, which is
//!    signed, and the place. Other lengths are no report.
//! 5. *Separate*: leaves and nodes are hashed under keys of their own, and under others than those of the lane's trees.
//!    A header begins with a tag of its own.
//! 6. *Deterministic*: the header follows from the journal. The same step after a crash, or of a replay, has the same
//!    bytes; under a new report key, the same header.
//!
//! # Attacks
//!
//! | attack | why it fails |
//! |---|---|
//! | two traders of one step are shown two trees | two headers of one step: either report convicts with the other |
//! | one tree has one index twice, with two leaves | both are reports of one index: they convict |
//! | a single report says otherwise than that of a step | the same |
//! | a path is shown at another place, or is cut or prolonged | its sides and length follow from size and place |
//! | a root of another network, venue, incarnation, step or clock, or of a tree of another size | another message |
//! | an inner node is shown as a leaf, or a leaf of the lane | keys of their own for each |
//! | a path of thousands of siblings makes the ledger hash | it is refused before any hash |
//! | a report of a step goes into an old accusation | its bytes are no single report |
//! | accusations of this form before the rules have them | no ledger counts them, no validator votes for them |
//! | an honest venue is convicted after a crash | what was not durable was not told; what was is signed as before |
//! | an honest venue is convicted after a change of the operator | the header does not name the key |
//! | one pair of reports is a thousand accusations | a pair has one order; a venue is convicted once |
//!
//! # Deviations from Accept
//!
//! - The header states a step and a clock where the lane's states a log position: a step's number is a record's.
//! - Verified roots are not kept: a trader has few reports of one step.
//! - A signature does not state which of the incarnation's report keys it is by: the report does, and the key verifies.

use borsh::{BorshDeserialize, BorshSerialize};

use super::VenueId;
use super::report::{CarriedSignature, FillReport, ReportedFill, SignedReport, StepHeader};
use crate::merkle::{self, Family, Tree};
use crate::{Address, Digest, PublicKey, SecretKey, Signature};

/// The first rules whose ledger judges reports of steps: venues sign steps from then on.
pub const STEP_REPORTS_RULES: u32 = 13;

const FAMILY: Family = Family::VenueReports;
/// What the bytes of a report of a step begin with.
const STEP: u8 = 1;
/// The bytes of a single report; those of a step are never as many.
const SINGLE_BYTES: usize = 164;

/// What a venue says to a trader when an order is executed, with its path to the root that a report key has signed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StepReport {
    /// The fill, and to whom it is reported.
    pub fill: ReportedFill,
    /// The report key.
    pub key: PublicKey,
    /// Its signature on the header of the step.
    pub signature: Signature,
    /// The number of the step.
    pub step: u64,
    /// The host's clock at the step.
    pub clock_ms: u64,
    /// Number of leaves of the step.
    pub size: u32,
    /// The place of this leaf.
    pub place: u32,
    /// The siblings on its path, the lowest first.
    pub path: Vec<Digest>,
}

impl SignedReport for StepReport {
    fn fill(&self) -> ReportedFill {
        self.fill
    }

    fn key(&self) -> PublicKey {
        self.key
    }

    fn header(&self) -> Option<StepHeader> {
        let ReportedFill { venue, incarnation, .. } = self.fill;
        let (leaf, size, place) = (leaf_of(&self.fill), self.size as usize, self.place as usize);
        let root = merkle::root_of(FAMILY, leaf, size, place, &self.path)?;
        Some(StepHeader { venue, incarnation, step: self.step, clock_ms: self.clock_ms, size: self.size, root })
    }

    fn is_plain(&self) -> bool {
        merkle::path_length(FAMILY, self.size as usize, self.place as usize) == Some(self.path.len())
    }

    fn carried(&self, network: &Digest) -> CarriedSignature {
        // Nobody signs an empty message: what has no header is no report.
        let message = self.header().map(|header| header.signing_bytes(network)).unwrap_or_default();
        CarriedSignature { key: self.key, signature: self.signature, message }
    }
}

/// The leaf of a report in the tree of its step.
fn leaf_of(fill: &ReportedFill) -> Digest {
    let mut bytes = [0; 60];
    bytes[..8].copy_from_slice(&fill.index.to_le_bytes());
    bytes[8..40].copy_from_slice(&fill.leaf.0);
    bytes[40..].copy_from_slice(&fill.account.0);
    merkle::leaf(FAMILY, &bytes)
}

/// All reports of a step, under one signature.
#[derive(Clone, Debug)]
pub struct SignedStep {
    header: StepHeader,
    key: PublicKey,
    signature: Signature,
    tree: Tree,
}

impl SignedStep {
    /// Whether a tree can have so many leaves.
    pub fn holds(leaves: usize) -> bool {
        (1..=FAMILY.leaves_max()).contains(&leaves)
    }

    /// Signs the step of an incarnation with this number and clock. Its leaves, in their order, are the index and leaf
    /// of a fill and the account to which it is reported.
    ///
    /// # Panics
    /// If no tree can have so many leaves ([`SignedStep::holds`]).
    pub fn new(
        network: &Digest,
        (venue, incarnation): (VenueId, u32),
        (step, clock_ms): (u64, u64),
        leaves: &[(u64, Digest, Address)],
        key: &SecretKey,
    ) -> SignedStep {
        assert!(SignedStep::holds(leaves.len()), "a step of {} leaves is signed report by report", leaves.len());
        let of = |(index, leaf, account): &(u64, Digest, Address)| {
            leaf_of(&ReportedFill { venue, incarnation, index: *index, leaf: *leaf, account: *account })
        };
        let tree = Tree::new(FAMILY, leaves.iter().map(of).collect());
        let header = StepHeader { venue, incarnation, step, clock_ms, size: leaves.len() as u32, root: tree.root() };
        let signature = key.sign(&header.signing_bytes(network));
        SignedStep { header, key: key.public(), signature, tree }
    }

    /// What is signed.
    pub fn header(&self) -> &StepHeader {
        &self.header
    }

    /// The report at a place, whose index and leaf of a fill, and account, are these.
    pub fn report(&self, place: usize, (index, leaf, account): (u64, Digest, Address)) -> StepReport {
        let StepHeader { venue, incarnation, step, clock_ms, size, .. } = self.header;
        StepReport {
            fill: ReportedFill { venue, incarnation, index, leaf, account },
            key: self.key,
            signature: self.signature,
            step,
            clock_ms,
            size,
            place: place as u32,
            path: self.tree.path(place),
        }
    }
}

/// A report of either form.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum VenueReport {
    /// One with a signature of its own.
    Single(FillReport),
    /// One of a step.
    Step(StepReport),
}

impl VenueReport {
    /// Its bytes as doors, sessions and files have them: those of a [`FillReport`] alone, or 1 and a [`StepReport`].
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            VenueReport::Single(report) => borsh::to_vec(report),
            VenueReport::Step(report) => borsh::to_vec(&(STEP, report)),
        }
        .expect("writing to memory cannot fail")
    }

    /// The report of these bytes.
    ///
    /// # Errors
    /// If they are no report.
    pub fn of_bytes(bytes: &[u8]) -> borsh::io::Result<VenueReport> {
        match bytes {
            single if single.len() == SINGLE_BYTES => borsh::from_slice(single).map(VenueReport::Single),
            [STEP, step @ ..] => {
                let report: StepReport = borsh::from_slice(step)?;
                let fault = "the path of the report does not fit the number of leaves and the place";
                let fits = report.is_plain().then_some(VenueReport::Step(report));
                fits.ok_or_else(|| borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, fault))
            }
            _ => Err(borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, "these bytes are no report of a fill")),
        }
    }

    fn form(&self) -> &dyn SignedReport {
        match self {
            VenueReport::Single(report) => report,
            VenueReport::Step(report) => report,
        }
    }
}

impl SignedReport for VenueReport {
    fn fill(&self) -> ReportedFill {
        self.form().fill()
    }

    fn key(&self) -> PublicKey {
        self.form().key()
    }

    fn header(&self) -> Option<StepHeader> {
        self.form().header()
    }

    fn is_plain(&self) -> bool {
        self.form().is_plain()
    }

    fn carried(&self, network: &Digest) -> CarriedSignature {
        self.form().carried(network)
    }
}
