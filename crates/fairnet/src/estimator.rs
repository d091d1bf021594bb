//! Clock offsets from a mesh of probes, with bounds (after Huygens: Geng et al., NSDI 2018; Onyx §3, §5.1).
//!
//! Machines send each other *coded probes*: two packets with a known gap. If the gap at the receiver is the same,
//! neither waited in a queue; other pairs are discarded. For each edge, a probe of the forward direction says that the
//! offset is at most received − sent, one of the reverse direction that it is at least that. A line of offset over time
//! is fitted between the two clouds with the widest margin. Then the offsets of all machines to the first are fitted to
//! all edges by least squares: around a loop offsets must add up to zero, and what remains is spread (the *network
//! effect*).
//!
//! The *bound* is computed apart from the estimate. While drifts are constant the true line lies between the clouds, so
//! the offset is in the interval that all such lines cover. The intervals of paths through the mesh are intersected.
//!
//! # Properties
//!
//! - If drifts are constant within a window, and change by no more than declared, the true offset is within the bound,
//!   whatever queues, spikes and asymmetric paths do.
//! - Estimate, bound and share of pure pairs are published apart; a machine without an edge has no estimate.
//!
//! # Deviations from the paper
//!
//! - *Hard margin.* Huygens trains a soft-margin support vector machine. Spikes delay probes and never hasten them, so
//!   no point lies on the wrong side: the widest hard margin is exact, and is one search over the slope of two hulls.
//! - *Bounds.* Huygens reports estimates. Asymmetry is invisible to probes, so our bound contains half of the least
//!   round trip, unless the operator declares how asymmetric paths can be.

mod fit;
mod mesh;

use std::collections::{BTreeMap, VecDeque};

use crate::Nanos;
use fit::EdgeFit;

/// A coded probe: when its two packets were sent, by the sender's clock, and received, by the receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePair {
    /// Sent, ns.
    pub sent: [Nanos; 2],
    /// Received, ns.
    pub received: [Nanos; 2],
}

/// How offsets are estimated.
#[derive(Clone, Copy, Debug)]
pub struct EstimatorRules {
    /// Difference of a pair's gaps with which it still counts as pure, ns.
    pub tolerance: Nanos,
    /// How long samples count, ns.
    pub window: Nanos,
    /// Fastest drift between two clocks, in parts per million.
    pub drift_ppm: f64,
    /// How fast a drift changes, in parts per billion and second.
    pub wander_ppb: f64,
    /// Most by which the two directions of a path differ, ns, if the operator knows it.
    pub asymmetry: Option<Nanos>,
    /// Samples of a direction of an edge that are kept.
    pub samples: usize,
}

impl Default for EstimatorRules {
    fn default() -> EstimatorRules {
        EstimatorRules {
            tolerance: 100,
            window: 1_000_000_000,
            drift_ppm: 500.0,
            wander_ppb: 10.0,
            asymmetry: None,
            samples: 512,
        }
    }
}

/// What is known of a machine's clock at some time of the first machine's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockEstimate {
    /// By how much this clock is ahead of the first machine's, ns.
    pub offset: f64,
    /// How fast that grows, in parts per million.
    pub drift_ppm: f64,
    /// Largest possible error of the offset, ns.
    pub bound: f64,
    /// Share of this machine's probe pairs that were pure.
    pub pure: f64,
}

/// One direction's samples: (time by the clock of the lower machine, difference of the clocks as it seems).
type Samples = VecDeque<(i64, i64)>;

#[derive(Clone, Debug, Default)]
struct Edge {
    forward: Samples,
    reverse: Samples,
}

/// Estimates offsets of the clocks of a mesh of machines. Machine 0 is the reference.
#[derive(Clone, Debug)]
pub struct Estimator {
    rules: EstimatorRules,
    edges: BTreeMap<(u32, u32), Edge>,
    /// Pairs of each machine: pure ones, all.
    pairs: Vec<(u64, u64)>,
}

impl Estimator {
    /// An estimator for so many machines.
    pub fn new(machines: usize, rules: EstimatorRules) -> Estimator {
        Estimator { rules, edges: BTreeMap::new(), pairs: vec![(0, 0); machines] }
    }

    /// Takes a probe of `from` to `to`. Probes of unknown machines and to oneself are ignored.
    pub fn probe(&mut self, from: u32, to: u32, pair: &ProbePair) {
        let machines = self.pairs.len() as u32;
        if from == to || from >= machines || to >= machines {
            return;
        }
        let is_pure = self.is_pure(pair);
        for machine in [from, to] {
            let (pure, all) = &mut self.pairs[machine as usize];
            (*pure, *all) = (*pure + u64::from(is_pure), *all + 1);
        }
        if is_pure {
            (0..2).for_each(|packet| self.sample(from, to, pair.sent[packet] as i64, pair.received[packet] as i64));
        }
    }

    fn is_pure(&self, pair: &ProbePair) -> bool {
        let gap = |times: [Nanos; 2]| times[1].checked_sub(times[0]);
        match (gap(pair.sent), gap(pair.received)) {
            (Some(sent), Some(received)) => sent.abs_diff(received) <= self.rules.tolerance,
            _ => false,
        }
    }

    fn sample(&mut self, from: u32, to: u32, sent: i64, received: i64) {
        let edge = self.edges.entry((from.min(to), from.max(to))).or_default();
        let (samples, sample) = match from < to {
            true => (&mut edge.forward, (sent, received.wrapping_sub(sent))),
            false => (&mut edge.reverse, (received, sent.wrapping_sub(received))),
        };
        if samples.len() == self.rules.samples {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Estimates of all machines at `now` of the first machine's clock; `None` for those without a path of good edges.
    pub fn estimate(&mut self, now: Nanos) -> Vec<Option<ClockEstimate>> {
        self.forget();
        let fits: Vec<((u32, u32), EdgeFit)> =
            self.edges.iter().filter_map(|(ends, edge)| Some((*ends, EdgeFit::of(edge, &self.rules)?))).collect();
        // A fit is a function of its own machine's clock, which is known once offsets are: two rounds are enough.
        let machines = self.pairs.len();
        let first = mesh::offsets(machines, &fits, &|_, fit| fit.newest());
        let time = |machine: u32| now as f64 + first[machine as usize].unwrap_or(0.0);
        let found = mesh::offsets(machines, &fits, &|ends, _| time(ends.0));
        let bounds = mesh::bounds(machines, &fits, &|ends| time(ends.0), &self.rules);
        let drifts = mesh::drifts(machines, &fits);
        let estimate = |machine: usize| {
            let (offset, (low, high)) = (found[machine]?, bounds[machine]?);
            let (pure, all) = self.pairs[machine];
            let bound = (high - offset).max(offset - low);
            let drift_ppm = drifts[machine].map_or(0.0, |drift| drift * 1e6);
            Some(ClockEstimate { offset, drift_ppm, bound, pure: pure as f64 / all.max(1) as f64 })
        };
        (0..machines).map(estimate).collect()
    }

    /// Forgets samples that are older than the window, by the newest of their edge.
    fn forget(&mut self) {
        let window = self.rules.window as i64;
        for edge in self.edges.values_mut() {
            let newest = edge.forward.back().into_iter().chain(edge.reverse.back()).map(|sample| sample.0).max();
            let oldest = newest.map_or(i64::MIN, |newest| newest.saturating_sub(window));
            [&mut edge.forward, &mut edge.reverse].into_iter().for_each(|samples| samples.retain(|at| at.0 >= oldest));
        }
    }
}
