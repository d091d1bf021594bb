//! Orders and reports as those of [`ouch`](crate::ouch), so that a venue has one kind of order whatever its way in.
//!
//! | FIX | OUCH |
//! |---|---|
//! | `ClOrdID` (11), a text | `user_ref`, a number of the caller; the text goes along up to 14 bytes |
//! | `Side` (54) 1, 2, 5, 6 | `B`, `S`, `T`, `E` |
//! | `OrderQty` (38), `Price` (44), decimals | whole shares (lots), and prices of four decimals |
//! | `TimeInForce` (59) 0 and 1 | `0`: an order lives to the end of its session |
//! | 3; 4 | `3`; `3` with a least quantity that is all |
//! | `ExecInst` (18) 6 | post-only |

use super::{FixDecimal, FixError, FixNewOrder, FixReplaceRequest, FixText};
use crate::ouch::{
    LIMIT_MAX, MARKET, OuchCancel, OuchEnter, OuchInbound, OuchMessage, OuchOption, OuchReplace, PRICE_DECIMALS,
    SHARES_END,
};

const SIDE: u32 = 54;
const QUANTITY: u32 = 38;
const PRICE: u32 = 44;

impl FixNewOrder {
    /// The order under this number.
    ///
    /// # Errors
    /// [`FixError::Unsupported`], [`FixError::Missing`]: a value is none that an OUCH order has.
    pub fn to_ouch(&self, user_ref: u32) -> Result<OuchMessage<OuchInbound>, FixError> {
        let quantity = shares(self.quantity, QUANTITY)?;
        let (time_in_force, is_whole) = life(self.time_in_force)?;
        let enter = OuchEnter {
            user_ref,
            side: side(self.side)?,
            quantity,
            symbol: padded(&self.symbol).ok_or(FixError::Unsupported { tag: 55, needs: "a symbol of 8 bytes" })?,
            price: limit(self.order_type, self.price, "D")?,
            time_in_force,
            display: b'Y',
            capacity: b'P',
            sweep: b'N',
            cross: b'N',
            client_order: padded(&self.client_order).unwrap_or([b' '; 14]),
        };
        let least = if is_whole { Some(quantity) } else { optional(self.least_quantity, 110)? };
        let displayed = optional(self.displayed_most, 111)?.map(OuchOption::DisplayedMost);
        let options = least.map(OuchOption::LeastQuantity).into_iter().chain(displayed);
        let options = options.chain(post_only(self.instructions.as_ref())?);
        Ok(OuchMessage { body: OuchInbound::Enter(enter), options: Some(options.collect()) })
    }
}

impl FixReplaceRequest {
    /// The replacement of the order `before` by one under this number.
    ///
    /// # Errors
    /// As [`FixNewOrder::to_ouch`].
    pub fn to_ouch(&self, before: u32, user_ref: u32) -> Result<OuchMessage<OuchInbound>, FixError> {
        let quantity = shares(self.quantity, QUANTITY)?;
        let (time_in_force, is_whole) = life(self.time_in_force)?;
        let replace = OuchReplace {
            before,
            user_ref,
            quantity,
            price: limit(self.order_type, self.price, "G")?,
            time_in_force,
            display: b'Y',
            sweep: b'N',
            client_order: padded(&self.client_order).unwrap_or([b' '; 14]),
        };
        let least = is_whole.then_some(OuchOption::LeastQuantity(quantity));
        let options = least.into_iter().chain(post_only(self.instructions.as_ref())?);
        Ok(OuchMessage { body: OuchInbound::Replace(replace), options: Some(options.collect()) })
    }
}

/// The cancellation of all of an order.
pub fn ouch_cancel(user_ref: u32) -> OuchMessage<OuchInbound> {
    OuchMessage::plain(OuchInbound::Cancel(OuchCancel { user_ref, quantity: 0 }))
}

/// A price of OUCH.
pub fn fix_price(price: u64) -> FixDecimal {
    FixDecimal::new(price, PRICE_DECIMALS).unwrap_or(FixDecimal::from(0))
}

/// A side of FIX.
pub fn fix_side(side: u8) -> Option<u8> {
    SIDES.iter().find(|(_, ouch)| *ouch == side).map(|(fix, _)| *fix)
}

const SIDES: [(u8, u8); 4] = [(b'1', b'B'), (b'2', b'S'), (b'5', b'T'), (b'6', b'E')];

pub(super) fn side(side: u8) -> Result<u8, FixError> {
    let of = SIDES.iter().find(|(fix, _)| *fix == side).map(|(_, ouch)| *ouch);
    of.ok_or(FixError::Unsupported { tag: SIDE, needs: "1, 2, 5 or 6" })
}

fn shares(quantity: FixDecimal, tag: u32) -> Result<u32, FixError> {
    let shares = quantity.in_units(0).and_then(|shares| u32::try_from(shares).ok());
    let shares = shares.filter(|shares| (1..SHARES_END).contains(shares));
    shares.ok_or(FixError::Unsupported { tag, needs: "whole lots from 1 to 999999" })
}

fn optional(quantity: Option<FixDecimal>, tag: u32) -> Result<Option<u32>, FixError> {
    quantity.map(|quantity| shares(quantity, tag)).transpose()
}

fn limit(order_type: u8, price: Option<FixDecimal>, kind: &str) -> Result<u64, FixError> {
    match (order_type, price) {
        (b'1', None) => Ok(MARKET),
        (b'2', Some(price)) => {
            let limit = price.in_units(PRICE_DECIMALS).filter(|price| (1..=LIMIT_MAX).contains(price));
            limit.ok_or(FixError::Unsupported { tag: PRICE, needs: "from 0.0001 to 199999.99 in steps of 0.0001" })
        }
        (b'2', None) => Err(FixError::Missing { tag: PRICE, kind: kind.to_string() }),
        (b'1', Some(_)) => Err(FixError::Unsupported { tag: PRICE, needs: "there: a market order has no limit" }),
        _ => Err(FixError::Unsupported { tag: 40, needs: "1 (market) or 2 (limit)" }),
    }
}

/// The time in force, and whether all must trade at once.
fn life(time_in_force: Option<u8>) -> Result<(u8, bool), FixError> {
    match time_in_force {
        None | Some(b'0' | b'1') => Ok((b'0', false)),
        Some(b'3') => Ok((b'3', false)),
        Some(b'4') => Ok((b'3', true)),
        Some(_) => Err(FixError::Unsupported { tag: 59, needs: "0, 1, 3 or 4" }),
    }
}

/// Post-only, if an order never takes. Other instructions are refused: an order that is held otherwise than it asks for
/// is worse than none.
fn post_only(instructions: Option<&FixText>) -> Result<Option<OuchOption>, FixError> {
    match instructions.map(FixText::as_bytes) {
        None => Ok(None),
        Some(b"6") => Ok(Some(OuchOption::PostOnly(b'P'))),
        Some(_) => Err(FixError::Unsupported { tag: 18, needs: "6 (never takes), or absent" }),
    }
}

/// The text, padded with spaces; `None` if it is too long.
pub(super) fn padded<const N: usize>(text: &FixText) -> Option<[u8; N]> {
    let mut padded = [b' '; N];
    padded.get_mut(..text.as_bytes().len())?.copy_from_slice(text.as_bytes());
    Some(padded)
}

/// Why an order, or a part of it, ended; nothing if its owner asked for it.
pub(super) fn end_text(reason: u8) -> Option<&'static str> {
    Some(match reason {
        b'U' => return None,
        b'I' => "the rest of an immediate-or-cancel order does not rest",
        b'T' => "the order's life is over: enter it anew if it is still wanted",
        b'Q' => "it would have traded with an order of the same account",
        b'S' => {
            "the venue ended it: the key, its deposit or its session does not carry it any more; ask for the venue's \
             status before the next order"
        }
        b'D' => "a limit of the market or of the participant",
        _ => "the venue ended it",
    })
}
