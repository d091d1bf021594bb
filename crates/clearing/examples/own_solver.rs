//! A custom price solver compared with the one of this crate.
//!
//! The solver here is Tâtonnement in the basic form of SPEEDEX §5: prices of scarce assets rise and prices of surplus
//! assets fall, in proportion to the shortage. Whatever prices it ends at, [`Market::amounts`] computes amounts that
//! conserve every asset and respect every limit price, and [`verify`] checks them. Only the amount of trade differs.

use std::error::Error;
use std::fmt::Write;

use clearing::workload::cycles;
use clearing::{Clearing, Market, Offer, Params, Prices, SortedOffers, clear, verify};
use primitives::Price;

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", report(10, 20_000, 3_000)?);
    Ok(())
}

/// Clears one book both ways and compares the results.
pub fn report(assets: u32, offers: usize, rounds: u32) -> Result<String, Box<dyn Error>> {
    let list = cycles(assets, offers, 11);
    let sorted = SortedOffers::new(assets, &list);
    let (book, params) = (sorted.book(), Params::default());
    let market = Market::new(&book)?;

    let prices = tatonnement(assets, &list, &params, rounds)?;
    let amounts = market.amounts(&params, &prices.valuations)?;
    let own = market.conclude(&params, prices, amounts);
    let ours = clear(&book, &params, None)?;

    let mut said = format!("{offers} offers of {assets} assets\n\n");
    writeln!(said, "solver       iterations  offers that trade  full   unrealized utility  largest imbalance")?;
    for (name, clearing) in [("this example", &own), ("clear", &ours)] {
        let executed = verify(&book, &params, clearing)?.executed;
        let Clearing { full, report, .. } = clearing;
        let (iterations, lost) = (report.iterations, 100.0 * report.unrealized_utility_ratio);
        let imbalance = report.imbalance;
        writeln!(said, "{name:<12} {iterations:>10}  {executed:>17}  {full:<5}  {lost:>16.4} %  {imbalance:>17.1e}")?;
    }
    let apart = own.valuations.iter().zip(&ours.valuations).map(|(a, b)| a.to_f64() / b.to_f64());
    let (low, high) = apart.fold((f64::MAX, 0.0f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
    writeln!(said, "\nTheir rates differ by at most {:.4} %.", 100.0 * (high / low - 1.0))?;
    Ok(said)
}

/// At most `rounds` rounds of Tâtonnement; stops early if the imbalance falls below the commission.
fn tatonnement(assets: u32, offers: &[Offer], params: &Params, rounds: u32) -> Result<Prices, Box<dyn Error>> {
    let (mut prices, mut step, mut done) = (vec![1.0; assets as usize], 0.1, 0);
    let mut now = imbalances(offers, &prices, params);
    while done < rounds && largest(&now) > params.epsilon.to_f64() {
        done += 1;
        let shift = |(price, short): (&f64, &f64)| price * (1.0 + (step * short).clamp(-0.5, 0.5));
        let trial: Vec<f64> = prices.iter().zip(&now).map(shift).collect();
        let next = imbalances(offers, &trial, params);
        // A shorter step after one that did not help, a longer one after one that did.
        if norm(&next) <= norm(&now) {
            (prices, now, step) = (trial, next, step * 1.2);
        } else {
            step *= 0.5;
        }
    }
    let valuations = prices.iter().map(|price| Price::from_f64(*price)).collect::<Option<_>>();
    Ok(Prices {
        valuations: valuations.ok_or("prices left their range")?,
        iterations: done,
        demand_queries: done + 1,
        imbalance: largest(&now),
        looks: 0,
        unsolved: Vec::new(),
        interior_parts: 0,
    })
}

/// For each asset the excess of purchases over sales, in value and relatively. Near the rate an offer sells a part of
/// its amount that rises from nothing at the rate to all of it at (1−μ) of the rate: the smoothed demand of §C.2.
fn imbalances(offers: &[Offer], prices: &[f64], params: &Params) -> Vec<f64> {
    let mut flows = vec![(0.0, 0.0); prices.len()];
    for offer in offers {
        let (sell, buy) = (offer.sell.0 as usize, offer.buy.0 as usize);
        let rate = prices[sell] / prices[buy];
        let part = ((1.0 - offer.limit.to_f64() / rate) / params.mu.to_f64()).clamp(0.0, 1.0);
        let value = part * offer.amount as f64 * prices[sell];
        flows[sell].0 += value;
        flows[buy].1 += value;
    }
    flows.iter().map(|(sold, bought)| (bought - sold) / f64::max(1.0, f64::max(*sold, *bought))).collect()
}

fn largest(imbalances: &[f64]) -> f64 {
    imbalances.iter().fold(0.0, |most, short| most.max(short.abs()))
}

fn norm(imbalances: &[f64]) -> f64 {
    imbalances.iter().map(|short| short * short).sum()
}
