//! What a key generation is for: its contexts, its thresholds, and what the committee's sealing key needs beside.
//!
//! The lane and the sealed orders have one key generation. Its messages name what it is for, so that no dealing,
//! complaint or share of one counts in the other. A sealing key's share proves that its holder has it by a signature in
//! another domain than that of opening keys: the proof opens nothing.

use primitives::{Address, Digest};

use super::{DkgTerms, GroupKey, KeyShare, points};
use crate::bls::{self, BlsPublicKey, BlsSecretKey, BlsSignature};

/// The prefix of what is signed in the generation of a sealing key.
pub(super) const SEALS_TAG: &[u8] = b"walras-seals\x01";
const REGISTERS: u8 = 1;
const HOLDS: u8 = 2;
const KEY_CONTEXT: &str = "walras 2026 seals dkg key of a seat v1";
const SEED_CONTEXT: &str = "walras 2026 seals dkg seed of a dealing v1";

/// What a generated key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DkgPurpose {
    /// Certificates of the payment lane: a quorum of shares signs.
    Lane,
    /// Opening envelopes.
    Seals {
        /// How many shares open one.
        needed: u8,
        /// How many members must hold a share.
        holders: u8,
    },
}

/// The contexts of what is hashed.
pub(super) struct Contexts {
    pub pad: &'static str,
    pub proof: &'static str,
    pub deal: &'static str,
    pub nonce: &'static str,
}

impl DkgPurpose {
    pub(super) fn contexts(self) -> &'static Contexts {
        match self {
            DkgPurpose::Lane => &Contexts {
                pad: "walras 2026 lane dkg pad v1",
                proof: "walras 2026 lane dkg complaint v1",
                deal: "walras 2026 lane dkg deal v1",
                nonce: "walras 2026 lane dkg nonce v1",
            },
            DkgPurpose::Seals { .. } => &Contexts {
                pad: "walras 2026 seals dkg pad v1",
                proof: "walras 2026 seals dkg complaint v1",
                deal: "walras 2026 seals dkg deal v1",
                nonce: "walras 2026 seals dkg nonce v1",
            },
        }
    }
}

fn registered(network: &Digest, number: u64, account: &Address, key: &BlsPublicKey) -> Vec<u8> {
    [SEALS_TAG, &network.0, &number.to_le_bytes(), &[REGISTERS], &account.0, &key.to_bytes()].concat()
}

fn held(terms: &DkgTerms, member: u8) -> Vec<u8> {
    [&terms.context(member)[..], &[HOLDS]].concat()
}

/// Whether the account that registers a key for the generation of this number has its secret.
pub fn is_seal_key_possessed(
    network: &Digest,
    number: u64,
    account: &Address,
    key: &BlsPublicKey,
    proof: &BlsSignature,
) -> bool {
    bls::possesses(key, &registered(network, number, account, key), proof)
}

/// The secret of a seat in one generation of a sealing key: 32 random bytes that are used for no other one. All that
/// the seat posts is derived from it and from the board, so a seat that restarts posts the same again.
#[derive(Clone)]
pub struct SealSeed(pub [u8; 32]);

impl SealSeed {
    /// The key that the seat registers.
    pub fn key(&self) -> BlsSecretKey {
        BlsSecretKey::from_seed(blake3::derive_key(KEY_CONTEXT, &self.0))
    }

    /// The proof that the seat of an account has its key.
    pub fn possession(&self, network: &Digest, number: u64, account: &Address) -> BlsSignature {
        let key = self.key();
        key.possess(&registered(network, number, account, &key.public()))
    }

    /// What the seat's dealing is made of ([`super::dealing`]).
    pub fn of_dealing(&self) -> [u8; 32] {
        blake3::derive_key(SEED_CONTEXT, &self.0)
    }
}

impl KeyShare {
    /// The proof that the member holds its share of a sealing key. It opens no envelope.
    pub fn hold(&self, terms: &DkgTerms) -> BlsSignature {
        self.secret.possess(&held(terms, self.member))
    }

    /// The secret, big-endian, for the file of whoever holds it.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.secret.to_bytes()
    }

    /// The share of a member with this secret; `None` if it is no secret.
    pub fn from_bytes(member: u8, secret: &[u8; 32]) -> Option<KeyShare> {
        BlsSecretKey::from_scalar(secret).map(|secret| KeyShare { member, secret })
    }

    /// The key that it signs under.
    pub fn public(&self) -> BlsPublicKey {
        self.secret.public()
    }
}

impl BlsPublicKey {
    /// Whether the keys of shares, each with its member, interpolate this one: those who have the shares can sign
    /// together as its secret would.
    pub fn is_made_of(&self, shares: &[(u8, BlsPublicKey)]) -> bool {
        let parsed = shares.iter().map(|(member, key)| Some((*member, points::parse_unchecked(&key.to_bytes())?)));
        let made = parsed.collect::<Option<Vec<_>>>().and_then(|parsed| points::interpolate_keys(&parsed));
        made.is_some_and(|made| points::bytes(&made) == self.to_bytes())
    }
}

impl GroupKey {
    /// Whether a member that was not struck holds its share of a sealing key.
    pub fn is_held(&self, terms: &DkgTerms, member: u8, proof: &BlsSignature) -> bool {
        let key = self.share_key(member).filter(|_| !self.struck.contains(&member));
        key.is_some_and(|key| bls::possesses(key, &held(terms, member), proof))
    }
}
