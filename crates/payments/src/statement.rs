//! The bytes that owners and validators sign, and the keys of a committee.

use std::sync::Arc;

use primitives::{Address, Digest, PublicKey};

use crate::{
    BlsPublicKey, BlsSignature, DkgTerms, GroupKey, HomeEpoch, KeyGeneration, LaneRefusal, LaneRegistration, OutputId,
    Quorums,
};

/// The prefix of every signed byte string of the lane; the last byte is the version.
pub(crate) const TAG: &[u8; 12] = b"walras-lane\x01";

const SHARD_CONTEXT: &str = "walras 2026 lane shard v1";

/// The subject of a signature. The number is part of the signed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementKind {
    /// An owner pays.
    Payment = 1,
    /// A validator has locked the inputs of payments, durably.
    Confirmation = 2,
    /// A validator has recorded certificates of payments, durably.
    Acknowledgement = 3,
    /// A validator has barred the candidates of a case, durably, and reports which it had accepted before.
    View = 4,
    /// A validator votes to halt the lane.
    Halt = 5,
    /// A validator has locked the inputs of payments in a tree of a broker, durably, except those it excludes.
    SharedConfirmation = 6,
    /// An owner asks which payment spends an output.
    SpenderQuery = 7,
    /// A registrar registers keys of an epoch.
    Registration = 8,
    /// A key's proof that its registrant has it.
    Possession = 9,
    /// A member deals in the key generation of an epoch.
    Dealing = 10,
}

const VIEW_CONTEXT: &str = "walras 2026 lane view v1";
const HALT_CONTEXT: &str = "walras 2026 lane halt v1";

/// The digest that a validator signs, in a tree of views, to report which payment of a contested output it had
/// accepted. There is one case of an output, and its candidates are fixed once: the output names both.
pub fn view_digest(case: &OutputId, paid: Option<&Digest>) -> Digest {
    let mut bytes = case.0.to_vec();
    paid.into_iter().for_each(|digest| bytes.extend(digest.0));
    Digest::of(VIEW_CONTEXT, &bytes)
}

/// The digest that a validator signs, in a tree of votes to halt, for this round of its epoch.
pub fn halt_digest(epoch: HomeEpoch, round: u64) -> Digest {
    Digest::of(HALT_CONTEXT, &[epoch.to_le_bytes(), round.to_le_bytes()].concat())
}

pub(crate) fn begin(kind: StatementKind, network: &Digest, epoch: HomeEpoch) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend(TAG);
    bytes.extend(network.0);
    bytes.extend(epoch.to_le_bytes());
    bytes.push(kind as u8);
    bytes
}

/// The bytes that the owner of a payment's inputs signs.
pub fn owner_message(network: &Digest, home: HomeEpoch, payment: &Digest) -> Vec<u8> {
    let mut bytes = begin(StatementKind::Payment, network, home);
    bytes.extend(payment.0);
    bytes
}

/// The bytes that an owner signs to ask which payment spends an output.
pub(crate) fn query_message(network: &Digest, home: HomeEpoch, output: &OutputId) -> Vec<u8> {
    let mut bytes = begin(StatementKind::SpenderQuery, network, home);
    bytes.extend(output.0);
    bytes
}

/// The bytes that a validator signs: the root of a tree over digests of payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootHeader {
    /// The identity of the network.
    pub network: Digest,
    /// The home epoch whose keys sign.
    pub epoch: HomeEpoch,
    /// The validator's index in the committee.
    pub validator: u8,
    /// The shard of the validator.
    pub shard: u16,
    /// Confirmation or acknowledgement: all leaves of a tree have the same kind.
    pub kind: StatementKind,
    /// Number of leaves.
    pub size: u32,
    /// Length of the signer's log when the tree was closed. Everything that the tree states is durable below it.
    pub position: u64,
    /// The root.
    pub root: Digest,
}

impl RootHeader {
    /// The signed bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = begin(self.kind, &self.network, self.epoch);
        bytes.push(self.validator);
        bytes.extend(self.shard.to_le_bytes());
        bytes.extend(self.size.to_le_bytes());
        bytes.extend(self.position.to_le_bytes());
        bytes.extend(self.root.0);
        bytes
    }
}

/// The registered keys of one home epoch, which also define its shard map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneCommittee {
    network: Digest,
    epoch: HomeEpoch,
    keys: Vec<Vec<PublicKey>>,
    bls: Option<Arc<Vec<Vec<BlsPublicKey>>>>,
    group: Option<Arc<GroupKey>>,
    quorums: Quorums,
}

/// A shard's BLS key, the account that registers it, and the proof of possession.
pub type BlsRegistration = (BlsPublicKey, Address, BlsSignature);

impl LaneCommittee {
    /// The committee of `epoch` with the keys of each validator's shards. Each validator chooses its number of
    /// shards. A validator without a key did not register for this epoch: it signs nothing.
    ///
    /// # Panics
    /// If there are no validators or more than 256, or a validator has more than 65,536 shards.
    pub fn new(network: Digest, epoch: HomeEpoch, keys: Vec<Vec<PublicKey>>) -> LaneCommittee {
        let quorums = Quorums::new(keys.len());
        assert!(keys.iter().all(|shards| shards.len() <= 1 << 16), "a validator has at most 65,536 shards");
        LaneCommittee { network, epoch, keys, bls: None, group: None, quorums }
    }

    /// The same committee, also with BLS keys of each validator's shards.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongBlsKey`] if a proof of possession does not hold, or there is not one key for each shard.
    pub fn with_bls(mut self, registrations: Vec<Vec<BlsRegistration>>) -> Result<LaneCommittee, LaneRefusal> {
        let same = |(keys, bls): (&Vec<PublicKey>, &Vec<BlsRegistration>)| keys.len() == bls.len();
        if registrations.len() != self.keys.len() || !self.keys.iter().zip(&registrations).all(same) {
            return Err(LaneRefusal::WrongBlsKey);
        }
        for (key, account, proof) in registrations.iter().flatten() {
            key.check_possession(&self.network, account, proof)?;
        }
        let keys = registrations.into_iter().map(|shards| shards.into_iter().map(|(key, ..)| key).collect());
        self.bls = Some(Arc::new(keys.collect()));
        Ok(self)
    }

    /// A committee with this many members, none of which has registered keys yet.
    ///
    /// # Panics
    /// As for [`LaneCommittee::new`].
    pub fn unregistered(network: Digest, epoch: HomeEpoch, members: usize) -> LaneCommittee {
        LaneCommittee::new(network, epoch, vec![Vec::new(); members])
    }

    /// Gives a member the keys that it registered. The caller has verified them ([`LaneRegistration::verify`]).
    ///
    /// # Errors
    /// [`LaneRefusal::WrongRegistration`] for a non-member or another epoch, [`LaneRefusal::WrongBlsKey`] if a BLS
    /// key is invalid.
    pub fn seat(&mut self, registration: &LaneRegistration) -> Result<(), LaneRefusal> {
        let members = self.keys.len();
        let keys = self.keys.get_mut(usize::from(registration.member)).filter(|_| registration.epoch == self.epoch);
        let keys = keys.ok_or(LaneRefusal::WrongRegistration)?;
        if !registration.bls.is_empty() {
            let parsed = registration.bls.iter().map(|of| BlsPublicKey::parse(&of.key)).collect::<Result<_, _>>()?;
            let all = self.bls.get_or_insert_with(|| Arc::new(vec![Vec::new(); members]));
            Arc::make_mut(all)[usize::from(registration.member)] = parsed;
        }
        keys.clone_from(&registration.keys);
        Ok(())
    }

    /// The same committee with the group key of its key generation, if that succeeded in time. Without a group key,
    /// threshold certificates are refused and aggregates are used.
    ///
    /// # Errors
    /// [`LaneRefusal::NoGroupKey`] if the generation is not finished, gave no key, or belongs to another committee.
    pub fn with_threshold(mut self, generation: &KeyGeneration) -> Result<LaneCommittee, LaneRefusal> {
        let (group, terms) = (generation.outcome().ok_or(LaneRefusal::NoGroupKey)?, generation.terms());
        let own = DkgTerms::of(&self)?;
        if (own.network, own.epoch, &own.keys) != (terms.network, terms.epoch, &terms.keys) {
            return Err(LaneRefusal::NoGroupKey);
        }
        self.group = Some(Arc::new(group.clone()));
        Ok(self)
    }

    /// The group key.
    ///
    /// # Errors
    /// [`LaneRefusal::NoGroupKey`] if the epoch has none.
    pub fn group(&self) -> Result<&GroupKey, LaneRefusal> {
        self.group.as_deref().ok_or(LaneRefusal::NoGroupKey)
    }

    /// Whether its shards have BLS keys.
    pub fn has_bls(&self) -> bool {
        self.bls.is_some()
    }

    /// The BLS key of a validator's shard.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongBlsKey`] if there is none.
    pub fn bls_key(&self, validator: u8, shard: u16) -> Result<&BlsPublicKey, LaneRefusal> {
        let shards = self.bls.as_ref().and_then(|bls| bls.get(usize::from(validator)));
        shards.and_then(|shards| shards.get(usize::from(shard))).ok_or(LaneRefusal::WrongBlsKey)
    }

    /// The identity of the network.
    pub fn network(&self) -> Digest {
        self.network
    }

    /// The home epoch.
    pub fn epoch(&self) -> HomeEpoch {
        self.epoch
    }

    /// The thresholds.
    pub fn quorums(&self) -> Quorums {
        self.quorums
    }

    /// The shard of `validator` that signs for `owner`: equal ranges of a hash of the owner's key.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongSigners`] if there is no such validator, [`LaneRefusal::Unregistered`] if it has no key.
    pub fn shard_of(&self, validator: u8, owner: &PublicKey) -> Result<u16, LaneRefusal> {
        let shards = self.shards(validator)?.len() as u128;
        match shards {
            0 => return Err(LaneRefusal::Unregistered(validator)),
            1 => return Ok(0),
            _ => {}
        }
        let hash = Digest::of(SHARD_CONTEXT, &owner.0);
        let place = u64::from_le_bytes(hash.0[..8].try_into().expect("8 bytes"));
        Ok(((u128::from(place) * shards) >> 64) as u16)
    }

    /// The key of a validator's shard.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongSigners`] if there is no such validator, [`LaneRefusal::ForeignShard`] if there is no such
    /// shard.
    pub fn key(&self, validator: u8, shard: u16) -> Result<PublicKey, LaneRefusal> {
        self.shards(validator)?.get(usize::from(shard)).copied().ok_or(LaneRefusal::ForeignShard(shard))
    }

    /// The keys of a validator's shards; none if it did not register, or is not a member.
    pub fn keys_of(&self, validator: u8) -> &[PublicKey] {
        self.keys.get(usize::from(validator)).map_or(&[], Vec::as_slice)
    }

    fn shards(&self, validator: u8) -> Result<&[PublicKey], LaneRefusal> {
        let wrong = LaneRefusal::WrongSigners { needed: self.quorums.certificate };
        self.keys.get(usize::from(validator)).map(Vec::as_slice).ok_or(wrong)
    }
}
