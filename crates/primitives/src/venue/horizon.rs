//! When an action of a trader counts: after a number of heights *and* a time.
//!
//! `past(r)` holds in a block of height h if h > r + heights and time(h) > time(r) + ms: heights can run fast and
//! clocks can stand, and a venue that settles in time by either meets no bust. Block times rise with heights, so past
//! is monotone: there is a last height that is past, the *horizon*, and only the times of the heights behind it are
//! kept.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Result as IoResult};

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Height;

/// How long an action waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Delay {
    /// Heights.
    pub heights: u64,
    /// Milliseconds of block time.
    pub ms: u64,
}

/// The horizon after a block, and the times that it will be moved by.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Horizon {
    delay: Delay,
    /// The height of the first of `times`; every height below it is past.
    first: Height,
    /// Block times of consecutive heights, the last of them the present one; rising.
    times: VecDeque<u64>,
}

impl BorshDeserialize for Horizon {
    /// The same state has one encoding: a height that is past is not kept.
    fn deserialize_reader<R: Read>(from: &mut R) -> IoResult<Horizon> {
        let (delay, first, times) = BorshDeserialize::deserialize_reader(from)?;
        let horizon = Horizon { delay, first, times };
        if horizon.is_sound() {
            Ok(horizon)
        } else {
            Err(Error::new(ErrorKind::InvalidData, "the horizon of a venue keeps other heights than those in question"))
        }
    }
}

impl Horizon {
    /// After a block of this height and time, with which the history begins: nothing that was before counts as waiting.
    pub fn new(delay: Delay, height: Height, time_ms: u64) -> Horizon {
        Horizon { delay, first: height, times: [time_ms].into() }
    }

    /// Whether an action at this height is past in the present block.
    pub fn is_past(&self, action: Height) -> bool {
        action < self.first
    }

    /// The present height.
    pub fn height(&self) -> Height {
        self.first + (self.times.len() as u64 - 1)
    }

    /// The first height that is not past. It only rises.
    pub fn first_waiting(&self) -> Height {
        self.first
    }

    /// The time of the present block, in milliseconds since 1970.
    pub fn time_ms(&self) -> u64 {
        *self.times.back().expect("the present height is kept")
    }

    /// The time of a height; of the first one kept if it is older, `None` if it is still to come. Heights that an
    /// action of the present block waits for are kept.
    pub fn time_of(&self, height: Height) -> Option<u64> {
        let at = usize::try_from(height.saturating_sub(self.first)).ok()?;
        self.times.get(at).copied()
    }

    /// How long actions wait.
    pub fn delay(&self) -> Delay {
        self.delay
    }

    /// Begins the next height; false, and nothing changes, if its time does not rise.
    pub fn advance(&mut self, time_ms: u64) -> bool {
        if self.times.back().is_some_and(|last| *last >= time_ms) || self.height() == Height::MAX {
            return false;
        }
        self.times.push_back(time_ms);
        while self.is_first_past() {
            self.times.pop_front();
            self.first += 1;
        }
        true
    }

    /// Whether the first of the heights kept is past in the present block.
    fn is_first_past(&self) -> bool {
        let (Some(first), Some(now)) = (self.times.front(), self.times.back()) else { return false };
        let beyond = |from: u64, wait: u64, now: u64| from.checked_add(wait).is_some_and(|until| now > until);
        beyond(self.first, self.delay.heights, self.height()) && beyond(*first, self.delay.ms, *now)
    }

    fn is_sound(&self) -> bool {
        let rises = self.times.iter().zip(self.times.iter().skip(1)).all(|(one, next)| one < next);
        let fits = self.first.checked_add(self.times.len() as u64).is_some();
        !self.times.is_empty() && rises && fits && !self.is_first_past()
    }
}
