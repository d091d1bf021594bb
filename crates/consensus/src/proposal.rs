//! Proposals: a validator's sub-block for a height, named by digest and signed, so that who signs two can be shown to have.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Committed, Contradiction, Digest, Proposed, PublicKey, SecretKey, Signature};

use crate::chain::Chain;
use crate::committee::Index;

const PAYLOAD_CONTEXT: &str = "walras 2026 consensus payload v1";

/// The bytes of a sub-block; consensus does not look into them.
pub type Payload = Arc<[u8]>;

/// The digest by which votes name a payload.
pub fn payload_digest(payload: &[u8]) -> Digest {
    Digest::of(PAYLOAD_CONTEXT, payload)
}

/// What a proposer signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proposal {
    /// The height.
    pub height: u64,
    /// The proposer's slot.
    pub slot: Index,
    /// Of the payload.
    pub digest: Digest,
    /// Of the payload, in bytes.
    pub length: u32,
    /// The proposer's, on all of it, the chain and the epoch.
    pub signature: Signature,
}

impl Proposal {
    /// Signs a payload for a height.
    pub fn sign(chain: &Chain, height: u64, slot: Index, payload: &[u8], secret: &SecretKey) -> Proposal {
        let (digest, length) = (payload_digest(payload), payload.len() as u32);
        let unsigned = Proposal { height, slot, digest, length, signature: Signature([0; 64]) };
        Proposal { signature: secret.sign(&unsigned.signed(chain).0), ..unsigned }
    }

    /// Whether the slot's validator signed it.
    pub fn is_signed(&self, chain: &Chain) -> bool {
        let key: Option<&PublicKey> = chain.keys.get(usize::from(self.slot));
        key.is_some_and(|key| key.verify(&self.signed(chain).0, &self.signature))
    }

    /// Whether these are its bytes.
    pub fn is_of(&self, payload: &[u8]) -> bool {
        self.length as usize == payload.len() && self.digest == payload_digest(payload)
    }

    fn signed(&self, chain: &Chain) -> Digest {
        chain.scope().proposal(self.height, self.slot, &self.digest, self.length)
    }
}

/// Two signed statements of one validator of which it may make but one: a proof that holds before anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Evidence {
    /// Two proposals for one slot.
    Proposals(Proposal, Proposal),
    /// Two commits of one height.
    Commits(crate::Commit, crate::Commit),
    /// Two votes of one kind in one round.
    Votes(crate::tendermint::Vote, crate::tendermint::Vote),
    /// Two proposals of one round.
    RoundProposals(crate::tendermint::Proposal, crate::tendermint::Proposal),
}

impl Evidence {
    /// Whom it convicts, if it does.
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

    /// The same as a ledger takes it, which holds it against the key of this validator in this epoch; `None` of what is said
    /// in rounds, which no ledger takes.
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
            Evidence::Votes(..) | Evidence::RoundProposals(..) => return None,
        };
        Some(primitives::Evidence { epoch: chain.epoch, member, height, contradiction })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Commit, Statement};

    /// What convicts here convicts in a ledger, and nothing else does.
    #[test]
    fn evidence_convicts_in_a_ledger_as_well() {
        let secrets: Vec<SecretKey> = (0..4).map(|seed| SecretKey::from_seed([seed; 32])).collect();
        let keys = secrets.iter().map(SecretKey::public).collect();
        let chain = Chain { genesis: Digest([7; 32]), epoch: 5, heights: 1..=20, keys };
        let proposal = |payload: &[u8]| Proposal::sign(&chain, 9, 2, payload, &secrets[2]);
        let commit = |root: u8| {
            let statement = Statement { height: 9, superblock: Digest([1; 32]), root: Digest([root; 32]) };
            Commit::sign(&chain, statement, 2, &secrets[2])
        };
        for evidence in [
            Evidence::Proposals(proposal(b"one"), proposal(b"two")),
            Evidence::Proposals(proposal(b"one"), proposal(b"one")),
            Evidence::Commits(commit(1), commit(2)),
            Evidence::Commits(commit(1), commit(1)),
        ] {
            let convicted = evidence.convicts(&chain).is_some();
            let accusation = evidence.accusation(&chain).expect("of superblocks");
            assert_eq!((accusation.epoch, accusation.member, accusation.height), (5, 2, 9));
            assert_eq!(accusation.convicts(chain.genesis, &chain.keys[2]), convicted, "{evidence:?}");
            assert!(!accusation.convicts(chain.genesis, &chain.keys[1]));
        }
    }
}
