//! Posts to the ledger about the lane: layouts and signatures. A withdrawal is an operation of the ledger like a
//! payment, and has no layout here.
//!
//! The highest bit of the first byte marks a member's duty ([`LANE_DUTY`]): such a post is free.
//!
//! ```text
//! operation  2 redeem   · length 2 · payment · certificate
//!            3 resolve  · bid 8 · count 1 · (output 32 · asset 4 · amount 8 · home 8 · owner 32 · signature 64
//!                         · proof)[]                         1 to 16 outputs of one owner and home, ids ascend
//!            4 vote     · case 32 · length 2 · payment · (0 | 1 · owner's signature 64) · answer
//!            5 view     · case 32 · committee 8 · owner 32 · (0 | 1 · summary · certificate) · answer
//!            6 halt     · epoch 8 · round 8 · shard key's owner 32 · answer
//!            7 register · registration · proof 64 each          see `registration.rs`
//!            8 accuse   · evidence                              see `evidence.rs`
//!            9 deal     · epoch 8 · members 1 · dealing · signature 64      see `threshold.rs`
//!           10 complain · epoch 8 · complaint                   see `threshold.rs`
//! ```

use super::boards::verify_dealing;
use super::contest::cases_digest;
use super::*;
use crate::layout::{read_payment, write_payment};

/// A post to the ledger about the lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeOperation {
    /// Pays out a certified payment's outputs to accounts.
    Redeem {
        /// The payment's encoding.
        payment: Vec<u8>,
        /// The certificate of its home's committee.
        certificate: PaymentCertificate,
    },
    /// Opens cases about outputs of one owner and home, as the inputs of a stuck payment are, if not too many others of
    /// the block bid more.
    Resolve {
        /// Units of asset 0 that the sender bids for the work that each case causes, at least
        /// [`BridgeRules::case_deposit`]. They are consumed for each case that is opened.
        bid: Amount,
        /// The outputs, 1 to 16, by ascending id.
        outputs: Vec<ContestClaim>,
    },
    /// A validator's vote in a case.
    Vote {
        /// The contested output.
        case: OutputId,
        /// The encoding of the payment that the validator is bound to.
        payment: Vec<u8>,
        /// The signature of the payment's owner; `None` for the exit of the contested output, which anybody may ask
        /// for. So nobody can invent a candidate.
        signature: Option<Signature>,
        /// The validator's signature on the payment.
        answer: LaneAnswer,
    },
    /// A validator's view of a case.
    View {
        /// The contested output.
        case: OutputId,
        /// The validator's committee.
        committee: HomeEpoch,
        /// The owner of the contested output, which determines the shard.
        owner: PublicKey,
        /// The payment of the output that it had acknowledged or accepted, with its certificate; `None` if there was
        /// none. A view that names a payment without its certificate does not exist.
        paid: Option<Box<CertifiedPayment>>,
        /// Its signature.
        answer: LaneAnswer,
    },
    /// A validator's vote to halt the lane.
    Halt {
        /// The validator's committee.
        epoch: HomeEpoch,
        /// [`LaneClock::halt_round`].
        round: u64,
        /// Any key: it determines which shard of the validator signs.
        owner: PublicKey,
        /// Its signature.
        answer: LaneAnswer,
    },
    /// A member registers the keys of its shards for the next epoch.
    Register {
        /// The keys.
        registration: LaneRegistration,
        /// A proof of possession of each key.
        proofs: Vec<Signature>,
    },
    /// A member contradicted itself.
    Accuse {
        /// The contradiction.
        evidence: LaneEvidence,
    },
    /// A member deals in the key generation of the next epoch.
    Deal {
        /// The epoch.
        epoch: HomeEpoch,
        /// The dealing.
        dealing: Box<Dealing>,
        /// The dealer's signature ([`Dealing::sign`]).
        signature: Signature,
    },
    /// A member got a wrong share.
    Complain {
        /// The epoch.
        epoch: HomeEpoch,
        /// The dealer, and the proof.
        complaint: Box<Complaint>,
    },
}

impl BridgeOperation {
    /// The most signatures that verifying it costs: units of a block's budget.
    pub fn cost(&self) -> u32 {
        match self {
            BridgeOperation::Redeem { certificate, .. } => certificate.cost(),
            BridgeOperation::Resolve { outputs, .. } => outputs.iter().map(ContestClaim::cost).sum(),
            BridgeOperation::Vote { signature, .. } => 1 + u32::from(signature.is_some()),
            BridgeOperation::Halt { .. } => 1,
            BridgeOperation::View { paid, .. } => 1 + paid.as_ref().map_or(0, |paid| paid.certificate.cost()),
            BridgeOperation::Register { registration, .. } => registration.cost(),
            BridgeOperation::Accuse { evidence } => evidence.cost(),
            BridgeOperation::Deal { dealing, .. } => dealing.cost(),
            BridgeOperation::Complain { .. } => Complaint::COST,
        }
    }

    /// The member whose duty it is; `None` for what anybody does. An accusation is a duty of each member, so it names
    /// none; so is the redemption of a contested payment.
    pub fn member(&self) -> Option<u8> {
        match self {
            BridgeOperation::Redeem { .. } | BridgeOperation::Resolve { .. } | BridgeOperation::Accuse { .. } => None,
            BridgeOperation::Vote { answer, .. }
            | BridgeOperation::View { answer, .. }
            | BridgeOperation::Halt { answer, .. } => Some(answer.validator),
            BridgeOperation::Register { registration, .. } => Some(registration.member),
            BridgeOperation::Deal { dealing, .. } => Some(dealing.dealer),
            BridgeOperation::Complain { complaint, .. } => Some(complaint.member),
        }
    }

    /// Its layout, marked as the duty of a member, whose account sends it.
    pub fn encode_duty(&self) -> Vec<u8> {
        let mut bytes = self.encode();
        if let Some(first) = bytes.first_mut() {
            *first |= LANE_DUTY;
        }
        bytes
    }

    /// The once-key of the operation. No signature is checked here.
    ///
    /// # Errors
    /// If its payment cannot be decoded.
    pub fn once(&self) -> Result<BridgeKey, LaneRefusal> {
        Ok(match self {
            BridgeOperation::Redeem { payment, .. } => BridgeKey::Payment(PaymentBody::parse(payment)?.digest),
            BridgeOperation::Resolve { bid, outputs } => BridgeKey::Cases(cases_digest(outputs), *bid),
            BridgeOperation::Vote { case, answer, .. } => BridgeKey::Vote(*case, answer.validator),
            BridgeOperation::View { case, committee, answer, .. } => {
                BridgeKey::View(*case, *committee, answer.validator)
            }
            BridgeOperation::Halt { epoch, round, answer, .. } => BridgeKey::Halt(*epoch, *round, answer.validator),
            BridgeOperation::Register { registration: of, .. } => BridgeKey::Registration(of.epoch, of.member),
            BridgeOperation::Accuse { evidence } => BridgeKey::Conviction(evidence.accused().validator),
            BridgeOperation::Deal { epoch, dealing, .. } => BridgeKey::Dealing(*epoch, dealing.dealer),
            BridgeOperation::Complain { epoch, complaint: of } => BridgeKey::Complaint(*epoch, of.member, of.dealer),
        })
    }

    /// The digest of the payment that a view names.
    pub fn paid(&self, network: &Digest) -> Option<Digest> {
        match self {
            BridgeOperation::View { paid, .. } => paid.as_ref().map(|paid| paid.digest(network)),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            BridgeOperation::Redeem { .. } => "redeem",
            BridgeOperation::Resolve { .. } => "resolve",
            BridgeOperation::Vote { .. } => "vote",
            BridgeOperation::View { .. } => "view",
            BridgeOperation::Halt { .. } => "halt",
            BridgeOperation::Register { .. } => "register",
            BridgeOperation::Accuse { .. } => "accuse",
            BridgeOperation::Deal { .. } => "deal",
            BridgeOperation::Complain { .. } => "complain",
        }
    }

    /// The fact that it states if its signatures are valid, with `account` as its sender. No signature is checked
    /// here.
    ///
    /// # Errors
    /// If a part of it cannot be decoded, or it is for another network.
    pub fn fact(&self, network: &Digest, account: Address) -> Result<BridgeFact, LaneRefusal> {
        Ok(match self {
            BridgeOperation::Redeem { payment, .. } => BridgeFact::Redeem(Arc::new(parse_body(network, payment)?)),
            BridgeOperation::Resolve { bid, outputs } => {
                let case = |of: &ContestClaim| Ok((of.contested, of.parent(network)?));
                let cases = outputs.iter().map(case).collect::<Result<_, LaneRefusal>>()?;
                BridgeFact::Resolve { opener: account, bid: *bid, cases }
            }
            BridgeOperation::Vote { case, payment, answer, .. } => {
                let payment = Arc::new(parse_body(network, payment)?);
                BridgeFact::Vote { case: *case, validator: answer.validator, payment }
            }
            BridgeOperation::View { case, committee, paid, answer, .. } => {
                let (case, committee, validator) = (*case, *committee, answer.validator);
                let paid = paid.as_ref().map(|paid| (paid.summary.home, paid.digest(network)));
                BridgeFact::View { case, committee, validator, paid }
            }
            BridgeOperation::Halt { epoch, round, answer, .. } => {
                BridgeFact::Halt { epoch: *epoch, round: *round, validator: answer.validator }
            }
            BridgeOperation::Register { registration, .. } => BridgeFact::Register(registration.clone()),
            BridgeOperation::Accuse { evidence } => BridgeFact::Accuse(evidence.accused()),
            BridgeOperation::Deal { epoch, dealing, signature } => {
                BridgeFact::Deal { epoch: *epoch, dealing: dealing.clone(), signature: *signature }
            }
            BridgeOperation::Complain { epoch, complaint } => {
                BridgeFact::Complain { epoch: *epoch, complaint: complaint.clone() }
            }
        })
    }

    /// Verifies signatures and paths; returns the fact that a valid operation states. `account` is the sender of its
    /// transaction, `committee` returns the committee of an epoch, `registrars` are the keys that register (see
    /// [`BridgeRules`]).
    ///
    /// # Errors
    /// The first fault found.
    pub fn verify<'a>(
        &self,
        network: &Digest,
        account: Address,
        committee: impl Fn(HomeEpoch) -> Option<&'a LaneCommittee>,
        registrars: &[PublicKey],
        roots: &mut RootCache,
        budget: &mut CheckBudget,
    ) -> Result<BridgeFact, LaneRefusal> {
        let of = |epoch| committee(epoch).ok_or(LaneRefusal::UnknownCommittee(epoch));
        let fact = self.fact(network, account)?;
        match (self, &fact) {
            (BridgeOperation::Redeem { certificate, .. }, BridgeFact::Redeem(body)) => {
                let (committee, kind) = (of(body.payment.home)?, StatementKind::Confirmation);
                verify_claim(committee, kind, &body.payment.summary(), certificate, roots, budget)?;
            }
            (BridgeOperation::Resolve { outputs, .. }, _) => {
                for ContestClaim { contested, signature, proof } in outputs {
                    let exit = PaymentBody::parse(&contested.exit(*network).encode())?;
                    if !contested.owner.verify(&owner_message(network, contested.home, &exit.digest), signature) {
                        return Err(LaneRefusal::WrongOwnerSignature);
                    }
                    if let OutputProof::Payment(proof) = proof {
                        proof.verify(of(proof.summary.home)?, roots, budget)?;
                    }
                }
            }
            (BridgeOperation::Vote { signature, answer, .. }, BridgeFact::Vote { payment: body, .. }) => {
                check_voted(body, signature.as_ref(), budget)?;
                let claim =
                    Claim { kind: StatementKind::Confirmation, owner: &body.payment.owner, digest: &body.digest };
                roots.verify(of(body.payment.home)?, &claim, answer, budget)?;
            }
            (BridgeOperation::View { case, committee, owner, paid, answer }, _) => {
                let digest = view_digest(case, self.paid(network).as_ref());
                let claim = Claim { kind: StatementKind::View, owner, digest: &digest };
                roots.verify(of(*committee)?, &claim, answer, budget)?;
                if let Some(CertifiedPayment { summary, certificate }) = paid.as_deref() {
                    let kind = StatementKind::Confirmation;
                    verify_claim(of(summary.home)?, kind, summary, certificate, roots, budget)?;
                }
            }
            (BridgeOperation::Halt { epoch, round, owner, answer }, _) => {
                let digest = halt_digest(*epoch, *round);
                let claim = Claim { kind: StatementKind::Halt, owner, digest: &digest };
                roots.verify(of(*epoch)?, &claim, answer, budget)?;
            }
            (BridgeOperation::Register { registration, proofs }, _) => {
                let registrar = registrars.get(usize::from(registration.member));
                let registrar = registrar.ok_or(LaneRefusal::WrongRegistration)?;
                budget.spend(self.cost())?;
                registration.verify(network, registrar)?;
                registration.check_possession(network, registrar, proofs)?;
            }
            (BridgeOperation::Accuse { evidence }, _) => {
                budget.spend(self.cost())?;
                evidence.verify(of(evidence.accused().epoch)?)?;
            }
            (BridgeOperation::Deal { epoch, dealing, signature }, _) => {
                budget.spend(self.cost())?;
                verify_dealing(of(*epoch)?, dealing, signature)?;
            }
            // Its proof depends on the state of the board: [`Bridge::check`].
            (BridgeOperation::Complain { .. }, _) => {}
            (BridgeOperation::Redeem { .. } | BridgeOperation::Vote { .. }, _) => {
                unreachable!("an operation's fact is of its own kind")
            }
        }
        Ok(fact)
    }

    /// Its layout.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        match self {
            BridgeOperation::Redeem { payment, certificate } => {
                to.push(2);
                write_payment(&mut to, payment);
                certificate.write(&mut to);
            }
            BridgeOperation::Resolve { bid, outputs } => {
                to.push(3);
                to.extend(bid.to_le_bytes());
                to.push(u8::try_from(outputs.len()).expect("at most 16 outputs are contested together"));
                outputs.iter().for_each(|output| output.write(&mut to));
            }
            BridgeOperation::Vote { case, payment, signature, answer } => {
                to.push(4);
                to.extend(case.0);
                write_payment(&mut to, payment);
                to.push(u8::from(signature.is_some()));
                signature.iter().for_each(|signature| to.extend(signature.0));
                answer.write(&mut to);
            }
            BridgeOperation::View { case, committee, owner, paid, answer } => {
                to.push(5);
                to.extend(case.0);
                to.extend(committee.to_le_bytes());
                to.extend(owner.0);
                to.push(u8::from(paid.is_some()));
                paid.iter().for_each(|paid| paid.write(&mut to));
                answer.write(&mut to);
            }
            BridgeOperation::Halt { epoch, round, owner, answer } => {
                to.push(6);
                to.extend(epoch.to_le_bytes());
                to.extend(round.to_le_bytes());
                to.extend(owner.0);
                answer.write(&mut to);
            }
            BridgeOperation::Register { registration, proofs } => {
                to.push(7);
                registration.write(&mut to);
                proofs.iter().for_each(|proof| to.extend(proof.0));
            }
            BridgeOperation::Accuse { evidence } => {
                to.push(8);
                evidence.write(&mut to);
            }
            BridgeOperation::Deal { epoch, dealing, signature } => {
                to.push(9);
                to.extend(epoch.to_le_bytes());
                to.push(u8::try_from(dealing.shares.len()).expect("at most 32 members make a group key"));
                to.extend(dealing.encode());
                to.extend(signature.0);
            }
            BridgeOperation::Complain { epoch, complaint } => {
                to.push(10);
                to.extend(epoch.to_le_bytes());
                complaint.write(&mut to);
            }
        }
        to
    }

    /// Parses an operation that fills `bytes`, marked as a duty or not.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`BridgeOperation::encode`] and
    /// [`BridgeOperation::encode_duty`] do not write.
    pub fn parse(bytes: &[u8]) -> Result<BridgeOperation, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let read = &mut reader;
        let operation = match read.u8()? & !LANE_DUTY {
            2 => {
                let payment = read_payment(read)?;
                BridgeOperation::Redeem { payment, certificate: PaymentCertificate::read(read)? }
            }
            3 => BridgeOperation::Resolve { bid: read.u64()?, outputs: ContestClaim::read_all(read)? },
            4 => {
                let (case, payment) = (OutputId(read.array()?), read_payment(read)?);
                let signature = match read.u8()? {
                    0 => None,
                    1 => Some(read.signature()?),
                    _ => return Err(LaneRefusal::Malformed("a vote has its owner's signature or none")),
                };
                BridgeOperation::Vote { case, payment, signature, answer: LaneAnswer::read(read)? }
            }
            5 => {
                let (case, committee, owner) = (OutputId(read.array()?), read.u64()?, read.key()?);
                let paid = match read.u8()? {
                    0 => None,
                    1 => Some(Box::new(CertifiedPayment::read(read)?)),
                    _ => return Err(LaneRefusal::Malformed("a view names one payment or none")),
                };
                BridgeOperation::View { case, committee, owner, paid, answer: LaneAnswer::read(read)? }
            }
            6 => {
                let (epoch, round, owner) = (read.u64()?, read.u64()?, read.key()?);
                BridgeOperation::Halt { epoch, round, owner, answer: LaneAnswer::read(read)? }
            }
            7 => {
                let registration = LaneRegistration::read(read)?;
                let proofs = registration.keys.iter().map(|_| read.signature()).collect::<Result<_, _>>()?;
                BridgeOperation::Register { registration, proofs }
            }
            8 => BridgeOperation::Accuse { evidence: LaneEvidence::read(read)? },
            9 => {
                let (epoch, members) = (read.u64()?, usize::from(read.u8()?));
                if !(1..=DKG_MEMBERS_MAX).contains(&members) {
                    return Err(LaneRefusal::Malformed("1 to 32 members make a group key"));
                }
                let dealing = Box::new(Dealing::read(Quorums::new(members), read)?);
                BridgeOperation::Deal { epoch, dealing, signature: read.signature()? }
            }
            10 => BridgeOperation::Complain { epoch: read.u64()?, complaint: Box::new(Complaint::read(read)?) },
            _ => return Err(LaneRefusal::Malformed("an operation of the bridge is of kind 2 to 10")),
        };
        reader.end()?;
        Ok(operation)
    }
}

/// A payment that is voted for is signed by its owner, unless it is an exit.
fn check_voted(body: &PaymentBody, signature: Option<&Signature>, budget: &mut CheckBudget) -> Result<(), LaneRefusal> {
    let Payment { network, home, owner, .. } = &body.payment;
    let Some(signature) = signature else {
        return if body.payment.is_exit() { Ok(()) } else { Err(LaneRefusal::WrongOwnerSignature) };
    };
    budget.spend(1)?;
    let holds = owner.verify(&owner_message(network, *home, &body.digest), signature);
    if holds { Ok(()) } else { Err(LaneRefusal::WrongOwnerSignature) }
}

fn parse_body(network: &Digest, payment: &[u8]) -> Result<PaymentBody, LaneRefusal> {
    let body = PaymentBody::parse(payment)?;
    if body.payment.network == *network { Ok(body) } else { Err(LaneRefusal::ForeignNetwork(body.payment.network)) }
}
