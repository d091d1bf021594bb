//! Hashing what changed: segments in parallel, and within a segment level by level, so that nodes which do not depend on
//! one another are hashed side by side.

use rayon::prelude::*;

use crate::message::{self, Lanes, Slot};
use crate::segment::{Child, Node, Segment};
use crate::subtree::{Branch, Subtree};

impl<const KEY: usize> Subtree<KEY> {
    /// Makes the digest of every node fresh.
    pub(crate) fn rehash(&mut self, trie_key: &[u8; 32]) {
        match self {
            Subtree::Segment(segment) => segment.rehash(trie_key),
            Subtree::Branch(branch) if !branch.fresh => branch.rehash(trie_key),
            Subtree::Branch(_) => {}
        }
    }

    /// Whether every digest is.
    pub(crate) fn is_fresh(&self) -> bool {
        match self {
            Subtree::Segment(segment) => !matches!(&segment.root, Child::Node(node) if !node.fresh),
            Subtree::Branch(branch) => branch.fresh,
        }
    }

    /// The root of this subtree taken as a whole trie, once rehashed.
    pub(crate) fn digest(&self, trie_key: &[u8; 32]) -> [u8; 32] {
        match self {
            Subtree::Branch(branch) => branch.digest,
            Subtree::Segment(segment) => match &segment.root {
                Child::Empty => message::empty_digest(trie_key),
                Child::Leaf(leaf) => message::only_entry_digest(trie_key, &leaf.key, &leaf.value),
                Child::Node(node) => node.digest,
            },
        }
    }
}

impl<const KEY: usize> Branch<KEY> {
    fn rehash(&mut self, trie_key: &[u8; 32]) {
        self.subtrees.par_iter_mut().with_max_len(1).flatten().for_each(|subtree| subtree.rehash(trie_key));
        let path = self.subtrees.iter().flatten().find_map(Subtree::any_key).expect("a branch is not empty");
        self.digest = message::node_digest(trie_key, self.depth, path, self.slots());
        self.fresh = true;
    }

    /// What the message of this node says about its slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (usize, Slot<'_>)> {
        self.subtrees.iter().enumerate().filter_map(|(slot, subtree)| {
            let content = match subtree.as_ref()? {
                Subtree::Branch(branch) => Slot::Node(&branch.digest),
                Subtree::Segment(segment) => match &segment.root {
                    Child::Empty => return None,
                    Child::Node(node) => Slot::Node(&node.digest),
                    Child::Leaf(leaf) => Slot::Leaf(&leaf.key[message::path_bytes(self.depth)..], &leaf.value),
                },
            };
            Some((slot, content))
        })
    }
}

impl<const KEY: usize> Segment<KEY> {
    /// What the message of a node says about its slots.
    pub(crate) fn slots<'a>(&'a self, node: &Node) -> impl Iterator<Item = (usize, Slot<'a>)> + use<'a, KEY> {
        let (nodes, leaves) = (self.nodes_of(node), self.leaves_of(node));
        let (mut nodes, mut leaves) = (nodes.iter(), leaves.iter());
        let path_bytes = message::path_bytes(node.depth());
        let (node_slots, leaf_slots) = (node.node_slots, node.leaf_slots);
        (0..16).filter_map(move |slot| {
            let content = if leaf_slots >> slot & 1 == 1 {
                leaves.next().map(|leaf| Slot::Leaf(&leaf.key[path_bytes..], &leaf.value))
            } else if node_slots >> slot & 1 == 1 {
                nodes.next().map(|below| Slot::Node(&below.digest))
            } else {
                None
            };
            Some((slot, content?))
        })
    }

    fn rehash(&mut self, trie_key: &[u8; 32]) {
        let Child::Node(root) = self.root else { return };
        if root.fresh {
            return;
        }
        let mut lanes = Lanes::new(trie_key);
        for level in self.stale_below(&root).iter().rev() {
            self.rehash_level(level, &mut lanes);
        }
        let digest = message::node_digest(trie_key, root.depth(), self.key_below(&root), self.slots(&root));
        self.root = Child::Node(Node { digest, fresh: true, ..root });
    }

    /// Stale nodes below a stale one, by how far below.
    fn stale_below(&self, root: &Node) -> Vec<Vec<u32>> {
        let mut levels = Vec::new();
        let mut level: Vec<u32> = self.stale_children(root).collect();
        while !level.is_empty() {
            let next = level.iter().flat_map(|&index| self.stale_children(self.nodes.get(index))).collect();
            levels.push(std::mem::replace(&mut level, next));
        }
        levels
    }

    fn stale_children(&self, node: &Node) -> impl Iterator<Item = u32> {
        (node.nodes..).zip(self.nodes_of(node)).filter(|(_, below)| !below.fresh).map(|(index, _)| index)
    }

    fn rehash_level(&mut self, level: &[u32], lanes: &mut Lanes) {
        let mut digests = Vec::with_capacity(level.len());
        let mut done = |index, digest| digests.push((index, digest));
        for &index in level {
            let node = self.nodes.get(index);
            let (nodes, leaves) = (node.node_slots.count_ones(), node.leaf_slots.count_ones());
            let length = message::node_length(KEY, node.depth(), nodes as usize, leaves as usize);
            let write =
                |out: &mut Vec<u8>| message::write_node(out, node.depth(), self.key_below(node), self.slots(node));
            lanes.push(index, length, write, &mut done);
        }
        lanes.finish(&mut done);
        for (index, digest) in digests {
            let node = self.nodes.get_mut(index);
            (node.digest, node.fresh) = (digest, true);
        }
    }
}
