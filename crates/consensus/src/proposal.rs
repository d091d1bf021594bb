//! Proposals: a validator's sub-block for a height, named by digest and signed, so that who signs two can be shown to have.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, PublicKey, SecretKey, Signature};

use crate::chain::Chain;
use crate::committee::Index;

const PAYLOAD_CONTEXT: &str = "walras 2026 consensus payload v1";
const PROPOSAL_CONTEXT: &str = "walras 2026 consensus proposal v1";

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
        let Proposal { height, slot, digest, length, .. } = self;
        chain.digest(PROPOSAL_CONTEXT, &(height, slot, digest, length))
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
}
