//! What was fair, as measured: delivery windows, holding times, lateness, clock errors.
//!
//! Gateways report of every n-th packet when they showed it. The *delivery window* of a packet is the time between the
//! first and the last release among all gateways, by their own clocks. It is *proven* to be within a target if the
//! window and twice the largest clock error together are; otherwise it is *estimated*.

use std::collections::{BTreeMap, VecDeque};

use crate::Nanos;
use crate::deadlines::percentile;
use crate::link::ShownSample;

/// Complete windows that are kept.
const KEPT: usize = 4_096;
/// Packets of which not all gateways have reported yet.
const OPEN: usize = 256;

/// One packet as all gateways showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryWindow {
    /// The packet.
    pub sequence: u64,
    /// Gateways that reported it.
    pub gateways: usize,
    /// Between the first and the last release, ns.
    pub width: Nanos,
    /// The latest release after the deadline, ns.
    pub late: Nanos,
    /// The longest delay from the root to a gateway, ns.
    pub delay: Nanos,
    /// The longest holding time, ns.
    pub held: Nanos,
    /// The largest clock error; `None` if that of some gateway is not known.
    pub error_bound: Option<Nanos>,
    /// The earliest release after the deadline, ns.
    earliest: Nanos,
}

impl DeliveryWindow {
    fn new(sample: &ShownSample) -> DeliveryWindow {
        DeliveryWindow {
            sequence: sample.sequence,
            gateways: 1,
            width: 0,
            late: sample.late,
            delay: sample.delay,
            held: sample.held,
            error_bound: sample.error_bound,
            earliest: sample.late,
        }
    }

    fn add(&mut self, sample: &ShownSample) {
        self.gateways += 1;
        self.late = self.late.max(sample.late);
        self.earliest = self.earliest.min(sample.late);
        self.width = self.late - self.earliest;
        self.delay = self.delay.max(sample.delay);
        self.held = self.held.max(sample.held);
        self.error_bound = self.error_bound.zip(sample.error_bound).map(|(one, other)| one.max(other));
    }

    /// Whether all gateways certainly showed it within `target` ns of each other.
    pub fn is_proven(&self, target: Nanos) -> bool {
        let spread = |bound: Nanos| self.width.saturating_add(bound.saturating_mul(2));
        self.error_bound.is_some_and(|bound| spread(bound) <= target)
    }
}

/// The delivery windows of sampled packets.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    open: BTreeMap<u64, DeliveryWindow>,
    complete: VecDeque<DeliveryWindow>,
    incomplete: u64,
}

/// Median and 99th percentile, ns.
pub type MedianAndP99 = [Nanos; 2];

/// Figures over the windows that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowFigures {
    /// Complete windows.
    pub windows: usize,
    /// Samples of which some gateway never reported.
    pub incomplete: u64,
    /// Of the width.
    pub width: MedianAndP99,
    /// Of the latest release.
    pub late: MedianAndP99,
    /// Of the longest delay.
    pub delay: MedianAndP99,
    /// Of the longest holding time.
    pub held: MedianAndP99,
    /// Share of windows within the target, by the gateways' own clocks.
    pub within: f64,
    /// Share that is proven to be.
    pub proven: f64,
    /// Largest clock error; `None` if some gateway's was not known.
    pub error_bound: Option<Nanos>,
}

impl Windows {
    /// A gateway's report; `gateways` are expected to send one.
    pub fn add(&mut self, sample: &ShownSample, gateways: usize) {
        self.open
            .entry(sample.sequence)
            .and_modify(|window| window.add(sample))
            .or_insert_with(|| DeliveryWindow::new(sample));
        if self.open[&sample.sequence].gateways >= gateways
            && let Some(window) = self.open.remove(&sample.sequence)
        {
            if self.complete.len() == KEPT {
                self.complete.pop_front();
            }
            self.complete.push_back(window);
        }
        if self.open.len() > OPEN {
            self.open.pop_first();
            self.incomplete += 1;
        }
    }

    /// The complete windows, oldest first.
    pub fn complete(&self) -> impl Iterator<Item = &DeliveryWindow> {
        self.complete.iter()
    }

    /// Figures with this target for the width, ns.
    pub fn figures(&self, target: Nanos) -> WindowFigures {
        let of = |value: fn(&DeliveryWindow) -> Nanos| {
            let mut values: Vec<Nanos> = self.complete.iter().map(value).collect();
            [50, 99].map(|rank| percentile(&mut values, rank).unwrap_or(0))
        };
        let share = |is: &dyn Fn(&DeliveryWindow) -> bool| {
            let count = self.complete.iter().filter(|window| is(window)).count();
            count as f64 / self.complete.len().max(1) as f64
        };
        let bounds: Option<Vec<Nanos>> = self.complete.iter().map(|window| window.error_bound).collect();
        WindowFigures {
            windows: self.complete.len(),
            incomplete: self.incomplete,
            width: of(|window| window.width),
            late: of(|window| window.late),
            delay: of(|window| window.delay),
            held: of(|window| window.held),
            within: share(&|window| window.width <= target),
            proven: share(&|window| window.is_proven(target)),
            error_bound: bounds.and_then(|bounds| bounds.into_iter().max()),
        }
    }
}
