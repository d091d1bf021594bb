//! What amounts are possible in one zone, and what rates those leave.

use std::rc::Rc;

use super::lane::{Band, Flow, Lane};
use super::{Node, Search};

/// Rounds of narrowing amounts in one zone.
const MOST_ROUNDS: usize = 60;
/// Rounds of narrowing amounts by ratios, and ratios by amounts.
const MOST_TURNS: usize = 12;
/// Sums of doubles are off by no more than this part of them.
const OFF: f64 = 1e-12;
/// A bound on a ratio that narrows its range by less than this part is left alone.
const WORTH: f64 = 0.03;

/// No blame is ever less.
const LEAST_BLAME: f64 = 1e-90;

/// Where amounts contradict each other.
enum Conflict {
    Asset(usize),
    Link(usize),
}

impl Search<'_> {
    /// Narrows ratios and amounts by each other until nothing changes; false if they contradict each other.
    pub(super) fn settle(&mut self, node: &mut Node) -> bool {
        self.look(node, false);
        for turn in 0..MOST_TURNS {
            self.left = self.left.saturating_sub(1);
            let caps = self.caps(node);
            if let Some(conflict) = self.narrow(node, &caps) {
                match conflict {
                    Conflict::Asset(asset) => self.blame(&[asset]),
                    Conflict::Link(at) => self.blame_link(at),
                }
                return false;
            }
            match self.limit(node) {
                None => return false,
                Some(false) => break,
                Some(true) => self.look(node, turn + 2 < MOST_TURNS),
            }
        }
        true
    }

    /// Looks again at what pairs can do whose rates have changed, or changed by much.
    fn look(&self, node: &mut Node, by_much: bool) {
        for (at, link) in self.links.iter().enumerate() {
            let ratio = node.ratio(link);
            let old = node.lanes[at].ratio;
            let same = if by_much { is_much(old, ratio) } else { old != ratio };
            if !same {
                continue;
            }
            let lane = Lane::new(&link.offers, self.band, ratio);
            let flow = &mut node.flows[at];
            flow.meet(&lane.flow());
            let before = Flow { sold: (f64::NEG_INFINITY, f64::INFINITY), paid: (f64::NEG_INFINITY, f64::INFINITY) };
            flow.follow(&lane, &before);
            node.lanes[at] = Rc::new(lane);
        }
    }

    /// The most of each asset that can be sold and not paid out: all that is kept is commission and what rounding leaves,
    /// and worth no more than that of all pairs.
    fn caps(&self, node: &Node) -> Vec<f64> {
        let kept = |(lane, flow): (&Rc<Lane>, &Flow)| lane.kept(flow, self.case.params.epsilon.to_f64());
        let kept: Vec<f64> = node.lanes.iter().zip(&node.flows).map(kept).collect();
        let cap = |asset: usize| {
            let of = |(link, kept): (&super::Link, &f64)| {
                if *kept > 0.0 { kept * node.zone.most(link.buy, asset) } else { 0.0 }
            };
            (self.links.iter().zip(&kept).map(of).sum::<f64>() * (1.0 + 1e-9) + 1e-6).floor()
        };
        (0..self.center.len()).map(cap).collect()
    }

    /// Narrows what every pair can sell and be paid by what is left of each asset; some asset whose amounts contradict each
    /// other, if there is one.
    fn narrow(&self, node: &mut Node, caps: &[f64]) -> Option<Conflict> {
        let assets = self.center.len();
        for _ in 0..MOST_ROUNDS {
            let (mut sold, mut paid) = (vec![(0.0, 0.0); assets], vec![(0.0, 0.0); assets]);
            for (link, flow) in self.links.iter().zip(&node.flows) {
                add(&mut sold[link.sell], flow.sold);
                add(&mut paid[link.buy], flow.paid);
            }
            let slack = |asset: usize| (sold[asset].1 + paid[asset].1) * OFF + 1e-6;
            let contradicts = |asset: &usize| {
                let (sold, paid, slack) = (sold[*asset], paid[*asset], slack(*asset));
                paid.0 > sold.1 + slack || sold.0 > paid.1 + caps[*asset] + slack
            };
            if let Some(asset) = (0..assets).find(contradicts) {
                return Some(Conflict::Asset(asset));
            }
            let mut changed = false;
            for (at, link) in self.links.iter().enumerate() {
                let (sell, buy) = (link.sell, link.buy);
                let flow = &mut node.flows[at];
                let before = *flow;
                let kept = |asset: usize| caps[asset] + slack(asset);
                flow.paid.1 = flow.paid.1.min((sold[buy].1 - (paid[buy].0 - before.paid.0) + slack(buy)).floor());
                flow.sold.0 = flow.sold.0.max((paid[sell].0 - (sold[sell].1 - before.sold.1) - slack(sell)).ceil());
                flow.sold.1 = flow.sold.1.min((paid[sell].1 - (sold[sell].0 - before.sold.0) + kept(sell)).floor());
                flow.paid.0 = flow.paid.0.max((sold[buy].0 - (paid[buy].1 - before.paid.1) - kept(buy)).ceil());
                flow.follow(&node.lanes[at], &before);
                if flow.is_empty() {
                    return Some(Conflict::Link(at));
                }
                changed |= flow.differs(&before);
            }
            if !changed {
                return None;
            }
        }
        None
    }

    /// Narrows ratios by amounts: whether any changed, `None` if no ratios are left.
    fn limit(&mut self, node: &mut Node) -> Option<bool> {
        let Band { net, sure } = self.band;
        let mut changed = false;
        for (at, link) in self.links.iter().enumerate() {
            let (sell, buy) = (link.sell, link.buy);
            let (least, most) = node.lanes[at].rates(&node.flows[at], sure / net);
            let (least, most) = (least / net * (1.0 - 1e-12), most / net * (1.0 + 1e-12));
            let old = node.ratio(link);
            if !is_much(old, (least.max(old.0), most.min(old.1))) {
                continue;
            }
            changed = true;
            if !(node.zone.limit(sell, buy, most) && (least <= 0.0 || node.zone.limit(buy, sell, 1.0 / least))) {
                self.blame(&[sell, buy]);
                return None;
            }
        }
        Some(changed)
    }

    /// Remembers that `assets` have stood in the way.
    pub(super) fn blame(&mut self, assets: &[usize]) {
        assets.iter().for_each(|asset| self.blame[*asset] += self.step / assets.len() as f64);
        self.step *= 1.01;
        if self.step > 1e100 {
            let all = self.blame.iter_mut().chain(&mut self.blame_of_pairs);
            all.for_each(|blame| *blame = (*blame / self.step).max(LEAST_BLAME));
            self.step = 1.0;
        }
    }

    fn blame_link(&mut self, at: usize) {
        let (i, j) = self.links[at].ends();
        self.blame_of_pairs[i * self.center.len() + j] += self.step;
        self.blame(&[i, j]);
    }
}

/// Whether the second range is narrower than the first by much.
fn is_much(old: (f64, f64), new: (f64, f64)) -> bool {
    let (lower, upper) = (new.0 / old.0, old.1 / new.1);
    if !(old.1 / old.0).is_finite() || old.1 > 2.0 * old.0 {
        return lower > 1.0 + WORTH || upper > 1.0 + WORTH;
    }
    let worth = WORTH * (old.1 / old.0 - 1.0).max(1e-11);
    lower > 1.0 + worth || upper > 1.0 + worth
}

/// The whole number below a bound from above, and above one from below; beyond whole doubles, a little off to be safe.
pub(super) fn whole_up(x: f64) -> f64 {
    if x < 9e15 { x.floor() } else { x * (1.0 + OFF) }
}

pub(super) fn whole_down(x: f64) -> f64 {
    if x < 9e15 { x.ceil() } else { x * (1.0 - OFF) }
}

fn add(sum: &mut (f64, f64), more: (f64, f64)) {
    *sum = (sum.0 + more.0, sum.1 + more.1);
}

impl Flow {
    /// Nothing is sold or paid.
    pub(super) const NONE: Flow = Flow { sold: (0.0, 0.0), paid: (0.0, 0.0) };
    /// Nothing is known.
    pub(super) const ANY: Flow = Flow { sold: (0.0, f64::INFINITY), paid: (0.0, f64::INFINITY) };

    /// Both hold.
    pub(super) fn meet(&mut self, other: &Flow) {
        let both = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.min(b.1));
        (self.sold, self.paid) = (both(self.sold, other.sold), both(self.paid, other.paid));
    }

    /// Narrows what is sold by what is paid, and the other way round, where they are not as `before`.
    pub(super) fn follow(&mut self, lane: &Lane, before: &Flow) {
        let mut before = *before;
        while self.differs(&before) {
            let old = std::mem::replace(&mut before, *self);
            if self.paid.1 < old.paid.1 - 0.5 {
                self.sold.1 = self.sold.1.min(whole_up(lane.most(self.paid.1)));
            }
            if self.sold.0 > old.sold.0 + 0.5 {
                self.paid.0 = self.paid.0.max(whole_down(lane.least(self.sold.0)));
            }
            if self.sold.1 < old.sold.1 - 0.5 {
                self.paid.1 = self.paid.1.min(whole_up(self.sold.1 * lane.rate.1 * (1.0 + 1e-14)));
            }
            if self.paid.0 > old.paid.0 + 0.5 {
                self.sold.0 = self.sold.0.max(whole_down(self.paid.0 / lane.rate.1 * (1.0 - 1e-14)));
            }
            if self.is_empty() {
                return;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let above = |range: (f64, f64)| range.0 > range.1 * (1.0 + OFF) + 0.5;
        above(self.sold) || above(self.paid)
    }

    fn differs(&self, other: &Flow) -> bool {
        let far = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() > 0.5 || (a.1 - b.1).abs() > 0.5;
        far(self.sold, other.sold) || far(self.paid, other.paid)
    }
}
