//! The statements that validators sign in consensus, and the evidence that two contradictory signatures form.
//!
//! At a height a validator may sign one statement of a kind: propose one sub-block, and commit to one outcome. Where
//! heights are decided by rounds, it may vote once of each kind in a round, and propose one value there. Two different
//! signed statements of one kind prove the contradiction to anyone who knows the epoch's keys: that is [`Evidence`].
//! Every signed statement is a digest of its own kind over the network, the epoch and the statement. So no signature is
//! valid for another network.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Address, Digest, Height, PublicKey, SecretKey, Signature, from_hex};

const PROPOSAL_CONTEXT: &str = "walras 2026 consensus proposal v1";
const COMMIT_CONTEXT: &str = "walras 2026 consensus commit v1";
const ROUND_VOTE_CONTEXT: &str = "walras 2026 consensus tendermint vote v1";
const ROUND_PROPOSAL_CONTEXT: &str = "walras 2026 consensus tendermint proposal v1";
const POSSESSION_CONTEXT: &str = "walras 2026 validator key possession v1";

/// Longest network address of a validator, in bytes: a DNS name and a port.
const ADDRESS_BYTES_MAX: usize = 260;

/// The network and the epoch of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Scope {
    /// The identity of the network.
    pub network: Digest,
    /// The number of the epoch.
    pub epoch: u64,
}

impl Scope {
    fn digest(&self, context: &'static str, what: &impl BorshSerialize) -> Digest {
        let bytes = borsh::to_vec(&(self.network, self.epoch, what)).expect("writing to memory cannot fail");
        Digest::of(context, &bytes)
    }

    /// What a proposer signs: the digest and the length of its sub-block for a slot of a height.
    pub fn proposal(&self, height: Height, slot: u8, payload: &Digest, length: u32) -> Digest {
        self.digest(PROPOSAL_CONTEXT, &(height, slot, payload, length))
    }

    /// What a validator signs at the end of a height: the superblock, and the outcome that it has reached.
    pub fn commit(&self, height: Height, superblock: &Digest, root: &Digest) -> Digest {
        self.digest(COMMIT_CONTEXT, &(height, superblock, root))
    }

    /// What a validator signs when it votes in a round: for a value, or for nil.
    pub fn round_vote(&self, height: Height, round: u32, kind: VoteKind, value: Option<&RoundValue>) -> Digest {
        self.digest(ROUND_VOTE_CONTEXT, &(height, round, kind, value))
    }

    /// What the proposer of a round signs: a value, and the round in which more than two thirds prevoted for it, if
    /// there was one.
    pub fn round_proposal(&self, height: Height, round: u32, value: &RoundValue, valid_round: Option<u32>) -> Digest {
        self.digest(ROUND_PROPOSAL_CONTEXT, &(height, round, value, valid_round))
    }
}

/// The two votes of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum VoteKind {
    /// The proposal of the round is valid, and no lock forbids it.
    Prevote,
    /// More than two thirds prevoted for the value.
    Precommit,
}

/// What rounds decide on: a sub-block, identified by its proposer and the digest of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct RoundValue {
    /// The slot of the proposer.
    pub slot: u8,
    /// Digest of the payload.
    pub digest: Digest,
}

/// A statement of a validator about a height. A validator may make only one of a kind, or of a kind in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Signable {
    /// See [`Scope::proposal`].
    Proposal {
        /// The proposer's slot.
        slot: u8,
        /// Digest of the sub-block's payload.
        payload: Digest,
        /// Length of the sub-block in bytes.
        length: u32,
    },
    /// See [`Scope::commit`].
    Commit {
        /// Digest of the superblock.
        superblock: Digest,
        /// The lagged outcome: that of an earlier height.
        root: Digest,
    },
    /// See [`Scope::round_vote`].
    RoundVote {
        /// The round.
        round: u32,
        /// The kind of vote.
        kind: VoteKind,
        /// The value; `None` is a vote for nil.
        value: Option<RoundValue>,
    },
    /// See [`Scope::round_proposal`].
    RoundProposal {
        /// The round.
        round: u32,
        /// The proposed value.
        value: RoundValue,
        /// The round in which more than two thirds prevoted for it, if it is proposed again.
        valid_round: Option<u32>,
    },
}

/// A statement for a validator to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SigningRequest {
    /// The network and the epoch.
    pub scope: Scope,
    /// The height that the statement is about.
    pub height: Height,
    /// The statement.
    pub statement: Signable,
}

impl SigningRequest {
    /// The digest that is signed.
    pub fn digest(&self) -> Digest {
        let SigningRequest { scope, height, statement } = self;
        match statement {
            Signable::Proposal { slot, payload, length } => scope.proposal(*height, *slot, payload, *length),
            Signable::Commit { superblock, root } => scope.commit(*height, superblock, root),
            Signable::RoundVote { round, kind, value } => scope.round_vote(*height, *round, *kind, value.as_ref()),
            Signable::RoundProposal { round, value, valid_round } => {
                scope.round_proposal(*height, *round, value, *valid_round)
            }
        }
    }

    /// Its kind and its round: at a height of a network only one statement may be signed for each.
    pub fn place(&self) -> (u8, u32) {
        match self.statement {
            Signable::Proposal { .. } => (0, 0),
            Signable::Commit { .. } => (1, 0),
            Signable::RoundVote { round, kind: VoteKind::Prevote, .. } => (2, round),
            Signable::RoundVote { round, kind: VoteKind::Precommit, .. } => (3, round),
            Signable::RoundProposal { round, .. } => (4, round),
        }
    }
}

/// One of two sub-blocks that were proposed for one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proposed {
    /// Digest of the sub-block's payload.
    pub payload: Digest,
    /// Length of the sub-block in bytes.
    pub length: u32,
    /// The proposer's signature on [`Scope::proposal`].
    pub signature: Signature,
}

/// One of two outcomes that were committed at one height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Committed {
    /// Digest of the superblock.
    pub superblock: Digest,
    /// The lagged outcome: that of an earlier height.
    pub root: Digest,
    /// The validator's signature on [`Scope::commit`].
    pub signature: Signature,
}

/// One of two votes of one kind in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RoundVoted {
    /// The value; `None` is a vote for nil.
    pub value: Option<RoundValue>,
    /// The validator's signature on [`Scope::round_vote`].
    pub signature: Signature,
}

/// One of two proposals of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RoundProposed {
    /// The proposed value.
    pub value: RoundValue,
    /// The round in which more than two thirds prevoted for it, if it was proposed again.
    pub valid_round: Option<u32>,
    /// The proposer's signature on [`Scope::round_proposal`].
    pub signature: Signature,
}

/// Two statements of which a validator may make only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Contradiction {
    /// Two sub-blocks.
    Proposals([Proposed; 2]),
    /// Two outcomes.
    Commits([Committed; 2]),
    /// Two votes of a round.
    RoundVotes {
        /// The round.
        round: u32,
        /// The kind of both votes.
        kind: VoteKind,
        /// The votes.
        votes: [RoundVoted; 2],
    },
    /// Two proposals of a round.
    RoundProposals {
        /// The round.
        round: u32,
        /// The proposals.
        proposals: [RoundProposed; 2],
    },
}

impl Contradiction {
    /// A short name, as used by an API.
    pub fn name(&self) -> &'static str {
        match self {
            Contradiction::Proposals(_) => "proposals",
            Contradiction::Commits(_) => "commits",
            Contradiction::RoundVotes { .. } => "round_votes",
            Contradiction::RoundProposals { .. } => "round_proposals",
        }
    }

    /// The digests and signatures of both statements, if they are made by member `slot` about a height.
    fn statements(&self, scope: &Scope, height: Height, slot: u8) -> [(Digest, Signature); 2] {
        match self {
            Contradiction::Proposals(both) => {
                both.map(|one| (scope.proposal(height, slot, &one.payload, one.length), one.signature))
            }
            Contradiction::Commits(both) => {
                both.map(|one| (scope.commit(height, &one.superblock, &one.root), one.signature))
            }
            Contradiction::RoundVotes { round, kind, votes } => {
                votes.map(|one| (scope.round_vote(height, *round, *kind, one.value.as_ref()), one.signature))
            }
            Contradiction::RoundProposals { round, proposals } => {
                let signed = |one: RoundProposed| scope.round_proposal(height, *round, &one.value, one.valid_round);
                proposals.map(|one| (signed(one), one.signature))
            }
        }
    }
}

/// The proof that a member of an epoch's committee contradicted itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Evidence {
    /// The epoch.
    pub epoch: u64,
    /// The member's index in the committee, which is its slot.
    pub member: u8,
    /// The height that both statements are about.
    pub height: Height,
    /// The statements.
    pub contradiction: Contradiction,
}

impl Evidence {
    /// Whether both statements differ, and are both signed by `key`, the member's key in this network and epoch.
    pub fn convicts(&self, network: Digest, key: &PublicKey) -> bool {
        let scope = Scope { network, epoch: self.epoch };
        // The digests differ if the statements do: each covers all fields of its kind.
        let both = self.contradiction.statements(&scope, self.height, self.member);
        both[0].0 != both[1].0 && both.iter().all(|(digest, signature)| key.verify(&digest.0, signature))
    }
}

/// An account's stake, and the validator it names.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Stake {
    /// Units of asset 0 to add to the stake.
    pub units: u64,
    /// The key with which the validator signs and authenticates, from the next draw on.
    pub key: PublicKey,
    /// Host and port (UDP) where other validators reach it.
    pub address: String,
    /// The validator key's signature on the chain and the account: without it anyone could claim another validator's
    /// key.
    pub possession: Signature,
}

impl Stake {
    /// The stake of `account`, with the proof that its holder has the validator's key.
    pub fn new(units: u64, address: String, chain: u64, account: &Address, validator: &SecretKey) -> Stake {
        let possession = validator.sign(&possession(chain, account).0);
        Stake { units, key: validator.public(), address, possession }
    }

    /// Whether the holder of the validator's key agreed to validate for `account`.
    pub fn is_possessed(&self, chain: u64, account: &Address) -> bool {
        self.key.verify(&possession(chain, account).0, &self.possession)
    }
}

fn possession(chain: u64, account: &Address) -> Digest {
    let bytes = borsh::to_vec(&(chain, account)).expect("writing to memory cannot fail");
    Digest::of(POSSESSION_CONTEXT, &bytes)
}

/// Whether a text can be a validator's network address: host and port, printable, at most 260 bytes. If the key of
/// its links is not the key that it signs with, the address begins with that key in hexadecimal digits and an `@`.
pub fn is_network_address(text: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p > 0);
    text.len() <= ADDRESS_BYTES_MAX
        && text.bytes().all(|b| b.is_ascii_graphic())
        && link_key(text).is_some_and(|(_, rest)| {
            rest.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && is_port(port))
        })
}

/// The key of the links in a network address, if it names one, and the host and port. `None` if the part before an
/// `@` is not a key.
pub fn link_key(address: &str) -> Option<(Option<PublicKey>, &str)> {
    match address.split_once('@') {
        Some((key, rest)) => Some((Some(PublicKey(from_hex(key).ok()?)), rest)),
        None => Some((None, address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: Digest = Digest([7; 32]);

    fn proposed(key: &SecretKey, epoch: u64, height: Height, slot: u8, payload: u8) -> Proposed {
        let (payload, length) = (Digest([payload; 32]), 5);
        let signed = Scope { network: NETWORK, epoch }.proposal(height, slot, &payload, length);
        Proposed { payload, length, signature: key.sign(&signed.0) }
    }

    fn committed(key: &SecretKey, epoch: u64, height: Height, root: u8) -> Committed {
        let (superblock, root) = (Digest([1; 32]), Digest([root; 32]));
        let signed = Scope { network: NETWORK, epoch }.commit(height, &superblock, &root);
        Committed { superblock, root, signature: key.sign(&signed.0) }
    }

    fn voted(key: &SecretKey, kind: VoteKind, value: Option<u8>) -> RoundVoted {
        let value = value.map(|byte| RoundValue { slot: 1, digest: Digest([byte; 32]) });
        let signed = Scope { network: NETWORK, epoch: 3 }.round_vote(9, 4, kind, value.as_ref());
        RoundVoted { value, signature: key.sign(&signed.0) }
    }

    fn round_proposed(key: &SecretKey, payload: u8, valid_round: Option<u32>) -> RoundProposed {
        let value = RoundValue { slot: 1, digest: Digest([payload; 32]) };
        let signed = Scope { network: NETWORK, epoch: 3 }.round_proposal(9, 4, &value, valid_round);
        RoundProposed { value, valid_round, signature: key.sign(&signed.0) }
    }

    #[test]
    fn two_statements_of_one_kind_convict_their_signer_alone() {
        let (key, other) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
        let proposals = |a, b| Evidence {
            epoch: 3,
            member: 2,
            height: 9,
            contradiction: Contradiction::Proposals([proposed(&key, 3, 9, 2, a), proposed(&key, 3, 9, 2, b)]),
        };
        let commits = |a, b| Evidence {
            epoch: 3,
            member: 2,
            height: 9,
            contradiction: Contradiction::Commits([committed(&key, 3, 9, a), committed(&key, 3, 9, b)]),
        };
        let of = |contradiction| Evidence { epoch: 3, member: 2, height: 9, contradiction };
        let (prevote, precommit) = (VoteKind::Prevote, VoteKind::Precommit);
        let votes = |kind, round, both: [Option<u8>; 2]| {
            of(Contradiction::RoundVotes { round, kind, votes: both.map(|value| voted(&key, prevote, value)) })
        };
        let in_round = |round, both: [(u8, Option<u32>); 2]| {
            let proposals = both.map(|(payload, valid_round)| round_proposed(&key, payload, valid_round));
            of(Contradiction::RoundProposals { round, proposals })
        };
        let guilty = [
            proposals(1, 2),
            commits(1, 2),
            votes(prevote, 4, [Some(1), Some(2)]),
            votes(prevote, 4, [None, Some(1)]),
            in_round(4, [(1, None), (2, None)]),
            in_round(4, [(1, None), (1, Some(2))]),
        ];
        for evidence in guilty {
            assert!(evidence.convicts(NETWORK, &key.public()));
            assert!(!evidence.convicts(NETWORK, &other.public()), "another's key");
            assert!(!evidence.convicts(Digest([8; 32]), &key.public()), "another network");
            assert!(!Evidence { epoch: 4, ..evidence }.convicts(NETWORK, &key.public()), "another epoch");
            assert!(!Evidence { height: 8, ..evidence }.convicts(NETWORK, &key.public()), "another height");
        }
        assert!(!Evidence { member: 1, ..proposals(1, 2) }.convicts(NETWORK, &key.public()), "another slot");
        assert!(!proposals(1, 1).convicts(NETWORK, &key.public()), "one statement twice");
        assert!(!commits(1, 1).convicts(NETWORK, &key.public()), "one statement twice");
        for innocent in [
            votes(prevote, 4, [Some(1), Some(1)]),
            votes(prevote, 4, [None, None]),
            votes(prevote, 5, [Some(1), Some(2)]),
            votes(precommit, 4, [Some(1), Some(2)]),
            in_round(4, [(1, Some(2)), (1, Some(2))]),
            in_round(5, [(1, None), (2, None)]),
        ] {
            assert!(!innocent.convicts(NETWORK, &key.public()), "{innocent:?}");
        }
        // A prevote for one value and a precommit for another are both legal.
        let mixed = [voted(&key, prevote, Some(1)), voted(&key, precommit, Some(2))];
        for kind in [prevote, precommit] {
            let evidence = of(Contradiction::RoundVotes { round: 4, kind, votes: mixed });
            assert!(!evidence.convicts(NETWORK, &key.public()));
        }
    }

    #[test]
    fn a_validator_key_agrees_to_one_account_of_one_chain() {
        let validator = SecretKey::from_seed([1; 32]);
        let stake = Stake::new(5, "a.example:9100".into(), 1, &Address([2; 20]), &validator);
        assert!(stake.is_possessed(1, &Address([2; 20])));
        assert!(!stake.is_possessed(2, &Address([2; 20])) && !stake.is_possessed(1, &Address([3; 20])));
        let other = Stake { key: SecretKey::from_seed([2; 32]).public(), ..stake };
        assert!(!other.is_possessed(1, &Address([2; 20])));
    }

    #[test]
    fn network_addresses_are_host_and_port() {
        let long = format!("{}:1", "a".repeat(258));
        let key = SecretKey::from_seed([3; 32]).public();
        let named = format!("{}@a.example:9100", crate::to_hex(&key.0));
        assert_eq!(link_key(&named), Some((Some(key), "a.example:9100")));
        assert_eq!(link_key("a.example:9100"), Some((None, "a.example:9100")));
        for good in ["a.example:9100", "127.0.0.1:1", "[::1]:65535", &long, &named] {
            assert!(is_network_address(good), "{good}");
        }
        for bad in ["somebody@a.example:9100", "@a.example:9100", &named.replace(":9100", ""), &named[1..]] {
            assert!(!is_network_address(bad), "{bad}");
        }
        let longer = format!("{}:1", "a".repeat(259));
        for bad in ["", ":1", "a", "a:", "a:0", "a:+1", "a:65536", "a b:1", "a:1 ", "ä:1", &longer] {
            assert!(!is_network_address(bad), "{bad}");
        }
    }
}
