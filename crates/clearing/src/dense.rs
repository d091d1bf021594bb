//! Dense linear systems of flows, solved by elimination without subtracting nearly equal numbers.
//!
//! Column k lists the targets of the flow that x_k drives: other rows, or the *ground*, which is the asset whose
//! price is fixed. So the diagonal is the sum of the outflows, and the matrix is a column diagonally dominant
//! M-matrix. Elimination after Grassmann, Taksar and Heyman (1985) keeps it so: each pivot is the sum of the rest of
//! its column and never the result of a subtraction. So every pivot has full relative precision, however many decades
//! the flows span, and no factor exceeds 1. A chain of assets with hardly any volume is solved as accurately as any
//! other.
//!
//! [`WIDTH`] columns are eliminated at a time. First they are copied and eliminated among themselves, which gives their
//! pivots and factors. Then their rows are finished. Then all of them are subtracted from the other rows, eight cells
//! at a time in registers. The same products are subtracted from a cell in the same order as in elimination column by
//! column, so that the solution is the same to the last bit, in a fraction of the time.
//!
//! In a thin book most pairs have no offers, and most cells are zero until elimination fills them. Thin columns are
//! eliminated one by one and cell by cell, and rows and tiles that are all zero are skipped: that changes no result
//! either, as no cell is ever −0.

use std::ops::Range;

/// Number of columns eliminated together, and of cells of a row kept in registers.
const WIDTH: usize = 8;

/// A block of columns is thin if fewer than one in this many cells is filled.
const THIN: usize = 4;

/// Number of cells subtracted for the cost of one look at a pair: in tiles, and one by one.
const TILED: usize = 85;
const SINGLE: usize = 8;

/// Adjacent cells.
type Cells = [f64; WIDTH];

/// A square matrix of flows, row by row; the diagonal is implied.
#[derive(Clone, Default)]
pub(crate) struct Matrix {
    size: usize,
    /// The length of a row: the size, rounded up to whole tiles. Cells beyond the size stay zero.
    stride: usize,
    /// At row a and column b: the flow that x_b drives to a, as a negative number.
    cells: Vec<f64>,
    /// The flow that each x drives to the ground.
    ground: Vec<f64>,
    /// The cost of the last solution, in looks at a pair.
    spent: u64,
}

/// Columns that are eliminated together, by column: below the diagonal the factors of rows, once they are known.
struct Panel {
    columns: Vec<Vec<f64>>,
    /// The share of each column's pivot that goes to the ground.
    grounded: Cells,
}

impl Matrix {
    pub(crate) fn zero(size: usize) -> Matrix {
        let stride = size.next_multiple_of(WIDTH);
        Matrix { size, stride, cells: vec![0.0; size * stride], ground: vec![0.0; stride], spent: 0 }
    }

    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    pub(crate) fn clear(&mut self) {
        self.cells.fill(0.0);
        self.ground.fill(0.0);
    }

    /// Adds a flow from a to b that grows by `out` with a and falls by `back` with b.
    pub(crate) fn add(&mut self, a: usize, b: usize, out: f64, back: f64) {
        self.cells[a * self.stride + b] -= back;
        self.cells[b * self.stride + a] -= out;
    }

    /// Makes `fixed` the ground, so that its x is 0.
    pub(crate) fn hold(&mut self, fixed: usize) {
        let stride = self.stride;
        for other in 0..self.size {
            self.ground[other] -= self.cells[fixed * stride + other];
            self.cells[other * stride + fixed] = 0.0;
            self.cells[fixed * stride + other] = 0.0;
        }
        self.ground[fixed] = 0.0;
    }

    /// Solves `self · x = right` in place; `right` becomes x. If nothing depends on x_k, it is 0. An x may overflow
    /// to infinity, or become NaN, if flows of less than 10^-290 determine it.
    pub(crate) fn solve(&mut self, right: &mut [f64]) {
        let (n, stride) = (self.size, self.stride);
        // The cost of filling the matrix.
        self.spent = (n * n / 16) as u64;
        let mut pivots = vec![0.0; n];
        let mut panel = Panel { columns: vec![vec![0.0; n]; WIDTH], grounded: [0.0; WIDTH] };
        for first in (0..n).step_by(WIDTH) {
            let block = first..(first + WIDTH).min(n);
            if self.is_thin(&block) {
                block.for_each(|k| pivots[k] = self.eliminate(k, right));
                continue;
            }
            self.spent += (WIDTH * (n - first).pow(2) / TILED) as u64;
            self.eliminate_among_themselves(block.clone(), &mut panel, &mut pivots, right);
            if block.end < n {
                self.finish_rows(block.clone(), &panel);
                self.subtract(block, &panel);
            }
        }
        for k in (0..n).rev() {
            let row = &self.cells[k * stride..k * stride + n];
            let known: f64 = row[k + 1..].iter().zip(&right[k + 1..]).map(|(cell, x)| cell * x).sum();
            right[k] = if pivots[k] > 0.0 { (right[k] - known) / pivots[k] } else { 0.0 };
        }
    }

    /// Whether few cells of these columns are filled, from the diagonal down.
    fn is_thin(&self, block: &Range<usize>) -> bool {
        let rows = self.cells.chunks_exact(self.stride).skip(block.start);
        let filled: usize = rows.map(|row| row[block.clone()].iter().filter(|cell| **cell != 0.0).count()).sum();
        filled * THIN < (self.size - block.start) * block.len()
    }

    /// Eliminates one column alone, and returns its pivot.
    fn eliminate(&mut self, k: usize, right: &mut [f64]) -> f64 {
        let (n, stride) = (self.size, self.stride);
        let (above, below) = self.cells.split_at_mut((k + 1) * stride);
        let row = &above[k * stride..];
        let leaves = below.chunks_exact(stride).fold(0.0, |sum, other| sum - other[k]);
        let pivot = self.ground[k] + leaves;
        let grounded = if pivot > 0.0 { self.ground[k] / pivot } else { 1.0 };
        let filled: Vec<usize> = (k + 1..n).filter(|column| row[*column] != 0.0).collect();
        filled.iter().for_each(|&column| self.ground[column] -= grounded * row[column]);
        let mut subtracted = 0;
        for (i, other) in below.chunks_exact_mut(stride).enumerate() {
            if other[k] != 0.0 && pivot > 0.0 {
                let factor = other[k] / pivot;
                filled.iter().for_each(|&column| other[column] -= factor * row[column]);
                subtracted += filled.len();
                right[k + 1 + i] -= factor * right[k];
            }
        }
        self.spent += (subtracted / SINGLE) as u64;
        pivot
    }

    /// Copies the columns of `block` into `panel` and eliminates them there, together with `right`.
    fn eliminate_among_themselves(
        &mut self,
        block: Range<usize>,
        panel: &mut Panel,
        pivots: &mut [f64],
        right: &mut [f64],
    ) {
        let (n, stride, first) = (self.size, self.stride, block.start);
        for row in first..n {
            let cells = &self.cells[row * stride + first..row * stride + block.end];
            panel.columns.iter_mut().zip(cells).for_each(|(column, cell)| column[row] = *cell);
        }
        for k in block.clone() {
            let (own, later) = panel.columns[k - first..block.len()].split_first_mut().expect("a column");
            let below = &mut own[k + 1..n];
            let leaves = below.iter().fold(0.0, |sum, cell| sum - cell);
            let pivot = self.ground[k] + leaves;
            let grounded = if pivot > 0.0 { self.ground[k] / pivot } else { 1.0 };
            (pivots[k], panel.grounded[k - first]) = (pivot, grounded);
            // Without outflow there is nothing to subtract either.
            if leaves > 0.0 {
                below.iter_mut().for_each(|cell| *cell /= pivot);
            }
            for (column, other) in (k + 1..).zip(later) {
                let cell = other[k];
                self.ground[column] -= grounded * cell;
                // The row is finished here.
                self.cells[k * stride + column] = cell;
                subtract_scaled(&mut other[k + 1..n], cell, below);
            }
            let (done, rest) = right.split_at_mut(k + 1);
            subtract_scaled(rest, done[k], below);
        }
    }

    /// Subtracts the rows of `block` from each other, to the right of it, and updates the ground.
    fn finish_rows(&mut self, block: Range<usize>, panel: &Panel) {
        let Range { start: first, end } = block;
        for k in block {
            let (before, row) = self.cells.split_at_mut(k * self.stride);
            let row = &mut row[end..self.stride];
            for (j, column) in (first..k).zip(&panel.columns) {
                subtract_scaled(row, column[k], &before[j * self.stride + end..(j + 1) * self.stride]);
            }
            subtract_scaled(&mut self.ground[end..], panel.grounded[k - first], row);
        }
    }

    /// Subtracts the finished rows of `block` from those below it.
    fn subtract(&mut self, block: Range<usize>, panel: &Panel) {
        let Range { start: first, end } = block;
        let (above, below) = self.cells.split_at_mut(end * self.stride);
        // The tiles of the finished rows that are not all zero, and their positions.
        let cells = |row: usize, at: usize| -> &Cells {
            above[row * self.stride + at..].first_chunk().expect("rows are of whole tiles")
        };
        let tile = |at: usize| -> [Cells; WIDTH] { std::array::from_fn(|k| *cells(first + k, at)) };
        let tiles = (end..self.stride).step_by(WIDTH).map(|at| (at, tile(at)));
        let tiles: Vec<(usize, [Cells; WIDTH])> =
            tiles.filter(|(_, tile)| tile.as_flattened().iter().any(|cell| *cell != 0.0)).collect();
        for (row, cells) in (end..self.size).zip(below.chunks_exact_mut(self.stride)) {
            let factors: Cells = std::array::from_fn(|k| panel.columns[k][row]);
            if factors.iter().all(|factor| *factor == 0.0) {
                continue;
            }
            for (at, tile) in &tiles {
                let own: &mut Cells = cells[*at..].first_chunk_mut().expect("rows are of whole tiles");
                let mut rest = *own;
                for (factor, row) in factors.iter().zip(tile) {
                    rest.iter_mut().zip(row).for_each(|(cell, own)| *cell -= factor * own);
                }
                *own = rest;
            }
        }
    }
}

fn subtract_scaled(from: &mut [f64], factor: f64, other: &[f64]) {
    if factor != 0.0 {
        from.iter_mut().zip(other).for_each(|(from, other)| *from -= factor * other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::Dice;

    /// The sum of all flows at `x` for every asset.
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

    /// A tower of 38 assets, each of which passes on to the one below a hundred-millionth of what comes back from
    /// there: a pivot found by subtraction would have no correct digit.
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
            // One unit flows down at every level.
            let want = (1.0 + below) * 1e8;
            assert!((x / want - 1.0).abs() < 1e-12, "{x:e} {want:e}");
            below = want;
        }
    }

    impl Matrix {
        /// The same solution, column by column.
        fn solve_plainly(&mut self, right: &mut [f64]) {
            let (n, stride) = (self.size, self.stride);
            let mut pivots = vec![0.0; n];
            for k in 0..n {
                let (above, below) = self.cells.split_at_mut((k + 1) * stride);
                let row = &above[k * stride..];
                let leaves = below.chunks_exact(stride).fold(0.0, |sum, other| sum - other[k]);
                let pivot = self.ground[k] + leaves;
                pivots[k] = pivot;
                let grounded = if pivot > 0.0 { self.ground[k] / pivot } else { 1.0 };
                for column in (k + 1..n).filter(|column| row[*column] != 0.0) {
                    self.ground[column] -= grounded * row[column];
                }
                for (i, other) in below.chunks_exact_mut(stride).enumerate() {
                    if other[k] != 0.0 && pivot > 0.0 {
                        let factor = other[k] / pivot;
                        (k + 1..n).for_each(|column| other[column] -= factor * row[column]);
                        right[k + 1 + i] -= factor * right[k];
                    }
                }
            }
            for k in (0..n).rev() {
                let row = &self.cells[k * stride..k * stride + n];
                let known: f64 = row[k + 1..].iter().zip(&right[k + 1..]).map(|(cell, x)| cell * x).sum();
                right[k] = if pivots[k] > 0.0 { (right[k] - known) / pivots[k] } else { 0.0 };
            }
        }
    }

    /// Matrices of every size around whole blocks, thin and full, over many decades, with assets that nothing depends
    /// on.
    #[test]
    fn blocks_change_no_bit() {
        let mut random = Dice::new(5);
        for size in 1..60 {
            for edges in [size, 3 * size, size * size] {
                let mut matrix = Matrix::zero(size);
                for _ in 0..edges {
                    let mut asset = || random.below(size as u64) as usize;
                    let (a, b) = (asset(), asset());
                    let mut flow = || if random.below(8) == 0 { 0.0 } else { 10f64.powf(random.between(-9.0, 9.0)) };
                    if a != b {
                        matrix.add(a, b, flow(), flow());
                    }
                }
                let mut right: Vec<f64> = (0..size).map(|_| random.between(-1.0, 1.0)).collect();
                matrix.hold(random.below(size as u64) as usize);
                let (mut plain, mut plainly) = (matrix.clone(), right.clone());
                plain.solve_plainly(&mut plainly);
                matrix.solve(&mut right);
                let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&right), bits(&plainly), "{size} {edges}");
            }
        }
    }
}
