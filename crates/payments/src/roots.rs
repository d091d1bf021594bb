//! The cache of verified roots.

use std::collections::{HashMap, VecDeque};

use primitives::Signature;

use crate::{CheckBudget, Claim, HomeEpoch, LaneAnswer, LaneCommittee, LaneRefusal, RootHeader};

/// Roots whose signatures were verified, a bounded number for each validator and epoch, so that a Byzantine validator
/// can evict only its own. Trees of one leaf are not kept: their root does not occur again.
#[derive(Clone, Debug)]
pub struct RootCache {
    per_validator: usize,
    verified: HashMap<(HomeEpoch, u8), Recent>,
    highest: HashMap<(HomeEpoch, u8, u16), (RootHeader, Signature)>,
}

#[derive(Clone, Debug, Default)]
struct Recent {
    order: VecDeque<Signature>,
    headers: HashMap<Signature, RootHeader>,
}

impl RootCache {
    /// A cache of at most `per_validator` roots for each validator and epoch.
    pub fn new(per_validator: usize) -> RootCache {
        RootCache { per_validator, verified: HashMap::new(), highest: HashMap::new() }
    }

    /// The number of roots.
    pub fn len(&self) -> usize {
        self.verified.values().map(|recent| recent.order.len()).sum()
    }

    /// Whether it has no roots.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The verified root of this shard with the highest log position. A validator that starts asks its peers for it.
    pub fn highest(&self, epoch: HomeEpoch, validator: u8, shard: u16) -> Option<&(RootHeader, Signature)> {
        self.highest.get(&(epoch, validator, shard))
    }

    /// Verifies one answer. Whether a root is cached changes the cost, never the result.
    ///
    /// # Errors
    /// The first fault found, or [`LaneRefusal::Busy`] if the budget does not suffice.
    pub fn verify(
        &mut self,
        committee: &LaneCommittee,
        claim: &Claim<'_>,
        answer: &LaneAnswer,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        self.verify_header(committee, answer.header(committee, claim)?, answer.signature, budget)
    }

    /// Verifies the signature of a header.
    ///
    /// # Errors
    /// As for [`RootCache::verify`].
    pub fn verify_header(
        &mut self,
        committee: &LaneCommittee,
        header: RootHeader,
        signature: Signature,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        // All that was signed is compared, and the signature, so that an invalid signature on a cached root is refused.
        let known = self.verified.get(&(header.epoch, header.validator)).and_then(|of| of.headers.get(&signature));
        if known == Some(&header) {
            return Ok(());
        }
        budget.spend(1)?;
        if !committee.key(header.validator, header.shard)?.verify(&header.bytes(), &signature) {
            return Err(LaneRefusal::WrongSignature(header.validator));
        }
        self.keep(header, signature);
        Ok(())
    }

    fn keep(&mut self, header: RootHeader, signature: Signature) {
        let place = (header.epoch, header.validator, header.shard);
        let highest = self.highest.entry(place).or_insert((header, signature));
        if highest.0.position < header.position {
            *highest = (header, signature);
        }
        if self.per_validator == 0 || header.size == 1 {
            return;
        }
        let recent = self.verified.entry((header.epoch, header.validator)).or_default();
        if recent.order.len() == self.per_validator
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.headers.remove(&oldest);
        }
        // A key may be made such that one signature holds for two headers: then the later one is kept.
        if recent.headers.insert(signature, header).is_none() {
            recent.order.push_back(signature);
        }
    }
}
