//! Hashes what changed: groups of segments in parallel, and within a group level by level, so that nodes which do not
//! depend on one another are hashed together.

use rayon::prelude::*;

use crate::message::{self, Lanes, Slot};
use crate::segment::{Child, Node, Segment};
use crate::subtree::{Branch, SPLIT_LEN, Subtree};

/// Segments below the topmost branch are hashed as a group, by one thread, up to this many entries: with ten million
/// keys and a batch of a hundred thousand, a single segment has too few stale nodes of one length to fill vector
/// registers.
const GROUP_LEN: usize = 4 * SPLIT_LEN;

/// Updates the digest of every node of these tries on this thread; nodes of all of them are hashed together.
pub(crate) fn rehash_together<const KEY: usize, const VALUE: usize>(
    tops: &mut [&mut Subtree<KEY, VALUE>],
    trie_key: &[u8; 32],
) {
    let mut segments = Vec::new();
    for top in tops.iter_mut() {
        match top {
            Subtree::Segment(segment) => segments.push(&mut **segment),
            Subtree::Branch(branch) if branch.len() <= GROUP_LEN => segments.extend(branch.segments_below()),
            Subtree::Branch(_) => {}
        }
    }
    rehash_group(&mut segments, trie_key);
    for top in tops {
        match top {
            Subtree::Branch(branch) if branch.len() <= GROUP_LEN && !branch.fresh => branch.rehash_branches(trie_key),
            Subtree::Branch(_) => top.rehash(trie_key),
            Subtree::Segment(_) => {}
        }
    }
}

impl<const KEY: usize, const VALUE: usize> Subtree<KEY, VALUE> {
    /// Updates the digest of every node.
    pub(crate) fn rehash(&mut self, trie_key: &[u8; 32]) {
        match self {
            Subtree::Segment(segment) => rehash_group(&mut [segment], trie_key),
            Subtree::Branch(branch) if !branch.fresh => {
                branch
                    .subtrees
                    .par_iter_mut()
                    .with_max_len(1)
                    .flatten()
                    .for_each(|subtree| subtree.rehash_below(trie_key));
                branch.rehash(trie_key);
            }
            Subtree::Branch(_) => {}
        }
    }

    /// Updates the digests of a subtree among others.
    fn rehash_below(&mut self, trie_key: &[u8; 32]) {
        match self {
            Subtree::Branch(branch) if branch.len() <= GROUP_LEN && !branch.fresh => {
                rehash_group(&mut branch.segments_below(), trie_key);
                branch.rehash_branches(trie_key);
            }
            _ => self.rehash(trie_key),
        }
    }

    /// Whether every digest is fresh.
    pub(crate) fn is_fresh(&self) -> bool {
        match self {
            Subtree::Segment(segment) => !matches!(&segment.root, Child::Node(node) if !node.fresh),
            Subtree::Branch(branch) => branch.fresh,
        }
    }

    /// The root of this subtree as a whole trie, after rehashing.
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

impl<const KEY: usize, const VALUE: usize> Branch<KEY, VALUE> {
    /// Every segment in this part of the trie.
    fn segments_below(&mut self) -> Vec<&mut Segment<KEY, VALUE>> {
        let mut segments = Vec::new();
        for subtree in self.subtrees.iter_mut().flatten() {
            match subtree {
                Subtree::Segment(segment) => segments.push(&mut **segment),
                Subtree::Branch(branch) => segments.extend(branch.segments_below()),
            }
        }
        segments
    }

    /// Rehashes stale branches whose segments are all fresh.
    fn rehash_branches(&mut self, trie_key: &[u8; 32]) {
        for subtree in self.subtrees.iter_mut().flatten() {
            match subtree {
                Subtree::Branch(branch) if !branch.fresh => branch.rehash_branches(trie_key),
                _ => {}
            }
        }
        self.rehash(trie_key);
    }

    /// Rehashes only this node.
    fn rehash(&mut self, trie_key: &[u8; 32]) {
        let path = self.subtrees.iter().flatten().find_map(Subtree::any_key).expect("a branch is not empty");
        self.digest = message::node_digest(trie_key, self.depth, path, self.slots());
        self.fresh = true;
    }

    /// The slots of this node in its message.
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

impl<const KEY: usize, const VALUE: usize> Segment<KEY, VALUE> {
    /// The slots of a node in its message.
    pub(crate) fn slots<'a>(&'a self, node: &Node) -> impl Iterator<Item = (usize, Slot<'a>)> + use<'a, KEY, VALUE> {
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

    /// Stale nodes below a stale one, by their distance from it.
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

    fn stale_root(&self) -> Option<Node> {
        match self.root {
            Child::Node(root) if !root.fresh => Some(root),
            _ => None,
        }
    }

    /// Queues a node's message for hashing.
    fn push(&self, ticket: usize, node: &Node, lanes: &mut Lanes, done: &mut impl FnMut(u32, [u8; 32])) {
        let (nodes, leaves) = (node.node_slots.count_ones(), node.leaf_slots.count_ones());
        let length = message::node_length((KEY, VALUE), node.depth(), nodes as usize, leaves as usize);
        let write = |out: &mut Vec<u8>| message::write_node(out, node.depth(), self.key_below(node), self.slots(node));
        lanes.push(ticket as u32, length, write, done);
    }
}

/// Updates the digests of every node in these segments.
fn rehash_group<const KEY: usize, const VALUE: usize>(segments: &mut [&mut Segment<KEY, VALUE>], trie_key: &[u8; 32]) {
    let mut lanes = Lanes::new(trie_key);
    // The nodes by distance from the root of their segment: number of the segment, index in its arena.
    let mut levels: Vec<Vec<(usize, u32)>> = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let Some(root) = segment.stale_root() else { continue };
        for (distance, level) in segment.stale_below(&root).into_iter().enumerate() {
            if levels.len() == distance {
                levels.push(Vec::new());
            }
            levels[distance].extend(level.into_iter().map(|index| (number, index)));
        }
    }
    for level in levels.iter().rev() {
        rehash_level(segments, level, &mut lanes);
    }
    rehash_roots(segments, &mut lanes);
}

fn rehash_level<const KEY: usize, const VALUE: usize>(
    segments: &mut [&mut Segment<KEY, VALUE>],
    level: &[(usize, u32)],
    lanes: &mut Lanes,
) {
    let mut digests = vec![[0; 32]; level.len()];
    let mut done = |ticket: u32, digest| digests[ticket as usize] = digest;
    for (ticket, &(number, index)) in level.iter().enumerate() {
        let segment = &*segments[number];
        segment.push(ticket, segment.nodes.get(index), lanes, &mut done);
    }
    lanes.finish(&mut done);
    for (&(number, index), digest) in level.iter().zip(digests) {
        let node = segments[number].nodes.get_mut(index);
        (node.digest, node.fresh) = (digest, true);
    }
}

fn rehash_roots<const KEY: usize, const VALUE: usize>(segments: &mut [&mut Segment<KEY, VALUE>], lanes: &mut Lanes) {
    let mut digests = vec![None; segments.len()];
    let mut done = |ticket: u32, digest| digests[ticket as usize] = Some(digest);
    for (number, segment) in segments.iter().enumerate() {
        if let Some(root) = segment.stale_root() {
            segment.push(number, &root, lanes, &mut done);
        }
    }
    lanes.finish(&mut done);
    for (segment, digest) in segments.iter_mut().zip(digests) {
        if let (Child::Node(root), Some(digest)) = (&mut segment.root, digest) {
            (root.digest, root.fresh) = (digest, true);
        }
    }
}

#[cfg(test)]
mod tests;
