//! Keys of a home epoch, registered before it begins.
//!
//! Each member of the committee has a *registrar*: a key from the genesis that signs only registrations. In epoch h−1
//! it registers fresh keys for epoch h, one for each of the member's shards, each with a proof of possession. Their
//! number is the member's shard map in that epoch. The first registration on the ledger counts, and no other one.
//!
//! *What is trusted.* A registrar's signature alone proves nothing to a third party: a registrar can sign two lists of
//! keys for one epoch. What counts is the list that the ledger has, which is an entry of its state
//! ([`crate::BridgeEntry::registration`]). A client takes it with a proof that leads to a state root signed by a quorum
//! of the chain's validators, and checks the registrar's signature as well.
//!
//! Where the genesis has BLS keys, each shard registers one more, with its proof of possession for the address of the
//! registrar. This proof is stored with the key: an aggregate is only as sound as the proofs of its signers' keys,
//! and a verifier need not trust that someone else has checked them.
//!
//! ```text
//! registration  epoch 8 · keys · registrar's signature 64
//! keys          member 1 · count 2 · key 32 each                   without BLS keys
//!               member 1 · 32,768 + count 2 · key 32 each · (BLS key 96 · its proof 48) each
//! proofs        signature 64 each                                  on the ledger's way in only
//!
//! signed by the registrar   "walras-lane\x01" · network 32 · epoch 8 · kind 1 (8) · keys
//! signed by each key        "walras-lane\x01" · network 32 · epoch 8 · kind 1 (9) · member 1 · shard 2 · registrar 32
//! ```
//!
//! An epoch does not begin before q members have registered for it ([`crate::Bridge::begin`]): otherwise no one could
//! spend units that are withdrawn into it. A member that did not register signs nothing in that epoch.

use std::collections::BTreeSet;

use primitives::{Digest, PublicKey, SecretKey, Signature};

use crate::layout::Reader;
use crate::message::begin;
use crate::{AGGREGATE_COST, BlsPublicKey, BlsSecretKey, BlsSignature, HomeEpoch, LaneRefusal, StatementKind};

/// The most shards of a member.
pub const SHARDS_MAX: usize = 256;
/// The most shards of a member with BLS keys: their proofs cost about 25 times as much as those of other keys.
pub const BLS_SHARDS_MAX: usize = 16;
/// Flag in the count of keys: each key also has a BLS key.
const WITH_BLS: u16 = 1 << 15;

/// The kind of BLS keys of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneBls {
    /// None: certificates are answers in trees.
    #[default]
    None = 0,
    /// Each shard registers one besides its other key: aggregates are certificates, too.
    Aggregate = 1,
    /// As for aggregates, and members generate a group key for each epoch: signatures under it are certificates, too.
    Threshold = 2,
}

impl LaneBls {
    /// Its name in a genesis file.
    pub fn name(self) -> &'static str {
        match self {
            LaneBls::None => "none",
            LaneBls::Aggregate => "aggregate",
            LaneBls::Threshold => "threshold",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<LaneBls> {
        [LaneBls::None, LaneBls::Aggregate, LaneBls::Threshold].into_iter().find(|bls| bls.name() == name)
    }
}

/// The BLS key of a shard, in registered form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisteredBls {
    /// The 96 bytes of the key; [`LaneRegistration::verify`] checks them.
    pub key: [u8; 96],
    /// Proves that its registrant has the key.
    pub proof: BlsSignature,
}

/// The keys of a member's shards in one home epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRegistration {
    /// The home epoch.
    pub epoch: HomeEpoch,
    /// The member's index.
    pub member: u8,
    /// The key of each shard.
    pub keys: Vec<PublicKey>,
    /// The BLS key of each shard; empty where the genesis has none.
    pub bls: Vec<RegisteredBls>,
    /// The registrar's signature.
    pub signature: Signature,
}

pub(crate) fn registrar_message(
    network: &Digest,
    epoch: HomeEpoch,
    member: u8,
    keys: &[PublicKey],
    bls: &[RegisteredBls],
) -> Vec<u8> {
    let mut bytes = begin(StatementKind::Registration, network, epoch);
    write_keys(&mut bytes, member, keys, bls);
    bytes
}

fn write_keys(to: &mut Vec<u8>, member: u8, keys: &[PublicKey], bls: &[RegisteredBls]) {
    to.push(member);
    let count = keys.len() as u16 | if bls.is_empty() { 0 } else { WITH_BLS };
    to.extend(count.to_le_bytes());
    keys.iter().for_each(|key| to.extend(key.0));
    for RegisteredBls { key, proof } in bls {
        to.extend(key);
        to.extend(proof.0);
    }
}

pub(crate) fn possession_message(
    network: &Digest,
    epoch: HomeEpoch,
    member: u8,
    shard: u16,
    registrar: &PublicKey,
) -> Vec<u8> {
    let mut bytes = begin(StatementKind::Possession, network, epoch);
    bytes.push(member);
    bytes.extend(shard.to_le_bytes());
    bytes.extend(registrar.0);
    bytes
}

impl LaneRegistration {
    /// Registers these keys, with a proof of possession of each.
    pub fn make(
        network: &Digest,
        epoch: HomeEpoch,
        member: u8,
        keys: &[SecretKey],
        registrar: &SecretKey,
    ) -> (LaneRegistration, Vec<Signature>) {
        LaneRegistration::make_with_bls(network, epoch, member, keys, &[], registrar)
    }

    /// Like [`LaneRegistration::make`], with the BLS key of each shard.
    pub fn make_with_bls(
        network: &Digest,
        epoch: HomeEpoch,
        member: u8,
        keys: &[SecretKey],
        bls_keys: &[BlsSecretKey],
        registrar: &SecretKey,
    ) -> (LaneRegistration, Vec<Signature>) {
        let public: Vec<PublicKey> = keys.iter().map(SecretKey::public).collect();
        let of = registrar.public();
        let register = |key: &BlsSecretKey| RegisteredBls {
            key: key.public().to_bytes(),
            proof: key.prove_possession(network, &of.address()),
        };
        let bls: Vec<RegisteredBls> = bls_keys.iter().map(register).collect();
        let signature = registrar.sign(&registrar_message(network, epoch, member, &public, &bls));
        let proof = |(shard, key): (u16, &SecretKey)| key.sign(&possession_message(network, epoch, member, shard, &of));
        let proofs = (0..).zip(keys).map(proof).collect();
        (LaneRegistration { epoch, member, keys: public, bls, signature }, proofs)
    }

    /// The cost of verifying it and its proofs, in verifications of ed25519 signatures.
    pub fn cost(&self) -> u32 {
        1 + self.keys.len() as u32 + AGGREGATE_COST * self.bls.len() as u32
    }

    /// Checks that the member's registrar signed it, that its keys differ, and the proofs of its BLS keys.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongRegistration`].
    pub fn verify(&self, network: &Digest, registrar: &PublicKey) -> Result<(), LaneRefusal> {
        let distinct = self.keys.iter().collect::<BTreeSet<_>>().len() == self.keys.len();
        let message = registrar_message(network, self.epoch, self.member, &self.keys, &self.bls);
        let counts = (1..=SHARDS_MAX).contains(&self.keys.len()) && self.has_each_bls();
        if !counts || !distinct || !registrar.verify(&message, &self.signature) {
            return Err(LaneRefusal::WrongRegistration);
        }
        let account = registrar.address();
        let check = |of: &RegisteredBls| BlsPublicKey::parse(&of.key)?.check_possession(network, &account, &of.proof);
        self.bls.iter().try_for_each(check)
    }

    /// Whether no shard has a BLS key, or each has one and no two the same.
    fn has_each_bls(&self) -> bool {
        let distinct = self.bls.iter().map(|of| of.key).collect::<BTreeSet<_>>().len();
        self.bls.is_empty() || self.bls.len() <= BLS_SHARDS_MAX && [self.keys.len(); 2] == [self.bls.len(), distinct]
    }

    /// Checks the proofs that the registrant has the keys.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongRegistration`].
    pub fn check_possession(
        &self,
        network: &Digest,
        registrar: &PublicKey,
        proofs: &[Signature],
    ) -> Result<(), LaneRefusal> {
        let holds = |(shard, (key, proof)): (u16, (&PublicKey, &Signature))| {
            key.verify(&possession_message(network, self.epoch, self.member, shard, registrar), proof)
        };
        let all = proofs.len() == self.keys.len() && (0..).zip(self.keys.iter().zip(proofs)).all(holds);
        if all { Ok(()) } else { Err(LaneRefusal::WrongRegistration) }
    }

    /// Its layout.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        self.write(&mut to);
        to
    }

    /// Parses a registration that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<LaneRegistration, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let registration = LaneRegistration::read(&mut reader)?;
        reader.end()?;
        Ok(registration)
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.epoch.to_le_bytes());
        write_keys(to, self.member, &self.keys, &self.bls);
        to.extend(self.signature.0);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<LaneRegistration, LaneRefusal> {
        let (epoch, member) = (reader.u64()?, reader.u8()?);
        let count = u16::from_le_bytes(reader.array()?);
        let (with_bls, count) = (count & WITH_BLS != 0, count & !WITH_BLS);
        let most = if with_bls { BLS_SHARDS_MAX } else { SHARDS_MAX };
        if !(1..=most).contains(&count.into()) {
            return Err(LaneRefusal::Malformed("a member registers 1 to 256 keys, 1 to 16 with BLS keys"));
        }
        let keys = (0..count).map(|_| reader.key()).collect::<Result<_, _>>()?;
        let mut bls = || Ok(RegisteredBls { key: reader.array()?, proof: BlsSignature(reader.array()?) });
        let bls = (0..if with_bls { count } else { 0 }).map(|_| bls()).collect::<Result<_, LaneRefusal>>()?;
        Ok(LaneRegistration { epoch, member, keys, bls, signature: reader.signature()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: Digest = Digest([1; 32]);

    fn key(number: u8) -> SecretKey {
        SecretKey::from_seed([number; 32])
    }

    #[test]
    fn a_registration_is_bound_to_network_epoch_member_and_registrar() {
        let (keys, registrar) = ([key(1), key(2)], key(9));
        let (good, proofs) = LaneRegistration::make(&NETWORK, 5, 3, &keys, &registrar);
        let wrong = Err(LaneRefusal::WrongRegistration);
        assert_eq!(good.verify(&NETWORK, &registrar.public()), Ok(()));
        assert_eq!(good.check_possession(&NETWORK, &registrar.public(), &proofs), Ok(()));
        assert_eq!(LaneRegistration::parse(&good.encode()), Ok(good.clone()));
        assert_eq!(good.verify(&Digest([2; 32]), &registrar.public()), wrong);
        assert_eq!(good.verify(&NETWORK, &key(8).public()), wrong);
        let change = |edit: &dyn Fn(&mut LaneRegistration)| {
            let mut other = good.clone();
            edit(&mut other);
            let possessed = other.check_possession(&NETWORK, &registrar.public(), &proofs);
            (other.verify(&NETWORK, &registrar.public()), possessed)
        };
        assert_eq!(change(&|of| of.epoch = 6), (wrong.clone(), wrong.clone()));
        assert_eq!(change(&|of| of.member = 2), (wrong.clone(), wrong.clone()));
        assert_eq!(change(&|of| of.keys.swap(0, 1)), (wrong.clone(), wrong.clone()));
        assert_eq!(good.check_possession(&NETWORK, &key(8).public(), &proofs), wrong, "proofs name the registrar");
        assert_eq!(good.check_possession(&NETWORK, &registrar.public(), &proofs[..1]), wrong);
    }

    #[test]
    fn a_stolen_or_doubled_key_is_refused() {
        let registrar = key(9);
        let (mut doubled, proofs) = LaneRegistration::make(&NETWORK, 5, 3, &[key(1), key(1)], &registrar);
        let wrong = Err(LaneRefusal::WrongRegistration);
        assert_eq!(doubled.verify(&NETWORK, &registrar.public()), wrong);
        // Another member's key: the registrar signs it, but the member cannot prove that it has it.
        doubled.keys = vec![key(4).public()];
        doubled.signature = registrar.sign(&registrar_message(&NETWORK, 5, 3, &doubled.keys, &[]));
        assert_eq!(doubled.verify(&NETWORK, &registrar.public()), Ok(()));
        let owns = key(4).sign(&possession_message(&NETWORK, 5, 2, 0, &registrar.public()));
        for proof in [proofs[0], owns] {
            assert_eq!(doubled.check_possession(&NETWORK, &registrar.public(), &[proof]), wrong);
        }
    }

    #[test]
    fn bls_keys_are_registered_with_proofs_that_stay_with_them() {
        let (keys, registrar) = ([key(1), key(2)], key(9));
        let bls = keys.each_ref().map(BlsSecretKey::of_shard);
        let make = |bls: &[BlsSecretKey]| LaneRegistration::make_with_bls(&NETWORK, 5, 3, &keys, bls, &registrar).0;
        let good = make(&bls);
        assert_eq!(good.verify(&NETWORK, &registrar.public()), Ok(()));
        assert_eq!(LaneRegistration::parse(&good.encode()), Ok(good.clone()));
        assert_eq!(good.cost(), 1 + 2 + 2 * AGGREGATE_COST);
        // One key for two shards, and a key for only one of two.
        for bls in [&[bls[0].clone(), bls[0].clone()][..], &bls[..1]] {
            assert_eq!(make(bls).verify(&NETWORK, &registrar.public()), Err(LaneRefusal::WrongRegistration));
        }
        let change = |edit: &dyn Fn(&mut LaneRegistration)| {
            let mut other = good.clone();
            edit(&mut other);
            // The registrar belongs to the member: it signs whatever the member wants.
            other.signature = registrar.sign(&registrar_message(&NETWORK, 5, 3, &other.keys, &other.bls));
            other.verify(&NETWORK, &registrar.public())
        };
        assert_eq!(change(&|_| {}), Ok(()));
        let stolen = BlsSecretKey::of_shard(&key(4));
        let of_another = stolen.prove_possession(&NETWORK, &key(8).public().address());
        let wrong = Err(LaneRefusal::WrongBlsKey);
        assert_eq!(change(&|of| of.bls[0].key = stolen.public().to_bytes()), wrong, "a key without a proof");
        let replayed = RegisteredBls { key: stolen.public().to_bytes(), proof: of_another };
        assert_eq!(change(&|of| of.bls[0] = replayed), wrong, "the proof is another registrar's");
        assert_eq!(change(&|of| of.bls[1].key = [0; 96]), wrong, "no point");
        // The registrar signs the BLS keys too.
        let mut other = good.clone();
        other.bls.swap(0, 1);
        assert_eq!(other.verify(&NETWORK, &registrar.public()), Err(LaneRefusal::WrongRegistration));
    }
}
