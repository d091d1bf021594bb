//! What the price computations have in common.

use crate::amounts::{Amounts, Lack, amounts_of, are_full, full_amounts, lack_of};
use crate::book::{Book, Params};
use crate::demand::Band;
use crate::market::Part;
use crate::outcome::Spending;
use crate::rate::approx;
use crate::supply::Supply;
use primitives::Price;

/// Which parts of the band from μ to ε the attempts leave free for rounding, at the end of μ and at that of ε. The
/// deeper offers stand in the band, the more amounts can they give in part.
pub(crate) const ATTEMPTS: [(f64, f64); 8] =
    [(0.0, 0.125), (0.0, 0.75), (0.1, 0.225), (0.02, 0.8), (0.0, 0.5), (0.2, 0.325), (0.04, 0.85), (0.3, 0.425)];

/// How often the prices of one attempt are moved by what is lacking.
const MOVES: u32 = 4;

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

/// What the amount step may spend on one clearing, and has spent.
pub(crate) struct Effort {
    pub(crate) spent: Spending,
    /// Price vectors that may be tried.
    most: u32,
}

impl Effort {
    /// The larger the book, one `among` so many, the fewer tries.
    pub(crate) fn of(book: &Book, among: usize) -> Effort {
        const OFFERS: usize = 20_000_000;
        let most = OFFERS / (book.offers() * among).max(1);
        Effort { spent: Spending::default(), most: most.clamp(8, 64) as u32 }
    }

    /// How many price vectors may still be tried.
    pub(crate) fn left(&self) -> u32 {
        self.most.saturating_sub(self.spent.tries)
    }

    pub(crate) fn add(&mut self, spending: Spending) {
        self.spent = self.spent.plus(spending);
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

    /// The amounts that this part trades at `prices`, full or not.
    pub(crate) fn amounts(&self, prices: &[f64]) -> Amounts {
        amounts_of(self.book, self.supply, self.params, &self.valuations(prices), self.links())
    }

    /// Number of offers of link `index`; none of a pool.
    pub(crate) fn offers(&self, index: usize) -> usize {
        self.book.pairs.get(index).map_or(0, |pair| pair.len())
    }

    fn links(&self) -> Vec<usize> {
        self.part.pairs.iter().map(|pair| pair.index as usize).collect()
    }

    /// What this part lacks at `prices`, `None` if it has full amounts there; and what it took to see that.
    pub(crate) fn lack(&self, prices: &[f64]) -> (Option<Lack>, Spending) {
        lack_of(self.book, self.supply, self.params, &self.valuations(prices), self.links())
    }

    /// Whether this part has full amounts at `prices`.
    pub(crate) fn is_full(&self, prices: &[f64]) -> bool {
        are_full(self.book, self.supply, self.params, &self.valuations(prices), self.links())
    }
}

/// Looks for full amounts at prices near `valuations`, at which there are none: whatever is short becomes dearer by a
/// little more than it lacks, as an auctioneer would have it, and by no more than a quarter of the band.
pub(crate) fn moved(
    book: &Book,
    supply: &Supply,
    params: &Params,
    mut valuations: Vec<Price>,
    mut lack: Lack,
    effort: &mut Effort,
) -> Option<(Vec<Price>, Amounts)> {
    let most = 0.25 * (params.mu.to_f64() - params.epsilon.to_f64());
    for _ in 0..MOVES.min(effort.left()) {
        for (valuation, lack) in valuations.iter_mut().zip(&lack).filter(|(_, lack)| **lack > 0.0) {
            let dearer = approx(*valuation) * (1.0 + (1.25 * lack).min(most));
            *valuation = Price::from_f64(dearer.min(9.9e17)).expect("within the range of prices");
        }
        match full_amounts(book, supply, params, &valuations) {
            Ok(amounts) => {
                effort.add(amounts.spending);
                return Some((valuations, amounts));
            }
            Err((still, spending)) => {
                effort.add(spending);
                lack = still;
            }
        }
    }
    None
}
