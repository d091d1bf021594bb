//! Standard output, whose reader may close it before the command is done.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

static READER_IS_GONE: AtomicBool = AtomicBool::new(false);

/// Prints a line. If the reader has closed the pipe, this and all later lines are dropped.
pub(crate) fn line(text: Arguments) {
    if writeln!(std::io::stdout().lock(), "{text}").is_err() {
        READER_IS_GONE.store(true, Ordering::Relaxed);
    }
}

/// Whether a line could not be printed because the reader closed the pipe; the command may then stop.
pub(crate) fn reader_is_gone() -> bool {
    READER_IS_GONE.load(Ordering::Relaxed)
}

/// As one JSON document, or one figure per line.
pub(crate) fn print_figures(figures: &Value, json: bool) {
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
