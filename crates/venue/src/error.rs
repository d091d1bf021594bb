//! The errors of a root, and their remedies.

use store::{Remedy, StoreError};

use crate::settings::VenueSettingsError;

/// Why a root refuses. After an error of the disk it does nothing any more: open it again.
#[derive(Debug, thiserror::Error)]
pub enum VenueRootError {
    /// The settings are impossible.
    #[error(transparent)]
    Settings(#[from] VenueSettingsError),
    /// There is no journal.
    #[error(
        "{0}: there is no journal of a venue's root: restore it from a copy; if it is lost, what was reported is not \
         known, and the owner must fence the incarnation"
    )]
    JournalLost(String),
    /// There is a journal where a new one is to be created.
    #[error("{0}: there is a journal of a venue's root already: it is never overwritten; use an empty directory")]
    JournalExists(String),
    /// The bytes cannot be what was written.
    #[error("{file}, byte {offset}: {what}; restore it from a copy, or let the owner fence the incarnation")]
    Damaged {
        /// The file, with its directory.
        file: String,
        /// The offset of the damaged record.
        offset: u64,
        /// The fault.
        what: String,
    },
    /// A record is whole, but says nothing that this program understands.
    #[error("record {0} of the journal cannot be read: {1}; open it with the program that wrote it")]
    Format(u64, String),
    /// A replay came to another result.
    #[error(
        "record {0} of the journal gives other fills or another settle than it did: open it with the program that \
         wrote it"
    )]
    Diverged(u64),
    /// The keys are not those of the settings.
    #[error("the account or the report key is not the one of the settings")]
    Keys,
    /// A fill is older than the journal that is left.
    #[error("fill {0} is not in the journal any more")]
    Forgotten(u64),
    /// An earlier call failed.
    #[error("the root stopped after an error of its disk: open it again; it recovers from the disk")]
    Failed,
    /// The store refuses.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for VenueRootError {
    fn from(error: StoreError) -> VenueRootError {
        match error {
            StoreError::Damaged { file, offset, what, remedy } if remedy != Remedy::RemoveCheckpoint => {
                VenueRootError::Damaged { file, offset, what }
            }
            StoreError::ReceiptsDiffer(record) => VenueRootError::Diverged(record),
            other => VenueRootError::Store(other),
        }
    }
}
