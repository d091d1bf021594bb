//! A place in the trie for read-only use: branches and segments look the same from here.

use crate::message::Slot;
use crate::segment::{Child, Leaf, Node, Segment};
use crate::subtree::{Branch, Subtree};

/// A node or a leaf.
pub(crate) enum At<'a, const KEY: usize, const VALUE: usize> {
    Branch(&'a Branch<KEY, VALUE>),
    Node(&'a Segment<KEY, VALUE>, &'a Node),
    Leaf(&'a Leaf<KEY, VALUE>),
}

impl<'a, const KEY: usize, const VALUE: usize> At<'a, KEY, VALUE> {
    pub(crate) fn of_subtree(subtree: &'a Subtree<KEY, VALUE>) -> Option<Self> {
        match subtree {
            Subtree::Branch(branch) => Some(At::Branch(branch)),
            Subtree::Segment(segment) => match &segment.root {
                Child::Empty => None,
                Child::Leaf(leaf) => Some(At::Leaf(leaf)),
                Child::Node(node) => Some(At::Node(segment, node)),
            },
        }
    }

    /// The content of a slot.
    pub(crate) fn child(&self, slot: usize) -> Option<Self> {
        match *self {
            At::Branch(branch) => At::of_subtree(branch.subtrees[slot].as_ref()?),
            At::Node(segment, node) => match node.leaf_at(slot) {
                Some(index) => Some(At::Leaf(segment.leaves.get(index))),
                None => Some(At::Node(segment, segment.nodes.get(node.node_at(slot)?))),
            },
            At::Leaf(_) => None,
        }
    }

    /// Nibbles that all keys from here on share.
    pub(crate) fn depth(&self) -> usize {
        match self {
            At::Branch(branch) => branch.depth,
            At::Node(_, node) => node.depth(),
            At::Leaf(_) => 2 * KEY,
        }
    }

    /// A key that begins with the path.
    pub(crate) fn key_below(&self) -> &'a [u8; KEY] {
        match *self {
            At::Branch(branch) => {
                branch.subtrees.iter().flatten().find_map(Subtree::any_key).expect("a branch is not empty")
            }
            At::Node(segment, node) => segment.key_below(node),
            At::Leaf(leaf) => &leaf.key,
        }
    }

    /// The slots of this node in its message; none for a leaf.
    pub(crate) fn slots(&self) -> Vec<(usize, Slot<'a>)> {
        match *self {
            At::Branch(branch) => branch.slots().collect(),
            At::Node(segment, node) => segment.slots(node).collect(),
            At::Leaf(_) => Vec::new(),
        }
    }
}
