//! The inputs that wait for the loop, in three queues: results of jobs, votes, bulk.
//!
//! Results are taken first, then votes, then bulk. A queue of frames is bounded, and a link that fills it waits.
//! Results are not bounded here: there are no more of them than jobs in progress, and a worker must never wait for
//! the loop, since the loop may be waiting for that worker. A step keeps a share for bulk, so that a flood of votes
//! does not delay sub-blocks forever.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use replica::{INPUTS_OF_A_STEP, Input};
use transport::LinkStream;

use crate::locks::poisoned;

/// Maximum number of frames in one queue; then the links wait.
const FRAMES_MAX: usize = 4_096;
/// The share of a step that is reserved for bulk, if so much of it is there.
const BULK_OF_A_STEP: usize = INPUTS_OF_A_STEP / 8;

/// The loop's end; the queues close when it is dropped.
pub(crate) struct Inbox(InboxSender);

/// The sending end.
#[derive(Clone)]
pub(crate) struct InboxSender(Arc<Waiting>);

struct Waiting {
    queues: Mutex<Queues>,
    /// Signals that an input has arrived.
    came: Condvar,
    /// Signals that a queue has room, or that the receiver is gone.
    room: Condvar,
}

#[derive(Default)]
struct Queues {
    results: VecDeque<Input>,
    votes: VecDeque<Input>,
    bulk: VecDeque<Input>,
    is_closed: bool,
}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        let waiting = Waiting { queues: Mutex::default(), came: Condvar::new(), room: Condvar::new() };
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
        let mut queues = poisoned(waiting.queues.lock());
        while queues.is_empty() {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Vec::new();
            }
            queues = poisoned(waiting.came.wait_timeout(queues, rest)).0;
        }
        let inputs = queues.drain();
        drop(queues);
        waiting.room.notify_all();
        inputs
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        poisoned(self.0.0.queues.lock()).is_closed = true;
        self.0.0.room.notify_all();
    }
}

impl InboxSender {
    /// Puts the result of a job; never waits. Returns false if the receiver is gone.
    pub(crate) fn push_result(&self, result: Input) -> bool {
        self.push(poisoned(self.0.queues.lock()), None, result)
    }

    /// Puts a frame of a link; waits while its queue is full. Returns false if the receiver is gone.
    pub(crate) fn push_frame(&self, stream: LinkStream, input: Input) -> bool {
        let mut queues = poisoned(self.0.queues.lock());
        while queues.of(Some(stream)).len() >= FRAMES_MAX && !queues.is_closed {
            queues = poisoned(self.0.room.wait(queues));
        }
        self.push(queues, Some(stream), input)
    }

    fn push(&self, mut queues: MutexGuard<Queues>, stream: Option<LinkStream>, input: Input) -> bool {
        let is_open = !queues.is_closed;
        if is_open {
            queues.of(stream).push_back(input);
        }
        drop(queues);
        self.0.came.notify_one();
        is_open
    }
}

impl Queues {
    /// The queue of a stream of frames, or of results.
    fn of(&mut self, stream: Option<LinkStream>) -> &mut VecDeque<Input> {
        match stream {
            None => &mut self.results,
            Some(LinkStream::Votes) => &mut self.votes,
            Some(LinkStream::Bulk) => &mut self.bulk,
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
        assert!(sender.push_frame(LinkStream::Bulk, input(3)));
        assert!(sender.push_frame(LinkStream::Votes, input(2)));
        assert!(sender.push_result(input(1)));
        assert_eq!(heights(&inbox.next(Duration::ZERO)), [1, 2, 3]);
        assert!(inbox.next(Duration::ZERO).is_empty());
    }

    #[test]
    fn a_flood_of_votes_leaves_bulk_its_share() {
        let inbox = Inbox::new();
        let sender = inbox.sender();
        for _ in 0..INPUTS_OF_A_STEP * 2 {
            sender.push_frame(LinkStream::Votes, input(2));
            sender.push_frame(LinkStream::Bulk, input(3));
        }
        let taken = heights(&inbox.next(Duration::ZERO));
        assert_eq!(taken.len(), INPUTS_OF_A_STEP);
        assert_eq!(taken.iter().filter(|height| **height == 3).count(), BULK_OF_A_STEP);
    }

    /// The queue of results accepts inputs even while frames have no room; frames wait for the loop.
    #[test]
    fn a_full_queue_holds_up_frames_and_no_results() {
        let inbox = Inbox::new();
        let sender = inbox.sender();
        for _ in 0..FRAMES_MAX {
            assert!(sender.push_frame(LinkStream::Bulk, input(3)));
        }
        let waits = {
            let sender = sender.clone();
            std::thread::spawn(move || sender.push_frame(LinkStream::Bulk, input(4)))
        };
        assert!(sender.push_frame(LinkStream::Votes, input(2)));
        assert!(sender.push_result(input(1)));
        assert_eq!(heights(&inbox.next(Duration::ZERO))[..3], [1, 2, 3]);
        assert!(waits.join().expect("it ends once there is room"));
    }

    #[test]
    fn who_waits_for_a_loop_that_has_ended_hears_so() {
        let inbox = Inbox::new();
        let sender = inbox.sender();
        for _ in 0..FRAMES_MAX {
            sender.push_frame(LinkStream::Votes, input(2));
        }
        let waits = {
            let sender = sender.clone();
            std::thread::spawn(move || sender.push_frame(LinkStream::Votes, input(2)))
        };
        drop(inbox);
        assert!(!waits.join().expect("it ends with the loop"));
        assert!(!sender.push_result(input(1)));
    }
}
