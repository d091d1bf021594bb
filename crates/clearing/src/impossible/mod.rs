//! A proof that a book has no full clearing at any prices.
//!
//! In real numbers a full clearing always exists; in whole units it need not: where a few offers of units worth a lot face
//! each other, every price may force somebody to be paid units that nobody sells. This module looks for a proof of
//! that.
//!
//! # The way
//!
//! A *zone* is a set of price vectors, given by bounds on the ratios of prices; all prices together are the first zone.
//! In a zone,
//!
//! 1. the rate of every pair lies between two bounds, so some of its offers must fill, some may, others cannot; what
//!    each is paid is bounded by its limit and the lower rate, in whole units: see `lane`;
//! 2. of each asset, no more is paid out than sold. So what a pair may be paid is at most what all sell of the asset less
//!    what others must be paid, and what a pair sells is at least what must be paid out less what others sell. This
//!    narrows amounts, over and over, until nothing changes or an asset lacks what must be paid out of it;
//! 3. nor can the assets on one side of a cut, weighed by any prices, pay out more than is sold of them: what trades between
//!    them gains the auctioneer no more than commission and rounding, and what crosses the cut must cover the rest.
//!
//! A zone in which 2 or 3 fails has no full clearing. Otherwise it is cut in two, at a ratio that decides most about what
//! can be sold of the assets that are short, and both halves are tried. First, ratios far from those at which the book
//! was cleared are ruled out, step by step. If no zone is left, there is no full clearing at any prices.
//!
//! # Properties
//!
//! - **Sound**: every bound is rounded to the side that proves less; limits and pay-outs are compared in integers, as a
//!   clearing does. A book that has a full clearing is never said to have none.
//! - **Not complete**: the zones that may be tried are counted, and a zone too small to be cut is given up.
//! - Never part of [`crate::clear`]; it costs only who asks.
//!
//! # What counts as full
//!
//! At prices so far apart that an offer's pay-out exceeds every unit that can exist, [`crate::Rate::must_fill`] excuses
//! it, and a clearing may be full because nothing can be paid. Such a clearing is no way out, so here such an offer must
//! fill like any other, unless already its limit asks for more than can exist.
//!
//! Pools and buy orders are not bounded here: a part of the market that has any is given up.

mod divide;
mod lane;
mod narrow;
#[cfg(test)]
mod tests;
mod zone;

use primitives::{AssetId, Price};

use crate::book::{Book, PairBook, Params};
use crate::rate::approx;
use lane::Lane;
use zone::Zone;

/// Zones that are tried at most, times the pairs of each; so many offers cost as much as a pair.
const MOST_WORK: usize = 2_000_000;
const OFFERS_PER_PAIR: usize = 4;

/// That no prices have a full clearing has been shown, see [`crate::Market::impossible`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The assets around which it was shown: some of those that were short in the clearing.
    pub assets: Vec<AssetId>,
    /// Zones of prices that were ruled out.
    pub zones: u32,
}

impl Impossible {
    /// What was shown, with the names that `name` gives to assets.
    pub fn in_words(&self, name: impl Fn(AssetId) -> String) -> String {
        let names: Vec<String> = self.assets.iter().map(|asset| name(*asset)).collect();
        let (zones, names) = (self.zones, names.join(", "));
        format!(
            "no prices whatever have a full clearing in whole units: {zones} ranges of prices around {names} were ruled out"
        )
    }
}

/// Tries to show that `book` has no full clearing; `valuations` are those of its clearing, in which `short` were short.
pub(crate) fn impossible(book: &Book, params: &Params, valuations: &[Price], short: &[AssetId]) -> Option<Impossible> {
    if !book.pools.is_empty() || !book.buys.is_empty() {
        return None;
    }
    let mut seen = vec![false; book.assets as usize];
    short.iter().find_map(|asset| {
        if seen[asset.0 as usize] {
            return None;
        }
        let around = connected(book, *asset);
        around.iter().for_each(|asset| seen[*asset as usize] = true);
        let mut proof = Proof::new(book, params, valuations, &around, short);
        proof.rule_out(Zone::all(around.len()), 0).then(|| proof.conclusion(&around))
    })
}

/// The assets that trade, by whatever way, with `asset`; rising.
fn connected(book: &Book, asset: AssetId) -> Vec<u32> {
    let mut reached = vec![false; book.assets as usize];
    reached[asset.0 as usize] = true;
    loop {
        let before = reached.iter().filter(|reached| **reached).count();
        for pair in &book.pairs {
            let (sell, buy) = (pair.sell.0 as usize, pair.buy.0 as usize);
            (reached[sell], reached[buy]) = (reached[sell] || reached[buy], reached[sell] || reached[buy]);
        }
        if reached.iter().filter(|reached| **reached).count() == before {
            return (0..book.assets).filter(|asset| reached[*asset as usize]).collect();
        }
    }
}

/// A pair between two assets of the proof.
struct Link<'a> {
    pair: &'a PairBook<'a>,
    sell: usize,
    buy: usize,
    /// The bounds on its rate last asked about, and what they allow.
    known: Option<((f64, f64), Lane)>,
}

struct Proof<'a> {
    params: &'a Params,
    links: Vec<Link<'a>>,
    /// Prices of the clearing.
    center: Vec<f64>,
    /// Assets that are short in the clearing.
    short: Vec<bool>,
    left: usize,
    zones: u32,
}

impl<'a> Proof<'a> {
    fn new(book: &'a Book, params: &'a Params, valuations: &[Price], assets: &[u32], short: &[AssetId]) -> Proof<'a> {
        let place = |asset: AssetId| assets.binary_search(&asset.0).ok();
        let link =
            |pair: &'a PairBook<'a>| Some(Link { pair, sell: place(pair.sell)?, buy: place(pair.buy)?, known: None });
        let links: Vec<Link> = book.pairs.iter().filter_map(link).collect();
        let mut is_short = vec![false; assets.len()];
        short.iter().filter_map(|asset| place(*asset)).for_each(|place| is_short[place] = true);
        Proof {
            left: MOST_WORK / links.iter().map(|link| 1 + link.pair.len() / OFFERS_PER_PAIR).sum::<usize>().max(1),
            params,
            links,
            center: assets.iter().map(|asset| approx(valuations[*asset as usize])).collect(),
            short: is_short,
            zones: 0,
        }
    }

    fn conclusion(&self, assets: &[u32]) -> Impossible {
        let short = assets.iter().zip(&self.short).filter(|(_, short)| **short);
        Impossible { assets: short.map(|(asset, _)| AssetId(*asset)).collect(), zones: self.zones }
    }

    /// Whether no full clearing lies in `zone`, as far as it can be seen within what is left to try.
    fn rule_out(&mut self, zone: Zone, depth: u32) -> bool {
        if self.is_empty(&zone) {
            return true;
        }
        let Some(zone) = (if depth.is_multiple_of(6) { self.shaved(zone, depth > 0) } else { Some(zone) }) else {
            return true;
        };
        let Some((i, j, bound)) = self.cut(&zone) else { return false };
        let halves = [zone.below(i, j, bound), zone.above(i, j, bound)];
        halves.into_iter().flatten().all(|half| self.left > 0 && self.rule_out(half, depth + 1))
    }

    /// Whether amounts contradict each other in `zone`.
    fn is_empty(&mut self, zone: &Zone) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let mut lanes = self.lanes(zone);
        let empty = self.narrow(&mut lanes) || self.is_cut(zone, &lanes);
        self.zones += u32::from(empty);
        empty
    }

    fn lanes(&mut self, zone: &Zone) -> Vec<Lane> {
        let params = self.params;
        let lane = |link: &mut Link| {
            let range = (zone.least(link.sell, link.buy), zone.most(link.sell, link.buy));
            if link.known.as_ref().is_none_or(|known| known.0 != range) {
                link.known = Some((range, Lane::new(link.pair, params, range.0, range.1)));
            }
            link.known.as_ref().expect("it is known now").1.clone()
        };
        self.links.iter_mut().map(lane).collect()
    }
}
