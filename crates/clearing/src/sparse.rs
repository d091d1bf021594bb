//! Sparse linear systems of large parts, solved by preconditioned BiCGSTAB (van der Vorst 1992).
//!
//! The matrix is a weakly dominant M-matrix with one row per asset and a cell for each pair that trades. So an
//! incomplete factorisation within its own pattern exists (Meijerink and van der Vorst 1977). Rows are ordered by
//! increasing number of pairs: where many assets trade against a few numeraires that trade among themselves, the
//! factorisation is then exact. Rows are scaled by their diagonal, so that residuals are in logarithms of prices and an
//! asset of small volume counts as much as any other.
//!
//! All sums are in fixed order on one thread; the number of iterations is bounded. Newton's method needs only an
//! inexact solution.

/// Bound of residuals, in logarithms of prices, relative to the largest at the beginning.
const TOLERANCE: f64 = 1e-6;
/// Iterations after which the best solution so far is used.
const ITERATIONS: u32 = 100;
/// A cosine below this counts as a right angle.
const BREAKDOWN: f64 = 1e-13;
/// A pivot that has lost all but this share of its diagonal cell is kept at that value.
const FLOOR: f64 = 1e-9;

/// A square matrix with a fixed symmetric pattern, row by row.
pub(crate) struct Sparse {
    /// The row of every asset.
    row_of: Vec<u32>,
    /// `columns[first[r]..first[r + 1]]` are the columns of row r, ascending.
    first: Vec<usize>,
    columns: Vec<u32>,
    cells: Vec<f64>,
    /// The position of each row's diagonal cell.
    diagonal: Vec<usize>,
    /// For each pair, the positions of its cells (a, a), (a, b), (b, a) and (b, b).
    places: Vec<[u32; 4]>,
    /// Iterations of the last solution.
    iterations: u32,
}

impl Sparse {
    /// The zero matrix over `size` assets with cells for `pairs` of them.
    pub(crate) fn zero(size: usize, pairs: &[(u32, u32)]) -> Sparse {
        let mut near = vec![Vec::new(); size];
        for (a, b) in pairs {
            near[*a as usize].push(*b);
            near[*b as usize].push(*a);
        }
        for (asset, near) in near.iter_mut().enumerate() {
            near.push(asset as u32);
            near.sort_unstable();
            near.dedup();
        }
        let mut order: Vec<u32> = (0..size as u32).collect();
        order.sort_by_key(|asset| (near[*asset as usize].len(), *asset));
        let mut row_of = vec![0; size];
        order.iter().enumerate().for_each(|(row, asset)| row_of[*asset as usize] = row as u32);
        let (mut first, mut columns) = (vec![0], Vec::new());
        for asset in &order {
            let mut row: Vec<u32> = near[*asset as usize].iter().map(|other| row_of[*other as usize]).collect();
            row.sort_unstable();
            columns.extend(row);
            first.push(columns.len());
        }
        let place = |row: u32, column: u32| {
            let start = first[row as usize];
            let found = columns[start..first[row as usize + 1]].binary_search(&column);
            start + found.expect("a cell of the pattern")
        };
        let diagonal = (0..size as u32).map(|row| place(row, row)).collect();
        let place_of = |a: u32, b: u32| place(row_of[a as usize], row_of[b as usize]) as u32;
        let places = pairs.iter().map(|&(a, b)| [place_of(a, a), place_of(a, b), place_of(b, a), place_of(b, b)]);
        let places = places.collect();
        Sparse { cells: vec![0.0; columns.len()], row_of, first, columns, diagonal, places, iterations: 0 }
    }

    /// The cost of the last solution, in looks at a pair: the factors, and the iterations.
    pub(crate) fn spent(&self) -> u64 {
        let cells = self.cells.len() as u64;
        2 * cells + cells * u64::from(self.iterations) / 4
    }

    pub(crate) fn clear(&mut self) {
        self.cells.fill(0.0);
    }

    /// Adds `out` to the outflow of asset a, and `back` to the flow from b, for the pair numbered `pair`.
    pub(crate) fn add(&mut self, pair: usize, out: f64, back: f64) {
        let [aa, ab, ba, bb] = self.places[pair];
        self.cells[aa as usize] += out;
        self.cells[ab as usize] -= back;
        self.cells[ba as usize] -= out;
        self.cells[bb as usize] += back;
    }

    /// Solves `self · x = right`, with x of the asset `fixed` held at 0; `right` becomes x.
    pub(crate) fn solve(&mut self, right: &mut [f64], fixed: usize) {
        self.hold(self.row_of[fixed]);
        let mut scaled = vec![0.0; right.len()];
        for (asset, row) in self.row_of.iter().enumerate() {
            scaled[*row as usize] = if asset == fixed { 0.0 } else { right[asset] };
        }
        self.scale(&mut scaled);
        let factors = self.factors();
        let (solution, iterations) = self.iterate(&factors, scaled);
        self.iterations = iterations;
        right.iter_mut().zip(&self.row_of).for_each(|(x, row)| *x = solution[*row as usize]);
    }

    fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.first[row]..self.first[row + 1]
    }

    /// Removes a row and its column from the system.
    fn hold(&mut self, held: u32) {
        for at in self.row(held as usize) {
            let other = self.columns[at] as usize;
            self.cells[at] = 0.0;
            let back = self.row(other).start + self.columns[self.row(other)].partition_point(|column| *column < held);
            self.cells[back] = 0.0;
        }
    }

    /// Divides every row by its diagonal cell. Nothing depends on the assets of rows without one.
    fn scale(&mut self, right: &mut [f64]) {
        for (row, right) in right.iter_mut().enumerate() {
            let diagonal = self.cells[self.diagonal[row]];
            let range = self.row(row);
            if diagonal > 0.0 {
                self.cells[range].iter_mut().for_each(|cell| *cell /= diagonal);
                *right /= diagonal;
            } else {
                self.cells[range].fill(0.0);
                self.cells[self.diagonal[row]] = 1.0;
                *right = 0.0;
            }
        }
    }

    /// The incomplete factors L and U in one array of cells; L has a unit diagonal.
    fn factors(&self) -> Vec<f64> {
        let mut cells = self.cells.clone();
        let mut place = vec![usize::MAX; self.diagonal.len()];
        for row in 0..self.diagonal.len() {
            for at in self.row(row) {
                place[self.columns[at] as usize] = at;
            }
            for at in self.first[row]..self.diagonal[row] {
                let above = self.columns[at] as usize;
                let factor = cells[at] / cells[self.diagonal[above]];
                cells[at] = factor;
                if factor != 0.0 {
                    for other in self.diagonal[above] + 1..self.first[above + 1] {
                        let target = place[self.columns[other] as usize];
                        if target != usize::MAX {
                            cells[target] -= factor * cells[other];
                        }
                    }
                }
            }
            cells[self.diagonal[row]] = cells[self.diagonal[row]].max(FLOOR);
            for at in self.row(row) {
                place[self.columns[at] as usize] = usize::MAX;
            }
        }
        cells
    }

    /// Solves with the incomplete factors.
    fn precondition(&self, factors: &[f64], right: &[f64]) -> Vec<f64> {
        let mut x = right.to_vec();
        for row in 0..x.len() {
            let known = (self.first[row]..self.diagonal[row]).map(|at| factors[at] * x[self.columns[at] as usize]);
            x[row] -= known.sum::<f64>();
        }
        for row in (0..x.len()).rev() {
            let known =
                (self.diagonal[row] + 1..self.first[row + 1]).map(|at| factors[at] * x[self.columns[at] as usize]);
            x[row] = (x[row] - known.sum::<f64>()) / factors[self.diagonal[row]];
        }
        x
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        let row = |row| self.row(row).map(|at| self.cells[at] * x[self.columns[at] as usize]).sum();
        (0..x.len()).map(row).collect()
    }

    /// BiCGSTAB, preconditioned from the right; returns the solution and the iterations used.
    fn iterate(&self, factors: &[f64], right: Vec<f64>) -> (Vec<f64>, u32) {
        let n = right.len();
        let aim = TOLERANCE * largest(&right);
        let mut x = vec![0.0; n];
        let mut shadow = right.clone();
        let mut residual = right;
        let (mut search, mut image) = (vec![0.0; n], vec![0.0; n]);
        let (mut rho, mut alpha, mut omega) = (1.0, 1.0, 1.0);
        let mut iterations = 0;
        while iterations < ITERATIONS {
            if largest(&residual) <= aim {
                break;
            }
            iterations += 1;
            let mut next = dot(&shadow, &residual);
            // The method breaks down where the two are at right angles; it restarts from the current point.
            if next.abs() <= BREAKDOWN * (dot(&shadow, &shadow) * dot(&residual, &residual)).sqrt() {
                shadow.clone_from(&residual);
                search.fill(0.0);
                image.fill(0.0);
                (rho, alpha, omega) = (1.0, 1.0, 1.0);
                next = dot(&shadow, &residual);
            }
            let beta = next / rho * (alpha / omega);
            rho = next;
            for at in 0..n {
                search[at] = residual[at] + beta * (search[at] - omega * image[at]);
            }
            let way = self.precondition(factors, &search);
            image = self.times(&way);
            alpha = rho / dot(&shadow, &image);
            if !alpha.is_finite() {
                break;
            }
            add(&mut residual, -alpha, &image);
            add(&mut x, alpha, &way);
            if largest(&residual) <= aim {
                break;
            }
            let way = self.precondition(factors, &residual);
            let change = self.times(&way);
            omega = dot(&change, &residual) / dot(&change, &change);
            if !omega.is_finite() || omega == 0.0 {
                break;
            }
            add(&mut x, omega, &way);
            add(&mut residual, -omega, &change);
        }
        (x, iterations)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], factor: f64, other: &[f64]) {
    to.iter_mut().zip(other).for_each(|(to, other)| *to += factor * other);
}

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |most, x| x.abs().max(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Matrix;
    use proptest::prelude::*;

    proptest! {
        /// The residual is within the tolerance, on connected graphs with flows both ways of very different size; and
        /// the solution equals that of elimination, where those sizes do not amplify the tolerance.
        #[test]
        fn solves_what_elimination_solves(
            size in 2usize..12,
            more in prop::collection::vec((0usize..12, 0usize..12, -6i32..3, -6i32..3), 0..40),
            fixed in 0usize..12,
            seed in prop::collection::vec(-10i32..10, 12),
        ) {
            let chain = (1..size).map(|at| (at - 1, at, 0, 0));
            let more = more.into_iter().map(|(a, b, out, back)| (a % size, b % size, out, back));
            let edges: Vec<_> = chain.chain(more).filter(|(a, b, _, _)| a != b).collect();
            let fixed = fixed % size;
            let pairs: Vec<(u32, u32)> = edges.iter().map(|(a, b, _, _)| (*a as u32, *b as u32)).collect();
            let (mut sparse, mut dense) = (Sparse::zero(size, &pairs), Matrix::zero(size));
            for (at, &(a, b, out, back)) in edges.iter().enumerate() {
                let (out, back) = (10f64.powi(out), 10f64.powi(back));
                sparse.add(at, out, back);
                dense.add(a, b, out, back);
            }
            let mut want: Vec<f64> = seed[..size].iter().map(|x| f64::from(*x)).collect();
            let mut got = want.clone();
            dense.hold(fixed);
            dense.solve(&mut want);
            want[fixed] = 0.0;
            sparse.solve(&mut got, fixed);
            let (mut left, mut diagonal) = (seed[..size].iter().map(|x| f64::from(*x)).collect::<Vec<f64>>(),
                vec![0.0; size]);
            left[fixed] = 0.0;
            let right = left.clone();
            for &(a, b, out, back) in &edges {
                let (out, back) = (10f64.powi(out), 10f64.powi(back));
                let flow = out * got[a] - back * got[b];
                (left[a], left[b]) = (left[a] - flow, left[b] + flow);
                (diagonal[a], diagonal[b]) = (diagonal[a] + out, diagonal[b] + back);
            }
            left[fixed] = 0.0;
            let scaled = |of: &[f64]| of.iter().zip(&diagonal).map(|(x, diagonal)| (x / diagonal).abs()).fold(0.0,
                f64::max);
            prop_assert!(scaled(&left) <= 2.0 * TOLERANCE * scaled(&right), "{} of {}", scaled(&left), scaled(&right));
            let is_alike = edges.iter().all(|(_, _, out, back)| *out > -3 && *back > -3);
            let most = largest(&want).max(1e-9);
            for (got, want) in got.iter().zip(&want).filter(|_| is_alike) {
                prop_assert!((got - want).abs() <= 1e-3 * most, "{} {}", got, want);
            }
        }
    }

    #[test]
    fn many_assets_on_few_numeraires_take_one_iteration() {
        let (hubs, leaves) = (5u32, 300u32);
        let among = (0..hubs).flat_map(|a| (a + 1..hubs).map(move |b| (a, b)));
        let to = (hubs..leaves).flat_map(|leaf| (0..hubs).map(move |hub| (leaf, hub)));
        let pairs: Vec<(u32, u32)> = among.chain(to).collect();
        let mut sparse = Sparse::zero(leaves as usize, &pairs);
        (0..pairs.len()).for_each(|at| sparse.add(at, 1.0 + (at % 7) as f64, 0.5 + (at % 5) as f64));
        sparse.hold(sparse.row_of[0]);
        let mut right: Vec<f64> = (0..leaves).map(|at| f64::from(at % 11) - 5.0).collect();
        right[leaves as usize - 1] = 0.0;
        sparse.scale(&mut right);
        let x = sparse.precondition(&sparse.factors(), &right);
        let back = sparse.times(&x);
        back.iter().zip(&right).for_each(|(got, want)| assert!((got - want).abs() < 1e-9));
    }
}
