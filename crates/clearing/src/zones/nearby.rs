//! A search for prices near given ones at which all is full, for where whole units follow none that balance supply and
//! demand.
//!
//! Where a part is small, or its units are worth a lot, amounts change by leaps as prices change by little, and whether all
//! is full turns on the very units of a few offers. No slope points to it; but what the leaps are is known. So take the
//! zone of all prices near the given ones, narrow it (`narrow`), and solve its relaxation (`relaxation`), in which offers
//! and units can be split. Its prices are tried in whole units. If something lacks there, the zone is cut in two where the
//! relaxation is furthest from what whole offers and units can do at its prices: at the ratio from which on an offer may
//! fill, or must; or at a number of units sold or paid. The half that lacks less is searched first. This is branch and bound
//! for problems that are not convex (Falk and Soland 1969), but that nothing is made of bounds: only a full clearing counts.
//!
//! # Properties
//!
//! - A function of the book and the given prices.
//! - Small zones are searched before large ones, until the budget is used up: what relaxations may take, counted before
//!   they are solved. Parts that are searched share it.
//! - Parts with pools, and of very many offers or assets, are not searched: a pool is in no lane. They are left to `walk`.

use crate::outcome::Spending;
use crate::search::Scene;

use super::divide::Cut;
use super::lane::{Choice, Lane};
use super::relaxation::{COARSE, Relaxed, Sold};
use super::{Case, Node, Search};

/// How far ratios of prices may be from those given, one zone after the other.
const WIDTHS: [f64; 3] = [0.001, 0.003, 0.01];
/// Relaxations in the search of one zone, at most.
const MOST_LOOKS: usize = 100;
/// Cubes of the columns of all relaxations of all parts, at most: who clears a block waits for it.
const MOST_WORK: usize = 150_000_000;
/// Offers of one part beyond which it is not searched: units are small beside amounts there.
const MOST_OFFERS: usize = 50_000;
/// Ratios times pairs of a part beyond which it is not searched if it is alone: each pair that bounds a zone may bound every
/// ratio.
const MOST_RATIOS: usize = 20_000_000;
/// Zones are cut this near to where something changes for an offer.
const NEAR: f64 = 1e-11;
/// What is off by a smaller part of the turnover of its assets is not cut.
const OFF: f64 = 1e-6;
/// Units that are not whole count less than offers out of place.
const BY_UNITS: f64 = 0.1;
/// A ratio is known if it is known so well.
const KNOWN: f64 = 1e-9;

/// Prices near `prices` at which the part, one `among` so many, has full amounts, if any are found, and what it took.
pub(crate) fn nearby(scene: Scene, prices: &[f64], among: usize) -> (Option<Vec<f64>>, Spending) {
    let mut spent = Spending::default();
    let is_pool = |pair: &crate::market::Pair| pair.index as usize >= scene.book.pairs.len();
    let offers: usize = scene.part.pairs.iter().map(|pair| scene.offers(pair.index as usize)).sum();
    let ratios = scene.part.assets.len().pow(2);
    if offers > MOST_OFFERS
        || scene.part.pairs.len() * ratios > MOST_RATIOS / among
        || scene.part.pairs.iter().any(is_pool)
    {
        return (None, spent);
    }
    let valuations = scene.valuations(prices);
    let case = Case { book: scene.book, params: scene.params, valuations: &valuations, trades: &[], short: &[] };
    let mut left = MOST_WORK / among;
    let found = WIDTHS.into_iter().find_map(|width| {
        if left == 0 {
            return None;
        }
        let search = Search::new(&case, &scene.part.assets, false);
        let mut nearby = Nearby { scene, search, spent: Spending::default(), looks: 0, left };
        let found = nearby.within(width);
        (spent, left) = (spent.plus(nearby.spent), nearby.left);
        found
    });
    (found, spent)
}

/// The search of one zone.
struct Nearby<'a> {
    scene: Scene<'a>,
    search: Search<'a>,
    spent: Spending,
    looks: usize,
    /// What relaxations may still take.
    left: usize,
}

/// A zone, its relaxation, and what all assets lack together at the prices of that.
struct Look {
    node: Node,
    relaxed: Relaxed,
    lack: f64,
}

impl Nearby<'_> {
    fn within(&mut self, width: f64) -> Option<Vec<f64>> {
        let around = self.search.around(width)?;
        let mut open = vec![self.look(around)?];
        while let Some(Look { node, relaxed, lack }) = open.pop() {
            if lack == 0.0 {
                return Some(relaxed.prices);
            }
            let Some(cut) = self.search.cut_off(&node, &relaxed) else { continue };
            let halves = node.halves(cut).into_iter().flatten();
            let mut looks: Vec<Look> = halves.filter_map(|half| self.look(half)).collect();
            looks.sort_by(|a, b| b.lack.total_cmp(&a.lack));
            open.extend(looks);
        }
        None
    }

    /// `None` if nothing can be full in the zone of `node`, or too much is open there, or there were too many looks.
    fn look(&mut self, mut node: Node) -> Option<Look> {
        if self.looks == MOST_LOOKS || self.left == 0 || !self.search.settle(&mut node) {
            return None;
        }
        let relaxation = self.search.relaxation(&node)?;
        self.looks += 1;
        let work = relaxation.columns().pow(3);
        if work > self.left {
            self.left = 0;
            return None;
        }
        self.left -= work;
        let relaxed = self.search.solved(&node, relaxation)?;
        let (lack, spent) = self.scene.lack(&relaxed.prices);
        self.spent = self.spent.plus(spent);
        Some(Look { node, relaxed, lack: lack.map_or(0.0, |lack| lack.iter().sum()) })
    }
}

impl Search<'_> {
    /// The zone in which no ratio of prices is further than by the part `width` from that of the center.
    pub(super) fn around(&self, width: f64) -> Option<Node> {
        let mut node = self.everything();
        for (i, j) in self.duos.iter().flat_map(|duo| [duo.assets, (duo.assets.1, duo.assets.0)]) {
            node = node.below(i, j, self.center[i] / self.center[j] * (1.0 + width))?;
        }
        Some(node)
    }

    /// Where to cut the zone of `node`: where its relaxation is furthest from what can be at its prices, as a part of the
    /// turnover of the assets concerned.
    pub(super) fn cut_off(&self, node: &Node, relaxed: &Relaxed) -> Option<Cut> {
        let mut turnover = vec![0.0; self.center.len()];
        for (link, sold) in self.links.iter().zip(&relaxed.links) {
            turnover[link.sell] += sold.sold;
            turnover[link.buy] += sold.paid;
        }
        let part = |asset: usize, units: f64| if units > 0.0 { units / turnover[asset] } else { 0.0 };
        let mut furthest: Option<(f64, Cut)> = None;
        let mut note = |off: f64, cut: Cut| {
            if off > furthest.map_or(OFF, |furthest| furthest.0) {
                furthest = Some((off, cut));
            }
        };
        for (at, (link, sold)) in self.links.iter().zip(&relaxed.links).enumerate() {
            let ratio = relaxed.prices[link.sell] / relaxed.prices[link.buy];
            for (offer, sold) in node.lanes[at].options().iter().zip(&sold.options) {
                if let Some((units, cut)) = self.cut_to_offer(node, at, (offer, *sold), ratio) {
                    note(part(link.sell, units) + part(link.buy, units * ratio), cut);
                }
            }
            if let Some((units, cut)) = self.cut_to_whole(node, at, sold) {
                note(BY_UNITS * part(link.sell, units).max(part(link.buy, units * ratio)), cut);
            }
            if let Some((units, cut)) = self.cut_to_paid(node, at, sold, ratio) {
                note(BY_UNITS * part(link.buy, units), cut);
            }
        }
        furthest.map(|furthest| furthest.1)
    }

    /// Where an offer of a link fills that cannot, or does not that must; and by how many units.
    fn cut_to_offer(&self, node: &Node, at: usize, (offer, sold): (&Choice, f64), ratio: f64) -> Option<(f64, Cut)> {
        let link = &self.links[at];
        let (may, must) = self.band.turns(offer);
        // What is just where it turns belongs to the side on which the offer may fill.
        let (units, turn, cut) = match () {
            _ if ratio >= must => (offer.amount - sold, must, must * (1.0 + NEAR)),
            _ if ratio < may => (sold, may, may * (1.0 - NEAR)),
            _ => return None,
        };
        let (least, most) = node.ratio(link);
        let is_within = least * (1.0 + 1.5 * NEAR) < turn && turn < most * (1.0 - 1.5 * NEAR);
        is_within.then_some((units, Cut::Ratio(link.sell, link.buy, cut)))
    }

    /// Where a link sells part of a unit; and that, or what is left of it.
    fn cut_to_whole(&self, node: &Node, at: usize, sold: &Sold) -> Option<(f64, Cut)> {
        let (least, most) = node.flows[at].sold;
        let whole = sold.sold.floor();
        let part = sold.sold - whole;
        (most - least >= 1.0).then(|| (part.min(1.0 - part), Cut::Sold(at, whole.clamp(least, most - 1.0))))
    }

    /// Where a link is paid less than its offers are for what it sells; and by how many units.
    fn cut_to_paid(&self, node: &Node, at: usize, sold: &Sold, ratio: f64) -> Option<(f64, Cut)> {
        let (link, flow) = (&self.links[at], &node.flows[at]);
        if flow.paid.1 >= COARSE {
            return None;
        }
        let lane = Lane::new(&link.offers, self.band, (ratio * (1.0 - 1e-12), ratio * (1.0 + 1e-12)));
        let units = lane.least(sold.sold.floor()) - sold.paid;
        if !units.is_finite() || units < 0.5 {
            return None;
        }
        let (open_sold, open_paid) = (flow.sold.1 - flow.sold.0, flow.paid.1 - flow.paid.0);
        let cut = if open_paid >= 1.0 && open_paid < open_sold {
            Cut::Paid(at, sold.paid.floor().clamp(flow.paid.0, flow.paid.1 - 1.0))
        } else if open_sold >= 1.0 {
            Cut::Sold(at, sold.sold.floor().clamp(flow.sold.0, flow.sold.1 - 1.0))
        } else {
            let (least, most) = node.ratio(link);
            let middle = ratio.clamp(least * 0.8 + most * 0.2, least * 0.2 + most * 0.8);
            (most > least * (1.0 + KNOWN)).then_some(Cut::Ratio(link.sell, link.buy, middle))?
        };
        Some((units, cut))
    }
}
