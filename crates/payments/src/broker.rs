//! An untrusted broker, which collects answers to a batch of payments: see `shared`.

use std::collections::BTreeMap;

use primitives::merkle::{self, Family, Tree};
use primitives::{Digest, PublicKey};

use crate::answer::LEAVES_MAX;
use crate::request::{RequestView, SpendRequest};
use crate::shared::batch_header;
use crate::{
    BatchAnswer, BlsAggregate, BlsSignature, CheckBudget, LaneCommittee, LaneRefusal, PaymentCertificate, RootCache,
    SharedCertificate, SharedPlace, SharedSignature, shared_digest,
};

/// The broker's state of a batch: requests, their tree, and the answers so far.
#[derive(Clone, Debug)]
pub struct LaneBroker {
    requests: Vec<Vec<u8>>,
    digests: Vec<Digest>,
    owner: PublicKey,
    tree: Tree,
    answers: BTreeMap<u8, BatchAnswer>,
}

impl LaneBroker {
    /// Makes a batch of requests to confirm payments. Their owners must belong to one shard of each validator.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] if there are none, too many, or other requests; [`LaneRefusal::ForeignShard`] if an
    /// owner belongs to another shard than the first.
    pub fn new(committee: &LaneCommittee, requests: Vec<Vec<u8>>) -> Result<LaneBroker, LaneRefusal> {
        if !(1..=LEAVES_MAX).contains(&requests.len()) {
            return Err(LaneRefusal::Malformed("a batch has 1 to 4,096 requests"));
        }
        let mut digests = Vec::with_capacity(requests.len());
        let mut first = None;
        for request in &requests {
            let RequestView::Spend(SpendRequest { payment, .. }) = RequestView::parse(request)? else {
                return Err(LaneRefusal::Malformed("a batch holds requests to confirm payments"));
            };
            let owner = *first.get_or_insert(payment.owner());
            // A validator that did not register has no shard, and is not asked.
            let registered = |validator: &usize| !committee.keys_of(*validator as u8).is_empty();
            for validator in (0..committee.quorums().validators).filter(registered) {
                let shard = committee.shard_of(validator as u8, &payment.owner())?;
                if shard != committee.shard_of(validator as u8, &owner)? {
                    return Err(LaneRefusal::ForeignShard(shard));
                }
            }
            digests.push(payment.digest());
        }
        let leaves = digests.iter().map(|digest| merkle::leaf(Family::LaneSigned, &digest.0)).collect();
        let (tree, owner) = (Tree::new(Family::LaneSigned, leaves), first.expect("there is a request"));
        Ok(LaneBroker { requests, digests, owner, tree, answers: BTreeMap::new() })
    }

    /// The request to each validator.
    pub fn request(&self) -> Vec<u8> {
        batch_request(&self.requests)
    }

    /// The payments, in the order of the leaves.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Adds a validator's answer.
    ///
    /// # Errors
    /// The reason why it does not count.
    pub fn add(
        &mut self,
        committee: &LaneCommittee,
        roots: &mut RootCache,
        answer: BatchAnswer,
    ) -> Result<(), LaneRefusal> {
        let size = self.digests.len() as u32;
        let digest = shared_digest(&self.tree.root(), size, &answer.excluded);
        let header = batch_header(committee, answer.validator, &self.owner, (size, answer.position), digest)?;
        match answer.signature {
            SharedSignature::Lane(signature) => {
                roots.verify_header(committee, header, signature, &mut CheckBudget(1))?;
            }
            SharedSignature::Bls(signature) => {
                let key = committee.bls_key(answer.validator, header.shard)?;
                if !key.verify(&committee.network(), committee.epoch(), header.kind, &digest, &signature) {
                    return Err(LaneRefusal::WrongSignature(answer.validator));
                }
            }
        }
        self.answers.insert(answer.validator, answer);
        Ok(())
    }

    /// The certificate of one payment, once a quorum confirmed it.
    pub fn certificate(&self, committee: &LaneCommittee, index: u32) -> Option<PaymentCertificate> {
        let path = ((index as usize) < self.digests.len()).then(|| self.tree.path(index as usize))?;
        let place = SharedPlace { size: self.digests.len() as u32, index, path };
        let includes = |answer: &&BatchAnswer| !answer.excluded.iter().any(|place| u32::from(*place) == index);
        let needed = committee.quorums().certificate;
        let mut by_list: BTreeMap<&[u16], Vec<(u8, BlsSignature)>> = BTreeMap::new();
        let mut lane = Vec::new();
        for answer in self.answers.values().filter(includes) {
            match answer.signature {
                SharedSignature::Lane(_) => lane.push(answer.clone()),
                SharedSignature::Bls(part) => {
                    by_list.entry(&answer.excluded).or_default().push((answer.validator, part));
                }
            }
        }
        let shared = if lane.len() >= needed {
            lane.truncate(needed);
            SharedCertificate::Answers(place, lane)
        } else {
            let (excluded, parts) = by_list.into_iter().find(|(_, parts)| parts.len() >= needed)?;
            let aggregate = BlsAggregate::of(committee, &parts).ok()?;
            SharedCertificate::Aggregate(place, excluded.to_vec(), aggregate)
        };
        Some(PaymentCertificate::Shared(Box::new(shared)))
    }
}

fn batch_request(requests: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![crate::request::BATCH];
    bytes.extend((requests.len() as u16).to_le_bytes());
    for request in requests {
        bytes.extend((request.len() as u32).to_le_bytes());
        bytes.extend(request);
    }
    bytes
}
