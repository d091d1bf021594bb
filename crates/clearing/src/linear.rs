//! Small linear programs, by an interior-point method (Mehrotra 1992).
//!
//! Iterates stay inside all bounds and reduce all complementary products alike, so that where many points are best, they
//! end about in the middle of those and not in a corner, which is what who tries them wants.
//!
//! Each step takes one linear system. Rows of few terms are eliminated from it beforehand; those of many terms keep their
//! dual values as unknowns, as they would couple everything with everything. That makes the system quasi-definite, which
//! needs no pivoting (Vanderbei 1995) where it is held a little and the answer refined. Elimination skips what is zero, and
//! columns that occur in few rows come first, so that most stays zero.
//!
//! Only + − × ÷, in a fixed order.

/// `Σ factor · x[column] ≤ bound`.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// (column, factor), each column once.
    pub(crate) terms: Vec<(usize, f64)>,
    pub(crate) bound: f64,
}

const MOST_STEPS: usize = 60;
/// Complementary products, on average, distances to rows, and what rows do not explain of costs that end it. Numbers are
/// about 1.
const ENOUGH: f64 = 1e-10;
const OFF: f64 = 1e-8;
const UNEXPLAINED: f64 = 1e-6;
/// Products fall to no less than this part of them at once, so that all can follow.
const CENTRAL: f64 = 0.2;
/// Iterates go so much of the way to the nearest bound, at most.
const SHORT: f64 = 0.995;
/// Rows of more terms keep their dual values.
const FEW: usize = 10;
/// Added to the system where it is positive and taken away where it is negative, and made up for by refining
/// (Friedlander and Orban 2012).
const HELD: f64 = 1e-8;
const REFINEMENTS: usize = 2;
/// A pivot that has lost all but this part of itself stands for a direction that nothing decides.
const LOST: f64 = 1e-13;
const HOLD: f64 = 1e64;
/// How far bounds are away at first, at least.
const ROOM: f64 = 0.1;

impl Row {
    fn at(&self, x: &[f64]) -> f64 {
        self.terms.iter().map(|(column, factor)| factor * x[*column]).sum()
    }
}

/// Minimises `Σ cost · x` within `rows`, from `start`, which may be outside; `None` if nothing is within them as far as can
/// be seen. Costs and factors must be about 1, or less.
pub(crate) fn minimise(cost: &[f64], rows: &[Row], start: &[f64]) -> Option<Vec<f64>> {
    let order = by_rows(rows, cost.len());
    let ordered = |values: &[f64]| -> Vec<f64> { order.iter().map(|column| values[*column]).collect() };
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, column)| place[*column] = at);
    let moved = |row: &Row| Row { terms: row.terms.iter().map(|term| (place[term.0], term.1)).collect(), ..*row };
    let rows: Vec<Row> = rows.iter().map(moved).collect();
    let x = minimise_ordered(&ordered(cost), &rows, ordered(start))?;
    Some(place.iter().map(|at| x[*at]).collect())
}

/// The columns, those first that occur in fewest rows.
fn by_rows(rows: &[Row], columns: usize) -> Vec<usize> {
    let mut count = vec![0; columns];
    rows.iter().flat_map(|row| &row.terms).for_each(|(column, _)| count[*column] += 1);
    let mut order: Vec<usize> = (0..columns).collect();
    order.sort_by_key(|column| count[*column]);
    order
}

fn minimise_ordered(cost: &[f64], rows: &[Row], start: Vec<f64>) -> Option<Vec<f64>> {
    let mut solver = Solver::new(cost, rows, start);
    for _ in 0..MOST_STEPS {
        let missed = solver.missed();
        if solver.product() < ENOUGH && solver.is_explained() && missed.iter().all(|off| off.abs() < OFF) {
            break;
        }
        solver.step(&missed)?;
    }
    // Where numbers have got out of hand, some are none.
    let is_within = solver.missed().iter().all(|off| off.abs() < OFF) && solver.x.iter().all(|x| x.is_finite());
    is_within.then_some(solver.x)
}

struct Solver<'a> {
    cost: &'a [f64],
    rows: &'a [Row],
    x: Vec<f64>,
    /// What rows leave, and their dual values: both above 0.
    room: Vec<f64>,
    dual: Vec<f64>,
    /// The unknown of each row that keeps its dual value.
    places: Vec<Option<usize>>,
    system: System,
}

/// Where to go.
struct Way {
    x: Vec<f64>,
    room: Vec<f64>,
    dual: Vec<f64>,
}

impl<'a> Solver<'a> {
    fn new(cost: &'a [f64], rows: &'a [Row], x: Vec<f64>) -> Solver<'a> {
        let mut size = cost.len();
        let mut place = |row: &Row| {
            (row.terms.len() > FEW).then(|| {
                size += 1;
                size - 1
            })
        };
        let places = rows.iter().map(&mut place).collect();
        let room = rows.iter().map(|row| (row.bound - row.at(&x)).max(ROOM)).collect();
        Solver { cost, rows, x, room, dual: vec![1.0; rows.len()], places, system: System::zero(size) }
    }

    /// By how much rows are missed.
    fn missed(&self) -> Vec<f64> {
        self.rows.iter().zip(&self.room).map(|(row, room)| row.at(&self.x) + room - row.bound).collect()
    }

    /// Whether the rows' dual values make up the costs.
    fn is_explained(&self) -> bool {
        let mut rest = self.cost.to_vec();
        for (row, dual) in self.rows.iter().zip(&self.dual) {
            row.terms.iter().for_each(|(column, factor)| rest[*column] += factor * dual);
        }
        rest.iter().all(|rest| rest.abs() < UNEXPLAINED)
    }

    /// The average of room times dual value.
    fn product(&self) -> f64 {
        self.room.iter().zip(&self.dual).map(|(room, dual)| room * dual).sum::<f64>() / self.rows.len() as f64
    }

    /// `None` if doubles do not do.
    fn step(&mut self, missed: &[f64]) -> Option<()> {
        self.fill();
        if !self.system.factor() {
            return None;
        }
        let product = self.product();
        let products: Vec<f64> = self.room.iter().zip(&self.dual).map(|(room, dual)| room * dual).collect();
        let way = self.way(missed, &products);
        // Where the straight way to the bounds would lead says how central to stay.
        let (by_room, by_dual) = (reach(&self.room, &way.room), reach(&self.dual, &way.dual));
        let after = |at: usize| (self.room[at] + by_room * way.room[at]) * (self.dual[at] + by_dual * way.dual[at]);
        let ratio = (0..self.rows.len()).map(after).sum::<f64>() / self.rows.len() as f64 / product;
        let central = (ratio * ratio * ratio).max(CENTRAL) * product;
        let aim = |at: usize| products[at] + way.room[at] * way.dual[at] - central;
        let way = self.way(missed, &(0..self.rows.len()).map(aim).collect::<Vec<f64>>());
        let (by_room, by_dual) = (SHORT * reach(&self.room, &way.room), SHORT * reach(&self.dual, &way.dual));
        add(&mut self.x, by_room, &way.x);
        add(&mut self.room, by_room, &way.room);
        add(&mut self.dual, by_dual, &way.dual);
        Some(())
    }

    /// Writes down the system.
    fn fill(&mut self) {
        let system = &mut self.system;
        system.cells.fill(0.0);
        (0..self.cost.len()).for_each(|column| *system.at(column, column) = HELD);
        for (at, row) in self.rows.iter().enumerate() {
            if let Some(place) = self.places[at] {
                row.terms.iter().for_each(|(column, factor)| *system.at(*column, place) = *factor);
                *system.at(place, place) = -self.room[at] / self.dual[at] - HELD;
                continue;
            }
            let weight = self.dual[at] / self.room[at];
            for (one, by) in &row.terms {
                for (two, factor) in row.terms.iter().filter(|(two, _)| two >= one) {
                    *system.at(*one, *two) += weight * by * factor;
                }
            }
        }
    }

    /// Solves the system without what holds it, by refining.
    fn solved(&self, right: Vec<f64>) -> Vec<f64> {
        let mut x = right.clone();
        self.system.solve(&mut x);
        for _ in 0..REFINEMENTS {
            let mut rest = right.clone();
            for (at, row) in self.rows.iter().enumerate() {
                let (room, dual) = (self.room[at], self.dual[at]);
                let own = match self.places[at] {
                    Some(place) => {
                        rest[place] -= row.at(&x) - room / dual * x[place];
                        x[place]
                    }
                    None => dual / room * row.at(&x),
                };
                row.terms.iter().for_each(|(column, factor)| rest[*column] -= factor * own);
            }
            self.system.solve(&mut rest);
            add(&mut x, 1.0, &rest);
        }
        x
    }

    /// The way on which rows are no longer `missed`, and the products fall by `products`.
    fn way(&self, missed: &[f64], products: &[f64]) -> Way {
        let mut right = vec![0.0; self.system.size];
        right.iter_mut().zip(self.cost).for_each(|(right, cost)| *right = -cost);
        for (at, row) in self.rows.iter().enumerate() {
            let (room, dual) = (self.room[at], self.dual[at]);
            let own = match self.places[at] {
                Some(place) => {
                    right[place] = products[at] / dual - missed[at];
                    -dual
                }
                None => (products[at] - dual * missed[at]) / room - dual,
            };
            row.terms.iter().for_each(|(column, factor)| right[*column] += factor * own);
        }
        let mut right = self.solved(right);
        right.truncate(self.cost.len());
        let room: Vec<f64> = self.rows.iter().zip(missed).map(|(row, missed)| -missed - row.at(&right)).collect();
        let of = |at: usize| (-products[at] - self.dual[at] * room[at]) / self.room[at];
        Way { x: right, dual: (0..room.len()).map(of).collect(), room }
    }
}

/// How much of `way` keeps all `values` from falling below 0, at most all of it.
fn reach(values: &[f64], way: &[f64]) -> f64 {
    let falling = values.iter().zip(way).filter(|(_, way)| **way < 0.0);
    falling.fold(1.0, |least, (value, way)| least.min(-value / way))
}

fn add(values: &mut [f64], by: f64, way: &[f64]) {
    values.iter_mut().zip(way).for_each(|(value, way)| *value += by * way);
}

/// A symmetric quasi-definite matrix, by rows, of which the upper triangle counts; once it is factored, D Lᵀ.
struct System {
    size: usize,
    cells: Vec<f64>,
    /// Columns of each factored row, after the diagonal, that are not zero.
    filled: Vec<Vec<usize>>,
}

impl System {
    fn zero(size: usize) -> System {
        System { size, cells: vec![0.0; size * size], filled: Vec::new() }
    }

    fn at(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.cells[row * self.size + column]
    }

    /// False if numbers get too large.
    fn factor(&mut self) -> bool {
        let size = self.size;
        let before: Vec<f64> = (0..size).map(|at| self.cells[at * size + at].abs()).collect();
        self.filled.clear();
        for pivot in 0..size {
            let (above, below) = self.cells.split_at_mut((pivot + 1) * size);
            let row = &mut above[pivot * size..];
            if !row[pivot].is_finite() {
                return false;
            }
            if row[pivot].abs() <= before[pivot] * LOST {
                row[pivot] = HOLD;
            }
            let filled: Vec<usize> = (pivot + 1..size).filter(|column| row[*column] != 0.0).collect();
            for (number, at) in filled.iter().enumerate() {
                let other = &mut below[(at - pivot - 1) * size..][..size];
                let by = row[*at] / row[pivot];
                filled[number..].iter().for_each(|column| other[*column] -= by * row[*column]);
            }
            self.filled.push(filled);
        }
        true
    }

    /// Solves `self · x = right` in place.
    fn solve(&self, right: &mut [f64]) {
        let row = |at: usize| &self.cells[at * self.size..][..self.size];
        for (at, filled) in self.filled.iter().enumerate() {
            let (row, by) = (row(at), right[at] / row(at)[at]);
            filled.iter().for_each(|column| right[*column] -= by * row[*column]);
        }
        for (at, filled) in self.filled.iter().enumerate().rev() {
            let row = row(at);
            let known: f64 = filled.iter().map(|column| row[*column] * right[*column]).sum();
            right[at] = (right[at] - known) / row[at];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(terms: &[(usize, f64)], bound: f64) -> Row {
        Row { terms: terms.to_vec(), bound }
    }

    fn at_least_zero(columns: usize) -> impl Iterator<Item = Row> {
        (0..columns).map(|column| row(&[(column, -1.0)], 0.0))
    }

    #[test]
    fn solves_a_known_program() {
        // Dantzig's: at most 3x + 5y with x ≤ 4, 2y ≤ 12, 3x + 2y ≤ 18 is 36 at (2, 6).
        let mut rows = vec![row(&[(0, 1.0)], 4.0), row(&[(1, 2.0)], 12.0), row(&[(0, 3.0), (1, 2.0)], 18.0)];
        rows.extend(at_least_zero(2));
        let x = minimise(&[-3.0, -5.0], &rows, &[0.0; 2]).expect("there are points");
        assert!((x[0] - 2.0).abs() < 1e-7 && (x[1] - 6.0).abs() < 1e-7, "{x:?}");
    }

    #[test]
    fn ends_in_the_middle_of_what_is_equally_good() {
        let rows = [row(&[(0, 1.0)], 3.0), row(&[(0, -1.0)], -1.0), row(&[(1, -1.0)], 2.0), row(&[(1, 1.0)], 5.0)];
        let x = minimise(&[0.0, 1.0], &rows, &[0.0; 2]).expect("there are points");
        assert!((x[0] - 2.0).abs() < 0.5 && (x[1] + 2.0).abs() < 1e-7, "{x:?}");
    }

    #[test]
    fn sees_that_there_is_nothing() {
        let rows = [row(&[(0, 1.0), (1, 1.0)], 1.0), row(&[(0, -1.0)], -1.0), row(&[(1, -1.0)], -1.0)];
        assert_eq!(minimise(&[1.0, 1.0], &rows, &[0.0; 2]), None);
    }

    #[test]
    fn numbers_out_of_hand_are_no_answer() {
        let rows = [row(&[(0, 1.0)], f64::NAN), row(&[(0, -1.0)], 0.0)];
        assert_eq!(minimise(&[1.0], &rows, &[0.5]), None);
    }

    proptest! {
        /// Rows of many terms and of few, with a known best point and known dual values that prove it is best.
        #[test]
        fn finds_what_dual_values_prove_best(
            columns in 2usize..16,
            factors in prop::collection::vec(prop::collection::vec(-1.0f64..1.0, 16), 1..20),
            best in prop::collection::vec(0.0f64..1.0, 16),
            duals in prop::collection::vec(0.1f64..1.0, 20),
            slack in prop::collection::vec(0.1f64..1.0, 20),
            tight in prop::collection::vec(any::<bool>(), 20),
        ) {
            let (mut rows, mut cost) = (Vec::new(), vec![0.0; columns]);
            for (at, factors) in factors.iter().enumerate() {
                let terms: Vec<(usize, f64)> = factors[..columns].iter().copied().enumerate().collect();
                // No more rows than columns meet in the best point, so that there is something around it.
                let tight = tight[at] && at < columns;
                let here: f64 = terms.iter().map(|(column, factor)| factor * best[*column]).sum();
                if tight {
                    terms.iter().for_each(|(column, factor)| cost[*column] -= duals[at] * factor);
                }
                rows.push(row(&terms, if tight { here } else { here + slack[at] }));
            }
            // What no row holds would go on for ever.
            rows.extend((0..columns).flat_map(|column| [row(&[(column, 1.0)], 3.0), row(&[(column, -1.0)], 3.0)]));
            let value = |x: &[f64]| cost.iter().zip(x).map(|(cost, x)| cost * x).sum::<f64>();
            let x = minimise(&cost, &rows, &vec![0.5; columns]).expect("the best point is one");
            prop_assert!(rows.iter().all(|row| row.at(&x) <= row.bound + 1e-7));
            prop_assert!((value(&x) - value(&best[..columns])).abs() < 1e-4, "{} {}", value(&x), value(&best[..columns]));
        }
    }
}
