//! Axes: what they span, and where their ticks are.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::super::chart::cell_text;

/// Most ticks of a linear axis.
const TICKS: f64 = 8.0;

/// One axis. A logarithmic one has places in powers of ten.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    is_log: bool,
    /// From where to where, as places.
    pub(super) range: Range<f64>,
}

impl Axis {
    /// An axis of these values, with some room. Linear ones begin at zero: a difference of a tenth should look like
    /// one.
    pub(super) fn of(values: impl Iterator<Item = f64>, is_log: bool) -> Axis {
        let places: Vec<f64> = values.filter_map(|value| place(value, is_log)).collect();
        let most = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = places.iter().copied().fold(f64::INFINITY, f64::min);
        let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
        let range = match is_log {
            true => (least - 0.1)..(most + 0.1),
            false if most > least.min(0.0) => least.min(0.0)..most * 1.05,
            false => least.min(0.0)..least.min(0.0) + 1.0,
        };
        Axis { is_log, range }
    }

    /// The same from a power of ten on, so that the lowest bar has a height.
    pub(super) fn down_to_a_power(mut self) -> Axis {
        if self.is_log {
            self.range.start = (self.range.start - 0.1).floor();
        }
        self
    }

    /// Where a value stands; none for what the axis has no place for.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        place(value, self.is_log)
    }

    /// Places of the ticks: powers of ten, with twice and five times them where the axis has fewer than three.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let Range { start, end } = self.range;
        if !self.is_log {
            let step = nice((end - start) / TICKS);
            return (((start / step).ceil() as i64)..=((end / step).floor() as i64))
                .map(|at| at as f64 * step)
                .collect();
        }
        let powers = (start.floor() as i32)..=(end.ceil() as i32);
        let within = |parts: &'static [f64]| {
            let all = powers.clone().flat_map(|power| parts.iter().map(move |part| f64::from(power) + part.log10()));
            all.filter(|at| self.range.contains(at)).collect::<Vec<f64>>()
        };
        let whole = within(&[1.0]);
        if whole.len() < 3 { within(&[1.0, 2.0, 5.0]) } else { whole }
    }

    /// The text of a tick: 1,500,000 is 1.5M.
    pub(super) fn label(&self, place: f64) -> String {
        let value = if self.is_log { 10f64.powf(place) } else { place };
        let (divided, unit) = match value.abs() {
            size if size >= 1e9 => (value / 1e9, "G"),
            size if size >= 1e6 => (value / 1e6, "M"),
            size if size >= 1e4 => (value / 1e3, "k"),
            _ => (value, ""),
        };
        format!("{}{unit}", cell_text(&serde_json::Value::from((divided * 1e4).round() / 1e4)))
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (low, high): (i32, i32)) -> i32 {
        along(&self.range, *place, low, high)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(place: &f64) -> String {
        place.to_string()
    }

    fn format_ext(&self, place: &f64) -> String {
        self.label(*place)
    }
}

/// An axis of names, each in the middle of its place.
#[derive(Clone, Debug)]
pub(super) struct Names(pub(super) Vec<String>);

impl Ranged for Names {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (low, high): (i32, i32)) -> i32 {
        along(&self.range(), *place, low, high)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        (0..self.0.len()).map(|at| at as f64 + 0.5).collect()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.0.len() as f64
    }
}

impl ValueFormatter<f64> for Names {
    fn format(place: &f64) -> String {
        place.to_string()
    }

    fn format_ext(&self, place: &f64) -> String {
        self.0.get(*place as usize).cloned().unwrap_or_default()
    }
}

/// The pixel of a place.
fn along(range: &Range<f64>, place: f64, low: i32, high: i32) -> i32 {
    let share = (place - range.start) / (range.end - range.start);
    low + (share * f64::from(high - low)).round() as i32
}

fn place(value: f64, is_log: bool) -> Option<f64> {
    let place = if is_log { value.log10() } else { value };
    place.is_finite().then_some(place)
}

/// The least of 1, 2 and 5 times a power of ten that is at least this.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0].map(|part| part * power).into_iter().find(|nice| *nice >= step).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], is_log: bool) -> Vec<String> {
        let axis = Axis::of(values.iter().copied(), is_log);
        axis.ticks().into_iter().map(|tick| axis.label(tick)).collect()
    }

    #[test]
    fn ticks_of_a_logarithmic_axis_are_powers_of_ten() {
        assert_eq!(labels(&[1.0, 1_000.0], true), ["1", "10", "100", "1,000"]);
        assert_eq!(labels(&[1.0, 4.0], true), ["1", "2", "5"], "an axis of less than a power");
        assert_eq!(labels(&[0.0, f64::INFINITY, 100.0], true), ["100"], "what it has no place for");
    }

    #[test]
    fn ticks_of_a_linear_axis_are_round_and_begin_at_zero() {
        assert_eq!(labels(&[3.0, 7.5], false), ["0", "1", "2", "3", "4", "5", "6", "7"]);
        assert_eq!(labels(&[-10.0, 1e6], false).first().map(String::as_str), Some("0"));
        assert_eq!(labels(&[], false).len(), 6, "an axis without values");
    }

    #[test]
    fn bars_begin_a_power_below_the_lowest() {
        let axis = Axis::of([20.0, 3_000.0].into_iter(), true).down_to_a_power();
        assert!(axis.range.start <= 1.0 && axis.place(20.0) > Some(axis.range.start));
    }
}
