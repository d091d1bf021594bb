//! The messages of an order book feed: NASDAQ TotalView-ITCH 5.0.
//!
//! A message is a kind, a header and a body of fixed length. Numbers are big endian; prices have four decimals, and
//! those of the market-wide circuit breaker eight; texts are padded with spaces on the right. A feed tells every
//! displayed order ([`Add`], [`AddAttributed`]) and what becomes of it: executions ([`Executed`], [`ExecutedAt`]),
//! partial cancels ([`Cancelled`]), its end ([`Delete`]), and its replacement under a new number ([`Replaced`]).
//!
//! **Property**: `decode` and `encode` are inverse to each other on all messages of known kinds.

use crate::field::{Field, take};

/// Bytes before the body: the kind, and the header.
const HEADER: usize = 11;
/// The largest timestamp, in 48 bits.
pub const NANOSECONDS_MAX: u64 = (1 << 48) - 1;

/// Why bytes are no message, or a message has no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItchError {
    /// There is no byte.
    #[error("an ITCH message is empty")]
    Empty,
    /// The kind is not one of ITCH 5.0.
    #[error("no ITCH 5.0 message is of kind {0:#04x}")]
    Kind(u8),
    /// The message has another length than its kind.
    #[error("an ITCH message of kind {} has {needs} bytes, not {has}", char::from(*kind))]
    Length {
        /// The kind.
        kind: u8,
        /// Its length.
        needs: usize,
        /// The bytes that are there.
        has: usize,
    },
    /// The timestamp has more than 48 bits.
    #[error("an ITCH timestamp is at most 2^48 - 1 ns: {0}")]
    Timestamp(u64),
}

/// What every message begins with, after its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItchHeader {
    /// The number of the security on this day; zero where the message concerns none.
    pub locate: u16,
    /// NASDAQ's own tracking number.
    pub tracking: u16,
    /// Nanoseconds since midnight, at most [`NANOSECONDS_MAX`].
    pub nanoseconds: u64,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItchMessage {
    /// What every message begins with.
    pub header: ItchHeader,
    /// The contents.
    pub body: ItchBody,
}

macro_rules! bodies {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident = $kind:literal { $($(#[doc = $field_doc:literal])* $field:ident: $of:ty,)* }
    )*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name { $($(#[doc = $field_doc])* pub $field: $of,)* }

            impl $name {
                const LENGTH: usize = 0 $(+ <$of as Field>::WIDTH)*;

                fn get(mut bytes: &[u8]) -> $name {
                    $name { $($field: take(&mut bytes),)* }
                }

                fn put(&self, to: &mut Vec<u8>) {
                    $(self.$field.put(to);)*
                }
            }
        )*

        /// What a message says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ItchBody { $($(#[doc = $doc])* $name($name),)* }

        impl ItchBody {
            /// The kind, and the length of the whole message.
            fn shape(kind: u8) -> Option<usize> {
                match kind {
                    $($kind => Some(HEADER + $name::LENGTH),)*
                    _ => None,
                }
            }

            fn get(kind: u8, bytes: &[u8]) -> Option<ItchBody> {
                match kind {
                    $($kind => Some(ItchBody::$name($name::get(bytes))),)*
                    _ => None,
                }
            }

            fn put(&self, to: &mut Vec<u8>) {
                match self { $(ItchBody::$name(body) => body.put(to),)* }
            }

            /// The letter of the kind.
            pub fn kind(&self) -> u8 {
                match self { $(ItchBody::$name(_) => $kind,)* }
            }
        }
    };
}

bodies! {
    /// The day or a session begins or ends.
    SystemEvent = b'S' {
        /// `O` start of messages, `S` of system hours, `Q` of market hours, `M`, `E` and `C` their ends.
        event: u8,
    }
    /// A security, before its first message of the day.
    StockDirectory = b'R' {
        /// Its symbol.
        stock: [u8; 8],
        /// The market that lists it.
        market_category: u8,
        /// The state of its issuer.
        financial_status: u8,
        /// Shares of a round lot.
        round_lot_size: u32,
        /// `Y` if only round lots trade.
        round_lots_only: u8,
        /// Its class.
        issue_classification: u8,
        /// Its class, more finely.
        issue_subtype: [u8; 2],
        /// `P` in production, `T` for tests.
        authenticity: u8,
        /// Whether short sales of it are restricted.
        short_sale_threshold: u8,
        /// Whether it is a new issue.
        ipo: u8,
        /// Its tier of price limits.
        luld_tier: u8,
        /// Whether it is an exchange-traded product.
        etp: u8,
        /// Its leverage.
        etp_leverage: u32,
        /// Whether it is inverse.
        inverse: u8,
    }
    /// Trading of a security halts, pauses or goes on.
    TradingAction = b'H' {
        /// Its symbol.
        stock: [u8; 8],
        /// `H` halted, `P` paused, `Q` quotes only, `T` trading.
        state: u8,
        /// Reserved.
        reserved: u8,
        /// Why.
        reason: [u8; 4],
    }
    /// Short sales of a security are restricted, or free again.
    ShortSaleRestriction = b'Y' {
        /// Its symbol.
        stock: [u8; 8],
        /// `0` free, `1` begins, `2` remains.
        action: u8,
    }
    /// A participant's position in a security.
    ParticipantPosition = b'L' {
        /// The participant.
        participant: [u8; 4],
        /// The security's symbol.
        stock: [u8; 8],
        /// Whether it is a primary market maker.
        primary: u8,
        /// Its mode.
        mode: u8,
        /// Its state.
        state: u8,
    }
    /// The levels of the market-wide circuit breaker, with eight decimals.
    BreakerLevels = b'V' {
        /// The first.
        one: u64,
        /// The second.
        two: u64,
        /// The third.
        three: u64,
    }
    /// A level of the market-wide circuit breaker was crossed.
    BreakerStatus = b'W' {
        /// `1`, `2` or `3`.
        level: u8,
    }
    /// Quotes of a new issue.
    IpoQuotation = b'K' {
        /// Its symbol.
        stock: [u8; 8],
        /// Seconds since midnight.
        release: u32,
        /// `A` expected, `C` cancelled.
        qualifier: u8,
        /// The price of the issue.
        price: u32,
    }
    /// The collar of an auction after a pause.
    AuctionCollar = b'J' {
        /// The security's symbol.
        stock: [u8; 8],
        /// The reference price.
        reference: u32,
        /// The upper end.
        upper: u32,
        /// The lower end.
        lower: u32,
        /// How often it was extended.
        extension: u32,
    }
    /// A market's technical halt.
    OperationalHalt = b'h' {
        /// The security's symbol.
        stock: [u8; 8],
        /// The market.
        market: u8,
        /// `H` halted, `T` trading.
        action: u8,
    }
    /// A displayed order.
    Add = b'A' {
        /// Its number, unique on this day.
        order: u64,
        /// `B` buys, `S` sells.
        side: u8,
        /// Its size.
        shares: u32,
        /// The security's symbol.
        stock: [u8; 8],
        /// Its limit.
        price: u32,
    }
    /// A displayed order whose owner is named.
    AddAttributed = b'F' {
        /// Its number, unique on this day.
        order: u64,
        /// `B` buys, `S` sells.
        side: u8,
        /// Its size.
        shares: u32,
        /// The security's symbol.
        stock: [u8; 8],
        /// Its limit.
        price: u32,
        /// Its owner.
        participant: [u8; 4],
    }
    /// An order traded at its limit.
    Executed = b'E' {
        /// The order.
        order: u64,
        /// The size of the trade.
        shares: u32,
        /// The number of the trade.
        matched: u64,
    }
    /// An order traded at another price.
    ExecutedAt = b'C' {
        /// The order.
        order: u64,
        /// The size of the trade.
        shares: u32,
        /// The number of the trade.
        matched: u64,
        /// `N` if a cross reports the same trade again.
        printable: u8,
        /// The price.
        price: u32,
    }
    /// A part of an order was cancelled.
    Cancelled = b'X' {
        /// The order.
        order: u64,
        /// The size of that part.
        shares: u32,
    }
    /// An order ended.
    Delete = b'D' {
        /// The order.
        order: u64,
    }
    /// An order was replaced; its side and security stay.
    Replaced = b'U' {
        /// Its number before.
        before: u64,
        /// Its number from now on.
        order: u64,
        /// Its size from now on.
        shares: u32,
        /// Its limit from now on.
        price: u32,
    }
    /// A trade with an order that was not displayed.
    HiddenTrade = b'P' {
        /// Zero.
        order: u64,
        /// `B`.
        side: u8,
        /// The size.
        shares: u32,
        /// The security's symbol.
        stock: [u8; 8],
        /// The price.
        price: u32,
        /// The number of the trade.
        matched: u64,
    }
    /// The trades of an auction.
    CrossTrade = b'Q' {
        /// The size.
        shares: u64,
        /// The security's symbol.
        stock: [u8; 8],
        /// The price.
        price: u32,
        /// The number of the trade.
        matched: u64,
        /// `O` opening, `C` closing, `H` after a halt.
        cross: u8,
    }
    /// A trade is void.
    BrokenTrade = b'B' {
        /// The number of the trade.
        matched: u64,
    }
    /// What an auction would do now.
    Imbalance = b'I' {
        /// Shares that would trade.
        paired: u64,
        /// Shares that would not.
        imbalance: u64,
        /// `B`, `S`, `N` none, `O` too few orders.
        direction: u8,
        /// The security's symbol.
        stock: [u8; 8],
        /// The price for orders of the auction alone.
        far: u32,
        /// The price for all orders.
        near: u32,
        /// The price at which `paired` holds.
        reference: u32,
        /// `O` opening, `C` closing, `H` after a halt, `A` extended.
        cross: u8,
        /// How far the near price is from the nearest bid or offer.
        variation: u8,
    }
    /// Interest of retail orders in a security.
    RetailInterest = b'N' {
        /// Its symbol.
        stock: [u8; 8],
        /// `B`, `S`, `A` both, `N` none.
        interest: u8,
    }
    /// A direct listing that raises capital.
    DirectListing = b'O' {
        /// Its symbol.
        stock: [u8; 8],
        /// `Y` if it may open.
        eligible: u8,
        /// The least price permitted.
        least: u32,
        /// The largest price permitted.
        most: u32,
        /// The price at which it would open.
        near: u32,
        /// Nanoseconds since midnight of that price.
        near_time: u64,
        /// The lower end of its collar.
        lower: u32,
        /// The upper end of its collar.
        upper: u32,
    }
}

impl ItchMessage {
    /// The message that `bytes` are.
    ///
    /// # Errors
    /// [`ItchError`] if they are none.
    pub fn decode(bytes: &[u8]) -> Result<ItchMessage, ItchError> {
        let kind = *bytes.first().ok_or(ItchError::Empty)?;
        let (needs, has) = (ItchBody::shape(kind).ok_or(ItchError::Kind(kind))?, bytes.len());
        if has != needs {
            return Err(ItchError::Length { kind, needs, has });
        }
        let mut rest = &bytes[1..];
        let (locate, tracking) = (take(&mut rest), take(&mut rest));
        let (high, low): (u16, u32) = (take(&mut rest), take(&mut rest));
        let header = ItchHeader { locate, tracking, nanoseconds: u64::from(high) << 32 | u64::from(low) };
        Ok(ItchMessage { header, body: ItchBody::get(kind, rest).ok_or(ItchError::Kind(kind))? })
    }

    /// Appends the bytes of the message.
    ///
    /// # Errors
    /// [`ItchError::Timestamp`]; nothing is appended.
    pub fn encode(&self, to: &mut Vec<u8>) -> Result<(), ItchError> {
        let ItchHeader { locate, tracking, nanoseconds } = self.header;
        if nanoseconds > NANOSECONDS_MAX {
            return Err(ItchError::Timestamp(nanoseconds));
        }
        to.push(self.body.kind());
        locate.put(to);
        tracking.put(to);
        to.extend_from_slice(&nanoseconds.to_be_bytes()[2..]);
        self.body.put(to);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lengths of the specification.
    const LENGTHS: [(u8, usize); 23] = [
        (b'S', 12),
        (b'R', 39),
        (b'H', 25),
        (b'Y', 20),
        (b'L', 26),
        (b'V', 35),
        (b'W', 12),
        (b'K', 28),
        (b'J', 35),
        (b'h', 21),
        (b'A', 36),
        (b'F', 40),
        (b'E', 31),
        (b'C', 36),
        (b'X', 23),
        (b'D', 19),
        (b'U', 35),
        (b'P', 44),
        (b'Q', 40),
        (b'B', 19),
        (b'I', 50),
        (b'N', 20),
        (b'O', 48),
    ];

    #[test]
    fn itch_lengths_are_those_of_the_specification() {
        for (kind, length) in LENGTHS {
            assert_eq!(ItchBody::shape(kind), Some(length), "{}", char::from(kind));
        }
        assert_eq!((0..=255).filter(|kind| ItchBody::shape(*kind).is_some()).count(), LENGTHS.len());
    }

    #[test]
    fn an_itch_error_names_the_kind_and_the_lengths() {
        assert_eq!(ItchMessage::decode(&[]), Err(ItchError::Empty));
        assert_eq!(
            ItchMessage::decode(&[b'z'; 40]).expect_err("no kind").to_string(),
            "no ITCH 5.0 message is of kind 0x7a"
        );
        let cut = ItchMessage::decode(&[b'D'; 18]).expect_err("too short");
        assert_eq!(cut.to_string(), "an ITCH message of kind D has 19 bytes, not 18");
        let header = ItchHeader { nanoseconds: NANOSECONDS_MAX + 1, ..ItchHeader::default() };
        let late = ItchMessage { header, body: ItchBody::Delete(Delete { order: 1 }) };
        assert_eq!(late.encode(&mut vec![]), Err(ItchError::Timestamp(NANOSECONDS_MAX + 1)));
    }

    proptest! {
        #[test]
        fn itch_messages_are_encoded_as_they_were(
            kind in 0..LENGTHS.len(),
            bytes in prop::collection::vec(any::<u8>(), 64),
        ) {
            let (kind, length) = LENGTHS[kind];
            let mut bytes = bytes[..length].to_vec();
            bytes[0] = kind;
            let mut again = Vec::new();
            ItchMessage::decode(&bytes).expect("a message").encode(&mut again).expect("encodes");
            prop_assert_eq!(bytes, again);
        }

        #[test]
        fn itch_decodes_any_bytes_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = ItchMessage::decode(&bytes);
        }
    }
}
