//! Work that is not paid for: quotas, and sub-blocks that earn nothing.

use ledger::{
    ACCUSATIONS_PER_SUB_BLOCK, Genesis, Ledger, Limits, Listing, Member, Membership, Outcome, Refusal,
    STAKES_PER_SUB_BLOCK, Schedule, Signatures, Terms,
};
use primitives::{
    Address, AssetId, Body, Committed, Contradiction, Digest, Evidence, Fraction, Operation, Price, Scope, SecretKey,
    Signature, SignedBy, Stake, SubBlock, Superblock, Transaction,
};

const NETWORK: Digest = Digest([42; 32]);

fn key(person: u16) -> SecretKey {
    let mut seed = [7; 32];
    seed[..2].copy_from_slice(&person.to_le_bytes());
    SecretKey::from_seed(seed)
}

fn account(person: u16) -> Address {
    key(person).public().address()
}

/// Two founders who earn 5 units a sub-block, 400 people with money, three assets.
fn ledger(limits: Limits) -> Ledger {
    let terms = Terms {
        network: NETWORK,
        schedule: Schedule { epoch_heights: 1_000, delay: 4 },
        committee: 2,
        minimum_stake: 100,
        unbonding_epochs: 1,
        reward: 5,
        slash: Fraction::power_of_two(2),
    };
    let founder = |person: u16| Member {
        account: account(person),
        key: key(1_000 + person).public(),
        address: "v.example:1".into(),
        stake: 1_000,
    };
    let genesis = Genesis {
        chain: 1,
        fee: 1,
        mu: Fraction::power_of_two(10),
        limits,
        assets: ["USD", "EUR", "BTC"].map(|symbol| Listing::new(symbol, 6, Address::default())).to_vec(),
        balances: (2..400).flat_map(|one| (0..3).map(move |asset| (account(one), AssetId(asset), 1 << 40))).collect(),
        membership: Some(Membership { terms, reward_pool: 1_000, founders: vec![founder(0), founder(1)] }),
        ..Genesis::default()
    };
    Ledger::new(&genesis).expect("sound")
}

fn sign(person: u16, sequence: u64, operation: Operation) -> Transaction {
    Body { chain: 1, account: account(person), sequence, until: 50_000, operation }.sign(&NETWORK, &key(person))
}

/// Applies one sub-block of each founder; returns the refusals.
fn apply(ledger: &mut Ledger, parts: [Vec<Transaction>; 2]) -> Vec<Option<Refusal>> {
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    let sub = |(proposer, native)| SubBlock { proposer, native, ..SubBlock::default() };
    let sub_blocks = (0..).zip(parts).map(sub).collect();
    let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
    let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    ledger.audit().expect("sound");
    applied.outcomes.iter().map(Outcome::refusal).collect()
}

fn units(ledger: &Ledger, person: u16) -> u64 {
    ledger.accounts().get(&account(person)).map_or(0, |account| account.balance(AssetId(0)))
}

/// Two outcomes of one height, signed by a validator or by an unknown key.
fn evidence(member: u8, signer: &SecretKey) -> Operation {
    let scope = Scope { network: NETWORK, epoch: 0 };
    let one = |root: u8| {
        let (superblock, root) = (Digest([3; 32]), Digest([root; 32]));
        Committed { superblock, root, signature: signer.sign(&scope.commit(9, &superblock, &root).0) }
    };
    let contradiction = Contradiction::Commits([one(1), one(2)]);
    Operation::Accuse(Box::new(Evidence { epoch: 0, member, height: 9, contradiction }))
}

/// Of 9,000 invalid accusations only those within the quota are processed, and the proposer that included them earns
/// nothing.
#[test]
fn nine_thousand_false_accusations_cost_no_more_than_the_quota() {
    let mut ledger = ledger(Limits::default());
    let forged = evidence(1, &key(5_000));
    // Signatures on transactions are known, so that all time is spent in the filter.
    let accuse = |index: u16| {
        let body = Body {
            chain: 1,
            account: account(2 + index % 398),
            sequence: 1 + u64::from(index / 398),
            until: 50_000,
            operation: forged.clone(),
        };
        Transaction::by_key(body, key(2 + index % 398).public(), Signature([0; 64]))
    };
    let (height, parent) = (1, ledger.last_block());
    let native: Vec<Transaction> = (0..9_000).map(accuse).collect();
    let sub_blocks =
        vec![SubBlock { proposer: 0, native, ..SubBlock::default() }, SubBlock { proposer: 1, ..SubBlock::default() }];
    let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
    let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    let count = |refusal| applied.outcomes.iter().filter(|outcome| outcome.refusal() == Some(refusal)).count();
    assert_eq!(count(Refusal::BAD_EVIDENCE), ACCUSATIONS_PER_SUB_BLOCK as usize);
    assert_eq!(count(Refusal::OVER_QUOTA), 9_000 - ACCUSATIONS_PER_SUB_BLOCK as usize);
    assert_eq!((units(&ledger, 0), units(&ledger, 1)), (0, 5));
}

/// Each sub-block has its own quota, and a valid accusation within it convicts.
#[test]
fn a_true_accusation_counts_beside_a_full_quota_elsewhere() {
    let mut ledger = ledger(Limits::default());
    let noise: Vec<Transaction> = (2..40).map(|person| sign(person, 1, evidence(1, &key(5_000)))).collect();
    let refusals = apply(&mut ledger, [noise, vec![sign(50, 1, evidence(0, &key(1_000)))]]);
    assert_eq!(refusals.last(), Some(&None));
    assert!(ledger.validators().get(&account(0)).expect("there").excluded);
}

#[test]
fn what_is_false_by_itself_costs_the_reward_and_what_can_be_honest_does_not() {
    let pay = |to: u16, amount| Operation::Pay { to: account(to), asset: AssetId(0), amount };
    let offer = |amount| Operation::offer(AssetId(0), AssetId(1), amount, Price::ONE);
    let cancel = Operation::cancel(AssetId(0), AssetId(1), Price::ONE, 9);
    let mut forged = sign(2, 1, pay(3, 1));
    if let SignedBy::Key { signature, .. } = &mut forged.signed_by {
        signature.0[0] ^= 1;
    }
    let mut foreign = sign(2, 1, pay(3, 1));
    foreign.body.chain = 2;
    let burn = Operation::Burn { asset: AssetId(1), amount: 1 };
    let mut stolen = Stake::new(500, "a.example:1".into(), 1, &account(2), &key(2_000));
    stolen.key = key(2_001).public();
    for (transactions, is_false) in [
        (vec![forged], true),
        (vec![foreign], true),
        (vec![sign(2, 1, pay(3, 0))], true),
        (vec![sign(2, 1, Operation::Burn { asset: AssetId(9), amount: 1 })], true),
        (vec![sign(2, 1, offer(5))], true),
        (vec![sign(2, 1, burn)], true),
        (vec![sign(2, 1, Operation::Stake(Box::new(stolen)))], true),
        (vec![sign(2, 1, evidence(1, &key(5_000)))], true),
        (vec![sign(2, 1, pay(3, 1 << 41))], false),
        (vec![sign(2, 1, pay(3, 1)), sign(2, 1, pay(3, 2))], false),
        (vec![sign(2, 1, pay(3, 1)), sign(2, 1, pay(3, 1))], false),
        (vec![sign(2, 1, cancel)], false),
        (vec![sign(2, 99, pay(3, 1))], false),
        (vec![sign(4_000, 1, pay(3, 1))], false),
    ] {
        let mut ledger = ledger(Limits::default());
        let refusals = apply(&mut ledger, [transactions, vec![sign(9, 1, pay(3, 1))]]);
        assert!(refusals.iter().any(Option::is_some), "{refusals:?}");
        assert_eq!((units(&ledger, 0), units(&ledger, 1)), (if is_false { 0 } else { 5 }, 5), "{refusals:?}");
    }
}

#[test]
fn stakes_beyond_the_quota_are_refused_by_name() {
    let mut ledger = ledger(Limits::default());
    let stake = |person: u16| {
        let stake = Stake::new(500, "a.example:1".into(), 1, &account(person), &key(2_000 + person));
        sign(person, 1, Operation::Stake(Box::new(stake)))
    };
    let refusals = apply(&mut ledger, [(2..102).map(stake).collect(), Vec::new()]);
    let quota = STAKES_PER_SUB_BLOCK as usize;
    assert!(refusals[..quota].iter().all(Option::is_none));
    assert!(refusals[quota..].iter().all(|refusal| *refusal == Some(Refusal::OVER_QUOTA)));
}

/// Cheap stakes fill a registry, and an account that stakes more than the lowest of them takes its place.
#[test]
fn cheap_stakes_keep_nobody_out() {
    let mut ledger = ledger(Limits { validators: 50, ..Limits::default() });
    let stake = |person: u16, sequence: u64, units: u64| {
        let stake = Stake::new(units, "a.example:1".into(), 1, &account(person), &key(2_000 + person));
        sign(person, sequence, Operation::Stake(Box::new(stake)))
    };
    for block in 0..5 {
        let cheap = (0..50).map(|index| stake(2 + 50 * block + index, 1, 100)).collect();
        apply(&mut ledger, [cheap, Vec::new()]);
    }
    let staked = |ledger: &Ledger| ledger.validators().registry.iter().filter(|one| one.member.stake > 0).count();
    assert_eq!(staked(&ledger), 50);
    let refused = apply(&mut ledger, [vec![stake(300, 1, 100)], Vec::new()]);
    assert_eq!(refused, [Some(Refusal::REGISTRY_FULL)]);
    assert_eq!(apply(&mut ledger, [vec![stake(300, 1, 101), stake(301, 1, 900)], Vec::new()]), [None, None]);
    assert_eq!(staked(&ledger), 50);
    for person in [0, 1, 300, 301] {
        assert!(ledger.validators().get(&account(person)).is_some_and(|one| one.member.stake > 0), "{person}");
    }
    // Displaced accounts get their units back later.
    let displaced = ledger.validators().registry.iter().filter(|one| one.member.stake == 0);
    assert!(displaced.clone().count() >= 2 && displaced.clone().all(|one| one.bonded() == 100));
}
