//! Messages to the venue: what they say must be what was signed.

use primitives::venue::{ListFault, OrderLife, SettledOrder, SignedOrder, VenueOrder, VenueSide};
use protocols::ouch::{OuchEnter, OuchInbound, OuchMessage, OuchOption, OuchReplace};

use super::{SIGNED_ORDER, market_of, symbol_of};

/// Rests until it is cancelled.
const DAY: u8 = b'0';
/// Trades at once or not at all.
const IMMEDIATE: u8 = b'3';

/// Why a message is not what a signed order says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignedFault {
    /// There is no signed order.
    #[error("the message has no option {SIGNED_ORDER} with a signed order: send it through a bridge")]
    Missing,
    /// The option is no signed order.
    #[error("option {SIGNED_ORDER} is no signed order")]
    Undecodable,
    /// A field says something else.
    #[error("the message and its signed order have different {0}")]
    Differs(&'static str),
    /// An option is not supported.
    #[error("option {0} is not supported")]
    Option(u8),
    /// A letter is not supported.
    #[error("{0} {1:#04x} is not supported")]
    Letter(&'static str, u8),
    /// Nothing trades under the symbol.
    #[error("no market has this symbol: they are M0, M1 and so on, as the venue lists them")]
    Market,
    /// The price is none.
    #[error("the price is no tick: a venue's order has a limit")]
    Price,
    /// A replacement names no order.
    #[error("this session has no order of the number that is to be replaced")]
    Replaced,
    /// Another key signed.
    #[error("the signed order is of another key than the session's")]
    OtherKey,
    /// The signature is not the key's.
    #[error("the signature of the order is false, or a field of it is out of bounds: it has a limit price and lots")]
    False,
    /// A list is none that its key signed.
    #[error("{0}")]
    List(ListFault),
    /// Only some numbers of a list are new.
    #[error("the list has numbers that are used: its new orders are refused, send them again under new numbers")]
    PartlyUsed,
    /// The signed number is not one of this session.
    #[error("the signed order is of another day or incarnation than the session's")]
    OtherSession,
}

/// How an order trades, by time in force and options.
///
/// # Errors
/// [`SignedFault::Letter`] or [`SignedFault::Option`] for what a venue does not have.
pub fn life_of(time_in_force: u8, quantity: u32, options: &[OuchOption]) -> Result<OrderLife, SignedFault> {
    let (mut is_post_only, mut is_whole) = (false, false);
    for option in options {
        match option {
            OuchOption::PostOnly(letter) => is_post_only = *letter == b'P',
            OuchOption::LeastQuantity(least) if *least == quantity => is_whole = true,
            OuchOption::LeastQuantity(0) => {}
            OuchOption::Unknown { tag: SIGNED_ORDER, .. } => {}
            other => return Err(SignedFault::Option(other.tag())),
        }
    }
    match (time_in_force, is_post_only, is_whole) {
        (DAY, false, false) => Ok(OrderLife::Rests),
        (DAY, true, false) => Ok(OrderLife::PostOnly),
        (IMMEDIATE, false, false) => Ok(OrderLife::ImmediateOrCancel),
        (IMMEDIATE, false, true) => Ok(OrderLife::FillOrKill),
        (DAY | IMMEDIATE, ..) => {
            Err(SignedFault::Letter("post-only or a least quantity with time in force", time_in_force))
        }
        _ => Err(SignedFault::Letter("time in force", time_in_force)),
    }
}

/// The side of a letter; short sales are sales, since deposits cover them.
pub(super) fn side_of(letter: u8) -> Result<VenueSide, SignedFault> {
    match letter {
        b'B' => Ok(VenueSide::Buy),
        b'S' | b'T' | b'E' => Ok(VenueSide::Sell),
        _ => Err(SignedFault::Letter("side", letter)),
    }
}

pub(super) fn side_letter(side: VenueSide) -> u8 {
    match side {
        VenueSide::Buy => b'B',
        VenueSide::Sell => b'S',
    }
}

/// The signed order of a message.
fn signed_of(options: &[OuchOption]) -> Result<SignedOrder, SignedFault> {
    let value = options.iter().find_map(|option| match option {
        OuchOption::Unknown { tag: SIGNED_ORDER, value } => Some(value),
        _ => None,
    });
    let signed: Option<SettledOrder> = borsh::from_slice(value.ok_or(SignedFault::Missing)?).ok();
    signed.and_then(|signed| signed.own()).ok_or(SignedFault::Undecodable)
}

/// Compares the fields that new orders and replacements share.
fn compare(order: &VenueOrder, user_ref: u32, quantity: u32, price: u64, life: OrderLife) -> Result<(), SignedFault> {
    for (is_same, field) in [
        (order.number.reference == user_ref, "references"),
        (order.lots == quantity, "quantities"),
        (u64::from(order.tick) == price, "prices"),
        (order.life == life, "times in force"),
    ] {
        if !is_same {
            return Err(SignedFault::Differs(field));
        }
    }
    Ok(())
}

/// The signed order of a new order, which says the same.
pub(super) fn new_order(enter: &OuchEnter, options: &[OuchOption]) -> Result<SignedOrder, SignedFault> {
    let signed = signed_of(options)?;
    let life = life_of(enter.time_in_force, enter.quantity, options)?;
    compare(&signed.order, enter.user_ref, enter.quantity, enter.price, life)?;
    if Some(signed.order.market) != market_of(&enter.symbol) {
        return Err(SignedFault::Differs("symbols"));
    }
    if signed.order.side != side_of(enter.side)? {
        return Err(SignedFault::Differs("sides"));
    }
    Ok(signed)
}

/// The signed order of a replacement, which says the same. Market and side are those of the replaced one, which the
/// root compares.
pub(super) fn replacement(replace: &OuchReplace, options: &[OuchOption]) -> Result<SignedOrder, SignedFault> {
    let signed = signed_of(options)?;
    let life = life_of(replace.time_in_force, replace.quantity, options)?;
    compare(&signed.order, replace.user_ref, replace.quantity, replace.price, life)?;
    Ok(signed)
}

/// A new order as OUCH has it, with its signed order.
pub fn enter_of(signed: &SignedOrder) -> OuchMessage<OuchInbound> {
    let value = borsh::to_vec(&SettledOrder::from(*signed)).expect("writing to memory cannot fail");
    let mut options = vec![OuchOption::Unknown { tag: SIGNED_ORDER, value }];
    match signed.order.life {
        OrderLife::PostOnly => options.push(OuchOption::PostOnly(b'P')),
        OrderLife::FillOrKill => options.push(OuchOption::LeastQuantity(signed.order.lots)),
        OrderLife::Rests | OrderLife::ImmediateOrCancel => {}
    }
    OuchMessage { body: OuchInbound::Enter(entering(&signed.order)), options: Some(options) }
}

/// The fields of a new order.
pub(super) fn entering(order: &VenueOrder) -> OuchEnter {
    let is_immediate = matches!(order.life, OrderLife::ImmediateOrCancel | OrderLife::FillOrKill);
    OuchEnter {
        user_ref: order.number.reference,
        side: side_letter(order.side),
        quantity: order.lots,
        symbol: symbol_of(order.market),
        price: u64::from(order.tick),
        time_in_force: if is_immediate { IMMEDIATE } else { DAY },
        display: b'Y',
        capacity: b'P',
        sweep: b'N',
        cross: b'N',
        client_order: [b' '; 14],
    }
}

#[cfg(test)]
mod tests {
    use primitives::venue::{OrderNumber, SelfTradeRule};
    use primitives::{PublicKey, Signature};

    use super::*;

    fn signed(life: OrderLife) -> SignedOrder {
        let number = OrderNumber { incarnation: 1, day: 2, reference: 3 };
        let order = VenueOrder {
            market: 4,
            number,
            floor: OrderNumber { incarnation: 1, day: 0, reference: 0 },
            side: VenueSide::Sell,
            life,
            self_trade: SelfTradeRule::ExpireTaker,
            tick: 2_000_000_000,
            lots: u32::MAX,
            expiry: u64::MAX,
            until_ms: Some(u64::MAX),
            fee_cap_ppm: 1_000,
        };
        SignedOrder { key: PublicKey([9; 32]), order, signature: Signature([8; 64]) }
    }

    #[test]
    fn a_message_says_what_its_signed_order_says() {
        for life in [OrderLife::Rests, OrderLife::PostOnly, OrderLife::ImmediateOrCancel, OrderLife::FillOrKill] {
            let message = enter_of(&signed(life));
            let mut bytes = Vec::new();
            message.encode(&mut bytes).expect("an order fits into an option");
            let message = OuchMessage::<OuchInbound>::decode(&bytes).expect("just encoded");
            let OuchInbound::Enter(enter) = message.body else { panic!("a new order") };
            let options = message.options.expect("options");
            assert_eq!(new_order(&enter, &options), Ok(signed(life)));
            for (changed, field) in [
                (OuchEnter { user_ref: 4, ..enter }, "references"),
                (OuchEnter { quantity: 1, ..enter }, "quantities"),
                (OuchEnter { price: 1, ..enter }, "prices"),
                (OuchEnter { symbol: symbol_of(5), ..enter }, "symbols"),
                (OuchEnter { side: b'B', ..enter }, "sides"),
            ] {
                let is_whole = life == OrderLife::FillOrKill && field == "quantities";
                match new_order(&changed, &options) {
                    Err(SignedFault::Option(3)) if is_whole => {}
                    other => assert_eq!(other, Err(SignedFault::Differs(field)), "{life:?}"),
                }
            }
            assert_eq!(new_order(&enter, &[]), Err(SignedFault::Missing));
        }
    }

    #[test]
    fn what_a_venue_does_not_have_is_refused_by_name() {
        assert_eq!(life_of(b'5', 1, &[]), Err(SignedFault::Letter("time in force", b'5')));
        assert_eq!(life_of(b'0', 1, &[OuchOption::DisplayedMost(5)]), Err(SignedFault::Option(5)));
        assert!(life_of(b'3', 1, &[OuchOption::PostOnly(b'P')]).is_err());
        assert!(life_of(b'0', 7, &[OuchOption::LeastQuantity(7)]).is_err());
        assert_eq!(life_of(b'0', 7, &[OuchOption::PostOnly(b'N')]), Ok(OrderLife::Rests));
    }
}
