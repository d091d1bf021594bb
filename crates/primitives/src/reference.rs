//! What a payment is for, as its sender says it.

use borsh::{BorshDeserialize, BorshSerialize};

/// The most characters of a text: as many as an end-to-end identification of ISO 20022 has.
pub const REFERENCE_TEXT_MAX: usize = 35;

/// A reference of a payment: for the receiver's books, in no state, and public for ever.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Reference {
    /// What the bytes are.
    pub kind: ReferenceKind,
    /// The bytes; [`Reference::is_plain`] has their bounds.
    pub bytes: Box<[u8]>,
}

/// What a reference consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ReferenceKind {
    /// Printable ASCII, 1 to [`REFERENCE_TEXT_MAX`] characters. Writers count characters, so bytes must be as many.
    Text,
    /// A UETR or another UUID, as its 16 bytes.
    Uuid,
    /// The SHA-256 of a message, such as one of ISO 20022, with a salt inside.
    Message,
    /// A number: 8 bytes, big-endian.
    Number,
}

impl Reference {
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
