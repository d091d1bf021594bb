//! Deadlines of packets from measured delays: an all-reduce of the maximum up the tree (Onyx §4, appendix B).
//!
//! Each receiver takes the 95th percentile of its one-way delays and reports it each period ([`DelayMeter`]). Each
//! proxy keeps the last report of each child and reports the maximum each period ([`DelayFold`]). The root adds the
//! maximum, the *headroom*, to the time at which it sends a packet: the packet's deadline ([`Deadlines`]).
//!
//! # Properties
//!
//! - Deadlines never decrease in sequence.
//! - The headroom is at most the ceiling, whatever receivers report.
//! - The fold up a tree equals the maximum over all receivers that are not excluded anywhere on their path.
//!
//! # Deviations from the paper
//!
//! - *Windows* are times, not counts of messages, and reports expire after three periods. In the authors' program
//!   windows count messages and a report of a child that left counts for ever.
//! - *Laggards.* One receiver could delay everybody. A child whose report is above the ceiling, or thrice the median of
//!   its siblings, is excluded from the maximum and marked, so that the feed can say for whom it is not fair.
//! - *Floor.* The paper computes each deadline from the present headroom alone, so that deadlines decrease when it
//!   falls, and receivers would release out of sequence.

use crate::Nanos;

/// How delays become deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineRules {
    /// Percentile of a receiver's delays that it reports.
    pub percentile: u8,
    /// Time of one window, and of one report, ns.
    pub period: Nanos,
    /// Added to the maximum, ns.
    pub margin: Nanos,
    /// Most headroom, ns.
    pub ceiling: Nanos,
    /// A child above its siblings' median times this is excluded.
    pub laggard: u32,
}

impl Default for DeadlineRules {
    /// The paper's percentile over 10 ms; at most 2 ms of headroom.
    fn default() -> DeadlineRules {
        DeadlineRules { percentile: 95, period: 10_000_000, margin: 0, ceiling: 2_000_000, laggard: 3 }
    }
}

impl DeadlineRules {
    /// As in the authors' program: p97, a report each 15 ms, 25 µs more than the maximum.
    pub const ARTIFACT: DeadlineRules =
        DeadlineRules { percentile: 97, period: 15_000_000, margin: 25_000, ceiling: 2_000_000, laggard: 3 };
}

/// Reports live this many periods.
const PERIODS: u64 = 3;
/// Samples of a window beyond this replace earlier ones.
const SAMPLES: usize = 4_096;

/// The value below which at least `percentile` of 100 samples lie, by the nearest rank; `None` of none.
pub fn percentile(samples: &mut [Nanos], percentile: u8) -> Option<Nanos> {
    let rank = (samples.len() * usize::from(percentile.min(100))).div_ceil(100).max(1) - 1;
    (!samples.is_empty()).then(|| *samples.select_nth_unstable(rank).1)
}

/// A receiver's side: collects delays of first authentic copies, reports a percentile each period.
#[derive(Clone, Debug)]
pub struct DelayMeter {
    rules: DeadlineRules,
    samples: Vec<Nanos>,
    taken: usize,
    since: Nanos,
}

impl DelayMeter {
    /// Starts a window.
    pub fn new(now: Nanos, rules: DeadlineRules) -> DelayMeter {
        DelayMeter { rules, samples: Vec::with_capacity(SAMPLES), taken: 0, since: now }
    }

    /// One step: the delay of a packet, if there is one, and a report if the window ends.
    pub fn step(&mut self, now: Nanos, delay: Option<Nanos>) -> Option<Nanos> {
        let report = if now.saturating_sub(self.since) >= self.rules.period { self.close(now) } else { None };
        if let Some(delay) = delay {
            let at = self.taken % SAMPLES;
            if at < self.samples.len() {
                self.samples[at] = delay
            } else {
                self.samples.push(delay)
            }
            self.taken += 1;
        }
        report
    }

    fn close(&mut self, now: Nanos) -> Option<Nanos> {
        let report = percentile(&mut self.samples, self.rules.percentile);
        self.samples.clear();
        (self.taken, self.since) = (0, now);
        report
    }
}

/// What a fold of children's reports says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldEffect {
    /// Maximum over the children that count: goes to the parent.
    Report(Nanos),
    /// A child no longer counts: packets reach it too late.
    Excluded(u32),
    /// A child counts again.
    Included(u32),
}

#[derive(Clone, Copy, Debug)]
struct Reported {
    delay: Nanos,
    at: Nanos,
    is_excluded: bool,
}

/// A proxy's side: the maximum of its children's reports.
#[derive(Clone, Debug)]
pub struct DelayFold {
    rules: DeadlineRules,
    children: Vec<Option<Reported>>,
    since: Nanos,
}

impl DelayFold {
    /// A fold over `children` children.
    pub fn new(now: Nanos, children: usize, rules: DeadlineRules) -> DelayFold {
        DelayFold { rules, children: vec![None; children], since: now }
    }

    /// One step: a child's report, if there is one, and our own if the period ends. Unknown children are ignored.
    pub fn step(&mut self, now: Nanos, report: Option<(u32, Nanos)>, out: &mut Vec<FoldEffect>) {
        if let Some((child, delay)) = report
            && let Some(slot) = self.children.get_mut(child as usize)
        {
            let is_excluded = slot.is_some_and(|before| before.is_excluded);
            *slot = Some(Reported { delay, at: now, is_excluded });
        }
        if now.saturating_sub(self.since) >= self.rules.period {
            self.since = now;
            self.close(now, out);
        }
    }

    fn close(&mut self, now: Nanos, out: &mut Vec<FoldEffect>) {
        let life = self.rules.period.saturating_mul(PERIODS);
        for slot in &mut self.children {
            *slot = slot.filter(|reported| now.saturating_sub(reported.at) <= life);
        }
        let mut sorted: Vec<Nanos> = self.children.iter().flatten().map(|reported| reported.delay).collect();
        sorted.sort_unstable();
        let rules = self.rules;
        for (child, reported) in
            self.children.iter_mut().enumerate().filter_map(|(at, slot)| Some((at, slot.as_mut()?)))
        {
            let is_laggard = is_laggard(&sorted, reported.delay, &rules);
            if is_laggard != reported.is_excluded {
                let child = child as u32;
                out.push(if is_laggard { FoldEffect::Excluded(child) } else { FoldEffect::Included(child) });
            }
            reported.is_excluded = is_laggard;
        }
        let counted = self.children.iter().flatten().filter(|reported| !reported.is_excluded);
        out.extend(counted.map(|reported| reported.delay).max().map(FoldEffect::Report));
    }
}

/// Whether a delay is above the ceiling, or far above the median of the others; `sorted` contains it.
fn is_laggard(sorted: &[Nanos], delay: Nanos, rules: &DeadlineRules) -> bool {
    let own = sorted.partition_point(|other| *other < delay);
    let others = sorted.len() - 1;
    // Of the others, the lower median; with fewer than two there is nobody to be compared with.
    let median = (others >= 2).then(|| {
        let at = (others - 1) / 2;
        sorted[if at < own { at } else { at + 1 }]
    });
    delay > rules.ceiling || median.is_some_and(|median| delay > median.saturating_mul(rules.laggard.into()))
}

/// The root's side: a deadline for each packet.
#[derive(Clone, Debug)]
pub struct Deadlines {
    rules: DeadlineRules,
    headroom: Nanos,
    last: Nanos,
}

impl Deadlines {
    /// Starts with the ceiling as headroom: until somebody has measured, nobody is promised less.
    pub fn new(rules: DeadlineRules) -> Deadlines {
        Deadlines { rules, headroom: rules.ceiling, last: 0 }
    }

    /// Takes the maximum that the fold at the root reports.
    pub fn report(&mut self, delay: Nanos) {
        self.headroom = delay.saturating_add(self.rules.margin).min(self.rules.ceiling);
    }

    /// Present headroom, ns.
    pub fn headroom(&self) -> Nanos {
        self.headroom
    }

    /// The deadline of a packet that is sent now.
    pub fn next(&mut self, now: Nanos) -> Nanos {
        self.last = self.last.max(now.saturating_add(self.headroom));
        self.last
    }
}
