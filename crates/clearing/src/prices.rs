//! Prices of a book, part by part.
//!
//! # Which method finds the prices of a part
//!
//! | part | method |
//! |---|---|
//! | fewer than [`THICK`] offers for each asset | the interior-point method, see `interior` |
//! | others | Newton's method on smoothed demand, from earlier prices if they are near balance, see `newton` |
//! | any for which that ends without a solution | the interior-point method from the prices reached |
//! | parts that Newton's method prices, and whose amounts are not full | the interior-point method, see `again` |
//! | groups that are not full even so | division of all cases of whole units, see `units` |
//!
//! The attempts of the interior-point method at the prices of a part share one budget, see `budget`. Newton's method,
//! which takes little where it succeeds, has a small one before it.
//!
//! A part that is not full at prices found from earlier ones is priced once more without them, and with all of its
//! budget, so that a book which is full without earlier prices is full with them.
//! [`crate::Report::interior_parts`] counts the parts for which the interior-point method ran.

use primitives::{AssetId, Price};
use rayon::prelude::*;

use crate::book::{Book, InputError, Params, Solver};
use crate::demand::Demand;
use crate::interior::interior;
use crate::market::{Part, Split};
use crate::newton::{again, is_nearer, newton};
use crate::outcome::Obstacle;
use crate::rate::approx;
use crate::search::{Found, PartView, Target};
use crate::start::{mended, start};
use crate::supply::Supply;
use crate::tatonnement::tatonnement;

/// Offers for each asset from which a part is thick: Newton's method is faster there, and hardly ever fails.
const THICK: usize = 16;
/// What Newton's method may spend on a thick part: this share of the budget, or so many looks for each pair. Ordinary
/// books of many pairs take nearly as many.
const NEWTON: f64 = 0.1;
const NEWTON_PAIR: u64 = 250;
/// Newton's method may spend one part in so many of that from earlier prices.
const WARM: u64 = 4;
/// The share of the budget that the interior-point method may spend from the prices which that leaves.
const NEARBY: f64 = 0.8;

/// A book prepared for clearing: checked, summed up, and split into parts that trade.
pub struct Market<'a> {
    pub(crate) book: &'a Book<'a>,
    pub(crate) supply: Supply<'a>,
    pub(crate) split: Split,
}

/// Prices of a whole book.
#[derive(Clone, Debug)]
pub struct Prices {
    /// A valuation for every asset.
    pub valuations: Vec<Price>,
    /// Newton steps or Tâtonnement rounds, over all parts of the market.
    pub iterations: u32,
    /// Evaluations of demand, over all parts of the market.
    pub demand_queries: u32,
    /// See [`crate::Report::imbalance`].
    pub imbalance: f64,
    /// See [`crate::Report::interior_parts`].
    pub interior_parts: u32,
    /// See [`crate::Spending::price_looks`].
    pub looks: u64,
    /// The parts of the market for which the solver did not meet its stopping condition, and why. The amount step
    /// decides on fullness.
    pub unsolved: Vec<Obstacle>,
}

impl<'a> Market<'a> {
    /// Prepares `book`; linear in the number of offers.
    ///
    /// # Errors
    /// [`InputError`] if the book breaks a rule.
    pub fn new(book: &'a Book<'a>) -> Result<Market<'a>, InputError> {
        book.check()?;
        Ok(Market { book, supply: Supply::new(book), split: Split::new(book) })
    }

    /// Prices of each part, up to a factor.
    pub(crate) fn find(&self, params: &Params, last: Option<&[Price]>) -> Vec<Found> {
        self.split.parts.par_iter().map(|part| self.price(part, params, last)).collect()
    }

    /// Prices of the whole book from those of its parts.
    pub(crate) fn join(&self, found: &[Found], last: Option<&[Price]>) -> Prices {
        let prices: Vec<&[f64]> = found.iter().map(|found| &found.prices[..]).collect();
        let unsolved = self.split.parts.iter().zip(found).filter_map(|(part, found)| {
            let assets = || part.assets.iter().map(|asset| AssetId(*asset)).collect();
            found.unsolved.map(|reason| Obstacle { reason, assets: assets(), proof: None })
        });
        Prices {
            valuations: self.split.join(&prices, last),
            iterations: found.iter().map(|found| found.iterations).sum(),
            demand_queries: found.iter().map(|found| found.queries).sum(),
            imbalance: found.iter().map(|found| found.imbalance).fold(0.0, f64::max),
            interior_parts: found.iter().filter(|found| found.is_interior).count() as u32,
            looks: found.iter().map(|found| found.looks).sum(),
            unsolved: unsolved.collect(),
        }
    }

    /// Prices of one part.
    pub(crate) fn price(&self, part: &Part, params: &Params, last: Option<&[Price]>) -> Found {
        let last = last.map(|last| part.of_part(last).into_iter().map(approx).collect::<Vec<f64>>());
        let view = PartView { book: self.book, supply: &self.supply, params, part };
        if params.solver == Solver::Tatonnement {
            return tatonnement(view, Target::new(params), newton_start(view, last.as_deref()));
        }
        let most = self.budget(part, params);
        if part.offers(self.book) < THICK * part.assets.len() {
            return price_thin(view, most);
        }
        price_thick(view, last, most)
    }

    /// The looks that all attempts at prices of `part` may spend together.
    pub(crate) fn budget(&self, part: &Part, params: &Params) -> u64 {
        params.budget.price_looks(part.assets.len(), part.offers(self.book))
    }
}

/// Prices of a thin part with at most `most` looks: the interior-point method, once more from where it ends in vain.
fn price_thin(view: PartView, most: u64) -> Found {
    let first = interior(view, &own_start(view), most / 2);
    let reached = first.prices.clone();
    first.then(most, |left| interior(view, &reached, left))
}

/// Prices of a thick part: Newton's method first, from earlier prices if there are any, and then at most `most` looks
/// of the interior-point method.
fn price_thick(view: PartView, last: Option<Vec<f64>>, most: u64) -> Found {
    let pairs = view.part.pairs.len() as u64;
    let newton = ((most as f64 * NEWTON) as u64).max(NEWTON_PAIR * pairs);
    let warm = match last.map_or(Err(0), |last| newton_warm(view, &last, newton / WARM)) {
        Ok(found) => return found,
        Err(looks) => looks,
    };
    let cold = newton_cold(view, newton);
    // What earlier prices cost in vain is reported, and is no loss to the search without them.
    let first = Found { looks: cold.looks + warm, ..cold };
    let (nearby, most) = (first.prices.clone(), most + first.looks);
    first
        .then(most, |left| interior(view, &nearby, (left as f64 * NEARBY) as u64))
        .then(most, |left| interior(view, &own_start(view), left))
}

/// The book's own initial prices.
fn own_start(view: PartView) -> Vec<f64> {
    start(&Demand::new(view.book, view.part, view.supply))
}

/// Prices of one part by Newton's method, from the book's own.
fn newton_cold(view: PartView, most: u64) -> Found {
    let demand = &mut Demand::new(view.book, view.part, view.supply);
    let start = start(demand);
    newton(Target::new(view.params), demand, start, most)
}

/// Where Newton's method starts: at the earlier prices, or these mended, if they are nearer to balance than the book's
/// own.
fn newton_start(view: PartView, last: Option<&[f64]>) -> Vec<f64> {
    let demand = &mut Demand::new(view.book, view.part, view.supply);
    let start = start(demand);
    let earlier = last.into_iter().flat_map(|last| mended(last, &start).into_iter().chain([last.to_vec()]));
    nearest(Target::new(view.params), demand, &start, earlier).unwrap_or(start)
}

/// Of these prices those that are nearest to balance, if they are nearer than `start`.
fn nearest(
    target: Target,
    demand: &mut Demand,
    start: &[f64],
    others: impl Iterator<Item = Vec<f64>>,
) -> Option<Vec<f64>> {
    let mut nearest: Option<Vec<f64>> = None;
    for other in others {
        if is_nearer(target, demand, &other, nearest.as_deref().unwrap_or(start)) {
            nearest = Some(other);
        }
    }
    nearest
}

/// Prices of one part by Newton's method from those of the last batch, or from these where the book contradicts them
/// mended: a few steps, or more from those that are nearer to balance than the book's own.
///
/// # Errors
/// The looks spent, if that does not suffice.
fn newton_warm(view: PartView, last: &[f64], most: u64) -> Result<Found, u64> {
    let target = Target::new(view.params);
    let demand = &mut Demand::new(view.book, view.part, view.supply);
    if let Some(found) = again(target, demand, last, most) {
        return Ok(found);
    }
    let start = start(demand);
    let mended = mended(last, &start);
    if let Some(found) = mended.as_ref().and_then(|mended| again(target, demand, mended, most)) {
        return Ok(found);
    }
    let nearest = nearest(target, demand, &start, mended.into_iter().chain([last.to_vec()]));
    let looks = demand.looks;
    let found = nearest.map(|nearest| newton(target, demand, nearest, most)).ok_or(looks)?;
    if found.is_settled() { Ok(found) } else { Err(found.looks) }
}
