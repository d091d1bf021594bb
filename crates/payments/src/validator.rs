//! One shard of one validator in one home epoch, as a state machine.

use std::collections::{HashMap, VecDeque};

use primitives::{Digest, PublicKey, SecretKey, Signature};

use crate::merkle::{self, Family, LEAVES_MAX, Tree};
use crate::payment::INPUTS_MAX;
use crate::record::{self, LogKey, Record, RecordKind};
use crate::request::{Proofs, RequestView, request_bytes_max, verify_claim};
use crate::spent::SpentSet;
use crate::{
    CheckBudget, HomeEpoch, LaneAnswer, LaneCommittee, LaneLog, LaneRefusal, LaneRules, LogOwner, MuteReason, Output,
    OutputId, OutputProof, PaymentCertificate, PaymentSummary, PaymentView, Recipient, RootCache, RootHeader,
    SpentOutput, StatementKind, owner_message,
};

/// Whoever sent a request, as the shell numbers connections or addresses.
pub type LanePeer = u64;

/// What a shard is configured with.
#[derive(Clone, Debug)]
pub struct LaneSettings {
    /// The rules of the network.
    pub rules: LaneRules,
    /// The committee of the shard's home epoch.
    pub committee: LaneCommittee,
    /// The committee of the epoch before, whose payments may have created inputs.
    pub previous: Option<LaneCommittee>,
    /// The validator's index in `committee`.
    pub validator: u8,
    /// Its shard.
    pub shard: u16,
    /// A tree is closed at this many leaves: 1 is the naive scheme.
    pub leaves: usize,
    /// Most entries of the spent set, and most acknowledgements.
    pub entries_max: usize,
    /// Most trees that wait for the disk.
    pub trees_waiting_max: usize,
    /// Costly checks that one peer may cause between two ticks.
    pub checks_per_peer: u32,
    /// Costly checks that all peers together may cause between two ticks.
    pub checks_per_tick: u32,
    /// Verified roots kept of each validator.
    pub roots_per_validator: usize,
}

impl LaneSettings {
    fn owner(&self) -> LogOwner {
        LogOwner {
            network: self.rules.network,
            home: self.committee.epoch(),
            validator: self.validator,
            shard: self.shard,
        }
    }

    /// The larger quorum of the committees whose certificates it verifies.
    pub fn largest_quorum(&self) -> usize {
        let committees = [Some(&self.committee), self.previous.as_ref()].into_iter().flatten();
        committees.map(|committee| committee.quorums().certificate).max().expect("there is a committee")
    }

    fn assert_consistent(&self, key: &SecretKey) {
        let (home, network) = (self.committee.epoch(), self.rules.network);
        let registered = self.committee.key(self.validator, self.shard).expect("the committee has the shard");
        assert_eq!(registered, key.public(), "the key of the shard is registered");
        assert_eq!(self.committee.network(), network, "the committee is of the network of the rules");
        let is_previous =
            |previous: &LaneCommittee| previous.epoch().checked_add(1) == Some(home) && previous.network() == network;
        assert!(self.previous.as_ref().is_none_or(is_previous), "`previous` is the committee of the epoch before");
        assert!((1..=LEAVES_MAX).contains(&self.leaves), "a tree has 1 to {LEAVES_MAX} leaves");
        assert!(self.trees_waiting_max > 0, "a tree may wait for the disk");
        // A correct payment with the most inputs, each with cold roots and a record to read, fits a fresh budget.
        let largest = INPUTS_MAX * (self.largest_quorum() + 1);
        assert!(self.checks_per_peer as usize >= largest, "checks_per_peer must be at least {largest}");
        assert!(self.checks_per_tick >= self.checks_per_peer, "checks_per_tick must be at least checks_per_peer");
    }
}

/// What a shard reacts to.
#[derive(Clone, Debug)]
pub enum LaneInput<'a> {
    /// A client sent a request.
    Request {
        /// Who.
        peer: LanePeer,
        /// [`crate::spend_request`] or [`crate::settle_request`].
        bytes: &'a [u8],
    },
    /// Time to close open trees, every millisecond or two. Budgets are refilled.
    Tick,
    /// The log is durable up to this position.
    Synced(u64),
    /// A write or a sync of the log failed.
    SyncFailed,
    /// The lane epoch by certified height.
    Epoch(HomeEpoch),
    /// A certified block or the genesis created an output with this shard's home.
    Backed(OutputId, Output),
}

/// What a shard asks its shell to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneEffect {
    /// Append to the log. The bytes must be readable before the next step; they need not be durable.
    Append(Vec<u8>),
    /// Make the log durable up to this position, then say [`LaneInput::Synced`].
    Sync(u64),
    /// Send an answer.
    Answer {
        /// To whom.
        peer: LanePeer,
        /// Confirmation or acknowledgement.
        kind: StatementKind,
        /// Of which payment.
        digest: Digest,
        /// The signature.
        answer: LaneAnswer,
    },
    /// Send a refusal.
    Refuse {
        /// To whom.
        peer: LanePeer,
        /// Why.
        refusal: LaneRefusal,
    },
    /// The shard signs nothing more in this home epoch. Tell the operator.
    Mute(MuteReason),
}

/// A tree whose records are written but perhaps not durable.
#[derive(Debug)]
struct ClosedTree {
    kind: StatementKind,
    leaves: Vec<(LanePeer, Digest)>,
    position: u64,
}

/// One shard of one validator in one home epoch. See the crate's documentation for the protocol.
pub struct LaneValidator {
    settings: LaneSettings,
    key: SecretKey,
    epoch: HomeEpoch,
    log_key: LogKey,
    /// Records of the open trees: they will stand at `written`.
    tail: Vec<u8>,
    written: u64,
    durable: u64,
    spent: SpentSet,
    acknowledged: SpentSet,
    backed: HashMap<OutputId, Output>,
    confirmations: Vec<(LanePeer, Digest)>,
    acknowledgements: Vec<(LanePeer, Digest)>,
    waiting: VecDeque<ClosedTree>,
    roots: RootCache,
    checks_left: u32,
    checks_by_peer: HashMap<LanePeer, u32>,
    muted: Option<MuteReason>,
}

impl LaneValidator {
    /// Opens a shard from its log. The second value is the length of what is intact: the shell cuts the log to it
    /// before the first step. It is `None` if the shard is mute: the log stays as it is.
    ///
    /// All bytes of `log` must be durable: after a failed sync pages may be readable that never reached the disk, so
    /// the shell first copies the log's tail into a new file and syncs that. `fingerprint_key` is random and fresh. A
    /// missing or damaged log mutes the shard.
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
            epoch: settings.committee.epoch(),
            log_key: LogKey::none(),
            tail: Vec::new(),
            written: 0,
            durable: 0,
            spent: SpentSet::new(fingerprint_key),
            acknowledged: SpentSet::new(fingerprint_key),
            backed: HashMap::new(),
            confirmations: Vec::new(),
            acknowledgements: Vec::new(),
            waiting: VecDeque::new(),
            roots: RootCache::new(settings.roots_per_validator),
            checks_left: settings.checks_per_tick,
            checks_by_peer: HashMap::new(),
            muted: None,
            settings,
            key,
        };
        let recovered = log.ok_or(MuteReason::MissingLog).and_then(|log| validator.recover(log));
        validator.muted = recovered.err();
        let intact = validator.muted.is_none().then_some(validator.written);
        (validator, intact)
    }

    fn recover(&mut self, log: &impl LaneLog) -> Result<(), MuteReason> {
        let (spent, acknowledged) = (&mut self.spent, &mut self.acknowledged);
        let network = self.settings.rules.network;
        let (key, intact) = record::recover(log, &self.settings.owner(), |offset, record| match record {
            Record::Mark(_) => {}
            Record::Payment(payment) => payment.inputs().for_each(|input| spent.insert(&input.id.0, offset)),
            Record::Acknowledgement(summary) => acknowledged.insert(&summary.digest(&network).0, offset),
        })?;
        (self.log_key, self.written, self.durable) = (key, intact, intact);
        Ok(())
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

    /// One step.
    ///
    /// # Panics
    /// If the shell says that more is durable than was written.
    pub fn step(&mut self, log: &impl LaneLog, input: LaneInput<'_>) -> Vec<LaneEffect> {
        let mut effects = Vec::new();
        match input {
            LaneInput::Request { peer, bytes } => {
                if let Err(refusal) = self.request(log, peer, bytes) {
                    if let (LaneRefusal::Muted(reason), None) = (&refusal, self.muted) {
                        self.mute(*reason, &mut effects);
                    }
                    effects.push(LaneEffect::Refuse { peer, refusal });
                }
                self.mute_if_rolled_back(&mut effects);
                if self.confirmations.len().max(self.acknowledgements.len()) >= self.settings.leaves {
                    self.close(&mut effects);
                }
            }
            LaneInput::Tick => {
                self.checks_left = self.settings.checks_per_tick;
                self.checks_by_peer.clear();
                self.close(&mut effects);
            }
            LaneInput::Synced(position) => {
                assert!(position <= self.written, "more is durable than was written");
                self.durable = self.durable.max(position);
                self.sign(&mut effects);
            }
            LaneInput::SyncFailed => self.mute(MuteReason::SyncFailed, &mut effects),
            LaneInput::Epoch(epoch) => self.epoch = self.epoch.max(epoch),
            LaneInput::Backed(id, output) => drop(self.backed.insert(id, output)),
        }
        effects
    }

    fn mute(&mut self, reason: MuteReason, effects: &mut Vec<LaneEffect>) {
        if self.muted.is_none() {
            self.muted = Some(reason);
            effects.push(LaneEffect::Mute(reason));
        }
        self.confirmations.clear();
        self.acknowledgements.clear();
        self.waiting.clear();
        self.tail.clear();
    }

    fn mute_if_rolled_back(&mut self, effects: &mut Vec<LaneEffect>) {
        let LogOwner { home, validator, shard, .. } = self.settings.owner();
        if self.roots.highest(home, validator, shard).is_some_and(|(own, _)| own.position > self.durable) {
            self.mute(MuteReason::RolledBackLog, effects);
        }
    }

    fn request(&mut self, log: &impl LaneLog, peer: LanePeer, bytes: &[u8]) -> Result<(), LaneRefusal> {
        if let Some(reason) = self.muted {
            return Err(LaneRefusal::Muted(reason));
        }
        let home = self.settings.committee.epoch();
        if self.epoch > home.saturating_add(2) {
            return Err(LaneRefusal::Ended(home));
        }
        if self.waiting.len() >= self.settings.trees_waiting_max {
            return Err(LaneRefusal::Busy);
        }
        if bytes.len() > request_bytes_max(self.settings.largest_quorum()) {
            return Err(LaneRefusal::Malformed("it is larger than any request"));
        }
        let request = RequestView::parse(bytes)?;
        let used = self.checks_by_peer.get(&peer).copied().unwrap_or(0);
        let allowed = self.settings.checks_per_peer.saturating_sub(used).min(self.checks_left);
        let mut budget = CheckBudget(allowed);
        let result = match request {
            RequestView::Spend { payment, signature, proofs } => {
                self.spend(log, peer, &payment, &signature, proofs, &mut budget)
            }
            RequestView::Settle { summary, certificate } => self.settle(log, peer, &summary, &certificate, &mut budget),
        };
        let spent = allowed - budget.0;
        if spent > 0 {
            self.checks_left -= spent;
            self.checks_by_peer.insert(peer, used + spent);
        }
        result
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

    /// Cheap checks, the spent set, the owner's signature, the inputs' certificates; then all inputs are reserved.
    fn spend(
        &mut self,
        log: &impl LaneLog,
        peer: LanePeer,
        payment: &PaymentView<'_>,
        signature: &Signature,
        proofs: Proofs<'_>,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        payment.check(&self.settings.rules)?;
        self.check_place(payment.home(), &payment.owner())?;
        let digest = payment.digest();
        if !self.is_reserved(log, payment, &digest, budget)? {
            if payment.into_epoch() != self.epoch {
                return Err(LaneRefusal::WrongEpoch { into: payment.into_epoch(), now: self.epoch });
            }
            let inputs = payment.inputs().count();
            self.check_room(self.spent.len(), inputs)?;
            let message = owner_message(&self.settings.rules.network, payment.home(), &digest);
            if !payment.owner().verify(&message, signature) {
                return Err(LaneRefusal::WrongOwnerSignature);
            }
            let proofs = proofs.read(inputs)?;
            self.check_proofs(payment, &proofs, budget)?;
            self.reserve(payment, signature);
        }
        self.confirmations.push((peer, digest));
        Ok(())
    }

    /// Notes that a payment has a certificate, once.
    fn settle(
        &mut self,
        log: &impl LaneLog,
        peer: LanePeer,
        summary: &PaymentSummary,
        certificate: &PaymentCertificate,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        self.check_place(summary.home, &summary.owner)?;
        let digest = summary.digest(&self.settings.rules.network);
        if !self.is_acknowledged(log, &digest, budget)? {
            self.check_room(self.acknowledged.len(), 1)?;
            let (committee, kind) = (&self.settings.committee, StatementKind::Confirmation);
            verify_claim(committee, kind, summary, certificate, &mut self.roots, budget)?;
            self.note(summary, &digest);
        }
        self.acknowledgements.push((peer, digest));
        Ok(())
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
        last: &mut Option<(u64, Vec<OutputId>, Digest)>,
        budget: &mut CheckBudget,
    ) -> Result<Option<Digest>, LaneRefusal> {
        for offset in self.spent.candidates(&output.0) {
            if last.as_ref().is_none_or(|(read, ..)| *read != offset) {
                let bytes = self.fetch(log, offset, budget)?;
                let Some((Record::Payment(payment), _)) = self.log_key.read(&bytes, offset) else {
                    return Err(LaneRefusal::Muted(MuteReason::DamagedLog));
                };
                *last = Some((offset, payment.inputs().map(|input| input.id).collect(), payment.digest()));
            }
            if let Some((_, inputs, digest)) = last
                && inputs.contains(output)
            {
                return Ok(Some(*digest));
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

    /// The bytes from `offset` on: of the open trees, else of the log.
    fn fetch(&self, log: &impl LaneLog, offset: u64, budget: &mut CheckBudget) -> Result<Vec<u8>, LaneRefusal> {
        if let Some(at) = offset.checked_sub(self.written) {
            return Ok(self.tail[at as usize..].to_vec());
        }
        budget.spend()?;
        LogKey::fetch(log, offset).ok_or(LaneRefusal::Muted(MuteReason::UnreadableLog))
    }

    fn check_proofs(
        &mut self,
        payment: &PaymentView<'_>,
        proofs: &[OutputProof],
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        let expected = |input: &SpentOutput| Output {
            to: Recipient::Key(payment.owner()),
            asset: input.asset,
            amount: input.amount,
        };
        // Ids of all inputs first: hashes are cheaper than signatures.
        for (input, proof) in payment.inputs().zip(proofs) {
            let output = expected(&input);
            match proof {
                OutputProof::Ledger => match self.backed.get(&input.id) {
                    None => return Err(LaneRefusal::UnknownOutput(input.id)),
                    Some(backed) if *backed != output => return Err(LaneRefusal::ProofOfAnother(input.id)),
                    Some(_) => {}
                },
                OutputProof::Payment(proof) => {
                    let proved = proof.id_of(&self.settings.rules.network, &output)?;
                    if proved != input.id || proof.summary.into != payment.home() {
                        return Err(LaneRefusal::ProofOfAnother(input.id));
                    }
                }
            }
        }
        for proof in proofs {
            let OutputProof::Payment(proof) = proof else { continue };
            let home = proof.summary.home;
            let committees = [Some(&self.settings.committee), self.settings.previous.as_ref()];
            let committee = committees.into_iter().flatten().find(|committee| committee.epoch() == home);
            let committee = committee.ok_or(LaneRefusal::UnknownCommittee(home))?;
            proof.verify(committee, &mut self.roots, budget)?;
        }
        Ok(())
    }

    fn reserve(&mut self, payment: &PaymentView<'_>, signature: &Signature) {
        let offset = self.write(RecordKind::Payment, &[payment.bytes(), &signature.0]);
        payment.inputs().for_each(|input| self.spent.insert(&input.id.0, offset));
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

    /// Closes the open trees: their records go to the log, and they wait until these are durable.
    fn close(&mut self, effects: &mut Vec<LaneEffect>) {
        if !self.tail.is_empty() {
            self.written += self.tail.len() as u64;
            effects.push(LaneEffect::Append(std::mem::take(&mut self.tail)));
            effects.push(LaneEffect::Sync(self.written));
        }
        let position = self.written;
        let open = [
            (StatementKind::Confirmation, std::mem::take(&mut self.confirmations)),
            (StatementKind::Acknowledgement, std::mem::take(&mut self.acknowledgements)),
        ];
        let trees = open.into_iter().filter(|(_, leaves)| !leaves.is_empty());
        self.waiting.extend(trees.map(|(kind, leaves)| ClosedTree { kind, leaves, position }));
        self.sign(effects);
    }

    /// Signs the trees whose records are durable.
    fn sign(&mut self, effects: &mut Vec<LaneEffect>) {
        while self.waiting.front().is_some_and(|tree| tree.position <= self.durable)
            && let Some(closed) = self.waiting.pop_front()
        {
            let leaf = |(_, digest): &(LanePeer, Digest)| merkle::leaf(Family::Signed, &digest.0);
            let tree = Tree::new(Family::Signed, closed.leaves.iter().map(leaf).collect());
            let header = RootHeader {
                network: self.settings.rules.network,
                epoch: self.settings.committee.epoch(),
                validator: self.settings.validator,
                shard: self.settings.shard,
                kind: closed.kind,
                size: closed.leaves.len() as u32,
                position: closed.position,
                root: tree.root(),
            };
            let signature = self.key.sign(&header.bytes());
            for (index, (peer, digest)) in closed.leaves.into_iter().enumerate() {
                let answer = LaneAnswer {
                    validator: header.validator,
                    size: header.size,
                    index: index as u32,
                    position: header.position,
                    signature,
                    path: tree.path(index),
                };
                effects.push(LaneEffect::Answer { peer, kind: closed.kind, digest, answer });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use primitives::AssetId;

    use super::*;
    use crate::{AssetRule, Holding, build_payment, new_log};

    struct Memory(Vec<u8>);

    impl LaneLog for Memory {
        fn length(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
            self.0.get(offset as usize..offset as usize + length).map(<[u8]>::to_vec)
        }
    }

    fn settings(key: &SecretKey) -> LaneSettings {
        let network = Digest([1; 32]);
        LaneSettings {
            rules: LaneRules { network, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } },
            committee: LaneCommittee::new(network, 0, vec![vec![key.public()]]),
            previous: None,
            validator: 0,
            shard: 0,
            leaves: 1,
            entries_max: 100,
            trees_waiting_max: 1,
            checks_per_peer: 100,
            checks_per_tick: 100,
            roots_per_validator: 1,
        }
    }

    fn confirm(validator: &mut LaneValidator, log: &mut Memory, bytes: &[u8]) -> Vec<LaneEffect> {
        let mut effects = validator.step(log, LaneInput::Request { peer: 1, bytes });
        if let Some(LaneEffect::Append(bytes)) = effects.first() {
            log.0.extend(bytes);
            effects.extend(validator.step(log, LaneInput::Synced(log.length())));
        }
        effects
    }

    #[test]
    fn a_collision_of_fingerprints_costs_a_read_and_freezes_no_money() {
        let (key, owner) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
        let settings = settings(&key);
        let mut log = Memory(new_log(&settings.owner(), [3; 32]));
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
        let before = validator.checks_left;
        assert!(answered(&confirm(&mut validator, &mut log, &spend_second)), "the collision froze money");
        assert_eq!(validator.checks_left, before - 1, "it costs one read, which the budget counts");
        assert!(answered(&confirm(&mut validator, &mut log, &spend_second)), "a retry finds the right record");
    }
}
