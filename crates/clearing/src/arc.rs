//! One pair, or one side of a pool, in the amount step: bounds, pay-outs, and what its fills can execute.

use std::sync::OnceLock;

use primitives::{Amount, MAX_ISSUED, Price};

use crate::book::{Book, PairBook, Params};
use crate::effective::WHOLE;
use crate::fills::{Use, fills, partial, usable};
use crate::pool::Side;
use crate::rate::Rate;
use crate::supply::{Curve, Place, Supply};
use crate::threshold::Threshold;

/// U excludes this part of the band from ε to μ below the rate. Offers there gain next to nothing, and a partial fill
/// of one breaks its limit by rounding unless it is large.
const MARGIN: f64 = 64.0;

/// What the fills of one arc give, and their exact pay-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) sold: Amount,
    pub(crate) paid: u128,
}

/// One link with something to trade.
pub(crate) struct Arc<'a> {
    /// The link of the book.
    pub(crate) link: usize,
    pub(crate) sell: usize,
    pub(crate) buy: usize,
    pub(crate) rate: Rate,
    seller: Seller<'a>,
    /// L and U, in units of the sold asset.
    pub(crate) low: Amount,
    pub(crate) high: Amount,
    /// Units sold.
    pub(crate) sold: Amount,
}

/// The seller.
enum Seller<'a> {
    Offers(Offers<'a>),
    Pool(Side),
}

/// The offers of one pair.
struct Offers<'a> {
    pair: &'a PairBook<'a>,
    curve: Curve<'a>,
    /// Units that must execute, whether or not L includes them.
    must: Amount,
    /// The end of the offers that may execute.
    end: Place,
    /// Number of offers in the band, and of all offers.
    near: u64,
    all: u64,
    /// Whether all offers before the band must execute.
    simple: bool,
    /// Computed on first use.
    choice: OnceLock<Choice>,
}

/// The offers of one pair that may execute but need not, in execution order, without those that cannot.
struct Choice {
    offers: Vec<(Price, Amount)>,
    /// What has been sold, and paid, before each of them, and at the end if all fill in full.
    before: Vec<Fill>,
}

impl Arc<'_> {
    /// Number of offers; 0 for a side of a pool.
    pub(crate) fn offers(&self) -> u64 {
        match &self.seller {
            Seller::Offers(offers) => offers.all,
            Seller::Pool(_) => 0,
        }
    }

    /// Number of offers that may execute.
    pub(crate) fn within(&self) -> u64 {
        match &self.seller {
            Seller::Offers(offers) => offers.curve.offers_before(offers.end) as u64,
            Seller::Pool(_) => 0,
        }
    }

    /// The cost, in looks, of finding what fills give of `sold` units.
    pub(crate) fn cost(&self, sold: Amount) -> u64 {
        const FEW: u64 = 4;
        match &self.seller {
            Seller::Offers(offers) => FEW + offers.read(&self.rate, sold) / 8,
            Seller::Pool(_) => FEW,
        }
    }

    /// An upper bound of the offers' pay-outs when `sold` units trade; it never falls as `sold` grows.
    pub(crate) fn paid_at(&self, sold: Amount) -> u128 {
        self.rate.net.payout_bound(sold)
    }

    pub(crate) fn paid(&self) -> u128 {
        self.paid_at(self.sold)
    }

    /// The most units that can be sold with pay-outs within `bound`.
    pub(crate) fn most_within(&self, bound: u128) -> Amount {
        self.rate.net.most_within(bound)
    }

    /// An amount from `sold` up that fills can give; not always the least, as the steps increase.
    pub(crate) fn executable_above(&self, sold: Amount) -> Amount {
        let mut aim = sold.min(self.high);
        for step in 0..u128::BITS - 1 {
            let got = self.executable(aim);
            if got >= sold || aim == self.high {
                return got;
            }
            let more = (1u128 << step) - 1;
            aim = self.most_within(self.paid_at(aim).saturating_add(more)).saturating_add(1).clamp(aim, self.high);
        }
        self.executable(self.high)
    }

    /// The most of `sold` units that fills can give.
    pub(crate) fn executable(&self, sold: Amount) -> Amount {
        match &self.seller {
            Seller::Offers(offers) => offers.executable(&self.rate, sold, self.high),
            Seller::Pool(side) => side.fill(&self.rate, sold.min(self.high)).0,
        }
    }

    /// The most of `sold` units that fills can give, and their exact pay-out.
    pub(crate) fn fill(&self, sold: Amount) -> Fill {
        let sold = self.executable(sold);
        Fill { sold, paid: self.paid_exactly(sold) }
    }

    /// The exact pay-out of the first `sold` units; fills must be able to give these.
    pub(crate) fn paid_exactly(&self, sold: Amount) -> u128 {
        match &self.seller {
            Seller::Offers(offers) if sold < offers.must => fills(offers.pair, &self.rate, sold).bought,
            Seller::Offers(offers) => offers.choice(&self.rate).fill(&self.rate, sold).paid,
            Seller::Pool(side) => side.fill(&self.rate, sold).1.into(),
        }
    }
}

impl Offers<'_> {
    /// Number of offers read to find what fills give of `sold` units.
    fn read(&self, rate: &Rate, sold: Amount) -> u64 {
        if self.is_walked(rate, sold) { self.all } else { self.near }
    }

    /// Whether offers are walked from the first to find what fills give of `sold` units.
    fn is_walked(&self, rate: &Rate, sold: Amount) -> bool {
        sold < self.must || rate.net.payout_bound(sold) > u128::from(MAX_ISSUED)
    }

    fn executable(&self, rate: &Rate, sold: Amount, high: Amount) -> Amount {
        if self.is_walked(rate, sold) {
            return fills(self.pair, rate, sold).sold;
        }
        if !self.simple {
            return self.choice(rate).fill(rate, sold).sold;
        }
        if sold == high {
            return sold;
        }
        let mut rest = sold - self.must;
        for (limit, amount) in self.optional(rate) {
            if rest == 0 {
                break;
            }
            match usable(rate, limit, amount) {
                Use::Nothing => {}
                Use::Full(_) if amount <= rest => rest -= amount,
                _ => return sold - rest + partial(rate, limit, amount.min(rest)).map_or(0, |p| p.sold),
            }
        }
        sold - rest
    }

    /// The offers that may execute but need not, in execution order.
    fn optional(&self, rate: &Rate) -> impl Iterator<Item = (Price, Amount)> {
        // Below this limit, an offer that asks for more than a few units must execute.
        let few = Threshold::new(rate.sure.to_f64() * (1.0 - 1.0 / WHOLE));
        let near = self.simple.then(|| self.curve.between(self.curve.place_near(self.end, few), self.end));
        let all = (!self.simple).then(|| self.pair.leading(|limit| rate.reaches(limit)));
        near.into_iter().flatten().chain(all.into_iter().flatten()).filter(|offer| !rate.must_fill(offer.0, offer.1))
    }

    fn choice(&self, rate: &Rate) -> &Choice {
        self.choice.get_or_init(|| {
            let surely = self.pair.leading(|limit| rate.sure.reaches(limit)).filter(|o| rate.must_fill(o.0, o.1));
            let paid = surely.map(|offer| u128::from(rate.payout(offer.1).unwrap_or(MAX_ISSUED))).sum();
            let mut sum = Fill { sold: self.must, paid };
            let (mut offers, mut before) = (Vec::new(), vec![sum]);
            for (limit, amount) in self.optional(rate) {
                let paid = match usable(rate, limit, amount) {
                    Use::Nothing => continue,
                    Use::Full(paid) => paid,
                    // It ends the walk.
                    Use::PartOnly => MAX_ISSUED,
                };
                sum = Fill { sold: sum.sold.saturating_add(amount), paid: sum.paid + u128::from(paid) };
                offers.push((limit, amount));
                before.push(sum);
                if paid == MAX_ISSUED {
                    break;
                }
            }
            Choice { offers, before }
        })
    }
}

impl Choice {
    /// What fills give of `sold` units; `sold` must be at least what must execute.
    fn fill(&self, rate: &Rate, sold: Amount) -> Fill {
        let full = self.before.partition_point(|before| before.sold <= sold) - 1;
        let part_only = |at: usize| rate.payout(self.offers[at].1).is_none();
        let full = if full > 0 && part_only(full - 1) { full - 1 } else { full };
        let before = self.before[full];
        let Some((limit, amount)) = self.offers.get(full) else { return before };
        let rest = (sold - before.sold).min(*amount);
        match partial(rate, *limit, rest) {
            Some(part) if rest > 0 => {
                Fill { sold: before.sold + part.sold, paid: before.paid + u128::from(part.bought) }
            }
            _ => before,
        }
    }
}

/// The bounds of one link of `book`; `None` if nothing can trade. `values` are the approximate valuations: for most
/// pairs of a large market they show at once that nothing can.
pub(crate) fn arc<'a>(
    book: &'a Book,
    supply: &'a Supply,
    params: &Params,
    valuations: &[Price],
    values: &[f64],
    link: usize,
) -> Option<Arc<'a>> {
    let (sell, buy) = book.link(link);
    if link < book.pairs.len() && supply.curve(link).is_beyond(values[sell.0 as usize] / values[buy.0 as usize]) {
        return None;
    }
    let rate = Rate::new(valuations[sell.0 as usize], valuations[buy.0 as usize], params.epsilon, params.mu);
    let (seller, low, high) = match book.pairs.get(link) {
        Some(pair) => {
            let (offers, high) = offers(pair, supply.curve(link), &rate)?;
            let low = offers.must;
            (Seller::Offers(offers), low, high)
        }
        None => {
            let side = book.side(link);
            let (low, high) = side.bounds(&rate);
            (Seller::Pool(side), low, high)
        }
    };
    (high > 0).then_some(Arc { link, sell: sell.0 as usize, buy: buy.0 as usize, rate, seller, low, high, sold: high })
}

/// The offers of one pair at `rate`, and U; `None` if none is within the rate.
fn offers<'a>(pair: &'a PairBook, curve: Curve<'a>, rate: &Rate) -> Option<(Offers<'a>, Amount)> {
    let (net, sure) = (rate.to_f64(), rate.sure.to_f64());
    // Limits up to here are certainly within the rate, so that only rounding can prevent their offers from filling.
    let begin = curve.place(Threshold::new(sure * (1.0 + 1e-12)));
    let end = curve.place_near(begin, Threshold::new(net - (net - sure) / MARGIN));
    if end == Place::default() {
        return None;
    }
    let is_usable = |limit, amount| usable(rate, limit, amount) != Use::Nothing;
    let must_fill = |limit, amount| rate.must_fill(limit, amount);
    let before = curve.amount(begin);
    let mut must = before - curve.not_at(&rate.sure, begin, must_fill);
    let payable = rate.net.payout_bound(must) <= u128::from(MAX_ISSUED);
    if !payable {
        // Some offer may ask for more than can exist, and so need not fill.
        must = curve.between(Place::default(), begin).filter(|o| must_fill(o.0, o.1)).map(|offer| offer.1).sum();
    }
    let high = curve.amount_from(begin, before, end) - curve.not_at(&rate.net, end, is_usable);
    let simple = payable && curve.is_plain();
    let all = curve.offers() as u64;
    let near = if simple { (curve.offers_before(end) - curve.offers_before(begin)) as u64 } else { all };
    Some((Offers { pair, curve, must, end, near, all, simple, choice: OnceLock::new() }, high))
}
