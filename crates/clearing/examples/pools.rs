//! Constant-product pools and an order for an exact amount in addition to the offers of a batch.
//!
//! The same offers are cleared without a pool and with one. The pool trades at the batch's rate like every
//! participant and stops where its marginal price meets it; the product of its reserves never falls.

use std::error::Error;
use std::fmt::Write;

use clearing::workload::cycles;
use clearing::{Book, Clearing, ExactOrder, Params, Pool, SortedOffers, clear, verify};
use primitives::{AssetId, Fraction};

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", report()?);
    Ok(())
}

/// Clears a book without a pool and with one, and reports the difference.
pub fn report() -> Result<String, Box<dyn Error>> {
    const ASSETS: u32 = 4;
    let (a, b) = (AssetId(0), AssetId(1));
    let sorted = SortedOffers::new(ASSETS, &cycles(ASSETS, 800, 21));
    let params = Params::default();
    let mut book = sorted.book();
    let without = clear(&book, &params, None)?;
    let before = without.rate(&params, a, b).ok_or("an asset without a price")?.to_f64();

    // The pool values A a tenth lower than the batch does, so that it has A to sell; it keeps 0.3 %.
    let reserve_a = 2_000_000_000;
    let reserve_b = (0.9 * before * reserve_a as f64) as u64;
    let pool = Pool { a, b, reserve_a, reserve_b, fee: "0.003".parse::<Fraction>()? };
    book.pools.push(pool);
    let bought = 1_000_000;
    let most = (1.01 * bought as f64 / before) as u64;
    book.exacts.push(ExactOrder::buy(b, bought, a, most));
    let with = clear(&book, &params, None)?;

    let mut said = String::new();
    writeln!(said, "rate A/B after commission, without the pool  {before:.6}")?;
    writeln!(said, "                           with the pool     {:.6}", rate(&with, &params, &pool)?)?;
    describe(&mut said, &book, &params, &without, &with)?;
    let trade = with.pools.first().ok_or("the pool does not trade")?;
    let (own, other) = (reserve_a - trade.sold, reserve_b + trade.bought);
    let product = |x: u64, y: u64| u128::from(x) * u128::from(y);
    writeln!(said, "\nThe pool sells {} A for {} B.", trade.sold, trade.bought)?;
    writeln!(
        said,
        "Its marginal price goes from {:.6} to {:.6}.",
        reserve_b as f64 / reserve_a as f64,
        other as f64 / own as f64
    )?;
    let grown = product(own, other) as f64 / product(reserve_a, reserve_b) as f64 - 1.0;
    writeln!(said, "The product of its reserves grows by {:.4} %.", 100.0 * grown)?;
    match with.exacts.first() {
        Some(purchase) => {
            writeln!(said, "\nThe order for exactly {bought} B pays {} A of at most {most}.", purchase.other)?
        }
        None => writeln!(said, "\nThe order for exactly {bought} B is not filled.")?,
    }
    Ok(said)
}

fn rate(clearing: &Clearing, params: &Params, pool: &Pool) -> Result<f64, Box<dyn Error>> {
    Ok(clearing.rate(params, pool.a, pool.b).ok_or("an asset without a price")?.to_f64())
}

/// Number of offers that trade, without the pool and with it.
fn describe(
    said: &mut String,
    book: &Book,
    params: &Params,
    without: &Clearing,
    with: &Clearing,
) -> Result<(), Box<dyn Error>> {
    let alone = Book { pools: Vec::new(), exacts: Vec::new(), ..book.clone() };
    writeln!(said, "offers that trade, without the pool          {}", verify(&alone, params, without)?.executed)?;
    writeln!(said, "                   with the pool             {}", verify(book, params, with)?.executed)?;
    Ok(())
}
