//! The time of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use fairnet::{ClockState, Nanos};

/// The system's clock, with the error that its operator declares.
///
/// The time never goes back: after a step backwards it stands still until the system's time has caught up.
#[derive(Clone, Copy, Debug)]
pub struct EdgeClock {
    error_bound: Option<Nanos>,
    /// By how much it is wrong on purpose, ns.
    ahead: i64,
    last: Nanos,
}

impl EdgeClock {
    /// The system's clock. `error_bound` is how wrong it can be against the other members' clocks, ns: what the
    /// operator's synchronisation promises. `None`: nothing is promised, and no release is called fair.
    pub fn system(error_bound: Option<Nanos>) -> EdgeClock {
        EdgeClock { error_bound, ahead: 0, last: 0 }
    }

    /// The same clock, ahead by this much, ns: what a test takes for another machine's.
    pub fn ahead_by(self, ahead: i64) -> EdgeClock {
        EdgeClock { ahead, ..self }
    }

    /// Nanoseconds since 1970.
    pub fn now(&mut self) -> Nanos {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last =
            self.last.max(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).saturating_add_signed(self.ahead));
        self.last
    }

    /// What it promises.
    pub fn state(&self) -> ClockState {
        ClockState { error_bound: self.error_bound }
    }
}
