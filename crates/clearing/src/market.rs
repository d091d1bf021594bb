//! Which assets can trade with which, and how the prices of parts become prices of all.
//!
//! Pools count as offers both ways. Amounts that conserve every asset run in cycles: what is sold for B must be met by offers that sell B, and so on
//! around. So only pairs inside a *strongly connected group* of the graph "an offer sells A for B" can ever trade.
//! Assets that nobody sells, or nobody buys, are groups of one asset and are never solved.
//!
//! A group falls into *parts* that share no more than one asset each: the blocks of its block-cut tree. As every other
//! asset of a part balances within it, so does the shared one, and each part can be solved on its own (SPEEDEX appendix
//! E, of which stocks that trade against one numeraire each are the plainest case). Parts of a group are then scaled to
//! agree on the assets that they share.
//!
//! Between groups no offer can be met, so fullness asks for prices at which none wants to trade: the valuations of a
//! group are scaled until every offer into it or out of it asks for at least the rate. As groups form no cycle, this is
//! always possible, up to the range of [`Price`]. An asset that is only sold, or only bought, so ends at the best
//! quote for it, or stays where the last batch left it if that is beyond.

use primitives::{AssetId, Price};

use crate::blocks::blocks;
use crate::book::{Book, PairBook};
use crate::float::{exp, ln};
use crate::pool::Pool;
use crate::rate::approx;
use crate::supply::Supply;

/// One part of the market that is solved on its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Asset ids, rising.
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
    /// The link of the book: a pair of it, or a side of a pool.
    pub(crate) index: u32,
}

impl Part {
    /// This part as a market of its own: whatever is done with it there costs no more than it is large.
    pub(crate) fn alone<'a>(&self, book: &Book<'a>) -> (Book<'a>, Part) {
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
        let book = Book { assets: self.assets.len() as u32, pairs, pools, ..Book::default() };
        let part = part(&book, &(0..book.links()).collect::<Vec<_>>());
        (book, part)
    }
}

/// The parts of a market.
pub(crate) struct Split {
    /// Parts of one group stand so that each but the first shares one asset with those before it.
    pub(crate) parts: Vec<Part>,
    /// The group of every asset. A pair between groups sells an asset of a later group for one of an earlier.
    group_of: Vec<usize>,
    groups: usize,
}

impl Split {
    pub(crate) fn new(book: &Book) -> Split {
        let (group_of, groups) = strong_groups(book);
        let within = |index: &usize| {
            let (sell, buy) = book.link(*index);
            group_of[sell.0 as usize] == group_of[buy.0 as usize]
        };
        let inner: Vec<usize> = (0..book.links()).filter(within).collect();
        let parts = blocks(book, &inner).into_iter().map(|pairs| part(book, &pairs)).collect();
        Split { parts, group_of, groups }
    }

    /// Whether all that can trade is one group.
    pub(crate) fn is_one(&self) -> bool {
        self.parts.iter().all(|part| self.group(part) == self.group(&self.parts[0]))
    }

    /// The group that `part` is of.
    fn group(&self, part: &Part) -> usize {
        self.group_of[part.assets[0] as usize]
    }

    /// The groups of which some of `assets` are, each as one part.
    pub(crate) fn groups_of(&self, book: &Book, assets: &[AssetId]) -> Vec<Part> {
        let mut links = vec![Vec::new(); self.groups];
        for part in &self.parts {
            links[self.group(part)].extend(part.pairs.iter().map(|pair| pair.index as usize));
        }
        let mut groups: Vec<usize> = assets.iter().map(|asset| self.group_of[asset.0 as usize]).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.retain(|group| !links[*group].is_empty());
        groups.into_iter().map(|group| part(book, &links[group])).collect()
    }

    /// Joins `prices`, given for each part up to a factor of its own, to valuations of all assets.
    pub(crate) fn join(&self, book: &Book, supply: &Supply, prices: &[&[f64]], last: Option<&[Price]>) -> Vec<Price> {
        let mut log: Vec<Option<f64>> = vec![None; self.group_of.len()];
        for (part, prices) in self.parts.iter().zip(prices) {
            let own: Vec<f64> = prices.iter().map(|price| ln(*price)).collect();
            let shared = (0..own.len()).find_map(|at| Some(log[part.assets[at] as usize]? - own[at]));
            for (asset, own) in part.assets.iter().zip(own) {
                log[*asset as usize].get_or_insert(own + shared.unwrap_or(0.0));
            }
        }
        let mut log: Vec<f64> = log.into_iter().map(Option::unwrap_or_default).collect();
        self.follow(&mut log, last);
        // Without earlier prices nothing speaks against the best quote itself.
        let stay = if last.is_some() { 0.0 } else { f64::NEG_INFINITY };
        self.separate(book, supply, &mut log, stay);
        within_range(&log)
    }

    /// Scales each group so that its prices are those of `last` on average, or 1.
    fn follow(&self, log: &mut [f64], last: Option<&[Price]>) {
        let mut sums = vec![(0.0, 0.0); self.groups];
        for (asset, group) in self.group_of.iter().enumerate() {
            sums[*group].0 += last.map_or(0.0, |last| ln(approx(last[asset]))) - log[asset];
            sums[*group].1 += 1.0;
        }
        log.iter_mut().zip(&self.group_of).for_each(|(log, group)| *log += sums[*group].0 / sums[*group].1);
    }

    /// Scales groups until no offer between two of them gains at their prices. The group with most assets stays; others
    /// move by at least `stay`.
    fn separate(&self, book: &Book, supply: &Supply, log: &mut [f64], stay: f64) {
        // Between groups, by the group sold from: (group bought into, pair).
        let mut out = vec![Vec::new(); self.groups];
        for (index, pair) in book.pairs.iter().enumerate() {
            let (from, to) = (self.group_of[pair.sell.0 as usize], self.group_of[pair.buy.0 as usize]);
            if from != to {
                out[from].push((to, index));
            }
        }
        // By how much the best offer of a pair is in the money.
        let gain = |log: &[f64], index: usize| {
            let pair = &book.pairs[index];
            log[pair.sell.0 as usize] - log[pair.buy.0 as usize] - ln(approx(supply.curve(index).lowest()))
        };
        let mut sizes = vec![0; self.groups];
        self.group_of.iter().for_each(|group| sizes[*group] += 1);
        let anchor = (0..self.groups).max_by_key(|group| (sizes[*group], usize::MAX - group));
        let mut reaches: Vec<bool> = (0..self.groups).map(|group| Some(group) == anchor).collect();
        let mut shift = vec![0.0; self.groups];
        // Groups that sell into the anchor, nearest first, fall.
        for group in 0..self.groups {
            let into = || out[group].iter().filter(|(to, _)| reaches[*to]);
            if Some(group) == anchor || into().next().is_none() {
                continue;
            }
            let excess = into().map(|(to, index)| gain(log, *index) - shift[*to]).fold(stay, f64::max);
            shift[group] = -excess;
            reaches[group] = true;
        }
        // The others rise, those farthest from being bought into first.
        let mut rise = vec![stay; self.groups];
        for group in (0..self.groups).rev() {
            if !reaches[group] && rise[group] > f64::NEG_INFINITY {
                shift[group] = rise[group];
            }
            for (to, index) in &out[group] {
                if !reaches[*to] {
                    rise[*to] = f64::max(rise[*to], gain(log, *index) + shift[group]);
                }
            }
        }
        log.iter_mut().zip(&self.group_of).for_each(|(log, group)| *log += shift[*group]);
    }
}

/// Prices from logarithms, shifted to fit the range if they can be, cut off at its ends if not.
fn within_range(log: &[f64]) -> Vec<Price> {
    const END: f64 = 41.4;
    let most = log.iter().copied().fold(f64::MIN, f64::max);
    let least = log.iter().copied().fold(f64::MAX, f64::min);
    let shift = if most > END || least < -END { -(most + least) / 2.0 } else { 0.0 };
    let price = |log: &f64| Price::from_f64(exp((log + shift).clamp(-END, END))).expect("within the range of prices");
    log.iter().map(price).collect()
}

/// The part that `pairs` make up.
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
    const NONE: usize = usize::MAX;
    let assets = book.assets as usize;
    let mut links: Vec<(AssetId, AssetId)> = (0..book.links()).map(|link| book.link(link)).collect();
    if !book.pools.is_empty() {
        links.sort_unstable();
    }
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
