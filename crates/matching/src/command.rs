//! What a book is told.

/// The largest tick. ITCH and OUCH state prices up to this.
pub const TICK_MAX: u32 = 2_000_000_000;

/// A side of the market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Buys; the higher limit goes first.
    Buy,
    /// Sells; the lower limit goes first.
    Sell,
}

impl Side {
    /// The other side.
    pub fn other(self) -> Side {
        match self {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        }
    }

    /// Whether an order of this side at `tick` trades with one of the other side at `against`.
    pub fn crosses(self, tick: u32, against: u32) -> bool {
        match self {
            Side::Buy => tick >= against,
            Side::Sell => tick <= against,
        }
    }
}

/// How long an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeInForce {
    /// What does not trade rests.
    GoodTillCancelled,
    /// What does not trade at once ends.
    ImmediateOrCancel,
    /// It trades whole and at once, or is refused.
    FillOrKill,
}

/// What ends where an order meets one of its own owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTrade {
    /// The resting order.
    ExpireMaker,
    /// The rest of the arriving order.
    ExpireTaker,
    /// Both.
    ExpireBoth,
}

/// An order to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// Who places it, below [`crate::BookLimits::owners`].
    pub owner: u32,
    /// The owner's name for it; no other of its open orders has it.
    pub reference: u32,
    /// Its side.
    pub side: Side,
    /// Its limit, 1 to [`TICK_MAX`].
    pub tick: u32,
    /// Its size, at least one.
    pub lots: u32,
    /// How long it stands.
    pub time_in_force: TimeInForce,
    /// Whether it is refused if it would trade.
    pub post_only: bool,
    /// What ends where it meets an order of its owner.
    pub self_trade: SelfTrade,
}

/// A new price and size for an open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Whose order.
    pub owner: u32,
    /// Its reference.
    pub reference: u32,
    /// Its reference from now on; may be the same.
    pub new_reference: u32,
    /// Its limit from now on.
    pub tick: u32,
    /// Its total size from now on, with the lots that were executed.
    pub lots: u32,
}

/// The phase of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Orders trade as they arrive.
    Continuous,
    /// Orders may only be cancelled.
    Halted,
    /// Orders rest without trading until the auction.
    Call,
}

/// An input of [`crate::Book::apply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Places an order.
    New(NewOrder),
    /// Changes an open order.
    Replace(Replacement),
    /// Ends an open order.
    Cancel {
        /// Whose order.
        owner: u32,
        /// Its reference.
        reference: u32,
    },
    /// Ends all open orders of an owner, oldest first; of one side, if given.
    CancelAll {
        /// Whose orders.
        owner: u32,
        /// Of which side.
        side: Option<Side>,
    },
    /// Ends all open orders of an owner and refuses new ones.
    Kill {
        /// Whose orders.
        owner: u32,
    },
    /// Permits an owner to trade again.
    Revive {
        /// Which owner.
        owner: u32,
    },
    /// Stops trading.
    Halt,
    /// Goes on trading after a halt.
    Resume,
    /// Begins a call.
    Call,
    /// Ends a call by an auction.
    Uncross {
        /// The tick that decides between equally good ones, such as the last trade's.
        reference: u32,
        /// The phase afterwards: continuous after an opening, halted after a close.
        then: Phase,
    },
    /// Sets the lowest and the highest tick at which trades may take place.
    SetCollar {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
}
