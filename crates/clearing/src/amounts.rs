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
//! Assets that trade with each other at these prices, by whatever way, and with no others are a *group*: nothing that happens
//! in one matters to another. So each has a program of its own, and what is short in one takes nothing from the rest.
//!
//! A pool is one more pair, from the side that it sells at these prices. Buy orders come last: see `order`.
//!
//! **Deviations from the paper**: no floating-point linear program; with ε = 0 and ε > 0 the same method. When L
//! cannot be met, all lower bounds are dropped as in appendix D, and the assets in short supply are named.

use primitives::{Amount, AssetId, Price};
use rayon::prelude::*;

use crate::arc::{Arc, arc};
use crate::book::{Book, Params};
use crate::connected::connected;
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
    if let Some(amounts) = with_orders(book, supply, params, valuations) {
        return (amounts, Lack::new());
    }
    let mut flows = Flows::new(book, supply, params, valuations, (0..book.links()).collect());
    if flows.fit() {
        return (flows.amounts(), Lack::new());
    }
    flows.maximise();
    (flows.amounts(), flows.lack())
}

/// The same, if they are full at these `valuations`; what is lacking if not.
pub(crate) fn full_amounts(
    book: &Book,
    supply: &Supply,
    params: &Params,
    valuations: &[Price],
) -> Result<Amounts, (Lack, Spending)> {
    if let Some(amounts) = with_orders(book, supply, params, valuations) {
        return Ok(amounts);
    }
    let mut flows = Flows::new(book, supply, params, valuations, (0..book.links()).collect());
    if flows.fit() { Ok(flows.amounts()) } else { Err((flows.lack(), flows.spending())) }
}

/// The amounts and the buy orders that are filled, if there are any orders, and amounts are full without them.
fn with_orders(book: &Book, supply: &Supply, params: &Params, valuations: &[Price]) -> Option<Amounts> {
    if book.buys.is_empty() {
        return None;
    }
    // An order takes from what one asset leaves and adds to another, of whatever groups: all is one.
    let arcs = arcs(book, supply, params, valuations, (0..book.links()).collect());
    let group = Group::new((0..book.assets as usize).collect(), arcs, valuations);
    let mut flows = Flows { book, groups: vec![group] };
    flows.fit().then(|| {
        let Group { program, values, .. } = &mut flows.groups[0];
        let buys = program.fill_orders(book, params, valuations, values);
        Amounts { buys, ..flows.amounts() }
    })
}

/// What `links` alone lack at `valuations`; `None` if they have full amounts there.
pub(crate) fn lack_of(
    book: &Book,
    supply: &Supply,
    params: &Params,
    valuations: &[Price],
    links: Vec<usize>,
) -> (Option<Lack>, Spending) {
    let mut flows = Flows::new(book, supply, params, valuations, links);
    let full = flows.fit();
    ((!full).then(|| flows.lack()), flows.spending())
}

/// The amounts of `links` alone at `valuations`.
pub(crate) fn amounts_of(
    book: &Book,
    supply: &Supply,
    params: &Params,
    valuations: &[Price],
    links: Vec<usize>,
) -> Amounts {
    let mut flows = Flows::new(book, supply, params, valuations, links);
    if !flows.fit() {
        flows.maximise();
    }
    flows.amounts()
}

/// Whether `links` alone have full amounts at `valuations`.
pub(crate) fn are_full(book: &Book, supply: &Supply, params: &Params, valuations: &[Price], links: Vec<usize>) -> bool {
    Flows::new(book, supply, params, valuations, links).fit()
}

/// All that trades at some prices.
struct Flows<'a> {
    book: &'a Book<'a>,
    groups: Vec<Group<'a>>,
}

/// What trades among assets that trade with no others.
struct Group<'a> {
    /// Rising; the program knows them by their places here.
    assets: Vec<usize>,
    values: Vec<f64>,
    program: Program<'a>,
    /// Places of the assets that are short, once it has been tried to meet every bound.
    short: Vec<usize>,
}

impl<'a> Flows<'a> {
    fn new(
        book: &'a Book<'a>,
        supply: &'a Supply<'a>,
        params: &Params,
        valuations: &[Price],
        links: Vec<usize>,
    ) -> Flows<'a> {
        let groups = apart(book.assets as usize, arcs(book, supply, params, valuations, links));
        let group = |(assets, arcs)| Group::new(assets, arcs, valuations);
        Flows { book, groups: groups.into_iter().map(group).collect() }
    }

    /// Finds amounts that meet every bound, where there are any; false if something is short.
    fn fit(&mut self) -> bool {
        self.groups.par_iter_mut().for_each(|group| group.short = group.program.fit(&group.values));
        self.groups.iter().all(|group| group.short.is_empty())
    }

    /// Lets groups in which something is short trade as much as they can.
    fn maximise(&mut self) {
        let short = self.groups.par_iter_mut().filter(|group| !group.short.is_empty());
        short.for_each(|group| group.program.maximise(&group.values));
    }

    fn lack(&self) -> Lack {
        let mut lack = vec![0.0; self.book.assets as usize];
        for group in self.groups.iter().filter(|group| !group.short.is_empty()) {
            group.assets.iter().zip(&group.program.lack).for_each(|(asset, own)| lack[*asset] = *own);
        }
        lack
    }

    /// As one try.
    fn spending(&self) -> Spending {
        let all = self.groups.iter().map(|group| group.program.spending).fold(Spending::default(), Spending::plus);
        Spending { tries: 1, ..all }
    }

    fn amounts(&self) -> Amounts {
        let book = self.book;
        let (mut sold, mut pools) = (vec![0; book.pairs.len()], Vec::new());
        for arc in self.groups.iter().flat_map(|group| &group.program.arcs).filter(|arc| arc.sold > 0) {
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
        let of_group =
            |group: &Group| group.short.iter().map(|at| AssetId(group.assets[*at] as u32)).collect::<Vec<_>>();
        let mut short: Vec<AssetId> = self.groups.iter().flat_map(of_group).collect();
        short.sort_unstable();
        Amounts { sold, pools, buys: Vec::new(), full: short.is_empty(), short, spending: self.spending() }
    }
}

impl<'a> Group<'a> {
    fn new(assets: Vec<usize>, arcs: Vec<Arc<'a>>, valuations: &[Price]) -> Group<'a> {
        let values = assets.iter().map(|asset| approx(valuations[*asset])).collect();
        Group { values, program: Program::new(assets.len(), arcs), assets, short: Vec::new() }
    }
}

/// What `links` have to trade.
fn arcs<'a>(
    book: &'a Book<'a>,
    supply: &'a Supply<'a>,
    params: &Params,
    valuations: &[Price],
    links: Vec<usize>,
) -> Vec<Arc<'a>> {
    let links = links.into_par_iter().with_min_len(64);
    links.filter_map(|link| arc(book, supply, params, valuations, link)).collect()
}

/// The groups that `arcs` fall into: the assets of each, rising, and its arcs, with assets named by their places there.
fn apart(assets: usize, arcs: Vec<Arc>) -> Vec<(Vec<usize>, Vec<Arc>)> {
    let (group_of, count) = connected(assets, arcs.iter().map(|arc| (arc.sell, arc.buy)));
    let mut groups: Vec<(Vec<usize>, Vec<Arc>)> = (0..count).map(|_| Default::default()).collect();
    let mut place = vec![0; group_of.len()];
    for (asset, group) in group_of.iter().enumerate().filter_map(|(asset, group)| Some((asset, (*group)?))) {
        place[asset] = groups[group].0.len();
        groups[group].0.push(asset);
    }
    for mut arc in arcs {
        let group = group_of[arc.sell].expect("what trades has a group");
        (arc.sell, arc.buy) = (place[arc.sell], place[arc.buy]);
        groups[group].1.push(arc);
    }
    groups
}

impl Program<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{hard, hard_of_any_size};
    use crate::{BuyOrder, Offer, Rate, SortedOffers, clear, fills, verify};

    /// A book that no prices clear in full, and beside it one that has a full clearing: its offers fill as if it were alone.
    #[test]
    fn what_is_short_takes_nothing_from_what_trades_apart() {
        let poor = hard_of_any_size(580);
        [5, 6, 7, 8, 9, 11].into_iter().for_each(|seed| are_apart(&poor.book(), &hard(1_000, seed).book()));
    }

    fn are_apart(poor: &Book, plain: &Book) {
        let moved = |book: &Book, by: u32| -> Vec<Offer> {
            let of = |pair: &crate::PairBook| -> Vec<Offer> {
                let [sell, buy] = [pair.sell, pair.buy].map(|asset| AssetId(asset.0 + by));
                pair.offers().map(|(limit, amount)| Offer { sell, buy, amount, limit }).collect()
            };
            book.pairs.iter().flat_map(of).collect()
        };
        let offers = [moved(poor, 0), moved(plain, poor.assets)].concat();
        let (sorted, params) = (SortedOffers::new(poor.assets + plain.assets, &offers), Params::default());
        let book = sorted.book();
        let clearing = clear(&book, &params, None).expect("a proper book");
        verify(&book, &params, &clearing).expect("it verifies");
        assert!(!clearing.full && clear(plain, &params, None).expect("a proper book").full);
        // Nor do orders join what trades apart.
        let order = BuyOrder { buy: AssetId(0), sell: AssetId(poor.assets), bought: 1, most: 1 };
        let with_order = Book { buys: vec![order], ..book.clone() };
        assert_eq!(clear(&with_order, &params, None).expect("a proper book").trades, clearing.trades);
        for pair in book.pairs.iter().filter(|pair| pair.sell.0 >= poor.assets) {
            let [own, other] = [pair.sell, pair.buy].map(|asset| clearing.valuations[asset.0 as usize]);
            let rate = Rate::new(own, other, params.epsilon, params.mu);
            let trade = clearing.trades.iter().find(|trade| (trade.sell, trade.buy) == (pair.sell, pair.buy));
            let filled = fills(pair, &rate, trade.map_or(0, |trade| trade.sold));
            let is_filled = |at: &usize| *at < filled.full && !filled.holes.contains(at);
            let must = pair.offers().enumerate().filter(|(_, offer)| rate.must_fill(offer.0, offer.1));
            let left: Vec<_> = must.filter(|(at, _)| !is_filled(at)).collect();
            assert!(left.is_empty(), "{} for {}: {left:?}", pair.sell.0, pair.buy.0);
        }
    }
}
