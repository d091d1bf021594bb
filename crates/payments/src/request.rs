//! The requests of clients to a validator, and the proofs of inputs.

use primitives::merkle::{self, Family};
use primitives::{Digest, PublicKey, SecretKey, Signature};

use crate::answer::LEAVES_MAX;
use crate::layout::Reader;
use crate::message::query_message;
use crate::payment::{INPUTS_MAX, OUTPUTS_MAX, PAYMENT_BYTES_MAX};
use crate::{
    CheckBudget, Claim, ContestedOutput, HomeEpoch, LaneCommittee, LaneRefusal, Output, OutputId, PaymentCertificate,
    PaymentSummary, PaymentView, RootCache, StatementKind, owner_message,
};

const SPEND: u8 = 1;
const SETTLE: u8 = 2;
pub(crate) const BATCH: u8 = 3;
const SPENDER: u8 = 4;
const UNDER_BLS: u8 = 5;
/// Bytes of the largest answer: 12 digests lead from one of 4,096 leaves to the root.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 + 4 + 4 + 8 + 64 + 12 * 32;

/// Bytes of the largest request of one payment where certificates have at most `quorum` answers. A shell closes a
/// connection that announces more.
///
/// Other forms of a certificate are smaller than this many answers, except for lists of excluded leaves, which are
/// short in an honest broker's batch. If a certificate's lists make a request larger than this, make a new
/// certificate without the broker.
pub fn request_bytes_max(quorum: usize) -> usize {
    let proof = 1 + PaymentSummary::BYTES + 1 + 4 * 32 + 1 + quorum * ANSWER_BYTES_MAX;
    1 + PAYMENT_BYTES_MAX + 64 + INPUTS_MAX * proof
}

/// Proof that a payment created an output and that a quorum confirmed the payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidProof {
    /// The payment.
    pub summary: PaymentSummary,
    /// The place of the output in it.
    pub index: u8,
    /// The path from the output to `summary.outputs_root`.
    pub path: Vec<Digest>,
    /// The certificate of confirmations.
    pub certificate: PaymentCertificate,
}

/// The bytes of the largest certificate that a shard keeps: of 171 answers, a quorum of 256 validators.
pub(crate) const CERTIFICATE_BYTES_MAX: usize = 120 << 10;

const _: () = assert!(171 * ANSWER_BYTES_MAX < CERTIFICATE_BYTES_MAX);
// A view that brings such a certificate fits into a post.
const _: () = assert!(CERTIFICATE_BYTES_MAX + 2 * ANSWER_BYTES_MAX < primitives::LANE_POST_BYTES_MAX);

/// A payment's summary and its certificate: what a shard keeps of each payment that it acknowledges or accepts an
/// output of, and what a view that names the payment brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedPayment {
    /// The payment.
    pub summary: PaymentSummary,
    /// The certificate of confirmations.
    pub certificate: PaymentCertificate,
}

impl CertifiedPayment {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        self.summary.write(to);
        self.certificate.write(to);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<CertifiedPayment, LaneRefusal> {
        Ok(CertifiedPayment { summary: PaymentSummary::read(reader)?, certificate: PaymentCertificate::read(reader)? })
    }

    /// The digest of the payment.
    pub fn digest(&self, network: &Digest) -> Digest {
        self.summary.digest(network)
    }
}

/// A payment, its digest and a certificate that somebody shows for it. The digest is computed once.
#[derive(Clone, Copy)]
pub(crate) struct ShownCertificate<'a> {
    pub(crate) digest: Digest,
    pub(crate) summary: &'a PaymentSummary,
    pub(crate) certificate: &'a PaymentCertificate,
}

impl<'a> ShownCertificate<'a> {
    pub(crate) fn new(
        network: &Digest,
        summary: &'a PaymentSummary,
        certificate: &'a PaymentCertificate,
    ) -> ShownCertificate<'a> {
        ShownCertificate { digest: summary.digest(network), summary, certificate }
    }

    /// Verifies it as a certificate of `kind`.
    pub(crate) fn verify(
        &self,
        committee: &LaneCommittee,
        kind: StatementKind,
        roots: &mut RootCache,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        if committee.epoch() != self.summary.home {
            return Err(LaneRefusal::UnknownCommittee(self.summary.home));
        }
        let claim = Claim { kind, owner: &self.summary.owner, digest: &self.digest };
        roots.verify_certificate(committee, &claim, self.certificate, budget)
    }

    /// Its bytes, if they are few enough to be kept and to fit into a view.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, LaneRefusal> {
        let mut bytes = Vec::with_capacity(2_048);
        self.summary.write(&mut bytes);
        self.certificate.write(&mut bytes);
        let most = PaymentSummary::BYTES + CERTIFICATE_BYTES_MAX;
        if bytes.len() <= most {
            Ok(bytes)
        } else {
            Err(LaneRefusal::Malformed("the certificate is too large to keep"))
        }
    }
}

impl PaidProof {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        self.summary.write(to);
        to.push(self.index);
        self.path.iter().for_each(|digest| to.extend(digest.0));
        self.certificate.write(to);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<PaidProof, LaneRefusal> {
        let (summary, index) = (PaymentSummary::read(reader)?, reader.u8()?);
        if usize::from(summary.outputs) > OUTPUTS_MAX {
            return Err(LaneRefusal::Malformed("a payment has 1 to 16 outputs"));
        }
        let length = merkle::path_length(Family::LaneOutputs, summary.outputs.into(), index.into())
            .ok_or(LaneRefusal::WrongPath)?;
        let path = (0..length).map(|_| reader.digest()).collect::<Result<_, _>>()?;
        Ok(PaidProof { summary, index, path, certificate: PaymentCertificate::read(reader)? })
    }

    /// The id of the output that this proves, if the payment created `output` there. No signature is checked.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongPath`] if the payment did not create it there.
    pub fn id_of(&self, network: &Digest, output: &Output) -> Result<OutputId, LaneRefusal> {
        self.id_under(&self.summary.digest(network), output)
    }

    /// The same, under the payment's digest.
    pub(crate) fn id_under(&self, digest: &Digest, output: &Output) -> Result<OutputId, LaneRefusal> {
        let (size, index) = (self.summary.outputs.into(), self.index.into());
        let root = merkle::root_of(Family::LaneOutputs, output.leaf(), size, index, &self.path);
        if root != Some(self.summary.outputs_root) {
            return Err(LaneRefusal::WrongPath);
        }
        Ok(OutputId::of_payment(self.summary.into, digest, self.index))
    }

    /// Verifies that a quorum of `committee` confirmed the payment.
    ///
    /// # Errors
    /// [`LaneRefusal::UnknownCommittee`] if the payment is of another home; otherwise as for
    /// [`RootCache::verify_certificate`].
    pub fn verify(
        &self,
        committee: &LaneCommittee,
        roots: &mut RootCache,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        verify_claim(committee, StatementKind::Confirmation, &self.summary, &self.certificate, roots, budget)
    }
}

/// Verifies a certificate of `kind` over a payment.
pub(crate) fn verify_claim(
    committee: &LaneCommittee,
    kind: StatementKind,
    summary: &PaymentSummary,
    certificate: &PaymentCertificate,
    roots: &mut RootCache,
    budget: &mut CheckBudget,
) -> Result<(), LaneRefusal> {
    ShownCertificate::new(&committee.network(), summary, certificate).verify(committee, kind, roots, budget)
}

/// The proof that an input exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputProof {
    /// The ledger created it: genesis or deposit. The validator knows it from certified blocks.
    Ledger,
    /// A payment created it.
    Payment(Box<PaidProof>),
}

impl OutputProof {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self {
            OutputProof::Ledger => to.push(0),
            OutputProof::Payment(proof) => {
                to.push(1);
                proof.write(to);
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<OutputProof, LaneRefusal> {
        match reader.u8()? {
            0 => Ok(OutputProof::Ledger),
            1 => PaidProof::read(reader).map(|proof| OutputProof::Payment(Box::new(proof))),
            _ => Err(LaneRefusal::Malformed("an input is proved by the ledger (0) or by a payment (1)")),
        }
    }
}

/// The request to confirm a payment: `1 · payment · owner's signature 64 · a proof for each input`.
pub fn spend_request(payment: &[u8], signature: &Signature, proofs: &[OutputProof]) -> Vec<u8> {
    let mut bytes = vec![SPEND];
    bytes.extend(payment);
    bytes.extend(signature.0);
    proofs.iter().for_each(|proof| proof.write(&mut bytes));
    bytes
}

/// The request to acknowledge a certificate: `2 · summary · certificate`. Anyone may send it.
pub fn settle_request(summary: &PaymentSummary, certificate: &PaymentCertificate) -> Vec<u8> {
    let mut bytes = vec![SETTLE];
    summary.write(&mut bytes);
    certificate.write(&mut bytes);
    bytes
}

/// How a client wants its answer signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnswerScheme {
    /// The shard's key, in a tree over answers.
    #[default]
    Tree,
    /// The shard's BLS key, for an aggregate.
    Bls,
    /// The validator's share of the group's secret.
    Share,
}

impl AnswerScheme {
    /// The request for an answer under this scheme: `5 · scheme 1 (2 BLS key, 3 share) · request`; for a tree it is
    /// unchanged.
    pub fn ask(self, request: &[u8]) -> Vec<u8> {
        let head: &[u8] = match self {
            AnswerScheme::Tree => &[],
            AnswerScheme::Bls => &[UNDER_BLS, 2],
            AnswerScheme::Share => &[UNDER_BLS, 3],
        };
        [head, request].concat()
    }

    /// Splits a client's request into its scheme and the rest.
    pub(crate) fn split(bytes: &[u8]) -> Result<(AnswerScheme, &[u8]), LaneRefusal> {
        match bytes {
            [UNDER_BLS, 2, request @ ..] => Ok((AnswerScheme::Bls, request)),
            [UNDER_BLS, 3, request @ ..] => Ok((AnswerScheme::Share, request)),
            [UNDER_BLS, ..] => Err(LaneRefusal::Malformed("an answer is under a BLS key (2) or a share (3)")),
            request => Ok((AnswerScheme::Tree, request)),
        }
    }
}

/// The query for the payment that spends an output: `4 · home 8 · owner 32 · output 32 · owner's signature 64`. A
/// restored wallet sends it before it spends.
pub fn spender_request(network: &Digest, home: HomeEpoch, key: &SecretKey, output: &OutputId) -> Vec<u8> {
    let mut bytes = vec![SPENDER];
    bytes.extend(home.to_le_bytes());
    bytes.extend(key.public().0);
    bytes.extend(output.0);
    bytes.extend(key.sign(&query_message(network, home, output)).0);
    bytes
}

/// A payment that a validator is bound to, with the owner's signature as the validator got it. The signature is zeros
/// for an exit that someone else asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSpender {
    /// The payment's encoding.
    pub payment: Vec<u8>,
    /// Its owner's signature.
    pub signature: Signature,
}

/// Why an answer about a spend can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendGround {
    /// The owner signed the payment: nobody can forge it.
    OwnerSigned,
    /// It is the exit that the wallet computes itself, without the owner's signature. Only validators' signatures on it
    /// say that it was made: f+1 of them, so that one is correct.
    Exit,
}

impl KnownSpender {
    /// Why the payment can be believed to spend this very output of this owner; `None` if it cannot. Anything else is
    /// no answer: it must not be stored.
    pub fn ground(&self, network: &Digest, of: &ContestedOutput) -> Option<SpendGround> {
        let payment = PaymentView::parse(&self.payment).ok()?;
        let is_of = payment.is_of(network) && payment.home() == of.home && payment.owner() == of.owner;
        if !is_of || !payment.inputs().any(|input| input == of.output) {
            return None;
        }
        let message = owner_message(network, of.home, &payment.digest());
        if of.owner.verify(&message, &self.signature) {
            return Some(SpendGround::OwnerSigned);
        }
        (payment.to_payment() == of.exit(*network)).then_some(SpendGround::Exit)
    }
}

/// A request to confirm a payment. Proofs are parsed after all cheap checks.
pub(crate) struct SpendRequest<'a> {
    pub(crate) payment: PaymentView<'a>,
    pub(crate) signature: Signature,
    /// The bytes of both.
    pub(crate) signed: &'a [u8],
    pub(crate) proofs: Proofs<'a>,
}

/// A parsed request.
pub(crate) enum RequestView<'a> {
    Spend(SpendRequest<'a>),
    Settle {
        summary: PaymentSummary,
        certificate: PaymentCertificate,
    },
    /// Requests to confirm payments, of which a broker made one tree.
    Batch(Vec<&'a [u8]>),
    /// A query for the payment that spends an output of this owner.
    Spender {
        home: HomeEpoch,
        owner: PublicKey,
        output: OutputId,
        signature: Signature,
    },
}

/// Proofs of the inputs of a payment, not yet parsed.
#[derive(Clone, Copy)]
pub(crate) struct Proofs<'a>(Reader<'a>);

impl Proofs<'_> {
    /// Whether the first input is proved by the ledger.
    pub(crate) fn begin_with_ledger(&self) -> bool {
        let mut reader = self.0;
        reader.u8() == Ok(0)
    }

    pub(crate) fn read(&self, inputs: usize) -> Result<Vec<OutputProof>, LaneRefusal> {
        let mut reader = self.0;
        let proofs = (0..inputs).map(|_| OutputProof::read(&mut reader)).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(proofs)
    }
}

impl<'a> RequestView<'a> {
    /// The key in whose name it is sent; of a batch, that of its first payment. It is unproved.
    pub(crate) fn owner(&self) -> Result<PublicKey, LaneRefusal> {
        match self {
            RequestView::Spend(spend) => Ok(spend.payment.owner()),
            RequestView::Settle { summary, .. } => Ok(summary.owner),
            RequestView::Spender { owner, .. } => Ok(*owner),
            RequestView::Batch(requests) => match requests.first().map(|request| RequestView::parse(request)) {
                Some(Ok(RequestView::Spend(spend))) => Ok(spend.payment.owner()),
                Some(Err(refusal)) => Err(refusal),
                _ => Err(LaneRefusal::Malformed("a batch holds requests to confirm payments")),
            },
        }
    }

    pub(crate) fn parse(bytes: &'a [u8]) -> Result<RequestView<'a>, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            SPEND => {
                let (payment, signature) = (PaymentView::read(&mut reader)?, reader.signature()?);
                let signed = &bytes[1..][..payment.bytes().len() + signature.0.len()];
                Ok(RequestView::Spend(SpendRequest { payment, signature, signed, proofs: Proofs(reader) }))
            }
            SETTLE => {
                let summary = PaymentSummary::read(&mut reader)?;
                let certificate = PaymentCertificate::read(&mut reader)?;
                reader.end()?;
                Ok(RequestView::Settle { summary, certificate })
            }
            BATCH => {
                let count = u16::from_le_bytes(reader.array()?);
                if !(1..=LEAVES_MAX).contains(&usize::from(count)) {
                    return Err(LaneRefusal::Malformed("a batch has 1 to 4,096 requests"));
                }
                let request = |reader: &mut Reader<'a>| {
                    let length = reader.u32()?;
                    reader.bytes(length as usize)
                };
                let requests = (0..count).map(|_| request(&mut reader)).collect::<Result<_, _>>()?;
                reader.end()?;
                Ok(RequestView::Batch(requests))
            }
            SPENDER => {
                let (home, owner) = (reader.u64()?, reader.key()?);
                let (output, signature) = (OutputId(reader.array()?), reader.signature()?);
                reader.end()?;
                Ok(RequestView::Spender { home, owner, output, signature })
            }
            _ => Err(LaneRefusal::Malformed(
                "a request is a payment (1), a settlement (2), a batch (3) or a question for a spender (4); \
                 5 asks for an answer under BLS",
            )),
        }
    }
}
