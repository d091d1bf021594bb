//! Formats the rows of a report as tables for people.

use std::collections::BTreeSet;

use serde_json::Value;

/// The fields of `report` except its rows, one per line, then its rows: a table for every set of columns, in the
/// order of their first rows. Nested fields are columns with dotted names.
pub fn text(report: &Value) -> String {
    let mut result = String::new();
    for (name, value) in report.as_object().into_iter().flatten().filter(|(name, _)| *name != "rows") {
        result += &format!("{name}: {}\n", cell(value));
    }
    let rows: Vec<Vec<(String, String)>> =
        report["rows"].as_array().into_iter().flatten().map(|row| flat(row, "")).collect();
    let names = |row: &[(String, String)]| row.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let mut seen = BTreeSet::new();
    for columns in rows.iter().map(|row| names(row)).filter(|columns| seen.insert(columns.clone())) {
        let alike: Vec<_> = rows.iter().filter(|row| names(row) == columns).collect();
        let wide = alike.iter().any(|row| row.iter().any(|(_, value)| value.len() > CELL_MOST));
        let text = if wide { alike.iter().map(|row| record(row)).collect() } else { table(&columns, &alike) };
        result += &format!("\n{text}");
    }
    result
}

/// A row with a longer value than this is printed on a line of its own.
const CELL_MOST: usize = 32;

fn record(row: &[(String, String)]) -> String {
    let fields: Vec<String> = row.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{}\n", fields.join("; "))
}

/// One line for each column, since rows of figures are wider than a screen: its name, then its value in every row.
fn table(columns: &[String], rows: &[&Vec<(String, String)>]) -> String {
    let name_width = columns.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let width = |row: &[(String, String)]| row.iter().map(|(_, value)| value.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = rows.iter().map(|row| width(row)).collect();
    let mut result = String::new();
    for (at, name) in columns.iter().enumerate() {
        result += &format!("{name:<name_width$}");
        rows.iter().zip(&widths).for_each(|(row, width)| result += &format!("  {:>width$}", row[at].1));
        result.push('\n');
    }
    result
}

fn flat(value: &Value, path: &str) -> Vec<(String, String)> {
    let join = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(key, value)| flat(value, &join(key))).collect(),
        plain => vec![(path.to_string(), cell(plain))],
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => decimal(number.as_f64().unwrap_or(f64::NAN)),
        Value::Null => "-".into(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// At most four places, and none that are zero.
fn decimal(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_of_a_kind_stand_side_by_side() {
        let report = json!({"suite": "s", "rows": [
            {"n": 1, "t": {"a": 0.5}}, {"x": [1, 2]}, {"n": 20, "t": {"a": null}},
        ]});
        assert_eq!(text(&report), "suite: s\n\nn      1  20\nt.a  0.5   -\n\nx  1, 2\n");
        let long = "a".repeat(33);
        assert_eq!(text(&json!({"rows": [{"n": 1, "text": long}]})), format!("\nn: 1; text: {long}\n"));
    }
}
