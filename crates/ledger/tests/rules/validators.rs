//! The registry of validators in known cases: who is drawn and when, and what is paid, paid back and lost.

use ledger::{
    Genesis, GenesisError, Ledger, Listing, Member, Membership, Outcome, Refusal, Restore, Roots, Schedule, Signatures,
    Snapshot, Terms,
};
use primitives::{
    Address, AssetId, Body, Committed, Contradiction, Digest, Evidence, Fraction, Operation, Scope, SecretKey,
    Sequence, Stake, SubBlock, Superblock, Transaction, ValidatorPost, ValidatorSays,
};

const NETWORK: Digest = Digest([42; 32]);

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person + 1; 32])
}

fn node(number: u8) -> SecretKey {
    SecretKey::from_seed([100 + number; 32])
}

fn account(person: u8) -> Address {
    key(person).public().address()
}

/// Epochs of ten blocks whose committees begin four blocks later; one epoch of unbonding.
fn terms() -> Terms {
    Terms {
        network: NETWORK,
        schedule: Schedule { epoch_heights: 10, delay: 4 },
        committee: 2,
        minimum_stake: 100,
        unbonding_epochs: 1,
        reward: 7,
        slash: Fraction::power_of_two(2),
    }
}

/// Six people with 10,000 units each; the first two have staked 1,000 each.
fn genesis(terms: Terms) -> Genesis {
    let founder = |person: u8| {
        let (account, key) = (account(person), node(person).public());
        Member { account, key, address: format!("v{person}:1"), stake: 1_000 }
    };
    Genesis {
        chain: 1,
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("USD", 2, account(0))],
        balances: (0..6).map(|person| (account(person), AssetId(0), 10_000)).collect(),
        membership: Some(Membership { terms, reward_pool: 1_000, founders: vec![founder(0), founder(1)] }),
        ..Genesis::default()
    }
}

/// A ledger, its tries, and the sequence numbers that are used up.
struct World {
    ledger: Ledger,
    roots: Roots,
    sequence: Sequence,
}

impl World {
    fn new(terms: Terms) -> World {
        let ledger = Ledger::new(&genesis(terms)).expect("sound");
        World { roots: Roots::of(&ledger), ledger, sequence: 0 }
    }

    fn sign(&mut self, person: u8, operation: Operation) -> Transaction {
        self.sequence += 1;
        Body { chain: 1, account: account(person), sequence: self.sequence, until: 50_000, operation }
            .sign(&NETWORK, &key(person))
    }

    /// Applies a block in which these validators propose; returns the refusals.
    fn block(&mut self, proposers: &[u32], operations: Vec<(u8, Operation)>) -> Vec<Option<Refusal>> {
        let native: Vec<Transaction> = operations.into_iter().map(|(who, what)| self.sign(who, what)).collect();
        self.block_of(proposers, native)
    }

    /// The presence of a person for the next draw, signed by the key of a node.
    fn presence(&self, person: u8, number: u8) -> Transaction {
        let epoch = self.ledger.schedule().last_drawn(self.ledger.height() + 1) + 1;
        let (account, says) = (account(person), ValidatorSays::Present { epoch });
        let presence = ValidatorPost { network: NETWORK, chain: 1, account, until: 50_000, says };
        presence.sign(&node(number)).expect("the key is here")
    }

    /// Applies a block in which these people's nodes, of the same numbers, say that they are present.
    fn present(&mut self, people: &[u8]) -> Vec<Option<Refusal>> {
        let native = people.iter().map(|person| self.presence(*person, *person)).collect();
        self.block_of(&[], native)
    }

    fn block_of(&mut self, proposers: &[u32], native: Vec<Transaction>) -> Vec<Option<Refusal>> {
        let sub = |proposer: &u32| SubBlock { proposer: *proposer, ..SubBlock::default() };
        let mut sub_blocks: Vec<SubBlock> = proposers.iter().map(sub).collect();
        // The sub-block of no member: its index is beyond the committee.
        sub_blocks.push(SubBlock { proposer: 99, native, ..SubBlock::default() });
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let parent_root = self.roots.parts().root();
        let block = Superblock { height, parent, time_ms: 0, parent_root, sub_blocks, ..Superblock::default() };
        let applied = self.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        self.ledger.audit().expect("sound");
        let root = self.roots.apply(&applied.changes);
        assert_eq!(root, Roots::of(&self.ledger).parts().root());
        applied.outcomes.iter().map(Outcome::refusal).collect()
    }

    fn until(&mut self, height: u64) {
        while self.ledger.height() < height {
            self.block(&[], Vec::new());
        }
    }

    fn units(&self, person: u8) -> u64 {
        self.ledger.accounts().get(&account(person)).map_or(0, |account| account.balance(AssetId(0)))
    }

    fn stake_of(&self, person: u8) -> Option<u64> {
        self.ledger.validators().get(&account(person)).map(|one| one.member.stake)
    }

    fn accounts(&self, epoch: u64) -> Vec<Address> {
        self.ledger.committee(epoch).expect("known").iter().map(|member| member.account).collect()
    }
}

fn stake(person: u8, number: u8, units: u64) -> (u8, Operation) {
    (person, Operation::Stake(Box::new(Stake::new(units, format!("v{number}:1"), 1, &account(person), &node(number)))))
}

fn unstake(person: u8, units: u64) -> (u8, Operation) {
    (person, Operation::Unstake { units })
}

/// An accusation by `by`: the holder of a node's key, a member of an epoch, committed to two outcomes.
fn accuse(by: u8, epoch: u64, member: u8, number: u8) -> (u8, Operation) {
    let scope = Scope { network: NETWORK, epoch };
    let commits = [2, 3].map(|root| {
        let (superblock, root) = (Digest([1; 32]), Digest([root; 32]));
        Committed { superblock, root, signature: node(number).sign(&scope.commit(5, &superblock, &root).0) }
    });
    let evidence = Evidence { epoch, member, height: 5, contradiction: Contradiction::Commits(commits) };
    (by, Operation::Accuse(Box::new(evidence)))
}

#[test]
fn a_committee_is_drawn_at_the_boundary_and_begins_behind_it() {
    let mut world = World::new(terms());
    assert_eq!(world.block(&[], vec![stake(2, 2, 5_000), stake(3, 3, 9_000)]), [None, None]);
    assert_eq!((world.units(2), world.stake_of(2)), (5_000, Some(5_000)));
    assert_eq!(world.present(&[1, 2, 3]), [Some(Refusal::PRESENT_ALREADY), None, None], "founders are, at first");
    world.until(9);
    assert!(world.ledger.committee(1).is_none(), "not drawn yet");
    // Operations in the boundary's block are too late for its draw.
    assert_eq!(world.block(&[], vec![stake(4, 4, 10_000)]), [None]);
    let drawn = world.accounts(1);
    assert_eq!(drawn.len(), 2);
    assert!(!drawn.contains(&account(4)));
    // Epoch 0 is paid until its last height; then the new committee is paid.
    world.until(13);
    world.block(&[0], Vec::new());
    assert_eq!((world.ledger.height(), world.units(0)), (14, 10_007));
    let before: Vec<u64> = (0..6).map(|person| world.units(person)).collect();
    world.block(&[0, 1], Vec::new());
    for person in 0..6 {
        let paid = if drawn.contains(&account(person)) { 7 } else { 0 };
        assert_eq!(world.units(person), before[usize::from(person)] + paid);
    }
    // An epoch that can no longer be punished is dropped.
    world.until(23);
    assert!(world.ledger.committee(0).is_some());
    world.until(24);
    assert!(world.ledger.committee(0).is_none() && world.ledger.committee(1).is_some());
}

#[test]
fn whoever_holds_the_state_below_draws_the_same() {
    let mut world = World::new(terms());
    world.block(&[], vec![stake(2, 2, 5_000), stake(3, 3, 9_000), stake(4, 4, 400)]);
    assert_eq!(world.present(&[2, 3, 4]), [None; 3]);
    world.until(9);
    let chunks: Vec<Vec<u8>> = Snapshot::of(&world.ledger).collect();
    let mut restore = Restore::default();
    chunks.iter().for_each(|chunk| restore.push(chunk).expect("in place"));
    let ledger = restore.finish().expect("whole");
    let mut other = World { roots: Roots::of(&ledger), ledger, sequence: world.sequence };
    world.block(&[0], Vec::new());
    // Another block on the same state.
    other.block(&[], vec![(5, Operation::Pay { to: account(0), asset: AssetId(0), amount: 1 })]);
    assert_eq!(world.ledger.committee(1), other.ledger.committee(1));
}

#[test]
fn what_is_unstaked_comes_back_when_it_cannot_be_punished_any_more() {
    let mut world = World::new(terms());
    assert_eq!(world.block(&[], vec![unstake(0, 300), unstake(1, 1_001)]), [None, Some(Refusal::UNSTAKE_TOO_MUCH)]);
    // Epoch 0 ends at 14, the one in which it is punishable at 24: boundary 30.
    assert_eq!(world.ledger.validators().get(&account(0)).expect("there").unbonding, [(30, 300)]);
    world.until(9);
    // In the block of a boundary the stake still counts for the draw.
    world.block(&[], vec![unstake(0, 700)]);
    assert!(world.ledger.committee(1).expect("drawn").iter().any(|member| member.stake == 700));
    assert_eq!(world.ledger.validators().get(&account(0)).expect("there").unbonding, [(30, 300), (40, 700)]);
    world.block(&[], vec![stake(2, 2, 500)]);
    world.present(&[1, 2]);
    world.until(20);
    assert_eq!(world.accounts(2), [account(2), account(1)], "who is present takes the seat of who has left");
    world.until(29);
    assert_eq!(world.units(0), 10_000);
    world.until(30);
    assert_eq!(world.units(0), 10_300);
    world.until(40);
    assert_eq!((world.units(0), world.stake_of(0)), (11_000, None), "all is back");
}

#[test]
fn a_key_rotates_without_a_stake() {
    let mut world = World::new(terms());
    assert_eq!(world.block(&[], vec![stake(0, 9, 0), stake(2, 2, 0)]), [None, Some(Refusal::STAKE_TOO_SMALL)]);
    assert_eq!(world.stake_of(0), Some(1_000));
    world.until(10);
    let committee = world.ledger.committee(1).expect("drawn");
    let own = committee.iter().find(|member| member.account == account(0)).expect("only two have staked");
    assert_eq!((own.key, own.address.as_str()), (node(9).public(), "v9:1"));
    // The key of the previous epoch still convicts.
    let old = accuse(2, 0, 0, 0);
    assert_eq!(world.block(&[], vec![old]), [None]);
    assert!(world.ledger.validators().get(&account(0)).expect("there").excluded);
}

#[test]
fn a_conviction_takes_its_part_of_all_that_was_staked() {
    let mut world = World::new(terms());
    world.block(&[], vec![unstake(0, 401)]);
    // Two accuse in one block, and one again.
    assert_eq!(world.block(&[], vec![accuse(2, 0, 0, 0), accuse(3, 0, 0, 0)]), [None, None]);
    assert_eq!(world.block(&[0, 1], vec![accuse(4, 0, 0, 0)]), [Some(Refusal::EXCLUDED)]);
    let convicted = world.ledger.validators().get(&account(0)).expect("there").clone();
    // A quarter, rounded up, of 401 and of 599.
    assert_eq!((convicted.member.stake, convicted.unbonding.clone()), (0, vec![(30, 300 + 449)]));
    assert_eq!(world.ledger.validators().pool, 1_000 + 101 + 150 - 7, "the convicted is not paid");
    assert_eq!(world.block(&[], vec![stake(0, 0, 500), unstake(0, 1)]), [Some(Refusal::EXCLUDED); 2]);
    world.block(&[], vec![stake(5, 5, 100)]);
    world.present(&[5]);
    world.until(10);
    assert_eq!(world.accounts(1), [account(5), account(1)], "the convicted is the first to go");
    world.until(30);
    assert_eq!(world.units(0), 10_000 + 749);
    assert!(world.stake_of(0).is_some(), "the convicted are remembered");
}

#[test]
fn old_and_false_evidence_is_refused() {
    let mut world = World::new(terms());
    let refused = |world: &mut World, operation| world.block(&[], vec![operation])[0];
    assert_eq!(refused(&mut world, accuse(2, 0, 0, 1)), Some(Refusal::BAD_EVIDENCE), "another's key");
    assert_eq!(refused(&mut world, accuse(2, 0, 2, 0)), Some(Refusal::BAD_EVIDENCE), "no such member");
    assert_eq!(refused(&mut world, accuse(2, 1, 0, 0)), Some(Refusal::BAD_EVIDENCE), "no such epoch yet");
    world.until(23);
    let mut late = World { ledger: world.ledger.clone(), roots: Roots::of(&world.ledger), sequence: 50 };
    assert_eq!(refused(&mut late, accuse(2, 0, 0, 0)), None, "height 24 is the last of epoch 1");
    world.until(24);
    assert_eq!(refused(&mut world, accuse(2, 0, 0, 0)), Some(Refusal::EVIDENCE_TOO_OLD));
}

#[test]
fn who_has_left_keeps_the_seat_until_somebody_comes() {
    let mut world = World::new(terms());
    world.block(&[], vec![unstake(0, 1_000), unstake(1, 1_000)]);
    world.until(40);
    assert_eq!(world.accounts(4), [account(0), account(1)]);
    assert_eq!((world.units(0), world.units(1)), (10_000, 10_000), "they can be punished for these seats");
    for (boundary, person) in [(50, 5), (60, 4)] {
        world.block(&[], vec![stake(person, person, 100)]);
        world.present(if person == 5 { &[5] } else { &[5, 4] });
        world.until(boundary);
    }
    let last: Vec<Address> = world.accounts(6);
    assert!(last.contains(&account(5)) && last.contains(&account(4)), "one seat at a time");
    world.until(90);
    assert_eq!((world.units(0), world.units(1)), (11_000, 11_000));
    assert_eq!((world.stake_of(0), world.stake_of(1)), (None, None));
}

/// The attack: four accounts stake nearly all there is, and none of them has a node.
#[test]
fn stakes_without_nodes_take_no_seat() {
    let mut world = World::new(terms());
    let absent = (2..6).map(|person| stake(person, person, 10_000)).collect();
    assert_eq!(world.block(&[], absent), [None; 4]);
    for epoch in 1..6 {
        world.until(epoch * 10);
        assert_eq!(world.accounts(epoch), [account(0), account(1)], "epoch {epoch}");
    }
    // Absent founders keep their seats, too, until somebody comes: no committee shrinks.
    assert!(!world.ledger.validators().get(&account(0)).expect("there").is_present_for(6));
}

#[test]
fn a_newcomer_counts_when_it_has_posted_and_one_seat_changes_at_a_time() {
    let mut world = World::new(terms());
    world.block(&[], vec![stake(2, 2, 10_000), stake(3, 3, 10_000)]);
    world.until(10);
    assert_eq!(world.accounts(1), [account(0), account(1)], "nobody new has posted");
    world.present(&[2, 3]);
    world.until(20);
    let second = world.accounts(2);
    let came = second.iter().filter(|one| [account(2), account(3)].contains(one)).count();
    assert_eq!(came, 1, "{second:?}");
    world.present(&[2, 3]);
    world.until(30);
    let third: Vec<Address> = world.accounts(3);
    assert!(third.contains(&account(2)) && third.contains(&account(3)), "the absent founders have gone");
    // Who falls silent stays only until another one is present.
    world.present(&[3, 0]);
    world.until(40);
    assert_eq!(world.accounts(4).iter().filter(|one| **one == account(2)).count(), 0);
}

#[test]
fn a_presence_is_signed_by_the_validators_key_once_an_epoch_and_is_free() {
    let mut world = World::new(terms());
    world.block(&[], vec![stake(2, 2, 9_995)]);
    let alone = |world: &mut World, transaction: Transaction| world.block_of(&[], vec![transaction])[0];
    let of = |body: Body, number: u8| body.sign(&NETWORK, &node(number));
    let body = world.presence(2, 2).body;
    let by_account = body.clone().sign(&NETWORK, &key(2));
    let numbered = of(Body { sequence: 7, ..body.clone() }, 2);
    let nobodys = of(Body { account: account(5), ..body.clone() }, 5);
    let [past, coming] = [0, 2].map(|epoch| of(Body { operation: Operation::Present { epoch }, ..body.clone() }, 2));
    let elsewhere = body.clone().sign(&Digest([43; 32]), &node(2));
    let another = of(body.clone(), 3);
    let refused = world.block_of(&[], vec![by_account, another, numbered, nobodys, past, coming, elsewhere]);
    let expected = [
        Refusal::NOT_VALIDATORS_KEY,
        Refusal::NOT_VALIDATORS_KEY,
        Refusal::PRESENCE_NUMBER,
        Refusal::NOT_A_VALIDATOR,
        Refusal::PRESENCE_OF_OTHER_EPOCH,
        Refusal::PRESENCE_OF_OTHER_EPOCH,
        Refusal::BAD_SIGNATURE,
    ];
    assert_eq!(refused, expected.map(Some));
    // Copies are one transaction; of two that end at different heights one counts.
    let (good, later) = (of(body.clone(), 2), of(Body { until: 50_001, ..body.clone() }, 2));
    let both = world.block_of(&[], vec![good.clone(), good.clone(), later.clone()]);
    assert_eq!(both, [Some(Refusal::SEQUENCE_CONFLICT), Some(Refusal::SEQUENCE_CONFLICT), None]);
    assert_eq!(world.ledger.admit(&good), Err(Refusal::PRESENT_ALREADY));
    assert_eq!(world.units(2), 5, "it is free");
    let used = world.ledger.accounts().get(&account(2)).expect("there").window().highest();
    assert_eq!(used, 1, "it uses no number");
    // A new key has said nothing yet, and the old one speaks for nobody.
    assert_eq!(world.block(&[], vec![stake(2, 7, 0)]), [None]);
    assert_eq!(alone(&mut world, later), Some(Refusal::NOT_VALIDATORS_KEY));
    assert_eq!(alone(&mut world, of(body, 7)), None);
}

#[test]
fn the_pool_pays_all_alike_until_it_is_empty() {
    let mut world = World::new(Terms { reward: 300, ..terms() });
    world.block(&[0, 1], Vec::new());
    assert_eq!((world.units(0), world.units(1), world.ledger.validators().pool), (10_300, 10_300, 400));
    world.block(&[0, 1], Vec::new());
    assert_eq!((world.units(0), world.units(1), world.ledger.validators().pool), (10_500, 10_500, 0));
    world.block(&[0, 1], Vec::new());
    assert_eq!(world.units(0), 10_500);
    assert_eq!(world.ledger.assets()[0].issued, 60_000 + 2_000 + 1_000);
}

#[test]
fn a_fixed_committee_stays_and_can_still_be_convicted() {
    let mut world = World::new(Terms { schedule: Schedule { epoch_heights: 0, delay: 4 }, ..terms() });
    assert_eq!(world.block(&[], vec![stake(2, 2, 500), unstake(0, 500)]), [Some(Refusal::COMMITTEE_FIXED); 2]);
    assert_eq!(world.block(&[], vec![accuse(2, 0, 1, 1)]), [None]);
    world.until(50);
    assert_eq!((world.accounts(0), world.stake_of(1)), (vec![account(0), account(1)], Some(750)));
}

type Spoil = fn(&mut Membership);

#[test]
fn impossible_founders_are_named() {
    let faults: [(Spoil, &str); 8] = [
        (|m| m.founders[1].stake = 500_000, "minimum_stake is below 1/4096 of what the founders stake together"),
        (|m| m.founders[1].stake = 99, "validator 1: its stake is below the least"),
        (|m| m.founders[1].key = m.founders[0].key, "validator 1: another one has its key"),
        (|m| m.founders[1].account = m.founders[0].account, "validator 1: another one has its account"),
        (|m| m.founders[0].address = "nowhere".into(), "validator 0: its address is not host:port"),
        (|m| m.founders.clear(), "a network is founded by 1 to 256 validators"),
        (|m| m.terms.committee = 257, "a committee has 1 to 256 validators"),
        (|m| m.reward_pool = i64::MAX as u64, "asset 0: the balances sum to more"),
    ];
    for (spoil, expected) in faults {
        let mut genesis = genesis(terms());
        spoil(genesis.membership.as_mut().expect("there"));
        let error: GenesisError = Ledger::new(&genesis).err().expect("refused");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
