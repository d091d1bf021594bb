//! Ordered nodes without allocation: a treap whose priorities are a hash of the key, so its shape depends on the set of
//! keys alone.

pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u32,
    priority: u64,
    left: u32,
    right: u32,
}

/// A map from ticks to nodes `0..capacity`.
#[derive(Clone, Debug)]
pub(crate) struct Treap {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    seed: u64,
}

impl Treap {
    pub(crate) fn new(capacity: usize, seed: u64) -> Treap {
        let empty = Node { key: 0, priority: 0, left: NONE, right: NONE };
        let free = (0..capacity as u32).rev().collect();
        Treap { nodes: vec![empty; capacity], free, root: NONE, seed }
    }

    pub(crate) fn get(&self, key: u32) -> Option<u32> {
        let mut at = self.root;
        while at != NONE {
            let node = &self.nodes[at as usize];
            at = match key.cmp(&node.key) {
                std::cmp::Ordering::Equal => return Some(at),
                std::cmp::Ordering::Less => node.left,
                std::cmp::Ordering::Greater => node.right,
            };
        }
        None
    }

    /// Adds a key that is not there; returns its node.
    pub(crate) fn insert(&mut self, key: u32) -> u32 {
        let new = self.free.pop().expect("there are as many nodes as orders");
        let priority = mix(u64::from(key), self.seed);
        let (left, right) = self.split(self.root, key);
        self.nodes[new as usize] = Node { key, priority, left: NONE, right: NONE };
        let left = self.join(left, new);
        self.root = self.join(left, right);
        new
    }

    /// Removes a key that is there.
    pub(crate) fn remove(&mut self, key: u32) {
        let (mut parent, mut at) = (NONE, self.root);
        while self.nodes[at as usize].key != key {
            parent = at;
            let node = &self.nodes[at as usize];
            at = if key < node.key { node.left } else { node.right };
        }
        let Node { left, right, .. } = self.nodes[at as usize];
        let joined = self.join(left, right);
        match parent {
            NONE => self.root = joined,
            parent if self.nodes[parent as usize].left == at => self.nodes[parent as usize].left = joined,
            parent => self.nodes[parent as usize].right = joined,
        }
        self.free.push(at);
    }

    /// The lowest key that is at least `from`.
    pub(crate) fn at_or_above(&self, from: u32) -> Option<(u32, u32)> {
        let (mut at, mut found) = (self.root, None);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.key >= from {
                found = Some((node.key, at));
                at = node.left;
            } else {
                at = node.right;
            }
        }
        found
    }

    /// The highest key that is at most `from`.
    pub(crate) fn at_or_below(&self, from: u32) -> Option<(u32, u32)> {
        let (mut at, mut found) = (self.root, None);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.key <= from {
                found = Some((node.key, at));
                at = node.right;
            } else {
                at = node.left;
            }
        }
        found
    }

    /// Parts a tree into the keys below `key` and the others.
    fn split(&mut self, tree: u32, key: u32) -> (u32, u32) {
        if tree == NONE {
            return (NONE, NONE);
        }
        let Node { key: own, left, right, .. } = self.nodes[tree as usize];
        if own < key {
            let (below, above) = self.split(right, key);
            self.nodes[tree as usize].right = below;
            (tree, above)
        } else {
            let (below, above) = self.split(left, key);
            self.nodes[tree as usize].left = above;
            (below, tree)
        }
    }

    /// Joins two trees of which the first has the lower keys.
    fn join(&mut self, left: u32, right: u32) -> u32 {
        if left == NONE || right == NONE {
            return if left == NONE { right } else { left };
        }
        if self.nodes[left as usize].priority > self.nodes[right as usize].priority {
            let inner = self.nodes[left as usize].right;
            self.nodes[left as usize].right = self.join(inner, right);
            left
        } else {
            let inner = self.nodes[right as usize].left;
            self.nodes[right as usize].left = self.join(left, inner);
            right
        }
    }
}

/// A hash that nobody can invert without the seed: the folded product of both halves.
pub(crate) fn mix(key: u64, seed: u64) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    fold(fold(key ^ seed, 0x9e37_79b9_7f4a_7c15) ^ seed.rotate_left(32), 0xa076_1d64_78bd_642f)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn neighbours_in_a_treap_are_those_of_a_set(
            steps in proptest::collection::vec((any::<bool>(), 0..60u32), 1..300),
            seed in any::<u64>(),
        ) {
            let (mut treap, mut set) = (Treap::new(60, seed), BTreeSet::new());
            for (inserts, key) in steps {
                if inserts && set.insert(key) {
                    treap.insert(key);
                } else if !inserts && set.remove(&key) {
                    treap.remove(key);
                }
                let above = set.range(key..).next().copied();
                prop_assert_eq!(treap.at_or_above(key).map(|(key, _)| key), above);
                let below = set.range(..=key).next_back().copied();
                prop_assert_eq!(treap.at_or_below(key).map(|(key, _)| key), below);
                prop_assert_eq!(treap.get(key).is_some(), set.contains(&key));
            }
        }
    }
}
