//! What the price computations have in common.

use crate::amounts::{Amounts, amounts_of};
use crate::book::{Book, Params};
use crate::demand::Band;
use crate::market::Part;
use crate::supply::Supply;
use primitives::Price;

/// Which parts of the band from μ to ε the attempts leave free for rounding, at the end of μ and at that of ε.
pub(crate) const ATTEMPTS: [(f64, f64); 6] =
    [(0.0, 0.125), (0.1, 0.225), (0.2, 0.325), (0.3, 0.425), (0.4, 0.525), (0.0, 0.5)];

/// What is asked of a price computation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) epsilon: f64,
    pub(crate) mu: f64,
    /// By how much the band in which offers trade in part stops short of ε, because a partial fill at the very limit
    /// of its offer would break that limit by rounding.
    inset: f64,
    /// Whether this is the first attempt.
    pub(crate) first: bool,
}

impl Target {
    /// What `params` ask for, at the band of one of [`ATTEMPTS`].
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

/// What a price computation came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// One price for each asset of the part, up to a common factor.
    pub(crate) prices: Vec<f64>,
    pub(crate) iterations: u32,
    pub(crate) queries: u32,
    /// The largest relative imbalance of the smoothed demand.
    pub(crate) imbalance: f64,
    /// Whether the prices meet the stop test.
    pub(crate) solved: bool,
}

/// One part of the market, ready to be asked for amounts.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) book: &'a Book<'a>,
    pub(crate) supply: &'a Supply<'a>,
    pub(crate) params: &'a Params,
    pub(crate) part: &'a Part,
}

impl Scene<'_> {
    /// Valuations of all assets of the book: `prices` for those of this part, scaled into the range, 1 elsewhere.
    pub(crate) fn valuations(&self, prices: &[f64]) -> Vec<Price> {
        let most = prices.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let least = prices.iter().copied().fold(f64::MAX, f64::min);
        let scale = 1.0 / (most.sqrt() * least.sqrt());
        let mut result = vec![Price::ONE; self.book.assets as usize];
        for (asset, price) in self.part.assets.iter().zip(prices) {
            let value = (price * scale).clamp(1e-18, 9.9e17);
            result[*asset as usize] = Price::from_f64(value).expect("within the range of prices");
        }
        result
    }

    /// The amounts that this part trades at `prices`.
    pub(crate) fn amounts(&self, prices: &[f64]) -> Amounts {
        let pairs = self.part.pairs.iter().map(|pair| pair.index as usize).collect();
        amounts_of(self.book, self.supply, self.params, &self.valuations(prices), pairs)
    }
}
