//! Mistakes that a member could make: a check that never fires proves nothing.
//!
//! A member makes one when it is told to, and only a test tells it to. The simulation of the lane finds each with a
//! seed (`walras-lab sim --mistakes` lists them), except
//! [`LateCertificateNotTold`](MemberMistake::LateCertificateNotTold) and
//! [`ShownNotPosted`](MemberMistake::ShownNotPosted), which have tests of their own (`tests/member/cases.rs`).

use strum::VariantArray;

/// A seeded mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
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
    /// A shard that starts does not learn of open cases.
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
    pub const ALL: &[MemberMistake] = MemberMistake::VARIANTS;
}
