//! Condition 4: the offers of a pair execute in their order.

use std::ops::Range;

use super::{Case, Crossed, Model, OUT, Offer};

impl Model {
    /// Narrows the units of all offers by the order in which those of a pair execute; whether any changed.
    pub(super) fn keep_order(&self, case: &mut Case) -> Result<bool, Crossed> {
        let mut changed = false;
        for pair in &self.pairs {
            changed |= self.stop_after_short(case, pair) | self.fill_before_last(case, pair);
            changed |= self.keep_one_in_part(case, pair)?;
        }
        Ok(changed)
    }

    /// After an offer that does not trade in full nothing trades, up to where limits are too close to tell.
    fn stop_after_short(&self, case: &mut Case, pair: &Range<usize>) -> bool {
        let (mut changed, mut short) = (false, f64::INFINITY);
        for at in pair.clone() {
            let (offer, sold) = (&self.offers[at], &mut case.sold[at]);
            if sold.1 > 0 && offer.rate >= short {
                (sold.1, changed) = (0, true);
            }
            if sold.1 < offer.amount {
                short = short.min(offer.effective());
            }
        }
        changed
    }

    /// Before an offer that trades all others trade in full, likewise.
    fn fill_before_last(&self, case: &mut Case, pair: &Range<usize>) -> bool {
        let (mut changed, mut last) = (false, 0.0f64);
        for at in pair.clone().rev() {
            let (offer, sold) = (&self.offers[at], &mut case.sold[at]);
            if sold.0 < offer.amount && offer.effective() <= last {
                (sold.0, changed) = (offer.amount, true);
            }
            if sold.0 > 0 {
                last = last.max(offer.rate);
            }
        }
        changed
    }

    /// Where one offer trades in part, the others trade in full or not at all.
    fn keep_one_in_part(&self, case: &mut Case, pair: &Range<usize>) -> Result<bool, Crossed> {
        let is_in_part = |at: &usize| case.sold[*at].0 > 0 && case.sold[*at].1 < self.offers[*at].amount;
        let one = pair.clone().find(is_in_part);
        let mut changed = false;
        for at in pair.clone() {
            let (amount, sold) = (self.offers[at].amount, &mut case.sold[at]);
            let before = *sold;
            if one.is_some_and(|one| one != at) {
                sold.0 = if sold.0 > 0 { amount } else { 0 };
                sold.1 = if sold.1 < amount { 0 } else { amount };
            }
            if sold.0 > sold.1 {
                return Err(Crossed);
            }
            changed |= before != *sold;
        }
        Ok(changed)
    }
}

impl Offer {
    /// An upper bound of the effective limit.
    fn effective(&self) -> f64 {
        self.asked.map_or(f64::INFINITY, |asked| asked as f64 / self.amount as f64 * (1.0 + OUT))
    }
}

#[cfg(test)]
mod tests {
    use primitives::AssetId;

    use super::*;
    use crate::{Params, SortedOffers};

    /// The case of three offers of asset 0 for asset 1, in order, and of one the other way.
    fn model(amount: u64) -> (Model, Case) {
        let offer = |sell, buy, limit: &str| {
            let limit = limit.parse().expect("a price");
            crate::Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit }
        };
        let offers = [offer(0, 1, "1"), offer(0, 1, "1.0001"), offer(0, 1, "1.0002"), offer(1, 0, "0.5")];
        let sorted = SortedOffers::new(2, &offers);
        Model::new(&sorted.book(), &Params::default(), &[AssetId(0), AssetId(1)]).expect("few offers")
    }

    #[test]
    fn offers_of_a_pair_execute_in_order() {
        let (model, mut case) = model(10_000);
        case.sold[1] = (1, 10_000);
        assert!(matches!(model.keep_order(&mut case), Ok(true)));
        assert_eq!(case.sold[..3], [(10_000, 10_000), (1, 10_000), (0, 10_000)]);
        case.sold[1] = (0, 9_999);
        assert!(matches!(model.keep_order(&mut case), Ok(true)));
        assert_eq!(case.sold[..3], [(10_000, 10_000), (0, 9_999), (0, 0)]);
        case.sold[2] = (1, 1);
        assert!(model.keep_order(&mut case).is_err());
    }

    /// Of 1,000 units the second offer asks for 1,001, which may be more than the rate pays where the third trades.
    #[test]
    fn limits_a_unit_apart_tell_no_order() {
        let (model, mut case) = model(1_000);
        case.sold[2] = (1, 1_000);
        assert!(matches!(model.keep_order(&mut case), Ok(true)));
        assert_eq!(case.sold[..3], [(1_000, 1_000), (0, 1_000), (1, 1_000)]);
        case.sold[1] = (0, 999);
        assert!(matches!(model.keep_order(&mut case), Ok(false)));
        assert_eq!(case.sold[2], (1, 1_000));
    }

    #[test]
    fn one_offer_of_a_pair_trades_in_part() {
        let (model, mut case) = model(1_000);
        (case.sold[0], case.sold[1]) = ((1_000, 1_000), (1, 999));
        assert!(matches!(model.keep_order(&mut case), Ok(false)));
        case.sold[2] = (7, 1_000);
        assert!(matches!(model.keep_order(&mut case), Ok(true)));
        assert_eq!(case.sold[..3], [(1_000, 1_000), (1, 999), (1_000, 1_000)]);
        case.sold[2] = (7, 999);
        assert!(model.keep_order(&mut case).is_err());
    }
}
