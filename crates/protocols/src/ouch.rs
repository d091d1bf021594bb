//! Order entry: NASDAQ OUCH 5.0.
//!
//! A participant's messages ([`OuchInbound`]) enter, replace, cancel and modify orders; the venue's
//! ([`OuchOutbound`]) tell what became of them. A message is a kind, a body of fixed length and *options*: the
//! appendage, two bytes of length and then elements, each of which is a length (its tag counted), a tag and a value
//! ([`OuchOption`]). Numbers are big endian; prices have eight bytes and four decimals; texts are padded with spaces
//! on the right. SoupBinTCP ([`soup`](crate::soup)) carries them, in unsequenced packets to the venue and in
//! sequenced ones from it.
//!
//! Messages to the venue can be lost with a connection, so a participant sends them again after it. That is safe,
//! because each new order has a number that exceeds all numbers of the day before it ([`OuchUserRefs`]): what the
//! venue has seen it ignores.
//!
//! # Properties
//!
//! - `decode` and `encode` are inverse to each other on all messages.
//! - No bytes make a decoder panic, and it allocates at most what the message has bytes for.
//!
//! # Deviations from the specification
//!
//! - Letters are not checked: a venue knows which sides, times in force and capacities it supports.
//! - Unknown options are kept ([`OuchOption::Unknown`]), because a participant skips them; a venue refuses them.
//! - Where the appendage is optional, one of no options is read as well as none, and stays what it was.

mod inbound;
mod option;
mod outbound;

pub use inbound::*;
pub use option::OuchOption;
pub use outbound::*;

use crate::field::{Field, take};

/// Decimals of a price.
pub const PRICE_DECIMALS: u32 = 4;
/// The largest limit price, 199,999.9900.
pub const LIMIT_MAX: u64 = 1_999_999_900;
/// The price of a market order.
pub const MARKET: u64 = 0x7fff_ffff;
/// An order has fewer shares than this.
pub const SHARES_END: u32 = 1_000_000;

/// Why bytes are no message, or a message has no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OuchError {
    /// There is no byte.
    #[error("an OUCH message is empty")]
    Empty,
    /// The kind is not one of this direction.
    #[error("no OUCH 5.0 message {to} is of kind {kind:#04x}")]
    Kind {
        /// Whom it is for.
        to: &'static str,
        /// The kind.
        kind: u8,
    },
    /// The body is cut, or the length of options that must follow it.
    #[error("an OUCH message of kind {} has at least {needs} bytes, not {has}", char::from(*kind))]
    Cut {
        /// The kind.
        kind: u8,
        /// The bytes that it needs.
        needs: usize,
        /// The bytes that are there.
        has: usize,
    },
    /// Bytes follow a message that has no options, or the options have another length than they say.
    #[error("{has} bytes follow the fields of an OUCH message of kind {}, which says {says}", char::from(*kind))]
    Options {
        /// The kind.
        kind: u8,
        /// The bytes that it says.
        says: usize,
        /// The bytes that are there.
        has: usize,
    },
    /// An option exceeds the message, or has no tag.
    #[error("the option at byte {at} of an OUCH appendage has {says} bytes; {has} are there, and one must be")]
    Element {
        /// Where it begins in the appendage.
        at: usize,
        /// The bytes that it says, its tag counted.
        says: usize,
        /// The bytes that are there.
        has: usize,
    },
    /// An option has another length than its tag.
    #[error("the value of an OUCH option of tag {tag} has {needs} bytes, not {has}")]
    Width {
        /// The tag.
        tag: u8,
        /// The bytes of such a value.
        needs: usize,
        /// The bytes that are there.
        has: usize,
    },
    /// An unknown option has the tag of a known one, or is too long.
    #[error("no unknown OUCH option has tag {tag} and {has} bytes")]
    Unknown {
        /// The tag.
        tag: u8,
        /// The bytes of the value.
        has: usize,
    },
    /// The options of a message to encode are missing, not allowed, or have more than 65,535 bytes.
    #[error("an OUCH message of kind {} cannot have these options; it takes them {rule:?}", char::from(*kind))]
    Rule {
        /// The kind.
        kind: u8,
        /// Whether it has options.
        rule: OuchRule,
    },
    /// A number is not above those in use.
    #[error("OUCH number {number} is used: send it again unchanged, or use one above {last}")]
    UserRef {
        /// The number.
        number: u32,
        /// The last one that was used.
        last: u32,
    },
}

/// Whether a message has options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OuchRule {
    /// Their length is always there.
    Always,
    /// Their length may be missing.
    Optionally,
    /// It has none.
    Never,
}

/// The bodies of one direction.
pub trait OuchBody: Sized {
    /// Whom these messages are for, in words.
    const TO: &'static str;

    /// The length of a body of this kind, and whether options follow; `None` if there is no such kind.
    fn shape(kind: u8) -> Option<(usize, OuchRule)>;

    /// The body of this kind that `bytes` begin with; `None` if there is none.
    fn get(kind: u8, bytes: &[u8]) -> Option<Self>;

    /// Appends the body, without its kind.
    fn put(&self, to: &mut Vec<u8>);

    /// The letter of the kind.
    fn kind(&self) -> u8;
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OuchMessage<B> {
    /// Its fields.
    pub body: B,
    /// Its options; `None` if not even their length is there.
    pub options: Option<Vec<OuchOption>>,
}

impl<B: OuchBody> OuchMessage<B> {
    /// A message without options, as short as its kind allows.
    pub fn plain(body: B) -> OuchMessage<B> {
        let is_always = B::shape(body.kind()).is_some_and(|(_, rule)| rule == OuchRule::Always);
        OuchMessage { body, options: is_always.then(Vec::new) }
    }

    /// The message that `bytes` are.
    ///
    /// # Errors
    /// [`OuchError`] if they are none.
    pub fn decode(bytes: &[u8]) -> Result<OuchMessage<B>, OuchError> {
        let (&kind, rest) = bytes.split_first().ok_or(OuchError::Empty)?;
        let unknown = OuchError::Kind { to: B::TO, kind };
        let (length, rule) = B::shape(kind).ok_or(unknown)?;
        let needs = 1 + length + if rule == OuchRule::Always { u16::WIDTH } else { 0 };
        if bytes.len() < needs {
            return Err(OuchError::Cut { kind, needs, has: bytes.len() });
        }
        let (body, tail) = rest.split_at(length);
        Ok(OuchMessage { body: B::get(kind, body).ok_or(unknown)?, options: options(kind, rule, tail)? })
    }

    /// Appends the bytes of the message.
    ///
    /// # Errors
    /// [`OuchError`] if its options do not suit its kind, or cannot be encoded; nothing is appended.
    pub fn encode(&self, to: &mut Vec<u8>) -> Result<(), OuchError> {
        let kind = self.body.kind();
        let (_, rule) = B::shape(kind).ok_or(OuchError::Kind { to: B::TO, kind })?;
        let tail = tail(kind, rule, self.options.as_deref())?;
        to.push(kind);
        self.body.put(to);
        to.extend(tail);
        Ok(())
    }
}

/// The options that a message's `tail`, the bytes after its body, has.
fn options(kind: u8, rule: OuchRule, tail: &[u8]) -> Result<Option<Vec<OuchOption>>, OuchError> {
    if tail.is_empty() {
        return Ok(None);
    }
    if rule == OuchRule::Never || tail.len() < u16::WIDTH {
        return Err(OuchError::Options { kind, says: 0, has: tail.len() });
    }
    let mut rest = tail;
    let says = usize::from(take::<u16>(&mut rest));
    if says != rest.len() {
        return Err(OuchError::Options { kind, says, has: rest.len() });
    }
    OuchOption::list(rest).map(Some)
}

/// The bytes of a message after its body.
fn tail(kind: u8, rule: OuchRule, options: Option<&[OuchOption]>) -> Result<Vec<u8>, OuchError> {
    let unsuited = OuchError::Rule { kind, rule };
    let Some(options) = options else {
        return if rule == OuchRule::Always { Err(unsuited) } else { Ok(Vec::new()) };
    };
    let mut elements = Vec::new();
    options.iter().try_for_each(|option| option.encode(&mut elements))?;
    let length = u16::try_from(elements.len()).ok().filter(|_| rule != OuchRule::Never).ok_or(unsuited)?;
    Ok([&length.to_be_bytes()[..], &elements].concat())
}

/// The numbers that a port's orders have used on this day: each exceeds those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OuchUserRefs {
    last: u32,
}

impl OuchUserRefs {
    /// Those of a day on which `last` is the largest number in use; zero if there is none.
    pub fn after(last: u32) -> OuchUserRefs {
        OuchUserRefs { last }
    }

    /// Uses `number`. A venue that gets a used one ignores the message: it is a repetition.
    ///
    /// # Errors
    /// [`OuchError::UserRef`] unless it exceeds all numbers in use.
    pub fn claim(&mut self, number: u32) -> Result<(), OuchError> {
        if number <= self.last {
            return Err(OuchError::UserRef { number, last: self.last });
        }
        self.last = number;
        Ok(())
    }

    /// The next number, which answers an account query; `None` if the last one of 32 bits is in use.
    pub fn next(&self) -> Option<u32> {
        self.last.checked_add(1)
    }
}

/// Structs of bodies, and the enum of a direction.
macro_rules! bodies {
    (
        $(#[doc = $all_doc:literal])*
        $vis:vis $all:ident to $to:literal;
        $(
            $(#[doc = $doc:literal])*
            $variant:ident($name:ident) = $kind:literal, $rule:ident {
                $($(#[doc = $field_doc:literal])* $field:ident: $of:ty,)*
            }
        )*
    ) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            $vis struct $name { $($(#[doc = $field_doc])* pub $field: $of,)* }
        )*

        $(#[doc = $all_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $all { $($(#[doc = $doc])* $variant($name),)* }

        impl OuchBody for $all {
            const TO: &'static str = $to;

            fn shape(kind: u8) -> Option<(usize, OuchRule)> {
                match kind {
                    $($kind => Some((0 $(+ <$of as Field>::WIDTH)*, OuchRule::$rule)),)*
                    _ => None,
                }
            }

            #[allow(unused_mut, unused_variables)]
            fn get(kind: u8, bytes: &[u8]) -> Option<$all> {
                let mut bytes = bytes.get(..Self::shape(kind)?.0)?;
                match kind {
                    $($kind => Some($all::$variant($name { $($field: take(&mut bytes),)* })),)*
                    _ => None,
                }
            }

            #[allow(unused_variables)]
            fn put(&self, to: &mut Vec<u8>) {
                match self { $($all::$variant($name { $($field,)* }) => { $($field.put(to);)* })* }
            }

            fn kind(&self) -> u8 {
                match self { $($all::$variant(_) => $kind,)* }
            }
        }
    };
}

use bodies;
