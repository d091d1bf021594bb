//! What a participant sends.

use super::{OuchBody, OuchRule, bodies};
use crate::field::{Field, take};

bodies! {
    /// What a participant sends.
    pub OuchInbound to "to the venue";

    /// A new order.
    Enter(OuchEnter) = b'O', Always {
        /// Its number, above all used on this day.
        user_ref: u32,
        /// `B` buys, `S` sells, `T` sells short, `E` sells short exempt.
        side: u8,
        /// Its size.
        quantity: u32,
        /// The security's symbol.
        symbol: [u8; 8],
        /// Its limit, or [`MARKET`](super::MARKET).
        price: u64,
        /// `0` this day, `3` immediate or cancel, `5` extended hours, `6` until a time, `E` after hours.
        time_in_force: u8,
        /// `Y` visible, `N` hidden, `A` with the participant's name.
        display: u8,
        /// `A` agency, `P` principal, `R` riskless, `O` other.
        capacity: u8,
        /// `Y` if it is an intermarket sweep.
        sweep: u8,
        /// `N` continuous market, `O` opening, `C` closing, `H` halt, and others.
        cross: u8,
        /// The participant's own text.
        client_order: [u8; 14],
    }
    /// An order in the place of another.
    Replace(OuchReplace) = b'U', Always {
        /// The number of the order that it replaces.
        before: u32,
        /// Its own number, above all used on this day.
        user_ref: u32,
        /// Its *total* size: what has traded counts.
        quantity: u32,
        /// Its limit, or [`MARKET`](super::MARKET).
        price: u64,
        /// As of a new order; not `E`.
        time_in_force: u8,
        /// `Y` visible, `N` hidden, `A` with the participant's name.
        display: u8,
        /// `Y` if it is an intermarket sweep.
        sweep: u8,
        /// The participant's own text.
        client_order: [u8; 14],
    }
    /// Cancels an order, or a part of it.
    Cancel(OuchCancel) = b'X', Optionally {
        /// The order.
        user_ref: u32,
        /// The *total* size that is left, what has traded counted; zero cancels all.
        quantity: u32,
    }
    /// Changes an order's side, among the kinds of sales, or lowers its size.
    Modify(OuchModify) = b'M', Optionally {
        /// The order.
        user_ref: u32,
        /// Its side from now on.
        side: u8,
        /// Its *total* size from now on.
        quantity: u32,
    }
    /// Cancels many orders; options narrow them by side, group and index.
    MassCancel(OuchMassCancel) = b'C', Always {
        /// The request's own number, above all used on this day.
        user_ref: u32,
        /// The participant.
        firm: [u8; 4],
        /// The security's symbol; spaces are all.
        symbol: [u8; 8],
    }
    /// Cancels a participant's orders and refuses new ones.
    Disable(OuchDisable) = b'D', Always {
        /// The request's own number, above all used on this day.
        user_ref: u32,
        /// The participant.
        firm: [u8; 4],
    }
    /// Admits a participant's orders again.
    Enable(OuchEnable) = b'E', Always {
        /// The request's own number, above all used on this day.
        user_ref: u32,
        /// The participant.
        firm: [u8; 4],
    }
    /// Asks for the next number.
    AccountQuery(OuchAccountQuery) = b'Q', Optionally {}
}

impl OuchInbound {
    /// The number that this message uses, if it uses one: [`OuchUserRefs`](super::OuchUserRefs) must admit it.
    pub fn new_user_ref(&self) -> Option<u32> {
        match self {
            OuchInbound::Enter(OuchEnter { user_ref, .. })
            | OuchInbound::Replace(OuchReplace { user_ref, .. })
            | OuchInbound::MassCancel(OuchMassCancel { user_ref, .. })
            | OuchInbound::Disable(OuchDisable { user_ref, .. })
            | OuchInbound::Enable(OuchEnable { user_ref, .. }) => Some(*user_ref),
            OuchInbound::Cancel(_) | OuchInbound::Modify(_) | OuchInbound::AccountQuery(_) => None,
        }
    }
}
