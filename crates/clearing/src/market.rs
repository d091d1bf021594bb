//! Which assets can trade with which, and how the prices of parts become prices of all.
//!
//! Amounts that conserve every asset run in cycles: what is sold for B must be met by offers that sell B, and so on
//! around. So only pairs inside a *strongly connected* part of the graph "an offer sells A for B" can ever trade. A
//! part is solved on its own. Assets that nobody sells, or nobody buys, are parts of one asset and are never solved.
//!
//! Between parts no offer can be met, so fullness asks for prices at which none wants to trade: the valuations of a
//! part are scaled until every offer into it or out of it asks for more than the rate. As parts form no cycle, this is
//! always possible, up to the range of [`Price`]. An asset that is only sold, or only bought, so ends at the best
//! quote for it, or stays where the last batch left it if that is beyond.

use primitives::Price;

use crate::book::Book;
use crate::curve::Curves;
use crate::float::{exp, ln};
use crate::rate::approx;

/// One strongly connected part of the market.
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
    /// Position in the book.
    pub(crate) index: u32,
}

/// The parts of a market.
pub(crate) struct Split {
    /// In an order in which every pair between parts sells an asset of a later part for one of an earlier.
    pub(crate) parts: Vec<Part>,
    /// The part of every asset.
    part_of: Vec<usize>,
}

impl Split {
    pub(crate) fn new(book: &Book) -> Split {
        let (part_of, count) = strong_parts(book);
        let mut parts = vec![Part::default(); count];
        let mut place = vec![0; part_of.len()];
        for (asset, part) in part_of.iter().enumerate() {
            place[asset] = parts[*part].assets.len() as u32;
            parts[*part].assets.push(asset as u32);
        }
        for (index, pair) in book.pairs.iter().enumerate() {
            let (sell, buy) = (pair.sell.0 as usize, pair.buy.0 as usize);
            if part_of[sell] == part_of[buy] {
                let pair = Pair { sell: place[sell], buy: place[buy], index: index as u32 };
                parts[part_of[sell]].pairs.push(pair);
            }
        }
        Split { parts, part_of }
    }

    /// Joins `prices`, given for each part up to a factor of its own, to valuations of all assets.
    pub(crate) fn join(&self, book: &Book, curves: &Curves, prices: &[&[f64]], last: Option<&[Price]>) -> Vec<Price> {
        let mut log = vec![0.0; self.part_of.len()];
        for (part, prices) in self.parts.iter().zip(prices) {
            let own: Vec<f64> = prices.iter().map(|price| ln(*price)).collect();
            let wanted = |at: usize| last.map_or(0.0, |last| ln(approx(last[part.assets[at] as usize])));
            let shift = (0..own.len()).map(|at| wanted(at) - own[at]).sum::<f64>() / own.len() as f64;
            part.assets.iter().zip(own).for_each(|(asset, own)| log[*asset as usize] = own + shift);
        }
        // Without earlier prices nothing speaks against the best quote itself.
        let stay = if last.is_some() { 0.0 } else { f64::NEG_INFINITY };
        self.separate(book, curves, &mut log, stay);
        within_range(&log)
    }

    /// Scales parts until no offer between two of them gains at their prices. The part with most assets stays; others
    /// move by at least `stay`.
    fn separate(&self, book: &Book, curves: &Curves, log: &mut [f64], stay: f64) {
        // Between parts, by the part sold from: (part bought into, pair).
        let mut out = vec![Vec::new(); self.parts.len()];
        for (index, pair) in book.pairs.iter().enumerate() {
            let (from, to) = (self.part_of[pair.sell.0 as usize], self.part_of[pair.buy.0 as usize]);
            if from != to {
                out[from].push((to, index));
            }
        }
        // By how much the best offer of a pair is in the money.
        let gain = |log: &[f64], index: usize| {
            let pair = &book.pairs[index];
            log[pair.sell.0 as usize] - log[pair.buy.0 as usize] - ln(curves.curve(index).prices[0])
        };
        let anchor = (0..self.parts.len()).max_by_key(|part| (self.parts[*part].assets.len(), usize::MAX - part));
        let mut reaches: Vec<bool> = (0..self.parts.len()).map(|part| Some(part) == anchor).collect();
        let mut shift = vec![0.0; self.parts.len()];
        // Parts that sell into the anchor, nearest first, fall.
        for part in 0..self.parts.len() {
            let into = || out[part].iter().filter(|(to, _)| reaches[*to]);
            if Some(part) == anchor || into().next().is_none() {
                continue;
            }
            let excess = into().map(|(to, index)| gain(log, *index) - shift[*to]).fold(stay, f64::max);
            shift[part] = -excess;
            reaches[part] = true;
        }
        // The others rise, those farthest from being bought into first.
        let mut rise = vec![stay; self.parts.len()];
        for part in (0..self.parts.len()).rev() {
            if !reaches[part] && rise[part] > f64::NEG_INFINITY {
                shift[part] = rise[part];
            }
            for (to, index) in &out[part] {
                if !reaches[*to] {
                    rise[*to] = f64::max(rise[*to], gain(log, *index) + shift[part]);
                }
            }
        }
        log.iter_mut().zip(&self.part_of).for_each(|(log, part)| *log += shift[*part]);
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

/// The strongly connected part of every asset, and the number of parts (Tarjan 1972, without recursion). A part is
/// numbered after every part that it sells into.
fn strong_parts(book: &Book) -> (Vec<usize>, usize) {
    const NONE: usize = usize::MAX;
    let assets = book.assets as usize;
    let first = |asset: usize| book.pairs.partition_point(|pair| (pair.sell.0 as usize) < asset);
    let mut part_of = vec![NONE; assets];
    let mut order = vec![NONE; assets];
    let mut low = vec![NONE; assets];
    let (mut parts, mut visited) = (0, 0);
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
            match book.pairs.get(at).filter(|pair| pair.sell.0 as usize == asset) {
                Some(pair) => {
                    *next += 1;
                    let to = pair.buy.0 as usize;
                    if order[to] == NONE {
                        path.push((to, first(to)));
                    } else if part_of[to] == NONE {
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
                        open.drain(members..).for_each(|member| part_of[member] = parts);
                        parts += 1;
                    }
                }
            }
        }
    }
    (part_of, parts)
}
