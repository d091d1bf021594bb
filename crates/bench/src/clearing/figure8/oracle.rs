//! Thin books against the public solver, which shares no code with ours: its optimum is 0 wherever a clearing is full,
//! prices agree where they are unique, and its prices have full amounts too.

use ::clearing::workload;
use ::clearing::workload::thin::{self, PATTERNS};
use ::clearing::{Market, Offer, Params, SortedOffers, clear};
use kernel::Dice;
use primitives::Price;

use super::program::{self, Order, Solution};

/// How far our rate is from a limit at which the oracle trades in part, as a multiple of half the band; the largest.
/// At a limit at which some solution trades in part, every solution has the same rate.
fn disagreement(orders: &[Order], solution: &Solution, ours: &[f64], params: &Params) -> f64 {
    const PART: std::ops::Range<f64> = 0.02..0.98;
    let half = 0.5 * (params.mu.to_f64() - params.epsilon.to_f64());
    let off = |order: &Order, prices: &[f64]| (prices[order.sell] / prices[order.buy] / order.limit).ln().abs() / half;
    // The shares of offers that are a small part of all are not exact.
    let at_margin = |(order, share): &(&Order, &f64)| PART.contains(share) && off(order, &solution.prices) < 0.1;
    let all = orders.iter().zip(&solution.shares).filter(at_margin);
    all.map(|(order, _)| off(order, ours)).fold(0.0, f64::max)
}

#[derive(Default)]
struct Tally {
    solved: u32,
    unsolved: u32,
    unique: u32,
    full_at_theirs: u32,
}

impl Tally {
    fn add(&mut self, assets: u32, offers: &[Offer], what: &str) {
        let params = Params::default();
        let sorted = SortedOffers::new(assets, offers);
        let book = sorted.book();
        let clearing = clear(&book, &params, None).expect("a proper book");
        if !clearing.full {
            return;
        }
        let market = Market::new(&book).expect("a proper book");
        let mut theirs = clearing.valuations.clone();
        for (own, orders) in program::groups(assets, offers, &params) {
            let Some(solution) = program::solve(own.len(), &orders) else {
                self.unsolved += 1;
                continue;
            };
            self.solved += 1;
            assert!(solution.objective.abs() < super::OPTIMUM, "{what}: optimum {}", solution.objective);
            let ours: Vec<f64> = own.iter().map(|asset| clearing.valuations[asset.0 as usize].to_f64()).collect();
            let disagreement = disagreement(&orders, &solution, &ours, &params);
            // Half a band, and what rounding of few units may need.
            assert!(disagreement < 1.1, "{what}: {disagreement} half bands apart");
            self.unique += u32::from(disagreement > 0.0);
            for (asset, price) in own.iter().zip(&solution.prices) {
                theirs[asset.0 as usize] = Price::from_f64(*price).expect("a proper price");
            }
        }
        self.full_at_theirs += u32::from(market.amounts(&params, &theirs).expect("proper").full);
    }
}

#[test]
fn a_public_convex_solver_agrees() {
    const BOOKS: u64 = 150;
    let mut tally = Tally::default();
    for seed in 0..BOOKS {
        let mut random = Dice::new(seed);
        let (assets, offers) = (2 + random.below(7), 4 + 2 * random.below(15) as usize);
        let spread = [0.01, 0.05, 0.5][random.below(3) as usize];
        let book = thin::of_kind(PATTERNS[seed as usize % PATTERNS.len()], assets, offers, spread, &mut random);
        tally.add(book.assets, &book.offers, &format!("thin {seed}"));
    }
    for seed in 0..10 {
        tally.add(6, &workload::cycles(6, 60, seed), &format!("cycles {seed}"));
    }
    let Tally { solved, unsolved, unique, full_at_theirs } = tally;
    println!("{solved} solved, {unsolved} not, {unique} with unique prices, {full_at_theirs} full at its prices");
    assert!(solved > 100 && unsolved * 20 < solved, "{solved} solved, {unsolved} not");
    assert!(unique > 50, "{unique}");
    assert!(full_at_theirs > 150, "{full_at_theirs}");
}
