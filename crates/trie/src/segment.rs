//! An arena that holds one subtree: at most some ten thousand entries, changed by one thread at a time.
//!
//! A node's children are adjacent, nodes in one array and leaves in another, so a node refers to them by two 4-byte
//! indices and two bitmaps; 48 bytes in total. A block of children that grows or shrinks moves. The space it leaves is
//! kept in lists by size and given to the next block that fits.

use crate::key::nibble;

/// Children of one node.
pub(crate) const FAN_OUT: usize = 16;

/// A key and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf<const KEY: usize, const VALUE: usize> {
    pub(crate) key: [u8; KEY],
    pub(crate) value: [u8; VALUE],
}

/// A point where at least two keys diverge. Its path is not stored: every leaf below begins with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// Valid only if `fresh`.
    pub(crate) digest: [u8; 32],
    /// The start of the block of child nodes, if there are any.
    pub(crate) nodes: u32,
    /// The start of the block of child leaves, if there are any.
    pub(crate) leaves: u32,
    /// Slots that hold a node.
    pub(crate) node_slots: u16,
    /// Slots that hold a leaf.
    pub(crate) leaf_slots: u16,
    /// Number of nibbles that all keys below share.
    pub(crate) depth: u8,
    /// Whether nothing below has changed since the digest was computed.
    pub(crate) fresh: bool,
}

/// The content of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Child<const KEY: usize, const VALUE: usize> {
    Empty,
    Leaf(Leaf<KEY, VALUE>),
    Node(Node),
}

impl<const KEY: usize, const VALUE: usize> Leaf<KEY, VALUE> {
    const FILLER: Leaf<KEY, VALUE> = Leaf { key: [0; KEY], value: [0; VALUE] };
}

impl Node {
    /// A node without children, which must be given some.
    pub(crate) fn new(depth: usize) -> Node {
        let depth = u8::try_from(depth).expect("a depth is at most 253");
        Node { digest: [0; 32], nodes: 0, leaves: 0, node_slots: 0, leaf_slots: 0, depth, fresh: false }
    }

    /// The index of a slot's child within its block: the number of children of the same kind before it.
    pub(crate) fn rank(slots: u16, slot: usize) -> u32 {
        (slots & ((1 << slot) - 1)).count_ones()
    }

    pub(crate) fn node_at(&self, slot: usize) -> Option<u32> {
        (self.node_slots >> slot & 1 == 1).then(|| self.nodes + Node::rank(self.node_slots, slot))
    }

    pub(crate) fn leaf_at(&self, slot: usize) -> Option<u32> {
        (self.leaf_slots >> slot & 1 == 1).then(|| self.leaves + Node::rank(self.leaf_slots, slot))
    }

    pub(crate) fn depth(&self) -> usize {
        usize::from(self.depth)
    }
}

/// Blocks of 1 to 16 items in one array.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<T> {
    items: Vec<T>,
    /// The starts of free blocks, by size minus one.
    free: [Vec<u32>; FAN_OUT],
    free_items: usize,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Blocks { items: Vec::new(), free: Default::default(), free_items: 0 }
    }
}

impl<T: Copy> Blocks<T> {
    pub(crate) fn block(&self, start: u32, count: u32) -> &[T] {
        // An empty block's start has no meaning.
        if count == 0 { &[] } else { &self.items[start as usize..][..count as usize] }
    }

    pub(crate) fn get(&self, index: u32) -> &T {
        &self.items[index as usize]
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }

    /// Stores at most 16 items as a block.
    pub(crate) fn store(&mut self, block: &[T]) -> u32 {
        let Some(start) = self.reuse(block.len()) else { return self.append(block) };
        self.items[start as usize..][..block.len()].copy_from_slice(block);
        start
    }

    fn append(&mut self, block: &[T]) -> u32 {
        let start = self.end_with_room(block.len());
        self.items.extend_from_slice(block);
        start
    }

    fn append_room(&mut self, count: usize, filler: T) -> u32 {
        let start = self.end_with_room(count);
        self.items.resize(self.items.len() + count, filler);
        start
    }

    /// The index of the next item; reserves memory for this many.
    fn end_with_room(&mut self, count: usize) -> u32 {
        if self.items.capacity() < self.items.len() + count {
            // Grows by an eighth instead of doubling: the arenas are small, and most of the trie's memory is in them.
            self.items.reserve_exact(count + self.items.len() / 8);
        }
        u32::try_from(self.items.len()).expect("a segment is far smaller than 2^32")
    }

    /// A free block of this size, cut from a larger one if needed.
    fn reuse(&mut self, size: usize) -> Option<u32> {
        if size == 0 || self.free_items < size {
            return (size == 0).then_some(0);
        }
        let found = (size..=FAN_OUT).find(|&found| !self.free[found - 1].is_empty())?;
        let start = self.free[found - 1].pop()?;
        self.free_items -= found;
        self.release(start + size as u32, (found - size) as u32);
        Some(start)
    }

    /// Inserts an item into a block of `count` at position `at`; returns the new start of the block.
    pub(crate) fn grow(&mut self, start: u32, count: u32, at: u32, item: T) -> u32 {
        let moved = match self.reuse(count as usize + 1) {
            Some(moved) => moved,
            // The last item is overwritten below.
            None => self.append_room(count as usize + 1, item),
        };
        let (from, to, at, count) = (start as usize, moved as usize, at as usize, count as usize);
        self.items.copy_within(from..from + at, to);
        self.items.copy_within(from + at..from + count, to + at + 1);
        self.items[to + at] = item;
        self.release(start, count as u32);
        moved
    }

    /// Removes the item at position `at` from a block of `count`, which does not move.
    pub(crate) fn shrink(&mut self, start: u32, count: u32, at: u32) {
        self.items.copy_within((start + at + 1) as usize..(start + count) as usize, (start + at) as usize);
        self.release(start + count - 1, 1);
    }

    /// Frees a block.
    pub(crate) fn release(&mut self, start: u32, count: u32) {
        if count > 0 {
            self.free[count as usize - 1].push(start);
            self.free_items += count as usize;
        }
    }

    fn allocated_bytes(&self) -> usize {
        let lists: usize = self.free.iter().map(Vec::capacity).sum();
        self.items.capacity() * size_of::<T>() + lists * size_of::<u32>()
    }
}

/// A subtree in its own arena.
#[derive(Clone, Debug)]
pub(crate) struct Segment<const KEY: usize, const VALUE: usize> {
    pub(crate) root: Child<KEY, VALUE>,
    pub(crate) len: usize,
    pub(crate) nodes: Blocks<Node>,
    pub(crate) leaves: Blocks<Leaf<KEY, VALUE>>,
}

impl<const KEY: usize, const VALUE: usize> Default for Segment<KEY, VALUE> {
    fn default() -> Self {
        Segment { root: Child::Empty, len: 0, nodes: Blocks::default(), leaves: Blocks::default() }
    }
}

impl<const KEY: usize, const VALUE: usize> Segment<KEY, VALUE> {
    /// Child nodes of a node, in order of slots.
    pub(crate) fn nodes_of(&self, node: &Node) -> &[Node] {
        self.nodes.block(node.nodes, node.node_slots.count_ones())
    }

    /// Leaves directly below a node, in order of slots.
    pub(crate) fn leaves_of(&self, node: &Node) -> &[Leaf<KEY, VALUE>] {
        self.leaves.block(node.leaves, node.leaf_slots.count_ones())
    }

    pub(crate) fn child(&self, node: &Node, slot: usize) -> Child<KEY, VALUE> {
        if let Some(index) = node.leaf_at(slot) {
            Child::Leaf(*self.leaves.get(index))
        } else if let Some(index) = node.node_at(slot) {
            Child::Node(*self.nodes.get(index))
        } else {
            Child::Empty
        }
    }

    /// Any key below a node: it begins with the node's path.
    pub(crate) fn key_below(&self, node: &Node) -> &[u8; KEY] {
        let mut node = node;
        loop {
            match self.leaves_of(node).first() {
                Some(leaf) => return &leaf.key,
                None => node = &self.nodes_of(node)[0],
            }
        }
    }

    /// Leaves in a subtree.
    pub(crate) fn count(&self, child: &Child<KEY, VALUE>) -> usize {
        match child {
            Child::Empty => 0,
            Child::Leaf(_) => 1,
            Child::Node(node) => self.count_node(node),
        }
    }

    fn count_node(&self, node: &Node) -> usize {
        let below: usize = self.nodes_of(node).iter().map(|below| self.count_node(below)).sum();
        node.leaf_slots.count_ones() as usize + below
    }

    /// Any key of the segment, unless it is empty.
    pub(crate) fn any_key(&self) -> Option<&[u8; KEY]> {
        match &self.root {
            Child::Empty => None,
            Child::Leaf(leaf) => Some(&leaf.key),
            Child::Node(node) => Some(self.key_below(node)),
        }
    }

    pub(crate) fn get(&self, key: &[u8; KEY]) -> Option<[u8; VALUE]> {
        let mut node = match &self.root {
            Child::Empty => return None,
            Child::Leaf(leaf) => return (leaf.key == *key).then_some(leaf.value),
            Child::Node(node) => node,
        };
        loop {
            let slot = nibble(key, node.depth());
            if let Some(index) = node.leaf_at(slot) {
                let leaf = self.leaves.get(index);
                return (leaf.key == *key).then_some(leaf.value);
            }
            node = self.nodes.get(node.node_at(slot)?);
        }
    }

    /// The node over these children, or the only child itself, or nothing.
    pub(crate) fn assemble(&mut self, depth: usize, children: &[Child<KEY, VALUE>; FAN_OUT]) -> Child<KEY, VALUE> {
        let (mut nodes, mut leaves) = (Room::new(Node::new(0)), Room::new(Leaf::FILLER));
        for (slot, child) in children.iter().enumerate() {
            match child {
                Child::Empty => {}
                Child::Leaf(leaf) => leaves.push(slot, *leaf),
                Child::Node(node) => nodes.push(slot, *node),
            }
        }
        match (leaves.items(), nodes.items()) {
            ([], []) => Child::Empty,
            ([leaf], []) => Child::Leaf(*leaf),
            ([], [node]) => Child::Node(*node),
            _ => Child::Node(Node {
                nodes: self.nodes.store(nodes.items()),
                leaves: self.leaves.store(leaves.items()),
                node_slots: nodes.slots,
                leaf_slots: leaves.slots,
                ..Node::new(depth)
            }),
        }
    }

    /// Puts a child into a slot of a node, replacing what is there.
    pub(crate) fn insert_child(&mut self, node: &mut Node, slot: usize, child: &Child<KEY, VALUE>) {
        match (child, node.leaf_at(slot), node.node_at(slot)) {
            (Child::Leaf(leaf), Some(index), _) => *self.leaves.get_mut(index) = *leaf,
            (Child::Node(below), _, Some(index)) => *self.nodes.get_mut(index) = *below,
            _ => {
                self.empty(node, slot);
                match child {
                    Child::Empty => {}
                    Child::Leaf(leaf) => {
                        let (count, at) = (node.leaf_slots.count_ones(), Node::rank(node.leaf_slots, slot));
                        node.leaves = self.leaves.grow(node.leaves, count, at, *leaf);
                        node.leaf_slots |= 1 << slot;
                    }
                    Child::Node(below) => {
                        let (count, at) = (node.node_slots.count_ones(), Node::rank(node.node_slots, slot));
                        node.nodes = self.nodes.grow(node.nodes, count, at, *below);
                        node.node_slots |= 1 << slot;
                    }
                }
            }
        }
    }

    fn empty(&mut self, node: &mut Node, slot: usize) {
        if let Some(index) = node.leaf_at(slot) {
            self.leaves.shrink(node.leaves, node.leaf_slots.count_ones(), index - node.leaves);
            node.leaf_slots &= !(1 << slot);
        } else if let Some(index) = node.node_at(slot) {
            self.nodes.shrink(node.nodes, node.node_slots.count_ones(), index - node.nodes);
            node.node_slots &= !(1 << slot);
        }
    }

    /// The node, or its only child, whose block is freed, or nothing.
    pub(crate) fn settled(&mut self, node: Node) -> Child<KEY, VALUE> {
        match (node.node_slots.count_ones(), node.leaf_slots.count_ones()) {
            (0, 0) => Child::Empty,
            (0, 1) => {
                self.leaves.release(node.leaves, 1);
                Child::Leaf(*self.leaves.get(node.leaves))
            }
            (1, 0) => {
                self.nodes.release(node.nodes, 1);
                Child::Node(*self.nodes.get(node.nodes))
            }
            _ => Child::Node(node),
        }
    }

    /// The children of a node, whose blocks are freed.
    pub(crate) fn dissolve(&mut self, node: &Node) -> [Child<KEY, VALUE>; FAN_OUT] {
        let children = std::array::from_fn(|slot| self.child(node, slot));
        self.nodes.release(node.nodes, node.node_slots.count_ones());
        self.leaves.release(node.leaves, node.leaf_slots.count_ones());
        children
    }

    /// Copies a subtree from another arena; digests stay valid.
    pub(crate) fn graft(&mut self, from: &Segment<KEY, VALUE>, child: &Child<KEY, VALUE>) -> Child<KEY, VALUE> {
        match child {
            Child::Empty => Child::Empty,
            Child::Leaf(leaf) => Child::Leaf(*leaf),
            Child::Node(node) => Child::Node(self.graft_node(from, node)),
        }
    }

    fn graft_node(&mut self, from: &Segment<KEY, VALUE>, node: &Node) -> Node {
        let mut nodes = Room::new(Node::new(0));
        for below in from.nodes_of(node) {
            nodes.push(0, self.graft_node(from, below));
        }
        Node { nodes: self.nodes.store(nodes.items()), leaves: self.leaves.store(from.leaves_of(node)), ..*node }
    }

    /// Makes `root` the segment's root, and moves everything to a compact arena if more than a fifth of this one is
    /// unused.
    pub(crate) fn settle(&mut self, root: Child<KEY, VALUE>, len: usize) {
        (self.root, self.len) = (root, len);
        let idle = self.leaves.free_items + self.nodes.free_items;
        let total = self.leaves.items.len() + self.nodes.items.len();
        if idle > 64 && idle > total / 5 {
            *self = self.compacted();
        }
    }

    fn compacted(&self) -> Segment<KEY, VALUE> {
        let mut tight = Segment::default();
        tight.leaves.items.reserve_exact(self.leaves.items.len() - self.leaves.free_items);
        tight.nodes.items.reserve_exact(self.nodes.items.len() - self.nodes.free_items);
        (tight.root, tight.len) = (tight.graft(self, &self.root), self.len);
        tight
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        size_of::<Self>() + self.nodes.allocated_bytes() + self.leaves.allocated_bytes()
    }
}

/// Up to sixteen children of one kind on the way to their block.
struct Room<T> {
    slots: u16,
    count: usize,
    items: [T; FAN_OUT],
}

impl<T: Copy> Room<T> {
    fn new(filler: T) -> Room<T> {
        Room { slots: 0, count: 0, items: [filler; FAN_OUT] }
    }

    fn push(&mut self, slot: usize, item: T) {
        self.slots |= 1 << slot;
        self.items[self.count] = item;
        self.count += 1;
    }

    fn items(&self) -> &[T] {
        &self.items[..self.count]
    }
}

#[cfg(test)]
mod tests;
