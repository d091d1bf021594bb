//! The arena's own invariants, which no root would show: a lost block is memory that never comes back, and a block
//! that two nodes share is a wrong value later.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::Change;
use crate::key::common_nibbles;

type Small = Segment<3, 4>;

/// What a segment's nodes refer to: starts and lengths of blocks, and the keys in order.
#[derive(Default)]
struct Walk {
    nodes: Vec<(u32, u32)>,
    leaves: Vec<(u32, u32)>,
    keys: Vec<[u8; 3]>,
}

impl Walk {
    fn of(segment: &Small) -> Walk {
        let mut walk = Walk::default();
        walk.visit(segment, &segment.root, 0);
        walk
    }

    /// Visits a slot's content, whose keys share at least `depth` nibbles.
    fn visit(&mut self, segment: &Small, child: &Child<3, 4>, depth: usize) {
        let node = match child {
            Child::Empty => return,
            Child::Leaf(leaf) => return self.keys.push(leaf.key),
            Child::Node(node) => node,
        };
        assert!(node.depth() >= depth, "a node lies below its parent's slot");
        assert_eq!(node.node_slots & node.leaf_slots, 0, "a slot holds one thing");
        let (nodes, leaves) = (node.node_slots.count_ones(), node.leaf_slots.count_ones());
        assert!(nodes + leaves >= 2, "a node is a place where keys diverge");
        self.nodes.extend((nodes > 0).then_some((node.nodes, nodes)));
        self.leaves.extend((leaves > 0).then_some((node.leaves, leaves)));
        let first = self.keys.len();
        for slot in 0..FAN_OUT {
            let before = self.keys.len();
            self.visit(segment, &segment.child(node, slot), node.depth() + 1);
            for key in &self.keys[before..] {
                assert_eq!(nibble(key, node.depth()), slot, "a key lies in its slot");
            }
        }
        for key in &self.keys[first..] {
            assert!(common_nibbles(key, &self.keys[first]) >= node.depth(), "all keys share the node's path");
        }
    }
}

/// Every item belongs to exactly one block, which is in use or free.
fn accounted<T: Copy>(blocks: &Blocks<T>, used: &[(u32, u32)]) {
    let mut seen = BTreeSet::new();
    let free = blocks.free.iter().zip(1..).flat_map(|(starts, size)| starts.iter().map(move |start| (*start, size)));
    let free: Vec<(u32, u32)> = free.collect();
    assert_eq!(free.iter().map(|(_, size)| *size as usize).sum::<usize>(), blocks.free_items);
    for (start, size) in used.iter().chain(&free) {
        for item in *start..start + size {
            assert!(seen.insert(item), "item {item} belongs to two blocks");
        }
    }
    assert!(seen.iter().copied().eq(0..u32::try_from(blocks.items.len()).expect("few")), "an item is lost");
}

fn sound(segment: &Small, model: &BTreeMap<[u8; 3], [u8; 4]>) {
    let walk = Walk::of(segment);
    assert!(walk.keys.iter().eq(model.keys()));
    assert_eq!(segment.len, model.len());
    accounted(&segment.nodes, &walk.nodes);
    accounted(&segment.leaves, &walk.leaves);
    for (key, value) in model {
        assert_eq!(segment.get(key), Some(*value));
    }
}

fn key() -> impl Strategy<Value = [u8; 3]> {
    let byte = prop_oneof![3 => 0x10u8..0x18, 1 => any::<u8>()];
    [byte.clone(), byte.clone(), byte]
}

proptest! {
    #[test]
    fn every_block_of_a_segment_is_used_once_or_free(
        batches in proptest::collection::vec(
            (proptest::collection::btree_map(key(), proptest::option::of(any::<[u8; 4]>()), 1..60), key(), 0u8..4),
            1..12,
        )
    ) {
        let (mut segment, mut model) = (Small::default(), BTreeMap::new());
        for (batch, cut, dice) in batches {
            let batch: Vec<Change<3, 4>> = batch.into_iter().collect();
            segment.apply(0, &batch);
            for (key, value) in batch {
                match value {
                    Some(value) => model.insert(key, value),
                    None => model.remove(&key),
                };
            }
            sound(&segment, &model);
            if dice == 0 {
                let before = model.len();
                model.retain(|key, _| *key > cut);
                assert_eq!(segment.remove_through(&cut), before - model.len());
                sound(&segment, &model);
            }
        }
    }

    /// Blocks alone, as nodes use them: stored, grown, shrunk and freed in any order, next to a list of vectors.
    #[test]
    fn blocks_keep_their_items(steps in proptest::collection::vec((0u8..4, any::<u16>(), any::<u8>()), 1..200)) {
        let (mut blocks, mut model) = (Blocks::<u8>::default(), Vec::<(u32, Vec<u8>)>::new());
        for (step, at, item) in steps {
            let chosen = usize::from(at) % model.len().max(1);
            match (step, model.get_mut(chosen)) {
                (0, _) | (_, None) => {
                    let items = vec![item; 1 + usize::from(at) % FAN_OUT];
                    model.push((blocks.store(&items), items));
                }
                (1, Some((start, items))) if items.len() < FAN_OUT => {
                    let place = usize::from(item) % (items.len() + 1);
                    *start = blocks.grow(*start, items.len() as u32, place as u32, item);
                    items.insert(place, item);
                }
                (2, Some((start, items))) if items.len() > 1 => {
                    let place = usize::from(item) % items.len();
                    blocks.shrink(*start, items.len() as u32, place as u32);
                    items.remove(place);
                }
                (_, Some(_)) => {
                    let (start, items) = model.swap_remove(chosen);
                    blocks.release(start, items.len() as u32);
                }
            }
            for (start, items) in &model {
                prop_assert_eq!(blocks.block(*start, items.len() as u32), items.as_slice());
            }
            accounted(&blocks, &model.iter().map(|(start, items)| (*start, items.len() as u32)).collect::<Vec<_>>());
        }
    }
}

/// Churn that leaves few entries leaves little memory: a segment moves to a compact arena.
#[test]
fn a_segment_that_empties_gives_its_memory_back() {
    let batch: Vec<Change<3, 4>> = (0..40_000u32).map(|i| (split(i), Some([1; 4]))).collect();
    let mut segment = Small::default();
    segment.apply(0, &batch);
    let full = segment.allocated_bytes();
    let gone: Vec<Change<3, 4>> = batch.iter().skip(400).map(|(key, _)| (*key, None)).collect();
    segment.apply(0, &gone);
    assert!(segment.allocated_bytes() < full / 20, "{} of {full}", segment.allocated_bytes());
    sound(&segment, &batch[..400].iter().map(|(key, _)| (*key, [1; 4])).collect());
    assert_eq!(segment.remove_through(&[0xff; 3]), 400);
    sound(&segment, &BTreeMap::new());
}

fn split(i: u32) -> [u8; 3] {
    let [_, bytes @ ..] = (i * 7).to_be_bytes();
    bytes
}
