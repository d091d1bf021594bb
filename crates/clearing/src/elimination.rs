//! Sparse linear systems of flows, eliminated exactly: the assets' Schur complement of the interior-point method.
//!
//! As in `dense`, each column lists the targets of the flow that its x drives, every pivot is the sum of the rest of
//! its column (Grassmann, Taksar and Heyman 1985), and nothing is ever subtracted from a number of its own size. Rows
//! are eliminated in an order of minimum degree, found once from the pairs alone, so that trees and hubs fill no cell
//! at all, and thin meshes few. The last asset in that order keeps its price. The factors are kept, so that a second
//! right-hand side costs next to nothing.

use std::collections::BTreeSet;

/// The most updates of cells in one elimination; beyond that, a system counts as too large.
const MOST: usize = 16_000_000;
/// From so large a part of the cube of its size on, a system counts as dense and `system` solves it: of up to 400
/// assets by elimination in tiles, which is faster even if it is done twice in each step.
const DENSE: usize = 30;
/// Updates of cells for the cost of one look at a pair.
const UPDATES: u64 = 8;

/// A square matrix of flows with the pattern of a graph, and its factors.
pub(crate) struct Elimination {
    /// The position of each asset in the order of elimination.
    place: Vec<u32>,
    /// The later neighbours of position k, ascending: `near[first[k]..first[k + 1]]`. Each is a pair of cells.
    first: Vec<usize>,
    near: Vec<u32>,
    /// Of k and a later neighbour b: the cell in row k and column b, and the cell in row b and column k.
    up: Vec<f64>,
    low: Vec<f64>,
    pivots: Vec<f64>,
    /// For each position, and each pair of its later neighbours in order, the pair of cells of those two.
    updated: Vec<u32>,
    /// The pair of cells of each pair of assets.
    cells: Vec<u32>,
}

impl Elimination {
    /// The zero matrix over `size` assets with cells for `pairs` of them; `None` if elimination would take too long.
    pub(crate) fn new(size: usize, pairs: &[(u32, u32)]) -> Option<Elimination> {
        let (place, later) = ordered(size, pairs)?;
        let mut first = vec![0];
        let mut near = Vec::new();
        for later in &later {
            near.extend(later.iter().copied());
            first.push(near.len());
        }
        let cell = |a: u32, b: u32| {
            let (low, high) = (a.min(b) as usize, a.max(b));
            let own = &near[first[low]..first[low + 1]];
            (first[low] + own.binary_search(&high).expect("neighbours")) as u32
        };
        let mut updated = Vec::new();
        for later in &later {
            let pairs = later.iter().enumerate().flat_map(|(at, a)| later[at + 1..].iter().map(|b| (*a, *b)));
            updated.extend(pairs.map(|(a, b)| cell(a, b)));
        }
        let of_pair = |(a, b): &(u32, u32)| cell(place[*a as usize], place[*b as usize]);
        let cells = pairs.iter().map(of_pair).collect();
        let zero = vec![0.0; near.len()];
        Some(Elimination { up: zero.clone(), low: zero, pivots: vec![0.0; size], place, first, near, updated, cells })
    }

    /// The cost of an elimination, in looks at a pair.
    pub(crate) fn spent(&self) -> u64 {
        self.updated.len() as u64 / UPDATES + self.near.len() as u64
    }

    pub(crate) fn clear(&mut self) {
        self.up.fill(0.0);
        self.low.fill(0.0);
    }

    /// Adds the pair numbered `pair`, which sells `sell` for `buy`, as [`crate::system::System::add`] does.
    pub(crate) fn add(&mut self, pair: usize, sell: usize, buy: usize, out: f64, back: f64) {
        let cell = self.cells[pair] as usize;
        let (to_buy, to_sell) = match self.place[sell] < self.place[buy] {
            true => (&mut self.low[cell], &mut self.up[cell]),
            false => (&mut self.up[cell], &mut self.low[cell]),
        };
        *to_buy -= out;
        *to_sell -= back;
    }

    /// Eliminates every position but the last.
    pub(crate) fn factor(&mut self) {
        let mut next = 0;
        for k in 0..self.pivots.len() {
            let own = self.first[k]..self.first[k + 1];
            let pivot = self.low[own.clone()].iter().fold(0.0, |sum, cell| sum - cell);
            self.pivots[k] = pivot;
            if pivot > 0.0 {
                self.low[own.clone()].iter_mut().for_each(|cell| *cell /= pivot);
            }
            for a in own.clone() {
                let (factor, cell) = (self.low[a], self.up[a]);
                for b in a + 1..own.end {
                    let to = self.updated[next] as usize;
                    next += 1;
                    self.up[to] -= factor * self.up[b];
                    self.low[to] -= self.low[b] * cell;
                }
            }
        }
    }

    /// Solves for `right`, which becomes the solution; false if some value of it is not finite.
    pub(crate) fn solve(&self, right: &mut [f64]) -> bool {
        let size = right.len();
        let mut x = vec![0.0; size];
        self.place.iter().zip(right.iter()).for_each(|(place, value)| x[*place as usize] = *value);
        for k in 0..size {
            let value = x[k];
            for at in self.first[k]..self.first[k + 1] {
                x[self.near[at] as usize] -= self.low[at] * value;
            }
        }
        for k in (0..size).rev() {
            let own = self.first[k]..self.first[k + 1];
            let known: f64 = own.map(|at| self.up[at] * x[self.near[at] as usize]).sum();
            x[k] = if self.pivots[k] > 0.0 { (x[k] - known) / self.pivots[k] } else { 0.0 };
        }
        right.iter_mut().zip(&self.place).for_each(|(value, place)| *value = x[*place as usize]);
        right.iter().all(|x| x.is_finite())
    }
}

/// An order of minimum degree: the position of each asset, and for each position its later neighbours, ascending.
/// `None` if there are too many updates.
fn ordered(size: usize, pairs: &[(u32, u32)]) -> Option<(Vec<u32>, Vec<Vec<u32>>)> {
    let mut near = vec![Vec::new(); size];
    for (a, b) in pairs {
        near[*a as usize].push(*b);
        near[*b as usize].push(*a);
    }
    for near in &mut near {
        near.sort_unstable();
        near.dedup();
    }
    let mut queue: BTreeSet<(usize, u32)> = (0..size as u32).map(|a| (near[a as usize].len(), a)).collect();
    let mut place = vec![0; size];
    let mut later: Vec<Vec<u32>> = Vec::with_capacity(size);
    let (mut updates, most) = (0, MOST.min(10_000.max(size.saturating_pow(3) / DENSE)));
    while let Some((degree, asset)) = queue.pop_first() {
        updates += degree * degree / 2;
        if updates > most {
            return None;
        }
        place[asset as usize] = later.len() as u32;
        let own = std::mem::take(&mut near[asset as usize]);
        for a in &own {
            let joined = union(&near[*a as usize], &own, |b| b != asset && b != *a);
            queue.remove(&(near[*a as usize].len(), *a));
            queue.insert((joined.len(), *a));
            near[*a as usize] = joined;
        }
        later.push(own);
    }
    for own in &mut later {
        own.iter_mut().for_each(|asset| *asset = place[*asset as usize]);
        own.sort_unstable();
    }
    Some((place, later))
}

/// The members of two ascending lists that are `kept`, ascending.
fn union(one: &[u32], other: &[u32], kept: impl Fn(u32) -> bool) -> Vec<u32> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut all = Vec::with_capacity(one.len() + other.len());
    loop {
        let next = match (one.peek(), other.peek()) {
            (None, None) => return all,
            (Some(a), Some(b)) if a == b => {
                one.next();
                other.next()
            }
            (Some(a), Some(b)) if a > b => other.next(),
            (Some(_), _) => one.next(),
            (None, Some(_)) => other.next(),
        };
        all.extend(next.copied().filter(|id| kept(*id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Matrix;
    use proptest::prelude::*;

    proptest! {
        /// The same solutions as elimination in the order of assets.
        #[test]
        fn solves_what_dense_elimination_solves(
            size in 2usize..14,
            more in prop::collection::vec((0usize..14, 0usize..14, -6i32..3, -6i32..3), 0..30),
            seed in prop::collection::vec(-10i32..10, 14),
        ) {
            let chain = (1..size).map(|at| (at - 1, at, 0, 0));
            let more = more.into_iter().map(|(a, b, out, back)| (a % size, b % size, out, back));
            let edges: Vec<_> = chain.chain(more).filter(|(a, b, _, _)| a != b).collect();
            let pairs: Vec<(u32, u32)> = edges.iter().map(|(a, b, _, _)| (*a as u32, *b as u32)).collect();
            let (mut sparse, mut dense) = (Elimination::new(size, &pairs).expect("small"), Matrix::zero(size));
            for (at, &(a, b, out, back)) in edges.iter().enumerate() {
                let (out, back) = (10f64.powi(out), 10f64.powi(back));
                sparse.add(at, a, b, out, back);
                dense.add(a, b, out, back);
            }
            let mut got: Vec<f64> = seed[..size].iter().map(|x| f64::from(*x)).collect();
            let mut want = got.clone();
            let fixed = sparse.place.iter().position(|place| *place as usize == size - 1).expect("a last one");
            dense.hold(fixed);
            dense.solve(&mut want);
            want[fixed] = 0.0;
            sparse.factor();
            prop_assert!(sparse.solve(&mut got));
            for (got, want) in got.iter().zip(&want) {
                prop_assert!((got - want).abs() <= 1e-9 * want.abs().max(1.0), "{} {}", got, want);
            }
        }
    }

    #[test]
    fn hubs_and_trees_fill_no_cell() {
        let pairs: Vec<(u32, u32)> = (1..400u32).map(|child| (child, (child * 7 % 11).min(child - 1))).collect();
        let elimination = Elimination::new(400, &pairs).expect("small");
        assert_eq!((elimination.near.len(), elimination.updated.len()), (399, 0));
    }
}
