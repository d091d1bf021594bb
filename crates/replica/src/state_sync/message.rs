//! What travels between validators about whole states, on the connections of consensus.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Height;

use crate::encode;
use crate::handover::Handover;
use crate::state_sync::base::Base;

/// The first byte of these messages; no frame of consensus begins with it.
pub const TAG: u8 = 0xff;
/// Chunks of a state that can be offered: the offer fits into a frame whatever the genesis says of sub-blocks.
pub const CHUNKS_MAX: usize = 16 << 10;

/// A message to one validator.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum StateMessage {
    /// Asks for the proof of a state, and for its chunks' digests unless it is `bare`.
    AskOffer {
        /// After this height; the newest that is held, if 0.
        height: Height,
        /// Whether the proof is enough.
        bare: bool,
    },
    /// The answer; nothing if there is none.
    StateOffer(Option<Box<StateOffer>>),
    /// Asks for handovers from an epoch on.
    AskHandovers {
        /// The first.
        from: u64,
    },
    /// The answer.
    Handovers {
        /// The first that was asked for.
        from: u64,
        /// As many as fit, in order.
        page: Vec<Handover>,
    },
    /// Asks for a chunk of a state that was offered.
    AskChunk {
        /// After this height.
        height: Height,
        /// Its number.
        number: u32,
    },
    /// The answer; nothing if it is no longer held.
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
    /// What proves it.
    pub base: Base,
    /// Bytes of its chunks together.
    pub payload_bytes: u64,
    /// Of each chunk, as the store names it; none if the offer is bare.
    pub digests: Vec<[u8; 32]>,
}

impl StateMessage {
    /// Its bytes, after the tag.
    pub fn to_bytes(&self) -> Arc<[u8]> {
        [&[TAG][..], &encode(self)].concat().into()
    }

    /// Reads what follows the tag; nothing if it is none of these.
    pub fn from_bytes(bytes: &[u8]) -> Option<StateMessage> {
        let (TAG, rest) = bytes.split_first().map(|(tag, rest)| (*tag, rest))? else { return None };
        borsh::from_slice(rest).ok()
    }

    /// Whether it travels behind votes: answers do, questions are small.
    pub(crate) fn is_bulk(&self) -> bool {
        matches!(self, StateMessage::StateOffer(_) | StateMessage::Handovers { .. } | StateMessage::Chunk { .. })
    }
}

/// Bytes of the longest message. An offer of so many digests leaves room for the rest, and so does a chunk: the shell's
/// frames must hold it.
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
