//! Whether prices of a zone lie too far from those of the clearing, all of them together.
//!
//! Value everything at the prices of the clearing. Of a full clearing at any other prices, no less is sold than is paid out,
//! so what the duos leave is worth nothing or more in all. A duo can leave much where its ratio suits it: it trades
//! cheaper than it would at the clearing. But not all ratios can suit: along each circle of assets their logarithms add
//! up to nothing. So let worth *circulate* along the duos, as trade did in the clearing, and add to what each duo leaves
//! its circulating worth times the logarithm of its ratio over that of the clearing: in all, nothing is added. Now each duo
//! leaves most near the ratio of the clearing, and less on either side, since there it sells for less, or must fill what
//! it would rather not; and if the sum of the most that each can leave is less than nothing, the zone is empty.
//!
//! Which circulation proves most is sought by steps: where a duo leaves most says which ratio it would like; the part of
//! those wishes that no prices could explain is itself a circulation, found by least squares, and to go against it makes
//! the sum smaller (a subgradient of the Lagrangian dual). Any circulation is sound.

use std::rc::Rc;

use super::lane::{Flow, Lane};
use super::pieces::{Duo, Piece};
use super::{Node, Search};

/// Steps of the search for the best circulation, in one zone.
const STEPS: usize = 8;
/// Sums of doubles are off by no more than this part of them.
const OFF: f64 = 1e-11;
/// No logarithm of a ratio of prices over another is more than this.
const MOST_LOG: f64 = 100.0;
/// Wishes further away than this count as this.
const MOST_WISH: f64 = 3.0;

/// How worth can circulate between assets.
#[derive(Default)]
pub(super) struct Circulation {
    /// What circulated in the clearing, for each duo from its first asset to its second.
    pub(super) of_clearing: Rc<Vec<f64>>,
    /// How much a duo counts: what it traded.
    weights: Vec<f64>,
    /// By rows: the inverse of the Laplacian of the weights.
    inverse: Vec<f64>,
    step: f64,
}

impl Circulation {
    /// That of `sold`, the worth that each link sold in the clearing.
    pub(super) fn new(duos: &[Duo], sold: &[f64], assets: usize) -> Circulation {
        let of = |link: Option<usize>| link.map_or(0.0, |link| sold[link]);
        let weights: Vec<f64> = duos.iter().map(|duo| of(duo.links[0]) + of(duo.links[1])).collect();
        let inverse = inverse_of(laplacian(duos, &weights, assets), assets);
        let mut circulation = Circulation { of_clearing: Rc::default(), weights, inverse, step: 0.1 };
        let mut net = duos.iter().map(|duo| of(duo.links[0]) - of(duo.links[1])).collect();
        circulation.balance(duos, &mut net);
        circulation.of_clearing = Rc::new(net);
        circulation
    }

    /// The differences of potentials that explain `flows` best by weights, taken away from them, weighed.
    fn unexplained(&self, duos: &[Duo], flows: &[f64]) -> Vec<f64> {
        let divergence = divergence(duos, flows, self.assets());
        let potential = |asset: usize| {
            let row = &self.inverse[asset * self.assets()..][..self.assets()];
            row.iter().zip(&divergence).map(|(inverse, divergence)| inverse * divergence).sum()
        };
        let potentials: Vec<f64> = (0..self.assets()).map(potential).collect();
        let explained = |at: usize| self.weights[at] * (potentials[duos[at].assets.0] - potentials[duos[at].assets.1]);
        (0..duos.len()).map(|at| flows[at] - explained(at)).collect()
    }

    /// Makes `flows` a circulation as far as doubles can.
    fn balance(&self, duos: &[Duo], flows: &mut Vec<f64>) {
        for _ in 0..4 {
            *flows = self.unexplained(duos, flows);
        }
    }

    fn assets(&self) -> usize {
        self.inverse.len().isqrt()
    }
}

/// What leaves each asset less what comes.
fn divergence(duos: &[Duo], flows: &[f64], assets: usize) -> Vec<f64> {
    let mut divergence = vec![0.0; assets];
    for (duo, flow) in duos.iter().zip(flows) {
        divergence[duo.assets.0] += flow;
        divergence[duo.assets.1] -= flow;
    }
    divergence
}

/// By rows; a little is added to the diagonal, so that it has an inverse.
fn laplacian(duos: &[Duo], weights: &[f64], assets: usize) -> Vec<f64> {
    let mut rows = vec![0.0; assets * assets];
    for (duo, weight) in duos.iter().zip(weights) {
        let (i, j) = duo.assets;
        for (row, column, sign) in [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)] {
            rows[row * assets + column] += sign * weight;
        }
    }
    let little = weights.iter().sum::<f64>() * 1e-13;
    (0..assets).for_each(|asset| rows[asset * assets + asset] += little.max(1e-300));
    rows
}

/// The inverse of a positive definite matrix by rows (Gauss and Jordan, in place).
fn inverse_of(mut rows: Vec<f64>, size: usize) -> Vec<f64> {
    for pivot in 0..size {
        let inverse = 1.0 / rows[pivot * size + pivot];
        rows[pivot * size + pivot] = 1.0;
        rows[pivot * size..][..size].iter_mut().for_each(|value| *value *= inverse);
        let of_pivot = rows[pivot * size..][..size].to_vec();
        for row in (0..size).filter(|row| *row != pivot) {
            let factor = std::mem::replace(&mut rows[row * size + pivot], 0.0);
            for (value, of_pivot) in rows[row * size..][..size].iter_mut().zip(&of_pivot) {
                *value -= factor * of_pivot;
            }
        }
    }
    rows
}

/// What one link can leave within a piece, valued at the clearing, and how that falls as its rate rises.
pub(super) struct Side {
    by_offers: f64,
    by_flow: f64,
    /// Worth that must be paid more for each unit that the ratio rises, but for `rounded`.
    slope: f64,
    rounded: f64,
    /// What moves, of which the rest is the small difference.
    moved: f64,
}

impl Side {
    pub(super) fn new((lane, flow): &(Rc<Lane>, Flow), own: f64, other: f64) -> Side {
        let (slope, rounded) = lane.paid_more();
        Side {
            by_offers: lane.gain(&Flow::ANY, own, other),
            by_flow: lane.gain(flow, own, other),
            slope: other * slope,
            rounded: other * rounded,
            moved: flow.sold.1 * own + flow.paid.0 * other,
        }
    }

    /// The most of what it leaves and `pull` times the logarithm of the ratio over `center`, for ratios between two; and
    /// the logarithm where that is.
    pub(super) fn most(&self, pull: f64, (least, most): (f64, f64), center: f64) -> (f64, f64) {
        let far = (most / center).ln();
        let by_flow = (self.by_flow + pull * far, far);
        if self.slope <= 0.0 || least <= 0.0 {
            return by_flow;
        }
        // Up to here no more need be paid, and where it is, most is left where the slope is the pull's.
        let flat = (least + self.rounded / self.slope).min(most);
        let bent = (pull / self.slope).clamp(flat, most);
        let early = pull * (flat / least).ln();
        let late = self.rounded - self.slope * (bent - least) + pull * (bent / least).ln();
        let base = self.by_offers + pull * (least / center).ln();
        let (sum, at) = if early >= late { (base + early, flat) } else { (base + late, bent) };
        if sum < by_flow.0 { (sum, (at / center).ln()) } else { by_flow }
    }
}

/// A piece, valued at the clearing.
struct Valued {
    ratio: (f64, f64),
    sides: [Option<Side>; 2],
}

impl Valued {
    fn new(piece: &Piece, range: (f64, f64), own: f64, other: f64) -> Valued {
        let side = |side: usize, own, other| piece.sides[side].as_ref().map(|side| Side::new(side, own, other));
        let ratio = (piece.ratio.0.max(range.0), piece.ratio.1.min(range.1));
        Valued { ratio, sides: [side(0, own, other), side(1, other, own)] }
    }

    fn moved(&self) -> f64 {
        self.sides.iter().flatten().map(|side| side.moved).sum()
    }

    /// The most that it leaves with `pull` on its ratio, and the logarithm of the ratio over `center` where that is.
    fn most(&self, pull: f64, center: f64) -> (f64, f64) {
        let (least, most) = self.ratio;
        let by_flow = |side: usize| self.sides[side].as_ref().map_or(0.0, |side| side.by_flow);
        let pulled = |side: usize, ratio: (f64, f64), center: f64| match &self.sides[side] {
            Some(side) => side.most(pull.abs(), ratio, center),
            None => (pull.abs() * (ratio.1 / center).ln(), (ratio.1 / center).ln()),
        };
        if pull > 0.0 {
            let (left, at) = pulled(0, (least, most), center);
            (left + by_flow(1), at)
        } else if pull < 0.0 {
            let (left, at) = pulled(1, (1.0 / most, 1.0 / least), 1.0 / center);
            (left + by_flow(0), -at)
        } else {
            (by_flow(0) + by_flow(1), (center.clamp(least, most) / center).ln())
        }
    }
}

/// What all duos can leave in all, how large the numbers are that make it up, and the ratios that each would like.
struct Sum {
    left: f64,
    size: f64,
    wishes: Vec<f64>,
}

impl Sum {
    fn is_negative(&self) -> bool {
        self.left < -OFF * self.size
    }
}

impl Search<'_> {
    /// Whether the prices of the zone of `node` are too far from those of the clearing.
    pub(super) fn is_far(&mut self, node: &mut Node) -> bool {
        let valued = self.valued(node);
        let mut flows = Vec::clone(&node.circulating);
        let mut sum = self.sum(&valued, &flows);
        let mut step = self.circulation.step;
        for _ in 0..STEPS {
            if sum.is_negative() || !sum.left.is_finite() {
                break;
            }
            let weighed = |(wish, weight): (&f64, &f64)| wish.clamp(-MOST_WISH, MOST_WISH) * weight;
            let wishes: Vec<f64> = sum.wishes.iter().zip(&self.circulation.weights).map(weighed).collect();
            let way = self.circulation.unexplained(&self.duos, &wishes);
            let mut next = flows.iter().zip(&way).map(|(flow, way)| flow - step * way).collect();
            self.circulation.balance(&self.duos, &mut next);
            let after = self.sum(&valued, &next);
            if after.left < sum.left {
                (sum, flows, step) = (after, next, step * 1.5);
            } else {
                step *= 0.4;
            }
        }
        self.circulation.step = step.clamp(1e-4, 10.0);
        let is_far = sum.is_negative() && self.circulates(&flows);
        node.circulating = Rc::new(flows);
        is_far
    }

    /// Whether `flows` are a circulation but for what makes no difference.
    fn circulates(&self, flows: &[f64]) -> bool {
        let off: f64 = divergence(&self.duos, flows, self.center.len()).iter().map(|off| off.abs()).sum();
        off < 0.25 * OFF * flows.iter().map(|flow| flow.abs()).sum::<f64>()
    }

    /// The pieces of every duo, valued.
    fn valued(&self, node: &Node) -> Vec<Vec<Valued>> {
        let of = |(duo, pieces): (&Duo, &Rc<super::pieces::Pieces>)| {
            let (own, other) = (self.center[duo.assets.0], self.center[duo.assets.1]);
            let (least, most) = node.between(duo.assets);
            let within = pieces.list.iter().filter(|piece| piece.ratio.0 < most && least < piece.ratio.1);
            within.map(|piece| Valued::new(piece, (least, most), own, other)).collect()
        };
        self.duos.iter().zip(&node.pieces).map(of).collect()
    }

    fn sum(&self, valued: &[Vec<Valued>], flows: &[f64]) -> Sum {
        let mut sum = Sum { left: 0.0, size: 0.0, wishes: Vec::with_capacity(flows.len()) };
        for ((pieces, flow), duo) in valued.iter().zip(flows).zip(&self.duos) {
            let center = self.center[duo.assets.0] / self.center[duo.assets.1];
            let most = pieces.iter().map(|piece| piece.most(*flow, center));
            let most = most.fold((f64::NEG_INFINITY, 0.0), |best, next| if next.0 > best.0 { next } else { best });
            sum.left += most.0;
            sum.size += pieces.iter().map(Valued::moved).fold(most.0.abs() + MOST_LOG * flow.abs(), f64::max);
            sum.wishes.push(most.1);
        }
        sum
    }
}
