//! The settings of one validator, and the defects that simulations plant in it.

use std::time::Duration;

use kernel::Planted;
use strum::VariantArray;

use crate::UnsealMistake;

/// Time between two ticks of the engine.
const TICK: Duration = Duration::from_millis(200);

/// The settings of one validator.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaSettings {
    /// Maximum number of transactions of a sub-block; it is proposed as soon as so many are pending.
    pub transactions: usize,
    /// Whether signatures in others' sub-blocks are checked during agreement.
    pub check_ahead: bool,
    /// Whether evidence is submitted to the ledger.
    pub accuse: bool,
    /// Time between two ticks of the engine.
    pub tick: Duration,
    /// The size of committee from which votes are gathered.
    pub gather_from: usize,
    /// The defect that a simulation plants.
    pub defect: Planted<Defect>,
    /// The mistake in opening envelopes that a simulation plants.
    pub unsealing: Planted<UnsealMistake>,
}

impl Default for ReplicaSettings {
    fn default() -> ReplicaSettings {
        ReplicaSettings {
            transactions: 100_000,
            check_ahead: true,
            accuse: true,
            tick: TICK,
            gather_from: consensus::gather::GATHERED_FROM,
            defect: Planted::NOTHING,
            unsealing: Planted::NOTHING,
        }
    }
}

/// Defects that simulations plant in a replica: a check that never fails proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Defect {
    /// A turn's frames are sent, and its votes are never logged.
    VotesUnlogged,
    /// Relayed estimates are sent and never logged.
    RelaysUnlogged,
    /// Votes are dropped although their heights are not certified.
    VotesForgottenEarly,
    /// Votes that wait for others to travel with are kept until a step is complete.
    VotesKept,
    /// After a lost log the validator votes at once.
    SilenceBroken,
    /// An idle network never begins a height.
    NeverBeats,
    /// Transactions of a sub-block that was left out are dropped.
    LeftOutLost,
    /// Forwarded transactions are never taken back.
    ForwardedLost,
    /// The next epoch begins with the committee of this one.
    CommitteeKept,
    /// The outcome is signed without the receipts.
    ReceiptsUnsigned,
    /// Certificates are never synced before their votes are dropped.
    CertificatesUnsynced,
    /// Inputs of links of an earlier epoch are accepted.
    GenerationsMixed,
    /// Validators that lag get no answer.
    LaggardsUnanswered,
    /// A height begins as soon as anybody asks for it.
    PaceIgnored,
    /// In the pool: what a quota holds back keeps all waiting that comes after it.
    QuotaHoldsAll,
    /// In the pool: what session keys have reserved keeps their owners out.
    KeysKeepOwnersOut,
    /// No validator posts that it is present.
    NeverPresent,
    /// A validator begins an epoch whose rules its program does not know.
    RulesNotAwaited,
    /// After a restart it does.
    OpensWithoutRules,
    /// It approves rules that its program does not know.
    ApprovesBlindly,
    /// It never says that it can follow the confirmed rules, after it could not.
    NeverReady,
}

impl Defect {
    /// All of them.
    pub const ALL: &[Defect] = Defect::VARIANTS;
}
