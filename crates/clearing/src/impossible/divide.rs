//! Where to cut a zone of prices.

use super::Proof;
use super::zone::Zone;

/// Ratios that vary by less than this are not cut any more.
const NARROW: f64 = 1e-9;
/// How far from the ratios of the clearing others are ruled out, one step after the other.
const STEPS: [f64; 12] = [1e6, 1e3, 30.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.005, 0.0025, 0.00125];

impl Proof<'_> {
    /// `zone` without ratios far from those of the clearing at which nothing is full; `None` if nothing is left. Looks at
    /// ratios of assets that trade with each other; if `near`, only at those of assets that are short.
    pub(super) fn shaved(&mut self, mut zone: Zone, near: bool) -> Option<Zone> {
        loop {
            let before = self.zones;
            for (i, j) in self.traded(near) {
                let center = self.center[i] / self.center[j];
                for (i, j, center) in [(i, j, center), (j, i, 1.0 / center)] {
                    zone = self.shaved_above(zone, i, j, center)?;
                }
            }
            if self.zones == before || self.left == 0 {
                return Some(zone);
            }
        }
    }

    /// Rules out that `p[i] / p[j]` is far above `center`, from far to near, until that fails twice.
    fn shaved_above(&mut self, mut zone: Zone, i: usize, j: usize, center: f64) -> Option<Zone> {
        let mut failed = 0;
        for step in STEPS {
            let bound = center * (1.0 + step);
            if zone.most(i, j) <= bound * (1.0 + 1e-9) || zone.least(i, j) >= bound {
                continue;
            }
            if zone.above(i, j, bound).is_none_or(|far| self.is_empty(&far)) {
                zone = zone.below(i, j, bound)?;
            } else {
                failed += 1;
                if failed > 1 {
                    break;
                }
            }
        }
        Some(zone)
    }

    /// Pairs of assets that trade with each other, each once; those of short assets first, or only those.
    fn traded(&self, near: bool) -> Vec<(usize, usize)> {
        let ends = self.links.iter().map(|link| (link.sell.min(link.buy), link.sell.max(link.buy)));
        let mut pairs: Vec<(usize, usize)> = ends.collect();
        pairs.sort_unstable();
        pairs.dedup();
        let is_near = |pair: &(usize, usize)| self.short[pair.0] || self.short[pair.1];
        pairs.retain(|pair| !near || is_near(pair));
        pairs.sort_by_key(|pair| !is_near(pair));
        pairs
    }

    /// The ratio to cut `zone` at, (i, j, bound): one that leaves much open about what is sold of short assets, or of any
    /// if that is known.
    pub(super) fn cut(&mut self, zone: &Zone) -> Option<(usize, usize, f64)> {
        let mut lanes = self.lanes(zone);
        self.narrow(&mut lanes);
        let open = |(link, lane): (&super::Link, &super::lane::Lane)| {
            let (i, j) = (link.sell, link.buy);
            let width = zone.width(i, j) - 1.0;
            let is_short = self.short[i] || self.short[j];
            let sure = if lane.sold.0 > 0.0 { 0.001 } else { 0.0 };
            let score = ((lane.sold.1 - lane.sold.0).max(0.0).ln_1p() + sure) * width.min(1.0).sqrt();
            (width > NARROW && score > 0.0).then_some((is_short, score, i, j))
        };
        let all = self.links.iter().zip(&lanes).filter_map(open);
        let (_, _, i, j) = all.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
        let center = self.center[i] / self.center[j];
        let bound = match (zone.least(i, j), zone.most(i, j)) {
            (0.0, f64::INFINITY) => center,
            (0.0, most) => most.min(center) / 2.0,
            (least, f64::INFINITY) => least.max(center) * 2.0,
            (least, most) => least.sqrt() * most.sqrt(),
        };
        (1e-17..1e17).contains(&bound).then_some((i, j, bound))
    }
}
