//! What a member proposes and votes about the terms of assets, through its own pool.

use member::ShardTerm;
use payments::LaneRules;
use primitives::{ProposalWord, ProposedChange};

use super::*;
use crate::lane::terms::wishes;

/// Heights within which a block takes what a member says; then it says it again.
const VOTE_BLOCKS: Height = 3;

impl SimValidator {
    /// Says what it wants by the state that it knows, unless that is under way.
    pub fn vote(&mut self) {
        let (key, height) = (secret(2, self.index.into()), self.ledger.height());
        let account = key.public().address();
        for (proposer, terms) in wishes(&self.ledger) {
            let change = ProposedChange::Lane(terms);
            let open = self.ledger.proposals().open().values().find(|open| open.change == change);
            let says = match open {
                Some(open) if open.votes.contains_key(&account) => None,
                Some(open) => Some((true, Operation::Vote { proposal: open.id, word: ProposalWord::Yes })),
                None if proposer == self.index => Some((false, Operation::Propose(Box::new(change)))),
                None => None,
            };
            let Some((is_vote, operation)) = says else { continue };
            let place = (is_vote, terms.asset);
            let is_due = self.asked.get(&place).is_none_or(|asked| height >= asked + VOTE_BLOCKS);
            if is_due && self.pool.post(&key, operation, height + VOTE_BLOCKS, &self.ledger, 0).is_ok() {
                self.asked.insert(place, height);
            }
        }
    }

    /// The rules by which a shard judges payments of its home.
    pub(super) fn rules_of(&self, term: &ShardTerm) -> LaneRules {
        match self.mistake {
            Some(Mistake::Lane(LaneMistake::ShardsJudgeByNewest)) => lane(&self.ledger).rules(HomeEpoch::MAX),
            _ => term.rules.clone(),
        }
    }
}
