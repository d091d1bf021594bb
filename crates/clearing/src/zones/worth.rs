//! Whether some assets together can pay out what must be paid, in worth.
//!
//! Weigh units by any prices. Of some assets, what is sold must be worth no less than what is paid out. What a pair of
//! them trades between themselves leaves no more than commission and rounding, though one by one it may sell much and be
//! paid little: that difference is what looking at both together *saves*. Looked at alone, each asset has something to
//! *spare*: what can be sold of it at most less what must be paid out of it. So some assets lack something where what
//! pairs among them save is more than what they all can spare, and whether there are such assets is a flow problem: what
//! each pair saves is to be borne by one of its two assets or the other, and none bears more than it can spare.

use super::{Node, Search};

/// Sums of doubles are off by no more than this part of them.
const OFF: f64 = 1e-11;

/// What is borne by whom.
struct Burden {
    /// What each asset may still bear.
    spare: Vec<f64>,
    /// What is saved and borne by nobody yet, by the asset that it stands at.
    rest: Vec<f64>,
    /// By rows: what the first asset bears of what it saves with the second.
    borne: Vec<f64>,
}

impl Search<'_> {
    /// Whether some assets together must pay out more than can be sold of them.
    pub(super) fn is_lacking(&mut self, node: &Node) -> bool {
        let assets = self.center.len();
        let base = self.most_blamed();
        let prices: Vec<f64> = (0..assets).map(|asset| node.zone.middle(asset, base).unwrap_or(0.0)).collect();
        let mut burden = self.burden(node, &prices);
        let Some(inside) = burden.unbearable() else { return false };
        let lacks = self.lacks(&inside, &prices, node);
        if lacks {
            let members: Vec<usize> = (0..assets).filter(|asset| inside[*asset]).collect();
            self.blame(&members);
        }
        lacks
    }

    /// The asset that has stood in the way most.
    fn most_blamed(&self) -> usize {
        (0..self.blame.len()).max_by(|a, b| self.blame[*a].total_cmp(&self.blame[*b])).unwrap_or(0)
    }

    fn burden(&mut self, node: &Node, prices: &[f64]) -> Burden {
        let assets = prices.len();
        let mut spare = vec![0.0; assets];
        let mut borne = vec![0.0; assets * assets];
        for at in 0..self.duos.len() {
            let (i, j) = self.duos[at].assets;
            let [one, two] = [(prices[i], 0.0), (0.0, prices[j])].map(|(own, other)| self.worth(node, at, own, other));
            spare[i] += one;
            spare[j] += two;
            self.worths[at] = 0.0;
            if prices[i] > 0.0 && prices[j] > 0.0 {
                self.worths[at] = self.worth(node, at, prices[i], prices[j]);
                borne[i * assets + j] += (one + two - self.worths[at]).max(0.0);
            }
        }
        // What nothing is known about can bear anything.
        (0..assets).filter(|asset| prices[*asset] == 0.0).for_each(|asset| spare[asset] = f64::INFINITY);
        let rest = (0..assets).map(|asset| borne[asset * assets..][..assets].iter().sum()).collect();
        Burden { spare, rest, borne }
    }

    /// Whether what is sold of the assets `inside` is worth less than what must be paid out of them.
    pub(super) fn lacks(&self, inside: &[bool], prices: &[f64], node: &Node) -> bool {
        let (mut left, mut moved) = (0.0, 0.0);
        for (at, duo) in self.duos.iter().enumerate() {
            let price = |asset: usize| if inside[asset] { prices[asset] } else { 0.0 };
            let (own, other) = (price(duo.assets.0), price(duo.assets.1));
            left += self.worth(node, at, own, other);
            let size =
                |link: usize, own: f64, other: f64| node.flows[link].sold.1 * own + node.flows[link].paid.0 * other;
            moved += duo.links[0].map_or(0.0, |link| size(link, own, other));
            moved += duo.links[1].map_or(0.0, |link| size(link, other, own));
        }
        left < -OFF * moved
    }

    /// The most that what the duo at `at` sells is worth more than what it is paid: of its pieces, if it has any.
    fn worth(&self, node: &Node, at: usize, own: f64, other: f64) -> f64 {
        if own == 0.0 && other == 0.0 {
            return 0.0;
        }
        let pieces = &node.pieces[at].list;
        if !pieces.is_empty() {
            return pieces.iter().map(|piece| piece.worth(own, other)).fold(f64::NEG_INFINITY, f64::max);
        }
        let of = |link: Option<usize>, own: f64, other: f64| {
            link.map_or(0.0, |link| node.lanes[link].gain(&node.flows[link], own, other))
        };
        of(self.duos[at].links[0], own, other) + of(self.duos[at].links[1], other, own)
    }
}

impl Burden {
    /// Assets that save more among themselves than they can bear, if there are any.
    fn unbearable(&mut self) -> Option<Vec<bool>> {
        let assets = self.spare.len();
        for from in 0..assets {
            loop {
                let own = self.rest[from].min(self.spare[from].max(0.0));
                self.rest[from] -= own;
                self.spare[from] -= own;
                if self.rest[from] <= 0.0 {
                    break;
                }
                let before = self.reached(from);
                let end = (0..assets).find(|asset| before[*asset].is_some() && self.spare[*asset] > 0.0);
                let Some(end) = end else { return Some(before.iter().map(Option::is_some).collect()) };
                self.shift(from, end, &before);
            }
        }
        None
    }

    /// The assets that burdens of `from` can be shifted to, one after the other, and the one before each.
    fn reached(&self, from: usize) -> Vec<Option<usize>> {
        let assets = self.spare.len();
        let mut before = vec![None; assets];
        before[from] = Some(from);
        let mut queue = vec![from];
        let mut next = 0;
        while next < queue.len() {
            let at = queue[next];
            next += 1;
            let borne = &self.borne[at * assets..][..assets];
            for (to, before) in before.iter_mut().enumerate() {
                if before.is_none() && borne[to] > 0.0 {
                    *before = Some(at);
                    queue.push(to);
                }
            }
        }
        before
    }

    /// Shifts what can be from `from` to `end`.
    fn shift(&mut self, from: usize, end: usize, before: &[Option<usize>]) {
        let assets = self.spare.len();
        let step = |at: usize| before[at].expect("it is reached");
        let (mut most, mut at) = (self.rest[from].min(self.spare[end]), end);
        while at != from {
            most = most.min(self.borne[step(at) * assets + at]);
            at = step(at);
        }
        at = end;
        while at != from {
            self.borne[step(at) * assets + at] -= most;
            self.borne[at * assets + step(at)] += most;
            at = step(at);
        }
        self.rest[from] -= most;
        self.spare[end] -= most;
    }
}
