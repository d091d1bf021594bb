//! One pair as the amount step sees it: bounds, pay-outs, and what its fills can execute.

use primitives::{Amount, MAX_ISSUED, Price};

use crate::book::{Book, Params};
use crate::fills::{Use, fills, partial, usable};
use crate::rate::{Rate, must_fill};
use crate::supply::{Curve, Place, Supply};
use crate::threshold::Threshold;

/// U ends this part of the band from ε to μ short of the rate. Offers there gain next to nothing, and a partial fill of
/// one breaks its limit by rounding unless it is large.
const MARGIN: f64 = 64.0;

/// One pair with something to trade.
pub(crate) struct Arc<'a> {
    /// Position in the book.
    pub(crate) pair: usize,
    pub(crate) sell: usize,
    pub(crate) buy: usize,
    pub(crate) rate: Rate,
    curve: Curve<'a>,
    /// L and U, in units of the sold asset.
    pub(crate) low: Amount,
    pub(crate) high: Amount,
    /// The offers between L and U.
    pub(crate) band: (Place, Place),
    /// Units sold.
    pub(crate) sold: Amount,
    /// By how much the pay-outs of the first L units fall short of [`Rate::payout_bound`], as far as known.
    pub(crate) credit: u128,
}

impl Arc<'_> {
    /// An upper bound of what the offers are paid when `sold` units trade; it never falls as `sold` grows.
    pub(crate) fn paid_at(&self, sold: Amount) -> u128 {
        let bound = self.rate.payout_bound(sold);
        if sold < self.low { bound.min(self.paid_at(self.low)) } else { bound - self.credit }
    }

    /// Lets go of what must execute.
    pub(crate) fn drop_bound(&mut self) {
        (self.low, self.credit, self.band.0) = (0, 0, Place::default());
    }

    pub(crate) fn paid(&self) -> u128 {
        self.paid_at(self.sold)
    }

    /// The most that may be sold if pay-outs are to stay within `bound`.
    pub(crate) fn most_within(&self, bound: u128) -> Amount {
        let credit = if bound >= self.paid_at(self.low) { self.credit } else { 0 };
        self.rate.most_within(bound.saturating_add(credit))
    }

    /// What fills can give from `sold` up: not always the least, as ever larger steps are tried.
    pub(crate) fn executable_above(&self, book: &Book, sold: Amount) -> Amount {
        let mut aim = sold.min(self.high);
        for step in 0..u128::BITS - 1 {
            let got = self.executable(book, aim);
            if got >= sold || aim == self.high {
                return got;
            }
            let more = (1u128 << step) - 1;
            aim = self.most_within(self.paid_at(aim).saturating_add(more)).saturating_add(1).clamp(aim, self.high);
        }
        self.executable(book, self.high)
    }

    /// The most of `sold` units that fills can give.
    pub(crate) fn executable(&self, book: &Book, sold: Amount) -> Amount {
        let pair = &book.pairs[self.pair];
        if sold < self.low || self.rate.payout_bound(sold) > u128::from(MAX_ISSUED) {
            return fills(pair, &self.rate, sold).sold;
        }
        if sold == self.high {
            return sold;
        }
        let mut rest = sold - self.low;
        for (limit, amount) in self.curve.between(self.band.0, self.band.1) {
            match usable(&self.rate, limit, amount) {
                Use::Nothing => {}
                Use::Full(_) if amount <= rest => rest -= amount,
                _ => return sold - rest + partial(&self.rate, limit, amount.min(rest)).map_or(0, |p| p.sold),
            }
        }
        sold - rest
    }
}

/// The bounds of one pair; `None` where nothing can trade.
pub(crate) fn arc<'a>(
    book: &Book,
    supply: &'a Supply,
    params: &Params,
    valuations: &[Price],
    pair: usize,
) -> Option<Arc<'a>> {
    let (offers, curve) = (&book.pairs[pair], supply.curve(pair));
    let (sell, buy) = (valuations[offers.sell.0 as usize], valuations[offers.buy.0 as usize]);
    let rate = Rate::new(sell, buy, params.epsilon);
    let gross = rate.to_f64() / (1.0 - params.epsilon.to_f64());
    let gap = (params.mu.to_f64() - params.epsilon.to_f64()) / MARGIN * gross;
    let end = curve.place(Threshold::new(rate.to_f64() - gap));
    if end == Place::default() {
        return None;
    }
    let must = |limit| must_fill(limit, params.mu, sell, buy);
    let begin = curve.place_exactly((1.0 - params.mu.to_f64()) * gross, must);
    let low = curve.amount(begin) - curve.unusable(&rate, Place::default(), begin);
    let high = low + (curve.amount(end) - curve.amount(begin)) - curve.unusable(&rate, begin, end);
    (high > 0).then_some(Arc {
        pair,
        sell: offers.sell.0 as usize,
        buy: offers.buy.0 as usize,
        rate,
        curve,
        low,
        high,
        band: (begin, end),
        sold: high,
        credit: 0,
    })
}
