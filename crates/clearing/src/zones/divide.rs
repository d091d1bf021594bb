//! Where to cut a zone of prices.

use super::lane::{Band, Flow};
use super::{Node, Search};

/// Ratios that vary by less than this are not cut any more.
const NARROW: f64 = 1e-9;
/// Ratios are cut this near to where something changes.
const NEAR: f64 = 1e-11;
/// Comes before all else.
const FIRST: f64 = 1e100;
/// A pair of which no more than so many units are open is cut by units.
const LUMPS: f64 = 1e6;
/// Ranges that vary by less than this part are not squeezed.
const SQUEEZED: f64 = 1e-5;
/// The lower parts of a range, the rest of which is ruled out.
const PARTS: [f64; 2] = [0.5, 0.8];
/// Logarithms of ranges wider than this are not counted.
const WIDE: f64 = 15.0;
/// How far from the ratios of the clearing others are ruled out, one step after the other.
const STEPS: [f64; 9] = [1e3, 3.0, 0.3, 0.1, 0.03, 0.01, 0.005, 0.0025, 0.00125];

impl Search<'_> {
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

    /// `node` without the outer parts of ranges of ratios in which nothing is full; `None` if nothing is left.
    pub(super) fn squeezed(&mut self, mut node: Node) -> Option<Node> {
        loop {
            let before = self.width(&node);
            for (i, j) in self.traded() {
                node = self.squeezed_above(node, i, j)?;
                node = self.squeezed_above(node, j, i)?;
            }
            if self.is_empty(&mut node) {
                return None;
            }
            if self.width(&node) > 0.9 * before || self.left == 0 {
                return Some(node);
            }
        }
    }

    /// Rules out the upper part of the range of `p[i] / p[j]`, a large one or a small one.
    fn squeezed_above(&mut self, node: Node, i: usize, j: usize) -> Option<Node> {
        let (least, most) = (node.zone.least(i, j), node.zone.most(i, j));
        if !(least > 0.0 && most.is_finite() && most > least * (1.0 + SQUEEZED)) {
            return Some(node);
        }
        for part in PARTS {
            let bound = least * (most / least).powf(part);
            if node.above(i, j, bound).is_none_or(|mut far| self.is_empty(&mut far)) {
                return node.below(i, j, bound);
            }
        }
        Some(node)
    }

    /// How wide all ranges of ratios are that have two ends, together.
    fn width(&self, node: &Node) -> f64 {
        let widths = self.duos.iter().map(|duo| node.zone.width(duo.assets.0, duo.assets.1).ln());
        widths.filter(|width| *width < WIDE).sum()
    }

    /// Pairs of assets that trade with each other, each once; those of short assets first.
    fn traded(&self) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(usize, usize)> = self.duos.iter().map(|duo| duo.assets).collect();
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

    /// How much there is to cut about a link; nothing if zero. Where cuts go by worth, what its duo might leave
    /// counts before all, where anything about it is open.
    fn score(&self, node: &Node, at: usize) -> f64 {
        let (link, Flow { sold, paid }) = (&self.links[at], node.flows[at]);
        let (width, pair) = (node.width(link), link.ends());
        let sure = if sold.0 > 0.0 && width > NARROW { 0.001 } else { 0.0 };
        let open = (sold.1 - sold.0).max(0.0).ln_1p() + sure;
        let blame =
            (self.blame[pair.0] + self.blame[pair.1]) * self.blame_of_pairs[pair.0 * self.center.len() + pair.1];
        let worth = self.worths[self.links[at].duo];
        let is_open = (sold.1 - sold.0 > 0.5 || paid.1 - paid.0 > 0.5) && (sold.1 - sold.0 >= 1.0 || width > NARROW);
        if self.is_by_worth && is_open && worth > 0.0 && open > 0.0 {
            return FIRST * worth * blame.sqrt();
        }
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
    /// A link is paid so many units, or more.
    Paid(usize, f64),
}
