//! The rule that turns an amount sold on a pair into fills of its offers (SPEEDEX §4.2).
//!
//! A clearing states a valuation p of every asset and the units sold on every ordered pair A/B. Both sides of this
//! rule are whole units: an offer that gives `sold` units of A receives `floor(sold · (1−ε) · p_A/p_B)` units of B,
//! and its limit price, in units of B per unit of A, is satisfied if `bought ≥ sold · limit`, exactly. [`Rate`]
//! contains both tests. [`fills()`] takes the offers of one pair, a rate and a number of units. It cannot fail: every
//! pair has fills at any rate and for any number of units. [`PairFills::sold`] is the number of units that the offers
//! can give.
//!
//! # The rule
//!
//! An offer is *eligible* when its whole amount and the pay-out for it satisfy its limit price, in integers and net
//! of commission. As pay-outs are whole units, an offer asks for its *effective limit*, `ceil(amount · limit) /
//! amount`, which differs from its limit price only for amounts of few units.
//!
//! The offers that a full clearing must fill are walked first, and then the others, each group in execution order. So
//! offers of more than a few units simply execute in the order of their limits. Eligible offers fill in full while
//! enough units remain; the first for which too few remain may fill in part, and ends the walk. The rest are skipped:
//! an amount so small that rounding the pay-out down breaks its limit leaves a *hole* in the walk.
//!
//! A partial fill gives its pay-out for the fewest units that earn it, and takes the largest pay-out at which the limit
//! price still holds. After [`PARTIAL_TRIES`] pay-outs that round badly the offer does not trade.
//!
//! An offer whose whole pay-out would exceed every unit that can exist is never filled in full, only in part. If it
//! must fill, the clearing is not full.
//!
//! # Properties
//!
//! - No offer receives less than its limit price, whatever the rate and the units.
//! - At most one offer of a pair trades in part. Its remainder rests or is returned, see [`crate::Minima`].
//! - Selling the units that were sold gives the same fills again.
//! - The cost is linear in the offers whose limits the rate reaches, and does not depend on those that rest beyond
//!   it.
//!
//! **Deviations from the paper**: SPEEDEX compares limits with the rate before commission and rounding, and orders
//! offers by limit price alone. Here both tests are net and in whole units, and offers that a full clearing must fill
//! come first, which differs from the order of limits only for amounts of few units.

use primitives::{Amount, MAX_ISSUED, Price};

use crate::book::PairBook;
use crate::rate::{PARTIAL_TRIES, Rate};

/// A partial fill; it ends the walk of its pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Position of the offer in its pair.
    pub index: usize,
    /// Units given, less than the offer's amount.
    pub sold: Amount,
    /// Units received.
    pub bought: Amount,
}

/// What trades on one pair: the first `full` offers except `holes` in full, and at most one in part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairFills {
    /// Offers `0..full` fill in full, except the holes.
    pub full: usize,
    /// Offers below `full` that do not fill in full, in order.
    pub holes: Vec<usize>,
    /// The offer that trades in part.
    pub partial: Option<Partial>,
    /// Total units sold.
    pub sold: Amount,
    /// Total units received; at most [`MAX_ISSUED`], otherwise the fills would not be possible.
    pub bought: u128,
}

/// How an offer can be used at some rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It may fill in full, for this pay-out.
    Full(Amount),
    /// Its whole pay-out exceeds every amount; it may fill in part.
    PartOnly,
    /// It cannot fill.
    Nothing,
}

/// How an offer of `amount` units at `limit` can be used.
pub(crate) fn usable(rate: &Rate, limit: Price, amount: Amount) -> Use {
    match rate.payout(amount) {
        None => Use::PartOnly,
        Some(bought) if Rate::fair(limit, amount, bought) => Use::Full(bought),
        Some(_) => Use::Nothing,
    }
}

/// The fills of `pair` when at most `sold` units of its sold asset trade at `rate`, which must be the rate of the
/// pair. [`PairFills::sold`] is the number of units that do trade.
pub fn fills(pair: &PairBook, rate: &Rate, sold: Amount) -> PairFills {
    let mut walk = Walk { rate, target: sold, fills: PairFills::default(), missed: Vec::new() };
    let mut waiting = Vec::new();
    let mut seen = 0;
    for (index, offer) in pair.leading(|limit| rate.sure.reaches(limit)).enumerate() {
        seen = index + 1;
        if !rate.must_fill(offer.0, offer.1) {
            waiting.push((index, offer));
        } else if !walk.meet(index, offer) {
            walk.missed.extend(waiting.into_iter().map(|(index, _)| index));
            return walk.end();
        }
    }
    // No offer beyond the rate can ever fill.
    let others = pair.leading(|limit| rate.reaches(limit)).enumerate().skip(seen);
    let mut waiting = waiting.into_iter();
    for (index, offer) in waiting.by_ref().chain(others) {
        if !walk.meet(index, offer) {
            break;
        }
    }
    walk.missed.extend(waiting.map(|(index, _)| index));
    walk.end()
}

/// Fills offers one by one.
struct Walk<'a> {
    rate: &'a Rate,
    target: Amount,
    fills: PairFills,
    /// Offers that were met or skipped and do not fill in full.
    missed: Vec<usize>,
}

impl Walk<'_> {
    /// Fills the offer at `index` as far as possible; false if it is the last.
    fn meet(&mut self, index: usize, (limit, amount): (Price, Amount)) -> bool {
        let rest = self.target - self.fills.sold;
        match usable(self.rate, limit, amount) {
            _ if rest == 0 => self.missed.push(index),
            Use::Full(bought) if amount <= rest => {
                self.fills.full = self.fills.full.max(index + 1);
                self.fills.sold += amount;
                self.fills.bought += u128::from(bought);
                return true;
            }
            Use::Nothing => {
                self.missed.push(index);
                return true;
            }
            _ => {
                self.missed.push(index);
                self.fills.partial = partial(self.rate, limit, amount.min(rest)).map(|p| Partial { index, ..p });
            }
        }
        false
    }

    fn end(self) -> PairFills {
        let Walk { mut fills, mut missed, .. } = self;
        missed.retain(|index| *index < fills.full);
        missed.sort_unstable();
        fills.holes = missed;
        if let Some(partial) = fills.partial {
            fills.sold += partial.sold;
            fills.bought += u128::from(partial.bought);
        }
        fills
    }
}

impl PairFills {
    /// Positions of the offers that fill in full, in order.
    pub fn full_offers(&self) -> impl Iterator<Item = usize> {
        let mut holes = self.holes.iter().peekable();
        (0..self.full).filter(move |index| holes.next_if_eq(&index).is_none())
    }

    /// Whether the offer at `index` fills in full.
    pub fn fills_in_full(&self, index: usize) -> bool {
        index < self.full && self.holes.binary_search(&index).is_err()
    }

    /// Every fill as (position, units sold, units received), in order. `pair` and `rate` as given to [`fills`].
    pub fn each<'a>(
        &'a self,
        pair: &'a PairBook<'a>,
        rate: &'a Rate,
    ) -> impl Iterator<Item = (usize, Amount, Amount)> + 'a {
        let offers = pair.offers().enumerate().take(self.end());
        let mut holes = self.holes.iter().peekable();
        offers.filter_map(move |(index, (_, amount))| {
            // The offer that trades in part is a hole, too.
            let hole = holes.next_if_eq(&&index).is_some();
            match self.partial.filter(|partial| partial.index == index) {
                Some(partial) => Some((index, partial.sold, partial.bought)),
                None if index >= self.full || hole => None,
                None => Some((index, amount, rate.payout(amount).expect("a full fill was paid"))),
            }
        })
    }

    /// The position after the last offer that trades.
    pub fn end(&self) -> usize {
        self.full.max(self.partial.map_or(0, |partial| partial.index + 1))
    }

    /// Number of offers that trade.
    pub fn executed(&self) -> usize {
        self.full - self.holes.len() + usize::from(self.partial.is_some())
    }
}

/// The largest fill of at most `rest` units that satisfies `limit`; its index is 0.
pub(crate) fn partial(rate: &Rate, limit: Price, rest: Amount) -> Option<Partial> {
    let most = rate.payout(rest).unwrap_or(MAX_ISSUED);
    let mut bought = most;
    while bought > 0 && most - bought < PARTIAL_TRIES {
        let sold = rate.net.fewest(bought);
        if rate.payout(sold).is_some() && Rate::fair(limit, sold, bought) {
            return Some(Partial { index: 0, sold, bought });
        }
        // Pay-outs between this and what one unit less earns are earned by the same units, and break the limit too.
        bought = rate.payout(sold - 1).map_or(bought - 1, |less| less.min(bought - 1));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::{AssetId, Fraction};
    use proptest::prelude::*;

    fn price(text: &str) -> Price {
        text.parse().expect("a price")
    }

    fn pair<'a>(limits: &'a [Price], amounts: &'a [Amount]) -> PairBook<'a> {
        PairBook::new(AssetId(0), AssetId(1), limits, amounts).expect("a proper pair")
    }

    /// The rule once more, without shortcuts: every offer in turn, every partial amount from the largest down.
    fn plainly(pair: &PairBook, rate: &Rate, target: Amount) -> Vec<(usize, Amount, Amount)> {
        let mut result = Vec::new();
        let mut rest = target;
        let all = || pair.offers().enumerate();
        let (first, second): (Vec<_>, Vec<_>) = all().partition(|(_, (limit, amount))| rate.must_fill(*limit, *amount));
        for (index, (limit, amount)) in first.into_iter().chain(second) {
            let Some(bought) = rate.payout(amount).filter(|b| limit.accepts(amount, *b)) else { continue };
            if amount <= rest {
                rest -= amount;
                result.push((index, amount, bought));
                continue;
            }
            let minimal = |s: &u64| rate.payout(*s) > rate.payout(s - 1) && limit.accepts(*s, rate.payout(*s).unwrap());
            let tries = rate.payout(rest).unwrap().saturating_sub(PARTIAL_TRIES);
            if let Some(s) = (1..=rest).rev().find(minimal).filter(|s| rate.payout(*s).unwrap() > tries) {
                result.push((index, s, rate.payout(s).unwrap()));
            }
            break;
        }
        result.sort_unstable();
        result
    }

    #[test]
    fn fills_in_order_with_one_partial() {
        let limits = [price("0.9"), price("0.905"), price("0.91"), price("0.92")];
        let rate = Rate::new(price("0.91"), Price::ONE, Fraction::ZERO, Fraction::power_of_two(10));
        // At 0.91, 10 units earn 9, which breaks the limit 0.905: a hole.
        let amounts = [100, 10, 100, 100];
        let got = fills(&pair(&limits, &amounts), &rate, 150);
        assert_eq!((got.full, got.holes.clone(), got.sold, got.bought), (1, vec![], 100, 91));
        let got = fills(&pair(&limits, &amounts), &rate, 200);
        assert_eq!((got.full, got.holes.clone(), got.sold, got.bought), (3, vec![1], 200, 182));
        assert_eq!(got.full_offers().collect::<Vec<_>>(), [0, 2]);
        let got = fills(&pair(&limits, &amounts), &rate, 50);
        assert_eq!(got.partial, Some(Partial { index: 0, sold: 50, bought: 45 }));
        // 51 units earn 46, but 51 is also the fewest that do.
        assert_eq!(fills(&pair(&limits, &amounts), &rate, 51).sold, 51);
    }

    #[test]
    fn an_offer_too_large_to_be_paid_fills_in_part() {
        let (limits, amounts) = ([Price::ONE], [MAX_ISSUED]);
        let rate = Rate::new(price("2"), Price::ONE, Fraction::ZERO, Fraction::power_of_two(10));
        let got = fills(&pair(&limits, &amounts), &rate, MAX_ISSUED);
        assert_eq!((got.full, got.sold, got.bought), (0, MAX_ISSUED / 2, u128::from(MAX_ISSUED - 1)));
        assert_eq!(fills(&pair(&limits, &amounts), &rate, 3).bought, 6);
    }

    /// The first two ask for more than can exist, so that they fill in part at most, and the third must fill. The first
    /// two are holes, and the first of them trades in part.
    #[test]
    fn a_hole_may_follow_the_offer_that_trades_in_part() {
        let limits = [price("1000000000"); 3];
        let amounts = [10_000_000_000, 10_000_000_000, 1];
        let rate = Rate::new(price("2000000000"), Price::ONE, Fraction::ZERO, Fraction::power_of_two(10));
        let pair = pair(&limits, &amounts);
        let got = fills(&pair, &rate, 1_000);
        assert_eq!((got.full, got.holes.clone(), got.partial.map(|p| p.index)), (3, vec![0, 1], Some(0)));
        let each: Vec<_> = got.each(&pair, &rate).map(|fill| (fill.0, fill.1)).collect();
        assert_eq!(each, [(0, 999), (2, 1)]);
    }

    proptest! {
        #[test]
        fn equals_the_plain_rule(
            mut offers in prop::collection::vec((800u64..1100, prop_oneof![1u64..200, 1u64..15]), 1..24),
            rate in 900u64..1100, target in 0u64..1500, epsilon in prop_oneof![Just(0u32), 5u32..20], mu in 1u32..5,
        ) {
            offers.sort_unstable();
            let limits: Vec<_> = offers.iter().map(|o| Price::from_f64(o.0 as f64 / 1000.0).unwrap()).collect();
            let amounts: Vec<_> = offers.iter().map(|o| o.1).collect();
            let epsilon = if epsilon == 0 { Fraction::ZERO } else { Fraction::power_of_two(epsilon) };
            let rate = Rate::new(Price::from_f64(rate as f64 / 1000.0).unwrap(), Price::ONE, epsilon,
                Fraction::power_of_two(mu));
            let pair = pair(&limits, &amounts);
            let got = fills(&pair, &rate, target);
            let each: Vec<_> = got.each(&pair, &rate).collect();
            prop_assert_eq!(&each, &plainly(&pair, &rate, target));
            prop_assert_eq!(got.executed(), each.len());
            for (index, _) in pair.offers().enumerate() {
                let full = each.iter().any(|fill| fill.0 == index) && got.partial.is_none_or(|p| p.index != index);
                prop_assert_eq!(got.fills_in_full(index), full);
            }
            prop_assert_eq!(got.sold, each.iter().map(|f| f.1).sum::<u64>());
            prop_assert_eq!(got.bought, each.iter().map(|f| u128::from(f.2)).sum::<u128>());
            // Selling what was sold gives the same fills.
            prop_assert_eq!(&fills(&pair, &rate, got.sold), &got);
        }
    }
}
