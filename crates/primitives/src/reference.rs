//! What a payment is for, as its sender says it.

use std::fmt;
use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{from_hex, to_hex};

/// The most characters of a text: as many as an end-to-end identification of ISO 20022 has.
pub const REFERENCE_TEXT_MAX: usize = 35;

/// The names of [`ReferenceKind`]s in interfaces, in their order.
pub const REFERENCE_KINDS: [&str; 4] = ["text", "uuid", "message", "number"];

/// The names of [`ReferenceRule`]s in interfaces, in their order.
pub const REFERENCE_RULES: [&str; 2] = ["optional", "required"];

/// Whether payments to an account need a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ReferenceRule {
    /// They come with one or without.
    #[default]
    Optional,
    /// The ledger refuses those without one.
    Required,
}

impl FromStr for ReferenceRule {
    type Err = ReferenceError;

    fn from_str(name: &str) -> Result<ReferenceRule, ReferenceError> {
        match REFERENCE_RULES.iter().position(|rule| *rule == name) {
            Some(0) => Ok(ReferenceRule::Optional),
            Some(_) => Ok(ReferenceRule::Required),
            None => Err(ReferenceError::Rule(name.into())),
        }
    }
}

/// A reference of a payment: for the receiver's books, in no state, and public for ever.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Reference {
    /// What the bytes are.
    pub kind: ReferenceKind,
    /// The bytes; [`Reference::is_plain`] has their bounds.
    pub bytes: Box<[u8]>,
}

/// What a reference consists of.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize, strum::VariantArray,
)]
pub enum ReferenceKind {
    /// Printable ASCII, 1 to [`REFERENCE_TEXT_MAX`] characters. Writers count characters, so bytes must be as many.
    #[default]
    Text,
    /// A UETR or another UUID, as its 16 bytes.
    Uuid,
    /// The SHA-256 of a message, such as one of ISO 20022, with a salt inside.
    Message,
    /// A number: 8 bytes, big-endian.
    Number,
}

/// Why a text is no reference of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It is no kind.
    #[error("{0:?} is no kind of reference: text, uuid, message or number")]
    Kind(String),
    /// It is no rule.
    #[error("{0:?} says not whether payments need a reference: optional or required")]
    Rule(String),
    /// It is not written as one of this kind is.
    #[error("{value:?} is no reference of the kind {}: {}", .kind.name(), .kind.form())]
    Value {
        /// The kind.
        kind: ReferenceKind,
        /// The text.
        value: String,
    },
}

impl ReferenceKind {
    /// Its name in interfaces.
    pub const fn name(self) -> &'static str {
        REFERENCE_KINDS[self as usize]
    }

    /// How people write one.
    pub const fn form(self) -> &'static str {
        match self {
            ReferenceKind::Text => "write 1 to 35 printable ASCII characters; a UUID has a kind of its own",
            ReferenceKind::Uuid => "write 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12",
            ReferenceKind::Message => "write a SHA-256 as 64 hexadecimal digits, after 0x or not",
            ReferenceKind::Number => "write a decimal number below 2^64",
        }
    }
}

impl FromStr for ReferenceKind {
    type Err = ReferenceError;

    fn from_str(name: &str) -> Result<ReferenceKind, ReferenceError> {
        let mut kinds = <ReferenceKind as strum::VariantArray>::VARIANTS.iter().copied();
        kinds.find(|kind| kind.name() == name).ok_or_else(|| ReferenceError::Kind(name.into()))
    }
}

/// Where the groups of a UUID begin, in bytes.
const UUID_GROUPS: [std::ops::Range<usize>; 5] = [0..4, 4..6, 6..8, 8..10, 10..16];

/// As people write it: the text, a UUID in lower case, a hash in hexadecimal, or a decimal number.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = &self.bytes;
        match self.kind {
            _ if !self.is_plain() => write!(f, "0x{}", to_hex(bytes)),
            ReferenceKind::Text => f.write_str(&String::from_utf8_lossy(bytes)),
            ReferenceKind::Uuid => f.write_str(&UUID_GROUPS.map(|group| to_hex(&bytes[group])).join("-")),
            ReferenceKind::Message => write!(f, "0x{}", to_hex(bytes)),
            ReferenceKind::Number => {
                write!(f, "{}", bytes.iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte)))
            }
        }
    }
}

impl Reference {
    /// A reference as people write it.
    ///
    /// # Errors
    /// [`ReferenceError::Value`] says how they do.
    pub fn read(kind: ReferenceKind, value: &str) -> Result<Reference, ReferenceError> {
        let bytes = match kind {
            ReferenceKind::Text => Some(value.as_bytes().to_vec()),
            ReferenceKind::Uuid => uuid(value),
            ReferenceKind::Message => from_hex::<32>(value).ok().map(Vec::from),
            ReferenceKind::Number => number(value),
        };
        let reference = bytes.map(|bytes| Reference { kind, bytes: bytes.into() });
        let plain = reference.filter(|reference| reference.is_plain());
        plain.ok_or_else(|| ReferenceError::Value { kind, value: value.into() })
    }

    /// Whether the bytes can be a reference of this kind.
    pub fn is_plain(&self) -> bool {
        let Reference { kind, bytes } = self;
        match kind {
            ReferenceKind::Text => {
                (1..=REFERENCE_TEXT_MAX).contains(&bytes.len()) && bytes.iter().all(|byte| matches!(byte, b' '..=b'~'))
            }
            ReferenceKind::Uuid => bytes.len() == 16,
            ReferenceKind::Message => bytes.len() == 32,
            ReferenceKind::Number => bytes.len() == 8,
        }
    }
}

/// The bytes of a UUID with its hyphens.
fn uuid(text: &str) -> Option<Vec<u8>> {
    let groups: Vec<&str> = text.split('-').collect();
    let is_uuid = groups.iter().map(|group| group.len()).eq(UUID_GROUPS.iter().map(|group| 2 * group.len()));
    if is_uuid { from_hex::<16>(&groups.concat()).ok().map(Vec::from) } else { None }
}

/// The bytes of a decimal number without a sign and without zeros before it: one number has one form.
fn number(text: &str) -> Option<Vec<u8>> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then(|| number.to_be_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ReferenceKind::*;

    #[test]
    fn a_reference_is_read_as_it_is_shown() {
        let hash = format!("0x{}", "5e".repeat(32));
        let shown = [
            (Text, "INV/2026-11 \"~\" \\"),
            (Uuid, "8a562c67-ca16-48ba-b074-65581be6f001"),
            (Message, &hash),
            (Number, "18446744073709551615"),
            (Number, "0"),
        ];
        for (kind, value) in shown {
            assert_eq!(Reference::read(kind, value).map(|read| read.to_string()), Ok(value.into()));
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let upper = Reference::read(Uuid, "8A562C67-CA16-48BA-B074-65581BE6F001");
        assert_eq!(upper, Reference::read(Uuid, shown[1].1), "a UUID has one form");
    }

    #[test]
    fn what_is_no_reference_of_its_kind_is_refused_in_words() {
        let refused = [
            (Text, ""),
            (Text, "a text of more than 35 characters, by one"),
            (Text, "Gebühr"),
            (Text, "8a562c67-ca16-48ba-b074-65581be6f001"),
            (Uuid, "8a562c67ca1648bab07465581be6f001"),
            (Uuid, "8a562c67-ca16-48ba-b074-65581be6f0010"),
            (Uuid, "8a562c67-ca16-48ba-b07-465581be6f001"),
            (Uuid, "8a562c67-ca16-48ba-b074-65581be6f00+"),
            (Message, "0x5e"),
            (Number, "-1"),
            (Number, "+1"),
            (Number, "007"),
            (Number, "18446744073709551616"),
        ];
        for (kind, value) in refused {
            let error = Reference::read(kind, value).expect_err(value);
            assert!(error.to_string().contains(kind.form()), "{error}");
        }
        assert!("iban".parse::<ReferenceKind>().expect_err("no kind").to_string().contains("text, uuid, message"));
    }
}
