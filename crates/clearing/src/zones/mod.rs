//! What amounts are possible at sets of prices: a search for prices at which all is full (`nearby`), and a proof that there
//! are none, which is told here.
//!
//! In real numbers a full clearing always exists; in whole units it need not: where a few offers of units worth a lot face
//! each other, every price may force somebody to be paid units that nobody sells.
//!
//! # The way
//!
//! A *zone* is a set of price vectors, given by bounds on the ratios of prices; all prices together are the first zone of
//! the proof. In a zone,
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
//! What this does not rule out is searched again, *thoroughly*: with
//!
//! 6. the ranges of ratios divided where something changes for an offer, and bounds for each piece, where what two assets
//!    can leave of each other goes together: see `pieces`;
//! 7. a bound on how far all prices together can lie from those of the clearing: see `circulation`;
//! 8. zones squeezed every few cuts: the outer parts of every range of ratios are ruled out if they are empty at once.
//!
//! Where to cut decides how many zones there are. Assets, and pairs of them, that were contradicted are cut first, the
//! latest more than the earlier ones (Boussemart, Hemery, Lecoutre and Sais 2004); and where a half was just ruled out at
//! once, the next zones are cut there, too, so that cuts that did not matter are not tried both ways over and over
//! (Lecoutre, Sais, Tabary and Vidal 2009). A thorough search goes by turns:
//! some cuts first where most might be left over.
//!
//! # Properties
//!
//! - **Sound**: every bound is rounded to the side that proves less; what an offer asks for is known in whole units. A book
//!   that has a full clearing is never said to have none.
//! - **Not complete**: turns of narrowing are counted, and a zone too small to be cut is given up. Parts of the market are
//!   tried one by one, small ones first.
//! - The proof is never part of [`crate::clear`]; it costs only who asks.
//!
//! # What counts as full
//!
//! At prices so far apart that an offer's pay-out exceeds every unit that can exist, [`crate::Rate::must_fill`] excuses
//! it, and a clearing may be full because nothing can be paid. Such a clearing is no way out, so here such an offer must
//! fill like any other, unless already its limit asks for more than can exist.
//!
//! Pools and buy orders are not bounded here: a book that has any is given up.

mod circulation;
mod divide;
mod lane;
mod narrow;
mod nearby;
mod pieces;
mod relaxation;
#[cfg(test)]
mod tests;
mod worth;
mod zone;

use std::rc::Rc;

use primitives::{AssetId, Price};

use crate::book::{Book, PairBook, Params};
use crate::connected::connected;
use crate::outcome::Trade;
use crate::rate::approx;
use circulation::Circulation;
use divide::Cut;
use lane::{Band, Flow, Lane, Terms};
use pieces::{Duo, Pieces};
use zone::Zone;

pub(crate) use nearby::nearby;

/// Whether a search is thorough, one after the other, and turns of narrowing at most, times the pairs of each; so many
/// offers cost as much as a pair.
const SEARCHES: [(bool, usize); 2] = [(false, 6_000_000), (true, 4_000_000)];
/// Turns of a part of few pairs, at most.
const MOST_TURNS: usize = 40_000;
/// Assets of a part that is searched thoroughly, at most: that takes the inverse of a matrix of so many rows.
const MOST_ASSETS: usize = 256;
/// Cuts that lead to a zone, at most.
const MOST_DEPTH: u32 = 400;
const OFFERS_PER_PAIR: usize = 4;
/// After so many cuts, a zone is squeezed.
const SQUEEZE_EVERY: u32 = 6;
/// Turns of narrowing ratios by pieces, and pieces by ratios.
const MOST_LOOKS: usize = 4;

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

/// A clearing that is not full.
pub(crate) struct Case<'a> {
    pub(crate) book: &'a Book<'a>,
    pub(crate) params: &'a Params,
    pub(crate) valuations: &'a [Price],
    pub(crate) trades: &'a [Trade],
    pub(crate) short: &'a [AssetId],
}

/// Tries to show that the book of `case` has no full clearing.
pub(crate) fn impossible(case: &Case) -> Option<Impossible> {
    if !case.book.pools.is_empty() || !case.book.buys.is_empty() {
        return None;
    }
    let parts = trading_with(case.book, case.short);
    SEARCHES.into_iter().find_map(|(thorough, mut left)| {
        let parts = parts.iter().filter(|assets| !thorough || assets.len() <= MOST_ASSETS);
        let mut searches: Vec<Search> = parts.map(|assets| Search::new(case, assets, thorough)).collect();
        // The small ones first; what they leave is for the others.
        searches.sort_by_key(|search| search.work);
        let count = searches.len();
        searches.into_iter().enumerate().find_map(|(at, mut search)| {
            search.left = (left / (count - at) / search.work).min(MOST_TURNS);
            let most = search.left;
            let done = search.is_exhausted();
            left -= (most - search.left) * search.work;
            done.then(|| search.conclusion())
        })
    })
}

/// The groups of assets that trade, by whatever way, with some of `short`; rising.
fn trading_with(book: &Book, short: &[AssetId]) -> Vec<Vec<u32>> {
    let pairs = book.pairs.iter().map(|pair| (pair.sell.0 as usize, pair.buy.0 as usize));
    let (group_of, _) = connected(book.assets as usize, pairs);
    let mut groups: Vec<usize> = short.iter().filter_map(|asset| group_of[asset.0 as usize]).collect();
    groups.sort_unstable();
    groups.dedup();
    let is_of = |asset: &u32, group: usize| group_of[*asset as usize] == Some(group);
    let members = |group: &usize| (0..book.assets).filter(|asset| is_of(asset, *group)).collect();
    groups.iter().map(members).collect()
}

/// A pair between two assets of the search.
struct Link {
    offers: Vec<Terms>,
    sell: usize,
    buy: usize,
    /// The duo that it is a link of.
    duo: usize,
}

/// A zone, and what is known of amounts there.
#[derive(Clone)]
struct Node {
    zone: Zone,
    /// What every link can do, in this zone or one around it.
    lanes: Vec<Rc<Lane>>,
    flows: Vec<Flow>,
    /// Of every duo, in a thorough search.
    pieces: Vec<Rc<Pieces>>,
    /// The worth that circulates along every duo, in a thorough search.
    circulating: Rc<Vec<f64>>,
}

/// The search of one part of the market.
struct Search<'a> {
    case: &'a Case<'a>,
    assets: Vec<u32>,
    thorough: bool,
    band: Band,
    links: Vec<Link>,
    duos: Vec<Duo>,
    circulation: Circulation,
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
    /// The most that what each duo trades in the last zone was worth more than what it was paid.
    worths: Vec<f64>,
    /// Whether to cut where most might be left over.
    is_by_worth: bool,
    /// The assets that the last cut was between of which a half was ruled out at once.
    last: Option<(usize, usize)>,
}

impl<'a> Search<'a> {
    fn new(case: &'a Case<'a>, assets: &[u32], thorough: bool) -> Search<'a> {
        let place = |asset: AssetId| assets.binary_search(&asset.0).ok();
        let mut links: Vec<Link> = case.book.pairs.iter().filter_map(|pair| Link::of(pair, place)).collect();
        let duos = Duo::all(&links);
        for (at, link) in duos.iter().enumerate().flat_map(|(at, duo)| duo.links.map(|link| (at, link))) {
            link.into_iter().for_each(|link| links[link].duo = at);
        }
        let center: Vec<f64> = assets.iter().map(|asset| approx(case.valuations[*asset as usize])).collect();
        let mut short = vec![false; assets.len()];
        case.short.iter().filter_map(|asset| place(*asset)).for_each(|place| short[place] = true);
        let circulation = match thorough {
            true => Circulation::new(&duos, &sold_in(case.trades, &links, &center, place), assets.len()),
            false => Circulation::default(),
        };
        let Params { epsilon, mu, .. } = case.params;
        Search {
            case,
            thorough,
            band: Band { net: 1.0 - epsilon.to_f64(), sure: 1.0 - mu.to_f64() },
            circulation,
            worths: vec![0.0; duos.len()],
            duos,
            center,
            left: 0,
            work: links.iter().map(|link| 1 + link.offers.len() / OFFERS_PER_PAIR).sum::<usize>().max(1),
            links,
            zones: 0,
            blame: short.iter().map(|short| if *short { 10.0 } else { 1.0 }).collect(),
            blame_of_pairs: vec![1.0; assets.len() * assets.len()],
            step: 1.0,
            last: None,
            is_by_worth: false,
            short,
            assets: assets.to_vec(),
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
        let pieces = vec![Rc::default(); self.duos.len()];
        Node {
            zone: Zone::all(self.center.len()),
            lanes,
            flows,
            pieces,
            circulating: self.circulation.of_clearing.clone(),
        }
    }

    /// Whether no prices at all have a full clearing, as far as it can be seen within what is left to try.
    fn is_exhausted(&mut self) -> bool {
        let mut all = self.everything();
        self.is_empty(&mut all) || self.shaved(all).is_none_or(|node| self.rule_out(node, 0))
    }

    /// Whether no full clearing lies in the zone of `node`.
    fn rule_out(&mut self, mut node: Node, depth: u32) -> bool {
        if self.is_empty(&mut node) {
            return true;
        }
        if self.thorough && depth.is_multiple_of(SQUEEZE_EVERY) {
            match self.squeezed(node) {
                Some(squeezed) => node = squeezed,
                None => return true,
            }
        }
        self.is_by_worth = self.thorough && (depth / SQUEEZE_EVERY).is_multiple_of(2);
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
            Cut::Sold(at, _) | Cut::Paid(at, _) => self.links[at].ends(),
        }
    }

    /// Whether amounts contradict each other in the zone of `node`, which is narrowed.
    fn is_empty(&mut self, node: &mut Node) -> bool {
        if self.left == 0 {
            return false;
        }
        let empty =
            !self.settle(node) || if self.thorough { self.is_empty_by_pieces(node) } else { self.is_lacking(node) };
        self.zones += u32::from(empty);
        empty
    }

    /// The same by pieces of ratios, in a zone in which amounts do not contradict each other.
    fn is_empty_by_pieces(&mut self, node: &mut Node) -> bool {
        for _ in 0..MOST_LOOKS {
            if !self.look_at_pieces(node) {
                return true;
            }
            let Some(dropped) = self.tighten(node) else { return true };
            let Some(shrunk) = self.shrink(node) else { return true };
            if self.is_far(node) || self.is_lacking(node) {
                return true;
            }
            if shrunk && !self.settle(node) {
                return true;
            }
            if !dropped && !shrunk {
                break;
            }
        }
        false
    }
}

/// So many units at most, and more.
fn split(most: f64) -> [(f64, f64); 2] {
    [(0.0, most), (most + 1.0, f64::INFINITY)]
}

/// The worth that each link sold in `trades`.
fn sold_in(trades: &[Trade], links: &[Link], center: &[f64], place: impl Fn(AssetId) -> Option<usize>) -> Vec<f64> {
    let mut sold = vec![0.0; links.len()];
    for trade in trades {
        let ends = (place(trade.sell), place(trade.buy));
        let link = links.iter().position(|link| (Some(link.sell), Some(link.buy)) == ends);
        link.into_iter().for_each(|link| sold[link] = trade.sold as f64 * center[links[link].sell]);
    }
    sold
}

impl Link {
    /// That of `pair`, if both its assets have a `place`.
    fn of(pair: &PairBook, place: impl Fn(AssetId) -> Option<usize>) -> Option<Link> {
        let (sell, buy) = (place(pair.sell)?, place(pair.buy)?);
        let offers = pair.offers().map(|(limit, amount)| Terms::of(limit, amount)).collect();
        Some(Link { offers, sell, buy, duo: 0 })
    }

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
            Cut::Sold(at, most) => split(most).map(|sold| self.with_flow(at, Flow { sold, ..Flow::ANY })),
            Cut::Paid(at, most) => split(most).map(|paid| self.with_flow(at, Flow { paid, ..Flow::ANY })),
        }
    }

    fn below(&self, i: usize, j: usize, bound: f64) -> Option<Node> {
        Some(Node { zone: self.zone.below(i, j, bound)?, ..self.clone() })
    }

    fn above(&self, i: usize, j: usize, bound: f64) -> Option<Node> {
        Some(Node { zone: self.zone.above(i, j, bound)?, ..self.clone() })
    }

    /// Where the link at `at` sells and is paid no other amounts than `known`.
    fn with_flow(&self, at: usize, known: Flow) -> Option<Node> {
        let mut node = self.clone();
        let flow = &mut node.flows[at];
        flow.meet(&known);
        flow.follow(&node.lanes[at], &self.flows[at]);
        (!flow.is_empty()).then_some(node)
    }

    /// The bounds on the ratio of the prices of a link's assets.
    fn ratio(&self, link: &Link) -> (f64, f64) {
        self.between((link.sell, link.buy))
    }

    /// The bounds on the ratio of the prices of two assets.
    fn between(&self, (i, j): (usize, usize)) -> (f64, f64) {
        (self.zone.least(i, j), self.zone.most(i, j))
    }

    /// By what part it can vary.
    fn width(&self, link: &Link) -> f64 {
        self.zone.width(link.sell, link.buy) - 1.0
    }
}
