//! Thin books, as of every asset that is new. Each has a full clearing wherever whole units permit it, and every
//! clearing is checked against an oracle that shares no code with the crate.

use crate::exact;
use std::collections::BTreeMap;

use clearing::workload::thin::{self, Pattern, Thin};
use clearing::workload::{self};
use clearing::{Book, Clearing, Offer, Params, Reason, SortedOffers, clear};
use kernel::Dice;
use primitives::{AssetId, Price};

fn offer(sell: u32, buy: u32, amount: u64, limit: &str) -> Offer {
    Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit: limit.parse().expect("a price") }
}

/// Clears from `last`, and checks the clearing against the oracle.
fn cleared_from(book: &Book, last: Option<&[Price]>) -> Clearing {
    let params = Params::default();
    let clearing = clear(book, &params, last).expect("a proper book");
    let fills = exact::fills_of(book, &params, &clearing).expect("it verifies");
    exact::check(book, &params, &clearing.valuations, &fills, clearing.full).expect("the oracle agrees");
    assert_eq!(clearing.full, clearing.report.obstacles.is_empty());
    clearing
}

fn cleared(assets: u32, offers: &[Offer]) -> Clearing {
    cleared_from(&SortedOffers::new(assets, offers).book(), None)
}

/// Nothing can trade here: the clearing is full if no offer is beyond the band, which took prices far apart.
#[test]
fn a_book_in_which_nothing_can_trade_is_full() {
    let [a, b, c, d, e] = [0, 1, 2, 3, 4];
    let offers = [
        offer(c, a, 50_000_000_000_000, "400"),
        offer(b, d, 10_000_000_000_000_000, "1"),
        offer(a, d, 5_000_000_000_000_000, "2"),
        offer(d, b, 10_000_000_000_000_000, "1"),
        offer(a, e, 1_000_000_000_000_000, "0.01"),
        offer(e, c, 6_000_000_000_000, "1"),
        offer(b, c, 5_000_000_000_000_000, "0.02"),
        offer(c, b, 100_000_000_000, "50"),
    ];
    let clearing = cleared(5, &offers);
    assert!(clearing.full, "{:?}", clearing.report);
}

/// Two offers sell into one that is two per cent from the rate: it trades in full.
#[test]
fn three_offers_are_full() {
    let offers = [offer(0, 1, 4_096, "1.0001"), offer(0, 1, 1_000_000, "1.0002"), offer(1, 0, 5_000, "0.99")];
    let clearing = cleared(2, &offers);
    assert!(clearing.full, "{:?}", clearing.report);
    let sold = clearing.trades.iter().find(|trade| trade.sell == AssetId(1)).map(|trade| trade.sold);
    assert_eq!(sold, Some(5_000));
}

/// An offer for which nobody sells its own asset has no price, and changes no measure of the others.
#[test]
fn an_offer_without_a_way_back_does_not_count() {
    let two = [offer(1, 0, 1_000_000_000_000_000, "1"), offer(0, 1, 1_000_000_000_000_000, "0.25")];
    let third = offer(2, 0, 1_000_000_000_000_000, "0.5");
    let (without, with) = (cleared(2, &two), cleared(3, &[two[0], two[1], third]));
    assert_eq!(without.report.unrealized_utility_ratio, with.report.unrealized_utility_ratio);
    let sorted = SortedOffers::new(3, &[two[0], two[1], third]);
    let prices = with.prices(&sorted.book());
    assert!(prices[0].is_some() && prices[1].is_some() && prices[2].is_none());
}

/// The books of one size that are not full, by reason.
fn obstacles(books: impl Iterator<Item = Thin>) -> BTreeMap<&'static str, u32> {
    let mut reasons = BTreeMap::new();
    for book in books {
        let clearing = cleared(book.assets, &book.offers);
        for obstacle in &clearing.report.obstacles {
            *reasons.entry(obstacle.reason.name()).or_default() += 1;
        }
    }
    reasons
}

/// Meshes within 5 % of fair prices: of the smallest about 1 in 80 was not full by Newton's method alone, of the
/// largest more than half.
#[test]
fn thin_meshes_are_full() {
    for (assets, offers, books) in [(10, 40, 150), (10, 100, 100), (20, 100, 60), (50, 300, 8)] {
        let book = |seed| thin::of_kind(Pattern::Mesh, assets, offers, 0.05, &mut Dice::new(seed));
        assert_eq!(obstacles((0..books).map(book)), BTreeMap::new(), "{assets} assets, {offers} offers");
    }
}

/// Trees, cycles, hubs and clusters of any size and spread: only whole units are in the way, of about one in a
/// thousand.
#[test]
fn thin_books_of_all_patterns_are_full_wherever_whole_units_permit() {
    let reasons = obstacles((0..300).map(|seed| thin::thin(seed, 1_000)));
    assert!(reasons.keys().all(|reason| *reason == Reason::Units.name()), "{reasons:?}");
    assert!(reasons.values().sum::<u32>() <= 2, "{reasons:?}");
}

/// A book that is full without earlier prices is full with them, be they good, stale or nonsense.
#[test]
fn what_is_full_cold_is_full_warm() {
    for seed in 0..60 {
        let book = if seed % 2 == 0 { thin::thin(seed, 400).sorted() } else { workload::cycle_book(10, 600, seed) };
        let cold = cleared_from(&book.book(), None);
        let mut random = Dice::new(seed);
        let shifted = |width: f64, random: &mut Dice| -> Vec<Price> {
            let price = |price: &Price| Price::from_f64(price.to_f64() * random.between(1.0, 1.0 + width));
            cold.valuations.iter().map(price).collect::<Option<_>>().expect("near a price")
        };
        let nonsense = cold.valuations.iter().map(|_| if random.unit() < 0.5 { Price::ONE } else { Price::MAX });
        let nonsense: Vec<Price> = nonsense.collect();
        for last in [cold.valuations.clone(), shifted(0.01, &mut random), shifted(9.0, &mut random), nonsense] {
            let warm = cleared_from(&book.book(), Some(&last));
            assert!(warm.full || !cold.full, "seed {seed}: {:?}", warm.report);
        }
    }
}

/// A few offers of some units each, which no whole units clear, share an asset with a liquid market: they are cleared
/// alone, and cost the others no trade.
#[test]
fn illiquid_assets_cost_liquid_ones_no_trade() {
    let liquid = workload::cycles(8, 400, 5);
    let alone = cleared(8, &liquid);
    assert!(alone.full);
    let sold = |clearing: &Clearing| -> Vec<_> {
        let liquid = clearing.trades.iter().filter(|trade| trade.sell.0 < 8 && trade.buy.0 < 8);
        liquid.map(|trade| (trade.sell, trade.buy, trade.sold)).collect()
    };
    let mut not_full = 0;
    for seed in 0..60 {
        // Of the three assets of the few, the first is one of the liquid ones.
        let moved = |asset: AssetId| if asset.0 == 0 { asset } else { AssetId(asset.0 + 7) };
        let few = workload::of_few_units(1, 3, 12, seed);
        let few = few.iter().map(|o| Offer { sell: moved(o.sell), buy: moved(o.buy), ..*o });
        let together = cleared(10, &liquid.iter().copied().chain(few).collect::<Vec<_>>());
        if together.full {
            continue;
        }
        not_full += 1;
        let named = together.report.obstacles.iter().flat_map(|obstacle| &obstacle.assets);
        assert!(named.clone().all(|asset| asset.0 == 0 || asset.0 >= 8), "seed {seed}");
        assert_eq!(sold(&alone), sold(&together), "seed {seed}");
    }
    assert!(not_full >= 5, "{not_full}");
}
