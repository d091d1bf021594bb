//! Mistakes that a root could make: a check that never fires proves nothing.
//!
//! A root makes the one that is planted in it ([`kernel::Planted`]), and only tests and simulations plant one
//! (`tests/venue/mistakes.rs`); the product is compiled without.

use strum::VariantArray;

/// A planted mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum VenueMistake {
    /// Effects leave before the journal is synced.
    ReportsBeforeSync,
    /// Units that unsettled fills will bring pay for orders.
    CreditsBuy,
    /// Units that leave pay for orders.
    LeavingBuys,
    /// What a key may lose is compared with open orders alone, not with unsettled fills.
    DrawdownForgetsFills,
    /// A revocation counts when the ledger counts it, not when it is known.
    RevokedTrades,
    /// An order of a frozen account is taken.
    FrozenTrades,
    /// Orders of an account that becomes frozen rest on.
    FrozenRests,
    /// Who was never admitted trades as long as nobody freezes it.
    AdmissionForgotten,
    /// The venue's owner is no party to fills.
    FrozenOwnerEarns,
    /// A raise of a floor counts when the ledger counts it.
    RaisesLater,
    /// The floor that an order states is ignored.
    FloorsIgnored,
    /// Orders are matched after their expiry, as long as the ledger would take their fills.
    ExpiredTrades,
    /// The price band of a key is compared with the limit alone, not with a better price of the book.
    BandAtLimitOnly,
    /// Deposits that shrink end no order.
    UncoveredOrdersStay,
    /// A settle is cut while another one is in flight.
    TwoInFlight,
    /// A settle cuts the fills of a fill-or-kill order in two.
    GroupCut,
    /// Matching goes on although the oldest fill waits too long.
    NeverLate,
    /// The bond may cover less than what is matched.
    BondForgotten,
    /// A retry places its order again.
    RetryIsNew,
    /// A replacement opens all lots that it states, whatever was executed.
    ReplaceForgetsExecuted,
    /// The dead man's timer of a session ends the orders of all sessions.
    DeadManEndsAll,
    /// Orders of lists are taken although the ledger would refuse them.
    ListsBeforeTheirRules,
    /// A settle is cut as if orders of lists took no more bytes than others.
    PathsForgotten,
    /// A settle leaves out signatures of orders that were in an earlier settle, whether or not that one counted.
    SignatureLeftOut,
    /// A root goes on after its incarnation was fenced.
    IgnoresFence,
    /// A root goes on although the ledger has another fill.
    IgnoresContradiction,
    /// More is matched than can be settled in time.
    BacklogUnbounded,
    /// An auction trades while matching pauses.
    AuctionInPause,
    /// After a restart, matching goes on with the blocks of before.
    OpensOnOldBlocks,
    /// Numbers of settles rise beyond the ledger's window.
    NumbersRunAway,
    /// A change of the operator forgets what its account has signed.
    SignerForgotten,
    /// Steps are numbered from the opening of the root, and not by their records.
    StepsBeginAgain,
}

impl VenueMistake {
    /// All mistakes.
    pub const ALL: &[VenueMistake] = VenueMistake::VARIANTS;
}
