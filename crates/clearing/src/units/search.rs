//! The search for whole units, or for a proof that there are none.
//!
//! Cases are divided until each is closed by a contradiction, or until the prices in the middle of one have full
//! amounts. A division of which one case is closed at once is taken first, as nothing is left to prove there;
//! otherwise that which leaves least open. Work is counted, see `budget`.

use primitives::AssetId;

use super::{Case, Division, MOST_DIVISIONS, Model, UnitsProof};
use crate::book::{Book, Params};
use crate::budget::Allowance;
use crate::float::{exp, ln};

/// The most divisions one within the other, of which no case is closed at once.
const DEPTH: u32 = 24;

/// What a search ends with.
pub(super) enum Settled {
    /// Prices with full amounts: the last for which these were computed.
    Full,
    /// No clearing is full.
    Proved(UnitsProof),
    /// Neither was found.
    Open,
}

/// Whether offers between `assets` have a full clearing. `amounts` says whether prices of the assets, up to a
/// common factor, have full amounts, and the looks spent on finding out.
pub(super) fn settle(
    book: &Book,
    params: &Params,
    assets: &[AssetId],
    allowance: &mut Allowance,
    amounts: &mut dyn FnMut(&[f64]) -> (bool, u64),
) -> Settled {
    let Some((model, mut case)) = Model::new(book, params, assets) else { return Settled::Open };
    let mut search = Search { model: &model, divisions: Vec::new(), is_full: false, allowance, amounts };
    let is_closed = model.narrow(&mut case).is_err() || search.close(case, DEPTH) == Some(true);
    match is_closed {
        _ if search.is_full => Settled::Full,
        true => Settled::Proved(UnitsProof { assets: assets.to_vec(), divisions: search.divisions }),
        false => Settled::Open,
    }
}

struct Search<'a> {
    model: &'a Model,
    divisions: Vec<Division>,
    /// Whether there are full amounts.
    is_full: bool,
    allowance: &'a mut Allowance,
    amounts: &'a mut dyn FnMut(&[f64]) -> (bool, u64),
}

impl Search<'_> {
    /// Closes a case; false if some case stays open, `None` if the search ends.
    fn close(&mut self, case: Case, depth: u32) -> Option<bool> {
        let prices = self.model.prices(&case);
        let (is_full, looks) = (self.amounts)(&prices);
        self.allowance.spend(looks);
        if is_full {
            self.is_full = true;
            return None;
        }
        let mut best: Option<(f64, Division, [Case; 2])> = None;
        for division in self.model.divisions(&case) {
            if self.is_spent() {
                return None;
            }
            let [mut first, mut second] = case.clone().divided(division);
            let open = [&mut first, &mut second].map(|case| self.model.narrow(case).is_ok());
            if open != [true; 2] {
                self.divisions.push(division);
                return match open {
                    [false, false] => Some(true),
                    [true, _] => self.close(first, depth),
                    [_, true] => self.close(second, depth),
                };
            }
            let left = self.model.left(&first).max(self.model.left(&second));
            if best.as_ref().is_none_or(|best| left < best.0) {
                best = Some((left, division, [first, second]));
            }
        }
        let Some((_, division, [first, second])) = best.filter(|_| depth > 0) else { return Some(false) };
        self.divisions.push(division);
        Some(self.close(first, depth - 1)? & self.close(second, depth - 1)?)
    }

    fn is_spent(&mut self) -> bool {
        self.allowance.spend(self.model.looks.replace(0));
        self.allowance.is_spent() || self.divisions.len() == MOST_DIVISIONS
    }
}

impl Model {
    /// What a case leaves open: the logarithms of what units and rates may be.
    fn left(&self, case: &Case) -> f64 {
        /// How much more the width of a rate counts, and at most.
        const RATE: f64 = 1e3;
        const MOST: f64 = 20.0;
        let n = self.assets;
        let units = |(least, most): (u64, u64)| ln((most - least + 1) as f64);
        let left = |at: usize| {
            let offer = &self.offers[at];
            let wide = case.rates[offer.sell * n + offer.buy] * case.rates[offer.buy * n + offer.sell];
            match case.sold[at] {
                (_, 0) => 0.0,
                sold => units(sold) + units(case.paid[at]) + (RATE * ln(wide)).min(MOST),
            }
        };
        (0..self.offers.len()).map(left).sum()
    }

    /// Divisions that may help: whether an offer sells anything, whether it sells all, and the middle between.
    fn divisions(&self, case: &Case) -> Vec<Division> {
        let middle = |(least, most): (u64, u64)| least + (most - least) / 2;
        let mut result = Vec::new();
        for (at, (sold, paid)) in case.sold.iter().zip(&case.paid).enumerate() {
            let division = |is_paid: bool, most: u64| Division { offer: at as u32, is_paid, most };
            if sold.0 == sold.1 {
                result.extend((paid.0 < paid.1).then(|| division(true, middle(*paid))));
                continue;
            }
            let ends = [(sold.0 == 0).then_some(0), (sold.1 == self.offers[at].amount).then_some(sold.1 - 1)];
            let mut points: Vec<u64> = ends.into_iter().flatten().chain([middle(*sold)]).collect();
            points.sort_unstable();
            points.dedup();
            result.extend(points.into_iter().map(|most| division(false, most)));
        }
        result
    }

    /// Prices within the bounds of a case: for each asset in turn, those halfway between the bounds of their ratios
    /// to it; the mean of all.
    fn prices(&self, case: &Case) -> Vec<f64> {
        let n = self.assets;
        let half = |a: usize, root: usize| 0.5 * (ln(case.rates[a * n + root]) - ln(case.rates[root * n + a]));
        let mean = |a: usize| (0..n).map(|root| half(a, root) - half(0, root)).sum::<f64>() / n as f64;
        (0..n).map(|a| exp(mean(a))).collect()
    }
}
