//! Work with the secret keys of an epoch: registering them, and the part of a member in the key generation of that
//! epoch. It takes too long for a step, and the shell alone has the keys: a step gives it out as data.

use kernel::Planted;
use ledger::LaneBridge;
use payments::{BlsSecretKey, BridgeOperation, HomeEpoch, KeyGeneration, LaneBls, LaneRegistration, dealing_of_shard};
use primitives::{Digest, SecretKey};

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
        KeyWork { kind, epoch, member, network: lane.network(), mistake }
    }

    /// The epoch whose keys are needed.
    pub fn epoch(&self) -> HomeEpoch {
        self.epoch
    }

    /// Makes the posts. `keys` are those of all shards of the member in the epoch, by shard; `registrar` is the key of
    /// the genesis that registers them.
    pub fn perform(&self, keys: &[SecretKey], registrar: Option<&SecretKey>) -> Vec<BridgeOperation> {
        match (&self.kind, keys.first(), registrar) {
            (KeyWorkKind::Register(bls), _, Some(registrar)) => vec![self.register(*bls, keys, registrar)],
            (KeyWorkKind::Deal(generation), Some(key), _) => self.deal(generation, key).into_iter().collect(),
            (KeyWorkKind::Complain(generation), Some(key), _) => self.complain(generation, key),
            _ => Vec::new(),
        }
    }

    fn register(&self, bls: LaneBls, keys: &[SecretKey], registrar: &SecretKey) -> BridgeOperation {
        let bls_keys: Vec<BlsSecretKey> = match bls {
            LaneBls::None => Vec::new(),
            LaneBls::Aggregate | LaneBls::Threshold => keys.iter().map(BlsSecretKey::of_shard).collect(),
        };
        let (registration, proofs) =
            LaneRegistration::make_with_bls(&self.network, self.epoch, self.member, keys, &bls_keys, registrar);
        BridgeOperation::Register { registration, proofs }
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
