//! The types for the round logic of `malachite`: heights are numbers, validators are indices with equal power, values
//! are digests, signatures are made with the keys of the chain.

use std::fmt;

use arc_malachitebft_core_types::{
    self as malachite, LinearTimeouts, NilOrVal, Round as MaybeRound, SignedExtension, SignedProposal, SignedVote,
    VoteType, VotingPower,
};
use primitives::{PublicKey, SecretKey, Signature};
use proofs::{Chain, Index};

use super::message::{Kind, Proposal, Round, Value, Vote};

/// The proposer of a round of a height; each validator is first in turn.
pub(crate) fn proposer(height: u64, round: Round, size: usize) -> Index {
    ((height % size as u64 + u64::from(round) % size as u64) % size as u64) as Index
}

pub(super) fn round_of(round: MaybeRound) -> Round {
    round.as_u32().unwrap_or(0)
}

/// The set of all types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Height(pub(super) u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member(pub(super) Index);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validator {
    address: Member,
    key: PublicKey,
}

/// The validators by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validators(Vec<Validator>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsignedVote {
    height: Height,
    round: MaybeRound,
    kind: VoteType,
    value: NilOrVal<Value>,
    signer: Member,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsignedProposal {
    height: Height,
    round: MaybeRound,
    value: Value,
    valid_round: MaybeRound,
    signer: Member,
}

/// Payloads are sent whole, like sub-blocks of the other engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoPart;

/// Signatures as the chain makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ed25519;

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.digest, self.slot)
    }
}

impl malachite::Height for Height {
    const ZERO: Height = Height(0);
    const INITIAL: Height = Height(1);

    fn increment_by(&self, n: u64) -> Height {
        Height(self.0.saturating_add(n))
    }

    fn decrement_by(&self, n: u64) -> Option<Height> {
        self.0.checked_sub(n).map(Height)
    }

    fn as_u64(&self) -> u64 {
        self.0
    }
}

impl malachite::Address for Member {}

impl malachite::Value for Value {
    type Id = Value;

    fn id(&self) -> Value {
        *self
    }
}

impl malachite::ProposalPart<Types> for NoPart {
    fn is_first(&self) -> bool {
        true
    }

    fn is_last(&self) -> bool {
        true
    }
}

impl malachite::Validator<Types> for Validator {
    fn address(&self) -> &Member {
        &self.address
    }

    fn public_key(&self) -> &PublicKey {
        &self.key
    }

    fn voting_power(&self) -> VotingPower {
        1
    }
}

impl Validators {
    pub(super) fn of(chain: &Chain) -> Validators {
        let validator = |(index, key): (usize, &PublicKey)| Validator { address: Member(index as Index), key: *key };
        Validators(chain.keys.iter().enumerate().map(validator).collect())
    }
}

impl malachite::ValidatorSet<Types> for Validators {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn total_voting_power(&self) -> VotingPower {
        self.0.len() as VotingPower
    }

    fn get_by_address(&self, address: &Member) -> Option<&Validator> {
        self.0.get(usize::from(address.0))
    }

    fn get_by_index(&self, index: usize) -> Option<&Validator> {
        self.0.get(index)
    }
}

impl malachite::Vote<Types> for UnsignedVote {
    fn height(&self) -> Height {
        self.height
    }

    fn round(&self) -> MaybeRound {
        self.round
    }

    fn value(&self) -> &NilOrVal<Value> {
        &self.value
    }

    fn take_value(self) -> NilOrVal<Value> {
        self.value
    }

    fn vote_type(&self) -> VoteType {
        self.kind
    }

    fn validator_address(&self) -> &Member {
        &self.signer
    }

    fn extension(&self) -> Option<&SignedExtension<Types>> {
        None
    }

    fn take_extension(&mut self) -> Option<SignedExtension<Types>> {
        None
    }

    fn extend(self, _: SignedExtension<Types>) -> UnsignedVote {
        self
    }
}

impl malachite::Proposal<Types> for UnsignedProposal {
    fn height(&self) -> Height {
        self.height
    }

    fn round(&self) -> MaybeRound {
        self.round
    }

    fn value(&self) -> &Value {
        &self.value
    }

    fn take_value(self) -> Value {
        self.value
    }

    fn pol_round(&self) -> MaybeRound {
        self.valid_round
    }

    fn validator_address(&self) -> &Member {
        &self.signer
    }
}

impl malachite::SigningScheme for Ed25519 {
    type DecodingError = std::array::TryFromSliceError;
    type Signature = Signature;
    type PublicKey = PublicKey;
    type PrivateKey = SecretKey;

    fn decode_signature(bytes: &[u8]) -> Result<Signature, Self::DecodingError> {
        bytes.try_into().map(Signature)
    }

    fn encode_signature(signature: &Signature) -> Vec<u8> {
        signature.0.to_vec()
    }

    fn decode_public_key(bytes: &[u8]) -> Result<PublicKey, Self::DecodingError> {
        bytes.try_into().map(PublicKey)
    }

    fn encode_public_key(key: &PublicKey) -> Vec<u8> {
        key.0.to_vec()
    }
}

impl malachite::Context for Types {
    type Address = Member;
    type Height = Height;
    type ProposalPart = NoPart;
    type Proposal = UnsignedProposal;
    type Validator = Validator;
    type ValidatorSet = Validators;
    type Timeouts = LinearTimeouts;
    type Value = Value;
    type Vote = UnsignedVote;
    type Extension = ();
    type SigningScheme = Ed25519;

    fn select_proposer<'a>(&self, validators: &'a Validators, height: Height, round: MaybeRound) -> &'a Validator {
        &validators.0[usize::from(proposer(height.0, round_of(round), validators.0.len()))]
    }

    fn new_proposal(
        &self,
        height: Height,
        round: MaybeRound,
        value: Value,
        valid_round: MaybeRound,
        signer: Member,
    ) -> UnsignedProposal {
        UnsignedProposal { height, round, value, valid_round, signer }
    }

    fn new_prevote(&self, height: Height, round: MaybeRound, value: NilOrVal<Value>, signer: Member) -> UnsignedVote {
        UnsignedVote { height, round, kind: VoteType::Prevote, value, signer }
    }

    fn new_precommit(&self, height: Height, round: MaybeRound, value: NilOrVal<Value>, signer: Member) -> UnsignedVote {
        UnsignedVote { height, round, kind: VoteType::Precommit, value, signer }
    }
}

impl Vote {
    /// In the form in which it is sent.
    pub(super) fn of(vote: &UnsignedVote, signature: Signature) -> Vote {
        Vote {
            height: vote.height.0,
            round: round_of(vote.round),
            kind: match vote.kind {
                VoteType::Prevote => Kind::Prevote,
                VoteType::Precommit => Kind::Precommit,
            },
            value: match vote.value {
                NilOrVal::Nil => None,
                NilOrVal::Val(value) => Some(value),
            },
            signer: vote.signer.0,
            signature,
        }
    }

    /// In the form of the round logic.
    pub(super) fn lift(&self) -> SignedVote<Types> {
        let vote = UnsignedVote {
            height: Height(self.height),
            round: MaybeRound::new(self.round),
            kind: match self.kind {
                Kind::Prevote => VoteType::Prevote,
                Kind::Precommit => VoteType::Precommit,
            },
            value: self.value.map_or(NilOrVal::Nil, NilOrVal::Val),
            signer: Member(self.signer),
        };
        SignedVote::new(vote, self.signature)
    }
}

impl Proposal {
    /// In the form in which it is sent.
    pub(super) fn of(proposal: &UnsignedProposal, signature: Signature) -> Proposal {
        Proposal {
            height: proposal.height.0,
            round: round_of(proposal.round),
            value: proposal.value,
            valid_round: proposal.valid_round.as_u32(),
            signer: proposal.signer.0,
            signature,
        }
    }

    /// In the form of the round logic.
    pub(super) fn lift(&self) -> SignedProposal<Types> {
        let proposal = UnsignedProposal {
            height: Height(self.height),
            round: MaybeRound::new(self.round),
            value: self.value,
            valid_round: MaybeRound::from(self.valid_round),
            signer: Member(self.signer),
        };
        SignedProposal::new(proposal, self.signature)
    }
}
