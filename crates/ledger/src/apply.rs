//! A superblock's native phase: filter, effects, book, clearing, settlement.
//!
//! Upon a decided block, the filter names the transactions that count; each shard of accounts marks sequence numbers
//! and takes debits; payments, issues and refunds are credited by the shards that receive them; cancelled offers leave
//! the book and new ones join it; the whole book is cleared as one batch; fills pay the accounts that sold, in order of
//! limit price, with at most one partial fill a pair; what the auctioneer keeps is burnt.
//!
//! **Properties.** Every step is over disjoint parts of the state, so that the outcome does not depend on threads; and
//! the filter, the book and the clearing do not depend on the order of transactions (rule 6). After each block and for
//! every asset, the change of spendable balances plus the change of what offers lock equals the change of what is
//! issued: three sums taken where the three are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use clearing::{Clearing, Params, Rate};
use primitives::{Address, Amount, AssetId, Digest, Height, Operation, Superblock, Transaction};
use rayon::prelude::*;

use crate::accounts::{SHARDS, Shard, shard_of};
use crate::book::{Offer, Pair, PairOffers, Place};
use crate::changes::{Changes, PairChange, account_digest, asset_digest, offer_digest};
use crate::filter::{Admitted, Filtered};
use crate::receipt::{Batch, Fill, Outcome, PairTrade, Traded, Why};
use crate::{Ledger, Refusal};

/// What is known of a block's signatures.
#[derive(Clone, Copy, Debug)]
pub enum Signatures<'a> {
    /// All were found valid before: on arrival, or before the block was logged.
    Valid,
    /// For each native transaction of the block, in order, whether its signature is valid.
    Known(&'a [bool]),
    /// None was checked yet.
    Unchecked,
}

/// The steps of a block, told to whoever measures them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Signatures, where they were not checked before.
    Signatures,
    /// The deterministic filter.
    Filter,
    /// Sequence numbers, debits, payments, cancellations and new offers.
    Effects,
    /// Prices and amounts.
    Clearing,
    /// Fills and pay-outs.
    Settlement,
    /// Digests of what changed.
    Digests,
}

impl Stage {
    /// The name in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Signatures => "signatures",
            Stage::Filter => "filter",
            Stage::Effects => "effects",
            Stage::Clearing => "clearing",
            Stage::Settlement => "settlement",
            Stage::Digests => "digests",
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
    /// What became of each native transaction, in the order of the block.
    pub outcomes: Vec<Outcome>,
    /// The batch.
    pub batch: Batch,
    /// How the prices were found.
    pub report: Option<clearing::Report>,
    /// What the tries have to learn.
    pub changes: Changes,
}

/// Why a block cannot be applied at all. The state may be half changed: stop, and recover from the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not the next block.
    #[error("block {got} does not follow height {height}")]
    Height {
        /// The ledger's height.
        height: Height,
        /// The block's.
        got: Height,
    },
    /// A block on top of another history.
    #[error("block {height} builds on {got}, but this ledger's last block is {parent}")]
    Parent {
        /// The block's height.
        height: Height,
        /// The ledger's last block.
        parent: Digest,
        /// What the block names.
        got: Digest,
    },
    /// The solver refused the book.
    #[error("block {height}: {reason}")]
    Clearing {
        /// The block's height.
        height: Height,
        /// What it said.
        reason: String,
    },
    /// Money appeared or vanished.
    #[error(
        "block {height}: asset {asset}: balances changed by {balances} and offers by {offers}, but the issue by {issued}: conservation is broken, stop"
    )]
    Conservation {
        /// The block's height.
        height: Height,
        /// The asset.
        asset: AssetId,
        /// Change of the sum of spendable balances.
        balances: i128,
        /// Change of what offers lock.
        offers: i128,
        /// Change of the units issued.
        issued: i128,
    },
}

/// Units on their way to an account; zero units make the account exist.
struct Credit {
    to: Address,
    asset: AssetId,
    amount: Amount,
}

/// A new offer, and the transaction that made it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NewOffer {
    pair: Pair,
    offer: Offer,
    index: u32,
}

/// What comes into a pair's book and what leaves it, by place.
type PairWork<'a> = (&'a [NewOffer], &'a [(Pair, Place)]);

/// What one shard's transactions ask of the rest of the ledger.
#[derive(Default)]
struct Effects {
    credits: Vec<Credit>,
    offers: Vec<NewOffer>,
    cancels: Vec<(Pair, Place)>,
    issued: Vec<(AssetId, i128)>,
    touched: Vec<u32>,
    sums: Sums,
}

/// Changes of units by asset.
#[derive(Clone, Default)]
struct Sums(Vec<i128>);

impl Sums {
    fn add(&mut self, asset: AssetId, change: i128) {
        let at = asset.0 as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += change;
    }

    fn merge(&mut self, other: &Sums) {
        other.0.iter().enumerate().for_each(|(asset, change)| self.add(AssetId(asset as u32), *change));
    }

    fn get(&self, asset: usize) -> i128 {
        self.0.get(asset).copied().unwrap_or(0)
    }
}

/// What is gathered while a block is applied.
struct Block {
    /// Positions of changed accounts, by shard.
    touched: Vec<Vec<u32>>,
    balances: Sums,
    locked: Sums,
    issued: Sums,
}

impl Ledger {
    /// Applies the next block. `stage` is called at the end of each step.
    ///
    /// # Errors
    /// [`Fault`] if the block is not the next one, or an invariant broke.
    pub fn apply(
        &mut self,
        block: &Superblock,
        signatures: Signatures,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Applied, Fault> {
        self.check_succession(block)?;
        let digest = Superblock::digest(&block.to_bytes());
        let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
        let checked = matches!(signatures, Signatures::Unchecked).then(|| primitives::verify_all(&transactions));
        let valid = match signatures {
            Signatures::Known(valid) => Some(valid),
            Signatures::Valid | Signatures::Unchecked => checked.as_deref(),
        };
        stage(Stage::Signatures);
        let filtered = self.filter(&transactions, valid);
        stage(Stage::Filter);
        let mut gathered = Block {
            touched: vec![Vec::new(); SHARDS],
            balances: Sums::default(),
            locked: Sums::default(),
            issued: Sums::default(),
        };
        let (new_offers, mut pair_changes) = self.take_effects(&transactions, &filtered, &mut gathered);
        stage(Stage::Effects);
        let cleared = self.clear(block.height)?;
        stage(Stage::Clearing);
        let mut outcomes: Vec<Outcome> =
            filtered.refusals.iter().map(|r| r.map_or(Outcome::Applied, Outcome::Refused)).collect();
        let mut batch = self.settle(&cleared, &mut gathered, &mut pair_changes);
        self.explain_offers(&new_offers, &cleared, &batch, &mut outcomes);
        self.burn(&transactions, &filtered, &mut batch, &mut gathered);
        self.check_conservation(block.height, &gathered)?;
        stage(Stage::Settlement);
        self.height = block.height;
        self.last_block = digest;
        let changes = self.changes(gathered.touched, pair_changes);
        stage(Stage::Digests);
        let report = cleared.map(|cleared| cleared.report);
        Ok(Applied { height: block.height, block: digest, outcomes, batch, report, changes })
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

    /// Debits, credits, cancellations and new offers; returns the new offers by pair and place, and what changed in
    /// the book.
    fn take_effects(
        &mut self,
        transactions: &[&Transaction],
        filtered: &Filtered,
        gathered: &mut Block,
    ) -> (Vec<NewOffer>, Vec<PairChange>) {
        let fee = self.fee;
        let effects: Vec<Effects> = self
            .accounts
            .shards_mut()
            .par_iter_mut()
            .zip(&filtered.admitted)
            .map(|(shard, admitted)| match admitted.as_slice() {
                [] => Effects::default(),
                admitted => act(Arc::make_mut(shard), admitted, transactions, fee),
            })
            .collect();
        let mut credits = Vec::new();
        let mut offers = Vec::new();
        let mut cancels = Vec::new();
        for (shard, mut effect) in effects.into_iter().enumerate() {
            credits.append(&mut effect.credits);
            offers.append(&mut effect.offers);
            cancels.append(&mut effect.cancels);
            gathered.touched[shard].append(&mut effect.touched);
            gathered.balances.merge(&effect.sums);
            effect.issued.iter().for_each(|&(asset, change)| gathered.issued.add(asset, change));
        }
        offers.par_sort_unstable();
        cancels.par_sort_unstable();
        let changes = self.update_book(&offers, &cancels, &mut credits, gathered);
        self.book.drop_empty();
        self.credit(credits, gathered);
        (offers, changes)
    }

    fn update_book(
        &mut self,
        offers: &[NewOffer],
        cancels: &[(Pair, Place)],
        credits: &mut Vec<Credit>,
        gathered: &mut Block,
    ) -> Vec<PairChange> {
        let mut offers_of: BTreeMap<Pair, PairWork> = BTreeMap::new();
        for new in offers.chunk_by(|a, b| a.pair == b.pair) {
            offers_of.entry(new[0].pair).or_default().0 = new;
        }
        for gone in cancels.chunk_by(|a, b| a.0 == b.0) {
            offers_of.entry(gone[0].0).or_default().1 = gone;
        }
        for pair in offers_of.keys() {
            self.book.entry(*pair);
        }
        let work: Vec<_> = self
            .book
            .iter_mut()
            .filter_map(|(pair, book)| offers_of.get(&pair).map(|&(new, gone)| (pair, book, new, gone)))
            .collect();
        let updated: Vec<(PairChange, Vec<Credit>, i128)> =
            work.into_par_iter().map(|(pair, book, new, gone)| update_pair(pair, book, new, gone)).collect();
        updated
            .into_iter()
            .map(|(change, mut refunds, locked)| {
                credits.append(&mut refunds);
                gathered.locked.add(change.pair.sell, locked);
                change
            })
            .collect()
    }

    /// Pays credits into their accounts, each shard by one thread.
    fn credit(&mut self, credits: Vec<Credit>, gathered: &mut Block) {
        let mut starts = vec![0usize; SHARDS + 1];
        credits.iter().for_each(|credit| starts[shard_of(&credit.to) + 1] += 1);
        (0..SHARDS).for_each(|shard| starts[shard + 1] += starts[shard]);
        let mut order = vec![0u32; credits.len()];
        let mut next = starts.clone();
        for (at, credit) in credits.iter().enumerate() {
            let slot = &mut next[shard_of(&credit.to)];
            order[*slot] = at as u32;
            *slot += 1;
        }
        let sums: Vec<Sums> = self
            .accounts
            .shards_mut()
            .par_iter_mut()
            .zip(gathered.touched.par_iter_mut())
            .enumerate()
            .map(|(number, (shard, touched))| {
                let mut sums = Sums::default();
                let own = &order[starts[number]..starts[number + 1]];
                if !own.is_empty() {
                    let shard = Arc::make_mut(shard);
                    own.iter().for_each(|&at| pay_in(shard, &credits[at as usize], touched, &mut sums));
                }
                sums
            })
            .collect();
        sums.iter().for_each(|sum| gathered.balances.merge(sum));
    }

    /// Prices and amounts for the whole book; `None` if nothing is for sale.
    fn clear(&self, height: Height) -> Result<Option<Clearing>, Fault> {
        if self.book.is_empty() {
            return Ok(None);
        }
        let last: Vec<_> = self.assets.iter().map(|asset| asset.valuation).collect();
        clearing::clear(&self.clearing_book(), &self.clearing_params(), Some(&last))
            .map(Some)
            .map_err(|error| Fault::Clearing { height, reason: error.to_string() })
    }

    /// The book as the solver sees it.
    pub fn clearing_book(&self) -> clearing::Book<'_> {
        let pairs = self.book.iter().map(|(pair, offers)| offers.view(pair));
        clearing::Book { assets: self.assets.len() as u32, pairs: pairs.collect() }
    }

    /// The parameters of this chain's clearings.
    pub fn clearing_params(&self) -> Params {
        Params { epsilon: self.epsilon, mu: self.mu, ..Params::default() }
    }

    /// Pays what was sold and takes it out of the book.
    fn settle(
        &mut self,
        cleared: &Option<Clearing>,
        gathered: &mut Block,
        pair_changes: &mut Vec<PairChange>,
    ) -> Batch {
        let Some(cleared) = cleared else {
            return Batch { full: true, ..Batch::default() };
        };
        for (asset, valuation) in self.assets.iter_mut().zip(&cleared.valuations) {
            asset.valuation = *valuation;
        }
        let mut trades = cleared.trades.iter().peekable();
        let epsilon = self.epsilon;
        let work: Vec<_> = self
            .book
            .iter_mut()
            .filter_map(|(pair, book)| {
                trades
                    .next_if(|trade| (trade.sell, trade.buy) == (pair.sell, pair.buy))
                    .map(|trade| (pair, book, trade.sold))
            })
            .collect();
        let settled: Vec<(PairChange, Vec<Fill>, i128)> = work
            .into_par_iter()
            .map(|(pair, book, sold)| {
                let valuation = |asset: AssetId| cleared.valuations[asset.0 as usize];
                let rate = Rate::new(valuation(pair.sell), valuation(pair.buy), epsilon);
                settle_pair(pair, book, &rate, sold)
            })
            .collect();
        let mut batch = Batch { valuations: cleared.valuations.clone(), full: cleared.full, ..Batch::default() };
        let mut credits = Vec::new();
        for (change, mut fills, locked) in settled {
            gathered.locked.add(change.pair.sell, locked);
            let sold = fills.iter().map(|fill| fill.sold).sum();
            let bought = fills.iter().map(|fill| fill.bought).sum();
            batch.trades.push(PairTrade { pair: change.pair, sold, bought });
            credits.extend(fills.iter().map(|fill| Credit {
                to: fill.place.account,
                asset: fill.pair.buy,
                amount: fill.bought,
            }));
            batch.fills.append(&mut fills);
            pair_changes.push(change);
        }
        self.credit(credits, gathered);
        self.book.drop_empty();
        batch
    }

    /// Writes into the receipts of new offers how they met the batch.
    fn explain_offers(
        &self,
        new_offers: &[NewOffer],
        cleared: &Option<Clearing>,
        batch: &Batch,
        outcomes: &mut [Outcome],
    ) {
        let Some(cleared) = cleared else { return };
        let valuation = |asset: AssetId| cleared.valuations[asset.0 as usize];
        let met: Vec<(u32, Traded)> = new_offers
            .par_chunk_by(|a, b| a.pair == b.pair)
            .flat_map_iter(|new| {
                let pair = new[0].pair;
                let rate = Rate::new(valuation(pair.sell), valuation(pair.buy), self.epsilon);
                let mut fills = batch.fills_of(pair).iter().peekable();
                new.iter().map(move |new| {
                    while fills.next_if(|fill| fill.place < new.offer.place).is_some() {}
                    let fill = fills.peek().filter(|fill| fill.place == new.offer.place);
                    let far =
                        clearing::must_fill(new.offer.place.limit, self.mu, valuation(pair.sell), valuation(pair.buy));
                    (new.index, met(&new.offer, fill.copied(), &rate, far))
                })
            })
            .collect();
        for (index, traded) in met {
            outcomes[index as usize] = Outcome::Offered(traded);
        }
    }

    /// Burns fees and what the auctioneer keeps.
    fn burn(&mut self, transactions: &[&Transaction], filtered: &Filtered, batch: &mut Batch, gathered: &mut Block) {
        let mut kept = Sums::default();
        for trade in &batch.trades {
            kept.add(trade.pair.sell, i128::from(trade.sold));
            kept.add(trade.pair.buy, -i128::from(trade.bought));
        }
        let admitted = transactions.len() - filtered.refusals.iter().flatten().count();
        kept.add(AssetId(0), i128::from(self.fee) * admitted as i128);
        for (number, asset) in self.assets.iter_mut().enumerate() {
            let id = AssetId(number as u32);
            let kept = kept.get(number);
            gathered.issued.add(id, -kept);
            let issued = i128::from(asset.issued) + gathered.issued.get(number);
            asset.issued = Amount::try_from(issued).expect("what is issued stays between zero and the cap");
            if kept > 0 {
                batch.burnt.push((id, kept as Amount));
            }
        }
    }

    fn check_conservation(&self, height: Height, gathered: &Block) -> Result<(), Fault> {
        for number in 0..self.assets.len() {
            let (balances, offers, issued) =
                (gathered.balances.get(number), gathered.locked.get(number), gathered.issued.get(number));
            if balances + offers != issued {
                return Err(Fault::Conservation { height, asset: AssetId(number as u32), balances, offers, issued });
            }
        }
        Ok(())
    }

    fn changes(&self, touched: Vec<Vec<u32>>, pairs: Vec<PairChange>) -> Changes {
        let accounts = touched
            .into_par_iter()
            .zip(self.accounts.shards())
            .map(|(mut touched, shard)| {
                touched.sort_unstable();
                touched.dedup();
                let mut changed: Vec<_> = touched
                    .into_iter()
                    .map(|position| (shard.at(position).address().0, Some(account_digest(shard.at(position)))))
                    .collect();
                changed.sort_unstable();
                changed
            })
            .collect::<Vec<_>>()
            .concat();
        let assets = self.assets.iter().enumerate().map(|(number, asset)| (number as u32, asset_digest(asset)));
        Changes { accounts, pairs, assets: assets.collect() }
    }
}

/// How a new offer met the batch; `far` says whether its limit is below the rate by more than μ.
fn met(offer: &Offer, fill: Option<&Fill>, rate: &Rate, far: bool) -> Traded {
    let (sold, bought) = fill.map_or((0, 0), |fill| (fill.sold, fill.bought));
    let limit = offer.place.limit;
    let whole_units = rate.payout(offer.amount).is_some_and(|bought| limit.accepts(offer.amount, bought));
    let why = match () {
        _ if sold == offer.amount => Why::Filled,
        _ if sold > 0 => Why::Part,
        _ if !rate.reaches(limit) => Why::AboveTheRate,
        _ if !whole_units => Why::Rounding,
        _ if far => Why::NotTaken,
        _ => Why::AtTheMargin,
    };
    Traded { sold, bought, left: offer.amount - sold, why }
}

/// Marks sequence numbers, takes debits and collects what goes elsewhere, for one shard's senders.
fn act(shard: &mut Shard, admitted: &[Admitted], transactions: &[&Transaction], fee: Amount) -> Effects {
    let mut effects = Effects::default();
    for &Admitted { index, position } in admitted {
        let body = &transactions[index as usize].body;
        let account = shard.at_mut(position);
        account.window_mut().mark(body.sequence);
        effects.touched.push(position);
        for (asset, amount) in [(AssetId(0), fee)].into_iter().chain(body.operation.debit()) {
            account.debit(asset, amount);
            effects.sums.add(asset, -i128::from(amount));
        }
        match body.operation {
            // The filter has judged all transactions of the block by the old key.
            Operation::CreateAccount { account: own, key } if own == body.account => account.register(key),
            Operation::CreateAccount { account: to, .. } => {
                effects.credits.push(Credit { to, asset: AssetId(0), amount: 0 });
            }
            Operation::CreateOffer { sell, buy, amount, limit } => {
                let place = Place { limit, account: body.account, id: body.sequence };
                effects.offers.push(NewOffer { pair: Pair { sell, buy }, offer: Offer { place, amount }, index });
            }
            Operation::CancelOffer { sell, buy, limit, offer } => {
                effects.cancels.push((Pair { sell, buy }, Place { limit, account: body.account, id: offer }));
            }
            Operation::Pay { to, asset, amount } => effects.credits.push(Credit { to, asset, amount }),
            Operation::Issue { to, asset, amount } => {
                effects.credits.push(Credit { to, asset, amount });
                effects.issued.push((asset, i128::from(amount)));
            }
            Operation::Burn { asset, amount } => effects.issued.push((asset, -i128::from(amount))),
        }
    }
    effects
}

fn pay_in(shard: &mut Shard, credit: &Credit, touched: &mut Vec<u32>, sums: &mut Sums) {
    let position = shard.find_or_insert(&credit.to);
    shard.at_mut(position).credit(credit.asset, credit.amount);
    touched.push(position);
    sums.add(credit.asset, i128::from(credit.amount));
}

fn locked(book: &PairOffers) -> i128 {
    book.amounts().iter().map(|amount| i128::from(*amount)).sum()
}

/// Takes cancelled offers out of one pair and puts new ones in; returns refunds and the change of what is locked.
fn update_pair(
    pair: Pair,
    book: &mut Arc<PairOffers>,
    new: &[NewOffer],
    gone: &[(Pair, Place)],
) -> (PairChange, Vec<Credit>, i128) {
    let book = Arc::make_mut(book);
    let before = locked(book);
    let found = |place: &Place| book.find(place).expect("the filter found the offer");
    let positions: Vec<usize> = gone.iter().map(|(_, place)| found(place)).collect();
    let refund = |&at: &usize| Credit { to: book.place(at).account, asset: pair.sell, amount: book.amounts()[at] };
    let refunds = positions.iter().map(refund).collect();
    let added: Vec<Offer> = new.iter().map(|new| new.offer).collect();
    book.update(&positions, &added);
    let mut entries: Vec<_> = gone.iter().map(|(_, place)| (place.key(), None)).collect();
    entries.extend(added.iter().map(|offer| (offer.place.key(), Some(offer_digest(offer.amount)))));
    entries.sort_unstable();
    (PairChange { pair, entries }, refunds, locked(book) - before)
}

/// Executes one pair's offers at its rate; returns the fills and the change of what is locked.
fn settle_pair(pair: Pair, book: &mut Arc<PairOffers>, rate: &Rate, sold: Amount) -> (PairChange, Vec<Fill>, i128) {
    let book = Arc::make_mut(book);
    let before = locked(book);
    let view = book.view(pair);
    let executed: Vec<(usize, Amount, Amount)> = clearing::fills(&view, rate, sold).each(&view, rate).collect();
    let fill = |&(at, sold, bought): &(usize, Amount, Amount)| {
        let offer = book.offer(at);
        Fill { pair, place: offer.place, sold, bought, left: offer.amount - sold }
    };
    let fills: Vec<Fill> = executed.iter().map(fill).collect();
    let partial = executed.iter().zip(&fills).find(|(_, fill)| fill.left > 0).map(|(executed, _)| *executed);
    if let Some((at, sold, _)) = partial {
        book.reduce(at, sold);
    }
    let filled = executed.iter().zip(&fills).filter(|(_, fill)| fill.left == 0).map(|(executed, _)| executed.0);
    book.update(&filled.collect::<Vec<_>>(), &[]);
    let entry = |fill: &Fill| (fill.place.key(), (fill.left > 0).then(|| offer_digest(fill.left)));
    let change = PairChange { pair, entries: fills.iter().map(entry).collect() };
    (change, fills, locked(book) - before)
}

impl Outcome {
    /// The refusal, if the transaction had no effect.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Outcome::Refused(refusal) => Some(*refusal),
            Outcome::Applied | Outcome::Offered(_) => None,
        }
    }
}
