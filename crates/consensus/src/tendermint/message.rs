//! The messages of validators in the rounds of a height, in the form in which they are sent and logged.

use borsh::{BorshDeserialize, BorshSerialize};
pub use primitives::VoteKind as Kind;
use primitives::{Digest, RoundValue, SecretKey, Signable, Signature, SigningRequest};
use proofs::{Chain, Index};

/// A round of a height; the first is 0.
pub type Round = u32;

/// The subject of a decision: a sub-block, identified by its maker and the digest of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Value {
    /// The maker.
    pub slot: Index,
    /// The digest of the payload.
    pub digest: Digest,
}

impl Value {
    /// Its form in signed messages.
    pub fn signed(&self) -> RoundValue {
        RoundValue { slot: self.slot, digest: self.digest }
    }
}

/// A signed vote. A correct validator casts one of each kind per round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Vote {
    /// The height.
    pub height: u64,
    /// The round.
    pub round: Round,
    /// Prevote or precommit.
    pub kind: Kind,
    /// The value; `None` is a vote for nil.
    pub value: Option<Value>,
    /// The voter.
    pub signer: Index,
    /// Its signature.
    pub signature: Signature,
}

/// A signed proposal by the proposer of the round. The payload travels separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Proposal {
    /// The height.
    pub height: u64,
    /// The round.
    pub round: Round,
    /// The proposed value.
    pub value: Value,
    /// The round in which more than two thirds prevoted for it, if it is proposed again.
    pub valid_round: Option<Round>,
    /// The proposer of the round.
    pub signer: Index,
    /// Its signature.
    pub signature: Signature,
}

impl Vote {
    /// Signs a vote.
    pub fn sign(self, chain: &Chain, secret: &SecretKey) -> Vote {
        Vote { signature: secret.sign(&self.signed(chain).0), ..self }
    }

    /// Whether its signer signed it.
    pub fn is_signed(&self, chain: &Chain) -> bool {
        let key = chain.keys.get(usize::from(self.signer));
        key.is_some_and(|key| key.verify(&self.signed(chain).0, &self.signature))
    }

    pub(super) fn to_sign(self, chain: &Chain) -> SigningRequest {
        let Vote { height, round, kind, value, .. } = self;
        let statement = Signable::RoundVote { round, kind, value: value.map(|value| value.signed()) };
        SigningRequest { scope: chain.scope(), height, statement }
    }

    fn signed(&self, chain: &Chain) -> Digest {
        self.to_sign(chain).digest()
    }
}

impl Proposal {
    /// Signs a proposal.
    pub fn sign(self, chain: &Chain, secret: &SecretKey) -> Proposal {
        Proposal { signature: secret.sign(&self.signed(chain).0), ..self }
    }

    /// Whether its signer signed it.
    pub fn is_signed(&self, chain: &Chain) -> bool {
        let key = chain.keys.get(usize::from(self.signer));
        key.is_some_and(|key| key.verify(&self.signed(chain).0, &self.signature))
    }

    pub(super) fn to_sign(self, chain: &Chain) -> SigningRequest {
        let Proposal { height, round, value, valid_round, .. } = self;
        let statement = Signable::RoundProposal { round, value: value.signed(), valid_round };
        SigningRequest { scope: chain.scope(), height, statement }
    }

    fn signed(&self, chain: &Chain) -> Digest {
        self.to_sign(chain).digest()
    }
}

/// Equal votes of more than two thirds of the validators.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Quorum {
    /// The round.
    pub round: Round,
    /// The value.
    pub value: Value,
    /// The signers in ascending order, with their signatures.
    pub signatures: Vec<(Index, Signature)>,
}

/// The justification for entering a round.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct EntryProof {
    /// The round of the votes.
    pub round: Round,
    /// Whether f+1 validators were in that round; otherwise 2f+1 precommitted in it, and the next one begins.
    pub skips: bool,
    /// Their votes, one per validator.
    pub votes: Vec<Vote>,
}

/// A message about a height.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// A proposal.
    Proposal(Proposal),
    /// A vote.
    Vote(Vote),
    /// Prevotes that allow proposing a value again.
    Polka(Quorum),
    /// Votes that allow entering a round.
    Entry(EntryProof),
    /// Precommits that decide, for a validator that is still in the rounds.
    Decision(Quorum),
}

impl Message {
    /// The round of the message.
    pub fn round(&self) -> Round {
        match self {
            Message::Proposal(proposal) => proposal.round,
            Message::Vote(vote) => vote.round,
            Message::Polka(quorum) | Message::Decision(quorum) => quorum.round,
            Message::Entry(entry) => entry.round,
        }
    }

    /// Number of signatures in it.
    pub(crate) fn signatures(&self) -> usize {
        match self {
            Message::Proposal(_) | Message::Vote(_) => 1,
            Message::Polka(quorum) | Message::Decision(quorum) => 1 + quorum.signatures.len(),
            Message::Entry(entry) => 1 + entry.votes.len(),
        }
    }
}

/// Messages about one height that travel together.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Messages {
    /// The epoch.
    pub epoch: u64,
    /// The height.
    pub height: u64,
    /// The messages, in the order in which they were made.
    pub messages: Vec<Message>,
}

/// Inputs in the order in which they were processed, logged before their effects: a restarted validator processes
/// them again and makes the same votes.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum RoundRecord {
    /// A message of another validator, or of this one.
    Taken(Message),
    /// A valid payload was held.
    Held {
        /// The round under which it was filed.
        round: Round,
        /// Its value.
        value: Value,
    },
    /// A timer fired.
    Fired {
        /// The step of the timer.
        step: Step,
        /// The round.
        round: Round,
    },
}

/// What a validator waits for in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum Step {
    /// A proposal.
    Propose,
    /// Prevotes that agree.
    Prevote,
    /// Precommits that agree.
    Precommit,
}
