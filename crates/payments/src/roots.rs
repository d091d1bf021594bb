//! The cache of verified roots.

use std::collections::{HashMap, VecDeque};

use primitives::Signature;

use crate::{CheckBudget, Claim, HomeEpoch, LaneAnswer, LaneCommittee, LaneRefusal, RootHeader};

/// Roots whose signatures were verified, a bounded number for each validator and epoch, so that a Byzantine validator
/// can evict only its own. Of trees of one leaf only own roots are kept: they occur once more, in a settlement.
#[derive(Clone, Debug)]
pub struct RootCache {
    per_validator: usize,
    verified: HashMap<(HomeEpoch, u8), Recent>,
    /// Roots whose signatures were verified in one batch before they are asked for, and whether they hold.
    together: HashMap<Signature, (RootHeader, bool)>,
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
        RootCache { per_validator, verified: HashMap::new(), together: HashMap::new(), highest: HashMap::new() }
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
        let holds = match self.together.get(&signature) {
            // Whoever brought it has paid with the batch.
            Some((of, holds)) if *of == header => *holds,
            _ => {
                budget.spend(1)?;
                committee.key(header.validator, header.shard)?.verify(&header.bytes(), &signature)
            }
        };
        if !holds {
            return Err(LaneRefusal::WrongSignature(header.validator));
        }
        self.keep(header, signature);
        Ok(())
    }

    /// Whether no root of this validator is cached that has this signature.
    pub(crate) fn is_cold(&self, epoch: HomeEpoch, validator: u8, signature: &Signature) -> bool {
        self.verified.get(&(epoch, validator)).is_none_or(|of| !of.headers.contains_key(signature))
    }

    /// Remembers what a batch said of a root, until it is forgotten.
    pub(crate) fn remember(&mut self, signature: Signature, header: RootHeader, holds: bool) {
        self.together.insert(signature, (header, holds));
    }

    /// Forgets what the last batch said.
    pub(crate) fn forget_batch(&mut self) {
        self.together.clear();
    }

    fn keep(&mut self, header: RootHeader, signature: Signature) {
        let place = (header.epoch, header.validator, header.shard);
        let highest = self.highest.entry(place).or_insert((header, signature));
        if highest.0.position < header.position {
            *highest = (header, signature);
        }
        if header.size > 1 {
            self.keep_root(header, signature);
        }
    }

    /// Keeps a root that was verified, or that its holder has signed itself.
    pub(crate) fn keep_root(&mut self, header: RootHeader, signature: Signature) {
        if self.per_validator == 0 {
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
