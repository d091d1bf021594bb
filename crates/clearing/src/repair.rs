//! Repair of amounts in whole units.
//!
//! Where a unit of one asset is worth many of another, or amounts are of few units, fills can give only some amounts
//! that are far apart, and the pairs around an asset cannot give back unit by unit what rounding takes from it. Here
//! everything is counted exactly. For one short asset at a time, the cheapest path is sought. Along each edge it takes
//! the nearest fills that give at least what is needed. This leaves the next asset a *burden* of so many units, never
//! worth less than what was relieved. A surplus on the path reduces the burden, and the path ends where the burden is
//! gone. If there is no such path, the shortage moves to where it is worth least. Either way no other asset becomes
//! short, and the shortage is worth less and less.
//!
//! If the shortage exceeds what rounding explains, it cannot be repaired, and nothing is tried: see
//! [`Program::is_hopeless`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use primitives::Amount;
use rayon::prelude::*;

use crate::arc::{Arc, Fill};
use crate::budget::Allowance;
use crate::flow::{Edge, Program};

/// Number of tries for the nearest fills that give enough.
const NEAREST: u32 = 8;

/// Maximum number of shortages moved, per asset.
const MOST_MOVES: usize = 16;

/// A shortage moves on if it becomes worth less than this part of itself.
const LESS: f64 = 0.9;

/// An asset that a path has reached.
#[derive(Clone, Copy)]
struct Reached {
    /// Units that it must give.
    burden: u128,
    /// The previous asset, the edge from there, and the new fill of the edge's arc.
    from: Option<(usize, Edge, Fill)>,
    done: bool,
}

/// Amounts under repair.
struct Repair<'p, 'a> {
    program: &'p Program<'a>,
    values: &'p [f64],
    fills: Vec<Fill>,
    slack: Vec<i128>,
    /// Number of shortages moved.
    moved: u32,
    allowance: Allowance,
}

impl Program<'_> {
    /// Tries to leave no asset short, and no arc below what must execute; returns whether it succeeded. Otherwise
    /// amounts stay as they are.
    pub(crate) fn repair(&mut self, values: &[f64]) -> bool {
        if self.allowance.is_spent() {
            return false;
        }
        self.allowance.spend(self.arcs.iter().map(|arc| arc.cost(arc.sold)).sum());
        let arcs = self.arcs.par_iter().with_min_len(16);
        let fills: Vec<Fill> = arcs.map(|arc| arc.fill(arc.sold.max(arc.low))).collect();
        let mut slack = self.bought.clone();
        for (arc, fill) in self.arcs.iter().zip(&fills) {
            slack[arc.sell] += i128::from(fill.sold);
            slack[arc.buy] -= fill.paid as i128;
        }
        let allowance = self.allowance;
        let mut repair = Repair { program: self, values, fills, slack, moved: 0, allowance };
        repair.relieve_all();
        let Repair { fills, slack, moved, allowance, .. } = repair;
        (self.counts.repairs, self.allowance) = (self.counts.repairs + moved, allowance);
        let is_below = |(arc, fill): (&Arc, &Fill)| fill.sold < arc.low;
        if slack.iter().any(|slack| *slack < 0) || self.arcs.iter().zip(&fills).any(is_below) {
            return false;
        }
        self.arcs.iter_mut().zip(fills).for_each(|(arc, fill)| arc.sold = fill.sold);
        self.slack = slack;
        true
    }
}

impl Repair<'_, '_> {
    /// Relieves one short asset after the other, the most short first, until none of the rest can be relieved.
    fn relieve_all(&mut self) {
        for _ in 0..MOST_MOVES * self.slack.len() {
            let mut short: Vec<usize> = (0..self.slack.len()).filter(|asset| self.slack[*asset] < 0).collect();
            if self.allowance.is_spent() {
                return;
            }
            short.sort_by_key(|asset| Reverse(self.worth(self.slack[*asset].unsigned_abs(), *asset)));
            if !short.into_iter().any(|asset| self.relieve(asset)) {
                return;
            }
        }
    }

    /// The value of `units` of `asset`, as bits that compare like the values.
    fn worth(&self, units: u128, asset: usize) -> u64 {
        (units as f64 * self.values[asset]).to_bits()
    }

    /// Finds a path for the shortage of `asset` to a surplus, or at least to where it is worth less, and applies it;
    /// false if there is none.
    fn relieve(&mut self, asset: usize) -> bool {
        let mut reached: Vec<Option<Reached>> = vec![None; self.slack.len()];
        let wanted = self.slack[asset].unsigned_abs();
        reached[asset] = Some(Reached { burden: wanted, from: None, done: false });
        let mut queue = BinaryHeap::from([Reverse((self.worth(wanted, asset), asset))]);
        let mut least = (wanted as f64 * self.values[asset] * LESS, asset);
        while let Some(Reverse((_, at))) = queue.pop() {
            let Some(here) = reached[at].as_mut().filter(|here| !here.done) else { continue };
            here.done = true;
            let left = here.burden.saturating_sub(self.slack[at].max(0) as u128);
            if left == 0 {
                self.go(at, &reached);
                return true;
            }
            let worth = left as f64 * self.values[at];
            least = if worth < least.0 { (worth, at) } else { least };
            if self.allowance.is_spent() {
                return false;
            }
            for edge in self.program.edges_of(at) {
                let to = edge.to as usize;
                if reached[to].is_some_and(|reached| reached.done) {
                    continue;
                }
                let arc = edge.arc as usize;
                self.allowance.spend(4 * self.program.arcs[arc].cost(self.fills[arc].sold));
                let Some((burden, fill)) = self.cost(*edge, left) else { continue };
                if reached[to].is_none_or(|reached| burden < reached.burden) {
                    reached[to] = Some(Reached { burden, from: Some((at, *edge, fill)), done: false });
                    let left = burden.saturating_sub(self.slack[to].max(0) as u128);
                    queue.push(Reverse((self.worth(left, to), to)));
                }
            }
        }
        if least.1 != asset {
            self.go(least.1, &reached);
        }
        least.1 != asset
    }

    /// Applies the path that ends at `at`.
    fn go(&mut self, mut at: usize, reached: &[Option<Reached>]) {
        self.moved += 1;
        while let Some((before, edge, fill)) = reached[at].and_then(|reached| reached.from) {
            let (arc, old) = (&self.program.arcs[edge.arc as usize], self.fills[edge.arc as usize]);
            self.slack[arc.sell] += i128::from(fill.sold) - i128::from(old.sold);
            self.slack[arc.buy] -= fill.paid as i128 - old.paid as i128;
            self.fills[edge.arc as usize] = fill;
            at = before;
        }
    }

    /// The cost to the other asset of relieving one of at least `wanted` units along `edge`, and the fill that does
    /// it.
    fn cost(&self, edge: Edge, wanted: u128) -> Option<(u128, Fill)> {
        let (arc, old) = (&self.program.arcs[edge.arc as usize], self.fills[edge.arc as usize]);
        if edge.less {
            let fill = arc.fill_below(old, wanted)?;
            Some((u128::from(old.sold - fill.sold), fill))
        } else {
            let fill = arc.fill_above(old, wanted)?;
            Some((fill.paid.saturating_sub(old.paid), fill))
        }
    }
}

impl Arc<'_> {
    /// The largest fill found, from L up, whose pay-out is at least `wanted` units less than that of `old`.
    fn fill_below(&self, old: Fill, wanted: u128) -> Option<Fill> {
        let most = old.paid.checked_sub(wanted)?;
        let loose = self.paid_at(old.sold).saturating_sub(old.paid);
        let mut aim = old.sold;
        let mut excess = 0;
        for _ in 0..NEAREST {
            let bound = (most + loose).checked_sub(excess)?;
            aim = self.most_within(bound).min(aim.checked_sub(1)?);
            if aim < self.low {
                return None;
            }
            let fill = self.fill(aim);
            if fill.sold < self.low {
                return None;
            }
            if fill.paid <= most {
                return Some(fill);
            }
            excess += fill.paid - most;
            aim = fill.sold;
        }
        None
    }

    /// The smallest fill found, up to U, that sells at least `wanted` units more than `old`.
    fn fill_above(&self, old: Fill, wanted: u128) -> Option<Fill> {
        let least = u128::from(old.sold) + wanted;
        if least > u128::from(self.high) {
            return None;
        }
        let fill = self.fill(self.executable_above(least as Amount));
        (u128::from(fill.sold) >= least).then_some(fill)
    }
}
