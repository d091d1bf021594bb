//! What one operator contributes to a restart, in one file.
//!
//! ```text
//! part      "walras-lane-restart\x02" · network 32 · restart 4 · snapshot 32 · member 1
//!           · (0 | 1 · registration · proof 64 each) · count 4 · (length 8 · closed log)[]
//!           · count 4 · shown[] · count 4 · registration[] · count 4 · board[] · signature 64
//! board     epoch 8 · length 4 · board, as nodes send it: see [`crate::with_told_board`]
//! shown     length 2 · payment, or 0 · summary · certificate
//! ```
//!
//! The member's registrar signs everything before the signature; where keys do not change, the key of its first shard
//! does. So nobody can put records into another member's log.

use std::collections::{BTreeMap, BTreeSet};

use primitives::{Digest, PublicKey, SecretKey, Signature};

use super::ClosedLog;
use super::log::write_count;
use crate::layout::{Reader, read_payment, write_payment};
use crate::resolve::read_map;
use crate::{
    BridgeOperation, CertifiedPayment, HomeEpoch, LaneAnswer, LaneRefusal, LaneRegistration, OutputProof, PaymentBody,
    PaymentCertificate, Quorums,
};

const TAG: &[u8; 20] = b"walras-lane-restart\x02";
const PART_CONTEXT: &str = "walras 2026 lane restart part v1";

/// A certified payment that is shown for a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownPayment {
    /// The payment, if whoever shows it has it: a receipt has only its summary.
    pub body: Option<PaymentBody>,
    /// Its certificate.
    pub certified: CertifiedPayment,
}

/// One operator's part: see the module text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartPart {
    /// The identity of the network that restarts.
    pub network: Digest,
    /// The number of the restart.
    pub restart: u32,
    /// The digest of the state that the restarted network begins with.
    pub snapshot: Digest,
    /// The member whose operator made it.
    pub member: u8,
    /// Its keys in the first epoch, with proofs of possession; `None` where keys do not change. Both are signed for
    /// the restarted network's identity without its lane.
    pub first: Option<(LaneRegistration, Vec<Signature>)>,
    /// Its logs.
    pub logs: Vec<ClosedLog>,
    /// Certificates from the blocks of the old chain, and those that anybody showed to the operator.
    pub shown: Vec<ShownPayment>,
    /// Registered keys of epochs after the snapshot's.
    pub registrations: Vec<LaneRegistration>,
    /// Boards on which members made the group keys of these epochs.
    pub boards: BTreeMap<HomeEpoch, Vec<u8>>,
}

impl RestartPart {
    /// Its layout, signed.
    pub fn sign(&self, key: &SecretKey) -> Vec<u8> {
        let mut bytes = self.unsigned();
        let signature = key.sign(&Digest::of(PART_CONTEXT, &bytes).0);
        bytes.extend(signature.0);
        bytes
    }

    fn unsigned(&self) -> Vec<u8> {
        let mut to = TAG.to_vec();
        to.extend(self.network.0);
        to.extend(self.restart.to_le_bytes());
        to.extend(self.snapshot.0);
        to.push(self.member);
        to.push(u8::from(self.first.is_some()));
        if let Some((registration, proofs)) = &self.first {
            registration.write(&mut to);
            proofs.iter().for_each(|proof| to.extend(proof.0));
        }
        write_count(&mut to, self.logs.len());
        for log in &self.logs {
            let mut bytes = Vec::new();
            log.write(&mut bytes);
            to.extend((bytes.len() as u64).to_le_bytes());
            to.extend(bytes);
        }
        write_count(&mut to, self.shown.len());
        for ShownPayment { body, certified } in &self.shown {
            write_payment(&mut to, &body.as_ref().map_or_else(Vec::new, |body| body.payment.encode()));
            certified.write(&mut to);
        }
        write_count(&mut to, self.registrations.len());
        self.registrations.iter().for_each(|registration| registration.write(&mut to));
        write_count(&mut to, self.boards.len());
        for (epoch, board) in &self.boards {
            to.extend(epoch.to_le_bytes());
            write_count(&mut to, board.len());
            to.extend(board);
        }
        to
    }

    /// Parses a part that fills `bytes`, and checks its signature. `signer` returns the key that signs for a member.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`RestartPart::sign`] does not write,
    /// [`LaneRefusal::WrongRegistration`] if the member has not signed it.
    pub fn parse(bytes: &[u8], signer: impl Fn(u8) -> Option<PublicKey>) -> Result<RestartPart, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        if reader.array()? != *TAG {
            return Err(LaneRefusal::Malformed("it is no part of a restart, or of another version"));
        }
        let part = RestartPart::read(&mut reader)?;
        let signed = bytes.len() - 64;
        let signature = reader.signature()?;
        reader.end()?;
        let message = Digest::of(PART_CONTEXT, &bytes[..signed]);
        let key = signer(part.member).ok_or(LaneRefusal::WrongRegistration)?;
        if key.verify(&message.0, &signature) { Ok(part) } else { Err(LaneRefusal::WrongRegistration) }
    }

    fn read(read: &mut Reader<'_>) -> Result<RestartPart, LaneRefusal> {
        let (network, restart, snapshot) = (read.digest()?, read.u32()?, read.digest()?);
        let member = read.u8()?;
        let first = match read.u8()? {
            0 => None,
            1 => {
                let registration = LaneRegistration::read(read)?;
                let proofs = registration.keys.iter().map(|_| read.signature()).collect::<Result<_, _>>()?;
                Some((registration, proofs))
            }
            _ => return Err(LaneRefusal::Malformed("a part has first keys (1) or none (0)")),
        };
        let mut logs = Vec::new();
        for _ in 0..read.u32()? {
            let length = usize::try_from(read.u64()?).unwrap_or(usize::MAX);
            let log = ClosedLog::parse(read.bytes(length)?)?;
            if log.owner.validator != member {
                return Err(LaneRefusal::Malformed("a part has logs of its own member only"));
            }
            logs.push(log);
        }
        let mut shown = Vec::new();
        for _ in 0..read.u32()? {
            let body = Some(read_payment(read)?).filter(|bytes| !bytes.is_empty());
            let body = body.map(|bytes| PaymentBody::parse(&bytes)).transpose()?;
            shown.push(ShownPayment { body, certified: CertifiedPayment::read(read)? });
        }
        let mut registrations = Vec::new();
        for _ in 0..read.u32()? {
            registrations.push(LaneRegistration::read(read)?);
        }
        let count = read.u32()?;
        let board = |read: &mut Reader<'_>| {
            let (epoch, length) = (read.u64()?, read.u32()?);
            Ok((epoch, read.bytes(length as usize)?.to_vec()))
        };
        let boards = read_map(read, count, board)?;
        Ok(RestartPart { network, restart, snapshot, member, first, logs, shown, registrations, boards })
    }
}

/// Certificates in posts of a chain's blocks. The votes of a quorum for one payment are a certificate, too.
#[derive(Debug, Default)]
pub struct PostedCertificates {
    shown: BTreeMap<Digest, ShownPayment>,
    votes: BTreeMap<Digest, (PaymentBody, BTreeMap<u8, LaneAnswer>)>,
}

impl PostedCertificates {
    /// Takes what an applied post contains.
    pub fn see(&mut self, network: &Digest, post: &BridgeOperation) {
        match post {
            BridgeOperation::Redeem { payment, certificate } => {
                let Ok(body) = PaymentBody::parse(payment) else { return };
                let certified = CertifiedPayment { summary: body.payment.summary(), certificate: certificate.clone() };
                self.shown.insert(body.digest, ShownPayment { body: Some(body), certified });
            }
            BridgeOperation::View { paid: Some(paid), .. } => self.add(network, CertifiedPayment::clone(paid)),
            BridgeOperation::Resolve { outputs, .. } => {
                for of in outputs {
                    let OutputProof::Payment(proof) = &of.proof else { continue };
                    let (summary, certificate) = (proof.summary, proof.certificate.clone());
                    self.add(network, CertifiedPayment { summary, certificate });
                }
            }
            BridgeOperation::Vote { payment, answer, .. } => {
                let Ok(body) = PaymentBody::parse(payment) else { return };
                let (_, answers) = self.votes.entry(body.digest).or_insert_with(|| (body, BTreeMap::new()));
                answers.entry(answer.validator).or_insert_with(|| answer.clone());
            }
            _ => {}
        }
    }

    fn add(&mut self, network: &Digest, certified: CertifiedPayment) {
        let digest = certified.digest(network);
        self.shown.entry(digest).or_insert(ShownPayment { body: None, certified });
    }

    /// What was posted, where committees have this many members.
    pub fn shown(self, members: usize) -> Vec<ShownPayment> {
        let quorum = Quorums::new(members).certificate;
        let PostedCertificates { mut shown, votes } = self;
        let known: BTreeSet<Digest> = shown.keys().copied().collect();
        for (digest, (body, answers)) in votes.into_iter().filter(|(digest, _)| !known.contains(digest)) {
            let answers: Vec<LaneAnswer> = answers.into_values().take(quorum).collect();
            if answers.len() == quorum {
                let certificate = PaymentCertificate::Answers(answers);
                let certified = CertifiedPayment { summary: body.payment.summary(), certificate };
                shown.insert(digest, ShownPayment { body: Some(body), certified });
            }
        }
        shown.into_values().collect()
    }
}
