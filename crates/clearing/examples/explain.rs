//! Why an offer did or did not trade.
//!
//! One small book in which every reason occurs: filled in full, in part, beyond the rate, lost to rounding, and
//! without a counterparty. [`Clearing::outcomes`](clearing::Clearing::outcomes) gives the reason of each row as data;
//! [`explain`](clearing::explain()) puts one of them into words.

use std::error::Error;
use std::fmt::Write;

use clearing::{Offer, Params, SortedOffers, TradeReason, clear, explain};
use primitives::AssetId;

const NAMES: [&str; 4] = ["EUR", "USD", "JPY", "XAU"];

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", report()?);
    Ok(())
}

/// Clears the book and explains each of its offers.
pub fn report() -> Result<String, Box<dyn Error>> {
    let [eur, usd, jpy, gold] = [0, 1, 2, 3].map(AssetId);
    let offer =
        |sell, buy, amount, limit: &str| Ok::<_, Box<dyn Error>>(Offer { sell, buy, amount, limit: limit.parse()? });
    let offers = [
        offer(eur, usd, 1_000_000, "1.05")?,
        offer(eur, usd, 900_000, "1.0999")?,
        offer(eur, usd, 400_000, "1.3")?,
        offer(eur, usd, 3, "1.09")?,
        offer(usd, eur, 1_500_000, "0.9")?,
        offer(usd, eur, 50_000, "0.909")?,
        offer(usd, jpy, 200_000, "150")?,
        offer(jpy, usd, 40_000_000, "0.0064")?,
        // Nobody sells gold.
        offer(eur, gold, 2_000, "0.0004")?,
    ];
    let sorted = SortedOffers::new(4, &offers);
    let (book, params) = (sorted.book(), Params::default());
    let clearing = clear(&book, &params, None)?;
    let name = |asset: AssetId| NAMES[asset.0 as usize].to_owned();

    let mut said = format!("full: {}\n", clearing.full);
    let outcomes = clearing.outcomes(&book, &sorted, &params, |_| 0).ok_or("an asset without a price")?;
    for (row, outcome) in outcomes.iter().enumerate() {
        let (pair, index) = place(&sorted, book.pairs.len(), row).ok_or("a row without an offer")?;
        let explanation = explain(&book, &params, &clearing, pair, index).ok_or("no such offer")?;
        let missing = match outcome.why {
            TradeReason::Part { missing: Some(units) } | TradeReason::NotReached { missing: Some(units) } => {
                format!(", {units} missing")
            }
            _ => String::new(),
        };
        writeln!(said, "\nrow {} ({}{missing})\n  {}", row + 1, outcome.why.name(), explanation.in_words(name))?;
    }
    Ok(said)
}

/// The pair of a row, and its position there.
fn place(sorted: &SortedOffers, pairs: usize, row: usize) -> Option<(usize, usize)> {
    let in_pair = |pair: usize| sorted.rows(pair).iter().position(|other| *other as usize == row);
    (0..pairs).find_map(|pair| Some((pair, in_pair(pair)?)))
}
