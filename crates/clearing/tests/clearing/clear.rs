//! Clearings of whole books: every one must verify, and be full where that is possible.

use clearing::workload::{self, cycle_book};
use clearing::{
    Amounts, Book, Clearing, Groups, InputError, Market, Offer, PairBook, Params, Reason, Report, Run, Solver,
    SortedOffers, Trade, Violation, clear, verify,
};
use kernel::Dice;
use primitives::{AssetId, Fraction, MAX_ISSUED, Price};
use proptest::prelude::*;

fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

fn offer(sell: u32, buy: u32, amount: u64, limit: &str) -> Offer {
    Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit: price(limit) }
}

fn with_epsilon(epsilon: Fraction) -> Params {
    Params { epsilon, ..Params::default() }
}

/// Clears and verifies.
fn cleared(book: &Book, params: &Params) -> Clearing {
    let clearing = clear(book, params, None).expect("a proper book");
    verify(book, params, &clearing).expect("a clearing verifies");
    clearing
}

#[test]
fn an_empty_book_clears_to_nothing() {
    let clearing = cleared(&Book { assets: 3, ..Book::default() }, &Params::default());
    assert_eq!((clearing.valuations.len(), clearing.trades.len(), clearing.full), (3, 0, true));
    let clearing = cleared(&Book::default(), &Params::default());
    assert_eq!((clearing.valuations.len(), clearing.full), (0, true));
}

#[test]
fn two_offers_meet() {
    let offers = [offer(0, 1, 1_000_000, "0.9"), offer(1, 0, 1_000_000, "0.9")];
    let sorted = SortedOffers::new(2, &offers);
    let clearing = cleared(&sorted.book(), &Params::default());
    assert!(clearing.full);
    assert_eq!(clearing.trades.len(), 2);
    let rate = clearing.valuations[0].to_f64() / clearing.valuations[1].to_f64();
    assert!((0.9..1.0 / 0.9).contains(&rate), "rate {rate}");
}

#[test]
fn offers_that_do_not_meet_rest() {
    let offers = [offer(0, 1, 1000, "1.2"), offer(1, 0, 1000, "0.9")];
    let sorted = SortedOffers::new(2, &offers);
    let clearing = cleared(&sorted.book(), &Params::default());
    assert!(clearing.full && clearing.trades.is_empty());
}

/// Nobody buys asset 3, nobody sells asset 4, asset 5 is not traded, and 6 and 7 trade separately from the others.
#[test]
fn one_sided_and_disconnected_assets_do_not_stand_in_the_way() {
    let mut offers = workload::cycles(3, 3000, 1);
    let (rate, back) = ("0.000000000001", "999999999999");
    offers.extend([offer(3, 0, 1_000_000, "5"), offer(3, 1, 1_000_000, "0.00001"), offer(0, 4, 77, rate)]);
    offers.extend([offer(2, 4, 1_000_000, back), offer(4, 4 + 1, 10, "1")]);
    offers.extend([offer(6, 7, 500_000, "1.99"), offer(7, 6, 1_000_000, "0.49")]);
    let sorted = SortedOffers::new(8, &offers);
    let clearing = cleared(&sorted.book(), &Params::default());
    assert!(clearing.full, "{:?}", clearing.report);
    let trades = |asset| clearing.trades.iter().filter(|t| t.sell == AssetId(asset)).count();
    assert_eq!((trades(3), trades(4), trades(5), trades(6), trades(7)), (0, 0, 0, 1, 1));
    let alone = SortedOffers::new(3, &workload::cycles(3, 3000, 1));
    let reference = cleared(&alone.book(), &Params::default());
    let sold = |c: &Clearing| c.trades.iter().filter(|t| t.sell.0 < 3).map(|t| t.sold).collect::<Vec<_>>();
    // Valuations differ by a common factor, and so in their last digit.
    for (a, b) in sold(&clearing).iter().zip(sold(&reference)) {
        assert!((*a as f64 / b as f64 - 1.0).abs() < 1e-6);
    }
}

#[test]
fn random_books_are_all_solved() {
    for (seed, offers) in [(1, 2_000), (2, 5_000), (3, 10_000), (4, 20_000), (5, 100_000)] {
        for epsilon in [Fraction::ZERO, Fraction::power_of_two(15), Fraction::power_of_two(11)] {
            let sorted = cycle_book(50, offers, seed);
            let clearing = cleared(&sorted.book(), &with_epsilon(epsilon));
            assert!(clearing.full, "{offers} offers, epsilon {epsilon}: {:?}", clearing.report);
            assert!(clearing.report.unrealized_utility_ratio < 0.01);
        }
    }
}

#[test]
fn tatonnement_solves_them_too() {
    let params = Params { solver: Solver::Tatonnement, ..Params::default() };
    for (seed, offers) in [(1, 5_000), (2, 50_000)] {
        let sorted = cycle_book(20, offers, seed);
        let clearing = cleared(&sorted.book(), &params);
        assert!(clearing.full, "{:?}", clearing.report);
        let ours = cleared(&sorted.book(), &Params::default());
        let ratio = |c: &Clearing, a: usize| c.valuations[a].to_f64() / c.valuations[0].to_f64();
        for asset in 1..20 {
            assert!((ratio(&clearing, asset) / ratio(&ours, asset) - 1.0).abs() < 2e-3, "asset {asset}");
        }
    }
}

/// A step changes no price by more than a factor of two: from 1 it takes at least ten of them to get there.
#[test]
fn tatonnement_starts_at_the_prices_of_the_book() {
    let offers = [offer(0, 1, 1_000, "950000"), offer(1, 0, 1_000_000_000, "0.00000095")];
    let sorted = SortedOffers::new(2, &offers);
    let clearing = cleared(&sorted.book(), &Params { solver: Solver::Tatonnement, ..Params::default() });
    assert!(clearing.full && clearing.trades.len() == 2, "{clearing:?}");
    assert!(clearing.report.iterations < 5, "{:?}", clearing.report);
}

#[test]
fn prices_far_apart_clear() {
    let mut random = Dice::new(3);
    let power = |p: i32| 10f64.powi(p);
    let values: Vec<f64> = (0..10).map(|asset| power(12 - 24 * (asset % 2)) * random.between(1.0, 9.0)).collect();
    let offers: Vec<Offer> = (0..4000)
        .map(|_| {
            let (sell, step) = (random.below(10), 1 + random.below(9));
            let buy = (sell + step) % 10;
            let rate = values[sell as usize] / values[buy as usize];
            let limit = (rate * random.between(0.98, 1.01)).clamp(1e-18, 9e17);
            // All of about the same value: from a few units to 10^14.
            let amount = (power(13) / values[sell as usize]).clamp(1.0, 1e14) as u64;
            let (sell, buy) = (AssetId(sell as u32), AssetId(buy as u32));
            Offer { sell, buy, amount, limit: Price::from_f64(limit).expect("a price") }
        })
        .collect();
    let sorted = SortedOffers::new(10, &offers);
    for epsilon in [Fraction::ZERO, Fraction::power_of_two(15)] {
        cleared(&sorted.book(), &with_epsilon(epsilon));
    }
}

#[test]
fn a_giant_offer_trades_in_part() {
    let mut offers = workload::cycles(5, 2000, 9);
    offers.push(Offer { amount: MAX_ISSUED / 2, ..offers[0] });
    let sorted = SortedOffers::new(5, &offers);
    let clearing = cleared(&sorted.book(), &Params::default());
    assert!(clearing.full, "{:?}", clearing.report);
}

#[test]
fn the_same_for_any_number_of_threads() {
    let sorted = cycle_book(30, 20_000, 7);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let solvers = [Solver::Newton, Solver::Tatonnement];
        let clear = |solver| clear(&sorted.book(), &Params { solver, ..Params::default() }, None).expect("proper");
        let results = pool.install(|| solvers.map(clear));
        results.map(|c| (c.valuations, c.trades, c.full, c.report))
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(7));
}

#[test]
fn earlier_prices_help() {
    let sorted = cycle_book(50, 20_000, 11);
    let cold = cleared(&sorted.book(), &Params::default());
    let warm = clear(&sorted.book(), &Params::default(), Some(&cold.valuations)).expect("proper");
    assert!(warm.full && warm.report.iterations <= cold.report.iterations);
}

#[test]
fn improper_input_is_refused() {
    let sorted = SortedOffers::new(2, &[offer(0, 1, 5, "1")]);
    let mut book = sorted.book();
    let band = Params { epsilon: Fraction::power_of_two(10), ..Params::default() };
    assert!(matches!(clear(&book, &band, None), Err(InputError::Band { .. })));
    assert!(matches!(clear(&book, &Params::default(), Some(&[Price::ONE])), Err(InputError::Last { .. })));
    book.assets = 1;
    assert!(matches!(clear(&book, &Params::default(), None), Err(InputError::UnknownAsset { .. })));
    book.assets = 2;
    book.pairs.push(book.pairs[0].clone());
    assert!(matches!(clear(&book, &Params::default(), None), Err(InputError::PairOrder { .. })));
    let zero = SortedOffers::new(2, &[offer(0, 1, 0, "1")]);
    assert!(matches!(clear(&zero.book(), &Params::default(), None), Err(InputError::ZeroAmount { .. })));
    let own = SortedOffers::new(2, &[offer(1, 1, 1, "1")]);
    assert!(matches!(clear(&own.book(), &Params::default(), None), Err(InputError::SameAsset(_))));
    let much = SortedOffers::new(2, &[offer(0, 1, MAX_ISSUED, "1"), offer(0, 1, 1, "1")]);
    assert!(matches!(clear(&much.book(), &Params::default(), None), Err(InputError::TooMuch(_))));
    let (limits, amounts) = ([price("2"), price("1")], [1, 1]);
    let pair = PairBook::new(AssetId(0), AssetId(1), &limits, &amounts);
    assert!(matches!(pair, Err(InputError::LimitOrder { index: 1, .. })));
    let run = |at: usize| Run::new(&limits[at..=at], &amounts[at..=at]).expect("a run");
    let pair = PairBook { sell: AssetId(0), buy: AssetId(1), runs: vec![run(0), run(1)] };
    let book = Book { assets: 2, pairs: vec![pair], ..Book::default() };
    assert!(matches!(clear(&book, &Params::default(), None), Err(InputError::LimitOrder { index: 1, .. })));
}

#[test]
fn what_is_wrong_is_found() {
    let sorted = cycle_book(5, 500, 2);
    let (book, params) = (sorted.book(), Params::default());
    let good = cleared(&book, &params);
    let check = |change: &dyn Fn(&mut Clearing)| {
        let mut bad = good.clone();
        change(&mut bad);
        verify(&book, &params, &bad).expect_err("a violation")
    };
    assert!(matches!(check(&|c| c.valuations.truncate(4)), Violation::Valuations { .. }));
    assert!(matches!(check(&|c| c.trades.swap(0, 1)), Violation::TradeOrder { .. }));
    assert!(matches!(check(&|c| c.trades[0].sold = 0), Violation::TradeOrder { .. }));
    assert!(matches!(check(&|c| c.trades[0].buy = AssetId(0)), Violation::NoOffers { .. }));
    assert!(matches!(check(&|c| c.trades[3].sold = u64::MAX), Violation::Sold { .. }));
    let dropped = check(&|c| {
        c.trades.remove(0);
    });
    assert!(matches!(dropped, Violation::Conservation { .. } | Violation::NotFull { .. }), "{dropped}");
    assert!(matches!(check(&|c| c.trades.clear()), Violation::NotFull { .. }));
    let dearer = Price::from_f64(good.valuations[2].to_f64() * 1.01).expect("a price");
    check(&|c| c.valuations[2] = dearer);
}

/// Amounts at prices that do not clear: assets are conserved, limits hold, and the short assets are named.
#[test]
fn bad_prices_drop_the_lower_bounds_and_say_so() {
    let sorted = cycle_book(10, 5_000, 5);
    let (book, params) = (sorted.book(), Params::default());
    let mut valuations = cleared(&book, &params).valuations;
    valuations[4] = Price::from_f64(valuations[4].to_f64() * 1.02).expect("a price");
    let amounts = Market::new(&book).expect("proper").amounts(&params, &valuations).expect("proper");
    assert!(!amounts.full && amounts.obstacles.iter().all(|obstacle| obstacle.reason == Reason::Units));
    let clearing = concluded(&book, &amounts, valuations);
    assert!(verify(&book, &params, &clearing).expect("conserves").executed > 1000);
    let claims = Clearing { full: true, short: Vec::new(), ..clearing };
    assert!(matches!(verify(&book, &params, &claims), Err(Violation::NotFull { .. })));
}

fn concluded(book: &Book, amounts: &Amounts, valuations: Vec<Price>) -> Clearing {
    let trades = book.pairs.iter().zip(&amounts.sold).filter(|(_, sold)| **sold > 0);
    let trades = trades.map(|(pair, sold)| Trade { sell: pair.sell, buy: pair.buy, sold: *sold }).collect();
    let report = Report { spending: amounts.spending, obstacles: amounts.obstacles.clone(), ..Report::default() };
    let short = if amounts.full { Vec::new() } else { Groups::of_book(book).lowest() };
    Clearing { valuations, trades, full: amounts.full, short, report, ..Clearing::default() }
}

fn any_price() -> impl Strategy<Value = Price> {
    let wild = (10_000_000_000_000_000u64..100_000_000_000_000_000, -18i32..18)
        .prop_map(|(m, d)| Price::from_parts(m, d).expect("in range"));
    let near = (1u64..40).prop_map(|tenths| Price::from_f64(tenths as f64 / 10.0).expect("a price"));
    prop_oneof![1 => wild, 3 => near]
}

fn any_offer(assets: u32) -> impl Strategy<Value = Offer> {
    let amount = prop_oneof![3 => 1u64..100, 3 => 1u64..1_000_000, 1 => 1u64..MAX_ISSUED / 64];
    (0..assets, 1..assets, amount, any_price()).prop_map(move |(sell, step, amount, limit)| Offer {
        sell: AssetId(sell),
        buy: AssetId((sell + step) % assets),
        amount,
        limit,
    })
}

fn any_params() -> impl Strategy<Value = Params> {
    let epsilon = prop_oneof![Just(Fraction::ZERO), (11u32..32).prop_map(Fraction::power_of_two)];
    (epsilon, 1u32..11).prop_map(|(epsilon, mu)| Params {
        epsilon,
        mu: Fraction::power_of_two(mu),
        ..Params::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Conservation and limit prices hold at arbitrary prices.
    #[test]
    fn garbage_prices_conserve(
        offers in prop::collection::vec(any_offer(5), 1..60),
        valuations in prop::collection::vec(any_price(), 5),
        params in any_params(),
    ) {
        let sorted = SortedOffers::new(5, &offers);
        let book = sorted.book();
        let amounts = Market::new(&book).unwrap().amounts(&params, &valuations).unwrap();
        let clearing = concluded(&book, &amounts, valuations);
        let verified = verify(&book, &params, &clearing);
        prop_assert!(verified.is_ok(), "{:?}", verified);
    }

    /// The result does not depend on how the offers of a pair are cut into runs.
    #[test]
    fn cuts_change_nothing(
        offers in prop::collection::vec(any_offer(3), 1..80),
        cycles in 0usize..600,
        longest in 1u64..200,
        seed: u64,
        params in any_params(),
        solver in prop_oneof![Just(Solver::Newton), Just(Solver::Tatonnement)],
    ) {
        let all: Vec<Offer> = offers.into_iter().chain(workload::cycles(3, cycles, seed)).collect();
        let sorted = SortedOffers::new(3, &all);
        let (book, params) = (sorted.book(), Params { solver, ..params });
        let (limits, amounts): (Vec<Vec<Price>>, Vec<Vec<u64>>) =
            book.pairs.iter().map(|pair| pair.offers().unzip()).unzip();
        let mut random = Dice::new(seed);
        let mut cut = |pair: usize| {
            let (mut limits, mut amounts, mut runs) = (&limits[pair][..], &amounts[pair][..], Vec::new());
            while !limits.is_empty() {
                let length = (1 + random.below(longest) as usize).min(limits.len());
                runs.push(Run::new(&limits[..length], &amounts[..length]).expect("a run"));
                (limits, amounts) = (&limits[length..], &amounts[length..]);
            }
            PairBook { sell: book.pairs[pair].sell, buy: book.pairs[pair].buy, runs }
        };
        let other = Book { assets: 3, pairs: (0..book.pairs.len()).map(&mut cut).collect(), ..Book::default() };
        let (one, two) = (clear(&book, &params, None).unwrap(), clear(&other, &params, None).unwrap());
        prop_assert_eq!(&one.valuations, &two.valuations);
        prop_assert_eq!(&one.trades, &two.trades);
        prop_assert_eq!((one.full, &one.report), (two.full, &two.report));
        prop_assert_eq!(verify(&book, &params, &one), verify(&other, &params, &two));
    }

    #[test]
    fn any_book_clears(offers in prop::collection::vec(any_offer(4), 0..40), params in any_params()) {
        let sorted = SortedOffers::new(4, &offers);
        let book = sorted.book();
        let clearing = clear(&book, &params, None).unwrap();
        let verified = verify(&book, &params, &clearing);
        prop_assert!(verified.is_ok(), "{:?}", verified);
        // An offer that asks for an asset that nobody sells cannot trade.
        for trade in &clearing.trades {
            prop_assert!(book.pairs.iter().any(|pair| pair.sell == trade.buy));
        }
    }
}
