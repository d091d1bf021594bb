//! A superblock's native phase: filter, orders, clearing, settlement, effects.
//!
//! For a decided block, the filter names the transactions that count. Their offers and cancellations are applied to
//! the book, the whole book is cleared as one batch, and executed offers leave it, in order of limit price, with at
//! most one partial fill a pair. What is left of offers whose last batch this was leaves after it. Then the registry
//! of validators processes the block. Each shard of accounts marks sequence numbers, takes debits, and receives
//! refunds, payments and fills. The auctioneer's surplus is burnt.
//!
//! The clearing of a block is the one that the deterministic solver finds: no proposer chooses prices. A replay or a
//! node that catches up has the batch in the archived receipts; it checks that batch instead of solving
//! ([`Ledger::apply_attached`], SPEEDEX §K.3). An offer that the marginal key shows to trade in full then goes
//! directly from its transaction to its fill and never enters book or trie. The resulting state is the same.
//!
//! **Properties.** Every step works on disjoint parts of the state, so the outcome does not depend on threads. The
//! filter, the book and the clearing do not depend on the order of transactions (rule 6). After each block and for
//! every asset, the change of spendable balances, locked, staked, escrowed, deposited and bonded units equals the
//! change of issued units; each sum is taken where the values are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clearing::{Clearing, Groups, Minima, Params, PoolTrade};
use payments::BridgeEvent;
use primitives::{
    Address, Amount, AssetId, Digest, Evidence, Height, Operation, Price, Sequence, Superblock, Transaction, slot_of,
};
use proofs::{
    Batch, Cancelled, ContractReceipts, EndedOffer, ExactOutcome, Outcome, Pair, PairTrade, Place, PoolFill, Refusal,
    Replaced, SettledFills, Traded as Met, asset_digest,
};
use rayon::prelude::*;

use crate::Ledger;
use crate::attached::{Attached, conserved};
use crate::changes::Changes;
use crate::contracts::{Phase, SeenBefore, Undo};
use crate::exacts::{Judge, NewExact, exact_credits, mark_exacts, orders_of, trades as exact_trades};
use crate::fault::Fault;
use crate::filter::Filtered;
use crate::limits::beyond_quota;
use crate::orders::{NewOffer, Orders, merged};
use crate::places::accounts::{AccountDigests, account_digest};
use crate::places::offers::{OrderBook, PairChange};
use crate::places::pools::{AwakePool, PoolTurn, groups};
use crate::places::{ContractsChange, Kept, PlaceChanges, PlaceSums, Turn};
use crate::sessions::{SessionTurn, released};
use crate::settle::{PairOutcome, Prices, with_ended, work};
use crate::sums::{Credit, Sums};

/// What is known about a block's signatures.
#[derive(Clone, Copy, Debug)]
pub enum Signatures<'a> {
    /// All were verified before: on arrival, or before the block was logged.
    Valid,
    /// For each native transaction of the block, in order, whether its signature is valid.
    Known(&'a [bool]),
    /// None is verified yet.
    Unchecked,
}

impl<'a> Signatures<'a> {
    /// What is known after the unchecked signatures are verified; `None` if all are valid.
    fn known(self, checked: Option<&'a [bool]>) -> Option<&'a [bool]> {
        match self {
            Signatures::Known(valid) => Some(valid),
            Signatures::Valid | Signatures::Unchecked => checked,
        }
    }
}

/// The steps of a block, reported for measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The block's digest, and signatures that were not verified before.
    Signatures,
    /// The deterministic filter.
    Filter,
    /// Reading offers, cancellations and payments from the transactions, and applying offers to the book.
    Orders,
    /// Prices and amounts, or the check of given ones.
    Clearing,
    /// Fills, and removing them from the book.
    Settlement,
    /// The accounts: sequence numbers, debits, credits, and digests of what changed.
    Effects,
    /// Ethereum transactions, and digests of what they changed.
    Contracts,
}

impl Stage {
    /// The name in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Signatures => "signatures",
            Stage::Filter => "filter",
            Stage::Orders => "orders",
            Stage::Clearing => "clearing",
            Stage::Settlement => "settlement",
            Stage::Effects => "effects",
            Stage::Contracts => "contracts",
        }
    }
}

/// What a block did.
#[derive(Debug)]
pub struct Applied {
    /// Height of the block.
    pub height: Height,
    /// Digest of the block.
    pub block: Digest,
    /// The outcome of each native transaction, in the order of the block.
    pub outcomes: Vec<Outcome>,
    /// The batch.
    pub batch: Batch,
    /// The results of Ethereum transactions.
    pub contracts: ContractReceipts,
    /// Accounts that changed, by address.
    pub modified: Vec<Address>,
    /// How the prices were found; none if nothing was for sale, or the clearing was given.
    pub report: Option<clearing::Report>,
    /// Events at the bridge to the payment lane, which the lane learns once the block is certified.
    pub lane: Vec<BridgeEvent>,
    /// The settles of venues that counted.
    pub venues: Vec<SettledFills>,
    /// Input for the tries.
    pub changes: Changes,
}

/// The result of a block in the books.
struct Traded {
    batch: Batch,
    pairs: Vec<PairOutcome>,
    /// Change of units that offers lock.
    locked: Sums,
    /// What became of exact orders, in the order of the block's.
    exacts: Vec<(u32, ExactOutcome)>,
    report: Option<clearing::Report>,
}

/// What the places did in a block.
struct AtPlaces {
    kept: Kept,
    /// Events at the bridge to the payment lane.
    lane: Vec<BridgeEvent>,
    /// Settles of venues that counted.
    venues: Vec<SettledFills>,
    /// Operations that pay and do nothing.
    void: BTreeSet<(Address, Sequence)>,
    /// Accounts that are concerned though their balances may not change, some of them twice.
    concerned: Vec<Address>,
}

impl Ledger {
    /// Applies the next block by the clearing that the solver finds. `stage` is called at the end of each step.
    ///
    /// # Errors
    /// [`Fault`] if the block is not the next one, or an invariant is violated.
    pub fn apply(
        &mut self,
        block: &Superblock,
        signatures: Signatures,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Applied, Fault> {
        self.run(block, None, signatures, stage)
    }

    /// Applies the next block as [`Ledger::apply`] does, but checks the given clearing instead of searching for one.
    /// Of the book, the groups are solved of which that clearing says that not every offer could be served: there it
    /// must be what the solver finds.
    ///
    /// A book has many clearings that pass, so the check alone does not prove that this is the block's clearing. Use
    /// it for batches of certified receipts or of the node's own receipts, and compare the state root with the one
    /// that the next block names.
    ///
    /// # Errors
    /// [`Fault`] if the block is not the next one, the clearing is wrong (the state is unchanged), or an invariant is
    /// violated.
    pub fn apply_attached(
        &mut self,
        block: &Superblock,
        attached: &Attached,
        signatures: Signatures,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Applied, Fault> {
        self.run(block, Some(attached), signatures, stage)
    }

    /// Checks a block's transactions against the present state, and changes nothing: for each native transaction, in
    /// order, the reason why the filter would remove it, if it would.
    pub fn judge(&self, block: &Superblock, signatures: Signatures) -> Vec<Option<Refusal>> {
        let transactions = native(block);
        let checked = matches!(signatures, Signatures::Unchecked)
            .then(|| primitives::verify_transactions(&self.network(), &transactions));
        self.filter(&transactions, signatures.known(checked.as_deref()), &beyond_quota(block)).refusals
    }

    /// Whether an accusation with this evidence would be accepted in the next block.
    ///
    /// # Errors
    /// [`Refusal`] gives the reason why not: nothing is proved, or no account is left to convict.
    pub fn convicts(&self, evidence: &Evidence) -> Result<(), Refusal> {
        self.places.validators.convicted(evidence, self.height + 1).map(|_| ())
    }

    fn run(
        &mut self,
        block: &Superblock,
        attached: Option<&Attached>,
        signatures: Signatures,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Applied, Fault> {
        self.check_succession(block)?;
        let digest = Superblock::digest(&block.to_bytes());
        let transactions = native(block);
        let checked = matches!(signatures, Signatures::Unchecked)
            .then(|| primitives::verify_transactions(&self.network(), &transactions));
        stage(Stage::Signatures);
        let filtered = self.filter(&transactions, signatures.known(checked.as_deref()), &beyond_quota(block));
        stage(Stage::Filter);
        let mut orders = Orders::of(&transactions, &filtered, self);
        let mut before = Undo::default();
        if self.places.contracts.head().is_some() {
            before.valuations = self.assets.iter().map(|asset| asset.valuation).collect();
            before.note_leaving(&orders.leaving, &self.places.book);
        }
        let mut pools = self.pools().map_or_else(PoolTurn::default, |pools| pools.turn(&orders.edits.pools));
        let mut traded = match attached {
            None => self.trade(block.height, &orders, &pools, stage)?,
            Some(attached) => self.trade_as(block.height, &orders, &pools, attached, stage)?,
        };
        pools.trade(self.pools(), &traded.batch.pools);
        let sessions = SessionTurn::of(&orders.sessions);
        self.end_offers(block.height, &sessions, &mut orders, &mut traded);
        let mut outcomes = outcomes(&transactions, &filtered, &traded.pairs, &orders.replaced);
        mark_exacts(&mut outcomes, &traded.exacts);
        mark_pooled(&mut outcomes, &filtered, &transactions, &pools);
        stage(Stage::Settlement);
        let fills = &traded.batch.fills;
        let paid =
            fills.iter().map(|fill| Credit { to: fill.place.account, asset: fill.pair.buy, amount: fill.bought });
        let returned = fills.iter().filter(|fill| fill.returned > 0).map(|fill| Credit {
            to: fill.place.account,
            asset: fill.pair.sell,
            amount: fill.returned,
        });
        let ended = traded.batch.ended.iter().map(|ended| Credit {
            to: ended.place.account,
            asset: ended.pair.sell,
            amount: ended.returned,
        });
        let AtPlaces { kept, lane, venues, void, concerned } =
            self.apply_places(block, &orders, &transactions, &filtered.refusals);
        mark_void(&mut outcomes, &filtered, &transactions, &void);
        let Kept { credits: payouts, burnt, mut held, changes: mut places } = kept;
        let pooled = self.commit_pools(pools, &mut held, &mut places);
        let exacts = exact_credits(&orders.exacts, &traded.exacts);
        orders.released.extend(released(&traded.batch, exacts.iter().copied()));
        let sessions = sessions.changes(block.height, &orders.sessions, &orders.rekeyed, &orders.released);
        let own = orders.credits.iter().copied().chain(exacts.into_iter().map(|(_, credit)| credit));
        let credits: Vec<Credit> = own.chain(paid).chain(returned).chain(ended).chain(payouts).chain(pooled).collect();
        let mut effects = self.apply_effects(&transactions, &filtered, &credits, &sessions);
        let fees = i128::from(self.fee) * i128::from(filtered.weight(&transactions)) + i128::from(burnt);
        self.burn(block.height, fees, &mut traded.batch, &mut effects.issued)?;
        (held.accounts, held.book) = (effects.balances, traded.locked);
        self.check_conservation(block.height, &held, &effects.issued)?;
        stage(Stage::Effects);
        let mut phase = self.execute_contracts(block, &traded.batch)?;
        self.is_book_full = self.places.book.len() as u64 >= self.limits.resting_offers;
        self.height = block.height;
        self.last_block = digest;
        self.time_ms = block.time_ms;
        self.note_hash();
        before.note_batch(&traded.batch);
        let Undo { native_offers, valuations, .. } = before;
        self.note_history(effects.seen, Undo { native_offers, valuations, ..std::mem::take(&mut phase.undo) });
        let accounts = self.redigest(effects.changed, &phase.accounts);
        let pairs = traded.pairs.into_iter().map(|pair| pair.change).collect();
        let modified = with_concerned(accounts.iter().map(|(address, _)| Address(*address)).collect(), concerned);
        let Phase { receipts: contracts, slots, .. } = phase;
        (places.accounts, places.book) = (accounts, with_later(pairs, phase.pairs));
        places.contracts = ContractsChange { slots, rest: self.places.contracts.digest() };
        let changes = Changes { places, assets: self.asset_digests() };
        stage(Stage::Contracts);
        let Traded { batch, report, .. } = traded;
        let height = block.height;
        Ok(Applied { height, block: digest, outcomes, batch, contracts, modified, report, lane, venues, changes })
    }

    /// Makes a block's changes of pools; returns what is paid to accounts.
    fn commit_pools(&mut self, turn: PoolTurn, held: &mut PlaceSums, changes: &mut PlaceChanges) -> Vec<Credit> {
        let Some(pools) = &mut self.places.pools else { return Vec::new() };
        let (credits, change, rows) = Arc::make_mut(pools).commit(turn);
        (held.pools, changes.pools) = (change, Some(rows));
        credits
    }

    /// Stores what Ethereum saw before each phase of a block.
    fn note_history(&mut self, native: Vec<SeenBefore>, mut undo: Undo) {
        if self.places.contracts.head().is_none() {
            return;
        }
        for before in native {
            if let Some(now) = self.places.accounts.get(&before.address) {
                undo.note_native(before, now);
            }
        }
        self.history.push(undo);
    }

    /// Digests of the accounts that a block changed: accounts that contracts wrote are hashed again.
    fn redigest(&self, changed: Vec<([u8; 20], Option<[u8; 32]>)>, written: &[Address]) -> AccountDigests {
        if written.is_empty() {
            return changed;
        }
        let mut room = Vec::new();
        let digest = |address: &Address| {
            let account = self.places.accounts.get(address).expect("it was written");
            (address.0, Some(account_digest(account, &mut room)))
        };
        let mut all: Vec<_> = written.iter().map(digest).collect();
        // The sort is stable, so of two digests of an account the one after contracts is kept.
        all.extend(changed);
        all.sort_by_key(|(address, _)| *address);
        all.dedup_by_key(|(address, _)| *address);
        all
    }

    fn check_succession(&self, block: &Superblock) -> Result<(), Fault> {
        if block.height != self.height + 1 {
            return Err(Fault::Height { height: self.height, got: block.height });
        }
        if block.parent != self.last_block {
            return Err(Fault::Parent { height: block.height, parent: self.last_block, got: block.parent });
        }
        Ok(())
    }

    /// Places the orders, clears the book and removes executed offers.
    fn trade(
        &mut self,
        height: Height,
        orders: &Orders,
        pools: &PoolTurn,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Traded, Fault> {
        let by_pair = orders.by_pair();
        let mut locked = self.places.book.place(&by_pair);
        stage(Stage::Orders);
        let least = self.least_units();
        let awake = pools.awake(self.pools(), &least);
        let cleared = self
            .clear(&self.places.book, &awake, &orders.exacts)
            .map_err(|reason| Fault::Clearing { height, reason })?;
        stage(Stage::Clearing);
        let Some(clearing) = cleared else {
            let pairs = by_pair.iter().map(PairOutcome::unpriced).collect();
            let batch = Batch::default();
            self.forget_valuations();
            let exacts = self.judge_exacts(&orders.exacts, &batch, None);
            return Ok(Traded { batch, pairs, locked, exacts, report: None });
        };
        let exacts = exact_trades(&orders.exacts, &clearing);
        let Clearing { valuations, trades, pools, short, report, .. } = clearing;
        let offered = self.places.book.iter().map(|(pair, _)| (pair.sell, pair.buy));
        let groups = groups(self.assets.len() as u32, offered, &awake);
        let fills: Vec<PoolFill> = pools.iter().map(|trade| pool_fill(&awake, trade)).collect();
        let prices = self.prices(&valuations, &least);
        let trades: Vec<(Pair, Amount)> =
            trades.iter().map(|trade| (Pair { sell: trade.sell, buy: trade.buy }, trade.sold)).collect();
        let work = work(orders, &trades);
        let executed: Vec<_> = work
            .par_iter()
            .filter_map(|(orders, sold)| {
                let executed = self.places.book.execute(orders.pair, (*sold)?, &prices)?;
                Some((orders.pair, executed))
            })
            .collect();
        locked.merge(&self.places.book.remove_executed(&executed));
        let mut executed = executed.into_iter().peekable();
        let pairs: Vec<_> = work
            .iter()
            .map(|(orders, _)| {
                (orders, executed.next_if(|(pair, _)| *pair == orders.pair).map(|(_, executed)| executed))
            })
            .collect();
        let pairs: Vec<PairOutcome> = pairs
            .into_par_iter()
            .map(|(orders, executed)| PairOutcome::new(orders, executed.unwrap_or_default(), &prices))
            .collect();
        conserved(self.assets.len(), &pairs, &fills, &exacts)
            .map_err(|violation| Fault::Clearing { height, reason: violation.to_string() })?;
        let batch = Batch { pools: fills, exacts, ..batch(&valuations, short, &pairs) };
        self.revalue(&valuations, &groups);
        let exacts = self.judge_exacts(&orders.exacts, &batch, Some(&groups));
        Ok(Traded { batch, pairs, locked, exacts, report: Some(report) })
    }

    /// Removes the offers whose last batch this was, and lists every offer that left otherwise than by trading.
    fn end_offers(&mut self, height: Height, sessions: &SessionTurn, orders: &mut Orders, traded: &mut Traded) {
        let (mut ended, unlocked) = self.places.book.end(height);
        traded.locked.merge(&unlocked);
        self.follow_slots(sessions, orders, &traded.batch, &ended);
        let slots = self.ending_slots(height, sessions);
        if !slots.is_empty() {
            let mut places: Vec<(Pair, Place)> = slots.into_iter().flat_map(|slot| self.slots.places(slot)).collect();
            places.par_sort_unstable();
            let (lapsed, unlocked) = self.places.book.lapse(&places);
            traded.locked.merge(&unlocked);
            places.iter().for_each(|(_, place)| self.slots.leave(place));
            ended.extend(lapsed);
            ended.par_sort_unstable();
        }
        traded.pairs = with_ended(std::mem::take(&mut traded.pairs), &ended, orders);
        traded.batch.ended = std::mem::take(&mut orders.leaving);
        if !ended.is_empty() {
            traded.batch.ended.extend(ended);
            traded.batch.ended.par_sort_unstable();
        }
    }

    /// Follows what came into the book and left it of the offers of session keys, and what their timers are raised to.
    fn follow_slots(&mut self, sessions: &SessionTurn, orders: &Orders, batch: &Batch, ended: &[EndedOffer]) {
        for NewOffer { pair, offer, .. } in orders.offers.iter().filter(|new| slot_of(new.offer.place.id) > 0) {
            let account = self.places.accounts.get(&offer.place.account).expect("it has placed an offer");
            let session = account.session(slot_of(offer.place.id)).expect("the filter has found it");
            self.slots.come(*pair, &offer.place, session.alive);
        }
        if !self.slots.is_empty() {
            let sold = batch.fills.iter().filter(|fill| fill.left == 0).map(|fill| &fill.place);
            let left = orders.leaving.iter().chain(ended).map(|ended| &ended.place);
            sold.chain(left).filter(|place| slot_of(place.id) > 0).for_each(|place| self.slots.leave(place));
        }
        sessions.raised().for_each(|(slot, alive)| self.slots.set_timer(slot, alive));
    }

    /// Checks a given clearing, and makes its changes.
    fn trade_as(
        &mut self,
        height: Height,
        orders: &Orders,
        pools: &PoolTurn,
        attached: &Attached,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Traded, Fault> {
        stage(Stage::Orders);
        let awake = pools.awake(self.pools(), &self.least_units());
        let (pairs, groups) =
            self.check_attached(orders, &awake, attached).map_err(|violation| Fault::Attached { height, violation })?;
        stage(Stage::Clearing);
        Ok(self.make(attached, pairs, &orders.exacts, groups.as_ref()))
    }

    /// Makes the changes of a checked clearing.
    fn make(
        &mut self,
        attached: &Attached,
        pairs: Vec<PairOutcome>,
        exacts: &[NewExact],
        groups: Option<&Groups>,
    ) -> Traded {
        let locked = self.places.book.make(&pairs);
        let batch = batch(&attached.valuations, attached.short.clone(), &pairs);
        let batch = Batch { pools: attached.pools.clone(), exacts: attached.exacts.clone(), ..batch };
        match groups {
            Some(groups) => self.revalue(&attached.valuations, groups),
            None => self.forget_valuations(),
        }
        let exacts = self.judge_exacts(exacts, &batch, groups);
        Traded { batch, pairs, locked, exacts, report: None }
    }

    /// What a batch made of the block's exact orders.
    fn judge_exacts(&self, exacts: &[NewExact], batch: &Batch, groups: Option<&Groups>) -> Vec<(u32, ExactOutcome)> {
        let short = groups.map(|groups| groups.contain(&batch.short)).unwrap_or_default();
        let (valuations, params) = (&batch.valuations, self.clearing_params());
        Judge { groups, valuations, short: &short, params }.outcomes(exacts, batch)
    }

    /// Prices and amounts for a whole book, starting from this ledger's valuations; `None` if nothing is for sale.
    pub(crate) fn clear(
        &self,
        book: &OrderBook,
        awake: &[AwakePool],
        exacts: &[NewExact],
    ) -> Result<Option<Clearing>, String> {
        self.clear_pairs(book, awake, exacts, |_| true)
    }

    /// As [`Ledger::clear`], for the pairs that are chosen: whole groups, which the others do not concern.
    pub(crate) fn clear_pairs(
        &self,
        book: &OrderBook,
        awake: &[AwakePool],
        exacts: &[NewExact],
        is_chosen: impl Fn(Pair) -> bool,
    ) -> Result<Option<Clearing>, String> {
        if book.is_empty() && awake.is_empty() {
            return Ok(None);
        }
        let last = self.last_valuations();
        let offers: Vec<_> = book.iter().filter(|(pair, _)| is_chosen(*pair)).collect();
        let pairs = offers.par_iter().map(|(pair, offers)| offers.view(*pair)).collect();
        let pools = awake.iter().filter(|(key, _)| is_chosen(Pair { sell: key.a, buy: key.b }));
        let pools = pools.map(|(_, pool)| *pool).collect();
        let exacts = orders_of(exacts);
        let book = clearing::Book { assets: self.assets.len() as u32, pairs, pools, exacts };
        clearing::clear(&book, &self.clearing_params(), Some(&last)).map(Some).map_err(|error| error.to_string())
    }

    /// Where the search for prices starts: asset 0 is the unit of value, and an asset that had no price in the last
    /// batch has no meaningful one here.
    pub(crate) fn last_valuations(&self) -> Vec<Price> {
        let mut last: Vec<Price> = self.assets.iter().map(|asset| asset.valuation.unwrap_or(Price::ONE)).collect();
        last[0] = Price::ONE;
        last
    }

    /// The parameters of this chain's clearings.
    pub fn clearing_params(&self) -> Params {
        Params { epsilon: self.epsilon, mu: self.mu, ..Params::default() }
    }

    pub(crate) fn prices<'a>(&self, valuations: &'a [Price], least: &'a [Amount]) -> Prices<'a> {
        Prices { valuations, epsilon: self.epsilon, mu: self.mu, least, height: self.height + 1 }
    }

    /// The least units of each asset.
    pub(crate) fn least_units(&self) -> Vec<Amount> {
        self.assets.iter().map(|asset| asset.least_units).collect()
    }

    /// The least sizes of a pair's offers; both assets are listed.
    pub(crate) fn minima(&self, pair: Pair) -> Minima {
        let least = |asset: AssetId| self.assets[asset.0 as usize].least_units;
        Minima { sell: least(pair.sell), buy: least(pair.buy) }
    }

    /// Stores the valuations of the assets that have a price; the others have none.
    fn revalue(&mut self, valuations: &[Price], groups: &Groups) {
        let priced =
            valuations.iter().zip(groups.priced()).map(|(valuation, is_priced)| is_priced.then_some(*valuation));
        self.assets.iter_mut().zip(priced).for_each(|(asset, valuation)| asset.valuation = valuation);
    }

    /// Clears the valuations: nothing is for sale, so nothing has a price.
    fn forget_valuations(&mut self) {
        self.assets.iter_mut().for_each(|asset| asset.valuation = None);
    }

    /// Burns the auctioneer's surplus, and units of asset 0: fees and forfeited deposits.
    fn burn(&mut self, height: Height, fees: i128, batch: &mut Batch, issued: &mut Sums) -> Result<(), Fault> {
        let mut kept = Sums::default();
        for trade in &batch.trades {
            kept.add(trade.pair.sell, i128::from(trade.sold));
            kept.add(trade.pair.buy, -i128::from(trade.bought));
        }
        for fill in &batch.pools {
            kept.add(fill.sell(), i128::from(fill.sold));
            kept.add(fill.buy(), -i128::from(fill.bought));
        }
        for trade in &batch.exacts {
            kept.add(trade.pair.sell, i128::from(trade.sold));
            kept.add(trade.pair.buy, -i128::from(trade.bought));
        }
        if let Some(asset) = (0..self.assets.len()).find(|asset| kept.get(*asset) < 0) {
            let units = kept.get(asset).unsigned_abs();
            return Err(Fault::Auctioneer { height, asset: AssetId(asset as u32), units });
        }
        kept.add(AssetId(0), fees);
        for (number, asset) in self.assets.iter_mut().enumerate() {
            let id = AssetId(number as u32);
            let kept = kept.get(number);
            issued.add(id, -kept);
            let units = i128::from(asset.issued) + issued.get(number);
            asset.issued = Amount::try_from(units).expect("issued units stay between zero and the cap");
            if kept > 0 {
                batch.burnt.push((id, kept as Amount));
            }
        }
        Ok(())
    }

    /// Applies the operations on places that keep units for accounts.
    fn apply_places(
        &mut self,
        block: &Superblock,
        orders: &Orders,
        transactions: &[&Transaction],
        refusals: &[Option<Refusal>],
    ) -> AtPlaces {
        let mut turn = Turn {
            block,
            limits: &self.limits,
            refusals,
            transactions,
            pays_back: self.schedule().is_boundary(block.height),
            convicted: Vec::new(),
            answering: BTreeSet::new(),
            answering_heights: 0,
            lane: Vec::new(),
            void: Vec::new(),
            settled: Vec::new(),
            concerned: Vec::new(),
        };
        let kept = self.places.apply(&mut turn, &orders.edits);
        let Turn { lane, void, settled: venues, concerned, .. } = turn;
        AtPlaces { kept, lane, venues, void: void.into_iter().collect(), concerned }
    }

    /// The digests of all assets.
    pub(crate) fn asset_digests(&self) -> Vec<(u32, [u8; 32])> {
        (0..).zip(&self.assets).map(|(number, asset)| (number, asset_digest(asset))).collect()
    }

    /// Checks that the places of custody changed together by as much as the issue. If a place that holds units is
    /// missing in the list of places, its first block is a fault.
    fn check_conservation(&self, height: Height, held: &PlaceSums, issued: &Sums) -> Result<(), Fault> {
        let held = held.named();
        for number in 0..self.assets.len() {
            let (sum, issued): (i128, _) = (held.iter().map(|(_, sums)| sums.get(number)).sum(), issued.get(number));
            if sum != issued {
                let places = held.iter().map(|(place, sums)| (*place, sums.get(number))).collect();
                return Err(Fault::Conservation { height, asset: AssetId(number as u32), places, issued });
            }
        }
        Ok(())
    }
}

/// Merges changes of pairs with later ones that remove no ranges; both are in order.
fn with_later(changes: Vec<PairChange>, later: Vec<PairChange>) -> Vec<PairChange> {
    if later.is_empty() {
        return changes;
    }
    let mut all: BTreeMap<Pair, PairChange> = changes.into_iter().map(|change| (change.pair, change)).collect();
    for PairChange { pair, through, edits } in later {
        let change = all.entry(pair).or_insert(PairChange { pair, through, edits: Vec::new() });
        change.edits = merged(change.edits.iter().copied(), edits.into_iter());
    }
    all.into_values().collect()
}

/// A block's native transactions, in order.
fn native(block: &Superblock) -> Vec<&Transaction> {
    block.sub_blocks.iter().flat_map(|sub| &sub.native).collect()
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

/// Adds accounts that are concerned though their balances may not have changed, by address.
fn with_concerned(mut modified: Vec<Address>, concerned: Vec<Address>) -> Vec<Address> {
    if !concerned.is_empty() {
        modified.extend(concerned);
        modified.sort_unstable();
        modified.dedup();
    }
    modified
}

/// Marks what the operations on pools did; those that found no room did nothing.
fn mark_pooled(outcomes: &mut [Outcome], filtered: &Filtered, transactions: &[&Transaction], pools: &PoolTurn) {
    for admitted in filtered.admitted.iter().flatten() {
        let body = &transactions[admitted.index as usize].body;
        if matches!(body.operation, Operation::Pool(_)) {
            let pooled = pools.outcome((body.account, body.sequence));
            outcomes[admitted.index as usize] = pooled.map_or(Outcome::Void, Outcome::Pooled);
        }
    }
}

/// The trade of a pool, as receipts name it.
fn pool_fill(awake: &[AwakePool], trade: &PoolTrade) -> PoolFill {
    let (key, PoolTrade { sell, sold, bought, .. }) = (awake[trade.pool as usize].0, *trade);
    PoolFill { pool: key, sells_a: sell == key.a, sold, bought }
}

/// Marks the operations at venues, on pools and on session keys, and the replacements that pay and do nothing.
fn mark_void(
    outcomes: &mut [Outcome],
    filtered: &Filtered,
    transactions: &[&Transaction],
    void: &BTreeSet<(Address, Sequence)>,
) {
    for admitted in filtered.admitted.iter().flatten().filter(|admitted| admitted.is_idle || !void.is_empty()) {
        let body = &transactions[admitted.index as usize].body;
        let is_void = admitted.is_idle || void.contains(&(body.account, body.sequence));
        if is_void && is_voidable(&body.operation) {
            outcomes[admitted.index as usize] = Outcome::Void;
        }
    }
}

fn is_voidable(operation: &Operation) -> bool {
    matches!(operation, Operation::Venue(_) | Operation::Replace(_) | Operation::Pool(_) | Operation::Session(_))
}

fn outcomes(
    transactions: &[&Transaction],
    filtered: &Filtered,
    pairs: &[PairOutcome],
    replaced: &[(u32, Amount)],
) -> Vec<Outcome> {
    let refused = |refusal: &Option<Refusal>| refusal.map_or(Outcome::Applied, Outcome::Refused);
    let mut outcomes: Vec<Outcome> = filtered.refusals.iter().map(refused).collect();
    for admitted in filtered.admitted.iter().flatten() {
        if let Operation::Cancel(places) = &transactions[admitted.index as usize].body.operation {
            let missing = places.len() as u8 - admitted.found;
            outcomes[admitted.index as usize] = Outcome::Cancelled(Cancelled { found: admitted.found, missing });
        }
    }
    for (index, traded) in pairs.iter().flat_map(|pair| &pair.met) {
        outcomes[*index as usize] = Outcome::Offered(*traded);
    }
    for (index, remained) in replaced {
        let outcome = &mut outcomes[*index as usize];
        let met = if let Outcome::Offered(met) = outcome { *met } else { Met::NOT_PLACED };
        *outcome = Outcome::Replaced(Replaced { remained: *remained, met });
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Genesis, Listing};
    use primitives::Fraction;

    fn ledger() -> Ledger {
        let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, Address::default())).to_vec();
        let balances = vec![(Address([1; 20]), AssetId(0), 1_000), (Address([1; 20]), AssetId(1), 1_000)];
        let (fee, mu) = (5, Fraction::power_of_two(10));
        Ledger::new(&Genesis { fee, mu, assets, balances, ..Genesis::default() }).expect("sound")
    }

    /// The fees of the block do not cover the auctioneer's deficit either.
    #[test]
    fn an_auctioneer_who_lacks_a_unit_stops_the_block() {
        let pair = |sell, buy| Pair { sell: AssetId(sell), buy: AssetId(buy) };
        let trades = vec![
            PairTrade { pair: pair(0, 1), sold: 10, bought: 10 },
            PairTrade { pair: pair(1, 0), sold: 11, bought: 11 },
        ];
        let mut batch = Batch { trades, ..Batch::default() };
        let (mut ledger, mut issued) = (ledger(), Sums::default());
        let fault = ledger.burn(1, 35, &mut batch, &mut issued).expect_err("it pays 11 units of 10");
        assert_eq!(fault, Fault::Auctioneer { height: 1, asset: AssetId(0), units: 1 });
        batch.trades[0].sold = 11;
        ledger.burn(1, 35, &mut batch, &mut issued).expect("nothing is missing");
        assert_eq!(batch.burnt, [(AssetId(0), 35), (AssetId(1), 1)]);
    }
}
