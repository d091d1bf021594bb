//! A table, or curves with the table of what they say.

use std::fmt::Write;

use fairnet::sim::Spread;
use serde_json::{Map, Value};

/// One curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartSeries {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Points that are beyond all numbers, by `x`, with what their cell says. They are drawn at the upper edge.
    pub beyond: Vec<(f64, String)>,
    /// The heading of the panel that it is drawn in: curves of one panel share their axes.
    pub panel: &'static str,
    /// Whether the paper says so, and nothing here.
    pub is_quoted: bool,
}

/// Points that a paper states, in units of the axes: their name in the legend, and where they are.
pub type QuotedPoints = (&'static str, &'static [(f64, f64)]);

/// How curves, or bars where `x` is text, are made from the rows of a table.
#[derive(Clone, Copy, Debug)]
pub struct ChartPlot {
    /// The column along the horizontal axis.
    pub x: &'static str,
    /// The column along the vertical axis; of several, separated by commas, each has a panel.
    pub y: &'static str,
    /// Columns whose values make a curve of their own.
    pub by: &'static [&'static str],
    /// Whether the axes are logarithmic.
    pub log: (bool, bool),
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
    /// Names of both axes, of curves that the chart brings.
    pub axes: (&'static str, &'static str),
    /// Curves that are not made from the rows.
    pub series: Vec<ChartSeries>,
    /// Of a validation: whether all its checks hold.
    pub holds: Option<bool>,
}

/// Points of a curve.
const POINTS: usize = 200;

/// The columns of [`percentiles`].
pub(crate) const PERCENTILES: [&str; 7] = ["series", "mean", "deviation", "p50", "p90", "p99", "p99.9"];

/// A row of percentiles.
pub(crate) fn percentiles(name: &str, spread: &Spread) -> Vec<Value> {
    let values = [spread.mean(), spread.deviation(), spread.at(0.5), spread.at(0.9), spread.at(0.99), spread.at(0.999)];
    std::iter::once(Value::from(name)).chain(values.map(rounded)).collect()
}

/// A number with three places; what is infinite says so, since JSON has no such number.
pub(crate) fn rounded(value: f64) -> Value {
    match value {
        f64::INFINITY => Value::from("infinite"),
        value => Value::from((value * 1_000.0).round() / 1_000.0),
    }
}

/// A distribution function as a curve.
pub(crate) fn distribution(name: &str, spread: &Spread) -> ChartSeries {
    let point = |step: usize| {
        let share = step as f64 / POINTS as f64;
        (spread.at(share), share)
    };
    ChartSeries { name: name.into(), points: (0..=POINTS).map(point).collect(), ..ChartSeries::default() }
}

/// The number in a cell. Text that says *infinite* or *over* a number counts as infinite.
pub fn cell_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text == "infinite" || text.starts_with("over ") => Some(f64::INFINITY),
        _ => None,
    }
}

/// A value whose numbers have six significant digits: no more is known of them, and such text is read back exactly.
fn tidy(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.5e}", number.as_f64().unwrap_or(f64::NAN));
            text.parse::<f64>().map_or(Value::Null, Value::from)
        }
        Value::Array(values) => values.iter().map(tidy).collect(),
        other => other.clone(),
    }
}

/// A cell as text: numbers with at most four significant digits.
pub fn cell_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "–".into(),
        Value::Number(number) if number.is_f64() => short(number.as_f64().unwrap_or(f64::NAN)),
        Value::Number(number) => grouped(&number.to_string()),
        other => other.to_string(),
    }
}

fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", digits.clamp(0, 6) as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    grouped(text)
}

/// Thousands are separated by commas.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.find('.').map_or((text, ""), |at| text.split_at(at));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut result = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            result.push(',');
        }
        result.push(digit);
    }
    result + rest
}

impl Chart {
    /// A table of these columns: a name, and where the value is in each of `rows` (a JSON pointer).
    pub fn of(method: &str, columns: &[(&'static str, &str)], rows: &[Value]) -> Chart {
        let cells = |row: &Value| columns.iter().map(|(_, at)| row.pointer(at).map(tidy).unwrap_or_default()).collect();
        Chart {
            method: method.into(),
            columns: columns.iter().map(|(name, _)| *name).collect(),
            table: rows.iter().map(cells).collect(),
            ..Chart::default()
        }
    }

    /// In place of an exhibit that rests on a validation that failed.
    pub fn withdrawn(failed: &[&str]) -> Chart {
        let method = format!("withdrawn: in this run {} failed, on which it rests", failed.join(", "));
        Chart { method, columns: vec!["withdrawn"], ..Chart::default() }
    }

    /// In place of an exhibit that could not be shown.
    pub fn missing(why: &str) -> Chart {
        Chart { method: format!("not shown: {why}"), columns: vec!["not shown"], ..Chart::default() }
    }

    /// Rows of the table as objects.
    pub fn rows(&self) -> Vec<Value> {
        let object = |row: &Vec<Value>| {
            let fields = self.columns.iter().zip(row).map(|(name, value)| ((*name).to_string(), value.clone()));
            Value::Object(fields.collect::<Map<String, Value>>())
        };
        self.table.iter().map(object).collect()
    }

    /// Its own curves, or those that `plot` makes from the rows.
    pub fn curves(&self, plot: Option<&ChartPlot>) -> Vec<ChartSeries> {
        let Some(plot) = plot.filter(|_| self.series.is_empty()) else { return self.series.clone() };
        let mut curves: Vec<ChartSeries> = Vec::new();
        for row in self.rows() {
            let Some(x) = cell_number(&row[plot.x]) else { continue };
            let name = group_name(&row, plot.by);
            for column in plot.y.split(", ") {
                let Some(y) = cell_number(&row[column]) else { continue };
                let panel = if column == plot.y { "" } else { column };
                let is_of = |known: &ChartSeries| known.name == name && known.panel == panel;
                let at = curves.iter().position(is_of).unwrap_or(curves.len());
                if at == curves.len() {
                    curves.push(ChartSeries { name: name.clone(), panel, ..ChartSeries::default() });
                }
                match y.is_finite() {
                    true => curves[at].points.push((x, y)),
                    false => curves[at].beyond.push((x, cell_text(&row[column]))),
                }
            }
        }
        curves
    }

    /// A comment with the kind and the method, the table, and the points of all curves.
    pub fn csv(&self, kind: &str) -> String {
        let mut text = format!("# {kind}: {}\n{}\n", self.method, self.columns.join(","));
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
}

/// The values of some columns in a row, with their names.
pub(crate) fn group_name(row: &Value, by: &[&str]) -> String {
    let part = |name: &&str| format!("{name} {}", cell_text(&row[*name]));
    by.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Rows with one for each entry of a map from numbers (of threads, mostly) in one of their fields: `name` is the
/// number, and the entry takes the place of the map.
pub(crate) fn unrolled(rows: &[Value], field: &str, name: &str) -> Vec<Value> {
    let each = |row: &Value| {
        let entries: Vec<(String, Value)> =
            row[field].as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        let row = row.clone();
        entries.into_iter().filter_map(move |(key, value)| {
            let number: u64 = key.parse().ok()?;
            let mut one = row.clone();
            (one[name], one[field]) = (number.into(), value);
            Some(one)
        })
    };
    rows.iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_short_and_read_back_as_they_were_written() {
        let rows = [json!({ "a": { "b": 24.999_999_999_999_996 }, "c": [1.0 / 3.0], "n": 7 }), json!({ "n": 8 })];
        let chart = Chart::of("by hand", &[("b", "/a/b"), ("c", "/c"), ("n", "/n")], &rows);
        assert_eq!(chart.table, [[json!(25.0), json!([0.333_333]), json!(7)], [Value::Null, Value::Null, json!(8)]]);
        let text = Value::from(chart.table[0].clone()).to_string();
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), Value::from(chart.table[0].clone()));
        let texts = [json!(1_234_567), json!(0.001_234_56), json!(1_234.56), json!(0.0), json!(-1_234.0), Value::Null];
        assert_eq!(texts.map(|value| cell_text(&value)), ["1,234,567", "0.001235", "1,235", "0", "-1,234", "–"]);
    }

    #[test]
    fn curves_are_made_of_the_rows_that_have_both_numbers() {
        let row = |x: Value, y: Value, by: &str| json!({ "x": x, "y": y, "by": by });
        let rows = [row(json!(1), json!(2), "a"), row(json!(2), Value::Null, "a"), row(json!(3), json!(4), "b")];
        let chart = Chart::of("by hand", &[("x", "/x"), ("y", "/y"), ("by", "/by")], &rows);
        let plot = ChartPlot { x: "x", y: "y", by: &["by"], log: (false, false) };
        let curves: Vec<_> = chart.curves(Some(&plot)).into_iter().map(|one| (one.name, one.points)).collect();
        assert_eq!(curves, [("by a".into(), vec![(1.0, 2.0)]), ("by b".into(), vec![(3.0, 4.0)])]);
    }

    #[test]
    fn columns_are_curves_and_what_is_beyond_all_numbers_keeps_its_text() {
        let rows = [json!({ "x": 1, "y": 2, "z": "over 1600", "by": "a" })];
        let chart = Chart::of("by hand", &[("x", "/x"), ("y", "/y"), ("z", "/z"), ("by", "/by")], &rows);
        let curves = chart.curves(Some(&ChartPlot { x: "x", y: "y, z", by: &["by"], log: (false, false) }));
        let names = curves.iter().map(|one| (one.panel, one.name.as_str()));
        assert_eq!(names.collect::<Vec<_>>(), [("y", "by a"), ("z", "by a")]);
        assert_eq!((&curves[0].points[..], &curves[1].points[..]), (&[(1.0, 2.0)][..], &[][..]));
        assert_eq!(curves[1].beyond, [(1.0, "over 1600".to_owned())]);
    }

    #[test]
    fn a_map_by_numbers_becomes_a_row_for_each() {
        let rows = unrolled(&[json!({ "n": 1, "ms": { "1": 5.0, "2": 3.0 } })], "ms", "threads");
        assert_eq!(rows, [json!({ "n": 1, "ms": 5.0, "threads": 1 }), json!({ "n": 1, "ms": 3.0, "threads": 2 })]);
    }
}
