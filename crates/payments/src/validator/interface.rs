//! The settings, inputs and effects of a shard.

use super::*;

/// The sender of a request, as the shell numbers connections or addresses.
pub type LanePeer = u64;

/// The settings of a shard.
#[derive(Clone, Debug)]
pub struct LaneSettings {
    /// The rules of the network.
    pub rules: LaneRules,
    /// The committee of the shard's home epoch.
    pub committee: LaneCommittee,
    /// The committee of the previous epoch, whose payments may have created inputs.
    pub previous: Option<LaneCommittee>,
    /// The validator's index in `committee`.
    pub validator: u8,
    /// Its shard.
    pub shard: u16,
    /// The lane epoch by certified height when the shard starts.
    pub now: HomeEpoch,
    /// A tree is closed at this many leaves: 1 is the naive scheme.
    pub leaves: usize,
    /// The most entries of the spent set, and the most acknowledgements.
    pub entries_max: usize,
    /// The most trees that wait for the disk.
    pub trees_waiting_max: usize,
    /// Costly checks that one address, or one proved pair of address and key, may cause between two ticks.
    pub checks_per_peer: u32,
    /// Costly checks that all addresses together, and all proved pairs together, may cause between two ticks.
    pub checks_per_tick: u32,
    /// Verified roots kept of each validator.
    pub roots_per_validator: usize,
}

impl LaneSettings {
    pub(super) fn owner(&self) -> LogOwner {
        LogOwner {
            network: self.rules.network,
            home: self.committee.epoch(),
            validator: self.validator,
            shard: self.shard,
        }
    }

    fn committees(&self) -> impl Iterator<Item = &LaneCommittee> {
        [Some(&self.committee), self.previous.as_ref()].into_iter().flatten()
    }

    /// The committee of this home epoch, if payments of it may have created inputs.
    pub(super) fn committee_of(&self, home: HomeEpoch) -> Option<&LaneCommittee> {
        self.committees().find(|committee| committee.epoch() == home)
    }

    /// The larger quorum of the committees whose certificates it verifies.
    pub fn largest_quorum(&self) -> usize {
        self.committees().map(|committee| committee.quorums().certificate).max().expect("there is a committee")
    }

    pub(super) fn assert_consistent(&self, key: &SecretKey) {
        let (home, network) = (self.committee.epoch(), self.rules.network);
        let registered = self.committee.key(self.validator, self.shard).expect("the committee has the shard");
        assert_eq!(registered, key.public(), "the key of the shard is registered");
        assert_eq!(self.committee.network(), network, "the committee is of the network of the rules");
        let is_previous =
            |previous: &LaneCommittee| previous.epoch().checked_add(1) == Some(home) && previous.network() == network;
        assert!(self.previous.as_ref().is_none_or(is_previous), "`previous` is the committee of the epoch before");
        assert!((1..=LEAVES_MAX).contains(&self.leaves), "a tree has 1 to {LEAVES_MAX} leaves");
        assert!(self.trees_waiting_max > 0, "a tree may wait for the disk");
        // A correct payment with the most inputs, each with uncached roots and a record to read, fits into a fresh
        // budget.
        let aggregates = self.committees().any(LaneCommittee::has_bls);
        let certificate = self.largest_quorum().max(if aggregates { AGGREGATE_COST as usize } else { 0 });
        let answer = if aggregates { BLS_ANSWER_COST as usize } else { 0 };
        let largest = INPUTS_MAX * (certificate + 1) + answer;
        assert!(self.checks_per_peer as usize >= largest, "checks_per_peer must be at least {largest}");
        assert!(self.checks_per_tick >= self.checks_per_peer, "checks_per_tick must be at least checks_per_peer");
    }
}

/// An input of a shard that borrows nothing: what a certified block says, or what the other shards have done. The host
/// of the shards keeps it and passes it on.
pub type LaneFact = LaneInput<'static>;

/// The inputs of a shard.
#[derive(Clone, Debug)]
pub enum LaneInput<'a> {
    /// A client sent a request.
    Request {
        /// The sender.
        peer: LanePeer,
        /// [`crate::spend_request`] or [`crate::settle_request`].
        bytes: &'a [u8],
    },
    /// A peer is connected, from this address: costly checks are counted by address.
    Connected(LanePeer, LaneAddress),
    /// A peer has left.
    Disconnected(LanePeer),
    /// Time to close open trees; every millisecond or two. Budgets are refilled.
    Tick,
    /// The log is durable up to this position.
    Synced(u64),
    /// A write or a sync of the log failed.
    SyncFailed,
    /// The lane epoch by certified height.
    Epoch(HomeEpoch),
    /// A certified block or the genesis created an output with this shard's home.
    Backed(OutputId, Output),
    /// A certified block has confirmed, in a case, the payment that created this output of this home.
    Proven(OutputId, Output),
    /// Whether the lane is halted, by certified height.
    Halted(bool),
    /// A case about an output of this home, or of the previous one, is open.
    CaseOpened(ContestedOutput),
    /// The candidates of an open case are fixed.
    CandidatesFixed(OutputId, Vec<Arc<PaymentBody>>),
    /// All shards of this validator have barred the candidates; the payment is the one that any of them had accepted
    /// ([`ViewParts`]). The shard that signs for the owner of the output gets this input.
    AllBarred(OutputId, Option<Box<CertifiedPayment>>),
    /// A case is closed.
    CaseRuled(OutputId, Verdict),
    /// The committee signs exits through this epoch ([`crate::Resolver::signs_through`]): for a shard that starts after
    /// the verdict.
    SignsThrough(HomeEpoch),
    /// A certified block has confirmed this payment, perhaps while the shard did not run: see
    /// [`super::LaneValidator::barred`].
    Confirmed(Digest),
}

/// The reports of the shards of one validator on the candidates of one case.
#[derive(Clone, Debug)]
pub struct ViewParts {
    missing: BTreeSet<u16>,
    paid: Option<Box<CertifiedPayment>>,
}

impl ViewParts {
    /// The parts of a validator with this many shards.
    pub fn new(shards: u16) -> ViewParts {
        ViewParts { missing: (0..shards).collect(), paid: None }
    }

    /// Adds a shard's [`LaneEffect::Barred`]; returns what the validator's view names once no shard is missing. Two
    /// shards never name two payments: one payment of an output is certified at most.
    pub fn add(&mut self, shard: u16, paid: Option<Box<CertifiedPayment>>) -> Option<Option<&CertifiedPayment>> {
        self.missing.remove(&shard);
        self.paid = self.paid.take().or(paid);
        self.missing.is_empty().then_some(self.paid.as_deref())
    }
}

/// What a shard asks its shell to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneEffect {
    /// Append to the log. The bytes must be readable before the next step; they need not be durable.
    Append(Vec<u8>),
    /// Make the log durable up to this position, then send [`LaneInput::Synced`].
    Sync(u64),
    /// Send an answer.
    Answer {
        /// The receiver.
        peer: LanePeer,
        /// Confirmation or acknowledgement.
        kind: StatementKind,
        /// The digest of the payment.
        digest: Digest,
        /// The signature.
        answer: LaneAnswer,
    },
    /// Send an answer to a peer that asked for a BLS signature.
    BlsAnswer {
        /// The receiver.
        peer: LanePeer,
        /// Confirmation or acknowledgement.
        kind: StatementKind,
        /// The digest of the payment.
        digest: Digest,
        /// The signature.
        signature: BlsSignature,
    },
    /// Send a broker the answer to a batch.
    BatchAnswer(LanePeer, BatchAnswer),
    /// Send the owner of an output the payment that it is reserved for.
    Spender {
        /// The receiver.
        peer: LanePeer,
        /// The output.
        output: OutputId,
        /// The payment that spends it, as far as this validator knows.
        spender: Option<KnownSpender>,
    },
    /// Send a refusal.
    Refuse {
        /// The receiver.
        peer: LanePeer,
        /// The reason.
        refusal: LaneRefusal,
    },
    /// Post a vote to the ledger: the payment of the contested output that this validator is bound to, and its
    /// signature.
    Vote {
        /// The contested output.
        case: OutputId,
        /// The payment.
        payment: Vec<u8>,
        /// Its owner's signature, unless it is the exit.
        signature: Option<Signature>,
        /// The validator's signature.
        answer: LaneAnswer,
    },
    /// Somebody has shown a valid certificate of a payment that this shard bars: post it to the ledger.
    Shown(Box<CertifiedPayment>),
    /// This shard bars the candidates of a case, durably. Tell the shard that posts the view.
    Barred {
        /// The contested output.
        case: OutputId,
        /// The candidate that it had acknowledged, or accepted an output of, before.
        paid: Option<Box<CertifiedPayment>>,
    },
    /// Post a view to the ledger.
    View {
        /// The contested output.
        case: OutputId,
        /// The candidate that the shards of this validator had accepted.
        paid: Option<Box<CertifiedPayment>>,
        /// The signature on [`view_digest`].
        answer: LaneAnswer,
    },
    /// The shard signs nothing more in this home epoch. Tell the operator.
    Mute(MuteReason),
    /// The home epoch has ended: destroy the key, remove the log, drop the shard.
    Destroy,
}
