//! The board of a key generation: the same state machine for everyone.

use std::collections::{BTreeMap, BTreeSet};

use blstrs::{G2Projective, Scalar};
use group::Group;
use primitives::{Digest, PublicKey, SecretKey, Signature};

use super::cipher::{challenge, pad, xor};
use super::{DkgPurpose, DkgTerms, GroupKey, points};
use crate::bls::{self, BlsPublicKey, BlsSignature};
use crate::layout::Reader;
use crate::message::begin;
use crate::{AGGREGATE_COST, DkgRefusal, HomeEpoch, LaneRefusal, Quorums, StatementKind};

/// The most members that generate a group key. Finishing costs n · q multiplications of points, a complaint q: with
/// more members one block would take seconds.
pub const DKG_MEMBERS_MAX: usize = 32;

const DEALING_CONTEXT: &str = "walras 2026 lane dkg dealing v1";
/// The cost of parsing a point and checking its subgroup, in verifications of ed25519 signatures.
const POINT_COST: u32 = 4;
/// The cost of multiplying a point, in verifications of ed25519 signatures.
const PRODUCT_COST: u32 = 6;

/// The post of a dealer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealing {
    /// The dealer.
    pub dealer: u8,
    /// Commitments to the coefficients, the constant one first.
    pub commitments: Vec<[u8; 96]>,
    /// The ephemeral point that pads are made with.
    pub ephemeral: [u8; 96],
    /// The encrypted share of each member.
    pub shares: Vec<[u8; 32]>,
    /// Proof under the first commitment, over all fields above.
    pub possession: BlsSignature,
    /// The same proof under the ephemeral point: with another dealer's point, complaints about wrong shares would
    /// decrypt that dealer's shares.
    pub ephemeral_possession: BlsSignature,
}

/// The post of a member that got a wrong share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The member that complains.
    pub member: u8,
    /// The dealer.
    pub dealer: u8,
    /// The point that both share.
    pub shared: [u8; 96],
    /// Challenge of the proof of that point.
    pub challenge: [u8; 32],
    /// Response of the proof of that point.
    pub response: [u8; 32],
}

impl Dealing {
    /// The bytes that the proofs of possession cover.
    pub(super) fn covered(&self, terms: &DkgTerms) -> Vec<u8> {
        let mut bytes = terms.context(self.dealer);
        self.write_body(&mut bytes);
        bytes
    }

    fn write_body(&self, to: &mut Vec<u8>) {
        to.push(self.dealer);
        self.commitments.iter().for_each(|commitment| to.extend(commitment));
        to.extend(self.ephemeral);
        self.shares.iter().for_each(|share| to.extend(share));
    }

    /// Its layout.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        self.write_body(&mut to);
        to.extend(self.possession.0);
        to.extend(self.ephemeral_possession.0);
        to
    }

    /// Parses a dealing that fills `bytes`, in a generation with these terms.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`].
    pub fn parse(terms: &DkgTerms, bytes: &[u8]) -> Result<Dealing, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let dealing = Dealing::read_sized((terms.needed(), terms.keys.len()), &mut reader)?;
        reader.end()?;
        Ok(dealing)
    }

    pub(crate) fn read(quorums: Quorums, reader: &mut Reader<'_>) -> Result<Dealing, LaneRefusal> {
        Dealing::read_sized((quorums.certificate, quorums.validators), reader)
    }

    /// Reads a dealing with so many commitments and shares.
    fn read_sized((needed, members): (usize, usize), reader: &mut Reader<'_>) -> Result<Dealing, LaneRefusal> {
        let dealer = reader.u8()?;
        let commitments = (0..needed).map(|_| reader.array()).collect::<Result<_, _>>()?;
        let ephemeral = reader.array()?;
        let shares = (0..members).map(|_| reader.array()).collect::<Result<_, _>>()?;
        let (possession, ephemeral_possession) = (BlsSignature(reader.array()?), BlsSignature(reader.array()?));
        Ok(Dealing { dealer, commitments, ephemeral, shares, possession, ephemeral_possession })
    }

    /// The cost of verifying it, with its dealer's signature, in verifications of ed25519 signatures.
    pub fn cost(&self) -> u32 {
        1 + 2 * AGGREGATE_COST + POINT_COST * (1 + self.commitments.len() as u32)
    }

    /// Checks its points and proofs, for [`KeyGeneration::deal_verified`].
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self, terms: &DkgTerms) -> Result<(), DkgRefusal> {
        self.verify(terms).map(drop)
    }

    /// Checks its points and proofs; returns its commitments.
    ///
    /// # Errors
    /// The first fault found.
    pub(crate) fn verify(&self, terms: &DkgTerms) -> Result<Vec<G2Projective>, DkgRefusal> {
        if (self.commitments.len(), self.shares.len()) != (terms.needed(), terms.keys.len()) {
            return Err(DkgRefusal::WrongCounts);
        }
        points::parse(&self.ephemeral).ok_or(DkgRefusal::WrongPoint)?;
        let points: Option<Vec<G2Projective>> = self.commitments.iter().map(points::parse).collect();
        let points = points.ok_or(DkgRefusal::WrongPoint)?;
        let covered = self.covered(terms);
        let proofs = [(&self.commitments[0], &self.possession), (&self.ephemeral, &self.ephemeral_possession)];
        for (point, proof) in proofs {
            let key = BlsPublicKey::parse(point).map_err(|_| DkgRefusal::WrongPoint)?;
            if !bls::possesses(&key, &covered, proof) {
                return Err(DkgRefusal::WrongPossession);
            }
        }
        Ok(points)
    }

    fn message(&self, network: &Digest, epoch: HomeEpoch) -> Vec<u8> {
        let mut bytes = begin(StatementKind::Dealing, network, epoch);
        bytes.extend(Digest::of(DEALING_CONTEXT, &self.encode()).0);
        bytes
    }

    /// The dealer's signature, with its other key of the epoch: the proofs of possession do not identify the dealer.
    pub fn sign(&self, network: &Digest, epoch: HomeEpoch, key: &SecretKey) -> Signature {
        key.sign(&self.message(network, epoch))
    }

    /// Whether the dealer signed it.
    pub fn is_signed(&self, network: &Digest, epoch: HomeEpoch, key: &PublicKey, signature: &Signature) -> bool {
        key.verify(&self.message(network, epoch), signature)
    }
}

impl Complaint {
    /// The most that verifying and judging it costs, in verifications of ed25519 signatures.
    pub const COST: u32 = 3 * POINT_COST + PRODUCT_COST * (4 + 1 + 22);

    /// Its layout.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        self.write(&mut to);
        to
    }

    /// Parses a complaint that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Complaint, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let complaint = Complaint::read(&mut reader)?;
        reader.end()?;
        Ok(complaint)
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend([self.member, self.dealer]);
        to.extend(self.shared);
        to.extend(self.challenge);
        to.extend(self.response);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Complaint, LaneRefusal> {
        let (member, dealer, shared) = (reader.u8()?, reader.u8()?, reader.array()?);
        Ok(Complaint { member, dealer, shared, challenge: reader.array()?, response: reader.array()? })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Dealing,
    Complaining,
    Finished,
}

/// The result of a complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// The dealing of this member is rejected.
    Out(u8),
    /// This member revealed one of its own shares.
    Struck(u8),
}

/// The state of the board. See the module text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyGeneration {
    terms: DkgTerms,
    phase: Phase,
    dealings: BTreeMap<u8, (Dealing, Vec<G2Projective>)>,
    out: BTreeSet<u8>,
    struck: BTreeSet<u8>,
    outcome: Option<GroupKey>,
}

impl KeyGeneration {
    /// An empty board.
    pub fn new(terms: DkgTerms) -> KeyGeneration {
        let (dealings, out, struck) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        KeyGeneration { terms, phase: Phase::Dealing, dealings, out, struck, outcome: None }
    }

    /// Its terms.
    pub fn terms(&self) -> &DkgTerms {
        &self.terms
    }

    /// The dealings, by dealer.
    pub(crate) fn dealings(&self) -> impl Iterator<Item = &Dealing> {
        self.dealings.values().map(|(dealing, _)| dealing)
    }

    /// Dealers whose dealing is rejected.
    pub fn out(&self) -> &BTreeSet<u8> {
        &self.out
    }

    /// Members that revealed one of their own shares.
    pub fn struck(&self) -> &BTreeSet<u8> {
        &self.struck
    }

    /// Whether its time is over.
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether it is the time to deal.
    pub fn awaits_dealings(&self) -> bool {
        self.phase == Phase::Dealing
    }

    /// Whether it is the time to complain.
    pub fn awaits_complaints(&self) -> bool {
        self.phase == Phase::Complaining
    }

    /// The decisions about complaints.
    pub(crate) fn judged(&self) -> impl Iterator<Item = Judged> + '_ {
        self.out.iter().copied().map(Judged::Out).chain(self.struck.iter().copied().map(Judged::Struck))
    }

    /// Restores the decisions about complaints from an encoded state.
    pub fn decided(&mut self, out: BTreeSet<u8>, struck: BTreeSet<u8>) {
        (self.out, self.struck) = (out, struck);
    }

    /// The accepted dealers, ascending.
    pub fn standing(&self) -> impl Iterator<Item = u8> + '_ {
        self.dealings.keys().copied().filter(|dealer| !self.out.contains(dealer))
    }

    /// The group key, once the generation is finished; `None` if it gives none.
    pub fn outcome(&self) -> Option<&GroupKey> {
        self.outcome.as_ref()
    }

    /// The dealing of a dealer.
    pub fn dealing_of(&self, dealer: u8) -> Option<&Dealing> {
        self.dealings.get(&dealer).map(|(dealing, _)| dealing)
    }

    fn in_phase(&self, phase: Phase, member: u8) -> Result<(), DkgRefusal> {
        if self.phase != phase {
            return Err(DkgRefusal::WrongPhase);
        }
        if usize::from(member) < self.terms.keys.len() { Ok(()) } else { Err(DkgRefusal::Stranger(member)) }
    }

    /// Whether a dealing would count now, apart from its content.
    ///
    /// # Errors
    /// The reason why not.
    pub(crate) fn awaits(&self, dealer: u8) -> Result<(), DkgRefusal> {
        self.in_phase(Phase::Dealing, dealer)?;
        if self.dealings.contains_key(&dealer) { Err(DkgRefusal::DealtBefore(dealer)) } else { Ok(()) }
    }

    /// Adds a member's dealing. The poster has proved to act for the member ([`Dealing::is_signed`]).
    ///
    /// # Errors
    /// The reason why it does not count.
    pub fn deal(&mut self, dealing: Dealing) -> Result<(), DkgRefusal> {
        self.awaits(dealing.dealer)?;
        let points = dealing.verify(&self.terms)?;
        self.dealings.insert(dealing.dealer, (dealing, points));
        Ok(())
    }

    /// Like [`KeyGeneration::deal`], for a dealing whose proofs were verified before.
    ///
    /// # Errors
    /// The reason why it does not count. A dealing with an invalid proof is not recorded.
    pub fn deal_verified(&mut self, dealing: Dealing) -> Result<(), DkgRefusal> {
        self.awaits(dealing.dealer)?;
        let points: Option<Vec<G2Projective>> = dealing.commitments.iter().map(points::parse_unchecked).collect();
        let counts = (dealing.commitments.len(), dealing.shares.len());
        if counts != (self.terms.needed(), self.terms.keys.len()) {
            return Err(DkgRefusal::WrongCounts);
        }
        self.dealings.insert(dealing.dealer, (dealing, points.ok_or(DkgRefusal::WrongPoint)?));
        Ok(())
    }

    /// Ends the time to deal.
    pub fn close_dealing(&mut self) {
        if self.phase == Phase::Dealing {
            self.phase = Phase::Complaining;
        }
    }

    /// The share that a dealing gives a member, if this is the point that both share, and if the share is right.
    pub(super) fn share_under(&self, dealer: u8, member: u8, shared: &[u8; 96]) -> Option<Scalar> {
        let (dealing, commitments) = self.dealings.get(&dealer)?;
        let encrypted = dealing.shares.get(usize::from(member))?;
        let share = points::read_scalar(&xor(*encrypted, &pad(&self.terms, dealer, member, shared)))?;
        (points::generator() * share == points::evaluate_points(commitments, member)).then_some(share)
    }

    /// Whether a complaint counts: it is in time, is about a member that dealt, and its proof holds.
    ///
    /// # Errors
    /// The reason why not.
    pub(crate) fn check_complaint(&self, complaint: &Complaint) -> Result<(), DkgRefusal> {
        let &Complaint { member, dealer, .. } = complaint;
        self.in_phase(Phase::Complaining, member)?;
        if !self.dealings.contains_key(&dealer) {
            return Err(DkgRefusal::NotDealt(dealer));
        }
        if self.proves(complaint) { Ok(()) } else { Err(DkgRefusal::WrongProof) }
    }

    /// Adds a member's complaint about a dealer.
    ///
    /// # Errors
    /// The reason why it does not count.
    pub fn complain(&mut self, complaint: &Complaint) -> Result<(), DkgRefusal> {
        self.check_complaint(complaint)?;
        self.judge(complaint);
        Ok(())
    }

    /// Decides who is wrong, for a complaint that counts; `None` if that was known.
    pub(crate) fn judge(&mut self, complaint: &Complaint) -> Option<Judged> {
        let &Complaint { member, dealer, shared, .. } = complaint;
        match self.share_under(dealer, member, &shared) {
            Some(_) => self.struck.insert(member).then_some(Judged::Struck(member)),
            None => self.out.insert(dealer).then_some(Judged::Out(dealer)),
        }
    }

    /// Whether the shared point is the member's key times the dealing's ephemeral point.
    fn proves(&self, complaint: &Complaint) -> bool {
        let &Complaint { member, dealer, shared, .. } = complaint;
        let own = points::parse(&self.terms.keys[usize::from(member)].to_bytes());
        let ephemeral = self.dealing_of(dealer).map(|dealing| dealing.ephemeral);
        let (Some(own), Some(ephemeral), Some(point)) = (own, ephemeral, points::parse(&shared)) else { return false };
        let Some(base) = points::parse(&ephemeral) else { return false };
        let scalars = (points::read_scalar(&complaint.challenge), points::read_scalar(&complaint.response));
        let (Some(proved), Some(response)) = scalars else { return false };
        let first = points::bytes(&(points::generator() * response - own * proved));
        let second = points::bytes(&(base * response - point * proved));
        challenge(&self.terms, dealer, member, [&ephemeral, &shared, &first, &second]) == proved
    }

    /// Ends the generation: the accepted dealings make the group key, or there is none and aggregates are used.
    pub fn finish(&mut self) -> Option<&GroupKey> {
        if self.phase != Phase::Finished {
            self.phase = Phase::Finished;
            self.outcome = self.group();
        }
        self.outcome()
    }

    fn group(&self) -> Option<GroupKey> {
        let standing: Vec<u8> = self.standing().collect();
        if !self.makes_key(standing.len(), self.struck.len()) {
            return None;
        }
        let mut sums = vec![G2Projective::identity(); self.terms.needed()];
        for dealer in standing {
            let (_, commitments) = self.dealings.get(&dealer)?;
            sums.iter_mut().zip(commitments).for_each(|(sum, commitment)| *sum += commitment);
        }
        let key = |point: G2Projective| BlsPublicKey::parse(&points::bytes(&point)).ok();
        let shares = (0..self.terms.keys.len()).map(|member| key(points::evaluate_points(&sums, member as u8)));
        Some(GroupKey {
            key: key(sums[0])?,
            shares: shares.collect::<Option<_>>()?,
            struck: self.struck.clone(),
            needed: self.terms.needed(),
        })
    }

    /// Whether so many accepted dealings make a key, if so many members are struck. One of the dealers must be
    /// correct, and enough members must be left.
    fn makes_key(&self, standing: usize, struck: usize) -> bool {
        match self.terms.purpose {
            DkgPurpose::Lane => {
                let Quorums { validators, faulty, certificate } = Quorums::new(self.terms.keys.len());
                standing > faulty && struck <= faulty && validators - struck >= certificate
            }
            DkgPurpose::Seals { needed, holders } => {
                standing >= usize::from(needed) && self.terms.keys.len() - struck >= usize::from(holders)
            }
        }
    }
}
