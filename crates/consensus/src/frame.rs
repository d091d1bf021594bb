//! The frames between validators.
//!
//! The votes of one turn travel together: for each height the echoes and readies by digest, and for each of its
//! rounds the slots that a vote is about, as bit sets. Every frame has exactly one encoding; bytes that do not encode
//! back to themselves are rejected. The link identifies the sender; each frame contains the epoch, and every
//! signature covers the chain.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;
use proofs::{Certificate, Index};

use crate::certificate::Commit;
use crate::members::Members;
use crate::message::Mask;
use crate::message::{Round, Vote};
use crate::proposal::{Payload, Proposal};

/// A message to one or all validators.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Frame {
    /// Votes about one height.
    Votes(Votes),
    /// A sub-block, from its proposer or as the answer to a request.
    Proposal(Proposal, Payload),
    /// Asks for a sub-block.
    Fetch {
        /// The height.
        height: u64,
        /// The slot.
        slot: Index,
        /// The digest.
        digest: Digest,
    },
    /// The sender's statement that a height has ended.
    Commit(Commit),
    /// The proof that a height has ended, for a validator that still votes on it.
    Certificate(Certificate),
    /// The sender's progress.
    Status(Status),
    /// Asks for decided heights.
    SyncRequest {
        /// The first.
        from: u64,
        /// The last.
        to: u64,
    },
    /// Decided heights in order, in answer to a request.
    Sync(Vec<Decided>),
    /// Messages of the rounds of one height.
    Rounds(crate::tendermint::Messages),
    /// Transactions forwarded for the receiver to propose, as a sub-block; the sender proposes an empty one instead.
    Transactions(Payload),
}

impl Frame {
    /// What each frame is, by its first byte.
    const KINDS: [&str; 10] =
        ["votes", "proposal", "fetch", "commit", "certificate", "status", "request", "heights", "rounds", "forwarded"];

    /// What encoded bytes are, by their first one; `None` if they are no frame of consensus.
    pub fn kind_of(bytes: &[u8]) -> Option<&'static str> {
        Frame::KINDS.get(usize::from(*bytes.first()?)).copied()
    }

    /// The height that its sender votes on with this frame.
    pub fn voted_height(&self) -> Option<u64> {
        match self {
            Frame::Votes(votes) => Some(votes.height),
            Frame::Rounds(messages) => Some(messages.height),
            _ => None,
        }
    }
}

/// The progress of a validator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Status {
    /// The epoch that it is in.
    pub epoch: u64,
    /// The last height up to which it knows all superblocks.
    pub decided: u64,
    /// The last height whose certificate and superblock it knows.
    pub certified: u64,
    /// The highest height that it takes part in.
    pub live: u64,
    /// Whether it has something to propose: while it is benched, heights must advance for its spell to end.
    pub waits: bool,
    /// Whether an answer is wanted.
    pub asks: bool,
}

/// A decided height with everything needed to check and to apply it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Decided {
    /// The certificate.
    pub certificate: Certificate,
    /// The included sub-blocks, by slot.
    pub sub_blocks: Vec<(Index, Payload)>,
}

/// A set of slots, as bits; the last byte is not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Slots(Vec<u8>);

impl Slots {
    fn insert(&mut self, slot: Index) {
        let byte = usize::from(slot) / 8;
        if self.0.len() <= byte {
            self.0.resize(byte + 1, 0);
        }
        self.0[byte] |= 1 << (slot % 8);
    }

    fn iter(&self) -> impl Iterator<Item = Index> + '_ {
        let bits = |(byte, bits): (usize, &u8)| {
            let bits = *bits;
            (0..8).filter(move |bit| bits & (1 << bit) != 0).map(move |bit| (byte * 8 + bit) as Index)
        };
        self.0.iter().enumerate().flat_map(bits)
    }

    fn is_canonical(&self) -> bool {
        self.0.len() <= Members::BYTES && self.0.last() != Some(&0)
    }
}

/// The votes of one round: for each kind and value, the slots that it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RoundVotes {
    round: Round,
    /// By value.
    estimates: [Slots; 2],
    /// By value.
    suggestions: [Slots; 2],
    /// By mask.
    auxiliaries: [Slots; 3],
}

impl RoundVotes {
    /// The slot set of a vote's kind and value.
    fn slots(&mut self, vote: &Vote) -> &mut Slots {
        match *vote {
            Vote::Estimate { value, .. } => &mut self.estimates[usize::from(value)],
            Vote::Coordinate { value, .. } => &mut self.suggestions[usize::from(value)],
            Vote::Auxiliary { values, .. } => &mut self.auxiliaries[values as usize],
            Vote::Echo { .. } | Vote::Ready { .. } => unreachable!("these are of no round"),
        }
    }
}

/// Votes of one validator about one height.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Votes {
    /// The epoch.
    pub epoch: u64,
    /// The height.
    pub height: u64,
    echoes: Vec<(Index, Digest)>,
    readies: Vec<(Index, Digest)>,
    rounds: Vec<RoundVotes>,
}

impl Votes {
    /// Packs votes; their order is lost, and of two echoes or two readies for one slot, which no correct validator
    /// sends, one is dropped.
    pub fn pack(epoch: u64, height: u64, votes: impl IntoIterator<Item = Vote>) -> Votes {
        let (mut echoes, mut readies) = (BTreeMap::new(), BTreeMap::new());
        let mut rounds: BTreeMap<Round, RoundVotes> = BTreeMap::new();
        for vote in votes {
            let (round, slot) = (vote.round(), vote.slot());
            let new = || RoundVotes { round, ..RoundVotes::default() };
            match vote {
                Vote::Echo { slot, digest } => drop(echoes.insert(slot, digest)),
                Vote::Ready { slot, digest } => drop(readies.insert(slot, digest)),
                _ => rounds.entry(round).or_insert_with(new).slots(&vote).insert(slot),
            }
        }
        let (echoes, readies) = (echoes.into_iter().collect(), readies.into_iter().collect());
        Votes { epoch, height, echoes, readies, rounds: rounds.into_values().collect() }
    }

    /// Unpacks the votes.
    pub fn unpack(&self) -> Vec<Vote> {
        let mut votes: Vec<Vote> = Vec::new();
        votes.extend(self.echoes.iter().map(|&(slot, digest)| Vote::Echo { slot, digest }));
        votes.extend(self.readies.iter().map(|&(slot, digest)| Vote::Ready { slot, digest }));
        for of in &self.rounds {
            let round = of.round;
            for value in [false, true] {
                let estimates = of.estimates[usize::from(value)].iter();
                votes.extend(estimates.map(|slot| Vote::Estimate { slot, round, value }));
                let suggestions = of.suggestions[usize::from(value)].iter();
                votes.extend(suggestions.map(|slot| Vote::Coordinate { slot, round, value }));
            }
            for values in Mask::ALL {
                let auxiliaries = of.auxiliaries[values as usize].iter();
                votes.extend(auxiliaries.map(|slot| Vote::Auxiliary { slot, round, values }));
            }
        }
        votes
    }

    fn is_canonical(&self) -> bool {
        let slots = |of: &RoundVotes| {
            of.estimates.iter().chain(&of.suggestions).chain(&of.auxiliaries).all(Slots::is_canonical)
        };
        let once = |of: &[(Index, Digest)]| of.is_sorted_by(|a, b| a.0 < b.0);
        let in_order = self.rounds.is_sorted_by(|a, b| a.round < b.round);
        once(&self.echoes) && once(&self.readies) && in_order && self.rounds.iter().all(slots)
    }
}

impl Frame {
    /// The encoded frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("writing to memory cannot fail")
    }

    /// Decodes a frame.
    ///
    /// # Errors
    /// If the bytes are not the encoding of a frame.
    pub fn from_bytes(bytes: &[u8]) -> std::io::Result<Frame> {
        let frame: Frame = borsh::from_slice(bytes)?;
        match &frame {
            Frame::Votes(votes) if !votes.is_canonical() => {
                Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "the votes are not in canonical order"))
            }
            _ => Ok(frame),
        }
    }

    /// The approximate size in bytes, for budgets: the exact size would require encoding it.
    pub(crate) fn weight(&self) -> usize {
        const SIGNED: usize = 160;
        match self {
            Frame::Votes(votes) => 40 * (votes.echoes.len() + votes.readies.len()) + 32 * votes.rounds.len() + 32,
            Frame::Proposal(_, payload) | Frame::Transactions(payload) => SIGNED + payload.len(),
            Frame::Rounds(messages) => messages.messages.iter().map(|message| SIGNED * message.signatures()).sum(),
            Frame::Certificate(certificate) => SIGNED * (1 + certificate.signatures.len()),
            Frame::Sync(blocks) => blocks
                .iter()
                .flat_map(|block| &block.sub_blocks)
                .map(|(_, payload)| SIGNED + payload.len())
                .sum::<usize>(),
            Frame::Commit(_) | Frame::Fetch { .. } | Frame::Status(_) | Frame::SyncRequest { .. } => SIGNED,
        }
    }

    /// Whether it may be large, and so must not be sent before votes.
    pub fn is_bulk(&self) -> bool {
        matches!(self, Frame::Proposal(..) | Frame::Sync(_) | Frame::Transactions(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_byte_says_what_a_frame_is() {
        let (slot, digest) = (0, Digest([1; 32]));
        for (frame, kind) in [
            (Frame::Votes(Votes::pack(0, 1, std::collections::BTreeSet::new())), "votes"),
            (Frame::Fetch { height: 1, slot, digest }, "fetch"),
            (Frame::SyncRequest { from: 1, to: 2 }, "request"),
            (Frame::Sync(Vec::new()), "heights"),
            (Frame::Transactions(Payload::from([7; 3])), "forwarded"),
        ] {
            assert_eq!(Frame::kind_of(&borsh::to_vec(&frame).expect("memory")), Some(kind));
        }
        assert_eq!([Frame::kind_of(&[10]), Frame::kind_of(&[])], [None, None]);
    }

    fn vote() -> impl Strategy<Value = Vote> {
        let digest = any::<u8>().prop_map(|byte| Digest([byte; 32]));
        (0u8..5, any::<Index>(), 1..70u32, any::<bool>(), 0..3usize, digest).prop_map(
            |(kind, slot, round, value, mask, digest)| match kind {
                0 => Vote::Echo { slot, digest },
                1 => Vote::Ready { slot, digest },
                2 => Vote::Estimate { slot, round, value },
                3 => Vote::Coordinate { slot, round, value },
                _ => Vote::Auxiliary { slot, round, values: Mask::ALL[mask] },
            },
        )
    }

    proptest! {
        #[test]
        fn votes_travel_whole(mut votes in prop::collection::btree_set(vote(), 0..60)) {
            let mut once = std::collections::BTreeSet::new();
            votes.retain(|vote| match vote {
                Vote::Echo { slot, .. } => once.insert((true, *slot)),
                Vote::Ready { slot, .. } => once.insert((false, *slot)),
                _ => true,
            });
            let packed = Votes::pack(3, 9, votes.iter().copied());
            let mut unpacked = packed.unpack();
            unpacked.sort();
            prop_assert_eq!(unpacked, votes.into_iter().collect::<Vec<_>>());
            let frame = Frame::Votes(packed);
            prop_assert_eq!(Frame::from_bytes(&frame.to_bytes()).expect("canonical"), frame);
        }

        #[test]
        fn whatever_decodes_encodes_back(bytes in prop::collection::vec(any::<u8>(), 0..300), tag in 0u8..10) {
            let bytes: Vec<u8> = std::iter::once(tag).chain(bytes).collect();
            if let Ok(frame) = Frame::from_bytes(&bytes) {
                prop_assert_eq!(frame.to_bytes(), bytes);
            }
        }

        #[test]
        fn damaged_frames_are_read_or_refused(votes in prop::collection::vec(vote(), 0..30), at: prop::sample::Index,
            by: u8) {
            let mut bytes = Frame::Votes(Votes::pack(0, 1, votes)).to_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            if let Ok(frame) = Frame::from_bytes(&bytes) {
                prop_assert_eq!(frame.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn a_frame_that_repeats_a_vote_is_no_frame() {
        let echo = (1, Digest([1; 32]));
        for other in [echo, (1, Digest([2; 32])), (0, Digest([1; 32]))] {
            let repeats = Votes { echoes: vec![echo, other], ..Votes::default() };
            assert!(Frame::from_bytes(&Frame::Votes(repeats).to_bytes()).is_err());
            let repeats = Votes { readies: vec![echo, other], ..Votes::default() };
            assert!(Frame::from_bytes(&Frame::Votes(repeats).to_bytes()).is_err());
        }
    }

    #[test]
    fn a_full_round_of_four_is_small() {
        let votes = (0..4).map(|slot| Vote::Auxiliary { slot, round: 1, values: Mask::One });
        assert!(Frame::Votes(Votes::pack(0, 1, votes)).to_bytes().len() < 70);
    }
}
