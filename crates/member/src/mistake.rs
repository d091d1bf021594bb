//! Mistakes that a member could make: a check that never fires proves nothing.
//!
//! A member makes one when it is told to, and only a test tells it to. The simulation of the lane finds each with a
//! seed (`sim/tests/lane_seeds.rs`; blocks are those before the faults stop), except the two that need rare cases.
//!
//! | mistake | seed, blocks | what is found |
//! |---|---|---|
//! | [`ReportNotAskedAgain`](MemberMistake::ReportNotAskedAgain) | 23, 34 | a view is lost |
//! | [`PostNotRepeated`](MemberMistake::PostNotRepeated) | 47, 34 | a member has not registered for the next epoch |
//! | [`PostRepeatedEarly`](MemberMistake::PostRepeatedEarly) | 1, 34 | a post takes effect twice |
//! | [`EpochBegunEarly`](MemberMistake::EpochBegunEarly) | 0, 34 | a shard is told of an epoch that no certified block begins |
//! | [`KeysDestroyedEarly`](MemberMistake::KeysDestroyedEarly) | 0, 34 | a key is gone that an open case needs |
//! | [`KeysKept`](MemberMistake::KeysKept) | 0, 90 | a key is there that nobody needs |
//! | [`FactsDuringStart`](MemberMistake::FactsDuringStart) | 0, 34 | a shard does not know an output |
//! | [`CasesNotTold`](MemberMistake::CasesNotTold) | 0, 34 | a shard does not know a case |
//! | [`VerdictNotTold`](MemberMistake::VerdictNotTold) | 0, 34 | a shard bars a confirmed payment |
//! | [`LateCertificateNotTold`](MemberMistake::LateCertificateNotTold) | a test of its own (`tests/member/cases.rs`) | a shard bars a confirmed payment |
//! | [`ShownNotPosted`](MemberMistake::ShownNotPosted) | a test of its own (`tests/member/cases.rs`) | a certificate is not posted |
//! | [`LogMadeAgain`](MemberMistake::LogMadeAgain) | 1, 34 | an output is certified twice |
//! | [`NeedlessComplaints`](MemberMistake::NeedlessComplaints) | 0, 34 | a correct member is excluded from a key generation |
//! | [`PreparationGivenUp`](MemberMistake::PreparationGivenUp) | 4, 34 | a member has not registered for the next epoch |

/// A seeded mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberMistake {
    /// What a shard reported in vain, because the queue to its host was full, is not asked for again: a vote is lost
    /// until a restart.
    ReportNotAskedAgain,
    /// A post whose transaction has ended is not made again.
    PostNotRepeated,
    /// A post is made again under another number while its last transaction may still be in a block.
    PostRepeatedEarly,
    /// An epoch begins with the block that says so, certified or not.
    EpochBegunEarly,
    /// Keys and logs of a home are destroyed although a case needs them.
    KeysDestroyedEarly,
    /// A removal of keys and logs that failed is not tried again.
    KeysKept,
    /// Blocks do not wait for shards that are being started, which miss what these blocks say.
    FactsDuringStart,
    /// A shard that starts is not told of open cases.
    CasesNotTold,
    /// A shard that starts is not told that the ledger has confirmed a payment that it bars.
    VerdictNotTold,
    /// Shards are not told of a certificate that was shown after the case had expired: they bar its payment until a
    /// restart.
    LateCertificateNotTold,
    /// The certificate of a payment that shards bar is not posted although they were shown it.
    ShownNotPosted,
    /// A log that is missing at the start is made anew, instead of signing nothing without it.
    LogMadeAgain,
    /// A member complains about every dealing, and so reveals its shares.
    NeedlessComplaints,
    /// A preparation for the next epoch that failed is not tried again.
    PreparationGivenUp,
}

impl MemberMistake {
    /// All mistakes.
    pub const ALL: [MemberMistake; 14] = [
        MemberMistake::ReportNotAskedAgain,
        MemberMistake::PostNotRepeated,
        MemberMistake::PostRepeatedEarly,
        MemberMistake::EpochBegunEarly,
        MemberMistake::KeysDestroyedEarly,
        MemberMistake::KeysKept,
        MemberMistake::FactsDuringStart,
        MemberMistake::CasesNotTold,
        MemberMistake::VerdictNotTold,
        MemberMistake::LateCertificateNotTold,
        MemberMistake::ShownNotPosted,
        MemberMistake::LogMadeAgain,
        MemberMistake::NeedlessComplaints,
        MemberMistake::PreparationGivenUp,
    ];
}
