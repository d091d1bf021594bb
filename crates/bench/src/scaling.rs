//! Extrapolation from some threads to more by Amdahl's law, and the memory of a process.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// From times on one thread and on `threads`, of which there are several: the speed-up, the serial share by Amdahl's
/// law, and its prediction for more cores. A noisy pair may be faster than `threads` times; its serial share is then 0.
pub fn amdahl(one_ms: f64, threads: usize, many_ms: f64) -> Value {
    let (speedup, threads) = (one_ms / many_ms, threads as f64);
    let serial = ((threads / speedup - 1.0) / (threads - 1.0)).max(0.0);
    let predicted = |cores: f64| 1.0 / (serial + (1.0 - serial) / cores);
    json!({
        "threads": threads,
        "speedup": speedup,
        "serial_fraction": serial,
        "predicted_speedup": { "8": predicted(8.0), "16": predicted(16.0), "48": predicted(48.0) },
    })
}

/// Figures by their number of threads.
pub type ByThreads<T> = BTreeMap<usize, T>;

/// [`amdahl`] from one thread to the largest number of them; null if only one number was measured.
pub fn amdahl_of(ms: &ByThreads<f64>) -> Value {
    match (ms.get(&1), ms.last_key_value()) {
        (Some(one), Some((threads, many))) if *threads > 1 => amdahl(*one, *threads, *many),
        _ => Value::Null,
    }
}

/// A pool for each number of threads.
///
/// # Panics
/// If the system cannot start threads.
pub fn pools(threads: &[usize]) -> ByThreads<rayon::ThreadPool> {
    let pool = |n: &usize| (*n, rayon::ThreadPoolBuilder::new().num_threads(*n).build().expect("threads"));
    threads.iter().map(pool).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amdahl_finds_the_serial_share_of_any_number_of_threads() {
        for threads in [2, 4, 16] {
            let time = |cores: f64| 10.0 * (0.2 + 0.8 / cores);
            let found = amdahl(time(1.0), threads, time(threads as f64));
            let number = |at: &str| found.pointer(at).and_then(Value::as_f64).expect("a number");
            assert!((number("/serial_fraction") - 0.2).abs() < 1e-9, "{found}");
            assert!((number("/predicted_speedup/8") - time(1.0) / time(8.0)).abs() < 1e-9, "{found}");
        }
        assert_eq!(amdahl_of(&[(2, 1.0)].into()), Value::Null, "nothing on one thread");
    }
}
