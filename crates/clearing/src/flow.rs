//! The flow program of the amount step: shortages move along pairs to assets with a surplus.

use primitives::Amount;

use crate::arc::Arc;
use crate::budget::Allowance;
use crate::budget::Spending;

/// The flow program: arcs, their adjacency, and the surplus of each asset.
pub(crate) struct Program<'a> {
    pub(crate) arcs: Vec<Arc<'a>>,
    /// Edges along which the shortage of each asset can move, `edges[first[a]..first[a + 1]]`.
    pub(crate) edges: Vec<Edge>,
    pub(crate) first: Vec<usize>,
    /// Units sold of each asset less units paid out of it.
    pub(crate) slack: Vec<i128>,
    /// The effect of exact orders on each asset: units sold by them less units bought.
    pub(crate) bought: Vec<i128>,
    /// The allowance.
    pub(crate) allowance: Allowance,
    /// The budget of one of its two stages.
    budget: u64,
    /// Work spent so far, without looks.
    pub(crate) counts: Spending,
    /// Dual values: the number of pairs that give way for one unit of the asset.
    pub(crate) level: Vec<i32>,
    /// Assets whose surplus turned out to be worth less than a unit of an asset on the path.
    pub(crate) spent: Vec<bool>,
    /// Arcs whose remaining capacity is likewise too small, for selling more and for selling less.
    pub(crate) closed: Vec<[bool; 2]>,
}

/// A way to move a shortage from one asset to another.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) arc: u32,
    /// The asset to which the shortage moves.
    pub(crate) to: u32,
    /// Whether `to` is sold less for the short asset; otherwise the short asset is sold more for `to`.
    pub(crate) less: bool,
}

impl Edge {
    fn cost(self) -> i32 {
        if self.less { 1 } else { -1 }
    }
}

impl<'a> Program<'a> {
    /// The program of `arcs` between so many assets, with a budget of `looks` per edge, asset and eighth offer.
    pub(crate) fn new(assets: usize, arcs: Vec<Arc<'a>>, looks: u32) -> Program<'a> {
        let offers: u64 = arcs.iter().map(Arc::offers).sum();
        let budget = u64::from(looks) * (2 * arcs.len() as u64 + assets as u64 + offers / 8);
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
            bought: vec![0; assets],
            allowance: Allowance::new(budget),
            budget,
            counts: Spending::default(),
            level: vec![0; assets],
            spent: vec![false; assets],
            closed: vec![[false; 2]; arcs.len()],
            arcs,
        }
    }

    /// Work spent so far.
    pub(crate) fn spending(&self) -> Spending {
        Spending { amount_looks: self.allowance.spent, ..self.counts }
    }

    /// Renews the budget.
    pub(crate) fn renew_allowance(&mut self) {
        self.allowance.renew(self.budget);
    }

    /// Maximises trade within the bounds; returns the assets that stay short, none if the bounds can be met within
    /// the budget.
    pub(crate) fn solve(&mut self) -> Vec<usize> {
        self.arcs.iter_mut().for_each(|arc| arc.sold = arc.high);
        self.level.fill(0);
        self.spent.fill(false);
        self.closed.fill([false; 2]);
        self.count_slack();
        let mut moved = false;
        while self.slack.iter().any(|slack| *slack < 0) && !self.allowance.is_spent() {
            self.counts.rounds += 1;
            let hops = self.search();
            let (changed, has_moved) = self.send(&hops);
            moved |= has_moved;
            if changed {
                continue;
            }
            if moved {
                // What was too small before may be large enough now.
                moved = false;
                self.spent.fill(false);
                self.closed.fill([false; 2]);
            } else {
                break;
            }
        }
        (0..self.slack.len()).filter(|asset| self.slack[*asset] < 0).collect()
    }

    /// Whether the shortage in value exceeds what rounding explains, so that no amounts in whole units meet the
    /// bounds either. Rounding explains a unit of the dearer asset for the pay-out of each offer that may execute,
    /// and two for each pair.
    pub(crate) fn is_hopeless(&self, values: &[f64]) -> bool {
        let short: f64 = self.slack.iter().zip(values).map(|(slack, value)| -(*slack.min(&0) as f64) * value).sum();
        let rounded = |arc: &Arc| (arc.within() + 2) as f64 * values[arc.sell].max(values[arc.buy]);
        short > self.arcs.iter().map(rounded).sum()
    }

    pub(crate) fn count_slack(&mut self) {
        self.slack.clone_from(&self.bought);
        for arc in &self.arcs {
            self.slack[arc.sell] += i128::from(arc.sold);
            self.slack[arc.buy] -= arc.paid() as i128;
        }
    }

    pub(crate) fn edges_of(&self, asset: usize) -> &[Edge] {
        &self.edges[self.first[asset]..self.first[asset + 1]]
    }

    /// Whether a shortage can move along `edge`.
    fn open(&self, edge: Edge) -> bool {
        let arc = &self.arcs[edge.arc as usize];
        let room = if edge.less { arc.sold > arc.low } else { arc.sold < arc.high };
        room && !self.closed[edge.arc as usize][usize::from(edge.less)]
    }

    /// The cost of `edge` from asset `from` less what the levels account for; negative only by rounding, which is cut
    /// off.
    fn reduced(&self, from: usize, edge: Edge) -> i32 {
        (edge.cost() - self.level[from] + self.level[edge.to as usize]).max(0)
    }

    /// Distances to the nearest asset with a surplus, by cost and then by number of edges; adds the cost to the
    /// levels and returns the numbers of edges, `u32::MAX` if there is no path.
    fn search(&mut self) -> Vec<u32> {
        let assets = self.slack.len();
        let far = (i32::MAX, u32::MAX);
        let mut distance: Vec<(i32, u32)> = (0..assets).map(|a| if self.gives(a) { (0, 0) } else { far }).collect();
        let mut queue: std::collections::BTreeSet<((i32, u32), usize)> =
            (0..assets).filter(|a| self.gives(*a)).map(|a| ((0, 0), a)).collect();
        while let Some(((cost, hops), to)) = queue.pop_first() {
            self.allowance.spend(1 + (self.first[to + 1] - self.first[to]) as u64);
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

    /// Sends shortages along shortest paths until each is blocked. Returns whether anything changed, and whether any
    /// units moved.
    fn send(&mut self, hops: &[u32]) -> (bool, bool) {
        let mut next = self.first.clone();
        let (mut changed, mut moved) = (false, false);
        let mut path = Vec::new();
        for from in 0..self.slack.len() {
            while self.slack[from] < 0
                && hops[from] != u32::MAX
                && !self.allowance.is_spent()
                && self.find(from, hops, &mut next, &mut path)
            {
                self.counts.augmentations += 1;
                moved |= self.relieve(from, &path);
                changed = true;
            }
        }
        (changed, moved)
    }

    /// Finds a path from `from` to a surplus; `next` holds the first edge of each asset that is not yet ruled out.
    fn find(&mut self, from: usize, hops: &[u32], next: &mut [usize], path: &mut Vec<(usize, Edge)>) -> bool {
        path.clear();
        let mut at = from;
        loop {
            if hops[at] == 0 && self.gives(at) {
                return true;
            }
            let usable = |edge: &Edge| {
                hops[at] == hops[edge.to as usize].saturating_add(1) && self.reduced(at, *edge) == 0 && self.open(*edge)
            };
            let found = self.edges[next[at]..self.first[at + 1]].iter().position(usable);
            self.allowance.spend(1 + found.unwrap_or(self.first[at + 1] - next[at]) as u64);
            match found {
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

    /// Moves as much of the shortage of `from` along `path` as its edges and the surplus at its end allow; false if
    /// that is nothing.
    fn relieve(&mut self, from: usize, path: &[(usize, Edge)]) -> bool {
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
            return false;
        }
        let mut wanted = relief.min(self.slack[from].unsigned_abs());
        for (at, edge) in path {
            wanted = self.push(*at, *edge, wanted);
        }
        true
    }

    /// How much `edge` can relieve its asset at a cost of at most `cost` units to the other asset, and whether the
    /// arc rather than the cost is the limit.
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

    /// Relieves `from` of at least `wanted` units along `edge`; returns the cost to the other asset.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arc::arc;
    use crate::book::{Book, Params, SortedOffers};
    use crate::prices::Market;
    use crate::rate::approx;
    use crate::supply::Supply;
    use crate::workload;
    use primitives::{Fraction, Price};

    /// An upper bound of the value that any amounts within the bounds can trade, if no asset may be short: the weak
    /// dual of the program, with the levels as prices of short units. It holds for any levels from 0 up.
    fn most_trade(program: &Program, values: &[f64], epsilon: f64) -> f64 {
        let dual = |asset: usize| (0..program.level[asset]).fold(0.0, |u, _| (1.0 + u) / (1.0 - epsilon));
        let most = |arc: &Arc| {
            let gain = values[arc.sell] * (1.0 + dual(arc.sell) - (1.0 - epsilon) * dual(arc.buy));
            f64::max(gain * arc.low as f64, gain * arc.high as f64)
        };
        program.arcs.iter().map(most).sum()
    }

    fn traded(program: &Program, values: &[f64]) -> f64 {
        program.arcs.iter().map(|arc| values[arc.sell] * arc.sold as f64).sum()
    }

    #[test]
    fn no_amounts_trade_more() {
        for (seed, epsilon) in [(1, Fraction::ZERO), (2, Fraction::power_of_two(15)), (3, Fraction::power_of_two(11))] {
            let offers = workload::cycles(12, 3000, seed);
            let sorted = SortedOffers::new(12, &offers);
            let (book, params) = (sorted.book(), Params { epsilon, ..Params::default() });
            let mut valuations = Market::new(&book).unwrap().prices(&params, None).unwrap().valuations;
            for shift in [0.0, 0.0002, 0.02] {
                valuations[3] = Price::from_f64(valuations[3].to_f64() * (1.0 + shift)).unwrap();
                check(&book, &params, &valuations, shift > 0.01);
            }
        }
    }

    fn check(book: &Book<'_>, params: &Params, valuations: &[Price], infeasible: bool) {
        let supply = Supply::new(book);
        let values: Vec<f64> = valuations.iter().map(|value| approx(*value)).collect();
        let arcs = (0..book.pairs.len()).filter_map(|pair| arc(book, &supply, params, valuations, &values, pair));
        let mut program = Program::new(book.assets as usize, arcs.collect(), 400);
        let short = program.solve();
        assert_eq!(!short.is_empty(), infeasible);
        if infeasible {
            program.arcs.iter_mut().for_each(|arc| arc.low = 0);
            assert!(program.solve().is_empty());
        }
        assert!(program.slack.iter().all(|slack| *slack >= 0));
        assert!(program.arcs.iter().all(|arc| (arc.low..=arc.high).contains(&arc.sold)));
        let (got, most) = (traded(&program, &values), most_trade(&program, &values, params.epsilon.to_f64()));
        // Pay-outs are rounded down, so whole amounts may even be slightly better than real-valued ones.
        assert!((got / most - 1.0).abs() < 1e-6, "{got} of at most {most}");
    }
}
