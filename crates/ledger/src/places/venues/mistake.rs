//! Mistakes that the ledger could make at venues: a check that never fires proves nothing.

/// A planted mistake; only tests plant one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum VenueMistake {
    /// None.
    #[default]
    None,
    /// An order is dead as soon as its expiry is passed.
    ExpiryAtOnce,
    /// A revocation counts in the next block.
    RevocationAtOnce,
    /// A raise of a floor counts in the next block.
    FloorAtOnce,
    /// A collection is paid with its request.
    PayoutEarly,
    /// An entry is forgotten when its expiry is passed, and not past.
    EntryForgottenEarly,
    /// Entries below a raise are forgotten before it counts.
    FloorPrunesAtOnce,
    /// A freeze counts in the next block.
    FreezeAtOnce,
    /// A freeze never counts.
    FrozenTrade,
    /// Lots are read from the state before the block.
    LotsOfTheStateBefore,
    /// The floors that orders of the settle state do not count in it.
    FloorsOfTheStateBefore,
    /// Fees are read from the state before the block.
    FeesOfTheStateBefore,
    /// A settle that begins below the settled count is applied again.
    CutCountedTwice,
    /// The cap on fees is rounded up for each fill.
    FeesRoundedUp,
    /// What leaves pays for no fill.
    LeavingIgnored,
    /// What leaves pays for fills until it is paid.
    LeavingCountedWhenPast,
    /// The fills of a group apply one by one.
    GroupCutInTwo,
    /// Another order with a used number is filled.
    NumberReused,
    /// A second fence in a block ends the incarnation that the first began.
    TwoFences,
    /// Actions are past by heights alone.
    PastByHeightAlone,
    /// Actions are past by the clock alone.
    PastByClockAlone,
    /// An entry is forgotten when any order of its number would be.
    ForgetsBlindly,
    /// A bust moves money.
    BustMovesMoney,
    /// Both guilty sides are paid.
    BothGuiltyArePaid,
    /// The guilty side is paid.
    GuiltyIsPaid,
    /// What a claim costs is paid to the account of the report.
    ClaimsArePaid,
    /// A claim counts again.
    ClaimsCountTwice,
    /// Claims are accepted for ever.
    ClaimsNeverEnd,
    /// Reports of judged incarnations claim.
    ClaimsOfJudged,
    /// The same evidence convicts a new bond.
    EvidenceConvictsAgain,
    /// Ended incarnations keep only their last report key.
    FinalsForgetKeys,
    /// A new operator's report key replaces those before.
    OperatorsForgetKeys,
    /// Ended incarnations keep no tree.
    FencesForgetTheTree,
    /// What leaves the bond is not forfeited.
    WithdrawalsAreNotLiable,
    /// Penalties take what must stay of the bond.
    PenaltiesTakeTheWholeBond,
    /// A convicted venue settles on.
    SettlesAfterConviction,
    /// Two headers of one step are no contradiction.
    StepsSignedTwice,
    /// An incarnation may have any number of report keys.
    AnyNumberOfKeys,
}
