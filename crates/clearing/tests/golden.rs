//! Known clearings: the bytes of a clearing depend only on the book, on any machine and in any build. `make test`
//! runs this in debug and in release. A change of these values requires a higher [`clearing::RULES`].

use clearing::workload::{self, hostile, thin};
use clearing::{Book, Budget, Clearing, ExactOrder, Offer, Params, Pool, Solver, SortedOffers, clear};
use kernel::Dice;
use primitives::{AssetId, Fraction, Price};

/// FNV-1a of every number of a clearing.
fn digest(clearing: &Clearing) -> u64 {
    let valuations = clearing.valuations.iter().map(|value| value.to_bits());
    let trades = clearing.trades.iter().flat_map(|t| [u64::from(t.sell.0), u64::from(t.buy.0), t.sold]);
    let pools = clearing.pools.iter().flat_map(|t| [u64::from(t.pool), u64::from(t.sell.0), t.sold, t.bought]);
    let buys = clearing.exacts.iter().flat_map(|fill| [u64::from(fill.order), fill.other]);
    let report = [
        u64::from(clearing.full),
        u64::from(clearing.report.iterations),
        u64::from(clearing.report.demand_queries),
        clearing.report.imbalance.to_bits(),
        clearing.report.unrealized_utility_ratio.to_bits(),
    ];
    let numbers = valuations.chain(trades).chain(pools).chain(buys).chain(report);
    numbers
        .flat_map(u64::to_be_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[test]
fn clearings_are_as_they_were() {
    let mut got = String::from("# solver assets offers epsilon: FNV-1a of the clearing\n");
    for (assets, offers) in [(2, 20), (10, 100), (20, 2_000), (50, 5_000), (50, 60_000)] {
        for epsilon in [Fraction::ZERO, Fraction::power_of_two(15)] {
            for solver in [Solver::Newton, Solver::Tatonnement] {
                let sorted = workload::cycle_book(assets, offers, 1);
                let params = Params { solver, epsilon, ..Params::default() };
                let clearing = clear(&sorted.book(), &params, None).expect("a proper book");
                let digest = digest(&clearing);
                got += &format!("{} {assets} {offers} {epsilon}: {digest:016x}\n", solver.name());
            }
        }
    }
    for (name, digest) in others() {
        got += &format!("{name}: {digest:016x}\n");
    }
    let known = include_str!("golden/clearings.txt");
    assert!(got == known, "clearings changed; if that is meant, tests/golden/clearings.txt is now:\n{got}");
}

/// The digest of a clearing, which must be the same on 1, 2 and 7 threads.
fn on_any_threads(book: &Book, last: Option<&[Price]>) -> (u64, Clearing) {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| clear(book, &Params::default(), last)).expect("a proper book")
    };
    let one = run(1);
    assert!([2, 7].iter().all(|threads| digest(&run(*threads)) == digest(&one)));
    (digest(&one), one)
}

/// Books that exercise the other paths of the solver.
fn others() -> Vec<(String, u64)> {
    let mut result = Vec::new();
    for seed in 0..8 {
        result.push((format!("newton hard {seed}"), on_any_threads(&workload::hard(5_000, seed).book(), None).0));
    }
    // The interior-point method, the last in vain.
    for (seed, most) in [(3, 2_000), (4, 2_000), (5, 2_000), (6, 2_000), (8, 2_000), (1108, 10_000)] {
        let (digest, clearing) = on_any_threads(&thin::thin(seed, most).sorted().book(), None);
        assert!(clearing.full == (seed != 1108), "{seed}");
        result.push((format!("thin {seed}"), digest));
    }
    // The budget runs out, in one step or the other.
    for budget in [Budget { prices: 800, ..Budget::default() }, Budget { amounts: 1, ..Budget::default() }] {
        let params = Params { budget, ..Params::default() };
        let clearing = clear(&workload::hard(5_000, 6).book(), &params, None).expect("a proper book");
        result.push((format!("newton {budget:?}"), digest(&clearing)));
    }
    for seed in 0..6 {
        let book = hostile::hostile(seed, 40, 400);
        result.push((format!("newton hostile {seed}"), on_any_threads(&book.sorted().book(), None).0));
    }
    let sorted = workload::cycle_book(20, 2_000, 1);
    let (cold, clearing) = on_any_threads(&sorted.book(), None);
    let (warm, _) = on_any_threads(&sorted.book(), Some(&clearing.valuations));
    result.extend([("newton cold".into(), cold), ("newton warm".into(), warm)]);
    let book = with_pools(&sorted);
    result.push(("newton pools and buy orders".into(), on_any_threads(&book, None).0));
    result.push(("newton mesh of 450".into(), on_any_threads(&mesh(450).book(), None).0));
    result
}

fn with_pools(sorted: &SortedOffers) -> Book<'_> {
    let mut random = Dice::new(3);
    let mut reserve = || 1_000_000 + random.below(1 << 34);
    let pool = |a: u32| {
        let (reserve_a, reserve_b) = (reserve(), reserve());
        Pool { a: AssetId(a), b: AssetId((a + 7) % 20), reserve_a, reserve_b, fee: Fraction::power_of_two(9) }
    };
    let buy = |a: u32| ExactOrder::buy(AssetId(a), 10_000 << a, AssetId((a + 3) % 20), 1 << 40);
    Book { pools: (0..20).map(pool).collect(), exacts: (0..20).map(buy).collect(), ..sorted.book() }
}

/// A market too large for elimination.
fn mesh(assets: u32) -> SortedOffers {
    let mut random = Dice::new(4);
    let values: Vec<f64> = (0..assets).map(|_| random.between(1.0, 1000.0)).collect();
    let draw = |at: u32| {
        let (sell, step) = (at % assets, 1 + random.below(5) as u32 * 37);
        let (sell, buy) =
            if at.is_multiple_of(3) { ((sell + step) % assets, sell) } else { (sell, (sell + step) % assets) };
        let rate = values[sell as usize] / values[buy as usize] * (1.0 - random.between(-0.01, 0.02));
        let amount = (random.between(1e7, 1e9) / values[sell as usize]) as u64;
        let limit = Price::from_f64(rate).expect("near a ratio of valuations");
        Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit }
    };
    let offers: Vec<Offer> = (0..30_000).map(draw).collect();
    SortedOffers::new(assets, &offers)
}
