//! Evidence that a validator broke the lane's rules: signatures that a correct validator never makes.
//!
//! * Two confirmations by one validator of payments that share an input.
//! * Two views of one case with different contents.
//!
//! Two votes in one case are two confirmations of payments that share the contested output, so they need no separate
//! variant. A confirmation is shown by a certificate's layout with any number of signers: one answer of the
//! validator, or an aggregate whose bitmap names it. So a confirmation convicts whatever scheme it was signed in. A
//! signature under the group's key names no one and convicts no one.
//!
//! Anyone with evidence posts it to the ledger ([`crate::BridgeOperation::Accuse`]); it convicts once, so copies do
//! nothing. Lane keys are separate from consensus keys, and so is this evidence.
//!
//! ```text
//! evidence  1 · home 8 · validator 1 · (length 2 · payment · certificate) twice      by ascending digest
//!           2 · committee 8 · case 32 · owner 32 · (0 · answer | 1 · digest 32 · answer) twice
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::{Digest, PublicKey};

use crate::layout::{Reader, read_payment, write_payment};
use crate::{
    BridgeOperation, CheckBudget, Claim, HomeEpoch, LaneAnswer, LaneCommittee, LaneRefusal, OutputId, PaymentBody,
    PaymentCertificate, RootCache, StatementKind, view_digest,
};

/// Two signatures that contradict each other. The second of two equal kinds is the greater one, so that a pair has
/// only one encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneEvidence {
    /// Confirmations of two payments that share an input.
    Payments {
        /// The home of both.
        home: HomeEpoch,
        /// The validator that signed both.
        validator: u8,
        /// Encodings, by ascending digest, and the proof that the validator signed them.
        pair: Box<[(Vec<u8>, PaymentCertificate); 2]>,
    },
    /// Two views of one case.
    Views {
        /// The validator's committee.
        committee: HomeEpoch,
        /// The contested output.
        case: OutputId,
        /// The owner of the output, which determines the shard.
        owner: PublicKey,
        /// The reported payments, ascending, none before any, and signatures.
        pair: Box<[(Option<Digest>, LaneAnswer); 2]>,
    },
}

/// The validator that evidence convicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Convicted {
    /// The committee.
    pub epoch: HomeEpoch,
    /// The validator's index in it.
    pub validator: u8,
}

const NONE: LaneRefusal = LaneRefusal::Malformed("the signatures do not contradict each other");

impl LaneEvidence {
    /// The accused validator. No signature is checked here.
    pub fn accused(&self) -> Convicted {
        match self {
            LaneEvidence::Payments { home, validator, .. } => Convicted { epoch: *home, validator: *validator },
            LaneEvidence::Views { committee, pair, .. } => {
                Convicted { epoch: *committee, validator: pair[0].1.validator }
            }
        }
    }

    /// The most that verifying it costs, in verifications of ed25519 signatures.
    pub fn cost(&self) -> u32 {
        match self {
            LaneEvidence::Payments { pair, .. } => pair.iter().map(|(_, signed)| signed.cost()).sum(),
            LaneEvidence::Views { .. } => 2,
        }
    }

    /// The convicted validator.
    ///
    /// # Errors
    /// The first fault found. Wrong evidence convicts no one.
    pub fn verify(&self, committee: &LaneCommittee) -> Result<Convicted, LaneRefusal> {
        let accused @ Convicted { epoch, validator } = self.accused();
        if committee.epoch() != epoch {
            return Err(LaneRefusal::UnknownCommittee(epoch));
        }
        let (roots, budget) = (&mut RootCache::new(0), &mut CheckBudget(self.cost()));
        match self {
            LaneEvidence::Payments { home, pair, .. } => {
                let bodies = [PaymentBody::parse(&pair[0].0)?, PaymentBody::parse(&pair[1].0)?];
                let share = bodies[0].input_ids().any(|id| bodies[1].input_ids().any(|other| other == id));
                let here =
                    |body: &PaymentBody| body.payment.home == *home && body.payment.network == committee.network();
                if !share || !bodies.iter().all(here) || bodies[0].digest >= bodies[1].digest {
                    return Err(NONE);
                }
                for (body, (_, signed)) in bodies.iter().zip(pair.iter()) {
                    let kind = StatementKind::Confirmation;
                    let claim = Claim { kind, owner: &body.payment.owner, digest: &body.digest };
                    signed.verify_signer(committee, &claim, validator, roots, budget)?;
                }
            }
            LaneEvidence::Views { case, owner, pair, .. } => {
                if pair[0].0 >= pair[1].0 || pair[1].1.validator != validator {
                    return Err(NONE);
                }
                for (paid, answer) in pair.iter() {
                    let digest = view_digest(case, paid.as_ref());
                    let claim = Claim { kind: StatementKind::View, owner, digest: &digest };
                    roots.verify(committee, &claim, answer, budget)?;
                }
            }
        }
        Ok(accused)
    }

    /// Its layout.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        self.write(&mut to);
        to
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self {
            LaneEvidence::Payments { home, validator, pair } => {
                to.push(1);
                to.extend(home.to_le_bytes());
                to.push(*validator);
                for (payment, signed) in pair.iter() {
                    write_payment(to, payment);
                    signed.write(to);
                }
            }
            LaneEvidence::Views { committee, case, owner, pair } => {
                to.push(2);
                to.extend(committee.to_le_bytes());
                to.extend(case.0);
                to.extend(owner.0);
                for (paid, answer) in pair.iter() {
                    to.push(u8::from(paid.is_some()));
                    paid.iter().for_each(|digest| to.extend(digest.0));
                    answer.write(to);
                }
            }
        }
    }

    /// Parses evidence that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] or [`LaneRefusal::WrongPath`] for anything that [`LaneEvidence::encode`] does not
    /// write.
    pub fn parse(bytes: &[u8]) -> Result<LaneEvidence, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let evidence = LaneEvidence::read(&mut reader)?;
        reader.end()?;
        Ok(evidence)
    }

    pub(crate) fn read(read: &mut Reader<'_>) -> Result<LaneEvidence, LaneRefusal> {
        match read.u8()? {
            1 => {
                let (home, validator) = (read.u64()?, read.u8()?);
                let mut signed = || Ok::<_, LaneRefusal>((read_payment(read)?, PaymentCertificate::read(read)?));
                Ok(LaneEvidence::Payments { home, validator, pair: Box::new([signed()?, signed()?]) })
            }
            2 => {
                let (committee, case, owner) = (read.u64()?, OutputId(read.array()?), read.key()?);
                let mut view = || {
                    let paid = match read.u8()? {
                        0 => None,
                        1 => Some(read.digest()?),
                        _ => return Err(LaneRefusal::Malformed("a view names one payment or none")),
                    };
                    Ok::<_, LaneRefusal>((paid, LaneAnswer::read(read)?))
                };
                Ok(LaneEvidence::Views { committee, case, owner, pair: Box::new([view()?, view()?]) })
            }
            _ => Err(LaneRefusal::Malformed("evidence is of payments (1) or of views (2)")),
        }
    }
}

/// A payment that a validator confirmed, and the proof.
#[derive(Clone, Debug)]
struct Confirmed {
    digest: Digest,
    payment: Arc<Vec<u8>>,
    signed: PaymentCertificate,
}

/// A home or committee, an output and a validator.
type Place = (HomeEpoch, OutputId, u8);

/// Finds evidence among verified confirmations and views, such as a watcher gets from receipts and a node from the
/// ledger's posts. For each validator and output, and for each validator and case, the first one is kept, up to a
/// limit.
#[derive(Clone, Debug)]
pub struct EvidenceFinder {
    entries_max: usize,
    confirmed: BTreeMap<Place, Confirmed>,
    views: BTreeMap<Place, (Option<Digest>, LaneAnswer)>,
}

impl EvidenceFinder {
    /// A finder that keeps at most this many confirmations and this many views.
    pub fn new(entries_max: usize) -> EvidenceFinder {
        EvidenceFinder { entries_max, confirmed: BTreeMap::new(), views: BTreeMap::new() }
    }

    /// Records a verified confirmation of a payment; returns evidence if it contradicts an earlier one.
    pub fn note(&mut self, body: &PaymentBody, answer: &LaneAnswer) -> Option<LaneEvidence> {
        self.note_certificate(body, &PaymentCertificate::Answers(vec![answer.clone()])).pop()
    }

    /// Records the signers of a verified certificate; returns evidence against each that contradicts itself.
    pub fn note_certificate(&mut self, body: &PaymentBody, certificate: &PaymentCertificate) -> Vec<LaneEvidence> {
        let payment = Arc::new(body.payment.encode());
        let by = |validator| {
            let signed = certificate.of_signer(validator)?;
            Some((validator, Confirmed { digest: body.digest, payment: payment.clone(), signed }))
        };
        let each: Vec<(u8, Confirmed)> = certificate.signers().into_iter().filter_map(by).collect();
        each.into_iter().filter_map(|(validator, confirmed)| self.note_one(body, validator, &confirmed)).collect()
    }

    fn note_one(&mut self, body: &PaymentBody, validator: u8, now: &Confirmed) -> Option<LaneEvidence> {
        let home = body.payment.home;
        for input in body.input_ids() {
            let key = (home, input, validator);
            match self.confirmed.get(&key) {
                Some(before) if before.digest != now.digest => {
                    let mut both = [before, now];
                    both.sort_by_key(|confirmed| confirmed.digest);
                    let pair = both.map(|confirmed| (confirmed.payment.to_vec(), confirmed.signed.clone()));
                    return Some(LaneEvidence::Payments { home, validator, pair: Box::new(pair) });
                }
                None if self.confirmed.len() < self.entries_max => drop(self.confirmed.insert(key, now.clone())),
                _ => {}
            }
        }
        None
    }

    /// Records a verified view of a case; returns evidence if it contradicts an earlier one.
    pub fn note_view(
        &mut self,
        committee: HomeEpoch,
        case: OutputId,
        owner: PublicKey,
        paid: Option<Digest>,
        answer: &LaneAnswer,
    ) -> Option<LaneEvidence> {
        let key = (committee, case, answer.validator);
        match self.views.get(&key) {
            Some(before) if before.0 != paid => {
                let mut pair = [before.clone(), (paid, answer.clone())];
                pair.sort_by_key(|(paid, _)| *paid);
                return Some(LaneEvidence::Views { committee, case, owner, pair: Box::new(pair) });
            }
            None if self.views.len() < self.entries_max => drop(self.views.insert(key, (paid, answer.clone()))),
            _ => {}
        }
        None
    }

    /// Records a post that was verified by the ledger. Of certificates it records only those that spend an output
    /// with votes: most redemptions contradict nothing, and would only fill the memory.
    pub fn note_post(&mut self, network: &Digest, post: &BridgeOperation) -> Vec<LaneEvidence> {
        match post {
            BridgeOperation::Redeem { payment, certificate } => match PaymentBody::parse(payment) {
                Ok(body) if body.input_ids().any(|input| self.knows(body.payment.home, input)) => {
                    self.note_certificate(&body, certificate)
                }
                _ => Vec::new(),
            },
            BridgeOperation::Vote { payment, answer, .. } => {
                PaymentBody::parse(payment).ok().and_then(|body| self.note(&body, answer)).into_iter().collect()
            }
            BridgeOperation::View { case, committee, owner, answer, .. } => {
                let paid = post.paid(network);
                self.note_view(*committee, *case, *owner, paid, answer).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn knows(&self, home: HomeEpoch, output: OutputId) -> bool {
        self.confirmed.range((home, output, 0)..=(home, output, u8::MAX)).next().is_some()
    }

    /// Drops homes before this one, whose validators cannot be accused any more.
    pub fn forget_before(&mut self, home: HomeEpoch) {
        let first = (home, OutputId([0; 32]), 0);
        self.confirmed = self.confirmed.split_off(&first);
        self.views = self.views.split_off(&first);
    }
}
