//! Where to cut a zone of prices.

use super::lane::Band;
use super::{Link, Node, Proof};

/// Ratios that vary by less than this are not cut any more.
const NARROW: f64 = 1e-9;
/// Ratios are cut this near to where something changes.
const NEAR: f64 = 1e-11;
/// A pair of which no more than so many units are open is cut by units.
const LUMPS: f64 = 1e6;
/// How far from the ratios of the clearing others are ruled out, one step after the other.
const STEPS: [f64; 9] = [1e3, 3.0, 0.3, 0.1, 0.03, 0.01, 0.005, 0.0025, 0.00125];

impl Proof<'_> {
    /// `node` without ratios far from those of the clearing at which nothing is full; `None` if nothing is left. Looks at
    /// ratios of assets that trade with each other.
    pub(super) fn shaved(&mut self, mut node: Node) -> Option<Node> {
        loop {
            let before = self.zones;
            for (i, j) in self.traded() {
                let center = self.center[i] / self.center[j];
                for (i, j, center) in [(i, j, center), (j, i, 1.0 / center)] {
                    node = self.shaved_above(node, i, j, center)?;
                }
            }
            if self.zones == before || self.left == 0 {
                return Some(node);
            }
        }
    }

    /// Rules out that `p[i] / p[j]` is far above `center`, from far to near, until that fails.
    fn shaved_above(&mut self, mut node: Node, i: usize, j: usize, center: f64) -> Option<Node> {
        for step in STEPS {
            let bound = center * (1.0 + step);
            if node.zone.most(i, j) <= bound * (1.0 + 1e-9) || node.zone.least(i, j) >= bound {
                continue;
            }
            if node.above(i, j, bound).is_none_or(|mut far| self.is_empty(&mut far)) {
                node = node.below(i, j, bound)?;
            } else {
                break;
            }
        }
        Some(node)
    }

    /// Pairs of assets that trade with each other, each once; those of short assets first.
    fn traded(&self) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(usize, usize)> = self.links.iter().map(Link::ends).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs.sort_by_key(|pair| !(self.short[pair.0] || self.short[pair.1]));
        pairs
    }

    /// Where to cut `node`: between two assets that have stood in the way, where most is open; again where it was cut
    /// last before something came out, while anything is open there.
    pub(super) fn cut(&self, node: &Node) -> Option<Cut> {
        let scores = (0..self.links.len()).map(|at| (self.score(node, at), at)).filter(|score| score.0 > 0.0);
        let (_, at) = scores.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (i, j, sold) = (self.links[at].sell, self.links[at].buy, node.flows[at].sold);
        let center = self.center[i] / self.center[j];
        let bound = match (node.zone.least(i, j), node.zone.most(i, j)) {
            (0.0, f64::INFINITY) => center,
            (0.0, most) => most.min(center) / 2.0,
            (least, f64::INFINITY) => least.max(center) * 2.0,
            (least, most) => {
                let narrow = node.width(&self.links[at]) < NARROW;
                match self.turn(node, at).filter(|_| !narrow) {
                    Some(turn) => turn,
                    None if sold.1 - sold.0 >= 1.0 && (narrow || sold.1 - sold.0 < LUMPS) => {
                        return Some(Cut::Sold(at, ((sold.0 + sold.1) / 2.0).floor()));
                    }
                    None if narrow => return None,
                    None => least.sqrt() * most.sqrt(),
                }
            }
        };
        (1e-17..1e17).contains(&bound).then_some(Cut::Ratio(i, j, bound))
    }

    /// How much there is to cut about a link; nothing if zero.
    fn score(&self, node: &Node, at: usize) -> f64 {
        let (link, sold) = (&self.links[at], node.flows[at].sold);
        let (width, pair) = (node.width(link), link.ends());
        let sure = if sold.0 > 0.0 && width > NARROW { 0.001 } else { 0.0 };
        let open = (sold.1 - sold.0).max(0.0).ln_1p() + sure;
        let blame =
            (self.blame[pair.0] + self.blame[pair.1]) * self.blame_of_pairs[pair.0 * self.center.len() + pair.1];
        let last = if self.last == Some(pair) { 1e12 } else { 1.0 };
        open * width.clamp(1e-8, 1.0).sqrt() * blame * last
    }

    /// A little above the ratio within the range of a link at which something changes, or a little below.
    fn turn(&self, node: &Node, at: usize) -> Option<f64> {
        let Band { net, sure } = self.band;
        let (least, most) = node.ratio(&self.links[at]);
        let turn = node.lanes[at].turn((least * net, most * net), sure / net, 1.2 * NEAR)? / net;
        Some(if turn * (1.0 + 1.1 * NEAR) < most { turn * (1.0 + NEAR) } else { turn * (1.0 - NEAR) })
    }
}

/// How a node is cut in two.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// The ratio of the prices of two assets is below or above some.
    Ratio(usize, usize, f64),
    /// A link sells so many units, or more.
    Sold(usize, f64),
}
