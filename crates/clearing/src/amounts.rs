//! The amounts: how much of every pair trades at given prices (SPEEDEX appendix D), in integers throughout.
//!
//! The program: for every pair choose x between L, what must execute, and U, what may execute, such that no asset is
//! paid out beyond what is sold of it, and the traded value is maximal.
//!
//! All amounts start at U, where no more can be traded but some assets are *short*: more is paid out than sold. Every
//! unit that a short asset A lacks can be obtained by selling less of some B for A. That makes B poorer, so the
//! shortage moves from A to B, until it ends at an asset with a surplus. The cheapest path, in value no longer
//! traded, is the one over the fewest pairs, as every pair on the path gives up the same value (commission compounds,
//! but equally on every pair). So this is a minimum-cost flow with unit costs, solved by successive shortest paths:
//! distances are small integers, and each round sends a blocking flow along the shortest paths. Taking back an
//! earlier reduction has cost −1.
//!
//! Amounts are whole units throughout, and every step rounds in the auctioneer's favour, so that only the last
//! partial fill of each pair needs repair: it may have to give up a few more units.
//!
//! Assets that trade with each other at these prices, directly or indirectly, and with no others have their own
//! program: nothing among them affects others, and a shortage there takes nothing from the rest. Each program has a
//! budget in proportion to its size, see `budget`. One that uses up its budget trades nothing.
//!
//! A pool is one more pair, on the side that it sells at these prices. Orders for exact amounts come last: see `order`.
//!
//! **Deviations from the paper**: no floating-point linear program; the same method for ε = 0 and ε > 0. When
//! amounts within L are not found, all lower bounds are dropped as in appendix D. If what then trades still misses
//! one, the assets in short supply are named.

use primitives::{Amount, AssetId, Price};
use rayon::prelude::*;

use crate::arc::{Arc, arc};
use crate::book::{Book, ExactOrder, Params};
use crate::budget::Spending;
use crate::connected::connected;
use crate::flow::Program;
use crate::order::ExactFill;
use crate::outcome::{Obstacle, Reason};
use crate::pool::PoolTrade;
use crate::rate::approx;
use crate::supply::Supply;

/// Amounts at given prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts {
    /// Units sold of every pair of the book: exactly the sum of its fills.
    pub sold: Vec<Amount>,
    /// The trades of pools, by their position.
    pub pools: Vec<PoolTrade>,
    /// The filled exact orders.
    pub exacts: Vec<ExactFill>,
    /// Whether every lower bound is met.
    pub full: bool,
    /// The reason if not: [`Reason::Units`] or [`Reason::Amounts`], for each set of assets that trade together.
    pub obstacles: Vec<Obstacle>,
    /// The work that was needed.
    pub spending: Spending,
}

impl Amounts {
    /// Full amounts that sell so many units of each pair, without pools.
    pub(crate) fn full(sold: Vec<Amount>) -> Amounts {
        let spending = Spending { tries: 1, ..Spending::default() };
        Amounts { sold, pools: Vec::new(), exacts: Vec::new(), full: true, obstacles: Vec::new(), spending }
    }

    /// Replaces what trades between assets that are `own` by `other`, which has nothing else.
    pub(crate) fn replace(&mut self, book: &Book, other: Amounts, own: impl Fn(AssetId) -> bool) {
        let links = (0..book.pairs.len()).filter(|link| own(book.link(*link).0) && own(book.link(*link).1));
        links.for_each(|link| self.sold[link] = other.sold[link]);
        self.pools.retain(|trade| !own(trade.sell));
        self.pools.extend(other.pools);
        self.pools.sort_by_key(|trade| trade.pool);
        self.exacts.extend(other.exacts);
        self.spending = self.spending.plus(other.spending);
    }
}

/// The amounts of `links` at any `valuations`. Runs on the current rayon pool; the result does not depend on it.
pub(crate) fn amounts(book: &Book, supply: &Supply, params: &Params, valuations: &[Price], links: &[usize]) -> Amounts {
    let mut flows = Flows::new(book, supply, params, valuations, links);
    flows.fit();
    flows.maximise();
    flows.amounts()
}

/// The looks needed to prepare the amounts of so many links and offers: at every pair, and at offers near its rate.
pub(crate) fn prepared(links: usize, offers: usize) -> u64 {
    (2 * links + offers / 8) as u64
}

/// As [`amounts`], if they are full at these `valuations`.
pub(crate) fn full_amounts(
    book: &Book,
    supply: &Supply,
    params: &Params,
    valuations: &[Price],
    links: &[usize],
) -> Result<Amounts, Spending> {
    let mut flows = Flows::new(book, supply, params, valuations, links);
    if flows.fit() { Ok(flows.amounts()) } else { Err(flows.spending()) }
}

/// The amounts of `links` with the filled exact orders, from those that `may` be filled; `None` if not all is full.
pub(crate) fn with_orders(
    book: &Book,
    supply: &Supply,
    params: &Params,
    valuations: &[Price],
    links: &[usize],
    may: impl Fn(&ExactOrder) -> bool,
) -> Option<Amounts> {
    // An order takes from the surplus of one asset and adds to another, whether they trade otherwise or not: one set.
    let arcs = arcs(book, supply, params, valuations, links);
    let together = Together::new((0..book.assets as usize).collect(), arcs, params, valuations);
    let mut flows = Flows { book, all: vec![together] };
    flows.fit().then(|| {
        let Together { program, values, .. } = &mut flows.all[0];
        let exacts = program.fill_orders(book, params, valuations, values, may);
        Amounts { exacts, ..flows.amounts() }
    })
}

/// Everything that trades at some prices.
struct Flows<'a> {
    book: &'a Book<'a>,
    all: Vec<Together<'a>>,
}

/// A set of assets that trade among themselves only.
struct Together<'a> {
    /// Ascending; the program uses their positions here.
    assets: Vec<usize>,
    values: Vec<f64>,
    program: Program<'a>,
    /// Positions of the assets that are short after the attempt to meet every bound.
    short: Vec<usize>,
    /// Whether the budget was used up, so that nothing trades.
    is_spent: bool,
}

impl<'a> Flows<'a> {
    fn new(
        book: &'a Book<'a>,
        supply: &'a Supply<'a>,
        params: &Params,
        valuations: &[Price],
        links: &[usize],
    ) -> Flows<'a> {
        let apart = apart(book.assets as usize, arcs(book, supply, params, valuations, links));
        let all = apart.into_iter().map(|(assets, arcs)| Together::new(assets, arcs, params, valuations));
        Flows { book, all: all.collect() }
    }

    /// Finds amounts that meet every bound, if there are any; false if something is short.
    fn fit(&mut self) -> bool {
        self.all.par_iter_mut().for_each(|together| together.short = together.program.try_bounds(&together.values));
        self.all.iter().all(|together| together.short.is_empty())
    }

    /// If something is short in this set, lets its assets trade as much as they can within the budget.
    fn maximise(&mut self) {
        self.all.par_iter_mut().filter(|together| !together.short.is_empty()).for_each(Together::maximise);
    }

    /// The spending as one try.
    fn spending(&self) -> Spending {
        let all = self.all.iter().map(|together| together.program.spending()).fold(Spending::default(), Spending::plus);
        Spending { tries: 1, ..all }
    }

    fn amounts(&self) -> Amounts {
        let book = self.book;
        let (mut sold, mut pools) = (vec![0; book.pairs.len()], Vec::new());
        for arc in self.all.iter().flat_map(|together| &together.program.arcs).filter(|arc| arc.sold > 0) {
            match sold.get_mut(arc.link) {
                Some(sold) => *sold = arc.sold,
                None => {
                    let (sell, buy) = book.link(arc.link);
                    let pool = ((arc.link - book.pairs.len()) / 2) as u32;
                    let bought = arc.paid_exactly(arc.sold) as Amount;
                    pools.push(PoolTrade { pool, sell, buy, sold: arc.sold, bought });
                }
            }
        }
        pools.sort_by_key(|trade| trade.pool);
        let obstacles: Vec<Obstacle> = self.all.iter().filter_map(Together::obstacle).collect();
        let (full, spending) = (obstacles.is_empty(), self.spending());
        Amounts { sold, pools, exacts: Vec::new(), full, obstacles, spending }
    }
}

impl<'a> Together<'a> {
    fn new(assets: Vec<usize>, arcs: Vec<Arc<'a>>, params: &Params, valuations: &[Price]) -> Together<'a> {
        let values = assets.iter().map(|asset| approx(valuations[*asset])).collect();
        let program = Program::new(assets.len(), arcs, params.budget.amounts);
        Together { values, program, assets, short: Vec::new(), is_spent: false }
    }

    /// Lets the assets trade as much as they can. What then meets every bound is full, however it was found.
    fn maximise(&mut self) {
        self.is_spent = !self.program.maximise(&self.values);
        if self.program.arcs.iter().all(|arc| arc.sold >= arc.low) {
            self.short.clear();
        }
    }

    fn obstacle(&self) -> Option<Obstacle> {
        let id = |asset: &usize| AssetId(*asset as u32);
        if self.is_spent && !self.short.is_empty() {
            return Some(Obstacle {
                reason: Reason::Amounts,
                assets: self.assets.iter().map(id).collect(),
                proof: None,
            });
        }
        let assets: Vec<AssetId> = self.short.iter().map(|place| id(&self.assets[*place])).collect();
        (!assets.is_empty()).then_some(Obstacle { reason: Reason::Units, assets, proof: None })
    }
}

/// The arcs of `links` with something to trade.
fn arcs<'a>(
    book: &'a Book<'a>,
    supply: &'a Supply<'a>,
    params: &Params,
    valuations: &[Price],
    links: &[usize],
) -> Vec<Arc<'a>> {
    let values: Vec<f64> = valuations.iter().map(|valuation| approx(*valuation)).collect();
    let links = links.par_iter().with_min_len(64);
    links.filter_map(|link| arc(book, supply, params, valuations, &values, *link)).collect()
}

/// Splits `arcs` into independent sets: the assets of each, ascending, and its arcs, with assets replaced by their
/// positions there.
fn apart(assets: usize, arcs: Vec<Arc>) -> Vec<(Vec<usize>, Vec<Arc>)> {
    let (set_of, count) = connected(assets, arcs.iter().map(|arc| (arc.sell, arc.buy)));
    let mut sets: Vec<(Vec<usize>, Vec<Arc>)> = (0..count).map(|_| Default::default()).collect();
    let mut place = vec![0; set_of.len()];
    for (asset, set) in set_of.iter().enumerate().filter_map(|(asset, set)| Some((asset, (*set)?))) {
        place[asset] = sets[set].0.len();
        sets[set].0.push(asset);
    }
    for mut arc in arcs {
        let set = set_of[arc.sell].expect("what trades is of a set");
        (arc.sell, arc.buy) = (place[arc.sell], place[arc.buy]);
        sets[set].1.push(arc);
    }
    sets
}

impl Program<'_> {
    /// Maximises trade within the bounds and makes it executable; returns the assets that are short even so.
    /// Shortages that no rounding can fix remain.
    pub(crate) fn try_bounds(&mut self, values: &[f64]) -> Vec<usize> {
        let short = self.solve();
        if self.is_hopeless(values) {
            return short;
        }
        self.execute(values);
        let short = self.short();
        if short.is_empty() || self.repair(values) { Vec::new() } else { short }
    }

    /// Maximises trade without the lower bounds and makes it executable. The budget starts anew; false if it ends
    /// before that is done: then nothing trades.
    fn maximise(&mut self, values: &[f64]) -> bool {
        self.renew_allowance();
        let bounds: Vec<Amount> = self.arcs.iter_mut().map(|arc| std::mem::take(&mut arc.low)).collect();
        self.solve();
        self.execute(values);
        let mut done = self.short().is_empty() || self.repair(values);
        if !done {
            // The remaining work is cheap where the budget ended early.
            self.renew_allowance();
            done = self.cut();
        }
        if !done {
            self.arcs.iter_mut().for_each(|arc| arc.sold = 0);
        }
        self.arcs.iter_mut().zip(bounds).for_each(|(arc, low)| arc.low = low);
        done
    }

    /// Assets of which more is paid out than sold, or bought by offers that must execute and do not.
    fn short(&self) -> Vec<usize> {
        let below = self.arcs.iter().filter(|arc| arc.sold < arc.low).map(|arc| arc.buy);
        let mut short: Vec<usize> = (0..self.slack.len()).filter(|asset| self.slack[*asset] < 0).chain(below).collect();
        short.sort_unstable();
        short.dedup();
        short
    }
}
