//! The inputs that wait for the loop, in three lanes: results of jobs, votes, bulk.
//!
//! Results are taken first, then votes, then bulk. A lane of frames is bounded, and a link that fills it waits.
//! Results are not bounded here: there are no more of them than jobs in progress, and a worker must never wait for
//! the loop, since the loop may be waiting for that worker. A step keeps a share for bulk, so that a flood of votes
//! does not delay sub-blocks forever.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use replica::{INPUTS_OF_A_STEP, Input};
use transport::Lane;

use crate::locks::poisoned;

/// Maximum number of frames in one lane; then the links wait.
const FRAMES_MAX: usize = 4_096;
/// The share of a step that is reserved for bulk, if so much of it is there.
const BULK_OF_A_STEP: usize = INPUTS_OF_A_STEP / 8;

/// The loop's end; the lanes close when it is dropped.
pub(crate) struct Inbox(InboxSender);

/// The sending end.
#[derive(Clone)]
pub(crate) struct InboxSender(Arc<Waiting>);

struct Waiting {
    lanes: Mutex<Lanes>,
    /// Signals that an input has arrived.
    came: Condvar,
    /// Signals that a lane has room, or that the receiver is gone.
    room: Condvar,
}

#[derive(Default)]
struct Lanes {
    results: VecDeque<Input>,
    votes: VecDeque<Input>,
    bulk: VecDeque<Input>,
    is_closed: bool,
}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        let waiting = Waiting { lanes: Mutex::default(), came: Condvar::new(), room: Condvar::new() };
        Inbox(InboxSender(Arc::new(waiting)))
    }

    /// A sending end.
    pub(crate) fn sender(&self) -> InboxSender {
        self.0.clone()
    }

    /// Takes the inputs of a step; waits at most `wait` for the first of them.
    pub(crate) fn next(&self, wait: Duration) -> Vec<Input> {
        let until = Instant::now() + wait;
        let waiting = &self.0.0;
        let mut lanes = poisoned(waiting.lanes.lock());
        while lanes.is_empty() {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Vec::new();
            }
            lanes = poisoned(waiting.came.wait_timeout(lanes, rest)).0;
        }
        let inputs = lanes.drain();
        drop(lanes);
        waiting.room.notify_all();
        inputs
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        poisoned(self.0.0.lanes.lock()).is_closed = true;
        self.0.0.room.notify_all();
    }
}

impl InboxSender {
    /// Puts the result of a job; never waits. Returns false if the receiver is gone.
    pub(crate) fn push_result(&self, result: Input) -> bool {
        self.push(poisoned(self.0.lanes.lock()), None, result)
    }

    /// Puts a frame of a link; waits while its lane is full. Returns false if the receiver is gone.
    pub(crate) fn push_frame(&self, lane: Lane, input: Input) -> bool {
        let mut lanes = poisoned(self.0.lanes.lock());
        while lanes.of(Some(lane)).len() >= FRAMES_MAX && !lanes.is_closed {
            lanes = poisoned(self.0.room.wait(lanes));
        }
        self.push(lanes, Some(lane), input)
    }

    fn push(&self, mut lanes: MutexGuard<Lanes>, lane: Option<Lane>, input: Input) -> bool {
        let is_open = !lanes.is_closed;
        if is_open {
            lanes.of(lane).push_back(input);
        }
        drop(lanes);
        self.0.came.notify_one();
        is_open
    }
}

impl Lanes {
    /// The queue of a lane of frames, or of results.
    fn of(&mut self, lane: Option<Lane>) -> &mut VecDeque<Input> {
        match lane {
            None => &mut self.results,
            Some(Lane::Votes) => &mut self.votes,
            Some(Lane::Bulk) => &mut self.bulk,
        }
    }

    fn is_empty(&self) -> bool {
        self.results.is_empty() && self.votes.is_empty() && self.bulk.is_empty()
    }

    /// Results, then votes, then bulk, as many as a step takes.
    fn drain(&mut self) -> Vec<Input> {
        let bulk = self.bulk.len().min(BULK_OF_A_STEP);
        let results = self.results.len().min(INPUTS_OF_A_STEP - bulk);
        let votes = self.votes.len().min(INPUTS_OF_A_STEP - bulk - results);
        let bulk = self.bulk.len().min(INPUTS_OF_A_STEP - results - votes);
        let first = self.results.drain(..results).chain(self.votes.drain(..votes));
        first.chain(self.bulk.drain(..bulk)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::Digest;

    /// An input that can be recognized by its height.
    fn input(height: u64) -> Input {
        Input::StateRoot(height, Digest::default())
    }

    fn heights(inputs: &[Input]) -> Vec<u64> {
        let height = |input: &Input| match input {
            Input::StateRoot(height, _) => *height,
            other => panic!("{other:?} was never put"),
        };
        inputs.iter().map(height).collect()
    }

    #[test]
    fn results_come_before_votes_and_votes_before_bulk() {
        let inbox = Inbox::new();
        let sender = inbox.sender();
        assert!(sender.push_frame(Lane::Bulk, input(3)));
        assert!(sender.push_frame(Lane::Votes, input(2)));
        assert!(sender.push_result(input(1)));
        assert_eq!(heights(&inbox.next(Duration::ZERO)), [1, 2, 3]);
        assert!(inbox.next(Duration::ZERO).is_empty());
    }

    #[test]
    fn a_flood_of_votes_leaves_bulk_its_share() {
        let inbox = Inbox::new();
        let sender = inbox.sender();
        for _ in 0..INPUTS_OF_A_STEP * 2 {
            sender.push_frame(Lane::Votes, input(2));
            sender.push_frame(Lane::Bulk, input(3));
        }
        let taken = heights(&inbox.next(Duration::ZERO));
        assert_eq!(taken.len(), INPUTS_OF_A_STEP);
        assert_eq!(taken.iter().filter(|height| **height == 3).count(), BULK_OF_A_STEP);
    }

    /// The lane of results accepts inputs even while frames have no room; frames wait for the loop.
    #[test]
    fn a_full_lane_holds_up_frames_and_no_results() {
        let inbox = Inbox::new();
        let sender = inbox.sender();
        for _ in 0..FRAMES_MAX {
            assert!(sender.push_frame(Lane::Bulk, input(3)));
        }
        let waits = {
            let sender = sender.clone();
            std::thread::spawn(move || sender.push_frame(Lane::Bulk, input(4)))
        };
        assert!(sender.push_frame(Lane::Votes, input(2)));
        assert!(sender.push_result(input(1)));
        assert_eq!(heights(&inbox.next(Duration::ZERO))[..3], [1, 2, 3]);
        assert!(waits.join().expect("it ends once there is room"));
    }

    #[test]
    fn who_waits_for_a_loop_that_has_ended_hears_so() {
        let inbox = Inbox::new();
        let sender = inbox.sender();
        for _ in 0..FRAMES_MAX {
            sender.push_frame(Lane::Votes, input(2));
        }
        let waits = {
            let sender = sender.clone();
            std::thread::spawn(move || sender.push_frame(Lane::Votes, input(2)))
        };
        drop(inbox);
        assert!(!waits.join().expect("it ends with the loop"));
        assert!(!sender.push_result(input(1)));
    }
}
