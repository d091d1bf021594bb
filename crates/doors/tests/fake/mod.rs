//! A node without a pipeline, for tests of the doors only: a ledger to which blocks are applied by hand, an archive of
//! those blocks, and an intake that is full unless a test says what it answers.

mod ethereum;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock, RwLockReadGuard};

use doors::backend::{
    AccountRead, Archived, CertifiedOutcome, Developed, HandoverPage, HistoryReads, Intake, LaneCaseRead,
    LaneOutputRead, LaneReads, NoHistory, NodeLimits, OffersRead, PointReads, PoolReads, PoolsRead, Proved, ProvedKeys,
    ReadError, Standing, VenueReads, VenuesRead, Vitals,
};
use doors::{Answer, Closed, EthereumTaken, TakenOrders};
use ledger::{
    AccountProof, AssetProof, AssetTermsProof, Genesis, HolderProof, KeysProof, Ledger, Listing, NextBatch, OfferProof,
    Pair, ParametersProof, Place, PoolProof, PoolRecordId, Roots, SealsProof, Signatures, SlotProof, ValidatorsProof,
    VenueProof, VenueRecordId,
};
use primitives::{
    Address, AssetId, Digest, Fraction, Height, PublicKey, Sequence, SessionSlot, SubBlock, Superblock, Transaction,
    TransactionId,
};
use readers::cache::ProvenReceipts;
use readers::history::{HistoryRange, HistoryRow, HistorySpan, rows_of};
use readers::metrics::Metrics;
use readers::views::Views;
use readers::{CommittedBlock, Outline, Published};
use replica::{EthereumReject, encode, receipts_with};
use sockets::Client;
use tokio::sync::oneshot;

type ArchivedBlock = (Arc<Superblock>, Arc<ProvenReceipts>);

/// See the module text.
pub struct Fake {
    ledger: RwLock<Ledger>,
    published: Published,
    metrics: Metrics,
    archive: RwLock<BTreeMap<Height, ArchivedBlock>>,
    answers: Mutex<VecDeque<Answer>>,
    taken: TakenOrders,
    /// What was submitted, and nobody has asked for yet.
    submitted: Mutex<VecDeque<Transaction>>,
    submission: Condvar,
    /// The rows of the history, and the first height that it has.
    history: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
    known_from: AtomicU64,
    /// The last block that the index follows, and the rows of the blocks above it.
    indexed_to: AtomicU64,
    behind: Mutex<Vec<(Height, Vec<HistoryRow>)>>,
}

impl Fake {
    /// Two assets of different decimals, one holder.
    pub fn new() -> Fake {
        Fake::of(Fake::genesis())
    }

    /// The genesis of [`Fake::new`].
    pub fn genesis() -> Genesis {
        let owner = PublicKey([1; 32]).address();
        let assets = vec![Listing::new("USD", 2, owner), Listing::new("EUR", 4, owner)];
        let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
        let balances = vec![(owner, AssetId(0), 1_000_000)];
        Genesis { chain: 1, epsilon, mu, assets, balances, ..Genesis::default() }
    }

    /// A node of this genesis.
    pub fn of(genesis: Genesis) -> Fake {
        let ledger = Ledger::new(&genesis).expect("sound");
        let root = Roots::of(&ledger).parts().root();
        let published = Published::new(Views::new(&ledger, root, 1_000));
        let (metrics, archive, answers) = (Metrics::new(), RwLock::default(), Mutex::default());
        let (ledger, history, known_from) = (RwLock::new(ledger), RwLock::default(), AtomicU64::new(1));
        let indexed_to = AtomicU64::new(Height::MAX);
        let (submitted, submission, behind) = (Mutex::default(), Condvar::new(), Mutex::default());
        Fake {
            ledger,
            published,
            metrics,
            archive,
            answers,
            taken: TakenOrders::default(),
            submitted,
            submission,
            history,
            known_from,
            indexed_to,
            behind,
        }
    }

    /// What the intake answers to the next transactions, one after another; after these it is full again.
    #[allow(dead_code, reason = "not every test submits")]
    pub fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().expect("no test panics with it").extend(answers);
    }

    /// The next transaction that is submitted; waits for it.
    #[allow(dead_code, reason = "not every test submits")]
    pub fn next_submitted(&self) -> Transaction {
        let submitted = self.submitted.lock().expect("no test panics with it");
        let waited = self.submission.wait_while(submitted, |all| all.is_empty());
        waited.expect("no test panics with it").pop_front().expect("one was waited for")
    }

    /// Whether everything that was submitted was asked for.
    #[allow(dead_code, reason = "not every test submits")]
    pub fn submitted_nothing(&self) -> bool {
        self.submitted.lock().expect("no test panics with it").is_empty()
    }

    /// Applies, archives and publishes a block of these transactions, which count as signed.
    #[allow(dead_code, reason = "not every test has blocks")]
    pub fn commit(&self, transactions: &[Transaction]) {
        self.commit_all(&[transactions]);
    }

    /// Does so with blocks of these, and tells the first only after the last is there.
    pub fn commit_all(&self, blocks: &[&[Transaction]]) {
        let committed: Vec<CommittedBlock> = blocks.iter().map(|transactions| self.append(transactions)).collect();
        committed.into_iter().for_each(|block| self.published.announce(Arc::new(block)));
    }

    fn append(&self, transactions: &[Transaction]) -> CommittedBlock {
        let mut ledger = self.ledger.write().expect("no test panics with it");
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        let sub_blocks = vec![SubBlock { native: transactions.to_vec(), ..SubBlock::default() }];
        let parent_root = Roots::of(&ledger).parts().root();
        let block =
            Superblock { height, parent, time_ms: 1_000 * height, parent_root, sub_blocks, ..Superblock::default() };
        let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("sound");
        let ids: Vec<TransactionId> = transactions.iter().map(Transaction::id).collect();
        let proven = Arc::new(ProvenReceipts::new(receipts_with(&applied, &ids)));
        let outline = Outline::of(&ledger);
        let committed = CommittedBlock::new(&block, &applied, &ids, proven.root, outline, Vec::new());
        drop(ledger);
        self.behind
            .lock()
            .expect("no test panics with it")
            .push((height, rows_of(&block, &proven.receipts, &applied.opened)));
        self.index();
        self.archive.write().expect("no test panics with it").insert(height, (Arc::new(block), proven));
        let inside = applied.opened.iter().map(|one| &one.transaction);
        self.published.commit(&committed, &transactions.iter().chain(inside).collect::<Vec<_>>(), &applied.contracts);
        committed
    }

    /// Whether the intake still has answers that a test gave it.
    #[allow(dead_code, reason = "not every test submits")]
    pub fn has_answers(&self) -> bool {
        !self.answers.lock().expect("no test panics with it").is_empty()
    }

    /// The identity of the network, which transactions sign.
    #[allow(dead_code, reason = "not every test signs")]
    pub fn network(&self) -> Digest {
        self.published.views().outline().validators.terms.network
    }

    /// Whether an account has as many session keys.
    #[allow(dead_code, reason = "not every test has session keys")]
    pub fn has_sessions(&self, account: &Address, count: usize) -> bool {
        let state = self.ledger().accounts().get(account).map(|account| account.state());
        state.and_then(|state| state.sessions).is_some_and(|sessions| sessions.records.len() == count)
    }

    /// Forgets the history below a height.
    #[allow(dead_code, reason = "not every test has a history")]
    pub fn forget_history(&self, below: Height) {
        self.known_from.store(below, Ordering::Relaxed);
    }

    /// The index falls behind, and has no block above a height; or follows up to it.
    #[allow(dead_code, reason = "not every test has a history")]
    pub fn stop_index(&self, at: Height) {
        self.indexed_to.store(at, Ordering::Relaxed);
        self.index();
    }

    /// Adds the rows of the blocks up to where the index goes.
    fn index(&self) {
        let last = self.indexed_to.load(Ordering::Relaxed);
        let mut behind = self.behind.lock().expect("no test panics with it");
        let mut history = self.history.write().expect("no test panics with it");
        history.extend(behind.extract_if(.., |(height, _)| *height <= last).flat_map(|(_, rows)| rows));
    }

    fn archived(&self, height: Height) -> Option<ArchivedBlock> {
        self.archive.read().expect("no test panics with it").get(&height).cloned()
    }

    fn ledger(&self) -> RwLockReadGuard<'_, Ledger> {
        self.ledger.read().expect("no test panics with it")
    }

    /// Applies a block of one transaction, and returns a function that publishes it.
    #[allow(dead_code, reason = "not every test has blocks")]
    pub fn apply(&self, transaction: Transaction) -> impl FnOnce(&Fake) {
        let mut ledger = self.ledger.write().expect("no test panics with it");
        let sub_blocks = vec![SubBlock { native: vec![transaction.clone()], ..SubBlock::default() }];
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        let block = Superblock { height, parent, time_ms: height, sub_blocks, ..Superblock::default() };
        let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("sound");
        let (ids, outline) = ([transaction.id()], Outline::of(&ledger));
        let committed = CommittedBlock::new(&block, &applied, &ids, Digest::default(), outline, Vec::new());
        move |fake| fake.published.commit(&committed, &[&transaction], &applied.contracts)
    }

    /// The next answer about a transaction, unless its client id is used.
    fn judge(&self, transaction: Transaction) -> Answer {
        let height = self.ledger().height();
        let noted = match self.taken.note(&transaction, transaction.id(), height, Height::MAX) {
            Err(other) => return Answer::ClientIdUsed(other),
            Ok(noted) => noted,
        };
        let answer = self.answers.lock().expect("no test panics with it").pop_front().unwrap_or(Answer::Full);
        if matches!(answer, Answer::Full | Answer::Refused(_)) {
            noted.into_iter().for_each(|noted| self.taken.take_back(noted));
        }
        self.submitted.lock().expect("no test panics with it").push_back(transaction);
        answer
    }

    fn prove<P>(&self, prove: impl Fn(&mut Roots) -> P) -> Result<Proved<P>, ReadError> {
        let mut roots = Roots::of(&self.ledger());
        let proof = prove(&mut roots);
        Ok(Proved { height: self.ledger().height(), root: roots.parts().root(), proof })
    }
}

impl Vitals for Fake {
    fn published(&self) -> &Published {
        &self.published
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn standing(&self) -> Standing {
        Standing {
            is_ready: true,
            disk_is_full: false,
            begins_again: false,
            needs_rules: None,
            newest_rules: ledger::RULES_NEWEST,
            uptime_ms: 1,
            validator: None,
        }
    }

    fn limits(&self) -> NodeLimits {
        NodeLimits { block_transactions: 1, block_interval_ms: 1, mempool_transactions: 0 }
    }
}

impl Intake for Fake {
    /// Counts every transaction as signed.
    fn submit(
        &self,
        _: Client,
        transactions: Vec<Transaction>,
        _wait: bool,
    ) -> Result<oneshot::Receiver<Vec<Answer>>, Closed> {
        let (reply, receiver) = oneshot::channel();
        let told = transactions.into_iter().map(|transaction| self.judge(transaction)).collect();
        self.submission.notify_all();
        assert!(reply.send(told).is_ok(), "the receiver is here");
        Ok(receiver)
    }

    fn submit_ethereum(&self, _: Client, transactions: Vec<Vec<u8>>) -> Result<EthereumTaken, Closed> {
        let answers = transactions.iter().map(|_| Err(EthereumReject::NoContracts)).collect();
        Ok(EthereumTaken { answers, is_new: false })
    }

    fn taken(&self) -> &TakenOrders {
        &self.taken
    }

    fn is_pending(&self, _id: &TransactionId) -> bool {
        false
    }

    fn pending_sequence(&self, _: &Address, _: SessionSlot) -> Sequence {
        0
    }
}

impl PointReads for Fake {
    fn account(&self, address: &Address) -> AccountRead {
        AccountRead::of(&self.ledger(), address)
    }

    fn offers(&self, pair: Pair, first: Place, last: Place, count: usize) -> OffersRead {
        let ledger = self.ledger();
        let of_pair = ledger.book().get(pair).into_iter().flat_map(|offers| offers.range(first..=last));
        OffersRead { height: ledger.height(), offers: of_pair.take(count).collect() }
    }

    fn next_batch(&self) -> NextBatch {
        NextBatch::after(&self.ledger())
    }

    fn prove_account(&self, address: &Address) -> Result<Proved<AccountProof>, ReadError> {
        self.prove(|roots| roots.prove_account(&self.ledger(), address))
    }

    fn prove_holder(&self, asset: AssetId, account: &Address) -> Result<Proved<HolderProof>, ReadError> {
        self.prove(|roots| roots.prove_holder(&self.ledger(), asset, account))
    }

    fn prove_keys(&self, address: &Address) -> Result<Proved<KeysProof>, ReadError> {
        self.prove(|roots| roots.prove_keys(&self.ledger(), address))
    }

    fn prove_parameters(&self) -> Result<Proved<ParametersProof>, ReadError> {
        self.prove(|roots| roots.prove_parameters(&self.ledger()))
    }

    fn prove_seals(&self) -> Result<Proved<SealsProof>, ReadError> {
        self.prove(|roots| roots.prove_seals(&self.ledger()))
    }

    fn prove_offer(&self, pair: Pair, place: &Place) -> Result<Proved<OfferProof>, ReadError> {
        self.prove(|roots| roots.prove_offer(&self.ledger(), pair, place))
    }

    fn prove_asset(&self, asset: AssetId) -> Result<Proved<(AssetProof, AssetTermsProof)>, ReadError> {
        self.prove(|roots| (roots.prove_asset(&self.ledger(), asset), roots.prove_asset_terms(&self.ledger(), asset)))
    }

    fn prove_validators(&self) -> Result<Proved<ValidatorsProof>, ReadError> {
        self.prove(|roots| roots.prove_validators(&self.ledger()))
    }

    fn prove_storage(
        &self,
        address: &Address,
        slots: &[[u8; 32]],
    ) -> Result<Proved<(AccountProof, Vec<SlotProof>)>, ReadError> {
        self.prove(|roots| {
            let ledger = self.ledger();
            let slots = slots.iter().filter_map(|slot| roots.prove_slot(&ledger, address, slot)).collect();
            (roots.prove_account(&ledger, address), slots)
        })
    }
}

impl PoolReads for Fake {
    fn pools(&self) -> Option<PoolsRead> {
        let ledger = self.ledger();
        let least_units = ledger.assets().iter().map(|asset| asset.least_units).collect();
        Some(PoolsRead { height: ledger.height(), pools: ledger.shared_pools()?, least_units })
    }

    fn prove_pool(&self, id: &PoolRecordId) -> Result<Option<Proved<PoolProof>>, ReadError> {
        let Proved { height, root, proof } = self.prove(|roots| roots.prove_pool(&self.ledger(), id))?;
        Ok(proof.map(|proof| Proved { height, root, proof }))
    }
}

impl VenueReads for Fake {
    fn venues(&self) -> Option<VenuesRead> {
        let ledger = self.ledger();
        Some(VenuesRead { height: ledger.height(), venues: ledger.shared_venues()? })
    }

    fn prove_venue(&self, id: &VenueRecordId) -> Result<Option<Proved<VenueProof>>, ReadError> {
        let Proved { height, root, proof } = self.prove(|roots| roots.prove_venue(&self.ledger(), id))?;
        Ok(proof.map(|proof| Proved { height, root, proof }))
    }
}

impl Archived for Fake {
    fn block(&self, height: Height) -> Result<Option<Arc<Superblock>>, ReadError> {
        Ok(self.archived(height).map(|(block, _)| block))
    }

    fn raw_block(&self, height: Height) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.archived(height).map(|(block, _)| block.to_bytes()))
    }

    fn receipts(&self, height: Height) -> Result<Option<Arc<ProvenReceipts>>, ReadError> {
        Ok(self.archived(height).map(|(_, receipts)| receipts))
    }

    /// Of what is not archived, the disk fails.
    fn raw_receipts(&self, height: Height) -> Result<Option<Vec<u8>>, ReadError> {
        let failed = || ReadError::Archive("this disk is a test".into());
        self.archived(height).map(|(_, proven)| Some(encode(&proven.receipts))).ok_or_else(failed)
    }

    fn certificate(&self, _height: Height) -> Result<Option<CertifiedOutcome>, ReadError> {
        Ok(None)
    }

    fn handovers(&self, _from: u64) -> Result<Option<HandoverPage>, ReadError> {
        Ok(None)
    }
}

impl HistoryReads for Fake {
    fn history(&self) -> Result<HistorySpan, NoHistory> {
        let known_from = self.known_from.load(Ordering::Relaxed);
        if known_from == 0 {
            return Err(NoHistory::Off);
        }
        let height = self.published.views().height().min(self.indexed_to.load(Ordering::Relaxed));
        Ok(HistorySpan { known_from, height })
    }

    fn history_rows(&self, range: &HistoryRange, count: usize) -> Result<Vec<HistoryRow>, ReadError> {
        let rows = self.history.read().expect("no test panics with it");
        let found = rows.range(range.from.clone()..range.to.clone()).rev().take(count);
        Ok(found.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

impl LaneReads for Fake {
    fn lane_addresses(&self) -> Vec<Vec<SocketAddr>> {
        Vec::new()
    }

    fn lane_has_tls(&self) -> bool {
        false
    }

    fn lane_key(&self, _: u64, _: u8, _: u16) -> Option<PublicKey> {
        None
    }

    fn lane_output(&self, _: &Digest) -> Option<LaneOutputRead> {
        None
    }

    fn lane_board(&self, _: u64) -> Option<Vec<u8>> {
        None
    }

    fn prove_registrations(&self, from: u64) -> Result<Proved<ProvedKeys>, ReadError> {
        self.prove(|roots| roots.prove_registrations(&self.ledger(), from))
    }

    fn lane_cases(&self) -> Vec<LaneCaseRead> {
        Vec::new()
    }
}

impl Developed for Fake {}

/// The zero digest, as text.
#[allow(dead_code, reason = "not every test asks for a transaction")]
pub fn zeros() -> String {
    Digest([0; 32]).to_string()
}
