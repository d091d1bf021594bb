//! What two assets can trade with each other, range by range of the ratio of their prices.
//!
//! In a wide zone, what a pair may sell at the upper end of its rates and must be paid at the lower end says little. So
//! the range is divided at the ratios where something changes for an offer into *pieces*, each with its own bounds on what
//! the two pairs between the assets, a *duo*, sell and are paid. Pieces at which an asset would lack units even if all
//! other duos left as much of it as any of their pieces allows are dropped; so ratios become narrower, and where a duo
//! has no piece left, the zone is empty.
//!
//! What a duo can leave of one asset depends on what it leaves of the other: a unit of the first is sold for units of the
//! second that are then to be had from somebody. So the most that it leaves of one is sought together with the least
//! that all others need of the other, in whole units.

use std::rc::Rc;

use super::lane::{Flow, Lane};
use super::narrow::{whole_down, whole_up};
use super::{Link, Node, Search};

/// Pieces of one duo, about.
const MOST_PIECES: usize = 24;
/// Pieces end this near to where something changes.
const NEAR: f64 = 1e-11;
/// Ranges narrower than this are not divided for being wide.
const NARROW: f64 = 1.0 + 1e-7;
/// Ranges of units looked at, at most, for what a duo can leave of one asset.
const MOST_RANGES: usize = 24;
/// Rounds of one duo after the other.
const ROUNDS: usize = 2;
/// Inverse ratios are rounded outwards by this.
const OUT: f64 = 1.0 + 1e-15;

/// Two assets that trade with each other, and the links from the first to the second and back.
pub(super) struct Duo {
    pub(super) assets: (usize, usize),
    pub(super) links: [Option<usize>; 2],
}

/// A range of the ratio of a duo's prices, and what its links can do there.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) ratio: (f64, f64),
    pub(super) sides: [Option<(Rc<Lane>, Flow)>; 2],
}

/// Pieces that together make up the range `of`, but for what was dropped.
#[derive(Clone, Default)]
pub(super) struct Pieces {
    of: (f64, f64),
    pub(super) list: Vec<Piece>,
}

/// Units of both assets of a duo that are sold more than paid out, at most.
type Rest = (f64, f64);

/// Stands for a piece that is dropped.
const GONE: Rest = (f64::NEG_INFINITY, f64::NEG_INFINITY);

impl Duo {
    /// All duos of `links`.
    pub(super) fn all(links: &[Link]) -> Vec<Duo> {
        let mut ends: Vec<(usize, usize)> = links.iter().map(Link::ends).collect();
        ends.sort_unstable();
        ends.dedup();
        let find = |sell: usize, buy: usize| links.iter().position(|link| link.sell == sell && link.buy == buy);
        ends.into_iter().map(|(i, j)| Duo { assets: (i, j), links: [find(i, j), find(j, i)] }).collect()
    }
}

impl Piece {
    /// The most that what is sold is worth more than what is paid, at prices `own` and `other` of the two assets.
    pub(super) fn worth(&self, own: f64, other: f64) -> f64 {
        let of = |side: &Option<(Rc<Lane>, Flow)>, own: f64, other: f64| {
            side.as_ref().map_or(0.0, |(lane, flow)| lane.gain(flow, own, other))
        };
        of(&self.sides[0], own, other) + of(&self.sides[1], other, own)
    }

    fn flows(&self) -> [Flow; 2] {
        [0, 1].map(|side: usize| self.sides[side].as_ref().map_or(Flow::NONE, |side| side.1))
    }

    fn rest(&self) -> Rest {
        let [forth, back] = self.flows();
        (forth.sold.1 - back.paid.0, back.sold.1 - forth.paid.0)
    }

    /// Knows of flows what is known of those of the node; false if it contradicts itself.
    fn meets(&mut self, duo: &Duo, flows: &[Flow]) -> bool {
        for (side, link) in self.sides.iter_mut().zip(duo.links) {
            let (Some((lane, flow)), Some(link)) = (side, link) else { continue };
            let before = *flow;
            flow.meet(&flows[link]);
            flow.follow(lane, &before);
            if flow.is_empty() {
                return false;
            }
        }
        true
    }

    /// What it can leave of both assets where others need so many units of them at least.
    fn tightened(&self, (one, two): Rest, need: Rest) -> Rest {
        let ([Some(forth), Some(back)], [sold, paid]) = (&self.sides, self.flows()) else { return (one, two) };
        if sold.sold.1 - sold.sold.0 < 0.5 && paid.sold.1 - paid.sold.0 < 0.5 {
            return (one, two);
        }
        let one = one.min(most_left(forth, back, need.1.ceil()));
        (one, two.min(most_left(back, forth, need.0.ceil())))
    }
}

impl Search<'_> {
    /// The pieces of a duo in the zone of `node`.
    fn split(&self, node: &Node, duo: &Duo) -> Pieces {
        let ratio = node.between(duo.assets);
        let mut ends = vec![ratio.0];
        let turns = self.turns(node, duo, ratio);
        let most = MOST_PIECES / 2;
        let few = (0..turns.len().min(most)).map(|number| turns[number * turns.len() / turns.len().min(most)]);
        ends.extend(few.flat_map(|turn| [turn * (1.0 - NEAR), turn * (1.0 + NEAR)]));
        ends.push(ratio.1);
        while ends.len() <= most {
            let gaps = (1..ends.len()).map(|at| (ends[at] / ends[at - 1], at)).filter(|gap| gap.0.is_finite());
            let Some((_, at)) = gaps.filter(|gap| gap.0 > NARROW).max_by(|a, b| a.0.total_cmp(&b.0)) else { break };
            ends.insert(at, ends[at].sqrt() * ends[at - 1].sqrt());
        }
        Pieces { of: ratio, list: ends.windows(2).map(|ends| self.piece(duo, (ends[0], ends[1]))).collect() }
    }

    /// The ratios within `ratio` at which something changes for an offer of the duo, rising.
    fn turns(&self, node: &Node, duo: &Duo, ratio: (f64, f64)) -> Vec<f64> {
        let (net, sure) = (self.band.net, self.band.sure / self.band.net);
        let turns = |link: Option<usize>| link.map(|link| node.lanes[link].turns(sure)).into_iter().flatten();
        let forth = turns(duo.links[0]).map(|turn| turn / net);
        let all = forth.chain(turns(duo.links[1]).map(|turn| net / turn));
        let mut turns: Vec<f64> =
            all.filter(|turn| ratio.0 * (1.0 + 3.0 * NEAR) < *turn && *turn < ratio.1 * (1.0 - 3.0 * NEAR)).collect();
        turns.sort_by(f64::total_cmp);
        turns.dedup_by(|a, b| *a <= *b * (1.0 + 4.0 * NEAR));
        turns
    }

    fn piece(&self, duo: &Duo, ratio: (f64, f64)) -> Piece {
        let side = |link: usize, ratio: (f64, f64)| {
            let lane = Lane::new(&self.links[link].offers, self.band, ratio);
            let flow = lane.flow();
            (Rc::new(lane), flow)
        };
        let inverse = (1.0 / (ratio.1 * OUT), OUT / ratio.0);
        Piece { ratio, sides: [duo.links[0].map(|at| side(at, ratio)), duo.links[1].map(|at| side(at, inverse))] }
    }

    /// Brings the pieces of `node` up to date; false if some duo has none left.
    pub(super) fn look_at_pieces(&self, node: &mut Node) -> bool {
        self.duos.iter().enumerate().all(|(at, duo)| {
            let ratio = node.between(duo.assets);
            let of = node.pieces[at].of;
            let is_narrower = (ratio.1 / ratio.0).is_finite() && (ratio.1 / ratio.0).powi(2) < of.1 / of.0;
            if of == (0.0, 0.0) || (is_narrower && ratio.1 > ratio.0 * (1.0 + 3.0 * NEAR)) {
                node.pieces[at] = Rc::new(self.split(node, duo));
            }
            let mut pieces = Rc::unwrap_or_clone(std::mem::take(&mut node.pieces[at]));
            pieces.list.retain_mut(|piece| {
                let is_within = piece.ratio.1 >= ratio.0 * (1.0 - 1e-14) && piece.ratio.0 <= ratio.1 * (1.0 + 1e-14);
                is_within && piece.meets(duo, &node.flows)
            });
            let some = !pieces.list.is_empty();
            node.pieces[at] = Rc::new(pieces);
            some
        })
    }

    /// Narrows ratios to those of the pieces that are left: whether any changed, `None` if no prices are left.
    pub(super) fn shrink(&self, node: &mut Node) -> Option<bool> {
        let mut changed = false;
        for (duo, pieces) in self.duos.iter().zip(&node.pieces) {
            let (i, j) = duo.assets;
            let (least, most) = (pieces.list.first()?.ratio.0, pieces.list.last()?.ratio.1);
            let old = (node.zone.least(i, j), node.zone.most(i, j));
            if least > old.0 * (1.0 + 1e-10) || most < old.1 * (1.0 - 1e-10) {
                changed = true;
                if !(node.zone.limit(i, j, most) && node.zone.limit(j, i, OUT / least)) {
                    return None;
                }
            }
        }
        Some(changed)
    }

    /// Drops pieces at which an asset lacks units whatever the others do: whether there were any, `None` if an asset
    /// lacks units at all of them.
    pub(super) fn tighten(&mut self, node: &mut Node) -> Option<bool> {
        let rests = |pieces: &Rc<Pieces>| pieces.list.iter().map(Piece::rest).collect();
        let mut rests: Vec<Vec<Rest>> = node.pieces.iter().map(rests).collect();
        let mut changed = false;
        for _ in 0..ROUNDS {
            let mut totals = self.totals(&rests)?;
            for (at, rests) in rests.iter_mut().enumerate() {
                let duo = &self.duos[at];
                let (one, two) = (&totals[duo.assets.0], &totals[duo.assets.1]);
                let before = most_of(rests);
                let need = (before.0 - one.sum - one.slack(), before.1 - two.sum - two.slack());
                for (piece, rest) in node.pieces[at].list.iter().zip(rests.iter_mut()) {
                    let fits = |rest: &Rest| rest.0 >= need.0 && rest.1 >= need.1;
                    *rest = if fits(rest) { piece.tightened(*rest, need) } else { GONE };
                    *rest = if fits(rest) { *rest } else { GONE };
                }
                changed |= drop_gone(&mut node.pieces[at], rests);
                let now = most_of(rests);
                totals[duo.assets.0].sum += now.0 - before.0;
                totals[duo.assets.1].sum += now.1 - before.1;
                let lacking = [duo.assets.0, duo.assets.1].into_iter().find(|asset| totals[*asset].is_lacking());
                if let Some(asset) = lacking {
                    self.blame(&[asset]);
                    return None;
                }
            }
        }
        Some(changed)
    }

    /// What all duos together can leave of each asset; `None` if of some it is less than nothing.
    fn totals(&mut self, rests: &[Vec<Rest>]) -> Option<Vec<Total>> {
        let mut totals = vec![Total::default(); self.center.len()];
        for (duo, rests) in self.duos.iter().zip(rests) {
            let most = most_of(rests);
            for (asset, rest) in [(duo.assets.0, most.0), (duo.assets.1, most.1)] {
                totals[asset].sum += rest;
                totals[asset].size += rest.abs();
            }
        }
        match totals.iter().position(Total::is_lacking) {
            Some(asset) => {
                self.blame(&[asset]);
                None
            }
            None => Some(totals),
        }
    }
}

/// What duos together can leave of an asset, and how large the numbers are that make it up.
#[derive(Clone, Default)]
struct Total {
    sum: f64,
    size: f64,
}

impl Total {
    /// Sums are no further off than this.
    fn slack(&self) -> f64 {
        self.size * 1e-12 + 0.5
    }

    fn is_lacking(&self) -> bool {
        self.sum < -self.slack()
    }
}

/// The most that any piece leaves, of each asset on its own.
fn most_of(rests: &[Rest]) -> Rest {
    rests.iter().fold(GONE, |most, rest| (most.0.max(rest.0), most.1.max(rest.1)))
}

/// Drops pieces that are gone; whether there were any.
fn drop_gone(pieces: &mut Rc<Pieces>, rests: &mut Vec<Rest>) -> bool {
    if rests.iter().all(|rest| rest.0 > f64::NEG_INFINITY) {
        return false;
    }
    let mut gone = rests.iter().map(|rest| rest.0 == f64::NEG_INFINITY);
    Rc::make_mut(pieces).list.retain(|_| !gone.next().expect("one for each piece"));
    drop(gone);
    rests.retain(|rest| rest.0 > f64::NEG_INFINITY);
    true
}

/// The most that `forth` sells more than `back` is paid, where `back` sells at least `need` more than `forth` is paid.
/// Ranges of units, of those that there are fewer of, are divided where most could be left.
pub(super) fn most_left(forth: &(Rc<Lane>, Flow), back: &(Rc<Lane>, Flow), need: f64) -> f64 {
    let (there, here) = (&forth.1, &back.1);
    let loose = there.sold.1 - here.paid.0;
    let by_forth = there.paid.1 - there.paid.0 <= here.paid.1 - here.paid.0;
    let bound = |(least, most): (f64, f64)| {
        if by_forth {
            let sold = least + need;
            let can_be = sold <= here.sold.1 * (1.0 + 1e-12) + 0.5;
            let paid = whole_down(back.0.least(sold)).max(here.paid.0);
            if can_be { forth.0.most(most).min(there.sold.1) - paid } else { f64::NEG_INFINITY }
        } else {
            let paid = back.0.most(most).min(here.sold.1) - need;
            let can_be = paid >= there.paid.0 * (1.0 - 1e-12) - 0.5;
            if can_be { whole_up(forth.0.most(paid)).min(there.sold.1) - least } else { f64::NEG_INFINITY }
        }
    };
    let all = if by_forth { there.paid } else { here.paid };
    let mut ranges = vec![(bound(all), all)];
    for _ in 0..MOST_RANGES {
        let best = ranges.iter().enumerate().max_by(|a, b| a.1.0.total_cmp(&b.1.0)).expect("there is one").0;
        let (most, (lower, upper)) = ranges[best];
        let middle = ((lower + upper) / 2.0).floor();
        if most == f64::NEG_INFINITY || upper - lower < 1.0 || middle + 1.0 <= middle {
            return most.min(loose);
        }
        ranges.swap_remove(best);
        ranges.extend([(lower, middle), (middle + 1.0, upper)].map(|range| (bound(range).min(most), range)));
    }
    ranges.iter().map(|range| range.0).fold(f64::NEG_INFINITY, f64::max).min(loose)
}
