//! The tree over the fills of an incarnation: a Merkle mountain range, which grows at its end and is known by its
//! peaks.
//!
//! For each bit of the count, from the highest, there is a perfect tree of that many leaves. The peaks are the roots of
//! these trees. A leaf that is appended makes a tree of one, and trees of equal size are joined.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;

const NODE_CONTEXT: &str = "walras 2026 venue tree node v1";

/// How many fills there are, and the peaks of their tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FillTree {
    count: u64,
    peaks: Vec<Digest>,
}

/// Why a path proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// The tree has no such index.
    #[error("the tree has no fill with this index")]
    NoSuchIndex,
    /// The path is too long, too short, or leads to another peak.
    #[error("the path does not lead from the leaf to a peak of the tree")]
    OtherPeak,
}

fn node(left: &Digest, right: &Digest) -> Digest {
    let mut both = [0; 64];
    both[..32].copy_from_slice(&left.0);
    both[32..].copy_from_slice(&right.0);
    Digest::of(NODE_CONTEXT, &both)
}

impl FillTree {
    /// A tree of this many leaves with these peaks, the highest first; `None` if there are not as many peaks as trees.
    pub fn of(count: u64, peaks: Vec<Digest>) -> Option<FillTree> {
        (peaks.len() == count.count_ones() as usize).then_some(FillTree { count, peaks })
    }

    /// Number of leaves.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The peaks, the highest first.
    pub fn peaks(&self) -> &[Digest] {
        &self.peaks
    }

    /// Appends a leaf; false, and nothing changes, if no count could say so.
    pub fn append(&mut self, leaf: Digest) -> bool {
        let Some(count) = self.count.checked_add(1) else { return false };
        let mut top = leaf;
        for _ in 0..self.count.trailing_ones() {
            let left = self.peaks.pop().expect("a peak for each bit of the count");
            top = node(&left, &top);
        }
        self.peaks.push(top);
        self.count = count;
        true
    }

    /// The peak above an index, with the height of its tree and the index within it.
    fn peak_of(&self, index: u64) -> Option<(&Digest, u32, u64)> {
        let (mut first, mut peaks) = (0u64, self.peaks.iter());
        for height in (0..u64::BITS).rev().filter(|height| self.count >> height & 1 == 1) {
            let peak = peaks.next()?;
            if index - first < 1 << height {
                return Some((peak, height, index - first));
            }
            first += 1 << height;
        }
        None
    }

    /// Checks that `leaf` is at an index, by the siblings on its path, the lowest first.
    ///
    /// # Errors
    /// [`PathFault`] if the path does not prove it.
    pub fn verify(&self, index: u64, leaf: &Digest, path: &[Digest]) -> Result<(), PathFault> {
        let (peak, height, within) = self.peak_of(index).ok_or(PathFault::NoSuchIndex)?;
        if path.len() != height as usize {
            return Err(PathFault::OtherPeak);
        }
        if verify_leaf(within, leaf, path) == *peak { Ok(()) } else { Err(PathFault::OtherPeak) }
    }

    /// The path of an index in the tree over these leaves; `None` if there is no such index.
    pub fn path(leaves: &[Digest], index: u64) -> Option<Vec<Digest>> {
        let mut tree = FillTree::default();
        leaves.iter().all(|leaf| tree.append(*leaf)).then_some(())?;
        let (_, height, within) = tree.peak_of(index)?;
        let first = usize::try_from(index - within).ok()?;
        let mut row = leaves[first..first + (1 << height)].to_vec();
        let mut at = within as usize;
        let mut path = Vec::with_capacity(height as usize);
        while row.len() > 1 {
            path.push(row[at ^ 1]);
            row = row.chunks_exact(2).map(|two| node(&two[0], &two[1])).collect();
            at /= 2;
        }
        Some(path)
    }
}

/// The root of a perfect tree, by a leaf, its index and the siblings on its path, the lowest first.
pub fn verify_leaf(index: u64, leaf: &Digest, path: &[Digest]) -> Digest {
    let join = |(height, below): (u32, Digest), sibling: &Digest| {
        let is_right = index.checked_shr(height).is_some_and(|rest| rest & 1 == 1);
        let above = if is_right { node(sibling, &below) } else { node(&below, sibling) };
        (height + 1, above)
    };
    path.iter().fold((0, *leaf), join).1
}
