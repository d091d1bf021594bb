//! Closes trees, and signs them once their records are durable.

use super::*;

impl LaneValidator {
    /// Closes the open trees: their records go to the log, and the trees wait until these are durable.
    pub(super) fn close(&mut self, effects: &mut Vec<LaneEffect>) {
        if !self.tail.is_empty() {
            self.written += self.tail.len() as u64;
            effects.push(LaneEffect::Append(std::mem::take(&mut self.tail)));
            effects.push(LaneEffect::Sync(self.written));
        }
        let position = self.written;
        let trees = std::mem::take(&mut self.open).into_iter().flat_map(|(kind, mut leaves)| {
            // Votes and views may be more than one tree holds.
            let mut trees = Vec::new();
            while !leaves.is_empty() {
                let rest = leaves.split_off(leaves.len().min(LEAVES_MAX));
                trees.push(ClosedTree { kind, leaves: std::mem::replace(&mut leaves, rest), position });
            }
            trees
        });
        self.waiting.extend(trees);
        self.batches.extend(self.open_batches.drain(..).map(|batch| Batch { position, ..batch }));
        self.sign(effects);
    }

    /// Signs the trees whose records are durable.
    pub(super) fn sign(&mut self, effects: &mut Vec<LaneEffect>) {
        while self.notices.front().is_some_and(|(position, ..)| *position <= self.durable)
            && let Some((_, case, paid)) = self.notices.pop_front()
        {
            effects.push(LaneEffect::Barred { case, paid });
        }
        while self.batches.front().is_some_and(|batch| batch.position <= self.durable)
            && let Some(batch) = self.batches.pop_front()
        {
            effects.push(self.sign_batch(batch));
        }
        while self.waiting.front().is_some_and(|tree| tree.position <= self.durable)
            && let Some(closed) = self.waiting.pop_front()
        {
            let closed = self.sign_bls(closed, effects);
            if closed.leaves.is_empty() {
                continue;
            }
            let leaf = |(_, digest): &(Asker, Digest)| merkle::leaf(Family::LaneSigned, &digest.0);
            let tree = Tree::new(Family::LaneSigned, closed.leaves.iter().map(leaf).collect());
            let header = RootHeader {
                network: self.settings.rules.network,
                epoch: self.settings.committee.epoch(),
                validator: self.settings.validator,
                shard: self.settings.shard,
                kind: closed.kind,
                size: closed.leaves.len() as u32,
                position: closed.position,
                root: tree.root(),
            };
            let signature = self.lane_key().sign(&header.bytes());
            if closed.kind == StatementKind::Confirmation {
                self.roots.keep_root(header, signature);
            }
            for (index, (asker, digest)) in closed.leaves.into_iter().enumerate() {
                let answer = LaneAnswer {
                    validator: header.validator,
                    size: header.size,
                    index: index as u32,
                    position: header.position,
                    signature,
                    path: tree.path(index),
                };
                effects.push(match asker {
                    Asker::Peer(peer, _) => LaneEffect::Answer { peer, kind: closed.kind, digest, answer },
                    Asker::Vote(case, payment, signature) => LaneEffect::Vote { case, payment, signature, answer },
                    Asker::View(case, paid) => LaneEffect::View { case, paid, answer },
                });
            }
        }
    }

    /// The key; nothing is waiting to be signed once it is destroyed.
    fn lane_key(&self) -> &SecretKey {
        self.key.as_ref().expect("nothing is signed with a destroyed key")
    }

    /// Answers the clients that asked for BLS signatures; the rest is signed with the other key.
    fn sign_bls(&self, mut closed: ClosedTree, effects: &mut Vec<LaneEffect>) -> ClosedTree {
        let (network, epoch, kind) = (&self.settings.rules.network, self.home(), closed.kind);
        closed.leaves.retain(|(asker, digest)| {
            let &Asker::Peer(peer, scheme) = asker else { return true };
            let signature = match (scheme, &self.bls, &self.share) {
                (AnswerScheme::Bls, Some(key), _) => key.sign(network, epoch, kind, digest),
                (AnswerScheme::Share, _, Some(share)) => share.sign(network, epoch, kind, digest),
                _ => return true,
            };
            effects.push(LaneEffect::BlsAnswer { peer, kind, digest: *digest, signature });
            false
        });
        closed
    }

    fn sign_batch(&self, batch: Batch) -> LaneEffect {
        let Batch { peer, scheme, owner, digests, excluded, position } = batch;
        let size = digests.len() as u32;
        let leaves = digests.iter().map(|digest| merkle::leaf(Family::LaneSigned, &digest.0)).collect();
        let digest = shared_digest(&Tree::new(Family::LaneSigned, leaves).root(), size, &excluded);
        let (committee, validator) = (&self.settings.committee, self.settings.validator);
        let signature = match &self.bls {
            Some(key) if scheme == AnswerScheme::Bls => {
                let kind = StatementKind::SharedConfirmation;
                SharedSignature::Bls(key.sign(&self.settings.rules.network, self.home(), kind, &digest))
            }
            _ => {
                let header = batch_header(committee, validator, &owner, (size, position), digest);
                let header = RootHeader { shard: self.settings.shard, ..header.expect("it is a member") };
                SharedSignature::Lane(self.lane_key().sign(&header.bytes()))
            }
        };
        LaneEffect::BatchAnswer(peer, BatchAnswer { validator, position, excluded, signature })
    }
}
