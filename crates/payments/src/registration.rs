//! Keys of a home epoch, registered before it begins.
//!
//! Each member of the committee has a *registrar*: a key of the genesis that signs nothing but registrations. In epoch
//! h−1 it registers fresh keys for epoch h, one for each of the member's shards, each with a proof of possession. Their
//! number is the member's shard map in that epoch. The first registration that the ledger has counts. Whoever knows the
//! registrars from the genesis verifies the keys of an epoch without asking anybody whom to believe.
//!
//! ```text
//! registration  epoch 8 · member 1 · count 2 · key 32 each · registrar's signature 64
//! proofs        signature 64 each                                  on the ledger's way in only
//!
//! signed by the registrar   "walras-lane\x01" · network 32 · epoch 8 · kind 1 (8) · member 1 · count 2 · key 32 each
//! signed by each key        "walras-lane\x01" · network 32 · epoch 8 · kind 1 (9) · member 1 · shard 2 · registrar 32
//! ```
//!
//! An epoch does not begin before q members have registered for it ([`crate::Bridge::begin`]): else nobody could spend
//! what is withdrawn into it. A member that did not register signs nothing in that epoch.

use std::collections::BTreeSet;

use primitives::{Digest, PublicKey, SecretKey, Signature};

use crate::layout::Reader;
use crate::statement::begin;
use crate::{HomeEpoch, LaneRefusal, StatementKind};

/// Most shards of a member.
pub const SHARDS_MAX: usize = 256;

/// The keys of a member's shards in one home epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRegistration {
    /// The home epoch.
    pub epoch: HomeEpoch,
    /// The member's index.
    pub member: u8,
    /// The key of each shard.
    pub keys: Vec<PublicKey>,
    /// The registrar's signature.
    pub signature: Signature,
}

fn registrar_message(network: &Digest, epoch: HomeEpoch, member: u8, keys: &[PublicKey]) -> Vec<u8> {
    let mut bytes = begin(StatementKind::Registration, network, epoch);
    write_keys(&mut bytes, member, keys);
    bytes
}

fn write_keys(to: &mut Vec<u8>, member: u8, keys: &[PublicKey]) {
    to.push(member);
    to.extend((keys.len() as u16).to_le_bytes());
    keys.iter().for_each(|key| to.extend(key.0));
}

fn possession_message(network: &Digest, epoch: HomeEpoch, member: u8, shard: u16, registrar: &PublicKey) -> Vec<u8> {
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
        let public: Vec<PublicKey> = keys.iter().map(SecretKey::public).collect();
        let signature = registrar.sign(&registrar_message(network, epoch, member, &public));
        let of = registrar.public();
        let proof = |(shard, key): (u16, &SecretKey)| key.sign(&possession_message(network, epoch, member, shard, &of));
        let proofs = (0..).zip(keys).map(proof).collect();
        (LaneRegistration { epoch, member, keys: public, signature }, proofs)
    }

    /// Checks that the member's registrar signed it, and that its keys differ.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongRegistration`].
    pub fn verify(&self, network: &Digest, registrar: &PublicKey) -> Result<(), LaneRefusal> {
        let distinct = self.keys.iter().collect::<BTreeSet<_>>().len() == self.keys.len();
        let message = registrar_message(network, self.epoch, self.member, &self.keys);
        let counts = (1..=SHARDS_MAX).contains(&self.keys.len());
        if counts && distinct && registrar.verify(&message, &self.signature) {
            Ok(())
        } else {
            Err(LaneRefusal::WrongRegistration)
        }
    }

    /// Checks the proofs that whoever registers has the keys.
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

    /// Reads a registration that fills `bytes`.
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
        write_keys(to, self.member, &self.keys);
        to.extend(self.signature.0);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<LaneRegistration, LaneRefusal> {
        let (epoch, member) = (reader.u64()?, reader.u8()?);
        let count = u16::from_le_bytes(reader.array()?);
        if !(1..=SHARDS_MAX).contains(&count.into()) {
            return Err(LaneRefusal::Malformed("a member registers 1 to 256 keys"));
        }
        let keys = (0..count).map(|_| reader.key()).collect::<Result<_, _>>()?;
        Ok(LaneRegistration { epoch, member, keys, signature: reader.signature()? })
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
        // Another's key: the registrar signs it, and nobody can prove that the registrar's member has it.
        doubled.keys = vec![key(4).public()];
        doubled.signature = registrar.sign(&registrar_message(&NETWORK, 5, 3, &doubled.keys));
        assert_eq!(doubled.verify(&NETWORK, &registrar.public()), Ok(()));
        let owns = key(4).sign(&possession_message(&NETWORK, 5, 2, 0, &registrar.public()));
        for proof in [proofs[0], owns] {
            assert_eq!(doubled.check_possession(&NETWORK, &registrar.public(), &[proof]), wrong);
        }
    }
}
