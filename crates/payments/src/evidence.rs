//! Evidence that a validator broke the lane's rules: what a correct one never signs.
//!
//! * Two confirmations by one lane key of payments that share an input.
//! * Two views of one case with different contents.
//!
//! Two votes in one case are two confirmations of payments that share the contested output, so they need no variant of
//! their own. Whoever holds evidence sends it to the ledger; it convicts once, so copies do nothing. Lane keys are
//! apart from consensus keys, and so is this evidence.
//!
//! ```text
//! evidence  1 · home 8 · length 2 · payment · answer · length 2 · payment · answer
//!           2 · committee 8 · case 32 · owner 32 · (count 1 · digest 32 each · answer) twice
//! ```

use std::collections::BTreeSet;

use primitives::{Digest, PublicKey};

use crate::bridge::{read_payment, write_payment};
use crate::layout::Reader;
use crate::resolve::read_map;
use crate::{
    CheckBudget, Claim, HomeEpoch, LaneAnswer, LaneCommittee, LaneRefusal, OutputId, PaymentBody, RootCache,
    StatementKind, view_digest,
};

/// Two signatures that contradict each other. The second of two equal kinds is the greater one, so that one pair has
/// one encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneEvidence {
    /// Confirmations of two payments that share an input.
    Payments {
        /// The home of both.
        home: HomeEpoch,
        /// Encodings and signatures, by ascending digest.
        pair: Box<[(Vec<u8>, LaneAnswer); 2]>,
    },
    /// Two views of one case.
    Views {
        /// The validator's committee.
        committee: HomeEpoch,
        /// The contested output.
        case: OutputId,
        /// Its owner: it decides the shard.
        owner: PublicKey,
        /// What was said to be seen, ascending, and signatures.
        pair: Box<[(BTreeSet<Digest>, LaneAnswer); 2]>,
    },
}

/// Whom evidence convicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Convicted {
    /// The committee.
    pub epoch: HomeEpoch,
    /// The validator's index in it.
    pub validator: u8,
}

const NONE: LaneRefusal = LaneRefusal::Malformed("the signatures do not contradict each other");

impl LaneEvidence {
    /// The committee whose keys decide.
    pub fn epoch(&self) -> HomeEpoch {
        match self {
            LaneEvidence::Payments { home, .. } => *home,
            LaneEvidence::Views { committee, .. } => *committee,
        }
    }

    /// Whom it convicts.
    ///
    /// # Errors
    /// What is wrong with it. Evidence that is wrong convicts nobody.
    pub fn verify(&self, committee: &LaneCommittee) -> Result<Convicted, LaneRefusal> {
        if committee.epoch() != self.epoch() {
            return Err(LaneRefusal::UnknownCommittee(self.epoch()));
        }
        let (roots, budget) = (&mut RootCache::new(0), &mut CheckBudget(2));
        let validators = match self {
            LaneEvidence::Payments { home, pair } => {
                let bodies = [PaymentBody::parse(&pair[0].0)?, PaymentBody::parse(&pair[1].0)?];
                let share = bodies[0].input_ids().any(|id| bodies[1].input_ids().any(|other| other == id));
                let here =
                    |body: &PaymentBody| body.payment.home == *home && body.payment.network == committee.network();
                if !share || !bodies.iter().all(here) || bodies[0].digest >= bodies[1].digest {
                    return Err(NONE);
                }
                for (body, (_, answer)) in bodies.iter().zip(pair.iter()) {
                    let kind = StatementKind::Confirmation;
                    let claim = Claim { kind, owner: &body.payment.owner, digest: &body.digest };
                    roots.verify(committee, &claim, answer, budget)?;
                }
                [pair[0].1.validator, pair[1].1.validator]
            }
            LaneEvidence::Views { case, owner, pair, .. } => {
                if pair[0].0 >= pair[1].0 {
                    return Err(NONE);
                }
                for (seen, answer) in pair.iter() {
                    let digest = view_digest(case, seen);
                    let claim = Claim { kind: StatementKind::View, owner, digest: &digest };
                    roots.verify(committee, &claim, answer, budget)?;
                }
                [pair[0].1.validator, pair[1].1.validator]
            }
        };
        let [validator, other] = validators;
        if validator == other { Ok(Convicted { epoch: self.epoch(), validator }) } else { Err(NONE) }
    }

    /// Its layout.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        match self {
            LaneEvidence::Payments { home, pair } => {
                to.push(1);
                to.extend(home.to_le_bytes());
                for (payment, answer) in pair.iter() {
                    write_payment(&mut to, payment);
                    answer.write(&mut to);
                }
            }
            LaneEvidence::Views { committee, case, owner, pair } => {
                to.push(2);
                to.extend(committee.to_le_bytes());
                to.extend(case.0);
                to.extend(owner.0);
                for (seen, answer) in pair.iter() {
                    to.push(u8::try_from(seen.len()).expect("a view names at most 255 candidates"));
                    seen.iter().for_each(|digest| to.extend(digest.0));
                    answer.write(&mut to);
                }
            }
        }
        to
    }

    /// Reads evidence that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`LaneEvidence::encode`] does not write.
    pub fn parse(bytes: &[u8]) -> Result<LaneEvidence, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let read = &mut reader;
        let evidence = match read.u8()? {
            1 => {
                let home = read.u64()?;
                let mut signed = || Ok::<_, LaneRefusal>((read_payment(read)?, LaneAnswer::read(read)?));
                LaneEvidence::Payments { home, pair: Box::new([signed()?, signed()?]) }
            }
            2 => {
                let (committee, case, owner) = (read.u64()?, OutputId(read.array()?), read.key()?);
                let mut view = || {
                    let count = read.u8()?;
                    let seen = read_map(read, count.into(), |read| Ok((read.digest()?, ())))?;
                    Ok::<_, LaneRefusal>((seen.into_keys().collect(), LaneAnswer::read(read)?))
                };
                LaneEvidence::Views { committee, case, owner, pair: Box::new([view()?, view()?]) }
            }
            _ => return Err(LaneRefusal::Malformed("evidence is of payments (1) or of views (2)")),
        };
        reader.end()?;
        Ok(evidence)
    }
}

/// Finds evidence among confirmations that somebody meets, as a watcher or the ledger does with votes: for each
/// validator and input the first one is kept.
#[derive(Clone, Debug, Default)]
pub struct EvidenceFinder {
    first: std::collections::BTreeMap<(u8, OutputId), (Digest, Vec<u8>, LaneAnswer)>,
}

impl EvidenceFinder {
    /// Notes a verified confirmation of a payment of one home; evidence, if it contradicts an earlier one.
    pub fn note(&mut self, body: &PaymentBody, answer: &LaneAnswer) -> Option<LaneEvidence> {
        let encoding = body.payment.encode();
        for input in body.input_ids() {
            let entry = self.first.entry((answer.validator, input));
            let (digest, payment, before) = entry.or_insert_with(|| (body.digest, encoding.clone(), answer.clone()));
            if *digest != body.digest {
                let mut pair = [(payment.clone(), before.clone()), (encoding, answer.clone())];
                if *digest > body.digest {
                    pair.reverse();
                }
                return Some(LaneEvidence::Payments { home: body.payment.home, pair: Box::new(pair) });
            }
        }
        None
    }

    /// Forgets everything, when the home ends.
    pub fn clear(&mut self) {
        self.first.clear();
    }
}
