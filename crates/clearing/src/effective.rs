//! Supply by effective limits.
//!
//! Pay-outs are whole units, so an offer of few units asks for more than its limit price says: for `ceil(amount ·
//! limit)` units, which makes its *effective limit* `ceil(amount · limit) / amount`. The solvers place an offer at its
//! effective limit. Where that is far from its limit, the runs that the offer leaves and enters are replaced. All
//! others are used as they are, so the cost is proportional to the number of such offers.

use std::borrow::Cow;

use primitives::{Amount, Price};

use crate::book::PairBook;
use crate::rate::{approx, asked};
use crate::run::{RUN, Run, Total};

/// Offers that ask for at least this many units stay at their limits: their effective limits are at most a 4,096th
/// higher.
pub(crate) const WHOLE: f64 = 4096.0;

/// A run that belongs to the solvers.
pub(crate) struct Piece<'a> {
    limits: Cow<'a, [Price]>,
    amounts: Cow<'a, [Amount]>,
    total: Total,
}

/// The runs of one pair: those of the book, or with some replaced.
#[derive(Clone, Copy)]
pub(crate) enum Runs<'a> {
    Plain(&'a [Run<'a>]),
    Replaced(&'a [Piece<'a>]),
}

impl<'a> Runs<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Runs::Plain(runs) => runs.len(),
            Runs::Replaced(pieces) => pieces.len(),
        }
    }

    pub(crate) fn total(self, index: usize) -> &'a Total {
        match self {
            Runs::Plain(runs) => &runs[index].total,
            Runs::Replaced(pieces) => &pieces[index].total,
        }
    }

    /// The limits and the amounts of a run; `None` past the end.
    pub(crate) fn get(self, index: usize) -> Option<(&'a [Price], &'a [Amount])> {
        match self {
            Runs::Plain(runs) => runs.get(index).map(|run| (run.limits, run.amounts)),
            Runs::Replaced(pieces) => pieces.get(index).map(|piece| (&*piece.limits, &*piece.amounts)),
        }
    }
}

fn is_lumpy(limit: Price, amount: Amount) -> bool {
    amount as f64 * approx(limit) < WHOLE
}

/// The runs of `pair` with every offer at its effective limit; `None` if they are those of the book.
pub(crate) fn replaced<'a>(pair: &PairBook<'a>) -> Option<Vec<Piece<'a>>> {
    let has_lumps = |run: &&Run| is_lumpy(run.total.first(), run.total.least());
    let lumpy = pair.runs.iter().filter(has_lumps).flat_map(Run::offers).filter(|offer| is_lumpy(offer.0, offer.1));
    let mut moved: Vec<(Price, Amount)> = lumpy.map(|(limit, amount)| (effective(limit, amount), amount)).collect();
    if moved.is_empty() {
        return None;
    }
    moved.sort_unstable();
    let mut moved = moved.into_iter().peekable();
    let mut result = Vec::with_capacity(pair.runs.len());
    for (index, run) in pair.runs.iter().enumerate() {
        let last = index + 1 == pair.runs.len();
        let entering: Vec<_> =
            std::iter::from_fn(|| moved.next_if(|offer| last || offer.0 <= run.total.last())).collect();
        if entering.is_empty() && !has_lumps(&run) {
            let (limits, amounts) = (Cow::Borrowed(run.limits), Cow::Borrowed(run.amounts));
            result.push(Piece { limits, amounts, total: run.total });
            continue;
        }
        let mut offers: Vec<_> = run.offers().filter(|offer| !is_lumpy(offer.0, offer.1)).collect();
        offers.extend(entering);
        offers.sort_unstable();
        result.extend(offers.chunks(RUN).map(piece));
    }
    Some(result)
}

fn piece<'a>(offers: &[(Price, Amount)]) -> Piece<'a> {
    let (limits, amounts): (Vec<Price>, Vec<Amount>) = offers.iter().copied().unzip();
    // Offers that are at their effective limits need no further check.
    let others = offers.iter().filter(|offer| !is_lumpy(offer.0, offer.1)).map(|offer| offer.1);
    let total = Total::of_sorted(&limits, &amounts).with_least(others.min().unwrap_or(Amount::MAX));
    Piece { limits: Cow::Owned(limits), amounts: Cow::Owned(amounts), total }
}

/// The largest price up to the effective limit of an offer that asks for at most a few thousand units. At this price
/// it asks for the same number of units.
fn effective(limit: Price, amount: Amount) -> Price {
    let asked = asked(limit, amount);
    let scaled = |decade: i32| asked * 10u128.pow((16 - decade) as u32) / u128::from(amount);
    let decade = (limit.decade()..18).find(|decade| scaled(*decade) < 100_000_000_000_000_000).expect("a few thousand");
    Price::from_parts(scaled(decade) as u64, decade).expect("at least the limit, and less than it asks for")
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::AssetId;
    use proptest::prelude::*;

    fn any_offer() -> impl Strategy<Value = (Price, Amount)> {
        let mantissa = (1u64..100).prop_map(|m| if m < 10 { m * 10u64.pow(16) } else { m * 10u64.pow(15) });
        let limit = (mantissa, -4i32..4).prop_map(|(m, d)| Price::from_parts(m, d).expect("in range"));
        (limit, prop_oneof![1u64..10, 1u64..100_000_000])
    }

    proptest! {
        #[test]
        fn offers_stand_where_they_ask_to_be_paid(mut offers in prop::collection::vec(any_offer(), 1..300)) {
            offers.sort_unstable();
            let (limits, amounts): (Vec<_>, Vec<_>) = offers.iter().copied().unzip();
            let pair = PairBook::new(AssetId(0), AssetId(1), &limits, &amounts).unwrap();
            let mut plain: Vec<(Price, Amount)> = offers
                .iter()
                .map(|&(limit, amount)| if is_lumpy(limit, amount) { (effective(limit, amount),
                    amount) } else { (limit, amount) })
                .collect();
            plain.sort_unstable();
            match replaced(&pair) {
                None => prop_assert_eq!(&plain, &offers),
                Some(pieces) => {
                    let runs = Runs::Replaced(&pieces);
                    let all = (0..runs.len()).filter_map(|index| runs.get(index));
                    let mut got: Vec<_> = all.flat_map(|(l, a)| l.iter().copied().zip(a.iter().copied())).collect();
                    prop_assert!(got.is_sorted_by_key(|offer| offer.0));
                    got.sort_unstable();
                    prop_assert_eq!(&got, &plain);
                }
            }
        }

        #[test]
        fn the_effective_limit_asks_for_as_much(limit in (10_000_000_000_000_000u64..100_000_000_000_000_000,
            -18i32..4), amount in 1u64..1 << 62) {
            let limit = Price::from_parts(limit.0, limit.1).unwrap();
            if is_lumpy(limit, amount) {
                let to = effective(limit, amount);
                prop_assert!(to >= limit);
                prop_assert_eq!(asked(to, amount), asked(limit, amount));
            }
        }
    }

    #[test]
    fn ten_units_at_ninety_one_hundredths_ask_for_ten() {
        assert_eq!(effective("0.91".parse().unwrap(), 10), Price::ONE);
        assert_eq!(effective("0.9".parse().unwrap(), 10), "0.9".parse().unwrap());
    }
}
