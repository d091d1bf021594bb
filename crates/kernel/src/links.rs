//! What joins processes: links that break, and datagrams.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::Dice;

/// Links between pairs of hosts. What was sent over a link before it broke is void: each break gives it a new number.
pub struct Links<H> {
    numbers: BTreeMap<(H, H), u64>,
    /// Pairs with a link, which may be down for a moment.
    joined: BTreeSet<(H, H)>,
}

impl<H> Default for Links<H> {
    fn default() -> Links<H> {
        Links { numbers: BTreeMap::new(), joined: BTreeSet::new() }
    }
}

fn pair<H: Ord + Copy>(a: H, b: H) -> (H, H) {
    (a.min(b), a.max(b))
}

impl<H: Ord + Copy> Links<H> {
    /// All pairs of these hosts; none has a link.
    pub fn among(hosts: &[H]) -> Links<H> {
        let rest = |at: usize| hosts[at + 1..].iter();
        let pairs = hosts.iter().enumerate().flat_map(|(at, a)| rest(at).map(|b| (pair(*a, *b), 0)));
        Links { numbers: pairs.collect(), joined: BTreeSet::new() }
    }

    /// All pairs, with a link or without.
    pub fn pairs(&self) -> Vec<(H, H)> {
        self.numbers.keys().copied().collect()
    }

    /// Whether a pair has a link.
    pub fn is_joined(&self, a: H, b: H) -> bool {
        self.joined.contains(&pair(a, b))
    }

    /// The number of the present link between two hosts.
    pub fn number(&self, a: H, b: H) -> u64 {
        self.numbers[&pair(a, b)]
    }

    /// Breaks a link; the number of the next one.
    pub fn break_off(&mut self, a: H, b: H) -> u64 {
        let number = self.numbers.get_mut(&pair(a, b)).expect("a pair");
        *number += 1;
        *number
    }

    /// Replaces the pairs that have a link, and returns those that had one.
    pub fn join(&mut self, joined: BTreeSet<(H, H)>) -> BTreeSet<(H, H)> {
        std::mem::replace(&mut self.joined, joined)
    }
}

/// What may go wrong with datagrams; each is a share of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct DatagramFaults {
    /// Lost.
    pub loss: f64,
    /// Delivered twice.
    pub copies: f64,
    /// Accompanied by a forgery that comes first.
    pub forged: f64,
    /// Accompanied by an earlier datagram.
    pub replayed: f64,
    /// Accompanied by a copy that is cut.
    pub cut: f64,
}

impl DatagramFaults {
    /// None of it.
    pub const NONE: DatagramFaults = DatagramFaults { loss: 0.0, copies: 0.0, forged: 0.0, replayed: 0.0, cut: 0.0 };
}

/// Datagrams in flight.
pub struct Flight<M>(VecDeque<M>);

impl<M> Default for Flight<M> {
    fn default() -> Flight<M> {
        Flight(VecDeque::new())
    }
}

impl<M: Clone> Flight<M> {
    /// Sends a datagram.
    pub fn send(&mut self, message: M) {
        self.0.push_back(message);
    }

    /// Number of datagrams in flight.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is in flight.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Loses all of them.
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
