//! Markets with more assets than elimination is used for.

use clearing::{Clearing, Offer, Params, SortedOffers, clear, verify};
use kernel::Dice;
use primitives::{AssetId, Price};

/// `count` offers around the valuations of `assets`, each on one of `edges`.
fn offers(assets: u32, edges: &[(u32, u32)], count: usize, random: &mut Dice) -> Vec<Offer> {
    let values: Vec<f64> = (0..assets).map(|_| random.between(1.0, 1000.0)).collect();
    let draw = |_| {
        let (a, b) = edges[random.below(edges.len() as u64) as usize];
        let (sell, buy) = if random.unit() < 0.5 { (a, b) } else { (b, a) };
        let rate = values[sell as usize] / values[buy as usize];
        let limit = Price::from_f64(rate * (1.0 - random.between(-0.005, 0.02))).expect("near a ratio of valuations");
        let amount = (random.between(1e7, 1e9) / values[sell as usize]) as u64;
        Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit }
    };
    (0..count).map(draw).collect()
}

fn cleared(assets: u32, offers: &[Offer], threads: usize, last: Option<&[Price]>) -> Clearing {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let sorted = SortedOffers::new(assets, offers);
    let (book, params) = (sorted.book(), Params::default());
    let clearing = pool.install(|| clear(&book, &params, last)).expect("a proper book");
    let verified = verify(&book, &params, &clearing).expect("verifies");
    assert!(clearing.full, "{:?}", clearing.report);
    assert!(verified.executed > offers.len() / 2);
    clearing
}

/// Every asset trades with some others, and no asset separates any two.
#[test]
fn a_mesh_clears() {
    let mut random = Dice::new(5);
    let assets = 600;
    let edges: Vec<(u32, u32)> =
        (0..6 * assets).map(|at| (at % assets, (at + 1 + random.below(500) as u32) % assets)).collect();
    let offers = offers(assets, &edges, 60_000, &mut random);
    let one = cleared(assets, &offers, 1, None);
    let two = cleared(assets, &offers, 2, None);
    assert_eq!((&one.valuations, &one.trades), (&two.valuations, &two.trades));
    let warm = cleared(assets, &offers, 2, Some(&one.valuations));
    assert!(warm.report.demand_queries < one.report.demand_queries);
}

/// Stocks against several numeraires, which trade among themselves.
#[test]
fn stocks_on_numeraires_clear() {
    let mut random = Dice::new(6);
    let (numeraires, assets) = (5, 700);
    let among = (0..numeraires).flat_map(|a| (0..a).map(move |b| (a, b)));
    let mut edges: Vec<(u32, u32)> = among.cycle().take(200).collect();
    for stock in numeraires..assets {
        edges.extend([(stock, stock % numeraires), (stock, (stock / 7 + 1) % numeraires)]);
    }
    edges.retain(|(a, b)| a != b);
    let offers = offers(assets, &edges, 60_000, &mut random);
    cleared(assets, &offers, 2, None);
}
