//! One height: the round logic, and the results of its effects.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use arc_malachitebft_core_consensus::{
    ConsensusMsg, Effect, Input, LivenessMsg, LocallyProposedValue, MisbehaviorEvidence, Params, PeerId, ProposedValue,
    Resumable, Resume, SignedConsensusMsg, State, ThresholdParams, ValuePayload, process,
};
use arc_malachitebft_core_types::{
    CertificateError, CommitCertificate, ExtendedCommitCertificate, ExtendedCommitSignature, NilOrVal,
    PolkaCertificate, PolkaSignature, Round as MaybeRound, RoundCertificate, RoundCertificateType, RoundSignature,
    SignedMessage, SignedProposal, SignedVote, Threshold, Timeout, TimeoutKind, Validity, ValueOrigin, ValueResponse,
    VoteExtensionPolicy, VoteType,
};
use primitives::Signature;
use proofs::{Chain, Index};

use super::message::{EntryProof, Kind, Message, Proposal, Quorum, Round, RoundRecord, Step, Value, Vote};
use super::types::{Height, Member, Types, UnsignedProposal, UnsignedVote, Validators, proposer, round_of};
use crate::members::Members;
use crate::message::Timer;
use crate::pen::Pen;
use crate::proposal::Evidence;
use crate::refused::Refused;

/// Messages that the round logic may keep for a height that has not begun. None are kept: a message begins the
/// height.
const QUEUED: usize = 16;
/// Maximum deviation of a proposer's clock in milliseconds in the first round, doubled in each following round: a
/// height ends whatever the clocks show.
const CLOCK_OFF_MS: u64 = 2_000;
/// Maximum number of values recorded of each validator: a faulty one may vote for any.
const VALUES_OF_ONE: usize = 4;

/// What must be done after inputs, in this order: log the records, then the rest.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) records: Vec<RoundRecord>,
    pub(crate) sends: Vec<Message>,
    pub(crate) timers: Vec<Timer>,
    pub(crate) evidence: Vec<Evidence>,
}

/// One height at one validator.
pub(crate) struct Instance {
    state: State<Types>,
    sink: EffectSink,
    begun: bool,
    halted: bool,
    /// Payloads held here.
    held: BTreeSet<Value>,
    /// Held payloads that the round logic was not told of yet because their proposer's clock is off, with the
    /// deviation on arrival.
    early_or_late: BTreeMap<Value, Clock>,
    /// The validators that prevoted for a value, and so hold its payload unless they are faulty.
    holders: BTreeMap<Value, Members>,
    /// The value decided by another validator's certificate of precommits; its payload may be missing.
    certified: Option<(Round, Value)>,
    /// The first value proposed in each round, and whether the proposer was seen to sign another.
    proposals: BTreeMap<Round, (Value, bool)>,
}

/// The proposer's clock of a payload.
#[derive(Clone, Copy, Debug)]
enum Clock {
    /// The time it shows; this machine's time was not known yet.
    At(u64),
    /// Its deviation from this machine's clock, in milliseconds.
    Off(u64),
}

/// Collects the effects of the round logic.
struct EffectSink {
    chain: Chain,
    pen: Pen,
    me: Index,
    height: u64,
    /// The signature of the message being processed: it was checked already.
    checked: Option<Signature>,
    /// Whether the last message contained an invalid signature.
    refused: bool,
    /// The log's records while they are replayed.
    replayed: Vec<RoundRecord>,
    /// The round for which this validator is asked to propose.
    request: Option<Round>,
    decision: Option<Quorum>,
    /// All messages sent here; they are sent again to validators that may have missed them.
    sent: Vec<Message>,
    outcome: Outcome,
}

impl Instance {
    pub(crate) fn new(chain: Chain, me: Index, pen: Pen, height: u64) -> Instance {
        let params = Params {
            address: Member(me),
            threshold_params: ThresholdParams::default(),
            value_payload: ValuePayload::ProposalAndParts,
            enabled: true,
        };
        let state = State::new(Types, Height(height), Validators::of(&chain), params, 1, QUEUED);
        let sink = EffectSink {
            chain,
            pen,
            me,
            height,
            checked: None,
            refused: false,
            replayed: Vec::new(),
            request: None,
            decision: None,
            sent: Vec::new(),
            outcome: Outcome::default(),
        };
        Instance {
            state,
            sink,
            begun: false,
            halted: false,
            held: BTreeSet::new(),
            early_or_late: BTreeMap::new(),
            holders: BTreeMap::new(),
            certified: None,
            proposals: BTreeMap::new(),
        }
    }

    /// Begins the first round, if it has not begun.
    pub(crate) fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            self.start(false);
        }
    }

    fn start(&mut self, again: bool) {
        let validators = Validators::of(&self.sink.chain);
        let height = Height(self.sink.height);
        self.run(Input::StartHeight(height, validators, again, None, VoteExtensionPolicy::Disabled));
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.begun
    }

    /// The decided value.
    pub(crate) fn decision(&self) -> Option<Value> {
        self.sink.decision.as_ref().map(|decision| decision.value)
    }

    /// The precommits of the decision, if the sender of a message is still in a later round.
    pub(crate) fn decision_for(&self, message: &Message) -> Option<Message> {
        let decision = self.sink.decision.as_ref().filter(|decision| message.round() > decision.round)?;
        (!matches!(message, Message::Decision(_))).then(|| Message::Decision(decision.clone()))
    }

    /// The maker of the decided payload, and the round of the decision, counted from 1.
    pub(crate) fn decided_in(&self) -> Option<(Index, Round)> {
        let decision = self.sink.decision.as_ref()?;
        Some((self.decision()?.slot, decision.round + 1))
    }

    /// Whether this validator is asked to propose.
    pub(crate) fn is_asked(&self) -> bool {
        self.sink.request.is_some() && !self.halted
    }

    /// The current round.
    pub(crate) fn round(&self) -> Round {
        round_of(self.state.round())
    }

    /// All messages sent about the height.
    pub(crate) fn sent(&self) -> &[Message] {
        &self.sink.sent
    }

    /// The validators that prevoted for a value.
    pub(crate) fn holders(&self, value: &Value) -> Members {
        self.holders.get(value).copied().unwrap_or_default()
    }

    /// Takes the results of the last inputs.
    pub(crate) fn drain_outcome(&mut self) -> Outcome {
        std::mem::take(&mut self.sink.outcome)
    }

    /// Stops: the height is over.
    pub(crate) fn halt(&mut self) {
        if std::mem::replace(&mut self.halted, true) || !self.begun {
            return;
        }
        let proposals = self.state.driver.take_proposal_evidence();
        let votes = self.state.driver.take_vote_evidence();
        self.sink.convict(&MisbehaviorEvidence { proposals, votes });
    }

    /// Handles a message of another validator.
    pub(crate) fn on_message(&mut self, message: &Message) -> Result<(), Refused> {
        if self.halted {
            return Ok(());
        }
        if !self.is_news(message)? {
            return Ok(());
        }
        self.begin();
        self.run(lift(message, self.sink.height));
        self.sink.checked = None;
        self.accept_timely_payloads();
        if std::mem::take(&mut self.sink.refused) { Err(Refused::Signature) } else { Ok(()) }
    }

    /// Whether a message is new; rejects what no correct validator sends. The round logic checks the rest when it
    /// processes the message.
    fn is_news(&mut self, message: &Message) -> Result<bool, Refused> {
        let size = self.sink.chain.keys.len();
        match message {
            Message::Vote(vote) => self.is_new_vote(vote),
            Message::Proposal(proposal) => self.is_new_proposal(proposal),
            Message::Entry(entry) => {
                let alike = |vote: &Vote| vote.height == self.sink.height && vote.round == entry.round;
                let sound = entry.votes.len() <= size && entry.votes.iter().all(alike);
                let enters = if entry.skips { entry.round > self.round() } else { entry.round >= self.round() };
                if sound { Ok(enters || !self.begun) } else { Err(Refused::Undecodable) }
            }
            Message::Polka(quorum) | Message::Decision(quorum)
                if quorum.signatures.len() > size || usize::from(quorum.value.slot) >= size =>
            {
                Err(Refused::Undecodable)
            }
            Message::Polka(_) => Ok(true),
            Message::Decision(_) if self.sink.decision.is_some() || self.certified.is_some() => Ok(false),
            Message::Decision(quorum) if !self.sink.is_decisive(quorum) => Err(Refused::Signature),
            Message::Decision(quorum) => {
                self.certified = Some((quorum.round, quorum.value));
                Ok(true)
            }
        }
    }

    fn is_new_vote(&mut self, vote: &Vote) -> Result<bool, Refused> {
        if vote.height != self.sink.height {
            return Err(Refused::Undecodable);
        }
        if !self.is_in_reach(vote.round) {
            return Ok(false);
        }
        let (votes, lifted) = (self.state.driver.votes(), vote.lift());
        if votes.has_vote(&lifted) || votes.is_saturated_conflict(&lifted) {
            return Ok(false);
        }
        if !vote.is_signed(&self.sink.chain) {
            return Err(Refused::Signature);
        }
        self.sink.checked = Some(vote.signature);
        let room = self.holders.len() < VALUES_OF_ONE * self.sink.chain.keys.len();
        if let (Kind::Prevote, Some(value)) = (vote.kind, vote.value)
            && (room || self.holders.contains_key(&value))
        {
            self.holders.entry(value).or_default().insert(vote.signer);
        }
        Ok(true)
    }

    /// A proposal is new if it is the first of its round, or the second with another value: that one is evidence, and
    /// nothing is fetched for it.
    fn is_new_proposal(&mut self, proposal: &Proposal) -> Result<bool, Refused> {
        let known = self.proposals.get(&proposal.round).copied();
        let is_known = known.is_some_and(|(first, contradicted)| contradicted || first == proposal.value);
        if is_known || !self.is_in_reach(proposal.round) {
            return Ok(false);
        }
        self.sink.check_proposal(proposal)?;
        let entry = self.proposals.entry(proposal.round).or_insert((proposal.value, false));
        entry.1 = known.is_some();
        self.sink.checked = Some(proposal.signature);
        Ok(true)
    }

    /// Whether a round is near enough for its votes and proposals to be kept: at most one turn of proposers above the
    /// current one. A validator that lags by more is advanced by a certificate of a later round, which every
    /// validator repeats.
    fn is_in_reach(&self, round: Round) -> bool {
        round <= self.round().saturating_add(self.sink.chain.keys.len() as Round)
    }

    /// The value of a message whose payload must be fetched, if it is not held.
    pub(crate) fn lacks(&self, message: &Message) -> Option<Value> {
        let value = match message {
            Message::Proposal(Proposal { round, value, .. }) => {
                self.proposals.get(round).filter(|(first, _)| first == value)?.0
            }
            Message::Decision(quorum) => quorum.value,
            Message::Vote(_) | Message::Polka(_) | Message::Entry(_) => return None,
        };
        (!self.halted && !self.held.contains(&value)).then_some(value)
    }

    /// Takes a valid payload. If it has a time, the round logic is told of it once the time is near enough to this
    /// machine's clock: see [`Instance::judge`].
    pub(crate) fn on_held(&mut self, value: Value, time_ms: Option<u64>) {
        if self.halted || !self.held.insert(value) {
            return;
        }
        self.begin();
        match time_ms {
            None => self.accept_payload(value),
            Some(time_ms) => drop(self.early_or_late.insert(value, Clock::At(time_ms))),
        }
    }

    /// Whether the clocks of some payloads were not compared yet.
    pub(crate) fn is_to_judge(&self) -> bool {
        self.early_or_late.values().any(|clock| matches!(clock, Clock::At(_)))
    }

    /// Compares the clocks of payloads with this machine's clock, once for each.
    pub(crate) fn judge(&mut self, clock_ms: u64) {
        for clock in self.early_or_late.values_mut() {
            if let Clock::At(time_ms) = *clock {
                *clock = Clock::Off(time_ms.abs_diff(clock_ms));
            }
        }
        self.accept_timely_payloads();
    }

    /// Tells the round logic of payloads whose time is near enough by now; it does not prevote for payloads that it
    /// was not told of.
    fn accept_timely_payloads(&mut self) {
        while let Some(value) = self.early_or_late.iter().find(|(value, clock)| self.is_timely(value, **clock)) {
            let value = *value.0;
            self.early_or_late.remove(&value);
            self.accept_payload(value);
        }
    }

    /// Whether a proposer's clock is near enough in this round, or no longer matters: more than two thirds have voted
    /// for the payload. So correct validators found it near enough.
    fn is_timely(&self, value: &Value, clock: Clock) -> bool {
        let in_time = matches!(clock, Clock::Off(off_ms) if off_ms <= clock_off_max(self.round()));
        in_time || self.certified.is_some_and(|(_, certified)| certified == *value) || self.is_voted_for(value)
    }

    /// Whether more than two thirds prevoted or precommitted for a value in one round.
    fn is_voted_for(&self, value: &Value) -> bool {
        let votes = self.state.driver.votes();
        let met = |round: &MaybeRound, kind| votes.is_threshold_met(round, kind, Threshold::Value(*value));
        votes.all_rounds().keys().any(|round| met(round, VoteType::Prevote) || met(round, VoteType::Precommit))
    }

    fn accept_payload(&mut self, value: Value) {
        let certified = self.certified.filter(|(_, certified)| *certified == value);
        let origin = if certified.is_some() { ValueOrigin::Sync } else { ValueOrigin::Consensus };
        let round = certified.map_or_else(|| self.first_round_of(value.slot), |(round, _)| round);
        self.run(Input::ProposedValue(proposed(self.sink.height, round, value), origin));
    }

    /// The first round in which a validator proposes.
    fn first_round_of(&self, slot: Index) -> Round {
        let size = self.sink.chain.keys.len();
        (0..size as Round).find(|round| proposer(self.sink.height, *round, size) == slot).unwrap_or(0)
    }

    /// Proposes the value that is asked for.
    pub(crate) fn propose(&mut self, value: Value) {
        self.begin();
        let Some(round) = self.sink.request.take().filter(|_| !self.halted) else { return };
        self.held.insert(value);
        let height = Height(self.sink.height);
        self.run(Input::Propose(LocallyProposedValue::new(height, MaybeRound::new(round), value)));
    }

    /// Handles a timer.
    pub(crate) fn on_timer(&mut self, step: Step, round: Round) {
        if self.begun && !self.halted {
            self.run(elapsed(step, round));
            self.accept_timely_payloads();
        }
    }

    /// Replays the log's records after a restart: the same votes follow, and no other vote is signed.
    pub(crate) fn restore(&mut self, records: Vec<RoundRecord>) {
        let height = self.sink.height;
        let inputs: Vec<Input<Types>> = records.iter().map(|record| logged(record, height)).collect();
        for record in &records {
            if let RoundRecord::Taken(Message::Proposal(Proposal { round, value, .. })) = record {
                self.proposals.entry(*round).or_insert((*value, false));
            }
        }
        self.state.index_wal_entries(&inputs);
        self.sink.replayed = records;
        self.begun = true;
        self.start(true);
        for input in inputs {
            if let Input::ProposedValue(proposed, _) = &input {
                self.held.insert(proposed.value);
            }
            self.run(input);
        }
        self.state.reset_entries_index();
        let me = self.sink.me;
        // A proposal that was made before the restart is not made anew, but sent again.
        for record in std::mem::take(&mut self.sink.replayed) {
            if let RoundRecord::Taken(Message::Proposal(proposal)) = record
                && proposal.signer == me
            {
                self.sink.request.take_if(|round| *round == proposal.round);
                self.sink.broadcast(Message::Proposal(proposal));
            }
        }
    }

    /// Gives the round logic an input. An internal error, which no message can cause, ends this validator's part in
    /// the height.
    fn run(&mut self, input: Input<Types>) {
        let Instance { state, sink, .. } = self;
        let done: Result<(), arc_malachitebft_core_consensus::Error<Types>> = process!(
            input: input,
            state: state,
            metrics: &(),
            with: effect => sink.handle(effect)
        );
        self.halted |= done.is_err();
    }
}

/// Maximum deviation of a proposer's clock in a round.
fn clock_off_max(round: Round) -> u64 {
    CLOCK_OFF_MS.saturating_mul(1u64.checked_shl(round).unwrap_or(u64::MAX))
}

/// A valid payload in the form of the round logic.
fn proposed(height: u64, round: Round, value: Value) -> ProposedValue<Types> {
    ProposedValue {
        height: Height(height),
        round: MaybeRound::new(round),
        valid_round: MaybeRound::Nil,
        proposer: Member(value.slot),
        value,
        validity: Validity::Valid,
    }
}

fn elapsed(step: Step, round: Round) -> Input<Types> {
    let round = MaybeRound::new(round);
    Input::TimeoutElapsed(match step {
        Step::Propose => Timeout::propose(round),
        Step::Prevote => Timeout::prevote(round),
        Step::Precommit => Timeout::precommit(round),
    })
}

fn logged(record: &RoundRecord, height: u64) -> Input<Types> {
    match record {
        RoundRecord::Taken(message) => lift(message, height),
        RoundRecord::Held { round, value } => {
            Input::ProposedValue(proposed(height, *round, *value), ValueOrigin::Consensus)
        }
        RoundRecord::Fired { step, round } => elapsed(*step, *round),
    }
}

/// A message in the form of the round logic.
fn lift(message: &Message, height: u64) -> Input<Types> {
    let height = Height(height);
    match message {
        Message::Vote(vote) => Input::Vote(vote.lift()),
        Message::Proposal(proposal) => Input::Proposal(proposal.lift()),
        Message::Polka(Quorum { round, value, signatures }) => {
            let signed = |(signer, signature): &(Index, Signature)| PolkaSignature::new(Member(*signer), *signature);
            Input::PolkaCertificate(PolkaCertificate {
                height,
                round: MaybeRound::new(*round),
                value_id: *value,
                polka_signatures: signatures.iter().map(signed).collect(),
            })
        }
        Message::Entry(EntryProof { round, skips, votes }) => Input::RoundCertificate(RoundCertificate {
            height,
            round: MaybeRound::new(*round),
            cert_type: if *skips { RoundCertificateType::Skip } else { RoundCertificateType::Precommit },
            round_signatures: votes.iter().map(round_signature).collect(),
        }),
        Message::Decision(Quorum { round, value, signatures }) => {
            let signed = |(signer, signature): &(Index, Signature)| {
                ExtendedCommitSignature::new(Member(*signer), *signature, None)
            };
            let certificate = ExtendedCommitCertificate {
                height,
                round: MaybeRound::new(*round),
                value_id: *value,
                commit_signatures: signatures.iter().map(signed).collect(),
            };
            Input::SyncValueResponse(ValueResponse::new(nobody(), bytes::Bytes::new(), certificate))
        }
    }
}

fn round_signature(vote: &Vote) -> RoundSignature<Types> {
    let lifted = vote.lift().message;
    let value = vote.value.map_or(NilOrVal::Nil, NilOrVal::Val);
    RoundSignature::new(kind_of(&lifted), value, Member(vote.signer), vote.signature)
}

fn kind_of(vote: &UnsignedVote) -> VoteType {
    arc_malachitebft_core_types::Vote::vote_type(vote)
}

/// The round logic reports which peer an answer came from; here only the links know it.
fn nobody() -> PeerId {
    PeerId::from_bytes(&[0, 0]).expect("an identity hash of nothing")
}

impl EffectSink {
    fn handle(&mut self, effect: Effect<Types>) -> Result<Resume<Types>, Infallible> {
        Ok(match effect {
            Effect::ScheduleTimeout(timeout, resume) => {
                self.arm(&timeout);
                resume.resume_with(())
            }
            Effect::StartRound(.., resume) => {
                self.request = None;
                resume.resume_with(())
            }
            Effect::GetValue(_, round, _, resume) => {
                self.request = Some(round_of(round));
                resume.resume_with(())
            }
            Effect::PublishConsensusMsg(message, resume) => {
                self.broadcast(match message {
                    SignedConsensusMsg::Vote(vote) => Message::Vote(lowered(vote)),
                    SignedConsensusMsg::Proposal(proposal) => Message::Proposal(lowered_proposal(proposal)),
                });
                resume.resume_with(())
            }
            Effect::PublishLivenessMsg(message, resume) => {
                self.broadcast(match message {
                    LivenessMsg::Vote(vote) => Message::Vote(lowered(vote)),
                    LivenessMsg::PolkaCertificate(certificate) => Message::Polka(polka(certificate)),
                    LivenessMsg::SkipRoundCertificate(certificate) => Message::Entry(entry(self.height, certificate)),
                });
                resume.resume_with(())
            }
            Effect::Decide(certificate, _, resume) => {
                let decision = decision(certificate);
                self.sent.push(Message::Decision(decision.clone()));
                self.decision = Some(decision);
                resume.resume_with(())
            }
            Effect::Finalize(_, _, evidence, resume) => {
                self.convict(&evidence);
                resume.resume_with(())
            }
            Effect::WalAppend(_, input, resume) => {
                self.record(input);
                resume.resume_with(())
            }
            Effect::CertRejectedSyncValue(_, _, _, resume) => {
                self.refused = true;
                resume.resume_with(())
            }
            // Links send lost messages again, and payloads are fetched from validators that prevoted for them.
            Effect::RepublishVote(_, resume) => resume.resume_with(()),
            Effect::RepublishRoundCertificate(_, resume) => resume.resume_with(()),
            Effect::RestreamProposal(.., resume) => resume.resume_with(()),
            Effect::CertVerifiedSyncValue(_, _, resume) => resume.resume_with(()),
            // Obsolete timers do nothing when they fire.
            Effect::CancelAllTimeouts(resume) => resume.resume_with(()),
            Effect::CancelTimeout(_, resume) => resume.resume_with(()),
            effect => self.sign_or_verify(effect),
        })
    }

    fn sign_or_verify(&mut self, effect: Effect<Types>) -> Resume<Types> {
        match effect {
            Effect::SignVote(vote, resume) => {
                let signature = self.pen.sign(&Vote::of(&vote, Signature([0; 64])).to_sign(&self.chain));
                resume.resume_with(SignedMessage::new(vote, signature))
            }
            Effect::SignProposal(proposal, resume) => {
                let signature = self.pen.sign(&Proposal::of(&proposal, Signature([0; 64])).to_sign(&self.chain));
                resume.resume_with(SignedMessage::new(proposal, signature))
            }
            Effect::VerifySignature(message, _, resume) => resume.resume_with(self.is_signed(&message)),
            // It consists of votes that were checked one by one.
            Effect::VerifyCommitCertificate(_, _, _, resume) => resume.resume_with(Ok(())),
            // It was checked before it was passed in.
            Effect::VerifyExtendedCommitCertificate(.., resume) => resume.resume_with(Ok(())),
            Effect::VerifyPolkaCertificate(certificate, _, thresholds, resume) => {
                let votes = votes_of(self.height, Kind::Prevote, &polka(certificate));
                resume.resume_with(self.weigh(&votes, thresholds.quorum))
            }
            Effect::VerifyRoundCertificate(certificate, _, thresholds, resume) => {
                let skips = certificate.cert_type == RoundCertificateType::Skip;
                let EntryProof { votes, .. } = entry(self.height, certificate);
                let fit = skips || votes.iter().all(|vote| vote.kind == Kind::Precommit);
                let threshold = if skips { thresholds.honest } else { thresholds.quorum };
                let votes = if fit { votes } else { Vec::new() };
                resume.resume_with(self.weigh(&votes, threshold))
            }
            Effect::ExtendVote(.., resume) => resume.resume_with(None),
            Effect::VerifyVoteExtension(.., resume) => resume.resume_with(Ok(())),
            _ => Resume::Continue,
        }
    }

    /// Rejects a proposal that is not signed by the proposer of its round.
    fn check_proposal(&self, proposal: &Proposal) -> Result<(), Refused> {
        let size = self.chain.keys.len();
        if proposal.height != self.height {
            return Err(Refused::Undecodable);
        }
        if usize::from(proposal.value.slot) >= size || proposal.signer != proposer(self.height, proposal.round, size) {
            return Err(Refused::Slot);
        }
        if !proposal.is_signed(&self.chain) {
            return Err(Refused::Signature);
        }
        Ok(())
    }

    fn is_signed(&self, message: &SignedMessage<Types, ConsensusMsg<Types>>) -> bool {
        if self.checked == Some(message.signature) {
            return true;
        }
        match &message.message {
            ConsensusMsg::Vote(vote) => Vote::of(vote, message.signature).is_signed(&self.chain),
            ConsensusMsg::Proposal(proposal) => Proposal::of(proposal, message.signature).is_signed(&self.chain),
        }
    }

    /// Checks that these are votes of enough different validators.
    fn weigh(
        &mut self,
        votes: &[Vote],
        threshold: arc_malachitebft_core_types::ThresholdParam,
    ) -> Result<(), CertificateError<Types>> {
        let total = self.chain.keys.len() as u64;
        let mut signers = Members::default();
        let sound = |vote: &Vote| signers.insert(vote.signer) && vote.is_signed(&self.chain);
        if votes.iter().all(sound) && threshold.is_met(votes.len() as u64, total) {
            return Ok(());
        }
        self.refused = true;
        let expected = threshold.min_expected(total);
        Err(CertificateError::NotEnoughVotingPower { signed: votes.len() as u64, total, expected })
    }

    /// Whether these are precommits of more than two thirds.
    fn is_decisive(&mut self, quorum: &Quorum) -> bool {
        let votes = votes_of(self.height, Kind::Precommit, quorum);
        let decisive = self.weigh(&votes, ThresholdParams::default().quorum).is_ok();
        self.refused = false;
        decisive
    }

    fn arm(&mut self, timeout: &Timeout) {
        let step = match timeout.kind {
            TimeoutKind::Propose => Step::Propose,
            TimeoutKind::Prevote => Step::Prevote,
            TimeoutKind::Precommit => Step::Precommit,
            // Links send lost messages again; heights are not held open.
            TimeoutKind::Rebroadcast | TimeoutKind::FinalizeHeight(_) => return,
        };
        self.outcome.timers.push(Timer::Round { step, round: round_of(timeout.round) });
    }

    /// Sends a message to all; of the certificates only the newest of each kind is kept for repetition.
    fn broadcast(&mut self, message: Message) {
        let replaces = |old: &Message| match &message {
            Message::Polka(_) => matches!(old, Message::Polka(_)),
            Message::Entry(_) => matches!(old, Message::Entry(_)),
            _ => *old == message,
        };
        self.sent.retain(|old| !replaces(old));
        self.sent.push(message.clone());
        self.outcome.sends.push(message);
    }

    fn record(&mut self, input: Input<Types>) {
        let record = match input {
            Input::Vote(vote) => RoundRecord::Taken(Message::Vote(lowered(vote))),
            Input::Proposal(proposal) => RoundRecord::Taken(Message::Proposal(lowered_proposal(proposal))),
            Input::PolkaCertificate(certificate) => RoundRecord::Taken(Message::Polka(polka(certificate))),
            Input::ProposedValue(proposed, _) => {
                RoundRecord::Held { round: round_of(proposed.round), value: proposed.value }
            }
            Input::TimeoutElapsed(Timeout { kind, round }) => {
                let round = round_of(round);
                match kind {
                    TimeoutKind::Propose => RoundRecord::Fired { step: Step::Propose, round },
                    TimeoutKind::Prevote => RoundRecord::Fired { step: Step::Prevote, round },
                    TimeoutKind::Precommit => RoundRecord::Fired { step: Step::Precommit, round },
                    TimeoutKind::Rebroadcast | TimeoutKind::FinalizeHeight(_) => return,
                }
            }
            Input::StartHeight(..) | Input::RoundCertificate(_) | Input::Propose(_) | Input::SyncValueResponse(_) => {
                return;
            }
        };
        if !self.replayed.contains(&record) {
            self.outcome.records.push(record);
        }
    }

    fn convict(&mut self, evidence: &MisbehaviorEvidence<Types>) {
        for (a, b) in evidence.votes.iter().flat_map(|(_, pairs)| pairs) {
            self.outcome.evidence.push(Evidence::Votes(lowered(a.clone()), lowered(b.clone())));
        }
        for (a, b) in evidence.proposals.iter().flat_map(|(_, pairs)| pairs) {
            let (a, b) = (lowered_proposal(a.clone()), lowered_proposal(b.clone()));
            self.outcome.evidence.push(Evidence::RoundProposals(a, b));
        }
    }
}

fn lowered(vote: SignedVote<Types>) -> Vote {
    Vote::of(&vote.message, vote.signature)
}

fn lowered_proposal(proposal: SignedProposal<Types>) -> Proposal {
    let unsigned: UnsignedProposal = proposal.message;
    Proposal::of(&unsigned, proposal.signature)
}

fn polka(certificate: PolkaCertificate<Types>) -> Quorum {
    let signatures = certificate.polka_signatures.iter().map(|signed| (signed.address.0, signed.signature));
    Quorum { round: round_of(certificate.round), value: certificate.value_id, signatures: signatures.collect() }
}

fn decision(certificate: CommitCertificate<Types>) -> Quorum {
    let signatures = certificate.commit_signatures.iter().map(|signed| (signed.address.0, signed.signature));
    Quorum { round: round_of(certificate.round), value: certificate.value_id, signatures: signatures.collect() }
}

fn entry(height: u64, certificate: RoundCertificate<Types>) -> EntryProof {
    let round = round_of(certificate.round);
    let vote = |signed: &RoundSignature<Types>| Vote {
        height,
        round,
        kind: if signed.vote_type == VoteType::Prevote { Kind::Prevote } else { Kind::Precommit },
        value: match signed.value_id {
            NilOrVal::Nil => None,
            NilOrVal::Val(value) => Some(value),
        },
        signer: signed.address.0,
        signature: signed.signature,
    };
    let skips = certificate.cert_type == RoundCertificateType::Skip;
    EntryProof { round, skips, votes: certificate.round_signatures.iter().map(vote).collect() }
}

fn votes_of(height: u64, kind: Kind, quorum: &Quorum) -> Vec<Vote> {
    let Quorum { round, value, signatures } = quorum;
    let vote = |(signer, signature): &(Index, Signature)| Vote {
        height,
        round: *round,
        kind,
        value: Some(*value),
        signer: *signer,
        signature: *signature,
    };
    signatures.iter().map(vote).collect()
}
