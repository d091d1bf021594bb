//! Accusations that a validator makes on its own.
//!
//! The list takes evidence against a validator: one piece for each member of each epoch is enough. The validator's own
//! account posts the evidence ([`crate::OwnKeys`], [`crate::Mempool::post`]), and posts it again if a transaction is
//! lost, until the ledger says that it is of no further use. Then the accused validator is convicted (no matter by
//! whom), is not a validator, or the period for accusations is over. Every correct validator that holds evidence does
//! this: the first conviction counts, and later accusations in the same block pay their fee for nothing.
//!
//! **Properties.** Pure. At most one pending transaction per member, and members are bounded: an engine has evidence
//! of its own epoch only, and evidence older than the ledger punishes is dropped. The list is lost when the process
//! ends; other validators hold the evidence too, and so does the operator's log.

use std::collections::BTreeMap;

use ledger::Ledger;
use primitives::{Evidence, Operation, SecretKey, TransactionId, UNTIL_USUAL};

use crate::Mempool;

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

    /// Posts the accusations whose last transactions are not pending any more. Removes those that the ledger needs no
    /// longer.
    pub fn post(&mut self, ledger: &Ledger, key: &SecretKey, pool: &mut Mempool, arrived_ms: u64) {
        self.0.retain(|_, accusation| ledger.convicts(&accusation.evidence).is_ok());
        for accusation in self.0.values_mut() {
            if accusation.sent.is_some_and(|id| pool.contains(&id)) {
                continue;
            }
            let operation = Operation::Accuse(Box::new(accusation.evidence));
            match pool.post(key, operation, ledger.height() + UNTIL_USUAL, ledger, arrived_ms) {
                Ok(id) => {
                    tracing::warn!("accusing a validator of contradictory signatures");
                    accusation.sent = Some(id);
                }
                Err(why) => {
                    let account = key.public().address();
                    tracing::warn!(?why, %account, "this validator's account cannot accuse");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PoolEntry;
    use ledger::{Genesis, Listing, Member, Membership, Schedule, Signatures, Terms};
    use primitives::{Committed, Contradiction, Digest, Fraction, Scope, SubBlock, Superblock, Transaction};

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

    /// What is posted now. It stays pending.
    fn posted(accusations: &mut Accusations, ledger: &Ledger, pool: &mut Mempool) -> Vec<PoolEntry> {
        accusations.post(ledger, &key(0), pool, 0);
        pool.take(64)
    }

    fn settle(pool: &mut Mempool, entries: &[PoolEntry]) {
        pool.settle(entries.iter().map(|entry| (entry.id, &entry.transaction)));
    }

    fn sequences(entries: &[PoolEntry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.transaction.body.sequence).collect()
    }

    #[test]
    fn each_member_is_accused_until_it_is_convicted() {
        let (mut ledger, mut pool) = (founded(), Mempool::new(100));
        let mut accusations = Accusations::default();
        [evidence(2, 1), evidence(2, 3), evidence(3, 1)].into_iter().for_each(|one| accusations.note(one));
        let sent = posted(&mut accusations, &ledger, &mut pool);
        assert_eq!(sequences(&sent), [1, 2]);
        assert!(posted(&mut accusations, &ledger, &mut pool).is_empty(), "both are pending");
        settle(&mut pool, &sent[1..]);
        let again = posted(&mut accusations, &ledger, &mut pool);
        assert_eq!(sequences(&again), [2], "the other one was lost");
        settle(&mut pool, &again);
        settle(&mut pool, &sent[..1]);
        assert_eq!(apply(&mut ledger, vec![sent[0].transaction.clone()]), 1);
        let rest = posted(&mut accusations, &ledger, &mut pool);
        assert!(rest.len() == 1 && !accusations.is_empty());
        assert_eq!(apply(&mut ledger, vec![rest[0].transaction.clone()]), 1);
        assert!(posted(&mut accusations, &ledger, &mut pool).is_empty());
        assert!(accusations.is_empty());
        assert!(
            [2, 3].iter().all(|who| ledger.validators().get(&key(*who).public().address()).is_some_and(|v| v.excluded))
        );
        // Evidence that is recorded again after the conviction is not sent.
        accusations.note(evidence(2, 1));
        assert!(posted(&mut accusations, &ledger, &mut pool).is_empty());
    }

    /// The account also posts for the payment lane: what both send is in flight under different numbers.
    #[test]
    fn accusations_and_posts_in_flight_never_claim_one_number() {
        let (ledger, mut pool) = (founded(), Mempool::new(100));
        let mut accusations = Accusations::default();
        let post = |pool: &mut Mempool, id| {
            let operation = Operation::CreateAccount { account: key(id).public().address(), key: key(id).public() };
            pool.post(&key(0), operation, 100, &ledger, 0).expect("it costs nothing");
            pool.take(64)
        };
        let mut sent = post(&mut pool, 11);
        accusations.note(evidence(2, 1));
        sent.extend(posted(&mut accusations, &ledger, &mut pool));
        sent.extend(post(&mut pool, 12));
        accusations.note(evidence(3, 1));
        sent.extend(posted(&mut accusations, &ledger, &mut pool));
        assert_eq!(sequences(&sent), [1, 2, 3, 4]);
        // Other numbers are free again when their transactions have ended.
        settle(&mut pool, &sent);
        assert_eq!(sequences(&post(&mut pool, 13)), [1]);
    }

    #[test]
    fn false_and_old_evidence_is_forgotten() {
        let (mut ledger, mut pool) = (founded(), Mempool::new(100));
        let mut accusations = Accusations::default();
        accusations.note(Evidence { member: 1, ..evidence(2, 1) });
        assert!(posted(&mut accusations, &ledger, &mut pool).is_empty());
        accusations.note(evidence(2, 1));
        while ledger.height() < 30 {
            apply(&mut ledger, Vec::new());
        }
        assert!(posted(&mut accusations, &ledger, &mut pool).is_empty());
        assert!(accusations.is_empty());
    }
}
