//! Data that clients ask for and the ledger does not keep: recent blocks and batches, the places of transactions, the
//! offers of an account. Everything here is bounded, and can be rebuilt from the ledger and the archive.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ledger::contracts::{ContractReceipts, OfferEvent};
use ledger::{Applied, Batch, BlockReceipts, Ledger, NO_END, Offer, Outcome, Pair, Place, outcomes_by_id};
use primitives::{Address, Digest, Height, Life, OfferReplacement, Operation, Superblock, Transaction, TransactionId};

use replica::EthereumIndex;

use crate::open_offers::OpenOffers;
use crate::outline::Outline;
use crate::venues::{SettledRange, VenueBlock, VenueHistory};

/// Number of blocks whose summaries and batches stay in memory.
pub const RECENT_BLOCKS: usize = 2_000;
/// Number of blocks that can be found by their digest.
const BLOCKS_BY_DIGEST: usize = 100_000;
/// Number of pair trades of recent batches that stay in memory.
const RECENT_TRADES: usize = 2_000_000;

/// The place of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct FoundTransaction {
    /// Height of its block.
    pub height: Height,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The summary of a block.
#[derive(Clone, Debug)]
pub struct BlockSummary {
    /// Height.
    pub height: Height,
    /// Digest of the block.
    pub block: Digest,
    /// Digest of the block below.
    pub parent: Digest,
    /// The proposer's clock.
    pub time_ms: u64,
    /// Validators whose sub-blocks are in it, in order.
    pub proposers: Vec<u32>,
    /// Native transactions in the block, with the operations of its envelopes.
    pub transactions: usize,
    /// Number of transactions that took effect.
    pub applied: usize,
    /// Ethereum transactions that were executed.
    pub ethereum: usize,
    /// Offers that executed.
    pub fills: usize,
    /// Pairs that traded.
    pub pairs: usize,
    /// Whether the batch met fullness.
    pub full: bool,
    /// Root of the receipts.
    pub receipts_root: Digest,
    /// Root of the state after this block, once the tries have it.
    pub state_root: Option<Digest>,
    /// Milliseconds of each stage, by name.
    pub stages_ms: Vec<(&'static str, f64)>,
}

/// A batch, with the solver's report.
#[derive(Clone, Debug)]
pub struct BatchSummary {
    /// Height of the block.
    pub height: Height,
    /// The proposer's clock.
    pub time_ms: u64,
    /// Valuations, trades, fills and what was burnt.
    pub batch: Batch,
    /// The solver's report; `None` for an empty book, after a restart, or if the clearing came with the block.
    pub report: Option<clearing::Report>,
}

/// An account that acted, its transaction, and the outcome.
pub type ActedOutcome = (Address, TransactionId, Outcome);

/// A committed block, as sent to the stream and to waiting clients.
#[derive(Debug)]
pub struct CommittedBlock {
    /// The summary of the block.
    pub summary: BlockSummary,
    /// Its batch.
    pub batch: Arc<BatchSummary>,
    /// Each transaction's account, id and outcome, in the order of the block, and behind them those of the operations
    /// in its envelopes.
    pub outcomes: Vec<ActedOutcome>,
    /// Of a block of the archive: the ids and outcomes of the operations in its envelopes, which stay unread.
    unread: Vec<(TransactionId, Outcome)>,
    /// Accounts that others paid.
    pub credited: HashSet<Address>,
    /// Settles of venues that counted.
    pub settles: Vec<SettledRange>,
    /// The outline of the ledger after it; `None` for a block of the archive.
    pub outline: Option<Arc<Outline>>,
}

/// See the module text.
pub struct Views {
    blocks: VecDeque<BlockSummary>,
    batches: VecDeque<Arc<BatchSummary>>,
    trades: usize,
    index_limit: usize,
    index: HashMap<TransactionId, FoundTransaction>,
    indexed: VecDeque<Vec<TransactionId>>,
    offers: OpenOffers,
    venues: VenueHistory,
    /// Changes of offers by contracts after the last batch.
    after_batch: Vec<OfferEvent>,
    outline: Arc<Outline>,
    /// The newest state root and its height.
    newest_root: (Height, Digest),
    /// State roots that arrived before the summary of their block.
    early_roots: BTreeMap<Height, Digest>,
    /// Number of transactions that took effect, and that were rejected in a block, since start.
    pub totals: (u64, u64),
    ethereum: EthereumIndex,
    heights: HashMap<Digest, Height>,
    /// The digests in `heights`, oldest first.
    digests: VecDeque<Digest>,
}

impl Views {
    /// The views of a recovered ledger, with its root.
    pub fn new(ledger: &Ledger, root: Digest, index_limit: usize) -> Views {
        Views {
            blocks: VecDeque::new(),
            batches: VecDeque::new(),
            trades: 0,
            index_limit,
            index: HashMap::new(),
            indexed: VecDeque::new(),
            offers: OpenOffers::of(ledger.book()),
            venues: VenueHistory::of(ledger.venues()),
            after_batch: Vec::new(),
            outline: Arc::new(Outline::of(ledger)),
            newest_root: (ledger.height(), root),
            early_roots: BTreeMap::new(),
            totals: (0, 0),
            ethereum: EthereumIndex::new(ledger.height(), index_limit),
            heights: HashMap::new(),
            digests: VecDeque::new(),
        }
    }

    /// Replaces the index of Ethereum receipts by one of archived blocks; the newest must be of the present height.
    pub fn with_ethereum(self, ethereum: EthereumIndex) -> Views {
        Views { ethereum, ..self }
    }

    /// Receipts of Ethereum transactions and logs.
    pub fn ethereum(&self) -> &EthereumIndex {
        &self.ethereum
    }

    /// Adds a committed block. `transactions` are those of its outcomes.
    pub fn commit(&mut self, committed: &CommittedBlock, transactions: &[&Transaction], contracts: &ContractReceipts) {
        self.ethereum.add(contracts);
        for (transaction, (account, _, outcome)) in transactions.iter().zip(&committed.outcomes) {
            if let (&Operation::CreateOffer { sell, buy, limit, life, .. }, Outcome::Offered(met)) =
                (&transaction.body.operation, outcome)
            {
                let place = Place { limit, account: *account, id: transaction.body.sequence };
                let until = if let Life::Until(until) = life { until } else { NO_END };
                self.offers.place(Pair { sell, buy }, Offer { place, amount: met.left, until });
            }
        }
        for (transaction, (account, _, outcome)) in transactions.iter().zip(&committed.outcomes) {
            if let (Operation::Replace(replace), Outcome::Replaced(replaced)) = (&transaction.body.operation, outcome) {
                let OfferReplacement { old, limit, life, .. } = **replace;
                let place = Place { limit, account: *account, id: transaction.body.sequence };
                let until = if let Life::Until(until) = life { until } else { NO_END };
                let pair = Pair { sell: old.sell, buy: old.buy };
                self.offers.place(pair, Offer { place, amount: replaced.met.left, until });
            }
        }
        let block = VenueBlock { height: committed.summary.height, time_ms: committed.summary.time_ms };
        let outcomes = committed.outcomes.iter().map(|(_, _, outcome)| *outcome);
        self.venues.add(block, &committed.settles, transactions.iter().copied().zip(outcomes));
        for fill in &committed.batch.batch.fills {
            self.offers.set(fill.pair, fill.place, fill.left);
        }
        for ended in &committed.batch.batch.ended {
            self.offers.remove(&ended.place.account, ended.place.id);
        }
        self.follow_contracts(contracts);
        if let Some(outline) = &committed.outline {
            self.outline = outline.clone();
        }
        let applied = committed.summary.applied as u64;
        self.totals.0 += applied;
        self.totals.1 += committed.summary.transactions as u64 - applied;
        self.remember(committed);
    }

    /// Applies the offers that contracts placed and cancelled after the batch.
    fn follow_contracts(&mut self, contracts: &ContractReceipts) {
        self.after_batch = OfferEvent::of_block(contracts).collect();
        for event in &self.after_batch {
            match *event {
                OfferEvent::Placed(pair, place, amount) => self.offers.set(pair, place, amount),
                OfferEvent::Cancelled(_, place, _) => self.offers.remove(&place.account, place.id),
            }
        }
    }

    /// Changes of offers by contracts after the last batch, in order.
    pub fn after_batch(&self) -> &[OfferEvent] {
        &self.after_batch
    }

    /// Reverts to an earlier state, with the changes of offers by contracts after its last batch, on a developers'
    /// chain. Returns false if no recent block is left; then start with new views.
    pub fn go_back(&mut self, ledger: &Ledger, root: Digest, after_batch: Vec<OfferEvent>) -> bool {
        let height = ledger.height();
        while self.blocks.back().is_some_and(|block| block.height > height) {
            self.blocks.pop_back();
            self.trades -= self.batches.pop_back().map_or(0, |batch| batch.batch.trades.len());
            self.indexed.pop_back();
        }
        self.index.retain(|_, found| found.height <= height);
        let is_above = |digest: &Digest| self.heights.get(digest).is_some_and(|of| *of > height);
        while self.digests.back().is_some_and(is_above) {
            self.digests.pop_back();
        }
        self.heights.retain(|_, of| *of <= height);
        self.ethereum.cut_above(height);
        self.offers = OpenOffers::of(ledger.book());
        self.venues.cut_above(height, ledger.venues());
        self.outline = Arc::new(Outline::of(ledger));
        self.newest_root = (height, root);
        self.early_roots.clear();
        self.after_batch = after_batch;
        height == 0 || !self.blocks.is_empty()
    }

    /// Adds a block of the archive, oldest first, without its effects on offers.
    pub fn remember(&mut self, committed: &CommittedBlock) {
        let height = committed.summary.height;
        let own = committed.outcomes.iter().map(|(_, id, outcome)| (*id, *outcome));
        let outcomes = outcomes_by_id(own.chain(committed.unread.iter().copied()));
        for (id, outcome) in &outcomes {
            // A copy rejected in a later block must not hide the transaction that took effect.
            let refused = outcome.refusal().is_some();
            if !(refused && self.index.contains_key(id)) {
                self.index.insert(*id, FoundTransaction { height, outcome: *outcome });
            }
        }
        self.indexed.push_back(outcomes.into_iter().map(|(id, _)| id).collect());
        while self.index.len() > self.index_limit && self.indexed.len() > 1 {
            for id in self.indexed.pop_front().expect("more than one") {
                self.index.remove(&id);
            }
        }
        self.heights.insert(committed.summary.block, height);
        self.digests.push_back(committed.summary.block);
        if self.digests.len() > BLOCKS_BY_DIGEST {
            self.digests.pop_front().map(|oldest| self.heights.remove(&oldest));
        }
        self.blocks.push_back(committed.summary.clone());
        if let Some(root) = self.early_roots.remove(&height) {
            self.set_state_root(height, root);
        }
        self.trades += committed.batch.batch.trades.len();
        self.batches.push_back(committed.batch.clone());
        while self.blocks.len() > RECENT_BLOCKS || (self.trades > RECENT_TRADES && self.blocks.len() > 1) {
            self.blocks.pop_front();
            self.trades -= self.batches.pop_front().map_or(0, |batch| batch.batch.trades.len());
        }
    }

    /// Transactions that took effect per second, over the blocks of the last minute by the proposers' clocks.
    pub fn rate_per_second(&self) -> f64 {
        let Some(newest) = self.blocks.back().map(|block| block.time_ms) else { return 0.0 };
        let minute = || self.blocks.iter().rev().take_while(move |block| block.time_ms + 60_000 >= newest);
        let Some(oldest) = minute().last().map(|block| block.time_ms) else { return 0.0 };
        // The oldest block's transactions were made before the time span.
        let applied: usize = minute().filter(|block| block.time_ms > oldest).map(|block| block.applied).sum();
        if newest > oldest { applied as f64 * 1_000.0 / (newest - oldest) as f64 } else { 0.0 }
    }

    /// Sets the state root of a recent block.
    pub fn set_state_root(&mut self, height: Height, root: Digest) {
        if height >= self.newest_root.0 {
            self.newest_root = (height, root);
        }
        match self.blocks.iter_mut().rev().find(|block| block.height == height) {
            Some(block) => block.state_root = Some(root),
            None => drop(self.early_roots.insert(height, root)),
        }
    }

    /// Summaries of recent blocks below a height, newest first.
    pub fn blocks(&self, before: Height) -> impl Iterator<Item = &BlockSummary> {
        self.blocks.iter().rev().filter(move |block| block.height < before)
    }

    /// The summary of a recent block.
    pub fn block(&self, height: Height) -> Option<&BlockSummary> {
        let first = self.blocks.front()?.height;
        self.blocks.get(usize::try_from(height.checked_sub(first)?).ok()?)
    }

    /// The height of a block, by its digest.
    pub fn height_of(&self, digest: &Digest) -> Option<Height> {
        self.heights.get(digest).copied()
    }

    /// The batch of a recent block.
    pub fn batch(&self, height: Height) -> Option<&Arc<BatchSummary>> {
        let first = self.batches.front()?.height;
        self.batches.get(usize::try_from(height.checked_sub(first)?).ok()?)
    }

    /// Recent batches, oldest first.
    pub fn batches(&self) -> impl DoubleEndedIterator<Item = &Arc<BatchSummary>> {
        self.batches.iter()
    }

    /// The place of a transaction.
    pub fn find(&self, id: &TransactionId) -> Option<FoundTransaction> {
        self.index.get(id).copied()
    }

    /// The resting offers.
    pub fn offers(&self) -> &OpenOffers {
        &self.offers
    }

    /// Where the chain has what venues did.
    pub fn venues(&self) -> &VenueHistory {
        &self.venues
    }

    /// Adds what venues did in a block of the archive.
    pub fn remember_venues(&mut self, block: &Superblock, receipts: &BlockReceipts) {
        self.venues.add_archived(block, receipts);
    }

    /// The outline of the ledger.
    pub fn outline(&self) -> &Arc<Outline> {
        &self.outline
    }

    /// The height of these views.
    pub fn height(&self) -> Height {
        self.outline.height
    }

    /// The newest state root and its height, which may be one below.
    pub fn newest_root(&self) -> (Height, Digest) {
        self.newest_root
    }
}

impl CommittedBlock {
    /// The effects of a block that was just applied, and the outline of the ledger after it.
    pub fn new(
        block: &Superblock,
        applied: &Applied,
        ids: &[TransactionId],
        receipts_root: Digest,
        outline: Outline,
        stages_ms: Vec<(&'static str, f64)>,
    ) -> CommittedBlock {
        let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native);
        let outcomes = transactions
            .zip(ids)
            .zip(&applied.outcomes)
            .map(|((transaction, id), outcome)| (transaction.body.account, *id, *outcome));
        let opened = applied.opened.iter().map(|one| (one.transaction.body.account, one.id, one.outcome));
        let outcomes = (outcomes.chain(opened).collect(), Vec::new());
        let mut committed =
            CommittedBlock::from_parts(block, applied.block, outcomes, applied.batch.clone(), receipts_root);
        committed.summary.ethereum = executed(&applied.contracts);
        committed.settles = applied.venues.iter().map(SettledRange::of).collect();
        committed.summary.stages_ms = stages_ms;
        committed.outline = Some(Arc::new(outline));
        Arc::get_mut(&mut committed.batch).expect("not shared yet").report = applied.report.clone();
        committed
    }

    /// The effects of an archived block. Its envelopes are not opened again.
    pub fn from_archive(block: &Superblock, receipts: BlockReceipts, receipts_root: Digest) -> CommittedBlock {
        let accounts: Vec<Address> =
            block.sub_blocks.iter().flat_map(|sub| &sub.native).map(|t| t.body.account).collect();
        let mut own = receipts.outcomes;
        let unread = own.split_off(accounts.len().min(own.len()));
        let own = accounts.into_iter().zip(own).map(|(account, (id, outcome))| (account, id, outcome));
        let outcomes = (own.collect(), unread);
        let ethereum = executed(&receipts.contracts);
        let mut committed = CommittedBlock::from_parts(block, receipts.block, outcomes, receipts.batch, receipts_root);
        committed.summary.ethereum = ethereum;
        committed
    }

    fn from_parts(
        block: &Superblock,
        digest: Digest,
        (outcomes, unread): (Vec<ActedOutcome>, Vec<(TransactionId, Outcome)>),
        batch: Batch,
        receipts_root: Digest,
    ) -> CommittedBlock {
        let all = outcomes.iter().map(|(_, _, outcome)| outcome).chain(unread.iter().map(|(_, outcome)| outcome));
        let summary = BlockSummary {
            height: block.height,
            block: digest,
            parent: block.parent,
            time_ms: block.time_ms,
            proposers: block.sub_blocks.iter().map(|sub_block| sub_block.proposer).collect(),
            transactions: outcomes.len() + unread.len(),
            applied: all.filter(|outcome| outcome.refusal().is_none()).count(),
            ethereum: 0,
            fills: batch.fills.len(),
            pairs: batch.trades.len(),
            full: batch.full(),
            receipts_root,
            state_root: None,
            stages_ms: Vec::new(),
        };
        let batch = Arc::new(BatchSummary { height: block.height, time_ms: block.time_ms, batch, report: None });
        let credited = paid(block, &outcomes);
        CommittedBlock { summary, batch, outcomes, unread, credited, settles: Vec::new(), outline: None }
    }
}

/// Number of Ethereum transactions that a block executed; the settlement receipt does not count.
pub fn executed(contracts: &ContractReceipts) -> usize {
    contracts.receipts.iter().filter(|receipt| receipt.position.is_some()).count()
}

/// The receivers of payments and issues that took effect.
fn paid(block: &Superblock, outcomes: &[(Address, TransactionId, Outcome)]) -> HashSet<Address> {
    let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native);
    let applied = transactions.zip(outcomes).filter(|(_, (_, _, outcome))| *outcome == Outcome::Applied);
    let receiver = |(transaction, _): (&Transaction, _)| match transaction.body.operation {
        Operation::Pay { to, .. }
        | Operation::PayReferenced { to, .. }
        | Operation::Issue { to, .. }
        | Operation::IssueReferenced { to, .. } => Some(to),
        _ => None,
    };
    applied.filter_map(receiver).collect()
}
