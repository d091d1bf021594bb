//! Shared parts of the price computations.

use primitives::Price;

use crate::amounts::{amounts, full_amounts, prepared};
use crate::band::Band;
use crate::book::{Book, Params};
use crate::market::Part;
use crate::outcome::Reason;
use crate::quality::unrealized_utility_ratio;
use crate::range::{bound, to_price};
use crate::supply::Supply;

/// The task of a price computation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) epsilon: f64,
    pub(crate) mu: f64,
    /// How far the band in which offers trade in part stays away from ε, because a partial fill at the very limit of
    /// its offer would break that limit by rounding.
    inset: f64,
}

impl Target {
    pub(crate) fn new(params: &Params) -> Target {
        /// The part of the band that is kept free for rounding.
        const INSET: f64 = 0.125;
        let (epsilon, mu) = (params.epsilon.to_f64(), params.mu.to_f64());
        Target { epsilon, mu, inset: (mu - epsilon) * INSET }
    }

    /// The task with a band that is narrower than required.
    pub(crate) fn narrowed(self) -> Target {
        /// The part of the band that is left.
        const NARROW: f64 = 0.4;
        Target { mu: self.epsilon + NARROW * (self.mu - self.epsilon), inset: NARROW * self.inset, ..self }
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
    /// Whether the interior-point method was asked.
    pub(crate) is_interior: bool,
}

impl Found {
    /// Whether no other search can find better prices: these are full, or only whole units are in the way.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.unsolved, None | Some(Reason::Units))
    }

    /// This result if it is settled or has spent `most`; otherwise together with that of `next`, which may spend what
    /// is left.
    pub(crate) fn then(self, most: u64, next: impl FnOnce(u64) -> Found) -> Found {
        let left = most.saturating_sub(self.looks);
        if self.is_settled() || left == 0 { self } else { self.or(next(left)) }
    }

    /// The result of a second search if that has settled the prices, otherwise of this one; with the work of both.
    pub(crate) fn or(self, second: Found) -> Found {
        let (iterations, queries) = (self.iterations + second.iterations, self.queries + second.queries);
        let looks = self.looks + second.looks;
        let is_interior = self.is_interior || second.is_interior;
        let better = if second.is_settled() { second } else { self };
        Found { iterations, queries, looks, is_interior, ..better }
    }
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
            let sold = amounts(book, supply, self.params, valuations, &links).sold;
            unrealized_utility_ratio(book, supply, valuations, &sold, &links)
        })
    }

    /// Whether this part has full amounts at `prices`, and the looks spent on finding out.
    pub(crate) fn is_full(&self, prices: &[f64]) -> (bool, u64) {
        self.alone(prices, |book, supply, valuations| {
            let links: Vec<usize> = (0..book.links()).collect();
            match full_amounts(book, supply, self.params, valuations, &links) {
                Ok(amounts) => (true, prepared(book.links(), book.offers()) + amounts.spending.amount_looks),
                Err(spending) => (false, prepared(book.links(), book.offers()) + spending.amount_looks),
            }
        })
    }
}
