//! What the machine of protocol R is told, and what it says.

use super::*;

/// An output that its owner contests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContestedOutput {
    /// What it is.
    pub output: SpentOutput,
    /// Its home.
    pub home: HomeEpoch,
    /// Whose it is.
    pub owner: PublicKey,
}

impl ContestedOutput {
    /// Its exit: E(o).
    pub fn exit(&self, network: Digest) -> Payment {
        Payment::exit(network, self.home, self.owner, self.output)
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.output.id.0);
        to.extend(self.output.asset.0.to_le_bytes());
        to.extend(self.output.amount.to_le_bytes());
        to.extend(self.home.to_le_bytes());
        to.extend(self.owner.0);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<ContestedOutput, LaneRefusal> {
        let (id, asset) = (OutputId(reader.array()?), primitives::AssetId(reader.u32()?));
        let output = SpentOutput { id, asset, amount: crate::payment::read_amount(reader)? };
        Ok(ContestedOutput { output, home: reader.u64()?, owner: reader.key()? })
    }
}

/// Something about contested outputs that a block commits. Whoever makes one has checked the signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseFact {
    /// A certificate of a payment.
    Certified(Arc<PaymentBody>),
    /// A certificate of a payment of which only the digest is known, as in the proof of an output.
    CertifiedDigest(HomeEpoch, Digest),
    /// A case is opened.
    Open(ContestedOutput),
    /// A validator of the home committee votes with its signature on a payment of the output.
    Vote {
        /// The contested output.
        case: OutputId,
        /// Who.
        validator: u8,
        /// For what.
        payment: Arc<PaymentBody>,
    },
    /// A validator says which candidates it had accepted before it barred them.
    View {
        /// The contested output.
        case: OutputId,
        /// The validator's committee: the home of the output or the one after it.
        committee: HomeEpoch,
        /// Who.
        validator: u8,
        /// What it saw, among the candidates.
        seen: BTreeSet<Digest>,
    },
}

impl CaseFact {
    /// The order inside a block: nothing depends on who comes first.
    pub(super) fn rank(&self) -> (u8, OutputId, HomeEpoch, u8, Digest) {
        let none = Digest([0; 32]);
        match self {
            CaseFact::Certified(body) => (0, OutputId(none.0), body.payment.home, 0, body.digest),
            CaseFact::CertifiedDigest(home, digest) => (1, OutputId(none.0), *home, 0, *digest),
            CaseFact::Open(contested) => (2, contested.output.id, contested.home, 0, none),
            CaseFact::Vote { case, validator, payment } => (3, *case, 0, *validator, payment.digest),
            CaseFact::View { case, committee, validator, .. } => (4, *case, *committee, *validator, none),
        }
    }
}

/// Why a payment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfirmedBy {
    /// q validators voted for it.
    Votes,
    /// The ledger saw its certificate.
    Certificate,
    /// The ledger saw a certificate that spends an output of it.
    Child,
    /// f+1 validators of one committee had accepted it.
    Views,
}

/// What becomes of a contested output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This payment of it stands.
    Confirmed(Digest, ConfirmedBy),
    /// No payment of it can be certified, but perhaps void ones: it is credited in full.
    Freed,
    /// No payment of it is settled or spent: it is credited less a penalty, and all candidates are void.
    Lapsed,
}

/// What a block changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseEvent {
    /// A case is open: validators of its home vote.
    Opened(ContestedOutput),
    /// Candidates are fixed: validators bar them and post views.
    Fixed(OutputId, Vec<Arc<PaymentBody>>),
    /// A payment of a contested output stands: what it pays to accounts is due, once.
    Stands(Arc<PaymentBody>),
    /// A case is closed.
    Ruled(ContestedOutput, Verdict),
    /// More than f validators must be Byzantine: this payment contradicts what was decided. Nothing is paid for it. The
    /// lane is to be halted.
    Alarm(Digest),
}
