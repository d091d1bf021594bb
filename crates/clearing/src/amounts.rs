//! The amounts: how much of every pair trades at given prices (SPEEDEX appendix D), in integers from first to last.
//!
//! The program is: for every pair choose x between L, what must execute, and U, what may, such that no asset is paid
//! out beyond what is sold of it, and the value traded is largest.
//!
//! Everything starts at U, where more cannot be traded but some assets are *short*: more is paid out than sold. Every
//! unit that a short asset A lacks can be had by selling less of some B for A; that makes B poorer, so the shortage
//! moves from A to B, and ends at an asset with a surplus. The cheapest way, in value no longer traded, is the one
//! over the fewest pairs, as every pair on the way gives up the same value (commission compounds, but does so alike on
//! every pair). So this is a minimum-cost flow with unit costs, solved by successive shortest paths: distances are
//! small integers, and each round sends a blocking flow along the shortest ways. Taking back an earlier reduction has
//! cost −1.
//!
//! Amounts stay whole units throughout, and every step rounds in the auctioneer's favour, so that nothing is left to
//! repair but the last partial fill of each pair, which may have to give up a few units more.
//!
//! **Deviations from the paper**: no floating-point linear program; with ε = 0 and ε > 0 the same method. When L
//! cannot be met, all lower bounds are dropped as in appendix D, and the assets in short supply are named.

use primitives::{Amount, AssetId, MAX_ISSUED, Price};
use rayon::prelude::*;

use crate::book::{Book, Params};
use crate::curve::Curves;
use crate::fills::{Use, fills, partial, usable};
use crate::rate::{Rate, approx, must_fill};

/// One pair with something to trade.
struct Arc {
    /// Position in the book.
    pair: usize,
    sell: usize,
    buy: usize,
    rate: Rate,
    /// L and U, in units of the sold asset.
    low: Amount,
    high: Amount,
    /// The offers between L and U.
    band: (usize, usize),
    /// Units sold.
    sold: Amount,
    /// By how much the pay-outs of the first L units fall short of [`Rate::payout_bound`], as far as known.
    credit: u128,
}

impl Arc {
    fn paid_at(&self, sold: Amount) -> u128 {
        self.rate.payout_bound(sold) - self.credit
    }

    fn paid(&self) -> u128 {
        self.paid_at(self.sold)
    }

    /// The most that may be sold if pay-outs are to stay within `bound`; not below L.
    fn most_within(&self, bound: u128) -> Amount {
        self.rate.most_within(bound + self.credit)
    }
}

/// Amounts at given prices.
pub(crate) struct Amounts {
    /// Units sold of every pair of the book: exactly what its fills sum to.
    pub(crate) sold: Vec<Amount>,
    /// Whether every lower bound is met.
    pub(crate) full: bool,
    /// Assets in short supply when not.
    pub(crate) short: Vec<AssetId>,
}

/// The amounts at `valuations`, whatever they are. Runs on the current rayon pool; the answer does not depend on it.
pub(crate) fn amounts(book: &Book, curves: &Curves, params: &Params, valuations: &[Price]) -> Amounts {
    let arcs = (0..book.pairs.len()).into_par_iter().with_min_len(64);
    let arcs: Vec<Arc> = arcs.filter_map(|pair| arc(book, curves, params, valuations, pair)).collect();
    let mut program = Program::new(book, arcs);
    let values: Vec<f64> = valuations.iter().map(|value| approx(*value)).collect();
    let short = program.settle(book, &values);
    let mut sold = vec![0; book.pairs.len()];
    program.arcs.iter().for_each(|arc| sold[arc.pair] = arc.sold);
    Amounts { sold, full: short.is_empty(), short: short.into_iter().map(|asset| AssetId(asset as u32)).collect() }
}

/// The bounds of one pair; `None` where nothing can trade.
fn arc(book: &Book, curves: &Curves, params: &Params, valuations: &[Price], pair: usize) -> Option<Arc> {
    let (offers, curve) = (&book.pairs[pair], curves.curve(pair));
    let (sell, buy) = (valuations[offers.sell.0 as usize], valuations[offers.buy.0 as usize]);
    let rate = Rate::new(sell, buy, params.epsilon);
    let limit = |level| offers.limits[curve.first_offer(level)];
    let reached = curve.level_at(rate.to_f64(), |level| rate.reaches(limit(level)));
    if reached == 0 {
        return None;
    }
    let gross = rate.to_f64() / (1.0 - params.epsilon.to_f64());
    let must = curve.level_at((1.0 - params.mu.to_f64()) * gross, |level| must_fill(limit(level), params.mu, sell, buy));
    let band = (curve.first_offer(must), curve.first_offer(reached));
    let low = curve.sums[must].amount - curve.unusable(offers, &rate, 0, band.0);
    let high = low + (curve.sums[reached].amount - curve.sums[must].amount)
        - curve.unusable(offers, &rate, band.0, band.1);
    (high > 0).then(|| Arc {
        pair,
        sell: offers.sell.0 as usize,
        buy: offers.buy.0 as usize,
        rate,
        low,
        high,
        band,
        sold: high,
        credit: 0,
    })
}

/// The flow program: arcs, their adjacency, and what each asset has left.
struct Program {
    arcs: Vec<Arc>,
    /// Ways out of every asset's shortage, `edges[first[a]..first[a + 1]]`.
    edges: Vec<Edge>,
    first: Vec<usize>,
    /// Units sold of each asset less units paid out of it.
    slack: Vec<i128>,
    /// Dual values: how many pairs give way for one unit of the asset.
    level: Vec<i32>,
    /// Assets whose surplus turned out to be worth less than a unit of an asset on the way.
    spent: Vec<bool>,
    /// Arcs of which the same is true of what is left of them, for selling more and for selling less.
    closed: Vec<[bool; 2]>,
}

/// A way to move a shortage from one asset to another.
#[derive(Clone, Copy)]
struct Edge {
    arc: u32,
    /// Where the shortage goes.
    to: u32,
    /// Sell less of `to` for the short asset, or else sell more of the short asset for `to`.
    less: bool,
}

impl Edge {
    fn cost(self) -> i32 {
        if self.less { 1 } else { -1 }
    }
}

impl Program {
    fn new(book: &Book, arcs: Vec<Arc>) -> Program {
        let assets = book.assets as usize;
        let mut first = vec![0; assets + 1];
        for arc in &arcs {
            first[arc.sell + 1] += 1;
            first[arc.buy + 1] += 1;
        }
        for asset in 0..assets {
            first[asset + 1] += first[asset];
        }
        let mut next = first.clone();
        let mut edges = vec![Edge { arc: 0, to: 0, less: false }; 2 * arcs.len()];
        for (index, arc) in arcs.iter().enumerate() {
            edges[next[arc.buy]] = Edge { arc: index as u32, to: arc.sell as u32, less: true };
            next[arc.buy] += 1;
            edges[next[arc.sell]] = Edge { arc: index as u32, to: arc.buy as u32, less: false };
            next[arc.sell] += 1;
        }
        Program {
            edges,
            first,
            slack: vec![0; assets],
            level: vec![0; assets],
            spent: vec![false; assets],
            closed: vec![[false; 2]; arcs.len()],
            arcs,
        }
    }

    /// Finds the amounts; returns the assets for which lower bounds had to be dropped, none if all are met.
    fn settle(&mut self, book: &Book, values: &[f64]) -> Vec<usize> {
        let mut short = Vec::new();
        for exact in [false, true] {
            if exact {
                self.count_payouts(book);
            }
            short = self.solve();
            eprintln!("exact {exact} short {:?}", short.iter().map(|a| (*a, self.slack[*a], self.edges_of(*a).iter().filter(|e| self.open(**e)).map(|e| { let a=&self.arcs[e.arc as usize]; (e.to, e.less, a.sold-a.low, a.high-a.sold, self.level[e.to as usize], self.slack[e.to as usize]) }).collect::<Vec<_>>(), self.level[*a])).collect::<Vec<_>>());eprintln!("surplus {:?}", (0..self.slack.len()).filter(|a| self.slack[*a]>0).map(|a| (a, self.slack[a], self.level[a], self.spent[a])).collect::<Vec<_>>());
            // What is short by no more than rounding may be found by rounding.
            self.execute(book, values);
            self.cut(book);
            let below = |arc: &&Arc| arc.sold < arc.low;
            if !self.arcs.iter().any(|arc| below(&arc)) {
                return Vec::new();
            }
            short.extend(self.arcs.iter().filter(below).map(|arc| arc.buy));
        }
        eprintln!("below {:?}", self.arcs.iter().filter(|arc| arc.sold<arc.low).map(|a| (a.sell,a.buy,a.sold,a.low,a.high)).collect::<Vec<_>>());self.arcs.iter_mut().for_each(|arc| (arc.low, arc.credit, arc.band.0) = (0, 0, 0));
        self.solve();
        self.execute(book, values);
        self.cut(book);
        short.sort_unstable();
        short.dedup();
        short
    }

    /// Maximises trade within the bounds; returns the assets that stay short, none if the bounds can be met.
    fn solve(&mut self) -> Vec<usize> {
        self.arcs.iter_mut().for_each(|arc| arc.sold = arc.high);
        self.level.fill(0);
        self.spent.fill(false);
        self.closed.fill([false; 2]);
        self.count_slack();
        while self.slack.iter().any(|slack| *slack < 0) {
            let hops = self.search();
            eprintln!("iteration {:?} {:?}", self.slack.iter().filter(|s| **s<0).count(), hops.iter().max());
            if !self.send(&hops) {
                break;
            }
        }
        (0..self.slack.len()).filter(|asset| self.slack[*asset] < 0).collect()
    }

    fn count_slack(&mut self) {
        self.slack.fill(0);
        for arc in &self.arcs {
            self.slack[arc.sell] += i128::from(arc.sold);
            self.slack[arc.buy] -= arc.paid() as i128;
        }
    }

    /// Replaces the bound on the pay-outs of what must execute by their exact sum.
    fn count_payouts(&mut self, book: &Book) {
        self.arcs.par_iter_mut().with_min_len(16).for_each(|arc| {
            let exact = fills(&book.pairs[arc.pair], &arc.rate, arc.low).bought;
            arc.credit = arc.rate.payout_bound(arc.low).saturating_sub(exact);
        });
    }

    fn edges_of(&self, asset: usize) -> &[Edge] {
        &self.edges[self.first[asset]..self.first[asset + 1]]
    }

    /// Whether a shortage can move along `edge`.
    fn open(&self, edge: Edge) -> bool {
        let arc = &self.arcs[edge.arc as usize];
        let room = if edge.less { arc.sold > arc.low } else { arc.sold < arc.high };
        room && !self.closed[edge.arc as usize][usize::from(edge.less)]
    }

    /// The cost of `edge` from asset `from` less what the levels account for; never negative but by rounding, which is
    /// cut off.
    fn reduced(&self, from: usize, edge: Edge) -> i32 {
        (edge.cost() - self.level[from] + self.level[edge.to as usize]).max(0)
    }

    /// Distances to the nearest asset with a surplus, by cost and then by number of edges; adds the cost to the levels
    /// and returns the numbers of edges, `u32::MAX` where there is no way.
    fn search(&mut self) -> Vec<u32> {
        let assets = self.slack.len();
        let far = (i32::MAX, u32::MAX);
        let mut distance: Vec<(i32, u32)> = (0..assets).map(|a| if self.gives(a) { (0, 0) } else { far }).collect();
        let mut queue: std::collections::BTreeSet<((i32, u32), usize)> =
            (0..assets).filter(|a| self.gives(*a)).map(|a| ((0, 0), a)).collect();
        while let Some(((cost, hops), to)) = queue.pop_first() {
            // Edges into `to` are the reverse of the edges out of it.
            for back in self.edges_of(to) {
                let (from, edge) = (back.to as usize, Edge { arc: back.arc, to: to as u32, less: !back.less });
                let next = (cost + self.reduced(from, edge), hops + 1);
                if next < distance[from] && self.open(edge) {
                    queue.remove(&(distance[from], from));
                    distance[from] = next;
                    queue.insert((next, from));
                }
            }
        }
        let reached = distance.iter().filter(|d| **d != far);
        let farthest = reached.map(|d| d.0).max().unwrap_or(0);
        self.level.iter_mut().zip(&distance).for_each(|(level, d)| *level += d.0.min(farthest));
        distance.into_iter().map(|d| d.1).collect()
    }

    /// Whether `asset` has a surplus to give.
    fn gives(&self, asset: usize) -> bool {
        self.slack[asset] > 0 && !self.spent[asset]
    }

    /// Sends shortages along shortest ways until each is blocked; false if nothing changed.
    fn send(&mut self, hops: &[u32]) -> bool {
        let mut next = self.first.clone();
        let mut changed = false;
        let mut path = Vec::new();
        for from in 0..self.slack.len() {
            while self.slack[from] < 0 && hops[from] != u32::MAX && self.find(from, hops, &mut next, &mut path) {
                self.relieve(from, &path);
                changed = true;
            }
        }
        changed
    }

    /// Finds a way from `from` to a surplus; `next` holds the first edge of each asset that is not yet ruled out.
    fn find(&self, from: usize, hops: &[u32], next: &mut [usize], path: &mut Vec<(usize, Edge)>) -> bool {
        path.clear();
        let mut at = from;
        loop {
            if hops[at] == 0 && self.gives(at) {
                return true;
            }
            let usable = |edge: &Edge| {
                hops[at] == hops[edge.to as usize].saturating_add(1) && self.reduced(at, *edge) == 0 && self.open(*edge)
            };
            match self.edges[next[at]..self.first[at + 1]].iter().position(usable) {
                Some(skip) => {
                    next[at] += skip;
                    let edge = self.edges[next[at]];
                    path.push((at, edge));
                    at = edge.to as usize;
                }
                None => {
                    next[at] = self.first[at + 1];
                    let Some((before, _)) = path.pop() else { return false };
                    next[before] += 1;
                    at = before;
                }
            }
        }
    }

    /// Moves as much of the shortage of `from` along `path` as its edges and the surplus at its end allow.
    fn relieve(&mut self, from: usize, path: &[(usize, Edge)]) {
        let end = path.last().map_or(from, |(_, edge)| edge.to as usize);
        let mut relief = self.slack[end].unsigned_abs();
        let mut bound = None;
        for (_, edge) in path.iter().rev() {
            let (capacity, by_arc) = self.capacity(*edge, relief);
            relief = capacity;
            bound = if by_arc { Some(edge) } else { bound };
        }
        if relief == 0 {
            match bound {
                Some(edge) => self.closed[edge.arc as usize][usize::from(edge.less)] = true,
                None => self.spent[end] = true,
            }
            return;
        }
        let mut wanted = relief.min(self.slack[from].unsigned_abs());
        for (at, edge) in path {
            wanted = self.push(*at, *edge, wanted);
        }
    }

    /// By how much `edge` can relieve its asset at a cost of at most `cost` units to the other, and whether the arc
    /// and not the cost is what limits it.
    fn capacity(&self, edge: Edge, cost: u128) -> (u128, bool) {
        let arc = &self.arcs[edge.arc as usize];
        if edge.less {
            let room = u128::from(arc.sold - arc.low);
            (arc.paid() - arc.paid_at(arc.sold - room.min(cost) as Amount), room < cost)
        } else {
            let most = arc.most_within(arc.paid().saturating_add(cost));
            (u128::from(most.min(arc.high).saturating_sub(arc.sold)), most > arc.high)
        }
    }

    /// Relieves `from` of at least `wanted` units along `edge`; returns what that costs the other asset.
    fn push(&mut self, from: usize, edge: Edge, wanted: u128) -> u128 {
        let arc = &mut self.arcs[edge.arc as usize];
        let (sold, paid) = (arc.sold, arc.paid());
        arc.sold = if edge.less {
            arc.most_within(paid.saturating_sub(wanted)).clamp(arc.low, sold)
        } else {
            sold + wanted as Amount
        };
        let (seller, buyer) = if edge.less { (edge.to as usize, from) } else { (from, edge.to as usize) };
        self.slack[seller] += i128::from(arc.sold) - i128::from(sold);
        self.slack[buyer] -= arc.paid() as i128 - paid as i128;
        if edge.less { u128::from(sold.saturating_sub(arc.sold)) } else { arc.paid().saturating_sub(paid) }
    }

    /// Makes every amount one that fills can execute. What an asset loses by that is passed on along one edge, towards
    /// the surplus that the widest way leads to; assets far from it go first, so that each passes on all it gets.
    fn execute(&mut self, book: &Book, values: &[f64]) {
        self.arcs.par_iter_mut().with_min_len(64).for_each(|arc| arc.sold = arc.executable(book, arc.sold));
        self.count_slack();
        for (asset, edge) in self.widest(values).into_iter().rev() {
            let Some(wanted) = self.slack[asset].checked_neg().filter(|wanted| *wanted > 0) else { continue };
            let arc = &mut self.arcs[edge.arc as usize];
            let (sold, paid) = (arc.sold, arc.paid());
            arc.sold = if edge.less {
                let aim = arc.most_within(paid.saturating_sub(wanted as u128)).clamp(arc.low.min(sold), sold);
                arc.executable(book, aim)
            } else {
                arc.executable_above(book, sold.saturating_add(wanted as Amount)).max(sold)
            };
            self.slack[arc.sell] += i128::from(arc.sold) - i128::from(sold);
            self.slack[arc.buy] -= arc.paid() as i128 - paid as i128;
        }
    }

    /// For each asset that is not itself the end of its widest way to a surplus, the first edge of that way; in the
    /// order of falling width. The width of a way is the least value that its edges, and the surplus, leave room for.
    fn widest(&self, values: &[f64]) -> Vec<(usize, Edge)> {
        let assets = self.slack.len();
        let mut width: Vec<f64> = (0..assets).map(|a| self.slack[a].max(0) as f64 * values[a]).collect();
        let mut way: Vec<Option<Edge>> = vec![None; assets];
        let mut done = vec![false; assets];
        let mut result = Vec::new();
        let mut queue: std::collections::BTreeSet<(u64, usize)> =
            (0..assets).filter(|a| width[*a] > 0.0).map(|a| (width[a].to_bits(), a)).collect();
        while let Some((_, to)) = queue.pop_last() {
            done[to] = true;
            result.extend(way[to].map(|edge| (to, edge)));
            for back in self.edges_of(to).iter().filter(|edge| !done[edge.to as usize]) {
                let (from, arc) = (back.to as usize, &self.arcs[back.arc as usize]);
                let edge = Edge { arc: back.arc, to: to as u32, less: !back.less };
                let room = if edge.less { arc.sold.saturating_sub(arc.low) } else { arc.high.saturating_sub(arc.sold) };
                let next = width[to].min(room as f64 * values[arc.sell]);
                if next > width[from] {
                    queue.remove(&(width[from].to_bits(), from));
                    (width[from], way[from]) = (next, Some(edge));
                    queue.insert((next.to_bits(), from));
                }
            }
        }
        result
    }

    /// Takes what is still short from other pairs, those with room above L first. Amounts only fall, so that it ends.
    fn cut(&mut self, book: &Book) {
        let mut queue: Vec<usize> = (0..self.slack.len()).filter(|a| self.slack[*a] < 0).collect();
        let mut visits = vec![0u32; self.slack.len()];
        while let Some(asset) = queue.pop() {
            while self.slack[asset] < 0 {
                let edge = self.giver(asset).expect("an asset is short only if it is paid out");
                let arc = &mut self.arcs[edge.arc as usize];
                let (sold, paid) = (arc.sold, arc.paid());
                // An asset that comes back again and again gives way more each time.
                let more = 1u128 << (visits[asset] / 8).min(64);
                visits[asset] += 1;
                let wanted = self.slack[asset].unsigned_abs().saturating_mul(more).min(paid);
                let floor = if sold > arc.low { arc.low } else { 0 };
                let aim = arc.most_within(paid - wanted).min(sold - 1).max(floor);
                arc.sold = arc.executable(book, aim);
                if arc.sold < arc.low {
                    arc.credit = 0;
                }
                self.slack[asset] += paid as i128 - arc.paid() as i128;
                self.slack[edge.to as usize] -= i128::from(sold - arc.sold);
                if self.slack[edge.to as usize] < 0 {
                    queue.push(edge.to as usize);
                }
            }
        }
    }

    /// The pair that is to sell less so that `asset` is paid out less: one with room above L and a surplus of what it
    /// sells, else with room, else any; among equals the one that can give most, then the first.
    fn giver(&self, asset: usize) -> Option<Edge> {
        let room = |edge: &Edge| {
            let arc = &self.arcs[edge.arc as usize];
            let given = arc.paid() - arc.paid_at(arc.low.min(arc.sold));
            let surplus = self.slack[edge.to as usize].max(0) as u128;
            (self.capacity_if_open(arc, surplus), given, arc.paid())
        };
        let open = self.edges_of(asset).iter().filter(|edge| edge.less && self.arcs[edge.arc as usize].sold > 0);
        open.copied().rev().max_by_key(room)
    }

    fn capacity_if_open(&self, arc: &Arc, surplus: u128) -> u128 {
        let less = u128::from(arc.sold.saturating_sub(arc.low)).min(surplus) as Amount;
        arc.paid() - arc.paid_at(arc.sold - less)
    }
}

impl Arc {
    /// What fills can give from `sold` up: not always the least, as ever larger steps are tried.
    fn executable_above(&self, book: &Book, sold: Amount) -> Amount {
        let mut aim = sold.min(self.high);
        let mut step = 0;
        loop {
            let got = self.executable(book, aim);
            if got >= sold || aim == self.high {
                return got;
            }
            aim = self.most_within(self.paid_at(aim) + step).saturating_add(1).min(self.high);
            step = 2 * step + 1;
        }
    }

    /// The most of `sold` units that fills can give.
    fn executable(&self, book: &Book, sold: Amount) -> Amount {
        let pair = &book.pairs[self.pair];
        if sold < self.low || self.rate.payout_bound(sold) > u128::from(MAX_ISSUED) {
            return fills(pair, &self.rate, sold).sold;
        }
        if sold == self.high {
            return sold;
        }
        let mut rest = sold - self.low;
        for index in self.band.0..self.band.1 {
            let (limit, amount) = (pair.limits[index], pair.amounts[index]);
            match usable(&self.rate, limit, amount) {
                Use::Nothing => {}
                Use::Full(_) if amount <= rest => rest -= amount,
                _ => return sold - rest + partial(&self.rate, limit, amount.min(rest)).map_or(0, |p| p.sold),
            }
        }
        sold - rest
    }
}
