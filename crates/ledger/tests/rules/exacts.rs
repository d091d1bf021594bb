//! Exact orders on the chain: exactly so many units within the bound or nothing, beside all offers and never before
//! them.

use ledger::{
    Applied, Attached, AttachedViolation, EXACTS_PER_SUB_BLOCK, ExactOutcome, ExactReason, Fault, Genesis, Ledger,
    Listing, Outcome, Refusal, Roots, Signatures, Snapshot,
};
use primitives::{
    Address, Amount, AssetId, Body, ClientId, EXACT_WEIGHT, ExactSide, Fraction, Life, Operation, Price, SecretKey,
    Sequence, SubBlock, Superblock, Transaction,
};

const ASSETS: u32 = 4;
const FEE: Amount = 3;
const HOLDING: Amount = 1 << 56;
const UNITS: Amount = 1_000_000;
/// Makers have offers on both sides of this pair at the prices of [`World::liquid`].
const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
/// One more asset that is joined to both, and one that nobody offers.
const JPY: AssetId = AssetId(2);
const FAR: AssetId = AssetId(3);

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

fn address(person: u8) -> Address {
    key(person).public().address()
}

fn genesis() -> Genesis {
    let assets = (0..ASSETS).map(|at| Listing::new(format!("A{at}"), 2, address(9))).collect();
    let holdings = |person| (0..ASSETS).map(move |asset| (address(person), AssetId(asset), HOLDING));
    let balances = (1..=40).flat_map(holdings).collect();
    let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
    Genesis { chain: 1, fee: FEE, epsilon, mu, assets, balances, ..Genesis::default() }
}

fn exact(sell: AssetId, buy: AssetId, side: ExactSide, units: Amount, bound: Amount) -> Operation {
    Operation::Exact { sell, buy, side, units, bound, client: ClientId([3; 16]) }
}

fn buy(units: Amount, bound: Amount) -> Operation {
    exact(USD, EUR, ExactSide::Buy, units, bound)
}

fn sell(units: Amount, bound: Amount) -> Operation {
    exact(EUR, USD, ExactSide::Sell, units, bound)
}

fn offer(sell: AssetId, buy: AssetId, amount: Amount, limit: &str) -> Operation {
    let (limit, client) = (limit.parse().expect("a price"), ClientId::NONE);
    Operation::CreateOffer { sell, buy, amount, limit, life: Life::Rests, client }
}

/// A ledger to which operations are sent, each in a number of its own.
struct World {
    ledger: Ledger,
    numbers: [Sequence; 41],
    is_liquid: bool,
}

impl World {
    fn new() -> World {
        World { ledger: Ledger::new(&genesis()).expect("sound"), numbers: [0; 41], is_liquid: false }
    }

    /// A world in each of whose blocks offers of every limit around par meet, of three assets in both directions.
    fn liquid() -> World {
        World { is_liquid: true, ..World::new() }
    }

    /// The offers of a block of a liquid world.
    fn flow(&mut self) -> Vec<Transaction> {
        let pairs = [(USD, EUR), (EUR, USD), (USD, JPY), (JPY, USD), (EUR, JPY), (JPY, EUR)];
        let mut flow = Vec::new();
        if !self.is_liquid {
            return flow;
        }
        for (at, (a, b)) in pairs.into_iter().enumerate() {
            for step in 0..40u32 {
                let limit = format!("{:.6}", 0.994 + 0.0003 * f64::from(step) + 0.000031 * at as f64);
                let limit = limit.parse().expect("a price");
                let (amount, life, client) = (4 * UNITS, Life::OneBatch, ClientId::NONE);
                let offer = Operation::CreateOffer { sell: a, buy: b, amount, limit, life, client };
                flow.push(self.sign(20 + at as u8, offer));
            }
        }
        flow
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

    /// Applies a block by solving on 1, 2 and 7 threads, by checking the result, and backwards; all must agree. Without
    /// its exact orders the block has the same prices and the same groups that are not full.
    fn apply(&mut self, mut native: Vec<Transaction>) -> Applied {
        native.append(&mut self.flow());
        let before = self.ledger.clone();
        let backwards = self.block(native.iter().rev().cloned().collect());
        let is_exact = |t: &&Transaction| matches!(t.body.operation, Operation::Exact { .. });
        let plain = self.block(native.iter().filter(|t| !is_exact(t)).cloned().collect());
        let block = self.block(native);
        let applied = self.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        let (root, mut roots) = (Roots::of(&self.ledger).parts().root(), Roots::of(&before));
        assert_eq!(roots.apply(&applied.changes), root, "the tries follow the changes");
        for threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let mut other = before.clone();
            let again = pool.install(|| other.apply(&block, Signatures::Valid, &mut |_| {})).expect("applies");
            assert_eq!((&again.batch, &again.outcomes), (&applied.batch, &applied.outcomes), "{threads} threads");
        }
        let attached = Attached::of(&applied.batch);
        let mut follower = before.clone();
        let followed = follower.apply_attached(&block, &attached, Signatures::Valid, &mut |_| {}).expect("holds");
        assert_eq!((&followed.outcomes, &followed.batch), (&applied.outcomes, &applied.batch));
        assert_eq!(Roots::of(&follower).parts().root(), root);
        let mut shuffled = before.clone();
        let other = shuffled.apply(&backwards, Signatures::Valid, &mut |_| {}).expect("applies");
        assert_eq!(other.batch, applied.batch);
        assert!(other.outcomes.iter().rev().eq(&applied.outcomes));
        assert_eq!(Roots::of(&shuffled).parts().root(), root, "order does not matter");
        let mut without = before.clone();
        let plain = without.apply(&plain, Signatures::Valid, &mut |_| {}).expect("applies");
        assert_eq!(
            (plain.batch.valuations, plain.batch.short),
            (applied.batch.valuations.clone(), applied.batch.short.clone())
        );
        self.ledger.audit().expect("conserved");
        applied
    }

    fn outcome(&mut self, person: u8, operation: Operation) -> ExactOutcome {
        let transaction = self.sign(person, operation);
        exact_outcome(self.apply(vec![transaction]).outcomes[0])
    }

    fn refusal(&mut self, operation: Operation) -> Option<Refusal> {
        let transaction = self.sign(1, operation);
        self.apply(vec![transaction]).outcomes[0].refusal()
    }

    fn balances(&self, person: u8) -> [Amount; 2] {
        let account = self.ledger.accounts().get(&address(person)).expect("exists");
        [USD, EUR].map(|asset| account.balance(asset))
    }

    /// What a purchase of so many euros costs now, found by a bound that everybody would accept.
    fn cost(&self, units: Amount) -> Amount {
        let mut probe = World { ledger: self.ledger.clone(), ..*self };
        let outcome = probe.outcome(40, buy(units, 1 << 40));
        assert_eq!(outcome.why, ExactReason::Filled);
        outcome.sold
    }
}

fn exact_outcome(outcome: Outcome) -> ExactOutcome {
    match outcome {
        Outcome::Exact(exact) => exact,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bound_equal_to_the_cost_is_enough_and_a_unit_less_is_not() {
    let mut world = World::liquid();
    let cost = world.cost(UNITS);
    let before = world.balances(1);
    let fee = FEE * EXACT_WEIGHT;
    let missed = world.outcome(1, buy(UNITS, cost - 1));
    assert_eq!(missed, ExactOutcome { sold: 0, bought: 0, returned: cost - 1, why: ExactReason::BeyondBound });
    assert_eq!(world.balances(1), [before[0] - fee, before[1]]);
    let cost = world.cost(UNITS);
    let filled = world.outcome(1, buy(UNITS, cost));
    assert_eq!(filled, ExactOutcome { sold: cost, bought: UNITS, returned: 0, why: ExactReason::Filled });
    assert_eq!(world.balances(1), [before[0] - 2 * fee - cost, before[1] + UNITS]);
    // What is not needed returns.
    let cost = world.cost(UNITS);
    assert_eq!(world.outcome(2, buy(UNITS, 3 * cost)).returned, 2 * cost);
    // All or nothing for whoever sells.
    let paid = world.outcome(3, sell(UNITS, 1)).bought;
    assert!(paid > UNITS / 2 && paid < 2 * UNITS);
    let [.., sold] = [world.outcome(4, sell(UNITS, 2 * paid)), world.outcome(4, sell(UNITS, paid / 2))];
    assert_eq!((sold.sold, sold.returned, sold.why), (UNITS, 0, ExactReason::Filled));
}

#[test]
fn many_orders_are_filled_alike_on_all_threads_and_in_any_order() {
    let mut world = World::liquid();
    let mut block = Vec::new();
    for at in 0..120u64 {
        let person = 1 + (at % 10) as u8;
        let units = 5_000 + 700 * (at % 13) * (at % 7) * (at % 11);
        let bound = units + units / 50 - units * (at % 5) / 60;
        let side = if at % 3 == 0 { ExactSide::Sell } else { ExactSide::Buy };
        let (a, b) = [(USD, EUR), (EUR, USD), (JPY, EUR), (USD, JPY)][(at % 4) as usize];
        block.push(world.sign(person, exact(a, b, side, units, bound)));
        if at % 6 == 0 {
            block.push(world.sign(person, offer(b, a, units, "0.98")));
        }
    }
    let applied = world.apply(block);
    let reasons: Vec<ExactReason> = applied
        .outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Exact(exact) => Some(exact.why),
            _ => None,
        })
        .collect();
    let count = |why| reasons.iter().filter(|one| **one == why).count();
    assert_eq!(reasons.len(), 120);
    assert!(count(ExactReason::Filled) > 20 && count(ExactReason::BeyondBound) > 10, "{reasons:?}");
    assert_eq!(count(ExactReason::Filled), applied.batch.exacts.len());
}

#[test]
fn assets_without_offers_have_no_price() {
    let mut world = World::liquid();
    let outcome = world.outcome(1, exact(FAR, USD, ExactSide::Buy, UNITS, HOLDING / 2));
    assert_eq!((outcome.why, outcome.returned), (ExactReason::NoPrice, HOLDING / 2));
}

/// 32 orders that cannot fit stand before 100 small ones, with more generous bounds, and starve none of them.
#[test]
fn orders_that_cannot_fit_starve_nobody() {
    let mut world = World::liquid();
    let mut block: Vec<Transaction> = (0..32).map(|at| world.sign(30, buy((1 << 40) + at, 1 << 50))).collect();
    block.extend((0..100).map(|at| world.sign(1 + (at % 10) as u8, buy(5_000 + at, 6_000 + at))));
    let applied = world.apply(block);
    let (giants, small) = applied.outcomes[..132].split_at(32);
    assert!(giants.iter().all(|outcome| exact_outcome(*outcome).why == ExactReason::NoRoom));
    assert!(small.iter().all(|outcome| exact_outcome(*outcome).why == ExactReason::Filled));
}

/// Of two orders of which one fits, the more generous one is filled, whoever sends it; of equal ones the one with the
/// lower address.
#[test]
fn the_most_generous_order_comes_first() {
    let mut size = UNITS;
    let fits = |units: Amount| {
        let mut world = World::liquid();
        world.outcome(40, buy(units, 1 << 40)).why == ExactReason::Filled
    };
    while fits(2 * size) {
        size *= 2;
    }
    // One more of this size has no room.
    let two = |first: u8, bounds: [Amount; 2]| {
        let mut world = World::liquid();
        let second = first % 2 + 1;
        let block = vec![world.sign(first, buy(size, bounds[0])), world.sign(second, buy(size + 1, bounds[1]))];
        let applied = world.apply(block);
        [0, 1].map(|at| exact_outcome(applied.outcomes[at]).why)
    };
    let bounds = [4 * size, 3 * size];
    for first in [1, 2] {
        assert_eq!(two(first, bounds), [ExactReason::Filled, ExactReason::NoRoom], "{size} units by {first}");
        let reversed = [bounds[1], bounds[0]];
        assert_eq!(two(first, reversed), [ExactReason::NoRoom, ExactReason::Filled], "{size} units by {first}");
    }
}

/// The number of an exact order is used up, whether it was filled or not: nobody brings it back.
#[test]
fn an_exact_order_counts_once() {
    let mut world = World::liquid();
    let (filled, missed) = (world.sign(1, buy(UNITS, 3 * UNITS)), world.sign(2, buy(UNITS, UNITS / 2)));
    let applied = world.apply(vec![filled.clone(), missed.clone()]);
    assert!(applied.outcomes[..2].iter().all(|outcome| outcome.refusal().is_none()));
    let before = [1, 2].map(|person| world.balances(person));
    let again = world.apply(vec![filled, missed]);
    let refusals: Vec<_> = again.outcomes[..2].iter().map(Outcome::refusal).collect();
    assert_eq!(refusals, [Some(Refusal::SEQUENCE_USED); 2]);
    assert_eq!([1, 2].map(|person| world.balances(person)), before);
}

#[test]
fn nothing_zero_too_small_too_large_or_within_one_asset_is_accepted() {
    let mut world = World::new();
    assert_eq!(world.refusal(buy(0, 5_000)), Some(Refusal::ZERO_AMOUNT));
    assert_eq!(world.refusal(buy(5_000, 0)), Some(Refusal::ZERO_AMOUNT));
    assert_eq!(world.refusal(sell(5_000, 0)), Some(Refusal::ZERO_AMOUNT));
    assert_eq!(world.refusal(buy(4_095, 1 << 30)), Some(Refusal::EXACT_TOO_SMALL));
    assert_eq!(world.refusal(buy(1 << 63, 5_000)), Some(Refusal::AMOUNT_TOO_LARGE));
    assert_eq!(world.refusal(buy(5_000, u64::MAX)), Some(Refusal::AMOUNT_TOO_LARGE));
    assert_eq!(world.refusal(exact(USD, USD, ExactSide::Buy, 5_000, 5_000)), Some(Refusal::SAME_ASSET));
    assert_eq!(world.refusal(exact(USD, AssetId(9), ExactSide::Buy, 5_000, 5_000)), Some(Refusal::UNKNOWN_ASSET));
    assert_eq!(world.refusal(buy(5_000, HOLDING + 1)), Some(Refusal::OVERDRAFT));
    // Two that the account could pay for alone.
    let block = vec![world.sign(1, buy(5_000, HOLDING / 2)), world.sign(1, buy(5_000, HOLDING / 2 + 1))];
    let applied = world.apply(block);
    assert!(applied.outcomes.iter().all(|outcome| outcome.refusal() == Some(Refusal::OVERDRAFT)));
}

#[test]
fn a_block_of_nothing_but_exact_orders_returns_all() {
    let mut world = World::new();
    let before = world.balances(1);
    let block = vec![world.sign(1, buy(UNITS, 2 * UNITS)), world.sign(2, sell(UNITS, 1))];
    let applied = world.apply(block);
    for outcome in &applied.outcomes {
        assert_eq!(exact_outcome(*outcome).why, ExactReason::NoPrice);
    }
    assert_eq!(world.balances(1), [before[0] - FEE * EXACT_WEIGHT, before[1]]);
    assert!(applied.batch.exacts.is_empty() && applied.batch.valuations.is_empty());
}

#[test]
fn identical_orders_are_orders_each_and_no_copy_is() {
    let mut world = World::liquid();
    let one = world.sign(1, buy(UNITS / 10, UNITS));
    let two = world.sign(1, buy(UNITS / 10, UNITS));
    let before = world.balances(1);
    let block = [vec![one.clone(), one, two], world.flow()].concat();
    let block = world.block(block);
    let applied = world.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    assert_eq!(applied.outcomes.iter().filter(|o| o.refusal() == Some(Refusal::DUPLICATE)).count(), 1);
    assert_eq!((applied.batch.exacts.len(), world.balances(1)[1]), (2, before[1] + UNITS / 5));
}

#[test]
fn a_sub_block_has_a_quota_of_exact_orders() {
    let mut quota = ledger::Quota::default();
    let mut world = World::new();
    let order = world.sign(1, buy(UNITS, UNITS));
    assert!((0..EXACTS_PER_SUB_BLOCK).all(|_| quota.admits(&order, 0)));
    let payment = Operation::Pay { to: address(2), asset: EUR, amount: 1 };
    assert!(!quota.admits(&order, 0) && quota.admits(&world.sign(1, payment), 0));
}

#[test]
fn a_claim_of_an_exact_order_that_is_not_filled_so_is_refused() {
    let mut world = World::liquid();
    let (one, two) = (world.sign(1, buy(UNITS, 2 * UNITS)), world.sign(2, sell(UNITS, UNITS / 2)));
    let missed = world.sign(3, buy(UNITS, UNITS / 2));
    let block = [vec![one, two, missed], world.flow()].concat();
    let block = world.block(block);
    let truth =
        Attached::of(&world.ledger.clone().apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies").batch);
    assert_eq!(truth.exacts.len(), 2);
    let with = |change: &dyn Fn(&mut Attached)| {
        let (mut claim, mut ledger) = (truth.clone(), world.ledger.clone());
        change(&mut claim);
        let chunks = |ledger: &Ledger| Snapshot::of(ledger).collect::<Vec<_>>();
        match ledger.apply_attached(&block, &claim, Signatures::Unchecked, &mut |_| {}) {
            Err(Fault::Attached { violation, .. }) => {
                assert_eq!(chunks(&ledger), chunks(&world.ledger), "nothing has changed");
                violation
            }
            other => panic!("{other:?}"),
        }
    };
    let wrong = |of: usize| {
        let trade = &truth.exacts[of];
        AttachedViolation::Exact { account: trade.account, id: trade.id }
    };
    for at in 0..2 {
        assert_eq!(with(&|claim| claim.exacts[at].sold += 1), wrong(at));
        assert_eq!(with(&|claim| claim.exacts[at].bought -= 1), wrong(at));
        assert_eq!(with(&|claim| claim.exacts[at].pair.buy = JPY), wrong(at));
        let other = |side| if side == ExactSide::Buy { ExactSide::Sell } else { ExactSide::Buy };
        assert_eq!(with(&|claim| claim.exacts[at].side = other(claim.exacts[at].side)), wrong(at));
    }
    assert_eq!(with(&|claim| claim.exacts.push(claim.exacts[0])), wrong(0));
    assert_eq!(with(&|claim| claim.exacts.swap(0, 1)), wrong(0));
    let beyond = AttachedViolation::Exact { account: address(3), id: 1 };
    let filled = |claim: &mut Attached| (claim.exacts[0].account, claim.exacts[0].id) = (address(3), 1);
    assert_eq!(with(&filled), beyond, "its bound is too low");
    let nobody = AttachedViolation::Exact { account: address(7), id: 1 };
    assert_eq!(with(&|claim| claim.exacts[0].account = address(7)), nobody);
}

/// A price is never that of an exact order: with no offers on a side, one moves nothing.
#[test]
fn exact_orders_alone_make_no_price() {
    let mut world = World::new();
    let block = vec![
        world.sign(5, offer(USD, EUR, UNITS, "0.9")),
        world.sign(1, exact(EUR, USD, ExactSide::Buy, UNITS / 2, UNITS)),
    ];
    let applied = world.apply(block);
    assert_eq!(exact_outcome(applied.outcomes[1]).why, ExactReason::NoPrice);
    assert_eq!(world.ledger.assets()[0].valuation, None::<Price>);
}
