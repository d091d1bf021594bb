//! Entries in the order of keys.

use std::ops::{Bound, RangeBounds};

use crate::cursor::At;
use crate::key::{common_nibbles, nibble};
use crate::segment::{FAN_OUT, Leaf};
use crate::subtree::Subtree;

/// Entries of a trie in the order of keys; see [`crate::Trie::range`].
pub struct Iter<'a, const KEY: usize, const VALUE: usize> {
    /// The remaining work, the next item at the end: nodes in progress, and the slot to continue with.
    stack: Vec<(At<'a, KEY, VALUE>, usize)>,
    end: Bound<[u8; KEY]>,
}

impl<'a, const KEY: usize, const VALUE: usize> Iter<'a, KEY, VALUE> {
    pub(crate) fn new(top: &'a Subtree<KEY, VALUE>, range: impl RangeBounds<[u8; KEY]>) -> Self {
        let mut iter = Iter { stack: Vec::new(), end: range.end_bound().cloned() };
        let Some(top) = At::of_subtree(top) else { return iter };
        match range.start_bound() {
            Bound::Unbounded => iter.stack.push((top, 0)),
            Bound::Included(start) => iter.seek(top, start),
            Bound::Excluded(start) => {
                iter.seek(top, start);
                if let Some((At::Leaf(leaf), _)) = iter.stack.last()
                    && leaf.key == *start
                {
                    iter.stack.pop();
                }
            }
        }
        iter
    }

    /// Pushes the part that begins at the first key not before `start`.
    fn seek(&mut self, top: At<'a, KEY, VALUE>, start: &[u8; KEY]) {
        let mut next = Some(top);
        while let Some(at) = next.take() {
            let path = at.key_below();
            if common_nibbles(path, start) < at.depth() {
                // The path determines the order for all keys below.
                if path > start {
                    self.stack.push((at, 0));
                }
            } else if let At::Leaf(_) = at {
                self.stack.push((at, 0));
            } else {
                let slot = nibble(start, at.depth());
                next = at.child(slot);
                self.stack.push((at, slot + 1));
            }
        }
    }

    fn next_leaf(&mut self) -> Option<&'a Leaf<KEY, VALUE>> {
        loop {
            let (at, slot) = self.stack.last_mut()?;
            if let At::Leaf(leaf) = *at {
                self.stack.pop();
                return Some(leaf);
            }
            let Some((found, child)) = (*slot..FAN_OUT).find_map(|slot| Some((slot, at.child(slot)?))) else {
                self.stack.pop();
                continue;
            };
            *slot = found + 1;
            self.stack.push((child, 0));
        }
    }
}

impl<'a, const KEY: usize, const VALUE: usize> Iterator for Iter<'a, KEY, VALUE> {
    type Item = (&'a [u8; KEY], &'a [u8; VALUE]);

    fn next(&mut self) -> Option<Self::Item> {
        let leaf = self.next_leaf()?;
        let within = match &self.end {
            Bound::Unbounded => true,
            Bound::Included(end) => leaf.key <= *end,
            Bound::Excluded(end) => leaf.key < *end,
        };
        if !within {
            self.stack.clear();
            return None;
        }
        Some((&leaf.key, &leaf.value))
    }
}
