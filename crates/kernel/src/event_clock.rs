//! The clock of a world: it jumps from event to event.

use crate::Calendar;

/// Buckets of 4 ms, and 256 of them: links and jobs take less than the second that these are, timers may take more.
const BUCKETS: (u32, u32) = (12, 8);

/// Events by time, in microseconds. Of one time the first that was scheduled comes first.
pub struct EventClock<E> {
    events: Calendar<E>,
    count: u64,
    now: u64,
}

impl<E> Default for EventClock<E> {
    fn default() -> EventClock<E> {
        EventClock { events: Calendar::new(BUCKETS.0, BUCKETS.1), count: 0, now: 0 }
    }
}

impl<E> EventClock<E> {
    /// The time of the last event, in microseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Number of events that were ever scheduled.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The events that are still to come, in no order.
    pub fn pending(&self) -> impl Iterator<Item = &E> {
        self.events.pending()
    }

    /// Schedules an event in `delay` microseconds.
    pub fn push(&mut self, delay: u64, event: E) {
        self.count += 1;
        self.events.push(self.now + delay, event);
    }

    /// The next event; the time is now its time.
    pub fn pop(&mut self) -> Option<E> {
        let (time, event) = self.events.pop()?;
        self.now = time;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dice;

    #[test]
    fn events_come_by_time_and_those_of_one_time_as_they_were_scheduled() {
        for seed in 0..20 {
            let (mut clock, mut list, mut dice) = (EventClock::default(), Vec::new(), Dice::new(seed));
            for number in 0..2_000u32 {
                // Some at once, some within a bucket, some beyond all buckets.
                let most = [1, 50, 5_000, 3_000_000][dice.index(4)];
                let delay = dice.below(most);
                list.push((clock.now() + delay, number));
                clock.push(delay, number);
                while dice.once_in(2) && !list.is_empty() {
                    assert_eq!(clock.pending().count(), list.len());
                    let next = *list.iter().min().expect("some");
                    list.retain(|event| *event != next);
                    assert_eq!((clock.pop(), clock.now()), (Some(next.1), next.0), "seed {seed}");
                }
            }
            list.sort_unstable();
            list.iter().for_each(|next| assert_eq!(clock.pop(), Some(next.1)));
            assert_eq!((clock.pop(), clock.count()), (None, 2_000));
        }
    }
}
