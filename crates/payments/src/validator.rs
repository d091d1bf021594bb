//! One shard of one validator in one home epoch, as a state machine.

mod budgets;
mod cases;
mod interface;
mod signing;
mod together;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use budgets::CheckBudgets;
pub use budgets::LaneAddress;

pub use interface::{LaneEffect, LaneFact, LaneInput, LanePeer, LaneSettings, ViewParts};
use primitives::merkle::{self, Family, Tree};
use primitives::{Digest, PublicKey, SecretKey, Signature};

use crate::answer::LEAVES_MAX;
use crate::message::query_message;
use crate::payment::INPUTS_MAX;
use crate::record::{self, BarredPayment, LogKey, Record, RecordKind};
use crate::request::{RequestView, ShownCertificate, SpendRequest, request_bytes_max};
use crate::shared::{batch_header, shared_digest};
use crate::spent::SpentSet;
use crate::{
    AGGREGATE_COST, AnswerScheme, BatchAnswer, BlsSecretKey, BlsSignature, CertifiedPayment, CheckBudget,
    CommitteeLife, ContestedOutput, HomeEpoch, HomePhase, KeyShare, KnownSpender, LaneAnswer, LaneCommittee, LaneLog,
    LaneRefusal, LaneRules, LogOwner, MuteReason, Output, OutputId, OutputProof, PaymentBody, PaymentCertificate,
    PaymentSummary, PaymentView, Recipient, RootCache, RootHeader, SharedSignature, SpentOutput, StatementKind,
    Verdict, view_digest,
};

/// The cost of a BLS signature, in verifications of ed25519 signatures.
const BLS_ANSWER_COST: u32 = 4;

/// The receiver of an answer.
#[derive(Clone, Debug)]
enum Asker {
    Peer(LanePeer, AnswerScheme),
    /// A vote in a case for the payment with this encoding, with its owner's signature unless it is the exit.
    Vote(OutputId, Vec<u8>, Option<Signature>),
    View(OutputId, Option<Box<CertifiedPayment>>),
}

/// Digests that will be leaves of one tree.
type Leaves = Vec<(Asker, Digest)>;

/// A broker's tree whose records are written but perhaps not durable.
#[derive(Debug)]
struct Batch {
    peer: LanePeer,
    scheme: AnswerScheme,
    owner: PublicKey,
    digests: Vec<Digest>,
    excluded: Vec<u16>,
    position: u64,
}

/// A payment that was read from the log.
struct Spender {
    offset: u64,
    inputs: Vec<OutputId>,
    digest: Digest,
    bytes: Vec<u8>,
    signature: Signature,
}

/// A tree whose records are written but perhaps not durable.
#[derive(Debug)]
struct ClosedTree {
    kind: StatementKind,
    leaves: Leaves,
    position: u64,
}

/// One shard of one validator in one home epoch. See the crate's documentation for the protocol.
pub struct LaneValidator {
    settings: LaneSettings,
    /// `None` once it is destroyed: dropping a key wipes its memory.
    key: Option<SecretKey>,
    bls: Option<BlsSecretKey>,
    share: Option<KeyShare>,
    epoch: HomeEpoch,
    /// The last epoch in which it signs exits, as the ledger's closed cases left it.
    last: HomeEpoch,
    log_key: LogKey,
    /// Records of the open trees: their offset will be `written`.
    tail: Vec<u8>,
    written: u64,
    durable: u64,
    spent: SpentSet,
    acknowledged: SpentSet,
    /// Payments whose certificates are in the log.
    certificates: SpentSet,
    backed: HashMap<OutputId, Output>,
    /// Outputs of payments that stand by a verdict: their exits need no other proof.
    proven: HashMap<OutputId, Output>,
    /// Candidates of open cases, and void payments.
    barred: HashSet<Digest>,
    barred_outputs: HashMap<OutputId, Digest>,
    viewed: HashMap<OutputId, Digest>,
    /// Barred payments whose certificates were shown since the last tick, and those not yet reported.
    shown: HashMap<Digest, Option<Box<CertifiedPayment>>>,
    open_cases: BTreeMap<OutputId, ContestedOutput>,
    halted: bool,
    destroyed: bool,
    open: BTreeMap<StatementKind, Leaves>,
    /// Reports on barred candidates, to send once the log is durable up to a position.
    notices: VecDeque<(u64, OutputId, Option<Box<CertifiedPayment>>)>,
    waiting: VecDeque<ClosedTree>,
    open_batches: Vec<Batch>,
    batches: VecDeque<Batch>,
    roots: RootCache,
    budgets: CheckBudgets,
    /// The addresses of the present peers.
    addresses: HashMap<LanePeer, LaneAddress>,
    /// Payments of the present requests whose owners' signatures are verified, by the bytes of both.
    signed: HashMap<Vec<u8>, together::CheckedPayment>,
    /// Owners' signatures that were verified, alone or together.
    signatures_checked: u64,
    payments_reserved: u64,
    muted: Option<MuteReason>,
}

impl LaneValidator {
    /// Opens a shard from its log. The second value is the length of the intact part: the shell cuts the log to it
    /// before the first step. It is `None` if the shard is mute: the log stays unchanged.
    ///
    /// All bytes of `log` must be durable: after a failed sync, pages that never reached the disk may still be
    /// readable. So the shell first copies the log's tail into a new file and syncs that. `fingerprint_key` is random
    /// and fresh. A missing or damaged log mutes the shard.
    ///
    /// # Panics
    /// If the settings do not fit together, or the key is not the registered one.
    pub fn open(
        settings: LaneSettings,
        key: SecretKey,
        fingerprint_key: [u8; 32],
        log: Option<&impl LaneLog>,
    ) -> (LaneValidator, Option<u64>) {
        settings.assert_consistent(&key);
        let mut validator = LaneValidator {
            epoch: settings.now,
            last: CommitteeLife::of(settings.committee.epoch()).last,
            log_key: LogKey::none(),
            tail: Vec::new(),
            written: 0,
            durable: 0,
            spent: SpentSet::new(fingerprint_key),
            acknowledged: SpentSet::new(fingerprint_key),
            certificates: SpentSet::new(fingerprint_key),
            backed: HashMap::new(),
            proven: HashMap::new(),
            barred: HashSet::new(),
            barred_outputs: HashMap::new(),
            viewed: HashMap::new(),
            shown: HashMap::new(),
            open_cases: BTreeMap::new(),
            halted: false,
            destroyed: false,
            open: BTreeMap::new(),
            notices: VecDeque::new(),
            waiting: VecDeque::new(),
            open_batches: Vec::new(),
            batches: VecDeque::new(),
            bls: None,
            share: None,
            roots: RootCache::new(settings.roots_per_validator),
            budgets: CheckBudgets::new(&settings),
            addresses: HashMap::new(),
            signed: HashMap::new(),
            signatures_checked: 0,
            payments_reserved: 0,
            muted: None,
            settings,
            key: Some(key),
        };
        let recovered = log.ok_or(MuteReason::MissingLog).and_then(|log| validator.recover(log));
        validator.muted = recovered.err();
        let intact = validator.muted.is_none().then_some(validator.written);
        (validator, intact)
    }

    fn recover(&mut self, log: &impl LaneLog) -> Result<(), MuteReason> {
        let (spent, acknowledged) = (&mut self.spent, &mut self.acknowledged);
        let certificates = &mut self.certificates;
        let (barred, viewed, closed, unproven) = (&mut Vec::new(), &mut self.viewed, &mut false, &mut false);
        let network = self.settings.rules.network;
        let (key, intact) = record::recover(log, &self.settings.owner(), |offset, record| match record {
            Record::Mark(_) => {}
            Record::Payment(payment, _) => payment.inputs().for_each(|input| spent.insert(&input.id.0, offset)),
            Record::Acknowledgement(summary) => {
                let digest = summary.digest(&network);
                *unproven |= certificates.candidates(&digest.0).is_empty();
                acknowledged.insert(&digest.0, offset);
            }
            Record::Bar(payment) => barred.push(payment),
            Record::View(case, digest) => drop(viewed.insert(case, digest)),
            Record::Certificate(of) => certificates.insert(&of.digest(&network).0, offset),
            Record::Closed(_) => *closed = true,
        })?;
        if *closed {
            return Err(MuteReason::ClosedLog);
        }
        // A crash cuts a log at its end, so a certificate never goes before what relies on it.
        if *unproven {
            return Err(MuteReason::DamagedLog);
        }
        barred.iter().for_each(|payment| self.remember_bar(*payment));
        (self.log_key, self.written, self.durable) = (key, intact, intact);
        Ok(())
    }

    /// The same shard with its BLS key, with which it answers clients and brokers that ask for it ([`AnswerScheme`]).
    /// Votes and views are signed with the other key.
    ///
    /// # Panics
    /// If the key is not the registered one.
    pub fn with_bls(mut self, key: BlsSecretKey) -> LaneValidator {
        let registered = self.settings.committee.bls_key(self.settings.validator, self.settings.shard);
        assert_eq!(registered, Ok(&key.public()), "the BLS key of the shard is registered");
        self.bls = Some(key);
        self
    }

    /// The same shard with its share of the group's key, for clients that ask for it.
    ///
    /// # Panics
    /// If the committee has no group key, or the share is not this validator's.
    pub fn with_share(mut self, share: KeyShare) -> LaneValidator {
        assert!(self.settings.committee.group().is_ok(), "the committee has a group key");
        assert_eq!(share.member(), self.settings.validator, "the share is this validator's");
        self.share = Some(share);
        self
    }

    /// Why it does not sign, if it does not.
    pub fn muted(&self) -> Option<MuteReason> {
        self.muted
    }

    /// Outputs that are reserved or spent.
    pub fn entries(&self) -> usize {
        self.spent.len()
    }

    /// Verified roots, and the highest log position seen of each validator.
    pub fn roots(&self) -> &RootCache {
        &self.roots
    }

    /// The payments that it bars. After opening it, the shell passes [`LaneInput::Confirmed`] for those among them that
    /// the ledger confirms ([`crate::Resolver::confirms`]): their verdicts may have come while it did not run.
    pub fn barred(&self) -> BTreeSet<Digest> {
        self.barred.iter().copied().collect()
    }

    /// One step.
    ///
    /// # Panics
    /// If the shell reports more as durable than was written.
    pub fn step(&mut self, log: &impl LaneLog, input: LaneInput<'_>) -> Vec<LaneEffect> {
        let mut effects = Vec::new();
        match input {
            LaneInput::Request { peer, bytes } => {
                if let Err(refusal) = self.request(log, peer, bytes, &mut effects) {
                    if let (LaneRefusal::Muted(reason), None) = (&refusal, self.muted) {
                        self.mute(*reason, &mut effects);
                    }
                    effects.push(LaneEffect::Refuse { peer, refusal });
                }
                let shown = self.shown.values_mut().filter_map(Option::take);
                effects.extend(shown.map(LaneEffect::Shown));
                self.mute_if_rolled_back(&mut effects);
                if self.open.values().any(|leaves| leaves.len() >= self.settings.leaves) {
                    self.close(&mut effects);
                }
            }
            LaneInput::Tick => {
                self.budgets.refill();
                self.shown.clear();
                self.close(&mut effects);
            }
            LaneInput::Synced(position) => {
                assert!(position <= self.written, "more is durable than was written");
                self.durable = self.durable.max(position);
                self.sign(&mut effects);
            }
            LaneInput::SyncFailed => self.mute(MuteReason::SyncFailed, &mut effects),
            LaneInput::Connected(peer, address) => drop(self.addresses.insert(peer, address)),
            LaneInput::Disconnected(peer) => drop(self.addresses.remove(&peer)),
            LaneInput::Epoch(epoch) => {
                self.epoch = self.epoch.max(epoch);
                self.budgets.begin_epoch();
                self.destroy_if_ended(&mut effects);
            }
            // What an output is said to be first stands.
            LaneInput::Backed(id, output) => drop(self.backed.entry(id).or_insert(output)),
            LaneInput::Proven(id, output) => drop(self.proven.insert(id, output)),
            LaneInput::Halted(halted) => self.halted = halted,
            LaneInput::CaseOpened(contested) => {
                self.open_cases.insert(contested.output.id, contested);
                let result = self.vote(log, &contested);
                self.mute_if_damaged(result, &mut effects);
            }
            LaneInput::CandidatesFixed(case, candidates) => {
                let result = self.bar(log, case, &candidates);
                self.mute_if_damaged(result, &mut effects);
            }
            LaneInput::AllBarred(case, paid) => self.post_view(case, paid),
            LaneInput::CaseRuled(case, verdict) => {
                if self.open_cases.remove(&case).is_some() {
                    self.last = self.life().after(verdict.end(), self.epoch);
                }
                if let Verdict::Confirmed(digest, _) = verdict {
                    self.lift_bar(&digest);
                }
                self.destroy_if_ended(&mut effects);
            }
            LaneInput::SignsThrough(last) => self.last = self.last.max(last),
            LaneInput::Confirmed(payment) => self.lift_bar(&payment),
        }
        effects
    }

    fn home(&self) -> HomeEpoch {
        self.settings.committee.epoch()
    }

    fn phase(&self) -> HomePhase {
        HomePhase::of(self.home(), self.epoch)
    }

    /// Whether it signs and bars for this case now.
    fn acts(&self) -> bool {
        self.muted.is_none() && !self.destroyed
    }

    fn life(&self) -> CommitteeLife {
        CommitteeLife { last: self.last, is_concerned: !self.open_cases.is_empty() }
    }

    /// Whether it signs exits although its three epochs are over: a verdict has confirmed a payment not long ago.
    fn is_prolonged(&self) -> bool {
        self.phase() == HomePhase::Ended && self.epoch <= self.last
    }

    /// Destroys the keys and drops the set after h+2, unless a case needs them.
    fn destroy_if_ended(&mut self, effects: &mut Vec<LaneEffect>) {
        if !self.destroyed && !self.life().signs(self.epoch) {
            self.destroyed = true;
            (self.key, self.bls, self.share) = (None, None, None);
            self.drop_open_work();
            effects.push(LaneEffect::Destroy);
        }
    }

    fn mute_if_damaged(&mut self, result: Result<(), LaneRefusal>, effects: &mut Vec<LaneEffect>) {
        if let Err(LaneRefusal::Muted(reason)) = result {
            self.mute(reason, effects);
        }
    }

    fn add(&mut self, kind: StatementKind, asker: Asker, digest: Digest) {
        self.open.entry(kind).or_default().push((asker, digest));
    }

    fn mute(&mut self, reason: MuteReason, effects: &mut Vec<LaneEffect>) {
        if self.muted.is_none() {
            self.muted = Some(reason);
            effects.push(LaneEffect::Mute(reason));
        }
        self.drop_open_work();
    }

    fn drop_open_work(&mut self) {
        self.open.clear();
        self.notices.clear();
        self.waiting.clear();
        self.open_batches.clear();
        self.batches.clear();
        self.tail.clear();
    }

    fn mute_if_rolled_back(&mut self, effects: &mut Vec<LaneEffect>) {
        let LogOwner { home, validator, shard, .. } = self.settings.owner();
        if self.roots.highest(home, validator, shard).is_some_and(|(own, _)| own.position > self.durable) {
            self.mute(MuteReason::RolledBackLog, effects);
        }
    }

    fn request(
        &mut self,
        log: &impl LaneLog,
        peer: LanePeer,
        bytes: &[u8],
        effects: &mut Vec<LaneEffect>,
    ) -> Result<(), LaneRefusal> {
        if let Some(reason) = self.muted {
            return Err(LaneRefusal::Muted(reason));
        }
        if self.destroyed {
            return Err(LaneRefusal::Ended(self.home()));
        }
        let (scheme, bytes) = AnswerScheme::split(bytes)?;
        match scheme {
            AnswerScheme::Bls if self.bls.is_none() => return Err(LaneRefusal::WrongBlsKey),
            AnswerScheme::Share if self.share.is_none() => return Err(LaneRefusal::NoGroupKey),
            _ => {}
        }
        if self.waiting.len() + self.batches.len() + self.open_batches.len() >= self.settings.trees_waiting_max {
            return Err(LaneRefusal::Busy);
        }
        let request = RequestView::parse(bytes)?;
        let largest = request_bytes_max(self.settings.largest_quorum());
        let fits = match &request {
            RequestView::Batch(requests) => requests.iter().all(|request| request.len() <= largest),
            _ => bytes.len() <= largest,
        };
        if !fits {
            return Err(LaneRefusal::Malformed("it is larger than any request"));
        }
        let (address, owner) = (self.address_of(peer), request.owner()?);
        let allowed = self.budgets.allowed(address, &owner);
        let mut budget = CheckBudget(allowed);
        // Anybody may show a certificate.
        let is_signed_by_owner = !matches!(request, RequestView::Settle { .. });
        // Each answer is a separate signature, even to a retry.
        let signing = if scheme == AnswerScheme::Tree { 0 } else { BLS_ANSWER_COST };
        let result = budget.spend(signing).and_then(|()| match request {
            RequestView::Spend(spend) => {
                let digest = self.digest_of(&spend);
                self.confirm(log, &spend, &digest, &mut budget)
                    .map(|()| self.add(StatementKind::Confirmation, Asker::Peer(peer, scheme), digest))
            }
            RequestView::Settle { summary, certificate } => {
                let settled = self.settle(log, &summary, &certificate, &mut budget);
                settled.map(|digest| self.add(StatementKind::Acknowledgement, Asker::Peer(peer, scheme), digest))
            }
            RequestView::Batch(_) if scheme == AnswerScheme::Share => {
                Err(LaneRefusal::Malformed("a broker's tree is signed with keys of shards, not with shares"))
            }
            RequestView::Batch(requests) => self.confirm_batch(log, (peer, scheme), &requests, &mut budget),
            RequestView::Spender { home, owner, output, signature } => {
                let asked = self.answer_spender(log, (home, &owner, &signature), &output, &mut budget);
                asked.map(|spender| {
                    // The answer is signed like any other, once what it says is durable.
                    if let Some(view) = spender.as_ref().and_then(|of| PaymentView::parse(&of.payment).ok()) {
                        self.add(StatementKind::Confirmation, Asker::Peer(peer, AnswerScheme::Tree), view.digest());
                    }
                    effects.push(LaneEffect::Spender { peer, output, spender });
                })
            }
        });
        self.budgets.charge(address, &owner, allowed - budget.0, result.is_ok());
        if result.is_ok() && is_signed_by_owner {
            self.budgets.prove(address, owner);
        }
        result
    }

    /// The address of a peer; a peer that the shell has not introduced is one of its own.
    fn address_of(&self, peer: LanePeer) -> LaneAddress {
        self.addresses.get(&peer).copied().unwrap_or(peer)
    }

    /// Owners' signatures that were verified since the shard was opened, alone or together.
    pub fn signatures_checked(&self) -> u64 {
        self.signatures_checked
    }

    /// Payments whose inputs were reserved since the shard was opened, each counted once: whoever repeats one, or shows
    /// its certificate, adds none.
    pub fn payments_reserved(&self) -> u64 {
        self.payments_reserved
    }

    fn check_place(&self, home: HomeEpoch, owner: &PublicKey) -> Result<(), LaneRefusal> {
        if home != self.settings.committee.epoch() {
            return Err(LaneRefusal::ForeignHome(home));
        }
        let shard = self.settings.committee.shard_of(self.settings.validator, owner)?;
        if shard == self.settings.shard { Ok(()) } else { Err(LaneRefusal::ForeignShard(shard)) }
    }

    fn check_room(&self, entries: usize, more: usize) -> Result<(), LaneRefusal> {
        if entries + more <= self.settings.entries_max { Ok(()) } else { Err(LaneRefusal::Full) }
    }

    /// Confirms what it can of a broker's batch; the answer lists what it excludes. A retry gets the same answer.
    fn confirm_batch(
        &mut self,
        log: &impl LaneLog,
        (peer, scheme): (LanePeer, AnswerScheme),
        requests: &[&[u8]],
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        let mut parsed = Vec::with_capacity(requests.len());
        for request in requests {
            match RequestView::parse(request)? {
                RequestView::Spend(spend) => parsed.push(spend),
                _ => return Err(LaneRefusal::Malformed("a batch holds requests to confirm payments")),
            }
        }
        self.verify_together(requests.iter().map(|request| (peer, *request)));
        let owner = parsed[0].payment.owner();
        let (mut digests, mut excluded) = (Vec::with_capacity(parsed.len()), Vec::new());
        for (place, spend) in (0..).zip(parsed) {
            let digest = self.digest_of(&spend);
            match self.confirm(log, &spend, &digest, budget) {
                Ok(()) => {}
                Err(refusal @ LaneRefusal::Muted(_)) => return Err(refusal),
                Err(_) => excluded.push(place),
            }
            digests.push(digest);
        }
        if excluded.len() < digests.len() {
            self.open_batches.push(Batch { peer, scheme, owner, digests, excluded, position: 0 });
            return Ok(());
        }
        Err(LaneRefusal::Malformed("no payment of the batch can be confirmed; send them one by one to learn why"))
    }

    /// The payment that an output of this owner is reserved for.
    fn answer_spender(
        &self,
        log: &impl LaneLog,
        (home, owner, signature): (HomeEpoch, &PublicKey, &Signature),
        output: &OutputId,
        budget: &mut CheckBudget,
    ) -> Result<Option<KnownSpender>, LaneRefusal> {
        self.check_place(home, owner)?;
        budget.spend(1)?;
        if !owner.verify(&query_message(&self.settings.rules.network, home, output), signature) {
            return Err(LaneRefusal::WrongOwnerSignature);
        }
        let mut found = None;
        self.spender(log, output, &mut found, budget)?;
        let of_owner = |spender: &Spender| {
            spender.inputs.contains(output)
                && PaymentView::parse(&spender.bytes).is_ok_and(|payment| payment.owner() == *owner)
        };
        let known = |spender: Spender| KnownSpender { payment: spender.bytes, signature: spender.signature };
        Ok(found.filter(of_owner).map(known))
    }

    /// Makes the cheap checks, and checks the spent set, the owner's signature and the inputs' certificates; then
    /// reserves all inputs.
    fn confirm(
        &mut self,
        log: &impl LaneLog,
        spend: &SpendRequest<'_>,
        digest: &Digest,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        let payment = &spend.payment;
        payment.check(&self.settings.rules)?;
        self.check_place(payment.home(), &payment.owner())?;
        if !self.is_reserved(log, payment, digest, budget)? {
            let into = payment.into_epoch();
            let is_exit = payment.is_exit();
            let is_late_exit = is_exit && self.is_prolonged();
            if !self.phase().signs(self.home(), into, is_exit) && !is_late_exit {
                return Err(LaneRefusal::WrongEpoch { into, now: self.epoch });
            }
            if self.halted {
                return Err(LaneRefusal::Halted);
            }
            let inputs = payment.inputs().count();
            self.check_room(self.spent.len(), inputs)?;
            // Look-ups first: hashes are cheaper than signatures, and nobody pays for money that does not exist.
            let proofs = spend.proofs.read(inputs)?;
            self.check_barred(payment, &proofs, budget)?;
            let parents = self.check_ids(payment, is_exit, &proofs)?;
            let sends_anyone_home = self.phase().sends_anyone_home() || is_late_exit;
            if !sends_anyone_home {
                self.check_signed(spend, digest, budget)?;
            }
            self.rest_on(log, &parents, budget)?;
            self.reserve(payment, &spend.signature);
        }
        Ok(())
    }

    /// Refuses a payment of an output that a barred payment would have created. A certificate of it is reported.
    fn check_barred(
        &mut self,
        payment: &PaymentView<'_>,
        proofs: &[OutputProof],
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        let mut inputs = payment.inputs().zip(proofs);
        let barred = inputs.find_map(|(input, proof)| Some((*self.barred_outputs.get(&input.id)?, proof)));
        let Some((by, proof)) = barred else { return Ok(()) };
        if let OutputProof::Payment(proof) = proof {
            let network = &self.settings.rules.network;
            let shown = ShownCertificate::new(network, &proof.summary, &proof.certificate);
            self.note_shown(by, shown, budget)?;
        }
        Err(LaneRefusal::Barred(by))
    }

    /// Reports the certificate of a barred payment, if it holds: whoever is shown one posts it.
    fn note_shown(
        &mut self,
        barred: Digest,
        shown: ShownCertificate<'_>,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        if shown.digest != barred || self.shown.contains_key(&barred) {
            return Ok(());
        }
        self.check_certificate(&shown, budget)?;
        // What does not fit into a post is of no use to the ledger.
        shown.bytes()?;
        let shown = CertifiedPayment { summary: *shown.summary, certificate: shown.certificate.clone() };
        self.shown.insert(barred, Some(Box::new(shown)));
        Ok(())
    }

    /// Records, once, that a payment has a certificate; returns its digest.
    fn settle(
        &mut self,
        log: &impl LaneLog,
        summary: &PaymentSummary,
        certificate: &PaymentCertificate,
        budget: &mut CheckBudget,
    ) -> Result<Digest, LaneRefusal> {
        self.check_place(summary.home, &summary.owner)?;
        let shown = ShownCertificate::new(&self.settings.rules.network, summary, certificate);
        let digest = shown.digest;
        if !self.is_acknowledged(log, &digest, budget)? {
            if self.barred.contains(&digest) {
                self.note_shown(digest, shown, budget)?;
                return Err(LaneRefusal::Barred(digest));
            }
            self.check_room(self.acknowledged.len(), 1)?;
            self.rest_on(log, &[shown], budget)?;
            self.note(summary, &digest);
        }
        Ok(digest)
    }

    /// Whether all inputs are already reserved for this very payment.
    fn is_reserved(
        &self,
        log: &impl LaneLog,
        payment: &PaymentView<'_>,
        digest: &Digest,
        budget: &mut CheckBudget,
    ) -> Result<bool, LaneRefusal> {
        let mut last = None;
        let mut reserved = false;
        for SpentOutput { id: output, .. } in payment.inputs() {
            if let Some(by) = self.spender(log, &output, &mut last, budget)? {
                if by != *digest {
                    return Err(LaneRefusal::Conflict { output, by });
                }
                reserved = true;
            }
        }
        Ok(reserved)
    }

    /// The digest of the payment that spends `output`. `last` is the payment read last: inputs are often spent
    /// together.
    fn spender(
        &self,
        log: &impl LaneLog,
        output: &OutputId,
        last: &mut Option<Spender>,
        budget: &mut CheckBudget,
    ) -> Result<Option<Digest>, LaneRefusal> {
        for offset in self.spent.candidates(&output.0) {
            if last.as_ref().is_none_or(|read| read.offset != offset) {
                let bytes = self.fetch(log, offset, budget)?;
                let Some((Record::Payment(payment, signature), _)) = self.log_key.read(&bytes, offset) else {
                    return Err(LaneRefusal::Muted(MuteReason::DamagedLog));
                };
                let inputs = payment.inputs().map(|input| input.id).collect();
                let (digest, bytes) = (payment.digest(), payment.bytes().to_vec());
                *last = Some(Spender { offset, inputs, digest, bytes, signature });
            }
            if let Some(spender) = last
                && spender.inputs.contains(output)
            {
                return Ok(Some(spender.digest));
            }
        }
        Ok(None)
    }

    fn is_acknowledged(
        &self,
        log: &impl LaneLog,
        digest: &Digest,
        budget: &mut CheckBudget,
    ) -> Result<bool, LaneRefusal> {
        for offset in self.acknowledged.candidates(&digest.0) {
            let bytes = self.fetch(log, offset, budget)?;
            let Some((Record::Acknowledgement(summary), _)) = self.log_key.read(&bytes, offset) else {
                return Err(LaneRefusal::Muted(MuteReason::DamagedLog));
            };
            if summary.digest(&self.settings.rules.network) == *digest {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The bytes from `offset` on: of the open trees, which are not copied, otherwise of the log.
    fn fetch(&self, log: &impl LaneLog, offset: u64, budget: &mut CheckBudget) -> Result<Cow<'_, [u8]>, LaneRefusal> {
        if let Some(at) = offset.checked_sub(self.written) {
            return Ok(Cow::Borrowed(&self.tail[at as usize..]));
        }
        budget.spend(1)?;
        LogKey::fetch(log, offset).map(Cow::Owned).ok_or(LaneRefusal::Muted(MuteReason::UnreadableLog))
    }

    /// Whether each input is what its proof says, as far as hashes and the ledger's outputs tell. Returns the
    /// certificates that it then rests on.
    fn check_ids<'a>(
        &self,
        payment: &PaymentView<'_>,
        is_exit: bool,
        proofs: &'a [OutputProof],
    ) -> Result<Vec<ShownCertificate<'a>>, LaneRefusal> {
        let mut parents = Vec::new();
        let expected = |input: &SpentOutput| Output {
            to: Recipient::Key(payment.owner()),
            asset: input.asset,
            amount: input.amount,
        };
        for (input, proof) in payment.inputs().zip(proofs) {
            let output = expected(&input);
            match proof {
                OutputProof::Ledger => match self.known_output(&input.id, || is_exit) {
                    None => return Err(LaneRefusal::UnknownOutput(input.id)),
                    Some(backed) if *backed != output => return Err(LaneRefusal::ProofOfAnother(input.id)),
                    Some(_) => {}
                },
                OutputProof::Payment(proof) => {
                    let (summary, certificate) = (&proof.summary, &proof.certificate);
                    let parent = ShownCertificate::new(&self.settings.rules.network, summary, certificate);
                    if proof.id_under(&parent.digest, &output)? != input.id || summary.into != payment.home() {
                        return Err(LaneRefusal::ProofOfAnother(input.id));
                    }
                    parents.push(parent);
                }
            }
        }
        Ok(parents)
    }

    /// An output that the ledger knows: it created it, or a verdict proves it. The latter may only go home.
    fn known_output(&self, id: &OutputId, is_exit: impl Fn() -> bool) -> Option<&Output> {
        self.backed.get(id).or_else(|| self.proven.get(id).filter(|_| is_exit()))
    }

    /// Verifies the certificate of a payment of this home or the one before.
    fn check_certificate(&mut self, shown: &ShownCertificate<'_>, budget: &mut CheckBudget) -> Result<(), LaneRefusal> {
        let home = shown.summary.home;
        let committee = self.settings.committee_of(home).ok_or(LaneRefusal::UnknownCommittee(home))?;
        shown.verify(committee, StatementKind::Confirmation, &mut self.roots, budget)
    }

    /// Makes sure that the log has a certificate of each of these payments, before the record that relies on them. What
    /// it has was verified, so another certificate of the same payment need not be. If one of the others does not hold,
    /// or does not fit into a view, none is written.
    fn rest_on(
        &mut self,
        log: &impl LaneLog,
        parents: &[ShownCertificate<'_>],
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        let mut fresh: Vec<(Digest, Vec<u8>)> = Vec::with_capacity(parents.len());
        for shown in parents {
            let is_fresh = fresh.iter().all(|(other, _)| *other != shown.digest);
            if is_fresh && self.certified(log, &shown.digest)?.is_none() {
                self.check_certificate(shown, budget)?;
                fresh.push((shown.digest, shown.bytes()?));
            }
        }
        for (digest, bytes) in fresh {
            let offset = self.write(RecordKind::Certificate, &[&bytes]);
            self.certificates.insert(&digest.0, offset);
        }
        Ok(())
    }

    /// The certificate of a payment that the log has.
    fn certified(&self, log: &impl LaneLog, digest: &Digest) -> Result<Option<CertifiedPayment>, LaneRefusal> {
        for offset in self.certificates.candidates(&digest.0) {
            let bytes = match offset.checked_sub(self.written) {
                Some(at) => Cow::Borrowed(&self.tail[at as usize..]),
                None => {
                    let read = LogKey::fetch_certificate(log, offset).map(Cow::Owned);
                    read.ok_or(LaneRefusal::Muted(MuteReason::UnreadableLog))?
                }
            };
            let Some((Record::Certificate(of), _)) = self.log_key.read(&bytes, offset) else {
                return Err(LaneRefusal::Muted(MuteReason::DamagedLog));
            };
            if of.digest(&self.settings.rules.network) == *digest {
                return Ok(Some(of));
            }
        }
        Ok(None)
    }

    fn reserve(&mut self, payment: &PaymentView<'_>, signature: &Signature) {
        let offset = self.write(RecordKind::Payment, &[payment.bytes(), &signature.0]);
        payment.inputs().for_each(|input| self.spent.insert(&input.id.0, offset));
        self.payments_reserved += 1;
    }

    fn note(&mut self, summary: &PaymentSummary, digest: &Digest) {
        let mut bytes = Vec::with_capacity(PaymentSummary::BYTES);
        summary.write(&mut bytes);
        let offset = self.write(RecordKind::Acknowledgement, &[&bytes]);
        self.acknowledged.insert(&digest.0, offset);
    }

    /// Adds a record to the open batch and returns its offset.
    fn write(&mut self, kind: RecordKind, parts: &[&[u8]]) -> u64 {
        if self.tail.is_empty() {
            self.log_key.write(&mut self.tail, self.written, RecordKind::Mark, &[&self.durable.to_le_bytes()]);
        }
        let offset = self.written + self.tail.len() as u64;
        self.log_key.write(&mut self.tail, offset, kind, parts);
        offset
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use primitives::AssetId;

    use super::*;
    use crate::{AssetRule, Holding, Payment, build_payment, new_log};

    fn settings(key: &SecretKey) -> LaneSettings {
        let network = Digest([1; 32]);
        LaneSettings {
            rules: LaneRules { network, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } },
            committee: LaneCommittee::new(network, 0, vec![vec![key.public()]]),
            previous: None,
            validator: 0,
            shard: 0,
            now: 0,
            leaves: 1,
            entries_max: 100,
            trees_waiting_max: 1,
            checks_per_peer: 100,
            checks_per_tick: 100,
            roots_per_validator: 1,
        }
    }

    #[test]
    fn an_acknowledgement_whose_log_lacks_the_certificate_mutes_its_shard() {
        let key = || SecretKey::from_seed([1; 32]);
        let settings = settings(&key());
        let payment = Payment::exit(
            settings.rules.network,
            0,
            key().public(),
            SpentOutput { id: OutputId([5; 32]), asset: AssetId(0), amount: 5 },
        );
        let mut bytes = Vec::new();
        payment.summary().write(&mut bytes);
        let certificate = PaymentCertificate::Answers(Vec::new());
        let summary = payment.summary();
        let certified = ShownCertificate::new(&settings.rules.network, &summary, &certificate).bytes().expect("small");
        for (with_certificate, muted) in [(false, Some(MuteReason::DamagedLog)), (true, None)] {
            let mut log = new_log(&settings.owner(), [3; 32]);
            let (log_key, mut end) = record::recover(&log, &settings.owner(), |_, _| {}).expect("empty");
            for (kind, bytes) in [(RecordKind::Certificate, &certified), (RecordKind::Acknowledgement, &bytes)] {
                if with_certificate || kind != RecordKind::Certificate {
                    log_key.write(&mut log, end, kind, &[bytes]);
                    end = log.length();
                }
            }
            let (validator, _) = LaneValidator::open(settings.clone(), key(), [4; 32], Some(&log));
            assert_eq!(validator.muted(), muted);
        }
    }

    fn confirm(validator: &mut LaneValidator, log: &mut Vec<u8>, bytes: &[u8]) -> Vec<LaneEffect> {
        let mut effects = validator.step(log, LaneInput::Request { peer: 1, bytes });
        if let Some(LaneEffect::Append(bytes)) = effects.first() {
            log.extend(bytes);
            effects.extend(validator.step(log, LaneInput::Synced(log.length())));
        }
        effects
    }

    #[test]
    fn a_collision_of_fingerprints_costs_a_read_and_freezes_no_money() {
        let (key, owner) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
        let settings = settings(&key);
        let mut log = new_log(&settings.owner(), [3; 32]);
        let (mut validator, _) = LaneValidator::open(settings.clone(), key, [4; 32], Some(&log));
        let output = Output { to: Recipient::Key(owner.public()), asset: AssetId(0), amount: 5 };
        let spend = |index| {
            let id = OutputId::of_genesis(&settings.rules.network, 0, index);
            let holding = Holding { id, output, proof: OutputProof::Ledger };
            (id, build_payment(&settings.rules, &owner, 0, 0, vec![holding], vec![output]).expect("correct").request)
        };
        let [(first, spend_first), (second, spend_second)] = [spend(0), spend(1)];
        [first, second].into_iter().for_each(|id| drop(validator.step(&log, LaneInput::Backed(id, output))));
        let answered = |effects: &[LaneEffect]| effects.iter().any(|e| matches!(e, LaneEffect::Answer { .. }));
        assert!(answered(&confirm(&mut validator, &mut log, &spend_first)));
        let place = validator.spent.candidates(&first.0)[0];
        validator.spent.collide(&second.0, place);
        let before = validator.budgets.left();
        assert!(answered(&confirm(&mut validator, &mut log, &spend_second)), "the collision froze money");
        assert_eq!(validator.budgets.left(), before - 1, "it costs one read, which the budget counts");
        assert!(answered(&confirm(&mut validator, &mut log, &spend_second)), "a retry finds the right record");
    }
}
