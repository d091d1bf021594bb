//! The linear system of a part: dense for most parts, sparse for very large ones.

use crate::dense::Matrix;
use crate::market::Part;
use crate::sparse::Sparse;

/// Parts with more assets than this have a sparse system: the cost of elimination grows with the cube of their
/// number.
const MOST_DENSE: usize = 400;

/// A matrix over the assets of a part.
pub(crate) enum System {
    Dense(Matrix),
    Sparse(Sparse),
}

impl System {
    /// The zero matrix with cells for the pairs of `part`.
    pub(crate) fn new(part: &Part) -> System {
        let size = part.assets.len();
        if size <= MOST_DENSE {
            return System::Dense(Matrix::zero(size));
        }
        let pairs: Vec<(u32, u32)> = part.pairs.iter().map(|pair| (pair.sell, pair.buy)).collect();
        System::Sparse(Sparse::zero(size, &pairs))
    }

    /// The cost of the last solution, in looks at a pair.
    pub(crate) fn spent(&self) -> u64 {
        match self {
            System::Dense(matrix) => matrix.spent(),
            System::Sparse(matrix) => matrix.spent(),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            System::Dense(matrix) => matrix.clear(),
            System::Sparse(matrix) => matrix.clear(),
        }
    }

    /// Adds the pair at position `pair` of the part, which sells `sell` for `buy`: `out` is the growth of its flow
    /// with the price of `sell`, and `back` its fall with the price of `buy`.
    pub(crate) fn add(&mut self, pair: usize, sell: usize, buy: usize, out: f64, back: f64) {
        match self {
            System::Dense(matrix) => matrix.add(sell, buy, out, back),
            System::Sparse(matrix) => matrix.add(pair, out, back),
        }
    }

    /// Solves for `right`, which becomes the solution; that of the asset `fixed` is 0. Returns false if some value of
    /// the solution is not finite.
    pub(crate) fn solve(&mut self, right: &mut [f64], fixed: usize) -> bool {
        match self {
            System::Dense(matrix) => {
                matrix.hold(fixed);
                matrix.solve(right);
                right[fixed] = 0.0;
            }
            System::Sparse(matrix) => matrix.solve(right, fixed),
        }
        right.iter().all(|x| x.is_finite())
    }
}
