//! Bounds that no chain of a test reaches by operations, and states that no chain reaches.

use primitives::Price;

use super::*;

fn key(a: u32) -> PoolKey {
    PoolKey { a: AssetId(a), b: AssetId(a + 1), class: 0 }
}

fn record(shares: u64) -> PoolRecord {
    PoolRecord { a: 1_000, b: 2_000, shares }
}

/// So many pools that all have left.
fn many(count: usize) -> Pools {
    let mut pools = Pools::new(PoolTerms::default());
    pools.pools = (0..count as u32).map(|at| (key(at), record(SHARES_OF_NOBODY))).collect();
    pools
}

#[test]
fn of_new_pools_the_lowest_are_opened_as_far_as_there_is_room() {
    let mut pools = many(POOLS_MAX - 2);
    let opens = [9_000, 5_000, 7_000].map(|a| PoolOperation::Open { pool: key(a), x: 100, y: 200 });
    let sender = |at: usize| Address([at as u8 + 1; 20]);
    let edits: Vec<(Address, PoolEdit)> = opens
        .iter()
        .enumerate()
        .map(|(at, operation)| (sender(at), PoolEdit { sequence: at as u64 + 1, operation }))
        .collect();
    let turn = pools.turn(&edits, u32::MAX);
    let told: Vec<bool> = (0..3).map(|at| turn.outcome((sender(at), at as u64 + 1)).is_some()).collect();
    assert_eq!(told, [false, true, true]);
    let (credits, held, _) = pools.commit(turn);
    let credits: Vec<_> = credits.iter().map(|credit| (credit.to, credit.asset, credit.amount)).collect();
    assert_eq!(credits, [(sender(0), AssetId(9_000), 100), (sender(0), AssetId(9_001), 200)]);
    assert_eq!((held.get(5_000), held.get(5_001), held.get(9_000)), (100, 200, 0));
    assert_eq!((pools.pools.len(), pools.check(&opens[0])), (POOLS_MAX, Err(Refusal::TOO_MANY_POOLS)));
    assert_eq!(pools.fault(20_000), None);
}

#[test]
fn shares_end_at_their_cap() {
    let mut pools = many(1);
    pools.pools.insert(key(0), record(SHARES_MAX - 5));
    assert_eq!((pools.room(&key(0)), pools.room(&key(1))), (5, 0));
    let provide =
        |shares| PoolOperation::Provide { pool: key(0), shares, most_a: u64::MAX >> 1, most_b: u64::MAX >> 1 };
    assert_eq!(pools.check(&provide(5)), Ok(()));
    assert_eq!(pool_cost(&record(SHARES_OF_NOBODY), u64::MAX), Some((1_000 << 48, 2_000 << 48)));
    assert_eq!(pool_cost(&PoolRecord { a: u64::MAX >> 1, ..record(SHARES_OF_NOBODY) }, u64::MAX), None);
}

#[test]
fn a_state_whose_shares_do_not_add_up_is_refused() {
    let sound = || {
        let mut pools = many(3);
        pools.pools.insert(key(1), record(SHARES_OF_NOBODY + 7));
        pools.set_holding((key(1), Address([1; 20])), 3);
        pools.set_holding((key(1), Address([2; 20])), 4);
        pools
    };
    assert_eq!(sound().fault(10), None);
    let with = |change: &dyn Fn(&mut Pools)| {
        let mut pools = sound();
        change(&mut pools);
        pools.fault(10)
    };
    let changes: [&dyn Fn(&mut Pools); 11] = [
        &|pools| _ = pools.pools_of.remove(&(Address([2; 20]), key(1))),
        &|pools| _ = pools.holdings.insert((key(1), Address([2; 20])), 5),
        &|pools| _ = pools.holdings.remove(&(key(1), Address([2; 20]))),
        &|pools| _ = pools.holdings.insert((key(0), Address([2; 20])), 0),
        &|pools| pools.set_holding((key(8), Address([2; 20])), 1),
        &|pools| _ = pools.pools.insert(key(2), record(SHARES_OF_NOBODY - 1)),
        &|pools| _ = pools.pools.insert(key(2), PoolRecord { a: 0, ..record(SHARES_OF_NOBODY) }),
        &|pools| _ = pools.pools.insert(key(9), record(SHARES_OF_NOBODY)),
        &|pools| _ = pools.pools.insert(PoolKey { class: 2, ..key(2) }, record(SHARES_OF_NOBODY)),
        &|pools| _ = pools.pools.insert(PoolKey { b: AssetId(2), ..key(2) }, record(SHARES_OF_NOBODY)),
        &|pools| pools.terms.fees.clear(),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        assert!(with(change).is_some(), "change {at}");
    }
}

/// The pools as many as there may be, beside a market, are cleared in full or say why not, and conserve.
#[test]
fn the_most_pools_there_may_be_are_cleared() {
    let pools: Vec<clearing::Pool> = (0..POOLS_MAX as u32)
        .map(|at| {
            let (a, b) = (at % 64, (at % 64 + 1 + at / 64 % 63) % 64);
            let reserve = 1_000_000 + u64::from(at.wrapping_mul(2_654_435_761) % 200_000);
            let (a, b, fee) = (AssetId(a.min(b)), AssetId(a.max(b)), primitives::Fraction::power_of_two(8));
            clearing::Pool { a, b, reserve_a: 1_000_000, reserve_b: reserve, fee }
        })
        .collect();
    let book = clearing::Book { assets: 64, pools, ..clearing::Book::default() };
    let last = vec![Price::ONE; 64];
    let cleared = clearing::clear(&book, &clearing::Params::default(), Some(&last)).expect("a proper book");
    clearing::verify(&book, &clearing::Params::default(), &cleared).expect("conserves");
    assert!(cleared.pools.len() > 100, "{}", cleared.pools.len());
}

/// Junk costs nothing but the fee: pools with assets that were listed after the genesis leave half of all places,
/// though pools of a plain asset with junk come before those of two plain ones.
#[test]
fn pools_with_listed_assets_leave_half_of_the_places() {
    let mut pools = Pools::new(PoolTerms::default());
    let (founded, junk) = (5, |b: u32| PoolKey { a: AssetId(0), b: AssetId(b), class: 0 });
    let taken = (0..LISTED_POOLS_MAX as u32 - 1).map(|at| (junk(1_000 + at), record(SHARES_OF_NOBODY)));
    pools.pools = taken.collect();
    let keys = [junk(10), junk(11), PoolKey { a: AssetId(3), b: AssetId(4), class: 0 }];
    let opens = keys.map(|pool| PoolOperation::Open { pool, x: 100, y: 200 });
    let edits: Vec<(Address, PoolEdit)> =
        opens.iter().map(|operation| (Address([1; 20]), PoolEdit { sequence: 1, operation })).collect();
    let turn = pools.turn(&edits, founded);
    let (_, held, _) = pools.commit(turn);
    let opened = keys.map(|key| pools.get(&key).is_some());
    assert_eq!((opened, held.get(10), held.get(11)), ([true, false, true], 200, 0));
    assert_eq!(pools.pools.keys().filter(|key| key.b.0 >= founded).count(), LISTED_POOLS_MAX);
}
