//! The doors' interface to a running pipeline: what they read and submit.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use doors::backend::{
    AccountRead, Archived, CertifiedOutcome, Developed, EthereumReads, HandoverPage, HistoryReads, Intake,
    LaneCaseRead, LaneOutputRead, LaneReads, Moment, NoHistory, NodeLimits, OffersRead, PointReads, PoolReads,
    PooledTransaction, PoolsRead, Proved, ProvedKeys, ReadError, Standing, VenueReads, VenuesRead, Vitals,
};
use doors::{Answer, Closed, DeveloperCommand, DeveloperRefusal, EthereumTaken, NextBlock, TakenOrders};
use ledger::contracts::{
    BookFacts, CfgEnv, DumpedAccount, EthereumAccount, EvmCode, EvmContext, HolderFacts, TokenFacts, UndoError,
};
use ledger::{
    AccountProof, AssetProof, AssetTermsProof, ForkSchedule, HolderProof, KeysProof, Ledger, NextBatch, OfferProof,
    Pair, ParametersProof, Place, PoolProof, PoolRecordId, Roots, SealsProof, SlotProof, ValidatorsProof, VenueProof,
    VenueRecordId,
};
use payments::{ContestedOutput, Output, OutputId, PaymentBody, Recipient, SpentOutput};
use primitives::{
    Address, Amount, AssetId, Digest, Height, PublicKey, Sequence, SessionSlot, Superblock, Transaction, TransactionId,
};
use readers::cache::ProvenReceipts;
use readers::history::{HistoryRange, HistoryRow, HistorySpan};
use readers::metrics::Metrics;
use readers::{FoundTransaction, Published};
use sockets::Client;
use tokio::sync::oneshot;

use crate::exchange::Exchange;
use crate::free_disk::FreeDisk;
use crate::shared::{ExchangeError, Shared};
use crate::validator;
use replica::{EthereumReject, Handover, PendingEthereum, PoolDrop, ReplicaError, encode};

/// A running pipeline as the doors see it.
pub(crate) struct Reads {
    exchange: Arc<Exchange>,
    free_disk: FreeDisk,
}

impl Reads {
    /// For a pipeline whose store is in this directory.
    pub(crate) fn new(exchange: Arc<Exchange>, data: &Path) -> Reads {
        let free_disk = FreeDisk::new(data, exchange.shared.config.store.free_bytes);
        Reads { exchange, free_disk }
    }
}

impl Vitals for Reads {
    fn published(&self) -> &Published {
        &self.exchange.shared.readers.published
    }

    fn metrics(&self) -> &Metrics {
        let shared = &self.exchange.shared;
        if let Some(line) = shared.venue.get() {
            let (venue, figures) = line.figures();
            shared.metrics.set_venue(venue, &figures);
        }
        &shared.metrics
    }

    fn standing(&self) -> Standing {
        Standing {
            is_ready: self.exchange.shared.is_ready(),
            disk_is_full: self.free_disk.is_full(),
            begins_again: self.exchange.is_to_begin_again(),
            needs_rules: self.exchange.shared.needs_rules(),
            newest_rules: self.exchange.shared.config.network.newest_rules(),
            uptime_ms: self.exchange.shared.now_ms(),
            validator: self.exchange.status(),
        }
    }

    fn limits(&self) -> NodeLimits {
        let config = &self.exchange.shared.config;
        NodeLimits {
            block_transactions: config.blocks.transactions,
            block_interval_ms: config.blocks.interval_ms,
            mempool_transactions: config.mempool.transactions,
        }
    }
}

impl Intake for Reads {
    fn submit(
        &self,
        from: Client,
        transactions: Vec<Transaction>,
        wait: bool,
    ) -> Result<oneshot::Receiver<Vec<Answer>>, Closed> {
        if self.free_disk.is_full() {
            return Err(Closed::DiskFull);
        }
        self.exchange.submit_of(from, transactions, wait)
    }

    fn submit_ethereum(&self, from: Client, transactions: Vec<Vec<u8>>) -> Result<EthereumTaken, Closed> {
        if self.free_disk.is_full() {
            return Err(Closed::DiskFull);
        }
        self.exchange.submit_ethereum_of(from, transactions)
    }

    fn taken(&self) -> &TakenOrders {
        &self.exchange.shared.taken
    }

    fn is_pending(&self, id: &TransactionId) -> bool {
        self.exchange.shared.pool.lock().is_pending(id)
    }

    fn displaced_by(&self, id: &TransactionId) -> Option<TransactionId> {
        self.exchange.shared.pool.lock().displaced_by(id)
    }

    fn pending_sequence(&self, account: &Address, slot: SessionSlot) -> Sequence {
        self.exchange.shared.pool.lock().mempool.highest(account, slot).unwrap_or(0)
    }
}

impl PointReads for Reads {
    fn account(&self, address: &Address) -> AccountRead {
        AccountRead::of(&self.exchange.shared.read_ledger(), address)
    }

    fn offers(&self, pair: Pair, first: Place, last: Place, count: usize) -> OffersRead {
        let ledger = self.exchange.shared.read_ledger();
        let of_pair = ledger.book().get(pair).into_iter();
        let offers = of_pair.flat_map(|offers| offers.range(first..=last)).take(count).collect();
        OffersRead { height: ledger.height(), offers }
    }

    fn next_batch(&self) -> NextBatch {
        NextBatch::after(&self.exchange.shared.read_ledger())
    }

    fn prove_account(&self, address: &Address) -> Result<Proved<AccountProof>, ReadError> {
        self.exchange.prove(|ledger, roots| roots.prove_account(ledger, address))
    }

    fn prove_keys(&self, address: &Address) -> Result<Proved<KeysProof>, ReadError> {
        self.exchange.prove(|ledger, roots| roots.prove_keys(ledger, address))
    }

    fn prove_parameters(&self) -> Result<Proved<ParametersProof>, ReadError> {
        self.exchange.prove(|ledger, roots| roots.prove_parameters(ledger))
    }

    fn prove_seals(&self) -> Result<Proved<SealsProof>, ReadError> {
        self.exchange.prove(|ledger, roots| roots.prove_seals(ledger))
    }

    fn prove_offer(&self, pair: Pair, place: &Place) -> Result<Proved<OfferProof>, ReadError> {
        self.exchange.prove(|ledger, roots| roots.prove_offer(ledger, pair, place))
    }

    fn prove_asset(&self, asset: AssetId) -> Result<Proved<(AssetProof, AssetTermsProof)>, ReadError> {
        self.exchange.prove(|ledger, roots| (roots.prove_asset(ledger, asset), roots.prove_asset_terms(ledger, asset)))
    }

    fn prove_holder(&self, asset: AssetId, account: &Address) -> Result<Proved<HolderProof>, ReadError> {
        self.exchange.prove(|ledger, roots| roots.prove_holder(ledger, asset, account))
    }

    fn prove_validators(&self) -> Result<Proved<ValidatorsProof>, ReadError> {
        self.exchange.prove(|ledger, roots| roots.prove_validators(ledger))
    }

    fn prove_storage(
        &self,
        address: &Address,
        slots: &[[u8; 32]],
    ) -> Result<Proved<(AccountProof, Vec<SlotProof>)>, ReadError> {
        self.exchange.prove(|ledger, roots| {
            let slots = slots.iter().filter_map(|slot| roots.prove_slot(ledger, address, slot)).collect();
            (roots.prove_account(ledger, address), slots)
        })
    }
}

impl Archived for Reads {
    fn block(&self, height: Height) -> Result<Option<Arc<Superblock>>, ReadError> {
        self.exchange.shared.body(height).map_err(archive)
    }

    fn raw_block(&self, height: Height) -> Result<Option<Vec<u8>>, ReadError> {
        self.exchange.shared.archive.block(height).map_err(archive)
    }

    fn receipts(&self, height: Height) -> Result<Option<Arc<ProvenReceipts>>, ReadError> {
        self.exchange.shared.receipts(height).map_err(archive)
    }

    fn raw_receipts(&self, height: Height) -> Result<Option<Vec<u8>>, ReadError> {
        self.exchange.shared.archive.receipts(height).map_err(archive)
    }

    fn certificate(&self, height: Height) -> Result<Option<CertifiedOutcome>, ReadError> {
        let Some((lag, certificates)) = self.exchange.shared.seat.certificates.get() else { return Ok(None) };
        let bytes = certificates.block(height.saturating_add(*lag)).map_err(archive)?;
        let (Some(bytes), Some((state_root, receipts_root))) =
            (bytes, validator::outcome(&self.exchange.shared, height).map_err(archive)?)
        else {
            return Ok(None);
        };
        let finality: consensus::Finality = borsh::from_slice(&bytes).map_err(archive)?;
        Ok(Some(CertifiedOutcome { state_root, receipts_root, certificate: finality.certificate }))
    }

    fn handovers(&self, from: u64) -> Result<Option<HandoverPage>, ReadError> {
        let Some(held) = self.exchange.shared.seat.handovers.get() else { return Ok(None) };
        let last = held.last_certified().map_err(archive)?;
        let entry = |handover: &Handover| (handover.certificate.statement.height, encode(handover));
        let handovers = held.page(from).map_err(archive)?.iter().map(entry).collect();
        Ok(Some(HandoverPage { last, handovers }))
    }
}

impl HistoryReads for Reads {
    fn history(&self) -> Result<HistorySpan, NoHistory> {
        self.exchange.shared.history.get().map_or(Err(NoHistory::Off), |history| history.span())
    }

    fn history_rows(&self, range: &HistoryRange, count: usize) -> Result<Vec<HistoryRow>, ReadError> {
        let Some(history) = self.exchange.shared.history.get() else { return Ok(Vec::new()) };
        history.rows(range, count).map_err(archive)
    }
}

impl EthereumReads for Reads {
    fn ethereum_waiting(&self, id: &TransactionId) -> Option<(Vec<u8>, Address)> {
        let pooled = self.exchange.shared.pool.lock();
        pooled.mempool.ethereum.get(id).map(|(bytes, sender)| (bytes.to_vec(), sender))
    }

    fn ethereum_pool(&self, most: usize) -> (Vec<PooledTransaction>, usize) {
        let pooled = self.exchange.shared.pool.lock();
        let of = |one: PendingEthereum| {
            let PendingEthereum { id, bytes, sender, nonce, is_ready } = one;
            PooledTransaction { id, bytes: bytes.to_vec(), sender, nonce, is_ready }
        };
        (pooled.mempool.ethereum.pending().take(most).map(of).collect(), pooled.mempool.ethereum.len())
    }

    fn ethereum_dropped(&self, id: &TransactionId) -> Option<PoolDrop> {
        self.exchange.shared.pool.lock().mempool.ethereum.dropped(id)
    }

    fn ethereum_nonce_above(&self, address: &Address, next: u64) -> u64 {
        self.exchange.shared.pool.lock().mempool.ethereum.nonce_above(address, next)
    }

    fn ethereum_account(&self, address: &Address, moment: Moment) -> Result<EthereumAccount, UndoError> {
        let ledger = self.exchange.shared.read_ledger();
        match moment {
            Moment::After(height) => ledger.ethereum_account_at(address, height),
            Moment::Within(height) => ledger.ethereum_account_within(address, height),
        }
    }

    fn ethereum_slot(&self, address: &Address, slot: &[u8; 32], moment: Moment) -> Result<Option<[u8; 32]>, UndoError> {
        let ledger = self.exchange.shared.read_ledger();
        match moment {
            Moment::After(height) => ledger.slot_at(address, slot, height),
            Moment::Within(height) => ledger.slot_within(address, slot, height),
        }
    }

    fn ethereum_offer(&self, pair: Pair, place: &Place, moment: Moment) -> Result<Option<Amount>, UndoError> {
        let ledger = self.exchange.shared.read_ledger();
        match moment {
            Moment::After(height) => ledger.offer_at(pair, place, height),
            Moment::Within(height) => ledger.offer_within(pair, place, height),
        }
    }

    fn holder_facts(&self, asset: AssetId, account: &Address, height: Height) -> Result<HolderFacts, UndoError> {
        self.exchange.shared.read_ledger().holder_facts_at(asset, account, height)
    }

    fn token_facts(&self, asset: AssetId, height: Height) -> Result<Option<TokenFacts>, UndoError> {
        self.exchange.shared.read_ledger().token_facts_at(asset, height)
    }

    fn book_facts(&self, pair: Option<Pair>) -> (BookFacts, bool) {
        let ledger = self.exchange.shared.read_ledger();
        (ledger.book_facts(), pair.is_some_and(|pair| ledger.book().get(pair).is_some()))
    }

    fn offers_ending_at(&self, height: Height) -> u32 {
        self.exchange.shared.read_ledger().book().ending_at(height)
    }

    fn ethereum_code(&self, hash: &Digest) -> Option<EvmCode> {
        self.exchange.shared.read_ledger().ethereum_code(hash)
    }

    fn block_digest(&self, height: Height) -> Option<Digest> {
        self.exchange.shared.read_ledger().recent_digest(height)
    }

    fn forks(&self) -> ForkSchedule {
        self.exchange.shared.read_ledger().contracts().forks().clone()
    }

    fn ethereum_rules(&self, height: Height) -> CfgEnv {
        self.exchange.shared.read_ledger().ethereum_rules(height)
    }

    fn ethereum_context(&self, block: &Superblock, sub_block: usize, base_fee: u64) -> EvmContext {
        self.exchange.shared.read_ledger().ethereum_context(block, sub_block, base_fee)
    }
}

impl LaneReads for Reads {
    fn lane_addresses(&self) -> Vec<Vec<SocketAddr>> {
        self.exchange.shared.config.lane.addresses_by_member()
    }

    fn lane_has_tls(&self) -> bool {
        self.exchange.shared.config.lane.tls
    }

    fn lane_key(&self, epoch: u64, member: u8, shard: u16) -> Option<PublicKey> {
        self.exchange.shared.read_ledger().lane()?.committee(epoch)?.key(member, shard).ok()
    }

    fn lane_output(&self, id: &Digest) -> Option<LaneOutputRead> {
        let ledger = self.exchange.shared.read_ledger();
        let (bridge, id) = (ledger.lane()?.bridge(), OutputId(id.0));
        let (home, Output { to, asset, amount }) = bridge.find_backed(&id).or_else(|| bridge.find_proven(&id))?;
        let Recipient::Key(to) = to else { return None };
        Some(LaneOutputRead { home, to, asset, amount })
    }

    fn lane_board(&self, epoch: u64) -> Option<Vec<u8>> {
        let ledger = self.exchange.shared.read_ledger();
        let lane = ledger.lane()?;
        lane.committee(epoch)?.group().ok()?;
        lane.bridge().board_bytes(epoch)
    }

    fn prove_registrations(&self, from: u64) -> Result<Proved<ProvedKeys>, ReadError> {
        self.exchange.prove(|ledger, roots| roots.prove_registrations(ledger, from))
    }

    fn lane_cases(&self) -> Vec<LaneCaseRead> {
        let ledger = self.exchange.shared.read_ledger();
        let candidate = |body: Arc<PaymentBody>| (body.digest, body.payment.encode());
        let case = |(contested, candidates): (&ContestedOutput, Option<Vec<Arc<PaymentBody>>>)| {
            let ContestedOutput { output: SpentOutput { id, asset, amount }, home, owner } = *contested;
            let candidates = candidates.map(|all| all.into_iter().map(candidate).collect());
            LaneCaseRead { output: Digest(id.0), home, owner, asset, amount, candidates }
        };
        ledger.lane().into_iter().flat_map(|lane| lane.bridge().resolver().cases().map(case)).collect()
    }
}

impl VenueReads for Reads {
    fn venues(&self) -> Option<VenuesRead> {
        let ledger = self.exchange.shared.read_ledger();
        Some(VenuesRead { height: ledger.height(), venues: ledger.shared_venues()? })
    }

    fn prove_venue(&self, id: &VenueRecordId) -> Result<Option<Proved<VenueProof>>, ReadError> {
        let Proved { height, root, proof } = self.exchange.prove(|ledger, roots| roots.prove_venue(ledger, id))?;
        Ok(proof.map(|proof| Proved { height, root, proof }))
    }
}

impl PoolReads for Reads {
    fn pools(&self) -> Option<PoolsRead> {
        let ledger = self.exchange.shared.read_ledger();
        let least_units = ledger.assets().iter().map(|asset| asset.least_units).collect();
        Some(PoolsRead { height: ledger.height(), pools: ledger.shared_pools()?, least_units })
    }

    fn prove_pool(&self, id: &PoolRecordId) -> Result<Option<Proved<PoolProof>>, ReadError> {
        let Proved { height, root, proof } = self.exchange.prove(|ledger, roots| roots.prove_pool(ledger, id))?;
        Ok(proof.map(|proof| Proved { height, root, proof }))
    }
}

impl Developed for Reads {
    fn is_developers(&self) -> bool {
        self.exchange.shared.is_developers
    }

    fn dump_accounts(&self) -> Vec<DumpedAccount> {
        self.exchange.shared.read_ledger().dump_accounts()
    }

    fn next_block(&self) -> NextBlock {
        self.exchange.shared.next_block()
    }

    fn impersonate(
        &self,
        sender: &Address,
        transaction: Vec<u8>,
    ) -> Result<Result<TransactionId, EthereumReject>, Closed> {
        if self.free_disk.is_full() {
            return Err(Closed::DiskFull);
        }
        self.exchange.impersonate(sender, transaction)
    }

    fn develop(&self, order: DeveloperCommand) -> Result<u64, DeveloperRefusal> {
        if self.free_disk.is_full() {
            return Err(DeveloperRefusal(Closed::DiskFull.to_string()));
        }
        self.exchange.shared.command(order)
    }
}

fn archive(error: impl std::fmt::Display) -> ReadError {
    ReadError::Archive(error.to_string())
}

impl Exchange {
    /// A proof and the root that it leads to.
    fn prove<P>(&self, prove: impl Fn(&Ledger, &mut Roots) -> P) -> Result<Proved<P>, ReadError> {
        let proved = self.shared.with_roots(|ledger, roots| {
            let proof = prove(ledger, roots);
            Proved { height: ledger.height(), root: roots.parts().root(), proof }
        });
        proved.ok_or(ReadError::Stopping)
    }

    /// A block's body; `None` if there is no such block.
    ///
    /// # Errors
    /// [`ExchangeError`] if the archive cannot be read.
    pub fn body(&self, height: Height) -> Result<Option<Arc<Superblock>>, ExchangeError> {
        self.shared.body(height)
    }

    /// A block's receipts; `None` if there are none (yet).
    ///
    /// # Errors
    /// [`ExchangeError`] if the archive cannot be read.
    pub fn receipts(&self, height: Height) -> Result<Option<Arc<ProvenReceipts>>, ExchangeError> {
        self.shared.receipts(height)
    }

    /// The place of a transaction, and the receipts of its block; `None` if it is in no known block.
    ///
    /// # Errors
    /// [`ExchangeError`] if the archive cannot be read.
    pub fn receipt(
        &self,
        id: &TransactionId,
    ) -> Result<Option<(FoundTransaction, Arc<ProvenReceipts>)>, ExchangeError> {
        let Some(found) = self.shared.readers.published.find(id) else { return Ok(None) };
        Ok(self.shared.receipts(found.height)?.map(|receipts| (found, receipts)))
    }
}

impl Shared {
    /// A block's body, from the cache or the archive; `None` if there is no such block.
    ///
    /// # Errors
    /// [`ExchangeError`] if the archive cannot be read.
    pub fn body(&self, height: Height) -> Result<Option<Arc<Superblock>>, ExchangeError> {
        if let Some(body) = self.readers.bodies.get(height) {
            return Ok(Some(body));
        }
        let Some(bytes) = self.archive.block(height)? else { return Ok(None) };
        let body = borsh::from_slice(&bytes).map_err(|error| ReplicaError::Undecodable(height, error))?;
        Ok(Some(Arc::new(body)))
    }

    /// A block's receipts, from the cache or the archive; `None` if there are none (yet).
    ///
    /// # Errors
    /// [`ExchangeError`] if the archive cannot be read.
    pub fn receipts(&self, height: Height) -> Result<Option<Arc<ProvenReceipts>>, ExchangeError> {
        if let Some(receipts) = self.readers.receipts.get(height) {
            return Ok(Some(receipts));
        }
        let Some(bytes) = self.archive.receipts(height)? else { return Ok(None) };
        let receipts = borsh::from_slice(&bytes).map_err(|error| ReplicaError::Undecodable(height, error))?;
        Ok(Some(Arc::new(ProvenReceipts::new(receipts))))
    }
}
