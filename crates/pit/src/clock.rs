//! This machine's clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How far ahead of this machine's clock this process is.
static AHEAD_MS: AtomicU64 = AtomicU64::new(0);

/// Milliseconds since 1970, as venues and bridges of this process take them.
pub fn clock_ms() -> u64 {
    clock_us() / 1_000
}

/// The same in microseconds.
pub(crate) fn clock_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
    now.saturating_add(AHEAD_MS.load(Ordering::Relaxed).saturating_mul(1_000))
}

/// Moves the clock of this process ahead, for a rehearsal of a later time such as the next midnight.
pub fn advance_clock(ms: u64) {
    AHEAD_MS.fetch_add(ms, Ordering::Relaxed);
}
