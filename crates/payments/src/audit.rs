//! The audit of a lane: compares logs of validators with the genesis and the facts of the ledger.
//!
//! The *escrow equation* holds for each asset: escrow = genesis backing + deposits − redemptions − verdicts. The audit
//! reads the logs of a *binding* number of validators ([`crate::Quorums::binding`], 2f+1 where n = 3f+1). Every payment
//! conserves each asset. Every input traces to a deposit, the genesis or an output of a logged payment. No output is
//! reserved by two payments that could both be certified. Correct validators' logs differ, because clients need only q
//! of them, so there are no equal set hashes to compare; [`LaneLogSummary::root`] commits to one log.

use std::collections::{BTreeMap, BTreeSet};

use primitives::{Amount, AssetId, Digest};

use crate::record::{Record, recover};
use crate::{
    EscrowTotals, HomeEpoch, LaneLog, LaneRules, LogOwner, MuteReason, Output, OutputId, Payment, PaymentBody, Quorums,
    Recipient,
};

/// The logged content of one validator's shard.
#[derive(Clone, Debug)]
pub struct LaneLogSummary {
    /// The owner of the log.
    pub owner: LogOwner,
    payments: BTreeMap<Digest, PaymentBody>,
}

impl LaneLogSummary {
    /// Reads a log.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn read(log: &impl LaneLog, owner: LogOwner) -> Result<LaneLogSummary, MuteReason> {
        let mut payments = BTreeMap::new();
        recover(log, &owner, |_, record| {
            if let Record::Payment(view, _) = record {
                let body = PaymentBody { digest: view.digest(), payment: view.to_payment() };
                payments.insert(body.digest, body);
            }
        })?;
        Ok(LaneLogSummary { owner, payments })
    }

    /// A hash of all payments of the log, in the order of their digests.
    pub fn root(&self) -> Digest {
        let bytes: Vec<u8> = self.payments.keys().flat_map(|digest| digest.0).collect();
        Digest::of("walras 2026 lane audit root v1", &bytes)
    }
}

/// The facts that the ledger knows of the lane.
#[derive(Clone, Debug, Default)]
pub struct LedgerFacts {
    /// Totals that went into and out of escrow.
    pub totals: BTreeMap<AssetId, EscrowTotals>,
    /// Units that the ledger's custody holds for the lane.
    pub escrow: BTreeMap<AssetId, u128>,
    /// Outputs that genesis and withdrawals created, with their homes.
    pub backed: BTreeMap<OutputId, (HomeEpoch, Output)>,
    /// Payments whose certificates the ledger saw.
    pub certified: BTreeSet<Digest>,
    /// Outputs that a verdict credited to their owners.
    pub credited: BTreeSet<OutputId>,
}

/// The faults that an audit can find.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneAuditError {
    /// Escrow does not equal deposits minus payouts.
    #[error("asset {asset}: escrow holds {held}, but deposits and payouts make {expected}")]
    Escrow {
        /// The asset.
        asset: AssetId,
        /// Units in custody.
        held: u128,
        /// Units according to the equation.
        expected: u128,
    },
    /// More units left escrow than entered it.
    #[error("asset {0}: more was paid out of escrow than came into it")]
    Overpaid(AssetId),
    /// There are too few logs of a committee to judge.
    #[error("epoch {epoch}: {logs} validators' logs are given, {needed} are needed")]
    TooFewLogs {
        /// The committee.
        epoch: HomeEpoch,
        /// Number of validators with a given log.
        logs: usize,
        /// Number of logs needed.
        needed: usize,
    },
    /// A payment does not conserve an asset, or breaks another rule.
    #[error("payment {0} does not conserve each asset, or breaks another rule of the lane")]
    Unsound(Digest),
    /// An input was created by no one.
    #[error("payment {payment} spends output {output}, which neither the ledger nor a logged payment created")]
    Untraced {
        /// The payment.
        payment: Digest,
        /// The output.
        output: OutputId,
    },
    /// A validator reserved an output for two payments.
    #[error("validator {validator} reserved output {output} twice")]
    Equivocated {
        /// The validator.
        validator: u8,
        /// The output.
        output: OutputId,
    },
    /// Two payments of one output may be certified, or one may be and the output was credited.
    #[error("output {0} may be spent twice; give the logs of more validators to know")]
    SpentTwice(OutputId),
}

/// The counts of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneAuditReport {
    /// Distinct payments in all logs.
    pub payments: usize,
    /// Payments that may be certified, if validators without a log here signed them.
    pub certified: usize,
    /// Inputs of the oldest home that no log here created: the logs of the previous committee are already destroyed.
    pub from_before: usize,
    /// Units that certified payments left in the lane, by asset: not spent, or not redeemed.
    pub unspent: BTreeMap<AssetId, u128>,
}

/// Audits logs against the ledger's facts. `rules` returns those of a home, `quorums` the thresholds of a committee. A
/// validator's logs are those of all its shards.
///
/// # Errors
/// The first fault found.
pub fn audit(
    logs: &[LaneLogSummary],
    rules: impl Fn(HomeEpoch) -> LaneRules,
    facts: &LedgerFacts,
    quorums: impl Fn(HomeEpoch) -> Quorums,
) -> Result<LaneAuditReport, LaneAuditError> {
    check_escrow(facts)?;
    let mut members: BTreeMap<HomeEpoch, BTreeSet<u8>> = BTreeMap::new();
    let mut bodies: BTreeMap<Digest, &PaymentBody> = BTreeMap::new();
    let mut signers: BTreeMap<Digest, BTreeSet<u8>> = BTreeMap::new();
    for log in logs {
        members.entry(log.owner.home).or_default().insert(log.owner.validator);
        check_one_log(log)?;
        for (digest, body) in &log.payments {
            bodies.insert(*digest, body);
            signers.entry(*digest).or_default().insert(log.owner.validator);
        }
    }
    for (epoch, validators) in &members {
        let (logs, needed) = (validators.len(), quorums(*epoch).binding());
        if logs < needed {
            return Err(LaneAuditError::TooFewLogs { epoch: *epoch, logs, needed });
        }
    }
    let oldest = members.keys().next().copied().unwrap_or(0);
    let rules = members.keys().map(|home| (*home, rules(*home))).collect();
    let (created, from_before) = trace(&bodies, &rules, facts, oldest)?;
    // Validators without a log here may have signed everything.
    let certified = |digest: &Digest, body: &PaymentBody| {
        let of = quorums(body.payment.home);
        let silent = of.validators - members[&body.payment.home].len();
        signers[digest].len() + silent >= of.certificate || facts.certified.contains(digest)
    };
    let certified: BTreeMap<Digest, &PaymentBody> =
        bodies.iter().filter(|(digest, body)| certified(digest, body)).map(|(d, body)| (*d, *body)).collect();
    let mut spent = facts.credited.clone();
    for body in certified.values() {
        for input in body.input_ids() {
            if !spent.insert(input) {
                return Err(LaneAuditError::SpentTwice(input));
            }
        }
    }
    let mut unspent: BTreeMap<AssetId, u128> = BTreeMap::new();
    let kept = certified.values().flat_map(|body| body.output_ids().filter(|id| !spent.contains(id)));
    let backed = facts.backed.keys().copied().filter(|id| !spent.contains(id));
    for id in kept.chain(backed) {
        let (asset, amount) = created[&id];
        *unspent.entry(asset).or_default() += u128::from(amount);
    }
    Ok(LaneAuditReport { payments: bodies.len(), certified: certified.len(), from_before, unspent })
}

fn check_escrow(facts: &LedgerFacts) -> Result<(), LaneAuditError> {
    let assets: BTreeSet<AssetId> = facts.totals.keys().chain(facts.escrow.keys()).copied().collect();
    for asset in assets {
        let totals = facts.totals.get(&asset).copied().unwrap_or_default();
        let expected = totals.held().ok_or(LaneAuditError::Overpaid(asset))?;
        let held = facts.escrow.get(&asset).copied().unwrap_or(0);
        if held != expected {
            return Err(LaneAuditError::Escrow { asset, held, expected });
        }
    }
    Ok(())
}

fn check_one_log(log: &LaneLogSummary) -> Result<(), LaneAuditError> {
    let mut reserved = BTreeSet::new();
    for output in log.payments.values().flat_map(PaymentBody::input_ids) {
        if !reserved.insert(output) {
            return Err(LaneAuditError::Equivocated { validator: log.owner.validator, output });
        }
    }
    Ok(())
}

/// Checks that each payment obeys the rules and that its inputs exist. Returns what each output is, and how many
/// inputs of the `oldest` home may have been created by the previous committee, which has no log here.
#[allow(clippy::type_complexity, reason = "a pair of results of one walk")]
fn trace(
    bodies: &BTreeMap<Digest, &PaymentBody>,
    rules: &BTreeMap<HomeEpoch, LaneRules>,
    facts: &LedgerFacts,
    oldest: HomeEpoch,
) -> Result<(BTreeMap<OutputId, (AssetId, Amount)>, usize), LaneAuditError> {
    let mut from_before = 0;
    let mut created: BTreeMap<OutputId, (AssetId, Amount)> = BTreeMap::new();
    let mut spendable: BTreeMap<OutputId, (HomeEpoch, Output)> = facts.backed.clone();
    for body in bodies.values() {
        let bytes = body.payment.encode();
        // A log holds payments of its own home alone.
        let rules = rules.get(&body.payment.home).ok_or(LaneAuditError::Unsound(body.digest))?;
        let sound = crate::PaymentView::parse(&bytes).and_then(|view| view.check(rules));
        sound.map_err(|_| LaneAuditError::Unsound(body.digest))?;
        for (id, output) in body.output_ids().zip(&body.payment.outputs) {
            spendable.insert(id, (body.payment.into, *output));
        }
    }
    created.extend(spendable.iter().map(|(id, (_, output))| (*id, (output.asset, output.amount))));
    for body in bodies.values() {
        let Payment { home, owner, inputs, .. } = &body.payment;
        for input in inputs {
            let expected = Output { to: Recipient::Key(*owner), asset: input.asset, amount: input.amount };
            match spendable.get(&input.id) {
                Some(found) if *found == (*home, expected) => {}
                None if *home == oldest && oldest > 0 => from_before += 1,
                _ => return Err(LaneAuditError::Untraced { payment: body.digest, output: input.id }),
            }
        }
    }
    Ok((created, from_before))
}
