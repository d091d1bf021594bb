//! How rules change: approvals, the lock, the confirmation, the first height; and what a program without them does.

use std::collections::BTreeSet;

use ledger::{
    CharterTerms, Fault, Genesis, Ledger, Listing, Member, Membership, Outcome, Refusal, Restart, Restore, Roots,
    Schedule, Signatures, Snapshot, Terms, manifest,
};
use primitives::{
    Address, AssetId, Body, Committed, Contradiction, Digest, Evidence, Fraction, Height, Operation, Reference,
    ReferenceKind, Scope, SecretKey, Stake, SubBlock, Superblock, Transaction, Upgrade, ValidatorPost, ValidatorSays,
};

pub const NETWORK: Digest = Digest([42; 32]);
const PATIENCE: Height = 40;

pub fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person + 1; 32])
}

pub fn node(person: u8) -> SecretKey {
    SecretKey::from_seed([100 + person; 32])
}

pub fn account(person: u8) -> Address {
    key(person).public().address()
}

/// Rules 12 with the least notice.
fn next() -> Upgrade {
    Upgrade { rules: 12, manifest: manifest(12).expect("this program knows them"), notice: 3 }
}

/// Four validators, who all have a seat; epochs of ten blocks whose committees begin five blocks later.
pub fn genesis() -> Genesis {
    let schedule = Schedule { epoch_heights: 10, delay: 4 };
    let terms = Terms {
        network: NETWORK,
        schedule,
        committee: 4,
        minimum_stake: 100,
        unbonding_epochs: 1,
        slash: Fraction::power_of_two(2),
        ..Terms::default()
    };
    let founder = |person: u8| {
        let (account, key) = (account(person), node(person).public());
        Member { account, key, address: format!("v{person}:1"), stake: 1_000 }
    };
    Genesis {
        rules: 11,
        charter: CharterTerms { notice_min: 3, patience: PATIENCE, ..CharterTerms::default() },
        membership: Some(Membership { terms, reward_pool: 0, founders: (0..4).map(founder).collect() }),
        ..alone()
    }
}

/// A chain of one node.
fn alone() -> Genesis {
    Genesis {
        rules: 11,
        charter: CharterTerms { operator: account(0), notice_min: 3, patience: PATIENCE },
        chain: 1,
        fee: 5,
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("USD", 2, account(0))],
        balances: (0..6).map(|person| (account(person), AssetId(0), 10_000)).collect(),
        ..Genesis::default()
    }
}

/// Four to six people who stake or trade, and their nodes.
pub struct World {
    pub ledger: Ledger,
    /// People whose programs know rules 11 alone.
    old: BTreeSet<u8>,
    roots: Roots,
    sequence: u64,
    pub blocks: Vec<Superblock>,
}

impl World {
    pub fn new(genesis: &Genesis) -> World {
        let ledger = Ledger::new(genesis).expect("sound");
        World { roots: Roots::of(&ledger), ledger, old: BTreeSet::new(), sequence: 0, blocks: Vec::new() }
    }

    fn founded() -> World {
        World::new(&genesis())
    }

    /// What a person's node says, under the validator's key.
    pub fn says(&self, person: u8, says: ValidatorSays) -> Transaction {
        let (network, account) = (self.ledger.network(), account(person));
        ValidatorPost { network, chain: 1, account, until: 50_000, says }.sign(&node(person)).expect("the key is here")
    }

    pub fn approval(&self, person: u8, upgrade: Upgrade) -> Transaction {
        self.says(person, ValidatorSays::Approves { upgrade, at: self.ledger.height() })
    }

    fn withdrawal(&self, person: u8, rules: u32) -> Transaction {
        self.says(person, ValidatorSays::Withdraws { rules, at: self.ledger.height() })
    }

    /// An operation under a person's own key.
    pub fn sign(&mut self, person: u8, operation: Operation) -> Transaction {
        self.sequence += 1;
        let body = Body { chain: 1, account: account(person), sequence: self.sequence, until: 50_000, operation };
        body.sign(&self.ledger.network(), &key(person))
    }

    fn pay(&mut self) -> Transaction {
        let reference = Reference { kind: ReferenceKind::Text, bytes: b"invoice 7"[..].into() };
        self.sign(4, Operation::PayReferenced { to: account(5), asset: AssetId(0), amount: 7, reference })
    }

    pub fn block(&self, native: Vec<Transaction>) -> Superblock {
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let parent_root = Roots::of(&self.ledger).parts().root();
        let sub_blocks = vec![SubBlock { proposer: 0, native, ..SubBlock::default() }];
        Superblock { height, parent, time_ms: height * 1_000, parent_root, sub_blocks, ..Superblock::default() }
    }

    pub fn apply(&mut self, native: Vec<Transaction>) -> Vec<Option<Refusal>> {
        self.apply_block(self.block(native))
    }

    pub fn apply_block(&mut self, block: Superblock) -> Vec<Option<Refusal>> {
        let applied = self.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        self.ledger.audit().expect("sound");
        assert_eq!(self.roots.apply(&applied.changes), Roots::of(&self.ledger).parts().root());
        self.blocks.push(block);
        applied.outcomes.iter().map(Outcome::refusal).collect()
    }

    /// The presences for the next draw that nodes can post: one that has stopped knows no draw after the next one.
    fn presences(&self) -> Vec<Transaction> {
        let epoch = self.ledger.schedule().last_drawn(self.ledger.height() + 1) + 1;
        let runs = |person: &u8| self.ledger.next_rules() == 11 || !self.old.contains(person);
        let staked = (0..6).filter(|person| self.ledger.validators().is_staked(&account(*person)));
        staked.filter(runs).map(|person| self.says(person, ValidatorSays::Present { epoch })).collect()
    }

    /// Nodes that run are present for the next draw, and blocks follow up to a height.
    pub fn until(&mut self, height: Height) {
        while self.ledger.height() < height {
            let is_due = self.ledger.height() % 10 == 5 && !self.ledger.is_alone();
            let native = if is_due { self.presences() } else { Vec::new() };
            let refused = self.apply(native);
            assert!(
                refused.iter().all(|refusal| refusal.is_none_or(|why| why == Refusal::PRESENT_ALREADY)),
                "{refused:?}"
            );
        }
    }

    /// These people approve the next rules.
    fn approve(&mut self, people: &[u8]) {
        let native = people.iter().map(|person| self.approval(*person, next())).collect();
        assert!(self.apply(native).iter().all(Option::is_none));
    }

    fn is_unready(&self, person: u8) -> bool {
        !self.ledger.charter().is_ready(&account(person))
    }

    /// A person stakes, for its node.
    fn stake(&mut self, person: u8) {
        let stake = Stake::new(1_000, format!("v{person}:1"), 1, &account(person), &node(person));
        let stake = self.sign(person, Operation::Stake(Box::new(stake)));
        assert_eq!(self.apply(vec![stake]), [None]);
    }

    fn has_seat(&self, person: u8) -> bool {
        let committee = self.ledger.validators().committees.last().expect("drawn");
        committee.iter().any(|member| member.account == account(person))
    }
}

/// The attack: a node that has stopped posts no presence. If it had to, it would fall out of the draw with its stake,
/// and liars who approved without the program would hold its seats.
#[test]
fn a_stopped_node_keeps_its_part_of_the_draw_until_it_takes_back() {
    let mut world = World::founded();
    world.stake(4);
    world.old.insert(3);
    world.until(3);
    world.approve(&[0, 1, 2, 4]);
    world.until(66);
    assert_eq!((world.ledger.next_rules(), world.is_unready(3)), (12, true));
    let drawn = |world: &mut World, epochs: u64| {
        let begun = world.ledger.height() / 10;
        let has_seat = |epoch: u64| {
            world.until(epoch * 10);
            world.has_seat(3)
        };
        (begun + 1..=begun + epochs).map(has_seat).filter(|has| *has).count()
    };
    let seats = drawn(&mut world, 30);
    assert!((15..30).contains(&seats), "four of five equal stakes have seats, and it had {seats} of 30");
    // Its owner takes back: it is drawn only when its node says that it is there, which it cannot.
    let leave = world.sign(3, Operation::Unapprove { rules: 12, at: world.ledger.height() });
    assert_eq!(world.apply(vec![leave]), [None]);
    drawn(&mut world, 2);
    assert_eq!(drawn(&mut world, 10), 0);
    // It installs the program, and says so.
    world.old.clear();
    let ready = world.approval(3, Upgrade { rules: 12, ..next() });
    assert_eq!(world.apply(vec![ready]), [None]);
    assert!(drawn(&mut world, 10) > 0);
}

/// The attack: a number that means one thing to those who approved it, and another to this program.
#[test]
fn a_program_with_other_rules_of_the_same_number_stops_before_them() {
    let mut world = World::founded();
    world.until(3);
    let other = Upgrade { manifest: Digest([9; 32]), ..next() };
    let native = (0..4).map(|person| world.approval(person, other)).collect();
    assert!(world.apply(native).iter().all(Option::is_none));
    world.until(24);
    let rules = world.ledger.charter().rules;
    assert_eq!(
        (rules.confirmed, rules.manifest, rules.manifest_before),
        (12, other.manifest, manifest(11).expect("own"))
    );
    assert_eq!((world.ledger.needs_rules(), ledger::followed(&rules, 12)), (Some(12), 11));
    let (block, before) = (world.block(Vec::new()), Snapshot::digest(&world.ledger));
    let fault = world.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect_err("it means something else");
    assert_eq!(fault, Fault::OtherRules { height: 25, rules: 12, meant: other.manifest });
    assert!(fault.to_string().contains("install the version of walras"), "{fault}");
    assert_eq!(Snapshot::digest(&world.ledger), before);
    // Nor is anybody ready for them who means something else.
    let ready = world.approval(0, next());
    assert_eq!(world.ledger.admit(&ready), Err(Refusal::OTHER_RULES));
    let refused = world.ledger.begin_again(&NETWORK, &restart(&world, None), None).expect_err("not its rules");
    assert!(refused.to_string().contains("--rules"), "{refused}");
    world.ledger.begin_again(&NETWORK, &restart(&world, Some(11)), None).expect("others were agreed on");
}

/// The attack: a seat approves for the lock, its holder unstakes, and its node is gone when the rules act.
#[test]
fn a_seat_without_a_stake_approves_nothing_and_may_still_speak() {
    let mut world = World::founded();
    world.until(3);
    world.approve(&[0, 1, 2, 3]);
    let unstake = world.sign(3, Operation::Unstake { units: 1_000 });
    assert_eq!(world.apply(vec![unstake]), [None]);
    world.until(10);
    assert!(world.has_seat(3), "nobody else takes it");
    assert_eq!(world.ledger.charter().rules.coming, None, "three of four seats");
    let withdrawal = world.withdrawal(3, 12);
    assert_eq!(world.apply(vec![withdrawal]), [None]);
    // Somebody else stakes and takes the seat: then the four lock.
    world.stake(4);
    world.approve(&[4]);
    world.until(30);
    assert!(!world.has_seat(3) && world.ledger.charter().rules.coming.is_some());
    world.until(40);
    let late = world.withdrawal(3, 13);
    assert_eq!(world.ledger.admit(&late), Err(Refusal::NOT_A_VALIDATOR), "it was paid back");
    let late = world.sign(3, Operation::Unapprove { rules: 12, at: 40 });
    assert_eq!(world.ledger.admit(&late), Err(Refusal::NO_SAY), "it has neither a stake nor a seat");
}

/// A convicted validator counts for nothing, and has no say, though nobody takes its seat.
#[test]
fn a_convicted_seat_approves_nothing_and_says_nothing() {
    let mut world = World::founded();
    world.until(6);
    world.approve(&[0, 1, 2, 3]);
    let scope = Scope { network: NETWORK, epoch: 0 };
    let commits = [2, 3].map(|root| {
        let (superblock, root) = (Digest([1; 32]), Digest([root; 32]));
        Committed { superblock, root, signature: node(3).sign(&scope.commit(5, &superblock, &root).0) }
    });
    let evidence = Evidence { epoch: 0, member: 3, height: 5, contradiction: Contradiction::Commits(commits) };
    let accusation = world.sign(0, Operation::Accuse(Box::new(evidence)));
    assert_eq!(world.apply(vec![accusation]), [None]);
    world.until(20);
    assert!(world.has_seat(3) && world.ledger.charter().rules.coming.is_none());
    let withdrawal = world.withdrawal(3, 12);
    assert_eq!(world.ledger.admit(&withdrawal), Err(Refusal::NO_SAY));
}

/// The attack: an approval is posted and in no block yet when its operator goes back to the older program; whoever
/// proposes may keep it for as long as it is valid.
#[test]
fn an_approval_that_is_in_no_block_yet_can_be_taken_back() {
    let mut world = World::founded();
    world.until(2);
    let (approval, ready) = (world.approval(0, next()), world.approval(0, Upgrade { rules: 11, ..next() }));
    world.until(4);
    let withdrawal = world.withdrawal(0, 12);
    assert_eq!(world.apply(vec![withdrawal]), [None], "though there is nothing in the ledger to take back");
    assert_eq!(world.apply(vec![approval]), [Some(Refusal::APPROVAL_OUTDATED)]);
    assert_eq!(world.apply(vec![ready]), [Some(Refusal::OTHER_RULES)]);
}

/// The attack: all approve with a notice of 400 days, by mistake. Most may change their minds.
#[test]
fn a_lock_with_a_long_notice_falls_when_most_no_longer_want_it() {
    let mut world = World::founded();
    world.until(3);
    let slow = Upgrade { notice: 400 * 86_400, ..next() };
    let native = (0..4).map(|person| world.approval(person, slow)).collect();
    assert!(world.apply(native).iter().all(Option::is_none));
    world.until(12);
    assert!(world.ledger.charter().rules.coming.is_some_and(|coming| coming.acts > 400 * 86_400));
    let one = world.approval(0, next());
    assert_eq!(world.apply(vec![one]), [None]);
    world.until(20);
    assert!(world.ledger.charter().rules.coming.is_some(), "one alone ends nothing");
    world.approve(&[1, 2, 3]);
    world.until(30);
    assert_eq!(world.ledger.charter().rules.coming, None);
    world.until(50);
    assert_eq!((world.ledger.charter().rules.confirmed, world.ledger.charter().rules.since), (12, 55));
}

/// What is said in the very block that confirms other rules is about those before: it makes nobody ready or unready.
#[test]
fn a_word_about_replaced_rules_says_nothing_about_the_new_ones() {
    let mut world = World::founded();
    world.until(3);
    world.approve(&[0, 1, 2, 3]);
    world.until(19);
    let native = vec![world.withdrawal(0, 11), world.withdrawal(1, 12)];
    assert_eq!(world.apply(native), [None, None]);
    assert_eq!(world.ledger.charter().rules.confirmed, 12);
    assert_eq!([0, 1, 2].map(|person| world.is_unready(person)), [false, true, false]);
}

#[test]
fn rules_act_from_one_height_on_and_not_before() {
    let mut world = World::founded();
    world.until(3);
    world.approve(&[0, 1, 2, 3]);
    world.until(9);
    assert_eq!(world.ledger.charter().rules.coming, None);
    // The boundary locks; the first height that is 3 ahead and an epoch later is 25.
    world.until(10);
    let coming = world.ledger.charter().rules.coming.expect("locked");
    assert_eq!((coming.upgrade, coming.acts, coming.tries, coming.is_patient), (next(), 25, 0, false));
    world.until(20);
    let rules = world.ledger.charter().rules;
    assert_eq!((rules.confirmed, rules.since, rules.before, rules.coming), (12, 25, 11, None));
    for height in 20..24 {
        assert_eq!((world.ledger.height(), world.ledger.next_rules()), (height, 11));
        let pay = world.pay();
        assert_eq!(world.ledger.admit(&pay), Err(Refusal::RULES_TO_COME));
        assert_eq!(world.apply(vec![pay]), [Some(Refusal::RULES_TO_COME)]);
    }
    let pay = world.pay();
    assert_eq!((world.ledger.next_rules(), world.ledger.admit(&pay)), (12, Ok(())));
    assert_eq!(world.apply(vec![pay]), [None]);
    let balance = |person| world.ledger.accounts().get(&account(person)).expect("there").balance(AssetId(0));
    assert_eq!((balance(4), balance(5)), (9_988, 10_007));
    assert!((0..4).all(|person| !world.is_unready(person)));
}

/// The program that knows rules 11 only stops at height 24, and changes nothing; the new one goes on from its state.
#[test]
fn a_ledger_without_the_rules_stops_before_them_and_loses_nothing() {
    let mut world = World::founded();
    world.until(3);
    world.approve(&[0, 1, 2, 3]);
    let mut old = Ledger::new(&genesis()).expect("sound").up_to_rules(11);
    world.until(24);
    for block in &world.blocks {
        assert_eq!(old.needs_rules(), None);
        old.apply(block, Signatures::Unchecked, &mut |_| {}).expect("it knows these rules");
    }
    assert_eq!((old.height(), old.needs_rules(), world.ledger.needs_rules()), (24, Some(12), None));
    let before = Snapshot::digest(&old);
    let pay = world.pay();
    world.apply(vec![pay]);
    let block = world.blocks.last().expect("applied");
    let fault = old.apply(block, Signatures::Unchecked, &mut |_| {}).expect_err("it does not know them");
    assert_eq!(fault, Fault::Rules { height: 25, rules: 12, newest: 11 });
    assert!(fault.to_string().contains("install a version of walras for rules 12"), "{fault}");
    assert_eq!(Snapshot::digest(&old), before);
    let mut new = old.up_to_rules(12);
    new.apply(block, Signatures::Unchecked, &mut |_| {}).expect("it does");
    assert_eq!(Snapshot::digest(&new), Snapshot::digest(&world.ledger));
}

/// Whatever the height at which a node begins with a state, it follows the same rules as one that replays from the
/// genesis.
#[test]
fn a_restored_state_follows_the_rules_of_its_height() {
    let mut world = World::founded();
    world.until(3);
    world.approve(&[0, 1, 2, 3]);
    let mut restored = Vec::new();
    for height in [4, 9, 10, 15, 20, 24, 25, 30] {
        world.until(height);
        let mut restore = Restore::default();
        Snapshot::of(&world.ledger).for_each(|chunk| restore.push(&chunk).expect("a chunk"));
        restored.push(restore.finish().expect("whole"));
    }
    world.until(35);
    for mut ledger in restored {
        let from = ledger.height();
        for block in &world.blocks[from as usize..] {
            ledger.apply(block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        }
        assert_eq!(Snapshot::digest(&ledger), Snapshot::digest(&world.ledger), "from height {from}");
    }
}

/// A head that names other rules than the charter of the state would make two nodes follow two rules.
#[test]
fn a_state_whose_head_names_other_rules_is_refused() {
    let world = World::founded();
    let mut chunks: Vec<Vec<u8>> = Snapshot::of(&world.ledger).collect();
    chunks[0][2..6].copy_from_slice(&12u32.to_le_bytes());
    let mut restore = Restore::default();
    chunks.iter().for_each(|chunk| restore.push(chunk).expect("a chunk"));
    let refused = restore.finish().map(drop).expect_err("two rules").to_string();
    assert!(refused.contains("other rules"), "{refused}");
}

#[test]
fn an_approval_that_was_withdrawn_cannot_be_posted_again() {
    let mut world = World::founded();
    world.until(2);
    let approval = world.approval(0, next());
    assert_eq!(world.apply(vec![approval.clone()]), [None]);
    assert_eq!(world.apply(vec![approval.clone()]), [Some(Refusal::APPROVAL_OUTDATED)], "a copy");
    let withdrawal = world.withdrawal(0, 12);
    assert_eq!(world.apply(vec![withdrawal.clone()]), [None]);
    assert_eq!(world.apply(vec![approval.clone()]), [Some(Refusal::APPROVAL_OUTDATED)]);
    world.until(6);
    let again = world.approval(0, next());
    assert_eq!(world.apply(vec![again]), [None], "it may say so again");
    assert_eq!(world.apply(vec![withdrawal]), [Some(Refusal::APPROVAL_OUTDATED)]);
    // One that never got into a block, and was overtaken by another word.
    let late = world.withdrawal(0, 12);
    world.until(9);
    let other = world.approval(0, Upgrade { notice: 5, ..next() });
    assert_eq!(world.apply(vec![other]), [None]);
    assert_eq!(world.apply(vec![late]), [Some(Refusal::APPROVAL_OUTDATED)]);
}

#[test]
fn approvals_are_refused_by_name() {
    let mut world = World::founded();
    world.until(3);
    let at = world.ledger.height();
    let approves = |upgrade, at| ValidatorSays::Approves { upgrade, at };
    let cases = [
        (approves(Upgrade { rules: 13, ..next() }, at), Refusal::OTHER_RULES),
        (approves(Upgrade { rules: 10, ..next() }, at), Refusal::OTHER_RULES),
        (approves(Upgrade { notice: 2, ..next() }, at), Refusal::NOTICE_OUT_OF_BOUNDS),
        (approves(Upgrade { notice: u64::MAX, ..next() }, at), Refusal::NOTICE_OUT_OF_BOUNDS),
        (approves(next(), at + 1), Refusal::APPROVAL_OUTDATED),
        (approves(next(), u64::MAX), Refusal::APPROVAL_OUTDATED),
        (
            approves(Upgrade { rules: 11, manifest: manifest(11).expect("own"), notice: 3 }, at),
            Refusal::APPROVED_ALREADY,
        ),
        (approves(Upgrade { rules: 11, ..next() }, at), Refusal::OTHER_RULES),
        (ValidatorSays::Withdraws { rules: 13, at }, Refusal::OTHER_RULES),
        (ValidatorSays::Withdraws { rules: 12, at: at + 1 }, Refusal::APPROVAL_OUTDATED),
    ];
    let digest = world.ledger.charter().digest();
    for (says, refusal) in cases {
        let post = world.says(0, says.clone());
        assert_eq!(world.ledger.admit(&post), Err(refusal), "{says:?}");
    }
    assert_eq!(world.ledger.charter().digest(), digest);
    // Only the validator's key, or the account's own with a number, speaks for an account with a stake.
    let body = world.approval(0, next()).body;
    let by_account = body.clone().sign(&NETWORK, &key(0));
    assert_eq!(world.ledger.admit(&by_account), Err(Refusal::NOT_VALIDATORS_KEY));
    let own = world.sign(0, Operation::Approve { upgrade: next(), at });
    assert_eq!(world.ledger.admit(&own), Ok(()));
    let stranger = world.sign(4, Operation::Approve { upgrade: next(), at });
    assert_eq!(world.ledger.admit(&stranger), Err(Refusal::NO_SAY));
    // It pays its fee and uses up its number; under the validator's key it does neither.
    let balance = |world: &World| world.ledger.accounts().get(&account(0)).expect("there").balance(AssetId(0));
    assert_eq!(world.apply(vec![own.clone()]), [None]);
    assert_eq!(balance(&world), 9_995);
    world.until(6);
    let free = world.withdrawal(0, 12);
    assert_eq!(world.apply(vec![free]), [None]);
    assert_eq!(balance(&world), 9_995);
    assert_eq!(world.apply(vec![own]), [Some(Refusal::SEQUENCE_USED)]);
}

/// What is said in a block does the same in any order; and of one account one thing counts.
#[test]
fn the_order_of_approvals_means_nothing() {
    let mut world = World::founded();
    world.until(3);
    let by_account = world.sign(0, Operation::Approve { upgrade: Upgrade { notice: 9, ..next() }, at: 3 });
    let mut native: Vec<Transaction> = (0..4).map(|person| world.approval(person, next())).collect();
    native.push(by_account);
    let state = |native: Vec<Transaction>| {
        let mut ledger = world.ledger.clone();
        ledger.apply(&world.block(native), Signatures::Unchecked, &mut |_| {}).expect("applies");
        ledger.charter().digest()
    };
    let first = state(native.clone());
    for turn in 0..native.len() {
        native.rotate_left(1);
        assert_eq!(state(native.clone()), first, "turn {turn}");
        native.reverse();
        assert_eq!(state(native.clone()), first, "turn {turn}, back");
    }
}

/// Three of four are too few at once; after the patience they are enough, and the fourth is not ready.
#[test]
fn a_single_seat_delays_rules_and_cannot_forbid_them() {
    let mut world = World::founded();
    world.old.insert(3);
    world.until(3);
    world.approve(&[0, 1, 2]);
    world.until(49);
    assert_eq!(world.ledger.charter().rules.coming, None);
    assert_eq!(world.ledger.charter().awaited.map(|awaited| awaited.since), Some(10));
    world.until(50);
    let coming = world.ledger.charter().rules.coming.expect("locked");
    assert!(coming.is_patient && coming.acts == 65);
    world.until(66);
    assert_eq!((world.ledger.next_rules(), world.is_unready(3)), (12, true));
    // It installs the program, says so, and is ready.
    let ready = world.approval(3, Upgrade { rules: 12, ..next() });
    assert_eq!(world.apply(vec![ready]), [None]);
    assert!(!world.is_unready(3));
}

/// Somebody withdraws between lock and confirmation: three boundaries are tried, then the lock is dropped; and what
/// was confirmed stands, whoever withdraws.
#[test]
fn a_lock_without_confirmation_is_dropped_and_confirmed_rules_stand() {
    let mut world = World::founded();
    world.until(3);
    world.approve(&[0, 1, 2, 3]);
    world.until(12);
    let withdrawal = world.withdrawal(2, 12);
    assert_eq!(world.apply(vec![withdrawal]), [None]);
    for (boundary, tries, acts) in [(20, 1, 35), (30, 2, 45)] {
        world.until(boundary);
        let coming = world.ledger.charter().rules.coming.expect("tried again");
        assert_eq!((coming.tries, coming.acts), (tries, acts));
    }
    world.until(40);
    assert_eq!((world.ledger.charter().rules.coming, world.ledger.charter().rules.confirmed), (None, 11));
    // Again, and this time it is confirmed before anybody wavers.
    world.approve(&[2]);
    world.until(60);
    assert_eq!((world.ledger.charter().rules.confirmed, world.ledger.charter().rules.since), (12, 65));
    let late = world.withdrawal(2, 12);
    assert_eq!(world.apply(vec![late]), [None]);
    world.until(65);
    assert_eq!((world.ledger.next_rules(), world.is_unready(2)), (12, true));
}

/// Other manifests and notices are other rules.
#[test]
fn approvals_of_different_rules_do_not_count_together() {
    let mut world = World::founded();
    world.until(3);
    let other = Upgrade { manifest: Digest([9; 32]), ..next() };
    let native = (0..4).map(|person| world.approval(person, if person < 2 { next() } else { other })).collect();
    assert!(world.apply(native).iter().all(Option::is_none));
    world.until(60);
    let charter = world.ledger.charter();
    assert_eq!((charter.rules.coming, charter.awaited, charter.rules.confirmed), (None, None, 11));
}

#[test]
fn the_operator_of_a_chain_of_one_node_names_rules_and_height() {
    let mut world = World::new(&alone());
    world.until(2);
    let stranger = world.sign(1, Operation::Approve { upgrade: next(), at: 2 });
    assert_eq!(world.ledger.admit(&stranger), Err(Refusal::NO_SAY));
    let approve = world.sign(0, Operation::Approve { upgrade: next(), at: 2 });
    assert_eq!(world.apply(vec![approve]), [None]);
    assert_eq!(world.ledger.charter().rules.coming.map(|coming| coming.acts), Some(6));
    // It may change its mind before.
    let withdraw = world.sign(0, Operation::Unapprove { rules: 12, at: 3 });
    assert_eq!(world.apply(vec![withdraw]), [Some(Refusal::APPROVAL_OUTDATED)], "in the same height");
    let withdraw = world.sign(0, Operation::Unapprove { rules: 12, at: 4 });
    assert_eq!(world.apply(vec![withdraw]), [None]);
    assert_eq!(world.ledger.charter().rules.coming, None);
    world.until(8);
    let approve = world.sign(0, Operation::Approve { upgrade: next(), at: 8 });
    assert_eq!(world.apply(vec![approve]), [None]);
    world.until(11);
    assert_eq!((world.ledger.next_rules(), world.ledger.charter().rules.since), (12, 12));
    let pay = world.pay();
    assert_eq!(world.apply(vec![pay]), [None]);
    let nobody = Genesis { charter: CharterTerms::default(), ..alone() };
    let mut world = World::new(&nobody);
    world.until(1);
    let approve = world.sign(0, Operation::Approve { upgrade: next(), at: 0 });
    assert_eq!(world.ledger.admit(&approve), Err(Refusal::RULES_FIXED));
}

/// The first restart, from the state of a world.
fn restart(world: &World, rules: Option<u32>) -> Restart {
    Restart { number: 1, snapshot: Snapshot::digest(&world.ledger), committee: Vec::new(), lane: None, rules }
}

#[test]
fn a_restart_forgets_approvals_and_may_begin_with_other_rules() {
    let mut world = World::founded();
    world.until(3);
    world.approve(&[0, 1, 2]);
    let restart = |rules| restart(&world, rules);
    let (same, other) = (restart(None), restart(Some(12)));
    assert_ne!(same.identity(&NETWORK), other.identity(&NETWORK), "the rules are part of the identity");
    let mut ledger = world.ledger.clone();
    ledger.begin_again(&NETWORK, &same, None).expect("agreed");
    assert!(ledger.charter().consents.is_empty() && ledger.next_rules() == 11);
    let mut ledger = world.ledger.clone();
    ledger.begin_again(&NETWORK, &other, None).expect("agreed");
    assert_eq!(ledger.next_rules(), 12);
    let unknown = restart(Some(99));
    let refused = world.ledger.begin_again(&NETWORK, &unknown, None).expect_err("unknown rules");
    assert!(refused.to_string().contains("rules 99"), "{refused}");
}

/// What a light client learns from the handover to an epoch: the rules of its heights, under the root that it checks.
#[test]
fn a_handover_tells_rules() {
    let mut world = World::founded();
    world.until(3);
    world.approve(&[0, 1, 2, 3]);
    world.until(20);
    let root = world.roots.parts().root();
    let proof = world.roots.prove_validators(&world.ledger);
    proof.verify(&root).expect("holds");
    assert_eq!([24, 25].map(|height| proof.rules.at(height)), [11, 12]);
    let mut lie = proof.clone();
    lie.rules.since = 26;
    assert!(lie.verify(&root).is_err(), "other rules than the certified ones");
    let mut lie = proof.clone();
    lie.rules.manifest = Digest([1; 32]);
    assert!(lie.verify(&root).is_err(), "another meaning");
    let mut lie = proof;
    lie.charter = Digest([1; 32]);
    assert!(lie.verify(&root).is_err(), "another charter");
}
