//! What validators tell one another in the rounds of a height, as it travels and as it is written down.

use borsh::{BorshDeserialize, BorshSerialize};
pub use primitives::VoteKind as Kind;
use primitives::{Digest, RoundValue, SecretKey, Signable, Signature, SigningRequest};

use crate::chain::Chain;
use crate::committee::Index;

/// A round of a height; the first is 0.
pub type Round = u32;

/// What is decided on: a sub-block, by the validator that made it and the digest of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Value {
    /// Who made it.
    pub slot: Index,
    /// Of its payload.
    pub digest: Digest,
}

impl Value {
    /// As it stands in what is signed.
    pub fn signed(&self) -> RoundValue {
        RoundValue { slot: self.slot, digest: self.digest }
    }
}

/// A signed vote. A correct validator casts one of each kind a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Vote {
    /// The height.
    pub height: u64,
    /// The round.
    pub round: Round,
    /// Prevote or precommit.
    pub kind: Kind,
    /// For what; `None` is a vote for nil.
    pub value: Option<Value>,
    /// Whose.
    pub signer: Index,
    /// Its signature.
    pub signature: Signature,
}

/// A signed proposal: its proposer, the one of the round, would have this decided. The payload travels apart from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Proposal {
    /// The height.
    pub height: u64,
    /// The round.
    pub round: Round,
    /// What.
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
    /// For what.
    pub value: Value,
    /// Who, in ascending order, and how.
    pub signatures: Vec<(Index, Signature)>,
}

/// Why a validator went on to a round.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Entry {
    /// The round of the votes.
    pub round: Round,
    /// Whether f+1 validators were in that round; else 2f+1 precommitted in it, and the next one begins.
    pub skips: bool,
    /// What they voted, each once.
    pub votes: Vec<Vote>,
}

/// A message about a height.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// A proposal.
    Proposal(Proposal),
    /// A vote.
    Vote(Vote),
    /// Prevotes that allow to propose a value again.
    Polka(Quorum),
    /// Votes that allow to enter a round.
    Entry(Entry),
    /// Precommits that decide, for who is still in the rounds.
    Decision(Quorum),
}

impl Message {
    /// The round that it is of.
    pub fn round(&self) -> Round {
        match self {
            Message::Proposal(proposal) => proposal.round,
            Message::Vote(vote) => vote.round,
            Message::Polka(quorum) | Message::Decision(quorum) => quorum.round,
            Message::Entry(entry) => entry.round,
        }
    }

    /// How many signatures it carries.
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

/// What is written down before it is acted on, in the order in which it was taken in: a restarted validator takes it in
/// again and comes to the same votes.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Record {
    /// A message of another validator, or an own one.
    Taken(Message),
    /// A valid payload was there.
    Held {
        /// The round that it was filed under.
        round: Round,
        /// Its name.
        value: Value,
    },
    /// A timer had fired.
    Fired {
        /// The step that was waited in.
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
