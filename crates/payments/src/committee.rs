//! The keys of a committee.

use std::sync::Arc;

use primitives::{Address, Digest, PublicKey};

use crate::{
    BlsPublicKey, BlsSignature, DkgPurpose, DkgTerms, GroupKey, HomeEpoch, KeyGeneration, LaneHome, LaneRefusal,
    LaneRegistration, Quorums,
};

const SHARD_CONTEXT: &str = "walras 2026 lane shard v1";

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

    /// The same committee with BLS keys that the ledger has checked, one for each key.
    pub(crate) fn with_checked_bls(self, bls: Option<Vec<Vec<BlsPublicKey>>>) -> LaneCommittee {
        LaneCommittee { bls: bls.map(Arc::new), ..self }
    }

    /// The BLS keys of a validator's shards; none if it registered none.
    pub(crate) fn bls_keys_of(&self, validator: u8) -> &[BlsPublicKey] {
        self.bls.as_ref().and_then(|bls| bls.get(usize::from(validator))).map_or(&[], Vec::as_slice)
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

    /// The home epoch whose keys sign.
    pub fn home(&self) -> LaneHome {
        LaneHome { network: self.network, epoch: self.epoch }
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

impl DkgTerms {
    /// The terms of a committee with BLS keys and one shard for each member: owners of all shards then have one group
    /// key.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongBlsKey`] if a member has no such key, or more than one.
    pub fn of(committee: &LaneCommittee) -> Result<DkgTerms, LaneRefusal> {
        let key = |member: usize| {
            let one = committee.keys_of(member as u8).len() == 1;
            committee.bls_key(member as u8, 0).ok().filter(|_| one).copied().ok_or(LaneRefusal::WrongBlsKey)
        };
        let keys = (0..committee.quorums().validators).map(key).collect::<Result<_, _>>()?;
        Ok(DkgTerms { network: committee.network(), epoch: committee.epoch(), purpose: DkgPurpose::Lane, keys })
    }
}
