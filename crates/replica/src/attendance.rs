//! What a validator's node posts of itself: once an epoch that it is present, and what it says about the rules.
//!
//! The ledger draws only validators that are present: the node of one says so once in each epoch, signed by the
//! validator's key ([`primitives::ValidatorPost`]). Every node posts it whose key a stake names, also one that follows.
//! It posts early in the epoch, and again whenever the transaction is neither pending nor in the ledger. A node that
//! proposes puts it into its own sub-block. One that follows forwards it to one validator after the other
//! (`Mempool::reclaim`), so f of them keep it out of no epoch.
//!
//! In the same way it approves rules, one post after the other. It approves the next rules if its operator wants them
//! (`[network] approve`) *and* its program can decide under them, and withdraws as soon as one of the two is no longer
//! so: consent and readiness are one fact. What an earlier process approved may still be on its way, in the pool of
//! whoever proposes: a process that does not approve withdraws once, also if the ledger has nothing to withdraw. An
//! operator who says nothing leaves the approval to the account's owner, but
//! for rules that the program cannot follow. Of rules that are confirmed it says by itself whether it can follow them,
//! so that who installs late is drawn again. It says that first: a presence alone seldom gets a seat.
//!
//! **Properties.** Pure. At most one transaction is pending. It is signed apart from the pool and from the ledger,
//! because the key may be in another process that takes its time. A crash loses nothing: the ledger says what is due.

use std::sync::Arc;

use kernel::Planted;
use ledger::{ChainRules, Ledger, Validator, manifest};
use primitives::{Address, Height, PublicKey, Signer, Transaction, UNTIL_USUAL, Upgrade, ValidatorPost, ValidatorSays};

use crate::mempool::PoolEntry;
use crate::{Defect, Mempool};

/// Ticks to wait before a key that could not be reached is asked again: asking may take seconds, and sub-blocks wait
/// for it.
pub(crate) const PAUSE_TICKS: u32 = 300;

/// What a node posts about itself; see the module text.
pub struct Attendance {
    signer: Arc<dyn Signer>,
    /// The next rules that the operator wants; `None` if it leaves that to the account's owner.
    approve: Option<u32>,
    /// The height at which this process began to post: what an earlier one approved may still be on its way.
    began: Option<Height>,
    /// The mistake that a simulation plants.
    defect: Planted<Defect>,
    /// Whether the log has said why the last one was not accepted.
    told: bool,
    /// Ticks for which the key is not asked.
    pause: u32,
    /// The last one that was signed.
    signed: Option<(ValidatorPost, Transaction)>,
    /// One before it, which counts no more and may still be on its way: it makes room in the pool.
    outdated: Option<Transaction>,
}

impl Attendance {
    /// For the validator with this key, whose operator wants these rules next.
    pub fn new(signer: Arc<dyn Signer>, approve: Option<u32>) -> Attendance {
        Attendance {
            signer,
            approve,
            began: None,
            defect: Planted::NOTHING,
            told: false,
            pause: 0,
            signed: None,
            outdated: None,
        }
    }

    /// The same with a mistake.
    pub fn with_defect(self, defect: Planted<Defect>) -> Attendance {
        Attendance { defect, ..self }
    }

    /// What is to be signed now, if the ledger lacks it and none is signed that could still count.
    pub fn due(&self, ledger: &Ledger) -> Option<ValidatorPost> {
        let due = self.lacking(ledger)?;
        let counts = |(signed, _): &(ValidatorPost, Transaction)| counts_for(signed, &due, ledger);
        (self.pause == 0 && !self.signed.as_ref().is_some_and(counts)).then_some(due)
    }

    /// What the ledger lacks of the account whose stake or seat names this key: its presence for the next draw, or
    /// what it says about the rules.
    pub fn lacking(&self, ledger: &Ledger) -> Option<ValidatorPost> {
        let (schedule, next) = (ledger.schedule(), ledger.height() + 1);
        let epoch = schedule.last_drawn(next) + 1;
        let own = own_validator(ledger, &self.signer.public())?;
        let (network, chain, account) = (ledger.network(), ledger.chain(), own.member.account);
        let usual = next + UNTIL_USUAL;
        if schedule.is_fixed() {
            return None;
        }
        // Few seats are for accounts that are not ready, however present. A follower may get one post into an epoch.
        let (says, until) = match self.readiness(ledger, &account) {
            Some(says) => (says, usual),
            // At the boundary itself the next epoch is due.
            None if own.is_staked() && !own.is_present_for(epoch) => {
                (ValidatorSays::Present { epoch }, usual.min(schedule.boundary(epoch) - 1))
            }
            None => (self.opinion(ledger, &account)?, usual),
        };
        Some(ValidatorPost { network, chain, account, until, says })
    }

    /// What the account said about the rules that may come next, and when; none while that does not count yet, since
    /// it can say nothing else before.
    fn said(&self, ledger: &Ledger, account: &Address) -> Option<(Height, Option<Upgrade>)> {
        let (said, next) = ledger.charter().consent(account).map_or((0, None), |own| (own.said, own.next));
        (said < ledger.height()).then_some((said, next))
    }

    /// What the account has not said about the confirmed rules: whether its program can follow them.
    fn readiness(&self, ledger: &Ledger, account: &Address) -> Option<ValidatorSays> {
        self.said(ledger, account)?;
        let (charter, at) = (ledger.charter(), ledger.height());
        let ChainRules { confirmed, manifest, .. } = charter.rules;
        match (charter.is_ready(account), ledger.follows_confirmed()) {
            (true, false) if self.defect.is(Defect::ApprovesBlindly) => None,
            (false, true) if self.defect.is(Defect::NeverReady) => None,
            (true, false) => Some(ValidatorSays::Withdraws { rules: confirmed, at }),
            (false, true) => {
                let upgrade = Upgrade { rules: confirmed, manifest, notice: charter.terms.notice_min };
                Some(ValidatorSays::Approves { upgrade, at })
            }
            _ => None,
        }
    }

    /// What the account has not said about the rules to come next.
    fn opinion(&self, ledger: &Ledger, account: &Address) -> Option<ValidatorSays> {
        let ((said, next), at) = (self.said(ledger, account)?, ledger.height());
        match self.wanted(ledger) {
            Some(upgrade) => (next != Some(upgrade)).then_some(ValidatorSays::Approves { upgrade, at }),
            None => {
                let rules = ledger.charter().rules.confirmed.saturating_add(1);
                self.takes_back(ledger, next, said).then_some(ValidatorSays::Withdraws { rules, at })
            }
        }
    }

    /// The rules that it approves to come next: the operator wants them, and the program can decide under them.
    fn wanted(&self, ledger: &Ledger) -> Option<Upgrade> {
        let charter = ledger.charter();
        let rules = self.approve.filter(|rules| *rules == charter.rules.confirmed.saturating_add(1))?;
        let upgrade = Upgrade { rules, manifest: manifest(rules)?, notice: charter.terms.notice_min };
        self.can_follow(ledger, &upgrade).then_some(upgrade)
    }

    fn can_follow(&self, ledger: &Ledger, upgrade: &Upgrade) -> bool {
        ledger.follows(upgrade.rules, &upgrade.manifest) || self.defect.is(Defect::ApprovesBlindly)
    }

    /// Whether it withdraws what the account approves, or may have approved before this process began.
    fn takes_back(&self, ledger: &Ledger, next: Option<Upgrade>, said: Height) -> bool {
        match next {
            Some(next) => self.approve.is_some() || !self.can_follow(ledger, &next),
            None => self.approve.is_some() && self.began.is_some_and(|began| said <= began),
        }
    }

    /// Signs a post. If its key cannot be reached, a later tick tries again.
    pub fn sign(&mut self, post: ValidatorPost) {
        match post.sign(&*self.signer) {
            Ok(transaction) => {
                let before = self.signed.replace((post, transaction));
                self.outdated = before.map(|(_, outdated)| outdated).or(self.outdated.take());
                self.told = false;
            }
            Err(error) => {
                self.pause = PAUSE_TICKS;
                tracing::warn!(%error, says = ?post.says, "what this validator says of itself is not signed");
            }
        }
    }

    /// Whether a signed post may have to be posted.
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
            pool.settle([(outdated.id(), &outdated)].into_iter());
        }
        self.began.get_or_insert(ledger.height());
        let Some((post, transaction)) = &self.signed else { return };
        if !self.lacking(ledger).is_some_and(|due| counts_for(post, &due, ledger)) {
            self.outdated = self.signed.take().map(|(_, transaction)| transaction);
            return;
        }
        let id = transaction.id();
        if pool.contains(&id) {
            return;
        }
        let entry = PoolEntry::new(id, arrived_ms, transaction.clone());
        match pool.admit(entry, ledger) {
            Ok(()) => {
                tracing::info!(says = ?post.says, account = %post.account, "posts what this validator says of itself")
            }
            Err(_) if std::mem::replace(&mut self.told, true) => {}
            Err(why) => tracing::warn!(?why, says = ?post.says, "what this validator says of itself is not accepted"),
        }
    }
}

/// The validator whose stake or seat names a key.
fn own_validator<'l>(ledger: &'l Ledger, key: &PublicKey) -> Option<&'l Validator> {
    let all = ledger.validators();
    let counts = |one: &&Validator| one.is_staked() || all.holds_seat(&one.member.account);
    all.registry.iter().filter(|one| one.member.key == *key).find(counts)
}

/// Its account.
pub(crate) fn own_account(ledger: &Ledger, key: &PublicKey) -> Option<Address> {
    own_validator(ledger, key).map(|one| one.member.account)
}

/// Whether a signed post still says in the next block what is due.
fn counts_for(signed: &ValidatorPost, due: &ValidatorPost, ledger: &Ledger) -> bool {
    let said = ledger.charter().consent(&signed.account).map_or(0, |own| own.said);
    let is_same = match (&signed.says, &due.says) {
        (ValidatorSays::Present { epoch }, ValidatorSays::Present { epoch: other }) => epoch == other,
        (ValidatorSays::Approves { upgrade, at }, ValidatorSays::Approves { upgrade: other, .. }) => {
            upgrade == other && *at > said
        }
        (ValidatorSays::Withdraws { rules, at }, ValidatorSays::Withdraws { rules: other, .. }) => {
            rules == other && *at > said
        }
        _ => false,
    };
    is_same && signed.account == due.account && signed.network == due.network && signed.until > ledger.height()
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
        founded_under(ledger::RULES_NEWEST)
    }

    fn founded_under(rules: u32) -> Ledger {
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
        Ledger::new(&Genesis { rules, chain: 1, mu, assets, membership, ..Genesis::default() }).expect("sound")
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
        let mut attendance = Attendance::new(Arc::new(key(1)), None);
        assert!(tick(&mut attendance, &ledger, &mut pool).is_empty(), "a founder is present at first");
        to_height(&mut ledger, 9);
        let posted = tick(&mut attendance, &ledger, &mut pool);
        assert_eq!(posted.len(), 1, "block 10 counts for epoch 2");
        assert!(tick(&mut attendance, &ledger, &mut pool).is_empty(), "it is pending");
        // Somebody else's copy is the same transaction.
        let copy = PoolEntry::new(posted[0].id(), 5, posted[0].clone());
        assert!(pool.admit(copy, &ledger).is_err());
        // Lost: the same one is posted again.
        pool.settle(posted.iter().map(|one| (one.id(), one)));
        to_height(&mut ledger, 12);
        assert_eq!(tick(&mut attendance, &ledger, &mut pool), posted);
        pool.settle(posted.iter().map(|one| (one.id(), one)));
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
        let mut attendance = Attendance::new(Arc::new(key(0)), None);
        to_height(&mut ledger, 10);
        // It is forwarded and never heard of again: it does not stand in the way of the next one.
        let first = tick(&mut attendance, &ledger, &mut pool);
        to_height(&mut ledger, 20);
        let second = tick(&mut attendance, &ledger, &mut pool);
        assert!(second.len() == 1 && second[0].id() != first[0].id(), "for the next epoch");
        let mut stranger = Attendance::new(Arc::new(key(5)), None);
        assert!(tick(&mut stranger, &ledger, &mut Mempool::new(100)).is_empty());
    }

    fn consent(ledger: &Ledger, person: u8) -> Option<ledger::RulesConsent> {
        ledger.charter().consent(&key(100 + person).public().address()).copied()
    }

    /// Consent and readiness are one fact: what the operator wants is approved only if the program can follow it, and
    /// withdrawn as soon as one of the two is gone.
    #[test]
    fn an_approval_says_that_the_operator_wants_it_and_the_program_can() {
        let (mut ledger, mut pool) = (founded_under(11), Mempool::new(100));
        apply(&mut ledger, Vec::new());
        let mut says = |ledger: &mut Ledger, attendance: &mut Attendance| {
            let posted = tick(attendance, ledger, &mut pool);
            let names = posted.iter().map(|one| one.body.operation.name());
            let operations: Vec<_> = names.filter(|name| *name != "present").collect();
            pool.settle(posted.iter().map(|one| (one.id(), one)));
            apply(ledger, posted);
            apply(ledger, Vec::new());
            operations
        };
        let of = |approve| Attendance::new(Arc::new(key(1)), approve);
        assert!(says(&mut ledger, &mut of(None)).is_empty(), "nobody asked for anything");
        assert!(says(&mut ledger, &mut of(Some(13))).is_empty(), "not the next number");
        let mut old = ledger.clone().up_to_rules(11);
        assert!(says(&mut old, &mut of(Some(12))).is_empty(), "the program does not know them");
        assert_eq!(says(&mut ledger, &mut of(Some(12))), ["approve"]);
        let approved = consent(&ledger, 1).and_then(|own| own.next).expect("approved");
        assert_eq!((approved.rules, Some(approved.manifest)), (12, manifest(12)));
        assert!(says(&mut ledger, &mut of(Some(12))).is_empty(), "once");
        assert!(says(&mut ledger, &mut of(None)).is_empty(), "the owner's approval stands");
        // The operator goes back to the old program, or wants them no more.
        let mut old = ledger.clone().up_to_rules(11);
        assert_eq!(says(&mut old, &mut of(None)), ["unapprove"]);
        assert_eq!(consent(&old, 1).and_then(|own| own.next), None);
        assert_eq!(says(&mut ledger, &mut of(Some(0))), ["unapprove"]);
    }

    /// The attack, or the accident: whoever proposes holds an approval back, its operator goes back to the older
    /// program, and the approval would still count for as long as it is valid.
    #[test]
    fn what_an_earlier_process_approved_is_taken_back_once() {
        let (mut ledger, mut pool) = (founded_under(11), Mempool::new(100));
        apply(&mut ledger, Vec::new());
        let held_back = tick(&mut Attendance::new(Arc::new(key(1)), Some(12)), &ledger, &mut pool);
        assert_eq!(held_back.len(), 1);
        let (mut old, mut pool) = (ledger.up_to_rules(11), Mempool::new(100));
        apply(&mut old, Vec::new());
        let mut attendance = Attendance::new(Arc::new(key(1)), Some(12));
        assert!(tick(&mut attendance, &old, &mut pool).is_empty(), "it begins");
        let posted = tick(&mut attendance, &old, &mut pool);
        assert!(posted.len() == 1 && posted[0].body.operation.name() == "unapprove", "{posted:?}");
        apply(&mut old, posted);
        apply(&mut old, Vec::new());
        assert_eq!(old.admit(&held_back[0]), Err(Refusal::APPROVAL_OUTDATED));
        assert!(tick(&mut attendance, &old, &mut pool).is_empty(), "once");
        let mut owners = Attendance::new(Arc::new(key(0)), None);
        assert!((0..3).all(|_| tick(&mut owners, &old, &mut pool).is_empty()), "the owner approves, not the node");
    }

    /// What the chain means by the confirmed rules counts, not their number.
    #[test]
    fn a_node_that_means_something_else_by_the_rules_is_not_ready() {
        let (mut ledger, mut pool) = (founded_under(11), Mempool::new(100));
        apply(&mut ledger, Vec::new());
        let other = Upgrade { rules: 12, manifest: primitives::Digest([9; 32]), notice: 604_800 };
        let account = key(101).public().address();
        let says = ValidatorSays::Approves { upgrade: other, at: ledger.height() };
        let (network, chain) = (ledger.network(), ledger.chain());
        let post = ValidatorPost { network, chain, account, until: 1_000, says };
        apply(&mut ledger, vec![post.sign(&key(1)).expect("the key is here")]);
        apply(&mut ledger, Vec::new());
        let posted = tick(&mut Attendance::new(Arc::new(key(1)), None), &ledger, &mut pool);
        assert!(posted.len() == 1 && posted[0].body.operation.name() == "unapprove", "{posted:?}");
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

        fn sign_post(&self, _: &ValidatorPost) -> Result<primitives::Signature, SigningError> {
            Err(SigningError("away".into()))
        }
    }

    #[test]
    fn a_key_that_is_away_is_asked_again() {
        let (mut ledger, mut pool) = (founded(), Mempool::new(100));
        to_height(&mut ledger, 10);
        let mut attendance = Attendance::new(Arc::new(Away), None);
        assert!(tick(&mut attendance, &ledger, &mut pool).is_empty());
        assert_eq!(attendance.due(&ledger), None, "not at once");
        (0..PAUSE_TICKS).for_each(|_| attendance.tick());
        assert!(attendance.due(&ledger).is_some_and(|due| due.says == ValidatorSays::Present { epoch: 2 }));
    }
}
