//! Pools on the chain: what operations cost and pay, what a batch does, and what hostile ones cannot do.

use ledger::{
    Applied, Attached, AttachedViolation, Fault, Genesis, GenesisError, Ledger, Listing, Outcome, PoolRecord,
    PoolTerms, Pooled, Refusal, Roots, SHARES_NEW, SHARES_OF_NOBODY, Signatures, Snapshot, pool_cost, pool_pays,
};
use primitives::{
    Address, Amount, AssetId, Body, Fraction, MAX_ISSUED, Operation, POOL_WEIGHT, PoolKey, PoolOperation, Price,
    SecretKey, Sequence, SubBlock, Superblock, Transaction,
};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const POOL: PoolKey = PoolKey { a: USD, b: EUR, class: 0 };
const HOLDING: Amount = 1 << 60;

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

fn address(person: u8) -> Address {
    key(person).public().address()
}

fn genesis() -> Genesis {
    let assets = ["USD", "EUR", "JPY"].map(|symbol| Listing::new(symbol, 2, address(9))).to_vec();
    let assets_of = |person| (0..3).map(move |asset| (address(person), AssetId(asset), HOLDING));
    let balances = (1..=6).flat_map(assets_of).collect();
    let (mu, pools) = (Fraction::power_of_two(10), Some(PoolTerms::default()));
    Genesis { chain: 1, fee: 1, mu, assets, balances, pools, ..Genesis::default() }
}

/// A ledger to which operations are sent, each in a number of its own.
struct World {
    ledger: Ledger,
    numbers: [Sequence; 10],
}

impl World {
    fn new() -> World {
        World { ledger: Ledger::new(&genesis()).expect("sound"), numbers: [0; 10] }
    }

    /// A world in which person 1 has opened the pool.
    fn with_pool(x: Amount, y: Amount) -> World {
        let mut world = World::new();
        assert_eq!(world.outcome(1, PoolOperation::Open { pool: POOL, x, y }).refusal(), None);
        world
    }

    fn sign(&mut self, person: u8, operation: Operation) -> Transaction {
        self.numbers[usize::from(person)] += 1;
        let sequence = self.numbers[usize::from(person)];
        Body { chain: 1, account: address(person), sequence, until: 50_000, operation }
            .sign(&genesis().digest(), &key(person))
    }

    fn block(&self, native: Vec<Transaction>) -> Superblock {
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        Superblock { height, parent, sub_blocks, ..Superblock::default() }
    }

    /// Applies a block by solving, by checking the result, and backwards; all must agree.
    fn apply(&mut self, native: Vec<Transaction>) -> Applied {
        let before = self.pool(POOL);
        let backwards = self.block(native.iter().rev().cloned().collect());
        let block = self.block(native);
        let (mut follower, mut shuffled, mut roots) =
            (self.ledger.clone(), self.ledger.clone(), Roots::of(&self.ledger));
        let applied = self.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        let attached = Attached::of(&applied.batch);
        let followed = follower.apply_attached(&block, &attached, Signatures::Unchecked, &mut |_| {}).expect("holds");
        assert_eq!((&followed.outcomes, &followed.batch), (&applied.outcomes, &applied.batch));
        let other = shuffled.apply(&backwards, Signatures::Unchecked, &mut |_| {}).expect("applies");
        assert_eq!(other.batch, applied.batch);
        assert!(other.outcomes.iter().rev().eq(&applied.outcomes));
        let root = Roots::of(&self.ledger).parts().root();
        assert_eq!(roots.apply(&applied.changes), root, "the tries follow the changes");
        assert_eq!(Roots::of(&shuffled).parts().root(), root, "order does not matter");
        self.ledger.audit().expect("conserved");
        if let (Some(before), Some(after)) = (before, self.pool(POOL)) {
            assert!(worth(&after, &before) >= worth(&before, &after), "a·b/T² fell: {before:?} {after:?}");
        }
        applied
    }

    fn outcome(&mut self, person: u8, operation: PoolOperation) -> Outcome {
        let transaction = self.sign(person, pool(operation));
        self.apply(vec![transaction]).outcomes[0]
    }

    fn pool(&self, pool: PoolKey) -> Option<PoolRecord> {
        self.ledger.pools().expect("the chain has pools").get(&pool).copied()
    }

    fn shares(&self, person: u8) -> u64 {
        self.ledger.pools().expect("the chain has pools").shares(POOL, address(person))
    }

    fn balances(&self, person: u8) -> [Amount; 2] {
        let account = self.ledger.accounts().get(&address(person)).expect("exists");
        [USD, EUR].map(|asset| account.balance(asset))
    }

    fn offer(&mut self, person: u8, sell: AssetId, amount: Amount, limit: &str) -> Transaction {
        let limit = Price::parse_rounding_up(limit).expect("a price");
        self.sign(person, Operation::offer(sell, AssetId(1 - sell.0), amount, limit))
    }
}

/// a·b of a pool, over its shares², as a fraction with those of another one: to compare both.
fn worth(of: &PoolRecord, with: &PoolRecord) -> num_bigint::BigUint {
    num_bigint::BigUint::from(of.a) * of.b * with.shares * with.shares
}

fn pool(operation: PoolOperation) -> Operation {
    Operation::Pool(Box::new(operation))
}

fn open(x: Amount, y: Amount) -> PoolOperation {
    PoolOperation::Open { pool: POOL, x, y }
}

fn provide(shares: u64, most_a: Amount, most_b: Amount) -> PoolOperation {
    PoolOperation::Provide { pool: POOL, shares, most_a, most_b }
}

fn leave(shares: u64) -> PoolOperation {
    PoolOperation::Leave { pool: POOL, shares, least_a: 0, least_b: 0 }
}

#[test]
fn units_move_as_the_shares_say_and_nothing_is_lost() {
    let mut world = World::new();
    let before = world.balances(1);
    let shares = SHARES_NEW - SHARES_OF_NOBODY;
    assert_eq!(
        world.outcome(1, open(1_000_000, 3_000_000)),
        Outcome::Pooled(Pooled { a: 1_000_000, b: 3_000_000, shares })
    );
    assert_eq!(world.balances(1), [before[0] - 1_000_000 - POOL_WEIGHT, before[1] - 3_000_000]);
    // A seventh of the pool, rounded up; what is locked beyond it returns.
    let (bought, was) = (SHARES_NEW / 7, world.balances(2));
    let (a, b) = pool_cost(&world.pool(POOL).expect("open"), bought).expect("exists");
    assert_eq!((a, b), (142_858, 428_572));
    assert_eq!(world.outcome(2, provide(bought, 200_000, 428_572)), Outcome::Pooled(Pooled { a, b, shares: bought }));
    assert_eq!(world.balances(2), [was[0] - a - 1, was[1] - b]);
    let one_less = provide(bought, a, pool_cost(&world.pool(POOL).expect("open"), bought).expect("exists").1 - 1);
    assert_eq!(world.outcome(3, one_less).refusal(), Some(Refusal::POOL_COSTS_MORE));
    // Whoever leaves at once loses at most a unit of each asset.
    let Outcome::Pooled(left) = world.outcome(2, leave(bought)) else { panic!("it leaves") };
    assert!(left.a + 1 >= a && left.a <= a && left.b + 1 >= b && left.b <= b, "{left:?}");
    assert_eq!(world.shares(2), 0);
    assert_eq!(world.outcome(2, leave(1)).refusal(), Some(Refusal::SHARES_NOT_HELD));
}

#[test]
fn refusals_say_what_is_wrong() {
    let mut world = World::with_pool(1 << 20, 1 << 20);
    let least = genesis().assets[0].least_units;
    let key = |a: u32, b: u32, class| PoolKey { a: AssetId(a), b: AssetId(b), class };
    let open = |pool, x, y| PoolOperation::Open { pool, x, y };
    for (operation, refusal) in [
        (open(key(1, 0, 0), 1 << 20, 1 << 20), Refusal::POOL_ASSETS),
        (open(key(1, 1, 0), 1 << 20, 1 << 20), Refusal::POOL_ASSETS),
        (open(key(1, 3, 0), 1 << 20, 1 << 20), Refusal::UNKNOWN_ASSET),
        (open(key(1, 2, 2), 1 << 20, 1 << 20), Refusal::NO_POOL_CLASS),
        (open(key(1, 2, 1), 16 * least - 1, 1 << 20), Refusal::POOL_TOO_SMALL),
        (open(key(1, 2, 1), 1 << 20, 16 * least - 1), Refusal::POOL_TOO_SMALL),
        (open(key(1, 2, 1), 0, 1 << 20), Refusal::ZERO_AMOUNT),
        (open(key(1, 2, 1), 1 << 20, MAX_ISSUED + 1), Refusal::AMOUNT_TOO_LARGE),
        (open(key(1, 2, 1), 1 << 20, HOLDING), Refusal::OVERDRAFT),
        (open(POOL, 1 << 20, 1 << 20), Refusal::POOL_EXISTS),
        (provide(0, 1, 1), Refusal::ZERO_AMOUNT),
        (provide(1, MAX_ISSUED + 1, 1), Refusal::AMOUNT_TOO_LARGE),
        (provide(u64::MAX, MAX_ISSUED, 1), Refusal::POOL_COSTS_MORE),
        (PoolOperation::Provide { pool: key(0, 2, 0), shares: 1, most_a: 9, most_b: 9 }, Refusal::NO_POOL),
        (PoolOperation::Leave { pool: key(0, 2, 0), shares: 1, least_a: 0, least_b: 0 }, Refusal::NO_POOL),
        (PoolOperation::Leave { pool: POOL, shares: 16, least_a: 2, least_b: 0 }, Refusal::POOL_PAYS_LESS),
        (leave(u64::MAX), Refusal::SHARES_NOT_HELD),
    ] {
        let balances = world.balances(2);
        let outcome = if refusal == Refusal::OVERDRAFT {
            let (one, two) =
                (world.sign(2, pool(operation)), world.sign(2, pool(open(key(1, 2, 0), 1 << 20, HOLDING))));
            world.apply(vec![one, two]).outcomes[0]
        } else {
            world.outcome(2, operation)
        };
        assert_eq!(outcome.refusal(), Some(refusal), "{operation:?}");
        assert_eq!(world.balances(2), balances, "what is refused costs nothing");
        world.numbers[2] -= 1 + u64::from(refusal == Refusal::OVERDRAFT);
    }
    let mut without = Ledger::new(&Genesis { pools: None, ..genesis() }).expect("sound");
    let body = Body { chain: 1, account: address(1), sequence: 1, until: 9, operation: pool(leave(1)) };
    let transaction = body.sign(&Genesis { pools: None, ..genesis() }.digest(), &key_of(1));
    let block = Superblock {
        height: 1,
        parent: without.last_block(),
        sub_blocks: vec![SubBlock { native: vec![transaction], ..SubBlock::default() }],
        ..Superblock::default()
    };
    let applied = without.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    assert_eq!(applied.outcomes[0].refusal(), Some(Refusal::NO_POOLS));
}

fn key_of(person: u8) -> SecretKey {
    key(person)
}

/// Every order of the same operations has one result; of two openings that with the lowest id counts, the other one
/// pays its fee alone.
#[test]
fn openings_and_others_in_one_block_commute() {
    let mut world = World::new();
    let before = [world.balances(1), world.balances(2)];
    let opens = vec![world.sign(1, pool(open(1 << 20, 1 << 21))), world.sign(2, pool(open(1 << 22, 1 << 21)))];
    let lowest = usize::from(opens[1].id() < opens[0].id());
    let early = world.sign(3, pool(provide(1, 1 << 20, 1 << 20)));
    let applied = world.apply([opens, vec![early]].concat());
    assert_eq!(applied.outcomes[2].refusal(), Some(Refusal::NO_POOL), "effects are visible from the next block on");
    let (won, lost) = (applied.outcomes[lowest], applied.outcomes[1 - lowest]);
    assert!(matches!(won, Outcome::Pooled(_)) && lost == Outcome::Void, "{won:?} {lost:?}");
    let loser = 2 - lowest as u8;
    let paid = before[usize::from(loser) - 1][0] - world.balances(loser)[0];
    assert_eq!(paid, POOL_WEIGHT);
    let winner = 1 + lowest as u8;
    let mut block = vec![world.sign(winner, pool(leave(1 << 20))), world.sign(winner, pool(leave(77)))];
    block.push(world.sign(4, pool(provide(12_345, 1 << 30, 1 << 30))));
    block.push(world.sign(5, pool(provide(99, 1 << 30, 1 << 30))));
    block.push(world.offer(6, USD, 40_000, "0.3"));
    let applied = world.apply(block);
    assert_eq!(applied.batch.pools.len(), 1, "{:?}", applied.batch);
    assert_eq!((world.shares(4), world.shares(5)), (12_345, 99));
}

/// The pool answers for offers that have no other counterparty, at one rate, and its product does not fall.
#[test]
fn a_pool_meets_offers_and_two_pools_agree_without_any() {
    let mut world = World::with_pool(100_000_000, 100_000_000);
    let offer = world.offer(2, EUR, 1_000_000, "0.5");
    let applied = world.apply(vec![offer]);
    let fill = applied.batch.pools[0];
    assert!(fill.sells_a && fill.sold > 950_000 && fill.bought > 990_000, "{fill:?}");
    assert!(applied.batch.full());
    // The other fee class at another price: a block without an offer trades between them, and then no more.
    let other = PoolKey { class: 1, ..POOL };
    let opened = world.outcome(3, PoolOperation::Open { pool: other, x: 100_000_000, y: 200_000_000 });
    assert!(matches!(opened, Outcome::Pooled(_)));
    assert!(world.ledger.assets()[1].valuation.is_some());
    let mut traded = 0;
    for _ in 0..4 {
        traded += world.apply(Vec::new()).batch.pools.len();
    }
    let [one, two] = [POOL, other].map(|key| world.pool(key).expect("open")).map(|pool| pool.b as f64 / pool.a as f64);
    assert!((one / two - 1.0).abs() < 0.006, "{one} {two} after {traded} trades");
    assert!(world.apply(Vec::new()).batch.pools.is_empty(), "the fees are wider than what is left");
    // A pair of offers beside them trades at the pools' rate.
    let (buyer, seller) = (world.offer(4, EUR, 50_000, "0.1"), world.offer(5, USD, 50_000, "0.1"));
    let fills = world.apply(vec![buyer, seller]).batch.fills;
    assert_eq!(fills.len(), 2);
}

#[test]
fn all_may_leave_and_others_come_back() {
    let mut world = World::with_pool(1 << 20, 1 << 40);
    assert_eq!(world.outcome(2, provide(SHARES_NEW, 1 << 40, 1 << 50)).refusal(), None);
    let (one, two) = (world.shares(1), world.shares(2));
    let block = vec![world.sign(1, pool(leave(one))), world.sign(2, pool(leave(two)))];
    world.apply(block);
    let rest = world.pool(POOL).expect("it stays");
    assert_eq!((rest.shares, rest.a, rest.b), (SHARES_OF_NOBODY, 4_096, 1 << 32));
    assert_eq!(world.ledger.pools().expect("pools").holdings_of(address(1)).count(), 0);
    // It sleeps: nothing has a price, and an offer finds nobody.
    let offer = world.offer(3, EUR, 1 << 39, "0.00000001");
    let applied = world.apply(vec![offer]);
    assert!(applied.batch.pools.is_empty() && world.ledger.assets()[0].valuation.is_none());
    let provision = world.sign(4, pool(provide(SHARES_NEW * 4, 1 << 40, 1 << 50)));
    assert_eq!(world.apply(vec![provision]).batch.pools.len(), 1, "it trades again, in the batch of the same block");
    assert_eq!(world.outcome(4, leave(world.shares(4))).refusal(), None);
}

/// A pool of 10^12 times as many units of one asset as of the other, and one that is halved in each of 60 blocks.
#[test]
fn extreme_ratios_and_halvings_lose_nothing() {
    let mut world = World::with_pool(70_000, 70_000_000_000_000_000);
    for shares in [1, 3, SHARES_NEW / 3, SHARES_NEW - 1] {
        let pool = world.pool(POOL).expect("open");
        let (a, b) = pool_cost(&pool, shares).expect("exists");
        assert_eq!(world.outcome(2, provide(shares, a, b)).refusal(), None);
        let (back, _) = pool_pays(&world.pool(POOL).expect("open"), shares);
        assert!(back == a || back + 1 == a, "{back} of {a}");
    }
    let mut world = World::with_pool(1 << 50, 1 << 50);
    for round in 0..60u64 {
        let half = world.shares(1) / 2;
        if half > 0 {
            assert_eq!(world.outcome(1, leave(half)).refusal(), None, "{round}");
        }
        let offer = world.offer(2, if round % 2 == 0 { USD } else { EUR }, 10_000_000, "0.001");
        world.apply(vec![offer]);
    }
    assert!(world.shares(1) <= 1);
}

/// Provisions that their accounts cannot pay count for nothing: they keep nobody else from buying shares.
#[test]
fn nobody_keeps_others_out_with_shares_that_he_cannot_pay() {
    let mut world = World::with_pool(1 << 20, 1 << 20);
    let mut block = vec![world.sign(2, pool(provide(1_000, 1 << 20, 1 << 20)))];
    for _ in 0..60 {
        // Each could exist, and is more than the account has.
        block.push(world.sign(3, pool(provide(1 << 62, MAX_ISSUED, MAX_ISSUED))));
        block.push(world.sign(4, pool(provide(1 << 61, MAX_ISSUED, MAX_ISSUED))));
    }
    let applied = world.apply(block);
    assert!(matches!(applied.outcomes[0], Outcome::Pooled(_)), "{:?}", applied.outcomes[0]);
    assert!(applied.outcomes[1..].iter().all(|outcome| outcome.refusal().is_some()));
}

/// To provide before a batch and to leave after it wins nothing of what others provided.
#[test]
fn a_sandwich_of_provisions_gains_nothing_from_the_others() {
    let mut world = World::with_pool(1 << 40, 1 << 40);
    let before = world.pool(POOL).expect("open");
    let block = vec![world.sign(2, pool(provide(SHARES_NEW, 1 << 41, 1 << 41))), world.offer(3, USD, 1 << 36, "0.5")];
    assert_eq!(world.apply(block).batch.pools.len(), 1);
    assert_eq!(world.outcome(2, leave(SHARES_NEW)).refusal(), None);
    let after = world.pool(POOL).expect("open");
    assert_eq!(after.shares, before.shares);
    assert!(u128::from(after.a) * u128::from(after.b) >= u128::from(before.a) * u128::from(before.b));
}

#[test]
fn a_claim_of_a_pool_that_does_not_trade_so_is_refused() {
    let mut world = World::with_pool(1 << 30, 1 << 30);
    let offer = world.offer(2, EUR, 10_000_000, "0.5");
    let block = world.block(vec![offer]);
    let truth =
        Attached::of(&world.ledger.clone().apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies").batch);
    let violation = |claim: &Attached| {
        let mut ledger = world.ledger.clone();
        let chunks = |ledger: &Ledger| Snapshot::of(ledger).collect::<Vec<_>>();
        match ledger.apply_attached(&block, claim, Signatures::Unchecked, &mut |_| {}) {
            Err(Fault::Attached { violation, .. }) => {
                assert_eq!(chunks(&ledger), chunks(&world.ledger), "nothing has changed");
                violation
            }
            other => panic!("{other:?}"),
        }
    };
    let with = |change: &dyn Fn(&mut Attached)| {
        let mut claim = truth.clone();
        change(&mut claim);
        violation(&claim)
    };
    assert_eq!(with(&|claim| claim.pools[0].sold += 1), AttachedViolation::Pool(POOL));
    assert_eq!(with(&|claim| claim.pools[0].bought -= 1), AttachedViolation::Pool(POOL));
    assert_eq!(with(&|claim| claim.pools[0].sells_a ^= true), AttachedViolation::Pool(POOL));
    assert_eq!(with(&|claim| claim.pools.clear()), AttachedViolation::Pool(POOL));
    assert_eq!(with(&|claim| claim.pools.push(claim.pools[0])), AttachedViolation::Pool(POOL));
    let other = PoolKey { class: 1, ..POOL };
    assert_eq!(with(&|claim| claim.pools[0].pool = other), AttachedViolation::Pool(other));
}

#[test]
fn impossible_terms_are_refused() {
    let fees = |powers: &[u32]| powers.iter().map(|power| Fraction::power_of_two(*power)).collect();
    for fees in [fees(&[]), fees(&[8, 8]), fees(&[8, 9]), fees(&[3]), fees(&[12, 11, 10, 9, 8])] {
        let genesis = Genesis { pools: Some(PoolTerms { fees }), ..genesis() };
        assert!(matches!(Ledger::new(&genesis).map(|_| ()), Err(GenesisError::Pools(_))));
    }
}
