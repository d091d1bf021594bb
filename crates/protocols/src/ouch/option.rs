//! Options: the elements of an appendage.

use super::OuchError;
use crate::field::Field;

macro_rules! options {
    ($($(#[doc = $doc:literal])* $name:ident = $tag:literal: $of:ty,)*) => {
        /// What a message may say beside its fields. Absent is the default of the port.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum OuchOption {
            $($(#[doc = $doc])* $name($of),)*
            /// One whose tag OUCH 5.0 does not have: a participant skips it.
            Unknown {
                /// The tag.
                tag: u8,
                /// The value, at most 254 bytes.
                value: Vec<u8>,
            },
        }

        impl OuchOption {
            /// The bytes of a value of a known tag.
            pub fn width(tag: u8) -> Option<usize> {
                match tag {
                    $($tag => Some(<$of as Field>::WIDTH),)*
                    _ => None,
                }
            }

            /// The tag.
            pub fn tag(&self) -> u8 {
                match self {
                    $(OuchOption::$name(_) => $tag,)*
                    OuchOption::Unknown { tag, .. } => *tag,
                }
            }

            /// The option of this tag; `value` is as long as a known tag's.
            fn get(tag: u8, value: &[u8]) -> OuchOption {
                match tag {
                    $($tag => OuchOption::$name(Field::get(value)),)*
                    _ => OuchOption::Unknown { tag, value: value.to_vec() },
                }
            }

            fn put(&self, to: &mut Vec<u8>) {
                match self {
                    $(OuchOption::$name(value) => value.put(to),)*
                    OuchOption::Unknown { value, .. } => to.extend_from_slice(value),
                }
            }
        }
    };
}

options! {
    /// The venue's number of an order's displayed part.
    SecondaryOrder = 1: u64,
    /// The participant.
    Firm = 2: [u8; 4],
    /// The least size of a trade.
    LeastQuantity = 3: u32,
    /// `R` a retail order, `N` none, space the port's default.
    CustomerType = 4: u8,
    /// The most that is displayed of an order with a reserve.
    DisplayedMost = 5: u32,
    /// `L` a limit; `P`, `R`, `M` and others pegs.
    PriceType = 6: u8,
    /// Added to the price of a peg, with four decimals.
    PegOffset = 7: i32,
    /// The discretionary price; zero if there is none.
    DiscretionPrice = 9: u64,
    /// As [`OuchOption::PriceType`], of the discretionary price.
    DiscretionPriceType = 10: u8,
    /// Added to the price of a discretionary peg, with four decimals.
    DiscretionPegOffset = 11: i32,
    /// `P` an order that only rests, `N` any.
    PostOnly = 12: u8,
    /// How far the displayed size of an order with a reserve varies.
    RandomReserves = 13: u32,
    /// Where an order is routed.
    Route = 14: [u8; 4],
    /// Seconds until an order with a time expires, below 86,400.
    ExpireTime = 15: u32,
    /// `Y` if a resting order may take what a midpoint order makes, `N` if not, space the port's default.
    TradeNow = 16: u8,
    /// `I` an order for the imbalance of an auction alone, and others.
    HandleInstruction = 17: u8,
    /// How an order stands to the best bid and offer.
    BestWeight = 18: u8,
    /// The displayed size, where it changed.
    DisplayQuantity = 22: u32,
    /// The displayed price, where it changed.
    DisplayPrice = 23: u64,
    /// A group of orders, for a mass cancel.
    GroupId = 24: u16,
    /// `Y` if the shares of a short sale are located.
    SharesLocated = 25: u8,
    /// Who located them.
    LocateBroker = 26: [u8; 4],
    /// A side, as in the bodies.
    Side = 27: u8,
    /// A channel of its own numbers; zero is none.
    UserRefIndex = 28: u8,
    /// What prevents a participant's orders from trading with each other.
    SelfTradeStrategy = 29: u8,
    /// The orders that [`OuchOption::SelfTradeStrategy`] concerns.
    SelfTradeGroup = 30: [u8; 2],
}

impl OuchOption {
    /// The options that `bytes` are.
    pub(super) fn list(bytes: &[u8]) -> Result<Vec<OuchOption>, OuchError> {
        let (mut options, mut at) = (Vec::new(), 0);
        while let Some((&says, rest)) = bytes[at..].split_first() {
            let says = usize::from(says);
            let cut = OuchError::Element { at, says, has: rest.len() };
            let (&tag, value) = rest.get(..says).and_then(<[u8]>::split_first).ok_or(cut)?;
            options.push(OuchOption::decode(tag, value)?);
            at += 1 + says;
        }
        Ok(options)
    }

    /// The option of this tag that has this value.
    ///
    /// # Errors
    /// [`OuchError::Width`] if the tag is known and its value has another length.
    fn decode(tag: u8, value: &[u8]) -> Result<OuchOption, OuchError> {
        match OuchOption::width(tag).filter(|width| *width != value.len()) {
            Some(needs) => Err(OuchError::Width { tag, needs, has: value.len() }),
            None => Ok(OuchOption::get(tag, value)),
        }
    }

    /// Appends the element.
    ///
    /// # Errors
    /// [`OuchError::Unknown`]; nothing is appended.
    pub(super) fn encode(&self, to: &mut Vec<u8>) -> Result<(), OuchError> {
        let mut value = vec![self.tag()];
        self.put(&mut value);
        let refused = OuchError::Unknown { tag: self.tag(), has: value.len() - 1 };
        let is_hidden = matches!(self, OuchOption::Unknown { tag, .. } if OuchOption::width(*tag).is_some());
        let length = u8::try_from(value.len()).ok().filter(|_| !is_hidden).ok_or(refused)?;
        to.push(length);
        to.extend(value);
        Ok(())
    }
}
