//! Why orders are refused, end, and why a root pauses or stops.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Height;
use primitives::venue::OrderNumber;
use primitives::{Amount, AssetId};

/// Why an order, a replacement or a cancel is refused; where there is a next valid value, it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, thiserror::Error)]
pub enum OrderRefusal {
    /// The session is not attached to the key.
    #[error("the session is not authenticated for this key")]
    NotAttached,
    /// The ledger has no such key at the venue.
    #[error("the venue has no such trading key: authorise it on the ledger")]
    UnknownKey,
    /// The root has stopped.
    #[error("the venue has stopped: {0}")]
    Stopped(VenueStop),
    /// The venue takes no orders for now.
    #[error("matching pauses: {0}")]
    Paused(VenuePause),
    /// The order is for another incarnation.
    #[error("the venue is in incarnation {0}: sign orders for it")]
    Incarnation(u32),
    /// The number may have been used and is forgotten.
    #[error("the number is too old: use one above day {day}, reference {reference}", day = .0.day,
        reference = .0.reference)]
    NumberStale(OrderNumber),
    /// The number names another order.
    #[error("the number names another order: use a new one")]
    NumberTaken,
    /// A cancel of the number came before its order.
    #[error("the order was cancelled before it arrived")]
    Overtaken,
    /// The key is revoked.
    #[error("the key is revoked")]
    KeyRevoked,
    /// The account's kill switch is on.
    #[error("the account's kill switch is on")]
    Killed,
    /// The number is below the floor of its key.
    #[error("the number is below the key's floor: the lowest is day {day}, reference {reference}", day = .0.day,
        reference = .0.reference)]
    BelowFloor(OrderNumber),
    /// The market is not open here.
    #[error("the market is not open")]
    MarketNotOpen,
    /// The key's mandate does not name the market.
    #[error("the key's mandate does not name this market")]
    Mandate,
    /// The order has expired.
    #[error("the order has expired: the present height is {0}")]
    Expired(Height),
    /// The order's time has passed.
    #[error("the order's time has passed: the present block time is {0} ms")]
    UntilPassed(u64),
    /// The order lives too long.
    #[error("the order lives too long: the last height is {0}")]
    ExpiresTooLate(Height),
    /// The price, or one at which it would trade, is outside of the key's price band.
    #[error("outside of the key's price band: the nearest tick is {0}")]
    Band(u32),
    /// The price is beyond the collar.
    #[error("beyond the market's collar: the nearest tick is {0}")]
    Collar(u32),
    /// In a call a key's band must reach to the collar: the auction's price may be better than the order's.
    #[error("in a call the key's price band must reach to tick {0}")]
    BandInCall(u32),
    /// The order is too large.
    #[error("too many lots: the most is {0}")]
    Lots(u32),
    /// The order is too small.
    #[error("too few lots: the least is {0}")]
    TooFewLots(u32),
    /// The order is worth more than can exist.
    #[error("the order is worth more than can exist")]
    Size,
    /// The order permits less than the venue's fee.
    #[error("the order's fee cap is below the venue's fee of {0} ppm")]
    FeeCap(u32),
    /// The market's or the venue's fee cap is below the fee.
    #[error("the market's fee cap on the ledger is below its fee")]
    MarketFeeCap,
    /// The deposit does not cover the order.
    #[error("the deposit of asset {asset} covers {available} units, the order needs {needed}", asset = .asset.0)]
    Funds {
        /// The asset.
        asset: AssetId,
        /// What is neither reserved nor owed.
        available: u64,
        /// What the order reserves.
        needed: u64,
    },
    /// The key could lose more than it may.
    #[error("the key may lose {available} more units of asset {asset}, the order needs {needed}", asset = .asset.0)]
    Drawdown {
        /// The asset.
        asset: AssetId,
        /// The units that the key may still lose.
        available: u64,
        /// What the order could cost.
        needed: u64,
    },
    /// The key has too many orders that are open, or filled and not past.
    #[error("the key has {0} orders that are open, or filled and not past: cancel some, or raise a floor")]
    TooManyEntries(u32),
    /// The venue has as many entries on the ledger as it may have.
    #[error("the venue is full")]
    VenueFull,
    /// The book has no room.
    #[error("the book is full, or the account has too many open orders in it")]
    BookFull,
    /// The market is halted.
    #[error("the market is halted: only cancels are taken")]
    Halted,
    /// The order does not fit a call.
    #[error("a call takes orders that rest and are not post-only")]
    NotInCall,
    /// A post-only order would trade.
    #[error("a post-only order would trade: the nearest tick is {0}")]
    WouldTake(u32),
    /// A fill-or-kill order cannot trade whole.
    #[error("the order cannot be filled whole")]
    NotFillable,
    /// The order to be ended or replaced is not open.
    #[error("no open order has this number")]
    NotOpen,
    /// A replacement changes what must stay.
    #[error("a replacement keeps market, side, life and self-trade rule, and rests")]
    Differs,
    /// The replaced order has executed as many lots as the replacement states.
    #[error("{0} lots are executed already: the order is ended")]
    NothingLeft(u32),
    /// As many accounts trade as the operator permits.
    #[error("the venue has no room for another account")]
    TooManyAccounts,
    /// As many keys of the account trade as the operator permits.
    #[error("{0} other keys of the account have orders that are open, or filled and not past: use one of them")]
    TooManyKeys(u32),
    /// The command does not fit the phase of the market, or the collar is no range.
    #[error("the market's phase does not permit this")]
    Phase,
    /// The settings of a market are impossible.
    #[error("the market's settings are impossible, or it is open already")]
    MarketSettings,
    /// Fees of the order would not pay for its entry on the ledger.
    #[error(
        "too small for its fees to pay for its entry on the ledger: at the worst price that it may get for them, it \
         must be worth {0} units of the quote asset"
    )]
    TooSmall(Amount),
    /// A fill-or-kill order would meet more orders than one settle of the ledger holds fills of.
    #[error(
        "the order would meet more than {0} resting orders, the most that a fill-or-kill order may: send it in parts, \
         or as immediate-or-cancel"
    )]
    TooManyMakers(u32),
    /// An issuer has frozen the account.
    #[error("the issuer has frozen the account's asset {}: collect what the account has here, or ask the issuer", .0.0)]
    HolderFrozen(AssetId),
    /// An issuer has never admitted the account.
    #[error("the issuer has not admitted the account to asset {}: ask the issuer", .0.0)]
    HolderNotAdmitted(AssetId),
    /// An issuer has frozen the venue's owner, who is paid fees of each fill.
    #[error("the issuer has frozen asset {} of the venue's owner: the market trades when the owner may again", .0.0)]
    OwnerFrozen(AssetId),
    /// The ledger counts no orders of lists yet, or its settles have no room for them.
    #[error("the venue takes no lists: sign each order by itself")]
    ListsToCome,
}

/// Why an open order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum OrderEnd {
    /// All of its lots traded.
    Filled,
    /// Its trader asked for it.
    Asked,
    /// Another one took its place.
    Replaced(OrderNumber),
    /// It trades at once or not at all.
    Immediate,
    /// It met an order of its account.
    SelfTrade,
    /// The kill switch.
    Killed,
    /// Its expiry or time.
    Expired,
    /// Its key was revoked.
    Revoked,
    /// A floor was raised above it.
    BelowFloor,
    /// The deposit does not cover it any more.
    Uncovered,
    /// Its session detached.
    Disconnected,
    /// Its session said nothing for too long.
    DeadMan,
    /// A call began, and its key's price band does not reach to the collar.
    BandInCall,
    /// The root stopped.
    Stopped,
    /// An issuer has frozen its account or the venue's owner in an asset of the market.
    Frozen,
}

/// Why no order is taken for now. It ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, thiserror::Error)]
pub enum VenuePause {
    /// No certified block came yet, or for too long.
    #[error("no certified block came for too long")]
    NoBlocks,
    /// Certified blocks are missing: the newest decided one is more than a quarter of D ahead.
    #[error("the venue is behind the chain")]
    Behind,
    /// The ledger has another operator or report key than the root: nothing is settled, either.
    #[error("the ledger has another operator or report key: open the root with its keys")]
    Operator,
    /// The oldest fill is unsettled for half of D.
    #[error("the oldest fill waits too long for its settle")]
    Late,
    /// The bond does not cover two backlogs.
    #[error("the bond does not cover two backlogs of unsettled fills")]
    Bond,
    /// The operator's balance does not cover the fees of two backlogs.
    #[error("the operator's balance does not cover the fees of two backlogs")]
    Fees,
    /// What is unsettled, with what the order would trade at once, does not settle in time.
    #[error("too many fills are unsettled: send less, or wait for the next settle")]
    Backlog,
}

/// Why a root has stopped for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, thiserror::Error)]
pub enum VenueStop {
    /// The owner has fenced the incarnation.
    #[error("its incarnation ended: begin the next one with an empty journal")]
    Fenced,
    /// The venue was convicted.
    #[error("it was convicted: bond, and fence")]
    Convicted,
    /// The ledger has another fill at an index: another root runs with the same operator.
    #[error("the ledger has another fill at index {0}: a second root runs; fence")]
    Contradicted(u64),
    /// The ledger has more fills than the journal.
    #[error("the ledger has {0} fills, more than the journal: it is not the newest one; fence")]
    JournalShort(u64),
}
