//! What joins processes: links that break, and datagrams.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use consensus::Index;

use super::Dice;

/// Links between pairs of hosts. What was sent over a link before it broke is void: each break gives it a new number.
#[derive(Default)]
pub(crate) struct Links {
    numbers: BTreeMap<(Index, Index), u64>,
    /// Pairs with a link, which may be down for a moment.
    joined: BTreeSet<(Index, Index)>,
}

fn pair(a: Index, b: Index) -> (Index, Index) {
    (a.min(b), a.max(b))
}

impl Links {
    /// All pairs of these hosts; none has a link.
    pub fn among(hosts: &[Index]) -> Links {
        let rest = |at: usize| hosts[at + 1..].iter();
        let pairs = hosts.iter().enumerate().flat_map(|(at, a)| rest(at).map(|b| (pair(*a, *b), 0)));
        Links { numbers: pairs.collect(), joined: BTreeSet::new() }
    }

    /// All pairs, with a link or without.
    pub fn pairs(&self) -> Vec<(Index, Index)> {
        self.numbers.keys().copied().collect()
    }

    pub fn is_joined(&self, a: Index, b: Index) -> bool {
        self.joined.contains(&pair(a, b))
    }

    /// The number of the present link between two hosts.
    pub fn number(&self, a: Index, b: Index) -> u64 {
        self.numbers[&pair(a, b)]
    }

    /// Breaks a link; the number of the next one.
    pub fn break_off(&mut self, a: Index, b: Index) -> u64 {
        let number = self.numbers.get_mut(&pair(a, b)).expect("a pair");
        *number += 1;
        *number
    }

    /// Replaces the pairs that have a link, and returns those that had one.
    pub fn join(&mut self, joined: BTreeSet<(Index, Index)>) -> BTreeSet<(Index, Index)> {
        std::mem::replace(&mut self.joined, joined)
    }
}

/// Datagrams in flight.
pub(crate) struct Flight<M>(VecDeque<M>);

impl<M: Clone> Flight<M> {
    pub fn new() -> Flight<M> {
        Flight(VecDeque::new())
    }

    pub fn send(&mut self, message: M) {
        self.0.push_back(message);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Any of them arrives, or is lost, or arrives and stays in flight; if the network is `calm` it arrives.
    pub fn arrives(&mut self, dice: &mut Dice, calm: bool) -> Option<M> {
        if self.is_empty() {
            return None;
        }
        let at = dice.index(self.0.len());
        let fate = if calm { u64::MAX } else { dice.below(20) };
        match fate {
            0 => Some(self.0[at].clone()),
            1 => {
                self.0.swap_remove_back(at);
                None
            }
            _ => self.0.swap_remove_back(at),
        }
    }
}
