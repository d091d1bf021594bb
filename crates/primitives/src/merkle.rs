//! Binary Merkle trees: leaves 0x00, nodes 0x01, the last node of an odd level promoted unchanged.
//!
//! The tag is part of BLAKE3's key instead of a prefix, so that a node hashes one block of 64 bytes and not 65.
//! Length and sides of a path follow from the size of the tree and the index of the leaf; none of it can be chosen.
//!
//! Whoever has many things to say at once signs the root of their tree once (Accept, section 3.2): members of the
//! payment lane do, and venues.

use std::sync::LazyLock;

use crate::Digest;

/// The content of a tree. Trees of different families share no hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Digests that a member of the payment lane signs.
    LaneSigned,
    /// Outputs of one payment of the lane.
    LaneOutputs,
    /// Reports of fills of one step of a venue.
    VenueReports,
    /// Orders for a venue that a trading key signs together.
    VenueOrders,
}

impl Family {
    /// The most leaves of one tree.
    pub const fn leaves_max(self) -> usize {
        match self {
            Family::LaneSigned | Family::LaneOutputs => 1 << 12,
            Family::VenueReports => 1 << 20,
            Family::VenueOrders => 1 << 6,
        }
    }
}

const LEAF: u8 = 0x00;
const NODE: u8 = 0x01;

fn key(family: Family, tag: u8) -> &'static [u8; 32] {
    static KEYS: LazyLock<[[[u8; 32]; 2]; 4]> = LazyLock::new(|| {
        let contexts = [
            "walras 2026 lane signed tree v1",
            "walras 2026 lane outputs tree v1",
            "walras 2026 venue reports tree v1",
            "walras 2026 venue orders tree v1",
        ];
        contexts.map(|context| [LEAF, NODE].map(|tag| blake3::derive_key(context, &[tag])))
    });
    &KEYS[family as usize][usize::from(tag)]
}

/// The hash of a leaf.
pub fn leaf(family: Family, bytes: &[u8]) -> Digest {
    Digest(*blake3::keyed_hash(key(family, LEAF), bytes).as_bytes())
}

fn node(family: Family, left: &Digest, right: &Digest) -> Digest {
    let mut block = [0; 64];
    block[..32].copy_from_slice(&left.0);
    block[32..].copy_from_slice(&right.0);
    Digest(*blake3::keyed_hash(key(family, NODE), &block).as_bytes())
}

/// All levels of a tree, from the leaves to the root.
#[derive(Clone, Debug)]
pub struct Tree(Vec<Vec<Digest>>);

impl Tree {
    /// The tree over hashed leaves.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(family: Family, leaves: Vec<Digest>) -> Tree {
        assert!(!leaves.is_empty(), "a tree has leaves");
        let mut levels = vec![leaves];
        while let Some(level) = levels.last().filter(|level| level.len() > 1) {
            let pair = |pair: &[Digest]| match pair {
                [left, right] => node(family, left, right),
                promoted => promoted[0],
            };
            levels.push(level.chunks(2).map(pair).collect());
        }
        Tree(levels)
    }

    /// Its root.
    pub fn root(&self) -> Digest {
        self.0.last().expect("a tree has a root")[0]
    }

    /// The siblings on the path of a leaf, the lowest first.
    pub fn path(&self, index: usize) -> Vec<Digest> {
        let sibling = |(height, level): (usize, &Vec<Digest>)| level.get((index >> height) ^ 1).copied();
        self.0.iter().enumerate().filter_map(sibling).collect()
    }
}

/// The number of digests in the path of a leaf; `None` if the tree has no such leaf.
pub fn path_length(family: Family, size: usize, index: usize) -> Option<usize> {
    (index < size && size <= family.leaves_max()).then(|| siblings(size, index).flatten().count())
}

/// For each level below the root: whether the sibling is on the left (`true`), on the right, or missing.
fn siblings(size: usize, index: usize) -> impl Iterator<Item = Option<bool>> {
    let levels = size.next_power_of_two().trailing_zeros();
    (0..levels).map(move |height| {
        let (count, place) = (size.div_ceil(1 << height), index >> height);
        (place ^ 1 < count).then_some(place & 1 == 1)
    })
}

/// The root computed from a leaf and its path; `None` if the path does not fit.
pub fn root_of(family: Family, leaf: Digest, size: usize, index: usize, path: &[Digest]) -> Option<Digest> {
    if path_length(family, size, index)? != path.len() {
        return None;
    }
    let join = |hash: Digest, (left, sibling): (bool, &Digest)| match left {
        true => node(family, sibling, &hash),
        false => node(family, &hash, sibling),
    };
    Some(siblings(size, index).flatten().zip(path).fold(leaf, join))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(size: usize) -> Vec<Digest> {
        (0..size).map(|i| leaf(Family::LaneSigned, &i.to_le_bytes())).collect()
    }

    #[test]
    fn every_path_of_every_small_tree_leads_to_the_root() {
        for size in 1..=70 {
            let tree = Tree::new(Family::LaneSigned, leaves(size));
            for (index, leaf) in leaves(size).into_iter().enumerate() {
                let path = tree.path(index);
                assert_eq!(
                    root_of(Family::LaneSigned, leaf, size, index, &path),
                    Some(tree.root()),
                    "{index} of {size}"
                );
                assert_ne!(
                    root_of(Family::LaneOutputs, leaf, size, index, &path),
                    Some(tree.root()).filter(|_| size > 1)
                );
            }
        }
    }

    #[test]
    fn a_path_of_another_place_or_length_does_not_lead_to_the_root() {
        for size in 2..=20 {
            let tree = Tree::new(Family::LaneSigned, leaves(size));
            for index in 0..size {
                let (leaf, path) = (leaves(size)[index], tree.path(index));
                for other in (0..size).filter(|other| *other != index) {
                    assert_ne!(root_of(Family::LaneSigned, leaf, size, other, &path), Some(tree.root()));
                }
                assert_eq!(root_of(Family::LaneSigned, leaf, size, index, &path[1..]), None);
                assert_eq!(root_of(Family::LaneSigned, leaf, size, index, &[path.clone(), vec![leaf]].concat()), None);
            }
            assert_eq!(root_of(Family::LaneSigned, tree.root(), size, size, &[]), None);
        }
        for family in [Family::LaneSigned, Family::LaneOutputs, Family::VenueReports, Family::VenueOrders] {
            let (most, longest) = (family.leaves_max(), family.leaves_max().ilog2() as usize);
            assert_eq!(path_length(family, most, 0), Some(longest));
            assert_eq!(path_length(family, most + 1, 0), None);
            assert_eq!(path_length(family, usize::MAX, 0), None);
        }
    }

    #[test]
    fn a_node_is_no_leaf() {
        let [left, right] = [leaves(2)[0], leaves(2)[1]];
        assert_ne!(node(Family::LaneSigned, &left, &right), leaf(Family::LaneSigned, &[left.0, right.0].concat()));
    }
}
