//! Roots of a venue, their journals, and what they sign. A restart with a settle in flight, stale copies in other
//! pools, a journal that is lost, and two live roots with one operator.
//!
//! A root journals a fill, syncs, and only then reports it. A settle is cut from the synced journal at the count that
//! is certified, is journaled with its sequence number before it is sent, and is sent again as the same bytes until it
//! counts. A crash loses what is not synced. The adversary keeps every copy that was ever sent and includes any of them
//! in any block. A leaf is never made twice: a fill that is matched again after a crash is another fill.

use std::collections::{BTreeSet, HashSet};

/// Acts of a history.
const ACTS: usize = 11;
/// Fills that the roots match together.
const FILLS: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// A fill is reported before its journal is synced.
    ReportBeforeSync,
    /// A settle is cut from fills that are not synced.
    SettleBeforeSync,
    /// The ledger applies a settle wherever it begins, and under a used number.
    CutCountedTwice,
    /// A sequence number counts again. The count at which a settle begins still protects it.
    NumberCountsAgain,
    /// A root that has lost its journal reports on instead of being fenced.
    ReportsOnWithoutJournal,
}

/// A settle as it was signed: its number, where it begins, and its fills.
type SentSettle = (u8, u8, Vec<u8>);

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Root {
    journal: Vec<u8>,
    synced: usize,
    reported: usize,
    /// The settle that is sent until it counts; it is journaled before that.
    in_flight: Option<SentSettle>,
    /// Whether its journal is lost: it matches no more before a fence.
    is_lost: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Venue {
    roots: Vec<Root>,
    tree: Vec<u8>,
    /// Numbers that the ledger has used.
    used: BTreeSet<u8>,
    /// Every settle that was ever sent.
    sent: BTreeSet<SentSettle>,
    /// Reports of the present incarnation: index and leaf.
    reports: BTreeSet<(usize, u8)>,
    next_fill: u8,
}

impl Venue {
    fn new(roots: usize) -> Venue {
        let roots = vec![Root::default(); roots];
        let (tree, used, sent, reports) = (Vec::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Venue { roots, tree, used, sent, reports, next_fill: 0 }
    }

    /// Whether a report is contradicted by the tree, or by another report.
    fn is_convicted(&self) -> bool {
        let by_tree = |(index, leaf): &(usize, u8)| self.tree.get(*index).is_some_and(|settled| settled != leaf);
        let by_report = |(index, leaf): &(usize, u8)| self.reports.iter().any(|(at, of)| at == index && of != leaf);
        self.reports.iter().any(|report| by_tree(report) || by_report(report))
    }

    /// The block with any set of copies: those with a used number are refused, those that begin elsewhere are void, and
    /// of the rest the one with most fills counts. Of two bodies with one number only one is admitted.
    fn block(&mut self, mistake: Mistake, copies: &[&SentSettle]) {
        let mut numbers = BTreeSet::new();
        let counts_again = matches!(mistake, Mistake::NumberCountsAgain | Mistake::CutCountedTwice);
        let is_free = |number: &u8| counts_again || !self.used.contains(number);
        let admitted: Vec<&SentSettle> =
            copies.iter().copied().filter(|copy| is_free(&copy.0) && numbers.insert(copy.0)).collect();
        let begins =
            |copy: &&&SentSettle| mistake == Mistake::CutCountedTwice || usize::from(copy.1) == self.tree.len();
        let counts = admitted.iter().filter(begins).max_by_key(|copy| copy.2.len()).copied().cloned();
        self.used.extend(admitted.iter().map(|copy| copy.0));
        if let Some((_, _, fills)) = counts {
            self.tree.extend(fills);
        }
        for root in &mut self.roots {
            // A certified block says which numbers are used.
            root.in_flight.take_if(|copy| self.used.contains(&copy.0));
        }
    }

    fn matches(&mut self, at: usize) {
        let root = &mut self.roots[at];
        if !root.is_lost && self.next_fill < FILLS {
            root.journal.push(self.next_fill);
            self.next_fill += 1;
        }
    }

    fn report(&mut self, mistake: Mistake, at: usize) {
        let root = &mut self.roots[at];
        let most = if mistake == Mistake::ReportBeforeSync { root.journal.len() } else { root.synced };
        if root.reported < most {
            self.reports.insert((root.reported, root.journal[root.reported]));
            root.reported += 1;
        }
    }

    fn settle(&mut self, mistake: Mistake, at: usize) {
        let (from, number) = (self.tree.len(), self.used.len() as u8);
        let root = &mut self.roots[at];
        let to = if mistake == Mistake::SettleBeforeSync { root.journal.len() } else { root.synced };
        if root.in_flight.is_none() && from < to {
            let copy = (number, from as u8, root.journal[from..to].to_vec());
            self.sent.insert(copy.clone());
            root.in_flight = Some(copy);
        }
    }

    /// A crash loses what is not synced, and the settle that was cut from it.
    fn crash(&mut self, at: usize) {
        let root = &mut self.roots[at];
        root.journal.truncate(root.synced);
        root.reported = root.reported.min(root.synced);
        let len = root.journal.len();
        root.in_flight.take_if(|copy| usize::from(copy.1) + copy.2.len() > len);
    }

    fn lose(&mut self, mistake: Mistake, at: usize) {
        let is_lost = mistake != Mistake::ReportsOnWithoutJournal;
        // It knows the settled fills from the ledger.
        let journal = self.tree.clone();
        let synced = journal.len();
        self.roots[at] = Root { synced, reported: synced, journal, in_flight: None, is_lost };
    }

    /// All next states.
    fn next(&self, mistake: Mistake) -> Vec<Venue> {
        let mut all = Vec::new();
        let mut push = |act: &dyn Fn(&mut Venue)| {
            let mut next = self.clone();
            act(&mut next);
            all.push(next);
        };
        for at in 0..self.roots.len() {
            push(&|venue| venue.matches(at));
            push(&|venue| venue.roots[at].synced = venue.roots[at].journal.len());
            push(&|venue| venue.report(mistake, at));
            push(&|venue| venue.settle(mistake, at));
            push(&|venue| venue.crash(at));
            push(&|venue| venue.lose(mistake, at));
        }
        let copies: Vec<&SentSettle> = self.sent.iter().collect();
        for one in 0..copies.len() {
            push(&|venue| venue.block(mistake, &[copies[one]]));
            (0..one).for_each(|other| push(&|venue| venue.block(mistake, &[copies[one], copies[other]])));
        }
        all
    }
}

/// Walks all histories; an error says what broke.
fn search(mistake: Mistake, roots: usize) -> Result<(usize, bool), &'static str> {
    let (mut seen, mut open) = (HashSet::new(), vec![Venue::new(roots)]);
    let mut convicts = false;
    for _ in 0..ACTS - 2 * (roots - 1) {
        let mut later = Vec::new();
        for venue in open.drain(..).flat_map(|venue| venue.next(mistake)) {
            let mut settled = venue.tree.clone();
            settled.sort_unstable();
            settled.dedup();
            if settled.len() != venue.tree.len() {
                return Err("a fill is settled twice");
            }
            if roots == 1 && venue.is_convicted() {
                return Err("an honest root is convicted");
            }
            // Two roots that settled for each other have told somebody another leaf: that convicts.
            let is_told = |root: &Root| {
                root.journal[..root.reported].iter().zip(&venue.tree).any(|(told, settled)| told != settled)
            };
            if venue.roots.iter().any(is_told) && !venue.is_convicted() {
                return Err("a contradiction convicts nobody");
            }
            convicts |= venue.is_convicted();
            if seen.insert(venue.clone()) {
                later.push(venue);
            }
        }
        open = later;
    }
    Ok((seen.len(), convicts))
}

#[test]
fn an_honest_root_with_restarts_stale_copies_and_settles_in_flight_is_never_convicted() {
    let (states, convicts) = search(Mistake::None, 1).expect("holds");
    assert!(states > 1_000 && !convicts, "{states}");
}

#[test]
fn two_live_roots_with_one_operator_key_convict_their_venue_and_settle_no_fill_twice() {
    let (states, convicts) = search(Mistake::None, 2).expect("holds");
    assert!(states > 1_000 && convicts, "{states}");
}

#[test]
fn planted_mistakes_of_roots_and_stale_settles_are_found() {
    use Mistake::*;
    for mistake in [ReportBeforeSync, SettleBeforeSync, CutCountedTwice, ReportsOnWithoutJournal] {
        assert!(search(mistake, 1).is_err(), "{mistake:?} is not found");
    }
    // The count at which a settle begins protects by itself.
    assert!(search(NumberCountsAgain, 1).is_ok());
}
