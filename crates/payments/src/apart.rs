//! What a member's node and a shard of it that runs in another process tell each other, as bytes.
//!
//! The protocol between them is `member::apart`. Here are the layouts of what is in it: a fact, a report, the terms of
//! a home, and the keys that a shard offers for an epoch. Both ends read strictly: what does not fill its bytes, or is
//! no value of its kind, is [`LaneRefusal::Malformed`].
//!
//! ```text
//! fact    1 epoch 8 · 2 id 32, output · 3 id 32, output (proven) · 4 halted 1 · 5 case · 6 id 32, count 2, payment[]
//!         · 7 id 32, certified? · 8 id 32, verdict · 9 epoch 8 (signs through) · 10 digest 32 (confirmed)
//! verdict 0 digest 32, by 1 · 1 freed · 2 lapsed · 3 expired
//! report  1 id 32, payment, signature?, answer (vote) · 2 certified (shown) · 3 id 32, certified? (barred)
//!         · 4 id 32, certified?, answer (view)
//! x?      0 · 1, x
//! payment length 2 · payment
//! terms   rules · committee · committee?
//! rules   network 32 · least 8, fee 8 of other assets · count 4 · (asset 4 · least 8 · fee 8)[]
//! committee  epoch 8 · members 2 · (count 2 · key 32 each)[] · 0 | 1, BLS key 96 for each key
//! offer   key 32 · proof 64 · 0 | 1, BLS key 96, its proof 48
//! ```

use std::sync::Arc;

use primitives::{AssetId, Digest, PublicKey, SecretKey, Signature};

use crate::layout::{Reader, read_payment, write_payment};
use crate::resolve::{ConfirmedBy, ContestedOutput, Verdict};
use crate::{
    AssetRule, BlsPublicKey, BlsSecretKey, BlsSignature, CertifiedPayment, LaneAnswer, LaneBls, LaneCommittee,
    LaneEffect, LaneFact, LaneInput, LaneRefusal, LaneRules, Output, OutputId, PaymentBody, RegisteredBls,
};

const WRONG_KIND: LaneRefusal = LaneRefusal::Malformed("it is no fact, report, verdict or option");

fn write_option<T>(to: &mut Vec<u8>, of: Option<&T>, write: impl FnOnce(&T, &mut Vec<u8>)) {
    to.push(u8::from(of.is_some()));
    if let Some(of) = of {
        write(of, to);
    }
}

fn read_option<'a, T>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, LaneRefusal>,
) -> Result<Option<T>, LaneRefusal> {
    match reader.u8()? {
        0 => Ok(None),
        1 => read(reader).map(Some),
        _ => Err(WRONG_KIND),
    }
}

/// Parses a value that fills its bytes.
fn parse<T>(bytes: &[u8], read: impl FnOnce(&mut Reader<'_>) -> Result<T, LaneRefusal>) -> Result<T, LaneRefusal> {
    let mut reader = Reader::new(bytes);
    let value = read(&mut reader)?;
    reader.end().map(|()| value)
}

fn write_certified(to: &mut Vec<u8>, of: Option<&CertifiedPayment>) {
    write_option(to, of, CertifiedPayment::write);
}

fn read_certified(reader: &mut Reader<'_>) -> Result<Option<Box<CertifiedPayment>>, LaneRefusal> {
    read_option(reader, |reader| CertifiedPayment::read(reader).map(Box::new))
}

/// The bytes of a fact; `None` if it is no news of the ledger or of other shards, but something of the shard's own
/// clients, disk and clock.
pub fn fact_bytes(fact: &LaneFact) -> Option<Vec<u8>> {
    let (kind, parts): (u8, Vec<u8>) = match fact {
        LaneInput::Epoch(epoch) => (1, epoch.to_le_bytes().to_vec()),
        LaneInput::Backed(id, output) => (2, output_bytes(id, output)),
        LaneInput::Proven(id, output) => (3, output_bytes(id, output)),
        LaneInput::Halted(halted) => (4, vec![u8::from(*halted)]),
        LaneInput::CaseOpened(contested) => {
            let mut to = Vec::new();
            contested.write(&mut to);
            (5, to)
        }
        LaneInput::CandidatesFixed(case, bodies) => (6, candidates_bytes(case, bodies)),
        LaneInput::AllBarred(case, paid) => {
            let mut to = case.0.to_vec();
            write_certified(&mut to, paid.as_deref());
            (7, to)
        }
        LaneInput::CaseRuled(case, verdict) => (8, [&case.0[..], &verdict_bytes(verdict)].concat()),
        LaneInput::SignsThrough(epoch) => (9, epoch.to_le_bytes().to_vec()),
        LaneInput::Confirmed(payment) => (10, payment.0.to_vec()),
        LaneInput::Request { .. }
        | LaneInput::Connected(..)
        | LaneInput::Disconnected(_)
        | LaneInput::Tick
        | LaneInput::Synced(_)
        | LaneInput::SyncFailed => return None,
    };
    Some([&[kind][..], &parts].concat())
}

fn output_bytes(id: &OutputId, output: &Output) -> Vec<u8> {
    let mut to = id.0.to_vec();
    output.write(&mut to);
    to
}

fn candidates_bytes(case: &OutputId, bodies: &[Arc<PaymentBody>]) -> Vec<u8> {
    let mut to = case.0.to_vec();
    to.extend(u16::try_from(bodies.len()).expect("bounded by the members of a committee").to_le_bytes());
    bodies.iter().for_each(|body| write_payment(&mut to, &body.payment.encode()));
    to
}

fn verdict_bytes(verdict: &Verdict) -> Vec<u8> {
    match verdict {
        Verdict::Confirmed(digest, by) => [&[0][..], &digest.0, &[*by as u8]].concat(),
        Verdict::Freed => vec![1],
        Verdict::Lapsed => vec![2],
        Verdict::Expired => vec![3],
    }
}

fn read_id(reader: &mut Reader<'_>) -> Result<OutputId, LaneRefusal> {
    reader.array().map(OutputId)
}

/// Parses a fact that fills `bytes`.
///
/// # Errors
/// [`LaneRefusal::Malformed`] for anything that [`fact_bytes`] does not write.
pub fn parse_fact(bytes: &[u8]) -> Result<LaneFact, LaneRefusal> {
    parse(bytes, |reader| {
        Ok(match reader.u8()? {
            1 => LaneInput::Epoch(reader.u64()?),
            2 => LaneInput::Backed(read_id(reader)?, Output::read(reader)?),
            3 => LaneInput::Proven(read_id(reader)?, Output::read(reader)?),
            4 => LaneInput::Halted(read_option(reader, |_| Ok(()))?.is_some()),
            5 => LaneInput::CaseOpened(ContestedOutput::read(reader)?),
            6 => LaneInput::CandidatesFixed(read_id(reader)?, read_candidates(reader)?),
            7 => LaneInput::AllBarred(read_id(reader)?, read_certified(reader)?),
            8 => LaneInput::CaseRuled(read_id(reader)?, read_verdict(reader)?),
            9 => LaneInput::SignsThrough(reader.u64()?),
            10 => LaneInput::Confirmed(reader.digest()?),
            _ => return Err(WRONG_KIND),
        })
    })
}

fn read_candidates(reader: &mut Reader<'_>) -> Result<Vec<Arc<PaymentBody>>, LaneRefusal> {
    let count = u16::from_le_bytes(reader.array()?);
    (0..count).map(|_| PaymentBody::parse(&read_payment(reader)?).map(Arc::new)).collect()
}

fn read_verdict(reader: &mut Reader<'_>) -> Result<Verdict, LaneRefusal> {
    const BY: [ConfirmedBy; 3] = [ConfirmedBy::Votes, ConfirmedBy::Certificate, ConfirmedBy::Child];
    match reader.u8()? {
        0 => {
            let (digest, by) = (reader.digest()?, usize::from(reader.u8()?));
            BY.get(by).map(|by| Verdict::Confirmed(digest, *by)).ok_or(WRONG_KIND)
        }
        1 => Ok(Verdict::Freed),
        2 => Ok(Verdict::Lapsed),
        3 => Ok(Verdict::Expired),
        _ => Err(WRONG_KIND),
    }
}

/// The bytes of a report of a shard to its member; `None` for what is between a shard and its clients or its disk.
pub fn report_bytes(report: &LaneEffect) -> Option<Vec<u8>> {
    let mut to = Vec::new();
    match report {
        LaneEffect::Vote { case, payment, signature, answer } => {
            to.push(1);
            to.extend(case.0);
            write_payment(&mut to, payment);
            write_option(&mut to, signature.as_ref(), |signature, to| to.extend(signature.0));
            answer.write(&mut to);
        }
        LaneEffect::Shown(of) => {
            to.push(2);
            of.write(&mut to);
        }
        LaneEffect::Barred { case, paid } => {
            to.push(3);
            to.extend(case.0);
            write_certified(&mut to, paid.as_deref());
        }
        LaneEffect::View { case, paid, answer } => {
            to.push(4);
            to.extend(case.0);
            write_certified(&mut to, paid.as_deref());
            answer.write(&mut to);
        }
        _ => return None,
    }
    Some(to)
}

/// Parses a report that fills `bytes`. Nothing that it claims is verified.
///
/// # Errors
/// [`LaneRefusal::Malformed`] for anything that [`report_bytes`] does not write.
pub fn parse_report(bytes: &[u8]) -> Result<LaneEffect, LaneRefusal> {
    parse(bytes, |reader| {
        Ok(match reader.u8()? {
            1 => LaneEffect::Vote {
                case: read_id(reader)?,
                payment: read_payment(reader)?,
                signature: read_option(reader, Reader::signature)?,
                answer: LaneAnswer::read(reader)?,
            },
            2 => LaneEffect::Shown(Box::new(CertifiedPayment::read(reader)?)),
            3 => LaneEffect::Barred { case: read_id(reader)?, paid: read_certified(reader)? },
            4 => LaneEffect::View {
                case: read_id(reader)?,
                paid: read_certified(reader)?,
                answer: LaneAnswer::read(reader)?,
            },
            _ => return Err(WRONG_KIND),
        })
    })
}

impl LaneRules {
    fn write(&self, to: &mut Vec<u8>) {
        let rule = |to: &mut Vec<u8>, rule: &AssetRule| {
            to.extend(rule.least_units.to_le_bytes());
            to.extend(rule.fee.to_le_bytes());
        };
        to.extend(self.network.0);
        rule(to, &self.other);
        to.extend((self.assets.len() as u32).to_le_bytes());
        for (asset, of) in &self.assets {
            to.extend(asset.0.to_le_bytes());
            rule(to, of);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<LaneRules, LaneRefusal> {
        let rule = |reader: &mut Reader<'_>| Ok(AssetRule { least_units: reader.u64()?, fee: reader.u64()? });
        let (network, other, count) = (reader.digest()?, rule(reader)?, reader.u32()?);
        let asset = |reader: &mut Reader<'_>| Ok((AssetId(reader.u32()?), rule(reader)?));
        let assets = crate::resolve::read_map(reader, count, asset)?;
        Ok(LaneRules { network, assets, other })
    }
}

/// The terms of a home, without the outputs that the ledger knows, which are facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeTerms {
    /// The rules of payments.
    pub rules: LaneRules,
    /// The committee of the home.
    pub committee: LaneCommittee,
    /// The committee of the epoch before.
    pub previous: Option<LaneCommittee>,
}

impl HomeTerms {
    /// Its layout. A group key is not part of it: a shard apart from its node has none.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        self.rules.write(&mut to);
        self.committee.write(&mut to);
        write_option(&mut to, self.previous.as_ref(), LaneCommittee::write);
        to
    }

    /// A digest of the keys of the home's committee, and of the network.
    pub fn committee_digest(&self) -> Digest {
        const CONTEXT: &str = "walras 2026 lane shard terms v1";
        let mut bytes = self.rules.network.0.to_vec();
        self.committee.write(&mut bytes);
        Digest::of(CONTEXT, &bytes)
    }

    /// Parses terms that fill `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`HomeTerms::encode`] does not write, or if the parts do not fit
    /// together; [`LaneRefusal::WrongBlsKey`].
    pub fn parse(bytes: &[u8]) -> Result<HomeTerms, LaneRefusal> {
        let terms = parse(bytes, |reader| {
            let rules = LaneRules::read(reader)?;
            let committee = LaneCommittee::read(reader, rules.network)?;
            let previous = read_option(reader, |reader| LaneCommittee::read(reader, rules.network))?;
            Ok(HomeTerms { rules, committee, previous })
        })?;
        let follows = |before: &LaneCommittee| before.epoch().checked_add(1) == Some(terms.committee.epoch());
        if !terms.previous.as_ref().is_none_or(follows) {
            return Err(LaneRefusal::Malformed("the previous committee is of the epoch before"));
        }
        Ok(terms)
    }
}

/// What a shard offers its member for an epoch: its key, and the proofs that it has it. The secret stays with the
/// shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardOffer {
    /// The key.
    pub key: PublicKey,
    /// Proves that the shard has it.
    pub proof: Signature,
    /// Its BLS key, where the lane has such keys.
    pub bls: Option<RegisteredBls>,
}

impl ShardOffer {
    /// The offer of a shard for the registrar of its member. `place` is epoch, member and shard.
    pub fn make(
        network: &Digest,
        place: (crate::HomeEpoch, u8, u16),
        key: &SecretKey,
        bls: LaneBls,
        registrar: &PublicKey,
    ) -> ShardOffer {
        let (epoch, member, shard) = place;
        let proof = key.sign(&crate::registration::possession_message(network, epoch, member, shard, registrar));
        let register = |bls: BlsSecretKey| RegisteredBls {
            key: bls.public().to_bytes(),
            proof: bls.prove_possession(network, &registrar.address()),
        };
        let bls = (bls != LaneBls::None).then(|| register(BlsSecretKey::of_shard(key)));
        ShardOffer { key: key.public(), proof, bls }
    }

    /// Its layout.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = [&self.key.0[..], &self.proof.0].concat();
        write_option(&mut to, self.bls.as_ref(), |bls, to| {
            to.extend(bls.key);
            to.extend(bls.proof.0);
        });
        to
    }

    /// Parses an offer that fills `bytes`. Its proofs are not checked: [`crate::LaneRegistration::check_possession`].
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<ShardOffer, LaneRefusal> {
        parse(bytes, |reader| {
            let (key, proof) = (reader.key()?, reader.signature()?);
            let bls = |reader: &mut Reader<'_>| {
                Ok(RegisteredBls { key: reader.array()?, proof: BlsSignature(reader.array()?) })
            };
            Ok(ShardOffer { key, proof, bls: read_option(reader, bls)? })
        })
    }
}

impl LaneCommittee {
    fn write(&self, to: &mut Vec<u8>) {
        let members = 0..self.quorums().validators as u16;
        to.extend(self.epoch().to_le_bytes());
        to.extend((members.len() as u16).to_le_bytes());
        for member in members.clone() {
            let keys = self.keys_of(member as u8);
            to.extend((keys.len() as u16).to_le_bytes());
            keys.iter().for_each(|key| to.extend(key.0));
        }
        to.push(u8::from(self.has_bls()));
        for member in members.filter(|_| self.has_bls()) {
            self.bls_keys_of(member as u8).iter().for_each(|key| to.extend(key.to_bytes()));
        }
    }

    fn read(reader: &mut Reader<'_>, network: Digest) -> Result<LaneCommittee, LaneRefusal> {
        let (epoch, members) = (reader.u64()?, u16::from_le_bytes(reader.array()?));
        if !(1..=crate::VALIDATORS_MAX).contains(&usize::from(members)) {
            return Err(LaneRefusal::Malformed("a committee has 1 to 256 validators"));
        }
        let keys_of = |reader: &mut Reader<'_>| {
            let count = u16::from_le_bytes(reader.array()?);
            (0..count).map(|_| reader.key()).collect::<Result<Vec<PublicKey>, _>>()
        };
        let keys = (0..members).map(|_| keys_of(reader)).collect::<Result<Vec<_>, _>>()?;
        let counts: Vec<usize> = keys.iter().map(Vec::len).collect();
        let bls_of = |reader: &mut Reader<'_>, count: usize| {
            let key = |reader: &mut Reader<'_>| BlsPublicKey::parse(&reader.array()?);
            (0..count).map(|_| key(reader)).collect::<Result<Vec<BlsPublicKey>, LaneRefusal>>()
        };
        let bls = read_option(reader, |reader| counts.iter().map(|count| bls_of(reader, *count)).collect())?;
        Ok(LaneCommittee::new(network, epoch, keys).with_checked_bls(bls))
    }
}

impl crate::LaneRegistration {
    /// Registers what the shards of a member offer, in their order; also returns the proofs that go with it.
    pub fn of_offers(
        network: &Digest,
        epoch: crate::HomeEpoch,
        member: u8,
        offers: &[ShardOffer],
        registrar: &SecretKey,
    ) -> (crate::LaneRegistration, Vec<Signature>) {
        let keys: Vec<PublicKey> = offers.iter().map(|of| of.key).collect();
        let bls: Vec<RegisteredBls> = offers.iter().filter_map(|of| of.bls).collect();
        let message = crate::registration::registrar_message(network, epoch, member, &keys, &bls);
        let signature = registrar.sign(&message);
        let proofs = offers.iter().map(|of| of.proof).collect();
        (crate::LaneRegistration { epoch, member, keys, bls, signature }, proofs)
    }
}
