//! Why an offer did or did not trade, as data and in words.
//!
//! The answer follows from the rule of `fills` alone: the offers of a pair fill in order, up to the units that the
//! clearing sells on the pair. So an offer that did not trade asks for more than the rate, cannot be paid its limit
//! in whole units, or is too far back in the order.

use std::fmt;

use primitives::{Amount, AssetId, Price};

use crate::book::{Book, PairBook, Params};
use crate::fills::{PairFills, Use, fills, usable};
use crate::market::Groups;
use crate::outcome::Clearing;
use crate::rate::Rate;

/// What happened to one offer of a cleared book.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The asset that the offer sells.
    pub sell: AssetId,
    /// The asset that it buys.
    pub buy: AssetId,
    /// Units of `sell` that it offers.
    pub amount: Amount,
    /// Its limit price, in units of `buy` per unit of `sell`.
    pub limit: Price,
    /// The rate p_sell/p_buy less commission, up to a few units in the last place.
    pub rate: f64,
    /// Number of offers of the pair that fill before it.
    pub offers_ahead: usize,
    /// Units that those offer.
    pub units_ahead: Amount,
    /// Units that the clearing sells on the pair.
    pub pair_sold: Amount,
    /// Units of `sell` that the offer gives.
    pub sold: Amount,
    /// Units of `buy` that it receives.
    pub bought: Amount,
    /// Whether a full clearing must fill it: there is a price, and [`Rate::must_fill`] is true.
    pub must_fill: bool,
    /// Why.
    pub why: TradeReason,
}

/// Why an offer trades as much as it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TradeReason {
    /// It trades in full.
    Full,
    /// It is the last offer of its pair to trade. With `missing` more units sold on the pair it would trade in full;
    /// `None` if its whole pay-out would exceed the units that can exist.
    Part {
        /// Units of `sell`.
        missing: Option<Amount>,
    },
    /// Nobody can pay it: no chain of offers leads back from the asset that it buys to the one that it sells, so that
    /// there is no price between them.
    NoCounterparty,
    /// It asks for more than the rate less commission.
    BeyondRate,
    /// Its limit is within the rate, but whole units cannot pay it: its pay-out, rounded down, falls one unit short.
    Rounding {
        /// Units of `buy` that its whole amount earns.
        earned: Amount,
        /// The fewest units that satisfy its limit.
        needed: Amount,
    },
    /// The units sold on the pair end before it. With `missing` more units sold on the pair it would trade in full;
    /// `None` if it, or an offer ahead of it, can only ever trade in part.
    NotReached {
        /// Units of `sell`.
        missing: Option<Amount>,
    },
}

impl TradeReason {
    /// A short name that identifies the reason for programs.
    pub const fn name(&self) -> &'static str {
        match self {
            TradeReason::Full => "full",
            TradeReason::Part { .. } => "part",
            TradeReason::NoCounterparty => "no counterparty",
            TradeReason::BeyondRate => "beyond rate",
            TradeReason::Rounding { .. } => "rounding",
            TradeReason::NotReached { .. } => "not reached",
        }
    }

    /// Additional units that would have to be sold for the offer to trade in full; `None` if that is not the reason,
    /// or no number of units would suffice.
    pub const fn missing(&self) -> Option<Amount> {
        match self {
            TradeReason::Part { missing } | TradeReason::NotReached { missing } => *missing,
            TradeReason::Full
            | TradeReason::NoCounterparty
            | TradeReason::BeyondRate
            | TradeReason::Rounding { .. } => None,
        }
    }
}

/// Explains what `clearing` does with the offer at `index` of the pair at position `pair` of `book`. Linear in the
/// pairs of the book and in the offers of the pair; [`Clearing::outcomes`] does it for all offers at once. `None` if
/// the book has no such offer, or the clearing has no valuation of its assets.
///
/// Assumes a correct clearing; [`crate::verify`] checks it.
pub fn explain(book: &Book, params: &Params, clearing: &Clearing, pair: usize, index: usize) -> Option<Explanation> {
    let pair = book.pairs.get(pair)?;
    let is_priced = Groups::of_book(book).are_one(pair.sell, pair.buy);
    let (limit, amount) = pair.offers().nth(index)?;
    let rate = clearing.rate(params, pair.sell, pair.buy)?;
    let got = fills(pair, &rate, clearing.sold(pair.sell, pair.buy));
    let (sold, bought) = match got.partial.filter(|partial| partial.index == index) {
        Some(partial) => (partial.sold, partial.bought),
        None if got.fills_in_full(index) => (amount, rate.payout(amount)?),
        None => (0, 0),
    };
    let ahead = || in_turn(pair, &rate).take_while(|(at, _)| *at != index);
    Some(Explanation {
        sell: pair.sell,
        buy: pair.buy,
        amount,
        limit,
        rate: rate.to_f64(),
        offers_ahead: ahead().count(),
        units_ahead: ahead().map(|(_, (_, amount))| amount).sum(),
        pair_sold: got.sold,
        sold,
        bought,
        must_fill: is_priced && rate.must_fill(limit, amount),
        why: if is_priced { reasons(pair, &rate, &got)[index] } else { TradeReason::NoCounterparty },
    })
}

/// Why each offer of `pair` trades as much as it does, by position, if the pair fills as in `got`.
pub(crate) fn reasons(pair: &PairBook, rate: &Rate, got: &PairFills) -> Vec<TradeReason> {
    let mut result = vec![TradeReason::BeyondRate; pair.len()];
    // Units that the pair must sell for this offer, and all ahead of it, to trade in full; `None` if no number
    // suffices.
    let mut reach = Some(0u64);
    for (index, (limit, amount)) in in_turn(pair, rate) {
        let using = usable(rate, limit, amount);
        reach = match using {
            Use::Full(_) => reach.and_then(|reach| reach.checked_add(amount)),
            Use::PartOnly => None,
            Use::Nothing => reach,
        };
        let missing = reach.and_then(|reach| reach.checked_sub(got.sold));
        result[index] = match (using, rate.payout(amount)) {
            _ if got.fills_in_full(index) => TradeReason::Full,
            _ if got.partial.is_some_and(|partial| partial.index == index) => TradeReason::Part { missing },
            _ if !rate.reaches(limit) => TradeReason::BeyondRate,
            // As the limit is within the rate, the next whole unit would satisfy it.
            (Use::Nothing, Some(earned)) => TradeReason::Rounding { earned, needed: earned + 1 },
            _ => TradeReason::NotReached { missing },
        };
    }
    result
}

/// The offers of `pair` in the order in which they fill, with their positions: first those that must fill, then the
/// others, each group in execution order.
fn in_turn<'a>(pair: &'a PairBook, rate: &'a Rate) -> impl Iterator<Item = (usize, (Price, Amount))> + 'a {
    let of_kind = |must: bool| {
        let all = pair.offers().enumerate();
        all.filter(move |(_, (limit, amount))| rate.must_fill(*limit, *amount) == must)
    };
    of_kind(true).chain(of_kind(false))
}

impl fmt::Display for Explanation {
    /// As [`Explanation::in_words`], with asset numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(|asset| format!("asset {asset}")))
    }
}

impl Explanation {
    /// One or two sentences; `name` gives the name of an asset.
    pub fn in_words(&self, name: impl Fn(AssetId) -> String) -> String {
        let Explanation { amount, limit, rate, sold, bought, pair_sold, .. } = self;
        let (sell, buy) = (name(self.sell), name(self.buy));
        let offer = format!("{amount} {sell} at {limit} {buy} or better");
        let ahead = match self.offers_ahead {
            0 => "no other comes before it".into(),
            1 => format!("one other, of {} {sell}, comes before it", self.units_ahead),
            count => format!("{count} others, of {} {sell} in all, come before it", self.units_ahead),
        };
        let more = |missing: &Option<Amount>| match missing {
            Some(missing) => format!("{missing} {sell} more would have to be sold on this pair"),
            None => "no larger sale on this pair could fill it, as pay-outs would exceed what can exist".into(),
        };
        match &self.why {
            TradeReason::Full => {
                format!("{offer}: trades in full and receives {bought} {buy}; after commission, the rate is {rate}.")
            }
            TradeReason::Part { missing } => format!(
                "{offer}: trades in part, {sold} {sell} for {bought} {buy}, as the last on its pair: {ahead}, and \
                 {pair_sold} {sell} are sold. For all of it, {}.",
                more(missing)
            ),
            TradeReason::NoCounterparty => format!(
                "{offer}: does not trade, as no chain of offers leads from {buy} back to {sell}: there is no price \
                 between them."
            ),
            TradeReason::BeyondRate => {
                let above = 100.0 * (limit.to_f64() / rate - 1.0);
                format!(
                    "{offer}: does not trade, as its limit is {above:.3} % above the rate after commission, {rate}."
                )
            }
            TradeReason::Rounding { earned, needed } => format!(
                "{offer}: does not trade, as whole units cannot pay its limit: at {rate} after commission it earns \
                 {earned} {buy}, and {needed} would satisfy it. A larger amount loses less to rounding."
            ),
            TradeReason::NotReached { missing } => {
                let due = if self.must_fill {
                    " Its limit is so far below the rate that it should trade, but other \
                    assets are in short supply: its group of assets is not full."
                } else {
                    ""
                };
                format!(
                    "{offer}: does not trade, as what is sold on its pair, {pair_sold} {sell}, ends before it: \
                     {ahead}. For it to trade in full, {}.{due}",
                    more(missing)
                )
            }
        }
    }
}
