//! Why frames are rejected.

/// Why a frame was rejected. A correct validator with the same genesis causes none of these, except those about
/// height and epoch, and about slots if a frame that does not name its epoch belongs to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Refused {
    /// The bytes are not a frame.
    #[error("undecodable")]
    Undecodable,
    /// It belongs to another epoch.
    #[error("of another epoch")]
    Epoch,
    /// Its height is above all heights for which votes are accepted, or only a later epoch permits what it forwards.
    #[error("of a height too far ahead")]
    Ahead,
    /// A sub-block is too long, does not match its digest, or cannot be decoded.
    #[error("not a sub-block")]
    Payload,
    /// A signature is not valid.
    #[error("wrongly signed")]
    Signature,
    /// A sub-block of a validator without a slot, or of no validator.
    #[error("without a slot")]
    Slot,
    /// Decided heights that do not follow on each other, or a request for too many.
    #[error("unsound answer")]
    Sync,
    /// A message of a protocol that this network does not use.
    #[error("of another protocol")]
    Protocol,
    /// An impossible status: more certified than decided, or a height that no chain reaches.
    #[error("an impossible status")]
    Status,
}

impl Refused {
    /// Whether no correct validator sends such a frame, however late it arrives.
    pub fn is_offence(self) -> bool {
        !matches!(self, Refused::Epoch | Refused::Ahead | Refused::Slot)
    }

    /// A short name, for metrics.
    pub fn code(self) -> &'static str {
        match self {
            Refused::Undecodable => "undecodable",
            Refused::Epoch => "epoch",
            Refused::Ahead => "ahead",
            Refused::Payload => "payload",
            Refused::Signature => "signature",
            Refused::Slot => "slot",
            Refused::Sync => "sync",
            Refused::Protocol => "protocol",
            Refused::Status => "status",
        }
    }
}
