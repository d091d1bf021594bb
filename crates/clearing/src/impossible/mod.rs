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
//!    what others must be paid, and what a pair sells is at least what must be paid out less what others sell;
//! 3. nor is much more sold than paid out: all that the auctioneer keeps is commission and what rounding leaves. That of
//!    all pairs together bounds the surplus of each asset, and where one unit is worth more than that, what is sold of the
//!    asset is paid out to the last unit;
//! 4. amounts say something about rates, too: no rate is possible at which more would have to fill, or be paid, than can
//!    be, or at which less could be sold than must be; and the rate is about what is paid over what is sold. Ratios of
//!    other prices follow;
//! 5. nor can some assets together pay out more than is sold of them, weighed by any prices: what trades between them gains
//!    the auctioneer no more than commission and rounding. Which assets to look at together is a flow problem: see
//!    `worth`.
//!
//! 2 to 4 narrow amounts and ratios, over and over, until nothing changes or something contradicts itself. A zone in which
//! something does, or in which 5 fails, has no full clearing. First, ratios far from those at which the book was cleared
//! are ruled out, step by step. What is left is cut in two, at a ratio at which it changes for some offer whether it fills
//! or what it is paid, or by the units that a pair sells, and both halves are tried. If no zone is left, there is no full
//! clearing at any prices.
//!
//! Where to cut decides how many zones there are. Assets, and pairs of them, that were contradicted are cut first, the
//! latest more than the earlier ones (Boussemart, Hemery, Lecoutre and Sais 2004); and where a half was just ruled out at
//! once, the next zones are cut there, too, so that cuts that did not matter are not tried both ways over and over
//! (Lecoutre, Sais, Tabary and Vidal 2009).
//!
//! # Properties
//!
//! - **Sound**: every bound is rounded to the side that proves less; what an offer asks for is known in whole units. A book that has a full clearing is never said to have none.
//! - **Not complete**: turns of narrowing are counted, and a zone too small to be cut is given up. Parts of the market are
//!   tried one by one, small ones first.
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
mod worth;
mod zone;

use std::rc::Rc;

use primitives::{AssetId, Price};

use crate::book::{Book, PairBook, Params};
use crate::rate::approx;
use divide::Cut;
use lane::{Band, Flow, Lane, Terms};
use zone::Zone;

/// Turns of narrowing at most, times the pairs of each; so many offers cost as much as a pair.
const MOST_WORK: usize = 6_000_000;
/// Turns of a part of few pairs, at most.
const MOST_TURNS: usize = 40_000;
/// Cuts that lead to a zone, at most.
const MOST_DEPTH: u32 = 400;
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
    let mut parts: Vec<Vec<u32>> = short.iter().map(|asset| connected(book, *asset)).collect();
    parts.sort();
    parts.dedup();
    let mut proofs: Vec<Proof> =
        parts.iter().map(|assets| Proof::new(book, params, valuations, assets, short)).collect();
    // The small ones first; what they leave is for the others.
    proofs.sort_by_key(|proof| proof.work);
    let (mut left, count) = (MOST_WORK, proofs.len());
    proofs.into_iter().enumerate().find_map(|(at, mut proof)| {
        proof.left = (left / (count - at) / proof.work).min(MOST_TURNS);
        let most = proof.left;
        let done = proof.succeeds();
        left -= (most - proof.left) * proof.work;
        done.then(|| proof.conclusion())
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
struct Link {
    offers: Vec<Terms>,
    sell: usize,
    buy: usize,
}

/// A zone, and what is known of amounts there.
#[derive(Clone)]
struct Node {
    zone: Zone,
    /// What every link can do, in this zone or one around it.
    lanes: Vec<Rc<Lane>>,
    flows: Vec<Flow>,
}

struct Proof<'a> {
    params: &'a Params,
    assets: Vec<u32>,
    band: Band,
    links: Vec<Link>,
    /// Prices of the clearing.
    center: Vec<f64>,
    /// Assets that are short in the clearing.
    short: Vec<bool>,
    /// Turns of narrowing that may still be taken, and what one costs.
    left: usize,
    work: usize,
    zones: u32,
    /// How much each asset, and each pair of assets (by rows), has stood in the way, later times counting for more.
    blame: Vec<f64>,
    blame_of_pairs: Vec<f64>,
    step: f64,
    /// The assets that the last cut was between of which a half was ruled out at once.
    last: Option<(usize, usize)>,
}

impl<'a> Proof<'a> {
    fn new(book: &'a Book, params: &'a Params, valuations: &[Price], assets: &[u32], short: &[AssetId]) -> Proof<'a> {
        let place = |asset: AssetId| assets.binary_search(&asset.0).ok();
        let link = |pair: &'a PairBook<'a>| {
            let (sell, buy) = (place(pair.sell)?, place(pair.buy)?);
            let offers = pair.offers().map(|(limit, amount)| Terms::of(limit, amount)).collect();
            Some(Link { offers, sell, buy })
        };
        let links: Vec<Link> = book.pairs.iter().filter_map(link).collect();
        let mut is_short = vec![false; assets.len()];
        short.iter().filter_map(|asset| place(*asset)).for_each(|place| is_short[place] = true);
        Proof {
            params,
            assets: assets.to_vec(),
            left: 0,
            work: links.iter().map(|link| 1 + link.offers.len() / OFFERS_PER_PAIR).sum::<usize>().max(1),
            band: Band { net: 1.0 - params.epsilon.to_f64(), sure: 1.0 - params.mu.to_f64() },
            links,
            center: assets.iter().map(|asset| approx(valuations[*asset as usize])).collect(),
            zones: 0,
            blame: is_short.iter().map(|short| if *short { 10.0 } else { 1.0 }).collect(),
            blame_of_pairs: vec![1.0; assets.len() * assets.len()],
            step: 1.0,
            last: None,
            short: is_short,
        }
    }

    fn conclusion(&self) -> Impossible {
        let short = self.assets.iter().zip(&self.short).filter(|(_, short)| **short);
        Impossible { assets: short.map(|(asset, _)| AssetId(*asset)).collect(), zones: self.zones }
    }

    /// All prices.
    fn everything(&self) -> Node {
        let lane = |link: &Link| Rc::new(Lane::new(&link.offers, self.band, (0.0, f64::INFINITY)));
        let lanes: Vec<Rc<Lane>> = self.links.iter().map(lane).collect();
        let flows = lanes.iter().map(|lane| lane.flow()).collect();
        Node { zone: Zone::all(self.center.len()), lanes, flows }
    }

    /// Whether no prices at all have a full clearing, as far as it can be seen within what is left to try.
    fn succeeds(&mut self) -> bool {
        let mut all = self.everything();
        self.is_empty(&mut all) || self.shaved(all).is_none_or(|node| self.rule_out(node, 0))
    }

    /// Whether no full clearing lies in the zone of `node`.
    fn rule_out(&mut self, mut node: Node, depth: u32) -> bool {
        if self.is_empty(&mut node) {
            return true;
        }
        let Some(cut) = self.cut(&node).filter(|_| depth < MOST_DEPTH) else { return false };
        node.halves(cut).into_iter().flatten().all(|half| {
            let before = self.zones;
            let done = self.left > 0 && self.rule_out(half, depth + 1);
            if self.zones == before + 1 {
                self.last = Some(self.ends(cut));
            }
            done
        })
    }

    /// The assets, in order, that `cut` is between.
    fn ends(&self, cut: Cut) -> (usize, usize) {
        match cut {
            Cut::Ratio(i, j, _) => (i.min(j), i.max(j)),
            Cut::Sold(at, _) => self.links[at].ends(),
        }
    }

    /// Whether amounts contradict each other in the zone of `node`, which is narrowed.
    fn is_empty(&mut self, node: &mut Node) -> bool {
        if self.left == 0 {
            return false;
        }
        let empty = !self.settle(node) || self.is_lacking(node);
        self.zones += u32::from(empty);
        empty
    }
}

impl Link {
    /// Its assets, in order.
    fn ends(&self) -> (usize, usize) {
        (self.sell.min(self.buy), self.sell.max(self.buy))
    }
}

impl Node {
    /// Both sides of `cut`, where there is anything.
    fn halves(&self, cut: Cut) -> [Option<Node>; 2] {
        match cut {
            Cut::Ratio(i, j, bound) => [self.below(i, j, bound), self.above(i, j, bound)],
            Cut::Sold(at, most) => [(0.0, most), (most + 1.0, f64::INFINITY)].map(|sold| self.where_sold(at, sold)),
        }
    }

    fn below(&self, i: usize, j: usize, bound: f64) -> Option<Node> {
        Some(Node { zone: self.zone.below(i, j, bound)?, ..self.clone() })
    }

    fn above(&self, i: usize, j: usize, bound: f64) -> Option<Node> {
        Some(Node { zone: self.zone.above(i, j, bound)?, ..self.clone() })
    }

    /// Where the link at `at` sells so many units.
    fn where_sold(&self, at: usize, sold: (f64, f64)) -> Option<Node> {
        let mut node = self.clone();
        let flow = &mut node.flows[at];
        flow.meet(&Flow { sold, paid: (0.0, f64::INFINITY) });
        flow.follow(&node.lanes[at], &self.flows[at]);
        (!flow.is_empty()).then_some(node)
    }

    /// The bounds on the ratio of the prices of a link's assets.
    fn ratio(&self, link: &Link) -> (f64, f64) {
        (self.zone.least(link.sell, link.buy), self.zone.most(link.sell, link.buy))
    }

    /// By what part it can vary.
    fn width(&self, link: &Link) -> f64 {
        self.zone.width(link.sell, link.buy) - 1.0
    }
}
