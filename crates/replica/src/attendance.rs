//! The presence that a validator's node posts once an epoch, by itself.
//!
//! The ledger draws only validators that are present: the node of one says so once in each epoch, signed by the
//! validator's key ([`primitives::Presence`]). Every node posts it whose key a stake names, also one that follows. It
//! posts early in the epoch, and again whenever the transaction is neither pending nor in the ledger. A node that
//! proposes puts it into its own sub-block. One that follows forwards it to one validator after the other
//! (`Mempool::reclaim`), so f of them keep it out of no epoch.
//!
//! **Properties.** Pure. At most one transaction is pending. It is signed apart from the pool and from the ledger,
//! because the key may be in another process that takes its time. A crash loses nothing: the ledger says what is due.

use std::sync::Arc;

use ledger::Ledger;
use primitives::{Presence, Signer, Transaction, UNTIL_USUAL};

use crate::Mempool;
use crate::mempool::PoolEntry;

/// Ticks to wait before a key that could not be reached is asked again: asking may take seconds, and sub-blocks wait
/// for it.
const PAUSE_TICKS: u32 = 300;

/// What a node posts about itself; see the module text.
pub struct Attendance {
    signer: Arc<dyn Signer>,
    /// Whether the log has said why the last one was not accepted.
    told: bool,
    /// Ticks for which the key is not asked.
    pause: u32,
    /// The last one that was signed.
    signed: Option<(Presence, Transaction)>,
    /// One before it, which counts no more and may still be on its way: it makes room in the pool.
    outdated: Option<Transaction>,
}

impl Attendance {
    /// For the validator with this key.
    pub fn new(signer: Arc<dyn Signer>) -> Attendance {
        Attendance { signer, told: false, pause: 0, signed: None, outdated: None }
    }

    /// The presence to be signed now, if the ledger lacks it and none is signed that could still count.
    pub fn due(&self, ledger: &Ledger) -> Option<Presence> {
        let due = self.lacking(ledger)?;
        let counts = |(signed, _): &(Presence, Transaction)| {
            Presence { until: due.until, ..*signed } == due && signed.until > ledger.height()
        };
        (self.pause == 0 && !self.signed.as_ref().is_some_and(counts)).then_some(due)
    }

    /// What the ledger lacks: the presence of the account whose stake names this key, for the next draw.
    pub fn lacking(&self, ledger: &Ledger) -> Option<Presence> {
        let (schedule, next) = (ledger.schedule(), ledger.height() + 1);
        let epoch = schedule.last_drawn(next) + 1;
        let key = self.signer.public();
        let own = ledger.validators().registry.iter().find(|one| one.member.key == key && one.is_staked())?;
        if schedule.is_fixed() || own.is_present_for(epoch) {
            return None;
        }
        // At the boundary itself the next epoch is due.
        let until = (schedule.boundary(epoch) - 1).min(next + UNTIL_USUAL);
        let (network, chain, account) = (ledger.network(), ledger.chain(), own.member.account);
        Some(Presence { network, chain, account, epoch, until })
    }

    /// Signs a presence. If its key cannot be reached, a later tick tries again.
    pub fn sign(&mut self, presence: Presence) {
        match presence.sign(&*self.signer) {
            Ok(transaction) => {
                let before = self.signed.replace((presence, transaction));
                self.outdated = before.map(|(_, outdated)| outdated).or(self.outdated.take());
                self.told = false;
            }
            Err(error) => {
                self.pause = PAUSE_TICKS;
                tracing::warn!(%error, epoch = presence.epoch, "this validator's presence is not signed");
            }
        }
    }

    /// Whether a signed presence may have to be posted.
    pub fn is_signed(&self) -> bool {
        self.signed.is_some()
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.pause = self.pause.saturating_sub(1);
    }

    /// Posts what is signed, unless it is pending or the ledger has it.
    pub fn post(&mut self, ledger: &Ledger, pool: &mut Mempool, arrived_ms: u64) {
        if let Some(outdated) = self.outdated.take() {
            pool.settle([(outdated.id(), &outdated)].into_iter(), ledger.fee());
        }
        let Some((presence, transaction)) = &self.signed else { return };
        let is_lacking = self.lacking(ledger).is_some_and(|due| due.epoch == presence.epoch);
        if !is_lacking || presence.until <= ledger.height() {
            self.outdated = self.signed.take().map(|(_, transaction)| transaction);
            return;
        }
        let id = transaction.id();
        if pool.contains(&id) {
            return;
        }
        let entry = PoolEntry { id, arrived_ms, transaction: transaction.clone() };
        match pool.admit(entry, ledger) {
            Ok(()) => tracing::info!(epoch = presence.epoch, "this validator posts that it is present"),
            Err(_) if std::mem::replace(&mut self.told, true) => {}
            Err(why) => tracing::warn!(?why, epoch = presence.epoch, "this validator's presence is not accepted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::{Genesis, Listing, Member, Membership, Refusal, Schedule, Signatures, Terms};
    use primitives::{Fraction, SecretKey, SigningError, SigningRequest, SubBlock, Superblock};

    fn key(index: u8) -> SecretKey {
        SecretKey::from_seed([index + 1; 32])
    }

    /// Validators 0 and 1, whose accounts have other keys; boundaries at 10, 20 and so on.
    fn founded() -> Ledger {
        let terms = Terms {
            schedule: Schedule { epoch_heights: 10, delay: 2 },
            committee: 2,
            minimum_stake: 1,
            slash: Fraction::power_of_two(1),
            ..Terms::default()
        };
        let founder = |index: u8| {
            let account = key(100 + index).public().address();
            Member { account, key: key(index).public(), address: String::new(), stake: 100 }
        };
        let assets = vec![Listing::new("USD", 2, key(9).public().address())];
        let membership = Some(Membership { terms, reward_pool: 0, founders: (0..2).map(founder).collect() });
        let mu = Fraction::power_of_two(10);
        Ledger::new(&Genesis { chain: 1, mu, assets, membership, ..Genesis::default() }).expect("sound")
    }

    fn apply(ledger: &mut Ledger, native: Vec<Transaction>) {
        let sub_blocks = vec![SubBlock { proposer: 0, native, ..SubBlock::default() }];
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
        ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    }

    fn to_height(ledger: &mut Ledger, height: u64) {
        while ledger.height() < height {
            apply(ledger, Vec::new());
        }
    }

    /// One tick of a node: what it posts.
    fn tick(attendance: &mut Attendance, ledger: &Ledger, pool: &mut Mempool) -> Vec<Transaction> {
        attendance.due(ledger).into_iter().for_each(|due| attendance.sign(due));
        attendance.post(ledger, pool, 0);
        pool.take(9).into_iter().map(|entry| entry.transaction).collect()
    }

    #[test]
    fn a_presence_is_posted_until_the_ledger_has_it_and_waits_once() {
        let (mut ledger, mut pool) = (founded(), Mempool::new(100));
        let mut attendance = Attendance::new(Arc::new(key(1)));
        assert!(tick(&mut attendance, &ledger, &mut pool).is_empty(), "a founder is present at first");
        to_height(&mut ledger, 9);
        let posted = tick(&mut attendance, &ledger, &mut pool);
        assert_eq!(posted.len(), 1, "block 10 counts for epoch 2");
        assert!(tick(&mut attendance, &ledger, &mut pool).is_empty(), "it is pending");
        // Somebody else's copy is the same transaction.
        let copy = PoolEntry { id: posted[0].id(), arrived_ms: 5, transaction: posted[0].clone() };
        assert!(pool.admit(copy, &ledger).is_err());
        // Lost: the same one is posted again.
        pool.settle(posted.iter().map(|one| (one.id(), one)), 0);
        to_height(&mut ledger, 12);
        assert_eq!(tick(&mut attendance, &ledger, &mut pool), posted);
        pool.settle(posted.iter().map(|one| (one.id(), one)), 0);
        apply(&mut ledger, posted.clone());
        let account = key(101).public().address();
        assert!(ledger.validators().get(&account).expect("staked").is_present_for(2));
        assert!(tick(&mut attendance, &ledger, &mut pool).is_empty(), "the ledger has it");
        assert_eq!(ledger.admit(&posted[0]), Err(Refusal::PRESENT_ALREADY));
        assert!(pool.is_empty());
        // The next epoch needs another one.
        to_height(&mut ledger, 20);
        let next = tick(&mut attendance, &ledger, &mut pool);
        assert!(next.len() == 1 && next[0].id() != posted[0].id());
    }

    #[test]
    fn one_that_ends_unheard_is_signed_again_and_who_has_no_stake_posts_nothing() {
        let (mut ledger, mut pool) = (founded(), Mempool::new(100));
        let mut attendance = Attendance::new(Arc::new(key(0)));
        to_height(&mut ledger, 10);
        // It is forwarded and never heard of again: it does not stand in the way of the next one.
        let first = tick(&mut attendance, &ledger, &mut pool);
        to_height(&mut ledger, 20);
        let second = tick(&mut attendance, &ledger, &mut pool);
        assert!(second.len() == 1 && second[0].id() != first[0].id(), "for the next epoch");
        let mut stranger = Attendance::new(Arc::new(key(5)));
        assert!(tick(&mut stranger, &ledger, &mut Mempool::new(100)).is_empty());
    }

    /// A signer whose process is away.
    struct Away;

    impl Signer for Away {
        fn public(&self) -> primitives::PublicKey {
            key(0).public()
        }

        fn sign_statement(&self, _: &SigningRequest) -> Result<primitives::Signature, SigningError> {
            Err(SigningError("away".into()))
        }

        fn sign_presence(&self, _: &Presence) -> Result<primitives::Signature, SigningError> {
            Err(SigningError("away".into()))
        }
    }

    #[test]
    fn a_key_that_is_away_is_asked_again() {
        let (mut ledger, mut pool) = (founded(), Mempool::new(100));
        to_height(&mut ledger, 10);
        let mut attendance = Attendance::new(Arc::new(Away));
        assert!(tick(&mut attendance, &ledger, &mut pool).is_empty());
        assert_eq!(attendance.due(&ledger), None, "not at once");
        (0..PAUSE_TICKS).for_each(|_| attendance.tick());
        assert!(attendance.due(&ledger).is_some_and(|due| due.epoch == 2));
    }
}
