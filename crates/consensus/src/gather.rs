//! When the votes of a height travel: at once in a small committee, gathered in a large one (Smart Red Belly,
//! appendix A; batching after Nagle, RFC 896).
//!
//! All slots of a height vote at the same steps, and a frame holds the votes of all slots. But the votes of one step
//! become possible one after the other, as messages arrive from near and far. If every turn sent what it has, a
//! validator would answer nearly every frame with one to everybody: n³ frames a height. So a large committee waits a
//! little for the rest of a step.
//!
//! *Upon* a vote cast here, it waits in [`Gathered`]. *Upon* the end of a turn, the waiting votes of a height travel as
//! one frame if one of these holds:
//!
//! - the committee has fewer than [`GATHERED_FROM`] members;
//! - the last vote of a step has been cast: every slot has its echo, its ready vote, its estimate of the first round or
//!   its auxiliary vote of it, so that there is nothing to wait for;
//! - the window is over ([`crate::Timer::Votes`]), which began with the first of the votes that wait.
//!
//! *Upon* the removal of a height, what still waits is sent first ([`crate::Engine`]).
//!
//! # Properties
//!
//! - *Few frames*: within a window a validator sends one frame of votes a height, and one more for each step that it
//!   completes, however many frames others send.
//! - *No vote is kept*: each travels within a window, whether others vote or are silent.
//! - *Nobody waits for the slow*: the window depends on no other validator, and a receiver that is slow delays nobody.
//! - *Heights do not mix*: votes wait with their own height, and are gone with it.
//! - Gathering changes the times of messages alone. Safety does not depend on these; a vote is durable before it waits.
//!
//! After a crash the log has every vote, also those that waited, and the restored ones are sent. A validator whose link
//! comes up is sent all votes, with those that wait: it then gets some of them twice, which does no harm.
//!
//! # Deviations from the paper
//!
//! - The paper sends each message alone. With 200 validators that is 32 million of them a height.

use std::collections::{BTreeMap, BTreeSet};

use crate::members::Members;
use crate::message::{Round, Vote};

/// The smallest committee that gathers votes. In smaller ones a turn sends few frames, and a window would only add to
/// the time to a certificate.
pub const GATHERED_FROM: usize = 8;

/// What votes of one kind and round are about: a step of the protocol.
type Step = (u8, Round);

/// The votes of a height that are still to be sent.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Number of slots of the height; `None` where votes do not wait.
    slots: Option<usize>,
    fresh: BTreeSet<Vote>,
    /// The slots of each step that were voted on.
    cast: BTreeMap<Step, Members>,
    is_due: bool,
    /// Number of windows that have begun, and whether the last one runs.
    windows: u32,
    runs: bool,
}

impl Gathered {
    /// For a height with so many slots; `None` where votes do not wait.
    pub(crate) fn new(slots: Option<usize>) -> Gathered {
        Gathered { slots, ..Gathered::default() }
    }

    /// Adds a vote that was cast here.
    pub(crate) fn insert(&mut self, vote: Vote) {
        let cast = self.cast.entry(step(&vote)).or_default();
        let is_last = cast.insert(vote.slot()) && Some(cast.len()) == self.slots;
        self.is_due |= is_last || self.slots.is_none();
        self.fresh.insert(vote);
    }

    /// A window is over. Nothing happens if its votes have left already.
    pub(crate) fn expire(&mut self, window: u32) {
        self.is_due |= self.runs && window == self.windows;
    }

    /// Takes the votes to send now, if they have waited for long enough.
    pub(crate) fn take_due(&mut self) -> Option<BTreeSet<Vote>> {
        self.is_due.then(|| self.take())
    }

    /// Takes all votes.
    pub(crate) fn take(&mut self) -> BTreeSet<Vote> {
        (self.is_due, self.runs) = (false, false);
        std::mem::take(&mut self.fresh)
    }

    /// Begins a window if votes wait and none is running; returns its number.
    pub(crate) fn begin_window(&mut self) -> Option<u32> {
        if self.fresh.is_empty() || std::mem::replace(&mut self.runs, true) {
            return None;
        }
        self.windows += 1;
        Some(self.windows)
    }
}

fn step(vote: &Vote) -> Step {
    let kind = match vote {
        Vote::Echo { .. } => 0,
        Vote::Ready { .. } => 1,
        Vote::Estimate { .. } => 2,
        Vote::Coordinate { .. } => 3,
        Vote::Auxiliary { .. } => 4,
    };
    (kind, vote.round())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn estimate(slot: u8, round: Round) -> Vote {
        Vote::Estimate { slot, round, value: true }
    }

    #[test]
    fn a_small_committee_sends_every_turn() {
        let mut votes = Gathered::new(None);
        assert_eq!(votes.take_due(), None);
        votes.insert(estimate(3, 1));
        assert_eq!(votes.take_due(), Some([estimate(3, 1)].into()));
        assert!(votes.take_due().is_none() && votes.begin_window().is_none());
    }

    #[test]
    fn the_last_vote_of_a_step_takes_all_along() {
        let mut votes = Gathered::new(Some(8));
        votes.insert(estimate(0, 2));
        (0..7).for_each(|slot| votes.insert(estimate(slot, 1)));
        // An estimate of the other value is no further slot.
        votes.insert(Vote::Estimate { slot: 6, round: 1, value: false });
        assert_eq!(votes.take_due(), None);
        votes.insert(estimate(7, 1));
        assert_eq!(votes.take_due().expect("nothing to wait for").len(), 10);
    }

    proptest! {
        /// A model without steps: whatever is cast travels once, and within a window.
        #[test]
        fn every_vote_travels_once_and_within_a_window(
            events in prop::collection::vec((0u8..20, 1u32..3, 0u8..3), 1..80),
        ) {
            let mut votes = Gathered::new(Some(20));
            let (mut waits, mut window, mut number) = (BTreeSet::new(), None, 0);
            for (turn, (slot, round, event)) in events.into_iter().enumerate() {
                // Windows whose votes have left are over too, and nothing comes of it.
                (0..number).for_each(|earlier| votes.expire(earlier));
                prop_assert_eq!(votes.take_due(), None);
                if window.is_some_and(|began| turn >= began + 4) {
                    votes.expire(number);
                    window = None;
                    let sent = votes.take_due().unwrap_or_default();
                    prop_assert_eq!(&sent, &waits);
                    waits.clear();
                }
                if event > 0 {
                    votes.insert(estimate(slot, round));
                    waits.insert(estimate(slot, round));
                }
                if let Some(sent) = votes.take_due() {
                    prop_assert_eq!(&sent, &waits);
                    (waits, window) = (BTreeSet::new(), None);
                }
                if let Some(begun) = votes.begin_window() {
                    prop_assert!(window.is_none() && begun > number);
                    (window, number) = (Some(turn), begun);
                }
                prop_assert!(waits.is_empty() || window.is_some(), "nothing would send them");
            }
        }
    }
}
