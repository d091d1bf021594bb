//! Independent bookkeeping of accounts and offers from the receipts: the ledger must have done what its receipts say.

use std::collections::{BTreeMap, BTreeSet};

use ledger::contracts::{FIRST_CONTRACT_OFFER, OfferEvent, WETH9};
use ledger::{BlockReceipts, Cancelled, Edit, EndReason, Genesis, Ledger, NO_END, Outcome, Pair, PairOffers, Place};
use primitives::{
    Address, Amount, AssetId, ExactSide, Life, OfferPlace, Operation, Price, PublicKey, Sequence, Superblock,
    Transaction,
};

use super::bonds::Bonds;
use super::distorted::transactions;
use super::exacts::{check_exact, exact_orders, kept_by_exacts};
use super::pools::{PoolBooks, met};
use crate::ethereum::{WeiBooks, moved};

#[derive(Clone, Default)]
struct Holder {
    balances: BTreeMap<AssetId, i128>,
    used: BTreeSet<Sequence>,
    key: Option<PublicKey>,
}

/// See the module text.
#[derive(Clone)]
pub(crate) struct Shadow {
    fee: Amount,
    issued: Vec<i128>,
    holders: BTreeMap<Address, Holder>,
    offers: BTreeMap<(Pair, Place), Amount>,
    /// The last heights of offers that have one.
    ends: BTreeMap<(Pair, Place), u64>,
    least: Vec<Amount>,
    bonds: Bonds,
    pools: PoolBooks,
    wei: WeiBooks,
}

impl Shadow {
    pub fn new(genesis: &Genesis) -> Shadow {
        let issued = vec![0; genesis.assets.len()];
        let membership = genesis.membership.clone().expect("the clients' genesis has validators");
        let bonds = Bonds::new(&membership);
        let (fee, holders, offers) = (genesis.fee, BTreeMap::new(), BTreeMap::new());
        let least = genesis.assets.iter().map(|listing| listing.least_units).collect();
        let (wei, pools) = (WeiBooks::default(), PoolBooks::default());
        let mut shadow = Shadow { fee, issued, holders, offers, ends: BTreeMap::new(), least, bonds, pools, wei };
        shadow.issued[0] += shadow.bonds.total();
        for founder in &membership.founders {
            shadow.holders.entry(founder.account).or_default();
        }
        if genesis.limits.has_contracts() {
            shadow.holders.entry(WETH9).or_default();
        }
        for listing in &genesis.assets {
            shadow.holders.entry(listing.issuer).or_default();
        }
        for &(account, asset, units) in &genesis.balances {
            shadow.add(account, asset, i128::from(units));
            shadow.issued[asset.0 as usize] += i128::from(units);
        }
        shadow
    }

    fn add(&mut self, account: Address, asset: AssetId, units: i128) {
        *self.holders.entry(account).or_default().balances.entry(asset).or_default() += units;
    }

    /// Processes a block on top of `before`. Effects of contracts are read from `after`, and compared with the wei
    /// that were spent.
    pub fn apply(
        &mut self,
        block: &Superblock,
        receipts: &BlockReceipts,
        before: &Ledger,
        after: &Ledger,
    ) -> Result<(), String> {
        let effective: Vec<(&Transaction, Outcome)> = transactions(block)
            .zip(&receipts.outcomes)
            .map(|(transaction, (_, outcome))| (transaction, *outcome))
            .filter(|(_, outcome)| outcome.refusal().is_none())
            .collect();
        for (transaction, _) in &effective {
            self.debit(transaction)?;
        }
        // Amounts that a block credits cannot be spent in it.
        self.check_overdrafts()?;
        self.cancel(&effective, receipts)?;
        for (transaction, outcome) in &effective {
            self.credit(transaction, outcome, receipts)?;
        }
        let operations: Vec<&Transaction> = effective.iter().map(|(transaction, _)| *transaction).collect();
        for (account, units) in self.bonds.apply(block, receipts, &operations, before)? {
            self.add(account, AssetId(0), units);
        }
        for (account, asset, units) in self.pools.apply(&effective, &receipts.batch)? {
            self.add(account, asset, i128::from(units));
        }
        self.settle(receipts, &effective)?;
        self.end(receipts)?;
        self.follow_contracts(receipts, after)
    }

    fn follow_contracts(&mut self, receipts: &BlockReceipts, after: &Ledger) -> Result<(), String> {
        let gas_asset = AssetId(0);
        let holders = &self.holders;
        let units = |address: &Address| {
            let holder = holders.get(address);
            holder.and_then(|holder| holder.balances.get(&gas_asset)).copied().unwrap_or(0)
        };
        let (now, burnt) = self.wei.follow(receipts, after, units)?;
        for (address, units) in now {
            self.holders.entry(address).or_default().balances.insert(gas_asset, units);
        }
        self.issued[0] -= burnt;
        self.follow_tokens(receipts)
    }

    /// What tokens and offers moved of other assets, and the offers that contracts placed and cancelled.
    fn follow_tokens(&mut self, receipts: &BlockReceipts) -> Result<(), String> {
        let logs = || receipts.contracts.receipts.iter().flat_map(|receipt| &receipt.logs);
        for (asset, from, to, amount) in logs().filter_map(moved) {
            self.add(from, asset, -i128::from(amount));
            self.add(to, asset, i128::from(amount));
        }
        for event in OfferEvent::of_block(&receipts.contracts) {
            let (pair, place, change) = match event {
                OfferEvent::Placed(pair, place, amount) => {
                    if place.id < FIRST_CONTRACT_OFFER || self.is_too_small(pair, place.limit, amount) {
                        return Err(format!("a contract's offer of {amount} of {pair:?} at {place:?} is too small"));
                    }
                    let is_new = self.offers.insert((pair, place), amount).is_none();
                    (pair, place, if is_new { -i128::from(amount) } else { 0 })
                }
                OfferEvent::Cancelled(pair, place, amount) => {
                    if self.offers.remove(&(pair, place)) != Some(amount) {
                        return Err(format!("{place:?} was cancelled by its contract, but did not rest there"));
                    }
                    (pair, place, i128::from(amount))
                }
            };
            if pair.sell != AssetId(0) {
                self.add(place.account, pair.sell, change);
            }
        }
        self.check_overdrafts()
    }

    fn debit(&mut self, transaction: &Transaction) -> Result<(), String> {
        let body = &transaction.body;
        let holder = self.holders.get_mut(&body.account).ok_or_else(|| format!("{} never existed", body.account))?;
        if !holder.used.insert(body.sequence) {
            return Err(format!("sequence number {} of {} is used twice", body.sequence, body.account));
        }
        self.add(body.account, AssetId(0), -self.cost(transaction));
        for (asset, units) in body.operation.debits().into_iter().flatten() {
            self.add(body.account, asset, -i128::from(units));
        }
        Ok(())
    }

    /// A fee for each KiB begun of a lane post, none for a member's duty, one more for each eight offers of a cancel
    /// and for an offer with an end, and one for everything else.
    fn cost(&self, transaction: &Transaction) -> i128 {
        let fees = match &transaction.body.operation {
            Operation::Lane(bytes) if bytes.first().is_some_and(|first| *first >= 0x80) => 0,
            Operation::Cancel(places) => 1 + places.len() as i128 / 8,
            Operation::CreateOffer { life: Life::Until(_), .. } => 2,
            Operation::Exact { .. } => 4,
            Operation::Pool(operation) if operation.shares().is_none() => 1_000,
            Operation::Lane(bytes) if !bytes.is_empty() => 1 + (bytes.len() as i128 - 1) / 1_024,
            _ => 1,
        };
        fees * i128::from(self.fee)
    }

    fn check_overdrafts(&self) -> Result<(), String> {
        for (address, holder) in &self.holders {
            if let Some((asset, units)) = holder.balances.iter().find(|(_, units)| **units < 0) {
                return Err(format!("{address} is overdrawn: {units} of asset {asset}"));
            }
        }
        Ok(())
    }

    /// Removes what the block's cancels name and what rested before it, once, and pays it back.
    fn cancel(&mut self, effective: &[(&Transaction, Outcome)], receipts: &BlockReceipts) -> Result<(), String> {
        let mut named: BTreeSet<(Pair, Place)> = BTreeSet::new();
        for (transaction, outcome) in effective {
            let Operation::Cancel(places) = &transaction.body.operation else { continue };
            let account = transaction.body.account;
            let key = |of: &OfferPlace| {
                (Pair { sell: of.sell, buy: of.buy }, Place { limit: of.limit, account, id: of.offer })
            };
            let found: Vec<_> = places.iter().map(key).filter(|key| self.offers.contains_key(key)).collect();
            let told = Cancelled { found: found.len() as u8, missing: (places.len() - found.len()) as u8 };
            if found.is_empty() || *outcome != Outcome::Cancelled(told) {
                return Err(format!("a cancel of {account} found {}, but its outcome is {outcome:?}", found.len()));
            }
            named.extend(found);
        }
        let cancelled = || receipts.batch.ended.iter().filter(|ended| ended.why == EndReason::Cancelled);
        let told = cancelled().map(|ended| (ended.pair, ended.place));
        if !named.iter().copied().eq(told) {
            return Err(format!("{named:?} were cancelled, but {:?} ended", receipts.batch.ended));
        }
        for ended in cancelled() {
            if self.offers.remove(&(ended.pair, ended.place)) != Some(ended.returned) {
                return Err(format!("{ended:?}, but another amount rested"));
            }
            self.add(ended.place.account, ended.pair.sell, i128::from(ended.returned));
        }
        Ok(())
    }

    fn credit(&mut self, transaction: &Transaction, outcome: &Outcome, receipts: &BlockReceipts) -> Result<(), String> {
        let (account, id) = (transaction.body.account, transaction.body.sequence);
        match transaction.body.operation {
            Operation::CreateAccount { account: to, key } => {
                let holder = self.holders.entry(to).or_default();
                // A new account is controlled by the key whose hash is its address.
                holder.key = if to == account { Some(key) } else { holder.key };
            }
            Operation::CreateOffer { sell, buy, amount, limit, life, .. } => {
                let (pair, place) = (Pair { sell, buy }, Place { limit, account, id });
                if self.is_too_small(pair, limit, amount) {
                    return Err(format!("an offer of {amount} of {pair:?} at {limit} is too small"));
                }
                self.offers.insert((pair, place), amount);
                match life {
                    Life::Rests => {}
                    Life::Until(until) if until < receipts.height => return Err(format!("an offer ended at {until}")),
                    Life::Until(until) => drop(self.ends.insert((pair, place), until)),
                    Life::OneBatch => drop(self.ends.insert((pair, place), receipts.height)),
                }
                check_offer(
                    pair,
                    place,
                    amount,
                    self.ends.get(&(pair, place)) == Some(&receipts.height),
                    outcome,
                    receipts,
                )?;
            }
            Operation::Exact { sell, buy, side, units, bound, .. } => {
                let (sold, bought) =
                    check_exact(Pair { sell, buy }, side, (units, bound), (account, id), outcome, receipts)?;
                let locked = if side == ExactSide::Buy { bound } else { units };
                self.add(account, sell, i128::from(locked) - i128::from(sold));
                self.add(account, buy, i128::from(bought));
            }
            Operation::Cancel(_) => {}
            Operation::Session(_) => {
                return Err("no client has session keys, but an operation on one was applied".into());
            }
            Operation::Replace(_) => return Err("no client replaces an offer, but a replacement was applied".into()),
            Operation::Pay { to, asset, amount } => self.add(to, asset, i128::from(amount)),
            Operation::Issue { to, asset, amount } => {
                self.add(to, asset, i128::from(amount));
                self.issued[asset.0 as usize] += i128::from(amount);
            }
            Operation::Burn { asset, amount } => self.issued[asset.0 as usize] -= i128::from(amount),
            Operation::Stake(_) | Operation::Unstake { .. } | Operation::Accuse(_) | Operation::Pool(_) => {}
            Operation::Venue(_) => return Err("the chain has no venues, but an operation on one was applied".into()),
            Operation::Withdraw { .. } | Operation::Lane(_) => {
                return Err("the chain has no payment lane, but an operation on it was applied".into());
            }
        }
        Ok(())
    }

    /// Whether `amount` units at a limit sell or ask for less than the least size.
    fn is_too_small(&self, pair: Pair, limit: Price, amount: Amount) -> bool {
        let [sell, buy] = [pair.sell, pair.buy].map(|asset| self.least[asset.0 as usize]);
        // The least payment that satisfies the limit, found by trial.
        amount < sell || (0..buy).any(|asked| limit.accepts(amount, asked))
    }

    /// Processes fills, and the burnt amounts.
    fn settle(&mut self, receipts: &BlockReceipts, effective: &[(&Transaction, Outcome)]) -> Result<(), String> {
        let batch = &receipts.batch;
        let mut kept = vec![0; self.issued.len()];
        kept[0] = effective.iter().map(|(transaction, _)| self.cost(transaction)).sum();
        for fill in &batch.fills {
            let key = (fill.pair, fill.place);
            if self.offers.get(&key) != Some(&(fill.sold + fill.left + fill.returned)) || fill.sold == 0 {
                return Err(format!("a fill of an offer that does not exist: {fill:?}"));
            }
            if !fill.place.limit.accepts(fill.sold, fill.bought) {
                return Err(format!("a fill below its limit: {fill:?}"));
            }
            let rest = fill.left + fill.returned;
            let goes_back = rest > 0 && self.is_too_small(fill.pair, fill.place.limit, rest);
            if fill.returned != if goes_back { rest } else { 0 } {
                return Err(format!("of a remainder of {rest} units {} are returned: {fill:?}", fill.returned));
            }
            self.add(fill.place.account, fill.pair.sell, i128::from(fill.returned));
            match fill.left {
                0 => self.offers.remove(&key),
                left => self.offers.insert(key, left),
            };
            self.add(fill.place.account, fill.pair.buy, i128::from(fill.bought));
            kept[fill.pair.sell.0 as usize] += i128::from(fill.sold);
            kept[fill.pair.buy.0 as usize] -= i128::from(fill.bought);
        }
        for trade in &batch.exacts {
            kept[trade.pair.sell.0 as usize] += i128::from(trade.sold);
            kept[trade.pair.buy.0 as usize] -= i128::from(trade.bought);
        }
        for fill in &batch.pools {
            kept[fill.sell().0 as usize] += i128::from(fill.sold);
            kept[fill.buy().0 as usize] -= i128::from(fill.bought);
        }
        let burnt: BTreeMap<AssetId, i128> =
            batch.burnt.iter().map(|(asset, units)| (*asset, (*units).into())).collect();
        for (number, kept) in kept.iter().enumerate() {
            let asset = AssetId(number as u32);
            if burnt.get(&asset).copied().unwrap_or(0) != *kept {
                return Err(format!("asset {asset}: {kept} units were kept, but burnt: {:?}", burnt.get(&asset)));
            }
            self.issued[number] -= kept;
        }
        Ok(())
    }

    /// Removes what ended with the block, and pays it back.
    fn end(&mut self, receipts: &BlockReceipts) -> Result<(), String> {
        let is_over = |key: &(Pair, Place)| self.ends.get(key).is_some_and(|until| *until <= receipts.height);
        let over: Vec<((Pair, Place), Amount)> =
            self.offers.iter().filter(|(key, _)| is_over(key)).map(|(key, left)| (*key, *left)).collect();
        let after = receipts.batch.ended.iter().filter(|ended| ended.why.is_after_batch());
        let told: Vec<_> = after.map(|ended| ((ended.pair, ended.place), ended.returned)).collect();
        if told != over {
            return Err(format!("{over:?} were over, but {told:?} ended"));
        }
        for ((pair, place), left) in over {
            self.offers.remove(&(pair, place));
            self.add(place.account, pair.sell, i128::from(left));
        }
        self.ends.retain(|key, _| self.offers.contains_key(key));
        Ok(())
    }

    /// Compares the ledger with these books.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        if ledger.accounts().len() != self.holders.len() {
            return Err(format!("{} accounts, but {} by the receipts", ledger.accounts().len(), self.holders.len()));
        }
        for (number, asset) in ledger.assets().iter().enumerate() {
            if i128::from(asset.issued) != self.issued[number] {
                let by_receipts = self.issued[number];
                return Err(format!("asset {number}: {} issued, but {by_receipts} by the receipts", asset.issued));
            }
        }
        self.holders.iter().try_for_each(|(address, holder)| holder.hold(address, ledger))?;
        self.bonds.hold(ledger)?;
        self.pools.hold(ledger)?;
        let resting: BTreeMap<(Pair, Place), Amount> = ledger
            .book()
            .iter()
            .flat_map(|(pair, offers)| offers.iter().map(move |offer| ((pair, offer.place), offer.amount)))
            .collect();
        if resting == self.offers { Ok(()) } else { Err("the book differs from the receipts".into()) }
    }
}

impl Holder {
    fn hold(&self, address: &Address, ledger: &Ledger) -> Result<(), String> {
        let account = ledger.accounts().get(address).ok_or_else(|| format!("{address} is missing"))?;
        let state = account.state();
        let held: Vec<(AssetId, i128)> =
            state.balances.iter().map(|(asset, units)| (*asset, (*units).into())).collect();
        let ours: Vec<(AssetId, i128)> =
            self.balances.iter().filter(|(_, units)| **units != 0).map(|(asset, units)| (*asset, *units)).collect();
        if held != ours {
            return Err(format!("{address} holds {held:?}, but by the receipts {ours:?}"));
        }
        if let Some(free) = self.used.iter().find(|used| state.window.check(**used).is_ok()) {
            return Err(format!("sequence number {free} of {address} is used but still free"));
        }
        if state.window.highest() != self.used.last().copied().unwrap_or(0) || state.key != self.key {
            return Err(format!("{address} has a key or window that differs from the receipts"));
        }
        Ok(())
    }
}

/// A new offer's receipt agrees with the batch's fills.
fn check_offer(
    pair: Pair,
    place: Place,
    amount: Amount,
    ends: bool,
    outcome: &Outcome,
    receipts: &BlockReceipts,
) -> Result<(), String> {
    let Outcome::Offered(met) = outcome else { return Err(format!("an offer has the outcome {outcome:?}")) };
    let fill = receipts.batch.fills_of(pair).iter().find(|fill| fill.place == place);
    let (sold, bought, left, returned) =
        fill.map_or((0, 0, amount, 0), |fill| (fill.sold, fill.bought, fill.left, fill.returned));
    let told = if ends { (sold, bought, 0, left + returned) } else { (sold, bought, left, returned) };
    if (met.sold, met.bought, met.left, met.returned) == told {
        Ok(())
    } else {
        Err(format!("{met:?} was reported, but {fill:?} was filled"))
    }
}

/// Verifies the batch independently of the solver, on the book that it met.
pub(crate) fn verify_batch(
    ledger: &Ledger,
    receipts: &BlockReceipts,
    report: Option<clearing::Report>,
) -> Result<(), String> {
    let batch = &receipts.batch;
    let none = PairOffers::default();
    let mut later = undone(receipts);
    let left = batch.fills.iter().map(|fill| fill.pair).chain(batch.ended.iter().map(|ended| ended.pair));
    let pairs = ledger.book().iter().map(|(pair, _)| pair).chain(left);
    let pairs: BTreeSet<Pair> = pairs.chain(later.keys().copied()).collect();
    let offers = pairs.into_iter().map(|pair| {
        let after = ledger.book().get(pair).unwrap_or(&none).with(&later.remove(&pair).unwrap_or_default());
        (pair, after.as_met_by(batch, pair))
    });
    let offers: Vec<_> = offers.filter(|(_, offers)| !offers.is_empty()).collect();
    let (pools, pool_trades) = met(ledger, batch)?;
    let Some(report) = report else {
        return if offers.is_empty() && pools.is_empty() { Ok(()) } else { Err("a book was not cleared".into()) };
    };
    let pairs = offers.iter().map(|(pair, offers)| offers.view(*pair));
    let (exacts, exact_fills) = exact_orders(batch);
    let book = clearing::Book { assets: ledger.assets().len() as u32, pairs: pairs.collect(), pools, exacts };
    let trade = |trade: &ledger::PairTrade| {
        let (sell, buy) = (trade.pair.sell, trade.pair.buy);
        clearing::Trade { sell, buy, sold: trade.sold }
    };
    let trades = batch.trades.iter().map(trade).collect();
    let claimed = clearing::Clearing {
        valuations: batch.valuations.clone(),
        trades,
        pools: pool_trades,
        exacts: exact_fills,
        full: batch.full(),
        short: batch.short.clone(),
        report,
    };
    let verified = clearing::verify(&book, &ledger.clearing_params(), &claimed).map_err(|error| error.to_string())?;
    for (asset, surplus) in verified.surplus.iter().enumerate() {
        let sold: i128 = of(asset, batch, |trade| (trade.pair.sell, trade.sold));
        let bought: i128 = of(asset, batch, |trade| (trade.pair.buy, trade.bought));
        let is = |of: AssetId| i128::from(of.0 as usize == asset);
        let by_pools = |fill: &ledger::PoolFill| {
            is(fill.sell()) * i128::from(fill.sold) - is(fill.buy()) * i128::from(fill.bought)
        };
        let pooled: i128 = batch.pools.iter().map(by_pools).sum();
        if sold - bought + pooled + kept_by_exacts(asset, batch) != i128::from(*surplus) {
            return Err(format!("asset {asset}: {} units kept in trades, but {surplus} are due", sold - bought));
        }
    }
    Ok(())
}

/// Edits that take a book back to its state before contracts placed and cancelled offers, by pair and place.
fn undone(receipts: &BlockReceipts) -> BTreeMap<Pair, Vec<Edit>> {
    let mut edits: BTreeMap<(Pair, Place), Option<Amount>> = BTreeMap::new();
    for event in OfferEvent::of_block(&receipts.contracts) {
        match event {
            OfferEvent::Placed(pair, place, _) => edits.insert((pair, place), None),
            OfferEvent::Cancelled(pair, place, amount) => match edits.get(&(pair, place)) {
                Some(None) => continue,
                _ => edits.insert((pair, place), Some(amount)),
            },
        };
    }
    let mut by_pair: BTreeMap<Pair, Vec<Edit>> = BTreeMap::new();
    for ((pair, place), amount) in edits {
        by_pair.entry(pair).or_default().push(Edit { place, amount, until: NO_END });
    }
    by_pair
}

fn of(asset: usize, batch: &ledger::Batch, side: impl Fn(&ledger::PairTrade) -> (AssetId, Amount)) -> i128 {
    let sides = batch.trades.iter().map(side).filter(|(traded, _)| traded.0 as usize == asset);
    sides.map(|(_, units)| i128::from(units)).sum()
}
