//! Independent bookkeeping of accounts and offers from the receipts: the ledger must have done what its receipts say.

mod replaced;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use ledger::contracts::WETH9;
use ledger::{BlockReceipts, Cancelled, EndReason, Genesis, Ledger, Outcome, Pair, Place, Traded};
use primitives::{
    Address, Amount, AssetId, ExactSide, Life, OfferPlace, Operation, Parameter, Price, Superblock, Transaction,
    slot_of,
};

use super::bonds::Bonds;
use super::distorted::transactions;
use super::exacts::check_exact;
use super::holder::Holder;
use super::offered::check_offer;
use super::pools::PoolBooks;
use crate::controls::ControlBooks;
use crate::ethereum::WeiBooks;
use crate::fees::fees_of;
use crate::listings::ListingBooks;
use crate::policies::{PolicyBooks, PolicyCounts};
use crate::proposals::{Electorate, Entering, ProposalBooks, ProposalCounts};
use crate::sessions::{SessionBlock, SessionBooks, SessionCounts, SlotName};

/// A transaction that counted, and what became of it.
type Counted<'a> = (&'a Transaction, Outcome);

/// See the module text.
#[derive(Clone)]
pub(crate) struct Shadow {
    fee: Amount,
    issued: Vec<i128>,
    holders: BTreeMap<Address, Holder>,
    offers: BTreeMap<(Pair, Place), Amount>,
    /// The last heights of offers that have one.
    ends: BTreeMap<(Pair, Place), u64>,
    bonds: Bonds,
    pools: PoolBooks,
    sessions: SessionBooks,
    policies: PolicyBooks,
    listings: ListingBooks,
    proposals: ProposalBooks,
    controls: ControlBooks,
    wei: WeiBooks,
}

impl Shadow {
    pub fn new(genesis: &Genesis) -> Shadow {
        let issued = vec![0; genesis.assets.len()];
        let membership = genesis.membership.clone().expect("the clients' genesis has validators");
        let bonds = Bonds::new(&membership);
        let (fee, holders, offers) = (genesis.fee, BTreeMap::new(), BTreeMap::new());
        let (wei, pools) = (WeiBooks::default(), PoolBooks::default());
        let sessions = SessionBooks::new(membership.terms.network, fee);
        let (ends, policies, listings) = (BTreeMap::new(), PolicyBooks::default(), ListingBooks::new(genesis));
        let (proposals, controls) = (ProposalBooks::new(genesis), ControlBooks::new(genesis));
        let mut shadow = Shadow {
            fee,
            issued,
            holders,
            offers,
            ends,
            bonds,
            pools,
            sessions,
            policies,
            listings,
            proposals,
            controls,
            wei,
        };
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

    /// What session keys have done.
    pub fn session_counts(&self) -> SessionCounts {
        self.sessions.counts
    }

    /// What assets there are, by the receipts.
    pub fn listings(&self) -> &ListingBooks {
        &self.listings
    }

    /// What was proposed and voted.
    pub fn proposal_counts(&self) -> ProposalCounts {
        self.proposals.counts
    }

    /// What issuers have said of holders, by the receipts.
    pub fn controls(&self) -> &ControlBooks {
        &self.controls
    }

    /// The pools, by the receipts.
    pub fn pools(&self) -> &PoolBooks {
        &self.pools
    }

    /// What accounts with policies have done.
    pub fn policy_counts(&self) -> PolicyCounts {
        self.policies.counts
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
        let effective: Vec<Counted> = transactions(block)
            .zip(&receipts.outcomes)
            .map(|(transaction, (_, outcome))| (transaction, *outcome))
            .filter(|(_, outcome)| outcome.refusal().is_none())
            .collect();
        self.policies.apply(block.height, &effective)?;
        let resting: BTreeSet<Pair> = self.offers.keys().map(|(pair, _)| *pair).collect();
        let (waiting, mut listings) = (self.proposals.names(), self.listings.clone());
        listings.apply(block.height, &effective, &receipts.batch, (&self.offers, &waiting))?;
        let electorate = Electorate { stakes: self.bonds.stakes(), before, after };
        let entering = self.proposals.apply(block.height, &effective, &electorate, &self.listings)?;
        self.listings = listings;
        self.issued.resize(self.listings.assets(), 0);
        let frozen = self.controls.apply(block.height, &effective)?;
        for (transaction, outcome) in &effective {
            self.debit(transaction, outcome)?;
        }
        // Amounts that a block credits cannot be spent in it.
        self.check_overdrafts()?;
        let batch = &receipts.batch;
        let ending = self.sessions.apply(SessionBlock { height: block.height, effective: &effective, batch })?;
        let cancelled = self.cancel(&effective, receipts)?;
        self.replace(&effective, &cancelled, receipts)?;
        for (transaction, outcome) in &effective {
            self.credit(transaction, outcome, receipts)?;
        }
        let operations: Vec<&Transaction> = effective.iter().map(|(transaction, _)| *transaction).collect();
        for (account, units) in self.bonds.apply(block, receipts, &operations, (before, after))? {
            self.add(account, AssetId(0), units);
        }
        for (account, asset, units) in self.pools.apply(&effective, batch)? {
            self.add(account, asset, i128::from(units));
        }
        let expelled = self.pools.expel(&frozen);
        self.controls.counts.expelled += expelled.len() as u64 / 2;
        expelled.into_iter().for_each(|(account, asset, units)| self.add(account, asset, i128::from(units)));
        self.settle(receipts, &effective)?;
        self.end(receipts, &ending, &frozen)?;
        self.follow_contracts(receipts, after)?;
        self.listings.check_pairs(&self.offers.keys().map(|(pair, _)| *pair).collect(), &resting)?;
        if let Some(entering) = &entering {
            self.enter(block.height, entering);
        }
        Ok(())
    }

    /// What validators have voted acts from the next block on.
    fn enter(&mut self, height: u64, entering: &Entering) {
        let (listed, closed) = self.listings.enter(height, &entering.values, (&entering.lists, &entering.closes));
        self.proposals.counts.listed += listed;
        self.proposals.counts.closed += closed;
        self.issued.resize(self.listings.assets(), 0);
        self.fee = entering.values[&Parameter::Fee];
        self.sessions.charge(self.fee);
        self.bonds.set_reward(entering.values[&Parameter::Reward]);
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

    /// Takes fee and debits; what does nothing pays its fee alone, but for the opening of a pool, which gets it back.
    fn debit(&mut self, transaction: &Transaction, outcome: &Outcome) -> Result<(), String> {
        let body = &transaction.body;
        let holder = self.holders.get_mut(&body.account).ok_or_else(|| format!("{} never existed", body.account))?;
        // A presence has no number; `bonds` counts that there is one of each epoch. Nor has what a validator's key says
        // about the rules.
        let has_number = body.sequence > 0;
        if has_number && slot_of(body.sequence) == 0 && !holder.used.insert(body.sequence) {
            return Err(format!("sequence number {} of {} is used twice", body.sequence, body.account));
        }
        self.add(body.account, AssetId(0), -self.cost(transaction));
        let is_idle = *outcome == Outcome::Void && matches!(body.operation, Operation::Replace(_));
        for (asset, units) in body.operation.debits().into_iter().flatten().filter(|_| !is_idle) {
            self.add(body.account, asset, -i128::from(units));
        }
        Ok(())
    }

    fn cost(&self, transaction: &Transaction) -> i128 {
        fees_of(transaction) * i128::from(self.fee)
    }

    fn check_overdrafts(&self) -> Result<(), String> {
        for (address, holder) in &self.holders {
            if let Some((asset, units)) = holder.balances.iter().find(|(_, units)| **units < 0) {
                return Err(format!("{address} is overdrawn: {units} of asset {asset}"));
            }
        }
        Ok(())
    }

    /// Removes what the block's cancels name and what rested before it, once, and pays it back; returns it.
    fn cancel(&mut self, effective: &[Counted], receipts: &BlockReceipts) -> Result<BTreeSet<(Pair, Place)>, String> {
        let mut named: BTreeSet<(Pair, Place)> = BTreeSet::new();
        for (transaction, outcome) in effective {
            let Operation::Cancel(places) = &transaction.body.operation else { continue };
            let account = transaction.body.account;
            let found: Vec<_> =
                places.iter().map(|of| place_of(account, of)).filter(|key| self.offers.contains_key(key)).collect();
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
        Ok(named)
    }

    /// A new offer, which the batch met.
    fn open(
        &mut self,
        new: (Pair, Place),
        amount: Amount,
        life: Life,
        met: Traded,
        receipts: &BlockReceipts,
    ) -> Result<(), String> {
        self.offers.insert(new, amount);
        match life {
            Life::Rests => {}
            Life::Until(until) if until < receipts.height => return Err(format!("an offer ended at {until}")),
            Life::Until(until) => drop(self.ends.insert(new, until)),
            Life::OneBatch => drop(self.ends.insert(new, receipts.height)),
        }
        let is_last = self.ends.get(&new) == Some(&receipts.height);
        check_offer(new, amount, is_last, met, receipts)
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
                let Outcome::Offered(met) = outcome else {
                    return Err(format!("an offer has the outcome {outcome:?}"));
                };
                self.open((pair, place), amount, life, *met, receipts)?;
            }
            Operation::Exact { sell, buy, side, units, bound, .. } => {
                let (sold, bought) =
                    check_exact(Pair { sell, buy }, side, (units, bound), (account, id), outcome, receipts)?;
                let locked = if side == ExactSide::Buy { bound } else { units };
                self.add(account, sell, i128::from(locked) - i128::from(sold));
                self.add(account, buy, i128::from(bought));
            }
            Operation::Cancel(_) | Operation::Session(_) | Operation::Replace(_) => {}
            Operation::Pay { to, asset, amount } | Operation::PayReferenced { to, asset, amount, .. } => {
                self.add(to, asset, i128::from(amount))
            }
            Operation::Issue { to, asset, amount } | Operation::IssueReferenced { to, asset, amount, .. } => {
                self.add(to, asset, i128::from(amount));
                self.issued[asset.0 as usize] += i128::from(amount);
            }
            Operation::Burn { asset, amount } => self.issued[asset.0 as usize] -= i128::from(amount),
            Operation::Stake(_) | Operation::Unstake { .. } | Operation::Accuse(_) | Operation::Pool(_) => {}
            Operation::Present { .. } | Operation::Approve { .. } | Operation::Unapprove { .. } => {}
            Operation::SealDuty { .. } => {}
            Operation::SetKeys(_) | Operation::RecoverKeys(_) | Operation::CompleteKeys { .. } => {}
            Operation::SetReceiving { .. } => {}
            // `listings` and `proposals` have judged them.
            Operation::ListAsset(_) | Operation::CloseAsset { .. } => {}
            Operation::Propose(_) | Operation::Vote { .. } => {}
            // `controls` has judged them; no run is so long that a recovery is due.
            Operation::SetHolder { .. } | Operation::Recover(_) => {}
            Operation::Sealed(_) => return Err("nobody seals here, but an envelope was applied".into()),
            Operation::Venue(_) => return Err("the chain has no venues, but an operation on one was applied".into()),
            Operation::Withdraw { .. } | Operation::Lane(_) => {
                return Err("the chain has no payment lane, but an operation on it was applied".into());
            }
        }
        Ok(())
    }

    /// Whether `amount` units at a limit sell or ask for less than the least size.
    fn is_too_small(&self, pair: Pair, limit: Price, amount: Amount) -> bool {
        let [sell, buy] = [pair.sell, pair.buy].map(|asset| self.listings.least(asset));
        // The least payment that satisfies the limit, found by trial.
        amount < sell || (0..buy).any(|asked| limit.accepts(amount, asked))
    }

    /// Processes fills, and the burnt amounts.
    fn settle(&mut self, receipts: &BlockReceipts, effective: &[Counted]) -> Result<(), String> {
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

    /// Removes what ended with the block, and pays it back; the slots are those whose offers end with it, as those of
    /// closed assets do, and those of holders who are frozen.
    fn end(
        &mut self,
        receipts: &BlockReceipts,
        slots: &BTreeSet<SlotName>,
        frozen: &[(AssetId, Address)],
    ) -> Result<(), String> {
        let is_frozen = |(pair, place): &(Pair, Place)| {
            let is_of = |asset: AssetId| pair.sell == asset || pair.buy == asset;
            frozen.iter().any(|(asset, account)| *account == place.account && is_of(*asset))
        };
        let is_due = |key: &(Pair, Place)| self.ends.get(key).is_some_and(|until| *until <= receipts.height);
        let lapses = |place: &Place| slots.contains(&(place.account, slot_of(place.id)));
        let is_over = |(key, left): (&(Pair, Place), &Amount)| {
            let why = match () {
                () if is_due(key) => None,
                () if lapses(&key.1) => Some(EndReason::Lapsed),
                () if self.listings.returns(key.0, receipts.height) => Some(EndReason::Closed),
                () if is_frozen(key) => Some(EndReason::Frozen),
                () => return None,
            };
            Some(((*key, *left), why))
        };
        let over: Vec<_> = self.offers.iter().filter_map(is_over).collect();
        let after = receipts.batch.ended.iter().filter(|ended| ended.why.is_after_batch());
        let names =
            |why| Some(why).filter(|why| matches!(why, EndReason::Lapsed | EndReason::Closed | EndReason::Frozen));
        let told = after.map(|ended| (((ended.pair, ended.place), ended.returned), names(ended.why)));
        let told: Vec<_> = told.collect();
        if told != over {
            return Err(format!("{over:?} were over, but {told:?} ended"));
        }
        for (((pair, place), left), why) in over {
            self.controls.counts.ended += u64::from(why == Some(EndReason::Frozen));
            self.offers.remove(&(pair, place));
            self.add(place.account, pair.sell, i128::from(left));
        }
        self.ends.retain(|key, _| self.offers.contains_key(key));
        Ok(())
    }

    /// Compares the ledger with these books.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        self.proposals.hold(ledger)?;
        self.listings.hold(ledger)?;
        self.controls.hold(ledger)?;
        self.offers.keys().try_for_each(|(pair, place)| self.controls.check_offer(*pair, &place.account))?;
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
        self.sessions.hold(ledger)?;
        self.policies.hold(ledger)?;
        let resting: BTreeMap<(Pair, Place), Amount> = ledger
            .book()
            .iter()
            .flat_map(|(pair, offers)| offers.iter().map(move |offer| ((pair, offer.place), offer.amount)))
            .collect();
        if resting == self.offers { Ok(()) } else { Err("the book differs from the receipts".into()) }
    }
}

/// The place of an offer of this account.
fn place_of(account: Address, of: &OfferPlace) -> (Pair, Place) {
    (Pair { sell: of.sell, buy: of.buy }, Place { limit: of.limit, account, id: of.offer })
}
