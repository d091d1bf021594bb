//! The search for whole units, or for a proof that there are none.
//!
//! Cases are divided until each is closed by a contradiction, or until the prices in the middle of one have full
//! amounts. The offer that leaves most value open is divided first: whether it sells at all, and then by halves.
//!
//! Hardly any prices have full amounts, and nearly all others contradict the conditions at once: amounts are computed
//! only where they do not. The amount step takes its own units; where it fails, the units of the case are tried if the
//! prices leave just one choice. Work is counted, see `budget`.

use std::ops::Range;

use primitives::{Amount, AssetId};

use super::{Case, Division, MOST_DIVISIONS, Model, RATES_PER_LOOK, UnitsProof};
use crate::book::{Book, Params};
use crate::budget::Allowance;
use crate::float::{exp, ln};

/// The most divisions one within the other.
const DEPTH: u32 = 100;

/// What a search ends with.
pub(super) enum Settled {
    /// Prices with full amounts: the last for which these were computed.
    Full,
    /// No clearing is full.
    Proved(UnitsProof),
    /// Neither was found.
    Open,
}

/// Whether prices of the assets, up to a common factor, have full amounts, and the looks spent on finding out. Units
/// sold of each pair between the assets may be given, and are tried instead of others.
pub(super) type AskAmounts<'a> = dyn FnMut(&[f64], Option<&[Amount]>) -> (bool, u64) + 'a;

/// Whether offers between `assets` have a full clearing.
pub(super) fn settle(
    book: &Book,
    params: &Params,
    assets: &[AssetId],
    allowance: &mut Allowance,
    amounts: &mut AskAmounts,
) -> Settled {
    let Some((model, mut all)) = Model::new(book, params, assets) else { return Settled::Open };
    let is_closed = model.narrow(&mut all).is_err();
    let case = all.clone();
    let mut search = Search { model: &model, all, divisions: Vec::new(), is_full: false, allowance, amounts };
    let is_closed = is_closed || search.close(case, DEPTH) == Some(true);
    match is_closed && search.divisions.len() <= MOST_DIVISIONS {
        _ if search.is_full => Settled::Full,
        true => Settled::Proved(UnitsProof { assets: assets.to_vec(), divisions: search.divisions }),
        false => Settled::Open,
    }
}

struct Search<'a, 'b> {
    model: &'a Model,
    /// The case of all.
    all: Case,
    divisions: Vec<Division>,
    /// Whether there are full amounts.
    is_full: bool,
    allowance: &'a mut Allowance,
    amounts: &'a mut AskAmounts<'b>,
}

impl Search<'_, '_> {
    /// Closes a case; false if some case stays open, `None` if the search ends.
    fn close(&mut self, case: Case, depth: u32) -> Option<bool> {
        let prices = self.model.prices(&case);
        self.is_full = self.has_amounts(&case, &prices);
        if self.is_full || self.is_spent() {
            return None;
        }
        let division = self.model.division(&case, &prices).filter(|_| depth > 0);
        let Some(division) = division else { return Some(false) };
        self.divisions.push(division);
        let mut is_closed = true;
        for mut half in case.divided(division) {
            if self.model.narrow(&mut half).is_ok() {
                is_closed &= self.close(half, depth - 1)?;
            }
        }
        Some(is_closed)
    }

    /// Whether there are full amounts at `prices`: any, or those of a case.
    fn has_amounts(&mut self, case: &Case, prices: &[f64]) -> bool {
        if self.model.at(prices, &self.all).is_none() {
            return false;
        }
        if self.ask(prices, None) {
            return true;
        }
        let left = self.model.at(prices, case).filter(|_| self.model.is_whole);
        let units = left.and_then(|left| self.model.units(&left));
        units.is_some_and(|units| self.ask(prices, Some(&units)))
    }

    fn ask(&mut self, prices: &[f64], units: Option<&[Amount]>) -> bool {
        let (is_full, looks) = (self.amounts)(prices, units);
        self.allowance.spend(looks);
        is_full
    }

    fn is_spent(&mut self) -> bool {
        self.allowance.spend(self.model.looks.replace(0));
        self.allowance.is_spent()
    }
}

impl Model {
    /// What `case` leaves at `prices`; `None` if they contradict the conditions.
    fn at(&self, prices: &[f64], case: &Case) -> Option<Case> {
        /// More than rounding can explain.
        const ROUNDED: f64 = 1.0 + 1e-13;
        let mut fixed = case.clone();
        for (a, rates) in fixed.rates.chunks_exact_mut(self.assets).enumerate() {
            let others = rates.iter_mut().zip(prices).enumerate().filter(|(b, _)| *b != a);
            others.for_each(|(_, (rate, price))| *rate = prices[a] / price * ROUNDED);
        }
        self.narrow(&mut fixed).ok().map(|()| fixed)
    }

    /// The units sold of each pair, if a case leaves no choice.
    fn units(&self, case: &Case) -> Option<Vec<Amount>> {
        let sold = |pair: &Range<usize>| case.sold[pair.clone()].iter().map(|sold| sold.0).sum();
        case.sold.iter().all(|sold| sold.0 == sold.1).then(|| self.pairs.iter().map(sold).collect())
    }

    /// The division of the offer of which most value is open: whether it sells at all, or the middle.
    fn division(&self, case: &Case, prices: &[f64]) -> Option<Division> {
        let middle = |(least, most): (u64, u64)| least + (most - least) / 2;
        let open = |(least, most): (u64, u64), asset: usize| (most - least) as f64 * prices[asset];
        let widest = |open: &dyn Fn(usize) -> f64| {
            let open = (0..self.offers.len()).map(|at| (at, open(at))).filter(|(_, open)| *open > 0.0);
            open.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(at, _)| at)
        };
        if let Some(at) = widest(&|at| open(case.sold[at], self.offers[at].sell)) {
            let most = if case.sold[at].0 == 0 { 0 } else { middle(case.sold[at]) };
            return Some(Division { offer: at as u32, is_paid: false, most });
        }
        let at = widest(&|at| open(case.paid[at], self.offers[at].buy))?;
        Some(Division { offer: at as u32, is_paid: true, most: middle(case.paid[at]) })
    }

    /// Prices within the bounds of a case: for each asset in turn, those halfway between the bounds of their ratios to
    /// it. The mean of all.
    fn prices(&self, case: &Case) -> Vec<f64> {
        let n = self.assets;
        let half = |a: usize, root: usize| 0.5 * ln(case.rates[a * n + root] / case.rates[root * n + a]);
        let mean = |a: usize| (0..n).map(|root| half(a, root)).sum::<f64>() / n as f64;
        self.spend(n * n / RATES_PER_LOOK);
        (0..n).map(|a| exp(mean(a))).collect()
    }
}
