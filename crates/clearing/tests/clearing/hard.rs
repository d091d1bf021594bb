//! Hard books: power-law volumes, amounts of few units, prices far apart, one-sided assets, giant offers.

use clearing::workload;
use clearing::{Clearing, Offer, Params, Rate, SortedOffers, Spending, clear, verify};
use primitives::{AssetId, Fraction, Price};

#[test]
fn hard_books_are_full() {
    let (mut full, books) = (0, 60);
    for seed in 0..books {
        let sorted = workload::hard(20_000, seed);
        let book = sorted.book();
        let clearing = clear(&book, &Params::default(), None).expect("a proper book");
        verify(&book, &Params::default(), &clearing).expect("verifies");
        assert_eq!(clearing.full, clearing.report.obstacles.is_empty());
        full += usize::from(clearing.full);
    }
    // For about one book in two hundred, no prices are found that whole units can follow.
    assert!(full + 1 >= books as usize, "{full} of {books}");
}

/// A band of 3·2^-20 is narrower than the grain in which offers far from the margin are added up.
#[test]
fn the_narrowest_band_is_full() {
    let (epsilon, mu) = (Fraction::power_of_two(20), Fraction::power_of_two(18));
    let mut offers = workload::cycles(50, 6_400, 0);
    offers.iter_mut().for_each(|offer| offer.amount *= 1_000);
    let sorted = SortedOffers::new(50, &offers);
    let params = Params { epsilon, mu, ..Params::default() };
    let clearing = clear(&sorted.book(), &params, None).expect("a proper book");
    verify(&sorted.book(), &params, &clearing).expect("it verifies");
    assert!(clearing.full, "{:?}", clearing.report);
}

/// Books of few units, or of dear units, in which amounts at the first prices leave some asset short. They all have a
/// full clearing: a search for whole units finds it.
#[test]
fn whole_units_are_found_where_they_are_rare() {
    for seed in [11, 94, 151, 289, 313, 526, 579, 595, 670, 699, 711, 944] {
        let sorted = workload::hard_of_any_size(seed);
        let book = sorted.book();
        let clearing = clear(&book, &Params::default(), None).expect("a proper book");
        verify(&book, &Params::default(), &clearing).expect("verifies");
        assert!(clearing.full, "seed {seed}: {:?}", clearing.report);
    }
}

/// An offer 10^12 times as large as the others does not prevent the search from pricing those.
#[test]
fn a_giant_offer_hides_no_other() {
    let sorted = workload::hard(100_000, 331);
    let book = sorted.book();
    let clearing = clear(&book, &Params::default(), None).expect("a proper book");
    verify(&book, &Params::default(), &clearing).expect("verifies");
    assert!(clearing.full && clearing.report.iterations < 500, "{:?}", clearing.report);
}

/// A thousand units of a cheap asset are worth about one of a dear one. By bare limits, nothing could be full here:
/// at any price either all sellers are paid nothing, or all must fill.
#[test]
fn offers_of_one_unit_of_pay_out_do_not_stand_in_the_way() {
    let (cheap, dear) = (AssetId(0), AssetId(1));
    let limit = |thousandths: f64| Price::from_f64(thousandths / 1000.0).expect("a price");
    let seller = |at: u64| Offer { sell: cheap, buy: dear, amount: 1000 + at, limit: limit(0.9 + 0.001 * at as f64) };
    let buyer = |at: u64| Offer {
        sell: dear,
        buy: cheap,
        amount: 1,
        limit: Price::from_f64(950.0 + at as f64).expect("a price"),
    };
    let offers: Vec<Offer> = (0..60).map(seller).chain((0..40).map(buyer)).collect();
    let sorted = SortedOffers::new(2, &offers);
    let (book, params) = (sorted.book(), Params::default());
    let clearing = clear(&book, &params, None).expect("a proper book");
    let verified = verify(&book, &params, &clearing).expect("verifies");
    assert!(clearing.full, "{:?}", clearing.report);
    assert!(verified.executed >= 60, "{}", verified.executed);
    let rate = Rate::new(clearing.valuations[0], clearing.valuations[1], params.epsilon, params.mu);
    // Every fill pays one whole unit.
    let fills = verified.fills[0].each(&book.pairs[0], &rate);
    assert!(fills.map(|fill| fill.2).all(|bought| bought == 1));
}

fn cleared(assets: u32, offers: &[Offer]) -> Clearing {
    let sorted = SortedOffers::new(assets, offers);
    let clearing = clear(&sorted.book(), &Params::default(), None).expect("a proper book");
    verify(&sorted.book(), &Params::default(), &clearing).expect("verifies");
    clearing
}

/// Every market that is not full has its own budget, so that the cost of many grows with their number.
#[test]
fn many_markets_that_are_not_full_cost_as_many_times_one() {
    const MARKETS: u32 = 300;
    let clearing = cleared(3 * MARKETS, &workload::of_few_units(MARKETS, 3, 12, 1));
    let Spending { tries, price_looks, amount_looks, .. } = clearing.report.spending;
    // At most 3 assets and 6 pairs each.
    assert!(!clearing.full && tries < 41 * MARKETS, "{tries} tries");
    assert!(price_looks + amount_looks < u64::from(MARKETS) * 40_000, "{price_looks} and {amount_looks} looks");
}

/// A small market that is not full does not affect a large one in the same book.
#[test]
fn a_market_that_is_not_full_is_alone_in_it() {
    let few = workload::of_few_units(1, 10, 60, 1);
    let by = |asset: AssetId| AssetId(asset.0 + 10);
    let many = workload::cycles(20, 5_000, 1);
    let moved = many.iter().map(|o| Offer { sell: by(o.sell), buy: by(o.buy), ..*o });
    let together = cleared(30, &[few.clone(), moved.collect()].concat());
    let (few, many) = (cleared(10, &few), cleared(20, &many));
    assert!(many.full && !few.full);
    assert!(together.report.obstacles.iter().flat_map(|obstacle| &obstacle.assets).all(|asset| asset.0 < 10));
    let trades = |clearing: &Clearing, from: u32| -> Vec<_> {
        let own = clearing.trades.iter().filter(|trade| trade.sell.0 >= from);
        own.map(|trade| (trade.sell.0 - from, trade.buy.0 - from, trade.sold)).collect()
    };
    assert_eq!(trades(&together, 10), trades(&many, 0));
    let [together, few, many] = [together, few, many].map(|clearing| clearing.report.spending);
    assert_eq!(together.augmentations, few.augmentations + many.augmentations);
}
