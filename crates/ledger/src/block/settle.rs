//! The effects of a block on the books: what each pair trades, and how its book changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use clearing::{Minima, PairFills, Rate};
use primitives::{Amount, AssetId, Fraction, Height, Price};
use proofs::{EndReason, EndedOffer, Fill, FillReason, Offer, Pair, Place, Traded};
use rayon::prelude::*;

use super::orders::{NewOffer, Orders, PairOrders, merged};
use crate::places::offers::{Edit, OrderBook, PairChange, PairOffers, Workspace};
use crate::places::sums::Sums;
use crate::state::Ledger;

/// The prices of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Prices<'a> {
    pub valuations: &'a [Price],
    pub epsilon: Fraction,
    pub mu: Fraction,
    /// The least units of each asset.
    pub least: &'a [Amount],
    /// The height of the block.
    pub height: Height,
}

/// The result of one pair in a block.
pub(crate) struct PairOutcome {
    /// The change from the book before the block to the book after it.
    pub change: PairChange,
    pub fills: Vec<Fill>,
    /// How the block's new offers were executed in the batch, by index of their transactions.
    pub met: Vec<(u32, Traded)>,
}

/// The offers of a pair that execute; they are its first ones.
#[derive(Default)]
pub(crate) struct Executed {
    /// The last offer that executes in full: all before it leave the book, except those in `edits`.
    pub through: Option<Place>,
    /// Offers before `through` that stay, and the one that executes in part.
    pub edits: Vec<Edit>,
    pub fills: Vec<Fill>,
}

impl<'a> Prices<'a> {
    /// Those of the ledger's next block, by its valuations.
    pub(crate) fn of(ledger: &Ledger, valuations: &'a [Price], least: &'a [Amount]) -> Prices<'a> {
        Prices { valuations, epsilon: ledger.epsilon, mu: ledger.mu, least, height: ledger.height + 1 }
    }

    fn value(&self, asset: AssetId) -> Price {
        self.valuations[asset.0 as usize]
    }

    pub(crate) fn rate(&self, pair: Pair) -> Rate {
        Rate::new(self.value(pair.sell), self.value(pair.buy), self.epsilon, self.mu)
    }

    pub(crate) fn minima(&self, pair: Pair) -> Minima {
        let least = |asset: AssetId| self.least[asset.0 as usize];
        Minima { sell: least(pair.sell), buy: least(pair.buy) }
    }

    /// How the new offers of a pair were executed in the batch.
    pub(crate) fn meet(&self, pair: Pair, new: &[NewOffer], fills: &[Fill]) -> Vec<(u32, Traded)> {
        let rate = self.rate(pair);
        let mut fills = fills.iter().peekable();
        let met = |new: &NewOffer| {
            while fills.next_if(|fill| fill.place < new.offer.place).is_some() {}
            let fill = fills.peek().filter(|fill| fill.place == new.offer.place);
            (new.index, traded(&new.offer, fill.copied(), &rate, self.height))
        };
        new.iter().map(met).collect()
    }
}

fn traded(offer: &Offer, fill: Option<&Fill>, rate: &Rate, height: Height) -> Traded {
    let (sold, bought, returned) = fill.map_or((0, 0, 0), |fill| (fill.sold, fill.bought, fill.returned));
    let rest = offer.amount - sold;
    // What ends with its own block goes back whole.
    let returned = if offer.until <= height { rest } else { returned };
    let limit = offer.place.limit;
    let why = match () {
        _ if sold == offer.amount => FillReason::Filled,
        _ if sold > 0 => FillReason::Part,
        _ if !rate.reaches(limit) => FillReason::AboveTheRate,
        _ if !is_usable(rate, offer) => FillReason::Rounding,
        _ if rate.must_fill(limit, offer.amount) => FillReason::NotTaken,
        _ => FillReason::AtTheMargin,
    };
    Traded { sold, bought, left: rest - returned, returned, why }
}

/// Whether a fill of the whole offer satisfies its limit.
pub(crate) fn is_usable(rate: &Rate, offer: &Offer) -> bool {
    rate.payout(offer.amount).is_some_and(|bought| offer.place.limit.accepts(offer.amount, bought))
}

/// Executes `fills` on the first offers of `pair`. The remainder of the partial fill is returned if it is too small
/// to rest.
pub(crate) fn execute(
    pair: Pair,
    offers: impl Iterator<Item = Offer>,
    fills: &PairFills,
    rate: &Rate,
    minima: Minima,
) -> Executed {
    let mut executed = Executed::default();
    for (index, Offer { place, amount, until }) in offers.take(fills.end()).enumerate() {
        match fills.partial.filter(|partial| partial.index == index) {
            Some(partial) => {
                let rest = amount - partial.sold;
                let returned = minima.returned(rest, place.limit);
                let left = rest - returned;
                let (sold, bought) = (partial.sold, partial.bought);
                executed.fills.push(Fill { pair, place, sold, bought, left, returned });
                executed.edits.push(Edit { place, amount: (left > 0).then_some(left), until });
            }
            None if fills.fills_in_full(index) => {
                let bought = rate.payout(amount).expect("a full fill was paid");
                executed.fills.push(Fill { pair, place, sold: amount, bought, left: 0, returned: 0 });
            }
            None if index < fills.full => executed.edits.push(Edit { place, amount: Some(amount), until }),
            None => {}
        }
        if index + 1 == fills.full {
            executed.through = Some(place);
        }
    }
    executed
}

impl PairOutcome {
    /// The outcome of a pair whose offers executed as in `executed`.
    pub(crate) fn new(orders: &PairOrders, executed: Executed, prices: &Prices) -> PairOutcome {
        let met = prices.meet(orders.pair, orders.offers, &executed.fills);
        PairOutcome { change: executed.change(orders), fills: executed.fills, met }
    }

    /// Adds what ended after the batch, by place, to the pair's change.
    fn end(&mut self, orders: &PairOrders, ended: &[EndedOffer]) {
        let leaving = ended.iter().map(|ended| Edit::leaves(ended.place));
        self.change.edits = merged(self.change.edits.iter().copied(), leaving);
        // A new offer that ends with its block was never in the book before it.
        self.change.edits.retain(|edit| edit.amount.is_some() || !orders.creates(&edit.place));
        // Its end was not known when its outcome was written.
        let is_sudden = |ended: &&EndedOffer| matches!(ended.why, EndReason::Lapsed | EndReason::Frozen);
        for ended in ended.iter().filter(is_sudden) {
            let new = orders.offers.binary_search_by_key(&ended.place, |new| new.offer.place).ok();
            // They are in the order of the block's offers, if the pair had a price.
            let met = new.and_then(|at| self.met.get_mut(at).filter(|(index, _)| *index == orders.offers[at].index));
            met.into_iter().for_each(|(_, met)| (met.left, met.returned) = (0, met.left));
        }
    }

    /// Whether the pair does not change.
    pub(crate) fn is_nothing(&self) -> bool {
        self.change.through.is_none() && self.change.edits.is_empty() && self.met.is_empty()
    }

    /// The outcome of a pair in a block in which nothing is for sale.
    pub(crate) fn unpriced(orders: &PairOrders) -> PairOutcome {
        PairOutcome { change: Executed::default().change(orders), fills: Vec::new(), met: Vec::new() }
    }
}

impl Executed {
    /// The whole change of the pair's book, including its orders.
    pub(crate) fn change(&self, orders: &PairOrders) -> PairChange {
        let mut edits = merged(orders.edits(self.through.as_ref()).into_iter(), self.edits.iter().copied());
        // A new offer whose remainder is returned was never in the book before the block.
        edits.retain(|edit| edit.amount.is_some() || !orders.creates(&edit.place));
        PairChange { pair: orders.pair, through: self.through, edits }
    }
}

impl OrderBook {
    /// Applies orders to the books before they are cleared; returns the change of what is locked.
    pub(crate) fn place(&mut self, orders: &[PairOrders]) -> Sums {
        self.change_pairs(
            orders,
            |orders| orders.pair,
            |book, workspace, orders| book.apply_with(workspace, None, &orders.edits(None)),
        )
    }

    /// What a pair executes if its offers, including the block's, sell this many units.
    pub(crate) fn execute(&self, pair: Pair, sold: Amount, prices: &Prices) -> Option<Executed> {
        let (offers, rate) = (self.get(pair)?, prices.rate(pair));
        let leading = offers.leading_view(pair, |limit| rate.reaches(limit));
        let fills = clearing::fills(&leading, &rate, sold);
        Some(execute(pair, offers.iter(), &fills, &rate, prices.minima(pair)))
    }

    /// Makes the changes of a contract phase; returns the change of what is locked.
    pub(crate) fn edit(&mut self, changes: &[PairChange]) -> Sums {
        let apply = |book: &mut PairOffers, workspace: &mut Workspace, change: &PairChange| {
            book.apply_with(workspace, None, &change.edits)
        };
        self.change_pairs(changes, |change| change.pair, apply)
    }

    /// Makes changes that are already known; returns the change of what is locked.
    pub(crate) fn make(&mut self, changes: &[PairOutcome]) -> Sums {
        let apply = |book: &mut PairOffers, workspace: &mut Workspace, outcome: &PairOutcome| {
            book.apply_with(workspace, outcome.change.through.as_ref(), &outcome.change.edits)
        };
        self.change_pairs(changes, |outcome| outcome.change.pair, apply)
    }

    /// Removes executed offers from the books, which already contain the orders.
    pub(crate) fn remove_executed(&mut self, executed: &[(Pair, Executed)]) -> Sums {
        let apply = |book: &mut PairOffers, workspace: &mut Workspace, (_, executed): &(Pair, Executed)| {
            book.apply_with(workspace, executed.through.as_ref(), &executed.edits)
        };
        self.change_pairs(executed, |(pair, _)| *pair, apply)
    }

    /// Removes the offers whose last height is at most `height`, after the batch of that height; returns them by pair
    /// and place, and the change of what is locked.
    pub(crate) fn end(&mut self, height: Height) -> (Vec<EndedOffer>, Sums) {
        let late = self.iter().filter(|(_, offers)| offers.ends() <= height);
        let due: Vec<(Pair, Vec<Offer>)> = late.map(|(pair, offers)| (pair, offers.due(height))).collect();
        let locked = self.change_pairs(
            &due,
            |(pair, _)| *pair,
            |book, workspace, (_, due)| {
                let leaving: Vec<Edit> = due.iter().map(|offer| Edit::leaves(offer.place)).collect();
                let change = book.apply_with(workspace, None, &leaving);
                book.bound_ends();
                change
            },
        );
        let ended = |(pair, offers): &(Pair, Vec<Offer>)| {
            let ended = |offer: &Offer| EndedOffer {
                pair: *pair,
                place: offer.place,
                returned: offer.amount,
                why: if offer.until == 0 { EndReason::OneBatch } else { EndReason::Expired },
            };
            offers.iter().map(ended).collect::<Vec<_>>()
        };
        (due.par_iter().flat_map_iter(ended).collect(), locked)
    }

    /// Removes offers that rest and leave after the batch, which are sorted; returns them, and the change of what is
    /// locked.
    pub(crate) fn take_out(&mut self, places: &[(Pair, Place)], why: EndReason) -> (Vec<EndedOffer>, Sums) {
        let ended = |(pair, place): &(Pair, Place)| {
            let returned = self.rests((*pair, *place)).expect("it rests");
            EndedOffer { pair: *pair, place: *place, returned, why }
        };
        let ended: Vec<EndedOffer> = places.iter().map(ended).collect();
        let by_pair: Vec<&[EndedOffer]> = ended.chunk_by(|one, other| one.pair == other.pair).collect();
        let locked = self.change_pairs(
            &by_pair,
            |ended| ended[0].pair,
            |book, workspace, ended| {
                let leaving: Vec<Edit> = ended.iter().map(|ended| Edit::leaves(ended.place)).collect();
                book.apply_with(workspace, None, &leaving)
            },
        );
        (ended, locked)
    }

    /// Changes pairs in parallel. `work` is sorted by pair, and `change` returns the change of what the pair locks.
    fn change_pairs<W: Sync>(
        &mut self,
        work: &[W],
        pair: impl Fn(&W) -> Pair,
        change: impl Fn(&mut PairOffers, &mut Workspace, &W) -> i128 + Sync,
    ) -> Sums {
        for work in work {
            self.entry(pair(work));
        }
        let mut work = work.iter().peekable();
        let books: Vec<_> = self
            .iter_mut()
            .filter_map(|(of, book)| work.next_if(|work| pair(work) == of).map(|work| (of, book, work)))
            .collect();
        /// The change of what a pair locks, and of how many offers end at heights.
        type Changed = (Pair, i128, Vec<(Height, i32)>);
        let changes: Vec<Changed> = books
            .into_par_iter()
            .map_init(Workspace::default, |workspace, (pair, book, work)| {
                let change = change(Arc::make_mut(book), workspace, work);
                (pair, change, std::mem::take(&mut workspace.ends.changes))
            })
            .collect();
        self.drop_empty();
        let mut locked = Sums::default();
        for (pair, change, ends) in &changes {
            locked.add(pair.sell, *change);
            self.count_ends(ends);
        }
        locked
    }
}

/// Adds what ended after the batch to the outcomes of pairs; both are by pair.
pub(crate) fn with_ended(pairs: Vec<PairOutcome>, ended: &[EndedOffer], orders: &Orders) -> Vec<PairOutcome> {
    if ended.is_empty() {
        return pairs;
    }
    let mut all: BTreeMap<Pair, PairOutcome> = pairs.into_iter().map(|pair| (pair.change.pair, pair)).collect();
    let by_pair: BTreeMap<Pair, PairOrders> =
        orders.by_pair().into_iter().map(|orders| (orders.pair, orders)).collect();
    for ended in ended.chunk_by(|one, other| one.pair == other.pair) {
        let pair = ended[0].pair;
        let orders = by_pair.get(&pair).copied().unwrap_or(PairOrders::none(pair));
        all.entry(pair).or_insert_with(|| PairOutcome::unpriced(&PairOrders::none(pair))).end(&orders, ended);
    }
    all.into_values().collect()
}

/// The pairs that are ordered or traded, in order, with their orders and, if they trade, a `T`.
pub(crate) fn work<'a, T: Copy>(orders: &'a Orders, trades: &[(Pair, T)]) -> Vec<(PairOrders<'a>, Option<T>)> {
    let mut ordered = orders.by_pair().into_iter().peekable();
    let mut work = Vec::with_capacity(ordered.size_hint().0 + trades.len());
    for &(pair, trade) in trades {
        while let Some(before) = ordered.next_if(|orders| orders.pair < pair) {
            work.push((before, None));
        }
        let own = ordered.next_if(|orders| orders.pair == pair).unwrap_or(PairOrders::none(pair));
        work.push((own, Some(trade)));
    }
    work.extend(ordered.map(|orders| (orders, None)));
    work
}
