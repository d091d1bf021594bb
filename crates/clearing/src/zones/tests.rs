//! No book that has a full clearing may be said to have none.

use primitives::{Amount, AssetId, Fraction, Price};
use proptest::prelude::*;

use std::rc::Rc;

use super::circulation::Side;
use super::divide::Cut;
use super::lane::{Band, Flow, Lane, Terms};
use super::pieces::most_left;
use super::{Case, Node, Search, trading_with};
use crate::workload::{hard, hard_of_any_size};
use crate::{Book, Clearing, Offer, PairBook, Params, Rate, Solver, SortedOffers, Trade, clear, fills, verify};

fn params(epsilon: u32, mu: u32) -> Params {
    let power = Fraction::power_of_two;
    Params { epsilon: power(epsilon), mu: power(mu), solver: Solver::Newton }
}

/// Whether some amounts at `valuations` are a full clearing: all that fills can give are tried, and checked.
fn is_full_somehow(book: &Book, params: &Params, valuations: &[Price]) -> bool {
    let value = |asset: AssetId| valuations[asset.0 as usize];
    let choices: Vec<Vec<Amount>> = (book.pairs.iter())
        .map(|pair| {
            let rate = Rate::new(value(pair.sell), value(pair.buy), params.epsilon, params.mu);
            let must = pair.offers().filter(|offer| rate.must_fill(offer.0, offer.1)).map(|offer| offer.1).sum();
            let total = pair.offers().map(|offer| offer.1).sum();
            let mut sold: Vec<Amount> = (must..=total).map(|target| fills(pair, &rate, target).sold).collect();
            sold.dedup();
            sold
        })
        .collect();
    let mut at = vec![0; choices.len()];
    loop {
        let sold = choices.iter().zip(&at).map(|(choices, at)| choices[*at]);
        let trades = book.pairs.iter().zip(sold).filter(|(_, sold)| *sold > 0);
        let trades = trades.map(|(pair, sold)| Trade { sell: pair.sell, buy: pair.buy, sold }).collect();
        let clearing = Clearing { valuations: valuations.to_vec(), trades, full: true, ..Clearing::default() };
        if verify(book, params, &clearing).is_ok() {
            return true;
        }
        let Some(next) = (0..at.len()).find(|pair| at[*pair] + 1 < choices[*pair].len()) else { return false };
        at[next] += 1;
        at[..next].fill(0);
    }
}

/// Rates of which one lies in each range of rates that pay the same whole units and ask the same offers.
fn rates(book: &Book, params: &Params) -> Vec<f64> {
    let mut ends = Vec::new();
    for pair in &book.pairs {
        let forth = pair.sell < pair.buy;
        for (limit, amount) in pair.offers() {
            let most = (amount as f64 * limit.to_f64() * 1.5) as u64 + 2;
            for (sold, bought) in (1..=amount).flat_map(|sold| (1..=most).map(move |bought| (sold, bought))) {
                let rate = bought as f64 / sold as f64;
                for share in [params.epsilon, params.mu] {
                    ends.push(if forth { rate / (1.0 - share.to_f64()) } else { (1.0 - share.to_f64()) / rate });
                }
            }
            for share in [params.epsilon, params.mu] {
                let rate = limit.to_f64() / (1.0 - share.to_f64());
                ends.push(if forth { rate } else { 1.0 / rate });
            }
        }
    }
    ends.sort_by(f64::total_cmp);
    ends.dedup_by(|a, b| *a / *b < 1.0 + 1e-12);
    let between = ends.windows(2).map(|ends| (ends[0] * ends[1]).sqrt());
    let beyond = [ends[0] / 2.0, ends[ends.len() - 1] * 2.0];
    between.chain(beyond).collect()
}

fn offers(assets: u32, most: usize) -> impl Strategy<Value = Vec<Offer>> {
    let offer = (0..assets, 1..assets, 1u64..9, 1u32..30, prop::sample::select(vec![5u32, 7, 10, 12])).prop_map(
        move |(sell, step, amount, number, of)| Offer {
            sell: AssetId(sell),
            buy: AssetId((sell + step) % assets),
            amount,
            limit: Price::from_f64(f64::from(number) / f64::from(of)).expect("a price"),
        },
    );
    prop::collection::vec(offer, 2..=most)
}

/// Whether a search, quick or thorough, from prices and trades that may be any, shows that `book` has no full clearing.
fn is_ruled_out(book: &Book, params: &Params, valuations: &[Price], trades: &[Trade]) -> bool {
    let short: Vec<AssetId> = (0..book.assets).map(AssetId).collect();
    let case = Case { book, params, valuations, trades, short: &short };
    trading_with(book, &short).iter().any(|assets| {
        [false, true].into_iter().any(|thorough| {
            let mut search = Search::new(&case, assets, thorough);
            search.left = 3_000;
            search.is_exhausted()
        })
    })
}

/// Whether two assets have a full clearing at one of all rates that differ.
fn two_can_be_full(book: &Book, params: &Params) -> bool {
    let at = |rate: &f64| [Price::from_f64(*rate).expect("a price"), Price::ONE];
    rates(book, params).iter().any(|rate| is_full_somehow(book, params, &at(rate)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn two_assets_are_never_given_up_wrongly(offers in offers(2, 6), epsilon in 4u32..8, band in 1u32..4) {
        let (sorted, params) = (SortedOffers::new(2, &offers), params(epsilon, epsilon - band));
        let book = sorted.book();
        let is_ruled_out = is_ruled_out(&book, &params, &[Price::ONE; 2], &[]);
        prop_assert!(!is_ruled_out || !two_can_be_full(&book, &params));
    }

    #[test]
    fn full_clearings_are_never_given_up(
        offers in offers(4, 12), epsilon in 4u32..16, band in 1u32..4, off in prop::array::uniform4(0.7f64..1.4),
    ) {
        let (sorted, params) = (SortedOffers::new(4, &offers), params(epsilon, epsilon - band));
        let book = sorted.book();
        let clearing = clear(&book, &params, None).expect("a proper book");
        let moved = clearing.valuations.iter().zip(off).map(|(value, off)| Price::from_f64(value.to_f64() * off));
        let moved: Vec<Price> = moved.map(|price| price.expect("a price")).collect();
        for (valuations, trades) in [(&clearing.valuations, &clearing.trades), (&moved, &clearing.trades), (&moved, &vec![])] {
            prop_assert!(!clearing.full || !is_ruled_out(&book, &params, valuations, trades));
        }
    }
}

/// Offers of one pair, of a few units or many, sorted by limits around `scale`.
fn pair() -> impl Strategy<Value = (Vec<Price>, Vec<Amount>, f64)> {
    let offer = (85u32..115, prop_oneof![1u64..40, 900u64..1100, 1_000_000u64..100_000_000]);
    let scale = prop::sample::select(vec![0.003, 0.05, 1.0, 7.0, 900.0]);
    (prop::collection::vec(offer, 1..9), scale).prop_map(|(mut offers, scale)| {
        offers.sort_unstable();
        let price = |hundredths: u32| Price::from_f64(f64::from(hundredths) / 100.0 * scale).expect("a price");
        (offers.iter().map(|offer| price(offer.0)).collect(), offers.iter().map(|offer| offer.1).collect(), scale)
    })
}

/// A range that `at` lies in, its ends up to `below` and `above` away.
fn around(at: f64, below: u64, above: u64) -> (f64, f64) {
    ((at - below as f64).max(0.0), at + above as f64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Whatever the fills of a full clearing give at a rate within the range of a lane, its bounds allow.
    #[test]
    fn lanes_allow_what_fills_give(
        (limits, amounts, scale) in pair(), bits in 4u32..14, band in 1u32..4,
        at in 0.8f64..1.25, below in prop::sample::select(vec![0.0, 1e-9, 1e-3, 0.03, 0.3, 1.0]),
        above in prop::sample::select(vec![0.0, 1e-9, 1e-3, 0.03, 0.3, 1e30]), target in 0f64..1.0,
        far in prop::array::uniform4(prop_oneof![Just(0u64), 0u64..5, 0u64..2000, Just(u64::MAX)]),
        worth in 0.3f64..3.0,
    ) {
        let pair = PairBook::new(AssetId(0), AssetId(1), &limits, &amounts).expect("a pair");
        let (params, price) = (params(bits, bits - band), Price::from_f64(at * scale).expect("a price"));
        let rate = Rate::new(price, Price::ONE, params.epsilon, params.mu);
        let must: Amount = pair.offers().filter(|offer| rate.must_fill(offer.0, offer.1)).map(|offer| offer.1).sum();
        let rest = amounts.iter().sum::<Amount>() - must;
        let fills = fills(&pair, &rate, must + (rest as f64 * target) as Amount);
        let (sold, paid, ratio) = (fills.sold as f64, fills.bought as f64, price.to_f64());
        let terms: Vec<Terms> = pair.offers().map(|(limit, amount)| Terms::of(limit, amount)).collect();
        let band = Band { net: 1.0 - params.epsilon.to_f64(), sure: 1.0 - params.mu.to_f64() };
        let lane = Lane::new(&terms, band, (ratio * (1.0 - below), ratio * (1.0 + above)));
        let all = lane.flow();
        let holds = |flow: &Flow| {
            flow.sold.0 <= sold && sold <= flow.sold.1 && flow.paid.0 <= paid && paid <= flow.paid.1
        };
        prop_assert!(holds(&all), "{all:?} {sold} {paid}");
        prop_assert!(lane.most(paid) >= sold && lane.least(sold) <= paid, "{} {}", lane.most(paid), lane.least(sold));
        let mut flow = Flow { sold: around(sold, far[0], far[1]), paid: around(paid, far[2], far[3]) };
        flow.meet(&all);
        flow.follow(&lane, &all);
        prop_assert!(holds(&flow), "{flow:?} {sold} {paid}");
        let kept = ratio * sold - paid;
        prop_assert!(lane.kept(&flow, params.epsilon.to_f64()) >= kept - ratio * sold * 1e-9, "kept {kept}");
        prop_assert!(lane.gain(&flow, ratio * worth, 1.0) >= ratio * worth * sold - paid - ratio * sold * 1e-9);
        let side = Side::new(&(Rc::new(lane.clone()), flow), ratio * worth, 1.0);
        for pull in [0.0, 0.5, 1.0, 30.0].map(|pull| pull * ratio * sold) {
            let left = ratio * worth * sold - paid - pull * worth.ln();
            let (most, _) = side.most(pull, lane.ratio, ratio * worth);
            prop_assert!(most >= left - (ratio * sold + pull) * 1e-9, "{most} {left}, pull {pull}");
        }
        let (least, most) = lane.rates(&flow, band.sure / band.net);
        let is = ratio * band.net;
        prop_assert!(least * (1.0 - 1e-12) <= is && is <= most * (1.0 + 1e-12), "{least} {is} {most}");
    }
}

/// What fills give at a rate, and the lane of a range around it.
fn side(
    of: &(Vec<Price>, Vec<Amount>, f64),
    ratio: Price,
    params: &Params,
    range: (f64, f64),
    target: f64,
) -> (f64, f64, Lane) {
    let pair = PairBook::new(AssetId(0), AssetId(1), &of.0, &of.1).expect("a pair");
    let rate = Rate::new(ratio, Price::ONE, params.epsilon, params.mu);
    let must: Amount = pair.offers().filter(|offer| rate.must_fill(offer.0, offer.1)).map(|offer| offer.1).sum();
    let rest = of.1.iter().sum::<Amount>() - must;
    let fills = fills(&pair, &rate, must + (rest as f64 * target) as Amount);
    let terms: Vec<Terms> = pair.offers().map(|(limit, amount)| Terms::of(limit, amount)).collect();
    let band = Band { net: 1.0 - params.epsilon.to_f64(), sure: 1.0 - params.mu.to_f64() };
    let lane = Lane::new(&terms, band, (ratio.to_f64() * (1.0 - range.0), ratio.to_f64() * (1.0 + range.1)));
    (fills.sold as f64, fills.bought as f64, lane)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Whatever two pairs leave of one asset, with what they leave of the other, is allowed for.
    #[test]
    fn duos_leave_what_fills_leave(
        forth in pair(), back in pair(), bits in 4u32..14, band in 1u32..4, at in 0.8f64..1.25,
        range in prop::array::uniform2(prop::sample::select(vec![0.0, 1e-9, 1e-3, 0.03])),
        targets in prop::array::uniform2(0f64..1.0), spare in prop_oneof![Just(0u64), 0u64..5, 0u64..100_000],
    ) {
        let params = params(bits, bits - band);
        let ratio = Price::from_f64(at * forth.2).expect("a price");
        let inverse = Price::from_f64(1.0 / ratio.to_f64()).expect("a price");
        let (sold, paid, there) = side(&forth, ratio, &params, (range[0] + 1e-12, range[1] + 1e-12), targets[0]);
        let (own, other, here) = side(&back, inverse, &params, (range[1] + 1e-12, range[0] + 1e-12), targets[1]);
        let (there, here) = ((Rc::new(there.clone()), there.flow()), (Rc::new(here.clone()), here.flow()));
        let need = own - paid - spare as f64;
        prop_assert!(most_left(&there, &here, need) >= sold - other, "{sold} {paid} {own} {other}");
    }
}

/// Full clearings of hard books lie in every zone that their prices lie in, with all their amounts.
#[test]
fn full_clearings_are_never_cut_away() {
    for (seed, thorough) in (0..40).flat_map(|seed| [(seed, false), (seed, true)]) {
        let sorted = hard(1_000, seed);
        let (book, params) = (sorted.book(), Params::default());
        let clearing = clear(&book, &params, None).expect("a proper book");
        let Some(asset) = clearing.trades.first().map(|trade| trade.sell) else { continue };
        let around = trading_with(&book, &[asset]).remove(0);
        // A search starts at prices that are off a little, some times.
        let off = |(at, value): (usize, &Price)| value.to_f64() * (1.0 + 0.02 * (at as u64 * seed % 5) as f64);
        let center: Vec<Price> = (clearing.valuations.iter().enumerate())
            .map(|value| Price::from_f64(off(value)).expect("a price"))
            .collect();
        let (book, params, trades) = (&book, &params, &clearing.trades[..]);
        let case = Case { book, params, valuations: &center, trades, short: &[asset] };
        let mut search = Search::new(&case, &around, thorough);
        search.left = usize::MAX;
        let prices: Vec<f64> = around.iter().map(|asset| clearing.valuations[*asset as usize].to_f64()).collect();
        let sold = amounts_of(&search, book, params, &clearing, &around);
        let mut node = search.everything();
        let mut depth = 0;
        while clearing.full && depth < 60 {
            assert!(!search.is_empty(&mut node), "seed {seed}, depth {depth}");
            for (flow, sold) in node.flows.iter().zip(&sold) {
                let within = |range: (f64, f64), it: f64| range.0 <= it && it <= range.1;
                assert!(within(flow.sold, sold.0) && within(flow.paid, sold.1), "seed {seed}: {flow:?} {sold:?}");
            }
            has_pieces(&search, &node, &prices, &sold);
            // Nor do any assets together lack anything, weighed by any prices.
            for number in 0..8 {
                let chosen = |asset: usize| (asset + number).is_multiple_of(1 + number) || asset % 5 == depth % 5;
                let inside: Vec<bool> = (0..prices.len()).map(chosen).collect();
                let weights: Vec<f64> = prices.iter().map(|price| price * (1.0 + 1e-4 * number as f64)).collect();
                assert!(!search.lacks(&inside, &weights, &node), "seed {seed}, depth {depth}: {inside:?}");
            }
            let Some(cut) = search.cut(&node) else { break };
            let [first, second] = node.halves(cut);
            node = if is_above(cut, &prices, &sold) { second } else { first }.expect("the clearing is within");
            depth += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The relaxation of a zone with a full clearing finds something there, however the zone was cut.
    #[test]
    fn relaxations_allow_full_clearings(
        offers in offers(4, 12), epsilon in 4u32..16, band in 1u32..4, off in prop::array::uniform4(-1.0f64..1.0),
    ) {
        let (sorted, params) = (SortedOffers::new(4, &offers), params(epsilon, epsilon - band));
        let book = sorted.book();
        let clearing = clear(&book, &params, None).expect("a proper book");
        let Some(first) = clearing.trades.first().filter(|_| clearing.full) else { return Ok(()) };
        let around = trading_with(&book, &[first.sell]).remove(0);
        let center = clearing.valuations.iter().zip(off).map(|(value, off)| value.to_f64() * (1.0 + 0.004 * off));
        let center: Vec<Price> = center.map(|price| Price::from_f64(price).expect("a price")).collect();
        let case = Case { book: &book, params: &params, valuations: &center, trades: &[], short: &[] };
        let mut search = Search::new(&case, &around, false);
        let prices: Vec<f64> = around.iter().map(|asset| clearing.valuations[*asset as usize].to_f64()).collect();
        let sold = amounts_of(&search, &book, &params, &clearing, &around);
        let mut node = search.around(0.01).expect("there are prices");
        for _ in 0..40 {
            prop_assert!(search.settle(&mut node));
            let relaxed = search.relaxation(&node).and_then(|relaxation| search.solved(&node, relaxation));
            let is_inside = |pair: (usize, usize)| node.zone.most(pair.0, pair.1) > prices[pair.0] / prices[pair.1] * (1.0 + 3e-9);
            let mut pairs = search.duos.iter().flat_map(|duo| [duo.assets, (duo.assets.1, duo.assets.0)]);
            if !pairs.all(is_inside) {
                // At the very edge of the zone nothing is promised.
                break;
            }
            prop_assert!(relaxed.is_some());
            let relaxed = relaxed.expect("it is there");
            for (i, j) in search.duos.iter().map(|duo| duo.assets) {
                let ratio = relaxed.prices[i] / relaxed.prices[j];
                prop_assert!(node.zone.least(i, j) <= ratio && ratio <= node.zone.most(i, j));
            }
            let Some(cut) = search.cut_off(&node, &relaxed) else { break };
            let [first, second] = node.halves(cut);
            node = if is_above(cut, &prices, &sold) { second } else { first }.expect("the clearing is within");
        }
    }
}

/// Whether prices and amounts are above `cut`.
fn is_above(cut: Cut, prices: &[f64], sold: &[(f64, f64)]) -> bool {
    match cut {
        Cut::Ratio(i, j, bound) => prices[i] / prices[j] > bound,
        Cut::Sold(at, most) => sold[at].0 > most,
        Cut::Paid(at, most) => sold[at].1 > most,
    }
}

/// What each link of `search` sells and is paid in `clearing`.
fn amounts_of(search: &Search, book: &Book, params: &Params, clearing: &Clearing, assets: &[u32]) -> Vec<(f64, f64)> {
    let of = |link: &super::Link| {
        let [sell, buy] = [link.sell, link.buy].map(|place| AssetId(assets[place]));
        let trade = clearing.trades.iter().find(|trade| (trade.sell, trade.buy) == (sell, buy));
        let [own, other] = [sell, buy].map(|asset| clearing.valuations[asset.0 as usize]);
        let pair = &book.pairs[book.position(sell, buy).expect("a pair")];
        let rate = Rate::new(own, other, params.epsilon, params.mu);
        let fills = fills(pair, &rate, trade.map_or(0, |trade| trade.sold));
        (fills.sold as f64, fills.bought as f64)
    };
    search.links.iter().map(of).collect()
}

/// Books of which only the search finds full clearings, not the attempts before it.
#[test]
fn what_only_the_search_finds_is_full() {
    let small = [96, 558, 598, 857, 1058, 1172, 1228, 1982, 2279, 2407, 2697, 2760, 2979].map(|seed| hard(1_000, seed));
    for sorted in small.into_iter().chain([hard_of_any_size(341)]) {
        let (book, params) = (sorted.book(), Params::default());
        let clearing = clear(&book, &params, None).expect("a proper book");
        assert!(clearing.full);
        verify(&book, &params, &clearing).expect("it verifies");
    }
}

/// Books of few units near par, most of which nothing clears: what the search makes of them is a clearing all the same.
#[test]
fn books_of_few_units_always_end_in_a_clearing() {
    for (seed, (offers, units)) in
        (0..).zip([(50, 100), (100, 100), (100, 1_000), (200, 1_000), (300, 1_000), (100, 10_000)])
    {
        let mut random = crate::workload::Seeded::new(seed);
        let mut offer = || {
            let sell = random.below(20) as u32;
            let buy = (sell + 1 + random.below(19) as u32) % 20;
            let limit = Price::from_f64(random.between(0.97, 1.03)).expect("a price");
            Offer { sell: AssetId(sell), buy: AssetId(buy), amount: units / 100 + random.below(units), limit }
        };
        let offers: Vec<Offer> = (0..offers).map(|_| offer()).collect();
        let (sorted, params) = (SortedOffers::new(20, &offers), Params::default());
        let clearing = clear(&sorted.book(), &params, None).expect("a proper book");
        verify(&sorted.book(), &params, &clearing).expect("it verifies");
    }
}

/// Every duo has a piece with the prices and the amounts of the clearing, in a thorough search.
fn has_pieces(search: &Search, node: &Node, prices: &[f64], sold: &[(f64, f64)]) {
    let within = |range: (f64, f64), it: f64| range.0 <= it && it <= range.1;
    for (duo, pieces) in search.duos.iter().zip(&node.pieces).filter(|_| search.thorough) {
        let ratio = prices[duo.assets.0] / prices[duo.assets.1];
        let holds = pieces.list.iter().any(|piece| {
            let sides = piece.sides.iter().zip(duo.links).filter_map(|(side, link)| Some((&side.as_ref()?.1, link?)));
            let mut all = sides.map(|(flow, link)| within(flow.sold, sold[link].0) && within(flow.paid, sold[link].1));
            within((piece.ratio.0 * (1.0 - 1e-14), piece.ratio.1 * (1.0 + 1e-14)), ratio) && all.all(|holds| holds)
        });
        assert!(holds, "{:?} at {ratio}: {sold:?}", duo.assets);
    }
}

/// The books of 1,000 hard ones that are known to have none.
#[test]
fn hard_books_without_a_full_clearing_are_known() {
    for sorted in
        [580, 468].map(hard_of_any_size).into_iter().chain([hard(100_000, 572), hard(100_000, 724), hard(100_000, 935)])
    {
        let (book, params) = (sorted.book(), Params::default());
        let market = crate::Market::new(&book).expect("a proper book");
        let clearing = market.clear(&params, None).expect("proper parameters");
        assert!(!clearing.full && market.impossible(&params, &clearing).is_some());
    }
}
