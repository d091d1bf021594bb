//! Restarts of the network from a snapshot. Deposits, redemptions and verdicts after it are rolled back; signatures
//! are not. Operators close the logs of their members, and compute the list from certificates in logs, in blocks and
//! from payers who show theirs; one part may be missing, and the Byzantine member hides what it has signed.
//!
//! What must hold: settled payments of known money stand, or are aside because a part is missing. Nothing is listed
//! that the snapshot does not back and no payment created, nothing that a settled payment spends, and nothing that no
//! deposit of the snapshot paid for. No certificate of the old network has an effect in the new one, in which members
//! use the same keys, which no real member does: the identity alone separates the two.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Ledger, Outcome, Restart, RestartedLane, Snapshot};
use payments::{
    BridgeOperation, CertifiedPayment, ClosedLog, HomeEpoch, LaneCarryOver, LaneRegistration, LogOwner, OutputId,
    PaymentBody, PostedCertificates, Recipient, RestartPart, ShownPayment,
};
use primitives::{Address, Digest, PublicKey, TransactionId};

use super::payers::{Coin, Paid};
use super::schemes::Stranger;
use super::shards::SimValidator;
use super::{LaneWorld, MEMBERS, Observed, escrow_of, registrar, shard_keys, terms};
use crate::world::{LaneMistake, Mistake};

/// Which restart it is.
const NUMBER: u32 = 1;
/// Certificates of the old network that are tried in the new one.
const TRIED: usize = 40;

/// A home epoch, a member and its shard.
type LogPlace = (HomeEpoch, u8, u16);

/// What is kept for a restart, and of it.
#[derive(Default)]
pub(super) struct Restarts {
    snapshot: Option<Ledger>,
    /// Certificates in blocks.
    posted: PostedCertificates,
    /// Redemptions of certificates of the old network.
    outdated: BTreeSet<TransactionId>,
}

impl LaneWorld {
    /// Takes the snapshot, or restarts from it, at their heights.
    pub(super) fn restart_when_due(&mut self) -> Result<(), String> {
        let Some((snapshot, height)) = self.conditions.restart else { return Ok(()) };
        // Messages arrive for a while, so that there is something to carry over, and something to take back.
        let newest = self.ledger.height();
        if !self.healed && (snapshot.saturating_sub(3)..height).contains(&newest) && !self.dice.once_in(3) {
            self.settle_down()?;
        }
        if self.ledger.height() == snapshot && self.restarts.snapshot.is_none() {
            self.restarts.snapshot = Some(self.ledger.clone());
        }
        if self.ledger.height() < height || self.healed {
            return Ok(());
        }
        self.conditions.restart = None;
        let snapshot = self.restarts.snapshot.take().ok_or("the run has no snapshot")?;
        self.report.restarts += 1;
        let certificates = self.certificates_of_old();
        let (ledger, carried) = match self.options.mistake {
            Some(Mistake::Lane(LaneMistake::RestartKeepsName)) => (snapshot, LaneCarryOver::default()),
            _ => self.restarted(&snapshot)?,
        };
        self.begin_again(ledger, &carried);
        let key = self.payers.account(1);
        for operation in certificates {
            let id = self.post(&key, &operation);
            self.restarts.outdated.insert(id);
        }
        Ok(())
    }

    /// What a block made of a post: certificates are evidence later, and those of the old network mean nothing.
    pub(super) fn on_restart_outcome(
        &mut self,
        id: &TransactionId,
        outcome: &Outcome,
        post: &[u8],
    ) -> Result<(), String> {
        let is_applied = outcome.refusal().is_none();
        if self.restarts.outdated.contains(id) {
            self.report.outdated += 1;
            return if is_applied { Err("a certificate counts that is older than the restart".into()) } else { Ok(()) };
        }
        if let (true, Ok(operation)) = (is_applied, BridgeOperation::parse(post)) {
            let network = self.lane().network();
            self.restarts.posted.see(&network, &operation);
        }
        Ok(())
    }

    /// The certificates that anybody may try again, those of payments to accounts first.
    fn certificates_of_old(&self) -> Vec<BridgeOperation> {
        let mut certified: Vec<&Paid> = self.payers.payments.iter().filter(|of| of.certificate.is_some()).collect();
        certified.sort_by_key(|of| (!pays_account(&of.body), std::cmp::Reverse(of.begun)));
        let redeem = |of: &&Paid| {
            let payment = of.signed.payment.clone();
            Some(BridgeOperation::Redeem { payment, certificate: of.certificate.clone()? })
        };
        certified.iter().filter_map(redeem).take(TRIED).collect()
    }

    /// The state that the restarted network begins with, and the list.
    fn restarted(&mut self, snapshot: &Ledger) -> Result<(Ledger, LaneCarryOver), String> {
        let (first, digest) = (snapshot.network(), Snapshot::digest(snapshot));
        let base =
            Restart { number: NUMBER, snapshot: digest, committee: Vec::new(), lane: None, rules: None }.base(&first);
        let parts = self.parts(snapshot, &base, digest)?;
        let owners = parts.iter().flat_map(|part| &part.logs).map(|log| &log.owner);
        let closed: BTreeSet<LogPlace> = owners.map(|of| (of.home, of.validator, of.shard)).collect();
        let backs = match self.options.mistake {
            Some(Mistake::Lane(LaneMistake::RestartCountsLaterDeposits)) => self.ledger.lane(),
            _ => snapshot.lane(),
        };
        let backs = backs.ok_or("the chain has no lane")?;
        let (carried, lane): (LaneCarryOver, RestartedLane) =
            backs.carry(&base, &parts).map_err(|refusal| format!("nothing is carried over: {refusal}"))?;
        self.check_list(snapshot, &carried, &closed)?;
        let mut ledger = snapshot.clone();
        let restart =
            Restart { number: NUMBER, snapshot: digest, committee: Vec::new(), lane: Some(lane), rules: None };
        ledger.begin_again(&first, &restart, Some(&carried)).map_err(|error| format!("no restart: {error}"))?;
        ledger.audit().map_err(|error| error.to_string())?;
        terms::forget(self.options.mistake, &mut ledger);
        self.report.carried += (carried.outputs.len() + carried.claims.len()) as u64;
        self.report.aside += carried.aside.len() as u64;
        Ok((ledger, carried))
    }

    /// The operators' parts, each read as it was written.
    fn parts(&mut self, snapshot: &Ledger, base: &Digest, digest: Digest) -> Result<Vec<RestartPart>, String> {
        let missing = self.dice.once_in(4).then(|| self.dice.index(self.validators.len()) as u8);
        let mut logs: BTreeMap<u8, Vec<ClosedLog>> = BTreeMap::new();
        for (member, validator) in (0..).zip(std::mem::take(&mut self.validators)) {
            logs.insert(member, validator.close(NUMBER).map_err(|reason| format!("a log is no evidence: {reason}"))?);
        }
        missing.iter().for_each(|member| drop(logs.remove(member)));
        logs.insert(self.liar.index, self.hidden_logs());
        let (epoch, latest) = (snapshot.lane().map_or(0, |lane| lane.bridge().clock().epoch()), self.lane());
        let board = |epoch: HomeEpoch| Some((epoch, latest.bridge().board_bytes(epoch)?));
        let boards: BTreeMap<HomeEpoch, Vec<u8>> =
            latest.group_keys().filter(|of| *of > epoch).filter_map(board).collect();
        let registrations = latest.bridge().all_registrations().filter(|of| of.epoch > epoch).cloned();
        let (network, registrations): (Digest, Vec<LaneRegistration>) = (latest.network(), registrations.collect());
        let shown = self.shown();
        let signer = |member| snapshot.lane().and_then(|lane| lane.signer(member));
        let ignores = self.options.mistake == Some(Mistake::Lane(LaneMistake::RestartIgnoresCertificates));
        let shards = self.options.shards;
        let part = |(member, mut logs): (u8, Vec<ClosedLog>)| {
            logs.iter_mut().filter(|_| ignores).for_each(|log| log.certificates.clear());
            let registrar = registrar(member.into());
            let part = RestartPart {
                network,
                restart: NUMBER,
                snapshot: digest,
                member,
                first: Some(LaneRegistration::make(base, 0, member, &shard_keys(member, 0, shards), &registrar)),
                logs,
                shown: if ignores { Vec::new() } else { shown.clone() },
                registrations: registrations.clone(),
                boards: boards.clone(),
            };
            RestartPart::parse(&part.sign(&registrar), signer).map_err(|refusal| format!("no part: {refusal}"))
        };
        logs.into_iter().map(part).collect()
    }

    /// The Byzantine member closes logs that hide what it has signed, or none.
    fn hidden_logs(&mut self) -> Vec<ClosedLog> {
        let (network, validator) = (self.lane().network(), self.liar.index);
        let shards = self.options.shards;
        let log = |(home, shard)| ClosedLog {
            owner: LogOwner { network, home, validator, shard },
            restart: NUMBER,
            length: 0,
            payments: BTreeMap::new(),
            certificates: BTreeMap::new(),
        };
        let homes = if self.dice.once_in(2) { 0..self.now() + 2 } else { 0..0 };
        homes.flat_map(|home| (0..shards).map(move |shard| (home, shard))).map(log).collect()
    }

    /// Certificates from blocks, and those that payers show in the claim period: each with one chance in two.
    fn shown(&mut self) -> Vec<ShownPayment> {
        let mut shown = std::mem::take(&mut self.restarts.posted).shown(MEMBERS.into());
        for paid in &self.payers.payments {
            let Some(certificate) = paid.certificate.clone().filter(|_| self.dice.once_in(2)) else { continue };
            let certified = CertifiedPayment { summary: paid.body.payment.summary(), certificate };
            shown.push(ShownPayment { body: Some(PaymentBody::clone(&paid.body)), certified });
        }
        shown
    }

    fn check_list(
        &self,
        snapshot: &Ledger,
        carried: &LaneCarryOver,
        closed: &BTreeSet<LogPlace>,
    ) -> Result<(), String> {
        let origins = Origins::of(self, snapshot);
        origins.check_settled(carried, closed)?;
        origins.check_listed(carried)
    }

    /// The network goes on as another one, with this state.
    fn begin_again(&mut self, ledger: Ledger, carried: &LaneCarryOver) {
        self.note("restart", ledger.height());
        self.end = ledger.height() + terms::blocks(self.conditions.are_terms_voted, self.options.blocks);
        self.ledger = ledger;
        let (network, options) = (self.lane().network(), self.options);
        self.payers.follow(carried, &network);
        let height = |account: &Address| self.ledger.accounts().get(account).map_or(0, |of| of.window().highest());
        self.sequences = self.sequences.keys().map(|account| (*account, height(account))).collect();
        self.escrow = escrow_of(&self.ledger);
        self.terms.begin_again(self.ledger.height());
        let (ledger, dice) = (&self.ledger, &mut self.dice);
        self.validators = (0..MEMBERS - 1).map(|index| SimValidator::new(index, ledger, options, dice)).collect();
        let conditions = self.conditions;
        self.validators.iter_mut().enumerate().for_each(|(at, of)| of.is_silent = conditions.silences(at as u8));
        // What is on its way is of the old network.
        (self.observed, self.stranger) = (Observed::default(), Stranger::default());
        self.conditions.is_flooded = false;
        self.messages.clear();
        self.waiting.clear();
        self.redemptions.clear();
        self.posted.clear();
        self.refused.clear();
        self.opened.clear();
        self.stripped.clear();
        self.crashed.fill(0);
    }
}

fn pays_account(body: &PaymentBody) -> bool {
    body.payment.outputs.iter().any(|output| matches!(output.to, Recipient::Account(_)))
}

/// Where money comes from, by plain bookkeeping of the payers' payments.
struct Origins<'a> {
    world: &'a LaneWorld,
    snapshot: &'a ledger::LaneBridge,
    /// Settled payments by the outputs that they spend.
    spent: BTreeMap<OutputId, Digest>,
}

impl<'a> Origins<'a> {
    fn of(world: &'a LaneWorld, snapshot: &'a Ledger) -> Origins<'a> {
        let settled = world.payers.payments.iter().filter(|paid| paid.is_acknowledged);
        let spent = settled.flat_map(|paid| paid.body.input_ids().map(|input| (input, paid.body.digest))).collect();
        Origins { world, snapshot: snapshot.lane().expect("the chain has a lane"), spent }
    }

    fn is_backed(&self, id: &OutputId) -> bool {
        let bridge = self.snapshot.bridge();
        bridge.find_backed(id).is_some() || bridge.find_proven(id).is_some()
    }

    /// Whether all of a payment's money is of the snapshot (`is_all`), or any of it.
    fn is_known(&self, paid: &Paid, is_all: bool) -> bool {
        if paid.home() < self.snapshot.bridge().clock().epoch() {
            return true;
        }
        let payers = &self.world.payers;
        let of_coin = |coin: &Coin| match coin.made_by {
            None => self.is_backed(&coin.holding.id),
            Some(parent) => self.is_backed(&coin.holding.id) || self.is_known(&payers.payments[parent], is_all),
        };
        let mut inputs = paid.inputs.iter().map(|at| of_coin(&payers.coins[*at]));
        if is_all { inputs.all(|known| known) } else { inputs.any(|known| known) }
    }

    /// Settled payments of known money stand.
    fn check_settled(&self, carried: &LaneCarryOver, closed: &BTreeSet<LogPlace>) -> Result<(), String> {
        let bridge = self.snapshot.bridge();
        let counts = |home: HomeEpoch| home > bridge.clock().epoch() || bridge.is_kept(home);
        let credited: BTreeSet<&OutputId> = bridge.resolver().credited().collect();
        let settled = self.world.payers.payments.iter().filter(|paid| paid.is_acknowledged && counts(paid.home()));
        for paid in settled.filter(|paid| self.is_known(paid, true)) {
            let is_certified = bridge.resolver().certified().any(|digest| *digest == paid.body.digest);
            for (id, output) in paid.body.output_ids().zip(&paid.body.payment.outputs) {
                let is_gone = credited.contains(&id) || self.is_spent_or_may_be(&id);
                let stands = match output.to {
                    Recipient::Account(_) => is_certified || carried.claims.get(&id) == Some(output),
                    Recipient::Key(owner) => {
                        let has_all = self.has_all_logs(paid.body.payment.into, &owner, closed);
                        let is_aside = !has_all && carried.aside.get(&id) == Some(output);
                        is_gone || is_aside || carried.outputs.get(&id) == Some(output)
                    }
                };
                if !stands {
                    return Err(format!("payment {} is settled, and the list lacks its output {id}", paid.body.digest));
                }
            }
        }
        Ok(())
    }

    /// Whether the parts have the logs of all correct members in which payments of an owner stand. One whose shard had
    /// offered no key in time has none, since it has signed nothing.
    fn has_all_logs(&self, home: HomeEpoch, owner: &PublicKey, closed: &BTreeSet<LogPlace>) -> bool {
        let committee = self.world.lane().committee(home);
        let mut correct = 0..self.world.liar.index;
        correct.all(|member| {
            let shard = committee.and_then(|of| of.shard_of(member, owner).ok());
            shard.is_none_or(|shard| closed.contains(&(home, member, shard)))
        })
    }

    /// Whether a payment spends it that has a certificate, which somebody may have shown.
    fn is_spent_or_may_be(&self, id: &OutputId) -> bool {
        self.world.observed.is_spent(id)
    }

    /// Nothing is listed that does not exist, is spent by a settled payment, or is not of the snapshot at all.
    fn check_listed(&self, carried: &LaneCarryOver) -> Result<(), String> {
        let payments = &self.world.payers.payments;
        let creators: BTreeMap<OutputId, &Paid> =
            payments.iter().flat_map(|paid| paid.body.output_ids().map(move |id| (id, paid))).collect();
        for id in carried.outputs.keys().chain(carried.claims.keys()) {
            if let Some(payment) = self.spent.get(id) {
                return Err(format!("output {id} is listed, and settled payment {payment} spends it"));
            }
            let is_known = match creators.get(id) {
                _ if self.is_backed(id) => true,
                Some(paid) => self.is_known(paid, false),
                // An exit that members have signed for a verdict.
                None => self.world.observed.is_created(id),
            };
            if !is_known {
                return Err(format!("output {id} is listed, and nothing of it is in the snapshot"));
            }
        }
        Ok(())
    }
}
