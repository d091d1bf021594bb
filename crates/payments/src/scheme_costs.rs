//! What a payment costs under the schemes of §3.3, and the best size of a tree.

use crate::answer::LEAVES_MAX;

/// Measured costs of one hash, one signature and one verification, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeCosts {
    /// One hash of a node: c_h.
    pub hash: u32,
    /// One signature: c_s.
    pub sign: u32,
    /// One verification: c_v.
    pub verify: u32,
}

impl SchemeCosts {
    /// The cost of one payment under the Merkle scheme with 2^`height` leaves, times 2^`height`: the paper's C_merkle.
    fn merkle_times_leaves(&self, quorum: usize, height: u32) -> u128 {
        let [hash, sign, verify, q] = [self.hash.into(), self.sign.into(), self.verify.into(), quorum as u128];
        ((u128::from(height) * q * hash + 2 * hash) << height) + q * verify + sign
    }

    /// The number of leaves, a power of two, at which a payment costs least (§3.3). The paper's closed formula is the
    /// minimum over real numbers; this is the exact one over the trees that exist.
    pub fn best_leaves(&self, quorum: usize) -> usize {
        let top = LEAVES_MAX.ilog2();
        // Each cost is scaled to 2^top leaves, so that integers compare without division.
        let cost = |height: &u32| self.merkle_times_leaves(quorum, *height) << (top - height);
        1 << (0..=top).min_by_key(cost).expect("the range is not empty")
    }

    /// The real minimum of the paper: N = (q c_v + c_s) / (q c_h) · ln 2.
    pub fn optimum(&self, quorum: usize) -> f64 {
        let [hash, sign, verify, q] = [self.hash.into(), self.sign.into(), self.verify.into(), quorum as f64];
        (q * verify + sign) / (q * hash) * std::f64::consts::LN_2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_tree_is_the_papers_and_that_of_this_machine() {
        let paper = SchemeCosts { hash: 1, sign: 63, verify: 107 };
        assert!((paper.optimum(7) - 80.4).abs() < 0.05);
        assert!([64, 128].contains(&paper.best_leaves(7)));
        let here = SchemeCosts { hash: 97, sign: 23_500, verify: 51_000 };
        assert!([256, 512].contains(&here.best_leaves(3)));
    }

    #[test]
    fn extreme_costs_make_a_tree_within_bounds() {
        for (hash, sign, verify) in [(0, 0, 0), (u32::MAX, 0, 0), (0, u32::MAX, u32::MAX), (u32::MAX, 1, u32::MAX)] {
            for quorum in [1, 171] {
                assert!((1..=LEAVES_MAX).contains(&SchemeCosts { hash, sign, verify }.best_leaves(quorum)));
            }
        }
    }
}
