//! The pools' queue for settles: each venue has one place, and the venue whose last settle is oldest is taken first.
//!
//! A validator's sub-blocks have room for a number of settles. The genesis bounds the venues so that all of their
//! settles fit into a number of sub-blocks. Then a settle that a correct validator has is in one of its next so many
//! sub-blocks, whatever others pay for and however often they settle. Others here submit as many settles as they like
//! before each sub-block.

use std::collections::{BTreeMap, HashSet};

/// Venues; the first one is the victim, which submits one settle.
const VENUES: usize = 4;
/// Settles of a sub-block.
const ROOM: usize = 2;
/// Sub-blocks that suffice for all venues.
const SUFFICE: usize = VENUES.div_ceil(ROOM);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// Settles wait in the order of their arrival, as many of a venue as it pays for.
    FirstComeFirstServed,
    /// The venue with the newest settle is taken first.
    NewestFirst,
    /// A settle that arrives takes the place of its venue's at the end of the queue.
    LosesItsPlace,
    /// Other validators' settles of a venue are forwarded beside its own.
    Forwarded,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Pool {
    /// Waiting settles by venue, in order of arrival.
    waiting: Vec<usize>,
    /// When each venue last settled; 0 is never.
    last: BTreeMap<usize, usize>,
    turn: usize,
}

impl Pool {
    fn submit(&mut self, mistake: Mistake, venue: usize) {
        let has_many = matches!(mistake, Mistake::FirstComeFirstServed | Mistake::Forwarded);
        if has_many && self.waiting.iter().filter(|of| **of == venue).count() < VENUES {
            return self.waiting.push(venue);
        }
        match self.waiting.iter().position(|of| *of == venue) {
            None => self.waiting.push(venue),
            Some(at) if mistake == Mistake::LosesItsPlace => {
                self.waiting.remove(at);
                self.waiting.push(venue);
            }
            Some(_) => {}
        }
    }

    /// Takes the settles of a sub-block.
    fn take(&mut self, mistake: Mistake) -> Vec<usize> {
        self.turn += 1;
        let mut order: Vec<usize> = (0..self.waiting.len()).collect();
        let last = |at: &usize| self.last.get(&self.waiting[*at]).copied().unwrap_or(0);
        match mistake {
            Mistake::FirstComeFirstServed | Mistake::LosesItsPlace | Mistake::Forwarded => {}
            Mistake::NewestFirst => order.sort_by_key(|at| std::cmp::Reverse((last(at), self.waiting[*at]))),
            // Of venues that settled equally long ago the highest number comes first: the worst for the victim.
            Mistake::None => order.sort_by_key(|at| (last(at), std::cmp::Reverse(self.waiting[*at]))),
        }
        order.truncate(ROOM);
        let taken: Vec<usize> = order.iter().map(|at| self.waiting[*at]).collect();
        order.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        for at in order {
            self.waiting.remove(at);
        }
        self.last.extend(taken.iter().map(|venue| (*venue, self.turn)));
        taken
    }
}

/// Every way in which others submit up to three settles before a sub-block.
fn floods() -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for len in 0..3 {
        let longer: Vec<Vec<usize>> = all
            .iter()
            .filter(|flood| flood.len() == len)
            .flat_map(|flood| (1..VENUES).map(move |venue| [&flood[..], &[venue]].concat()))
            .collect();
        all.extend(longer);
    }
    all
}

/// The most sub-blocks that the victim's settle waits for, in any history; the search ends at a wait that is too long.
fn longest_wait(mistake: Mistake) -> usize {
    let floods = floods();
    // The others have settled or waited before.
    let mut open: Vec<(Pool, Option<usize>)> = Vec::new();
    for before in &floods {
        let mut pool = Pool { waiting: Vec::new(), last: BTreeMap::new(), turn: 0 };
        (0..VENUES).for_each(|_| before.iter().for_each(|venue| pool.submit(mistake, *venue)));
        let mut later = pool.clone();
        later.take(mistake);
        for mut pool in [pool, later] {
            // The victim may have settled just now, or long ago.
            for last in [0, pool.turn] {
                pool.last.insert(0, last);
                pool.submit(mistake, 0);
                open.push((pool.clone(), Some(0)));
            }
        }
    }
    let (mut seen, mut longest) = (HashSet::new(), 0);
    while let Some((pool, waited)) = open.pop() {
        let Some(waited) = waited.filter(|waited| *waited <= SUFFICE + 2) else { continue };
        for flood in &floods {
            let mut next = pool.clone();
            flood.iter().for_each(|venue| next.submit(mistake, *venue));
            // Its operator sends the same bytes again.
            next.submit(mistake, 0);
            let is_taken = next.take(mistake).contains(&0);
            longest = longest.max(waited + 1);
            if longest > SUFFICE {
                return longest;
            }
            let still = (!is_taken).then_some(waited + 1);
            if still.is_some() && seen.insert((next.clone(), still)) {
                open.push((next, still));
            }
        }
    }
    longest
}

#[test]
fn a_settle_is_in_the_next_sub_blocks_that_have_room_for_all_venues_whatever_others_pay() {
    assert!(longest_wait(Mistake::None) <= SUFFICE, "{}", longest_wait(Mistake::None));
}

#[test]
fn planted_mistakes_of_the_queue_for_settles_let_a_flood_hold_a_settle_back() {
    use Mistake::*;
    for mistake in [FirstComeFirstServed, NewestFirst, LosesItsPlace, Forwarded] {
        assert!(longest_wait(mistake) > SUFFICE, "{mistake:?} is not found");
    }
}
