//! Sets of price vectors: those whose ratios stay within bounds, one for each ordered pair of assets.

/// Products of two bounds are rounded outwards by this.
const OUT: f64 = 1.0 + 1e-15;

/// All price vectors p with `p[i] / p[j] ≤ most[i][j]` for all i and j, none of which bounds says more than the others
/// together.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    assets: usize,
    /// By rows; infinite where nothing is known.
    most: Vec<f64>,
}

impl Zone {
    /// All price vectors of so many assets.
    pub(super) fn all(assets: usize) -> Zone {
        let mut most = vec![f64::INFINITY; assets * assets];
        (0..assets).for_each(|asset| most[asset * assets + asset] = 1.0);
        Zone { assets, most }
    }

    /// The most that `p[i] / p[j]` can be.
    pub(super) fn most(&self, i: usize, j: usize) -> f64 {
        self.most[i * self.assets + j]
    }

    /// The least that `p[i] / p[j]` can be, rounded down.
    pub(super) fn least(&self, i: usize, j: usize) -> f64 {
        1.0 / (self.most(j, i) * OUT)
    }

    /// The ratio in the middle, `None` without bounds.
    pub(super) fn middle(&self, i: usize, j: usize) -> Option<f64> {
        let (least, most) = (self.least(i, j), self.most(i, j));
        (least > 0.0 && most.is_finite()).then(|| least.sqrt() * most.sqrt())
    }

    /// By what factor `p[i] / p[j]` can vary.
    pub(super) fn width(&self, i: usize, j: usize) -> f64 {
        self.most(i, j) * self.most(j, i)
    }

    /// Those of its price vectors with `p[i] / p[j] ≤ bound`; `None` if there are none.
    pub(super) fn below(&self, i: usize, j: usize, bound: f64) -> Option<Zone> {
        let mut zone = self.clone();
        zone.limit(i, j, bound).then_some(zone)
    }

    /// Keeps only those with `p[i] / p[j] ≤ bound`; false if there are none.
    pub(super) fn limit(&mut self, i: usize, j: usize, bound: f64) -> bool {
        if bound >= self.most(i, j) {
            return true;
        }
        if bound * self.most(j, i) < 1.0 - 1e-12 {
            return false;
        }
        let from: Vec<f64> = (0..self.assets).map(|b| self.most(j, b)).collect();
        for a in 0..self.assets {
            let to = self.most(a, i) * bound * OUT;
            // Elsewhere nothing is nearer by way of this bound.
            if to < self.most(a, j) {
                for b in (0..self.assets).filter(|b| *b != a) {
                    let most = &mut self.most[a * self.assets + b];
                    *most = most.min(to * from[b] * OUT);
                }
            }
        }
        true
    }

    /// Those with `p[i] / p[j] ≥ bound`; `None` if there are none.
    pub(super) fn above(&self, i: usize, j: usize, bound: f64) -> Option<Zone> {
        self.below(j, i, OUT / bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cutting_keeps_what_is_within(
            prices in prop::collection::vec(0.1f64..10.0, 4),
            cuts in prop::collection::vec((0usize..4, 0usize..4, 0.05f64..20.0), 0..12),
        ) {
            let mut zone = Zone::all(4);
            for (i, j, bound) in cuts.into_iter().filter(|cut| cut.0 != cut.1) {
                let is_below = prices[i] / prices[j] <= bound;
                let cut = if is_below { zone.below(i, j, bound) } else { zone.above(i, j, bound) };
                zone = cut.expect("the prices are within");
            }
            for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
                let ratio = prices[i] / prices[j];
                prop_assert!(zone.least(i, j) <= ratio * OUT && ratio <= zone.most(i, j) * OUT);
            }
        }
    }
}
