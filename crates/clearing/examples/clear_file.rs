//! Clears a file of offers: `cargo run -p clearing --example clear_file -- offers.csv`.
//!
//! The file has the columns `sell,buy,amount,min_price`, as for `walras clear`. Without an argument the example clears
//! `examples/offers.csv`. It prints the price of every asset, the rate of every pair that trades, and what each row
//! gives and receives.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write;

use clearing::{Offer, Params, SortedOffers, clear, verify};
use primitives::AssetId;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/offers.csv").into());
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    print!("{}", report(&text).map_err(|error| format!("{path}: {error}"))?);
    Ok(())
}

/// Clears the offers of `text` and reports the result.
pub fn report(text: &str) -> Result<String, Box<dyn Error>> {
    let (symbols, offers) = read(text)?;
    let sorted = SortedOffers::new(symbols.len() as u32, &offers);
    let (book, params) = (sorted.book(), Params::default());
    let clearing = clear(&book, &params, None)?;
    verify(&book, &params, &clearing)?;

    let name = |asset: AssetId| &symbols[asset.0 as usize];
    let mut said = format!("{} offers of {} assets; full: {}\n\n", offers.len(), symbols.len(), clearing.full);
    for (symbol, price) in symbols.iter().zip(&clearing.valuations) {
        writeln!(said, "{symbol}  {price}")?;
    }
    writeln!(said, "\npair         rate after commission  units sold")?;
    for trade in &clearing.trades {
        let rate = clearing.rate(&params, trade.sell, trade.buy).ok_or("an asset without a price")?;
        writeln!(said, "{:<4}/ {:<4}  {:>22.8}  {:>10}", name(trade.sell), name(trade.buy), rate.to_f64(), trade.sold)?;
    }
    writeln!(said, "\nrow  sold        bought        why")?;
    let outcomes = clearing.outcomes(&book, &sorted, &params, |_| 0).ok_or("an asset without a price")?;
    for (row, (outcome, offer)) in outcomes.iter().zip(&offers).enumerate() {
        let (sold, bought) =
            (format!("{} {}", outcome.sold, name(offer.sell)), format!("{} {}", outcome.bought, name(offer.buy)));
        writeln!(said, "{:>3}  {sold:<14}  {bought:<14}  {}", row + 1, outcome.why.name())?;
    }
    Ok(said)
}

/// Reads the symbols of all assets, in order, and the offers.
fn read(text: &str) -> Result<(Vec<String>, Vec<Offer>), Box<dyn Error>> {
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').map(str::trim).collect()).collect();
    if let Some(bad) = rows.iter().position(|row| row.len() != 4) {
        return Err(format!("line {}: write sell,buy,amount,min_price", bad + 2).into());
    }
    let symbols: BTreeSet<&str> = rows.iter().flat_map(|row| [row[0], row[1]]).collect();
    let symbols: Vec<String> = symbols.into_iter().map(String::from).collect();
    let id = |symbol: &str| AssetId(symbols.binary_search_by(|other| other.as_str().cmp(symbol)).unwrap_or(0) as u32);
    let offer = |(at, row): (usize, &Vec<&str>)| {
        let of_line = |error: &dyn Error| format!("line {}: {error}", at + 2);
        let amount = row[2].parse().map_err(|error| of_line(&error))?;
        let limit = row[3].parse().map_err(|error| of_line(&error))?;
        Ok::<_, String>(Offer { sell: id(row[0]), buy: id(row[1]), amount, limit })
    };
    let offers = rows.iter().enumerate().map(offer).collect::<Result<_, _>>()?;
    Ok((symbols, offers))
}
