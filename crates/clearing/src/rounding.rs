//! The last step to amounts that fills can execute: partial fills cannot give every amount.

use primitives::Amount;

use crate::arc::Arc;
use crate::flow::{Edge, Program};
use rayon::prelude::*;

impl Program<'_> {
    /// Makes every amount one that fills can execute. An asset passes on its loss along one edge, towards the surplus
    /// at the end of its widest path. Assets far from it go first, so that each passes on all that it gets.
    pub(crate) fn execute(&mut self, values: &[f64]) {
        self.allowance.spend(self.arcs.iter().map(|arc| arc.cost(arc.sold)).sum());
        self.arcs.par_iter_mut().with_min_len(64).for_each(|arc| arc.sold = arc.executable(arc.sold));
        self.count_slack();
        for (asset, edge) in self.widest(values).into_iter().rev() {
            let Some(wanted) = self.slack[asset].checked_neg().filter(|wanted| *wanted > 0) else { continue };
            let arc = &mut self.arcs[edge.arc as usize];
            self.allowance.spend(arc.cost(arc.sold));
            let (sold, paid) = (arc.sold, arc.paid());
            arc.sold = if edge.less {
                let aim = arc.most_within(paid.saturating_sub(wanted as u128)).clamp(arc.low.min(sold), sold);
                arc.executable(aim)
            } else {
                arc.executable_above(sold.saturating_add(wanted as Amount)).max(sold)
            };
            self.slack[arc.sell] += i128::from(arc.sold) - i128::from(sold);
            self.slack[arc.buy] -= arc.paid() as i128 - paid as i128;
        }
    }

    /// For each asset that is not itself the end of its widest path to a surplus, the first edge of that path, in the
    /// order of falling width. The width of a path is the least value for which its edges, and the surplus, have
    /// room.
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

    /// Takes remaining shortages from other pairs, those with room above L first. Amounts only fall, so that it ends;
    /// false if the budget ends first.
    pub(crate) fn cut(&mut self) -> bool {
        let mut queue: Vec<usize> = (0..self.slack.len()).filter(|a| self.slack[*a] < 0).collect();
        let mut visits = vec![0u32; self.slack.len()];
        while let Some(asset) = queue.pop() {
            while self.slack[asset] < 0 {
                if self.allowance.is_spent() {
                    return false;
                }
                let edge = self.giver(asset).expect("an asset is short only if it is paid out");
                let arc = &mut self.arcs[edge.arc as usize];
                self.allowance.spend((self.first[asset + 1] - self.first[asset]) as u64 + arc.cost(arc.sold));
                let (sold, paid) = (arc.sold, arc.paid());
                // An asset that comes back repeatedly gives way more each time.
                let more = 1u128 << (visits[asset] / 8).min(64);
                visits[asset] += 1;
                let wanted = self.slack[asset].unsigned_abs().saturating_mul(more).min(paid);
                let floor = if sold > arc.low { arc.low } else { 0 };
                let aim = arc.most_within(paid - wanted).min(sold - 1).max(floor);
                arc.sold = arc.executable(aim);
                self.slack[asset] += paid as i128 - arc.paid() as i128;
                self.slack[edge.to as usize] -= i128::from(sold - arc.sold);
                if self.slack[edge.to as usize] < 0 {
                    queue.push(edge.to as usize);
                }
            }
        }
        true
    }

    /// The pair that must sell less so that `asset` is paid out less: preferably one with room above L and a surplus of
    /// the asset it sells, otherwise one with room, otherwise any. Among equals the one that can give most, then the
    /// first.
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
