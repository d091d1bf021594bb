//! Work with the secret keys of an epoch: registering them, and the part of a member in the key generation of that
//! epoch. It takes too long for a step, and the shell alone has the keys: a step gives it out as data.

use kernel::Planted;
use ledger::LaneBridge;
use payments::{
    BlsSecretKey, BridgeOperation, HomeEpoch, KeyGeneration, LaneBls, LaneRegistration, ShardOffer, dealing_of_shard,
};
use primitives::{Digest, PublicKey, SecretKey};

use crate::MemberMistake;

/// What is to be made with the keys.
#[derive(Clone, Debug)]
pub(crate) enum KeyWorkKind {
    /// The registration of the epoch's keys.
    Register(LaneBls),
    /// A dealing in the key generation of the epoch.
    Deal(Box<KeyGeneration>),
    /// Complaints about wrong shares.
    Complain(Box<KeyGeneration>),
}

/// Work with the keys of an epoch; see [`KeyWork::perform`].
#[derive(Clone, Debug)]
pub struct KeyWork {
    pub(crate) kind: KeyWorkKind,
    epoch: HomeEpoch,
    member: u8,
    network: Digest,
    is_urgent: bool,
    mistake: Planted<MemberMistake>,
}

impl KeyWork {
    pub(crate) fn new(
        kind: KeyWorkKind,
        lane: &LaneBridge,
        epoch: HomeEpoch,
        member: u8,
        mistake: Planted<MemberMistake>,
    ) -> KeyWork {
        let is_urgent = is_urgent(lane.bridge().clock().heights_left(), lane.terms().epoch_heights);
        KeyWork { kind, epoch, member, network: lane.network(), is_urgent, mistake }
    }

    /// Whether the last quarter of the epoch before has begun: a shard that has offered no key gets one that nobody
    /// has, so that it costs no other shard its registration.
    pub fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// What a shard offers with its key, if the work is a registration.
    pub fn offer(&self, shard: u16, key: &SecretKey, registrar: &PublicKey) -> Option<ShardOffer> {
        let KeyWorkKind::Register(bls) = self.kind else { return None };
        Some(ShardOffer::make(&self.network, (self.epoch, self.member, shard), key, bls, registrar))
    }

    /// The registration of what the shards of the member have offered, in their order.
    pub fn register(&self, offers: &[ShardOffer], registrar: &SecretKey) -> BridgeOperation {
        let (registration, proofs) =
            LaneRegistration::of_offers(&self.network, self.epoch, self.member, offers, registrar);
        BridgeOperation::Register { registration, proofs }
    }

    /// The epoch whose keys are needed.
    pub fn epoch(&self) -> HomeEpoch {
        self.epoch
    }

    /// Makes the posts. `keys` are those of all shards of the member in the epoch, by shard; `registrar` is the key of
    /// the genesis that registers them.
    pub fn perform(&self, keys: &[SecretKey], registrar: Option<&SecretKey>) -> Vec<BridgeOperation> {
        match (&self.kind, keys.first(), registrar) {
            (KeyWorkKind::Register(_), _, Some(registrar)) => {
                let offer = |(shard, key)| self.offer(shard, key, &registrar.public());
                let offers: Vec<ShardOffer> = (0..).zip(keys).filter_map(offer).collect();
                vec![self.register(&offers, registrar)]
            }
            (KeyWorkKind::Deal(generation), Some(key), _) => self.deal(generation, key).into_iter().collect(),
            (KeyWorkKind::Complain(generation), Some(key), _) => self.complain(generation, key),
            _ => Vec::new(),
        }
    }

    /// Whether the key is the one that the generation knows: the registered key may be lost.
    fn is_own(&self, generation: &KeyGeneration, secret: &BlsSecretKey) -> bool {
        generation.terms().keys.get(usize::from(self.member)) == Some(&secret.public())
    }

    fn deal(&self, generation: &KeyGeneration, key: &SecretKey) -> Option<BridgeOperation> {
        let is_own = self.is_own(generation, &BlsSecretKey::of_shard(key));
        is_own.then(|| {
            let dealing = Box::new(dealing_of_shard(generation.terms(), self.member, key));
            let signature = dealing.sign(&self.network, self.epoch, key);
            BridgeOperation::Deal { epoch: self.epoch, dealing, signature }
        })
    }

    fn complain(&self, generation: &KeyGeneration, key: &SecretKey) -> Vec<BridgeOperation> {
        let secret = BlsSecretKey::of_shard(key);
        let is_own = self.is_own(generation, &secret);
        let complain = |dealer: u8| {
            let complaint = match self.mistake.get() {
                Some(MemberMistake::NeedlessComplaints) => generation.reveal(self.member, &secret, dealer),
                _ => generation.complaint(self.member, &secret, dealer),
            }?;
            tracing::warn!(
                dealer,
                epoch = self.epoch,
                "a member of the lane dealt a wrong share: complaining about it"
            );
            Some(BridgeOperation::Complain { epoch: self.epoch, complaint: Box::new(complaint) })
        };
        generation.standing().filter(|_| is_own).filter_map(complain).collect()
    }
}

/// Whether the last quarter of an epoch has begun: the ledger warns then that no keys are registered for the next one.
pub(crate) fn is_urgent(heights_left: u64, epoch_heights: u64) -> bool {
    heights_left <= epoch_heights.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_warned_in_the_last_quarter_of_an_epoch() {
        let warned: Vec<u64> = (1..=10).filter(|left| is_urgent(*left, 10)).collect();
        assert_eq!(warned, [1, 2, 3]);
        assert!(is_urgent(1, 2), "short epochs too");
    }
}
