//! The amounts: how much of every pair trades at given prices (SPEEDEX appendix D), in integers from first to last.
//!
//! The program is: for every pair choose x between L, what must execute, and U, what may, such that no asset is paid
//! out beyond what is sold of it, and the value traded is largest.
//!
//! Everything starts at U, where more cannot be traded but some assets are *short*: more is paid out than sold. Every
//! unit that a short asset A lacks can be had by selling less of some B for A; that makes B poorer, so the shortage
//! moves from A to B, and ends at an asset with a surplus. The cheapest way, in value no longer traded, is the one
//! over the fewest pairs, as every pair on the way gives up the same value (commission compounds, but does so alike on
//! every pair). So this is a minimum-cost flow with unit costs, solved by successive shortest paths: distances are
//! small integers, and each round sends a blocking flow along the shortest ways. Taking back an earlier reduction has
//! cost −1.
//!
//! Amounts stay whole units throughout, and every step rounds in the auctioneer's favour, so that nothing is left to
//! repair but the last partial fill of each pair, which may have to give up a few units more.
//!
//! A pool is one more pair, from the side that it sells at these prices. Buy orders come last: see `order`.
//!
//! **Deviations from the paper**: no floating-point linear program; with ε = 0 and ε > 0 the same method. When L
//! cannot be met, all lower bounds are dropped as in appendix D, and the assets in short supply are named.

use primitives::{Amount, AssetId, Price};
use rayon::prelude::*;

use crate::arc::{Arc, arc};
use crate::book::{Book, Params};
use crate::flow::Program;
use crate::order::Purchase;
use crate::outcome::Spending;
use crate::pool::PoolTrade;
use crate::rate::approx;
use crate::supply::Supply;

/// Amounts at given prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts {
    /// Units sold of every pair of the book: exactly what its fills sum to.
    pub sold: Vec<Amount>,
    /// What pools trade, by their position.
    pub pools: Vec<PoolTrade>,
    /// The buy orders that are filled.
    pub buys: Vec<Purchase>,
    /// Whether every lower bound is met.
    pub full: bool,
    /// Assets in short supply when not.
    pub short: Vec<AssetId>,
    /// What it took to find them.
    pub spending: Spending,
}

/// How often amounts are made executable, with ever more in reserve for it.
const ROUNDINGS: u32 = 8;

/// By what share of what is paid out of it each asset is short.
pub(crate) type Lack = Vec<f64>;

/// The amounts of all pairs and pools at `valuations`, whatever they are, and the buy orders that are filled; and what
/// is lacking if they are not full. Runs on the current rayon pool; the answer does not depend on it.
pub(crate) fn amounts(book: &Book, supply: &Supply, params: &Params, valuations: &[Price]) -> (Amounts, Lack) {
    let (mut program, values) = program(book, supply, params, valuations, (0..book.links()).collect());
    let short = program.fit(&values);
    if short.is_empty() {
        return (program.full(book, params, valuations, &values), Lack::new());
    }
    program.maximise(&values);
    let lack = std::mem::take(&mut program.lack);
    (program.amounts(book, short), lack)
}

/// The same, if they are full at these `valuations`; what is lacking if not.
pub(crate) fn full_amounts(
    book: &Book,
    supply: &Supply,
    params: &Params,
    valuations: &[Price],
) -> Result<Amounts, (Lack, Spending)> {
    let (mut program, values) = program(book, supply, params, valuations, (0..book.links()).collect());
    if program.fit(&values).is_empty() {
        Ok(program.full(book, params, valuations, &values))
    } else {
        Err((program.lack, program.spending))
    }
}

/// What `links` alone lack at `valuations`; `None` if they have full amounts there.
pub(crate) fn lack_of(
    book: &Book,
    supply: &Supply,
    params: &Params,
    valuations: &[Price],
    links: Vec<usize>,
) -> (Option<Lack>, Spending) {
    let (mut program, values) = program(book, supply, params, valuations, links);
    let full = program.fit(&values).is_empty();
    ((!full).then_some(program.lack), program.spending)
}

/// The amounts of `links` alone at `valuations`.
pub(crate) fn amounts_of(
    book: &Book,
    supply: &Supply,
    params: &Params,
    valuations: &[Price],
    links: Vec<usize>,
) -> Amounts {
    let (mut program, values) = program(book, supply, params, valuations, links);
    let short = program.fit(&values);
    if !short.is_empty() {
        program.maximise(&values);
    }
    program.amounts(book, short)
}

/// Whether `links` alone have full amounts at `valuations`.
pub(crate) fn are_full(book: &Book, supply: &Supply, params: &Params, valuations: &[Price], links: Vec<usize>) -> bool {
    let (mut program, values) = program(book, supply, params, valuations, links);
    program.fit(&values).is_empty()
}

/// The flow program over `links`, and the valuations as doubles.
fn program<'a>(
    book: &'a Book,
    supply: &'a Supply,
    params: &Params,
    valuations: &[Price],
    links: Vec<usize>,
) -> (Program<'a>, Vec<f64>) {
    let links = links.into_par_iter().with_min_len(64);
    let arcs: Vec<Arc> = links.filter_map(|link| arc(book, supply, params, valuations, link)).collect();
    (Program::new(book, arcs), valuations.iter().map(|value| approx(*value)).collect())
}

impl Program<'_> {
    fn amounts(&self, book: &Book, short: Vec<usize>) -> Amounts {
        let (mut sold, mut pools) = (vec![0; book.pairs.len()], Vec::new());
        for arc in self.arcs.iter().filter(|arc| arc.sold > 0) {
            match sold.get_mut(arc.link) {
                Some(sold) => *sold = arc.sold,
                None => pools.push(PoolTrade {
                    pool: ((arc.link - book.pairs.len()) / 2) as u32,
                    sell: AssetId(arc.sell as u32),
                    buy: AssetId(arc.buy as u32),
                    sold: arc.sold,
                    bought: arc.paid_exactly(arc.sold) as Amount,
                }),
            }
        }
        let short: Vec<AssetId> = short.into_iter().map(|asset| AssetId(asset as u32)).collect();
        Amounts { sold, pools, buys: Vec::new(), full: short.is_empty(), short, spending: self.spending }
    }

    /// The amounts that have been found, which meet every bound, and buy orders besides.
    fn full(&mut self, book: &Book, params: &Params, valuations: &[Price], values: &[f64]) -> Amounts {
        let buys = self.fill_orders(book, params, valuations, values);
        Amounts { buys, ..self.amounts(book, Vec::new()) }
    }

    /// Finds amounts that meet every bound; returns the assets that are short, none if there are such amounts.
    fn fit(&mut self, values: &[f64]) -> Vec<usize> {
        let short = self.try_bounds(values);
        if short.is_empty() {
            return short;
        }
        self.count_payouts();
        self.try_bounds(values)
    }

    /// Maximises trade within the bounds and makes it executable; returns the assets that are short even so.
    pub(crate) fn try_bounds(&mut self, values: &[f64]) -> Vec<usize> {
        self.reserve.fill(0);
        self.solve();
        self.execute(values);
        let short = self.short();
        if short.is_empty() || self.repair(values) { Vec::new() } else { short }
    }

    /// Drops the lower bounds, maximises trade and makes it executable. Assets that rounding leaves short keep something in
    /// reserve the next time.
    fn maximise(&mut self, values: &[f64]) {
        self.arcs.iter_mut().for_each(|arc| arc.drop_bound());
        let lack = std::mem::take(&mut self.lack);
        self.reserve.fill(0);
        for _ in 0..ROUNDINGS {
            self.solve();
            self.execute(values);
            if self.short().is_empty() || self.repair(values) {
                self.lack = lack;
                return;
            }
            for (reserve, slack) in self.reserve.iter_mut().zip(&self.slack) {
                *reserve = 2 * (*reserve - slack.min(&0));
            }
        }
        self.cut();
        self.lack = lack;
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
