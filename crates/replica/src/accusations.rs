//! Accusations that a validator makes on its own.
//!
//! The list takes evidence against a validator: one piece for each member of each epoch is enough. The evidence is
//! sent as a transaction of the validator's own account ([`crate::OwnKeys`]), and sent again if a transaction is
//! lost, until the ledger says that it is of no further use: the validator is convicted (no matter by whom), is not a
//! validator, or the period for accusations is over. Every correct validator that holds evidence does this: the first
//! conviction counts, and later accusations in the same block pay their fee for nothing.
//!
//! **Properties.** Pure. At most one pending transaction per member, and members are bounded: an engine has evidence
//! of its own epoch only, and evidence older than the ledger punishes is dropped. The list is lost when the process
//! ends; other validators hold the evidence too, and so does the operator's log.

use std::collections::BTreeMap;

use ledger::Ledger;
use primitives::{Body, Evidence, Operation, SecretKey, Sequence, Transaction, TransactionId, UNTIL_USUAL};

/// The list; see the module text.
#[derive(Default)]
pub struct Accusations(BTreeMap<(u64, u8), Accusation>);

struct Accusation {
    evidence: Evidence,
    /// The last transaction that carried it.
    sent: Option<TransactionId>,
}

impl Accusations {
    /// Records evidence, unless there is some against the same member already.
    pub fn note(&mut self, evidence: Evidence) {
        let accusation = Accusation { evidence, sent: None };
        self.0.entry((evidence.epoch, evidence.member)).or_insert(accusation);
    }

    /// Whether there is no accusation to make.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Accusation transactions on top of `ledger`, signed by `key` with sequence numbers from `next`. Skips those
    /// that `waits` reports as still pending. Removes accusations that the ledger needs no longer.
    pub fn due(
        &mut self,
        ledger: &Ledger,
        key: &SecretKey,
        next: Sequence,
        waits: impl Fn(&TransactionId) -> bool,
    ) -> Vec<Transaction> {
        self.0.retain(|_, accusation| ledger.convicts(&accusation.evidence).is_ok());
        let idle = self.0.values_mut().filter(|accusation| !accusation.sent.is_some_and(|id| waits(&id)));
        let (chain, network, account) = (ledger.chain(), ledger.network(), key.public().address());
        let until = ledger.height() + UNTIL_USUAL;
        let sign = |(sequence, accusation): (Sequence, &mut Accusation)| {
            let operation = Operation::Accuse(Box::new(accusation.evidence));
            let transaction = Body { chain, account, sequence, until, operation }.sign(&network, key);
            accusation.sent = Some(transaction.id());
            transaction
        };
        (next..).zip(idle).map(sign).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::{Genesis, Listing, Member, Membership, Schedule, Signatures, Terms};
    use primitives::{Committed, Contradiction, Digest, Fraction, Scope, SubBlock, Superblock};

    fn key(index: u8) -> SecretKey {
        SecretKey::from_seed([index + 1; 32])
    }

    fn founded() -> Ledger {
        let terms = Terms {
            network: Digest([4; 32]),
            schedule: Schedule { epoch_heights: 10, delay: 2 },
            committee: 4,
            minimum_stake: 1,
            unbonding_epochs: 1,
            reward: 0,
            slash: Fraction::power_of_two(1),
        };
        let founder = |index: u8| {
            let key = key(index).public();
            Member { account: key.address(), key, address: String::new(), stake: 100 }
        };
        let founders = (0..4).map(founder).collect();
        let assets = vec![Listing::new("USD", 2, key(9).public().address())];
        let membership = Some(Membership { terms, reward_pool: 0, founders });
        let mu = Fraction::power_of_two(10);
        Ledger::new(&Genesis { chain: 1, mu, assets, membership, ..Genesis::default() }).expect("sound")
    }

    fn evidence(member: u8, root: u8) -> Evidence {
        let scope = Scope { network: Digest([4; 32]), epoch: 0 };
        let commits = [0, root].map(|root| {
            let (superblock, root) = (Digest([1; 32]), Digest([root; 32]));
            Committed { superblock, root, signature: key(member).sign(&scope.commit(5, &superblock, &root).0) }
        });
        Evidence { epoch: 0, member, height: 5, contradiction: Contradiction::Commits(commits) }
    }

    fn apply(ledger: &mut Ledger, native: Vec<Transaction>) -> usize {
        let sub_blocks = vec![SubBlock { proposer: 99, native, ..SubBlock::default() }];
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
        let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        applied.outcomes.iter().filter(|outcome| outcome.refusal().is_none()).count()
    }

    #[test]
    fn each_member_is_accused_until_it_is_convicted() {
        let mut ledger = founded();
        let mut accusations = Accusations::default();
        [evidence(2, 1), evidence(2, 3), evidence(3, 1)].into_iter().for_each(|one| accusations.note(one));
        let sent = accusations.due(&ledger, &key(0), 1, |_| false);
        assert_eq!(sent.iter().map(|one| one.body.sequence).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(accusations.due(&ledger, &key(0), 3, |id| *id == sent[0].id()).len(), 1, "the other one was lost");
        assert_eq!(accusations.due(&ledger, &key(0), 4, |_| true), []);
        assert_eq!(apply(&mut ledger, sent[..1].to_vec()), 1);
        let rest = accusations.due(&ledger, &key(0), 5, |_| false);
        assert!(rest.len() == 1 && !accusations.is_empty());
        assert_eq!(apply(&mut ledger, rest), 1);
        assert_eq!(accusations.due(&ledger, &key(0), 6, |_| false), []);
        assert!(accusations.is_empty());
        assert!(
            [2, 3].iter().all(|who| ledger.validators().get(&key(*who).public().address()).is_some_and(|v| v.excluded))
        );
        // Evidence that is recorded again after the conviction is not sent.
        accusations.note(evidence(2, 1));
        assert_eq!(accusations.due(&ledger, &key(0), 7, |_| false), []);
    }

    #[test]
    fn false_and_old_evidence_is_forgotten() {
        let mut ledger = founded();
        let mut accusations = Accusations::default();
        accusations.note(Evidence { member: 1, ..evidence(2, 1) });
        assert_eq!(accusations.due(&ledger, &key(0), 1, |_| false), []);
        accusations.note(evidence(2, 1));
        while ledger.height() < 30 {
            apply(&mut ledger, Vec::new());
        }
        assert_eq!(accusations.due(&ledger, &key(0), 1, |_| false), []);
        assert!(accusations.is_empty());
    }
}
