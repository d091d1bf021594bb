//! The whole of a clearing, from book to trades.

use primitives::Price;
use rayon::prelude::*;

use crate::amounts::amounts;
use crate::book::{Book, InputError, Params, Solver};
use crate::clearing::{Clearing, Obstacle, Report, Trade};
use crate::curve::Curves;
use crate::demand::Demand;
use crate::market::{Part, Split};
use crate::newton::{Prices, Target, newton};
use crate::quality::unrealized_utility_ratio;
use crate::rate::approx;
use crate::start::start;

/// Clears `book`: prices, then amounts. `last` are the valuations of the batch before, if there was one.
///
/// Runs on the current rayon pool; the answer is the same for any number of threads.
///
/// # Errors
/// [`InputError`] if the book or the parameters break a rule; every proper book has a clearing.
pub fn clear(book: &Book, params: &Params, last: Option<&[Price]>) -> Result<Clearing, InputError> {
    params.check()?;
    book.check()?;
    if let Some(last) = last.filter(|last| last.len() != book.assets as usize) {
        return Err(InputError::Last { given: last.len(), assets: book.assets });
    }
    let curves = Curves::new(book);
    let split = Split::new(book);
    let found: Vec<Prices> = split.parts.par_iter().map(|part| price(part, &curves, params, last)).collect();
    let prices: Vec<Vec<f64>> = found.iter().map(|found| found.prices.clone()).collect();
    let valuations = split.join(book, &curves, &prices, last);
    let amounts = amounts(book, &curves, params, &valuations);
    let report = Report {
        solver: params.solver,
        iterations: found.iter().map(|found| found.iterations).sum(),
        demand_queries: found.iter().map(|found| found.queries).sum(),
        imbalance: found.iter().map(|found| found.imbalance).fold(0.0, f64::max),
        unrealized_utility_ratio: unrealized_utility_ratio(book, &curves, &valuations, &amounts.sold),
        obstacle: (!amounts.full).then(|| Obstacle::Short(amounts.short.clone())),
    };
    let trades = book.pairs.iter().zip(&amounts.sold).filter(|(_, sold)| **sold > 0);
    let trades = trades.map(|(pair, sold)| Trade { sell: pair.sell, buy: pair.buy, sold: *sold });
    Ok(Clearing { trades: trades.collect(), valuations, full: amounts.full, report })
}

/// Prices of one part.
fn price(part: &Part, curves: &Curves, params: &Params, last: Option<&[Price]>) -> Prices {
    let last: Option<Vec<f64>> =
        last.map(|last| part.assets.iter().map(|asset| approx(last[*asset as usize])).collect());
    if part.pairs.is_empty() {
        return Prices { prices: vec![1.0; part.assets.len()], solved: true, ..Prices::default() };
    }
    let mut demand = Demand::new(part, curves);
    let target = Target { epsilon: params.epsilon.to_f64(), mu: params.mu.to_f64() };
    let start = start(&demand, last.as_deref());
    match params.solver {
        Solver::Newton | Solver::Tatonnement => newton(&mut demand, target, start),
    }
}
