//! Shared parts of the price computations.

use primitives::Price;

use crate::amounts::{Lack, amounts, full_amounts, prepared};
use crate::book::{Book, Params};
use crate::demand::Band;
use crate::market::Part;
use crate::outcome::Reason;
use crate::quality::unrealized_utility_ratio;
use crate::range::{bound, to_price};
use crate::rate::approx;
use crate::supply::Supply;

/// The parts of the band from μ to ε that each attempt keeps free for rounding, at the ends of μ and of ε. The deeper
/// offers are in the band, the more different amounts they can give in part.
pub(crate) const ATTEMPTS: [(f64, f64); 8] =
    [(0.0, 0.125), (0.0, 0.75), (0.1, 0.225), (0.02, 0.8), (0.0, 0.5), (0.2, 0.325), (0.04, 0.85), (0.3, 0.425)];

/// How often the prices of one attempt are moved according to the lack.
pub(crate) const MOVES: u32 = 4;

/// The task of a price computation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) epsilon: f64,
    pub(crate) mu: f64,
    /// How far the band in which offers trade in part stays away from ε, because a partial fill at the very limit of
    /// its offer would break that limit by rounding.
    inset: f64,
    /// Whether this is the first attempt.
    pub(crate) first: bool,
}

impl Target {
    /// The target of `params`, with the band of one of [`ATTEMPTS`].
    pub(crate) fn new(params: &Params, attempt: usize) -> Target {
        let (epsilon, mu) = (params.epsilon.to_f64(), params.mu.to_f64());
        let (width, (above, below)) = (mu - epsilon, ATTEMPTS[attempt]);
        Target { epsilon, mu: mu - width * above, inset: width * below, first: attempt == 0 }
    }

    /// The band from `mu` to where offers stop trading.
    pub(crate) fn band(&self, mu: f64) -> Band {
        Band { alpha: 1.0 - mu, beta: 1.0 - self.epsilon - self.inset }
    }
}

/// The result of a price computation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// One price for each asset of the part, up to a common factor.
    pub(crate) prices: Vec<f64>,
    pub(crate) iterations: u32,
    pub(crate) queries: u32,
    /// The largest relative imbalance of the smoothed demand.
    pub(crate) imbalance: f64,
    /// Looks spent.
    pub(crate) looks: u64,
    /// Why the prices do not meet the stopping condition; `None` if they do.
    pub(crate) unsolved: Option<Reason>,
}

/// One part of the market, with what is needed to ask for its amounts.
#[derive(Clone, Copy)]
pub(crate) struct PartView<'a> {
    pub(crate) book: &'a Book<'a>,
    pub(crate) supply: &'a Supply<'a>,
    pub(crate) params: &'a Params,
    pub(crate) part: &'a Part,
}

impl PartView<'_> {
    /// The valuations of the part alone, centred in the range.
    fn valuations(prices: &[f64]) -> Vec<Price> {
        let mut prices = prices.to_vec();
        bound(&mut prices);
        prices.into_iter().map(to_price).collect()
    }

    /// The result of `look` for the part as a separate book, at `prices`.
    fn alone<T>(&self, prices: &[f64], look: impl FnOnce(&Book, &Supply, &[Price]) -> T) -> T {
        let (book, _) = self.part.alone(self.book);
        look(&book, &Supply::new(&book), &PartView::valuations(prices))
    }

    /// The unrealized utility of this part at `prices`, divided by the realized one.
    pub(crate) fn missed(&self, prices: &[f64]) -> f64 {
        self.alone(prices, |book, supply, valuations| {
            let links: Vec<usize> = (0..book.links()).collect();
            let sold = amounts(book, supply, self.params, valuations, &links).0.sold;
            unrealized_utility_ratio(book, supply, valuations, &sold)
        })
    }

    /// Whether this part has full amounts at `prices`, and the looks spent on finding out.
    pub(crate) fn is_full(&self, prices: &[f64]) -> (bool, u64) {
        self.alone(prices, |book, supply, valuations| {
            let links: Vec<usize> = (0..book.links()).collect();
            match full_amounts(book, supply, self.params, valuations, &links) {
                Ok(amounts) => (true, prepared(book) + amounts.spending.amount_looks),
                Err((_, spending)) => (false, prepared(book) + spending.amount_looks),
            }
        })
    }
}

/// Prices near `valuations`: every short asset is made dearer by a little more than its shortage, as an auctioneer
/// would, and by at most a quarter of the band.
pub(crate) fn dearer(params: &Params, valuations: &[Price], lack: &Lack) -> Vec<Price> {
    let most = 0.25 * (params.mu.to_f64() - params.epsilon.to_f64());
    let price = |(valuation, lack): (&Price, &f64)| match *lack {
        lack if lack > 0.0 => to_price(approx(*valuation) * (1.0 + (1.25 * lack).min(most))),
        _ => *valuation,
    };
    valuations.iter().zip(lack).map(price).collect()
}
