//! Certificates and closed logs, and the list that follows from them: see [`super`].

use std::collections::{BTreeMap, BTreeSet};

use primitives::{Amount, AssetId, Digest, PublicKey};

use super::{ClosedLog, LaneCarryOver, RestartPart, ShownPayment};
use crate::request::verify_claim;
use crate::{
    Bridge, CertifiedPayment, CheckBudget, HomeEpoch, LaneCommittee, LaneRefusal, Output, OutputId, PaymentBody,
    PaymentCertificate, Recipient, RootCache, StatementKind,
};

/// Verified roots kept of each validator.
const ROOTS: usize = 65_536;

/// Why nothing can be carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CarryRefusal {
    /// Two certified payments spend one output.
    #[error("output {0} is spent by two certified payments: more than f members signed twice, and the lane is lost")]
    SpentTwice(OutputId),
    /// The list needs more than escrow has.
    #[error("asset {asset}: outputs and claims need {needed} units and escrow holds {held}: the lane is lost")]
    Uncovered {
        /// The asset.
        asset: AssetId,
        /// Units of outputs, claims and queued claims.
        needed: u128,
        /// Units in escrow.
        held: u128,
    },
}

type LogName = (HomeEpoch, u8, u16);

/// A payment with a valid certificate.
#[derive(Debug)]
struct Certified {
    home: HomeEpoch,
    owner: PublicKey,
    /// The signers, each with the highest position that it signed with the payment.
    signers: BTreeMap<u8, u64>,
}

/// What was shown for a restart. The order in which it was shown does not matter.
#[derive(Debug)]
pub struct RestartEvidence {
    network: Digest,
    committees: BTreeMap<HomeEpoch, LaneCommittee>,
    logs: BTreeMap<LogName, ClosedLog>,
    /// Logs of which two versions were shown: neither is complete.
    doubted: BTreeSet<LogName>,
    bodies: BTreeMap<Digest, PaymentBody>,
    certified: BTreeMap<Digest, Certified>,
    roots: RootCache,
}

impl RestartEvidence {
    /// No evidence yet, about a lane with these committees. A certificate of another committee is refused.
    pub fn new(network: Digest, committees: BTreeMap<HomeEpoch, LaneCommittee>) -> RestartEvidence {
        RestartEvidence {
            network,
            committees,
            logs: BTreeMap::new(),
            doubted: BTreeSet::new(),
            bodies: BTreeMap::new(),
            certified: BTreeMap::new(),
            roots: RootCache::new(ROOTS),
        }
    }

    /// Adds a closed log. Certificates in it that do not hold count as nothing; returns how many these are.
    ///
    /// # Errors
    /// [`LaneRefusal::ForeignNetwork`] if it is a log of another network.
    pub fn add_log(&mut self, log: &ClosedLog) -> Result<usize, LaneRefusal> {
        if log.owner.network != self.network {
            return Err(LaneRefusal::ForeignNetwork(log.owner.network));
        }
        let name = (log.owner.home, log.owner.validator, log.owner.shard);
        let known = self.logs.entry(name).or_insert_with(|| log.clone());
        if *known != *log {
            self.doubted.insert(name);
        }
        log.payments.values().for_each(|body| self.add_body(body));
        Ok(log.certificates.values().filter(|of| self.show(of).is_err()).count())
    }

    /// Adds a certificate.
    ///
    /// # Errors
    /// Why it does not hold.
    pub fn show(&mut self, of: &CertifiedPayment) -> Result<(), LaneRefusal> {
        let CertifiedPayment { summary, certificate } = of;
        let committee = self.committees.get(&summary.home).ok_or(LaneRefusal::UnknownCommittee(summary.home))?;
        let (kind, budget) = (StatementKind::Confirmation, &mut CheckBudget(u32::MAX));
        verify_claim(committee, kind, summary, certificate, &mut self.roots, budget)?;
        let certified = self.certified.entry(summary.digest(&self.network));
        let of = certified.or_insert(Certified { home: summary.home, owner: summary.owner, signers: BTreeMap::new() });
        for (signer, position) in positions(certificate) {
            let known = of.signers.entry(signer).or_default();
            *known = position.max(*known);
        }
        Ok(())
    }

    /// Adds an operator's part: its logs and what was shown to it. Certificates that do not hold count as nothing.
    ///
    /// # Errors
    /// [`LaneRefusal::ForeignNetwork`] if it has a log of another network.
    pub fn add_part(&mut self, part: &RestartPart) -> Result<(), LaneRefusal> {
        part.logs.iter().try_for_each(|log| self.add_log(log).map(drop))?;
        for ShownPayment { body, certified } in &part.shown {
            body.iter().for_each(|body| self.add_body(body));
            drop(self.show(certified));
        }
        Ok(())
    }

    /// Adds a payment whose certificate is or will be shown.
    pub fn add_body(&mut self, body: &PaymentBody) {
        if body.payment.network == self.network {
            self.bodies.entry(body.digest).or_insert_with(|| body.clone());
        }
    }

    /// The list that the lane of the restarted network begins with. `snapshot` is the lane's state in the snapshot.
    ///
    /// # Errors
    /// [`CarryRefusal`]: more than f members are Byzantine, and no list is safe.
    pub fn carry(&self, snapshot: &Bridge) -> Result<LaneCarryOver, CarryRefusal> {
        let certified = self.certified_bodies(snapshot);
        let parts = KnownParts::of(&certified, snapshot);
        let standing: Vec<&PaymentBody> = certified.values().copied().filter(|body| stands(body, snapshot)).collect();
        let mut spent = BTreeSet::new();
        for input in standing.iter().flat_map(|body| body.input_ids()) {
            if !spent.insert(input) {
                return Err(CarryRefusal::SpentTwice(input));
            }
        }
        let mut carried = LaneCarryOver::default();
        snapshot.kept_outputs().for_each(|(home, id, output)| self.place(&mut carried, home, id, output));
        for body in &standing {
            let is_paid = body.input_ids().any(|input| snapshot.fate(body.payment.home, &input).is_some());
            for (id, output) in body.output_ids().zip(&body.payment.outputs) {
                let amount = parts.of_output(&id, output.amount);
                let output = Output { amount, ..*output };
                match output.to {
                    _ if amount == 0 => {}
                    Recipient::Account(_) if is_paid => {}
                    Recipient::Account(_) => drop(carried.claims.insert(id, output)),
                    Recipient::Key(_) => self.place(&mut carried, body.payment.into, id, output),
                }
            }
        }
        let is_free = |home: HomeEpoch, id: &OutputId| !spent.contains(id) && snapshot.fate(home, id).is_none();
        let homes = self.homes_of(&standing, snapshot);
        carried.outputs.retain(|id, _| is_free(homes[id], id));
        carried.aside.retain(|id, _| is_free(homes[id], id));
        snapshot.covers(&carried)?;
        Ok(carried)
    }

    /// Puts an output on the list, or aside.
    fn place(&self, carried: &mut LaneCarryOver, home: HomeEpoch, id: OutputId, output: Output) {
        let Recipient::Key(owner) = output.to else { return };
        let list = if self.binds(home, &owner) { &mut carried.outputs } else { &mut carried.aside };
        list.insert(id, output);
    }

    fn homes_of(&self, standing: &[&PaymentBody], snapshot: &Bridge) -> BTreeMap<OutputId, HomeEpoch> {
        let created = standing.iter().flat_map(|body| body.output_ids().map(|id| (id, body.payment.into)));
        snapshot.kept_outputs().map(|(home, id, _)| (id, home)).chain(created).collect()
    }

    /// Certified payments of homes that the snapshot keeps, or later ones.
    fn certified_bodies(&self, snapshot: &Bridge) -> BTreeMap<Digest, &PaymentBody> {
        let known: BTreeSet<&Digest> = snapshot.resolver().certified().chain(self.certified.keys()).collect();
        let counts = |home: HomeEpoch| home > snapshot.clock().epoch() || snapshot.is_kept(home);
        let bodies = self.bodies.iter().filter(|(digest, body)| known.contains(digest) && counts(body.payment.home));
        bodies.map(|(digest, body)| (*digest, body)).collect()
    }

    /// Whether binding members of a home have shown complete logs of the shards that sign for an owner. A member
    /// without keys in that epoch has signed nothing.
    fn binds(&self, home: HomeEpoch, owner: &PublicKey) -> bool {
        let Some(committee) = self.committees.get(&home) else { return false };
        let quorums = committee.quorums();
        let complete = |member: &usize| match committee.shard_of(*member as u8, owner) {
            Ok(shard) => self.is_complete((home, *member as u8, shard)),
            Err(refusal) => matches!(refusal, LaneRefusal::Unregistered(_)),
        };
        (0..quorums.validators).filter(complete).count() >= quorums.binding()
    }

    /// Whether a log has all that its member is known to have signed.
    fn is_complete(&self, name: LogName) -> bool {
        let (home, validator, shard) = name;
        let (Some(log), Some(committee)) = (self.logs.get(&name), self.committees.get(&home)) else { return false };
        let lacks = |(digest, of): (&Digest, &Certified)| {
            let is_of_log = of.home == home && committee.shard_of(validator, &of.owner) == Ok(shard);
            let position = of.signers.get(&validator).filter(|_| is_of_log);
            position.is_some_and(|position| !log.payments.contains_key(digest) || *position > log.length)
        };
        !self.doubted.contains(&name) && !self.certified.iter().any(lacks)
    }
}

/// The signers of a certificate, each with the length of its log that it signed; 0 if the form has none.
fn positions(certificate: &PaymentCertificate) -> Vec<(u8, u64)> {
    match certificate {
        PaymentCertificate::Answers(answers) => answers.iter().map(|of| (of.validator, of.position)).collect(),
        other => other.signers().into_iter().map(|signer| (signer, 0)).collect(),
    }
}

/// Whether the snapshot knows no input of a payment as taken by something else.
fn stands(body: &PaymentBody, snapshot: &Bridge) -> bool {
    let fate = |input: OutputId| snapshot.fate(body.payment.home, &input);
    body.input_ids().filter_map(fate).all(|fate| fate == Some(body.digest))
}

/// Known parts of outputs of payments of the snapshot's epoch and later ones: see [`super`], rule 5.
struct KnownParts(BTreeMap<OutputId, Amount>);

impl KnownParts {
    /// Parents first, without recursion: a chain of payments may be long.
    fn of(certified: &BTreeMap<Digest, &PaymentBody>, snapshot: &Bridge) -> KnownParts {
        let now = snapshot.clock().epoch();
        let late: BTreeMap<&Digest, &PaymentBody> = certified
            .iter()
            .filter(|(_, body)| body.payment.home >= now)
            .map(|(digest, body)| (digest, *body))
            .collect();
        let creators: BTreeMap<OutputId, &Digest> =
            late.iter().flat_map(|(digest, body)| body.output_ids().map(|id| (id, *digest))).collect();
        let parents = |body: &PaymentBody| -> BTreeSet<&Digest> {
            body.input_ids().filter_map(|input| creators.get(&input).copied()).collect()
        };
        let mut left: BTreeMap<&Digest, usize> =
            late.iter().map(|(digest, body)| (*digest, parents(body).len())).collect();
        let mut children: BTreeMap<&Digest, Vec<&Digest>> = BTreeMap::new();
        for (digest, body) in &late {
            parents(body).into_iter().for_each(|parent| children.entry(parent).or_default().push(digest));
        }
        let early = certified.values().filter(|body| body.payment.home < now);
        let full = early.flat_map(|body| body.output_ids().zip(body.payment.outputs.iter().map(|of| of.amount)));
        let mut parts = KnownParts(full.collect());
        parts.0.extend(snapshot.kept_outputs().map(|(_, id, output)| (id, output.amount)));
        let mut ready: Vec<&Digest> = left.iter().filter(|(_, left)| **left == 0).map(|(digest, _)| *digest).collect();
        while let Some(digest) = ready.pop() {
            parts.add(late[digest]);
            for child in children.remove(digest).unwrap_or_default() {
                let left = left.get_mut(child).expect("it has a count");
                *left -= 1;
                if *left == 0 {
                    ready.push(child);
                }
            }
        }
        parts
    }

    fn add(&mut self, body: &PaymentBody) {
        let mut sums: BTreeMap<AssetId, (u128, u128)> = BTreeMap::new();
        for input in &body.payment.inputs {
            let (known, all) = sums.entry(input.asset).or_default();
            *known += u128::from(self.0.get(&input.id).copied().unwrap_or(0).min(input.amount));
            *all += u128::from(input.amount);
        }
        for (id, output) in body.output_ids().zip(&body.payment.outputs) {
            let (known, all) = sums.get(&output.asset).copied().unwrap_or_default();
            let part = (u128::from(output.amount) * known).checked_div(all).unwrap_or(0);
            self.0.insert(id, Amount::try_from(part).map_or(output.amount, |part| part.min(output.amount)));
        }
    }

    fn of_output(&self, id: &OutputId, amount: Amount) -> Amount {
        self.0.get(id).copied().unwrap_or(0).min(amount)
    }
}
