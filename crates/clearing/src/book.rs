//! The input of a clearing: the book of offers and the required approximation.

use primitives::{Amount, AssetId, ExactSide, Fraction, MAX_ISSUED, Price};
use rayon::prelude::*;

use crate::budget::Budget;
use crate::pool::{Pool, Side};
use crate::run::{RUN, Run, RunError, Total};

/// The offers of one ordered pair in execution order: by limit price, then by the caller's rank (the ledger ranks by
/// account and offer id).
#[derive(Clone, Debug)]
pub struct PairBook<'a> {
    /// The asset sold.
    pub sell: AssetId,
    /// The asset bought.
    pub buy: AssetId,
    /// The offers, cut into runs in any way; limits never fall from one run to the next. At least one run.
    pub runs: Vec<Run<'a>>,
}

/// All offers of one batch.
#[derive(Clone, Debug, Default)]
pub struct Book<'a> {
    /// Number of assets; their ids are `0..assets`.
    pub assets: u32,
    /// Pairs that have offers, sorted by (sell, buy), each at most once.
    pub pairs: Vec<PairBook<'a>>,
    /// Constant-product pools, in any order.
    pub pools: Vec<Pool>,
    /// Orders for exact amounts, in the order in which they are tried.
    pub exacts: Vec<ExactOrder>,
}

/// An order for an exact amount, filled in full or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactOrder {
    /// The asset sold.
    pub sell: AssetId,
    /// The asset bought.
    pub buy: AssetId,
    /// Which of the two `units` counts.
    pub side: ExactSide,
    /// Units bought of `buy`, or sold of `sell`; at least 1.
    pub units: Amount,
    /// The most units of `sell` to pay, or the fewest of `buy` to receive; at least 1.
    pub bound: Amount,
    /// A number of its owner, whose orders share tries; `None` if it has no other one.
    pub owner: Option<u32>,
}

/// One offer on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The asset sold.
    pub sell: AssetId,
    /// The asset bought.
    pub buy: AssetId,
    /// Units of `sell` offered.
    pub amount: Amount,
    /// Limit price in units of `buy` per unit of `sell`.
    pub limit: Price,
}

/// Offers sorted in the order of a [`Book`]: by pair, then limit price, then as given.
#[derive(Clone, Debug, Default)]
pub struct SortedOffers {
    assets: u32,
    /// The first offer of every pair, and the pair.
    pairs: Vec<(usize, AssetId, AssetId)>,
    limits: Vec<Price>,
    amounts: Vec<Amount>,
    rows: Vec<u32>,
}

impl SortedOffers {
    /// Sorts `offers` among assets `0..assets`.
    pub fn new(assets: u32, offers: &[Offer]) -> SortedOffers {
        let mut rows: Vec<u32> = (0..offers.len() as u32).collect();
        let offer = |row: &u32| &offers[*row as usize];
        rows.par_sort_unstable_by_key(|row| (offer(row).sell, offer(row).buy, offer(row).limit, *row));
        let mut pairs = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let pair = (offer(row).sell, offer(row).buy);
            if pairs.last().is_none_or(|(_, sell, buy)| (*sell, *buy) != pair) {
                pairs.push((index, pair.0, pair.1));
            }
        }
        let limits = rows.iter().map(|row| offer(row).limit).collect();
        let amounts = rows.iter().map(|row| offer(row).amount).collect();
        SortedOffers { assets, pairs, limits, amounts, rows }
    }

    /// The book of these offers: sums them up in runs of [`RUN`], on the current rayon pool.
    pub fn book(&self) -> Book<'_> {
        let ends = self.pairs.iter().skip(1).map(|pair| pair.0).chain([self.limits.len()]);
        let pairs: Vec<_> = self.pairs.iter().zip(ends).collect();
        let pair = |&(&(first, sell, buy), end): &(&(usize, AssetId, AssetId), usize)| {
            let runs = self.limits[first..end].chunks(RUN).zip(self.amounts[first..end].chunks(RUN));
            let run = |(limits, amounts)| Run { limits, amounts, total: Total::of_sorted(limits, amounts) };
            PairBook { sell, buy, runs: runs.map(run).collect() }
        };
        Book { assets: self.assets, pairs: pairs.par_iter().with_min_len(16).map(pair).collect(), ..Book::default() }
    }

    /// For each offer of the pair at `position` of the book, its position among the offers given.
    pub fn rows(&self, position: usize) -> &[u32] {
        let end = self.pairs.get(position + 1).map_or(self.rows.len(), |pair| pair.0);
        &self.rows[self.pairs[position].0..end]
    }
}

/// The price computation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Solver {
    /// Semismooth Newton with continuation in μ.
    #[default]
    Newton,
    /// Tâtonnement of SPEEDEX §5 and appendix C, for comparison.
    Tatonnement,
}

impl Solver {
    /// The name used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Solver::Newton => "newton",
            Solver::Tatonnement => "tatonnement",
        }
    }
}

/// The required approximation (SPEEDEX appendix B) and the solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Commission ε that the auctioneer keeps of every pay-out.
    pub epsilon: Fraction,
    /// μ: how far below the rate a limit price must be for its offer to execute in full.
    pub mu: Fraction,
    /// The price computation.
    pub solver: Solver,
    /// The budget of a clearing.
    pub budget: Budget,
}

impl Default for Params {
    /// ε = 2^-15, μ = 2^-10, Newton.
    fn default() -> Params {
        let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
        Params { epsilon, mu, solver: Solver::Newton, budget: Budget::default() }
    }
}

/// Why a book or its parameters cannot be cleared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// No price can satisfy μ ≤ ε: limits are net of ε, so the band between them would be empty.
    #[error("mu {mu} must be greater than epsilon {epsilon}")]
    Band {
        /// The commission.
        epsilon: Fraction,
        /// The band.
        mu: Fraction,
    },
    /// A pair trades an asset for itself.
    #[error("asset {0} is offered for itself")]
    SameAsset(AssetId),
    /// A pair names an asset that the book does not have.
    #[error("pair {sell}/{buy} names an asset outside 0..{assets}")]
    UnknownAsset {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
        /// Number of assets.
        assets: u32,
    },
    /// Pairs are out of order or repeated.
    #[error("pair {sell}/{buy} is repeated or out of order: sort pairs by (sell, buy)")]
    PairOrder {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
    },
    /// A pair has no offers, or not as many limits as amounts.
    #[error("pair {sell}/{buy} has {limits} limits and {amounts} amounts: give the same number, at least one")]
    Lengths {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
        /// Number of limit prices.
        limits: usize,
        /// Number of amounts.
        amounts: usize,
    },
    /// Limits fall within a pair.
    #[error("offer {index} of pair {sell}/{buy} has a lower limit than the one before: sort by limit price")]
    LimitOrder {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
        /// Position in the pair.
        index: usize,
    },
    /// An offer sells nothing.
    #[error("offer {index} of pair {sell}/{buy} sells nothing")]
    ZeroAmount {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
        /// Position in the pair.
        index: usize,
    },
    /// A pool trades an asset for itself, names an unknown one, or has no reserve of one.
    #[error("pool {0} needs two different assets of the book, with a reserve of each")]
    Pool(usize),
    /// An order for an exact amount is of nothing, pays with the asset that it buys, or names an unknown asset.
    #[error("exact order {0} needs two different assets of the book, and at least one unit of each")]
    ExactOrder(usize),
    /// The offers of one asset exceed the units that can exist.
    #[error("offers, pools and exact orders hold more than {MAX_ISSUED} units of asset {0}, more than can be issued")]
    TooMuch(AssetId),
    /// `last` does not contain one valuation per asset.
    #[error("{given} earlier valuations are given for {assets} assets: give one for each asset")]
    Last {
        /// Number of valuations given.
        given: usize,
        /// Number of assets.
        assets: u32,
    },
}

impl Params {
    /// Checks that the band between ε and μ is not empty.
    ///
    /// # Errors
    /// [`InputError::Band`].
    pub fn check(&self) -> Result<(), InputError> {
        let Params { epsilon, mu, .. } = *self;
        if mu > epsilon { Ok(()) } else { Err(InputError::Band { epsilon, mu }) }
    }
}

impl Book<'_> {
    /// Number of offers.
    pub fn offers(&self) -> usize {
        self.pairs.iter().map(PairBook::len).sum()
    }

    /// The position of pair `sell`/`buy` in [`Book::pairs`].
    pub fn position(&self, sell: AssetId, buy: AssetId) -> Option<usize> {
        self.pairs.binary_search_by_key(&(sell, buy), |pair| (pair.sell, pair.buy)).ok()
    }

    /// Checks every precondition in the docs of the fields, except those that [`Total::of`] has checked; linear in
    /// the number of runs.
    ///
    /// # Errors
    /// The first [`InputError`] in pair order.
    pub fn check(&self) -> Result<(), InputError> {
        let mut offered = vec![0u64; self.assets as usize];
        let mut before = None;
        let sums: Vec<_> = self.pairs.par_iter().with_min_len(64).map(PairBook::check_offers).collect();
        for (pair, sum) in self.pairs.iter().zip(sums) {
            let (sell, buy) = (pair.sell, pair.buy);
            if sell == buy {
                return Err(InputError::SameAsset(sell));
            }
            if sell.0.max(buy.0) >= self.assets {
                return Err(InputError::UnknownAsset { sell, buy, assets: self.assets });
            }
            if before.replace((sell, buy)) >= Some((sell, buy)) {
                return Err(InputError::PairOrder { sell, buy });
            }
            add(&mut offered, sell, sum?)?;
        }
        let known = |a: AssetId, b: AssetId| a != b && a.0.max(b.0) < self.assets;
        for (index, pool) in self.pools.iter().enumerate() {
            if !known(pool.a, pool.b) || pool.reserve_a.min(pool.reserve_b) == 0 {
                return Err(InputError::Pool(index));
            }
            add(&mut offered, pool.a, pool.reserve_a)?;
            add(&mut offered, pool.b, pool.reserve_b)?;
        }
        for (index, order) in self.exacts.iter().enumerate() {
            if !known(order.sell, order.buy) || order.units.min(order.bound) == 0 {
                return Err(InputError::ExactOrder(index));
            }
            add(&mut offered, order.sell, order.locks())?;
        }
        Ok(())
    }

    /// Number of links; a link sells one asset for another.
    pub(crate) fn links(&self) -> usize {
        self.pairs.len() + 2 * self.pools.len()
    }

    /// The assets that a link sells and buys. The links are the pairs, followed by both sides of every pool.
    pub(crate) fn link(&self, index: usize) -> (AssetId, AssetId) {
        match self.pairs.get(index) {
            Some(pair) => (pair.sell, pair.buy),
            None => {
                let side = self.side(index);
                (side.sell, side.buy)
            }
        }
    }

    /// The side of a pool that is link `index`.
    pub(crate) fn side(&self, index: usize) -> Side {
        let number = index - self.pairs.len();
        self.pools[number / 2].sides()[number % 2]
    }
}

/// Adds `units` to the amount offered of `asset`.
fn add(offered: &mut [Amount], asset: AssetId, units: Amount) -> Result<(), InputError> {
    let sum = &mut offered[asset.0 as usize];
    *sum = sum.checked_add(units).filter(|sum| *sum <= MAX_ISSUED).ok_or(InputError::TooMuch(asset))?;
    Ok(())
}

impl<'a> PairBook<'a> {
    /// The offers of one pair, cut into runs of [`RUN`] and summed up.
    ///
    /// # Errors
    /// [`InputError`] if there are none, if the numbers of limits and amounts differ, if they are out of order, or if
    /// one sells nothing.
    pub fn new(
        sell: AssetId,
        buy: AssetId,
        limits: &'a [Price],
        amounts: &'a [Amount],
    ) -> Result<PairBook<'a>, InputError> {
        if limits.len() != amounts.len() || limits.is_empty() {
            return Err(InputError::Lengths { sell, buy, limits: limits.len(), amounts: amounts.len() });
        }
        let runs = limits.chunks(RUN).zip(amounts.chunks(RUN)).enumerate();
        let run = |(at, (limits, amounts))| Run::new(limits, amounts).map_err(|e| e.in_pair(sell, buy, at * RUN));
        let pair = PairBook { sell, buy, runs: runs.map(run).collect::<Result<_, _>>()? };
        pair.check_offers()?;
        Ok(pair)
    }

    /// Number of offers.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.limits.len()).sum()
    }

    /// Whether there is no offer; a valid book has no such pair.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The offers as (limit, amount), in execution order.
    pub fn offers(&self) -> impl Iterator<Item = (Price, Amount)> + use<'a, '_> {
        self.runs.iter().flat_map(Run::offers)
    }

    /// The offers whose limit satisfies `is`, which must hold for a prefix of them; `is` is called for few limits of
    /// each run.
    pub(crate) fn leading(&self, is: impl Fn(Price) -> bool + Copy) -> impl Iterator<Item = (Price, Amount)> {
        let runs = self.runs.iter().take_while(move |run| is(run.total.first()));
        runs.flat_map(move |run| {
            let all = is(run.total.last());
            let end = if all { run.limits.len() } else { run.limits.partition_point(|limit| is(*limit)) };
            run.offers().take(end)
        })
    }

    /// Checks the runs; returns the total units that they sell.
    fn check_offers(&self) -> Result<Amount, InputError> {
        let (sell, buy) = (self.sell, self.buy);
        if self.runs.is_empty() {
            return Err(InputError::Lengths { sell, buy, limits: 0, amounts: 0 });
        }
        let (mut offers, mut total, mut before) = (0, 0u64, None);
        for run in &self.runs {
            let (limits, amounts) = (run.limits.len(), run.amounts.len());
            if limits != amounts || limits == 0 {
                return Err(InputError::Lengths { sell, buy, limits, amounts });
            }
            if before.replace(run.total.last()) > Some(run.total.first()) {
                return Err(InputError::LimitOrder { sell, buy, index: offers });
            }
            if run.total.least() == 0 {
                let index = offers + run.amounts.iter().position(|amount| *amount == 0).unwrap_or(0);
                return Err(InputError::ZeroAmount { sell, buy, index });
            }
            offers += limits;
            total = total.checked_add(run.total.amount()).ok_or(InputError::TooMuch(sell))?;
        }
        Ok(total)
    }
}

impl RunError {
    /// The corresponding input error for a run that begins with the offer `first` of a pair.
    fn in_pair(self, sell: AssetId, buy: AssetId, first: usize) -> InputError {
        match self {
            RunError::Lengths { limits, amounts } => InputError::Lengths { sell, buy, limits, amounts },
            RunError::LimitOrder { index } => InputError::LimitOrder { sell, buy, index: first + index },
            RunError::ZeroAmount { index } => InputError::ZeroAmount { sell, buy, index: first + index },
            RunError::TooMuch => InputError::TooMuch(sell),
        }
    }
}
