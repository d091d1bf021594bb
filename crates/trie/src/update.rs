//! Batches and prefix removals within one segment.

use crate::key::{by_nibble, common_nibbles, common_with, nibble};
use crate::segment::{Child, FAN_OUT, Leaf, Node, Segment};
use crate::{Change, TrieUpdate};

impl TrieUpdate {
    /// Whether the batch changed anything.
    pub(crate) fn changed(&self) -> bool {
        self.inserted + self.replaced + self.removed > 0
    }

    /// A length after this batch.
    pub(crate) fn length(&self, before: usize) -> usize {
        before + self.inserted - self.removed
    }

    fn found<V: PartialEq>(&mut self, old: &V, new: Option<&V>) {
        match new {
            None => self.removed += 1,
            Some(new) if new == old => self.unchanged += 1,
            Some(_) => self.replaced += 1,
        }
    }

    fn missed<V>(&mut self, new: Option<&V>) {
        match new {
            None => self.absent += 1,
            Some(_) => self.inserted += 1,
        }
    }
}

impl std::ops::AddAssign for TrieUpdate {
    fn add_assign(&mut self, other: TrieUpdate) {
        self.inserted += other.inserted;
        self.replaced += other.replaced;
        self.unchanged += other.unchanged;
        self.removed += other.removed;
        self.absent += other.absent;
    }
}

impl<const KEY: usize, const VALUE: usize> Segment<KEY, VALUE> {
    /// Applies a sorted batch whose keys share their first `depth` nibbles with the segment's.
    pub(crate) fn apply(&mut self, depth: usize, batch: &[Change<KEY, VALUE>]) -> TrieUpdate {
        let mut applied = TrieUpdate::default();
        let root = self.merge(self.root, depth, batch, &mut applied);
        self.settle(root, applied.length(self.len));
        applied
    }

    /// Merges a nonempty batch into the content of a slot; the keys of both share `depth` nibbles.
    fn merge(
        &mut self,
        at: Child<KEY, VALUE>,
        depth: usize,
        batch: &[Change<KEY, VALUE>],
        applied: &mut TrieUpdate,
    ) -> Child<KEY, VALUE> {
        match (at, batch) {
            (Child::Empty, [(key, value)]) => {
                applied.missed(value.as_ref());
                value.map_or(Child::Empty, |value| Child::Leaf(Leaf { key: *key, value }))
            }
            (Child::Leaf(leaf), [(key, value)]) if *key == leaf.key => {
                applied.found(&leaf.value, value.as_ref());
                value.map_or(Child::Empty, |value| Child::Leaf(Leaf { key: *key, value }))
            }
            (Child::Leaf(leaf), [(key, value)]) => {
                applied.missed(value.as_ref());
                value.map_or(at, |value| Child::Node(self.fork(&leaf, &Leaf { key: *key, value })))
            }
            (Child::Empty, _) => self.build(&survivors(None, batch, applied)),
            (Child::Leaf(leaf), _) => self.build(&survivors(Some(leaf), batch, applied)),
            (Child::Node(node), _) => self.merge_node(node, depth, batch, applied),
        }
    }

    fn merge_node(
        &mut self,
        node: Node,
        depth: usize,
        batch: &[Change<KEY, VALUE>],
        applied: &mut TrieUpdate,
    ) -> Child<KEY, VALUE> {
        if node.depth() > depth {
            let path = *self.key_below(&node);
            let common = common_with(batch, &path);
            if common < node.depth() {
                let mut children = [Child::Empty; FAN_OUT];
                children[nibble(&path, common)] = Child::Node(node);
                for (slot, run) in by_nibble(batch, common, |change| &change.0) {
                    children[slot] = self.merge(children[slot], common + 1, run, applied);
                }
                return self.assemble(common, &children);
            }
        }
        self.merge_below(node, batch, applied)
    }

    /// Merges a batch whose keys all begin with the node's path.
    fn merge_below(
        &mut self,
        mut node: Node,
        batch: &[Change<KEY, VALUE>],
        applied: &mut TrieUpdate,
    ) -> Child<KEY, VALUE> {
        let mut tally = TrieUpdate::default();
        for (slot, run) in by_nibble(batch, node.depth(), |change| &change.0) {
            let child = self.merge(self.child(&node, slot), node.depth() + 1, run, &mut tally);
            self.insert_child(&mut node, slot, &child);
        }
        *applied += tally;
        node.fresh &= !tally.changed();
        self.settled(node)
    }

    /// The node over two leaves of different keys.
    fn fork(&mut self, one: &Leaf<KEY, VALUE>, other: &Leaf<KEY, VALUE>) -> Node {
        let depth = common_nibbles(&one.key, &other.key);
        let block = if one.key < other.key { [*one, *other] } else { [*other, *one] };
        let leaf_slots = 1 << nibble(&one.key, depth) | 1 << nibble(&other.key, depth);
        Node { leaves: self.leaves.store(&block), leaf_slots, ..Node::new(depth) }
    }

    /// The subtree of these leaves, given in order.
    fn build(&mut self, leaves: &[Leaf<KEY, VALUE>]) -> Child<KEY, VALUE> {
        let (first, last) = match leaves {
            [] => return Child::Empty,
            [leaf] => return Child::Leaf(*leaf),
            [first, .., last] => (first, last),
        };
        let depth = common_nibbles(&first.key, &last.key);
        let mut children = [Child::Empty; FAN_OUT];
        for (slot, run) in by_nibble(leaves, depth, |leaf| &leaf.key) {
            children[slot] = self.build(run);
        }
        self.assemble(depth, &children)
    }

    /// Removes every key up to and including `last`; returns their number.
    pub(crate) fn remove_through(&mut self, last: &[u8; KEY]) -> usize {
        let mut removed = 0;
        let root = self.cut(self.root, last, &mut removed);
        self.settle(root, self.len - removed);
        removed
    }

    fn cut(&mut self, at: Child<KEY, VALUE>, last: &[u8; KEY], removed: &mut usize) -> Child<KEY, VALUE> {
        match at {
            Child::Empty => Child::Empty,
            Child::Leaf(leaf) if leaf.key > *last => at,
            Child::Leaf(_) => {
                *removed += 1;
                Child::Empty
            }
            Child::Node(node) => self.cut_node(node, last, removed),
        }
    }

    fn cut_node(&mut self, node: Node, last: &[u8; KEY], removed: &mut usize) -> Child<KEY, VALUE> {
        let path = self.key_below(&node);
        if common_nibbles(path, last) < node.depth() {
            // The path determines the order for all keys below.
            if path > last {
                return Child::Node(node);
            }
            *removed += self.release_node(&node);
            return Child::Empty;
        }
        let edge = nibble(last, node.depth());
        let before = *removed;
        let kept = self.cut(self.child(&node, edge), last, removed);
        if *removed == before && (node.node_slots | node.leaf_slots) & ((1 << edge) - 1) == 0 {
            return Child::Node(node);
        }
        let mut children = self.dissolve(&node);
        children[edge] = kept;
        for child in &mut children[..edge] {
            *removed += self.release(child);
            *child = Child::Empty;
        }
        self.assemble(node.depth(), &children)
    }

    /// Frees the space of a subtree; returns the number of its leaves.
    fn release(&mut self, child: &Child<KEY, VALUE>) -> usize {
        match child {
            Child::Empty => 0,
            Child::Leaf(_) => 1,
            Child::Node(node) => self.release_node(node),
        }
    }

    fn release_node(&mut self, node: &Node) -> usize {
        let (nodes, leaves) = (node.node_slots.count_ones(), node.leaf_slots.count_ones());
        let mut count = leaves as usize;
        for index in node.nodes..node.nodes + nodes {
            let below = *self.nodes.get(index);
            count += self.release_node(&below);
        }
        self.nodes.release(node.nodes, nodes);
        self.leaves.release(node.leaves, leaves);
        count
    }
}

/// The rest of a batch and of one leaf after the batch, in order.
fn survivors<const KEY: usize, const VALUE: usize>(
    leaf: Option<Leaf<KEY, VALUE>>,
    batch: &[Change<KEY, VALUE>],
    applied: &mut TrieUpdate,
) -> Vec<Leaf<KEY, VALUE>> {
    let mut survivors = Vec::with_capacity(batch.len() + 1);
    let mut old = leaf;
    for (key, value) in batch {
        if let Some(before) = old.take_if(|old| old.key < *key) {
            survivors.push(before);
        }
        match old.take_if(|old| old.key == *key) {
            Some(same) => applied.found(&same.value, value.as_ref()),
            None => applied.missed(value.as_ref()),
        }
        survivors.extend(value.map(|value| Leaf { key: *key, value }));
    }
    survivors.extend(old);
    survivors
}
