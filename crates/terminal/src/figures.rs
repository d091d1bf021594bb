//! Figures of measurements, printed for people or as JSON.

use serde_json::Value;

/// As one JSON document, or one figure per line.
pub fn print_figures(figures: &Value, json: bool) {
    if json {
        println!("{figures}");
    } else {
        lines(figures, "");
    }
}

fn lines(value: &Value, path: &str) {
    let join = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| lines(value, &join(key))),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, value)| lines(value, &join(&i.to_string()))),
        Value::Number(number) if number.is_f64() => println!("{path:<52} {:.3}", number.as_f64().unwrap_or(0.0)),
        plain => println!("{path:<52} {plain}"),
    }
}
