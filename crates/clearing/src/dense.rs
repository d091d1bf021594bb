//! Dense linear systems of flows, solved by elimination without a single subtraction of like numbers.
//!
//! Column k says where a flow goes that x_k drives: to other rows, or to the *ground*, which is the asset whose price
//! is held. So the diagonal is the sum of what leaves, and the matrix is a column diagonally dominant M-matrix.
//! Elimination after Grassmann, Taksar and Heyman (1985) keeps it so: each pivot is summed up from what is left of its
//! column and never found by subtraction. Every pivot has so full relative precision, however many decades the flows
//! span, and no factor exceeds 1. A chain of assets with hardly any volume is solved as well as any other.
//!
//! In a thin book most pairs have no offers, and most cells are zero until elimination fills them. What would subtract
//! zero is left out: that changes no result, to the last bit.

/// A row of which fewer than one in so many cells are filled is subtracted cell by cell; else as a whole, which a
/// processor does several cells at a time.
const THIN: usize = 4;

/// A square matrix of flows, row by row; the diagonal is implied.
#[derive(Clone, Default)]
pub(crate) struct Matrix {
    size: usize,
    /// At row a and column b: what x_b drives to a, as a negative number.
    cells: Vec<f64>,
    /// What each x drives to the ground.
    ground: Vec<f64>,
}

impl Matrix {
    pub(crate) fn zero(size: usize) -> Matrix {
        Matrix { size, cells: vec![0.0; size * size], ground: vec![0.0; size] }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn clear(&mut self) {
        self.cells.fill(0.0);
        self.ground.fill(0.0);
    }

    /// Adds a flow from a to b that grows by `out` with a and falls by `back` with b.
    pub(crate) fn add(&mut self, a: usize, b: usize, out: f64, back: f64) {
        let n = self.size;
        self.cells[a * n + b] -= back;
        self.cells[b * n + a] -= out;
    }

    /// Makes `fixed` the ground, so that x of it is 0.
    pub(crate) fn hold(&mut self, fixed: usize) {
        let n = self.size;
        for other in 0..n {
            self.ground[other] -= self.cells[fixed * n + other];
            self.cells[other * n + fixed] = 0.0;
            self.cells[fixed * n + other] = 0.0;
        }
        self.ground[fixed] = 0.0;
    }

    /// Solves `self · x = right` in place; `right` becomes x. Where nothing depends on x_k, it is 0. An x may overflow
    /// to infinity, or to no number, if flows of less than 10^-290 decide it.
    pub(crate) fn solve(&mut self, right: &mut [f64]) {
        let n = self.size;
        let mut pivots = vec![0.0; n];
        let mut filled = Vec::with_capacity(n);
        // What leaves the next column to rows below it, summed up while those rows are at hand.
        let mut leaves: f64 = self.cells.chunks_exact(n.max(1)).skip(1).map(|row| -row[0]).sum();
        for k in 0..n {
            let (above, below) = self.cells.split_at_mut((k + 1) * n);
            let row = &above[k * n..];
            filled.clear();
            filled.extend((k + 1..n).filter(|column| row[*column] != 0.0));
            let is_thin = filled.len() * THIN < n - k;
            let pivot = self.ground[k] + leaves;
            pivots[k] = pivot;
            let grounded = if pivot > 0.0 { self.ground[k] / pivot } else { 1.0 };
            filled.iter().for_each(|&column| self.ground[column] -= grounded * row[column]);
            leaves = 0.0;
            for (i, other) in below.chunks_exact_mut(n).enumerate() {
                if other[k] != 0.0 && pivot > 0.0 {
                    let factor = other[k] / pivot;
                    if is_thin {
                        filled.iter().for_each(|&column| other[column] -= factor * row[column]);
                    } else {
                        other[k + 1..].iter_mut().zip(&row[k + 1..]).for_each(|(cell, own)| *cell -= factor * own);
                    }
                    right[k + 1 + i] -= factor * right[k];
                }
                if i > 0 {
                    leaves -= other[k + 1];
                }
            }
        }
        for k in (0..n).rev() {
            let row = &self.cells[k * n..(k + 1) * n];
            let known: f64 = row[k + 1..].iter().zip(&right[k + 1..]).map(|(cell, x)| cell * x).sum();
            right[k] = if pivots[k] > 0.0 { (right[k] - known) / pivots[k] } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What all flows at `x` sum up to for every asset.
    fn flows(edges: &[(usize, usize, f64, f64)], x: &[f64]) -> Vec<f64> {
        let mut result = vec![0.0; x.len()];
        for &(a, b, out, back) in edges {
            let flow = out * x[a] - back * x[b];
            (result[a], result[b]) = (result[a] + flow, result[b] - flow);
        }
        result
    }

    #[test]
    fn solves_a_known_system() {
        let edges = [(0, 1, 4.0, 1.0), (1, 2, 2.0, 5.0), (2, 3, 6.0, 0.5), (3, 0, 1.0, 1.0)];
        let x = [1.0, -2.0, 3.0, 0.0];
        let mut matrix = Matrix::zero(4);
        edges.iter().for_each(|&(a, b, out, back)| matrix.add(a, b, out, back));
        let mut right = flows(&edges, &x);
        matrix.hold(3);
        matrix.solve(&mut right);
        right.iter().zip(x).for_each(|(got, want)| assert!((got - want).abs() < 1e-14));
    }

    #[test]
    fn leaves_alone_what_nothing_decides() {
        let mut matrix = Matrix::zero(3);
        matrix.add(1, 2, 2.0, 0.0);
        let mut right = [3.0, 4.0, 0.0];
        matrix.hold(2);
        matrix.solve(&mut right);
        assert_eq!(right, [0.0, 2.0, 0.0]);
    }

    /// A tower of 38 assets, each of which passes on to the one below a hundred millionth of what comes back from
    /// there: a pivot that is found by subtraction has no digit left here.
    #[test]
    fn a_tower_keeps_every_digit() {
        const HEIGHT: usize = 38;
        let mut matrix = Matrix::zero(HEIGHT);
        (1..HEIGHT).for_each(|at| matrix.add(at, at - 1, 1e-8, 1.0));
        matrix.hold(0);
        let mut right = vec![0.0; HEIGHT];
        right[HEIGHT - 1] = 1.0;
        matrix.solve(&mut right);
        let mut below = 0.0;
        for x in &right[1..] {
            // One unit flows down everywhere.
            let want = (1.0 + below) * 1e8;
            assert!((x / want - 1.0).abs() < 1e-12, "{x:e} {want:e}");
            below = want;
        }
    }
}
