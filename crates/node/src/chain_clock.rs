//! The time of a developers' chain: the machine's clock plus an offset, unless the developer has chosen otherwise.
//! Pure: callers read the machine's clock.

use doors::DeveloperRefusal;
use ledger::TIME_MAX_MS;

/// See the module text. Times are milliseconds since 1970, `clock_ms` is that of the machine.
#[derive(Default)]
pub(crate) struct ChainClock {
    /// Milliseconds that the chain is ahead of the machine's clock.
    pub(crate) ahead_ms: i64,
    /// Whether the developer has moved that since the newest block.
    is_moved: bool,
    /// The chosen time of the next block, if there is one.
    next_ms: Option<u64>,
    /// The chosen milliseconds between blocks, if there are any.
    pub(crate) step_ms: Option<u64>,
}

/// A time of the next block that the developer has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MovedTime {
    At(u64),
    /// Milliseconds ahead of the machine's clock.
    Ahead(i64),
}

impl MovedTime {
    pub(crate) fn at(self, clock_ms: u64) -> u64 {
        match self {
            MovedTime::At(time_ms) => time_ms,
            MovedTime::Ahead(ahead_ms) => clock_ms.saturating_add_signed(ahead_ms),
        }
    }
}

impl ChainClock {
    /// A clock that is ahead of the machine's.
    pub(crate) fn ahead(ahead_ms: i64) -> ChainClock {
        ChainClock { ahead_ms, ..ChainClock::default() }
    }

    /// Restores the offset of an earlier state; what was chosen for the next block is dropped.
    pub(crate) fn go_back(&mut self, ahead_ms: i64) {
        *self = ChainClock { step_ms: self.step_ms, ..ChainClock::ahead(ahead_ms) };
    }

    /// The time of the next block, whose parent has the time `parent_ms`. What was chosen for it is used up.
    pub(crate) fn next(&mut self, parent_ms: u64, clock_ms: u64) -> u64 {
        self.is_moved = false;
        let wanted = match (self.next_ms.take(), self.step_ms.filter(|_| parent_ms > 0)) {
            (Some(chosen), _) => {
                self.ahead_ms = chosen as i64 - clock_ms as i64;
                chosen
            }
            (None, Some(step)) => parent_ms.saturating_add(step),
            (None, None) => clock_ms.saturating_add_signed(self.ahead_ms),
        };
        wanted.max(parent_ms + 1).min(TIME_MAX_MS)
    }

    /// The time of the next block, if the developer has moved it since the newest one.
    pub(crate) fn moved(&self, parent_ms: u64) -> Option<MovedTime> {
        match (self.next_ms, self.step_ms.filter(|_| parent_ms > 0)) {
            (Some(chosen), _) => Some(MovedTime::At(chosen)),
            (None, Some(step)) => Some(MovedTime::At(parent_ms.saturating_add(step).min(TIME_MAX_MS))),
            (None, None) => self.is_moved.then_some(MovedTime::Ahead(self.ahead_ms)),
        }
    }

    /// Moves time forward; returns how many seconds the chain is ahead of the clock then.
    ///
    /// # Errors
    /// [`DeveloperRefusal`] if it leads too far.
    pub(crate) fn increase(&mut self, seconds: u64, clock_ms: u64) -> Result<u64, DeveloperRefusal> {
        let ahead_ms = i64::try_from(seconds.saturating_mul(1_000)).ok().and_then(|ms| self.ahead_ms.checked_add(ms));
        match ahead_ms.filter(|ahead| clock_ms.saturating_add_signed(*ahead) <= TIME_MAX_MS) {
            None => Err(DeveloperRefusal(format!("{seconds} more seconds lead beyond the year 9999: choose fewer"))),
            Some(ahead_ms) => {
                self.ahead_ms = ahead_ms;
                self.is_moved |= seconds > 0;
                Ok(u64::try_from(ahead_ms / 1_000).unwrap_or(0))
            }
        }
    }

    /// Chooses the time of the next block.
    ///
    /// # Errors
    /// [`DeveloperRefusal`] if no block can have it.
    pub(crate) fn choose(&mut self, seconds: u64, parent_ms: u64) -> Result<u64, DeveloperRefusal> {
        let next_ms = seconds.saturating_mul(1_000);
        if next_ms <= parent_ms || next_ms > TIME_MAX_MS {
            let last = parent_ms / 1_000;
            return Err(DeveloperRefusal(format!(
                "{seconds} is no time for the next block: the last one was made at {last}, and no year is above 9999"
            )));
        }
        self.next_ms = Some(next_ms);
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_time_is_seen_until_a_block_has_it() {
        let mut clock = ChainClock::default();
        assert_eq!((clock.moved(5_000), clock.next(5_000, 9_000)), (None, 9_000));
        assert_eq!(clock.increase(7, 10_000), Ok(7));
        assert_eq!(clock.moved(9_000).map(|moved| moved.at(10_500)), Some(17_500));
        assert_eq!((clock.next(9_000, 11_000), clock.moved(18_000)), (18_000, None));
        assert!(clock.choose(18, 18_000).is_err() && clock.increase(u64::MAX, 11_000).is_err());
        assert_eq!((clock.choose(30, 18_000), clock.moved(18_000)), (Ok(0), Some(MovedTime::At(30_000))));
        assert_eq!((clock.next(18_000, 12_000), clock.moved(30_000)), (30_000, None));
        clock.step_ms = Some(2_000);
        assert_eq!((clock.moved(30_000), clock.next(30_000, 12_000)), (Some(MovedTime::At(32_000)), 32_000));
        assert_eq!(ChainClock::ahead(-5).next(50, 10), 51, "time never goes back");
    }
}
