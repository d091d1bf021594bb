//! An oracle in exact rationals that shares no code and no rule with the crate.
//!
//! It knows only what an offer, a fill and a valuation are, and the problem statement. Every asset is conserved. Nobody
//! receives less than the limit asks for, or an amount other than the rate pays. In a full clearing, an offer between
//! assets that chains of offers join both ways is left out for two reasons only. Its limit is above (1−μ) of the rate
//! for the units that it asks for, or the units that it *asks for* could not exist. It makes no exception for the
//! choice of prices.

use clearing::{Book, Clearing, Params, verify};
use num_bigint::BigInt;
use primitives::{Fraction, Price};

/// A positive rational number; divisors are never 0.
#[derive(Clone)]
struct Ratio(BigInt, BigInt);

impl Ratio {
    fn of(price: Price) -> Ratio {
        let ten = |power: i32| BigInt::from(10).pow(power.max(0).unsigned_abs());
        Ratio(BigInt::from(price.mantissa()) * ten(price.exponent()), ten(-price.exponent()))
    }

    fn less(share: Fraction) -> Ratio {
        Ratio(BigInt::from((1u64 << 32) - share.units()), BigInt::from(1u64 << 32))
    }

    fn times(&self, other: &Ratio) -> Ratio {
        Ratio(&self.0 * &other.0, &self.1 * &other.1)
    }

    fn over(&self, other: &Ratio) -> Ratio {
        Ratio(&self.0 * &other.1, &self.1 * &other.0)
    }

    fn floor(&self) -> BigInt {
        &self.0 / &self.1
    }

    fn ceil(&self) -> BigInt {
        (&self.0 + &self.1 - 1) / &self.1
    }
}

fn units(amount: u64) -> Ratio {
    Ratio(BigInt::from(amount), BigInt::from(1))
}

/// What one offer gives and receives.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// Position of the pair in the book, and of the offer in it.
    pub pair: usize,
    pub index: usize,
    pub sold: u64,
    pub bought: u64,
}

/// The fills of `clearing`, if the crate itself finds no violation.
pub fn fills_of(book: &Book, params: &Params, clearing: &Clearing) -> Result<Vec<Fill>, String> {
    let verified = verify(book, params, clearing).map_err(|violation| violation.to_string())?;
    let mut result = Vec::new();
    for (at, (pair, fills)) in book.pairs.iter().zip(&verified.fills).enumerate() {
        let [sell, buy] = [pair.sell, pair.buy].map(|asset| clearing.valuations[asset.0 as usize]);
        let rate = clearing::Rate::new(sell, buy, params.epsilon, params.mu);
        let fills = fills.each(pair, &rate);
        result.extend(fills.map(|(index, sold, bought)| Fill { pair: at, index, sold, bought }));
    }
    Ok(result)
}

/// Checks `fills` at `valuations` against the problem statement; returns the first violation.
pub fn check(book: &Book, params: &Params, valuations: &[Price], fills: &[Fill], full: bool) -> Result<(), String> {
    let rate = |pair: usize, share: Fraction| {
        let [sell, buy] = [book.pairs[pair].sell, book.pairs[pair].buy].map(|asset| valuations[asset.0 as usize]);
        Ratio::less(share).times(&Ratio::of(sell).over(&Ratio::of(buy)))
    };
    let offers: Vec<Vec<(Price, u64)>> = book.pairs.iter().map(|pair| pair.offers().collect()).collect();
    let mut filled: Vec<Vec<u64>> = offers.iter().map(|offers| vec![0; offers.len()]).collect();
    let mut kept = vec![BigInt::from(0); book.assets as usize];
    for fill in fills {
        let &Fill { pair, index, sold, bought } = fill;
        let (limit, amount) = offers[pair][index];
        if std::mem::replace(&mut filled[pair][index], sold) != 0 || sold == 0 || sold > amount {
            return Err(format!("{fill:?} is repeated, of nothing, or of more than is offered"));
        }
        if BigInt::from(bought) < units(sold).times(&Ratio::of(limit)).ceil() {
            return Err(format!("{fill:?} breaks its limit"));
        }
        if BigInt::from(bought) != units(sold).times(&rate(pair, params.epsilon)).floor() {
            return Err(format!("{fill:?} is not what the rate pays"));
        }
        kept[book.pairs[pair].sell.0 as usize] += sold;
        kept[book.pairs[pair].buy.0 as usize] -= bought;
    }
    if let Some(asset) = kept.iter().position(|kept| *kept < BigInt::from(0)) {
        return Err(format!("asset {asset} is not conserved"));
    }
    let most = BigInt::from(i64::MAX);
    let reach = reachable(book);
    for (pair, (offers, filled)) in offers.iter().zip(&filled).enumerate().filter(|_| full) {
        let [sell, buy] = [book.pairs[pair].sell, book.pairs[pair].buy].map(|asset| asset.0 as usize);
        let sure = rate(pair, params.mu);
        for (index, ((limit, amount), sold)) in offers.iter().zip(filled).enumerate() {
            let asked = units(*amount).times(&Ratio::of(*limit)).ceil();
            let must = reach[buy][sell] && asked <= most && asked <= units(*amount).times(&sure).floor();
            if must && sold != amount {
                return Err(format!("offer {index} of pair {pair} must fill and sells {sold} of {amount}"));
            }
        }
    }
    Ok(())
}

/// The assets that can be reached from each asset along offers that sell one for the next.
fn reachable(book: &Book) -> Vec<Vec<bool>> {
    let assets = book.assets as usize;
    let mut next = vec![Vec::new(); assets];
    book.pairs.iter().for_each(|pair| next[pair.sell.0 as usize].push(pair.buy.0 as usize));
    let from = |asset: usize| {
        let (mut seen, mut open) = (vec![false; assets], vec![asset]);
        while let Some(at) = open.pop() {
            let new: Vec<usize> = next[at].iter().copied().filter(|to| !seen[*to]).collect();
            new.iter().for_each(|to| seen[*to] = true);
            open.extend(new);
        }
        seen
    };
    (0..assets).map(from).collect()
}
