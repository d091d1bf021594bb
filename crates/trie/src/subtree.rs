//! The top of the trie: branches over segments, cut so that threads share nothing.
//!
//! A segment that would exceed [`SPLIT_LEN`] entries is split at its topmost node into up to sixteen. A branch with
//! fewer than [`MERGE_LEN`] entries becomes one segment again. A branch is hashed like any other node of the trie, so
//! the positions of the cuts affect no digest.

use rayon::prelude::*;

use crate::key::{by_nibble, common_nibbles, common_with, nibble};
use crate::segment::{Child, FAN_OUT, Segment};
use crate::{Change, TrieUpdate};

/// The most entries in one segment.
pub(crate) const SPLIT_LEN: usize = 1 << 16;
/// Fewer entries than this are merged into one segment.
const MERGE_LEN: usize = 1 << 13;
/// Batches below this size are not worth waking another thread.
const PARALLEL_LEN: usize = 256;

const _: () = assert!(MERGE_LEN * 2 < SPLIT_LEN && SPLIT_LEN >= 2, "a cut must not be undone at once");

/// A part of the trie; at the top, all of it.
#[derive(Clone, Debug)]
pub(crate) enum Subtree<const KEY: usize, const VALUE: usize> {
    Segment(Box<Segment<KEY, VALUE>>),
    Branch(Box<Branch<KEY, VALUE>>),
}

/// A node over subtrees; outside of updates none is empty and there are at least two.
#[derive(Clone, Debug)]
pub(crate) struct Branch<const KEY: usize, const VALUE: usize> {
    /// Valid only if `fresh`.
    pub(crate) digest: [u8; 32],
    pub(crate) fresh: bool,
    pub(crate) depth: usize,
    len: usize,
    pub(crate) subtrees: [Option<Subtree<KEY, VALUE>>; FAN_OUT],
}

impl<const KEY: usize, const VALUE: usize> Default for Subtree<KEY, VALUE> {
    fn default() -> Self {
        Subtree::Segment(Box::default())
    }
}

impl<const KEY: usize, const VALUE: usize> Subtree<KEY, VALUE> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Subtree::Segment(segment) => segment.len,
            Subtree::Branch(branch) => branch.len,
        }
    }

    pub(crate) fn any_key(&self) -> Option<&[u8; KEY]> {
        match self {
            Subtree::Segment(segment) => segment.any_key(),
            Subtree::Branch(branch) => branch.subtrees.iter().flatten().find_map(Subtree::any_key),
        }
    }

    pub(crate) fn get(&self, key: &[u8; KEY]) -> Option<[u8; VALUE]> {
        let mut at = self;
        loop {
            match at {
                Subtree::Segment(segment) => return segment.get(key),
                Subtree::Branch(branch) => at = branch.subtrees[nibble(key, branch.depth)].as_ref()?,
            }
        }
    }

    pub(crate) fn apply(&mut self, batch: &[Change<KEY, VALUE>]) -> TrieUpdate {
        self.apply_below(0, batch)
    }

    /// Applies a batch whose keys share their first `depth` nibbles with the subtree's.
    fn apply_below(&mut self, depth: usize, batch: &[Change<KEY, VALUE>]) -> TrieUpdate {
        if batch.is_empty() {
            return TrieUpdate::default();
        }
        let mut branch = match std::mem::take(self) {
            Subtree::Segment(mut segment) if segment.len + batch.len() <= SPLIT_LEN => {
                let applied = segment.apply(depth, batch);
                *self = Subtree::Segment(segment);
                return applied;
            }
            Subtree::Segment(segment) => Box::new(split(&segment, batch)),
            Subtree::Branch(branch) => branch,
        };
        let path = *branch.subtrees.iter().flatten().find_map(Subtree::any_key).unwrap_or(&batch[0].0);
        let common = common_with(batch, &path);
        if common < branch.depth {
            branch = Box::new(Branch::over(common, nibble(&path, common), Subtree::Branch(branch)));
        }
        let applied = branch.apply(batch);
        *self = branch.settled();
        applied
    }

    /// Removes every key up to and including `last`; returns their number.
    pub(crate) fn remove_through(&mut self, last: &[u8; KEY]) -> usize {
        let mut branch = match std::mem::take(self) {
            Subtree::Segment(mut segment) => {
                let removed = segment.remove_through(last);
                *self = Subtree::Segment(segment);
                return removed;
            }
            Subtree::Branch(branch) => branch,
        };
        let removed = branch.remove_through(last);
        *self = branch.settled();
        removed
    }

    /// Moves the whole subtree into an arena.
    fn graft_into(&self, segment: &mut Segment<KEY, VALUE>) -> Child<KEY, VALUE> {
        match self {
            Subtree::Segment(from) => segment.graft(from, &from.root),
            Subtree::Branch(branch) => {
                let children = branch.subtrees.each_ref().map(|subtree| match subtree {
                    Some(subtree) => subtree.graft_into(segment),
                    None => Child::Empty,
                });
                match segment.assemble(branch.depth, &children) {
                    Child::Node(mut node) => {
                        (node.digest, node.fresh) = (branch.digest, branch.fresh);
                        Child::Node(node)
                    }
                    other => other,
                }
            }
        }
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        match self {
            Subtree::Segment(segment) => segment.allocated_bytes(),
            Subtree::Branch(branch) => {
                let below: usize = branch.subtrees.iter().flatten().map(Subtree::allocated_bytes).sum();
                size_of::<Branch<KEY, VALUE>>() + below
            }
        }
    }
}

/// Splits a segment at its topmost node, or above it where the keys of the batch diverge from it.
fn split<const KEY: usize, const VALUE: usize>(
    segment: &Segment<KEY, VALUE>,
    batch: &[Change<KEY, VALUE>],
) -> Branch<KEY, VALUE> {
    let last = batch.len() - 1;
    let within_batch = common_nibbles(&batch[0].0, &batch[last].0);
    match &segment.root {
        Child::Empty => Branch::new(within_batch),
        Child::Leaf(leaf) => {
            let depth = common_with(batch, &leaf.key);
            Branch::over(depth, nibble(&leaf.key, depth), whole(segment, &segment.root, 1))
        }
        Child::Node(node) => {
            let mut branch = Branch::new(node.depth());
            (branch.digest, branch.fresh, branch.len) = (node.digest, node.fresh, segment.len);
            for (slot, subtree) in branch.subtrees.iter_mut().enumerate() {
                let child = segment.child(node, slot);
                let len = segment.count(&child);
                *subtree = (len > 0).then(|| whole(segment, &child, len));
            }
            branch
        }
    }
}

/// A separate segment for a part of another.
fn whole<const KEY: usize, const VALUE: usize>(
    from: &Segment<KEY, VALUE>,
    child: &Child<KEY, VALUE>,
    len: usize,
) -> Subtree<KEY, VALUE> {
    let mut segment = Segment::default();
    let root = segment.graft(from, child);
    segment.settle(root, len);
    Subtree::Segment(Box::new(segment))
}

impl<const KEY: usize, const VALUE: usize> Branch<KEY, VALUE> {
    fn new(depth: usize) -> Branch<KEY, VALUE> {
        Branch { digest: [0; 32], fresh: false, depth, len: 0, subtrees: Default::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn over(depth: usize, slot: usize, subtree: Subtree<KEY, VALUE>) -> Branch<KEY, VALUE> {
        let mut branch = Branch::new(depth);
        branch.len = subtree.len();
        branch.subtrees[slot] = Some(subtree);
        branch
    }

    /// Applies a batch whose keys begin with the branch's path.
    fn apply(&mut self, batch: &[Change<KEY, VALUE>]) -> TrieUpdate {
        let mut runs: [&[Change<KEY, VALUE>]; FAN_OUT] = [&[]; FAN_OUT];
        for (slot, run) in by_nibble(batch, self.depth, |change| &change.0) {
            runs[slot] = run;
        }
        let below = self.depth + 1;
        let work = |(subtree, run): (&mut Option<Subtree<KEY, VALUE>>, &[Change<KEY, VALUE>])| {
            let mut part = subtree.take().unwrap_or_default();
            let applied = part.apply_below(below, run);
            *subtree = (part.len() > 0).then_some(part);
            applied
        };
        let add = |mut a: TrieUpdate, b| {
            a += b;
            a
        };
        let applied = if batch.len() < PARALLEL_LEN {
            self.subtrees.iter_mut().zip(runs).map(work).fold(TrieUpdate::default(), add)
        } else {
            self.subtrees.par_iter_mut().zip(runs).with_max_len(1).map(work).reduce(TrieUpdate::default, add)
        };
        self.fresh &= !applied.changed();
        self.len = applied.length(self.len);
        applied
    }

    fn remove_through(&mut self, last: &[u8; KEY]) -> usize {
        let path = self.subtrees.iter().flatten().find_map(Subtree::any_key).expect("a branch is not empty");
        let before = self.len;
        if common_nibbles(path, last) < self.depth {
            if path <= last {
                *self = Branch::new(self.depth);
            }
            return before - self.len;
        }
        let edge = nibble(last, self.depth);
        self.subtrees[..edge].fill_with(|| None);
        if let Some(subtree) = &mut self.subtrees[edge] {
            subtree.remove_through(last);
            self.subtrees[edge].take_if(|subtree| subtree.len() == 0);
        }
        self.len = self.subtrees.iter().flatten().map(Subtree::len).sum();
        self.fresh &= self.len == before;
        before - self.len
    }

    /// The branch, or its smaller form if it has become small.
    fn settled(mut self: Box<Self>) -> Subtree<KEY, VALUE> {
        let mut occupied = self.subtrees.iter_mut().filter(|subtree| subtree.is_some());
        let (first, second) = (occupied.next(), occupied.next().is_some());
        if !second {
            return first.and_then(Option::take).unwrap_or_default();
        }
        if self.len >= MERGE_LEN {
            return Subtree::Branch(self);
        }
        let (mut segment, len) = (Segment::default(), self.len);
        let root = Subtree::Branch(self).graft_into(&mut segment);
        segment.settle(root, len);
        Subtree::Segment(Box::new(segment))
    }
}
