//! The inputs and outputs of the machine of protocol R.

use super::*;

/// An output that its owner contests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContestedOutput {
    /// The output.
    pub output: SpentOutput,
    /// Its home epoch.
    pub home: HomeEpoch,
    /// Its owner.
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
        let output = SpentOutput { id, asset, amount: crate::layout::read_amount(reader)? };
        Ok(ContestedOutput { output, home: reader.u64()?, owner: reader.key()? })
    }
}

/// A fact about contested outputs that a block commits. The creator of a fact has verified the signatures.
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
        /// The validator.
        validator: u8,
        /// The payment.
        payment: Arc<PaymentBody>,
    },
    /// A validator reports that it had accepted no payment of the output before it barred the candidates. A view that
    /// names a payment brings its certificate, and is [`CaseFact::CertifiedDigest`].
    View {
        /// The contested output.
        case: OutputId,
        /// The validator's committee: the home of the output or the one after it.
        committee: HomeEpoch,
        /// The validator.
        validator: u8,
    },
}

impl CaseFact {
    /// The order inside a block: the results do not depend on the original order.
    pub(super) fn rank(&self) -> (u8, OutputId, HomeEpoch, u8, Digest) {
        let none = Digest([0; 32]);
        match self {
            CaseFact::Certified(body) => (0, OutputId(none.0), body.payment.home, 0, body.digest),
            CaseFact::CertifiedDigest(home, digest) => (1, OutputId(none.0), *home, 0, *digest),
            CaseFact::Open(contested) => (2, contested.output.id, contested.home, 0, none),
            CaseFact::Vote { case, validator, payment } => (3, *case, 0, *validator, payment.digest),
            CaseFact::View { case, committee, validator } => (4, *case, *committee, *validator, none),
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
    /// The ledger saw a certificate that spends one of its outputs.
    Child,
}

/// The fate of a contested output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This payment of it stands.
    Confirmed(Digest, ConfirmedBy),
    /// No payment of it can be certified, except perhaps void ones: it is credited in full.
    Freed,
    /// No payment of it is settled or spent: it is credited minus a penalty, and all candidates are void.
    Lapsed,
    /// Nothing was decided in time: nothing is credited, and nothing is void. A certificate may still come.
    Expired,
}

impl Verdict {
    /// The kind of end.
    pub fn end(self) -> CaseEnd {
        match self {
            Verdict::Confirmed(..) => CaseEnd::Confirmed,
            Verdict::Freed => CaseEnd::Freed,
            Verdict::Lapsed => CaseEnd::Lapsed,
            Verdict::Expired => CaseEnd::Expired,
        }
    }
}

/// What a block changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseEvent {
    /// A case is open: validators of its home vote.
    Opened(ContestedOutput),
    /// Candidates are fixed: validators bar them and post views.
    Fixed(OutputId, Vec<Arc<PaymentBody>>),
    /// A payment of a contested output stands: its outputs to accounts are due, once.
    Stands(Arc<PaymentBody>),
    /// A payment stands of which an input was contested: its outputs to keys exist, whatever else proves them.
    Proven(Arc<PaymentBody>),
    /// A case is closed.
    Ruled(ContestedOutput, Verdict),
    /// More than f validators must be Byzantine: this payment contradicts an earlier decision. Nothing is paid for
    /// it. The lane must be halted.
    Alarm(Digest),
}
