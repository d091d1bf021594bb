//! The payments of one shard, which all validators' shards of that number get: their order, and how far they are.
//!
//! The window is the shard's own. With one window for all shards, the requests of a quick shard would go on until the
//! window is full and stop until the slowest shard is through: the load of a shard would depend on the others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};

use payments::LaneCommittee;
use primitives::{Digest, PublicKey};

use crate::exchange::Error;

/// One request.
pub(super) struct Load {
    pub(super) digest: Digest,
    pub(super) owner: PublicKey,
    pub(super) request: Vec<u8>,
}

/// Number of requests that are sent together.
pub(super) const TOGETHER: usize = 64;

/// See the module text.
pub(super) struct Share {
    /// Places of the payments among all, in the order in which they are sent.
    pub(super) places: Vec<usize>,
    /// Positions in `places`.
    pub(super) positions: HashMap<Digest, usize>,
    /// Whether the requests that are sent together have been signed, for a live load.
    pub(super) built: Vec<OnceLock<()>>,
    /// Answers to each payment.
    answers: Vec<AtomicUsize>,
    progress: Progress,
}

impl Share {
    /// The share of each shard, by the owners of the payments.
    pub(super) fn all(loads: &[Load], committee: &LaneCommittee) -> Result<Vec<Share>, Error> {
        let mut places = vec![Vec::new(); committee.keys_of(0).len()];
        for (place, load) in loads.iter().enumerate() {
            places[usize::from(committee.shard_of(0, &load.owner)?)].push(place);
        }
        Ok(places.into_iter().map(|places| Share::new(places, loads)).collect())
    }

    fn new(places: Vec<usize>, loads: &[Load]) -> Share {
        Share {
            positions: places.iter().enumerate().map(|(at, place)| (loads[*place].digest, at)).collect(),
            built: places.chunks(TOGETHER).map(|_| OnceLock::new()).collect(),
            answers: places.iter().map(|_| AtomicUsize::new(0)).collect(),
            progress: Progress::default(),
            places,
        }
    }

    /// One more validator has answered a payment, which is done once `needed` have.
    pub(super) fn answered(&self, position: usize, needed: usize) {
        if self.answers[position].fetch_add(1, Ordering::AcqRel) + 1 == needed {
            self.progress.add();
        }
    }

    /// Waits until the payment at this position is in the window.
    pub(super) fn wait_for_room(&self, position: usize, window: usize) {
        self.progress.wait((position + 1).saturating_sub(window));
    }

    /// A connection has failed: nobody waits any more.
    pub(super) fn give_up(&self) {
        self.progress.set(usize::MAX / 2);
    }
}

/// Payments that are done. A writer sleeps until there are as many as it waits for: hundreds that looked again and
/// again would take the processors from the shards.
#[derive(Default)]
struct Progress {
    done: Mutex<usize>,
    moved: Condvar,
}

impl Progress {
    fn add(&self) {
        let mut done = self.done.lock().expect("no thread panics with it");
        *done += 1;
        // All that were sent before a writer waits end at such a number, or are fewer.
        if done.is_multiple_of(TOGETHER) {
            self.moved.notify_all();
        }
    }

    fn set(&self, to: usize) {
        *self.done.lock().expect("no thread panics with it") = to;
        self.moved.notify_all();
    }

    fn wait(&self, least: usize) {
        let done = self.done.lock().expect("no thread panics with it");
        drop(self.moved.wait_while(done, |done| *done < least).expect("no thread panics with it"));
    }
}

#[cfg(test)]
mod tests {
    use primitives::SecretKey;

    use super::*;

    fn share(payments: usize, of: u8) -> Share {
        let owner = SecretKey::from_seed([of; 32]).public();
        let load = |number: usize| {
            let digest = Digest::of("walras bench share test", &(number as u64).to_le_bytes());
            Load { digest, owner, request: Vec::new() }
        };
        Share::new((0..payments).collect(), &(0..payments).map(load).collect::<Vec<_>>())
    }

    #[test]
    fn the_window_of_a_shard_moves_with_its_own_payments_and_by_as_many() {
        const WINDOW: usize = 100;
        let (own, other) = (share(400, 1), share(400, 2));
        let quorum = |share: &Share, position| (0..3).for_each(|_| share.answered(position, 3));
        // The first are within the window before any is done.
        own.wait_for_room(0, WINDOW);
        own.wait_for_room(64, WINDOW);
        (0..400).for_each(|position| quorum(&other, position));
        let (sent, next) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let own = &own;
            scope.spawn(move || {
                own.wait_for_room(128, WINDOW);
                sent.send(()).expect("the test waits");
            });
            // Two of four validators are no quorum, and 28 payments are too few.
            (28..100).for_each(|position| (0..2).for_each(|_| own.answered(position, 3)));
            (0..28).for_each(|position| quorum(own, position));
            assert!(next.recv_timeout(std::time::Duration::from_millis(50)).is_err(), "beyond the window");
            (28..64).for_each(|position| own.answered(position, 3));
            next.recv().expect("64 payments are done");
        });
    }

    #[test]
    fn whoever_waits_for_a_shard_that_has_closed_goes_on() {
        let share = share(400, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| share.wait_for_room(320, 10));
            share.give_up();
        });
    }
}
