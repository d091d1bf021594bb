//! What was heard of orders, and when.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::exchange::Error;

/// Reads for a moment, and notes what is told.
pub(super) type Hear = dyn FnMut(&Heard) -> Result<(), Error> + Send;

/// What a venue tells of an order that trades at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Accepted,
    Executed,
}

/// When each order was accepted and executed. All readers write here.
pub(super) struct Heard {
    begun: Instant,
    /// The reference of the first order; those of the others follow.
    first: u32,
    /// Nanoseconds; 0 for what was not heard.
    accepted: Vec<AtomicU64>,
    executed: Vec<AtomicU64>,
    done: AtomicUsize,
    last: AtomicU64,
    is_over: AtomicBool,
    failed: Mutex<Option<String>>,
}

impl Heard {
    /// Nothing is heard yet of so many orders, whose references begin with `first`.
    pub(super) fn new(first: u32, orders: usize) -> Heard {
        let none = || (0..orders).map(|_| AtomicU64::new(0)).collect();
        Heard {
            begun: Instant::now(),
            first,
            accepted: none(),
            executed: none(),
            done: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            failed: Mutex::default(),
        }
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// The reference of an order.
    pub(super) fn reference(&self, order: usize) -> u32 {
        self.first + order as u32
    }

    /// Notes what is told of an order; only the first time counts.
    pub(super) fn note(&self, reference: u32, told: Told) {
        let now = self.now();
        let times = if told == Told::Accepted { &self.accepted } else { &self.executed };
        let Some(time) = reference.checked_sub(self.first).and_then(|order| times.get(order as usize)) else { return };
        let is_first = time.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if is_first && told == Told::Executed {
            self.last.fetch_max(now, Ordering::AcqRel);
            self.done.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Reads one line until the measurement is over.
    pub(super) fn read(&self, hear: &mut Hear) {
        while !self.is_over() {
            self.check(hear(self));
        }
    }

    /// Ends the measurement if something failed.
    pub(super) fn check(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.fail(error.to_string());
        }
    }

    /// Ends the measurement: something is not as it must be.
    fn fail(&self, why: String) {
        self.failed.lock().expect("no panic").get_or_insert(why);
        self.is_over.store(true, Ordering::Release);
    }

    /// Whether readers are to end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Waits until fewer than `room` of the first `sent` orders are in flight; returns the time.
    pub(super) fn until_room(&self, sent: usize, room: usize) -> u64 {
        while sent >= self.done.load(Ordering::Acquire) + room && !self.is_over() {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.now()
    }

    /// Waits until a time, and returns it: whoever is late is not forgiven.
    pub(super) fn until(&self, due: u64) -> u64 {
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(self.now())));
        due
    }

    /// Waits until all are executed, or nothing is heard for so long.
    pub(super) fn until_done(&self, silence: Duration) {
        let (mut known, mut since) = (0, Instant::now());
        while !self.is_over() {
            let done = self.done.load(Ordering::Acquire);
            if done == self.executed.len() {
                break;
            }
            if done > known {
                (known, since) = (done, Instant::now());
            }
            if since.elapsed() > silence {
                self.fail(format!(
                    "{} of {} orders were not executed",
                    self.executed.len() - done,
                    self.executed.len()
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.is_over.store(true, Ordering::Release);
    }

    /// From the first order until the last execution.
    pub(super) fn seconds(&self) -> f64 {
        self.last.load(Ordering::Acquire) as f64 / 1e9
    }

    /// Latencies from when orders were due until they were accepted, and executed.
    ///
    /// # Errors
    /// If something failed.
    pub(super) fn latencies(&self, due: &[u64]) -> Result<(Latencies, Latencies), Error> {
        if let Some(why) = self.failed.lock().expect("no panic").take() {
            return Err(why.into());
        }
        let since = |times: &[AtomicU64]| {
            let each = times.iter().zip(due);
            let us = |(time, due): (&AtomicU64, &u64)| time.load(Ordering::Acquire).saturating_sub(*due) as f64 / 1e3;
            Latencies::of(each.map(us).collect())
        };
        Ok((since(&self.accepted), since(&self.executed)))
    }
}

/// Microseconds, sorted.
pub(super) struct Latencies(Vec<f64>);

impl Latencies {
    pub(super) fn of(mut us: Vec<f64>) -> Latencies {
        us.sort_by(f64::total_cmp);
        Latencies(us)
    }

    fn at(&self, share: f64) -> Option<f64> {
        let place = ((self.0.len() as f64 * share) as usize).min(self.0.len().saturating_sub(1));
        self.0.get(place).copied()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "p50": self.at(0.5), "p99": self.at(0.99), "p99_9": self.at(0.999), "max": self.at(1.0) })
    }

    /// Points of a picture: 1 / (1 - share), and the latency at the share, as far as there are orders beyond it.
    pub(super) fn quantiles(&self) -> impl Iterator<Item = (f64, f64)> {
        let nines = (0..).map(|step| 10f64.powf(f64::from(step) / 8.0));
        let within = nines.take_while(|nines| *nines <= self.0.len() as f64);
        within.filter_map(|nines| Some((nines, self.at(1.0 - 1.0 / nines)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_count_from_when_an_order_was_due() {
        let heard = Heard::new(7, 2);
        heard.note(7, Told::Accepted);
        heard.note(7, Told::Executed);
        std::thread::sleep(Duration::from_millis(2));
        for told in [Told::Accepted, Told::Executed, Told::Executed] {
            heard.note(8, told);
        }
        heard.until_done(Duration::from_secs(1));
        // The second was due at once: what it waited for counts.
        let (accepted, executed) = heard.latencies(&[0, 0]).expect("nothing failed");
        assert!(accepted.at(1.0).expect("two") >= 2_000.0 && executed.at(0.0).expect("two") < 2_000.0);
    }

    #[test]
    fn what_is_never_executed_is_an_error_that_counts_it() {
        let heard = Heard::new(0, 3);
        heard.note(1, Told::Executed);
        heard.until_done(Duration::from_millis(5));
        let why = heard.latencies(&[0, 0, 0]).err().expect("two are missing").to_string();
        assert_eq!(why, "2 of 3 orders were not executed");
    }
}
