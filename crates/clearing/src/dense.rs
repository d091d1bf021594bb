//! Dense linear systems whose matrix is a diagonally dominant M-matrix, which needs no pivoting.

/// A square matrix, row by row.
#[derive(Clone, Default)]
pub(crate) struct Matrix {
    pub(crate) size: usize,
    pub(crate) cells: Vec<f64>,
}

impl Matrix {
    pub(crate) fn zero(size: usize) -> Matrix {
        Matrix { size, cells: vec![0.0; size * size] }
    }

    /// Adds a flow from a to b that grows by `out` with a and falls by `back` with b.
    pub(crate) fn add(&mut self, a: usize, b: usize, out: f64, back: f64) {
        let n = self.size;
        self.cells[a * n + a] += out;
        self.cells[a * n + b] -= back;
        self.cells[b * n + a] -= out;
        self.cells[b * n + b] += back;
    }

    /// Takes the row and the column of `fixed` out, so that x of it is 0.
    pub(crate) fn hold(&mut self, fixed: usize) {
        let n = self.size;
        for other in 0..n {
            self.cells[other * n + fixed] = 0.0;
            self.cells[fixed * n + other] = 0.0;
        }
    }

    /// Solves `self · x = right` in place by elimination; `right` becomes x. A pivot that has lost all but `floor` of
    /// its diagonal cell to elimination is held there, which leaves the direction it stands for alone.
    pub(crate) fn solve(&mut self, right: &mut [f64], floor: f64) {
        let n = self.size;
        let least: Vec<f64> = (0..n).map(|k| self.cells[k * n + k] * floor).collect();
        for k in 0..n {
            let (above, below) = self.cells.split_at_mut((k + 1) * n);
            let row = &mut above[k * n..];
            row[k] = row[k].max(least[k]);
            if row[k] <= 0.0 {
                // Nothing depends on x_k.
                row[k] = 1.0;
                row[k + 1..].fill(0.0);
                right[k] = 0.0;
            }
            for (i, other) in below.chunks_exact_mut(n).enumerate() {
                let factor = other[k] / row[k];
                if factor != 0.0 {
                    other[k + 1..].iter_mut().zip(&row[k + 1..]).for_each(|(cell, own)| *cell -= factor * own);
                    right[k + 1 + i] -= factor * right[k];
                }
            }
        }
        for k in (0..n).rev() {
            let row = &self.cells[k * n..(k + 1) * n];
            let known: f64 = row[k + 1..].iter().zip(&right[k + 1..]).map(|(cell, x)| cell * x).sum();
            right[k] = (right[k] - known) / row[k];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_a_known_system() {
        let mut matrix = Matrix { size: 3, cells: vec![4.0, -1.0, -1.0, -2.0, 5.0, -1.0, -1.0, -2.0, 6.0] };
        let x = [1.0, -2.0, 3.0];
        let mut right: Vec<f64> =
            matrix.cells.chunks(3).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect();
        matrix.solve(&mut right, 1e-12);
        right.iter().zip(x).for_each(|(got, want)| assert!((got - want).abs() < 1e-14));
    }

    #[test]
    fn leaves_alone_what_nothing_decides() {
        let mut matrix = Matrix { size: 2, cells: vec![0.0, 0.0, 0.0, 2.0] };
        let mut right = [3.0, 4.0];
        matrix.solve(&mut right, 1e-12);
        assert_eq!(right, [0.0, 2.0]);
    }
}
