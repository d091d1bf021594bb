//! Checks the signatures in sub-blocks once, and as early as possible.
//!
//! A sub-block of another validator goes to the *verifier* thread when it arrives, so that its signatures are checked
//! during agreement. The executor takes what is checked, waits for checks in progress, and does the rest itself.
//! Transactions proposed here were checked one by one when clients sent them.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::sync::mpsc::Receiver;
use std::sync::{Condvar, Mutex, PoisonError};

use consensus::{Index, Payload, payload_digest};
use primitives::{Digest, SubBlock, Transaction};
use replica::checked;
use replica::unsealing::envelopes_of;

use crate::known_lists::KnownLists;

/// The content of a lock, also after a panic: the panic stops the node on its own.
fn kept<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Maximum number of sub-blocks queued for the verifier; the executor checks those that found no room.
pub(crate) const WAITING_MAX: usize = 64;

/// Sub-blocks whose signatures are checked, are being checked, or are queued, by proposer and digest. Each is checked
/// once, by the verifier on arrival or by the executor if that is earlier.
pub(crate) struct Verified {
    /// Lists of venues' orders that were verified in earlier settles.
    pub lists: KnownLists,
    known: Mutex<HashMap<(Index, Digest), Check>>,
    /// Signalled when a check ends.
    done: Condvar,
}

enum Check {
    /// Queued for the verifier; the executor may check it first.
    Waits,
    /// In progress in the verifier.
    Runs,
    Done(SubBlock),
}

impl Verified {
    /// Empty; signatures are those of a network.
    pub fn new(network: Digest) -> Verified {
        Verified { lists: KnownLists::new(network), known: Mutex::default(), done: Condvar::new() }
    }

    /// Records a sub-block that is queued for the verifier; false if it is known already.
    pub fn announce(&self, of: (Index, Digest)) -> bool {
        let mut known = kept(self.known.lock());
        // Entries left by equivocators and lost heights must not accumulate.
        if known.len() >= 4 * WAITING_MAX {
            known.retain(|_, check| matches!(check, Check::Runs));
        }
        match known.entry(of) {
            Occupied(_) => false,
            Vacant(place) => {
                place.insert(Check::Waits);
                true
            }
        }
    }

    /// Whether the verifier must check this one: it is neither checked nor in progress.
    fn begin(&self, of: (Index, Digest)) -> bool {
        match kept(self.known.lock()).get_mut(&of) {
            Some(check @ Check::Waits) => {
                *check = Check::Runs;
                true
            }
            _ => false,
        }
    }

    pub fn insert(&self, of: (Index, Digest), sub_block: SubBlock) {
        kept(self.known.lock()).insert(of, Check::Done(sub_block));
        self.done.notify_all();
    }

    /// The envelopes of a sub-block, each with whether its signature is valid. The sub-block is checked now unless
    /// that is done or in progress, and stays here for whoever claims it.
    pub fn envelopes(&self, proposer: Index, payload: &[u8]) -> Vec<(Transaction, bool)> {
        let of = (proposer, payload_digest(payload));
        let mut known = kept(self.known.lock());
        while matches!(known.get(&of), Some(Check::Runs)) {
            known = kept(self.done.wait(known));
        }
        if let Some(Check::Done(sub_block)) = known.get(&of) {
            return envelopes_of(sub_block);
        }
        known.insert(of, Check::Runs);
        drop(known);
        let sub_block = checked(proposer, payload, |transactions| self.lists.verify(transactions));
        let envelopes = envelopes_of(&sub_block);
        self.insert(of, sub_block);
        envelopes
    }

    /// A checked sub-block; checks it now unless a check is in progress.
    pub fn claim(&self, proposer: Index, payload: &[u8]) -> SubBlock {
        let of = (proposer, payload_digest(payload));
        let mut known = kept(self.known.lock());
        while matches!(known.get(&of), Some(Check::Runs)) {
            known = kept(self.done.wait(known));
        }
        let found = known.remove(&of);
        drop(known);
        match found {
            Some(Check::Done(sub_block)) => sub_block,
            _ => self.check(proposer, payload),
        }
    }

    fn check(&self, proposer: Index, payload: &[u8]) -> SubBlock {
        checked(proposer, payload, |transactions| self.lists.verify(transactions))
    }
}

/// The verifier thread.
pub(crate) fn verify_ahead(verified: &Verified, unverified: Receiver<(Index, Digest, Payload)>) {
    for (proposer, digest, payload) in unverified {
        if verified.begin((proposer, digest)) {
            verified.insert((proposer, digest), verified.check(proposer, &payload));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sub_block_is_checked_once() {
        let payload = SubBlock { time_ms: 5, ..SubBlock::default() }.to_payload();
        let sub_block = |proposer| SubBlock::from_payload(proposer, &payload).expect("sound");
        let of = |proposer| (proposer, payload_digest(&payload));
        let verified = Verified::new(Digest::default());
        assert!(verified.announce(of(1)) && !verified.announce(of(1)) && verified.announce(of(2)));
        // The executor is first: the verifier has nothing left to do.
        assert_eq!(verified.claim(1, &payload), sub_block(1));
        assert!(!verified.begin(of(1)));
        // The verifier is first: the executor waits for its result.
        assert!(verified.begin(of(2)) && !verified.begin(of(2)));
        let mut found = sub_block(2);
        found.forged = vec![7];
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| verified.claim(2, &payload));
            std::thread::sleep(std::time::Duration::from_millis(20));
            verified.insert(of(2), found.clone());
            assert_eq!(taken.join().expect("no panic"), found);
        });
        assert!(verified.known.lock().expect("no panic").is_empty());
    }

    #[test]
    fn what_nobody_takes_does_not_pile_up() {
        let verified = Verified::new(Digest::default());
        for number in 0..10_000u32 {
            verified.announce((1, Digest::of("test", &number.to_le_bytes())));
            assert!(verified.known.lock().expect("no panic").len() <= 4 * WAITING_MAX);
        }
    }
}
