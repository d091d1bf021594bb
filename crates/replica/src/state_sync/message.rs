//! The messages between validators about whole states, on the connections of consensus.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Height;
use proofs::Handover;

use crate::encode;
use crate::state_sync::base::Base;

/// The first byte of these messages; no frame of consensus begins with it.
pub const TAG: u8 = 0xff;
/// Maximum number of chunks of an offered state: the offer fits into a frame whatever the genesis sets for
/// sub-blocks.
pub const CHUNKS_MAX: usize = 16 << 10;

/// A message to one validator.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum StateMessage {
    /// Asks for the proof of a state, and for its chunks' digests unless `bare`.
    AskOffer {
        /// The height of the state; 0 for the newest that is held.
        height: Height,
        /// Whether the proof is enough.
        bare: bool,
    },
    /// The answer; `None` if there is no such state.
    StateOffer(Option<Box<StateOffer>>),
    /// Asks for handovers from an epoch on.
    AskHandovers {
        /// The first.
        from: u64,
    },
    /// The answer.
    Handovers {
        /// The first epoch that was asked for.
        from: u64,
        /// As many as fit, in order.
        page: Vec<Handover>,
    },
    /// Asks for a chunk of an offered state.
    AskChunk {
        /// The height of the state.
        height: Height,
        /// The chunk's number.
        number: u32,
    },
    /// The answer; without bytes if the state is no longer held.
    Chunk {
        /// As asked.
        height: Height,
        /// As asked.
        number: u32,
        /// Its bytes.
        bytes: Option<Vec<u8>>,
    },
}

/// A state that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StateOffer {
    /// The proof of the state.
    pub base: Base,
    /// The total bytes of its chunks.
    pub payload_bytes: u64,
    /// The digest of each chunk, as the store names it; empty if the offer is bare.
    pub digests: Vec<[u8; 32]>,
}

impl StateMessage {
    /// The encoded message, after the tag.
    pub fn to_bytes(&self) -> Arc<[u8]> {
        [&[TAG][..], &encode(self)].concat().into()
    }

    /// Decodes what follows the tag; `None` if it is no valid message.
    pub fn from_bytes(bytes: &[u8]) -> Option<StateMessage> {
        let (TAG, rest) = bytes.split_first().map(|(tag, rest)| (*tag, rest))? else { return None };
        borsh::from_slice(rest).ok()
    }

    /// Whether it queues behind votes: answers do, questions are small.
    pub(crate) fn is_bulk(&self) -> bool {
        matches!(self, StateMessage::StateOffer(_) | StateMessage::Handovers { .. } | StateMessage::Chunk { .. })
    }
}

/// Bytes of the longest message. An offer with the maximum number of digests leaves room for the rest, and so does a
/// chunk. The shell's frames must be able to hold it.
pub const MESSAGE_BYTES_MAX: usize = CHUNKS_MAX * 32 + (256 << 10);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_decodes_encodes_back(kind in 0u8..6, rest in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes: Vec<u8> = [TAG, kind].into_iter().chain(rest).collect();
            if let Some(message) = StateMessage::from_bytes(&bytes) {
                prop_assert_eq!(&message.to_bytes()[..], &bytes[..]);
            }
        }
    }

    #[test]
    fn no_frame_of_consensus_is_taken_for_one() {
        let frame = consensus::Frame::Status(consensus::frame::Status::default()).to_bytes();
        assert_eq!(StateMessage::from_bytes(&frame), None);
        assert!(consensus::Frame::from_bytes(&StateMessage::AskHandovers { from: 1 }.to_bytes()).is_err());
        assert_eq!(StateMessage::from_bytes(&[]), None);
    }
}
