//! A table, or curves, as CSV, as JSON and as a picture.

use std::fmt::Write;

use fairnet::sim::Spread;
use serde_json::{Map, Value};

use super::Exhibit;

/// How numbers came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartLabel {
    /// On sockets of this machine.
    Measured,
    /// Models of the paper, drawn again.
    MonteCarlo,
    /// The cores on one event queue.
    Simulated,
    /// Counted from a plan.
    Arithmetic,
    /// From the paper.
    Quoted,
}

impl ChartLabel {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            ChartLabel::Measured => "measured",
            ChartLabel::MonteCarlo => "Monte Carlo",
            ChartLabel::Simulated => "simulated",
            ChartLabel::Arithmetic => "arithmetic",
            ChartLabel::Quoted => "quoted",
        }
    }
}

/// One curve.
#[derive(Clone, Debug)]
pub struct ChartSeries {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// A table, or curves with a table of what they say.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// How the numbers came about, in a sentence or two.
    pub method: String,
    /// Columns of the table.
    pub columns: Vec<&'static str>,
    /// Its rows.
    pub table: Vec<Vec<Value>>,
    /// Names of both axes.
    pub axes: (&'static str, &'static str),
    /// Curves, if it is a figure.
    pub series: Vec<ChartSeries>,
    /// Of a validation: whether all its checks hold.
    pub holds: Option<bool>,
}

/// Points of a curve.
const POINTS: usize = 200;
const COLOURS: [&str; 8] = ["#1b5e9b", "#c8501e", "#2e7d32", "#7b1fa2", "#b71c1c", "#00796b", "#5d4037", "#455a64"];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
const MARGIN: f64 = 60.0;

/// The columns of [`percentiles`].
pub(super) const PERCENTILES: [&str; 7] = ["series", "mean", "deviation", "p50", "p90", "p99", "p99.9"];

/// A row of percentiles.
pub(super) fn percentiles(name: &str, spread: &Spread) -> Vec<Value> {
    let values = [spread.mean(), spread.deviation(), spread.at(0.5), spread.at(0.9), spread.at(0.99), spread.at(0.999)];
    std::iter::once(Value::from(name)).chain(values.map(rounded)).collect()
}

/// A number with three places.
pub(super) fn rounded(value: f64) -> Value {
    Value::from((value * 1_000.0).round() / 1_000.0)
}

/// A distribution function as a curve.
pub(super) fn distribution(name: &str, spread: &Spread) -> ChartSeries {
    let point = |step: usize| {
        let share = step as f64 / POINTS as f64;
        (spread.at(share), share)
    };
    ChartSeries { name: name.into(), points: (0..=POINTS).map(point).collect() }
}

impl Chart {
    /// In place of a figure whose validation failed.
    pub fn withdrawn(failed: &[&str]) -> Chart {
        let method = format!("withdrawn: in this run {} failed, on which it rests", failed.join(", "));
        Chart { method, columns: vec!["withdrawn"], ..Chart::default() }
    }

    /// Rows of the table as objects.
    pub fn rows(&self) -> Vec<Value> {
        let object = |row: &Vec<Value>| {
            let fields = self.columns.iter().zip(row).map(|(name, value)| ((*name).to_string(), value.clone()));
            Value::Object(fields.collect::<Map<String, Value>>())
        };
        self.table.iter().map(object).collect()
    }

    /// A comment with label and method, the table, and the points of all curves.
    pub fn csv(&self, label: ChartLabel) -> String {
        let mut text = format!("# {}: {}\n{}\n", label.name(), self.method, self.columns.join(","));
        for row in &self.table {
            let cells: Vec<String> = row.iter().map(|value| value.to_string().replace('"', "")).collect();
            let _ = writeln!(text, "{}", cells.join(","));
        }
        if !self.series.is_empty() {
            let _ = writeln!(text, "\nseries,{},{}", self.axes.0, self.axes.1);
        }
        for series in &self.series {
            for (x, y) in &series.points {
                let _ = writeln!(text, "{},{x:.4},{y:.4}", series.name);
            }
        }
        text
    }

    /// Curves, or the table as text, with the label in the title.
    pub fn svg(&self, name: &str, exhibit: &Exhibit) -> String {
        let title = format!("{name}: {} ({})", exhibit.title, exhibit.label.name());
        let body = if self.series.is_empty() { self.text() } else { self.curves() };
        let height = if self.series.is_empty() { 70.0 + 20.0 * (self.table.len() + 1) as f64 } else { HEIGHT };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>\
             <text x=\"{MARGIN}\" y=\"24\" font-size=\"14\">{}</text>{body}</svg>\n",
            escaped(&title)
        )
    }

    fn text(&self) -> String {
        let mut body = String::new();
        let head: Vec<Value> = self.columns.iter().map(|name| Value::from(*name)).collect();
        let step = (WIDTH - 40.0) / self.columns.len().max(1) as f64;
        for (at, row) in std::iter::once(&head).chain(&self.table).enumerate() {
            for (column, value) in row.iter().enumerate() {
                let (x, y) = (20.0 + step * column as f64, 54.0 + 20.0 * at as f64);
                let value = escaped(&value.to_string().replace('"', ""));
                let _ = write!(body, "<text x=\"{x:.0}\" y=\"{y:.0}\">{value}</text>");
            }
        }
        body
    }

    fn curves(&self) -> String {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let most = |value: fn(&(f64, f64)) -> f64| all().map(value).fold(0.0, f64::max).max(1e-9);
        // The last thousandth of a distribution would leave no room for the rest.
        let right = all().filter(|point| point.1 <= 0.99 || most(|point| point.1) > 1.0).map(|point| point.0);
        let (right, top) = (right.fold(0.0, f64::max).max(1e-9), most(|point| point.1));
        let x = |value: f64| MARGIN + (WIDTH - 2.0 * MARGIN) * (value / right).min(1.0);
        let y = |value: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * value / top;
        let mut body = axes(self.axes, right, top);
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let points: Vec<String> = series.points.iter().map(|(a, b)| format!("{:.1},{:.1}", x(*a), y(*b))).collect();
            let _ = write!(
                body,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>\
                 <text x=\"{:.0}\" y=\"{:.0}\" fill=\"{colour}\" text-anchor=\"end\">{}</text>",
                points.join(" "),
                WIDTH - MARGIN - 4.0,
                HEIGHT - MARGIN - 10.0 - 16.0 * at as f64,
                escaped(&series.name)
            );
        }
        body
    }
}

/// Frame, five marks on each axis, names.
fn axes(names: (&str, &str), right: f64, top: f64) -> String {
    let mut body = format!(
        "<rect x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text x=\"8\" y=\"48\">{}</text>",
        WIDTH - 2.0 * MARGIN,
        HEIGHT - 2.0 * MARGIN,
        WIDTH / 2.0,
        HEIGHT - 14.0,
        escaped(names.0),
        escaped(names.1)
    );
    for mark in 0..=4 {
        let share = f64::from(mark) / 4.0;
        let (x, y) = (MARGIN + (WIDTH - 2.0 * MARGIN) * share, HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * share);
        let _ = write!(
            body,
            "<text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{:.3}</text>\
             <text x=\"{}\" y=\"{y:.0}\" text-anchor=\"end\">{:.2}</text>",
            HEIGHT - MARGIN + 18.0,
            right * share,
            MARGIN - 6.0,
            top * share
        );
    }
    body
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
