//! Proposals: a validator's sub-block for a height, named by digest and signed, so that signing two can be proved.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{
    Committed, Contradiction, Digest, Proposed, PublicKey, RoundProposed, RoundVoted, SecretKey, Signable, Signature,
    SigningRequest,
};
use proofs::{Chain, Index};

use crate::tendermint;

const PAYLOAD_CONTEXT: &str = "walras 2026 consensus payload v1";

/// The bytes of a sub-block; consensus does not look into them.
pub type Payload = Arc<[u8]>;

/// The digest by which votes name a payload.
pub fn payload_digest(payload: &[u8]) -> Digest {
    Digest::of(PAYLOAD_CONTEXT, payload)
}

/// The proposer's signed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proposal {
    /// The height.
    pub height: u64,
    /// The proposer's slot.
    pub slot: Index,
    /// The digest of the payload.
    pub digest: Digest,
    /// The length of the payload in bytes.
    pub length: u32,
    /// The proposer's signature over all of it, the chain and the epoch.
    pub signature: Signature,
}

impl Proposal {
    /// Signs a payload for a height.
    pub fn sign(chain: &Chain, height: u64, slot: Index, payload: &[u8], secret: &SecretKey) -> Proposal {
        let unsigned = Proposal::unsigned(height, slot, payload);
        Proposal { signature: secret.sign(&unsigned.signed(chain).0), ..unsigned }
    }

    pub(crate) fn unsigned(height: u64, slot: Index, payload: &[u8]) -> Proposal {
        let (digest, length) = (payload_digest(payload), payload.len() as u32);
        Proposal { height, slot, digest, length, signature: Signature([0; 64]) }
    }

    pub(crate) fn to_sign(self, chain: &Chain) -> SigningRequest {
        let Proposal { height, slot, digest, length, .. } = self;
        let statement = Signable::Proposal { slot, payload: digest, length };
        SigningRequest { scope: chain.scope(), height, statement }
    }

    /// Whether the slot's validator signed it.
    pub fn is_signed(&self, chain: &Chain) -> bool {
        let key: Option<&PublicKey> = chain.keys.get(usize::from(self.slot));
        key.is_some_and(|key| key.verify(&self.signed(chain).0, &self.signature))
    }

    /// Whether these are the bytes of its payload.
    pub fn is_of(&self, payload: &[u8]) -> bool {
        self.length as usize == payload.len() && self.digest == payload_digest(payload)
    }

    fn signed(&self, chain: &Chain) -> Digest {
        self.to_sign(chain).digest()
    }
}

/// Two signed statements of one validator that may make only one: a proof for anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Evidence {
    /// Two proposals for one slot.
    Proposals(Proposal, Proposal),
    /// Two commits of one height.
    Commits(crate::Commit, crate::Commit),
    /// Two votes of one kind in one round.
    Votes(tendermint::Vote, tendermint::Vote),
    /// Two proposals of one round.
    RoundProposals(tendermint::Proposal, tendermint::Proposal),
}

impl Evidence {
    /// The validator that it convicts, if it is valid.
    pub fn convicts(&self, chain: &Chain) -> Option<Index> {
        match self {
            Evidence::Proposals(a, b) => {
                let alike = (a.height, a.slot) == (b.height, b.slot);
                let differ = (a.digest, a.length) != (b.digest, b.length);
                (alike && differ && a.is_signed(chain) && b.is_signed(chain)).then_some(a.slot)
            }
            Evidence::Commits(a, b) => {
                let alike = (a.signer, a.statement.height) == (b.signer, b.statement.height);
                let differ = a.statement != b.statement;
                (alike && differ && a.is_signed(chain) && b.is_signed(chain)).then_some(a.signer)
            }
            Evidence::Votes(a, b) => {
                let alike = (a.height, a.round, a.kind, a.signer) == (b.height, b.round, b.kind, b.signer);
                let differ = a.value != b.value;
                (alike && differ && a.is_signed(chain) && b.is_signed(chain)).then_some(a.signer)
            }
            Evidence::RoundProposals(a, b) => {
                let alike = (a.height, a.round, a.signer) == (b.height, b.round, b.signer);
                let differ = (a.value, a.valid_round) != (b.value, b.valid_round);
                (alike && differ && a.is_signed(chain) && b.is_signed(chain)).then_some(a.signer)
            }
        }
    }

    /// The evidence in the form that a ledger takes, which verifies it with the key of this validator in this epoch.
    /// `None` if the two statements do not concern the same place and so prove nothing.
    pub fn accusation(&self, chain: &Chain) -> Option<primitives::Evidence> {
        let (member, height, contradiction) = match self {
            Evidence::Proposals(a, b) => {
                let of =
                    |one: &Proposal| Proposed { payload: one.digest, length: one.length, signature: one.signature };
                (a.slot, a.height, Contradiction::Proposals([a, b].map(of)))
            }
            Evidence::Commits(a, b) => {
                let of = |one: &crate::Commit| Committed {
                    superblock: one.statement.superblock,
                    root: one.statement.root,
                    signature: one.signature,
                };
                (a.signer, a.statement.height, Contradiction::Commits([a, b].map(of)))
            }
            Evidence::Votes(a, b) => {
                let of = |one: &tendermint::Vote| RoundVoted {
                    value: one.value.map(|value| value.signed()),
                    signature: one.signature,
                };
                let contradiction = Contradiction::RoundVotes { round: a.round, kind: a.kind, votes: [a, b].map(of) };
                (a.signer, a.height, contradiction)
            }
            Evidence::RoundProposals(a, b) => {
                let of = |one: &tendermint::Proposal| RoundProposed {
                    value: one.value.signed(),
                    valid_round: one.valid_round,
                    signature: one.signature,
                };
                let proposals = [a, b].map(of);
                (a.signer, a.height, Contradiction::RoundProposals { round: a.round, proposals })
            }
        };
        let accusation = primitives::Evidence { epoch: chain.epoch, member, height, contradiction };
        self.convicts(chain).is_some().then_some(accusation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Commit;
    use crate::tendermint::{Kind, Value};
    use proofs::Statement;

    /// Evidence that convicts here also convicts in a ledger, and nothing else is sent to one.
    #[test]
    fn evidence_convicts_in_a_ledger_as_well() {
        let secrets: Vec<SecretKey> = (0..4).map(|seed| SecretKey::from_seed([seed; 32])).collect();
        let keys = secrets.iter().map(SecretKey::public).collect();
        let chain = Chain { genesis: Digest([7; 32]), epoch: 5, heights: 1..=20, keys };
        let signature = Signature([0; 64]);
        let proposal = |payload: &[u8]| Proposal::sign(&chain, 9, 2, payload, &secrets[2]);
        let commit = |root: u8| {
            let statement = Statement { height: 9, superblock: Digest([1; 32]), root: Digest([root; 32]) };
            Commit::sign(&chain, statement, 2, &secrets[2])
        };
        let value = |byte: u8| Value { slot: 1, digest: Digest([byte; 32]) };
        let vote = |value: Option<Value>, round: u32| {
            let kind = Kind::Precommit;
            tendermint::Vote { height: 9, round, kind, value, signer: 2, signature }.sign(&chain, &secrets[2])
        };
        let in_round = |value: Value, valid_round: Option<u32>| {
            tendermint::Proposal { height: 9, round: 3, value, valid_round, signer: 2, signature }
                .sign(&chain, &secrets[2])
        };
        for (convicted, evidence) in [
            (true, Evidence::Proposals(proposal(b"one"), proposal(b"two"))),
            (false, Evidence::Proposals(proposal(b"one"), proposal(b"one"))),
            (true, Evidence::Commits(commit(1), commit(2))),
            (false, Evidence::Commits(commit(1), commit(1))),
            (true, Evidence::Votes(vote(Some(value(1)), 4), vote(Some(value(2)), 4))),
            (true, Evidence::Votes(vote(None, 4), vote(Some(value(2)), 4))),
            (false, Evidence::Votes(vote(None, 4), vote(Some(value(2)), 5))),
            (false, Evidence::Votes(vote(None, 4), vote(None, 4))),
            (true, Evidence::RoundProposals(in_round(value(1), None), in_round(value(2), None))),
            (true, Evidence::RoundProposals(in_round(value(1), None), in_round(value(1), Some(1)))),
            (false, Evidence::RoundProposals(in_round(value(1), None), in_round(value(1), None))),
        ] {
            assert_eq!(evidence.convicts(&chain).is_some(), convicted, "{evidence:?}");
            let Some(accusation) = evidence.accusation(&chain) else {
                assert!(!convicted, "{evidence:?}");
                continue;
            };
            assert_eq!((accusation.epoch, accusation.member, accusation.height), (5, 2, 9));
            assert!(accusation.convicts(chain.genesis, &chain.keys[2]), "{evidence:?}");
            assert!(!accusation.convicts(chain.genesis, &chain.keys[1]));
        }
    }
}
