//! What a block does to the books: orders are placed, the batch is cleared or a given clearing is checked, and offers
//! that executed or ended leave.

use clearing::{Clearing, Groups, PoolTrade};
use primitives::{Amount, AssetId, Height, Price, slot_of};
use proofs::{Batch, EndReason, EndedOffer, ExactOutcome, Pair, PairTrade, Place, PoolFill};
use rayon::prelude::*;

use super::attached::{Attached, check_attached, conserved};
use super::clear::clear;
use super::exacts::{Judge, NewExact, trades as exact_trades};
use super::fault::Fault;
use super::orders::{NewOffer, Orders};
use super::settle::{PairOutcome, Prices, with_ended, work};
use super::stage::Stage;
use crate::places::assets::CLOSED_RETURNS;
use crate::places::pools::{AwakePool, PoolTurn, groups};
use crate::places::sums::Sums;
use crate::sessions::SessionTurn;
use crate::state::Ledger;

/// The result of a block in the books.
pub(super) struct Traded {
    pub batch: Batch,
    pub pairs: Vec<PairOutcome>,
    /// Change of units that offers lock.
    pub locked: Sums,
    /// What became of exact orders, in the order of the block's.
    pub exacts: Vec<(u32, ExactOutcome)>,
    pub report: Option<clearing::Report>,
}

/// Places the orders, clears the book and removes executed offers.
pub(super) fn trade(
    ledger: &mut Ledger,
    height: Height,
    orders: &Orders,
    pools: &PoolTurn,
    stage: &mut dyn FnMut(Stage),
) -> Result<Traded, Fault> {
    let by_pair = orders.by_pair();
    let mut locked = ledger.places.book.place(&by_pair);
    stage(Stage::Orders);
    let least = ledger.least_units();
    let awake = awake(ledger, pools, &least);
    let cleared = clear(ledger, &ledger.places.book, &awake, &orders.exacts)
        .map_err(|reason| Fault::Clearing { height, reason })?;
    stage(Stage::Clearing);
    let Some(clearing) = cleared else {
        let pairs = by_pair.iter().map(PairOutcome::unpriced).collect();
        let batch = Batch::default();
        forget_valuations(ledger);
        let exacts = judge_exacts(ledger, &orders.exacts, &batch, None);
        return Ok(Traded { batch, pairs, locked, exacts, report: None });
    };
    let exacts = exact_trades(&orders.exacts, &clearing);
    let Clearing { valuations, trades, pools, short, report, .. } = clearing;
    let offered = ledger.places.book.iter().filter(|(pair, _)| ledger.trades(*pair));
    let offered = offered.map(|(pair, _)| (pair.sell, pair.buy));
    let groups = groups(ledger.assets.len() as u32, offered, &awake);
    let fills: Vec<PoolFill> = pools.iter().map(|trade| pool_fill(&awake, trade)).collect();
    let prices = Prices::of(ledger, &valuations, &least);
    let trades: Vec<(Pair, Amount)> =
        trades.iter().map(|trade| (Pair { sell: trade.sell, buy: trade.buy }, trade.sold)).collect();
    let work = work(orders, &trades);
    let executed: Vec<_> = work
        .par_iter()
        .filter_map(|(orders, sold)| {
            let executed = ledger.places.book.execute(orders.pair, (*sold)?, &prices)?;
            Some((orders.pair, executed))
        })
        .collect();
    locked.merge(&ledger.places.book.remove_executed(&executed));
    let mut executed = executed.into_iter().peekable();
    let pairs: Vec<_> = work
        .iter()
        .map(|(orders, _)| (orders, executed.next_if(|(pair, _)| *pair == orders.pair).map(|(_, executed)| executed)))
        .collect();
    let pairs: Vec<PairOutcome> = pairs
        .into_par_iter()
        .map(|(orders, executed)| PairOutcome::new(orders, executed.unwrap_or_default(), &prices))
        .collect();
    conserved(ledger.assets.len(), &pairs, &fills, &exacts)
        .map_err(|violation| Fault::Clearing { height, reason: violation.to_string() })?;
    let batch = Batch { pools: fills, exacts, ..batch(&valuations, short, &pairs) };
    revalue(ledger, &valuations, &groups);
    let exacts = judge_exacts(ledger, &orders.exacts, &batch, Some(&groups));
    Ok(Traded { batch, pairs, locked, exacts, report: Some(report) })
}

/// The pools that take part in the batch: those that are large enough, of assets that trade.
fn awake(ledger: &Ledger, pools: &PoolTurn, least: &[Amount]) -> Vec<AwakePool> {
    let mut awake = pools.awake(ledger.pools(), least);
    awake.retain(|(key, _)| ledger.trades(Pair { sell: key.a, buy: key.b }));
    awake
}

/// Removes the offers whose last batch this was, and lists every offer that left otherwise than by trading.
pub(super) fn end_offers(
    ledger: &mut Ledger,
    height: Height,
    sessions: &SessionTurn,
    orders: &mut Orders,
    traded: &mut Traded,
) {
    let (mut ended, unlocked) = ledger.places.book.end(height);
    traded.locked.merge(&unlocked);
    follow_slots(ledger, sessions, orders, &traded.batch, &ended);
    follow_held(ledger, orders, &traded.batch, &ended);
    let slots = sessions.ending(height, &ledger.slots);
    if !slots.is_empty() {
        let mut places: Vec<(Pair, Place)> = slots.into_iter().flat_map(|slot| ledger.slots.places(slot)).collect();
        places.par_sort_unstable();
        ended.extend(take_out(ledger, traded, &places, EndReason::Lapsed));
    }
    if ledger.listings().has_closed(height + 1) {
        let closed = closed_offers(ledger, height + 1);
        ended.extend(take_out(ledger, traded, &closed, EndReason::Closed));
    }
    let frozen = ledger.controls().freezes(&orders.edits.controls);
    if !frozen.is_empty() {
        let mut places: Vec<(Pair, Place)> = frozen.iter().flat_map(|holder| ledger.held.places(*holder)).collect();
        places.par_sort_unstable();
        places.dedup();
        ended.extend(take_out(ledger, traded, &places, EndReason::Frozen));
    }
    ended.par_sort_unstable();
    traded.pairs = with_ended(std::mem::take(&mut traded.pairs), &ended, orders);
    traded.batch.ended = std::mem::take(&mut orders.leaving);
    if !ended.is_empty() {
        traded.batch.ended.extend(ended);
        traded.batch.ended.par_sort_unstable();
    }
}

/// Takes offers out of the book after the batch; they are sorted, and each rests.
fn take_out(ledger: &mut Ledger, traded: &mut Traded, places: &[(Pair, Place)], why: EndReason) -> Vec<EndedOffer> {
    let (ended, unlocked) = ledger.places.book.take_out(places, why);
    traded.locked.merge(&unlocked);
    places.iter().for_each(|(_, place)| ledger.slots.leave(place));
    let (held, controls) = (&mut ledger.held, &ledger.places.controls);
    places.iter().for_each(|(pair, place)| held.leave(controls, *pair, place));
    ended
}

/// The first offers of assets that are closed at a height, by pair and place.
fn closed_offers(ledger: &Ledger, height: Height) -> Vec<(Pair, Place)> {
    let closed = ledger.places.book.iter().filter(|(pair, _)| !ledger.listings().trades(*pair, height));
    let places = closed.flat_map(|(pair, offers)| offers.iter().map(move |offer| (pair, offer.place)));
    places.take(CLOSED_RETURNS).collect()
}

/// Follows what came into the book and left it of the offers of session keys, and what their timers are raised to.
fn follow_slots(ledger: &mut Ledger, sessions: &SessionTurn, orders: &Orders, batch: &Batch, ended: &[EndedOffer]) {
    for NewOffer { pair, offer, .. } in orders.offers.iter().filter(|new| slot_of(new.offer.place.id) > 0) {
        let account = ledger.places.accounts.get(&offer.place.account).expect("it has placed an offer");
        let session = account.session(slot_of(offer.place.id)).expect("the filter has found it");
        ledger.slots.come(*pair, &offer.place, session.alive);
    }
    if !ledger.slots.is_empty() {
        let sold = batch.fills.iter().filter(|fill| fill.left == 0).map(|fill| &fill.place);
        let left = orders.leaving.iter().chain(ended).map(|ended| &ended.place);
        sold.chain(left).filter(|place| slot_of(place.id) > 0).for_each(|place| ledger.slots.leave(place));
    }
    sessions.raised().for_each(|(slot, alive)| ledger.slots.set_timer(slot, alive));
}

/// Follows what came into the book and left it of the offers of controlled assets.
fn follow_held(ledger: &mut Ledger, orders: &Orders, batch: &Batch, ended: &[EndedOffer]) {
    let (held, controls) = (&mut ledger.held, &ledger.places.controls);
    if controls.is_empty() {
        return;
    }
    orders.offers.iter().for_each(|new| held.come(controls, new.pair, &new.offer.place));
    let sold = batch.fills.iter().filter(|fill| fill.left == 0).map(|fill| (fill.pair, &fill.place));
    let left = orders.leaving.iter().chain(ended).map(|ended| (ended.pair, &ended.place));
    sold.chain(left).for_each(|(pair, place)| held.leave(controls, pair, place));
}

/// Checks a given clearing, and makes its changes.
pub(super) fn trade_as(
    ledger: &mut Ledger,
    height: Height,
    orders: &Orders,
    pools: &PoolTurn,
    attached: &Attached,
    stage: &mut dyn FnMut(Stage),
) -> Result<Traded, Fault> {
    stage(Stage::Orders);
    let awake = awake(ledger, pools, &ledger.least_units());
    let (pairs, groups) =
        check_attached(ledger, orders, &awake, attached).map_err(|violation| Fault::Attached { height, violation })?;
    stage(Stage::Clearing);
    Ok(make(ledger, attached, pairs, &orders.exacts, groups.as_ref()))
}

/// Makes the changes of a checked clearing.
fn make(
    ledger: &mut Ledger,
    attached: &Attached,
    pairs: Vec<PairOutcome>,
    exacts: &[NewExact],
    groups: Option<&Groups>,
) -> Traded {
    let locked = ledger.places.book.make(&pairs);
    let batch = batch(&attached.valuations, attached.short.clone(), &pairs);
    let batch = Batch { pools: attached.pools.clone(), exacts: attached.exacts.clone(), ..batch };
    match groups {
        Some(groups) => revalue(ledger, &attached.valuations, groups),
        None => forget_valuations(ledger),
    }
    let exacts = judge_exacts(ledger, exacts, &batch, groups);
    Traded { batch, pairs, locked, exacts, report: None }
}

/// What a batch made of the block's exact orders.
fn judge_exacts(
    ledger: &Ledger,
    exacts: &[NewExact],
    batch: &Batch,
    groups: Option<&Groups>,
) -> Vec<(u32, ExactOutcome)> {
    let short = groups.map(|groups| groups.contain(&batch.short)).unwrap_or_default();
    let (valuations, params) = (&batch.valuations, ledger.clearing_params());
    Judge { groups, valuations, short: &short, params }.outcomes(exacts, batch)
}

/// Stores the valuations of the assets that have a price; the others have none.
fn revalue(ledger: &mut Ledger, valuations: &[Price], groups: &Groups) {
    let priced = valuations.iter().zip(groups.priced()).map(|(valuation, is_priced)| is_priced.then_some(*valuation));
    ledger.assets.iter_mut().zip(priced).for_each(|(asset, valuation)| asset.valuation = valuation);
}

/// Clears the valuations: nothing is for sale, so nothing has a price.
fn forget_valuations(ledger: &mut Ledger) {
    ledger.assets.iter_mut().for_each(|asset| asset.valuation = None);
}

/// The batch that consists of these pairs, before anything is burnt.
fn batch(valuations: &[Price], short: Vec<AssetId>, pairs: &[PairOutcome]) -> Batch {
    let mut batch = Batch { valuations: valuations.to_vec(), short, ..Batch::default() };
    batch.fills.reserve_exact(pairs.iter().map(|pair| pair.fills.len()).sum());
    for PairOutcome { change, fills, .. } in pairs.iter().filter(|pair| !pair.fills.is_empty()) {
        let sold = fills.iter().map(|fill| fill.sold).sum();
        let bought = fills.iter().map(|fill| fill.bought).sum();
        batch.trades.push(PairTrade { pair: change.pair, sold, bought });
        batch.fills.extend_from_slice(fills);
    }
    batch
}

/// The trade of a pool, as receipts name it.
fn pool_fill(awake: &[AwakePool], trade: &PoolTrade) -> PoolFill {
    let (key, PoolTrade { sell, sold, bought, .. }) = (awake[trade.pool as usize].0, *trade);
    PoolFill { pool: key, sells_a: sell == key.a, sold, bought }
}
