//! Which assets can trade with which, and how the prices of parts are joined to prices of all assets.
//!
//! Pools count as offers both ways. Amounts that conserve every asset run in cycles: what is sold for B must be met
//! by offers that sell B, and so on around. So only pairs inside a *strongly connected group* of the graph "an offer
//! sells A for B" can trade. Assets that nobody sells, or nobody buys, are groups of one asset.
//!
//! A group falls into *parts* that share at most one asset with each other: the blocks of its block-cut tree. As
//! every other asset of a part balances within it, so does the shared one, and each part can be solved on its own
//! (SPEEDEX appendix E; the simplest case is stocks that trade against one numeraire each). Parts of a group are then
//! scaled to agree on the assets that they share.
//!
//! Between groups there is no price. Nothing trades there, and fullness does not cover such pairs. Each group is
//! scaled on its own: its first asset keeps the price of the last batch, so that no other asset's past moves the
//! scale, and all are moved into the range of [`Price`] where they fit. An asset that is a group of its own keeps its
//! last valuation.

use primitives::{AssetId, Price};

use crate::blocks::blocks;
use crate::book::{Book, PairBook};
use crate::float::{exp, ln};
use crate::pool::Pool;
use crate::range::{END, to_price};
use crate::rate::approx;

/// One part of the market that is solved on its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Asset ids, ascending.
    pub(crate) assets: Vec<u32>,
    /// Pairs between them.
    pub(crate) pairs: Vec<Pair>,
}

/// A pair inside a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// Positions in [`Part::assets`].
    pub(crate) sell: u32,
    pub(crate) buy: u32,
    /// The link of the book: a pair, or a side of a pool.
    pub(crate) index: u32,
}

impl Part {
    /// The book of this part alone, and for each of its links the link of `book`. Work on it costs time in proportion
    /// to its size only.
    pub(crate) fn alone<'a>(&self, book: &Book<'a>) -> (Book<'a>, Vec<usize>) {
        let place = |asset: AssetId| AssetId(self.assets.binary_search(&asset.0).expect("an asset of the part") as u32);
        let mut links: Vec<usize> = self.pairs.iter().map(|pair| pair.index as usize).collect();
        links.sort_unstable();
        let pool_of = |link: &usize| link.checked_sub(book.pairs.len());
        let pairs = links.iter().filter_map(|link| book.pairs.get(*link)).map(|pair| {
            let PairBook { sell, buy, runs } = pair;
            PairBook { sell: place(*sell), buy: place(*buy), runs: runs.clone() }
        });
        // Both sides of a pool are between the same two assets, and so in one part.
        let pools = links.iter().filter_map(pool_of).filter(|side| side.is_multiple_of(2)).map(|side| {
            let pool = book.pools[side / 2];
            Pool { a: place(pool.a), b: place(pool.b), ..pool }
        });
        let (pairs, pools) = (pairs.collect(), pools.collect());
        (Book { assets: self.assets.len() as u32, pairs, pools, ..Book::default() }, links)
    }

    /// Number of offers.
    pub(crate) fn offers(&self, book: &Book) -> usize {
        self.pairs.iter().filter_map(|pair| book.pairs.get(pair.index as usize)).map(PairBook::len).sum()
    }

    /// Whether `asset` belongs to this part.
    pub(crate) fn has(&self, asset: AssetId) -> bool {
        self.assets.binary_search(&asset.0).is_ok()
    }

    /// Selects the values of this part's assets from values for all assets.
    pub(crate) fn of_part<T: Copy>(&self, all: &[T]) -> Vec<T> {
        self.assets.iter().map(|asset| all[*asset as usize]).collect()
    }
}

/// The strongly connected group of every asset: each asset of a group can be obtained for each other one, by some
/// chain of offers. Only inside groups is there a price, and can anything trade.
#[derive(Clone, Debug)]
pub struct Groups(Vec<usize>);

impl Groups {
    /// The groups of the offers and pools of `book`.
    pub fn of_book(book: &Book) -> Groups {
        Groups(strong_groups(book).0)
    }

    /// The groups of so many assets and the ordered pairs (sold, bought) that have offers, in ascending order.
    pub fn of_pairs(assets: u32, pairs: &[(AssetId, AssetId)]) -> Groups {
        Groups(strong_groups_of(assets, pairs).0)
    }

    /// For each asset, whether its group has another asset, so that it has a price.
    pub fn priced(&self) -> Vec<bool> {
        let mut members = vec![0u32; self.0.len()];
        self.0.iter().for_each(|group| members[*group] += 1);
        self.0.iter().map(|group| members[*group] > 1).collect()
    }

    /// The lowest asset of each group that has several, ascending.
    pub fn lowest(&self) -> Vec<AssetId> {
        let mut seen = vec![false; self.0.len()];
        let is_first = |group: usize| !std::mem::replace(&mut seen[group], true);
        let lowest: Vec<bool> = self.0.iter().copied().map(is_first).collect();
        let several =
            self.priced().into_iter().zip(lowest).enumerate().filter(|(_, (priced, lowest))| *priced && *lowest);
        several.map(|(asset, _)| AssetId(asset as u32)).collect()
    }

    /// For each asset, whether its group contains one of `named`. Assets beyond the book are of no group.
    pub fn contain(&self, named: &[AssetId]) -> Vec<bool> {
        let mut chosen = vec![false; self.0.len()];
        named.iter().filter_map(|asset| self.0.get(asset.0 as usize)).for_each(|group| chosen[*group] = true);
        self.0.iter().map(|group| chosen[*group]).collect()
    }

    /// The number of the group of `asset`; less than the number of assets.
    pub(crate) fn number(&self, asset: AssetId) -> usize {
        self.0[asset.0 as usize]
    }

    /// Whether both assets are in one group, so that they can trade.
    pub fn are_one(&self, a: AssetId, b: AssetId) -> bool {
        is_within(&self.0, (a, b))
    }
}

/// The parts of a market.
pub(crate) struct Split {
    /// Ordered so that each part of a group but the first shares one asset with those before it.
    pub(crate) parts: Vec<Part>,
    /// The links inside groups, ascending.
    pub(crate) links: Vec<usize>,
    /// The group of every asset.
    group_of: Vec<usize>,
    groups: usize,
}

impl Split {
    pub(crate) fn new(book: &Book) -> Split {
        let (group_of, groups) = strong_groups(book);
        let links: Vec<usize> = (0..book.links()).filter(|link| is_within(&group_of, book.link(*link))).collect();
        let parts = blocks(book, &links).into_iter().map(|pairs| part(book, &pairs)).collect();
        Split { parts, links, group_of, groups }
    }

    /// Whether both assets are in one group, so that they can trade.
    pub(crate) fn is_within(&self, pair: (AssetId, AssetId)) -> bool {
        is_within(&self.group_of, pair)
    }

    /// The number of the group of `asset`.
    pub(crate) fn group(&self, asset: AssetId) -> usize {
        self.group_of[asset.0 as usize]
    }

    /// The positions of all parts of the groups that contain any of `assets`, ascending.
    pub(crate) fn parts_with(&self, assets: impl Iterator<Item = AssetId>) -> Vec<usize> {
        let mut chosen = vec![false; self.groups];
        assets.for_each(|asset| chosen[self.group_of[asset.0 as usize]] = true);
        let is_chosen = |part: &Part| chosen[self.group_of[part.assets[0] as usize]];
        (0..self.parts.len()).filter(|number| is_chosen(&self.parts[*number])).collect()
    }

    /// The lowest assets of the groups that contain any of `assets`, ascending.
    pub(crate) fn lowest_of(&self, assets: impl Iterator<Item = AssetId>) -> Vec<AssetId> {
        let lowest = |asset: AssetId| self.group_of.iter().position(|group| *group == self.group(asset));
        let mut lowest: Vec<AssetId> = assets.filter_map(lowest).map(|lowest| AssetId(lowest as u32)).collect();
        lowest.sort_unstable();
        lowest.dedup();
        lowest
    }

    /// Whether no other part shares a group with that at position `number`. Parts of a group are adjacent.
    pub(crate) fn is_alone(&self, number: usize) -> bool {
        let group = |number: usize| self.parts.get(number).map(|part| self.group_of[part.assets[0] as usize]);
        let before = number.checked_sub(1).and_then(group);
        before != group(number) && group(number + 1) != group(number)
    }

    /// Joins `prices`, given for each part up to a factor, to valuations of all assets.
    pub(crate) fn join(&self, prices: &[&[f64]], last: Option<&[Price]>) -> Vec<Price> {
        let mut log: Vec<Option<f64>> = vec![None; self.group_of.len()];
        for (part, prices) in self.parts.iter().zip(prices) {
            let own: Vec<f64> = prices.iter().map(|price| ln(*price)).collect();
            let shared = (0..own.len()).find_map(|at| Some(log[part.assets[at] as usize]? - own[at]));
            for (asset, own) in part.assets.iter().zip(own) {
                log[*asset as usize].get_or_insert(own + shared.unwrap_or(0.0));
            }
        }
        let shift = self.shifts(&log, last);
        let before = |asset: usize| last.map_or(Price::ONE, |last| last[asset]);
        let price = |(asset, log): (usize, &Option<f64>)| match log {
            Some(log) => to_price(exp((log + shift[self.group_of[asset]]).clamp(-END, END))),
            None => before(asset),
        };
        log.iter().enumerate().map(price).collect()
    }

    /// The shift of the logarithms of each group: to that of its first asset in `last`, or to 0 on average, and into
    /// the range.
    fn shifts(&self, log: &[Option<f64>], last: Option<&[Price]>) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY); self.groups];
        for (asset, log) in log.iter().enumerate().filter_map(|(asset, log)| Some((asset, (*log)?))) {
            let (sum, count, least, most) = &mut sums[self.group_of[asset]];
            match last {
                Some(last) if *count == 0.0 => (*sum, *count) = (ln(approx(last[asset])) - log, 1.0),
                Some(_) => {}
                None => (*sum, *count) = (*sum - log, *count + 1.0),
            }
            (*least, *most) = (least.min(log), most.max(log));
        }
        let shift = |(sum, count, least, most): (f64, f64, f64, f64)| {
            let mean = if count > 0.0 { sum / count } else { 0.0 };
            if least + mean < -END || most + mean > END { -0.5 * (least + most) } else { mean }
        };
        sums.into_iter().map(shift).collect()
    }
}

fn is_within(group_of: &[usize], (sell, buy): (AssetId, AssetId)) -> bool {
    group_of[sell.0 as usize] == group_of[buy.0 as usize]
}

/// The part that consists of `pairs`.
fn part(book: &Book, pairs: &[usize]) -> Part {
    let ends = |index: &usize| {
        let (sell, buy) = book.link(*index);
        [sell.0, buy.0]
    };
    let mut assets: Vec<u32> = pairs.iter().flat_map(ends).collect();
    assets.sort_unstable();
    assets.dedup();
    let place = |asset: u32| assets.binary_search(&asset).expect("every asset is listed") as u32;
    let pair = |index: &usize| {
        let [sell, buy] = ends(index).map(place);
        Pair { sell, buy, index: *index as u32 }
    };
    Part { pairs: pairs.iter().map(pair).collect(), assets }
}

/// The strongly connected group of every asset, and the number of groups (Tarjan 1972, without recursion). A group is
/// numbered after every group that it sells into.
fn strong_groups(book: &Book) -> (Vec<usize>, usize) {
    let mut links: Vec<(AssetId, AssetId)> = (0..book.links()).map(|link| book.link(link)).collect();
    if !book.pools.is_empty() {
        links.sort_unstable();
    }
    strong_groups_of(book.assets, &links)
}

/// As [`strong_groups`], for `links` in ascending order.
fn strong_groups_of(assets: u32, links: &[(AssetId, AssetId)]) -> (Vec<usize>, usize) {
    const NONE: usize = usize::MAX;
    let assets = assets as usize;
    let first = |asset: usize| links.partition_point(|link| (link.0.0 as usize) < asset);
    let mut group_of = vec![NONE; assets];
    let mut order = vec![NONE; assets];
    let mut low = vec![NONE; assets];
    let (mut groups, mut visited) = (0, 0);
    let (mut open, mut path): (Vec<usize>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    for root in 0..assets {
        if order[root] == NONE {
            path.push((root, first(root)));
        }
        while let Some((asset, next)) = path.last_mut() {
            let (asset, at) = (*asset, *next);
            if order[asset] == NONE {
                (order[asset], low[asset]) = (visited, visited);
                visited += 1;
                open.push(asset);
            }
            match links.get(at).filter(|link| link.0.0 as usize == asset) {
                Some(link) => {
                    *next += 1;
                    let to = link.1.0 as usize;
                    if order[to] == NONE {
                        path.push((to, first(to)));
                    } else if group_of[to] == NONE {
                        low[asset] = low[asset].min(order[to]);
                    }
                }
                None => {
                    path.pop();
                    if let Some((parent, _)) = path.last() {
                        low[*parent] = low[*parent].min(low[asset]);
                    }
                    if low[asset] == order[asset] {
                        let members = open.iter().rposition(|a| *a == asset).expect("a root is open");
                        open.drain(members..).for_each(|member| group_of[member] = groups);
                        groups += 1;
                    }
                }
            }
        }
    }
    (group_of, groups)
}
