//! The offset of one edge as a line between two clouds of points.

use super::{Edge, EstimatorRules, Samples};

/// A point relative to the edge's origin: time and difference, ns.
type Point = (f64, f64);

/// Steps of a search for a slope: each leaves two thirds of the interval, so 90 leave nothing a float could tell apart.
const STEPS: u32 = 90;

/// What the probes of one edge say.
#[derive(Clone, Debug)]
pub(super) struct EdgeFit {
    origin: (i64, i64),
    newest: f64,
    /// Hulls of the clouds towards each other: upper limits and lower limits of the offset.
    upper: Vec<Point>,
    lower: Vec<Point>,
    slope: f64,
    intercept: f64,
    /// Slopes of lines that lie between the clouds.
    slopes: (f64, f64),
    /// Disagreement of the older and the newer half of the samples about the offset now, ns.
    noise: f64,
    span: f64,
}

/// The part of a cloud's hull that faces down, from left to right.
fn lower_hull(points: &mut Vec<Point>) {
    points.sort_by(|one, two| one.0.total_cmp(&two.0).then(one.1.total_cmp(&two.1)));
    let mut hull: Vec<Point> = Vec::new();
    for point in points.iter() {
        let is_above =
            |one: &Point, two: &Point| (two.0 - one.0) * (point.1 - one.1) <= (two.1 - one.1) * (point.0 - one.0);
        while hull.len() >= 2 && is_above(&hull[hull.len() - 2], &hull[hull.len() - 1]) {
            hull.pop();
        }
        hull.push(*point);
    }
    *points = hull;
}

fn relative(samples: &Samples, origin: (i64, i64)) -> Vec<Point> {
    // Hostile times wrap around: they make a line impossible, and never a panic.
    let between = |one: i64, two: i64| one.wrapping_sub(two) as f64;
    samples.iter().map(|(at, value)| (between(*at, origin.0), between(*value, origin.1))).collect()
}

/// Where a concave function of the slope is greatest.
fn best_slope(mut low: f64, mut high: f64, value: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        let (one, two) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if value(one) < value(two) { low = one } else { high = two }
    }
    low + (high - low) / 2.0
}

/// The furthest slope from `inside` towards `outside` at which a concave function is still not negative.
fn last_slope(mut inside: f64, mut outside: f64, value: impl Fn(f64) -> f64) -> f64 {
    if value(outside) >= 0.0 {
        return outside;
    }
    for _ in 0..STEPS {
        let middle = inside + (outside - inside) / 2.0;
        if value(middle) >= 0.0 { inside = middle } else { outside = middle }
    }
    // Outside of the last that fits, so that rounding never makes a bound too narrow.
    outside
}

/// The greatest intercept of a line of this slope below all upper limits, and the least above all lower ones.
fn intercepts(upper: &[Point], lower: &[Point], slope: f64) -> (f64, f64) {
    let high = upper.iter().map(|(at, value)| value - slope * at).fold(f64::INFINITY, f64::min);
    let low = lower.iter().map(|(at, value)| value - slope * at).fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}

/// Slope and intercept of the line with the widest margin, and its margin.
fn widest(upper: &[Point], lower: &[Point], most: f64) -> (f64, f64, f64) {
    let gap = |slope: f64| {
        let (low, high) = intercepts(upper, lower, slope);
        high - low
    };
    let slope = best_slope(-most, most, gap);
    let (low, high) = intercepts(upper, lower, slope);
    (slope, low + (high - low) / 2.0, high - low)
}

impl EdgeFit {
    /// A line between the clouds; `None` if a direction has no samples, or if no line fits: a clock was set.
    pub(super) fn of(edge: &Edge, rules: &EstimatorRules) -> Option<EdgeFit> {
        let origin = *edge.forward.back()?;
        let (mut upper, mut lower) = (relative(&edge.forward, origin), relative(&edge.reverse, origin));
        let newest = upper.iter().chain(&lower).map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
        let oldest = upper.iter().chain(&lower).map(|point| point.0).fold(f64::INFINITY, f64::min);
        let most = rules.drift_ppm / 1e6;
        let noise = disagreement(&upper, &lower, most, (oldest, newest));
        lower_hull(&mut upper);
        lower.iter_mut().for_each(|point| point.1 = -point.1);
        lower_hull(&mut lower);
        lower.iter_mut().for_each(|point| point.1 = -point.1);
        if lower.is_empty() {
            return None;
        }
        let (slope, intercept, margin) = widest(&upper, &lower, most);
        if margin < 0.0 {
            return None;
        }
        let gap = |slope: f64| {
            let (low, high) = intercepts(&upper, &lower, slope);
            high - low
        };
        let slopes = (last_slope(slope, -most, gap), last_slope(slope, most, gap));
        let span = newest - oldest;
        Some(EdgeFit { origin, newest, upper, lower, slope, intercept, slopes, noise, span })
    }

    /// Time of the newest sample, by the clock of the lower machine.
    pub(super) fn newest(&self) -> f64 {
        self.origin.0 as f64 + self.newest
    }

    /// Drift of the higher machine's clock against the lower one's.
    pub(super) fn slope(&self) -> f64 {
        self.slope
    }

    fn at(&self, time: f64) -> f64 {
        time - self.origin.0 as f64
    }

    /// Offset of the higher machine's clock at a time of the lower one's.
    pub(super) fn offset(&self, time: f64) -> f64 {
        self.origin.1 as f64 + self.intercept + self.slope * self.at(time)
    }

    /// An interval that contains the offset.
    pub(super) fn interval(&self, time: f64, rules: &EstimatorRules) -> (f64, f64) {
        let (at, base, (from, to)) = (self.at(time), self.origin.1 as f64, self.slopes);
        let highest = |slope: f64| intercepts(&self.upper, &self.lower, slope).1 + slope * at;
        let lowest = |slope: f64| intercepts(&self.upper, &self.lower, slope).0 + slope * at;
        let high = highest(best_slope(from, to, highest));
        let low = lowest(best_slope(from, to, |slope| -lowest(slope)));
        // A drift that changes bends the line by half its change times the square of the time.
        let reach = (self.span + (at - self.newest).abs()) / 1e9;
        let bend = rules.wander_ppb * reach * reach / 2.0;
        // Of floats: differences of up to 2^53 ns are exact, and searches end within a millionth of a nanosecond.
        let slack = bend + 1.0;
        let (low, high) = (base + low - slack, base + high + slack);
        let Some(asymmetry) = rules.asymmetry else { return (low, high) };
        let near = asymmetry as f64 / 2.0 + self.noise + 2.0 * rules.tolerance as f64 + slack;
        let offset = self.offset(time);
        (low.max(offset - near), high.min(offset + near))
    }
}

/// How far the fits of the older and the newer half of the samples are apart at the newest.
fn disagreement(upper: &[Point], lower: &[Point], most: f64, (oldest, newest): (f64, f64)) -> f64 {
    let middle = oldest + (newest - oldest) / 2.0;
    let half = |points: &[Point], is_new: bool| -> Vec<Point> {
        points.iter().filter(|point| (point.0 >= middle) == is_new).copied().collect()
    };
    let fit = |is_new: bool| {
        let (upper, lower) = (half(upper, is_new), half(lower, is_new));
        (!upper.is_empty() && !lower.is_empty()).then(|| widest(&upper, &lower, most))
    };
    match (fit(false), fit(true)) {
        (Some(old), Some(new)) => ((old.0 - new.0) * middle + old.1 - new.1).abs(),
        _ => f64::INFINITY,
    }
}
