//! Extrapolation from two threads to more by Amdahl's law, and the memory of a process.

use serde_json::{Value, json};

/// From times on one and on two threads: the speed-up, the serial share by Amdahl's law, and its prediction for more
/// cores. A noisy pair may be more than twice as fast; its serial share is then 0.
pub fn amdahl(one_ms: f64, two_ms: f64) -> Value {
    let speedup = one_ms / two_ms;
    let serial = (2.0 / speedup - 1.0).max(0.0);
    let predicted = |cores: f64| 1.0 / (serial + (1.0 - serial) / cores);
    json!({
        "two_over_one": speedup,
        "serial_fraction": serial,
        "predicted_speedup": { "8": predicted(8.0), "16": predicted(16.0), "48": predicted(48.0) },
    })
}

/// The median of some values.
///
/// # Panics
/// If there are none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Resident memory of this process now and at its peak, in bytes; `None` if the system does not report it.
pub fn resident() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// [`resident`] as part of a report.
pub fn resident_json() -> Value {
    resident().map_or(Value::Null, |(now, peak)| json!({ "now_bytes": now, "peak_bytes": peak }))
}
