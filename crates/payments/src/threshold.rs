//! The threshold form of the BLS scheme (§3.4), with key generation by the members themselves.
//!
//! A certificate is one signature of 48 bytes under one group key, whichever members signed. Any q shares of the
//! group's secret can make it, and fewer cannot. No dealer is trusted: each member deals a random polynomial of
//! degree q − 1, and the group's secret is the sum of the accepted ones.
//!
//! # Key generation
//!
//! It runs over a *board*: a list that everyone sees in the same order. The ledger is one: `bridge/boards.rs`.
//! [`KeyGeneration`] is the state of the board, the same for everyone; [`dealing`] and [`KeyGeneration::complaint`]
//! are what a member does with its secret.
//!
//! 1. **Deal.** Member i draws a polynomial p_i and posts commitments A_ik = a_ik·G2, and for each member j the share
//!    p_i(j+1), encrypted to j's registered key: R = r·G2, pad H(r·pk_j). Proofs of possession under A_i0 and under R
//!    cover the whole dealing, so that no one can post another's dealing, or a key made from others' keys.
//! 2. **Complain.** Member j decrypts each share and checks it against the commitments. If a share is wrong, j posts
//!    the shared point x_j·R with a proof that the point is correct (Chaum and Pedersen). So everyone can decrypt
//!    this one share. If it is wrong, the dealer is *out*. If it is right, j has revealed one of its own shares
//!    without need: j is *struck*, and its signatures are refused. A complaint without a proof changes nothing.
//! 3. **Finish.** The group key is the sum of A_i0 over the accepted dealers. It is used only if at least f+1 dealers
//!    are accepted, so that one of them is correct; no more than f members are struck; and q members are left.
//!
//! # Why it is safe for money
//!
//! *No share of a correct member is revealed.* A correct member complains only about a wrong share, and such a
//! dealing is rejected. The dealer could compute the revealed point x_j·R itself, since it knows r. (If a dealer
//! could post another dealer's R, complaints about its wrong shares would decrypt the other's shares.) No other
//! message depends on a share: complaints are not answered, and silence reveals nothing. So the adversary knows at
//! most the shares of the f Byzantine members, whichever messages are late. (Some Feldman–Desmedt variants reveal
//! unacknowledged shares. There an adversary that delays messages learns f more: with 2f shares one correct signature
//! would complete a certificate, and two such certificates could be of one output.) *It never delays an epoch.* When
//! its time is over, the board is finished as it is. If there is no outcome, the epoch has no group key
//! ([`crate::LaneCommittee::with_threshold`] is not called), and aggregates with a bitmap are used. *A correct member
//! that missed the time to complain* finds that its share does not fit, and signs nothing with it.
//!
//! A dealer that waits for others' dealings can choose among a few group keys (by dealing or not). That does not help
//! it to forge (Gennaro, Jarecki, Krawczyk and Rabin: Secure Distributed Key Generation, 2007).
//!
//! # Two purposes
//!
//! The committee's *sealing key* is made in the same way ([`DkgPurpose`]): by t shares instead of a quorum, over a
//! board of its own in the ledger (its place `seals`). Contexts, thresholds and numbers differ, so nothing of one
//! generation counts in another. There t accepted dealers are needed: t − 1 seats that only look know no key. Its
//! members prove that they hold their shares, by signatures that open nothing.
//!
//! # Why one shard a member
//!
//! *One share in all shards of a member is not sound.* A signature under a share names no shard: the group key says
//! only that q members signed. A tree counts for the owners of its shard's range, because verifiers know the shard's
//! key. So with trees an adversary needs more than f members *in one range*. Let n = 4, f = 1, and let two shards of
//! each member have its share. An adversary that breaks shard 0 of member 0 and shard 1 of member 1 has broken one
//! member in each range. With the two shares it asks one correct member to confirm X and another to confirm Z, both of
//! one output, and completes both: 2f shares and one signature are a certificate. It has broken no more than the rules
//! allow. The same follows from a restored log: a shard that was rolled back stays mute in its range, while the share
//! signs on in the other shards of the member.
//!
//! *What would be sound* is a group key for each range: all members have the same number of shards, and the shards of
//! a number generate a key of their own, each with its own BLS key. That takes a board for each number, with n
//! dealings of n shares on the ledger and their checks, in each epoch. Members could no longer choose their numbers,
//! and an epoch in which one member drains a shard would have no group keys. An aggregate with a bitmap has none of
//! this and is n/8 bytes longer, so lanes with several shards have aggregates.
//!
//! ```text
//! signed by a dealer's other key of the epoch, where a dealing is posted
//!            "walras-lane\x01" · network 32 · epoch 8 · kind 1 (10) · H(dealing) 32
//! dealing    dealer 1 · commitment 96 each, q of them · R 96 · encrypted share 32 each, n of them · proofs 48, 48
//! complaint  member 1 · dealer 1 · shared point 96 · challenge 32 · response 32
//! signed by a share      as under the BLS scheme, with scheme 3
//! certificate            0 · 4 · signature 48
//! ```

mod board;
mod cipher;
mod points;
mod purpose;
mod secret;

#[cfg(test)]
mod seal_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use primitives::Digest;

pub(crate) use board::Judged;
pub use board::{Complaint, DKG_MEMBERS_MAX, Dealing, KeyGeneration};
pub use purpose::{DkgPurpose, SealSeed, is_seal_key_possessed};
pub use secret::{dealing, dealing_of_shard, false_dealing};

use crate::bls::{self, BlsPublicKey, BlsSecretKey, BlsSignature};
use crate::{Claim, HomeEpoch, LaneHome, LaneRefusal, StatementKind};

/// The scheme byte of messages that shares sign.
const SCHEME: u8 = 3;

/// The public result of a key generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupKey {
    key: BlsPublicKey,
    /// For each member, the key that its share signs under.
    shares: Vec<BlsPublicKey>,
    /// Members that revealed one of their shares.
    struck: BTreeSet<u8>,
    needed: usize,
}

/// A member's share of the group's secret. Its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct KeyShare {
    member: u8,
    secret: BlsSecretKey,
}

impl KeyShare {
    /// The member.
    pub fn member(&self) -> u8 {
        self.member
    }

    /// Signs a digest as a member of an epoch.
    pub fn sign(&self, network: &Digest, epoch: HomeEpoch, kind: StatementKind, digest: &Digest) -> BlsSignature {
        self.secret.sign_as(SCHEME, network, epoch, kind, digest)
    }
}

impl GroupKey {
    /// The key that certificates verify under.
    pub fn key(&self) -> &BlsPublicKey {
        &self.key
    }

    /// The key that the share of a member signs under; `None` for a non-member.
    pub fn share_key(&self, member: u8) -> Option<&BlsPublicKey> {
        self.shares.get(usize::from(member))
    }

    /// Members whose signatures are refused, because they revealed a share.
    pub fn struck(&self) -> &BTreeSet<u8> {
        &self.struck
    }

    /// Verifies one member's signature.
    ///
    /// # Errors
    /// [`LaneRefusal::RevealedShare`], [`LaneRefusal::WrongSigners`] for a non-member,
    /// [`LaneRefusal::WrongSignature`].
    pub fn verify_share(
        &self,
        home: &LaneHome,
        claim: &Claim<'_>,
        member: u8,
        signature: &BlsSignature,
    ) -> Result<(), LaneRefusal> {
        if self.struck.contains(&member) {
            return Err(LaneRefusal::RevealedShare(member));
        }
        let wrong = LaneRefusal::WrongSigners { needed: self.needed };
        let key = self.shares.get(usize::from(member)).ok_or(wrong)?;
        match key.verify_as(SCHEME, home, claim, signature) {
            true => Ok(()),
            false => Err(LaneRefusal::WrongSignature(member)),
        }
    }

    /// Combines the signatures of q members to a certificate's signature, and verifies the result. If that fails, the
    /// first member whose signature is wrong is named.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongSigners`] if there are fewer than q, or one signs twice; otherwise as for
    /// [`GroupKey::verify_share`].
    pub fn combine(
        &self,
        home: &LaneHome,
        claim: &Claim<'_>,
        parts: &[(u8, BlsSignature)],
    ) -> Result<BlsSignature, LaneRefusal> {
        let wrong = LaneRefusal::WrongSigners { needed: self.needed };
        let members: BTreeSet<u8> = parts.iter().map(|(member, _)| *member).collect();
        if members.len() != parts.len() || parts.len() < self.needed {
            return Err(wrong);
        }
        if let Some(member) = members.intersection(&self.struck).next() {
            return Err(LaneRefusal::RevealedShare(*member));
        }
        if members.iter().any(|member| usize::from(*member) >= self.shares.len()) {
            return Err(wrong);
        }
        let made = points::interpolate(&parts[..self.needed]);
        if let Some(made) = made.filter(|made| self.verify(home, claim, made).is_ok()) {
            return Ok(made);
        }
        for (member, signature) in parts {
            self.verify_share(home, claim, *member, signature)?;
        }
        Err(LaneRefusal::WrongAggregate)
    }

    /// Verifies a certificate's signature.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongAggregate`].
    pub fn verify(&self, home: &LaneHome, claim: &Claim<'_>, signature: &BlsSignature) -> Result<(), LaneRefusal> {
        match self.key.verify_as(SCHEME, home, claim, signature) {
            true => Ok(()),
            false => Err(LaneRefusal::WrongAggregate),
        }
    }
}

/// The network and the epoch of a key generation, and its members' registered keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DkgTerms {
    /// The identity of the network.
    pub network: Digest,
    /// The home epoch; of a sealing key its number.
    pub epoch: HomeEpoch,
    /// What the key is for.
    pub purpose: DkgPurpose,
    /// The members' BLS keys, with proved possession: shares are encrypted to them.
    pub keys: Vec<BlsPublicKey>,
}

impl DkgTerms {
    /// How many shares make a signature: a dealing commits to as many coefficients.
    pub(crate) fn needed(&self) -> usize {
        match self.purpose {
            DkgPurpose::Lane => crate::Quorums::new(self.keys.len()).certificate,
            DkgPurpose::Seals { needed, .. } => usize::from(needed),
        }
    }

    /// The bytes that a proof of possession covers, and that pads are bound to.
    fn context(&self, dealer: u8) -> Vec<u8> {
        let (tag, scheme) = match self.purpose {
            DkgPurpose::Lane => (bls::TAG_BYTES, SCHEME),
            DkgPurpose::Seals { needed, .. } => (purpose::SEALS_TAG, needed),
        };
        let mut bytes = tag.to_vec();
        bytes.extend(self.network.0);
        bytes.extend(self.epoch.to_le_bytes());
        bytes.extend([scheme, dealer]);
        self.keys.iter().for_each(|key| bytes.extend(key.to_bytes()));
        bytes
    }
}
