//! The interface of the doors to their node: an intake, point reads, and the node's status.
//!
//! Everything that scans is answered from [`Published`]. Each call here costs the node a bounded amount of work: one
//! account, one page of offers, one proof, one block.

use std::net::SocketAddr;
use std::sync::Arc;

use consensus::Certificate;
use ledger::contracts::{
    BookFacts, DeveloperEdit, DumpedAccount, EthereumAccount, EthereumFault, EvmCode, EvmContext, TokenFacts, UndoError,
};
use ledger::{
    AccountProof, AccountState, LaneProof, LaneRegistration, Offer, OfferProof, Outcome, Pair, Place, Refusal,
    SlotProof, ValidatorsProof,
};
use primitives::{
    Address, Amount, AssetId, Digest, Height, PublicKey, Sequence, Superblock, Transaction, TransactionId,
};
use tokio::sync::oneshot;

use crate::cache::ProvenReceipts;
use crate::metrics::Metrics;
use crate::published::Published;
use replica::{EthereumReject, PoolDrop, ValidatorStatus};

/// Registered keys of the payment lane with their proof; `None` on a chain without one.
pub type ProvedKeys = Option<(Vec<LaneRegistration>, LaneProof)>;

/// A node as its doors see it. Calls may block briefly; the doors make them off the threads that serve connections.
pub trait Backend: Send + Sync + 'static {
    /// What the node publishes with every block.
    fn published(&self) -> &Published;

    /// The node's counters.
    fn metrics(&self) -> &Metrics;

    /// The current status of the node.
    fn standing(&self) -> Standing;

    /// Limits of this node that clients should know.
    fn limits(&self) -> NodeLimits;

    /// Submits transactions. The receiver gets one answer for each, in order; with `wait`, pending ones come with a
    /// receiver that is notified of the block.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    fn submit(&self, transactions: Vec<Transaction>, wait: bool) -> Result<oneshot::Receiver<Vec<Answer>>, Closed>;

    /// Submits Ethereum transactions in their EIP-2718 form, and recovers their senders; returns one answer for each,
    /// in order. A transaction that is pending or was executed already counts as accepted.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    fn submit_ethereum(&self, transactions: Vec<Vec<u8>>)
    -> Result<Vec<Result<TransactionId, EthereumReject>>, Closed>;

    /// A pending Ethereum transaction, and its sender.
    fn ethereum_waiting(&self, id: &TransactionId) -> Option<(Vec<u8>, Address)>;

    /// The pending Ethereum transactions, by sender and nonce, `most` at most, and their number.
    fn ethereum_pool(&self, _most: usize) -> (Vec<PooledTransaction>, usize) {
        (Vec::new(), 0)
    }

    /// Why a transaction that this node had accepted left its pool without a block; `None` if it did not, or long ago.
    fn ethereum_dropped(&self, _: &TransactionId) -> Option<PoolDrop> {
        None
    }

    /// The nonce above the gapless pending nonces of an account whose next nonce is `next`.
    fn ethereum_nonce_above(&self, address: &Address, next: u64) -> u64;

    /// The account in the form that Ethereum sees, at a moment.
    ///
    /// # Errors
    /// [`UndoError`] if the state of that moment is not kept.
    fn ethereum_account(&self, address: &Address, moment: Moment) -> Result<EthereumAccount, UndoError>;

    /// The value of a slot at a moment, big-endian; `None` means zero.
    ///
    /// # Errors
    /// [`UndoError`] if the state of that moment is not kept.
    fn ethereum_slot(&self, address: &Address, slot: &[u8; 32], moment: Moment) -> Result<Option<[u8; 32]>, UndoError>;

    /// Units for sale, at a moment, of an offer that a contract placed; `None` if it does not rest.
    ///
    /// # Errors
    /// [`UndoError`] if the state of that moment is not kept.
    fn ethereum_offer(&self, pair: Pair, place: &Place, moment: Moment) -> Result<Option<Amount>, UndoError>;

    /// The facts about the token of an asset after a height.
    ///
    /// # Errors
    /// [`UndoError`] if the state after that height is not kept.
    fn token_facts(&self, asset: AssetId, height: Height) -> Result<Option<TokenFacts>, UndoError>;

    /// The book's current room for offers, and whether it has offers of a pair.
    fn book_facts(&self, pair: Option<Pair>) -> (BookFacts, bool);

    /// Code that an account has, or had at a height that is kept.
    fn ethereum_code(&self, hash: &Digest) -> Option<EvmCode>;

    /// The digest of a block, if contracts can ask for it.
    fn block_digest(&self, height: Height) -> Option<Digest>;

    /// The context in which the transactions of a sub-block are executed.
    fn ethereum_context(&self, block: &Superblock, sub_block: usize, base_fee: u64) -> EvmContext;

    /// An account and some of its slots, with their paths to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_storage(
        &self,
        address: &Address,
        slots: &[[u8; 32]],
    ) -> Result<Proved<(AccountProof, Vec<SlotProof>)>, ReadError>;

    /// Whether a transaction of either kind is pending, or its block is not published yet.
    fn is_pending(&self, id: &TransactionId) -> bool;

    /// The highest sequence number of an account among pending transactions; 0 if there is none.
    fn pending_sequence(&self, account: &Address) -> Sequence;

    /// An account in the current state.
    fn account(&self, address: &Address) -> AccountRead;

    /// At most `count` offers of a pair from `first` to `last`, in order of execution.
    fn offers(&self, pair: Pair, first: Place, last: Place, count: usize) -> OffersRead;

    /// An account, or its absence, with its path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_account(&self, address: &Address) -> Result<Proved<AccountProof>, ReadError>;

    /// A resting offer, or its absence, with its path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_offer(&self, pair: Pair, place: &Place) -> Result<Proved<OfferProof>, ReadError>;

    /// The registry of validators with its path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_validators(&self) -> Result<Proved<ValidatorsProof>, ReadError>;

    /// The addresses of the shards of the payment lane's members, in the order of the genesis; empty if this node's
    /// operator names none.
    fn lane_addresses(&self) -> Vec<SocketAddr>;
    /// Whether these shards speak TLS.
    fn lane_has_tls(&self) -> bool;

    /// An output that the ledger created in the payment lane; `None` if it did not, or its epoch is over.
    fn lane_output(&self, id: &Digest) -> Option<LaneOutputRead>;

    /// The board on which the members of the payment lane generated the group key of an epoch; `None` if they
    /// generated none.
    fn lane_board(&self, epoch: u64) -> Option<Vec<u8>>;

    /// The keys that members of the payment lane registered for epochs from `from` on, with their path to the state
    /// root; `None` on a chain without a payment lane.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_registrations(&self, from: u64) -> Result<Proved<ProvedKeys>, ReadError>;

    /// Contested outputs of the payment lane without a verdict.
    fn lane_cases(&self) -> Vec<LaneCaseRead>;

    /// A block; `None` if the node does not hold it.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn block(&self, height: Height) -> Result<Option<Arc<Superblock>>, ReadError>;

    /// The encoded block, as logged; `None` if the node does not hold it.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn raw_block(&self, height: Height) -> Result<Option<Vec<u8>>, ReadError>;

    /// The receipts of a block; `None` if the node does not hold them.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn receipts(&self, height: Height) -> Result<Option<Arc<ProvenReceipts>>, ReadError>;

    /// The encoded receipts of a block, as archived; `None` if the node does not hold them.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn raw_receipts(&self, height: Height) -> Result<Option<Vec<u8>>, ReadError>;

    /// What a quorum of validators has certified about a block; `None` if there is no certificate here, as in a solo
    /// node.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if the archive cannot be read.
    fn certificate(&self, height: Height) -> Result<Option<CertifiedOutcome>, ReadError>;

    /// Handovers from an epoch on, as many as fit into one answer; `None` in a solo node, which has no committees.
    ///
    /// # Errors
    /// [`ReadError::Archive`] if they cannot be read.
    fn handovers(&self, from: u64) -> Result<Option<HandoverPage>, ReadError>;

    /// Whether this is a developers' chain.
    fn is_developers(&self) -> bool {
        false
    }

    /// What Ethereum sees of all accounts; only on a developers' chain.
    fn dump_accounts(&self) -> Vec<DumpedAccount> {
        Vec::new()
    }

    /// The time of the next block in milliseconds since 1970, where a developer has moved it away from that of the
    /// newest block.
    fn next_block_ms(&self) -> Option<u64> {
        None
    }

    /// Submits an Ethereum transaction of an account that did not sign it; only on a developers' chain.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take it now.
    fn impersonate(&self, _: &Address, _: Vec<u8>) -> Result<Result<TransactionId, EthereumReject>, Closed> {
        Ok(Err(EthereumReject::Fault(EthereumFault::Signature)))
    }

    /// Performs an order of the developer, between two blocks. The result depends on the order.
    ///
    /// # Errors
    /// [`DeveloperRefusal`] gives the reason; always on any other chain.
    fn develop(&self, _: DeveloperOrder) -> Result<u64, DeveloperRefusal> {
        Err(DeveloperRefusal("this is not a developers' chain".into()))
    }
}

/// An order to a developers' chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeveloperOrder {
    /// Makes a number of blocks; the second number is the seconds that pass after each of them.
    Mine(u64, u64),
    /// Keeps the present state; returns its number.
    Snapshot,
    /// Reverts to the state kept under a number; returns 1, or 0 if there is none.
    Revert(u64),
    /// Reverts to the genesis; returns 1.
    Reset,
    /// Edits an account, or the base fee, in a block of its own.
    Edit(DeveloperEdit),
    /// Makes edits in order, in as few blocks as their checks permit.
    Edits(Vec<DeveloperEdit>),
    /// Moves time forward by some seconds; returns how many seconds the chain is ahead of the machine's clock.
    IncreaseTime(u64),
    /// Sets the next block's time, in seconds since 1970.
    NextTime(u64),
    /// Sets the seconds between blocks, whatever the clock says; `None` follows the clock again.
    StepTime(Option<u64>),
    /// Sets when blocks are made.
    Mining(Mining),
    /// Returns 1 if blocks are made as soon as transactions are pending, otherwise 0.
    IsInstant,
    /// Removes a transaction from the pool; returns 1 if it was there, otherwise 0.
    Drop(TransactionId),
    /// Removes all Ethereum transactions from the pool, or those of one account; returns their number.
    DropAll(Option<Address>),
    /// Returns the milliseconds between blocks that are made at an interval, otherwise 0.
    IntervalMs,
    /// Does nothing. Blocks that are due are made before it is answered.
    Settle,
}

/// A pending Ethereum transaction.
#[derive(Clone, Debug)]
pub struct PooledTransaction {
    /// Its hash.
    pub id: TransactionId,
    /// In its EIP-2718 form.
    pub bytes: Vec<u8>,
    /// Its sender.
    pub sender: Address,
    /// Its nonce.
    pub nonce: u64,
    /// Whether it can be proposed: neither a nonce gap nor the base fee keeps it from it.
    pub is_ready: bool,
}

/// When a developers' chain makes blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mining {
    /// As soon as transactions are pending.
    Instant,
    /// Every so many milliseconds, whether transactions are pending or not.
    Interval(u64),
    /// When it is told to.
    Manual,
}

/// Why a developers' chain rejects an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeveloperRefusal(pub String);

/// A moment of the chain, as Ethereum sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After a block.
    After(Height),
    /// In a block, before its first Ethereum transaction.
    Within(Height),
}

/// The answer to a submitted transaction.
#[derive(Debug)]
pub enum Answer {
    /// It is pending. The receiver, if requested, is notified when its block is durable.
    Pending(TransactionId, Option<oneshot::Receiver<Found>>),
    /// It is in a block already.
    Committed(TransactionId, Found),
    /// The mempool is full.
    Full,
    /// The ledger would reject it.
    Refused(Refusal),
}

/// The place of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Height of its block.
    pub height: Height,
    /// Its outcome.
    pub outcome: Outcome,
}

/// Why nothing can be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// Too many submissions are queued.
    #[error("too many submissions are queued; try again shortly")]
    Busy,
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
    /// The disk is nearly full.
    #[error("the disk of this node is almost full; it accepts transactions again when there is space")]
    DiskFull,
    /// The node is not a validator of the epoch, so nobody would propose what it accepts.
    #[error("this node is a follower and not a validator now; submit to a validator")]
    Follows,
}

/// Why something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The archive is damaged or unreadable.
    #[error("the archive cannot be read: {0}")]
    Archive(String),
    /// The node is recovering, stopping, or has failed.
    #[error("the node is recovering or stopping")]
    Stopping,
}

/// The status of a node.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Whether it accepts transactions.
    pub is_ready: bool,
    /// Whether its disk is nearly full, so that it accepts none.
    pub disk_is_full: bool,
    /// Whether it must restart with a fetched state: connections must end.
    pub begins_again: bool,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
    /// Its status as a validator; `None` in a solo node.
    pub validator: Option<ValidatorStatus>,
}

/// Limits of a node that clients should know.
#[derive(Clone, Copy, Debug)]
pub struct NodeLimits {
    /// Maximum number of transactions in a block.
    pub block_transactions: usize,
    /// Maximum time that a transaction waits for a block, when there is room.
    pub block_interval_ms: u64,
    /// Maximum number of pending transactions.
    pub mempool_transactions: usize,
}

/// An account at a height.
#[derive(Clone, Debug)]
pub struct AccountRead {
    /// Height of the state.
    pub height: Height,
    /// The account; `None` if there is none.
    pub account: Option<AccountState>,
}

/// An output that the ledger created in the payment lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneOutputRead {
    /// Its home epoch.
    pub home: u64,
    /// The key that spends it.
    pub to: PublicKey,
    /// The asset.
    pub asset: AssetId,
    /// Units.
    pub amount: Amount,
}

/// A contested output of the payment lane.
#[derive(Clone, Debug)]
pub struct LaneCaseRead {
    /// The name of the output.
    pub output: Digest,
    /// Its home epoch.
    pub home: u64,
    /// The key of its owner.
    pub owner: PublicKey,
    /// The asset.
    pub asset: AssetId,
    /// Units.
    pub amount: Amount,
    /// The payments of it for which validators voted, as digest and encoding, once they are fixed.
    pub candidates: Option<Vec<(Digest, Vec<u8>)>>,
}

/// Offers of one pair at a height.
#[derive(Clone, Debug)]
pub struct OffersRead {
    /// Height of the state.
    pub height: Height,
    /// In order of execution.
    pub offers: Vec<Offer>,
}

/// A value with a proof against the state root of a height.
#[derive(Clone, Debug)]
pub struct Proved<P> {
    /// Height of the root.
    pub height: Height,
    /// The state root.
    pub root: Digest,
    /// The proof.
    pub proof: P,
}

/// What validators have certified about a block.
#[derive(Clone, Debug)]
pub struct CertifiedOutcome {
    /// State root after the block.
    pub state_root: Digest,
    /// Root of its receipts.
    pub receipts_root: Digest,
    /// The certificate of both.
    pub certificate: Certificate,
}

/// Handovers of consecutive epochs.
#[derive(Clone, Debug)]
pub struct HandoverPage {
    /// The last epoch whose committee can be proved here; 0 if the founders' is the last.
    pub last: u64,
    /// The height of each certificate, and the encoded handover.
    pub handovers: Vec<(Height, Vec<u8>)>,
}
