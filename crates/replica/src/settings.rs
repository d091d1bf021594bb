//! What one validator sets for itself, and the mistakes that the simulator seeds.

use std::time::Duration;

/// Between two ticks of the engine.
const TICK: Duration = Duration::from_millis(200);

/// What one validator sets for itself.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaSettings {
    /// Transactions of a sub-block at most; it is proposed as soon as so many wait.
    pub transactions: usize,
    /// A sub-block is proposed when a transaction has waited this long.
    pub interval: Duration,
    /// Whether signatures in others' sub-blocks are checked while these are being agreed on.
    pub check_ahead: bool,
    /// Whether evidence is brought before the ledger.
    pub accuse: bool,
    /// Between two ticks of the engine.
    pub tick: Duration,
    /// A mistake that the simulator seeds; none anywhere else.
    pub defect: Option<Defect>,
}

impl Default for ReplicaSettings {
    fn default() -> ReplicaSettings {
        ReplicaSettings {
            transactions: 100_000,
            interval: Duration::from_millis(500),
            check_ahead: true,
            accuse: true,
            tick: TICK,
            defect: None,
        }
    }
}

/// Mistakes that a replica could make, for the simulator to seed: a check that never fires shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// What a turn says is sent, and its votes are never written down.
    VotesUnlogged,
    /// Estimates that are relayed are sent and never written down.
    RelaysUnlogged,
    /// Votes are forgotten although their heights are not certified.
    VotesForgottenEarly,
    /// After a lost log the validator votes at once.
    SilenceBroken,
    /// An idle network never begins a height.
    NeverBeats,
    /// What was assembled for a height and left out is forgotten.
    LeftOutLost,
    /// What was handed over is never taken back.
    HandedOverLost,
    /// The next epoch begins with the committee of this one.
    CommitteeKept,
    /// The outcome is signed without the receipts.
    ReceiptsUnsigned,
    /// Certificates are never synced before their votes are forgotten.
    CertificatesUnsynced,
    /// What is heard by links of an earlier epoch counts.
    GenerationsMixed,
    /// Validators that lag are not answered.
    LaggardsUnanswered,
}

impl Defect {
    /// All of them.
    pub const ALL: [Defect; 12] = [
        Defect::VotesUnlogged,
        Defect::RelaysUnlogged,
        Defect::VotesForgottenEarly,
        Defect::SilenceBroken,
        Defect::NeverBeats,
        Defect::LeftOutLost,
        Defect::HandedOverLost,
        Defect::CommitteeKept,
        Defect::ReceiptsUnsigned,
        Defect::CertificatesUnsynced,
        Defect::GenerationsMixed,
        Defect::LaggardsUnanswered,
    ];
}
