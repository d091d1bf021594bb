//! What a venue sends. Every message begins with its time, in nanoseconds since midnight.

use super::{OuchBody, OuchRule, bodies};
use crate::field::{Field, take};

bodies! {
    /// What a venue sends.
    pub OuchOutbound to "from the venue";

    /// The day begins or ends.
    SystemEvent(OuchSystemEvent) = b'S', Never {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// `S` begins, `E` ends.
        event: u8,
    }
    /// A new order is accepted, perhaps with other values than it had.
    Accepted(OuchAccepted) = b'A', Always {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// Its number.
        user_ref: u32,
        /// Its side.
        side: u8,
        /// Its size.
        quantity: u32,
        /// The security's symbol.
        symbol: [u8; 8],
        /// Its limit.
        price: u64,
        /// Its time in force.
        time_in_force: u8,
        /// As it was sent; `Z` if it was changed to conform.
        display: u8,
        /// The venue's number of the order.
        order: u64,
        /// Its capacity.
        capacity: u8,
        /// Whether it is an intermarket sweep.
        sweep: u8,
        /// Its auction.
        cross: u8,
        /// `L` it lives, `D` it is dead: nothing else follows about it.
        state: u8,
        /// The participant's own text.
        client_order: [u8; 14],
    }
    /// An order is replaced.
    Replaced(OuchReplaced) = b'U', Always {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The number of the order before.
        before: u32,
        /// Its number from now on.
        user_ref: u32,
        /// Its side.
        side: u8,
        /// What of it is left.
        quantity: u32,
        /// The security's symbol.
        symbol: [u8; 8],
        /// Its limit.
        price: u64,
        /// Its time in force.
        time_in_force: u8,
        /// As it was sent; `Z` if it was changed to conform.
        display: u8,
        /// The venue's number of the order.
        order: u64,
        /// Its capacity.
        capacity: u8,
        /// Whether it is an intermarket sweep.
        sweep: u8,
        /// Its auction.
        cross: u8,
        /// `L` it lives, `D` it is dead: nothing else follows about it.
        state: u8,
        /// The participant's own text.
        client_order: [u8; 14],
    }
    /// An order, or a part of it, is cancelled.
    Canceled(OuchCanceled) = b'C', Optionally {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The order.
        user_ref: u32,
        /// The size of that part.
        quantity: u32,
        /// `U` its owner, `I` immediate or cancel, `T` timeout, `S` supervision, and others.
        reason: u8,
    }
    /// An order is cancelled because it would trade with one of the same owner.
    AiqCanceled(OuchAiqCanceled) = b'D', Optionally {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The order.
        user_ref: u32,
        /// By how much its size falls.
        decrement: u32,
        /// `Q`.
        reason: u8,
        /// What would have traded.
        prevented: u32,
        /// The price at which it would have.
        price: u64,
        /// Whether it would have added liquidity.
        liquidity: u8,
        /// What prevented it.
        strategy: u8,
    }
    /// An order traded.
    Executed(OuchExecuted) = b'E', Always {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The order.
        user_ref: u32,
        /// The size of the trade.
        quantity: u32,
        /// Its price.
        price: u64,
        /// `A` added, `R` removed, and others.
        liquidity: u8,
        /// The number of the trade.
        matched: u64,
    }
    /// A trade is void.
    BrokenTrade(OuchBrokenTrade) = b'B', Optionally {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The order.
        user_ref: u32,
        /// The number of the trade.
        matched: u64,
        /// `E` erroneous, `C` by consent, `S` supervision, `X` external.
        reason: u8,
        /// The participant's own text.
        client_order: [u8; 14],
    }
    /// A message is rejected; its number stays used.
    Rejected(OuchRejected) = b'J', Optionally {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The number of the message.
        user_ref: u32,
        /// Why.
        reason: u16,
        /// The participant's own text.
        client_order: [u8; 14],
    }
    /// An order of an auction cannot be cancelled now: what is left of it is, after the auction.
    CancelPending(OuchCancelPending) = b'P', Optionally {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The order.
        user_ref: u32,
    }
    /// A part of an order of an auction cannot be cancelled now.
    CancelReject(OuchCancelReject) = b'I', Optionally {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The order.
        user_ref: u32,
    }
    /// An order has another priority.
    PriorityUpdate(OuchPriorityUpdate) = b'T', Optionally {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The order.
        user_ref: u32,
        /// Its price from now on.
        price: u64,
        /// How it is displayed from now on.
        display: u8,
        /// The venue's number of the order from now on.
        order: u64,
    }
    /// An order is modified.
    Modified(OuchModified) = b'M', Optionally {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The order.
        user_ref: u32,
        /// Its side from now on.
        side: u8,
        /// What of it is left.
        quantity: u32,
    }
    /// The venue changed an order; options say how.
    Restated(OuchRestated) = b'R', Always {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The order.
        user_ref: u32,
        /// `R` more of a reserve is displayed, `P` the displayed price changed.
        reason: u8,
    }
    /// A mass cancel is accepted; cancels follow.
    MassCancelResponse(OuchMassCancelResponse) = b'X', Always {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The number of the request.
        user_ref: u32,
        /// The participant.
        firm: [u8; 4],
        /// The security's symbol; spaces are all.
        symbol: [u8; 8],
    }
    /// A participant's orders are refused from now on.
    DisableResponse(OuchDisableResponse) = b'G', Always {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The number of the request.
        user_ref: u32,
        /// The participant.
        firm: [u8; 4],
    }
    /// A participant's orders are admitted again.
    EnableResponse(OuchEnableResponse) = b'K', Always {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The number of the request.
        user_ref: u32,
        /// The participant.
        firm: [u8; 4],
    }
    /// The next number.
    AccountQueryResponse(OuchAccountQueryResponse) = b'Q', Optionally {
        /// Nanoseconds since midnight.
        nanoseconds: u64,
        /// The least number that is not used.
        next: u32,
    }
}
