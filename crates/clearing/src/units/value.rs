//! Condition 5: no surplus is worth more than what all offers together leave to the auctioneer.

use super::{Case, Crossed, Model, OUT, RATES_PER_LOOK};

/// Sums of doubles are increased by this part, which is more than rounding can explain.
const SUMMED: f64 = 1.0 + 1e-9;

impl Model {
    /// Narrows the units of all offers by the value of surpluses; whether any changed.
    pub(super) fn conserve_value(&self, case: &mut Case) -> Result<bool, Crossed> {
        if !self.is_whole {
            return Ok(false);
        }
        let mut room = self.most_surplus(case);
        for (offer, (sold, paid)) in self.offers.iter().zip(case.sold.iter().zip(&case.paid)) {
            room[offer.sell] -= i128::from(sold.0);
            room[offer.buy] += i128::from(paid.1);
        }
        if room.iter().any(|room| *room < 0) {
            return Err(Crossed);
        }
        let mut changed = false;
        for (offer, (sold, paid)) in self.offers.iter().zip(case.sold.iter_mut().zip(&mut case.paid)) {
            let (more, less) = (room[offer.sell], room[offer.buy]);
            changed |= more < i128::from(sold.1 - sold.0) || less < i128::from(paid.1 - paid.0);
            sold.1 = sold.0 + more.min(i128::from(sold.1 - sold.0)) as u64;
            paid.0 = paid.1 - less.min(i128::from(paid.1 - paid.0)) as u64;
        }
        Ok(changed)
    }

    /// The most units of each asset that what all offers leave is worth.
    fn most_surplus(&self, case: &Case) -> Vec<i128> {
        /// Far more units than can exist.
        const BEYOND: f64 = 1e25;
        let mut left = vec![0.0f64; self.assets];
        (0..self.offers.len()).for_each(|at| left[self.offers[at].buy] += self.most_left(case, at));
        let mut surplus = vec![0.0f64; self.assets];
        for (left, rates) in left.iter().zip(case.rates.chunks_exact(self.assets)).filter(|(left, _)| **left > 0.0) {
            self.spend(self.assets / RATES_PER_LOOK);
            surplus.iter_mut().zip(rates).for_each(|(surplus, rate)| *surplus += left * rate);
        }
        surplus.into_iter().map(|surplus| (surplus * SUMMED).min(BEYOND) as i128).collect()
    }

    /// The most that an offer leaves to the auctioneer, in units of the asset that it buys.
    fn most_left(&self, case: &Case, at: usize) -> f64 {
        let (offer, (_, most), (paid, _)) = (&self.offers[at], case.sold[at], case.paid[at]);
        if most == 0 {
            return 0.0;
        }
        let high = case.rates[offer.sell * self.assets + offer.buy] * (1.0 + OUT);
        let worth = most as f64 * high;
        let commission = worth * (1.0 - self.net) * SUMMED;
        let rounding = if most < offer.amount { high.min(1.0) } else { 1.0 };
        (worth - paid as f64).max(0.0).min(commission + rounding)
    }
}

#[cfg(test)]
mod tests {
    use primitives::AssetId;

    use super::*;
    use crate::{Offer, Params, SortedOffers};

    /// Two offers of asset 0 meet one of asset 1 at about par: what the one receives, the two sell.
    fn model(others: &[Offer]) -> (Model, Case) {
        let offer = |sell, buy, amount, limit: &str| Offer {
            sell: AssetId(sell),
            buy: AssetId(buy),
            amount,
            limit: limit.parse().expect("a price"),
        };
        let offers = [offer(0, 1, 8_000, "0.99"), offer(0, 1, 8_000, "0.999"), offer(1, 0, 10_000, "0.99")];
        let offers = [&offers[..], others].concat();
        let sorted = SortedOffers::new(3, &offers);
        let (model, mut case) =
            Model::new(&sorted.book(), &Params::default(), &[AssetId(0), AssetId(1)]).expect("few offers");
        (case.rates[1], case.rates[2]) = (1.0001, 1.0001);
        (case.sold[0], case.sold[2]) = ((8_000, 8_000), (10_000, 10_000));
        (case.paid[0], case.paid[2]) = ((7_998, 8_000), (9_998, 10_000));
        case.paid[1] = (0, 8_000);
        (model, case)
    }

    #[test]
    fn what_is_sold_and_not_paid_is_worth_no_more_than_what_offers_leave() {
        let (model, mut case) = model(&[]);
        assert!(matches!(model.conserve_value(&mut case), Ok(true)));
        assert_eq!(case.sold[1], (0, 2_003));
        assert_eq!(case.paid[1], (1_997, 8_000));
    }

    #[test]
    fn sales_that_nobody_is_paid_contradict_the_value_of_surpluses() {
        let (model, mut case) = model(&[]);
        case.sold[1] = (2_010, 2_010);
        assert!(model.conserve_value(&mut case).is_err());
    }

    /// An offer for a third asset may take whatever is left.
    #[test]
    fn the_value_of_surpluses_is_open_where_others_trade() {
        let other =
            |sell, buy| Offer { sell: AssetId(sell), buy: AssetId(buy), amount: 9_000, limit: primitives::Price::ONE };
        let (model, mut case) = model(&[other(0, 2), other(2, 0)]);
        case.sold[1] = (2_010, 2_010);
        assert!(matches!(model.conserve_value(&mut case), Ok(false)));
    }
}
