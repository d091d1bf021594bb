//! What the shards of a home are started with, and the keys with which they sign.

use ledger::LaneBridge;
use payments::{
    BlsSecretKey, HomeEpoch, HomeTerms, KeyGeneration, KeyShare, LaneCommittee, LaneFact, LaneInput, LaneRules, Output,
    OutputId,
};
use primitives::SecretKey;

/// The term of a home: what its shards must know to start.
#[derive(Clone, Debug)]
pub struct ShardTerm {
    /// The rules of the home's payments, which never change.
    pub rules: LaneRules,
    /// The committee of the home.
    pub committee: LaneCommittee,
    /// The committee of the epoch before, whose payments may create inputs.
    pub previous: Option<LaneCommittee>,
    /// The key generation that gave the committee its group key, if it has one.
    pub generation: Option<KeyGeneration>,
    /// The lane epoch by certified height.
    pub now: HomeEpoch,
    /// The outputs that certified blocks have created with this home.
    pub backed: Vec<(OutputId, Output)>,
    /// The outputs with this home that verdicts of certified blocks have proved.
    pub proven: Vec<(OutputId, Output)>,
}

impl ShardTerm {
    /// The term of a home; `None` if the ledger has dropped it.
    pub(crate) fn of(
        lane: &LaneBridge,
        home: HomeEpoch,
        now: HomeEpoch,
        [backed, proven]: [Vec<(OutputId, Output)>; 2],
    ) -> Option<ShardTerm> {
        let committee = lane.committee(home)?.clone();
        let previous = home.checked_sub(1).and_then(|before| lane.committee(before)).cloned();
        let generation = committee.group().ok().and_then(|_| lane.bridge().generation(home)).cloned();
        Some(ShardTerm { rules: lane.rules(home), committee, previous, generation, now, backed, proven })
    }

    /// The term of a shard that runs apart. What the ledger knows of outputs comes as facts.
    pub(crate) fn apart(terms: HomeTerms, now: HomeEpoch) -> ShardTerm {
        let HomeTerms { rules, committee, previous } = terms;
        ShardTerm { rules, committee, previous, generation: None, now, backed: Vec::new(), proven: Vec::new() }
    }

    /// Follows certified blocks, for shards that start later. They are told of cases and halts when they start.
    pub(crate) fn follow(&mut self, fact: &LaneFact) {
        match fact {
            LaneInput::Epoch(epoch) => self.now = *epoch,
            LaneInput::Backed(id, output) => self.backed.push((*id, *output)),
            LaneInput::Proven(id, output) => self.proven.push((*id, *output)),
            _ => {}
        }
    }

    /// The keys of a shard, if its key is the registered one.
    pub fn secrets(&self, member: u8, shard: u16, key: SecretKey) -> Option<ShardSecrets> {
        let is_registered = self.committee.key(member, shard) == Ok(key.public());
        let bls = BlsSecretKey::of_shard(&key);
        let bls = Some(bls).filter(|bls| self.committee.bls_key(member, shard) == Ok(&bls.public()));
        let share = self.generation.as_ref().zip(bls.as_ref()).and_then(|(of, bls)| of.share(member, bls));
        is_registered.then_some(ShardSecrets { key, bls, share })
    }
}

/// The keys with which a shard signs.
pub struct ShardSecrets {
    /// Its registered key.
    pub key: SecretKey,
    /// Its BLS key, if that is registered.
    pub bls: Option<BlsSecretKey>,
    /// The member's share of the group key, if there is one.
    pub share: Option<KeyShare>,
}
