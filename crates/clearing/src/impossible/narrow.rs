//! What amounts are possible in one zone.

use super::lane::Lane;
use super::zone::Zone;
use super::{Link, Proof};

/// Rounds of narrowing amounts in one zone.
const MOST_ROUNDS: usize = 60;
/// Sums of doubles are off by no more than this part of them.
const OFF: f64 = 1e-12;

impl Proof<'_> {
    /// Narrows what every pair can sell and be paid by what is left of each asset; true if some asset lacks what must be
    /// paid out of it.
    pub(super) fn narrow(&self, lanes: &mut [Lane]) -> bool {
        for _ in 0..MOST_ROUNDS {
            let (mut sold, mut paid) = (vec![0.0; self.center.len()], vec![0.0; self.center.len()]);
            for (link, lane) in self.links.iter().zip(lanes.iter()) {
                sold[link.sell] += lane.sold.1;
                paid[link.buy] += lane.paid.0;
            }
            let slack = |asset: usize| (sold[asset] + paid[asset]) * OFF + 1e-6;
            if (0..sold.len()).any(|asset| paid[asset] > sold[asset] + slack(asset)) {
                return true;
            }
            let mut changed = false;
            for (link, lane) in self.links.iter().zip(lanes.iter_mut()) {
                let Link { sell, buy, .. } = *link;
                changed |= lane.pay_at_most(sold[buy] - (paid[buy] - lane.paid.0) + slack(buy));
                changed |= lane.sell_at_least(paid[sell] - (sold[sell] - lane.sold.1) - slack(sell));
                if lane.sold.0 > lane.sold.1 + 0.5 + lane.sold.1 * OFF || lane.paid.0 > lane.paid.1 * (1.0 + OFF) + 0.5
                {
                    return true;
                }
            }
            if !changed {
                return false;
            }
        }
        false
    }

    /// Whether the assets on one side of some cut must pay out more than can be sold of them. Cuts run between assets that
    /// are dearer in `zone` than in the clearing and those that are less so.
    pub(super) fn is_cut(&self, zone: &Zone, lanes: &[Lane]) -> bool {
        let Some(base) = self.short.iter().position(|short| *short) else { return false };
        let prices: Vec<Option<f64>> = (0..self.center.len()).map(|asset| zone.middle(asset, base)).collect();
        let dearer = |asset: &usize| prices[*asset].map(|price| price / self.center[*asset]);
        let mut order: Vec<usize> = (0..prices.len()).filter(|asset| prices[*asset].is_some()).collect();
        order.sort_by(|a, b| dearer(a).partial_cmp(&dearer(b)).expect("prices are numbers"));
        let prices: Vec<f64> = prices.into_iter().map(Option::unwrap_or_default).collect();
        let back: Vec<usize> = order.iter().rev().copied().collect();
        [order, back].iter().any(|order| {
            let mut inside = vec![false; prices.len()];
            order.iter().any(|asset| {
                inside[*asset] = true;
                self.lacks(&inside, &prices, lanes)
            })
        })
    }

    /// Whether what is sold of the assets `inside` is worth less than what must be paid out of them.
    fn lacks(&self, inside: &[bool], prices: &[f64], lanes: &[Lane]) -> bool {
        let (mut left, mut moved) = (0.0, 0.0);
        for (link, lane) in self.links.iter().zip(lanes) {
            let worth = match (inside[link.sell], inside[link.buy]) {
                (false, false) => 0.0,
                (true, false) => prices[link.sell] * lane.sold.1,
                (false, true) => -prices[link.buy] * lane.paid.0,
                (true, true) => lane.gain(prices[link.sell], prices[link.buy]),
            };
            left += worth;
            moved += worth.abs();
        }
        left < -1e-9 * moved
    }
}

impl Lane {
    /// Lowers what is paid to `most`, and what is sold to what that allows; true if that says something new.
    fn pay_at_most(&mut self, most: f64) -> bool {
        if most >= self.paid.1 - 0.5 {
            return false;
        }
        self.paid.1 = most;
        let sold = self.most(most);
        let changed = sold < self.sold.1 - 0.5;
        self.sold.1 = self.sold.1.min(sold);
        changed
    }

    /// Raises what is sold to `least`, and what is paid to what that asks for; true if that says something new.
    fn sell_at_least(&mut self, least: f64) -> bool {
        if least <= self.sold.0 + 0.5 {
            return false;
        }
        self.sold.0 = least.ceil();
        let paid = self.least(self.sold.0);
        let changed = paid > self.paid.0 + 0.5;
        self.paid.0 = self.paid.0.max(paid);
        changed
    }
}
