//! Prices by an interior-point method on the convex program of Devanur, Garg and Végh (2016), for linear exchange
//! markets: the strategy of SPEEDEX appendix F.1.
//!
//! # The program
//!
//! Offer k sells up to e units of A for B at limit l. With ln-prices x, its *margin* is s = x_A − x_B − ln l, and its
//! offered value V = e·p_A. Over prices and traded values y the program is
//!
//! minimise Σ V·max(0, s) + Σ y·ln l, subject to 0 ≤ y ≤ V and, for each asset, value sold = value bought.
//!
//! In a circulation Σ y·(x_A − x_B) = 0, so that the objective is Σ V·max(0, s) − y·s: what offers in the money leave
//! untraded, plus what others trade at a loss. It is never negative, and 0 exactly where every offer with s > 0 trades
//! in full and every offer with s < 0 not at all: a full clearing without smoothing. There always is one, as a part is
//! strongly connected. Each limit is raised to the middle of the band from ε to μ, l / (1 − (ε+μ)/2). So prices that
//! are off by less than half of the band are still full. Offers at the margin lie deep enough in the band to trade in
//! part.
//!
//! # The method
//!
//! Unknowns are x and, for each offer, the share f that is filled, g = 1 − f, and the two sides of its margin, s = s⁺ −
//! s⁻. On the *central path* V·f·s⁻ = V·g·s⁺ = τ, equal values for all offers. At each τ > 0 this makes f a function of
//! s that rises strictly from 0 to 1. So demand has gross substitutes and slopes everywhere. By an irreducible
//! M-matrix, prices on the path are unique but for their scale, and smooth in τ. As τ falls to 0 the objective does, by
//! at most τ for each offer and side, and every limit point is a solution.
//!
//! Newton's method follows the path, as a predictor and a corrector with second-order terms (Mehrotra 1992). The
//! unknowns of each offer are eliminated one by one: df = θ·(dx_A − dx_B + …) with 1/θ = s⁺/g + s⁻/f. What remains is
//! one row for each asset, with V·(f+θ) and V·θ in the places where Newton's method on smoothed demand has the slopes
//! of a pair: again an M-matrix. `elimination` solves it without cancellation, however many decades θ spans.
//!
//! - **Beginning**: on the path at the initial prices, at a τ of the mean distance of offers from them, however far
//!   that is from balance.
//! - **Scaling**: shares, margins and logarithms have no unit. τ is relative to the mean over offers of what their
//!   assets can trade.
//! - **Step bound**: steps end inside of every bound and move no price by more than a factor e³, see `step`. While the
//!   value sold of an asset is far from that bought, τ does not fall.
//! - **Cost**: a few looks for each variable, and one elimination, each step. Thin books take 10 to 30 steps. The
//!   number of steps is bounded by [`STEPS`] and by the budget.
//! - **End**: as soon as the amount step finds full amounts, which it is asked whenever τ has become ten times
//!   smaller; or when τ is 0 for all purposes, and assets are conserved to a part of what trades or of one unit. Then a
//!   real-valued full clearing exists at these prices, and only whole units can be in the way: limits are raised to
//!   other places in the band, a different one for each offer, and the path is followed again from nearby.
//!
//! # Far from the margin
//!
//! What is far in or out of the money contributes a constant (the remark that ends §F.1). So adjacent offers of a pair
//! share one variable, at their mean limit, if their limits differ by less than an eighth of their distance from the
//! initial rate. At the margin, by less than a hundredth of the band. Where prices come to lie within a variable that
//! is too coarse, offers are divided anew around them, and the path goes on from there: at first when τ is
//! [`FINER_FIRST`], not only at its end. Sides of pools are smooth functions of prices and need no variables.
//!
//! # Deviations from the paper
//!
//! - **Prices are their own multipliers**: the program's multipliers of the conservation of value are the logarithms
//!   of prices at every solution, so that both are one unknown here, and no more than one row for each asset remains.
//! - **No line search and no proof of a number of steps**: Mehrotra's rule is a heuristic. In tens of thousands of thin
//!   books it always converged. Of books whose limits are spread over tens of decades, a few in a hundred use up their
//!   steps.
//! - **A public solver is not used**: the order of operations is fixed, so that every machine computes the same bits.

mod lots;
mod step;

use crate::amounts::{full_amounts, prepared};
use crate::book::Book;
use crate::budget::Allowance;
use crate::float::{exp, ln};
use crate::interior::lots::Lots;
use crate::interior::step::Step;
use crate::outcome::Reason;
use crate::range::{bound, is_at_end, to_price};
use crate::search::{Found, PartView};
use crate::supply::Supply;

/// Maximum number of steps from one start.
const STEPS: u32 = 400;
/// The least first τ.
const TAU_FIRST: f64 = 0.02;
/// The value of τ from which nearby prices are sought.
const TAU_NEAR: f64 = 1e-4;
/// The value of τ at which lots are divided anew for the first time, and its ratio from one time to the next.
const FINER_FIRST: f64 = 3e-3;
const FINER: f64 = 0.03;
/// The values of τ from which on amounts are computed: at first, and where whole units are sought.
const NARROW: f64 = 1e-5;
const NARROW_NEAR: f64 = 1e-8;
/// How often limits are raised to other places in the band.
const SHIFTS: u32 = 12;
/// Balance at a solution, and the steps that improve it.
const BALANCED_LAST: f64 = 1e-7;
const POLISH: u32 = 8;

/// What a search along the path has found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Prices with full amounts.
    Full,
    /// A solution of the program.
    Solved,
    /// Neither within the bounds.
    Spent,
}

/// Solves for prices from `start` with at most `most` looks; `unsolved` is `None` only if they have full amounts.
pub(crate) fn interior(view: PartView, start: &[f64], most: u64) -> Found {
    let (book, _) = view.part.alone(view.book);
    let links = (0..book.links()).collect();
    let alone = Alone { view, book: &book, supply: Supply::new(&book), links };
    let logs: Vec<f64> = start.iter().map(|price| ln(*price)).collect();
    let lots = Lots::new(view, &logs);
    let allowance = Allowance::new(most);
    let step = Step::new(view.part, lots.sides(view), view.params);
    let mut path = Path { alone, lots, step, logs, allowance, finer: FINER_FIRST };
    let end = path.search();
    path.found(end)
}

/// The amount step of the part as a book of its own.
struct Alone<'a> {
    view: PartView<'a>,
    book: &'a Book<'a>,
    supply: Supply<'a>,
    links: Vec<usize>,
}

/// A point on the way along the central path.
struct Path<'a> {
    alone: Alone<'a>,
    lots: Lots,
    step: Step<'a>,
    /// The logarithms of prices.
    logs: Vec<f64>,
    allowance: Allowance,
    /// The value of τ at which lots are looked at again.
    finer: f64,
}

impl Path<'_> {
    /// Follows the path, and then seeks whole units nearby.
    fn search(&mut self) -> End {
        self.centre(self.lots.mean_margin(&self.logs).max(TAU_FIRST));
        let end = self.follow(NARROW);
        if end == End::Solved { self.search_units() } else { end }
    }

    /// Looks for whole units at prices near a solution: limits are raised to other places in the band. Without
    /// success, the solution stays.
    fn search_units(&mut self) -> End {
        let solution = self.logs.clone();
        for number in 1..=SHIFTS {
            if self.allowance.is_spent() {
                break;
            }
            self.lots.shift(number);
            self.centre(TAU_NEAR);
            if self.follow(NARROW_NEAR) == End::Full {
                return End::Full;
            }
            self.logs.clone_from(&solution);
        }
        End::Solved
    }

    /// Follows the central path down, until there are full amounts, which are computed where τ is at most `narrow`.
    fn follow(&mut self, narrow: f64) -> End {
        /// The conservation of value that is needed then.
        const BALANCED: f64 = 1e-3;
        let mut asked = 1.0;
        for _ in 0..STEPS {
            self.step.measure(&self.lots, &self.logs);
            let Step { worst, mean, off, .. } = self.step;
            if worst < BALANCED && mean < narrow && mean < 0.1 * asked {
                asked = mean;
                if self.is_full() {
                    return End::Full;
                }
            }
            if self.step.is_at_end() && off < BALANCED_LAST {
                return self.polish();
            }
            if worst < BALANCED && mean < self.finer {
                self.finer = FINER * mean;
                if self.lots.split(self.alone.view, &self.logs) {
                    self.centre(mean);
                    continue;
                }
            }
            if !self.advance() {
                return End::Spent;
            }
        }
        End::Spent
    }

    /// Balances a solution to the last digit: where everything trades in full and there is hardly any commission, only
    /// exact prices balance whole units.
    fn polish(&mut self) -> End {
        const EXACT: f64 = 1e-15;
        for _ in 0..POLISH {
            let before = self.step.worst;
            if before < EXACT || !self.advance() {
                break;
            }
            self.step.measure(&self.lots, &self.logs);
            if self.step.worst > 0.5 * before {
                break;
            }
        }
        if self.is_full() { End::Full } else { End::Solved }
    }

    /// Puts all lots on the path at the current prices.
    fn centre(&mut self, tau: f64) {
        self.step.centre(&mut self.lots, &mut self.logs, tau);
        self.step.measure(&self.lots, &self.logs);
    }

    /// Goes one step, if the budget allows it and there is a direction.
    fn advance(&mut self) -> bool {
        if self.allowance.is_spent() || !self.step.advance(&mut self.lots, &mut self.logs) {
            return false;
        }
        self.allowance.spend(self.step.spent());
        true
    }

    /// Whether the part has full amounts at these prices.
    fn is_full(&mut self) -> bool {
        let mut prices = self.step.prices.clone();
        bound(&mut prices);
        let valuations: Vec<_> = prices.into_iter().map(to_price).collect();
        let Alone { view, book, supply, links } = &self.alone;
        let (full, spending) = match full_amounts(book, supply, view.params, &valuations, links) {
            Ok(amounts) => (true, amounts.spending),
            Err(spending) => (false, spending),
        };
        self.allowance.spend(prepared(book.links(), book.offers()) + spending.amount_looks);
        full
    }

    /// The prices as they are.
    fn found(self, end: End) -> Found {
        let mut prices: Vec<f64> = self.logs.iter().map(|log| exp(*log)).collect();
        bound(&mut prices);
        let unsolved = match end {
            End::Full => None,
            _ if is_at_end(&prices) => Some(Reason::Range),
            End::Solved => Some(Reason::Units),
            End::Spent => Some(Reason::Prices),
        };
        let (iterations, imbalance) = (self.step.steps, self.step.worst);
        let looks = self.allowance.spent;
        Found { prices, iterations, queries: iterations, imbalance, looks, unsolved, is_interior: true }
    }
}
